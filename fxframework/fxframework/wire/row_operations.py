"""Rows of programs: what puts the fields of records, and of items of lists, into columns."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

from fxframework.kernels import ops
from fxframework.wire.beside import Computed
from fxframework.wire.columns import Rows
from fxframework.wire.expressions import Expression
from fxframework.wire.families import Fields
from fxframework.wire.fields import Field, Number, Span
from fxframework.wire.operations import UnfitError, Writer
from fxframework.wire.records import Layout

__all__ = ["COPIES", "RowCompiler"]

COPIES = "copies"
"""A table of the places and sizes of records."""


def before_list(layout: Layout, items: Any) -> Fields:
    """Return the fields of a record that come before a list."""
    return Fields(itertools.takewhile(lambda field: field is not items, layout.fields))


class RowCompiler:
    """Adds the operations on rows of the record, or of the item, at hand."""

    def __init__(self, out: Writer) -> None:
        self.out = out
        self.needed: set[Expression] = set()
        self.sinks: dict[Field, list[tuple[int, str]]] = {}
        self.tables: list[int] = []
        """The tables of the record, if they are more than one."""
        self.of_items: list[Rows] = []
        """Rows of the record that are items of its lists."""
        self.places: dict[Field, int] = {}
        """Slots of place and length of bytes that rows of items repeat."""

    def take_rows(self, layout: Layout, every: list[Rows]) -> list[Rows]:
        """Prepare the rows of a record; return those that are not of items."""
        rows = [each for each in every if each.items is None]
        self.of_items = [each for each in every if each.items is not None]
        self.places = {}
        self.tables = [self.table(each) for each in every] if len(every) > 1 else []
        self.sinks = self.sinks_of(rows)
        self.needed = self.needed_by(layout, every)
        for each in self.of_items:
            known = before_list(layout, each.items)
            leaves = [leaf for source in each.sources.values() for leaf in source.leaves()]
            fields = [
                leaf for leaf in leaves if isinstance(leaf, Field) and leaf not in each.inside
            ]
            if any(field not in known for field in fields):
                raise UnfitError  # it is read after the rows are made
            self.needed.update(fields)
        return rows

    def table(self, rows: Rows) -> int:
        """Return the number of a table."""
        return list(self.out.columns).index(rows.table)

    def column(self, rows: Rows, name: str) -> int:
        """Return the number of a column."""
        before = 0
        for table, cells in self.out.columns.items():
            if table == rows.table:
                return before + cells.index(name)
            before += len(cells)
        raise AssertionError(name)

    def sinks_of(self, rows: Iterable[Rows]) -> dict[Field, list[tuple[int, str]]]:
        """Return the columns of each field of a record or of an item, with their kinds."""
        found: dict[Field, list[tuple[int, str]]] = {}
        for each in rows:
            for name, source in each.sources.items():
                if isinstance(source, Field) and (each.items is None or source in each.inside):
                    kind = each.known[name].kind
                    found.setdefault(source, []).append((self.column(each, name), kind))
        return found

    def columns(self, field: Field) -> Iterator[tuple[int, str]]:
        """Yield the columns of a field, with their kinds; go to the row of each first."""
        for column, kind in self.sinks.get(field, ()):
            if self.tables:
                before = 0
                for number, cells in enumerate(self.out.columns.values()):
                    if before <= column < before + len(cells) and number in self.tables:
                        self.out.op(ops.ROW, number)
                    before += len(cells)
            yield column, kind

    def needed_by(self, layout: Layout, rows: Iterable[Rows]) -> set[Expression]:
        """Return the fields whose values are used again, so that they need slots."""
        found: set[Expression] = set()
        for each in [*layout.sets.values(), *(e for r in rows for e in r.expressions)]:
            found.update(each.leaves())
        for field in layout.fields:
            for each in field.expressions():
                found.update(each.leaves())
        return found

    def begin_rows(self, rows: Iterable[Rows]) -> None:
        """Add the beginning of rows, with what is in them whatever the fields are."""
        out = self.out
        for each in rows:
            out.op(ops.ROW, self.table(each))
            out.op(ops.PUTPOS, 0, 0, self.column(each, "offset"))
            for name in out.columns[each.table]:
                if name not in each.sources and name not in ("offset", "nbytes"):
                    slot = out.new()
                    out.op(ops.CONST, slot, each.default(name))
                    out.op(ops.PUTSLOT, slot, 0, self.column(each, name))
            for name, source in each.sources.items():
                if each.items is not None and isinstance(source, Field):
                    self.repeat(each, name, source)

    def end_rows(self, rows: Iterable[Rows]) -> None:
        """Add the end of rows, with what is computed."""
        out = self.out
        for each in rows:
            if self.tables:
                out.op(ops.ROW, self.table(each))
            if each.table == COPIES:
                out.op(ops.PUTPOS, 1, 0, self.column(each, "nbytes"))
            for name, source in each.sources.items():
                if not isinstance(source, Field):
                    out.op(ops.PUTSLOT, out.calculate(source), 0, self.column(each, name))
            out.op(ops.ROW, self.table(each), 1)

    def repeat(self, rows: Rows, name: str, source: Any) -> None:
        """Add what a row of an item has of the record, from slots."""
        if source in rows.inside:
            return
        out, column = self.out, self.column(rows, name)
        refers = isinstance(source, Number) and source.refers is not None
        if source.when is not None and (refers or not isinstance(source, Number | Computed)):
            raise UnfitError  # what is absent has other cells than 0
        if refers:
            out.op(ops.PUTREF, self.slot(source), out.tables[source.refers], column, 0)
        elif not isinstance(source, Span):
            out.op(ops.PUTSLOT, self.slot(source), 0, column)
        elif source not in self.places:
            raise UnfitError
        elif rows.known[name].kind == "code":
            out.op(ops.MARKSPAN, 4, self.places[source])
            out.op(ops.PUTCODE, 0, 0, column)
        else:
            for number in range(2):
                out.op(ops.PUTSLOT, self.places[source] + number, 0, column + number)

    def slot(self, field: Expression) -> int:
        """Return the slot of a field."""
        if field not in self.out.slots:
            self.out.slots[field] = self.out.new()
        return self.out.slots[field]

    def default(self, field: Field) -> None:
        """Add the column of a field that is absent."""
        for column, kind in self.columns(field):
            slot = self.out.new()
            self.out.op(ops.CONST, slot, -1 if kind == "code" else 0)
            self.out.op(ops.PUTSLOT, slot, 0, column)
            if kind in ("text", "bytes"):
                self.out.op(ops.PUTSLOT, slot, 0, column + 1)

    def put_span(self, field: Span) -> None:
        """Add the columns of a span."""
        for column, kind in self.columns(field):
            code = ops.PUTCODE if kind == "code" else ops.PUTSPAN
            self.out.op(code, 0, 0, column)
        if field in self.needed:
            self.places[field] = self.out.new(2)
            self.out.op(ops.MARKSPAN, 0, self.places[field])
