"""Writes traces: records, or their JSON, back into the bytes that they stand for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fx_trace.records import RecordEncoder, TraceRecord
from fxframework.io.sink import Sink
from fxframework.model.diagnostics import Diagnostics

__all__ = ["TraceWriter", "open_writer"]

BUFFER = 1 << 20
"""Bytes gathered before they go to the sink."""


class TraceWriter:
    """Puts one record after the other into a sink (``fxframework.registry.RecordWriter``)."""

    def __init__(self, sink: Sink, *, big_endian: bool = False) -> None:
        self._sink = sink
        self._encoder = RecordEncoder(big_endian=big_endian)
        self._buffer = bytearray()

    def write(self, record: TraceRecord | Mapping[str, Any]) -> None:
        """Write a record. Raises WriteRefusedError (FXT0401 to FXT0409), nothing of it written."""
        self._buffer += self._encoder.encode(record)
        if len(self._buffer) >= BUFFER:
            self._flush()

    def close(self) -> None:
        """Put what is still held back into the sink, which stays open."""
        self._flush()

    def _flush(self) -> None:
        self._sink.write(self._buffer)
        self._buffer = bytearray()


def open_writer(
    sink: Sink,
    options: Mapping[str, Any],
    diagnostics: Diagnostics,  # noqa: ARG001 (findings are the reader's; this one refuses)
) -> TraceWriter:
    """A writer of trace records. Of the options, ``big_endian`` says how words are to stand."""
    return TraceWriter(sink, big_endian=bool(options.get("big_endian", False)))
