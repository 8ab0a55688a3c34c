cimport cython

@cython.final
cdef class Notes:
    cdef readonly long long limit
    cdef readonly long long[::1] counts
    cdef readonly long long[::1] rows
    cdef readonly long long room
    cdef readonly long long used

    @cython.locals(count=cython.longlong, row=cython.longlong)
    cpdef long long add(
        self, long long code, long long offset, long long record, long long value
    ) except -1 nogil
    cdef int grow(self) except -1 with gil
    cpdef long long count(self, long long code) noexcept nogil
