"""Strategies: hypothesis makes records and files of a declared format.

Only for tests; hypothesis is imported when a strategy is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fxframework.errors import WriteRefusedError
from fxframework.wire.beside import Spare
from fxframework.wire.choices import Again, Choice, Flag
from fxframework.wire.encoder import Encoder
from fxframework.wire.families import OTHER
from fxframework.wire.fields import Field, Integer, Mark, Number
from fxframework.wire.floats import Float
from fxframework.wire.lists import Listed, Texts
from fxframework.wire.records import Layout, Record
from fxframework.wire.spans import Span, Text
from fxframework.wire.state import State

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy

    from fxframework.wire.format import Format

LONGEST = 40
"""Most characters of a text, bytes of octets, and items of a list."""


def files(format: Format, most: int = 8) -> SearchStrategy[tuple[bytes, list[Record]]]:
    """Return a strategy of files with up to ``most`` records, and of these records."""
    from hypothesis import strategies as st

    @st.composite
    def made(draw: DrawFn) -> tuple[bytes, list[Record]]:
        encoder = Encoder(format)
        parts = [format.magic]
        records = []
        if format.header is not None:
            header = format.header(**draw(values(format.header.layout, encoder.state)))
            parts.append(encoder.encode(header))
        for number in range(draw(st.integers(1, most))):
            registers = encoder.state.registers
            fitting = [cls for cls in format.classes if cls.layout.fits(registers)]
            cls = draw(st.sampled_from(fitting))
            if number == 0 and format.marked is not None:
                cls = format.marked
            record = cls(**draw(values(cls.layout, encoder.state)))
            try:
                parts.append(encoder.encode(record))
            except WriteRefusedError:  # such as a payload that its record would pad
                continue
            records.append(record)
        return b"".join(parts), records

    return made()


def values(layout: Layout, state: State) -> SearchStrategy[dict[str, Any]]:
    """Return a strategy of values for the fields of a record or a part, in a state."""
    from hypothesis import strategies as st

    @st.composite
    def made(draw: DrawFn) -> dict[str, Any]:
        values_so_far: dict[str, Any] = {}
        for field in layout.public:
            if layout.derives(field) and not isinstance(field, Mark):
                continue
            # Draw a value in any case: so a condition changes nothing about the values after it.
            variant = field.chosen(values_so_far) if isinstance(field, Choice) else field
            value = None
            if variant is not None:
                value = draw(_value(layout, variant, state))
            is_there = True
            if field.when is not None:
                if _is_free(layout, field):
                    is_there = draw(st.booleans())
                else:
                    known: dict[Any, int] = {**state.registers, **layout.numbers_in(values_so_far)}
                    is_there = bool(field.when.value(known))
            values_so_far[field.name] = value if is_there else None
        return values_so_far

    return made()


def _is_free(layout: Layout, field: Field) -> bool:
    """Return whether the presence of an optional field implies its condition."""
    return any(
        implying_field is field
        for implied in layout.implied.values()
        for _, implying_field, _, _ in implied
    )


def _value(layout: Layout, field: Field, state: State) -> SearchStrategy[Any]:
    from hypothesis import strategies as st

    if isinstance(field, Mark):
        return st.sampled_from(list(field.names.values()))
    if isinstance(field, Number):
        return _number(layout, field, state)
    if isinstance(field, Float):
        return st.floats(width=64 if field.nbytes == 8 else 32, allow_nan=False)
    if isinstance(field, Flag):
        return st.booleans()
    if isinstance(field, Again):
        return st.integers(*field.range)
    if isinstance(field, Texts):
        text = st.text(min_size=1, max_size=field.longest // 4)
        return st.lists(text, max_size=min(field.most, LONGEST // 8)).map(tuple)
    if isinstance(field, Listed):
        least, most = 0, LONGEST // 8
        if field.fixed is not None:
            least = most = field.fixed
        return st.lists(_item(field, state), min_size=least, max_size=most).map(tuple)
    if isinstance(field, Spare):
        total = field.before + field.own
        return st.just(b"") | st.binary(min_size=total, max_size=total).filter(any)
    if isinstance(field, Text):
        if field.entry is None:
            return _text(field)
        # A closed table declares nothing: texts are in the record, or empty.
        if field.entry.table.closed:
            return _text(field).filter(lambda text: len(text.encode()) < field.inline)
        inline = [_text(field)] if field.inline else []
        return st.one_of(_reference(field.entry.table, state), *inline)
    if isinstance(field, Span):
        return _octets(field)
    return st.none()


def _number(layout: Layout, field: Number, state: State) -> SearchStrategy[Any]:
    from hypothesis import strategies as st

    if field.role == "kind":
        return _other_kinds(layout, field)
    if field.role == "size":
        return st.none()  # the smallest that fits
    if field.flag:
        return st.booleans()
    if field.values:
        return st.sampled_from(list(field.values.values()))
    if field.refers is not None:
        return _reference(field.refers, state)
    return st.integers(*field.range)


def _octets(field: Span) -> SearchStrategy[bytes]:
    from hypothesis import strategies as st

    size = field.fixed
    if size is None:
        contents = st.binary(max_size=LONGEST)
    else:
        # What is padded may be shorter.
        contents = st.binary(min_size=0 if field.pad else size, max_size=size)

    def fits(data: bytes) -> bool:
        # Neither the end nor padding may be in what is written before them.
        if field.until and field.until in data:
            return False
        return not field.pad or not data.endswith(field.pad)

    return contents.filter(fits)


def _item(field: Listed, state: State) -> SearchStrategy[Any]:
    from hypothesis import strategies as st

    if isinstance(field.item, Integer):
        return st.integers(*field.item.range)
    if isinstance(field.item, Float):
        width: Any = 8 * field.item.nbytes
        return st.floats(width=width, allow_nan=False)
    family = field.item.layout.family
    classes = list(family.members)
    if family.other:
        classes.append(family.other)
    return st.one_of([_part(cls, state) for cls in classes or [field.item]])


def _part(cls: Any, state: State) -> SearchStrategy[Any]:
    return values(cls.layout, state).map(lambda of_fields: cls(**of_fields))


def _other_kinds(layout: Layout, field: Number) -> SearchStrategy[int]:
    from hypothesis import strategies as st

    declared_kinds = {cls.layout.kind[0] for cls in layout.family.members} | {OTHER}
    least, most = field.range
    return st.integers(least, most).filter(lambda number: number not in declared_kinds)


def _reference(table: Any, state: State) -> SearchStrategy[str]:
    from hypothesis import strategies as st

    texts = [text for _, text in state.texts(table)]
    declared = {number for number, _ in state.texts(table)}
    # Of one number more than are declared, at least one is free.
    candidates = range(len(declared) + 1, -1, -1)
    free_number = next(number for number in candidates if number not in declared)
    return st.sampled_from([*texts, table.unknown(free_number)])


def _text(field: Text) -> SearchStrategy[str]:
    from hypothesis import strategies as st

    size = field.fixed

    def fits(text: str) -> bool:
        data = text.encode()
        ended = bool(field.until) and field.until in data
        padded = bool(field.pad) and data.endswith(field.pad)
        return not ended and not padded and (size is None or len(data) <= size)

    if size is not None and not field.pad:
        return st.text("abcdef", min_size=size, max_size=size)
    return st.text(max_size=LONGEST if size is None else size).filter(fits)
