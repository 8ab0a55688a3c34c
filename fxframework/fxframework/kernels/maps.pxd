cimport cython
from libc.stdint cimport int64_t

cdef unsigned long long LOW64

@cython.final
cdef class PairMap:
    cdef unsigned long long seed
    cdef unsigned long long multiplier
    cdef unsigned long long other
    cdef readonly long long used
    cdef readonly long long mask
    cdef readonly long long[::1] first
    cdef readonly long long[::1] second
    cdef readonly long long[::1] value

    @cython.locals(mixed=cython.ulonglong, slot=cython.longlong)
    cdef long long find(self, long long first, long long second) noexcept nogil
    cpdef int64_t get(self, long long first, long long second) noexcept nogil
    @cython.locals(slot=cython.longlong)
    cpdef int put(self, long long first, long long second, long long value) except? -1 nogil
    @cython.locals(slot=cython.longlong, found=cython.longlong)
    cpdef int64_t number(self, long long first, long long second) except? -1 nogil
    @cython.locals(before=cython.longlong)
    cdef int grow(self) except -1 with gil
    @cython.locals(old=cython.longlong, slot=cython.longlong)
    cdef int enter_again(
        self, long long[::1] first, long long[::1] second, long long[::1] value, long long mask
    ) noexcept nogil


@cython.final
cdef class CountMap:
    cdef unsigned long long seed
    cdef unsigned long long multiplier
    cdef readonly long long used
    cdef readonly long long mask
    cdef readonly long long[::1] keys
    cdef readonly long long[::1] counts

    @cython.locals(mixed=cython.ulonglong, slot=cython.longlong)
    cdef long long find(self, long long key) noexcept nogil
    cpdef int64_t get(self, long long key) noexcept nogil
    @cython.locals(slot=cython.longlong)
    cpdef int add(self, long long key, long long amount) except -1 nogil
    @cython.locals(before=cython.longlong)
    cdef int grow(self) except -1 with gil
    @cython.locals(old=cython.longlong, slot=cython.longlong)
    cdef int enter_again(self, long long[::1] keys, long long[::1] counts, long long mask) noexcept nogil
