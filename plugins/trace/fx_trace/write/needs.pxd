cimport cython
from libc.stdint cimport int64_t
from fx_trace.read.record_bounds cimport RecordBounds
from fx_trace.read.rows cimport LargeRows, LinkRows
from fx_trace.write.registrations cimport Registrations
from fxframework.kernels.kernel cimport Kernel
from fxframework.kernels.maps cimport PairMap

cdef int ARG_KOID, ARG_NAME_AT, ARG_POINTER, ARG_STRING, ARG_VALUE_AT, BLOB_NAME_AT
cdef int EVENT_ARGS_AT, EVENT_CATEGORY_AT, EVENT_FLOW_END, EVENT_KIND_AT, EVENT_NAME_AT
cdef int EVENT_THREAD_AT, FRAME_COUNT_AT, LARGE_ARGS_AT, LARGE_CATEGORY_AT, LARGE_FORMAT_AT
cdef int LARGE_KIND_AT, LARGE_NAME_AT, LARGE_THREAD_AT, LARGE_WITH_METADATA
cdef int LARGE_WITHOUT_METADATA, LEGACY_INCOMING_AT, LEGACY_OUTGOING_AT, LOG_THREAD_AT
cdef int METADATA_KIND_AT, MODULE_BUILD_ID_LENGTH_AT, MODULE_NAME_LENGTH_AT, OBJECT_ARGS_AT
cdef int OBJECT_NAME_AT, OBJECT_OWNER_AT, PROFILER_BACKTRACE, PROFILER_KIND_AT, PROFILER_MMAP
cdef int PROFILER_MODULE, PROFILER_THREAD_AT, PROVIDER_ID_AT, PROVIDER_INFO
cdef int PROVIDER_NAME_LENGTH_AT, PROVIDER_SECTION, RECORD_BLOB, RECORD_EVENT
cdef int RECORD_INITIALIZATION, RECORD_KERNEL_OBJECT, RECORD_LARGE, RECORD_LOG, RECORD_METADATA
cdef int RECORD_PROFILER, RECORD_SCHEDULING, RECORD_STRING, RECORD_THREAD
cdef int RECORD_USERSPACE_OBJECT, SCHED_KIND_AT, SCHED_LEGACY_SWITCH, SCHED_SWITCH, SCHED_WAKEUP
cdef int STRING_INDEX_AT, STRING_LENGTH_AT, SWITCH_ARGS_AT, THREAD_INDEX_AT, TRACE_INFO
cdef int MAYBE, NAMED, RUNNING
cdef long long LOW32, INLINE, SIGN


cdef class Needs(Kernel):
    cdef const long long[::1] words
    cdef const unsigned char[::1] threads
    cdef const long long[::1] bounds
    cdef unsigned char[::1] mark
    cdef RecordBounds records
    cdef public bint everything, profiles
    cdef public long long max_record
    cdef Registrations registrations
    cdef PairMap identities, clocks, tasks, objects, clock_of
    cdef readonly LargeRows large
    cdef LinkRows links
    cdef long long total, provider, clock, start, end

    @cython.locals(
        pos=cython.longlong, word=cython.longlong, kind=cython.longlong, size=cython.longlong,
        least=cython.longlong, link=cython.longlong,
    )
    cdef long long step(self) except? -1 nogil
    @cython.final
    cdef int record(self, long long kind, long long word) except -1 nogil
    @cython.final
    cdef long long inline_words(self, long long ref) noexcept nogil
    @cython.final
    @cython.locals(at=cython.longlong)
    cdef long long need_string(self, long long ref) noexcept nogil
    @cython.final
    @cython.locals(at=cython.longlong)
    cdef int need_thread(self, long long index) noexcept nogil
    @cython.final
    @cython.locals(row=cython.longlong)
    cdef int refer(self, long long at) except -1 nogil
    @cython.final
    cdef int refer_string(self, long long ref) except -1 nogil
    @cython.final
    @cython.locals(
        word=cython.longlong, name=cython.longlong, kind=cython.longlong, value=cython.longlong
    )
    cdef int refer_args(self, long long at, long long count, long long pid) except -1 nogil
    @cython.final
    @cython.locals(word=cython.longlong, size=cython.longlong, need=cython.longlong)
    cdef long long args_end(self, long long at, long long count) noexcept nogil
    @cython.final
    @cython.locals(found=cython.longlong)
    cdef long long process_of(self, long long index, long long at) noexcept nogil
    @cython.final
    @cython.locals(found=cython.longlong, known=cython.longlong)
    cdef bint is_wanted(self, long long index, long long at) noexcept nogil
    @cython.final
    @cython.locals(now=cython.longlong)
    cdef bint is_within(self, long long at) noexcept nogil
    @cython.final
    cdef int event(self, long long word) except -1 nogil
    @cython.final
    cdef int string_record(self, long long word) except -1 nogil
    @cython.final
    cdef int thread_record(self, long long word) except -1 nogil
    @cython.final
    cdef int metadata(self, long long word) except -1 nogil
    @cython.final
    @cython.locals(clock=cython.longlong)
    cdef int switch(self, long long kind, long long number) except -1 nogil
    @cython.final
    @cython.locals(base=cython.longlong, clock=cython.longlong)
    cdef int initialization(self) except -1 nogil
    @cython.final
    cdef int scheduling(self, long long word) except -1 nogil
    @cython.final
    @cython.locals(owner=cython.longlong, pid=cython.longlong, after=cython.longlong,
                   one=cython.longlong, named=cython.bint)
    cdef int object(self, long long kind, long long word) except -1 nogil
    @cython.final
    @cython.locals(keep=cython.bint)
    cdef int profiler(self, long long word) except -1 nogil
    @cython.final
    @cython.locals(need=cython.longlong)
    cdef bint profiler_fits(self, long long kind, long long word) noexcept nogil
    @cython.final
    @cython.locals(keep=cython.bint, pid=cython.longlong, count=cython.longlong)
    cdef int large_record(self, long long word) except -1 nogil
    @cython.final
    @cython.locals(row=cython.longlong)
    cdef int add_large(self, long long category, long long found) except -1 nogil
