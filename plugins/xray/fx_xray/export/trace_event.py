"""The exporter `json`: trace_event JSON, as `llvm-xray convert -f trace_event` prints it."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fx_xray.export.presentation import (
    CUSTOM,
    ENTRIES,
    HELD,
    TYPED,
    U64,
    Batch,
    Calls,
    Matched,
    Names,
    argument_members,
    clock_of,
    names_of,
    walk,
    who,
    whole_of,
)
from fx_xray.export.session import SingleExport
from fx_xray.format import BASIC_PID_VERSION
from fx_xray.read.tables import CUSTOM_EVENT, TYPED_EVENT
from fxframework.io.sink import Sink
from fxframework.kernels.parts import MICROS, NATURAL, TEXT
from fxframework.kernels.templates import Cell, Templates
from fxframework.kit.row_texts import Lines, Numbered, json_string
from fxframework.model.capture import Capture

Stack = tuple[int, int, int]
"""Number, function, and number of the stack below, or -1."""
FRAMES: Final = 1 << 14
"""Frames written together."""
UNMATCHED: Final = "exits without entries"
_STEP: Final = 100_000
"""Factor of a remainder in one step, small enough for 64 bits."""


def microseconds(tsc: U64, rate: int, *, digits: int, nearest: bool = False) -> list[str]:
    """Return tick counts as decimal microseconds, rounded down or to the nearest.

    Takes uint64 of shape (n,) and ticks per second; returns n texts.
    """
    scale = 10 ** (6 + digits)
    unit = 10**digits
    if rate > (1 << 63) // _STEP or (tsc.size and int(tsc.max()) // rate >= 1 << 43):
        half = rate // 2 if nearest else 0
        values = [divmod((ticks * scale + half) // rate, unit) for ticks in tsc.tolist()]
        return [f"{whole}.{part:0{digits}d}" for whole, part in values]
    divisor = np.uint64(rate)
    whole, rest = np.divmod(tsc, divisor)
    high, rest = np.divmod(rest * np.uint64(_STEP), divisor)
    low, rest = np.divmod(rest * np.uint64(scale // _STEP), divisor)
    if nearest:
        low += rest >= divisor - rest
    fraction = high * np.uint64(scale // _STEP) + low
    micros, part = np.divmod(fraction, np.uint64(unit))
    micros += whole * np.uint64(1_000_000)
    return [f"{m}.{p:0{digits}d}" for m, p in zip(micros.tolist(), part.tolist(), strict=True)]


class JsonExport(SingleExport):
    """Writes trace_event JSON, as llvm-xray converts traces.

    Exits without a call are left out; a call that ends by the exit of another gets its own end.
    """

    what = "trace_event JSON"

    def __init__(self, sink: Sink, options: Mapping[str, Any]) -> None:
        super().__init__(sink, options)
        self._strings = options["strings"]
        self._with_events = options["events"] and not self._strings

    def _write(self, capture: Capture) -> None:
        calls = Calls(capture)
        names = names_of(capture, json_string, self._dropped)
        form = _LlvmForm(capture, names) if self._strings else _OurForm(capture, names)
        events = _JsonEvents(form, self._with_events, self._dropped)
        self._sink.write(form.head)
        first = True
        for batch in walk(capture, self._dropped):
            letters = events.of(batch, calls.match(batch))
            # The first event follows none.
            self._sink.write(letters[len(form.between) if first else 0 :].data)
            first = first and not letters.size
        self._sink.write(form.middle)
        self._put_frames(form, calls.stacks)
        self._sink.write(form.foot)
        self._dropped[UNMATCHED] += calls.unmatched

    def _put_frames(self, form: _LlvmForm | _OurForm, stacks: Iterable[Stack]) -> None:
        """Write the frames of stacks, some at a time."""
        frames = (form.frame(*stack) for stack in stacks)
        between = ""
        while some := list(itertools.islice(frames, FRAMES)):
            self._sink.write((between + form.between.join(some)).encode())
            between = form.between


class _OurForm:
    """trace_event in the form of its viewers: ids and times are numbers.

    Times are exact here, but Perfetto reads them as doubles: for an emulated clock, which counts
    from 1970, it shows multiples of 256 ns.
    """

    head = b'{"displayTimeUnit":"ns","traceEvents":[\n'
    between = ",\n"
    middle = b'\n],"stackFrames":{\n'
    foot = b"\n}}\n"
    time = ',"ts":'
    stack = ',"sf":'
    close = "}"

    def __init__(self, capture: Capture, names: Names) -> None:
        self._names = names
        self._clock = clock_of(capture)
        self.rate = self._clock.ticks_per_second
        self.who = [f'"pid":{pid},"tid":{tid}' for pid, tid in who(capture)]

    def begin(self, function: int) -> str:
        """Return the beginning of a function's begins."""
        return f'{{"name":{self._names[function]},"ph":"B",'

    def end(self, function: int) -> str:
        """Return the beginning of a function's ends."""
        return f'{{"name":{self._names[function]},"ph":"E",'

    def times(self, tsc: U64, templates: Templates) -> Cell:
        """Return times in microseconds, with three decimals."""
        ns, lost = self._clock.to_ns(tsc)
        if not lost:
            return MICROS, ns
        shown = microseconds(tsc, self.rate, digits=3)
        return TEXT, templates.texts([text.encode() for text in shown])

    def frame(self, number: int, function: int, parent: int) -> str:
        """Return the member of a stack."""
        below = f',"parent":{parent}' if parent >= 0 else ""
        return f'"{number}":{{"name":{self._names[function]}{below}}}'


class _LlvmForm:
    """trace_event in the form of llvm-xray 19: every value is a string."""

    head = b'{\n  "traceEvents": [\n    '
    between = ",\n    "
    middle = b'\n  ],\n  "displayTimeUnit": "ns",\n  "stackFrames": {\n    '
    foot = b"\n  }\n}\n"
    time = ', "ts" : "'
    stack = '", "sf" : "'
    close = '" }'

    def __init__(self, capture: Capture, names: Names) -> None:
        self._names = names
        self.rate = clock_of(capture).ticks_per_second
        has_processes = (whole_of(capture).version or 0) >= BASIC_PID_VERSION
        self._digits = 4 if has_processes else 3
        self.who = [
            f'"tid" : "{tid}", "pid" : "{pid if has_processes else 1}"' for pid, tid in who(capture)
        ]

    def begin(self, function: int) -> str:
        """Return the beginning of a function's begins."""
        return f'{{ "name" : {self._names[function]}, "ph" : "B", '

    def end(self, function: int) -> str:
        """Return the beginning of a function's ends."""
        return f'{{ "name" : {self._names[function]}, "ph" : "E", '

    def times(self, tsc: U64, templates: Templates) -> Cell:
        """Return times in microseconds."""
        shown = microseconds(tsc, self.rate, digits=self._digits, nearest=True)
        return TEXT, templates.texts([text.encode() for text in shown])

    def frame(self, number: int, function: int, parent: int) -> str:
        """Return the member of a stack."""
        below = f', "parent": "{parent}"' if parent >= 0 else ""
        return f'"{number}" : {{ "name" : {self._names[function]}{below} }}'


class _JsonEvents:
    """Renders events as trace events."""

    def __init__(
        self, form: _OurForm | _LlvmForm, with_events: bool, dropped: Counter[str]
    ) -> None:
        self._form = form
        self._with_events = with_events
        self._dropped = dropped
        self._lines = Lines(Templates(b',"args":{', b",", b"}"))
        self._who = Numbered(self._lines.templates, form.who.__getitem__, sparse=True)
        self._begins = Numbered(self._lines.templates, form.begin, sparse=True)
        self._ends = Numbered(self._lines.templates, form.end, sparse=True)
        self._latest: dict[int, int] = {}
        """Latest time of each thread's begins and ends."""

    def of(self, batch: Batch, matched: Matched) -> NDArray[np.uint8]:
        """Return the events of a batch that belong to the view, each behind a separator."""
        form, lines = self._form, self._lines
        lines.templates.forget(HELD)
        tsc = self._forward(batch)
        entry = np.isin(batch.kind, list(ENTRIES))
        for place, values in batch.args.items():
            if matched.shown[place] and not (entry[place] and self._with_events):
                self._dropped["arguments" if entry[place] else "arguments of exits"] += len(values)
        # The ends of inner calls come before that of the call whose exit ends them.
        inner = np.flatnonzero(matched.inner["shown"])
        for places, ranks, functions, stacks, beginnings in (
            (np.flatnonzero(matched.shown & entry), None, batch.function, matched.stacks,
             self._begins),
            (np.flatnonzero(matched.shown & matched.ended), None, batch.function, matched.stacks,
             self._ends),
            (matched.inner["place"][inner], inner, matched.inner["function"],
             matched.inner["stack"], self._ends),
        ):  # fmt: skip
            rows = places if ranks is None else ranks
            members: list[Cell] = []
            if self._with_events and beginnings is self._begins:
                members = argument_members(lines.templates, batch, places, '"arg{}":'.format)
            lines.put(
                2 * places + (ranks is None),
                form.between.encode(),
                beginnings(functions[rows]),
                self._who(batch.thread[places]),
                form.time.encode(),
                form.times(tsc[places], lines.templates),
                form.stack.encode(),
                (NATURAL, stacks[rows]),
                *members,
                form.close.encode(),
            )
        places = np.flatnonzero(matched.shown & (batch.kind >= CUSTOM))
        if self._with_events:
            times = microseconds(tsc[places], form.rate, digits=3)
            instants = [(form.between + self._instant(batch, place, time)).encode()
                        for place, time in zip(places.tolist(), times, strict=True)]  # fmt: skip
            lines.put(2 * places + 1, (TEXT, lines.templates.texts(instants)))
        else:
            self._dropped["custom and typed events"] += places.size
        return lines.joined()[0].data

    def _forward(self, batch: Batch) -> U64:
        """Return the times, with those of a thread's calls made ascending.

        A viewer sorts by time, and would otherwise nest calls differently from the trace.
        """
        tsc = batch.tsc
        out: U64 | None = None
        calls = batch.kind < CUSTOM
        for thread in np.unique(batch.thread).tolist():
            places = np.flatnonzero(calls & (batch.thread == thread))
            if not places.size:
                continue
            times = tsc[places]
            latest = np.maximum.accumulate(
                np.maximum(times, np.uint64(self._latest.get(thread, 0)))
            )
            self._latest[thread] = int(latest[-1])
            back = int(np.count_nonzero(latest != times))
            if back:
                self._dropped["times that go back"] += back
                out = tsc.copy() if out is None else out
                out[places] = latest
        return tsc if out is None else out

    def _instant(self, batch: Batch, place: int, time: str) -> str:
        kind, data = int(batch.kind[place]), batch.payloads[place]
        name = CUSTOM_EVENT if kind == CUSTOM else TYPED_EVENT
        number = f'"event_type":{batch.function[place]},' if kind == TYPED else ""
        try:
            shown = f'"data":{json_string(data.decode())}'
        except UnicodeDecodeError:
            shown = f'"data_hex":"{data.hex()}"'
        who = self._form.who[int(batch.thread[place])]
        return (
            f'{{"name":"{name}","cat":"{name}","ph":"i","s":"t",{who},"ts":{time},'
            f'"args":{{{number}{shown}}}}}'
        )
