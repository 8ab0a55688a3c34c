"""The exporter `text`: one line for each event, indented by its depth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fx_xray.export.presentation import (
    ENTRIES,
    HELD,
    NOTHING,
    Batch,
    EventExport,
    Names,
    argument_members,
    clock_of,
    left_out,
    names_of,
    process_and_thread_ids,
    walk,
)
from fx_xray.format import CUSTOM, FUNCTION_NAMES, NO_CPU, TYPED
from fx_xray.read.tables import CUSTOM_EVENT, TYPED_EVENT
from fx_xray.read.views import Calls, Matched, whole_of
from fxframework.io.sink import Sink
from fxframework.kernels.arrays import I64, U64
from fxframework.kernels.parts import LENGTH, NATURAL, SECONDS, TEXT
from fxframework.kernels.sorting import begins_of_runs, ends_of_runs
from fxframework.kernels.templates import Cell, Templates
from fxframework.kit import shown
from fxframework.kit.export import empty_refusal
from fxframework.kit.row_texts import Lines, Numbered, groups, printable_json, where
from fxframework.model.capture import Capture
from fxframework.model.clock import NS_PER_SECOND
from fxframework.model.strings import TextColumn

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
    if text and text.isprintable():
        return text
    return printable_json(text)


def duration(ns: int) -> str:
    """Return a length in its greatest whole unit, exact to the nanosecond, without blanks."""
    return shown.duration(ns).replace(" ", "").replace(",", "")


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
            raise empty_refusal(capture, NOTHING)
        bytes_before = self._sink.written
        calls = Calls(capture)
        lines = _TextLines(capture, self._time, self._dropped)
        if self._metadata:
            self._write_with_metadata(capture, calls, lines)
        else:
            for batch in walk(capture, self._dropped):
                text, _ = lines.of(batch, calls.match(batch))
                self._sink.write(text.data.data)
            self._dropped += left_out(capture)
        if self._sink.written == bytes_before:
            raise empty_refusal(capture, NOTHING)

    def _write_with_metadata(self, capture: Capture, calls: Calls, lines: _TextLines) -> None:
        metadata = _Metadata(capture)
        self._put(metadata.head)
        for batch in walk(capture, self._dropped):
            text, places = lines.of(batch, calls.match(batch))
            line_by_place = dict(zip(places.tolist(), text, strict=True))
            self._put(metadata.among(batch, line_by_place))
        self._put(metadata.orphans())


class _TextLines:
    """Renders events as lines."""

    def __init__(self, capture: Capture, time: str, dropped: Counter[str]) -> None:
        self._time = time
        self._clock = clock_of(capture)
        self._names = names_of(capture, plain, dropped)
        self._zero_time: int | None = None
        """Time that is shown as 0, in nanoseconds; known with the first event."""
        self._threads = process_and_thread_ids(capture)
        self._last = np.zeros(len(self._threads), np.uint64)
        """Time of the last event of each thread."""
        self._has_last = np.zeros(len(self._threads), np.bool_)
        """Which threads have had an event."""
        self._lines = Lines(Templates(b"", b"", b""))
        numbered = partial(Numbered, self._lines.templates, sparse=True)
        self._heads = numbered(self._head)
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
        if self._zero_time is None:
            self._zero_time = 0
            if self._time == "first":
                (self._zero_time,) = self._exact(batch.tsc[:1])
        tsc_before, has_tsc_before = self._times_before(batch)
        thread_keys = CPUS * batch.thread.astype(np.int64)
        heads = thread_keys + batch.cpu
        shown_places = np.flatnonzero(matched.shown)
        # Events whose lines have the same cells are rendered together.
        line_kinds = np.where(batch.kind >= CUSTOM, OTHER, matched.ended)
        group_keys = 2 * line_kinds + has_tsc_before
        for group, rows in groups(group_keys[shown_places]):
            line_kind, shows_time_since = divmod(group, 2)
            places = shown_places[rows]
            tsc = batch.tsc[places]
            if line_kind == OTHER:
                cells = self._events(batch, places)
            else:
                cells = self._function(batch, matched, places, ended=bool(line_kind))
            if shows_time_since:
                cells += self._since(tsc, tsc_before[places])
            lines.put(
                places,
                *self._padded(batch.offset[places], 8),
                b" ",
                *self._moment(tsc),
                b" ",
                self._heads(heads[places]),
                b" ",
                self._indents(matched.depths[places]),
                *cells,
                b"\n",
            )
        return lines.joined()

    def _function(self, batch: Batch, matched: Matched, places: I64, *, ended: bool) -> list[Cell]:
        """Return the cells of entries and exits: function, length and arguments."""
        templates = self._lines.templates
        kind = batch.kind[places]
        function_keys = KINDS * batch.function[places].astype(np.int64)
        cells: list[Cell] = [self._calls(function_keys + kind)]
        if ended:
            unwound = np.bincount(matched.inner["place"], minlength=len(batch))
            length = self._length(matched.entered[places], batch.tsc[places])
            cells += [b" dur=", *length, self._unwound(unwound[places])]
        else:
            is_entry = np.isin(kind, list(ENTRIES))
            cells.append(where(templates, is_entry, "", " unmatched"))
        return [*cells, *argument_members(templates, batch, places, " arg{}=".format)]

    def _times_before(self, batch: Batch) -> tuple[U64, NDArray[np.bool_]]:
        """Return the time of the event before each on its thread, and whether there is one."""
        thread = batch.thread
        if int(thread.max()) < 1 << 16:  # numpy sorts short numbers by radix
            thread = thread.astype(np.uint16)
        order = np.argsort(thread, kind="stable")
        thread = thread[order]
        tsc = batch.tsc[order]
        begins = np.flatnonzero(begins_of_runs(thread))
        # The first event of each thread follows one of an earlier batch, or none.
        earlier = np.append(self._last[:1], tsc[:-1])
        earlier[begins] = self._last[thread[begins]]
        has_earlier = np.ones(tsc.size, np.bool_)
        has_earlier[begins] = self._has_last[thread[begins]]
        ends = np.flatnonzero(ends_of_runs(thread))
        self._last[thread[ends]] = tsc[ends]
        self._has_last[thread[ends]] = True
        tsc_before = np.empty_like(tsc)
        has_tsc_before = np.empty(tsc.size, np.bool_)
        tsc_before[order] = earlier
        has_tsc_before[order] = has_earlier
        return tsc_before, has_tsc_before

    def _call(self, key: int) -> str:
        """Return the label of a key: a function's id shifted, and the kind."""
        function, kind = divmod(key, KINDS)
        return _label(FUNCTION_NAMES[kind], self._names, function)

    def _moment(self, tsc: U64) -> Sequence[Cell]:
        """Return the cells of times."""
        zero_time = self._zero_time or 0
        if self._time == "ticks":
            return self._padded(tsc, 16)
        ns, lost = self._clock.to_ns(tsc)
        if not lost and zero_time < LATE:
            return [(SECONDS, ns - zero_time)]
        return self._texts([seconds(time - zero_time) for time in self._exact(tsc)])

    def _length(self, entered: U64, tsc: U64) -> Sequence[Cell]:
        """Return the cells of the lengths of calls: 0 where the counter went back."""
        begin, early = self._clock.to_ns(entered)
        end, late = self._clock.to_ns(tsc)
        ticks = (tsc - entered).view(np.int64)
        wrapped = (ticks > 0) & (tsc < entered)
        if not early and not late and not wrapped.any():
            return [(LENGTH, np.maximum(end - begin, 0))]
        # Where the counter wrapped, a call begins at 0 and ends after its number of ticks.
        begin_ticks = np.where(wrapped, np.uint64(0), entered)
        end_ticks = np.where(wrapped, ticks.view(np.uint64), tsc)
        begin_and_end = zip(self._exact(begin_ticks), self._exact(end_ticks), strict=True)
        return self._texts([duration(max(end - begin, 0)) for begin, end in begin_and_end])

    def _exact(self, tsc: U64) -> list[int]:
        """Return ticks in nanoseconds of any size."""
        rate = self._clock.ticks_per_second
        return [ticks * NS_PER_SECOND // rate for ticks in tsc.tolist()]

    def _since(self, tsc: U64, tsc_before: U64) -> Sequence[Cell]:
        """Return the cells of the ticks since earlier times."""
        ahead = (tsc - tsc_before).view(np.int64) >= 0  # also where the counter wraps
        ticks = np.where(ahead, tsc - tsc_before, tsc_before - tsc)
        return [where(self._lines.templates, ahead, " +", " -"), (NATURAL, ticks)]

    def _padded(self, numbers: NDArray[Any], width: int) -> Sequence[Cell]:
        """Return the cells of natural numbers in so many columns."""
        tens = 10 ** np.arange(1, width, dtype=np.uint64)
        further_digits = np.searchsorted(tens, numbers.astype(np.uint64), side="right")
        return [self._blanks(width - 1 - further_digits), (NATURAL, numbers)]

    def _texts(self, texts: Iterable[str]) -> list[Cell]:
        """Return the cells of texts."""
        encoded = [text.encode() for text in texts]
        return [(TEXT, self._lines.templates.texts(encoded))]

    def _events(self, batch: Batch, places: I64) -> list[Cell]:
        """Return the cells of custom and typed events."""
        return self._texts(self._event(batch, place) for place in places.tolist())

    def _event(self, batch: Batch, place: int) -> str:
        """Return the text of a custom or typed event."""
        data = batch.payloads[place]
        name = CUSTOM_EVENT
        if batch.kind[place] == TYPED:
            name = f"{TYPED_EVENT} type={batch.function[place]}"
        return f"{name} size={len(data)} {payload_text(data)}"

    def _head(self, key: int) -> str:
        """Return process, thread and CPU of a key: the thread's number times CPUS, and the CPU."""
        thread, cpu = divmod(key, CPUS)
        pid, tid = self._threads[thread]
        shown_cpu = "?" if cpu == NO_CPU else cpu
        return f"{pid}/{tid} cpu{shown_cpu}"


def _indent(depth: int) -> str:
    """Return the blanks before an event, and its depth if that is great."""
    if depth <= DEEPEST:
        return "  " * depth
    return "  " * DEEPEST + f"[{depth}] "


def _label(word: str, names: Names, function: int) -> str:
    """Return a word, and name and id of a function; only the id if it has no name."""
    name = names[function]
    if name == str(function):
        return f"{word} #{function}"
    return f"{word} {name} #{function}"


def seconds(ns: int) -> str:
    """Return a time in seconds, to the nanosecond, with a sign only if it is negative."""
    whole_seconds, remainder = divmod(abs(ns), NS_PER_SECOND)
    sign = "-" if ns < 0 else ""
    return f"{f'{sign}{whole_seconds}':>6}.{remainder:09d}"


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
        last_event: int | None = None
        for record in whole_of(capture).checked_records():
            fields = record.to_json()
            kind = fields["record"]
            if kind in EVENTS:
                if kind == "call_argument":  # shown with its call
                    continue
                if waiting:
                    self._before[record.offset] = waiting
                    waiting = []
                last_event = record.offset
            elif kind in BEGINNING:
                waiting.append(metadata_line(fields))
            elif waiting or last_event is None:
                (waiting or self.head).append(metadata_line(fields))
            else:
                self._behind.setdefault(last_event, []).append(metadata_line(fields))
        self._at_end = waiting

    def among(self, batch: Batch, line_by_place: Mapping[int, str]) -> list[str]:
        """Return the lines of a batch with the metadata lines before and after them."""
        out: list[str] = []
        for place, offset in enumerate(batch.offset.tolist()):
            lines_before = self._before.pop(offset, ())
            lines_behind = self._behind.pop(offset, ())
            if place in line_by_place:
                out += (*lines_before, line_by_place[place][:-1], *lines_behind)
        return out

    def orphans(self) -> list[str]:
        """Return the lines without an event, in file order; none for a view."""
        if not self._whole:
            return []
        out: list[str] = []
        for lines_by_offset in (self._behind, self._before):
            for offset in sorted(lines_by_offset):
                out += lines_by_offset[offset]
        return out + self._at_end


def metadata_line(fields: Mapping[str, Any]) -> str:
    """Return the line of a record that is not an event."""
    members = []
    for name, value in fields.items():
        if name not in HIDDEN:
            text = str(value).lower() if isinstance(value, bool) else value
            members.append(f"{name}={text}")
    if fields["record"] in ("damaged", "unknown"):
        members.append(f"nbytes={fields['nbytes']}")
    return " ".join([f"{fields['offset']:>8} --", fields["record"], *members])
