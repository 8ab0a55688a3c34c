"""Lists: of parts, of integers, and of texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from fxframework.errors import PluginError
from fxframework.kit.json_fields import JsonFields, show_text
from fxframework.wire.cursor import SIZE, Builder, Cursor, RefusalError, ShortError
from fxframework.wire.expressions import Expression, expression
from fxframework.wire.fields import Field, Integer, Values, refusal_of_range
from fxframework.wire.known import LENGTH, START
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


class Listed(Field):
    """A list: of parts (``wire.Part``) or of integers; counted, or all that the record has left."""

    def __init__(self, item: Any, count: Any = None, **common: Any) -> None:
        super().__init__(**common)
        self.item = item
        self.count = None if count is None else expression(count)
        self.in_rows = False
        """Whether columns are made of the items."""
        self.walk: tuple[int, ...] | None = None
        """How a loop finds the parts (``framing.walk_of``), which a plan says; None if none can."""
        if not isinstance(item, Integer) and not hasattr(item, "layout"):
            raise PluginError(f"a list has parts or integers, not {item!r}")
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
        found: list[Any] = []
        count = None if self.count is None else self.count.value(c.known)
        room, least = c.limit - c.at, self.least_item()
        if count is not None and not 0 <= count * least <= room:
            if isinstance(self.item, Integer):
                raise c.short(room - room % least + least)
            count = room // least + 1
        while c.at < c.limit if count is None else len(found) < count:
            if isinstance(self.item, Integer):
                at = c.at
                found.append(self.item.take(c))
                c.stretch(f"{self.name}[{len(found) - 1}]", at, str(found[-1]))
            else:
                found.append(self.item.layout.read_part(c))
                if self.in_rows and c.views is not None:
                    of_item = (
                        {each: known[each] for each in self.item.layout.fields if each in known}
                        for known in (c.known, c.spans)
                    )
                    c.items.setdefault(self, []).append((found[-1], *of_item))
        values[self.name] = tuple(found)

    def read_many(self, c: Many) -> None:
        """Read all items of many records."""
        if isinstance(self.item, Integer):
            self._read_integers(c, self.item)
        else:
            counts = None if self.count is None else c.full(self.count.column(c))
            read_lists(c, self, counts)

    def _read_integers(self, c: Many, item: Integer) -> None:
        """Read the integers of many records."""
        at = c.at()
        room = np.maximum(c.limit - at, 0)
        if self.count is None:
            counts = room // item.nbytes
            c.lose(room % item.nbytes != 0)
        else:
            counts = c.full(self.count.column(c))
            fits = (counts >= 0) & (counts <= room // item.nbytes)
            c.lose(~fits)
            counts = np.where(fits, counts, 0)
        c.go_to(at + counts * item.nbytes)
        if self.in_rows or c.reading.for_lines:
            records, index = flattened(counts)
            places = at[records] + index * item.nbytes
            numbers = c.items(None, places, c.limit[records], records, index)
            numbers.known[item] = c.reading.numbers.integers(
                places, item.nbytes, big=c.big, signed=item.signed
            )
            kept = c.own.parts if c.reading.for_lines else c.own.lists
            kept.setdefault(self, []).append(numbers)

    def packed(self, items: Iterable[Any], state: State | None, big: bool, at: int) -> bytes:
        """Return the bytes of all items, which begin at byte ``at`` of the record."""
        b = Builder(self.name, state, big)
        b.start = -at
        for number, each in enumerate(items):
            try:
                if isinstance(self.item, Integer):
                    self._write_integer(b, each)
                else:
                    at = len(b.out)
                    self._checked(each).put(b)
                    self.item.layout.family.check(type(each), memoryview(b.out)[at:], state, big)
                    b.align(self.item.layout.family.pad)
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
        plain = isinstance(self.item, Integer)
        out[self.key] = list(value) if plain else [each.to_json() for each in value]

    def parse(self, form: JsonFields) -> Any:
        """Return the items."""
        given = form.need(self.key)
        if not isinstance(given, list | tuple):
            raise form.wrong(self.key, "a list")
        if isinstance(self.item, Integer):
            least, most = self.item.range
            for each in given:
                if type(each) is not int or not least <= each <= most:
                    raise form.wrong(self.key, f"a list of integers from {least} to {most}")
            return tuple(given)
        what = f"{form.what}: {self.key}"
        return tuple(
            self.item.layout.parse_part(each, f"{what}[{number}]", form.rules)
            for number, each in enumerate(given)
        )


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
    walker = stretches_of().Items(size, head, family.pad, c.big, *number)
    at = c.at()
    limit = np.maximum(c.limit, at)
    many = np.full(at.size, -1) if counts is None else np.maximum(counts, 0)
    begins, sizes, found_counts, ends, fit = walker.walk(c.reading.data, c.start, at, limit, many)
    lose_parts(c, field, ~fit if counts is None else ~fit | (counts < 0))
    c.go_to(ends)
    records, index = flattened(found_counts)
    parts = c.items(layout, begins, limit[records], records, index)
    read_parts(parts, field)
    if family.pad > 1:
        behind = begins + sizes
        to = np.minimum(behind + (c.start[records] - behind) % family.pad, limit[records])
        check_padding(c, parts, records, behind, to)


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


def lose_parts(c: Many, field: Listed, where: Any) -> None:
    """Mark the records in which a part does not fit; a class may say what stands for it."""
    if field.item.layout.recovers:
        c.hand_over(where)
    else:
        c.lose(where)


def read_parts(parts: Many, field: Listed) -> None:
    """Read the fields of parts, each of its own class, up to its end."""
    if field.item.layout.recovers:
        parts.losing = parts.own.odd
    family = field.item.layout.family
    if field.in_rows:
        parts.own.lists.setdefault(field, []).append(parts)
    short = family.head > parts.limit - parts.start
    if short.any():
        parts.lose(short)
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
    sized = family.size is not None
    if sized or family.nbytes or layout.size:
        sizes: Any = family.nbytes or layout.size
        if sized:
            sizes = family.sizes_of_many(parts)
        room = parts.limit - parts.start
        fits = parts.full((sizes >= family.head) & (sizes <= room)) != 0
        if not fits.all():
            parts.lose(~fits)
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
            c.stretch(f"{self.name}_size" if nbytes else f"end_of_{self.name}", at)
            if not nbytes:
                break
            if len(found) == self.most:
                raise ShortError(self.many[0])
            if nbytes > self.longest:
                raise ShortError(self.long[0])
            at = c.at
            found.append(self.text.seen(c, at, bytes(c.take(nbytes))))
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
