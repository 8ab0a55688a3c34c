"""The contents of a state: memory that has changed, registers, stacks and store buffers.

Two states with equal contents have the same future, however they came about. ``State.key`` knows
only histories, of which far more differ: most of all with store buffers.
"""

from __future__ import annotations

from typing import Any

from fx_emulator.native.decode import LINE
from fx_emulator.native.machine import Machine
from fx_emulator.native.space import Region

__all__ = ["Content"]


class Content:
    """The contents of a machine's memory and threads, since the journal began."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._lines: dict[int, tuple[Region, int, bytes]] = {}
        """Lines of memory that were ever changed: region, offset, first bytes."""
        self._scanned = 0
        """Entries of the journal whose lines are known."""

    def restored(self) -> None:
        """Note that the journal has been shortened."""
        self._scanned = min(self._scanned, len(self._journal))

    @property
    def _journal(self) -> list[tuple[Region, int, bytes]]:
        return self._machine.journal or []

    def key(self, kept: Any, *more: object) -> int:
        """Return a hash of a snapshot's contents and of ``more``, which also decides the future."""
        self._scan()
        saved = self._machine.engine.saved
        threads = [
            (
                saved(each.context),
                each.pc,
                each.stack,
                each.finished,
                each.split,
                tuple([(saved(context), pc) for context, pc in each.depth]),
            )
            for each in kept.threads
        ]
        buffers: tuple[object, ...] = ()
        if kept.order is not None:
            waiting, _, _, direct = kept.order
            buffers = (
                direct,
                *[
                    (thread, *[(each.address, each.size, each.value) for each in queue])
                    for thread, queue in sorted(waiting.items())
                ],
            )
        heap = repr(kept.heap) if kept.heap[1] else ""
        return hash((*threads, self._memory(), *buffers, *kept.heard, *kept.signals, heap, *more))

    def _memory(self) -> int:
        """Return a hash of all lines that differ from their first bytes, as everybody sees them."""
        order = self._machine.order
        hidden: dict[int, list[tuple[int, bytes]]] = {}
        for word, seen in order.hidden.items() if order is not None else ():
            hidden.setdefault(word & -LINE, []).append((word % LINE, seen))
        total = 0
        for start, (region, at, first) in self._lines.items():
            data = bytes(region.view[at : at + LINE])
            if start in hidden:
                shown = bytearray(data)
                for within, seen in hidden[start]:
                    shown[within : within + len(seen)] = seen
                data = bytes(shown)
            if data != first:
                total ^= hash((start, data))
        return total

    def _scan(self) -> None:
        """Learn of lines that have changed since the last state."""
        journal = self._journal
        for region, at, data in journal[self._scanned :]:
            if region.name == "stack":
                continue  # a part of the thread
            for line in range(at & -LINE, at + len(data), LINE):
                if region.start + line not in self._lines:
                    first = self._first(region, line)
                    self._lines[region.start + line] = region, line, first
        self._scanned = len(journal)

    def _first(self, region: Region, line: int) -> bytes:
        """Return the bytes of a line before the first entry of the journal."""
        bytes_ = bytearray(region.view[line : line + LINE])
        for where, at, data in reversed(self._journal):
            if where is region and at < line + LINE and line < at + len(data):
                for number, byte in enumerate(data, at - line):
                    if 0 <= number < len(bytes_):
                        bytes_[number] = byte
        return bytes(bytes_)
