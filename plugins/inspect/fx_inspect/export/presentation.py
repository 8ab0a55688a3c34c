"""What a tree is to those it is shown to: nodes in order, each with its properties and links.

All exporters of Inspect draw on this. Tables are walked side by side, in batches: nodes stand
before what is below them, and properties, slots and links in the order of what they belong to.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any, Final, Generic, NamedTuple, Protocol, Self, TypeVar

import attrs
import numpy as np
import orjson

from fx_inspect.layout import DISPOSITIONS
from fx_inspect.read.histograms import Histogram
from fx_inspect.read.tables import (
    BOOL,
    DOUBLE,
    DOUBLE_ARRAY,
    FORMATS,
    INT,
    INT_ARRAY,
    STRING,
    STRING_ARRAY,
    TYPES,
    UINT,
    UINT_ARRAY,
)
from fxframework.errors import WriteRefusedError
from fxframework.model.capture import Capture, Entry
from fxframework.model.strings import StringPool, TextColumn
from fxframework.model.table import Table

__all__ = [
    "ARRAYS",
    "ARRAY_TYPES",
    "Details",
    "Link",
    "Names",
    "Placed",
    "Value",
    "Values",
    "entries",
    "escaped",
    "generation",
    "nothing_to_write",
    "quoted",
    "rust_double",
    "special_double",
    "unescaped",
    "walk",
]

K = TypeVar("K")
V = TypeVar("V")
S = TypeVar("S", bound="Sliced")

ROWS: Final = 1 << 18
"""Rows of a batch that a capture is asked for."""
NOT_UTF8: Final = "strings that are not UTF-8, in part"
ARRAYS: Final = frozenset({INT_ARRAY, UINT_ARRAY, DOUBLE_ARRAY})
"""Types of arrays of numbers."""
ARRAY_TYPES: Final = {INT_ARRAY: "int", UINT_ARRAY: "uint", DOUBLE_ARRAY: "double"}
SPECIAL: Final = "\\/:* \t"
"""What stands behind a backslash in a selector."""
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
EXPANDED: Final = "expanded"
DEEPEST: Final = 200
SHOWN: Final = 8
"""Names of a longer path that are shown."""


class Names(dict[int, V]):
    """What is made of the strings of a capture's pool, by code; null is the empty string.

    What is not UTF-8 becomes U+FFFD, and counts once as dropped.
    """

    def __init__(
        self, pool: StringPool, make: Callable[[str], V], dropped: Counter[str] | None = None
    ) -> None:
        super().__init__()
        self._pool = pool
        self._make = make
        self._dropped = dropped

    def __missing__(self, code: int) -> V:
        data = self._pool.bytes_of(code) if code >= 0 else b""
        value = self[code] = self._make(decoded(data, self._dropped))
        return value


def decoded(data: bytes, dropped: Counter[str] | None) -> str:
    """The text of some bytes; what is not UTF-8 becomes U+FFFD, which is counted."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        if dropped is not None:
            dropped[NOT_UTF8] += 1
        return data.decode("utf-8", "replace")


def quoted(text: str) -> str:
    """The text as a JSON string."""
    return orjson.dumps(text).decode()


def escaped(name: str) -> str:
    """A name as it stands in a selector: what is special there is behind a backslash."""
    if any(character in name for character in SPECIAL):
        return "".join(f"\\{each}" if each in SPECIAL else each for each in name)
    return name


def unescaped(name: str) -> str:
    """What a name in a selector stands for, without its backslashes."""
    return _ESCAPE.sub(r"\1", name) if "\\" in name else name


def special_double(value: float) -> str | None:
    """The name of a double that JSON does not have, as record JSON has it."""
    if math.isfinite(value):
        return None
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def rust_double(value: float) -> str:
    """The double as Rust prints it: no exponent, and no fraction where it is whole."""
    shown = repr(value)
    if "e" in shown:
        return f"{Decimal(shown):f}"
    return "NaN" if shown == "nan" else shown.removesuffix(".0")


# --- Walking -------------------------------------------------------------------------------------


class Sliced(Protocol):
    """What can be made of the rows of a batch: stretches of it are those of some of them."""

    def __getitem__(self, rows: slice, /) -> Self: ...


class Details(Generic[S]):
    """Rows of a table that belong to rows of another, whose keys are asked for in order."""

    def __init__(
        self, capture: Capture, table: str, column: str, make: Callable[[Table], S]
    ) -> None:
        self._groups = self._grouped(capture, table, column, make)
        self._next = next(self._groups, None)

    @staticmethod
    def _grouped(
        capture: Capture, table: str, column: str, make: Callable[[Table], S]
    ) -> Iterator[tuple[int, S]]:
        """Each key with what was made of its rows; one may come in several pieces."""
        if table not in capture.schemas:
            return
        for batch in capture.batches(table, ROWS):
            if not len(batch):
                continue
            keys = batch.array(column)
            made = make(batch)
            starts = [0, *(np.flatnonzero(keys[1:] != keys[:-1]) + 1).tolist(), len(batch)]
            for at, key in enumerate(keys[starts[:-1]].tolist()):
                yield key, made[starts[at] : starts[at + 1]]

    def groups(self, key: int) -> list[S]:
        """What was made of the rows of a key, in pieces; those of keys before are passed over."""
        found: list[S] = []
        while self._next is not None and self._next[0] <= key:
            if self._next[0] == key:
                found.append(self._next[1])
            self._next = next(self._groups, None)
        return found


def _joined(pieces: list[list[V]]) -> list[V]:
    """The pieces as one list."""
    return pieces[0] if len(pieces) == 1 else [one for piece in pieces for one in piece]


class Slots:
    """The slots of arrays, by the rows of their properties, which are asked for in order."""

    def __init__(self, capture: Capture) -> None:
        self._pieces = Details(capture, "inspect_slots", "parent", _Piece.whole)

    def of(self, row: int, column: str) -> list[Any]:
        """The slots of an array in a column of `inspect_slots`."""
        pieces = self._pieces.groups(row)
        if len(pieces) == 1:
            return pieces[0].values(column)
        return [value for piece in pieces for value in piece.values(column)]


class _Piece:
    """Some rows of a batch."""

    def __init__(self, batch: Table, rows: slice) -> None:
        self._batch = batch
        self._rows = rows

    @classmethod
    def whole(cls, batch: Table) -> _Piece:
        return cls(batch, slice(0, len(batch)))

    def __getitem__(self, rows: slice) -> _Piece:
        return _Piece(self._batch, rows)

    def values(self, column: str) -> list[Any]:
        values: list[Any] = self._batch.array(column)[self._rows].tolist()
        return values


class Link(NamedTuple):
    """A link of a node."""

    name: int
    """Code, and so the content."""
    content: int
    disposition: str
    """``child`` or ``inline``, or ``?``."""
    state: int
    """Code of what became of it."""
    offset: int


@attrs.frozen
class Placed(Generic[V]):
    """A node where it stands."""

    depth: int
    """How many nodes enclose it."""
    name: int
    """Code."""
    path: int
    """Code."""
    properties: Sequence[V]
    """What was made of each."""
    links: Sequence[Link]
    offset: int


def walk(capture: Capture, render: Callable[[Table, Slots], list[V]]) -> Iterator[Placed[V]]:
    """The nodes of a capture, each before its children, with their properties and links.

    ``render`` makes something of each property of a batch; it is given the slots of arrays, by
    the row of the property.
    """
    slots = Slots(capture)
    properties: Details[list[V]] = Details(
        capture, "properties", "node", lambda batch: render(batch, slots)
    )
    links: Details[list[Link]] = Details(capture, "inspect_links", "node", _links)
    open_nodes: list[int] = []
    for batch in capture.batches("nodes", ROWS):
        columns = (batch.array(name) for name in ("id", "parent", "name", "path", "offset"))
        rows = zip(*(column.tolist() for column in columns), strict=True)
        for node, parent, name, path, offset in rows:
            while open_nodes and open_nodes[-1] != parent:
                open_nodes.pop()
            yield Placed(
                len(open_nodes),
                name,
                path,
                _joined(properties.groups(node)),
                _joined(links.groups(node)),
                offset,
            )
            open_nodes.append(node)


def _links(batch: Table) -> list[Link]:
    names = ("name", "content", "disposition", "state", "offset")
    columns = (batch.array(name).tolist() for name in names)
    return [
        Link(name, content, DISPOSITIONS.get(disposition, "?"), state, offset)
        for name, content, disposition, state, offset in zip(*columns, strict=True)
    ]


def generation(capture: Capture) -> int:
    """The generation count in the header, as it stands."""
    return int.from_bytes(capture.source.read(8, 8), "little")


def nothing_to_write(capture: Capture) -> WriteRefusedError:
    """The refusal of a capture without a node."""
    return WriteRefusedError(
        "it has no nodes", path=capture.name, remedy="`fxf verify` says what is wrong with it"
    )


# --- Values --------------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class Values(Generic[V]):
    """How the values of properties come out, by their type."""

    integer: Callable[[int], V]
    """Of an int and of a uint."""
    double: Callable[[float], V]
    truth: Callable[[bool], V]
    string: Callable[[bytes], V]
    data: Callable[[bytes], V]
    array: Callable[[str, Sequence[int | float], int], V]
    """Of the type of the slots, of the slots and of the format: an array, or a histogram of too
    few slots."""
    histogram: Callable[[Histogram], V]
    strings: Callable[[Sequence[int]], V]
    """Of the codes of strings."""

    def of(self, batch: Table, slots: Slots) -> list[V]:
        """The values of a batch of `properties`."""
        types = batch.array("type")
        out: list[Any] = [None] * len(batch)
        numbers = np.unique(types).tolist()
        for number in numbers:
            rows = np.flatnonzero(types == number)
            if number in ARRAYS or number == STRING_ARRAY:
                continue
            for row, value in zip(rows.tolist(), self._plain(batch, number, rows), strict=True):
                out[row] = value
        if any(number >= INT_ARRAY for number in numbers):
            self._arrays(batch, slots, out)
        return out

    def _plain(self, batch: Table, number: int, rows: Any) -> Iterator[V]:
        if number == INT:
            return map(self.integer, batch.array("int")[rows].tolist())
        if number == UINT:
            return map(self.integer, batch.array("uint")[rows].tolist())
        if number == DOUBLE:
            return map(self.double, batch.array("float")[rows].tolist())
        if number == BOOL:
            return map(self.truth, (batch.array("int")[rows] != 0).tolist())
        column = batch["text"]
        assert isinstance(column, TextColumn)  # noqa: S101 (its kind is text)
        starts = column.offsets[:-1][rows].tolist()
        stops = column.offsets[1:][rows].tolist()
        first, last = int(column.offsets[0]), int(column.offsets[-1])
        data = column.data[first:last].tobytes()
        show = self.string if number == STRING else self.data
        return (
            show(data[start - first : stop - first])
            for start, stop in zip(starts, stops, strict=True)
        )

    def _arrays(self, batch: Table, slots: Slots, out: list[Any]) -> None:
        types, formats = batch.array("type"), batch.array("inspect_format")
        chosen = np.flatnonzero(types >= INT_ARRAY)
        places = zip(
            chosen.tolist(),
            types[chosen].tolist(),
            formats[chosen].tolist(),
            batch.array("row")[chosen].tolist(),
            strict=True,
        )
        for place, number, format, row in places:
            if number == STRING_ARRAY:
                out[place] = self.strings(slots.of(row, "str"))
                continue
            kind = ARRAY_TYPES[number]
            values = slots.of(row, "float" if kind == "double" else kind)
            histogram = Histogram.of(kind, format, values) if format else None
            if histogram is None:
                out[place] = self.array(kind, values, format)
            else:
                out[place] = self.histogram(histogram)


# --- Entries: what a capture states, by name -----------------------------------------------------


class Value(NamedTuple):
    """A property: the code of its name, its type, its value as plain JSON has it, its offset."""

    name: int
    type: str
    value: Any
    offset: int


def exact(pool: StringPool) -> Callable[[Table, Slots], list[Value]]:
    """What makes Values of properties: exact, of plain types."""
    texts: Names[str] = Names(pool, str)

    def number(value: float) -> Any:
        return special_double(value) or value

    def string(data: bytes) -> Any:
        try:
            return data.decode()
        except UnicodeDecodeError:
            return {"bytes_hex": data.hex()}

    def array(_type: str, slots: Sequence[int | float], _format: int) -> Any:
        return [number(slot) for slot in slots]

    values: Values[Any] = Values(
        integer=lambda value: value,
        double=number,
        truth=lambda value: value,
        string=string,
        data=lambda data: data.hex(),
        array=array,
        histogram=lambda one: [number(slot) for slot in one.slots()],
        strings=lambda codes: [texts[code] for code in codes],
    )

    def render(batch: Table, slots: Slots) -> list[Value]:
        names = batch.array("name").tolist()
        types = batch.array("type").tolist()
        formats = batch.array("inspect_format").tolist()
        return [
            Value(name, _type_name(number, format), value, offset)
            for name, number, format, value, offset in zip(
                names,
                types,
                formats,
                values.of(batch, slots),
                batch.array("offset").tolist(),
                strict=True,
            )
        ]

    return render


def _type_name(number: int, format: int) -> str:
    """The name of a type; of a histogram ``int_linear_histogram`` and so on."""
    if number in ARRAYS and format:
        return f"{ARRAY_TYPES[number]}_{FORMATS.get(format, format)}_histogram"
    return TYPES.get(number, str(number))


def entries(capture: Capture) -> Iterator[Entry]:
    """What a capture states, by name: nodes, properties and links (``Capture.entries``).

    A path is a selector of what it names, ``root/a`` or ``root/a:property``; but that of a node
    below more than ``DEEPEST`` others says a digest of most of their names.
    """
    names: Names[str] = Names(capture.strings, escaped)
    texts: Names[str] = Names(capture.strings, str)
    above = _Above()
    for node in walk(capture, exact(capture.strings)):
        path = above.path(node.depth, names[node.name])
        yield Entry(path, "node", None, node.offset)
        for name, kind, value, offset in node.properties:
            yield Entry(f"{path}:{names[name]}", kind, value, offset)
        for link in node.links:
            if texts[link.state] != EXPANDED:
                kind = f"{link.disposition} link"
                content = texts[link.content]
                yield Entry(f"{path}:{names[link.name]}", kind, content, link.offset)


class _Above:
    """The names above a node, as paths of bounded length."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._digests: list[bytes] = []

    def path(self, depth: int, name: str) -> str:
        """The path of a node at a depth, the last one given being those before it."""
        del self._names[depth:], self._digests[depth:]
        self._names.append(name)
        before = self._digests[-1] if self._digests else b""
        self._digests.append(hashlib.blake2b(before + name.encode() + b"/", digest_size=8).digest())
        if depth <= DEEPEST:
            return "/".join(self._names)
        return f"{'/'.join(self._names[:SHOWN])}/…{before.hex()}…/{name}"
