"""Reader: trace bytes to a Capture. Records come from ``records.py``, tables from the kernels.

The decode cycle: ``scan`` frames, resolves and extracts raw columns; ``match`` orders and nests;
clocks normalise; tables are emitted, each column when it is first asked for. One pass over the
file (``_Pass``) finds what needs the whole of it: how slices nest, which threads there are, and
the findings. Whole tables keep that pass's columns; batches scan again and join its results.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_trace import layout
from fx_trace.read import scan as k
from fx_trace.read.columns import Chunk, Scanner, grown_map, new_map
from fx_trace.rules import RULES
from fxframework.errors import LimitError
from fxframework.io import arena
from fxframework.io.source import Source
from fxframework.io.words import U64_MAX
from fxframework.kernels.buffers import view
from fxframework.kernels.columns import split_codes, split_numbers
from fxframework.model.capture import Capture, OpenRequest, Record, Summary
from fxframework.model.clock import NS_MAX, NS_MIN, NS_PER_SECOND
from fxframework.model.schema import NAME, STANDARD_TABLES, Column, TableSchema
from fxframework.model.strings import TextColumn
from fxframework.model.table import ColumnData, Table

if TYPE_CHECKING:
    from fx_trace.read.decoder import RecordDecoder

__all__ = ["TraceCapture", "open_trace"]

I64 = NDArray[np.int64]
CHUNK_EVENTS = 1 << 14
IN_MEMORY = 256 << 20
"""Bytes of one column of matching results that stay in memory; a longer one goes to a file."""
WHOLE = 1 << 30
"""Files up to this many bytes are summed up from whole columns, larger ones as a stream."""
LISTED = 1000
"""Providers and clocks that a summary lists."""
BINS = 64
_STACKED = ("row", "start", "offset", "end")

OBJECTS = TableSchema(
    "trace_objects",
    "an annotation of a kernel object or of a userspace object",
    (
        Column("kind", "u1", "which kind of object", values={0: "kernel", 1: "userspace"}),
        Column("type", "u1", "ZX_OBJ_TYPE of a kernel object, else 0"),
        Column("id", "u8", "koid of a kernel object, pointer of a userspace one"),
        Column("pid", "u8", "koid of the process it belongs to; 0 not given"),
        NAME,
    ),
)
ANNOTATION = Column("trace_annotation", "code", "name of the object that a pointer or koid means")
_STANDARD = ("processes", "threads", "slices", "instants", "counters", "flows", "sched", "logs")

_IS_SLICE = np.zeros(256, np.bool_)
_IS_SLICE[[2, 4, 5]] = True
_SLICE_KIND = np.zeros(256, np.uint8)
_SLICE_KIND[[2, 4, 5]] = (0, 1, 2)
_IS_INSTANT = np.zeros(256, np.bool_)
_IS_INSTANT[[0, 6]] = True
_IS_FLOW = np.zeros(256, np.bool_)
_IS_FLOW[[8, 9, 10]] = True

_MESSAGES = {
    1: "a record has size zero",
    2: "a record of {value} words runs past the end of the file",
    3: "a record of {value} words is shorter than its type allows",
    6: "{value} zero words between records",
    7: "record type {value} is not defined by the format",
    8: "a record of {value} bytes is over the limit max_record",
    101: "reserved bits are set in 0x{word:016x}",
    103: "{value} words beyond what the record needs",
    104: "string index {value} was never registered",
    105: "thread index {value} was never registered",
    106: "index {value} resolves only in the default provider",
    110: "argument type {value} is not defined by the format",
    111: "kind {value} of this record type is not defined by the format",
    114: "an argument has {value} words beyond its value",
    115: "scope {value} is none that we know",
    116: "a string of {value} bytes is over the limit max_string",
    205: "provider {value} is introduced again",
    206: "provider {value} was never introduced",
    207: "the buffer of provider {value} was full: records may have been dropped",
    209: "the provider's rate changes to {value} ticks per second",
}


def open_trace(source: Source, request: OpenRequest) -> TraceCapture:
    """Open a trace archive. Nothing is read yet but its first word."""
    return TraceCapture(source, request)


class TraceCapture(Capture):
    """A trace archive (document 002, `Archive`)."""

    format = "trace"
    timed_records = True
    support_records = frozenset({"string", "thread"})
    magic_first: ClassVar[bool] = True
    """Whether the bytes begin with the magic number record."""
    schemas: ClassVar[Mapping[str, TableSchema]] = {
        **{name: STANDARD_TABLES[name] for name in _STANDARD},
        "args": STANDARD_TABLES["args"].extended(ANNOTATION),
        "blobs": STANDARD_TABLES["blobs"],
        "trace_objects": OBJECTS,
    }

    def __init__(self, source: Source, request: OpenRequest) -> None:
        diagnostics = request.diagnostics(RULES, source)
        super().__init__(source, request, diagnostics)
        if not source.size:
            diagnostics.add("FXF0102", offset=0)
        self.big_endian = source.read(0, 8) == layout.MAGIC_BYTES_BIG_ENDIAN
        self._streams = source.words().view(np.int64)
        self._words = self._streams.byteswap() if self.big_endian else self._streams
        self._scanner: Scanner | None = None
        self._passed: _Pass | None = None
        self._tables: dict[str, Table] = {}

    @property
    def writer_options(self) -> Mapping[str, Any]:
        """What the writer has to know to write these records as the same bytes."""
        return {"big_endian": True} if self.big_endian else {}

    @property
    def utc_offset_ns(self) -> int | None:
        """As the first clock that says it has it (document 002, `Initialization`)."""
        clocks = self._pass(whole=self._fits_memory).scanner.clocks()
        return next((c.base_wall_ns for c in clocks if c.base_wall_ns is not None), None)

    @property
    def clocks(self) -> Mapping[str, int]:
        """The boot clock, which ticks count, and the time of day where a record gives it."""
        base, rate = self.tick_rate
        return {**super().clocks, "boot": base * NS_PER_SECOND // rate}

    @property
    def tick_rate(self) -> tuple[int, int]:
        """Those of the first clock."""
        first = self._pass(whole=self._fits_memory).scanner.clocks()[0]
        return first.base_ticks, first.ticks_per_second

    def places(self, offsets: I64) -> I64:
        """For offsets of records, numbers that are in the order of reading, same shape."""
        return offsets

    # --- Records ---------------------------------------------------------------------------

    def records(self) -> Iterator[Record]:
        """Every record in file order, as ``fx_trace.read.records`` decodes them one at a time."""
        return self._decoder().records(self.source.data)

    def records_json(self) -> Iterator[bytes]:
        """The same as JSON lines, in chunks; for plain events many times as fast."""
        from fx_trace.read.jsonlines import record_lines

        return record_lines(self._decoder(), self.source.data)

    def _decoder(self) -> RecordDecoder:
        from fx_trace.read.decoder import RecordDecoder

        # Findings are reported once: by the tables' pass where it has run, else from here.
        fresh = not self.diagnostics.has_any(RULES)
        return RecordDecoder(
            big_endian=self.big_endian,
            diagnostics=self.diagnostics if fresh else None,
            limits=self.request.limits,
        )

    # --- The pass over the whole file --------------------------------------------------------

    def scan(self) -> None:
        """Read all of it, so that ``diagnostics`` is complete."""
        self._pass(whole=self._fits_memory)

    @property
    def _framed_bytes(self) -> int:
        """Bytes in which records are looked for."""
        return self.source.size

    @property
    def _fits_memory(self) -> bool:
        """Whether whole columns are made where nobody asked for them."""
        bound = self.request.limits.max_memory or 4 * WHOLE
        return 4 * self.source.size <= bound

    def _pass(self, *, whole: bool) -> _Pass:
        passed = self._passed
        if passed is not None and (passed.chunk is not None or not whole):
            return passed
        if whole:
            self._check_memory()
        self._passed = self._run_pass(whole=whole)
        if passed is None:
            # What `records()` found so far is found again.
            self.diagnostics.forget(RULES)
            self._passed.report(self)
        return self._passed

    def _check_memory(self) -> None:
        bound = self.request.limits.max_memory
        if bound and 3 * self.source.size > bound:
            raise LimitError(
                f"whole tables of {self.source.size} bytes of trace may take "
                f"{3 * self.source.size} bytes, and max_memory is {bound}",
                path=self.name,
                remedy="take the table in batches, or raise it with -o max_memory=BYTES",
            )

    def scanner(self) -> Scanner:
        """A scanner at the beginning of the file, over the capture's string pool."""
        self._scanner = Scanner(
            self._words, self._streams, self.strings, self.request.limits, self._scanner
        )
        return self._scanner

    def _chunks(self, scanner: Scanner, *, whole: bool) -> Iterator[Chunk]:
        released = 0
        if whole:
            yield scanner.whole(self.source.release)
            return
        for chunk in scanner.chunks(CHUNK_EVENTS):
            yield chunk
            self.source.release(released, scanner.position)
            released = scanner.position

    def _run_pass(self, *, whole: bool) -> _Pass:
        """Scan and match as the records stand; where times step back, once more, sorted."""
        ordered = False
        while True:
            scanner = self.scanner()
            passed = _Pass(scanner, self.request.limits.max_depth or 1 << 30, ordered=ordered)
            if all(passed.add(chunk, keep=whole) for chunk in self._chunks(scanner, whole=whole)):
                passed.finish(self._framed_bytes)
                return passed
            ordered = True

    def raw(self) -> Raw:
        """What lies under the tables, for what writes a part of the capture."""
        passed = self._pass(whole=self._fits_memory)
        return Raw(passed, self._words, self._streams, self.big_endian, self._timed_chunks)

    def _timed_chunks(self) -> Iterator[tuple[Chunk, Times]]:
        scanner = self.scanner()
        for chunk in self._chunks(scanner, whole=False):
            yield chunk, Times(chunk, scanner)

    # --- Tables ------------------------------------------------------------------------------

    def _table(self, name: str) -> Table:
        table = self._tables.get(name)
        if table is None:
            people = name in ("processes", "threads")
            passed = self._pass(whole=not people or self._fits_memory)
            if name in ("processes", "threads"):
                table = getattr(passed, name)(self)
            else:
                assert passed.chunk is not None  # noqa: S101 (a whole pass keeps it)
                table = _TableMaker(self, passed, passed.chunk, passed.times).make(name)
            self._tables[name] = table
        return table

    def _batches(self, name: str, rows: int) -> Iterator[Table]:
        passed = self._pass(whole=False)
        if name in ("processes", "threads") or passed.chunk is not None:
            whole = self._table(name)
            for at in range(0, len(whole), rows):
                yield whole.select(slice(at, at + rows))
            return
        scanner = self.scanner()
        for chunk in self._chunks(scanner, whole=False):
            table = _TableMaker(self, passed, chunk, Times(chunk, scanner)).make(name)
            for at in range(0, len(table), rows):
                yield table.select(slice(at, at + rows))

    # --- Summary -----------------------------------------------------------------------------

    def summary(self) -> Summary:
        """Counts and times, from one pass over the whole capture."""
        passed = self._pass(whole=self._fits_memory)
        return passed.summary(self)


@attrs.frozen
class Raw:
    """A capture's words, the pass over all of them, and its raw columns."""

    passed: _Pass
    words: I64
    """Shape (words,), in the machine's byte order."""
    streams: I64
    """The same as they stand in the file."""
    big_endian: bool
    again: Callable[[], Iterator[tuple[Chunk, Times]]]
    """Reads the rows once more, where the pass did not keep them."""

    @property
    def bytes(self) -> NDArray[np.uint8]:
        """The file, of shape (bytes,)."""
        return self.streams.view(np.uint8)

    def chunks(self) -> Iterator[tuple[Chunk, Times]]:
        """All raw rows with their times; may be asked for again."""
        if self.passed.chunk is None:
            return self.again()
        return iter([(self.passed.chunk, self.passed.times)])


class Times:
    """A chunk's times in nanoseconds: each row by the clock that was in force there."""

    def __init__(self, chunk: Chunk, scanner: Scanner) -> None:
        self._chunk = chunk
        self._clocks = scanner.clocks()
        self._small = not int(scanner.state.scalars[k.LARGE_TICKS])
        self.events, self.lost = self._ns(chunk.events.ticks, 1)

    def may_be_lost(self) -> bool:
        """Whether a time of any row may be none that fits; it is where one of an event is."""
        if self.lost or not self._small:
            return True
        slowest = min(clock.ticks_per_second for clock in self._clocks)
        bound = NS_MAX * slowest // NS_PER_SECOND
        farthest = max(clock.base_ticks for clock in self._clocks)
        rows = (self._chunk.sched.ticks, self._chunk.logs.ticks)
        return any(ticks.size and max(int(ticks.max()), farthest) > bound for ticks in rows)

    def _ns(self, ticks: I64, field: int) -> tuple[I64, int]:
        unsigned = ticks.view(np.uint64)
        parts = self._parts(ticks.size, field)
        if len(parts) == 1 and self._small and self._clocks[parts[0][0]].is_identity:
            return ticks, 0
        if len(parts) == 1:
            return self._clocks[parts[0][0]].to_ns(unsigned)
        out = np.empty(ticks.size, np.int64)
        lost = 0
        for clock, start, stop in parts:
            out[start:stop], missed = self._clocks[clock].to_ns(unsigned[start:stop])
            lost += missed
        return out, lost

    def _parts(self, rows: int, field: int) -> list[tuple[int, int, int]]:
        """(clock, first row, row after the last), empty ones left out; at least one."""
        segments = self._chunk.segments
        clocks = [0, *segments[:, 0].tolist()]
        starts = [0, *segments[:, field].tolist()]
        stops = [*starts[1:], rows]
        parts = [part for part in zip(clocks, starts, stops, strict=True) if part[1] < part[2]]
        return parts or [(0, 0, rows)]

    def by_clock(self, *columns: list[int]) -> Iterator[NDArray[np.uint64]]:
        """For each column, given by clock, its value for each event, shape (events,)."""
        for column in columns:
            rows = self._chunk.events.ticks.size
            parts = self._parts(rows, 1)
            if len(parts) == 1:
                yield np.broadcast_to(np.uint64(column[parts[0][0]]), rows)
                continue
            out = np.empty(rows, np.uint64)
            for clock, start, stop in parts:
                out[start:stop] = column[clock]
            yield out

    def finish(self) -> I64:
        """Ends of complete events, shape (events,); other rows mean nothing."""
        return self._ns(self._chunk.events.word, 1)[0]

    def sched(self) -> I64:
        """Times of scheduling rows."""
        return self._ns(self._chunk.sched.ticks, 2)[0]

    def logs(self) -> I64:
        """Times of log rows."""
        return self._ns(self._chunk.logs.ticks, 3)[0]


class _Pass:
    """What one pass over the whole file finds."""

    def __init__(self, scanner: Scanner, max_depth: int, *, ordered: bool) -> None:
        self.scanner = scanner
        self.ordered = ordered
        """Whether events are sorted by time before they are matched."""
        self.chunk: Chunk | None = None
        """All raw columns, where the pass keeps them."""
        self.spans = k.Spans(
            *(np.empty(0, np.int32 if field == "depth" else np.int64) for field in k.Spans._fields)
        )
        self._first_ns: int | None = None
        self._last_ns: int | None = None
        self._max_depth = max_depth
        self._match = k.match.for_size(scanner.nbytes)
        self._outside: list[tuple[int, int]] = []
        self._out_of_order: int | None = None
        self._objects: list[tuple[int, int, int, int, int]] = []
        self._tids: dict[int, int] = {}
        self._kept: list[dict[str, Any]] = []
        self._empty_stacks()

    def _empty_stacks(self) -> None:
        empty = np.zeros(0, np.int64)
        arrays: dict[str, Any] = dict.fromkeys(k.Stacks._fields, empty)
        scalars = np.zeros(k.MATCH_SCALARS, np.int64)
        scalars[k.M_LAST_ASYNC] = NS_MIN
        self._stacks = k.Stacks(
            **{**arrays, "operations": new_map(16), "open": new_map(16), "scalars": scalars}
        )

    # --- Adding chunks -------------------------------------------------------------------

    def add(self, chunk: Chunk, *, keep: bool) -> bool:
        """Take in a chunk; False where all of them must be taken again in order of time."""
        times = Times(chunk, self.scanner)
        if keep:
            self.chunk, self.times = chunk, times
        self._people(chunk)
        if not keep:
            self._range(chunk, times)
        finish = times.finish() if self.seen(layout.EventType.DURATION_COMPLETE) else times.events
        self._make_room(chunk)
        if not self.ordered:
            notes = self.scanner.state.notes
            counts = notes.counts.copy()
            none = np.empty(0, np.int64)
            if self._run(chunk.events, times.events, finish, none, none) < 0:
                return True
            if not keep:
                return False
            # All there is lies before us: forget what matching found, and sort.
            notes.counts[:] = counts
            self._empty_stacks()
            self._make_room(chunk)
            self.ordered = True
        self._keep(chunk, times.events, finish)
        return True

    def seen(self, *kinds: int) -> int:
        """Events of these types so far."""
        return sum(int(self.scanner.state.kinds[16 * layout.RecordType.EVENT + x]) for x in kinds)

    def _run(self, events: k.Events, time: I64, finish: I64, order: I64, refs: I64) -> int:
        pids = self.scanner.threads.pid
        result: int = self._match(
            int(order.size or time.size), events, time, finish, order, refs, pids,
            self._max_depth, self.spans, self._stacks, self.scanner.state.notes,
        )  # fmt: skip
        return result

    def _make_room(self, chunk: Chunk) -> None:
        scalars = self.scanner.state.scalars
        sizes = {
            "dur": int(scalars[k.T_SLICES]),
            "parent": int(scalars[k.T_SLICES]),
            "depth": int(scalars[k.T_SLICES]),
            "ends": int(scalars[k.T_ENDS]),
            "flows": int(scalars[k.T_FLOWS]),
        }
        self.spans = self.spans._replace(
            **{name: _spilled(getattr(self.spans, name), size) for name, size in sizes.items()}
        )
        threads = int(scalars[k.N_THREADS])
        stacks = self._stacks
        events = chunk.events.kind.size
        operations = min(events, self.seen(5, 7))
        nodes = int(stacks.scalars[k.M_NODES]) + operations
        # Moving a full stack takes twice its room; all of them together less than this.
        used = int(stacks.scalars[k.M_USED])
        room = used + 3 * int(stacks.open_slices.sum()) + 4 * events + 16 * threads
        roomy = {name: _roomy(getattr(stacks, name), used, room) for name in _STACKED}
        self._stacks = stacks._replace(
            base=_filled(stacks.base, threads, 0),
            room=_filled(stacks.room, threads, 0),
            open_slices=_filled(stacks.open_slices, threads, 0),
            last=_filled(stacks.last, threads, NS_MIN),
            last_end=_filled(stacks.last_end, threads, NS_MAX),
            open=grown_map(stacks.open, operations, self.scanner.nbytes),
            operations=grown_map(stacks.operations, operations, self.scanner.nbytes),
            async_row=_filled(stacks.async_row, nodes, 0),
            async_start=_filled(stacks.async_start, nodes, 0),
            async_offset=_filled(stacks.async_offset, nodes, 0),
            async_below=_filled(stacks.async_below, nodes, 0),
            **roomy,
        )

    def _keep(self, chunk: Chunk, time: I64, finish: I64) -> None:
        """Hold what matching needs of a chunk until all of it can be sorted."""
        events = chunk.events
        kind = events.kind
        picked = np.flatnonzero((kind >= 2) & (kind != 6))
        refs = np.zeros(kind.size, np.int64)
        for rows, base in (
            (_IS_SLICE[kind], chunk.first["slices"]),
            ((kind == 3) | (kind == 7), chunk.first["ends"]),
            (_IS_FLOW[kind], chunk.first["flows"]),
        ):
            refs[rows] = base + np.arange(int(np.count_nonzero(rows)))
        self._kept.append(
            {
                "events": k.Events(*(column[picked] for column in events)),
                "time": time[picked],
                "finish": finish[picked],
                "refs": refs[picked],
            }
        )

    def _match_kept(self) -> None:
        if not self._kept:
            return
        events = k.Events(
            *(
                np.concatenate(parts)
                for parts in zip(*(p["events"] for p in self._kept), strict=True)
            )
        )
        time, finish, refs = (
            np.concatenate([part[name] for part in self._kept])
            for name in ("time", "finish", "refs")
        )
        self._kept.clear()
        order = np.argsort(time, kind="stable")
        backwards = np.flatnonzero(np.diff(order) < 0)
        self._out_of_order = int(events.offset[order[backwards[0]]]) if backwards.size else None
        if (events.kind == 4).any():
            k.longest_first.for_size(self.scanner.nbytes)(order, order.size, events, time, finish)
        self._run(events, time, finish, order, refs)

    # --- IdAllocator: who the capture mentions ---------------------------------------------------

    def _people(self, chunk: Chunk) -> None:
        objects = chunk.objects
        self._objects.extend(
            zip(
                objects.type[objects.kind == 0].tolist(),
                objects.value[objects.kind == 0].view(np.uint64).tolist(),
                objects.pid[objects.kind == 0].view(np.uint64).tolist(),
                objects.name[objects.kind == 0].tolist(),
                objects.offset[objects.kind == 0].tolist(),
                strict=True,
            )
        )
        sched = chunk.sched
        if sched.kind.size:
            newer = sched.kind != 0
            for column, rows in ((sched.prev, sched.kind == 1), (sched.next, newer)):
                tids, places = np.unique(column[rows].view(np.uint64), return_index=True)
                offsets = sched.offset[rows][places].tolist()
                for tid, offset in zip(tids.tolist(), offsets, strict=True):
                    self._tids[tid] = min(offset, self._tids.get(tid, offset))

    def _range(self, chunk: Chunk, times: Times) -> None:
        for ns, offsets in (
            (times.events, chunk.events.offset),
            (times.sched(), chunk.sched.offset),
            (times.logs(), chunk.logs.offset),
        ):
            if not ns.size:
                continue
            low, high = int(ns.min()), int(ns.max())
            self._first_ns = low if self._first_ns is None else min(self._first_ns, low)
            self._last_ns = high if self._last_ns is None else max(self._last_ns, high)
            if high == NS_MAX or low == NS_MIN:
                outside = offsets[(ns == NS_MAX) | (ns == NS_MIN)]
                self._outside.append((int(outside[0]), int(outside.size)))

    def range(self) -> tuple[int | None, int | None]:
        """The first and the last time of the capture, in ns; None where it has none."""
        if self.chunk is not None and self._first_ns is None:
            outside, self._outside = self._outside, []
            self._range(self.chunk, self.times)
            self._outside = outside
        return self._first_ns, self._last_ns

    # --- The end ---------------------------------------------------------------------------

    def finish(self, size: int) -> None:
        """Settle what needs the whole file: sorted matching, threads, names."""
        self._match_kept()
        state = self.scanner.state
        if self.chunk is not None and self.times.may_be_lost():
            self._range(self.chunk, self.times)
        self.tail = size % 8
        if self.tail and not int(state.scalars[k.CUT]):
            k.note.plain(state.notes, 5, size - self.tail, self.tail)
            state.kinds[k.KIND_DAMAGED] += 1
            state.scalars[k.RECORD] += 1
        known = self.scanner.threads
        count = int(state.scalars[k.N_THREADS])
        pids = known.pid[:count].view(np.uint64).tolist()
        tids = known.tid[:count].view(np.uint64).tolist()
        gone = known.gone[:count].tolist()
        offsets = known.offset[:count].tolist()
        names: dict[int, int] = {}
        self.process_names: dict[int, int] = {}
        homes: dict[int, int] = {}
        mentioned: dict[int, int] = dict(self._tids)
        process_at: dict[int, int] = {}
        for kind, koid, pid, name, offset in self._objects:
            if kind == layout.ObjectType.PROCESS:
                self.process_names[koid] = name
                process_at.setdefault(koid, offset)
            elif kind == layout.ObjectType.THREAD:
                names[koid] = name
                if pid:
                    homes[koid] = pid
                mentioned[koid] = min(offset, mentioned.get(koid, offset))
        self.thread_of_tid: dict[int, int] = {}
        for thread, (tid, index) in enumerate(zip(tids, gone, strict=True)):
            if not index:
                self.thread_of_tid.setdefault(tid, thread)
        for tid, offset in sorted(mentioned.items(), key=lambda item: (item[1], item[0])):
            if tid not in self.thread_of_tid:
                self.thread_of_tid[tid] = len(tids)
                pids.append(homes.get(tid, 0))
                tids.append(tid)
                gone.append(0)
                offsets.append(offset)
        self.pids = np.array(pids, np.uint64)
        self.tids = np.array(tids, np.uint64)
        self.thread_offsets = np.array(offsets, np.int64)
        self.gone = gone
        self.names = np.array(
            [-1 if index else names.get(tid, -1) for tid, index in zip(tids, gone, strict=True)],
            np.int32,
        )
        for pid, index, offset in zip(pids, gone, offsets, strict=True):
            if not index:
                process_at[pid] = min(offset, process_at.get(pid, offset))
        self._processes = sorted(process_at.items(), key=lambda item: (item[1], item[0]))

    def thread_ids(self, tids: I64, rows: NDArray[np.bool_]) -> NDArray[np.int32]:
        """Thread ids of a column of tids, where ``rows`` is set; elsewhere -1."""
        out = np.full(tids.size, -1, np.int32)
        distinct, inverse = np.unique(tids[rows].view(np.uint64), return_inverse=True)
        ids = np.array([self.thread_of_tid[tid] for tid in distinct.tolist()], np.int32)
        if distinct.size:
            out[rows] = ids[inverse]
        return out

    def report(self, capture: TraceCapture) -> None:
        """Turn what the kernels noted into diagnostics of the capture."""
        state = self.scanner.state
        diagnostics = capture.diagnostics
        begins = not capture.source.size or capture.source.read(0, 8) in layout.MAGICS
        if capture.magic_first and not begins:
            diagnostics.add("FXT0201", offset=0, record=0)
        if self._out_of_order is not None:
            diagnostics.add("FXT0304", offset=self._out_of_order)
        for offset, times in self._outside:
            diagnostics.add("FXT0208", offset=offset, times=times)
        listed = state.notes.findings[: 4 * int(state.notes.counts[0])].reshape(-1, 4).tolist()
        shown: dict[int, int] = {}
        pool = self.scanner.pool
        for number, offset, record, value in listed:
            shown[number] = shown.get(number, 0) + 1
            message = _MESSAGES.get(number, "").format(value=value, word=value & U64_MAX)
            if number in (107, 108) and value:
                message = f"a string is not UTF-8: {pool.bytes_of(value)!r}"
            # Matching has no record numbers, and 4 is named by its record.
            about = record if number < 300 or number == 307 else None
            diagnostics.add(f"FXT{number:04}", message, offset=offset, record=about)
        for number, total in enumerate(state.notes.counts[2:].tolist()):
            if total > shown.get(number, 0):
                diagnostics.add(f"FXT{number:04}", times=total - shown.get(number, 0))
        self._report_open(capture)

    def _report_open(self, capture: TraceCapture) -> None:
        """Slices that were never closed: those that are still on the stacks."""
        if not self.seen(layout.EventType.DURATION_BEGIN, layout.EventType.ASYNC_BEGIN):
            return
        stacks = self._stacks
        depth = stacks.open_slices
        starts = np.cumsum(depth) - depth
        places = np.arange(int(depth.sum())) + np.repeat(stacks.base - starts, depth)
        places = places[stacks.end[places] == k.LATEST]
        offsets = [stacks.offset[places]]
        nodes = stacks.open.value[stacks.open.value > 0]
        while nodes.size:  # each round one level further out
            offsets.append(stacks.async_offset[nodes - 1])
            nodes = stacks.async_below[nodes - 1]
            nodes = nodes[nodes > 0]
        found = np.sort(np.concatenate(offsets))
        limit = capture.request.limits.max_findings or found.size
        for offset in found[:limit].tolist():
            capture.diagnostics.add("FXT0303", offset=offset)
        if found.size > limit:
            capture.diagnostics.add("FXT0303", times=int(found.size) - limit)

    # --- Tables that only the whole pass can give -------------------------------------------------

    def threads(self, capture: TraceCapture) -> Table:
        """The table of threads."""
        names = self.names.copy()
        for thread, index in enumerate(self.gone):
            if index:
                names[thread] = capture.strings.intern(f"<thr#{index - 1}>".encode())
        count = self.pids.size
        columns: dict[str, ColumnData | Callable[[], ColumnData]] = {
            "row": np.arange(count, dtype=np.int64),
            "offset": self.thread_offsets,
            "id": np.arange(count, dtype=np.int32),
            "pid": self.pids,
            "tid": self.tids,
            "name": names,
        }
        return Table(capture.schemas["threads"], count, columns, capture.strings)

    def processes(self, capture: TraceCapture) -> Table:
        """The table of processes."""
        count = len(self._processes)
        pids = [pid for pid, _ in self._processes]
        columns: dict[str, ColumnData | Callable[[], ColumnData]] = {
            "row": np.arange(count, dtype=np.int64),
            "offset": np.array([offset for _, offset in self._processes], np.int64),
            "pid": np.array(pids, np.uint64),
            "name": np.array([self.process_names.get(pid, -1) for pid in pids], np.int32),
        }
        return Table(capture.schemas["processes"], count, columns, capture.strings)

    # --- Summary ---------------------------------------------------------------------------------

    def summary(self, capture: TraceCapture) -> Summary:
        """What `fxf info` shows."""
        state = self.scanner.state
        scalars = state.scalars
        texts = capture.strings.texts()
        known = self.scanner.clocks()
        count = int(scalars[k.N_PROVIDERS])
        rows = state.providers.reshape(-1, k.PROVIDER_FIELDS)[: min(count, LISTED)]
        providers = [
            {
                "id": number,
                "name": texts[name],
                "introduced": bool(introduced),
                "ticks_per_second": known[clock].ticks_per_second,
                "buffer_full": full,
            }
            for number, name, _, clock, introduced, initialized, full, _ in rows.tolist()
            if number or introduced or initialized
        ]
        used = {provider["ticks_per_second"] for provider in providers}
        clocks = [
            {
                "ticks_per_second": clock.ticks_per_second,
                "base_ticks": clock.base_ticks,
                "base_wall_ns": clock.base_wall_ns,
            }
            for clock in known[:LISTED]
        ]
        facts = {
            "endianness": "big" if capture.big_endian else "little",
            "providers": providers,
            **({"providers_in_all": count} if count > LISTED else {}),
            "clocks": [c for c in clocks if c["ticks_per_second"] in used] or clocks[:1],
        }
        return Summary(
            rows=self.row_counts(),
            records=int(scalars[k.RECORD]),
            kinds=self.kinds(),
            start_ns=self.range()[0],
            end_ns=self.range()[1],
            facts=facts,
            timeline=self._timeline(capture),
        )

    def row_counts(self) -> dict[str, int]:
        """Rows of each table."""
        scalars = self.scanner.state.scalars
        return {
            "processes": len(self._processes),
            "threads": int(self.pids.size),
            "slices": int(scalars[k.T_SLICES]),
            "instants": int(scalars[k.T_INSTANTS]),
            "counters": int(scalars[k.T_COUNTERS]),
            "flows": int(scalars[k.T_FLOWS]),
            "sched": int(scalars[k.T_SCHED]),
            "logs": int(scalars[k.T_LOGS]),
            "args": int(scalars[k.T_ARGS]),
            "blobs": int(scalars[k.T_BLOBS]),
            "trace_objects": int(scalars[k.T_OBJECTS]),
        }

    def kinds(self) -> dict[str, int]:
        """Records of each kind, by the names of record JSON."""
        special = {k.KIND_PADDING: "padding", k.KIND_UNKNOWN: "unknown", k.KIND_DAMAGED: "damaged"}
        found: dict[str, int] = {}
        for number in np.flatnonzero(self.scanner.state.kinds).tolist():
            name = special.get(number) or _kind_name(number >> 4, number & 15)
            found[name] = found.get(name, 0) + int(self.scanner.state.kinds[number])
        return found

    def _timeline(self, capture: TraceCapture) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Events per stretch of time, for the busiest threads."""
        first, last = self.range()
        if self.chunk is None or first is None or last is None:
            return ()
        span = last - first + 1
        if not 0 < span < 1 << 53 or not self.times.events.size:
            return ()
        threads = self.chunk.events.thread
        counts = np.bincount(threads, minlength=1)
        busiest = [t for t in np.argsort(-counts, kind="stable")[:8].tolist() if counts[t]]
        if threads.size > 1 << 20:  # a sketch needs no more
            step = threads.size >> 19
            threads, times = threads[::step], self.times.events[::step]
        else:
            times = self.times.events
        bins = (times - first) // -(-span // BINS)
        table = capture.table("threads")
        names = table.texts("name")
        rows = []
        for thread in busiest:
            row = np.bincount(bins[threads == thread], minlength=BINS).tolist()
            label = names[thread] or f"{self.pids[thread]}/{self.tids[thread]}"
            rows.append((label, tuple(row[:BINS])))
        return tuple(rows)


_KIND_NAMES: dict[int, Mapping[int, str]] = {
    layout.RecordType.METADATA: layout.METADATA_NAMES,
    layout.RecordType.EVENT: layout.EVENT_NAMES,
    layout.RecordType.SCHEDULING: layout.SCHEDULING_NAMES,
    layout.RecordType.PROFILER: layout.PROFILER_NAMES,
}


def _kind_name(kind: int, subtype: int) -> str:
    name = layout.RecordType(kind).name.lower()
    subtypes = _KIND_NAMES.get(kind)
    return name if subtypes is None else f"{name} {subtypes.get(subtype, subtype)}"


class _TableMaker:
    """Makes tables of a chunk's raw columns and the pass's results, column by column."""

    def __init__(self, capture: TraceCapture, passed: _Pass, chunk: Chunk, times: Times) -> None:
        self.capture = capture
        self.passed = passed
        self.chunk = chunk
        self.times = times

    def make(self, name: str) -> Table:
        """The rows of a table that this chunk holds."""
        rows, columns = getattr(self, f"_{name.removeprefix('trace_')}")()
        first = self.chunk.first[name]
        columns["row"] = lambda: _counting(first, rows)
        return Table(self.capture.schemas[name], rows, columns, self.capture.strings)

    def _events_where(self, mask: NDArray[np.bool_], *kinds: int) -> _Rows:
        """The rows of events of these types, of which ``mask`` has the same by number."""
        kind = self.chunk.events.kind
        seen = self.passed.seen(*kinds)
        if not seen:
            return _Rows(np.zeros(0, np.int64))
        if seen == self.passed.seen(*range(11)):
            return _Rows(np.broadcast_to(np.True_, kind.size))
        return _Rows(mask[kind])

    def _common(self, picked: _Rows) -> dict[str, Any]:
        events = self.chunk.events
        return {
            "offset": lambda: picked(events.offset),
            "ts": lambda: picked(self.times.events),
            "ticks": lambda: picked(events.ticks).view(np.uint64),
            "thread": lambda: picked(events.thread),
            "category": lambda: picked(events.category),
            "name": lambda: picked(events.name),
        }

    def _slices(self) -> tuple[int, dict[str, Any]]:
        events, spans = self.chunk.events, self.passed.spans
        picked = self._events_where(_IS_SLICE, 2, 4, 5)
        first = self.chunk.first["slices"]
        mine = slice(first, first + picked.count)

        def ids() -> NDArray[np.uint64]:
            if not self.passed.seen(layout.EventType.ASYNC_BEGIN):
                return np.broadcast_to(np.uint64(0), picked.count)
            kind = picked(events.kind)
            return np.where(kind == 5, picked(events.word), 0).view(np.uint64)

        def kinds() -> NDArray[np.uint8]:
            for kind in (2, 4, 5):
                if self.passed.seen(kind) == self.passed.seen(2, 4, 5):
                    return np.broadcast_to(_SLICE_KIND[kind], picked.count)
            of_each: NDArray[np.uint8] = _SLICE_KIND[picked(events.kind)]
            return of_each

        return picked.count, {
            **self._common(picked),
            "dur": lambda: spans.dur[mine],
            "depth": lambda: spans.depth[mine],
            "parent": lambda: spans.parent[mine],
            "kind": kinds,
            "id": ids,
        }

    def _instants(self) -> tuple[int, dict[str, Any]]:
        events = self.chunk.events
        picked = self._events_where(_IS_INSTANT, 0, 6)
        kind = picked(events.kind)
        word = picked(events.word)
        return picked.count, {
            **self._common(picked),
            "scope": lambda: np.where(kind == 0, word, 255).astype(np.uint8),
            "id": lambda: np.where(kind == 0, 0, word).view(np.uint64),
        }

    def _flows(self) -> tuple[int, dict[str, Any]]:
        events = self.chunk.events
        picked = self._events_where(_IS_FLOW, 8, 9, 10)
        first = self.chunk.first["flows"]
        return picked.count, {
            **self._common(picked),
            "id": lambda: picked(events.word).view(np.uint64),
            "phase": lambda: (picked(events.kind) - 8).astype(np.uint8),
            "slice": lambda: self.passed.spans.flows[first : first + picked.count],
        }

    def _counters(self) -> tuple[int, dict[str, Any]]:
        sparse, events, args = self.chunk.sparse, self.chunk.events, self.chunk.args
        picked = _Rows(sparse.counter_event)
        arg = sparse.counter_arg
        kind, value = args.type[arg], args.value[arg]
        is_double = kind == layout.ArgType.DOUBLE

        def values() -> NDArray[np.float64]:
            unsigned = (kind == layout.ArgType.UINT64) & (value < 0)
            out = np.where(unsigned, value.view(np.uint64).astype(np.float64), value)
            return np.where(is_double, value.view(np.float64), out)

        return picked.count, {
            **self._common(picked),
            "id": lambda: picked(events.word).view(np.uint64),
            "series": lambda: args.name[arg],
            "value": values,
            "value_int": lambda: np.where(is_double, 0, value),
            "is_int": lambda: ~is_double,
        }

    def _sched(self) -> tuple[int, dict[str, Any]]:
        sched, passed = self.chunk.sched, self.passed
        legacy = sched.kind == 0

        def threads(column: I64, rows: NDArray[np.bool_]) -> NDArray[np.int32]:
            return np.where(legacy, column, passed.thread_ids(column, rows)).astype(np.int32)

        return int(sched.kind.size), {
            "offset": sched.offset,
            "ts": self.times.sched,
            "ticks": sched.ticks.view(np.uint64),
            "cpu": lambda: sched.cpu.astype(np.uint16),
            "kind": sched.kind,
            "prev": lambda: threads(sched.prev, sched.kind == 1),
            "next": lambda: threads(sched.next, ~legacy),
            "prev_state": sched.state,
            "prev_priority": sched.prev_priority,
            "next_priority": sched.next_priority,
        }

    def _logs(self) -> tuple[int, dict[str, Any]]:
        logs, passed = self.chunk.logs, self.passed
        rows = int(logs.thread.size)
        none = np.broadcast_to(np.int32(-1), rows)
        return rows, {
            "offset": logs.offset,
            "ts": self.times.logs,
            "ticks": logs.ticks.view(np.uint64),
            "severity": np.broadcast_to(np.uint8(0), rows),
            "severity_name": none,
            "pid": lambda: passed.pids[logs.thread],
            "tid": lambda: passed.tids[logs.thread],
            "tags": none,
            "component": none,
            "message": lambda: TextColumn.gather(self.capture.source.data, logs.start, logs.length),
            "file": none,
            "line": np.broadcast_to(np.uint32(0), rows),
            "dropped": np.broadcast_to(np.uint64(0), rows),
        }

    def _blobs(self) -> tuple[int, dict[str, Any]]:
        blobs = self.chunk.blobs
        return int(blobs.type.size), {
            "offset": blobs.offset,
            "name": blobs.name,
            "type": blobs.type,
            "size": lambda: blobs.length.view(np.uint64),
            "data": lambda: np.column_stack((blobs.start, blobs.length)),
        }

    def _objects(self) -> tuple[int, dict[str, Any]]:
        objects = self.chunk.objects
        return int(objects.kind.size), {
            "offset": objects.offset,
            "kind": objects.kind,
            "type": objects.type,
            "id": objects.value.view(np.uint64),
            "pid": objects.pid.view(np.uint64),
            "name": objects.name,
        }

    def _args(self) -> tuple[int, dict[str, Any]]:
        args, sparse, spans = self.chunk.args, self.chunk.sparse, self.passed.spans
        rows = int(args.type.size)
        parts: dict[int, NDArray[Any]] = {}

        def parents() -> I64:
            if not int(self.passed.scanner.state.scalars[k.END_ARGS]):
                return args.parent
            later = np.flatnonzero(args.parent < -1)
            parent = args.parent.copy()
            parent[later] = spans.ends[-2 - parent[later]]
            return parent

        def values(wanted: int, otherwise: int, dtype: type) -> NDArray[Any]:
            seen = int(self.passed.scanner.state.scalars[k.TYPES_SEEN])
            if not seen & wanted:
                return np.broadcast_to(dtype(otherwise), rows)
            if not seen & ~wanted and dtype is np.int64:
                return args.value
            if wanted not in parts:
                out = arena.empty(rows, dtype)
                split = split_numbers if dtype is np.int64 else split_codes
                split(view(args.type, "u1"), view(args.value, "i8"), wanted, otherwise, out.data)
                parts[wanted] = out
            return parts[wanted]

        def annotations() -> NDArray[np.int32]:
            if not sparse.annotated.size:
                return np.broadcast_to(np.int32(-1), rows)
            names = np.full(rows, -1, np.int32)
            names[sparse.annotated] = sparse.annotation
            return names

        return rows, {
            "offset": args.offset,
            "table": args.table,
            "parent": parents,
            "name": args.name,
            "type": args.type,
            "int": lambda: values(_INTEGERS, 0, np.int64),
            "uint": lambda: values(_INTEGERS, 0, np.int64).view(np.uint64),
            "float": lambda: values(_DOUBLES, 0, np.int64).view(np.float64),
            "str": lambda: values(_TEXTS, -1, np.int32),
            "trace_annotation": annotations,
        }


_TEXTS = 1 << layout.ArgType.STRING | 1 << layout.ArgType.BLOB
_DOUBLES = 1 << layout.ArgType.DOUBLE
_INTEGERS = (1 << layout.ArgType.BLOB) - 2 & ~_TEXTS & ~_DOUBLES


class _Rows:
    """Rows picked by a mask or by indices; all of them are taken as they are, without copying."""

    def __init__(self, rows: NDArray[Any]) -> None:
        if rows.dtype == np.bool_:
            self.count = rows.size if rows.strides == (0,) else int(np.count_nonzero(rows))
            self._index = None if self.count == rows.size else np.flatnonzero(rows)
        else:
            self.count = int(rows.size)
            self._index = rows

    def __call__(self, column: NDArray[Any]) -> NDArray[Any]:
        return column if self._index is None else column[self._index]


def _counting(first: int, rows: int) -> I64:
    """Row numbers from ``first`` on."""
    numbers = arena.empty(rows, np.int64)
    block = np.arange(min(rows, 1 << 15), dtype=np.int64)
    for at in range(0, rows, block.size or 1):
        part = numbers[at : at + block.size]
        np.add(block[: part.size], first + at, out=part)
    return numbers


def _filled(array: I64, size: int, fill: int) -> I64:
    """The array, at least ``size`` long; new elements are ``fill``."""
    if array.size >= size:
        return array
    larger = np.full(max(size, 2 * array.size), fill, np.int64)
    larger[: array.size] = array
    return larger


def _roomy(array: I64, used: int, size: int) -> I64:
    """The array with room for ``size``, most of which will never be touched."""
    if array.size >= size:
        return array
    larger = np.empty(size, np.int64)
    larger[:used] = array[:used]
    return larger


def _spilled(array: NDArray[Any], size: int) -> NDArray[Any]:
    """The array, at least ``size`` long: in memory up to a bound, beyond it in a file."""
    if array.size >= size:
        return array
    if not array.size:
        return arena.empty(size, array.dtype)
    room = max(size, 3 * array.size // 2)
    if room * array.itemsize > IN_MEMORY:
        with tempfile.TemporaryFile() as file:
            larger: NDArray[Any] = np.memmap(file, array.dtype, "w+", shape=(room,))
    elif array.flags.owndata:
        # The system moves the pages of a large array; nothing is copied.
        array.resize(room, refcheck=False)
        return array
    else:
        larger = np.empty(room, array.dtype)
    larger[: array.size] = array
    return larger
