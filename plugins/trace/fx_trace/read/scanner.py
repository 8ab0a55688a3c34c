"""The scanner: runs the scan over a file, and gives its rows in chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_trace import numbers as n
from fx_trace import rules
from fx_trace.read.scan import Scan
from fxframework.io.limits import Limits
from fxframework.io.words import U64_MAX
from fxframework.kernels.buffers import view
from fxframework.kernels.notes import Notes
from fxframework.model.clock import Clock
from fxframework.model.strings import StringPool

__all__ = ["Chunk", "Scanner"]

I64 = NDArray[np.int64]
WINDOW_WORDS = 1 << 22
"""Words after which the file's pages are released."""
FIRST_WORDS = 1 << 17
"""Words read before the capacity for a whole file is estimated."""
FEW = 1 << 10
"""Rows that need no estimate."""


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


class Scanner:
    """Runs ``Scan`` over a file, from its beginning, once."""

    def __init__(self, words: I64, streams: I64, pool: StringPool, limits: Limits) -> None:
        self.pool = pool
        self.nbytes = words.nbytes
        self.notes = Notes(rules.RULES.numbers, limits.max_findings)
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
        """Return the number of events of these types so far."""
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
        """Return the clocks in force so far, by number; 0 counts nanoseconds."""
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
