cimport cython
from libc.stdint cimport int64_t

from fxframework.kernels.pools cimport PairMap

@cython.final
cdef class Registrations:
    cdef public PairMap strings, threads, providers
    cdef int64_t[::1] string_at, thread_at
    cdef public int64_t made
    cdef int64_t epoch, epochs
    cdef public int64_t generation

    cdef int64_t lookup(self, PairMap table, int64_t index) noexcept nogil
    cpdef int64_t string(self, int64_t index) noexcept nogil
    cpdef int64_t thread(self, int64_t index) noexcept nogil
    cdef bint is_hidden(self, PairMap table, int64_t index) noexcept nogil
    cpdef bint has_string(self, int64_t index) noexcept nogil
    cpdef bint has_thread(self, int64_t index) noexcept nogil
    cpdef int register_string(self, int64_t index, int64_t at) except -1 nogil
    cpdef int register_thread(self, int64_t index, int64_t at) except -1 nogil
    cpdef bint switch(self, int64_t kind, int64_t number) except? -1 nogil
