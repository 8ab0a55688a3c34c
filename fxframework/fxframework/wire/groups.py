"""Groups: objects of record JSON with the same keys, whose values are columns.

A *shape* is a class of records with a set of keys, a *group* the objects of one shape in a block.
A group takes the values of each field as a column (``_take``), columns give the sizes of the
objects (``measure``), sizes give their places, and each field is written to its places (``put``).
A column takes what is usual. An object with anything else is *odd*: it is left to the encoder of
the format, which accepts more, and says what is wrong. A shape of which columns cannot write any
object raises UnfitError.
"""

from __future__ import annotations

import itertools
import operator
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from fxframework.kit.lossless import UnfitError
from fxframework.wire.beside import Computed, Spare, Surplus
from fxframework.wire.choices import Again, Check, Choice, Flag
from fxframework.wire.cursor import AT, SIZE, RefusalError
from fxframework.wire.expressions import (
    OPERATIONS,
    Calculation,
    Checksum,
    Constant,
    Expression,
    Register,
    calculated,
    wrapped,
)
from fxframework.wire.families import LARGEST_POWER
from fxframework.wire.fields import Bits, Field, Integer, Number
from fxframework.wire.floats import Float
from fxframework.wire.json_columns import (
    I64_MAX,
    Column,
    Numbers,
    converted,
    integers,
    octets,
    scatter,
    store,
    texts,
    usual,
)
from fxframework.wire.lists import Listed, Texts
from fxframework.wire.records import OTHER, Layout, Part
from fxframework.wire.spans import Octets, Span, Text
from fxframework.wire.state import State

__all__ = ["Group", "Grouping", "Kinds", "References", "Resolve", "values_of"]

I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
Mask = NDArray[np.bool_]
Resolve = Callable[[Field, Any, int | None], int]
FEW = 8
"""Objects of a shape in a block below which columns take longer than objects."""
LARGEST = 32_000
"""Bytes of the largest record that is packed by columns."""
MOST_SHAPES = 1 << 16
"""Shapes that are remembered; all are forgotten beyond."""


# --- Shapes --------------------------------------------------------------------------------------


@attrs.frozen(eq=False)
class _Entry:
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
        self.entries: list[_Entry] = []
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
        self.agreeing = [
            field
            for field in layout.fields
            if isinstance(field, Number) and field.name in layout.cls.agreeing
        ]
        """Computed numbers that must be those that JSON says."""
        if any(field.key not in example for field in self.agreeing):
            raise UnfitError
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
        references = {entry.field.name for entry in self.entries if _refers(entry.value)}
        if not known_keys.issuperset(example) or not references.issuperset(self.refs):
            raise UnfitError

    def _entry(self, field: Field, example: Mapping[str, Any]) -> _Entry:
        """Return a field as it is in the objects. Raises UnfitError if columns cannot write it."""
        has_key = field.key in example
        is_conditional = field.when is not None
        is_derived = self.layout.derives(field)
        if is_conditional and (isinstance(field, Bits) or (is_derived and field.public)):
            raise UnfitError
        # A choice that is left out has no kind to look at.
        if is_conditional and isinstance(field, Choice) and not has_key:
            return _Entry(field, field, has_key=False)
        # What is derived or hidden follows from other fields, whether the objects have it or not.
        if is_derived or not field.public:
            if is_conditional and field.by_room:
                raise UnfitError
            return _Entry(field, field, has_key=False)
        value: Field | None = field
        if isinstance(field, Choice):
            value = self._kind_of(field, example)
        may_be_absent = is_conditional or (field.default is not attrs.NOTHING and value is field)
        if value is not None and (_taker_of(value) is None or not (has_key or may_be_absent)):
            raise UnfitError
        if isinstance(value, Spare) and has_key:  # bytes without a meaning, which are not zero
            raise UnfitError
        return _Entry(field, value, has_key)

    def _kind_of(self, choice: Choice, example: Mapping[str, Any]) -> Field | None:
        """Return the field that holds the values of a choice in objects of this shape."""
        number = example.get(choice.tag.key)
        if type(number) is str:
            number = choice.tag.names_of.get(number)
        # Kinds that the format does not define are for objects.
        if type(number) is not int or number not in choice.kinds:
            raise UnfitError
        return choice.kinds[number]


def _refers(field: Field | None) -> bool:
    """Return whether a field shows an entry of a table."""
    if field is None:
        return False
    if isinstance(field, Number) and field.refers is not None:
        return True
    return field.index is not None


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


# --- Groups --------------------------------------------------------------------------------------


@attrs.define(eq=False)
class References:
    """Numbers of a group that say which entry of a table a field shows."""

    field: Field
    ordinals: I64
    """The records that have them, shape (references,)."""
    shown: Sequence[Hashable]
    """What the field shows."""
    in_refs: Sequence[int | None]
    """The numbers that JSON gives."""
    numbers: I64
    """The numbers to write."""

    def resolve(self, rows: slice, known: dict[Hashable, int], resolve: Resolve) -> I64:
        """Look up some of the numbers; return the records whose numbers do not hold.

        ``known`` are numbers that were looked up before, by what is shown and given.
        """
        pairs = list(zip(self.shown[rows], self.in_refs[rows], strict=True))
        for pair in set(pairs) - known.keys():
            try:
                known[pair] = resolve(self.field, *pair)
            except (RefusalError, LookupError):
                known[pair] = -1
        self.numbers[rows] = list(map(known.__getitem__, pairs))
        return self.ordinals[rows][self.numbers[rows] < 0]


class Group:
    """Objects of one shape as columns."""

    def __init__(
        self, grouping: Grouping, shape: Shape, objects: Sequence[Mapping[str, Any]], ordinals: I64
    ) -> None:
        self.grouping = grouping
        self.shape = shape
        self.layout = shape.layout
        self.big = grouping.state.big
        self.ordinals = ordinals
        """The records that the objects are, or that hold them, shape (objects,)."""
        self.odd = np.zeros(len(objects), np.bool_)
        """Objects that are left to the encoder. They stay in the columns, as something usual."""
        self.numbers: dict[Expression, Numbers] = dict(shape.kinds)
        """Numbers that JSON says, and bits of floats."""
        self.known: dict[Expression, Numbers] = {}
        """All numbers of fields as ``measure`` finds them, and checksums."""
        self.columns: dict[Field, Column] = {}
        self.lists: dict[Field, _Items] = {}
        self.indexes: dict[Field, I64] = {}
        """Of fields that refer to a table: the number that says what they show."""
        self.references: list[References] = []
        self.places: dict[Field, Numbers] = {}
        """Bytes of an object before each field."""
        self.size: Numbers | None = None
        self._objects = objects
        self._refs = self._numbers_in_refs()
        for key in shape.only_numbers:
            usual(list(values_of(objects, key)), int, 0, self.odd)
        for entry in shape.entries:
            self._take(entry)

    def _numbers_in_refs(self) -> dict[str, list[int]]:
        """Return the numbers of ``refs``, by field."""
        if not self.shape.refs:
            return {}
        refs = list(values_of(self._objects, "refs"))
        return {
            name: integers(list(values_of(refs, name)), 0, I64_MAX, self.odd).tolist()
            for name in self.shape.refs
        }

    # --- Values of fields -----------------------------------------------------------------------

    def _take(self, entry: _Entry) -> None:
        """Make a column of the values of a field."""
        field = entry.value
        if field is None:
            if entry.has_key:
                values = list(values_of(self._objects, entry.field.key))
                usual(values, type(None), None, self.odd)
        elif entry.is_left_out:
            self.numbers[field] = 0
        elif field.public and not self.layout.derives(entry.field):
            take = _taker_of(field)
            assert take is not None  # noqa: S101 (the shape has asked)
            if entry.has_key:
                values = list(values_of(self._objects, field.key))
            else:
                default: Any = field.default
                if isinstance(field, Listed | Texts):
                    default = list(default)
                values = [default] * self.odd.size
            take(self, field, values)

    def take_number(self, field: Number, values: Sequence[Any]) -> None:
        """Take numbers, or the names, flags or texts that stand for them."""
        if field.refers is not None:
            self._refer(field, usual(values, str, "", self.odd), self._zeros())
            return
        if field.flag:
            self.take_flag(field, values)
            return
        if field.values:
            number_of_name = field.names_of
            # Only strings are names; a number stands for itself, unless names are all there is.
            if set(map(type, values)) == {str}:
                values = list(map(number_of_name.get, values))
            elif field.closed:
                values = [number_of_name.get(v) if type(v) is str else None for v in values]
            else:
                values = [number_of_name.get(v) if type(v) is str else v for v in values]
        self.numbers[field] = integers(values, *field.range, self.odd)

    def take_again(self, field: Again, values: Sequence[Any]) -> None:
        """Take the numbers of an earlier field."""
        mask = (1 << field.number.nbits) - 1
        self.numbers[field] = integers(values, *field.range, self.odd) & wrapped(mask)

    def take_flag(self, field: Field, values: Sequence[Any]) -> None:
        """Take true and false as 1 and 0."""
        self.numbers[field] = np.array(usual(values, bool, False, self.odd), np.int64)

    def take_float(self, field: Float, values: Sequence[Any]) -> None:
        """Take finite numbers as the bits of floats."""
        self.numbers[field] = float_bits(field, values, self.odd)

    def take_text(self, field: Text, values: Sequence[Any]) -> None:
        """Take texts, or what stands for those that an earlier record declares."""
        if field.until or field.pad or field.fixed is not None:
            self._end(field, usual(values, str, "", self.odd), str.encode)
            return
        column = texts(values, self.odd)
        self.columns[field] = column
        if field.entry is None:
            return
        # The number of a reference is a bit and the length of a text in the record, or else a
        # number of the table, which ``References.resolve`` puts in place of it.
        numbers = field.inline | column.lengths
        self.odd |= column.lengths >= (field.inline or I64_MAX)
        if field.empty is not None:
            numbers[column.lengths == 0] = field.empty
        self.indexes[field] = numbers
        if field.name in self._refs or (self.grouping.declared and not field.entry.table.closed):
            if field.entry.table.closed:
                raise UnfitError
            self._refer(field, usual(values, str, "", self.odd), numbers)
        elif not field.inline:
            raise UnfitError

    def take_octets(self, field: Octets, values: Sequence[Any]) -> None:
        """Take bytes in hex."""
        if field.until or field.pad or field.fixed is not None:
            self._end(field, usual(values, str, "", self.odd), bytes.fromhex)
        else:
            values = usual(values, str, "", self.odd)
            self.columns[field] = octets(converted(values, bytes.fromhex, self.odd))

    def _end(self, field: Span, values: Sequence[str], convert: Callable[[str], bytes]) -> None:
        """Take bytes that something ends, or that are padded to a fixed size."""
        contents = converted(values, convert, self.odd)
        counts = np.fromiter(map(len, contents), np.int64, len(contents))
        self.columns[field] = octets(converted(contents, field.ended, self.odd), counts)

    def take_nothing(self, field: Spare, values: Sequence[Any]) -> None:
        """Take nothing: bytes without a meaning are zero where JSON has none."""

    def take_texts(self, field: Texts, values: Sequence[Any]) -> None:
        """Take lists of texts."""

        def packed(listed: Any) -> bytes:
            if type(listed) is not list or set(map(type, listed)) - {str}:
                raise TypeError
            return field.packed(listed, None, self.big, 0)

        self.columns[field] = octets(converted(values, packed, self.odd))

    def take_list(self, field: Listed, values: Sequence[Any]) -> None:
        """Take lists of integers, or of parts."""
        lists = usual(values, list, [], self.odd)
        counts = np.fromiter(map(len, lists), np.int64, len(lists))
        items = list(itertools.chain.from_iterable(lists))
        if not isinstance(field.item, Integer | Float):
            self.lists[field] = _Items(self, field, items, counts)
            return
        nbytes = field.item.nbytes
        odd_items = np.zeros(len(items), np.bool_)
        if isinstance(field.item, Float):
            numbers = float_bits(field.item, items, odd_items)
        else:
            numbers = integers(items, *field.item.range, odd_items)
        object_of_item = np.repeat(np.arange(counts.size), counts)
        self.odd[object_of_item[odd_items]] = True
        data = np.zeros(nbytes * len(items), np.uint8)
        store(data, nbytes * np.arange(len(items)), numbers, nbytes, big=self.big)
        self.columns[field] = Column(nbytes * counts, data, counts)

    def take_own(self, field: Field, values: Sequence[Any]) -> None:
        """Take the values of a field of a format's own, which may refer to a table."""
        column = field.packs(values, self.big, self.odd)
        if field.index is None:
            self.columns[field] = column
            return
        numbers = self._zeros()
        self.indexes[field] = numbers
        if field.name not in self._refs:
            self.columns[field] = column
            self.odd |= np.array([type(value) is str for value in values])
            return
        # What is looked up must be hashable; what is odd is not looked up.
        shown = [tuple(value) if type(value) is list else value for value in values]
        for row in np.flatnonzero(self.odd).tolist():
            shown[row] = None
        self._refer(field, shown, numbers)

    def _refer(self, field: Field, shown: Sequence[Any], numbers: I64) -> None:
        """Let numbers be looked up by what a field shows."""
        if not self.grouping.refers:
            raise UnfitError
        nothing: list[int | None] = [None] * len(shown)
        in_refs: Sequence[int | None] = self._refs.get(field.name) or nothing
        self.indexes[field] = numbers
        self.references.append(References(field, self.ordinals, shown, in_refs, numbers))

    def _zeros(self) -> I64:
        return np.zeros(self.odd.size, np.int64)

    def all_references(self) -> Iterator[References]:
        """Yield the references of the objects, and of their items."""
        yield from self.references
        for items in self.lists.values():
            for _, group in items.groups:
                yield from group.all_references()

    # --- Sizes ----------------------------------------------------------------------------------

    def measure(self) -> I64:
        """Return the sizes of the objects; mark those that do not fit their numbers.

        It is called again once references are looked up: texts that are in the records have bytes,
        those that a number stands for have none.
        """
        place: Numbers = 0
        in_tail = False
        self.known = dict(self.numbers)
        self.size = None
        for entry in self.shape.entries:
            if entry.field.tail and not in_tail:
                place = self._padded(place)
                in_tail = True
            self.places[entry.field] = place
            if entry.value is not None and not entry.is_left_out:
                place = place + self._nbytes(entry.value, place)
        if not in_tail:
            place = self._padded(place)
        # Numbers that say a size are known only now.
        self.size = place
        for entry in self.shape.entries:
            self._check(entry)
        for field in self.shape.agreeing:
            in_json = list(values_of(self._objects, field.key))
            self.odd |= integers(in_json, *field.range, odd=self.odd) != self._number(field)
        if self.layout.word and self.big and not self.grouping.state.mirrored:
            raise UnfitError  # such a word may show another kind
        return np.broadcast_to(self.size, self.odd.shape).astype(np.int64)

    def _nbytes(self, field: Field, place: Numbers) -> Numbers:
        """Return the bytes of a field that begins at a place."""
        if isinstance(field, Bits):
            # The first field of a word has its bytes, the others none.
            nbytes_of_word, _ = self.layout.words.get(field, (0, 0))
            return nbytes_of_word
        if isinstance(field, Integer | Float):
            return self._there(field) * field.nbytes
        if isinstance(field, Spare):
            return field.own
        if field in self.lists:
            return self.lists[field].measure(place)
        if field not in self.columns:
            return 0
        nbytes: Numbers = self.columns[field].lengths
        aligned = field.aligned if isinstance(field, Span) else 1
        if aligned > 1:
            nbytes = nbytes + -(place + nbytes) % aligned
        return nbytes * self._inline(field)

    def _there(self, field: Field) -> Numbers:
        """Return 1 where a field is in the record, else 0."""
        if field.when is None or field.public:
            return 1
        is_there: I64 = np.broadcast_to(self._value(field.when, 0) != 0, self.odd.shape)
        return is_there

    def _inline(self, field: Field) -> Numbers:
        """Return 1 where a text is in the record, 0 where a number stands for it."""
        if not isinstance(field, Text) or field not in self.indexes:
            return 1
        is_inline: I64 = self.indexes[field] & field.inline != 0
        return is_inline

    def _padded(self, fields_end: Numbers) -> Numbers:
        """Return the place behind the padding of the fields that end there, before the tail."""
        layout = self.layout
        padded_end = fields_end
        whole_size: Numbers = layout.fixed
        if layout.family.power:
            assert layout.family.size is not None  # noqa: S101 (it says the power)
            powers = np.minimum(self._number(layout.family.size), LARGEST_POWER)
            whole_size = layout.family.unit << powers
        if layout.fixed or layout.family.power:
            padded_end = np.maximum(fields_end, whole_size - layout.tail)
            self.odd |= fields_end > whole_size - layout.tail
        elif layout.align > 1:
            padded_end = fields_end + -(fields_end + layout.tail) % layout.align
        if layout.rest is not None:
            # A field that takes all there is would be read with the padding.
            self.odd |= fields_end != padded_end
        return padded_end

    def _check(self, entry: _Entry) -> None:
        """Mark objects that would not be read as what they are."""
        field = entry.field
        value = entry.value
        place = self.places[field]
        if isinstance(field, Number) and not field.checksums and not entry.is_left_out:
            self._number(field)
        if field.when is not None and field.public:
            holds = self._value(field.when, place) != 0
            self.odd |= holds != entry.has_key
        # A count or a length that is a number of the record follows from the list or text itself
        # (``_implied``); one that is computed from other fields must agree with it.
        if isinstance(value, Listed):
            items = self.lists.get(value) or self.columns.get(value)
            count = value.count
            if items is not None and count is not None and not isinstance(count, Number):
                self.odd |= self._value(count, place) != items.counts
        elif isinstance(value, Span) and value in self.columns and value not in self.indexes:
            nbytes = value.nbytes
            if nbytes is not None and not isinstance(nbytes, Number):
                self.odd |= self._value(nbytes, place) != self.columns[value].lengths

    # --- Numbers --------------------------------------------------------------------------------

    def _number(self, field: Number) -> Numbers:
        """Return the numbers of a field; mark those that do not fit it."""
        if field in self.known:
            return self.known[field]
        # Where the number comes from: what is shown, nothing, the size, an expression, or the
        # fields that it describes.
        if field in self.indexes:
            number: Numbers = self.indexes[field]
        elif self.layout.is_reserved(field):
            number = 0
        elif field.role == "size" and not field.size_power:
            number = self._units_of_size()
        elif field.equals is not None:
            word = self.layout.word_of.get(field, field)
            number = self._value(field.equals, self.places[word])
        else:
            number = self._implied(field)
        least, most = field.range
        if field.nbits < 64:
            self.odd |= (number < least) | (number > most)
        if field.when is not None and not field.public:
            number = number * self._there(field)
        self.known[field] = number
        return number

    def _units_of_size(self) -> Numbers:
        """Return the number that says the size of the records."""
        family = self.layout.family
        size = self._value(SIZE, 0)
        units = (size - family.plus) // family.unit
        self.odd |= units * family.unit + family.plus != size
        if self.layout.most:
            self.odd |= size > self.layout.most
        return units

    def _implied(self, number: Number) -> Numbers:
        """Return the number that other fields imply; they must agree."""
        if number not in self.layout.implied:
            raise UnfitError
        implied: list[Numbers] = []
        for how, field, factor, summand in self.layout.implied[number]:
            # A field of a choice only implies it where the objects have that one.
            holder = self.layout.choice_of.get(field, field)
            if self.shape.values[holder] is field:
                by_field = self._implied_by(how, field, factor, summand)
                if by_field is not None:
                    implied.append(by_field)
        if not implied:
            return 0
        for further in implied[1:]:
            self.odd |= implied[0] != further
        return implied[0]

    def _implied_by(self, how: str, field: Field, factor: int, summand: int) -> Numbers | None:
        """Return a number that a field implies, such as its length or its count of items.

        The field has ``factor * number + summand`` of them; None if it implies nothing.
        """
        has_bytes = field in self.columns or field in self.lists
        if how == "present":  # ``factor`` is the number of an absent field, ``summand`` of others
            is_present = has_bytes or field in self.indexes or field in self.numbers
            return summand if is_present else factor
        if how == "number" and field in self.numbers:
            return self.numbers[field]
        if how == "index" and field in self.indexes:
            return self.indexes[field]
        if not has_bytes:
            return None
        counts = (self.columns.get(field) or self.lists[field]).counts - summand
        self.odd |= counts % factor != 0
        return counts // factor

    def _value(self, expression: Expression, place: Numbers) -> Numbers:
        """Return the numbers of an expression of a field that begins at a place."""
        if isinstance(expression, Constant):
            return wrapped(expression.number)
        if expression is AT:
            return place
        # Before ``measure`` knows the size, nothing that depends on it can be computed.
        if expression is SIZE and self.size is not None:
            return self.size
        if isinstance(expression, Number):
            return self._number(expression)
        if isinstance(expression, Checksum) and expression in self.known:
            return self.known[expression]
        if isinstance(expression, Register) and expression is not SIZE:
            return wrapped(self.grouping.state.registers.get(expression, expression.initial))
        if type(expression) is not Calculation:
            raise UnfitError
        left = self._value(expression.left, place)
        right = self._value(expression.right, place)
        return _calculated(expression.symbol, left, right)

    # --- Bytes ----------------------------------------------------------------------------------

    def put(self, out: U8, places: I64) -> None:
        """Write the objects to their places."""
        for entry in self.shape.entries:
            field = entry.value
            if field is None or entry.is_left_out:
                continue
            field_places = places + self.places[entry.field]
            if isinstance(field, Number):
                self._sum_up(field, out, places)
            if field in self.layout.words:
                nbytes, _ = self.layout.words[field]
                store(out, field_places, self._word(field), nbytes, big=self.big)
            elif isinstance(field, Integer | Float):
                self._put_number(field, out, field_places)
            elif field in self.lists:
                self.lists[field].put(out, field_places)
            elif field in self.columns:
                self._put_column(field, out, field_places)

    def _put_number(self, field: Integer | Float, out: U8, places: I64) -> None:
        """Write the numbers of a field, where it is there."""
        number = self._number(field) if isinstance(field, Number) else self.known[field]
        is_there = self._there(field)
        if isinstance(is_there, int):
            store(out, places, number, field.nbytes, big=self.big)
        else:
            numbers = np.broadcast_to(number, places.shape)
            store(out, places[is_there], numbers[is_there], field.nbytes, big=self.big)

    def _put_column(self, field: Field, out: U8, places: I64) -> None:
        """Write the bytes of a field, but not those of texts that a number stands for."""
        column = self.columns[field]
        is_inline = self._inline(field)
        if not isinstance(is_inline, int):
            column = column.only(is_inline != 0)
        scatter(out, places, column)

    def _word(self, first: Field) -> Numbers:
        """Return the words that a field of bits begins."""
        nbytes, _ = self.layout.words[first]
        mirrored = self.grouping.state.mirrored
        word: Numbers = 0
        for field in self.layout.fields:
            if isinstance(field, Bits) and self.layout.word_of[field] is first:
                number = self._number(field) & wrapped((1 << field.nbits) - 1)
                word = word | _calculated("<<", number, field.shift(nbytes, mirrored))
        return word

    def _sum_up(self, field: Number, out: U8, places: I64) -> None:
        """Add the checksums in a number, of the bytes before it."""
        if not field.checksums:
            return
        ends = places + self.places[self.layout.word_of.get(field, field)]
        data = out.data
        for checksum in field.checksums:
            sums = (
                checksum.of(data[start:end])
                for start, end in zip(places.tolist(), ends.tolist(), strict=True)
            )
            self.known[checksum] = np.fromiter(map(wrapped, sums), np.int64, places.size)
        # The bytes of what is odd are made already: it cannot be left to the encoder any more.
        odd_before = self.odd.copy()
        self._number(field)
        if (self.odd & ~odd_before).any():
            raise UnfitError


def _calculated(symbol: str, left: Numbers, right: Numbers) -> Numbers:
    """Return the result of an operation on numbers of 64 bits."""
    if isinstance(left, int) and isinstance(right, int):
        return calculated(symbol, left, right)
    if symbol in ("<<", ">>") and not isinstance(right, int):
        raise UnfitError
    if symbol in ("<<", ">>") and not 0 <= right < 64:
        return 0
    result: I64 = np.asarray(OPERATIONS[symbol](left, right)).astype(np.int64)
    return result


def float_bits(field: Float, values: Sequence[Any], odd: Mask) -> I64:
    """Return finite numbers as the bits of floats; mark others in ``odd``."""
    floats = np.array(usual(values, float, 0.0, odd), np.float64)
    if field.nbytes == 8:
        return floats.view(np.int64)
    with np.errstate(over="ignore"):
        narrow = floats.astype(np.float32)
    odd |= narrow != floats
    return narrow.view(np.uint32).astype(np.int64)


class _Items:
    """The items of a list of parts, of all objects of a group."""

    def __init__(self, owners: Group, field: Listed, items: list[Any], counts: I64) -> None:
        self.counts = counts
        """Items of each object."""
        self._unit = field.item.layout.family.pad
        self._objects = owners
        self._object_of_item = np.repeat(np.arange(counts.size), counts)
        self._ends = np.cumsum(counts)
        """Behind which of all items the list of each object ends."""
        kinds = owners.grouping.kinds_of(field.item)
        odd_items = np.zeros(len(items), np.bool_)
        ordinals = owners.ordinals[self._object_of_item]
        self.groups = owners.grouping.groups(kinds, items, ordinals, odd_items)
        owners.odd[self._object_of_item[odd_items]] = True
        self._offsets = np.zeros(len(items), np.int64)
        """Bytes of the list before each item."""

    def measure(self, place: Numbers) -> I64:
        """Return the bytes of each list, which begins at a place of its object."""
        sizes = np.zeros(self._object_of_item.size, np.int64)
        for rows, group in self.groups:
            sizes[rows] = group.measure()
            self._objects.odd[self._object_of_item[rows[group.odd]]] = True
        if self._unit > 1:
            sizes += -sizes % self._unit
            self._objects.odd |= place % self._unit != 0
        # Items of 4, 4 and 8 bytes, two lists of 2 and 1: the bounds are 0 4 8 16, the lists begin
        # at 0 and 8, and the offsets of the items are 0 4 0.
        bounds = np.concatenate([[0], np.cumsum(sizes)])
        begins = bounds[self._ends - self.counts]
        self._offsets = bounds[:-1] - begins[self._object_of_item]
        nbytes: I64 = bounds[self._ends] - begins
        return nbytes

    def put(self, out: U8, places: I64) -> None:
        """Write the items of lists that begin at these places."""
        item_places = places[self._object_of_item] + self._offsets
        for rows, group in self.groups:
            group.put(out, item_places[rows])


_TAKERS: Mapping[Any, Callable[..., None]] = {
    Number.parse: Group.take_number,
    Again.parse: Group.take_again,
    Flag.parse: Group.take_flag,
    Float.parse: Group.take_float,
    Text.parse: Group.take_text,
    Octets.parse: Group.take_octets,
    Spare.parse: Group.take_nothing,
    Texts.parse: Group.take_texts,
    Listed.parse: Group.take_list,
}
"""What takes the values of a field, by its way to parse one of them."""


def _taker_of(field: Field) -> Callable[..., None] | None:
    """Return what takes the values of a field; None if only the field itself can."""
    if field.packs is not None:
        return Group.take_own
    if type(field).parse_of is not Field.parse_of:
        return None
    return _TAKERS.get(type(field).parse)


# --- All groups of a block -----------------------------------------------------------------------


class Grouping:
    """Puts objects of a format into groups.

    ``refers`` says whether numbers of references can be looked up, and ``declared`` whether texts
    may be declared whose numbers JSON does not give.
    """

    def __init__(self, state: State, *, refers: bool, declared: bool) -> None:
        self.state = state
        self.refers = refers
        self.declared = declared
        self.kinds: dict[type[Part], Kinds] = {}
        """The shapes of items, by their family."""

    def groups(
        self, kinds: Kinds, objects: Sequence[Any], ordinals: I64, odd: Mask
    ) -> list[tuple[I64, Group]]:
        """Return objects by shape: which they are, and their columns; mark the others in ``odd``.

        ``ordinals`` are the records that they are, or that hold them.
        """
        usual(objects, dict, {}, odd)
        rows = np.flatnonzero(~odd)
        if not rows.size:
            return []
        shape_numbers = np.array(kinds.numbers_of(_chosen(objects, rows)), np.int64)
        # Objects of one shape next to one another, in the order they came.
        order = np.argsort(shape_numbers, kind="stable")
        shape_begins = np.flatnonzero(np.diff(shape_numbers[order])) + 1
        groups = []
        for of_shape in np.split(order, shape_begins):
            members = rows[of_shape]
            group = None
            if members.size >= FEW:
                number = int(shape_numbers[of_shape[0]])
                group = self._group(kinds, number, _chosen(objects, members), ordinals[members])
            if group is None:
                odd[members] = True
            else:
                odd[members[group.odd]] = True
                groups.append((members, group))
        return groups

    def _group(
        self, kinds: Kinds, number: int, objects: Sequence[Mapping[str, Any]], ordinals: I64
    ) -> Group | None:
        """Return objects of one shape as columns; None if columns cannot write them."""
        shape = kinds.shape(number, objects[0])
        if shape is None:
            return None
        try:
            return Group(self, shape, objects, ordinals)
        except UnfitError:
            kinds.forget(shape)
            return None

    def kinds_of(self, item: type[Part]) -> Kinds:
        """Return the shapes of the items of a family."""
        if item not in self.kinds:
            family = item.layout.family
            layouts = {cls.record: cls.layout for cls in family.members}
            has_kinds = bool(family.kinds)
            selectors = [
                field.tag.key
                for layout in (layouts.values() if has_kinds else [item.layout])
                for field in layout.fields
                if isinstance(field, Choice)
            ]
            if has_kinds:
                selectors.append("type")

            def layout_of(example: Any) -> Layout | None:
                return layouts.get(str(example.get("type"))) if has_kinds else item.layout

            unique_selectors = tuple(dict.fromkeys(selectors))
            self.kinds[item] = Kinds(unique_selectors, layout_of, self.state)
        return self.kinds[item]


def _chosen(objects: Sequence[Any], rows: I64) -> Sequence[Any]:
    """Return some of the objects."""
    indexes = rows.tolist()
    if len(indexes) == 1:  # itemgetter would return the object itself
        return [objects[indexes[0]]]
    return operator.itemgetter(*indexes)(objects)  # type: ignore[no-any-return]
