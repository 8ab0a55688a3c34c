"""Record JSON in bulk, straight from the words of structured records.

It writes exactly the lines that ``orjson.dumps`` makes of ``record.to_json()``, for records in
which every argument can be decoded, and leaves the others to ``decoder.py``. Tests compare its
lines with those.
"""

from __future__ import annotations

from collections.abc import Sequence

from fx_log import format as wire
from fx_log import tables
from fx_log.read.framing import FRAME, Framer
from fxframework.kernels.annotations import Fallible, View, f64, flag, i64, status, virtual
from fxframework.kernels.kernel import Kernel
from fxframework.kernels.output import Output
from fxframework.kernels.utf8 import Utf8

__all__ = ["JsonLines", "Lines"]

TEXTS = (
    b'{"record":"log","offset":', b',"nbytes":', b',"timestamp":', b',"severity":',
    b',"tag_bits":', b',"args":[', b'{"name":', b',"type":"null","value":null}',
    b',"type":"int64","value":', b',"type":"uint64","value":', b',"type":"double","value":',
    b',"type":"string","value":', b',"type":"bool","value":true}',
    b',"type":"bool","value":false}', b"]", b',"raw":"', b'"', b"}\n", b",", b"}", b'""',
    b'{"record":"ring_entry","offset":', b',"tag":', b',"length":', b',"log":{"timestamp":',
)  # fmt: skip
(
    RECORD_OFFSET, NBYTES, TIMESTAMP, SEVERITY, TAG_BITS_TEXT, ARGS, NAME, NULL_VALUE, INT64_VALUE,
    UINT64_VALUE, DOUBLE_VALUE, STRING_VALUE, TRUE_VALUE, FALSE_VALUE, END_OF_ARGS, RAW,
    END_OF_RAW, END_OF_RECORD, COMMA, END_OF_ARGUMENT, EMPTY_TEXT, ENTRY_OFFSET, ENTRY_TAG, LENGTH,
    OF_ENTRY,
) = range(len(TEXTS))  # fmt: skip
EXPONENT = 0x7FF0000000000000


class Lines(Kernel):
    """Base of the writers of lines, from ``pos`` to ``total``, in the unit of the framer.

    ``run`` gives END at the end, FULL once ``most`` bytes are written, and NOT_PLAIN at what is not
    a record, or is left to the decoder.
    """

    framer: Framer
    utf8: Utf8
    out: Output
    total: i64
    most: i64
    pos: i64

    def __init__(
        self, framer: Framer, texts: Sequence[bytes], data: memoryview, total: int, most: int
    ) -> None:
        self.framer = framer
        self.utf8 = Utf8(data)
        self.out = Output(texts, data)
        self.total = total
        self.most = most
        self.pos = 0

    def step(self) -> Fallible[i64]:
        """Write lines."""
        while self.out.used < self.most:
            if self.pos >= self.total:
                return tables.END
            before = self.out.used
            self.framer.pos = self.pos
            if self.framer.next() != FRAME or not self.line():
                self.out.used = before
                return tables.NOT_PLAIN
            self.pos = self.framer.pos
        return tables.FULL

    @virtual
    def line(self) -> Fallible[i64]:
        """Write the record that the framer found: 1, or 0 where it is not plain."""
        return 0


class JsonLines(Lines):
    """Writes the lines of structured records, or of entries of a ring."""

    words: View[i64]
    doubles: View[f64]
    end: i64
    in_ring: flag
    raw: flag

    def __init__(
        self,
        framer: Framer,
        words: memoryview,
        data: memoryview,
        doubles: memoryview,
        most: int,
        in_ring: int,
    ) -> None:
        Lines.__init__(self, framer, TEXTS, data, len(words), most)
        self.words = memoryview(words)
        self.doubles = memoryview(doubles)
        self.in_ring = in_ring
        self.end = 0
        self.raw = 0

    def line(self) -> Fallible[i64]:
        """Write the record that the framer found: 1, or 0 where it is not plain."""
        start = self.framer.start
        nbytes = 8 * self.framer.size
        if self.in_ring:
            if self.words[start - 1] != nbytes:
                return 0
            self.out.literal(ENTRY_OFFSET)
        else:
            self.out.literal(RECORD_OFFSET)
        self.out.signed(self.framer.offset)
        self.out.literal(NBYTES)
        self.out.signed(8 * (self.framer.pos - self.pos))
        if self.in_ring:
            self.out.literal(ENTRY_TAG)
            self.out.natural(self.framer.tag)
            self.out.literal(LENGTH)
            self.out.signed(nbytes)
            self.out.literal(OF_ENTRY)
        else:
            self.out.literal(TIMESTAMP)
        return self.log(start, self.framer.size)

    def log(self, at: i64, size: i64) -> status:
        """Write the fields of the record at word ``at``: 1, or 0 where it is not plain."""
        word = self.words[at]
        self.end = at + size
        self.raw = 1 if wire.RESERVED.get(word) else 0
        self.out.signed(self.words[at + 1])
        self.out.literal(SEVERITY)
        self.out.signed(wire.HEADER_SEVERITY.get(word))
        self.out.literal(TAG_BITS_TEXT)
        self.out.signed(wire.HEADER_TAG.get(word))
        self.out.literal(ARGS)
        argument = at + wire.MIN_RECORD_WORDS
        while argument < self.end:
            if argument > at + wire.MIN_RECORD_WORDS:
                self.out.literal(COMMA)
            argument = self.argument(argument)
            if argument < 0:
                return 0
        self.out.literal(END_OF_ARGS)
        if self.raw:
            self.out.literal(RAW)
            self.out.hexadecimal(8 * at, 8 * size)
            self.out.literal(END_OF_RAW)
        if self.in_ring:
            self.out.literal(END_OF_ARGUMENT)
        self.out.literal(END_OF_RECORD)
        return 1

    def argument(self, at: i64) -> Fallible[i64]:
        """Write the argument at word ``at``; return the word behind it, or -1: it is not plain."""
        word = self.words[at]
        kind = wire.ARG_TYPE.get(word)
        self.out.literal(NAME)
        inner = self.text(at + 1, wire.NAME_REF.get(word))
        if inner < 0:
            return -1
        reserved = wire.AFTER_NAME
        if kind == wire.STRING:
            reserved = wire.AFTER_VALUE
            self.out.literal(STRING_VALUE)
            inner = self.text(inner, wire.VALUE_REF.get(word))
            if inner < 0:
                return -1
            self.out.literal(END_OF_ARGUMENT)
        elif kind in (wire.UINT64, wire.INT64, wire.DOUBLE):
            if inner >= self.end or not self.number(kind, inner):
                return -1
            self.out.literal(END_OF_ARGUMENT)
            inner += 1
        elif kind == wire.BOOL:
            reserved = wire.AFTER_FLAG
            self.out.literal(TRUE_VALUE if wire.VALUE_REF.get(word) % 2 else FALSE_VALUE)
        elif kind == wire.NULL:
            self.out.literal(NULL_VALUE)
        else:
            return -1
        if word >> reserved or wire.ARG_SIZE.get(word) != inner - at:
            self.raw = 1
        return inner

    def number(self, kind: i64, at: i64) -> status:
        """Write the number at word ``at``: 1, or 0 for a double that JSON does not have."""
        word = self.words[at]
        if kind == wire.UINT64:
            self.out.literal(UINT64_VALUE)
            self.out.natural(word)
        elif kind == wire.INT64:
            self.out.literal(INT64_VALUE)
            self.out.signed(word)
        else:
            if word & EXPONENT == EXPONENT:
                return 0
            self.out.literal(DOUBLE_VALUE)
            self.out.real(self.doubles[at], word)
        return 1

    def text(self, start: i64, ref: i64) -> Fallible[i64]:
        """Write the string at word ``start``; return the word behind it, or -1: it is not plain."""
        if ref == 0:
            self.out.literal(EMPTY_TEXT)
            return start
        if ref < wire.INLINE:
            return -1
        nbytes = ref & wire.MAX_STRING
        end = start + (nbytes + 7) // 8
        if end > self.end or not self.utf8.valid(8 * start, nbytes):
            return -1
        if nbytes == 0 or (nbytes % 8 and self.words[end - 1] >> (8 * (nbytes % 8))):
            self.raw = 1
        self.out.json_text(8 * start, nbytes)
        return end
