"""The first pass over a trace: how slices nest, which threads there are, what was found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fx_trace import format as wire
from fx_trace import rules
from fx_trace.indexed import THREADS
from fx_trace.meaning import IS_ROW_OF, E, are_rows_of, rows_of_events
from fx_trace.read.chunk_maker import ChunkMaker
from fx_trace.read.chunks import Chunk, WholeRows
from fx_trace.read.match import Events, Match, Spans, longest_first
from fx_trace.read.rows import RowReader
from fx_trace.read.threads import TaskCollector
from fxframework.io.limits import Limits
from fxframework.io.source import RELEASED
from fxframework.kernels.arrays import I64
from fxframework.kernels.buffers import gathered
from fxframework.kernels.sorting import order_and_keys
from fxframework.kit.runs import SortedRuns
from fxframework.kit.scanned import FirstPass, Timeline, busiest, sketch
from fxframework.model.clock import NS_MAX, NS_MIN
from fxframework.wire.findings import Findings

BLOCK = 1 << 17
"""Rows that are looked at together."""
UNLIMITED_DEPTH = 1 << 30
PROBED = 1 << 14
"""Events among which slices are looked for together."""
IS_MATCHED = IS_ROW_OF["slices"] | IS_ROW_OF["ends"] | IS_ROW_OF["flows"]
"""By type of event, whether matching needs it."""
IS_MATCHED[E.ASYNC_INSTANT] = True
SORTED_COLUMNS = ("kind", "thread", "name", "category", "offset", "time")
"""Columns that are held for sorting as they are."""
IDENTIFIED = tuple(range(E.ASYNC_BEGIN, E.FLOW_END + 1))
"""Events with an id: asynchronous ones and flows."""
Cells = Mapping[str, NDArray[Any]]


class EventPass(FirstPass[Chunk]):
    """What one pass over a whole file of events finds."""

    by_id: ClassVar[bool] = False
    """Whether ids alone tell asynchronous operations apart."""

    def __init__(
        self,
        reader: ChunkMaker,
        limits: Limits,
        *,
        ordered: bool,
        in_memory: bool,
        by_name: bool = False,
    ) -> None:
        self.reader = reader
        self._limits = limits
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
        self._collector = TaskCollector()
        self._sorted = SortedRuns()
        self._unnamed = np.zeros(0, np.int64)
        """Codes of the texts of strings that nobody registered, of the chunks so far."""
        self._new_match()

    def _new_match(self) -> None:
        self._findings = Findings(self._limits.max_findings, rules.RULES.numbers)
        self.spans = Spans(in_memory=self._in_memory)
        self._match = Match(
            self._findings,
            self._limits.max_depth or UNLIMITED_DEPTH,
            by_name=self._by_name,
            by_id=self.by_id,
            in_order=not self.ordered,
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
        events = Events(columns, None, {"row": rows_of_events(chunk.events.kind, chunk.first)})
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
        self.whole = self._rows.chunk(dict(reader.rows), reader.pids)
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
        if self.reader.events_seen(E.DURATION_COMPLETE):
            value = columns["finish"]
            if self.reader.events_seen(*IDENTIFIED):
                complete = columns["kind"] == E.DURATION_COMPLETE
                value = np.where(complete, columns["finish"], columns["word"])
        needed = {name: columns[name] for name in SORTED_COLUMNS}
        needed |= {"value": value, "row": rows_of_events(chunk.events.kind, chunk.first)}
        is_matched = IS_MATCHED.take(columns["kind"])
        if not is_matched.all():
            needed = {name: column[is_matched] for name, column in needed.items()}
        self._sorted.add(needed)

    def _match_in_order_of_time(self) -> None:
        """Match what was not matched in file order: all at once, or window by window."""
        if self.whole is not None and self.ordered:
            columns: Cells = vars(self.whole.events)
            is_matched = IS_MATCHED.take(columns["kind"])
            matched = None if is_matched.all() else np.flatnonzero(is_matched)
            times = columns["time"] if matched is None else columns["time"][matched]
            order, times_in_order = order_and_keys(times)
            if order is None:
                order = np.arange(times.size)
            if matched is not None:
                order = matched[order]
            columns = {**columns, "row": rows_of_events(columns["kind"], self.whole.first)}
            self._match_window(columns, order, times_in_order)
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
        pids = self.reader.pids
        names = ("kind", "thread", "finish", "row")
        for first in range(0, order.size, BLOCK):
            index = order[first : first + BLOCK]
            known = {name: gathered(columns[name], index) for name in names}
            known["time"] = times[first : first + BLOCK]
            self._match.take(Events(columns, index, known), self.spans, pids)

    def _widen(self, chunk: Chunk) -> None:
        """Take the times of a chunk into the range."""
        for rows in (chunk.events, chunk.sched, chunk.logs, chunk.profiler):
            if rows.time.size:
                earliest = int(rows.time.min())
                self._include(earliest, int(rows.time.max()))
        is_complete = chunk.events.kind == E.DURATION_COMPLETE
        if is_complete.any():
            # Their ends are not events of their own.
            last_end = chunk.events.finish.max(initial=NS_MIN, where=is_complete)
            self._include(NS_MAX, int(last_end))

    def _include(self, low: int, high: int) -> None:
        """Take the first and the last of some times into the range."""
        if self._bounds is not None:
            low = min(low, self._bounds[0])
            high = max(high, self._bounds[1])
        self._bounds = low, high

    @property
    def outside_offsets(self) -> I64:
        """Offsets of the records with times that do not fit 63 bits, ascending."""
        no_offsets = np.zeros(0, np.int64)
        return np.sort(np.concatenate([no_offsets, *self._outside]))

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
        self.tasks = self.reader.known_tasks(self._collector)
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
        listed = min(total, most or total)
        open_rows = self.spans.open_rows(self.reader.rows["slices"], listed)
        offsets = [np.zeros(0, np.int64)]
        for chunk in parts:
            if not open_rows.size:
                break
            events = chunk.events
            first_row = chunk.first["slices"]
            # Often the first ones are all that are listed: most of a chunk need not be looked at.
            for first_event in range(0, events.kind.size, PROBED):
                if not open_rows.size:
                    break
                kinds = events.kind[first_event : first_event + PROBED]
                slices = first_event + np.flatnonzero(are_rows_of("slices", kinds))
                count = int(np.searchsorted(open_rows, first_row + slices.size))
                open_events = slices[open_rows[:count] - first_row]
                offsets.append(events.offset[open_events])
                open_rows = open_rows[count:]
                first_row += slices.size
        return total, np.concatenate(offsets)

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
    def timeline(self) -> Timeline:
        """Events per stretch of time, for the busiest threads."""
        first_time, last_time = self.range
        if self.whole is None or first_time is None or last_time is None:
            return ()
        events = self.whole.events
        tasks = self.tasks
        labels: list[tuple[int, str]] = []
        busiest_threads = busiest(events.thread) if events.thread.size else []
        for thread in busiest_threads:
            name_code = int(tasks.names[thread])
            label = f"{tasks.pids[thread]}/{tasks.tids[thread]}"
            if tasks.gone[thread]:
                label = THREADS.unknown(int(tasks.gone[thread]) - 1)
            elif name_code >= 0:
                label = self.reader.strings[name_code] or label
            labels.append((thread, label))
        return sketch(events.time, events.thread, (first_time, last_time), labels)


class TracePass(EventPass):
    """What one pass over a whole trace finds."""

    reader: RowReader

    @property
    def kinds(self) -> dict[str, int]:
        """Records of each kind, by the names of record JSON."""
        counts: Counter[str] = Counter()
        for number in np.flatnonzero(self.reader.kinds_seen).tolist():
            name = wire.KIND_NAMES.get(number) or _kind_name(*divmod(number, 16))
            counts[name] += int(self.reader.kinds_seen[number])
        return dict(counts)


class CountingPass(TracePass):
    """What a pass finds that neither sorts nor matches events: counts, damage, times."""

    def __init__(self, reader: RowReader, limits: Limits) -> None:
        super().__init__(reader, limits, ordered=False, in_memory=False)

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
    if subtypes is None:
        return name
    return f"{name} {subtypes.get(subtype, subtype)}"
