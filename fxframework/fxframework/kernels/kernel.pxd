cdef class Kernel:
    cdef long long step(self) except? -1 nogil
    cpdef long long run(self) except? -1
