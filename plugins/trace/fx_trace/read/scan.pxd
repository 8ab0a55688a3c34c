cimport cython
from libc.stdint cimport int64_t
from fx_trace.read.other_records cimport OtherRecords
from fxframework.kernels.maps cimport PairMap
from fxframework.kernels.notes cimport Notes
from fxframework.kernels.pools cimport Pool

cdef int ARGUMENT_LEFT_OVER, ARG_BLOB, ARG_BOOL, ARG_DOUBLE, ARG_INT32, ARG_INT64, ARG_KOID
cdef int ARG_NAME_AT, ARG_POINTER, ARG_STRING, ARG_UINT32, ARG_VALUE_AT, CONTENTS_OVERRUN
cdef int COUNTER_NOT_NUMERIC, EVENT_ARGS_AT, EVENT_ASYNC_BEGIN, EVENT_ASYNC_END
cdef int EVENT_ASYNC_INSTANT, EVENT_CATEGORY_AT, EVENT_COUNTER, EVENT_DURATION_BEGIN
cdef int EVENT_DURATION_COMPLETE, EVENT_DURATION_END, EVENT_FLOW_END, EVENT_INSTANT
cdef int EVENT_KIND_AT, EVENT_NAME_AT, EVENT_THREAD_AT, NOT_UTF8, PADDING_NOT_ZERO, PAST_THE_END
cdef int RECORD_BLOB, RECORD_EVENT, RECORD_INITIALIZATION, RECORD_KERNEL_OBJECT, RECORD_LOG
cdef int RECORD_METADATA, RECORD_OVER_LIMIT, RECORD_PROFILER, RECORD_SCHEDULING, RECORD_STRING
cdef int RECORD_THREAD, RECORD_USERSPACE_OBJECT, RESERVED_BITS, SCHED_SWITCH, SCHED_WAKEUP
cdef int SIZE_ZERO, TABLE_COUNTERS, TABLE_FLOWS, TABLE_INSTANTS, TABLE_SLICES, TOO_SHORT
cdef int UNKNOWN_ARGUMENT, UNKNOWN_KIND, UNKNOWN_RECORD, UNKNOWN_SCOPE, ZERO_WORDS
cdef long long LOW32, NAMED_INLINE, VALUE_INLINE, HIGH_HALF, PLAIN_MASK, SIGN, ONE
cdef int KIND_PADDING, KIND_UNKNOWN, KIND_DAMAGED, KINDS, INLINE, ENTRY, NO_SCOPE, MANY_ARGS
cdef int SECOND_WORD, VALUE_BITS, TEXT_BITS, ODD_BITS


cdef class Scan(OtherRecords):
    cdef public long long limit, most, max_record
    cdef readonly long long pos
    cdef readonly bint full, pointers, koids
    cdef readonly long long slices, ends, instants, flows, counter_rows, arg_rows, end_args
    cdef readonly long long types_seen
    cdef readonly long long[::1] kinds
    cdef long long[::1] plain_types
    cdef PairMap object_names
    cdef long long incoming_weight, outgoing_weight, weight, process_name

    cpdef jump(self, long long pos, long long total)
    @cython.locals(word=cython.longlong)
    cdef long long step(self) except? -1 nogil
    @cython.final
    @cython.locals(
        generation=cython.longlong, thread=cython.longlong, category=cython.longlong,
        name=cython.longlong, value=cython.longlong, last=cython.longlong,
        parent=cython.longlong, table=cython.longlong, row=cython.longlong,
        ticks=cython.longlong,
    )
    cdef bint plain_event(self, long long word) noexcept nogil
    @cython.final
    @cython.locals(
        generation=cython.longlong, row=cython.longlong, odd=cython.longlong,
        types=cython.longlong, count=cython.longlong, head=cython.longlong,
        kind=cython.longlong, second=cython.longlong, name=cython.longlong,
        text=cython.longlong, text_bits=cython.longlong, wide=cython.longlong,
        value=cython.longlong, size=cython.longlong,
    )
    cdef bint plain_arguments(
        self, long long at, long long end, long long nargs, long long table, long long parent
    ) noexcept nogil
    @cython.final
    @cython.locals(
        start=cython.longlong, kind=cython.longlong, size=cython.longlong,
        least=cython.longlong, code=cython.longlong,
    )
    cdef int read_record(self, long long word) except -1 nogil
    @cython.final
    @cython.locals(reserved=cython.longlong, unpadded=cython.longlong, need=cython.longlong)
    cdef int64_t sound_record(self, long long kind, long long word) except -1 nogil
    @cython.final
    cdef int contents(self, long long kind, long long word) except -1 nogil
    @cython.final
    @cython.locals(
        row=cython.longlong, value=cython.longlong, after=cython.longlong, known=cython.bint,
        has_word=cython.bint, thread_at=cython.longlong, category_at=cython.longlong,
        thread=cython.longlong, category=cython.longlong, name=cython.longlong,
        ticks=cython.longlong,
    )
    cdef int event(self, long long word) except -1 nogil
    @cython.final
    cdef int count_event(self, long long kind) noexcept nogil
    @cython.final
    @cython.locals(row=cython.longlong, value=cython.longlong)
    cdef int annotate(self, long long kind) except -1 nogil
    @cython.final
    @cython.locals(
        count=cython.longlong, word=cython.longlong, here=cython.longlong, end=cython.longlong,
        row=cython.longlong, type=cython.longlong, name_ref=cython.longlong,
        name=cython.longlong, at=cython.longlong, value=cython.longlong, high=cython.longlong,
        after=cython.longlong, ref=cython.longlong, length=cython.longlong,
    )
    cdef int arguments(self, long long kind, long long reserved, long long unpadded) except -1 nogil
    @cython.final
    cdef int relate(
        self, long long kind, long long row, long long type, long long name, long long value
    ) except -1 nogil
    @cython.final
    @cython.locals(name=cython.longlong, at=cython.longlong)
    cdef int refer(self, long long row, long long owner, long long value) except -1 nogil
    @cython.final
    @cython.locals(at=cython.longlong)
    cdef int counter_value(self, long long row, long long type) except -1 nogil
    @cython.final
    @cython.locals(row=cython.longlong)
    cdef int priority(self, long long name, long long value) except -1 nogil
