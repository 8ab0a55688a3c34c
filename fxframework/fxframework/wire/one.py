"""One: a record or a part as an object, whose fields are read one after another."""

from __future__ import annotations

import functools
from typing import Any

from fxframework.wire.choices import Choice
from fxframework.wire.cursor import AT, SIZE, Cursor, ShortError
from fxframework.wire.fields import Bits, Field, Values
from fxframework.wire.lists import Listed
from fxframework.wire.shape import Shape


class One(Shape):
    """What a layout knows of objects that are read."""

    def read(self, cursor: Cursor) -> Values:
        """Read all fields up to ``cursor.limit``. Raises ShortError if they do not fit."""
        cursor.layout = self
        if cursor.views is not None:
            cursor.section = self.section or self.family.section or cursor.section
        values: Values = {}
        known = cursor.known
        tail_begins = self.tail_begins
        cursor.limit -= self.tail
        try:
            for field in self.fields:
                if field is tail_begins:
                    self._go_over_padding(cursor)
                    cursor.limit += self.tail
                known[AT] = cursor.at - cursor.start
                if field.when is None or field.when.value(known):
                    field.read(cursor, values)
                else:
                    leave_out(field, cursor, values)
        except ShortError as problem:
            raise field.by_own_rule(problem) from None
        if self.measured:
            self._check_measured(cursor)
        for name in self.implied_kinds:
            del values[name]
        for register, value in self.sets.items():
            cursor.sets[register] = int(value.value(known))
        for table in self.clears:
            cursor.effects.append(("clear", table))
        return values

    @functools.cached_property
    def tail_begins(self) -> Field | None:
        """The first field of the tail; None without one."""
        return next((field for field in self.fields if field.tail), None)

    def _check_measured(self, cursor: Cursor) -> None:
        """Check the numbers that are equal to the size."""
        known = cursor.known
        size_outside = known[SIZE]
        known[SIZE] = cursor.at - cursor.start
        for number in self.measured:
            assert number.equals is not None  # noqa: S101 (why it is among them)
            if number.equals.value(known) != known[number]:
                number.check(cursor)
        known[SIZE] = size_outside

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

    def made(self, values: Values, offset: int, nbytes: int | None = None) -> Any:
        """Return the object of values; ``nbytes`` are those of a record."""
        if nbytes is None:
            return self.cls(**values, offset=offset)
        return self.cls(**values, offset=offset, nbytes=nbytes)

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
        key = choice, chosen
        if key not in self._unsaid:
            self._unsaid[key] = self._find_unsaid(choice, chosen)
        return self._unsaid[key]

    @functools.cached_property
    def _unsaid(self) -> dict[tuple[Choice, Field | None], list[Field]]:
        return {}

    def _find_unsaid(self, choice: Choice, chosen: Field | None) -> list[Field]:
        unsaid_numbers = []
        for number, ways in self.implied.items():
            fields = [field for _, field, _, _ in ways]
            is_of_choice = all(self.choice_of.get(field) is choice for field in fields)
            if is_of_choice and not any(field is chosen for field in fields):
                unsaid_numbers.append(number)
        return unsaid_numbers


def leave_out(field: Field, cursor: Cursor, values: Values) -> None:
    """Take in that a record has not a field."""
    cursor.known[field] = 0
    if field.public:
        values[field.name] = None
    if isinstance(field, Bits):
        cursor.differs = True  # the bits are there, whatever they are
