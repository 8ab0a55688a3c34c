"""What a trace is to those it is shown to: its events, each call with its arguments and its depth.

All exporters of XRay traces draw on this. Events come merged by time, those of a thread in the
order of their records, in batches of bounded size; calls are matched as the tables match them.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from fx_xray.layout import FunctionKind
from fx_xray.read.columns import Events
from fx_xray.read.reader import EventCapture
from fxframework.errors import WriteRefusedError
from fxframework.kit.memo import Memo
from fxframework.model.capture import Capture, View
from fxframework.model.clock import NS_PER_SECOND, Clock
from fxframework.model.rows import RowMarks

__all__ = [
    "ARGUMENT",
    "CUSTOM",
    "ENTRIES",
    "EXIT",
    "TYPED",
    "Batch",
    "Calls",
    "Matched",
    "Names",
    "Open",
    "clock_of",
    "in_time",
    "left_out",
    "names_of",
    "nothing_to_write",
    "text_of",
    "walk",
    "who",
    "whole_of",
]

T = TypeVar("T")
I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]
Bools = NDArray[np.bool_]

ENTER, EXIT, TAIL_EXIT, ENTER_ARG = (int(kind) for kind in FunctionKind)
ARGUMENT: Final = 4
CUSTOM: Final = 5
TYPED: Final = 6
"""Kinds of events, as ``Capture.events`` has them; those of functions are FunctionKind's."""
ENTRIES: Final = frozenset({ENTER, ENTER_ARG})
"""Kinds of events with which a call begins."""
ROWS: Final = 1 << 14
"""Events of a batch, about."""
PARENTLESS: Final = "arguments of no call"
NOT_UTF8: Final = "payloads that are not UTF-8, in part"
NAMES_NOT_UTF8: Final = "names of functions that are not UTF-8, in part"


class Batch(NamedTuple):
    """Some events, in columns of equal length, and what only some of them have, by their index.

    An argument is not an event here: it is with the call that it belongs to.
    """

    kind: NDArray[np.uint8]
    function: NDArray[np.uint32]
    """Function id of calls, event type of typed events, else 0."""
    tsc: U64
    cpu: NDArray[np.uint16]
    thread: NDArray[np.int32]
    offset: I64
    args: dict[int, list[int]]
    payloads: dict[int, bytes]

    @classmethod
    def of(
        cls,
        columns: Iterable[NDArray[Any]],
        args: dict[int, list[int]],
        payloads: dict[int, bytes],
    ) -> Batch:
        """A batch of its six columns."""
        kind, function, tsc, cpu, thread, offset = columns
        return cls(kind, function, tsc, cpu, thread, offset, args, payloads)

    @property
    def columns(self) -> tuple[NDArray[Any], ...]:
        """The six columns."""
        return self.kind, self.function, self.tsc, self.cpu, self.thread, self.offset

    def take(self, places: NDArray[Any]) -> Batch:
        """The events of a mask, or of indices, in that order."""
        index = np.flatnonzero(places) if places.dtype == np.bool_ else places
        columns = [column[index] for column in self.columns]
        if not (self.args or self.payloads):
            return Batch.of(columns, {}, {})
        there = dict(zip(index.tolist(), range(index.size), strict=True))
        return Batch.of(columns, _moved(self.args, there), _moved(self.payloads, there))

    def __len__(self) -> int:
        return self.kind.size


def _moved(values: Mapping[int, T], there: Mapping[int, int]) -> dict[int, T]:
    """What is at some places, at those where they went; those that went nowhere are gone."""
    return {there[place]: value for place, value in values.items() if place in there}


# --- Events with their arguments -----------------------------------------------------------------


def whole_of(capture: Capture) -> EventCapture:
    """The capture that views look at: the one that has events."""
    while isinstance(capture, View):
        capture = capture.whole
    assert isinstance(capture, EventCapture)  # noqa: S101 (exporters are for its formats alone)
    return capture


def walk(capture: Capture, dropped: Counter[str]) -> Iterator[Batch]:
    """All events of a capture, whatever part of it a view shows, merged by time.

    A call is in one batch with its arguments; those of no call are counted in ``dropped``.
    """
    whole = whole_of(capture)
    held: Batch | None = None
    for events in whole.events():
        for start in range(0, events.kind.size, ROWS):
            part = events._replace(
                **{name: column[start : start + ROWS] for name, column in events._asdict().items()}
            )
            is_argument = part.kind == ARGUMENT
            if not is_argument.any():
                batch = _without_arguments(part, whole.payloads)
            else:
                kept = {name: column[~is_argument] for name, column in part._asdict().items()}
                batch = _without_arguments(part._replace(**kept), whole.payloads)
                _give_arguments(part, is_argument, [batch, held], dropped)
            if len(batch):
                if held is not None:
                    yield held
                held = batch
    if held is not None:
        yield held


def _without_arguments(events: Events, payloads: NDArray[np.uint8]) -> Batch:
    """Events of which none is an argument."""
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
    events: Events, chosen: Bools, batches: Sequence[Batch | None], dropped: Counter[str]
) -> None:
    """Give the chosen events, which are arguments, to the calls that they belong to.

    These are in the first of the batches, which has all the other events, or else in a later one.
    """
    places = np.cumsum(~chosen) - 1
    for place, thread, value, size in zip(
        places[chosen].tolist(),
        events.thread[chosen].tolist(),
        events.value[chosen].tolist(),
        events.size[chosen].tolist(),
        strict=True,
    ):
        if size < 0 or not _give(value, thread, place, batches):
            dropped[PARENTLESS] += 1


def _give(value: int, thread: int, place: int, batches: Sequence[Batch | None]) -> bool:
    """Give an argument to the last call of its thread up to a place; whether there is one.

    Nearly always it is the event before; another thread's of the same time may be between.
    """
    for batch in batches:
        if batch is None:
            continue
        at = min(place, len(batch) - 1)
        while at >= 0 and not (batch.thread[at] == thread and batch.kind[at] < ARGUMENT):
            at -= 1
        if at >= 0:
            batch.args.setdefault(at, []).append(value)
            return True
        place = ROWS
    return False


# --- Calls ---------------------------------------------------------------------------------------


class Open(NamedTuple):
    """A call that has not been left."""

    function: int
    tsc: int
    """When it was entered."""
    shown: bool
    """Whether it is of the part that is shown."""


class Matched(NamedTuple):
    """Of each event of a batch: what call it begins, ends or is in."""

    depths: list[int]
    """How many calls enclose that call, or the event."""
    entered: list[int]
    """Of an exit: when the call was entered that it ends; -1 of one that ends none, and of
    anything else."""
    unwound: Mapping[int, Sequence[Open]]
    """By index of an exit: the calls inside of its own that it ends too, the innermost first."""
    shown: list[bool]
    """Whether the event is of the part that is shown."""


class Calls:
    """Tells which exit ends which call, as the tables do: thread by thread, in order of records.

    Of a view, only what belongs to its rows of `slices` and `instants` is shown.
    """

    def __init__(self, capture: Capture) -> None:
        threads = len(whole_of(capture).event_threads()[0])
        self._stacks: list[list[Open]] = [[] for _ in range(threads)]
        self._within: list[Counter[int] | None] = [None] * threads
        """By thread: how many of the open calls are of a function, from the first exit on that is
        not the innermost call's."""
        self._rows = 0
        self._instants = 0
        self._kept: tuple[RowMarks, RowMarks] | None = None
        if isinstance(capture, View):
            self._kept = _marked(capture, "slices"), _marked(capture, "instants")
        self.unmatched = 0
        """Exits that end no call, among those that are shown."""

    def match(self, batch: Batch) -> Matched:
        """Match the next batch."""
        depths: list[int] = []
        entered: list[int] = []
        unwound: dict[int, list[Open]] = {}
        shown: list[bool] = []
        put_depth, put_entered, put_shown = depths.append, entered.append, shown.append
        stacks, counted = self._stacks, self._within
        call_marks, instant_marks = self._marks(batch)
        make = tuple.__new__  # as Open() does, but at once
        for kind, function, tsc, thread in zip(
            batch.kind.tolist(),
            batch.function.tolist(),
            batch.tsc.tolist(),
            batch.thread.tolist(),
            strict=True,
        ):
            stack = stacks[thread]
            within = counted[thread]
            began = -1
            if kind in ENTRIES:
                visible = next(call_marks)
                put_depth(len(stack))
                stack.append(make(Open, (function, tsc, visible)))
                if within is not None:
                    within[function] += 1
            elif kind < ARGUMENT and (
                (stack and stack[-1][0] == function) or self._is_open(thread, function)
            ):
                name, began, visible = stack.pop()
                if name != function:
                    inner = unwound[len(depths)] = [Open(name, began, visible)]
                    while stack[-1].function != function:
                        inner.append(stack.pop())
                    name, began, visible = stack.pop()
                    within = counted[thread]
                    assert within is not None  # noqa: S101 (it was asked for)
                    within.subtract(call.function for call in inner)
                if within is not None:
                    within[function] -= 1
                put_depth(len(stack))
            else:
                visible = next(instant_marks)
                put_depth(len(stack))
                if kind < ARGUMENT:
                    self.unmatched += visible
                self._instants += 1
            put_entered(began)
            put_shown(visible)
        self._rows += int(np.count_nonzero(np.isin(batch.kind, list(ENTRIES))))
        return Matched(depths, entered, unwound, shown)

    def _is_open(self, thread: int, function: int) -> bool:
        """Whether a thread is in a function."""
        within = self._within[thread]
        if within is None:
            within = self._within[thread] = Counter(call.function for call in self._stacks[thread])
        return within[function] > 0

    def _marks(self, batch: Batch) -> tuple[Iterator[bool], Iterator[bool]]:
        """Whether the next rows of `slices` and of `instants` are shown."""
        if self._kept is None:
            return itertools.repeat(True), itertools.repeat(True)
        rows = np.arange(len(batch))
        calls, instants = self._kept
        return (
            iter(calls.of(self._rows + rows).tolist()),
            iter(instants.of(self._instants + rows).tolist()),
        )


def _marked(capture: Capture, name: str) -> RowMarks:
    marks = RowMarks()
    for batch in capture.batches(name, ROWS):
        marks.add(batch.array("row"))
    return marks


# --- Order of time -------------------------------------------------------------------------------


def in_time(batches: Callable[[], Iterable[Batch]]) -> Iterator[Batch]:
    """Batches whose events are in order of their times, those of one time as they came.

    ``batches`` is asked twice: a first look finds how early later events are. Only what is later
    than one of these is held.
    """
    earliest = [int(batch.tsc.min()) for batch in batches() if len(batch)]
    for place in range(len(earliest) - 2, -1, -1):
        earliest[place] = min(earliest[place], earliest[place + 1])
    earliest.append(1 << 64)
    held: list[Batch] = []
    for place, batch in enumerate(batch for batch in batches() if len(batch)):
        held.append(batch)
        ready = _joined(held)
        if (ready.tsc[1:] < ready.tsc[:-1]).any():
            ready = ready.take(np.argsort(ready.tsc, kind="stable"))
        limit = earliest[place + 1]
        stop = len(ready) if limit >> 64 else int(np.searchsorted(ready.tsc, limit, "right"))
        if stop == len(ready):
            held = []
            yield ready
            continue
        if stop:
            yield ready.take(np.arange(stop))
        held = [ready.take(np.arange(stop, len(ready)))]


def _joined(batches: Sequence[Batch]) -> Batch:
    if len(batches) == 1:
        return batches[0]
    columns = [
        np.concatenate(parts) for parts in zip(*(batch.columns for batch in batches), strict=True)
    ]
    args: dict[int, list[int]] = {}
    payloads: dict[int, bytes] = {}
    start = 0
    for batch in batches:
        args.update({start + place: values for place, values in batch.args.items()})
        payloads.update({start + place: data for place, data in batch.payloads.items()})
        start += len(batch)
    return Batch.of(columns, args, payloads)


# --- Names, threads, times -----------------------------------------------------------------------


Names = Memo[int, str]
"""Names of functions by id, in a form of the caller's."""


def names_of(capture: Capture, show: Callable[[str], str], dropped: Counter[str]) -> Names:
    """Names of functions, as ``show`` makes them.

    Where nothing names a function, its number stands for the name. What of a name is not UTF-8
    becomes U+FFFD, and counts in ``dropped`` once.
    """
    functions = whole_of(capture).table("xray_functions")
    ids = functions.array("id").astype(np.int64)  # searched by numbers of this type
    order = np.argsort(ids, kind="stable")
    ids, codes = ids[order], functions.array("name")[order]
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
    """The text of some bytes; what is not UTF-8 becomes U+FFFD, and counts in ``dropped``."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        dropped[what] += 1
        return data.decode("utf-8", "replace")


def who(capture: Capture) -> list[tuple[int, int]]:
    """Process and thread ids by the ids that events have, as 32 bits hold them."""
    processes, threads = whole_of(capture).event_threads()
    return [
        (int(process) & 0xFFFFFFFF, int(thread) & 0xFFFFFFFF)
        for process, thread in zip(processes, threads, strict=True)
    ]


def clock_of(capture: Capture) -> Clock:
    """The clock of the trace; where its rate is not known, a tick is a nanosecond."""
    return Clock(ticks_per_second=whole_of(capture).ticks_per_second or NS_PER_SECOND)


# --- Options, refusals, losses -------------------------------------------------------------------


def nothing_to_write(capture: Capture) -> WriteRefusedError:
    """The refusal of a capture that has not even a header."""
    return WriteRefusedError(
        "there is nothing to write: no event, no header",
        path=capture.name,
        remedy="`fxf info` shows what the capture holds",
    )


def left_out(capture: Capture) -> Counter[str]:
    """What of a capture is not an event, by name."""
    kinds = whole_of(capture).summary().kinds
    return Counter(
        {
            "damaged stretches": kinds.get("damaged", 0),
            "records of unknown types": kinds.get("unknown", 0),
        }
    )
