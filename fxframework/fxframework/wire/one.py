"""One: a record or a part as an object, whose fields are read one by one.

What depends on a layout alone is prepared once: what reads each field, with numbers that lie one
behind the other taken together.
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


def _where_there(field: Field, when: Expression, read: Reader) -> Reader:
    """Return what reads a field that is there if a condition holds."""
    holds, name = when.evaluate, field.name if field.public else ""
    is_bits = isinstance(field, Bits)

    def read_if_there(c: Cursor, values: Values) -> None:
        if holds(c.known):
            read(c, values)
            return
        c.known[field] = 0
        if name:
            values[name] = None
        if is_bits:
            c.differs = True  # the bits are there, whatever they are

    return read_if_there


def _at_its_place(read: Reader) -> Reader:
    """Return what reads a field that depends on its place."""

    def read_at_place(c: Cursor, values: Values) -> None:
        c.known[AT] = c.at - c.start
        read(c, values)

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
        together: list[Number] = []
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
            return _at_its_place(read) if needs_place else read

        for field in self.fields:
            begins_tail = field.tail and not in_tail
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
                read = _where_there(field, field.when, read)
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

    def _check_measured(self, c: Cursor, values: Values) -> None:
        """Check the numbers that are equal to the size."""
        del values
        known = c.known
        claimed = known[SIZE]
        known[SIZE] = c.at - c.start
        for number, evaluate in self._measures:
            if evaluate(known) != known[number]:
                number.check(c)
        known[SIZE] = claimed

    @functools.cached_property
    def _measures(self) -> list[tuple[Number, Evaluator]]:
        """The numbers that are equal to the size, and what computes them from it."""
        return [(each, each.equals.evaluate) for each in self.measured if each.equals is not None]

    def _drop_implied_kinds(self, c: Cursor, values: Values) -> None:
        """Drop the numbers of kinds that the class says."""
        del c
        for name in self.implied_kinds:
            del values[name]

    @functools.cached_property
    def _constant_changes(self) -> dict[Any, int]:
        """The registers that records set to what is always the same."""
        constants = {each: to for each, to in self.sets.items() if isinstance(to, Constant)}
        return {register: value.number for register, value in constants.items()}

    @functools.cached_property
    def _changes(self) -> list[tuple[Any, Evaluator]]:
        """The other registers that records set, and what computes their values."""
        constant = self._constant_changes
        return [(each, to.evaluate) for each, to in self.sets.items() if each not in constant]

    def _change(self, c: Cursor, values: Values) -> None:
        """Let the record change registers and tables."""
        del values
        c.sets.update(self._constant_changes)
        for register, evaluate in self._changes:
            c.sets[register] = int(evaluate(c.known))
        for table in self.clears:
            c.effects.append(("clear", table))

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
        return bool(together) and self.word_of[field] in Fields(together)

    def _begin_tail(self, c: Cursor, values: Values) -> None:
        """Go over the padding before the tail."""
        del values
        self._go_over_padding(c)
        c.limit += self.tail

    def _go_over_padding(self, c: Cursor) -> None:
        """Go from the end of the fields, but for those of the tail, to the limit."""
        gap = c.limit - c.at
        is_filled = bool(self.fixed) or self.family.power
        if not is_filled and gap != (c.start - c.at - self.tail) % self.align:
            c.differs = True
        if gap:
            c.pad_to(c.limit)

    def finish(self, c: Cursor, size: int) -> None:
        """Go to the end of a record or a part that says its ``size``; 0 if its fields end it."""
        if not size:
            c.differs |= (c.at - c.start) % self.align != 0
        elif self.fixed and c.at == c.limit:
            return
        elif not self.tail:
            self._go_over_padding(c)
        elif c.at < c.limit:
            c.differs = True
            c.pad_to(c.limit)

    def read(self, c: Cursor) -> Values:
        """Read all fields up to ``c.limit``. Raises ShortError if they do not fit."""
        c.layout = self
        values = self.defaults.copy()
        c.limit -= self.tail
        if c.views is None:
            readers = self.readers[c.big, c.mirrored]
        else:
            readers = self.explaining_readers
            c.section = self.section or self.family.section or c.section
        try:
            for read in readers:
                read(c, values)
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
        attributes = [each for each in attrs.fields(self.cls) if each.name not in OF_RECORDS]
        if not self.only_sets:
            return {}
        read = {field.name for field in self.fields}
        defaults = {each.name: each.default for each in attributes}
        return {name: None if name in read else value for name, value in defaults.items()}

    @functools.cached_property
    def ends_making(self) -> bool:
        """Whether the class does something once an object is made."""
        return hasattr(self.cls, "__attrs_post_init__")

    @functools.cached_property
    def only_sets(self) -> bool:
        """Whether making an object only sets attributes, but for what comes after it."""
        return not any(
            each.converter or each.validator or hasattr(each.default, "factory")
            for each in attrs.fields(self.cls)
        )

    def made(self, values: Values, offset: int, nbytes: int | None = None) -> Any:
        """Return the object of values, which it keeps; ``nbytes`` are those of a record."""
        cls = self.cls
        if not self.only_sets:
            place = {"offset": offset} if nbytes is None else {"offset": offset, "nbytes": nbytes}
            return cls(**values, **place)
        made = object.__new__(cls)
        made.__dict__ = values
        made.offset = offset
        if nbytes is not None:
            made.nbytes, made.raw = nbytes, None
        if self.ends_making:
            made.__attrs_post_init__()
        return made

    def read_part(self, c: Cursor) -> Any:
        """Read an item of this family; one that does not fit is that of its ``recover``."""
        begin, limit, start, layout, refs = c.at, c.limit, c.start, c.layout, c.refs
        views = 0 if c.views is None else len(c.views)
        known = c.known
        whole = known.get(SIZE, 0)
        c.start = begin
        own: dict[str, int] = {}
        c.refs = own
        problem: ShortError | None = None
        try:
            own_layout = self if self.is_alone else self._layout_of(c)
            values = own_layout.read(c)
            if own_layout.is_sized or own_layout.align > 1:
                own_layout.finish(c, c.limit - begin if own_layout.is_sized else 0)
        except ShortError as short:
            problem = short
        c.limit, c.start, c.layout, c.refs = limit, start, layout, refs
        known[SIZE] = whole
        if problem is not None:
            if c.views is not None:
                del c.views[views:]
            c.at = begin
            c.differs = True
            return self.cls.recover(c, problem)
        if self.family.pad > 1:
            c.align(self.family.pad)
        values["refs"] = own or None
        return own_layout.made(values, begin)

    @functools.cached_property
    def is_alone(self) -> bool:
        """Whether all parts of the family are of this layout, and end where their fields end."""
        return not self.family.kinds and not self.is_sized

    def _layout_of(self, c: Cursor) -> One:
        """Return the layout of the part that begins at ``c.start``, and limit the cursor to it.

        Raises ShortError if it has no class or does not fit.
        """
        family, cls, begin = self.family, self.cls, c.start
        if family.head > c.limit - begin:
            raise c.short(family.head)
        if family.kinds:
            cls = family.choose(family.numbers(c.data, begin, c.big, c.mirrored), c.known)
            if cls is None:
                raise ShortError
        if cls.layout.is_sized:
            size = family.size_at(c.data, begin, c.big, c.mirrored) or cls.layout.size
            if not family.head <= size <= c.limit - begin:
                raise c.short(max(size, family.head))
            c.limit = begin + size
            c.known[SIZE] = size
        layout: One = cls.layout
        return layout

    @functools.cached_property
    def implied_kinds(self) -> list[str]:
        """Names of kinds that the class says, so that its records do not have them."""
        return [each.name for each in self.family.kinds if each.public and each not in self.public]

    @functools.cached_property
    def is_exact(self) -> bool:
        """Whether objects are written as the bytes that were read, unless reading says otherwise.

        A number that says whether a field is there may be any one that says the same.
        """
        every = [*self.fields, *self.choice_of]
        implied = [way for ways in self.implied.values() for way, *_ in ways]
        items = [field.item for field in every if isinstance(field, Listed)]
        families = [item.layout.family for item in items if not isinstance(item, Field)]
        parts = [part for family in families for part in (family.base, *family.members)]
        parts += [family.other for family in families if family.other is not None]
        return (
            all(field.exact for field in every)
            and "present" not in implied
            and all(part.layout.is_exact for part in parts)
        )

    def unsaid(self, choice: Choice, chosen: Field | None) -> list[Field]:
        """Return the numbers that follow from other kinds of a choice than the chosen one.

        They are written as zero.
        """
        found = []
        for number, ways in self.implied.items():
            fields = [field for _, field, _, _ in ways]
            of_choice = all(self.choice_of.get(field) is choice for field in fields)
            if of_choice and not any(field is chosen for field in fields):
                found.append(number)
        return found
