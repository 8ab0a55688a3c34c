"""Events of exporters: rows of a window as texts in file order."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from typing import ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_trace.export.first_pass import FirstPass, ends_of
from fxframework.kernels.arrays import I64
from fxframework.kernels.sorting import stable_order
from fxframework.kernels.templates import Cell, Templates
from fxframework.kit.in_time import Events
from fxframework.kit.row_texts import ArgumentTexts, Form, Members, Numbered
from fxframework.model.table import Table

NEVER = -1
"""Length of an unclosed slice."""
TEXT_BYTES = 16 << 20
"""Most bytes of texts that stay from one window to the next."""


@attrs.define
class RowEvents:
    """The texts of the rows of a table, made for one group of rows after another."""

    templates: Templates
    starts: I64
    ends: I64
    places: I64
    """Further columns, of shape (columns, rows)."""

    @classmethod
    def of(cls, templates: Templates, rows: int, places: int) -> RowEvents:
        """Return empty texts of ``rows`` rows, with ``places`` further columns."""
        starts, ends = np.zeros((2, rows), np.int64)
        return cls(templates, starts, ends, np.zeros((places, rows), np.int64))

    def write(self, rows: I64, *parts: Cell) -> None:
        """Make the texts of these rows; columns are of shape (rows,)."""
        starts, ends = self.templates.write(rows.size, *parts)
        self.starts[rows] = starts
        self.ends[rows] = ends


def firsts(ascending: I64) -> I64:
    """Return the first row of each number; no number is negative."""
    return np.flatnonzero(np.diff(ascending, prepend=-1))


def column_of(tables: list[Table], name: str) -> I64:
    """Return a column of several tables, one after another."""
    columns = [table.array(name) for table in tables]
    return np.concatenate([np.zeros(0, np.int64), *columns])


class EventMaker(abc.ABC):
    """Renders rows of a window as texts. ``makers`` is by table, in the order of equal offsets."""

    around: ClassVar[tuple[bytes, bytes, bytes]]
    """Bytes before, between and after the members of an event."""
    equals: ClassVar[str]
    """What is between the name and the value of an argument."""
    places: ClassVar[int] = 0
    """Number of columns of ``Events.places``."""
    makers: Mapping[str, Callable[[Table, RowEvents, Members], None]]

    def __init__(self, survey: FirstPass, name: Callable[[int], str]) -> None:
        self.templates = Templates(*self.around)
        self.names = self.numbered(name)
        """Texts of the names of arguments and events."""

        def name_and_equals(code: int) -> str:
            return name(code) + self.equals

        self.arguments = ArgumentTexts(self.templates, name_and_equals, self.forms())
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
        self.templates.forget(TEXT_BYTES)
        members = self.members(window)
        tables: list[Table] = []
        # Rows of no table, so that a window without events has columns too.
        row_events = [RowEvents.of(self.templates, 0, self.places)]
        for name, make in self.makers.items():
            if name in window:
                table = window[name]
                if name == "counters":  # one event for all the series of a record
                    table = table.select(firsts(table.array("offset")))
                tables.append(table)
                row_events.append(RowEvents.of(self.templates, len(table), self.places))
                make(table, row_events[-1], members)
        starts = np.concatenate([rows.starts for rows in row_events])
        ends = np.concatenate([rows.ends for rows in row_events])
        places = np.concatenate([rows.places for rows in row_events], axis=1)
        times = column_of(tables, "ts")
        events = Events(times, self.templates.letters(), starts, ends - starts, places)
        order = stable_order(column_of(tables, "offset"))
        return events if order is None else events.take(order)

    def members(self, window: Mapping[str, Table]) -> Members:
        """Render the arguments of a window. Return the members, by offset of their record."""
        offsets = np.zeros(0, np.int64)
        columns = np.zeros((4, 0), np.int64)
        if "args" in window:
            args = window["args"]
            offsets, columns = self._render(args, args.array("offset"))
        self.ends = Members(np.zeros(0, np.int64))
        # Arguments of end events were read before all windows, as their slices begin earlier.
        end_args = ends_of(self._end_args, window["slices"]) if "slices" in window else None
        if end_args is not None:
            slice_rows, end_columns = self._render(end_args, end_args.array("parent"))
            self.ends = Members(slice_rows, offsets.size)
            columns = np.concatenate((columns, end_columns), axis=1)
        self.templates.hold(*columns)
        return Members(offsets)

    def known(self, args: Table) -> NDArray[np.bool_]:
        """Return whether the type of each argument has a form, bool of shape (args,)."""
        has_form = np.zeros(256, np.bool_)
        has_form[list(self.arguments.forms)] = True
        return np.asarray(has_form[args.array("type")])

    def _render(self, args: Table, keys: I64) -> tuple[I64, I64]:
        """Render arguments in order of their keys. Return the keys, and columns of members.

        Arguments of types without a form are left out.
        """
        order = stable_order(keys.astype(np.int64, copy=False))
        if order is not None:
            args = args.select(order)
            keys = keys[order]
        has_form = self.known(args)
        if not has_form.all():
            args = args.select(has_form)
            keys = keys[has_form]
        return keys, np.array(self.member_columns(args, keys), np.int64)
