"""Frames: the stretches of a file of logs: records, and what lies between them.

They are columns, for whatever reads thousands of them (``Frames``), or objects (``Records``), which
also show what the bytes of one mean (``explain``).
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from typing import Any, Final, NamedTuple

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_log import format as wire
from fx_log import rules
from fx_log.format import (
    STREAM_HEADER,
    STREAM_LENGTH,
    SUFFIX_BYTES,
    Argument,
    Attribution,
    LegacyPacket,
    LogRecord,
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
from fxframework.kernels.frames import Items
from fxframework.kit.explain import Explainer, check_offset
from fxframework.kit.scanned import FINDING_FIELDS
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
from fxframework.wire.state import State

__all__ = [
    "STATE",
    "Arguments",
    "FramedFile",
    "Frames",
    "Records",
    "behind_records",
    "explain",
]

I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
STATE: Final = State()
"""That of all log formats: no record says anything about the fields of others."""
ROOM: Final = 1 << 14
"""Most stretches of a block."""
BLOCK_BYTES: Final = 4 << 20
"""A block ends behind the first stretch that ends so many bytes after it began."""
ASKS: Final = 2
"""Why framing stops (``kernels.frames``): it does not say how long a record is."""
FAMILIES: Final = {
    "log": Structured,
    "log-ring": RingFrame,
    "log-legacy": StreamPacket,
    "log-legacy-stream": StreamPacket,
}
"""What the records of each format begin with."""
ARGUMENTS: Final = cache(partial(items_of, Argument.layout))
PACKETS: Final = cache(partial(items_of, LegacyPacket.layout))
"""What finds the items of records, where loops are compiled."""
Note = tuple[int, int, int, int]
"""A finding: the number of its rule, its offset, the number of its record, and a value."""


class Row(NamedTuple):
    """A stretch; the numbers are those of ``Frames``."""

    begin: int
    end: int
    offset: int
    start: int
    size: int
    suffix: int
    fault: int


@attrs.frozen(eq=False)
class Frames:
    """Stretches that follow one another, as columns of shape (stretches,).

    ``begin`` and ``end`` are bytes of ``FramedFile.data``, ``offset`` is that of the file. Of a
    record or packet, ``start`` and ``size`` tell where it is within its stretch, which may have an
    entry's header before it, or a suffix (else -1) behind it. ``fault`` is the number of the rule
    by which there is none, or 0.
    """

    begin: I64
    end: I64
    offset: I64
    start: I64
    size: I64
    suffix: I64
    tag: I64
    index: I64
    """Number of the record in the file."""
    fault: I64
    notes: I64
    """What the framer reports: rule, offset, number of the record, value; of shape (n, 4)."""

    @classmethod
    def none(cls) -> Frames:
        """Return no stretches."""
        nothing = np.zeros(0, np.int64)
        names = [field.name for field in attrs.fields(cls) if field.name != "notes"]
        return cls(**dict.fromkeys(names, nothing), notes=np.zeros((0, FINDING_FIELDS), np.int64))

    @classmethod
    def joined(cls, parts: list[Frames]) -> Frames:
        """Return the stretches of several blocks."""
        names = [field.name for field in attrs.fields(cls)]
        blocks = [cls.none(), *parts]
        return cls(
            **{name: np.concatenate([getattr(block, name) for block in blocks]) for name in names}
        )

    def take(self, rows: NDArray[Any] | slice) -> Frames:
        """Return some of the stretches."""
        names = (field.name for field in attrs.fields(Frames) if field.name != "notes")
        return attrs.evolve(self, **{name: getattr(self, name)[rows] for name in names})

    def with_notes(self, rule: Rule | I64, rows: I64, offset: I64, value: I64) -> Frames:
        """Return them with findings about some rows; of one rule, or each of its own."""
        if not rows.size:
            return self
        notes = np.empty((rows.size, FINDING_FIELDS), np.int64)
        notes[:, 0] = rule
        notes[:, 1] = offset
        notes[:, 2] = self.index[rows]
        notes[:, 3] = value
        return attrs.evolve(self, notes=np.concatenate((self.notes, notes)))

    def kinds(self, record: str) -> Counter[str]:
        """Return how many records there are of each kind; ``record`` is that of sound stretches."""
        is_padding = self.fault == rules.ZERO_WORDS
        is_record = (self.fault == 0) | (self.fault == rules.ENTRY_WITHOUT_RECORD)
        is_followed = (self.fault == 0) & (self.suffix >= 0)
        counts = {
            record: is_record,
            "attribution": is_followed,
            "padding": is_padding,
            "damaged": ~(is_record | is_padding),
        }
        return Counter({kind: int(np.count_nonzero(mask)) for kind, mask in counts.items()})

    def rows(self) -> Iterator[Row]:
        """Yield the stretches one by one."""
        columns = (getattr(self, name).tolist() for name in Row._fields)
        return map(Row._make, zip(*columns, strict=True))

    def sound(self) -> Frames:
        """Return those that are records."""
        return self.take(np.flatnonzero(self.fault == 0)) if self.fault.any() else self


@attrs.frozen(eq=False)
class Arguments:
    """Arguments of records: the row of each, its bytes, and the rule by which it is damaged."""

    record: I64
    begin: I64
    end: I64
    fault: I64

    def damaged(self) -> Arguments:
        """Return those that cannot be decoded."""
        return self.take(self.fault != 0)

    def sound(self) -> Arguments:
        """Return the others."""
        return self.take(self.fault == 0)

    def take(self, rows: NDArray[np.bool_]) -> Arguments:
        """Return some of the arguments."""
        return Arguments(self.record[rows], self.begin[rows], self.end[rows], self.fault[rows])


def behind_records(*, suffixed: bool) -> Items | None:
    """Return what follows each structured record: a suffix, if the file has them."""
    return items_of(Attribution.layout) if suffixed else None


class FramedFile:
    """A file of logs: the bytes that its records lie in, in the order of reading.

    ``options`` are those of the reader. With ``splits``, for salvage, damage ends where sound
    records follow that a size hides.
    """

    def __init__(
        self,
        form: str,
        data: U8,
        limits: Limits,
        options: Mapping[str, Any],
        *,
        splits: bool = False,
    ) -> None:
        self.form = form
        self.ring: Ring | None = None
        self.whole = data
        """The file."""
        self.data = data
        """The file; of a ring, what lies between its tail and its head, a copy if it wraps."""
        if form == "log-ring":
            self.ring = Ring(data)
            self.data = self.ring.line(0, max(0, self.ring.used))
        self.suffixed = form == "log" and bool(options.get("suffix"))
        self.has_arguments = form in ("log", "log-ring")
        self.record = {"log": "log", "log-ring": "ring_entry"}.get(form, "legacy_packet")
        """The kind of sound records."""
        self.most = 0
        """The most bytes of a record; 0 for any number."""
        if form == "log":
            self.most = limits.max_record
        self.splits = splits
        framed = self.data
        self.words = np.zeros(0, np.int64)
        """The whole words of the data; none of packets, which are at any byte."""
        if self.has_arguments:
            framed = self.data[: self.data.size // WORD * WORD]
            self.words = framed.view("<i8")
        behind = behind_records(suffixed=self.suffixed)
        self.frames = frames_of_records(framed, FAMILIES[form], behind=behind)
        self.frames.splitting = int(splits)
        self.position = 0
        """The bytes of ``data`` whose stretches were found."""
        if form == "log-legacy-stream":
            self.position = min(STREAM_HEADER, self.data.size)
        self.index = 0
        """Number of the next record."""
        self.noted: list[Note] = []
        """Findings that go with the next block."""

    def note(self, rule: int, offset: int, value: int = 0) -> None:
        """Report a finding about the next record."""
        self.noted.append((int(rule), offset, self.index, value))

    def take_notes(self) -> I64:
        """Return the findings that were reported, of shape (n, 4), and forget them."""
        notes = np.array(self.noted, np.int64).reshape(-1, FINDING_FIELDS)
        self.noted = []
        return notes

    def place(self, byte: I64) -> I64:
        """Return offsets in the file of bytes of ``data``, which in a ring may wrap around."""
        return byte if self.ring is None else self.ring.place(byte)

    def blocks(self, nbytes: int | None = None) -> Iterator[Frames]:
        """Yield all stretches, ROOM or some ``nbytes`` (by default BLOCK_BYTES) at a time."""
        frames_of = {"log": self.logs, "log-ring": self.entries}.get(self.form, self.packets)
        is_over = False
        while not is_over:
            yield frames_of(*self.stretches(self.position + (nbytes or BLOCK_BYTES)))
            is_over = self.position >= self.data.size

    def stretches(self, until: int) -> tuple[I64, I64, I64]:
        """Return the next stretches up to a byte: begins, sizes, and entries (``wire.framing``)."""
        frames = self.frames
        if self.form == "log-legacy":  # one packet, without a length before it
            self.position = self.data.size
            begin = np.zeros(min(1, self.data.size), np.int64)
            return begin, begin + self.data.size, begin
        count, reason = frames.read(self.position, ROOM, until)
        begin = frames.places[:count].copy()
        size = frames.sizes[:count].copy()
        entry = frames.entries[:count].astype(np.int64)
        self.position = frames.next
        if reason == ASKS:
            # A length goes beyond the end: what is behind it, only salvage looks for.
            damage = self.position
            self.position = frames.total
            if self.splits:
                self.position = frames.next_fitting(damage + 1, damage)
            begin = np.append(begin, damage)
            size = np.append(size, self.position - damage)
            entry = np.append(entry, CUT)
        odd_bytes = self.data.size - frames.total
        if odd_bytes and self.position == frames.total:
            # They belong to damage before them, if there is any.
            if entry.size and entry[-1] in (CUT, BAD_SIZE, NO_KIND):
                size[-1] += odd_bytes
            else:
                begin = np.append(begin, self.position)
                size = np.append(size, odd_bytes)
                entry = np.append(entry, CUT)
            self.position = self.data.size
        return begin, size, entry

    def logs(self, begin: I64, size: I64, entry: I64) -> Frames:
        """Return the stretches of structured records, each with the suffix behind it."""
        end = begin + size
        suffix = np.full(begin.size, -1)
        if self.suffixed:
            is_suffix = entry == BEHIND
            followed = np.flatnonzero(is_suffix[1:])
            followed -= np.arange(followed.size)  # as many suffixes come before each record
            suffix_begin = begin[is_suffix]
            suffix_end = end[is_suffix]
            begin, size, entry, end, suffix = (
                column[~is_suffix] for column in (begin, size, entry, end, suffix)
            )
            end[followed] = suffix_end
            suffix[followed] = suffix_begin
        is_odd = begin >= self.frames.total  # bytes behind the last whole word
        fault = np.zeros(begin.size, np.int64)
        head = fault.copy()
        head[~is_odd] = self.words[begin[~is_odd] // WORD]
        value = wire.SIZE.get(head)
        if (entry < 0).any() or self.most > 0:
            type_of = wire.TYPE.get(head)
            stated = wire.SIZE.get(head)
            words_left = (self.frames.total - begin) // WORD
            # Of several rules that hold, the last one is that of the stretch.
            for rule, is_fault, number in (
                (rules.OVER_MAX_RECORD, (entry >= 0) & (self.most > 0) & (size > self.most), size),
                (rules.RECORD_TRUNCATED, entry < 0, stated),
                (rules.RECORD_TOO_SMALL, (entry < 0) & (stated < wire.MIN_RECORD_WORDS), stated),
                (rules.TIME_TRUNCATED, (entry < 0) & (words_left == 1), stated),
                (rules.NOT_A_RECORD, (entry < 0) & (type_of != wire.RECORD_TYPE), type_of),
                (rules.NOT_A_RECORD, entry == HIDING, type_of),
                (rules.ZERO_WORDS, entry == PADDING, size // WORD),
                (rules.ODD_BYTES, is_odd, size),
            ):
                fault[is_fault] = rule
                value[is_fault] = number[is_fault]
        columns = {
            "begin": begin, "end": end, "start": begin, "size": size, "suffix": suffix,
            "tag": wire.HEADER_TAG.get(head), "fault": fault,
        }  # fmt: skip
        frames = self.framed(columns, value)
        if not self.suffixed:
            return frames
        room = self.frames.total - end
        rows = np.flatnonzero((fault == 0) & (suffix < 0) & (room >= SUFFIX_BYTES))
        nbytes = np.array(
            [wire.suffix_size(word) for word in self.words[end[rows] // WORD].tolist()]
        )
        return frames.with_notes(rules.SUFFIX_TRUNCATED, rows, end[rows], nbytes)

    def entries(self, begin: I64, size: I64, entry: I64) -> Frames:
        """Return the entries of a ring, with the record in each."""
        words = self.words
        first_word = begin // WORD
        has_header = first_word + 2 <= words.size
        length = np.zeros(begin.size, np.int64)
        length[has_header] = words[first_word[has_header] + 1]
        start = begin + wire.RING_ENTRY
        head = np.zeros(begin.size, np.int64)
        has_head = (entry >= 0) & (length >= wire.MIN_RECORD_WORDS * WORD)
        head[has_head] = words[start[has_head] // WORD]
        record_size = wire.SIZE.get(head) * WORD
        is_record = has_head & (wire.TYPE.get(head) == wire.RECORD_TYPE)
        is_record &= (record_size >= wire.MIN_RECORD_WORDS * WORD) & (record_size <= length)
        fault = np.zeros(begin.size, np.int64)
        fault[~is_record] = rules.ENTRY_WITHOUT_RECORD
        fault[entry < 0] = rules.ENTRY_TOO_LONG
        fault[~has_header] = rules.ENTRY_TOO_SMALL
        columns = {
            "begin": begin, "end": begin + size, "start": start,
            "size": np.where(is_record, record_size, 0), "suffix": np.full(begin.size, -1),
            "tag": words[first_word], "fault": fault,
        }  # fmt: skip
        frames = self.framed(columns, length)
        trailing = length - record_size
        has_more = np.flatnonzero(is_record & (trailing > 0))
        padded = np.flatnonzero((entry >= 0) & (length % WORD != 0))
        last_words = words[(begin + size)[padded] // WORD - 1]
        padded = padded[last_words >> length[padded] % WORD * 8 != 0]
        nothing = np.zeros(padded.size, np.int64)
        return frames.with_notes(
            rules.ENTRY_TRAILING_BYTES, has_more, frames.offset[has_more], trailing[has_more]
        ).with_notes(rules.ENTRY_PADDING_NOT_ZERO, padded, frames.offset[padded], nothing)

    def packets(self, begin: I64, size: I64, entry: I64) -> Frames:
        """Return legacy packets; those of a container have their length before them."""
        start = begin
        length = size
        end = begin + size
        if self.form == "log-legacy-stream":
            start = begin + STREAM_LENGTH
            length = size - STREAM_LENGTH
        # The rules in descending order: the last one that holds of a packet is that of its fault.
        fault = np.zeros(begin.size, np.int64)
        is_there = (entry >= 0) & (length >= wire.MIN_PACKET)
        fault[is_there] = PACKETS().faults(self.data, start[is_there], end[is_there])
        is_open = is_there.copy()
        is_open[is_there] = self.data[end[is_there] - 1] != 0
        fault[is_open] = rules.PACKET_NOT_TERMINATED
        fault[~is_there] = rules.PACKET_TOO_SHORT
        fault[entry < 0] = rules.PACKET_TRUNCATED
        for row in np.flatnonzero(entry < 0).tolist():
            stated = self.data[begin[row] : start[row]].tobytes()
            length[row] = 0
            if len(stated) == STREAM_LENGTH:
                length[row] = int.from_bytes(stated, "little")
        nothing = np.zeros_like(begin)
        columns = {
            "begin": begin, "end": end, "start": start, "size": length, "suffix": nothing - 1,
            "tag": nothing, "fault": fault,
        }  # fmt: skip
        return self.framed(columns, length)

    def framed(self, columns: dict[str, I64], value: I64) -> Frames:
        """Return frames; a finding about each that is not a record shows its ``value``."""
        fault = columns["fault"]
        counts = 1 + ((columns["suffix"] >= 0) & (fault == 0))
        index = self.index + np.cumsum(counts) - counts
        self.index += int(counts.sum())
        offset = self.place(columns["begin"])
        frames = Frames(**columns, offset=offset, index=index, notes=self.take_notes())
        rows = np.flatnonzero(fault)
        return frames.with_notes(fault[rows], rows, offset[rows], value[rows])

    def arguments(self, records: Frames) -> Arguments:
        """Return the arguments of structured records."""
        starts = records.start + wire.MIN_RECORD_WORDS * WORD
        data = self.data[: self.frames.total]
        return Arguments(*ARGUMENTS().chains(data, starts, records.start + records.size))


# --- Objects --------------------------------------------------------------------------------------


class Records:
    """The records of a file as objects, in reading order."""

    def __init__(self, file: FramedFile) -> None:
        self.file = file
        self.data = view_of(file.data)
        """The bytes that frames are in."""
        # Not bound methods, which would keep the mapped file until garbage is collected.
        readers = {"log": Records.log, "log-ring": Records.entry}
        self.read_form = readers.get(file.form, Records.packet)

    def __iter__(self) -> Iterator[LogFileRecord]:
        """Yield every record, padding and damage too; their sizes add up to that of the file."""
        yield from self.opening()
        for frames in self.file.blocks():
            for row in frames.rows():
                yield from self.of_row(row)
        yield from self.rest()

    def of_row(self, row: Row) -> Iterator[LogFileRecord]:
        """Return the records of a frame."""
        if not row.fault or row.fault == rules.ENTRY_WITHOUT_RECORD:
            return self.read_form(self, row)
        if row.fault == rules.ZERO_WORDS:
            return iter([Padding(offset=row.offset, nbytes=row.end - row.begin)])
        rule = RULES.numbered(row.fault)
        return iter([self.damaged(rule, row.offset, self.data[row.begin : row.end])])

    def damaged(self, rule: Rule, offset: int, data: memoryview) -> Damaged:
        """Return a damaged stretch."""
        return Damaged(offset=offset, nbytes=len(data), code=rule.code, raw=data)

    def log(self, row: Row) -> Iterator[LogFileRecord]:
        """Yield a structured record, and its suffix."""
        record, _ = LogRecord.unpack(self.data, row.start, row.start + row.size, STATE)
        if row.suffix >= 0:
            record.suffix, _ = Attribution.unpack(self.data, row.suffix, row.end, STATE)
            record.suffix.row_offset = record.offset
        yield record
        if record.suffix is not None:
            yield record.suffix

    def packet(self, row: Row) -> Iterator[LogFileRecord]:
        """Yield a packet, with its length if it has one."""
        packet, c = LegacyPacket.unpack(self.data, row.start, row.end, STATE)
        is_whole = c.at == row.end and row.size <= wire.MAX_PACKET
        packet.offset = row.offset
        packet.nbytes = row.end - row.begin
        packet.raw = None if is_whole else self.data[row.begin : row.end].tobytes()
        yield packet

    def entry(self, row: Row) -> Iterator[LogFileRecord]:
        """Yield an entry of a ring, which may have no record."""
        nbytes = row.end - row.begin
        frame, _ = wire.RingFrame.unpack(self.data, row.begin, row.end, STATE)
        entry = RingEntry(offset=row.offset, nbytes=nbytes, tag=frame.tag, payload=frame.payload)
        padding = self.data[row.start + len(frame.payload) : row.end]
        if row.size:
            log, _ = LogRecord.unpack(self.data, row.start, row.start + row.size, STATE)
            parts: list[Any] = [log, *log.args]
            places = self.file.place(np.array([part.offset for part in parts])).tolist()
            for part, place in zip(parts, places, strict=True):
                part.offset = place  # where in the file it is, which may be before the entry
            entry.log = log
            entry.payload = frame.payload[row.size :]
        if any(padding):
            entry.raw = self.data[row.begin : row.end].tobytes()
        yield entry

    # --- Before and behind the frames

    def opening(self) -> Iterator[LogFileRecord]:
        """Yield what is before the first frame: a header, or damage in its place."""
        whole = view_of(self.file.whole)
        ring = self.file.ring
        size = min(len(whole), wire.RING_PAGE if ring else STREAM_HEADER)
        if self.file.form not in ("log-ring", "log-legacy-stream") or not size:
            return
        header = whole[:size]
        if ring is None and not StreamHeader.begins(header.tobytes()):
            yield self.damaged(rules.CONTAINER_HEADER, 0, header)
        elif ring is not None and size < wire.RING_PAGE:
            yield self.damaged(rules.INVALID_RING, 0, header)
        else:
            cls = StreamHeader if ring is None else RingHeader
            yield cls.unpack(header, 0, size, STATE)[0]
            if ring is not None and ring.used < 0 and ring.capacity:
                yield self.damaged(rules.INVALID_RING, size, whole[size:])

    def rest(self) -> Iterator[LogFileRecord]:
        """Yield the space of a ring between head and tail, if there is any."""
        ring = self.file.ring
        if ring is not None and 0 <= ring.used < ring.capacity:
            data = ring.line(ring.used, ring.capacity)
            offset = ring.place(ring.used)
            if data.any():
                yield self.damaged(rules.STALE_BYTES, offset, data.data)
            else:
                yield Padding(offset=offset, nbytes=data.size)

    # --- The record at a byte

    def at(self, offset: int) -> RecordAt:
        """Return the record that contains a byte of the file."""
        ring = self.file.ring
        for record in self.opening():
            end = record.offset + record.nbytes
            if offset < end:
                data = view_of(self.file.whole)[record.offset : end]
                place = partial(operator.add, record.offset)
                return RecordAt(record, data, offset - record.offset, place)
        byte = offset if ring is None else ring.distance(offset)
        if ring is not None and byte >= ring.used:
            used = ring.used
            data = view_of(ring.line(used, ring.capacity))
            return RecordAt(next(self.rest()), data, byte - used, lambda at: ring.place(used + at))
        frames = next(each for each in self.file.blocks() if each.end.size and each.end[-1] > byte)
        row = next(frames.take(frames.end > byte).rows())
        begin = row.begin
        record, *suffix = self.of_row(row)
        if suffix and byte >= row.suffix:
            record = suffix[0]
            begin = row.suffix
        data = self.data[begin : begin + record.nbytes]

        def place_in_file(byte_of_record: int) -> int:
            place: int = self.file.place(np.array([begin + byte_of_record])).item()
            return place

        return RecordAt(record, data, byte - begin, place_in_file)


class RecordAt(NamedTuple):
    """A record of a file, with its bytes."""

    record: LogFileRecord
    data: memoryview
    wanted: int
    """The byte of it that was asked for."""
    place: Callable[[int], int]
    """Returns the offset in the file of a byte of it."""


def explain(form: str, source: Source, offset: int) -> list[FieldView]:
    """Return the fields of the record that contains byte ``offset``, in file order.

    For long stretches (padding, damage) only the words around the byte are returned. Raises
    UsageError if the file has no such byte.
    """
    check_offset(source, offset)
    file = FramedFile(form, source.data, Limits(), {})
    found = Records(file).at(offset)
    views = RecordExplainer(found.data, found.wanted, form).views(found.record)
    return [attrs.evolve(view, offset=found.place(view.offset)) for view in views]


explain_log, explain_legacy, explain_stream, explain_ring = (
    partial(explain, form) for form in FORMATS
)


class RecordExplainer(Explainer):
    """Explains the bytes of one record, with offsets from its start."""

    def __init__(self, data: memoryview, wanted: int, form: str) -> None:
        super().__init__(data, wanted)
        self.form = form

    def views(self, record: LogFileRecord) -> Iterator[FieldView]:
        """Yield all fields of a record."""
        end = len(self.data)
        if isinstance(record, RingEntry):
            yield from self.entry(record)
        elif isinstance(record, Padding):
            yield from self.stretch(0, end, "padding", wire.RECORDS, "zero bytes")
        elif isinstance(record, Damaged):
            yield from self.damaged(0, end, RULES[record.code])
        elif self.form == "log-legacy-stream" and isinstance(record, LegacyPacket):
            yield from self.fields(wire.PacketLength, 0, wire.STREAM_LENGTH)
            yield from self.fields(LegacyPacket, wire.STREAM_LENGTH, end)
        else:
            yield from self.fields(type(record), 0, end)

    def fields(self, cls: Any, begin: int, end: int) -> Iterator[FieldView]:
        """Yield the fields of the record in some bytes, and what is behind them."""
        views: list[FieldView] = []
        _, c = cls.unpack(self.data, begin, end, STATE, views, self.wanted)
        yield from views
        yield from self.stretch(c.at, end, "trailing", cls.layout.family.section)

    def entry(self, entry: RingEntry) -> Iterator[FieldView]:
        """Yield the fields of a ring's entry and of the record in it."""
        begin = wire.RING_ENTRY
        end = begin + entry.length
        views: list[FieldView] = []
        wire.RingFrame.unpack(self.data, 0, len(self.data), STATE, views)
        yield from (view for view in views if view.offset < begin)
        if entry.log is not None:
            yield from self.fields(LogRecord, begin, begin + entry.log.nbytes)
            begin += entry.log.nbytes
        yield from self.stretch(begin, end, "payload", wire.RINGS)
        yield from self.stretch(end, len(self.data), "padding", wire.RINGS, "should be zero")
