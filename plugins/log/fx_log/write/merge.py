"""Merges the logs of several captures, of any format, into one file.

Each row of a table `logs` becomes a structured record, or a legacy packet; the captures follow one
another. Memory is bounded: the tables are read in batches.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from fx_log import format as wire
from fx_log import rules
from fx_log.export.presentation import SIGNED, UNSIGNED, Head, left_out, walk
from fx_log.format import ArgType, Argument
from fx_log.read.decoder import RecordDecoder
from fx_log.read.entries import Entry, split_attribution
from fx_log.read.records import StreamHeader
from fx_log.severity import LEVELS, Level
from fx_log.write.arguments import (
    MAX_VALUE_WORDS,
    argument_bytes,
    name_head,
    record_bytes,
    shortened,
    text_argument,
)
from fx_log.write.convert import BEHIND, NO_LOG, only_rolled_out, tag_of_entry, to_legacy
from fx_log.write.encoder import RecordEncoder
from fx_log.write.redaction import Redactor
from fx_log.write.sinks import verbose_severity
from fxframework.errors import UsageError, WriteRefusedError
from fxframework.io.sink import Sink
from fxframework.model.capture import Capture
from fxframework.model.strings import StringPool
from fxframework.model.table import Table

__all__ = ["Merger", "PacketMerger", "open_merge", "open_stream_merge"]

BUFFER: Final = 1 << 20
CACHED: Final = 1 << 16
"""Number of distinct arguments whose bytes are cached."""
_KNOWN: Final = {name.encode(): int(kind) for name, kind in wire.WELL_KNOWN.items()}
SHORT: Final = 4096
"""Longest text that is cached, in bytes."""
_MESSAGE: Final = name_head("message")
_WORD: Final = struct.Struct("<Q").pack
_LENGTH: Final = struct.Struct("<I").pack
_INT64: Final = struct.Struct("<q").pack
_UNKNOWN: Final = wire.UNKNOWN_COMPONENT.encode()
_OF_RINGS: Final = {
    rules.ENTRY_WITHOUT_RECORD.code: NO_LOG,
    rules.ENTRY_TRAILING_BYTES.code: BEHIND,
}
"""Losses of a ring that rows do not show, by the finding that counts them."""


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
    who: tuple[bytes, bytes] | None
    """Moniker and url."""


class _MergerBase:
    """Base of both mergers."""

    def __init__(self, sink: Sink, redactor: Redactor | None) -> None:
        self._sink = sink
        self._redactor = redactor
        self._buffer = bytearray()
        self._dropped: Counter[str] = Counter()
        self._pool: StringPool

    def write(self, capture: Capture) -> None:
        """Write the logs of a capture."""
        self._pool = capture.strings
        self._begin(capture)
        placeless: Counter[str] = Counter()
        packets = capture.format.startswith("log-legacy")
        for row in _rows(capture, placeless):
            if packets and row.verbosity:  # of 2022: the packet's severity meant a verbosity
                head = row.head._replace(severity=verbose_severity(row.verbosity))
                self._row(row._replace(head=head, verbosity=0))
            else:
                self._row(row)
            if len(self._buffer) >= BUFFER:
                self._flush()
        # They get new tags, or are counted when they do not.
        placeless.pop("ids of components that nothing names", None)
        self._dropped += placeless + left_out(capture)
        if capture.format == "log-ring":
            capture.scan()
            for code, what in _OF_RINGS.items():
                self._dropped[what] += capture.diagnostics.counts.get(code, 0)
        if capture.utc_offset_ns is not None:
            self._dropped["the offset from UTC"] += 1

    def close(self) -> Mapping[str, int]:
        """Write the held-back records. Return the counts of what could not be written, by name."""
        self._end()
        self._flush()
        if self._redactor is not None:
            for what, count in self._redactor.counts.items():
                self._dropped[f"redacted: {what}"] += count
            for key in self._redactor.absent:
                self._dropped[f"to be redacted, but not there: {key}"] += 1
        return +self._dropped

    def _begin(self, capture: Capture) -> None: ...

    def _end(self) -> None: ...

    def _row(self, row: _Row) -> None:
        raise NotImplementedError

    def _flush(self) -> None:
        self._sink.write(self._buffer)
        self._buffer = bytearray()


def _rows(capture: Capture, dropped: Counter[str]) -> Iterator[_Row]:
    for batch in walk(capture, _keys, dropped):
        heads = {head: Head.of(head) for head in set(batch.heads)}
        yield from map(
            _Row,
            np.asarray(batch.ts).tolist(),
            map(heads.__getitem__, batch.heads),
            batch.messages.raw(),
            batch.args,
            batch.dropped,
            batch.rolled_out,
            batch.verbosity,
        )


def _is_bare(row: _Row) -> bool:
    """Return whether a row is only a count of logs rolled out, from a control record."""
    head = row.head
    return bool(row.rolled_out) and not (head.given or row.keys or head.tags or head.file >= 0)


def _severity(head: Head) -> int:
    """Return the severity byte; INFO if the capture's format has no severities."""
    return head.severity if head.level >= 0 else int(Level.INFO)


# --- Structured records ---------------------------------------------------------------------------


class Merger(_MergerBase):
    """Writes logs as structured records (``fxframework.registry.ExportSession``).

    ``attribution`` selects the place of attribution: ``manifest`` (a tag, named by a control record
    before its first log), ``in_record`` (moniker and url at the end) or ``none``. Tags count up
    from 1. Counts of logs rolled out become control records, or arguments of the log.
    """

    def __init__(
        self, sink: Sink, *, attribution: str = "manifest", redactor: Redactor | None = None
    ) -> None:
        super().__init__(sink, redactor)
        self._attribution = attribution
        self._tags: dict[tuple[bytes, bytes], int] = {}
        self._next = 1
        self._given: set[int] = set()
        self._used: set[int] = set()
        """Tags of rings' entries, which are kept."""
        self._decoder = RecordDecoder("log")
        self._encoder = RecordEncoder("log")
        self._texts: dict[int, bytes] = {}
        self._names: dict[int, tuple[int, bytes]] = {}
        self._arguments: dict[tuple[int, int], bytes] = {}
        self._shapes: dict[Head, _Shape] = {}
        self._endings: dict[tuple[int, int], bool] = {}
        self._own = False
        self._rolled_out: Counter[tuple[bytes, bytes]] = Counter()

    def _begin(self, capture: Capture) -> None:
        # Codes belong to one capture's pool.
        self._texts, self._names, self._arguments, self._shapes = {}, {}, {}, {}
        self._endings = {}
        self._own = "log_tags" in capture.schemas

    def _end(self) -> None:
        rest = sum(self._rolled_out.values())
        if rest:
            self._dropped["logs rolled out after which nothing was logged"] += rest

    def _row(self, row: _Row) -> None:
        shape = self._shapes.get(row.head)
        try:
            if shape is None:
                shape = self._shape(row.head)
        except WriteRefusedError:
            self._dropped["logs"] += 1
            return
        who, kept = shape.who, row.head.tag if shape.who is None else 0
        if self._attribution == "none" and (who is not None or kept):
            self._dropped["components"] += 1
            who, kept = None, 0
        bare = bool(row.rolled_out) and _is_bare(row)
        tag, tail, count = self._place(who, row, bare=bare)
        if kept:
            tag = self._kept(kept)
        if count:
            body = argument_bytes(wire.CONTROL_ROLLED_OUT, ArgType.UINT64, count)
            self._put(shape.severity if bare else Level.INFO, row.ts, wire.CONTROL | tag, body)
        if bare:
            return
        message = row.message if row.head.has_message else None
        try:
            body = self._body(row, shape, message, tail)
            self._put(shape.severity, row.ts, tag, body)
        except WriteRefusedError:  # logs of other formats may be larger than a record
            self._cut(row, shape, tag, tail)

    def _cut(self, row: _Row, shape: _Shape, tag: int, tail: bytes) -> None:
        """Write a part of a log that is too large: cut its message, then leave out its keys."""
        self._dropped["logs, in part"] += 1
        for kept in (row, row._replace(keys=())):
            try:
                rest = len(self._body(kept, shape, b"", tail))
            except WriteRefusedError:
                continue
            room = 8 * MAX_VALUE_WORDS - rest
            if room < 0:
                continue
            if len(kept.keys) < len(row.keys):
                self._dropped["keys"] += len(row.keys)
            message = shortened(row.message, min(room, wire.MAX_STRING))
            self._put(shape.severity, row.ts, tag, self._body(kept, shape, message, tail))
            return
        self._dropped["logs"] += 1

    def _put(self, severity: int, time: int, tag_bits: int, body: bytes) -> None:
        record = record_bytes(severity, time, body, tag_bits=tag_bits)
        if self._redactor is not None:
            for one in self._decoder.records(record):
                kept = self._redactor.redact(one)
                record = b"" if kept is None else self._encoder.encode(kept)
        self._buffer += record

    # --- attribution ---

    def _place(
        self, who: tuple[bytes, bytes] | None, row: _Row, *, bare: bool
    ) -> tuple[int, bytes, int]:
        """Return a record's tag, its trailing arguments, and the logs rolled out before it."""
        if who is None:
            return 0, b"", row.rolled_out
        named = who != (_UNKNOWN, b"")
        if self._attribution == "manifest" or not named:
            tag = self._tags.get(who)
            if tag is None:
                while self._next in self._used:
                    self._next += 1
                tag = self._tags[who] = self._next
                self._given.add(tag)
                self._next += 1
                if named:
                    body = argument_bytes(wire.MANIFEST_MONIKER, ArgType.STRING, who[0])
                    body += argument_bytes(wire.MANIFEST_URL, ArgType.STRING, who[1])
                    self._put(Level.INFO, 0, wire.CONTROL | tag, body)
            return tag, b"", row.rolled_out
        count = row.rolled_out + self._rolled_out.pop(who, 0)
        if bare:  # the component's next log carries the count
            self._rolled_out[who] = count
            return 0, b"", 0
        tail = argument_bytes(wire.MONIKER, ArgType.STRING, who[0])
        tail += argument_bytes(wire.URL, ArgType.STRING, who[1])
        if count:
            tail += argument_bytes(wire.ROLLED_OUT, ArgType.UINT64, count)
        return 0, tail, 0

    def _kept(self, tag: int) -> int:
        """Return the tag of a ring's entry without a name; 0 if it would name another component."""
        if tag in self._given:
            self._dropped["tags of entries"] += 1
            return 0
        tag = tag_of_entry(tag, self._dropped)
        if tag:
            self._used.add(tag)
        return tag

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
        who = None
        if head.component >= 0:
            who = self._text(head.component), self._text(head.url)
        shape = _Shape(
            severity=_severity(head),
            start=start,
            place=place,
            tags=b"".join(argument_bytes("tag", ArgType.STRING, tag) for tag in head.tags),
            who=who,
        )
        if len(self._shapes) < CACHED:
            self._shapes[head] = shape
        return shape

    def _body(self, row: _Row, shape: _Shape, message: bytes | None, tail: bytes) -> bytes:
        """Return the arguments, in the order of the reference writer."""
        parts = [shape.start]
        if row.dropped:
            parts.append(argument_bytes("num_dropped", ArgType.UINT64, row.dropped))
        parts.append(shape.place)
        if row.verbosity:
            parts.append(argument_bytes("verbosity", ArgType.INT64, row.verbosity))
        if message is not None:
            parts.append(text_argument(*_MESSAGE, message))
        keys = [self._argument(key) for key in row.keys]
        if not shape.tags and row.keys and self._names_a_component(row.keys[-1]):
            parts = [*keys, *parts]  # at the end it would be read as attribution
            if not any(parts[len(keys) :]):
                self._dropped["keys"] += len(keys)
                parts = []
        else:
            parts += keys
        return b"".join((*parts, shape.tags, tail))

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
            data, kind = self._text(value), -1 - kind
            if self._own:  # the words after the name, unchanged
                text = name.decode(errors="surrogateescape")
                return Argument(name=text, type=kind, value=data).pack()
            self._dropped["values that are bytes"] += 1
            return b""
        if not self._own and _KNOWN.get(name) == kind:
            self._dropped["names of keys, which got an underscore"] += 1
            name += b"_"
        return argument_bytes(name, kind, value)

    def _names_a_component(self, key: _Key) -> bool:
        if key.kind < 0:
            return False
        known = self._endings.get((key.name, key.kind))
        if known is None:
            name = self._text(key.name).decode(errors="surrogateescape")
            argument = Argument(name=name, type=wire.ARG_NAMES[key.kind])
            known = bool(split_attribution((argument,))[1])
            self._endings[key.name, key.kind] = known
        return known


def open_merge(sink: Sink, options: Mapping[str, Any]) -> Merger:
    """Open a session that merges captures into structured records.

    ``attribution`` selects the place of attribution, by default (``keep``) manifests;
    ``redact_keys`` and ``redact_pattern`` select the data to remove. Raises UsageError for an
    invalid value.
    """
    attribution = options.get("attribution") or "keep"
    if attribution == "keep":
        attribution = "manifest"
    if attribution not in ("manifest", "in_record", "none"):
        raise UsageError(
            f"invalid attribution {attribution!r}",
            remedy="use keep, manifest, in_record or none",
        )
    return Merger(sink, attribution=attribution, redactor=Redactor.of(options))


# --- Legacy packets -------------------------------------------------------------------------------


class PacketMerger(_MergerBase):
    """Writes logs as a container of legacy packets (``fxframework.registry.ExportSession``).

    A packet cannot hold file, line and keys: with ``fold`` they go into the message.
    """

    def __init__(self, sink: Sink, *, fold: bool = True, redactor: Redactor | None = None) -> None:
        super().__init__(sink, redactor)
        self._fold = fold
        self._buffer += StreamHeader().pack()
        self._texts: list[str] = []
        self._tags: dict[tuple[bytes, ...], list[str]] = {}

    def _begin(self, capture: Capture) -> None:  # noqa: ARG002 (the interface of the base)
        self._texts = []

    def _row(self, row: _Row) -> None:
        entry = self._entry(row)
        if only_rolled_out(entry):
            self._dropped["counts of logs rolled out"] += 1
            return
        packet = to_legacy(entry, self._dropped, fold=self._fold, redactor=self._redactor)
        data = packet.pack()
        self._buffer += _LENGTH(len(data)) + data

    def _entry(self, row: _Row) -> Entry:
        head = row.head
        severity = _severity(head)
        return Entry(
            ts=row.ts,
            severity=severity,
            severity_name=LEVELS[severity].name,
            tag=head.tag,
            pid=head.pid,
            tid=head.tid,
            tags=self._tags_of(head.tags),
            component=self._text(head.component),
            url=self._text(head.url),
            message=_decoded(row.message) if head.has_message else None,
            file=self._text(head.file),
            line=head.line,
            dropped=row.dropped,
            rolled_out=row.rolled_out,
            verbosity=row.verbosity or None,
            args=[self._argument(key) for key in row.keys],
        )

    def _tags_of(self, tags: tuple[bytes, ...]) -> list[str]:
        known = self._tags.get(tags)
        if known is None:
            known = [_decoded(tag) for tag in tags]
            if len(self._tags) < CACHED:
                self._tags[tags] = known
        return known

    def _text(self, code: int) -> str | None:
        if code < 0:
            return None
        # The pool grows while its capture is read.
        while len(self._texts) <= code:
            self._texts.append(_decoded(self._pool.bytes_of(len(self._texts))))
        return self._texts[code]

    def _argument(self, key: _Key) -> Argument:
        name = self._text(key.name) or ""
        if key.kind == ArgType.STRING:
            return Argument(name=name, type="string", value=self._text(key.value) or "")
        if key.kind < 0:
            value = self._pool.bytes_of(key.value)
            return Argument(name=name, type=-1 - key.kind, value=value)
        return Argument(name=name, type=wire.ARG_NAMES[key.kind], value=key.value)


def open_stream_merge(sink: Sink, options: Mapping[str, Any]) -> PacketMerger:
    """Open a session that merges captures into legacy packets.

    ``fold`` puts file, line and keys into the message; ``redact_keys`` and ``redact_pattern``
    select the data to remove.
    """
    return PacketMerger(sink, fold=bool(options.get("fold", True)), redactor=Redactor.of(options))


def _decoded(data: bytes) -> str:
    return data.decode(errors="surrogateescape")
