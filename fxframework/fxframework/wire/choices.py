"""Choices: values whose kind an earlier number tells, flags of such numbers, and own findings."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from fxframework.kit.json_fields import JsonFields
from fxframework.wire.cursor import AT, Cursor, Draft, RefusalError, ShortError, limits_of
from fxframework.wire.expressions import Expression, expression, wrapped
from fxframework.wire.fields import Field, Number, Values, refusal_of_range
from fxframework.wire.floats import bits_compared
from fxframework.wire.known import as_mask, with_sign
from fxframework.wire.rules import WRONG_TYPE
from fxframework.wire.spans import Octets

if TYPE_CHECKING:
    import numpy as np

    from fxframework.kernels.arrays import I64, Bools
    from fxframework.wire.many import Many
else:
    from fxframework.kit.lazy import numpy as np


class Choice(Field):
    """A value of one of several kinds, by the number in an earlier field; None has no bytes."""

    exact = True

    def __init__(
        self, tag: Number, kinds: Mapping[int, Field | None], other: Field | None, **common: Any
    ) -> None:
        super().__init__(**common)
        self.tag = tag
        self.kinds = dict(kinds)
        self.of_wrapped = {wrapped(int(number)): field for number, field in self.kinds.items()}
        """The fields by number, wrapped as in columns."""
        self.other = other

    @property
    def fields(self) -> Iterator[Field]:
        """The fields of all kinds that have one."""
        return (field for field in (*self.kinds.values(), self.other) if field is not None)

    def bind(self) -> None:
        """Give the name to the fields of all kinds; they have one key of JSON."""
        for field in self.fields:
            field.name = self.name
            field.owner = self.owner
            if isinstance(field, Octets):
                field.json_suffix = ""

    def expressions(self) -> list[Expression]:
        """Return the expressions that it depends on."""
        terms = [*super().expressions(), self.tag]
        for field in self.fields:
            terms += field.expressions()
        return terms

    def of(self, number: int) -> Field | None:
        """Return the field for a number."""
        return self.kinds.get(number, self.other)

    def chosen(self, values: Mapping[str, Any]) -> Field | None:
        """Return the field for the values of a record."""
        return self.of(self.tag.numbered(values[self.tag.name]))

    def read(self, cursor: Cursor, values: Values) -> None:
        """Read the value of its kind."""
        field = self.of(cursor.known[self.tag])
        for number in unsaid(cursor.layout, self, field):
            # This kind does not say it, so it would be written as 0.
            if cursor.known[number]:
                cursor.differs = True
        if field is None:
            values[self.name] = None
            return
        try:
            field.read(cursor, values)
        except ShortError as problem:
            raise field.by_own_rule(problem) from None

    def put(self, draft: Draft) -> bytes:
        """Return the bytes of the value of its kind."""
        field = self.of(draft[self.tag])
        if field is not None:
            return field.put(draft)
        value = getattr(draft.record, self.name)
        if value is not None:
            raise self.unknown(value)
        return b""

    def of_many(self, tags: I64) -> Iterator[tuple[Field | None, Bools]]:
        """Yield the field of each kind with the rows whose tags say it, that of others last."""
        is_other = np.ones(tags.size, bool)
        for number, field in self.of_wrapped.items():
            is_of_kind = tags == number
            is_other &= ~is_of_kind
            yield field, is_of_kind
        yield self.other, is_other

    def read_many(self, many: Many) -> None:
        """Read the values of many records, those of one kind after those of another."""
        tags = many.known[self.tag]
        if tags.size and (tags == tags[0]).all():
            self._read_one_kind(many, self.of_wrapped.get(int(tags[0]), self.other))
            return
        kinds = [(field, np.flatnonzero(rows)) for field, rows in self.of_many(tags)]
        rows_of_kinds = [(field, rows) for field, rows in kinds if rows.size]
        # All kinds are read from where the choice begins; only then the records go on.
        ends = many.at().copy()
        for field, rows in rows_of_kinds:
            if field is None or field in many.reading.without:
                continue
            if field.uses_place:
                many.known[AT] = many.at() - many.start
            records_of_kind = many.some(rows)
            field.read_many(records_of_kind)
            many.take_columns(records_of_kind, rows)
            ends[rows] = records_of_kind.at()
        many.go_to(ends)

    def _read_one_kind(self, many: Many, field: Field | None) -> None:
        """Read the values of records all of which are of one kind."""
        if field is None or field in many.reading.without:
            return
        if field.uses_place:
            many.known[AT] = many.at() - many.start
        field.read_many(many)

    def unknown(self, value: Any) -> RefusalError:
        """Return the refusal of a value where there is none."""
        return RefusalError(WRONG_TYPE, f"{self.name} must be None, not {value!r}")

    def key_of(self, value: Any) -> Any:
        """Return the bits of a double, so that -0.0 differs from 0.0."""
        return bits_compared(value)

    def show_of(self, made: Any, out: dict[str, Any]) -> None:
        """Put the value of a record into its JSON, as its kind is shown."""
        tag = getattr(made, self.tag.name)
        field = self.of(self.tag.names_of.get(tag, tag))
        if field is None:
            field = self
        field.show(getattr(made, self.name), out)

    def parse_of(self, form: JsonFields, values: Values) -> None:
        """Put the value, of the kind that the values before it say, beside them."""
        field = self.chosen(values)
        if field is not None:
            field.parse_of(form, values)
            return
        form.used.add(self.key)
        values[self.name] = None
        if form.given.get(self.key) is not None:
            raise form.wrong(self.key, "null")


@functools.cache
def unsaid(layout: Any, choice: Choice, chosen: Field | None) -> list[Field]:
    """Return the numbers that follow from other kinds of a choice than the chosen one.

    They are written as zero.
    """
    unsaid_numbers = []
    for number, ways in layout.implied.items():
        fields = [field for _, field, _, _ in ways]
        is_of_choice = all(layout.choice_of.get(field) is choice for field in fields)
        if is_of_choice and not any(field is chosen for field in fields):
            unsaid_numbers.append(number)
    return unsaid_numbers


class Again(Field):
    """The number of an earlier field of bits, shown under another name.

    When the record is written, the bits follow from it.
    """

    exact = True

    def __init__(self, number: Number, *, signed: bool = False, **common: Any) -> None:
        super().__init__(**common)
        self.number = number
        self.signed = signed
        self.range = limits_of(number.nbits, signed)

    def expressions(self) -> list[Expression]:
        """Return the number."""
        return [*super().expressions(), self.number]

    def shown(self, number: int) -> Any:
        """Return the value for a number: that with a sign, if the value has one."""
        if number > self.range[1]:
            number -= 1 << self.number.nbits
        return number

    def number_to_write(self, value: Any) -> int:
        """Return the number for a value. Raises RefusalError for one that does not fit."""
        if type(value) is not int:
            raise RefusalError(WRONG_TYPE, f"{self.name} must be an integer, not {value!r}")
        if not self.range[0] <= value <= self.range[1]:
            raise refusal_of_range(self.name, value, *self.range)
        return value & (1 << self.number.nbits) - 1

    def read(self, cursor: Cursor, values: Values) -> None:
        """Take the value from the number."""
        number = cursor.known[self.number]
        value = self.shown(number)
        values[self.name] = value
        cursor.known[self] = wrapped(int(value))
        if type(value) is bool:
            cursor.differs |= value != number

    def written(self, draft: Draft) -> int:
        """Return the value as a number of other fields' conditions."""
        return wrapped(int(self.shown(draft[self.number])))

    def read_many(self, many: Many) -> None:
        """Take the values of many records from their numbers."""
        numbers = many.known[self.number]
        if self.signed and self.number.nbits < 64:
            numbers = with_sign(numbers & (1 << self.number.nbits) - 1, self.number.nbits)
        many.known[self] = numbers

    def parse(self, form: JsonFields) -> Any:
        """Return the value."""
        return form.within(self.key, *self.range)


class Flag(Again):
    """Whether an earlier number is odd, as true or false; writing sets the number to 1 or 0."""

    def shown(self, number: int) -> bool:
        """Return whether a number is odd."""
        return bool(number & 1)

    def read_many(self, many: Many) -> None:
        """Tell of many records whether the number is odd."""
        numbers = many.known[self.number]
        many.keep_raw(numbers & -2 != 0)  # neither 0 nor 1
        many.known[self] = numbers & 1

    def number_to_write(self, value: Any) -> int:
        """Return 1 or 0."""
        return int(bool(value))

    def parse(self, form: JsonFields) -> Any:
        """Return the flag."""
        return form.flag(self.key)


class Check(Field):
    """A finding by a rule of the format, if a condition holds; it has no bytes."""

    exact = True

    def __init__(self, rule: int, condition: Any, value: Any = 0) -> None:
        super().__init__()
        self.rule = rule
        self.condition = expression(condition)
        self.shown = expression(value)

    def expressions(self) -> list[Expression]:
        """Return the condition and the value."""
        return [self.condition, self.shown]

    def read(self, cursor: Cursor, values: Values) -> None:
        """Report the finding at the start of the record or the part."""
        del values
        if self.condition.value(cursor.known):
            cursor.notes.append((self.rule, cursor.start, wrapped(self.shown.value(cursor.known))))

    def read_many(self, many: Many) -> None:
        """Report the finding of many records."""
        rows = np.flatnonzero(as_mask(self.condition.column(many), many.start.size))
        if rows.size:
            many.report(self.rule, rows, self.shown.column(many), many.start)
