"""The state of an exploration: snapshots to return to, and hashes to recognise equal states.

Two runs are in the same state if each thread has read the same versions of the shared words, and
each shared word has the same version. Registers and private memory follow from that, since threads
are deterministic.
"""

from __future__ import annotations

from typing import Any

import attrs

from fx_emulator.native.conflicts import Conflicts
from fx_emulator.native.content import Content
from fx_emulator.native.devices import MappedDevice
from fx_emulator.native.engine import Context
from fx_emulator.native.machine import Machine
from fx_emulator.native.order import Pending
from fx_emulator.native.threads import NativeThread

__all__ = ["Snapshot", "State"]

_RED_ZONE = 128
_WORD = 8


@attrs.frozen
class _KeptThread:
    context: Context
    pc: int
    sp: int
    stack: bytes
    finished: bool
    result: int
    depth: tuple[tuple[Context, int], ...]
    split: Any
    wake_ns: int
    random: int
    specific: dict[int, int]


@attrs.define
class Snapshot:
    """A point to return to; ``extra`` belongs to the explorer."""

    journal: int
    threads: list[_KeptThread]
    learned: list[int]
    heard: list[int]
    versions: int
    mixed: int
    content: int
    trail: int
    drained: list[int]
    signals: list[int]
    passes: int
    accesses: dict[int, int]
    time: tuple[int, int, int]
    time_reads: dict[int, tuple[int, ...]]
    heap: Any
    order: Any
    output: int
    keys: int
    extra: Any = None


class State:
    """State of the threads and of one device's memory."""

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
        self.mixed = 0
        """A hash of the versions of all words."""
        self.content = 0
        """A hash of the device's memory, 0 for the first image."""
        self.trail: list[tuple[int, int, int, int, int]] = []
        """Stores into the device: offset, size, value, thread, address of the instruction."""
        self.drained = [0] * len(threads)
        self.signals = [0] * len(threads)
        self.passes = 0
        self.time_reads: dict[int, tuple[int, ...]] = {}
        """For each thread, its progress when it read the time last."""
        self._versions: dict[int, int] = {}
        self._undo: list[tuple[int, int]] = []

    # --- events ---

    def learn(self, thread: int, value: int) -> None:
        """Record that a thread read a value from outside."""
        self.learned[thread] = hash((self.learned[thread], value))
        self.heard[thread] = hash((self.heard[thread], value))

    def passed(
        self, thread: int, pc: int, touched: list[tuple[int, bool]], *, writes: bool
    ) -> None:
        """Record that an instruction uses shared words; ``writes`` if its stores are visible."""
        versions = self._versions
        self.passes += 1
        read = tuple([versions.get(word, 0) for word, _ in touched])
        order = self.machine.order
        if order is not None:
            # The thread's own buffered stores to these words.
            waiting = order.waiting(self.threads[thread].number)
            words = {word for word, _ in touched}
            own = sum(any(word in words for word in each.words) for each in waiting)
            read = (*read, own)
        learned = self.learned[thread] = hash((self.learned[thread], pc, read))
        if writes:
            for word, stores in touched:
                if stores:
                    self._version(word, hash((learned, word)))

    def progress(self, thread: int, pc: int) -> tuple[int, ...]:
        """Return what stays the same while a thread reads the time at ``pc`` and only waits."""
        order = self.machine.order
        own = len(order.waiting(self.threads[thread].number)) if order is not None else 0
        return pc, self.passes, len(self.trail), own

    def moment(self, thread: int, pc: int, touched: tuple[tuple[int, bool], ...]) -> int:
        """Return a hash of the running thread's registers, stack and next reads."""
        native = self.threads[thread]
        registers = self.machine.engine.registers()
        low = max(native.stack.start, registers["rsp"] - _RED_ZONE) - native.stack.start
        read = tuple([self._versions.get(word, 0) for word, _ in touched])
        order = self.machine.order
        own = len(order.waiting(native.number)) if order is not None else 0
        stack = bytes(native.stack.view[low:])
        return hash((pc, *registers.values(), stack, read, own))

    def on_drain(self, number: int, entry: Pending) -> None:
        """Record that the oldest store of a thread's buffer became visible."""
        for index, thread in enumerate(self.threads):
            if thread.number == number:
                self.drained[index] += 1
                for word in entry.words:
                    what = (index, self.drained[index], entry.value, entry.pc)
                    self._version(word, hash(what))

    def stored(self, at: int, size: int, value: int, thread: int, pc: int) -> None:
        """Record a store into the device, before the bytes change."""
        self.trail.append((at, size, value, thread, pc))
        first, end = at & -_WORD, (at + size + _WORD - 1) & -_WORD
        old = bytes(self.device.region.view[first:end])
        new = old[: at - first] + value.to_bytes(size, "little") + old[at - first + size :]
        for word in range(first, end, _WORD):
            place = slice(word - first, word - first + _WORD)
            self.content ^= hash((word, old[place])) ^ hash((word, new[place]))

    def _version(self, word: int, version: int) -> None:
        old = self._versions.get(word, 0)
        self._undo.append((word, old))
        self._versions[word] = version
        self.mixed ^= hash((word, old)) ^ hash((word, version))

    def key(self, *more: object) -> int:
        """Return a hash of the state and of ``more``, which also decides how it continues."""
        return hash(
            (
                *self.learned,
                self.mixed,
                *self.drained,
                *self.signals,
                *[thread.finished for thread in self.threads],
                *more,
            )
        )

    # --- snapshots ---

    def snapshot(self) -> Snapshot:
        """Return a snapshot of everything."""
        machine = self.machine
        assert machine.journal is not None  # noqa: S101 (an exploration keeps one)
        machine.select(None)
        threads = []
        for thread in self.threads:
            thread.frozen = True
            low = max(thread.stack.start, thread.sp - _RED_ZONE) - thread.stack.start
            threads.append(
                _KeptThread(
                    thread.context,
                    thread.pc,
                    thread.sp,
                    bytes(thread.stack.view[low:]),
                    thread.finished,
                    thread.result,
                    tuple(thread.depth),
                    thread.split,
                    thread.wake_ns,
                    thread.random.state,
                    dict(thread.specific),
                )
            )
        return Snapshot(
            journal=len(machine.journal),
            threads=threads,
            learned=list(self.learned),
            heard=list(self.heard),
            versions=len(self._undo),
            mixed=self.mixed,
            content=self.content,
            trail=len(self.trail),
            drained=list(self.drained),
            signals=list(self.signals),
            passes=self.passes,
            accesses=dict(self.conflicts.accesses),
            time=machine.timer.snapshot(),
            time_reads=dict(self.time_reads),
            heap=machine.heap.snapshot(),
            order=machine.order.snapshot() if machine.order is not None else None,
            output=len(machine.output),
            keys=machine.keys,
        )

    def restore(self, kept: Snapshot) -> None:
        """Restore a snapshot, which remains valid."""
        machine = self.machine
        journal = machine.journal
        assert journal is not None  # noqa: S101
        machine.current = None
        machine.rewrites.clear()
        while len(journal) > kept.journal:
            region, at, data = journal.pop()
            region.view[at : at + len(data)] = data
        for thread, each in zip(self.threads, kept.threads, strict=True):
            thread.context, thread.frozen = each.context, True
            thread.pc, thread.sp = each.pc, each.sp
            thread.stack.view[len(thread.stack.view) - len(each.stack) :] = each.stack
            thread.finished, thread.result = each.finished, each.result
            thread.depth, thread.split = list(each.depth), each.split
            thread.wake_ns = each.wake_ns
            thread.random.state = each.random
            thread.specific = dict(each.specific)
        self.learned, self.heard = list(kept.learned), list(kept.heard)
        self.contents.restored()
        while len(self._undo) > kept.versions:
            word, old = self._undo.pop()
            self._versions[word] = old
        self.mixed, self.content = kept.mixed, kept.content
        del self.trail[kept.trail :]
        self.drained, self.signals = list(kept.drained), list(kept.signals)
        self.passes = kept.passes
        self.conflicts.accesses.clear()
        self.conflicts.accesses.update(kept.accesses)
        machine.timer.restore(kept.time)
        self.time_reads = dict(kept.time_reads)
        machine.heap.restore(kept.heap)
        if machine.order is not None:
            machine.order.restore(kept.order)
        del machine.output[kept.output :]
        machine.keys = kept.keys
