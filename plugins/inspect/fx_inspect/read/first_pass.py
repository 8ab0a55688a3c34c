"""The first pass over a VMO: runs all kernels, which fill its raw columns, and orders its tree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fx_inspect import format as wire
from fx_inspect.read.order import Arrangement, Duplicates, TreeOrder
from fx_inspect.read.scan import Scan
from fx_inspect.read.texts import Interning, TextCopy, Texts
from fx_inspect.read.values import Validator, Values
from fx_inspect.rules import RULES
from fxframework.io.limits import Limits
from fxframework.io.words import U64_MAX
from fxframework.kernels.rows import Notes
from fxframework.model.strings import StringPool

__all__ = ["RawColumns", "arranged", "record_scan", "tree_order"]

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]
U8 = NDArray[np.uint8]
NO_LIMIT = 1 << 62


def _parameters(name: str) -> I64:
    """Return a layout in the form of the kernels: positions of fields, and reserved bits."""
    types, head = wire.BLOCKS[name], wire.HEADS[name]
    masks = [mask for type in range(len(types)) for mask in wire.reserved_masks(types[type])]
    version = 0 if name == "v0" else wire.MAX_VERSION
    values = [head.type.low, head.type.limit, head.first.low, head.first.limit, head.second.low]
    values += [len(types), version]
    return np.array([*values, *masks], np.uint64).view(np.int64)


LAYOUTS = {name: _parameters(name) for name in wire.BLOCKS}


def tree_order(parents: I32) -> TreeOrder:
    """Return the order of nodes with these parents (-1: none); node 0 is the root."""
    order = TreeOrder(parents.data)
    order.run()
    return order


def arranged(owners: I32, order: TreeOrder) -> I32:
    """Return rows in the order of the nodes that own them, without rows of no node."""
    arrangement = Arrangement(owners.data, order)
    arrangement.run()
    return np.asarray(arrangement.rows)[: arrangement.count]


def taken(rows: Any, values: Any, through: Any = None) -> I32:
    """Return values at rows, or at what ``through`` has there; -1 stays -1."""
    found: I32 = np.asarray(rows)
    for table in (values,) if through is None else (through, values):
        found = np.append(np.asarray(table), np.int32(-1))[found]
    return found


def scan_of(data: U8, limits: Limits, notes: Notes, *, places: bool) -> Scan:
    """Return the scan of a VMO, at its beginning; ``places`` is that of ``Scan``."""
    words: I64 = data[: data.size // wire.UNIT * wire.UNIT].view("<i8")
    parameters = LAYOUTS[wire.layout_of(data[:2].tobytes())].data
    bound = limits.max_record or NO_LIMIT
    return Scan(words.data, int(data.size), parameters, bound, notes, places)


def record_scan(data: U8, limits: Limits) -> Scan:
    """Return the scan of a VMO for records alone, at its beginning."""
    return scan_of(data, limits, Notes(RULES.numbers, 0), places=False)


class RawColumns:
    """One VMO, read once into raw columns; its strings go to ``pool``.

    ``reached`` is called after each of the kernels, with how many bytes' worth of work is done.
    """

    def __init__(
        self,
        data: U8,
        pool: StringPool,
        limits: Limits,
        reached: Callable[[int], object] = lambda _: None,
    ) -> None:
        self.data = data
        self.nbytes = int(data.size)
        self.pool = pool
        self.legacy = wire.is_legacy(data[:2].tobytes())
        units = self.nbytes // wire.UNIT
        self.words: I64 = data[: units * wire.UNIT].view("<i8")
        self.notes = notes = Notes(RULES.numbers, limits.max_findings)
        words, octets = self.words.data, data.data
        # The shares of the time, for a tree of small nodes.
        passed = (reached(share * self.nbytes // 100) for share in (25, 40, 60, 70, 85, 100))
        self.scan = scan = scan_of(data, limits, notes, places=True)
        scan.run()
        next(passed)
        texts = Texts(scan, words, octets, limits.max_string or NO_LIMIT, notes)
        texts.run()
        next(passed)
        self.values = values = Values(scan, texts, words, notes)
        values.run()
        next(passed)
        Validator(scan, texts, values, words, notes).run()
        next(passed)
        self.string_lengths: I64 = np.asarray(texts.length)
        self.uses: I32 = np.asarray(values.uses)
        self.copy = TextCopy(scan, words, octets)
        self.string_codes = self._interned()
        next(passed)
        self.units: I32 = np.asarray(scan.unit)
        """Index of each record, in units."""
        self.order = tree_order(np.asarray(values.node_parent))
        self.node_count = self.order.count
        self.value_nodes: I32 = np.asarray(values.node)[: values.rows]
        self.value_rows = arranged(self.value_nodes, self.order)
        """Values in the order of `properties`."""
        self.link_nodes: I32 = np.asarray(values.link_node)[: values.links]
        self.link_rows = arranged(self.link_nodes, self.order)
        self._find_duplicates()
        next(passed)

    def _interned(self) -> I32:
        """Return the codes of strings in the pool; -1 for strings that the tree does not use."""
        lengths, uses = self.string_lengths, self.uses
        longest = int(lengths.max(initial=0, where=uses > 0))
        pool = self.pool.pool
        interning = Interning(self.scan, self.copy, lengths.data, uses.data, longest, pool)
        interning.run()
        return np.asarray(interning.code)

    def _find_duplicates(self) -> None:
        values = self.values
        node_names = taken(values.node_name, self.string_codes)
        names = taken(np.asarray(values.name)[: values.rows], self.string_codes)
        nodes = node_names.data, values.node_block
        properties = names.data, values.block, self.value_nodes.data, self.value_rows.data
        strings = len(self.pool)
        Duplicates(self.scan, self.order, self.notes, strings, nodes, properties).run()

    # --- Raw columns ------------------------------------------------------------------------------

    def value_names(self, rows: Any) -> I32:
        """Return the codes of the names of values."""
        return taken(rows, self.string_codes, self.values.name)

    def value_units(self, rows: Any) -> I32:
        """Return the units of the blocks of values."""
        return taken(rows, self.units, self.values.block)

    def link_units(self, rows: Any) -> I32:
        """Return the units of the blocks of links."""
        return taken(rows, self.units, self.values.link_block)

    def node_units(self, nodes: Any) -> I32:
        """Return the units of the blocks of nodes; 0 for the root."""
        units = taken(nodes, self.units, self.values.node_block)
        units[nodes == 0] = 0
        return units

    # --- Facts about the whole VMO ----------------------------------------------------------------

    def tally(self) -> I64:
        """Return the number of records by type and order, int64 of shape (256, 16)."""
        return np.asarray(self.scan.tally).reshape(256, 16)

    def record_kinds(self) -> dict[str, int]:
        """Return the number of records of each kind, by the names of record JSON."""
        records = self.tally().sum(axis=1)
        others = {"unknown": wire.UNKNOWN_BLOCK, "padding": wire.PADDING, "damaged": wire.DAMAGED}
        kinds = {"block": int(records[: wire.NEW_TYPES].sum())}
        kinds |= {name: int(records[type]) for name, type in others.items()}
        return {name: count for name, count in kinds.items() if count}

    def header(self) -> dict[str, Any] | None:
        """Return the facts of the header; None without one."""
        scan = self.scan
        if not scan.count or scan.type[0] != wire.BlockType.HEADER:
            return None
        word, generation = (int(word) & U64_MAX for word in self.words[:2])
        size = wire.VMO_SIZE.get(int(self.words[2])) if scan.order[0] else None
        return {
            "version": wire.HEADS["v0" if self.legacy else "new"].version.get(word),
            "generation": generation,
            "locked": generation % 2 == 1,
            "frozen": generation == wire.FROZEN_GENERATION,
            "vmo_size": "not given" if size is None else size,
        }

    def heap(self) -> dict[str, Any]:
        """Return the use of the space: blocks by type and order, free space, and its fragmentation.

        Zeros that may or may not be blocks count as free.
        """
        tally = self.tally()[: wire.NEW_TYPES]
        orders = np.arange(16)
        sizes = wire.UNIT << orders
        free = tally[wire.BlockType.FREE]
        free_bytes = int((free * sizes).sum())
        scan = self.scan
        total = int((tally * sizes).sum())
        largest = int(sizes[free > 0].max(initial=0))
        # Free blocks of the highest order are unfragmented space, smaller ones are fragments.
        whole = int(free[wire.MAX_ORDER :] @ sizes[wire.MAX_ORDER :])
        facts: dict[str, Any] = {
            "blocks_by_type": {
                wire.TYPE_NAMES[type]: int(count)
                for type, count in enumerate(tally.sum(axis=1).tolist())
                if count
            },
            "blocks_by_order": _by_order(tally.sum(axis=0)),
            "bytes_used": total - free_bytes,
            "bytes_free": free_bytes + scan.padding_bytes,
            "free_blocks_by_order": _by_order(free),
            "largest_free_block": largest,
            "fragmentation_percent": round(100 * (1 - whole / free_bytes), 1) if free_bytes else 0,
        }
        facts |= {"bytes_damaged": scan.damaged_bytes} if scan.damaged_bytes else {}
        facts |= {"bytes_unknown": scan.unknown_bytes} if scan.unknown_bytes else {}
        return facts


def _by_order(counts: I64) -> dict[str, int]:
    return {str(order): count for order, count in enumerate(counts.tolist()) if count}
