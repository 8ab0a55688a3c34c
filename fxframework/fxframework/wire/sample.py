"""Samples: typical files of any size, of a declared format or made of words."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import attrs

from fxframework.wire.choices import Choice, Flag
from fxframework.wire.encoder import Encoder
from fxframework.wire.expressions import Constant
from fxframework.wire.fields import Field, Integer, Mark, Number
from fxframework.wire.floats import Float
from fxframework.wire.lists import Listed, Texts
from fxframework.wire.records import Layout, Record
from fxframework.wire.spans import Octets, Text
from fxframework.wire.state import State

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fxframework.wire.format import Format

__all__ = ["decimal_text", "sample"]

DISTINCT = 64
"""Records of each kind that are made; the file repeats those that make rows."""
STEP_NS = 1000
WORDS = ("alpha", "beta", "gamma", "delta")


def decimal_text(numbers: NDArray[Any], digits: int) -> NDArray[Any]:
    """Return the last decimal digits of each number, up to 8, as the first bytes of a word."""
    words = numbers * 0
    for place in range(digits):
        words |= (ord("0") + numbers // 10 ** (digits - 1 - place) % 10) << 8 * place
    return words


def sample(format: Format, nbytes: int) -> bytes:
    """Return about ``nbytes`` bytes: a few records of every kind, then those that make rows.

    A format that knows better says which records.
    """
    encoder = Encoder(format)
    if format.sample_records is not None:
        return format.magic + b"".join(turns(encoder, format.sample_records, nbytes))
    parts: list[bytes] = [format.magic]
    if format.header is not None:
        parts.append(_encoded(encoder, format.header, 0))
    main = [rows.record for rows in format.tables] or format.classes
    classes = sorted(format.classes, key=lambda cls: (cls is not format.marked, cls in main))
    known = encoder.state.registers
    for cls in classes:
        often, fits = 1 if cls is format.marked else len(WORDS), cls.layout.fits
        parts += (_encoded(encoder, cls, number) for number in range(often) if fits(known))
    begin = b"".join(parts)
    deciding = {
        leaf
        for layout in format.layouts()
        for each in (layout.when, *(field.when for field in layout.fields))
        for leaf in (() if each is None else each.leaves())
    }
    main = [
        cls
        for cls in main
        if cls is not format.marked
        and cls.layout.fits(known)
        and deciding.isdisjoint(cls.layout.changed)
    ]
    block = [_encoded(encoder, cls, len(WORDS) + n) for n in range(DISTINCT) for cls in main]
    more = b"".join(block)
    rest = max(0, nbytes - len(begin))
    whole = rest // max(1, len(more))
    rest -= whole * len(more)
    few = itertools.takewhile(lambda each: each[1] <= rest, zip(block, sizes(block), strict=True))
    return begin + more * whole + b"".join(record for record, _ in few)


def turns(
    encoder: Encoder, records_of: Callable[[int], Iterable[Any]], nbytes: int
) -> Iterator[bytes]:
    """Yield the records of one turn after another, up to so many bytes; all of the first."""
    size = 0
    for number in itertools.count():
        records = [encoder.encode(record) for record in records_of(number)]
        size += sum(map(len, records))
        if not records or (number and size > nbytes):
            return
        yield from records


def sizes(records: list[bytes]) -> Iterator[int]:
    """Yield the size of the records up to each."""
    return itertools.accumulate(map(len, records))


def _encoded(encoder: Encoder, cls: type[Record], number: int) -> bytes:
    return encoder.encode(cls(**values_for(cls.layout, encoder.state, number)))


def values_for(layout: Layout, state: State, number: int) -> dict[str, Any]:
    """Return values for the fields of a record, different for each ``number``."""
    values: dict[str, Any] = {}
    for field in layout.public:
        known: dict[Any, int] = {**state.registers, **layout.numbers_in(values)}
        there = field.when is None or (
            not field.by_room
            and all(isinstance(each, Constant) or each in known for each in field.when.leaves())
            and bool(field.when.value(known))
        )
        if there and not layout.derives(field) and field.role != "size":
            chosen = field.chosen(values) if isinstance(field, Choice) else field
            values[field.name] = None if chosen is None else _value(chosen, state, number)
    return values


def _value(field: Field, state: State, number: int) -> Any:
    if isinstance(field, Mark):
        return field.names[0]
    if isinstance(field, Number):
        return _number(field, state, number)
    if isinstance(field, Float):
        least, most = field.at_least, field.at_most
        middle = (least + most) / 2 if math.isfinite(most - least) else max(least, min(most, 0.0))
        return number + 0.5 if least <= number + 0.5 <= most else field.nearest(middle)[1]
    if isinstance(field, Text):
        if field.entry is not None and not field.entry.table.closed:
            texts = [text for _, text in state.texts(field.entry.table)]
            return texts[number % len(texts)] if texts else field.entry.table.unknown(0)
        return WORDS[number % len(WORDS)][: field.fixed]
    if isinstance(field, Octets):
        size = field.fixed if field.fixed is not None else 8
        return bytes((number + n) % 255 + 1 for n in range(size))
    if isinstance(field, Flag):
        return bool(number & 1)
    if isinstance(field, Texts):
        return (WORDS[number % len(WORDS)][: field.longest],)
    if isinstance(field, Listed):
        return tuple(_items(field, state, number))
    return None if field.default is attrs.NOTHING else field.default


def _number(field: Number, state: State, number: int) -> Any:
    if field.refers is not None:
        texts = [text for _, text in state.texts(field.refers)]
        return texts[number % len(texts)] if texts else field.refers.unknown(0)
    if field.flag:
        return bool(number & 1)
    if field.values:
        names = list(field.values.values())
        return names[number % len(names)]
    if field.below is not None and not isinstance(field.below, Constant):
        return 0
    number = (number + 1) * STEP_NS if field.unit == "ns" else number
    least, most = field.range
    most = most if field.at_most is None else field.at_most
    return max(least if field.at_least is None else field.at_least, min(most, number))


def _items(field: Listed, state: State, number: int) -> list[Any]:
    if isinstance(field.item, Float):
        return [number + 0.5, -0.0]
    if isinstance(field.item, Integer):
        return [min(field.item.range[1], number + n) for n in range(2)]
    family = field.item.layout.family
    members = [cls for cls in family.members if cls.layout.fits(state.registers)]
    classes = members or [field.item]
    return [cls(**values_for(cls.layout, state, number)) for cls in classes[:2]]
