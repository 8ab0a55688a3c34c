"""The first pass over a trace: its events matched, a part at a time, and what was found of all.

The kernel ``match.py`` makes the rows; here they are taken of it, and counted.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_xray.format import ARGUMENT, SIGN
from fx_xray.read.events import array, distinct
from fx_xray.read.log import Log
from fx_xray.read.match import Match, OpenCalls
from fx_xray.read.timeline import EventBuffer
from fx_xray.rules import RULES
from fxframework.io import arena
from fxframework.io.limits import Limits
from fxframework.io.temporary import TemporaryFile, reserve
from fxframework.kernels.maps import CountMap
from fxframework.kernels.notes import Notes
from fxframework.kit.scanned import FirstPass, Timeline, busiest, sketch
from fxframework.model.clock import NS_MAX, NS_PER_SECOND

__all__ = ["CallPass", "Matcher", "Rows", "Spans"]

I64 = NDArray[np.int64]
COUNTED = 1 << 17
"""Function ids below this are counted in a table, others in a map."""
FEW = 1 << 16
"""Ids of functions that are gathered at once."""
IN_MEMORY = 1 << 30
"""Bytes of one column that stay in memory; a longer one goes to a file."""


class Spans(NamedTuple):
    """Columns of `slices` that are known when a call is left, by row."""

    ticks: I64
    """-1 of a call that was not left."""
    exit: NDArray[np.uint8]


@attrs.frozen
class Rows:
    """Raw columns of some rows of each table, and where they begin in the whole tables.

    The columns are those of the classes of these names in ``match.py``.
    """

    slices: dict[str, NDArray[Any]]
    instants: dict[str, NDArray[Any]]
    args: dict[str, NDArray[Any]]
    first: dict[str, int]


class Matcher:
    """Makes calls of the events of a log, from its first one on.

    ``spans`` are those that an earlier matcher of the same log filled. Where there are none, they
    are filled, and findings noted.
    """

    def __init__(self, log: Log, limits: Limits, spans: Spans | None = None) -> None:
        self._log = log
        again = spans is not None
        self.notes = Notes(RULES.numbers, limits.max_findings if spans is None else 1)
        if spans is None:
            spans = Spans(_spilled(log.entries, np.int64), _spilled(log.entries, np.uint8))
        self.spans = spans
        self._match = Match(
            EventBuffer(0),
            self.notes,
            spans.ticks.data,
            spans.exit.data,
            threads=max(log.pids.size, 1),
            counted=min(COUNTED, max(16, log.nbytes // 16)),
            max_depth=limits.max_depth or 1 << 62,
            again=again,
        )

    @property
    def range(self) -> tuple[int, int] | None:
        """The least and the greatest time of an event so far, in ticks."""
        low, high = self._match.low - SIGN, self._match.high - SIGN
        return (low, high) if low <= high else None

    @property
    def unmatched_exits(self) -> int:
        """Exits of calls that were not open."""
        return int(self._match.unmatched)

    @property
    def unwound(self) -> int:
        """Calls that ended with the one around them."""
        return int(self._match.unwound)

    @property
    def counted(self) -> dict[str, int]:
        """Rows of each table up to those that were taken or forgotten last."""
        match = self._match
        return {
            "slices": match.slices.first,
            "instants": match.instants.first,
            "args": match.args.first,
        }

    def add(self, events: EventBuffer) -> None:
        """Match these events too; their rows stay here until they are taken."""
        match, count = self._match, events.rows
        left = self._log.entries - match.slices.first
        wanted = min(match.slices.rows + count, left)
        if match.slices.room < wanted:
            match.slices.resize(min(max(wanted, 2 * match.slices.rows), left))
        used = match.instants.rows
        if match.instants.room < used + count:
            match.instants.resize(max(used + 2 * count, 3 * used // 2))
        used = match.args.rows
        if match.args.room < used + 2 * count:
            match.args.resize(max(used + 4 * count, 3 * used // 2))
        match.events = events
        match.run()

    def add_all(self) -> None:
        """Match all events of the log, before any other."""
        self._match.slices.resize(self._log.entries)
        self._match.open.adopt(self._match.slices)
        for events in self._log.chunks():
            self.add(events)

    def exited(self) -> I64:
        """Functions with unmatched exits since rows were taken last, ascending, shape (n,)."""
        rows = self._match.instants.filled()
        return distinct(rows["function"][rows["kind"] < ARGUMENT])

    def beyond(self, bound: int) -> I64:
        """Return the byte offsets of rows since the last time that are beyond ``bound`` ticks."""
        found = [np.zeros(0, np.int64)]
        if self.range is not None and self.range[1] > bound:
            for rows in (self._match.slices, self._match.instants):
                columns = rows.filled()
                found.append(columns["offset"][columns["ticks"].view(np.uint64) > np.uint64(bound)])
        return np.concatenate(found)

    def take(self) -> Rows:
        """Return the rows since the last time."""
        match, first = self._match, self.counted
        return Rows(match.slices.taken(0), match.instants.taken(0), match.args.taken(0), first)

    def forget(self) -> None:
        """Forget the rows since the last time, but for how many there were."""
        for rows in (self._match.slices, self._match.instants, self._match.args):
            rows.first += rows.rows
            rows.rows = 0

    def end(self) -> tuple[I64, I64, I64]:
        """Forget what only further events would need; return what it says at last.

        These are function ids, ascending, and how many entries each has; and the byte offsets of
        the entries of the calls that are open, ascending.
        """
        match = self._match
        offsets = np.empty(int(array(match.open.depth).sum()), np.int64)
        match.open.list_offsets(offsets.data)
        offsets.sort()
        match.open = OpenCalls(0)
        counts = array(match.counts)
        ids = np.flatnonzero(counts)
        far, far_counts = match.far_counts.items()
        match.far_counts = CountMap()
        return np.concatenate((ids, far)), np.concatenate((counts[ids], far_counts)), offsets


class CallPass(FirstPass[Rows]):
    """What one pass over all events found."""

    def __init__(self, log: Log, frequency: int, limits: Limits, *, whole: bool) -> None:
        self.log = log
        self.frequency = frequency
        """Ticks per second; 0 not known."""
        self.matcher = matcher = Matcher(log, limits)
        self._most = limits.max_findings or NS_MAX
        self.first_outside = np.zeros(0, np.int64)
        """The first byte offsets of rows whose time is beyond int64 nanoseconds, as many as may be
        reported."""
        self.outside = 0
        """How many such rows there are."""
        frequency = frequency or NS_PER_SECOND
        bound = ((NS_MAX + 1) * frequency - 1) // NS_PER_SECOND
        if whole:
            matcher.add_all()
            exited = [self._settle(bound)]
            self.whole = matcher.take()
        else:
            exited = [np.zeros(0, np.int64)]
            for events in log.chunks():
                matcher.add(events)
                exited.append(self._settle(bound))
                if sum(map(len, exited[1:])) > max(len(exited[0]), FEW):
                    exited = [distinct(*exited)]
                matcher.forget()
        ids, calls, offsets = matcher.end()
        self.open_calls = int(offsets.size)
        self.first_open = offsets[: self._most].copy()
        """The first byte offsets of calls that are open at the end, as many as may be reported."""
        del offsets
        every = distinct(ids, *exited)
        counts = np.zeros(every.size, np.int64)
        counts[np.searchsorted(every, ids)] = calls
        self.functions: tuple[I64, I64] = every, counts
        """Ids of all functions, ascending, and how often each was entered."""

    def _settle(self, bound: int) -> I64:
        """Look at the rows that there are now; return the functions with unmatched exits."""
        beyond = self.matcher.beyond(bound)
        self.outside += beyond.size
        self.first_outside = np.sort(np.append(self.first_outside, beyond))[: self._most]
        return self.matcher.exited()

    @property
    def notes(self) -> list[Notes]:
        """Those of the scan and of the match."""
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
        start, end = (
            min(ticks * NS_PER_SECOND // frequency, NS_MAX) for ticks in self.matcher.range
        )
        return start, end

    @property
    def timeline(self) -> Timeline:
        """Calls per stretch of time, for the busiest threads."""
        if self.whole is None or self.matcher.range is None:
            return ()
        slices, log = self.whole.slices, self.log
        labels = [
            (thread, f"{int(log.pids[thread])}/{int(log.tids[thread])}")
            for thread in busiest(slices["thread"])
        ]
        ticks = slices["ticks"].view(np.uint64)
        return sketch(ticks, slices["thread"], self.matcher.range, labels)


def _spilled(size: int, dtype: type) -> NDArray[Any]:
    """Return an array in memory, or where it is very large in a file."""
    if size * np.dtype(dtype).itemsize <= IN_MEMORY:
        return arena.empty(size, dtype)
    with TemporaryFile() as file:
        reserve(file.fileno(), size * np.dtype(dtype).itemsize)
        return np.memmap(file, dtype, "r+", shape=(size,))
