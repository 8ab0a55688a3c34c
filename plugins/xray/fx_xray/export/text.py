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
from fx_xray.format import FUNCTION_NAMES, LOW32, NO_CPU
from fx_xray.read.tables import CUSTOM_EVENT, TYPED_EVENT
from fxframework.io.sink import Sink
from fxframework.kernels.parts import LENGTH, NATURAL, SECONDS, SIGNED, TEXT
from fxframework.kernels.templates import Cell, Templates
from fxframework.kit.memo import Memo
from fxframework.kit.row_texts import Lines, Numbered, printable_json
from fxframework.model.capture import Capture
from fxframework.model.clock import NS_PER_SECOND
from fxframework.model.strings import TextColumn

I64 = NDArray[np.int64]
CPU_BITS, KIND_BITS = 16, 3
"""Bits of a CPU beside a thread, and of a kind beside a function, in one key."""
HELD: Final = 1 << 20
"""Bytes of texts that are kept from batch to batch."""
LATE: Final = 1 << 62
"""Nanoseconds from which on sums may not fit."""
DEEPEST: Final = 40
"""Most levels of indentation."""
INDENTS: Final = tuple("  " * depth for depth in range(DEEPEST + 1))


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
        tasks = whole_of(capture).event_threads()
        self._heads: Memo[int, str] = Memo(partial(_head, *tasks))
        names = names_of(capture, plain, dropped)
        self._labels = {
            kind: Memo(partial(_label, word, names)) for kind, word in FUNCTION_NAMES.items()
        }
        self._last: dict[int, int] = {}
        """Time of the last event of each thread."""
        self._first: int | None = None
        self._lines = Lines(Templates(b"", b"", b""))
        heads, calls, indents, blanks = (
            Numbered(self._lines.templates, show, sparse=True)
            for show in (self._heads.__getitem__, self._call, INDENTS.__getitem__, " ".__mul__)
        )
        self._head_texts, self._calls, self._indents, self._blanks = heads, calls, indents, blanks

    def of(self, batch: Batch, matched: Matched) -> tuple[TextColumn, I64]:
        """Return the lines of the events of the view, and the places of the events."""
        lines = self._lines
        lines.templates.forget(HELD)
        if not len(batch):
            return lines.joined()
        tsc = batch.tsc.view(np.int64)
        before, known = self._before(batch)
        ns, lost = self._clock.to_ns(batch.tsc)
        if self._first is None:
            first = int(batch.tsc[0]) * NS_PER_SECOND // self._clock.ticks_per_second
            self._first = first if self._time == "first" else 0
        length = ns - self._clock.to_ns(matched.entered)[0]
        # What a template cannot say: payloads, arguments, lines without a line before them.
        odd = (batch.kind >= CUSTOM) | ~known | (matched.ended & (length < 0))
        odd |= (matched.depths > DEEPEST) | (tsc < 0) | (before < 0)
        odd[list(batch.args)] = True
        odd[matched.inner["place"]] = True
        if lost or self._first >= LATE:
            odd[:] = True
        plain = matched.shown & ~odd
        delta = tsc - before
        sign = np.where(delta >= 0, lines.templates.text(b" +"), lines.templates.text(b" "))
        heads = batch.thread.astype(np.int64) << CPU_BITS | batch.cpu
        calls = batch.function.astype(np.int64) << KIND_BITS | batch.kind
        for chosen, dur in ((plain & matched.ended, True), (plain & ~matched.ended, False)):
            places = np.flatnonzero(chosen)
            entry = np.isin(batch.kind[places], list(ENTRIES))
            no_call = np.where(
                entry, lines.templates.text(b""), lines.templates.text(b" unmatched")
            )
            lines.put(
                places,
                *self._place(batch.offset[places], ns[places], batch.tsc[places]),
                b" ",
                self._head_texts(heads[places]),
                b" ",
                self._indents(matched.depths[places]),
                self._calls(calls[places]),
                *((b" dur=", (LENGTH, length[places])) if dur else ((TEXT, no_call),)),
                (TEXT, sign[places]),
                (SIGNED, delta[places]),
                b"\n",
            )
        others = np.flatnonzero(matched.shown & odd).tolist()
        inner = Counter(matched.inner["place"].tolist())
        befores = [int(each) if is_known else None
                   for each, is_known in zip(before[others].view(np.uint64), known[others],
                                             strict=True)]  # fmt: skip
        texts = [
            self._line(batch, matched, place, each, inner[place])
            for place, each in zip(others, befores, strict=True)
        ]
        numbers = lines.templates.texts([f"{text}\n".encode() for text in texts])
        lines.put(np.array(others, np.int64), (TEXT, numbers))
        return lines.joined()

    def _before(self, batch: Batch) -> tuple[I64, NDArray[np.bool_]]:
        """Return the time of the event before each on its thread, and whether there is one."""
        few = int(batch.thread.max()) < 1 << CPU_BITS  # numpy sorts short numbers by radix
        order = np.argsort(batch.thread.astype(np.uint16) if few else batch.thread, kind="stable")
        thread, tsc = batch.thread[order], batch.tsc[order]
        starts = np.flatnonzero(np.append(True, thread[1:] != thread[:-1]))
        earlier, known = np.empty_like(tsc), np.ones(tsc.size, np.bool_)
        earlier[1:] = tsc[:-1]
        ends = np.append(starts[1:], tsc.size) - 1
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            last = self._last.get(int(thread[start]))
            known[start] = last is not None
            earlier[start] = last or 0
            self._last[int(thread[start])] = int(tsc[end])
        before, is_known = np.empty_like(tsc), np.empty(tsc.size, np.bool_)
        before[order], is_known[order] = earlier, known
        return before.view(np.int64), is_known

    def _call(self, key: int) -> str:
        """Return the label of a key: a function's id shifted, and the kind."""
        function, kind = divmod(key, 1 << KIND_BITS)
        return self._labels[kind][function]

    def _place(self, offsets: I64, ns: I64, tsc: U64) -> list[Cell]:
        """Return the cells of offset and time."""
        cells = [*self._padded(offsets, 8), b" "]
        if self._time == "ticks":
            return [*cells, *self._padded(tsc.view(np.int64), 16)]
        return [*cells, (SECONDS, ns - (self._first or 0))]

    def _padded(self, numbers: I64, width: int) -> tuple[Cell, Cell]:
        """Return the cells of natural numbers in so many columns."""
        tens = 10 ** np.arange(1, width, dtype=np.int64)
        blanks = width - 1 - np.searchsorted(tens, numbers, side="right")
        return self._blanks(blanks), (NATURAL, numbers)

    def _line(
        self, batch: Batch, matched: Matched, place: int, before: int | None, unwound: int
    ) -> str:
        """Return any line, without its end."""
        kind, function = int(batch.kind[place]), int(batch.function[place])
        tsc, depth = int(batch.tsc[place]), int(matched.depths[place])
        ns = tsc * NS_PER_SECOND // self._clock.ticks_per_second
        if kind >= CUSTOM:
            what = self._event(batch, place)
        else:
            what = self._labels[kind][function]
            if matched.ended[place]:
                rate = self._clock.ticks_per_second
                what += f" dur={duration(ns - int(matched.entered[place]) * NS_PER_SECOND // rate)}"
                if unwound:
                    what += f" unwound={unwound}"
            elif kind not in ENTRIES:
                what += " unmatched"
            if place in batch.args:
                what += "".join(f" arg{n}={value}" for n, value in enumerate(batch.args[place]))
        indent = INDENTS[depth] if depth <= DEEPEST else f"{INDENTS[DEEPEST]}[{depth}] "
        delta = ""
        if before is not None:
            delta = f" +{tsc - before}" if tsc >= before else f" {tsc - before}"
        time = f"{tsc:>16}" if self._time == "ticks" else seconds(ns - (self._first or 0))
        head = self._heads[int(batch.thread[place]) << CPU_BITS | int(batch.cpu[place])]
        return f"{int(batch.offset[place]):>8} {time} {head} {indent}{what}{delta}"

    def _event(self, batch: Batch, place: int) -> str:
        """Return the text of a custom or typed event."""
        data = batch.payloads[place]
        name = CUSTOM_EVENT
        if batch.kind[place] == TYPED:
            name = f"{TYPED_EVENT} type={batch.function[place]}"
        return f"{name} size={len(data)} {payload_text(data)}"


def _head(pids: U64, tids: U64, key: int) -> str:
    """Return process, thread and CPU of a key: the thread's id shifted by 16 bits, and the CPU."""
    thread, cpu = divmod(key, 1 << CPU_BITS)
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
