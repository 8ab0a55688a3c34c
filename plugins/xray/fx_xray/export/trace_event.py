"""The exporter `json`: trace_event JSON, as `llvm-xray convert -f trace_event` prints it."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import orjson

from fx_xray.export.presentation import (
    CUSTOM,
    ENTRIES,
    TYPED,
    U64,
    Batch,
    Calls,
    Matched,
    Names,
    clock_of,
    names_of,
    walk,
    who,
    whole_of,
)
from fx_xray.export.session import SingleExport
from fx_xray.layout import BASIC_PID_VERSION
from fx_xray.read.tables import CUSTOM_EVENT, TYPED_EVENT
from fxframework.io.sink import Sink
from fxframework.kit.memo import Memo
from fxframework.model.capture import Capture

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


def quoted(text: str) -> str:
    r"""Return the text as a JSON string that Perfetto's parser accepts too.

    That parser fails on a backslash directly before the closing quote, and on DEL.
    """
    made = orjson.dumps(text).decode()
    if made.endswith('\\\\"'):
        made = made[:-3] + r'\u005c"'
    return made.replace("\x7f", r"\u007f")


class _Frames:
    """Distinct stacks of functions: the ``stackFrames`` of trace_event."""

    def __init__(self, deepest: int) -> None:
        self._functions = array("I")
        self._parents = array("q")
        self._known: dict[int, int] = {}
        self._deepest = deepest

    def of(self, parent: int, function: int, depth: int) -> int:
        """Return the number of the stack with a function on top of another stack (-1: none).

        Beyond the limit of depth, the number of the stack below is returned.
        """
        if depth > self._deepest > 0:
            return parent
        key = parent + 1 << 32 | function
        number = self._known.get(key)
        if number is None:
            number = self._known[key] = len(self._functions)
            self._functions.append(function)
            self._parents.append(parent)
        return number

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        """Yield number, function and parent of each stack."""
        return iter(zip(range(len(self._functions)), self._functions, self._parents, strict=True))


class JsonExport(SingleExport):
    """Writes trace_event JSON, as llvm-xray converts traces.

    Exits without a call are left out; a call that ends by the exit of another gets its own end.
    """

    what = "trace_event JSON"

    def __init__(self, sink: Sink, options: Mapping[str, Any]) -> None:
        super().__init__(sink, options)
        self._strings = options["strings"]
        self._with_events = options["events"] and not self._strings
        self._comma = ""

    def _write(self, capture: Capture) -> None:
        calls = Calls(capture)
        frames = _Frames(capture.request.limits.max_depth)
        names = names_of(capture, quoted, self._dropped)
        form = _LlvmForm(capture, names) if self._strings else _OurForm(capture, names)
        events = _JsonEvents(form, frames, self._with_events, self._dropped)
        self._sink.write(form.head)
        for batch in walk(capture, self._dropped):
            matched = calls.match(batch)
            self._put_events(events.of(batch, matched), form.between)
        self._sink.write(form.middle)
        self._put_frames(frames, form)
        self._sink.write(form.foot)
        self._dropped[UNMATCHED] += calls.unmatched

    def _put_events(self, items: Sequence[str], between: str) -> None:
        if items:
            self._sink.write((self._comma + between.join(items)).encode())
            self._comma = between

    def _put_frames(self, frames: _Frames, form: _LlvmForm | _OurForm) -> None:
        some: list[str] = []
        self._comma = ""
        for number, function, parent in frames:
            some.append(form.frame(number, function, parent))
            if len(some) == 1 << 14:
                self._put_events(some, form.between)
                some = []
        self._put_events(some, form.between)


def _beginnings(form: str, names: Names) -> Memo[int, str]:
    """Return the beginnings of functions' events, by function id."""
    return Memo(lambda function: form.format(names[function]))


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
        self._rate = clock_of(capture).ticks_per_second
        self.who = [f'"pid":{pid},"tid":{tid}' for pid, tid in who(capture)]
        self.begins = _beginnings('{{"name":{},"ph":"B",', names)
        self.ends = _beginnings('{{"name":{},"ph":"E",', names)

    def times(self, tsc: U64) -> list[str]:
        """Return times in microseconds, with three decimals."""
        return microseconds(tsc, self._rate, digits=3)

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
        self._rate = clock_of(capture).ticks_per_second
        has_processes = (whole_of(capture).version or 0) >= BASIC_PID_VERSION
        self._digits = 4 if has_processes else 3
        self.who = [
            f'"tid" : "{tid}", "pid" : "{pid if has_processes else 1}"' for pid, tid in who(capture)
        ]
        self.begins = _beginnings('{{ "name" : {}, "ph" : "B", ', names)
        self.ends = _beginnings('{{ "name" : {}, "ph" : "E", ', names)

    def times(self, tsc: U64) -> list[str]:
        """Return times in microseconds."""
        return microseconds(tsc, self._rate, digits=self._digits, nearest=True)

    def frame(self, number: int, function: int, parent: int) -> str:
        """Return the member of a stack."""
        below = f', "parent": "{parent}"' if parent >= 0 else ""
        return f'"{number}" : {{ "name" : {self._names[function]}{below} }}'


class _JsonEvents:
    """Renders events as trace events."""

    def __init__(
        self, form: _OurForm | _LlvmForm, frames: _Frames, with_events: bool, dropped: Counter[str]
    ) -> None:
        self._form = form
        self._frames = frames
        self._with_events = with_events
        self._dropped = dropped
        self._stacks: list[list[int]] = [[] for _ in form.who]
        """Numbers of the stacks of each thread's open calls."""
        self._latest: dict[int, int] = {}
        """Latest time of each thread's begins and ends."""

    def of(self, batch: Batch, matched: Matched) -> list[str]:
        """Return the events of a batch that belong to the view."""
        out: list[str] = []
        put = out.append
        form, frames, who = self._form, self._frames, self._form.who
        begins, ends, at, on, close = form.begins, form.ends, form.time, form.stack, form.close
        args, unwound = batch.args, matched.unwound
        for place, (kind, function, time, thread, entered, is_shown) in enumerate(
            zip(
                batch.kind.tolist(),
                batch.function.tolist(),
                form.times(self._forward(batch)),
                batch.thread.tolist(),
                matched.entered,
                matched.shown,
                strict=True,
            )
        ):
            stack = self._stacks[thread]
            if kind in ENTRIES:
                number = frames.of(stack[-1] if stack else -1, function, len(stack))
                stack.append(number)
                if is_shown:
                    given = self._arguments(args[place]) if place in args else ""
                    put(f"{begins[function]}{who[thread]}{at}{time}{on}{number}{given}{close}")
            elif entered >= 0:
                for inner in unwound.get(place, ()):
                    number = stack.pop()
                    if inner.shown:
                        put(f"{ends[inner.function]}{who[thread]}{at}{time}{on}{number}{close}")
                number = stack.pop()
                if is_shown:
                    put(f"{ends[function]}{who[thread]}{at}{time}{on}{number}{close}")
            elif kind >= CUSTOM and is_shown:
                self._instant(batch, place, time, out)
            if place in args and kind not in ENTRIES and is_shown:
                self._dropped["arguments of exits"] += len(args[place])
        return out

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

    def _arguments(self, values: Sequence[int]) -> str:
        if not self._with_events:
            self._dropped["arguments"] += len(values)
            return ""
        members = ",".join(f'"arg{place}":{value}' for place, value in enumerate(values))
        return f',"args":{{{members}}}'

    def _instant(self, batch: Batch, place: int, time: str, out: list[str]) -> None:
        if not self._with_events:
            self._dropped["custom and typed events"] += 1
            return
        kind, data = int(batch.kind[place]), batch.payloads[place]
        name = CUSTOM_EVENT if kind == CUSTOM else TYPED_EVENT
        number = f'"event_type":{batch.function[place]},' if kind == TYPED else ""
        try:
            shown = f'"data":{quoted(data.decode())}'
        except UnicodeDecodeError:
            shown = f'"data_hex":"{data.hex()}"'
        who = self._form.who[int(batch.thread[place])]
        out.append(
            f'{{"name":"{name}","cat":"{name}","ph":"i","s":"t",{who},"ts":{time},'
            f'"args":{{{number}{shown}}}}}'
        )
