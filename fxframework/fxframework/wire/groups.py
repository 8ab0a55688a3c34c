"""Groups: objects of record JSON with the same keys, whose values are columns.

A *shape* is a class of records with a set of keys (``json_shapes``), a *group* the objects of one
shape in a block. A group takes the values of each field as a column (``_take``), from which bytes
are made as of any columns (``column_records``). A column takes what is usual. An object with
anything else is *odd*: it is left to the encoder of the format, which accepts more, and says what
is wrong. A shape of which columns cannot write any object raises UnfitError.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from fxframework.kernels.arrays import I64, Bools
from fxframework.kit.lossless import UnfitError
from fxframework.wire.beside import Spare
from fxframework.wire.choices import Again, Choice
from fxframework.wire.column_records import ColumnItems, ColumnRecords
from fxframework.wire.cursor import RefusalError
from fxframework.wire.expressions import wrapped
from fxframework.wire.fields import Field, Integer, Number
from fxframework.wire.floats import Float
from fxframework.wire.json_columns import (
    I64_MAX,
    Column,
    converted,
    integers,
    octets,
    store,
    texts,
    usual,
)
from fxframework.wire.json_shapes import COLUMN_PARSERS, Kinds, Shape, ShapeEntry, values_of
from fxframework.wire.lists import Listed, Texts
from fxframework.wire.records import Layout, Part
from fxframework.wire.spans import Octets, Span, Text
from fxframework.wire.state import State

Resolve = Callable[[Field, Any, int | None], int]
FEW = 8
"""Objects of a shape in a block below which columns take longer than objects."""


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


class Group(ColumnRecords):
    """Objects of one shape as columns. What does not fit is left to the encoder."""

    def __init__(
        self, grouping: Grouping, shape: Shape, objects: Sequence[Mapping[str, Any]], ordinals: I64
    ) -> None:
        super().__init__(shape, grouping.state, len(objects))
        self.grouping = grouping
        self.ordinals = ordinals
        """The records that the objects are, or that hold them, shape (objects,)."""
        self.references: list[References] = []
        self.item_groups: list[Group] = []
        self._refs = self._numbers_in_refs(objects)
        for key in shape.only_numbers:
            usual(list(values_of(objects, key)), int, 0, self.odd)
        for entry in shape.entries:
            self._take(entry, objects)

    def _numbers_in_refs(self, objects: Sequence[Mapping[str, Any]]) -> dict[str, list[int]]:
        """Return the numbers of ``refs``, by field."""
        if not self.shape.refs:
            return {}
        refs = list(values_of(objects, "refs"))
        return {
            name: integers(list(values_of(refs, name)), 0, I64_MAX, self.odd).tolist()
            for name in self.shape.refs
        }

    # --- Values of fields -----------------------------------------------------------------------

    def _take(self, entry: ShapeEntry, objects: Sequence[Mapping[str, Any]]) -> None:
        """Make a column of the values of a field."""
        field = entry.value
        if field is None:
            if entry.has_key:
                values = list(values_of(objects, entry.field.key))
                usual(values, type(None), None, self.odd)
        elif entry.is_left_out:
            self.numbers[field] = 0
        elif field.public and not self.layout.derives(entry.field):
            method = "take_own"
            if field.packs is None:
                method = COLUMN_PARSERS[type(field).parse]
            if entry.has_key:
                values = list(values_of(objects, field.key))
            else:
                default: Any = field.default
                if isinstance(field, Listed | Texts):
                    default = list(default)
                values = [default] * self.odd.size
            take: Callable[[Field, Sequence[Any]], None] = getattr(self, method)
            take(field, values)

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
            self._take_parts(field, items, counts)
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

    def _take_parts(self, field: Listed, items: list[Any], counts: I64) -> None:
        """Take lists of parts, whose items have groups of their own."""
        object_of_item = np.repeat(np.arange(counts.size), counts)
        odd_items = np.zeros(len(items), np.bool_)
        kinds = self.grouping.kinds_of(field.item)
        groups = self.grouping.groups(kinds, items, self.ordinals[object_of_item], odd_items)
        self.odd[object_of_item[odd_items]] = True
        self.item_groups += [group for _, group in groups]
        self.lists[field] = ColumnItems(self, counts, field.item.layout.family.pad, groups)

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
        for group in self.item_groups:
            yield from group.all_references()


def float_bits(field: Float, values: Sequence[Any], odd: Bools) -> I64:
    """Return finite numbers as the bits of floats; mark others in ``odd``."""
    floats = np.array(usual(values, float, 0.0, odd), np.float64)
    if field.nbytes == 8:
        return floats.view(np.int64)
    with np.errstate(over="ignore"):
        narrow = floats.astype(np.float32)
    odd |= narrow != floats
    return narrow.view(np.uint32).astype(np.int64)


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
        self, kinds: Kinds, objects: Sequence[Any], ordinals: I64, odd: Bools
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
