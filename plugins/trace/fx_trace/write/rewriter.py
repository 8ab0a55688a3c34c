"""The rewriters: write records that were read, or their JSON, as a trace or as an image."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_trace import format as wire
from fx_trace import records as r
from fx_trace import rules
from fx_trace.read.buffer import END_AT, ONESHOT, BufferHeader
from fx_trace.read.cursor import Tables
from fx_trace.read.decoder import RecordDecoder, RecordEncoder
from fx_trace.records import Damaged, Padding, TraceRecord
from fx_trace.write.arguments import encoded_text
from fxframework.errors import WriteRefusedError, refusal
from fxframework.io.sink import Sink
from fxframework.io.source import CHUNK
from fxframework.io.words import WORD, pad8
from fxframework.kit.lossless import BlockPacker, RecordRewriter
from fxframework.model.diagnostics import Diagnostics

__all__ = ["BufferWriter", "TraceRewriter", "open_buffer_writer", "open_writer", "perfetto_parts"]

I64 = NDArray[np.int64]
MOST_BYTES = 1 << 63
"""More than an image has."""


class TraceRewriter(RecordRewriter):
    """Writes trace records; with ``perfetto_safe`` large records become blob records."""

    def __init__(
        self,
        sink: Sink,
        *,
        big_endian: bool = False,
        perfetto_safe: bool = False,
        tables: Tables | None = None,
    ) -> None:
        super().__init__(sink, RecordEncoder(big_endian=big_endian, tables=tables))
        self._perfetto_safe = perfetto_safe

    def write(self, record: TraceRecord | Mapping[str, Any]) -> None:
        """Write a record, or none of it: WriteRefusedError."""
        if self._perfetto_safe and isinstance(record, Mapping):
            record = r.from_json(record)
        if self._perfetto_safe and isinstance(record, r.LargeBlob | r.LargeBlobWithMetadata):
            self.put(b"".join(map(self.encoder.encode, perfetto_parts(record))))
        else:
            super().write(record)

    def packer(self) -> BlockPacker | None:
        """Return what packs many records; None if large ones are taken apart."""
        return None if self._perfetto_safe else super().packer()


def open_writer(
    sink: Sink,
    options: Mapping[str, Any],
    diagnostics: Diagnostics,  # noqa: ARG001 (this writer raises errors instead)
) -> TraceRewriter:
    """Open a writer of trace records.

    The option ``big_endian`` selects the byte order; with ``perfetto_safe`` large records become
    blob records.
    """
    return TraceRewriter(
        sink,
        big_endian=bool(options.get("big_endian", False)),
        perfetto_safe=bool(options.get("perfetto_safe", False)),
    )


def perfetto_parts(record: r.LargeBlob | r.LargeBlobWithMetadata) -> Iterator[TraceRecord]:
    """Yield records that Perfetto reads with the right size, in place of a large record.

    Its metadata becomes an instant event, its payload blob records of the same name.
    """
    if isinstance(record, r.LargeBlobWithMetadata):
        refs = {key: ref for key, ref in (record.refs or {}).items() if key != "payload"}
        yield r.Event(
            event="instant",
            timestamp=record.timestamp,
            thread=record.thread,
            category=record.category,
            name=record.name,
            args=record.args,
            refs=refs or None,
        )
    name = {"name": record.refs["name"]} if record.refs and "name" in record.refs else None
    yield from blob_records(record.name, record.payload, wire.BlobType.DATA, name)


def blob_records(
    name: str, payload: bytes, blob_type: int, refs: dict[str, int] | None = None
) -> Iterator[r.Blob]:
    """Yield bytes as blob records, at least one, each with room for an inline name."""
    room = (wire.MAX_RECORD_WORDS - 1) * 8 - len(pad8(encoded_text("blob: name", name)))
    step = max(8, min(wire.MAX_STRING_BYTES, room))
    for at in range(0, len(payload) or 1, step):
        part = payload[at : at + step]
        yield r.Blob(name=name, blob_type=blob_type, payload=part, refs=refs)


# --- Images ------------------------------------------------------------------------------------

_UNUSED = frozenset({rules.ODD_BYTES.code, rules.STALE_BYTES.code, rules.RECORDS_END_EARLY.code})
"""Codes of damage that loses no record: space behind the records."""


@attrs.define
class _Buffer:
    """One buffer of an image that is being written."""

    name: str
    start: int
    size: int
    end: int
    """The recorded data end."""
    used: bytearray = attrs.field(factory=bytearray)
    behind: bytearray = attrs.field(factory=bytearray)
    """Padding and stale bytes behind the last record so far."""
    changed: bool = False
    """Whether records were added to those of the image that was read."""

    def add(self, data: bytes | memoryview, *, behind: bool) -> None:
        """Take the bytes of the next record."""
        if behind:
            self.behind += data
            return
        self.used += self.behind
        self.used += data
        self.behind = bytearray()

    def settle(self, *, scanned: bool) -> int:
        """Make the parts fit the size, and give the data end: what is behind gives or takes."""
        room = self.size - len(self.used)
        if room < 0:
            raise refusal(
                rules.BUFFER_TOO_SMALL,
                f"the records of {self.name} take {len(self.used)} bytes, and it has {self.size}",
            )
        if room == len(self.behind) and not self.changed:
            return self.end
        if room < len(self.behind):
            del self.behind[: len(self.behind) - room]
            if scanned and room >= WORD:
                # A scanning reader must not take what follows for records.
                self.behind[:WORD] = bytes(WORD)
        return len(self.used) if self.end else 0

    @property
    def gap(self) -> int:
        """Zero bytes between the records and what is behind them."""
        return self.size - len(self.used) - len(self.behind)


class _ImageEncoder(RecordEncoder):
    """Encodes the records of an image."""

    def __init__(self, tables: Tables | None) -> None:
        super().__init__(tables=tables)
        self.unused: set[int] = set()
        """Offsets of records that are space behind the others, of those parsed for these lines."""

    def parsed(self, given: Mapping[str, Any]) -> TraceRecord:
        """Return the record of a JSON object, which must say its offset."""
        if given.get("record") == BufferHeader.record:
            raise _second_header()
        record = super().parsed(given)
        offset = given.get("offset")
        if type(offset) is not int:
            message = f"{record.record}: offset, which says the buffer, is missing"
            raise refusal(rules.INVALID_FIELDS, message)
        record.offset = offset
        if _is_unused(record):
            self.unused.add(offset)
        return record

    def encode(self, record: TraceRecord | Mapping[str, Any]) -> bytes:
        """Return the bytes of a record.

        Metadata as it was read, and without effect on what follows.
        """
        if isinstance(record, Mapping):
            record = self.parsed(record)
        if record.record != "metadata":
            return super().encode(record)
        raw = b"" if record.raw is None else bytes(record.raw)
        bare = record.edited()
        if [r.edited() for r in RecordDecoder().records(raw)] != [bare]:
            raise refusal(
                rules.METADATA_INSIDE_PROVIDER,
                "a provider writes no metadata into its trace buffer",
            )
        return raw


def _is_unused(record: TraceRecord) -> bool:
    return isinstance(record, Padding) or (isinstance(record, Damaged) and record.code in _UNUSED)


def _second_header() -> WriteRefusedError:
    message = "an image has one buffer_header, before everything else"
    return refusal(rules.BUFFER_TOO_SMALL, message)


class BufferWriter(RecordRewriter):
    """Makes an image of its records (``fxframework.registry.RecordWriter``).

    The ``buffer_header`` comes first; each record goes into the buffer that its ``offset`` lies
    in, behind those that came before it. Where records of a buffer became longer, shorter, more
    or fewer, the space behind them gives or takes the difference, and a recorded data end
    follows. ``image_size`` is the length of an image that is shorter than its header says.
    """

    encoder: _ImageEncoder

    def __init__(self, sink: Sink, *, image_size: int = 0, tables: Tables | None = None) -> None:
        super().__init__(sink, _ImageEncoder(tables))
        self._closed = False
        self._image_size = image_size
        self._header: BufferHeader | None = None
        self.buffers: list[_Buffer] = []
        self._loose = bytearray()
        """What has no header before it, or is behind the end of the buffer."""

    def write(self, record: BufferHeader | TraceRecord | Mapping[str, Any]) -> None:
        """Take a record. Raises WriteRefusedError, nothing of it taken."""
        if isinstance(record, Mapping):
            if record.get("record") == BufferHeader.record:
                record = BufferHeader.from_json(record)
            else:
                record = self.encoder.parsed(record)
        if isinstance(record, BufferHeader):
            self._begin(record)
            return
        kind, offset = record.record, record.offset
        header = self._header
        end = 0 if header is None else header.total_size
        if header is None or offset >= end:
            if offset != end + len(self._loose) or not isinstance(record, Damaged):
                where = "behind the end of the buffer" if header else "without a buffer_header"
                raise refusal(rules.BUFFER_TOO_SMALL, f"a {kind} record at byte {offset}, {where}")
            self._loose += self.encoder.encode(record)
            return
        buffer = self.buffer_at(offset)
        data = self.encoder.encode(record)
        if len(data) > buffer.size:
            raise refusal(
                rules.BUFFER_TOO_SMALL,
                f"a {kind} record of {len(data)} bytes, and {buffer.name} is smaller",
            )
        buffer.add(data, behind=_is_unused(record))

    def packer(self) -> BlockPacker | None:
        """Return what packs many records; None without a header that has come first."""
        return None if self._header is None else super().packer()

    def put_records(self, data: memoryview, ends: I64, records: Sequence[Any]) -> None:
        """Take the bytes of records, each for the buffer that its offset lies in.

        Raises WriteRefusedError where an offset lies in none.
        """
        offsets = _offsets(records)
        unused = np.isin(offsets, list(self.encoder.unused))
        self.encoder.unused.clear()
        starts = [buffer.start for buffer in self.buffers]
        place = 2 * np.searchsorted(starts, offsets, "right") + unused
        first = begin = 0
        for stop in (*(np.flatnonzero(place[1:] != place[:-1]) + 1).tolist(), offsets.size):
            buffer = self.buffer_at(int(offsets[first:stop].max()))
            end = int(ends[stop - 1])
            buffer.add(data[begin:end], behind=bool(unused[first]))
            first, begin = stop, end

    def put_at(self, offset: int, data: bytes) -> None:
        """Take the bytes of sound records, which were at an offset of one buffer."""
        self.buffer_at(offset).add(data, behind=False)

    def buffer_at(self, offset: int) -> _Buffer:
        """Return the buffer that an offset of the image lies in. Raises WriteRefusedError."""
        for buffer in self.buffers:
            if buffer.start <= offset < buffer.start + buffer.size:
                return buffer
        raise refusal(
            rules.BUFFER_TOO_SMALL, f"byte {offset} of the image lies in none of its buffers"
        )

    def _begin(self, header: BufferHeader) -> None:
        if self._header is not None or self._loose:
            raise _second_header()
        for fault in header.check(header.total_size):
            error = refusal(rules.INVALID_BUFFER_HEADER, f"buffer_header: {fault}")
            error.offset = fault.offset
            raise error
        size = self._image_size or header.total_size
        self._header = header
        self.buffers = [
            _Buffer(name, start, max(0, min(length, size - start)), end)
            for name, start, length, end in header.buffers()
        ]

    def close(self) -> None:
        """Write the image, once.

        Raises WriteRefusedError (BUFFER_TOO_SMALL) where a buffer has too much.
        """
        if self._closed:
            return
        self._closed = True
        header = self._header
        if header is None:
            self._sink.write(self._loose)
            return
        head = bytearray(header.encode())
        for buffer in self.buffers:
            end = buffer.settle(scanned=header.mode == ONESHOT or not buffer.end)
            struct.pack_into("<Q", head, END_AT[buffer.name], end)
        self._sink.write(head)
        for buffer in self.buffers:
            self._sink.write(buffer.used)
            for at in range(0, buffer.gap, CHUNK):
                self._sink.write(bytes(min(CHUNK, buffer.gap - at)))
            self._sink.write(buffer.behind)
        self._sink.write(self._loose)


def _offsets(records: Sequence[Any]) -> I64:
    """Return what records, given as JSON, say of their places; -1 for none."""
    found = (each.get("offset") if type(each) is dict else None for each in records)
    places = [each if type(each) is int and 0 <= each < MOST_BYTES else -1 for each in found]
    return np.array(places, np.int64)


def open_buffer_writer(
    sink: Sink,
    options: Mapping[str, Any],
    diagnostics: Diagnostics,  # noqa: ARG001 (findings are the reader's; this one refuses)
) -> BufferWriter:
    """Return a writer of images.

    Of the options, ``image_size`` is the length of one that was cut.
    """
    return BufferWriter(sink, image_size=int(options.get("image_size", 0)))
