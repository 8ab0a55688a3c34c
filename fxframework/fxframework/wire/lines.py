"""Lines: the record JSON of a file, from the columns of its records.

``LineReader`` reads blocks as for tables (``blocks``). The records of each class in a run become
rows of a template, whose parts are texts, numbers and stretches of the file; the items of a list
are rows of their own, which those of the records copy. Then all lines are put in the file's order.
Records that columns do not say, or say in doubt, are shown by their objects.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import orjson
from numpy.typing import NDArray

from fxframework.io.limits import Limits
from fxframework.io.source import Source
from fxframework.kernels import stretches
from fxframework.kernels.parts import (
    COPIED,
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
from fxframework.kit.lossless import LosslessRecord
from fxframework.kit.row_texts import Numbered, column_of, string_lengths
from fxframework.model.strings import StringPool, TextColumn
from fxframework.wire.beside import Spare
from fxframework.wire.blocks import LEAST_RUN, REASONS, SIZE_RULE, Block, BlockReader
from fxframework.wire.choices import Choice, Flag
from fxframework.wire.expressions import wrapped
from fxframework.wire.fields import Field, Integer, Mark, Number
from fxframework.wire.floats import Float
from fxframework.wire.format import Format
from fxframework.wire.framing import PADDING, UNKNOWN
from fxframework.wire.known import CODE, LENGTH, START, STRANGE, THERE, Codes
from fxframework.wire.lists import Listed
from fxframework.wire.many import Many
from fxframework.wire.records import Part, Record
from fxframework.wire.runs import Run
from fxframework.wire.shape import is_reference
from fxframework.wire.spans import Octets, Span, Text

__all__ = ["LineReader"]

I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]
BLOCK_BYTES = 1 << 19
"""Bytes of the file whose lines are made together: some ten times as many."""
MOST_TEXTS = 1 << 20
"""Bytes of texts that are kept from one block to the next."""
LONGEST_PIECE = 4 << 20
"""Bytes of texts that the lines of a piece refer to, about, where there are many of them."""
FIRST_RUN = 256
"""Records of the first run, which shows how much longer their lines are."""
LONG = 256
"""Bytes of a text up to which a block cannot refer to more than that."""
FEW = 8
"""Rows that a copy of its own is worth while for."""
SHOWS = {each.show for each in (Field, Number, Float, Octets, Spare, Text, Listed)}
"""How the kinds of fields are shown that columns can show."""
EXPONENT = 0x7FF << 52
"""The bits of a double that are all set if it is not finite."""


class LineReader(BlockReader):
    """Reads the records of a file into lines of record JSON."""

    for_lines = True

    def __init__(self, format: Format, source: Source, limits: Limits) -> None:
        super().__init__(format, source, limits, StringPool(), tables=())
        self.block_bytes = BLOCK_BYTES
        self.longest_run = FIRST_RUN
        self.texts = RowTexts(self.numbers.data, self.strings)
        self.said: dict[Any, bool] = {}
        """Whether columns say what records and parts of a layout show."""
        self.plain: dict[Many, I64] = {}
        """The rows of each class of a run that its columns show."""
        self.offsets: list[int] = []
        self.object_lines: list[bytes] = []
        """Places and lines of records that were read as objects."""
        self.object_bytes = 0
        """Bytes of these lines."""
        self.longest_text = 0
        """Bytes of the longest of the texts in ``strings`` that were looked at."""
        self.texts_seen = 0
        self.pieces: list[Iterator[bytes]] = []
        """The lines of the block that come before those in ``texts``."""

    def lines(self) -> Iterator[bytes]:
        """Yield the lines of each block, at once if they do not refer to far longer texts."""
        for _ in self.blocks():
            pieces, self.pieces = self.pieces, []
            yield from itertools.chain.from_iterable(pieces)
            yield self._joined()
        if self.object_lines:  # there was only a header
            yield self._joined()

    def _joined(self) -> bytes:
        """Return all lines since the last call, in the order of the file."""
        self._put_objects()
        return self.texts.joined()[0]

    def _put_objects(self) -> None:
        """Write the lines of records that were read as objects."""
        objects = column_of(self.texts.templates, self.object_lines)
        self.texts.put(np.array(self.offsets, np.int64), (COPIED, objects))
        self.offsets = []
        self.object_lines = []
        self.object_bytes = 0

    def add_object(self, ordinal: int, record: LosslessRecord) -> bool:
        """Take a record that was read as an object."""
        self.show(record)
        return super().add_object(ordinal, record)

    def see(self, record: LosslessRecord) -> None:
        """Take a sound record that columns do not show."""
        self.show(record)

    def show(self, record: LosslessRecord) -> None:
        """Make the line of a record."""
        self.keep(record.offset, record.to_json())

    def keep(self, place: int, shown: Mapping[str, Any]) -> None:
        """Make the line of a record at a place, from its JSON."""
        line = orjson.dumps(shown) + b"\n"
        self.offsets.append(place)
        self.object_lines.append(line)
        self.object_bytes += len(line)

    def watched_of(self, many: Many) -> I64:
        """Return the rows of the sound records that are shown by objects."""
        own = many.own
        assert own.sound is not None  # noqa: S101 (set by ``Run.finish``)
        by_objects = np.zeros(own.sound.size, bool)
        for read in (many, *itertools.chain.from_iterable(own.parts.values())):
            for rows in self._doubtful(read):
                by_objects[rows] = True
        self.plain[many] = np.flatnonzero(own.sound & ~by_objects)
        return own.ordinals[own.sound & by_objects]

    def _doubtful(self, many: Many) -> Iterator[I64]:
        """Yield rows of records that columns do not show, themselves or parts of them."""
        layout = many.layout
        if layout is None:  # integers of a list
            return
        if layout not in self.said:
            self.said[layout] = self.says(layout)
        if self.said[layout]:
            for doubt in doubts(many):
                rows = many.rows_at(np.flatnonzero(doubt))
                # Of those that are shown with their bytes it is known already.
                yield rows[~many.own.raw[rows]]
        else:
            yield many.rows_at(np.arange(many.start.size))

    def says(self, layout: Any) -> bool:
        """Return whether columns say what records or parts of a class show."""
        return is_said(layout)

    def take_run(self, block: Block, run: Run) -> None:
        """Make the lines of a run."""
        del block
        self._fit_blocks(run)
        records = [Plain.of(many, rows, run) for many, rows in self.plain.items() if rows.size]
        ends = self._piece_ends(run)
        if ends is not None:
            self._put_lines_before(int(run.places[0]))
        else:
            for plain in records:
                self.texts.put_records(plain.many, plain.rows, plain.places, plain.sizes)
        for many in self.plain:
            own = many.own
            if not own.all_sound:
                self.put_damaged(run, self.short_rule, own.ordinals[own.short & ~own.odd])
        self.plain.clear()
        for entry, rows in run.stretches:
            self.put_stretches(run, entry, rows[rows < run.count])
        if ends is not None:
            self._put_objects()
            others = self.texts.taken()
            self.pieces.append(in_pieces(self.texts.of_items(), records, others, ends))

    def _fit_blocks(self, run: Run) -> None:
        """Let blocks be shorter if the lines of objects are far longer than the records.

        All lines of a block that objects made are held until it ends.
        """
        nbytes = self.object_bytes
        run_bytes = int(run.places[run.count - 1] - run.places[0]) + 1
        if nbytes > LONGEST_PIECE:
            share = LONGEST_PIECE / nbytes
            self.longest_run = max(LEAST_RUN, int(run.count * share))
            self.block_bytes = max(1, int(run_bytes * share))
        else:
            self.block_bytes = min(BLOCK_BYTES, 2 * self.block_bytes)

    def _piece_ends(self, run: Run) -> I64 | None:
        """Return where pieces of a run's lines end, as places; None if it is one piece.

        A text that a registration declares is written in the lines of all records that refer to
        it: a file of a kilobyte could make a gigabyte of them.
        """
        if not self._has_long_texts():
            return None
        lengths = string_lengths(self.strings)
        nbytes = np.zeros(run.count)
        for many in self.plain:
            for read in (many, *itertools.chain.from_iterable(many.own.parts.values())):
                for codes in read.known.values():
                    if isinstance(codes, Codes):
                        column = codes.column()
                        rows = np.flatnonzero(column >= 0)
                        ordinals = many.own.ordinals[read.rows_at(rows)]
                        of_run = ordinals < run.count
                        referred = lengths[column[rows[of_run]]]
                        nbytes += np.bincount(ordinals[of_run], referred, run.count)
        piece = np.cumsum(nbytes) // LONGEST_PIECE
        if piece[-1] < 2:
            return None
        last_of_pieces = np.flatnonzero(piece[1:] != piece[:-1])
        return np.append(run.places[last_of_pieces + 1], np.iinfo(np.int64).max)

    def _has_long_texts(self) -> bool:
        """Return whether any text so far is long; each is looked at once."""
        seen, self.texts_seen = self.texts_seen, len(self.strings)
        new = self.strings.pool.array("lengths")[seen : self.texts_seen]
        self.longest_text = max(self.longest_text, int(new.max(initial=0)))
        return self.longest_text > LONG

    def _put_lines_before(self, place: int) -> None:
        """Let the lines before a place be a piece of their own."""
        objects = list(zip(self.offsets, self.object_lines, strict=True))
        before = [(offset, line) for offset, line in objects if offset < place]
        behind = [(offset, line) for offset, line in objects if offset >= place]
        self._set_objects(before)
        self.pieces.append(iter([self._joined()]))
        self._set_objects(behind)

    def _set_objects(self, objects: Sequence[tuple[int, bytes]]) -> None:
        """Let places and lines be those of records that were read as objects."""
        self.offsets = [offset for offset, _ in objects]
        self.object_lines = [line for _, line in objects]
        self.object_bytes = sum(map(len, self.object_lines))

    def put_damaged(self, run: Run, number: int, every_row: I64) -> None:
        """Make the lines of damaged stretches."""
        rows = every_row[every_row < run.count]
        code = f',"code":"{self.format.codes}{number:04}"'.encode()
        self.texts.put_raw("damaged", run.places[rows], run.sizes[rows], [code])

    def put_stretches(self, run: Run, entry: int, rows: I64) -> None:
        """Make the lines of stretches that are not records of a known kind, by the entry."""
        offsets = run.places[rows]
        sizes = run.sizes[rows]
        if entry == PADDING:
            self.texts.put_padding(offsets, sizes)
        elif entry == UNKNOWN:
            kinds: Cell = SIGNED, self.frames.kinds_found[rows]
            self.texts.put_raw("unknown", offsets, sizes, [b',"type":', kinds])
        else:
            self.put_damaged(run, REASONS.get(entry, SIZE_RULE), rows)


@attrs.frozen(eq=False)
class Plain:
    """Records of a class that its columns show."""

    many: Many
    rows: I64
    places: I64
    sizes: I64
    parts: dict[Any, Any]
    """The items of their lists, by field."""

    @classmethod
    def of(cls, many: Many, rows: I64, run: Run) -> Plain:
        """Return the records in some rows of a class of a run."""
        ordinals = many.own.ordinals[rows]
        parts = dict(many.own.parts)
        return cls(many, rows, run.places[ordinals], run.sizes[ordinals], parts)


def in_pieces(
    texts: RowTexts, records: Sequence[Plain], others: tuple[I64, list[bytes]], ends: I64
) -> Iterator[bytes]:
    """Yield the lines of a run piece by piece, each up to a place of ``ends``.

    ``others`` are places and lines of what is not among the records.
    """
    other_places, other_lines = others
    for plain in records:
        plain.many.own.parts = plain.parts  # which the run has dropped
    before = np.iinfo(np.int64).min
    for end in ends.tolist():
        for plain in records:
            first, stop = np.searchsorted(plain.places, [before, end]).tolist()
            some = slice(first, stop)
            if first < stop:
                texts.put_records(
                    plain.many, plain.rows[some], plain.places[some], plain.sizes[some]
                )
        first, stop = np.searchsorted(other_places, [before, end]).tolist()
        lines = column_of(texts.templates, other_lines[first:stop])
        texts.put(other_places[first:stop], (COPIED, lines))
        yield texts.joined()[0]
        before = end
    for plain in records:
        plain.many.own.parts = {}  # parts know the rows of their records, which know them


class RowTexts:
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
        self.templates = Templates(b"", b"", b"", source=data.data)
        self.rows: list[tuple[I64, I64, I64]] = []
        """Places of rows, and where they begin and end in what is written."""
        self.made: dict[Field, Numbered] = {}
        """Texts that are made once for each different number, by field."""
        self.lists: dict[Field, RowTexts] = {}
        """What writes the items of lists."""

    def of_items(self) -> RowTexts:
        """Return what writes the items of a list."""
        return type(self)(self.data, self.strings)

    def put(self, places: I64, *cells: Cell) -> None:
        """Write rows of a template, each at its place among all rows."""
        if places.size:
            self.rows.append((places, *self.templates.write(places.size, *cells)))

    def joined(self) -> tuple[bytes, I64]:
        """Return all rows in the order of their places, and the bounds of each; forget them."""
        if not self.rows:
            return b"", np.zeros(1, np.int64)
        if len(self.rows) == 1:
            places, starts, ends = self.rows[0]
        else:
            places, starts, ends = map(np.concatenate, zip(*self.rows, strict=True))
        # Those of one class, and items of a list, are in order as they were written.
        if (places[1:] < places[:-1]).any():
            order = np.argsort(places, kind="stable")
            starts = starts[order]
            ends = ends[order]
        self.rows.clear()
        bounds = np.append(0, np.cumsum(ends - starts))
        letters = self.templates.letters()
        # Rows that follow one another as they were written are copied at once.
        breaks = np.flatnonzero(starts[1:] != ends[:-1])
        if breaks.size * FEW > starts.size:
            joined = TextColumn.gather(letters, starts, ends - starts).data.tobytes()
        else:
            begins = np.append(starts[0], starts[breaks + 1]).tolist()
            stops = np.append(ends[breaks], ends[-1]).tolist()
            pieces = zip(begins, stops, strict=True)
            joined = b"".join([letters.data[begin:stop] for begin, stop in pieces])
        self.templates.forget(MOST_TEXTS)
        return joined, bounds

    def taken(self) -> tuple[I64, list[bytes]]:
        """Return the places of all rows, ascending, and what is written of each; forget them."""
        places = np.concatenate([np.zeros(0, np.int64), *(row[0] for row in self.rows)])
        text, bounds = self.joined()
        limits = bounds.tolist()
        return np.sort(places), [text[a:b] for a, b in itertools.pairwise(limits)]

    def put_padding(self, places: I64, sizes: I64) -> None:
        """Write lines of zero bytes between records."""
        self.put(places, *head_of("padding", self.offsets_of(places), sizes), b"}\n")

    def put_raw(self, record: str, places: I64, sizes: I64, cells: list[Cell]) -> None:
        """Write lines of what only its bytes can show."""
        head = head_of(record, self.offsets_of(places), sizes)
        self.put(places, *head, *cells, *raw_of(places, sizes), b"}\n")

    def put_records(self, many: Many, rows: I64, places: I64, sizes: I64) -> None:
        """Write lines of sound records."""
        shown = self.shows(self, many, rows)
        layout = many.layout
        head = head_of(layout.cls.record, self.offsets_of(places), sizes)
        cells = [*head, *shown.fields(), *shown.refs()]
        is_raw = many.own.raw[rows]
        if layout.word:  # the kind that was found may be that of another byte of the word
            for field, number in zip(layout.family.kinds, layout.kind, strict=False):
                is_raw |= shown.column(field) != number
        self.put(places, *cells, *when(is_raw, raw_of, places, sizes), b"}\n")
        self.templates.forget_columns()

    def put_items(self, field: Listed, many: Many, rows: I64, places: I64) -> None:
        """Write items of a list, each with a comma behind it, at places among all of them."""
        if isinstance(field.item, Float):
            self.put(places, *ShownRows(self, many, rows).real_items(field.item), b",")
            return
        if isinstance(field.item, Integer):
            kind = SIGNED if field.item.signed else NATURAL
            self.put(places, (kind, many.known[field.item][rows]), b",")
            return
        shown = self.shows(self, many, rows)
        first, *cells = [*shown.fields(), *shown.refs(), b"},"]
        assert isinstance(first, bytes)  # noqa: S101 (see ``is_said``)
        self.put(places, b"{" + first.removeprefix(b","), *cells)
        self.templates.forget_columns()


class ShownRows:
    """Some rows of records, or items, of a class, as parts of a template."""

    def __init__(self, texts: RowTexts, many: Many, rows: I64) -> None:
        self.texts = texts
        self.templates = texts.templates
        self.many = many
        self.count = rows.size
        self.every_row = np.ones(rows.size, bool)
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
        return self.column(key) if key in self.many.known else np.full(self.count, otherwise)

    # --- Members --------------------------------------------------------------------------------

    def fields(self) -> list[Cell]:
        """Return all fields, each with its key, and the type of a part."""
        layout = self.many.layout
        members = [when(self.presence(field), self.member, field) for field in layout.shown]
        if layout.shows_type:
            place = layout.keys.index("type") if "type" in layout.keys else 0
            members.insert(place, [b',"type":' + orjson.dumps(layout.cls.record)])
        return list(itertools.chain.from_iterable(members))

    def presence(self, field: Field) -> Mask:
        """Return in which rows a field is shown."""
        if isinstance(field, Spare):
            is_set: Mask = np.any([self.is_set(spare) for spare in chain_of(field)], axis=0)
            return is_set
        return self.mask((field, THERE), otherwise=True)

    def is_set(self, field: Spare) -> Mask:
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
            return [b'"', *(cell for each in chain_of(field) for cell in self.octets(each)), b'"']
        if isinstance(field, Text):
            return self.text(field) if field.entry is None else self.reference(field)
        if isinstance(field, Span):
            return [b'"', *self.octets(field), b'"']
        if isinstance(field, Listed):
            return [b"[", (COPIED, self.items(field)), b"]"]
        if isinstance(field, Choice):
            return self.choice(field)
        if isinstance(field, Number) and field.refers is not None:
            return self.referred(field, self.every_row)
        numbers = self.column(field)
        if isinstance(field, Flag) or (isinstance(field, Number) and field.flag):
            return self.made(field, self.every_row, numbers, bool)
        plain: Cell = SIGNED if field.signed else NATURAL, numbers
        if isinstance(field, Number) and field.values:
            has_name = ~field.membership.missing(numbers)
            names = {wrapped(number): name for number, name in field.values.items()}
            named = when(has_name, self.made, field, has_name, numbers, names.__getitem__)
            return named + when(~has_name, just, plain)
        return [plain]

    # --- Values ---------------------------------------------------------------------------------

    def made(
        self, field: Field, rows: Mask, numbers: I64, value_of: Callable[[int], Any]
    ) -> list[Cell]:
        """Return the values that numbers of some rows mean, made once for each number."""
        texts = self.texts.made.get(field)
        if texts is None:
            texts = Numbered(
                self.templates,
                lambda number: value_text(field, value_of(number)).decode(),
                sparse=True,
            )
            self.texts.made[field] = texts
        text_numbers = np.zeros(self.count, np.int64)
        text_numbers[rows] = texts(numbers[rows])[1]
        return [(TEXT, text_numbers)]

    def real(self, field: Float, number_of: Callable[[int], float] | None = None) -> list[Cell]:
        """Return doubles, and those that JSON cannot hold by name."""
        own_bits = self.column(field)
        bits = own_bits
        if field.nbytes == 4:
            with np.errstate(invalid="ignore"):  # signalling NaN
                wide = own_bits.astype(np.uint32).view(np.float32).astype(np.float64)
            bits = wide.view(np.int64)
        # NaN are made of their own bits, which conversions to doubles change.
        is_special = bits & EXPONENT == EXPONENT
        usual = when(~is_special, just, (REAL, bits))
        number_of = number_of or field.number_of
        return usual + when(is_special, self.made, field, is_special, own_bits, number_of)

    def real_items(self, item: Float) -> list[Cell]:
        """Return doubles of a list, which has no place for the bits of a NaN."""
        return self.real(item, lambda bits: float(item.number_of(bits)))

    def octets(self, field: Span) -> list[Cell]:
        """Return bytes in hex."""
        lengths = field.own if isinstance(field, Spare) else self.column((field, LENGTH))
        return stretch(STRETCH_HEX, self.column((field, START)), lengths)

    def text(self, field: Text) -> list[Cell]:
        """Return texts of the file."""
        starts = self.column((field, START))
        lengths = self.column((field, LENGTH))
        is_strange = self.mask((field, STRANGE), otherwise=False)
        usual = when(~is_strange, stretch, STRETCH, starts, lengths)
        return usual + when(is_strange, self.strange, field, is_strange)

    def strange(self, field: Text, rows: Mask) -> list[Cell]:
        """Return texts that are not UTF-8, with their bytes beside them."""
        starts = self.column((field, START))
        lengths = self.column((field, LENGTH))
        places = zip(starts[rows].tolist(), (starts + lengths)[rows].tolist(), strict=True)
        data = self.texts.data.data
        texts = [orjson.dumps(str(data[start:end], "utf-8", "replace")) for start, end in places]
        numbers = np.zeros(self.count, np.int64)
        numbers[rows] = self.templates.texts(texts)
        beside = b"," + orjson.dumps(f"{field.key}_bytes_hex") + b':"'
        return [(TEXT, numbers), beside, *stretch(STRETCH_HEX, starts, lengths), b'"']

    def reference(self, field: Text) -> list[Cell]:
        """Return texts that are in the records, empty, or in a table."""
        is_inline, is_empty = self.reference_kinds(field)
        in_table = ~(is_inline | is_empty)
        return [
            *when(is_inline, self.text, field),
            *when(is_empty, just, b'""'),
            *when(in_table, self.referred, field, in_table),
        ]

    def reference_kinds(self, field: Text) -> tuple[Mask, Mask]:
        """Return in which rows a text is in the record, and where it is empty."""
        indexes = self.indexes(field)
        is_inline = indexes & field.inline != 0
        has = has_field(self.many, field)
        # In rows that have another value, the number may be anything.
        is_inline &= has if has.ndim == 0 else has[self.selected]
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
        return SIGNED if is_signed else NATURAL, self.indexes(field)

    def referred(self, field: Any, rows: Mask) -> list[Cell]:
        """Return texts of a table, which some rows have; numbers of those that it has not."""
        strings = self.texts.strings
        codes = self.column((field, CODE))
        is_known = codes >= 0
        known = rows & is_known
        table: Any = field.refers if isinstance(field, Number) else field.entry.table
        begin = orjson.dumps(table.unknown(0).removesuffix("0>"))[:-1]
        return [
            *when(known, self.made, field, known, codes, lambda code: text_of(strings, code)),
            *when(rows & ~is_known, just, begin, self.reference_number(field), b'>"'),
        ]

    def choice(self, field: Choice) -> list[Cell]:
        """Return values, each of the kind that its row says."""
        cells: list[Cell] = []
        for variant, rows in variants(field, self.column(field.tag)):
            value = (just, b"null") if variant is None else (self.value, variant)
            cells += when(rows, *value)
        return cells

    def items(self, field: Listed) -> I64:
        """Return numbers of texts of the items of each row, one after another."""
        texts = self.texts.lists.get(field)
        if texts is None:
            texts = self.texts.lists[field] = self.texts.of_items()
        # Of which of these rows an item is, by the row of the whole group; -1 for others.
        own_rows = np.full(self.many.start.size, -1)
        own_rows[self.selected] = np.arange(self.count)
        groups: list[tuple[Many, I64, I64]] = []
        counts = np.zeros(self.count + 1, np.int64)
        for items in self.many.own.parts.get(field, ()):
            owners = owners_of(items, self.many)
            if owners is not None:
                shown_items = np.flatnonzero(own_rows[owners] >= 0)
                shown_owners = own_rows[owners[shown_items]]
                groups.append((items, shown_items, shown_owners))
                counts[1:] += np.bincount(shown_owners, minlength=self.count)
        # The items of row 2 are those from bounds[2] up to bounds[3] of all items.
        bounds = np.cumsum(counts)
        for items, shown_items, shown_owners in groups:
            assert items.index is not None  # noqa: S101 (they are items)
            places = bounds[shown_owners] + items.index[shown_items]
            texts.put_items(field, items, shown_items, places)
        data, item_bounds = texts.joined()
        starts = item_bounds[bounds[:-1]]
        ends = item_bounds[bounds[1:]]
        ends_without_comma = ends - (ends > starts)
        text_bounds = np.stack([starts, ends_without_comma], axis=1).reshape(-1)
        return self.templates.column(np.frombuffer(data, np.uint8), text_bounds)[::2]

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

    def referring(self) -> Iterator[tuple[Any, Mask]]:
        """Yield the fields that refer to tables, with the rows that do so by number."""
        for field in self.many.layout.referring:
            kinds = field.fields if isinstance(field, Choice) else [field]
            if not any(map(refers_by_number, kinds)):
                continue
            there = self.mask((field, THERE), otherwise=True)
            pairs: list[tuple[Any, Mask]] = [(field, there)]
            if isinstance(field, Choice):
                pairs = list(variants(field, self.column(field.tag)))
            for variant, rows in pairs:
                referring_rows = rows & there
                if variant is None or not refers_by_number(variant) or not referring_rows.any():
                    continue
                yield variant, referring_rows & self.by_number(variant)

    def by_number(self, field: Any) -> Mask:
        """Return in which rows a reference that is there is a number."""
        if not isinstance(field, Text):
            return self.every_row
        is_inline, is_empty = self.reference_kinds(field)
        return ~(is_inline | is_empty)


# --- Parts of templates ---------------------------------------------------------------------------


def when(rows: Mask, make: Callable[..., list[Cell]], *arguments: Any) -> list[Cell]:
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
    shown: dict[str, Any] = {}
    field.show(value, shown)
    return orjson.dumps(shown)[len(orjson.dumps(field.key)) + 2 : -1]


def text_of(strings: StringPool, code: int) -> str:
    """Return the text of a code, which may not be UTF-8."""
    return strings.bytes_of(code).decode(errors="surrogateescape")


# --- Fields and rows ------------------------------------------------------------------------------


def index_of(field: Any) -> Any:
    """Return the number of a reference, an expression."""
    return field if isinstance(field, Number) else field.index


def refers_by_number(field: Field) -> bool:
    """Return whether sound records may have a number for a text of another record."""
    # Numbers of a closed table, in which nothing is declared, are damage.
    is_closed = isinstance(field, Text) and field.entry is not None and field.entry.table.closed
    return is_reference(field) and not is_closed


def variants(field: Choice, tags: I64) -> Iterator[tuple[Any, Mask]]:
    """Yield the fields of a choice, with the rows whose tags say that they have its value."""
    of_other_kinds = np.ones(tags.size, bool)
    for number, variant in field.kinds.items():
        of_kind = tags == wrapped(int(number))
        of_other_kinds &= ~of_kind
        yield variant, of_kind
    yield field.other, of_other_kinds


def chain_of(field: Spare) -> list[Spare]:
    """Return spare bytes with those that are shown before them, in the order of the file."""
    before = [] if field.after is None else chain_of(field.after)
    return [*before, field]


def owners_of(items: Many, many: Many) -> I64 | None:
    """Return the row of each item's record or part; None if these are others."""
    # Columns of some rows know those that the rows are of, step by step: an item of a list that
    # is there in rows 4 and 7, whose own row is 1 of these, is of row 7.
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
    # A name that several numbers have is written as the first of them.
    names = field.values if isinstance(field, Number) else {}
    return len(set(names.values())) == len(names)


def has_field(many: Many, field: Any) -> Any:
    """Return which rows have a field, perhaps as their value of a choice."""
    choice = many.layout.choice_of.get(field)
    if choice is None:
        there: Any = many.known.get((field, THERE), np.bool_(True))
        return there
    tags = many.known[choice.tag]
    numbers = [wrapped(int(number)) for number, each in choice.kinds.items() if each is field]
    has = is_any_of(tags, numbers)
    if choice.other is field:
        has |= ~is_any_of(tags, [wrapped(int(number)) for number in choice.kinds])
    return has


def is_any_of(column: I64, numbers: list[int]) -> Mask:
    """Return which rows of a column have one of a few numbers."""
    is_one = np.zeros(column.size, bool)
    for number in numbers:
        is_one |= column == number
    return is_one


def doubts(many: Many) -> Iterator[Mask]:
    """Yield masks of rows whose fields may give other bytes, which their objects know.

    Numbers that are not shown are written as the other fields imply them. A number that nothing
    implies in its row is written as 0: the length of a text, where there is no text.
    """
    layout = many.layout
    known = many.known
    for number, implied in layout.implied.items():
        is_doubtful = known[number] != 0
        for how, field, absent, present in implied:
            if how == "present":
                there = known.get((field, THERE), True)
                yield known[number] != np.where(there, present, absent)
                is_doubtful = np.zeros(many.start.size, bool)
            elif is_doubtful.any():
                is_doubtful &= ~has_field(many, field)
        yield is_doubtful
    for field in (*layout.fields, *layout.choice_of):
        if not isinstance(field, Text) or (field, CODE) not in known:
            continue
        index = index_of(field)
        indexes = many.full(index.column(many))
        masks = [
            known[leaf] != indexes
            for leaf in index.leaves()
            if isinstance(leaf, Number) and leaf is not index
        ]
        if field.inline and field.empty == 0:
            masks.append(indexes == field.inline)  # an empty text is written as 0
        for is_doubtful in masks:
            # Other kinds of a choice use the number otherwise.
            if is_doubtful.any():
                yield is_doubtful & has_field(many, field)
