"""Record JSON of blocks in bulk, straight from their words.

It writes exactly the lines that ``orjson.dumps`` makes of ``record.to_json()``, for blocks about
which there is no finding, and leaves the others to ``decoder.py``. Tests compare its lines with
those.
"""

from __future__ import annotations

from collections.abc import Sequence

from fx_inspect import format as wire
from fx_inspect.read.scan import Scan
from fxframework.io.words import WORD
from fxframework.kernels.annotations import Bytes, Fallible, View, f64, i64, status
from fxframework.kernels.kernel import Kernel
from fxframework.kernels.output import Output
from fxframework.kernels.utf8 import Utf8

__all__ = ["AS_NATURAL", "AS_REAL", "AS_SIGNED", "TEXTS", "JsonLines"]

TEXTS = (
    b'{"record":"block","offset":', b',"nbytes":', b',"index":', b',"name":', b',"payload_hex":"',
    b'","capacity":', b',"inline_hex":"', b'"', b',"slots":[', b',"slot_indexes":[', b",", b"]",
    b',"raw":"', b'"}\n', b"}\n",
)  # fmt: skip
(
    OFFSET, NBYTES, INDEX, NAME_TEXT, PAYLOAD, CAPACITY, INLINE, END_OF_BYTES, SLOTS, SLOT_INDEXES,
    COMMA, END_OF_SLOTS, RAW, END_OF_RAW, END_OF_RECORD,
) = range(len(TEXTS))  # fmt: skip

KINDS = ("natural", "signed", "real")
"""How a field is shown, by number; greater ones are the literal of its value 0."""
AS_NATURAL = 0
AS_SIGNED = 1
AS_REAL = 2
FIELD = 5

ONE = 1
LENGTH = wire.HEADS["new"].name_length.limit
EXPONENT = 0x7FF0000000000000
END = 0
FULL = 1
NOT_PLAIN = 2


class JsonLines(Kernel):
    """Writes the lines of the scan's blocks from number ``records`` on, which is at unit ``pos``.

    ``run`` gives END behind the last record, FULL once ``most`` bytes are written, and NOT_PLAIN at
    what is not a block of a known type, and at blocks that only ``decoder.py`` can show.

    ``data`` is the file as octets, words and doubles. ``layout`` (int64) is three arrays: for each
    type the bits of both words that must be zero, and those that no field has; where the fields of
    each type begin and those of the last one end; and the fields, FIELD numbers each: literal,
    word, lowest bit, mask, and how it is shown. ``texts`` are their literals, which count on from
    ``TEXTS``.
    """

    scan: Scan
    words: View[i64]
    doubles: View[f64]
    octets: Bytes
    utf8: Utf8
    out: Output
    masks: View[i64]
    bounds: View[i64]
    fields: View[i64]
    most: i64
    pos: i64
    records: i64

    def __init__(
        self,
        scan: Scan,
        data: Sequence[memoryview],
        layout: Sequence[memoryview],
        texts: Sequence[bytes],
        most: int,
    ) -> None:
        octets, words, doubles = data
        self.scan = scan
        self.words = memoryview(words)
        self.doubles = memoryview(doubles)
        self.octets = memoryview(octets)
        self.utf8 = Utf8(octets)
        self.out = Output((*TEXTS, *texts), octets)
        masks, bounds, fields = layout
        self.masks = memoryview(masks)
        self.bounds = memoryview(bounds)
        self.fields = memoryview(fields)
        self.most = most
        self.pos = 0
        self.records = 0

    def step(self) -> Fallible[i64]:
        """Write lines."""
        while self.out.used < self.most:
            if self.records == self.scan.count and not self.scan.following():
                return END
            before = self.out.used
            if not self.block(self.scan.unit[self.records]):
                self.out.used = before
                return NOT_PLAIN
            self.records += 1
        return FULL

    def block(self, unit: i64) -> status:
        """Write the block at a unit, and go behind it: 1, or 0 where it is not plain."""
        type = self.scan.type[self.records]
        order = self.scan.order[self.records]
        if unit == 0 or type > wire.STRING or type in (wire.HEADER, wire.RESERVED):
            return 0
        size = ONE << order
        word = self.words[2 * unit]
        payload = self.words[2 * unit + 1]
        if (word & self.masks[4 * type]) != 0 or (payload & self.masks[4 * type + 1]) != 0:
            return 0
        if order > wire.MAX_ORDER or (type == wire.BOOL and payload not in (0, 1)):
            return 0
        start = wire.UNIT * unit
        end = start + wire.UNIT * size
        self.out.literal(OFFSET)
        self.out.natural(start)
        self.out.literal(NBYTES)
        self.out.natural(wire.UNIT * size)
        self.out.literal(INDEX)
        self.out.natural(unit)
        row = self.bounds[type]
        while row < self.bounds[type + 1]:
            if not self.field(FIELD * row, unit):
                return 0
            row += 1
        behind = self.contents(type, start, end)
        if behind < 0:
            return 0
        raw = 0
        if (word & self.masks[4 * type + 2]) != 0 or (payload & self.masks[4 * type + 3]) != 0:
            raw = 1
        while behind % WORD != 0:
            raw |= self.octets[behind]
            behind += 1
        while behind < end and raw == 0:
            raw = 1 if self.words[behind // WORD] != 0 else 0
            behind += WORD
        if raw != 0:
            self.out.literal(RAW)
            self.out.hexadecimal(start, wire.UNIT * size)
            self.out.literal(END_OF_RAW)
        else:
            self.out.literal(END_OF_RECORD)
        self.pos = unit + size
        return 1

    def field(self, at: i64, unit: i64) -> status:
        """Write a field of the block at a unit: 1, or 0 for a double that JSON does not have."""
        self.out.literal(self.fields[at])
        place = 2 * unit + self.fields[at + 1]
        value = (self.words[place] >> self.fields[at + 2]) & self.fields[at + 3]
        shown = self.fields[at + 4]
        if shown == AS_NATURAL:
            self.out.natural(value)
        elif shown == AS_SIGNED:
            self.out.signed(value)
        elif shown == AS_REAL:
            return self.real(place)
        else:
            self.out.literal(shown + value)
        return 1

    def real(self, place: i64) -> status:
        """Write the double that is a word: 1, or 0 where JSON does not have it."""
        if (self.words[place] & EXPONENT) == EXPONENT:
            return 0
        self.out.real(self.doubles[place], self.words[place])
        return 1

    def contents(self, type: i64, start: i64, end: i64) -> Fallible[i64]:
        """Write what a block holds behind its fields; return the byte behind it, or -1."""
        payload = self.words[start // WORD + 1]
        at = start + wire.UNIT
        if type == wire.NAME:
            at = start + 8
            nbytes = min((self.words[start // WORD] >> self.scan.index_at) & LENGTH, end - at)
            if not self.utf8.valid(at, nbytes):
                return -1
            self.out.literal(NAME_TEXT)
            self.out.json_text(at, nbytes)
            at += nbytes
        elif type == wire.EXTENT:
            self.out.literal(PAYLOAD)
            self.out.hexadecimal(start + 8, end - start - 8)
            self.out.literal(CAPACITY)
            self.out.natural(end - start - 8)
            at = end
        elif type == wire.STRING:
            at = start + 12
            nbytes = min(wire.STRING_LENGTH.get(payload), end - at)
            self.out.literal(INLINE)
            self.out.hexadecimal(at, nbytes)
            self.out.literal(END_OF_BYTES)
            at += nbytes
        elif type == wire.ARRAY:
            at = self.slots(wire.ENTRY_TYPE.get(payload), wire.SLOT_COUNT.get(payload), at, end)
        return at

    def slots(self, entry: i64, count: i64, at: i64, end: i64) -> Fallible[i64]:
        """Write the slots of an array from byte ``at``; return the byte behind them, or -1."""
        size = 4 if entry == wire.STRING else 8
        if entry < wire.INT or (entry > wire.DOUBLE and entry != wire.STRING):
            return at
        self.out.literal(SLOT_INDEXES if entry == wire.STRING else SLOTS)
        stop = min(at + size * count, end)
        first = at
        while at < stop:
            if at > first:
                self.out.literal(COMMA)
            word = self.words[at // WORD]
            if entry == wire.INT:
                self.out.signed(word)
            elif entry == wire.UINT:
                self.out.natural(word)
            elif entry == wire.STRING:
                self.out.natural(wire.SLOT_STRING.get(word >> 8 * (at % WORD)))
            elif not self.real(at // WORD):
                return -1
            at += size
        self.out.literal(END_OF_SLOTS)
        return at
