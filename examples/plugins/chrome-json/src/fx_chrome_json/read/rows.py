"""Rows: the events of a chunk as rows of tables, in columns."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fx_chrome_json import rules
from fx_chrome_json.layout import ASYNC_INSTANT, KINDS, NUMBERS, Phase
from fx_chrome_json.read.arguments import ArgumentRows, leaves
from fx_chrome_json.read.parse import Parsed, Report
from fx_chrome_json.read.sched_text import Scheduled
from fx_chrome_json.read.tasks import Codes, Ids, Tasks, number_of
from fx_chrome_json.read.times import Spelled, long_fractions, to_ns
from fxframework.io.words import U64_MAX
from fxframework.model.clock import NS_MAX
from fxframework.model.schema import TABLE_CODES
from fxframework.model.strings import StringPool

__all__ = ["Interpreter", "Raw", "Rows"]

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]
U8 = NDArray[np.uint8]
Raw = dict[str, NDArray[Any]]
Event = dict[str, Any]
SCOPES = {"t": 0, "p": 1, "g": 2}
BEGIN_END, COMPLETE, ASYNC = 0, 1, 2
"""Kinds of slices."""
SWITCH, WAKEUP = 1, 2
"""Kinds of rows of `sched`."""
NOT_GIVEN = -1
FLOW_BEGIN, FLOW_STEP, FLOW_END = 0, 1, 2
BIND = b'"bind_id"'
SLICES_CODE, COUNTERS = TABLE_CODES["slices"], TABLE_CODES["counters"]
NO_TABLE, OF_END = 255, 254
"""Owners of arguments other than tables: nothing, and the slice that an end closes."""
NUMBER_TYPES = {int, float}
WEIGHTS = {"incoming_weight", "outgoing_weight", "weight"}
"""Arguments of context switches that say what the columns of priorities say."""
SCHED = {
    "cpu": np.uint16,
    "kind": np.uint8,
    "prev": np.int32,
    "next": np.int32,
    "prev_state": np.uint8,
    "prev_priority": np.int32,
    "next_priority": np.int32,
}


def _members(*phases: Phase) -> NDArray[np.bool_]:
    marks = np.zeros(len(Phase), np.bool_)
    marks[list(phases)] = True
    return marks


class _Letters(dict[Any, int]):
    """Numbers of the letters of phases, 0 for any other."""

    def __missing__(self, letter: Any) -> int:
        return 0


LETTERS = _Letters({letter: number for number, letter in enumerate(KINDS, 1)})
NAMES = ("event", *KINDS.values())
"""Kinds of records by these numbers."""
PHASES = np.array([Phase.OTHER, *(NUMBERS[letter] for letter in KINDS)], np.uint8)
"""Phases by these numbers."""
_NAMED = {"p": "process_name", "t": "thread_name"}
SYSTEM_NAMES = [LETTERS[letter] for letter in _NAMED]
"""What names processes and threads in ``systemTraceEvents``."""
SLICES = _members(Phase.BEGIN, Phase.COMPLETE, Phase.ASYNC_BEGIN)
ENDS = _members(Phase.END, Phase.ASYNC_END)
INSTANTS = _members(Phase.INSTANT, Phase.ASYNC_INSTANT)
FLOWS = _members(Phase.FLOW_BEGIN, Phase.FLOW_STEP, Phase.FLOW_END)
ASYNCS = _members(Phase.ASYNC_BEGIN, Phase.ASYNC_END, Phase.ASYNC_INSTANT)
KIND = np.zeros(len(Phase), np.uint8)
KIND[[Phase.COMPLETE, Phase.ASYNC_BEGIN, Phase.ASYNC_END]] = COMPLETE, ASYNC, ASYNC


class Rows:
    """The rows of a stretch of events, by table, and what is needed to match them."""

    def __init__(self, tables: dict[str, Raw], kinds: Counter[str], args: int) -> None:
        self.tables = tables
        """Columns by table. ``ends`` has the ends, which are rows of no table."""
        self.kinds = kinds
        """Records of each kind."""
        self.args = args
        """How many arguments there are."""


class _Timed:
    """The events of a chunk that have a time, and the columns that all of them have."""

    def __init__(self, events: list[Event], starts: I64, stops: I64, phase: U8) -> None:
        self.events = events
        self.starts = starts
        self.stops = stops
        self.phase = phase
        self.ts: I64 = np.zeros(0, np.int64)
        self.thread = self.category = self.name = np.zeros(0, np.int32)
        self.owner = np.full(len(events), NO_TABLE, np.uint8)
        """Code of the table that the arguments of each event belong to."""
        self.row = np.full(len(events), -1, np.int64)
        """The row there, counted from the first one of the chunk."""

    def kept(self, rows: I64) -> _Timed:
        """Some of the events, before they have columns."""
        events = self.events
        return _Timed(
            [events[row] for row in rows.tolist()],
            self.starts[rows],
            self.stops[rows],
            self.phase[rows],
        )

    def of(self, index: I64) -> Raw:
        """The columns of some of the events."""
        return {
            "offset": self.starts[index],
            "ts": self.ts[index],
            "thread": self.thread[index],
            "category": self.category[index],
            "name": self.name[index],
        }

    def picked(self, index: I64) -> list[Event]:
        """Some of the events."""
        events = self.events
        return events if index.size == len(events) else [events[row] for row in index.tolist()]

    def own(self, index: I64, code: int, rows: I64) -> None:
        """State the rows of some of the events, which their arguments belong to."""
        self.owner[index] = code
        self.row[index] = rows


class Interpreter:
    """Makes rows of events, chunk after chunk; it knows the threads and strings so far."""

    def __init__(self, pool: StringPool, max_string: int, report: Report) -> None:
        self.names = Codes(pool, max_string)
        self.tasks = Tasks(self.names)
        self.report = report
        self._ids = {kind: Ids() for kind in ("async", "flow", "counter", "object")}

    def rows(self, parsed: Parsed, data: memoryview, *, system: bool) -> Rows:
        """The rows of the events of a chunk."""
        timed, kinds = self._timed(parsed, data, system=system)
        tables, more = self._tables(timed, data)
        with_args = timed.picked(np.flatnonzero(timed.owner != NO_TABLE))
        given = [event["args"] for event in with_args if "args" in event]
        if parsed.nested:
            args = sum(1 for each in given for _ in leaves(each))
        else:
            args = sum(map(len, given))
        if self.names.cut:
            self.report(rules.STRING_OVER_LIMIT, int(parsed.starts[0]), f"{self.names.cut} strings")
        if self.names.odd:
            self._report_odd(timed)
        self.names.cut = self.names.odd = 0
        return Rows(tables, kinds, args + more)

    def arguments(
        self,
        parsed: Parsed,
        data: memoryview,
        first: Mapping[str, int],
        begins: I64,
        *,
        system: bool,
    ) -> Raw:
        """The arguments of the events of a chunk whose rows were made before.

        ``first`` has the number of the first row of each table, ``begins`` the row of `slices` for
        each end.
        """
        timed, _ = self._timed(parsed, data, system=system)
        self._tables(timed, data)
        made = ArgumentRows(self.names)
        tables = {code: name for name, code in TABLE_CODES.items()}
        rows = zip(
            timed.events,
            timed.starts.tolist(),
            timed.owner.tolist(),
            timed.row.tolist(),
            timed.phase.tolist(),
            strict=True,
        )
        for event, offset, owner, row, phase in rows:
            if "args" not in event:
                continue
            members: Iterable[tuple[str, Any]] = leaves(event["args"])
            if phase == Phase.COUNTER:
                members = [(path, value) for path, value in members if _number(value) is None]
                owner = COUNTERS
            elif owner == NO_TABLE:
                continue
            elif owner == OF_END:
                owner, row = SLICES_CODE, int(begins[first["ends"] + row])
                made.add(offset, owner, row, members)
                continue
            if row >= 0:
                row += first[tables[owner]]
            made.add(offset, owner, row, members)
        for offset in made.too_large:
            self.report(rules.INTEGER_OVERFLOW, offset)
        return made.columns()

    # --- What all events have --------------------------------------------------------------------

    def _timed(
        self, parsed: Parsed, data: memoryview, *, system: bool
    ) -> tuple[_Timed, Counter[str]]:
        letters = column(parsed.events, "ph")
        try:
            numbers = np.array(list(map(LETTERS.__getitem__, letters)), np.uint8)
        except TypeError:  # an object or an array
            numbers = np.array([LETTERS[_plain(letter)] for letter in letters], np.uint8)
        phase = PHASES[numbers]
        if system:
            phase[np.isin(numbers, SYSTEM_NAMES)] = Phase.METADATA
        else:
            phase[phase >= Phase.SWITCH] = Phase.OTHER
        counts = np.bincount(numbers, minlength=len(NAMES)).tolist()
        kinds = Counter({name: count for name, count in zip(NAMES, counts, strict=True) if count})
        for row in np.flatnonzero(numbers == 0).tolist():
            self.report(rules.UNKNOWN_PHASE, int(parsed.starts[row]), f"{letters[row]!a:.40}")
        timed = _Timed(parsed.events, parsed.starts, parsed.stops, phase)
        metadata = phase == Phase.METADATA
        if metadata.any():
            for row in np.flatnonzero(metadata).tolist():
                self._metadata(parsed.events[row], int(parsed.starts[row]))
            timed = timed.kept(np.flatnonzero(~metadata))
        ts, bad = self._times(timed, data, "ts")
        if bad:
            for row in bad:
                value = timed.events[row].get("ts")
                self.report(rules.NO_TIME, int(timed.starts[row]), f"ts is {value!a:.40}")
            keep = np.setdiff1d(np.arange(ts.size), bad)
            timed, ts = timed.kept(keep), ts[keep]
        timed.ts = ts
        timed.thread = self._threads(timed)
        timed.category = self._codes(timed, "cat")
        timed.name = self._codes(timed, "name")
        return timed, kinds

    @staticmethod
    def _times(timed: _Timed, data: memoryview, key: str) -> tuple[I64, list[int]]:
        """Times or lengths of events, and which of them are invalid."""
        starts, stops = timed.starts, timed.stops
        made: list[NDArray[np.bool_]] = []

        def long() -> NDArray[np.bool_]:
            if not made:
                first = int(starts[0])
                made.append(long_fractions(np.asarray(data[first : int(stops[-1])]), starts, first))
            return made[0]

        return to_ns(key, column(timed.events, key), long, Spelled(data, starts, stops))

    def _threads(self, timed: _Timed) -> I32:
        tasks = self.tasks
        pids, tids = column(timed.events, "pid"), column(timed.events, "tid")
        try:
            ids = list(map(tasks.__getitem__, zip(pids, tids, strict=True)))
        except TypeError:  # an object or an array
            pids, tids = (list(map(_plain, each)) for each in (pids, tids))
            ids = list(map(tasks.__getitem__, zip(pids, tids, strict=True)))
        threads = np.array(ids, np.int32)
        for thread in range(len(tasks.offsets), len(tasks.pids)):
            rows = np.flatnonzero(threads == thread)
            tasks.settle(int(timed.starts[rows[0] if rows.size else 0]))
        return threads

    def _codes(self, timed: _Timed, key: str) -> I32:
        values = column(timed.events, key)
        try:
            return np.array(list(map(self.names.__getitem__, values)), np.int32)
        except TypeError:  # an object or an array
            codes = [self.names[value if _plain(value) == value else ()] for value in values]
            return np.array(codes, np.int32)

    def _report_odd(self, timed: _Timed) -> None:
        for event, offset in zip(timed.events, timed.starts.tolist(), strict=True):
            for key in ("cat", "name"):
                value = event.get(key)
                if value is not None and not isinstance(value, str):
                    self.report(rules.INVALID_MEMBER, offset, f"{key} is {value!a:.40}")

    def _metadata(self, event: Event, offset: int) -> None:
        """Names of processes and threads, and how viewers show them."""
        args, kind = event.get("args"), event.get("name")
        if event.get("ph") in _NAMED:  # of ``systemTraceEvents``
            args, kind = {"name": kind}, _NAMED[event["ph"]]
        if not isinstance(args, dict) or not isinstance(kind, str):
            return
        who = _plain(event.get("pid")), _plain(event.get("tid"))
        tasks = self.tasks
        if kind in {"thread_name", "thread_sort_index"}:
            thread = tasks[who]
            tasks.settle(offset)
            if kind == "thread_name" and isinstance(args.get("name"), str):
                tasks.names[thread] = self.names[args["name"]]
            elif kind == "thread_sort_index" and type(args.get("sort_index")) is int:
                tasks.sort_index[thread] = self.names[str(clipped(args["sort_index"]))]
        elif kind in {"process_name", "process_sort_index", "process_labels"}:
            process = tasks.processes.setdefault(number_of(who[0]) or 0, [offset, -1, -1, -1])
            if kind == "process_name" and isinstance(args.get("name"), str):
                process[1] = self.names[args["name"]]
            elif kind == "process_sort_index" and type(args.get("sort_index")) is int:
                process[2] = self.names[str(clipped(args["sort_index"]))]
            elif kind == "process_labels" and isinstance(args.get("labels"), str):
                process[3] = self.names[args["labels"]]

    # --- Tables ----------------------------------------------------------------------------------

    def _tables(self, timed: _Timed, data: memoryview) -> tuple[dict[str, Raw], int]:
        """The columns of all tables but `args`, and the arguments of counters."""
        phase = timed.phase
        tables: dict[str, Raw] = {}
        index = np.flatnonzero(SLICES[phase])
        tables["slices"] = self._slices(timed, index, data)
        timed.own(index, SLICES_CODE, np.arange(index.size))
        index = np.flatnonzero(ENDS[phase])
        tables["ends"] = timed.of(index) | self._ids_of(timed, index, "async")
        tables["ends"]["kind"] = KIND[timed.phase[index]]
        timed.own(index, OF_END, np.arange(index.size))
        index = np.flatnonzero(INSTANTS[phase])
        tables["instants"] = self._instants(timed, index)
        timed.own(index, TABLE_CODES["instants"], np.arange(index.size))
        tables["flows"] = self._flows(timed, np.flatnonzero(FLOWS[phase]), data)
        tables["counters"], more = self._counters(timed, np.flatnonzero(phase == Phase.COUNTER))
        index = np.flatnonzero(phase >= Phase.SWITCH)
        tables["sched"] = self._sched(timed, index)
        # Priorities are columns; other arguments are rare.
        more_args = [bool(_own_args(event)) for event in timed.picked(index)]
        own = np.flatnonzero(np.array(more_args, np.bool_))
        timed.own(index[own], TABLE_CODES["sched"], own)
        index = np.flatnonzero(phase == Phase.OTHER)
        raw = timed.of(index) | self._ids_of(timed, index, "object")
        raw["phase"] = self._letters(timed, index)
        raw["text"] = np.column_stack((timed.starts[index], (timed.stops - timed.starts)[index]))
        tables["chrome_events"] = raw
        return tables, more

    def _letters(self, timed: _Timed, index: I64) -> I32:
        letters = (event.get("ph") for event in timed.picked(index))
        codes = [self.names[each if isinstance(each, str) else None] for each in letters]
        return np.array(codes, np.int32)

    def _slices(self, timed: _Timed, index: I64, data: memoryview) -> Raw:
        raw = timed.of(index) | self._ids_of(timed, index, "async")
        raw["kind"] = kind = KIND[timed.phase[index]]
        raw["dur"] = dur = np.full(index.size, NOT_GIVEN, np.int64)
        complete = np.flatnonzero(kind == COMPLETE)
        if complete.size:
            chosen = index[complete]
            whole = chosen.size == len(timed.events)
            of_them = timed if whole else timed.kept(chosen)
            lengths, bad = self._times(of_them, data, "dur")
            bad += np.flatnonzero(lengths < 0).tolist()
            for row in bad:
                value = of_them.events[row].get("dur")
                self.report(rules.INVALID_MEMBER, int(of_them.starts[row]), f"dur is {value!a:.40}")
            lengths[bad] = 0  # it has an end, wherever that is
            dur[complete] = np.minimum(lengths, NS_MAX - np.maximum(timed.ts[chosen], 0))
        return raw

    def _instants(self, timed: _Timed, index: I64) -> Raw:
        raw = timed.of(index) | self._ids_of(timed, index, "async")
        raw["scope"] = scope = np.full(index.size, ASYNC_INSTANT, np.uint8)
        plain = np.flatnonzero(timed.phase[index] == Phase.INSTANT)
        given = column(timed.picked(index[plain]), "s")
        scope[plain] = [SCOPES.get(_plain(each), 0) for each in given]
        return raw

    def _flows(self, timed: _Timed, index: I64, data: memoryview) -> Raw:
        """Points of flows: events of their own, and slices that have a ``bind_id``."""
        ids = self._ids_of(timed, index, "flow")["id"]
        phases = (timed.phase[index] - Phase.FLOW_BEGIN).astype(np.uint8)
        next_one = np.zeros(index.size, np.bool_)
        ends = np.flatnonzero(timed.phase[index] == Phase.FLOW_END)
        next_one[ends] = [each != "e" for each in column(timed.picked(index[ends]), "bp")]
        bound: list[tuple[int, int, int]] = []
        if timed.events and BIND in bytes(data[int(timed.starts[0]) : int(timed.stops[-1])]):
            for row in np.flatnonzero(SLICES[timed.phase]).tolist():
                event = timed.events[row]
                number = number_of(event.get("bind_id"))
                goes, comes = event.get("flow_out") is True, event.get("flow_in") is True
                if number is not None and (goes or comes):
                    phase = FLOW_STEP if goes and comes else FLOW_BEGIN if goes else FLOW_END
                    bound.append((row, self._ids["flow"].number(number), phase))
        if bound:
            index = np.concatenate((index, np.array([row for row, *_ in bound], np.int64)))
            ids = np.concatenate((ids, np.array([number for _, number, _ in bound], np.uint64)))
            phases = np.concatenate((phases, np.array([each for *_, each in bound], np.uint8)))
            next_one = np.concatenate((next_one, np.zeros(len(bound), np.bool_)))
            order = np.argsort(index, kind="stable")
            index, ids = index[order], ids[order]
            phases, next_one = phases[order], next_one[order]
        own = np.flatnonzero(FLOWS[timed.phase[index]])
        timed.own(index[own], TABLE_CODES["flows"], own)
        return timed.of(index) | {"id": ids, "phase": phases, "next": next_one}

    def _counters(self, timed: _Timed, index: I64) -> tuple[Raw, int]:
        """A row for each number of a counter, and how many other arguments counters have."""
        events: list[int] = []
        series, whole, values, is_int = [], [], [], []
        others = 0
        for row, event in zip(index.tolist(), timed.picked(index), strict=True):
            args = event.get("args")
            before = len(events)
            if isinstance(args, dict) and NUMBER_TYPES.issuperset(map(type, args.values())):
                members: Iterable[tuple[str, Any]] = args.items()
            else:
                members = leaves({} if args is None else args)
            for path, value in members:
                number = _number(value)
                if number is None:
                    others += 1
                    continue
                fits = type(number) is int and -(1 << 63) <= number < 1 << 64
                events.append(row)
                series.append(self.names[path])
                values.append(number if fits else _double(number))
                whole.append(_signed(int(number)) if fits else 0)
                is_int.append(fits)
            if len(events) == before:
                self.report(
                    rules.INVALID_MEMBER, int(timed.starts[row]), "the counter has no number"
                )
        rows = np.array(events, np.int64)
        raw = timed.of(rows) | self._ids_of(timed, rows, "counter")
        raw |= {
            "series": np.array(series, np.int32),
            "value": np.array(values, np.float64),
            "value_int": np.array(whole, np.int64),
            "is_int": np.array(is_int, np.bool_),
        }
        distinct, first = np.unique(rows, return_index=True)
        timed.row[distinct] = first
        return raw, others

    def _sched(self, timed: _Timed, index: I64) -> Raw:
        """Context switches and wakeups of ``systemTraceEvents``."""
        raw = timed.of(index)
        numbers: list[tuple[int, ...]] = []
        for event in timed.picked(index):
            out, into = event.get("out"), event.get("in", event)
            sides = [side if isinstance(side, dict) else {} for side in (out, into)]
            switch = event.get("ph") == "k"
            state = clipped(sides[0].get("state"), 0, 255)
            numbers.append((
                clipped(event.get("cpu"), 0, 0xFFFF),
                SWITCH if switch else WAKEUP,
                self._scheduled(sides[0]) if switch else NOT_GIVEN,
                self._scheduled(sides[1]),
                state,
                clipped(sides[0].get("prio"), default=NOT_GIVEN),
                clipped(sides[1].get("prio"), default=NOT_GIVEN),
            ))  # fmt: skip
        columns = np.array(numbers, np.int64).reshape(-1, 7).T
        if index.size:
            self.tasks.settle(int(timed.starts[index[0]]))
        for (name, dtype), values in zip(SCHED.items(), columns, strict=True):
            raw[name] = values.astype(dtype)
        return raw

    def scheduled(self, lines: list[Scheduled]) -> dict[str, Raw]:
        """The tables of context switches that are lines of text: `sched` has rows, others none."""
        none = np.zeros(0, np.int64)
        tables, _ = self._tables(_Timed([], none, none, np.zeros(0, np.uint8)), memoryview(b""))
        tasks = self.tasks
        numbers = []
        for line in lines:
            ids = []
            for side in (line.before, line.after):
                if side is None:
                    ids.append(NOT_GIVEN)
                    continue
                known = tasks.by_tid.get(side[0])
                ids.append(tasks.thread(0, side[0]) if known is None else known)
                tasks.settle(line.offset)
                tasks.names.setdefault(ids[-1], self.names[side[1]])
            kind = WAKEUP if line.before is None else SWITCH
            left = line.before[2] if line.before else NOT_GIVEN
            numbers.append((line.offset, line.ns, line.cpu, kind, *ids, line.state, left,
                            line.after[2]))  # fmt: skip
        columns = np.array(numbers, np.int64).reshape(-1, 9).T
        raw = tables["sched"] | {"offset": columns[0], "ts": columns[1]}
        for (name, dtype), values in zip(SCHED.items(), columns[2:], strict=True):
            raw[name] = values.astype(dtype)
        tables["sched"] = raw
        return tables

    def _scheduled(self, side: Event) -> int:
        """The id of the thread on one side of a switch, which may have no pid."""
        tid = number_of(_plain(side.get("tid"))) or 0
        if "pid" in side:
            return self.tasks.thread(number_of(_plain(side["pid"])) or 0, tid)
        known = self.tasks.by_tid.get(tid)
        return self.tasks.thread(0, tid) if known is None else known

    def _ids_of(self, timed: _Timed, index: I64, kind: str) -> dict[str, NDArray[np.uint64]]:
        """The column ``id`` of some events: the numbers of those that have an id, else 0."""
        numbers = np.zeros(index.size, np.uint64)
        chosen = np.arange(index.size)
        if kind == "async":
            chosen = np.flatnonzero(ASYNCS[timed.phase[index]])
        elif kind != "flow":  # an id is rare
            given = ["id" in event or "id2" in event for event in timed.picked(index)]
            chosen = np.flatnonzero(np.array(given, np.bool_))
        if not chosen.size:
            return {"id": numbers}
        rows = index[chosen]
        found: list[int] = []
        for event, offset, category, name, thread in zip(
            timed.picked(rows),
            timed.starts[rows].tolist(),
            timed.category[rows].tolist(),
            timed.name[rows].tolist(),
            timed.thread[rows].tolist(),
            strict=True,
        ):
            context = [kind, category]
            raw, pair = event.get("id"), event.get("id2")
            if kind == "flow":
                context.append(name)
            elif "scope" in event:
                context = [kind, _plain(event["scope"])]
            if isinstance(pair, dict):
                raw = pair.get("global", pair.get("local"))
                if "local" in pair:
                    context.append(self.tasks.pids[thread])
            number = number_of(_plain(raw))
            if number is None:
                if kind in {"async", "flow"} or raw is not None:
                    self.report(rules.INVALID_MEMBER, offset, f"id is {raw!a:.40}")
                found.append(0)
                continue
            found.append(self._ids[kind].number(number, *context))
        numbers[chosen] = np.array(found, np.uint64)
        return {"id": numbers}


def column(events: list[Event], key: str) -> Sequence[Any]:
    """What events have as a member; None where they do not have it."""
    try:
        return list(map(itemgetter(key), events))
    except KeyError:
        return [event.get(key) for event in events]


def _own_args(event: Event) -> bool:
    args = event.get("args")
    return args is not None and not (isinstance(args, dict) and args.keys() <= WEIGHTS)


def clipped(value: Any, low: int = -(1 << 31), high: int = (1 << 31) - 1, default: int = 0) -> int:
    """A number within bounds; the default for what is not an integer."""
    return min(max(value, low), high) if type(value) is int else default


def _plain(value: Any) -> Any:
    """The value, None for an object or an array."""
    return None if isinstance(value, dict | list) else value


def _number(value: Any) -> int | float | None:
    """A number, or the one that a text is; None for anything else."""
    if isinstance(value, str):
        try:
            return int(value) if value.isdecimal() else float(value)
        except ValueError:
            return None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _signed(value: int) -> int:
    """64 bits, of which the highest is the sign."""
    return (value & U64_MAX) - (value >> 63 & 1 and 1 << 64)


def _double(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
