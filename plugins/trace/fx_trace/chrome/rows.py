"""Rows: the events of Chrome JSON as raw rows of traces (``fx_trace.meaning``), block by block."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import attrs
import numpy as np

from fx_trace.chrome import rules
from fx_trace.chrome.scan import KINDS, METADATA, OTHER_EVENT, Block, Event, Report, Scanner
from fx_trace.chrome.values import Codes, Ids, number_of, plain, shown, times
from fx_trace.kinds import ArgType, ObjectType, RecordType
from fx_trace.meaning import COLUMNS, IS_ROW_OF, TABLE_OF_EVENT, E
from fx_trace.read.chunk_maker import ChunkMaker
from fx_trace.read.chunks import Chunk
from fx_trace.read.threads import TaskCollector, Tasks
from fxframework.io.limits import Limits
from fxframework.io.source import Source
from fxframework.io.words import U64_MAX
from fxframework.kernels.arrays import I32, I64, U8
from fxframework.model.clock import NS_MAX, NS_MIN
from fxframework.model.schema import SCOPES
from fxframework.model.strings import StringPool
from fxframework.wire.capture import Tasks as ThreadNumbers
from fxframework.wire.expressions import wrapped

OBJECT_TYPES: Final = {"thread_name": ObjectType.THREAD, "process_name": ObjectType.PROCESS}
"""By name of metadata, what it names: objects, as traces have them."""
SCOPE_OF_LETTER: Final = {name[0]: number for number, name in SCOPES.items()}
SPREAD: Final = 0x9E3779B97F4A7C15
"""Sets ids of different contexts apart."""


class ChromeRows(ChunkMaker):
    """Reads the events of a file into raw rows."""

    def __init__(self, source: Source, limits: Limits, strings: StringPool, report: Report) -> None:
        super().__init__()
        self.source = source
        self.strings = strings
        strings.intern(b"")  # code 0 is that of no name, for ``Match``
        self.records = 0
        self.kinds = np.zeros(len(KINDS), np.int64)
        """Records of each kind so far."""
        self.bound_to_next = [np.zeros(0, np.int64)]
        """Rows of `flows` whose slice is the next one of their thread."""
        self._codes = Codes(strings, limits.max_string, report)
        self._ids = Ids()
        """Of processes and threads."""
        self._threads = ThreadNumbers()
        self._report = report
        self._scanner = Scanner(source.data.data, limits.max_record, report)
        self._contexts: tuple[dict[Any, int], dict[Any, int]] = {}, {}
        """Numbers of the contexts of the ids of operations, and of flows."""
        self._left_out: set[str] = set()
        """Phases of events that are in no table."""

    @property
    def pids(self) -> I64:
        """The process of each thread so far."""
        return np.array(self._threads.pids, np.uint64).view(np.int64)

    def known_tasks(self, collector: TaskCollector) -> Tasks:
        """Return the threads and processes that events and metadata name."""
        # Objects name threads by their numbers: a tid may be that of many processes.
        tasks = collector.settle(
            {
                "pid": self.pids,
                "tid": np.arange(self.pids.size),
                "offset": np.array(self._threads.offsets, np.int64),
                "gone": np.zeros(self.pids.size, np.int64),
            }
        )
        tids = np.array(self._threads.tids, np.uint64)
        texts = self._ids.texts()
        for names, ids in ((tasks.names, tids), (tasks.process_names, tasks.processes)):
            for place in np.flatnonzero(names < 0).tolist():
                names[place] = self._codes[texts.get(int(ids[place]))]
        return attrs.evolve(tasks, tids=tids)

    # --- Events ----------------------------------------------------------------------------------

    def chunks(self) -> Iterator[Chunk]:
        """Yield the rows of each block that has events; a file has one chunk at least."""
        for block in self._scanner.blocks():
            self.kinds += np.bincount(block.kinds, minlength=len(KINDS))
            self.records += block.kinds.size
            if block.kinds.min() <= OTHER_EVENT:
                yield self._chunk_of(block)
            self.source.passed(int(block.starts[0]), block.stop)
        yield self.take_chunk(dict(self.rows), self.source.size)

    def _chunk_of(self, block: Block) -> Chunk:
        first = dict(self.rows)
        self._codes.offset = int(block.starts[0])
        kinds = block.kinds
        threads = self._threads_of(block)
        for index in np.flatnonzero(kinds == METADATA).tolist():
            self._take_names(block, index, int(threads[index]))
        for index in np.flatnonzero(kinds == OTHER_EVENT).tolist():
            phase = shown(block.events[index].get("ph"))
            if phase not in self._left_out:
                self._left_out.add(phase)
                self._report(rules.LEFT_OUT, int(block.starts[index]), value=phase)
        timed = np.flatnonzero(kinds < METADATA)
        ts, has_time = times("ts", block, timed, self._report)
        timed = timed[has_time]
        if timed.size:
            self._put(block, timed, kinds[timed], threads[timed], ts[has_time])
        return self.take_chunk(first, block.stop)

    def _threads_of(self, block: Block) -> I32:
        """Return the threads of events with a time, and of those that name one; 0 of others."""
        is_name = np.array([event.get("name") == "thread_name" for event in block.events])
        kinds = block.kinds
        places = np.flatnonzero((kinds < METADATA) | ((kinds == METADATA) & is_name))
        events = [block.events[place] for place in places.tolist()]
        pids = self._ids.of([event.get("pid") for event in events], np.uint64)
        tids = self._ids.of([event.get("tid", event.get("pid")) for event in events], np.uint64)
        threads = np.zeros(kinds.size, np.int32)
        threads[places] = self._threads.of(pids, tids, block.starts[places])
        return threads

    def _take_names(self, block: Block, place: int, thread: int) -> None:
        """Take what metadata calls its thread or its process, as an object of traces."""
        event = block.events[place]
        args = event.get("args")
        name = args.get("name") if isinstance(args, dict) else None
        object_type = OBJECT_TYPES.get(plain(event.get("name")))
        if object_type is None or not isinstance(name, str):
            return
        is_process = object_type == ObjectType.PROCESS
        id = wrapped(number_of(event.get("pid"))) if is_process else thread
        row = 0, object_type, self._codes[name], block.starts[place], id, 0
        cells = zip(COLUMNS["objects"], row, strict=True)
        self.parts["objects"].append({column: np.array([value]) for column, value in cells})

    def _put(self, block: Block, places: I64, types: U8, threads: I32, ts: I64) -> None:
        """Put the rows of events with a time, which are at some places of a block."""
        words = np.zeros(ts.size, np.int64)
        for index in np.flatnonzero((types <= E.COUNTER) | (types >= E.ASYNC_BEGIN)).tolist():
            words[index] = wrapped(self._word(block.events[places[index]], int(types[index])))
        self.parts["events"].append(
            {
                "kind": types,
                "thread": threads,
                "category": self._codes.of(block.column("cat", places), np.int32),
                "name": self._codes.of(block.column("name", places), np.int32),
                "offset": block.starts[places],
                "ticks": ts,
                "word": words,
                "time": ts,
                "finish": self._ends(block, places, types, ts),
            }
        )
        # A flow ends at the slice around the point with "bp": "e", else at the next one.
        is_flow = IS_ROW_OF["flows"].take(types)
        ends_behind = [binding != "e" for binding in block.column("bp", places[is_flow])]
        is_next = (types[is_flow] == E.FLOW_END) & np.array(ends_behind, np.bool_)
        self.bound_to_next.append(self.rows["flows"] + np.flatnonzero(is_next))
        self._put_args_of(block, places, types)
        events = 16 * RecordType.EVENT
        self.kinds_seen[events : events + 16] += np.bincount(types, minlength=16)
        self.count_rows("events", self.parts["events"][-1])

    def _ends(self, block: Block, places: I64, types: U8, ts: I64) -> I64:
        """Return when events end: when they begin, but for complete ones with a valid length."""
        complete = np.flatnonzero(types == E.DURATION_COMPLETE)
        lengths, _ = times("dur", block, places[complete], self._report)
        starts = ts[complete]
        # Of sums that do not fit, the first or the last time there is.
        lengths = np.clip(lengths, NS_MIN - np.minimum(starts, 0), NS_MAX - np.maximum(starts, 0))
        finish = ts.copy()
        finish[complete] += lengths
        return finish

    def _word(self, event: Event, kind: int) -> int:
        """Return the scope of an instant, else the number of an id.

        The id of an operation or a flow is unique within its context: category, scope, and process
        if the id is local. In the first context, the number is the id itself.
        """
        if kind == E.INSTANT:
            return SCOPE_OF_LETTER.get(plain(event.get("s")), 0)
        ids = event.get("id2")
        if "id" in event or not isinstance(ids, dict):
            ids = {"global": event.get("id")}
        pid = None if "global" in ids else event.get("pid")
        number = number_of(ids.get("global", ids.get("local")))
        if kind == E.COUNTER:
            return number
        contexts = self._contexts[kind >= E.FLOW_BEGIN]
        context = tuple(map(plain, (event.get("cat"), event.get("scope"), pid)))
        return (number + contexts.setdefault(context, len(contexts)) * SPREAD) & U64_MAX

    def _put_args_of(self, block: Block, places: I64, types: U8) -> None:
        """Put the arguments of events, which are the last that were put."""
        owners: list[int] = []
        names: list[str] = []
        values: list[Any] = []
        for row, args in enumerate(block.column("args", places)):
            if args:
                named_args = args if isinstance(args, dict) else {"args": args}
                owners += [row] * len(named_args)
                names += named_args
                values += named_args.values()
        if not owners:
            return
        rows = np.array(owners, np.int64)
        arg_types, numbers = zip(*map(self._typed, values), strict=True)
        self.put_args(
            {
                "table": TABLE_OF_EVENT[types][rows],
                "type": np.array(arg_types, np.uint8),
                "name": self._codes.of(names, np.int32),
                "parent": self.event_rows(types)[rows],
                "offset": block.starts[places][rows],
                "value": np.array(numbers, np.int64),
                "row": rows,
            }
        )

    def _typed(self, value: Any) -> tuple[int, int]:
        """Return the type of an argument, and its integer, code, or the bits of its double."""
        if value is None:
            return ArgType.NULL, 0
        if isinstance(value, bool):  # before integers, which booleans are too
            return ArgType.BOOL, int(value)
        if isinstance(value, float):
            return ArgType.DOUBLE, int(np.float64(value).view(np.int64))
        if isinstance(value, int) and NS_MIN <= value <= U64_MAX:
            return ArgType.UINT64 if value > NS_MAX else ArgType.INT64, wrapped(value)
        return ArgType.STRING, self._codes[plain(value)]
