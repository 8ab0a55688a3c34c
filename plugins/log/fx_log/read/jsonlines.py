"""Record JSON of structured records in bulk, straight from their words.

A third way beside the two decoders: it writes exactly the lines that ``orjson.dumps`` makes of
``record.to_json()``, for records in which every argument can be decoded, and leaves the others to
``decoder.py``. Tests compare its lines with those.
"""

from __future__ import annotations

from fx_log import format as wire
from fx_log.read import tables
from fxframework.kernels.annotations import Fallible, View, f64, flag, i64, status
from fxframework.kernels.kernel import Kernel
from fxframework.kernels.output import Output
from fxframework.kernels.utf8 import Utf8

__all__ = ["JsonLines"]

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


class JsonLines(Kernel):
    """Writes the lines of structured records from word ``pos`` on.

    ``run`` gives END at the last whole word, FULL once ``most`` bytes are written, and NOT_PLAIN at
    what is not a record whose arguments can all be decoded.
    """

    words: View[i64]
    doubles: View[f64]
    utf8: Utf8
    out: Output
    total: i64
    max_record: i64
    most: i64
    end: i64
    base: i64
    wrap: i64
    capacity: i64
    pos: i64
    raw: flag

    def __init__(
        self, words: memoryview, data: memoryview, doubles: memoryview, max_record: int, most: int
    ) -> None:
        self.words = memoryview(words)
        self.doubles = memoryview(doubles)
        self.utf8 = Utf8(data)
        self.out = Output(TEXTS, data)
        self.total = len(words)
        self.max_record = max_record
        self.most = most
        self.pos = 0
        self.end = 0
        self.raw = 0
        self.base = 0
        self.wrap = 0
        self.capacity = 0

    def in_ring(self, page: int, start: int, capacity: int) -> None:
        """Read the words as entries of a ring at byte ``page``, from its byte ``start`` on."""
        self.base = page + start
        self.wrap = (capacity - start) // 8
        self.capacity = capacity

    def step(self) -> Fallible[i64]:
        """Write lines."""
        while self.out.used < self.most:
            if self.pos >= self.total:
                return tables.END
            before = self.out.used
            if not (self.entry(self.pos) if self.wrap else self.record(self.pos)):
                self.out.used = before
                return tables.NOT_PLAIN
        return tables.FULL

    def record(self, at: i64) -> status:
        """Write the record at word ``at``: 1, or 0 where it is not plain."""
        word = self.words[at]
        size = wire.SIZE.get(word)
        if (
            wire.TYPE.get(word) != wire.RECORD_TYPE
            or size < wire.MIN_RECORD_WORDS
            or size > self.total - at
        ):
            return 0
        if 0 < self.max_record < 8 * size:
            return 0
        self.out.literal(RECORD_OFFSET)
        self.out.signed(8 * at)
        self.out.literal(NBYTES)
        self.out.signed(8 * size)
        self.out.literal(TIMESTAMP)
        return self.log(at, size)

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
        if self.wrap:
            self.out.literal(END_OF_ARGUMENT)
        self.out.literal(END_OF_RECORD)
        self.pos = self.end
        return 1

    def entry(self, at: i64) -> status:
        """Write the entry of a ring at word ``at``: 1, or 0 where it is not plain."""
        if self.total - at <= wire.ENTRY_HEADER_WORDS:
            return 0
        length = self.words[at + 1]
        start = at + wire.ENTRY_HEADER_WORDS
        size = length // 8
        if (
            length % 8
            or size < wire.MIN_RECORD_WORDS
            or size > wire.MAX_ENTRY_WORDS - wire.ENTRY_HEADER_WORDS
        ):
            return 0
        word = self.words[start]
        if (
            size > self.total - start
            or wire.TYPE.get(word) != wire.RECORD_TYPE
            or wire.SIZE.get(word) != size
        ):
            return 0
        self.out.literal(ENTRY_OFFSET)
        self.out.signed(8 * at + (self.base if at < self.wrap else self.base - self.capacity))
        self.out.literal(NBYTES)
        self.out.signed(8 * (wire.ENTRY_HEADER_WORDS + size))
        self.out.literal(ENTRY_TAG)
        self.out.natural(self.words[at])
        self.out.literal(LENGTH)
        self.out.signed(length)
        self.out.literal(OF_ENTRY)
        return self.log(start, size)

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
