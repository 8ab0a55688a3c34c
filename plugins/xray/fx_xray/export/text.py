"""The exporter `text`: one line for each event, indented by its depth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

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
    left_out,
    names_of,
    nothing_to_write,
    walk,
    whole_of,
)
from fx_xray.export.session import EventExport
from fx_xray.layout import FUNCTION_NAMES, NO_CPU
from fx_xray.read.tables import CUSTOM_EVENT, TYPED_EVENT
from fxframework.io.sink import Sink
from fxframework.kit.memo import Memo
from fxframework.model.capture import Capture
from fxframework.model.clock import NS_PER_SECOND

DEEPEST: Final = 40
"""Most levels of indentation."""
INDENTS: Final = tuple("  " * depth for depth in range(DEEPEST + 1))


def plain(text: str) -> str:
    """Return the text, or a JSON string if it could break the line or be invisible."""
    return text if text and text.isprintable() else _in_ascii(text)


def _in_ascii(text: str) -> str:
    """Return the text as a JSON string with all unprintable characters escaped."""
    return "".join(
        character if character.isprintable() else _escaped(character)
        for character in orjson.dumps(text).decode()
    )


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def duration(ns: int) -> str:
    """Return a length in its greatest whole unit, exact to the nanosecond."""
    # Below a second a double holds all digits, and prints only those needed.
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
    """Return a payload as a JSON string if it is UTF-8, otherwise in hex."""
    try:
        return _in_ascii(data.decode())
    except UnicodeDecodeError:
        return f"[{data.hex(' ')}]"


class TextExport(EventExport):
    """Writes a line for each event: offset, time, thread, and event, indented by its depth."""

    def __init__(self, sink: Sink, options: Mapping[str, Any]) -> None:
        super().__init__(sink, options)
        self._time = options["time"]
        self._metadata = options["metadata"]

    def write(self, capture: Capture) -> None:
        """Write one capture; another one follows it.

        Raises WriteRefusedError for a capture without a header, and for one without an event.
        """
        if whole_of(capture).version is None:
            raise nothing_to_write(capture)
        before = self._sink.written
        calls = Calls(capture)
        lines = _TextLines(capture, self._time, self._dropped)
        metadata = _Metadata(capture) if self._metadata else None
        if metadata is not None:
            self._put(metadata.head)
        for batch in walk(capture, self._dropped):
            matched = calls.match(batch)
            made = lines.of(batch, matched)
            if metadata is None:
                self._put([line for line in made if line is not None])
            else:
                self._put(metadata.among(batch, made))
        if metadata is None:
            self._dropped += left_out(capture)
        else:
            self._put(metadata.rest())
        if self._sink.written == before:
            raise nothing_to_write(capture)


class _TextLines:
    """Renders events as lines, without line ends."""

    def __init__(self, capture: Capture, time: str, dropped: Counter[str]) -> None:
        self._time = time
        self._clock = clock_of(capture)
        tasks = whole_of(capture).event_threads()
        self._heads: Memo[int, str] = Memo(partial(_head, *tasks))
        names = names_of(capture, plain, dropped)
        self._labels = {
            kind: Memo(partial(_label, word, names)) for kind, word in FUNCTION_NAMES.items()
        }
        self._last: list[int | None] = [None] * len(tasks[0])
        """Time of the last event of each thread."""
        self._first: int | None = None

    def of(self, batch: Batch, matched: Matched) -> list[str | None]:
        """Return a line for each event; None for events outside the view."""
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
            lines.append(f"{place_shown} {heads[thread << 16 | cpu]} {indent}{what}{delta}")
        return lines

    def _event(self, batch: Batch, place: int) -> str:
        """Return the text of a custom or typed event."""
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
        """Return offsets and times, in columns, with times as the option selects."""
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
        return [  # in the form of seconds()
            f"{offset:>8} {digits[:-9]:>6}.{digits[-9:]}"
            for offset, digits in zip(offsets, map(str, ns), strict=True)
        ]


def _head(pids: U64, tids: U64, key: int) -> str:
    """Return process, thread and CPU of a key: the thread's id shifted by 16 bits, and the CPU."""
    thread, cpu = key >> 16, key & 0xFFFF
    pid, tid = (int(ids[thread]) & 0xFFFFFFFF for ids in (pids, tids))
    return f"{pid}/{tid} cpu{'?' if cpu == NO_CPU else cpu}"


def _label(word: str, names: Names, function: int) -> str:
    """Return a word, and name and id of a function; only the id if it has no name."""
    name = names[function]
    return f"{word} #{function}" if name == str(function) else f"{word} {name} #{function}"


def seconds(ns: int) -> str:
    """Return a time in seconds, to the nanosecond, with a sign only if it is negative."""
    if ns >= NS_PER_SECOND:
        digits = str(ns)
        return f"{digits[:-9]:>6}.{digits[-9:]}"
    if ns >= 0:
        return f"     0.{ns:09d}"
    whole, part = divmod(-ns, NS_PER_SECOND)
    return f"{f'-{whole}':>6}.{part:09d}"


# --- Metadata among the lines --------------------------------------------------------------------

EVENTS: Final = frozenset({"function", "call_argument", CUSTOM_EVENT, TYPED_EVENT})
"""Records with lines of events."""
BEGINNING: Final = frozenset(
    {"buffer_extents", "new_buffer", "wall_time", "pid", "new_cpu", "tsc_wrap"}
)
"""Records that describe the records after them."""
HIDDEN: Final = frozenset({"record", "offset", "nbytes", "padding_hex", "raw"})
"""Fields of records that are not shown."""


class _Metadata:
    """Lines of records that are not events, each attached to an event."""

    def __init__(self, capture: Capture) -> None:
        self.head: list[str] = []
        """Lines before all others: the header."""
        self._before: dict[int, list[str]] = {}
        self._behind: dict[int, list[str]] = {}
        self._whole = whole_of(capture) is capture
        waiting: list[str] = []
        last: int | None = None
        for record in whole_of(capture).checked_records():
            shown = record.to_json()
            kind = shown["record"]
            if kind in EVENTS:
                if kind == "call_argument":  # shown with its call
                    continue
                if waiting:
                    self._before[record.offset] = waiting
                    waiting = []
                last = record.offset
            elif kind in BEGINNING:
                waiting.append(metadata_line(shown))
            elif waiting or last is None:
                (waiting or self.head).append(metadata_line(shown))
            else:
                self._behind.setdefault(last, []).append(metadata_line(shown))
        if waiting:
            self._before[-1] = waiting

    def among(self, batch: Batch, lines: Sequence[str | None]) -> list[str]:
        """Return the lines of a batch with the metadata lines before and after them."""
        out: list[str] = []
        for offset, line in zip(batch.offset.tolist(), lines, strict=True):
            before, behind = self._before.pop(offset, ()), self._behind.pop(offset, ())
            if line is not None:
                out += (*before, line, *behind)
        return out

    def rest(self) -> list[str]:
        """Return the lines without an event, in file order."""
        if not self._whole:
            return []
        return [
            line
            for where in (self._behind, self._before)
            for _, lines in sorted(where.items(), key=lambda item: (item[0] < 0, item[0]))
            for line in lines
        ]


def metadata_line(shown: Mapping[str, Any]) -> str:
    """Return the line of a record that is not an event."""
    members = " ".join(
        f"{name}={orjson.dumps(value).decode() if isinstance(value, bool) else value}"
        for name, value in shown.items()
        if name not in HIDDEN
    )
    if shown["record"] in ("damaged", "unknown"):
        members += f" nbytes={shown['nbytes']}"
    return f"{shown['offset']:>8} -- {shown['record']} {members}".rstrip()
