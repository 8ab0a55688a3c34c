"""Perfetto: what its importer of traces makes of a file, as the table of its quirks and a model.

The model is that of the trace processor v52: records by their 12-bit size, provider by provider,
then events in the order of their times, nested on the tracks of their threads.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

import attrs
import numpy as np

from fx_trace import format as wire
from fx_trace.format import ArgType, EventType, MetadataType, ObjectType, RecordType, SchedulingType
from fx_trace.references.nesting import OPEN, AsyncTracks, Flows, Track
from fx_trace.references.packets import PacketStream
from fx_trace.references.walk import LeftOut, Walk
from fxframework.io.words import WORD
from fxframework.model.prediction import Effect, Prediction, Quirk

if TYPE_CHECKING:
    from fxframework.io.source import Source
    from fxframework.model.capture import Capture

__all__ = ["QUIRKS", "predict", "quirks"]

MAX_CPUS: Final = 4096
NS_PER_SECOND: Final = 1_000_000_000
MASK: Final = (1 << 64) - 1
IDLE: Final = -(1 << 31)
"""The weight of an idle thread."""

R, D, M = Effect.REFUSES, Effect.DROPS, Effect.MISREADS


def _quirk(key: str, effect: Effect, counter: str | None, title: str) -> Quirk:
    return Quirk(key=key, effect=effect, counter=counter, title=title)


QUIRKS: Final[tuple[Quirk, ...]] = (
    _quirk("no-magic", R, None, "a file that does not begin with the little-endian magic number "
           "record is not known as a trace"),
    Quirk(key="size-zero", effect=R, message="Unexpected record of size 0",
          title="a record of size 0 (12 bits) ends the import with an error"),
    _quirk("packet", R, None, "a packet of Perfetto's own inside blobs that is not protobuf ends "
           "the import with an error"),
    _quirk("cpu", R, None, "a context switch or wakeup on CPU 4096 or above crashes the importer"),
    _quirk("short", D, "fuchsia_record_read_error", "a record that is too short for its fields "
           "is left out"),
    _quirk("provider", D, "fuchsia_invalid_event", "records in the section of a provider that was "
           "not introduced are left out"),
    _quirk("string-ref", D, "fuchsia_invalid_string_ref", "a record with a string reference that "
           "was not registered is left out"),
    _quirk("thread-name-ref", M, "fuchsia_invalid_string_ref", "an argument of a thread object "
           "with a string reference that was not registered has no name or value"),
    _quirk("time", D, "fuchsia_timestamp_overflow", "an event whose time does not fit 63 bits of "
           "nanoseconds is left out; so is every event after a tick rate of 0"),
    _quirk("backwards", D, "fuchsia_timestamp_overflow", "a complete event that ends before it "
           "begins, or beyond 63 bits of nanoseconds, is left out"),
    _quirk("not-a-number", D, "fuchsia_non_numeric_counters", "a counter's argument that is not a "
           "number is left out"),
    _quirk("arg-type", D, "fuchsia_invalid_event_arg_type", "a weight that is not an int32, or a "
           "thread object's process that is not a koid, costs the record"),
    _quirk("overlap", D, "slice_drop_overlapping_complete_event", "a complete event that partly "
           "overlaps an earlier slice of its thread is left out"),
    _quirk("flow-outside", D, "flow_no_enclosing_slice", "a flow event is left out where no slice "
           "came before it on its thread"),
    _quirk("flow-twice", D, "flow_duplicate_id", "a flow that begins again before it ends is left "
           "out"),
    _quirk("flow-step-stray", D, "flow_step_without_start", "a step of a flow that did not begin "
           "is left out"),
    _quirk("flow-end-stray", D, "flow_end_without_start", "the end of a flow that did not begin is "
           "left out"),
    _quirk("truncated", M, "misplaced_end_event", "what is still open when a slice around it has "
           "ended is cut to the end of that slice"),
    _quirk("cut", D, None, "a last record that is cut off is left out"),
    _quirk("odd-bytes", D, None, "bytes at the end that are not a whole word are left out"),
    _quirk("large", M, None, "the size of a large record of more than 4,095 words is cut to 12 "
           "bits: what is inside it is taken for records"),
    _quirk("record-type", D, None, "log, userspace object, profiler and large records, and those "
           "of unknown types, are left out"),
    _quirk("object-type", D, None, "kernel objects other than processes and threads are left out"),
    _quirk("blob-type", D, None, "blobs that are not Perfetto's own are left out"),
    _quirk("event-type", D, None, "events and scheduling records of unknown types are left out"),
    _quirk("buffer-full", D, None, "the note that a provider's buffer was full is left out"),
    _quirk("index-zero", D, None, "a string or thread record with index 0 is ignored"),
    _quirk("end-stray", D, None, "an end without a begin is left out, with its arguments"),
    _quirk("flow-args", D, None, "the arguments of a flow event are left out"),
    _quirk("scope", M, None, "an instant of a process, or of all, is shown on its thread"),
    _quirk("too-deep", M, None, "a slice below 512 others is not nested, and is not ended"),
    _quirk("arg-value", M, None, "arguments that are blobs, or of unknown types, become the string "
           "`unknown`"),
    _quirk("signed", M, None, "unsigned integers and koids from 2^63 on become negative"),
    _quirk("repeated", M, None, "of several arguments of one name, the last one is kept"),
    _quirk("thread-ref", M, None, "a thread reference that was not registered becomes process 0, "
           "thread 0"),
    _quirk("koid", M, None, "koids of processes and threads are cut to 32 bits"),
    _quirk("base-tick", M, None, "the base tick of an initialization record is not subtracted"),
    _quirk("packets", Effect.UNPREDICTED, None, "Perfetto's own packets inside blobs are imported "
           "as such; what is lost of what is in them is not predicted"),
)  # fmt: skip
NUMBERS = frozenset({ArgType.INT32, ArgType.UINT32, ArgType.INT64, ArgType.UINT64, ArgType.DOUBLE})
LONG = frozenset({ArgType.INT64, ArgType.UINT64, ArgType.DOUBLE, ArgType.POINTER, ArgType.KOID})
"""Types whose value is a word of its own."""
WEIGHTS: Final[dict[int, tuple[bytes, ...]]] = {
    SchedulingType.CONTEXT_SWITCH: (b"incoming_weight", b"outgoing_weight"),
    SchedulingType.THREAD_WAKEUP: (b"weight",),
}
FLOWS = {
    EventType.FLOW_BEGIN: Flows.begin,
    EventType.FLOW_STEP: Flows.step,
    EventType.FLOW_END: Flows.end,
}
ASYNC = frozenset({EventType.ASYNC_BEGIN, EventType.ASYNC_INSTANT, EventType.ASYNC_END})


def quirks() -> tuple[Quirk, ...]:
    """Return the table."""
    return QUIRKS


def predict(capture: Capture, found: Prediction) -> None:
    """Add what Perfetto makes of the bytes of a trace."""
    _Importer(capture.source, found).load()


def nanoseconds(ticks: int, rate: int) -> int:
    """Return the time of ticks as Perfetto computes it, high and low half; -1 beyond 63 bits."""
    if not rate:
        return -1
    high = (ticks >> 32) * ((NS_PER_SECOND << 32) // rate)
    if high > MASK:
        return -1
    total = (high + (ticks & 0xFFFFFFFF) * NS_PER_SECOND // rate) & MASK
    return -1 if total >> 63 else total


@attrs.define
class _Arg:
    """An argument: its type, name and word or bits of value."""

    type: int
    name: bytes | None
    value: int


@attrs.define
class _Events:
    """Events in file order, a few numbers each: they are sorted before they are nested."""

    ts: array[int] = attrs.field(factory=lambda: array("q"))
    what: array[int] = attrs.field(factory=lambda: array("Q"))
    """Event type, and above it the number of a track, or of a name and category."""
    word: array[int] = attrs.field(factory=lambda: array("Q"))
    """Length, or correlation id."""
    offset: array[int] = attrs.field(factory=lambda: array("Q"))
    record: array[int] = attrs.field(factory=lambda: array("Q"))

    def in_order(self) -> Iterator[int]:
        """Indexes by time; those of one time in file order."""
        times = np.frombuffer(self.ts, np.int64) if self.ts else np.empty(0, np.int64)
        if bool((times[1:] >= times[:-1]).all()):
            return iter(range(len(times)))
        return iter(np.argsort(times, kind="stable"))


class _Importer(Walk):
    """One import: the tables that records fill, and what becomes of events."""

    wide_sizes = False

    def __init__(self, source: Source, found: Prediction) -> None:
        super().__init__(source, found)
        self.events = _Events()
        self.packets = PacketStream()
        self.tracks: dict[tuple[int, int], int] = {}
        """Numbers of tracks, by the process and thread of 32 bits."""
        self.threads: dict[tuple[int, int], int] = {}
        """The same by the koids as they are in the file."""
        self.operations: dict[tuple[bytes, bytes], int] = {}
        """Numbers of the names and categories of asynchronous events."""

    def load(self) -> None:
        """Take all records, then all events by time."""
        if self.source.read(0, WORD) != wire.MAGIC_BYTES:
            self.found.add("no-magic", 0)
        elif self.run():
            self._nest()
        self.found.records = self.record

    def handlers(self) -> Mapping[int, Callable[[int], None]]:
        """Return the handlers, by record type."""
        return {
            RecordType.METADATA: self._metadata,
            RecordType.INITIALIZATION: self._initialization,
            RecordType.STRING: self._string,
            RecordType.THREAD: self._thread,
            RecordType.EVENT: self._event,
            RecordType.BLOB: self._blob,
            RecordType.KERNEL_OBJECT: self._kernel_object,
            RecordType.SCHEDULING: self._scheduling,
        }

    # --- Records ---------------------------------------------------------------------------------

    def zero_size(self, _header: int) -> int:
        """Return a record of size 0 ends the import."""
        self.note("size-zero")
        return 0

    def other(self, header: int) -> None:
        """A record of a type that is left out."""
        self.note("record-type")
        if header & 15 == RecordType.LARGE and wire.LARGE_SIZE.get(header) > 0xFFF:
            self.note("large")

    def _metadata(self, header: int) -> None:
        kind = header >> 16 & 15
        if kind == MetadataType.PROVIDER_EVENT:
            self.note("buffer-full")
        else:
            self.enter_provider(kind, header)

    def _initialization(self, _header: int) -> None:
        if self.at + 1 >= self.end:
            raise LeftOut("short")
        self.provider.rate = self.words[self.at + 1]
        if self.at + 2 < self.end and self.words[self.at + 2]:
            self.note("base-tick")

    def _string(self, header: int) -> None:
        index = header >> 16 & 0x7FFF
        if not index:
            self.note("index-zero")
        else:
            text, _ = self.inline(header >> 32 & 0x7FFF, self.at + 1)
            self.provider.strings[index] = text

    def _thread(self, header: int) -> None:
        index = header >> 16 & 0xFF
        if not index:
            self.note("index-zero")
        elif self.at + 3 > self.end:
            raise LeftOut("short")
        else:
            pid, tid = self.words[self.at + 1 : self.at + 3]
            self.provider.threads[index] = self._track(pid, tid)

    def _blob(self, header: int) -> None:
        if header >> 48 & 0xFF != wire.BlobType.PERFETTO:
            raise LeftOut("blob-type")
        size = header >> 32 & 0x7FFF
        name = header >> 16 & 0xFFFF
        cursor = self.at + 1
        if name & wire.INLINE_STRING:
            cursor = self.behind(name, cursor)
        if cursor + (size + 7 >> 3) > self.end:
            raise LeftOut("short")
        if size:
            self.note("packets")
            why = self.packets.add(self.source.read((self.first + cursor) * WORD, size))
            if why:
                self.note("packet", why)

    def _kernel_object(self, header: int) -> None:
        if self.at + 1 >= self.end:
            raise LeftOut("short")
        _, cursor = self.text(header >> 24 & 0xFFFF, self.at + 2)
        kind = header >> 16 & 0xFF
        koid = self.words[self.at + 1]
        if kind == ObjectType.PROCESS:
            if koid >> 32:
                self.note("koid")
            return
        if kind != ObjectType.THREAD:
            raise LeftOut("object-type")
        process = 0
        args, _, lost = self._args(header >> 40 & 15, cursor, dropped=False)
        if lost:
            raise LeftOut(lost)
        for arg in args:
            if arg.name == b"process":
                if arg.type != ArgType.KOID:
                    raise LeftOut("arg-type")
                process = arg.value
        self._track(process, koid)

    # --- Parts of records ------------------------------------------------------------------------

    def _args(
        self, count: int, cursor: int, *, dropped: bool = True
    ) -> tuple[list[_Arg], int, str]:
        """Arguments, the word behind them, and what is found wrong only when all are known.

        A reference that was not registered costs the record where ``dropped``.
        """
        args: list[_Arg] = []
        lost = ""
        words, end, strings = self.words, self.end, self.provider.strings
        for _ in range(count):
            base = cursor
            if base >= end:
                raise LeftOut("short")
            header = words[base]
            cursor += 1
            ref = header >> 16 & 0xFFFF
            kind = header & 15
            name: bytes | None
            if ref & wire.INLINE_STRING:
                name, cursor = self.inline(ref, cursor)
            else:
                name = strings.get(ref) if ref else b""
                if name is None:
                    self._unregistered(dropped)
            value = header >> 32
            if kind == ArgType.STRING:
                ref = value & 0xFFFF
                if ref & wire.INLINE_STRING:
                    self.behind(ref, cursor)
                elif ref and ref not in strings:
                    self._unregistered(dropped)
            elif kind in LONG:
                if cursor < end:
                    value = words[cursor]
                elif dropped:
                    lost = "short"
                else:
                    raise LeftOut("short")
            args.append(_Arg(kind, name, value))
            cursor = base + (header >> 4 & 0xFFF)
        return args, cursor, lost

    def _unregistered(self, dropped: bool) -> None:
        if dropped:
            raise LeftOut("string-ref")
        self.note("thread-name-ref")

    def _check_args(self, args: list[_Arg], *, counter: bool) -> None:
        """Note what arguments lose that is kept otherwise."""
        if len(args) > 1 and len({arg.name for arg in args}) < len(args):
            self.note("repeated")
        for arg in args:
            if counter and arg.type not in NUMBERS:
                self.note("not-a-number")
            elif arg.type > ArgType.BOOL:
                self.note("arg-value")
            elif arg.value >> 63 and arg.type in {ArgType.UINT64, ArgType.KOID} and not counter:
                self.note("signed")

    def _track(self, pid: int, tid: int) -> int:
        """Return the number of a thread's track."""
        found = self.threads.get((pid, tid))
        if found is None:
            if pid >> 32 or tid >> 32:
                self.note("koid")
            short = pid & 0xFFFFFFFF, tid & 0xFFFFFFFF
            found = self.tracks.setdefault(short, len(self.tracks))
            self.threads[pid, tid] = found
        return found

    def _registered(self, ref: int) -> int:
        """Return the number of the track of a thread reference."""
        track = self.provider.threads.get(ref)
        if track is None:
            self.note("thread-ref")
            return self._track(0, 0)
        return track

    def _time(self, cursor: int) -> int:
        """Return the time in the word behind the header."""
        if cursor >= self.end:
            raise LeftOut("short")
        ts = nanoseconds(self.words[cursor], self.provider.rate)
        if ts < 0:
            raise LeftOut("time")
        return ts

    # --- Events ----------------------------------------------------------------------------------

    def _event(self, header: int) -> None:
        cursor = self.at + 1
        ts = self._time(cursor)
        ref = header >> 24 & 0xFF
        cursor += 1
        inline: tuple[int, int] | None = None
        if not ref:
            if cursor + 2 > self.end:
                raise LeftOut("short")
            inline = self.words[cursor], self.words[cursor + 1]
            cursor += 2
        category, cursor = self.text(header >> 32 & 0xFFFF, cursor)
        name, cursor = self.text(header >> 48, cursor)
        kind = header >> 16 & 15
        count = header >> 20 & 15
        args: list[_Arg] = []
        lost = ""
        if count:
            args, cursor, lost = self._args(count, cursor)
        word = 0
        if kind in wire.EVENT_HAS_WORD:
            if cursor < self.end:
                word = self.words[cursor]
            else:
                lost = lost or "short"
        if lost:
            raise LeftOut(lost)
        track = self._track(*inline) if inline else self._registered(ref)
        if kind == EventType.DURATION_COMPLETE:
            word = nanoseconds(word, self.provider.rate) - ts
            if word < 0:
                raise LeftOut("backwards")
        elif kind == EventType.INSTANT and cursor < self.end and self.words[cursor] in {1, 2}:
            self.note("scope")
        elif kind > EventType.FLOW_END:
            raise LeftOut("event-type")
        if args:
            if kind in FLOWS:
                self.note("flow-args")
            else:
                self._check_args(args, counter=kind == EventType.COUNTER)
        if kind == EventType.COUNTER:
            return
        if kind in ASYNC:
            operations = self.operations
            track = operations.setdefault((name, category), len(operations))
        events = self.events
        events.ts.append(ts)
        events.what.append(track << 4 | kind)
        events.word.append(word)
        events.offset.append(self.offset)
        events.record.append(self.record)

    def _scheduling(self, header: int) -> None:
        kind = header >> 60
        if kind == SchedulingType.LEGACY_CONTEXT_SWITCH:
            self._time(self.at + 1)
            cursor = self.at + 2
            refs = [header >> low & 0xFF for low in (28, 36)]
            if cursor + 2 * refs.count(0) > self.end:
                raise LeftOut("short")
            for ref in refs:
                if ref:
                    self._registered(ref)
                else:
                    self._track(self.words[cursor], self.words[cursor + 1])
                    cursor += 2
            return
        names = WEIGHTS.get(kind)
        if names is None:
            raise LeftOut("event-type")
        self._time(self.at + 1)
        cursor = self.at + 2 + len(names)
        if cursor > self.end:
            raise LeftOut("short")
        for tid in self.words[self.at + 2 : cursor]:
            self._track(0, tid)
        args, _, lost = self._args(header >> 16 & 15, cursor)
        if lost:
            raise LeftOut(lost)
        weights = dict.fromkeys(names, 0)
        for arg in args:
            if arg.name in weights:
                if arg.type != ArgType.INT32:
                    raise LeftOut("arg-type")
                weights[arg.name] = arg.value - (arg.value >> 31 << 32)
        if header >> 20 & 0xFFFF >= MAX_CPUS and any(w != IDLE for w in weights.values()):
            self.note("cpu")

    # --- Nesting ---------------------------------------------------------------------------------

    def _nest(self) -> None:
        """Put all events on their tracks, by time."""
        events = self.events
        tracks: dict[int, Track] = {}
        operations = list(self.operations)
        async_tracks, flows = AsyncTracks(), Flows()
        for index in events.in_order():
            ts, what, word = events.ts[index], events.what[index], events.word[index]
            kind, number = what & 15, what >> 4
            if kind in FLOWS:
                lost = FLOWS[EventType(kind)](flows, tracks.get(number), word)
            elif kind in ASYNC:
                key = operations[number]
                row = async_tracks.of(key[0], word)
                if kind == EventType.ASYNC_BEGIN:
                    track = row.begin(word)
                    lost = track.begin(ts, OPEN, number)
                elif kind == EventType.ASYNC_INSTANT:
                    track = row.instant(word)
                    lost = track.begin(ts, 0, number)
                else:
                    track = row.end(word)
                    lost = None if track.end(ts, number) else "end-stray"
                if track.truncated:
                    self._lose("truncated", index, track.truncated)
                    track.truncated = 0
            else:
                found = tracks.get(number)
                if found is None:
                    found = tracks[number] = Track()
                if kind == EventType.DURATION_END:
                    lost = None if found.end(ts, None) else "end-stray"
                else:
                    lost = found.begin(ts, OPEN if kind == EventType.DURATION_BEGIN else word, 0)
                if found.truncated:
                    self._lose("truncated", index, found.truncated)
                    found.truncated = 0
            if lost is not None:
                self._lose(lost, index)

    def _lose(self, key: str, index: int, times: int = 1) -> None:
        events = self.events
        self.found.add(key, events.offset[index], events.record[index], times=times)
