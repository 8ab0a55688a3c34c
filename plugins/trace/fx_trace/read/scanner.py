"""The scanner: runs the scan over a file, and gives its rows in chunks, with their times."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_trace import format as wire
from fx_trace import rules
from fx_trace.read.scan import Scan
from fxframework.io.limits import Limits
from fxframework.io.words import U64_MAX
from fxframework.kernels.behind import Behind
from fxframework.kernels.buffers import view
from fxframework.kernels.rows import Notes
from fxframework.model.clock import NS_MAX, NS_MIN, NS_PER_SECOND, Clock
from fxframework.model.strings import StringPool

__all__ = [
    "EVENTS", "EVENTS_OF", "LOGS", "PROFILER", "SCHED", "Chunk", "Scanner", "TimedChunk", "Times",
]  # fmt: skip

I64 = NDArray[np.int64]
WINDOW_WORDS = 1 << 19
"""Words of a stretch; its events are matched while the next one is read."""
FIRST_WORDS = 1 << 17
"""Words read before the capacity for a whole file is estimated."""
FEW = 1 << 10
"""Rows that need no estimate."""
MOST_STRINGS = 1 << 20
"""Strings that there is room for by an estimate."""
EVENTS_OF = {
    "slices": (wire.EVENT_DURATION_BEGIN, wire.EVENT_DURATION_COMPLETE, wire.EVENT_ASYNC_BEGIN),
    "instants": (wire.EVENT_INSTANT, wire.EVENT_ASYNC_INSTANT),
    "flows": (wire.EVENT_FLOW_BEGIN, wire.EVENT_FLOW_STEP, wire.EVENT_FLOW_END),
    "ends": (wire.EVENT_DURATION_END, wire.EVENT_ASYNC_END),
}
"""By table, and of `ends`: the types of its events."""


class Filled(SimpleNamespace):
    """Filled rows of a class of ``fx_trace.read.rows``: its columns, each of shape (rows,)."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> NDArray[Any]: ...


@attrs.define
class Chunk:
    """Raw rows of consecutive records."""

    events: Filled
    args: Filled
    sched: Filled
    logs: Filled
    blobs: Filled
    objects: Filled
    profiler: Filled
    counters: Filled
    """The event and the argument of each row, within the chunk."""
    annotations: Filled
    """Arguments, within the chunk, and the names of the objects that they mean."""
    segments: I64
    """Shape (n, 5): clock, and the rows of events, sched, logs and profiler from which it holds."""
    first: dict[str, int]
    """By table, and of `ends`: the row of the chunk's first one."""


@attrs.frozen
class Stretch:
    """The events of a stretch of the file, to be matched while the scan goes on behind it."""

    events: Mapping[str, NDArray[Any]]
    """The columns of ``EventRows``, which the scan does not touch any more."""
    clocks: ClocksInForce
    complete: bool
    """Whether there have been complete events."""
    rows: Mapping[str, int]
    """Rows so far, by table, and of `ends`."""
    room: int
    """Events that the scan has room for."""
    pids: I64
    """Of the threads met so far."""
    unnamed: NDArray[np.int64]
    """Codes of texts that stand for unknown strings; empty where they are those of before."""


class Scanner:
    """Runs ``Scan`` over a file, from its beginning, once."""

    def __init__(self, words: I64, streams: I64, pool: StringPool, limits: Limits) -> None:
        self.pool = pool
        self.nbytes = words.nbytes
        self.notes = Notes(rules.RULES.numbers, limits.max_findings)
        pool.pool.read_from(view(streams, "i8"))
        self.scan = Scan(words, streams, streams.view(np.uint8), pool.pool, self.notes)
        self.scan.max_string = limits.max_string
        self.scan.bounds.max_record = limits.max_record
        self._known_unnamed = 0

    @property
    def position(self) -> int:
        """Bytes read so far."""
        return 8 * self.scan.pos

    @property
    def kinds(self) -> I64:
        """Records of each kind: by 16 * type + subtype, and by the numbers of ``scan``."""
        return np.asarray(self.scan.kinds)

    def seen(self, *kinds: int) -> int:
        """Return the number of events of these types so far."""
        return sum(int(self.scan.kinds[16 * wire.RECORD_EVENT + kind]) for kind in kinds)

    @property
    def rows(self) -> dict[str, int]:
        """Rows so far, by table, and of `ends`."""
        scan = self.scan
        return {
            "counters": scan.counter_rows,
            "sched": scan.sched_rows,
            "logs": scan.log_rows,
            "args": scan.arg_rows,
            "blobs": scan.blob_rows,
            "trace_objects": scan.object_rows,
            "trace_profiler": scan.profiler_rows,
            **{table: self.seen(*kinds) for table, kinds in EVENTS_OF.items()},
        }

    def clocks(self) -> list[Clock]:
        """Return the clocks in force so far, by number; 0 counts nanoseconds."""
        rows = self.scan.providers.clocks.filled()
        columns = (rows[name].tolist() for name in ("rate", "base", "wall"))
        return [_clock(*each) for each in zip(*columns, strict=True)]

    def chunks(self, events: int) -> Iterator[Chunk]:
        """Read on, giving chunks of up to about that many events, to the end of the file."""
        self.scan.most = events
        while self.position < self.nbytes:
            first = self.rows
            self._run(self.nbytes // 8)
            yield self._take(first)

    def whole(
        self,
        release: Callable[[int, int], None],
        follow: Callable[[Stretch], None],
        behind: Behind,
    ) -> Chunk:
        """Read the whole file into one chunk.

        ``release`` is called with bytes that are done, ``follow``, ``behind`` the scan, with the
        events of each stretch.
        """
        scan, first = self.scan, self.rows
        total = self.nbytes // 8
        before, done, row = 0, min(FIRST_WORDS, total), 0
        self._run(done // 2)
        pool = self.pool.pool
        strings, words = pool.count, pool.filled
        self._run(done)
        if done < total:
            # The rest is likely to be as dense as its beginning was.
            scale = 1.05 * total / done
            for rows in (scan.events, scan.args, scan.sched, scan.logs, scan.blobs, scan.profiler):
                if rows.rows > FEW:
                    rows.resize(min(int(scale * rows.rows) + 4096, total // 2 + 64 + rows.rows))
            # Of new strings, the second half of it: those that the first one has may be all.
            strings, words = 2 * (pool.count - strings), 2 * (pool.filled - words)
            if strings > FEW:
                strings = min(int(scale * strings), MOST_STRINGS)
                pool.reserve(strings, min(int(scale * words), 4 * MOST_STRINGS))
        while True:
            behind.do(follow, self._stretch(row))
            row = scan.events.rows
            release(8 * before, 8 * done)
            if done == total:
                return self._take(first)
            before, done = done, min(done + WINDOW_WORDS, total)
            self._run(done)

    def _stretch(self, row: int) -> Stretch:
        """Return the events from ``row`` on, and what matching needs to know of the others."""
        scan, providers = self.scan, self.scan.providers
        segments, clocks = providers.segments.filled(), providers.clocks.filled()
        begin = max(int(np.searchsorted(segments["events"], row, "right")) - 1, 0)
        numbers = segments["clock"][begin:]
        starts = np.maximum(segments["events"][begin:] - row, 0)
        return Stretch(
            events={name: column[row:] for name, column in scan.events.filled().items()},
            clocks=ClocksInForce(
                np.column_stack((numbers, starts)),
                {
                    number: _clock(int(clocks["rate"][number]), int(clocks["base"][number]), -1)
                    for number in {0, *numbers.tolist()}
                },
                small=not scan.large_ticks,
            ),
            complete=bool(self.seen(wire.EVENT_DURATION_COMPLETE)),
            rows=self.rows,
            room=scan.events.room,
            pids=providers.known.filled()["pid"],
            unnamed=self.unnamed(),
        )

    def unnamed(self) -> I64:
        """Return the codes of texts that stand for unknown strings, if there are new ones."""
        codes = self.scan.providers.unnamed
        if len(codes) == self._known_unnamed:
            return np.zeros(0, np.int64)
        self._known_unnamed = len(codes)
        return np.asarray(codes.first)[np.asarray(codes.value) >= 0]

    def _run(self, limit: int) -> bool:
        """Read the records that begin before word ``limit``; False where rows are to be taken."""
        self.scan.limit = limit
        return bool(self.scan.run())

    def _take(self, first: dict[str, int]) -> Chunk:
        """Return what was filled since the last time."""
        scan, providers = self.scan, self.scan.providers
        segments = np.column_stack(list(providers.segments.taken(16).values()))
        chunk = Chunk(
            events=Filled(**scan.events.taken()),
            args=Filled(**scan.args.taken()),
            sched=Filled(**scan.sched.taken()),
            logs=Filled(**scan.logs.taken()),
            blobs=Filled(**scan.blobs.taken()),
            objects=Filled(**scan.objects.taken()),
            profiler=Filled(**scan.profiler.taken()),
            counters=Filled(**scan.counters.taken()),
            annotations=Filled(**scan.annotations.taken()),
            segments=segments,
            first=first,
        )
        if providers.clock:
            # The clock in force goes on into the next chunk.
            providers.go_on()
        return chunk


# --- Times of a chunk ----------------------------------------------------------------------------
EVENTS, SCHED, LOGS, PROFILER = 1, 2, 3, 4
"""Columns of ``Chunk.segments``."""


def _clock(rate: int, base: int, wall: int) -> Clock:
    return Clock(rate & U64_MAX, base & U64_MAX, None if wall == -1 else wall & U64_MAX)


@attrs.frozen
class ClocksInForce:
    """Clocks by number, and the rows from which each holds, as ``Chunk.segments`` has them."""

    segments: I64
    clocks: Mapping[int, Clock]
    small: bool
    """Whether no tick count has bit 63 set."""

    def ns(self, ticks: I64, field: int) -> tuple[I64, int]:
        """Return times in ns, of the same shape, and how many of them do not fit 63 bits.

        They are ``ticks`` where a single clock counts ns and no tick has bit 63 set.
        """
        unsigned = ticks.view(np.uint64)
        parts = self.parts(ticks.size, field)
        if len(parts) == 1:
            only = self.clocks[parts[0][0]]
            return (ticks, 0) if self.small and only.is_identity else only.to_ns(unsigned)
        out = np.empty(ticks.size, np.int64)
        lost = 0
        for clock, start, stop in parts:
            out[start:stop], missed = self.clocks[clock].to_ns(unsigned[start:stop])
            lost += missed
        return out, lost

    def parts(self, rows: int, field: int) -> list[tuple[int, int, int]]:
        """(clock, first row, row after the last), empty ones left out; at least one."""
        clocks = [0, *self.segments[:, 0].tolist()]
        starts = [0, *self.segments[:, field].tolist()]
        stops = [*starts[1:], rows]
        parts = [part for part in zip(clocks, starts, stops, strict=True) if part[1] < part[2]]
        return parts or [(0, 0, rows)]


class Times:
    """The times of a chunk; ``events`` are those of events, and how many are lost, if known."""

    def __init__(
        self, chunk: Chunk, clocks: ClocksInForce, events: tuple[I64, int] | None = None
    ) -> None:
        self._chunk = chunk
        self._clocks = clocks
        self.events, self.lost = events or clocks.ns(chunk.events.ticks, EVENTS)

    def may_be_lost(self) -> bool:
        """Return whether a time of any row may not fit 63 bits.

        True where one of an event does not.
        """
        if self.lost or not self._clocks.small:
            return True
        clocks = self._clocks.clocks.values()
        slowest = min(clock.ticks_per_second for clock in clocks)
        bound = NS_MAX * slowest // NS_PER_SECOND
        farthest = max(clock.base_ticks for clock in clocks)
        rows = (self._chunk.sched.ticks, self._chunk.logs.ticks, self._chunk.profiler.ticks)
        return any(ticks.size and max(int(ticks.max()), farthest) > bound for ticks in rows)

    def by_clock(self, *columns: list[int]) -> Iterator[NDArray[np.uint64]]:
        """For each column, given by clock, its value for each event, shape (events,)."""
        for column in columns:
            rows = self._chunk.events.ticks.size
            parts = self._clocks.parts(rows, EVENTS)
            if len(parts) == 1:
                yield np.broadcast_to(np.uint64(column[parts[0][0]]), rows)
                continue
            out = np.empty(rows, np.uint64)
            for clock, start, stop in parts:
                out[start:stop] = column[clock]
            yield out

    def finish(self) -> I64:
        """Ends of complete events, shape (events,); other rows mean nothing."""
        return self._clocks.ns(self._chunk.events.word, EVENTS)[0]

    def outside(self, ticks: I64, field: int) -> NDArray[np.bool_]:
        """Return which times of a table, of shape (rows,), do not fit 63 bits."""
        unsigned, out = ticks.view(np.uint64), np.zeros(ticks.size, np.bool_)
        for number, start, stop in self._clocks.parts(ticks.size, field):
            clock, rows = self._clocks.clocks[number], unsigned[start:stop]
            first, behind = clock.ticks(NS_MIN), clock.ticks(NS_MAX + 1)
            if first > 0:
                out[start:stop] |= rows < np.uint64(first)
            if behind <= U64_MAX:
                out[start:stop] |= rows >= np.uint64(behind)
        return out

    def sched(self) -> I64:
        """Return the times of scheduling rows."""
        return self._clocks.ns(self._chunk.sched.ticks, SCHED)[0]

    def logs(self) -> I64:
        """Return the times of log rows."""
        return self._clocks.ns(self._chunk.logs.ticks, LOGS)[0]

    def profiler(self) -> I64:
        """Return the times of profiler rows."""
        return self._clocks.ns(self._chunk.profiler.ticks, PROFILER)[0]


@attrs.frozen
class TimedChunk:
    """The raw rows of consecutive records, and their times."""

    chunk: Chunk
    times: Times
