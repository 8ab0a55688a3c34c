"""Record JSON of legacy packets in bulk, straight from their bytes.

Packets that are sound and of UTF-8 are written here, the others by ``decoder.py``, as in
``jsonlines.py``. Tests compare the lines.
"""

from __future__ import annotations

from fx_log import format as wire
from fx_log import tables
from fx_log.read.framing import PacketFramer
from fx_log.read.jsonlines import Lines
from fxframework.kernels.annotations import Bytes, Fallible, i64, status

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


class PacketLines(Lines):
    """Writes the lines of the packets of our container, but not of its header."""

    packets: PacketFramer
    data: Bytes

    def __init__(self, framer: PacketFramer, data: memoryview, most: int) -> None:
        Lines.__init__(self, framer, TEXTS, data, len(data), most)
        self.packets = framer
        self.data = memoryview(data)

    def line(self) -> Fallible[i64]:
        """Write the packet that the framer found: 1, or 0 where it is not plain."""
        if self.pos < wire.STREAM_HEADER:
            return 0
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
        self.out.natural(self.packets.number(start, 8))
        self.out.literal(TID_TEXT)
        self.out.natural(self.packets.number(start + wire.PACKET_TID, 8))
        self.out.literal(TIMESTAMP)
        self.out.signed(self.packets.number(start + wire.PACKET_TIME, 8))
        severity = self.packets.number(start + wire.PACKET_SEVERITY, 4)
        self.out.literal(SEVERITY)
        self.out.signed(severity)
        self.out.literal(RAW_SEVERITY)
        self.out.signed(min(max(severity, 0), MOST_SEVERE))
        self.out.literal(DROPPED)
        self.out.signed(self.packets.number(start + wire.PACKET_DROPPED, 4) & tables.LOW32)
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
