"""Shapes: the classes of records that objects of record JSON are, with the keys that they have.

``Kinds`` gives each object the number of its shape, and remembers shapes from one block to the
next. A ``Shape`` says of each field what holds its values, and whether the objects have its key. A
shape of which columns cannot write any object raises UnfitError.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from fxframework.kit.lossless import UnfitError
from fxframework.wire.beside import Computed, Spare, Surplus
from fxframework.wire.choices import Again, Check, Choice, Flag
from fxframework.wire.expressions import Expression
from fxframework.wire.families import OTHER
from fxframework.wire.fields import Bits, Field, Number
from fxframework.wire.floats import Float
from fxframework.wire.lists import Listed, Texts
from fxframework.wire.records import Layout
from fxframework.wire.shape import is_reference
from fxframework.wire.spans import Octets, Text
from fxframework.wire.state import State

LARGEST = 32_000
"""Bytes of the largest record that is packed by columns."""
MOST_SHAPES = 1 << 16
"""Shapes that are remembered; all are forgotten beyond."""
COLUMN_PARSERS: Mapping[Any, str] = {
    Number.parse: "take_number",
    Again.parse: "take_again",
    Flag.parse: "take_flag",
    Float.parse: "take_float",
    Text.parse: "take_text",
    Octets.parse: "take_octets",
    Spare.parse: "take_nothing",
    Texts.parse: "take_texts",
    Listed.parse: "take_list",
}
"""The methods of a group that take values as a column, by the way to parse one of them.

A field with a way of its own has none.
"""


@attrs.frozen(eq=False)
class ShapeEntry:
    """A field as the objects of a shape have it."""

    field: Field
    value: Field | None
    """What holds its value: of a choice the field of one kind, None if that kind has none."""
    has_key: bool
    """Whether the objects have its key."""

    @property
    def is_left_out(self) -> bool:
        """Whether it depends on a condition, and the objects say that this does not hold."""
        return self.field.public and self.field.when is not None and not self.has_key


class Shape:
    """The fields of a class for objects with the same keys. Raises UnfitError."""

    def __init__(self, layout: Layout, example: Mapping[str, Any], state: State) -> None:
        refs = example.get("refs", {})
        is_unfit = layout.kind == (OTHER,) or layout.mark is not None or layout.fixed > LARGEST
        if is_unfit or type(refs) is not dict:
            raise UnfitError
        family = layout.family
        if family.versioned and family.choose(list(layout.kind), state.registers) is not layout.cls:
            raise UnfitError  # it would be read as a record of another class
        self.layout = layout
        self.keys = tuple(example)
        self.refs = tuple(refs)
        self.kinds: dict[Expression, int] = dict(
            zip(layout.family.kinds, layout.kind, strict=False)
        )
        self.entries: list[ShapeEntry] = []
        """Fields that objects have values of, or whose bytes follow from others."""
        self.only_numbers: list[str] = []
        """Keys of what is computed: their values are not looked at, but must be numbers."""
        for field in layout.fields:
            if isinstance(field, Computed):
                if field.key in example:
                    self.only_numbers.append(field.key)
            elif not isinstance(field, Check | Surplus):
                self.entries.append(self._entry(field, example))
        self.values = {entry.field: entry.value for entry in self.entries}
        self._check_keys(example)

    def _check_keys(self, example: Mapping[str, Any]) -> None:
        """Raise UnfitError if objects have a key, or a number in ``refs``, of no field."""
        layout = self.layout
        known_keys = {"refs", *layout.cls.beside}
        known_keys |= {field.key for field in layout.fields if field.public}
        if layout.shows_type:
            known_keys.add("type")
        if not layout.is_part:
            known_keys |= {"record", "offset", "nbytes"}
        references = {
            entry.field.name
            for entry in self.entries
            if entry.value is not None and is_reference(entry.value)
        }
        if not known_keys.issuperset(example) or not references.issuperset(self.refs):
            raise UnfitError

    def _entry(self, field: Field, example: Mapping[str, Any]) -> ShapeEntry:
        """Return a field as it is in the objects. Raises UnfitError if columns cannot write it."""
        has_key = field.key in example
        is_conditional = field.when is not None
        is_derived = self.layout.derives(field)
        if is_conditional and (isinstance(field, Bits) or (is_derived and field.public)):
            raise UnfitError
        # A choice that is left out has no kind to look at.
        if is_conditional and isinstance(field, Choice) and not has_key:
            return ShapeEntry(field, field, has_key=False)
        # What is derived or hidden follows from other fields, whether the objects have it or not.
        if is_derived or not field.public:
            if is_conditional and field.by_room:
                raise UnfitError
            return ShapeEntry(field, field, has_key=False)
        value: Field | None = field
        if isinstance(field, Choice):
            value = self._kind_of(field, example)
        may_be_absent = is_conditional or (field.default is not attrs.NOTHING and value is field)
        if value is not None and not (has_column(value) and (has_key or may_be_absent)):
            raise UnfitError
        if isinstance(value, Spare) and has_key:  # bytes without a meaning, which are not zero
            raise UnfitError
        return ShapeEntry(field, value, has_key)

    def _kind_of(self, choice: Choice, example: Mapping[str, Any]) -> Field | None:
        """Return the field that holds the values of a choice in objects of this shape."""
        number = example.get(choice.tag.key)
        if type(number) is str:
            number = choice.tag.names_of.get(number)
        # Kinds that the format does not define are for objects.
        if type(number) is not int or number not in choice.kinds:
            raise UnfitError
        return choice.kinds[number]


def values_of(objects: Sequence[Mapping[str, Any]], key: str) -> Iterator[Any]:
    """Yield the values that objects have of a key; None where they have none."""
    return map(dict.get, objects, itertools.repeat(key))  # type: ignore[arg-type]


class Kinds:
    """The shapes of the records of a format, or of the items of a list."""

    def __init__(
        self, selectors: Sequence[str], layout_of: Callable[[Any], Layout | None], state: State
    ) -> None:
        self.state = state
        self.selectors = selectors
        """Keys whose values say which fields an object has."""
        self.layout_of = layout_of
        self._numbers: defaultdict[Hashable, int] = defaultdict()
        """Numbers of shapes, by what tells them apart: a new one gets the next number."""
        self._numbers.default_factory = self._numbers.__len__
        self._shapes: dict[int, Shape | None] = {}

    def numbers_of(self, objects: Sequence[Mapping[str, Any]]) -> list[int]:
        """Return a number of the shape of each object."""
        columns: list[Iterator[Any]] = [values_of(objects, key) for key in self.selectors]
        refs = list(values_of(objects, "refs"))
        if refs.count(None) < len(refs):
            columns.append(tuple(names) if type(names) is dict else None for names in refs)
        # What tells shapes apart: the keys, the values of the selectors, and the keys of refs.
        identities = list(zip(map(tuple, objects), *columns, strict=True))
        try:
            return list(map(self._numbers.__getitem__, identities))
        except TypeError:  # such as a list where a name should be
            return [self._numbers[repr(identity)] for identity in identities]

    def trim(self, most: int = MOST_SHAPES) -> None:
        """Forget all shapes if they are too many."""
        if len(self._numbers) > most:
            self._numbers.clear()
            self._shapes.clear()

    def shape(self, number: int, example: Mapping[str, Any]) -> Shape | None:
        """Return the shape with a number, of which an object is given; None if it is unfit."""
        if number not in self._shapes:
            self._shapes[number] = self._shape_of(example)
        return self._shapes[number]

    def _shape_of(self, example: Mapping[str, Any]) -> Shape | None:
        layout = self.layout_of(example)
        if layout is None:
            return None
        try:
            return Shape(layout, example, self.state)
        except UnfitError:
            return None

    def forget(self, shape: Shape) -> None:
        """Leave further objects of a shape to the encoder."""
        for number, known_shape in self._shapes.items():
            if known_shape is shape:
                self._shapes[number] = None


def has_column(field: Field) -> bool:
    """Return whether values of a field are taken as a column, not parsed one by one."""
    if field.packs is not None:
        return True
    return type(field).parse_of is Field.parse_of and type(field).parse in COLUMN_PARSERS
