"""Blocks: where those of a VMO lie, their fields as columns, and what is wrong with each by itself.

``fxframework.wire.framing`` finds the blocks, thousands at a time, and ``format`` declares their
fields. What is special about a VMO is here: two units of zeros or more are padding, a block
past the end leaves nothing behind it, and after other damage reading goes on where blocks follow.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_inspect import format as wire
from fx_inspect import rules
from fx_inspect.format import TYPES
from fx_inspect.read.records import STATE
from fxframework.errors import Rule
from fxframework.io.limits import Limits
from fxframework.io.words import WORD, to_i64
from fxframework.kernels.arrays import I64, U8
from fxframework.kernels.buffers import grown
from fxframework.wire.families import Place
from fxframework.wire.findings import FIELDS, Findings, findings_of
from fxframework.wire.framing import frames_of_records
from fxframework.wire.many import FileNumbers

FOLLOWING: Final = 32
"""Blocks that follow one another where reading goes on after damage; fewer at the end."""
MAGIC_NUMBER: Final = Place(WORD // 2, WORD // 2, 0, (1 << 32) - 1)
LARGEST_UNITS: Final = 1 << wire.LARGEST_ORDER
"""Units of the largest block that a header can claim: only one nearer to the end is cut off."""
ROOM: Final = 1 << 16
LEAST_ROOM: Final = 1 << 12
"""Most records of a run, and those of a small file: what a run takes is in proportion to it."""
PART: Final = 8
"""A run has the records of this part of the file, if all are small."""
ASKS: Final = 2
"""Why framing stops before damage (``kernels.frames``)."""
SEARCHED: Final = 1 << 16
"""Units that are searched together for the end of zeros."""
TEXTS: Final = (TYPES.NAME, TYPES.STRING_REFERENCE, TYPES.BUFFER_VALUE)
"""The types of blocks that have a text."""
IS_TEXT: Final = np.isin(np.arange(256), TEXTS)
SPARE: Final = 1.03
"""Room for more rows than the runs before let expect, by factor."""
ORDERS_OF_TYPE: Final = wire.LARGEST_ORDER + 1
ORDERS: Final = np.zeros(LARGEST_UNITS + 1, np.uint8)
"""The order of a block by its size in units."""
ORDERS[1 << np.arange(wire.LARGEST_ORDER + 1)] = np.arange(wire.LARGEST_ORDER + 1)


class Noted:
    """Findings about many records, collected rule by rule, put in the order of the records.

    ``records`` are the units of all records, in which those of findings are looked up. Of each rule
    only as many are kept as ``listed`` still lists, which counts the others.
    """

    def __init__(self, records: Any = None, listed: Findings | None = None) -> None:
        self._records = records
        self._listed = listed
        self._found: list[I64] = []

    def add(self, rule: Rule | I64, units: Any, values: Any, records: Any = None) -> None:
        """Add findings about records that begin at units, in their order.

        ``rule`` may be a column of numbers, and ``values`` one number for all.
        """
        count = np.size(units)
        if not count:
            return
        if records is None:
            records = np.searchsorted(self._records, units)
        rows = findings_of(rule, units, records, values, count)
        rows[:, 1] *= wire.UNIT
        self._found.append(rows)

    def add_rows(self, rule: Rule | I64, rows: NDArray[Any], units: Any, values: Any) -> None:
        """Add findings about some rows of columns: of their units, and of their values."""
        rows = self.left_of(rule, rows)
        self.add(rule, units[rows], values[rows] if np.ndim(values) else values)

    def left_of(self, rule: Rule | I64, rows: NDArray[Any]) -> NDArray[Any]:
        """Return the first rows: as many findings as are still listed. The others are counted."""
        if self._listed is None or not isinstance(rule, Rule):
            return rows
        listed_rows = rows[: self._listed.left_of(rule)]
        self._listed.cut_off[rule] += rows.size - listed_rows.size
        return listed_rows

    def as_added(self) -> I64:
        """Return the findings, int64 of shape (n, 4): rule, offset, record, value."""
        nothing = np.zeros((0, FIELDS), np.int64)
        return np.concatenate([nothing, *self._found])

    def in_order(self) -> I64:
        """Return the same by record. Those of one record keep the order in which they came."""
        findings = self.as_added()
        records = findings[:, 2]
        if (records[1:] >= records[:-1]).all():
            return findings
        return findings[np.argsort(records, kind="stable")]


class Gathered:
    """Columns of a whole file, gathered from run after run in memory that grows."""

    def __init__(self, blocks: Blocks, **kinds: Any) -> None:
        self.count = 0
        self._blocks = blocks
        self._columns: dict[str, NDArray[Any]] = {
            name: np.empty(0, kind) for name, kind in kinds.items()
        }

    def add(self, **columns: Any) -> None:
        """Add a stretch of each column, all equally long."""
        start = self.count
        self.count += len(next(iter(columns.values())))
        for name, piece in columns.items():
            column = self._columns[name]
            if column.size < self.count:
                # So many if the rest of the file is like what was read, and one for no block.
                expected = math.ceil(SPARE * self.count / self._blocks.share_read) + 1
                size = max(expected, self.count + start // 2)
                column = np.asarray(grown(column, size, start))
                self._columns[name] = column
            column[start : self.count] = piece

    def joined(self, name: str) -> NDArray[Any]:
        """Return a column, which is not kept here any longer."""
        return self._columns.pop(name)[: self.count]


def at_rows(column: NDArray[Any], rows: I64) -> NDArray[Any]:
    """Return some rows of a column, which ascend: if there are as many, these are all of them."""
    return column if rows.size == column.size else column.take(rows)


@attrs.define(eq=False, slots=False)
class Run:
    """Records that follow one another, in the order of the file. Arrays have a row for each."""

    blocks: Blocks
    first: int
    """The number of the first record."""
    units: I64
    types: U8
    """The type of a block, or one of the numbers for other records in ``format``."""
    orders: U8
    end: int
    """The byte behind the last record."""
    noted: Noted = attrs.field(factory=Noted)

    @functools.cached_property
    def type_numbers(self) -> I64:
        """The types as indexes, which numpy otherwise makes of them at each look-up."""
        return self.types.astype(np.int64)

    @functools.cached_property
    def tally(self) -> I64:
        """The number of records by type and order."""
        keys = self.type_numbers * ORDERS_OF_TYPE
        keys += self.orders
        counts = np.bincount(keys, minlength=256 * ORDERS_OF_TYPE)
        return counts.reshape(-1, ORDERS_OF_TYPE)

    @functools.cached_property
    def rows(self) -> dict[int, I64]:
        """The blocks of each type that occurs."""
        types = np.flatnonzero(self.tally[: wire.NEW_TYPES].any(axis=1)).tolist()
        return {type: np.flatnonzero(self.types == type) for type in types}

    @functools.cached_property
    def words(self) -> tuple[I64, I64]:
        """The first two words of each block. The bytes behind the last unit have those at 0."""
        starts = wire.UNIT * self.units
        is_behind = self.units[-1] == self.blocks.units
        second_words = starts + WORD
        if is_behind:
            starts[-1] = second_words[-1] = 0
        integers = self.blocks.numbers.integers
        return integers(starts, WORD, big=False), integers(second_words, WORD, big=False)

    @functools.cached_property
    def texts(self) -> I64:
        """The blocks that have a text."""
        return np.flatnonzero(IS_TEXT.take(self.type_numbers))

    def sizes(self, rows: I64) -> I64:
        """Return the bytes of some blocks."""
        sizes: I64 = wire.ORDER_SIZE(at_rows(self.orders, rows).astype(np.int64))
        return sizes

    def fields(self, type: int, names: Sequence[str], rows: I64) -> list[I64]:
        """Return fields of some blocks, which are of one type, or of types that have these."""
        places = [self.blocks.classes[type].layout.place(name) for name in names]
        offsets = {place.offset for place in places}
        words = {offset: at_rows(self.words[offset // WORD], rows) for offset in offsets}
        return [place.of(words[place.offset]) for place in places]

    def forget(self) -> None:
        """Drop the words, which were taken apart."""
        for name in ("type_numbers", "words", "rows", "texts"):
            self.__dict__.pop(name, None)

    def bounds(self) -> I64:
        """Return where the records begin, and where the last one ends, in bytes."""
        return np.append(wire.UNIT * self.units, self.end)

    @functools.cached_property
    def header(self) -> Any:
        """The header, which is the first record, as an object."""
        size = wire.ORDER_SIZE(int(self.orders[0]))
        cls = self.blocks.classes[TYPES.HEADER]
        data = self.blocks.data.data
        header, _ = cls.unpack(data, 0, size, STATE)
        return header

    # --- Findings ---------------------------------------------------------------------------------

    @functools.cached_property
    def findings(self) -> I64:
        """What is wrong with each record by itself, as ``Noted.in_order`` has it."""
        large = np.flatnonzero(self.orders > wire.MAX_ORDER)
        self.note(rules.LARGE_BLOCK, large, self.sizes(large))
        unknown = np.flatnonzero(self.types == wire.UNKNOWN_BLOCK)
        first_word = wire.FIRST_WORDS[self.blocks.layout]
        self.note(rules.UNKNOWN_TYPE, unknown, first_word.type.of(self.words[0][unknown]))
        self._note_reserved()
        for type, rows in self.rows.items():
            if type == TYPES.BOOL_VALUE:
                values = self.words[1].take(rows)
                is_wrong = (values < 0) | (values > 1)
                self.note(rules.INVALID_BOOL, rows[is_wrong], values[is_wrong])
            elif type == TYPES.RESERVED:
                self.note(rules.RESERVED_BLOCK, rows, type)
            elif type == TYPES.HEADER:
                self.note(rules.SECOND_HEADER, rows[self.units[rows] > 0], type)
        if not self.first and self.types[0] == TYPES.HEADER:
            self._note_header()
        elif not self.first:
            self.note(rules.NO_HEADER, np.zeros(1, np.int64), int(self.types[0]))
        return self.noted.in_order()

    def note(self, rule: Rule | I64, rows: I64, values: Any) -> None:
        """Note findings about some rows; ``rule`` may be a column of numbers."""
        records = self.first + rows
        self.noted.add(rule, self.units[rows], values, records)

    def _note_reserved(self) -> None:
        """Note reserved bits that are set, of each block those of the first word that has some."""
        strays = [
            words & masks.take(self.type_numbers) != 0
            for words, masks in zip(self.words, self.blocks.reserved, strict=True)
        ]
        strays[1] &= ~strays[0]
        for words, is_stray in zip(self.words, strays, strict=True):
            rows = np.flatnonzero(is_stray)
            self.note(rules.RESERVED_BITS_SET, rows, words[rows])

    def _note_header(self) -> None:
        """Note what is wrong with the header, which is the first record."""
        data = self.blocks.data
        header = self.header
        size = wire.ORDER_SIZE(int(self.orders[0]))

        def note(rule: Rule, value: int) -> None:
            self.noted.add(rule, 0, value, 0)

        if header.magic.encode(errors="surrogateescape") != wire.MAGIC:
            note(rules.OTHER_MAGIC, MAGIC_NUMBER.get(data[:WORD].tobytes(), 0))
        if header.version > self.blocks.max_version:
            note(rules.UNKNOWN_VERSION, header.version)
        elif header.version == 0 and self.blocks.max_version > 0:
            note(rules.VERSION_ZERO_IN_NEW_LAYOUT, 0)
        if header.generation % 2:
            note(rules.LOCKED, to_i64(header.generation))
        elif header.generation == wire.FROZEN_GENERATION:
            note(rules.FROZEN_VMO, 0)
        # Only a header of more than one unit has it.
        claimed_size = header.vmo_size
        if claimed_size is None:
            return
        if claimed_size < size or claimed_size > wire.MAX_VMO or claimed_size % wire.UNIT:
            note(rules.NO_SIZE, claimed_size)
        elif claimed_size > data.size:
            note(rules.SHORTER_THAN_ITS_SIZE, claimed_size)
        elif claimed_size < data.size:
            note(rules.LONGER_THAN_ITS_SIZE, claimed_size)


class Records(NamedTuple):
    """Where records begin, their types, and their sizes; sizes and places are in units."""

    units: I64
    types: U8
    sizes: I64

    def at(self, rows: slice | NDArray[np.bool_]) -> Records:
        """Return some of them."""
        return Records(self.units[rows], self.types[rows], self.sizes[rows])


class _Found:
    """Records that were found, in pieces that are joined at the end."""

    def __init__(self) -> None:
        self.count = 0
        self.damage: list[tuple[I64, Rule | I64, I64]] = []
        """Units in which no block begins, with rules and values."""
        self._pieces: list[Records] = []

    def add(self, records: Records) -> None:
        """Add records behind those that were found before."""
        self.count += records.units.size
        self._pieces.append(records)

    def add_stretch(self, unit: int, type: int) -> None:
        """Add a stretch without blocks."""
        self.add(Records(np.full(1, unit), np.full(1, type, np.uint8), np.zeros(1, np.int64)))

    def joined(self) -> Records:
        """Return all of them."""
        if len(self._pieces) == 1:
            return self._pieces[0]
        columns = zip(*self._pieces, strict=True)
        return Records(*map(np.concatenate, columns))


class Blocks:
    """All records of a VMO, in runs. ``data`` is uint8; of the limits ``max_record`` applies."""

    def __init__(self, data: U8, limits: Limits) -> None:
        self.data = data
        self.units = data.size // wire.UNIT
        self.layout = wire.layout_of(data[:2].tobytes())
        self.classes = wire.BLOCKS[self.layout]
        self.max_version = 0 if self.layout == "v0" else wire.MAX_VERSION
        self.numbers = FileNumbers(data)
        self.reserved = _reserved_masks(self.layout)
        self.share_read = 1.0
        """How much of the file the runs so far have."""
        room_of_part = max(LEAST_ROOM, self.units // PART)
        self._room = min(ROOM, room_of_part)
        self._most_units = (limits.max_record or data.size) // wire.UNIT
        base = wire.FAMILIES[self.layout]
        whole_units = data[: wire.UNIT * self.units]
        self._frames = frames_of_records(whole_units, base, room=self._room)
        self._frames.asking = 1  # where damage ends, the reader knows

    def runs(self) -> Iterator[Run]:
        """Yield all records, up to some ``ROOM`` of them together, or a few more."""
        unit = 0
        first_record = 0
        while wire.UNIT * unit < self.data.size:
            run, unit = self._run(unit, first_record)
            first_record += run.types.size
            self.share_read = run.end / self.data.size
            yield run

    def _run(self, unit: int, first_record: int) -> tuple[Run, int]:
        """Return the records from a unit on, and the unit behind them.

        ``first_record`` is the number of the first of them.
        """
        records = _Found()
        unit = self._read(unit, records)
        if unit == self.units and wire.UNIT * unit < self.data.size:
            bytes_left = self.data.size - wire.UNIT * unit
            damaged_unit = np.full(1, unit)
            records.damage.append((damaged_unit, rules.TRAILING_BYTES, np.full(1, bytes_left)))
            records.add_stretch(unit, wire.DAMAGED)
            unit += 1
        joined, unit = self._with_joined_zeros(records.joined(), unit)
        units, types, sizes = joined
        end = min(wire.UNIT * unit, self.data.size)
        run = Run(self, first_record, units, types, ORDERS[sizes], end)
        for damaged_units, numbers, values in records.damage:
            run.note(numbers, np.searchsorted(units, damaged_units), values)
        over_limit = np.flatnonzero(sizes > self._most_units)
        run.note(rules.BLOCK_OVER_LIMIT, over_limit, run.sizes(over_limit))
        run.types[over_limit] = wire.DAMAGED
        run.orders[over_limit] = 0
        return run, unit

    def _read(self, unit: int, records: _Found) -> int:
        """Read records from a unit on, until there is no room for more; return the unit behind."""
        end_of_zeros = self._end_of_zeros(unit)
        if end_of_zeros > unit + 1:
            # Megabytes of zeros are not looked at unit by unit.
            records.add_stretch(unit, wire.PADDING)
            unit = end_of_zeros
        frames = self._frames
        while unit < self.units and records.count < self._room:
            count, stop_reason = frames.read(
                wire.UNIT * unit, self._room - records.count, wire.UNIT * self.units
            )
            types = frames.kinds_found[:count].astype(np.uint8)
            types[frames.entries[:count] < 0] = wire.UNKNOWN_BLOCK
            sizes = frames.sizes[:count] // wire.UNIT
            units = frames.places[:count] // wire.UNIT
            records.add(Records(units, types, sizes))
            unit = frames.next // wire.UNIT
            if stop_reason == ASKS:
                unit = self._add_tail(unit, records)
        return unit

    def _with_joined_zeros(self, records: Records, unit: int) -> tuple[Records, int]:
        """Make one record of the units of zeros that follow one another.

        One unit of zeros is a FREE block of order 0, two in a row are padding: in a heap one of
        them would have to be the next of the other.

        Zeros at the end, before ``unit``, may be followed by more: they are left to the next run.
        The unit behind the records is returned, too.
        """
        is_zero = self._zeros(records)
        if is_zero[-1] and unit < self.units:
            used_records = np.flatnonzero(~is_zero)
            first_left = int(used_records[-1]) + 1
            unit = int(records.units[first_left])
            is_zero = is_zero[:first_left]
            records = records.at(slice(first_left))
        if is_zero.any():
            follows = np.append(False, is_zero[:-1])
            precedes = np.append(is_zero[1:], False)
            begins_padding = is_zero & precedes & ~follows
            records.types[begins_padding] = wire.PADDING
            records.sizes[begins_padding] = 0
            records = records.at(~(is_zero & follows))
        return records, unit

    def _end_of_zeros(self, unit: int) -> int:
        """Return the unit behind the units of zeros from a unit on."""
        searched = 1
        while unit < self.units:
            stop = min(unit + searched, self.units)
            searched = SEARCHED
            words = self.data[wire.UNIT * unit : wire.UNIT * stop].view(np.int64)
            is_used = words != 0
            first_word = int(is_used.argmax())
            if is_used[first_word]:
                return unit + first_word // (wire.UNIT // WORD)
            unit = stop
        return unit

    def _zeros(self, records: Records) -> NDArray[np.bool_]:
        """Return which records are one unit of zeros."""
        is_zero: NDArray[np.bool_] = records.types == TYPES.FREE
        if not is_zero.any():
            return is_zero
        rows = np.flatnonzero(is_zero & (records.sizes == 1))
        is_zero[:] = False
        starts = wire.UNIT * records.units[rows]
        first_words, second_words = (
            self.numbers.integers(starts + place, WORD, big=False) for place in (0, WORD)
        )
        is_zero[rows] = first_words | second_words == 0
        return is_zero

    # --- Damage -----------------------------------------------------------------------------------

    def _add_tail(self, unit: int, records: _Found) -> int:
        """Add all records from a unit on where no block can begin. Return the unit behind them.

        Only a block that is larger than what is left asks for this, so that is not much. A block
        of a known type past the end takes all of it. Otherwise reading goes on at the next unit
        from which blocks follow, or else where one fits. Blocks follow if they lead to the end of
        the file, or if ``FOLLOWING`` of them are not zero.
        """
        places = np.arange(self.units - unit)
        end = places.size
        word_places = wire.UNIT * (unit + places)
        words = self.numbers.integers(word_places, WORD, big=False)
        first_word = wire.FIRST_WORDS[self.layout]
        orders = first_word.order.of(words)
        kinds = first_word.type.of(words)
        sizes = 1 << orders
        is_known_kind = kinds < len(self.classes)
        is_of_known_type = is_known_kind & (orders <= wire.MAX_ORDER)
        is_cut = sizes > end - places
        fits = is_of_known_type & ~is_cut
        fits &= words & first_word.reserved == 0
        followed_places = _next_of(_followed(fits, sizes, words != 0))
        fitting_places = _next_of(fits)
        resume_places = np.where(followed_places < end, followed_places, fitting_places)[1:]
        place_behind_cut = np.where(is_of_known_type, end, resume_places)
        place_behind = np.where(is_cut, place_behind_cut, places + sizes)
        path = _path(np.append(place_behind, end))
        damaged_places = path[is_cut[path]]
        types = np.where(kinds[path] < len(self.classes), kinds[path], wire.UNKNOWN_BLOCK)
        types[is_cut[path]] = wire.DAMAGED
        whole_sizes = np.where(is_cut, 0, sizes)
        records.add(Records(unit + path, types.astype(np.uint8), whole_sizes[path]))
        past = int(rules.BLOCK_PAST_THE_END)
        no_block = int(rules.NO_BLOCK)
        numbers = np.where(is_of_known_type[damaged_places], past, no_block)
        damaged_units = unit + damaged_places
        records.damage.append((damaged_units, numbers, orders[damaged_places]))
        # The bytes after the last unit belong to a block past the end.
        return self.units + int(is_cut[path[-1]] and is_of_known_type[path[-1]])


def _followed(fits: NDArray[np.bool_], sizes: I64, is_used: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return from which units blocks follow: to the end, or ``FOLLOWING`` of those in use."""
    end = fits.size
    nowhere = end + 1
    unit_behind = np.append(np.where(fits, np.arange(end) + sizes, nowhere), [nowhere, nowhere])
    counts = (fits & is_used).astype(np.int64)
    runs = np.append(counts, [FOLLOWING, 0])
    # Runs of one block become runs of two, of four, and so on.
    for _ in range(end.bit_length()):
        runs = np.minimum(runs + runs[unit_behind], FOLLOWING)
        unit_behind = unit_behind[unit_behind]
    return runs[:end] >= FOLLOWING


def _path(place_behind: I64) -> I64:
    """Return the places from 0 on that follow one another, up to the last one, the end."""
    end = place_behind.size - 1
    path = np.zeros(1, np.int64)
    while path[-1] < end:
        path = np.append(path, place_behind[path])
        place_behind = place_behind[place_behind]
    return path[path < end]


@functools.cache
def _reserved_masks(layout: str) -> I64:
    """Return the reserved bits of the first two words, each by type of block."""
    masks = np.zeros((2, 256), np.int64)
    for type, cls in wire.BLOCKS[layout].items():
        masks[:, type] = [to_i64(mask) for mask in wire.reserved_masks(cls)]
    return masks


def _next_of(where: NDArray[np.bool_]) -> I64:
    """Return for each place, and the end, the first place from it on that is true, or the end."""
    places = np.append(np.where(where, np.arange(where.size), where.size), where.size)
    from_the_end = np.minimum.accumulate(places[::-1])
    nearest: I64 = from_the_end[::-1]
    return nearest
