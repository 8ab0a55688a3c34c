"""Batches: the columns of a batch of rows of each table, made of raw rows (``match.py``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fx_xray import format as wire
from fx_xray.format import ARGUMENT, CUSTOM, DATA, EVENT_TYPE, TYPED
from fx_xray.read.events import to_ns, to_spans
from fx_xray.read.first_pass import CallPass
from fx_xray.read.log import Log
from fx_xray.read.match import Rows
from fx_xray.read.symbols import FunctionNames, code_of
from fx_xray.read.tables import CUSTOM_EVENT, SCHEMAS, TYPED_EVENT, UNMATCHED_EXIT
from fxframework.kernels.arrays import I64, U8
from fxframework.kit.scanned import Batch, Columns, task_columns
from fxframework.model.schema import CALL, TABLE_CODES

_ARGUMENT_TYPE, _EVENT_TYPE, _DATA_TYPE = 4, 2, 10
"""Of `args`: uint64, uint32, blob."""
_BUFFER_COLUMNS = tuple(
    column for column in SCHEMAS["xray_buffers"].all_columns if column.name != "row"
)


def _slices(passed: CallPass, names: FunctionNames, rows: Rows) -> Batch:
    slices = rows.slices
    spans = passed.matcher.spans
    row_count = int(slices["offset"].size)
    first_row = rows.first["slices"]
    own_rows = slice(first_row, first_row + row_count)
    columns = call_columns(slices, spans.ticks[own_rows], names, passed.frequency)
    columns["xray_cpu"] = slices["cpu"]
    columns["xray_exit"] = spans.exit[own_rows]
    columns["xray_entry"] = slices["entry"]
    return Batch(first_row, row_count, columns)


def call_columns(
    calls: Mapping[str, Any], lengths: I64, names: FunctionNames, frequency: int
) -> Columns:
    """Return the columns of `slices` that do not depend on what wrote the calls.

    ``calls`` has the columns ``offset``, ``ticks`` (int64), ``thread``, ``function``, ``depth`` and
    ``parent``; ``lengths`` are in ticks.
    """
    row_count = lengths.size
    spans_made: list[tuple[I64, I64]] = []

    def spans_in_ns() -> tuple[I64, I64]:
        if not spans_made:
            spans_made.append(to_spans(calls["ticks"], lengths, frequency))
        return spans_made[0]

    return {
        "offset": calls["offset"],
        "ts": lambda: spans_in_ns()[0],
        "ticks": calls["ticks"].view(np.uint64),
        "dur": lambda: spans_in_ns()[1],
        "thread": calls["thread"],
        "category": np.broadcast_to(np.int32(-1), row_count),
        "name": lambda: names.of(calls["function"]),
        "depth": calls["depth"],
        "parent": calls["parent"],
        "kind": np.broadcast_to(np.uint8(CALL), row_count),
        "id": np.broadcast_to(np.uint64(0), row_count),
        "xray_function": calls["function"],
        "xray_ticks": lengths,
    }


def _instants(passed: CallPass, names: FunctionNames, rows: Rows) -> Batch:
    instants = rows.instants
    row_count = int(instants["offset"].size)
    frequency = passed.frequency

    strings = names.strings

    def categories() -> NDArray[np.int32]:
        codes = np.zeros(8, np.int32)
        codes[:] = strings.intern(UNMATCHED_EXIT.encode())
        codes[CUSTOM] = strings.intern(CUSTOM_EVENT.encode())
        codes[TYPED] = strings.intern(TYPED_EVENT.encode())
        category_codes: NDArray[np.int32] = codes[instants["kind"]]
        return category_codes

    def shown() -> NDArray[np.int32]:
        codes = categories()
        exits = instants["kind"] < ARGUMENT
        codes[exits] = names.of(instants["function"][exits])
        return codes

    columns: Columns = {
        "offset": instants["offset"],
        "ts": lambda: to_ns(instants["ticks"], frequency),
        "ticks": instants["ticks"].view(np.uint64),
        "thread": instants["thread"],
        "category": categories,
        "name": shown,
        "scope": np.broadcast_to(np.uint8(0), row_count),
        "id": np.broadcast_to(np.uint64(0), row_count),
        "xray_cpu": instants["cpu"],
        "xray_event_type": lambda: np.where(
            instants["kind"] == TYPED, instants["function"], 0
        ).astype(np.uint16),
    }
    return Batch(rows.first["instants"], row_count, columns)


def _args(passed: CallPass, names: FunctionNames, rows: Rows) -> Batch:
    args = rows.args
    row_count = int(args["offset"].size)
    strings = names.strings
    tables = np.array([TABLE_CODES["slices"], TABLE_CODES["instants"]], np.uint8)

    def shown() -> NDArray[np.int32]:
        numbers, inverse = np.unique(args["name"], return_inverse=True)
        special = {DATA: "data", EVENT_TYPE: "event_type"}
        names = (special.get(number, f"arg{number}") for number in numbers.tolist())
        encoded = [name.encode() for name in names]
        codes = np.array(list(map(strings.intern, encoded)), np.int32)
        return codes[inverse.reshape(-1)]

    def types() -> U8:
        kinds = np.full(row_count, _ARGUMENT_TYPE, np.uint8)
        kinds[args["name"] == DATA] = _DATA_TYPE
        kinds[args["name"] == EVENT_TYPE] = _EVENT_TYPE
        return kinds

    def values() -> I64:
        data = args["name"] == DATA
        return np.where(data, 0, args["value"]) if data.any() else args["value"]

    def payloads() -> NDArray[np.int32]:
        picked = np.flatnonzero(args["name"] == DATA)
        if not picked.size:
            return np.broadcast_to(np.int32(-1), row_count)
        codes = np.full(row_count, -1, np.int32)
        sizes = args["size"][picked].astype(np.int64)
        places = args["value"][picked]
        codes[picked] = passed.log.codes_of_payloads(strings.pool, places, sizes)
        return codes

    columns: Columns = {
        "offset": args["offset"],
        "table": lambda: tables[args["of_instant"]],
        "parent": args["parent"],
        "name": shown,
        "type": types,
        "int": values,
        "uint": lambda: values().view(np.uint64),
        "float": np.broadcast_to(np.float64(0), row_count),
        "str": payloads,
    }
    return Batch(rows.first["args"], row_count, columns)


_MAKERS: Mapping[str, Callable[[CallPass, FunctionNames, Rows], Batch]] = {
    "slices": _slices,
    "instants": _instants,
    "args": _args,
}


def batch_of(name: str, passed: CallPass, names: FunctionNames, rows: Rows) -> Batch:
    """Return the rows of a streamed table that a part holds."""
    return _MAKERS[name](passed, names, rows)


# --- Tables of few rows ---------------------------------------------------------------------------


def small_columns(name: str, passed: CallPass, names: FunctionNames) -> Columns:
    """Return the columns of a table that has few rows, except `row`."""
    if name in ("processes", "threads"):
        log = passed.log
        return task_columns(name, log.pids, log.tids, log.thread_offsets)
    if name == "xray_buffers":
        return _buffers(passed.log)
    _, calls, first_offsets = passed.functions
    return function_columns(names, calls, first_offsets)


def _buffers(log: Log) -> Columns:
    if log.buffers is not None:
        return {**log.buffers}
    empty = np.zeros(0, np.int64)
    return {column.name: empty.astype(column.kind) for column in _BUFFER_COLUMNS}


def function_columns(names: FunctionNames, calls: I64, offsets: I64) -> Columns:
    """Return the columns of the functions of a trace, in the order of ``names``."""
    ids = names.functions
    symbols = names.symbols
    strings = names.strings

    def column(dtype: type, of: Callable[[int], int], otherwise: Any) -> Any:
        """Return what the maps say of each function; nothing is asked where there is no map."""
        if not symbols:
            return np.broadcast_to(np.asarray(otherwise, dtype), ids.shape)
        return np.fromiter(map(of, map(int, ids)), dtype, ids.size)

    def codes(of: Callable[[int], str | None]) -> NDArray[np.int32]:
        column_codes: NDArray[np.int32] = column(np.int32, lambda id: code_of(of(id), strings), -1)
        return column_codes

    objects = ids // wire.OBJECT_IDS
    return {
        "offset": offsets,
        "id": ids.astype(np.uint32),
        "object": lambda: column(
            np.uint8, lambda id: symbols.object(id) & wire.MAX_OBJECT, objects
        ),
        "name": lambda: names.codes,
        "linkage_name": lambda: codes(lambda id: symbols.function(id).linkage_name),
        "source": lambda: codes(symbols.source),
        "address": lambda: column(np.uint64, lambda id: symbols.function(id).address, 0),
        "calls": calls,
    }
