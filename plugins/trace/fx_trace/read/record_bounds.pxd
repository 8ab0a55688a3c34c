cimport cython
from libc.stdint cimport int64_t

cdef int ARG_BLOB, ARG_DOUBLE, ARG_INT64, ARG_KOID, ARG_NAME_AT, ARG_POINTER, ARG_STRING
cdef int ARG_VALUE_AT, RECORD_LARGE, RECORD_METADATA, SIZE_AT, RUN
cdef int FIELD_WIDTH, FORM_WIDTH, MASK, FORM_VALUE, SOME, MORE, FORM_WORDS, NARGS_AT, TAIL, BYTES, WORDS, STRING, KOIDS
cdef long long SIZE_BITS, LARGE_SIZE_BITS, INLINE


@cython.final
cdef class RecordBounds:
    cdef const long long[::1] words
    cdef const long long[::1] least
    cdef const long long[::1] forms, first_form
    cdef public long long total

    cpdef int64_t size_of(self, long long word) noexcept nogil
    cdef long long zeros_end(self, long long at) noexcept nogil
    cdef long long sound_size(self, long long at) noexcept nogil
    @cython.locals(form=cython.longlong, end=cython.longlong)
    cpdef int64_t resume(self, long long at) noexcept nogil
    @cython.locals(run=cython.int)
    cdef bint follows(self, long long at) noexcept nogil
    @cython.locals(form=cython.longlong)
    cdef bint is_exact(self, long long at) noexcept nogil
    @cython.locals(
        row=cython.longlong, field=cython.longlong, count=cython.longlong, end=cython.longlong
    )
    cdef long long contents_end(self, long long at, long long form) noexcept nogil
    cpdef int64_t sizes_end(self, long long at, long long end) noexcept nogil
    @cython.locals(total=cython.longlong, word=cython.longlong, size=cython.longlong)
    cpdef int64_t metadata_after(
        self, long long at, long long end, long long max_record
    ) noexcept nogil
    cdef bint is_framed(self, long long at) noexcept nogil
    cdef long long inline_words(self, long long ref) noexcept nogil
    @cython.locals(words=cython.longlong)
    cdef long long argument_words(self, long long word) noexcept nogil
