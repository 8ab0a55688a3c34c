"""Frames: the stretches of a file of logs: records, and what lies before, between and behind them.

They are columns, for whatever reads thousands of them (``FramedFile``, ``Frames``), or objects
(``Records``), which also show what the bytes of one mean (``explain``). Why a stretch is not a
record is said here (``judged``), where reading goes on behind it in ``fx_log.format`` (``resume``).
"""

from __future__ import annotations

import abc
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from typing import Any, ClassVar, Final, NamedTuple

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_log import format as wire
from fx_log import rules
from fx_log.format import (
    STATE,
    STREAM_HEADER,
    STREAM_LENGTH,
    SUFFIX_BYTES,
    Argument,
    Attribution,
    LegacyPacket,
    LogRecord,
    PacketLength,
    RingFrame,
    RingHeader,
    StreamHeader,
    StreamPacket,
    Structured,
)
from fx_log.plugin import FORMATS
from fx_log.read.records import Damaged, LogFileRecord, Padding, RingEntry
from fx_log.read.ring import Ring
from fx_log.rules import RULES
from fxframework.errors import Rule
from fxframework.io.limits import Limits
from fxframework.io.source import Source
from fxframework.io.words import WORD, FieldView, view_of
from fxframework.kernels.arrays import I64, U8
from fxframework.kernels.frames import Items
from fxframework.kernels.sorting import begins_of_runs
from fxframework.kernels.stretches import with_bits
from fxframework.kit.explain import Explainer, check_offset
from fxframework.wire.findings import FIELDS, findings_of
from fxframework.wire.framing import (
    BAD_SIZE,
    BEHIND,
    CUT,
    HIDING,
    NO_KIND,
    PADDING,
    frames_of_records,
    items_of,
)
from fxframework.wire.many import ClassRows, FileNumbers, Many, Reading
from fxframework.wire.records import Record

ROOM: Final = 1 << 15
"""Most stretches of a block."""
BLOCK_BYTES: Final = 4 << 20
"""A block ends behind the first stretch that ends so many bytes after it began."""
ASKS: Final = 2
"""Why framing stops (``kernels.frames``): it does not say how long a record is."""
ARGUMENTS: Final = cache(partial(items_of, Argument.layout))
PACKETS: Final = cache(partial(items_of, LegacyPacket.layout))
"""What finds the items of records, where loops are compiled."""
HEADER: Final = -1
UNUSED: Final = -2
"""In place of the rule by which a stretch is not a record: it is a header, or unused zero bytes."""


class Frames(NamedTuple):
    """Stretches that follow one another, as columns of shape (stretches,); or one, as numbers.

    ``begin`` and ``end`` are bytes of ``FramedFile.data``, ``offset`` is that of the file. Of a
    record or packet, ``start`` and ``size`` tell where it is within its stretch, which may have an
    entry's header before it, or a suffix (else -1) behind it. ``index`` is the number of the record
    in the file. ``fault`` is the number of the rule by which there is none, HEADER or UNUSED; or 0.
    """

    begin: Any
    end: Any
    offset: Any
    start: Any
    size: Any
    suffix: Any
    index: Any
    fault: Any

    @classmethod
    def joined(cls, blocks: Iterable[Frames]) -> Frames:
        """Return the stretches of several blocks."""
        return cls(*map(np.concatenate, zip(*blocks, strict=True)))

    def take(self, rows: NDArray[Any] | slice) -> Frames:
        """Return some of the stretches."""
        return Frames(*(column[rows] for column in self))

    def rows(self) -> Iterator[Frames]:
        """Yield the stretches one by one."""
        columns = (column.tolist() for column in self)
        return map(Frames._make, zip(*columns, strict=True))

    def sound(self) -> Frames:
        """Return those that are records."""
        if not self.fault.any():
            return self
        return self.take(np.flatnonzero(self.fault == 0))

    def is_filled(self) -> NDArray[np.bool_]:
        """Return which entries of a ring have nothing but a record, whose size is in words."""
        is_filled: NDArray[np.bool_] = self.end - self.start == self.size
        return is_filled


class Arguments(NamedTuple):
    """Arguments of records: the row of each, its bytes, and the rule by which it is damaged."""

    record: I64
    begin: I64
    end: I64
    fault: I64

    def take(self, rows: NDArray[np.bool_]) -> Arguments:
        """Return some of the arguments."""
        return Arguments(*(column[rows] for column in self))


def behind_records(*, suffixed: bool) -> Items | None:
    """Return what follows each structured record: a suffix, if the file has them."""
    return items_of(Attribution.layout) if suffixed else None


class FramedFile(abc.ABC):
    """A file of logs: the bytes that its records lie in, in the order of reading.

    With ``splits``, for salvage, damage ends where sound records follow that a size hides.
    ``framed_file`` opens the file of a format.
    """

    form: ClassVar[str]
    family: ClassVar[type[Record]]
    """What the records of the format begin with."""
    record: ClassVar[str]
    """The kind of sound records."""
    has_arguments: ClassVar[bool] = False
    """Whether they are structured records."""
    before = 0
    """Bytes before each packet."""
    header: ClassVar[type[Record] | None] = None
    """What the file begins with, in its first ``begin`` bytes."""
    begin = 0
    ring: Ring | None = None

    def __init__(
        self, data: U8, limits: Limits, options: Mapping[str, Any], *, splits: bool
    ) -> None:
        self.data = data
        """The bytes of the file in the order of reading; a copy of a ring that wraps."""
        self.most = limits.max_record
        """Most bytes of a structured record; 0 is for any number."""
        self.suffixed = bool(options.get("suffix"))
        """Whether structured records have suffixes."""
        self.begin = min(self.begin, data.size)
        self.end = data.size
        """Stretches of records end at this byte; behind them is the unused space of a ring."""
        if self.ring is not None:
            self.end = self.begin + max(0, self.ring.used)
        self.numbers = FileNumbers(data)
        framed_bytes = self.end
        if self.has_arguments:
            framed_bytes -= framed_bytes % WORD
        behind = behind_records(suffixed=self.suffixed)
        self.frames = frames_of_records(data[:framed_bytes], self.family, behind=behind)
        self.frames.splitting = int(splits)
        self.splits = splits
        self.position = self.begin
        """The bytes of ``data`` whose stretches were found."""
        self.index = 0
        """Number of the next record."""
        self.notes: list[I64] = []
        """What ``findings`` has, in parts."""
        self.passed: Callable[[int, int], object] | None = None
        """Takes the bytes of blocks that are done with, to release them."""
        self.passed_to = 0

    def place(self, byte: I64) -> I64:
        """Return offsets in the file of bytes of ``data``, which in a ring may wrap around."""
        return byte if self.ring is None else self.ring.place(byte)

    def byte_at(self, offset: I64) -> I64:
        """Return bytes of ``data`` by their offsets in the file."""
        return offset if self.ring is None else self.ring.byte_at(offset)

    # --- Fields

    def many(self, layout: Any, starts: I64, limits: I64, *, for_lines: bool = False) -> Many:
        """Return records of a layout that begin and end at some bytes, to be read."""
        reading = Reading(self.numbers, {}, mirrored=False, for_lines=for_lines)
        reading.gives_codes = False  # who reads texts enters them itself, but for messages
        rows = ClassRows.of(np.arange(starts.size))
        return Many(reading, layout, rows, starts, limits, big=False)

    def numbers_of(self, cls: type[Record], starts: I64, *names: str) -> list[I64]:
        """Return numbers of records by their names, which have the same places in all of them."""
        return self.numbers.of_records(cls.layout, names, starts, big=False)

    def arguments(self, records: Frames) -> Arguments:
        """Return the arguments of structured records."""
        starts = records.start + wire.MIN_RECORD_WORDS * WORD
        data = self.data[: self.frames.total]
        return Arguments(*ARGUMENTS().chains(data, starts, records.start + records.size))

    # --- Stretches

    def blocks(self, nbytes: int | None = None, *, whole: bool = False) -> Iterator[Frames]:
        """Yield all stretches, ROOM or some ``nbytes`` (by default BLOCK_BYTES) at a time.

        Those of the ``whole`` file are also what is before and behind the records.
        """
        parts = self.opening() if whole else []
        is_over = False
        while not is_over:
            end = self.position + (nbytes or BLOCK_BYTES)
            parts.append(self.judged(*self.stretches(end)))
            is_over = self.position >= self.end
            if is_over and whole:
                parts += self.closing()
            yield parts[0] if len(parts) == 1 else Frames.joined(parts)
            parts = []
            self.notes = []
            if self.passed is not None:
                self.passed(self.passed_to, self.position)
                self.passed_to = self.position

    def opening(self) -> list[Frames]:
        """Return what is before the records: a header, or damage in its place."""
        return []

    def closing(self) -> list[Frames]:
        """Return what is behind the records: the unused space of a ring."""
        return []

    def lone(self, begin: int, end: int, fault: int, *found: tuple[Rule, int]) -> Frames:
        """Return a stretch that is not a record; report findings: rules, and values to show."""
        begins, ends, faults = np.array([[begin], [end], [fault]])
        frames = self.framed(begins, ends, faults, start=begins, size=ends - begins)
        for rule, value in found:
            self.report(rule, frames, begins * 0, value)
        return frames

    def stretches(self, until: int) -> tuple[I64, I64, I64]:
        """Return the next stretches up to a byte: begins, sizes, and entries (``wire.framing``)."""
        frames = self.frames
        count, reason = frames.read(self.position, ROOM, until)
        begin = frames.places[:count].copy()
        size = frames.sizes[:count].copy()
        entry = frames.entries[:count].astype(np.int64)
        self.position = frames.next
        if reason == ASKS:
            # A length goes beyond the end: what is behind it, only salvage looks for.
            damage_begin = self.position
            self.position = frames.total
            if self.splits:
                self.position = frames.next_fitting(damage_begin + 1, damage_begin)
            begin = np.append(begin, damage_begin)
            size = np.append(size, self.position - damage_begin)
            entry = np.append(entry, CUT)
        odd_bytes = self.end - frames.total
        if odd_bytes and self.position == frames.total:
            # They belong to damage before them, if there is any.
            if entry.size and entry[-1] in (CUT, BAD_SIZE, NO_KIND):
                size[-1] += odd_bytes
            else:
                begin = np.append(begin, self.position)
                size = np.append(size, odd_bytes)
                entry = np.append(entry, CUT)
            self.position = self.end
        return begin, size, entry

    @abc.abstractmethod
    def judged(self, begin: I64, size: I64, entry: I64) -> Frames:
        """Return stretches with what is in them, and why others are not records."""

    def framed(
        self, begin: I64, end: I64, fault: I64, *, start: I64, size: I64, suffix: I64 | None = None
    ) -> Frames:
        """Return stretches, with their offsets and numbers in the file."""
        if suffix is None:
            suffix = np.full(begin.size, -1)
        counts = 1 + ((suffix >= 0) & (fault == 0))
        index = self.index + np.cumsum(counts) - counts
        self.index += int(counts.sum())
        return Frames(begin, end, self.place(begin), start, size, suffix, index, fault)

    def report(self, rule: Rule | I64, frames: Frames, rows: I64, value: Any = 0) -> None:
        """Report findings about some rows; of one rule, or each of its own."""
        offset = frames.offset[rows]
        found = findings_of(rule, offset, frames.index[rows], value, rows.size)
        self.notes.append(found)

    def report_faults(self, frames: Frames, value: I64) -> None:
        """Report the stretches that are not records; findings show their ``value``."""
        rows = np.flatnonzero(frames.fault)
        self.report(frames.fault[rows], frames, rows, value[rows])

    def findings(self) -> I64:
        """Return the findings of the last block, in no order: rule, offset, record, value."""
        nothing = np.zeros((0, FIELDS), np.int64)
        return np.concatenate([nothing, *self.notes])

    def kinds(self, frames: Frames) -> Counter[str]:
        """Return how many records there are of each kind."""
        fault = frames.fault
        is_padding = (fault == rules.ZERO_WORDS) | (fault == UNUSED)
        is_record = (fault == 0) | (fault == rules.ENTRY_WITHOUT_RECORD)
        is_followed = (fault == 0) & (frames.suffix >= 0)
        is_header = fault == HEADER
        masks = {
            self.record: is_record,
            "attribution": is_followed,
            "padding": is_padding,
            "damaged": ~(is_record | is_padding | is_header),
        }
        if self.header is not None:
            masks[self.header.record] = is_header
        return Counter({kind: int(mask.sum()) for kind, mask in masks.items()})


class StructuredFile(FramedFile):
    """A file of structured records."""

    form = "log"
    family = Structured
    record = "log"
    has_arguments = True

    def judged(self, begin: I64, size: I64, entry: I64) -> Frames:
        """Return the stretches of structured records, each with the suffix behind it."""
        end = begin + size
        suffix = np.full(begin.size, -1)
        if self.suffixed:
            is_suffix = entry == BEHIND
            # The records that a suffix follows, by their numbers without suffixes.
            followed = np.flatnonzero(is_suffix[1:])
            followed -= np.arange(followed.size)
            suffix_begin = begin[is_suffix]
            suffix_end = end[is_suffix]
            begin, size, entry, end, suffix = (
                column[~is_suffix] for column in (begin, size, entry, end, suffix)
            )
            end[followed] = suffix_end
            suffix[followed] = suffix_begin
        fault = np.zeros(begin.size, np.int64)
        value = size
        if self.most:
            fault[size > self.most] = rules.OVER_MAX_RECORD
        damage = np.flatnonzero(entry < 0)
        if damage.size:
            value = size.copy()
            fault[damage], value[damage] = self.damage(begin[damage], size[damage], entry[damage])
        frames = self.framed(begin, end, fault, start=begin, size=size, suffix=suffix)
        self.report_faults(frames, value)
        if self.suffixed:
            self.report_lost_suffixes(frames)
        return frames

    def damage(self, begin: I64, size: I64, entry: I64) -> tuple[I64, I64]:
        """Return why stretches are not records, and what their findings show."""
        is_odd = begin >= self.frames.total  # bytes behind the last whole word
        type_of, stated_words = np.zeros((2, begin.size), np.int64)
        heads = begin[~is_odd]
        type_of[~is_odd], stated_words[~is_odd] = self.numbers_of(
            Structured, heads, "_type", "_size_words"
        )
        has_no_time = self.frames.total - begin == WORD
        # Of several rules that hold, the first one is that of the stretch.
        reasons = (
            (rules.ODD_BYTES, is_odd, size),
            (rules.ZERO_WORDS, entry == PADDING, size // WORD),
            (rules.NOT_A_RECORD, (entry == HIDING) | (type_of != wire.RECORD_TYPE), type_of),
            (rules.TIME_TRUNCATED, has_no_time, stated_words),
            (rules.RECORD_TOO_SMALL, stated_words < wire.MIN_RECORD_WORDS, stated_words),
        )
        masks = [mask for _, mask, _ in reasons]
        numbers = [np.int64(rule) for rule, _, _ in reasons]
        fault = np.select(masks, numbers, np.int64(rules.RECORD_TRUNCATED))
        values = [value for _, _, value in reasons]
        return fault, np.select(masks, values, stated_words)

    def report_lost_suffixes(self, frames: Frames) -> None:
        """Report records whose suffix runs past the end."""
        bytes_left = self.frames.total - frames.end
        has_room = bytes_left >= SUFFIX_BYTES
        lacks_suffix = (frames.fault == 0) & (frames.suffix < 0) & has_room
        rows = np.flatnonzero(lacks_suffix)
        nbytes = np.full(rows.size, SUFFIX_BYTES)
        suffix_begin = frames.end[rows]
        for length in self.numbers_of(Attribution, suffix_begin, "_moniker_bytes", "_url_bytes"):
            nbytes += length + -length % WORD
        at_suffixes = frames._replace(offset=frames.end)
        self.report(rules.SUFFIX_TRUNCATED, at_suffixes, rows, nbytes)


class RingFile(FramedFile):
    """The image of a ring, whose entries have structured records."""

    form = "log-ring"
    family = RingFrame
    record = "ring_entry"
    has_arguments = True
    header = RingHeader
    begin = wire.RING_PAGE
    ring: Ring

    def __init__(
        self, image: U8, limits: Limits, options: Mapping[str, Any], *, splits: bool
    ) -> None:
        self.ring = Ring(image)
        super().__init__(self.ring.line(), limits, options, splits=splits)

    def opening(self) -> list[Frames]:
        """Return the header of a ring, and an invalid ring as damage."""
        if not self.data.size:
            return []
        has_header = self.begin == wire.RING_PAGE
        fault = HEADER if has_header else int(rules.INVALID_RING)
        stretches = [self.lone(0, self.begin, fault, *self.ring.problems())]
        if self.ring.used < 0 and self.begin < self.data.size:
            # The finding about its header is that about the ring.
            stretches.append(self.lone(self.begin, self.data.size, int(rules.INVALID_RING)))
        return stretches

    def closing(self) -> list[Frames]:
        """Return the space of a ring between head and tail, if there is any."""
        if self.ring.used < 0 or self.end == self.data.size:
            return []
        if not self.data[self.end :].any():
            return [self.lone(self.end, self.data.size, UNUSED)]
        rule = rules.STALE_BYTES
        found = rule, self.data.size - self.end
        return [self.lone(self.end, self.data.size, int(rule), found)]

    def judged(self, begin: I64, size: I64, entry: I64) -> Frames:
        """Return the entries of a ring, with the record in each."""
        end = begin + size
        start = begin + wire.RING_ENTRY
        has_header = start <= self.end
        length = np.zeros(begin.size, np.int64)
        (length[has_header],) = self.numbers_of(RingFrame, begin[has_header], "_length")
        has_head = (entry >= 0) & (length >= wire.MIN_RECORD_WORDS * WORD)
        type_of, record_words = np.zeros((2, begin.size), np.int64)
        type_of[has_head], record_words[has_head] = self.numbers_of(
            Structured, start[has_head], "_type", "_size_words"
        )
        is_record = has_head & (type_of == wire.RECORD_TYPE)
        is_record &= record_words >= wire.MIN_RECORD_WORDS
        is_record &= record_words * WORD <= length
        fault = np.zeros(begin.size, np.int64)
        fault[~is_record] = rules.ENTRY_WITHOUT_RECORD
        fault[entry < 0] = rules.ENTRY_TOO_LONG
        fault[~has_header] = rules.ENTRY_TOO_SMALL
        record_size = np.where(is_record, record_words * WORD, 0)
        frames = self.framed(begin, end, fault, start=start, size=record_size)
        self.report_faults(frames, length)
        bytes_behind = length - record_size
        has_more = np.flatnonzero(is_record & (bytes_behind > 0))
        self.report(rules.ENTRY_TRAILING_BYTES, frames, has_more, bytes_behind[has_more])
        is_padded = length % WORD != 0
        padded = np.flatnonzero((entry >= 0) & is_padded)
        payload_end = (start + length)[padded]
        has_stray_bits = with_bits(self.data, payload_end, end[padded] - payload_end)
        self.report(rules.ENTRY_PADDING_NOT_ZERO, frames, padded[has_stray_bits])
        return frames


class PacketFile(FramedFile):
    """One legacy packet, which is the whole file."""

    form = "log-legacy"
    family = StreamPacket
    record = "legacy_packet"

    def stretches(self, until: int) -> tuple[I64, I64, I64]:
        """Return the file as one stretch, if it has any bytes."""
        del until
        self.position = self.data.size
        begin = np.zeros(min(1, self.data.size), np.int64)
        return begin, begin + self.data.size, begin

    def judged(self, begin: I64, size: I64, entry: I64) -> Frames:
        """Return legacy packets; those of a container have their length before them."""
        start = begin + self.before
        length = size - self.before
        end = begin + size
        # The rules in descending order: the last one that holds of a packet is that of its fault.
        fault = np.zeros(begin.size, np.int64)
        is_there = (entry >= 0) & (length >= wire.MIN_PACKET)
        # Of what lies in a packet, the first item is the packet itself.
        rows, _, _, faults = PACKETS().chains(self.data, start[is_there], end[is_there])
        fault[is_there] = faults[begins_of_runs(rows)]
        is_open = is_there.copy()
        last_byte = self.data[end[is_there] - 1]
        is_open[is_there] = last_byte != 0
        fault[is_open] = rules.PACKET_NOT_TERMINATED
        fault[~is_there] = rules.PACKET_TOO_SHORT
        is_cut = entry < 0
        fault[is_cut] = rules.PACKET_TRUNCATED
        # Of a packet that is cut off, the finding shows what its length says, if that is there.
        length[is_cut] = 0
        says_length = is_cut & (start <= self.data.size)
        (length[says_length],) = self.numbers_of(PacketLength, begin[says_length], "length")
        frames = self.framed(begin, end, fault, start=start, size=length)
        self.report_faults(frames, length)
        return frames


class ContainerFile(PacketFile):
    """A container of legacy packets, each behind its length."""

    form = "log-legacy-stream"
    before = STREAM_LENGTH
    header = StreamHeader
    begin = STREAM_HEADER
    stretches = FramedFile.stretches

    def opening(self) -> list[Frames]:
        """Return the header of a container, or damage in its place."""
        if not self.data.size:
            return []
        head = self.data[: self.begin].tobytes()
        if not StreamHeader.begins(head):
            rule = rules.CONTAINER_HEADER
            return [self.lone(0, self.begin, int(rule), (rule, 0))]
        reserved_bytes = head[StreamHeader.layout.place("version").end :]
        found = [(rules.RESERVED_BITS, 0)] * any(reserved_bytes)
        return [self.lone(0, self.begin, HEADER, *found)]


FILES: Final[tuple[type[FramedFile], ...]] = (
    StructuredFile, PacketFile, ContainerFile, RingFile,
)  # fmt: skip


def framed_file(
    form: str, data: U8, limits: Limits, options: Mapping[str, Any], *, splits: bool = False
) -> FramedFile:
    """Open a file of logs of a format; ``options`` are those of its reader."""
    (cls,) = (cls for cls in FILES if cls.form == form)
    return cls(data, limits, options, splits=splits)


# --- Objects --------------------------------------------------------------------------------------


class Records:
    """The records of a file as objects, in reading order."""

    def __init__(self, file: FramedFile) -> None:
        self.file = file
        self.data = view_of(file.data)
        """The bytes that frames are in."""
        # Not bound methods, which would keep the mapped file until garbage is collected.
        readers = {"log": Records.log, "ring_entry": Records.entry}
        self.read_record = readers.get(file.record, Records.packet)

    def __iter__(self) -> Iterator[LogFileRecord]:
        """Yield every record, padding and damage too; their sizes add up to that of the file."""
        for frames in self.file.blocks(whole=True):
            yield from self.of(frames)

    def of(self, frames: Frames) -> Iterator[LogFileRecord]:
        """Yield the records of some frames."""
        for row in frames.rows():
            yield from self.of_row(row)

    def of_row(self, row: Frames) -> Iterator[LogFileRecord]:
        """Return the records of a frame."""
        if not row.fault or row.fault == rules.ENTRY_WITHOUT_RECORD:
            return self.read_record(self, row)
        nbytes = row.end - row.begin
        if row.fault == HEADER and self.file.header is not None:
            header, _ = self.file.header.unpack(self.data, row.begin, row.end, STATE)
            return iter([header])
        if row.fault in (rules.ZERO_WORDS, UNUSED):
            return iter([Padding(offset=row.offset, nbytes=nbytes)])
        rule = RULES.numbered(row.fault)
        raw = self.data[row.begin : row.end]
        return iter([Damaged(offset=row.offset, nbytes=nbytes, code=rule.code, raw=raw)])

    def log(self, row: Frames) -> Iterator[LogFileRecord]:
        """Yield a structured record, and its suffix."""
        record, _ = LogRecord.unpack(self.data, row.start, row.start + row.size, STATE)
        if row.suffix >= 0:
            record.suffix, _ = Attribution.unpack(self.data, row.suffix, row.end, STATE)
            record.suffix.row_offset = record.offset
        yield record
        if record.suffix is not None:
            yield record.suffix

    def packet(self, row: Frames) -> Iterator[LogFileRecord]:
        """Yield a packet, with its length if it has one."""
        packet, cursor = LegacyPacket.unpack(self.data, row.start, row.end, STATE)
        packet.offset = row.offset
        packet.nbytes = row.end - row.begin
        packet.raw = None
        if cursor.at != row.end or row.size > wire.MAX_PACKET:
            packet.raw = self.data[row.begin : row.end].tobytes()
        yield packet

    def entry(self, row: Frames) -> Iterator[LogFileRecord]:
        """Yield an entry of a ring, which may have no record."""
        frame, _ = wire.RingFrame.unpack(self.data, row.begin, row.end, STATE)
        entry = RingEntry(
            offset=row.offset, nbytes=row.end - row.begin, tag=frame.tag, payload=frame.payload
        )
        if row.size:
            log, _ = LogRecord.unpack(self.data, row.start, row.start + row.size, STATE)
            # Places in the file, which may be before that of the entry: a ring turns around.
            parts: list[Any] = [log, *log.args]
            offsets = self.file.place(np.array([part.offset for part in parts])).tolist()
            for part, offset in zip(parts, offsets, strict=True):
                part.offset = offset
            entry.log = log
            entry.payload = frame.payload[row.size :]
        payload_end = row.start + len(frame.payload)
        padding_bytes = self.data[payload_end : row.end]
        if any(padding_bytes):
            entry.raw = self.data[row.begin : row.end].tobytes()
        yield entry


def explain(form: str, source: Source, offset: int) -> list[FieldView]:
    """Return the fields of the record that contains byte ``offset``, in file order.

    For long stretches (padding, damage) only the words around the byte are returned. Raises
    UsageError if the file has no such byte.
    """
    check_offset(source, offset)
    file = framed_file(form, source.data, Limits(), {})
    byte = int(file.byte_at(np.array([offset]))[0])
    blocks = file.blocks(whole=True)
    frames = next(block for block in blocks if block.end.size and block.end[-1] > byte)
    row = next(frames.take(frames.end > byte).rows())
    records = Records(file)
    record = next(records.of_row(row))
    views = list(RecordExplainer(records.data, byte).views(record, row))
    places = np.array([view.offset for view in views])
    offsets = file.place(places).tolist()
    return [attrs.evolve(view, offset=place) for view, place in zip(views, offsets, strict=True)]


explain_log, explain_legacy, explain_stream, explain_ring = (
    partial(explain, form) for form in FORMATS
)


class RecordExplainer(Explainer):
    """Explains the bytes of one record."""

    def views(self, record: LogFileRecord, row: Frames) -> Iterator[FieldView]:
        """Yield all fields of a record; a packet may have its length before it."""
        if isinstance(record, RingEntry):
            yield from self.entry(record, row)
        elif isinstance(record, Padding):
            yield from self.stretch(row.begin, row.end, "padding", wire.RECORDS, "zero bytes")
        elif isinstance(record, Damaged):
            yield from self.damaged(row.begin, row.end, RULES[record.code])
        else:
            if row.begin < row.start:
                yield from self.fields(wire.PacketLength, row.begin, row.start)
            yield from self.fields(type(record), row.start, row.end)

    def fields(self, cls: Any, begin: int, end: int) -> Iterator[FieldView]:
        """Yield the fields of the record in some bytes, and what is behind them."""
        views: list[FieldView] = []
        _, cursor = cls.unpack(self.data, begin, end, STATE, views, self.wanted)
        yield from views
        yield from self.stretch(cursor.at, end, "trailing", cls.layout.family.section)

    def entry(self, entry: RingEntry, row: Frames) -> Iterator[FieldView]:
        """Yield the fields of a ring's entry and of the record in it."""
        begin = row.start
        end = begin + entry.length
        views: list[FieldView] = []
        wire.RingFrame.unpack(self.data, row.begin, row.end, STATE, views)
        yield from (view for view in views if view.offset < begin)
        if entry.log is not None:
            begin += entry.log.nbytes
            yield from self.fields(LogRecord, row.start, begin)
        yield from self.stretch(begin, end, "payload", wire.RINGS)
        yield from self.stretch(end, row.end, "padding", wire.RINGS, "should be zero")
