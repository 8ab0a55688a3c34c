"""Many: the fields of many records of one layout, read together; ``cursor`` does it for one.

Each field gets the places of its bytes from ``Many`` (``take``, ``stretch``), and puts its values
into ``known`` as a column. Numbers are columns of int64, of 64 bits that wrap as those of
expressions do. A record that a field does not fit into is *short*: it becomes a damaged stretch.
One that columns cannot hold is *odd*: it is read again as an object. Both go on to be read like
others, at places that are safe, and what comes of it is left out at the end
(``ClassRows.settle``): so no field has to ask which records are still sound.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import attrs
import numpy as np
from numpy.typing import NDArray

from fxframework.io import arena
from fxframework.kernels import stretches
from fxframework.kernels.arrays import I64, Bools
from fxframework.kernels.sorting import begins_of_runs
from fxframework.model.strings import TextColumn
from fxframework.wire.cursor import AT, SIZE
from fxframework.wire.expressions import Expression, Register, wrapped
from fxframework.wire.findings import Findings, Noted
from fxframework.wire.known import CODE, THERE, Codes, Known, as_mask, gaps_to, with_sign
from fxframework.wire.rules import NOT_DECLARED, RESERVED

PIECES = {3: (2, 1), 5: (4, 1), 6: (4, 2), 7: (4, 2, 1)}
"""Integers of odd sizes, as integers of even ones that follow one another."""
SHIFTS = {1: 0, 2: 1, 4: 2, 8: 3}
"""What divides a place by the size of an integer: a division takes three times as long."""


class FileNumbers:
    """A file as numbers at any of its bytes. ``data`` is uint8, contiguous.

    Columns that are made of them lie in memory that is kept from one block to the next.
    """

    def __init__(self, data: NDArray[np.uint8]) -> None:
        arena.keep_small()
        self.data = data
        self.is_aligned = data.ctypes.data % 8 == 0
        self.views: dict[str, NDArray[Any]] = {}

    def view(self, kind: str) -> NDArray[Any]:
        """Return the file as overlapping numbers: element i begins at byte i."""
        view = self.views.get(kind)
        if view is None:
            count = self.data.size - np.dtype(kind).itemsize + 1
            view = np.zeros(0, kind)
            if count > 0:
                view = np.ndarray((count,), kind, self.data, 0, (1,))
            self.views[kind] = view
        return view

    def aligned_view(self, kind: str) -> NDArray[Any] | None:
        """Return the file as numbers one behind the other; None if they are not aligned."""
        if not self.is_aligned:
            return None
        nbytes = np.dtype(kind).itemsize
        return self.data[: self.data.size // nbytes * nbytes].view(kind)

    def integers(self, places: I64, nbytes: int, *, big: bool, signed: bool = False) -> I64:
        """Return the integers of 1 to 8 bytes at some places, all of which must be in the file."""
        if nbytes in PIECES:
            return self._of_odd_size(places, nbytes, big=big, signed=signed)
        kind = kind_of(nbytes, big=big, signed=signed)
        view = self.view(kind)
        if not view.size:  # a file shorter than the number, which no record has then
            return np.zeros(places.size, np.int64)
        # No place has a bit below the size set: all are multiples of it.
        if not np.bitwise_or.reduce(places) & nbytes - 1:
            aligned = self.aligned_view(kind)
            if aligned is not None:  # a fourth of the time
                return aligned.take(places >> SHIFTS[nbytes]).astype(np.int64, copy=False)
        # Never ``view.take``: it copies the view, which is eight times the file.
        return view[places].astype(np.int64, copy=False)

    def listed(
        self, begins: I64, counts: NDArray[Any], nbytes: int, *, big: bool, signed: bool = False
    ) -> NDArray[Any]:
        """Return the integers of lists that begin at some bytes, one list after the other.

        They have ``nbytes``, 1, 2, 4 or 8, each. Raises IndexError for a list outside of the file.
        """
        octets = TextColumn.gather(self.data, begins, nbytes * counts).data
        return octets.view(kind_of(nbytes, big=big, signed=signed))

    def of_records(
        self, layout: Any, names: Sequence[str], places: I64, *, big: bool, mirrored: bool = False
    ) -> list[I64]:
        """Return numbers of records of one class that begin at some places, by their fields' names.

        Each field has its place, which is the same in every record, and lies in the file.
        ``packing.put_numbers`` is the inverse.
        """
        words: dict[int, I64] = {}
        columns = []
        for name in names:
            field = layout.by_name[name]
            place = layout.places[field]
            if place.nbits:  # some bits of a word, of which others may be asked for, too
                if place.offset not in words:
                    word_places = places + place.offset
                    words[place.offset] = self.integers(word_places, place.nbytes, big=big)
                columns.append(words[place.offset] >> place.shift_in(mirrored) & place.mask)
            else:
                is_signed = field.signed
                number_places = places + place.offset
                columns.append(
                    self.integers(number_places, place.nbytes, big=big, signed=is_signed)
                )
        return columns

    def _of_odd_size(self, places: I64, nbytes: int, *, big: bool, signed: bool) -> I64:
        numbers = np.zeros(places.size, np.int64)
        bytes_read = 0
        for piece_bytes in PIECES[nbytes]:
            pieces = self.integers(places + bytes_read, piece_bytes, big=big)
            # Of 3 bytes the first 2 are the lower bits, or in big-endian order the upper ones.
            bytes_below = bytes_read
            if big:
                bytes_below = nbytes - bytes_read - piece_bytes
            numbers |= pieces << 8 * bytes_below
            bytes_read += piece_bytes
        if signed:
            numbers = with_sign(numbers, 8 * nbytes)
        return numbers


def as_index(where: NDArray[Any]) -> I64:
    """Return a mask as an index, and an index as it is."""
    if where.dtype == bool:
        return np.flatnonzero(where)
    return where


def kind_of(nbytes: int, *, big: bool, signed: bool) -> str:
    """Return the type of an integer as numpy names it; 8 bytes have a sign, as columns do."""
    order = ">" if big else "<"
    letter = "i" if signed or nbytes == 8 else "u"
    return f"{order}{letter}{nbytes}"


@attrs.define(eq=False)
class ClassRows:
    """The records of one class in a run, or those of one byte order: which count, which do not."""

    ordinals: I64
    """Their rows in the run, in order."""
    short: Bools
    """Those into which a field does not fit."""
    odd: Bools
    """Those that columns cannot hold."""
    raw: Bools
    """Those whose fields alone would give other bytes."""
    lists: dict[Any, list[Many]] = attrs.field(factory=dict)
    """Of lists that rows are made of, the items, in groups that were read together."""
    parts: dict[Any, list[Many]] = attrs.field(factory=dict)
    """Of all lists, if ``Reading.for_lines``, the items by class, likewise."""
    needed: I64 | None = None
    """The byte that the first field which does not fit goes up to, of those that are short."""
    failed_at: I64 | None = None
    """The place of that field."""
    sound: Bools = attrs.field(init=False)
    """Which of them count; set by ``settle``, once all is read."""
    all_sound: bool = False

    def settle(self, end: int) -> int:
        """Say which of them count: those before row ``end`` that are neither short nor odd.

        Return how many do.
        """
        self.sound = ~(self.short | self.odd)
        if self.ordinals.size and self.ordinals[-1] >= end:
            self.sound &= self.ordinals < end
        sound_count = int(np.count_nonzero(self.sound))
        self.all_sound = sound_count == self.ordinals.size
        return sound_count

    def tell_needed(self, rows: I64, places: I64, needed: I64) -> None:
        """Take in fields at some places that do not fit, and the bytes that they go up to.

        Fields are not always read in the order of their places: of a record, the first counts.
        """
        if self.needed is None or self.failed_at is None:
            self.needed = np.zeros(self.ordinals.size, np.int64)
            self.failed_at = np.full(self.ordinals.size, np.iinfo(np.int64).max)
        # A record may come several times, as the items of its lists do: its first place counts.
        order = np.lexsort((places, rows))
        sorted_rows = rows[order]
        is_first_of_row = begins_of_runs(sorted_rows)
        first = order[is_first_of_row]
        earliest = first[places[first] < self.failed_at[rows[first]]]
        self.failed_at[rows[earliest]] = places[earliest]
        self.needed[rows[earliest]] = needed[earliest]

    @classmethod
    def of(cls, ordinals: I64) -> ClassRows:
        """Return records none of which is short or odd yet."""
        short, odd, raw = np.zeros((3, ordinals.size), bool)
        return cls(ordinals, short, odd, raw)


@attrs.define(eq=False)
class Entered:
    """Texts that get codes: of ``own`` rows of a class, at places of the file."""

    own: ClassRows
    rows: I64
    starts: I64
    lengths: I64
    codes: NDArray[np.int32]
    """Where the codes are put."""
    table: Any = None
    """The table of texts that they are declared in, under ``numbers``; None for none."""
    numbers: I64 | None = None


@attrs.define(eq=False)
class Reference:
    """Numbers that refer to texts of a table."""

    own: ClassRows
    rows: Any
    """An index of ``own``, or a slice of all of them."""
    table: Any
    numbers: I64
    codes: NDArray[np.int32]
    unsigned: bool
    """Whether numbers below 0 are those from 2^63 on."""
    note: Callable[..., None]
    """Reports numbers that nothing declared, given where they are, or by another rule."""

    @property
    def ordinals(self) -> I64:
        """The rows of the run that have the numbers."""
        return self.own.ordinals[self.rows]  # type: ignore[no-any-return]

    def shown(self, number: int) -> str:
        """Return what is shown in place of the text of a number that nothing declared."""
        if self.unsigned:
            number %= 1 << 64
        return self.table.unknown(number)  # type: ignore[no-any-return]


class Moment(NamedTuple):
    """How far records are read, which gives the order of their findings (``findings.in_order``)."""

    top: int
    """The number of the field of the record."""
    step: int
    """How many fields were read."""
    places: I64


class Reading:
    """What reading a run of records needs and collects."""

    def __init__(
        self,
        numbers: FileNumbers,
        registers: dict[Any, Any],
        *,
        mirrored: bool,
        for_lines: bool = False,
    ) -> None:
        self.numbers = numbers
        self.data = numbers.data
        self.registers = registers
        """The value of each register before each record: a column, or one number for all."""
        self.mirrored = mirrored
        self.for_lines = for_lines
        """Whether all items of lists are kept, by class."""
        self.gives_codes = not for_lines
        """Whether inline texts get codes."""
        self.notes: list[Noted] = []
        self.entered: list[Entered] = []
        self.references: list[Reference] = []
        self.without: frozenset[Any] = frozenset()
        """Fields that are not read: those at the ends of records and parts, and checks."""
        self.step = 0
        """Counts the fields, so that findings of a record keep the order of its fields."""
        self.findings: Findings | None = None
        """The findings before the run; None where all that are made are listed."""

    def lists(self, number: int) -> bool:
        """Return whether findings by a rule are still listed, and not only counted."""
        return self.findings is None or self.findings.left_of(number) > 0

    def forget(self) -> None:
        """Drop all that was collected."""
        self.notes.clear()
        self.entered.clear()
        self.references.clear()


class Many:
    """Reads the fields of many records, or parts, each from ``start`` to ``limit``.

    ``known`` has the columns of fields read so far. ``rows`` says which rows of ``own`` they are,
    None for all of them in order; for parts, ``index`` is the number of each within its record.
    Three kinds of rows meet here: those of this object, those of its class (``own``), and those of
    the run (``ordinals``). Example: a class has the records 2, 5 and 9 of a run, and a field is
    read of the last two of them. ``rows`` then are 1 and 2, ``rows_at([0])`` is 1, and ``ordinals``
    are 5 and 9.
    """

    def __init__(
        self,
        reading: Reading,
        layout: Any,
        own: ClassRows,
        start: I64,
        limit: I64,
        *,
        rows: I64 | None = None,
        big: bool,
    ) -> None:
        self.reading = reading
        self.layout = layout
        self.own = own
        self.start = start
        self.around: tuple[Many, I64] | None = None
        """Of parts, the records around them, and which one is around each."""
        self.base = start
        self.limit = limit
        self.rows = rows
        self.big = big
        self.plus = 0
        """The next field of each is at ``base + plus``."""
        self.assured = 0
        """Bytes that all of them are known to have from there on."""
        self.losing = own.short
        """Where records are marked that a field does not fit into."""
        self.known = Known()
        self.top = -1
        """The number of the field of the record; for parts, that of their list."""
        self.index: I64 | None = None
        self.is_sized = False
        """Whether the limits are the ends of parts, which were found to fit."""
        self.saturated: list[int] = []
        """Rows of which a number did not fit 64 bits."""

    @functools.cached_property
    def origin(self) -> I64:
        """The start of the record, also for parts: where findings are by default."""
        if self.around is None:
            return self.start
        records, index = self.around
        return records.origin[index]

    # --- Rows -----------------------------------------------------------------------------------

    @property
    def ordinals(self) -> I64:
        """The rows in the run."""
        if self.rows is None:
            return self.own.ordinals
        return self.own.ordinals[self.rows]

    def rows_at(self, index: I64) -> I64:
        """Return the rows of ``own`` for an index of these."""
        if self.rows is None:
            return index
        return self.rows[index]

    def some(self, index: I64) -> Many:
        """Return some of the rows, to be read on their own; ``put_back`` brings them together."""
        chosen = Many(
            self.reading, self.layout, self.own, self.start[index], self.limit[index],
            rows=self.rows_at(index), big=self.big,
        )  # fmt: skip
        if self.around is not None:  # parts, whose records begin elsewhere
            chosen.around = self, index
        chosen.base = self.at()[index]
        chosen.losing = self.losing
        chosen.top = self.top
        if self.index is not None:
            chosen.index = self.index[index]
        chosen.is_sized = self.is_sized
        chosen.known.borrow(self.known, index)
        return chosen

    def put_back(self, chosen: Many, index: I64) -> None:
        """Take over what was read of some rows, and go on behind it; what others have not is 0."""
        self.take_columns(chosen, index)
        places = self.at().copy()
        places[index] = chosen.at()
        self.go_to(places)

    def take_columns(self, chosen: Many, index: I64) -> None:
        """Take over the columns of some rows; what others have not is 0."""
        count = self.start.size
        for key, column in chosen.known.items():
            if isinstance(column, Codes):
                if key not in self.known:
                    self.known[key] = Codes(count)
                self.known[key].add(index, column)
                continue
            old_column = self.known.get(key)
            # A copy: others may hold the old column, which says what was known before.
            if isinstance(old_column, np.ndarray):
                new_column = old_column.copy()
            else:
                new_column = np.full(count, old_column or 0, np.asarray(column).dtype)
            new_column[index] = column
            self.known[key] = new_column

    def items(self, layout: Any, start: I64, limit: I64, records: I64, index: I64) -> Many:
        """Return parts, the ``index``-th of these records each."""
        parts = Many(
            self.reading, layout, self.own, start, limit, rows=self.rows_at(records), big=self.big
        )
        parts.around = self, records
        parts.losing = self.losing
        parts.top = self.top
        parts.index = index
        parts.known.borrow(self.known, records)
        return parts

    def items_of(self, field: Any) -> list[Many]:
        """Return the groups of the items of a list without parts, to add one to them."""
        items_by_list = self.own.parts if self.reading.for_lines else self.own.lists
        return items_by_list.setdefault(field, [])

    # --- Places ---------------------------------------------------------------------------------

    def at(self) -> I64:
        """Return the place of the next field of each."""
        if self.plus:
            self.base = self.base + self.plus
            self.plus = 0
        return self.base

    def go_to(self, places: I64) -> None:
        """Go on at these places."""
        self.base = places
        self.plus = 0
        self.assured = 0

    def take(self, nbytes: int) -> I64:
        """Return the places of the next bytes, and go behind them; those without are short."""
        places = self.at()
        if nbytes <= self.assured:
            self.assured -= nbytes
            self.plus = nbytes
            return places
        fits = self.limit - places >= nbytes
        if fits.all():
            self.go_to(places)
            self.plus = nbytes
            return places
        self.lose(~fits, places + nbytes)
        self.go_to(np.where(fits, places + nbytes, places))
        # Short records read what is at byte 0, which is there: the result is not used.
        return np.where(fits, places, 0)

    def integer(self, nbytes: int, *, signed: bool = False) -> I64:
        """Return the next integers."""
        return self.load(self.take(nbytes), nbytes, signed=signed)

    def load(self, places: I64, nbytes: int, *, signed: bool = False) -> I64:
        """Return the integers at places that ``take`` returned."""
        numbers = self.reading.numbers
        return numbers.integers(places, nbytes, big=self.big, signed=signed)

    def stretch(self, length: Any) -> tuple[I64, I64]:
        """Return places and lengths of the next bytes, and go behind them."""
        start = self.at()
        lengths = self.full(length)
        fits = (lengths >= 0) & (lengths <= self.limit - start)
        if not fits.all():
            self.lose(~fits, start + lengths)
            lengths = np.where(fits, lengths, 0)
        self.go_to(start + lengths)
        return start, lengths

    def pad_to(self, end: I64) -> None:
        """Go to these places, where they are farther; report bytes that are not zero."""
        fields_end = self.at()
        if fields_end is end:
            return
        gap = np.maximum(end - fields_end, 0)
        if self.reading.without or not gap.any():  # the bytes are those of fields
            self.go_to(fields_end + gap)
            return
        self.check_end(fields_end, gap)
        self._pad(gap, None)

    def check_end(self, fields_end: I64, gap: I64) -> None:
        """Mark records that have more padding behind their fields than their unit asks for."""
        layout = self.layout
        if not layout.fixed and not layout.family.power:
            needed_gap = (self.start - fields_end - layout.tail) % layout.align
            self.keep_raw((gap > 0) & (gap != needed_gap))

    def align(self, unit: int, field: Any = None) -> None:
        """Go to the next multiple of ``unit`` from the start of the record; check the bytes."""
        if unit > 1:
            start = self.at()
            gap = gaps_to(unit, self.start - start)
            room = self.limit - start
            self.keep_raw(gap > room)
            self._pad(np.maximum(np.minimum(gap, room), 0), field)

    def _pad(self, gap: I64, field: Any) -> None:
        """Go over so many bytes; report those that are not zero."""
        start = self.at()
        stray = stretches.with_bits(self.reading.data, start, gap)
        self.go_to(start + gap)
        if stray.any():
            self.note(RESERVED, np.flatnonzero(stray), 0, start, field)

    # --- What is not sound ----------------------------------------------------------------------

    def lose(self, where: Any, needed: Any = 0) -> None:
        """Mark records into which the next field does not fit.

        It goes up to byte ``needed``, a column or 0 if that is not known.
        """
        index = np.flatnonzero(as_mask(where, self.start.size))
        if not index.size:
            return
        rows = self.rows_at(index)
        self.losing[rows] = True
        if self.losing is self.own.short:
            self.own.tell_needed(rows, self.at()[index], self.full(needed)[index])

    def hand_over(self, where: Any) -> None:
        """Mark records that are read as objects."""
        self.own.odd[self.rows_at(np.flatnonzero(as_mask(where, self.start.size)))] = True

    def keep_raw(self, where: Any) -> None:
        """Mark records, by a mask or an index, whose fields alone would give other bytes."""
        index = as_index(where)
        if index.size:
            self.own.raw[self.rows_at(index)] = True

    def note(
        self,
        number: Any,
        where: Any,
        values: Any,
        offsets: Any = None,
        field: Any = None,
        moment: Moment | None = None,
    ) -> None:
        """Report a finding by the number of its rule, where a mask or an index says so.

        As for one record (``Cursor.note``), a rule of the field's own, or else of the family's,
        takes the place of another, at the start of the record or the part. ``moment`` is when the
        finding was made, if that is not now.
        """
        if number == RESERVED:
            self.keep_raw(np.asarray(where))
        rules = self.layout.family.rules
        if field is not None and field.rules:
            rules = field.rules
        if number in rules:
            number = rules[number]
            offsets = self.start
        if int(number):
            if offsets is None:
                offsets = self.origin
            self.report(number, where, values, offsets, moment)

    def now(self) -> Moment:
        """Return how far the records are read."""
        return Moment(self.top, self.reading.step, self.at())

    def report(
        self, number: Any, where: Any, values: Any, offsets: I64, moment: Moment | None = None
    ) -> None:
        """Report a finding by just this rule."""
        index = as_index(np.asarray(where))
        if not index.size:
            return
        moment = moment or self.now()
        # Of millions only the first ones are listed: of others it is enough how many there are.
        nothing = np.broadcast_to(np.int64(0), index.size)
        note = Noted(
            number=int(number),
            own=self.own,
            rows=self.rows_at(index),
            offsets=nothing,
            values=nothing,
            top=moment.top,
            places=nothing,
            items=nothing,
            step=moment.step,
        )
        if self.reading.lists(note.number):
            note.offsets = offsets[index]
            note.values = self.full(values)[index]
            note.places = moment.places[index]
            note.items = np.full(index.size, -1) if self.index is None else self.index[index]
        self.reading.notes.append(note)

    # --- Expressions ----------------------------------------------------------------------------

    def column_of(self, leaf: Expression) -> Any:
        """Return the values of a field or of a register: a column, or one number for all."""
        if isinstance(leaf, Register) and leaf is not AT and leaf is not SIZE:
            value = self.reading.registers.get(leaf, leaf.initial)
            if isinstance(value, np.ndarray):
                return value[self.ordinals]
            return value
        return self.known[leaf]

    def full(self, value: Any) -> I64:
        """Return a value of an expression as a column."""
        if isinstance(value, np.ndarray):
            return value.astype(np.int64, copy=False)
        return np.full(self.start.size, wrapped(int(value)), np.int64)

    def fails(self, condition: Expression) -> Bools:
        """Return where a condition does not hold."""
        return ~as_mask(condition.column(self), self.start.size)

    def checksums(self, of: Callable[[Any], int], ends: I64) -> I64:
        """Return the checksums of the bytes of each from its start to ``ends``."""
        data = self.reading.data.data
        pairs = zip(self.start.tolist(), ends.tolist(), strict=True)
        return np.array([wrapped(of(data[start:end])) for start, end in pairs], np.int64)

    # --- Bytes ----------------------------------------------------------------------------------

    def trimmed(self, starts: I64, lengths: I64, byte: int) -> I64:
        """Return the lengths of stretches without the bytes at their ends that are ``byte``."""
        return stretches.trimmed(self.reading.data, starts, lengths, byte)

    def found(self, starts: I64, lengths: I64, byte: int) -> I64:
        """Return the place of the first ``byte`` in each stretch; -1 if it has none."""
        return stretches.found(self.reading.data, starts, lengths, byte)

    def not_utf8(self, starts: I64, lengths: I64) -> I64:
        """Return the rows, an index, whose stretches are not UTF-8."""
        return np.flatnonzero(stretches.not_utf8(self.reading.data, starts, lengths))

    # --- Texts ----------------------------------------------------------------------------------

    def enter(
        self, starts: I64, lengths: I64, table: Any = None, numbers: I64 | None = None
    ) -> NDArray[np.int32]:
        """Return the codes of texts, which are there once all records of the run are read.

        They are declared in a table under ``numbers``, if one is given.
        """
        codes = np.full(starts.size, -1, np.int32)
        if table is None and not self.reading.gives_codes:
            return codes
        rows = np.arange(starts.size) if self.rows is None else self.rows
        self.reading.entered.append(Entered(self.own, rows, starts, lengths, codes, table, numbers))
        return codes

    def refer(
        self, field: Any, table: Any, numbers: I64, index: I64 | None = None, *, unsigned: bool
    ) -> None:
        """Look up the texts of numbers, of all rows or of an index of them, under ``CODE``."""
        rows: Any = slice(None) if index is None else index
        referring = numbers[rows]
        if not referring.size:
            return
        moment = self.now()
        ruled_field = field if field.index is not None else None

        # Texts are only looked up once all registrations of the run are known; a finding then says
        # how far the records are read now.
        def note(unknown: Bools, number: int = NOT_DECLARED) -> None:
            missing = np.flatnonzero(unknown)
            if index is not None:
                missing = index[missing]
            self.note(number, missing, numbers, None, ruled_field, moment)

        codes = np.full(referring.size, -1, np.int32)
        if (field, CODE) not in self.known:
            self.known[field, CODE] = Codes(numbers.size)
        self.known[field, CODE].add(rows, codes)
        own_rows = rows if self.rows is None else self.rows[rows]
        self.reading.references.append(
            Reference(self.own, own_rows, table, referring, codes, unsigned, note)
        )

    # --- Fields ---------------------------------------------------------------------------------

    def read_fields(self, fields: Iterable[Any]) -> None:
        """Read fields one after another, each of all rows."""
        for field in fields:
            self.read_field(field)

    def read_field(self, field: Any) -> None:
        """Read a field, where its condition holds."""
        if field in self.reading.without:
            return
        self.reading.step += 1
        if field.uses_place:
            self.known[AT] = self.at() - self.start
        if field.when is None:
            field.read_many(self)
            return
        holds = as_mask(field.when.column(self), self.start.size)
        self.known[field, THERE] = holds
        self.known[field] = 0
        if holds.all():
            field.read_many(self)
        elif holds.any():
            with_field = np.flatnonzero(holds)
            chosen = self.some(with_field)
            field.read_many(chosen)
            self.put_back(chosen, with_field)
