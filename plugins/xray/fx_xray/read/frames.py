"""Frames: where the records of a trace are, as columns, and what is wrong with where they are.

``fxframework.kernels.heads`` finds records one after another. Where one of them crosses a limit,
or only what is behind it tells where it ends, the *policy* of the framing decides (``FdrPolicy``).
What records say to each other is then asked of all of a block together (``buffers.FdrFrames``).
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fx_xray import rules
from fx_xray.format import (
    BIG,
    BIG_FUNCTION_ID,
    BIG_FUNCTION_KIND,
    BUFFER_EXTENTS,
    BYTE_ORDERS,
    CUSTOM_EVENT,
    DAMAGED,
    DELTA,
    END_OF_BUFFER,
    EXTENT_AT,
    EXTENTS_VERSION,
    FUNCTION,
    FUNCTION_BYTES,
    FUNCTION_DELTA_AT,
    FUNCTION_ID,
    FUNCTION_KIND,
    GARBAGE_RUN,
    HEADER_BYTES,
    LEAST_BUFFER,
    LITTLE,
    METADATA_BYTES,
    NEW_BUFFER,
    PADDING,
    PID,
    SIZE_AT,
    TYPED_EVENT,
    UNKNOWN,
    Dialect,
    Fdr,
    Function,
    Now,
    class_of,
    place,
)
from fxframework.errors import Rule
from fxframework.kernels import heads
from fxframework.kernels.heads import Heads
from fxframework.wire.many import ClassRows, FileNumbers, Many, Reading

__all__ = ["SPACE", "FdrPolicy", "Records", "Rows", "function_fields", "heads_of"]

I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
Bools = NDArray[np.bool_]
ROOM: Final = 1 << 16
"""Most records of a block."""
SEARCHED: Final = 1 << 20
"""Bytes in which a buffer is looked for at once."""
SPACE: Final = -1
"""Instead of the number of a rule: the space behind the end of a buffer."""


class Records:
    """The records of a file as numbers: fields of many, by their declarations."""

    def __init__(self, data: U8, dialect: Dialect) -> None:
        self.data = data
        self.numbers = FileNumbers(data)
        self.version = dialect.defined
        self.order = BYTE_ORDERS.index(dialect.byte_order)
        self.big = self.order != LITTLE
        self.mirrored = dialect.mirrored
        self.kind_at = int(dialect.basic and self.big)
        """The byte of a record that says its kind."""

    def fields(self, cls: Any, places: I64, *names: str) -> list[I64]:
        """Return fields of records of a class, by name, each int64 of the shape of ``places``."""
        if not places.size:
            return [np.zeros(0, np.int64) for _ in names]
        registers = {Now.VERSION: self.version}
        reading = Reading(self.numbers, registers, mirrored=self.mirrored)
        layout = cls.layout
        limits = np.full(places.size, self.data.size)
        many = Many(reading, layout, ClassRows.of(np.arange(places.size)), places, limits,
                    big=self.big)  # fmt: skip
        by_name = {field.name: field for field in layout.fields}
        in_order = [field.name for field in layout.fields]
        last_field = max(in_order.index(name) for name in names)
        many.read_fields(layout.fields[: last_field + 1])
        return [many.full(many.known[by_name[name]]) for name in names]

    def metadata(self, kind: int, places: I64, *names: str) -> list[I64]:
        """Return fields of metadata records of a kind, in the version of the file."""
        cls = class_of(kind, {Now.VERSION: self.version}) if places.size else None
        return self.fields(cls, places, *names)

    def words(self, places: I64) -> I64:
        """Return the eight bytes at each place as a little-endian number."""
        return self.numbers.integers(places, 8, big=False)


def function_fields(records: Records, places: I64) -> tuple[I64, I64, I64]:
    """Return kind, id and delta of function records, each int64 of the shape of ``places``.

    They are most of a trace: where all their fields are in one number of eight bytes, it is read.
    """
    if not records.big:
        words = records.words(places)
        return FUNCTION_KIND.get(words), FUNCTION_ID.get(words), DELTA.get(words)
    words = records.numbers.integers(places, FUNCTION_DELTA_AT, big=True)
    deltas = records.numbers.integers(places + FUNCTION_DELTA_AT, 4, big=True)
    if records.order == BIG:
        return BIG_FUNCTION_KIND.get(words), BIG_FUNCTION_ID.get(words), deltas
    return FUNCTION_KIND.get(words), FUNCTION_ID.get(words), deltas


@cache
def heads_of(version: int, order: int) -> I64:
    """Return what the first byte says of a record of the flight data recorder (``Heads``)."""
    dialect = Dialect(version=version, byte_order=BYTE_ORDERS[order])
    family = Fdr.layout.family
    # An invalid kind of function has its highest bit set, in the word of the record.
    kind_bits = BIG_FUNCTION_KIND if dialect.mirrored else FUNCTION_KIND
    bad_byte, bad_bit = divmod(kind_bits.high, 8)
    if order != LITTLE:
        bad_byte = place(Function, "delta").offset - 1 - bad_byte
    out = np.zeros((256, 8), np.int64)
    for byte in range(256):
        head = memoryview(bytes([byte]))
        is_metadata, kind = family.numbers(head, 0, order != LITTLE, dialect.mirrored)
        if not is_metadata:
            out[byte] = FUNCTION_BYTES, FUNCTION, 0, bad_byte, 1 << bad_bit, DAMAGED, 0, 1
        elif kind > PID:
            out[byte] = METADATA_BYTES, UNKNOWN, 0, 0, 255, UNKNOWN, 0, 0
        else:
            counted = SIZE_AT if kind in (CUSTOM_EVENT, TYPED_EVENT) else 0
            # Later versions have no end record, and there extents are what bounds a buffer.
            stops = kind in (END_OF_BUFFER, BUFFER_EXTENTS) and version < EXTENTS_VERSION
            out[byte] = METADATA_BYTES, kind, counted, 0, 0, 0, stops, 0
    return out


class Rows(NamedTuple):
    """What the policy found, as columns; functions that follow one another are one row."""

    begin: I64
    end: I64
    counts: I64
    """The records of each."""
    kind: U8
    """Of records by their number in ``format``; DAMAGED, UNKNOWN or PADDING of other bytes."""
    fault: I64
    """The number of the rule by which it is not sound; SPACE; else 0."""
    closes: Bools
    """Whether the buffer before it has ended, without a record that says so."""
    is_cut_off: Bools
    """Whether the buffer that it is in is cut off by it."""
    by_extents: Bools
    """Whether extents bound buffers, as of each row."""


class Found(NamedTuple):
    """A finding of the policy: the byte whose record is being looked at, and the finding."""

    at: int
    rule: Rule
    offset: int
    value: int


class Limits(NamedTuple):
    """What bounds records at a place."""

    limit: int
    bounded: bool
    by_extents: bool
    page: int
    padded: int


class FdrPolicy:
    """Where the records of the flight data recorder begin and end.

    ``gather`` goes on from ``at``. Until extents bound buffers (``by_extents``), that is in version
    1, they have all the same size, a ``page``; behind their end record is space up to ``padded``.
    """

    def __init__(self, records: Records, buffer_size: int, at: int = HEADER_BYTES) -> None:
        self.records = records
        self.version = records.version
        self.data = records.data
        self.size = int(records.data.size)
        self.heads = Heads(self.data, heads_of(records.version, records.order), ROOM,
                           int(records.big))  # fmt: skip
        dialect = Dialect(version=records.version, byte_order=BYTE_ORDERS[records.order])
        self.first_extents = dialect.first_byte(BUFFER_EXTENTS)
        self.first_new_buffer = dialect.first_byte(NEW_BUFFER)
        self.heads.bound_at = EXTENT_AT
        self.heads.at = at
        self.heads.limit = at
        self.bounded = True
        self.by_extents = False
        self.page = min(buffer_size, self.size + 1) if buffer_size >= LEAST_BUFFER else 0
        self.padded = at
        self.searched = 0
        self.following = -1
        self.is_open = False
        """Whether a buffer of version 1 has begun."""
        self.found: list[Found] = []
        self.parts: list[tuple[Any, ...]] = []
        self.state = Limits(at, bounded=True, by_extents=False, page=0, padded=at)
        self.states: list[Limits] = []
        """The limits before each of the parts."""
        self.closing = False
        if self.version >= EXTENTS_VERSION:
            self.bound()
        else:
            self.turn_page(at)

    # --- Rows -------------------------------------------------------------------------------------

    @property
    def at(self) -> int:
        """The byte up to which records were found."""
        return self.heads.at

    def gather(self, most: int) -> Rows:
        """Return the next rows, of ``most`` records at least, or up to the end of the file."""
        self.parts = []
        self.found = []
        self.states = []
        reader = self.heads
        records = 0
        undecided = False
        # What was found about a record comes in one block with it.
        while (records < most or undecided) and reader.at < self.size:
            self.state = self.limits()
            undecided = False
            if reader.at < self.padded:
                self.skip_space()
                records += 1
                continue
            if reader.unsound >= GARBAGE_RUN and self.skip_garbage():
                records += 1
                continue
            row_count, records_read, stop_reason = reader.read(max(1, most - records), GARBAGE_RUN)
            if row_count:
                records += records_read
                codes = reader.codes[:row_count].copy()
                self.is_open |= bool((codes <= FUNCTION).any())
                self.add(
                    reader.places[:row_count],
                    reader.ends[:row_count],
                    reader.counts[:row_count],
                    codes,
                )
            if stop_reason == heads.AT_LIMIT:
                self.pass_limit()
                undecided = True
            elif stop_reason in (heads.ACROSS, heads.ASKS):
                self.state = self.limits()
                undecided = not self.decide()
                records += not undecided
        return self.joined()

    def add(
        self, begin: Any, end: Any, count: Any, kind: U8, fault: int = 0, *, cut_off: bool = False
    ) -> None:
        """Add rows."""
        closes = self.closing
        self.closing = False
        begin, end, count = (np.array(column, np.int64, ndmin=1) for column in (begin, end, count))
        self.states.append(self.state)
        self.parts.append((begin, end, count, kind, fault, closes, cut_off, self.by_extents))

    def add_one(self, end: int, kind: int, fault: int = 0, *, cut_off: bool = False) -> None:
        """Add the row that ends at a byte, and go on there."""
        self.add(self.at, end, 1, np.array([kind], np.uint8), fault, cut_off=cut_off)
        self.heads.at = end
        if not fault or fault == SPACE:
            self.heads.unsound = 0

    def joined(self) -> Rows:
        """Return the rows that were added."""
        row_parts = self.parts or [(*np.zeros((3, 0), np.int64), np.zeros(0, np.uint8), 0, 0, 0, 0)]
        begin, end, count, kind = (
            np.concatenate([row_part[n] for row_part in row_parts]) for n in range(4)
        )
        sizes = np.array([row_part[0].size for row_part in row_parts])
        faults = np.repeat(np.array([row_part[4] for row_part in row_parts], np.int64), sizes)
        faults[kind == UNKNOWN] = int(rules.UNKNOWN_METADATA)
        faults[(kind == DAMAGED) & (faults == 0)] = int(rules.BAD_FUNCTION)
        cut_off, by_extents = (
            np.repeat(np.array([bool(row_part[n]) for row_part in row_parts]), sizes)
            for n in (6, 7)
        )
        closes = np.zeros(begin.size, np.bool_)
        closing = [row_part[5] and row_part[0].size > 0 for row_part in row_parts]
        closes[(np.cumsum(sizes) - sizes)[closing]] = True
        return Rows(begin, end, count, kind, faults, closes, cut_off, by_extents)

    def note(self, rule: Rule, value: int = 0) -> None:
        """Report a finding about the record at hand."""
        self.found.append(Found(self.at, rule, self.at, value))

    # --- What begins where ------------------------------------------------------------------------

    def begins(self, at: int, first: int) -> bool:
        """Return whether a record with this first byte is at a place."""
        return at < self.size and int(self.data[at]) == first

    def sound_extents(self, at: int) -> bool:
        """Return whether there are extents at ``at`` that do not run past the end of the file."""
        return self.sound_end(at) >= 0

    def sound_end(self, at: int) -> int:
        """Return where the buffer ends that sound extents at a place bound; -1 if none do."""
        bound_before = self.heads.bound
        self.heads.bound = self.first_extents
        end = self.heads.end_of_bound(at)
        self.heads.bound = bound_before
        return end

    def next_extents(self, at: int) -> int:
        """Return where the next buffer begins that is valid; the end of the file if none does."""
        if not self.searched <= at <= self.following:
            self.searched = at
            self.following = self.search_extents(at)
        return self.following

    def search_extents(self, at: int) -> int:
        """Look for the buffer that ``next_extents`` returns."""
        last_start = self.size - METADATA_BYTES
        while at <= last_start:
            stop = min(at + SEARCHED, last_start + 1)
            places = np.flatnonzero(self.data[at:stop] == self.first_extents) + at
            nbytes = self.records.numbers.integers(places + EXTENT_AT, 8, big=self.records.big)
            places = places[(nbytes >= 0) & (nbytes <= last_start - places)] + METADATA_BYTES
            followers = self.data[np.minimum(places, self.size - 1)]
            places = places[(places == self.size) | (followers == self.first_new_buffer)]
            if places.size:
                return int(places[0]) - METADATA_BYTES
            at = stop
        return self.size

    def rest(self) -> int:
        """Return where records end that are given up with this one.

        That is the limit, or where a valid buffer begins if nothing bounds this one.
        """
        if self.bounded or not self.by_extents:
            return self.heads.limit
        return self.next_extents(self.at + 1)

    # --- Limits -----------------------------------------------------------------------------------

    def bound(self) -> None:
        """Let extents bound what follows them, from here on."""
        self.by_extents = True
        self.page = 0
        self.heads.bound = self.first_extents

    def unbind(self) -> None:
        """Believe no limit but the end of the file."""
        self.page = 0
        self.heads.limit = self.size
        # A buffer that begins inside of an event ends it: ``event`` looks for one.
        self.heads.reach = self.at if self.by_extents else self.size
        self.bounded = False

    def turn_page(self, at: int) -> None:
        """Set the limit of version 1: where the buffer that begins at ``at`` ends by its size."""
        bytes_left = self.size - at
        self.bounded = 0 < self.page <= bytes_left
        self.heads.limit = at + (self.page if self.bounded else bytes_left)
        self.heads.reach = self.heads.limit

    def pass_limit(self) -> None:
        """Go on behind a limit."""
        if self.by_extents:
            if not self.begins(self.at, self.first_extents):
                self.note(rules.NO_EXTENTS)
            self.unbind()  # extents bound what follows them
        elif not self.is_open or self.begins(self.at, self.first_new_buffer):
            self.closing = True
            self.is_open = False
            self.turn_page(self.at)
        else:
            self.unbind()

    def cross(self, end: int) -> bool:
        """Decide on a record that runs past the limit to ``end``: lost, or the limit is new."""
        code = None
        if self.heads.limit == self.size:
            code = rules.PAST_FILE
        elif not self.by_extents:
            if self.begins(self.heads.limit, self.first_new_buffer):
                code = rules.PAST_BUFFER
        elif self.sound_extents(self.heads.limit):
            code = rules.PAST_BUFFER
        elif not self.begins(self.at, self.first_extents):
            self.note(rules.NO_EXTENTS)
        else:
            self.note(rules.EXTENTS_OVERLAP, self.heads.limit - self.at)
        if code is not None:
            self.lose(code, self.rest(), end - self.at, cut_off=True)
            return True
        self.unbind()
        return False

    def lose(self, code: Rule, end: int, value: int, *, cut_off: bool = False) -> None:
        """Give up the bytes up to ``end``."""
        self.note(code, value)
        self.add_one(end, DAMAGED, int(code), cut_off=cut_off)
        self.heads.unsound = 0

    def skip_garbage(self) -> bool:
        """Give up the rest of a buffer where too many records are invalid, if there is any."""
        self.heads.unsound = 0
        end = self.heads.limit if self.bounded else self.next_extents(self.at)
        if end <= self.at:
            return False
        self.lose(rules.GARBAGE, end, end - self.at)
        return True

    def skip_space(self) -> None:
        """Take the space behind the end record of version 1 as one record."""
        if self.data[self.at : self.padded].any():
            self.note(rules.STALE_SPACE, self.padded - self.at)
        self.add_one(self.padded, PADDING, SPACE)

    # --- Records that only what is behind them can tell -------------------------------------------

    def decide(self) -> int:
        """Take the record at hand, or change the limit; return how many records were taken."""
        byte = int(self.data[self.at])
        nbytes, kind = (int(number) for number in self.heads_of_byte(byte))
        end = self.at + nbytes
        while end > self.heads.limit:
            if self.cross(end):
                return 1
        if kind == BUFFER_EXTENTS:
            self.extents(end)
        elif kind == END_OF_BUFFER and self.version < EXTENTS_VERSION:
            self.end_of_buffer(end)
        elif kind in (CUSTOM_EVENT, TYPED_EVENT):
            self.event(end, kind)
        else:
            return 0  # the limit was in the way
        return 1

    def heads_of_byte(self, byte: int) -> I64:
        """Return size and kind of the records with this first byte."""
        return heads_of(self.version, self.records.order)[byte, :2]

    def extents(self, end: int) -> None:
        """Begin the buffer that extents bound."""
        if self.by_extents and self.bounded:
            self.note(rules.EXTENTS_OVERLAP, self.heads.limit - self.at)
        at = self.at
        bytes_left = self.size - end
        self.add_one(end, BUFFER_EXTENTS)
        self.bound()
        stop = self.sound_end(at)
        self.bounded = stop >= 0
        if not self.bounded:
            nbytes = self.records.numbers.integers(
                np.array([at + EXTENT_AT]), 8, big=self.records.big
            )
            bytes_beyond = nbytes - bytes_left  # which wraps, as the number does
            self.found.append(Found(at, rules.EXTENTS_PAST_FILE, at, int(bytes_beyond[0])))
            stop = self.size
        self.heads.limit = stop
        self.heads.reach = stop if self.bounded else end
        self.is_open = True

    def end_of_buffer(self, end: int) -> None:
        """Take the end record of a version-1 buffer; later versions have none."""
        self.add_one(end, END_OF_BUFFER)
        self.closing = True
        self.is_open = False
        self.padded = self.buffer_end(end)

    def buffer_end(self, end: int) -> int:
        """Return where the space of a version-1 buffer ends whose records end at ``end``."""
        follows = self.begins(end, self.first_new_buffer)
        if self.by_extents:
            if follows or self.begins(end, self.first_extents):
                return end
            return self.heads.limit
        if self.page:
            used = end - HEADER_BYTES
            boundary = HEADER_BYTES + -(-used // self.page) * self.page
            if boundary == self.size or self.begins(boundary, self.first_new_buffer):
                return boundary
            if boundary < self.size and not follows:
                return boundary
            self.unbind()
        return end if follows else self.size

    def event(self, end: int, kind: int) -> None:
        """Take a custom or typed event with its payload."""
        size_place = np.array([self.at + SIZE_AT])
        size = int(
            self.records.numbers.integers(size_place, 4, big=self.records.big, signed=True)[0]
        )
        if size < 0:
            self.lose(rules.BAD_SIZE, self.rest(), size)
            return
        end += size
        while end > self.heads.limit:
            if self.cross(end):
                return
        rest_end = self.rest()
        if rest_end < end:
            self.lose(rules.PAST_BUFFER, rest_end, end - self.at, cut_off=True)
            return
        self.heads.reach = rest_end
        self.add_one(end, kind)
        self.is_open = True

    # --- To and fro -------------------------------------------------------------------------------

    def skip(self, offset: int) -> None:
        """Step over buffers before a byte that sound extents bound."""
        while self.by_extents:
            end = self.sound_end(self.at)
            # With sound extents behind it, whatever is in a buffer ends there.
            if end < 0 or end > offset or not self.sound_extents(end):
                return
            self.heads.at = end
            self.heads.limit = self.heads.at

    def limits(self) -> Limits:
        """Return what bounds the next record."""
        return Limits(self.heads.limit, self.bounded, self.by_extents, self.page, self.padded)

    def go_back(self, rows: Rows, row: int, at: int) -> None:
        """Go on at a byte within a sound row of those that were gathered last."""
        sizes = np.cumsum([part_number[0].size for part_number in self.parts])
        part_number = int(np.searchsorted(sizes, row, side="right"))
        state = self.states[part_number]
        self.heads.limit, self.bounded, self.by_extents, self.page, self.padded = state
        # Within a part, extents that bound a buffer may have come before the row.
        first_row = int(sizes[part_number]) - self.parts[part_number][0].size
        extents = np.flatnonzero(rows.kind[first_row : row + 1] == BUFFER_EXTENTS)
        if extents.size:
            self.heads.limit = self.sound_end(int(rows.begin[first_row + extents[-1]]))
        self.heads.reach = self.heads.limit if self.bounded or not self.by_extents else at
        self.heads.bound = self.first_extents if self.by_extents else -1
        self.heads.at = at
        self.heads.unsound = 0
        self.closing = False
        self.is_open = True
