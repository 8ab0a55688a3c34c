"""The heap of a native program: best fit of free blocks, in multiples of 16 bytes."""

from __future__ import annotations

from typing import Any

from fx_emulator.native.errors import NativeError
from fx_emulator.native.space import READ, WRITE

__all__ = ["Heap"]

HEAP_AT = 0x4000_0000
HEAP_BYTES = 64 << 20
_LEAST = 16


class Heap:
    """The heap of malloc. Blocks are never split or merged; addresses follow from the calls."""

    def __init__(self, machine: Any) -> None:
        self._machine = machine
        self.region = machine.map_private("heap", HEAP_AT, HEAP_BYTES, READ | WRITE)
        self._end = HEAP_AT
        self._sizes: dict[int, int] = {}
        self._live: set[int] = set()
        self._free: dict[int, list[int]] = {}

    def allocate(self, size: int, align: int = 16) -> int:
        """Allocate at least ``size`` bytes. Return the address, or 0 if the heap is full."""
        size = max(_LEAST, -(-size // 16) * 16)
        places = self._free.get(size)
        if places and align <= 16:
            at = places.pop()
        else:
            at = -(-self._end // align) * align
            if at + size > HEAP_AT + HEAP_BYTES:
                return 0
            self._end = at + size
            self._sizes[at] = size
        self._live.add(at)
        return at

    def release(self, at: int) -> None:
        """Free a block; 0 is ignored. Raises NativeError for any other address not in use."""
        if not at:
            return
        if at not in self._live:
            what = "freed twice" if at in self._sizes else "freed, but malloc did not give it"
            raise NativeError(f"address {at:#x} is {what}")
        self._live.remove(at)
        self._free.setdefault(self._sizes[at], []).append(at)

    def size(self, at: int) -> int:
        """Return the size of a block in use. Raises NativeError for any other address."""
        if at not in self._live:
            raise NativeError(f"address {at:#x} is not a block in use")
        return self._sizes[at]

    @property
    def live(self) -> int:
        """Number of blocks in use."""
        return len(self._live)

    def snapshot(self) -> Any:
        """Return the state, for ``restore``."""
        free = {size: list(places) for size, places in self._free.items()}
        return self._end, dict(self._sizes), set(self._live), free

    def restore(self, kept: Any) -> None:
        """Restore a snapshot, which remains valid."""
        self._end, sizes, live, free = kept
        self._sizes, self._live = dict(sizes), set(live)
        self._free = {size: list(places) for size, places in free.items()}
