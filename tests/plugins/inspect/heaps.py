"""What a heap holds, and allocation by size as the reference's tests do it."""

from __future__ import annotations

from collections.abc import Iterator

from fx_inspect.format import BlockType
from fx_inspect.write.heap import Heap, order_of

UNIT = 16
FREE = 0x80
"""Flag of a free block in the table of blocks."""
NONE = -1


class Headless(Heap):
    """A heap of version 2 without a header."""

    def _make_header(self) -> None:
        """Leave block 0 free."""


def allocate(heap: Heap, nbytes: int) -> int:
    """Allocate a RESERVED block of at least so many bytes; -1 without room."""
    order = order_of(nbytes)
    index = heap.take(order)
    if index != NONE:
        heap.memory.store_u64(index * UNIT, order | BlockType.RESERVED << heap._type_at)
    return index


def order_at(heap: Heap, index: int) -> int:
    """The order of the block allocated at an index."""
    return heap._blocks[index]


def heads(heap: Heap) -> list[int]:
    """The first free block of each order; 0 if there is none."""
    return [max(0, head) for head in heap._heads]


def free_list(heap: Heap, order: int) -> Iterator[int]:
    """The free blocks of an order, in the order of allocation."""
    index = heap._heads[order]
    while index != NONE:
        yield index
        index = heap._next[index]


def heap_blocks(heap: Heap) -> Iterator[tuple[int, int, bool]]:
    """Index, order and freeness of each block."""
    index = 0
    while index < len(heap._blocks):
        entry = heap._blocks[index]
        yield index, entry & ~FREE, entry >= FREE
        index += 1 << (entry & ~FREE)


def free_bytes(heap: Heap) -> int:
    """Bytes in free blocks."""
    return sum(UNIT << order for _, order, free in heap_blocks(heap) if free)
