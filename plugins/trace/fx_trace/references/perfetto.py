"""Perfetto: what its importer of traces makes of a file.

The model is that of the trace processor v52: records by their 12-bit size, provider by provider,
then events in the order of their times, nested on the tracks of their threads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from fx_trace import format as wire
from fx_trace.format import ArgType, EventType, MetadataType, ObjectType, RecordType, SchedulingType
from fx_trace.references.nesting import KIND_BITS, LOSSES
from fx_trace.references.operations import nested
from fx_trace.references.packets import PacketStream
from fx_trace.references.plain import LOW32, MAX_CPUS
from fx_trace.references.reading import LeftOut, Reading, nanoseconds
from fxframework.io.words import WORD

if TYPE_CHECKING:
    from fxframework.io.source import Source
    from fxframework.model.capture import Capture
    from fxframework.model.prediction import Prediction

__all__ = ["predict"]

SIGN: Final = 1 << 63
IDLE: Final = -(1 << 31)
"""The weight of an idle thread."""

NUMBERS = frozenset({ArgType.INT32, ArgType.UINT32, ArgType.INT64, ArgType.UINT64, ArgType.DOUBLE})
LONG = frozenset({ArgType.INT64, ArgType.UINT64, ArgType.DOUBLE, ArgType.POINTER, ArgType.KOID})
"""Types whose value is a word of its own."""
WEIGHTS: Final[dict[int, tuple[bytes, ...]]] = {
    SchedulingType.CONTEXT_SWITCH: (b"incoming_weight", b"outgoing_weight"),
    SchedulingType.THREAD_WAKEUP: (b"weight",),
}
FLOWS = frozenset({EventType.FLOW_BEGIN, EventType.FLOW_STEP, EventType.FLOW_END})
ASYNC = frozenset({EventType.ASYNC_BEGIN, EventType.ASYNC_INSTANT, EventType.ASYNC_END})


def predict(capture: Capture, found: Prediction) -> None:
    """Add what Perfetto makes of the bytes of a trace."""
    _Importer(capture.source, found).load()


class _Arg(NamedTuple):
    """An argument: its type, the number of its name, and the word or the bits of its value."""

    type: int
    name: int
    value: int


class _Importer(Reading):
    """One import: the tables that records fill, and what becomes of events.

    A kernel takes plain records; each other one is given to the handler of its type, which raises
    LeftOut if it is left out.
    """

    def __init__(self, source: Source, found: Prediction) -> None:
        super().__init__(source, found)
        self.packets = PacketStream()
        self.operations: dict[tuple[int, int], int] = {}
        """Numbers of the names and categories of asynchronous events."""
        self.handlers: Mapping[int, Callable[[int], None]] = {
            RecordType.METADATA: self._metadata,
            RecordType.INITIALIZATION: self._initialization,
            RecordType.STRING: self._string,
            RecordType.THREAD: self._thread,
            RecordType.EVENT: self._event,
            RecordType.BLOB: self._blob,
            RecordType.KERNEL_OBJECT: self._kernel_object,
            RecordType.SCHEDULING: self._scheduling,
        }

    def load(self) -> None:
        """Take all records, then all events by time."""
        if self.source.read(0, WORD) != wire.MAGIC_BYTES:
            self.found.add("no-magic", 0)
        elif self._take_records():
            events = self.plain.events.filled()
            names = [name for name, _ in self.operations]
            for event, loss, times in nested(events, len(self.tracks), names):
                offset, record = int(events["offset"][event]), int(events["record"][event])
                self.found.add(LOSSES[loss], offset, record, times=times)
        self.found.records = self.plain.record

    # --- Records ---------------------------------------------------------------------------------

    def _take_records(self) -> bool:
        """Take record after record; False where a record of size 0 ends the import."""
        plain, words, count = self.plain, self.words, len(self.words)
        passed = 0
        while plain.pos < count:
            if not plain.run():
                self.source.passed(passed * WORD, plain.pos * WORD)
                passed = plain.pos
                continue
            header = words[plain.pos]
            size = wire.SIZE.get(header)
            self.at, self.end = plain.pos, plain.pos + size
            if not size:
                self.note("size-zero")
                return False
            if self.end > count:
                self.note("cut")
                return True
            self._take(header)
            plain.record += 1
            plain.pos = self.end
        if self.source.size % WORD:
            self.found.add("odd-bytes", count * WORD, plain.record)
        return True

    def _take(self, header: int) -> None:
        """Take the record at hand."""
        kind = wire.RECORD_KIND.get(header)
        if self.provider is self.nobody and kind != RecordType.METADATA:
            self.note("provider")
        elif kind not in self.handlers:
            self.note("record-type")
            if kind == RecordType.LARGE and wire.LARGE_SIZE.get(header) > wire.SIZE.limit:
                self.note("large")
        else:
            try:
                self.handlers[kind](header)
            except LeftOut as why:
                self.note(str(why))

    def _metadata(self, header: int) -> None:
        kind = wire.METADATA_KIND.get(header)
        number = wire.PROVIDER_ID.get(header)
        if kind == MetadataType.PROVIDER_EVENT:
            self.note("buffer-full")
        elif kind == MetadataType.PROVIDER_INFO:
            self.behind(wire.PROVIDER_NAME_LENGTH.get(header), self.at + 1)
            self.introduce(number)
        elif kind == MetadataType.PROVIDER_SECTION:
            self.enter(self.providers.get(number, self.nobody))

    def _initialization(self, _header: int) -> None:
        if self.at + 1 >= self.end:
            raise LeftOut("short")
        self.provider.rate = self.words[self.at + 1]
        self.enter(self.provider)
        if self.at + 2 < self.end and self.words[self.at + 2]:
            self.note("base-tick")

    def _string(self, header: int) -> None:
        index = wire.STRING_INDEX.get(header)
        if not index:
            self.note("index-zero")
        else:
            text, _ = self.inline(wire.STRING_LENGTH.get(header), self.at + 1)
            self.plain.strings.put(self.provider.number, index, text)

    def _thread(self, header: int) -> None:
        index = wire.THREAD_INDEX.get(header)
        if not index:
            self.note("index-zero")
        elif self.at + 3 > self.end:
            raise LeftOut("short")
        else:
            track = self.track(self.words[self.at + 1], self.words[self.at + 2])
            self.plain.threads.put(self.provider.number, index, track)

    def _blob(self, header: int) -> None:
        if wire.BLOB_KIND.get(header) != wire.BlobType.PERFETTO:
            raise LeftOut("blob-type")
        size = wire.BLOB_LENGTH.get(header) & wire.STRING_FIELD_BYTES
        name = wire.BLOB_NAME.get(header)
        cursor = self.at + 1
        if name & wire.INLINE_STRING:
            cursor = self.behind(name, cursor)
        if cursor * WORD + size > self.end * WORD:
            raise LeftOut("short")
        if size:
            self.note("packets")
            why = self.packets.add(self.source.read(cursor * WORD, size))
            if why:
                self.note("packet", why)

    def _kernel_object(self, header: int) -> None:
        if self.at + 1 >= self.end:
            raise LeftOut("short")
        _, cursor = self.text(wire.OBJECT_NAME.get(header), self.at + 2)
        kind = wire.OBJECT_OWNER.get(header)
        koid = self.words[self.at + 1]
        if kind == ObjectType.PROCESS:
            if koid > LOW32:
                self.note("koid")
            return
        if kind != ObjectType.THREAD:
            raise LeftOut("object-type")
        process = 0
        args, _, lost = self._args(wire.OBJECT_ARGS.get(header), cursor, dropped=False)
        if lost:
            raise LeftOut(lost)
        for arg in args:
            if arg.name == self.number(b"process"):
                if arg.type != ArgType.KOID:
                    raise LeftOut("arg-type")
                process = arg.value
        self.track(process, koid)

    # --- Parts of records ------------------------------------------------------------------------

    def _args(
        self, count: int, cursor: int, *, dropped: bool = True
    ) -> tuple[list[_Arg], int, str]:
        """Arguments, the word behind them, and what is found wrong only when all are known.

        A reference that was not registered costs the record where ``dropped``.
        """
        args: list[_Arg] = []
        lost = ""
        for _ in range(count):
            base = cursor
            if base >= self.end:
                raise LeftOut("short")
            header = self.words[base]
            cursor += 1
            kind, ref, value = (
                field.get(header) for field in (wire.ARG_KIND, wire.ARG_NAME, wire.ARG_VALUE)
            )
            if ref & wire.INLINE_STRING:
                name, cursor = self.inline(ref, cursor)
            else:
                name = self.registered_text(ref)
                self._check_text(name, dropped)
            if kind == ArgType.STRING:
                ref = wire.ARG_STRING_REF.get(header)
                if ref & wire.INLINE_STRING:
                    self.behind(ref, cursor)
                else:
                    self._check_text(self.registered_text(ref), dropped)
            elif kind in LONG:
                if cursor < self.end:
                    value = self.words[cursor]
                elif dropped:
                    lost = "short"
                else:
                    raise LeftOut("short")
            args.append(_Arg(kind, name, value))
            cursor = base + wire.ARG_WORDS.get(header)
        return args, cursor, lost

    def _check_text(self, text: int, dropped: bool) -> None:
        if text < 0:
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
            elif arg.value >= SIGN and arg.type in {ArgType.UINT64, ArgType.KOID} and not counter:
                self.note("signed")

    # --- Events ----------------------------------------------------------------------------------

    def _event(self, header: int) -> None:
        ts = self.time(self.at + 1)
        ref = wire.EVENT_THREAD.get(header)
        cursor = self.at + 2
        inline: tuple[int, int] | None = None
        if not ref:
            if cursor + 2 > self.end:
                raise LeftOut("short")
            inline = self.words[cursor], self.words[cursor + 1]
            cursor += 2
        category, cursor = self.text(wire.EVENT_CATEGORY.get(header), cursor)
        name, cursor = self.text(wire.EVENT_NAME.get(header), cursor)
        kind = wire.EVENT_KIND.get(header)
        args, cursor, lost = self._args(wire.EVENT_ARGS.get(header), cursor)
        word = 0
        if kind in wire.EVENT_HAS_WORD:
            if cursor < self.end:
                word = self.words[cursor]
            else:
                lost = lost or "short"
        if lost:
            raise LeftOut(lost)
        track = self.track(*inline) if inline else self.registered(ref)
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
        word -= word // SIGN << 64
        self.plain.events.add(ts, track << KIND_BITS | kind, word, self.at, self.plain.record)

    def _scheduling(self, header: int) -> None:
        kind = wire.SCHED_KIND.get(header)
        if kind == SchedulingType.LEGACY_CONTEXT_SWITCH:
            self.time(self.at + 1)
            cursor = self.at + 2
            refs = [field.get(header) for field in (wire.LEGACY_OUTGOING, wire.LEGACY_INCOMING)]
            if cursor + 2 * refs.count(0) > self.end:
                raise LeftOut("short")
            for ref in refs:
                if ref:
                    self.registered(ref)
                else:
                    self.track(self.words[cursor], self.words[cursor + 1])
                    cursor += 2
            return
        names = WEIGHTS.get(kind)
        if names is None:
            raise LeftOut("event-type")
        self.time(self.at + 1)
        cursor = self.at + 2 + len(names)
        if cursor > self.end:
            raise LeftOut("short")
        for tid in self.words[self.at + 2 : cursor]:
            self.track(0, tid)
        args, _, lost = self._args(wire.SWITCH_ARGS.get(header), cursor)
        if lost:
            raise LeftOut(lost)
        weights = dict.fromkeys(map(self.number, names), 0)
        for arg in args:
            if arg.name in weights:
                if arg.type != ArgType.INT32:
                    raise LeftOut("arg-type")
                weights[arg.name] = arg.value - (arg.value // -IDLE << 32)
        if wire.SWITCH_CPU.get(header) >= MAX_CPUS and any(w != IDLE for w in weights.values()):
            self.note("cpu")
