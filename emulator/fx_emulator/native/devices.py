"""Device memory in a program's address space: its stores are counted, logged and faulted."""

from __future__ import annotations

from typing import Any

from fx_emulator.errors import Crash, RightsError
from fx_emulator.memory import Memory
from fx_emulator.native.decode import LINE
from fx_emulator.native.errors import NativeError
from fx_emulator.native.space import READ, WRITE, Region, round_up
from fx_emulator.vmo import Mapping, Rights, Vmo

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
        self.region: Region = machine.space.map_host(
            f"memory of {size} bytes",
            machine.space.place(DEVICES_AT, size, _ROOM) if start is None else start,
            self._bytes,
            round_up(size),
            READ | WRITE if _writable(device) else READ,
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
        at = address - self.region.start
        if at + size > self.region.limit:
            raise NativeError(
                f"store of {size} bytes at byte {at} of a memory of {self.region.limit} bytes"
            )
        machine = self.machine
        if address in machine.asked:
            return
        if machine.journal is not None:
            # Journaled first: after an error below later hooks do not run, but the store happens.
            region = self.region
            machine.journal.append((region, at, bytes(region.view[at : at + size])))
        if machine.order is not None and not machine.order.is_direct():
            return
        value &= (1 << 8 * size) - 1
        pc = machine.pc()
        if size <= LINE - address % LINE:
            self.land(at, size, value, pc)
        else:
            # Two stores; the engine makes the first one again with the second.
            data, first = value.to_bytes(size, "little"), LINE - address % LINE
            self.land(at, first, int.from_bytes(data[:first], "little"), pc)
            self.region.view[at : at + first] = data[:first]
            self.land(at + first, size - first, int.from_bytes(data[first:], "little"), pc)
        if machine.rewrites:
            # The engine drops the store in which it is stopped; the machine repeats it.
            machine.asked.add(address)
            machine.engine.stop()

    def land(self, at: int, size: int, value: int, pc: int) -> None:
        """Handle a store that reaches the memory, from an instruction or a store buffer.

        Called before the bytes change. Raises Crash if a fault stops the program.
        """
        machine, memory = self.machine, self.memory
        if machine.sink is not None:
            machine.sink(self, at, size, value, pc)
        place = self.base + at
        if self._storage is not None and self._storage.state[place >> 12] != _OWN:
            self._storage.claim(place & -_WORD, _WORD)
        if memory.faults:
            self._ask(place, size, value)
            return
        memory.stores += 1
        if memory.log is not None:
            for offset, word in self._words(place, size, value):
                memory.log.stored(offset, word)

    def _words(self, place: int, size: int, value: int) -> list[tuple[int, int]]:
        """Return offset in the memory and new value of each word that a store touches."""
        first = place & -_WORD
        last = (place + size - 1) & -_WORD
        data = bytearray(self.memory.read(first, last + _WORD - first))
        data[place - first : place - first + size] = value.to_bytes(size, "little")
        return [
            (at, int.from_bytes(data[at - first : at - first + _WORD], "little"))
            for at in range(first, last + 1, _WORD)
        ]

    def _ask(self, place: int, size: int, value: int) -> None:
        """Pass a store through the memory's faults; words that they change are rewritten later."""
        memory = self.memory
        for offset, wanted in self._words(place, size, value):
            old = memory.load_u64(offset)
            stored = wanted
            try:
                for fault in memory.faults:
                    stored = fault(offset, stored, memory.stores)
            except Crash as crash:
                mask = 0
                if crash is not memory.crashed:
                    mask = (1 << 8 * crash.landed) - 1
                    memory.halt(crash)
                self.machine.rewrites.append((self, offset, old & ~mask | wanted & mask))
                raise
            memory.stores += 1
            if memory.log is not None:
                memory.log.stored(offset, stored)
            if stored != wanted:
                self.machine.rewrites.append((self, offset, stored))

    def rewrite(self, offset: int, word: int) -> None:
        """Overwrite a word without calling hooks; ``offset`` is in the memory."""
        at = offset - self.base
        self.region.view[at : at + _WORD] = word.to_bytes(_WORD, "little")


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
        return device._vmo.storage.memory, device._at, device.size  # noqa: SLF001
    raise NativeError(f"{device!r} cannot be mapped; give a Memory or a Vmo")


def _writable(device: Any) -> bool:
    if isinstance(device, Vmo):
        return bool(device.rights & Rights.WRITE)
    return bool(getattr(device, "_writable", True))
