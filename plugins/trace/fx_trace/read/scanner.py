"""The scanner: runs the scan over a file, and gives its rows in chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_trace import numbers as n
from fx_trace.read.scan import Scan
from fxframework.io.limits import Limits
from fxframework.io.words import U64_MAX
from fxframework.kernels.buffers import view
from fxframework.kernels.notes import Notes
from fxframework.model.clock import Clock
from fxframework.model.strings import StringPool

__all__ = ["Chunk", "Scanner"]

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]
U8 = NDArray[np.uint8]
WINDOW_WORDS = 1 << 22
"""Words after which the file's pages are released."""
FIRST_WORDS = 1 << 17
"""Words read before the capacity for a whole file is estimated."""
FEW = 1 << 10
"""Rows that need no estimate."""


class Events(NamedTuple):
    """Event rows (``EventRows``), each of shape (rows,)."""

    kind: U8
    thread: I32
    category: I32
    name: I32
    offset: I64
    ticks: I64
    word: I64


class Args(NamedTuple):
    """Argument rows (``ArgRows``)."""

    table: U8
    type: U8
    name: I32
    parent: I64
    offset: I64
    value: I64


class Sched(NamedTuple):
    """Scheduling rows (``SchedRows``)."""

    kind: U8
    state: U8
    cpu: I32
    prev_priority: I32
    next_priority: I32
    offset: I64
    ticks: I64
    prev: I64
    next: I64


class Logs(NamedTuple):
    """Log rows (``LogRows``)."""

    thread: I32
    offset: I64
    ticks: I64
    start: I64
    length: I64


class Blobs(NamedTuple):
    """Blob rows (``BlobRows``)."""

    type: U8
    name: I32
    offset: I64
    start: I64
    length: I64


class Objects(NamedTuple):
    """Object rows (``ObjectRows``)."""

    kind: U8
    type: U8
    name: I32
    offset: I64
    value: I64
    pid: I64


class Profiler(NamedTuple):
    """Profiler rows (``ProfilerRows``)."""

    kind: U8
    thread: I32
    module: I32
    name: I32
    build_id: I32
    flags: I32
    offset: I64
    ticks: I64
    pid: I64
    address: I64
    size: I64
    vaddr: I64
    start: I64
    length: I64


class Counters(NamedTuple):
    """The event and the argument of each counter row, within the chunk (``CounterRows``)."""

    event: I64
    arg: I64


class Annotations(NamedTuple):
    """Arguments, within the chunk, that an object annotates, and its name (``NoteRows``)."""

    arg: I64
    name: I64


@attrs.define
class Chunk:
    """Raw rows of consecutive records."""

    events: Events
    args: Args
    sched: Sched
    logs: Logs
    blobs: Blobs
    objects: Objects
    profiler: Profiler
    counters: Counters
    annotations: Annotations
    segments: I64
    """Shape (n, 5): clock, and the rows of events, sched, logs and profiler from which it holds."""
    first: dict[str, int]
    """By table, and of `ends`: the row of the chunk's first one."""


class Scanner:
    """Runs ``Scan`` over a file, from its beginning, once."""

    def __init__(self, words: I64, streams: I64, pool: StringPool, limits: Limits) -> None:
        self.pool = pool
        self.nbytes = words.nbytes
        self.notes = Notes(n.CODES, limits.max_findings)
        pool.pool.read_from(view(streams, "i8"))
        self.scan = Scan(words, streams, streams.view(np.uint8), pool.pool, self.notes)
        self.scan.max_string = limits.max_string
        self.scan.max_record = limits.max_record

    @property
    def position(self) -> int:
        """Bytes read so far."""
        return 8 * self.scan.pos

    @property
    def kinds(self) -> I64:
        """Records of each kind: by 16 * type + subtype, and by the numbers of ``scan``."""
        return np.asarray(self.scan.kinds)

    def seen(self, *kinds: int) -> int:
        """Events of these types so far."""
        return sum(int(self.scan.kinds[16 * n.RECORD_EVENT + kind]) for kind in kinds)

    @property
    def rows(self) -> dict[str, int]:
        """Rows so far, by table, and of `ends`."""
        scan = self.scan
        return {
            "slices": scan.slices,
            "instants": scan.instants,
            "counters": scan.counter_rows,
            "flows": scan.flows,
            "sched": scan.sched_rows,
            "logs": scan.log_rows,
            "args": scan.arg_rows,
            "blobs": scan.blob_rows,
            "trace_objects": scan.object_rows,
            "trace_profiler": scan.profiler_rows,
            "ends": scan.ends,
        }

    def clocks(self) -> list[Clock]:
        """The clocks in force so far, by number; 0 counts nanoseconds."""
        rows = self.scan.providers.clocks.filled()
        return [
            Clock(rate & U64_MAX, base & U64_MAX, None if wall == -1 else wall & U64_MAX)
            for rate, base, wall in zip(
                rows["rate"].tolist(), rows["base"].tolist(), rows["wall"].tolist(), strict=True
            )
        ]

    def chunks(self, events: int) -> Iterator[Chunk]:
        """Read on, giving chunks of up to about that many events, to the end of the file."""
        self.scan.most = events
        while self.position < self.nbytes:
            first = self.rows
            self._run(self.nbytes // 8)
            yield self._take(first)

    def whole(self, release: Callable[[int, int], None]) -> Chunk:
        """Read the whole file into one chunk; ``release`` is called with bytes that are done."""
        scan, first = self.scan, self.rows
        total = self.nbytes // 8
        done = min(FIRST_WORDS, total)
        self._run(done)
        if done < total:
            # The rest is likely to be as dense as its beginning was.
            scale = 1.05 * total / max(done, 1)
            for rows in (scan.events, scan.args, scan.sched, scan.logs, scan.blobs, scan.profiler):
                if rows.rows > FEW:
                    rows.resize(min(int(scale * rows.rows) + 4096, total // 2 + 64 + rows.rows))
        while done < total:
            before, done = done, min(done + WINDOW_WORDS, total)
            self._run(done)
            release(8 * before, 8 * done)
        return self._take(first)

    def _run(self, limit: int) -> bool:
        """Read the records that begin before word ``limit``; False where rows are to be taken."""
        self.scan.limit = limit
        return bool(self.scan.run())

    def _take(self, first: dict[str, int]) -> Chunk:
        """What was filled since the last time."""
        scan, providers = self.scan, self.scan.providers
        segments = np.column_stack(list(providers.segments.taken(16).values()))
        chunk = Chunk(
            events=Events(**scan.events.taken()),
            args=Args(**scan.args.taken()),
            sched=Sched(**scan.sched.taken()),
            logs=Logs(**scan.logs.taken()),
            blobs=Blobs(**scan.blobs.taken()),
            objects=Objects(**scan.objects.taken()),
            profiler=Profiler(**scan.profiler.taken()),
            counters=Counters(**scan.counters.taken()),
            annotations=Annotations(**scan.annotations.taken()),
            segments=segments,
            first=first,
        )
        if providers.clock:
            # The clock in force goes on into the next chunk.
            providers.go_on()
        return chunk
