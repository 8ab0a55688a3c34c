"""Fuchsia's logs: structured records, legacy packets, and rings of the kernel.

The public names are importable from here and load at first use. ``LogWriter`` and ``LogHandler``
write logs; ``convert_attribution``, ``to_structured`` and ``redact`` change records, and ``legacy``
gives the logs of any capture as packets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fxframework.kit.lazy import lazy_names

if TYPE_CHECKING:
    from fx_log.format import Argument, LegacyPacket, LogRecord
    from fx_log.severity import Level
    from fx_log.write.convert import convert_attribution, legacy, structured, to_structured
    from fx_log.write.handler import LogHandler
    from fx_log.write.redaction import redact
    from fx_log.write.rewriter import RecordEncoder
    from fx_log.write.sinks import PacketWriter, RingWriter
    from fx_log.write.writer import LogWriter, add_dropped_count
    from fxframework.kit.arguments import Double, Int64, Null, String, Uint64

__all__ = [
    "Argument",
    "Double",
    "Int64",
    "LegacyPacket",
    "Level",
    "LogHandler",
    "LogRecord",
    "LogWriter",
    "Null",
    "PacketWriter",
    "RecordEncoder",
    "RingWriter",
    "String",
    "Uint64",
    "add_dropped_count",
    "convert_attribution",
    "legacy",
    "redact",
    "structured",
    "to_structured",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "fx_log.format": "Argument LegacyPacket LogRecord",
        "fx_log.severity": "Level",
        "fx_log.write.convert": "convert_attribution legacy structured to_structured",
        "fx_log.write.rewriter": "RecordEncoder",
        "fx_log.write.handler": "LogHandler",
        "fx_log.write.redaction": "redact",
        "fx_log.write.sinks": "PacketWriter RingWriter",
        "fx_log.write.writer": "LogWriter add_dropped_count",
        "fxframework.kit.arguments": "Double Int64 Null String Uint64",
    },
)
