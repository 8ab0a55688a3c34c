"""Rows: which fields of a record make which columns of a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

import attrs

from fxframework.errors import PluginError, did_you_mean
from fxframework.model.schema import STANDARD_TABLES, Column, TableSchema
from fxframework.wire.beside import Computed, Spare
from fxframework.wire.cursor import Cursor
from fxframework.wire.expressions import (
    Calculation,
    Constant,
    Expression,
    Saturating,
    expression,
    saturating,
)
from fxframework.wire.families import Fields
from fxframework.wire.fields import Field, Integer, Number
from fxframework.wire.floats import Float
from fxframework.wire.lists import Listed
from fxframework.wire.spans import Octets, Span, Text

NANOSECONDS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
"""Nanoseconds in a unit of time."""


class Always:
    """A text that is the same in every row."""

    def __init__(self, text: str) -> None:
        self.text = text


class ThreadIds(NamedTuple):
    """Columns of tables that have a ``thread``, with the ids of its process and of itself."""

    process: str
    thread: str


class Rows:
    """A row of a table for every record of a class, or for every item. See ``wire.rows``."""

    def __init__(
        self, table: str, record: Any, columns: dict[str, Any], doc: str, own: tuple[Column, ...]
    ) -> None:
        self.table = table
        self.record = record
        self.columns = columns
        """What makes each column: the name of a field, an expression, or a constant."""
        self.doc = doc
        self.own = own
        """Columns of the format's own, described by its author."""
        self.sources: dict[str, Field | Expression] = {}
        """Field or expression of each column; not in it: constant columns."""
        self.constants: dict[str, Any] = {}
        self.known: dict[str, Column] = {}
        """The columns that are described, of the table and of the format's own."""
        self.items: Listed | None = None
        """The list that has a row for each item; None: the record has one row."""
        self.inside = Fields()
        """The fields of an item; a number of a list of numbers is its own field."""
        self.time: Expression | None = None
        """What gives the time of a record in nanoseconds; None if each row has its own."""

    @property
    def expressions(self) -> list[Expression]:
        """The expressions that columns are computed from."""
        return [source for source in self.sources.values() if not isinstance(source, Field)]

    def bind(self, format: Any) -> None:
        """Find the fields, in a ``Format``. Raises PluginError for a wrong field or column."""
        where = f"{format.name}: rows of {self.table}"
        if self.record not in format.classes:
            raise PluginError(f"{where}: {self.record.__qualname__} is not a record of the format")
        self.known = self._columns_so_far()
        for name, value in self.columns.items():
            source: Any = None
            if isinstance(value, str):
                source = self._field(value, where)
            elif isinstance(value, Expression) and not isinstance(value, Constant):
                source = value.resolved(lambda name: self._field(name, where))
            elif isinstance(value, Always):
                self.constants[name] = value.text
            else:
                self.constants[name] = value
            if name not in self.known:
                self.known[name] = self._own_column(name, source, format, where)
            if source is not None:
                self._check_kind(name, source, where)
                # Times that do not fit become the nearest ones, and a finding; so do those of
                # expressions, which count nanoseconds already.
                column = self.known[name]
                if column.unit == "ns" and column.kind == "i8":
                    source = in_nanoseconds(source, where, name)
                self.sources[name] = source
        time = self.sources.get("ts")
        if time is not None and not any(leaf in self.inside for leaf in expression(time).leaves()):
            self.time = expression(time)

    def _columns_so_far(self) -> dict[str, Column]:
        """Return the columns that are described already: own ones, and those of the table."""
        columns = {column.name: column for column in self.own}
        standard = STANDARD_TABLES.get(self.table)
        if standard is not None:
            columns |= {column.name: column for column in standard.all_columns}
        elif "ts" in self.columns:
            columns.setdefault("ts", STANDARD_TABLES["instants"].column("ts"))
        return columns

    def _field(self, name: str, where: str) -> Field:
        """Return a field by its name, or by that of a list and of a field of its items."""
        cls = self.record
        fields: dict[str, Field] = cls.layout.by_name
        list_name, _, item_name = name.partition(".")
        list_field = fields.get(list_name)
        if item_name and isinstance(list_field, Listed):
            self.take_items(list_field, where)
            cls = list_field.item
            fields = {field.name: field for field in self.inside}
            name = item_name
        if name not in fields:
            raise PluginError(
                f"{where}: {cls.__qualname__} has no field {name!r}{did_you_mean(name, fields)}"
            )
        field = fields[name]
        if isinstance(field, Listed) and isinstance(field.item, Integer):
            self.take_items(field, where)
            return field.item
        return field

    def _own_column(self, name: str, source: Any, format: Any, where: str) -> Column:
        """Return the column of the format's own that a field or an expression makes."""
        if source is None or "_" not in name:
            prefix = format.name.replace("-", "_")
            raise PluginError(
                f"{where}: there is no column {name!r}{did_you_mean(name, self.known)}",
                remedy=f"columns of the format begin with a prefix, such as {prefix}_{name}",
            )
        return column_of(name, source)

    def _check_kind(self, name: str, source: Any, where: str) -> None:
        """Raise PluginError if a column cannot hold what a field or an expression is."""
        if isinstance(source, Listed):
            items = "floats" if isinstance(source.item, Float) else "parts"
            raise PluginError(
                f"{where}: {name} is a list of {items}, which no column holds",
                remedy="name a field of the parts, as in 'samples.level', or a list of integers",
            )
        if isinstance(source, Spare):
            raise PluginError(f"{where}: {name} is spare bytes, which no column holds")
        kind = self.known[name].kind
        is_text = isinstance(source, Text)
        if isinstance(source, Number) and source.refers is not None:
            is_text = True
        if is_text:
            fits = kind in ("code", "text")
        elif isinstance(source, Octets):
            fits = kind == "bytes"
        elif isinstance(source, Float):
            fits = kind.startswith("f")
        else:
            fits = kind not in ("code", "text", "bytes")
        if not fits:
            raise PluginError(
                f"{where}: {name} is of kind {kind!r}, which {source!r} isn't",
                remedy="name another field, or a column of the format's own",
            )

    def take_items(self, field: Listed, where: str) -> None:
        """Make a row for each item of a list. Raises PluginError for a second list."""
        if self.items is not None and self.items is not field:
            raise PluginError(f"{where}: rows are of the items of one list, not of two")
        self.items = field
        field.in_rows = True
        is_of_numbers = isinstance(field.item, Integer)
        self.inside = Fields([field.item] if is_of_numbers else field.item.layout.fields)

    def items_of(self, record: Any, cursor: Cursor) -> Iterable[tuple[Any, ...]]:
        """Return what makes a row each, with numbers and places of its own fields."""
        if self.items is None:
            return [(record, {}, {})]
        if isinstance(self.items.item, Integer):
            numbers = getattr(record, self.items.name) or ()
            return ((number, {self.items.item: number}, {}) for number in numbers)
        return cursor.items.get(self.items, ())

    def beyond(self, known: Mapping[Any, int]) -> bool:
        """Return whether a time of a row saturates, given the numbers of fields and registers."""
        times = (source for source in self.sources.values() if isinstance(source, Saturating))
        return any(time.beyond(known) for time in times)

    def celled(self, tables: Sequence[Rows]) -> list[str]:
        """Return its columns that differ among the rows of a table, which all ``tables`` make."""
        return [name for name in self.columns if self._differs(name, tables)]

    def _differs(self, name: str, tables: Sequence[Rows]) -> bool:
        """Return whether a column is not one constant in all rows of a table."""
        if any(name in rows.sources for rows in tables):
            return True
        return any(rows.constants.get(name) != self.constants[name] for rows in tables)

    def schema(self, others: TableSchema | None) -> TableSchema:
        """Return the schema of the table; ``others`` is that of other records' rows in it."""
        base = others or STANDARD_TABLES.get(self.table)
        if base is None:
            doc = self.doc or (self.record.__doc__ or self.table).strip().splitlines()[0]
            base = TableSchema(self.table, doc, ())
        have = {column.name for column in base.all_columns}
        return base.extended(*(column for name, column in self.known.items() if name not in have))


def in_nanoseconds(source: Any, where: str, column: str) -> Any:
    """Return what a time is computed from. Raises PluginError for a unit that is not of time.

    A field counts its own unit, and an expression nanoseconds.
    """
    unit = getattr(source, "unit", "") or "ns"
    if unit not in NANOSECONDS:
        raise PluginError(
            f"{where}: {column} is in nanoseconds, and {source!r} in {unit}",
            remedy=f"declare it with one of the units {', '.join(NANOSECONDS)}, or give an "
            f"expression that computes nanoseconds",
        )
    if NANOSECONDS[unit] > 1:
        return saturating(Calculation("*", source, NANOSECONDS[unit]))
    if column == "ts":
        return saturating(source)
    return source


def bind_all(tables: Sequence[Rows], format: Any) -> None:
    """Bind the rows of a format. Raises PluginError for columns that cannot be made."""
    for rows in tables:
        rows.bind(format)
    # What a column is must be the same in all rows of a table, whatever record they are of.
    for name in dict.fromkeys(rows.table for rows in tables):
        rows_of_table = [rows for rows in tables if rows.table == name]
        records: set[Any] = set()
        for rows in rows_of_table:
            if rows.record in records:
                raise PluginError(
                    f"{format.name}: a record {rows.record.__qualname__} makes two rows of {name}"
                )
            records.add(rows.record)
        share_columns(rows_of_table, format)
        for rows in rows_of_table:
            for column in rows.celled(rows_of_table):
                if column in rows.constants and rows.known[column].kind in ("text", "bytes"):
                    raise PluginError(
                        f"{format.name}: rows of {name}: {column} of {rows.record.__qualname__} is "
                        f"a constant, but not that of other records in the table"
                    )


def share_columns(rows: Sequence[Rows], format: Any) -> None:
    """Give each column of the format's own a kind that holds what every record of a table has.

    Raises PluginError where there is none.
    """
    table = rows[0].table
    standard = STANDARD_TABLES.get(table)
    standard_names = {"ts"}
    if standard is not None:
        standard_names = {column.name for column in standard.all_columns}
    # Classes of records may have the same column with fields of different sizes.
    names = dict.fromkeys(name for of_record in rows for name in of_record.known)
    for name in names:
        if name in standard_names:
            continue
        sharing = [of_record for of_record in rows if name in of_record.known]
        kinds = {of_record.known[name].kind for of_record in sharing}
        kind = common_kind(kinds)
        if kind is None:
            raise PluginError(
                f"{format.name}: rows of {table}: no column holds {name} of every record: "
                f"{', '.join(sorted(kinds))}"
            )
        for of_record in sharing:
            of_record.known[name] = attrs.evolve(of_record.known[name], kind=kind)


def common_kind(kinds: AbstractSet[str]) -> str | None:
    """Return the smallest kind of column that holds values of all these kinds; None without."""
    if len(kinds) == 1:
        return next(iter(kinds))
    if not all(kind[0] in "iuf" and kind[1:].isdecimal() for kind in kinds):
        return None
    if any(kind[0] == "f" for kind in kinds):
        return "f8"
    if not any(kind[0] == "i" for kind in kinds):
        return max(kinds)  # u1 < u2 < u4 < u8
    nbytes = 0
    for kind in kinds:
        # The sign takes a bit: u4 needs i8.
        needed = int(kind[1:])
        if kind[0] == "u":
            needed *= 2
        nbytes = max(nbytes, needed)
    if nbytes <= 8:
        return f"i{nbytes}"
    return None


def column_of(name: str, source: Any) -> Column:
    """Return the column that holds a field or an expression."""
    doc = getattr(source, "doc", "") or f"`{name.partition('_')[2]}` of the record"
    if isinstance(source, Octets):
        return Column(name, "bytes", doc, "bytes")
    if isinstance(source, Text):
        return Column(name, "text" if source.entry is None else "code", doc)
    if isinstance(source, Span):
        return Column(name, "text", doc)
    if isinstance(source, Float):
        return Column(name, "f8", doc, source.unit)
    if isinstance(source, Number) and source.refers is not None:
        return Column(name, "code", doc)
    if isinstance(source, Number | Computed):
        nbytes = next(size for size in (1, 2, 4, 8) if source.nbits <= 8 * size)
        kind = f"{'i' if source.signed else 'u'}{nbytes}"
        if isinstance(source, Number):
            return Column(name, kind, doc, source.unit, values=source.values)
        return Column(name, kind, doc)
    return Column(name, "i8", doc)  # an expression
