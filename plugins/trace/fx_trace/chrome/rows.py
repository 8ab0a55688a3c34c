"""Rows: the events of Chrome JSON as columns, and as rows of the standard tables."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections import Counter
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any, Final

import numpy as np
import orjson
from numpy.typing import NDArray

from fx_trace.chrome import rules
from fx_trace.chrome.scan import Event, Report
from fx_trace.format import OPEN_END
from fx_trace.kinds import EventType
from fx_trace.read.first_pass import MASKS, Spans, longest_first
from fx_trace.read.match import Durations, Match
from fxframework.io.limits import Limits
from fxframework.io.words import U64_MAX
from fxframework.kernels.maps import PairMap
from fxframework.kernels.notes import Notes
from fxframework.kernels.sorting import order_and_keys
from fxframework.model.clock import NS_MAX, NS_MIN
from fxframework.model.schema import TABLE_CODES
from fxframework.model.strings import StringPool

__all__ = ["KINDS", "Rows", "kind_of"]

I64 = NDArray[np.int64]
Columns = dict[str, NDArray[Any]]
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
ASYNC_SCOPE: Final = 255
SLICE_KINDS: Final = {E.DURATION_BEGIN: 0, E.DURATION_COMPLETE: 1, E.ASYNC_BEGIN: 2}
IDENTIFIED: Final = range(E.ASYNC_BEGIN, E.FLOW_END + 1)
TABLES: Final = ("slices", "instants", "flows")
NULL, INT64, UINT64, DOUBLE, STRING, BOOL = 0, 3, 4, 5, 6, 9
"""Types of arguments."""
NO_VALUE: Final = -1
TOO_DEEP: Final = "(nested too deeply)"
SPREAD: Final = 0x9E3779B97F4A7C15
"""Sets ids of different contexts apart."""
EXACT: Final = 2.0**51
"""Nanoseconds below which a double of microseconds, times 1000, is nearest to the right integer."""
MICROSECOND_DIGITS: Final = 3
LARGEST: Final = 25
"""Digits before the point, beyond which nothing is a time."""
ROUNDING: Final = Context(prec=60, rounding=ROUND_HALF_UP)
NUMBER_OF: Final = {
    key: re.compile(rb'"%b"\s*+:\s*+(-?[0-9][0-9.eE+-]*)' % key.encode()) for key in ("ts", "dur")
}


def kind_of(event: Event | None) -> str:
    """Return the kind of the record of an event; None is a value that is not an event."""
    if event is None:
        return "damaged"
    letter = event.get("ph")
    return KINDS.get(letter, "event") if isinstance(letter, str) else "event"


class Codes(dict[Any, int]):
    """Codes of strings in the pool; -1 of None. ``cut`` counts those that were too long."""

    def __init__(self, pool: StringPool, longest: int) -> None:
        super().__init__({None: NO_VALUE})
        self._pool = pool
        self._longest = longest
        self.cut = 0

    def __missing__(self, text: Any) -> int:
        data = encoded(text if isinstance(text, str) else as_json(text))
        if self._longest and len(data) > self._longest:
            self.cut += 1
            data = data[: self._longest]
        code = self._pool.intern(data)
        if isinstance(text, str) and len(data) < 1 << 10:
            self[text] = code
        return code

    def of(self, values: Sequence[Any]) -> NDArray[np.int32]:
        """Return the codes of values, of shape (n,)."""
        try:
            return np.array(list(map(self.__getitem__, values)), np.int32)
        except TypeError:  # an object or an array, which no dictionary has
            return np.array([self[plain(value)] for value in values], np.int32)


class Tasks(dict[Any, int]):
    """Ids of threads by what events have as ``pid`` and ``tid``.

    Where that is a text and not a number, it is the name as well, unless metadata gives one.
    """

    def __init__(self, codes: Codes) -> None:
        super().__init__()
        self._codes = codes
        self._numbers: dict[tuple[int, int], int] = {}
        self.names: dict[int, int] = {}
        """Code of the name of a thread."""
        self.process_names: dict[int, int] = {}
        self.offsets: list[int] = []
        """Of the first event of each thread, once they are settled."""
        self.processes: dict[int, int] = {}
        """Offset of the first event, by pid."""

    @property
    def ids(self) -> list[tuple[int, int]]:
        """Process and thread ids by number."""
        return list(self._numbers)

    def __missing__(self, who: tuple[Any, Any]) -> int:
        pid = number_of(who[0])
        tid = pid if who[1] is None else number_of(who[1])
        number = self._numbers.setdefault((pid, tid), len(self._numbers))
        if is_name(who[0]):
            self.process_names.setdefault(pid, self._codes[who[0]])
        if is_name(who[1]):
            self.names.setdefault(number, self._codes[who[1]])
        self[who] = number
        return number

    def settle(self, numbers: NDArray[np.int32], offsets: I64) -> None:
        """Take the offsets of events, of which ``numbers`` are the threads, for new threads."""
        known = len(self.offsets)
        if known == len(self._numbers):
            return
        for number, first in zip(*np.unique(numbers, return_index=True), strict=True):
            if number >= known:
                self.offsets.append(int(offsets[first]))
        for pid, _ in itertools.islice(self._numbers, known, None):
            self.begin(pid, self.offsets[known])
            known += 1

    def begin(self, pid: int, offset: int) -> None:
        """Note that an event at an offset is of a process."""
        self.processes[pid] = min(offset, self.processes.get(pid, offset))

    def of(self, pids: Sequence[Any], tids: Sequence[Any]) -> NDArray[np.int32]:
        """Return the numbers of threads, of shape (n,)."""
        try:
            return np.array([self[who] for who in zip(pids, tids, strict=True)], np.int32)
        except TypeError:  # an object or an array
            return self.of(list(map(plain, pids)), list(map(plain, tids)))


class Rows:
    """The rows of a file, which ``add`` makes of its events, and ``finish`` completes."""

    def __init__(self, pool: StringPool, limits: Limits, report: Report) -> None:
        pool.intern(b"")  # code 0 is that of no name, for ``Match``
        self.codes = Codes(pool, limits.max_string)
        self.tasks = Tasks(self.codes)
        self.notes = Notes(rules.RULES.numbers, limits.max_findings)
        self.kinds: Counter[str] = Counter()
        self.open_offsets = np.zeros(0, np.int64)
        """Offsets of the slices that were never closed."""
        self.tables: dict[str, Columns] = {}
        """Columns by table, once ``finish`` was called; but for `processes` and `threads`."""
        self._report = report
        self._most_depth = limits.max_depth or (1 << 31) - 1
        self._parts: dict[str, list[Columns]] = {"events": [], "counters": [], "args": []}
        self._count = 0
        self._contexts: tuple[dict[Any, int], dict[Any, int]] = {}, {}
        """Numbers of the contexts of ids: of operations, and of flows."""
        self._left_out: dict[str, list[int]] = {}
        """By phase: offset of the first event that is in no table, and how many there are."""

    # --- Blocks of events ------------------------------------------------------------------------

    def add(self, data: memoryview, found: Sequence[Event | None], starts: I64, stops: I64) -> None:
        """Add the events of a block; None are values that are not events."""
        present = [event or {} for event in found]
        letters = [plain(letter) for letter in column(present, "ph")]
        types = np.array([TYPES.get(letter, NO_VALUE) for letter in letters], np.int8)
        for letter, count in Counter(letters).items():
            self.kinds[KINDS.get(letter, "event")] += count
        timed = np.flatnonzero(types >= 0)
        threads = self._threads(present, letters, timed, starts)
        for index in np.flatnonzero(types < 0).tolist():
            where = int(starts[index]), int(threads[index])
            self._take_other(found[index], str(letters[index]), *where)
        texts = Texts(data, starts, stops, timed)
        ts, has_time = times("ts", column(texts.of(present), "ts"), texts)
        for index in timed[~has_time].tolist():
            self._report(rules.NO_TIME, int(starts[index]), shown(present[index].get("ts")))
        texts.places = timed = timed[has_time]
        if timed.size:
            kinds = types[timed].astype(np.uint8)
            shared: Columns = {
                "offset": starts[timed],
                "ts": ts[has_time],
                "thread": threads[timed],
            }
            self._add_timed(texts.of(present), kinds, shared, texts)
        if self.codes.cut:
            self._report(rules.TOO_LONG, int(starts[0]), f"{self.codes.cut} strings")
            self.codes.cut = 0

    def _threads(
        self, events: list[Event], letters: list[Any], timed: I64, starts: I64
    ) -> NDArray[np.int32]:
        """Return the threads of events with a time, and of those that name one; 0 of others."""
        is_on_thread = np.zeros(len(events), np.bool_)
        is_on_thread[timed] = True
        for index, letter in enumerate(letters):
            if letter == "M" and events[index].get("name") == "thread_name":
                is_on_thread[index] = True
        places = np.flatnonzero(is_on_thread)
        on_thread = [events[place] for place in places.tolist()]
        numbers = self.tasks.of(column(on_thread, "pid"), column(on_thread, "tid"))
        self.tasks.settle(numbers, starts[places])
        threads = np.zeros(len(events), np.int32)
        threads[places] = numbers
        return threads

    def _take_other(self, event: Event | None, letter: str, offset: int, thread: int) -> None:
        """Take what metadata says of names; count what has no table."""
        if event is None:
            self.kinds["event"] -= 1
            self.kinds["damaged"] += 1
            return
        if letter != "M":
            self._left_out.setdefault(letter, [offset, 0])[1] += 1
            return
        args = event.get("args")
        name = args.get("name") if isinstance(args, dict) else None
        if not isinstance(name, str):
            return
        if event.get("name") == "thread_name":
            self.tasks.names[thread] = self.codes[name]
        elif event.get("name") == "process_name":
            pid = number_of(plain(event.get("pid")))
            self.tasks.begin(pid, offset)
            self.tasks.process_names[pid] = self.codes[name]

    def _add_timed(
        self, events: list[Event], types: NDArray[np.uint8], shared: Columns, texts: Texts
    ) -> None:
        offsets, ts = shared["offset"], shared["ts"]
        names, categories = column(events, "name"), column(events, "cat")
        for key, values in (("name", names), ("cat", categories)):
            if not set(map(type, values)) <= {str, type(None)}:
                self._report_odd(key, values, offsets)
        columns: Columns = {
            **shared,
            "kind": types,
            "category": self.codes.of(categories),
            "name": self.codes.of(names),
            "word": np.zeros(ts.size, np.uint64),
            "finish": ts.copy(),
            "scope": np.zeros(ts.size, np.uint8),
            "is_next": np.zeros(ts.size, np.bool_),
        }
        self._add_lengths(events, columns, texts)
        for index in np.flatnonzero(types != E.DURATION_COMPLETE).tolist():
            event, kind = events[index], int(types[index])
            if kind in IDENTIFIED:
                columns["word"][index] = self._id(event, kind)
                columns["is_next"][index] = kind == E.FLOW_END and event.get("bp") != "e"
            elif kind == E.INSTANT:
                columns["scope"][index] = SCOPES.get(plain(event.get("s")), 0)
        self._add_args(events, columns)
        self._parts["events"].append(columns)
        self._count += ts.size

    def _report_odd(self, key: str, values: Sequence[Any], offsets: I64) -> None:
        for index, value in enumerate(values):
            if value is not None and not isinstance(value, str):
                self._report(rules.INVALID_MEMBER, int(offsets[index]), f"{key} is {shown(value)}")

    def _add_lengths(self, events: list[Event], columns: Columns, texts: Texts) -> None:
        """Compute when complete events end; one without a length has none."""
        index = np.flatnonzero(columns["kind"] == E.DURATION_COMPLETE)
        values = [events[place].get("dur") for place in index.tolist()]
        of_complete = Texts(texts.data, texts.starts, texts.stops, texts.places[index])
        lengths, is_valid = times("dur", values, of_complete)
        for place in np.flatnonzero(~is_valid).tolist():
            start = int(columns["offset"][index[place]])
            self._report(rules.INVALID_MEMBER, start, f"dur is {shown(values[place])}")
        starts = columns["ts"][index]
        ends = starts + lengths
        ends[(lengths > 0) & (ends < starts)] = NS_MAX
        ends[(lengths < 0) & (ends > starts)] = NS_MIN
        columns["finish"][index] = ends

    def _id(self, event: Event, kind: int) -> int:
        """Return the number of an operation or flow: of the first context its id, if a number."""
        id = event.get("id")
        local = None
        ids = event.get("id2")
        if id is None and isinstance(ids, dict):
            id = ids.get("global")
            if id is None:
                id, local = ids.get("local"), plain(event.get("pid"))
        contexts = self._contexts[kind >= E.FLOW_BEGIN]
        context = plain(event.get("cat")), plain(event.get("scope")), local
        place = contexts.setdefault(context, len(contexts))
        return (number_of(plain(id)) + place * SPREAD) & U64_MAX

    def _add_args(self, events: list[Event], columns: Columns) -> None:
        """Add the arguments of events, and the numbers of counters."""
        given = column(events, "args")
        counted: list[tuple[int, int, str, Any]] = []
        for index in np.flatnonzero(columns["kind"] == E.COUNTER).tolist():
            args = given[index] if isinstance(given[index], dict) else {}
            numbers = {name: each for name, each in args.items() if type(each) in (int, float)}
            id = number_of(plain(events[index].get("id")))
            counted += [(index, id, name, value) for name, value in numbers.items()]
            given[index] = {name: each for name, each in args.items() if name not in numbers}
        given = [args if isinstance(args, dict) or not args else {"args": args} for args in given]
        owners = [index for index, args in enumerate(given) if args for _ in args]
        names = [name for args in given if args for name in args]
        values = [value for args in given if args for value in args.values()]
        self._add_counters(counted, columns)
        if not owners:
            return
        typed = [self._typed(value) for value in values]
        type_of, integers, floats, texts = zip(*typed, strict=True)
        owner = np.array(owners, np.int64)
        self._parts["args"].append(
            {
                "offset": columns["offset"][owner],
                "owner": owner + self._count,
                "name": self.codes.of(names),
                "type": np.array(type_of, np.uint8),
                "int": np.array(integers, np.int64),
                "float": np.array(floats, np.float64),
                "str": np.array(texts, np.int32),
            }
        )

    def _typed(self, value: Any) -> tuple[int, int, float, int]:
        """Return the type of an argument, and what the columns have of it."""
        if value is None:
            return NULL, 0, 0.0, NO_VALUE
        if isinstance(value, bool):
            return BOOL, int(value), 0.0, NO_VALUE
        if isinstance(value, float):
            return DOUBLE, 0, value, NO_VALUE
        if isinstance(value, int) and NS_MIN <= value <= U64_MAX:
            is_unsigned = value > NS_MAX
            return (UINT64 if is_unsigned else INT64), wrapped(value), 0.0, NO_VALUE
        return STRING, 0, 0.0, self.codes[value if isinstance(value, str) else as_json(value)]

    def _add_counters(self, counted: list[tuple[int, int, str, Any]], columns: Columns) -> None:
        if not counted:
            return
        index, ids, series, values = (list(column) for column in zip(*counted, strict=True))
        is_int = np.array([isinstance(value, int) for value in values], np.bool_)
        whole = [wrapped(value) if isinstance(value, int) else 0 for value in values]
        shared = {
            name: columns[name][index] for name in ("offset", "ts", "thread", "category", "name")
        }
        self._parts["counters"].append(
            {
                **shared,
                "id": np.array(ids, np.uint64),
                "series": self.codes.of(series),
                "value": np.array([as_double(value) for value in values], np.float64),
                "value_int": np.array(whole, np.int64),
                "is_int": is_int,
            }
        )

    # --- The whole file --------------------------------------------------------------------------

    def finish(self) -> None:
        """Match begins and ends, nest slices, and make the tables."""
        for letter, (offset, count) in self._left_out.items():
            self._report(rules.LEFT_OUT, offset, f"{letter!a:.10}, {count} events")
        events = joined(self._parts["events"])
        self.tables["counters"] = joined(self._parts["counters"])
        args = joined(self._parts["args"])
        self._parts.clear()
        if not events:
            return
        kind = events["kind"]
        index = {name: np.flatnonzero(MASKS[name][kind]) for name in MASKS}
        index["instants"] = np.flatnonzero((kind == E.INSTANT) | (kind == E.ASYNC_INSTANT))
        spans = self._matched(events, index)
        made = {
            name: {
                column: events[column][index[name]]
                for column in ("offset", "ts", "thread", "category", "name")
            }
            for name in TABLES
        }
        slices = index["slices"]
        lengths = np.empty(slices.size, np.int64)
        Durations(np.ascontiguousarray(events["ts"][slices]), spans["end"], lengths).run()
        kind_of_slice = np.zeros(256, np.uint8)
        kind_of_slice[list(SLICE_KINDS)] = list(SLICE_KINDS.values())
        made["slices"] |= {
            "dur": lengths,
            "depth": spans["depth"],
            "parent": spans["parent"],
            "kind": kind_of_slice[kind[slices]],
            "id": events["word"][slices],
        }
        self.open_offsets = made["slices"]["offset"][spans["end"] == OPEN_END]
        is_async = kind[index["instants"]] == E.ASYNC_INSTANT
        scopes = events["scope"][index["instants"]]
        made["instants"] |= {
            "scope": np.where(is_async, np.uint8(ASYNC_SCOPE), scopes),
            "id": events["word"][index["instants"]],
        }
        flows = index["flows"]
        made["flows"] |= {
            "id": events["word"][flows],
            "phase": kind[flows] - np.uint8(E.FLOW_BEGIN),
            "slice": bound(made["slices"], made["flows"], spans["flows"], events["is_next"][flows]),
        }
        if args:
            made["args"] = owned(args, kind, index, spans["ends"])
        self.tables |= made

    def _matched(self, events: Columns, index: dict[str, I64]) -> Columns:
        """Return what matching finds, as of a trace: ends, parents and depths of slices."""
        kind = events["kind"]
        numbers = np.zeros(kind.size, np.int64)
        for name in MASKS:
            numbers[index[name]] = np.arange(index[name].size)
        order, _ = order_and_keys(events["ts"])
        order = np.arange(kind.size) if order is None else order
        longest_first(order, events["ts"][order], events)
        in_order = {name: events[name][order] for name in ("kind", "thread", "finish")}
        is_named = ~np.isin(kind, (E.ASYNC_BEGIN, E.ASYNC_INSTANT, E.ASYNC_END))
        columns = {
            **in_order,
            "time": events["ts"][order],
            # Operations are told apart by their ids alone; no name is the code 0.
            "name": np.where(is_named, np.maximum(events["name"], 0), 0).astype(np.int32),
            "category": np.maximum(events["category"], 0),
            "offset": events["offset"],
            "word": events["word"].view(np.int64),
        }
        match = Match(self.notes, self._most_depth, PairMap(16), by_name=False)
        threads = len(self.tasks.offsets)
        spans = Spans(in_memory=True).make_room({name: index[name].size for name in MASKS})
        match.make_room(threads, spans)
        match.take(columns, np.zeros(threads, np.int64), order, numbers[order])
        match.run()
        return dict(spans)


def owned(args: Columns, kind: NDArray[np.uint8], index: dict[str, I64], ends: I64) -> Columns:
    """Return the rows of `args`, whose owners are events; those of ends are their slices'."""
    table = np.full(kind.size, TABLE_CODES["counters"], np.uint8)
    row = np.full(kind.size, -1, np.int64)
    for name in TABLES:
        table[index[name]] = TABLE_CODES[name]
        row[index[name]] = np.arange(index[name].size)
    table[index["ends"]] = TABLE_CODES["slices"]
    row[index["ends"]] = ends
    owner = args.pop("owner")
    return args | {
        "table": table[owner],
        "parent": row[owner],
        "uint": args["int"].view(np.uint64),
    }


def bound(slices: Columns, flows: Columns, around: I64, is_next: NDArray[np.bool_]) -> I64:
    """Return the slice of each point of a flow: the one around it, or the next of its thread."""
    later = np.flatnonzero(is_next)
    if not later.size:
        return around
    count = slices["ts"].size
    thread = np.concatenate((slices["thread"], flows["thread"][later]))
    ts = np.concatenate((slices["ts"], flows["ts"][later]))
    is_slice = np.arange(ts.size) < count
    # A slice that begins with the point is the next one.
    order = np.lexsort((is_slice, ts, thread))
    places = np.where(is_slice[order], np.arange(ts.size), ts.size)
    following = np.minimum.accumulate(places[::-1])[::-1]
    found = np.append(order, 0)[following]
    has_next = (following < ts.size) & (thread[found] == thread[order])
    bound_to = around.copy()
    points = np.flatnonzero(~is_slice[order] & has_next)
    bound_to[later[order[points] - count]] = found[points]
    return bound_to


def joined(parts: list[Columns]) -> Columns:
    """Return columns one behind another."""
    if not parts:
        return {}
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


# --- Values --------------------------------------------------------------------------------------


class Texts:
    """How the numbers of events are written, of which ``places`` are among those of a block."""

    def __init__(self, data: memoryview, starts: I64, stops: I64, places: I64) -> None:
        self.data = data
        self.starts = starts
        self.stops = stops
        self.places = places

    def of(self, events: Sequence[Event]) -> list[Event]:
        """Return the events at these places."""
        return [events[place] for place in self.places.tolist()]

    def number(self, key: str, index: int, value: float) -> str:
        """Return the text of the number that an event has as ``key``."""
        place = self.places[index]
        raw = bytes(self.data[int(self.starts[place]) : int(self.stops[place])])
        for found in NUMBER_OF[key].finditer(raw):
            text = found[1].decode()
            if as_double(text) == value:
                return text
        return repr(value)


def column(events: Sequence[Event], key: str) -> list[Any]:
    """Return what events have as ``key``; None if nothing."""
    return list(map(dict.get, events, itertools.repeat(key)))


def times(key: str, values: Sequence[Any], texts: Texts) -> tuple[I64, NDArray[np.bool_]]:
    """Return microseconds as nanoseconds, of shape (n,), and which of the values are times.

    Fractions are rounded to the nearest nanosecond, from the text where a double is not enough.
    """
    if set(map(type, values)) <= {int, float}:
        try:
            product = np.array(values, np.float64) * 1000
        except OverflowError:
            product = np.array([np.inf])
        if float(np.abs(product).max(initial=0)) < EXACT:
            return np.floor(product + 0.5).astype(np.int64), np.ones(len(values), np.bool_)
    ns = np.zeros(len(values), np.int64)
    is_time = np.zeros(len(values), np.bool_)
    for index, value in enumerate(values):
        exact: int | None = None
        if type(value) is int:
            exact = value * 1000
        elif isinstance(value, float):
            exact = nanoseconds(texts.number(key, index, value))
        elif isinstance(value, str):
            exact = nanoseconds(value)
        if exact is not None and NS_MIN <= exact <= NS_MAX:
            ns[index], is_time[index] = exact, True
    return ns, is_time


def nanoseconds(text: str) -> int | None:
    """Return the microseconds of a text as nanoseconds, rounded; None if it is not a time."""
    try:
        value = Decimal(text)
    except InvalidOperation:
        return None
    if not value.is_finite() or (value and value.adjusted() > LARGEST):
        return None
    if value.adjusted() < -LARGEST:
        return 0
    return int(ROUNDING.scaleb(value, MICROSECOND_DIGITS).to_integral_value(ROUND_HALF_UP))


def as_double(value: Any) -> float:
    """Return a number, or its text, as a double; NaN of other text, infinity beyond."""
    try:
        return float(value)
    except ValueError:
        return float("nan")
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def wrapped(value: int) -> int:
    """Return the low 64 bits of an integer as a signed number."""
    low = value & U64_MAX
    return low - (1 << 64) if low > NS_MAX else low


def number_of(value: Any) -> int:
    """Return an id as a number of 64 bits: a number, a text that is one, of other text a hash."""
    if isinstance(value, str):
        try:
            return int(value, 16 if value[:2] in {"0x", "0X"} else 10) & U64_MAX
        except ValueError:
            digest = hashlib.blake2b(encoded(value), digest_size=8).digest()
            return int.from_bytes(digest, "little")
    if isinstance(value, int):
        return value & U64_MAX
    is_whole = isinstance(value, float) and value.is_integer()
    return int(value) & U64_MAX if is_whole else 0


def is_name(value: Any) -> bool:
    """Return whether what should be a number is a text without one."""
    if not isinstance(value, str):
        return False
    try:
        int(value, 16 if value[:2] in {"0x", "0X"} else 10)
    except ValueError:
        return True
    return False


def plain(value: Any) -> Any:
    """Return a value that a dictionary can have as a key; objects and arrays as text."""
    return as_json(value) if isinstance(value, dict | list) else value


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
    try:
        return text.encode()
    except UnicodeEncodeError:
        pass
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
