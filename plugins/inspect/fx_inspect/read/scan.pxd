cimport cython
from fx_inspect.read cimport c_codes as codes
from fxframework.kernels.kernel cimport Kernel
from fxframework.kernels.notes cimport Notes

cdef int BLOCK_OVER_LIMIT, BLOCK_PAST_THE_END, FREE_LIST, FROZEN_VMO, INVALID_BOOL, LARGE_BLOCK
cdef int LOCKED, LONGER_THAN_ITS_SIZE, NO_BLOCK, NO_HEADER, NO_SIZE, OTHER_MAGIC
cdef int RESERVED_BITS_SET, RESERVED_BLOCK, SECOND_HEADER, SHORTER_THAN_ITS_SIZE, TRAILING_BYTES
cdef int UNKNOWN_TYPE, UNKNOWN_VERSION, VERSION_ZERO_IN_NEW_LAYOUT
cdef long long LOW32, MAGIC, FROZEN_GENERATION, MAX_ORDER, MAX_VMO, UNIT, ONE
cdef int NOT_LOOKED, LEADING, FITTING

cdef class Scan(Kernel):
    cdef const long long[::1] words
    cdef const long long[::1] reserved
    cdef Notes notes
    cdef readonly long long nbytes, units, index_at, index_mask, name_at
    cdef long long type_at, type_mask, types, max_version, max_record
    cdef readonly int[::1] unit
    cdef readonly unsigned char[::1] type
    cdef readonly unsigned char[::1] order
    cdef readonly unsigned char[::1] starts
    cdef readonly int[::1] numbers
    cdef unsigned char[::1] leads
    cdef readonly long long[::1] tally
    cdef readonly long long count, nodes, values, extents, strings, buffers, links
    cdef readonly long long damaged_bytes, unknown_bytes, padding_bytes
    cdef int resumed

    cdef long long step(self) except? -1 nogil
    @cython.final
    @cython.locals(
        word=cython.longlong, end=cython.longlong, order=cython.longlong, size=cython.longlong,
        type=cython.longlong,
    )
    cdef long long record(self, long long unit) except? -1 nogil
    @cython.final
    @cython.locals(
        at=cython.longlong, word=cython.longlong, payload=cython.longlong, number=cython.longlong
    )
    cdef int block(self, long long unit, long long type, long long order) except -1 nogil
    @cython.final
    cdef long long damaged(self, long long unit, long long end) except? -1 nogil
    @cython.final
    cdef long long enter(
        self, long long unit, long long type, long long order, long long end
    ) except? -1 nogil
    @cython.final
    @cython.locals(record=cython.longlong, unit=cython.longlong, after=cython.longlong)
    cdef int free_lists(self) except -1 nogil
    @cython.final
    @cython.locals(low=cython.longlong, high=cython.longlong, middle=cython.longlong)
    cdef bint free(self, long long unit, long long order) noexcept nogil
    @cython.final
    @cython.locals(word=cython.longlong, order=cython.longlong, size=cython.longlong)
    cdef long long fits(self, long long unit) noexcept nogil
    @cython.final
    @cython.locals(at=cython.longlong)
    cdef long long resume(self, long long unit) except? -1 nogil
    @cython.final
    @cython.locals(at=cython.longlong, size=cython.longlong)
    cdef int find_leads(self) except -1 nogil
    @cython.final
    cdef int make_leads(self) except -1 with gil
    @cython.final
    @cython.locals(
        word=cython.longlong, generation=cython.longlong, magic=cython.longlong,
        version=cython.longlong, order=cython.longlong, size=cython.longlong,
    )
    cdef int header(self) except -1 nogil
