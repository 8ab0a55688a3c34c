"""One: a record or a part as an object, whose fields are read one by one.

``One.read`` calls a list of readers, functions of a cursor and of the values found so far. The list
is made once for a layout and a byte order: a reader for each field, but one for numbers that lie
one behind the other (``number_words.Numbers``), then those that look at the whole.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from fxframework.wire.choices import Choice
from fxframework.wire.cursor import AT, SIZE, Cursor, ShortError
from fxframework.wire.expressions import Constant, Evaluator, Expression
from fxframework.wire.families import Fields
from fxframework.wire.fields import Bits, Field, Integer, Number, Reader, Values
from fxframework.wire.lists import Listed
from fxframework.wire.number_words import LETTERS, NOT_SHORT, Numbers, by_rules
from fxframework.wire.shape import Shape
from fxframework.wire.spans import Span

__all__ = ["One"]

OF_RECORDS = frozenset({"offset", "nbytes", "raw", "refs"})
"""Attributes that all records have, and those of parts among them."""


def _read_if(when: Expression, field: Field, read: Reader) -> Reader:
    """Return what reads a field that is there if a condition holds."""
    holds = when.evaluate
    name = field.name if field.public else ""
    is_bits = isinstance(field, Bits)

    def read_if_there(cursor: Cursor, values: Values) -> None:
        if holds(cursor.known):
            read(cursor, values)
            return
        cursor.known[field] = 0
        if name:
            values[name] = None
        if is_bits:
            cursor.differs = True  # the bits are there, whatever they are

    return read_if_there


def _at_its_place(read: Reader) -> Reader:
    """Return what reads a field that depends on its place."""

    def read_at_place(cursor: Cursor, values: Values) -> None:
        cursor.known[AT] = cursor.at - cursor.start
        read(cursor, values)

    return read_at_place


class One(Shape):
    """What a layout knows of objects that are read."""

    @functools.cached_property
    def readers(self) -> dict[tuple[bool, bool], list[Reader]]:
        """What reads a record, by byte order and whether bits are mirrored."""
        orders = [(big, mirrored) for big in (False, True) for mirrored in (False, True)]
        return {order: [*self._readers(order), *self._closers()] for order in orders}

    @functools.cached_property
    def explaining_readers(self) -> list[Reader]:
        """What reads a record, each field by itself, so that all of them can be shown."""
        return [*self._readers(None), *self._closers()]

    @functools.cached_property
    def rules_of(self) -> dict[Reader, Mapping[int, int]]:
        """Fields' own rules for what does not fit, by what reads them."""
        return {}

    def _readers(self, order: tuple[bool, bool] | None) -> Iterable[Reader]:
        """Yield what reads the fields; without an order, each by itself."""
        together: list[Number] = []  # numbers so far that are read at once
        in_tail = False

        def reader_of(field: Field) -> Reader:
            """Return what reads one field alone."""
            if order is not None and self._joins(field, []):
                assert isinstance(field, Number)  # noqa: S101 (only they join)
                return Numbers(self, [field], *order).read
            read = field.reader(self, reader_of)
            if field in self.choice_of:
                read = by_rules(field, read)
            # Spans find their places themselves, and a choice reads others.
            needs_place = field.uses_place and not isinstance(field, Span | Choice)
            if needs_place:
                return _at_its_place(read)
            return read

        for field in self.fields:
            begins_tail = field.tail and not in_tail
            # This field ends the run of numbers before it, or joins it, or has its own reader.
            if together and (begins_tail or not self._joins(field, together)):
                assert order is not None  # noqa: S101 (without one there are none)
                yield Numbers(self, together, *order).read
                together = []
            if begins_tail:
                yield self._begin_tail
                in_tail = True
            if order is not None and self._joins(field, together):
                assert isinstance(field, Number)  # noqa: S101 (only they join)
                together.append(field)
                continue
            read = reader_of(field)
            if field.when is not None:
                read = _read_if(field.when, field, read)
            if field.by_room or order is None:
                read = _at_its_place(read)
            if not field.rules.keys() <= NOT_SHORT:
                self.rules_of[read] = field.rules
            yield read
        if together:
            assert order is not None  # noqa: S101 (without one there are none)
            yield Numbers(self, together, *order).read

    def _closers(self) -> Iterable[Reader]:
        """Yield what there is to do once all fields are read."""
        if self.measured:
            yield self._check_measured
        if self.implied_kinds:
            yield self._drop_implied_kinds
        if self.sets or self.clears:
            yield self._change

    def _check_measured(self, cursor: Cursor, values: Values) -> None:
        """Check the numbers that are equal to the size."""
        del values
        known = cursor.known
        size_outside = known[SIZE]
        known[SIZE] = cursor.at - cursor.start
        for number, evaluate in self._measures:
            if evaluate(known) != known[number]:
                number.check(cursor)
        known[SIZE] = size_outside

    @functools.cached_property
    def _measures(self) -> list[tuple[Number, Evaluator]]:
        """The numbers that are equal to the size, and what computes them from it."""
        return [
            (number, number.equals.evaluate)
            for number in self.measured
            if number.equals is not None
        ]

    def _drop_implied_kinds(self, cursor: Cursor, values: Values) -> None:
        """Drop the numbers of kinds that the class says."""
        del cursor
        for name in self.implied_kinds:
            del values[name]

    @functools.cached_property
    def _constant_changes(self) -> dict[Any, int]:
        """The registers that records set to what is always the same."""
        return {
            register: value.number
            for register, value in self.sets.items()
            if isinstance(value, Constant)
        }

    @functools.cached_property
    def _changes(self) -> list[tuple[Any, Evaluator]]:
        """The other registers that records set, and what computes their values."""
        return [
            (register, value.evaluate)
            for register, value in self.sets.items()
            if not isinstance(value, Constant)
        ]

    def _change(self, cursor: Cursor, values: Values) -> None:
        """Let the record change registers and tables."""
        del values
        cursor.sets.update(self._constant_changes)
        for register, evaluate in self._changes:
            cursor.sets[register] = int(evaluate(cursor.known))
        for table in self.clears:
            cursor.effects.append(("clear", table))

    def _joins(self, field: Field, together: list[Number]) -> bool:
        """Return whether a field is read with the numbers before it, or may be the first."""
        if field.when is not None or type(field).read is not Number.read or field.uses_place:
            return False
        assert isinstance(field, Number)  # noqa: S101 (it is read as one)
        if field.checksums:
            return False
        if isinstance(field, Integer):
            return field.nbytes in LETTERS
        if field in self.words:
            return self.words[field][0] in LETTERS
        # Other bits need the word that an earlier field read.
        return bool(together) and self.word_of[field] in Fields(together)

    def _begin_tail(self, cursor: Cursor, values: Values) -> None:
        """Go over the padding before the tail."""
        del values
        self._go_over_padding(cursor)
        cursor.limit += self.tail

    def _go_over_padding(self, cursor: Cursor) -> None:
        """Go from the end of the fields, but for those of the tail, to the limit."""
        gap = cursor.limit - cursor.at
        # A record of a fixed size, or of a power of two, is filled up when it is written; another
        # one only to the next multiple of ``align``.
        is_filled = bool(self.fixed) or self.family.power
        if not is_filled and gap != (cursor.start - cursor.at - self.tail) % self.align:
            cursor.differs = True
        if gap:
            cursor.pad_to(cursor.limit)

    def finish(self, cursor: Cursor, size: int) -> None:
        """Go to the end of a record or a part that says its ``size``; 0 if its fields end it."""
        if not size:
            cursor.differs |= (cursor.at - cursor.start) % self.align != 0
        elif self.fixed and cursor.at == cursor.limit:
            return
        elif not self.tail:
            self._go_over_padding(cursor)
        elif cursor.at < cursor.limit:
            cursor.differs = True
            cursor.pad_to(cursor.limit)

    def read(self, cursor: Cursor) -> Values:
        """Read all fields up to ``cursor.limit``. Raises ShortError if they do not fit."""
        cursor.layout = self
        values = self.defaults.copy()
        cursor.limit -= self.tail
        if cursor.views is None:
            readers = self.readers[cursor.big, cursor.mirrored]
        else:
            readers = self.explaining_readers
            cursor.section = self.section or self.family.section or cursor.section
        try:
            for read in readers:
                read(cursor, values)
        except ShortError as problem:
            number = self.rules_of.get(read, {}).get(problem.number)
            if number is None:
                raise
            raise ShortError(number, problem.needed) from None
        return values

    @functools.cached_property
    def defaults(self) -> Values:
        """The values of attributes that are not read; none where ``cls`` has to find them.

        Those that are read are None, so that there is room for them.
        """
        if not self.only_sets:
            return {}
        names_read = {field.name for field in self.fields}
        defaults: Values = {}
        for attribute in attrs.fields(self.cls):
            if attribute.name not in OF_RECORDS:
                is_read = attribute.name in names_read
                defaults[attribute.name] = None if is_read else attribute.default
        return defaults

    @functools.cached_property
    def ends_making(self) -> bool:
        """Whether the class does something once an object is made."""
        return hasattr(self.cls, "__attrs_post_init__")

    @functools.cached_property
    def only_sets(self) -> bool:
        """Whether making an object only sets attributes, but for what comes after it."""
        return not any(
            attribute.converter or attribute.validator or hasattr(attribute.default, "factory")
            for attribute in attrs.fields(self.cls)
        )

    def made(self, values: Values, offset: int, nbytes: int | None = None) -> Any:
        """Return the object of values, which it keeps; ``nbytes`` are those of a record."""
        cls = self.cls
        if not self.only_sets:
            if nbytes is None:
                return cls(**values, offset=offset)
            return cls(**values, offset=offset, nbytes=nbytes)
        # All that ``cls(…)`` would do, in a fraction of the time.
        made = object.__new__(cls)
        made.__dict__ = values
        made.offset = offset
        if nbytes is not None:
            made.nbytes = nbytes
            made.raw = None
        if self.ends_making:
            made.__attrs_post_init__()
        return made

    def read_part(self, cursor: Cursor) -> Any:
        """Read an item of this family; one that does not fit is that of its ``recover``."""
        # What the cursor says of the record around the part is put back behind it.
        outer_limit = cursor.limit
        outer_start = cursor.start
        outer_layout = cursor.layout
        outer_refs = cursor.refs
        known = cursor.known
        outer_size = known.get(SIZE, 0)
        views_before = 0 if cursor.views is None else len(cursor.views)
        begin = cursor.at
        cursor.start = begin
        own_refs: dict[str, int] = {}
        cursor.refs = own_refs
        problem: ShortError | None = None
        try:
            own_layout = self if self.is_alone else self._layout_of(cursor)
            values = own_layout.read(cursor)
            if own_layout.is_sized or own_layout.align > 1:
                own_layout.finish(cursor, cursor.limit - begin if own_layout.is_sized else 0)
        except ShortError as short:
            problem = short
        cursor.limit = outer_limit
        cursor.start = outer_start
        cursor.layout = outer_layout
        cursor.refs = outer_refs
        known[SIZE] = outer_size
        if problem is not None:
            if cursor.views is not None:
                del cursor.views[views_before:]
            cursor.at = begin
            cursor.differs = True
            return self.cls.recover(cursor, problem)
        if self.family.pad > 1:
            cursor.align(self.family.pad)
        values["refs"] = own_refs or None
        return own_layout.made(values, begin)

    @functools.cached_property
    def is_alone(self) -> bool:
        """Whether all parts of the family are of this layout, and end where their fields end."""
        return not self.family.kinds and not self.is_sized

    def _layout_of(self, cursor: Cursor) -> One:
        """Return the layout of the part at ``cursor.start``, and limit the cursor to it.

        Raises ShortError if it has no class or does not fit.
        """
        family = self.family
        cls = self.cls
        begin = cursor.start
        if family.head > cursor.limit - begin:
            raise cursor.short(family.head)
        if family.kinds:
            numbers = family.numbers(cursor.data, begin, cursor.big, cursor.mirrored)
            cls = family.choose(numbers, cursor.known)
            if cls is None:
                raise ShortError
        if cls.layout.is_sized:
            size = family.size_at(cursor.data, begin, cursor.big, cursor.mirrored)
            size = size or cls.layout.size
            if not family.head <= size <= cursor.limit - begin:
                raise cursor.short(max(size, family.head))
            cursor.limit = begin + size
            cursor.known[SIZE] = size
        layout: One = cls.layout
        return layout

    @functools.cached_property
    def implied_kinds(self) -> list[str]:
        """Names of kinds that the class says, so that its records do not have them."""
        return [
            field.name for field in self.family.kinds if field.public and field not in self.public
        ]

    @functools.cached_property
    def is_exact(self) -> bool:
        """Whether objects are written as the bytes that were read, unless reading says otherwise.

        A number that says whether a field is there may be any one that says the same.
        """
        all_fields = [*self.fields, *self.choice_of]
        if not all(field.exact for field in all_fields):
            return False
        # Any number that says "present" is read, and one of them is written.
        if any(how == "present" for ways in self.implied.values() for how, *_ in ways):
            return False
        for field in all_fields:
            if not isinstance(field, Listed) or isinstance(field.item, Field):
                continue
            family = field.item.layout.family
            if not all(part.layout.is_exact for part in (family.base, *family.classes)):
                return False
        return True

    def unsaid(self, choice: Choice, chosen: Field | None) -> list[Field]:
        """Return the numbers that follow from other kinds of a choice than the chosen one.

        They are written as zero.
        """
        unsaid_numbers = []
        for number, ways in self.implied.items():
            fields = [field for _, field, _, _ in ways]
            is_of_choice = all(self.choice_of.get(field) is choice for field in fields)
            if is_of_choice and not any(field is chosen for field in fields):
                unsaid_numbers.append(number)
        return unsaid_numbers
