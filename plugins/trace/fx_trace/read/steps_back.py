"""Steps back: where the times of a thread do, so that its slices cannot be nested in file order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fxframework.kernels.arrays import I64
from fxframework.kernels.nesting import BEGIN, NEVER_ENDS, SPAN
from fxframework.kernels.sorting import begins_of_runs, ends_of_runs, stable_order

EARLIEST = -NEVER_ENDS - 1
LAST_TIME, LAST_BEGIN, LAST_END = range(3)
"""Rows of what is known of each thread: the time of its last event; when the last slice began, and
when that ends, or NEVER_ENDS."""
FEW = 1 << 12
"""Events among which the last one of each thread is looked for before all others."""
ONE_BY_ONE = 16
"""Threads that are looked for on their own: more take longer than all together."""
IS_SLICE = np.isin(np.arange(256), (BEGIN, SPAN))


class StepsBack:
    """Looks for steps back from one batch of events to the next."""

    def __init__(self) -> None:
        self._threads = np.empty((3, 0), np.int64)
        self._latest = EARLIEST
        """The latest time of all threads."""

    def first(
        self,
        what: NDArray[np.uint8],
        threads: NDArray[np.int32],
        times: I64,
        ends: I64 | None,
        thread_count: int,
    ) -> int:
        """Return the first event that is earlier than one before it on its thread; -1 if none is.

        If slices with an end (SPAN) begin together, the longest has to come first, because it
        encloses the others. ``ends`` has the end of each such slice; it is None without them.
        """
        self._make_room(thread_count)
        if self._are_all_later(times, or_equal=ends is None):
            # Nothing steps back, and no slices with an end begin together, so nothing needs to be
            # compared by thread.
            self._keep(threads, what, times, ends, thread_count)
            return -1
        order = stable_order(threads)
        if order is None:
            order = np.arange(threads.size)
        thread = threads[order]
        is_back = np.zeros(threads.size, np.bool_)
        time = times[order]
        is_back[order] = time < self._before(LAST_TIME, thread, time)
        begins = order[IS_SLICE.take(what[order])]
        thread = threads[begins]
        time = times[begins]
        end = ends_of(begins, what, ends)
        is_together = time == self._before(LAST_BEGIN, thread, time)
        is_longer = end > self._before(LAST_END, thread, end)
        is_back[begins] |= (what[begins] == SPAN) & is_together & is_longer
        return int(is_back.argmax()) if is_back.any() else -1

    def _make_room(self, thread_count: int) -> None:
        """Have a place for so many threads."""
        known = self._threads.shape[1]
        if thread_count > known:
            # Twice as many, so that threads which come one by one are not moved each time.
            threads = np.full((3, max(thread_count, 2 * known)), EARLIEST)
            threads[:, :known] = self._threads
            self._threads = threads

    def _are_all_later(self, times: I64, *, or_equal: bool) -> bool:
        """Return whether each event is later than all before it, those of other threads too."""
        before = self._latest
        self._latest = max(before, int(times.max(initial=EARLIEST)))
        is_later = np.greater_equal if or_equal else np.greater
        if not is_later(times[:1], before).all():
            return False
        return bool(is_later(times[1:], times[:-1]).all())

    def _keep(
        self,
        threads: NDArray[np.int32],
        what: NDArray[np.uint8],
        times: I64,
        ends: I64 | None,
        thread_count: int,
    ) -> None:
        """Keep what is known of each thread after its last event, and after its last slice."""
        last = self._last_of_threads(threads, None, thread_count)
        has_event = last >= 0
        self._threads[LAST_TIME, has_event] = times[last[has_event]]
        is_slice = (what == BEGIN) | (what == SPAN)
        if not is_slice.all():
            last = self._last_of_threads(threads, is_slice, thread_count)
        has_slice = last >= 0
        last = last[has_slice]
        self._threads[LAST_BEGIN, has_slice] = times[last]
        self._threads[LAST_END, has_slice] = ends_of(last, what, ends)

    def _last_of_threads(
        self, threads: NDArray[np.int32], mask: NDArray[np.bool_] | None, thread_count: int
    ) -> I64:
        """Return the last event of each thread, given those of events; -1 if it has none.

        With a ``mask``, only events count for which it holds.
        """
        last = np.full(self._threads.shape[1], -1)
        # Mostly nearly all threads are among those of the last few events.
        for first in (max(0, threads.size - FEW), 0):
            some_threads = threads[first:]
            if mask is None:
                # Of events that follow one another on a thread, only the last one can be.
                places = np.flatnonzero(ends_of_runs(some_threads))
            else:
                places = np.flatnonzero(mask[first:])
            np.maximum.at(last, some_threads[places], places + first)
            threads_left = np.flatnonzero(last[:thread_count] < 0)
            if threads_left.size <= ONE_BY_ONE:
                break
        for thread in threads_left.tolist():
            is_of_thread = threads == thread
            if mask is not None:
                is_of_thread &= mask
            last[thread] = np.flatnonzero(is_of_thread).max(initial=-1)
        return last

    def _before(self, number: int, thread: NDArray[np.int32], values: I64) -> I64:
        """Return the value before each one on its thread, and keep the last value of each thread.

        ``values`` are grouped by thread.
        """
        before = np.empty_like(values)
        before[1:] = values[:-1]
        is_first = begins_of_runs(thread)
        before[is_first] = self._threads[number, thread[is_first]]
        is_last = ends_of_runs(thread)
        self._threads[number, thread[is_last]] = values[is_last]
        return before


def ends_of(begins: I64, what: NDArray[np.uint8], ends: I64 | None) -> I64:
    """Return when the slices that some events begin end: NEVER_ENDS if an end event has to come."""
    if ends is None:
        return np.full(begins.size, NEVER_ENDS)
    return np.where(what[begins] == SPAN, ends[begins], NEVER_ENDS)
