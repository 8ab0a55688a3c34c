"""Merges the logs of several captures, of any format, into one file, in the order of time.

Records that have the form of the output are copied as bytes: structured records, those of rings
too, or legacy packets. Rows of `logs` of other captures are encoded into a temporary file. Memory
holds the place, size, time and tag of each record. The records of a single capture keep their
order.
"""

from __future__ import annotations

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
from fxframework.kit.memo import Memo
from fxframework.model.capture import Capture, OpenRequest, Window
from fxframework.model.strings import TextColumn
from fxframework.model.table import Table
from fxframework.wire.verbs.merge import MergedPart, merged

__all__ = ["Merger", "PacketMerger", "open_merge", "open_stream_merge"]

I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
_ATTRIBUTION: Final = {
    wire.MONIKER: ArgType.STRING, wire.URL: ArgType.STRING, wire.ROLLED_OUT: ArgType.UINT64,
}  # fmt: skip
_KNOWN: Final = {
    name.encode(): int(kind) for name, kind in {**wire.WELL_KNOWN, **_ATTRIBUTION}.items()
}
EARLIEST: Final = -(1 << 63)
_MESSAGE: Final = name_head("message")
_EMPTY: Final = text_argument(*_MESSAGE, b"")
LONGEST_MESSAGE: Final = 8 * (MAX_VALUE_WORDS - len(_EMPTY) // 8)
"""Bytes that fit into a record without anything else."""
TIME_AT: Final = LegacyPacket.layout.place("timestamp").offset


def _whole(capture: Capture) -> Capture:
    """Return the capture of which one shows a part, or itself."""
    return capture.whole if isinstance(capture, Window) else capture


def _is_legacy(capture: Capture) -> bool:
    return capture.format.startswith("log-legacy")


def _decoded(data: bytes) -> str:
    return data.decode(errors="surrogateescape")


# --- Rows -----------------------------------------------------------------------------------------


class _Common(NamedTuple):
    """What logs with the same ``Head`` have in common; arguments are bytes."""

    severity: int
    has_message: bool
    start: bytes
    """pid and tid."""
    place: bytes
    """file and line."""
    tags: bytes
    tag: int
    """The tag of the component; 0 without one."""


class _LogRows:
    """Encodes the rows of `logs` of a capture as structured records; manifests name components."""

    def __init__(self, capture: Capture, dropped: Counter[str]) -> None:
        self._capture = capture
        self._pool = capture.strings
        self._dropped = dropped
        self._components: dict[tuple[bytes, bytes], int] = {}
        """Tags of components, by moniker and url."""
        self._texts: Memo[int, bytes] = Memo(
            lambda code: self._pool.bytes_of(code) if code >= 0 else b"", 0
        )
        self._named = Memo(self._with_text)
        """The bytes of string arguments, by codes of their names and values."""
        self._common = Memo(self._common_of)
        self._manifests = b""
        """Those of components that are new in a row."""

    def pieces(self) -> Iterator[bytes]:
        """Yield the records, in pieces."""
        for batch in walk(self._capture, self._keys, self._dropped):
            yield b"".join(
                map(
                    self._record,
                    np.asarray(batch.ts).tolist(),
                    batch.heads,
                    batch.messages.raw(),
                    batch.args,
                    zip(batch.dropped, batch.rolled_out, batch.verbosity, strict=True),
                )
            )

    def _record(
        self,
        ts: int,
        head: tuple[Any, ...],
        message: bytes,
        keys: Sequence[bytes | None],
        counts: tuple[int, int, int],
    ) -> bytes:
        """Return the record of a row, with those that it needs before it."""
        common = self._common[head]
        if common is None:
            self._dropped["logs"] += 1
            return b""
        dropped, rolled_out, verbosity = counts
        start = common.start
        if dropped:
            start += argument_bytes("num_dropped", ArgType.UINT64, dropped)
        start += common.place
        if verbosity:
            start += argument_bytes("verbosity", ArgType.INT64, verbosity)
        if rolled_out:
            self._dropped["counts of logs rolled out"] += 1
        before, self._manifests = self._manifests, b""
        text = message if common.has_message else None
        for body in self._bodies(start, text, keys, common.tags):
            try:
                return before + record_bytes(common.severity, ts, body, tag_bits=common.tag)
            except WriteRefusedError:  # logs of other formats may be larger than a record
                continue
        self._dropped["logs"] += 1
        return before

    def _bodies(
        self, start: bytes, message: bytes | None, keys: Sequence[bytes | None], tags: bytes
    ) -> Iterator[bytes]:
        """Yield the arguments in the reference writer's order, then what may fit in their place.

        That is with a shorter message, and then without the keys.
        """
        sound = [key for key in keys if key is not None]
        is_whole = len(sound) == len(keys)
        if is_whole and (message is None or len(message) <= LONGEST_MESSAGE):
            text = b"" if message is None else text_argument(*_MESSAGE, message)
            yield b"".join((start, text, *sound, tags))
        for kept in [sound, []] if is_whole else [[]]:
            room = 8 * MAX_VALUE_WORDS - len(_EMPTY) - sum(map(len, (start, *kept, tags)))
            if room >= 0:
                self._dropped["logs, in part"] += 1
                self._dropped["keys"] += len(keys) - len(kept)
                shorter = shortened(message or b"", min(room, wire.MAX_STRING))
                yield b"".join((start, text_argument(*_MESSAGE, shorter), *kept, tags))

    def _common_of(self, key: tuple[Any, ...]) -> _Common | None:
        """Return what all logs with a head have; None where that is too large for a record."""
        head = Head.of(key)
        start = place = b""
        try:
            if head.pid is not None:
                start += argument_bytes("pid", ArgType.UINT64, head.pid)
            if head.tid is not None:
                start += argument_bytes("tid", ArgType.UINT64, head.tid)
            if head.file >= 0:
                place += argument_bytes("file", ArgType.STRING, self._texts[head.file])
            if head.line is not None:
                place += argument_bytes("line", ArgType.UINT64, head.line)
            return _Common(
                severity=head.severity if head.level >= 0 else int(Level.INFO),
                has_message=head.has_message,
                start=start,
                place=place,
                tags=b"".join(argument_bytes("tag", ArgType.STRING, tag) for tag in head.tags),
                tag=self._tag(head),
            )
        except WriteRefusedError:
            return None

    def _tag(self, head: Head) -> int:
        """Return the tag of a component; that of a new one gets a manifest."""
        if head.component < 0:
            return 0
        who = self._texts[head.component], self._texts[head.url]
        if who not in self._components:
            tag = len(self._components) + 1
            self._manifests += manifest_record(tag, *map(_decoded, who)).pack()
            self._components[who] = tag
        return self._components[who]

    # --- Keys

    def _keys(self, args: Table) -> list[bytes | None]:
        """Return the bytes of rows of `args`; None for one that no record has room for."""
        columns = ("name", "type", "int", "uint", "float", "str")
        return [self._key(*row) for row in args.tuples(*columns)]

    def _key(
        self, name: int, kind: int, signed: int, unsigned: int, real: float, code: int
    ) -> bytes | None:
        if kind == ArgType.STRING:
            return self._named[name, code]
        if code >= 0:
            self._dropped["values that are bytes"] += 1
            return b""
        if kind in SIGNED:
            return self._argument(name, ArgType.INT64, signed)
        if kind in UNSIGNED:
            return self._argument(name, ArgType.UINT64, unsigned)
        if kind == ArgType.DOUBLE:
            return self._argument(name, kind, real)
        if kind == ArgType.BOOL:
            return self._argument(name, kind, bool(signed))
        return self._argument(name, ArgType.NULL, None)

    def _with_text(self, codes: tuple[int, int]) -> bytes | None:
        name, value = codes
        return self._argument(name, ArgType.STRING, self._texts[value])

    def _argument(self, name_code: int, kind: int, value: Any) -> bytes | None:
        name = self._texts[name_code]
        if _KNOWN.get(name) == kind:
            self._dropped["names of keys, which got an underscore"] += 1
            name += b"_"
        try:
            return argument_bytes(name, kind, value)
        except WriteRefusedError:
            return None


# --- Merging --------------------------------------------------------------------------------------


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
        self._parts: list[MergedPart] = []

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
        for piece in merged(self._finished(), self._change):
            self._sink.write(piece)
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

    def _part(self, capture: Capture) -> MergedPart:
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

    def _placed(self, form: str, data: U8, frames: Frames) -> MergedPart:
        """Return the records that some frames are."""
        raise NotImplementedError

    def _finished(self) -> list[MergedPart]:
        """Return the parts, once all are there."""
        return self._parts

    def _change(self, records: TextColumn, beside: Mapping[str, I64]) -> None:
        """Change the bytes of some records; ``beside`` has further columns of theirs."""


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

    def _placed(self, form: str, data: U8, frames: Frames) -> MergedPart:
        words, starts = data[: data.size // WORD * WORD].view(np.int64), frames.start // WORD
        heads, ts = words[starts], words[starts + 1]
        tags = wire.HEADER_TAG.get(heads)
        components = np.full(starts.size, -1)
        named = np.zeros(starts.size, np.bool_)
        for row in np.flatnonzero(tags & wire.CONTROL).tolist():
            at = WORD * int(starts[row])
            record, _ = LogRecord.unpack(data.data, at, at + int(frames.size[row]), STATE)
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
        beside = {"tags": tags, "components": components}
        return MergedPart(data, frames.start, frames.size, ts, beside)

    def _finished(self) -> list[MergedPart]:
        for part in self._parts if len(self._parts) > 1 else []:
            self._retag(part.beside)
        return self._parts

    def _change(self, records: TextColumn, beside: Mapping[str, I64]) -> None:
        words, heads = records.data.view(np.int64), records.offsets[:-1] // WORD
        words[heads] &= ~wire.HEADER_TAG.mask
        words[heads] |= beside["tags"] << wire.HEADER_TAG.low

    def _retag(self, columns: Mapping[str, I64]) -> None:
        """Change tags of a part that are those of other components.

        ``tags`` are tag bits, ``components`` numbers of what a manifest names (elsewhere -1).
        """
        tags, named = columns["tags"] & wire.COMPONENT, columns["components"]
        # A manifest holds up to the next one of its tag.
        order = np.argsort(tags, kind="stable")
        begins = np.diff(tags[order], prepend=-1) != 0
        holding = np.where(begins | (named[order] >= 0), np.arange(tags.size), 0)
        components = np.empty_like(named)
        components[order] = named[order][np.maximum.accumulate(holding)]
        pairs, which = np.unique(components * wire.CONTROL + tags, return_inverse=True)
        new = [self._tag(*divmod(pair, wire.CONTROL)) for pair in pairs.tolist()]
        new_tags = np.array(new, np.int64)[which]
        columns["tags"][:] += new_tags - tags

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

    def _placed(self, form: str, data: U8, frames: Frames) -> MergedPart:
        starts, ends = frames.begin, frames.end
        times = TextColumn.gather(data, frames.start + TIME_AT, np.full(starts.size, 8))
        if form == "log-legacy":  # a container has the length of each
            data = np.concatenate((np.array([data.size], "<u4").view(np.uint8), data))
            ends = ends + wire.STREAM_LENGTH
        ts = times.data.view(np.int64)
        return MergedPart(data, starts, ends - starts, ts)


def open_stream_merge(sink: Sink, options: Mapping[str, Any]) -> PacketMerger:
    """Open a session that merges captures into legacy packets.

    ``fold`` puts file, line and keys of other logs into the message; ``redact_keys`` and
    ``redact_pattern`` select the data to remove.
    """
    return PacketMerger(sink, fold=bool(options.get("fold", True)), redactor=Redactor.of(options))
