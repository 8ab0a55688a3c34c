"""Packers: the threads, memory and output of the bulk writing kernels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fx_xray import format as wire
from fx_xray.format import FLUSH, GROW, LATEST, FileHeader
from fx_xray.read.events import Events
from fx_xray.write.pack import DROPPED, BasicPack, EventColumns, FdrPack, ThreadBuffers
from fxframework.io.sink import Sink
from fxframework.kernels.buffers import view
from fxframework.model.clock import NS_PER_SECOND

__all__ = ["BasicPacker", "RecorderPacker"]

I64 = NDArray[Any]
U8 = NDArray[Any]
END_BYTES: Final = 40
"""Bytes that version 1 needs at the end of a buffer: its end record, and 24 bytes of padding."""
OUT: Final = 1 << 20
"""Bytes of output at a time, unless buffers are larger."""
ROOM: Final = 176
"""Bytes of a thread's first area in the arena."""


def _columns(events: Events, payloads: U8) -> EventColumns:
    """Return events in the form of the kernels, none of them left out yet."""
    return EventColumns(
        view(events.kind, np.uint8),
        view(events.function, np.uint32),
        view(np.ascontiguousarray(events.tsc, np.uint64).view(np.int64), np.int64),
        view(events.cpu, np.uint16),
        view(events.thread, np.int32),
        view(np.ascontiguousarray(events.value, np.uint64).view(np.int64), np.int64),
        view(events.size, np.int32),
        view(payloads, np.uint8),
        np.zeros(events.kind.size, np.uint8).data,
    )


class Packer:
    """The threads of a trace, and the loop that hands its events to a kernel."""

    _pack: FdrPack | BasicPack

    def __init__(self, sink: Sink, header: FileHeader) -> None:
        self._sink = sink
        self._processes = self._numbers = np.zeros(0, np.int64)
        sink.write(bytes(header.raw or header.pack()))

    @property
    def dropped(self) -> dict[str, int]:
        """Counts of what a version could not hold so far, by name."""
        counted = zip(DROPPED, np.asarray(self._pack.counts).tolist(), strict=True)
        return {name: count for name, count in counted if count}

    def add_threads(self, processes: I64, numbers: I64) -> None:
        """Add threads, int64 of shape (n,): process and thread ids that 32 bits hold."""
        self._processes = np.append(self._processes, processes.astype(np.int64))
        self._numbers = np.append(self._numbers, numbers.astype(np.int64))

    def write(self, events: Events, payloads: U8) -> U8:
        """Write events, whose ``thread`` is the number of an added thread.

        The events of each thread are in program order, with arguments after their calls. Returns
        why each was left out, uint8 of shape (n,): 1 + an index into ``DROPPED``, 0 if it was not.
        """
        columns = _columns(events, payloads)
        self._pack.events, self._pack.row = columns, 0
        while why := self._pack.run():
            self._go_on(why)
        return np.asarray(columns.left_out)

    def close(self) -> Mapping[str, int]:
        """Write the held-back records. Return the counts of what could not be written, by name."""
        self._flush()
        return self.dropped

    def _go_on(self, why: int) -> None:
        """Let the kernel go on after it stopped: with an empty output."""
        assert why == FLUSH  # noqa: S101 (other reasons are a packer's own)
        self._flush()

    def _flush(self) -> None:
        """Write what the kernel has put out."""
        raise NotImplementedError


class RecorderPacker(Packer):
    """Writes the flight data recorder's traces, versions 1 to 5."""

    _pack: FdrPack

    def __init__(self, sink: Sink, header: FileHeader) -> None:
        super().__init__(sink, header)
        version = header.version
        size = header.buffer_size
        if not wire.SMALLEST_BUFFER <= size < 1 << 62:  # an implausible size
            size = wire.BUFFER_BYTES
        self._frequency = header.cycle_frequency or NS_PER_SECOND
        self._pack = FdrPack(
            version=version,
            size=size,
            limit=size if version >= wire.EXTENTS_VERSION else size - END_BYTES,
            head=wire.METADATA_BYTES if version >= wire.EXTENTS_VERSION else 0,
            preamble=(4 if version >= wire.PID_VERSION else 3) * wire.METADATA_BYTES,
            wrap=wire.WRAP_TICKS[version],
        )
        self._arena = np.empty(0, np.uint32)
        self._used = 0
        self._free: dict[int, list[int]] = {}
        """Free areas of the arena, by size."""
        self._out = np.empty(OUT, np.uint8)
        self._places = np.empty(OUT // wire.SMALLEST_BUFFER, np.int64)
        self._walls = np.empty(OUT // wire.SMALLEST_BUFFER, np.int64)
        self._pack.out = self._out.data
        self._pack.places, self._pack.walls = self._places.data, self._walls.data

    def add_threads(self, processes: I64, numbers: I64) -> None:
        """Add threads, each without a buffer."""
        before, known = self._pack.buffers, self._processes.size
        super().add_threads(processes, numbers)
        buffers = ThreadBuffers(self._processes.data, self._numbers.data)
        for name in ("start", "room", "fill", "base", "cpu", "call", "wall", "rank"):
            np.asarray(getattr(buffers, name))[:known] = np.asarray(getattr(before, name))
        self._pack.buffers = buffers

    def close(self) -> Mapping[str, int]:
        """Write the buffers of all threads. Return the counts of what could not be written."""
        # Threads in the order of reading, so that extracting twice gives the same bytes.
        rank = np.asarray(self._pack.buffers.rank)
        for thread in np.argsort(np.where(rank > 0, rank, LATEST), kind="stable").tolist():
            while why := self._pack.end_thread(thread):
                self._go_on(why)
        return super().close()

    def _go_on(self, why: int) -> None:
        if why == GROW:
            self._grow(self._pack.thread, self._pack.needed)
            return
        super()._go_on(why)
        if self._pack.needed > len(self._out):
            self._out = np.empty(self._pack.needed, np.uint8)
            self._pack.out = self._out.data

    def _grow(self, thread: int, needed: int) -> None:
        """Give a thread an area of at least ``needed`` bytes, and copy its contents."""
        buffers = self._pack.buffers
        start, room = int(buffers.start[thread]), int(buffers.room[thread])
        size = ROOM
        while size < needed:
            size *= 2
        free = self._free.get(size)
        if free:
            place = free.pop()
        else:
            place = self._used
            self._used += size
            if self._used > self._arena.nbytes:
                arena = np.empty(max(self._used, 2 * self._arena.nbytes) // 4, np.uint32)
                arena[: len(self._arena)] = self._arena
                self._arena = arena
                self._pack.words = arena.data
                self._pack.arena = arena.view(np.uint8).data
        if room:
            raw = self._arena.view(np.uint8)
            fill = int(buffers.fill[thread])
            raw[place : place + fill] = raw[start : start + fill]
            self._free.setdefault(room, []).append(start)
        np.asarray(buffers.start)[thread], np.asarray(buffers.room)[thread] = place, size

    def _flush(self) -> None:
        pack = self._pack
        if pack.made:
            self._set_wall_times(
                self._places[: pack.made], self._walls[: pack.made].view(np.uint64)
            )
        self._sink.write(self._out[: pack.written].data)
        pack.made = pack.written = 0

    def _set_wall_times(self, places: I64, ticks: NDArray[np.uint64]) -> None:
        """Fill in seconds and microseconds, derived from the counter."""
        frequency = np.uint64(self._frequency)
        seconds, rest = np.divmod(ticks, frequency)
        if self._frequency < 1 << 44:
            micros = rest * np.uint64(1_000_000) // frequency
        else:  # an implausible rate, with which the product would overflow
            micros = np.minimum(rest // np.uint64(self._frequency // 1_000_000), 999_999)
        fields = np.empty((len(places), 12), np.uint8)
        seconds = np.minimum(seconds, np.uint64(LATEST)).astype("<u8")
        fields[:, :8] = seconds.view(np.uint8).reshape(-1, 8)
        fields[:, 8:] = micros.astype("<u4").view(np.uint8).reshape(-1, 4)
        self._out[(places + 1)[:, None] + np.arange(12)] = fields


class BasicPacker(Packer):
    """Writes traces of basic mode, versions 1 to 3, with events in the given order."""

    _pack: BasicPack

    def __init__(self, sink: Sink, header: FileHeader) -> None:
        super().__init__(sink, header)
        self._out = np.empty(OUT // 4, np.uint32)
        self._pack = BasicPack(self._out.data, version=header.version)

    def add_threads(self, processes: I64, numbers: I64) -> None:
        """Add threads, whose numbers the records have."""
        super().add_threads(processes, numbers)
        self._pack.processes = self._processes.data
        self._pack.numbers = self._numbers.data

    def _flush(self) -> None:
        self._sink.write(self._out[: self._pack.written].view(np.uint8).data)
        self._pack.written = 0
