"""The rewriter: writes records that were read from a trace, or their JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fx_trace import format as wire
from fx_trace import records as r
from fx_trace.read.cursor import Tables
from fx_trace.read.decoder import RecordEncoder
from fx_trace.records import TraceRecord
from fx_trace.write.arguments import encoded_text
from fxframework.io.sink import Sink
from fxframework.io.words import pad8
from fxframework.kit.lossless import Alone, RecordRewriter
from fxframework.model.diagnostics import Diagnostics

__all__ = ["TraceRewriter", "open_writer", "perfetto_parts"]


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

    def alone(self) -> Alone | None:
        """Return how records are encoded; None if large ones are taken apart."""
        return None if self._perfetto_safe else super().alone()


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
