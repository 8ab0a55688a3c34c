"""Fuchsia traces (FXT), read and written: archives, trace buffers and their records.

The names below load when they are first used:

- ``TraceWriter`` records what a program does, one call at a time; ``Archive`` is the file that it
  writes to, ``TraceBuffer`` a ring in memory that a trace manager reads.
- ``FlightRecorder`` keeps the last records of a program in memory, and saves them as an archive.
- ``Koid``, ``Pointer``, ``Blob`` and the like say which type an argument is to have.
- ``RecordDecoder`` and ``RecordEncoder`` turn bytes into records and back, one at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fxframework.kit.lazy import lazy_names

if TYPE_CHECKING:
    from fx_trace.read.decoder import RecordDecoder, RecordEncoder
    from fx_trace.write.archive import Archive, FlightRecorder
    from fx_trace.write.buffer import TraceBuffer
    from fx_trace.write.writer import TraceWriter
    from fxframework.kit.arguments import (
        Blob,
        Double,
        Int32,
        Int64,
        Koid,
        Pointer,
        String,
        Uint32,
        Uint64,
    )

__all__ = [
    "Archive",
    "Blob",
    "Double",
    "FlightRecorder",
    "Int32",
    "Int64",
    "Koid",
    "Pointer",
    "RecordDecoder",
    "RecordEncoder",
    "String",
    "TraceBuffer",
    "TraceWriter",
    "Uint32",
    "Uint64",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "fx_trace.read.decoder": "RecordDecoder RecordEncoder",
        "fx_trace.write.archive": "Archive FlightRecorder",
        "fx_trace.write.buffer": "TraceBuffer",
        "fx_trace.write.writer": "TraceWriter",
        "fxframework.kit.arguments": "Blob Double Int32 Int64 Koid Pointer String Uint32 Uint64",
    },
)
