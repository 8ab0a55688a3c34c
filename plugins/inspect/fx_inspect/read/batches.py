"""Batches: the columns of a batch of rows of each table, made of raw columns (``RawColumns``)."""

from __future__ import annotations

from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fx_inspect import format as wire
from fx_inspect.read import tables
from fx_inspect.read.first_pass import RawColumns, taken
from fx_inspect.read.order import Paths
from fx_inspect.read.slots import PLACES, SlotColumns
from fx_inspect.read.texts import TextColumnFill, TextCopy
from fxframework.errors import LimitError
from fxframework.io import arena
from fxframework.model.strings import StringPool, TextColumn, read_only

__all__ = ["TreeRows", "paths"]

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]
Columns = dict[str, Any]
TEXT_AT_ONCE = 16 << 20
"""Most bytes of names and values in a batch."""
COST = 10
TEXT_SPARE = 64 << 20
"""Limit on the bytes of values in a whole table, if values share strings: COST for each byte of the
file, but at least TEXT_SPARE."""
LONG = 1 << 10
"""Length in bytes from which rows share the bytes of a string, and batches are limited by the bytes
of all their strings."""
LONGEST_PATH = 1 << 12
PATHS = 1
SPARE_PATHS = 1 << 18
"""Bytes of the longest path, and of all paths: PATHS for each byte of the file plus SPARE_PATHS."""
NUMBERS = {
    "int": (tables.INT, tables.BOOL),
    "uint": (tables.UINT,),
    "float": (tables.DOUBLE,),
}
"""Types of properties with a value in each column."""


class SharedTexts(TextColumn):
    """Values of properties, copied from their blocks at first use.

    Rows may share a string: ``bytes_of`` returns the same object for all rows that share a long
    one. Threads copy one after the other, under ``lock``.
    """

    def __init__(
        self, offsets: I64, source: I32, copy: TextCopy, shared: dict[int, bytes], lock: Lock
    ) -> None:
        self.offsets = read_only(offsets)
        self._source = source
        self._copy = copy
        self._shared = shared
        self._lock = lock

    def read_only(self) -> TextColumn:
        """Return the column itself: to lock its bytes as others do would copy them all."""
        return self

    @cached_property
    def data(self) -> NDArray[np.uint8]:  # type: ignore[override]
        """The bytes of all rows."""
        data: NDArray[np.uint8] = arena.empty(int(self.offsets[-1]), np.uint8)
        self._fill(self._source, self.offsets, data)
        return read_only(data)

    def _fill(self, source: I32, offsets: I64, data: NDArray[np.uint8]) -> None:
        """Copy the texts of some blocks to where ``offsets`` says."""
        with self._lock:
            TextColumnFill(self._copy, source.data, offsets.data, data.data).run()

    def bytes_of(self, row: int) -> bytes:
        """Return the bytes of a row."""
        nbytes = int(self.offsets[row + 1]) - int(self.offsets[row])
        if nbytes < LONG:
            return super().bytes_of(row)
        unit = int(self._source[row])
        found = self._shared.get(unit)
        if found is None or len(found) != nbytes:
            offsets, data = np.array([0, nbytes]), np.empty(nbytes, np.uint8)
            self._fill(self._source[row : row + 1], offsets, data)
            found = self._shared[unit] = data.tobytes()
        return found


class TreeRows:
    """The rows of the tables of one VMO, made from its raw columns a stretch at a time."""

    def __init__(self, raw: RawColumns, max_memory: int) -> None:
        self.raw = raw
        self.nodes: I32 = np.asarray(raw.order.nodes)[: raw.node_count]
        """Nodes by id."""
        self.place: I32 = np.asarray(raw.order.place)
        """Id of each node, or -1."""
        self.rows_of_values = raw.value_rows
        self.rows_of_links = raw.link_rows
        self.text_bound = max_memory or max(COST * raw.nbytes, TEXT_SPARE)
        values, rows = raw.values, self.rows_of_values
        self.types: NDArray[np.uint8] = np.asarray(values.type)[rows]
        sizes = np.asarray(values.length)[rows]
        slots = sizes * (self.types >= tables.INT_ARRAY)
        self.first_slot: I64 = _sums(slots)
        """First slot of each property; without slots, that of the next array."""
        self.first_text: I64 = _sums(sizes - slots)
        """First byte of each property's value among those of all properties."""
        self._paths: I32 | None = None
        self._weights: dict[str, I64 | None] = {}
        self._shared: dict[int, bytes] = {}
        self._copying = Lock()
        """Held while texts are copied: the copies have one state."""

    def count(self, name: str) -> int:
        """Return the number of rows of a table."""
        counts = {
            # An empty file has no root.
            "nodes": self.nodes.size if self.raw.nbytes else 0,
            "properties": self.rows_of_values.size,
            "inspect_slots": int(self.first_slot[-1]),
            "inspect_links": self.rows_of_links.size,
        }
        return int(counts[name])

    # --- Batches ----------------------------------------------------------------------------------

    def stop(self, name: str, at: int, stop: int) -> int:
        """Return the end of a batch from ``at``, at most ``stop``, with strings of bounded size."""
        if name not in self._weights:
            self._weights[name] = self._weigh(name)
        weights = self._weights[name]
        if weights is None:
            return stop
        fitting = np.searchsorted(weights, weights[at] + TEXT_AT_ONCE, "right") - 1
        return min(stop, max(at + 1, int(fitting)))

    def _weigh(self, name: str) -> I64 | None:
        """Return the bytes of strings before each row; None if all strings are short."""
        used = self.raw.string_lengths[self.raw.uses > 0]
        if name != "properties" and int(used.max(initial=0)) < LONG:
            return None
        if name == "nodes":
            codes = self.node_names()
            return _sums(self.raw.pool.pool.array("lengths")[codes])
        if name == "properties":
            if int(used.max(initial=0)) < LONG:
                return self.first_text
            codes = self.raw.value_names(self.rows_of_values)
            return self.first_text + _sums(self.raw.pool.pool.array("lengths")[codes])
        if name == "inspect_links":
            values, lengths = self.raw.values, self.raw.pool.pool.array("lengths")
            both = (np.asarray(values.link_name), np.asarray(values.link_content))
            names, contents = (self.raw.string_codes[each[self.rows_of_links]] for each in both)
            return _sums(lengths[names] + lengths[contents])
        codes = self._slots(0, int(self.first_slot[-1]))["str"]()
        return _sums(np.where(codes < 0, 0, self.raw.pool.pool.array("lengths")[codes]))

    def rows(self, name: str, at: int, stop: int) -> tuple[int, Columns]:
        """Return the number of rows from ``at`` to ``stop``, and their columns except `row`."""
        return stop - at, MAKERS[name](self, at, stop)

    # --- Nodes ------------------------------------------------------------------------------------

    def _nodes(self, at: int, stop: int) -> Columns:
        raw = self.raw
        nodes = self.nodes[at:stop]

        def links() -> I32:
            owners = self.place[raw.link_nodes[self.rows_of_links]]
            return np.bincount(owners, minlength=self.nodes.size)[at:stop].astype(np.int32)

        return {
            "offset": lambda: offsets_of(raw.node_units(nodes)),
            "id": lambda: np.arange(at, stop, dtype=np.int32),
            "parent": lambda: self._parents(nodes),
            "name": lambda: self.node_names()[at:stop],
            "path": lambda: self.paths()[at:stop],
            "links": links,
            "inspect_block": lambda: raw.node_units(nodes).view(np.uint32),
        }

    def _parents(self, nodes: I32) -> I32:
        return taken(nodes, self.place, self.raw.values.node_parent)

    def node_names(self) -> I32:
        """Return the codes of the names of all nodes, by id."""
        names = np.empty(self.nodes.size, np.int32)
        names[:1] = self.raw.pool.intern(b"root")
        names[1:] = taken(self.nodes[1:], self.raw.string_codes, self.raw.values.node_name)
        return names

    def paths(self) -> I32:
        """Return the codes of the paths of all nodes, by id."""
        if self._paths is None:
            names, parents = self.node_names(), self._parents(self.nodes)
            self._paths = paths(self.raw.pool, self.raw.nbytes, names, parents)
        return self._paths

    # --- Properties -------------------------------------------------------------------------------

    def _properties(self, at: int, stop: int) -> Columns:
        raw, values = self.raw, self.raw.values
        rows = self.rows_of_values[at:stop]
        types = self.types[at:stop]

        def numbers(column: str) -> I64:
            wanted = sum(1 << type for type in NUMBERS[column])
            if not values.seen_types & wanted:
                return np.broadcast_to(np.int64(0), rows.size)
            is_wanted = np.isin(np.asarray(values.type)[rows], [*map(int, NUMBERS[column])])
            return np.where(is_wanted, np.asarray(values.bits)[rows], 0)

        def arrays() -> I64:
            starts = self.first_slot[at : stop + 1]
            first = starts[:-1] * (types >= tables.INT_ARRAY)
            return np.stack((first, np.diff(starts)), axis=1)

        return {
            "offset": lambda: offsets_of(raw.value_units(rows)),
            "node": lambda: taken(rows, self.place, raw.value_nodes),
            "name": lambda: raw.value_names(rows),
            "type": types,
            "int": lambda: numbers("int"),
            "uint": lambda: numbers("uint").view(np.uint64),
            "float": lambda: numbers("float").view(np.float64),
            "text": lambda: self._text(at, stop),
            "array": arrays,
            "inspect_block": lambda: raw.value_units(rows).view(np.uint32),
            "inspect_format": lambda: np.asarray(values.format)[rows],
        }

    def _text(self, at: int, stop: int) -> TextColumn:
        offsets = self.first_text[at : stop + 1] - self.first_text[at]
        total = int(offsets[-1])
        if total > self.text_bound:
            raise LimitError(
                f"the values of {stop - at} properties, many of which share a string, take "
                f"{total} bytes together",
                remedy="read the table in batches, or raise the limit with -o max_memory=BYTES",
            )
        source = taken(self.rows_of_values[at:stop], self.raw.values.source)
        return SharedTexts(offsets, source, self.raw.copy, self._shared, self._copying)

    # --- Slots ------------------------------------------------------------------------------------

    def _slots(self, at: int, stop: int) -> Columns:
        raw, seen = self.raw, self.raw.values.seen_types
        first = int(np.searchsorted(self.first_slot, at, "right")) - 1
        last = int(np.searchsorted(self.first_slot, stop, "left"))
        rows = self.rows_of_values[first:last]
        units = raw.value_units(rows)
        arrays = (units.data, self.types[first:last].data, self.first_slot[first : last + 1].data)
        made: dict[int, SlotColumns] = {}

        def columns(wanted: int) -> SlotColumns:
            if wanted not in made:
                codes = raw.string_codes.data
                made[wanted] = SlotColumns(
                    raw.scan, raw.words.data, arrays, codes, first, wanted, (at, stop)
                )
                made[wanted].run()
            return made[wanted]

        def numbers(wanted: int) -> I64:
            if not seen & 1 << wanted:
                return np.broadcast_to(np.int64(0), stop - at)
            return np.asarray(columns(wanted).values)

        def codes() -> I32:
            if not seen & 1 << tables.STRING_ARRAY:
                return np.broadcast_to(np.int32(-1), stop - at)
            return np.asarray(columns(tables.STRING_ARRAY).numbers)

        return {
            "offset": lambda: np.asarray(columns(PLACES).offsets),
            "parent": lambda: np.asarray(columns(PLACES).values),
            "slot": lambda: np.asarray(columns(PLACES).numbers),
            "int": lambda: numbers(tables.INT_ARRAY),
            "uint": lambda: numbers(tables.UINT_ARRAY).view(np.uint64),
            "float": lambda: numbers(tables.DOUBLE_ARRAY).view(np.float64),
            "str": codes,
        }

    # --- Links ------------------------------------------------------------------------------------

    def _links(self, at: int, stop: int) -> Columns:
        raw, values = self.raw, self.raw.values
        rows = self.rows_of_links[at:stop]
        state = raw.pool.intern(b"not expanded")
        return {
            "offset": lambda: offsets_of(raw.link_units(rows)),
            "node": lambda: taken(rows, self.place, raw.link_nodes),
            "name": lambda: taken(rows, raw.string_codes, values.link_name),
            "content": lambda: taken(rows, raw.string_codes, values.link_content),
            "disposition": lambda: np.asarray(values.link_disposition)[rows],
            "inspect_block": lambda: raw.link_units(rows).view(np.uint32),
            "state": lambda: np.broadcast_to(np.int32(state), rows.size),
        }


MAKERS = {
    "nodes": TreeRows._nodes,  # noqa: SLF001 (a class of this module)
    "properties": TreeRows._properties,  # noqa: SLF001
    "inspect_slots": TreeRows._slots,  # noqa: SLF001
    "inspect_links": TreeRows._links,  # noqa: SLF001
}
"""Functions that make the columns of a stretch of rows, by table."""


def offsets_of(units: I32) -> I64:
    """Return the byte offsets of units, in the same shape."""
    offsets: I64 = arena.empty(units.size, np.int64)
    return np.multiply(units, wire.UNIT, out=offsets)


def _sums(sizes: I64) -> I64:
    """Return the sum of the sizes before each element, and of all."""
    out = np.zeros(sizes.size + 1, np.int64)
    np.cumsum(sizes, out=out[1:])
    return out


def paths(pool: StringPool, size: int, names: I32, parents: I32) -> I32:
    """Return the codes of the paths of nodes in the order of the tree; -1 if over budget.

    ``names`` are codes and ``parents`` ids, int32 of shape (n,); ``size`` is the size of the file.
    """
    budget = PATHS * size + SPARE_PATHS
    made = Paths(np.ascontiguousarray(names).data, parents.data, pool.pool, LONGEST_PATH, budget)
    made.run()
    return np.asarray(made.code)
