"""Captures of pieces: their rows become tables, or the author learns what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

import pytest
import toy

from fxframework.errors import BadCallError, PluginError
from fxframework.findings import Catalogue
from fxframework.io.source import Source
from fxframework.kit.pieces import Piece, PieceCapture, Row
from fxframework.model.capture import OpenRequest, Summary
from fxframework.model.schema import STANDARD_TABLES, Column, TableSchema

from ..cases import cases

INSTANTS = STANDARD_TABLES["instants"].extended(
    Column("toy_text", "text", ""), Column("toy_place", "bytes", ""), Column("toy_rate", "f8", "")
)


class Pieces(PieceCapture):
    """One piece with the given rows."""

    format = "toy"
    rules: ClassVar[Catalogue] = Catalogue([])
    schemas: ClassVar[Mapping[str, TableSchema]] = {
        "instants": INSTANTS, "slices": STANDARD_TABLES["slices"],
    }  # fmt: skip

    def __init__(self, *given: Row) -> None:
        super().__init__(Source.open(toy.SAMPLE), OpenRequest())
        self.given = given

    def pieces(self) -> Iterator[Piece]:
        yield Piece("all", 0, toy.SAMPLE, ns=7)

    def rows(self, piece: Piece) -> Iterable[Row]:
        return self.given

    def summary(self) -> Summary:
        raise NotImplementedError


def test_fields_that_are_no_json_are_a_fault_of_the_reader() -> None:
    class Wrapping(Pieces):
        def pieces(self) -> Iterator[Piece]:
            yield Piece("all", 0, toy.SAMPLE, {"first": self.source.data[0]})

    with pytest.raises(
        PluginError, match=r"of toy: the record at byte 0 is not JSON: .*uint8"
    ) as why:
        list(Wrapping().records_json())
    assert "of Python" in why.value.remedy


def test_rows_of_one_table_may_have_different_columns() -> None:
    capture = Pieces(
        ("instants", {"name": "a", "id": 1 << 63}),
        ("slices", {"dur": 3}),
        ("instants", {"category": "c", "ts": 9, "scope": "global"}),
        ("instants", {"thread": 2, "toy_text": "t", "toy_place": (1, 2), "toy_rate": 0.5}),
        ("instants", {}),
    )
    table = capture.table("instants")
    shown: list[Any] = list(table)
    assert [row.name for row in shown] == ["a", None, None, None]
    assert [row.category for row in shown] == [None, "c", None, None]
    assert [row.ts for row in shown] == [7, 9, 7, 7]
    assert [row.thread for row in shown] == [-1, -1, 2, -1]
    assert [row.id for row in shown] == [1 << 63, 0, 0, 0]
    assert [row.toy_text for row in shown] == ["", "", "t", ""]
    assert [row.toy_place for row in shown] == [(0, 0), (0, 0), (1, 2), (0, 0)]
    assert [row.toy_rate for row in shown] == [0, 0, 0.5, 0]
    assert table.plain("scope") == ["thread", "global", "thread", "thread"]
    assert [row.row for row in shown] == [0, 1, 2, 3]
    assert capture.table("slices")["dur"].tolist() == [3]


@cases(
    ("row", "message"),
    [
        (("instant", {"name": "a"}), "table 'instant', which is not in schemas; did you mean"),
        (("instants", {"nmae": "a"}), "has no column 'nmae'; did you mean 'name'"),
        (
            ("instants", {"scope": "everywhere"}),
            "'everywhere' is not one of thread, process, global",
        ),
        (("instants", {"ts": "now"}), "cannot hold"),
        (("instants", {"id": -1}), "column 'id' of table instants, of kind 'u8', cannot hold"),
        (("instants", {"id": "one"}), "column 'id' of table instants, of kind 'u8', cannot hold"),
    ],
)
def test_a_row_that_does_not_fit_is_refused(row: Row, message: str) -> None:
    with pytest.raises(BadCallError, match=message):
        Pieces(("instants", {"name": "b"}), row).table("instants")
