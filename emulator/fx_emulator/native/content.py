"""The contents of a state: memory that has changed, registers, stacks and store buffers.

Two states with equal contents have the same future, however they came about. ``State.key`` knows
only histories, of which far more differ: most of all with store buffers.
"""

from __future__ import annotations

from typing import Any

import attrs

from fx_emulator.native.decode import LINE
from fx_emulator.native.machine import Machine
from fx_emulator.native.space import Region

__all__ = ["Content"]


@attrs.frozen
class _ChangedLine:
    """A cache line of memory that was changed at least once."""

    region: Region
    offset: int
    """Of the line, in the region."""
    first_bytes: bytes
    """Its bytes when the journal began."""


class Content:
    """The contents of a machine's memory and threads, since the journal began."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._lines: dict[int, _ChangedLine] = {}
        """Lines that were ever changed, by guest address."""
        self._scanned = 0
        """Entries of the journal whose lines are known."""

    def restored(self) -> None:
        """Note that the journal has been shortened."""
        self._scanned = min(self._scanned, len(self._journal))

    @property
    def _journal(self) -> list[tuple[Region, int, bytes]]:
        return self._machine.journal or []

    def key(self, snapshot: Any, *future: object) -> int:
        """Return a hash of a snapshot's contents and of ``future``, which decides it as well."""
        self._scan()
        saved = self._machine.engine.saved
        threads = [
            (
                saved(thread.context),
                thread.pc,
                thread.stack,
                thread.finished,
                thread.split,
                tuple([(saved(context), pc) for context, pc in thread.interrupted]),
            )
            for thread in snapshot.threads
        ]
        buffers: list[object] = []
        order = snapshot.machine.order
        if order is not None:
            buffers.append(order.direct)
            for thread, stores in sorted(order.waiting.items()):
                values = [(store.address, store.size, store.value) for store in stores]
                buffers.append((thread, *values))
        heap = snapshot.machine.heap
        return hash(
            (
                *threads,
                self._memory(),
                *buffers,
                *snapshot.heard,
                *snapshot.signals,
                repr(heap) if heap.sizes else "",
                *future,
            )
        )

    def _memory(self) -> int:
        """Return a hash of all lines that differ from their first bytes, as everybody sees them."""
        hidden = self._hidden_words()
        total = 0
        for start, line in self._lines.items():
            data = bytes(line.region.view[line.offset : line.offset + LINE])
            if start in hidden:
                shared = bytearray(data)
                for within, word in hidden[start]:
                    shared[within : within + len(word)] = word
                data = bytes(shared)
            if data != line.first_bytes:
                total ^= hash((start, data))
        return total

    def _hidden_words(self) -> dict[int, list[tuple[int, bytes]]]:
        """Return, by line, offset and bytes of words where the memory shows one thread's view."""
        hidden: dict[int, list[tuple[int, bytes]]] = {}
        order = self._machine.order
        if order is not None:
            for word, data in order.hidden.items():
                hidden.setdefault(word & -LINE, []).append((word % LINE, data))
        return hidden

    def _scan(self) -> None:
        """Learn of lines that have changed since the last state."""
        journal = self._journal
        for region, offset, data in journal[self._scanned :]:
            if region.name == "stack":
                continue  # a part of the thread
            for line in range(offset & -LINE, offset + len(data), LINE):
                address = region.start + line
                if address not in self._lines:
                    first_bytes = self._first_bytes(region, line)
                    self._lines[address] = _ChangedLine(region, line, first_bytes)
        self._scanned = len(journal)

    def _first_bytes(self, region: Region, line: int) -> bytes:
        """Return the bytes of a line before the first entry of the journal."""
        data = bytearray(region.view[line : line + LINE])
        # Undo the stores into the line, the newest first.
        for changed_region, offset, old in reversed(self._journal):
            if changed_region is region and offset < line + LINE and line < offset + len(old):
                for within, byte in enumerate(old, offset - line):
                    if 0 <= within < len(data):
                        data[within] = byte
        return bytes(data)
