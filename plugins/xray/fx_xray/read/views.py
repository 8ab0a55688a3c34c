"""What belongs to the rows of a view: its calls and events, matched as the tables match them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fx_xray.read.capture import EventCapture
from fx_xray.read.events import Events
from fx_xray.read.stacks import NO_STACKS, CallMatch
from fxframework.kernels.buffers import view
from fxframework.model.capture import Capture, View
from fxframework.model.rows import RowMarks

__all__ = ["Bools", "Calls", "Matched", "chosen_events", "has_events", "picked", "whole_of"]

I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]
Bools = NDArray[np.bool_]


def _under(capture: Capture) -> Capture:
    """Return the capture under all views."""
    while isinstance(capture, View):
        capture = capture.whole
    return capture


def has_events(capture: Capture) -> bool:
    """Return whether it is of a format of this plugin."""
    return isinstance(_under(capture), EventCapture)


def whole_of(capture: Capture) -> EventCapture:
    """Return the capture under all views, which has events."""
    whole = _under(capture)
    assert isinstance(whole, EventCapture)  # noqa: S101 (asked of captures that have them)
    return whole


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
    ``stack`` and whether they are ``shown``."""


class Calls:
    """Matches exits and calls as the tables do: by thread, in the order of records.

    For a view, only events that belong to its rows of `slices` and `instants` are shown. Stacks
    deeper than the capture's ``max_depth`` have the number of the stack at that depth.
    """

    def __init__(self, capture: Capture, *, stacks: bool = True) -> None:
        threads = len(whole_of(capture).event_threads()[0])
        deepest = capture.request.limits.max_depth if stacks else NO_STACKS
        self._match = CallMatch(threads, deepest)
        self._rows = 0
        self._instants = 0
        self._kept: tuple[RowMarks, RowMarks] | None = None
        if isinstance(capture, View):
            self._kept = capture.rows_kept("slices"), capture.rows_kept("instants")

    @property
    def unmatched(self) -> int:
        """Number of shown exits without a call."""
        return int(self._match.unmatched)

    @property
    def stacks(self) -> Iterator[tuple[int, int, int]]:
        """Number, function, and number of the stack below it (-1: none), of each stack."""
        columns = self._match.stacks.filled()
        functions, parents = columns["function"].tolist(), columns["parent"].tolist()
        return zip(range(len(functions)), functions, parents, strict=True)

    def match(self, batch: Any) -> Matched:
        """Match the next batch of events (``CallMatch.load``)."""
        match = self._match
        match.load(batch, self._marks(batch))
        match.run()
        self._rows += match.calls
        self._instants += match.others
        return Matched(
            np.asarray(match.depth),
            np.asarray(match.entered).view(np.uint64),
            np.asarray(match.ended).view(np.bool_),
            np.asarray(match.stack),
            np.asarray(match.shown).view(np.bool_),
            match.inner.filled(),
        )

    def _marks(self, batch: Any) -> tuple[memoryview, memoryview] | None:
        """Return whether the next rows of `slices` and of `instants` are shown."""
        if self._kept is None:
            return None
        calls, instants = self._kept
        return (
            view(calls.among(self._rows, batch.kind.size), "u1"),
            view(instants.among(self._instants, batch.kind.size), "u1"),
        )


# --- Events --------------------------------------------------------------------------------------


def chosen_events(capture: Capture) -> Iterator[Events]:
    """Yield the events of a trace; of a view, those that belong to its rows.

    A call belongs with all its events, from entry to exit, and its arguments.
    """
    calls = Calls(capture, stacks=False) if isinstance(capture, View) else None
    for events in whole_of(capture).events():
        shown = None if calls is None else calls.match(events).shown
        if shown is None or shown.all():
            yield events
        elif shown.any():
            yield picked(events, shown)


def picked(events: Events, rows: Any) -> Events:
    """Return the events of a slice or a boolean mask."""
    return events._replace(**{name: column[rows] for name, column in events._asdict().items()})
