"""Blocks: the records of a log file as columns, thousands at a time, and what is wrong in them.

``frames`` has the records, declarations (``fx_log.format``) say where their fields lie, and
``fx_log.meaning`` makes rows of them. Each block has the rows of the tables, and the findings about
its records in the order of the file.
"""

from __future__ import annotations

import abc
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final, Protocol

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_log import format as wire
from fx_log import rules, tables
from fx_log.format import ArgType, Argument, Attribution, LegacyPacket, LogRecord, RingFrame
from fx_log.meaning import DAMAGED_TYPE, Arguments, LogRows, Logs, Meaning, Suffixes, is_level
from fx_log.read.frames import FramedFile, Frames
from fx_log.rules import RULES
from fxframework.errors import Rule
from fxframework.io.limits import Limits
from fxframework.io.words import WORD
from fxframework.kernels.arrays import I64, Bools, Codes
from fxframework.kernels.pools import codes_of
from fxframework.kernels.sorting import begins_of_runs
from fxframework.kernels.stretches import not_utf8
from fxframework.model.strings import StringPool
from fxframework.wire.findings import Findings, findings_of
from fxframework.wire.known import LENGTH, START
from fxframework.wire.known import WORD as HEADER
from fxframework.wire.many import Many, as_index

LOG = LogRecord.layout.by_name
ARGUMENT = Argument.layout.by_name
SUFFIX = Attribution.layout.by_name
PACKET = LegacyPacket.layout.by_name
HEAD: Final = tuple(field for name, field in LOG.items() if name != "args")
"""The fields of a record before its arguments."""
NUMBERS: Final = tuple(
    ARGUMENT["value"].kinds[kind]
    for kind in (ArgType.INT64, ArgType.UINT64, ArgType.DOUBLE, ArgType.BOOL)
)
"""The kinds of values that are a number."""
TEXT: Final = ARGUMENT["value"].kinds[ArgType.STRING]
OCTETS: Final = ARGUMENT["value"].other
"""The value of an argument of a type that logs do not have."""
RESERVED: Final = 105
"""The rule of wire for bits that are reserved."""
GREATEST_REFERENCE: Final = np.zeros(16, np.int64)
"""The greatest number that a header may have where that of a string refers to it, by type."""
GREATEST_REFERENCE[ArgType.STRING] = wire.INLINE | wire.MAX_STRING
GREATEST_REFERENCE[ArgType.BOOL] = 1
IS_FOREIGN: Final = ~np.isin(np.arange(16), list(ArgType))
"""Whether logs do not have a type."""
ABOUT_NAMES: Final = frozenset(
    (rules.WELL_KNOWN_OF_OTHER_TYPE, rules.WELL_KNOWN_TWICE, rules.ATTRIBUTION_NOT_LAST)
)
"""Rules whose findings show the name of an argument."""


class Counts:
    """How often numbers occur, such as codes."""

    def __init__(self) -> None:
        self.by_number = np.zeros(0, np.int64)

    def add(self, numbers: NDArray[np.integer]) -> None:
        """Count numbers from 0 on."""
        if not numbers.size:
            return
        least = int(numbers.min())
        counts = np.bincount(numbers - least)
        end = least + counts.size
        if end > self.by_number.size:
            grown = np.zeros(max(end, 2 * self.by_number.size), np.int64)
            grown[: self.by_number.size] = self.by_number
            self.by_number = grown
        self.by_number[least:end] += counts

    def most(self, listed: int) -> list[tuple[int, int]]:
        """Return the numbers that occur most, and how often, so many at most; equal ones ascend."""
        numbers = np.flatnonzero(self.by_number)
        counts = self.by_number[numbers]
        order = np.argsort(-counts, kind="stable")[:listed]
        return list(zip(numbers[order].tolist(), counts[order].tolist(), strict=True))


@attrs.define
class Totals:
    """Counts of the logs of a file, to which those of a block are added."""

    dropped: int = 0
    rolled_out: int = 0
    severities: Counts = attrs.field(factory=Counts)
    components: Counts = attrs.field(factory=Counts)
    tags: Counts = attrs.field(factory=Counts)
    """Numbers of logs by severity byte, and by the codes of components and tags."""

    def add(self, rows: LogRows) -> None:
        """Add the logs of a block."""
        columns = rows.logs
        self.dropped += exact_sum(columns["dropped"])
        self.rolled_out += exact_sum(columns["log_rolled_out"])
        component = columns["component"]
        self.severities.add(columns["severity"])
        self.components.add(component[component >= 0])
        self.tags.add(rows.tags.name)


def exact_sum(numbers: I64) -> int:
    """Return the sum of numbers that have no sign, each of which may take all 64 bits."""
    return sum(numbers[numbers != 0].view(np.uint64).tolist())


class BlockLines(Protocol):
    """What gets the records of each block that are read, such as ``lines.LineWriter``."""

    def structured(self, records: Many, arguments: BlockArguments, suffixes: Many | None) -> None:
        """Take structured records, or entries of a ring."""

    def packets(self, packets: Many) -> None:
        """Take packets."""


class BlockReader(abc.ABC):
    """Reads the records of a file; classes derived from it know their fields.

    ``options`` are those of the format's reader.
    """

    handed = 0
    """Number of records that were read as objects (``fxframework.wire.capture``)."""
    frames: Frames
    """The stretches of the block."""
    sound: Frames
    """The records of the block."""

    def __init__(
        self, file: FramedFile, strings: StringPool, limits: Limits, options: Mapping[str, Any]
    ) -> None:
        self.file = file
        self.data = file.data
        self.strings = strings
        self.meaning = Meaning(
            strings,
            in_entries=file.ring is not None,
            era_2022=options.get("severity_era") == "2022",
            with_printf=bool(options.get("printf")),
        )
        self.with_limits = bool(options.get("fidl_limits"))
        """Whether to report what the reference API refuses."""
        self.counts: Counter[str] = Counter()
        """Number of records of each kind."""
        self.totals = Totals()
        self.findings = Findings(limits.max_findings, RULES.numbers)
        self.for_lines = False
        """Whether lines are written of what is read."""

    @property
    def records(self) -> int:
        """Number of records that were read."""
        return self.file.index

    @property
    def kinds(self) -> dict[str, int]:
        """Number of records of each kind."""
        return {name: self.counts[name] for name in wire.KINDS if self.counts[name]}

    def blocks(
        self, nbytes: int | None = None, lines: BlockLines | None = None
    ) -> Iterator[tuple[LogRows, I64]]:
        """Yield the rows of each block, of some ``nbytes``, and its findings, of shape (n, 4).

        ``lines`` gets what is read of each block.
        """
        self.for_lines = lines is not None
        for frames in self.file.blocks(nbytes, whole=True):
            self.frames = frames
            self.counts += self.file.kinds(frames)
            self.sound = frames.sound()
            yield self._counted(self.read(lines))

    def _counted(self, rows: LogRows) -> tuple[LogRows, I64]:
        """Count the rows of a block and its findings; return both."""
        findings = self.file.findings()
        # In the order of records; what is behind the turn-around of a ring has smaller offsets.
        place = self.file.byte_at(findings[:, 1])
        order = np.lexsort((place, findings[:, 2]))
        self.totals.add(rows)
        self.findings.add(findings[order])
        return rows, findings[order]

    # --- The records of a block

    @abc.abstractmethod
    def read(self, lines: BlockLines | None) -> LogRows:
        """Return the rows of the records that the framer has found."""

    def report(
        self, rule: Rule, where: I64 | Bools, record: I64 | None, offset: I64, value: Any = None
    ) -> None:
        """Report findings about rows of these columns (``meaning.Report``)."""
        rows = as_index(where)
        left = self.findings.left_of(rule)
        if rows.size > left and (rows[1:] > rows[:-1]).all():
            # Of millions only the first ones are listed: the others are not put in order.
            self.findings.cut_off[rule] += rows.size - left
            rows = rows[:left]
        if not rows.size:
            return
        shown = 0 if value is None else value[rows]
        records = rows if record is None else record[rows]
        index = self.sound.index[records]
        found = findings_of(rule, offset[rows], index, shown, rows.size)
        self.file.notes.append(found)

    def shown(self, rule: Rule, value: int) -> object:
        """Return what a finding shows of its value."""
        if rule is rules.NOT_UTF8:
            return self.strings.bytes_of(value) if value else None
        if rule in ABOUT_NAMES:
            return self.strings[value]
        if rule is rules.INVALID_RING and self.file.ring is not None:
            return self.file.ring.detail()
        return value

    def many(self, layout: Any, starts: I64, limits: I64) -> Many:
        """Return records of a layout, to be read."""
        return self.file.many(layout, starts, limits, for_lines=self.for_lines)

    def enter(self, starts: I64, lengths: I64) -> Codes:
        """Return the codes of texts of the data, int32 of their shape."""
        codes: Codes = codes_of(self.strings.pool, self.data, starts, lengths)
        return codes

    def enter_field(self, many: Many, field: Any) -> Codes:
        """Return the codes of the texts of a field of many records."""
        return self.enter(many.known[field, START], many.known[field, LENGTH])

    def valid(self, codes: NDArray[np.integer]) -> Bools:
        """Return which strings of the pool are UTF-8."""
        is_valid: Bools = self.strings.pool.array("valid")[codes] != 0
        return is_valid


class LogBlocks(BlockReader):
    """Reads structured records."""

    tag_bits_reported = False

    def read(self, lines: BlockLines | None) -> LogRows:
        """Return the rows of the records that the framer has found."""
        sound = self.sound
        ends = sound.start + sound.size
        records = self.many(LogRecord.layout, sound.start, ends)
        records.read_fields(HEAD)
        tag_bits = records.known[LOG["tag_bits"]]
        spot = sound.start
        tag = tag_bits
        if self.file.ring is not None:
            spot = self.file.place(sound.start)
            (tag,) = self.file.numbers_of(RingFrame, sound.begin, "tag")
        suffixes = self.suffixes()
        logs = Logs(
            offset=sound.offset,
            spot=spot,
            tag_bits=tag_bits,
            severity=records.known[LOG["severity"]],
            ts=records.known[LOG["timestamp"]],
            tag=tag,
            suffixes=self.attributions(suffixes),
        )
        has_reserved_bits = self.check_headers(logs, records)
        arguments = BlockArguments(self, records)
        arguments.check(logs.spot, has_reserved_bits)
        if lines is not None:
            lines.structured(records, arguments, suffixes)
        return self.meaning.of_records(logs, arguments.columns(), self.report)

    def suffixes(self) -> Many | None:
        """Return the suffixes behind records, where suffixes are read."""
        if not self.file.suffixed:
            return None
        frames = self.sound.take(self.sound.suffix >= 0)
        many = self.many(Attribution.layout, frames.suffix, frames.end)
        Attribution.layout.read_many(many)
        return many

    def attributions(self, suffixes: Many | None) -> Suffixes | None:
        """Return what suffixes say."""
        if suffixes is None:
            return None
        record = np.flatnonzero(self.sound.suffix >= 0)
        moniker, url = (self.enter_field(suffixes, SUFFIX[name]) for name in ("moniker", "url"))
        return Suffixes(record, moniker, url, suffixes.known[SUFFIX["rolled_out"]])

    def check_headers(self, logs: Logs, records: Many) -> Bools:
        """Report what is odd in headers; return where reserved bits are set."""
        has_reserved_bits: Bools = records.known[LOG["_reserved"]] != 0
        header_words = records.known[HEAD[0], HEADER]
        severity = logs.severity
        self.report(rules.RESERVED_BITS, has_reserved_bits, None, logs.spot, header_words)
        self.report(rules.SEVERITY_NOT_A_LEVEL, ~is_level(severity), None, logs.spot, severity)
        first_tagged = np.flatnonzero(logs.tag_bits)[:1]
        if first_tagged.size and not self.tag_bits_reported:
            self.tag_bits_reported = True
            self.report(rules.TAG_BITS, first_tagged, None, logs.spot, logs.tag_bits)
        return has_reserved_bits


class BlockArguments:
    """The arguments of a block's records; columns have the shape (arguments,)."""

    def __init__(self, reader: LogBlocks, records: Many) -> None:
        self.reader = reader
        places = reader.file.arguments(reader.sound)
        self.record = places.record
        self.fault = places.fault
        self.is_sound: Bools = places.fault == 0
        self.all_sound = bool(self.is_sound.all())
        starts = places.begin
        self.offset = reader.file.place(starts)
        limits = records.limit[self.record]
        if reader.for_lines:
            # As parts of their records, which are marked where an argument says that they must be.
            self.first_of_record = np.searchsorted(self.record, np.arange(records.start.size))
            index = np.arange(starts.size) - self.first_of_record[self.record]
            self.many = records.items(Argument.layout, starts, limits, self.record, index)
        else:
            self.many = reader.many(Argument.layout, starts, limits)
        Argument.layout.read_many(self.many)
        known = self.many.known
        self.type: I64 = known[ARGUMENT["type"]]
        self.name_reference: I64 = known[ARGUMENT["_name_ref"]]
        self.value_reference: I64 = known[ARGUMENT["_value_ref"]]
        self.has_name = self.names_fit()
        self.name = np.zeros(starts.size, np.int32)
        self.enter(self.name, ARGUMENT["name"], self.has_name)
        self.is_message = self.name == tables.MESSAGE
        self.is_message &= self.is_sound & (self.type == ArgType.STRING)
        self.text = np.zeros(starts.size, np.int64)
        """Codes of values that are texts or bytes, but for messages."""
        is_other = self.is_sound & ~self.is_message
        self.enter(self.text, TEXT, is_other)
        self.foreign = np.flatnonzero(IS_FOREIGN[self.type])
        """Rows of arguments whose type is one that logs do not have."""
        if self.foreign.size:
            self.enter(self.text, OCTETS, self.is_sound)

    def names_fit(self) -> Bools:
        """Return which arguments have a name, be it empty, whatever is wrong with their values."""
        if self.all_sound:
            return self.is_sound
        nbytes = self.name_sizes()
        name_end = self.many.start + WORD + nbytes + -nbytes % WORD
        is_reserved = (self.name_reference != 0) & (self.name_reference < wire.INLINE)
        fits: Bools = ~is_reserved & (name_end <= self.many.limit)
        return fits

    def name_sizes(self) -> I64:
        """Return the bytes of names, as headers say them."""
        nbytes: I64 = np.maximum(self.name_reference - wire.INLINE, 0)
        return nbytes

    def enter(self, codes: NDArray[np.integer], field: Any, rows: Bools) -> None:
        """Put the codes of the texts of a field into some rows."""
        starts, lengths = self.stretches(field)
        index = np.flatnonzero(rows & (lengths > 0))
        if index.size == codes.size:
            codes[:] = self.reader.enter(starts, lengths)
        else:
            codes[index] = self.reader.enter(starts[index], lengths[index])

    def stretches(self, field: Any) -> tuple[I64, I64]:
        """Return places and lengths of the texts of a field; of other arguments, 0."""
        known = self.many.known
        if (field, START) not in known:
            no_places = np.zeros(self.record.size, np.int64)
            return no_places, no_places
        return known[field, START], known[field, LENGTH]

    def columns(self) -> Arguments:
        """Return the arguments as ``fx_log.meaning`` takes them."""
        starts, lengths = self.stretches(TEXT)
        value = self.text.copy()
        for field in NUMBERS:
            if field in self.many.known:
                value |= self.many.known[field]  # zero for arguments of other types
        np.copyto(value, starts, where=self.is_message)
        type_or_damage = self.type.astype(np.uint8)
        name = self.name
        if not self.all_sound:
            type_or_damage[~self.is_sound] = DAMAGED_TYPE
            name = np.where(self.is_sound, name, np.int32(tables.EMPTY))
        return Arguments(self.record, self.offset, type_or_damage, name, value, lengths)

    # --- What is wrong

    def check(self, spot: I64, has_reserved_bits: Bools) -> None:
        """Report what is wrong with arguments.

        ``spot`` is the offset of each record; of those with reserved bits no more are reported.
        """
        self.check_words(has_reserved_bits)
        self.check_texts()
        if not self.all_sound:
            for number in np.unique(self.fault[self.fault != 0]).tolist():
                self.report(RULES.numbered(number), self.fault == number, self.type)
        if self.reader.with_limits:
            self.check_limits(spot)

    def report(self, rule: Rule, where: I64 | Bools, value: I64 | Codes | None = None) -> None:
        """Report a finding about some arguments; ``value`` is a column of all."""
        self.reader.report(rule, where, self.record, self.offset, value)

    def first_in_record(self, rows: I64) -> I64:
        """Return those rows that are the first of their record."""
        return rows[begins_of_runs(self.record[rows])]

    def noted(self, number: int) -> I64:
        """Return the rows about which wire has a note by a rule, in order."""
        rows = [np.zeros(0, np.int64)]
        for note in self.many.reading.notes:
            if note.number != number:
                continue
            if self.many.index is None:
                rows.append(note.rows)
                continue
            # Parts share their notes with their records, of which no item is noted.
            is_part = note.items >= 0
            rows.append(self.first_of_record[note.rows[is_part]] + note.items[is_part])
        return np.sort(np.concatenate(rows))

    def check_words(self, has_reserved_bits: Bools) -> None:
        """Report header words that say more, or something else, than the argument has."""
        known = self.many.known
        # Where the header of a string refers to its value, others have nothing, or a bool's bit.
        is_strange = self.value_reference > GREATEST_REFERENCE[self.type]
        is_strange[self.noted(RESERVED)] = True
        strange_rows = np.flatnonzero(is_strange)
        strange_rows = strange_rows[~has_reserved_bits[self.record[strange_rows]]]
        header_words = known[ARGUMENT["type"], HEADER]
        self.report(rules.RESERVED_BITS, self.first_in_record(strange_rows), header_words)
        of_traces = self.type[self.foreign] < ArgType.BOOL
        unknown = self.foreign[~of_traces]
        self.report(rules.UNKNOWN_TYPE, unknown, self.type)
        sound_foreign = self.foreign[of_traces & self.is_sound[self.foreign]]
        self.report(rules.TRACE_TYPE, sound_foreign, self.type)
        of_other_size = self.noted(int(rules.SIZE_DIFFERS))
        # Words of zeros at the end of a record read as arguments without a value.
        is_argument = self.is_sound[of_other_size] & (header_words[of_other_size] != 0)
        stated_words = known[ARGUMENT["_size_words"]]
        self.report(rules.SIZE_DIFFERS, of_other_size[is_argument], stated_words)

    def check_texts(self) -> None:
        """Report names and values that are empty, not UTF-8, or followed by more than zeros."""
        rows = np.flatnonzero(self.type == ArgType.NULL)
        self.report(rules.NULL_ARGUMENT, rows[self.has_name[rows]])
        rows = np.flatnonzero(self.name_reference <= wire.INLINE)
        reference = self.name_reference[rows]
        rows = rows[(reference == 0) | (reference == wire.INLINE)]
        is_null = self.type[rows] == ArgType.NULL
        self.report(rules.EMPTY_NAME, rows[~is_null])
        is_inline = self.name_reference[rows] != 0
        self.report(rules.EMPTY_INLINE_STRING, rows[is_inline])
        rows = np.flatnonzero(self.value_reference == wire.INLINE)
        is_text = self.is_sound[rows] & (self.type[rows] == ArgType.STRING)
        self.report(rules.EMPTY_INLINE_STRING, rows[is_text])
        unpadded = self.noted(int(rules.PADDING_NOT_ZERO))
        self.report(rules.PADDING_NOT_ZERO, self.first_in_record(unpadded))
        if self.noted(int(rules.NOT_UTF8)).size:
            is_strange = self.has_name & ~self.reader.valid(self.name)
            self.report(rules.NOT_UTF8, is_strange, self.name)
            is_strange = ~self.reader.valid(self.text)
            is_strange[self.foreign] = False
            self.report(rules.NOT_UTF8, is_strange, self.text)
            self.check_messages()

    def check_messages(self) -> None:
        """Report messages that are not UTF-8: of the first of a record, it is another finding."""
        starts, lengths = self.stretches(TEXT)
        rows = np.flatnonzero(self.is_message)
        is_strange = not_utf8(self.reader.data, starts[rows], lengths[rows])
        strange_rows = rows[is_strange]
        if strange_rows.size:
            is_first = np.zeros(self.record.size, np.bool_)
            is_message_name = self.name == tables.MESSAGE
            named_message = np.flatnonzero(self.has_name & is_message_name)
            is_first[self.first_in_record(named_message)] = True
            self.report(rules.MESSAGE_NOT_UTF8, strange_rows[is_first[strange_rows]])
            self.report(rules.NOT_UTF8, strange_rows[~is_first[strange_rows]])

    def check_limits(self, spot: I64) -> None:
        """Report what the reference API refuses."""
        name_sizes = self.name_sizes()
        is_long = self.is_sound & (name_sizes > wire.FIDL_NAME_BYTES)
        self.report(rules.LONG_NAME, is_long, name_sizes)
        counts = np.bincount(self.record, minlength=spot.size)
        is_crowded = counts > wire.FIDL_ARGUMENTS
        self.reader.report(rules.MANY_ARGUMENTS, is_crowded, None, spot, counts)


class PacketBlocks(BlockReader):
    """Reads legacy packets."""

    def read(self, lines: BlockLines | None) -> LogRows:
        """Return the rows of the packets that the framer has found."""
        starts = self.sound.start
        sizes = self.sound.size
        offset = self.sound.offset
        packets_read = self.many(LegacyPacket.layout, starts, starts + sizes)
        LegacyPacket.layout.read_many(packets_read)
        if lines is not None:
            lines.packets(packets_read)
        known = packets_read.known
        message_start = known[PACKET["message"], START]
        message_length = known[PACKET["message"], LENGTH]
        severity = known[PACKET["severity"]]
        columns = {
            "offset": offset,
            "ts": known[PACKET["timestamp"]],
            "severity": severity,
            "pid": known[PACKET["pid"]],
            "tid": known[PACKET["tid"]],
            "dropped": known[PACKET["dropped_logs"]],
            "message_start": message_start,
            "message_length": message_length,
        }
        tags = self.tags(packets_read)
        is_strange = not_utf8(self.data, message_start, message_length)
        is_strange[tags.record[~self.valid(tags.name)]] = True
        bytes_behind = starts + sizes - message_start - message_length - 1
        for rule, mask, value in (
            (rules.OVER_A_DATAGRAM, sizes > wire.MAX_PACKET, sizes),
            (rules.SEVERITY_OF_ERAS, ~is_level(severity), severity),
            (rules.TRAILING_BYTES, bytes_behind > 0, bytes_behind),
            (rules.PACKET_NOT_UTF8, is_strange, None),
        ):
            self.report(rule, mask, None, offset, value)
        return self.meaning.of_packets(columns, tags, self.report)

    def tags(self, packets: Many) -> Arguments:
        """Return the tags of packets, in the order of the file."""
        field = PACKET["tags"]
        # A group has the first tags of packets, the next one the second tags, and so on.
        groups = packets.items_of(field)
        no_rows = np.zeros(0, np.int64)
        record = np.concatenate([no_rows, *(group.rows for group in groups)])
        starts = np.concatenate([no_rows, *(group.known[field, START] for group in groups)])
        lengths = np.concatenate([no_rows, *(group.known[field, LENGTH] for group in groups)])
        order = np.argsort(starts, kind="stable")
        starts = starts[order]
        no_values = np.broadcast_to(np.int64(0), starts.size)
        return Arguments(
            record=record[order],
            offset=starts - field.size.nbytes,
            type=np.broadcast_to(np.uint8(ArgType.STRING), starts.size),
            name=self.enter(starts, lengths[order]),
            value=no_values,
            nbytes=no_values,
        )


# --- Files of each format -------------------------------------------------------------------------


def enter_known(strings: StringPool) -> None:
    """Begin a pool with the strings that blocks know by code."""
    for text in (*tables.WELL_KNOWN, *tables.LEVEL_NAMES):
        strings.pool.enter(text)


def reader_of(
    file: FramedFile, strings: StringPool, limits: Limits, options: Mapping[str, Any]
) -> BlockReader:
    """Return what reads a file; ``options`` are those of the reader of its format."""
    reader = LogBlocks if file.has_arguments else PacketBlocks
    return reader(file, strings, limits, options)
