"""Raw columns of one VMO: the arrays that the kernels fill, made and put into the tree's order."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_inspect import kernels as k
from fx_inspect import layout
from fxframework.io import arena
from fxframework.io.limits import Limits
from fxframework.model.strings import StringPool

__all__ = ["Decoder", "Order", "arranged", "walked"]

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]
U8 = NDArray[np.uint8]
NEW = np.array([8, 0xFF, 16, 0xFFFFFF, 40, layout.NEW_TYPES], np.int64)
"""The layout of versions 1 and 2, as kernels take it (``kernels.TYPE_AT`` and so on)."""
V0 = np.array([4, 0xF, 8, 0xFFFFFFF, 36, layout.V0_TYPES], np.int64)
FINDINGS_A_BLOCK = 4
"""More findings than blocks have on average: slots have one an array."""
SPARE_FINDINGS = 64


def _zeros(kind: Any, rows: int, **dtypes: type) -> Any:
    """Columns of zeros, int32 where nothing else is said."""
    return kind(*(np.zeros(rows, dtypes.get(field, np.int32)) for field in kind._fields))


def _empty(kind: Any, rows: int, **dtypes: type) -> Any:
    """Columns of anything, int32 where nothing else is said."""
    return kind(*(arena.empty(rows, dtypes.get(field, np.int32)) for field in kind._fields))


@attrs.frozen
class Order:
    """Nodes that hang on the root, in the order of the tree."""

    place: I32
    """Of each node its id, or -1."""
    nodes: I32
    """The nodes by id."""


def walked(size: int, parents: I32) -> Order:
    """The order of nodes that have these parents (-1 none); node 0 is the root."""
    count = parents.size
    first, following, place, nodes = (arena.empty(count, np.int32) for _ in range(4))
    reached = k.walk.for_size(size)(parents, first, following, place, nodes)
    return Order(place, nodes[:reached])


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
        self.limits = limits
        self.legacy = layout.is_legacy(data[:2].tobytes())
        self.lay = V0 if self.legacy else NEW
        units = self.nbytes // layout.UNIT
        self.words: I64 = data[: units * layout.UNIT].view("<i8")
        self.scalars = np.zeros(k.SCALARS, np.int64)
        self.scalars[k.MAX_RECORD] = limits.max_record or 1 << 62
        self.scalars[k.MAX_STRING] = limits.max_string or 1 << 62
        self.tally = np.zeros(256 * 16, np.int64)
        """Blocks by type and order."""
        per_code = limits.max_findings or 1 << 62
        kept = min(per_code * k.RULES, FINDINGS_A_BLOCK * units) + SPARE_FINDINGS
        self.notes = k.Notes(
            findings=np.empty(kept * k.FINDING_FIELDS, np.int64),
            counts=np.zeros(k.CODES + 2, np.int64),
        )
        self.notes.counts[1] = per_code
        self._frame(units)
        self._decode()

    def _frame(self, units: int) -> None:
        """Find the blocks."""
        blocks = _empty(k.Blocks, units + 1, type=np.uint8, order=np.uint8)
        self.ordinal = np.zeros(units, np.int32)
        """Of each unit 1 + the number of the block that begins there; 0 where none does."""
        k.frame.for_size(self.nbytes)(
            self.words, self.nbytes, self.lay, blocks, self.ordinal, self.tally, self.notes,
            self.scalars,
        )  # fmt: skip
        count = int(self.scalars[k.N_BLOCKS])
        self.blocks = k.Blocks(*(column[:count] for column in blocks))

    def _decode(self) -> None:
        scalars, size = self.scalars, self.nbytes
        self.extents = _zeros(
            k.Extents, int(scalars[k.N_EXTENTS]), reach=np.int64, ends=np.uint8, used=np.uint8
        )
        self.strings = _zeros(
            k.Strings, int(scalars[k.N_STRINGS]), length=np.int64, state=np.uint8
        )
        self.nodes = _empty(k.Nodes, int(scalars[k.N_NODES]) + 1)
        self.values = _empty(
            k.Values, int(scalars[k.N_VALUES]), type=np.uint8, format=np.uint8, value=np.int64,
            length=np.uint32,
        )  # fmt: skip
        self.links = _empty(k.Links, int(scalars[k.N_LINKS]), disposition=np.uint8)
        if self.extents.block.size:
            k.index_extents.for_size(size)(self.blocks, self.extents)
            k.measure.for_size(size)(self.words, self.lay, self.blocks, self.ordinal, self.extents)
        k.decode.for_size(size)(
            self.words, self.data, self.lay, self.blocks, self.ordinal, self.extents, self.strings,
            self.nodes, self.values, self.links, self.notes, scalars,
        )  # fmt: skip
        self.values = k.Values(*(column[: int(scalars[k.USED_VALUES])] for column in self.values))
        self.links = k.Links(*(column[: int(scalars[k.USED_LINKS])] for column in self.links))
        self._intern()
        self.order = walked(size, self.nodes.parent)
        self.value_rows = arranged(size, self.values.node, self.order)
        """The values in the order of `properties`."""
        self.link_rows = arranged(size, self.links.node, self.order)

    def _intern(self) -> None:
        """Enter the strings that are names, contents of links or slots into the pool."""
        scalars = self.scalars
        strings, longest = int(scalars[k.POOLED]), int(scalars[k.LONGEST])
        words = int(scalars[k.POOLED_BYTES]) // 8 + strings
        arrays = self.pool.reserve(strings + 1, words + 1)
        scratch = np.zeros(longest // 8 + 2, np.int64)
        k.intern_strings.for_size(self.nbytes)(
            self.words, self.data, self.lay, self.blocks, self.strings, arrays, scratch,
            scratch.view(np.uint8),
        )  # fmt: skip
