"""The first pass over a trace: its events matched, a part at a time, and what was found of all."""

from __future__ import annotations

import numpy as np

from fx_xray.read.log import Log
from fx_xray.read.match import Matcher, Rows, beyond
from fxframework.io.limits import Limits
from fxframework.kernels.arrays import I64
from fxframework.kit.scanned import FirstPass, Notes, Timeline, busiest, sketch
from fxframework.model.clock import NS_MAX, NS_PER_SECOND


class CallPass(FirstPass[Rows]):
    """What one pass over all events found."""

    def __init__(self, log: Log, frequency: int, limits: Limits, *, whole: bool) -> None:
        self.log = log
        self.frequency = frequency
        """Ticks per second; 0 not known."""
        self.matcher = Matcher(log, limits)
        matcher = self.matcher
        self._most = limits.max_findings or NS_MAX
        self.first_outside = np.zeros(0, np.int64)
        """The first byte offsets of rows whose time is beyond int64 nanoseconds, as many as may be
        reported."""
        self.outside = 0
        """How many such rows there are."""
        frequency = frequency or NS_PER_SECOND
        bound = ((NS_MAX + 1) * frequency - 1) // NS_PER_SECOND
        if whole:
            self.whole = matcher.all_rows()
            self._settle(self.whole, bound)
        else:
            for events in log.chunks():
                self._settle(matcher.rows_of(events), bound)
        *functions, open_offsets = matcher.end()
        self.open_calls = int(open_offsets.size)
        self.first_open = open_offsets[: self._most].copy()
        """The first byte offsets of calls that are open at the end, as many as may be reported."""
        self.functions: list[I64] = functions
        """Ids of all functions, ascending, how often each was entered, and the byte offset of its
        first event."""

    def _settle(self, rows: Rows, bound: int) -> None:
        """Look for times beyond ``bound``."""
        if self.matcher.range is None or self.matcher.range[1] <= bound:
            return
        late = beyond(rows, bound)
        self.outside += late.size
        self.first_outside = np.sort(np.append(self.first_outside, late))[: self._most]

    @property
    def notes(self) -> list[Notes]:
        """Those of the log and of the match."""
        return [each for each in (self.log.notes, self.matcher.notes) if each is not None]

    @property
    def records(self) -> int:
        """Records in the file."""
        return self.log.records

    @property
    def kinds(self) -> dict[str, int]:
        """Records of each kind, by the names of record JSON."""
        return self.log.kinds

    @property
    def rows(self) -> dict[str, int]:
        """Rows of each table."""
        log = self.log
        return {
            "processes": int(np.unique(log.pids).size),
            "threads": int(log.pids.size),
            **self.matcher.counted,
            "xray_buffers": 0 if log.buffers is None else log.buffers["offset"].size,
            "xray_functions": int(self.functions[0].size),
        }

    @property
    def range(self) -> tuple[int | None, int | None]:
        """The first and the last time of the capture in nanoseconds; None where it has none."""
        if self.matcher.range is None:
            return None, None
        frequency = self.frequency or NS_PER_SECOND
        first, last = (ticks * NS_PER_SECOND // frequency for ticks in self.matcher.range)
        return min(first, NS_MAX), min(last, NS_MAX)

    @property
    def timeline(self) -> Timeline:
        """Calls per stretch of time, for the busiest threads."""
        if self.whole is None or self.matcher.range is None:
            return ()
        slices = self.whole.slices
        log = self.log
        threads = busiest(slices["thread"])
        labels = [(thread, f"{log.pids[thread]}/{log.tids[thread]}") for thread in threads]
        ticks = slices["ticks"].view(np.uint64)
        return sketch(ticks, slices["thread"], self.matcher.range, labels)
