"""Events in the form that all exporters of XRay traces use: each call with arguments and depth.

Events are merged by time, in the order of records within a thread, in batches of bounded size;
calls are matched as in the tables.
"""

from __future__ import annotations

import abc
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fx_xray import format as wire
from fx_xray.format import ARGUMENT, CUSTOM, ENTER, ENTER_ARG, EXIT, TYPED
from fx_xray.read.events import Events, picked
from fx_xray.read.views import Bools, Calls, Matched, whole_of
from fxframework.errors import WriteRefusedError
from fxframework.kernels.parts import MEMBERS, MEMBERS_END, NATURAL
from fxframework.kernels.templates import Cell, Templates
from fxframework.kit.export import Export
from fxframework.kit.memo import Memo
from fxframework.model.capture import Capture
from fxframework.model.clock import NS_PER_SECOND, Clock

__all__ = [
    "ARGUMENT",
    "CUSTOM",
    "ENTRIES",
    "EXIT",
    "HELD",
    "TYPED",
    "Batch",
    "Calls",
    "EventExport",
    "Matched",
    "Names",
    "SingleExport",
    "argument_members",
    "clock_of",
    "left_out",
    "names_of",
    "nothing_to_write",
    "text_of",
    "walk",
    "who",
    "whole_of",
]

I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]

ENTRIES: Final = frozenset({ENTER, ENTER_ARG})
"""Kinds of events that begin a call."""
ROWS: Final = 1 << 14
"""Approximate number of events in a batch."""
HELD: Final = 1 << 20
"""Bytes of texts that are kept from batch to batch."""
PARENTLESS: Final = "arguments of no call"
NOT_UTF8: Final = "payloads that are not UTF-8, in part"
NAMES_NOT_UTF8: Final = "names of functions that are not UTF-8, in part"


class Batch(NamedTuple):
    """Some events, as columns of equal length, with arguments and payloads by index.

    An argument is not an event here, but belongs to its call.
    """

    kind: NDArray[np.uint8]
    function: NDArray[np.uint32]
    """Function id of calls, event type of typed events, 0 for others."""
    tsc: U64
    cpu: NDArray[np.uint16]
    thread: NDArray[np.int32]
    offset: I64
    args: dict[int, list[int]]
    payloads: dict[int, bytes]

    def __len__(self) -> int:
        return self.kind.size


# --- Events with their arguments -----------------------------------------------------------------


def walk(capture: Capture, dropped: Counter[str]) -> Iterator[Batch]:
    """Yield all events of a capture, of any view too, merged by time.

    A call is in one batch with its arguments; arguments without a call are counted in ``dropped``.
    """
    whole = whole_of(capture)
    waiting_rows: Batch | None = None
    for events in whole.events():
        for start in range(0, events.kind.size, ROWS):
            part = picked(events, slice(start, start + ROWS))
            is_argument = part.kind == ARGUMENT
            if not is_argument.any():
                batch = _without_arguments(part, whole.payloads)
            else:
                batch = _without_arguments(picked(part, ~is_argument), whole.payloads)
                _give_arguments(part, is_argument, batch, waiting_rows, dropped)
            if len(batch):
                if waiting_rows is not None:
                    yield waiting_rows
                waiting_rows = batch
    if waiting_rows is not None:
        yield waiting_rows


def _without_arguments(events: Events, payloads: NDArray[np.uint8]) -> Batch:
    """Return a batch of events without arguments among them."""
    places = np.flatnonzero(events.kind >= CUSTOM)
    return Batch(
        events.kind,
        events.function,
        events.tsc,
        events.cpu,
        events.thread,
        events.offset,
        {},
        {
            place: payloads[start : start + size].tobytes()
            for place, start, size in zip(
                places.tolist(),
                events.value[places].tolist(),
                events.size[places].tolist(),
                strict=True,
            )
        },
    )


def _give_arguments(
    events: Events,
    is_argument: Bools,
    batch: Batch,
    batch_before: Batch | None,
    dropped: Counter[str],
) -> None:
    """Give arguments to their calls, which they follow directly.

    ``batch`` has all other events; the first arguments may be of the last event before it.
    """
    is_own = is_argument & (events.size >= 0)
    dropped[PARENTLESS] += int(np.count_nonzero(is_argument & ~is_own))
    places = np.cumsum(~is_argument)[is_own] - 1
    for place, value in zip(places.tolist(), events.value[is_own].tolist(), strict=True):
        if place >= 0:
            batch.args.setdefault(place, []).append(value)
        elif batch_before is not None:
            batch_before.args.setdefault(len(batch_before) - 1, []).append(value)


def argument_members(
    templates: Templates, batch: Batch, places: I64, name: Callable[[int], str]
) -> list[Cell]:
    """Hold the arguments of events as members, and return the parts of a template for them.

    ``name`` returns what is before the value of an argument, from 0 on.
    """
    if not batch.args:
        return []
    counts = np.zeros(len(batch), np.int64)
    counts[list(batch.args)] = [len(values) for values in batch.args.values()]
    counts = counts[places]
    with_arguments = places[counts > 0].tolist()
    values = [value for place in with_arguments for value in batch.args[place]]
    stops = np.cumsum(counts)
    starts = stops - counts
    most = int(counts.max(initial=0))
    names = np.array([templates.text(name(number).encode()) for number in range(most)], np.int64)
    argument_number = np.arange(len(values)) - np.repeat(starts, counts)
    templates.hold(
        names[argument_number],
        np.full(len(values), NATURAL),
        np.array(values, np.uint64).view(np.int64),
        np.full(len(values), templates.text(b"")),
    )
    return [(MEMBERS, starts), (MEMBERS_END, stops)]


# --- Names, threads, times -----------------------------------------------------------------------


Names = Memo[int, str]
"""Rendered names of functions, by id."""


def names_of(capture: Capture, show: Callable[[str], str], dropped: Counter[str]) -> Names:
    """Return the names of functions, rendered by ``show``.

    A function without a name gets its number as name. Invalid UTF-8 becomes U+FFFD, and is counted
    in ``dropped`` once per function.
    """
    functions = capture.table("xray_functions")
    ids = functions.array("id").astype(np.int64)  # searched by numbers of this type
    order = np.argsort(ids, kind="stable")
    ids = ids[order]
    codes = functions.array("name")[order]
    changed: set[int] = set()

    def make(function: int) -> str:
        place = int(np.searchsorted(ids, function))
        known = place < ids.size and int(ids[place]) == function
        code = int(codes[place]) if known else -1
        if code < 0:
            return show(str(function))
        losses = Counter[str]() if function in changed else dropped
        text = text_of(functions.pool.bytes_of(code), losses, NAMES_NOT_UTF8)
        if "\ufffd" in text:
            changed.add(function)
        return show(text)

    return Memo(make)


def text_of(data: bytes, dropped: Counter[str], what: str = NOT_UTF8) -> str:
    """Return the text of some bytes; invalid UTF-8 becomes U+FFFD and is counted in ``dropped``."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        dropped[what] += 1
        return data.decode("utf-8", "replace")


def who(capture: Capture) -> list[tuple[int, int]]:
    """Return process and thread ids by the threads of events, truncated to 32 bits."""
    processes, threads = whole_of(capture).event_threads()
    return [
        (int(process) & wire.LOW32, int(thread) & wire.LOW32)
        for process, thread in zip(processes, threads, strict=True)
    ]


def clock_of(capture: Capture) -> Clock:
    """Return the clock of the trace; with an unknown rate, a tick is a nanosecond."""
    return Clock(ticks_per_second=whole_of(capture).ticks_per_second or NS_PER_SECOND)


# --- Refusals and losses -------------------------------------------------------------------------


def nothing_to_write(capture: Capture) -> WriteRefusedError:
    """Return the error for a capture without a header, or without an event."""
    return WriteRefusedError(
        "there is nothing to write: no event",
        path=capture.name,
        remedy="`fxf info` shows what the capture holds",
    )


def left_out(capture: Capture) -> Counter[str]:
    """Count the parts of a capture that are not events, by name."""
    kinds = whole_of(capture).summary().kinds
    return Counter(
        {
            "damaged stretches": kinds.get("damaged", 0),
            "records of unknown types": kinds.get("unknown", 0),
        }
    )


# --- Sessions ------------------------------------------------------------------------------------


class EventExport(Export):
    """Writes the events of captures."""

    def _put(self, lines: Sequence[str]) -> None:
        if lines:
            self._sink.write(("\n".join(lines) + "\n").encode())


class SingleExport(EventExport):
    """Writes the events of one capture."""

    what: str
    """Name of the output, which cannot hold a second capture."""

    def write(self, capture: Capture) -> None:
        """Write the capture.

        Raises WriteRefusedError for a second capture, and for one without a header.
        """
        self._only_one_capture(f"{self.what} holds one capture")
        if whole_of(capture).version is None:
            raise nothing_to_write(capture)
        self._write(capture)
        self._dropped += left_out(capture)

    @abc.abstractmethod
    def _write(self, capture: Capture) -> None:
        """Write the capture."""
