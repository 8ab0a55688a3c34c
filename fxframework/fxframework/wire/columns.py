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
    Named,
    Saturating,
    expression,
    saturating,
)
from fxframework.wire.families import Fields
from fxframework.wire.fields import Field, Integer, Number
from fxframework.wire.floats import Float
from fxframework.wire.lists import Listed
from fxframework.wire.spans import Octets, Span, Text

__all__ = ["Always", "Rows", "ThreadIds", "bind_all"]

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
        self.given = columns
        self.doc = doc
        self.own = own
        self.sources: dict[str, Field | Expression] = {}
        """Field or expression of each column; not in it: constant columns."""
        self.constants: dict[str, Any] = {}
        self.known: dict[str, Column] = {}
        self.items: Listed | None = None
        """The list that has a row for each item; None: the record has one row."""
        self.inside = Fields()
        """The fields of an item; a number of a list of numbers is its own field."""
        self.time: Expression | None = None
        """What gives the time of a record in nanoseconds; None if each row has its own."""

    @property
    def expressions(self) -> list[Expression]:
        """The expressions that columns are computed from."""
        return [each for each in self.sources.values() if not isinstance(each, Field)]

    def bind(self, format: Any) -> None:
        """Find the fields, in a ``Format``. Raises PluginError for a wrong field or column."""
        record = self.record
        fields = {field.name: field for field in record.layout.fields}
        where = f"{format.name}: rows of {self.table}"
        if record not in format.classes:
            raise PluginError(f"{where}: {record.__qualname__} is not a record of the format")

        def found(name: str) -> Field:
            of_record, _, of_item = name.partition(".")
            known, cls = fields, record
            if of_item and isinstance(fields.get(of_record), Listed):
                self.take_items(fields[of_record], where)
                known, cls = {field.name: field for field in self.inside}, fields[of_record].item
                name = of_item
            if name not in known:
                raise PluginError(
                    f"{where}: {cls.__qualname__} has no field {name!r}{did_you_mean(name, known)}"
                )
            field: Field = known[name]
            if isinstance(field, Listed) and isinstance(field.item, Integer):
                self.take_items(field, where)
                return field.item
            return field

        def resolved(given: Any) -> Any:
            if isinstance(given, Named):
                return found(given.name)
            if isinstance(given, Calculation):
                return Calculation(given.symbol, resolved(given.left), resolved(given.right))
            return given

        standard = STANDARD_TABLES.get(self.table)
        known = {column.name: column for column in self.own}
        if standard is not None:
            known |= {column.name: column for column in standard.all_columns}
        elif "ts" in self.given:
            known.setdefault("ts", STANDARD_TABLES["instants"].column("ts"))
        for name, given in self.given.items():
            if isinstance(given, str):
                source: Any = found(given)
            elif isinstance(given, Expression) and not isinstance(given, Constant):
                source = resolved(given)
            else:
                self.constants[name] = given.text if isinstance(given, Always) else given
                source = None
            if name not in known:
                if source is None or "_" not in name:
                    raise PluginError(
                        f"{where}: there is no column {name!r}{did_you_mean(name, known)}",
                        remedy=f"columns of the format begin with a prefix, such as "
                        f"{format.name.replace('-', '_')}_{name}",
                    )
                known[name] = column_of(name, source)
            if isinstance(source, Listed | Spare):
                what = "a list of parts" if isinstance(source, Listed) else "spare bytes"
                raise PluginError(f"{where}: {name} is {what}, which no column holds")
            if source is not None:
                kind = known[name].kind
                textual = isinstance(source, Text) or (
                    isinstance(source, Number) and source.refers is not None
                )
                fits = (
                    textual == (kind in ("code", "text"))
                    and isinstance(source, Octets) == (kind == "bytes")
                    and (kind.startswith("f") or not isinstance(source, Float))
                )
                if not fits:
                    raise PluginError(
                        f"{where}: {name} is of kind {kind!r}, which {source!r} isn't",
                        remedy="name another field, or a column of the format's own",
                    )
                nanoseconds = known[name].unit == "ns" and kind == "i8"
                self.sources[name] = in_nanoseconds(source, where, name) if nanoseconds else source
        time = self.sources.get("ts")
        if time is not None and not any(leaf in self.inside for leaf in expression(time).leaves()):
            self.time = expression(time)
        self.known = known

    def take_items(self, field: Listed, where: str) -> None:
        """Make a row for each item of a list. Raises PluginError for a second list."""
        if self.items is not None and self.items is not field:
            raise PluginError(f"{where}: rows are of the items of one list, not of two")
        self.items, field.in_rows = field, True
        integer = isinstance(field.item, Integer)
        self.inside = Fields([field.item] if integer else field.item.layout.fields)

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
        times = (each for each in self.sources.values() if isinstance(each, Saturating))
        return any(each.beyond(known) for each in times)

    def celled(self, tables: Sequence[Rows]) -> list[str]:
        """Return its columns that differ among the rows of a table, which all ``tables`` make."""
        return [
            name
            for name in self.given
            if any(name in rows.sources for rows in tables)
            or any(rows.constants.get(name) != self.constants[name] for rows in tables)
        ]

    def schema(self, others: TableSchema | None) -> TableSchema:
        """Return the schema of the table; ``others`` is that of other records' rows in it."""
        base = others or STANDARD_TABLES.get(self.table)
        if base is None:
            doc = self.doc or (self.record.__doc__ or self.table).strip().splitlines()[0]
            base = TableSchema(self.table, doc, ())
        have = {column.name for column in base.all_columns}
        return base.extended(*(each for name, each in self.known.items() if name not in have))


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
    return saturating(source) if column == "ts" else source


def bind_all(tables: Sequence[Rows], format: Any) -> None:
    """Bind the rows of a format. Raises PluginError for columns that cannot be made."""
    for each in tables:
        each.bind(format)
        same = [other for other in tables if other.table == each.table and other is not each]
        if any(other.record is each.record for other in same):
            raise PluginError(
                f"{format.name}: a record {each.record.__qualname__} makes two rows of {each.table}"
            )
    for name in dict.fromkeys(each.table for each in tables):
        share_columns([each for each in tables if each.table == name], format)
    for each in tables:
        of_table = [other for other in tables if other.table == each.table]
        for name in each.celled(of_table):
            if name in each.constants and each.known[name].kind in ("text", "bytes"):
                raise PluginError(
                    f"{format.name}: rows of {each.table}: {name} of {each.record.__qualname__} is "
                    f"a constant, but not that of other records in the table"
                )


def share_columns(rows: Sequence[Rows], format: Any) -> None:
    """Give each column of the format's own a kind that holds what every record of a table has.

    Raises PluginError where there is none.
    """
    standard = STANDARD_TABLES.get(rows[0].table)
    known = {column.name for column in standard.all_columns} if standard else {"ts"}
    for name in dict.fromkeys(name for each in rows for name in each.known if name not in known):
        having = [each for each in rows if name in each.known]
        kinds = {each.known[name].kind for each in having}
        kind = kinds.pop() if len(kinds) == 1 else common_kind(kinds)
        if kind is None:
            raise PluginError(
                f"{format.name}: rows of {rows[0].table}: no column holds {name} of every record: "
                f"{', '.join(sorted({each.known[name].kind for each in having}))}"
            )
        for each in having:
            each.known[name] = attrs.evolve(each.known[name], kind=kind)


def common_kind(kinds: AbstractSet[str]) -> str | None:
    """Return the smallest kind of column that holds numbers of all these kinds; None without."""
    if not all(kind[0] in "iuf" and kind[1:].isdecimal() for kind in kinds):
        return None
    if any(kind[0] == "f" for kind in kinds):
        return "f8"
    signed = any(kind[0] == "i" for kind in kinds)
    nbytes = max(int(kind[1:]) * (2 if signed and kind[0] == "u" else 1) for kind in kinds)
    return f"{'i' if signed else 'u'}{nbytes}" if nbytes <= 8 else None


def column_of(name: str, source: Any) -> Column:
    """Return the column that holds a field or an expression."""
    kind, unit = "i8", ""
    doc = getattr(source, "doc", "") or f"`{name.partition('_')[2]}` of the record"
    values: dict[int, str] = {}
    if isinstance(source, Octets):
        kind, unit = "bytes", "bytes"
    elif isinstance(source, Text):
        kind = "code" if source.entry is not None else "text"
    elif isinstance(source, Span):
        kind = "text"
    elif isinstance(source, Float):
        kind, unit = "f8", source.unit
    elif isinstance(source, Number | Computed):
        if isinstance(source, Number) and source.refers is not None:
            kind = "code"
        else:
            nbytes = next(size for size in (1, 2, 4, 8) if source.nbits <= 8 * size)
            kind = f"{'i' if source.signed else 'u'}{nbytes}"
            if isinstance(source, Number):
                unit, values = source.unit, source.values
    return Column(name, kind, doc, unit, values=values)
