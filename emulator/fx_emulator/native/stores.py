"""Stores that the target makes for a native program, and what is to be undone or overwritten."""

from __future__ import annotations

from typing import Any

from fx_emulator.native.errors import NativeError
from fx_emulator.native.space import Region

_WORD = 8


class Stores:
    """The stores of a machine that its engine does not make by itself."""

    def __init__(self, machine: Any) -> None:
        self._machine = machine
        self.journal: list[tuple[Region, int, bytes]] | None = None
        """Overwritten bytes, for undo; None while no exploration runs."""
        self.rewrites: list[tuple[Any, int, int]] = []
        """Words to overwrite after the current store: the mapped device, offset, word."""
        self.counted: set[int] = set()
        """Addresses of the current instruction's stores that are counted already, or later."""

    def remember(self, address: int, size: int) -> None:
        """Journal bytes that are about to be overwritten."""
        if self.journal is None:
            return
        space = self._machine.space
        region = space.find(address)
        assert region is not None  # noqa: S101 (they are in one)
        self.journal.append((region, address - region.start, space.read(address, size)))

    def undo(self, length: int) -> None:
        """Take back all but the first ``length`` stores of the journal, the newest first."""
        journal = self.journal
        assert journal is not None  # noqa: S101 (an exploration keeps one)
        while len(journal) > length:
            region, offset, old_bytes = journal.pop()
            region.view[offset : offset + len(old_bytes)] = old_bytes

    def apply_rewrites(self) -> None:
        """Overwrite the words that faults changed in the current store."""
        while self.rewrites:
            device, offset, word = self.rewrites.pop()
            device.rewrite(offset, word)

    def store(self, address: int, data: bytes) -> None:
        """Store for the program, in stores of up to 8 bytes that hooks see as its own."""
        machine = self._machine
        done = 0
        while done < len(data):
            part_address = address + done
            # Up to the next multiple of 8, so that no store crosses a word.
            part_size = min(_WORD - part_address % _WORD, len(data) - done)
            self.put(part_address, data[done : done + part_size], machine.pc())
            if machine.listeners.on_store is not None:
                machine.listeners.on_store(part_address, part_size)
            done += part_size

    def put(self, address: int, data: bytes, pc: int) -> None:
        """Make one store of up to 8 bytes for the instruction or function at ``pc``."""
        space = self._machine.space
        size = len(data)
        region = space.find(address)
        if region is None or address - region.start + size > region.limit:
            raise NativeError(f"store of {size} bytes at {address:#x}: nothing is mapped there")
        self.remember(address, size)
        try:
            if region.shared is not None:
                value = int.from_bytes(data, "little")
                region.shared.land(address - region.start, size, value, pc)
            space.write(address, data)
        finally:
            self.apply_rewrites()
