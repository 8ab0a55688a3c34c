cimport cython
from fx_inspect.read cimport c_codes as codes
from fx_inspect.read.scan cimport Scan
from fx_inspect.read.texts cimport Texts
from fxframework.kernels.kernel cimport Kernel
from fxframework.kernels.notes cimport Notes

cdef int CYCLE, DELETED_WITH_VALUES, EMPTY_HISTOGRAM, EXTENT_USED_TWICE, FEW_SLOTS
cdef int NAME_OF_ANOTHER_TYPE, NAME_PAST_ITS_BLOCK, NAME_USED_TWICE, NAME_WITHOUT_BLOCK
cdef int NODE_COUNT, NOT_USED, NO_CONTENT, NO_STRING, ORPHAN, SLOT_WITHOUT_STRING, STRING_COUNT
cdef int TOO_MANY_SLOTS, UNKNOWN_ARRAY_FORMAT, UNKNOWN_DISPOSITION, UNKNOWN_ENTRIES
cdef int UNKNOWN_FORMAT
cdef long long LOW32, LOW28, LOW20, LOW16, UNIT, SLOTS_AT, ONE
cdef int NO_NODE

cdef class Values(Kernel):
    cdef const long long[::1] words
    cdef Scan scan
    cdef Notes notes
    cdef const long long[::1] string_length
    cdef const long long[::1] buffer_length
    cdef readonly int[::1] uses, refs, children, seen
    cdef readonly long long nodes, rows, links
    cdef readonly int[::1] node_parent, node_name, node_block
    cdef readonly int[::1] name, node, block, source
    cdef readonly unsigned char[::1] type, format
    cdef readonly long long[::1] bits
    cdef readonly unsigned int[::1] length
    cdef readonly int[::1] link_name, link_node, link_block, link_content
    cdef readonly unsigned char[::1] link_disposition
    cdef readonly long long seen_types
    cdef long long parent, named, about
    cdef int fault

    cdef long long step(self) except? -1 nogil
    @cython.final
    @cython.locals(word=cython.longlong, target=cython.longlong, payload=cython.longlong)
    cdef int value(self, long long record, long long unit, int type) except -1 nogil
    @cython.final
    @cython.locals(node=cython.longlong)
    cdef int read_node(self, long long record, long long unit) except -1 nogil
    @cython.final
    @cython.locals(
        payload=cython.longlong, target=cython.longlong, disposition=cython.longlong,
        content=cython.longlong, fault=cython.int,
    )
    cdef int read_link(self, long long record, long long unit) except -1 nogil
    @cython.final
    @cython.locals(
        payload=cython.longlong, format=cython.longlong, nbytes=cython.longlong,
        target=cython.longlong, string=cython.longlong, kind=cython.int,
    )
    cdef int read_buffer(self, long long record, long long unit) except -1 nogil
    @cython.final
    @cython.locals(
        payload=cython.longlong, entry=cython.int, format=cython.int, count=cython.longlong,
        of_strings=cython.bint, wrong=cython.int, slot=cython.longlong, kind=cython.int,
    )
    cdef int read_array(self, long long record, long long unit) except -1 nogil
    @cython.final
    @cython.locals(room=cython.longlong)
    cdef int array_fault(self, int entry, int format, long long count, int order) noexcept nogil
    @cython.final
    @cython.locals(
        wrong=cython.longlong, slot=cython.longlong, target=cython.longlong, string=cython.longlong
    )
    cdef long long read_slots(self, long long unit, long long count) noexcept nogil
    @cython.final
    @cython.locals(row=cython.longlong)
    cdef int property(
        self, long long record, long long unit, int kind, int format, long long bits,
        long long source, long long nbytes
    ) except -1 nogil
    @cython.final
    cdef int drop(self, long long record, long long unit) except -1 nogil
    @cython.final
    @cython.locals(start=cython.int, string=cython.longlong)
    cdef long long find_name(self, long long unit) noexcept nogil
    @cython.final
    @cython.locals(start=cython.int, string=cython.longlong)
    cdef long long find_string(self, long long unit) noexcept nogil
    @cython.final
    @cython.locals(start=cython.int)
    cdef int refer(self, long long unit) noexcept nogil
    @cython.final
    @cython.locals(node=cython.longlong)
    cdef int attach_nodes(self) except -1 nogil
    @cython.final
    @cython.locals(start=cython.int, node=cython.longlong)
    cdef long long attached(self, long long record, long long parent) except? -3 nogil
    @cython.final
    @cython.locals(
        start=cython.longlong, node=cython.longlong, first=cython.longlong,
        around=cython.longlong, record=cython.longlong,
    )
    cdef int find_cycles(self) except -1 nogil

cdef class Validator(Kernel):
    cdef const long long[::1] words
    cdef Scan scan
    cdef Notes notes
    cdef const int[::1] owner
    cdef const unsigned char[::1] twice
    cdef const int[::1] refs
    cdef const int[::1] children

    cdef long long step(self) except? -1 nogil
    @cython.final
    @cython.locals(refs=cython.longlong)
    cdef int string(self, long long record, long long unit, int type) except -1 nogil
