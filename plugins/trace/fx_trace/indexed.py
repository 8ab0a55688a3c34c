"""Fields of records: of their headers, and references to strings and threads.

A reference is an index into a table that earlier records filled, or its value is inline.
"""

from __future__ import annotations

import itertools
import operator
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fx_trace import rules
from fx_trace.kinds import INLINE_STRING, MAX_STRING_INDEX, MAX_THREAD_INDEX, STRING_FIELD_BYTES
from fxframework import wire
from fxframework.errors import refusal
from fxframework.io.words import U64_MAX, WORD
from fxframework.io.words import Bits as WordBits
from fxframework.kit.json_fields import JsonFields, shown_text
from fxframework.wire.cursor import Cursor, Draft, RefusalError, order_of
from fxframework.wire.fields import Bits, Field, Values, refusal_of_range
from fxframework.wire.json_columns import Column, integers
from fxframework.wire.known import LENGTH, START
from fxframework.wire.spans import Octets, Text

if TYPE_CHECKING:
    from fxframework.wire.many import Many

Koids = tuple[int, int] | str
"""A thread: (process koid, thread koid), or ``<thr#N>`` where index N was never registered."""

STRINGS = wire.table("str")
THREADS = wire.table("thr")
UNREGISTERED_THREAD = re.compile(r"<thr#(\d{1,3})>")


LENT = 106
"""The rule of fields for references to what the default provider registered."""


ARGUMENT_SIZE = WordBits("arg_size", 4, 15)
"""The words of an argument, in its header."""


def string_marker(index: int) -> str:
    """Return what stands for a string that was never registered."""
    return STRINGS.unknown(index)  # type: ignore[no-any-return]


def thread_marker(index: int) -> str:
    """Return what stands for a thread that was never registered."""
    return THREADS.unknown(index)  # type: ignore[no-any-return]


# --- Headers and streams --------------------------------------------------------------------------

STRING_REFERENCE = "string reference"
THREAD_REFERENCE = "thread reference"


class HexBits(Bits):
    """A number that JSON shows in hex."""

    def show(self, value: Any, out: dict[str, Any]) -> None:
        """Put the number into record JSON."""
        out[self.name] = f"0x{value:0{self.nbits // 4}x}"

    def parse(self, form: JsonFields) -> Any:
        """Return the number."""
        return form.hex_number(self.name)


class OptionalBits(Bits):
    """A number that JSON shows where it is not 0."""

    def show(self, value: Any, out: dict[str, Any]) -> None:
        """Put the number into record JSON."""
        if value:
            super().show(value, out)


def bits(low: int, high: int, label: str = "", doc: str = "", **options: Any) -> Any:
    """Return a field of a header; ``label`` is its name in `fxf explain`."""
    return wire.bits(low, high, label=label, doc=doc, **options)


def hex_bits(low: int, high: int, doc: str, meanings: Mapping[int, str], when: Any) -> Any:
    """Return a number that JSON shows in hex, if a condition holds."""
    return HexBits(low, high, None, doc=doc, meanings=meanings, when=when)


def optional_bits(low: int, high: int, doc: str) -> Any:
    """Return a number that JSON shows where it is not 0."""
    return OptionalBits(low, high, None, doc=doc, default=0)


def length(low: int, high: int, label: str, doc: str) -> Any:
    """Return the number of bytes of a stream."""
    return bits(low, high, label, doc, rules={404: rules.STRING_TOO_LONG})


def string_ref(low: int, label: str, of: int | None = None) -> Any:
    """Return a string reference: 0 empty, bit 15 clear an index, set the bytes of a string."""
    meanings = {0: "the empty string"}
    return bits(low, low + 15, label, STRING_REFERENCE, meanings=meanings, of=of)


def thread_ref(low: int, label: str) -> Any:
    """Return a thread reference: 0 inline, else an index."""
    return bits(low, low + 7, label, THREAD_REFERENCE, meanings={0: "inline"})


def arg_count(low: int) -> Any:
    """Return a count of arguments."""
    rule = {404: rules.TOO_MANY}
    return bits(low, low + 3, "arg_count", "number of arguments", rules=rule)


class Payload(Octets):
    """The payload of a blob, with its size beside it; on its way in, the payload alone counts."""

    def show(self, value: Any, out: dict[str, Any]) -> None:
        """Put size and bytes into record JSON."""
        out["size"] = len(value)
        super().show(value, out)

    def parse(self, form: JsonFields) -> Any:
        """Return the bytes."""
        form.used.add("size")
        return super().parse(form)


_STREAM: Any = {"align": WORD, "rules": {105: rules.PADDING_NOT_ZERO}}


def payload(nbytes: Any) -> Any:
    """Return the payload of a blob, padded with zero bytes to whole words."""
    return Payload(nbytes, **_STREAM)


def stream(nbytes: Any) -> Any:
    """Return bytes, padded with zero bytes to whole words, under their own name in JSON."""
    field = wire.octets(nbytes, **_STREAM)
    field.json_suffix = ""
    return field


def text(nbytes: Any) -> Any:
    """Return a text of a size, padded with zero bytes to whole words."""
    rule = {105: rules.PADDING_NOT_ZERO, 107: rules.NOT_UTF8}
    return wire.text(nbytes, align=WORD, rules=rule)


# --- References -----------------------------------------------------------------------------------


def string(reference: Any, rule: int = rules.NOT_UTF8) -> Any:
    """Return the text of a string reference; ``rule`` is for an inline one that is not UTF-8."""
    return wire.text(
        refers=STRINGS[reference],
        inline=INLINE_STRING,
        empty=0,
        align=WORD,
        rules={
            105: rules.PADDING_NOT_ZERO,
            107: rule,
            108: rules.STRING_NOT_REGISTERED,
            LENT: rules.OF_DEFAULT_PROVIDER,
            404: rules.STRING_TOO_LONG,
        },
    )


def parse_koids(form: JsonFields, key: str) -> Koids:
    """Return a thread: two koids, or the marker of an index that was never registered."""
    value = form.need(key)
    if isinstance(value, str):
        marker = UNREGISTERED_THREAD.fullmatch(value)
        if marker and 1 <= int(marker[1]) <= MAX_THREAD_INDEX:
            return thread_marker(int(marker[1]))
    elif isinstance(value, list | tuple) and [type(koid) for koid in value] == [int, int]:
        return (value[0], value[1])
    raise form.wrong(key, "[process koid, thread koid] or '<thr#N>'")


class Thread(Field):
    """A thread; inline it is two words, process and thread koid."""

    exact = True
    inline_words = (2, 2)
    """Words of the shortest inline form, and of the longest."""

    def __init__(self, reference: Any, **common: Any) -> None:
        rule = {108: rules.THREAD_NOT_REGISTERED, LENT: rules.OF_DEFAULT_PROVIDER}
        super().__init__(rules=rule, **common)
        self.index = reference

    def part_in_word(self, places: Mapping[Any, Any], plus: int, is_long: bool) -> Any:
        """Return how the framing goes over it: the koids are there if the index is 0."""
        from fxframework.wire.framing import ABSENT, ItemPart

        place = places[self.index]
        nbytes = WORD * self.inline_words[is_long]
        return ItemPart(ABSENT, plus, place.shift, place.mask, inline=nbytes)

    def read(self, c: Any, values: Values) -> None:
        """Read the koids, or look them up."""
        index = c.known[self.index]
        if index:
            values[self.name] = self.registered(c, index)
        else:
            values[self.name] = self.inline(c)

    def registered(self, c: Any, index: int) -> Koids:
        """Return the thread at an index, or what stands for one that is not there."""
        c.refs[self.name] = index
        return c.thread(index)  # type: ignore[no-any-return]

    def inline(self, c: Cursor) -> tuple[int, int]:
        """Return the koids that follow."""
        bytes_left = c.limit - c.at
        if bytes_left < 2 * WORD:
            raise c.short(bytes_left + WORD)
        return self.koid(c, "process koid"), self.koid(c, "thread koid")

    def koid(self, c: Cursor, label: str) -> int:
        """Return the koid that follows."""
        start = c.at
        koid = c.number(WORD)
        c.stretch(label, start, str(koid))
        return koid

    def index_written(self, draft: Draft) -> int:
        """Return the index to write, 0 for inline. A marker has nothing inline, only its index."""
        refs = draft.record.refs or {}
        if self.name in refs:
            return int(refs[self.name])
        value = getattr(draft.record, self.name)
        return int(THREADS.index_in(value)) if isinstance(value, str) else 0

    def put(self, draft: Draft) -> bytes:
        """Return what is inline."""
        if draft[self.index]:
            return b""
        return self.octets(self.name, draft.big, *getattr(draft.record, self.name))

    def octets(self, name: str, big: bool, *koids: Any) -> bytes:
        """Return the bytes of koids. Raises RefusalError for what does not fit a word."""
        data = b""
        for koid in koids:
            try:
                number = operator.index(koid)
            except TypeError:
                message = f"{name} must be an integer, not {koid!r}"
                raise RefusalError(403, message) from None
            if not 0 <= number <= U64_MAX:
                raise refusal_of_range(name, number, 0, U64_MAX)
            data += number.to_bytes(WORD, order_of(big))
        return data

    def packs(self, values: Sequence[Any], big: bool, odd: Any) -> Column:
        """Return the bytes of threads of record JSON, none for a marker; mark others in ``odd``."""
        is_pair = np.array([type(value) is list and len(value) == 2 for value in values])
        for row in np.flatnonzero(~is_pair).tolist():
            value = values[row]
            odd[row] |= type(value) is not str or not UNREGISTERED_THREAD.fullmatch(value)
        koids = list(itertools.chain.from_iterable(itertools.compress(values, is_pair)))
        is_odd = np.zeros(len(koids), np.bool_)
        words = integers(koids, 0, U64_MAX, is_odd).astype(">i8" if big else "<i8")
        odd[is_pair] |= is_odd.reshape(-1, 2).any(axis=1)
        lengths = 2 * WORD * is_pair
        return Column(lengths, words.view(np.uint8), lengths)

    def show(self, value: Any, out: dict[str, Any]) -> None:
        """Put the thread into record JSON."""
        out[self.name] = value if isinstance(value, str) else list(value)

    def parse(self, form: JsonFields) -> Any:
        """Return the thread."""
        return parse_koids(form, self.name)

    def holds(self, values: Values, index: int, tables: Any) -> bool:
        """Return whether the index, looked up now, gives what a record shows."""
        value = values[self.name]
        thread, _ = tables.look_up(THREADS, index)
        return bool(value == thread_marker(index) or value == thread)

    def read_many(self, c: Many) -> None:
        """Read the koids of many records (``START`` has their places), or look them up."""
        indexes = c.known[self.index]
        inline = np.flatnonzero(indexes == 0)
        if inline.size:
            part = c.some(inline)
            self.read_inlines(part)
            c.put_back(part, inline)
        registered = np.flatnonzero(indexes) if inline.size else None
        c.refer(self, THREADS, indexes, registered, unsigned=True)

    def read_inlines(self, c: Many) -> None:
        """Read the koids of records all of which have them."""
        self.lose_without_room(c, c.limit - c.at() < 2 * WORD)
        c.known[self, START] = c.take(2 * WORD)

    def lose_without_room(self, c: Many, where: Any) -> None:
        """Mark records that end within the koids: one more word is needed, as ``inline`` says."""
        if where.any():
            c.lose(where, c.limit + WORD)


class Registered(Field):
    """An entry of a table: the ``nbytes`` before it, under a number that is not 0.

    ``TraceRecord.apply`` tells it of one record, this of many.
    """

    exact = True
    changes_state = True

    def __init__(self, table: Any, number: Any, nbytes: Any) -> None:
        super().__init__()
        self.table = table
        self.number = number
        self.nbytes = nbytes

    def part_in_word(self, places: Mapping[Any, Any], plus: int, is_long: bool) -> Any:
        """Return how the framing goes over it: it has no bytes."""
        from fxframework.wire.framing import COUNTED, ItemPart

        del places, is_long
        return ItemPart(COUNTED, plus)

    def expressions(self) -> list[Any]:
        """Return what it depends on."""
        return [self.number]

    def read(self, c: Any, values: Values) -> None:
        """Leave it to ``apply``."""

    def read_many(self, c: Many) -> None:
        """Enter what many records register; nothing can be registered at 0."""
        numbers = c.known[self.number]
        if isinstance(self.nbytes, Field):
            starts = c.known[self.nbytes, START]
            lengths = c.known[self.nbytes, LENGTH]
        else:
            lengths = np.full(numbers.size, self.nbytes)
            # Of a record that ends before them, which is damaged, they are not there.
            starts = np.maximum(c.at() - lengths, 0)
        c.report(rules.INDEX_ZERO, numbers == 0, 0, c.start)
        rows = np.flatnonzero(numbers)
        numbered = c if rows.size == numbers.size else c.some(rows)
        numbered.enter(starts[rows], lengths[rows], self.table, numbers[rows])


class ThreadOrProcess(Thread):
    """A thread reference whose inline form some write as one word, the process.

    Which it is, the record's size says: what fills the record exactly; where neither does, the
    usual number of words, if so many fit. ``behind`` are the numbers of the header that say how
    much follows up to the end of the record, and a number of words.
    """

    inline_words = (1, 2)
    usual_words = 2
    unusual = rules.ONE_WORD_THREAD
    """The rule of findings about another number of words."""
    packs = None  # type: ignore[assignment]

    def __init__(self, reference: Any, *behind: Any, words: int = 0) -> None:
        super().__init__(reference, default=None)
        self.behind = behind
        self.words = words

    def expressions(self) -> list[Any]:
        """Return the numbers that it depends on."""
        return [*super().expressions(), *self.behind]

    def are_one_word(self, c: Any, starts: Any, limits: Any, headers_at: Any) -> Any:
        """Return whether the inline forms of records that begin at some places have one word.

        The number of words that fills the record is meant. If neither does, it is one word if two
        have no room, or if one is usual. ``headers_at`` returns the words at places.
        """
        end_of_one = self.ends_with(c, starts + WORD, limits, headers_at)
        end_of_two = self.ends_with(c, starts + 2 * WORD, limits, headers_at)
        fills = (end_of_one == limits) | (end_of_two == limits)
        has_only_one = end_of_two > limits
        may_be_one = end_of_one < limits
        by_room = may_be_one & ((self.usual_words == 1) | has_only_one)
        return np.where(fills, end_of_one == limits, by_room)

    def ends_with(self, c: Any, starts: Any, limits: Any, headers_at: Any) -> Any:
        """Return where contents of records end of which what is behind the reference begins there.

        That may be past the end of the record: then the reference does not take so many words.
        """
        ends = starts + self.words * WORD
        for field in self.behind:
            numbers = c.known[field]
            if field.label == "arg_count":
                counts = np.broadcast_to(numbers, ends.shape)
                ends = behind_arguments(ends, counts, limits, headers_at)
                continue
            if field.doc == STRING_REFERENCE:
                numbers = np.where(numbers & INLINE_STRING, numbers & STRING_FIELD_BYTES, 0)
            ends = ends + (numbers + WORD - 1) // WORD * WORD
        return ends

    def read_inlines(self, c: Many) -> None:
        """Read one koid or both of many records, all of which have them inline."""
        numbers = c.reading.numbers

        def headers_at(places: Any) -> Any:
            return numbers.integers(places, WORD, big=c.big)

        is_one = self.are_one_word(c, c.at(), c.limit, headers_at)
        is_usual = is_one if self.usual_words == 1 else ~is_one
        c.report(self.unusual, ~is_usual, 0, c.start)
        has_room_for_two = c.limit - c.at() >= 2 * WORD
        self.lose_without_room(c, ~is_one & ~has_room_for_two)
        start, length = c.stretch(np.where(is_one, WORD, 2 * WORD))
        c.known[self, START] = start
        c.known[self, LENGTH] = length

    def is_one_word(self, c: Cursor) -> bool:
        """Return whether the inline form has one word."""

        def headers_at(places: Any) -> Any:
            words = [c.data[place : place + WORD] for place in places.tolist()]
            return np.frombuffer(b"".join(words), ">i8" if c.big else "<i8")

        (is_one,) = self.are_one_word(c, np.array([c.at]), np.array([c.limit]), headers_at)
        return bool(is_one)

    def read(self, c: Any, values: Values) -> None:
        """Read the koids, or the process, or look them up."""
        index = c.known[self.index]
        values["process"] = None
        if index:
            values[self.name] = self.registered(c, index)
        elif self.is_one_word(c):
            c.find(self.unusual)
            values[self.name] = None
            values["process"] = self.koid(c, "process koid")
        else:
            values[self.name] = self.inline(c)

    def index_written(self, draft: Draft) -> int:
        """Return the index, 0 for inline."""
        return super().index_written(draft) if draft.record.process is None else 0

    def put(self, draft: Draft) -> bytes:
        """Return what is inline."""
        process = draft.record.process
        if process is None:
            return super().put(draft)
        return self.octets("process", draft.big, process)

    def show_of(self, record: Any, out: dict[str, Any]) -> None:
        """Put the thread or the process into record JSON."""
        if record.process is None:
            self.show(getattr(record, self.name), out)
        else:
            out["process"] = record.process

    def parse_of(self, form: JsonFields, values: Values) -> None:
        """Put the thread or the process beside the other fields."""
        if self.name in form and "process" in form:
            message = f"{form.what}: it has {self.name} or process, not both"
            raise refusal(rules.CONTRADICTION, message)
        values[self.name] = None
        if "process" in form:
            values["process"] = form.number("process")
        else:
            super().parse_of(form, values)


def behind_arguments(starts: Any, counts: Any, limits: Any, headers_at: Any) -> Any:
    """Return the places behind arguments that begin at some places, so many at each."""
    ends = starts
    for turn in range(int(counts.max(initial=0))):
        has_argument = counts > turn
        is_inside = has_argument & (ends < limits)
        sizes = np.zeros(ends.size, np.int64)
        sizes[is_inside] = ARGUMENT_SIZE.get(headers_at(ends[is_inside])) * WORD
        # An argument that cannot be stepped over does not lead to the end.
        next_places = np.where(sizes > 0, ends + sizes, limits + WORD)
        ends = np.where(has_argument, next_places, ends)
    return ends


class Process(ThreadOrProcess):
    """The process of a userspace object; some write process and thread where it is inline."""

    usual_words = 1
    unusual = rules.TWO_WORD_PROCESS

    def show(self, value: Any, out: dict[str, Any]) -> None:
        """Put the process into record JSON."""
        out[self.name] = value

    def read(self, c: Any, values: Values) -> None:
        """Read the process, or the koids of one of its threads, or look it up."""
        index = c.known[self.index]
        values["thread"] = None
        if index:
            thread = self.registered(c, index)
            values[self.name] = thread if isinstance(thread, str) else thread[0]
        elif self.is_one_word(c):
            values[self.name] = self.koid(c, "process koid")
        else:
            c.find(self.unusual)
            values["thread"] = self.inline(c)
            values[self.name] = values["thread"][0]

    def index_written(self, draft: Draft) -> int:
        """Return the index, 0 for inline."""
        return Thread.index_written(self, draft)

    def put(self, draft: Draft) -> bytes:
        """Return what is inline."""
        if draft[self.index]:
            return b""
        process = draft.record.process
        thread = draft.record.thread
        if thread is None:
            return self.octets("process", draft.big, process)
        if thread[0] != process:
            message = f"process is {process}, but that of thread is {thread[0]}"
            raise RefusalError(rules.CONTRADICTION, message)
        return self.octets("thread", draft.big, *thread)

    def show_of(self, record: Any, out: dict[str, Any]) -> None:
        """Put the process, and the thread if there is one, into record JSON."""
        out[self.name] = record.process
        if record.thread is not None:
            out["thread"] = list(record.thread)

    def parse_of(self, form: JsonFields, values: Values) -> None:
        """Put the process, and the thread if there is one, beside the other fields."""
        if isinstance(form.need(self.name), str):
            values[self.name] = parse_koids(form, self.name)
        else:
            values[self.name] = form.number(self.name)
        if "thread" in form:
            values["thread"] = parse_koids(form, "thread")
            if isinstance(values["thread"], str):
                raise form.wrong("thread", "[process koid, thread koid]")

    def holds(self, values: Values, index: int, tables: Any) -> bool:
        """Return whether the index, looked up now, gives what a record shows."""
        if values["thread"] is not None:
            return False
        thread, _ = tables.look_up(THREADS, index)
        process = values["process"]
        if process == thread_marker(index):
            return True
        return bool(thread) and process == thread[0]


def thread(reference: Any) -> Any:
    """Return the thread of a thread reference."""
    return Thread(reference)


def thread_or_process(reference: Any, *behind: Any, words: int = 0) -> Any:
    """Return the thread of a reference whose inline form may be a process."""
    return ThreadOrProcess(reference, *behind, words=words)


def registered(table: Any, number: Any, nbytes: Any) -> Any:
    """Return an entry of a table: a text before it, or so many bytes, under a number."""
    return Registered(table, number, nbytes)


def process(reference: Any, *behind: Any) -> Any:
    """Return the process of a reference whose inline form may be a thread."""
    return Process(reference, *behind)


def holds(field: Field, values: Values, index: int, tables: Any) -> bool:
    """Return whether an index, looked up now, gives the value of a reference."""
    value = values[field.name]
    if isinstance(field, Thread):
        return 0 < index <= MAX_THREAD_INDEX and field.holds(values, index, tables)
    assert isinstance(field, Text)  # noqa: S101 (the other kind of reference)
    if not 0 < index <= MAX_STRING_INDEX:
        return False
    # A marker names the index, whatever an edit before it may have registered there.
    if value == string_marker(index):
        return True
    registered_text, _ = tables.look_up(STRINGS, index)
    if registered_text is None:
        return value is None
    return value in (registered_text, shown_text(registered_text))
