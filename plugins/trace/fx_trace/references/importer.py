"""Importer: one walk over the records of a trace, as Perfetto takes them."""

from __future__ import annotations

from typing import final

import numpy as np
from numpy.typing import NDArray

from fx_trace import format as wire
from fx_trace.references import quirks
from fxframework.io.words import WORD
from fxframework.kernels.annotations import (
    Array,
    Column,
    Fallible,
    View,
    flag,
    i64,
    status,
    u64,
)
from fxframework.kernels.buffers import full, view
from fxframework.kernels.kernel import Kernel
from fxframework.kernels.maps import PairMap
from fxframework.kernels.notes import Notes
from fxframework.kernels.pools import Pool
from fxframework.kernels.rows import Rows

__all__ = ["BEHIND_PIECE", "END", "PACKETS_AT_HAND", "EventRows", "Importer"]

BEHIND_PIECE, PACKETS_AT_HAND, END = range(3)
"""Why the walk returns."""
MAX_CPUS = 4096
NS_PER_SECOND = 1_000_000_000
HALF = 32
LOW32 = 0xFFFFFFFF
LOW64 = 0xFFFFFFFFFFFFFFFF
NS_OF_HALF = NS_PER_SECOND << HALF
MOST = 0x7FFFFFFFFFFFFFFF
PIECE = 1 << 20
"""Words after which the walk returns."""
NOBODY = -1
"""The provider of a section whose records are left out."""
IDLE = 0x80000000
"""The weight of an idle thread, as 32 bits."""
NAMES = (b"", b"process", b"incoming_weight", b"outgoing_weight", b"weight")
EMPTY, PROCESS, INCOMING_WEIGHT, OUTGOING_WEIGHT, WEIGHT = range(5)
"""Numbers of names of arguments that the importer knows."""


@final
class EventRows(Rows):
    """Events in the order of the file.

    ``track`` is that of the thread, or the number of the name of an asynchronous operation; ``key``
    tells operations on one track apart; ``word`` is the length, or the id of a flow or operation.
    """

    ts: Column[i64]
    kind: Column[i64]
    track: Column[i64]
    key: Column[i64]
    word: Column[i64]
    at: Column[i64]
    record: Column[i64]


@final
class Providers(Rows):
    """Providers in the order of their introduction: ticks per second."""

    rate: Column[i64]


class Importer(Kernel):
    """Takes record after record: ``notes`` has what is lost, by number of its quirk.

    ``run`` returns BEHIND_PIECE after some words, PACKETS_AT_HAND behind a blob of ``nbytes`` bytes
    at word ``payload``, or END; ``failed`` says that the import ends in an error there.
    ``record`` counts records. ``events`` has those that get a place on a track.
    """

    words: View[i64]
    notes: Notes
    total: i64
    pos: i64
    record: i64
    at: i64
    end: i64
    payload: i64
    nbytes: i64
    failed: flag
    provider: i64
    ids: PairMap
    providers: Providers
    texts: Pool
    strings: PairMap
    threads: PairMap
    koids: PairMap
    tracks: PairMap
    operations: PairMap
    short: flag
    mistyped: flag
    kinds: Array[i64]
    names: Array[i64]
    values: Array[i64]
    events: EventRows

    def __init__(self, words: NDArray[np.int64], notes: Notes) -> None:
        self.words = view(words, "i8")
        self.notes = notes
        self.total = len(words)
        self.pos = 0
        self.record = 0
        self.at = 0
        self.end = 0
        self.payload = 0
        self.nbytes = 0
        self.failed = False
        self.provider = NOBODY
        self.ids = PairMap()
        self.providers = Providers()
        self.texts = Pool()
        for name in NAMES:
            self.texts.enter(name)
        self.texts.read_from(self.words)
        self.strings = PairMap()
        self.threads = PairMap()
        self.koids = PairMap()
        self.tracks = PairMap()
        self.operations = PairMap()
        self.short = False
        self.mistyped = False
        self.kinds = full(wire.MAX_ARGS, "i8")
        self.names = full(wire.MAX_ARGS, "i8")
        self.values = full(wire.MAX_ARGS, "i8")
        self.events = EventRows()

    def step(self) -> Fallible[i64]:
        """Take records."""
        if self.pos == 0:
            self.introduce(wire.DEFAULT_PROVIDER)
        until = self.pos + PIECE
        while self.pos < self.total:
            if self.pos >= until:
                return BEHIND_PIECE
            header = self.words[self.pos]
            self.at = self.pos
            self.end = self.pos + wire.SIZE.get(header)
            if self.end == self.at:
                self.failed = True
                self.note(quirks.SIZE_ZERO)
                return END
            if self.end > self.total:
                self.note(quirks.CUT)
                return END
            self.nbytes = 0
            self.take(header)
            self.record += 1
            self.pos = self.end
            if self.nbytes:
                return PACKETS_AT_HAND
        return END

    def take(self, header: i64) -> status:
        """Take the record at hand."""
        kind = wire.TYPE.get(header)
        if kind == wire.RECORD_METADATA:
            self.metadata(header)
        elif self.provider == NOBODY:
            self.note(quirks.PROVIDER)
        elif kind == wire.RECORD_EVENT:
            self.event(header)
        elif kind == wire.RECORD_SCHEDULING:
            self.scheduling(header)
        elif kind == wire.RECORD_STRING:
            self.string(header)
        elif kind == wire.RECORD_THREAD:
            self.thread(header)
        elif kind == wire.RECORD_INITIALIZATION:
            self.initialization()
        elif kind == wire.RECORD_KERNEL_OBJECT:
            self.kernel_object(header)
        elif kind == wire.RECORD_BLOB:
            self.blob(header)
        else:
            self.note(quirks.RECORD_TYPE)
            if kind == wire.RECORD_LARGE and wire.LARGE_SIZE.get(header) != wire.SIZE.get(header):
                self.note(quirks.LARGE)
        return 0

    def note(self, quirk: i64) -> Fallible[i64]:
        """Note a quirk at the record at hand; return -1."""
        self.notes.add(quirk, WORD * self.at, self.record, 0)
        return -1

    # --- Parts of records: methods return -1 where they have noted why the record is left out ---

    def time(self, at: i64) -> Fallible[i64]:
        """Return the time in a word."""
        if at >= self.end:
            return self.note(quirks.SHORT)
        ns = self.nanoseconds(self.words[at])
        return self.note(quirks.TIME) if ns < 0 else ns

    def nanoseconds(self, word: i64) -> i64:
        """Return the time of ticks as Perfetto computes it, by halves; -1 beyond 63 bits."""
        rate: u64 = self.providers.rate[self.provider] & LOW64
        if rate == 0:
            return -1
        upper: u64 = (word & LOW64) >> HALF
        high: u64 = NS_OF_HALF // rate
        if high and upper > LOW64 // high:
            return -1
        total: u64 = (upper * high + (word & LOW32) * NS_PER_SECOND // rate) & LOW64
        return -1 if total > MOST else total

    def behind(self, nbytes: i64, at: i64) -> Fallible[i64]:
        """Return the word behind a stream of bytes."""
        at += (nbytes + 7) // 8
        return at if at <= self.end else self.note(quirks.SHORT)

    def skip(self, ref: i64, at: i64, drops: flag) -> Fallible[i64]:
        """Return the word behind the string of a reference.

        One that was not registered costs the record where it ``drops``.
        """
        if ref & wire.INLINE_STRING:
            return self.behind(wire.STRING_REF_INDEX.get(ref), at)
        if ref and self.strings.get(self.provider, ref) < 0:
            if drops:
                return self.note(quirks.STRING_REF)
            self.note(quirks.THREAD_NAME_REF)
        return at

    def text(self, ref: i64, at: i64) -> Fallible[i64]:
        """Return the number of the string of a reference; -1 if it was not registered."""
        if ref & wire.INLINE_STRING:
            return self.texts.intern(at, wire.STRING_REF_INDEX.get(ref))
        return self.strings.get(self.provider, ref) if ref else EMPTY

    def track(self, pid: i64, tid: i64) -> Fallible[i64]:
        """Return the number of a thread's track."""
        found = self.koids.get(pid, tid)
        if found < 0:
            if (pid | tid) & LOW64 > LOW32:
                self.note(quirks.KOID)
            found = self.tracks.number(pid & LOW32, tid & LOW32)
            self.koids.put(pid, tid, found)
        return found

    def registered(self, index: i64) -> Fallible[i64]:
        """Return the number of the track of a thread that was registered."""
        track = self.threads.get(self.provider, index)
        if track < 0:
            self.note(quirks.THREAD_REF)
            return self.track(0, 0)
        return track

    def arguments(self, count: i64, at: i64, drops: flag) -> Fallible[i64]:
        """Take arguments; return the word behind them.

        ``short`` says that the value of one is missing.
        """
        self.short = False
        self.mistyped = False
        index = 0
        while index < count:
            if at >= self.end:
                return self.note(quirks.SHORT)
            header = self.words[at]
            kind = wire.ARG_TYPE.get(header)
            ref = wire.ARG_NAME.get(header)
            place = self.skip(ref, at + 1, drops)
            if place < 0:
                return -1
            self.kinds[index] = kind
            self.values[index] = wire.ARG_VALUE.get(header)
            self.names[index] = self.text(ref, at + 1)
            if kind == wire.ARG_STRING:
                if self.skip(wire.ARG_STRING_REF.get(header), place, drops) < 0:
                    return -1
            elif wire.ARG_INT64 <= kind <= wire.ARG_DOUBLE or kind in (
                wire.ARG_POINTER,
                wire.ARG_KOID,
            ):
                if place < self.end:
                    self.values[index] = self.words[place]
                elif drops:
                    self.short = True
                else:
                    return self.note(quirks.SHORT)
            at += wire.ARG_SIZE.get(header)
            index += 1
        return at

    def named(self, name: i64, kind: i64, count: i64) -> i64:
        """Return the value of the last argument of a name, or 0.

        ``mistyped`` says whether some argument asked for is of another type.
        """
        value = 0
        index = 0
        while index < count:
            if self.names[index] == name:
                self.mistyped |= self.kinds[index] != kind
                value = self.values[index]
            index += 1
        return value

    def check_arguments(self, count: i64, counter: flag) -> status:
        """Note what arguments lose that is kept otherwise."""
        if self.repeats(count):
            self.note(quirks.REPEATED)
        index = 0
        while index < count:
            kind = self.kinds[index]
            if counter:
                if not wire.ARG_INT32 <= kind <= wire.ARG_DOUBLE:
                    self.note(quirks.NOT_A_NUMBER)
            elif kind > wire.ARG_BOOL:
                self.note(quirks.ARG_VALUE)
            elif self.values[index] < 0 and (kind in (wire.ARG_UINT64, wire.ARG_KOID)):
                self.note(quirks.SIGNED)
            index += 1
        return 0

    def repeats(self, count: i64) -> flag:
        """Return whether arguments have the same name."""
        index = 1
        while index < count:
            other = 0
            while other < index:
                if self.names[other] == self.names[index]:
                    return True
                other += 1
            index += 1
        return False

    # --- Records ---------------------------------------------------------------------------------

    def metadata(self, header: i64) -> status:
        """Take what introduces a provider, or begins a section of one."""
        kind = wire.METADATA_TYPE.get(header)
        if kind == wire.PROVIDER_EVENT:
            self.note(quirks.BUFFER_FULL)
        elif kind == wire.PROVIDER_SECTION:
            self.provider = self.ids.get(wire.PROVIDER_ID.get(header), 0)
        elif (
            kind == wire.PROVIDER_INFO
            and self.behind(wire.PROVIDER_NAME_LENGTH.get(header), self.at + 1) > 0
        ):
            self.introduce(wire.PROVIDER_ID.get(header))
        return 0

    def introduce(self, id: i64) -> status:
        """Begin the section of a provider with empty tables."""
        number = self.providers.add_row()
        self.providers.rate[number] = wire.DEFAULT_TICKS_PER_SECOND
        self.ids.put(id, 0, number)
        self.provider = number
        return 0

    def initialization(self) -> Fallible[i64]:
        """Take a tick rate."""
        if self.at + 1 >= self.end:
            return self.note(quirks.SHORT)
        self.providers.rate[self.provider] = self.words[self.at + 1]
        if self.at + 2 < self.end and self.words[self.at + 2]:
            self.note(quirks.BASE_TICK)
        return 0

    def string(self, header: i64) -> Fallible[i64]:
        """Register a string."""
        index = wire.STRING_INDEX.get(header)
        nbytes = wire.STRING_LENGTH.get(header)
        if index == 0:
            return self.note(quirks.INDEX_ZERO)
        if self.behind(nbytes, self.at + 1) >= 0:
            self.strings.put(self.provider, index, self.texts.intern(self.at + 1, nbytes))
        return 0

    def thread(self, header: i64) -> Fallible[i64]:
        """Register a thread."""
        index = wire.THREAD_INDEX.get(header)
        if index == 0:
            return self.note(quirks.INDEX_ZERO)
        if self.at + 3 > self.end:
            return self.note(quirks.SHORT)
        track = self.track(self.words[self.at + 1], self.words[self.at + 2])
        self.threads.put(self.provider, index, track)
        return 0

    def blob(self, header: i64) -> Fallible[i64]:
        """Take a blob of packets."""
        if wire.BLOB_KIND.get(header) != wire.BLOB_PERFETTO:
            return self.note(quirks.BLOB_TYPE)
        at = self.at + 1
        ref = wire.BLOB_NAME.get(header)
        if ref & wire.INLINE_STRING:
            at = self.behind(wire.STRING_REF_INDEX.get(ref), at)
        if at < 0 or self.behind(wire.BLOB_LENGTH.get(header), at) < 0:
            return -1
        self.payload = at
        self.nbytes = wire.BLOB_LENGTH.get(header)
        if self.nbytes:
            self.note(quirks.PACKETS)
        return 0

    def kernel_object(self, header: i64) -> Fallible[i64]:
        """Take the koid of a process or a thread."""
        if self.at + 1 >= self.end:
            return self.note(quirks.SHORT)
        koid = self.words[self.at + 1]
        at = self.skip(wire.OBJECT_NAME.get(header), self.at + 2, True)
        if at < 0:
            return -1
        kind = wire.OBJECT_OWNER.get(header)
        if kind == wire.OBJECT_PROCESS:
            return self.note(quirks.KOID) if koid & LOW64 > LOW32 else 0
        if kind != wire.OBJECT_THREAD:
            return self.note(quirks.OBJECT_TYPE)
        count = wire.OBJECT_ARGS.get(header)
        if self.arguments(count, at, False) < 0:
            return -1
        process = self.named(PROCESS, wire.ARG_KOID, count)
        return self.note(quirks.ARG_TYPE) if self.mistyped else self.track(process, koid)

    def event(self, header: i64) -> Fallible[i64]:
        """Take an event."""
        kind = wire.EVENT_KIND.get(header)
        count = wire.EVENT_ARGS.get(header)
        index = wire.EVENT_THREAD.get(header)
        ts = self.time(self.at + 1)
        at = self.at + 2 if index else self.at + 4
        if ts < 0:
            return -1
        if at > self.end:
            return self.note(quirks.SHORT)
        category_at = at
        at = self.skip(wire.EVENT_CATEGORY.get(header), at, True)
        name_at = at
        if at >= 0:
            at = self.skip(wire.EVENT_NAME.get(header), at, True)
        if at >= 0:
            at = self.arguments(count, at, True)
        if at < 0:
            return -1
        word = 0
        if (
            kind == wire.EVENT_COUNTER
            or wire.EVENT_DURATION_COMPLETE <= kind <= wire.EVENT_FLOW_END
        ):
            if at < self.end:
                word = self.words[at]
            else:
                self.short = True
        if self.short:
            return self.note(quirks.SHORT)
        if index:
            track = self.registered(index)
        else:
            track = self.track(self.words[self.at + 2], self.words[self.at + 3])
        if kind == wire.EVENT_DURATION_COMPLETE:
            word = self.nanoseconds(word) - ts
            if word < 0:
                return self.note(quirks.BACKWARDS)
        elif kind == wire.EVENT_INSTANT and at < self.end and 1 <= self.words[at] <= 2:
            self.note(quirks.SCOPE)
        elif kind > wire.EVENT_FLOW_END:
            return self.note(quirks.EVENT_TYPE)
        if kind >= wire.EVENT_FLOW_BEGIN:
            if count:
                self.note(quirks.FLOW_ARGS)
        else:
            self.check_arguments(count, kind == wire.EVENT_COUNTER)
        if kind == wire.EVENT_COUNTER:
            return 0
        key = 0
        if wire.EVENT_ASYNC_BEGIN <= kind <= wire.EVENT_ASYNC_END:
            track = self.text(wire.EVENT_NAME.get(header), name_at)
            category = self.text(wire.EVENT_CATEGORY.get(header), category_at)
            key = self.operations.number(track, category)
        row = self.events.add_row()
        self.events.ts[row] = ts
        self.events.kind[row] = kind
        self.events.track[row] = track
        self.events.key[row] = key
        self.events.word[row] = word
        self.events.at[row] = self.at
        self.events.record[row] = self.record
        return row

    def scheduling(self, header: i64) -> Fallible[i64]:
        """Take a context switch or a wakeup."""
        kind = wire.SCHEDULING_TYPE.get(header)
        if kind > wire.SCHED_WAKEUP:
            return self.note(quirks.EVENT_TYPE)
        if self.time(self.at + 1) < 0:
            return -1
        at = self.at + 2
        if kind == wire.SCHED_LEGACY_SWITCH:
            outgoing = wire.LEGACY_OUTGOING.get(header)
            incoming = wire.LEGACY_INCOMING.get(header)
            if at + 2 * (outgoing == 0) + 2 * (incoming == 0) > self.end:
                return self.note(quirks.SHORT)
            at = self.switched(outgoing, at)
            return self.switched(incoming, at)
        behind = at + 2 if kind == wire.SCHED_SWITCH else at + 1
        if behind > self.end:
            return self.note(quirks.SHORT)
        while at < behind:
            self.track(0, self.words[at])
            at += 1
        count = wire.SWITCH_ARGS.get(header)
        if self.arguments(count, at, True) < 0:
            return -1
        if self.short:
            return self.note(quirks.SHORT)
        return self.weights(header, count)

    def switched(self, index: i64, at: i64) -> Fallible[i64]:
        """Take a thread of a switch, registered or at word ``at``; return the word behind it."""
        if index:
            self.registered(index)
            return at
        self.track(self.words[at], self.words[at + 1])
        return at + 2

    def weights(self, header: i64, count: i64) -> Fallible[i64]:
        """Take the weights of a switch or wakeup: on a CPU too high, all have to be idle."""
        first, second = WEIGHT, WEIGHT
        if wire.SCHEDULING_TYPE.get(header) == wire.SCHED_SWITCH:
            first, second = INCOMING_WEIGHT, OUTGOING_WEIGHT
        weight = self.named(first, wire.ARG_INT32, count)
        other = self.named(second, wire.ARG_INT32, count)
        if self.mistyped:
            return self.note(quirks.ARG_TYPE)
        if wire.SWITCH_CPU.get(header) >= MAX_CPUS and (weight != IDLE or other != IDLE):
            self.note(quirks.CPU)
        return 0
