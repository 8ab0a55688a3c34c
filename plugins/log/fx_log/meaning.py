"""Meaning: the rows that log records make, from what their arguments say.

Names such as ``pid`` and ``message`` are columns of `logs`, tags are rows of `log_tags`, and all
other arguments are rows of `args`. A control record names the component of a tag (a manifest), or
counts logs that were lost. All of this works on columns of many records, in reading order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, Protocol

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_log import format as wire
from fx_log import rules, tables
from fx_log.format import ArgType
from fx_log.severity import Level, legacy_level
from fxframework.errors import Rule
from fxframework.kernels.arrays import I64, Bools, Codes
from fxframework.kernels.pools import PairMap, codes_of
from fxframework.kernels.sorting import begins_of_runs, ends_of_runs, joined_ranges
from fxframework.model.strings import StringPool
from fxframework.wire.state import SPAN, Registrations

DAMAGED_TYPE: Final = 255
"""The type of an argument that could not be decoded; it has neither name nor value."""
PAIR: Final = 1 << 32
"""Two numbers below it, of which one is multiplied by it, make one that is of no other pair."""
NO_MEANING: Final = len(tables.WELL_KNOWN)
"""Codes from here on are of names that mean nothing to logs."""
WELL_KNOWN_TYPES: Final = {tables.CODES[name]: kind for name, kind in wire.WELL_KNOWN.items()}
"""The types that names must have whose values are not rows of `args`."""
ATTRIBUTION_TYPES: Final = {tables.CODES[name]: kind for name, kind in wire.ATTRIBUTION.items()}
"""Those of what the archivist appends to the arguments of a log."""
LOSS_NAMES: Final = tuple(tables.CODES[name] for name in wire.LOSSES)
FIELDS: Final = tuple(name for name in WELL_KNOWN_TYPES if name not in (tables.TAG, *LOSS_NAMES))
"""Names that a log has once, each a column of `logs`."""
GIVEN_BITS: Final[Mapping[int, int]] = {
    tables.MESSAGE: tables.GIVEN_MESSAGE,
    tables.PID: tables.GIVEN_PID,
    tables.TID: tables.GIVEN_TID,
    tables.LINE: tables.GIVEN_LINE,
}
"""Bits of the column ``log_given``, by the name that sets them."""
PACKET_GIVES: Final = tables.GIVEN_MESSAGE | tables.GIVEN_PID | tables.GIVEN_TID
LEAST_SEVERITY = wire.LEGACY_SEVERITIES.start - 1
MOST_SEVERITY = 255
"""Severities of packets below and above mean the same as these."""


def types_by_name(types: Mapping[int, ArgType]) -> NDArray[np.uint8]:
    """Return the type that a name must have, by its code; one that no argument has for others."""
    by_name = np.full(NO_MEANING + 1, DAMAGED_TYPE - 1, np.uint8)
    by_name[list(types)] = list(types.values())
    return by_name


WELL_KNOWN_TYPE: Final = types_by_name(WELL_KNOWN_TYPES)
ATTRIBUTION_TYPE: Final = types_by_name(ATTRIBUTION_TYPES)
IS_WELL_KNOWN, IS_ATTRIBUTION, COUNTS_LOSSES = range(1, 4)
ROLE: Final = np.zeros(NO_MEANING + 1, np.uint8)
"""What a name is for, by its code; 0 for an ordinary key."""
ROLE[list(WELL_KNOWN_TYPES)] = IS_WELL_KNOWN
ROLE[list(ATTRIBUTION_TYPES)] = IS_ATTRIBUTION
ROLE[tables.ROLLED_OUT] = COUNTS_LOSSES
IS_LOSS: Final = np.isin(np.arange(NO_MEANING + 1), LOSS_NAMES)
"""Whether a name counts logs that were dropped, by its code."""


def is_level(severity: I64) -> Bools:
    """Return which severities are one of the six levels."""
    step = int(Level.DEBUG) - int(Level.TRACE)
    within = (severity >= Level.TRACE) & (severity <= Level.FATAL)
    is_one: Bools = within & (severity % step == 0)
    return is_one


class Report(Protocol):
    """Takes the findings by one rule about some rows of a block."""

    def __call__(
        self, rule: Rule, where: I64 | Bools, record: I64 | None, offset: I64, value: Any = None
    ) -> None:
        """Report findings about rows, an index or a mask, of columns.

        These are the numbers of records in the block (None: each row is a record), their offsets,
        and what findings show (``value``; None: 0 for all).
        """


# --- What is read of a block ----------------------------------------------------------------------


@attrs.frozen
class Suffixes:
    """The attribution behind some records of a block; columns have the shape (suffixes,)."""

    record: I64
    """Number of the record in the block, ascending."""
    moniker: Codes
    url: Codes
    rolled_out: I64


@attrs.frozen
class Logs:
    """Structured records of a block; columns have the shape (records,)."""

    offset: I64
    """Byte offset in the file; of a ring, that of the entry."""
    spot: I64
    """Byte offset of the record itself."""
    tag_bits: I64
    severity: I64
    ts: I64
    tag: I64
    """The tag bits; of a ring, the entry's whole tag."""
    suffixes: Suffixes | None = None


class Arguments(NamedTuple):
    """The arguments of a block's records, in order; columns have the shape (arguments,)."""

    record: I64
    """Number of the record in the block, ascending."""
    offset: I64
    """Byte offset in the file."""
    type: NDArray[np.uint8]
    name: Codes
    value: I64
    """The integer, the bits of a double, or the code of a string; of a message, its place."""
    nbytes: I64
    """Bytes of a message."""

    def take(self, rows: I64) -> Arguments:
        """Return some of the arguments."""
        columns: Iterator[Any] = (column.take(rows) for column in self)
        return Arguments(*columns)


# --- What it means --------------------------------------------------------------------------------


@attrs.frozen
class LogRows:
    """The rows of a block, as columns by name.

    Those of `logs` are named as in ``fx_log.tables``, with ``message_start`` and
    ``message_length`` (bytes of the file) in place of ``message``. ``record`` of `args`,
    `log_tags` and ``printf`` (the values for the format of a message) is a row of `logs` in the
    block.
    """

    logs: dict[str, NDArray[Any]]
    args: Arguments
    tags: Arguments
    printf: Arguments


@attrs.frozen
class Manifests:
    """The control records of a block that name a component; columns of shape (manifests,)."""

    record: I64
    tag: I64
    moniker: Codes
    url: Codes


class Components:
    """The component that each tag stands for, as manifests name them in the course of a file."""

    def __init__(self) -> None:
        self.monikers = Registrations()
        self.urls = Registrations()
        self.nameless = PairMap()
        """Tags of which it was reported that nothing names them."""

    def named(self, tags: I64, records: I64, manifests: Manifests) -> tuple[Codes, Codes]:
        """Return codes of moniker and URL for records with these tags; -1 where nothing names them.

        ``records`` are numbers in the block; ``manifests`` are those of the same block.
        """
        no_rows = manifests.record[:0]
        self.monikers.begin(manifests.record, manifests.tag, manifests.moniker, no_rows)
        self.urls.begin(manifests.record, manifests.tag, manifests.url, no_rows)
        moniker = self.monikers.find(tags, records)
        url = self.urls.find(tags, records)
        self.monikers.settle(SPAN)
        self.urls.settle(SPAN)
        return moniker, url

    def newly_nameless(self, tags: I64) -> I64:
        """Return the first row of each of these tags that was not reported before."""
        known_count = int(self.nameless.count)
        # Tags are numbered as they come, so that each new one has a number above all before it.
        numbers = self.nameless.enter(tags)
        with_last_known = np.append(known_count - 1, numbers)
        highest_before = np.maximum.accumulate(with_last_known)[:-1]
        return np.flatnonzero(numbers > highest_before)


class JoinedTags:
    """The tags of each log as one text, such as "a,b,c".

    A sequence of tags has a number, which follows from that of the sequence without its last tag.
    """

    def __init__(self, strings: StringPool) -> None:
        self.strings = strings
        self.sequences = PairMap()
        self.code = np.empty(0, np.int32)
        """Code of the joined text by number of a sequence; -1 where no log had it whole so far."""

    def codes(self, record: I64, tag: Codes, records: int) -> Codes:
        """Return the code of each of so many records (-1: no tag); ``record`` ascends."""
        count = np.bincount(record, minlength=records)
        first_tag = np.cumsum(count) - count
        joined = np.full(records, tables.NO_STRING, np.int32)
        tagged_records = np.flatnonzero(count)
        joined[tagged_records] = tag[first_tag[tagged_records]]  # one tag is its own text
        with_several = np.flatnonzero(count > 1)
        if with_several.size:
            first_of_several = first_tag[with_several]
            joined[with_several] = self.codes_of_several(first_of_several, count[with_several], tag)
        return joined

    def codes_of_several(self, first: I64, count: I64, tag: Codes) -> Codes:
        """Return the codes of sequences: ``count`` elements of ``tag`` from ``first`` on."""
        sequence = np.full(first.size, -1, np.int64)
        unfinished = np.arange(first.size)
        position = 0
        while unfinished.size:
            next_tag = tag[first[unfinished] + position]
            longer_sequences = (sequence[unfinished] + 1) * PAIR + next_tag
            sequence[unfinished] = self.sequences.enter(longer_sequences)
            position += 1
            unfinished = unfinished[count[unfinished] > position]
        missing = int(self.sequences.count) - self.code.size
        if missing > 0:
            self.code = np.append(self.code, np.full(missing, tables.NO_STRING, np.int32))
        is_new = np.flatnonzero(self.code[sequence] < 0)
        if is_new.size:
            new_sequences, first_rows = np.unique(sequence[is_new], return_index=True)
            rows = is_new[first_rows]
            tags = tag[joined_ranges(first[rows], count[rows])]
            self.code[new_sequences] = self.enter(count[rows], tags)
        return self.code[sequence]

    def enter(self, count: I64, tags: Codes) -> Codes:
        """Return the codes of the joined texts of sequences, of so many tags one after another."""
        texts = self.strings.column(tags)
        # There is a comma behind each tag, but the last one of a text is not part of it.
        ends = np.cumsum(np.diff(texts.offsets) + 1)
        octets = np.full(ends[-1], ord(","), np.uint8)
        is_text = np.ones(octets.size, np.bool_)
        is_text[ends - 1] = False
        octets[is_text] = texts.data
        ends_of_texts = ends[np.cumsum(count) - 1]
        lengths = np.diff(ends_of_texts, prepend=0) - 1
        return codes_of(self.strings.pool, octets, ends_of_texts - lengths - 1, lengths)


class Meaning:
    """Derives the rows of a file's records, block by block.

    ``in_entries`` says that the records are in entries of a ring, whose tags need no manifest;
    ``era_2022`` and ``with_printf`` are options of the reader.
    """

    def __init__(
        self, strings: StringPool, *, in_entries: bool, era_2022: bool, with_printf: bool
    ) -> None:
        self.components = Components()
        self.joined_tags = JoinedTags(strings)
        self.in_entries = in_entries
        self.era_2022 = era_2022
        self.with_printf = with_printf
        self.last_ts: int | None = None
        """Time of the last log of the blocks before."""

    # --- Structured records

    def of_records(self, logs: Logs, arguments: Arguments, report: Report) -> LogRows:
        """Return the rows of a block of structured records."""
        return Records(self, logs, arguments, report).rows()

    # --- Legacy packets

    def of_packets(
        self, columns: dict[str, NDArray[Any]], tags: Arguments, report: Report
    ) -> LogRows:
        """Return the rows of a block of legacy packets.

        ``columns`` of `logs` are those that packets have, the severity as on the wire; of their
        tags ``record``, ``offset`` and ``name`` count.
        """
        count = columns["offset"].size
        severity, verbosity = self.severities(columns["severity"])
        no_values = np.broadcast_to(np.int64(0), count)
        no_text = np.broadcast_to(np.int32(tables.NO_STRING), count)
        columns |= {
            "severity": severity,
            "component": no_text,
            "log_url": no_text,
            "log_tag": no_values,
            "file": no_text,
            "line": no_values.astype(np.uint32),
            "log_rolled_out": no_values,
            "log_verbosity": verbosity,
            "log_given": np.broadcast_to(np.uint8(PACKET_GIVES), count),
        }
        self.complete(columns, tags, np.arange(count), report)
        no_rows = tags.take(np.zeros(0, np.int64))
        return LogRows(columns, no_rows, tags, no_rows)

    def severities(self, severity: I64) -> tuple[NDArray[np.uint8], I64]:
        """Return severity bytes and verbosities of the severities of packets."""
        severities = range(LEAST_SEVERITY, MOST_SEVERITY + 1)
        pairs: list[tuple[int, int]] = list(map(legacy_level, severities))
        if not self.era_2022:
            pairs = [(max(number, 0), 0) for number in severities]
        levels, verbosities = np.array(pairs, np.int64).T
        number = np.clip(severity, LEAST_SEVERITY, MOST_SEVERITY) - LEAST_SEVERITY
        return levels[number].astype(np.uint8), verbosities[number]

    # --- Both

    def complete(
        self, columns: dict[str, NDArray[Any]], tags: Arguments, record: I64, report: Report
    ) -> None:
        """Add the joined tags to the columns of `logs`, and report what the rows say.

        ``record`` has the number in the block of each row's record.
        """
        offset = columns["offset"]
        ts = columns["ts"]
        columns["tags"] = self.joined_tags.codes(tags.record, tags.name, offset.size)
        dropped = columns["dropped"]
        lost = np.where(dropped != 0, dropped, columns["log_rolled_out"])
        report(rules.LOGS_LOST, lost != 0, record, offset, lost)
        if not offset.size:
            return
        earlier_ts = np.append(ts[:1], ts[:-1])
        if self.last_ts is not None:
            earlier_ts[0] = self.last_ts
        report(rules.TIME_DECREASES, ts < earlier_ts, record, offset, earlier_ts)
        self.last_ts = int(ts[-1])


class Records:
    """The meaning of the structured records of one block."""

    def __init__(self, meaning: Meaning, logs: Logs, arguments: Arguments, report: Report) -> None:
        self.meaning = meaning
        self.logs = logs
        self.arguments = arguments
        self.report = report
        self.name = np.minimum(arguments.name, NO_MEANING).astype(np.uint8)
        self.control = (logs.tag_bits & wire.CONTROL) != 0
        self.role = ROLE.take(self.name)
        self.counts_losses = np.flatnonzero(self.role == COUNTS_LOSSES)
        """Of arguments: the counts of control records that say how many logs were lost."""
        counted = self.counts_losses
        counted = counted[arguments.type[counted] == ArgType.UINT64]
        self.counts_losses = counted[self.control[arguments.record[counted]]]
        self.is_log = ~self.control
        self.is_log[arguments.record[self.counts_losses]] = True
        """Of records: whether it is a row; manifests are not."""

    def rows(self) -> LogRows:
        """Return the rows of the block."""
        arguments = self.arguments
        appended = self.appended()
        printf_markers, printf_values = self.printf()
        is_well_known = self.well_known()
        meant_name = np.where(is_well_known, self.name, np.uint8(NO_MEANING))
        is_other = ~is_well_known
        is_other &= arguments.type != DAMAGED_TYPE
        for rows in (appended, printf_markers, printf_values, self.counts_losses):
            is_other[rows] = False
        ordinary = np.flatnonzero(is_other)
        of_manifests = ordinary[~self.is_log[arguments.record[ordinary]]]
        manifests = self.manifests(of_manifests)
        columns = self.columns(meant_name)
        columns["log_given"][arguments.record[printf_markers]] |= tables.IS_PRINTF
        self.attribute(columns, appended, manifests)

        record = np.flatnonzero(self.is_log)
        all_are_logs = record.size == self.is_log.size
        row_of_record = np.cumsum(self.is_log) - 1
        if not all_are_logs:
            columns = {column: values[record] for column, values in columns.items()}

        def rows_of(rows: I64) -> Arguments:
            """Return these arguments of logs, with the rows of `logs` that they belong to."""
            if all_are_logs:
                return arguments.take(rows)
            chosen = arguments.take(rows[self.is_log[arguments.record[rows]]])
            return chosen._replace(record=row_of_record[chosen.record])

        tags = rows_of(np.flatnonzero(meant_name == tables.TAG))
        tags = tags._replace(name=tags.value.astype(np.int32))
        self.meaning.complete(columns, tags, record, self.report)
        return LogRows(columns, rows_of(ordinary), tags, rows_of(printf_values))

    def report_names(self, rule: Rule, rows: I64) -> None:
        """Report arguments of logs by their names. Those of a manifest need not mean anything."""
        arguments = self.arguments
        rows = rows[self.is_log[arguments.record[rows]]]
        self.report(rule, rows, arguments.record, arguments.offset, arguments.name)

    def appended(self) -> I64:
        """Return the rows of arguments that are the attribution at the end of their record."""
        record = self.arguments.record
        has_own_name = self.role == IS_ATTRIBUTION
        if not has_own_name.any():
            return np.zeros(0, np.int64)
        is_typed = ATTRIBUTION_TYPE[self.name] == self.arguments.type
        # An argument is at the end if as many others lie before it as its record has in all.
        others_so_far = np.cumsum(~is_typed)
        others_in_all = others_so_far[ends_of_runs(record)]
        number_of_record = np.cumsum(begins_of_runs(record)) - 1
        at_the_end = is_typed & (others_so_far == others_in_all[number_of_record])
        self.report_names(rules.ATTRIBUTION_NOT_LAST, np.flatnonzero(has_own_name & ~at_the_end))
        return np.flatnonzero(at_the_end)

    def printf(self) -> tuple[I64, I64]:
        """Return the rows of arguments that begin a structured printf of 2022, and of its values.

        Its values are the first arguments without a name behind it that follow one another.
        """
        if not self.meaning.with_printf:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        arguments = self.arguments
        is_marker = (self.name == tables.PRINTF) & (arguments.type == ArgType.UINT64)
        markers = np.flatnonzero(is_marker & (arguments.value == 0))
        markers = markers[begins_of_runs(arguments.record[markers])]
        values = [np.zeros(0, np.int64)]
        ends = np.searchsorted(arguments.record, arguments.record[markers], side="right")
        for marker, end in zip(markers.tolist(), ends.tolist(), strict=True):
            sound_rows = np.arange(marker + 1, end)
            sound_rows = sound_rows[arguments.type[sound_rows] != DAMAGED_TYPE]
            is_nameless = self.name[sound_rows] == tables.EMPTY
            # Where names end and begin again: the first run of values lies between two of them.
            bounds = np.flatnonzero(np.diff(is_nameless, prepend=False, append=False))
            if bounds.size:
                values.append(sound_rows[bounds[0] : bounds[1]])
        return markers, np.concatenate(values)

    def well_known(self) -> Bools:
        """Return which arguments have a well-known name and the type that belongs to it."""
        arguments = self.arguments
        fits: Bools = WELL_KNOWN_TYPE.take(self.name) == arguments.type
        line_rows = np.flatnonzero(self.name == tables.LINE)
        lines = arguments.value[line_rows]
        too_large = (lines < 0) | (lines > tables.LOW32)
        fits[line_rows[too_large]] = False
        has_name = self.role == IS_WELL_KNOWN
        if np.count_nonzero(has_name) > np.count_nonzero(fits):
            of_other_type = np.flatnonzero(has_name & ~fits)
            self.report_names(rules.WELL_KNOWN_OF_OTHER_TYPE, of_other_type)
        return fits

    def columns(self, meant_name: NDArray[np.uint8]) -> dict[str, NDArray[Any]]:
        """Return columns of `logs` for all records, from their well-known arguments.

        ``meant_name`` has the names of those, and NO_MEANING for all others.
        """
        logs = self.logs
        arguments = self.arguments
        count = logs.offset.size
        no_values = np.zeros(count, np.int64)
        given_bits = np.zeros(count, np.uint8)
        fields = dict.fromkeys(FIELDS, no_values)
        fields[tables.FILE] = np.full(count, tables.NO_STRING, np.int64)
        message_length = no_values
        for field in FIELDS:
            rows = np.flatnonzero(meant_name == field)
            if not rows.size:
                continue
            record = arguments.record[rows]
            is_last = ends_of_runs(record)
            if not is_last.all():
                self.report_names(rules.WELL_KNOWN_TWICE, rows[~begins_of_runs(record)])
                rows = rows[is_last]
                record = record[is_last]
            # Most fields are there in all records, whose values then need no places.
            where: slice | I64 = record
            if record.size == count:
                where = slice(None)
            fields[field] = put(arguments.value[rows], where, fields[field])
            given_bits[where] |= GIVEN_BITS.get(field, 0)
            if field == tables.MESSAGE:
                message_length = put(arguments.nbytes[rows], where, no_values)
            elif field == tables.VERBOSITY and self.meaning.era_2022:
                given_bits[where] |= tables.HAS_VERBOSITY
        losses = np.flatnonzero(IS_LOSS.take(meant_name))
        losses = losses[arguments.value[losses] != 0]
        severity = logs.severity.astype(np.uint8)
        if self.meaning.era_2022:
            severity[(given_bits & tables.HAS_VERBOSITY) != 0] = Level.DEBUG
        return {
            "offset": logs.offset,
            "ts": logs.ts,
            "severity": severity,
            "pid": fields[tables.PID],
            "tid": fields[tables.TID],
            "message_start": fields[tables.MESSAGE],
            "message_length": message_length,
            "file": fields[tables.FILE].astype(np.int32),
            "line": fields[tables.LINE].astype(np.uint32),
            "dropped": self.last_loss(losses),
            "log_tag": logs.tag,
            "log_verbosity": fields[tables.VERBOSITY],
            "log_given": given_bits,
        }

    def last_loss(self, rows: I64) -> I64:
        """Return the last of the values in these rows of each record; 0 for records without."""
        losses = np.zeros(self.logs.offset.size, np.int64)
        self.put_last(rows, losses)
        return losses

    def put_last(self, rows: I64, column: NDArray[np.integer]) -> None:
        """Put the last of the values in these rows of each record into a column."""
        arguments = self.arguments
        last_rows = rows[ends_of_runs(arguments.record[rows])]
        column[arguments.record[last_rows]] = arguments.value[last_rows]

    def manifests(self, rows: I64) -> Manifests:
        """Return the manifests of the block; ``rows`` are the arguments of control records."""
        arguments = self.arguments
        logs = self.logs
        control_records = np.flatnonzero(~self.is_log)
        moniker = np.full(logs.offset.size, tables.NO_STRING, np.int32)
        url = moniker.copy()
        text_rows = rows[arguments.type[rows] == ArgType.STRING]
        for column, name in ((moniker, tables.MONIKER), (url, tables.URL)):
            has_name = self.name[text_rows] == name
            self.put_last(text_rows[has_name], column)
        is_whole = (moniker[control_records] >= 0) & (url[control_records] >= 0)
        incomplete_records = control_records[~is_whole]
        self.report(rules.MANIFEST_INCOMPLETE, incomplete_records, None, logs.spot)
        complete_records = control_records[is_whole]
        tag = logs.tag_bits[complete_records] & wire.COMPONENT
        return Manifests(complete_records, tag, moniker[complete_records], url[complete_records])

    def attribute(
        self, columns: dict[str, NDArray[Any]], appended: I64, manifests: Manifests
    ) -> None:
        """Add component, URL and lost logs: of the record, its suffix, or the manifest of its tag.

        ``appended`` are the rows of arguments at the end of records that say so.
        """
        logs = self.logs
        moniker = np.full(logs.offset.size, tables.NO_STRING, np.int32)
        url = moniker.copy()
        rolled_out = np.zeros(logs.offset.size, np.int64)
        suffixes = logs.suffixes
        if suffixes is not None:
            moniker[suffixes.record] = suffixes.moniker
            url[suffixes.record] = suffixes.url
            rolled_out[suffixes.record] = suffixes.rolled_out
        for column, name in (
            (moniker, tables.OWN_MONIKER),
            (url, tables.OWN_URL),
            (rolled_out, tables.OWN_ROLLED_OUT),
        ):
            has_name = self.name[appended] == name
            self.put_last(appended[has_name], column)
        self.look_up(moniker, url, manifests)
        counting_records = np.flatnonzero(self.is_log & self.control)
        if counting_records.size:
            rolled_out[counting_records] = self.last_loss(self.counts_losses)[counting_records]
        columns["component"] = moniker
        columns["log_url"] = url
        columns["log_rolled_out"] = rolled_out

    def look_up(self, moniker: Codes, url: Codes, manifests: Manifests) -> None:
        """Fill in the component that a manifest names, for logs that do not say it themselves."""
        logs = self.logs
        components = self.meaning.components
        rows = np.flatnonzero(self.is_log & (moniker < 0))
        tag = logs.tag[rows] & wire.COMPONENT
        named_moniker, named_url = components.named(tag, rows, manifests)
        is_nameless = named_moniker < 0
        has_only_tag = is_nameless & ~self.control[rows] & (tag != 0)
        by_tag_alone = has_only_tag & (not self.meaning.in_entries)
        unknown = by_tag_alone | is_nameless & self.control[rows]
        named_moniker[unknown] = tables.UNKNOWN
        named_url[unknown] = tables.EMPTY
        moniker[rows] = named_moniker
        url[rows] = np.where(url[rows] < 0, named_url, url[rows])
        nameless_rows = np.flatnonzero(by_tag_alone)
        if nameless_rows.size:
            newly_nameless = nameless_rows[components.newly_nameless(tag[nameless_rows])]
            offset = logs.offset[rows]
            self.report(rules.TAG_NOT_NAMED, newly_nameless, rows, offset, tag)


def put(values: I64, where: slice | I64, column: I64) -> I64:
    """Return a column with these values at some places; the column itself does not change."""
    if isinstance(where, slice):
        return values
    changed = column.copy()
    changed[where] = values
    return changed
