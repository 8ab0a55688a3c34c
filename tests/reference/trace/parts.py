"""The kinds of field that records are made of: how each is read, written and shown as JSON.

``name`` is the attribute of the record and the key of its JSON.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping
from typing import Any, ClassVar

from tests.reference.trace import layout as wire
from tests.reference.trace.cursor import (
    Cursor,
    Koids,
    RecordBuilder,
    Tables,
    TraceFields,
    encoded,
    string_marker,
    thread_marker,
)

from fx_trace import rules
from fxframework.errors import Rule, refusal
from fxframework.io.words import U64_MAX, WORD, Bits, WordLayout, padding, to_i64
from fxframework.kit.json_fields import (
    CANONICAL_NAN,
    bits_of,
    double_of,
    show_double,
    show_text,
    shown_text,
)

I64_MIN, I64_MAX = -(1 << 63), (1 << 63) - 1

# --- Parts: the kinds of field that records are made of ----------------------------------------
#
# A part knows how its field is read, written, shown as JSON and taken from JSON. `name` is that of
# the attribute and the JSON key.


class Part:
    """Something in a record. This one takes no bytes, has no value and is not shown."""

    is_stream = False
    """Whether what it takes beyond its labelled words is a stream of the field's name."""

    def __init__(self) -> None:
        self.name = ""

    def labels(self, values: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the names of the words taken for ``values``, up to where the stream begins."""
        return ()

    def bind(self, name: str, layout: WordLayout) -> WordLayout:
        """Learn the attribute and the header word; return the header word of the next part."""
        self.name = name
        return layout

    def precede(self, following: tuple[Part, ...]) -> None:
        """Learn the parts that follow this one in the record."""

    def read(self, c: Cursor, values: dict[str, Any]) -> None:
        """Take the field from the record into ``values``, by attribute."""

    def skip(self, c: Cursor) -> None:
        """Move to where the field ends, without reading it; it may be past the record's end."""

    def write(self, record: Any, b: RecordBuilder) -> None:
        """Append the field."""

    def show(self, record: Any, out: dict[str, Any]) -> None:
        """Put the field into JSON."""

    def parse(self, form: TraceFields, values: dict[str, Any]) -> None:
        """Take the field from JSON into ``values``."""


class ValuePart(Part):
    """A number that JSON shows as it is."""

    def show(self, record: Any, out: dict[str, Any]) -> None:
        out[self.name] = getattr(record, self.name)

    def parse(self, form: TraceFields, values: dict[str, Any]) -> None:
        values[self.name] = form.number(self.name)


class HeaderField(ValuePart):
    """A part that has bits of the header. ``source`` is their name where it is not the field's."""

    def __init__(self, source: str | Bits | None = None) -> None:
        super().__init__()
        self.source = source
        if isinstance(source, Bits):
            self.take(source)

    def bind(self, name: str, layout: WordLayout) -> WordLayout:
        if not isinstance(self.source, Bits):
            wanted = self.source or name
            self.take(next(bits for bits in layout.fields if bits.name == wanted))
        return super().bind(name, layout)

    def take(self, bits: Bits) -> None:
        """Unpack the declaration, which is consulted for every record."""
        self.bits = bits
        self.low = bits.low
        self.limit = bits.limit


class Number(HeaderField):
    """An unsigned number in the header."""

    def read(self, c: Cursor, values: dict[str, Any]) -> None:
        values[self.name] = c.header >> self.low & self.limit

    def write(self, record: Any, b: RecordBuilder) -> None:
        b.put(self, getattr(record, self.name))


class Listed(Number):
    """An unsigned number in the header, of which the format defines some values."""

    def __init__(self, rule: Rule, values: Container[int]) -> None:
        super().__init__()
        self.rule = rule
        self.values = values

    def read(self, c: Cursor, values: dict[str, Any]) -> None:
        super().read(c, values)
        if values[self.name] not in self.values:
            c.find(self.rule, values[self.name])


class OptionalNumber(Number):
    """An unsigned number in the header, which JSON shows where it is not 0."""

    def show(self, record: Any, out: dict[str, Any]) -> None:
        if getattr(record, self.name):
            super().show(record, out)

    def parse(self, form: TraceFields, values: dict[str, Any]) -> None:
        values[self.name] = form.number(self.name) if self.name in form else 0


class Signed(Number):
    """A two's-complement number in the header."""

    def read(self, c: Cursor, values: dict[str, Any]) -> None:
        value = c.header >> self.low & self.limit
        values[self.name] = value - (self.limit + 1) if value > self.limit // 2 else value

    def write(self, record: Any, b: RecordBuilder) -> None:
        value = getattr(record, self.name)
        most = self.limit // 2
        if not -most - 1 <= value <= most:
            raise b.unfit(self.name, value, -most - 1, most)
        b.header |= (value & self.limit) << self.low


class Flag(Number):
    """One bit of the header, true or false."""

    def read(self, c: Cursor, values: dict[str, Any]) -> None:
        values[self.name] = c.header & 1 << self.low != 0

    def write(self, record: Any, b: RecordBuilder) -> None:
        b.put(self, int(getattr(record, self.name)))

    def parse(self, form: TraceFields, values: dict[str, Any]) -> None:
        values[self.name] = form.flag(self.name)


class Named(HeaderField):
    """A number in the header that goes by a name; a number without one is a finding."""

    def take(self, bits: Bits) -> None:
        super().take(bits)
        self.names = dict(bits.values)
        self.numbers = {name: number for number, name in bits.values.items()}

    def read(self, c: Cursor, values: dict[str, Any]) -> None:
        number = c.header >> self.low & self.limit
        name = values[self.name] = self.names.get(number, number)
        if name is number:
            c.find(rules.UNKNOWN_KIND, number)

    def write(self, record: Any, b: RecordBuilder) -> None:
        value = getattr(record, self.name)
        b.put(self, self.numbers[value] if isinstance(value, str) else value)

    def parse(self, form: TraceFields, values: dict[str, Any]) -> None:
        values[self.name] = form.one_of(self.name, self.numbers, self.limit)


class Magic(Number):
    """The magic number, shown in hex; trace info of an undefined type has none."""

    def read(self, c: Cursor, values: dict[str, Any]) -> None:
        if values["info_type"] == 0:
            super().read(c, values)
            if values[self.name] != wire.MAGIC:
                c.find(rules.OTHER_MAGIC, values[self.name])
        else:
            values[self.name] = None
            c.find(rules.UNKNOWN_KIND, values["info_type"])
            c.reserved = None  # what the bits of that type mean, only it knows
            c.at = c.end

    def show(self, record: Any, out: dict[str, Any]) -> None:
        if record.magic is not None:
            out[self.name] = f"0x{record.magic:08x}"

    def parse(self, form: TraceFields, values: dict[str, Any]) -> None:
        values[self.name] = None
        if values["info_type"] == 0:
            values[self.name] = form.hex_number(self.name)


class Word(ValuePart):
    """A word of its own."""

    def labels(self, values: Mapping[str, Any]) -> tuple[str, ...]:
        return (self.name,)

    def read(self, c: Cursor, values: dict[str, Any]) -> None:
        values[self.name] = c.u64()

    def skip(self, c: Cursor) -> None:
        c.at += WORD

    def write(self, record: Any, b: RecordBuilder) -> None:
        b.u64(self.name, getattr(record, self.name))


class SignedWord(Word):
    """A word of its own in two's complement."""

    def read(self, c: Cursor, values: dict[str, Any]) -> None:
        values[self.name] = to_i64(c.u64())

    def write(self, record: Any, b: RecordBuilder) -> None:
        value = getattr(record, self.name)
        if not I64_MIN <= value <= I64_MAX:
            raise b.unfit(self.name, value, I64_MIN, I64_MAX)
        b.u64(self.name, value & U64_MAX)


class Double(Word):
    """A word that is a double. ``bits`` holds the payload of a NaN that is not the usual one."""

    def read(self, c: Cursor, values: dict[str, Any]) -> None:
        word = c.u64()
        value = values[self.name] = double_of(word)
        if math.isnan(value):
            values[self.name] = math.nan
            values["bits"] = None if word == CANONICAL_NAN else word

    def write(self, record: Any, b: RecordBuilder) -> None:
        value = getattr(record, self.name)
        if math.isnan(value):
            b.u64(self.name, CANONICAL_NAN if record.bits is None else record.bits)
        else:
            b.u64(self.name, bits_of(value))

    def show(self, record: Any, out: dict[str, Any]) -> None:
        show_double(out, self.name, getattr(record, self.name), record.bits)

    def parse(self, form: TraceFields, values: dict[str, Any]) -> None:
        values[self.name], bits = form.double(self.name)
        if bits is not None:
            values["bits"] = bits


class Words(HeaderField):
    """As many words as the header says."""

    def labels(self, values: Mapping[str, Any]) -> tuple[str, ...]:
        return tuple(f"{self.name}[{number}]" for number in range(len(values[self.name])))

    def read(self, c: Cursor, values: dict[str, Any]) -> None:
        values[self.name] = tuple(c.u64() for _ in range(c.header >> self.low & self.limit))

    def write(self, record: Any, b: RecordBuilder) -> None:
        values = getattr(record, self.name)
        if len(values) > self.limit:
            raise refusal(
                rules.TOO_MANY, f"{b.what}: {len(values)} {self.name}, at most {self.limit}"
            )
        b.put(self, len(values))
        for value in values:
            b.u64(self.name, value)

    def show(self, record: Any, out: dict[str, Any]) -> None:
        out[self.name] = list(getattr(record, self.name))

    def parse(self, form: TraceFields, values: dict[str, Any]) -> None:
        given = form.need(self.name)
        if not isinstance(given, list | tuple) or any(type(value) is not int for value in given):
            raise form.wrong(self.name, "a list of whole numbers")
        values[self.name] = tuple(given)


class Stream(HeaderField):
    """Bytes whose number the header has. Shown in hex under ``key``."""

    is_stream = True

    def __init__(self, source: str | Bits | None = None, *, key: str = "") -> None:
        super().__init__(source)
        self.key = key

    def bind(self, name: str, layout: WordLayout) -> WordLayout:
        self.key = self.key or name
        return super().bind(name, layout)

    def read(self, c: Cursor, values: dict[str, Any]) -> None:
        values[self.name] = c.stream(c.header >> self.low & self.limit)

    def skip(self, c: Cursor) -> None:
        nbytes = c.header >> self.low & self.limit
        c.at += nbytes + padding(nbytes)

    def write(self, record: Any, b: RecordBuilder) -> None:
        data = getattr(record, self.name)
        b.stream(self.name, data, self.limit)
        b.put(self, len(data))

    def show(self, record: Any, out: dict[str, Any]) -> None:
        out[self.key] = getattr(record, self.name).hex()

    def parse(self, form: TraceFields, values: dict[str, Any]) -> None:
        values[self.name] = form.octets(self.key)


class Payload(Stream):
    """The payload of a blob, with its size beside it; on its way in, the payload alone counts."""

    def show(self, record: Any, out: dict[str, Any]) -> None:
        out["size"] = len(getattr(record, self.name))
        super().show(record, out)

    def parse(self, form: TraceFields, values: dict[str, Any]) -> None:
        form.used.add("size")
        super().parse(form, values)


class LargePayload(Payload):
    """The payload of a large blob: its size is a word of its own."""

    def __init__(self, *, key: str) -> None:
        super().__init__(Bits("blob_size", 0, 63, "bytes of the payload"), key=key)

    def labels(self, values: Mapping[str, Any]) -> tuple[str, ...]:
        return ("blob_size",)

    def read(self, c: Cursor, values: dict[str, Any]) -> None:
        values[self.name] = c.stream(c.u64())

    def write(self, record: Any, b: RecordBuilder) -> None:
        data = getattr(record, self.name)
        b.u64("blob_size", len(data))
        b.stream(self.name, data, self.limit)


class Rest(ValuePart):
    """All words that are left of an argument of an undefined type. Shown in hex."""

    is_stream = True

    def read(self, c: Cursor, values: dict[str, Any]) -> None:
        values[self.name] = c.stream(c.end - c.at)

    def write(self, record: Any, b: RecordBuilder) -> None:
        data = getattr(record, self.name)
        if len(data) % WORD:
            raise refusal(
                rules.OUT_OF_RANGE, f"{b.what}: {self.name} is not a whole number of 8-byte words"
            )
        b.chunks.append(data)

    def show(self, record: Any, out: dict[str, Any]) -> None:
        out[self.name] = getattr(record, self.name).hex()

    def parse(self, form: TraceFields, values: dict[str, Any]) -> None:
        values[self.name] = form.octets(self.name)


class Nothing(ValuePart):
    """The value of an argument that has none."""

    def read(self, c: Cursor, values: dict[str, Any]) -> None:
        values[self.name] = None

    def parse(self, form: TraceFields, values: dict[str, Any]) -> None:
        values[self.name] = form.given.get(self.name)
        form.used.add(self.name)
        if values[self.name] is not None:
            raise form.wrong(self.name, "null")


class Text(Stream):
    """A text whose number of bytes the header has."""

    def read(self, c: Cursor, values: dict[str, Any]) -> None:
        values[self.name] = c.text(c.header >> self.low & self.limit, rules.NOT_UTF8)

    def write(self, record: Any, b: RecordBuilder) -> None:
        data = encoded(b.what, self.name, getattr(record, self.name))
        b.stream(self.name, data, self.limit)
        b.put(self, len(data))

    def show(self, record: Any, out: dict[str, Any]) -> None:
        show_text(out, self.name, getattr(record, self.name))

    def parse(self, form: TraceFields, values: dict[str, Any]) -> None:
        values[self.name] = form.text(self.name)


class Reference(HeaderField):
    """A field that is an index into a table, or is inline."""

    def holds(self, record: Any, index: int, tables: Tables) -> bool:
        """Return whether the index, looked up now, gives what the record shows."""
        raise NotImplementedError


class StringReference(Reference):
    """A string reference. ``code`` is the finding where it is inline and is not UTF-8."""

    is_stream = True

    def __init__(self, source: str | Bits | None = None, *, rule: Rule = rules.NOT_UTF8) -> None:
        super().__init__(source)
        self.rule = rule

    def read(self, c: Cursor, values: dict[str, Any]) -> None:
        ref = c.header >> self.low & wire.STRING_REF_BITS
        if not ref:
            values[self.name] = ""
        elif ref & wire.INLINE_STRING:
            values[self.name] = c.text(ref & wire.STRING_FIELD_BYTES, self.rule)
        else:
            text = c.tables.current.strings.get(ref)
            values[self.name] = self.elsewhere(c, ref) if text is None else text
            c.refer(self.name, ref)

    def elsewhere(self, c: Cursor, index: int) -> str:
        """Return what an index stands for that the provider never registered."""
        text = c.tables.string(index)
        if text is None:
            c.find(rules.STRING_NOT_REGISTERED, index)
            return string_marker(index)
        c.find(rules.OF_DEFAULT_PROVIDER, index)
        return text

    def skip(self, c: Cursor) -> None:
        ref = c.header >> self.low & wire.STRING_REF_BITS
        if ref & wire.INLINE_STRING:
            nbytes = ref & wire.STRING_FIELD_BYTES
            c.at += nbytes + padding(nbytes)

    def write(self, record: Any, b: RecordBuilder) -> None:
        index = b.refs.get(self.name)
        if index is not None:
            b.header |= index << self.low
            return
        data = encoded(b.what, self.name, getattr(record, self.name))
        if data:
            b.stream(self.name, data, wire.STRING_FIELD_BYTES)
            b.header |= (wire.INLINE_STRING | len(data)) << self.low

    def show(self, record: Any, out: dict[str, Any]) -> None:
        show_text(out, self.name, getattr(record, self.name))

    def parse(self, form: TraceFields, values: dict[str, Any]) -> None:
        values[self.name] = form.text(self.name)

    def holds(self, record: Any, index: int, tables: Tables) -> bool:
        text = getattr(record, self.name)
        if not 0 < index <= wire.MAX_STRING_INDEX:
            return False
        if text == string_marker(index):
            # It names the index, whatever an edit before it may have registered there.
            return True
        found = tables.string(index)
        return found is not None and text in (found, shown_text(found))


class Thread(Reference):
    """A thread reference; inline it is two words, process and thread."""

    def labels(self, values: Mapping[str, Any]) -> tuple[str, ...]:
        return ("process koid", "thread koid")

    def read(self, c: Cursor, values: dict[str, Any]) -> None:
        ref = c.header >> self.low & wire.MAX_THREAD_INDEX
        values[self.name] = self.registered(c, ref) if ref else (c.u64(), c.u64())

    def registered(self, c: Cursor, index: int) -> Koids:
        """Return the thread at an index, or what stands for one that is not there."""
        c.refer(self.name, index)
        thread = c.tables.current.threads.get(index)
        if thread is not None:
            return thread
        thread = c.tables.thread(index)
        if thread is None:
            c.find(rules.THREAD_NOT_REGISTERED, index)
            return thread_marker(index)
        c.find(rules.OF_DEFAULT_PROVIDER, index)
        return thread

    def write(self, record: Any, b: RecordBuilder) -> None:
        value = getattr(record, self.name)
        index = self.index(value, b)
        if index:
            b.header |= index << self.low
        else:
            b.u64(self.name, value[0])
            b.u64(self.name, value[1])

    def index(self, value: Koids | int, b: RecordBuilder) -> int:
        """Return the index to write, 0 for inline. A marker has nothing inline, only its index."""
        index = b.refs.get(self.name)
        if index is not None:
            return index
        return int(value[len("<thr#") : -1]) if isinstance(value, str) else 0

    def show(self, record: Any, out: dict[str, Any]) -> None:
        value = getattr(record, self.name)
        out[self.name] = value if isinstance(value, str) else list(value)

    def parse(self, form: TraceFields, values: dict[str, Any]) -> None:
        values[self.name] = form.koids(self.name)

    def holds(self, record: Any, index: int, tables: Tables) -> bool:
        value = getattr(record, self.name)
        if value is None or not 0 < index <= wire.MAX_THREAD_INDEX:
            return False
        return bool(value == thread_marker(index) or value == tables.thread(index))


class ThreadOrProcess(Thread):
    """A thread reference whose inline form some write as one word, the process.

    Which it is, the record's size says: what fills the record exactly; where neither does, the
    usual number of words, if so many fit.
    """

    usual_words = 2
    following: tuple[Part, ...] = ()
    """The parts up to the end of the record."""

    def precede(self, following: tuple[Part, ...]) -> None:
        self.following = following

    def is_one_word(self, c: Cursor) -> bool:
        """Return whether the inline form has one word."""
        here = c.at
        ends = []
        for words in (1, 2):
            c.at = here + words * WORD
            for part in self.following:
                part.skip(c)
            ends.append(c.at)
        c.at = here
        one, two = ends
        if c.end in ends:
            return one == c.end
        return one < c.end and (self.usual_words == 1 or two > c.end)

    def read(self, c: Cursor, values: dict[str, Any]) -> None:
        ref = c.header >> self.low & wire.MAX_THREAD_INDEX
        values["process"] = None
        if ref:
            values[self.name] = self.registered(c, ref)
        elif self.is_one_word(c):
            c.find(rules.ONE_WORD_THREAD)
            values[self.name] = None
            values["process"] = c.u64()
        else:
            values[self.name] = (c.u64(), c.u64())

    def write(self, record: Any, b: RecordBuilder) -> None:
        if record.process is None:
            super().write(record, b)
        else:
            b.u64("process", record.process)

    def show(self, record: Any, out: dict[str, Any]) -> None:
        if record.process is None:
            super().show(record, out)
        else:
            out["process"] = record.process

    def parse(self, form: TraceFields, values: dict[str, Any]) -> None:
        values[self.name] = None
        if self.name in form and "process" in form:
            raise refusal(
                rules.CONTRADICTION, f"{form.what}: it has {self.name} or process, not both"
            )
        if "process" in form:
            values["process"] = form.number("process")
        else:
            super().parse(form, values)


class Process(ThreadOrProcess):
    """The process of a userspace object; some write process and thread where it is inline."""

    usual_words = 1

    def read(self, c: Cursor, values: dict[str, Any]) -> None:
        ref = c.header >> self.low & wire.MAX_THREAD_INDEX
        values["thread"] = None
        if ref:
            thread = self.registered(c, ref)
            values[self.name] = thread if isinstance(thread, str) else thread[0]
        elif self.is_one_word(c):
            values[self.name] = c.u64()
        else:
            c.find(rules.TWO_WORD_PROCESS)
            values["thread"] = (c.u64(), c.u64())
            values[self.name] = values["thread"][0]

    def write(self, record: Any, b: RecordBuilder) -> None:
        index = self.index(record.process, b)
        if index:
            b.header |= index << self.low
            return
        if record.thread is not None and record.thread[0] != record.process:
            raise refusal(
                rules.CONTRADICTION,
                f"{b.what}: process is {record.process}, but that of thread is {record.thread[0]}",
            )
        b.u64("process", record.process)
        if record.thread is not None:
            b.u64("thread", record.thread[1])

    def show(self, record: Any, out: dict[str, Any]) -> None:
        out[self.name] = record.process
        if record.thread is not None:
            out["thread"] = list(record.thread)

    def parse(self, form: TraceFields, values: dict[str, Any]) -> None:
        if isinstance(form.need(self.name), str):
            values[self.name] = form.koids(self.name)
        else:
            values[self.name] = form.number(self.name)
        if "thread" in form:
            values["thread"] = form.koids("thread")
            if isinstance(values["thread"], str):
                raise form.wrong("thread", "[process koid, thread koid]")

    def holds(self, record: Any, index: int, tables: Tables) -> bool:
        if record.thread is not None or not 0 < index <= wire.MAX_THREAD_INDEX:
            return False
        found = tables.thread(index)
        return bool(
            record.process == thread_marker(index)
            or (found is not None and record.process == found[0])
        )


class NextHeader(Part):
    """A second header word, which the fields after it are of."""

    def __init__(self, layout: WordLayout) -> None:
        super().__init__()
        self.layout = layout
        self.reserved = layout.reserved_mask

    def bind(self, name: str, layout: WordLayout) -> WordLayout:
        return self.layout

    def read(self, c: Cursor, values: dict[str, Any]) -> None:
        c.header = c.u64()
        if c.header & self.reserved:
            c.find_once(reserved=True)

    def write(self, record: Any, b: RecordBuilder) -> None:
        b.next_header()


class Opaque(Part):
    """The rest of a record of an undefined kind, which only its raw bytes hold."""

    def read(self, c: Cursor, values: dict[str, Any]) -> None:
        c.find(rules.UNKNOWN_KIND, values[self.name])
        c.at = c.end


class BaseTime(Part):
    """The base tick, and the wall time at it, of a long initialization record."""

    NAMES = ("base_tick", "base_wall_ns")

    def labels(self, values: Mapping[str, Any]) -> tuple[str, ...]:
        return self.NAMES

    def read(self, c: Cursor, values: dict[str, Any]) -> None:
        if c.end - c.at >= 2 * WORD:
            for name in self.NAMES:
                values[name] = c.u64()

    def write(self, record: Any, b: RecordBuilder) -> None:
        given = [getattr(record, name) for name in self.NAMES]
        if given == [None, None]:
            return
        for name, value in zip(self.NAMES, given, strict=True):
            if value is None:
                raise refusal(rules.INVALID_FIELDS, f"{b.what}: {name} is missing beside the other")
            b.u64(name, value)

    def show(self, record: Any, out: dict[str, Any]) -> None:
        for name in self.NAMES:
            if getattr(record, name) is not None:
                out[name] = getattr(record, name)

    def parse(self, form: TraceFields, values: dict[str, Any]) -> None:
        for name in self.NAMES:
            if name in form:
                values[name] = form.number(name)


class Tail(Part):
    """What follows an event's arguments: by its type, a word of its own, a scope, nothing."""

    NAMES: ClassVar = {
        wire.EVENT_NAMES[number]: {
            wire.EventType.COUNTER: "counter_id",
            wire.EventType.DURATION_COMPLETE: "end_timestamp",
        }.get(number, "id")
        for number in wire.EVENT_HAS_WORD
    }
    SCOPES: ClassVar = {name: number for number, name in wire.SCOPES.items()}

    def labels(self, values: Mapping[str, Any]) -> tuple[str, ...]:
        event = values["event"]
        return (self.NAMES.get(event, "scope"),) if isinstance(event, str) else ()

    def read(self, c: Cursor, values: dict[str, Any]) -> None:
        event = values["event"]
        if event in self.NAMES:
            values[self.NAMES[event]] = c.u64()
        elif event == "instant" and c.at < c.end:
            number = c.u64()
            scope = values["scope"] = wire.SCOPES.get(number, number)
            if scope is number:
                c.find(rules.UNKNOWN_SCOPE, number)
        elif not isinstance(event, str):
            c.at = c.end  # the contents of an undefined type are unknown

    def write(self, record: Any, b: RecordBuilder) -> None:
        name = self.NAMES.get(record.event)
        if name:
            value = getattr(record, name)
            if value is None:
                raise refusal(rules.INVALID_FIELDS, f"{b.what}: {name} is missing")
            b.u64(name, value)
        elif record.event == "instant" and record.scope is not None:
            scope = record.scope
            b.u64("scope", self.SCOPES[scope] if isinstance(scope, str) else scope)

    def show(self, record: Any, out: dict[str, Any]) -> None:
        name = self.NAMES.get(record.event)
        if name:
            out[name] = getattr(record, name)
        elif record.scope is not None:
            out["scope"] = record.scope

    def parse(self, form: TraceFields, values: dict[str, Any]) -> None:
        name = self.NAMES.get(values["event"])
        if name:
            values[name] = form.number(name)
        elif values["event"] == "instant" and "scope" in form:
            values["scope"] = form.one_of("scope", self.SCOPES, U64_MAX)


def parse_refs(form: TraceFields, parts: tuple[Part, ...]) -> dict[str, int] | None:
    """Return the ``refs`` of an object whose parts these are."""
    if "refs" not in form.given:
        return None
    refs = form.need("refs")
    names = {part.name for part in parts if isinstance(part, Reference)}
    if not isinstance(refs, dict) or any(type(index) is not int for index in refs.values()):
        raise form.wrong("refs", "an object of whole numbers")
    for name in refs:
        if name not in names:
            raise refusal(
                rules.INVALID_FIELDS,
                f"{form.what}: refs has {name!r}, which is not a reference here",
            )
    return dict(refs) or None
