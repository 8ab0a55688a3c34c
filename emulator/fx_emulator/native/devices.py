"""Device memory in a program's address space: its stores are counted, logged and faulted."""

from __future__ import annotations

from typing import Any

from fx_emulator.errors import Crash, RightsError
from fx_emulator.memory import Memory
from fx_emulator.native.decode import LINE
from fx_emulator.native.errors import NativeError
from fx_emulator.native.space import READ, WRITE, Region, round_up
from fx_emulator.vmo import PAGE, Mapping, Rights, Vmo

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
        stores = machine.stores
        if address in stores.counted:
            return
        if stores.journal is not None:
            # Journaled first: after an error below later hooks do not run, but the store happens.
            region = self.region
            stores.journal.append((region, offset, bytes(region.view[offset : offset + size])))
        if machine.order is not None and not machine.order.is_direct():
            return
        value &= (1 << 8 * size) - 1
        pc = machine.pc()
        to_line_end = LINE - address % LINE
        if size <= to_line_end:
            self.land(offset, size, value, pc)
        else:
            # Two stores; the engine makes the low one again with the high one.
            value_bytes = value.to_bytes(size, "little")
            low_bytes, high_bytes = value_bytes[:to_line_end], value_bytes[to_line_end:]
            self.land(offset, len(low_bytes), int.from_bytes(low_bytes, "little"), pc)
            self.region.view[offset : offset + len(low_bytes)] = low_bytes
            self.land(
                offset + len(low_bytes), len(high_bytes), int.from_bytes(high_bytes, "little"), pc
            )
        if stores.rewrites:
            # The engine drops the store in which it is stopped; the machine repeats it.
            stores.counted.add(address)
            machine.engine.stop()

    def land(self, offset: int, size: int, value: int, pc: int) -> None:
        """Handle a store that reaches the memory, from an instruction or a store buffer.

        Called before the bytes change. Raises Crash if a fault stops the program.
        """
        sink = self.machine.listeners.sink
        if sink is not None:
            sink(self, offset, size, value, pc)
        memory = self.memory
        memory_offset = self.base + offset
        if self._storage is not None and self._storage.state[memory_offset // PAGE] != _OWN:
            self._storage.claim(memory_offset & -_WORD, _WORD)
        if memory.faults:
            self._pass_faults(memory_offset, size, value)
            return
        memory.stores += 1
        if memory.log is not None:
            for word_offset, word in self._words(memory_offset, size, value):
                memory.log.stored(word_offset, word)

    def _words(self, memory_offset: int, size: int, value: int) -> list[tuple[int, int]]:
        """Return offset in the memory and new value of each word that a store touches."""
        first_offset = memory_offset & -_WORD
        end_offset = (memory_offset + size + _WORD - 1) & -_WORD
        word_bytes = bytearray(self.memory.read(first_offset, end_offset - first_offset))
        word_bytes[memory_offset - first_offset : memory_offset - first_offset + size] = (
            value.to_bytes(size, "little")
        )
        return [
            (
                word_offset,
                int.from_bytes(
                    word_bytes[word_offset - first_offset : word_offset - first_offset + _WORD],
                    "little",
                ),
            )
            for word_offset in range(first_offset, end_offset, _WORD)
        ]

    def _pass_faults(self, memory_offset: int, size: int, value: int) -> None:
        """Pass a store through the memory's faults; words that they change are rewritten later."""
        memory = self.memory
        for word_offset, wanted_word in self._words(memory_offset, size, value):
            old_word = memory.load_u64(word_offset)
            stored_word = wanted_word
            try:
                for fault in memory.faults:
                    stored_word = fault(word_offset, stored_word, memory.stores)
            except Crash as crash:
                # Of the store in which it crashes the low bytes land, later on nothing at all.
                landed_bits = 0
                if crash is not memory.crashed:
                    landed_bits = (1 << 8 * crash.landed) - 1
                    memory.halt(crash)
                torn_word = old_word & ~landed_bits | wanted_word & landed_bits
                self.machine.stores.rewrites.append((self, word_offset, torn_word))
                raise
            memory.stores += 1
            if memory.log is not None:
                memory.log.stored(word_offset, stored_word)
            if stored_word != wanted_word:
                self.machine.stores.rewrites.append((self, word_offset, stored_word))

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
