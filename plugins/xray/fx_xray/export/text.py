"""The exporter `text`: one line for each event, indented by its depth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import orjson
from numpy.typing import NDArray

from fx_xray.export.presentation import (
    CUSTOM,
    ENTRIES,
    HELD,
    TYPED,
    U64,
    Batch,
    Calls,
    EventExport,
    Matched,
    Names,
    argument_members,
    clock_of,
    left_out,
    names_of,
    nothing_to_write,
    walk,
    whole_of,
)
from fx_xray.format import FUNCTION_NAMES, LOW32, NO_CPU
from fx_xray.read.tables import CUSTOM_EVENT, TYPED_EVENT
from fxframework.io.sink import Sink
from fxframework.kernels.parts import LENGTH, NATURAL, SECONDS, TEXT
from fxframework.kernels.sorting import begins_of_runs
from fxframework.kernels.templates import Cell, Templates
from fxframework.kit.row_texts import Lines, Numbered, groups, printable_json, where
from fxframework.model.capture import Capture
from fxframework.model.clock import NS_PER_SECOND
from fxframework.model.strings import TextColumn

I64 = NDArray[np.int64]
CPUS: Final = 1 << 16
KINDS: Final = 8
"""More than there are numbers of CPUs, and kinds of events: two numbers make one key."""
LATE: Final = 1 << 62
"""Nanoseconds from which on sums may not fit."""
DEEPEST: Final = 40
"""Most levels of indentation."""
OTHER: Final = 2
"""What an event is that is not of a function; exits that end a call are 1, others 0."""


def plain(text: str) -> str:
    """Return the text, or a JSON string if it could break the line or be invisible."""
    return text if text and text.isprintable() else printable_json(text)


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
        return printable_json(data.decode())
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
            text, places = lines.of(batch, matched)
            if metadata is None:
                self._sink.write(text.data.data)
            else:
                made: list[str | None] = [None] * len(batch)
                for place, line in zip(places.tolist(), text, strict=True):
                    made[place] = line[:-1]
                self._put(metadata.among(batch, made))
        if metadata is None:
            self._dropped += left_out(capture)
        else:
            self._put(metadata.rest())
        if self._sink.written == before:
            raise nothing_to_write(capture)


class _TextLines:
    """Renders events as lines."""

    def __init__(self, capture: Capture, time: str, dropped: Counter[str]) -> None:
        self._time = time
        self._clock = clock_of(capture)
        self._names = names_of(capture, plain, dropped)
        self._last: dict[int, int] = {}
        """Time of the last event of each thread."""
        self._first: int | None = None
        self._lines = Lines(Templates(b"", b"", b""))
        numbered = partial(Numbered, self._lines.templates, sparse=True)
        self._heads = numbered(partial(_head, *whole_of(capture).event_threads()))
        self._calls = numbered(self._call)
        self._indents = numbered(_indent)
        self._blanks = numbered(" ".__mul__)
        self._unwound = numbered(lambda count: f" unwound={count}" if count else "")

    def of(self, batch: Batch, matched: Matched) -> tuple[TextColumn, I64]:
        """Return the lines of the events of the view, and the places of the events."""
        lines = self._lines
        lines.templates.forget(HELD)
        if not len(batch):
            return lines.joined()
        if self._first is None:
            first = int(batch.tsc[0]) * NS_PER_SECOND // self._clock.ticks_per_second
            self._first = first if self._time == "first" else 0
        before, known = self._before(batch)
        heads = CPUS * batch.thread.astype(np.int64) + batch.cpu
        shown = np.flatnonzero(matched.shown)
        what = np.where(batch.kind >= CUSTOM, OTHER, matched.ended)
        for group, rows in groups((2 * what + known)[shown]):
            of_kind, follows = divmod(group, 2)
            places = shown[rows]
            if of_kind == OTHER:
                texts = [self._event(batch, place).encode() for place in places.tolist()]
                parts: list[Cell] = [(TEXT, lines.templates.texts(texts))]
            else:
                parts = self._function(batch, matched, places, ended=bool(of_kind))
            lines.put(
                places,
                *self._padded(batch.offset[places], 8),
                b" ",
                *self._moment(batch.tsc[places]),
                b" ",
                self._heads(heads[places]),
                b" ",
                self._indents(matched.depths[places]),
                *parts,
                *(self._since(batch.tsc[places], before[places]) if follows else ()),
                b"\n",
            )
        return lines.joined()

    def _function(self, batch: Batch, matched: Matched, places: I64, *, ended: bool) -> list[Cell]:
        """Return the cells of entries and exits: function, length and arguments."""
        templates = self._lines.templates
        kind = batch.kind[places]
        parts: list[Cell] = [self._calls(KINDS * batch.function[places].astype(np.int64) + kind)]
        if ended:
            unwound = np.bincount(matched.inner["place"], minlength=len(batch))[places]
            length = self._length(matched.entered[places], batch.tsc[places])
            parts += [b" dur=", *length, self._unwound(unwound)]
        else:
            entry = np.isin(kind, list(ENTRIES))
            parts.append(where(templates, entry, "", " unmatched"))
        return [*parts, *argument_members(templates, batch, places, " arg{}=".format)]

    def _before(self, batch: Batch) -> tuple[U64, NDArray[np.bool_]]:
        """Return the time of the event before each on its thread, and whether there is one."""
        few = int(batch.thread.max()) < 1 << 16  # numpy sorts short numbers by radix
        order = np.argsort(batch.thread.astype(np.uint16) if few else batch.thread, kind="stable")
        thread = batch.thread[order]
        tsc = batch.tsc[order]
        starts = np.flatnonzero(begins_of_runs(thread))
        earlier = np.empty_like(tsc)
        is_known_in_order = np.ones(tsc.size, np.bool_)
        earlier[1:] = tsc[:-1]
        ends = np.append(starts[1:], tsc.size) - 1
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            thread_ends = self._last.get(int(thread[start]))
            is_known_in_order[start] = thread_ends is not None
            earlier[start] = thread_ends or 0
            self._last[int(thread[start])] = int(tsc[end])
        before = np.empty_like(tsc)
        is_known = np.empty(tsc.size, np.bool_)
        before[order] = earlier
        is_known[order] = is_known_in_order
        return before, is_known

    def _call(self, key: int) -> str:
        """Return the label of a key: a function's id shifted, and the kind."""
        function, kind = divmod(key, KINDS)
        return _label(FUNCTION_NAMES[kind], self._names, function)

    def _moment(self, tsc: U64) -> Sequence[Cell]:
        """Return the cells of times."""
        first = self._first or 0
        if self._time == "ticks":
            return self._padded(tsc, 16)
        ns, lost = self._clock.to_ns(tsc)
        if not lost and first < LATE:
            return [(SECONDS, ns - first)]
        texts = [seconds(each - first).encode() for each in self._exact(tsc)]
        return [(TEXT, self._lines.templates.texts(texts))]

    def _length(self, entered: U64, tsc: U64) -> Sequence[Cell]:
        """Return the cells of the lengths of calls: 0 where the counter went back."""
        templates = self._lines.templates
        begin, early = self._clock.to_ns(entered)
        end, late = self._clock.to_ns(tsc)
        ticks = (tsc - entered).view(np.int64)
        wrapped = (ticks > 0) & (tsc < entered)
        if not early and not late and not wrapped.any():
            return [(LENGTH, np.maximum(end - begin, 0))]
        ends = self._exact(np.where(wrapped, ticks.view(np.uint64), tsc))
        begins = self._exact(np.where(wrapped, np.uint64(0), entered))
        spans = (max(end - begin, 0) for begin, end in zip(begins, ends, strict=True))
        return [(TEXT, templates.texts([duration(span).encode() for span in spans]))]

    def _exact(self, tsc: U64) -> list[int]:
        """Return ticks in nanoseconds of any size."""
        return [ticks * NS_PER_SECOND // self._clock.ticks_per_second for ticks in tsc.tolist()]

    def _since(self, tsc: U64, before: U64) -> Sequence[Cell]:
        """Return the cells of the ticks since earlier times."""
        ahead = (tsc - before).view(np.int64) >= 0  # also where the counter wraps
        ticks = np.where(ahead, tsc - before, before - tsc)
        return [where(self._lines.templates, ahead, " +", " -"), (NATURAL, ticks)]

    def _padded(self, numbers: NDArray[Any], width: int) -> Sequence[Cell]:
        """Return the cells of natural numbers in so many columns."""
        tens = 10 ** np.arange(1, width, dtype=np.uint64)
        blanks = width - 1 - np.searchsorted(tens, numbers.astype(np.uint64), side="right")
        return [self._blanks(blanks), (NATURAL, numbers)]

    def _event(self, batch: Batch, place: int) -> str:
        """Return the text of a custom or typed event."""
        data = batch.payloads[place]
        name = CUSTOM_EVENT
        if batch.kind[place] == TYPED:
            name = f"{TYPED_EVENT} type={batch.function[place]}"
        return f"{name} size={len(data)} {payload_text(data)}"


def _indent(depth: int) -> str:
    """Return the blanks before an event, and its depth if that is great."""
    return "  " * depth if depth <= DEEPEST else f"{'  ' * DEEPEST}[{depth}] "


def _head(pids: U64, tids: U64, key: int) -> str:
    """Return process, thread and CPU of a key: the thread's id times CPUS, and the CPU."""
    thread, cpu = divmod(key, CPUS)
    pid, tid = (int(ids[thread]) & LOW32 for ids in (pids, tids))
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
            before = self._before.pop(offset, ())
            behind = self._behind.pop(offset, ())
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
