cimport cython
from fxframework.kernels.kernel cimport Kernel

cdef int ARGUMENT, CUSTOM, ENTER_ARG, EXIT, NO_CPU, NOTHING, TAIL_EXIT, TYPED
cdef int DONE, GROW, FLUSH, HEADROOM, REACH
cdef int NEW_BUFFER, END_OF_BUFFER, NEW_CPU, TSC_WRAP, WALL_TIME, CUSTOM_EVENT, CALL_ARGUMENT
cdef int EXTENTS, TYPED_EVENT, PID
cdef int D_FUNCTION, D_ARGUMENT, D_TYPED, D_CUSTOM, D_LARGE
cdef int D_EVENT_CPU, D_NO_CPU, D_CPU, D_TAIL_EXIT, D_MANY
cdef long long LOW32, LOW40, LOW48, LOW56, SIGN, LATEST, FAR, MAX_FUNCTION, MAX_BASIC_FUNCTION


@cython.final
cdef class EventColumns:
    cdef const unsigned char[::1] kind, payloads
    cdef const unsigned int[::1] function
    cdef const long long[::1] tsc, value
    cdef const unsigned short[::1] cpu
    cdef const int[::1] thread, size
    cdef readonly long long count


@cython.final
cdef class ThreadBuffers:
    cdef const long long[::1] process, number
    cdef readonly long long[::1] start, room, fill, base, cpu, call, wall, rank
    cdef readonly unsigned char[::1] skewed


cdef class FdrPack(Kernel):
    cdef int version
    cdef long long size, limit, head, preamble, wrap
    cdef public ThreadBuffers buffers
    cdef public EventColumns events
    cdef public unsigned char[::1] arena, out
    cdef public unsigned int[::1] words
    cdef public long long[::1] places, walls
    cdef readonly long long[::1] counts
    cdef public long long row, written, made
    cdef readonly long long needed, thread
    cdef long long ranks

    @cython.locals(why=cython.int)
    cdef long long step(self) except? -1 nogil
    @cython.locals(index=cython.int)
    @cython.final
    cdef void put_metadata(self, long long at, int first, long long low, long long high) noexcept nogil
    @cython.locals(index=cython.int)
    @cython.final
    cdef void put_function(self, long long at, long long word, long long delta) noexcept nogil
    @cython.final
    cdef void put_cpu(self, long long at, long long cpu, long long tsc) noexcept nogil
    @cython.locals(at=cython.longlong)
    @cython.final
    cdef void begin_buffer(self, long long thread, long long cpu, long long tsc) noexcept nogil
    @cython.locals(
        start=cython.longlong, at=cython.longlong, nbytes=cython.longlong, index=cython.longlong,
        odd=cython.longlong,
    )
    @cython.final
    cdef bint end_buffer(self, long long thread, long long fill) noexcept nogil
    @cython.locals(
        call=cython.longlong, begin=cython.longlong, held=cython.longlong,
        source=cython.longlong, target=cython.longlong, word=cython.longlong,
        high=cython.longlong, index=cython.longlong,
    )
    @cython.final
    cdef int carry_call(self, long long thread) noexcept nogil
    @cython.locals(
        row=cython.longlong, kind=cython.int, thread=cython.longlong,
        nbytes=cython.longlong, fill=cython.longlong, tsc=cython.longlong, cpu=cython.longlong,
        absolute=cython.bint, no_cpu=cython.bint, base=cython.longlong, near=cython.bint,
        own=cython.bint, moved=cython.bint, wraps=cython.bint, clocked=cython.bint,
        ends=cython.bint,
    )
    @cython.final
    cdef int event(self) noexcept nogil
    @cython.locals(
        time=cython.longlong, before=cython.longlong, apart=cython.longlong, half=cython.longlong,
        mask=cython.longlong, ahead=cython.longlong, sound=cython.bint,
    )
    @cython.final
    cdef bint looks_cut(self, long long base, long long tsc, bint moved) noexcept nogil
    @cython.locals(why=cython.int, nbytes=cython.longlong)
    @cython.final
    cdef long long needs(self, long long row, int kind, long long thread) noexcept nogil
    @cython.locals(
        fill=cython.longlong, at=cython.longlong, cpu=cython.longlong,
        base=cython.longlong, rest=cython.longlong, first=cython.longlong, row=cython.longlong,
        bound=cython.longlong, index=cython.longlong, kind=cython.int, tsc=cython.longlong,
        function=cython.longlong,
    )
    @cython.final
    cdef long long calls(self, long long thread) noexcept nogil
    @cython.locals(
        fill=cython.longlong, at=cython.longlong, tsc=cython.longlong,
        call=cython.longlong, word=cython.longlong,
    )
    @cython.final
    cdef void put_event(
        self, long long row, int kind, long long thread, long long cpu, bint no_cpu
    ) noexcept nogil
    @cython.locals(
        at=cython.longlong, tsc=cython.longlong, low=cython.longlong,
        high=cython.longlong, begin=cython.longlong, size=cython.longlong, index=cython.longlong,
    )
    @cython.final
    cdef void put_payload(
        self, long long row, int kind, long long thread, long long cpu, bint no_cpu
    ) noexcept nogil


cdef class BasicPack(Kernel):
    cdef int version
    cdef public unsigned int[::1] out
    cdef public const long long[::1] processes, numbers
    cdef public EventColumns events
    cdef readonly long long[::1] counts
    cdef public long long row, written
    cdef long long last_thread

    @cython.locals(kind=cython.int)
    cdef long long step(self) except? -1 nogil
    @cython.locals(
        row=cython.longlong, thread=cython.longlong, value=cython.longlong, at=cython.longlong
    )
    @cython.final
    cdef void argument(self) noexcept nogil
    @cython.locals(
        row=cython.longlong, thread=cython.longlong, function=cython.longlong, cpu=cython.int,
        tsc=cython.longlong, at=cython.longlong,
    )
    @cython.final
    cdef void call(self, int kind) noexcept nogil
