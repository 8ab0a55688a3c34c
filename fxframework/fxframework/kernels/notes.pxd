cimport cython
from libc.stdint cimport int64_t

@cython.final
cdef class Notes:
    cdef readonly long long limit
    cdef readonly long long[::1] totals
    cdef readonly long long[::1] rows
    cdef readonly long long room
    cdef readonly long long used

    @cython.locals(count=cython.longlong, row=cython.longlong)
    cpdef int64_t add(
        self, long long code, long long offset, long long record, long long value
    ) except? -1 nogil
    cdef int grow(self) except -1 with gil
    cpdef int64_t count(self, long long code) noexcept nogil
