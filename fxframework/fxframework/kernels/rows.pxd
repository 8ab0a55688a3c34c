cimport cython
from libc.stdint cimport int64_t

cdef class Rows:
    cdef public int64_t first, rows, room

    @cython.final
    cdef int64_t add_row(self) except? -9 nogil
    @cython.final
    cdef int grow(self) except -1 with gil
