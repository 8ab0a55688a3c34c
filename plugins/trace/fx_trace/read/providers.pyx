# cython: boundscheck=False, wraparound=False, show_performance_hints=False
"""Providers: the strings, threads and clock that earlier records put in force, for a scan."""

cimport cython
from libc.stdint cimport int64_t

from fx_trace.read.rows cimport (
    ClockRows, EventRows, LogRows, ProfilerRows, ProviderRows, SchedRows, SegmentRows,
    ThreadRows,
)
from fxframework.kernels.pools cimport PairMap, Pool
from fxframework.kernels.rows cimport Notes

from fx_trace import rules
from fxframework.kernels.buffers import full

cdef int64_t BASE_TIME = rules.BASE_TIME, NO_RATE = rules.NO_RATE
cdef int64_t PROVIDER_AGAIN = rules.PROVIDER_AGAIN
cdef int64_t PROVIDER_NOT_INTRODUCED = rules.PROVIDER_NOT_INTRODUCED
cdef int64_t RATE_CHANGES = rules.RATE_CHANGES, RATE_ZERO = rules.RATE_ZERO

__all__ = ["RATE_GIVEN", "Providers"]

cdef enum:
    NANOSECONDS = 1_000_000_000
    # An entry of a cache is its generation << 32 | a code or a thread id | marks.
    GENERATION_AT = 32
# Marks of an entry: the provider has not registered the index; instead, provider 0 has; the string
# is not in ``string_map`` yet.
cdef int64_t ABSENT = 1 << 31

cdef enum:
    BORROWED = 1 << 30
    FRESH = 1 << 29
    CODE = 0x1FFFFFFF
    # Keys of threads that were never registered begin here, behind the indices.
    THREAD_GONE = 1 << 16
    RATE_GIVEN = 1
    RATE_MISSED = 2  # A record with a time came before any rate.
    RATE_INHERITED = 3  # The rate is that of an initialization record before the first provider.
    # Providers that are found without a map: the last one met of those whose numbers end alike.
    RECENT = 1 << 12
STRINGS = 1 << 15
THREADS = 1 << 8


@cython.final
cdef class Providers:
    """The providers met so far; ``current`` is the row of the one whose records follow.

    ``strings`` and ``threads`` are caches of the tables in force, by index: an entry counts where
    its upper half is ``generation``; what they lack, ``string`` and ``thread`` enter. Where
    ``ready`` is false, ``start_clock`` has to be called before a record with a time. ``wall`` is
    the first wall time that a record gave, in ns, or -1.
    """

    def __init__(self, pool, notes, events, sched, logs, profiler):
        self.pool = pool
        self.notes = notes
        self.events = events
        self.sched = sched
        self.logs = logs
        self.profiler = profiler
        self.record = 0
        self.epoch = 0
        self.epochs = 0
        self.generation = 1
        self.current = 0
        self.clock = 0
        self.ready = False
        self.wall = -1
        self.strings = full(STRINGS, "i8")
        self.fresh = full(STRINGS, "i8")
        self.fresh_count = 0
        self.threads = full(THREADS, "i8")
        self.string_map = PairMap(64)
        self.thread_map = PairMap(64)
        self.identities = PairMap(64)
        self.markers = PairMap(16)
        self.unnamed = PairMap(16)
        self.numbers = PairMap(16)
        self.recent = full(RECENT, "i8")
        self.clock_map = PairMap(16)
        self.known = ThreadRows()
        self.table = ProviderRows(16)
        self.clocks = ClockRows(16)
        self.segments = SegmentRows(16)
        # Provider 0 and a clock of nanoseconds are there before any record.
        self.strings[0] = self.generation << GENERATION_AT
        self.add_provider(0, 0)
        self.add_clock(NANOSECONDS, 0, -1)
        self.table.clock[0] = 0

    cdef int note(self, int64_t code, int64_t offset, int64_t value) except -1 nogil:
        """Report a finding about the record being read."""
        self.notes.add(code, offset, self.record, value)
        return 0

    # --- Providers -------------------------------------------------------------------------------

    cdef int64_t add_provider(self, int64_t number, int64_t offset) except? -9 nogil:
        """Return the row of a provider that was not met before, with the rate of provider 0."""
        cdef int64_t row
        row = self.table.add_row()
        self.table.number[row] = number
        self.table.name[row] = 0
        self.table.epoch[row] = self.epochs
        self.table.clock[row] = -1
        self.table.hertz[row] = NANOSECONDS
        self.table.base[row] = 0
        self.table.wall[row] = -1
        self.table.introduced[row] = 0
        self.table.rate[row] = 0
        self.table.full[row] = 0
        self.table.offset[row] = offset
        if row and self.table.rate[0] == RATE_GIVEN:
            self.table.clock[row] = self.table.clock[0]
            self.table.hertz[row] = self.table.hertz[0]
            self.table.base[row] = self.table.base[0]
            self.table.wall[row] = self.table.wall[0]
            self.table.rate[row] = RATE_INHERITED
        self.epochs += 1
        self.numbers.put(number, 0, row)
        return row

    cdef int64_t introduce(self, int64_t number, int64_t offset) except? -9 nogil:
        """Return the row of a provider that a record introduces.

        Its tables are empty from here on.
        """
        cdef int64_t row
        row = self.numbers.get(number, 0)
        if row < 0:
            row = self.add_provider(number, offset)
        elif self.table.introduced[row]:
            self.note(PROVIDER_AGAIN, offset, number)
            self.table.epoch[row] = self.epochs
            self.epochs += 1
        self.table.introduced[row] = 1
        self.table.offset[row] = offset
        return row

    cdef int enter_section(self, int64_t number, int64_t offset) except -1 nogil:
        """Put the tables and clock of a provider in force, that of a section record."""
        cdef int64_t row
        row = self.recent[number & (RECENT - 1)]
        if self.table.number[row] != number:
            row = self.numbers.get(number, 0)
            if row < 0:
                row = self.add_provider(number, offset)
                self.note(PROVIDER_NOT_INTRODUCED, offset, number)
            self.recent[number & (RECENT - 1)] = row
        self.switch(row)
        return 0

    cdef int switch(self, int64_t row) except -1 nogil:
        """Put the tables and clock of a provider in force."""
        cdef int64_t index
        while self.fresh_count:
            self.fresh_count -= 1
            index = self.fresh[self.fresh_count]
            self.string_map.put(self.epoch, index, self.strings[index] & CODE)
        self.current = row
        self.epoch = self.table.epoch[row]
        self.generation += 1
        self.strings[0] = self.generation << GENERATION_AT
        self.ready = self.table.rate[row] != 0 and self.table.clock[row] == self.clock
        return 0

    # --- Clocks ----------------------------------------------------------------------------------

    cdef int64_t add_clock(self, int64_t rate, int64_t base, int64_t wall) except? -9 nogil:
        """Return the number of a clock, which is known by its rate and base tick."""
        cdef int64_t clock
        clock = self.clock_map.get(rate, base)
        if clock >= 0:
            if wall != -1 and self.clocks.wall[clock] == -1:
                self.clocks.wall[clock] = wall
            return clock
        clock = self.clocks.add_row()
        self.clocks.rate[clock] = rate
        self.clocks.base[clock] = base
        self.clocks.wall[clock] = wall
        self.clock_map.put(rate, base, clock)
        return clock

    cdef int initialize(self, int64_t offset, int64_t rate, int64_t base, int64_t wall,
                        bint based) except -1 nogil:
        """Set the rate of the current provider; ``based`` is whether base and wall were given."""
        cdef int64_t row
        row = self.current
        if based:
            self.note(BASE_TIME, offset, 0)
        if rate == 0:
            self.note(RATE_ZERO, offset, 0)
            return 0
        if self.table.rate[row] == RATE_GIVEN and self.table.hertz[row] != rate:
            self.note(RATE_CHANGES, offset, rate)
        if self.wall == -1:
            self.wall = wall
        self.table.rate[row] = RATE_GIVEN
        self.table.hertz[row] = rate
        self.table.base[row] = base
        self.table.wall[row] = wall
        self.table.clock[row] = -1
        self.ready = False
        return 0

    cdef int start_clock(self, int64_t offset) except -1 nogil:
        """Put the clock of the current provider in force, for a record with a time."""
        cdef int64_t row
        row = self.current
        if self.table.rate[row] == 0:
            self.table.rate[row] = RATE_MISSED
            self.note(NO_RATE, offset, 0)
        if self.table.clock[row] < 0:
            self.table.clock[row] = self.add_clock(
                self.table.hertz[row], self.table.base[row], self.table.wall[row]
            )
        if self.table.clock[row] != self.clock:
            self.clock = self.table.clock[row]
            self.begin_segment()
        self.ready = True
        return 0

    cpdef int go_on(self) except -1 nogil:
        """Begin the segments of the next chunk with the clock in force."""
        return self.begin_segment()

    cdef int begin_segment(self) except -1 nogil:
        """Note that the clock in force holds for the rows that follow."""
        cdef int64_t row
        row = self.segments.add_row()
        self.segments.clock[row] = self.clock
        self.segments.events[row] = self.events.rows
        self.segments.sched[row] = self.sched.rows
        self.segments.logs[row] = self.logs.rows
        self.segments.profiler[row] = self.profiler.rows
        return 0

    # --- Strings ---------------------------------------------------------------------------------

    cdef int register_string(self, int64_t index, int64_t code) except -1 nogil:
        """Register a string of the current provider."""
        cdef int64_t entry
        entry = self.strings[index]
        if entry >> GENERATION_AT != self.generation or not entry & FRESH:
            self.fresh[self.fresh_count] = index
            self.fresh_count += 1
        self.strings[index] = (self.generation << GENERATION_AT) | FRESH | code
        return 0

    cdef int64_t string(self, int64_t index) except? -9 nogil:
        """Enter an indexed string that the cache lacks; return the entry."""
        cdef int64_t code
        code = self.string_map.get(self.epoch, index)
        if code < 0:
            if self.current:
                code = self.string_map.get(self.table.epoch[0], index)
            if code >= 0:
                code |= BORROWED
            else:
                code = self.markers.get(index, 0)
                if code < 0:
                    code = self.marker(index)
            code |= ABSENT
        self.strings[index] = (self.generation << GENERATION_AT) | code
        return self.strings[index]

    cdef int64_t marker(self, int64_t index) except? -9 with gil:
        """Return the code of ``<str#N>``, the text for a string that was never registered."""
        code = self.pool.enter(b"<str#%d>" % index)
        self.markers.put(index, 0, code)
        self.unnamed.put(code, 0, index)
        return code

    # --- Threads ---------------------------------------------------------------------------------

    cdef int register_thread(self, int64_t index, int64_t thread) except -1 nogil:
        """Register a thread of the current provider."""
        self.threads[index] = (self.generation << GENERATION_AT) | thread
        self.thread_map.put(self.epoch, index, thread)
        return 0

    cdef int64_t add_thread(self, int64_t pid, int64_t tid, int64_t offset,
                            int64_t gone) except? -9 nogil:
        """Return the id of a thread that was not mentioned before."""
        cdef int64_t thread
        thread = self.known.add_row()
        self.known.pid[thread] = pid
        self.known.tid[thread] = tid
        self.known.offset[thread] = offset
        self.known.gone[thread] = gone
        return thread

    cdef int64_t identity(self, int64_t pid, int64_t tid, int64_t offset) except? -9 nogil:
        """Id of a thread by its koids, entered where it is new."""
        cdef int64_t thread
        thread = self.identities.get(pid, tid)
        if thread < 0:
            thread = self.add_thread(pid, tid, offset, 0)
            self.identities.put(pid, tid, thread)
        return thread

    cdef int64_t thread(self, int64_t index, int64_t offset) except? -9 nogil:
        """Enter an indexed thread that the cache lacks; return the entry."""
        cdef int64_t thread
        thread = self.thread_map.get(self.epoch, index)
        if thread < 0:
            if self.current:
                thread = self.thread_map.get(self.table.epoch[0], index)
            if thread >= 0:
                thread |= BORROWED
            else:
                thread = self.thread_map.get(self.epoch, THREAD_GONE + index)
                if thread < 0:
                    thread = self.add_thread(0, 0, offset, index + 1)
                    self.thread_map.put(self.epoch, THREAD_GONE + index, thread)
            thread |= ABSENT
        self.threads[index] = (self.generation << GENERATION_AT) | thread
        return self.threads[index]
