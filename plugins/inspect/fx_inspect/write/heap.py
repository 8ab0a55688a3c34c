"""Heap: the buddy allocator of Inspect VMOs, which gives the same blocks as the reference.

The memory holds what the reference writer would leave there. The heap also keeps its free lists in
tables, so that a block is found, split, freed and merged in constant time.

The allocator of version 0 is that of the document "Inspect VMO heap" of 2019, whose pseudocode does
not work as printed. Here instead:

- A block's header has 8 bytes, not 16, and payloads begin at byte 8 of a block, not at 4 or 1.
- ``Buddy`` takes the exclusive or of an index and a number of bytes. Here both are indexes.
- ``RemoveFreeBlock`` never moves on along the list, asks whether a block is free without saying of
  which order, and is called by another name. Here a block knows its neighbours.
- ``Free`` merges with a free buddy of any order, also beyond the end, and swaps both before it
  unlinks the wrong one. Here a buddy is merged that is free, of the same order and within the
  VMO, and the buddy is what leaves its list.
- ``GrowVmo`` counts down to an unsigned 0, which never ends, and knows neither a maximum nor
  failure. Here the size doubles up to the maximum; at it the allocation fails, and is counted.
- ``Allocate`` takes orders that do not exist, does not see that growing failed, and leaves a type
  ALLOCATED that does not exist. Here sizes are refused, failure is given, the type is RESERVED.
- ``Initialize`` has a 0 that is the end of a list and a block of it. Here the end is kept apart; in
  the memory it is 0, which is right as soon as the header has block 0.
- ``FreeExtents`` trusts the chain in the memory. Here a value knows its extents.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from fx_inspect.layout import (
    MAGIC,
    MAX_BLOCK,
    MAX_ORDER,
    MAX_VMO,
    PAGE,
    SIZE_AT,
    UNIT,
    BlockType,
)
from fxframework.io.words import WORD
from fxframework.model.target import Memory

__all__ = ["Growth", "Heap", "order_of"]

Growth = Literal["step", "double"]
"""How a heap grows: by a page each time (Rust), or to twice its size (C++, and document 001)."""

NONE = -1
"""No block: the end of a free list, and what a failed allocation gives."""
_FREE = 0x80
"""In the table of blocks: free, with the order in the bits below."""
_INSIDE = 0xFF
"""Likewise: no block begins here."""
_HIGHEST = MAX_BLOCK // UNIT


def order_of(nbytes: int) -> int:
    """The order of the smallest block that has so many bytes; over 7 where there is none."""
    return max(0, (nbytes - 1).bit_length() - 4)


class Heap:
    """Blocks of a memory, from one page up to ``max_size`` bytes (a multiple of the page).

    ``version`` is that of the VMO: 0 has a layout of its own, 2 a header with the VMO's size. The
    header is block 0, allocated at once, its generation 0 (``header=False`` leaves it out). The
    magic is stored last: a memory with the magic holds a whole heap.

    Indexes count 16 bytes. ``growth`` says how it grows; a memory that does not (its ``grow``
    raises) is full at its size.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        version: int = 2,
        max_size: int = MAX_VMO,
        growth: Growth = "step",
        header: bool = True,
    ) -> None:
        self.memory = memory
        self.version = version
        self.max_size = max_size
        self.growth: Growth = growth
        self.size = 0
        """Bytes that it has now."""
        self.allocated = 0
        """Blocks given so far, those freed since included."""
        self.freed = 0
        """Blocks taken back."""
        self.failed = 0
        """Allocations for which there was no room."""
        self._load, self._store = memory.load_u64, memory.store_u64
        self._type_at, self._next_at = (4, 8) if version == 0 else (8, 16)
        self._blocks = bytearray()
        """Of each 16 bytes the order of the block that begins there."""
        self._heads = [NONE] * (MAX_ORDER + 1)
        self._next: dict[int, int] = {}
        self._before: dict[int, int] = {}
        self._sized = False
        if memory.size < PAGE:
            memory.grow(PAGE)
        self._store(0, 0)  # what was there before is not a VMO any more
        self._extend(PAGE)
        if header:
            self._make_header()

    # --- blocks ---

    def allocate(self, nbytes: int) -> int:
        """The index of a block of at least so many bytes, RESERVED; -1 where there is no room.

        What the block held before stays there. Raises ValueError for more than 2048 bytes.
        """
        order = order_of(nbytes)
        if nbytes < 0 or order > MAX_ORDER:
            raise ValueError(f"a block of {nbytes} bytes: it has 0 to {MAX_BLOCK}")
        index = self.take(order)
        if index != NONE:
            self._store(index << 4, order | BlockType.RESERVED << self._type_at)
        return index

    def take(self, order: int) -> int:
        """As ``allocate``, of an order and without a header: the caller writes one at once."""
        heads = self._heads
        found = order
        while heads[found] == NONE:
            found += 1
            if found > MAX_ORDER:
                if not self._grow():
                    self.failed += 1
                    return NONE
                found = MAX_ORDER
        index = heads[found]
        following = self._next.pop(index)
        heads[found] = following
        if following != NONE:
            self._before[following] = NONE
        del self._before[index]
        # The upper halves are all that is left of what was split: lower orders had no free block.
        while found > order:
            found -= 1
            self._push(index + (1 << found), found)
        self._blocks[index] = order
        self.allocated += 1
        return index

    def free(self, index: int) -> None:
        """Free a block, and merge it with its buddies.

        Raises ValueError for an index at which no block was allocated.
        """
        blocks = self._blocks
        if not 0 <= index < len(blocks) or blocks[index] >= _FREE:
            raise ValueError(f"no block was allocated at index {index}")
        order = blocks[index]
        first = True
        while order < MAX_ORDER:
            buddy = index ^ (1 << order)
            if buddy >= len(blocks) or blocks[buddy] != _FREE | order:
                break
            if not first:
                # As the reference does: the half that is merged keeps its order in the memory.
                at = index << 4
                self._store(at, self._load(at) & ~0xF | order)
            first = False
            self._unlink(buddy, order)
            blocks[index | buddy] = _INSIDE
            index &= buddy
            order += 1
        self._push(index, order)
        self.freed += 1

    def order(self, index: int) -> int:
        """The order of the block that was allocated at an index."""
        return self._blocks[index]

    # --- what it holds ---

    def heads(self) -> list[int]:
        """Of each order the index of the first free block; 0 where there is none."""
        return [max(0, head) for head in self._heads]

    def free_list(self, order: int) -> Iterator[int]:
        """The free blocks of an order, in the order in which they are given next."""
        index = self._heads[order]
        while index != NONE:
            yield index
            index = self._next[index]

    def blocks(self) -> Iterator[tuple[int, int, bool]]:
        """Each block: its index, its order, and whether it is free."""
        index = 0
        while index < len(self._blocks):
            entry = self._blocks[index]
            yield index, entry & ~_FREE, entry >= _FREE
            index += 1 << (entry & ~_FREE)

    @property
    def free_bytes(self) -> int:
        """Bytes in free blocks, of the size that it has now."""
        return sum(UNIT << order for _, order, free in self.blocks() if free)

    # --- within ---

    def _make_header(self) -> None:
        order = 1 if self.version == 2 else 0
        at = self.take(order) << 4
        self._store(at + 8, 0)
        if order:
            self._sized = True
            self._store(at + SIZE_AT, self.size)
            self._store(at + SIZE_AT + WORD, 0)
        magic = int.from_bytes(MAGIC, "little")
        version = self.version << self._next_at
        self._store(at, order | BlockType.HEADER << self._type_at | version | magic << 32)

    def _push(self, index: int, order: int) -> None:
        """Put a free block at the head of its list."""
        head = self._heads[order]
        self._next[index] = head
        self._before[index] = NONE
        if head != NONE:
            self._before[head] = index
        self._heads[order] = index
        self._blocks[index] = _FREE | order
        self._store(index << 4, order | (head << self._next_at if head > 0 else 0))

    def _unlink(self, index: int, order: int) -> None:
        """Take a free block out of its list."""
        following = self._next.pop(index)
        before = self._before.pop(index)
        if following != NONE:
            self._before[following] = before
        if before == NONE:
            self._heads[order] = following
        else:
            self._next[before] = following
            link = following << self._next_at if following > 0 else 0
            self._store(before << 4, order | link)

    def _grow(self) -> bool:
        """Make room for the largest blocks; False where there is none."""
        size = self.size + PAGE
        if self.growth == "double":
            size = min(2 * self.size, self.max_size)
        if not self.size < size <= self.max_size:
            return False
        if size > self.memory.size:
            try:
                self.memory.grow(size)
            except Exception:  # noqa: BLE001 (a device says in its own way that it is full)
                return False
        self._extend(size)
        if self._sized:
            self._store(SIZE_AT, size)
        return True

    def _extend(self, size: int) -> None:
        """Link new blocks of the highest order, in ascending order, before those that are there."""
        self._blocks.extend(bytes([_INSIDE]) * ((size - self.size) >> 4))
        for index in range((size >> 4) - _HIGHEST, (self.size >> 4) - 1, -_HIGHEST):
            self._push(index, MAX_ORDER)
        self.size = size
