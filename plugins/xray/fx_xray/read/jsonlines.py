"""Record JSON of sound records in bulk, straight from their bytes.

A third way beside the two decoders: it writes exactly the lines that ``orjson.dumps`` makes of
``record.to_json()``, and leaves to ``decoder.py`` what is damaged, unknown, cut in half, or at a
place where a buffer does not end as it should. Tests compare its lines with those.
"""

from __future__ import annotations

from fx_xray import layout
from fx_xray.numbers import (
    BIG,
    BIG_LSB,
    BUFFER_EXTENTS,
    CALL_ARGUMENT,
    CUSTOM_EVENT,
    ENTER_ARG,
    FUNCTION,
    KIND_NAMES,
    LITTLE,
    LOW64,
    NEW_BUFFER,
    NEW_CPU,
    NOTHING,
    PID,
    TSC_WRAP,
    TYPED_EVENT,
    WALL_TIME,
)
from fx_xray.read.scan import Bytes
from fxframework.kernels.annotations import Fallible, View, flag, i64, status, u8, u64, virtual
from fxframework.kernels.kernel import Kernel
from fxframework.kernels.output import Output

__all__ = ["END", "FULL", "NOT_PLAIN", "BasicLines", "FdrLines"]

END, FULL, NOT_PLAIN = range(3)
"""Why a writer of lines stopped: at the end, at its bound, at a record that is not plain."""
TEXTS = (
    b',"nbytes":', b',"kind":"enter","function_id":', b',"kind":"exit","function_id":',
    b',"kind":"tail_exit","function_id":', b',"kind":"enter_arg","function_id":',
    b',"function_id":', b',"delta":', b',"tsc":', b',"cpu":', b',"thread":', b',"process":',
    b',"value":', b',"seconds":', b',"micros":', b',"bytes":', b',"event_type":',
    b',"padding_hex":"', b',"data_hex":"', b',"raw":"', b'"', b"}\n",
    *(b'{"record":"%s","offset":' % name.encode() for name in KIND_NAMES),
)  # fmt: skip
(
    NBYTES, KIND, _, _, _, FUNCTION_ID, DELTA, TSC, CPU, THREAD, PROCESS, VALUE, SECONDS, MICROS,
    BYTES, TYPE_OF_EVENT, PADDING_HEX, DATA_HEX, RAW, END_OF_HEX, END_OF_RECORD, RECORD,
) = range(22)  # fmt: skip
HEADER_BYTES = layout.HEADER_BYTES
BASIC_BYTES = layout.BASIC_BYTES
FUNCTION_BYTES = layout.FUNCTION_BYTES
METADATA_BYTES = layout.METADATA_BYTES
LOW28 = layout.MAX_FUNCTION_ID
ARGUMENT_TYPE = layout.BASIC_ARGUMENT
FAR = layout.CUT_RECORD_JUMP
OF_EXTENTS = layout.EXTENTS_VERSION
OF_CPU = layout.EVENT_CPU_VERSION
OF_DELTA = layout.EVENT_DELTA_VERSION


class Lines(Kernel):
    """What writes the lines of records from byte ``pos`` on.

    ``run`` gives END behind the last record, FULL once ``most`` bytes are written, NOT_PLAIN at a
    record that it leaves to ``decoder.py``.
    """

    bytes: Bytes
    data: View[u8]
    out: Output
    size: i64
    most: i64
    pos: i64

    def __init__(self, data: memoryview, *, big: bool, most: int) -> None:
        self.bytes = Bytes(data, big=big)
        self.data = self.bytes.data
        self.size = self.bytes.size
        self.out = Output(TEXTS, data)
        self.most = most
        self.pos = 0

    def step(self) -> Fallible[i64]:
        """Write lines."""
        while self.out.used < self.most:
            if self.pos >= self.size:
                return END
            before = self.out.used
            nbytes = self.record(self.pos)
            if not nbytes:
                self.out.used = before
                return NOT_PLAIN
            self.out.literal(END_OF_RECORD)
            self.pos += nbytes
        return FULL

    @virtual
    def record(self, at: i64) -> Fallible[i64]:  # noqa: ARG002 (what each mode overrides)
        """Write the record at byte ``at``, but for its end; return its bytes, 0: not plain."""
        return 0

    def begin(self, kind: i64, at: i64, nbytes: i64) -> status:
        """Write what every record begins with."""
        self.out.literal(RECORD + kind)
        self.out.signed(at)
        self.out.literal(NBYTES)
        self.out.signed(nbytes)
        return 0

    def member(self, name: i64, value: i64) -> status:
        """Write a member that is a number with a sign."""
        self.out.literal(name)
        self.out.signed(value)
        return 0

    def natural(self, name: i64, value: u64) -> status:
        """Write a member that is a number without a sign."""
        self.out.literal(name)
        self.out.natural(value)
        return 0

    def octets(self, name: i64, start: i64, end: i64) -> status:
        """Write a member that is the bytes ``start`` to ``end`` in hex."""
        self.out.literal(name)
        self.out.hexadecimal(start, end - start)
        self.out.literal(END_OF_HEX)
        return 0

    def zero(self, start: i64, end: i64) -> flag:
        """Return whether bytes ``start`` to ``end`` are all zero."""
        while start < end:
            if self.data[start]:
                return False
            start += 1
        return True

    def padding(self, start: i64, end: i64) -> status:
        """Write the bytes behind the fields where they are not zero."""
        if not self.zero(start, end):
            self.octets(PADDING_HEX, start, end)
        return 0


class BasicLines(Lines):
    """Writes the lines of records of basic mode, each of which says all by itself."""

    def record(self, at: i64) -> Fallible[i64]:
        """Write the record at byte ``at``, but for its end; return its bytes, 0: not plain."""
        if at < HEADER_BYTES or self.size - at < BASIC_BYTES:
            return 0
        type = self.bytes.number(at, 2)
        if type == ARGUMENT_TYPE:
            return self.argument(at)
        kind = self.data[at + 3]
        if type or kind > ENTER_ARG:
            return 0
        self.begin(FUNCTION, at, BASIC_BYTES)
        self.member(KIND + kind, self.bytes.signed32(at + 4))
        self.natural(TSC, self.bytes.number(at + 8, 8))
        self.member(CPU, self.data[at + 2])
        self.member(THREAD, self.bytes.number(at + 16, 4))
        self.member(PROCESS, self.bytes.number(at + 20, 4))
        self.padding(at + 24, at + BASIC_BYTES)
        return BASIC_BYTES

    def argument(self, at: i64) -> Fallible[i64]:
        """Write the argument at byte ``at``; return its bytes."""
        self.begin(CALL_ARGUMENT, at, BASIC_BYTES)
        self.member(FUNCTION_ID, self.bytes.signed32(at + 4))
        self.member(THREAD, self.bytes.number(at + 8, 4))
        self.member(PROCESS, self.bytes.number(at + 12, 4))
        self.natural(VALUE, self.bytes.number(at + 16, 8))
        # What has no field is in two places.
        if not (self.zero(at + 2, at + 4) and self.zero(at + 24, at + BASIC_BYTES)):
            self.out.literal(PADDING_HEX)
            self.out.hexadecimal(at + 2, 2)
            self.out.hexadecimal(at + 24, 8)
            self.out.literal(END_OF_HEX)
        return BASIC_BYTES


class FdrLines(Lines):
    """Writes the lines of records of the flight data recorder.

    What a record's line needs of those before it is in the attributes: the bound of the buffer,
    and the time, the CPU and the thread that its records have said. The host sets them, and takes
    them back, where it reads a record by ``decoder.py``. ``trusted`` is 0 where that is in doubt
    about what comes, ``has_*`` are 0 of what no record has said.
    """

    version: i64
    order: i64
    max_record: i64
    limit: i64
    base: u64
    cpu: i64
    thread: i64
    process: i64
    trusted: flag
    bounded: flag
    by_extents: flag
    open: flag
    settled: flag
    has_base: flag
    has_cpu: flag
    has_thread: flag
    has_process: flag

    def __init__(
        self, data: memoryview, *, version: int, order: int, limit: int, most: int
    ) -> None:
        Lines.__init__(self, data, big=order != LITTLE, most=most)
        self.version = version
        self.order = order
        self.max_record = limit
        self.trusted = 0
        self.limit = 0
        self.bounded = 0
        self.by_extents = 0
        self.open = 0
        self.settled = 0
        self.base = 0
        self.has_base = 0
        self.cpu = 0
        self.has_cpu = 0
        self.thread = 0
        self.has_thread = 0
        self.process = 0
        self.has_process = 0

    def record(self, at: i64) -> Fallible[i64]:
        """Write the record at byte ``at``, but for its end; return its bytes, 0: not plain."""
        if not self.trusted or at < HEADER_BYTES:
            return 0
        first = self.data[at]
        if at == self.limit:
            return self.extents(at) if self.by_extents and self.kind(first) == BUFFER_EXTENTS else 0
        if not first & (0x80 if self.order == BIG else 1):
            return self.function(at)
        if at + METADATA_BYTES > self.limit:
            return 0
        kind = self.kind(first)
        if kind == CALL_ARGUMENT:
            return self.argument(at)
        if kind in (NEW_CPU, TSC_WRAP):
            return self.clock(at, kind)
        if kind in (CUSTOM_EVENT, TYPED_EVENT):
            return self.event(at, kind)
        if kind in (NEW_BUFFER, WALL_TIME, PID):
            return self.preamble(at, kind)
        return 0

    def kind(self, first: i64) -> i64:
        """Return the kind of the metadata record with this first byte; -1 of a function record."""
        if self.order == BIG:
            return first & 0x7F if first & 0x80 else NOTHING
        return first >> 1 if first & 1 else NOTHING

    def open_buffer(self) -> i64:
        """Know nothing of the buffer yet."""
        self.open = 1
        self.settled = 0
        self.has_base = 0
        self.has_cpu = 0
        self.has_thread = 0
        self.has_process = 0
        return 0

    def extents(self, at: i64) -> Fallible[i64]:
        """Write the extents at byte ``at``, where the buffer before them ends."""
        left = self.size - at - METADATA_BYTES
        nbytes = self.bytes.number(at + 1, 8)
        if left < 0 or nbytes < 0 or nbytes > left:
            return 0
        self.limit = at + METADATA_BYTES + nbytes
        self.bounded = 1
        self.open_buffer()
        self.begin(BUFFER_EXTENTS, at, METADATA_BYTES)
        self.member(BYTES, nbytes)
        self.padding(at + 9, at + METADATA_BYTES)
        return METADATA_BYTES

    def preamble(self, at: i64, kind: i64) -> Fallible[i64]:
        """Write a record that says whose buffer it is, or when it began."""
        if not self.open:
            self.open_buffer()
        self.begin(kind, at, METADATA_BYTES)
        if kind == WALL_TIME:
            self.member(SECONDS, self.bytes.number(at + 1, 8))
            self.member(MICROS, self.bytes.signed32(at + 9))
            self.padding(at + 13, at + METADATA_BYTES)
            return METADATA_BYTES
        value = self.bytes.signed32(at + 1)
        if kind == NEW_BUFFER:
            if self.settled or self.has_thread:
                self.open_buffer()
            self.thread = value
            self.has_thread = 1
            self.member(THREAD, value)
        else:
            if not self.settled:
                self.process = value
                self.has_process = 1
            self.member(PROCESS, value)
        self.padding(at + 5, at + METADATA_BYTES)
        return METADATA_BYTES

    def place(self) -> status:
        """Write whose record it is."""
        thread = self.thread if self.has_thread else 0
        self.member(THREAD, thread)
        if self.has_process:
            self.member(PROCESS, self.process)
        else:
            self.member(PROCESS, thread if self.version == OF_EXTENTS else 0)
        return 0

    def when(self) -> status:
        """Write the time and the CPU, as far as they are known."""
        if self.has_base:
            self.natural(TSC, self.base)
        if self.has_cpu:
            self.member(CPU, self.cpu)
        return 0

    def function(self, at: i64) -> Fallible[i64]:
        """Write the function record at byte ``at``; return its bytes, 0: not plain."""
        if at + FUNCTION_BYTES > self.limit:
            return 0
        word = self.bytes.number(at, 4)
        kind = (word >> 28 if self.order == BIG else word >> 1) & 7
        if kind > ENTER_ARG:
            return 0
        if not self.open:
            self.open_buffer()
        self.settled = 1
        delta = self.bytes.number(at + 4, 4)
        if self.has_base:
            self.base = (self.base + delta) & LOW64
        self.begin(FUNCTION, at, FUNCTION_BYTES)
        self.member(KIND + kind, word & LOW28 if self.order == BIG else word >> 4)
        self.member(DELTA, delta)
        self.when()
        self.place()
        if self.order == BIG_LSB and word & 1:
            self.octets(RAW, at, at + FUNCTION_BYTES)
        return FUNCTION_BYTES

    def argument(self, at: i64) -> Fallible[i64]:
        """Write the argument at byte ``at``; return its bytes."""
        if not self.open:
            self.open_buffer()
        self.settled = 1
        self.begin(CALL_ARGUMENT, at, METADATA_BYTES)
        self.natural(VALUE, self.bytes.number(at + 1, 8))
        self.padding(at + 9, at + METADATA_BYTES)
        return METADATA_BYTES

    def clock(self, at: i64, kind: i64) -> Fallible[i64]:
        """Write a record that says the time; return its bytes, 0: not plain."""
        if not self.open:
            self.open_buffer()
        start = at + 3 if kind == NEW_CPU else at + 1
        tsc: u64 = self.bytes.number(start, 8) & LOW64
        if self.has_base:
            # A record that leads so far may have been cut in half.
            far: u64 = tsc - self.base if tsc > self.base else self.base - tsc
            if far > FAR:
                return 0
        self.base = tsc
        self.has_base = 1
        self.begin(kind, at, METADATA_BYTES)
        if kind == NEW_CPU:
            self.cpu = self.bytes.number(at + 1, 2)
            self.has_cpu = 1
            self.member(CPU, self.cpu)
        self.natural(TSC, tsc)
        self.padding(start + 8, at + METADATA_BYTES)
        if kind == TSC_WRAP and self.has_cpu:
            self.member(CPU, self.cpu)
        self.place()
        return METADATA_BYTES

    def event(self, at: i64, kind: i64) -> Fallible[i64]:
        """Write the event at byte ``at`` and its payload; return its bytes, 0: not plain."""
        size = self.bytes.signed32(at + 1)
        start = at + METADATA_BYTES
        if size < 0 or start + size > self.limit:
            return 0
        if 0 < self.max_record < METADATA_BYTES + size:
            return 0
        if not self.open:
            self.open_buffer()
        self.settled = 1
        self.begin(kind, at, METADATA_BYTES + size)
        fields = at + 9 if self.version >= OF_DELTA else at + 13
        if kind == TYPED_EVENT:
            self.member(TYPE_OF_EVENT, self.bytes.number(fields, 2))
            fields += 2
        if self.version >= OF_DELTA:
            delta = self.bytes.signed32(at + 5)
            self.member(DELTA, delta)
            if self.has_base:
                self.base = (self.base + delta) & LOW64
            self.padding(fields, start)
            self.when()
        else:
            cpu = -1
            if kind == CUSTOM_EVENT and self.version == OF_CPU:
                cpu = self.bytes.number(fields, 2)
                fields += 2
            self.padding(fields, start)
            self.natural(TSC, self.bytes.number(at + 5, 8))
            if cpu >= 0:
                self.member(CPU, cpu)
        self.place()
        self.octets(DATA_HEX, start, start + size)
        return METADATA_BYTES + size
