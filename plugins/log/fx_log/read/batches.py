"""Batches: the columns of a batch of rows of each table, made of raw rows (``rows.py``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fx_log.format import ArgType
from fx_log.read.first_pass import Chunk
from fx_log.read.tables import (
    GIVEN_LINE,
    GIVEN_MESSAGE,
    GIVEN_PID,
    GIVEN_TID,
    IS_PRINTF,
    RARE_DROPPED,
    RARE_ROLLED_OUT,
    RARE_VERBOSITY,
    WELL_KNOWN,
)
from fx_log.severity import LEVELS, Level
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
    logs = chunk.logs
    rows = int(logs["ns"].size)

    def rare(column: int) -> I64:
        picked = chunk.rare["column"] == column
        if not picked.any():
            return np.broadcast_to(np.int64(0), rows)
        values = np.zeros(rows, np.int64)
        values[chunk.rare["row"][picked] - chunk.first["logs"]] = chunk.rare["value"][picked]
        return values

    return rows, {
        "offset": logs["offset"],
        "ts": logs["ns"],
        "ticks": logs["ns"].view(np.uint64),
        "severity": logs["severity"],
        "severity_name": lambda: _LEVEL_CODES[logs["severity"]],
        "pid": logs["pid"].view(np.uint64),
        "tid": logs["tid"].view(np.uint64),
        "tags": logs["tags"],
        "component": logs["component"],
        "message": lambda: _messages(chunk),
        "file": logs["file"],
        "line": logs["line"],
        "dropped": lambda: rare(RARE_DROPPED).view(np.uint64),
        "log_url": logs["url"],
        "log_tag": logs["tag"].view(np.uint64),
        "log_rolled_out": lambda: rare(RARE_ROLLED_OUT).view(np.uint64),
        "log_verbosity": lambda: rare(RARE_VERBOSITY),
        "log_given": lambda: logs["given"] & np.uint8(_SHOWN),
    }


def _messages(chunk: Chunk) -> TextColumn:
    """Return the messages, with structured printfs rendered."""
    logs = chunk.logs
    plain = TextColumn.gather(chunk.data, logs["start"], logs["length"])
    rows = np.flatnonzero(logs["given"] & (IS_PRINTF | GIVEN_MESSAGE) == _RENDERED)
    if not rows.size:
        return plain
    from fx_log.read.entries import render_printf

    values = chunk.positional
    first = np.searchsorted(values["parent"], rows + chunk.first["logs"])
    last = np.searchsorted(values["parent"], rows + chunk.first["logs"], side="right")
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


def _value(pool: StringPool, values: Mapping[str, NDArray[Any]], at: int) -> Any:
    """Return the value of a positional argument."""
    kind, value = int(values["type"][at]), int(values["value"][at])
    if kind == ArgType.NULL:
        return None
    if kind == ArgType.INT64:
        return value
    if kind == ArgType.UINT64:
        return value & U64_MAX
    if kind == ArgType.DOUBLE:
        return float(values["value"][at : at + 1].view(np.float64)[0])
    if kind == ArgType.BOOL:
        return bool(value)
    return pool.bytes_of(value)


def _args(chunk: Chunk) -> tuple[int, Columns]:
    args = chunk.args
    rows = int(args["type"].size)
    return rows, {
        "offset": args["offset"],
        "table": np.broadcast_to(np.uint8(TABLE_CODES["logs"]), rows),
        "parent": args["parent"],
        "name": args["name"],
        "type": args["type"],
        **value_columns(args["type"], args["value"], chunk.types_seen, _TEXTS, _INTEGERS),
    }


def _log_tags(chunk: Chunk) -> tuple[int, Columns]:
    tags = chunk.tags
    return int(tags["name"].size), {
        "offset": tags["offset"],
        "parent": tags["parent"],
        "name": tags["name"],
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
