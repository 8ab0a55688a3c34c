"""Raw columns of one VMO: the arrays that the kernels fill, made and put into the tree's order."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_inspect import layout
from fx_inspect.read import scan as k
from fxframework.io import arena
from fxframework.io.jit import Kernel
from fxframework.io.limits import Limits
from fxframework.io.words import U64_MAX
from fxframework.model.strings import StringPool

__all__ = ["Decoder", "Order", "arranged", "walked"]

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]
U8 = NDArray[np.uint8]
FINDINGS = 1 << 10
"""Findings for which there is room at first: more than most files have."""


def _zeros(kind: Any, rows: int, **dtypes: type) -> Any:
    """Columns of zeros, int32 where nothing else is said."""
    return kind(*(np.zeros(rows, dtypes.get(field, np.int32)) for field in kind._fields))


def _empty(kind: Any, rows: int, **dtypes: type) -> Any:
    """Columns of anything, int32 where nothing else is said."""
    return kind(*(arena.empty(rows, dtypes.get(field, np.int32)) for field in kind._fields))


def _parameters(name: str) -> I64:
    """A layout as the kernels take it (``kernels.TYPE_AT`` and so on)."""
    types = layout.LAYOUTS[name]
    node, kind = types[layout.BlockType.NODE_VALUE], layout.TYPE_V0 if name == "v0" else layout.TYPE
    _, parent = node.field("parent")
    _, called = node.field("name")
    masks = [mask for type in range(len(types)) for mask in types[type].reserved_masks]
    version = 0 if name == "v0" else layout.MAX_VERSION
    values = [kind.low, kind.limit, parent.low, parent.limit, called.low, len(types), version]
    return np.array([*values, *masks], np.uint64).view(np.int64)


LAYOUTS = {name: _parameters(name) for name in layout.LAYOUTS}


@attrs.frozen
class Order:
    """Nodes that attach on the root, in the order of the tree."""

    place: I32
    """Of each node its id, or -1."""
    nodes: I32
    """The nodes by id."""
    first: I32
    """Of each node its first child, or -1."""
    following: I32
    """Of each node that has a parent the child after it, or -1."""


def walked(size: int, parents: I32) -> Order:
    """The order of nodes that have these parents (-1 none); node 0 is the root."""
    count = parents.size
    first, following, place, nodes = (arena.empty(count, np.int32) for _ in range(4))
    reached = k.walk.for_size(size)(parents, first, following, place, nodes)
    return Order(place, nodes[:reached], first, following)


def arranged(size: int, owners: I32, order: Order) -> I32:
    """Rows in the order of the nodes that own them; those of no node are left out."""
    starts = np.zeros(order.nodes.size + 1, np.int32)
    rows = arena.empty(owners.size, np.int32)
    count = k.arrange.for_size(size)(owners, order.place, starts, rows)
    return rows[:count]


class Decoder:
    """Reads one VMO, once, into raw columns; strings go to ``pool``."""

    def __init__(self, data: U8, pool: StringPool, limits: Limits) -> None:
        self.data = data
        self.nbytes = int(data.size)
        self.pool = pool
        self.legacy = layout.is_legacy(data[:2].tobytes())
        self.lay = LAYOUTS["v0" if self.legacy else "new"]
        units = self.nbytes // layout.UNIT
        self.words: I64 = data[: units * layout.UNIT].view("<i8")
        self.limits = limits
        found = FINDINGS
        while found:
            self._begin(found)
            self._frame(units)
            self._read()
            self._arrange()
            # A file of very many findings is read again, with room for them.
            kept = int(self.notes.counts[0])
            found = kept if k.FINDING_FIELDS * kept > self.notes.findings.size else 0

    def _begin(self, findings: int) -> None:
        limits = self.limits
        self.scalars = np.zeros(k.SCALARS, np.int64)
        self.scalars[k.MAX_RECORD] = limits.max_record or 1 << 62
        self.scalars[k.MAX_STRING] = limits.max_string or 1 << 62
        self.scalars[k.ROOM] = self.nbytes
        self.tally = np.zeros(256 * 16, np.int64)
        """Records by type and order."""
        self.notes = k.Notes(
            findings=np.empty(findings * k.FINDING_FIELDS, np.int64),
            counts=np.zeros(k.CODES + 2, np.int64),
        )
        self.notes.counts[1] = limits.max_findings or 1 << 62

    def _run(self, kernel: Kernel, *arguments: Any) -> Any:
        return kernel.for_size(self.nbytes)(*arguments)

    def _frame(self, units: int) -> None:
        """Find the blocks."""
        blocks = _empty(k.Blocks, units + 1, type=np.uint8, order=np.uint8)
        self.kinds = np.zeros(units, np.int32 if units < 1 << 26 else np.int64)
        """Of each unit 1 + the number and type of the block that begins there, or 0."""
        leads = arena.empty(units + 1, np.uint8)
        self._run(
            k.frame, self.words, self.nbytes, self.lay, blocks, self.kinds, leads, self.tally,
            self.notes, self.scalars,
        )  # fmt: skip
        count = int(self.scalars[k.N_BLOCKS])
        if count and blocks.type[0] == k.HEADER:
            k.look_at_header.plain(self.words, self.nbytes, self.lay, self.notes)
        self.blocks = k.Blocks(*(column[:count] for column in blocks))

    def _read(self) -> None:
        """Read strings and values, in the order of the file, and find whom they belong to."""
        scalars, blocks, notes = self.scalars, self.blocks, self.notes
        extents = _zeros(k.Extents, int(scalars[k.N_EXTENTS]), twice=np.uint8)
        strings = _zeros(k.Strings, int(scalars[k.N_STRINGS]), length=np.int64)
        buffers = np.zeros(int(scalars[k.N_BUFFERS]), np.int64)
        scratch = arena.empty(self.nbytes if extents.owner.size else 0, np.uint8)
        self._run(
            k.read_texts, self.words, self.data, self.lay, blocks, self.kinds, extents, strings,
            buffers, scratch, notes, scalars,
        )  # fmt: skip
        nodes = _empty(k.Nodes, int(scalars[k.N_NODES]) + 1)
        for column, value in zip(nodes, (0, -1, -1, 0), strict=True):
            column[0] = value
        values = _empty(
            k.Values, int(scalars[k.N_VALUES]), type=np.uint8, format=np.uint8, value=np.int64,
            length=np.uint32,
        )  # fmt: skip
        links = _empty(k.Links, int(scalars[k.N_LINKS]), disposition=np.uint8)
        children = np.zeros(self.kinds.size, np.int32)
        self._run(
            k.read_values, self.words, self.lay, blocks, self.kinds, strings, buffers, children,
            nodes, values, links, notes, scalars,
        )  # fmt: skip
        values = k.Values(*(column[: int(scalars[k.USED_VALUES])] for column in values))
        links = k.Links(*(column[: int(scalars[k.USED_LINKS])] for column in links))
        self._hang(nodes, values, links)
        self._run(k.find_cycles, nodes, np.zeros(nodes.unit.size, np.int32), notes)
        self._run(k.validate, self.words, self.lay, blocks, extents, strings, children, notes)
        self.strings, self.nodes, self.values, self.links = strings, nodes, values, links
        self._intern()

    def _hang(self, nodes: k.Nodes, values: k.Values, links: k.Links) -> None:
        """Find the nodes of parents, which were indexes so far."""
        above = nodes.parent[1:]
        above[nodes.name[1:] < 0] = 0
        for rows, parents in ((nodes, above), (values, values.node), (links, links.node)):
            start = rows.unit.size - parents.size  # not the root
            self._run(
                k.attach, self.kinds, nodes.name, rows.unit[start:], rows.block[start:], parents,
                self.notes,
            )  # fmt: skip
        above[nodes.name[1:] < 0] = -1

    def _intern(self) -> None:
        """Enter the strings that are names, contents of links or slots into the pool."""
        found = np.zeros(3, np.int64)
        self._run(k.measure_strings, self.strings, found)
        count, words, longest = found.tolist()
        arrays = self.pool.reserve(count + 1, words + 1)
        scratch = np.zeros(longest // 8 + 2, np.int64)
        self._run(
            k.intern_strings, self.words, self.data, self.lay, self.blocks, self.strings, arrays,
            scratch, scratch.view(np.uint8),
        )  # fmt: skip

    def _arrange(self) -> None:
        """Put everything into the order of the tree."""
        self.order = walked(self.nbytes, self.nodes.parent)
        self.value_rows = arranged(self.nbytes, self.values.node, self.order)
        """The values in the order of `properties`."""
        self.link_rows = arranged(self.nbytes, self.links.node, self.order)
        seen = np.zeros(len(self.pool), np.int32)
        order = self.order
        self._run(
            k.find_duplicates, order.nodes, order.place, order.first, order.following, self.nodes,
            self.values, self.value_rows, self.strings, seen, self.notes,
        )  # fmt: skip

    # --- What is to be said of the whole ----------------------------------------------------------

    def record_kinds(self) -> dict[str, int]:
        """Records of each kind, by the names of record JSON."""
        records = self.tally.reshape(256, 16).sum(axis=1)
        others = {"unknown": k.UNKNOWN, "padding": k.PADDING, "damaged": k.DAMAGED}
        kinds = {"block": int(records[: layout.NEW_TYPES].sum())}
        kinds |= {name: int(records[type]) for name, type in others.items()}
        return {name: count for name, count in kinds.items() if count}

    def header(self) -> dict[str, Any] | None:
        """What the header says; None where there is none."""
        if not self.blocks.type.size or self.blocks.type[0] != k.HEADER:
            return None
        word, generation = (int(word) & U64_MAX for word in self.words[:2])
        word >>= int(self.lay[k.INDEX_AT])
        version = word & (1 << (32 - int(self.lay[k.INDEX_AT]))) - 1
        size = int(self.words[2]) & k.LOW32 if self.blocks.order[0] else None
        return {
            "version": version,
            "generation": generation,
            "locked": bool(generation & 1),
            "frozen": generation == layout.FROZEN_GENERATION,
            "vmo_size": "not given" if size is None else size,
        }

    def heap(self) -> dict[str, Any]:
        """How the space is used: blocks by type and order, what is free, in how many pieces.

        Zeros of which no block is sure count as free.
        """
        tally = self.tally.reshape(256, 16)[: layout.NEW_TYPES]
        orders = np.arange(16)
        sizes = layout.UNIT << orders
        free = tally[layout.BlockType.FREE]
        free_bytes = int((free * sizes).sum())
        padding, damaged, unknown = (
            int(self.scalars[at]) for at in (k.PADDING_BYTES, k.DAMAGED_BYTES, k.UNKNOWN_BYTES)
        )
        total = int((tally * sizes).sum())
        largest = int(sizes[free > 0].max(initial=0))
        # Blocks of the greatest order there is are whole; smaller ones are what fragmentation is.
        whole = int(free[layout.MAX_ORDER :] @ sizes[layout.MAX_ORDER :])
        facts: dict[str, Any] = {
            "blocks_by_type": {
                layout.TYPE_NAMES[type]: int(count)
                for type, count in enumerate(tally.sum(axis=1).tolist())
                if count
            },
            "blocks_by_order": _by_order(tally.sum(axis=0)),
            "bytes_used": total - free_bytes,
            "bytes_free": free_bytes + padding,
            "free_blocks_by_order": _by_order(free),
            "largest_free_block": largest,
            "fragmentation_percent": round(100 * (1 - whole / free_bytes), 1) if free_bytes else 0,
        }
        facts |= {"bytes_damaged": damaged} if damaged else {}
        facts |= {"bytes_unknown": unknown} if unknown else {}
        return facts


def _by_order(counts: I64) -> dict[str, int]:
    return {str(order): count for order, count in enumerate(counts.tolist()) if count}
