"""The heap: a buddy allocator for Inspect VMOs, which allocates the same blocks as the reference.

The memory has the same contents as after the reference writer. The heap also keeps its free lists
in tables, so that a block is found, split, freed and merged in constant time.

The allocator of version 0 follows the document "Inspect VMO heap" of 2019, whose pseudocode does
not work as printed. The corrections are:

- A block's header has 8 bytes, not 16, and payloads begin at byte 8 of a block, not at 4 or 1.
- ``Buddy`` computes the exclusive or of an index and a number of bytes. Here both are indexes.
- ``RemoveFreeBlock`` never advances along the list, asks whether a block is free without its
  order, and is called by another name. Here a block knows its neighbours.
- ``Free`` merges with a free buddy of any order, even beyond the end, and swaps both before it
  unlinks the wrong one. Here a buddy is merged if it is free, of the same order and within the
  VMO, and the buddy leaves its list.
- ``GrowVmo`` counts down to an unsigned 0, which never ends, and has neither a maximum nor
  failure. Here the size doubles up to the maximum, where the allocation fails and is counted.
- ``Allocate`` accepts invalid orders, ignores failure to grow, and sets a type ALLOCATED that does
  not exist. Here a block is of an order, failure is returned, and the caller sets the type.
- ``Initialize`` uses 0 as both the end of a list and a block of it. Here the end is stored
  separately; in the memory it is 0, which is valid once the header has block 0.
- ``FreeExtents`` trusts the chain in the memory. Here a value knows its extents.
"""

from __future__ import annotations

from typing import Literal

from fx_inspect import format as wire
from fxframework.io.words import WORD
from fxframework.model.target import Memory

Growth = Literal["step", "double"]
"""How a heap grows: by a page (Rust), or to twice its size (C++, and "Inspect VMO heap")."""

NONE = -1
"""No block: the end of a free list, or the result of a failed allocation."""
_FREE = 0x80
"""Flag of a free block in the table of blocks; the lower bits are its order."""
_INSIDE = 0xFF
"""Entry in the table of blocks where no block begins."""
_HIGHEST = wire.MAX_BLOCK // wire.UNIT


def order_of(nbytes: int) -> int:
    """Return the order of the smallest block of at least ``nbytes``; over 7 if there is none."""
    return max(0, (nbytes - 1).bit_length() - 4)


class Heap:
    """Blocks of a memory, which grows from a page to ``max_size`` bytes (a multiple of the page).

    ``version`` is the version of the VMO: 0 has its own layout, 2 a header with the VMO's size. The
    header is block 0, allocated at once with generation 0. The magic is stored last: a memory with
    the magic holds a whole heap.

    Indexes count 16 bytes. ``growth`` selects how the heap grows; if the memory cannot grow (its
    ``grow`` raises), the heap is full at its size.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        version: int = 2,
        max_size: int = wire.MAX_VMO,
        growth: Growth = "step",
    ) -> None:
        self.memory = memory
        self.version = version
        self.max_size = max_size
        self.growth: Growth = growth
        self.size = 0
        """Current size in bytes."""
        self.allocated = 0
        """Number of blocks allocated so far, including freed ones."""
        self.freed = 0
        """Number of blocks freed."""
        self.failed = 0
        """Number of allocations without room."""
        self._load = memory.load_u64
        self._store = memory.store_u64
        head = wire.HEADS["v0" if version == 0 else "new"]
        self._type_at = head.type.low
        self._next_at = head.first.low
        self._blocks = bytearray()
        """For each 16 bytes, the order of the block that begins there."""
        self._heads = [NONE] * (wire.MAX_ORDER + 1)
        """First block of the free list of each order."""
        self._next: dict[int, int] = {}
        self._previous: dict[int, int] = {}
        """Neighbours of each free block in its list."""
        self._header_has_size = False
        if memory.size < wire.PAGE:
            memory.grow(wire.PAGE)
        self._store(0, 0)  # invalidates any earlier VMO in this memory
        self._extend(wire.PAGE)
        self._make_header()

    # --- blocks ---

    def take(self, order: int) -> int:
        """Allocate a block of an order without writing a header, which the caller does at once."""
        heads = self._heads
        found = order
        while heads[found] == NONE:
            found += 1
            if found > wire.MAX_ORDER:
                if not self._grow():
                    self.failed += 1
                    return NONE
                found = wire.MAX_ORDER
        index = heads[found]
        following = self._next.pop(index)
        heads[found] = following
        if following != NONE:
            self._previous[following] = NONE
        del self._previous[index]
        # The upper halves of the split blocks become free: lower orders had no free block.
        while found > order:
            found -= 1
            self._push(index + (1 << found), found)
        self._blocks[index] = order
        self.allocated += 1
        return index

    def free(self, index: int) -> None:
        """Free a block and merge it with its buddies.

        Raises ValueError for an index without an allocated block.
        """
        blocks = self._blocks
        if not 0 <= index < len(blocks) or blocks[index] >= _FREE:
            raise ValueError(f"no block was allocated at index {index}")
        order = blocks[index]
        first = True
        while order < wire.MAX_ORDER:
            buddy = index ^ (1 << order)
            if buddy >= len(blocks) or blocks[buddy] != _FREE | order:
                break
            if not first:
                # As in the reference, a merged half keeps its order in the memory.
                at = index * wire.UNIT
                self._store(at, self._load(at) & ~wire.ORDER.mask | order)
            first = False
            self._unlink(buddy, order)
            blocks[index | buddy] = _INSIDE
            index &= buddy
            order += 1
        self._push(index, order)
        self.freed += 1

    # --- helpers ---

    def _make_header(self) -> None:
        order = 1 if self.version == 2 else 0
        header_at = self.take(order) * wire.UNIT
        self._store(header_at + 8, 0)
        if order:
            self._header_has_size = True
            self._store(header_at + wire.SIZE_AT, self.size)
            self._store(header_at + wire.SIZE_AT + WORD, 0)
        magic = int.from_bytes(wire.MAGIC, "little")
        version = self.version << self._next_at
        word = order | wire.BlockType.HEADER << self._type_at | version
        self._store(header_at, word | wire.HEADER_MAGIC.put(magic))

    def _push(self, index: int, order: int) -> None:
        """Insert a free block at the head of its list."""
        head = self._heads[order]
        self._next[index] = head
        self._previous[index] = NONE
        if head != NONE:
            self._previous[head] = index
        self._heads[order] = index
        self._blocks[index] = _FREE | order
        self._store(index * wire.UNIT, order | max(head, 0) << self._next_at)

    def _unlink(self, index: int, order: int) -> None:
        """Remove a free block from its list."""
        following = self._next.pop(index)
        previous = self._previous.pop(index)
        if following != NONE:
            self._previous[following] = previous
        if previous == NONE:
            self._heads[order] = following
        else:
            self._next[previous] = following
            self._store(previous * wire.UNIT, order | max(following, 0) << self._next_at)

    def _grow(self) -> bool:
        """Add blocks of the highest order. Return False if the heap cannot grow."""
        size = self.size + wire.PAGE
        if self.growth == "double":
            size = min(2 * self.size, self.max_size)
        if not self.size < size <= self.max_size:
            return False
        if size > self.memory.size:
            try:
                self.memory.grow(size)
            except Exception:  # noqa: BLE001 (devices raise their own errors when full)
                return False
        self._extend(size)
        if self._header_has_size:
            self._store(wire.SIZE_AT, size)
        return True

    def _extend(self, size: int) -> None:
        """Link new blocks of the highest order, in ascending order, before the existing ones."""
        self._blocks.extend(bytes([_INSIDE]) * ((size - self.size) // wire.UNIT))
        for index in range(size // wire.UNIT - _HIGHEST, self.size // wire.UNIT - 1, -_HIGHEST):
            self._push(index, wire.MAX_ORDER)
        self.size = size
