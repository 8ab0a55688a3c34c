"""The interpreter of programs: reads the records of a declared format without Python objects.

A program (``fxframework.wire.programs``) is an array of operations (``ops.py``). It writes lines of
record JSON, one record after the other. Nothing is written for a record that a program leaves to
the object decoder.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fxframework.kernels import ops
from fxframework.kernels.annotations import (
    Array,
    Bytes,
    Fallible,
    View,
    f32,
    f64,
    i64,
    status,
    u8,
    u32,
)
from fxframework.kernels.buffers import full, room, view
from fxframework.kernels.framing import Framing
from fxframework.kernels.kernel import Kernel
from fxframework.kernels.notes import Notes
from fxframework.kernels.output import PART, Output
from fxframework.kernels.texts import Texts
from fxframework.kernels.utf8 import Utf8

__all__ = ["Program"]

PENDING = 64
"""Findings of one record that are kept until it is complete."""
BAD_MAGIC = 101
CUT_OFF = 102
UNKNOWN_KIND = 103
BAD_SIZE = 104
RESERVED_BITS = 105
NOT_UTF8 = 107
UNDECLARED = 108
EXPONENT = 0x7FF0000000000000
HALF_EXPONENT = 0x7F800000
HALF_SIGN = 0x80000000
LOW64 = 0xFFFFFFFFFFFFFFFF
L_DAMAGED = 0
L_NBYTES = 1
L_CODE = 2
L_RAW = 3
L_CLOSE = 4
L_UNKNOWN = 5
L_TYPE = 6
L_PADDING = 7
L_END = 8
L_QUOTE = 9
L_REPLACED = 10
L_NAN = 11
L_INFINITY = 12
L_MINUS = 13
L_CODES = 14
"""Numbers of the first literals; codes of rules follow: bad magic, cut off, unknown, size."""
ZERO = 0x30
LETTER_A = 0x61
FRACTION = 0x000FFFFFFFFFFFFF
USUAL_NAN = 0x7FF8000000000000
HALF_FRACTION = 0x007FFFFF
LOW32 = 0xFFFFFFFF
POLYNOMIAL = 0xEDB88320


class Program(Kernel):
    """Reads records from byte ``pos`` on.

    ``code`` (int64) has the operations, ``entries`` (int64) the first operation of each kind, for
    little-endian stretches, then for big-endian ones; -1 leaves a kind to the object decoder.
    ``classes`` is the number of kinds that are counted, ``parts`` that of parts of lines that are
    kept; ``slots`` (int64) has registers and fields.
    Lines go to ``out``, whose literals are ``texts``.

    ``run`` returns AT_END, FULL (``most`` bytes of lines) or HANDED_OVER:
    the record at ``pos`` is for the object decoder; then set ``pos`` to the byte after it. The end
    of the last stretch that is not damaged is ``sound``. With ``sound_only``, all that is not a
    sound record is handed over; one that is longer than ``longest`` (0: any) is damaged. It stops
    at ``total``, which is that of ``framing`` too.
    """

    framing: Framing
    data: Bytes
    words: View[i64]
    code: View[i64]
    entries: View[i64]
    slots: Array[i64]
    texts: Texts
    utf8: Utf8
    out: Output
    bits: Array[i64]
    doubles: Array[f64]
    half_bits: Array[u32]
    halves: Array[f32]
    figures: Array[u8]
    notes: Notes
    pending: Array[i64]
    waiting: i64
    total: i64
    at: i64
    written: i64
    by_kinds: i64
    classes: i64
    sound_only: i64
    longest: i64
    most: i64
    pos: i64
    records: i64
    handed: i64
    sound: i64
    kinds: Array[i64]
    crc: Array[i64]

    def __init__(
        self,
        framing: Framing,
        arrays: Sequence[memoryview],
        texts: Sequence[bytes],
        notes: Notes,
        most: int,
        classes: int,
        parts: int,
    ) -> None:
        code, entries, slots, tables = arrays
        self.framing = framing
        self.data = self.framing.data
        self.words = self.framing.words
        self.code = memoryview(code)
        self.entries = memoryview(entries)
        self.slots = memoryview(slots)
        self.utf8 = Utf8(self.framing.data)
        self.texts = Texts(self.utf8, tables)
        self.out = Output(texts, self.framing.data)
        self.bits = full(1, "i8")
        self.doubles = view(np.asarray(self.bits).view("f8"), np.float64)
        self.half_bits = full(1, "u4")
        self.halves = view(np.asarray(self.half_bits).view("f4"), np.float32)
        self.figures = room(20, "u1")
        self.crc = crc_table()
        self.out.parts = room(parts * PART, "u1")
        self.notes = notes
        self.pending = room(3 * PENDING, "i8")
        self.waiting = 0
        self.sound_only = 0
        self.longest = 0
        self.most = most
        self.total = self.framing.total
        self.pos = 0
        self.sound = 0
        self.records = 0
        self.handed = 0
        self.classes = classes
        self.kinds = full(classes + 3, "i8")
        self.at = 0
        self.written = 0
        self.by_kinds = len(entries) // 2

    # --- The loop -------------------------------------------------------------------------------

    def step(self) -> Fallible[i64]:
        """Read records until there are no more, there is no room, or one is handed over."""
        while self.pos < self.total:
            if self.out.used >= self.most:
                return ops.FULL
            status = self.record()
            if status == ops.HANDED_OVER:
                self.handed += 1
                return ops.HANDED_OVER
        return ops.AT_END

    def record(self) -> Fallible[i64]:
        """Read one record, or a stretch without one."""
        big = self.framing.big
        entry = self.framing.frame(self.pos)
        self.waiting = 0
        if entry >= 0:
            ip = self.entries[entry + self.by_kinds * self.framing.big]
            if ip < 0:
                return ops.HANDED_OVER
            used = self.out.used
            status = self.run_at(ip)
            if status == 0:
                self.commit()
                self.pos = self.at
                self.sound = self.at
                return 0
            self.out.used = used
            self.waiting = 0
            if status != ops.DAMAGED:
                return status
            if self.sound_only:
                return ops.HANDED_OVER
            self.framing.big = big
            if self.framing.size == 0:
                self.framing.size = self.framing.find(self.pos + 1, self.pos) - self.pos
                return self.stretch(CUT_OFF, 0)
            return self.stretch(BAD_SIZE, 0)
        self.framing.big = big
        if self.sound_only:
            return ops.HANDED_OVER
        if entry == ops.UNKNOWN:
            return self.stretch(UNKNOWN_KIND, 1)
        if entry == ops.PADDING:
            return self.stretch(0, 0)
        number = BAD_SIZE
        if entry == ops.CUT:
            number = CUT_OFF
        elif entry == ops.NO_ORDER:
            number = BAD_MAGIC
        self.framing.size = self.framing.find(self.pos + 1, self.pos) - self.pos
        return self.stretch(number, 0)

    def stretch(self, number: i64, unknown: i64) -> Fallible[i64]:
        """Write a stretch that is not a record of a known kind, and report why."""
        size = self.framing.size
        self.out.literal(L_UNKNOWN if unknown else L_DAMAGED if number else L_PADDING)
        self.out.natural(self.pos)
        self.out.literal(L_NBYTES)
        self.out.natural(size)
        if unknown:
            self.out.literal(L_TYPE)
            self.out.natural(self.framing.kind)
        elif number:
            self.out.literal(L_CODE)
            self.out.literal(L_CODES + number - BAD_MAGIC)
        if number:
            self.out.literal(L_RAW)
            self.out.hexadecimal(self.pos, size)
            self.out.literal(L_CLOSE)
        else:
            self.out.literal(L_END)
        if number:
            self.notes.add(number, self.pos, self.records, self.framing.kind if unknown else size)
        self.kinds[self.classes + (0 if unknown else 1 if number else 2)] += 1
        self.records += 1
        self.pos += size
        if unknown or number == 0:
            self.sound = self.pos
        return 0

    def note(self, number: i64, offset: i64, value: i64) -> i64:
        """Keep a finding of the record until it is complete."""
        if self.waiting < PENDING:
            self.pending[3 * self.waiting] = number
            self.pending[3 * self.waiting + 1] = offset
            self.pending[3 * self.waiting + 2] = value
        self.waiting += 1
        return 0

    def commit(self) -> status:
        """Report the findings of a record that is complete."""
        index = 0
        while index < self.waiting:
            self.notes.add(
                self.pending[3 * index],
                self.pending[3 * index + 1],
                self.records,
                self.pending[3 * index + 2],
            )
            index += 1
        self.waiting = 0
        self.records += 1
        return 0

    def run_at(self, ip: i64) -> Fallible[i64]:
        """Run the program of a record: 0, or why there is no record."""
        pos = self.pos
        stop = self.total
        if self.framing.size:
            stop = pos + self.framing.size
        at = pos
        limit = stop
        self.slots[0] = pos
        self.slots[1] = stop - pos
        w = 0
        raw = 0
        refs = 0
        invalid = 0
        start = pos
        length = 0
        while True:
            code = self.code[ip]
            a = self.code[ip + 1]
            b = self.code[ip + 2]
            c = self.code[ip + 3]
            d = self.code[ip + 4]
            if code == ops.LOAD:
                if a > limit - at:
                    return ops.DAMAGED
                if a == 8 and b == 0 and at & 7 == 0:
                    w = self.words[at >> 3]
                else:
                    w = self.framing.load(at, a, b)
                at += a
            elif code == ops.NATURAL:
                self.out.literal(c)
                self.out.natural((w >> a) & b)
            elif code == ops.SIGNED:
                value = (w >> a) & b
                if d and value & d:
                    value -= d + d
                self.out.literal(c)
                self.out.signed(value)
            elif code == ops.LIT:
                self.out.literal(a)
            elif code == ops.KEEP:
                value = (w >> a) & b
                if d and value & d:
                    value -= d + d
                self.slots[c] = value
            elif code == ops.REF:
                self.out.literal(c)
                index = self.texts.find(b, self.slots[a])
                if index < 0:
                    self.note(UNDECLARED, pos, self.slots[a])
                    self.out.literal(d)
                    self.out.natural(self.slots[a])
                    self.out.literal(d + 1)
                elif self.texts.lengths[index] < 0:
                    self.replaced(self.texts.starts[index], -1 - self.texts.lengths[index], d + 2)
                else:
                    self.out.json_text(self.texts.starts[index], self.texts.lengths[index])
            elif code == ops.EXPECT:
                if self.slots[a] == 0:
                    if c:
                        raw = 1
                    if b:
                        self.note(b, pos, self.slots[d])
            elif code == ops.KNOWN:
                if self.texts.find(b, self.slots[a]) < 0:
                    if d:
                        return ops.DAMAGED
                    self.note(c, pos, self.slots[a])
            elif code == ops.RESERVED:
                if w & a:
                    raw = 1
                    self.note(RESERVED_BITS, at - c, ((w & a) >> b) & d)
            elif code == ops.SPAN:
                length = a
                if b >= 0:
                    length = self.slots[b]
                if length < 0 or length > limit - at:
                    return ops.DAMAGED
                start = at
                at += length
            elif code == ops.REST:
                start = at
                length = limit - at
                at = limit
            elif code == ops.UNTIL:
                start = at
                while at < limit and self.data[at] != a:
                    at += 1
                if at == limit:
                    return ops.DAMAGED
                length = at - start
                at += 1
            elif code == ops.TRIM:
                index = length
                while length > 0 and self.data[start + length - 1] == a:
                    length -= 1
                if b == 1 and length < index:
                    raw = 1
                elif b == 2:
                    at = start + length
            elif code == ops.ALIGN:
                index = at + ((-(at - self.slots[b])) & (a - 1))
                if index > limit:
                    index = limit
                    raw = 1
                if self.zeros(at, index) == 0:
                    raw = 1
                    self.note(RESERVED_BITS, at, 0)
                at = index
            elif code == ops.UTF8:
                invalid = 0
                if not self.utf8.valid(start, length):
                    invalid = 1
                    self.note(NOT_UTF8, start, 0)
            elif code == ops.TEXT:
                self.out.literal(a)
                if invalid:
                    self.replaced(start, length, b)
                else:
                    self.out.json_text(start, length)
            elif code == ops.HEX:
                self.out.literal(a)
                self.out.hexadecimal(start, length)
                self.out.literal(b)
            elif code == ops.NAMES:
                value = (w >> a) & b
                self.out.literal(c)
                index = self.texts.find(d, value)
                if index < 0:
                    self.out.natural(value)
                else:
                    self.out.literal(index)
            elif code == ops.NONZERO:
                if b:
                    self.slots[a] = 0
                if self.zeros(start, start + length) == 0:
                    self.slots[a] = 1
            elif code == ops.ONCE:
                # Slot a: whether slots a + 1 and a + 2, place and size in ``parts``, are those of
                # what follows; its beginning in the line otherwise.
                if self.slots[a]:
                    self.out.repeat(self.slots[a + 1], self.slots[a + 2])
                    ip = b
                    continue
                self.slots[a + 2] = self.out.used
            elif code == ops.KEPT:
                self.slots[a] = self.out.keep(self.slots[a + 1], self.slots[a + 2])
                self.slots[a + 2] = self.out.used - self.slots[a + 2]
            elif code == ops.BOUND:
                if 0 < self.longest < at - pos:
                    return ops.DAMAGED
            elif code == ops.ONEOF:
                value = (w >> a) & b
                if 0 <= value < d:
                    self.out.literal(c + value)
                elif self.code[ip + 5]:
                    return ops.DAMAGED
                else:
                    self.out.literal(c + d)
                    self.out.natural(value)
            elif code == ops.NATSLOT:
                self.out.literal(b)
                self.out.natural(self.slots[a])
            elif code == ops.SGNSLOT:
                self.out.literal(b)
                self.out.signed(self.slots[a])
            elif code == ops.REAL:
                self.out.literal(a)
                if (w & EXPONENT) == EXPONENT:
                    self.special(w, b)
                else:
                    self.bits[0] = w
                    self.out.real(self.doubles[0], w)
            elif code == ops.HALFREAL:
                self.out.literal(a)
                value = -1 if w & HALF_SIGN else 0
                if (w & HALF_EXPONENT) == HALF_EXPONENT:
                    value = (value << 63) | EXPONENT | ((w & HALF_FRACTION) << 29)
                    self.special(value, b)
                else:
                    self.half_bits[0] = w
                    self.out.real(self.halves[0], value)
            elif code == ops.REFNUM:
                self.out.literal(c if refs else b)
                self.out.natural(self.slots[a])
                refs = 1
            elif code == ops.REFEND:
                if refs:
                    self.out.literal(a)
                refs = 0
            elif code == ops.HANDOVER:
                return ops.HANDED_OVER
            elif code == ops.BEGIN:
                self.out.literal(a)
                self.out.natural(pos)
                self.out.literal(b)
                self.written = self.out.used
                if self.framing.size:
                    self.out.natural(stop - pos)
            elif code == ops.BODY:
                # What the fields leave is zero bytes, up to the unit of sizes (0: any number).
                index = limit
                if a:
                    index = at + ((-(at - self.slots[c] + b)) & (a - 1))
                if index != limit:
                    raw = 1
                if self.zeros(at, limit) == 0:
                    raw = 1
                    self.note(RESERVED_BITS, at, 0)
                at = limit
                limit += b
            elif code == ops.PUSH:
                value = self.slots[a]
                self.slots[b] = limit
                if value < c or value > limit - self.slots[d]:
                    return ops.DAMAGED
                limit = self.slots[d] + value
            elif code == ops.POP:
                limit = self.slots[a]
            elif code == ops.SAVE:
                self.slots[a] = w
            elif code == ops.USE:
                w = self.slots[a]
            elif code == ops.MARKSPAN:
                if a == 2:
                    self.slots[b] = at
                elif a == 3:
                    at = self.slots[b] + c
                    if at > limit:
                        return ops.DAMAGED
                elif a == 1:
                    limit -= b
                    if limit < at:
                        return ops.DAMAGED
                elif a == 4:
                    start = self.slots[b]
                    length = self.slots[b + 1]
                else:
                    self.slots[b] = start
                    self.slots[b + 1] = length
            elif code == ops.CALC:
                self.slots[a] = self.calculated(b, self.slots[c], self.slots[d])
            elif code == ops.CHECKSUM:
                self.slots[a] = self.checksum(b, self.slots[d], at - c)
            elif code == ops.CONST:
                self.slots[a] = b
            elif code == ops.MOVE:
                self.slots[a] = self.slots[b]
            elif code == ops.JUMP:
                ip = a
                continue
            elif code == ops.JUMPZ:
                if self.slots[a] == 0:
                    ip = b
                    continue
            elif code == ops.LOOP:
                value = self.slots[a]
                if value < 0 or value > (limit - at) // b:
                    return ops.DAMAGED
                if value == 0:
                    ip = c
                    continue
            elif code == ops.AGAIN:
                self.slots[a] -= 1
                if self.slots[a] > 0:
                    ip = b
                    if c >= 0:
                        self.out.literal(c)
                    continue
            elif code == ops.MORE:
                if at < limit:
                    ip = a
                    if c >= 0:
                        self.out.literal(c)
                    continue
            elif code == ops.DEFINE:
                self.texts.define(b, self.slots[a], self.slots[c], self.slots[c + 1])
            elif code == ops.CLEAR:
                self.texts.forget(a)
            elif code == ops.FINISH:
                if self.waiting > PENDING:
                    return ops.HANDED_OVER  # before the state changes, which objects do again
                if self.framing.size == 0:
                    self.insert(at - pos)
                if raw:
                    self.out.literal(L_RAW)
                    self.out.hexadecimal(pos, at - pos)
                    self.out.literal(L_CLOSE)
                else:
                    self.out.literal(L_END)
            elif code == ops.END:
                self.at = at
                self.kinds[a] += 1
                return 0
            else:
                return ops.DAMAGED
            ip += ops.WIDTH

    def calculated(self, operation: i64, left: i64, right: i64) -> i64:
        """Return the result of an operation of ``wire.expressions``, which wraps."""
        if operation == 0:
            return self.framing.wrapped((left + right) & LOW64)
        if operation == 1:
            return self.framing.wrapped((left - right) & LOW64)
        if operation == 2:
            return self.framing.wrapped((left * right) & LOW64)
        if operation == 3:
            return left & right
        if operation == 4:
            return left | right
        if operation == 5:
            return self.framing.wrapped((left << right) & LOW64) if 0 <= right < 64 else 0
        if operation == 6:
            return left >> right if 0 <= right < 64 else 0
        if operation == 7:
            return 1 if left == right else 0
        if operation == 8:
            return 1 if left != right else 0
        if operation == 9:
            return 1 if left < right else 0
        return 1 if left <= right else 0

    def zeros(self, at: i64, end: i64) -> i64:
        """Return 1 if the bytes up to ``end`` are zero, else 0."""
        while at < end:
            if self.data[at]:
                return 0
            at += 1
        return 1

    def checksum(self, kind: i64, at: i64, end: i64) -> i64:
        """Return a checksum (``wire.expressions.CHECKSUMS``) of the bytes up to ``end``."""
        total: i64 = 0
        if kind == 0:
            total = LOW32
            while at < end:
                total = self.crc[(total ^ self.data[at]) & 0xFF] ^ (total >> 8)
                at += 1
            return total ^ LOW32
        while at < end:
            total = total + self.data[at] if kind == 1 else total ^ self.data[at]
            at += 1
        return total

    def special(self, bits: i64, key: i64) -> status:
        """Write the name of a double that JSON cannot hold, and the bits of an unusual NaN."""
        if bits & FRACTION == 0:
            self.out.literal(L_MINUS if bits < 0 else L_INFINITY)
            return 0
        self.out.literal(L_NAN)
        if bits == USUAL_NAN:
            return 0
        self.out.literal(key)
        if self.out.used + 16 > self.out.size:
            self.out.grow(16)
        place = 60
        while place >= 0:
            self.out.data[self.out.used] = self.hex_digit((bits >> place) & 15)
            self.out.used += 1
            place -= 4
        self.out.literal(L_QUOTE)
        return 0

    def hex_digit(self, digit: i64) -> i64:
        """Return the character of a digit."""
        return ZERO + digit if digit < 10 else LETTER_A + digit - 10

    def replaced(self, start: i64, length: i64, key: i64) -> status:
        """Write bytes that are not UTF-8 as a JSON string with U+FFFD, and in hex under a key."""
        self.out.literal(L_QUOTE)
        at = start
        end = start + length
        first = at
        while at < end:
            size = self.character(at, end)
            if size > 0:
                at += size
                continue
            self.plain(first, at)
            self.out.literal(L_REPLACED)
            at -= size
            first = at
        self.plain(first, end)
        self.out.literal(L_QUOTE)
        self.out.literal(key)
        self.out.hexadecimal(start, length)
        self.out.literal(L_QUOTE)
        return 0

    def plain(self, start: i64, end: i64) -> status:
        """Write UTF-8 as a part of a JSON string."""
        before = self.out.used
        self.out.json_text(start, end - start)
        at = before
        stop = self.out.used - 2
        while at < stop:
            self.out.data[at] = self.out.data[at + 1]
            at += 1
        self.out.used = stop
        return 0

    def character(self, at: i64, end: i64) -> i64:
        """Return the bytes of the character at a byte, or minus the bytes that are not one."""
        lead = self.data[at]
        if lead < 0x80:
            return 1
        if lead < 0xC2 or lead > 0xF4:
            return -1
        more = 1 if lead < 0xE0 else 2 if lead < 0xF0 else 3
        low = 0xA0 if lead == 0xE0 else 0x90 if lead == 0xF0 else 0x80
        high = 0x9F if lead == 0xED else 0x8F if lead == 0xF4 else 0xBF
        size = 1
        while size <= more:
            if at + size >= end or self.data[at + size] < low or self.data[at + size] > high:
                return -size
            low = 0x80
            high = 0xBF
            size += 1
        return size

    def insert(self, number: i64) -> status:
        """Write a number where the size of the record belongs, in the line written so far."""
        end = self.out.used
        self.out.natural(number)
        count = self.out.used - end
        index = 0
        while index < count:
            self.figures[index] = self.out.data[end + index]
            index += 1
        while end > self.written:
            end -= 1
            self.out.data[end + count] = self.out.data[end]
        index = 0
        while index < count:
            self.out.data[end + index] = self.figures[index]
            index += 1
        return 0


def crc_table() -> memoryview:
    """Return the table of the CRC of zlib: the CRC of each byte."""
    table = np.arange(256, dtype=np.int64)
    for _ in range(8):
        table = (table >> 1) ^ (POLYNOMIAL & -(table & 1))
    return view(table, np.int64)
