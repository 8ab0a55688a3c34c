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

__all__ = ["Split", "Splitter"]


@attrs.frozen
class Split:
    """The progress of a thread within an instruction."""

    pc: int
    mark: int
    """Number of the thread's accesses before the instruction, for a schedule."""
    parts: tuple[AccessPart, ...]
    done: int = 0
    """Number of parts that are done."""
    seen: tuple[bytes, ...] = ()
    """What the loads have read so far."""
    left: tuple[bytes, ...] | None = None
    """What the stores write; None before the instruction has run."""

    @property
    def loads(self) -> int:
        """Number of parts that load."""
        return sum(not each.writes for each in self.parts)

    @property
    def next(self) -> AccessPart:
        """The part that comes next."""
        return self.parts[self.done]


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
            self._addresses.of(each) % LINE + each.size > LINE for each in access.operands
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
        parts = self._addresses.parts(access)
        loads = sum(not each.writes for each in parts)
        # With store buffers the stores leave the instruction one by one anyway.
        if (loads if machine.order is not None else len(parts)) < 2:
            return 0
        try:
            for each in parts:
                machine.space.read(each.address, each.size)
        except NativeError:
            return 0
        thread.split = Split(thread.pc, mark, parts)
        return len(parts)

    def step(self, thread: NativeThread) -> None:
        """Do the next part. At the end of the instruction ``thread.split`` is None."""
        machine = self._machine
        machine.select(thread)
        split = thread.split
        assert split is not None  # noqa: S101
        part, done, loads = split.next, split.done + 1, split.loads
        if done < loads:
            seen = machine.space.read(part.address, part.size)
            thread.split = attrs.evolve(split, done=done, seen=(*split.seen, seen))
            return
        left = self._execute(thread, split) if split.left is None else split.left
        if part.writes and left:
            machine.put(part.address, left[split.done - loads], split.pc)
        if left and done < len(split.parts):
            thread.split = attrs.evolve(split, done=done, left=left)
        else:
            thread.split = None

    def finish(self, thread: NativeThread) -> None:
        """Do all parts that are left."""
        while thread.split is not None:
            self.step(thread)

    def pause(self, thread: NativeThread, chance: Random) -> None:
        """Stop a thread at random before or within its next instruction."""
        count = 0 if thread.finished or thread.split is not None else self.begin(thread)
        for _ in range(chance.below(count or 1)):
            if thread.split is not None:
                self.step(thread)

    def _execute(self, thread: NativeThread, split: Split) -> tuple[bytes, ...]:
        """Run the instruction. Return what its stores write; nothing if they were buffered."""
        machine, space = self._machine, self._machine.space
        loads = split.parts[: len(split.seen)]
        stores = [each for each in split.parts if each.writes]
        kept = [(each.address, space.read(each.address, each.size)) for each in (*loads, *stores)]
        for address, data in kept:
            machine.remember(address, len(data))
        for each, data in zip(loads, split.seen, strict=True):
            space.write(each.address, data)
        asked, machine.asked = machine.asked, _EVERY_STORE
        thread.split = None
        try:
            machine.execute(thread)
            left = tuple(space.read(each.address, each.size) for each in stores)
        finally:
            machine.asked = asked
            for address, data in kept:
                space.write(address, data)
        if machine.order is None:
            return left
        for each, data in zip(stores, left, strict=True):
            machine.order.put(each.address, data, split.pc)
        return ()
