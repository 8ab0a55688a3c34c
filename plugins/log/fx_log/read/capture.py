"""Capture: opens log files. Records come from ``frames.py``, rows of tables from ``blocks.py``.

``fxframework.wire.capture`` has what all captures share that are read by blocks. What follows from
other columns is made at first use.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import attrs
import numpy as np

from fx_log import format as wire
from fx_log import rules
from fx_log.format import ArgType, LogRecord
from fx_log.meaning import Arguments
from fx_log.read.blocks import BlockReader, Counts, Totals, enter_known, reader_of
from fx_log.read.frames import FramedFile, Records, framed_file
from fx_log.read.ring import Ring
from fx_log.rules import RULES
from fx_log.severity import LEVELS, Level
from fx_log.tables import (
    GIVEN_LINE,
    GIVEN_MESSAGE,
    GIVEN_PID,
    GIVEN_TID,
    IS_PRINTF,
    LOG_TAGS,
    LOGS,
    WELL_KNOWN,
)
from fxframework.io.source import Source
from fxframework.io.words import U64_MAX
from fxframework.kernels.arrays import U8
from fxframework.kit.scanned import Batch, Columns, Note, Timeline, sketch, value_columns
from fxframework.model.capture import OpenRequest, Record
from fxframework.model.diagnostics import Diagnostics, Found
from fxframework.model.schema import STANDARD_TABLES, TABLE_CODES, TableSchema
from fxframework.model.strings import StringPool, TextColumn
from fxframework.model.table import Table
from fxframework.wire.capture import BlockCapture, BlockPass, Cells, Tables

LISTED = 1000
"""Most components and tags in a summary."""
LEVEL_OF = np.array(LEVELS, np.uint8)
"""The level of each severity byte."""
LEVEL_CODES = np.array([len(WELL_KNOWN) + list(Level).index(level) for level in LEVELS], np.int32)
"""Code of the level's name, by severity byte."""
SHOWN = GIVEN_MESSAGE | GIVEN_PID | GIVEN_TID | GIVEN_LINE
"""Bits of ``log_given`` that the table shows."""
RENDERED = IS_PRINTF | GIVEN_MESSAGE
INTEGERS = 1 << ArgType.INT64 | 1 << ArgType.UINT64 | 1 << ArgType.BOOL
TEXTS = 0xFFFF & ~INTEGERS & ~(1 << ArgType.DOUBLE | 1 << ArgType.NULL)
"""Types with values in the string pool, which include undefined types, kept as bytes."""


class LogPass(BlockPass):
    """A file of logs, read once."""

    def __init__(self, capture: LogCapture, *, whole: bool) -> None:
        super().__init__(capture, whole=whole)
        self.totals = capture.totals

    @property
    def timeline(self) -> Timeline:
        """Number of logs per stretch of time, for each severity."""
        earliest, latest = self.range
        if self.whole is None or earliest is None or latest is None:
            return ()
        _, logs = self.whole["logs"]
        labels = [(int(level), level.name) for level in reversed(Level)]
        return sketch(logs["ts"], LEVEL_OF[logs["severity"]], (earliest, latest), labels)


class LogCapture(BlockCapture):
    """A capture of structured records."""

    format = "log"
    rules = RULES
    pass_class = LogPass
    memory_factor = 6  # of typical logs, one or two
    timed_records = True
    grows: ClassVar[bool] = True
    """Whether programs append to such files."""
    row_table = "logs"
    schemas: ClassVar[Mapping[str, TableSchema]] = {
        "logs": LOGS,
        "args": STANDARD_TABLES["args"],
        "log_tags": LOG_TAGS,
    }

    def __init__(self, source: Source, request: OpenRequest) -> None:
        super().__init__(source, request)
        enter_known(self.strings)

    @property
    def totals(self) -> Totals:
        """Counts of what was read last."""
        return self._reader.totals

    @property
    def utc_offset_ns(self) -> int | None:
        """Epoch minus the capture's clock, from the option of that name; None if unknown."""
        return self.request.options.get("utc_offset_ns") or None

    @property
    def clocks(self) -> Mapping[str, int]:
        """The stated clock (default: boot), and the time of day if its offset is known."""
        return {**super().clocks, str(self.request.options.get("clock") or "boot"): 0}

    # --- Records ---------------------------------------------------------------------------------

    def records(self) -> Iterator[Record]:
        """Yield every record, one at a time."""
        if self.record_diagnostics is None:
            return iter(Records(self.framed()))
        return self.reporting(self.record_diagnostics)

    def reporting(self, diagnostics: Diagnostics) -> Iterator[Record]:
        """Yield every record; report the findings about each, which come with its block."""
        reader = self._read(all_listed=True)
        records = Records(reader.file)
        index = 0
        for _, findings in reader.blocks():
            found_of: dict[int, list[Found]] = defaultdict(list)
            for number, offset, record_number, value in findings.tolist():
                rule = self.rules.numbered(number)
                found_of[record_number].append(Found(rule, offset, reader.shown(rule, value)))
            for record in records.of(reader.frames):
                diagnostics.report(found_of[index], index)
                index += 1
                yield record

    def records_json(self) -> Iterator[bytes]:
        """Return the same records as JSON lines, which are written many at a time (``lines``)."""
        from fx_log.read.lines import LineWriter

        writer = LineWriter(self._read())
        return self.with_findings(writer.reader.findings, writer.lines())

    def _read(self, *, all_listed: bool = False) -> BlockReader:
        """Return what reads the file from its beginning; it lists the first findings, or all."""
        limits = self.request.limits
        options = self.request.options
        if all_listed:
            limits = attrs.evolve(limits, max_findings=0)
        self._reader = reader_of(self.framed(), self.strings, limits, options)
        return self._reader

    def resume(self) -> tuple[int, bytes] | None:
        """Return the offset after the last whole record, and the control records before it.

        With suffixes, a record is whole only if its suffix is complete. A ring and a lone packet
        do not grow: None.
        """
        if not self.grows:
            return None
        # Of equal control records, the last one is enough.
        control_records: dict[bytes, None] = {}
        end = 0
        file = self.framed()
        for frames in file.blocks():
            sound_frames = frames.sound()
            if self.request.options.get("suffix") and (sound_frames.suffix[-1:] < 0).any():
                sound_frames = sound_frames.take(slice(-1))
            (tag_bits,) = file.numbers_of(LogRecord, sound_frames.start, "tag_bits")
            for row in sound_frames.take(np.flatnonzero(tag_bits & wire.CONTROL)).rows():
                record_bytes = self.source.read(row.begin, row.end - row.begin)
                control_records.pop(record_bytes, None)
                control_records[record_bytes] = None
            end = int(sound_frames.end.max(initial=end))
        return end, b"".join(control_records)

    def framed(self, *, splits: bool = False) -> FramedFile:
        """Return where records are (``FramedFile``)."""
        limits = self.request.limits
        options = self.request.options
        file = framed_file(self.format, self.source.data, limits, options, splits=splits)
        if file.ring is None:  # whose bytes may be a copy
            file.passed = self.source.passed
        return file

    # --- Tables ----------------------------------------------------------------------------------

    def read_blocks(self) -> tuple[BlockReader, Iterator[tuple[int, dict[str, Cells]]]]:
        """Return what reads the file, and its blocks: where each ends, and columns by table."""
        reader = self._read()
        return reader, self._tables_of(reader)

    def _tables_of(self, reader: BlockReader) -> Iterator[tuple[int, dict[str, Cells]]]:
        file = reader.file
        rendered = bool(self.request.options.get("printf"))
        first_row = 0
        for rows, _ in reader.blocks():
            logs: Cells = dict(rows.logs)
            if rendered:
                logs["message"] = messages(logs, file.data, rows.printf, self.strings)
            args = children(rows.args, first_row, "offset", "name", "type", "value")
            tags = children(rows.tags, first_row, "offset", "name")
            yield file.position, {"logs": logs, "args": args, "log_tags": tags}
            first_row += logs["ts"].size

    def _value(self, note: Note) -> object:
        return self._reader.shown(note.rule, note.value)

    def _batch(self, name: str, passed: BlockPass, part: Tables) -> Batch:
        del passed
        first_row, cells = part.get(name, (0, {}))
        if not cells:
            return Batch.of(first_row, Table.of(self.schemas[name], self.strings))
        columns: Columns = dict(cells)
        if name == "logs":
            columns = log_columns(cells, self._reader.file.data)
        elif name == "args":
            columns = argument_columns(cells)
        return Batch(first_row, cells["offset"].size, columns)

    def _facts(self, passed: BlockPass) -> dict[str, Any]:
        assert isinstance(passed, LogPass)  # noqa: S101 (``pass_class``)
        totals = passed.totals
        clock = self._unstated_clock
        if self.request.options.get("clock"):
            clock = f"{self.request.options['clock']} (stated)"
        utc_offset: object = self.utc_offset_ns
        if utc_offset is None:
            utc_offset = "not known"
        components = self._most(totals.components, "component")
        tags = self._most(totals.tags, "tag")
        return {
            "clock": clock,
            "utc_offset": utc_offset,
            "severities": levels(totals.severities),
            "components": components,
            "tags": tags,
            "dropped": totals.dropped,
            "rolled_out": totals.rolled_out,
            "out_of_order": int(passed.notes[0].totals[int(rules.TIME_DECREASES)]),
        }

    _unstated_clock = "not stated: boot today, monotonic in older captures"

    def _most(self, counts: Counts, label: str) -> list[dict[str, Any]]:
        """Return the strings with the most logs, and their counts, in descending order."""
        listed = []
        for code, count in counts.most(LISTED):
            name = self.strings.bytes_of(code).decode("utf-8", "replace")
            listed.append({label: name, "logs": count})
        return listed


class RingCapture(LogCapture):
    """A capture of an IOBuffer ring's image; rows and records are in reading order."""

    format = "log-ring"
    grows = False

    def __init__(self, source: Source, request: OpenRequest) -> None:
        super().__init__(source, request)
        self.ring = Ring(source.data)


class LegacyCapture(LogCapture):
    """A capture of one legacy packet, which is the whole file."""

    format = "log-legacy"
    grows = False
    _unstated_clock = "not stated: monotonic"


class StreamCapture(LegacyCapture):
    """A capture of a container of legacy packets."""

    format = "log-legacy-stream"

    def resume(self) -> tuple[int, bytes] | None:
        """Return the offset after the last whole packet, and the container's header.

        0 and no bytes while the header is incomplete.
        """
        if self.source.size < wire.STREAM_HEADER:
            return 0, b""
        end = wire.STREAM_HEADER
        for frames in self.framed().blocks():
            end = int(frames.sound().end.max(initial=end))
        return end, self.source.read(0, wire.STREAM_HEADER)


# --- Columns of tables ----------------------------------------------------------------------------


def log_columns(cells: Cells, data: U8) -> Columns:
    """Return the columns of `logs` for what was read of them (``fx_log.meaning.LogRows``)."""
    columns: Columns = dict(cells)
    starts = cells["message_start"]
    lengths = cells["message_length"]
    severity = cells["severity"]
    given_bits = cells["log_given"]
    del columns["message_start"], columns["message_length"]
    for name in ("pid", "tid", "dropped", "log_tag", "log_rolled_out"):
        columns[name] = cells[name].view(np.uint64)
    columns["ticks"] = cells["ts"].view(np.uint64)
    columns["severity_name"] = lambda: LEVEL_CODES[severity]
    columns["log_given"] = lambda: given_bits & np.uint8(SHOWN)
    columns.setdefault("message", lambda: TextColumn.gather(data, starts, lengths))
    return columns


def children(rows: Arguments, first_log: int, *names: str) -> Cells:
    """Return columns of rows that belong to logs of a block, the first of which has a number."""
    columns: Cells = {name: getattr(rows, name) for name in names}
    return {"parent": rows.record + first_log, **columns}


def argument_columns(cells: Cells) -> Columns:
    """Return the columns of `args` for what was read of them."""
    columns: Columns = dict(cells)
    types = cells["type"]
    types_present = np.flatnonzero(np.bincount(types, minlength=1))
    present = int(np.bitwise_or.reduce(1 << types_present))
    columns |= value_columns(types, cells["value"], present, TEXTS, INTEGERS)
    del columns["value"]
    columns["table"] = np.broadcast_to(np.uint8(TABLE_CODES["logs"]), types.size)
    return columns


def messages(logs: Cells, data: U8, values: Arguments, pool: StringPool) -> TextColumn:
    """Return the messages of logs, with structured printfs rendered, of which ``values`` are."""
    plain = TextColumn.gather(data, logs["message_start"], logs["message_length"])
    rows = np.flatnonzero(logs["log_given"] & RENDERED == RENDERED)
    if not rows.size:
        return plain
    from fx_log.read.entries import render_printf

    starts_of_values = np.searchsorted(values.record, rows).tolist()
    ends_of_values = np.searchsorted(values.record, rows, side="right").tolist()
    texts: list[bytes] = []
    for row, start, end in zip(rows.tolist(), starts_of_values, ends_of_values, strict=True):
        inserted = [value_of(values, index, pool) for index in range(start, end)]
        texts.append(render_printf(plain.bytes_of(row), inserted))
    rendered = TextColumn.of(texts)
    starts = plain.offsets[:-1].copy()
    lengths = np.diff(plain.offsets)
    starts[rows] = plain.data.size + rendered.offsets[:-1]
    lengths[rows] = np.diff(rendered.offsets)
    data = np.concatenate((plain.data, rendered.data))
    return TextColumn.gather(data, starts, lengths)


def value_of(values: Arguments, row: int, pool: StringPool) -> Any:
    """Return the value of a positional argument."""
    kind = int(values.type[row])
    value = int(values.value[row])
    if kind == ArgType.NULL:
        return None
    if kind == ArgType.INT64:
        return value
    if kind == ArgType.UINT64:
        return value & U64_MAX
    if kind == ArgType.DOUBLE:
        doubles = values.value.view(np.float64)
        return float(doubles[row])
    if kind == ArgType.BOOL:
        return bool(value)
    return pool.bytes_of(value)


def levels(severities: Counts) -> dict[str, int]:
    """Return the number of logs by severity name, the most severe first, of those by severity."""
    counts: Counter[str] = Counter()
    for severity, count in sorted(severities.most(len(LEVELS)), reverse=True):
        counts[LEVELS[severity].name] += count
    return dict(counts)
