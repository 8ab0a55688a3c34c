cimport cython
from fxframework.kernels.maps cimport PairMap

cdef int PROVIDER_INFO, GENERATION_AT, EPOCH_OF, INTRODUCED, STRINGS, THREADS
cdef long long WORD_MASK


@cython.final
cdef class Registrations:
    cdef PairMap strings, threads, providers
    cdef long long[::1] string_at, thread_at
    cdef long long made, epoch, epochs, generation

    @cython.locals(at=cython.longlong, found=cython.longlong)
    cdef long long lookup(self, PairMap table, long long index) noexcept nogil
    @cython.locals(entry=cython.longlong)
    cpdef long long string(self, long long index) noexcept nogil
    @cython.locals(entry=cython.longlong)
    cpdef long long thread(self, long long index) noexcept nogil
    @cython.locals(at=cython.longlong)
    cdef bint is_hidden(self, PairMap table, long long index) noexcept nogil
    cpdef bint has_string(self, long long index) noexcept nogil
    cpdef bint has_thread(self, long long index) noexcept nogil
    cpdef int register_string(self, long long index, long long at) except -1 nogil
    cpdef int register_thread(self, long long index, long long at) except -1 nogil
    @cython.locals(epoch=cython.longlong, known=cython.bint, again=cython.bint)
    cpdef bint switch(self, long long kind, long long number) except -1 nogil
