"""Lines: the record JSON of a file, from the columns of its records.

``LineReader`` reads blocks as for tables (``blocks``). The records of each class in a run become
rows of a template, whose parts are texts, numbers and stretches of the file; the items of a list
are rows of their own, which those of the records copy. Then all lines are put in the file's order.
Records that columns do not say, or say in doubt, are shown by their objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from fxframework.io.limits import Limits
from fxframework.io.source import Source
from fxframework.kernels import stretches
from fxframework.kernels.parts import (
    COPIED,
    HEX16,
    NATURAL,
    NOTHING,
    REAL,
    SIGNED,
    SKIP,
    STRETCH,
    STRETCH_END,
    STRETCH_HEX,
    TEXT,
)
from fxframework.kernels.templates import Cell, Templates
from fxframework.kit.json_fields import CANONICAL_NAN, show_text
from fxframework.kit.lossless import LosslessRecord
from fxframework.kit.record_lines import RELEASED
from fxframework.kit.row_texts import Lines, Numbered, column_of
from fxframework.model.strings import StringPool, TextColumn
from fxframework.wire.beside import Spare
from fxframework.wire.blocks import REASONS, SIZE_RULE, Block, BlockReader, Run
from fxframework.wire.choices import Choice, Flag
from fxframework.wire.expressions import wrapped
from fxframework.wire.fields import Field, Integer, Mark, Number
from fxframework.wire.floats import Float
from fxframework.wire.format import Format
from fxframework.wire.framing import PADDING, UNKNOWN
from fxframework.wire.known import CODE, LENGTH, START, STRANGE, THERE, Codes
from fxframework.wire.lists import Listed
from fxframework.wire.many import Many
from fxframework.wire.records import Part, Record, is_reference
from fxframework.wire.spans import Octets, Span, Text

__all__ = ["LineReader"]

I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]
BLOCK_BYTES = 1 << 19
"""Bytes of the file whose lines are made together: some ten times as many."""
MOST_TEXTS = 1 << 20
"""Bytes of texts that are kept from one block to the next."""
DENSE = 4096
"""Numbers below it are looked up in a table."""
SHOWS = {each.show for each in (Field, Number, Float, Octets, Spare, Text, Listed)}
"""How the kinds of fields are shown that columns can show."""
EXPONENT, FRACTION = 0x7FF << 52, (1 << 52) - 1
"""Of a double."""


class LineReader(BlockReader):
    """Reads the records of a file into lines of record JSON."""

    for_lines = True

    def __init__(self, format: Format, source: Source, limits: Limits) -> None:
        super().__init__(format, source, limits, StringPool(), tables=())
        self.seen = self.show
        self.block_bytes = BLOCK_BYTES
        self.texts = RowTexts(self.numbers.data, self.strings)
        self.by_columns = {cls for cls in format.classes if is_said(cls.layout)}
        self.plain: dict[Many, I64] = {}
        """The rows of each class of a run that its columns show."""
        self.offsets: list[int] = []
        self.object_lines: list[bytes] = []
        """Places and lines of records that were read as objects."""

    def lines(self) -> Iterator[bytes]:
        """Yield the lines of each block."""
        behind = 0
        for block in self.blocks():
            yield self._joined()
            if block.end - behind > RELEASED:
                self.source.passed(behind, block.end)
                behind = block.end
        if self.object_lines:  # there was only a header
            yield self._joined()

    def _joined(self) -> bytes:
        """Return all lines since the last call, in the order of the file."""
        objects = column_of(self.texts.templates, self.object_lines)
        self.texts.lines.put(np.array(self.offsets, np.int64), (COPIED, objects))
        self.offsets, self.object_lines = [], []
        return self.texts.joined().data.tobytes()

    def add_object(self, ordinal: int, record: LosslessRecord) -> bool:
        """Take a record that was read as an object."""
        self.show(record)
        return super().add_object(ordinal, record)

    def show(self, record: LosslessRecord) -> None:
        """Make the line of a record."""
        self.offsets.append(record.offset)
        self.object_lines.append(orjson.dumps(record.to_json()) + b"\n")

    def watched_of(self, many: Many) -> I64:
        """Return the rows of the sound records that are shown by objects."""
        own = many.own
        assert own.sound is not None  # noqa: S101 (set by ``Run.finish``)
        by_objects = np.zeros(own.sound.size, bool)
        if many.layout.cls not in self.by_columns:
            by_objects[:] = True
        else:
            for each in (many, *(part for parts in own.parts.values() for part in parts)):
                for doubt in doubts(each):
                    by_objects[each.rows_at(np.flatnonzero(doubt))] = True
        self.plain[many] = np.flatnonzero(own.sound & ~by_objects)
        return own.ordinals[own.sound & by_objects]

    def take_run(self, block: Block, run: Run) -> None:
        """Make the lines of a run."""
        del block
        for many, rows in self.plain.items():
            if rows.size:
                ordinals = many.own.ordinals[rows]
                offsets, sizes = run.places[ordinals], run.sizes[ordinals]
                self.texts.put_records(many, rows, offsets, sizes)
            own = many.own
            if not own.all_sound:
                self._put_damaged(run, SIZE_RULE, own.ordinals[own.short & ~own.odd])
        self.plain.clear()
        for entry, rows in run.stretches:
            self.put_stretches(run, entry, rows[rows < run.count])

    def _put_damaged(self, run: Run, number: int, every_row: I64) -> None:
        """Make the lines of damaged stretches."""
        rows = every_row[every_row < run.count]
        code = f',"code":"{self.format.codes}{number:04}"'.encode()
        offsets, sizes = run.places[rows], run.sizes[rows]
        self.texts.put_raw(b"damaged", offsets, sizes, [code])

    def put_stretches(self, run: Run, entry: int, rows: I64) -> None:
        """Make the lines of stretches that are not records of a known kind, by the entry."""
        offsets, sizes = run.places[rows], run.sizes[rows]
        if entry == PADDING:
            self.texts.lines.put(offsets, *head_of(b"padding", offsets, sizes), b"}\n")
        elif entry == UNKNOWN:
            kinds: Cell = SIGNED, self.frames.kinds_found[rows]
            self.texts.put_raw(b"unknown", offsets, sizes, [b',"type":', kinds])
        else:
            self._put_damaged(run, REASONS.get(entry, SIZE_RULE), rows)


class RowTexts:
    """Writes rows of text from columns: records, or the items of one list."""

    def __init__(self, data: NDArray[np.uint8], strings: StringPool) -> None:
        self.data = data
        self.strings = strings
        self.templates = Templates(b"", b"", b"", source=data.data)
        self.lines = Lines(self.templates)
        self.references: dict[Field, Numbered] = {}
        """The texts of references, by field."""
        self.lists: dict[Field, RowTexts] = {}
        """What writes the items of lists."""

    def joined(self) -> TextColumn:
        """Return all rows in the order of their places, and forget them."""
        column = self.lines.in_order() or self.lines.joined()[0]
        self.templates.forget(MOST_TEXTS)
        return column

    def put_raw(self, record: bytes, offsets: I64, sizes: I64, cells: list[Cell]) -> None:
        """Write lines of what only its bytes can show."""
        raw = raw_cells(offsets, sizes)
        self.lines.put(offsets, *head_of(record, offsets, sizes), *cells, *raw, b"}\n")

    def put_records(self, many: Many, rows: I64, offsets: I64, sizes: I64) -> None:
        """Write lines of sound records."""
        shown = ShownRows(self, many, rows)
        layout = many.layout
        head = head_of(layout.cls.record.encode(), offsets, sizes)
        cells = [*head, *shown.fields(), *shown.refs()]
        is_raw = many.own.raw[rows]
        if layout.word:  # the kind that was found may be that of another byte of the word
            for field, number in zip(layout.family.kinds, layout.kind, strict=False):
                is_raw |= shown.column(field) != number
        self.lines.put(offsets, *cells, *when(is_raw, lambda: raw_cells(offsets, sizes)), b"}\n")
        self.templates.forget_columns()

    def put_items(self, field: Listed, many: Many, rows: I64, places: I64) -> None:
        """Write items of a list, each with a comma behind it, at places among all of them."""
        if isinstance(field.item, Integer):
            kind = SIGNED if field.item.signed else NATURAL
            self.lines.put(places, (kind, many.known[field.item][rows]), b",")
            return
        shown = ShownRows(self, many, rows)
        first, *cells = [*shown.fields(), *shown.refs(), b"},"]
        assert isinstance(first, bytes)  # noqa: S101 (see ``is_said``)
        self.lines.put(places, b"{" + first.removeprefix(b","), *cells)
        self.templates.forget_columns()


class ShownRows:
    """Some rows of records, or items, of a class, as parts of a template."""

    def __init__(self, texts: RowTexts, many: Many, rows: I64) -> None:
        self.texts = texts
        self.templates = texts.templates
        self.many = many
        self.rows = rows
        self.count = rows.size
        self.selected: Any = slice(None) if rows.size == many.start.size else rows

    def column(self, key: Any) -> NDArray[Any]:
        """Return a column of the rows."""
        column = self.many.known[key]
        if isinstance(column, Codes):
            column = column.column()
        if not isinstance(column, np.ndarray):
            return np.full(self.count, column)
        return column[self.selected]  # type: ignore[no-any-return]

    def mask(self, key: Any, *, otherwise: bool) -> Mask:
        """Return a mask of the rows, or one value for all of them if it is not known."""
        if key in self.many.known:
            return self.column(key)
        return np.full(self.count, otherwise)

    # --- Members --------------------------------------------------------------------------------

    def fields(self) -> list[Cell]:
        """Return all fields, each with its key, and the type of a part."""
        layout = self.many.layout
        cells: list[Cell] = []
        typed = layout.keys.index("type") if "type" in layout.keys else 0
        for number, field in enumerate([*layout.shown, None]):
            if layout.shows_type and (number == typed or (field is None and typed > number)):
                cells.append(b',"type":' + orjson.dumps(layout.cls.record))
            if field is not None:
                cells += when(self.presence(field), lambda field=field: self.member(field))
        return cells

    def presence(self, field: Field) -> Mask:
        """Return in which rows a field is shown."""
        if isinstance(field, Spare):
            return np.any([self.is_set(each) for each in chain_of(field)], axis=0)
        return self.mask((field, THERE), otherwise=True)

    def is_set(self, field: Spare) -> Mask:
        """Return in which rows spare bytes are not zero."""
        starts = self.column((field, START))
        return stretches.with_bits(self.texts.data, starts, np.full(self.count, field.own))

    def member(self, field: Field) -> list[Cell]:
        """Return the key and the value of a field that is there."""
        return [b"," + orjson.dumps(field.key) + b":", *self.value(field)]

    def value(self, field: Field) -> list[Cell]:
        """Return the value of a field, with what is shown beside it."""
        if isinstance(field, Mark):
            return [orjson.dumps(field.names[int(self.many.big)])]
        if isinstance(field, Number):
            return self.number(field)
        if isinstance(field, Float):
            return self.real(field)
        if isinstance(field, Spare):
            return [b'"', *(cell for each in chain_of(field) for cell in self.octets(each)), b'"']
        if isinstance(field, Text):
            return self.text(field) if field.entry is None else self.reference(field)
        if isinstance(field, Span):
            return [b'"', *self.octets(field), b'"']
        if isinstance(field, Listed):
            return [b"[", (COPIED, self.items(field)), b"]"]
        if isinstance(field, Choice):
            return self.choice(field)
        if isinstance(field, Flag):
            return self.named(self.column(field), {0: False, 1: True}, NATURAL)
        is_signed = field.signed  # type: ignore[attr-defined] (those left: Again, Computed)
        return [(SIGNED if is_signed else NATURAL, self.column(field))]

    # --- Values ---------------------------------------------------------------------------------

    def number(self, field: Number) -> list[Cell]:
        """Return a number, or what it is the number of."""
        numbers = self.column(field)
        if field.refers is not None:
            return [self.coded(field, np.ones(self.count, bool))]
        kind = SIGNED if field.signed else NATURAL
        if field.flag:
            return self.named(numbers, {0: False, 1: True}, kind)
        return self.named(numbers, field.values, kind) if field.values else [(kind, numbers)]

    def named(self, numbers: I64, names: Mapping[int, Any], kind: int) -> list[Cell]:
        """Return the names of numbers; of others the numbers themselves."""
        order = np.array(sorted(names), object)
        known = order.astype(np.uint64 if order[-1] >= 1 << 63 else np.int64).view(np.int64)
        texts = np.array([self.templates.text(orjson.dumps(names[each])) for each in order])
        if known[0] >= 0 and 0 <= known[-1] < DENSE:
            index = np.full(known[-1] + 2, -1)
            index[known] = np.arange(known.size)
            # Without a sign, negative numbers are large.
            beyond = np.minimum(numbers.view(np.uint64), np.uint64(known[-1] + 1))
            found = index[beyond.view(np.int64)]
        else:
            by_number = np.argsort(known)
            found = by_number[np.searchsorted(known[by_number], numbers).clip(0, known.size - 1)]
            found = np.where(known[found] == numbers, found, -1)
        is_named = found >= 0
        with_names: list[Cell] = [(TEXT, texts[found])]
        return when(is_named, lambda: with_names) + when(~is_named, lambda: [(kind, numbers)])

    def real(self, field: Float) -> list[Cell]:
        """Return doubles; those that JSON cannot hold by name, and the bits of a NaN."""
        bits = self.column(field)
        doubles = bits.view(np.float64)
        if field.nbytes == 4:
            with np.errstate(invalid="ignore"):  # signalling NaN
                doubles = bits.astype(np.uint32).view(np.float32).astype(np.float64)
            bits = doubles.view(np.int64)
        is_finite = bits & EXPONENT != EXPONENT
        if is_finite.all():
            return [(REAL, bits)]
        if field.nbytes == 4:  # a conversion may have changed the bits of a NaN
            single = self.column(field)
            wide = (single >> 31) << 63 | EXPONENT | (single & (1 << 23) - 1) << 29
            bits = np.where(is_finite, bits, wide)
        is_nan = ~is_finite & (bits & FRACTION != 0)
        infinite = np.where(bits < 0, *map(self.templates.text, (b'"-Infinity"', b'"Infinity"')))
        names = np.where(is_nan, self.templates.text(b'"NaN"'), infinite)
        key = b"," + orjson.dumps(f"{field.key}_bits") + b':"0x'
        return [
            *when(is_finite, lambda: [(REAL, bits)]),
            *when(~is_finite, lambda: [(TEXT, names)]),
            *when(is_nan & (bits != CANONICAL_NAN), lambda: [key, (HEX16, bits), b'"']),
        ]

    def octets(self, field: Span) -> list[Cell]:
        """Return bytes in hex."""
        starts = self.column((field, START))
        own = isinstance(field, Spare)
        return stretch(STRETCH_HEX, starts, field.own if own else self.column((field, LENGTH)))

    def text(self, field: Text) -> list[Cell]:
        """Return texts of the file; those that are not UTF-8 have their bytes beside them."""
        starts, lengths = self.column((field, START)), self.column((field, LENGTH))
        is_strange = self.mask((field, STRANGE), otherwise=False)

        def strange() -> list[Cell]:
            rows = np.flatnonzero(is_strange)
            pairs = zip(starts[rows].tolist(), lengths[rows].tolist(), strict=True)
            data = [self.texts.data[at : at + nbytes].tobytes() for at, nbytes in pairs]
            numbers = np.zeros(self.count, np.int64)
            numbers[rows] = self.templates.texts([shown_text(field, each) for each in data])
            return [(TEXT, numbers)]

        usual = when(~is_strange, lambda: stretch(STRETCH, starts, lengths))
        return [*usual, *when(is_strange, strange)]

    def reference(self, field: Text) -> list[Cell]:
        """Return texts that are in the records, empty, or in a table."""
        is_inline, is_empty = self.reference_kinds(field)
        return [
            *when(is_inline, lambda: self.text(field)),
            *when(is_empty, lambda: [b'""']),
            *when(~(is_inline | is_empty), lambda: [self.coded(field, ~(is_inline | is_empty))]),
        ]

    def reference_kinds(self, field: Text) -> tuple[Mask, Mask]:
        """Return in which rows a text is in the record, and where it is empty."""
        indexes = self.indexes(field)
        is_inline = indexes & field.inline != 0
        is_empty = ~is_inline & (indexes == (-1 if field.empty is None else field.empty))
        return is_inline, is_empty & (field.empty is not None)

    def indexes(self, field: Any) -> I64:
        """Return the numbers of a reference."""
        index = field if isinstance(field, Number) else field.entry.index
        return self.many.full(index.column(self.many))[self.selected]

    def coded(self, field: Any, rows: Mask) -> Cell:
        """Return texts of a table, which some rows have."""
        if field not in self.texts.references:
            strings = self.texts.strings
            self.texts.references[field] = Numbered(
                self.templates, lambda code: shown_text(field, strings.bytes_of(code)).decode()
            )
        codes = np.where(rows, self.column((field, CODE)), 0)
        # Rows of other kinds of a choice have none: their bits may be those of a reference.
        return self.texts.references[field](np.maximum(codes, 0))

    def choice(self, field: Choice) -> list[Cell]:
        """Return values, each of the kind that its row says."""
        cells: list[Cell] = []
        for variant, rows in self.variants(field):
            make: Any = (lambda: [b"null"]) if variant is None else None
            cells += when(rows, make or (lambda variant=variant: self.value(variant)))
        return cells

    def variants(self, field: Choice) -> Iterator[tuple[Any, Mask]]:
        """Yield the fields of a choice, with the rows that have a value of it."""
        tags = self.column(field.tag)
        left = np.ones(self.count, bool)
        for number, variant in field.kinds.items():
            yield variant, tags == wrapped(int(number))
            left &= tags != wrapped(int(number))
        yield field.other, left

    def items(self, field: Listed) -> I64:
        """Return numbers of texts of the items of each row, one after another."""
        texts = self.texts.lists.get(field)
        if texts is None:
            texts = self.texts.lists[field] = RowTexts(self.texts.data, self.texts.strings)
        own_rows = np.full(self.many.start.size, -1)
        own_rows[self.selected] = np.arange(self.count)
        groups: list[tuple[Many, I64, I64]] = []
        behind = np.zeros(self.count + 1, np.int64)
        for items in self.many.own.parts.get(field, ()):
            owners = owners_of(items, self.many)
            if owners is not None:
                there = np.flatnonzero(own_rows[owners] >= 0)
                groups.append((items, there, own_rows[owners[there]]))
                behind[1:] += np.bincount(groups[-1][-1], minlength=self.count)
        behind = np.cumsum(behind)
        for items, there, owners in groups:
            assert items.index is not None  # noqa: S101 (they are items)
            texts.put_items(field, items, there, behind[owners] + items.index[there])
        column = texts.joined()
        starts, ends = column.offsets[behind[:-1]], column.offsets[behind[1:]]
        bounds = np.stack([starts, ends - (ends > starts)], axis=1)  # without the last comma
        return self.templates.column(column.data, bounds.reshape(-1))[::2]

    # --- Numbers of references ------------------------------------------------------------------

    def refs(self) -> list[Cell]:
        """Return the numbers of references, by field; nothing in rows without one."""
        cells: list[Cell] = []
        any_before = np.zeros(self.count, bool)
        for field, rows in self.referring():
            index = field if isinstance(field, Number) else field.entry.index
            is_signed = getattr(index, "signed", True)
            number: Cell = SIGNED if is_signed else NATURAL, self.indexes(field)
            key = orjson.dumps(field.name) + b":"
            cells += when(rows & ~any_before, lambda key=key: [b',"refs":{' + key])
            cells += when(rows & any_before, lambda key=key: [b"," + key])
            cells += when(rows, lambda number=number: [number])
            any_before |= rows
        return cells + when(any_before, lambda: [b"}"])

    def referring(self) -> Iterator[tuple[Any, Mask]]:
        """Yield the fields that refer to tables, with the rows that do so by number."""
        for field in self.many.layout.referring:
            there = self.mask((field, THERE), otherwise=True)
            pairs = self.variants(field) if isinstance(field, Choice) else [(field, there)]
            for each, rows in pairs:
                mine = rows & there
                if each is None or not is_reference(each) or not mine.any():
                    continue
                if isinstance(each, Text):
                    is_inline, is_empty = self.reference_kinds(each)
                    mine &= ~(is_inline | is_empty)
                yield each, mine


def when(rows: Mask, cells: Callable[[], list[Cell]]) -> list[Cell]:
    """Return parts of a template that only some rows have; not asked for if none does."""
    if rows.all():
        return cells() if rows.size else []
    if not rows.any():
        return []
    inside = cells()
    # The last part takes what text is behind the others.
    count = 1 + sum(not isinstance(cell, bytes) for cell in inside)
    return [(SKIP, np.where(rows, 0, count)), *inside, (NOTHING, 0)]


def stretch(kind: int, starts: I64, lengths: Any) -> list[Cell]:
    """Return stretches of the file."""
    return [(kind, starts), (STRETCH_END, starts + lengths)]


def head_of(record: bytes, offsets: I64, sizes: I64) -> list[Cell]:
    """Return what all lines begin with."""
    begin = b'{"record":' + orjson.dumps(record.decode()) + b',"offset":'
    return [begin, (NATURAL, offsets), b',"nbytes":', (NATURAL, sizes)]


def raw_cells(offsets: I64, sizes: I64) -> list[Cell]:
    """Return the bytes of records in hex."""
    return [b',"raw":"', *stretch(STRETCH_HEX, offsets, sizes), b'"']


def shown_text(field: Field, data: bytes) -> bytes:
    """Return a text as JSON, with its bytes beside it if they are not UTF-8."""
    shown: dict[str, Any] = {}
    show_text(shown, field.key, data.decode(errors="surrogateescape"))
    return orjson.dumps(shown)[len(orjson.dumps(field.key)) + 2 : -1]


def chain_of(field: Spare) -> list[Spare]:
    """Return spare bytes with those that are shown before them, in the order of the file."""
    before = [] if field.after is None else chain_of(field.after)
    return [*before, field]


def owners_of(items: Many, many: Many) -> I64 | None:
    """Return the row of each item's record or part; None if these are others."""
    known = items.known
    rows: Any = None
    while known is not many.known:
        if known.whole is None:
            return None
        rows = known.rows if rows is None else known.rows[rows]
        known = known.whole
    return rows  # type: ignore[no-any-return]


# --- What columns do not say ----------------------------------------------------------------------


def is_said(layout: Any) -> bool:
    """Return whether columns say what records or parts of a class show."""
    cls = layout.cls
    if layout.is_part:
        as_declared = cls.to_json is Part.to_json
        # The first key has no comma before it, and is there in all rows.
        typed = layout.shows_type and "type" not in layout.keys
        as_declared &= typed or all(
            field.when is None and not isinstance(field, Spare) for field in layout.shown[:1]
        )
    else:
        as_declared = cls.show is Record.show and cls.to_json is LosslessRecord.to_json
    return as_declared and all(map(is_shown, layout.shown))


def is_shown(field: Field) -> bool:
    """Return whether columns can show a field."""
    if isinstance(field, Choice):
        return type(field) is Choice and all(map(is_shown, field.fields))
    if type(field).show not in SHOWS or type(field).show_of is not Field.show_of:
        return False
    if isinstance(field, Number) and len(set(field.values.values())) < len(field.values):
        return False  # a name is written as the first of its numbers
    if isinstance(field, Listed) and not isinstance(field.item, Integer):
        family = field.item.layout.family
        others = [] if family.other is None else [family.other]
        return all(is_said(each.layout) for each in (field.item, *family.members, *others))
    return True


def doubts(many: Many) -> Iterator[Mask]:
    """Yield masks of rows whose fields may give other bytes, which their objects know."""
    layout = many.layout
    known = many.known
    if layout is None:  # integers of a list
        return
    for number, implied in layout.implied.items():
        for how, field, absent, present in implied:
            if how == "present" and number.nbits > 1:
                there = known.get((field, THERE), True)
                yield known[number] != np.where(there, present, absent)
    for field in layout.fields:
        if isinstance(field, Choice):
            yield from doubts_of_choice(many, field)
        elif isinstance(field, Text) and field.entry is not None and (field, CODE) in known:
            index = field.entry.index
            indexes = many.full(index.column(many))
            for leaf in () if isinstance(index, Number) else index.leaves():
                if isinstance(leaf, Number):
                    yield known[leaf] != indexes
            if field.inline and field.empty == 0:
                yield indexes == field.inline  # an empty text is written as 0


def doubts_of_choice(many: Many, field: Choice) -> Iterator[Mask]:
    """Yield rows in which a number is not 0 that only values of other kinds would imply."""
    tags = many.known[field.tag]
    for number, implied in many.layout.implied.items():
        of_choice = [each for _, each, _, _ in implied if many.layout.choice_of.get(each) is field]
        if not of_choice:
            continue
        is_implied = np.zeros(tags.size, bool)
        named = np.zeros(tags.size, bool)
        for key, variant in field.kinds.items():
            named |= tags == wrapped(int(key))
            if any(variant is each for each in of_choice):
                is_implied |= tags == wrapped(int(key))
        if any(field.other is each for each in of_choice):
            is_implied |= ~named
        yield ~is_implied & (many.known[number] != 0)
