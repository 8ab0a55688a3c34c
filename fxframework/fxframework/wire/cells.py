"""Cells: the columns of tables, from the columns of records and from records read as objects.

Each class of records, and each group of items that were read together, is a *source* of rows: the
record of each row, and columns. ``merged`` puts the rows of several sources in the file's order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
from numpy.typing import NDArray

from fxframework.kernels.arrays import I32, I64
from fxframework.wire.columns import Rows
from fxframework.wire.cursor import AT, SIZE
from fxframework.wire.expressions import Expression, Register, wrapped
from fxframework.wire.fields import Field, Number
from fxframework.wire.floats import Float
from fxframework.wire.known import CODE, LENGTH, START
from fxframework.wire.spans import Span, Text

if TYPE_CHECKING:
    from fxframework.model.schema import Column
    from fxframework.wire.many import Many

Cells = dict[str, Any]
"""Columns by name; of texts and bytes, pairs of places and lengths."""
SPANS = ("text", "bytes")
"""Kinds of columns that are stretches of the file."""


@attrs.define(eq=False)
class RowSource:
    """Rows of a table that were made together."""

    ordinals: I64
    """The row of the run of each one's record, in order."""
    index: I64 | None
    """Its number among the rows of its record; None if each record has one row."""
    cells: Cells


class TableColumns:
    """The columns of one table that differ from row to row. ``intern`` enters a text."""

    def __init__(self, tables: Sequence[Rows], intern: Callable[[bytes], int]) -> None:
        self.rows = tables
        self.table = tables[0].table
        self.intern = intern
        self.kinds: dict[str, Column] = {}
        for rows in tables:
            for name in rows.celled(tables):
                self.kinds[name] = rows.known[name]

    def default(self, rows: Rows, name: str) -> Any:
        """Return what a column has in rows that do not fill it: its constant, null or zero."""
        column = self.kinds[name]
        value = rows.constants.get(name)
        if column.kind == "code":
            return -1 if value is None else self.intern(value.encode())
        if isinstance(value, str):
            return {text: number for number, text in column.values.items()}[value]
        return value or 0

    def filled(self, rows: Rows, cells: Cells, count: int) -> Cells:
        """Return all columns, given those that the records fill."""
        filled: Cells = {}
        for name, column in self.kinds.items():
            if name in cells:
                filled[name] = cells[name]
            elif column.kind in SPANS:
                filled[name] = np.zeros(count, np.int64), np.zeros(count, np.int64)
            else:
                kind = "i4" if column.kind == "code" else column.kind
                filled[name] = np.full(count, self.default(rows, name), kind)
        return filled


def is_textual(source: Any, kind: str) -> bool:
    """Return whether a column has codes of the texts of a field."""
    if kind != "code":
        return False
    return isinstance(source, Span) or (isinstance(source, Number) and source.refers is not None)


def as_kind(values: I64, source: Any, kind: str) -> NDArray[Any]:
    """Return numbers of 64 bits as a column of a kind."""
    if isinstance(source, Float):
        floats: NDArray[Any] = values.view("f8")
        if source.nbytes == 4:
            floats = values.astype("u4").view("f4")
        with np.errstate(invalid="ignore"):  # signalling NaN
            return floats.astype(kind, copy=False)
    dtype = np.dtype(kind)
    if dtype.kind == "f" and is_unsigned(source):
        return values.view(np.uint64).astype(dtype)
    if dtype.kind in "iu" and dtype.itemsize == 8:
        return values.view(dtype)
    return values.astype(dtype)


def is_unsigned(source: Any) -> bool:
    """Return whether numbers below 0 are those from 2^63 on."""
    return getattr(source, "nbits", 0) == 64 and not source.signed


class RowView:
    """What expressions of rows are computed from: records, and their items, of some rows.

    Registers are those behind each record, which may be what it sets.
    """

    def __init__(
        self, rows: Rows, records: Many, selected: Any, part: Many | None, after: Mapping[Any, Any]
    ) -> None:
        self.inside = rows.inside
        self.records = records
        self.selected = selected
        """The rows of the class: an index, or a slice of all of them."""
        self.part = part
        self.part_rows: I64 | None = None
        self.after = after
        self.ordinals = records.own.ordinals[selected]
        self.saturated: list[int] = []

    def column_of(self, leaf: Expression) -> Any:
        """Return the values of a field or a register."""
        if isinstance(leaf, Register) and leaf is not AT and leaf is not SIZE:
            value = self.after[leaf]
            if isinstance(value, np.ndarray):
                return value[self.ordinals]
            return value
        return self.aspect(leaf, leaf)

    def holder_of(self, field: Any) -> tuple[Many, Any]:
        """Return what has the columns of a field, records or items, and the rows of it."""
        if self.part is not None and field in self.inside:
            return self.part, self.part_rows
        return self.records, self.selected

    def aspect(self, field: Any, key: Any) -> Any:
        """Return a column of a field; 0 if no record has it."""
        many, rows = self.holder_of(field)
        column = many.known.get(key)
        if column is None:
            return 0
        if isinstance(column, np.ndarray):
            return column[rows]
        return column

    def codes(self, field: Any) -> I32:
        """Return the codes of the texts of a field."""
        many, rows = self.holder_of(field)
        codes = many.known.get((field, CODE))
        if codes is None:
            return np.full(self.ordinals.size, -1, np.int32)
        return codes.column()[rows]  # type: ignore[no-any-return]

    def full(self, value: Any) -> I64:
        """Return a value as a column."""
        if isinstance(value, np.ndarray):
            return value.astype(np.int64, copy=False)
        return np.full(self.ordinals.size, wrapped(int(value)), np.int64)

    def cells(self, rows: Rows) -> Cells:
        """Return the columns that the records fill, or their items."""
        cells: Cells = {}
        for name, source in rows.sources.items():
            kind = rows.known[name].kind
            if is_textual(source, kind):
                cells[name] = self.codes(source)
            elif kind in SPANS:
                starts = self.full(self.aspect(source, (source, START)))
                lengths = self.full(self.aspect(source, (source, LENGTH)))
                cells[name] = starts, lengths
            else:
                cells[name] = as_kind(self.full(source.column(self)), source, kind)
        return cells


def rows_of_class(
    rows: Rows, records: Many, after: Mapping[Any, Any], columns: TableColumns
) -> tuple[list[RowSource], I64]:
    """Return the rows that the sound records of a class make, and those whose times saturate.

    The latter are rows of the run.
    """
    own = records.own
    # What makes rows, each with the number of its rows within their record.
    views: list[tuple[RowView, I64 | None]] = []
    if rows.items is None:
        selected = slice(None) if own.all_sound else np.flatnonzero(own.sound)
        views.append((RowView(rows, records, selected, None, after), None))
    else:
        for items in own.lists.get(rows.items, ()):
            owners = np.arange(items.start.size) if items.rows is None else items.rows
            sound_items = np.flatnonzero(own.sound[owners])
            view = RowView(rows, records, owners[sound_items], items, after)
            view.part_rows = sound_items
            assert items.index is not None  # noqa: S101 (they are items)
            views.append((view, items.index[sound_items]))
    sources: list[RowSource] = []
    saturated: list[I64] = [np.zeros(0, np.int64)]
    for view, index in views:
        if not view.ordinals.size:
            continue
        cells = columns.filled(rows, view.cells(rows), view.ordinals.size)
        sources.append(RowSource(view.ordinals, index, cells))
        saturated.append(view.ordinals[view.saturated])
    return sources, np.concatenate(saturated)


class ObjectRows:
    """Rows of records that were read as objects, as lists of cells."""

    def __init__(self, rows: Rows, columns: TableColumns) -> None:
        self.rows = rows
        self.columns = columns
        self.ordinals: list[int] = []
        self.index: list[int] = []
        self.cells: dict[str, list[Any]] = {name: [] for name in rows.sources}

    def add(self, ordinal: int, record: Any, cursor: Any, registers: Mapping[Any, int]) -> bool:
        """Add the rows of a record; return whether a time does not fit 64 bits."""
        numbers_of_record = {**cursor.known, **registers}
        spans_of_record = getattr(cursor, "spans", {})
        is_beyond = False
        items = self.rows.items_of(record, cursor)
        for number, (item, item_numbers, item_spans) in enumerate(items):
            self.ordinals.append(ordinal)
            self.index.append(number)
            numbers = {**numbers_of_record, **item_numbers}
            spans = {**spans_of_record, **item_spans}
            for name, source in self.rows.sources.items():
                self.cells[name].append(self._cell(name, source, record, item, numbers, spans))
            is_beyond = is_beyond or self.rows.beyond(numbers)
        return is_beyond

    def _cell(self, name: str, source: Any, record: Any, item: Any, known: Any, spans: Any) -> Any:
        """Return a cell: a code, a place and a length, or a number."""
        kind = self.rows.known[name].kind
        if is_textual(source, kind) or (isinstance(source, Text) and source.entry is not None):
            holder = item if source in self.rows.inside else record
            text = getattr(holder, source.name)
            if text is None:
                return -1
            return self.columns.intern(text.encode(errors="surrogateescape"))
        if kind in SPANS:
            return spans.get(source, (0, 0))
        if isinstance(source, Field) and source not in known:
            return 0
        return wrapped(source.value(known))

    def source(self) -> RowSource:
        """Return the rows, and forget them."""
        cells: Cells = {}
        for name, values in self.cells.items():
            kind = self.rows.known[name].kind
            numbers = np.array(values, np.int64)
            if kind in SPANS:
                pairs = numbers.reshape(-1, 2)
                cells[name] = pairs[:, 0], pairs[:, 1]
            elif is_textual(self.rows.sources[name], kind):
                cells[name] = numbers.astype(np.int32)
            else:
                cells[name] = as_kind(numbers, self.rows.sources[name], kind)
        count = len(self.ordinals)
        source = RowSource(
            np.array(self.ordinals, np.int64),
            np.array(self.index, np.int64),
            self.columns.filled(self.rows, cells, count),
        )
        self.ordinals.clear()
        self.index.clear()
        for values in self.cells.values():
            values.clear()
        return source


def merged(sources: Sequence[RowSource], count: int) -> tuple[I64, Cells]:
    """Return the rows of all sources in the order of the file: their records, and columns.

    ``count`` is the number of rows of the run.
    """
    if len(sources) == 1:
        return sources[0].ordinals, sources[0].cells
    # The rows of record 3 are those from first_row[3] up to first_row[4].
    rows_of_record = np.zeros(count + 1, np.int64)
    for source in sources:
        if source.index is None:
            rows_of_record[source.ordinals + 1] += 1
        else:
            rows_of_record[1:] += np.bincount(source.ordinals, minlength=count)
    first_row = np.cumsum(rows_of_record)
    places: list[I64] = []
    for source in sources:
        own_places = first_row[source.ordinals]
        if source.index is not None:
            own_places = own_places + source.index
        places.append(own_places)
    total = int(first_row[-1])
    ordinals = scattered(total, places, [source.ordinals for source in sources])
    cells: Cells = {}
    for name, first in sources[0].cells.items():
        columns = [source.cells[name] for source in sources]
        if isinstance(first, tuple):
            starts = scattered(total, places, [pair[0] for pair in columns])
            cells[name] = starts, scattered(total, places, [pair[1] for pair in columns])
        else:
            cells[name] = scattered(total, places, columns)
    return ordinals, cells


def scattered(total: int, places: Iterable[I64], columns: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return a column with the values of several, each at its places."""
    whole = np.empty(total, columns[0].dtype)
    for place, column in zip(places, columns, strict=True):
        whole[place] = column
    return whole
