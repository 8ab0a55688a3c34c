"""Events of exporters: rows of a window as texts in file order, then in order of time."""

from __future__ import annotations

import abc
import mmap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import ClassVar, Self

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_trace.export.first_pass import FirstPass, ends_of
from fxframework.io.temporary import TemporaryFile
from fxframework.kernels.sorting import stable_order
from fxframework.kernels.templates import Cell, Templates
from fxframework.kit.row_texts import ArgumentTexts, Form, Members, Numbered
from fxframework.kit.runs import SortedRuns
from fxframework.model.clock import NS_MAX
from fxframework.model.strings import TextColumn
from fxframework.model.table import Table

__all__ = ["EventMaker", "Events", "Made", "firsts", "joined_events"]

I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
COMPLETE, ASYNC = 1, 2
"""Kinds of slices."""
LEGACY, WAKEUP = 0, 2
"""Kinds of scheduling rows."""
ASYNC_SCOPE = 255
NEVER = -1
"""Length of an unclosed slice."""
KEPT = 16 << 20
"""Most bytes of texts kept from one window to the next."""


@attrs.frozen
class Events:
    """Events as texts: the text of each is ``sizes`` bytes of ``data`` from ``starts`` on.

    ``places`` are further columns of an exporter, of shape (columns, events); all others are of
    shape (events,). ``times`` are in nanoseconds.
    """

    times: I64
    data: U8
    starts: I64
    sizes: I64
    places: I64

    def __len__(self) -> int:
        return int(self.times.size)

    def take(self, which: slice | I64) -> Events:
        """Return some of the events, which share ``data``."""
        columns = (self.times, self.starts, self.sizes)
        times, starts, sizes = (column[which] for column in columns)
        return Events(times, self.data, starts, sizes, self.places[:, which])

    def text(self) -> TextColumn:
        """Return the texts, one after another."""
        return TextColumn.gather(self.data, self.starts, self.sizes)

    def kept(self) -> Events:
        """Return a copy that holds only the bytes of its own texts."""
        text = self.text()
        return attrs.evolve(self, data=text.data, starts=text.offsets[:-1])


def joined_events(parts: Sequence[Events]) -> Events:
    """Return the events of several parts, one part after another."""
    bases = np.cumsum([0, *(part.data.size for part in parts[:-1])]).tolist()
    return Events(
        np.concatenate([part.times for part in parts]),
        np.concatenate([part.data for part in parts]),
        np.concatenate([part.starts + base for part, base in zip(parts, bases, strict=True)]),
        np.concatenate([part.sizes for part in parts]),
        np.concatenate([part.places for part in parts], axis=1),
    )


@attrs.define
class Made:
    """The texts of the rows of a table, made for one group of rows after another."""

    templates: Templates
    starts: I64
    ends: I64
    places: I64

    @classmethod
    def of(cls, templates: Templates, rows: int, places: int) -> Made:
        """Return empty texts of ``rows`` rows, with ``places`` further columns."""
        none = np.zeros(rows, np.int64)
        return cls(templates, none, none.copy(), np.zeros((places, rows), np.int64))

    def write(self, rows: I64, *parts: Cell) -> None:
        """Make the texts of these rows; columns are of shape (rows,)."""
        self.starts[rows], self.ends[rows] = self.templates.write(rows.size, *parts)


def firsts(ascending: I64) -> I64:
    """Return the first row of each number; no number is negative."""
    return np.flatnonzero(np.diff(ascending, prepend=-1))


class EventMaker(abc.ABC):
    """Renders rows of a window as texts. ``makers`` is by table, in the order of equal offsets."""

    around: ClassVar[tuple[bytes, bytes, bytes]]
    """Bytes before, between and after the members of an event."""
    equals: ClassVar[str]
    """What is between the name and the value of an argument."""
    places: ClassVar[int] = 0
    """Number of columns of ``Events.places``."""
    makers: Mapping[str, Callable[[Table, Made, Members], None]]

    def __init__(self, survey: FirstPass, name: Callable[[int], str]) -> None:
        self.templates = Templates(*self.around)
        self.names = self.numbered(name)
        """Texts of the names of arguments and events."""
        self.arguments = ArgumentTexts(
            self.templates, lambda code: name(code) + self.equals, self.forms()
        )
        self._end_args = survey.end_args()
        self.ends = Members(np.zeros(0, np.int64))
        """Arguments of the end events of the window's slices, by row of the slice."""

    @abc.abstractmethod
    def forms(self) -> dict[int, Form]:
        """Return the form of the values of each argument type; others are left out."""

    def numbered(self, make: Callable[[int], str]) -> Numbered:
        """Return numbered texts, which ``make`` renders."""
        return Numbered(self.templates, make)

    def member_columns(self, args: Table, keys: I64) -> list[I64]:
        """Return arguments, whose keys are ascending, as columns of ``Templates.hold``."""
        del keys
        return self.arguments.of(args, args.array("type"))

    def window(self, window: Mapping[str, Table]) -> Events:
        """Return the events of a window, in file order."""
        self.templates.forget(KEPT)
        own = self.members(window)
        tables: list[Table] = []
        made: list[Made] = []
        for name, make in self.makers.items():
            if name in window:
                table = window[name]
                if name == "counters":  # one event for all the series of a record
                    table = table.select(firsts(table.array("offset")))
                tables.append(table)
                made.append(Made.of(self.templates, len(table), self.places))
                make(table, made[-1], own)
        none = [np.zeros(0, np.int64)]
        offsets = np.concatenate(none + [table.array("offset") for table in tables])
        order = stable_order(offsets)
        starts = np.concatenate(none + [each.starts for each in made])
        ends = np.concatenate(none + [each.ends for each in made])
        events = Events(
            np.concatenate(none + [table.array("ts") for table in tables]),
            self.templates.letters(),
            starts,
            ends - starts,
            np.concatenate([np.zeros((self.places, 0), np.int64), *(e.places for e in made)], 1),
        )
        return events if order is None else events.take(order)

    def members(self, window: Mapping[str, Table]) -> Members:
        """Render the arguments of a window. Return the members, by offset of their record."""
        own, columns = np.zeros(0, np.int64), np.zeros((4, 0), np.int64)
        if "args" in window:
            own, columns = self._render(window["args"], window["args"].array("offset"))
        later = ends_of(self._end_args, window["slices"]) if "slices" in window else None
        self.ends = Members(own[:0])
        if later is not None:
            keys, more = self._render(later, later.array("parent"))
            self.ends = Members(keys, own.size)
            columns = np.concatenate((columns, more), axis=1)
        self.templates.hold(*columns)
        return Members(own)

    def known(self, args: Table) -> NDArray[np.bool_]:
        """Return whether the type of each argument has a form, bool of shape (args,)."""
        has_form = np.zeros(256, np.bool_)
        has_form[list(self.arguments.forms)] = True
        known: NDArray[np.bool_] = has_form[args.array("type")]
        return known

    def _render(self, args: Table, keys: I64) -> tuple[I64, I64]:
        """Render arguments in order of their keys. Return the keys, and columns of members.

        Arguments of types without a form are left out.
        """
        order = stable_order(keys.astype(np.int64, copy=False))
        if order is not None:
            args, keys = args.select(order), keys[order]
        known = self.known(args)
        if not known.all():
            args, keys = args.select(known), keys[known]
        return keys, np.array(self.member_columns(args, keys), np.int64)


WAITING = 1 << 18
WAITING_BYTES = 32 << 20
"""Most events, and bytes of them, that wait in memory; more go to a temporary file."""
PIECE = 1 << 12
PIECE_BYTES = 1 << 18
"""Most events, and bytes of them, read from the file at a time, except a single longer event."""


# --- Order of time -------------------------------------------------------------------------------


class InTime:
    """Sorts rendered events by time, keeping the order of arrival for equal times.

    Events wait in memory until nothing earlier can come. If too many wait, they and all that follow
    are sorted in runs, and their texts are in a temporary file.
    """

    def __init__(self, emit: Callable[[Events], None]) -> None:
        self._emit = emit
        self._waiting: Events | None = None
        self._runs = SortedRuns()
        self._texts: TemporaryFile | None = None

    def add(self, events: Events, earliest: int) -> None:
        """Add events, and emit those before ``earliest``.

        No later call may add an event before ``earliest``.
        """
        if self._texts is not None:
            self._spill(events, self._texts)
            return
        if self._waiting is not None:
            events = joined_events([self._waiting, events])
        if (events.times[1:] < events.times[:-1]).any():
            events = events.take(np.argsort(events.times, kind="stable"))
        ready = len(events)
        if earliest <= NS_MAX:
            ready = int(np.searchsorted(events.times, earliest))
        if ready:
            self._emit(events.take(slice(ready)))
        events = events.take(slice(ready, None))
        self._waiting = events.kept() if len(events) else None
        if len(events) > WAITING or int(events.sizes.sum()) > WAITING_BYTES:
            self._texts, self._waiting = TemporaryFile(), None
            self._spill(events, self._texts)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is None and self._waiting is not None:
            self._emit(self._waiting)
        if self._texts is not None:
            with self._texts as texts:
                if kind is None:
                    self._merge(texts)

    def _spill(self, events: Events, texts: TemporaryFile) -> None:
        """Write the texts to the file, and keep the rest of the events in runs."""
        text, at = events.text(), texts.tell()
        texts.write(text.data.data)
        columns = {"time": events.times, "start": text.offsets[:-1] + at, "size": events.sizes}
        self._runs.add(columns | {f"place {n}": each for n, each in enumerate(events.places)})

    def _merge(self, texts: TemporaryFile) -> None:
        """Emit what is in the runs."""
        texts.flush()
        nbytes = texts.tell()
        mapped = mmap.mmap(texts.fileno(), nbytes, access=mmap.ACCESS_READ) if nbytes else b""
        data: NDArray[np.uint8] = np.frombuffer(mapped, np.uint8)
        for columns, order in self._runs.windows():
            times, starts, sizes, *places = columns.values()
            shown = np.array(places, np.int64).reshape(len(places), times.size)
            for piece in _pieces(Events(times, data, starts, sizes, shown).take(order)):
                self._emit(piece)
            if isinstance(mapped, mmap.mmap) and hasattr(mapped, "madvise"):
                mapped.madvise(mmap.MADV_DONTNEED)  # pages that were read count as our memory


def _pieces(events: Events) -> Iterator[Events]:
    behind = np.cumsum(events.sizes)
    at = 0
    while at < len(events):
        taken = int(behind[at - 1]) if at else 0
        stop = min(at + PIECE, max(at + 1, int(np.searchsorted(behind, taken + PIECE_BYTES))))
        yield events.take(slice(at, stop))
        at = stop
