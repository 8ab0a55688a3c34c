"""The dependencies of the kept records of a part of a trace: strings, threads, objects, clocks."""

from __future__ import annotations

from typing import Any

from fx_trace.format import (
    ARG_KOID,
    ARG_NAME,
    ARG_POINTER,
    ARG_SIZE,
    ARG_STRING,
    ARG_STRING_REF,
    ARG_TYPE,
    BLOB_NAME,
    EVENT_ARGS,
    EVENT_CATEGORY,
    EVENT_FLOW_END,
    EVENT_KIND,
    EVENT_NAME,
    EVENT_THREAD,
    FRAME_COUNT,
    LARGE_ARGS,
    LARGE_CATEGORY,
    LARGE_FORMAT,
    LARGE_KIND,
    LARGE_NAME,
    LARGE_THREAD,
    LARGE_WITH_METADATA,
    LARGE_WITHOUT_METADATA,
    LEGACY_INCOMING,
    LEGACY_OUTGOING,
    LOG_THREAD,
    METADATA_TYPE,
    MODULE_BUILD_ID_LENGTH,
    MODULE_NAME_LENGTH,
    OBJECT_ARGS,
    OBJECT_NAME,
    OBJECT_OWNER,
    PROFILER_BACKTRACE,
    PROFILER_MMAP,
    PROFILER_MODULE,
    PROFILER_THREAD,
    PROFILER_TYPE,
    PROVIDER_ID,
    PROVIDER_INFO,
    PROVIDER_NAME_LENGTH,
    PROVIDER_SECTION,
    RECORD_BLOB,
    RECORD_EVENT,
    RECORD_INITIALIZATION,
    RECORD_KERNEL_OBJECT,
    RECORD_LARGE,
    RECORD_LOG,
    RECORD_METADATA,
    RECORD_PROFILER,
    RECORD_SCHEDULING,
    RECORD_STRING,
    RECORD_THREAD,
    RECORD_USERSPACE_OBJECT,
    SCHED_LEGACY_SWITCH,
    SCHED_SWITCH,
    SCHED_WAKEUP,
    SCHEDULING_TYPE,
    SIGN,
    STRING_INDEX,
    STRING_LENGTH,
    STRING_REF_INDEX,
    SWITCH_ARGS,
    THREAD_INDEX,
    TRACE_INFO,
    TYPE,
)
from fx_trace.read.framing import RecordBounds
from fx_trace.read.rows import LargeRows, LinkRows
from fx_trace.rules import RECORD_OVER_LIMIT, UNKNOWN_RECORD
from fx_trace.write.registrations import Registrations
from fxframework.kernels.annotations import Array, Bytes, Fallible, View, flag, i64, status, u8
from fxframework.kernels.kernel import Kernel
from fxframework.kernels.maps import PairMap

__all__ = ["Needs"]

LOW32 = 0xFFFFFFFF
INLINE = 0x8000
MAYBE = 2
"""Mark of a sound blob, object or large record, which is kept where it is needed or asked for."""
NO_STOP = 0x7FFFFFFFFFFFFFFF
NAMED, RUNNING = 0, 1
"""Keys of ``tasks``: whose names are wanted; threads of scheduling records."""
INHERITED, GIVEN = 0, 1
"""Keys of ``rates``, which has initialization records by provider: that of provider 0, its own."""


class Needs(Kernel):
    """Marks what the marked records need, and the records without a row that are to be kept.

    ``mark`` has an element a word of the file and one more, for what needs nothing. ``everything``
    keeps what has neither thread nor category, ``whole`` all threads, ``profiles`` the records of
    the CPU profiler.
    ``bounds`` has, by clock, the first tick of the stretch of time and the first one after it,
    with bit 63 turned so that they compare as signed; ``NO_STOP`` is behind all times. ``large``
    takes each large record kept: its word, the word of its category's bytes, and their number. With
    ``joins``, ``loans`` takes the registrations and rates of provider 0 that a record of another
    provider depends on: that record's word, and the one of the record to copy before it.
    """

    words: View[i64]
    threads: Bytes
    bounds: View[i64]
    mark: Array[u8]
    records: RecordBounds
    everything: flag
    profiles: flag
    joins: flag
    whole: flag
    registrations: Registrations
    identities: PairMap
    clocks: PairMap
    tasks: PairMap
    objects: PairMap
    rates: PairMap
    large: LargeRows
    links: LinkRows
    loans: LinkRows
    lent: PairMap
    inherited: i64
    total: i64
    provider: i64
    clock: i64
    start: i64
    end: i64

    def __init__(self, words: Any, mark: Any, threads: Any, bounds: Any) -> None:
        self.words = memoryview(words)
        self.total = len(self.words)
        self.mark = memoryview(mark)
        self.threads = memoryview(threads)
        self.bounds = memoryview(bounds)
        self.records = RecordBounds(words)
        self.everything = False
        self.profiles = False
        self.joins = False
        self.whole = False
        self.identities = PairMap(16)
        self.clocks = PairMap(16)
        self.tasks = PairMap(16)
        self.registrations = Registrations(self.total)
        self.objects = PairMap(16)
        self.rates = PairMap(16)
        self.large = LargeRows()
        self.links = LinkRows()
        self.loans = LinkRows()
        self.lent = PairMap(16)
        self.inherited = -1
        self.provider = 0
        self.clock = 0
        self.start = 0
        self.end = 0

    def enter(self, key: int, numbers: list[int]) -> None:
        """Add koids to ``tasks``."""
        for number in numbers:
            self.tasks.put(key, number, 0)

    def use(self, identities: PairMap, clocks: PairMap) -> None:
        """Take the ids of threads by koids, and of clocks by rate and base, from the scan."""
        self.identities = identities
        self.clocks = clocks

    def step(self) -> Fallible[i64]:
        """Walk through the file, then resolve the needs of objects from the end."""
        pos = 0
        while pos < self.total:
            word = self.words[pos]
            kind = TYPE.get(word)
            fault = self.records.fault(pos)
            # Most records are events that are not kept.
            if fault == RECORD_OVER_LIMIT:
                self.mark[pos] = 0
            elif (fault == 0 or fault == UNKNOWN_RECORD) and (
                kind != RECORD_EVENT
                or self.mark[pos]
                or (self.everything and EVENT_KIND.get(word) > EVENT_FLOW_END)
            ):
                self.start = pos
                self.end = self.records.end
                self.record(kind, word)
                timed = kind == RECORD_EVENT or kind >= RECORD_SCHEDULING
                if self.joins and self.inherited >= 0 and timed and self.mark[pos]:
                    self.lend(0, self.inherited)
            pos = self.records.end
        # The needs of an object precede it, so that one pass from the end resolves them all.
        link = self.links.rows - 1
        while link >= 0:
            if self.mark[self.links.owner[link]]:
                self.mark[self.links.needed[link]] = 1
            link -= 1
        return 0

    def record(self, kind: i64, word: i64) -> status:
        """Handle a record of a sound size."""
        if kind == RECORD_EVENT:
            return self.event(word)
        if kind == RECORD_STRING:
            return self.string_record(word)
        if kind == RECORD_THREAD:
            return self.thread_record(word)
        if kind == RECORD_METADATA:
            return self.metadata(word)
        if kind == RECORD_INITIALIZATION:
            return self.initialization()
        if kind == RECORD_SCHEDULING:
            return self.scheduling(word)
        if kind == RECORD_LOG:
            if self.mark[self.start]:
                self.need_thread(LOG_THREAD.get(word))
            return 0
        if kind == RECORD_BLOB:
            if self.mark[self.start] == MAYBE:
                self.mark[self.start] = self.everything
            if self.mark[self.start]:
                self.need_string(BLOB_NAME.get(word))
            return 0
        if kind == RECORD_USERSPACE_OBJECT or kind == RECORD_KERNEL_OBJECT:
            return self.object(kind, word)
        if kind == RECORD_PROFILER:
            return self.profiler(word)
        if kind == RECORD_LARGE:
            return self.large_record(word)
        if self.everything:
            self.mark[self.start] = 1
        return 0

    # --- Needs -----------------------------------------------------------------------------------

    def string(self, ref: i64) -> Fallible[i64]:
        """Return the word of the record that registered a string that is used; or -1."""
        if ref == 0 or ref & INLINE:
            return -1
        at = self.registrations.string(ref)
        if self.joins and at >= 0 and self.registrations.is_borrowed(False, ref):
            self.lend(ref, at)
        return at

    def thread(self, index: i64) -> Fallible[i64]:
        """Return the word of the record that registered a thread that is used; or -1."""
        if index == 0:
            return -1
        at = self.registrations.thread(index)
        if self.joins and at >= 0 and self.registrations.is_borrowed(True, index):
            self.lend(-index, at)
        return at

    def lend(self, key: i64, at: i64) -> status:
        """Have a record of provider 0 copied before the one read, unless its tables have it.

        ``key`` is the index of a string, that of a thread below 0, or 0 for the rate.
        """
        if self.lent.get(self.registrations.epoch, key) != at:
            self.lent.put(self.registrations.epoch, key, at)
            row = self.loans.add_row()
            self.loans.owner[row] = self.start
            self.loans.needed[row] = at
        return 0

    def need_string(self, ref: i64) -> Fallible[i64]:
        """Mark the record that registered a string; return its word, or -1."""
        at = self.string(ref)
        if at >= 0:
            self.mark[at] = 1
        return at

    def need_thread(self, index: i64) -> status:
        """Mark the record that registered a thread."""
        at = self.thread(index)
        if at >= 0:
            self.mark[at] = 1
        return 0

    def refer(self, at: i64) -> status:
        """Mark the record at word ``at`` where the one read is marked; else note the need."""
        if at < 0:
            return 0
        if self.mark[self.start]:
            self.mark[at] = 1
            return 0
        row = self.links.add_row()
        self.links.owner[row] = self.start
        self.links.needed[row] = at
        return 0

    def refer_args(self, at: i64, count: i64, pid: i64) -> status:
        """Mark or note what arguments need: strings, and the objects of pointers and koids."""
        while count > 0:
            word = self.words[at]
            name = ARG_NAME.get(word)
            kind = ARG_TYPE.get(word)
            self.refer(self.string(name))
            if kind == ARG_STRING:
                self.refer(self.string(ARG_STRING_REF.get(word)))
            elif kind == ARG_POINTER or kind == ARG_KOID:
                value = self.words[at + 1 + self.records.inline_words(name)]
                self.refer(self.objects.get(0 if kind == ARG_KOID else pid ^ SIGN, value))
            at += ARG_SIZE.get(word)
            count -= 1
        return 0

    def process_of(self, index: i64, at: i64) -> i64:
        """Process koid of a thread reference whose inline form is at word ``at``."""
        if index == 0:
            return self.words[at]
        found = self.registrations.thread(index)
        return self.words[found + 1] if found >= 0 else 0

    def is_wanted(self, index: i64, at: i64) -> flag:
        """Return whether a reference is to a wanted thread; an inline one is at word ``at``."""
        if index:
            found = self.registrations.thread(index)
            if found < 0:
                known = self.identities.get(0, 0)
            else:
                known = self.identities.get(self.words[found + 1], self.words[found + 2])
        else:
            known = self.identities.get(self.words[at], self.words[at + 1])
        return known >= 0 and self.threads[known] != 0

    def is_within(self, at: i64) -> flag:
        """Return whether the time at word ``at`` lies in the stretch of time."""
        now = self.words[at] ^ SIGN
        stop = self.bounds[2 * self.clock + 1]
        return self.bounds[2 * self.clock] <= now and (now < stop or stop == NO_STOP)

    # --- Records ---------------------------------------------------------------------------------

    def event(self, word: i64) -> status:
        """Handle a kept event, or one of an unknown type."""
        thread = EVENT_THREAD.get(word)
        category = EVENT_CATEGORY.get(word)
        name = EVENT_NAME.get(word)
        count = EVENT_ARGS.get(word)
        at = self.start + 2 if thread else self.start + 4
        at += self.records.inline_words(category) + self.records.inline_words(name)
        if self.records.args_end(at, count, self.end) < 0:
            self.mark[self.start] = 0  # those of defined types that do not fit have no row
            return 0
        self.mark[self.start] = 1
        self.need_thread(thread)
        self.need_string(category)
        self.need_string(name)
        if count:
            self.refer_args(at, count, self.process_of(thread, self.start + 2))
        return 0

    def string_record(self, word: i64) -> status:
        """Handle a string record."""
        index = STRING_INDEX.get(word)
        length = STRING_LENGTH.get(word)
        if index and self.start + 1 + ((length + 7) // 8) <= self.end:
            self.registrations.register_string(index, self.start)
        return 0

    def thread_record(self, word: i64) -> status:
        """Handle a thread record."""
        index = THREAD_INDEX.get(word)
        if index:
            self.registrations.register_thread(index, self.start)
        if self.whole or self.tasks.get(RUNNING, self.words[self.start + 2]) >= 0:
            self.mark[self.start] = 1
        return 0

    def metadata(self, word: i64) -> status:
        """Handle a metadata record, which is kept."""
        kind = METADATA_TYPE.get(word)
        number = PROVIDER_ID.get(word)
        length = PROVIDER_NAME_LENGTH.get(word)
        if kind == PROVIDER_INFO and self.start + 1 + ((length + 7) // 8) > self.end:
            return 0
        if self.everything or PROVIDER_INFO <= kind <= TRACE_INFO:
            self.mark[self.start] = 1
        if kind == PROVIDER_INFO or kind == PROVIDER_SECTION:
            self.switch(kind, number)
        return 0

    def switch(self, kind: i64, number: i64) -> status:
        """Switch to the tables and rate of another provider, at first those of provider 0."""
        given = self.rates.get(0, GIVEN)
        if self.registrations.switch(kind, number) and given >= 0:
            self.rates.put(number, INHERITED, given)
        self.provider = number
        given = self.rates.get(number, GIVEN)
        self.inherited = self.rates.get(number, INHERITED) if given < 0 else -1
        self.set_clock(max(given, self.inherited))
        return 0

    def set_clock(self, at: i64) -> status:
        """Set the clock of the initialization record at word ``at``; nanoseconds for -1."""
        self.clock = 0
        if at >= 0:
            base = self.words[at + 2] if self.records.size_of(self.words[at]) >= 4 else 0
            # Without later times it has no clock in the scan.
            self.clock = max(self.clocks.get(self.words[at + 1], base), 0)
        return 0

    def initialization(self) -> status:
        """Handle a tick rate, which is kept; zero has no effect."""
        self.mark[self.start] = 1
        if self.words[self.start + 1]:
            self.rates.put(self.provider, GIVEN, self.start)
            self.inherited = -1
            self.set_clock(self.start)
        return 0

    def scheduling(self, word: i64) -> status:
        """Handle a scheduling record."""
        kind = SCHEDULING_TYPE.get(word)
        if kind > SCHED_WAKEUP:
            if self.everything:
                self.mark[self.start] = 1
        elif self.mark[self.start]:
            if kind == SCHED_LEGACY_SWITCH:
                self.need_thread(LEGACY_OUTGOING.get(word))
                self.need_thread(LEGACY_INCOMING.get(word))
            else:
                at = self.start + 4 if kind == SCHED_SWITCH else self.start + 3
                self.refer_args(at, SWITCH_ARGS.get(word), 0)
        return 0

    def object(self, kind: i64, word: i64) -> status:
        """Handle an object, which is kept if it or a record that refers to it is wanted."""
        if self.mark[self.start] != MAYBE:
            return 0  # its contents do not fit it
        self.mark[self.start] = 0
        ref = OBJECT_NAME.get(word)
        count = OBJECT_ARGS.get(word)
        process = OBJECT_OWNER.get(word)
        at = self.start + 2 + self.records.inline_words(ref)
        koid = self.words[self.start + 1]
        owner = 0
        pid = 0
        if kind == RECORD_USERSPACE_OBJECT:
            pid = self.process_of(process, self.start + 2)
            owner = pid ^ SIGN
            if process:
                self.refer(self.thread(process))
            else:
                # One word or two: the record's size tells.
                at += 2
                after = self.records.args_end(at, count, self.end)
                if after != self.end:
                    one = self.records.args_end(at - 1, count, self.end)
                    if one == self.end or after < 0 or one >= 0:
                        at -= 1
        # Whether it is kept is known later, when its strings may have been replaced.
        self.refer(self.string(ref))
        self.refer_args(at, count, pid)
        self.objects.put(owner, koid, self.start)
        named = kind == RECORD_KERNEL_OBJECT and self.tasks.get(NAMED, koid) >= 0
        if self.everything or named:
            self.mark[self.start] = 1
        return 0

    def profiler(self, word: i64) -> status:
        """Handle a profiler record: keep modules, mappings, and backtraces by time and thread."""
        kind = PROFILER_TYPE.get(word)
        thread = PROFILER_THREAD.get(word)
        keep = self.profiles and self.profiler_fits(kind, word)
        if keep and kind == PROFILER_BACKTRACE:
            keep = self.is_within(self.start + 1) and (
                self.everything or self.is_wanted(thread, self.start + 2)
            )
        if kind > PROFILER_BACKTRACE:
            keep = self.everything
        if keep:
            self.mark[self.start] = 1
            self.need_thread(thread)
        return 0

    def profiler_fits(self, kind: i64, word: i64) -> flag:
        """Return whether the contents of a profiler record fit it."""
        need = 2
        if kind == PROFILER_MODULE:
            need += ((MODULE_NAME_LENGTH.get(word)) + 7) // 8
            need += ((MODULE_BUILD_ID_LENGTH.get(word)) + 7) // 8
        elif kind == PROFILER_MMAP:
            need += 3
        elif kind == PROFILER_BACKTRACE:
            need += FRAME_COUNT.get(word)
        if PROFILER_THREAD.get(word) == 0:
            need += 2 if kind == PROFILER_BACKTRACE else 1  # of the others one word may do
        return self.start + need <= self.end

    def large_record(self, word: i64) -> status:
        """Handle a large record."""
        form = LARGE_FORMAT.get(word)
        if LARGE_KIND.get(word) or form > LARGE_WITHOUT_METADATA or self.end - self.start < 2:
            if self.everything:
                self.mark[self.start] = 1
            return 0
        second = self.words[self.start + 1]
        category = LARGE_CATEGORY.get(second)
        name = LARGE_NAME.get(second)
        thread = LARGE_THREAD.get(second)
        at = self.start + 2 + self.records.inline_words(category) + self.records.inline_words(name)
        keep: flag = self.mark[self.start] == MAYBE
        self.mark[self.start] = 0
        if keep and form == LARGE_WITH_METADATA:
            keep = self.is_within(at) and (self.everything or self.is_wanted(thread, at + 1))
        elif keep:
            keep = self.everything
        if not keep:
            return 0
        self.mark[self.start] = 1
        self.add_large(category, self.need_string(category))
        self.need_string(name)
        if form == LARGE_WITH_METADATA:
            pid = self.process_of(thread, at + 1)
            self.need_thread(thread)
            at += 1 if thread else 3
            count = LARGE_ARGS.get(second)
            if self.records.args_end(at, count, self.end) >= 0:
                self.refer_args(at, count, pid)
        return 0

    def add_large(self, category: i64, found: i64) -> status:
        """Note a large record and where its category is; ``found`` is its string's record."""
        row = self.large.add_row()
        self.large.word[row] = self.start
        self.large.start[row] = 0
        self.large.nbytes[row] = 0
        if category & INLINE:
            self.large.start[row] = self.start + 2
            self.large.nbytes[row] = STRING_REF_INDEX.get(category)
        elif found >= 0:
            self.large.start[row] = found + 1
            self.large.nbytes[row] = STRING_LENGTH.get(self.words[found])
        return 0
