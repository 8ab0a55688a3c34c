"""One Perfetto trace out of captures of any formats: the packets of each table in turn.

Perfetto sorts packets by time and keeps the order of equal times, so each kind of event is
written by itself: slices a track at a time, then instants, counters, switches and logs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fxframework.exporters.perfetto.nest import OPEN, Nesting
from fxframework.exporters.perfetto.tracks import Tracks
from fxframework.exporters.perfetto.wire import (
    Messages,
    integer,
    interleave,
    message,
    string,
    varint,
)
from fxframework.io.sink import Sink
from fxframework.model.capture import Capture
from fxframework.model.schema import (
    ARG_TYPES,
    FLOW_PHASES,
    LOG_LEVELS,
    PROPERTY_TYPES,
    SCHED_KINDS,
    SCOPES,
    SLICE_KINDS,
    TABLE_CODES,
    THREAD_STATES,
)
from fxframework.model.table import Table
from fxframework.registry import ExportSession

__all__ = ["open_export"]

I64 = NDArray[np.int64]
Bools = NDArray[np.bool_]

# --- Fields of perfetto_trace.proto ------------------------------------------------------------
FTRACE_EVENTS, CLOCK_SNAPSHOT, TIMESTAMP, SEQUENCE, TRACK_EVENT, INTERNED = 1, 6, 8, 10, 11, 12
SEQUENCE_FLAGS, ANDROID_LOG = 13, 39
CLEARED, NEEDED = 1, 2
"""Flags of a sequence: its interned state begins here; a packet needs that state."""
DEBUG_ANNOTATIONS, CATEGORY_IIDS, TYPE, NAME_IID, TRACK_UUID, COUNTER_VALUE = 4, 3, 9, 10, 11, 30
SOURCE_LOCATION, DOUBLE_COUNTER_VALUE, FLOW_IDS, TERMINATING_FLOW_IDS = 34, 44, 47, 48
BEGIN, END, INSTANT, COUNT = 1, 2, 3, 4
CATEGORIES, NAMES, ARGUMENT_NAMES, LOCATIONS, STRINGS = 1, 2, 3, 4, 29
REALTIME, MONOTONIC, BOOTTIME = 1, 3, 6

CHUNK = 1 << 15
"""Events that are encoded at a time."""
BUNDLE = 4096
"""Context switches, or logs, of one packet."""
LONGEST_COMM = 32
"""Bytes of a thread's name in a context switch; its track has the whole name."""
TASK_STATE = {"blocked": 1, "suspended": 4, "dying": 16, "dead": 16}
"""Linux's number for the state in which a thread is switched out; others are runnable."""
PRIORITIES = {"TRACE": 2, "DEBUG": 3, "INFO": 4, "WARN": 5, "ERROR": 6, "FATAL": 7}
_KIND = {name: number for number, name in SLICE_KINDS.items()}
_TYPE = {name: number for number, name in ARG_TYPES.items()}
_SCOPE = {name: number for number, name in SCOPES.items()}
_PROPERTY = {name: number for number, name in PROPERTY_TYPES.items()}
BEFORE_ZERO = "rows before time 0"
CUT_SHORT = "lengths of slices that overlap more than 32 others"
WITHOUT_SLICE = "flows outside of slices"
TABLES = ("processes", "threads", "slices", "instants", "counters", "flows", "sched", "logs",
          "args", "nodes", "properties", "diagnostics", "log_tags")  # fmt: skip


def open_export(sink: Sink, options: Mapping[str, Any]) -> ExportSession:  # noqa: ARG001
    """The exporter `perfetto`."""
    return _PerfettoExport(sink)


class _PerfettoExport:
    """Writes the packets of each capture as it comes, on a packet sequence of its own."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._dropped: Counter[str] = Counter()
        self._sequence = 0
        self._tracks = Tracks(self._packet)
        self._flows = 0

    def write(self, capture: Capture) -> None:
        """Write a capture: its clock, its tracks, then its events."""
        self._sequence += 1
        self._clock(capture.utc_offset_ns)
        writer = _CaptureWriter(capture, self._sequence, self._tracks, self._sink, self._dropped)
        self._flows = writer.write(self._flows)
        for name, rows in capture.row_counts().items():
            if rows and name not in TABLES and not _is_functions(capture, name):
                self._dropped[f"rows of {name}"] += rows

    def close(self) -> Mapping[str, int]:
        """Give what Perfetto has no place for, by name, with counts."""
        if self._tracks.renumbered:
            self._dropped["ids of processes and threads that 31 bits cannot hold"] += len(
                self._tracks.renumbered
            )
        return {name: count for name, count in self._dropped.items() if count}

    def _packet(self, content: bytes) -> None:
        self._sink.write(message(1, content + integer(SEQUENCE, self._sequence)))

    def _clock(self, utc_offset_ns: int | None) -> None:
        """State how the clocks relate, and begin the sequence's interned state."""
        offset = utc_offset_ns or 0
        first = max(0, -offset)
        clocks = b"".join(
            message(1, integer(1, clock) + integer(2, first + shift))
            for clock, shift in ((BOOTTIME, 0), (MONOTONIC, 0), (REALTIME, offset))
        )
        head = integer(TIMESTAMP, first) + integer(SEQUENCE_FLAGS, CLEARED)
        self._packet(head + message(CLOCK_SNAPSHOT, clocks))


def _is_functions(capture: Capture, name: str) -> bool:
    return capture.calls is not None and capture.calls.functions == name


class _Interned:
    """Strings of one capture's pool that a sequence knows already, by what they are used for."""

    def __init__(self, capture: Capture, emit: Callable[[bytes], None]) -> None:
        self._capture = capture
        self._emit = emit
        self._known: dict[int, NDArray[np.bool_]] = {}

    def need(self, field: int, codes: NDArray[Any]) -> NDArray[np.uint64]:
        """The iids of codes (0 for null), each announced before it is used."""
        known = self._known.get(field)
        size = len(self._capture.strings)
        if known is None or known.size < size:
            grown = np.zeros(size, np.bool_)
            if known is not None:
                grown[: known.size] = known
            known = self._known[field] = grown
        fresh = np.unique(codes[codes >= 0])
        fresh = fresh[~known[fresh]]
        if fresh.size:
            known[fresh] = True
            bytes_of = self._capture.strings.bytes_of
            entries = b"".join(
                message(field, integer(1, code + 1) + string(2, bytes_of(code)))
                for code in fresh.tolist()
            )
            self._emit(integer(SEQUENCE_FLAGS, NEEDED) + message(INTERNED, entries))
        return (codes.astype(np.int64) + 1).view(np.uint64)


class _CaptureWriter:
    """The events of one capture as packets of one sequence."""

    def __init__(
        self, capture: Capture, sequence: int, tracks: Tracks, sink: Sink, dropped: Counter[str]
    ) -> None:
        self.capture = capture
        self.tracks = tracks
        self._sequence = sequence
        self._sink = sink
        self._dropped = dropped
        self._interned = _Interned(capture, self._packet)
        self._arguments = _Arguments(capture, self._interned)
        self._functions: NDArray[np.bool_] | None = None

    def write(self, flows: int) -> int:
        """Write everything; ``flows`` ids of flows are taken, gives how many are then."""
        has = self.capture.schemas.keys()
        self._threads()
        if "slices" in has:
            flows = self._slices(flows)
        if "instants" in has:
            self._instants()
        if "counters" in has:
            self._counters()
        if "sched" in has:
            self._sched()
        if "logs" in has:
            self._logs()
        if "properties" in has:
            self._properties()
        return flows

    def _packet(self, content: bytes) -> None:
        self._sink.write(message(1, content + integer(SEQUENCE, self._sequence)))

    # --- Processes and threads -------------------------------------------------------------------

    def _threads(self) -> None:
        """Describe every process and thread; tables of uuids by thread id."""
        names: dict[int, str] = {}
        if "processes" in self.capture.schemas:
            table = self.capture.table("processes")
            names = {
                pid: name or ""
                for pid, name in zip(table.array("pid").tolist(), table.texts("name"), strict=True)
            }
        self._pids = {pid: self.tracks.process(pid, name) for pid, name in names.items()}
        size = 0
        rows: list[tuple[int, int, int, str]] = []
        if "threads" in self.capture.schemas:
            table = self.capture.table("threads")
            ids, pids, tids = (table.array(name).tolist() for name in ("id", "pid", "tid"))
            texts = [name or "" for name in table.texts("name")]
            rows = list(zip(ids, pids, tids, texts, strict=True))
            size = max(ids, default=-1) + 1
        # Index -1, the last, is for rows without a thread.
        self._uuid = np.zeros(size + 1, np.int64)
        self._process_uuid = np.zeros(size + 1, np.int64)
        self._tid = np.zeros(size + 1, np.int64)
        self._comm = [b""] * (size + 1)
        for id, pid, tid, name in rows:
            process = self._pid(pid)
            small = 0 if tid == 0 else self.tracks.thread(process, tid, name)
            self._tid[id] = small
            self._uuid[id] = self.tracks.uuid("thread", small) if small else 0
            self._process_uuid[id] = self.tracks.uuid("process", process)
            self._comm[id] = name.encode("utf-8", "replace")[:LONGEST_COMM]
        if not self._uuid.all():
            self._uuid[self._uuid == 0] = self.tracks.named(0, "no thread")

    def _pid(self, pid: int) -> int:
        small = self._pids.get(pid)
        if small is None:
            small = self._pids[pid] = self.tracks.process(pid, "") if pid else 0
        return small

    # --- Slices ----------------------------------------------------------------------------------

    def _slices(self, flows: int) -> int:
        table = self.capture.table("slices")
        keep = np.flatnonzero(self._after_zero(table))
        if not keep.size:
            return flows
        start = table.array("ts")[keep]
        dur = table.array("dur")[keep]
        end = np.where(dur < 0, OPEN, start + np.minimum(np.maximum(dur, 0), OPEN - 1 - start))
        tracks, first_async = self._slice_tracks(table, keep)
        depth = table.array("depth")[keep]
        order = np.lexsort((-end, depth, start, tracks))
        rows = keep[order]
        columns = [
            np.ascontiguousarray(values[order], np.int64) for values in (tracks, start, end, depth)
        ]
        track, start, end, depth = columns
        count = rows.size
        events = np.empty(2 * count, np.int64)
        lane, below = np.zeros(count, np.int64), np.empty(count, np.int64)
        nesting = Nesting(track, start, end, depth, events, lane, below)
        events = events[: nesting.run()]
        self._dropped[CUT_SHORT] += nesting.cut
        uuid = self._lanes(table, rows, track, lane, first_async)
        codes = {name: table.array(name)[rows] for name in ("category", "name")}
        tails = _Tails(self._arguments.of(TABLE_CODES["slices"]), rows)
        flows = self._flow_tails(tails, rows, flows)
        source = self._sources(table, rows)
        for at in range(0, events.size, CHUNK):
            chosen = events[at : at + CHUNK]
            ends = chosen < 0
            slices = np.where(ends, ~chosen, chosen)
            begins = ~ends
            body = Messages(chosen.size).varints(TYPE, np.where(ends, END, BEGIN))
            body.varints(TRACK_UUID, uuid[slices])
            self._names(body, codes["category"][slices], codes["name"][slices], begins)
            if source is not None:
                body.varints(SOURCE_LOCATION, source[slices], begins & (source[slices] > 0))
            lengths, data = tails.of(slices, begins)
            self._events(np.where(ends, end[slices], start[slices]), body, lengths, data)
        return flows

    def _names(
        self, body: Messages, category: NDArray[Any], name: NDArray[Any], shown: Bools
    ) -> None:
        """Append category and name, by their iids, to events that show them."""
        categories = self._interned.need(CATEGORIES, category[shown])
        names = self._interned.need(NAMES, name[shown])
        for field, codes, iids in ((CATEGORY_IIDS, category, categories), (NAME_IID, name, names)):
            every = np.zeros(shown.size, np.uint64)
            every[shown] = iids
            body.varints(field, every, shown & (codes >= 0))

    def _slice_tracks(self, table: Table, keep: I64) -> tuple[I64, int]:
        """The track of each slice, a number; asynchronous ones have tracks of their own."""
        thread = table.array("thread")[keep].astype(np.int64)
        kind = table.array("kind")[keep]
        size = self._uuid.size
        tracks = np.where(thread < 0, size - 1, thread)
        chosen = np.flatnonzero(kind == _KIND["async"])
        if chosen.size:
            root = _roots(table)[keep[chosen]]
            key = np.stack(
                (
                    self._process_uuid[thread[chosen]],
                    table.array("name")[root].astype(np.int64),
                    table.array("id")[root].view(np.int64),
                ),
                axis=1,
            )
            distinct, which = np.unique(key, axis=0, return_inverse=True)
            tracks[chosen] = size + which.reshape(-1)
            self._async_keys = distinct
        return tracks, size

    def _lanes(self, table: Table, rows: I64, track: I64, lane: I64, first_async: int) -> I64:
        """The uuid of each slice's track, by the number of the track and the lane on it."""
        del table, rows
        key = track * (1 << 8) + lane
        distinct, which = np.unique(key, return_inverse=True)
        uuids = np.empty(distinct.size, np.int64)
        text = self.capture.strings
        for number, each in enumerate(distinct.tolist()):
            on, extra = each >> 8, each & 0xFF
            if on < first_async:
                uuid = int(self._uuid[on])
                if extra:
                    uuid = self.tracks.named(uuid, "overlapping", extra)
            else:
                process, name, id = self._async_keys[on - first_async].tolist()
                label = text.bytes_of(name).decode("utf-8", "replace") if name >= 0 else ""
                uuid = self.tracks.named(process, label, "async", self._sequence, id, extra)
            uuids[number] = uuid
        return uuids[which.reshape(-1)]

    def _flow_tails(self, tails: _Tails, rows: I64, taken: int) -> int:
        """Give flows to the slices that they pass through; gives the ids taken then."""
        if "flows" not in self.capture.schemas:
            return taken
        table = self.capture.table("flows")
        at = table.array("slice")
        inside = at >= 0
        self._dropped[WITHOUT_SLICE] += int((~inside).sum())
        if not inside.any():
            return taken
        ids, which = np.unique(table.array("id"), return_inverse=True)
        last = table.array("phase") == next(n for n, name in FLOW_PHASES.items() if name == "end")
        body = Messages(int(inside.sum()))
        number = (which.reshape(-1)[inside] + taken + 1).astype(np.uint64)
        ends = last[inside]
        body.constant(varint(FLOW_IDS << 3 | 1), ~ends)
        body.constant(varint(TERMINATING_FLOW_IDS << 3 | 1), ends)
        body.bytes8(number)
        tails.add(at[inside], body)
        return taken + ids.size

    def _sources(self, table: Table, rows: I64) -> NDArray[np.uint64] | None:
        """The iid of each call's place in the source, 0 for none; all of them are announced."""
        calls = self.capture.calls
        if calls is None:
            return None
        functions = self.capture.table(calls.functions)
        entries = []
        numbers = functions.array("id").astype(np.int64)
        known: list[int] = []
        for place, (name, text) in enumerate(
            zip(functions.texts("name"), functions.texts("source"), strict=True)
        ):
            if not text:
                continue
            file, _, line = text.partition(":")
            inner = integer(1, place + 1) + string(2, file) + string(3, name or "")
            first = line.partition(":")[0]
            if first.isdecimal() and int(first) < IDS_OF_LINES:
                inner += integer(4, int(first))
            entries.append(message(LOCATIONS, inner))
            known.append(place)
        if not entries:
            return None
        self._packet(integer(SEQUENCE_FLAGS, NEEDED) + message(INTERNED, b"".join(entries)))
        order = np.argsort(numbers)
        asked = table.array(calls.function)[rows].astype(np.int64)
        found = order[np.minimum(np.searchsorted(numbers[order], asked), numbers.size - 1)]
        has = np.zeros(numbers.size, np.bool_)
        has[known] = True
        good = (numbers[found] == asked) & has[found]
        return np.where(good, found + 1, 0).astype(np.uint64)

    # --- Instants and counters -------------------------------------------------------------------

    def _instants(self) -> None:
        table = self.capture.table("instants")
        keep = np.flatnonzero(self._after_zero(table))
        if not keep.size:
            return
        thread = table.array("thread")[keep]
        scope = table.array("scope")[keep]
        uuid = self._uuid[thread]
        uuid = np.where(scope == _SCOPE["process"], self._process_uuid[thread], uuid)
        if (scope == _SCOPE["global"]).any():
            uuid = np.where(scope == _SCOPE["global"], self.tracks.named(0, "global"), uuid)
        apart = np.flatnonzero(scope > max(SCOPES))
        if apart.size:
            uuid[apart] = self._async_instants(table, keep[apart])
        uuid = np.where(uuid == 0, self.tracks.named(0, "no thread"), uuid)
        times = table.array("ts")[keep]
        names = table.array("category")[keep], table.array("name")[keep]
        tails = _Tails(self._arguments.of(TABLE_CODES["instants"]), keep)
        for at in range(0, keep.size, CHUNK):
            some = slice(at, at + CHUNK)
            chosen = np.arange(keep.size)[some]
            body = Messages(chosen.size).varints(TYPE, np.full(chosen.size, INSTANT))
            shown = np.ones(chosen.size, np.bool_)
            body.varints(TRACK_UUID, uuid[some])
            self._names(body, names[0][some], names[1][some], shown)
            self._events(times[some], body, *tails.of(chosen, shown))

    def _async_instants(self, table: Table, rows: I64) -> I64:
        process = self._process_uuid[table.array("thread")[rows]]
        names = table.texts("name")
        ids = table.array("id")[rows].tolist()
        return np.array(
            [
                self.tracks.named(parent, names[row] or "", "async", self._sequence, id, 0)
                for row, parent, id in zip(rows.tolist(), process.tolist(), ids, strict=True)
            ],
            np.int64,
        )

    def _counters(self) -> None:
        table = self.capture.table("counters")
        keep = np.flatnonzero(self._after_zero(table))
        if not keep.size:
            return
        key = np.stack(
            (
                self._process_uuid[table.array("thread")[keep]],
                table.array("name")[keep].astype(np.int64),
                table.array("series")[keep].astype(np.int64),
                table.array("id")[keep].view(np.int64),
            ),
            axis=1,
        )
        distinct, which = np.unique(key, axis=0, return_inverse=True)
        pool = self.capture.strings
        uuids = []
        for process, name, series, id in distinct.tolist():
            texts = [
                pool.bytes_of(code).decode("utf-8", "replace") if code >= 0 else ""
                for code in (name, series)
            ]
            label = ":".join((*texts, str(id & (1 << 64) - 1)))
            uuids.append(self.tracks.named(process, label, self._sequence, counter=True))
        uuid = np.array(uuids, np.int64)[which.reshape(-1)]
        self._values(
            table.array("ts")[keep],
            uuid,
            table.array("value")[keep],
            table.array("value_int")[keep],
            table.array("is_int")[keep],
        )

    def _values(self, times: I64, uuid: I64, value: NDArray[Any], exact: I64, whole: Bools) -> None:
        """Values of counters. An integer beyond int64 is written as a double."""
        whole = whole & ((exact >= 0) | (value < 0))
        for at in range(0, times.size, CHUNK):
            some = slice(at, at + CHUNK)
            count = times[some].size
            body = Messages(count).varints(TYPE, np.full(count, COUNT))
            body.varints(TRACK_UUID, uuid[some])
            body.varints(COUNTER_VALUE, exact[some], whole[some])
            body.fixed64(DOUBLE_COUNTER_VALUE, value[some].astype("<f8"), ~whole[some])
            self._events(times[some], body, None, None)

    def _properties(self) -> None:
        """Numbers of an Inspect tree as counters at the capture's time."""
        table = self.capture.table("properties")
        kinds = table.array("type")
        numeric = np.isin(kinds, [_PROPERTY[name] for name in ("int", "uint", "double")])
        rows = np.flatnonzero(numeric)
        others = int(kinds.size - rows.size)
        if others:
            self._dropped["properties that are no numbers"] += others
        if not rows.size:
            return
        nodes = self.capture.table("nodes")
        paths = dict(zip(nodes.array("id").tolist(), nodes.texts("path"), strict=True))
        names = table.texts("name")
        group = self.tracks.named(0, f"Inspect {self.capture.name.rpartition('/')[2]}")
        uuid = np.array(
            [
                self.tracks.named(
                    group, f"{paths.get(node)}:{names[row]}", self._sequence, row, counter=True
                )
                for row, node in zip(rows.tolist(), table.array("node")[rows].tolist(), strict=True)
            ],
            np.int64,
        )
        kind = kinds[rows]
        signed, unsigned = table.array("int")[rows], table.array("uint")[rows]
        exact = np.where(kind == _PROPERTY["uint"], unsigned.view(np.int64), signed)
        value = np.where(
            kind == _PROPERTY["double"],
            table.array("float")[rows],
            np.where(kind == _PROPERTY["uint"], unsigned.astype("f8"), signed.astype("f8")),
        )
        whole = kind != _PROPERTY["double"]
        self._values(np.zeros(rows.size, np.int64), uuid, value, exact, whole)

    # --- Switches and logs -----------------------------------------------------------------------

    def _sched(self) -> None:
        table = self.capture.table("sched")
        keep = np.flatnonzero(self._after_zero(table))
        if not keep.size:
            return
        order = keep[np.lexsort((table.array("ts")[keep], table.array("cpu")[keep]))]
        cpus = table.array("cpu")[order]
        wakes = table.array("kind")[order] == next(
            number for number, name in SCHED_KINDS.items() if name == "wakeup"
        )
        states = np.zeros(256, np.int64)
        for number, name in THREAD_STATES.items():
            states[number] = TASK_STATE.get(name, 0)
        comms = _padded(self._comm)
        times = table.array("ts")[order]
        bounds = np.flatnonzero(np.diff(cpus)) + 1
        for first, last in zip([0, *bounds.tolist()], [*bounds.tolist(), order.size], strict=True):
            for at in range(first, last, BUNDLE):
                some = slice(at, min(at + BUNDLE, last))
                rows = order[some]
                body = self._switches(table, rows, states, comms)
                for mask, inner in ((~wakes[some], body[0]), (wakes[some], body[1])):
                    self._bundle(int(cpus[at]), times[some][mask], inner, mask)

    def _switches(
        self, table: Table, rows: I64, states: I64, comms: tuple[NDArray[np.uint8], I64]
    ) -> tuple[Messages, Messages]:
        """SchedSwitch and SchedWaking messages of every row; each row uses one of them."""
        before, after = table.array("prev")[rows], table.array("next")[rows]
        switch = Messages(rows.size).padded(1, comms[0][before], comms[1][before])
        switch.varints(2, self._tid[before])
        switch.varints(3, table.array("prev_priority")[rows].astype(np.int64))
        switch.varints(4, states[table.array("prev_state")[rows]])
        switch.padded(5, comms[0][after], comms[1][after]).varints(6, self._tid[after])
        switch.varints(7, table.array("next_priority")[rows].astype(np.int64))
        waking = Messages(rows.size).padded(1, comms[0][after], comms[1][after])
        waking.varints(2, self._tid[after])
        waking.varints(3, table.array("next_priority")[rows].astype(np.int64))
        waking.constant(integer(4, 1)).varints(5, table.array("cpu")[rows])
        return switch, waking

    def _bundle(self, cpu: int, times: I64, inner: Messages, mask: Bools) -> None:
        if not times.size:
            return
        chosen = inner.take(mask)
        switches = chosen.rows and inner.fields == SWITCH_FIELDS
        event = Messages(chosen.rows).varints(1, times).constant(integer(2, 0))
        event.embed(4 if switches else 20, chosen)
        events = Messages(chosen.rows).embed(2, event)
        content = integer(1, cpu) + events.data().tobytes()
        self._packet(integer(TIMESTAMP, int(times[-1])) + message(FTRACE_EVENTS, content))

    def _logs(self) -> None:
        table = self.capture.table("logs")
        keep = np.flatnonzero(self._after_zero(table))
        texts = self._arguments.texts(TABLE_CODES["logs"])
        levels = sorted((value, PRIORITIES[name]) for name, value in LOG_LEVELS.items())
        bounds = np.array([value for value, _ in levels])
        priorities = np.array([2, *(priority for _, priority in levels)])
        offset = self.capture.utc_offset_ns or 0
        for at in range(0, keep.size, BUNDLE):
            rows = keep[at : at + BUNDLE]
            body = self._log_rows(table, rows, texts, offset)
            severity = table.array("severity")[rows]
            body.varints(7, priorities[np.searchsorted(bounds, severity, "right")])
            events = Messages(rows.size).embed(1, body)
            first = int(table.array("ts")[rows[0]])
            self._packet(integer(TIMESTAMP, first) + message(ANDROID_LOG, events.data().tobytes()))

    def _log_rows(self, table: Table, rows: I64, texts: Mapping[int, str], offset: int) -> Messages:
        pids = [self._pid(pid) for pid in table.array("pid")[rows].tolist()]
        tids = [
            self.tracks.thread(pid, tid, "") if tid else 0
            for pid, tid in zip(pids, table.array("tid")[rows].tolist(), strict=True)
        ]
        message_column = table["message"]
        tags, components = (_codes(table, name, rows) for name in ("tags", "component"))
        strings = self.capture.strings
        shown: list[bytes] = []
        labels: list[bytes] = []
        for row, tag, component in zip(rows.tolist(), tags, components, strict=True):
            text = str(message_column[row])
            extra = texts.get(row)
            shown.append(
                f"{text} {extra}".strip().encode("utf-8", "replace")
                if extra
                else text.encode("utf-8", "replace")
            )
            code = tag if tag >= 0 else component
            label = strings.bytes_of(code).decode("utf-8", "replace") if code >= 0 else ""
            labels.append(label.encode("utf-8", "replace"))
        body = Messages(rows.size).varints(2, np.array(pids, np.int64))
        body.varints(3, np.array(tids, np.int64))
        body.varints(5, table.array("ts")[rows] + offset)
        body.padded(6, *_padded(labels)).padded(8, *_padded(shown))
        return body

    # --- Packets ---------------------------------------------------------------------------------

    def _after_zero(self, table: Table) -> Bools:
        """Rows that have a time Perfetto can hold."""
        good: Bools = table.array("ts") >= 0
        self._dropped[BEFORE_ZERO] += int(good.size - np.count_nonzero(good))
        return good

    def _events(
        self,
        times: I64,
        body: Messages,
        lengths: I64 | None,
        data: NDArray[np.uint8] | None,
    ) -> None:
        """Write track events, each with the bytes that come behind its own fields."""
        packet = Messages(times.size).varints(TIMESTAMP, times)
        packet.constant(integer(SEQUENCE_FLAGS, NEEDED) + integer(SEQUENCE, self._sequence))
        packet.embed(TRACK_EVENT, body, lengths)
        framed = Messages(times.size).embed(1, packet, lengths)
        parts = [(framed.data(), framed.lengths)]
        if lengths is not None and data is not None:
            parts.append((data, lengths))
        self._sink.write(interleave(parts).tobytes())
