cimport cython
from fxframework.kernels.kernel cimport Kernel
from fxframework.kernels.maps cimport PairMap
from fxframework.kernels.notes cimport Notes
from fxframework.kernels.rows cimport Rows
from libc.stdint cimport int64_t

cdef int ASYNC_END_WITHOUT_BEGIN, END_WITHOUT_BEGIN, ENDS_BY_ANOTHER_NAME
cdef int ENDS_AFTER_PARENT, ENDS_BEFORE_BEGIN, EVENT_ASYNC_BEGIN, EVENT_ASYNC_END
cdef int EVENT_ASYNC_INSTANT, EVENT_DURATION_BEGIN, EVENT_DURATION_COMPLETE, EVENT_DURATION_END, EVENT_FLOW_BEGIN, EVENT_FLOW_END, TOO_DEEP
cdef long long OPEN_END, INVALID_END, ONE
cdef int LINK_BITS


@cython.final
cdef class OpenBegins(Rows):
    cdef public int[::1] name, category
    cdef public long long[::1] below
    cdef long long free

    @cython.locals(number=cython.longlong)
    cdef int64_t push(self, long long top, int name, int category) except -1 nogil
    @cython.locals(below=cython.longlong)
    cdef int64_t pop(self, long long top) noexcept nogil


cdef class Match(Kernel):
    cdef Notes notes
    cdef long long max_depth, count, slice_row, end_row, flow_row, last_async
    cdef bint natural
    cdef const unsigned char[::1] kind
    cdef const int[::1] thread, name, category
    cdef const long long[::1] offset, word, time, finish, refs, pids
    cdef long long[::1] end, parent, ends, flows
    cdef int[::1] depth
    cdef long long threads
    cdef public long long[::1] top, open_slices, last, last_end, innermost
    cdef OpenBegins begins
    cdef PairMap operations, open_async, unnamed
    cdef readonly PairMap links

    @cython.locals(index=cython.longlong, kind=cython.int, fine=cython.int)
    cdef long long step(self) except? -1 nogil
    @cython.final
    cdef int note(self, long long code, long long index) except -1 nogil
    @cython.final
    @cython.locals(number=cython.longlong, found=cython.longlong)
    cdef int link(self, int first, int kind, long long index) except -1 nogil
    @cython.final
    @cython.locals(
        now=cython.longlong, thread=cython.longlong, end=cython.longlong, last=cython.longlong,
        row=cython.longlong, top=cython.longlong, deep=cython.longlong,
    )
    cdef int begin(self, long long index, int kind) except -1 nogil
    @cython.final
    @cython.locals(
        now=cython.longlong, thread=cython.longlong, ordinal=cython.longlong,
        top=cython.longlong, deep=cython.longlong, begin=cython.longlong,
    )
    cdef int finish_slice(self, long long index) except -1 nogil
    @cython.final
    cdef bint differs(self, int end, int begin) noexcept nogil
    @cython.final
    cdef bint advance(self, long long thread, long long now) noexcept nogil
    @cython.final
    @cython.locals(
        now=cython.longlong, thread=cython.longlong, row=cython.longlong, top=cython.longlong,
        deep=cython.longlong,
    )
    cdef int enclose_flow(self, long long index) except -1 nogil
    @cython.final
    @cython.locals(
        now=cython.longlong, row=cython.longlong, operation=cython.longlong,
        number=cython.longlong, outer=cython.longlong, level=cython.longlong,
    )
    cdef int match_async(self, long long index, int kind) except -1 nogil


cdef class Durations(Kernel):
    cdef const long long[::1] time, end
    cdef long long[::1] out
    cdef long long count

    @cython.locals(row=cython.longlong, end=cython.longlong, start=cython.longlong)
    cdef long long step(self) except? -1 nogil
