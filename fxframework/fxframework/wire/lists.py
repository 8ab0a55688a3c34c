"""Lists: of parts, of numbers, and of texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from fxframework.errors import PluginError, Refusals
from fxframework.kit.json_fields import JsonFields, show_text, special_double
from fxframework.wire.cursor import SIZE, Cursor, Draft, RefusalError, ShortError, order_of
from fxframework.wire.expressions import Constant, Expression, expression_or_none
from fxframework.wire.fields import Field, Integer, Values, refusal_of_range
from fxframework.wire.floats import Float, bits_compared
from fxframework.wire.known import LENGTH, START, STRANGE, gaps_to
from fxframework.wire.rules import BAD_SIZE, DOES_NOT_FIT, RESERVED, WRONG_TYPE
from fxframework.wire.spans import Text
from fxframework.wire.state import State

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fxframework.wire.many import Many
else:
    from fxframework.kit.lazy import numpy as np

TURNS = 32
"""Texts of a list that are read by their number, of many records together."""


def stretches_of() -> ModuleType:
    """Return the compiled loops over stretches, which only tables need."""
    from fxframework.kernels import stretches

    return stretches


def frames_of() -> ModuleType:
    """Return the compiled loops over records and items, likewise."""
    from fxframework.kernels import frames

    return frames


class Listed(Field):
    """A list: of parts (``wire.Part``) or of numbers; counted, or all that the record has left."""

    exact = True

    def __init__(self, item: Any, count: Any = None, **common: Any) -> None:
        super().__init__(**common)
        self.item = item
        self.count = expression_or_none(count)
        self.in_rows = False
        """Whether columns are made of the items."""
        self.walk: tuple[Any, ...] | None = None
        """How a loop finds the parts (``framing.walk_of``), which a plan says; None if none can."""
        self.walkers: dict[bool, Any] = {}
        """These loops, by byte order."""
        if not isinstance(item, Integer | Float) and not hasattr(item, "layout"):
            raise PluginError(f"a list has parts or numbers, not {item!r}")
        if self.least_item() < 1:
            raise PluginError(f"an item of the list, {item!r}, may have no bytes")

    @property
    def fixed(self) -> int | None:
        """The number of its items, if that is a constant."""
        if isinstance(self.count, Constant):
            return self.count.number
        return None

    def least_item(self) -> int:
        """Return the fewest bytes of an item."""
        if isinstance(self.item, Field):
            return self.item.least()
        return int(self.item.layout.least)

    def walker(self, *, big: bool) -> Any:
        """Return the loop that finds the parts, if one can (``kernels.frames.Items``)."""
        if big not in self.walkers:
            assert self.walk is not None  # noqa: S101 (who asks knows)
            size, head, *size_field = self.walk
            pad = self.item.layout.family.pad
            self.walkers[big] = frames_of().Items(size, head, pad, big, *size_field)
        return self.walkers[big]

    def expressions(self) -> list[Expression]:
        """Return the expressions that it depends on."""
        terms = super().expressions()
        if self.count is None:
            return terms
        return [*terms, self.count]

    def read(self, cursor: Cursor, values: Values) -> None:
        """Read all items."""
        count: int | None = None
        if self.count is not None:
            count = self.count.value(cursor.known)
        if isinstance(self.item, Field):
            values[self.name] = tuple(self.read_numbers(cursor, count))
        else:
            values[self.name] = tuple(self.read_parts(cursor, count))

    def read_numbers(self, cursor: Cursor, count: int | None) -> Sequence[int | float]:
        """Return so many numbers, or all that the record has left."""
        begin = cursor.at
        nbytes = self.item.nbytes
        room = cursor.limit - begin
        if count is None:
            count = -(-room // nbytes)  # rounded up, so that bytes of a part of a number don't fit
        if not 0 <= count * nbytes <= room:
            needed = cursor.at + room - room % nbytes + nbytes
            raise ShortError(needed=needed, is_negative=count < 0)
        end = begin + count * nbytes
        cursor.at = end
        order = order_of(cursor.big)
        signed = isinstance(self.item, Integer) and self.item.signed
        integers = [
            int.from_bytes(cursor.data[offset : offset + nbytes], order, signed=signed)
            for offset in range(begin, end, nbytes)
        ]
        numbers: Sequence[int | float] = integers
        if isinstance(self.item, Float):
            # Lists hold plain floats, so the bits of a NaN are lost in them.
            numbers = [float(self.item.number_of(bits)) for bits in integers]
            cursor.differs |= any(map(self.item.has_payload, integers))
        if cursor.views is not None:
            for index, number in enumerate(numbers):
                cursor.at = begin + (index + 1) * nbytes
                cursor.stretch(f"{self.name}[{index}]", cursor.at - nbytes, str(number))
        return numbers

    def read_parts(self, cursor: Cursor, count: int | None) -> Sequence[Any]:
        """Return so many parts, or all that the record has left."""
        layout = self.item.layout
        room = cursor.limit - cursor.at
        least = self.least_item()
        if count is not None and not 0 <= count * least <= room:
            # One more than fit: that one finds out what is missing, and reports it.
            count = room // least + 1
        # Fields behind the list may be bits of the word before it.
        outside = cursor.section, cursor.word, cursor.word_nbytes, cursor.word_at
        parts: list[Any] = []
        while cursor.at < cursor.limit if count is None else len(parts) < count:
            parts.append(layout.read_part(cursor))
            if self.in_rows and cursor.views is not None:
                # The next item overwrites what is known of this one's fields.
                fields = layout.fields
                known = {field: cursor.known[field] for field in fields if field in cursor.known}
                spans = {field: cursor.spans[field] for field in fields if field in cursor.spans}
                cursor.items.setdefault(self, []).append((parts[-1], known, spans))
        cursor.section, cursor.word, cursor.word_nbytes, cursor.word_at = outside
        return parts

    def read_many(self, many: Many) -> None:
        """Read all items of many records."""
        if isinstance(self.item, Integer | Float):
            self._read_numbers(many, self.item)
        else:
            counts = None if self.count is None else many.full(self.count.column(many))
            read_lists(many, self, counts)

    def _read_numbers(self, many: Many, item: Integer | Float) -> None:
        """Read the numbers of many records, of floats the bits."""
        begins = many.at()
        room = np.maximum(many.limit - begins, 0)
        numbers_in_room = room // item.nbytes
        if self.count is None:
            counts = numbers_in_room
            fits = counts * item.nbytes == room
        else:
            counts = many.full(self.count.column(many))
            fits = (counts >= 0) & (counts <= numbers_in_room)
        if not fits.all():
            # The first number that there is no room for.
            many.lose(~fits, begins + (numbers_in_room + 1) * item.nbytes)
            if self.count is not None:
                counts = np.where(fits, counts, 0)
        many.go_to(begins + counts * item.nbytes)
        many.known[self, START], many.known[self, LENGTH] = begins, counts * item.nbytes
        if not (self.in_rows or many.reading.for_lines):
            return
        records, index = flattened(counts)
        places = begins[records] + index * item.nbytes
        numbers = many.items(None, places, many.limit[records], records, index)
        signed = isinstance(item, Integer) and item.signed
        numbers.known[item] = many.reading.numbers.integers(
            places, item.nbytes, big=many.big, signed=signed
        )
        if isinstance(item, Float):
            numbers.keep_raw(item.have_payload(numbers.known[item]))
        many.items_of(self).append(numbers)

    def put(self, draft: Draft) -> bytes:
        """Return the bytes of all items."""
        return self.packed(getattr(draft.record, self.name), draft.state, draft.big, draft.at)

    def packed(self, items: Iterable[Any], state: State | None, big: bool, at: int) -> bytes:
        """Return the bytes of all items, which begin at byte ``at`` of the record."""
        pad = 1 if isinstance(self.item, Field) else self.item.layout.family.pad
        out = bytearray()
        for index, item in enumerate(items):
            try:
                out += self._item_packed(item, state, big)
            except RefusalError as problem:
                message = f"{self.name}[{index}]: {problem.message}"
                raise RefusalError(problem.number, message, problem.remedy) from None
            if pad > 1:
                out += bytes(-(at + len(out)) % pad)
        return bytes(out)

    def _item_packed(self, value: Any, state: State | None, big: bool) -> bytes:
        """Return the bytes of an item, without padding. Raises RefusalError if it does not fit."""
        if isinstance(self.item, Float):
            return self.item.octets(value, big)
        if isinstance(self.item, Integer):
            return self._integer_packed(value, big)
        if not isinstance(value, self.item):
            raise RefusalError(WRONG_TYPE, f"an item must be a {self.item.__name__}, not {value!r}")
        data: bytes = value.put(state, big)
        if state is not None:
            self.item.layout.family.check(type(value), memoryview(data), state, big)
        return data

    def _integer_packed(self, value: Any, big: bool) -> bytes:
        if not isinstance(value, int) or isinstance(value, bool):
            raise RefusalError(WRONG_TYPE, f"an item must be an integer, not {value!r}")
        least, most = self.item.range
        if not least <= value <= most:
            raise refusal_of_range("an item", value, least, most)
        return value.to_bytes(self.item.nbytes, order_of(big), signed=self.item.signed)

    def show(self, value: Any, out: dict[str, Any]) -> None:
        """Put the items into record JSON."""
        if isinstance(self.item, Integer):
            out[self.key] = list(value)
        elif isinstance(self.item, Float):
            out[self.key] = [special_double(number) or number for number in value]
        else:
            out[self.key] = [part.to_json() for part in value]

    def key_of(self, value: Any) -> Any:
        """Return what values are compared by: of floats, -0.0 and NaN as they are."""
        if isinstance(self.item, Float):
            return bits_compared(value)
        return value

    def parse(self, form: JsonFields) -> Any:
        """Return the items."""
        items = form.need(self.key)
        if not isinstance(items, list | tuple):
            raise form.wrong(self.key, "a list")
        place = f"{form.what}: {self.key}"
        if isinstance(self.item, Integer) and self._are_integers(items):
            return tuple(items)
        if isinstance(self.item, Integer | Float):
            return tuple(self._numbers_of(items, place, form.rules))
        return tuple(
            self.item.layout.parse_part(item, f"{place}[{index}]", form.rules)
            for index, item in enumerate(items)
        )

    def _are_integers(self, values: Sequence[Any]) -> bool:
        """Return whether all values are integers that fit."""
        least, most = self.item.range
        return all(type(value) is int and least <= value <= most for value in values)

    def _numbers_of(
        self, values: Sequence[Any], place: str, rules: Refusals
    ) -> Iterator[int | float]:
        """Yield the numbers of record JSON. Raises WriteRefusedError for the first other value."""
        for index, value in enumerate(values):
            form = JsonFields(f"{place}[{index}]", {"value": value}, rules)
            if isinstance(self.item, Float):
                yield form.double("value")[0]
            else:
                yield form.within("value", *self.item.range)


def flattened(counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the record of each item and its number there, given how many each record has.

    Of the counts 2 0 3 they are 0 0 2 2 2 and 0 1 0 1 2.
    """
    records = np.repeat(np.arange(counts.size), counts)
    items_before = np.cumsum(counts) - counts
    return records, np.arange(records.size) - items_before[records]


# In these functions, ``parts`` are the items of all lists that are read together, with the index of
# the record of each; ``many`` are the records around them.


def read_lists(many: Many, field: Listed, counts: NDArray[np.int64] | None) -> None:
    """Read the parts of lists of many records, which have ``counts``, or fill the record.

    All parts are found first, by their sizes or by a number in them that tells it, and then read
    together. Records with other parts are read as objects.
    """
    layout = field.item.layout
    family = layout.family
    if counts is not None and not counts.any():
        return
    if field.walk is None:
        many.hand_over(many.at() < many.limit if counts is None else counts != 0)
        return
    walker = field.walker(big=many.big)
    places = many.at()
    has_negative = counts is not None and int(counts.min()) < 0
    if counts is None:
        item_counts = np.full(places.size, -1)  # as many as there are up to the limit
    else:
        item_counts = np.maximum(counts, 0) if has_negative else counts
    items, ends, fit = walker.walk(many.reading.data, many.start, places, many.limit, item_counts)
    begins, sizes, records, index = items
    many.go_to(ends)
    is_lost = ~fit
    if has_negative:
        is_lost |= item_counts != counts
    if is_lost.any():
        lose_parts(many, field, is_lost, needed_at(many, field, ends))
    limits = begins + sizes if layout.is_sized else many.limit[records]
    parts = many.items(layout, begins, limits, records, index)
    if layout.is_sized:
        parts.is_sized = True
        parts.known[SIZE] = sizes
    read_parts(parts, field)
    if family.pad > 1:
        part_ends = begins + sizes
        gaps = gaps_to(family.pad, many.start[records] - part_ends)
        if gaps.any():
            gap_ends = np.minimum(part_ends + gaps, many.limit[records])
            check_padding(many, parts, records, part_ends, gap_ends)


def needed_at(many: Many, field: Listed, places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the byte that the part at a place of each record goes up to, if it does not fit."""
    family = field.item.layout.family
    has_head = many.limit - places >= family.head
    needed: NDArray[np.int64] = places + family.head
    if family.size is not None:
        rows = np.flatnonzero(has_head)
        # Only their heads are looked at, so the number within the list does not matter.
        parts_with_head = many.items(field.item.layout, places[rows], many.limit[rows], rows, rows)
        needed[rows] = family.needed_of_many(parts_with_head)
    return needed


def lose_parts(many: Many, field: Listed, where: Any, needed: NDArray[np.int64]) -> None:
    """Mark the records in which a part does not fit; a class may say what stands for it."""
    if field.item.layout.recovers:
        many.hand_over(where)
    else:
        many.lose(where, needed)


def read_parts(parts: Many, field: Listed) -> None:
    """Read the fields of parts, each of its own class, up to its end."""
    if field.item.layout.recovers:
        parts.losing = parts.own.odd  # ``recover`` says what stands for it, of objects only
    if field.in_rows:
        parts.own.lists.setdefault(field, []).append(parts)
    read_kinds(parts, field)


def read_kinds(parts: Many, field: Listed) -> None:
    """Read the fields of parts, those of each kind by themselves; their heads are there."""
    family = field.item.layout.family
    if not family.kinds:
        read_class(parts, field, field.item.layout)
        return
    for cls, rows in family.choose_many(parts):
        if cls is None:
            parts.lose(np.isin(np.arange(parts.start.size), rows))
        elif rows.size == parts.start.size:
            parts.layout = cls.layout
            read_class(parts, field, cls.layout)
        else:
            of_class = parts.some(rows)
            of_class.layout = cls.layout
            read_class(of_class, field, cls.layout)
            parts.put_back(of_class, rows)


def read_class(parts: Many, field: Listed, layout: Any) -> None:
    """Read the fields of parts of one class."""
    if parts.reading.for_lines:
        parts.own.parts.setdefault(field, []).append(parts)
    layout.read_many(parts)
    if parts.is_sized:
        parts.pad_to(parts.limit)


def check_padding(
    many: Many,
    parts: Many,
    records: NDArray[np.int64],
    part_ends: NDArray[np.int64],
    gap_ends: NDArray[np.int64],
) -> None:
    """Report padding behind parts that is not zero, and mark records that end within it."""
    is_cut = gaps_to(parts.layout.family.pad, gap_ends - many.start[records]) != 0
    many.keep_raw(records[is_cut])
    with_gap = np.flatnonzero(gap_ends > part_ends)
    if not with_gap.size:
        return
    gap_sizes = gap_ends[with_gap] - part_ends[with_gap]
    not_zero = stretches_of().with_bits(many.reading.data, part_ends[with_gap], gap_sizes)
    parts_to_report = with_gap[not_zero]
    if not parts_to_report.size:
        return
    assert parts.index is not None  # noqa: S101 (they are items)
    # The padding is the record's, not the part's: it is reported at the record's start.
    outer = many.items(many.layout, many.start[records], many.limit[records], records, parts.index)
    outer.base = gap_ends
    outer.note(RESERVED, parts_to_report, 0, part_ends)


class Texts(Field):
    """Texts, each behind its size; a size of zero ends them. In JSON a list of strings.

    ``many`` and ``long`` are the rules of reading and of writing for more than ``most`` texts, and
    for one over ``longest`` bytes.
    """

    exact = True

    def __init__(
        self,
        size: Integer,
        *,
        most: int = 0,
        longest: int = 0,
        many: tuple[int, int] = (BAD_SIZE, DOES_NOT_FIT),
        long: tuple[int, int] = (BAD_SIZE, DOES_NOT_FIT),
        **common: Any,
    ) -> None:
        super().__init__(**common)
        self.size = size
        self.most = most or 1 << 32
        self.longest = longest or size.range[1]
        self.many = many
        self.long = long
        self.text = Text(rules=self.rules)

    def least(self) -> int:
        """Return the bytes of the size that ends them."""
        if self.when is not None:
            return 0
        return self.size.nbytes

    def read(self, cursor: Cursor, values: Values) -> None:
        """Read all texts, and the end."""
        texts: list[str] = []
        while True:
            begin = cursor.at
            nbytes = self.size.take(cursor)
            if cursor.views is not None:
                cursor.stretch(f"{self.name}_size" if nbytes else f"end_of_{self.name}", begin)
            if not nbytes:
                break
            if len(texts) == self.most:
                raise ShortError(self.many[0])
            if nbytes > self.longest:
                raise ShortError(self.long[0])
            begin = cursor.at
            texts.append(self.text.decoded(cursor, begin, bytes(cursor.take(nbytes))))
            if cursor.views is not None:
                cursor.stretch(f"{self.name}[{len(texts) - 1}]", begin, texts[-1])
        values[self.name] = tuple(texts)

    def read_many(self, many: Many) -> None:
        """Read the texts of many records, by their number; long lists are left to ``read``."""
        unfinished = np.arange(many.start.size)
        by_objects = np.zeros(many.start.size, bool)
        for turn in range(TURNS):
            records = many.some(unfinished)
            sizes = records.integer(self.size.nbytes)
            has_text = sizes != 0  # or this is the end
            is_too_much = (sizes > self.longest) | (turn == self.most)
            records.lose(has_text & is_too_much)
            starts, lengths = records.stretch(np.where(has_text, sizes, 0))
            self.text.check_spans(records, starts, lengths)
            if many.reading.for_lines:  # only objects show the bytes of texts that are not UTF-8
                by_objects[unfinished] |= records.known.get((self.text, STRANGE), False)
            many.put_back(records, unfinished)
            texts = records.some(np.flatnonzero(has_text))
            texts.layout = None
            texts.known[self, START] = starts[has_text]
            texts.known[self, LENGTH] = lengths[has_text]
            texts.index = np.full(texts.start.size, turn)
            many.items_of(self).append(texts)
            rows = records.rows_at(np.arange(unfinished.size))
            is_sound = ~many.own.short[rows] & ~many.own.odd[rows]
            unfinished = unfinished[has_text & is_sound]
            if not unfinished.size:
                break
        by_objects[unfinished] = True
        many.hand_over(by_objects)

    def put(self, draft: Draft) -> bytes:
        """Return the bytes of all texts, and of the end."""
        return self.packed(getattr(draft.record, self.name), draft.state, draft.big, draft.at)

    def packed(self, texts: Sequence[str], state: State | None, big: bool, at: int) -> bytes:
        """Return the bytes of all texts, and of the end, wherever they begin."""
        del state, at
        out = bytearray()
        if len(texts) > self.most:
            raise RefusalError(self.many[1], f"{len(texts)} {self.name}; at most {self.most} fit")
        for index, text in enumerate(texts):
            self.text.name = f"{self.name}[{index}]"  # for messages
            data = self.text.bytes_of(text)
            if not data:
                message = f"{self.text.name} is empty, which ends the {self.name}"
                raise RefusalError(WRONG_TYPE, message)
            if len(data) > self.longest:
                message = f"{self.text.name} has {len(data)} bytes; at most {self.longest} fit"
                raise RefusalError(self.long[1], message)
            out += len(data).to_bytes(self.size.nbytes, order_of(big)) + data
        return bytes(out) + bytes(self.size.nbytes)

    def show(self, value: Any, out: dict[str, Any]) -> None:
        """Put the texts into record JSON, beside them the bytes of those that are not UTF-8."""
        entries: list[dict[str, Any]] = [{} for _ in value]
        for entry, text in zip(entries, value, strict=True):
            show_text(entry, "text", text)  # and `text_bytes_hex`, if it is not UTF-8
        out[self.key] = [entry["text"] for entry in entries]
        if any(len(entry) > 1 for entry in entries):
            out[f"{self.key}_bytes_hex"] = [entry.get("text_bytes_hex") for entry in entries]

    def parse(self, form: JsonFields) -> Any:
        """Return the texts."""
        hex_key = f"{self.key}_bytes_hex"
        form.used.add(hex_key)
        texts = form.need(self.key)
        texts_in_hex = form.given.get(hex_key, ())
        if not isinstance(texts, list | tuple) or not isinstance(texts_in_hex, list | tuple):
            raise form.wrong(self.key, "a list of strings")
        parsed = []
        for index, text in enumerate(texts):
            entry = {"text": text}
            if index < len(texts_in_hex) and texts_in_hex[index] is not None:
                entry["text_bytes_hex"] = texts_in_hex[index]
            place = f"{form.what}: {self.key}[{index}]"
            parsed.append(JsonFields(place, entry, form.rules).text("text"))
        return tuple(parsed)
