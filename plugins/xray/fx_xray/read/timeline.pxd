cimport cython
from fx_xray.read.scan cimport Bytes
from fxframework.kernels.kernel cimport Kernel
from fxframework.kernels.rows cimport Rows

cdef int ARGUMENT, BACK, CUSTOM, ENTER, ENTER_ARG, TYPED
cdef int CALL_ARGUMENT, CUSTOM_EVENT, NEW_CPU, TSC_WRAP, TYPED_EVENT
cdef int CUT, FIRST, NO_CPU, NOTHING, FEW, GO_ON, PAUSE, DONE, NEARBY
cdef long long LATEST, LOW32, SIGN


@cython.final
cdef class EventBuffer(Rows):
    cdef public unsigned char[::1] kind
    cdef public unsigned int[::1] function
    cdef public long long[::1] tsc, offset, value
    cdef public unsigned short[::1] cpu
    cdef public int[::1] thread, size


@cython.final
cdef class Stretches:
    cdef readonly const long long[::1] start, stop, base, first, last
    cdef readonly const unsigned char[::1] flags


@cython.final
cdef class Threads:
    cdef long long[::1] head, heap
    cdef long long used, bound

    @cython.locals(other=cython.longlong)
    cdef long long choose(self) noexcept nogil
    @cython.locals(
        best=cython.longlong, second=cython.longlong, place=cython.longlong,
        other=cython.longlong, at=cython.longlong, head=cython.longlong, less=cython.bint,
        between=cython.bint,
    )
    cdef long long choose_of_few(self) noexcept nogil
    cdef bint before(self, long long left, long long right) noexcept nogil
    cdef void advance(self) noexcept nogil
    @cython.locals(
        place=cython.longlong, thread=cython.longlong, child=cython.longlong,
        below=cython.longlong,
    )
    cdef void sift(self) noexcept nogil
    @cython.locals(
        used=cython.longlong, at=cython.longlong, thread=cython.longlong, to=cython.longlong
    )
    cdef void drop(self, long long place) noexcept nogil


cdef class FdrTimeline(Kernel):
    cdef Bytes bytes
    cdef const unsigned char[::1] data
    cdef Stretches stretches
    cdef readonly EventBuffer events
    cdef Threads threads
    cdef int version
    cdef long long most
    cdef long long[::1] next_of, at_of, stop_of, base_of, function_of, latest_of
    cdef int[::1] cpu_of
    cdef long long thread

    @cython.locals(place=cython.longlong)
    cdef long long step(self) except? -1 nogil
    @cython.final
    @cython.locals(
        count=cython.longlong, most=cython.longlong, used=cython.longlong, thread=cython.longlong,
        time=cython.longlong, place=cython.longlong, other=cython.longlong, head=cython.longlong,
        at=cython.longlong, stop=cython.longlong, word=cython.longlong, kind=cython.int,
        following=cython.longlong, function=cython.longlong,
    )
    cdef void merge(self) noexcept nogil
    @cython.final
    @cython.locals(thread=cython.longlong, state=cython.int, at=cython.longlong)
    cdef int take(self) noexcept nogil
    @cython.final
    cdef int pause(self, long long head) noexcept nogil
    @cython.final
    @cython.locals(thread=cython.longlong)
    cdef void leave_call(self) noexcept nogil
    @cython.final
    @cython.locals(
        thread=cython.longlong, place=cython.longlong, flags=cython.int, at=cython.longlong,
        stop=cython.longlong,
    )
    cdef int next_stretch(self) noexcept nogil
    @cython.final
    @cython.locals(low=cython.ulonglong, byte=cython.ulonglong)
    cdef inline long long word(self, long long at) noexcept nogil
    @cython.final
    @cython.locals(
        thread=cython.longlong, stop=cython.longlong, base=cython.longlong,
        function=cython.longlong, cpu=cython.int, bound=cython.longlong, count=cython.longlong,
        most=cython.longlong, state=cython.int, word=cython.longlong, time=cython.longlong,
        kind=cython.int,
    )
    cdef int calls(self, long long at) noexcept nogil
    @cython.final
    @cython.locals(thread=cython.longlong, kind=cython.int)
    cdef int metadata(self, long long at) noexcept nogil
    @cython.final
    @cython.locals(
        thread=cython.longlong, count=cython.longlong, base=cython.longlong,
        function=cython.longlong,
    )
    cdef int argument(self, long long at) noexcept nogil
    @cython.final
    @cython.locals(
        thread=cython.longlong, size=cython.longlong, cpu=cython.int, what=cython.int,
        base=cython.longlong, time=cython.longlong, order=cython.longlong, count=cython.longlong,
    )
    cdef int event(self, long long at, int kind) noexcept nogil


cdef class BasicTimeline(Kernel):
    cdef Bytes bytes
    cdef const unsigned char[::1] data
    cdef Stretches stretches
    cdef readonly EventBuffer events
    cdef Threads threads
    cdef long long[::1] next_of, at_of, stop_of, base_of, function_of
    cdef int[::1] cpu_of
    cdef long long thread, next, at, stop, base, function
    cdef int cpu

    @cython.locals(place=cython.longlong)
    cdef long long step(self) except? -1 nogil
    @cython.locals(thread=cython.longlong, state=cython.int)
    @cython.final
    cdef int take(self) noexcept nogil
    cdef int pause(self, long long head) noexcept nogil
    @cython.final
    cdef int next_stretch(self) noexcept nogil
    @cython.locals(at=cython.longlong, time=cython.longlong, kind=cython.int)
    @cython.final
    cdef int call(self) noexcept nogil
    @cython.locals(value=cython.longlong)
    @cython.final
    cdef int argument(self) noexcept nogil
    @cython.locals(count=cython.longlong)
    @cython.final
    cdef void put(self, int kind, long long value, int size) noexcept nogil
