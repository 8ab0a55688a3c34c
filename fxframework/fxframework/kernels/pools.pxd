cimport cython
from libc.stdint cimport int64_t

cdef unsigned long long LOW64
cdef long long NOT_ASCII

@cython.final
cdef class Pool:
    cdef unsigned long long seed
    cdef unsigned long long multiplier
    cdef unsigned long long other
    cdef readonly long long count
    cdef readonly long long filled
    cdef readonly long long room
    cdef readonly long long word_room
    cdef readonly long long mask
    cdef readonly long long[::1] words
    cdef readonly long long[::1] starts
    cdef readonly long long[::1] lengths
    cdef readonly unsigned char[::1] valid
    cdef long long[::1] slots
    cdef const long long[::1] source

    @cython.locals(mixed=cython.ulonglong, tail=cython.ulonglong, at=cython.longlong)
    cdef long long hash_of(self, long long start, long long nbytes) noexcept nogil
    @cython.locals(at=cython.longlong, index=cython.longlong, odd=cython.ulonglong)
    cdef bint same(self, long long code, long long start, long long nbytes) noexcept nogil
    @cython.locals(tag=cython.longlong, slot=cython.longlong, entry=cython.longlong)
    cpdef int64_t find(self, long long start, long long nbytes) noexcept nogil
    @cython.locals(
        tag=cython.longlong, slot=cython.longlong, entry=cython.longlong, code=cython.longlong,
        at=cython.longlong, index=cython.longlong, whole=cython.longlong, tail=cython.ulonglong,
    )
    cpdef int64_t intern(self, long long start, long long nbytes) except? -1 nogil
    cpdef int reserve(self, long long strings, long long words) except -1 with gil
    @cython.locals(old=cython.longlong, slot=cython.longlong, entry=cython.longlong)
    cdef int enter_again(self, long long[::1] before, long long mask) noexcept nogil
    cdef int byte(self, long long start, long long index) noexcept nogil
    @cython.locals(
        every=cython.longlong, at=cython.longlong, lead=cython.int, more=cython.int,
        low=cython.int, high=cython.int, follow=cython.int,
    )
    cdef int is_utf8(self, long long start, long long nbytes) noexcept nogil
    @cython.locals(
        row=cython.longlong, size=cython.longlong, rest=cython.longlong, at=cython.longlong,
        place=cython.longlong, digits="long long[::1]",
    )
    cpdef enter_numbers(self, const long long[::1] numbers, int[::1] codes)
