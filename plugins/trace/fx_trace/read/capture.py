"""Capture: opens a trace archive. Records come from ``decoder.py``, tables from ``batches.py``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fx_trace import format as wire
from fx_trace import rules
from fx_trace.format import OVERRUN_NEED, OVERRUN_WORDS
from fx_trace.read.batches import batch_of, small_columns
from fx_trace.read.first_pass import CountingPass, TracePass
from fx_trace.read.scanner import Chunk, ClocksInForce, Scanner, TimedChunk, Times
from fx_trace.read.tables import SCHEMAS, STREAMED
from fx_trace.rules import RULES
from fxframework.io.source import Source
from fxframework.io.words import U64_MAX
from fxframework.kernels.behind import Behind
from fxframework.kernels.buffers import view
from fxframework.kit.scanned import Batch, Columns, Note, ScannedCapture
from fxframework.model.capture import OpenRequest, Record
from fxframework.model.clock import NS_PER_SECOND
from fxframework.model.schema import TableSchema

if TYPE_CHECKING:
    from fx_trace.read.blocks import TraceFile
    from fx_trace.read.cursor import Tables
    from fx_trace.read.decoder import RecordDecoder, Walk
    from fxframework.model.diagnostics import Diagnostics

__all__ = ["TraceCapture"]

I64 = NDArray[np.int64]
CHUNK_EVENTS = 1 << 16
"""Events of a part."""
RELEASED = 16 << 20
"""Bytes of the file that are released together."""
LISTED = 1000
"""Providers and clocks that a summary lists."""
UNLIMITED_DEPTH = 1 << 30
RATE_GIVEN = 1
"""An initialization record gave the provider's rate (``providers``)."""


class TraceCapture(ScannedCapture[TracePass, TimedChunk]):
    """A trace archive (document 002, `Archive`)."""

    format = "trace"
    rules = RULES
    schemas: ClassVar[Mapping[str, TableSchema]] = SCHEMAS
    streamed = STREAMED
    timed_records = True
    support_records = frozenset({"string", "thread"})
    magic_first: ClassVar[bool] = True
    """Whether the bytes begin with the magic number record."""

    def __init__(self, source: Source, request: OpenRequest) -> None:
        super().__init__(source, request)
        self.damage: I64 = np.zeros(0, np.int64)
        """Records that passes take for damage, as in ``RecordBounds``."""
        self.big_endian = source.read(0, 8) == wire.MAGIC_BYTES_BIG_ENDIAN
        self.streams: I64 = source.words().view(np.int64)
        """The words as they are in the file."""
        self.words: I64 = self.streams.byteswap() if self.big_endian else self.streams
        """The words in the machine's byte order."""

    @property
    def writer_options(self) -> Mapping[str, Any]:
        """What the writer has to know to write these records as the same bytes."""
        return {"big_endian": True} if self.big_endian else {}

    @property
    def utc_offset_ns(self) -> int | None:
        """As the first initialization record that says it has it (`Initialization record`)."""
        wall = self.first_pass().scanner.scan.providers.wall
        return None if wall == -1 else wall & (1 << 64) - 1

    @property
    def clocks(self) -> Mapping[str, int]:
        """The boot clock, which ticks count, and the time of day where a record gives it."""
        base, rate = self.tick_rate
        return {**super().clocks, "boot": base * NS_PER_SECOND // rate}

    @property
    def tick_rate(self) -> tuple[int, int]:
        """Base tick and ticks per second of the first provider that gives its rate."""
        table = self.first_pass().scanner.scan.providers.table.filled()
        given = np.flatnonzero(table["rate"] == RATE_GIVEN)
        if not given.size:
            return 0, wire.DEFAULT_TICKS_PER_SECOND
        first = int(given[0])
        return int(table["base"].view(np.uint64)[first]), int(table["hertz"].view(np.uint64)[first])

    # --- Records ---------------------------------------------------------------------------------

    def records(self) -> Iterator[Record]:
        """Every record in file order, as ``fx_trace.records`` decodes them one at a time."""
        return self.walk().records()

    def records_json(self) -> Iterator[bytes]:
        """Return the same as JSON lines, block by block."""
        return self.lines(self.record_diagnostics)

    def lines(self, diagnostics: Diagnostics | None) -> Iterator[bytes]:
        """Return JSON lines, and report what is found in the records."""
        from fx_trace.read.lines import TraceLines

        lines = TraceLines(self.file(), self.request.limits)
        return self.checked_pieces(lines.lines_reported(diagnostics))

    def file(self) -> TraceFile:
        """Return the bytes that the records lie in, in reading order."""
        from fx_trace.read.blocks import TraceFile

        return TraceFile.archive(
            self.source, big_endian=self.big_endian, limits=self.request.limits
        )

    def walk(self, tables: Tables | None = None) -> Walk:
        """Return a walk through the capture's records, in reading order.

        ``tables`` resolve references if the caller reads some of the records only; then nothing
        is reported.
        """
        return self.decoder(quiet=tables is not None).begin(self.source.data, tables)

    def decoder(self, *, quiet: bool = False) -> RecordDecoder:
        """Return a decoder of the capture's records; a ``quiet`` one reports nothing."""
        from fx_trace.read.decoder import RecordDecoder

        decoder = RecordDecoder(
            big_endian=self.big_endian,
            diagnostics=None if quiet else self.record_diagnostics,
            limits=self.request.limits,
        )
        decoder.damage = self.damage
        return decoder

    # --- The passes over the file ----------------------------------------------------------------

    @property
    def framed_bytes(self) -> int:
        """Bytes in which records are looked for."""
        return self.source.size

    def take_for_damage(self, damage: I64) -> None:
        """Have passes take some records for damage; earlier ones are void."""
        self.damage = damage
        self._first = self._counted = None
        self._reported = False

    def scanner(self) -> Scanner:
        """Return a scanner at the beginning of the file, over the capture's string pool."""
        scanner = Scanner(self.words, self.streams, self.strings, self.request.limits)
        scanner.scan.bounds.damage = view(self.damage, "i8")
        return scanner

    def _run_pass(self, *, whole: bool) -> TracePass:
        """Scan and match in file order; where times step back, once more, sorted."""
        max_depth = self.request.limits.max_depth or UNLIMITED_DEPTH
        by_name = self.request.options.get("match") == "name"
        passed = TracePass(
            self.scanner(), max_depth, ordered=False, in_memory=whole, by_name=by_name
        )
        parts = self._whole(passed) if whole else self._chunks(passed, passed.scanner)
        if not all(passed.add(part, keep=whole) for part in parts):
            out_of_order = passed.out_of_order
            passed = TracePass(
                self.scanner(), max_depth, ordered=True, in_memory=False, by_name=by_name
            )
            passed.out_of_order = out_of_order
            for part in self._chunks(passed, passed.scanner):
                passed.add(part, keep=False)
        passed.finish(self.framed_bytes)
        return passed

    _counted: CountingPass | None = None

    def counting_pass(self) -> TracePass:
        """Return the first pass, or one that does not match events, and finds all lost data."""
        self._start_reading()
        if self._first is not None:
            return self._first
        if self._counted is None:
            if not self._reported:
                self.diagnostics.forget(self.rules)
            passed = CountingPass(self.scanner())
            for part in self._chunks(passed, passed.scanner):
                passed.add(part, keep=False)
            passed.finish(self.framed_bytes)
            if not self._reported:
                self._report(passed)
            self._counted = passed
        return self._counted

    def record_counts(self) -> Mapping[str, int]:
        """Return the number of records of each kind, in bounded memory."""
        return self.counting_pass().kinds

    def _parts(self, passed: TracePass) -> Iterator[TimedChunk]:
        """Return the chunks of the file once more."""
        if passed.whole is not None:
            return iter([passed.whole])
        return self._chunks(passed, self.scanner())

    def _whole(self, passed: TracePass) -> Iterator[TimedChunk]:
        """One chunk of the whole file, with its times; its events are matched while it is read."""
        with Behind(self.framed_bytes) as behind:
            chunk = passed.scanner.whole(self.source.passed, passed.follow, behind)
        yield _timed(chunk, passed.scanner, passed.times_followed())

    def _chunks(self, passed: TracePass, scanner: Scanner) -> Iterator[TimedChunk]:
        """Yield the chunks that a scanner gives, with their times.

        What is behind them is released.
        """
        released = 0
        for chunk in scanner.chunks(CHUNK_EVENTS):
            yield _timed(chunk, scanner)
            self._check_open()  # the pool no longer reads from the file: the scan may not go on
            self.source.position = scanner.position
            if scanner.position - released >= RELEASED:
                self.source.passed(released, scanner.position)
                passed.spans.release()
                released = scanner.position

    def chunks(self) -> Iterator[TimedChunk]:
        """Return all raw rows with their times, after the first pass; may be asked for again."""
        return self._parts(self.first_pass())

    # --- Findings --------------------------------------------------------------------------------

    def _value(self, note: Note) -> object:
        value = note.value
        rule = note.rule
        # One object a rule: to compare them by code takes a call for each.
        if rule is rules.CONTENTS_OVERRUN:
            return rules.overrun_detail(OVERRUN_NEED.get(value), OVERRUN_WORDS.get(value))
        if rule is rules.UNKNOWN_KIND:
            return wire.undefined_kind(int(self.words[note.offset // 8]))
        if rule is rules.NOT_UTF8 or rule is rules.OBJECT_NOT_UTF8:
            return self.strings.bytes_of(value) if value else None
        if rule is rules.ENDS_BY_ANOTHER_NAME:
            codes = value % wire.OF_CATEGORIES
            ended, begun = divmod(codes, 1 << wire.END_CODE_BITS)
            is_category = value >= wire.OF_CATEGORIES
            return rules.another_name_detail(self.strings[ended], self.strings[begun], is_category)
        if rule is rules.ODD_BYTES:
            return rules.odd_bytes_detail(value)
        if rule is rules.UNKNOWN_SCOPE or rule is rules.RATE_CHANGES:
            return value & U64_MAX
        return value

    def _report(self, passed: TracePass) -> None:
        """What is in no note: the missing magic number, times, and slices never closed."""
        begins = not self.source.size or self.source.read(0, 8) in wire.MAGICS
        if self.magic_first and not begins:
            self.diagnostics.add(rules.NO_MAGIC, 0, 0)
        if passed.out_of_order is not None:
            self.diagnostics.add(rules.TIMES_OUT_OF_ORDER, passed.out_of_order)
        self.report_offsets(rules.TIME_OVERFLOW, passed.outside_offsets)
        super()._report(passed)
        most = self.request.limits.max_findings
        total, offsets = passed.open_slices(self._parts(passed), most)
        self.report_offsets(rules.NEVER_CLOSED, offsets, total)
        for rule, unpaired in passed.unpaired:
            self.report_offsets(rule, unpaired)

    # --- Tables and summary ----------------------------------------------------------------------

    def _batch(self, name: str, passed: TracePass, part: TimedChunk) -> Batch:
        return batch_of(name, passed, part, self.strings, self.source.data)

    def _small(self, name: str, passed: TracePass) -> Columns:
        return small_columns(name, passed, self.strings)

    def _facts(self, passed: TracePass) -> dict[str, Any]:
        """Byte order, providers and clocks."""
        texts = self.strings
        rows = passed.scanner.scan.providers.table.filled()
        count = rows["number"].size
        listed = [
            dict(zip(rows, values, strict=True))
            for values in zip(*(column[:LISTED].tolist() for column in rows.values()), strict=True)
        ]
        listed = [row for row in listed if row["number"] or row["introduced"] or row["rate"]]
        providers = [
            {
                "id": row["number"],
                "name": texts[row["name"]],
                "introduced": bool(row["introduced"]),
                "ticks_per_second": row["hertz"] & (1 << 64) - 1,
                "buffer_full": row["full"],
            }
            for row in listed
        ]
        clocks = {
            (row["hertz"] & (1 << 64) - 1, row["base"] & (1 << 64) - 1): row["wall"]
            for row in reversed(listed)
        } or {(wire.DEFAULT_TICKS_PER_SECOND, 0): -1}
        return {
            "endianness": "big" if self.big_endian else "little",
            "providers": providers,
            **({"providers_in_all": count} if count > LISTED else {}),
            "clocks": [
                {
                    "ticks_per_second": rate,
                    "base_ticks": base,
                    "base_wall_ns": None if wall == -1 else wall & (1 << 64) - 1,
                }
                for (rate, base), wall in reversed(clocks.items())
            ],
        }


def _timed(chunk: Chunk, scanner: Scanner, events: tuple[I64, int] | None = None) -> TimedChunk:
    small = not scanner.scan.large_ticks
    clocks = ClocksInForce(chunk.segments, dict(enumerate(scanner.clocks())), small=small)
    return TimedChunk(chunk, Times(chunk, clocks, events))
