"""Capture: opens a trace archive.

Lines come from ``lines``, raw rows from ``rows``, what needs the whole file from ``first_pass``,
and the columns of tables from ``batches``.
"""

from __future__ import annotations

import abc
import itertools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from fx_trace import format as wire
from fx_trace import rules
from fx_trace.read.batches import batch_of, small_columns
from fx_trace.read.chunk_maker import ChunkMaker
from fx_trace.read.chunks import Chunk
from fx_trace.read.first_pass import CountingPass, EventPass, TracePass
from fx_trace.read.match import other_text_detail
from fx_trace.read.rows import RowReader
from fx_trace.read.tables import SCHEMAS, STREAMED
from fx_trace.rules import RULES
from fxframework.io.source import Source
from fxframework.io.words import U64_MAX
from fxframework.kernels.arrays import I64
from fxframework.kit.scanned import Batch, Columns, Note, ScannedCapture
from fxframework.model.capture import OpenRequest, Record
from fxframework.model.clock import NS_PER_SECOND, Clock
from fxframework.model.schema import TableSchema

if TYPE_CHECKING:
    from fx_trace.read.cursor import Provider
    from fx_trace.read.frames import TraceFile
    from fx_trace.records import TraceRecord
    from fxframework.model.diagnostics import Diagnostics

LISTED = 1000
"""Providers and clocks that a summary lists."""
WITH_ARGUMENTS = frozenset(["args", "counters", "sched", "trace_objects"])
"""Tables whose rows depend on arguments."""


PassT = TypeVar("PassT", bound=EventPass)


class EventCapture(ScannedCapture[PassT, Chunk]):
    """A capture of events, which ``EventPass`` matches."""

    @abc.abstractmethod
    def _new_pass(self, *, whole: bool, ordered: bool) -> PassT:
        """Return a pass to which nothing was added."""

    def _run_pass(self, *, whole: bool) -> PassT:
        """Read and match in the order of the file; where times step back, once more, sorted."""
        passed = self._new_pass(whole=whole, ordered=False)
        if not self._add_all(passed):
            out_of_order = passed.out_of_order
            passed = self._new_pass(whole=False, ordered=True)
            passed.out_of_order = out_of_order
            self._add_all(passed)
        passed.keep_rows()
        passed.finish()
        return passed

    def _add_all(self, passed: PassT) -> bool:
        """Add all chunks to a pass; return whether it can do with them in this order."""
        for chunk in self._chunks(passed.reader):
            if passed.must_be_ordered:
                return False
            passed.add(chunk)
        return not passed.must_be_ordered

    def _chunks(self, reader: ChunkMaker) -> Iterator[Chunk]:
        """Yield the chunks of the file."""
        for chunk in reader.chunks():
            yield chunk
            self._check_open()
            self.source.position = min(chunk.end, self.source.size)

    def _parts(self, passed: PassT) -> Iterator[Chunk]:
        """Return the rows of the whole file, which the pass has kept."""
        return iter([passed.whole] if passed.whole is not None else [])

    def _value(self, note: Note) -> object:
        if note.rule is rules.ENDS_BY_ANOTHER_NAME:
            return other_text_detail(note.value, self.strings)
        return note.value

    def _report(self, passed: PassT) -> None:
        """Report the findings of matching, and slices never closed."""
        super()._report(passed)
        max_listed = self.request.limits.max_findings
        total, offsets = passed.open_slices(self._parts(passed), max_listed)
        self.report_offsets(rules.NEVER_CLOSED, offsets, total)

    def _batch(self, name: str, passed: PassT, part: Chunk) -> Batch:
        return batch_of(name, passed, part, self.strings, self.source.data)

    def _small(self, name: str, passed: PassT) -> Columns:
        return small_columns(name, passed, self.strings)


class TraceCapture(EventCapture[TracePass]):
    """A trace archive (document 002, `Archive`)."""

    format = "trace"
    rules = RULES
    schemas: ClassVar[Mapping[str, TableSchema]] = SCHEMAS
    streamed = STREAMED
    timed_records = True
    support_records = frozenset({"string", "thread"})

    def __init__(self, source: Source, request: OpenRequest) -> None:
        super().__init__(source, request)
        self.big_endian = source.read(0, 8) == wire.MAGIC_BYTES_BIG_ENDIAN
        words: I64 = source.words().view(np.int64)
        self.words: I64 = words.byteswap() if self.big_endian else words
        """The words in the machine's byte order."""

    @property
    def writer_options(self) -> Mapping[str, Any]:
        """What the writer has to know to write these records as the same bytes."""
        return {"big_endian": True} if self.big_endian else {}

    @property
    def utc_offset_ns(self) -> int | None:
        """As the first initialization record that says it has it (`Initialization record`)."""
        base_wall_ns = self.first_pass().reader.speakers.base_wall_ns
        return None if base_wall_ns == U64_MAX else base_wall_ns

    @property
    def clocks(self) -> Mapping[str, int]:
        """The boot clock, which ticks count, and the time of day where a record gives it."""
        base, rate = self.tick_rate
        return {**super().clocks, "boot": base * NS_PER_SECOND // rate}

    @property
    def tick_rate(self) -> tuple[int, int]:
        """Base tick and ticks per second of the first provider that gives its rate."""
        for provider in self.first_pass().reader.speakers.providers.values():
            if provider.rate_at >= 0:
                return provider.clock.base_ticks, provider.clock.ticks_per_second
        return 0, wire.DEFAULT_TICKS_PER_SECOND

    # --- Records ---------------------------------------------------------------------------------

    def records(self) -> Iterator[Record]:
        """Every record in file order, as ``fx_trace.records`` decodes them one at a time."""
        return self.objects(self.record_diagnostics)

    def records_json(self) -> Iterator[bytes]:
        """Return the same as JSON lines, block by block."""
        return self.lines(self.record_diagnostics)

    def objects(self, diagnostics: Diagnostics | None) -> Iterator[TraceRecord]:
        """Return the records as objects, and report what is found in them."""
        from fx_trace.read.decoder import Records

        return Records(self.file()).reported(diagnostics)

    def lines(self, diagnostics: Diagnostics | None) -> Iterator[bytes]:
        """Return JSON lines, and report what is found in the records."""
        from fx_trace.read.lines import TraceLines

        lines = TraceLines(self.file(), self.request.limits)
        return self.checked_pieces(lines.lines_reported(diagnostics))

    def file(self) -> TraceFile:
        """Return the bytes that the records lie in, in reading order."""
        from fx_trace.read.frames import TraceFile

        return TraceFile.archive(
            self.source, big_endian=self.big_endian, limits=self.request.limits
        )

    # --- The passes over the file ----------------------------------------------------------------

    def row_reader(self, *, args: bool = True) -> RowReader:
        """Return what reads rows from the beginning of the file, with the capture's strings."""
        return RowReader(self.file(), self.request.limits, self.strings, args=args)

    def _new_pass(self, *, whole: bool, ordered: bool) -> TracePass:
        return TracePass(
            self.row_reader(),
            self.request.limits,
            ordered=ordered,
            in_memory=whole,
            by_name=self.request.options.get("match") == "name",
        )

    _counted: CountingPass | None = None

    def counting_pass(self) -> TracePass:
        """Return the first pass, or one that does not match events, and finds all lost data."""
        self._start_reading()
        if self._first is not None:
            return self._first
        if self._counted is None:
            if not self._reported:
                self.diagnostics.forget(self.rules)
            passed = CountingPass(self.row_reader(), self.request.limits)
            self._add_all(passed)
            passed.finish()
            if not self._reported:
                self._report(passed)
            self._counted = passed
        return self._counted

    def record_counts(self) -> Mapping[str, int]:
        """Return the number of records of each kind, in bounded memory."""
        return self.counting_pass().kinds

    def _parts(self, passed: TracePass) -> Iterator[Chunk]:
        """Return the chunks of the file once more, without arguments if they are read again."""
        if passed.whole is not None:
            return super()._parts(passed)
        return self._chunks(self.row_reader(args=False))

    def _parts_with(self, name: str, passed: TracePass) -> Iterator[Chunk]:
        """Return the same with arguments, if rows of the table depend on them."""
        if passed.whole is not None or name not in WITH_ARGUMENTS:
            return self._parts(passed)
        return self._chunks(self.row_reader())

    def chunks(self) -> Iterator[Chunk]:
        """Return all raw rows but arguments, after the first pass; may be asked for again."""
        return self._parts(self.first_pass())

    def _name_of(self, provider: Provider) -> str:
        """Return the name of a provider, as tables have strings."""
        longest = self.request.limits.max_string or None
        name_bytes = provider.name.encode(errors="surrogateescape")
        return name_bytes[:longest].decode(errors="replace")

    def _report(self, passed: TracePass) -> None:
        """Report findings of records, times, and of matching."""
        if passed.reader.file.begins_wrong:
            self.diagnostics.add(rules.NO_MAGIC, 0, 0)
        if passed.out_of_order is not None:
            self.diagnostics.add(rules.TIMES_OUT_OF_ORDER, passed.out_of_order)
        self.report_offsets(rules.TIME_OVERFLOW, passed.outside_offsets)
        passed.reader.report(self.diagnostics)
        passed.reader.report_more(self.diagnostics)
        super()._report(passed)
        for rule, unpaired in passed.unpaired:
            self.report_offsets(rule, unpaired)

    def _facts(self, passed: TracePass) -> dict[str, Any]:
        """Byte order, providers and clocks."""
        providers = passed.reader.speakers.providers
        listed: dict[int, Provider] = {}
        for number, provider in itertools.islice(providers.items(), LISTED):
            # The provider of records before any provider record is there in every trace.
            has_clock = provider.rate_at >= 0 or provider.missed_rate
            if number or provider.introduced or has_clock:
                listed[number] = provider
        clocks: dict[tuple[int, int], int | None] = {}
        # In the end, each clock has the time of day of the first provider with it.
        for provider in reversed(listed.values()):
            clock = provider.clock
            clocks[clock.ticks_per_second, clock.base_ticks] = wall_of(clock)
        if not clocks:
            clocks[wire.DEFAULT_TICKS_PER_SECOND, 0] = None
        facts: dict[str, Any] = {
            "endianness": "big" if self.big_endian else "little",
            "providers": [
                {
                    "id": number,
                    "name": self._name_of(provider),
                    "introduced": provider.introduced,
                    "ticks_per_second": provider.clock.ticks_per_second,
                    "buffer_full": provider.times_full,
                }
                for number, provider in listed.items()
            ],
        }
        if len(providers) > LISTED:
            facts["providers_in_all"] = len(providers)
        facts["clocks"] = [
            {"ticks_per_second": rate, "base_ticks": base_ticks, "base_wall_ns": base_wall_ns}
            for (rate, base_ticks), base_wall_ns in reversed(clocks.items())
        ]
        return facts


def wall_of(clock: Clock) -> int | None:
    """Return the time of day at a clock's base tick; None if that is not known."""
    if clock.base_wall_ns == U64_MAX:
        return None
    return clock.base_wall_ns
