"""The scan of legacy packets: decodes their bytes into raw rows, which ``row_scan.py`` adds.

It decodes the same bytes as ``decoder.py`` and ``entries.py``; tests compare the results.
"""

from __future__ import annotations

from fx_log import format as wire
from fx_log import rules
from fx_log.read import tables
from fx_log.read.framing import PacketFramer
from fx_log.read.row_scan import RowScan
from fx_log.read.rows import Totals
from fx_log.severity import legacy_level
from fxframework.kernels.annotations import Array, Bytes, Fallible, flag, i64, status, u8
from fxframework.kernels.buffers import full
from fxframework.kernels.notes import Notes
from fxframework.kernels.pools import Pool

__all__ = ["PacketScan"]

LEAST = wire.LEGACY_SEVERITIES.start - 1
MOST = 255
GIVEN = tables.GIVEN_MESSAGE | tables.GIVEN_PID | tables.GIVEN_TID


class PacketScan(RowScan):
    """Decodes the legacy packets that a framer finds; ``run`` stops as that of ``LogScan``."""

    data: Bytes
    packets: PacketFramer
    sound: flag
    levels: Array[u8]
    verbosities: Array[u8]

    def __init__(
        self, framer: PacketFramer, data: memoryview, pool: Pool, notes: Notes, totals: Totals
    ) -> None:
        # Strings of packets are not aligned: they are copied to whole words.
        RowScan.__init__(self, framer, data, pool, notes, totals, 64)
        self.data = memoryview(data)
        self.packets = framer
        self.sound = 1
        self.levels = full(1, "u1")
        self.verbosities = full(1, "u1")

    def configure(self, *, era_2022: bool) -> None:
        """Set the reader's option."""
        found = [
            legacy_level(severity) if era_2022 else (max(severity, 0), 0)
            for severity in range(LEAST, MOST + 1)
        ]
        self.levels = memoryview(bytearray(level for level, _ in found))
        self.verbosities = memoryview(bytearray(verbosity for _, verbosity in found))

    def step(self) -> Fallible[i64]:
        """Decode packets up to the limits ``until`` and ``most``."""
        self.pool.source = self.scratch
        while (
            self.framer.pos < self.until
            and self.logs.rows < self.most
            and self.tags.rows < self.most
        ):
            if not self.framer.advance():
                self.done = 1
                break
            self.packet(self.framer.start, self.framer.start + self.framer.size)
        return 0

    def packet(self, start: i64, end: i64) -> status:
        """Decode the sound packet of bytes ``start`` to ``end``."""
        self.framer.kinds[tables.PACKET] += 1
        self.clear_row()
        self.sound = 1
        first = self.tags.rows
        at = start + wire.PACKET_HEADER
        while self.data[at]:
            at = self.tag(at)
        self.message_at = at + 1
        stop = at + 1
        while self.data[stop]:
            stop += 1
        self.message_bytes = stop - self.message_at
        severity = self.packets.number(start + wire.PACKET_SEVERITY, 4)
        self.check(severity, end)
        number = min(max(severity, LEAST), MOST) - LEAST
        self.severity = self.levels[number]
        self.verbosity = self.verbosities[number]
        self.given = GIVEN
        self.pid = self.packets.number(start, 8)
        self.tid = self.packets.number(start + wire.PACKET_TID, 8)
        self.dropped = self.packets.number(start + wire.PACKET_DROPPED, 4) & tables.LOW32
        return self.row(self.packets.number(start + wire.PACKET_TIME, 8), self.joined(first))

    def check(self, severity: i64, end: i64) -> status:
        """Report findings about the packet up to byte ``end``."""
        offset = self.framer.offset
        index = self.framer.index
        rest = end - self.message_at - self.message_bytes - 1
        if self.framer.size > wire.MAX_PACKET:
            self.notes.add(rules.OVER_A_DATAGRAM, offset, index, self.framer.size)
        if self.between_levels(severity):
            self.notes.add(rules.SEVERITY_OF_ERAS, offset, index, severity)
        if rest > 0:
            self.notes.add(rules.TRAILING_BYTES, offset, index, rest)
        if not (self.sound and self.utf8.valid(self.message_at, self.message_bytes)):
            self.notes.add(rules.PACKET_NOT_UTF8, offset, index, 0)
        return 0

    def tag(self, at: i64) -> Fallible[i64]:
        """Add the tag at byte ``at``. Return the offset after it."""
        nbytes = self.data[at]
        for place in range(nbytes):
            self.letters[place] = self.data[at + 1 + place]
        name = self.pool.intern(0, nbytes)
        if not self.pool.valid[name]:
            self.sound = 0
        self.tag_row(name, at)
        return at + 1 + nbytes
