"""Readers: bytes of XRay traces to Captures. Records come from ``records.py``, tables from events.

A trace is framed once (``columns.Log``), which finds threads and damage. One pass over its events
(``_Pass``) finds how long calls are and what a summary says; whole tables keep that pass's rows,
batches match the events again. Each column is made when it is first asked for.
"""

from __future__ import annotations

import abc
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fx_xray import layout
from fx_xray.read import scan as k
from fx_xray.read.columns import (
    BasicLog,
    Events,
    FdrLog,
    GivenLog,
    Log,
    Matcher,
    Rows,
    to_ns,
    to_spans,
)
from fx_xray.read.decoder import RecordDecoder
from fx_xray.read.header import header_findings, read_header
from fx_xray.read.records import Dialect, FileHeader
from fx_xray.read.symbols import Symbols
from fx_xray.read.tables import CUSTOM_EVENT, SCHEMAS, TYPED_EVENT, UNMATCHED_EXIT
from fx_xray.rules import RULES, told
from fxframework.errors import LimitError
from fxframework.io import arena
from fxframework.io.limits import Limits
from fxframework.io.source import Source
from fxframework.io.words import U64_MAX
from fxframework.model.capture import CallColumns, Capture, OpenRequest, Record, Summary
from fxframework.model.clock import NS_MAX, NS_PER_SECOND
from fxframework.model.schema import TABLE_CODES, TableSchema
from fxframework.model.strings import StringPool
from fxframework.model.table import Table

__all__ = ["BasicCapture", "EventCapture", "FdrCapture", "open_basic", "open_fdr"]

I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
Columns = dict[str, Any]
CHUNK_EVENTS = 1 << 14
"""Events that are matched at once where rows are not kept."""
WHOLE = 1 << 30
"""Files up to this many bytes are summed up from whole columns, larger ones as a stream."""
COST = 8
"""Bytes of columns that a byte of a file may take in whole tables; of typical logs, four."""
NUMBERED = 1 << 20
"""Function ids below this are looked up in a table."""
BINS = 64
BUSIEST = 8
"""Threads that a sketch shows."""
SKETCHED = 1 << 19
"""Rows that a sketch is made of."""
_ARGUMENT_TYPE, _EVENT_TYPE, _DATA_TYPE = 4, 2, 10
"""Of `args`: uint64, uint32, blob."""
_CALL_KIND = 3
"""Of `slices`."""

_MESSAGES = {
    101: "a record of {value} bytes",
    102: "a record of {value} bytes",
    103: "by {word} bytes",
    104: "kind {value}",
    105: "kind {value}",
    106: "size {value}",
    109: "{value} bytes",
    111: "{kind}",
    113: "{value} bytes",
    114: "a record of {value} bytes",
    201: "{last} to {kind}",
    202: "{kind}",
    205: "its time is {word} ticks",
    206: "{value:+} ticks",
    301: "of function {value}",
    306: "depth {value}",
    401: "{value} bytes",
    402: "type {value}",
    403: "kind {value}",
    404: "of function {value}",
}


CUT_RECORD = 205
"""The finding of a record that was cut in half, and swallows the next one."""


def open_fdr(source: Source, request: OpenRequest) -> FdrCapture:
    """Open a trace of the flight data recorder. Nothing is read yet but its header."""
    return FdrCapture(source, request)


def open_basic(source: Source, request: OpenRequest) -> BasicCapture:
    """Open a trace of basic mode. Nothing is read yet but its header."""
    return BasicCapture(source, request)


class EventCapture(Capture):
    """A trace of calls: all tables, from the events of a ``Log``.

    A subclass gives ``_framed()`` and the facts of the header, which are ``version``, ``mode``,
    ``frequency``, ``constant_tsc``, ``nonstop_tsc`` and ``buffer_size``.
    """

    timed_records = True
    schemas: ClassVar[Mapping[str, TableSchema]] = SCHEMAS
    calls = CallColumns(
        function="xray_function",
        ticks="xray_ticks",
        ended="xray_exit",
        functions="xray_functions",
    )
    mode: ClassVar[str] = ""
    version: int | None = None
    """As the header says it."""
    frequency: int = 0
    """Ticks per second: as the option says, or else the header; 0 not known."""
    constant_tsc: bool = True
    nonstop_tsc: bool = True
    buffer_size: int = 0
    byte_order: str = "little"

    def __init__(self, source: Source, request: OpenRequest) -> None:
        diagnostics = request.diagnostics(RULES, source)
        super().__init__(source, request, diagnostics)
        if not source.size:
            diagnostics.add("FXF0102", offset=0)
        self._passed: _Pass | None = None
        self._tables: dict[str, Table] = {}
        self._names = _Names(request.options, self.strings)

    @abc.abstractmethod
    def _framed(self) -> Log:
        """The trace, framed anew."""

    def _heading(self) -> list[tuple[str, str, int]]:
        """Findings about what is no event: code, message and byte offset."""
        return []

    @property
    def ticks_per_second(self) -> int | None:
        """The frequency of the counter; 0 where it is not known, and lengths are ticks alone."""
        return self.frequency

    @cached_property
    def log(self) -> Log:
        """The trace, framed."""
        return self._framed()

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
        """All events, threads merged by time, some thousands at once; see ``columns.Events``."""
        return self.log.events()

    def event_threads(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Process and thread ids by the ``thread`` of events, each of shape (threads,)."""
        return self.log.pids, self.log.tids

    # --- The pass over the whole file ------------------------------------------------------------

    def scan(self) -> None:
        """Read all of it, so that ``diagnostics`` is complete."""
        self._pass(whole=self._fits_memory)

    @property
    def _fits_memory(self) -> bool:
        """Whether whole columns are made where nobody asked for them."""
        bound = self.request.limits.max_memory or COST * WHOLE
        return COST * self.source.size <= bound

    def _pass(self, *, whole: bool) -> _Pass:
        passed = self._passed
        if passed is not None and (passed.rows is not None or not whole):
            return passed
        if whole:
            self._check_memory()
        if passed is None:
            # What `records()` found so far is found again.
            self.diagnostics.forget(RULES)
            for code, message, offset in self._heading():
                self.diagnostics.add(code, told(code, message), offset=offset, record=0)
        self._passed = _Pass(self.log, self.frequency, self.request.limits, whole=whole)
        self._names.functions = self._passed.functions[0]
        if passed is None:
            self._report(self._passed)
        return self._passed

    def _check_memory(self) -> None:
        bound = self.request.limits.max_memory
        if bound and COST * self.source.size > bound:
            raise LimitError(
                f"whole tables of {self.source.size} bytes of trace may take "
                f"{COST * self.source.size} bytes, and max_memory is {bound}",
                path=self.name,
                remedy="take the table in batches, or raise it with -o max_memory=BYTES",
            )

    def _report(self, passed: _Pass) -> None:
        """Turn what was found into diagnostics."""
        for notes in (self.log.notes, passed.matcher.notes):
            if notes is not None:
                self._report_notes(notes)
        opened = passed.matcher.open_calls()
        limit = self.request.limits.max_findings or opened.size
        for offset in opened[:limit].tolist():
            self.diagnostics.add("FXX0302", offset=offset)
        if opened.size > limit:
            self.diagnostics.add("FXX0302", times=int(opened.size) - limit)
        if passed.outside:
            self.diagnostics.add("FXX0305", offset=passed.outside[0], times=passed.outside[1])
        self._report_names(passed)

    def _report_notes(self, notes: k.Notes) -> None:
        listed = notes.findings[: k.FINDING_FIELDS * int(notes.counts[0])]
        found = listed.reshape(-1, k.FINDING_FIELDS).tolist()
        cut = [offset for number, offset, _, _ in found if number == CUT_RECORD]
        shown: dict[int, int] = {}
        for number, offset, record, value in found:
            shown[number] = shown.get(number, 0) + 1
            # Records as they stand in the file are one less for each that swallowed another.
            record -= bisect_left(cut, offset)
            message = _MESSAGES.get(number, "").format(
                value=value,
                word=value & U64_MAX,
                kind=(*k.KIND_NAMES, "nothing")[value & 15],
                last=(*k.KIND_NAMES, "nothing")[value >> 8 & 15],
            )
            code = f"FXX{number:04}"
            self.diagnostics.add(
                code,
                told(code, message),
                offset=offset,
                record=record if record >= 0 else None,
            )
        for number, total in enumerate(notes.counts[2:].tolist()):
            if total > shown.get(number, 0):
                self.diagnostics.add(f"FXX{number:04}", times=total - shown.get(number, 0))

    def _report_names(self, passed: _Pass) -> None:
        """Say which functions have no name."""
        ids = passed.functions[0].tolist()
        if not self.request.options.get("instr_map"):
            if ids:
                self.diagnostics.add("FXX0601", told("FXX0601", f"{len(ids)}"))
            return
        for fault in self.symbols.faults:
            self.diagnostics.add("FXX0603", told("FXX0603", str(fault)))
        missing = [id for id in ids if self.symbols.name(id) is None]
        if missing:
            more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            detail = f"function {missing[0]}{more} of {len(ids)}"
            self.diagnostics.add("FXX0602", told("FXX0602", detail))
        for id in ids:
            if self.symbols.ambiguous(id):
                self.diagnostics.add("FXX0604", told("FXX0604", f"function {id}"))

    # --- Tables ----------------------------------------------------------------------------------

    def _table(self, name: str) -> Table:
        table = self._tables.get(name)
        if table is None:
            if name in _ROWS:
                passed = self._pass(whole=True)
                assert passed.rows is not None  # noqa: S101 (a whole pass keeps them)
                table = self._made(name, passed, passed.rows)
            else:
                table = self._small(name)
            self._tables[name] = table
        return table

    def _batches(self, name: str, rows: int) -> Iterator[Table]:
        passed = self._pass(whole=False)
        if name not in _ROWS or passed.rows is not None:
            whole = self._table(name)
            for at in range(0, len(whole), rows):
                yield whole.select(slice(at, at + rows))
            return
        matcher = Matcher(self.log, self.request.limits, passed.matcher.spans)
        for events in self.log.chunks(CHUNK_EVENTS):
            matcher.add(events)
            table = self._made(name, passed, matcher.take())
            for at in range(0, len(table), rows):
                yield table.select(slice(at, at + rows))

    def _made(self, name: str, passed: _Pass, rows: Rows) -> Table:
        make: dict[str, Callable[[_Pass, _Names, Rows], tuple[int, Columns]]] = {
            "slices": _slices,
            "instants": _instants,
            "args": _args,
        }
        # What makes columns holds no capture, so that its memory is free once nobody does.
        count, columns = make[name](passed, self._names, rows)
        first = rows.first[name]
        columns["row"] = lambda: _counting(first, count)
        return Table(self.schemas[name], count, columns, self.strings)

    def _small(self, name: str) -> Table:
        """A table that has few rows."""
        make: dict[str, Callable[[], Columns]] = {
            "processes": self._processes,
            "threads": self._threads,
            "xray_buffers": self._buffers,
            "xray_functions": self._functions,
        }
        columns = make[name]()
        count = next(len(column) for column in columns.values() if not callable(column))
        columns["row"] = np.arange(count, dtype=np.int64)
        return Table(self.schemas[name], count, columns, self.strings)

    def _processes(self) -> Columns:
        pids, first = np.unique(self.log.pids, return_index=True)
        order = np.argsort(first, kind="stable")
        return {
            "offset": self.log.thread_offsets[first[order]],
            "pid": pids[order],
            "name": np.full(pids.size, -1, np.int32),
        }

    def _threads(self) -> Columns:
        log = self.log
        return {
            "offset": log.thread_offsets,
            "id": np.arange(log.pids.size, dtype=np.int32),
            "pid": log.pids,
            "tid": log.tids,
            "name": np.full(log.pids.size, -1, np.int32),
        }

    def _buffers(self) -> Columns:
        blocks = self.log.blocks
        empty = np.zeros(0, np.int64)
        if blocks is None:
            return {column.name: empty.astype(column.kind) for column in _BUFFER_COLUMNS}
        return {
            "offset": blocks.offset,
            "thread": blocks.thread,
            "nbytes": blocks.nbytes,
            "seconds": blocks.seconds,
            "micros": blocks.micros.astype(np.int32),
            "ticks": blocks.ticks.view(np.uint64),
            "records": blocks.records,
        }

    def _functions(self) -> Columns:
        ids, calls = self._pass(whole=False).functions
        symbols, strings = self.symbols, self.strings
        known = ids.tolist()

        def codes(of: Callable[[int], str | None]) -> NDArray[np.int32]:
            return np.array([_code(of(id), strings) for id in known], np.int32)

        return {
            "offset": lambda: self._first_mentions(ids),
            "id": ids.astype(np.uint32),
            "object": np.array([symbols.object(id) & 0xFF for id in known], np.uint8),
            "name": self._names.codes,
            "linkage_name": codes(symbols.linkage_name),
            "source": lambda: codes(symbols.source),
            "address": np.array([symbols.address(id) for id in known], np.uint64),
            "calls": calls,
        }

    def _first_mentions(self, ids: I64) -> I64:
        """Byte offsets of the first events of functions, whose ids are ascending; same shape."""
        first: I64 = np.full(ids.size, -1, np.int64)
        for events in self.events():
            of_calls = events.kind <= layout.FunctionKind.ENTER_ARG
            places = np.searchsorted(ids, events.function[of_calls])[::-1]
            found: I64 = np.full(ids.size, -1, np.int64)
            found[places] = events.offset[of_calls][::-1]  # the last that is stored is the first
            first = np.where(first < 0, found, first)
            if first.size and int(first.min()) >= 0:
                break
        return first

    # --- Summary ---------------------------------------------------------------------------------

    def summary(self) -> Summary:
        """Counts and times, from one pass over the whole capture."""
        passed = self._pass(whole=self._fits_memory)
        log = self.log
        start, end = passed.range()
        return Summary(
            records=log.records,
            kinds=log.kinds,
            start_ns=start,
            end_ns=end,
            facts=self._facts(passed),
            rows={
                "processes": int(np.unique(log.pids).size),
                "threads": int(log.pids.size),
                **passed.counted,
                "xray_buffers": 0 if log.blocks is None else int(log.blocks.offset.size),
                "xray_functions": int(passed.functions[0].size),
            },
            timeline=passed.timeline(),
        )

    def _facts(self, passed: _Pass) -> dict[str, Any]:
        log, blocks = self.log, self.log.blocks
        facts: dict[str, Any] = {
            "version": self.version,
            "mode": self.mode,
            "frequency_hz": self.frequency or "not known: ticks are taken for nanoseconds",
            "constant_tsc": self.constant_tsc,
            "nonstop_tsc": self.nonstop_tsc,
        }
        if blocks is not None:
            facts |= {"buffer_size": self.buffer_size, "buffers": int(blocks.offset.size)}
            some = blocks.thread >= 0
            if some.any():
                walls = np.unique(blocks.seconds[some] * 1_000_000 + blocks.micros[some])
                facts["wall_time"] = {"first_us": int(walls[0]), "last_us": int(walls[-1])}
        ids = passed.functions[0].tolist()
        given = bool(self.request.options.get("instr_map"))
        return facts | {
            "threads": int(log.pids.size),
            "processes": int(np.unique(log.pids).size),
            "functions": len(ids),
            "named_functions": sum(self.symbols.name(id) is not None for id in ids) if given else 0,
            "unmatched_entries": passed.unmatched_entries,
            "unmatched_exits": passed.matcher.unmatched_exits,
            "unwound": passed.matcher.unwound,
            "byte_order": self.byte_order,
        }


class FileCapture(EventCapture):
    """A trace as the runtime writes it, of either mode."""

    def __init__(self, source: Source, request: OpenRequest) -> None:
        # Options that make no sense are refused here.
        self._decoder = RecordDecoder(self.format, limits=request.limits, options=request.options)
        super().__init__(source, request)
        self.header: FileHeader | None = read_header(
            source.data[: layout.HEADER_BYTES + 1], self.format, self._decoder.byte_order
        )
        self.frequency = self._decoder.cycle_frequency
        header = self.header
        if header is not None:
            self.frequency = self.frequency or header.cycle_frequency
            self.version = header.version
            self.constant_tsc, self.nonstop_tsc = header.constant_tsc, header.nonstop_tsc
            self.buffer_size, self.byte_order = header.buffer_size, header.byte_order

    @property
    def writer_options(self) -> Mapping[str, Any]:
        """What the writer has to know to write these records as the same bytes."""
        return {} if self.byte_order == "little" else {"write_byte_order": self.byte_order}

    @property
    def _defined(self) -> int:
        """The version that it is read as."""
        return Dialect(self.format, self.version or 0).defined

    def records(self) -> Iterator[Record]:
        """Every record, as ``fx_xray.read.records`` decodes them one at a time."""
        # Findings are reported once: by the tables' pass where it has run, else from here.
        fresh = not self.diagnostics.has_any(RULES)
        decoder = RecordDecoder(
            self.format,
            diagnostics=self.diagnostics if fresh else None,
            limits=self.request.limits,
            options=self.request.options,
        )
        return decoder.records(self.source.data)

    def _heading(self) -> list[tuple[str, str, int]]:
        size = self.source.size
        if self.header is None:
            return [("FXX0001", f"{size} bytes", 0)]
        return header_findings(self.header, self.format, size, self._decoder.cycle_frequency)


class FdrCapture(FileCapture):
    """A trace of the flight data recorder (document 004; notes §1)."""

    format = "xray"
    mode = "flight data recorder"

    def _framed(self) -> Log:
        if self.header is None:
            return _nothing(self.source.data)
        return FdrLog(
            self.source.data,
            version=self._defined,
            byte_order=self.byte_order,
            buffer_size=self.buffer_size,
            frequency=self.frequency or NS_PER_SECOND,
            limits=self.request.limits,
            release=self.source.release,
        )


class BasicCapture(FileCapture):
    """A trace of basic mode (notes §1.5)."""

    format = "xray-basic"
    mode = "basic"

    def _framed(self) -> Log:
        if self.header is None:
            return _nothing(self.source.data)
        return BasicLog(
            self.source.data,
            version=self._defined,
            byte_order=self.byte_order,
            limits=self.request.limits,
            release=self.source.release,
        )


def _nothing(data: U8) -> Log:
    """A trace of no events: what is too short for a header."""
    damaged = min(int(data.size), 1)
    none = np.zeros(0, np.uint64)
    events = Events(
        *(np.zeros(0, kind) for kind in ("u1", "u4", "u8", "u2", "i4", "i8", "u8", "i4"))
    )
    kinds = {"damaged": damaged} if damaged else {}
    return GivenLog(events, none, none, data, records=damaged, kinds=kinds)


def _code(text: str | None, strings: StringPool) -> int:
    """Code of a text; -1 of none."""
    return -1 if text is None else strings.intern(text.encode(errors="surrogateescape"))


class _Names:
    """Codes of the names of functions."""

    def __init__(self, options: Mapping[str, Any], strings: StringPool) -> None:
        self._options = options
        self.strings = strings
        self.functions: I64 = np.zeros(0, np.int64)
        """Ids of all functions of the trace, ascending."""

    @cached_property
    def symbols(self) -> Symbols:
        """What the maps say that the options name."""
        return Symbols.of(self._options)

    @cached_property
    def codes(self) -> NDArray[np.int32]:
        """By place in ``functions``: the code of the name, or of the number."""
        names = (self.symbols.name(id) or str(id) for id in self.functions.tolist())
        return np.array([_code(name, self.strings) for name in names], np.int32)

    def of(self, functions: NDArray[np.uint32]) -> NDArray[np.int32]:
        """Codes of the names of functions, by their ids; same shape."""
        ids, codes = self.functions, self.codes
        out: NDArray[np.int32] = arena.empty(functions.size, np.int32)
        if not ids.size:
            return out
        if int(ids[-1]) < NUMBERED:
            table = np.full(int(ids[-1]) + 1, -1, np.int32)
            table[ids] = codes
            k.pick.for_size(4 * functions.size)(table, functions, out)
        else:
            out[:] = codes[np.searchsorted(ids, functions)]
        return out


class _Pass:
    """What one pass over all events found."""

    def __init__(self, log: Log, frequency: int, limits: Limits, *, whole: bool) -> None:
        self.log = log
        self.frequency = frequency
        """Ticks per second; 0 not known."""
        self.matcher = matcher = Matcher(log, limits)
        self.rows: Rows | None = None
        """All rows, where the pass kept them."""
        self.outside: tuple[int, int] | None = None
        """Offset of the first row whose time is beyond int64 nanoseconds, and how many are."""
        frequency = frequency or NS_PER_SECOND
        bound = ((NS_MAX + 1) * frequency - 1) // NS_PER_SECOND
        unmatched: set[int] = set()
        if whole:
            log.feed(matcher)
            self._settle(bound, unmatched)
            self.rows = matcher.take()
        else:
            for events in log.chunks(CHUNK_EVENTS):
                matcher.add(events)
                self._settle(bound, unmatched)
                matcher.forget()
        scalars = matcher.calls.scalars
        self.counted = {
            "slices": int(scalars[k.M_FIRST_SLICE]),
            "instants": int(scalars[k.M_FIRST_INSTANT]),
            "args": int(scalars[k.M_FIRST_ARG]),
        }
        self.unmatched_entries = int(matcher.open_calls().size)
        ids, calls = matcher.entries()
        every = np.union1d(ids, np.array(sorted(unmatched), np.int64))
        counts = np.zeros(every.size, np.int64)
        counts[np.searchsorted(every, ids)] = calls
        self.functions: tuple[I64, I64] = every, counts
        """Ids of all functions, ascending, and how often each was entered."""

    def _settle(self, bound: int, unmatched: set[int]) -> None:
        """Look at the rows that there are now."""
        unmatched.update(self.matcher.exited())
        beyond = self.matcher.beyond(bound)
        if beyond is not None:
            offset, times = self.outside or (beyond[0], 0)
            self.outside = min(offset, beyond[0]), times + beyond[1]

    def range(self) -> tuple[int | None, int | None]:
        """The first and the last time of the capture, in ns; None where it has none."""
        if self.matcher.range is None:
            return None, None
        frequency = self.frequency or NS_PER_SECOND
        start, end = (
            min(ticks * NS_PER_SECOND // frequency, NS_MAX) for ticks in self.matcher.range
        )
        return start, end

    def timeline(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Calls per stretch of time, for the busiest threads."""
        if self.rows is None or self.matcher.range is None or not self.rows.slices.ticks.size:
            return ()
        first, last = self.matcher.range
        span = last - first + 1
        if span >= 1 << 53:
            return ()
        step = max(1, self.rows.slices.ticks.size // SKETCHED)  # a sketch needs no more
        threads = self.rows.slices.thread[::step]
        ticks = self.rows.slices.ticks[::step].view(np.uint64)
        bins = ((ticks - np.uint64(first)) // np.uint64(-(-span // BINS))).astype(np.int64)
        log = self.log
        counts = np.bincount(threads, minlength=1)
        busiest = np.argsort(-counts, kind="stable")[:BUSIEST].tolist()
        return tuple(
            (
                f"{int(log.pids[thread])}/{int(log.tids[thread])}",
                tuple(np.bincount(bins[threads == thread], minlength=BINS)[:BINS].tolist()),
            )
            for thread in busiest
            if counts[thread]
        )


# --- Columns of the tables ------------------------------------------------------------------------

_ROWS = ("slices", "instants", "args")
"""Tables with a row per event."""
_BUFFER_COLUMNS = tuple(
    column for column in SCHEMAS["xray_buffers"].all_columns if column.name != "row"
)


def _slices(passed: _Pass, names: _Names, rows: Rows) -> tuple[int, Columns]:
    slices, spans = rows.slices, passed.matcher.spans
    count = int(slices.offset.size)
    first = rows.first["slices"]
    mine = slice(first, first + count)
    frequency, nbytes = passed.frequency, passed.log.nbytes
    made: list[tuple[I64, I64]] = []

    def spans_in_ns() -> tuple[I64, I64]:
        if not made:
            made.append(to_spans(slices.ticks, spans.ticks[mine], frequency, nbytes))
        return made[0]

    return count, {
        "offset": slices.offset,
        "ts": lambda: spans_in_ns()[0],
        "ticks": slices.ticks.view(np.uint64),
        "dur": lambda: spans_in_ns()[1],
        "thread": slices.thread,
        "category": np.broadcast_to(np.int32(-1), count),
        "name": lambda: names.of(slices.function),
        "depth": slices.depth,
        "parent": slices.parent,
        "kind": np.broadcast_to(np.uint8(_CALL_KIND), count),
        "id": np.broadcast_to(np.uint64(0), count),
        "xray_function": slices.function,
        "xray_ticks": spans.ticks[mine],
        "xray_cpu": slices.cpu,
        "xray_exit": spans.exit[mine],
        "xray_entry": slices.entry,
    }


def _instants(passed: _Pass, names: _Names, rows: Rows) -> tuple[int, Columns]:
    instants = rows.instants
    count = int(instants.offset.size)
    frequency, nbytes = passed.frequency, passed.log.nbytes

    strings = names.strings

    def categories() -> NDArray[np.int32]:
        codes = np.zeros(8, np.int32)
        codes[:] = strings.intern(UNMATCHED_EXIT.encode())
        codes[k.CUSTOM] = strings.intern(CUSTOM_EVENT.encode())
        codes[k.TYPED] = strings.intern(TYPED_EVENT.encode())
        found: NDArray[np.int32] = codes[instants.kind]
        return found

    def shown() -> NDArray[np.int32]:
        codes = categories()
        exits = instants.kind < k.ARGUMENT
        codes[exits] = names.of(instants.function[exits])
        return codes

    return count, {
        "offset": instants.offset,
        "ts": lambda: to_ns(instants.ticks, frequency, nbytes),
        "ticks": instants.ticks.view(np.uint64),
        "thread": instants.thread,
        "category": categories,
        "name": shown,
        "scope": np.broadcast_to(np.uint8(0), count),
        "id": np.broadcast_to(np.uint64(0), count),
        "xray_cpu": instants.cpu,
        "xray_event_type": lambda: np.where(instants.kind == k.TYPED, instants.function, 0).astype(
            np.uint16
        ),
    }


def _args(passed: _Pass, names: _Names, rows: Rows) -> tuple[int, Columns]:
    args = rows.args
    count = int(args.offset.size)
    strings = names.strings
    tables = np.array([TABLE_CODES["slices"], TABLE_CODES["instants"]], np.uint8)

    def shown() -> NDArray[np.int32]:
        numbers, inverse = np.unique(args.name, return_inverse=True)
        special = {k.DATA: "data", k.EVENT_TYPE: "event_type"}
        codes = [
            strings.intern(special.get(number, f"arg{number}").encode())
            for number in numbers.tolist()
        ]
        return np.array(codes, np.int32)[inverse.reshape(-1)]

    def types() -> U8:
        kinds = np.full(count, _ARGUMENT_TYPE, np.uint8)
        kinds[args.name == k.DATA] = _DATA_TYPE
        kinds[args.name == k.EVENT_TYPE] = _EVENT_TYPE
        return kinds

    def values() -> I64:
        data = args.name == k.DATA
        return np.where(data, 0, args.value) if data.any() else args.value

    def payloads() -> NDArray[np.int32]:
        picked = np.flatnonzero(args.name == k.DATA)
        if not picked.size:
            return np.broadcast_to(np.int32(-1), count)
        codes = np.full(count, -1, np.int32)
        data = passed.log.payloads
        codes[picked] = [
            strings.intern(data[at : at + size].tobytes())
            for at, size in zip(
                args.value[picked].tolist(), args.size[picked].tolist(), strict=True
            )
        ]
        return codes

    return count, {
        "offset": args.offset,
        "table": lambda: tables[args.of_instant],
        "parent": args.parent,
        "name": shown,
        "type": types,
        "int": values,
        "uint": lambda: values().view(np.uint64),
        "float": np.broadcast_to(np.float64(0), count),
        "str": payloads,
    }


def _counting(first: int, rows: int) -> I64:
    """Row numbers from ``first`` on."""
    numbers: I64 = arena.empty(rows, np.int64)
    block = np.arange(min(rows, 1 << 15), dtype=np.int64)
    for at in range(0, rows, block.size or 1):
        part = numbers[at : at + block.size]
        np.add(block[: part.size], first + at, out=part)
    return numbers
