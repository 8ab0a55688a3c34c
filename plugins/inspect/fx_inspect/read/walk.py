"""Walks through the nodes of a capture in the order of the tree, with their properties and links.

Tables are read side by side, in batches: a node precedes its descendants, and properties, slots and
links are in the order of their owners. Nothing is kept of past nodes, so the memory of a walk does
not depend on the number of properties of a node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final, Generic, NamedTuple, Protocol, Self, TypeVar

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_inspect.format import DISPOSITIONS
from fx_inspect.read import tables
from fx_inspect.read.histograms import Histogram
from fxframework.kit.export import decoded
from fxframework.kit.memo import Memo, strings_of
from fxframework.model.capture import Capture
from fxframework.model.strings import StringPool, TextColumn
from fxframework.model.table import Table

V = TypeVar("V")
S = TypeVar("S", bound="Sliced")

ROWS: Final = 1 << 16
"""Rows of a batch read from a capture."""
LONG: Final = 1 << 10
"""Length in bytes from which properties share the bytes of a string in memory."""
ARRAY_TYPES: Final = {
    tables.INT_ARRAY: "int",
    tables.UINT_ARRAY: "uint",
    tables.DOUBLE_ARRAY: "double",
}
ARRAYS: Final = frozenset(ARRAY_TYPES)
"""Types of arrays of numbers."""
_NUMBERS: Final = {tables.INT: "int", tables.UINT: "uint", tables.DOUBLE: "float"}
"""Columns of numbers."""
EXPANDED: Final = "expanded"
"""The state of a link whose tree was joined."""


def texts_of(pool: StringPool, make: Callable[[str], V]) -> Memo[int, V]:
    """Return the results of ``make`` for the strings of a pool, by code; null is the empty string.

    Bytes that are not UTF-8 become U+FFFD.
    """
    strings = strings_of(pool)
    return Memo(lambda code: make(decoded(strings[code], None)), 0)


# --- Walking -------------------------------------------------------------------------------------


class Sliced(Protocol):
    """The results for the rows of a batch, which can be sliced like the rows."""

    def __getitem__(self, rows: slice, /) -> Self: ...


class Details(Generic[S]):
    """Rows of a table grouped by the rows that own them, read in the order of the owners."""

    def __init__(
        self, capture: Capture, table: str, column: str, make: Callable[[Table], S]
    ) -> None:
        self._groups = self._grouped(capture, table, column, make)
        self._next = next(self._groups, None)

    @staticmethod
    def _grouped(
        capture: Capture, table: str, column: str, make: Callable[[Table], S]
    ) -> Iterator[tuple[int, S]]:
        """Yield each key with the results for its rows; a key may come in several pieces."""
        if table not in capture.schemas:
            return
        for batch in capture.batches(table, ROWS):
            if not len(batch):
                continue
            keys = batch.array(column)
            results = make(batch)
            starts = [0, *(np.flatnonzero(keys[1:] != keys[:-1]) + 1).tolist(), len(batch)]
            for group, key in enumerate(keys[starts[:-1]].tolist()):
                yield key, results[starts[group] : starts[group + 1]]

    def groups(self, key: int) -> Iterator[S]:
        """Yield the results for the rows of a key, in pieces; rows of lesser keys are skipped."""
        while self._next is not None and self._next[0] <= key:
            if self._next[0] == key:
                yield self._next[1]
            self._next = next(self._groups, None)


class Slots:
    """The slots of arrays by the rows of their properties, read in order."""

    def __init__(self, capture: Capture) -> None:
        self._pieces = Details(
            capture,
            "inspect_slots",
            "parent",
            lambda batch: _RowsOf(Memo(batch.array), slice(0, len(batch))),
        )

    def of(self, row: int, column: str) -> list[Any]:
        """Return the slots of an array in a column of `inspect_slots`."""
        values_of_pieces = [slot_rows.values(column) for slot_rows in self._pieces.groups(row)]
        return (
            values_of_pieces[0]
            if len(values_of_pieces) == 1
            else [*chain.from_iterable(values_of_pieces)]
        )


class _RowsOf:
    """Some rows of the columns of a batch."""

    def __init__(self, columns: Mapping[str, NDArray[Any]], rows: slice) -> None:
        self._columns = columns
        self._rows = rows

    def __getitem__(self, rows: slice) -> _RowsOf:
        return _RowsOf(self._columns, rows)

    def values(self, column: str) -> list[Any]:
        values: list[Any] = self._columns[column][self._rows].tolist()
        return values


class Link(NamedTuple):
    """A link of a node."""

    name: int
    """Code of the name."""
    content: int
    disposition: str
    """``child``, ``inline`` or ``?``."""
    state: str
    offset: int


@attrs.frozen
class Placed(Generic[V]):
    """A node at its place in the tree.

    ``properties`` and ``links`` can be read once, in this order, before the next node.
    """

    depth: int
    """Number of enclosing nodes."""
    name: int
    """Code of the name."""
    offset: int
    properties: Iterator[V]
    """The rendered properties."""
    links: Iterator[Link]


def walk(capture: Capture, render: Callable[[Table, Slots], list[V]]) -> Iterator[Placed[V]]:
    """Yield the nodes of a capture, each before its children, with their properties and links.

    ``render`` returns an object for each row of a batch of `properties`; it gets the slots of
    arrays, by the row of the property.
    """
    slots = Slots(capture)
    properties: Details[list[V]] = Details(
        capture, "properties", "node", lambda batch: render(batch, slots)
    )
    links: Details[list[Link]] = Details(capture, "inspect_links", "node", _links)
    open_nodes: list[int] = []
    for batch in capture.batches("nodes", ROWS):
        for node, parent, name, offset in batch.tuples("id", "parent", "name", "offset"):
            while open_nodes and open_nodes[-1] != parent:
                open_nodes.pop()
            yield Placed(
                len(open_nodes),
                name,
                offset,
                chain.from_iterable(properties.groups(node)),
                chain.from_iterable(links.groups(node)),
            )
            open_nodes.append(node)


def _links(batch: Table) -> list[Link]:
    rows = batch.tuples("name", "content", "disposition", "offset")
    return [
        Link(name, content, DISPOSITIONS.get(disposition, "?"), str(state), offset)
        for (name, content, disposition, offset), state in zip(
            rows, batch.texts("state"), strict=True
        )
    ]


# --- Values --------------------------------------------------------------------------------------


def _same(value: Any) -> Any:
    return value


@attrs.frozen(kw_only=True)
class Values(Generic[V]):
    """Functions that render the values of properties, by type; scalars stay as they are without."""

    integer: Callable[[int], V] = _same
    """Renders an int or uint."""
    double: Callable[[float], V] = _same
    truth: Callable[[bool], V] = _same
    string: Callable[[bytes], V] = _same
    data: Callable[[bytes], V] = _same
    array: Callable[[str, Sequence[int | float], int], V]
    """Renders an array, or a histogram with too few slots, from the slots' type, the slots and
    the format."""
    strings: Callable[[Sequence[int]], V]
    """Renders an array of strings, from their codes."""
    histogram: Callable[[Histogram], V] | None = None
    """Without it histograms are rendered as arrays."""

    def named(self, batch: Table, slots: Slots) -> list[tuple[int, V]]:
        """Return the codes of the names of a batch of `properties`, with the rendered values."""
        return list(zip(batch.array("name").tolist(), self.of(batch, slots), strict=True))

    def of(self, batch: Table, slots: Slots) -> list[V]:
        """Return the rendered values of a batch of `properties`."""
        types = batch.array("type")
        out: list[Any] = [None] * len(batch)
        for number in np.flatnonzero(np.bincount(types)[: tables.INT_ARRAY]).tolist():
            rows = np.flatnonzero(types == number)
            for row, value in zip(rows.tolist(), self._plain(batch, number, rows), strict=True):
                out[row] = value
        self._arrays(batch, slots, out)
        return out

    def _plain(self, batch: Table, number: int, rows: Any) -> Iterator[V]:
        if number == tables.BOOL:
            return map(self.truth, (batch.array("int")[rows] != 0).tolist())
        if number in _NUMBERS:
            show_number = self.double if number == tables.DOUBLE else self.integer
            return map(show_number, batch.array(_NUMBERS[number])[rows].tolist())
        column = batch["text"]
        assert isinstance(column, TextColumn)  # noqa: S101 (its kind is text)
        show_text = self.string if number == tables.STRING else self.data
        lengths = column.offsets[1:] - column.offsets[:-1]
        if int(lengths.max(initial=0)) >= LONG:
            # Rows may share long strings, which are not copied for each row.
            return (show_text(column.bytes_of(row)) for row in rows.tolist())
        first_byte = int(column.offsets[0])
        data = column.data[first_byte : int(column.offsets[-1])].tobytes()
        starts = (column.offsets[:-1][rows] - first_byte).tolist()
        stops = (column.offsets[1:][rows] - first_byte).tolist()
        return (show_text(data[start:stop]) for start, stop in zip(starts, stops, strict=True))

    def _arrays(self, batch: Table, slots: Slots, out: list[Any]) -> None:
        chosen = np.flatnonzero(batch.array("type") >= tables.INT_ARRAY)
        arrays = batch.select(chosen).tuples("type", "inspect_format", "row")
        for place, (number, format, row) in zip(chosen.tolist(), arrays, strict=True):
            if number == tables.STRING_ARRAY:
                out[place] = self.strings(slots.of(row, "str"))
                continue
            kind = ARRAY_TYPES[number]
            values = slots.of(row, "float" if kind == "double" else kind)
            histogram = Histogram.of(kind, format, values) if self.histogram and format else None
            if histogram is None:
                out[place] = self.array(kind, values, format)
            else:
                out[place] = self.histogram(histogram)  # type: ignore[misc]
