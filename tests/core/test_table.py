"""Tables made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from fxframework.errors import BadCallError
from fxframework.model.schema import STANDARD_TABLES
from fxframework.model.strings import StringPool, TextColumn
from fxframework.model.table import Table


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


@pytest.mark.parametrize("size", [10, 5_000_000], ids=["plain", "compiled"])
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


@pytest.mark.parametrize("size", [10, 5_000_000], ids=["plain", "compiled"])
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
