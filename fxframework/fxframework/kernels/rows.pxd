cimport cython
from libc.stdint cimport int64_t

cdef class Loop:
    cdef int64_t step(self) except? -9 nogil


@cython.final
cdef class Notes:
    cdef public int64_t limit
    cdef public int64_t[::1] totals, rows
    cdef public int64_t room, used

    cpdef int64_t add(self, int64_t code, int64_t offset, int64_t record,
                      int64_t value) except? -9 nogil
    cdef int grow(self) except -1 with gil
    cpdef int64_t count(self, int64_t code) noexcept nogil
