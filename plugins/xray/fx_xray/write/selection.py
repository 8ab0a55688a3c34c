"""Marking: which events of a trace belong to the rows of its tables that were chosen.

Calls are matched as the tables match them: row by row, in the order of time, so that the number of
an entry is that of its slice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fx_xray.read import scan as k
from fx_xray.read.columns import Events
from fx_xray.read.scan import (
    ARGUMENT,
    DEEP,
    ENTER,
    ENTER_ARG,
    EXIT,
    NODE_BELOW,
    NODE_FIELDS,
    NODE_FUNCTION,
    NODE_ROW,
    TAIL_EXIT,
    find_open,
    place_of,
)
from fxframework.io.jit import kernel
from fxframework.model.capture import Capture, View

__all__ = ["chosen_events", "picked", "whole_of"]

I64 = NDArray[Any]
U8 = NDArray[Any]
SLICE, INSTANT, NODES, FREE, DEEP_KEYS = 0, 1, 2, 3, 4
"""Of the state: the next rows, open calls for which there was room, the first free one, keys."""


class Open(NamedTuple):
    """Open calls, as ``kernels.find_open`` takes them; see ``kernels.Calls``."""

    nodes: I64
    top: I64
    depth: I64
    shallow: I64
    deep_key: I64
    deep_open: I64
    latest: U8
    """By thread: whether the call belongs to which arguments would."""
    state: I64


@kernel
def pop(thread, calls):  # type: ignore[no-untyped-def]
    """The innermost open call of a thread ends; gives its row."""
    nodes = calls.nodes
    node = calls.top[thread]
    at = NODE_FIELDS * node
    below = nodes[at + NODE_BELOW]
    calls.top[thread] = below
    calls.depth[thread] -= 1
    if calls.depth[thread] >= DEEP:
        key = (thread << 32 | nodes[at + NODE_FUNCTION]) + 1
        calls.deep_open[place_of(key, calls.deep_key)] -= 1
    nodes[at + NODE_BELOW] = calls.state[FREE]
    calls.state[FREE] = node
    return nodes[at + NODE_ROW]


@kernel
def push(thread, function, row, calls):  # type: ignore[no-untyped-def]
    """A call is entered."""
    nodes = calls.nodes
    state = calls.state
    node = state[FREE]
    if node >= 0:
        state[FREE] = nodes[NODE_FIELDS * node + NODE_BELOW]
    else:
        node = state[NODES]
        state[NODES] = node + 1
    at = NODE_FIELDS * node
    depth = calls.depth[thread]
    nodes[at + NODE_ROW] = row
    nodes[at + NODE_FUNCTION] = function
    nodes[at + NODE_BELOW] = calls.top[thread]
    if depth >= DEEP:
        if depth == DEEP:
            calls.shallow[thread] = calls.top[thread]
        key = (thread << 32 | function) + 1
        place = place_of(key, calls.deep_key)
        if not calls.deep_key[place]:
            calls.deep_key[place] = key
            state[DEEP_KEYS] += 1
        calls.deep_open[place] += 1
    calls.top[thread] = node
    calls.depth[thread] = depth + 1


@kernel
def choose(kinds, functions, threads, sizes, calls, slices, instants, keep):  # type: ignore[no-untyped-def]
    """Say in ``keep`` which events belong to the rows that ``slices`` and ``instants`` mark.

    Both have a byte a row, and one more; the caller has made room for as many open calls as there
    are events.
    """
    state = calls.state
    nodes = calls.nodes
    row = state[SLICE]
    instant = state[INSTANT]
    last_slice = len(slices) - 1
    last_instant = len(instants) - 1
    for index in range(len(kinds)):
        kind = kinds[index]
        thread = threads[index]
        function = functions[index]
        kept = 0
        if kind == ENTER or kind == ENTER_ARG:
            kept = slices[min(row, last_slice)]
            push(thread, function, row, calls)
            row += 1
            calls.latest[thread] = kept
        elif kind == EXIT or kind == TAIL_EXIT:
            node = calls.top[thread]
            if node >= 0 and nodes[NODE_FIELDS * node + NODE_FUNCTION] != function:
                node = find_open(thread, function, calls)
                if node >= 0:
                    while calls.top[thread] != node:
                        pop(thread, calls)
            if node >= 0:
                kept = slices[min(pop(thread, calls), last_slice)]
            else:
                kept = instants[min(instant, last_instant)]
                instant += 1
            calls.latest[thread] = kept
        elif kind == ARGUMENT:
            if sizes[index] >= 0:
                kept = calls.latest[thread]
        else:
            kept = instants[min(instant, last_instant)]
            instant += 1
        keep[index] = kept
    state[SLICE] = row
    state[INSTANT] = instant


def whole_of(capture: Capture) -> Any:
    """The capture under all views of it."""
    whole: Any = capture
    while isinstance(whole, View):
        whole = whole.whole
    return whole


def chosen_events(capture: Capture) -> Iterator[Events]:
    """The events of a capture of a trace; of a view of one, those that belong to its rows.

    A call that belongs does so from its entry to its exit, with its arguments.
    """
    whole = whole_of(capture)
    if not isinstance(capture, View):
        yield from whole.events()
        return
    yield from _marked(whole, capture)


def _marked(whole: Any, capture: Capture) -> Iterator[Events]:
    slices, instants = _marks(capture, "slices"), _marks(capture, "instants")
    threads = len(whole.event_threads()[1])
    calls = Open(
        nodes=np.empty(0, np.int64),
        top=np.full(threads, -1, np.int64),
        depth=np.zeros(threads, np.int64),
        shallow=np.full(threads, -1, np.int64),
        deep_key=np.zeros(1 << 10, np.int64),
        deep_open=np.zeros(1 << 10, np.int64),
        latest=np.zeros(threads, np.uint8),
        state=np.zeros(8, np.int64),
    )
    calls.state[FREE] = -1
    mark = choose.for_size(whole.source.size)
    for events in whole.events():
        calls = _with_room(calls, len(events.kind))
        keep = np.empty(len(events.kind), np.uint8)
        columns = (events.kind, events.function, events.thread, events.size)
        mark(*map(np.ascontiguousarray, columns), calls, slices, instants, keep)
        if keep.any():
            chosen = keep.view(np.bool_)
            yield events if chosen.all() else picked(events, chosen)


def picked(events: Events, rows: Any) -> Events:
    """The events of a slice or a boolean mask."""
    return events._replace(**{name: column[rows] for name, column in events._asdict().items()})


def _marks(capture: Capture, name: str) -> U8:
    """A byte for each row of a table, 1 where the view has it, and a 0 behind them."""
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


def _with_room(calls: Open, count: int) -> Open:
    """The same with room for so many more open calls."""
    nodes, deep_key, deep_open = calls.nodes, calls.deep_key, calls.deep_open
    needed = NODE_FIELDS * (int(calls.state[NODES]) + count)
    if needed > nodes.size:
        nodes = np.empty(max(needed, 2 * nodes.size), np.int64)
        nodes[: calls.nodes.size] = calls.nodes
    size = deep_key.size
    while size < 2 * (int(calls.state[DEEP_KEYS]) + count):
        size *= 2
    if size > deep_key.size:
        deep_key, deep_open = np.zeros(size, np.int64), np.zeros(size, np.int64)
        k.refill.for_size(calls.deep_key.nbytes)(
            calls.deep_key, calls.deep_open, deep_key, deep_open
        )
    return calls._replace(nodes=nodes, deep_key=deep_key, deep_open=deep_open)
