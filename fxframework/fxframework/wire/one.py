"""One: a record or a part as an object, whose fields are read, and written, one after another.

What has a size of its own is written first, so that lengths before it are known; then numbers, each
when it is asked for.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from fxframework.wire.beside import Spare
from fxframework.wire.cursor import AT, SIZE, Cursor, Draft, RefusalError, ShortError
from fxframework.wire.expressions import Constant, Expression
from fxframework.wire.fields import Bits, Field, Number, Values
from fxframework.wire.floats import Float
from fxframework.wire.lists import Listed
from fxframework.wire.rules import DOES_NOT_FIT, WRONG_SPARE
from fxframework.wire.shape import Shape

if TYPE_CHECKING:
    from fxframework.wire.state import State

OF_ANOTHER_KIND = "it would be read as a record of another kind"


class One(Shape):
    """What a layout knows of objects that are read and written."""

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

    # --- Writing ---------------------------------------------------------------------------------

    @functools.cached_property
    def bits_of(self) -> dict[Field, list[Bits]]:
        """The fields of each word, by the first of them.

        The size comes last: what makes a record too large is refused for itself.
        """
        bits_of: dict[Field, list[Bits]] = {first_field: [] for first_field in self.words}
        bit_fields = [field for field in self.fields if isinstance(field, Bits)]
        for field in sorted(bit_fields, key=lambda field: field.role == "size"):
            bits_of[self.word_of[field]].append(field)
        return bits_of

    @functools.cached_property
    def extents(self) -> list[tuple[Field, int]]:
        """The fields that have bytes, and how many; -1 of those that must be written to know."""
        extents = []
        for field in self.fields:
            in_word_of_others = isinstance(field, Bits) and field not in self.words
            if in_word_of_others or type(field).put is Field.put:
                continue
            nbytes = -1
            if isinstance(field, Number | Float | Spare) and field.when is None:
                nbytes = field.least()
                if field in self.words:
                    nbytes, _ = self.words[field]
            extents.append((field, nbytes))
        return extents

    def packed(self, record: Any, state: State | None, big: bool) -> bytes:
        """Return the bytes of an object. Raises RefusalError for a value that does not fit.

        What has a size of its own is written first, so that lengths before it are known.
        """
        draft = Draft(self, record, state, big)
        pieces: dict[Field, bytes] = {}
        padding = -1  # not known yet
        for field, nbytes in self.extents:
            if field.tail and padding < 0:
                padding = self._padding(draft)
                draft.at += padding
            draft.places[field] = draft.at
            if nbytes < 0:
                pieces[field] = b""
                if field.when is None or draft.has(field):
                    pieces[field] = field.put(draft)
                nbytes = len(pieces[field])
            draft.at += nbytes
        if padding < 0:
            padding = self._padding(draft)
            draft.at += padding
        # Now all lengths are known: numbers that say them can be written, in the order of fields,
        # so that a checksum sees the bytes before it.
        draft[SIZE] = draft.at
        for field, size in self.stated.items():
            self._check_stated(draft, field, size)
        data = bytearray()
        for field, nbytes in self.extents:
            if field.tail and padding:
                data += bytes(padding)
                padding = 0
            if nbytes < 0:
                data += pieces[field]
                continue
            if isinstance(field, Number):
                for checksum in field.checksums:
                    draft[checksum] = checksum.of(data)
            data += field.put(draft)
        data += bytes(padding)
        if self.word and big and not draft.mirrored:
            self.check_kind(memoryview(data), big, draft.mirrored)
        return bytes(data)

    def _padding(self, draft: Draft) -> int:
        """Return how much padding is behind the fields so far, before the tail."""
        nbytes = draft.at
        whole_size = self._whole_size(draft)
        if whole_size:
            padding = whole_size - self.tail - nbytes
            if padding < 0:
                before_padding = [
                    field for field in self.fields if not field.tail and not field.is_computed
                ]
                message = f"the fields take {nbytes} of {whole_size} bytes"
                raise before_padding[-1].refused(DOES_NOT_FIT, message)
        else:
            padding = -(nbytes + self.tail) % self.align
        if padding and self.rest is not None:
            rule = WRONG_SPARE if self.family.power else DOES_NOT_FIT
            message = f"{self.rest.name} would have {padding} bytes more, as padding"
            raise self.rest.refused(rule, message)
        return padding

    def _whole_size(self, draft: Draft) -> int:
        """Return the size of a record that its fields do not change; 0 if they do."""
        if not self.family.power:
            return self.fixed
        assert self.family.size is not None  # noqa: S101 (it says the power)
        if getattr(draft.record, self.family.size.name) is None:
            return self.family.unit << self.family.smallest_power(draft.at + self.tail)
        return self.family.size_of(draft[self.family.size])

    def _check_stated(self, draft: Draft, field: Field, size: Expression) -> None:
        """Raise RefusalError if a field is not as long as other fields say."""
        choice = self.choice_of.get(field)
        if choice is not None and choice.of(draft[choice.tag]) is not field:
            return
        if not draft.has(field if choice is None else choice):
            return
        stated_length = size.value(draft)
        length = field.length_written(draft)
        if stated_length != length:
            message = f"{field.name} has {length} bytes or items, and {size!r} is {stated_length}"
            if isinstance(size, Constant):
                message = f"{field.name} has {length} items, but its field has {stated_length}"
            raise field.refused(WRONG_SPARE, message)

    def check_kind(self, data: memoryview, big: bool, mirrored: bool) -> None:
        """Raise RefusalError if the fields make the record one of another kind."""
        kind_read = self.family.numbers(data, 0, big, mirrored)
        if any(own != read for own, read in zip(self.kind, kind_read, strict=False)):
            raise RefusalError(DOES_NOT_FIT, OF_ANOTHER_KIND)


def leave_out(field: Field, cursor: Cursor, values: Values) -> None:
    """Take in that a record has not a field."""
    cursor.known[field] = 0
    if field.public:
        values[field.name] = None
    if isinstance(field, Bits):
        cursor.differs = True  # the bits are there, whatever they are
