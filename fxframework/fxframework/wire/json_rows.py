"""Rows of record JSON: text from the columns of records, and of the items of their lists.

``RowTexts`` writes the records of a class as rows of one *template*, whose parts (*cells*) are
constant bytes, texts, numbers and stretches of the file. ``ShownRows`` makes these parts from the
columns of the fields. The items of a list are rows of a ``RowTexts`` of their own, which those of
the records copy. ``is_said`` and ``doubts`` tell what columns cannot show.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from fxframework.kernels import stretches
from fxframework.kernels.arrays import I64, Bools
from fxframework.kernels.parts import (
    COPIED,
    NATURAL,
    NOTHING,
    SIGNED,
    SKIP,
    STRETCH,
    STRETCH_END,
    STRETCH_HEX,
    TEXT,
)
from fxframework.kernels.templates import Cell, Templates
from fxframework.kit.lossless import LosslessRecord
from fxframework.kit.row_texts import Lines, Numbered, column_of, json_doubles
from fxframework.model.strings import StringPool, TextColumn
from fxframework.wire.beside import Spare
from fxframework.wire.choices import Choice, Flag
from fxframework.wire.expressions import wrapped
from fxframework.wire.fields import Field, Integer, Mark, Number
from fxframework.wire.floats import Float
from fxframework.wire.known import CODE, LENGTH, START, STRANGE, THERE, Codes
from fxframework.wire.lists import Listed, Texts
from fxframework.wire.many import Many
from fxframework.wire.records import Part, Record
from fxframework.wire.shape import is_reference
from fxframework.wire.spans import Octets, Span, Text

MOST_TEXTS = 1 << 20
"""Bytes of texts that are kept from one block to the next."""
SHOWS = {kind.show for kind in (Field, Number, Float, Octets, Spare, Text, Listed, Texts)}
"""How the kinds of fields are shown that columns can show."""


class RowTexts(Lines):
    """Writes rows of text from columns: records, or the items of one list."""

    @property
    def shows(self) -> type[ShownRows]:
        """The class of rows as parts of a template."""
        return ShownRows

    def offsets_of(self, places: I64) -> I64:
        """Return the offsets that lines show for places of the data."""
        return places

    def __init__(self, data: NDArray[np.uint8], strings: StringPool) -> None:
        self.data = data
        self.strings = strings
        super().__init__(Templates(b"", b"", b"", source=data.data))
        self.made: dict[Field, Numbered] = {}
        """Texts that are made once for each different number, by field."""
        self.lists: dict[Field, RowTexts] = {}
        """What writes the items of lists."""

    def of_items(self) -> RowTexts:
        """Return what writes the items of a list."""
        return type(self)(self.data, self.strings)

    def joined(self) -> tuple[TextColumn, I64]:
        """Return all rows in the order of their places, and the places; forget them."""
        joined = super().joined()
        self.templates.forget(MOST_TEXTS)
        return joined

    def text(self) -> bytes:
        """Return all rows in the order of their places as one text; forget them."""
        return self.joined()[0].data.tobytes()

    def taken(self) -> tuple[I64, list[bytes]]:
        """Return the places of all rows, ascending, and what is written of each; forget them."""
        texts, places = self.joined()
        return places, [texts.bytes_of(row) for row in range(places.size)]

    def put_padding(self, places: I64, sizes: I64) -> None:
        """Write lines of zero bytes between records."""
        self.put(places, *head_of("padding", self.offsets_of(places), sizes), b"}\n")

    def put_raw(self, record: str, places: I64, sizes: I64, cells: list[Cell]) -> None:
        """Write lines of what only its bytes can show."""
        head = head_of(record, self.offsets_of(places), sizes)
        self.put(places, *head, *cells, *raw_of(places, sizes), b"}\n")

    def put_objects(self, places: Any, records: Iterable[LosslessRecord]) -> None:
        """Write the lines of records that objects show, at some places."""
        self.put_lines(places, [line_of(record.to_json()) for record in records])

    def put_lines(self, places: Any, lines: Sequence[bytes]) -> None:
        """Write lines at some places."""
        cell = COPIED, column_of(self.templates, lines)
        self.put(np.asarray(places, np.int64), cell)
        self.templates.forget_columns()

    def put_records(self, many: Many, rows: I64, places: I64, sizes: I64) -> None:
        """Write lines of sound records."""
        row_cells = self.shows(self, many, rows)
        layout = many.layout
        head = head_of(layout.cls.record, self.offsets_of(places), sizes)
        cells = [*head, *row_cells.fields(), *row_cells.refs()]
        is_raw = many.own.raw[rows]
        if layout.word:  # the kind that was found may be that of another byte of the word
            for field, number in zip(layout.family.kinds, layout.kind, strict=False):
                is_raw |= row_cells.column(field) != number
        self.put(places, *cells, *when(is_raw, raw_of, places, sizes), b"}\n")
        self.templates.forget_columns()

    def put_items(self, field: Listed | Texts, many: Many, rows: I64, places: I64) -> None:
        """Write items of a list, each with a comma behind it, at places among all of them."""
        if isinstance(field, Texts):
            starts = many.known[field, START][rows]
            lengths = many.known[field, LENGTH][rows]
            self.put(places, *stretch(STRETCH, starts, lengths), b",")
            return
        if isinstance(field.item, Float):
            cells = ShownRows(self, many, rows).real_items(field.item)
            self.put(places, *cells, b",")
            return
        if isinstance(field.item, Integer):
            kind = SIGNED if field.item.signed else NATURAL
            self.put(places, (kind, many.known[field.item][rows]), b",")
            return
        row_cells = self.shows(self, many, rows)
        first_cell, *cells = [*row_cells.fields(), *row_cells.refs(), b"},"]
        # It is the first key, which is in all rows, with the comma that separates it from others.
        assert isinstance(first_cell, bytes)  # noqa: S101 (see ``is_said``)
        self.put(places, b"{" + first_cell.removeprefix(b","), *cells)
        self.templates.forget_columns()


def line_of(shown: Mapping[str, Any]) -> bytes:
    """Return the line of a record, given as JSON."""
    return orjson.dumps(shown) + b"\n"


class ShownRows:
    """Some rows of records, or items, of a class, as parts of a template."""

    def __init__(self, texts: RowTexts, many: Many, rows: I64) -> None:
        self.texts = texts
        self.templates = texts.templates
        self.many = many
        self.count = rows.size
        self.every_row = np.ones(rows.size, bool)
        self.selected: Any = rows
        if rows.size == many.start.size:
            self.selected = slice(None)

    def column(self, key: Any) -> NDArray[Any]:
        """Return a column of the rows."""
        column = self.many.known[key]
        if isinstance(column, Codes):
            column = column.column()
        if not isinstance(column, np.ndarray):
            return np.full(self.count, column)
        return column[self.selected]  # type: ignore[no-any-return]

    def mask(self, key: Any, *, otherwise: bool) -> Bools:
        """Return a mask of the rows, or one value for all of them if it is not known."""
        if key in self.many.known:
            return self.column(key)
        return np.full(self.count, otherwise)

    # --- Members --------------------------------------------------------------------------------

    def fields(self) -> list[Cell]:
        """Return all fields, each with its key, and the type of a part."""
        layout = self.many.layout
        members = [when(self.presence(field), self.member, field) for field in layout.shown]
        if layout.shows_type:
            type_member: list[Cell] = [b',"type":' + orjson.dumps(layout.cls.record)]
            index = layout.keys.index("type") if "type" in layout.keys else 0
            members.insert(index, type_member)
        return list(itertools.chain.from_iterable(members))

    def presence(self, field: Field) -> Bools:
        """Return in which rows a field is shown."""
        if isinstance(field, Spare):
            is_set: Bools = np.any([self.is_set(spare) for spare in chain_of(field)], axis=0)
            return is_set
        return self.mask((field, THERE), otherwise=True)

    def is_set(self, field: Spare) -> Bools:
        """Return in which rows spare bytes are not zero."""
        starts = self.column((field, START))
        return stretches.with_bits(self.texts.data, starts, np.full(self.count, field.own))

    def member(self, field: Field) -> list[Cell]:
        """Return the key and the value of a field that is there."""
        return [b"," + orjson.dumps(field.key) + b":", *self.value(field)]

    def value(self, field: Any) -> list[Cell]:
        """Return the value of a field, with what is shown beside it."""
        if isinstance(field, Mark):
            return [orjson.dumps(field.names[int(self.many.big)])]
        if isinstance(field, Float):
            return self.real(field)
        if isinstance(field, Spare):
            chain = [self.octets(spare) for spare in chain_of(field)]
            return [b'"', *itertools.chain.from_iterable(chain), b'"']
        if isinstance(field, Text):
            if field.entry is None:
                return self.text(field)
            return self.reference(field)
        if isinstance(field, Span):
            return [b'"', *self.octets(field), b'"']
        if isinstance(field, Listed | Texts):
            return [b"[", (COPIED, self.items(field)), b"]"]
        if isinstance(field, Choice):
            return self.choice(field)
        if isinstance(field, Number) and field.refers is not None:
            return self.referred(field, self.every_row)
        numbers = self.column(field)
        if isinstance(field, Flag) or (isinstance(field, Number) and field.flag):
            return self.made(field, self.every_row, numbers, bool)
        number_cell: Cell = SIGNED if field.signed else NATURAL, numbers
        if not isinstance(field, Number) or not field.values:
            return [number_cell]
        # Some rows have a number with a name, the others show the number itself.
        has_name = ~field.without_name(numbers)
        names = {wrapped(number): name for number, name in field.values.items()}
        return [
            *when(has_name, self.made, field, has_name, numbers, names.__getitem__),
            *when(~has_name, just, number_cell),
        ]

    # --- Values ---------------------------------------------------------------------------------

    def made(
        self, field: Field, rows: Bools, numbers: I64, value_of: Callable[[int], Any]
    ) -> list[Cell]:
        """Return the values that numbers of some rows mean, made once for each number."""
        texts = self.texts.made.get(field)
        if texts is None:

            def text_of_number(number: int) -> str:
                return value_text(field, value_of(number)).decode()

            texts = Numbered(self.templates, text_of_number, sparse=True)
            self.texts.made[field] = texts
        text_numbers = np.zeros(self.count, np.int64)
        text_numbers[rows] = texts(numbers[rows])[1]
        return [(TEXT, text_numbers)]

    def real(self, field: Float, number_of: Callable[[int], float] | None = None) -> list[Cell]:
        """Return doubles, and those that JSON cannot hold by name."""
        bits = self.column(field)
        numbers = field.numbers_of(bits)
        # NaN are made of their own bits, which conversions to doubles change.
        is_special = ~np.isfinite(numbers)
        finite_numbers = np.where(is_special, 0.0, numbers)
        usual = when(~is_special, self.finite, finite_numbers)
        number_of = number_of or field.number_of
        return usual + when(is_special, self.made, field, is_special, bits, number_of)

    def finite(self, numbers: NDArray[np.float64]) -> list[Cell]:
        """Return finite doubles."""
        return [(COPIED, json_doubles(self.templates, numbers))]

    def real_items(self, item: Float) -> list[Cell]:
        """Return doubles of a list, which has no place for the bits of a NaN."""
        return self.real(item, lambda bits: float(item.number_of(bits)))

    def octets(self, field: Span) -> list[Cell]:
        """Return bytes in hex."""
        starts = self.column((field, START))
        if isinstance(field, Spare):
            return stretch(STRETCH_HEX, starts, field.own)
        return stretch(STRETCH_HEX, starts, self.column((field, LENGTH)))

    def text(self, field: Text) -> list[Cell]:
        """Return texts of the file."""
        starts = self.column((field, START))
        lengths = self.column((field, LENGTH))
        is_strange = self.mask((field, STRANGE), otherwise=False)
        usual = when(~is_strange, stretch, STRETCH, starts, lengths)
        return usual + when(is_strange, self.strange, field, is_strange)

    def strange(self, field: Text, rows: Bools) -> list[Cell]:
        """Return texts that are not UTF-8, with their bytes beside them."""
        starts = self.column((field, START))
        lengths = self.column((field, LENGTH))
        ends = starts + lengths
        data = self.texts.data.data
        texts = []
        for start, end in zip(starts[rows].tolist(), ends[rows].tolist(), strict=True):
            texts.append(orjson.dumps(str(data[start:end], "utf-8", "replace")))
        text_numbers = np.zeros(self.count, np.int64)
        text_numbers[rows] = self.templates.texts(texts)
        key_of_bytes = b"," + orjson.dumps(f"{field.key}_bytes_hex") + b':"'
        octets = stretch(STRETCH_HEX, starts, lengths)
        return [(TEXT, text_numbers), key_of_bytes, *octets, b'"']

    def reference(self, field: Text) -> list[Cell]:
        """Return texts that are in the records, empty, or in a table."""
        is_inline, is_empty = self.reference_kinds(field)
        in_table = ~(is_inline | is_empty)
        return [
            *when(is_inline, self.text, field),
            *when(is_empty, just, b'""'),
            *when(in_table, self.referred, field, in_table),
        ]

    def reference_kinds(self, field: Text) -> tuple[Bools, Bools]:
        """Return in which rows a text is in the record, and where it is empty."""
        indexes = self.indexes(field)
        is_inline = indexes & field.inline != 0
        # In rows that have another value, the number may be anything.
        with_field = has_field(self.many, field)
        if with_field.ndim:
            with_field = with_field[self.selected]
        is_inline &= with_field
        if field.empty is None:
            return is_inline, np.zeros(self.count, bool)
        return is_inline, ~is_inline & (indexes == field.empty)

    def indexes(self, field: Any) -> I64:
        """Return the numbers of a reference."""
        indexes: I64 = self.many.full(index_of(field).column(self.many))[self.selected]
        return indexes

    def reference_number(self, field: Any) -> Cell:
        """Return the numbers of a reference as a part of a template."""
        is_signed = getattr(index_of(field), "signed", True)
        kind = SIGNED if is_signed else NATURAL
        return kind, self.indexes(field)

    def referred(self, field: Any, rows: Bools) -> list[Cell]:
        """Return texts of a table, which some rows have; numbers of those that it has not."""
        strings = self.texts.strings
        codes = self.column((field, CODE))
        declared = rows & (codes >= 0)
        undeclared = rows & (codes < 0)
        table: Any = field.refers if isinstance(field, Number) else field.entry.table
        # Of "<name#0>", what is before the number.
        begin = orjson.dumps(table.unknown(0).removesuffix("0>"))[:-1]
        return [
            *when(declared, self.made, field, declared, codes, lambda code: text_of(strings, code)),
            *when(undeclared, just, begin, self.reference_number(field), b'>"'),
        ]

    def choice(self, field: Choice) -> list[Cell]:
        """Return values, each of the kind that its row says."""
        cells: list[Cell] = []
        for variant, rows in field.of_many(self.column(field.tag)):
            if variant is None:
                cells += when(rows, just, b"null")
            else:
                cells += when(rows, self.value, variant)
        return cells

    def items(self, field: Listed | Texts) -> I64:
        """Return numbers of texts of the items of each row, one after another."""
        texts = self.texts.lists.get(field)
        if texts is None:
            texts = self.texts.of_items()
            self.texts.lists[field] = texts
        # Which of these rows a row of the whole group is; -1 for others.
        own_rows = np.full(self.many.start.size, -1)
        own_rows[self.selected] = np.arange(self.count)
        # Items of a group, those among them that are shown, and the rows that these are of.
        groups: list[tuple[Many, I64, I64]] = []
        counts = np.zeros(self.count + 1, np.int64)
        for items in self.many.own.parts.get(field, ()):
            owners = owners_of(items, self.many)
            if owners is not None:
                item_rows = np.flatnonzero(own_rows[owners] >= 0)
                row_of_item = own_rows[owners[item_rows]]
                groups.append((items, item_rows, row_of_item))
                counts[1:] += np.bincount(row_of_item, minlength=self.count)
        # The items of row 2 are those from bounds[2] up to bounds[3] of all items.
        bounds = np.cumsum(counts)
        for items, item_rows, row_of_item in groups:
            assert items.index is not None  # noqa: S101 (they are items)
            places = bounds[row_of_item] + items.index[item_rows]
            texts.put_items(field, items, item_rows, places)
        written, _ = texts.joined()
        starts = written.offsets[bounds[:-1]]
        ends = written.offsets[bounds[1:]]
        ends_without_comma = np.where(ends > starts, ends - 1, ends)
        # Every other text is a comma, or nothing: it is not used.
        text_bounds = np.stack([starts, ends_without_comma], axis=1).reshape(-1)
        return self.templates.column(written.data, text_bounds)[::2]

    # --- Numbers of references ------------------------------------------------------------------

    def refs(self) -> list[Cell]:
        """Return the numbers of references, by field; nothing in rows without one."""
        cells: list[Cell] = []
        any_before = np.zeros(self.count, bool)
        for field, rows in self.referring():
            key = orjson.dumps(field.name) + b":"
            cells += when(rows & ~any_before, just, b',"refs":{' + key)
            cells += when(rows & any_before, just, b"," + key)
            cells += when(rows, just, self.reference_number(field))
            any_before |= rows
        return cells + when(any_before, just, b"}")

    def referring(self) -> Iterator[tuple[Any, Bools]]:
        """Yield the fields that refer to tables, with the rows that do so by number."""
        for field in self.many.layout.referring:
            is_there = self.mask((field, THERE), otherwise=True)
            candidates: list[tuple[Any, Bools]] = [(field, is_there)]
            if isinstance(field, Choice):
                if not any(map(refers_by_number, field.fields)):
                    continue
                candidates = list(field.of_many(self.column(field.tag)))
            for variant, rows in candidates:
                if variant is None or not refers_by_number(variant):
                    continue
                with_variant = rows & is_there
                if with_variant.any():
                    yield variant, with_variant & self.by_number(variant)

    def by_number(self, field: Any) -> Bools:
        """Return in which rows a reference that is there is a number."""
        if not isinstance(field, Text):
            return self.every_row
        is_inline, is_empty = self.reference_kinds(field)
        return ~(is_inline | is_empty)


# --- Parts of templates ---------------------------------------------------------------------------


def when(rows: Bools, make: Callable[..., list[Cell]], *arguments: Any) -> list[Cell]:
    """Return the parts of a template that ``make`` returns, for some rows only.

    It is not called if there are none, as columns of what no record has are not known.
    """
    if not rows.any():
        return []
    cells = make(*arguments)
    if rows.all():
        return cells
    # The last part takes the text behind the others, so that it is left out with them.
    count = 1 + sum(not isinstance(cell, bytes) for cell in cells)
    return [(SKIP, np.where(rows, 0, count)), *cells, (NOTHING, 0)]


def just(*cells: Cell) -> list[Cell]:
    """Return parts of a template."""
    return list(cells)


def stretch(kind: int, starts: I64, lengths: Any) -> list[Cell]:
    """Return stretches of the file."""
    return [(kind, starts), (STRETCH_END, starts + lengths)]


def head_of(record: str, offsets: I64, sizes: I64) -> list[Cell]:
    """Return what all lines begin with."""
    begin = b'{"record":' + orjson.dumps(record) + b',"offset":'
    return [begin, (NATURAL, offsets), b',"nbytes":', (NATURAL, sizes)]


def raw_of(offsets: I64, sizes: I64) -> list[Cell]:
    """Return the bytes of records in hex."""
    return [b',"raw":"', *stretch(STRETCH_HEX, offsets, sizes), b'"']


def value_text(field: Field, value: Any) -> bytes:
    """Return a value as JSON, with what is shown beside it."""
    members: dict[str, Any] = {}
    field.show(value, members)
    # {"key":value}, without the key and the braces.
    key_length = len(orjson.dumps(field.key))
    return orjson.dumps(members)[key_length + 2 : -1]


def text_of(strings: StringPool, code: int) -> str:
    """Return the text of a code, which may not be UTF-8."""
    return strings.bytes_of(code).decode(errors="surrogateescape")


# --- Fields and rows ------------------------------------------------------------------------------


def index_of(field: Any) -> Any:
    """Return the number of a reference, an expression."""
    if isinstance(field, Number):
        return field
    return field.index


def refers_by_number(field: Field) -> bool:
    """Return whether sound records may have a number for a text of another record."""
    # Numbers of a closed table, in which nothing is declared, are damage.
    is_closed = isinstance(field, Text) and field.entry is not None and field.entry.table.closed
    return is_reference(field) and not is_closed


def chain_of(field: Spare) -> list[Spare]:
    """Return spare bytes with those that are shown before them, in the order of the file."""
    if field.after is None:
        return [field]
    return [*chain_of(field.after), field]


def owners_of(items: Many, many: Many) -> I64 | None:
    """Return the row of each item's record or part; None if these are others."""
    # Columns of some rows know those that the rows are of, step by step: an item of a list that
    # is there in rows 4 and 7, whose own row is 1 of these, is of row 7.
    level = items.known
    rows: Any = None
    while level is not many.known:
        if level.whole is None:
            return None
        rows = level.rows if rows is None else level.rows[rows]
        level = level.whole
    return rows  # type: ignore[no-any-return]


# --- What columns do not say ----------------------------------------------------------------------


def is_said(layout: Any) -> bool:
    """Return whether columns say what records or parts of a class show."""
    cls = layout.cls
    if layout.is_part:
        as_declared = cls.to_json is Part.to_json
        # The first key has no comma before it, and is there in all rows.
        type_is_first = layout.shows_type and "type" not in layout.keys
        if layout.shown and not type_is_first:
            first_field = layout.shown[0]
            as_declared &= first_field.when is None and not isinstance(first_field, Spare)
    else:
        as_declared = cls.show is Record.show and cls.to_json is LosslessRecord.to_json
    return as_declared and all(map(is_shown, layout.shown))


def is_shown(field: Field) -> bool:
    """Return whether columns can show a field."""
    if isinstance(field, Choice):
        return type(field) is Choice and all(map(is_shown, field.fields))
    if type(field).show not in SHOWS or type(field).show_of is not Field.show_of:
        return False
    # A name that several numbers have is written as the first of them.
    if isinstance(field, Number):
        return len(set(field.values.values())) == len(field.values)
    return True


def has_field(many: Many, field: Any) -> Any:
    """Return which rows have a field, perhaps as their value of a choice: a mask, or one bool."""
    choice = many.layout.choice_of.get(field)
    if choice is None:
        return many.known.get((field, THERE), np.bool_(True))
    with_field = np.zeros(many.start.size, bool)
    for variant, rows in choice.of_many(many.known[choice.tag]):
        if variant is field:
            with_field |= rows
    return with_field


def doubts(many: Many) -> Iterator[Bools]:
    """Yield masks of rows whose fields may give other bytes, which their objects know.

    Numbers that are not shown are written as the other fields imply them. A number that nothing
    implies in its row is written as 0: the length of a text, where there is no text.
    """
    layout = many.layout
    columns = many.known
    for number, implied in layout.implied.items():
        # Not 0, and no field is there that implies it.
        numbers = many.full(columns[number])
        is_doubtful = numbers != 0
        for how, field, number_if_absent, number_if_present in implied:
            if how == "present":
                is_there = columns.get((field, THERE), True)
                yield numbers != np.where(is_there, number_if_present, number_if_absent)
                is_doubtful = np.zeros(many.start.size, bool)
            elif is_doubtful.any():
                is_doubtful &= ~has_field(many, field)
        yield is_doubtful
    for field in (*layout.fields, *layout.choice_of):
        if not isinstance(field, Text) or (field, CODE) not in columns:
            continue
        index = index_of(field)
        indexes = many.full(index.column(many))
        masks = [
            columns[leaf] != indexes
            for leaf in index.leaves()
            if isinstance(leaf, Number) and leaf is not index
        ]
        if field.inline and field.empty == 0:
            masks.append(indexes == field.inline)  # an empty text is written as 0
        for is_doubtful in masks:
            # Other kinds of a choice use the number otherwise.
            if is_doubtful.any():
                yield is_doubtful & has_field(many, field)
