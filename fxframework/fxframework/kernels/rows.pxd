cdef class Rows:
    cdef public long long first, rows, room

    cdef int grow(self) except -1 with gil
