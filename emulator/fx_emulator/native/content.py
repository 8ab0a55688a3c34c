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
        return self._machine.stores.journal or []

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
        hidden_words = self._hidden_words()
        memory_hash = 0
        for line_address, changed_line in self._lines.items():
            line_bytes = bytes(
                changed_line.region.view[changed_line.offset : changed_line.offset + LINE]
            )
            if line_address in hidden_words:
                shared_bytes = bytearray(line_bytes)
                for byte_offset, word_bytes in hidden_words[line_address]:
                    shared_bytes[byte_offset : byte_offset + len(word_bytes)] = word_bytes
                line_bytes = bytes(shared_bytes)
            if line_bytes != changed_line.first_bytes:
                memory_hash ^= hash((line_address, line_bytes))
        return memory_hash

    def _hidden_words(self) -> dict[int, list[tuple[int, bytes]]]:
        """Return, by line, offset and bytes of words where the memory shows one thread's view."""
        hidden_words: dict[int, list[tuple[int, bytes]]] = {}
        order = self._machine.order
        if order is not None:
            for word_address, word_bytes in order.hidden.items():
                hidden_words.setdefault(word_address & -LINE, []).append(
                    (word_address % LINE, word_bytes)
                )
        return hidden_words

    def _scan(self) -> None:
        """Learn of lines that have changed since the last state."""
        journal = self._journal
        for region, offset, data in journal[self._scanned :]:
            if region.name == "stack":
                continue  # a part of the thread
            for line_offset in range(offset & -LINE, offset + len(data), LINE):
                address = region.start + line_offset
                if address not in self._lines:
                    first_bytes = self._first_bytes(region, line_offset)
                    self._lines[address] = _ChangedLine(region, line_offset, first_bytes)
        self._scanned = len(journal)

    def _first_bytes(self, region: Region, line_offset: int) -> bytes:
        """Return the bytes of a line before the first entry of the journal."""
        line_bytes = bytearray(region.view[line_offset : line_offset + LINE])
        # Undo the stores into the line, the newest first.
        for changed_region, offset, old_bytes in reversed(self._journal):
            if (
                changed_region is region
                and offset < line_offset + LINE
                and line_offset < offset + len(old_bytes)
            ):
                for byte_offset, byte in enumerate(old_bytes, offset - line_offset):
                    if 0 <= byte_offset < len(line_bytes):
                        line_bytes[byte_offset] = byte
        return bytes(line_bytes)
