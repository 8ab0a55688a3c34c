"""Tables made by hand."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fxframework.errors import BadCallError, UsageError
from fxframework.host import default_host
from fxframework.model.schema import STANDARD_TABLES, Column
from fxframework.model.strings import StringPool, TextColumn
from fxframework.model.table import Table

from ..cases import cases
from ..samples import one_of_each, samples


def test_what_is_not_given_is_null_zero_or_empty() -> None:
    table = Table.of(STANDARD_TABLES["logs"], StringPool(), ts=[5, 6])
    assert len(table) == 2
    assert table["row"].tolist() == [0, 1]
    assert table["offset"].tolist() == [-1, -1]
    assert table["tags"].tolist() == [-1, -1]
    assert table["line"].tolist() == [0, 0]
    assert list(table["message"]) == ["", ""]
    slices = Table.of(STANDARD_TABLES["slices"], StringPool(), ts=[1])
    assert (slices["thread"].tolist(), slices["parent"].tolist()) == ([-1], [-1])
    blobs = Table.of(STANDARD_TABLES["blobs"], StringPool(), size=[1, 2])
    assert blobs["data"].tolist() == [[0, 0], [0, 0]]


def test_texts_of_several_columns_are_joined() -> None:
    column = TextColumn.of(["a", "", "bcd", b"\xff"])
    joined = TextColumn.joined([column[1:3], TextColumn.of([]), column])
    rows = [joined.bytes_of(row) for row in range(len(joined))]
    assert rows == [b"", b"bcd", b"a", b"", b"bcd", b"\xff"]
    assert joined.offsets[0] == 0
    assert not len(TextColumn.joined([]))


def test_texts_are_entered_into_the_pool() -> None:
    pool = StringPool()
    table = Table.of(
        STANDARD_TABLES["instants"], pool, name=["a", b"\xff", None, "a"], category="c", ts=3
    )
    assert table.texts("name") == ["a", "\ufffd", None, "a"]
    assert table.texts("category") == ["c"] * 4
    assert table["ts"].tolist() == [3] * 4
    codes = np.array([pool.intern(b"z"), -1], np.int32)
    again = Table.of(STANDARD_TABLES["instants"], pool, name=codes)
    assert again.texts("name") == ["z", None]
    logs = Table.of(STANDARD_TABLES["logs"], pool, message=TextColumn.of(["x", "y"]))
    assert list(logs["message"]) == ["x", "y"]


@cases("given", ["global", ["global"] * 2, [2, "global"], 2, np.array([2, 2])])
def test_values_of_an_enumeration_are_given_by_name(given: Any) -> None:
    table = Table.of(STANDARD_TABLES["instants"], StringPool(), ts=[1, 2], scope=given)
    assert table["scope"].tolist() == [2, 2]
    assert table.plain("scope") == ["global", "global"]
    with pytest.raises(BadCallError, match="'glob' is not one of thread, process, global"):
        Table.of(STANDARD_TABLES["instants"], StringPool(), ts=[1, 2], scope="glob")


def test_an_empty_table() -> None:
    table = Table.of(STANDARD_TABLES["slices"], StringPool())
    assert len(table) == 0
    assert [len(table[name]) for name in table.columns] == [0] * len(table.columns)


def test_columns_of_different_lengths() -> None:
    with pytest.raises(BadCallError, match=r"columns of \[2, 3\] rows"):
        Table.of(STANDARD_TABLES["slices"], StringPool(), ts=[1, 2], dur=[1, 2, 3])


def test_a_column_that_the_schema_does_not_have() -> None:
    with pytest.raises(BadCallError, match="did you mean 'dur'"):
        Table.of(STANDARD_TABLES["slices"], StringPool(), dru=[1])


@cases("size", [10, 5_000_000], ids=["plain", "compiled"])
def test_gathered_stretches_are_copied_in_order(size: int) -> None:
    source = np.arange(size, dtype=np.int64).astype(np.uint8)
    starts = np.array([size - 4, 2, 0, 0, size], np.int64)
    lengths = np.array([4, 3, 0, size, 0], np.int64)
    column = TextColumn.gather(source, starts, lengths)
    data = source.tobytes()
    wanted = [data[at : at + n] for at, n in zip(starts.tolist(), lengths.tolist(), strict=True)]
    assert [column.bytes_of(row) for row in range(len(column))] == wanted
    assert column.data.size == size + 7
    taken = column.take(np.array([3, 0]))
    assert [taken.bytes_of(row) for row in range(2)] == [data, data[-4:]]


@cases("size", [10, 5_000_000], ids=["plain", "compiled"])
def test_a_stretch_beyond_its_source_is_refused(size: int) -> None:
    source = np.zeros(size, np.uint8)
    with pytest.raises(IndexError):
        TextColumn.gather(source, np.array([1]), np.array([size]))


def test_batches_make_the_numbers_of_rows_once() -> None:
    """Each batch of a large table costs what the batch costs, not what the table does."""
    schema, pool, made = STANDARD_TABLES["slices"], StringPool(), []

    def numbers() -> np.ndarray:
        made.append(1)
        return np.arange(100)

    columns = {column.name: Table.of(schema, pool, ts=range(100))[column.name]
               for column in schema.all_columns}  # fmt: skip
    table = Table(schema, 100, {**columns, "row": numbers}, pool)
    assert [batch["row"].tolist() for batch in table.batches(30)] == [
        list(range(at, min(at + 30, 100))) for at in range(0, 100, 30)
    ]
    assert len(made) == 1


TEXTS = {"code": "name", "text": "toy_text"}
NUMBERS = {"i8": "ts", "u8": "id", "i4": "thread", "f8": "value", "?": "is_int",
           "bytes": "toy_bytes", "array": "toy_array"}  # fmt: skip
KINDS = {**TEXTS, **NUMBERS, "unknown": "nmae"}
WAYS: dict[str, Callable[[Table, str], object]] = {
    "column": lambda table, name: table[name],
    "texts": lambda table, name: table.texts(name),
    "array": lambda table, name: table.array(name),
    "tuples": lambda table, name: list(table.tuples(name)),
    "plain": lambda table, name: table.plain(name),
    "to_arrow": lambda table, name: table.to_arrow([name]),
}
REFUSED = {
    **dict.fromkeys(itertools.product(["texts"], NUMBERS), TypeError),
    **dict.fromkeys(itertools.product(["array", "tuples"], ["text"]), TypeError),
    **dict.fromkeys(itertools.product(WAYS, ["unknown"]), UsageError),
}


@cases("rows", [1, 200], ids=["few", "many"])
@cases("way", WAYS)
@cases("kind", KINDS)
def test_each_way_to_take_a_column_suits_its_kind_or_is_refused(
    kind: str, way: str, rows: int
) -> None:
    if way == "to_arrow":
        pytest.importorskip("pyarrow")
    schema = STANDARD_TABLES["counters"].extended(
        Column("toy_text", "text", ""),
        Column("toy_bytes", "bytes", ""),
        Column("toy_array", "array", ""),
    )
    large = list(range(1 << 40, (1 << 40) + rows))
    table = Table.of(
        schema, StringPool(), name=["a"] * rows, ts=large, id=large, value=1e9, is_int=True,
        thread=1 << 30, toy_text=["b"] * rows, toy_bytes=[[7, 7]] * rows,
    )  # fmt: skip
    if refused := REFUSED.get((way, kind)):
        with pytest.raises(refused, match=rf"counters(\.| has no column '){KINDS[kind]}"):
            WAYS[way](table, KINDS[kind])
    else:
        made = WAYS[way](table, KINDS[kind])
        assert way == "to_arrow" or len(made) == rows


@cases("count", [1, 200], ids=["few", "many"])
@cases("code", [-2, 2, 1 << 30, -(1 << 31)])
def test_a_code_that_is_not_in_the_pool_is_refused(code: int, count: int) -> None:
    pool = StringPool()
    pool.intern(b"a")
    codes = np.array([1] * (count - 1) + [code], np.int32)
    with pytest.raises(BadCallError, match=f"code {code} is not in the pool"):
        Table.of(STANDARD_TABLES["slices"], pool, name=codes)
    for take in (pool.take, pool.column, lambda codes: pool.bytes_of(codes[-1])):
        with pytest.raises(IndexError, match=f"code {code} is not in the pool, which has 2"):
            take(codes)
    with pytest.raises(IndexError):
        pool.pool.bytes_of(code)
    assert pool.take(np.array([-1, 0, 1])) == [None, "", "a"]
    for odd in (np.array([1.0]), np.array([True]), np.array(["a"])):
        with pytest.raises(TypeError, match="string codes are integers"):
            pool.take(odd)


@cases("name", one_of_each())
def test_columns_cannot_be_written_to(name: str) -> None:
    format, data = samples()[name]
    with default_host().open(data, format=format) as capture:
        for each in capture.tables:
            whole = capture.table(each)
            tables = [whole, whole.select(slice(0, 3)), *itertools.islice(capture.batches(each), 1)]
            tables += [whole.select(np.arange(len(whole))), whole.replaced(offset=whole["offset"])]
            for table, column in itertools.product(tables, whole.columns):
                values = table[column]
                arrays = [values]
                if isinstance(values, TextColumn):
                    arrays = [values.offsets, values.data]
                assert not any(array.flags.writeable for array in arrays), (each, column)


def test_a_column_that_was_given_is_not_locked_for_its_owner() -> None:
    mine = np.arange(3)
    table = Table.of(STANDARD_TABLES["instants"], StringPool(), ts=mine)
    with pytest.raises(ValueError, match="read-only"):
        table.array("ts")[0] = 5
    mine[0] = 7


def test_a_column_that_came_later_may_lack() -> None:
    schema = STANDARD_TABLES["sched"]
    columns = {
        column.name: np.zeros(3, column.kind)
        for column in schema.all_columns
        if not column.optional
    }
    table = Table(schema, 3, columns, StringPool())
    assert table["waker"].tolist() == [0, 0, 0]
    assert table.columns[-1] == "waker"
    del columns["cpu"]
    with pytest.raises(BadCallError, match=r"do not match its schema: \['cpu'\]"):
        Table(schema, 3, columns, StringPool())
