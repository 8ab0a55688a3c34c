"""Readers: bytes of XRay traces to Captures. Records come from ``decoder.py``, tables from events.

A trace is scanned once (``log.Log``), which finds threads and damage. One pass over its events
(``CallPass``) finds how long calls are and what a summary says; ``fxframework.kit.scanned`` says
what is done with it. Each column is made when it is first asked for.
"""

from __future__ import annotations

import abc
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fx_xray import format as wire
from fx_xray import rules
from fx_xray.format import (
    ARGUMENT,
    CUSTOM,
    DATA,
    EVENT_TYPE,
    TYPED,
    Dialect,
    FileHeader,
)
from fx_xray.read.calls import Matcher, Rows
from fx_xray.read.columns import EVENT, Events, distinct, to_ns, to_spans
from fx_xray.read.decoder import RecordDecoder
from fx_xray.read.header import header_findings, read_header
from fx_xray.read.log import BasicLog, FdrLog, GivenLog, Log
from fx_xray.read.record_lines import lines_of
from fx_xray.read.symbols import Symbols
from fx_xray.read.tables import CUSTOM_EVENT, SCHEMAS, TYPED_EVENT, UNMATCHED_EXIT
from fx_xray.read.ticks import Pick
from fx_xray.rules import RULES
from fxframework.io import arena
from fxframework.io.limits import Limits
from fxframework.io.source import Source
from fxframework.kernels.buffers import view
from fxframework.kernels.notes import Notes
from fxframework.kit.scanned import (
    Batch,
    Columns,
    FirstPass,
    Note,
    ScannedCapture,
    Timeline,
    busiest,
    listed_notes,
    sketch,
)
from fxframework.model.capture import CallColumns, OpenRequest, Record
from fxframework.model.clock import NS_MAX, NS_PER_SECOND
from fxframework.model.diagnostics import Found
from fxframework.model.schema import TABLE_CODES, TableSchema
from fxframework.model.strings import StringPool

__all__ = [
    "BasicCapture",
    "CallPass",
    "EventCapture",
    "FdrCapture",
    "FileCapture",
]

I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
FEW = 1 << 16
"""Numbers that are gathered, or looked up, at once."""
NUMBERED = 1 << 20
"""Function ids below this, or four times as many as there are, are looked up in a table."""
_ARGUMENT_TYPE, _EVENT_TYPE, _DATA_TYPE = 4, 2, 10
"""Of `args`: uint64, uint32, blob."""
_CALL_KIND = 3
"""Of `slices`."""
MODES = ("flight data recorder", "basic")
"""Names of the modes, by whether it is basic mode."""


class CallPass(FirstPass[Rows]):
    """What one pass over all events found."""

    def __init__(self, log: Log, frequency: int, limits: Limits, *, whole: bool) -> None:
        self.log = log
        self.frequency = frequency
        """Ticks per second; 0 not known."""
        self.matcher = matcher = Matcher(log, limits)
        self.outside: tuple[int, int] | None = None
        """Offset of the first row whose time is beyond int64 nanoseconds, and how many are."""
        frequency = frequency or NS_PER_SECOND
        bound = ((NS_MAX + 1) * frequency - 1) // NS_PER_SECOND
        if whole:
            matcher.add_all()
            exited = [self._settle(bound)]
            self.whole = matcher.take()
        else:
            exited = [np.zeros(0, np.int64)]
            for events in log.chunks():
                matcher.add(events)
                exited.append(self._settle(bound))
                if sum(map(len, exited[1:])) > max(len(exited[0]), FEW):
                    exited = [distinct(*exited)]
                matcher.forget()
        ids, calls, offsets = matcher.end()
        self.open_calls = int(offsets.size)
        most = limits.max_findings or self.open_calls
        self.first_open = offsets[:most].copy()
        """The first byte offsets of calls that are open at the end, as many as may be reported."""
        del offsets
        every = distinct(ids, *exited)
        counts = np.zeros(every.size, np.int64)
        counts[np.searchsorted(every, ids)] = calls
        self.functions: tuple[I64, I64] = every, counts
        """Ids of all functions, ascending, and how often each was entered."""

    def _settle(self, bound: int) -> I64:
        """Look at the rows that there are now; return the functions with unmatched exits."""
        beyond = self.matcher.beyond(bound)
        if beyond is not None:
            offset, times = self.outside or (beyond[0], 0)
            self.outside = min(offset, beyond[0]), times + beyond[1]
        return self.matcher.exited()

    @property
    def notes(self) -> list[Notes]:
        """Those of the scan and of the match."""
        return [each for each in (self.log.notes, self.matcher.notes) if each is not None]

    @property
    def records(self) -> int:
        """Records in the file."""
        return self.log.records

    @property
    def kinds(self) -> dict[str, int]:
        """Records of each kind, by the names of record JSON."""
        return self.log.kinds

    @property
    def rows(self) -> dict[str, int]:
        """Rows of each table."""
        log = self.log
        return {
            "processes": int(np.unique(log.pids).size),
            "threads": int(log.pids.size),
            **self.matcher.counted,
            "xray_buffers": 0 if log.buffers is None else log.buffers["offset"].size,
            "xray_functions": int(self.functions[0].size),
        }

    @property
    def range(self) -> tuple[int | None, int | None]:
        """The first and the last time of the capture in nanoseconds; None where it has none."""
        if self.matcher.range is None:
            return None, None
        frequency = self.frequency or NS_PER_SECOND
        start, end = (
            min(ticks * NS_PER_SECOND // frequency, NS_MAX) for ticks in self.matcher.range
        )
        return start, end

    @property
    def timeline(self) -> Timeline:
        """Calls per stretch of time, for the busiest threads."""
        if self.whole is None or self.matcher.range is None:
            return ()
        slices, log = self.whole.slices, self.log
        labels = [
            (thread, f"{int(log.pids[thread])}/{int(log.tids[thread])}")
            for thread in busiest(slices.thread)
        ]
        return sketch(slices.ticks.view(np.uint64), slices.thread, self.matcher.range, labels)


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
    calls = CallColumns(
        function="xray_function",
        ticks="xray_ticks",
        ended="xray_exit",
        functions="xray_functions",
    )
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
    """Of a file of records."""

    def __init__(self, source: Source, request: OpenRequest) -> None:
        super().__init__(source, request)
        self._names = FunctionNames(request.options, self.strings)

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

        See ``columns.Events``.
        """
        return self.log.events()

    def event_threads(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Process and thread ids by the ``thread`` of events, each of shape (threads,)."""
        return self.log.pids, self.log.tids

    # --- The pass over the whole file ------------------------------------------------------------

    def _run_pass(self, *, whole: bool) -> CallPass:
        passed = CallPass(self.log, self.frequency, self.request.limits, whole=whole)
        self._names.functions = passed.functions[0]
        return passed

    def _parts(self, passed: CallPass) -> Iterator[Rows]:
        matcher = Matcher(self.log, self.request.limits, passed.matcher.spans)
        for events in self.log.chunks():
            matcher.add(events)
            yield matcher.take()

    def _batch(self, name: str, passed: CallPass, part: Rows) -> Batch:
        return _BATCHES[name](passed, self._names, part)

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
        self.report_offsets(rules.NEVER_LEFT, passed.first_open)
        self.report_more(rules.NEVER_LEFT, passed.open_calls, int(passed.first_open.size))
        if passed.outside:
            offset, times = passed.outside
            self.diagnostics.add(rules.TIME_OVERFLOW, offset, times=times)
        self._report_names(passed)

    def _report_faults(self) -> None:
        """Report what is wrong with the text of a trace; a file of records has none."""

    def _value(self, note: Note) -> object:
        return rules.shown_value(note.rule, note.value)

    def _record(self, note: Note) -> int | None:
        # Records as they are in the file are one less for each that swallowed another.
        record = super()._record(note)
        return None if record is None else record - bisect_left(self._cuts, note.offset)

    def _report_names(self, passed: CallPass) -> None:
        """Say which functions have no name."""
        ids = passed.functions[0]
        missing = ids[~self._names.named]
        if not self.request.options.get("instr_map"):
            if missing.size:
                named = ids.size if self._names.given is None else f"{missing.size} of {ids.size}"
                self.diagnostics.add(rules.NO_FUNCTION_NAMES, value=named)
            return
        for fault in self.symbols.faults:
            self.diagnostics.add(rules.INVALID_MAP_ENTRY, value=fault)
        if missing.size:
            more = f" and {missing.size - 1} more" if missing.size > 1 else ""
            named = f"function {missing[0]}{more} of {ids.size}"
            self.diagnostics.add(rules.NAMES_MISSING, value=named)
        for id in map(int, ids):
            if self.symbols.ambiguous(id):
                self.diagnostics.add(rules.AMBIGUOUS_OBJECT, value=id)

    # --- Tables ----------------------------------------------------------------------------------

    def _small(self, name: str, passed: CallPass) -> Columns:
        """Return the columns of a table that has few rows."""
        if name == "processes":
            return self._processes()
        if name == "threads":
            return self._threads()
        if name == "xray_buffers":
            return self._buffers()
        return self._functions(passed)

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
        if self.log.buffers is not None:
            return {**self.log.buffers}
        empty = np.zeros(0, np.int64)
        return {column.name: empty.astype(column.kind) for column in _BUFFER_COLUMNS}

    def _functions(self, passed: CallPass) -> Columns:
        ids, calls = passed.functions
        names, log, symbols, strings = self._names, self.log, self.symbols, self.strings

        def column(dtype: type, of: Callable[[int], int], otherwise: Any) -> Any:
            """Return what the maps say of each function; nothing is asked where there is no map."""
            if not symbols:
                return np.broadcast_to(np.asarray(otherwise, dtype), ids.shape)
            return np.fromiter(map(of, map(int, ids)), dtype, ids.size)

        def codes(of: Callable[[int], str | None]) -> NDArray[np.int32]:
            found: NDArray[np.int32] = column(np.int32, lambda id: _code(of(id), strings), -1)
            return found

        objects = ids >> wire.OBJECT_SHIFT
        return {
            "offset": lambda: _first_offsets(log, ids),
            "id": ids.astype(np.uint32),
            "object": lambda: column(
                np.uint8, lambda id: symbols.object(id) & wire.MAX_OBJECT, objects
            ),
            "name": names.codes,
            "linkage_name": lambda: codes(symbols.linkage_name),
            "source": lambda: codes(symbols.source),
            "address": lambda: column(np.uint64, symbols.address, 0),
            "calls": calls,
        }

    def _facts(self, passed: CallPass) -> dict[str, Any]:
        log, blocks = self.log, self.log.buffers
        facts: dict[str, Any] = {
            "version": self.version,
            "mode": self.mode,
            "frequency_hz": self.frequency or "not known: ticks are taken for nanoseconds",
            "constant_tsc": self.constant_tsc,
            "nonstop_tsc": self.nonstop_tsc,
        }
        if blocks is not None:
            facts |= {"buffer_size": self.buffer_size, "buffers": blocks["offset"].size}
            some = blocks["thread"] >= 0
            if some.any():
                walls = np.unique(blocks["seconds"][some] * 1_000_000 + blocks["micros"][some])
                facts["wall_time"] = {"first_us": int(walls[0]), "last_us": int(walls[-1])}
        order = {"byte_order": self.byte_order} if self.byte_order else {}
        return facts | {
            "threads": int(log.pids.size),
            "processes": int(np.unique(log.pids).size),
            "functions": int(passed.functions[0].size),
            "named_functions": int(np.count_nonzero(self._names.named)),
            "unmatched_entries": passed.open_calls,
            "unmatched_exits": passed.matcher.unmatched_exits,
            "unwound": passed.matcher.unwound,
            **order,
        }


class FileCapture(EventCapture):
    """A trace as the runtime writes it, of either mode."""

    byte_order = "little"

    def __init__(self, source: Source, request: OpenRequest) -> None:
        # Options that are invalid are refused here.
        self._decoder = RecordDecoder(self.format, limits=request.limits, options=request.options)
        super().__init__(source, request)
        self.header: FileHeader | None = read_header(
            source.data[: wire.HEADER_BYTES + 1], self.format, self._decoder.byte_order
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
        """Return every record, decoded one at a time."""
        decoder = RecordDecoder(
            self.format,
            diagnostics=self.record_diagnostics,
            limits=self.request.limits,
            options=self.request.options,
        )
        return decoder.records(self.source.data)

    def records_json(self) -> Iterator[bytes]:
        """Return the same records as JSON lines.

        A program writes those that are sound (``record_lines.py``).
        """
        if self.header is None:
            return super().records_json()
        self.first_pass(whole=False)  # it reports the findings
        source = self.source
        lines = lines_of(self._decoder, source, self.header, source.passed)
        return self.checked_pieces(lines)

    def _heading(self) -> list[Found]:
        size = self.source.size
        if self.header is None:
            return [Found(rules.NO_FILE_HEADER, 0, size)]
        return header_findings(self.header, self.format, size, self._decoder.cycle_frequency)


class FdrCapture(FileCapture):
    """A trace of the flight data recorder."""

    format = "xray"
    mode = MODES[False]

    def _scanned_log(self) -> Log:
        if self.header is None:
            return _nothing(self.source.data)
        return FdrLog(
            self.source.data,
            version=self._defined,
            byte_order=self.byte_order,
            buffer_size=self.buffer_size,
            frequency=self.frequency or NS_PER_SECOND,
            limits=self.request.limits,
            release=self.source.passed,
        )


class BasicCapture(FileCapture):
    """A trace of basic mode."""

    format = "xray-basic"
    mode = MODES[True]

    def _scanned_log(self) -> Log:
        if self.header is None:
            return _nothing(self.source.data)
        return BasicLog(
            self.source.data,
            version=self._defined,
            byte_order=self.byte_order,
            limits=self.request.limits,
            release=self.source.passed,
        )


def _nothing(data: U8) -> Log:
    """Return a trace of no events: what is too short for a header."""
    damaged = min(int(data.size), 1)
    none = np.zeros(0, np.uint64)
    kinds = {"damaged": damaged} if damaged else {}
    return GivenLog(Events.of(np.zeros(0, EVENT)), none, none, data, records=damaged, kinds=kinds)


def _code(text: str | None, strings: StringPool) -> int:
    """Return the code of a text; -1 of none."""
    return -1 if text is None else strings.intern(text.encode(errors="surrogateescape"))


class FunctionNames:
    """Codes of the names of functions."""

    def __init__(self, options: Mapping[str, Any], strings: StringPool) -> None:
        self._options = options
        self.strings = strings
        self.given: Mapping[int, str] | None = None
        """The names that the trace itself has, once it is scanned; None if it cannot have any."""
        self.functions: I64 = np.zeros(0, np.int64)
        """Ids of all functions of the trace, ascending."""

    @cached_property
    def symbols(self) -> Symbols:
        """What the maps say that the options name."""
        return Symbols.of(self._options, self.given)

    @cached_property
    def named(self) -> NDArray[np.bool_]:
        """By place in ``functions``: whether it has a name."""
        symbols = self.symbols
        if not (symbols or symbols.given):
            return np.zeros(self.functions.size, np.bool_)
        known = (symbols.name(id) is not None for id in map(int, self.functions))
        return np.fromiter(known, np.bool_, self.functions.size)

    @cached_property
    def codes(self) -> NDArray[np.int32]:
        """By place in ``functions``: the code of the name, or of the number."""
        codes = np.empty(self.functions.size, np.int32)
        symbols, named = self.symbols, self.named
        for place in map(int, np.flatnonzero(named)):
            codes[place] = _code(symbols.name(int(self.functions[place])), self.strings)
        codes[~named] = self.strings.intern_numbers(self.functions[~named])
        return codes

    def of(self, functions: NDArray[np.uint32]) -> NDArray[np.int32]:
        """Return the codes of the names of functions, by their ids; same shape."""
        ids, codes = self.functions, self.codes
        out: NDArray[np.int32] = arena.empty(functions.size, np.int32)
        if not ids.size:
            return out
        if int(ids[-1]) < max(NUMBERED, 4 * ids.size):
            table = np.full(int(ids[-1]) + 1, -1, np.int32)
            table[ids] = codes
            Pick(view(table, np.int32), view(functions, np.uint32), out.data).run()
            return out
        for start in range(0, functions.size, FEW):
            some = slice(start, start + FEW)
            out[some] = codes[np.searchsorted(ids, functions[some])]
        return out


# --- Columns of the tables ------------------------------------------------------------------------

_BUFFER_COLUMNS = tuple(
    column for column in SCHEMAS["xray_buffers"].all_columns if column.name != "row"
)


def _first_offsets(log: Log, ids: I64) -> I64:
    """Byte offsets of the first events of functions, whose ids are ascending; same shape."""
    first: I64 = np.full(ids.size, -1, np.int64)
    for events in log.events():
        of_calls = events.kind <= wire.FunctionKind.ENTER_ARG
        places = np.searchsorted(ids, events.function[of_calls])[::-1]
        found: I64 = np.full(ids.size, -1, np.int64)
        found[places] = events.offset[of_calls][::-1]  # the last that is stored is the first
        first = np.where(first < 0, found, first)
        if first.size and int(first.min()) >= 0:
            break
    return first


def _slices(passed: CallPass, names: FunctionNames, rows: Rows) -> Batch:
    slices, spans = rows.slices, passed.matcher.spans
    count = int(slices.offset.size)
    first = rows.first["slices"]
    mine = slice(first, first + count)
    frequency = passed.frequency
    made: list[tuple[I64, I64]] = []

    def spans_in_ns() -> tuple[I64, I64]:
        if not made:
            made.append(to_spans(slices.ticks, spans.ticks[mine], frequency))
        return made[0]

    columns: Columns = {
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
    return Batch(rows.first["slices"], count, columns)


def _instants(passed: CallPass, names: FunctionNames, rows: Rows) -> Batch:
    instants = rows.instants
    count = int(instants.offset.size)
    frequency = passed.frequency

    strings = names.strings

    def categories() -> NDArray[np.int32]:
        codes = np.zeros(8, np.int32)
        codes[:] = strings.intern(UNMATCHED_EXIT.encode())
        codes[CUSTOM] = strings.intern(CUSTOM_EVENT.encode())
        codes[TYPED] = strings.intern(TYPED_EVENT.encode())
        found: NDArray[np.int32] = codes[instants.kind]
        return found

    def shown() -> NDArray[np.int32]:
        codes = categories()
        exits = instants.kind < ARGUMENT
        codes[exits] = names.of(instants.function[exits])
        return codes

    columns: Columns = {
        "offset": instants.offset,
        "ts": lambda: to_ns(instants.ticks, frequency),
        "ticks": instants.ticks.view(np.uint64),
        "thread": instants.thread,
        "category": categories,
        "name": shown,
        "scope": np.broadcast_to(np.uint8(0), count),
        "id": np.broadcast_to(np.uint64(0), count),
        "xray_cpu": instants.cpu,
        "xray_event_type": lambda: np.where(instants.kind == TYPED, instants.function, 0).astype(
            np.uint16
        ),
    }
    return Batch(rows.first["instants"], count, columns)


def _args(passed: CallPass, names: FunctionNames, rows: Rows) -> Batch:
    args = rows.args
    count = int(args.offset.size)
    strings = names.strings
    tables = np.array([TABLE_CODES["slices"], TABLE_CODES["instants"]], np.uint8)

    def shown() -> NDArray[np.int32]:
        numbers, inverse = np.unique(args.name, return_inverse=True)
        special = {DATA: "data", EVENT_TYPE: "event_type"}
        codes = [
            strings.intern(special.get(number, f"arg{number}").encode())
            for number in numbers.tolist()
        ]
        return np.array(codes, np.int32)[inverse.reshape(-1)]

    def types() -> U8:
        kinds = np.full(count, _ARGUMENT_TYPE, np.uint8)
        kinds[args.name == DATA] = _DATA_TYPE
        kinds[args.name == EVENT_TYPE] = _EVENT_TYPE
        return kinds

    def values() -> I64:
        data = args.name == DATA
        return np.where(data, 0, args.value) if data.any() else args.value

    def payloads() -> NDArray[np.int32]:
        picked = np.flatnonzero(args.name == DATA)
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

    columns: Columns = {
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
    return Batch(rows.first["args"], count, columns)


_BATCHES: Mapping[str, Callable[[CallPass, FunctionNames, Rows], Batch]] = {
    "slices": _slices,
    "instants": _instants,
    "args": _args,
}
