"""The exporter `json`: trace_event JSON, as `llvm-xray convert -f trace_event` prints it."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import attrs
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
    SingleExport,
    argument_members,
    clock_of,
    names_of,
    walk,
    who,
    whole_of,
)
from fx_xray.format import BASIC_PID_VERSION
from fx_xray.read.tables import CUSTOM_EVENT, TYPED_EVENT
from fxframework.io.sink import Sink
from fxframework.kernels.parts import MICROS, NATURAL, TEXT
from fxframework.kernels.templates import Cell, Templates
from fxframework.kit.row_texts import Lines, Numbered, json_string
from fxframework.model.capture import Capture

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
    return [
        f"{micros_match}.{p:0{digits}d}"
        for micros_match, p in zip(micros.tolist(), part.tolist(), strict=True)
    ]


@attrs.frozen(kw_only=True)
class _Form:
    """How trace_event is written: texts, with braces for values."""

    head: str
    between: str
    middle: str
    foot: str
    event: str
    """The beginning of an event: its name and its phase."""
    who: str
    time: str
    stack: str
    close: str
    frame: str
    """The member of a stack: its number, its name, and ``parent`` if there is another below."""
    parent: str
    nearest: bool
    """Whether times are rounded, not exact."""


VIEWERS: Final = _Form(
    head='{"displayTimeUnit":"ns","traceEvents":[\n',
    between=",\n",
    middle='\n],"stackFrames":{\n',
    foot="\n}}\n",
    event='{{"name":{},"ph":"{}",',
    who='"pid":{pid},"tid":{tid}',
    time=',"ts":',
    stack=',"sf":',
    close="}",
    frame='"{}":{{"name":{}{}}}',
    parent=',"parent":{}',
    nearest=False,
)
"""The form of trace_event's viewers: ids and times are numbers.

Times are exact here, but Perfetto reads them as doubles: for an emulated clock, which counts from
1970, it shows multiples of 256 ns.
"""
LLVM: Final = _Form(
    head='{\n  "traceEvents": [\n    ',
    between=",\n    ",
    middle='\n  ],\n  "displayTimeUnit": "ns",\n  "stackFrames": {\n    ',
    foot="\n  }\n}\n",
    event='{{ "name" : {}, "ph" : "{}", ',
    who='"tid" : "{tid}", "pid" : "{pid}"',
    time=', "ts" : "',
    stack='", "sf" : "',
    close='" }',
    frame='"{}" : {{ "name" : {}{} }}',
    parent=', "parent": "{}"',
    nearest=True,
)
"""The form of llvm-xray 19: every value is a string."""


class JsonExport(SingleExport):
    """Writes trace_event JSON, as llvm-xray converts traces.

    Exits without a call are left out; a call that ends by the exit of another gets its own end.
    """

    what = "trace_event JSON"

    def __init__(self, sink: Sink, options: Mapping[str, Any]) -> None:
        super().__init__(sink, options)
        self._form = LLVM if options["strings"] else VIEWERS
        self._with_events = options["events"] and not options["strings"]

    def _write(self, capture: Capture) -> None:
        form = self._form
        calls = Calls(capture, stacks=True)
        events = _JsonEvents(capture, form, self._dropped, with_events=self._with_events)
        self._sink.write(form.head.encode())
        first = True
        for batch in walk(capture, self._dropped):
            letters = events.of(batch, calls.match(batch))
            # The first event follows none.
            self._sink.write(letters[len(form.between) if first else 0 :].data)
            first = first and not letters.size
        self._sink.write(form.middle.encode())
        frames = (
            form.frame.format(
                number, events.names[function], form.parent.format(parent) * (parent >= 0)
            )
            for number, function, parent in calls.stacks
        )
        between = ""
        while some := list(itertools.islice(frames, FRAMES)):
            self._sink.write((between + form.between.join(some)).encode())
            between = form.between
        self._sink.write(form.foot.encode())
        self._dropped[UNMATCHED] += calls.unmatched


class _JsonEvents:
    """Renders events as trace events."""

    def __init__(
        self, capture: Capture, form: _Form, dropped: Counter[str], *, with_events: bool
    ) -> None:
        self.names = names_of(capture, json_string, dropped)
        names = self.names
        """Names of functions as JSON."""
        self._form = form
        self._with_events = with_events
        self._dropped = dropped
        self._clock = clock_of(capture)
        has_processes = (whole_of(capture).version or 0) >= BASIC_PID_VERSION
        self._digits = 4 if form is LLVM and has_processes else 3
        shows_processes = has_processes or form is VIEWERS
        self._tasks = [
            form.who.format(pid=pid if shows_processes else 1, tid=tid) for pid, tid in who(capture)
        ]
        self._lines = Lines(Templates(b',"args":{', b",", b"}"))
        numbered = partial(Numbered, self._lines.templates, sparse=True)
        self._who = numbered(self._tasks.__getitem__)
        self._begins = numbered(lambda function: form.event.format(names[function], "B"))
        self._ends = numbered(lambda function: form.event.format(names[function], "E"))
        self._latest: dict[int, int] = {}
        """Latest time of each thread's begins and ends."""

    def of(self, batch: Batch, matched: Matched) -> NDArray[np.uint8]:
        """Return the events of a batch that belong to the view, each behind a separator."""
        form = self._form
        lines = self._lines
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
                self._times(tsc[places]),
                form.stack.encode(),
                (NATURAL, stacks[rows]),
                *members,
                form.close.encode(),
            )
        places = np.flatnonzero(matched.shown & (batch.kind >= CUSTOM))
        if self._with_events:
            times = microseconds(tsc[places], self._clock.ticks_per_second, digits=3)
            shown = (
                form.between + self._instant(batch, place, time)
                for place, time in zip(places.tolist(), times, strict=True)
            )
            instants = [text.encode() for text in shown]
            lines.put(2 * places + 1, (TEXT, lines.templates.texts(instants)))
        else:
            self._dropped["custom and typed events"] += places.size
        return lines.joined()[0].data

    def _times(self, tsc: U64) -> Cell:
        """Return times in microseconds."""
        if not self._form.nearest:
            ns, lost = self._clock.to_ns(tsc)
            if not lost:
                return MICROS, ns
        rate = self._clock.ticks_per_second
        nearest = self._form.nearest
        shown = microseconds(tsc, rate, digits=self._digits, nearest=nearest)
        return TEXT, self._lines.templates.texts([text.encode() for text in shown])

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
            latest_before = np.uint64(self._latest.get(thread, 0))
            latest = np.maximum.accumulate(np.maximum(times, latest_before))
            self._latest[thread] = int(latest[-1])
            back = int(np.count_nonzero(latest != times))
            if back:
                self._dropped["times that go back"] += back
                out = tsc.copy() if out is None else out
                out[places] = latest
        return tsc if out is None else out

    def _instant(self, batch: Batch, place: int, time: str) -> str:
        kind = int(batch.kind[place])
        data = batch.payloads[place]
        name = CUSTOM_EVENT if kind == CUSTOM else TYPED_EVENT
        number = f'"event_type":{batch.function[place]},' if kind == TYPED else ""
        try:
            shown = f'"data":{json_string(data.decode())}'
        except UnicodeDecodeError:
            shown = f'"data_hex":"{data.hex()}"'
        who = self._tasks[int(batch.thread[place])]
        return (
            f'{{"name":"{name}","cat":"{name}","ph":"i","s":"t",{who},"ts":{time},'
            f'"args":{{{number}{shown}}}}}'
        )
