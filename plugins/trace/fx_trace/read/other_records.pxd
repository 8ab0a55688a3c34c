cimport cython
from libc.stdint cimport int64_t
from fx_trace.read.fields cimport FieldReader

cdef int ARG_KOID, ARG_POINTER, BACKTRACE_FLAGS_AT, BLOB_KIND_AT, BLOB_LENGTH_AT, BLOB_NAME_AT
cdef int BLOB_DATA, BLOB_PERFETTO, BUFFER_FULL, INVALID_STATE, MAGIC_AT, OTHER_MAGIC
cdef int PROVIDER_NOT_INTRODUCED, STATE_DEAD, STATE_RUNNING, UNKNOWN_BLOB_TYPE
cdef long long MAGIC
cdef int FRAME_COUNT_AT, INDEX_ZERO, LARGE_ARGS_AT, LARGE_CATEGORY_AT
cdef int LARGE_FORMAT_AT, LARGE_KIND_AT, LARGE_NAME_AT, LARGE_THREAD_AT, LARGE_WITHOUT_METADATA
cdef int LARGE_WITH_METADATA, LEGACY_CPU_AT, LEGACY_INCOMING_AT, LEGACY_INCOMING_PRIORITY_AT
cdef int LEGACY_OUTGOING_AT, LEGACY_OUTGOING_PRIORITY_AT, LEGACY_STATE_AT, LOG_LENGTH_AT
cdef int LOG_THREAD_AT, METADATA_KIND_AT, MMAP_FLAGS_AT, MODULE_BUILD_ID_LENGTH_AT, MODULE_ID_AT
cdef int MODULE_NAME_LENGTH_AT, NOT_UTF8, OBJECT_ARGS_AT, OBJECT_NAME_AT, OBJECT_NOT_UTF8
cdef int OBJECT_OWNER_AT, ONE_WORD_THREAD, PROFILER_BACKTRACE, PROFILER_KIND_AT, PROFILER_MMAP
cdef int PROFILER_MODULE, PROFILER_THREAD_AT, PROVIDER_EVENT, PROVIDER_EVENT_AT, PROVIDER_ID_AT
cdef int PROVIDER_INFO, PROVIDER_NAME_LENGTH_AT, PROVIDER_SECTION, RECORD_KERNEL_OBJECT
cdef int SCHED_KIND_AT, SCHED_LEGACY_SWITCH, SCHED_SWITCH, SCHED_WAKEUP, STRING_INDEX_AT
cdef int STRING_LENGTH_AT, SWITCH_ARGS_AT, SWITCH_CPU_AT, SWITCH_STATE_AT, TABLE_BLOBS
cdef int TABLE_OBJECTS, TABLE_SCHED, THREAD_INDEX_AT, TRACE_INFO, TRACE_INFO_KIND_AT
cdef int TWO_WORD_PROCESS, UNKNOWN_KIND
cdef long long UNUSED_BLOB, UNUSED_INITIALIZATION, UNUSED_LARGE, UNUSED_LARGE_WITH
cdef long long UNUSED_LARGE_WITHOUT, UNUSED_LOG, UNUSED_MMAP, UNUSED_MODULE, UNUSED_OBJECT
cdef long long UNUSED_PROVIDER_EVENT, UNUSED_PROVIDER_INFO, UNUSED_PROVIDER_SECTION
cdef long long UNUSED_STRING, UNUSED_SWITCH, UNUSED_THREAD, UNUSED_TRACE_INFO, UNUSED_WAKEUP
cdef long long LOW32


cdef class OtherRecords(FieldReader):
    @cython.final
    cdef int metadata(self, long long word) except -1 nogil
    @cython.final
    @cython.locals(provider=cython.longlong)
    cdef int provider_event(self, long long number, long long event) except -1 nogil
    @cython.final
    cdef int initialization(self, long long word) except -1 nogil
    @cython.final
    cdef int string_record(self, long long word) except -1 nogil
    @cython.final
    cdef int thread_record(self, long long word) except -1 nogil
    @cython.final
    @cython.locals(row=cython.longlong, after=cython.longlong)
    cdef int scheduling(self, long long word) except -1 nogil
    @cython.final
    @cython.locals(row=cython.longlong)
    cdef int64_t legacy_switch(self, long long word) except? -2 nogil
    @cython.final
    @cython.locals(row=cython.longlong)
    cdef int64_t switch(self, long long word, long long kind) except? -2 nogil
    @cython.final
    cdef int state(self, long long row, long long state, int may_run) except -1 nogil
    @cython.final
    @cython.locals(row=cython.longlong)
    cdef int log(self, long long word) except -1 nogil
    @cython.final
    cdef int blob(self, long long word) except -1 nogil
    @cython.final
    @cython.locals(row=cython.longlong)
    cdef int add_blob(
        self, long long kind, long long name, long long start, long long length
    ) except -1 nogil
    @cython.final
    @cython.locals(inline=cython.longlong, after=cython.longlong, pid=cython.longlong)
    cdef int userspace_object(self, long long word) except -1 nogil
    @cython.final
    cdef int kernel_object(self, long long word) except -1 nogil
    @cython.final
    @cython.locals(row=cython.longlong)
    cdef int add_object(
        self, long long kind, long long type, long long pid, long long name
    ) except -1 nogil
    @cython.final
    @cython.locals(
        row=cython.longlong, inline=cython.longlong, more=cython.longlong,
        name_words=cython.longlong, one_word=cython.bint,
    )
    cdef int profiler_record(self, long long word) except -1 nogil
    @cython.final
    cdef int profiler_row(
        self, long long row, long long kind, long long word, long long at
    ) except -1 nogil
    @cython.final
    @cython.locals(nargs=cython.longlong, unused=cython.longlong)
    cdef int large(self, long long word) except -1 nogil
