"""The heap: the reference's blocks in its order, whatever is allocated and freed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fx_inspect.format import Block, BlockType
from fx_inspect.read.decoder import RecordDecoder
from fx_inspect.write.heap import Growth, Heap, order_of
from fx_inspect.write.writer import Inspector
from fxframework.io.memory import BytesMemory
from fxframework.model.target import Memory

from ...cases import cases
from .heaps import Headless, allocate, free_bytes, free_list, heads, heap_blocks, order_at

VECTORS = Path(__file__).parents[2] / "conformance" / "inspect" / "heap_sequences.json"
SEQUENCES = {each["name"]: each for each in json.loads(VECTORS.read_text())}


def blocks(memory: Memory) -> list[tuple[int, int, str]]:
    """Index, order and type of each block in a memory."""
    found = []
    for record in RecordDecoder().records(memory.read(0, memory.size)):
        assert isinstance(record, Block)
        found.append((record.index, record.order, record.type))
    return found


class PlainHeap:
    """The reference's algorithm as it is described (notes §2), with all that it knows in memory."""

    def __init__(self, memory: BytesMemory, limit: int, *, double: bool = False) -> None:
        self.memory = memory
        self.limit = limit
        self.double = double
        self.size = 0
        self.heads = [0] * 8
        self.failed = 0
        self.grow(4096)
        header = self.allocate(32)
        memory.store_u64(16 * header, 1 | 2 << 8 | 2 << 16 | 0x50534E49 << 32)
        memory.store_u64(16, self.size)

    def word(self, index: int) -> int:
        return self.memory.load_u64(16 * index)

    def put(self, index: int, order: int, following: int) -> None:
        self.memory.store_u64(16 * index, order | following << 16)

    def is_free(self, index: int, order: int) -> bool:
        return 16 * index < self.size and self.word(index) & 0xFF0F == order

    def grow(self, size: int) -> bool:
        if size > self.limit:
            return False
        self.memory.grow(size)
        following = self.heads[7]
        for index in range(size // 16 - 128, self.size // 16 - 1, -128):
            self.put(index, 7, following)
            following = index
        self.heads[7] = following
        if self.size:
            self.memory.store_u64(16, size)
        self.size = size
        return True

    def unlink(self, index: int) -> None:
        order, following = self.word(index) & 0xF, self.word(index) >> 16 & 0xFFFFFF
        if self.heads[order] == index:
            self.heads[order] = following
            return
        at = self.heads[order]
        while self.is_free(at, order):
            ahead = self.word(at) >> 16 & 0xFFFFFF
            if ahead == index:
                self.put(at, order, following)
                return
            at = ahead
        raise AssertionError(f"{index} is in no list")

    def allocate(self, nbytes: int) -> int:
        wanted = next(order for order in range(8) if 16 << order >= nbytes)
        found = [order for order in range(wanted, 8) if self.is_free(self.heads[order], order)]
        if not found:
            bigger = min(2 * self.size, self.limit) if self.double else self.size + 4096
            if bigger == self.size or not self.grow(bigger):
                self.failed += 1
                return -1
        index = self.heads[found[0] if found else 7]
        while self.word(index) & 0xF > wanted:
            self.unlink(index)
            order = (self.word(index) & 0xF) - 1
            half = index ^ 1 << order
            self.put(index, order, half)
            self.put(half, order, self.heads[order])
            self.heads[order] = index
        self.unlink(index)
        self.memory.store_u64(16 * index, wanted | 1 << 8)
        return index

    def free(self, index: int) -> None:
        order = self.word(index) & 0xF
        while order < 7 and self.is_free(index ^ 1 << order, order):
            half = index ^ 1 << order
            self.unlink(half)
            index = min(index, half)
            order += 1
            self.memory.store_u64(16 * index, self.word(index) & ~0xF | order)
        self.put(index, order, self.heads[order])
        self.heads[order] = index


# --- Against the reference -----------------------------------------------------------------------


def test_a_new_heap_is_that_of_the_vector() -> None:
    vector = SEQUENCES["new_heap_4096"]
    memory = BytesMemory(4096)
    heap = Heap(memory)
    assert [list(each) for each in blocks(memory)] == vector["blocks"]
    assert heads(heap) == vector["free_heads"]
    assert memory.read(0, 32) == bytes.fromhex("01020200494e5350" + "00" * 9 + "1000" + "00" * 13)


def test_the_sequence_of_the_reference() -> None:
    # allocate_and_free of the reference's heap tests, which has no header.
    memory = BytesMemory(4096)
    heap = Headless(memory)
    assert [allocate(heap, 16) for _ in range(6)] == [0, 1, 2, 3, 4, 5]
    for index in (2, 4, 0):
        heap.free(index)
    assert [allocate(heap, 16) for _ in range(3)] == [0, 4, 2]
    for index in (4, 2, 3, 5):
        heap.free(index)
    free = [(1 << order, order, "FREE") for order in range(1, 8)]
    assert blocks(memory) == [(0, 0, "RESERVED"), (1, 0, "RESERVED"), *free]
    heap.free(0)
    assert allocate(heap, 2048) == 128
    heap.free(1)
    assert allocate(heap, 2048) == 0
    assert blocks(memory) == [(0, 7, "RESERVED"), (128, 7, "RESERVED")]
    heap.free(0)
    heap.free(128)
    assert blocks(memory) == [(0, 7, "FREE"), (128, 7, "FREE")]
    assert (heap.allocated, heap.freed, heap.failed) == (11, 11, 0)


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2048)), max_size=150),
    st.sampled_from([4096, 8192, 12288, 65536]),
    st.booleans(),
)
def test_every_byte_is_that_of_the_plain_algorithm(
    steps: list[tuple[int, int]], limit: int, double: bool
) -> None:
    memory, plain_memory = BytesMemory(0), BytesMemory(0)
    growth: Growth = "double" if double else "step"
    heap = Heap(memory, max_size=limit, growth=growth)
    plain = PlainHeap(plain_memory, limit, double=double)
    taken: list[int] = []
    for what, number in steps:
        if what == 0 and taken:
            index = taken.pop(number % len(taken))
            heap.free(index)
            plain.free(index)
        else:
            # Small ones mostly, so that there are many.
            nbytes = number if what == 1 else number % 70
            index = allocate(heap, nbytes)
            assert index == plain.allocate(nbytes)
            if index != -1:
                taken.append(index)
                memory.store_u64(16 * index + 8, number)
                plain_memory.store_u64(16 * index + 8, number)
    size = memory.size
    assert size == plain_memory.size
    assert memory.read(0, size) == plain_memory.read(0, size)
    assert heads(heap) == [
        head if plain.is_free(head, order) else 0 for order, head in enumerate(plain.heads)
    ]
    assert heap.failed == plain.failed
    assert [(index, order) for index, order, _ in heap_blocks(heap)] == [
        each[:2] for each in blocks(memory)
    ]
    for index in taken:
        heap.free(index)
    assert sorted(free_list(heap, 7)) == [128 * number for number in range(1, size // 2048)]
    assert [list(free_list(heap, order)) for order in range(7)] == [
        [],
        [2],
        [4],
        [8],
        [16],
        [32],
        [64],
    ]


@cases(("order", "slots"), SEQUENCES["array_capacity_numeric_by_order"]["cases"].items())
def test_the_capacity_of_arrays_of_numbers(order: str, slots: int) -> None:
    inspector = Inspector()
    array = inspector.root.create_int_array("a", slots)
    heap = inspector._state.heap
    assert array.block is not None
    assert order_at(heap, array.block) == int(order)
    if slots < 254:
        more = inspector.root.create_int_array("b", slots + 1)
        assert more.block is not None
        assert order_at(heap, more.block) == int(order) + 1


@cases(("order", "slots"), SEQUENCES["array_capacity_string_by_order"]["cases"].items())
def test_the_capacity_of_arrays_of_strings(order: str, slots: int) -> None:
    inspector = Inspector()
    array = inspector.root.create_string_array("a", min(slots, 255))
    assert array.block is not None
    assert order_at(inspector._state.heap, array.block) == min(int(order), 7)


def test_nodes_in_a_page() -> None:
    # What the reference's tests fit into 4096 bytes.
    inspector = Inspector(max_size=4096)
    made = [inspector.root.create_child(f"child-{number}") for number in range(200)]
    assert sum(each.exists for each in made) == 84


# --- Growing -------------------------------------------------------------------------------------


def test_it_grows_page_by_page_up_to_its_maximum() -> None:
    memory = BytesMemory(0)
    heap = Heap(memory, max_size=12288)
    sizes = []
    while allocate(heap, 2048) != -1:
        sizes.append((heap.size, memory.size, memory.load_u64(16)))
    assert sizes == [(4096,) * 3, (8192,) * 3, (8192,) * 3, (12288,) * 3, (12288,) * 3]
    assert heap.failed == 1
    assert allocate(heap, 16) == 2


def test_it_doubles_up_to_its_maximum() -> None:
    heap = Heap(BytesMemory(0), max_size=12288, growth="double")
    sizes = []
    while allocate(heap, 2048) != -1:
        sizes.append(heap.size)
    assert sizes == [4096, 8192, 8192, 12288, 12288]


def test_new_blocks_are_given_in_ascending_order_before_those_that_were_there() -> None:
    heap = Heap(BytesMemory(0), max_size=1 << 20, growth="double")
    allocate(heap, 2048)
    allocate(heap, 2048)
    assert list(free_list(heap, 7)) == [384]
    heap.free(128)
    assert list(free_list(heap, 7)) == [128, 384]


class Fixed(BytesMemory):
    """A memory that does not grow, as many devices'."""

    def grow(self, size: int) -> None:
        raise PermissionError(f"{size} bytes")


def test_a_memory_that_does_not_grow_is_full_at_its_size() -> None:
    heap = Heap(Fixed(4096), max_size=1 << 20)
    assert allocate(heap, 2048) == 128
    assert allocate(heap, 2048) == -1
    assert heap.size == 4096
    assert heap.failed == 1


def test_a_memory_that_is_larger_is_used_up_to_the_maximum_only() -> None:
    memory = BytesMemory(1 << 16)
    heap = Heap(memory, max_size=8192)
    while allocate(heap, 2048) != -1:
        pass
    assert heap.size == 8192
    assert memory.read(8192, (1 << 16) - 8192).strip(b"\0") == b""


def test_version_0_has_its_own_layout_and_a_small_header() -> None:
    memory = BytesMemory(0)
    heap = Heap(memory, version=0, growth="double")
    assert memory.read(0, 16) == bytes.fromhex("20000000494e53500000000000000000")
    assert heads(heap) == [1, 2, 4, 8, 16, 32, 64, 128]
    first = allocate(heap, 16)
    assert blocks(memory)[:2] == [(0, 0, "HEADER"), (1, 0, "RESERVED")]
    second = allocate(heap, 16)
    heap.free(first)
    # The index of the next free block begins at bit 8.
    assert memory.load_u64(16) == 3 << 8
    heap.free(second)
    assert free_bytes(heap) == 4096 - 16


# --- What is refused -----------------------------------------------------------------------------


def test_it_refuses_what_makes_no_sense() -> None:
    heap = Heap(BytesMemory(0))
    index = allocate(heap, 33)
    assert order_at(heap, index) == 2
    heap.free(index)
    for wrong in (index, index + 1, -1, 1 << 20):
        with pytest.raises(ValueError, match="no block was allocated"):
            heap.free(wrong)


@cases(
    ("nbytes", "order"), [(0, 0), (1, 0), (16, 0), (17, 1), (32, 1), (33, 2), (2048, 7), (2049, 8)]
)
def test_orders(nbytes: int, order: int) -> None:
    assert order_of(nbytes) == order


def test_the_types_of_what_it_leaves() -> None:
    memory = BytesMemory(0)
    heap = Heap(memory)
    taken = [allocate(heap, 16) for _ in range(3)]
    assert {kind for *_, kind in blocks(memory)} == {"HEADER", "RESERVED", "FREE"}
    assert memory.load_u64(16 * taken[0]) == BlockType.RESERVED << 8
