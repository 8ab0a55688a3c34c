"""Kernel: the lines of record JSON of events whose parts are known, straight from their words."""

from __future__ import annotations

from typing import Any

from fx_trace.format import (
    ARG_DOUBLE,
    ARG_INT32,
    ARG_INT64,
    ARG_KIND,
    ARG_STRING,
    ARG_UINT32,
    ARG_VALUE_AT,
    EVENT_CATEGORY,
    EVENT_NAME,
    EVENT_THREAD,
)
from fxframework.kernels.annotations import Array, Fallible, View, f64, i32, i64, status
from fxframework.kernels.buffers import full, grown
from fxframework.kernels.kernel import Kernel
from fxframework.kernels.maps import PairMap
from fxframework.kernels.output import Output

__all__ = ["PlainEvents"]

TEXTS = (
    b'{"record":"event","offset":', b',"thread":', b',"category":', b',"name":', b',"args":[', b",",
    b',"refs":{"thread":', b',"category":', b',"name":', b"}}\n",
    b"}}",
)  # fmt: skip
RECORD = 0
THREAD = 1
CATEGORY = 2
NAME = 3
ARGS = 4
COMMA = 5
REFS = 6
CATEGORY_REF = 7
NAME_REF = 8
END_OF_RECORD = 9
END_OF_REFS = 10
LITERALS = 11

END = 0
FULL = 1
NOT_PLAIN = 2

SHAPE = 5
"""Numbers of a shape: literals before the time and after the arguments, words, arguments, and
whether a last word follows."""
ARGUMENT = 3
"""Numbers of an argument: literals before the value and after it (-1: it has none), and, of a
string, what follows where its value has a reference."""
NARROW = 1
WIDE = 0
"""How an argument is looked up: by the lower half of its header word, or by all of it."""
LOW24 = 0xFFFFFF
LOW32 = 0xFFFFFFFF
EXPONENT = 0x7FF0000000000000
THREADS = 256
STRINGS = 1 << 15


class PlainEvents(Kernel):
    """Writes the lines of events from word ``pos`` on; ``records`` counts them.

    ``run`` gives END at word ``whole``, FULL once ``most`` bytes are written, and NOT_PLAIN at what
    is not an event of which all parts are known. ``know_shape``, ``know_thread``, ``know_string``
    and ``know_argument`` teach parts, ``forget`` takes back all, ``forget_thread`` a thread.
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
    pos: i64
    whole: i64
    records: i64
    most: i64

    def __init__(self, most: int) -> None:
        self.out = Output(TEXTS, memoryview(b""))
        self.most = most
        self.pos = 0
        self.whole = 0
        self.records = 0
        self.shapes = full(64 * SHAPE, "i8")
        self.arguments = full(64 * ARGUMENT, "i8")
        self.words = memoryview(bytes(8)).cast("q")
        self.doubles = memoryview(bytes(8)).cast("d")
        self.shape_of = PairMap()
        self.argument_of = PairMap()
        self.threads = full(THREADS, "i4", -1)
        self.strings = full(STRINGS, "i4", -1)
        self.forget()

    def read_from(self, words: memoryview, doubles: Any, whole: int) -> None:
        """Read these words (int64, and the same as float64) from now on, up to ``whole``."""
        self.words = memoryview(words)
        self.doubles = memoryview(doubles)
        self.whole = whole

    def forget(self) -> None:
        """Forget all parts, if any are known."""
        if self.out.count == LITERALS + 1:
            return
        self.out.forget(LITERALS)
        self.shape_of = PairMap()
        self.argument_of = PairMap()
        self.threads = full(THREADS, "i4", -1)
        self.strings = full(STRINGS, "i4", -1)
        self.strings[0] = self.out.add(b'""')

    def forget_thread(self, index: int) -> None:
        """Forget the thread of an index."""
        self.threads[index] = -1

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

    def know_thread(self, index: int, text: bytes) -> None:
        """The JSON of the thread of an index."""
        if self.threads[index] < 0:
            self.threads[index] = self.out.add(text)

    def knows_string(self, index: int) -> bool:
        """Return whether the string of an index is known."""
        return index < STRINGS and self.strings[index] >= 0

    def know_string(self, index: int, text: bytes) -> None:
        """The JSON of the string of an index."""
        if self.strings[index] < 0:
            self.strings[index] = self.out.add(text)

    def know_argument(self, word: int, narrow: bool, texts: tuple[bytes | None, ...]) -> None:
        """Texts of an argument, by its header word, or by the lower half of it."""
        before = len(self.argument_of)
        number = self.argument_of.number(word, int(narrow))
        if number < before:
            return
        if ARGUMENT * (number + 1) > len(self.arguments):
            self.arguments = grown(self.arguments, 2 * len(self.arguments), len(self.arguments))
        for place, text in enumerate(texts):
            known = -1 if text is None else self.out.add(text)
            self.arguments[ARGUMENT * number + place] = known

    def step(self) -> Fallible[i64]:
        """Write lines."""
        while self.out.used < self.most:
            if self.pos >= self.whole:
                return END
            before = self.out.used
            if not self.event(self.pos):
                self.out.used = before
                return NOT_PLAIN
            self.records += 1
        return FULL

    def event(self, at: i64) -> status:
        """Write the line of the event at a word, and go behind it: 1, or 0 where it is unknown."""
        header = self.words[at]
        shape = self.shape_of.get(header & LOW24, 0)
        if shape < 0:
            return 0
        shape = shape * SHAPE
        thread = EVENT_THREAD.get(header)
        category = EVENT_CATEGORY.get(header)
        name = EVENT_NAME.get(header)
        if category >= STRINGS or name >= STRINGS or self.threads[thread] < 0:
            return 0
        if self.strings[category] < 0 or self.strings[name] < 0:
            return 0
        end = at + self.shapes[shape + 2]
        if end > self.whole:
            return 0
        last = end - self.shapes[shape + 4]
        self.out.literal(RECORD)
        self.out.natural(8 * at)
        self.out.literal(self.shapes[shape])
        self.out.natural(self.words[at + 1])
        self.out.literal(THREAD)
        self.out.literal(self.threads[thread])
        self.out.literal(CATEGORY)
        self.out.literal(self.strings[category])
        self.out.literal(NAME)
        self.out.literal(self.strings[name])
        self.out.literal(ARGS)
        place = at + 2
        count = self.shapes[shape + 3]
        for number in range(count):
            if number:
                self.out.literal(COMMA)
            place = self.argument(place, last)
            if place < 0:
                return 0
        if place != last:
            return 0
        self.out.literal(self.shapes[shape + 1])
        if last < end:
            self.out.natural(self.words[last])
        self.out.literal(REFS)
        self.out.natural(thread)
        if category:
            self.out.literal(CATEGORY_REF)
            self.out.natural(category)
        if name:
            self.out.literal(NAME_REF)
            self.out.natural(name)
        self.out.literal(END_OF_RECORD)
        self.pos = end
        return 1

    def argument(self, at: i64, stop: i64) -> Fallible[i64]:
        """Write the argument at a word; return where it ends, -1 where it is unknown."""
        if at >= stop:
            return -1
        word = self.words[at]
        kind = ARG_KIND.get(word)
        at += 1
        if kind == ARG_INT32 or kind == ARG_UINT32 or kind == ARG_STRING:
            which = self.argument_of.get(word & LOW32, NARROW)
        else:
            which = self.argument_of.get(word, WIDE)
        if which < 0:
            return -1
        which = which * ARGUMENT
        value = word >> ARG_VALUE_AT
        if kind == ARG_STRING:
            value = value & LOW32
            if value >= STRINGS or self.strings[value] < 0:
                return -1
            self.out.literal(self.arguments[which])
            self.out.literal(self.strings[value])
            if value == 0:
                self.out.literal(self.arguments[which + 1])
                return at
            self.out.literal(self.arguments[which + 2])
            self.out.natural(value)
            self.out.literal(END_OF_REFS)
            return at
        self.out.literal(self.arguments[which])
        if self.arguments[which + 1] < 0:
            return at
        if kind == ARG_INT32:
            self.out.signed(value)
        elif kind == ARG_UINT32:
            self.out.natural(value & LOW32)
        else:
            if at >= stop:
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
        self.out.literal(self.arguments[which + 1])
        return at
