"""Fuchsia's logs: structured records, legacy packets, rings of the kernel.

What programs use is importable from here; it is loaded when it is first used. ``LogWriter`` and
``LogHandler`` write logs, ``RecordDecoder`` reads records one at a time, ``convert_attribution``,
``to_structured``, ``to_legacy`` and ``redact`` change records.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fx_log.read.arguments import Argument
    from fx_log.read.decoder import RecordDecoder
    from fx_log.read.records import LegacyPacket, LogRecord
    from fx_log.severity import Level
    from fx_log.write.arguments import Double, Int64, Null, String, Uint64
    from fx_log.write.convert import (
        convert_attribution,
        legacy,
        structured,
        to_legacy,
        to_structured,
    )
    from fx_log.write.encoder import RecordEncoder
    from fx_log.write.handler import LogHandler
    from fx_log.write.redaction import redact
    from fx_log.write.sinks import PacketWriter, RingWriter
    from fx_log.write.writer import LogWriter, add_dropped_count

_HOMES = {
    "Argument": "fx_log.read.arguments",
    "Double": "fx_log.write.arguments",
    "Int64": "fx_log.write.arguments",
    "LegacyPacket": "fx_log.read.records",
    "Level": "fx_log.severity",
    "LogHandler": "fx_log.write.handler",
    "LogRecord": "fx_log.read.records",
    "LogWriter": "fx_log.write.writer",
    "Null": "fx_log.write.arguments",
    "PacketWriter": "fx_log.write.sinks",
    "RecordDecoder": "fx_log.read.decoder",
    "RecordEncoder": "fx_log.write.encoder",
    "RingWriter": "fx_log.write.sinks",
    "String": "fx_log.write.arguments",
    "Uint64": "fx_log.write.arguments",
    "add_dropped_count": "fx_log.write.writer",
    "convert_attribution": "fx_log.write.convert",
    "legacy": "fx_log.write.convert",
    "redact": "fx_log.write.redaction",
    "structured": "fx_log.write.convert",
    "to_legacy": "fx_log.write.convert",
    "to_structured": "fx_log.write.convert",
}

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
    "RecordDecoder",
    "RecordEncoder",
    "RingWriter",
    "String",
    "Uint64",
    "add_dropped_count",
    "convert_attribution",
    "legacy",
    "redact",
    "structured",
    "to_legacy",
    "to_structured",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    msg = f"module 'fx_log' has no attribute {name!r}"
    raise AttributeError(msg)


def __dir__() -> list[str]:
    return __all__
