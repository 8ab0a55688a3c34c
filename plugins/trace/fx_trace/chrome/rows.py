"""Rows: the events of Chrome JSON as columns, and as rows of the standard tables."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import Counter
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any, Final

import numpy as np
import orjson
from numpy.typing import NDArray

from fx_trace.chrome import rules
from fx_trace.chrome.scan import Event, Report
from fx_trace.format import OPEN_END
from fx_trace.kinds import ArgType, EventType
from fx_trace.meaning import ASYNC_SCOPE, IS_ROW_OF, KIND_OF_SLICE
from fx_trace.read.match import Events, Match, Spans, durations, longest_first
from fxframework.io.limits import Limits
from fxframework.io.words import U64_MAX
from fxframework.kernels.sorting import order_and_keys, run_of
from fxframework.model.clock import NS_MAX, NS_MIN
from fxframework.model.schema import TABLE_CODES
from fxframework.model.strings import StringPool
from fxframework.wire.capture import Tasks
from fxframework.wire.expressions import wrapped
from fxframework.wire.findings import Findings

__all__ = ["KINDS", "NO_VALUE", "RowBuilder", "kind_of"]

I64 = NDArray[np.int64]
Columns = dict[str, NDArray[Any]]
Raw = Callable[[int], bytes]
"""Returns the bytes of the event at a place in a block."""
E = EventType
TYPES: Final = {
    "B": E.DURATION_BEGIN, "E": E.DURATION_END, "X": E.DURATION_COMPLETE, "i": E.INSTANT,
    "I": E.INSTANT, "C": E.COUNTER, "b": E.ASYNC_BEGIN, "n": E.ASYNC_INSTANT, "e": E.ASYNC_END,
    "s": E.FLOW_BEGIN, "t": E.FLOW_STEP, "f": E.FLOW_END,
}  # fmt: skip
"""The events of the trace format that phases are."""
KINDS: Final = {
    "B": "begin", "E": "end", "X": "complete", "i": "instant", "I": "instant", "C": "counter",
    "b": "async_begin", "n": "async_instant", "e": "async_end", "s": "flow_begin",
    "t": "flow_step", "f": "flow_end", "M": "metadata",
}  # fmt: skip
"""Kinds of records by phase; events of other phases are of the kind ``event``."""
SCOPES: Final = {"t": 0, "p": 1, "g": 2}
IDENTIFIED: Final = range(E.ASYNC_BEGIN, E.FLOW_END + 1)
TABLES: Final = ("slices", "instants", "flows")
NO_VALUE: Final = -1
SPREAD: Final = 0x9E3779B97F4A7C15
"""Sets ids of different contexts apart."""
TOO_DEEP: Final = "(nested too deeply)"
EXACT: Final = 2.0**51
"""Nanoseconds below which a double of microseconds, times 1000, is nearest to the right integer."""
MICROSECOND_DIGITS: Final = 3
LARGEST: Final = 25
"""Digits before the point, beyond which nothing is a time."""
DECIMALS: Final = json.JSONDecoder(parse_float=Decimal)
ROUNDING: Final = Context(prec=60, rounding=ROUND_HALF_UP)


def kind_of(event: Event | None) -> str:
    """Return the kind of the record of an event; None is a value that is not an event."""
    if event is None:
        return "damaged"
    phase = event.get("ph")
    if not isinstance(phase, str):
        return "event"
    return KINDS.get(phase, "event")


class Numbers(dict[Any, int]):
    """Numbers of values of JSON, which a subclass gives."""

    def of(self, values: Sequence[Any], kind: type) -> NDArray[Any]:
        """Return the numbers of values, of shape (n,)."""
        try:
            return np.array(list(map(self.__getitem__, values)), kind)
        except TypeError:  # an object or an array, which no dictionary has
            return np.array([self[plain(value)] for value in values], kind)


class Codes(Numbers):
    """Codes of strings in the pool; -1 of None. ``cut`` counts those that were too long."""

    def __init__(self, pool: StringPool, longest: int) -> None:
        super().__init__({None: NO_VALUE})
        self._pool = pool
        self._longest = longest
        self.cut = 0

    def __missing__(self, text: Any) -> int:
        data = encoded(text_of(text))
        if self._longest and len(data) > self._longest:
            self.cut += 1
            data = data[: self._longest]
        code = self._pool.intern(data)
        # Long strings rarely repeat; of other values, 1, 1.0 and true would be the same key.
        if isinstance(text, str) and len(data) < 1 << 10:
            self[text] = code
        return code


class Ids(Numbers):
    """Numbers of processes, or of threads, by what events have: 7, "7" and "0x7" are one.

    A text that is not a number is a name as well, unless metadata gives one.
    """

    def __init__(self, codes: Codes) -> None:
        super().__init__()
        self._codes = codes
        self.names: dict[int, int] = {}
        """Codes of texts by number."""

    def __missing__(self, value: Any) -> int:
        number = number_of(value)
        if isinstance(value, str) and integer_of(value) is None:
            self.names.setdefault(number, self._codes[value])
        self[value] = number
        return number


class RowBuilder:
    """Makes the rows of a file: ``add`` takes its events, ``finish`` completes the tables."""

    def __init__(self, pool: StringPool, limits: Limits, report: Report) -> None:
        pool.intern(b"")  # code 0 is that of no name, for ``Match``
        self.codes = Codes(pool, limits.max_string)
        self.pids = Ids(self.codes)
        self.tids = Ids(self.codes)
        self.tasks = Tasks()
        self.thread_names: dict[int, int] = {}
        """Codes of the names that metadata gives, by number of the thread."""
        self.process_names: dict[int, int] = {}
        """The same, by process id."""
        self.process_offsets: dict[int, int] = {}
        """Of the first event of each process that has a name, and once finished of all."""
        self.notes = Findings(limits.max_findings, rules.RULES.numbers)
        self.kinds: Counter[str] = Counter()
        self.open_offsets = np.zeros(0, np.int64)
        """Offsets of the slices that were never closed."""
        self.tables: dict[str, Columns] = {}
        """Columns by table, once ``finish`` was called; but for `processes` and `threads`."""
        self._report = report
        self._max_depth = limits.max_depth or (1 << 31) - 1
        self._blocks: dict[str, list[Columns]] = {"events": [], "counters": [], "args": []}
        """Columns of the blocks that were added, to be joined."""
        self._event_count = 0
        self._operation_contexts: dict[Any, int] = {}
        """Numbers of the contexts of ids of asynchronous operations."""
        self._flow_contexts: dict[Any, int] = {}
        self._left_out: dict[str, list[int]] = {}
        """By phase: offset of the first event that is in no table, and how many there are."""

    # --- Blocks of events ------------------------------------------------------------------------

    def add(
        self, data: memoryview, events: Sequence[Event | None], starts: I64, stops: I64
    ) -> None:
        """Add the events of a block; None are values that are not events."""
        offsets = starts.tolist()
        present = [event or {} for event in events]
        phases = [plain(phase) for phase in column(present, "ph")]
        types = np.array([TYPES.get(phase, NO_VALUE) for phase in phases], np.int8)
        for phase, count in Counter(phases).items():
            self.kinds[KINDS.get(phase, "event")] += count
        timed = np.flatnonzero(types >= 0)
        threads = self._threads(present, types >= 0, starts)
        for index in np.flatnonzero(types < 0).tolist():
            phase = str(phases[index])
            self._take_other(events[index], phase, offsets[index], int(threads[index]))

        def raw(place: int) -> bytes:
            return bytes(data[starts[place] : stops[place]])

        ts, has_time = times("ts", [present[place] for place in timed.tolist()], timed, raw)
        for index in timed[~has_time].tolist():
            ts_value = present[index].get("ts")
            self._report(rules.NO_TIME, offsets[index], shown(ts_value))
        timed = timed[has_time]
        if timed.size:
            shared: Columns = {
                "offset": starts[timed],
                "ts": ts[has_time],
                "thread": threads[timed],
                "place": timed,
            }
            timed_types = types[timed].astype(np.uint8)
            self._add_timed([present[place] for place in timed.tolist()], timed_types, shared, raw)
        if self.codes.cut:
            self._report(rules.TOO_LONG, offsets[0], f"{self.codes.cut} strings")
            self.codes.cut = 0

    def _threads(
        self, events: list[Event], is_timed: NDArray[np.bool_], starts: I64
    ) -> NDArray[np.int32]:
        """Return the threads of events with a time, and of those that name one; 0 of others."""
        names_thread = [is_thread_name(event) for event in events]
        places = np.flatnonzero(is_timed | np.array(names_thread, np.bool_))
        on_thread = [events[place] for place in places.tolist()]
        tid_values = column(on_thread, "tid")
        pids = self.pids.of(column(on_thread, "pid"), np.uint64)
        has_tid = np.array([value is not None for value in tid_values], np.bool_)
        tids = np.where(has_tid, self.tids.of(tid_values, np.uint64), pids)
        threads = np.zeros(len(events), np.int32)
        threads[places] = self.tasks.of(pids, tids, starts[places])
        return threads

    def _begin_process(self, pid: int, offset: int) -> None:
        """Note that an event at an offset is of a process."""
        self.process_offsets[pid] = min(offset, self.process_offsets.get(pid, offset))

    def _take_other(self, event: Event | None, phase: str, offset: int, thread: int) -> None:
        """Take what metadata says of names; count what has no table."""
        if event is None:
            # ``add`` counted it as an event, as it has no phase.
            self.kinds["event"] -= 1
            self.kinds["damaged"] += 1
            return
        if phase != "M":
            self._left_out.setdefault(phase, [offset, 0])[1] += 1
            return
        args = event.get("args")
        if not isinstance(args, dict) or not isinstance(args.get("name"), str):
            return
        name = args["name"]
        if is_thread_name(event):
            self.thread_names[thread] = self.codes[name]
        elif event.get("name") == "process_name":
            pid = number_of(plain(event.get("pid")))
            self._begin_process(pid, offset)
            self.process_names[pid] = self.codes[name]

    def _add_timed(
        self, events: list[Event], types: NDArray[np.uint8], shared: Columns, raw: Raw
    ) -> None:
        """Add events with a time, of which ``shared`` are offsets, times, threads and places."""
        ts = shared["ts"]
        names = self._names(events, "name", shared["offset"])
        categories = self._names(events, "cat", shared["offset"])
        columns: Columns = {
            **shared,
            "kind": types,
            "category": self.codes.of(categories, np.int32),
            "name": self.codes.of(names, np.int32),
            "word": np.zeros(ts.size, np.uint64),
            "finish": ts.copy(),
            "scope": np.zeros(ts.size, np.uint8),
            "is_next": np.zeros(ts.size, np.bool_),
        }
        self._add_lengths(events, columns, raw)
        for index in np.flatnonzero(types != E.DURATION_COMPLETE).tolist():
            event = events[index]
            event_type = int(types[index])
            if event_type in IDENTIFIED:
                columns["word"][index] = self._id(event, event_type)
                # A flow ends at the slice around the point with "bp": "e", else at the next one.
                if event_type == E.FLOW_END and event.get("bp") != "e":
                    columns["is_next"][index] = True
            elif event_type == E.INSTANT:
                columns["scope"][index] = SCOPES.get(plain(event.get("s")), 0)
        self._add_args(events, columns)
        self._blocks["events"].append(columns)
        self._event_count += ts.size

    def _names(self, events: list[Event], key: str, offsets: I64) -> list[Any]:
        """Return the names or categories of events; those that are not strings are reported."""
        values = column(events, key)
        if set(map(type, values)) <= {str, type(None)}:
            return values
        for index, value in enumerate(values):
            if value is not None and not isinstance(value, str):
                problem = f"{key} is {shown(value)}"
                self._report(rules.INVALID_MEMBER, int(offsets[index]), problem)
        return values

    def _add_lengths(self, events: list[Event], columns: Columns, raw: Raw) -> None:
        """Compute when complete events end; one without a length has none."""
        complete = np.flatnonzero(columns["kind"] == E.DURATION_COMPLETE)
        places = columns.pop("place")[complete]
        lengths, is_valid = times("dur", [events[row] for row in complete.tolist()], places, raw)
        for row in complete[~is_valid].tolist():
            problem = f"dur is {shown(events[row].get('dur'))}"
            self._report(rules.INVALID_MEMBER, int(columns["offset"][row]), problem)
        starts = columns["ts"][complete]
        ends = starts + lengths
        # Sums that do not fit wrap around; such slices end at the last or the first time there is.
        ends[(lengths > 0) & (ends < starts)] = NS_MAX
        ends[(lengths < 0) & (ends > starts)] = NS_MIN
        columns["finish"][complete] = ends

    def _id(self, event: Event, event_type: int) -> int:
        """Return the number of an operation or a flow.

        An id is unique within its context: category, scope, and process if the id is local. In the
        first context, the number is the id itself.
        """
        id = event.get("id")
        pid = None
        scoped_ids = event.get("id2")
        if id is None and isinstance(scoped_ids, dict):
            id = scoped_ids.get("global")
            if id is None:
                id = scoped_ids.get("local")
                pid = plain(event.get("pid"))
        is_flow = event_type >= E.FLOW_BEGIN
        contexts = self._flow_contexts if is_flow else self._operation_contexts
        category = plain(event.get("cat"))
        context = category, plain(event.get("scope")), pid
        context_number = contexts.setdefault(context, len(contexts))
        return (number_of(plain(id)) + context_number * SPREAD) & U64_MAX

    def _add_args(self, events: list[Event], columns: Columns) -> None:
        """Add the arguments of events, and the numbers of counters."""
        args_of_events = column(events, "args")
        samples: list[tuple[int, int, str, Any]] = []
        for index in np.flatnonzero(columns["kind"] == E.COUNTER).tolist():
            # Numbers are samples of series, and only the rest is arguments.
            counter_id = number_of(plain(events[index].get("id")))
            other_args = {}
            if isinstance(args_of_events[index], dict):
                for name, value in args_of_events[index].items():
                    if type(value) in (int, float):  # not a boolean
                        samples.append((index, counter_id, name, value))
                    else:
                        other_args[name] = value
            args_of_events[index] = other_args
        self._add_counters(samples, columns)
        owners: list[int] = []
        names: list[str] = []
        values: list[Any] = []
        for index, args in enumerate(args_of_events):
            if args:
                named_args = args if isinstance(args, dict) else {"args": args}
                owners += [index] * len(named_args)
                names += named_args
                values += named_args.values()
        if not owners:
            return
        typed = [self._typed(value) for value in values]
        types, integers, floats, texts = zip(*typed, strict=True)
        owner = np.array(owners, np.int64)
        self._blocks["args"].append(
            {
                "offset": columns["offset"][owner],
                "owner": owner + self._event_count,
                "name": self.codes.of(names, np.int32),
                "type": np.array(types, np.uint8),
                "int": np.array(integers, np.int64),
                "float": np.array(floats, np.float64),
                "str": np.array(texts, np.int32),
            }
        )

    def _typed(self, value: Any) -> tuple[int, int, float, int]:
        """Return the type of an argument, and what the columns have of it."""
        if value is None:
            return ArgType.NULL, 0, 0.0, NO_VALUE
        if isinstance(value, bool):  # before integers, which booleans are too
            return ArgType.BOOL, int(value), 0.0, NO_VALUE
        if isinstance(value, float):
            return ArgType.DOUBLE, 0, value, NO_VALUE
        if isinstance(value, int) and NS_MIN <= value <= NS_MAX:
            return ArgType.INT64, value, 0.0, NO_VALUE
        if isinstance(value, int) and NS_MAX < value <= U64_MAX:
            return ArgType.UINT64, wrapped(value), 0.0, NO_VALUE
        return ArgType.STRING, 0, 0.0, self.codes[text_of(value)]

    def _add_counters(self, samples: list[tuple[int, int, str, Any]], columns: Columns) -> None:
        """Add samples of counters: index of the event, id, name of the series, and value."""
        if not samples:
            return
        indexes, ids, series, values = map(list, zip(*samples, strict=True))
        is_int = [isinstance(value, int) for value in values]
        integers = [wrapped(value) if isinstance(value, int) else 0 for value in values]
        self._blocks["counters"].append(
            shared_columns(columns, np.array(indexes, np.int64))
            | {
                "id": np.array(ids, np.uint64),
                "series": self.codes.of(series, np.int32),
                "value": np.array([as_double(value) for value in values], np.float64),
                "value_int": np.array(integers, np.int64),
                "is_int": np.array(is_int, np.bool_),
            }
        )

    # --- The whole file --------------------------------------------------------------------------

    def finish(self) -> None:
        """Match begins and ends, nest slices, and make the tables."""
        for phase, (offset, count) in self._left_out.items():
            self._report(rules.LEFT_OUT, offset, f"{phase!a:.10}, {count} events")
        for pid, offset in zip(self.tasks.pids, self.tasks.offsets, strict=True):
            self._begin_process(pid, offset)
        events = joined(self._blocks["events"])
        self.tables["counters"] = joined(self._blocks["counters"])
        args = joined(self._blocks["args"])
        self._blocks.clear()
        if not events:
            return
        kind = events["kind"]
        events_of = {table: np.flatnonzero(is_row[kind]) for table, is_row in IS_ROW_OF.items()}
        spans = self._matched(events, events_of)
        self._add_slices(events, events_of["slices"], spans)
        self._add_instants(events, events_of["instants"])
        self._add_flows(events, events_of["flows"], spans.flows)
        if args:
            self.tables["args"] = owned(args, kind, events_of, spans.ends)

    def _add_slices(self, events: Columns, slices: I64, spans: Spans) -> None:
        columns = shared_columns(events, slices)
        self.tables["slices"] = columns | {
            "dur": durations(columns["ts"], spans.end),
            "depth": spans.depth,
            "parent": spans.parent,
            "kind": KIND_OF_SLICE[events["kind"][slices]],
            "id": events["word"][slices],
        }
        self.open_offsets = columns["offset"][spans.end == OPEN_END]

    def _add_instants(self, events: Columns, instants: I64) -> None:
        is_async = events["kind"][instants] == E.ASYNC_INSTANT
        self.tables["instants"] = shared_columns(events, instants) | {
            "scope": np.where(is_async, np.uint8(ASYNC_SCOPE), events["scope"][instants]),
            "id": events["word"][instants],
        }

    def _add_flows(self, events: Columns, flows: I64, around: I64) -> None:
        points = shared_columns(events, flows)
        self.tables["flows"] = points | {
            "id": events["word"][flows],
            "phase": events["kind"][flows] - np.uint8(E.FLOW_BEGIN),
            "slice": bound(self.tables["slices"], points, around, events["is_next"][flows]),
        }

    def _matched(self, events: Columns, events_of: dict[str, I64]) -> Spans:
        """Match the events by the rules of traces."""
        kind = events["kind"]
        row_of_event = np.zeros(kind.size, np.int64)
        for places in events_of.values():
            row_of_event[places] = np.arange(places.size)
        order, _ = order_and_keys(events["ts"])
        if order is None:  # they are in order already
            order = np.arange(kind.size)
        longest_first(order, events["ts"][order], events)
        # Operations are told apart by their ids alone; no name is the code 0.
        is_named = ~np.isin(kind, (E.ASYNC_BEGIN, E.ASYNC_INSTANT, E.ASYNC_END))
        names = np.where(is_named & (events["name"] >= 0), events["name"], 0)
        columns = {
            **{name: events[name] for name in ("kind", "thread", "finish", "offset")},
            "time": events["ts"],
            "name": names.astype(np.int32),
            "category": np.maximum(events["category"], 0),
            "word": events["word"].view(np.int64),
            "row": row_of_event,
        }
        spans = Spans(in_memory=True)
        spans.begin(columns, dict.fromkeys(IS_ROW_OF, 0))
        match = Match(self.notes, self._max_depth, by_name=False, in_order=False)
        match.take(Events(columns, order), spans, np.zeros(len(self.tasks.offsets), np.int64))
        return spans


def is_thread_name(event: Event) -> bool:
    """Return whether an event is metadata that names its thread."""
    return event.get("ph") == "M" and event.get("name") == "thread_name"


def shared_columns(events: Columns, places: I64) -> Columns:
    """Return the columns of some events that all tables have."""
    return {name: events[name][places] for name in ("offset", "ts", "thread", "category", "name")}


def owned(args: Columns, kind: NDArray[np.uint8], events_of: dict[str, I64], ends: I64) -> Columns:
    """Return the rows of `args` with their owners; arguments of an end belong to its slice."""
    # An event in none of the tables below is a counter. It may have many rows, so that none of
    # them is the owner: the parent is -1.
    table_of_event = np.full(kind.size, TABLE_CODES["counters"], np.uint8)
    row_of_event = np.full(kind.size, -1, np.int64)
    for name in TABLES:
        places = events_of[name]
        table_of_event[places] = TABLE_CODES[name]
        row_of_event[places] = np.arange(places.size)
    table_of_event[events_of["ends"]] = TABLE_CODES["slices"]
    row_of_event[events_of["ends"]] = ends
    owner = args.pop("owner")
    return args | {
        "table": table_of_event[owner],
        "parent": row_of_event[owner],
        "uint": args["int"].view(np.uint64),
    }


def bound(slices: Columns, flows: Columns, around: I64, is_next: NDArray[np.bool_]) -> I64:
    """Return the slice of each point of a flow: the one around it, or the next of its thread."""
    slice_of_point = around.copy()
    points = np.flatnonzero(is_next)
    points = points[np.argsort(flows["thread"][points], kind="stable")]
    slice_order = np.lexsort((slices["ts"], slices["thread"]))
    slice_threads = slices["thread"][slice_order]
    point_threads = flows["thread"][points]
    for thread in np.unique(point_threads):
        own_slices = slice_order[run_of(slice_threads, thread)]  # in order of time
        own_points = points[run_of(point_threads, thread)]
        # A slice that begins with the point is the next one.
        places = np.searchsorted(slices["ts"][own_slices], flows["ts"][own_points])
        has_next = places < own_slices.size
        slice_of_point[own_points[has_next]] = own_slices[places[has_next]]
    return slice_of_point


def joined(blocks: list[Columns]) -> Columns:
    """Return columns one behind another."""
    if not blocks:
        return {}
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}


# --- Values --------------------------------------------------------------------------------------


def column(events: Sequence[Event], key: str) -> list[Any]:
    """Return what events have as ``key``; None if nothing."""
    return list(map(dict.get, events, itertools.repeat(key)))


def times(
    key: str, events: Sequence[Event], places: I64, raw: Raw
) -> tuple[I64, NDArray[np.bool_]]:
    """Return microseconds as nanoseconds, of shape (n,), and which of the values are times.

    Fractions are rounded to the nearest nanosecond. Where a double is not enough, they are taken
    from the bytes of the event, which ``raw`` gives for its place.
    """
    values = column(events, key)
    if set(map(type, values)) <= {int, float}:
        try:
            nearest = np.array(values, np.float64) * 1000
        except OverflowError:  # an integer beyond the doubles
            nearest = np.array([np.inf])
        if float(np.abs(nearest).max(initial=0)) < EXACT:
            rounded = np.floor(nearest + 0.5).astype(np.int64)
            return rounded, np.ones(rounded.size, np.bool_)
    ns = np.zeros(len(values), np.int64)
    is_time = np.zeros(len(values), np.bool_)
    for index, value in enumerate(values):
        if isinstance(value, float):
            value = as_written(raw(int(places[index])), key, value)
        exact = nanoseconds(value)
        if exact is not None and NS_MIN <= exact <= NS_MAX:
            ns[index] = exact
            is_time[index] = True
    return ns, is_time


def as_written(raw: bytes, key: str, value: float) -> Any:
    """Return the member of an event that was parsed as a double, with all of its digits."""
    try:
        return DECIMALS.decode(raw.decode("utf-8", "surrogateescape"))[key]
    except RecursionError:  # of more levels than Python reads
        return value


def nanoseconds(value: Any) -> int | None:
    """Return microseconds, a number or text, as nanoseconds, rounded; None if it is not a time."""
    if type(value) is int:  # not a boolean
        return value * 1000
    if not isinstance(value, Decimal | float | str):
        return None
    try:
        microseconds = Decimal(value)
    except InvalidOperation:
        return None
    # Exponents can be huge: an integer of so many digits would take all memory.
    if not microseconds.is_finite() or (microseconds and microseconds.adjusted() > LARGEST):
        return None
    if microseconds.adjusted() < -LARGEST:
        return 0
    scaled = ROUNDING.scaleb(microseconds, MICROSECOND_DIGITS)
    return int(scaled.to_integral_value(ROUND_HALF_UP))


def as_double(value: float) -> float:
    """Return a number as a double; of an integer beyond the doubles infinity."""
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def integer_of(text: str) -> int | None:
    """Return the integer that a text is, hexadecimal behind 0x; None of other text."""
    base = 16 if text[:2] in {"0x", "0X"} else 10
    try:
        return int(text, base)
    except ValueError:
        return None


def number_of(value: Any) -> int:
    """Return an id as a number of 64 bits: a number, a text that is one, of other text a hash."""
    number = 0
    if isinstance(value, str):
        integer = integer_of(value)
        if integer is None:
            digest = hashlib.blake2b(encoded(value), digest_size=8).digest()
            return int.from_bytes(digest, "little")
        number = integer
    elif isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        number = int(value)
    return number & U64_MAX


def plain(value: Any) -> Any:
    """Return a value that a dictionary can have as a key; objects and arrays as text."""
    return as_json(value) if isinstance(value, dict | list) else value


def text_of(value: Any) -> str:
    """Return a string, or another value as text of JSON."""
    return value if isinstance(value, str) else as_json(value)


def as_json(value: Any) -> str:
    """Return a value as text of JSON."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # orjson takes no lone surrogates, and fewer levels than it reads
        pass
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        return TOO_DEEP


def shown(value: Any) -> str:
    """Return the beginning of a value, for a finding."""
    try:
        return ascii(value)[:40]
    except RecursionError:
        return TOO_DEEP


def encoded(text: str) -> bytes:
    """Return the bytes of a string; bytes that were not UTF-8 and lone surrogates as they were."""
    for errors in ("strict", "surrogateescape"):
        try:
            return text.encode("utf-8", errors)
        except UnicodeEncodeError:
            pass
    return text.encode("utf-8", "surrogatepass")
