"""Record JSON of legacy packets in bulk, straight from their bytes.

A third way beside the two decoders, as ``jsonlines.py`` is for structured records: packets that
are sound and of UTF-8 are written here, the others by ``decoder.py``. Tests compare the lines.
"""

from __future__ import annotations

from fx_log import format as wire
from fx_log.read import tables
from fx_log.read.framing import FRAME, PacketFramer
from fxframework.kernels.annotations import Bytes, Fallible, i64, status
from fxframework.kernels.kernel import Kernel
from fxframework.kernels.output import Output
from fxframework.kernels.utf8 import Utf8

__all__ = ["PacketLines"]

TEXTS = (
    b'{"record":"legacy_packet","offset":', b',"nbytes":', b',"pid":', b',"tid":', b',"timestamp":',
    b',"severity":', b',"raw_severity":', b',"dropped_logs":', b',"tags":[', b",", b'],"message":',
    b',"raw":"', b'"', b"}\n",
)  # fmt: skip
(
    RECORD_OFFSET, NBYTES, PID_TEXT, TID_TEXT, TIMESTAMP, SEVERITY, RAW_SEVERITY, DROPPED, TAGS,
    COMMA, MESSAGE_TEXT, RAW, END_OF_RAW, END_OF_RECORD,
) = range(len(TEXTS))  # fmt: skip
MOST_SEVERE = 255


class PacketLines(Kernel):
    """Writes the lines of the packets of our container from byte ``pos`` on.

    ``run`` gives END at the end of the file, FULL once ``most`` bytes are written, and NOT_PLAIN at
    the container's header and at a packet that is damaged, or not of UTF-8.
    """

    framer: PacketFramer
    data: Bytes
    utf8: Utf8
    out: Output
    total: i64
    most: i64
    pos: i64

    def __init__(self, framer: PacketFramer, data: memoryview, most: int) -> None:
        self.framer = framer
        self.data = memoryview(data)
        self.utf8 = Utf8(data)
        self.out = Output(TEXTS, data)
        self.total = len(data)
        self.most = most
        self.pos = 0

    def step(self) -> Fallible[i64]:
        """Write lines."""
        while self.out.used < self.most:
            if self.pos >= self.total:
                return tables.END
            before = self.out.used
            self.framer.pos = self.pos
            if self.pos < wire.STREAM_HEADER or self.framer.next() != FRAME or not self.packet():
                self.out.used = before
                return tables.NOT_PLAIN
            self.pos = self.framer.pos
        return tables.FULL

    def packet(self) -> status:
        """Write the packet that the framer found: 1, or 0 where it is not plain."""
        start = self.framer.start
        size = self.framer.size
        self.out.literal(RECORD_OFFSET)
        self.out.signed(self.framer.offset)
        self.out.literal(NBYTES)
        self.out.signed(wire.STREAM_LENGTH + size)
        self.head(start)
        message = self.tags(start + wire.PACKET_HEADER)
        if not message:
            return 0
        stop = message
        while self.data[stop]:
            stop += 1
        if not self.utf8.valid(message, stop - message):
            return 0
        self.out.literal(MESSAGE_TEXT)
        self.out.json_text(message, stop - message)
        if stop + 1 < start + size or size > wire.MAX_PACKET:
            self.out.literal(RAW)
            self.out.hexadecimal(self.framer.offset, wire.STREAM_LENGTH + size)
            self.out.literal(END_OF_RAW)
        self.out.literal(END_OF_RECORD)
        return 1

    def head(self, start: i64) -> status:
        """Write the numbers of the packet that begins at byte ``start``."""
        self.out.literal(PID_TEXT)
        self.out.natural(self.framer.number(start, 8))
        self.out.literal(TID_TEXT)
        self.out.natural(self.framer.number(start + wire.PACKET_TID, 8))
        self.out.literal(TIMESTAMP)
        self.out.signed(self.framer.number(start + wire.PACKET_TIME, 8))
        severity = self.framer.number(start + wire.PACKET_SEVERITY, 4)
        self.out.literal(SEVERITY)
        self.out.signed(severity)
        self.out.literal(RAW_SEVERITY)
        self.out.signed(min(max(severity, 0), MOST_SEVERE))
        self.out.literal(DROPPED)
        self.out.signed(self.framer.number(start + wire.PACKET_DROPPED, 4) & tables.LOW32)
        return 0

    def tags(self, at: i64) -> Fallible[i64]:
        """Write the tags from byte ``at`` on; return the byte behind them, or 0: not plain."""
        self.out.literal(TAGS)
        first = at
        while self.data[at]:
            size = self.data[at]
            if not self.utf8.valid(at + 1, size):
                return 0
            if at > first:
                self.out.literal(COMMA)
            self.out.json_text(at + 1, size)
            at += 1 + size
        return at + 1
