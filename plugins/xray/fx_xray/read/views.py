"""What belongs to the rows of a view: its calls and events, matched as the tables match them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fx_xray.format import ARGUMENT, CUSTOM
from fx_xray.read.capture import EventCapture
from fx_xray.read.columns import latest
from fx_xray.read.events import Events, picked
from fx_xray.read.match import WHAT
from fxframework.kernels.arrays import I64, U64, Bools
from fxframework.kernels.nesting import BEGIN, END, Nesting
from fxframework.kernels.stacks import Stacks
from fxframework.model.capture import Capture, View, under_views
from fxframework.model.rows import RowMarks
from fxframework.model.skipped import SkippedSlices


def has_events(capture: Capture) -> bool:
    """Return whether it is of a format of this plugin."""
    return isinstance(under_views(capture), EventCapture)


def whole_of(capture: Capture) -> EventCapture:
    """Return the capture under all views, which has events."""
    event_capture = under_views(capture)
    assert isinstance(event_capture, EventCapture)  # noqa: S101 (asked of captures that have them)
    return event_capture


class Matched(NamedTuple):
    """For each event of a batch, the call that it begins, ends or is in, by columns."""

    depths: I64
    """Number of calls that enclose that call, or the event."""
    entered: U64
    """Entry time, in ticks, of the call that an exit ends."""
    ended: Bools
    """Whether the event is an exit that ends a call."""
    stacks: I64
    """Number of the stack of the call that the event begins or ends; -1 for other events."""
    shown: Bools
    """Whether the event belongs to the view."""
    inner: Mapping[str, NDArray[Any]]
    """Calls that an exit ends before its own, innermost first: ``place`` of the exit, ``function``,
    whether they are ``shown``, and with stacks their ``stack``."""


class Calls:
    """Matches exits and calls as the tables do: by thread, in the order of records.

    For a view, only events that belong to its rows of `slices` and `instants` are shown. Stacks
    deeper than the capture's ``max_depth`` have the number of the stack at that depth. Without
    ``stacks``, those of all events are -1.
    """

    def __init__(self, capture: Capture, *, stacks: bool = False) -> None:
        threads = len(whole_of(capture).event_threads()[0])
        self.nesting = Nesting(threads, values=2)
        self._stacks = Stacks(capture.request.limits.max_depth) if stacks else None
        self.unmatched = 0
        """Number of shown exits without a call."""
        self._calls = 0
        self._instants = 0
        self._kept: tuple[RowMarks, RowMarks] | None = None
        self._skipped: SkippedSlices | None = None
        self._excluded_stacks: set[int] = set()
        """Stacks whose function is excluded: what is called there has the stack below."""
        if isinstance(capture, View):
            self._kept = capture.rows_kept("slices"), capture.rows_kept("instants")
            self._skipped = capture.skipped

    @property
    def stacks(self) -> Iterator[tuple[int, int, int]]:
        """Number, function, and number of the stack below it (-1: none), of each stack."""
        if self._stacks is None:
            return
        # Views of memory: a list of so many numbers would take five times as much.
        functions = self._stacks.names.data
        parents = self._stacks.below.data
        for number, function in enumerate(functions):
            if number in self._excluded_stacks:
                continue
            parent = parents[number]
            while parent in self._excluded_stacks:
                parent = parents[parent]
            yield number, function, parent

    def match(self, batch: Any) -> Matched:
        """Match the next batch: ``events.Events``, or a ``Batch`` without arguments."""
        nesting = self.nesting
        kind = batch.kind
        nesting_kinds = WHAT[kind]
        begin_rows = np.flatnonzero(nesting_kinds == BEGIN)
        shown = np.ones(kind.size, np.bool_)
        if self._kept is not None:
            shown[begin_rows] = self._kept[0].among(self._calls, begin_rows.size)
        ticks = np.ascontiguousarray(batch.tsc).view(np.int64)
        ticks_and_shown = np.stack((ticks, shown), axis=1)
        nesting.nest(nesting_kinds, batch.thread, batch.function, ticks_and_shown)
        is_exit = nesting_kinds == END
        stacks = np.full(kind.size, -1)
        if self._stacks is not None:
            stacks = self._stacks.add(nesting, nesting_kinds, batch.function)
        ended = is_exit & (nesting.closes >= 0)
        is_unmatched = is_exit & ~ended
        instant_rows = np.flatnonzero(is_unmatched | (kind >= CUSTOM))
        if self._kept is not None:
            shown[ended] = nesting.values[ended, 1] != 0
            shown[instant_rows] = self._kept[1].among(self._instants, instant_rows.size)
        depths = nesting.depths
        if self._skipped is not None:
            rows = np.arange(self._calls, self._calls + begin_rows.size)
            excluded = begin_rows[self._skipped.excluded[rows]]
            excluded_stacks = np.unique(stacks[excluded])
            self._excluded_stacks.update(excluded_stacks[excluded_stacks >= 0].tolist())
            depths = depths - self._skipped.around(nesting.parents)
        self._calls += begin_rows.size
        self._instants += instant_rows.size
        self._show_arguments(batch, shown)
        self.unmatched += int(np.count_nonzero(is_unmatched & shown))
        entered = nesting.values[:, 0].view(np.uint64)
        place, row, function, _, is_shown = nesting.unwound.T
        inner = {"place": place, "function": function, "shown": is_shown}
        if self._stacks is not None:
            inner["stack"] = self._stacks.of(row)
        return Matched(depths, entered, ended, stacks, shown, inner)

    def _show_arguments(self, batch: Any, shown: Bools) -> None:
        """Show arguments with the calls, or exits without one, that they follow directly."""
        if not hasattr(batch, "size"):
            return
        arguments = np.flatnonzero(batch.kind == ARGUMENT)
        has_call = batch.size[arguments] >= 0
        if self._kept is None:
            shown[arguments] = has_call
            return
        call = latest(batch.kind < ARGUMENT)[arguments]
        shown[arguments] = shown[call] & has_call


# --- Events --------------------------------------------------------------------------------------


def chosen_events(capture: Capture) -> Iterator[Events]:
    """Yield the events of a trace; of a view, those that belong to its rows.

    A call belongs with all its events, from entry to exit, and its arguments.
    """
    calls = Calls(capture) if isinstance(capture, View) else None
    for events in whole_of(capture).events():
        shown = None if calls is None else calls.match(events).shown
        if shown is None or shown.all():
            yield events
        elif shown.any():
            yield picked(events, shown)
