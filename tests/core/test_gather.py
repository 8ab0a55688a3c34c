"""Rows that are gathered one by one: their arguments, threads and nesting, and their tables."""

from __future__ import annotations

from typing import Any

import pytest

from fxframework.errors import UsageError
from fxframework.io.limits import Limits
from fxframework.kit.gather import Gathered
from fxframework.model.schema import ARG_TYPES, STANDARD_TABLES, TABLE_CODES
from fxframework.model.strings import StringPool
from fxframework.testing.contracts.checks import check_table

from ..cases import cases

NAMES = ("processes", "threads", "slices", "instants", "args")
SCHEMAS = {name: STANDARD_TABLES[name] for name in NAMES}


def gathered(**limits: int) -> Gathered:
    return Gathered(SCHEMAS, Limits(**limits))


def rows(made: Gathered, table: str, *columns: str) -> list[tuple[Any, ...]]:
    found = made.table(table, StringPool())
    check_table(found, 1000)
    return [tuple(getattr(row, name) for name in columns) for row in found]


@cases(
    ("value", "kind", "column", "held"),
    [
        (None, "null", "int", 0),
        (True, "bool", "int", 1),
        (-(1 << 63), "int64", "int", -(1 << 63)),
        ((1 << 63) - 1, "int64", "uint", (1 << 63) - 1),
        (1 << 63, "uint64", "uint", 1 << 63),
        ((1 << 64) - 1, "uint64", "int", -1),
        (1 << 64, "string", "str", hex(1 << 64)),
        (-1.5, "double", "float", -1.5),
        ("a", "string", "str", "a"),
        (b"b", "string", "str", "b"),
    ],
)
def test_arguments_have_types(value: Any, kind: str, column: str, held: Any) -> None:
    made = gathered()
    row = made.row("instants", 7, ts=1, name="n", args={"v": value})
    (found,) = rows(made, "args", "offset", "table", "parent", "name", "type", column)
    assert found[:4] == (7, TABLE_CODES["instants"], row, "v")
    assert (ARG_TYPES[found[4]], found[5]) == (kind, held)


def test_threads_are_by_number_or_by_pair() -> None:
    made = gathered()
    first = made.thread(5, 1, name="a")
    assert made.thread(5, 2, name=b"b") == first
    others = [made.thread(5, 3, pid=pid) for pid in (1, 2)]
    made.belongs(first, 9)
    made.process(9, 4, "shop")
    assert rows(made, "threads", "id", "pid", "tid", "name", "offset") == [
        (first, 9, 5, "b", 1),
        (others[0], 1, 5, None, 3),
        (others[1], 2, 5, None, 3),
    ]
    assert set(rows(made, "processes", "pid", "name")) == {(9, "shop"), (1, None), (2, None)}


def test_slices_nest_and_end_by_their_keys() -> None:
    made = gathered()
    thread = made.thread(1, 0)
    for at, key in enumerate("abc"):
        made.begin(key, at, thread=thread, ts=10 * at, name=key)
    assert made.end("x", thread=thread, ts=30) is None
    assert made.end("b", thread=thread, ts=30) == 1
    assert made.end("c", thread=thread, ts=31) is None
    assert made.end("a", thread=thread, ts=-5) == 0
    assert rows(made, "slices", "name", "dur", "depth", "parent") == [
        ("a", 0, 0, -1), ("b", 20, 1, 0), ("c", -1, 2, 1),
    ]  # fmt: skip
    assert made.open_offsets == [2]


def test_depth_is_bounded() -> None:
    made = gathered(max_depth=2)
    for at in range(5):
        made.begin(at, at, thread=0, ts=at)
    assert [depth for (depth,) in rows(made, "slices", "depth")] == [0, 1, 2, 2, 2]


def test_tables_without_rows_and_without_schemas() -> None:
    made = gathered()
    assert made.open_offsets == []
    for name in NAMES:
        assert rows(made, name) == []
    with pytest.raises(UsageError, match="logs"):
        made.table("logs", StringPool())
