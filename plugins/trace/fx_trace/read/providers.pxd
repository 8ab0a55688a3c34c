cimport cython
from libc.stdint cimport int64_t
from fx_trace.read.rows cimport (
    ClockRows,
    EventRows,
    LogRows,
    ProfilerRows,
    ProviderRows,
    SchedRows,
    SegmentRows,
    ThreadRows,
)
from fxframework.kernels.maps cimport PairMap
from fxframework.kernels.notes cimport Notes
from fxframework.kernels.pools cimport Pool

cdef int BASE_TIME, NO_RATE, OF_DEFAULT_PROVIDER, PROVIDER_AGAIN, PROVIDER_NOT_INTRODUCED
cdef int RATE_CHANGES, RATE_ZERO, STRING_NOT_REGISTERED, THREAD_NOT_REGISTERED
cdef int GENERATION_AT, RATE_GIVEN, RATE_MISSED, RATE_INHERITED, STRINGS, THREADS
cdef long long NANOSECONDS, LOW32, LOW31, BORROWED, THREAD_GONE


@cython.final
cdef class Providers:
    cdef Pool pool
    cdef Notes notes
    cdef EventRows events
    cdef SchedRows sched
    cdef LogRows logs
    cdef ProfilerRows profiler
    cdef public long long record
    cdef readonly long long epoch, epochs, generation, current, clock, wall
    cdef readonly bint ready
    cdef long long[::1] strings, absent_strings, threads, absent_threads
    cdef PairMap string_map, thread_map, markers, numbers
    cdef readonly PairMap identities, clock_map, unnamed
    cdef readonly ThreadRows known
    cdef readonly ProviderRows table
    cdef readonly ClockRows clocks
    cdef readonly SegmentRows segments

    cdef int note(self, long long code, long long offset, long long value) except -1 nogil
    @cython.locals(row=cython.longlong)
    cdef int64_t add_provider(self, long long number, long long offset) except -1 nogil
    @cython.locals(row=cython.longlong)
    cdef int64_t introduce(self, long long number, long long offset) except -1 nogil
    @cython.locals(row=cython.longlong)
    cdef int enter_section(self, long long number, long long offset) except -1 nogil
    cdef int switch(self, long long row) except -1 nogil
    @cython.locals(clock=cython.longlong)
    cdef int64_t add_clock(self, long long rate, long long base, long long wall) except -1 nogil
    @cython.locals(row=cython.longlong)
    cdef int initialize(
        self, long long offset, long long rate, long long base, long long wall, bint based
    ) except -1 nogil
    @cython.locals(row=cython.longlong)
    cdef int start_clock(self, long long offset) except -1 nogil
    cpdef int go_on(self) except -1
    @cython.locals(row=cython.longlong)
    cdef int begin_segment(self) except -1 nogil
    cdef int register_string(self, long long index, long long code) except -1 nogil
    @cython.locals(entry=cython.longlong, code=cython.longlong)
    cdef int64_t absent_string(self, long long index, long long offset) except -1 nogil
    cdef int64_t marker(self, long long index) except -1 with gil
    cdef int register_thread(self, long long index, long long thread) except -1 nogil
    @cython.locals(thread=cython.longlong)
    cdef int64_t add_thread(
        self, long long pid, long long tid, long long offset, long long gone
    ) except -1 nogil
    @cython.locals(thread=cython.longlong)
    cdef int64_t identity(self, long long pid, long long tid, long long offset) except -1 nogil
    @cython.locals(entry=cython.longlong, thread=cython.longlong)
    cdef int64_t absent_thread(self, long long index, long long offset) except -1 nogil
