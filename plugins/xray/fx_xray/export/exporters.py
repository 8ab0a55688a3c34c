"""Exporters of the XRay formats: text for people, and what llvm-xray converts traces to."""

from __future__ import annotations

import abc
import re
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
    choice,
    clock_of,
    in_time,
    left_out,
    nothing_to_write,
    text_of,
    walk,
    who,
    whole_of,
)
from fx_xray.layout import (
    BASIC,
    BASIC_PID_VERSION,
    FDR,
    FUNCTION_NAMES,
    NO_CPU,
)
from fx_xray.read.tables import CUSTOM_EVENT, TYPED_EVENT
from fxframework.errors import WriteRefusedError
from fxframework.io.sink import Sink
from fxframework.model.capture import Capture
from fxframework.model.clock import NS_PER_SECOND
from fxframework.model.window import View
from fxframework.registry import ExportSession

__all__ = ["open_json", "open_text", "open_yaml"]

UNMATCHED: Final = "exits without entries"


def open_text(sink: Sink, options: Mapping[str, Any]) -> ExportSession:
    """The exporter `text`. Raises UsageError for an option that is none of its words."""
    return _TextExport(sink, options)


def open_json(sink: Sink, options: Mapping[str, Any]) -> ExportSession:
    """The exporter `json`."""
    return _JsonExport(sink, options)


def open_yaml(sink: Sink, options: Mapping[str, Any]) -> ExportSession:
    """The exporter `llvm-yaml`. Raises UsageError for an option that is none of its words."""
    return _YamlExport(sink, options)


class _Export(abc.ABC):
    """Writes the events of captures."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._dropped: Counter[str] = Counter()

    @abc.abstractmethod
    def write(self, capture: Capture) -> None:
        """Write one capture."""

    def close(self) -> Mapping[str, int]:
        """What was left out, by name."""
        return {what: count for what, count in self._dropped.items() if count > 0}

    def _put(self, lines: Sequence[str], between: str = "\n") -> None:
        if lines:
            self._sink.write((between.join(lines) + between).encode())


class _SingleExport(_Export):
    """Writes the events of one capture."""

    what: str
    """What holds no second capture."""

    def __init__(self, sink: Sink) -> None:
        super().__init__(sink)
        self._used = False

    def write(self, capture: Capture) -> None:
        """Write the one capture.

        Raises WriteRefusedError for a second one, and where there is not even a header.
        """
        if self._used:
            raise WriteRefusedError(
                f"{self.what} holds one capture", remedy="convert the inputs one by one"
            )
        self._used = True
        if whole_of(capture).version is None:
            raise nothing_to_write(capture)
        self._write(capture)
        self._dropped += left_out(capture)

    @abc.abstractmethod
    def _write(self, capture: Capture) -> None:
        """Write it."""


def _matched(
    capture: Capture, calls: Calls, dropped: Counter[str]
) -> Iterator[tuple[Batch, Matched]]:
    """Batches of a capture, and how calls match in them."""
    for batch in walk(capture, dropped):
        yield batch, calls.match(batch)


# --- Text ----------------------------------------------------------------------------------------

TIMES: Final = ("clock", "first", "ticks")
DEEPEST: Final = 40
"""Levels up to which lines are indented."""
INDENTS: Final = tuple("  " * depth for depth in range(DEEPEST + 1))


def plain(text: str) -> str:
    """The text as it is, or as a JSON string where it would break the line or hide in it."""
    return text if text and text.isprintable() else _in_ascii(text)


def _in_ascii(text: str) -> str:
    """The text as a JSON string in which all that is not printable is escaped."""
    return "".join(
        character if character.isprintable() else _escaped(character)
        for character in orjson.dumps(text).decode()
    )


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def duration(ns: int) -> str:
    """A length in the greatest unit that it fills, exact to the nanosecond."""
    # Up to a second a double holds it with all its digits, and shows no more of them than needed.
    if 0 <= ns < 1_000:
        return f"{ns}ns"
    if 0 <= ns < 1_000_000:
        return f"{ns / 1_000:g}us"
    if 0 <= ns < NS_PER_SECOND:
        return f"{ns / 1_000_000:.9g}ms"
    if ns < 0:
        return f"-{duration(-ns)}"
    whole, part = divmod(ns, NS_PER_SECOND)
    digits = f"{part:09d}".rstrip("0")
    return f"{whole}.{digits}s" if digits else f"{whole}s"


def payload_text(data: bytes) -> str:
    """A payload as a JSON string where it is UTF-8, else in hex."""
    try:
        return _in_ascii(data.decode())
    except UnicodeDecodeError:
        return f"[{data.hex(' ')}]"


class _TextExport(_Export):
    """Writes a line for each event: where, when, who, and what, indented by its depth."""

    def __init__(self, sink: Sink, options: Mapping[str, Any]) -> None:
        super().__init__(sink)
        self._time = choice(options, "time", TIMES)
        self._metadata = bool(options["metadata"])

    def write(self, capture: Capture) -> None:
        """Write one capture; a further one follows behind it.

        Raises WriteRefusedError where there is nothing to write, not even a header.
        """
        if whole_of(capture).version is None:
            raise nothing_to_write(capture)
        calls = Calls(capture)
        lines = _TextLines(capture, self._time, self._dropped)
        metadata = _Metadata(capture) if self._metadata else None
        if metadata is not None:
            self._put(metadata.head)
        for batch, matched in _matched(capture, calls, self._dropped):
            made = lines.of(batch, matched)
            if metadata is None:
                self._put([line for line in made if line is not None])
            else:
                self._put(metadata.among(batch, made))
        if metadata is None:
            self._dropped += left_out(capture)
        else:
            self._put(metadata.rest())


class _TextLines:
    """Events as lines, without their ends."""

    def __init__(self, capture: Capture, time: str, dropped: Counter[str]) -> None:
        self._time = time
        self._clock = clock_of(capture)
        people = who(capture)
        self._heads = [_Heads(pid, tid) for pid, tid in people]
        names = Names(capture, plain, dropped)
        self._labels = {kind: _Labels(word, names) for kind, word in FUNCTION_NAMES.items()}
        self._last: list[int | None] = [None] * len(people)
        """By thread: the time of its last event."""
        self._first: int | None = None

    def of(self, batch: Batch, matched: Matched) -> list[str | None]:
        """A line for each event; None for what does not belong."""
        lines: list[str | None] = []
        last, heads, labels = self._last, self._heads, self._labels
        args, rate = batch.args, self._clock.ticks_per_second
        unwound = matched.unwound
        ns = self._ns(batch.tsc)
        for kind, function, tsc, cpu, thread, place_shown, at, depth, entered, is_shown in zip(
            batch.kind.tolist(),
            batch.function.tolist(),
            batch.tsc.tolist(),
            batch.cpu.tolist(),
            batch.thread.tolist(),
            self._places(batch, ns),
            ns,
            matched.depths,
            matched.entered,
            matched.shown,
            strict=True,
        ):
            before = last[thread]
            last[thread] = tsc
            if not is_shown:
                lines.append(None)
                continue
            place = len(lines)
            if kind >= CUSTOM:
                what = self._event(batch, place)
            else:
                what = labels[kind][function]
                if entered >= 0:
                    length = at - entered * NS_PER_SECOND // rate
                    what += f" dur={length}ns" if 0 <= length < 1000 else f" dur={duration(length)}"
                    if place in unwound:
                        what += f" unwound={len(unwound[place])}"
                elif kind not in ENTRIES:
                    what += " unmatched"
                if place in args:
                    what += "".join(f" arg{n}={value}" for n, value in enumerate(args[place]))
            indent = INDENTS[depth] if depth <= DEEPEST else f"{INDENTS[DEEPEST]}[{depth}] "
            delta = (
                ""
                if before is None
                else f" +{tsc - before}"
                if tsc >= before
                else f" {tsc - before}"
            )
            lines.append(f"{place_shown} {heads[thread][cpu]} {indent}{what}{delta}")
        return lines

    def _event(self, batch: Batch, place: int) -> str:
        """A custom or typed event."""
        data = batch.payloads[place]
        name = CUSTOM_EVENT
        if batch.kind[place] == TYPED:
            name = f"{TYPED_EVENT} type={batch.function[place]}"
        return f"{name} size={len(data)} {payload_text(data)}"

    def _ns(self, tsc: U64) -> list[int]:
        ns, lost = self._clock.to_ns(tsc)
        if lost:
            rate = self._clock.ticks_per_second
            return [ticks * NS_PER_SECOND // rate for ticks in tsc.tolist()]
        return ns.tolist()  # type: ignore[no-any-return]

    def _places(self, batch: Batch, ns: Sequence[int]) -> list[str]:
        """Offsets and times, in columns: the times as the option asks for them."""
        offsets = batch.offset.tolist()
        if self._time == "ticks":
            pairs = zip(offsets, batch.tsc.tolist(), strict=True)
            return [f"{offset:>8} {ticks:>16}" for offset, ticks in pairs]
        if self._first is None and ns:
            self._first = ns[0] if self._time == "first" else 0
        first = self._first or 0
        if first or min(ns, default=0) < NS_PER_SECOND:
            shown = [seconds(moment - first) for moment in ns]
            return [f"{offset:>8} {time}" for offset, time in zip(offsets, shown, strict=True)]
        return [  # as seconds() has them
            f"{offset:>8} {digits[:-9]:>6}.{digits[-9:]}"
            for offset, digits in zip(offsets, map(str, ns), strict=True)
        ]


class _Heads(dict[int, str]):
    """Process, thread and CPU, by CPU."""

    def __init__(self, pid: int, tid: int) -> None:
        super().__init__()
        self._who = f"{pid}/{tid}"

    def __missing__(self, cpu: int) -> str:
        made = self[cpu] = f"{self._who} cpu{'?' if cpu == NO_CPU else cpu}"
        return made


class _Labels(dict[int, str]):
    """Names and ids of functions behind a word, by id; where nothing names one, its id alone."""

    def __init__(self, word: str, names: Names) -> None:
        super().__init__()
        self._word = word
        self._names = names

    def __missing__(self, function: int) -> str:
        name = self._names[function]
        shown = f"#{function}" if name == str(function) else f"{name} #{function}"
        made = self[function] = f"{self._word} {shown}"
        return made


def seconds(ns: int) -> str:
    """A time in seconds, to the nanosecond; a sign only where it is negative."""
    if ns >= NS_PER_SECOND:
        digits = str(ns)
        return f"{digits[:-9]:>6}.{digits[-9:]}"
    if ns >= 0:
        return f"     0.{ns:09d}"
    whole, part = divmod(-ns, NS_PER_SECOND)
    return f"{f'-{whole}':>6}.{part:09d}"


# --- Metadata among the lines --------------------------------------------------------------------

EVENTS: Final = frozenset({"function", "call_argument", CUSTOM_EVENT, TYPED_EVENT})
"""Records that have lines as events."""
BEGINNING: Final = frozenset(
    {"buffer_extents", "new_buffer", "wall_time", "pid", "new_cpu", "tsc_wrap"}
)
"""Records that say something about what follows them."""
HIDDEN: Final = frozenset({"record", "offset", "nbytes", "padding_hex", "raw"})
"""Fields of records that are not shown by their names."""


class _Metadata:
    """Lines of the records that are no events, each with the event that it stands beside."""

    def __init__(self, capture: Capture) -> None:
        self.head: list[str] = []
        """Lines of what stands before anything else: the header."""
        self._before: dict[int, list[str]] = {}
        self._behind: dict[int, list[str]] = {}
        self._whole = whole_of(capture) is capture
        waiting: list[str] = []
        last: int | None = None
        for record in whole_of(capture).records():
            shown = record.to_json()
            kind = shown["record"]
            if kind in EVENTS:
                if kind == "call_argument":  # it has no line of its own
                    continue
                if waiting:
                    self._before[record.offset] = waiting
                    waiting = []
                last = record.offset
            elif kind in BEGINNING:
                waiting.append(_metadata_line(shown))
            elif waiting or last is None:
                (waiting or self.head).append(_metadata_line(shown))
            else:
                self._behind.setdefault(last, []).append(_metadata_line(shown))
        if waiting:
            self._before[-1] = waiting

    def among(self, batch: Batch, lines: Sequence[str | None]) -> list[str]:
        """The lines of a batch with those that stand before and behind them."""
        out: list[str] = []
        for offset, line in zip(batch.offset.tolist(), lines, strict=True):
            before, behind = self._before.pop(offset, ()), self._behind.pop(offset, ())
            if line is not None:
                out += (*before, line, *behind)
        return out

    def rest(self) -> list[str]:
        """Lines beside no event, in the order of the file."""
        if not self._whole:
            return []
        return [
            line
            for where in (self._behind, self._before)
            for _, lines in sorted(where.items(), key=lambda item: (item[0] < 0, item[0]))
            for line in lines
        ]


def _metadata_line(shown: Mapping[str, Any]) -> str:
    members = " ".join(
        f"{name}={orjson.dumps(value).decode() if isinstance(value, bool) else value}"
        for name, value in shown.items()
        if name not in HIDDEN
    )
    if shown["record"] in ("damaged", "unknown"):
        members += f" nbytes={shown['nbytes']}"
    return f"{shown['offset']:>8} -- {shown['record']} {members}".rstrip()


# --- trace_event ---------------------------------------------------------------------------------

_STEP: Final = 100_000
"""By which a remainder is multiplied at a time, so that 64 bits hold it."""


def microseconds(tsc: U64, rate: int, *, digits: int, nearest: bool = False) -> list[str]:
    """Tick counts as decimal microseconds, exact and rounded down, or to the nearest.

    Takes uint64 of shape (n,) and ticks per second; gives n texts.
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
    r"""The text as a JSON string that Perfetto's parser takes too.

    That stumbles over a backslash right before the closing quote, and over a DEL.
    """
    made = orjson.dumps(text).decode()
    if made.endswith('\\\\"'):
        made = made[:-3] + r'\u005c"'
    return made.replace("\x7f", r"\u007f")


class _Frames:
    """Stacks of functions, each distinct one once: the ``stackFrames`` of trace_event."""

    def __init__(self, deepest: int) -> None:
        self._functions: list[int] = []
        self._parents: list[int] = []
        self._known: dict[tuple[int, int], int] = {}
        self._deepest = deepest

    def of(self, parent: int, function: int, depth: int) -> int:
        """The number of the stack with a function on top of another stack, -1 for none.

        Deeper than the limit, the number is that of the stack below.
        """
        if depth > self._deepest > 0:
            return parent
        key = (parent, function)
        number = self._known.get(key)
        if number is None:
            number = self._known[key] = len(self._functions)
            self._functions.append(function)
            self._parents.append(parent)
        return number

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        """Number, function and parent of each."""
        return iter(zip(range(len(self._functions)), self._functions, self._parents, strict=True))


class _JsonExport(_SingleExport):
    """Writes trace_event JSON, as llvm-xray converts traces to it.

    Exits that end no call are left out; a call that another's exit ends gets an end of its own.
    """

    what = "trace_event JSON"

    def __init__(self, sink: Sink, options: Mapping[str, Any]) -> None:
        super().__init__(sink)
        self._strings = bool(options["strings"])
        self._with_events = bool(options["events"]) and not self._strings
        self._comma = ""

    def _write(self, capture: Capture) -> None:
        calls = Calls(capture)
        frames = _Frames(capture.request.limits.max_depth)
        names = Names(capture, quoted, self._dropped)
        form = _LlvmForm(capture, names) if self._strings else _OurForm(capture, names)
        events = _JsonEvents(form, frames, self._with_events, self._dropped)
        self._sink.write(form.head)
        for batch, matched in _matched(capture, calls, self._dropped):
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


class _Beginnings(dict[int, str]):
    """What events of functions begin with, by the function's id."""

    def __init__(self, form: str, names: Names) -> None:
        super().__init__()
        self._form = form
        self._names = names

    def __missing__(self, function: int) -> str:
        made = self[function] = self._form.format(self._names[function])
        return made


class _OurForm:
    """trace_event as its viewers take it: ids and times are numbers.

    Times are exact here, and Perfetto takes them for doubles: of an emulated clock, which counts
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
        self.begins = _Beginnings('{{"name":{},"ph":"B",', names)
        self.ends = _Beginnings('{{"name":{},"ph":"E",', names)

    def times(self, tsc: U64) -> list[str]:
        """Times in microseconds, to the nanosecond that the tables have."""
        return microseconds(tsc, self._rate, digits=3)

    def frame(self, number: int, function: int, parent: int) -> str:
        """A stack."""
        below = f',"parent":{parent}' if parent >= 0 else ""
        return f'"{number}":{{"name":{self._names[function]}{below}}}'


class _LlvmForm:
    """trace_event as llvm-xray 19 prints it: everything is a string."""

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
        self.begins = _Beginnings('{{ "name" : {}, "ph" : "B", ', names)
        self.ends = _Beginnings('{{ "name" : {}, "ph" : "E", ', names)

    def times(self, tsc: U64) -> list[str]:
        """Times in microseconds."""
        return microseconds(tsc, self._rate, digits=self._digits, nearest=True)

    def frame(self, number: int, function: int, parent: int) -> str:
        """A stack."""
        below = f', "parent": "{parent}"' if parent >= 0 else ""
        return f'"{number}" : {{ "name" : {self._names[function]}{below} }}'


class _JsonEvents:
    """Events as trace events."""

    def __init__(
        self, form: _OurForm | _LlvmForm, frames: _Frames, with_events: bool, dropped: Counter[str]
    ) -> None:
        self._form = form
        self._frames = frames
        self._with_events = with_events
        self._dropped = dropped
        self._stacks: list[list[int]] = [[] for _ in form.who]
        """By thread: the numbers of the stacks of its open calls."""
        self._latest: dict[int, int] = {}
        """By thread: the latest time of its begins and ends."""

    def of(self, batch: Batch, matched: Matched) -> list[str]:
        """The events of a batch that belong."""
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
        """The times, without those of a thread's calls that go back.

        A viewer sorts by time, and would nest calls otherwise than the trace does.
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


# --- YAML of llvm-xray ---------------------------------------------------------------------------

READABLE: Final = "1"
"""The version that llvm-xray reads back."""
VERSIONS: Final = (READABLE, "keep")
KINDS: Final[Mapping[int, str]] = {
    0: "function-enter",
    1: "function-exit",
    2: "function-tail-exit",
    3: "function-enter-arg",
    CUSTOM: "custom-event",
    TYPED: "typed-event",
}
_PLAIN: Final = re.compile(r"[A-Za-z0-9_^.][A-Za-z0-9_^. \t-]*")
"""What needs no quotes, where it means nothing else."""
_NUMBER: Final = re.compile(
    r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
    r"|0o[0-7]+|0x[0-9a-fA-F]+|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
_WORDS: Final = frozenset(
    {"~", "null", "Null", "NULL", "true", "True", "TRUE", "false", "False", "FALSE"}
)
_SHORT: Final = {
    "\\": r"\\",
    '"': r"\"",
    "\0": r"\0",
    "\a": r"\a",
    "\b": r"\b",
    "\t": r"\t",
    "\n": r"\n",
    "\v": r"\v",
    "\f": r"\f",
    "\r": r"\r",
    "\x1b": r"\e",
    "\x85": r"\N",
    "\xa0": r"\_",
    "\u2028": r"\L",
    "\u2029": r"\P",
}


def scalar(text: str) -> str:
    """A text as a scalar of YAML, in quotes as LLVM puts them."""
    if not text.isascii() or any(character < " " and character != "\t" for character in text):
        return f'"{"".join(map(_yaml_character, text))}"'
    if "\x7f" in text:
        return f'"{"".join(map(_yaml_character, text))}"'
    bare = (
        _PLAIN.fullmatch(text) is not None
        and not text[-1].isspace()
        and text not in _WORDS
        and _NUMBER.fullmatch(text) is None
    )
    return text if bare else "'" + text.replace("'", "''") + "'"


def _yaml_character(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    if character.isprintable():
        return character
    code = ord(character)
    if code <= 0xFF:
        return f"\\x{code:02X}"
    return f"\\u{code:04X}" if code <= 0xFFFF else f"\\U{code:08X}"


class _YamlExport(_SingleExport):
    """Writes the YAML that `llvm-xray convert -f yaml` writes, and reads back."""

    what = "YAML of llvm-xray"

    def __init__(self, sink: Sink, options: Mapping[str, Any]) -> None:
        super().__init__(sink)
        self._readable = choice(options, "header_version", VERSIONS) == READABLE
        self._sorted = bool(options["sort"])

    def _write(self, capture: Capture) -> None:
        whole = whole_of(capture)
        version = READABLE if self._readable else whole.version
        basic = whole.summary().facts["mode"] == "basic"
        self._put(
            [
                "---",
                "header:",
                f"  version:         {version}",
                f"  type:            {BASIC if basic else FDR}",
                f"  constant-tsc:    {_yaml_bool(whole.constant_tsc)}",
                f"  nonstop-tsc:     {_yaml_bool(whole.nonstop_tsc)}",
                f"  cycle-frequency: {whole.frequency}",
            ]
        )
        names = Names(capture, scalar, self._dropped)
        threads = [
            f"thread: {tid}, process: {pid}, " if pid else f"thread: {tid}, "
            for pid, tid in who(capture)
        ]
        heads: dict[int, str] = {}
        written = False

        lost: Counter[str] = Counter()

        def batches() -> Iterator[Batch]:
            lost.clear()  # of two looks the last one counts
            return _shown(capture, lost)

        for batch in in_time(batches) if self._sorted else batches():
            if not written and len(batch):
                self._put(["records:"])
                written = True
            self._put(self._lines(batch, names, threads, heads))
        self._put(["..."] if written else ["records:         []", "..."])
        self._dropped += lost

    def _lines(
        self, batch: Batch, names: Names, threads: Sequence[str], heads: dict[int, str]
    ) -> list[str]:
        lines = []
        args, payloads = batch.args, batch.payloads
        for place, (kind, function, cpu, thread, tsc) in enumerate(
            zip(
                batch.kind.tolist(),
                batch.function.tolist(),
                batch.cpu.tolist(),
                batch.thread.tolist(),
                batch.tsc.tolist(),
                strict=True,
            )
        ):
            data = "''"
            if kind >= CUSTOM:
                head = f"type: {function}, func-id: 0, function: '0', "
                data = scalar(text_of(payloads[place], self._dropped))
            else:
                known = heads.get(function)
                if known is None:
                    known = heads[function] = (
                        f"type: 0, func-id: {function}, function: {names[function]}, "
                    )
                head = known
            values = f"args: [ {', '.join(map(str, args[place]))} ], " if place in args else ""
            lines.append(
                f"  - {{ {head}{values}cpu: {cpu}, {threads[thread]}"
                f"kind: {KINDS[kind]}, tsc: {tsc}, data: {data} }}"
            )
        return lines


def _yaml_bool(value: object) -> str:
    return "true" if value else "false"


def _shown(capture: Capture, dropped: Counter[str]) -> Iterator[Batch]:
    """The events of a capture that belong to the part that a view shows."""
    if not isinstance(capture, View):
        yield from walk(capture, dropped)
        return
    for batch, matched in _matched(capture, Calls(capture), dropped):
        shown = np.array(matched.shown, np.bool_)
        yield batch if shown.all() else batch.take(shown)
