"""Samples: typical files of any size, of a declared format or made of words."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import attrs

from fxframework.errors import PluginError, WriteRefusedError
from fxframework.wire.beside import Spare
from fxframework.wire.choices import Again, Choice, Flag
from fxframework.wire.encoder import Encoder
from fxframework.wire.expressions import Constant, Register
from fxframework.wire.fields import Field, Integer, Mark, Number
from fxframework.wire.floats import Float
from fxframework.wire.lists import Listed, Texts
from fxframework.wire.plans import registers_in
from fxframework.wire.records import Layout, Record
from fxframework.wire.spans import Octets, Text
from fxframework.wire.state import State, TextTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fxframework.wire.format import Format

DISTINCT = 64
"""Records of each kind that are made; the file repeats those that make rows."""
STEP_NS = 1000
WORDS = ("alpha", "beta", "gamma", "delta")


def decimal_text(numbers: NDArray[Any], digits: int) -> NDArray[Any]:
    """Return the last decimal digits of each number, up to 8, as the first bytes of a word."""
    words = numbers * 0
    for place in range(digits):
        digit = numbers // 10 ** (digits - 1 - place) % 10
        words |= (ord("0") + digit) << 8 * place
    return words


def sample(format: Format, nbytes: int) -> bytes:
    """Return about ``nbytes`` bytes: a few records of every kind, then those that make rows.

    A format that knows better says which records.
    """
    encoder = Encoder(format)
    if format.sample_records is not None:
        return format.magic + b"".join(turns(encoder, format.sample_records, nbytes))
    # Records of each kind, those that others depend on first.
    parts: list[bytes] = [format.magic]
    if format.header is not None:
        parts.append(_encoded(encoder, format.header, 0))
    with_rows = [rows.record for rows in format.tables] or format.classes
    classes = sorted(format.classes, key=lambda cls: (cls is not format.marked, cls in with_rows))
    registers = encoder.state.registers
    # A mark of the byte order is at the beginning alone, but for records that all have one.
    only_first = format.marked if len(classes) > 1 else None
    for cls in classes:
        numbers = range(1 if cls is only_first else len(WORDS))
        # A record may change whether the next one fits.
        parts += [
            _encoded(encoder, cls, number) for number in numbers if cls.layout.fits(registers)
        ]
    begin = b"".join(parts)
    # Then a block of those that make rows, again and again: none may change how others are read.
    deciding_registers = registers_of_conditions(format)
    repeated = [
        cls
        for cls in with_rows
        if cls is not only_first
        and cls.layout.fits(registers)
        and deciding_registers.isdisjoint(cls.layout.changed)
    ]
    block = [
        _encoded(encoder, cls, len(WORDS) + number)
        for number in range(DISTINCT)
        for cls in repeated
    ]
    block_bytes = b"".join(block)
    bytes_left = max(0, nbytes - len(begin))
    repetitions = bytes_left // max(1, len(block_bytes))
    bytes_left -= repetitions * len(block_bytes)
    last_records = b""
    for record in block:
        if len(last_records) + len(record) > bytes_left:
            break
        last_records += record
    return begin + block_bytes * repetitions + last_records


def registers_of_conditions(format: Format) -> set[Register]:
    """Return the registers that the conditions of fields, records and parts depend on."""
    return registers_in(
        holder.when for layout in format.layouts() for holder in (layout, *layout.fields)
    )


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


def _encoded(encoder: Encoder, cls: type[Record], number: int) -> bytes:
    try:
        return encoder.encode(cls(**values_for(cls.layout, encoder.state, number)))
    except WriteRefusedError as error:
        raise PluginError(
            f"no sample can be made of the fields of {cls.record}: {error.message}",
            remedy="say which records a sample has: FORMAT.sample_records = function",
        ) from error


def values_for(layout: Layout, state: State, number: int) -> dict[str, Any]:
    """Return values for the fields of a record, different for each ``number``."""
    values: dict[str, Any] = {}
    for field in layout.public:
        known: dict[Any, int] = {**state.registers, **layout.numbers_in(values)}
        if layout.derives(field) or field.role == "size" or not is_there(field, known):
            continue
        variant = field.chosen(values) if isinstance(field, Choice) else field
        values[field.name] = None
        if isinstance(field, Number) and field.role == "kind":
            values[field.name] = _other_kind(layout, field, number)
        elif variant is not None:
            values[field.name] = _value(variant, state, number)
    return values


def is_there(field: Field, known: dict[Any, int]) -> bool:
    """Return whether the condition of a field holds, as far as numbers before it tell."""
    if field.when is None:
        return True
    if field.by_room:
        return False
    if not all(isinstance(leaf, Constant) or leaf in known for leaf in field.when.leaves()):
        return False
    return bool(field.when.value(known))


def _value(field: Field, state: State, number: int) -> Any:
    """Return a value for a field."""
    if isinstance(field, Mark):
        return field.names[0]
    if isinstance(field, Number):
        return _number(field, state, number)
    if isinstance(field, Float):
        return _float(field, number)
    if isinstance(field, Text):
        if field.entry is not None and not field.entry.table.closed:
            return _declared_text(field.entry.table, state, number)
        word = WORDS[number % len(WORDS)]
        if field.fixed is not None and not field.pad:
            word *= -(-field.fixed // len(word))
        return word[: field.fixed]
    if isinstance(field, Octets):
        size = field.fixed if field.fixed is not None else 8
        if isinstance(field, Spare):
            size = field.before + field.own
        # Never zero, which may end or pad them.
        return bytes((number + place) % 255 + 1 for place in range(size))
    if isinstance(field, Flag):
        return bool(number & 1)
    if isinstance(field, Again):
        return min(field.range[1], number)
    if isinstance(field, Texts):
        return (WORDS[number % len(WORDS)][: field.longest],)
    if isinstance(field, Listed):
        items = _items(field, state, number)
        if field.fixed is not None:
            items = list(itertools.islice(itertools.cycle(items), field.fixed))
        return tuple(items)
    return None if field.default is attrs.NOTHING else field.default


def _float(field: Float, number: int) -> float:
    """Return a number and a half, or the middle of the range if that is beyond it."""
    least = field.at_least
    most = field.at_most
    if least <= number + 0.5 <= most:
        return number + 0.5
    middle = max(least, min(most, 0.0))
    if math.isfinite(most - least):
        middle = (least + most) / 2
    return field.nearest(middle)[1]


def _declared_text(table: TextTable, state: State, number: int) -> str:
    """Return a text that a record declares."""
    texts = [text for _, text in state.texts(table)]
    if not texts:
        return table.unknown(0)
    return texts[number % len(texts)]


def _number(field: Number, state: State, number: int) -> Any:
    if field.refers is not None:
        return _declared_text(field.refers, state, number)
    if field.flag:
        return bool(number & 1)
    if field.values:
        names = list(field.values.values())
        return names[number % len(names)]
    if field.below is not None and not isinstance(field.below, Constant):
        return 0
    if field.unit == "ns":
        number = (number + 1) * STEP_NS
    least, most = field.range
    if field.at_least is not None:
        least = field.at_least
    if field.at_most is not None:
        most = field.at_most
    return max(least, min(most, number))


def _other_kind(layout: Layout, field: Number, number: int) -> int:
    """Return a number of no class of the family: the one of a turn, among those that are free."""
    least, most = field.range
    declared_kinds = {cls.layout.kind[0] for cls in layout.family.members}
    free_numbers = (kind for kind in range(least, most + 1) if kind not in declared_kinds)
    # There are fewer than turns in a family whose number has few bits.
    free = list(itertools.islice(free_numbers, DISTINCT))
    return free[number % len(free)] if free else most


def _items(field: Listed, state: State, number: int) -> list[Any]:
    if isinstance(field.item, Float):
        return [number + 0.5, -0.0]
    if isinstance(field.item, Integer):
        _, most = field.item.range
        return [min(most, number), min(most, number + 1)]
    family = field.item.layout.family
    members = [cls for cls in family.members if cls.layout.fits(state.registers)]
    classes = members or [field.item]  # parts of one class only have no members
    return [cls(**values_for(cls.layout, state, number)) for cls in classes[:2]]
