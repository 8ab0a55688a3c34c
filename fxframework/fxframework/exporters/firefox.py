"""The exporter `firefox`: a processed profile of the Firefox Profiler.

Calls become samples of the stack between two changes of it, whose weights are lengths, so that the
call tree, the flame graph and the stack chart show durations. Instants and asynchronous slices
become markers.

The layout is version 61 of the profiler's "processed profile" (docs-developer/CHANGELOG-formats.md
and src/types/profile.ts there); newer viewers upgrade it.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from fxframework.analysis.calls import Calls
from fxframework.exporters.columns import made_once
from fxframework.exporters.rows import ArgumentMembers, json_arguments
from fxframework.exporters.stacks import DEEP, TIMELESS, Frames, left_out, place_of, unfolded_calls
from fxframework.io.sink import Sink
from fxframework.kernels.arrays import I64
from fxframework.kernels.nesting import BEGIN, END, Nesting
from fxframework.kernels.parts import MEMBERS, MEMBERS_END
from fxframework.kernels.sorting import dense, ends_of_runs, run_of
from fxframework.kernels.stacks import Stacks
from fxframework.kernels.templates import Templates
from fxframework.kit.export import Export, empty_refusal
from fxframework.kit.row_texts import Lines
from fxframework.model.capture import Capture
from fxframework.model.clock import ends_of
from fxframework.model.schema import ASYNC
from fxframework.model.strings import StringPool, TextColumn
from fxframework.model.table import Table
from fxframework.model.tasks import Task, tasks

VERSION = 61
COLORS = ("blue", "green", "orange", "purple", "yellow", "red", "lightblue", "magenta", "brown")
"""Colours that the profiler knows; grey is that of the category for everything else."""
CHUNK = 1 << 20
"""Events nested at a time."""
INSTANT, INTERVAL, INTERVAL_START = 0, 1, 2
"""Phases of markers."""
PER_MS = 1e6
NOBODY = Task(0, 0, None, "no thread")
MARKER = "event"


class _Samples(NamedTuple):
    """The samples of all threads, each thread's together and in order of time."""

    thread: NDArray[np.int32]
    time: I64
    length: I64
    stack: I64
    """Index in the stack table; -1 where no call is active."""


class _Markers(NamedTuple):
    """The markers of all threads, in any order."""

    thread: NDArray[np.int32]
    time: I64
    end: I64
    phase: NDArray[np.int64]
    name: NDArray[np.int64]
    category: NDArray[np.int64]
    data: TextColumn
    """Objects as JSON, each behind a comma."""
    written: Counter[str]
    """Rows that became markers, or parts of them, by the name under which others are dropped."""


class FirefoxExport(Export):
    """Writes one profile: the threads of all captures, then the tables that they refer to."""

    def __init__(self, sink: Sink, options: Mapping[str, Any]) -> None:
        super().__init__(sink, options)
        self._strings = StringPool()
        self._functions = Frames(self._strings)
        self._categories: dict[str, int] = {"Other": 0}
        self._frames: dict[tuple[int, int], int] = {}
        """Index of a frame by function and category."""
        self._stack_frames: list[I64] = []
        self._stack_prefixes: list[I64] = []
        self._stack_count = 0
        self._argument_names: dict[str, str] = {}
        """Labels of the fields of markers by key."""
        self._origin: int | None = None
        self._utc_offset_ns: int | None = None
        self._processes: set[int] = set()
        self._begun = False
        self._name = ""

    def expect(self, capture: Capture) -> None:
        """Note where the times of a capture begin, before any is written."""
        first = _first_time(capture)
        if first is not None:
            if self._origin is None:
                self._origin = first
            self._origin = min(first, self._origin)

    def write(self, capture: Capture) -> None:
        """Write the threads of a capture. Raises WriteRefusedError without slices and instants."""
        if self._origin is None:
            self.expect(capture)
        samples = self._samples(capture)
        markers = self._markers(capture)
        if not samples.thread.size and not markers.thread.size:
            raise empty_refusal(capture, "there are no slices and no instants")
        threads = tasks(capture, distinct=True)
        by_thread = np.argsort(markers.thread, kind="stable")
        marker_threads = markers.thread[by_thread]
        for thread in np.union1d(samples.thread, markers.thread).tolist():
            self._sink.write(b",\n" if self._begun else b'{"threads":[\n')
            self._begun = True
            self._name = self._name or capture.name
            own_samples = run_of(samples.thread, thread)
            own_markers = run_of(marker_threads, thread)
            self._write_head(threads.get(thread, NOBODY))
            self._write_samples(samples, own_samples)
            self._write_markers(markers, by_thread[own_markers])
        self._utc_offset_ns = capture.utc_offset_ns
        self._dropped += left_out(capture)
        self._dropped -= markers.written

    def close(self) -> Mapping[str, int]:
        """Write the tables; return the counts of what could not be written, by name."""
        if self._begun:
            self._sink.write(b'],\n"libs":[],"pages":[],"counters":[],\n"shared":{')
            between = b""
            for name, columns in self._tables():
                self._sink.write(between + orjson.dumps(name) + b":{")
                self._sink.write(b",".join(_columns(columns)) + b"}")
                between = b",\n"
            strings = orjson.dumps(self._strings[:])
            self._sink.write(b',\n"stringArray":' + strings + b"},\n")
            meta = orjson.dumps(self._meta())
            self._sink.write(b'"meta":' + meta + b"}\n")
        return super().close()

    # --- Calls -----------------------------------------------------------------------------------

    def _samples(self, capture: Capture) -> _Samples:
        """Return the samples of the calls of a capture, whose stacks are added."""
        if "slices" not in capture.schemas or not any(map(len, capture.batches("slices"))):
            none = np.zeros(0, np.int64)
            return _Samples(none.astype(np.int32), none, none, none)
        calls = Calls.of(capture, self._options["by"])
        events = unfolded_calls(capture, calls, self._dropped)
        slices = events.slices
        is_timeless = slices.array("dur") == 0
        self._dropped[TIMELESS] += int(np.count_nonzero(is_timeless))
        functions = self._functions.numbers_of(calls.functions)[calls.function]
        frames = self._frames_of(functions, self._categories_of(slices))
        thread, thread_ids = dense(events.thread)
        times = events.time
        deepest = capture.request.limits.max_depth
        frames_of_events = frames[events.call]
        stacks = self._stacks(thread, frames_of_events, events.is_end, thread_ids.size, deepest)
        # A stack is there until the next change of it in the thread; the last one is empty.
        is_last = ends_of_runs(thread)
        lengths = np.diff(times, append=times[-1:])
        lengths[is_last] = 0
        is_sample = (lengths > 0) | is_last
        return _Samples(
            events.thread[is_sample],
            times[is_sample],
            lengths[is_sample],
            stacks[is_sample],
        )

    def _stacks(
        self,
        thread: NDArray[np.int32],
        frames: NDArray[np.int64],
        is_end: NDArray[np.bool_],
        threads: int,
        deepest: int,
    ) -> I64:
        """Return the stack after each begin or end of a call; -1 for none. Adds new stacks."""
        nesting = Nesting(threads)
        known_stacks = Stacks(deepest)
        stack_after = np.empty(thread.size, np.int64)
        for chunk_start in range(0, thread.size, CHUNK):
            chunk = slice(chunk_start, chunk_start + CHUNK)
            nesting_kinds = np.where(is_end[chunk], END, BEGIN).astype(np.uint8)
            names = frames[chunk].astype(np.uint32)
            nesting.nest(nesting_kinds, thread[chunk], names)
            stacks = known_stacks.add(nesting, nesting_kinds, names)
            # Deeper calls have the stack at the limit, also after one of them ended.
            is_deep = nesting.depths > deepest
            is_popped = is_end[chunk] & ~is_deep
            is_deep_begin = is_deep & ~is_end[chunk]
            self._dropped[DEEP] += int(np.count_nonzero(is_deep_begin))
            parent_of = np.append(known_stacks.below, -1)
            stack_after[chunk] = np.where(is_popped, parent_of[stacks], stacks)
        parents = known_stacks.below
        offset = self._stack_count
        self._stack_frames.append(known_stacks.names.astype(np.int64))
        prefixes = np.where(parents < 0, -1, parents + offset)
        self._stack_prefixes.append(prefixes)
        self._stack_count += parents.size
        return np.where(stack_after < 0, -1, stack_after + offset)

    def _categories_of(self, table: Table) -> NDArray[np.int64]:
        """Return the index of the category of each row; new ones are added."""
        pool = table.pool

        def category(code: int) -> int:
            return self._categories.setdefault(pool.text(code) or "Other", len(self._categories))

        return made_once(table.array("category"), category)

    def _frames_of(self, functions: NDArray[Any], categories: NDArray[np.int64]) -> I64:
        """Return the index of the frame of each call; new ones are added."""

        def frame(pair: int) -> int:
            return self._frames.setdefault((pair >> 32, pair & 0xFFFFFFFF), len(self._frames))

        return made_once(functions.astype(np.int64) << 32 | categories, frame)

    # --- Markers ---------------------------------------------------------------------------------

    def _markers(self, capture: Capture) -> _Markers:
        """Return the instants and asynchronous slices of a capture."""
        templates = Templates(b",", b",", b"")
        lines = Lines(templates)
        arguments = json_arguments(templates, capture.strings, self._argument)
        no_numbers = [np.zeros(0, np.int64)] * 5
        written: Counter[str] = Counter()
        columns: list[tuple[NDArray[Any], ...]] = [(np.zeros(0, np.int32), *no_numbers)]
        texts: list[TextColumn] = []
        for table in ("instants", "slices"):
            if table not in capture.schemas:
                continue
            members = ArgumentMembers(capture, table, arguments)
            for batch, bounds in members.parts(capture.batches(table)):
                rows = np.arange(len(batch))
                if table == "slices":
                    rows = np.flatnonzero(batch.array("kind") == ASYNC)
                else:
                    written["rows of instants"] += rows.size
                starts, stops = (bound[rows] for bound in bounds)
                written["rows of args"] += int((stops - starts).sum())
                head = b',{"type":"' + MARKER.encode() + b'"'
                lines.put(rows, head, (MEMBERS, starts), (MEMBERS_END, stops), b"}")
                texts.append(lines.joined()[0])
                columns.append(self._marker_columns(batch, rows))
        joined_columns = map(np.concatenate, zip(*columns, strict=True))
        thread, time, end, phase, name, category = joined_columns
        return _Markers(thread, time, end, phase, name, category, TextColumn.joined(texts), written)

    def _marker_columns(self, batch: Table, rows: I64) -> tuple[NDArray[Any], ...]:
        """Return the columns of ``_Markers`` before ``data`` for some rows of a table."""
        time = batch.array("ts")
        end = time
        phase = np.full(len(batch), INSTANT)
        if batch.name == "slices":
            dur = batch.array("dur")
            end = ends_of(time, dur)
            phase = np.where(dur < 0, INTERVAL_START, INTERVAL)
        pool = batch.pool

        def string(code: int) -> int:
            return self._strings.intern(b"" if code < 0 else pool.bytes_of(code))

        name = made_once(batch.array("name")[rows], string)
        category = self._categories_of(batch)[rows]
        return batch.array("thread")[rows], time[rows], end[rows], phase[rows], name, category

    def _argument(self, name: str) -> str:
        """Return the member of an argument, of which no name has a meaning for the profiler."""
        key = "arg:" + orjson.loads(name)
        self._argument_names[key] = key.removeprefix("arg:")
        return orjson.dumps(key).decode() + ":"

    # --- Output ----------------------------------------------------------------------------------

    def _write_head(self, task: Task) -> None:
        """Write the members of a thread before its samples."""
        head = {
            "name": task.thread or f"thread {task.tid}",
            "isMainThread": task.pid not in self._processes,
            "processName": task.process or f"process {task.pid}",
            "processType": "default",
            "processStartupTime": 0,
            "processShutdownTime": None,
            "registerTime": 0,
            "unregisterTime": None,
            "pausedRanges": [],
            "showMarkersInTimeline": True,
            "pid": str(task.pid),
            "tid": str(task.tid),
        }
        self._processes.add(task.pid)
        open_head = orjson.dumps(head)[:-1]
        self._sink.write(open_head + b",\n")

    def _write_samples(self, samples: _Samples, rows: slice) -> None:
        """Write the samples of a thread, or an empty one, which each thread needs."""
        times = samples.time[rows]
        if times.size:
            columns = {
                "stack": samples.stack[rows],
                "time": self._in_ms(times),
                "weight": samples.length[rows] / PER_MS,
            }
        else:
            columns = {"stack": np.full(1, -1), "time": np.zeros(1), "weight": np.zeros(1)}
        self._sink.write(b'"samples":{"weightType":"tracing-ms",')
        self._sink.write(b",".join(_columns(columns)) + b"},\n")

    def _write_markers(self, markers: _Markers, rows: I64) -> None:
        """Write the markers of a thread."""
        phase = markers.phase[rows]
        ends = self._in_ms(markers.end[rows])
        columns = {
            "name": markers.name[rows],
            "startTime": self._in_ms(markers.time[rows]),
            "endTime": np.where(phase == INTERVAL, ends, np.nan),
            "phase": phase,
            "category": markers.category[rows],
        }
        data = markers.data.take(rows).data.tobytes()[1:]
        self._sink.write(b'"markers":{"data":[' + data + b"],")
        self._sink.write(b",".join(_columns(columns)) + b"}}")

    def _in_ms(self, times: I64) -> NDArray[np.float64]:
        """Return times in milliseconds after the first one."""
        # Their difference may need all 64 bits.
        origin = np.int64(self._origin or 0)
        since_origin = (times - origin).view(np.uint64)
        in_ms: NDArray[np.float64] = since_origin / PER_MS
        return in_ms

    def _tables(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the shared tables: their names and columns."""
        frames = np.array([*self._frames], np.int64).reshape(-1, 2)
        nothing = np.zeros(0, np.int64)
        stack_frames = np.concatenate([nothing, *self._stack_frames])
        stack_prefixes = np.concatenate([nothing, *self._stack_prefixes])
        yield "stackTable", {"frame": stack_frames, "prefix": stack_prefixes}
        count = len(frames)
        yield (
            "frameTable",
            {
                "address": [-1] * count,
                "inlineDepth": [0] * count,
                "category": frames[:, 1],
                "subcategory": [0] * count,
                "func": frames[:, 0],
                "nativeSymbol": [None] * count,
                "innerWindowID": [0] * count,
                "line": [None] * count,
                "column": [None] * count,
            },
        )
        places = [(name, place_of(self._strings[source])) for name, source in self._functions]
        count = len(places)
        sources: dict[str, int] = {}
        source_of_function = [
            sources.setdefault(file, len(sources)) if file else None for _, (file, _, _) in places
        ]
        yield (
            "funcTable",
            {
                "name": [name for name, _ in places],
                "isJS": [False] * count,
                "relevantForJS": [False] * count,
                "resource": [-1] * count,
                "source": source_of_function,
                "lineNumber": [line for _, (_, line, _) in places],
                "columnNumber": [column for _, (_, _, column) in places],
            },
        )
        yield "resourceTable", {"lib": [], "name": [], "host": [], "type": []}
        yield "nativeSymbols", {"libIndex": [], "address": [], "name": [], "functionSize": []}
        count = len(sources)
        yield (
            "sources",
            {
                "id": [None] * count,
                "filename": [self._strings.intern(file.encode()) for file in sources],
                "startLine": [1] * count,
                "startColumn": [1] * count,
                "sourceMapURL": [None] * count,
            },
        )

    def _meta(self) -> dict[str, Any]:
        """Return what the profiler says of the profile."""
        start_ms = 0.0
        if self._utc_offset_ns is not None:
            start_ms = (self._utc_offset_ns + (self._origin or 0)) / PER_MS
        fields = [
            {"key": key, "label": label, "format": "string"}
            for key, label in self._argument_names.items()
        ]
        # The first category is that of everything else.
        colors = itertools.chain(["grey"], itertools.cycle(COLORS))
        schema = {
            "name": MARKER,
            "display": ["marker-chart", "marker-table", "timeline-overview"],
            "fields": fields,
        }
        return {
            "preprocessedProfileVersion": VERSION,
            "version": 24,
            "product": self._name,
            "importedFrom": "fxframework",
            "startTime": start_ms,
            "interval": 1e-6,
            "processType": 0,
            "stackwalk": 0,
            "debug": False,
            "symbolicated": True,
            "symbolicationNotSupported": True,
            "usesOnlyOneStackType": True,
            "sourceCodeIsNotOnSearchfox": True,
            "extensions": {"id": [], "name": [], "baseURL": [], "length": 0},
            "categories": [
                {"name": name, "color": color, "subcategories": ["Other"]}
                for name, color in zip(self._categories, colors, strict=False)
            ],
            "markerSchema": [schema],
            "sampleUnits": {"time": "ms", "eventDelay": "ms", "threadCPUDelta": "ns"},
        }


def _first_time(capture: Capture) -> int | None:
    """Return the earliest time of slices and instants."""
    firsts = [
        int(batch.array("ts").min())
        for name in ("slices", "instants")
        if name in capture.schemas
        for batch in capture.batches(name)
        if len(batch)
    ]
    return min(firsts, default=None)


def _columns(columns: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield the members of a table: its columns, in which -1 and NaN are null, and its length."""
    count = 0
    for name, column in columns.items():
        count = len(column)
        if isinstance(column, np.ndarray):
            values = np.ascontiguousarray(column)
            text = orjson.dumps(values, option=orjson.OPT_SERIALIZE_NUMPY)
            # Only indices are integers that may be below 0.
            text = text.replace(b"-1", b"null") if values.dtype.kind == "i" else text
        else:
            text = orjson.dumps(column)
        yield orjson.dumps(name) + b":" + text
    yield b'"length":%d' % count
