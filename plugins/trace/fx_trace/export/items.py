"""What the exporters of events share: rows of a window as items in file order, and arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from fx_trace.export.windows import Members, by_offset
from fx_trace.layout import ArgType
from fxframework.model.table import Table

__all__ = ["Forms", "ItemMaker", "argument_values"]

I64 = NDArray[np.int64]
T = TypeVar("T")
COMPLETE, ASYNC = 1, 2
"""Kinds of slices."""
LEGACY, WAKEUP = 0, 2
"""Kinds of scheduling rows."""
ASYNC_SCOPE = 255
NEVER = -1
"""Length of a slice that was never closed."""

SIGNED, UNSIGNED, REAL, CODE = range(4)
"""Columns of `args` that hold values."""
Forms = Mapping[int, tuple[int, Callable[[Any], str]]]
"""By type of argument: the column of the value, and what makes a text of it."""
PLAIN_FORMS: Forms = {
    ArgType.NULL: (SIGNED, lambda _: "null"),
    ArgType.INT32: (SIGNED, str),
    ArgType.INT64: (SIGNED, str),
    ArgType.UINT32: (UNSIGNED, str),
    ArgType.UINT64: (UNSIGNED, str),
    ArgType.BOOL: (SIGNED, lambda value: "true" if value else "false"),
}


def argument_values(args: Table, forms: Forms) -> Iterator[str | None]:
    """The value of each argument; None of a type that has no form."""
    for kind, *values in args.tuples("type", "int", "uint", "float", "str"):
        form = forms.get(kind)
        yield form[1](values[form[0]]) if form else None


class ItemMaker(Generic[T]):
    """Makes an item of each row of a window. ``makers`` is by table, in the order of items."""

    makers: Mapping[str, Callable[[Table, Members], list[T]]]

    def render(self, args: Table) -> list[Any]:
        """What is shown of each argument."""
        raise NotImplementedError

    def window(self, window: Mapping[str, Table]) -> tuple[I64, list[T]]:
        """Times and items of a window, in file order."""
        members = by_offset(window.get("args"), self.render)
        times, offsets = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        items: list[T] = []
        for name, make in self.makers.items():
            if name in window:
                table = window[name]
                if name == "counters":  # one item for all the series of a record
                    table = table.select(np.unique(table.array("offset"), return_index=True)[1])
                times.append(table.array("ts"))
                offsets.append(table.array("offset"))
                items += make(table, members)
        order = np.argsort(np.concatenate(offsets), kind="stable")
        return np.concatenate(times)[order], [items[place] for place in order.tolist()]
