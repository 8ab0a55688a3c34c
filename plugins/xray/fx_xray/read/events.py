"""Events as numpy columns, and their ticks as nanoseconds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from fx_xray.format import ARGUMENT
from fx_xray.read.columns import are_back, let_rise
from fxframework.kernels.arrays import I64
from fxframework.kernels.sorting import begins_of_runs
from fxframework.model.clock import NS_PER_SECOND, Clock


class Events(NamedTuple):
    """Events in order of time: columns of shape (n,).

    Threads are merged by time; those of one thread are in the order of its records.
    """

    kind: NDArray[np.uint8]
    """0 enter, 1 exit, 2 tail exit, 3 enter with argument, 4 argument of the call before in the
    thread, 5 custom event, 6 typed event."""
    function: NDArray[np.uint32]
    """Id of the function, of 4 that of its call; of 6 the type of event; else 0."""
    tsc: NDArray[np.uint64]
    """Time in ticks."""
    cpu: NDArray[np.uint16]
    """CPU number; 65535 not known."""
    thread: NDArray[np.int32]
    """Id of the thread."""
    offset: NDArray[np.int64]
    """Byte offset of the record in the file."""
    value: NDArray[np.uint64]
    """Of 4 the argument; of 5 and 6 the byte of the payloads at which theirs begins; else 0."""
    size: NDArray[np.int32]
    """Of 5 and 6 the bytes of the payload; of 4 -1 where it belongs to no call; else 0."""

    @classmethod
    def of(cls, rows: NDArray[Any]) -> Events:
        """Return rows of the type EVENT as columns."""
        return cls(*(np.ascontiguousarray(rows[name]) for name in cls._fields))


EVENT = np.dtype(
    [("kind", "u1"), ("function", "u4"), ("tsc", "u8"), ("cpu", "u2"), ("thread", "i4"),
     ("offset", "i8"), ("value", "u8"), ("size", "i4")]
)  # fmt: skip
"""An event, by the names of ``Events``."""


E = TypeVar("E", bound=NamedTuple)
"""``Events``, or those with more columns."""


def picked(events: E, rows: Any) -> E:
    """Return the events of a slice, a boolean mask or an index."""
    return events._replace(**{name: column[rows] for name, column in events._asdict().items()})


def joined(parts: Sequence[E]) -> E:
    """Return the events of several parts, one behind the other."""
    return parts[0]._make(map(np.concatenate, zip(*parts, strict=True)))


def parts_of(events: Events, most: int) -> Iterator[Events]:
    """Yield events, ``most`` at once."""
    count = events.kind.size
    if count <= most:
        if count:
            yield events
        return
    for start in range(0, count, most):
        yield picked(events, slice(start, start + most))


def with_arguments(parts: Iterable[Events]) -> Iterator[Events]:
    """Yield parts of events, with arguments in the part of the event that they follow."""
    before: Events | None = None
    for events in parts:
        leading = int(np.append(events.kind != ARGUMENT, True).argmax())
        if before is not None and leading:
            before = joined([before, picked(events, slice(leading))])
            events = picked(events, slice(leading, None))
        if before is None or events.kind.size:
            if before is not None:
                yield before
            before = events
    if before is not None:
        yield before


def merged_order(events: Events) -> I64:
    """Return the order that merges threads by time, and keeps that of each thread; shape (n,)."""
    order = np.argsort(events.thread, kind="stable")
    times = events.tsc[order]
    let_rise(times, np.flatnonzero(begins_of_runs(events.thread[order])))
    return order[np.argsort(times, kind="stable")]


def backward(events: Events) -> NDArray[np.bool_]:
    """Return which events are of functions and earlier than the last one of their thread.

    Shape (n,).
    """
    calls = np.flatnonzero(events.kind < ARGUMENT)
    calls = calls[np.argsort(events.thread[calls], kind="stable")]
    time = events.tsc[calls].view(np.int64)
    thread = events.thread[calls]
    no_calls_before = np.zeros(int(thread.max(initial=0)) + 1, np.int64)
    out = np.zeros(events.kind.size, np.bool_)
    out[calls] = are_back(time, time, thread, no_calls_before)
    return out


def summed_by_function(
    functions: NDArray[Any], calls: NDArray[Any], offsets: I64
) -> tuple[I64, I64, I64]:
    """Return the ids of functions, ascending, the sum of the calls of each, and its first offset.

    All are given by row.
    """
    ids, first_rows, places = np.unique(functions, return_index=True, return_inverse=True)
    sums = np.zeros(ids.size, np.int64)
    np.add.at(sums, places, calls)
    return ids.astype(np.int64), sums, offsets[first_rows]


# --- Ticks and nanoseconds ------------------------------------------------------------------------


def to_ns(ticks: NDArray[Any], frequency: int) -> I64:
    """Nanoseconds of ticks, uint64 or their bits, rounded down: int64 of the same shape.

    What int64 does not hold is its greatest number. Ticks of no known frequency are nanoseconds.
    """
    return Clock(frequency or NS_PER_SECOND).to_ns(ticks.view(np.uint64))[0]


def to_spans(ticks: NDArray[Any], lengths: I64, frequency: int) -> tuple[I64, I64]:
    """Return the same, and the nanoseconds from there to ``lengths`` ticks later; -1 of -1."""
    starts = to_ns(ticks, frequency)
    spans = to_ns(ticks.view(np.int64) + lengths, frequency)
    spans -= starts
    np.maximum(spans, 0, out=spans)
    spans[lengths < 0] = -1
    return starts, spans
