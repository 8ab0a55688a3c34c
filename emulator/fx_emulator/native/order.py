"""Store buffers of x86-TSO: a thread sees its own stores at once, others when they drain.

The memory always shows the running thread's view. For words that this thread has buffered stores
to, the other threads' view is kept separately.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import attrs

from fx_emulator.native.decode import LINE
from fx_emulator.native.space import Region

__all__ = ["PRIVATE", "Pending", "StoreBuffers"]

PRIVATE = frozenset({"stack", "thread variables"})
"""Regions whose stores are not buffered."""

CAPACITY = 64
"""Capacity of a buffer in stores; one more drains the oldest."""
_WORD = 8


@attrs.frozen
class Pending:
    """A store in a buffer."""

    region: Region
    at: int
    size: int
    value: int
    pc: int

    @property
    def address(self) -> int:
        """Guest address."""
        return self.region.start + self.at

    @property
    def words(self) -> range:
        """Guest addresses of the words that it touches."""
        first = self.address & -_WORD
        return range(first, self.address + self.size, _WORD)


class StoreBuffers:
    """The store buffers of a machine's threads."""

    def __init__(self, machine: Any) -> None:
        self.machine = machine
        self.pending: dict[int, deque[Pending]] = {}
        self.hidden: dict[int, bytes] = {}
        """The other threads' view of the words that the owner has stored into."""
        self.owner: int | None = None
        """Number of the thread whose view the memory shows."""
        self.draining: int | None = None
        """Number of the thread whose store is draining."""
        self.direct = -1
        """Address of the current locked instruction, whose stores are not buffered."""
        self.manual = False
        """Whether an exploration decides when stores drain."""
        self.on_drain: Callable[[int, Pending], None] | None = None
        """Called with the thread's number and the store when a store drains."""
        self.kernel = False
        """Whether a function of the target is storing for the program."""

    def is_direct(self) -> bool:
        """Return whether the current store goes to memory at once."""
        return self.kernel or self.machine.pc() == self.direct

    def waiting(self, thread: int) -> deque[Pending]:
        """Return a thread's buffered stores, oldest first."""
        return self.pending.setdefault(thread, deque())

    def on_store(self, region: Region, _kind: int, address: int, size: int, value: int) -> None:
        """Buffer a store of the running thread, in two parts if it crosses a cache line."""
        pc = self.machine.pc()
        if self.kernel or pc == self.direct or self.owner is None or address in self.machine.asked:
            return
        value &= (1 << 8 * size) - 1
        first = LINE - address % LINE
        if first < size:
            self._buffer(region, address, first, value & (1 << 8 * first) - 1, pc)
            self._buffer(region, address + first, size - first, value >> 8 * first, pc)
        else:
            self._buffer(region, address, size, value, pc)

    def put(self, address: int, data: bytes, pc: int) -> None:
        """Make a store of the running thread, of which the engine does not know."""
        region = self.machine.space.find(address)
        if region.name not in PRIVATE:
            self._buffer(region, address, len(data), int.from_bytes(data, "little"), pc)
        self.machine.remember(address, len(data))
        self.machine.space.write(address, data)

    def _buffer(self, region: Region, address: int, size: int, value: int, pc: int) -> None:
        assert self.owner is not None  # noqa: S101 (a thread is running)
        entry = Pending(region, address - region.start, size, value, pc)
        queue = self.waiting(self.owner)
        if len(queue) >= CAPACITY:
            self.drain(self.owner)
        for word in entry.words:
            if word not in self.hidden:
                self.hidden[word] = self._load(word)
        queue.append(entry)

    def locked(self, pc: int, *, fence: bool) -> None:
        """Drain the buffer before a locked instruction or fence."""
        if not self.manual:
            self.drain_all(self.owner)
        self.direct = -1 if fence else pc

    # --- draining ---

    def drain_all(self, thread: int | None) -> None:
        """Drain all stores of a thread."""
        while thread is not None and self.waiting(thread):
            self.drain(thread)

    def drain(self, thread: int) -> Pending:
        """Drain the oldest store of a thread, so that all threads see it."""
        queue = self.waiting(thread)
        entry = queue.popleft()
        self.draining = thread
        try:
            self._announce(entry)
        finally:
            self.draining = None
        for word in entry.words:
            seen = self.hidden.get(word)
            if seen is None:
                self._store(word, _overlay(self._load(word), word, entry))
                continue
            seen = _overlay(seen, word, entry)
            assert self.owner is not None  # noqa: S101 (only an owner's stores hide words)
            mine = [each for each in self.waiting(self.owner) if word in each.words]
            shown = seen
            for each in mine:
                shown = _overlay(shown, word, each)
            self._store(word, shown)
            if mine:
                self.hidden[word] = seen
            else:
                del self.hidden[word]
        self.machine.apply_rewrites()
        if self.on_drain is not None:
            self.on_drain(thread, entry)
        return entry

    def _announce(self, entry: Pending) -> None:
        device = entry.region.shared
        if device is not None:
            with self._as_everybody():
                device.land(entry.at, entry.size, entry.value, entry.pc)

    @contextlib.contextmanager
    def _as_everybody(self) -> Iterator[None]:
        """Context in which the memory shows the other threads' view."""
        mine = {word: self._load(word) for word in self.hidden}
        for word, seen in self.hidden.items():
            self._store(word, seen)
        try:
            yield
        finally:
            for word, data in mine.items():
                self._store(word, data)

    def switch(self, thread: int) -> None:
        """Switch the memory to the view of another thread."""
        if thread == self.owner:
            return
        self.reveal()
        self.owner = thread
        for entry in self.waiting(thread):
            for word in entry.words:
                shown = self._load(word)
                self.hidden.setdefault(word, shown)
                self._store(word, _overlay(shown, word, entry))

    def reveal(self) -> None:
        """Switch the memory to the view of drained stores only."""
        for word, seen in self.hidden.items():
            self._store(word, seen)
        self.hidden.clear()
        self.owner = None

    # --- memory ---

    def _load(self, word: int) -> bytes:
        data: bytes = self.machine.space.read(word, _WORD)
        return data

    def _store(self, word: int, data: bytes) -> None:
        """Write a word; journaled, but not seen by hooks."""
        self.machine.remember(word, _WORD)
        self.machine.space.write(word, data)

    # --- exploration ---

    def snapshot(self) -> Any:
        """Return the state for ``restore``, without the memory itself."""
        waiting = {thread: tuple(queue) for thread, queue in self.pending.items() if queue}
        return waiting, dict(self.hidden), self.owner, self.direct

    def restore(self, kept: Any) -> None:
        """Restore a snapshot."""
        waiting, hidden, self.owner, self.direct = kept
        self.pending = {thread: deque(queue) for thread, queue in waiting.items()}
        self.hidden = dict(hidden)


def _overlay(data: bytes, word: int, entry: Pending) -> bytes:
    """Return the bytes of a word after a store."""
    made = bytearray(data)
    bytes_ = entry.value.to_bytes(entry.size, "little")
    for number, byte in enumerate(bytes_):
        within = entry.address + number - word
        if 0 <= within < _WORD:
            made[within] = byte
    return bytes(made)
