"""Rows: raw columns of one VMO in the order of its tree, as columns of tables."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fx_inspect import layout
from fx_inspect.read import scan as k
from fx_inspect.read import tables
from fx_inspect.read.columns import Decoder
from fxframework.errors import LimitError
from fxframework.io import arena
from fxframework.model.strings import StringPool, TextColumn

__all__ = ["TreeRows", "paths"]

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]
Columns = dict[str, Any]
TEXT_AT_ONCE = 64 << 20
"""Bytes of values in a batch, however many rows that is."""
COST = 10
"""Bytes of values that a byte of the file may make in a whole table, where values share strings."""
LONGEST_PATH = 1 << 12
PATHS = 1
SPARE_PATHS = 1 << 18
"""Bytes of the longest path, and of all: so many a byte of the file, and so many more."""


class TreeRows:
    """The rows of the tables of one VMO, made of its raw columns a stretch at a time."""

    def __init__(self, decoder: Decoder, max_memory: int) -> None:
        self.decoder = decoder
        self.order = decoder.order
        self.values = decoder.values
        self.links = decoder.links
        self.rows_of_values = decoder.value_rows
        self.rows_of_links = decoder.link_rows
        self.text_bound = max_memory or max(COST * decoder.nbytes, TEXT_AT_ONCE)
        types = self.values.type[self.rows_of_values]
        lengths = self.values.length[self.rows_of_values].astype(np.int64)
        arrays = types >= tables.INT_ARRAY
        self.first_slot = sums(lengths * arrays)
        """First slot of each property; of what is no array, that of the next one."""
        self.first_text = sums(lengths * ~arrays)
        """First byte of each property's value among those of all."""
        self._paths: I32 | None = None

    def count(self, name: str) -> int:
        """Rows of a table."""
        if name == "nodes":
            # No bytes have no root either.
            return int(self.order.nodes.size) if self.decoder.nbytes else 0
        if name == "properties":
            return int(self.rows_of_values.size)
        return int(self.first_slot[-1]) if name == "inspect_slots" else int(self.rows_of_links.size)

    def stop(self, name: str, at: int, stop: int) -> int:
        """Where a batch from row ``at`` to ``stop`` ends, so that its values are not too many."""
        if name != "properties":
            return stop
        fitting = np.searchsorted(self.first_text, self.first_text[at] + TEXT_AT_ONCE, "right") - 1
        return min(stop, max(at + 1, int(fitting)))

    def rows(self, name: str, at: int, stop: int) -> tuple[int, Columns]:
        """The rows from ``at`` to ``stop`` of a table: how many, and their columns but `row`."""
        make = {
            "nodes": self._nodes,
            "properties": self._properties,
            "inspect_slots": self._slots,
            "inspect_links": self._links,
        }[name]
        return stop - at, make(at, stop)

    def _nodes(self, at: int, stop: int) -> Columns:
        raw, order = self.decoder.nodes, self.order
        nodes = order.nodes[at:stop]
        parents = raw.parent[nodes]

        def links() -> I32:
            owners = order.place[self.links.node[self.rows_of_links]]
            return np.bincount(owners, minlength=order.nodes.size)[at:stop].astype(np.int32)

        return {
            "offset": lambda: layout.UNIT * raw.unit[nodes].astype(np.int64),
            "id": lambda: np.arange(at, stop, dtype=np.int32),
            "parent": lambda: np.where(parents < 0, -1, order.place[parents]).astype(np.int32),
            "name": lambda: self.node_names()[at:stop],
            "path": lambda: self.paths()[at:stop],
            "links": links,
            "inspect_block": lambda: raw.unit[nodes].view(np.uint32),
        }

    def node_names(self) -> I32:
        """Codes of the names of all nodes, by id."""
        nodes = self.order.nodes
        names = np.empty(nodes.size, np.int32)
        names[:1] = self.decoder.pool.intern(b"root")
        names[1:] = self.decoder.strings.code[self.decoder.nodes.name[nodes[1:]]]
        return names

    def paths(self) -> I32:
        """Codes of the paths of all nodes, by id."""
        if self._paths is None:
            parents = self.order.place[self.decoder.nodes.parent[self.order.nodes]]
            parents[:1] = -1
            self._paths = paths(self.decoder.pool, self.decoder.nbytes, self.node_names(), parents)
        return self._paths

    def _properties(self, at: int, stop: int) -> Columns:
        values, decoder = self.values, self.decoder
        rows = self.rows_of_values[at:stop]
        types = values.type[rows]

        def numbers(*wanted: int) -> I64:
            bits = sum(1 << type for type in wanted)
            if not int(decoder.scalars[k.SEEN_TYPES]) & bits:
                return np.broadcast_to(np.int64(0), rows.size)
            out = arena.empty(rows.size, np.int64)
            k.pick.for_size(decoder.nbytes)(values.value, values.type, rows, bits, out)
            return out

        def arrays() -> I64:
            out = np.empty((rows.size, 2), np.int64)
            out[:, 0] = self.first_slot[at:stop]
            out[:, 1] = np.diff(self.first_slot[at : stop + 1])
            out[types < tables.INT_ARRAY, 0] = 0
            return out

        def text() -> TextColumn:
            offsets = self.first_text[at : stop + 1] - self.first_text[at]
            total = int(offsets[-1])
            if total > self.text_bound:
                raise LimitError(
                    f"the values of {rows.size} properties, many of which share a string, take "
                    f"{total} bytes together",
                    remedy="take the table in batches, or raise it with -o max_memory=BYTES",
                )
            data = arena.empty(total, np.uint8)
            k.copy_texts.for_size(max(total, decoder.nbytes))(
                decoder.words, decoder.data, decoder.lay, values.source[rows], offsets, data
            )
            return TextColumn(offsets, data)

        return {
            "offset": lambda: layout.UNIT * values.unit[rows].astype(np.int64),
            "node": lambda: self.order.place[values.node[rows]],
            "name": lambda: decoder.strings.code[values.name[rows]],
            "type": types,
            "int": lambda: numbers(tables.INT, tables.BOOL),
            "uint": lambda: numbers(tables.UINT).view(np.uint64),
            "float": lambda: numbers(tables.DOUBLE).view(np.float64),
            "text": text,
            "array": arrays,
            "inspect_block": lambda: values.unit[rows].view(np.uint32),
            "inspect_format": lambda: values.format[rows],
        }

    def _slots(self, at: int, stop: int) -> Columns:
        decoder, values = self.decoder, self.values
        first = int(np.searchsorted(self.first_slot, at, "right")) - 1
        last = int(np.searchsorted(self.first_slot, stop, "left"))
        rows = self.rows_of_values[first:last]
        starts = self.first_slot[first : last + 1]
        types, units = values.type[rows], values.unit[rows]
        made: list[NDArray[Any]] = []

        def places() -> list[NDArray[Any]]:
            if not made:
                made.extend((arena.empty(stop - at, np.int64), arena.empty(stop - at, np.int32)))
                k.slot_places.for_size(decoder.nbytes)(starts, first, at, stop, *made)
            return made

        def offsets() -> I64:
            out = arena.empty(stop - at, np.int64)
            k.slot_offsets.for_size(decoder.nbytes)(units, starts, at, stop, out)
            return out

        def numbers(wanted: int) -> I64:
            if not decoder.scalars[k.SEEN_TYPES] >> wanted & 1:
                return np.broadcast_to(np.int64(0), stop - at)
            out = arena.empty(stop - at, np.int64)
            k.slot_numbers.for_size(decoder.nbytes)(
                decoder.words, units, types, starts, wanted, at, out
            )
            return out

        def codes() -> I32:
            if not decoder.scalars[k.SEEN_TYPES] >> tables.STRING_ARRAY & 1:
                return np.broadcast_to(np.int32(-1), stop - at)
            out = arena.empty(stop - at, np.int32)
            k.slot_codes.for_size(decoder.nbytes)(
                decoder.words, units, types, starts, at, decoder.kinds, decoder.strings.code, out
            )  # fmt: skip
            return out

        return {
            "offset": offsets,
            "parent": lambda: places()[0],
            "slot": lambda: places()[1],
            "int": lambda: numbers(tables.INT_ARRAY),
            "uint": lambda: numbers(tables.UINT_ARRAY).view(np.uint64),
            "float": lambda: numbers(tables.DOUBLE_ARRAY).view(np.float64),
            "str": codes,
        }

    def _links(self, at: int, stop: int) -> Columns:
        links, strings = self.links, self.decoder.strings
        rows = self.rows_of_links[at:stop]
        state = self.decoder.pool.intern(b"not expanded")
        return {
            "offset": lambda: layout.UNIT * links.unit[rows].astype(np.int64),
            "node": lambda: self.order.place[links.node[rows]],
            "name": lambda: strings.code[links.name[rows]],
            "content": lambda: strings.code[links.content[rows]],
            "disposition": lambda: links.disposition[rows],
            "inspect_block": lambda: links.unit[rows].view(np.uint32),
            "state": lambda: np.broadcast_to(np.int32(state), rows.size),
        }


def sums(sizes: I64) -> I64:
    """Sums of the sizes before each, and of all."""
    out = np.zeros(sizes.size + 1, np.int64)
    np.cumsum(sizes, out=out[1:])
    return out


def paths(pool: StringPool, size: int, names: I32, parents: I32) -> I32:
    """Codes of the paths of nodes in the order of the tree; -1 where they take too much room.

    ``names`` are codes, ``parents`` ids; ``size`` is that of the file.
    """
    lengths = arena.empty(names.size, np.int64)
    budget = PATHS * size + SPARE_PATHS
    measure = k.measure_paths.for_size(size)
    words = int(measure(names, parents, pool.arrays, LONGEST_PATH, budget, lengths))
    arrays = pool.reserve(int((lengths >= 0).sum()), words)
    scratch = np.zeros(LONGEST_PATH // 8 + 2, np.int64)
    out = arena.empty(names.size, np.int32)
    k.name_paths.for_size(size)(
        names, parents, lengths, arrays, scratch, scratch.view(np.uint8),
        arrays.words.view(np.uint8), out,
    )  # fmt: skip
    return out
