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

from fx_emulator.kernel import Random
from fx_emulator.native.decode import LINE
from fx_emulator.native.space import Region

PRIVATE = frozenset({"stack", "thread variables"})
"""Regions whose stores are not buffered."""

CAPACITY = 64
"""Capacity of a buffer in stores; one more drains the oldest."""
_WORD = 8


@attrs.frozen
class Pending:
    """A store in a buffer."""

    region: Region
    offset: int
    """In the region."""
    size: int
    value: int
    pc: int

    @property
    def address(self) -> int:
        """Guest address."""
        return self.region.start + self.offset

    @property
    def words(self) -> range:
        """Guest addresses of the words that it touches."""
        first_word = self.address & -_WORD
        return range(first_word, self.address + self.size, _WORD)


@attrs.frozen
class OrderSnapshot:
    """The store buffers at a point to return to, without the memory itself."""

    waiting: dict[int, tuple[Pending, ...]]
    """Buffers that are not empty, by the thread's number."""
    hidden: dict[int, bytes]
    owner: int | None
    direct: int


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
        if self.kernel or pc == self.direct or self.owner is None:
            return
        if address in self.machine.stores.counted:
            return
        value &= (1 << 8 * size) - 1
        to_line_end = LINE - address % LINE
        if size <= to_line_end:
            self._buffer(region, address, size, value, pc)
            return
        low_bits = 8 * to_line_end
        self._buffer(region, address, to_line_end, value & (1 << low_bits) - 1, pc)
        self._buffer(region, address + to_line_end, size - to_line_end, value >> low_bits, pc)

    def put(self, address: int, data: bytes, pc: int) -> None:
        """Make a store of the running thread, of which the engine does not know."""
        region = self.machine.space.find(address)
        if region.name not in PRIVATE:
            self._buffer(region, address, len(data), int.from_bytes(data, "little"), pc)
        self.machine.stores.remember(address, len(data))
        self.machine.space.write(address, data)

    def _buffer(self, region: Region, address: int, size: int, value: int, pc: int) -> None:
        assert self.owner is not None  # noqa: S101 (a thread is running)
        store = Pending(region, address - region.start, size, value, pc)
        waiting_stores = self.waiting(self.owner)
        if len(waiting_stores) >= CAPACITY:
            self.drain(self.owner)
        for word_address in store.words:
            if word_address not in self.hidden:
                self.hidden[word_address] = self._load(word_address)
        waiting_stores.append(store)

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

    def drain_some(self, thread: int, rng: Random) -> None:
        """Drain a random number of a thread's stores."""
        for _ in range(rng.below(len(self.waiting(thread)) + 1)):
            self.drain(thread)

    def drain(self, thread: int) -> Pending:
        """Drain the oldest store of a thread, so that all threads see it."""
        store = self.waiting(thread).popleft()
        self.draining = thread
        try:
            self._announce(store)
        finally:
            self.draining = None
        for word_address in store.words:
            self._drain_word(word_address, store)
        self.machine.stores.apply_rewrites()
        if self.on_drain is not None:
            self.on_drain(thread, store)
        return store

    def _drain_word(self, word_address: int, store: Pending) -> None:
        """Let a word show a store that drains, in both views."""
        shared_view = self.hidden.get(word_address)
        if shared_view is None:
            # The owner has no buffered store to the word: its view is that of all threads.
            self._store(word_address, _overlay(self._load(word_address), word_address, store))
            return
        shared_view = _overlay(shared_view, word_address, store)
        assert self.owner is not None  # noqa: S101 (only an owner's stores hide words)
        own_stores = [
            pending for pending in self.waiting(self.owner) if word_address in pending.words
        ]
        own_view = shared_view
        for pending in own_stores:
            own_view = _overlay(own_view, word_address, pending)
        self._store(word_address, own_view)
        if own_stores:
            self.hidden[word_address] = shared_view
        else:
            del self.hidden[word_address]

    def _announce(self, store: Pending) -> None:
        """Tell the device, if the store goes into one."""
        device = store.region.shared
        if device is not None:
            with self._shared_view():
                device.land(store.offset, store.size, store.value, store.pc)

    @contextlib.contextmanager
    def _shared_view(self) -> Iterator[None]:
        """Context in which the memory shows the other threads' view."""
        own_view = {word_address: self._load(word_address) for word_address in self.hidden}
        for word_address, shared_view in self.hidden.items():
            self._store(word_address, shared_view)
        try:
            yield
        finally:
            for word_address, own_bytes in own_view.items():
                self._store(word_address, own_bytes)

    def switch(self, thread: int) -> None:
        """Switch the memory to the view of another thread."""
        if thread == self.owner:
            return
        self.reveal()
        self.owner = thread
        for store in self.waiting(thread):
            for word_address in store.words:
                current_view = self._load(word_address)
                # Only the first of several stores to a word sees what all threads see.
                self.hidden.setdefault(word_address, current_view)
                self._store(word_address, _overlay(current_view, word_address, store))

    def reveal(self) -> None:
        """Switch the memory to the view of drained stores only."""
        for word_address, shared_view in self.hidden.items():
            self._store(word_address, shared_view)
        self.hidden.clear()
        self.owner = None

    # --- memory ---

    def _load(self, word_address: int) -> bytes:
        data: bytes = self.machine.space.read(word_address, _WORD)
        return data

    def _store(self, word_address: int, data: bytes) -> None:
        """Write a word; journaled, but not seen by hooks."""
        self.machine.stores.remember(word_address, _WORD)
        self.machine.space.write(word_address, data)

    # --- exploration ---

    def snapshot(self) -> OrderSnapshot:
        """Return the state for ``restore``."""
        waiting = {thread: tuple(queue) for thread, queue in self.pending.items() if queue}
        return OrderSnapshot(waiting, dict(self.hidden), self.owner, self.direct)

    def restore(self, snapshot: OrderSnapshot) -> None:
        """Restore a snapshot."""
        self.pending = {thread: deque(stores) for thread, stores in snapshot.waiting.items()}
        self.hidden = dict(snapshot.hidden)
        self.owner = snapshot.owner
        self.direct = snapshot.direct


def _overlay(data: bytes, word_address: int, store: Pending) -> bytes:
    """Return the bytes of a word after a store, which may touch other words as well."""
    changed_bytes = bytearray(data)
    stored_bytes = store.value.to_bytes(store.size, "little")
    for byte_offset, byte in enumerate(stored_bytes, store.address - word_address):
        if 0 <= byte_offset < _WORD:
            changed_bytes[byte_offset] = byte
    return bytes(changed_bytes)
