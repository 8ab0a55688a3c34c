"""The first pass over a trace: how slices nest, which threads there are, what was found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_trace import format as wire
from fx_trace import rules
from fx_trace.kinds import EventType
from fx_trace.meaning import IS_ROW_OF
from fx_trace.read.chunks import Chunk, WholeRows
from fx_trace.read.match import Events, Match, Spans, longest_first
from fx_trace.read.rows import RowReader
from fxframework.io.source import RELEASED
from fxframework.kernels.behind import Behind
from fxframework.kernels.buffers import gathered
from fxframework.kernels.sorting import order_and_keys
from fxframework.kit.runs import SortedRuns
from fxframework.kit.scanned import FirstPass, Timeline, busiest, sketch
from fxframework.model.clock import NS_MAX, NS_MIN
from fxframework.wire.findings import Findings

__all__ = ["CountingPass", "TaskCollector", "Tasks", "TracePass"]

I64 = NDArray[np.int64]
BLOCK = 1 << 17
"""Rows that are looked at together."""
PROBED = 1 << 14
"""Events among which slices are looked for together."""
IS_SLICE = IS_ROW_OF["slices"]
IS_MATCHED = IS_SLICE | IS_ROW_OF["ends"] | IS_ROW_OF["flows"]
"""By type of event, whether matching needs it."""
IS_MATCHED[EventType.ASYNC_INSTANT] = True
KEPT = ("kind", "thread", "name", "category", "offset", "time")
"""Columns that are held for sorting as they are."""
IDENTIFIED = tuple(range(EventType.ASYNC_BEGIN, EventType.FLOW_END + 1))
"""Events with an id: asynchronous ones and flows."""
Cells = Mapping[str, NDArray[Any]]


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
        self._unnamed = np.zeros(0, np.int64)
        """Codes of texts that stand for unknown strings, as of the events that are matched."""
        self._new_match()

    def _new_match(self) -> None:
        self._findings = Findings(self.reader.findings.limit, rules.RULES.numbers)
        self.spans = Spans(in_memory=self._in_memory)
        self._match = Match(
            self._findings, self._max_depth, by_name=self._by_name, in_order=not self.ordered
        )
        self._match.unnamed = self._unnamed

    # --- Adding chunks ---------------------------------------------------------------------------

    def add(self, chunk: Chunk) -> None:
        """Take in a chunk. It may be found to be ``out_of_order``.

        Then, if chunks are not kept in memory, all of them must be taken again by a pass that is
        ``ordered``.
        """
        self._collector.add(chunk)
        self._outside.append(chunk.outside)
        if chunk.unnamed:
            self._unnamed = np.append(self._unnamed, chunk.unnamed)
            self._match.unnamed = self._unnamed
        columns: Cells = vars(chunk.events)
        if self._rows is not None:
            self._rows.add(chunk)
            if self.out_of_order is None:
                self.spans.begin(columns, chunk.first, self._rows.room)
                self._match_in_file_order(chunk)
            return
        self._widen(chunk)
        if chunk.end - self._released >= RELEASED:
            self.spans.release()
            self._released = chunk.end
        # Room chunk by chunk, so that results of many parts are in files.
        self.spans.begin(columns, chunk.first)
        if self.ordered:
            self._keep(chunk)
        else:
            self._match_in_file_order(chunk)

    def _match_in_file_order(self, chunk: Chunk) -> None:
        """Match the events of a chunk; note where they step back in time."""
        columns: Cells = vars(chunk.events)
        events = Events(columns, None, {"row": rows_of_events(chunk)})
        steps_back = self._match.take(events, self.spans, chunk.pids)
        if steps_back >= 0:
            self.out_of_order = int(columns["offset"][steps_back])

    @property
    def must_be_ordered(self) -> bool:
        """Whether all chunks must be taken again, by a pass that is ``ordered``."""
        return self.out_of_order is not None and not self.ordered and self._rows is None

    def keep_rows(self) -> None:
        """Hold the rows of the whole file; if they are out of order, forget what was matched."""
        if self._rows is None:
            return
        reader = self.reader
        self.whole = self._rows.chunk(dict(reader.rows), reader.threads.pids)
        self._rows = None
        if self.out_of_order is not None:
            self.ordered = True
            self._new_match()
            self.spans.begin(vars(self.whole.events), self.whole.first)

    def _keep(self, chunk: Chunk) -> None:
        """Hold what matching needs of a chunk until all of it can be sorted."""
        columns: Cells = vars(chunk.events)
        # No event has both an end and an id.
        value = columns["word"]
        if self.reader.events_seen(EventType.DURATION_COMPLETE):
            value = columns["finish"]
            if self.reader.events_seen(*IDENTIFIED):
                complete = columns["kind"] == EventType.DURATION_COMPLETE
                value = np.where(complete, columns["finish"], columns["word"])
        kept = {name: columns[name] for name in KEPT}
        kept |= {"value": value, "row": rows_of_events(chunk)}
        is_matched = IS_MATCHED[columns["kind"]]
        if not is_matched.all():
            kept = {name: column[is_matched] for name, column in kept.items()}
        self._sorted.add(kept)

    def _match_in_order_of_time(self) -> None:
        """Match what was not matched in file order: all at once, or window by window."""
        if self.whole is not None and self.ordered:
            columns: Cells = vars(self.whole.events)
            is_matched = IS_MATCHED[columns["kind"]]
            matched = None if is_matched.all() else np.flatnonzero(is_matched)
            times = columns["time"] if matched is None else columns["time"][matched]
            order, in_order = order_and_keys(times)
            if order is None:
                order = np.arange(times.size)
            if matched is not None:
                order = matched[order]
            self._match_window({**columns, "row": rows_of_events(self.whole)}, order, in_order)
        for window, order in self._sorted.windows():
            value = window.pop("value")
            self._match_window({**window, "word": value, "finish": value}, order, None)
            self.spans.release()
        self._sorted = SortedRuns()

    def _match_window(self, columns: Cells, order: I64, times: I64 | None) -> None:
        """Match events by their places in order of time; ``times`` are theirs, if known."""
        if times is None:
            times = columns["time"][order]
        longest_first(order, times, columns)
        pids = self.reader.threads.pids
        with Behind(order.nbytes) as behind:
            for first in range(0, order.size, BLOCK):
                index = order[first : first + BLOCK]
                names = ("kind", "thread", "finish", "row")
                known = {name: gathered(columns[name], index) for name in names}
                known["time"] = times[first : first + BLOCK]
                behind.do(self._match.take, Events(columns, index, known), self.spans, pids)

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
        self._match_in_order_of_time()
        self.tasks = self._collector.settle(self.reader.threads.known())
        match = self._match
        self.unpaired = [
            (rules.FLOW_WITHOUT_BEGIN, match.flows.first_offsets(begun=False)),
            (rules.FLOW_WITHOUT_END, match.flows.first_offsets(begun=True, ended=False)),
            (rules.ASYNC_INSTANT_WITHOUT_BEGIN, match.operations.first_offsets(begun=False)),
        ]
        """Rules of findings about ids, and the offsets of the first events of those ids."""
        self._unclosed = match.unclosed
        del self._match

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
                slices = at + np.flatnonzero(IS_SLICE[events.kind[at : at + PROBED]])
                last = int(np.searchsorted(rows, first + slices.size))
                offsets.append(events.offset[slices[rows[found:last] - first]])
                found, first = last, first + slices.size
        return total, np.concatenate(offsets) if offsets else np.zeros(0, np.int64)

    # --- What the capture asks for ---------------------------------------------------------------

    @property
    def notes(self) -> list[Findings]:
        """The findings of matching; ``reader`` has those of records."""
        return [self._findings]

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


def rows_of_events(chunk: Chunk) -> I64:
    """Return the row of each event in its table, and of an end its number; 0 for others."""
    kind = chunk.events.kind
    counts = np.bincount(kind, minlength=IS_MATCHED.size)
    rows = np.zeros(kind.size, np.int64)
    for table in ("slices", "ends", "flows"):
        count = int(counts[IS_ROW_OF[table]].sum())
        numbers = np.arange(chunk.first[table], chunk.first[table] + count)
        if count == kind.size:
            return numbers
        if count:
            rows[IS_ROW_OF[table][kind]] = numbers
    return rows


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
        """Everybody, with the threads that records name: columns tid, pid, offset and gone."""
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
