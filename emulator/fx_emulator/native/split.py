"""Instructions in parts: other threads can run between two accesses of one instruction.

``decode`` tells which accesses are atomic. The engine runs an instruction as a whole. Here each of
its loads but the last is made beforehand, and shown to the instruction when it runs; its stores are
taken back and made one by one afterwards, or enter the store buffer.
"""

from __future__ import annotations

from typing import Any

import attrs

from fx_emulator.kernel import Random
from fx_emulator.native.decode import LINE, Access, AccessPart
from fx_emulator.native.errors import NativeError
from fx_emulator.native.operands import Addresses
from fx_emulator.native.threads import NativeThread


@attrs.frozen
class Split:
    """The progress of a thread within an instruction."""

    pc: int
    mark: int
    """Number of the thread's accesses before the instruction, for a schedule."""
    parts: tuple[AccessPart, ...]
    """The loads, then the stores."""
    done: int = 0
    """Number of parts that are done."""
    loaded: tuple[bytes, ...] = ()
    """What the loads have read so far."""
    to_store: tuple[bytes, ...] | None = None
    """What the stores write; None before the instruction has run."""

    @property
    def loads(self) -> int:
        """Number of parts that load."""
        return _count_loads(self.parts)

    @property
    def next(self) -> AccessPart:
        """The part that comes next."""
        return self.parts[self.done]


def _count_loads(parts: tuple[AccessPart, ...]) -> int:
    return sum(not part.writes for part in parts)


class _EveryStore(set[int]):
    """Contains every address: no store of the running instruction counts, until it is made."""

    def __contains__(self, _address: object) -> bool:
        return True

    def clear(self) -> None:
        """Keep containing every address."""


_EVERY_STORE = _EveryStore()


class Splitter:
    """Runs instructions of a machine's threads in parts."""

    def __init__(self, machine: Any, addresses: Addresses) -> None:
        self._machine = machine
        self._addresses = addresses

    def splits(self, access: Access) -> bool:
        """Return whether the instruction that the running thread is at has several parts."""
        if access.locked or not access.operands:
            return False
        return access.plural or any(
            self._addresses.of(operand) % LINE + operand.size > LINE for operand in access.operands
        )

    def begin(self, thread: NativeThread, mark: int = 0) -> int:
        """Stop before the first part of the thread's next instruction.

        Returns the number of parts, 0 for an instruction that is atomic or that will fault.
        """
        machine = self._machine
        machine.select(thread)
        access = machine.decoder.access(thread.pc)
        if access is None or not self.splits(access):
            return 0
        instruction_parts = self._addresses.parts(access)
        possible_stops = len(instruction_parts)
        if machine.order is not None:
            # With store buffers the stores leave the instruction one by one anyway.
            possible_stops = _count_loads(instruction_parts)
        if possible_stops < 2:
            return 0
        try:
            for part in instruction_parts:
                machine.space.read(part.address, part.size)
        except NativeError:
            return 0
        thread.split = Split(thread.pc, mark, instruction_parts)
        return len(instruction_parts)

    def step(self, thread: NativeThread) -> None:
        """Do the next part. At the end of the instruction ``thread.split`` is None."""
        machine = self._machine
        machine.select(thread)
        split: Split | None = thread.split
        assert split is not None  # noqa: S101
        next_part = split.next
        parts_done = split.done + 1
        if parts_done < split.loads:
            loaded_bytes = machine.space.read(next_part.address, next_part.size)
            thread.split = attrs.evolve(
                split, done=parts_done, loaded=(*split.loaded, loaded_bytes)
            )
            return
        # The instruction itself makes the last load; after that it is known what it stores.
        to_store = split.to_store
        if to_store is None:
            to_store = self._execute(thread, split)
        if next_part.writes and to_store:
            machine.stores.put(next_part.address, to_store[split.done - split.loads], split.pc)
        if to_store and parts_done < len(split.parts):
            thread.split = attrs.evolve(split, done=parts_done, to_store=to_store)
        else:
            thread.split = None

    def finish(self, thread: NativeThread) -> None:
        """Do all parts that are left."""
        while thread.split is not None:
            self.step(thread)

    def pause(self, thread: NativeThread, rng: Random) -> None:
        """Stop a thread at random before or within its next instruction."""
        part_count = 0
        if not thread.finished and thread.split is None:
            part_count = self.begin(thread)
        for _ in range(rng.below(part_count or 1)):
            if thread.split is not None:
                self.step(thread)

    def _execute(self, thread: NativeThread, split: Split) -> tuple[bytes, ...]:
        """Run the instruction. Return what its stores write; nothing if they were buffered."""
        machine = self._machine
        space = machine.space
        load_parts = split.parts[: len(split.loaded)]
        store_parts = [part for part in split.parts if part.writes]
        old_memory = [
            (part.address, space.read(part.address, part.size))
            for part in (*load_parts, *store_parts)
        ]
        for address, part_bytes in old_memory:
            machine.stores.remember(address, len(part_bytes))
        # The instruction loads what its earlier parts have loaded, not what is there by now.
        for part, part_bytes in zip(load_parts, split.loaded, strict=True):
            space.write(part.address, part_bytes)
        counted = machine.stores.counted
        machine.stores.counted = _EVERY_STORE
        thread.split = None
        try:
            machine.execute(thread)
            to_store = tuple(space.read(part.address, part.size) for part in store_parts)
        finally:
            machine.stores.counted = counted
            for address, part_bytes in old_memory:
                space.write(address, part_bytes)
        if machine.order is None:
            return to_store
        for part, part_bytes in zip(store_parts, to_store, strict=True):
            machine.order.put(part.address, part_bytes, split.pc)
        return ()
