"""Merges the logs of several captures, of any format, into one file, in the order of time.

Records that have the form of the output are copied as bytes: structured records, those of rings
too, or legacy packets. Rows of `logs` of other captures are encoded into a temporary file. Memory
holds the place, size, time and tag of each record. The records of a single capture keep their
order.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fx_log import format as wire
from fx_log import rules
from fx_log.export.presentation import SIGNED, UNSIGNED, Head, left_out, walk
from fx_log.format import ArgType, LegacyPacket, LogRecord
from fx_log.read.capture import LogCapture, StreamCapture
from fx_log.read.decoder import STATE
from fx_log.read.frames import Frames
from fx_log.read.records import Damaged, Padding, StreamHeader
from fx_log.severity import Level
from fx_log.write.arguments import (
    MAX_VALUE_WORDS,
    argument_bytes,
    name_head,
    record_bytes,
    shortened,
    text_argument,
)
from fx_log.write.convert import (
    ATTRIBUTIONS,
    BEHIND,
    NO_LOG,
    SEVERITIES,
    TAGS,
    component_of,
    convert_attribution,
    legacy,
    manifest_record,
    rolled_out_of,
    structured,
)
from fx_log.write.encoder import RecordEncoder
from fx_log.write.redaction import Redactor
from fxframework.errors import UsageError, WriteRefusedError
from fxframework.io.sink import Sink
from fxframework.io.source import Source, spool_file
from fxframework.io.words import WORD
from fxframework.kernels.sorting import stable_order
from fxframework.model.capture import Capture, OpenRequest, Window
from fxframework.model.strings import TextColumn
from fxframework.model.table import Table

__all__ = ["Merger", "PacketMerger", "open_merge", "open_stream_merge"]

I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
BUFFER: Final = 1 << 20
CACHED: Final = 1 << 16
"""Number of distinct arguments whose bytes are cached."""
_ATTRIBUTION: Final = {
    wire.MONIKER: ArgType.STRING, wire.URL: ArgType.STRING, wire.ROLLED_OUT: ArgType.UINT64,
}  # fmt: skip
_KNOWN: Final = {
    name.encode(): int(kind) for name, kind in {**wire.WELL_KNOWN, **_ATTRIBUTION}.items()
}
SHORT: Final = 4096
"""Longest text that is cached, in bytes."""
EARLIEST: Final = -(1 << 63)
_MESSAGE: Final = name_head("message")
_WORD: Final = struct.Struct("<Q").pack
_INT64: Final = struct.Struct("<q").pack
TIME_AT: Final = LegacyPacket.layout.place("timestamp").offset


class _Key(NamedTuple):
    """A row of `args`."""

    name: int
    kind: int
    value: Any
    """The value; for a string, or for bytes of an unknown type, its code."""


class _Row(NamedTuple):
    """A log, from the tables."""

    ts: int
    head: Head
    message: bytes
    keys: Sequence[_Key]
    dropped: int
    rolled_out: int
    verbosity: int


def _keys(args: Table) -> list[_Key]:
    """Return the rows of `args` as keys."""
    out = []
    for name, kind, signed, unsigned, real, code in args.tuples(
        "name", "type", "int", "uint", "float", "str"
    ):
        if kind == ArgType.STRING:
            key = _Key(name, kind, code)
        elif code >= 0:
            key = _Key(name, -1 - kind, code)
        elif kind in SIGNED:
            key = _Key(name, ArgType.INT64, signed)
        elif kind in UNSIGNED:
            key = _Key(name, ArgType.UINT64, unsigned)
        elif kind == ArgType.DOUBLE:
            key = _Key(name, kind, real)
        elif kind == ArgType.BOOL:
            key = _Key(name, kind, bool(signed))
        else:
            key = _Key(name, ArgType.NULL, None)
        out.append(key)
    return out


class _Shape(NamedTuple):
    """The common parts of logs with the same ``Head``, as bytes of arguments."""

    severity: int
    start: bytes
    """pid and tid."""
    place: bytes
    """file and line."""
    tags: bytes
    tag: int
    """The tag of the component; 0 without one."""


def _whole(capture: Capture) -> Capture:
    """Return the capture of which one shows a part, or itself."""
    return capture.whole if isinstance(capture, Window) else capture


def _is_legacy(capture: Capture) -> bool:
    return capture.format.startswith("log-legacy")


def _decoded(data: bytes) -> str:
    return data.decode(errors="surrogateescape")


# --- Rows -----------------------------------------------------------------------------------------


class _LogRows:
    """Encodes the rows of `logs` of a capture as structured records; manifests name components."""

    def __init__(self, capture: Capture, dropped: Counter[str]) -> None:
        self._capture = capture
        self._pool = capture.strings
        self._dropped = dropped
        self._components: dict[tuple[bytes, bytes], int] = {}
        """Tags of components, by moniker and url."""
        self._texts: dict[int, bytes] = {}
        self._names: dict[int, tuple[int, bytes]] = {}
        self._arguments: dict[tuple[int, int], bytes] = {}
        self._shapes: dict[Head, _Shape] = {}
        self._manifests = b""
        """Those of components that are new in a row."""

    def pieces(self) -> Iterator[bytearray]:
        """Yield the records, in pieces."""
        buffer = bytearray()
        for batch in walk(self._capture, _keys, self._dropped):
            heads = {head: Head.of(head) for head in set(batch.heads)}
            for row in map(
                _Row,
                np.asarray(batch.ts).tolist(),
                map(heads.__getitem__, batch.heads),
                batch.messages.raw(),
                batch.args,
                batch.dropped,
                batch.rolled_out,
                batch.verbosity,
            ):
                buffer += self._record(row)
            if len(buffer) >= BUFFER:
                yield buffer
                buffer = bytearray()
        yield buffer

    def _record(self, row: _Row) -> bytes:
        """Return the record of a row, with those that it needs before it."""
        shape = self._shapes.get(row.head)
        try:
            if shape is None:
                shape = self._shape(row.head)
        except WriteRefusedError:
            self._dropped["logs"] += 1
            return b""
        if row.rolled_out:
            self._dropped["counts of logs rolled out"] += 1
        before, self._manifests = self._manifests, b""
        message = row.message if row.head.has_message else None
        try:
            return before + self._whole(row, shape, self._body(row, shape, message))
        except WriteRefusedError:  # logs of other formats may be larger than a record
            return before + self._cut(row, shape)

    @staticmethod
    def _whole(row: _Row, shape: _Shape, body: bytes) -> bytes:
        return record_bytes(shape.severity, row.ts, body, tag_bits=shape.tag)

    def _cut(self, row: _Row, shape: _Shape) -> bytes:
        """Return a part of a log that is too large: cut its message, then leave out its keys."""
        for kept in (row, row._replace(keys=())):
            try:
                rest = len(self._body(kept, shape, b""))
            except WriteRefusedError:
                continue
            room = 8 * MAX_VALUE_WORDS - rest
            if room < 0:
                continue
            self._dropped["logs, in part"] += 1
            if len(kept.keys) < len(row.keys):
                self._dropped["keys"] += len(row.keys)
            message = shortened(row.message, min(room, wire.MAX_STRING))
            return self._whole(row, shape, self._body(kept, shape, message))
        self._dropped["logs"] += 1
        return b""

    def _tag(self, head: Head) -> int:
        """Return the tag of a component; that of a new one gets a manifest."""
        if head.component < 0:
            return 0
        who = self._text(head.component), self._text(head.url)
        if who not in self._components:
            tag = len(self._components) + 1
            self._manifests += manifest_record(tag, *map(_decoded, who)).pack()
            self._components[who] = tag
        return self._components[who]

    # --- arguments ---

    def _shape(self, head: Head) -> _Shape:
        """Return the common parts of all logs with this head."""
        start = place = b""
        if head.pid is not None:
            start += argument_bytes("pid", ArgType.UINT64, head.pid)
        if head.tid is not None:
            start += argument_bytes("tid", ArgType.UINT64, head.tid)
        if head.file >= 0:
            place += argument_bytes("file", ArgType.STRING, self._text(head.file))
        if head.line is not None:
            place += argument_bytes("line", ArgType.UINT64, head.line)
        shape = _Shape(
            severity=head.severity if head.level >= 0 else int(Level.INFO),
            start=start,
            place=place,
            tags=b"".join(argument_bytes("tag", ArgType.STRING, tag) for tag in head.tags),
            tag=self._tag(head),
        )
        if len(self._shapes) < CACHED:
            self._shapes[head] = shape
        return shape

    def _body(self, row: _Row, shape: _Shape, message: bytes | None) -> bytes:
        """Return the arguments, in the order of the reference writer."""
        parts = [shape.start]
        if row.dropped:
            parts.append(argument_bytes("num_dropped", ArgType.UINT64, row.dropped))
        parts.append(shape.place)
        if row.verbosity:
            parts.append(argument_bytes("verbosity", ArgType.INT64, row.verbosity))
        if message is not None:
            parts.append(text_argument(*_MESSAGE, message))
        return b"".join((*parts, *map(self._argument, row.keys), shape.tags))

    def _text(self, code: int) -> bytes:
        text = self._texts.get(code)
        if text is None:
            text = self._texts[code] = self._pool.bytes_of(code) if code >= 0 else b""
        return text

    def _argument(self, key: _Key) -> bytes:
        """Return the bytes of a key; those of texts are cached."""
        name, kind, value = key
        if kind == ArgType.STRING:
            made = self._arguments.get((name, value))
            if made is None:
                made = self._made(self._text(name), kind, self._text(value))
                if len(self._arguments) < CACHED and len(made) < SHORT:
                    self._arguments[name, value] = made
            return made
        if kind == ArgType.INT64:
            head = self._names.get(name)
            if head is not None:
                return b"".join((_WORD(head[0] + 0x13), head[1], _INT64(value)))
            text = self._text(name)
            if text not in _KNOWN and len(text) < SHORT:
                self._names[name] = name_head(text)
        return self._made(self._text(name), kind, value)

    def _made(self, name: bytes, kind: int, value: Any) -> bytes:
        if kind < 0:
            self._dropped["values that are bytes"] += 1
            return b""
        if _KNOWN.get(name) == kind:
            self._dropped["names of keys, which got an underscore"] += 1
            name += b"_"
        return argument_bytes(name, kind, value)


# --- Merging --------------------------------------------------------------------------------------


class _Part(NamedTuple):
    """The records of a capture: bytes, and columns of where in them each lies and what it says."""

    data: U8
    columns: dict[str, I64]
    """``starts``, ``lengths`` and ``ts``; of structured records also ``tags``, their tag bits, and
    ``components``, the number of what a manifest names (of other records -1)."""


class _MergerBase:
    """Base of both mergers (``fxframework.registry.ExportSession``)."""

    opening = b""
    """The bytes before the first record."""
    losses: ClassVar[Mapping[str, str]]
    """What findings of a capture count that is left out."""

    def __init__(self, sink: Sink, redactor: Redactor | None) -> None:
        self._sink = sink
        self._redactor = redactor
        self._dropped: Counter[str] = Counter()
        self._parts: list[_Part] = []

    def write(self, capture: Capture) -> None:
        """Add the logs of a capture, whose bytes ``close`` copies."""
        self._parts.append(self._part(self._prepared(capture)))
        self._dropped += left_out(capture)
        capture.scan()
        for code, what in self.losses.items():
            self._dropped[what] += capture.diagnostics.counts.get(code, 0)
        if capture.utc_offset_ns is not None:
            self._dropped["the offset from UTC"] += 1

    def close(self) -> Mapping[str, int]:
        """Write the records. Return the counts of what could not be written, by name."""
        self._sink.write(self.opening)
        if self._parts:
            self._write()
        if self._redactor is not None:
            for what, count in self._redactor.counts.items():
                self._dropped[f"redacted: {what}"] += count
            for key in self._redactor.absent:
                self._dropped[f"to be redacted, but not there: {key}"] += 1
        return +self._dropped

    def _prepared(self, capture: Capture) -> Capture:
        """Return a capture with the records to write for one."""
        raise NotImplementedError

    def _spooled(self, kind: type[LogCapture], pieces: Iterable[bytes | bytearray]) -> LogCapture:
        """Return a capture of bytes, which are kept in a temporary file."""
        name = self._sink.name
        with spool_file() as spool:
            sink = Sink(spool, name=name)
            sink.budget = self._sink.budget
            for piece in pieces:
                sink.write(piece)
            return kind(Source.spooled(spool, name=name), OpenRequest())

    def _part(self, capture: Capture) -> _Part:
        """Return the records of a capture."""
        whole = _whole(capture)
        assert isinstance(whole, LogCapture)  # noqa: S101 (`_prepared` sees to it)
        file = whole.framed()
        left_out = capture.offsets_left_out() if isinstance(capture, Window) else None
        blocks = [frames.sound() for frames in file.blocks()]
        frames = Frames.joined(blocks)
        if left_out is not None:
            frames = frames.take(~np.isin(frames.offset, left_out))
        return self._placed(whole.format, file.data, frames)

    def _placed(self, form: str, data: U8, frames: Frames) -> _Part:
        """Return the records that some frames are."""
        raise NotImplementedError

    def _write(self) -> None:
        """Write the records in the order of time; those of a single capture in their own."""
        columns = {
            name: np.concatenate([part.columns[name] for part in self._parts])
            for name in self._parts[0].columns
        }
        ts = columns["ts"]
        several = len(self._parts) > 1
        order = stable_order(ts) if several else None
        if order is None:
            order = np.arange(ts.size)
        ends = np.cumsum(columns["lengths"][order])
        cuts = np.arange(BUFFER, int(ends[-1]) if ends.size else 0, BUFFER)
        for rows in np.split(order, np.searchsorted(ends, cuts)):
            self._sink.write(self._gathered(rows, columns).data.data)

    def _gathered(self, rows: I64, columns: Mapping[str, I64]) -> TextColumn:
        """Return the bytes of the records of some rows, in this order."""
        bounds = np.cumsum([part.columns["ts"].size for part in self._parts])
        of_parts = np.searchsorted(bounds, rows, "right")
        grouped = np.argsort(of_parts, kind="stable")
        begins = rows - np.append(0, bounds)[of_parts]
        lengths = columns["lengths"][rows]
        pieces = []
        for part, mine in zip(
            self._parts,
            np.split(grouped, np.searchsorted(of_parts[grouped], np.arange(1, bounds.size))),
            strict=True,
        ):
            starts = part.columns["starts"][begins[mine]]
            pieces.append(TextColumn.gather(part.data, starts, lengths[mine]).data)
        places = np.empty_like(rows)
        places[grouped] = np.cumsum(lengths[grouped]) - lengths[grouped]
        return TextColumn.gather(np.concatenate(pieces), places, lengths)


def _sound(capture: Capture) -> Iterator[Any]:
    """Yield the records of a capture, without damage and padding."""
    return (r for r in capture.checked_records() if not isinstance(r, Damaged | Padding))


class Merger(_MergerBase):
    """Merges logs into structured records.

    ``attribution`` selects the place of attribution: ``manifest`` (a tag, named by a control
    record), ``in_record`` (moniker and url at the end), ``none`` or ``keep``. A tag that captures
    use for different components is changed in the later one. Manifests of several captures come
    first.
    """

    losses: ClassVar[Mapping[str, str]] = {
        rules.ENTRY_WITHOUT_RECORD.code: NO_LOG,
        rules.ENTRY_TRAILING_BYTES.code: BEHIND,
    }

    def __init__(self, sink: Sink, *, attribution: str, redactor: Redactor | None) -> None:
        super().__init__(sink, redactor)
        self._attribution = attribution
        self._components: dict[tuple[str, str], int] = {}
        """Numbers of components, by moniker and url."""
        self._owners: dict[int, int] = {0: ~0}
        """The component of each tag: its number, or ~tag where nothing names it."""
        self._moved: dict[int, int] = {}
        """New tags of components."""
        self._free = wire.CONTROL - 1

    def _prepared(self, capture: Capture) -> Capture:
        to = self._attribution
        if not isinstance(_whole(capture), LogCapture):
            capture = self._spooled(LogCapture, _LogRows(capture, self._dropped).pieces())
            to = "keep" if to == "manifest" else to
        options = capture.request.options
        if to == "keep" and options.get("suffix"):
            to = "manifest"
        packets = _is_legacy(capture)
        if to == "keep" and self._redactor is None and not packets:
            return capture
        lost: Counter[str] = Counter()
        records = _sound(capture)
        if packets or capture.format == "log-ring":
            records = structured(records, lost, era=options.get("severity_era", "current"))
        if to != "keep":
            records = convert_attribution(records, to, self._dropped)
        if self._redactor is not None:
            records = filter(None, map(self._redactor.redact, records))
        made = self._spooled(LogCapture, map(RecordEncoder("log").encode, records))
        for what in (TAGS, SEVERITIES):
            self._dropped[what] += lost[what]
        return made

    def _placed(self, form: str, data: U8, frames: Frames) -> _Part:
        words, starts = data[: data.size // WORD * WORD].view(np.int64), frames.start // WORD
        heads, ts, lengths = words[starts], words[starts + 1], frames.size
        tags = wire.HEADER_TAG.get(heads)
        components = np.full(starts.size, -1)
        named = np.zeros(starts.size, np.bool_)
        for row in np.flatnonzero(tags & wire.CONTROL).tolist():
            at = WORD * int(starts[row])
            record, _ = LogRecord.unpack(data.data, at, at + int(lengths[row]), STATE)
            if rolled_out_of(record) is None:
                named[row] = True
                component = component_of(record)
                if component is not None:
                    number = self._components.setdefault(component, len(self._components))
                    components[row], ts[row] = number, EARLIEST
        if form == "log-ring":
            odd = ~named & (frames.tag >> wire.CONTROL.bit_length() - 1 != 0)
            self._dropped[TAGS] += int(np.count_nonzero(odd))
            of_entries = np.where(odd, 0, frames.tag) | tags & wire.CONTROL
            tags = np.where(named, tags, of_entries)
        columns = {"starts": frames.start, "lengths": lengths, "ts": ts, "tags": tags}
        return _Part(data, columns | {"components": components})

    def _write(self) -> None:
        if len(self._parts) > 1:
            for part in self._parts:
                self._retag(part.columns)
        super()._write()

    def _gathered(self, rows: I64, columns: Mapping[str, I64]) -> TextColumn:
        made = super()._gathered(rows, columns)
        words, heads = made.data.view(np.int64), made.offsets[:-1] // WORD
        words[heads] &= ~wire.HEADER_TAG.mask
        words[heads] |= columns["tags"][rows] << wire.HEADER_TAG.low
        return made

    def _retag(self, columns: dict[str, I64]) -> None:
        """Change tags of a part that are those of other components."""
        tags, named = columns["tags"] & wire.COMPONENT, columns["components"]
        # A manifest holds up to the next one of its tag.
        order = np.argsort(tags, kind="stable")
        begins = np.diff(tags[order], prepend=-1) != 0
        holding = np.where(begins | (named[order] >= 0), np.arange(tags.size), 0)
        components = np.empty_like(named)
        components[order] = named[order][np.maximum.accumulate(holding)]
        pairs, which = np.unique(components * wire.CONTROL + tags, return_inverse=True)
        new = [self._tag(*divmod(pair, wire.CONTROL)) for pair in pairs.tolist()]
        columns["tags"] += np.array(new, np.int64)[which] - tags

    def _tag(self, component: int, tag: int) -> int:
        """Return the tag of a component: its own, unless that is another's."""
        owner = ~tag if component < 0 else component
        if self._owners.setdefault(tag, owner) == owner:
            return tag
        if owner not in self._moved:
            while self._free in self._owners:
                self._free -= 1
            self._owners[self._free] = owner
            self._moved[owner] = self._free
        return self._moved[owner]


def open_merge(sink: Sink, options: Mapping[str, Any]) -> Merger:
    """Open a session that merges captures into structured records.

    ``attribution`` selects the place of attribution, by default where it is (``keep``), or
    manifests for other formats; ``redact_keys`` and ``redact_pattern`` select the data to remove.
    Raises UsageError for an invalid value.
    """
    attribution = options.get("attribution") or "keep"
    if attribution not in ATTRIBUTIONS:
        raise UsageError(
            f"invalid attribution {attribution!r}",
            remedy=f"use one of {', '.join(ATTRIBUTIONS)}",
        )
    return Merger(sink, attribution=attribution, redactor=Redactor.of(options))


class PacketMerger(_MergerBase):
    """Merges logs into a container of legacy packets."""

    opening = StreamHeader().pack()
    losses: ClassVar[Mapping[str, str]] = {
        rules.WELL_KNOWN_TWICE.code: "arguments that a later one of the name replaces",
    }

    def __init__(self, sink: Sink, *, fold: bool, redactor: Redactor | None) -> None:
        super().__init__(sink, redactor)
        self._fold = fold

    def _prepared(self, capture: Capture) -> Capture:
        if not isinstance(_whole(capture), LogCapture):
            capture = self._spooled(LogCapture, _LogRows(capture, self._dropped).pieces())
        elif _is_legacy(capture) and self._redactor is None:
            return capture
        packets = legacy(
            _sound(capture),
            self._dropped,
            fold=self._fold,
            redactor=self._redactor,
            options=capture.request.options,
        )
        return self._spooled(
            StreamCapture, map(RecordEncoder(StreamCapture.format).encode, packets)
        )

    def _placed(self, form: str, data: U8, frames: Frames) -> _Part:
        starts, ends = frames.begin, frames.end
        times = TextColumn.gather(data, frames.start + TIME_AT, np.full(starts.size, 8))
        if form == "log-legacy":  # a container has the length of each
            data = np.concatenate((np.array([data.size], "<u4").view(np.uint8), data))
            ends = ends + wire.STREAM_LENGTH
        ts = times.data.view(np.int64)
        return _Part(data, {"starts": starts, "lengths": ends - starts, "ts": ts})


def open_stream_merge(sink: Sink, options: Mapping[str, Any]) -> PacketMerger:
    """Open a session that merges captures into legacy packets.

    ``fold`` puts file, line and keys of other logs into the message; ``redact_keys`` and
    ``redact_pattern`` select the data to remove.
    """
    return PacketMerger(sink, fold=bool(options.get("fold", True)), redactor=Redactor.of(options))
