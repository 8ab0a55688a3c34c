"""Contents: how the framing tells that a record is filled by what its first word says.

Some formats have records of many kinds, none of which has a field that is the same in all records.
Where records begin again after damage is then told by their contents: texts, lists and other fields
that the first word measures, one behind the other, end where the record ends. ``contents_of`` takes
that from the declared classes; ``kernels.frames`` looks at the bytes.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fxframework.wire.cursor import AT, SIZE
from fxframework.wire.expressions import wrapped
from fxframework.wire.families import Place, declaration_error
from fxframework.wire.fields import Bits, Field, Integer
from fxframework.wire.framing import (
    COUNTED,
    LISTED,
    NO_PART,
    WORD,
    ItemPart,
    Resumption,
    item_parts,
    items_of,
    part_of,
)
from fxframework.wire.lists import Listed

if TYPE_CHECKING:
    from fxframework.kernels.frames import Items
    from fxframework.wire.records import Layout, Record

Likely = Mapping[str, range]
"""What numbers of the first word of a class of records are: one number, or any but 0."""
ANYTHING = -1
"""The mask of bits of which one is set in every record: the size is never 0."""
NO_WAY = -1
LONGEST = 1 << 40
"""More bytes than a record has that is short of a field."""


class Head(NamedTuple):
    """What the first word of a record has to be, in the order of ``kernels.frames``."""

    mask: int
    value: int
    some: int
    more: int


class Way(NamedTuple):
    """One way in which the contents of records of a kind may lie behind their first word."""

    kind: int
    head: Head
    parts: tuple[ItemPart, ...]


def contents_of(classes: Mapping[Any, Likely], *, big: bool) -> Items:
    """Return what finds out whether contents fill records of these classes.

    The classes are of families whose kinds are in the same bits of the first word, and may have
    lists of one class of parts. ``big`` is the byte order. Raises PluginError for a class of which
    the first word does not measure all fields.
    """
    from fxframework.kernels.frames import Items

    listed: Items | None = None
    ways: list[Way] = []
    for cls, likely in classes.items():
        ways += ways_of(cls, likely)
        for field in cls.layout.fields:
            if isinstance(field, Listed) and not isinstance(field.item, Field):
                listed = items_of(field.item.layout, big=big)
    ways.sort(key=lambda way: way.kind)  # stable: the ways of a kind are tried in this order
    family = next(iter(classes)).layout.family
    kind_place = family.places[family.kinds[0]]
    first_way_of_kind = np.full(kind_place.mask + 1, NO_WAY, np.int32)
    heads: list[tuple[int, ...]] = []
    for number, way in enumerate(ways):
        if first_way_of_kind[way.kind] == NO_WAY:
            first_way_of_kind[way.kind] = number
        has_next = number + 1 < len(ways) and ways[number + 1].kind == way.kind
        heads.append((*map(wrapped, way.head), number + 1 if has_next else NO_WAY))
    width = max(len(way.parts) for way in ways)
    parts = [[*way.parts, *[ItemPart(NO_PART)] * (width - len(way.parts))] for way in ways]
    return Items(
        0,
        WORD,
        1,
        big,
        kind_shift=kind_place.shift,
        ways=first_way_of_kind,
        parts=np.array(parts, np.int64),
        way_of_others=len(ways),
        heads=np.array(heads, np.int64),
        listed=listed,
    )


def resumption_by_contents(contents: Items) -> Resumption:
    """Return the rule that reading goes on after damage where contents fill a record."""
    return Resumption(
        likely=np.zeros((0, 6), np.int64), alone=1, step=WORD, items=contents, items_at=0, most=1
    )


def ways_of(cls: type[Record], likely: Likely) -> Iterator[Way]:
    """Yield the ways in which contents of records of a class may lie."""
    layout = cls.layout
    numbers: dict[Field, int] = dict(zip(layout.family.kinds, layout.kind, strict=False))
    some: list[int] = []
    for name, values in likely.items():
        field = layout.by_name[name]
        assert isinstance(field, Bits)  # noqa: S101 (the first word has nothing else)
        if len(values) == 1:
            numbers[field] = values.start
        else:
            some.append(field.word_bits.mask)
    for known in with_deciding_numbers(layout, numbers):
        head = head_of(layout, known, some)
        # Fields that are there in long records only: all of them, or none.
        short_parts = parts_of(layout, known, is_long=False)
        long_parts = parts_of(layout, known, is_long=True)
        yield Way(layout.kind[0], head, short_parts)
        if long_parts != short_parts:
            yield Way(layout.kind[0], head, long_parts)


def head_of(layout: Layout, numbers: Mapping[Field, int], some: Sequence[int] = ()) -> Head:
    """Return what the first word of records is that has some numbers, and bits of some masks."""
    mask = layout.header().reserved_mask
    value = 0
    for field, number in numbers.items():
        assert isinstance(field, Bits)  # noqa: S101 (the first word has nothing else)
        mask |= field.word_bits.mask
        value |= field.word_bits.put(number)
    first, second, *_ = [*some, ANYTHING, ANYTHING]
    return Head(mask, value, first, second)


def with_deciding_numbers(
    layout: Layout, numbers: Mapping[Field, int]
) -> Iterator[Mapping[Field, int]]:
    """Yield the known numbers of the first word, with each value of the field that decides.

    The field that decides is the one on which it depends which other fields there are; without
    one, the known numbers are yielded once.
    """
    deciding = [
        leaf
        for field in layout.fields
        if field.when is not None
        for leaf in field.when.leaves()
        if isinstance(leaf, Bits) and leaf not in numbers
    ]
    if not deciding:
        yield numbers
        return
    field = deciding[0]
    if any(other is not field for other in deciding) or not field.values:
        raise declaration_error(layout.cls, field, "decides with others which fields there are")
    for number in field.values:
        yield {**numbers, field: number}


def parts_of(layout: Layout, known: Mapping[Field, int], *, is_long: bool) -> tuple[ItemPart, ...]:
    """Return the parts of records, given the numbers of the first word that decide about them.

    What depends on the size of the record is there if it ``is_long``.
    """
    values: dict[Any, int] = {**known, AT: 0, SIZE: 0}
    if is_long:
        values[SIZE] = LONGEST
    fields = (field for field in layout.fields if field.when is None or field.when.value(values))
    return tuple(item_parts(layout, fields, functools.partial(measured_part, is_long=is_long)))


def measured_part(layout: Layout, plus: int, field: Field, *, is_long: bool) -> ItemPart | None:
    """Return a field that the first word measures, behind ``plus`` bytes; None for others."""
    if field.part_in_word is not None:
        part: ItemPart = field.part_in_word(layout.places, plus, is_long)
        return part
    if not isinstance(field, Listed):
        return part_of(layout, plus, field)
    place: Place | None = layout.places.get(field.count)  # type: ignore[call-overload]
    if place is None or place.offset:
        return None
    if not isinstance(field.item, Integer):
        return ItemPart(LISTED, plus, place.shift, place.mask)
    # So many numbers are 8 times as many bytes: the count, with three zero bits below it.
    return ItemPart(COUNTED, plus, place.shift - 3, place.mask << 3)
