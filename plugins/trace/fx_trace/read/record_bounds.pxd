cimport cython
from libc.stdint cimport int64_t

cdef int ARG_BLOB, ARG_DOUBLE, ARG_INT64, ARG_KOID, ARG_NAME_AT, ARG_POINTER, ARG_STRING
cdef int ARG_VALUE_AT, EVENT_ARGS_AT, EVENT_CATEGORY_AT, EVENT_COUNTER, EVENT_DURATION_COMPLETE
cdef int EVENT_FLOW_END, EVENT_INSTANT, EVENT_KIND_AT, EVENT_NAME_AT, EVENT_THREAD_AT
cdef int LOG_LENGTH_AT, LOG_THREAD_AT, RECORD_EVENT, RECORD_LARGE, RECORD_LOG, RECORD_METADATA, RECORD_STRING
cdef int RECORD_THREAD, SIZE_AT, STRING_INDEX_AT, STRING_LENGTH_AT, THREAD_INDEX_AT, RUN
cdef long long UNUSED_LOG, UNUSED_STRING, UNUSED_THREAD, SIZE_BITS, LARGE_SIZE_BITS, INLINE


@cython.final
cdef class RecordBounds:
    cdef const long long[::1] words
    cdef const long long[::1] least
    cdef public long long total

    cpdef int64_t size_of(self, long long word) noexcept nogil
    cdef long long zeros_end(self, long long at) noexcept nogil
    cdef long long sound_size(self, long long at) noexcept nogil
    cpdef int64_t resume(self, long long at) noexcept nogil
    @cython.locals(run=cython.int)
    cdef bint follows(self, long long at) noexcept nogil
    @cython.locals(inline=cython.longlong)
    cdef bint is_exact(self, long long at, long long end) noexcept nogil
    cdef bint is_exact_event(self, long long word, long long at, long long end) noexcept nogil
    cpdef int64_t sizes_end(self, long long at, long long end) noexcept nogil
    @cython.locals(total=cython.longlong, word=cython.longlong, size=cython.longlong)
    cpdef int64_t metadata_after(
        self, long long at, long long end, long long max_record
    ) noexcept nogil
    cdef bint is_framed(self, long long at) noexcept nogil
    cdef long long inline_words(self, long long ref) noexcept nogil
    @cython.locals(words=cython.longlong)
    cdef long long argument_words(self, long long word) noexcept nogil
