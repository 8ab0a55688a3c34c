"""Device memory in a program's address space: its stores are counted, logged and faulted."""

from __future__ import annotations

from typing import Any

from fx_emulator.errors import Crash, RightsError
from fx_emulator.memory import Memory
from fx_emulator.native.decode import LINE
from fx_emulator.native.errors import NativeError
from fx_emulator.native.space import READ, WRITE, Region, round_up
from fx_emulator.vmo import PAGE, Mapping, Rights, Vmo

__all__ = ["DEVICES_AT", "MappedDevice"]

DEVICES_AT = 0x1_0000_0000
_ROOM = 1 << 32
"""Address space kept free after a device, so that it can grow in place."""
_WORD = 8
_OWN = 1
"""State of a VMO's page that is not shared with a snapshot."""


class MappedDevice:
    """A Memory, Vmo or Mapping at a guest address.

    The device must not change its size while it is mapped; ``stale`` tells whether it has.
    """

    def __init__(self, machine: Any, device: Any, start: int | None = None) -> None:
        self.machine = machine
        self.device = device
        self.memory, self.base, size = _host_memory(device)
        self._storage = getattr(getattr(device, "_vmo", None), "storage", None)
        self._bytes = self.memory._region  # noqa: SLF001 (modules of one emulator)
        if not size:
            raise NativeError(f"{device!r} has no bytes to map; grow it first")
        if start is None:
            start = machine.space.place(DEVICES_AT, size, _ROOM)
        permissions = READ
        if _writable(device):
            permissions |= WRITE
        self.region: Region = machine.space.map_host(
            f"memory of {size} bytes",
            start,
            self._bytes,
            round_up(size),
            permissions,
            limit=size,
            offset=self.base,
            shared=self,
        )
        self._hook = machine.engine.on_access(self._store, self.region.start, self.region.end - 1)
        machine.engine.forget_code()

    @property
    def stale(self) -> bool:
        """Whether the memory was replaced since it was mapped, by a change of size."""
        return self.memory._region is not self._bytes  # noqa: SLF001

    def unmap(self) -> None:
        """Unmap the device from the address space."""
        self.machine.engine.unhook(self._hook)
        self.machine.space.unmap(self.region)
        self._bytes = bytearray()

    def image(self) -> bytes:
        """Return the device's bytes, as other programs see them."""
        return bytes(self.region.view)

    # --- stores ---

    def _store(self, _kind: int, address: int, size: int, value: int) -> None:
        """Handle a store of the program, before the bytes change."""
        offset = address - self.region.start
        if offset + size > self.region.limit:
            raise NativeError(
                f"store of {size} bytes at byte {offset} of a memory of {self.region.limit} bytes"
            )
        machine = self.machine
        if address in machine.counted_stores:
            return
        if machine.journal is not None:
            # Journaled first: after an error below later hooks do not run, but the store happens.
            region = self.region
            machine.journal.append((region, offset, bytes(region.view[offset : offset + size])))
        if machine.order is not None and not machine.order.is_direct():
            return
        value &= (1 << 8 * size) - 1
        pc = machine.pc()
        to_line_end = LINE - address % LINE
        if size <= to_line_end:
            self.land(offset, size, value, pc)
        else:
            # Two stores; the engine makes the low one again with the high one.
            data = value.to_bytes(size, "little")
            low, high = data[:to_line_end], data[to_line_end:]
            self.land(offset, len(low), int.from_bytes(low, "little"), pc)
            self.region.view[offset : offset + len(low)] = low
            self.land(offset + len(low), len(high), int.from_bytes(high, "little"), pc)
        if machine.rewrites:
            # The engine drops the store in which it is stopped; the machine repeats it.
            machine.counted_stores.add(address)
            machine.engine.stop()

    def land(self, offset: int, size: int, value: int, pc: int) -> None:
        """Handle a store that reaches the memory, from an instruction or a store buffer.

        Called before the bytes change. Raises Crash if a fault stops the program.
        """
        sink = self.machine.listeners.sink
        if sink is not None:
            sink(self, offset, size, value, pc)
        memory = self.memory
        place = self.base + offset
        if self._storage is not None and self._storage.state[place // PAGE] != _OWN:
            self._storage.claim(place & -_WORD, _WORD)
        if memory.faults:
            self._pass_faults(place, size, value)
            return
        memory.stores += 1
        if memory.log is not None:
            for word_offset, word in self._words(place, size, value):
                memory.log.stored(word_offset, word)

    def _words(self, place: int, size: int, value: int) -> list[tuple[int, int]]:
        """Return offset in the memory and new value of each word that a store touches."""
        start = place & -_WORD
        end = (place + size + _WORD - 1) & -_WORD
        data = bytearray(self.memory.read(start, end - start))
        data[place - start : place - start + size] = value.to_bytes(size, "little")
        return [
            (word, int.from_bytes(data[word - start : word - start + _WORD], "little"))
            for word in range(start, end, _WORD)
        ]

    def _pass_faults(self, place: int, size: int, value: int) -> None:
        """Pass a store through the memory's faults; words that they change are rewritten later."""
        memory = self.memory
        for offset, wanted in self._words(place, size, value):
            old = memory.load_u64(offset)
            stored = wanted
            try:
                for fault in memory.faults:
                    stored = fault(offset, stored, memory.stores)
            except Crash as crash:
                # Of the store in which it crashes the low bytes land, later on nothing at all.
                landed_bits = 0
                if crash is not memory.crashed:
                    landed_bits = (1 << 8 * crash.landed) - 1
                    memory.halt(crash)
                torn = old & ~landed_bits | wanted & landed_bits
                self.machine.rewrites.append((self, offset, torn))
                raise
            memory.stores += 1
            if memory.log is not None:
                memory.log.stored(offset, stored)
            if stored != wanted:
                self.machine.rewrites.append((self, offset, stored))

    def rewrite(self, offset: int, word: int) -> None:
        """Overwrite a word without calling hooks; ``offset`` is in the memory."""
        within = offset - self.base
        self.region.view[within : within + _WORD] = word.to_bytes(_WORD, "little")


def _host_memory(device: Any) -> tuple[Memory, int, int]:
    """Return the memory of a device, the device's first byte in it, and its size."""
    if isinstance(device, Memory):
        return device, 0, device.size
    if isinstance(device, Vmo):
        missing = (Rights.MAP | Rights.READ) & ~device.rights
        if missing:
            raise RightsError(f"{device!r}: mapping requires {missing.name}")
        vmo = device._vmo  # noqa: SLF001
        return device.memory, vmo.base, vmo.size
    if isinstance(device, Mapping):
        return device._vmo.storage.memory, device._start, device.size  # noqa: SLF001
    raise NativeError(f"{device!r} cannot be mapped; give a Memory or a Vmo")


def _writable(device: Any) -> bool:
    if isinstance(device, Vmo):
        return bool(device.rights & Rights.WRITE)
    return bool(getattr(device, "_writable", True))
