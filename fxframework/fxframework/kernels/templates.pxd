cimport cython
from fxframework.kernels.kernel cimport Kernel
from fxframework.kernels.output cimport Output

cdef int TEXT, SIGNED, NATURAL, HEX, MICROS, SECONDS, LENGTH, MEMBERS, MARK, ZERO, BLANK, MINUS, POINT
cdef int LETTER_A, LETTER_M, LETTER_N, LETTER_S, LETTER_U, WIDTH
cdef unsigned long long LOW64

cdef class Templates(Kernel):
    cdef readonly Output out
    cdef list _braces
    cdef dict _numbers
    cdef const long long[::1] kinds, places, steps, values, member_starts, member_ends
    cdef long long[::1] ends, marked
    cdef readonly object marks
    cdef long long parts, rows

    @cython.locals(row=cython.longlong, part=cython.longlong)
    cdef long long step(self) except? -1 nogil
    @cython.final
    @cython.locals(kind=cython.longlong)
    cdef int cell(self, long long part, long long value, long long row) except -1 nogil
    @cython.final
    @cython.locals(at=cython.longlong)
    cdef int members(self, long long first, long long stop) except -1 nogil
    @cython.final
    @cython.locals(used=cython.longlong)
    cdef int copy(self, long long start, long long end) except -1 nogil
    @cython.final
    cdef int letter(self, int letter) except -1 nogil
    @cython.final
    @cython.locals(left=cython.ulonglong, digits=cython.int, digit=cython.int)
    cdef int hexadecimal(self, long long value) except -1 nogil
    @cython.final
    cdef unsigned long long magnitude(self, long long value) noexcept nogil
    @cython.final
    @cython.locals(size=cython.ulonglong)
    cdef int micros(self, long long ns) except -1 nogil
    @cython.final
    @cython.locals(
        size=cython.ulonglong, whole=cython.ulonglong, left=cython.ulonglong, letters=cython.int
    )
    cdef int seconds(self, long long ns) except -1 nogil
    @cython.final
    @cython.locals(size=cython.ulonglong)
    cdef int length(self, long long ns) except -1 nogil
    @cython.final
    @cython.locals(left=cython.ulonglong)
    cdef int fraction(
        self, unsigned long long whole, unsigned long long rest, int places
    ) except -1 nogil
