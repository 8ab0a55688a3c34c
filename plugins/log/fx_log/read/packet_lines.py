"""Record JSON of legacy packets in bulk, straight from their bytes.

A third way beside the two decoders, as ``jsonlines.py`` is for structured records: packets that
are sound and of UTF-8 are written here, the others by ``decoder.py``. Tests compare the lines.
"""

from __future__ import annotations

from fx_log import format as wire
from fx_log.read import tables
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
LENGTH = wire.STREAM_LENGTH
FIRST = wire.STREAM_HEADER
MOST_SEVERE = 255


class PacketLines(Kernel):
    """Writes the lines of the packets of our container from byte ``pos`` on.

    ``run`` gives END at the end of the file, FULL once ``most`` bytes are written, and NOT_PLAIN at
    the container's header and at a packet that is damaged, or not of UTF-8.
    """

    data: Bytes
    utf8: Utf8
    out: Output
    total: i64
    most: i64
    pos: i64

    def __init__(self, data: memoryview, most: int) -> None:
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
            end = self.record(self.pos)
            if not end:
                self.out.used = before
                return tables.NOT_PLAIN
            self.pos = end
        return tables.FULL

    def number(self, at: i64, nbytes: i64) -> i64:
        """Return the signed little-endian number of so many bytes."""
        value = self.data[at + nbytes - 1]
        if value >= 128:
            value -= 256
        for place in range(nbytes - 2, -1, -1):
            value = 256 * value + self.data[at + place]
        return value

    def record(self, at: i64) -> Fallible[i64]:
        """Write the packet with its length at byte ``at``; return its end, 0 if it is not plain."""
        start = at + LENGTH
        if at < FIRST or start > self.total:
            return 0
        size = self.number(at, 4) & tables.LOW32
        end = start + size
        if end > self.total or size < wire.MIN_PACKET or self.data[end - 1]:
            return 0
        self.out.literal(RECORD_OFFSET)
        self.out.signed(at)
        self.out.literal(NBYTES)
        self.out.signed(LENGTH + size)
        self.head(start)
        message = self.tags(start + wire.PACKET_HEADER, end)
        if not message:
            return 0
        stop = message
        while stop < end and self.data[stop]:
            stop += 1
        if stop == end or not self.utf8.valid(message, stop - message):
            return 0
        self.out.literal(MESSAGE_TEXT)
        self.out.json_text(message, stop - message)
        if stop + 1 < end or size > wire.MAX_PACKET:
            self.out.literal(RAW)
            self.out.hexadecimal(at, LENGTH + size)
            self.out.literal(END_OF_RAW)
        self.out.literal(END_OF_RECORD)
        return end

    def head(self, start: i64) -> status:
        """Write the numbers of the packet that begins at byte ``start``."""
        self.out.literal(PID_TEXT)
        self.out.natural(self.number(start, 8))
        self.out.literal(TID_TEXT)
        self.out.natural(self.number(start + wire.PACKET_TID, 8))
        self.out.literal(TIMESTAMP)
        self.out.signed(self.number(start + wire.PACKET_TIME, 8))
        severity = self.number(start + wire.PACKET_SEVERITY, 4)
        self.out.literal(SEVERITY)
        self.out.signed(severity)
        self.out.literal(RAW_SEVERITY)
        self.out.signed(min(max(severity, 0), MOST_SEVERE))
        self.out.literal(DROPPED)
        self.out.signed(self.number(start + wire.PACKET_DROPPED, 4) & tables.LOW32)
        return 0

    def tags(self, at: i64, end: i64) -> Fallible[i64]:
        """Write the tags from byte ``at`` on; return the byte behind them, or 0: not plain."""
        self.out.literal(TAGS)
        count = 0
        while at < end:
            size = self.data[at]
            at += 1
            if size == 0:
                return at
            if count == wire.MAX_TAGS or size > wire.MAX_TAG_BYTES or at + size > end:
                return 0
            if not self.utf8.valid(at, size):
                return 0
            if count:
                self.out.literal(COMMA)
            self.out.json_text(at, size)
            count += 1
            at += size
        return 0
