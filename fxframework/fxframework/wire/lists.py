"""Lists: of parts, of numbers, and of texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from fxframework.errors import PluginError, Refusals
from fxframework.kit.json_fields import JsonFields, show_text, special_double
from fxframework.wire.cursor import SIZE, Builder, Cursor, Draft, RefusalError, ShortError, order_of
from fxframework.wire.expressions import Expression, expression
from fxframework.wire.fields import Field, Integer, Values, refusal_of_range
from fxframework.wire.floats import Float, bits_compared
from fxframework.wire.known import LENGTH, START, gaps_to
from fxframework.wire.spans import Text
from fxframework.wire.state import State

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fxframework.wire.many import Many
else:
    from fxframework.kit.lazy import numpy as np

__all__ = ["Listed", "Texts"]

TURNS = 32
"""Parts of a list that are read by their number, of many records together."""
WORTHWHILE = 64
"""Records whose next parts are read together, however many there were: objects take longer."""


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
        self.count = None if count is None else expression(count)
        self.in_rows = False
        """Whether columns are made of the items."""
        self.walk: tuple[Any, ...] | None = None
        """How a loop finds the parts (``framing.walk_of``), which a plan says; None if none can."""
        if not isinstance(item, Integer | Float) and not hasattr(item, "layout"):
            raise PluginError(f"a list has parts or numbers, not {item!r}")
        if self.least_item() < 1:
            raise PluginError(f"an item of the list, {item!r}, may have no bytes")

    def least_item(self) -> int:
        """Return the fewest bytes of an item."""
        return int(self.item.least() if isinstance(self.item, Field) else self.item.layout.least)

    def expressions(self) -> list[Expression]:
        """Return the expressions that it depends on."""
        return super().expressions() + ([] if self.count is None else [self.count])

    def read(self, c: Cursor, values: Values) -> None:
        """Read all items."""
        count = None if self.count is None else self.count.evaluate(c.known)
        read = self.read_parts if hasattr(self.item, "layout") else self.read_numbers
        values[self.name] = tuple(read(c, count))

    def read_numbers(self, c: Cursor, count: int | None) -> Sequence[int | float]:
        """Return so many numbers, or all that the record has left."""
        begin, nbytes = c.at, self.item.nbytes
        room = c.limit - begin
        if count is None:
            count = -(-room // nbytes)
        if not 0 <= count * nbytes <= room:
            needed = c.at + room - room % nbytes + nbytes
            raise ShortError(needed=needed, is_negative=count < 0)
        c.at = end = begin + count * nbytes
        order = order_of(c.big)
        signed = isinstance(self.item, Integer) and self.item.signed
        integers = [
            int.from_bytes(c.data[at : at + nbytes], order, signed=signed)
            for at in range(begin, end, nbytes)
        ]
        found: Sequence[int | float] = integers
        if isinstance(self.item, Float):
            found = [float(self.item.number_of(bits)) for bits in integers]
            c.differs |= any(map(self.item.has_payload, integers))
        if c.views is not None:
            for number, each in enumerate(found):
                c.at = begin + (number + 1) * nbytes
                c.stretch(f"{self.name}[{number}]", c.at - nbytes, str(each))
        return found

    def read_parts(self, c: Cursor, count: int | None) -> Sequence[Any]:
        """Return so many parts, or all that the record has left."""
        layout = self.item.layout
        room, least = c.limit - c.at, self.least_item()
        if count is not None and not 0 <= count * least <= room:
            count = room // least + 1
        outside = c.section, c.word, c.word_nbytes, c.word_at
        found: list[Any] = []
        while c.at < c.limit if count is None else len(found) < count:
            found.append(layout.read_part(c))
            if self.in_rows and c.views is not None:
                of_item = (
                    {each: known[each] for each in layout.fields if each in known}
                    for known in (c.known, c.spans)
                )
                c.items.setdefault(self, []).append((found[-1], *of_item))
        c.section, c.word, c.word_nbytes, c.word_at = outside
        return found

    def read_many(self, c: Many) -> None:
        """Read all items of many records."""
        if isinstance(self.item, Integer | Float):
            self._read_numbers(c, self.item)
        else:
            self._read_parts(c, None if self.count is None else c.full(self.count.column(c)))

    def _read_parts(self, c: Many, counts: NDArray[np.int64] | None) -> None:
        """Read the parts of many records, most of which may have none."""
        there = np.arange(c.start.size) if counts is None else np.flatnonzero(counts)
        if 2 * there.size > c.start.size:
            read_lists(c, self, counts)
        elif there.size:
            assert counts is not None  # noqa: S101 (or all records would be there)
            some = c.some(there)
            read_lists(some, self, counts[there])
            c.put_back(some, there)

    def _read_numbers(self, c: Many, item: Integer | Float) -> None:
        """Read the numbers of many records, of floats the bits."""
        at = c.at()
        room = np.maximum(c.limit - at, 0)
        numbers_in_room = room // item.nbytes
        if self.count is None:
            counts = numbers_in_room
            fits = counts * item.nbytes == room
        else:
            counts = c.full(self.count.column(c))
            fits = (counts >= 0) & (counts <= numbers_in_room)
        if not fits.all():
            # The first number that there is no room for.
            c.lose(~fits, at + (numbers_in_room + 1) * item.nbytes)
            if self.count is not None:
                counts = np.where(fits, counts, 0)
        c.go_to(at + counts * item.nbytes)
        if self.in_rows or c.reading.for_lines:
            records, index = flattened(counts)
            places = at[records] + index * item.nbytes
            numbers = c.items(None, places, c.limit[records], records, index)
            signed = isinstance(item, Integer) and item.signed
            numbers.known[item] = c.reading.numbers.integers(
                places, item.nbytes, big=c.big, signed=signed
            )
            if isinstance(item, Float):
                numbers.keep_raw(item.have_payload(numbers.known[item]))
            kept = c.own.parts if c.reading.for_lines else c.own.lists
            kept.setdefault(self, []).append(numbers)

    def put(self, draft: Draft) -> bytes:
        """Return the bytes of all items."""
        return self.packed(getattr(draft.made, self.name), draft.state, draft.big, draft.at)

    def packed(self, items: Iterable[Any], state: State | None, big: bool, at: int) -> bytes:
        """Return the bytes of all items, which begin at byte ``at`` of the record."""
        b = Builder(self.name, state, big)
        b.start = -at
        is_float = isinstance(self.item, Float)
        family = self.item.layout.family if hasattr(self.item, "layout") else None
        for number, each in enumerate(items):
            try:
                if is_float:
                    b.out += self.item.octets(each, big)
                    continue
                if family is None:
                    self._write_integer(b, each)
                    continue
                begin = len(b.out)
                self._checked(each).put(b)
                if state is not None:
                    family.check(type(each), memoryview(b.out)[begin:], state, big)
                if family.pad > 1:
                    b.align(family.pad)
            except RefusalError as problem:
                message = f"{self.name}[{number}]: {problem.message}"
                raise RefusalError(problem.number, message, problem.remedy) from None
        return bytes(b.out)

    def _write_integer(self, b: Builder, value: Any) -> None:
        if not isinstance(value, int) or isinstance(value, bool):
            raise RefusalError(403, f"an item must be an integer, not {value!r}")
        least, most = self.item.range
        if not least <= value <= most:
            raise refusal_of_range("an item", value, least, most)
        b.number(value, self.item.nbytes, signed=self.item.signed)

    def _checked(self, value: Any) -> Any:
        if not isinstance(value, self.item):
            raise RefusalError(403, f"an item must be a {self.item.__name__}, not {value!r}")
        return value

    def show(self, value: Any, out: dict[str, Any]) -> None:
        """Put the items into record JSON."""
        if isinstance(self.item, Integer):
            out[self.key] = list(value)
        elif isinstance(self.item, Float):
            out[self.key] = [special_double(each) or each for each in value]
        else:
            out[self.key] = [each.to_json() for each in value]

    def key_of(self, value: Any) -> Any:
        """Return what values are compared by: of floats, -0.0 and NaN as they are."""
        return bits_compared(value) if isinstance(self.item, Float) else value

    def parse(self, form: JsonFields) -> Any:
        """Return the items."""
        given = form.need(self.key)
        if not isinstance(given, list | tuple):
            raise form.wrong(self.key, "a list")
        what = f"{form.what}: {self.key}"
        if isinstance(self.item, Integer | Float):
            is_sound = isinstance(self.item, Integer) and self._are_integers(given)
            return tuple(given if is_sound else self._numbers_of(given, what, form.rules))
        return tuple(
            self.item.layout.parse_part(each, f"{what}[{number}]", form.rules)
            for number, each in enumerate(given)
        )

    def _are_integers(self, given: Sequence[Any]) -> bool:
        """Return whether all values are integers that fit."""
        least, most = self.item.range
        return all(type(each) is int and least <= each <= most for each in given)

    def _numbers_of(
        self, given: Sequence[Any], what: str, rules: Refusals
    ) -> Iterator[int | float]:
        """Yield the numbers of record JSON. Raises WriteRefusedError for the first other value."""
        for number, each in enumerate(given):
            form = JsonFields(f"{what}[{number}]", {"value": each}, rules)
            if isinstance(self.item, Float):
                yield form.double("value")[0]
            else:
                yield form.within("value", *self.item.range)


def flattened(counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the record of each item and its number there, given how many each record has."""
    records = np.repeat(np.arange(counts.size), counts)
    first = np.cumsum(counts) - counts
    return records, np.arange(records.size) - first[records]


def read_lists(c: Many, field: Listed, counts: NDArray[np.int64] | None) -> None:
    """Read the parts of lists of many records, which have ``counts``, or fill the record.

    Where the size of parts is known, or a number in them tells it, all of them are found first and
    then read together; others are read by their number within the list.
    """
    layout = field.item.layout
    family = layout.family
    if field.walk is None:
        read_in_turns(c, field, counts)
        return
    size, head, *number = field.walk
    walker = frames_of().Items(size, head, family.pad, c.big, *number)
    at = c.at()
    limit = np.maximum(c.limit, at)
    many = np.full(at.size, -1) if counts is None else np.maximum(counts, 0)
    begins, sizes, found_counts, ends, fit = walker.walk(c.reading.data, c.start, at, limit, many)
    c.go_to(ends)
    is_lost = ~fit if counts is None else ~fit | (counts < 0)
    if is_lost.any():
        lose_parts(c, field, is_lost, needed_at(c, field, ends))
    records, index = flattened(found_counts)
    is_sized = family.size is not None or bool(family.nbytes) or bool(layout.size)
    limits = begins + sizes if is_sized else limit[records]
    parts = c.items(layout, begins, limits, records, index)
    if is_sized:
        parts.is_sized = True
        parts.known[SIZE] = sizes
    read_parts(parts, field)
    if family.pad > 1:
        behind = begins + sizes
        gap = gaps_to(family.pad, c.start[records] - behind)
        if gap.any():
            check_padding(c, parts, records, behind, np.minimum(behind + gap, limit[records]))


def read_in_turns(c: Many, field: Listed, counts: NDArray[np.int64] | None) -> None:
    """Read the first parts of all lists, then the second ones, and so on.

    A few records with longer lists than others are left to be read one by one.
    """
    if counts is not None:
        c.lose(counts < 0)
    at = c.at().copy()
    pad = field.item.layout.family.pad
    left = np.flatnonzero(at < c.limit if counts is None else counts > 0)
    turn = 0
    while left.size and (turn < TURNS or left.size >= WORTHWHILE):
        index = np.full(left.size, turn)
        parts = c.items(field.item.layout, at[left], c.limit[left], left, index)
        read_parts(parts, field)
        behind = parts.at()
        to = np.minimum(behind + (c.start[left] - behind) % pad, c.limit[left])
        check_padding(c, parts, left, behind, to)
        moved = to > at[left]
        at[left] = to
        rows = c.rows_at(left)
        going = moved & ~c.own.short[rows] & ~c.own.odd[rows]
        turn += 1
        going &= (to < c.limit[left]) if counts is None else (counts[left] > turn)
        left = left[going]
    c.hand_over(np.isin(np.arange(at.size), left))
    c.go_to(at)


def needed_at(c: Many, field: Listed, places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the byte that the part at a place of each record goes up to, if it does not fit."""
    family = field.item.layout.family
    has_head = c.limit - places >= family.head
    needed: NDArray[np.int64] = places + family.head
    if family.size is not None:
        there = np.flatnonzero(has_head)
        sized = c.items(field.item.layout, places[there], c.limit[there], there, there)
        needed[there] = family.needed_of_many(sized)
    return needed


def lose_parts(c: Many, field: Listed, where: Any, needed: NDArray[np.int64]) -> None:
    """Mark the records in which a part does not fit; a class may say what stands for it."""
    if field.item.layout.recovers:
        c.hand_over(where)
    else:
        c.lose(where, needed)


def read_parts(parts: Many, field: Listed) -> None:
    """Read the fields of parts, each of its own class, up to its end."""
    if field.item.layout.recovers:
        parts.losing = parts.own.odd
    family = field.item.layout.family
    if field.in_rows:
        parts.own.lists.setdefault(field, []).append(parts)
    short = np.zeros(0, bool) if parts.is_sized else family.head > parts.limit - parts.start
    if short.any():
        parts.lose(short, parts.start + family.head)
        there = np.flatnonzero(~short)
        whole, parts = parts, parts.some(there)
        read_kinds(parts, field)
        whole.put_back(parts, there)
    else:
        read_kinds(parts, field)


def read_kinds(parts: Many, field: Listed) -> None:
    """Read the fields of parts whose heads are there."""
    family = field.item.layout.family
    if not family.kinds:
        read_class(parts, field, field.item.layout)
        return
    for cls, there in family.choose_many(parts):
        if cls is None:
            parts.lose(np.isin(np.arange(parts.start.size), there))
        elif there.size == parts.start.size:
            parts.layout = cls.layout
            read_class(parts, field, cls.layout)
        else:
            some = parts.some(there)
            some.layout = cls.layout
            read_class(some, field, cls.layout)
            parts.put_back(some, there)


def read_class(parts: Many, field: Listed, layout: Any) -> None:
    """Read the fields of parts of one class."""
    if parts.reading.for_lines:
        parts.own.parts.setdefault(field, []).append(parts)
    family = layout.family
    if parts.is_sized:
        layout.read_many(parts)
        parts.pad_to(parts.limit)
        return
    sized = family.size is not None
    if sized or family.nbytes or layout.size:
        sizes: Any = family.nbytes or layout.size
        if sized:
            sizes = family.sizes_of_many(parts)
        room = parts.limit - parts.start
        fits = parts.full((sizes >= family.head) & (sizes <= room)) != 0
        if not fits.all():
            parts.lose(~fits, family.needed_of_many(parts) if sized else parts.start + sizes)
        parts.limit = np.where(fits, parts.start + sizes, parts.limit)
        parts.known[SIZE] = parts.full(sizes)
    layout.read_many(parts)
    if sized or family.nbytes or layout.size:
        parts.pad_to(parts.limit)


def check_padding(
    c: Many,
    parts: Many,
    records: NDArray[np.int64],
    behind: NDArray[np.int64],
    to: NDArray[np.int64],
) -> None:
    """Report padding behind parts that is not zero, and mark records that end within it."""
    is_cut = (to - c.start[records]) % parts.layout.family.pad != 0
    c.keep_raw(records[is_cut])
    gaps = np.flatnonzero(to > behind)
    if not gaps.size:
        return
    stray = stretches_of().with_bits(c.reading.data, behind[gaps], to[gaps] - behind[gaps])
    where = gaps[stray]
    if not where.size:
        return
    assert parts.index is not None  # noqa: S101 (they are items)
    outer = c.items(c.layout, c.start[records], c.limit[records], records, parts.index)
    outer.base = to
    outer.note(105, where, 0, behind)


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
        many: tuple[int, int] = (104, 404),
        long: tuple[int, int] = (104, 404),
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
        return 0 if self.when is not None else self.size.nbytes

    def read(self, c: Cursor, values: Values) -> None:
        """Read all texts, and the end."""
        found: list[str] = []
        while True:
            at = c.at
            nbytes = self.size.take(c)
            if c.views is not None:
                c.stretch(f"{self.name}_size" if nbytes else f"end_of_{self.name}", at)
            if not nbytes:
                break
            if len(found) == self.most:
                raise ShortError(self.many[0])
            if nbytes > self.longest:
                raise ShortError(self.long[0])
            at = c.at
            found.append(self.text.seen(c, at, bytes(c.take(nbytes))))
            if c.views is not None:
                c.stretch(f"{self.name}[{len(found) - 1}]", at, found[-1])
        values[self.name] = tuple(found)

    def read_many(self, c: Many) -> None:
        """Read the texts of many records, by their number; long lists are left to ``read``."""
        going = np.arange(c.start.size)
        for turn in range(TURNS):
            part = c.some(going)
            sizes = part.integer(self.size.nbytes)
            begun = sizes != 0
            part.lose(begun & ((sizes > self.longest) | (turn == self.most)))
            starts, lengths = part.stretch(np.where(begun, sizes, 0))
            self.text.seen_of_many(part, starts, lengths)
            c.put_back(part, going)
            texts = part.some(np.flatnonzero(begun))
            texts.known[self, START], texts.known[self, LENGTH] = starts[begun], lengths[begun]
            texts.index = np.full(texts.start.size, turn)
            c.own.lists.setdefault(self, []).append(texts)
            rows = part.rows_at(np.arange(going.size))
            going = going[begun & ~c.own.short[rows] & ~c.own.odd[rows]]
            if not going.size:
                return
        c.hand_over(np.isin(np.arange(c.start.size), going))

    def put(self, draft: Draft) -> bytes:
        """Return the bytes of all texts, and of the end."""
        return self.packed(getattr(draft.made, self.name), draft.state, draft.big, draft.at)

    def packed(self, texts: Sequence[str], state: State | None, big: bool, at: int) -> bytes:
        """Return the bytes of all texts, and of the end."""
        del at
        b = Builder(self.name, state, big)
        if len(texts) > self.most:
            raise RefusalError(self.many[1], f"{len(texts)} {self.name}; at most {self.most} fit")
        for number, each in enumerate(texts):
            self.text.name = f"{self.name}[{number}]"
            data = self.text.bytes_of(each)
            if not data:
                raise RefusalError(403, f"{self.text.name} is empty, which ends the {self.name}")
            if len(data) > self.longest:
                what = f"{self.text.name} has {len(data)} bytes; at most {self.longest} fit"
                raise RefusalError(self.long[1], what)
            b.number(len(data), self.size.nbytes)
            b.out += data
        b.number(0, self.size.nbytes)
        return bytes(b.out)

    def show(self, value: Any, out: dict[str, Any]) -> None:
        """Put the texts into record JSON, beside them the bytes of those that are not UTF-8."""
        shown: list[dict[str, Any]] = [{} for _ in value]
        for each, text in zip(shown, value, strict=True):
            show_text(each, "text", text)
        out[self.key] = [each["text"] for each in shown]
        if any(len(each) > 1 for each in shown):
            out[f"{self.key}_bytes_hex"] = [each.get("text_bytes_hex") for each in shown]

    def parse(self, form: JsonFields) -> Any:
        """Return the texts."""
        form.used.add(f"{self.key}_bytes_hex")
        given, beside = form.need(self.key), form.given.get(f"{self.key}_bytes_hex", ())
        if not isinstance(given, list | tuple) or not isinstance(beside, list | tuple):
            raise form.wrong(self.key, "a list of strings")
        texts = []
        for number, text in enumerate(given):
            one = {"text": text}
            if number < len(beside) and beside[number] is not None:
                one["text_bytes_hex"] = beside[number]
            what = f"{form.what}: {self.key}[{number}]"
            texts.append(JsonFields(what, one, form.rules).text("text"))
        return tuple(texts)
