"""Tables made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from fxframework.errors import UsageError
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
    assert [len(table[name]) for name in table] == [0] * len(list(table))


def test_columns_of_different_lengths() -> None:
    with pytest.raises(ValueError, match=r"columns of \[2, 3\] rows"):
        Table.of(STANDARD_TABLES["slices"], StringPool(), ts=[1, 2], dur=[1, 2, 3])


def test_a_column_that_the_schema_does_not_have() -> None:
    with pytest.raises(UsageError, match="did you mean 'dur'"):
        Table.of(STANDARD_TABLES["slices"], StringPool(), dru=[1])
