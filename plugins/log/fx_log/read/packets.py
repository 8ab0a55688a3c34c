"""The scan of legacy packets: decodes their bytes into raw columns.

It decodes the same bytes as ``decoder.py`` and ``entries.py``; tests compare the results.
"""

from __future__ import annotations

from fx_log.format import (
    MAX_PACKET,
    PACKET_DROPPED,
    PACKET_HEADER,
    PACKET_SEVERITY,
    PACKET_TID,
    PACKET_TIME,
)
from fx_log.read.columns import Totals
from fx_log.read.framing import Framer
from fx_log.read.row_scan import RowScan
from fx_log.read.tables import (
    DEBUG_LEVEL,
    FATAL_LEVEL,
    GIVEN_MESSAGE,
    GIVEN_PID,
    GIVEN_TID,
    INFO_LEVEL,
    LEVEL_STEP,
    LOW32,
    NO_STRING,
    PACKET,
    RARE_DROPPED,
    RARE_VERBOSITY,
    TRACE_LEVEL,
)
from fx_log.rules import (
    LOGS_LOST,
    OVER_A_DATAGRAM,
    PACKET_NOT_UTF8,
    SEVERITY_OF_ERAS,
    TIME_DECREASES,
    TRAILING_BYTES,
)
from fxframework.kernels.annotations import Bytes, Fallible, flag, i64, status
from fxframework.kernels.notes import Notes
from fxframework.kernels.pools import Pool

__all__ = ["PacketScan"]

GIVEN = GIVEN_MESSAGE | GIVEN_PID | GIVEN_TID


class PacketScan(RowScan):
    """Decodes the legacy packets that a framer finds; ``run`` stops as that of ``LogScan``."""

    data: Bytes
    severity: i64
    verbosity: i64
    sound: flag

    def __init__(
        self, framer: Framer, data: memoryview, pool: Pool, notes: Notes, totals: Totals
    ) -> None:
        # Strings of packets are not aligned: they are copied to whole words.
        RowScan.__init__(self, framer, data, pool, notes, totals, 64)
        self.data = memoryview(data)
        self.severity = 0
        self.verbosity = 0
        self.sound = 1

    def configure(self, *, era_2022: bool) -> None:
        """Set the reader's option."""
        self.era_2022 = int(era_2022)

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

    def number(self, at: i64, nbytes: i64) -> i64:
        """Return the signed little-endian number of ``nbytes`` bytes."""
        value = self.data[at + nbytes - 1]
        if value >= 128:
            value -= 256
        for place in range(nbytes - 2, -1, -1):
            value = (value << 8) | self.data[at + place]
        return value

    def packet(self, start: i64, end: i64) -> status:
        """Decode the sound packet of bytes ``start`` to ``end``."""
        self.framer.kinds[PACKET] += 1
        if self.logs.rows == self.logs.room:
            self.logs.grow()
        row = self.logs.rows
        self.sound = 1
        first = self.tags.rows
        at = start + PACKET_HEADER
        while self.data[at]:
            at = self.tag(at)
        message = at + 1
        stop = message
        while self.data[stop]:
            stop += 1
        self.check(self.number(start + PACKET_SEVERITY, 4), message, stop, end)
        self.take_severity(self.number(start + PACKET_SEVERITY, 4))
        ns = self.number(start + PACKET_TIME, 8)
        self.logs.offset[row] = self.framer.offset
        self.logs.ns[row] = ns
        self.logs.start[row] = message
        self.logs.length[row] = stop - message
        self.logs.severity[row] = self.severity
        self.logs.given[row] = GIVEN
        self.logs.pid[row] = self.number(start, 8)
        self.logs.tid[row] = self.number(start + PACKET_TID, 8)
        self.logs.tags[row] = self.joined(first)
        self.logs.component[row] = NO_STRING
        self.logs.url[row] = NO_STRING
        self.logs.file[row] = NO_STRING
        self.logs.line[row] = 0
        self.logs.tag[row] = 0
        self.logs.rows = row + 1
        self.totals.severities[self.severity] += 1
        dropped = self.number(start + PACKET_DROPPED, 4) & LOW32
        if ns < self.totals.last_ns:
            self.notes.add(
                TIME_DECREASES, self.framer.offset, self.framer.index, self.totals.last_ns
            )
        if dropped:
            self.notes.add(LOGS_LOST, self.framer.offset, self.framer.index, dropped)
            self.totals.count_lost(dropped, 0)
            self.rarity(self.logs.first + row, RARE_DROPPED, dropped)
        if self.verbosity:
            self.rarity(self.logs.first + row, RARE_VERBOSITY, self.verbosity)
        self.totals.time(ns)
        return 0

    def check(self, severity: i64, message: i64, stop: i64, end: i64) -> status:
        """Report findings about the packet, whose message is bytes ``message`` to ``stop``."""
        if self.framer.size > MAX_PACKET:
            self.notes.add(OVER_A_DATAGRAM, self.framer.offset, self.framer.index, self.framer.size)
        if severity & 15 or severity < TRACE_LEVEL or severity > FATAL_LEVEL:
            self.notes.add(SEVERITY_OF_ERAS, self.framer.offset, self.framer.index, severity)
        if stop + 1 < end:
            self.notes.add(TRAILING_BYTES, self.framer.offset, self.framer.index, end - stop - 1)
        if not (self.sound and self.utf8.valid(message, stop - message)):
            self.notes.add(PACKET_NOT_UTF8, self.framer.offset, self.framer.index, 0)
        return 0

    def take_severity(self, severity: i64) -> i64:
        """Set severity and verbosity from a packet's number, as the era defines."""
        self.verbosity = 0
        self.severity = 0 if severity < 0 else min(severity, 255)
        if not self.era_2022:
            return 0
        if -10 <= severity <= -3:
            self.severity = DEBUG_LEVEL
            self.verbosity = -severity - 2
        elif -2 <= severity <= 3:
            self.severity = TRACE_LEVEL + LEVEL_STEP * (severity + 2)
        elif DEBUG_LEVEL < severity < INFO_LEVEL:
            self.severity = DEBUG_LEVEL
            self.verbosity = INFO_LEVEL - severity
        return 0

    def tag(self, at: i64) -> Fallible[i64]:
        """Add the tag at byte ``at``. Return the offset after it."""
        nbytes = self.data[at]
        for place in range(nbytes):
            self.letters[place] = self.data[at + 1 + place]
        name = self.pool.intern(0, nbytes)
        if not self.pool.valid[name]:
            self.sound = 0
        self.totals.count_tag(name)
        self.tag_row(name, at)
        return at + 1 + nbytes

    def joined(self, first: i64) -> Fallible[i64]:
        """Return the code of the packet's tags, joined by commas."""
        if self.tags.rows == first:
            return NO_STRING
        if self.tags.rows == first + 1:
            return self.tags.name[first]
        total = 0
        for row in range(first, self.tags.rows):
            if row > first:
                self.letters[total] = 44
                total += 1
            at = self.tags.offset[row]
            for place in range(self.data[at]):
                self.letters[total] = self.data[at + 1 + place]
                total += 1
        return self.pool.intern(0, total)
