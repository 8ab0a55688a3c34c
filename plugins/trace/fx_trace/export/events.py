"""Events of exporters: rows of a window as texts in file order."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from typing import ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_trace.export.first_pass import FirstPass, ends_of
from fxframework.kernels.sorting import stable_order
from fxframework.kernels.templates import Cell, Templates
from fxframework.kit.in_time import Events
from fxframework.kit.row_texts import ArgumentTexts, Form, Members, Numbered
from fxframework.model.table import Table

__all__ = ["EventMaker", "Made", "firsts"]

I64 = NDArray[np.int64]
COMPLETE, ASYNC = 1, 2
"""Kinds of slices."""
LEGACY, WAKEUP = 0, 2
"""Kinds of scheduling rows."""
ASYNC_SCOPE = 255
NEVER = -1
"""Length of an unclosed slice."""
KEPT = 16 << 20
"""Most bytes of texts kept from one window to the next."""


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
