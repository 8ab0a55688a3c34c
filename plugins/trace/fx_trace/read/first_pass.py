"""The first pass over a trace: how slices nest, which threads there are, what was found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_trace import format as wire
from fx_trace import rules
from fx_trace.format import LINK_BEGUN, LINK_ENDED
from fx_trace.meaning import EVENTS_OF
from fx_trace.read.chunks import Chunk, WholeRows
from fx_trace.read.match import Match, Placing, Tied
from fx_trace.read.rows import RowReader
from fxframework.errors import Rule
from fxframework.io.source import RELEASED
from fxframework.io.spill import Spill
from fxframework.kernels.behind import Behind, in_halves
from fxframework.kernels.buffers import gathered, view
from fxframework.kernels.pools import PairMap
from fxframework.kernels.rows import Notes
from fxframework.kernels.sorting import order_and_keys, stable_order
from fxframework.kit.runs import SortedRuns
from fxframework.kit.scanned import FirstPass, Timeline, busiest, sketch
from fxframework.model.clock import NS_MAX, NS_MIN

__all__ = ["CountingPass", "TaskCollector", "Tasks", "TracePass"]

I64 = NDArray[np.int64]
BLOCK = 1 << 17
"""Rows that are looked at together."""
PROBED = 1 << 14
"""Events among which slices are looked for together."""
SPANS = {"end": "slices", "parent": "slices", "depth": "slices", "ends": "ends", "flows": "flows"}
"""Results of matching, and what they have a row for."""

MASKS = {table: np.zeros(256, np.bool_) for table in ("slices", "ends", "flows")}
"""By type of event, whether it has a row there."""
for _table, _mask in MASKS.items():
    _mask[list(EVENTS_OF[_table])] = True
IS_MATCHED = MASKS["slices"] | MASKS["ends"] | MASKS["flows"]
IS_MATCHED[wire.EVENT_ASYNC_INSTANT] = True
KEPT = ("kind", "thread", "name", "category", "offset", "time")
"""Columns that are held for sorting as they are."""
IDENTIFIED = tuple(range(wire.EVENT_ASYNC_BEGIN, wire.EVENT_FLOW_END + 1))
"""Events with an id: asynchronous ones and flows."""


class Spans:
    """What matching finds: per slice row, per end event, per flow row (``match.Match``)."""

    end: I64
    parent: I64
    depth: NDArray[np.int32]
    ends: I64
    flows: I64

    def __init__(self, *, in_memory: bool) -> None:
        self._columns = {
            name: Spill(np.int32 if name == "depth" else np.int64, in_memory=in_memory)
            for name in SPANS
        }
        self.make_room(dict.fromkeys(SPANS.values(), 0))

    def make_room(self, rows: Mapping[str, int]) -> dict[str, NDArray[Any]]:
        """Room for that many rows, of which the earlier ones stay."""
        arrays = {name: self._columns[name].grow(rows[table]) for name, table in SPANS.items()}
        self.end, self.parent, self.depth = arrays["end"], arrays["parent"], arrays["depth"]
        self.ends, self.flows = arrays["ends"], arrays["flows"]
        return arrays

    def place(self, found: Mapping[str, NDArray[Any]], rows: Mapping[str, I64], ends: I64) -> None:
        """Take results of events that were numbered in another order; ``rows`` are theirs.

        ``ends`` are those that slices have by themselves, by row. Of slices that nothing encloses
        and no event ends, there is nothing else to know.
        """
        slices = rows["slices"]

        def enclose_nothing(half: slice) -> None:
            self.parent[half], self.depth[half], self.end[half] = -1, 0, ends[half]

        def put(half: slice) -> None:
            Placing(slices, half.start, half.stop, found, vars(self)).run()

        in_halves(slices.size, enclose_nothing, slices.nbytes)
        in_halves(slices.size, put, slices.nbytes)
        closed = found["ends"][found["ends"] >= 0]
        self.end[slices[closed]] = found["end"][closed]
        for name in ("ends", "flows"):
            within = np.flatnonzero(found[name] >= 0)
            getattr(self, name)[rows[name]] = -1
            getattr(self, name)[rows[name][within]] = slices[found[name][within]]

    def open_rows(self, slices: int, most: int) -> I64:
        """Return the first ``most`` rows of slices that were never closed."""
        found = 0
        parts = [np.zeros(0, np.int64)]
        for at in range(0, slices, BLOCK):
            if found == most:
                break
            is_open = self.end[at : min(at + BLOCK, slices)] == wire.OPEN_END
            rows = np.flatnonzero(is_open)[: most - found]
            parts.append(rows + at)
            found += rows.size
            self.release()
        return np.concatenate(parts)

    def release(self) -> None:
        """Release what is in files from memory."""
        for column in self._columns.values():
            column.release()


class _Events(NamedTuple):
    """Events that are matched in order of time."""

    columns: Mapping[str, NDArray[Any]]
    """Of ``EventRows``, `time` and `finish`, shape (events,) each."""
    matched: I64 | None
    """The places there of those that matching needs; None: all."""
    refs: I64 | None
    """Row or ordinal of each event, shape (events,); None: all are slices, in order."""


class TracePass(FirstPass[Chunk]):
    """What one pass over the whole file finds."""

    def __init__(
        self,
        reader: RowReader,
        max_depth: int,
        *,
        ordered: bool,
        in_memory: bool,
        by_name: bool = False,
    ) -> None:
        self.reader = reader
        self._by_name = by_name
        """Whether ends are matched by name."""
        self._in_memory = in_memory
        self.ordered = ordered
        """Whether events are sorted by time before they are matched."""
        self.out_of_order: int | None = None
        """Offset of the first event that comes after a later one of its thread or operation."""
        self._outside: list[I64] = []
        self._rows = WholeRows(reader.source.size) if in_memory else None
        self._released = 0
        self._bounds: tuple[int, int] | None = None
        self._max_depth = max_depth
        self._collector = TaskCollector()
        self._sorted = SortedRuns()
        self._whole: _Events | None = None
        self._unnamed = PairMap(16)
        """Codes of texts that stand for unknown strings, as of the events that are matched."""
        self._new_match()

    def _new_match(self) -> None:
        self._notes = Notes(rules.RULES.numbers, self.reader.findings.limit)
        self.spans = Spans(in_memory=self._in_memory)
        self._match = Match(self._notes, self._max_depth, self._unnamed, by_name=self._by_name)
        self._links = self._match.links
        self._unclosed = 0

    def _learn(self, unnamed: list[int]) -> None:
        for code in unnamed:
            self._unnamed.put(code, 0, 0)

    # --- Adding chunks ---------------------------------------------------------------------------

    def add(self, chunk: Chunk) -> None:
        """Take in a chunk. It may be found to be ``out_of_order``.

        Then, if chunks are not kept in memory, all of them must be taken again by a pass that is
        ``ordered``.
        """
        self._collector.add(chunk)
        self._learn(chunk.unnamed)
        if self._rows is not None:
            self._rows.add(chunk)
            self._outside.append(chunk.outside)
            if self.out_of_order is None:
                self._run(vars(chunk.events), self.spans.make_room(chunk.after), chunk.pids)
            return
        self._widen(chunk)
        self._outside.append(chunk.outside)
        if chunk.end - self._released >= RELEASED:
            self.spans.release()
            self._released = chunk.end
        # Room chunk by chunk, so that results of many parts are in files.
        spans = self.spans.make_room(chunk.after)
        if self.ordered:
            self._keep(self._matched(vars(chunk.events), chunk.first))
        else:
            self._run(vars(chunk.events), spans, chunk.pids)

    @property
    def must_be_ordered(self) -> bool:
        """Whether all chunks must be taken again, by a pass that is ``ordered``."""
        return self.out_of_order is not None and not self.ordered and self._rows is None

    def keep_rows(self) -> None:
        """Hold the rows of the whole file; if they are out of order, forget what was matched."""
        if self._rows is None:
            return
        reader = self.reader
        self.whole = chunk = self._rows.chunk(dict(reader.rows), reader.threads.pids)
        self._rows = None
        if self.out_of_order is not None:
            self._new_match()
            self.ordered = True
            self._whole = self._matched(vars(chunk.events), chunk.first)

    def _run(
        self,
        columns: Mapping[str, NDArray[Any]],
        spans: Mapping[str, NDArray[Any]],
        pids: I64,
        order: I64 | None = None,
        refs: I64 | None = None,
    ) -> None:
        """Match events; note where they step back in time."""
        self._match.make_room(pids.size, spans)
        self._match.take(columns, pids, order, refs)
        stop = int(self._match.run())
        self._unclosed = int(self._match.unclosed)
        if stop >= 0:
            self.out_of_order = int(columns["offset"][stop])

    def _matched(self, columns: dict[str, NDArray[Any]], first: Mapping[str, int]) -> _Events:
        """Return the events of a chunk that matching needs."""
        kind = columns["kind"]
        if not first["slices"] and self.reader.rows["slices"] == kind.size:
            return _Events(columns, None, None)
        every = IS_MATCHED[kind]
        matched = None if every.all() else np.flatnonzero(every)
        refs = np.zeros(kind.size, np.int64)
        for table, mask in MASKS.items():
            rows = np.flatnonzero(mask[kind])
            refs[rows] = np.arange(first[table], first[table] + rows.size)
        return _Events(columns, matched, refs)

    def _keep(self, events: _Events) -> None:
        """Hold what matching needs of a chunk until all of it can be sorted."""
        columns, matched, refs = events
        # No event has both an end and an id.
        if not self.reader.events_seen(wire.EVENT_DURATION_COMPLETE):
            value = columns["word"]
        elif not self.reader.events_seen(*IDENTIFIED):
            value = columns["finish"]
        else:
            complete = columns["kind"] == wire.EVENT_DURATION_COMPLETE
            value = np.where(complete, columns["finish"], columns["word"])
        kept = {name: columns[name] for name in KEPT} | {"value": value}
        kept["refs"] = np.arange(value.size) if refs is None else refs
        if matched is not None:
            kept = {name: column[matched] for name, column in kept.items()}
        self._sorted.add(kept)

    def _match_in_order(self) -> None:
        """Match what was kept in order of time: all of it at once, or window by window."""
        whole, self._whole = self._whole, None
        if whole is not None:
            columns, matched, refs = whole
            times = columns["time"] if matched is None else columns["time"][matched]
            order, in_order = order_and_keys(times)
            if order is None:
                order = np.arange(times.size)
            if matched is not None:
                order = matched[order]
            # Numbered as they come, so that their results lie next to each other.
            found = Spans(in_memory=True).make_room(self.reader.rows)
            self._match_window(columns, (order, in_order, None), found)
            del self._match, in_order
            kind, ends = columns["kind"], np.minimum(columns["finish"], wire.OPEN_END - 1)
            np.copyto(ends, wire.OPEN_END, where=kind != wire.EVENT_DURATION_COMPLETE)
            rows = {"slices": order, "ends": order[:0], "flows": order[:0]}
            if refs is not None:
                ends, kind, refs = ends[MASKS["slices"][kind]], kind[order], refs[order]
                rows = {table: refs[mask[kind]] for table, mask in MASKS.items()}
            self.spans.make_room(self.reader.rows)
            self.spans.place(found, rows, ends)
            return
        for columns, order in self._sorted.windows():
            value = columns.pop("value")
            columns["word"] = columns["finish"] = value
            spans = self.spans.make_room(self.reader.rows)
            refs = columns.pop("refs")
            self._match_window(columns, (order, None, refs), spans)
            self.spans.release()
        self._sorted = SortedRuns()
        del self._match

    def _match_window(
        self,
        columns: Mapping[str, NDArray[Any]],
        events: tuple[I64, I64 | None, I64 | None],
        spans: Mapping[str, NDArray[Any]],
    ) -> None:
        """Match events in order of time: their places in it, times if known, and rows if given."""
        order, times, refs = events
        if times is None:
            times = columns["time"][order]
        longest_first(order, times, columns)
        # Ties were put in order: what belongs to each event follows.
        refs = None if refs is None else refs[order]

        def run(events: I64, known: Mapping[str, NDArray[Any]], refs: I64 | None) -> None:
            some = {name: gathered(columns[name], events) for name in ("kind", "thread")}
            self._run({**columns, **some, **known}, spans, self.reader.threads.pids, events, refs)

        with Behind(order.nbytes) as behind:
            for at in range(0, order.size, BLOCK):
                rows = slice(at, at + BLOCK)
                known = {"time": times[rows], "finish": gathered(columns["finish"], order[rows])}
                behind.do(run, order[rows], known, None if refs is None else refs[rows])

    def _widen(self, chunk: Chunk) -> None:
        """Take the times of a chunk into the range."""
        for rows in (chunk.events, chunk.sched, chunk.logs, chunk.profiler):
            if rows.time.size:
                self._include(int(rows.time.min()), int(rows.time.max()))
        complete = chunk.events.kind == wire.EVENT_DURATION_COMPLETE
        if complete.any():
            # Their ends are not events of their own.
            self._include(NS_MAX, int(chunk.events.finish.max(initial=NS_MIN, where=complete)))

    def _include(self, low: int, high: int) -> None:
        """Take the first and the last of some times into the range."""
        if self._bounds is not None:
            low, high = min(low, self._bounds[0]), max(high, self._bounds[1])
        self._bounds = low, high

    @property
    def outside_offsets(self) -> I64:
        """Offsets of the records with times that do not fit 63 bits, ascending."""
        return np.sort(np.concatenate([np.zeros(0, np.int64), *self._outside]))

    @property
    def range(self) -> tuple[int | None, int | None]:
        """The first and the last time of the capture, in ns; None where it has none."""
        if self.whole is not None and self._bounds is None:
            self._widen(self.whole)
        return (None, None) if self._bounds is None else self._bounds

    # --- The end ---------------------------------------------------------------------------------

    def finish(self) -> None:
        """Settle what needs the whole file: sorted matching, threads, names."""
        self._match_in_order()
        self.tasks = self._collector.settle(self.reader.threads.known())
        self.unpaired = list(self._unpaired())
        """Rules of findings about ids, and the offsets of the first events of those ids."""
        del self._links

    def open_slices(self, parts: Iterable[Chunk], most: int) -> tuple[int, I64]:
        """Return how many slices were never closed, and the offsets of the first ``most`` (0 all).

        ``parts`` are the chunks of the capture; only as many of them are read as are needed.
        """
        total = self._unclosed
        rows = self.spans.open_rows(self.reader.rows["slices"], min(total, most or total))
        offsets: list[I64] = []
        found = 0
        for chunk in parts:
            if found == rows.size:
                break
            events, first = chunk.events, chunk.first["slices"]
            for at in range(0, events.kind.size, PROBED):
                if found == rows.size:
                    break
                slices = at + np.flatnonzero(MASKS["slices"][events.kind[at : at + PROBED]])
                last = int(np.searchsorted(rows, first + slices.size))
                offsets.append(events.offset[slices[rows[found:last] - first]])
                found, first = last, first + slices.size
        return total, np.concatenate(offsets) if offsets else np.zeros(0, np.int64)

    def _unpaired(self) -> Iterator[tuple[Rule, I64]]:
        value = np.asarray(self._links.value)
        first, value = np.asarray(self._links.first)[value >= 0], value[value >= 0]
        begun, ended = (value & LINK_BEGUN).astype(np.bool_), (value & LINK_ENDED).astype(np.bool_)
        flow = first == wire.EVENT_FLOW_BEGIN
        for code, which in (
            (rules.FLOW_WITHOUT_BEGIN, flow & ~begun),
            (rules.FLOW_WITHOUT_END, flow & begun & ~ended),
            (rules.ASYNC_INSTANT_WITHOUT_BEGIN, ~flow & ~begun),
        ):
            yield code, np.sort(value[which] >> wire.LINK_BITS)

    # --- What the capture asks for ---------------------------------------------------------------

    @property
    def notes(self) -> list[Notes]:
        """The findings of matching; ``reader`` has those of records."""
        return [self._notes]

    @property
    def records(self) -> int:
        """Records in the file."""
        return self.reader.records

    @property
    def rows(self) -> dict[str, int]:
        """Rows of each table."""
        rows = dict(self.reader.rows)
        del rows["ends"]
        return {"processes": self.tasks.processes.size, "threads": self.tasks.pids.size, **rows}

    @property
    def kinds(self) -> dict[str, int]:
        """Records of each kind, by the names of record JSON."""
        found: dict[str, int] = {}
        for number in np.flatnonzero(self.reader.kinds_seen).tolist():
            name = wire.KIND_NAMES.get(number) or _kind_name(*divmod(number, 16))
            found[name] = found.get(name, 0) + int(self.reader.kinds_seen[number])
        return found

    @property
    def timeline(self) -> Timeline:
        """Events per stretch of time, for the busiest threads."""
        first, last = self.range
        if self.whole is None or first is None or last is None:
            return ()
        threads, tasks = self.whole.events.thread, self.tasks
        labels = []
        for thread in busiest(threads) if threads.size else []:
            code = int(tasks.names[thread])
            index = int(tasks.gone[thread])
            label = f"{tasks.pids[thread]}/{tasks.tids[thread]}"
            if index:
                label = f"<thr#{index - 1}>"
            elif code >= 0:
                label = self.reader.strings[code] or label
            labels.append((thread, label))
        return sketch(self.whole.events.time, threads, (first, last), labels)


class CountingPass(TracePass):
    """What a pass finds that neither sorts nor matches events: counts, damage, times."""

    def __init__(self, reader: RowReader) -> None:
        super().__init__(reader, 0, ordered=False, in_memory=False)

    def add(self, chunk: Chunk) -> None:
        """Take in a chunk."""
        self._widen(chunk)
        self._outside.append(chunk.outside)

    def open_slices(self, parts: Iterable[Chunk], most: int) -> tuple[int, I64]:  # noqa: ARG002
        """Return none: they are not looked for."""
        return 0, np.zeros(0, np.int64)


_KIND_NAMES: dict[int, Mapping[int, str]] = {
    wire.RecordType.METADATA: wire.METADATA_NAMES,
    wire.RecordType.EVENT: wire.EVENT_NAMES,
    wire.RecordType.SCHEDULING: wire.SCHEDULING_NAMES,
    wire.RecordType.PROFILER: wire.PROFILER_NAMES,
}


def _kind_name(kind: int, subtype: int) -> str:
    name = wire.RecordType(kind).name.lower()
    subtypes = _KIND_NAMES.get(kind)
    return name if subtypes is None else f"{name} {subtypes.get(subtype, subtype)}"


def longest_first(order: I64, times: I64, columns: Mapping[str, NDArray[Any]]) -> None:
    """Put the complete events of a thread that begin at one time longest first, in place.

    ``order`` are events by time, ``times`` their times, both of shape (events,). They stay in the
    places that complete events of that thread had; equally long ones keep their order.
    """
    tied = Tied(view(order, "i8"), view(times, "i8"), columns)
    tied.run()
    found = tied.found.filled()
    places = found["place"]
    if not places.size:
        return
    # Of a greater end the complement is less, however great it is.
    np.invert(found["end"], out=found["end"])
    events = gathered(order, _ordered(places, found["end"], found["group"]))
    order[_ordered(places, found["group"])] = events


def _ordered(values: I64, *keys: I64) -> I64:
    """Return values in the stable order by the last key, then by the one before it, and so on."""
    order: I64 | None = None
    for key in keys:
        found = stable_order(key if order is None else gathered(key, order))
        if found is not None:
            order = found if order is None else gathered(order, found)
    return values if order is None else gathered(values, order)


# --- Tasks ---------------------------------------------------------------------------------------

I32 = NDArray[np.int32]
U64 = NDArray[np.uint64]
NAMELESS = -1


@attrs.define
class Tasks:
    """Threads, numbered by the row of `threads`, and processes, in the order of their offsets."""

    pids: U64
    tids: U64
    offsets: I64
    """Of the first record that mentions each thread."""
    gone: I64
    """One more than a thread's index where its record is missing; 0 for the others."""
    names: I32
    processes: U64
    process_offsets: I64
    process_names: I32
    _known: U64
    """Tids that other records may name, in order."""
    _threads: I64
    """The thread of each of them."""

    def threads_of(self, tids: I64, rows: NDArray[np.bool_]) -> I32:
        """Return the threads of a column of tids, where ``rows`` is set.

        Elsewhere -1; same shape.
        """
        out = np.full(tids.size, -1, np.int32)
        places = np.searchsorted(self._known, tids[rows].view(np.uint64))
        out[rows] = self._threads[places]
        return out


class TaskCollector:
    """Gathers who is mentioned, chunk by chunk."""

    def __init__(self) -> None:
        self._objects: list[tuple[NDArray[Any], ...]] = []
        """Type, koid, pid, name and offset of kernel objects."""
        self._tids = np.zeros(0, np.uint64)
        self._tid_offsets = np.zeros(0, np.int64)

    def add(self, chunk: Chunk) -> None:
        """Take in the kernel objects and the context switches of a chunk."""
        objects = chunk.objects
        kernel = (objects.kind == 0) & np.isin(
            objects.type, (wire.OBJECT_PROCESS, wire.OBJECT_THREAD)
        )
        if kernel.any():
            self._objects.append(
                (
                    objects.type[kernel],
                    objects.value[kernel].view(np.uint64),
                    objects.pid[kernel].view(np.uint64),
                    objects.name[kernel],
                    objects.offset[kernel],
                )
            )
        sched = chunk.sched
        if sched.kind.size:
            newer = sched.kind != wire.SCHED_LEGACY_SWITCH
            switched = sched.kind == wire.SCHED_SWITCH
            for column, rows in ((sched.prev, switched), (sched.next, newer)):
                self._tids, self._tid_offsets = _earliest(
                    np.append(self._tids, column[rows].view(np.uint64)),
                    np.append(self._tid_offsets, sched.offset[rows]),
                )

    def settle(self, known: dict[str, NDArray[Any]]) -> Tasks:
        """Everybody, with the threads that the scan knows: columns tid, pid, offset and gone."""
        empty = (np.zeros(0, np.uint8), *(np.zeros(0, np.uint64),) * 2)
        kinds, koids, homes, names, offsets = (
            np.concatenate(parts)
            for parts in zip(
                (*empty, np.zeros(0, np.int32), np.zeros(0, np.int64)), *self._objects, strict=True
            )
        )
        self._objects.clear()
        tids, pids, gone = known["tid"].view(np.uint64), known["pid"].view(np.uint64), known["gone"]
        threads = kinds == wire.OBJECT_THREAD
        mentioned, first = _earliest(
            np.append(self._tids, koids[threads]), np.append(self._tid_offsets, offsets[threads])
        )
        # The threads that other records name by their tid: the first of each.
        here, place = np.unique(tids[gone == 0], return_index=True)
        number = np.flatnonzero(gone == 0)[place]
        new = ~np.isin(mentioned, here)
        mentioned, first = mentioned[new], first[new]
        order = np.lexsort((mentioned, first))
        mentioned, first = mentioned[order], first[order]
        homed = threads & (homes > 0)
        added = _looked_up(mentioned, *_last(koids[homed], homes[homed]), 0)
        every_pid, every_tid = np.append(pids, added), np.append(tids, mentioned)
        every_gone = np.append(gone, np.zeros(mentioned.size, np.int64))
        every_offset = np.append(known["offset"], first)
        thread_names = _looked_up(every_tid, *_last(koids[threads], names[threads]), NAMELESS)
        thread_names[every_gone > 0] = NAMELESS
        by_tid = np.append(here, mentioned)
        in_order = np.argsort(by_tid)
        there, process = every_gone == 0, kinds == wire.OBJECT_PROCESS
        processes, since = _earliest(
            np.append(every_pid[there], koids[process]),
            np.append(every_offset[there], offsets[process]),
        )
        order = np.lexsort((processes, since))
        processes = processes[order]
        return Tasks(
            pids=every_pid,
            tids=every_tid,
            offsets=every_offset,
            gone=every_gone,
            names=thread_names,
            processes=processes,
            process_offsets=since[order],
            process_names=_looked_up(processes, *_last(koids[process], names[process]), NAMELESS),
            known=by_tid[in_order],
            threads=np.append(number, np.arange(tids.size, every_tid.size))[in_order],
        )


def _earliest(keys: U64, offsets: I64) -> tuple[U64, I64]:
    """Return each key once, in order, with the least of its offsets."""
    order = np.lexsort((offsets, keys))
    keys, offsets = keys[order], offsets[order]
    first = np.ones(keys.size, np.bool_)
    first[1:] = keys[1:] != keys[:-1]
    return keys[first], offsets[first]


def _last(keys: U64, values: NDArray[Any]) -> tuple[U64, NDArray[Any]]:
    """Return each key once, in order, with the last of its values."""
    found, place = np.unique(keys[::-1], return_index=True)
    return found, values[::-1][place]


def _looked_up(wanted: U64, keys: U64, values: NDArray[Any], otherwise: int) -> NDArray[Any]:
    """The values of some keys, of the dtype of ``values``; ``otherwise`` for a key without one."""
    out = np.full(wanted.size, otherwise, values.dtype)
    if keys.size:
        places = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
        has = keys[places] == wanted
        out[has] = values[places[has]]
    return out
