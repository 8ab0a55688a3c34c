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
    ENTRIES,
    HELD,
    Batch,
    SingleExport,
    argument_members,
    clock_of,
    names_of,
    process_and_thread_ids,
    walk,
)
from fx_xray.format import BASIC_PID_VERSION, CUSTOM, TYPED
from fx_xray.read.columns import let_rise_on
from fx_xray.read.tables import CUSTOM_EVENT, TYPED_EVENT
from fx_xray.read.views import Calls, Matched, whole_of
from fxframework.io.sink import Sink
from fxframework.kernels.arrays import I64, U64, Bools
from fxframework.kernels.parts import MICROS, NATURAL, TEXT
from fxframework.kernels.sorting import begins_of_runs
from fxframework.kernels.templates import Cell, Templates
from fxframework.kit.row_texts import Lines, Numbered, json_string
from fxframework.model.capture import Capture

FRAMES: Final = 1 << 14
"""Frames written together."""
UNMATCHED: Final = "exits without entries"


def microseconds(tsc: U64, rate: int, *, digits: int, nearest: bool = False) -> list[str]:
    """Return tick counts as decimal microseconds, rounded down or to the nearest.

    Takes uint64 of shape (n,) and ticks per second; returns n texts.
    """
    unit = 10**digits
    scale = 1_000_000 * unit
    half = rate // 2 if nearest else 0
    # Products may not fit in 64 bits.
    scaled = [(ticks * scale + half) // rate for ticks in tsc.tolist()]
    return [f"{value // unit}.{value % unit:0{digits}d}" for value in scaled]


@attrs.frozen(kw_only=True)
class _Form:
    """How trace_event is written: texts, with braces for values."""

    head: str
    between: str
    middle: str
    foot: str
    event: str
    """The beginning of an event: its name and its phase."""
    task: str
    """Process and thread."""
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
    task='"pid":{pid},"tid":{tid}',
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
    task='"tid" : "{tid}", "pid" : "{pid}"',
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
        no_event_yet = True
        for batch in walk(capture, self._dropped):
            letters = events.of(batch, calls.match(batch))
            if no_event_yet and letters.size:  # nothing to be separated from
                letters = letters[len(form.between) :]
                no_event_yet = False
            self._sink.write(letters.data)
        self._sink.write(form.middle.encode())
        frames = (events.frame(*stack) for stack in calls.stacks)
        separator = ""
        while frames_of_block := list(itertools.islice(frames, FRAMES)):
            block = separator + form.between.join(frames_of_block)
            self._sink.write(block.encode())
            separator = form.between
        self._sink.write(form.foot.encode())
        self._dropped[UNMATCHED] += calls.unmatched


class _JsonEvents:
    """Renders events as trace events."""

    def __init__(
        self, capture: Capture, form: _Form, dropped: Counter[str], *, with_events: bool
    ) -> None:
        self._names = names_of(capture, json_string, dropped)
        """Names of functions as JSON."""
        self._form = form
        self._with_events = with_events
        self._dropped = dropped
        self._clock = clock_of(capture)
        has_processes = (whole_of(capture).version or 0) >= BASIC_PID_VERSION
        self._digits = 4 if form is LLVM and has_processes else 3
        ids = process_and_thread_ids(capture)
        if form is LLVM and not has_processes:
            ids = [(1, tid) for _, tid in ids]
        self._tasks = [form.task.format(pid=pid, tid=tid) for pid, tid in ids]
        self._lines = Lines(Templates(b',"args":{', b",", b"}"))
        numbered = partial(Numbered, self._lines.templates, sparse=True)
        self._shown_tasks = numbered(self._tasks.__getitem__)
        self._begins = numbered(partial(self._beginning, "B"))
        self._ends = numbered(partial(self._beginning, "E"))
        self._latest = np.zeros(len(ids), np.uint64)
        """Latest time of each thread's begins and ends."""

    def frame(self, number: int, function: int, parent: int) -> str:
        """Return a stack as a member of ``stackFrames``; parent -1 is none."""
        parent_member = self._form.parent.format(parent) if parent >= 0 else ""
        return self._form.frame.format(number, self._names[function], parent_member)

    def _beginning(self, phase: str, function: int) -> str:
        return self._form.event.format(self._names[function], phase)

    def of(self, batch: Batch, matched: Matched) -> NDArray[np.uint8]:
        """Return the events of a batch that belong to the view, each behind a separator."""
        form = self._form
        lines = self._lines
        lines.templates.forget(HELD)
        tsc = self._forward(batch)
        is_entry = np.isin(batch.kind, list(ENTRIES))
        self._count_lost_arguments(batch, matched.shown, is_entry)

        def put(order: I64, places: I64, beginning: Cell, stacks: I64, *members: Cell) -> None:
            lines.put(
                order,
                form.between.encode(),
                beginning,
                self._shown_tasks(batch.thread[places]),
                form.time.encode(),
                self._times(tsc[places]),
                form.stack.encode(),
                (NATURAL, stacks),
                *members,
                form.close.encode(),
            )

        # The ends of inner calls come before that of the call whose exit ends them: they have
        # even numbers, all other events odd ones.
        entries = np.flatnonzero(matched.shown & is_entry)
        members: list[Cell] = []
        if self._with_events:
            members = argument_members(lines.templates, batch, entries, '"arg{}":'.format)
        begins = self._begins(batch.function[entries])
        put(2 * entries + 1, entries, begins, matched.stacks[entries], *members)
        exits = np.flatnonzero(matched.shown & matched.ended)
        put(2 * exits + 1, exits, self._ends(batch.function[exits]), matched.stacks[exits])
        is_inner_shown = matched.inner["shown"] != 0
        inner = {name: column[is_inner_shown] for name, column in matched.inner.items()}
        exits = inner["place"]
        put(2 * exits, exits, self._ends(inner["function"]), inner["stack"])
        places = np.flatnonzero(matched.shown & (batch.kind >= CUSTOM))
        if self._with_events:
            times = microseconds(tsc[places], self._clock.ticks_per_second, digits=3)
            instants = [
                self._instant(batch, place, time).encode()
                for place, time in zip(places.tolist(), times, strict=True)
            ]
            texts = lines.templates.texts(instants)
            lines.put(2 * places + 1, form.between.encode(), (TEXT, texts))
        else:
            self._dropped["custom and typed events"] += places.size
        return lines.joined()[0].data

    def _count_lost_arguments(self, batch: Batch, is_shown: Bools, is_entry: Bools) -> None:
        """Count the arguments that are not written: those of exits, and all if none is."""
        places = batch.argument_places[is_shown[batch.argument_places]]
        of_entries = int(np.count_nonzero(is_entry[places]))
        self._dropped["arguments of exits"] += places.size - of_entries
        if not self._with_events:
            self._dropped["arguments"] += of_entries

    def _times(self, tsc: U64) -> Cell:
        """Return times in microseconds."""
        if not self._form.nearest:
            ns, lost = self._clock.to_ns(tsc)
            if not lost:
                return MICROS, ns
        rate = self._clock.ticks_per_second
        times = microseconds(tsc, rate, digits=self._digits, nearest=self._form.nearest)
        encoded = [time.encode() for time in times]
        return TEXT, self._lines.templates.texts(encoded)

    def _forward(self, batch: Batch) -> U64:
        """Return the times, with those of a thread's calls made ascending.

        A viewer sorts by time, and would otherwise nest calls differently from the trace.
        """
        calls = np.flatnonzero(batch.kind < CUSTOM)
        calls = calls[np.argsort(batch.thread[calls], kind="stable")]
        thread = batch.thread[calls]
        begins = np.flatnonzero(begins_of_runs(thread))
        times = batch.tsc[calls]
        let_rise_on(times, begins, thread[begins], self._latest)
        self._dropped["times that go back"] += int(np.count_nonzero(times != batch.tsc[calls]))
        ascending = batch.tsc.copy()
        ascending[calls] = times
        return ascending

    def _instant(self, batch: Batch, place: int, time: str) -> str:
        """Return a custom or typed event."""
        data = batch.payloads[place]
        name = CUSTOM_EVENT
        arguments = ""
        if batch.kind[place] == TYPED:
            name = TYPED_EVENT
            arguments = f'"event_type":{batch.function[place]},'
        try:
            arguments += f'"data":{json_string(data.decode())}'
        except UnicodeDecodeError:
            arguments += f'"data_hex":"{data.hex()}"'
        task = self._tasks[int(batch.thread[place])]
        head = f'{{"name":"{name}","cat":"{name}","ph":"i","s":"t",{task}'
        return f'{head},"ts":{time},"args":{{{arguments}}}}}'
