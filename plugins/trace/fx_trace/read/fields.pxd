cimport cython
from libc.stdint cimport int64_t

from fx_trace.read.framing cimport RecordBounds
from fx_trace.read.providers cimport Providers
from fx_trace.read.rows cimport (
    ArgRows, BlobRows, CounterRows, EventRows, LogRows, NoteRows, ObjectRows, ProfilerRows,
    SchedRows,
)
from fxframework.kernels.rows cimport Loop, Notes
from fxframework.kernels.pools cimport Pool, Utf8

cdef class FieldReader(Loop):
    cdef public const int64_t[::1] words, streams
    cdef public int64_t total
    cdef public Pool pool
    cdef public Notes notes
    cdef readonly Utf8 utf8
    cdef public RecordBounds bounds
    cdef public Providers providers
    cdef public EventRows events
    cdef public ArgRows args
    cdef readonly SchedRows sched
    cdef readonly LogRows logs
    cdef readonly BlobRows blobs
    cdef readonly ObjectRows objects
    cdef readonly ProfilerRows profiler
    cdef readonly CounterRows counters
    cdef readonly NoteRows annotations
    cdef public int64_t max_string, record
    cdef readonly int64_t sched_rows, log_rows, blob_rows, object_rows, profiler_rows
    cdef readonly bint large_ticks
    cdef int64_t[::1] recent
    cdef public int64_t start, end, at
    cdef readonly int64_t need
    cdef int64_t subtype, nargs, arg_table, arg_parent
    cdef public int64_t thread, name
    cdef int64_t dirty

    @cython.final
    cdef int note(self, int64_t code, int64_t offset, int64_t value) except -1 nogil
    @cython.final
    cdef bint fits(self, int64_t after) noexcept nogil
    @cython.final
    cdef int leftover(self, int64_t after) except -1 nogil
    @cython.final
    cdef int unused(self, int64_t bits) except -1 nogil
    @cython.final
    cdef int64_t padded(self, int64_t at, int64_t nbytes) noexcept nogil
    @cython.final
    cdef int64_t inline_words(self, int64_t ref) noexcept nogil
    @cython.final
    cdef int64_t text(self, int64_t at, int64_t nbytes, int64_t offset,
                      int64_t bad) except? -9 nogil
    @cython.final
    cdef int64_t string(self, int64_t ref, int64_t at, int64_t offset, int64_t bad) except? -9 nogil
    @cython.final
    cdef int64_t thread_at(self, int64_t ref, int64_t at) except? -9 nogil
    @cython.final
    cdef int absent(self, int64_t entry, int64_t rule, int64_t offset,
                    int64_t index) except -1 nogil
    @cython.final
    cdef int64_t inline_thread(self, int64_t pid, int64_t tid) except? -9 nogil
    @cython.final
    cdef int time_of(self, int64_t ticks) except -1 nogil
    @cython.final
    cdef int64_t args_end(self, int64_t at, int64_t count) noexcept nogil
