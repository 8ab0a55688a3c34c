cimport cython
from libc.stdint cimport int64_t

@cython.final
cdef class RecordBounds:
    cdef public const int64_t[::1] words
    cdef readonly const int64_t[::1] least, forms
    cdef const int64_t[::1] first_form
    cdef public const int64_t[::1] damage
    cdef public int64_t total, max_record, end, value

    cpdef int64_t fault(self, int64_t at) noexcept nogil
    cpdef int64_t size_of(self, int64_t word) noexcept nogil
    cdef int64_t zeros_end(self, int64_t at) noexcept nogil
    cpdef int64_t sound_size(self, int64_t at) noexcept nogil
    cpdef int64_t resume(self, int64_t at) noexcept nogil
    cpdef int64_t start_of(self, int64_t at, int64_t wanted) noexcept nogil
    cdef bint follows(self, int64_t at) noexcept nogil
    cdef bint is_damage(self, int64_t at) noexcept nogil
    cpdef int64_t hiding(self, int64_t at, int64_t end) noexcept nogil
    cpdef int64_t hidden_in(self, int64_t at) noexcept nogil
    cpdef bint is_exact(self, int64_t at) noexcept nogil
    cdef int64_t form_of(self, int64_t at, int64_t end) noexcept nogil
    cpdef bint is_of(self, int64_t word, int64_t form) noexcept nogil
    cdef int64_t contents_end(self, int64_t at, int64_t form) noexcept nogil
    cpdef int64_t sizes_end(self, int64_t at, int64_t end) noexcept nogil
    cpdef int64_t metadata_after(self, int64_t at, int64_t end) noexcept nogil
    cdef int64_t inline_words(self, int64_t ref) noexcept nogil
    cdef int64_t argument_words(self, int64_t word) noexcept nogil
