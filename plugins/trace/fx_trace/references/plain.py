"""Plain records: those of a trace that Perfetto takes as they are, without a loss."""

from __future__ import annotations

from typing import final

import numpy as np
from numpy.typing import NDArray

from fx_trace.format import (
    ARG_BOOL,
    ARG_DOUBLE,
    ARG_INT32,
    ARG_INT64,
    ARG_KIND,
    ARG_KOID,
    ARG_NAME,
    ARG_POINTER,
    ARG_STRING,
    ARG_STRING_REF,
    ARG_UINT64,
    ARG_WORDS,
    EVENT_ARGS,
    EVENT_ASYNC_BEGIN,
    EVENT_ASYNC_END,
    EVENT_CATEGORY,
    EVENT_COUNTER,
    EVENT_DURATION_COMPLETE,
    EVENT_FLOW_BEGIN,
    EVENT_FLOW_END,
    EVENT_INSTANT,
    EVENT_KIND,
    EVENT_NAME,
    EVENT_THREAD,
    INLINE_STRING,
    MAX_ARGS,
    RECORD_EVENT,
    RECORD_KIND,
    RECORD_SCHEDULING,
    SCHED_KIND,
    SCHED_SWITCH,
    SCHED_WAKEUP,
    SIZE,
    STRING_REF_INDEX,
    SWITCH_ARGS,
    SWITCH_CPU,
)
from fx_trace.references.nesting import KIND_BITS
from fxframework.io.words import WORD
from fxframework.kernels.annotations import (
    Array,
    Column,
    Fallible,
    View,
    flag,
    i64,
    public,
    status,
    u64,
)
from fxframework.kernels.buffers import full, view
from fxframework.kernels.kernel import Kernel
from fxframework.kernels.maps import PairMap
from fxframework.kernels.rows import Rows

__all__ = ["EventRows", "PlainRecords"]

MAX_CPUS = 4096
NS_PER_SECOND = 1_000_000_000
LOW32 = 0xFFFFFFFF
HALF = 32
LOW64 = 0xFFFFFFFFFFFFFFFF
QUARTER = 1 << 62
MOST = 0x7FFFFFFFFFFFFFFF
PIECE = 1 << 20
"""Words after which the kernel returns."""


@final
class EventRows(Rows):
    """Events in the order of the file: time, track and type, length or id, place."""

    ts: Column[i64]
    what: Column[i64]
    word: Column[i64]
    offset: Column[i64]
    record: Column[i64]

    @public
    def add(self, ts: i64, what: i64, word: i64, at: i64, record: i64) -> status:
        """Add the event whose header is word ``at``."""
        if self.rows == self.room:
            self.grow()
        row = self.rows
        self.ts[row] = ts
        self.what[row] = what
        self.word[row] = word
        self.offset[row] = WORD * at
        self.record[row] = record
        self.rows = row + 1
        return 0


class PlainRecords(Kernel):
    """Takes events, context switches and wakeups about which nothing is to be noted.

    It stops at word ``pos`` before every other record, or after PIECE words. ``record`` counts the
    records; ``events`` has those that are nested. ``strings`` has the number of the text for a
    provider and an index (0: the empty text), ``threads`` the track likewise, ``koids`` the track
    of a process and a thread. ``provider`` is negative if no record is plain; ``rate`` is its
    ticks per second, and ``high`` the nanoseconds of 2^32 ticks.
    """

    words: View[i64]
    total: i64
    pos: i64
    record: i64
    provider: i64
    rate: u64
    high: u64
    strings: PairMap
    threads: PairMap
    koids: PairMap
    names: Array[i64]
    events: EventRows

    def __init__(self, words: NDArray[np.int64]) -> None:
        self.words = view(words, "i8")
        self.total = len(words)
        self.pos = 0
        self.record = 0
        self.provider = -1
        self.rate = 1
        self.high = 0
        self.strings = PairMap()
        self.threads = PairMap()
        self.koids = PairMap()
        self.names = full(MAX_ARGS + 1, "i8")
        self.events = EventRows()

    def step(self) -> Fallible[i64]:
        """Take plain records; return whether the next one is another."""
        until = min(self.total, self.pos + PIECE)
        while self.pos < until:
            header = self.words[self.pos]
            size = SIZE.get(header)
            kind = RECORD_KIND.get(header)
            if self.provider < 0 or size < 2 or size > self.total - self.pos:
                return 1
            if kind == RECORD_EVENT:
                if not self.event(header, self.pos, self.pos + size):
                    return 1
            elif kind != RECORD_SCHEDULING or not self.switch(header, self.pos, self.pos + size):
                return 1
            self.pos += size
            self.record += 1
        return 0

    def time(self, at: i64) -> Fallible[i64]:
        """Return the nanoseconds of the ticks in a word; -1 if they could be too many."""
        ticks: u64 = self.words[at] & LOW64
        upper: u64 = ticks >> HALF
        if self.high == 0 or self.rate == 0:
            return -1
        if upper > QUARTER // self.high:
            return -1
        total: u64 = upper * self.high + (ticks & LOW32) * NS_PER_SECOND // self.rate
        return -1 if total > MOST else total

    def behind(self, ref: i64, cursor: i64, end: i64) -> i64:
        """Return the word behind an inline string; -1 for one that is cut or not registered."""
        if ref & INLINE_STRING:
            cursor += (STRING_REF_INDEX.get(ref) + 7) >> 3
            return cursor if cursor <= end else -1
        if ref and self.strings.get(self.provider, ref) < 0:
            return -1
        return cursor

    def event(self, header: i64, at: i64, end: i64) -> Fallible[flag]:
        """Take an event; return False if something is to be noted about it."""
        kind = EVENT_KIND.get(header)
        count = EVENT_ARGS.get(header)
        flow = EVENT_FLOW_BEGIN <= kind <= EVENT_FLOW_END
        if (
            kind > EVENT_FLOW_END
            or EVENT_ASYNC_BEGIN <= kind <= EVENT_ASYNC_END
            or (flow and count)
        ):
            return False
        ts = self.time(at + 1)
        cursor = at + 2
        if EVENT_THREAD.get(header):
            track = self.threads.get(self.provider, EVENT_THREAD.get(header))
        elif cursor + 2 > end:
            return False
        else:
            track = self.koids.get(self.words[cursor], self.words[cursor + 1])
            cursor += 2
        if ts < 0 or track < 0:
            return False
        cursor = self.behind(EVENT_CATEGORY.get(header), cursor, end)
        if cursor >= 0:
            cursor = self.behind(EVENT_NAME.get(header), cursor, end)
        if cursor >= 0:
            cursor = self.arguments(count, cursor, end, kind == EVENT_COUNTER)
        if cursor < 0:
            return False
        word = 0
        if kind == EVENT_INSTANT:
            if cursor < end and 1 <= self.words[cursor] <= 2:
                return False
        elif flow or kind in (EVENT_COUNTER, EVENT_DURATION_COMPLETE):
            if cursor >= end:
                return False
            word = self.words[cursor]
            if kind == EVENT_COUNTER:
                return True
            if kind == EVENT_DURATION_COMPLETE:
                word = self.time(cursor) - ts
                if word < 0:
                    return False
        self.events.add(ts, track << KIND_BITS | kind, word, at, self.record)
        return True

    def switch(self, header: i64, at: i64, end: i64) -> Fallible[flag]:
        """Take a context switch or a wakeup; return False if something is to be noted about it."""
        kind = SCHED_KIND.get(header)
        if kind not in (SCHED_SWITCH, SCHED_WAKEUP) or SWITCH_CPU.get(header) >= MAX_CPUS:
            return False
        cursor = at + 2 + (2 if kind == SCHED_SWITCH else 1)
        if cursor > end or self.time(at + 1) < 0:
            return False
        at += 2
        while at < cursor:
            if self.koids.get(0, self.words[at]) < 0:
                return False
            at += 1
        count = SWITCH_ARGS.get(header)
        while count > 0:
            count -= 1
            if cursor >= end or ARG_KIND.get(self.words[cursor]) != ARG_INT32:
                return False
            if self.behind(ARG_NAME.get(self.words[cursor]), cursor + 1, end) < 0:
                return False
            cursor += ARG_WORDS.get(self.words[cursor])
        return True

    def arguments(self, count: i64, cursor: i64, end: i64, counter: flag) -> i64:
        """Return the word behind plain arguments of different names; -1 for others."""
        index = 0
        while index < count:
            if cursor >= end:
                return -1
            header = self.words[cursor]
            ref = ARG_NAME.get(header)
            kind = ARG_KIND.get(header)
            at = self.behind(ref, cursor + 1, end)
            if at < 0 or kind > ARG_BOOL:
                return -1
            if count > 1:
                if ref & INLINE_STRING:
                    return -1
                self.names[index] = self.strings.get(self.provider, ref) if ref else 0
                other = 0
                while other < index:
                    if self.names[other] == self.names[index]:
                        return -1
                    other += 1
            if counter and not (ARG_INT32 <= kind <= ARG_DOUBLE):
                return -1
            if kind == ARG_STRING:
                if self.behind(ARG_STRING_REF.get(header), at, end) < 0:
                    return -1
            elif ARG_INT64 <= kind <= ARG_DOUBLE or kind in (ARG_POINTER, ARG_KOID):
                if at >= end:
                    return -1
                if kind in (ARG_UINT64, ARG_KOID) and self.words[at] < 0:
                    return -1
            cursor += ARG_WORDS.get(header)
            index += 1
        return cursor
