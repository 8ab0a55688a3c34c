cimport cython
from libc.stdint cimport int64_t

from fx_trace.read.rows cimport (
    ClockRows, EventRows, LogRows, ProfilerRows, ProviderRows, SchedRows, SegmentRows,
    ThreadRows,
)
from fxframework.kernels.pools cimport PairMap, Pool
from fxframework.kernels.rows cimport Notes

@cython.final
cdef class Providers:
    cdef public Pool pool
    cdef public Notes notes
    cdef public EventRows events
    cdef readonly SchedRows sched
    cdef readonly LogRows logs
    cdef readonly ProfilerRows profiler
    cdef public int64_t record
    cdef int64_t epoch, epochs
    cdef public int64_t generation, current, clock, wall
    cdef readonly bint ready
    cdef public int64_t[::1] strings
    cdef readonly int64_t[::1] fresh
    cdef int64_t fresh_count
    cdef public int64_t[::1] threads
    cdef PairMap string_map, thread_map, markers
    cdef public PairMap numbers
    cdef int64_t[::1] recent
    cdef PairMap identities, clock_map
    cdef readonly PairMap unnamed
    cdef public ThreadRows known
    cdef public ProviderRows table
    cdef public ClockRows clocks
    cdef readonly SegmentRows segments

    cdef int note(self, int64_t code, int64_t offset, int64_t value) except -1 nogil
    cdef int64_t add_provider(self, int64_t number, int64_t offset) except? -9 nogil
    cdef int64_t introduce(self, int64_t number, int64_t offset) except? -9 nogil
    cdef int enter_section(self, int64_t number, int64_t offset) except -1 nogil
    cdef int switch(self, int64_t row) except -1 nogil
    cdef int64_t add_clock(self, int64_t rate, int64_t base, int64_t wall) except? -9 nogil
    cdef int initialize(self, int64_t offset, int64_t rate, int64_t base, int64_t wall,
                        bint based) except -1 nogil
    cdef int start_clock(self, int64_t offset) except -1 nogil
    cpdef int go_on(self) except -1 nogil
    cdef int begin_segment(self) except -1 nogil
    cdef int register_string(self, int64_t index, int64_t code) except -1 nogil
    cdef int64_t string(self, int64_t index) except? -9 nogil
    cdef int64_t marker(self, int64_t index) except? -9 with gil
    cdef int register_thread(self, int64_t index, int64_t thread) except -1 nogil
    cdef int64_t add_thread(self, int64_t pid, int64_t tid, int64_t offset,
                            int64_t gone) except? -9 nogil
    cdef int64_t identity(self, int64_t pid, int64_t tid, int64_t offset) except? -9 nogil
    cdef int64_t thread(self, int64_t index, int64_t offset) except? -9 nogil
