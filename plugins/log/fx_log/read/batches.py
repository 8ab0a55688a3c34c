"""Batches: the columns of a batch of rows of each table, made of those of a chunk."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fx_log.format import ArgType
from fx_log.meaning import Arguments
from fx_log.read.first_pass import Chunk
from fx_log.severity import LEVELS, Level
from fx_log.tables import (
    GIVEN_LINE,
    GIVEN_MESSAGE,
    GIVEN_PID,
    GIVEN_TID,
    IS_PRINTF,
    WELL_KNOWN,
)
from fxframework.io.words import U64_MAX
from fxframework.kit.scanned import Batch, Columns, value_columns
from fxframework.model.schema import TABLE_CODES
from fxframework.model.strings import StringPool, TextColumn

__all__ = ["batch_of"]

I64 = NDArray[np.int64]
_LEVEL_CODES = np.array([len(WELL_KNOWN) + list(Level).index(level) for level in LEVELS], np.int32)
"""Code of the level's name, by severity byte."""
_SHOWN = GIVEN_MESSAGE | GIVEN_PID | GIVEN_TID | GIVEN_LINE
_RENDERED = IS_PRINTF | GIVEN_MESSAGE
_INTEGERS = 1 << ArgType.INT64 | 1 << ArgType.UINT64 | 1 << ArgType.BOOL
_TEXTS = 0xFFFF & ~_INTEGERS & ~(1 << ArgType.DOUBLE | 1 << ArgType.NULL)
"""Types with values in the string pool, which include undefined types, kept as bytes."""


def _logs(chunk: Chunk) -> tuple[int, Columns]:
    logs = chunk.rows.logs
    return int(logs["ts"].size), {
        "offset": logs["offset"],
        "ts": logs["ts"],
        "ticks": logs["ts"].view(np.uint64),
        "severity": logs["severity"],
        "severity_name": lambda: _LEVEL_CODES[logs["severity"]],
        "pid": logs["pid"].view(np.uint64),
        "tid": logs["tid"].view(np.uint64),
        "tags": logs["tags"],
        "component": logs["component"],
        "message": lambda: _messages(chunk),
        "file": logs["file"],
        "line": logs["line"],
        "dropped": logs["dropped"].view(np.uint64),
        "log_url": logs["log_url"],
        "log_tag": logs["log_tag"].view(np.uint64),
        "log_rolled_out": logs["log_rolled_out"].view(np.uint64),
        "log_verbosity": logs["log_verbosity"],
        "log_given": lambda: logs["log_given"] & np.uint8(_SHOWN),
    }


def _messages(chunk: Chunk) -> TextColumn:
    """Return the messages, with structured printfs rendered."""
    logs = chunk.rows.logs
    plain = TextColumn.gather(chunk.data, logs["message_start"], logs["message_length"])
    rows = np.flatnonzero(logs["log_given"] & (IS_PRINTF | GIVEN_MESSAGE) == _RENDERED)
    if not rows.size:
        return plain
    from fx_log.read.entries import render_printf

    values = chunk.rows.printf
    first = np.searchsorted(values.record, rows)
    last = np.searchsorted(values.record, rows, side="right")
    rendered = TextColumn.of(
        render_printf(
            plain.bytes_of(row), [_value(chunk.pool, values, at) for at in range(*bounds)]
        )
        for row, *bounds in zip(rows.tolist(), first.tolist(), last.tolist(), strict=True)
    )
    starts, lengths = plain.offsets[:-1].copy(), np.diff(plain.offsets)
    starts[rows] = plain.data.size + rendered.offsets[:-1]
    lengths[rows] = np.diff(rendered.offsets)
    return TextColumn.gather(np.concatenate((plain.data, rendered.data)), starts, lengths)


def _value(pool: StringPool, values: Arguments, at: int) -> Any:
    """Return the value of a positional argument."""
    kind, value = int(values.type[at]), int(values.value[at])
    if kind == ArgType.NULL:
        return None
    if kind == ArgType.INT64:
        return value
    if kind == ArgType.UINT64:
        return value & U64_MAX
    if kind == ArgType.DOUBLE:
        return float(values.value[at : at + 1].view(np.float64)[0])
    if kind == ArgType.BOOL:
        return bool(value)
    return pool.bytes_of(value)


def _args(chunk: Chunk) -> tuple[int, Columns]:
    args = chunk.rows.args
    rows = int(args.type.size)
    seen = int(np.bitwise_or.reduce(1 << np.flatnonzero(np.bincount(args.type, minlength=1))))
    return rows, {
        "offset": args.offset,
        "table": np.broadcast_to(np.uint8(TABLE_CODES["logs"]), rows),
        "parent": args.record + chunk.first["logs"],
        "name": args.name,
        "type": args.type,
        **value_columns(args.type, args.value, seen, _TEXTS, _INTEGERS),
    }


def _log_tags(chunk: Chunk) -> tuple[int, Columns]:
    tags = chunk.rows.tags
    return int(tags.name.size), {
        "offset": tags.offset,
        "parent": tags.record + chunk.first["logs"],
        "name": tags.name,
    }


_MAKERS: Mapping[str, Callable[[Chunk], tuple[int, Columns]]] = {
    "logs": _logs,
    "args": _args,
    "log_tags": _log_tags,
}


def batch_of(name: str, chunk: Chunk) -> Batch:
    """Return the rows of a table that a chunk holds."""
    count, columns = _MAKERS[name](chunk)
    return Batch(chunk.first[name], count, columns)
