cimport cython
from fxframework.kernels.kernel cimport Kernel
from fxframework.kernels.notes cimport Notes
from fxframework.kernels.rows cimport Rows

cdef int BAD_FUNCTION, BAD_KIND, BAD_SIZE, BAD_TYPE, BASIC_ORPHAN, BASIC_TAIL_EXIT
cdef int BAD_WALL_TIME, CUT_RECORD, EMPTY_EVENT, EXTENTS_OVERLAP, SECOND_IN_MICROS
cdef int END_RECORD, ENDS_IN_PREAMBLE, EXTENTS_PAST_FILE, GARBAGE
cdef int LOST_TAIL, NEWER_RECORD, NO_END_RECORD, NO_EXTENTS, NO_THREAD, NO_TIME
cdef int ORPHAN_ARGUMENT, OUT_OF_ORDER, PARTIAL_RECORD, PAST_BUFFER, PAST_FILE
cdef int RECORD_TOO_LARGE, STALE_SPACE, TIME_JUMP, UNKNOWN_METADATA
cdef int BUFFER_EXTENTS, CALL_ARGUMENT, CUSTOM_EVENT, DAMAGED, END_OF_BUFFER, FUNCTION
cdef int NEW_BUFFER, NEW_CPU, PADDING, PID, START, TSC_WRAP, TYPED_EVENT, UNKNOWN, WALL_TIME
cdef int ENTER, ENTER_ARG, TAIL_EXIT
cdef int CUT, ORPHAN
cdef int CUT_SHORT, EARLY, FOREIGN_TYPED, HAS_PID, HAS_THREAD, INHABITED, SETTLED, TIMELESS, WALLED
cdef int BIG, LITTLE, HEADER_BYTES, BASIC_BYTES, GARBAGE_RUN, REACH
cdef long long LATEST, SIGN, LOW32, FAR, ONE


@cython.final
cdef class Bytes:
    cdef const unsigned char[::1] data
    cdef readonly long long size
    cdef bint big

    @cython.locals(low=cython.ulonglong, byte=cython.ulonglong)
    cdef inline long long word(self, long long at) noexcept nogil
    @cython.locals(value=cython.ulonglong, index=cython.longlong, place=cython.longlong)
    cdef inline long long number(self, long long at, int nbytes) noexcept nogil
    @cython.locals(value=cython.longlong)
    cdef inline long long signed32(self, long long at) noexcept nogil


@cython.final
cdef class Stretches(Rows):
    cdef public long long[::1] start, stop, block, tsc
    cdef public unsigned char[::1] flags

    @cython.locals(row=cython.longlong)
    cdef int add(
        self, long long start, long long stop, long long block, int flags, long long tsc
    ) except -1 nogil


@cython.final
cdef class Blocks(Rows):
    cdef public long long[::1] start, stop, seconds, micros, tsc, records
    cdef public int[::1] pid, tid, flags

    @cython.locals(row=cython.longlong)
    cdef int add(self, long long at, long long record) except -1 nogil


cdef class FdrScan(Kernel):
    cdef Bytes bytes
    cdef const unsigned char[::1] data
    cdef readonly Notes notes
    cdef readonly Stretches stretches
    cdef readonly Blocks blocks
    cdef readonly long long[::1] kinds
    cdef int version, order
    cdef long long most, size
    cdef public long long until
    cdef readonly long long at, record, entries, cuts
    cdef long long limit, page, last_offset, base, open, block, typed
    cdef int last, garbage
    cdef bint bounded, by_extents, timed, called, mend

    @cython.locals(first=cython.int, metadata=cython.int, end=cython.longlong, lost=cython.bint)
    cdef long long step(self) except? -1 nogil

    @cython.final
    cdef bint begins(self, long long at, int kind) noexcept nogil
    @cython.locals(left=cython.longlong, nbytes=cython.longlong)
    @cython.final
    cdef bint sound_extents(self, long long at) noexcept nogil
    @cython.locals(start=cython.longlong, behind=cython.longlong)
    @cython.final
    cdef long long next_extents(self, long long at) noexcept nogil
    @cython.locals(end=cython.longlong)
    @cython.final
    cdef int skip_garbage(self) except -1 nogil
    cdef void unbind(self) noexcept nogil
    @cython.locals(left=cython.longlong)
    @cython.final
    cdef void turn_page(self, long long at) noexcept nogil
    cdef int pass_limit(self) except -1 nogil
    @cython.locals(code=cython.int)
    @cython.final
    cdef int cross(self, long long end) except -1 nogil
    @cython.locals(
        follows=cython.bint, boundary=cython.longlong, used=cython.longlong,
        with_space=cython.longlong,
    )
    @cython.final
    cdef long long buffer_end(self, long long end) except? -1 nogil
    @cython.locals(every=cython.int, at=cython.longlong, place=cython.longlong)
    @cython.final
    cdef int skip_space(self, long long end) except -1 nogil

    @cython.final
    cdef int end_stretch(self, long long at) except -1 nogil
    cdef int lose(self, int code, long long at, long long end, long long value) except -1 nogil
    @cython.final
    cdef int unsound(self, int code, long long end, long long value, int kind) except -1 nogil
    @cython.locals(flags=cython.longlong)
    @cython.final
    cdef int close_block(self, long long at) except -1 nogil
    cdef void leave_block(self, long long at) noexcept nogil
    @cython.final
    cdef int open_block(self) except -1 nogil
    @cython.locals(last=cython.int)
    @cython.final
    cdef bint may_follow(self, int kind) noexcept nogil
    cdef int follow(self, int kind) except -1 nogil
    @cython.locals(flags=cython.longlong)
    @cython.final
    cdef int settle(self) except -1 nogil

    @cython.final
    cdef int advance(self, long long delta) except -1 nogil
    @cython.locals(
        word=cython.longlong, sound=cython.bint, bits=cython.int, mask=cython.longlong,
        low=cython.longlong, ahead=cython.longlong,
    )
    @cython.final
    cdef long long cut_time(self, int kind) noexcept nogil
    @cython.locals(
        nbytes=cython.int, time=cython.longlong, flags=cython.longlong, far=cython.longlong,
        mended=cython.longlong, apart=cython.longlong,
    )
    @cython.final
    cdef int take_clock(self, int kind, long long tsc) except -1 nogil

    @cython.locals(word=cython.longlong, delta=cython.longlong)
    @cython.final
    cdef int function(self) except -1 nogil
    @cython.locals(
        at=cython.longlong, base=cython.longlong, exits=cython.longlong, stop=cython.longlong,
        word=cython.longlong, count=cython.longlong,
    )
    @cython.final
    cdef void functions(self) noexcept nogil
    @cython.locals(
        nbytes=cython.int, block=cython.longlong, flags=cython.longlong, micros=cython.longlong
    )
    @cython.final
    cdef int metadata(self, int kind) except -1 nogil
    cdef int new_buffer(self) except -1 nogil
    @cython.final
    cdef int overlap(self) except -1 nogil
    @cython.locals(left=cython.longlong, nbytes=cython.longlong, over=cython.longlong)
    @cython.final
    cdef int extents(self) except -1 nogil
    @cython.locals(end=cython.longlong)
    @cython.final
    cdef int end_of_buffer(self) except -1 nogil
    cdef int argument(self) except -1 nogil
    @cython.locals(size=cython.longlong, end=cython.longlong)
    @cython.final
    cdef int event(self, int kind) except -1 nogil


cdef class BasicScan(Kernel):
    cdef Bytes bytes
    cdef const unsigned char[::1] data
    cdef readonly Notes notes
    cdef readonly Stretches stretches
    cdef readonly long long[::1] kinds
    cdef int version
    cdef long long size
    cdef public long long until
    cdef readonly long long at, record, entries
    cdef bint called
    cdef long long called_id, open, run_id
    cdef int run_flags

    cdef long long step(self) except? -1 nogil
    @cython.final
    cdef int end_run(self, long long at) except -1 nogil
    cdef int unsound(self, int code, long long value) except -1 nogil
    @cython.locals(
        at=cython.longlong, type=cython.longlong, kind=cython.int, function=cython.longlong,
        place=cython.longlong, run=cython.longlong, flags=cython.int,
    )
    @cython.final
    cdef int next_record(self) except -1 nogil
