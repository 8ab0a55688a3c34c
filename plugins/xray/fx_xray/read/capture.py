"""Capture: opens traces. Records come from ``decoder.py``, tables from ``batches.py``.

A trace is scanned once (``log.Log``), which finds threads and damage. One pass over its events
(``first_pass.py``) finds how long calls are and what a summary says; ``fxframework.kit.scanned``
says what is done with it. Each column is made when it is first asked for.
"""

from __future__ import annotations

import abc
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fx_xray import rules
from fx_xray.format import FileHeader
from fx_xray.read.batches import batch_of, small_columns
from fx_xray.read.decoder import RecordDecoder
from fx_xray.read.events import EVENT, Events
from fx_xray.read.first_pass import CallPass
from fx_xray.read.header import header_findings, read_header
from fx_xray.read.log import BasicLog, FdrLog, FileLog, GivenLog, Log
from fx_xray.read.match import Matcher, Rows
from fx_xray.read.symbols import FunctionNames, Symbols
from fx_xray.read.tables import CALLS, SCHEMAS
from fx_xray.rules import RULES
from fxframework.io.source import Source
from fxframework.kernels.arrays import U8
from fxframework.kit.scanned import Batch, Columns, Note, ScannedCapture, listed_notes
from fxframework.model.capture import OpenRequest, Record
from fxframework.model.clock import NS_PER_SECOND
from fxframework.model.diagnostics import Found
from fxframework.model.schema import TableSchema

MODES = ("flight data recorder", "basic")
"""Names of the modes, by whether it is basic mode."""


class EventCapture(ScannedCapture[CallPass, Rows]):
    """A trace of calls: all tables, from the events of a ``Log``.

    A subclass gives ``_scanned_log()`` and the facts of the header: ``version``, ``mode``,
    ``frequency``, ``constant_tsc``, ``nonstop_tsc`` and ``buffer_size``.
    """

    rules = RULES
    memory_factor = 8  # of typical traces four
    streamed = frozenset({"slices", "instants", "args"})
    timed_records = True
    schemas: ClassVar[Mapping[str, TableSchema]] = SCHEMAS
    calls = CALLS
    mode: str = ""
    """One of MODES."""
    version: int | None = None
    """As the header says it."""
    frequency: int = 0
    """Ticks per second: as the option says, or else the header; 0 not known."""
    constant_tsc: bool = True
    nonstop_tsc: bool = True
    buffer_size: int = 0
    byte_order: str = ""
    header: FileHeader | None = None
    """Of a file of records; None where it is too short for one."""

    def __init__(self, source: Source, request: OpenRequest) -> None:
        super().__init__(source, request)
        is_basic = self.mode == MODES[True]
        self._names = FunctionNames(request.options, self.strings, whole_ids=is_basic)

    @abc.abstractmethod
    def _scanned_log(self) -> Log:
        """Return the trace, scanned again."""

    def _heading(self) -> list[Found]:
        """Return the findings about what is not an event."""
        return []

    @property
    def ticks_per_second(self) -> int | None:
        """The frequency of the counter; 0 where it is not known, and lengths are ticks alone."""
        return self.frequency

    @property
    def tick_rate(self) -> tuple[int, int] | None:
        """Times count from tick 0; None where the frequency is not known."""
        return (0, self.frequency) if self.frequency else None

    @property
    def clocks(self) -> Mapping[str, int]:
        """The monotonic clock, which the records of wall time have, by the first buffer's."""
        if not self.frequency or "xray_buffers" not in self.schemas:
            return {}
        buffers = self.table("xray_buffers")
        for seconds, micros, ticks in zip(
            *(buffers.array(name).tolist() for name in ("seconds", "micros", "ticks")), strict=True
        ):
            if seconds or micros:
                wall = seconds * NS_PER_SECOND + micros * 1000
                return {"monotonic": wall - ticks * NS_PER_SECOND // self.frequency}
        return {}

    @cached_property
    def log(self) -> Log:
        """The trace, scanned."""
        return self._scanned_log()

    @property
    def payloads(self) -> U8:
        """The bytes in which the payloads of ``events()`` lie, of shape (bytes,)."""
        return self.log.payloads

    @property
    def symbols(self) -> Symbols:
        """The names of functions. Raises UsageError or UnreadableError where there are none."""
        return self._names.symbols

    # --- Events ----------------------------------------------------------------------------------

    def events(self) -> Iterator[Events]:
        """Return all events, threads merged by time, some thousands at once.

        See ``events.Events``.
        """
        return self.log.events()

    def event_threads(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Process and thread ids by the ``thread`` of events, each of shape (threads,)."""
        return self.log.pids, self.log.tids

    # --- The pass over the whole file ------------------------------------------------------------

    def _run_pass(self, *, whole: bool) -> CallPass:
        call_pass = CallPass(self.log, self.frequency, self.request.limits, whole=whole)
        self._names.functions = call_pass.functions[0]
        return call_pass

    def _parts(self, passed: CallPass) -> Iterator[Rows]:
        matcher = Matcher(self.log, self.request.limits, passed.matcher.spans)
        for events in self.log.chunks():
            yield matcher.rows_of(events)

    def _batch(self, name: str, passed: CallPass, part: Rows) -> Batch:
        return batch_of(name, passed, self._names, part)

    def _report(self, passed: CallPass) -> None:
        self.diagnostics.report(self._heading(), 0)
        self._report_faults()
        self._cuts = [
            note.offset
            for notes in passed.notes
            for note in listed_notes(notes, RULES)
            if note.rule == rules.CUT_RECORD
        ]
        super()._report(passed)
        self.report_offsets(rules.NEVER_LEFT, passed.first_open, passed.open_calls)
        self.report_offsets(rules.TIME_OVERFLOW, passed.first_outside, passed.outside)
        self._names.report(self.diagnostics)

    def _report_faults(self) -> None:
        """Report what is wrong with the text of a trace; a file of records has none."""

    def _value(self, note: Note) -> object:
        return rules.shown_value(note.rule, note.value)

    def _record(self, note: Note) -> int | None:
        # Records as they are in the file are one less for each that swallowed another.
        record = super()._record(note)
        return None if record is None else record - bisect_left(self._cuts, note.offset)

    # --- Tables ----------------------------------------------------------------------------------

    def _small(self, name: str, passed: CallPass) -> Columns:
        return small_columns(name, passed, self._names)

    def _facts(self, passed: CallPass) -> dict[str, Any]:
        log = self.log
        blocks = self.log.buffers
        facts: dict[str, Any] = {
            "version": self.version,
            "mode": self.mode,
            "frequency_hz": self.frequency or "not known: ticks are taken for nanoseconds",
            "constant_tsc": self.constant_tsc,
            "nonstop_tsc": self.nonstop_tsc,
        }
        if blocks is not None:
            facts |= {"buffer_size": self.buffer_size, "buffers": blocks["offset"].size}
            is_used = blocks["thread"] >= 0
            if is_used.any():
                seconds = blocks["seconds"][is_used]
                walls = seconds * 1_000_000 + blocks["micros"][is_used]
                facts["wall_time"] = {"first_us": int(walls.min()), "last_us": int(walls.max())}
        facts |= {
            "threads": int(log.pids.size),
            "processes": int(np.unique(log.pids).size),
            "functions": int(passed.functions[0].size),
            "named_functions": int(np.count_nonzero(self._names.named)),
            "unmatched_entries": passed.open_calls,
            "unmatched_exits": passed.matcher.unmatched_exits,
            "unwound": passed.matcher.unwound,
        }
        if self.byte_order:
            facts["byte_order"] = self.byte_order
        return facts


class FileCapture(EventCapture):
    """A trace as the runtime writes it, of either mode."""

    byte_order = "little"
    log_class: ClassVar[type[FileLog]]

    def __init__(self, source: Source, request: OpenRequest) -> None:
        # Options that are invalid are refused here.
        self._decoder = RecordDecoder(self.format, limits=request.limits, options=request.options)
        super().__init__(source, request)
        self.header = read_header(source.data, self.format, self._decoder.byte_order)
        self.frequency = self._decoder.cycle_frequency
        header = self.header
        if header is not None:
            self.frequency = self.frequency or header.cycle_frequency
            self.version = header.version
            self.constant_tsc = header.constant_tsc
            self.nonstop_tsc = header.nonstop_tsc
            self.buffer_size = header.buffer_size
            self.byte_order = header.byte_order

    @property
    def writer_options(self) -> Mapping[str, Any]:
        """What the writer has to know to write these records as the same bytes."""
        return {} if self.byte_order == "little" else {"write_byte_order": self.byte_order}

    def _scanned_log(self) -> Log:
        if self.header is None:
            return _nothing(self.source.data)
        frequency = self.frequency or NS_PER_SECOND
        return self.log_class(self.source, self.header, self.request.limits, frequency)

    def records(self) -> Iterator[Record]:
        """Return every record, decoded one at a time."""
        decoder = RecordDecoder(
            self.format,
            diagnostics=self.record_diagnostics,
            limits=self.request.limits,
            options=self.request.options,
        )
        return decoder.records(self.source.data)

    def records_json(self) -> Iterator[bytes]:
        """Return the same records as JSON lines, those that are sound from columns."""
        if self.header is None:
            return super().records_json()

        from fx_xray.read.lines import lines_of

        self.first_pass(whole=False)  # it reports the findings
        return self.checked_pieces(lines_of(self._decoder, self.source, self.header))

    def _heading(self) -> list[Found]:
        size = self.source.size
        if self.header is None:
            return [Found(rules.NO_FILE_HEADER, 0, size)]
        return header_findings(self.header, self.format, size, self._decoder.cycle_frequency)


class FdrCapture(FileCapture):
    """A trace of the flight data recorder."""

    format = "xray"
    mode = MODES[False]
    log_class = FdrLog


class BasicCapture(FileCapture):
    """A trace of basic mode."""

    format = "xray-basic"
    mode = MODES[True]
    log_class = BasicLog


def _nothing(data: U8) -> Log:
    """Return a trace of no events: what is too short for a header."""
    damaged = min(int(data.size), 1)
    none = np.zeros(0, np.uint64)
    kinds = {"damaged": damaged} if damaged else {}
    return GivenLog(Events.of(np.zeros(0, EVENT)), none, none, data, kinds)
