"""Record JSON in bulk, straight from the words of plain records."""

from __future__ import annotations

from typing import Any

import numpy as np

from fx_trace.format import (
    ARG_BOOL,
    ARG_DOUBLE,
    ARG_INT32,
    ARG_INT64,
    ARG_NAME,
    ARG_NULL,
    ARG_SIZE,
    ARG_STRING,
    ARG_TYPE,
    ARG_UINT32,
    ARG_VALUE_AT,
    BLOB_DATA,
    BLOB_KIND,
    BLOB_LENGTH,
    BLOB_NAME,
    BLOB_PERFETTO,
    EVENT_CATEGORY,
    EVENT_NAME,
    EVENT_THREAD,
    INLINE_STRING,
    MAX_ARGS,
    MAX_STRING_BYTES,
    RECORD_BLOB,
    RECORD_EVENT,
    RECORD_STRING,
    RECORD_THREAD,
    SIZE,
    STRING_INDEX,
    STRING_LENGTH,
    STRING_REF_INDEX,
    THREAD_INDEX,
    TYPE,
    UNUSED_BLOB,
    UNUSED_STRING,
    UNUSED_THREAD,
)
from fxframework.kernels.annotations import (
    Array,
    Fallible,
    View,
    f64,
    flag,
    i32,
    i64,
    status,
    u64,
)
from fxframework.kernels.buffers import full, grown
from fxframework.kernels.kernel import Kernel
from fxframework.kernels.maps import PairMap
from fxframework.kernels.notes import Notes
from fxframework.kernels.output import Output
from fxframework.kernels.utf8 import Utf8

__all__ = ["JsonLines"]

TEXTS = (
    b'{"record":"event","offset":', b',"thread":', b',"category":', b',"name":', b',"args":[', b",",
    b',"refs":{"thread":', b',"refs":{"category":', b',"refs":{"name":', b',"refs":{"value":',
    b"}}", b"}", b"\n", b'{"name":', b',"value":', b'{"record":"string","offset":', b',"nbytes":',
    b',"index":', b'{"record":"thread","offset":', b',"pid":', b',"tid":', b"[", b"]", b'""',
    b'{"record":"blob","offset":', b',"blob_type":', b',"size":', b',"payload_hex":"', b'"',
)  # fmt: skip
(
    RECORD, THREAD, CATEGORY, NAME, ARGS, COMMA, THREAD_REFS, CATEGORY_REFS, NAME_REFS, VALUE_REFS,
    END_OF_REFS, END_OF_RECORD, END_OF_LINE, ARGUMENT_NAME, VALUE, STRING_RECORD, NBYTES, INDEX,
    THREAD_RECORD, PID, TID, OPEN, CLOSE, EMPTY, BLOB_RECORD, BLOB_TYPE, BLOB_SIZE, PAYLOAD, QUOTE,
) = range(29)  # fmt: skip
LITERALS = 29

END = 0
FULL = 1
NOT_PLAIN = 2

SHAPE = 5
"""Numbers of a shape: literals before the time and after the arguments, words, arguments, and
whether a last word follows."""
UNKNOWN = -1
IN_SOURCE = -2
"""The string or the thread of an index is not known; it is in the words."""
PENDING = 4096
"""Registrations after which the host takes a record."""
NARROW = 1
WIDE = 0
"""How an argument is looked up: by the lower half of its header word, or by all of it, without the
reference to its name."""
LOW24 = 0xFFFFFF
LOW32 = 0xFFFFFFFF
LOW64 = 0xFFFFFFFFFFFFFFFF
NAMELESS = ~ARG_NAME.mask
STRING_REF_BITS = 16
THREAD_WORDS = 3
EXPONENT = 0x7FF0000000000000
THREADS = 256
STRINGS = 1 << 15
MOST_FOUND = 3 + 2 * MAX_ARGS
"""The most findings about the references of one record."""


class JsonLines(Kernel):
    """Writes the lines of events from word ``pos`` on; ``records`` counts them.

    ``run`` gives END at word ``whole``, FULL once ``most`` bytes are written, and NOT_PLAIN at what
    is not an event of which all parts are known, or a plain string, thread or blob. ``know_shape``,
    ``know_thread``, ``know_string`` and ``know_argument`` teach parts, ``forget`` takes back all,
    ``forget_thread`` a thread, ``forget_string`` a string. ``pending`` has the words at which
    strings and threads were registered, ``registered`` of them, until the host sets that to 0.
    ``longest`` is the size in words of the longest record. ``notes`` has the findings about
    references, of the records from number ``first`` on.
    """

    words: View[i64]
    doubles: View[f64]
    out: Output
    shape_of: PairMap
    argument_of: PairMap
    shapes: Array[i64]
    arguments: Array[i64]
    threads: Array[i32]
    strings: Array[i32]
    thread_at: Array[i64]
    string_at: Array[i64]
    string_bytes: Array[i32]
    thread_rule: Array[i32]
    string_rule: Array[i32]
    notes: Notes
    found: Array[i64]
    found_count: i64
    place: i64
    first: i64
    pending: Array[i64]
    registered: i64
    taught: flag
    longest: i64
    utf8: Utf8
    pos: i64
    whole: i64
    records: i64
    most: i64

    def __init__(self, most: int, longest: int, notes: Notes) -> None:
        self.longest = longest
        self.notes = notes
        self.found = full(3 * MOST_FOUND, "i8")
        self.found_count = 0
        self.place = 0
        self.first = 0
        self.thread_rule = full(THREADS, "i4")
        self.string_rule = full(STRINGS, "i4")
        self.thread_at = full(THREADS, "i8")
        self.string_at = full(STRINGS, "i8")
        self.string_bytes = full(STRINGS, "i4")
        self.pending = full(PENDING, "i8")
        self.registered = 0
        self.taught = True
        self.utf8 = Utf8(memoryview(b""))
        self.out = Output(TEXTS, memoryview(b""))
        self.most = most
        self.pos = 0
        self.whole = 0
        self.records = 0
        self.shapes = full(64 * SHAPE, "i8")
        self.arguments = full(64, "i8")
        self.words = memoryview(bytes(8)).cast("q")
        self.doubles = memoryview(bytes(8)).cast("d")
        self.shape_of = PairMap()
        self.argument_of = PairMap()
        self.threads = full(THREADS, "i4", UNKNOWN)
        self.strings = full(STRINGS, "i4", UNKNOWN)
        self.forget()

    def read_from(self, octets: memoryview, words: memoryview, doubles: Any, whole: int) -> None:
        """Read these words (int64, and the same as bytes and float64) from now on, to ``whole``."""
        self.utf8 = Utf8(octets)
        self.out.source = memoryview(octets)
        self.words = memoryview(words)
        self.doubles = memoryview(doubles)
        self.whole = whole

    def forget(self) -> None:
        """Forget all parts."""
        self.out.forget(LITERALS)
        self.shape_of = PairMap()
        self.argument_of = PairMap()
        self.forget_registered()

    def forget_registered(self) -> None:
        """Forget all strings and threads, if any are known."""
        if self.taught:
            np.asarray(self.threads)[:] = UNKNOWN
            np.asarray(self.strings)[:] = UNKNOWN
            self.strings[0] = EMPTY
            self.taught = False

    def forget_thread(self, index: int) -> None:
        """Forget the thread of an index."""
        self.threads[index] = UNKNOWN

    def forget_string(self, index: int) -> None:
        """Forget the string of an index."""
        if index:
            self.strings[index] = UNKNOWN

    def know_shape(
        self, bits: int, middle: bytes, last: bytes, size: int, count: int, has_word: bool
    ) -> None:
        """Texts before the time and after the arguments, words and arguments, by a header."""
        before = len(self.shape_of)
        number = self.shape_of.number(bits, 0)
        if number < before:
            return
        if SHAPE * (number + 1) > len(self.shapes):
            self.shapes = grown(self.shapes, 2 * len(self.shapes), len(self.shapes))
        row = self.out.add(middle), self.out.add(last), size, count, int(has_word)
        for place, value in enumerate(row):
            self.shapes[SHAPE * number + place] = value

    def know_thread(self, index: int, text: bytes, rule: int) -> None:
        """The JSON of the thread of an index, and the rule of the finding about it, or 0."""
        if self.threads[index] == UNKNOWN:
            self.threads[index] = self.out.add(text)
            self.thread_rule[index] = rule
            self.taught = True

    def know_string(self, index: int, text: bytes, rule: int) -> None:
        """The JSON of the string of an index, and the rule of the finding about it, or 0."""
        if self.strings[index] == UNKNOWN:
            self.strings[index] = self.out.add(text)
            self.string_rule[index] = rule
            self.taught = True

    def know_argument(self, word: int, narrow: bool, text: bytes) -> None:
        """The text between name and value, by the header word or its lower half, without name."""
        before = len(self.argument_of)
        number = self.argument_of.number(word, int(narrow))
        if number < before:
            return
        if number == len(self.arguments):
            self.arguments = grown(self.arguments, 2 * number, number)
        self.arguments[number] = self.out.add(text)

    def step(self) -> Fallible[i64]:
        """Write lines."""
        while self.out.used < self.most:
            if self.pos >= self.whole:
                return END
            before = self.out.used
            self.found_count = 0
            self.place = 8 * self.pos
            if not self.record(self.pos):
                self.out.used = before
                return NOT_PLAIN
            if self.found_count:
                self.report()
            self.records += 1
        return FULL

    def find(self, rule: i64, index: i64) -> status:
        """Note a finding about a reference of the record, which may turn out not to be plain."""
        row = 3 * self.found_count
        self.found[row] = rule
        self.found[row + 1] = self.place
        self.found[row + 2] = index
        self.found_count += 1
        return 0

    def report(self) -> Fallible[flag]:
        """Report the findings about the record."""
        row = 0
        while row < 3 * self.found_count:
            place = self.found[row + 1]
            index = self.found[row + 2]
            self.notes.add(self.found[row], place, self.first + self.records, index)
            row += 3
        return True

    def record(self, at: i64) -> Fallible[flag]:
        """Write the line of the record at a word, and go behind it; False if it is not plain."""
        header = self.words[at]
        kind = TYPE.get(header)
        if kind == RECORD_EVENT:
            return self.event(header, at)
        if kind == RECORD_BLOB:
            return self.blob(header, at)
        if self.registered == PENDING:
            return False
        if kind == RECORD_STRING:
            return self.string_record(header, at)
        if kind == RECORD_THREAD:
            return self.thread_record(header, at)
        return False

    def string_record(self, header: i64, at: i64) -> Fallible[flag]:
        """Write the line of a string record, and register it."""
        index = STRING_INDEX.get(header)
        nbytes = STRING_LENGTH.get(header)
        size = SIZE.get(header)
        if index == 0 or header & UNUSED_STRING or size != 1 + ((nbytes + 7) >> 3):
            return False
        if size > self.longest or at + size > self.whole or not self.sound(at + 1, nbytes):
            return False
        self.out.literal(STRING_RECORD)
        self.begin(at, size, INDEX)
        self.out.natural(index)
        self.out.literal(VALUE)
        self.out.json_text(8 * (at + 1), nbytes)
        self.strings[index] = IN_SOURCE
        self.string_at[index] = 8 * (at + 1)
        self.string_bytes[index] = nbytes
        return self.register(at, size)

    def thread_record(self, header: i64, at: i64) -> Fallible[flag]:
        """Write the line of a thread record, and register it."""
        index = THREAD_INDEX.get(header)
        size = SIZE.get(header)
        if index == 0 or header & UNUSED_THREAD or size != THREAD_WORDS:
            return False
        if size > self.longest or at + size > self.whole:
            return False
        self.out.literal(THREAD_RECORD)
        self.begin(at, size, INDEX)
        self.out.natural(index)
        self.out.literal(PID)
        self.out.natural(self.words[at + 1])
        self.out.literal(TID)
        self.out.natural(self.words[at + 2])
        self.threads[index] = IN_SOURCE
        self.thread_at[index] = at + 1
        return self.register(at, size)

    def blob(self, header: i64, at: i64) -> Fallible[flag]:
        """Write the line of a blob; return False if it is not plain."""
        size = SIZE.get(header)
        end = at + size
        name = BLOB_NAME.get(header)
        nbytes = BLOB_LENGTH.get(header)
        if header & UNUSED_BLOB or not BLOB_DATA <= BLOB_KIND.get(header) <= BLOB_PERFETTO:
            return False
        if size == 0 or size > self.longest or end > self.whole:
            return False
        self.out.literal(BLOB_RECORD)
        self.begin(at, size, NAME)
        place = self.string(name, at + 1, end)
        if place < 0 or place + ((nbytes + 7) >> 3) != end or not self.padded(place, nbytes):
            return False
        self.out.literal(BLOB_TYPE)
        self.out.natural(BLOB_KIND.get(header))
        self.out.literal(BLOB_SIZE)
        self.out.natural(nbytes)
        self.out.literal(PAYLOAD)
        self.out.hexadecimal(8 * place, nbytes)
        self.out.literal(QUOTE)
        if 0 < name < INLINE_STRING:
            self.reference(0, NAME_REFS, NAME, name)
            self.out.literal(END_OF_REFS)
        else:
            self.out.literal(END_OF_RECORD)
        self.out.literal(END_OF_LINE)
        self.pos = end
        return True

    def begin(self, at: i64, size: i64, key: i64) -> status:
        """Write the place of a record, up to the value of its first field."""
        self.out.natural(8 * at)
        self.out.literal(NBYTES)
        self.out.natural(8 * size)
        self.out.literal(key)
        return 0

    def register(self, at: i64, size: i64) -> Fallible[flag]:
        """End the line of a registration, and note it for the host."""
        self.out.literal(END_OF_RECORD)
        self.out.literal(END_OF_LINE)
        self.taught = True
        self.pending[self.registered] = at
        self.registered += 1
        self.pos = at + size
        return True

    def sound(self, at: i64, nbytes: i64) -> flag:
        """Return whether a string at a word is UTF-8 of no more than it may have, and padded."""
        if nbytes > MAX_STRING_BYTES or not self.utf8.valid(8 * at, nbytes):
            return False
        return self.padded(at, nbytes)

    def padded(self, at: i64, nbytes: i64) -> flag:
        """Return whether only zeros follow bytes, up to a whole word."""
        rest = nbytes & 7
        if rest == 0:
            return True
        last: u64 = self.words[at + (nbytes >> 3)] & LOW64
        return last >> (8 * rest) == 0

    def event(self, header: i64, at: i64) -> Fallible[flag]:
        """Write the line of the event at a word, and go behind it; False if it is unknown."""
        shape = self.shape_of.get(header & LOW24, 0)
        if shape < 0:
            return False
        shape = shape * SHAPE
        thread = EVENT_THREAD.get(header)
        category = EVENT_CATEGORY.get(header)
        name = EVENT_NAME.get(header)
        end = at + self.shapes[shape + 2]
        if end > self.whole:
            return False
        last = end - self.shapes[shape + 4]
        self.out.literal(RECORD)
        self.out.natural(8 * at)
        self.out.literal(self.shapes[shape])
        self.out.natural(self.words[at + 1])
        self.out.literal(THREAD)
        place = self.thread(thread, at + 2, last)
        if place < 0:
            return False
        self.out.literal(CATEGORY)
        place = self.string(category, place, last)
        if place < 0:
            return False
        self.out.literal(NAME)
        place = self.string(name, place, last)
        if place < 0:
            return False
        self.out.literal(ARGS)
        count = self.shapes[shape + 3]
        for number in range(count):
            if number:
                self.out.literal(COMMA)
            place = self.argument(place, last)
            if place < 0:
                return False
        if place != last:
            return False
        self.out.literal(self.shapes[shape + 1])
        if last < end:
            self.out.natural(self.words[last])
        refs = 0
        if thread:
            refs = self.reference(refs, THREAD_REFS, THREAD, thread)
        if 0 < category < INLINE_STRING:
            refs = self.reference(refs, CATEGORY_REFS, CATEGORY, category)
        if 0 < name < INLINE_STRING:
            refs = self.reference(refs, NAME_REFS, NAME, name)
        self.out.literal(END_OF_REFS if refs else END_OF_RECORD)
        self.out.literal(END_OF_LINE)
        self.pos = end
        return True

    def reference(self, refs: i64, first: i64, other: i64, index: i64) -> Fallible[i64]:
        """Write the index of a reference; return 1."""
        self.out.literal(other if refs else first)
        self.out.natural(index)
        return 1

    def thread(self, index: i64, place: i64, last: i64) -> Fallible[i64]:
        """Write a thread; return the word behind it, -1 for an unknown one."""
        at = place
        if index:
            if self.threads[index] >= 0:
                self.out.literal(self.threads[index])
                if self.thread_rule[index]:
                    self.find(self.thread_rule[index], index)
                return place
            if self.threads[index] == UNKNOWN:
                return -1
            at = self.thread_at[index]
        else:
            place += 2
            if place > last:
                return -1
        self.out.literal(OPEN)
        self.out.natural(self.words[at])
        self.out.literal(COMMA)
        self.out.natural(self.words[at + 1])
        self.out.literal(CLOSE)
        return place

    def string(self, ref: i64, place: i64, last: i64) -> Fallible[i64]:
        """Write a string; return the word behind it, -1 for an unknown one."""
        if ref >= INLINE_STRING:
            nbytes = STRING_REF_INDEX.get(ref)
            end = place + ((nbytes + 7) >> 3)
            if nbytes == 0 or end > last or not self.sound(place, nbytes):
                return -1
            self.out.json_text(8 * place, nbytes)
            return end
        if self.strings[ref] >= 0:
            self.out.literal(self.strings[ref])
            if self.string_rule[ref]:
                self.find(self.string_rule[ref], ref)
        elif self.strings[ref] == UNKNOWN:
            return -1
        else:
            self.out.json_text(self.string_at[ref], self.string_bytes[ref])
        return place

    def argument(self, at: i64, stop: i64) -> Fallible[i64]:
        """Write the argument at a word; return where it ends, -1 where it is unknown."""
        if at >= stop:
            return -1
        word = self.words[at]
        kind = ARG_TYPE.get(word)
        name = ARG_NAME.get(word)
        end = at + ARG_SIZE.get(word)
        if end > stop:
            return -1
        plain = word & NAMELESS
        if kind == ARG_INT32 or kind == ARG_UINT32 or kind == ARG_STRING:
            which = self.argument_of.get(plain & LOW32, NARROW)
        else:
            which = self.argument_of.get(plain, WIDE)
        if which < 0:
            return -1
        self.place = 8 * at
        self.out.literal(ARGUMENT_NAME)
        at = self.string(name, at + 1, end)
        if at < 0:
            return -1
        self.out.literal(self.arguments[which])
        value = word >> ARG_VALUE_AT
        ref = 0
        if kind == ARG_STRING:
            ref = value & LOW32
            if ref >> STRING_REF_BITS:
                return -1
            at = self.string(ref, at, end)
            if at < 0:
                return -1
        elif kind == ARG_INT32:
            self.out.signed(value)
        elif kind == ARG_UINT32:
            self.out.natural(value & LOW32)
        elif kind != ARG_NULL and kind != ARG_BOOL:
            if at >= end:
                return -1
            value = self.words[at]
            if kind == ARG_DOUBLE:
                if (value & EXPONENT) == EXPONENT:
                    return -1
                self.out.real(self.doubles[at], value)
            elif kind == ARG_INT64:
                self.out.signed(value)
            else:
                self.out.natural(value)
            at += 1
        if at != end:
            return -1
        refs = 0
        if 0 < name < INLINE_STRING:
            refs = self.reference(refs, NAME_REFS, NAME, name)
        if 0 < ref < INLINE_STRING:
            refs = self.reference(refs, VALUE_REFS, VALUE, ref)
        self.out.literal(END_OF_REFS if refs else END_OF_RECORD)
        return end
