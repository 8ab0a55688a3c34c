cimport cython
from fxframework.kernels.kernel cimport Kernel
from fxframework.kernels.maps cimport PairMap

cdef int EVENT_ASYNC_BEGIN, EVENT_ASYNC_END, EVENT_DURATION_BEGIN, EVENT_DURATION_COMPLETE
cdef int EVENT_DURATION_END, EVENT_FLOW_BEGIN, EVENT_FLOW_END, FLOW_BEGIN_PHASE, FLOW_END_PHASE
cdef long long INVALID_END, OPEN_END


cdef class EventChoice(Kernel):
    cdef const unsigned char[::1] threads, categories, kind
    cdef readonly unsigned char[::1] slices, flows
    cdef unsigned char[::1] mark
    cdef long long start, last, count, slice_row, end_row, flow_row
    cdef bint whole, marking
    cdef const int[::1] thread, category
    cdef const long long[::1] offset, time, slice_ends, closed

    @cython.locals(event=cython.longlong)
    cdef long long step(self) except? -1 nogil
    @cython.final
    cdef bint is_slice(self, int kind) noexcept nogil
    @cython.final
    cdef bint is_wanted(self, long long event) noexcept nogil
    @cython.final
    @cython.locals(
        now=cython.longlong, end=cython.longlong, inside=cython.bint, is_open=cython.bint
    )
    cdef bint reaches(self, long long event) noexcept nogil
    @cython.final
    @cython.locals(kind=cython.int, row=cython.longlong, keep=cython.bint)
    cdef bint is_kept(self, long long event) noexcept nogil


cdef class FollowFlows(Kernel):
    cdef const long long[::1] order, ids
    cdef const unsigned char[::1] phases
    cdef long long[::1] flow, first
    cdef long long count
    cdef PairMap open_flows

    @cython.locals(
        flows=cython.longlong, place=cython.longlong, point=cython.longlong, found=cython.longlong
    )
    cdef long long step(self) except? -1 nogil


cdef class CopyRecords(Kernel):
    cdef const long long[::1] streams, positions, sizes
    cdef long long[::1] out
    cdef long long first, stop

    @cython.locals(
        at=cython.longlong, record=cython.longlong, source=cython.longlong, end=cython.longlong
    )
    cdef long long step(self) except? -1 nogil
