"""Frames: where the records of a trace are, as columns, and what is wrong with where they are.

A loop of ``wire`` finds records one after another (``frames_by_first_byte``). Where one of them
crosses a limit, or only what is behind it tells where it ends, the *policy* of the framing decides
(``FdrPolicy``). What records say to each other is then asked of all of a block together
(``buffers.FdrFrames``).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from fx_xray import rules
from fx_xray.format import (
    BUFFER_EXTENTS,
    CUSTOM_EVENT,
    DAMAGED,
    END_OF_BUFFER,
    ENTER_ARG,
    EXTENTS_VERSION,
    FUNCTION,
    FUNCTION_BYTES,
    GARBAGE_RUN,
    HEADER_BYTES,
    LEAST_BUFFER,
    METADATA_BYTES,
    NEW_BUFFER,
    PADDING,
    PID,
    START,
    TYPED_EVENT,
    UNKNOWN,
    BufferExtents,
    CustomEvent,
    Dialect,
    Fdr,
    Function,
    Now,
    class_of,
)
from fx_xray.read.columns import latest
from fxframework.errors import Rule
from fxframework.kernels.arrays import I64, U8, Bools
from fxframework.model.diagnostics import Found
from fxframework.wire.expressions import wrapped
from fxframework.wire.framing import frames_by_first_byte
from fxframework.wire.many import FileNumbers

if TYPE_CHECKING:
    from fxframework.kernels.frames import Frames as KernelFrames

ROOM: Final = 1 << 16
"""Most records of a block."""
LEAST: Final = 32
"""Records that are looked at together, at least."""
SHARING: Final = 8
"""Functions of a row, beside the first one, that are as much work as one record."""
CAREFUL: Final = 256
"""Of fewer records that are looked at together, none is behind the limit."""
SEARCHED: Final = 1 << 20
"""Bytes in which a buffer is looked for at once."""
SPACE: Final = -1
"""Instead of the number of a rule: the space behind the end of a buffer."""
ASKS: Final = 2
"""Why the loop ends: it cannot tell the size of the next record (``kernels/frames.pyx``)."""
EVENTS: Final = (CUSTOM_EVENT, TYPED_EVENT)
IS_EVENT: Final = np.isin(np.arange(START + 1), EVENTS)
"""By kind."""


class Records:
    """The records of a file as numbers: fields of many, by their declarations."""

    def __init__(self, data: U8, dialect: Dialect) -> None:
        self.data = data
        self.numbers = FileNumbers(data)
        self.dialect = dialect
        self.version = dialect.defined
        self.classes: dict[int, Any] = {}
        """The classes of metadata records by kind, in the version of the file."""
        self.big = dialect.order == "big"

    def fields(self, record: Any, places: I64, *names: str) -> list[I64]:
        """Return fields of records of a class, by name, each int64 of the shape of ``places``."""
        if not places.size:  # of a class that may have no such field in this version
            return [np.zeros(0, np.int64) for _ in names]
        return self.numbers.of_records(
            record.layout, names, places, big=self.big, mirrored=self.dialect.mirrored
        )

    def metadata(self, kind: int, places: I64, *names: str) -> list[I64]:
        """Return fields of metadata records of a kind, in the version of the file."""
        if kind not in self.classes:
            self.classes[kind] = class_of(kind, {Now.VERSION: self.version})
        return self.fields(self.classes[kind], places, *names)


@cache
def kinds_by_byte(dialect: Dialect) -> U8:
    """Return the kinds of records of the flight data recorder by their first byte, shape (256,).

    Functions whose own kind is one that there is not are DAMAGED, as far as this byte has it.
    """
    heads = np.zeros((256, FUNCTION_BYTES), np.uint8)
    heads[:, 0] = np.arange(256)
    records = Records(heads.reshape(-1), dialect)
    places = FUNCTION_BYTES * np.arange(256)
    is_metadata, metadata_kind = records.fields(Fdr, places, "_type", "_kind")
    (function_kind,) = records.fields(Function, places, "kind")
    known_kind = np.where(metadata_kind <= PID, metadata_kind, UNKNOWN)
    kind_of_function = np.where(function_kind <= ENTER_ARG, FUNCTION, DAMAGED)
    return np.where(is_metadata != 0, known_kind, kind_of_function).astype(np.uint8)


def fdr_frames(records: Records) -> KernelFrames:
    """Return the loop that finds records of the flight data recorder, without any limits.

    It stops before events that reach beyond the data, and in version 1 before records that say
    where a buffer ends: later ones have no end record, and their extents are like other records.
    """
    kinds = kinds_by_byte(records.dialect).tolist()
    sizes = {byte: size_of(kind) for byte, kind in enumerate(kinds)}
    if records.version < EXTENTS_VERSION:
        stops = (END_OF_BUFFER, BUFFER_EXTENTS)
        sizes = {byte: size for byte, size in sizes.items() if kinds[byte] not in stops}
    size_place = CustomEvent.layout.place("_size")
    counted = {byte: size_place for byte, kind in enumerate(kinds) if kind in EVENTS}
    # In the other order of bits, the first byte does not say what kind a function has.
    joined = None
    if records.dialect.has_kind_first:
        joined = (kinds_by_byte(records.dialect) == FUNCTION).view(np.uint8)
    return frames_by_first_byte(records.data, sizes, counted, joined, big=records.big)


def size_of(kind: int) -> int:
    """Return the bytes of a record of a kind, of an event those before its payload."""
    return FUNCTION_BYTES if kind in (FUNCTION, DAMAGED) else METADATA_BYTES


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


NO_ROWS: Final = Rows(
    *(np.zeros(0, kind) for kind in ("i8", "i8", "i8", "u1", "i8", "?", "?", "?"))
)


class Limits(NamedTuple):
    """What bounds records at a place."""

    limit: int
    bounded: bool
    by_extents: bool
    page: int
    padded: int


class ExtentsSearch:
    """Finds where records of a kind begin, and where buffers that extents bound begin and end."""

    def __init__(self, records: Records) -> None:
        self.records = records
        self.data = records.data
        self.size = int(records.data.size)
        self.extent_place = BufferExtents.layout.place("bytes")
        self.first_extents = records.dialect.first_byte(BUFFER_EXTENTS)
        self.first_new_buffer = records.dialect.first_byte(NEW_BUFFER)
        self.searched = 0
        self.following = -1
        """From ``searched`` on, the next valid buffer begins here."""

    def begins_extents(self, at: int) -> bool:
        """Return whether extents are at a place."""
        return at < self.size and bool(self.data[at] == self.first_extents)

    def begins_buffer(self, at: int) -> bool:
        """Return whether the first record of a buffer, a NewBuffer, is at a place."""
        return at < self.size and bool(self.data[at] == self.first_new_buffer)

    def sound_extents(self, at: int) -> bool:
        """Return whether there are extents at ``at`` that do not run past the end of the file."""
        return self.sound_end(at) >= 0

    def sound_end(self, at: int) -> int:
        """Return where the buffer ends that sound extents at a place bound; -1 if none do."""
        end = at + METADATA_BYTES
        if not self.begins_extents(at) or end > self.size:
            return -1
        nbytes = self.extent(at)
        return end + nbytes if nbytes <= self.size - end else -1

    def extent(self, at: int) -> int:
        """Return the bytes that extents at a place say; they have no sign."""
        return self.extent_place.get(self.data.data, at, self.records.big)

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
            places = at + np.flatnonzero(self.data[at:stop] == self.first_extents)
            (nbytes,) = self.records.metadata(BUFFER_EXTENTS, places, "bytes")
            fits = (nbytes >= 0) & (nbytes <= last_start - places)
            ends = places[fits] + METADATA_BYTES
            followers = self.data[np.minimum(ends, self.size - 1)]
            is_valid = (ends == self.size) | (followers == self.first_new_buffer)
            if is_valid.any():
                return int(ends[is_valid][0]) - METADATA_BYTES
            at = stop
        return self.size


class GatheredParts:
    """The rows that are gathered, part by part, with what bounded the records of each."""

    def __init__(self) -> None:
        self.parts: list[Rows] = []
        self.states: list[Limits] = []
        """The limits before each of the parts."""
        self.found: list[Found] = []
        self.closing = False
        """Whether the next part closes the buffer before it."""

    def add(self, rows: Rows, state: Limits) -> None:
        """Add a part of at least one row."""
        rows.closes[0] = self.closing
        self.closing = False
        self.parts.append(rows)
        self.states.append(state)

    def joined(self) -> Rows:
        """Return the rows that were added."""
        columns = zip(*(self.parts or [NO_ROWS]), strict=True)
        rows = Rows(*map(np.concatenate, columns))
        rows.fault[rows.kind == UNKNOWN] = int(rules.UNKNOWN_METADATA)
        is_unnamed = (rows.kind == DAMAGED) & (rows.fault == 0)
        rows.fault[is_unnamed] = int(rules.BAD_FUNCTION)
        return rows


class FdrPolicy:
    """Where the records of the flight data recorder begin and end.

    ``gather`` goes on from ``at``. Until extents bound buffers (``by_extents``), that is in version
    1, they have all the same size, a ``page``; behind their end record is space up to ``padded``.
    """

    def __init__(self, records: Records, buffer_size: int) -> None:
        self.records = records
        self.version = records.version
        self.data = records.data
        self.size = int(records.data.size)
        self.frames = fdr_frames(records)
        self.kinds = kinds_by_byte(records.dialect)
        self.buffers = ExtentsSearch(records)
        self.at = HEADER_BYTES
        """The byte up to which records were found."""
        self.limit = self.at
        """Up to it records are read."""
        self.reach = self.size
        """Up to it events may end, whatever the limit is."""
        self.unsound = 0
        """How many invalid records came before in a row."""
        self.ahead = ROOM
        """Records that are looked at together: few where few of them were right before."""
        self.bounded = True
        self.by_extents = False
        self.page = min(buffer_size, self.size + 1) if buffer_size >= LEAST_BUFFER else 0
        self.padded = self.at
        self.is_open = False
        """Whether a buffer of version 1 has begun."""
        self.gathered = GatheredParts()
        self.state = self.limits()
        """The limits before the record at hand."""
        if self.version >= EXTENTS_VERSION:
            self.bound()
        else:
            self.turn_page(self.at)

    # --- Rows -------------------------------------------------------------------------------------

    def gather(self, most: int) -> Rows:
        """Return the next rows, of ``most`` records at least, or up to the end of the file.

        So many functions of a row as ``SHARING`` says count as one record.
        """
        closing = self.gathered.closing
        self.gathered = GatheredParts()
        self.gathered.closing = closing
        records = 0
        undecided = False
        # What was found about a record comes in one block with it.
        while (records < most or undecided) and self.at < self.size:
            self.state = self.limits()
            undecided = False
            if self.at < self.padded:
                self.skip_space()
                records += 1
                continue
            if self.unsound >= GARBAGE_RUN and self.skip_garbage():
                records += 1
                continue
            is_stopped = True
            if self.looks_beyond or self.at < self.limit:
                rows_read, records_read, is_stopped = self.read(max(1, SHARING * (most - records)))
                records += rows_read + (records_read - rows_read) // SHARING
                self.state = self.limits()
            if is_stopped and self.at >= self.limit:
                undecided = not self.enter_extents()
                records += not undecided
                if undecided:
                    self.pass_limit()
            elif is_stopped:
                undecided = not self.decide()
                records += not undecided
        return self.gathered.joined()

    @property
    def looks_beyond(self) -> bool:
        """Whether records behind the limit are looked at, too.

        Where buffers follow one another as their extents say, many are read at once; near damage
        it is cheaper to read one, and with nothing that bounds records, there is only one.
        """
        return self.by_extents and self.bounded and self.ahead >= CAREFUL

    def read(self, most: int) -> tuple[int, int, bool]:
        """Add the next sound records, and invalid ones; return rows, records, and what ends them.

        That is whether the policy has to decide on the next record.
        """
        frames = self.frames
        looks_beyond = self.looks_beyond
        frames.total = self.size if looks_beyond else self.limit
        count, why = frames.read(self.at, min(most, self.ahead), frames.total)
        begin = frames.places[:count].copy()
        end = begin + frames.sizes[:count]
        kind = self.kinds.take(frames.entries[:count])
        sound_count = count
        limits = np.array([self.limit])
        if looks_beyond:
            sound_count, limits = self.within_limits(begin, end, kind)
        elif self.by_extents:
            sound_count = self.before_questions(end, kind)
        kind = kind[:sound_count]
        # Functions that follow one another are one row.
        nbytes = end[:sound_count] - begin[:sound_count]
        counts = np.where(kind == FUNCTION, nbytes // FUNCTION_BYTES, 1)
        sound_end = self.at + int(nbytes.sum())
        if sound_end == frames.next:
            self.ahead = min(ROOM, 2 * self.ahead)
        else:
            self.ahead = LEAST + 2 * int(counts.sum())
        is_stopped = sound_end < frames.next or why == ASKS
        if sound_count == 0:
            return 0, 0, is_stopped
        if not self.records.dialect.has_kind_first:
            self.mark_invalid(begin[:sound_count], kind)
        garbage_count = self.count_garbage(kind >= UNKNOWN)
        if garbage_count < sound_count:
            is_stopped = False
            kind = kind[:garbage_count]
        if looks_beyond:
            passed = np.count_nonzero(kind == BUFFER_EXTENTS)
            if passed:
                self.limit = self.reach = int(limits[passed])
        self.at = int(end[kind.size - 1])
        self.is_open |= bool((kind <= FUNCTION).any())
        is_function = kind == FUNCTION
        goes_on = np.append(False, is_function[1:] & is_function[:-1])
        first = np.flatnonzero(~goes_on)
        behind = np.append(first[1:], kind.size)
        counts = np.add.reduceat(counts[: kind.size], first)
        self.add(begin[first], end[behind - 1], counts, kind[first])
        return first.size, int(counts.sum()), is_stopped

    def within_limits(self, begin: I64, end: I64, kind: U8) -> tuple[int, I64]:
        """Return how many rows lie within their limits, and which limits there are.

        These are the one at hand, and the ends of the buffers that follow one another. Of functions
        the last row may end at a limit earlier than it did.
        """
        extents = np.flatnonzero(kind == BUFFER_EXTENTS)
        (nbytes,) = self.records.metadata(BUFFER_EXTENTS, begin[extents], "bytes")
        fits_file = (nbytes >= 0) & (nbytes <= self.size - end[extents])
        limits = np.append(self.limit, end[extents] + nbytes)
        # A buffer begins where the one before it ends.
        is_sound = fits_file & (begin[extents] == limits[:-1])
        count = begin.size
        last_limit = limits[-1]
        if not is_sound.all():
            # The rows end before the first extents that are not sound.
            first_unsound = int(is_sound.argmin())
            count = int(extents[first_unsound])
            last_limit = limits[first_unsound]
        rows_within = int(np.searchsorted(end, last_limit, side="right"))
        if rows_within >= count:
            return count, limits
        functions_within = (int(last_limit) - int(begin[rows_within])) // FUNCTION_BYTES
        if kind[rows_within] == FUNCTION and functions_within > 0:
            end[rows_within] = begin[rows_within] + FUNCTION_BYTES * functions_within
            rows_within += 1
        return rows_within, limits

    def before_questions(self, end: I64, kind: U8) -> int:
        """Return how many records of a buffer come before one that the policy decides on.

        That is one of extents, or an event that nothing bounds.
        """
        is_asking = kind == BUFFER_EXTENTS
        if self.reach < self.limit:
            is_asking |= IS_EVENT[kind] & (end > self.reach)
        return int(is_asking.argmax()) if is_asking.any() else kind.size

    def mark_invalid(self, begin: I64, kind: U8) -> None:
        """Let functions be DAMAGED whose own kind is one that there is not."""
        function_rows = np.flatnonzero(kind == FUNCTION)
        (function_kind,) = self.records.fields(Function, begin[function_rows], "kind")
        kind[function_rows[function_kind > ENTER_ARG]] = DAMAGED

    def count_garbage(self, is_invalid: Bools) -> int:
        """Return how many records there are up to the last one of a run of garbage, if one is."""
        if not is_invalid.any():
            self.unsound = 0
            return int(is_invalid.size)
        last_valid = latest(~is_invalid)
        run = np.arange(is_invalid.size) - last_valid
        run[last_valid < 0] += self.unsound
        count = int(is_invalid.size)
        is_garbage = run >= GARBAGE_RUN
        if is_garbage.any():
            count = int(is_garbage.argmax()) + 1
        self.unsound = int(run[count - 1])
        return count

    def enter_extents(self) -> bool:
        """Enter the buffer of sound extents behind a limit; return whether there are some."""
        end = self.buffers.sound_end(self.at) if self.by_extents else -1
        if end < 0:
            return False
        self.add_one(self.at + METADATA_BYTES, BUFFER_EXTENTS)
        self.limit = end
        self.reach = end
        return True

    def add(
        self, begin: I64, end: I64, count: I64, kind: U8, fault: int = 0, *, cut_off: bool = False
    ) -> None:
        """Add rows, at least one."""
        faults = np.full(begin.size, fault)
        closes = np.zeros(begin.size, np.bool_)
        is_cut_off = np.full(begin.size, cut_off)
        by_extents = np.full(begin.size, self.by_extents)
        rows = Rows(begin, end, count, kind, faults, closes, is_cut_off, by_extents)
        self.gathered.add(rows, self.state)

    def add_one(self, end: int, kind: int, fault: int = 0, *, cut_off: bool = False) -> None:
        """Add the row that ends at a byte, and go on there."""
        begins = np.array([self.at])
        ends = np.array([end])
        kinds = np.array([kind], np.uint8)
        self.add(begins, ends, np.array([1]), kinds, fault, cut_off=cut_off)
        self.at = end
        if not fault or fault == SPACE:
            self.unsound = 0

    def note(self, rule: Rule, value: int = 0) -> None:
        """Report a finding about the record at hand."""
        self.gathered.found.append(Found(rule, self.at, value))

    def rest(self) -> int:
        """Return where records end that are given up with this one.

        That is the limit, or where a valid buffer begins if nothing bounds this one.
        """
        if self.bounded or not self.by_extents:
            return self.limit
        return self.buffers.next_extents(self.at + 1)

    # --- Limits -----------------------------------------------------------------------------------

    def bound(self) -> None:
        """Let extents bound what follows them, from here on."""
        self.by_extents = True
        self.page = 0

    def unbind(self) -> None:
        """Believe no limit but the end of the file."""
        self.page = 0
        self.limit = self.size
        # A buffer that begins inside of an event ends it: ``event`` looks for one.
        self.reach = self.at if self.by_extents else self.size
        self.bounded = False

    def turn_page(self, at: int) -> None:
        """Set the limit of version 1: where the buffer that begins at ``at`` ends by its size."""
        bytes_left = self.size - at
        self.bounded = 0 < self.page <= bytes_left
        self.limit = at + (self.page if self.bounded else bytes_left)
        self.reach = self.limit

    def pass_limit(self) -> None:
        """Go on behind a limit."""
        if self.by_extents:
            if not self.buffers.begins_extents(self.at):
                self.note(rules.NO_EXTENTS)
            self.unbind()  # extents bound what follows them
        elif not self.is_open or self.buffers.begins_buffer(self.at):
            self.gathered.closing = True
            self.is_open = False
            self.turn_page(self.at)
        else:
            self.unbind()

    def cross(self, end: int) -> bool:
        """Decide on a record that runs past the limit to ``end``: lost, or the limit is new."""
        code = None
        if self.limit == self.size:
            code = rules.PAST_FILE
        elif not self.by_extents:
            if self.buffers.begins_buffer(self.limit):
                code = rules.PAST_BUFFER
        elif self.buffers.sound_extents(self.limit):
            code = rules.PAST_BUFFER
        elif not self.buffers.begins_extents(self.at):
            self.note(rules.NO_EXTENTS)
        else:
            self.note(rules.EXTENTS_OVERLAP, self.limit - self.at)
        if code is not None:
            self.lose(code, self.rest(), end - self.at, cut_off=True)
            return True
        self.unbind()
        return False

    def lose(self, code: Rule, end: int, value: int, *, cut_off: bool = False) -> None:
        """Give up the bytes up to ``end``."""
        self.note(code, value)
        self.add_one(end, DAMAGED, int(code), cut_off=cut_off)
        self.unsound = 0

    def skip_garbage(self) -> bool:
        """Give up the rest of a buffer where too many records are invalid, if there is any."""
        self.unsound = 0
        end = self.limit if self.bounded else self.buffers.next_extents(self.at)
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
        byte = self.data[self.at]
        kind = int(self.kinds[byte])
        end = self.at + size_of(kind)
        while end > self.limit:
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

    def extents(self, end: int) -> None:
        """Begin the buffer that extents bound."""
        if self.by_extents and self.bounded:
            self.note(rules.EXTENTS_OVERLAP, self.limit - self.at)
        at = self.at
        bytes_left = self.size - end
        self.add_one(end, BUFFER_EXTENTS)
        self.bound()
        stop = self.buffers.sound_end(at)
        self.bounded = stop >= 0
        if not self.bounded:
            bytes_beyond = wrapped(self.buffers.extent(at) - bytes_left)
            self.gathered.found.append(Found(rules.EXTENTS_PAST_FILE, at, bytes_beyond))
            stop = self.size
        self.limit = stop
        self.reach = stop if self.bounded else end
        self.is_open = True

    def end_of_buffer(self, end: int) -> None:
        """Take the end record of a version-1 buffer; later versions have none."""
        self.add_one(end, END_OF_BUFFER)
        self.gathered.closing = True
        self.is_open = False
        self.padded = self.buffer_end(end)

    def buffer_end(self, end: int) -> int:
        """Return where the space of a version-1 buffer ends whose records end at ``end``."""
        follows = self.buffers.begins_buffer(end)
        if self.by_extents:
            if follows or self.buffers.begins_extents(end):
                return end
            return self.limit
        if self.page:
            used = end - HEADER_BYTES
            pages = (used + self.page - 1) // self.page
            boundary = HEADER_BYTES + pages * self.page
            if boundary == self.size or self.buffers.begins_buffer(boundary):
                return boundary
            if boundary < self.size and not follows:
                return boundary
            self.unbind()
        return end if follows else self.size

    def event(self, end: int, kind: int) -> None:
        """Take a custom or typed event with its payload."""
        (sizes,) = self.records.metadata(kind, np.array([self.at]), "_size")
        size = int(sizes[0])
        if size < 0:
            self.lose(rules.BAD_SIZE, self.rest(), size)
            return
        end += size
        while end > self.limit:
            if self.cross(end):
                return
        rest_end = self.rest()
        if rest_end < end:
            self.lose(rules.PAST_BUFFER, rest_end, end - self.at, cut_off=True)
            return
        self.reach = rest_end
        self.add_one(end, kind)
        self.is_open = True

    # --- To and fro -------------------------------------------------------------------------------

    def skip(self, offset: int) -> None:
        """Step over buffers before a byte that sound extents bound."""
        while self.by_extents:
            end = self.buffers.sound_end(self.at)
            # With sound extents behind it, whatever is in a buffer ends there.
            if end < 0 or end > offset or not self.buffers.sound_extents(end):
                return
            self.at = end
            self.limit = end

    def limits(self) -> Limits:
        """Return what bounds the next record."""
        return Limits(self.limit, self.bounded, self.by_extents, self.page, self.padded)

    def go_back(self, rows: Rows, row: int, at: int) -> None:
        """Go on at a byte within a sound row of those that were gathered last."""
        sizes = np.cumsum([part.begin.size for part in self.gathered.parts])
        part_number = int(np.searchsorted(sizes, row, side="right"))
        state = self.gathered.states[part_number]
        self.limit, self.bounded, self.by_extents, self.page, self.padded = state
        # Within a part, extents that bound a buffer may have come before the row.
        first_row = int(sizes[part_number]) - self.gathered.parts[part_number].begin.size
        kinds = rows.kind[first_row : row + 1]
        extents = first_row + np.flatnonzero(kinds == BUFFER_EXTENTS)
        if extents.size:
            last_extents = int(rows.begin[extents[-1]])
            self.limit = self.buffers.sound_end(last_extents)
        self.reach = self.limit if self.bounded or not self.by_extents else at
        self.at = at
        self.unsound = 0
        self.gathered.closing = False
        self.is_open = True
