"""The state of an exploration: snapshots to return to, and hashes to recognise equal states.

Two runs are in the same state if each thread has read the same versions of the shared words, and
each shared word has the same version. Registers and private memory follow from that, since threads
are deterministic.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import attrs

from fx_emulator.native.conflicts import Conflicts, TouchedWord
from fx_emulator.native.content import Content
from fx_emulator.native.devices import MappedDevice
from fx_emulator.native.engine import Context
from fx_emulator.native.heap import HeapSnapshot
from fx_emulator.native.machine import Machine
from fx_emulator.native.order import OrderSnapshot, Pending
from fx_emulator.native.threads import NativeThread

_RED_ZONE = 128
"""Bytes below the stack pointer that a function may use (System V ABI)."""
_WORD = 8


class StoredValue(NamedTuple):
    """A store into the device: its bytes, and who stored them."""

    offset: int
    size: int
    value: int
    thread: int
    """Number of the thread, -1 for none."""
    pc: int


@attrs.frozen
class _ThreadSnapshot:
    """A thread that does not run."""

    context: Context
    pc: int
    sp: int
    stack: bytes
    """The used part of the stack, from the red zone to its top."""
    finished: bool
    result: int
    interrupted: tuple[tuple[Context, int], ...]
    split: Any
    wake_ns: int
    random_state: int
    specific: dict[int, int]

    @classmethod
    def of(cls, thread: NativeThread) -> _ThreadSnapshot:
        # The thread gets a new context when it runs next; this one stays as it is.
        thread.frozen = True
        return cls(
            context=thread.context,
            pc=thread.pc,
            sp=thread.sp,
            stack=_used_stack(thread, thread.sp),
            finished=thread.finished,
            result=thread.result,
            interrupted=tuple(thread.interrupted),
            split=thread.split,
            wake_ns=thread.wake_ns,
            random_state=thread.random.state,
            specific=dict(thread.specific),
        )

    def restore(self, thread: NativeThread) -> None:
        thread.context = self.context
        thread.frozen = True
        thread.pc = self.pc
        thread.sp = self.sp
        stack_memory = thread.stack.view
        stack_memory[len(stack_memory) - len(self.stack) :] = self.stack
        thread.finished = self.finished
        thread.result = self.result
        thread.interrupted = list(self.interrupted)
        thread.split = self.split
        thread.wake_ns = self.wake_ns
        thread.random.state = self.random_state
        thread.specific = dict(self.specific)


def _used_stack(thread: NativeThread, sp: int) -> bytes:
    """Return the bytes of a stack from the red zone on."""
    stack_start = thread.stack.start
    lowest_used = max(stack_start, sp - _RED_ZONE)
    return bytes(thread.stack.view[lowest_used - stack_start :])


@attrs.frozen
class _MachineSnapshot:
    """The machine without its threads; lengths stand for what is only appended to."""

    journal_length: int
    output_length: int
    last_key: int
    time: tuple[int, int, int]
    heap: HeapSnapshot
    order: OrderSnapshot | None

    @classmethod
    def of(cls, machine: Machine) -> _MachineSnapshot:
        assert machine.stores.journal is not None  # noqa: S101 (an exploration keeps one)
        return cls(
            journal_length=len(machine.stores.journal),
            output_length=len(machine.output),
            last_key=machine.last_key,
            time=machine.timer.snapshot(),
            heap=machine.heap.snapshot(),
            order=machine.order.snapshot() if machine.order is not None else None,
        )

    def restore(self, machine: Machine) -> None:
        """Restore all but the bytes of memory."""
        machine.timer.restore(self.time)
        machine.heap.restore(self.heap)
        if machine.order is not None and self.order is not None:
            machine.order.restore(self.order)
        del machine.output[self.output_length :]
        machine.last_key = self.last_key


class _Versions:
    """A version for each shared word, which changes with each store into it."""

    def __init__(self) -> None:
        self.hashed = 0
        """A hash of the versions of all words."""
        self._by_word: dict[int, int] = {}
        self._undo: list[tuple[int, int]] = []
        """For each change, the word and its version before."""

    def __len__(self) -> int:
        """Number of changes so far."""
        return len(self._undo)

    def of(self, touched: list[TouchedWord] | tuple[TouchedWord, ...]) -> tuple[int, ...]:
        """Return the versions of words."""
        by_word = self._by_word
        return tuple([by_word.get(word, 0) for word, _ in touched])

    def change(self, word: int, version: int) -> None:
        old_version = self._by_word.get(word, 0)
        self._undo.append((word, old_version))
        self._by_word[word] = version
        # XOR takes the old version out of the hash of all, whatever the order of the changes.
        self.hashed ^= hash((word, old_version)) ^ hash((word, version))

    def undo(self, length: int, hashed: int) -> None:
        """Return to the first ``length`` changes, after which the hash was ``hashed``."""
        while len(self._undo) > length:
            word, old_version = self._undo.pop()
            self._by_word[word] = old_version
        self.hashed = hashed


@attrs.frozen
class Snapshot:
    """A point to return to."""

    machine: _MachineSnapshot
    threads: list[_ThreadSnapshot]
    learned: list[int]
    heard: list[int]
    version_count: int
    version_hash: int
    content: int
    trail_length: int
    drained: list[int]
    signals: list[int]
    passes: int
    accesses: dict[int, int]
    time_reads: dict[int, tuple[int, ...]]


class State:
    """State of the threads and of one device's memory. Threads are named by their index."""

    def __init__(
        self,
        machine: Machine,
        device: MappedDevice,
        threads: list[NativeThread],
        conflicts: Conflicts,
    ) -> None:
        self.machine = machine
        self.device = device
        self.threads = threads
        self.conflicts = conflicts
        self.learned = [0] * len(threads)
        """For each thread, a hash of all values that it has read."""
        self.heard = [0] * len(threads)
        """The same of values from outside alone."""
        self.contents = Content(machine)
        self.content = 0
        """A hash of the device's memory, 0 for the first image."""
        self.trail: list[StoredValue] = []
        """Stores into the device, newest last."""
        self.drained = [0] * len(threads)
        """For each thread, the number of its stores that left its buffer."""
        self.signals = [0] * len(threads)
        """For each thread, how often a signal interrupted it."""
        self.passes = 0
        """Number of points that the threads have passed."""
        self.time_reads: dict[int, tuple[int, ...]] = {}
        """For each thread, its progress when it read the time last."""
        self._versions = _Versions()

    # --- events ---

    def learn(self, thread: int, value: int) -> None:
        """Record that a thread read a value from outside."""
        self.learned[thread] = hash((self.learned[thread], value))
        self.heard[thread] = hash((self.heard[thread], value))

    def passed(self, thread: int, pc: int, touched: list[TouchedWord], *, writes: bool) -> None:
        """Record that an instruction uses shared words; ``writes`` if its stores are visible."""
        self.passes += 1
        read_versions = self._versions.of(touched)
        order = self.machine.order
        if order is not None:
            # What it reads depends on its own buffered stores to these words, too.
            touched_words = {word for word, _ in touched}
            waiting_stores = order.waiting(self.threads[thread].number)
            own_stores = sum(not touched_words.isdisjoint(store.words) for store in waiting_stores)
            read_versions = (*read_versions, own_stores)
        learned = hash((self.learned[thread], pc, read_versions))
        self.learned[thread] = learned
        if writes:
            # What a thread stores follows from what it has read.
            for word, stores in touched:
                if stores:
                    self._versions.change(word, hash((learned, word)))

    def progress(self, thread: int, pc: int) -> tuple[int, ...]:
        """Return what stays the same while a thread reads the time at ``pc`` and only waits."""
        return pc, self.passes, len(self.trail), self._buffered(thread)

    def moment(self, thread: int, pc: int, touched: tuple[TouchedWord, ...]) -> int:
        """Return a hash of the running thread's registers, stack and next reads."""
        registers = self.machine.engine.registers()
        stack_bytes = _used_stack(self.threads[thread], registers["rsp"])
        read_versions = self._versions.of(touched)
        return hash((pc, *registers.values(), stack_bytes, read_versions, self._buffered(thread)))

    def _buffered(self, thread: int) -> int:
        """Return the number of a thread's stores that wait in its buffer."""
        order = self.machine.order
        if order is None:
            return 0
        return len(order.waiting(self.threads[thread].number))

    def on_drain(self, number: int, store: Pending) -> None:
        """Record that the oldest store of a thread's buffer became visible."""
        for index, thread in enumerate(self.threads):
            if thread.number == number:
                self.drained[index] += 1
                version = hash((index, self.drained[index], store.value, store.pc))
                for word in store.words:
                    self._versions.change(word, version)

    def stored(self, offset: int, size: int, value: int, thread: int, pc: int) -> None:
        """Record a store into the device, before the bytes change."""
        self.trail.append(StoredValue(offset, size, value, thread, pc))
        first_word = offset & -_WORD
        words_end = (offset + size + _WORD - 1) & -_WORD
        old_bytes = bytes(self.device.region.view[first_word:words_end])
        byte_offset = offset - first_word
        new_bytes = (
            old_bytes[:byte_offset]
            + value.to_bytes(size, "little")
            + old_bytes[byte_offset + size :]
        )
        # The hash of the memory is the XOR of its words' hashes, so that one word can be replaced.
        for word_offset in range(first_word, words_end, _WORD):
            word_slice = slice(word_offset - first_word, word_offset - first_word + _WORD)
            self.content ^= hash((word_offset, old_bytes[word_slice])) ^ hash(
                (word_offset, new_bytes[word_slice])
            )

    def key(self, *future: object) -> int:
        """Return a hash of the state and of ``future``, which also decides how it continues."""
        return hash(
            (
                *self.learned,
                self._versions.hashed,
                *self.drained,
                *self.signals,
                *[thread.finished for thread in self.threads],
                *future,
            )
        )

    # --- snapshots ---

    def snapshot(self) -> Snapshot:
        """Return a snapshot of everything."""
        self.machine.select(None)
        return Snapshot(
            machine=_MachineSnapshot.of(self.machine),
            threads=[_ThreadSnapshot.of(thread) for thread in self.threads],
            learned=list(self.learned),
            heard=list(self.heard),
            version_count=len(self._versions),
            version_hash=self._versions.hashed,
            content=self.content,
            trail_length=len(self.trail),
            drained=list(self.drained),
            signals=list(self.signals),
            passes=self.passes,
            accesses=dict(self.conflicts.accesses),
            time_reads=dict(self.time_reads),
        )

    def restore(self, snapshot: Snapshot) -> None:
        """Restore a snapshot, which remains valid."""
        machine = self.machine
        machine.current = None
        machine.stores.rewrites.clear()
        # Before the threads: their stacks are in the journal too, but only in part.
        machine.stores.undo(snapshot.machine.journal_length)
        for thread, thread_snapshot in zip(self.threads, snapshot.threads, strict=True):
            thread_snapshot.restore(thread)
        self.learned = list(snapshot.learned)
        self.heard = list(snapshot.heard)
        self.contents.restored()
        self._versions.undo(snapshot.version_count, snapshot.version_hash)
        self.content = snapshot.content
        del self.trail[snapshot.trail_length :]
        self.drained = list(snapshot.drained)
        self.signals = list(snapshot.signals)
        self.passes = snapshot.passes
        # Cleared, not replaced: the hooks of accesses hold this very dictionary.
        self.conflicts.accesses.clear()
        self.conflicts.accesses.update(snapshot.accesses)
        self.time_reads = dict(snapshot.time_reads)
        snapshot.machine.restore(machine)
