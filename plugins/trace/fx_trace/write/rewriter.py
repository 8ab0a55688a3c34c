"""The rewriters: write records that were read, or their JSON, as a trace or as an image."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_trace import format as wire
from fx_trace import records as r
from fx_trace import rules
from fx_trace.read.buffer import END_AT, ONESHOT, BufferHeader
from fx_trace.read.decoder import RecordDecoder, RecordEncoder
from fx_trace.records import Damaged, Padding, TraceRecord
from fx_trace.write.arguments import encoded_text
from fxframework.errors import WriteRefusedError, refusal
from fxframework.io.sink import Sink
from fxframework.io.source import CHUNK
from fxframework.io.words import WORD, pad8
from fxframework.kernels.arrays import I64
from fxframework.kernels.sorting import begins_of_runs
from fxframework.kit.lossless import BlockPacker, RecordRewriter
from fxframework.model.diagnostics import Diagnostics

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
    ) -> None:
        super().__init__(sink, RecordEncoder(big_endian=big_endian))
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
        if self._perfetto_safe:
            return None
        return super().packer()


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
    refs = record.refs or {}
    if isinstance(record, r.LargeBlobWithMetadata):
        yield r.Event(
            event="instant",
            timestamp=record.timestamp,
            thread=record.thread,
            category=record.category,
            name=record.name,
            args=record.args,
            refs={field: index for field, index in refs.items() if field != "payload"} or None,
        )
    name_refs = {field: index for field, index in refs.items() if field == "name"}
    yield from blob_records(record.name, record.payload, wire.BlobType.DATA, name_refs or None)


def blob_records(
    name: str, payload: bytes, blob_type: int, refs: dict[str, int] | None = None
) -> Iterator[r.Blob]:
    """Yield bytes as blob records, at least one, each with room for an inline name."""
    name_bytes = len(pad8(encoded_text("blob: name", name)))
    payload_room = (wire.MAX_RECORD_WORDS - 1) * WORD - name_bytes
    step = max(WORD, min(wire.MAX_STRING_BYTES, payload_room))
    for offset in range(0, len(payload) or 1, step):
        payload_part = payload[offset : offset + step]
        yield r.Blob(name=name, blob_type=blob_type, payload=payload_part, refs=refs)


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

    def __init__(self) -> None:
        super().__init__()
        self.unused: set[int] = set()
        """Offsets of records that are space behind the others, of those parsed for these lines."""

    def parsed(self, json_object: Mapping[str, Any]) -> TraceRecord:
        """Return the record of a JSON object, which must say its offset."""
        if json_object.get("record") == BufferHeader.record:
            raise _second_header()
        record = super().parsed(json_object)
        offset = json_object.get("offset")
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
        raw = bytes(record.raw or b"")
        decoded = [decoded_record.edited() for decoded_record in RecordDecoder().records(raw)]
        if decoded != [record.edited()]:
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

    def __init__(self, sink: Sink, *, image_size: int = 0) -> None:
        super().__init__(sink, _ImageEncoder())
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
        if self._header is None or record.offset >= self._header.total_size:
            self._add_loose(record)
            return
        buffer = self.buffer_at(record.offset)
        data = self.encoder.encode(record)
        if len(data) > buffer.size:
            raise refusal(
                rules.BUFFER_TOO_SMALL,
                f"a {record.record} record of {len(data)} bytes, and {buffer.name} is smaller",
            )
        buffer.add(data, behind=_is_unused(record))

    def _add_loose(self, record: TraceRecord) -> None:
        """Take bytes that lie in no buffer, which are damage. Raises WriteRefusedError."""
        end_of_buffers = 0
        where = "without a buffer_header"
        if self._header is not None:
            end_of_buffers = self._header.total_size
            where = "behind the end of the buffer"
        if not isinstance(record, Damaged) or record.offset != end_of_buffers + len(self._loose):
            message = f"a {record.record} record at byte {record.offset}, {where}"
            raise refusal(rules.BUFFER_TOO_SMALL, message)
        self._loose += self.encoder.encode(record)

    def packer(self) -> BlockPacker | None:
        """Return what packs many records; None without a header that has come first."""
        if self._header is None:
            return None
        return super().packer()

    def put_records(self, data: memoryview, ends: I64, records: Sequence[Any]) -> None:
        """Take the bytes of records, each for the buffer that its offset lies in.

        Raises WriteRefusedError where an offset lies in none.
        """
        offsets = _offsets(records)
        is_unused = np.isin(offsets, list(self.encoder.unused))
        self.encoder.unused.clear()
        self.put_at(offsets, data, ends, is_unused)

    def put_at(
        self, offsets: I64, data: memoryview, ends: I64, is_unused: NDArray[np.bool_]
    ) -> None:
        """Take the bytes of records at some offsets, which may be space behind the others."""
        starts = [buffer.start for buffer in self.buffers]
        # Records of one buffer, used or unused, that follow one another are taken together.
        run_keys = 2 * np.searchsorted(starts, offsets, "right") + is_unused
        begins = np.flatnonzero(begins_of_runs(run_keys))
        begin_byte = 0
        for begin, end in itertools.pairwise((*begins.tolist(), offsets.size)):
            end_byte = int(ends[end - 1])
            buffer = self.buffer_at(int(offsets[begin:end].max()))
            buffer.add(data[begin_byte:end_byte], behind=bool(is_unused[begin]))
            begin_byte = end_byte

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
        self.buffers = []
        for name, start, length, end in header.buffers():
            bytes_there = max(0, min(length, size - start))
            self.buffers.append(_Buffer(name, start, bytes_there, end))

    def close(self) -> None:
        """Write the image, once.

        Raises WriteRefusedError (BUFFER_TOO_SMALL) where a buffer has too much.
        """
        if self._closed:
            return
        self._closed = True
        if self._header is None:
            self._sink.write(self._loose)
            return
        header_bytes = bytearray(self._header.encode())
        for buffer in self.buffers:
            is_scanned = self._header.mode == ONESHOT or not buffer.end
            end = buffer.settle(scanned=is_scanned)
            end_at = END_AT[buffer.name]
            header_bytes[end_at : end_at + WORD] = end.to_bytes(WORD, "little")
        self._sink.write(header_bytes)
        for buffer in self.buffers:
            self._sink.write(buffer.used)
            for written in range(0, buffer.gap, CHUNK):
                self._sink.write(bytes(min(CHUNK, buffer.gap - written)))
            self._sink.write(buffer.behind)
        self._sink.write(self._loose)


def _offsets(records: Sequence[Any]) -> I64:
    """Return what records, given as JSON, say of their places; -1 for none."""
    offsets = np.full(len(records), -1)
    for row, record in enumerate(records):
        if type(record) is dict:
            offset = record.get("offset")
            if type(offset) is int and 0 <= offset < MOST_BYTES:
                offsets[row] = offset
    return offsets


def open_buffer_writer(
    sink: Sink,
    options: Mapping[str, Any],
    diagnostics: Diagnostics,  # noqa: ARG001 (findings are the reader's; this one refuses)
) -> BufferWriter:
    """Return a writer of images.

    Of the options, ``image_size`` is the length of one that was cut.
    """
    return BufferWriter(sink, image_size=int(options.get("image_size", 0)))
