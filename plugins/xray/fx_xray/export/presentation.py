"""Events in the form that all exporters of XRay traces use: each call with arguments and depth.

Events are merged by time, in the order of records within a thread, in batches of bounded size;
calls are matched as in the tables.
"""

from __future__ import annotations

import abc
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_xray import format as wire
from fx_xray.format import ARGUMENT, CUSTOM, ENTER, ENTER_ARG
from fx_xray.read.events import Events, parts_of, picked, with_arguments
from fx_xray.read.views import chosen_events, whole_of
from fxframework.kernels.arrays import I64, U64
from fxframework.kernels.parts import MEMBERS, MEMBERS_END, NATURAL
from fxframework.kernels.templates import Cell, Templates
from fxframework.kit.export import Export, decoded, empty_refusal
from fxframework.kit.memo import Memo
from fxframework.model.capture import Capture
from fxframework.model.clock import NS_PER_SECOND, Clock

ENTRIES: Final = frozenset({ENTER, ENTER_ARG})
"""Kinds of events that begin a call."""
ROWS: Final = 1 << 14
"""Approximate number of events in a batch."""
HELD: Final = 1 << 20
"""Bytes of texts that are kept from batch to batch."""
PARENTLESS: Final = "arguments of no call"
NOT_UTF8: Final = "payloads that are not UTF-8, in part"
NOTHING: Final = "there is nothing to write: no event"
"""Why a capture without a header, or without an event, is refused."""
NAMES_NOT_UTF8: Final = "names of functions that are not UTF-8, in part"


@attrs.frozen(eq=False)
class Batch:
    """Some events, as columns of equal length, with the arguments of calls and the payloads.

    An argument is not an event here, but belongs to its call.
    """

    kind: NDArray[np.uint8]
    function: NDArray[np.uint32]
    """Function id of calls, event type of typed events, 0 for others."""
    tsc: U64
    cpu: NDArray[np.uint16]
    thread: NDArray[np.int32]
    offset: I64
    argument_places: I64
    """The place of the call of each argument, ascending."""
    argument_values: U64
    payloads: dict[int, bytes]
    """By the place of the event."""

    def __len__(self) -> int:
        return self.kind.size


# --- Events with their arguments -----------------------------------------------------------------


def walk(capture: Capture, dropped: Counter[str]) -> Iterator[Batch]:
    """Yield all events of a capture, of any view too, merged by time.

    A call is in one batch with its arguments; arguments without a call are counted in ``dropped``.
    """
    trace = whole_of(capture)
    return filter(len, _batches(trace.events(), trace.payloads, dropped))


def walk_chosen(capture: Capture, dropped: Counter[str]) -> Iterator[Batch]:
    """Yield the same, but of a view the events that belong to its rows."""
    return filter(len, _batches(chosen_events(capture), whole_of(capture).payloads, dropped))


def _batches(
    parts: Iterator[Events], payloads: NDArray[np.uint8], dropped: Counter[str]
) -> Iterator[Batch]:
    """Yield batches, some of which may have no events: arguments alone are none."""
    for events in with_arguments(rows for part in parts for rows in parts_of(part, ROWS)):
        yield _batch_of(events, payloads, dropped)


def _batch_of(events: Events, payloads: NDArray[np.uint8], dropped: Counter[str]) -> Batch:
    """Return a batch of events, whose arguments are those of the calls among them."""
    is_argument = events.kind == ARGUMENT
    is_own = is_argument & (events.size >= 0)
    dropped[PARENTLESS] += int(np.count_nonzero(is_argument & ~is_own))
    # An argument's call is the last event before it that is not an argument.
    call_places = np.cumsum(~is_argument) - 1
    others = picked(events, ~is_argument)
    payload_by_place = {}
    for place in np.flatnonzero(others.kind >= CUSTOM).tolist():
        start = int(others.value[place])
        end = start + int(others.size[place])
        payload_by_place[place] = payloads[start:end].tobytes()
    return Batch(
        others.kind,
        others.function,
        others.tsc,
        others.cpu,
        others.thread,
        others.offset,
        call_places[is_own],
        events.value[is_own],
        payload_by_place,
    )


def argument_members(
    templates: Templates, batch: Batch, places: I64, name: Callable[[int], str]
) -> list[Cell]:
    """Hold the arguments of events as members, and return the parts of a template for them.

    ``places`` are those of the events, ascending. ``name`` returns what is before the value of an
    argument, from 0 on.
    """
    if not batch.argument_places.size:
        return []
    counts = np.bincount(batch.argument_places, minlength=len(batch))[places]
    is_chosen = np.zeros(len(batch), np.bool_)
    is_chosen[places] = True
    values = batch.argument_values[is_chosen[batch.argument_places]]
    stops = np.cumsum(counts)
    starts = stops - counts
    name_texts = [name(number).encode() for number in range(counts.max(initial=0))]
    names = templates.shared_texts(name_texts)
    # Arguments count from 0 in each event: 0 1 0 1 2 for events with 2, 0 and 3 of them.
    argument_number = np.arange(values.size) - np.repeat(starts, counts)
    no_suffix = templates.text(b"")
    templates.hold(
        names[argument_number],
        np.full(values.size, NATURAL),
        values.view(np.int64),
        np.full(values.size, no_suffix),
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
    ids = functions.array("id").astype(np.int64)  # searched by numbers of this type; they ascend
    codes = functions.array("name")
    changed: set[int] = set()

    def make(function: int) -> str:
        place = int(ids.searchsorted(function))
        is_known = place < ids.size and ids[place] == function
        code = int(codes[place]) if is_known else -1
        if code < 0:
            return show(str(function))
        losses = dropped
        if function in changed:  # counted already
            losses = Counter()
        text = decoded(functions.pool.bytes_of(code), losses, NAMES_NOT_UTF8)
        if "\ufffd" in text:
            changed.add(function)
        return show(text)

    return Memo(make)


def process_and_thread_ids(capture: Capture) -> list[tuple[int, int]]:
    """Return process and thread ids by the threads of events, truncated to 32 bits."""
    processes, threads = whole_of(capture).event_threads()
    process_ids = (processes & wire.LOW32).tolist()
    thread_ids = (threads & wire.LOW32).tolist()
    return list(zip(process_ids, thread_ids, strict=True))


def clock_of(capture: Capture) -> Clock:
    """Return the clock of the trace; with an unknown rate, a tick is a nanosecond."""
    return Clock(ticks_per_second=whole_of(capture).ticks_per_second or NS_PER_SECOND)


# --- Losses --------------------------------------------------------------------------------------


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
            raise empty_refusal(capture, NOTHING)
        self._write(capture)
        self._dropped += left_out(capture)

    @abc.abstractmethod
    def _write(self, capture: Capture) -> None:
        """Write the capture."""
