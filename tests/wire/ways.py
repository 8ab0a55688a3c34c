"""The ways in which tables of declared formats are read: all by columns, or records as objects."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from tests.wire.support import findings, opened

from fxframework.wire import blocks
from fxframework.wire.format import Format
from fxframework.wire.records import Layout

WAYS = ("columns", "every third as an object", "objects")


@contextmanager
def reading(way: str) -> Iterator[None]:
    """Read tables in one of the ``WAYS``."""
    by_columns = Layout.read_many

    def read_many(layout: Layout, many: Any, *left: Any) -> None:
        by_columns(layout, many, *left)
        many.hand_over(np.arange(many.start.size) % 3 == 0)

    def read_one(reader: blocks.BlockReader, block: Any, most: int, end: int) -> None:
        reader._read_objects(block, most, min(end, reader.source.size))

    with pytest.MonkeyPatch.context() as patch:
        if way == "every third as an object":
            patch.setattr(Layout, "read_many", read_many)
        elif way == "objects":
            patch.setattr(blocks.BlockReader, "_read_some", read_one)
        yield


def tables(format: Format, data: bytes, way: str = "columns") -> dict[str, Any]:
    """All columns of all tables, findings and counts."""
    with reading(way):
        capture = opened(format, data)
        found: dict[str, Any] = {
            name: {column: shown(capture.table(name), column) for column in table.columns}
            for name, table in ((name, capture.table(name)) for name in capture.schemas)
        }
        found["findings"] = findings(capture)
        found["counts"] = sorted(capture.summary().kinds.items())
    return found


def shown(table: Any, column: str) -> list[str]:
    """The values of a column, so that NaN are equal to themselves."""
    return [repr(value) for value in table.plain(column)]


def check_ways(format: Format, data: bytes) -> dict[str, Any]:
    """Tables are the same whichever way they are read; return them."""
    wanted = tables(format, data)
    for way in WAYS[1:]:
        assert tables(format, data, way) == wanted, way
    return wanted
