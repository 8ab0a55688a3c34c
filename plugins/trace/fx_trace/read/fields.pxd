cimport cython
from libc.stdint cimport int64_t
from fx_trace.read.providers cimport Providers
from fx_trace.read.record_bounds cimport RecordBounds
from fx_trace.read.rows cimport (
    ArgRows,
    BlobRows,
    CounterRows,
    EventRows,
    LogRows,
    NoteRows,
    ObjectRows,
    ProfilerRows,
    SchedRows,
)
from fxframework.kernels.kernel cimport Kernel
from fxframework.kernels.notes cimport Notes
from fxframework.kernels.pools cimport Pool
from fxframework.kernels.utf8 cimport Utf8

cdef int ARG_BLOB, ARG_DOUBLE, ARG_INT64, ARG_KOID, ARG_NAME_AT, ARG_POINTER, ARG_STRING
cdef int ARG_VALUE_AT, RESERVED_BITS, STRING_OVER_LIMIT, WORDS_LEFT_OVER
cdef long long LOW32
cdef int INLINE, ENTRY


cdef class FieldReader(Kernel):
    cdef const long long[::1] words, streams
    cdef long long total
    cdef Pool pool
    cdef Notes notes
    cdef Utf8 utf8
    cdef RecordBounds bounds
    cdef readonly Providers providers
    cdef readonly EventRows events
    cdef readonly ArgRows args
    cdef readonly SchedRows sched
    cdef readonly LogRows logs
    cdef readonly BlobRows blobs
    cdef readonly ObjectRows objects
    cdef readonly ProfilerRows profiler
    cdef readonly CounterRows counters
    cdef readonly NoteRows annotations
    cdef public long long max_string, record
    cdef readonly long long sched_rows, log_rows, blob_rows, object_rows, profiler_rows
    cdef readonly bint large_ticks
    cdef long long last_thread, start, end, at, need, subtype, nargs
    cdef long long arg_table, arg_parent, thread, name
    cdef int dirty

    @cython.final
    cdef int note(self, long long code, long long offset, long long value) except -1 nogil
    @cython.final
    cdef bint fits(self, long long after) noexcept nogil
    @cython.final
    cdef int leftover(self, long long after) except -1 nogil
    @cython.final
    cdef int unused(self, long long bits) except -1 nogil
    @cython.final
    cdef int padded(self, long long at, long long nbytes) noexcept nogil
    @cython.final
    cdef long long inline_words(self, long long ref) noexcept nogil
    @cython.final
    @cython.locals(code=cython.longlong)
    cdef int64_t text(
        self, long long at, long long nbytes, long long offset, long long bad
    ) except -1 nogil
    @cython.final
    @cython.locals(entry=cython.longlong)
    cdef int64_t string(
        self, long long ref, long long at, long long offset, long long bad
    ) except -1 nogil
    @cython.final
    @cython.locals(entry=cython.longlong)
    cdef int64_t thread_at(self, long long ref, long long at) except -1 nogil
    @cython.final
    @cython.locals(thread=cython.longlong)
    cdef int64_t inline_thread(self, long long pid, long long tid) except -1 nogil
    @cython.final
    cdef int time_of(self, long long ticks) except -1 nogil
    @cython.final
    @cython.locals(need=cython.longlong)
    cdef long long args_end(self, long long at, long long count) noexcept nogil
