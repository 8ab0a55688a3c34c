cimport cython
from fxframework.kernels cimport c_ops as ops
from fxframework.kernels.framing cimport Framing
from fxframework.kernels.kernel cimport Kernel
from fxframework.kernels.maps cimport PairMap
from fxframework.kernels.notes cimport Notes
from fxframework.kernels.output cimport Output
from fxframework.kernels.pools cimport Pool
from fxframework.kernels.utf8 cimport Utf8

cdef int PENDING
cdef int BAD_MAGIC, CUT_OFF, UNKNOWN_KIND, BAD_SIZE, RESERVED_BITS, NOT_UTF8
cdef int L_DAMAGED, L_NBYTES, L_CODE, L_RAW, L_CLOSE, L_UNKNOWN, L_TYPE, L_PADDING, L_END, L_CODES
cdef int L_QUOTE, L_REPLACED, L_NAN, L_INFINITY, L_MINUS, ZERO, LETTER_A
cdef long long GENERATION, EXPONENT, LOW32, HALF_EXPONENT, HALF_SIGN, HALF_FRACTION, FRACTION, USUAL_NAN
cdef unsigned long long LOW64

cdef class Program(Kernel):
    cdef readonly Framing framing
    cdef const unsigned char[::1] data
    cdef const long long[::1] words
    cdef const long long[::1] code
    cdef const long long[::1] entries
    cdef readonly long long[::1] slots
    cdef readonly long long[::1] tables
    cdef readonly PairMap texts
    cdef readonly long long[::1] starts, lengths
    cdef readonly int[::1] codes_of
    cdef Utf8 utf8
    cdef readonly Output out
    cdef Pool pool
    cdef long long[::1] scratch
    cdef long long[::1] bits
    cdef double[::1] doubles
    cdef unsigned int[::1] half_bits
    cdef float[::1] halves
    cdef unsigned char[::1] figures
    cdef readonly Notes notes
    cdef long long[::1] pending
    cdef long long waiting, defined, total, columns, at, written, by_kinds, classes
    cdef public long long lines, most, pos, records, handed, sound
    cdef readonly long long room
    cdef readonly long long[::1] kinds, rows, cells
    cdef long long[::1] marks

    @cython.locals(status=cython.longlong)
    cdef long long step(self) except? -1 nogil
    @cython.final
    @cython.locals(table=cython.longlong, count=cython.longlong)
    cdef bint full_up(self) noexcept nogil
    @cython.final
    @cython.locals(
        entry=cython.longlong, ip=cython.longlong, big=cython.longlong, used=cython.longlong, table=cython.longlong,
        status=cython.longlong, number=cython.longlong,
    )
    cdef long long record(self) except? -1 nogil
    @cython.final
    @cython.locals(size=cython.longlong)
    cdef long long stretch(self, long long number, long long unknown) except? -1 nogil
    @cython.final
    cdef int note(self, long long number, long long offset, long long value) noexcept nogil
    @cython.final
    @cython.locals(index=cython.longlong)
    cdef int commit(self) except -1 nogil
    @cython.final
    @cython.locals(
        pos=cython.longlong, stop=cython.longlong, at=cython.longlong, limit=cython.longlong,
        w=cython.longlong, raw=cython.int, refs=cython.int, invalid=cython.int, row=cython.longlong, start=cython.longlong,
        length=cython.longlong, cells_room=cython.longlong, code=cython.longlong,
        a=cython.longlong, b=cython.longlong, c=cython.longlong, d=cython.longlong,
        value=cython.longlong, index=cython.longlong,
    )
    cdef long long run_at(self, long long ip) except? -1 nogil
    @cython.final
    cdef int zeros(self, long long at, long long end) noexcept nogil
    @cython.final
    cdef long long calculated(self, long long operation, long long left, long long right) noexcept nogil
    @cython.final
    @cython.locals(number=cython.longlong)
    cdef int define(self, long long table, long long index, long long start, long long length) except -1 nogil
    cdef int more_texts(self) except -1 with gil
    @cython.final
    @cython.locals(
        count=cython.longlong, index=cython.longlong, word=cython.ulonglong, place=cython.longlong,
        octet=cython.ulonglong,
    )
    cdef long long interned(self, long long start, long long length) except? -1 nogil
    cdef int more_scratch(self, long long count) except -1 with gil
    @cython.final
    @cython.locals(place=cython.int)
    cdef int special(self, long long bits, long long key) except -1 nogil
    @cython.final
    cdef int hex_digit(self, int digit) noexcept nogil
    @cython.final
    @cython.locals(at=cython.longlong, end=cython.longlong, first=cython.longlong, size=cython.longlong)
    cdef int replaced(self, long long start, long long length, long long key) except -1 nogil
    @cython.final
    @cython.locals(before=cython.longlong, at=cython.longlong, stop=cython.longlong)
    cdef int plain(self, long long start, long long end) except -1 nogil
    @cython.final
    @cython.locals(lead=cython.int, more=cython.int, low=cython.int, high=cython.int, size=cython.longlong)
    cdef long long character(self, long long at, long long end) noexcept nogil
    @cython.final
    @cython.locals(end=cython.longlong, count=cython.longlong, index=cython.longlong)
    cdef int insert(self, long long number) except -1 nogil
