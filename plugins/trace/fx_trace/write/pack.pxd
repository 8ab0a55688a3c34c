cimport cython
from fxframework.kernels.kernel cimport Kernel

cdef int ARG_BLOB, ARG_BOOL, ARG_DOUBLE, ARG_INT32, ARG_INT64, ARG_KOID, ARG_NAME_AT, ARG_POINTER
cdef int ARG_STRING, ARG_UINT32, ARG_UINT64, ARG_VALUE_AT, EVENT_ARGS_AT, EVENT_CATEGORY_AT
cdef int EVENT_DURATION_BEGIN, EVENT_DURATION_COMPLETE, EVENT_DURATION_END, EVENT_FLOW_END
cdef int EVENT_INSTANT, EVENT_KIND_AT, EVENT_NAME_AT, EVENT_THREAD_AT, LEGACY_INCOMING_AT
cdef int LEGACY_OUTGOING_AT, LOG_LENGTH_AT, LOG_THREAD_AT, RECORD_EVENT, RECORD_LOG
cdef int RECORD_SCHEDULING, SCHED_KIND_AT, SCHED_SWITCH, SCHED_WAKEUP, SIZE_AT, SWITCH_ARGS_AT
cdef int ALONE, APART, ARGUMENTS, D_ARGUMENTS, D_TOO_LARGE, D_UNKNOWN, LEGACY_SWITCH, LOG, PAIRED
cdef int RECORD_WORDS, SWITCH
cdef long long OPEN_END, LOW32, INLINE, HALF, LEAST_INT32, MOST_INT32
cdef unsigned long long LOW64
cdef int NEGATIVE_BYTE


cdef class CountUses(Kernel):
    cdef long long count, args, codes
    cdef bint natural
    cdef const unsigned char[::1] kind, arg_type
    cdef const int[::1] category, name, thread
    cdef const long long[::1] order, arg_name, arg_text
    cdef long long[::1] strings, threads

    @cython.locals(
        place=cython.longlong, item=cython.longlong, kind=cython.int, row=cython.longlong, text=cython.longlong
    )
    cdef long long step(self) except? -1 nogil
    @cython.final
    cdef bint use(self, long long code) noexcept nogil


cdef class Unfold(Kernel):
    cdef const long long[::1] order, time, dur, parent
    cdef const int[::1] thread
    cdef bint natural
    cdef unsigned char[::1] form
    cdef long long count, threads, made
    cdef long long[::1] link, top
    cdef readonly long long[::1] events

    @cython.locals(
        row=cython.longlong, place=cython.longlong, thread=cython.longlong,
        open_slice=cython.longlong,
    )
    cdef long long step(self) except? -1 nogil
    @cython.final
    cdef int set_apart(self, long long outer) noexcept nogil
    @cython.final
    @cython.locals(
        outer=cython.longlong, thread=cython.longlong, open_slice=cython.longlong
    )
    cdef int begin(self, long long row) noexcept nogil
    @cython.final
    cdef int put(self, long long event) noexcept nogil


cdef class Pack(Kernel):
    cdef const unsigned char[::1] kind, arg_type, message
    cdef const long long[::1] time, word
    cdef const int[::1] thread, category, name
    cdef const long long[::1] arg_item, arg_name, arg_whole, arg_real, arg_text
    cdef const long long[::1] bits, prev, next, starts_of_rows, lengths_of_rows
    cdef const long long[::1] strings, words, starts, lengths, threads, pids, tids
    cdef const long long[::1] order, first
    cdef long long[::1] out
    cdef readonly long long[::1] dropped
    cdef public long long shift
    cdef readonly long long done, count
    cdef long long args, most, arg, at, start, head, counts, last
    cdef bint natural, has_last

    @cython.locals(item=cython.longlong)
    cdef long long step(self) except? -1 nogil
    @cython.final
    @cython.locals(
        kind=cython.longlong, now=cython.longlong, count=cython.longlong, size=cython.longlong,
        ends=cython.bint,
    )
    cdef int record(self, long long item) noexcept nogil
    @cython.final
    @cython.locals(index=cython.longlong)
    cdef long long put_thread(self, long long thread) noexcept nogil
    @cython.final
    @cython.locals(source=cython.longlong, end=cython.longlong, rest=cython.longlong)
    cdef int put_string(self, long long code, long long nbytes) noexcept nogil
    @cython.final
    cdef int put_inline(self, long long code, long long ref) noexcept nogil
    @cython.final
    @cython.locals(
        category=cython.longlong, name=cython.longlong, word=cython.longlong,
        index=cython.longlong, signed=cython.longlong,
    )
    cdef int event(self, long long item, long long kind, long long now) noexcept nogil
    @cython.final
    @cython.locals(
        row=cython.longlong, length=cython.longlong, index=cython.longlong,
        source=cython.longlong, first=cython.longlong, word=cython.longlong,
        place=cython.longlong, byte=cython.longlong,
    )
    cdef int log(self, long long item) noexcept nogil
    @cython.final
    @cython.locals(
        outgoing=cython.longlong, incoming=cython.longlong, number=cython.longlong
    )
    cdef int scheduling(self, long long kind, long long row) noexcept nogil
    @cython.final
    @cython.locals(count=cython.longlong, row=cython.longlong)
    cdef long long arguments(self, long long item) noexcept nogil
    @cython.final
    @cython.locals(
        type=cython.longlong, name=cython.longlong, whole=cython.longlong,
        code=cython.longlong, text=cython.longlong, size=cython.longlong,
        head=cython.longlong, value=cython.longlong,
    )
    cdef int argument(self, long long row) noexcept nogil
    @cython.final
    cdef long long inline_words(self, long long ref) noexcept nogil
