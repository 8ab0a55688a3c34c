cimport cython
from fx_inspect.read cimport c_codes as codes
from fxframework.kernels.kernel cimport Kernel
from fxframework.kernels.output cimport Output
from fxframework.kernels.utf8 cimport Utf8

cdef int OFFSET, NBYTES, INDEX, NAME_TEXT, PAYLOAD, CAPACITY, INLINE, END_OF_BYTES, SLOTS
cdef int SLOT_INDEXES, COMMA, END_OF_SLOTS, RAW, END_OF_RAW, END_OF_RECORD, END, FULL, NOT_PLAIN
cdef int AS_NATURAL, AS_SIGNED, AS_REAL, FIELD
cdef long long MAX_ORDER, UNIT, ONE, LENGTH, LOW32, EXPONENT

cdef class JsonLines(Kernel):
    cdef const long long[::1] words
    cdef const double[::1] doubles
    cdef const unsigned char[::1] octets
    cdef Utf8 utf8
    cdef readonly Output out
    cdef const long long[::1] masks
    cdef const long long[::1] bounds
    cdef const long long[::1] fields
    cdef long long type_at, type_mask, types, length_at, units, max_record, most
    cdef public long long pos, records

    @cython.locals(before=cython.longlong)
    cdef long long step(self) except? -1 nogil
    @cython.final
    @cython.locals(
        word=cython.longlong, payload=cython.longlong, order=cython.longlong, type=cython.longlong,
        size=cython.longlong, start=cython.longlong, end=cython.longlong, row=cython.longlong,
        behind=cython.longlong, raw=cython.int,
    )
    cdef int block(self, long long unit) except -1 nogil
    @cython.final
    cdef bint zero(self, long long unit) noexcept nogil
    @cython.final
    @cython.locals(place=cython.longlong, value=cython.longlong, shown=cython.longlong)
    cdef int field(self, long long at, long long unit) except -1 nogil
    @cython.final
    cdef int real(self, long long place) except -1 nogil
    @cython.final
    @cython.locals(payload=cython.longlong, at=cython.longlong, nbytes=cython.longlong)
    cdef long long contents(
        self, long long type, long long start, long long end
    ) except? -1 nogil
    @cython.final
    @cython.locals(
        size=cython.longlong, stop=cython.longlong, first=cython.longlong, word=cython.longlong
    )
    cdef long long slots(
        self, long long entry, long long count, long long at, long long end
    ) except? -1 nogil
