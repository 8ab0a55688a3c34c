"""The events of a capture that belong to the rows of a view."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fx_xray.read.columns import Events, events_of
from fx_xray.write.selection import Selection
from fxframework.model.capture import Capture, View

__all__ = ["chosen_events", "picked", "whole_of"]

U8 = NDArray[np.uint8]


def whole_of(capture: Capture) -> Any:
    """Return the capture under all views."""
    whole: Any = capture
    while isinstance(whole, View):
        whole = whole.whole
    return whole


def chosen_events(capture: Capture) -> Iterator[Events]:
    """Yield the events of a trace; of a view, those that belong to its rows.

    A call belongs with all its events, from entry to exit, and its arguments.
    """
    whole = whole_of(capture)
    if not isinstance(capture, View):
        yield from whole.events()
        return
    yield from _marked(whole, capture)


def _marked(whole: Any, capture: Capture) -> Iterator[Events]:
    selection = Selection(
        _marks(capture, "slices").data,
        _marks(capture, "instants").data,
        threads=len(whole.event_threads()[1]),
    )
    for buffer in whole.log.chunks():
        keep = np.asarray(selection.choose(buffer))[: buffer.rows]
        if selection.kept:
            events = events_of(buffer)
            yield events if selection.kept == keep.size else picked(events, keep.astype(np.bool_))


def picked(events: Events, rows: Any) -> Events:
    """Return the events of a slice or a boolean mask."""
    return events._replace(**{name: column[rows] for name, column in events._asdict().items()})


def _marks(capture: Capture, name: str) -> U8:
    """Return a byte for each row of a table, 1 if the view has it, followed by a 0."""
    marks = np.zeros(1, np.uint8)
    for batch in capture.batches(name):
        rows = batch.array("row")
        if rows.size:
            needed = int(rows.max()) + 2
            if needed > marks.size:
                grown = np.zeros(max(needed, 2 * marks.size), np.uint8)
                grown[: marks.size] = marks
                marks = grown
            marks[rows] = 1
    return marks
