"""Batches: the columns of a stretch of rows of each table, made of those of a VMO (``Vmo``)."""

from __future__ import annotations

from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fx_inspect import format as wire
from fx_inspect.format import BlockType
from fx_inspect.read import tables
from fx_inspect.read.chains import bounds_of, end_of_part
from fx_inspect.read.texts import Texts
from fx_inspect.read.tree import paths_of
from fx_inspect.read.values import Values
from fx_inspect.read.vmo import Vmo
from fxframework.errors import LimitError
from fxframework.io import arena
from fxframework.io.words import WORD
from fxframework.kernels.arrays import I32, I64
from fxframework.kernels.buffers import gathered
from fxframework.model.strings import TextColumn, read_only

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
NUMBERS = {
    "int": (tables.INT, tables.BOOL),
    "uint": (tables.UINT,),
    "float": (tables.DOUBLE,),
}
"""Types of properties with a value in each column."""
SLOT_BYTES = {
    tables.INT_ARRAY: wire.SLOT_BYTES[BlockType.INT_VALUE],
    tables.UINT_ARRAY: wire.SLOT_BYTES[BlockType.UINT_VALUE],
    tables.DOUBLE_ARRAY: wire.SLOT_BYTES[BlockType.DOUBLE_VALUE],
    tables.STRING_ARRAY: wire.SLOT_BYTES[BlockType.STRING_REFERENCE],
}
"""Bytes of a slot, by the type of the array."""


class SharedTexts(TextColumn):
    """Values of properties, copied from their blocks at first use.

    Rows may share a string: ``bytes_of`` returns the same object for all rows that share a long
    one.
    """

    def __init__(
        self, offsets: I64, rows: I32, values: Values, texts: Texts, shared: dict[int, bytes]
    ) -> None:
        self.offsets = read_only(offsets)
        self._rows = rows
        self._values = values
        self._texts = texts
        self._shared = shared

    def read_only(self) -> TextColumn:
        """Return the column itself: to lock its bytes as others do would copy them all."""
        return self

    @cached_property
    def data(self) -> NDArray[np.uint8]:  # type: ignore[override]
        """The bytes of all rows."""
        lengths = np.diff(self.offsets)
        rows = np.flatnonzero(lengths)
        return read_only(self._copied(rows, lengths[rows]))

    def _copied(self, rows: Any, lengths: I64) -> NDArray[np.uint8]:
        """Return the bytes of rows that have some, one after another."""
        texts = self._values.bits[self._rows[rows]]
        return self._texts.column(texts, lengths).data

    def bytes_of(self, row: int) -> bytes:
        """Return the bytes of a row."""
        nbytes = int(self.offsets[row + 1]) - int(self.offsets[row])
        if nbytes < LONG:
            return super().bytes_of(row)
        text = int(self._values.bits[self._rows[row]])
        shared_bytes = self._shared.get(text)
        if shared_bytes is None or len(shared_bytes) != nbytes:
            only_row = slice(row, row + 1)
            copied = self._copied(only_row, np.array([nbytes]))
            shared_bytes = copied.tobytes()
            self._shared[text] = shared_bytes
        return shared_bytes


class TreeRows:
    """The rows of the tables of one VMO, made from its columns a stretch at a time."""

    def __init__(self, vmo: Vmo, max_memory: int) -> None:
        self.vmo = vmo
        self.order = vmo.order
        self.values = vmo.values
        self.rows_of_values = vmo.value_rows
        self.rows_of_links = vmo.link_rows()
        self.text_bound = max_memory or max(COST * vmo.nbytes, TEXT_SPARE)
        self.types: NDArray[np.uint8] = self.values.kinds.take(self.rows_of_values)
        sizes = self.values.lengths.take(self.rows_of_values)
        slots = sizes * (self.types >= tables.INT_ARRAY)
        self.first_slot: I64 = bounds_of(slots)
        """First slot of each property; without slots, that of the next array."""
        has_text = self.types == tables.STRING
        has_text |= self.types == tables.BYTES
        self.first_text: I64 = bounds_of(sizes * has_text)
        """First byte of each property's value among those of all properties."""
        counts_of_types = np.bincount(self.types)
        self._seen = set(np.flatnonzero(counts_of_types).tolist())
        """The types that occur."""
        self._weights: dict[str, I64 | None] = {}
        self._shared: dict[int, bytes] = {}

    def count(self, name: str) -> int:
        """Return the number of rows of a table."""
        counts = {
            # An empty file has no root.
            "nodes": self.order.count if self.vmo.nbytes else 0,
            "properties": self.rows_of_values.size,
            "inspect_slots": int(self.first_slot[-1]),
            "inspect_links": self.rows_of_links.size,
        }
        return int(counts[name])

    # --- Batches ----------------------------------------------------------------------------------

    def stop(self, name: str, start: int, stop: int) -> int:
        """Return the end of a batch from ``at``, at most ``stop``, with strings of bounded size."""
        if name not in self._weights:
            self._weights[name] = self._weigh(name)
        weights = self._weights[name]
        if weights is None:
            return stop
        return min(stop, end_of_part(weights, start, TEXT_AT_ONCE))

    def _weigh(self, name: str) -> I64 | None:
        """Return the bytes of strings before each row; None if all strings are short."""
        values = self.values
        names = self.node_names
        lengths = self.vmo.pool.pool.array("lengths")
        text_lengths = self.vmo.texts.lengths[:-1]
        used_lengths = text_lengths[values.uses > 0]
        is_short = int(used_lengths.max(initial=0)) < LONG
        if name == "properties":
            if is_short:
                return self.first_text
            names_of_values = self._names(self.rows_of_values)
            return self.first_text + bounds_of(lengths[names_of_values])
        if is_short:
            return None
        if name == "nodes":
            return bounds_of(lengths[names])
        if name == "inspect_links":
            texts = values.link_contents[self.vmo.link_places]
            contents = self.vmo.texts.codes[texts]
            names_of_links = self._names(self.rows_of_links)
            return bounds_of(lengths[names_of_links] + lengths[contents])
        slots = self._slots(0, int(self.first_slot[-1]))
        codes = slots["str"]()
        return bounds_of(np.where(codes < 0, 0, lengths[codes]))

    def rows(self, name: str, start: int, stop: int) -> tuple[int, Columns]:
        """Return the number of rows from ``at`` to ``stop``, and their columns except `row`."""
        return stop - start, MAKERS[name](self, start, stop)

    def _names(self, rows: NDArray[Any]) -> I32:
        """Return the codes of the names of values."""
        return gathered(self.vmo.texts.codes, gathered(self.values.names, rows))

    # --- Nodes ------------------------------------------------------------------------------------

    def _nodes(self, start: int, stop: int) -> Columns:
        def links() -> I32:
            owners = self.vmo.link_owners
            owners = owners[slice(*np.searchsorted(owners, [start, stop]))]
            return np.bincount(owners - start, minlength=stop - start).astype(np.int32)

        @cache
        def units() -> I32:
            nodes = self.order.nodes[start:stop]
            node_units = gathered(self.values.units, gathered(self.values.node_rows, nodes))
            node_units[: max(0, 1 - start)] = 0  # the root
            return node_units

        return {
            "offset": lambda: offsets_of(units()),
            "id": lambda: np.arange(start, stop, dtype=np.int32),
            "parent": lambda: self.order.parents[start:stop],
            "name": lambda: self.node_names[start:stop],
            "path": lambda: self.paths[start:stop],
            "links": links,
            "inspect_block": lambda: units().view(np.uint32),
        }

    @cached_property
    def node_names(self) -> I32:
        """Return the codes of the names of all nodes, by id."""
        names = np.empty(self.order.count, np.int32)
        names[0] = self.vmo.pool.intern(b"root")
        names[1:] = self._names(gathered(self.values.node_rows, self.order.nodes[1:]))
        return names

    @cached_property
    def paths(self) -> I32:
        """Return the codes of the paths of all nodes, by id."""
        return paths_of(self.vmo.pool, self.node_names, self.order, self.vmo.nbytes)

    # --- Properties -------------------------------------------------------------------------------

    def _properties(self, start: int, stop: int) -> Columns:
        values = self.values
        rows = self.rows_of_values[start:stop]
        types = self.types[start:stop]

        def numbers(column: str) -> I64:
            wanted = NUMBERS[column]
            if self._seen.isdisjoint(wanted):
                return np.broadcast_to(np.int64(0), rows.size)
            bits = values.bits.take(rows)
            if not self._seen.issubset(wanted):
                is_wanted = np.zeros(len(tables.TYPES) + 1, bool)
                is_wanted[list(wanted)] = True
                bits *= is_wanted.take(types)
            return bits

        def arrays() -> I64:
            starts = self.first_slot[start : stop + 1]
            first_slots = starts[:-1] * (types >= tables.INT_ARRAY)
            return np.stack((first_slots, np.diff(starts)), axis=1)

        return {
            "offset": lambda: offsets_of(values.units.take(rows)),
            "node": lambda: self.vmo.value_owners[start:stop],
            "name": lambda: self._names(rows),
            "type": types,
            "int": lambda: numbers("int"),
            "uint": lambda: numbers("uint").view(np.uint64),
            "float": lambda: numbers("float").view(np.float64),
            "text": lambda: self._text(start, stop),
            "array": arrays,
            "inspect_block": lambda: values.units.take(rows).view(np.uint32),
            "inspect_format": lambda: values.formats.take(rows),
        }

    def _text(self, start: int, stop: int) -> TextColumn:
        offsets = self.first_text[start : stop + 1]
        offsets = offsets - offsets[0]
        total = int(offsets[-1])
        if total > self.text_bound:
            raise LimitError(
                f"the values of {stop - start} properties, many of which share a string, take "
                f"{total} bytes together",
                remedy="read the table in batches, or raise the limit with -o max_memory=BYTES",
            )
        rows = self.rows_of_values[start:stop]
        return SharedTexts(offsets, rows, self.values, self.vmo.texts, self._shared)

    # --- Slots ------------------------------------------------------------------------------------

    def _slots(self, start: int, stop: int) -> Columns:
        """Return the columns of slots `start` to `stop`, which belong to one or more arrays."""
        first_array = int(np.searchsorted(self.first_slot, start, "right")) - 1
        last_array = int(np.searchsorted(self.first_slot, stop, "left"))
        starts = self.first_slot[first_array : last_array + 1]
        bounds = np.clip(starts, start, stop)
        counts = np.diff(bounds)
        """How many slots of each array are in the stretch."""
        types = self.types[first_array:last_array]
        units = self.values.units[self.rows_of_values[first_array:last_array]]

        def slots() -> I32:
            # Counted from the first slot here, so that 32 bits hold it.
            slots_before = (starts[:-1] - start).astype(np.int32)
            all_slots = np.arange(stop - start, dtype=np.int32)
            return all_slots - np.repeat(slots_before, counts)

        def of_type(type: int) -> tuple[Any, NDArray[Any]]:
            """Return which slots are of arrays of a type, and the numbers in them."""
            arrays = np.flatnonzero((types == type) & (counts > 0))
            nbytes = SLOT_BYTES[type]
            skipped = bounds[arrays] - starts[arrays]
            begins = offsets_of(units[arrays])
            begins += wire.SLOTS_AT + nbytes * skipped
            # Slots of 8 bytes hold a number as it is, those of 4 bytes the index of a string.
            bits = self.vmo.numbers.listed(
                begins, counts[arrays], nbytes, big=False, signed=nbytes == WORD
            )
            if bits.size == stop - start:
                return slice(None), bits
            return np.repeat(types == type, counts), bits

        def numbers(type: int) -> I64:
            """Return the number of each slot; 0 where an array is of another type."""
            if type not in self._seen:
                return np.broadcast_to(np.int64(0), stop - start)
            slots_of_type, bits = of_type(type)
            if bits.size == stop - start:
                return bits
            column = np.zeros(stop - start, np.int64)
            column[slots_of_type] = bits
            return column

        def codes() -> I32:
            if tables.STRING_ARRAY not in self._seen:
                return np.broadcast_to(np.int32(-1), stop - start)
            slots_of_type, targets = of_type(tables.STRING_ARRAY)
            codes_of_slots = self.vmo.slot_codes.take(targets, mode="clip")
            if targets.size == stop - start:
                return codes_of_slots
            column = np.full(stop - start, -1, np.int32)
            column[slots_of_type] = codes_of_slots
            return column

        return {
            "offset": lambda: np.repeat(offsets_of(units), counts),
            "parent": lambda: np.repeat(np.arange(first_array, last_array), counts),
            "slot": slots,
            "int": lambda: numbers(tables.INT_ARRAY),
            "uint": lambda: numbers(tables.UINT_ARRAY).view(np.uint64),
            "float": lambda: numbers(tables.DOUBLE_ARRAY).view(np.float64),
            "str": codes,
        }

    # --- Links ------------------------------------------------------------------------------------

    def _links(self, start: int, stop: int) -> Columns:
        values = self.values
        codes = self.vmo.texts.codes
        rows = self.rows_of_links[start:stop]
        links = self.vmo.link_places[start:stop]
        state = self.vmo.pool.intern(b"not expanded")
        return {
            "offset": lambda: offsets_of(values.units[rows]),
            "node": lambda: self.vmo.link_owners[start:stop],
            "name": lambda: self._names(rows),
            "content": lambda: codes[values.link_contents[links]],
            "disposition": lambda: values.link_dispositions[links],
            "inspect_block": lambda: values.units[rows].view(np.uint32),
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
