cimport cython

cdef int BEGIN, FEW, DIGITS, LONGEST_ESCAPE, QUOTE, BACKSLASH, BLANK, ZERO, MINUS, LETTER_A, POINT, PLACES
cdef unsigned long long LOW64
cdef double LEAST_REAL, MOST_REAL

@cython.final
cdef class Output:
    cdef long long[::1] bounds
    cdef unsigned char[::1] literals
    cdef const unsigned char[::1] source
    cdef const unsigned char[::1] escapes
    cdef unsigned char[::1] data
    cdef unsigned char[::1] digits
    cdef long long size, count
    cdef public long long used

    cdef int grow(self, long long nbytes) except -1 with gil
    @cython.locals(start=cython.longlong, end=cython.longlong, used=cython.longlong)
    cdef int literal(self, int number) except -1 nogil
    @cython.locals(
        left=cython.ulonglong, rest=cython.ulonglong, at=cython.int, used=cython.longlong
    )
    cdef int natural(self, unsigned long long value) except -1 nogil
    cdef int signed(self, long long value) except -1 nogil
    @cython.locals(at=cython.longlong, left=cython.ulonglong, rest=cython.ulonglong)
    cdef int padded(self, unsigned long long value, int places) except -1 nogil
    @cython.locals(
        used=cython.longlong, at=cython.longlong, end=cython.longlong, byte=cython.int,
        index=cython.int, stop=cython.int,
    )
    cdef int json_text(self, long long start, long long nbytes) except -1 nogil
    @cython.locals(
        used=cython.longlong, at=cython.longlong, end=cython.longlong, byte=cython.int,
        high=cython.int, low=cython.int,
    )
    cdef int hexadecimal(self, long long start, long long nbytes) except -1 nogil
    @cython.locals(
        size=cython.double, scale=cython.double, scaled=cython.double, whole=cython.longlong,
        places=cython.int,
    )
    cdef int real(self, double value, long long bits) except -1 nogil
    @cython.locals(
        used=cython.longlong, at=cython.int, left=cython.longlong, rest=cython.longlong,
        count=cython.int,
    )
    cdef int decimal(self, long long whole, int places, long long bits) except -1 nogil
    cdef int real_by_host(self, double value) except -1 with gil
