cimport cython
from fx_xray.read.timeline cimport EventBuffer
from fxframework.kernels.kernel cimport Kernel
from fxframework.kernels.maps cimport CountMap
from fxframework.kernels.notes cimport Notes
from fxframework.kernels.rows cimport Rows
from libc.stdint cimport int64_t

cdef int ARGUMENT, BACK, DATA, ENTER, ENTER_ARG, EVENT_TYPE, EXIT, NOTHING, TAIL_EXIT, TYPED
cdef int UNWOUND, TIME_BACK, TOO_DEEP, UNMATCHED_EXIT, UNWOUND_CALL, DEEP
cdef long long LATEST, SIGN


@cython.final
cdef class OpenCalls(Rows):
    cdef readonly long long[::1] top, depth, shallow
    cdef CountMap deep
    cdef long long free
    cdef bint adopted
    cdef public long long[::1] row, tsc, offset, below
    cdef public unsigned int[::1] function

    cpdef adopt(self, Slices slices)
    cdef inline long long row_of(self, long long node) noexcept nogil
    @cython.locals(node=cython.longlong, top=cython.longlong, depth=cython.longlong)
    cdef int push(
        self, long long thread, long long function, long long row, long long tsc, long long offset
    ) except -1 nogil
    @cython.locals(node=cython.longlong, depth=cython.longlong, function=cython.longlong)
    cdef int pop(self, long long thread) except -1 nogil
    @cython.locals(node=cython.longlong)
    cdef long long find(self, long long thread, long long function) noexcept nogil
    @cython.locals(count=cython.longlong, thread=cython.longlong, node=cython.longlong)
    cpdef int64_t list_offsets(self, long long[::1] out) noexcept nogil


@cython.final
cdef class Slices(Rows):
    cdef public long long[::1] offset, ticks, parent
    cdef public int[::1] thread, depth
    cdef public unsigned int[::1] function
    cdef public unsigned short[::1] cpu
    cdef public unsigned char[::1] entry


@cython.final
cdef class Instants(Rows):
    cdef public long long[::1] offset, ticks
    cdef public int[::1] thread
    cdef public unsigned char[::1] kind
    cdef public unsigned int[::1] function
    cdef public unsigned short[::1] cpu


@cython.final
cdef class Args(Rows):
    cdef public long long[::1] offset, parent, value
    cdef public unsigned char[::1] of_instant
    cdef public int[::1] name, size

    @cython.locals(row=cython.longlong)
    cdef inline void add(
        self, long long offset, int of_instant, long long parent, int name, long long value,
        int size,
    ) noexcept nogil


cdef class Match(Kernel):
    cdef public EventBuffer events
    cdef public Notes notes
    cdef long long[::1] lengths
    cdef unsigned char[::1] ends
    cdef bint again
    cdef long long max_depth, counted
    cdef public OpenCalls open
    cdef public Slices slices
    cdef public Instants instants
    cdef public Args args
    cdef readonly long long[::1] counts
    cdef public CountMap far_counts
    cdef readonly long long unmatched, unwound, low, high
    cdef long long row, argument
    cdef bint of_instant

    @cython.locals(index=cython.longlong, kind=cython.int, time=cython.longlong)
    cdef long long step(self) except? -1 nogil
    @cython.locals(
        thread=cython.longlong, function=cython.longlong, tsc=cython.longlong,
        offset=cython.longlong, place=cython.longlong, row=cython.longlong, top=cython.longlong,
        depth=cython.longlong,
    )
    @cython.final
    cdef int enter(self, long long index, int kind) except -1 nogil
    @cython.locals(
        thread=cython.longlong, function=cython.longlong, tsc=cython.longlong,
        top=cython.longlong, node=cython.longlong,
    )
    @cython.final
    cdef int leave(self, long long index, int kind) except -1 nogil
    @cython.locals(node=cython.longlong, row=cython.longlong, took=cython.longlong)
    @cython.final
    cdef int end(self, long long thread, long long tsc, int how) except -1 nogil
    @cython.locals(function=cython.longlong)
    @cython.final
    cdef int add_exit(self, long long index, int kind) except -1 nogil
    @cython.locals(place=cython.longlong)
    @cython.final
    cdef void add_instant(self, long long index, int kind) noexcept nogil
    @cython.locals(offset=cython.longlong, value=cython.longlong)
    @cython.final
    cdef void add_argument(self, long long index) noexcept nogil
    @cython.locals(row=cython.longlong, of_instant=cython.bint, offset=cython.longlong)
    @cython.final
    cdef void add_event(self, long long index, int kind) noexcept nogil
