"""The heap of a native program: best fit of free blocks, in multiples of 16 bytes."""

from __future__ import annotations

from typing import Any

import attrs

from fx_emulator.native.errors import NativeError
from fx_emulator.native.space import READ, WRITE

HEAP_AT = 0x4000_0000
HEAP_BYTES = 64 << 20
_LEAST = 16
"""Bytes of the smallest block, and the alignment of every block."""


@attrs.frozen
class HeapSnapshot:
    """A heap at a point to return to."""

    end: int
    sizes: dict[int, int]
    live: set[int]
    free: dict[int, list[int]]


class Heap:
    """The heap of malloc. Blocks are never split or merged; addresses follow from the calls."""

    def __init__(self, machine: Any) -> None:
        self._machine = machine
        self.region = machine.map_private("heap", HEAP_AT, HEAP_BYTES, READ | WRITE)
        self._end = HEAP_AT
        """Address after the last block."""
        self._sizes: dict[int, int] = {}
        """Size of each block, in use or free, by address."""
        self._live: set[int] = set()
        """Addresses of blocks in use."""
        self._free: dict[int, list[int]] = {}
        """Addresses of free blocks, by size; the last one is used first."""

    def allocate(self, size: int, align: int = 16) -> int:
        """Allocate at least ``size`` bytes. Return the address, or 0 if the heap is full."""
        size = max(_LEAST, -(-size // _LEAST) * _LEAST)
        free_blocks = self._free.get(size)
        if free_blocks and align <= _LEAST:
            address = free_blocks.pop()
        else:
            address = -(-self._end // align) * align
            if address + size > HEAP_AT + HEAP_BYTES:
                return 0
            self._end = address + size
            self._sizes[address] = size
        self._live.add(address)
        return address

    def release(self, address: int) -> None:
        """Free a block; 0 is ignored. Raises NativeError for any other address not in use."""
        if not address:
            return
        if address not in self._live:
            if address in self._sizes:
                raise NativeError(f"address {address:#x} is freed twice")
            raise NativeError(f"address {address:#x} is freed, but malloc did not give it")
        self._live.remove(address)
        self._free.setdefault(self._sizes[address], []).append(address)

    def size(self, address: int) -> int:
        """Return the size of a block in use. Raises NativeError for any other address."""
        if address not in self._live:
            raise NativeError(f"address {address:#x} is not a block in use")
        return self._sizes[address]

    @property
    def live(self) -> int:
        """Number of blocks in use."""
        return len(self._live)

    def snapshot(self) -> HeapSnapshot:
        """Return the state, for ``restore``."""
        free = {size: list(blocks) for size, blocks in self._free.items()}
        return HeapSnapshot(self._end, dict(self._sizes), set(self._live), free)

    def restore(self, snapshot: HeapSnapshot) -> None:
        """Restore a snapshot, which remains valid."""
        self._end = snapshot.end
        self._sizes = dict(snapshot.sizes)
        self._live = set(snapshot.live)
        self._free = {size: list(blocks) for size, blocks in snapshot.free.items()}
