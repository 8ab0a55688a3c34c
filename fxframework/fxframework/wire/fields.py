"""Fields: what a record is made of. Each class reads, writes and shows its kind of field.

The functions with small names (``bits``, ``u32``, ``text``, …) are what declarations use. A class
has for its kind of field:

- ``read``: of one record, with a ``Cursor``: the value goes to ``values`` by name, the number to
  ``cursor.known`` by field, findings to ``cursor.note``. A record that it does not fit into is a
  ShortError.
- ``read_many``: of many records at once, with a ``Many``: columns go to ``many.known`` by field.
  Both find the same.
- ``put`` and ``written``: bytes and number in a record that is written, with a ``Draft``. A value
  that the field cannot hold is a RefusalError.
- ``show`` and ``parse``: the value in record JSON.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from fxframework.errors import PluginError
from fxframework.io.words import U64_MAX
from fxframework.io.words import Bits as WordBits
from fxframework.kit.json_fields import JsonFields, show_text
from fxframework.wire.cursor import (
    AT,
    SIZE,
    Cursor,
    Draft,
    RefusalError,
    ShortError,
    limits_of,
    mirror,
    order_of,
)
from fxframework.wire.expressions import (
    Checksum,
    Constant,
    Expression,
    Register,
    expression_or_none,
    leaves_of,
    wrapped,
)
from fxframework.wire.known import WORD, WORD_AT, as_mask, with_sign
from fxframework.wire.rules import (
    DOES_NOT_FIT,
    NO_SUCH_NAME,
    NO_SUCH_TEXT,
    NOT_DECLARED,
    RESERVED,
    UNDEFINED_VALUE,
    WRONG_FIELDS,
    WRONG_TYPE,
)
from fxframework.wire.state import State, TextTable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fxframework.wire.many import Many
else:
    from fxframework.kit.lazy import numpy as np

Values = dict[str, Any]
Refs = dict[str, int] | None


def refusal_of_range(name: str, value: Any, least: int, most: int) -> RefusalError:
    """Return the refusal of a number that its field cannot hold."""
    return RefusalError(DOES_NOT_FIT, f"{name} is {value!r}, but its field holds {least} to {most}")


class Field(Expression):
    """A field of a record. ``name`` is that of the attribute; ``_names`` are not shown."""

    json_suffix = ""
    """What follows the name in its key of record JSON."""
    is_computed = False
    """Whether it is shown, and not in the file."""
    exact = False
    """Whether its value is written as the bytes that were read, unless ``read`` says otherwise
    (``Cursor.differs``). Records with other fields are written once they are read, to see."""
    packs: Any = None
    """Of a field of a format's own: returns the bytes of many values of record JSON as a
    ``json_columns.Column``, given these, whether big-endian, and a mask to mark those that it does
    not take in. A text stands for a number in a table, and has no bytes."""
    part_in_word: Any = None
    """Of a field of a format's own that the first word of a record measures: returns the
    ``framing.ItemPart``, given the places of numbers, the bytes since the last part, and whether
    the record is long enough for more than its shortest form."""

    def __init__(
        self,
        *,
        when: Any = None,
        tail: bool = False,
        doc: str = "",
        default: Any = attrs.NOTHING,
        rules: Mapping[int, int] | None = None,
        **unknown: Any,
    ) -> None:
        if unknown:
            field_kind = type(self).__name__.lower()
            raise PluginError(
                f"a field of kind {field_kind} has no option {min(unknown)!r}",
                remedy="docs/reference/wire.md lists the options of each kind",
            )
        self.name = ""
        self.owner = ""
        self.rules = dict(rules or {})
        """The format's own rules, by the numbers of the common ones that they replace; 0: none."""
        self.when = expression_or_none(when)
        self.tail = tail
        self.doc = doc
        self.default = default
        """What it is if it is left out of JSON or of a record that is made; None: it must not."""
        self.role = ""
        """``kind`` and ``size`` are roles; the number of a kind, or the size, is written there."""
        self.index: Expression | None = None
        """The number that says which entry of a table it is, if it is a reference."""

    @functools.cached_property
    def public(self) -> bool:
        """Whether it is an attribute of the record; asked once it has its name."""
        return not self.name.startswith("_")

    @functools.cached_property
    def key(self) -> str:
        """Its key in record JSON; asked once it has its name."""
        return self.name + self.json_suffix

    @property
    def label(self) -> str:
        """Its name in `fxf explain`."""
        return self.name.lstrip("_")

    @functools.cached_property
    def by_room(self) -> bool:
        """Whether it is there only if there is room for it, so that its value says so."""
        return any(leaf is SIZE or leaf is AT for leaf in leaves_of(self.when))

    @functools.cached_property
    def uses_place(self) -> bool:
        """Whether it depends on its place in the record."""
        return any(leaf is AT for condition in self.conditions() for leaf in condition.leaves())

    def conditions(self) -> list[Expression]:
        """Return the expressions that it depends on, with what limits its value."""
        return self.expressions()

    @property
    def changes_state(self) -> bool:
        """Whether later records depend on it."""
        return False

    def least(self) -> int:
        """Return the fewest bytes that it takes."""
        return 0

    def expressions(self) -> list[Expression]:
        """Return the expressions that it depends on."""
        return [term for term in (self.when, self.index) if term is not None]

    def refused(self, number: int, message: str) -> RefusalError:
        """Return the refusal of a value, by the rule of this number or the field's own."""
        return RefusalError(self.rules.get(number, number), message)

    def uneven(self, size: int) -> RefusalError:
        """Return the refusal of a value that is as long as no number says."""
        return RefusalError(DOES_NOT_FIT, f"{self.name} has {size}, which its length cannot hold")

    def key_of(self, value: Any) -> Any:
        """Return what values of the field are compared by."""
        return value

    def read(self, cursor: Cursor, values: Values) -> None:
        """Read it. Raises ShortError if the record is too short for it."""
        raise NotImplementedError

    def by_own_rule(self, problem: ShortError) -> ShortError:
        """Return that it does not fit, by its own rule if it has one."""
        number = self.rules.get(problem.number)
        if number is None:
            return problem
        return ShortError(number, problem.needed)

    def read_many(self, many: Many) -> None:
        """Read it of many records; those that it does not fit into are lost (``Many.lose``).

        By default all of them are left to ``read``.
        """
        many.hand_over(True)

    def put(self, draft: Draft) -> bytes:  # noqa: ARG002 (the signature of all)
        """Return its bytes in a record that is written; of the first bits, those of the word.

        Raises RefusalError for a value that the field cannot hold.
        """
        return b""

    def written(self, draft: Draft) -> int:
        """Return its number in a record that is written. Raises RefusalError for another value."""
        raise NotImplementedError

    def length_written(self, draft: Draft) -> int:
        """Return how long its value is, which a number says."""
        return len(getattr(draft.record, self.name))

    def index_written(self, draft: Draft) -> int:
        """Return the number that a reference is written as. Raises RefusalError for none."""
        raise NotImplementedError

    def missing(self) -> RefusalError:
        """Return the refusal of a record without it, whose other fields say that it has one."""
        return RefusalError(
            WRONG_FIELDS, f"{self.name} is missing, which is there when {self.when!r}"
        )

    def unwanted(self) -> RefusalError:
        """Return the refusal of a value, where other fields say that there is none."""
        return RefusalError(
            DOES_NOT_FIT, f"{self.name} is given, but it is there only when {self.when!r}",
            f"leave {self.name} out, or make the condition true",
        )  # fmt: skip

    def show(self, value: Any, out: dict[str, Any]) -> None:
        """Put its value into record JSON."""
        out[self.key] = value

    def show_of(self, made: Any, out: dict[str, Any]) -> None:
        """Put the value that a record has into its JSON."""
        self.show(getattr(made, self.name), out)

    def parse(self, form: JsonFields) -> Any:
        """Return its value, from record JSON."""
        raise NotImplementedError

    def parse_of(self, form: JsonFields, values: Values) -> None:
        """Put its value, from record JSON, beside those of the fields before it."""
        values[self.name] = self.parse(form)

    def value(self, known: Mapping[Any, int]) -> int:
        """Return its number, once it is read."""
        return known[self]

    def __repr__(self) -> str:
        if self.owner:
            return f"{self.owner}.{self.name}"
        return self.name or type(self).__name__


class Limited(Field):
    """A number that has a unit, and that may have limits."""

    def __init__(
        self, *, unit: str = "", least: Any = None, most: Any = None, **common: Any
    ) -> None:
        super().__init__(**common)
        self.unit = unit
        if least is not None and most is not None and least > most:
            raise PluginError(
                f"least is {least}, and most only {most}", remedy="exchange the two limits"
            )
        self.at_least = least
        self.at_most = most
        self.limits: list[tuple[Expression, int]] = []
        """Conditions on a sound value, with the numbers of the rules for others."""

    def conditions(self) -> list[Expression]:
        """Return the expressions that it depends on, with those of its limits."""
        return [*self.expressions(), *(holds for holds, _ in self.limits)]

    def check_limits(self, cursor: Cursor) -> None:
        """Report a value that is not within the limits."""
        for holds, rule in self.limits:
            if not holds.value(cursor.known):
                cursor.note(rule, cursor.known[self], None, self)

    def check_limits_of_many(self, many: Many) -> None:
        """Report the values of many records that are not within the limits."""
        for holds, rule in self.limits:
            many.note(rule, many.fails(holds), many.known[self], None, self)


class Number(Limited):
    """A number: of bits or of bytes."""

    exact = True

    def __init__(
        self,
        nbits: int,
        *,
        signed: bool = False,
        values: Mapping[int, str] | None = None,
        closed: bool = False,
        refers: TextTable | None = None,
        equals: Any = None,
        below: Any = None,
        sets: Register | None = None,
        adds: Register | None = None,
        **common: Any,
    ) -> None:
        super().__init__(**common)
        self.nbits = nbits
        self.signed = signed
        self.values = dict(values or {})
        self.closed = closed
        self.refers = refers
        self.equals = expression_or_none(equals)
        self.below = expression_or_none(below)
        declared_numbers = list(self.values)
        if isinstance(self.equals, Constant):
            declared_numbers.append(self.equals.number)
        least, most = self.range
        for number in declared_numbers:
            if not least <= number <= most:
                raise PluginError(
                    f"{number} is not a number of the field, which holds {least} to {most}",
                    remedy="correct the number, or give the field more bits",
                )
        self._add_limits()
        self.sets = sets
        self.adds = adds
        self.flag = False
        self.size_unit = 1
        self.size_plus = 0
        self.size_power = False

    def _add_limits(self) -> None:
        """Make conditions of ``least``, ``most`` and ``below``."""
        # Expressions have 64 bits with a sign: numbers of u64 from 2^63 on are negative in them.
        # They are above every lower limit, and beyond every upper one.
        is_wrapped = self.nbits == 64 and not self.signed
        least, most = self.range
        low = least if self.at_least is None else self.at_least
        high = most if self.at_most is None else self.at_most
        if self.at_most is not None:
            self.limits.append(((self >= low) & (self <= high), UNDEFINED_VALUE))
        elif self.at_least is not None and is_wrapped:
            self.limits.append(((self >= low) | (self < 0), UNDEFINED_VALUE))
        elif self.at_least is not None:
            self.limits.append(((self >= low) & (self <= high), UNDEFINED_VALUE))
        if self.below is not None:
            is_below = self < self.below
            if is_wrapped:
                is_below = is_below & (self >= 0)
            # A limit that is a register is the count of what was declared so far.
            number_of_rule = NOT_DECLARED
            if isinstance(self.below, Constant):
                number_of_rule = UNDEFINED_VALUE
            self.limits.append((is_below, number_of_rule))

    @property
    def changes_state(self) -> bool:
        """Whether it sets a register."""
        return self.sets is not None or self.adds is not None

    @functools.cached_property
    def range(self) -> tuple[int, int]:
        """The least and the greatest number."""
        return limits_of(self.nbits, self.signed)

    def expressions(self) -> list[Expression]:
        """Return the expressions that it depends on."""
        terms = super().expressions()
        return terms + [term for term in (self.equals, self.below) if term is not None]

    @functools.cached_property
    def names_of(self) -> dict[str, int]:
        """Numbers by name, of an enumeration."""
        return {name: number for number, name in reversed(self.values.items())}

    @functools.cached_property
    def is_ambiguous(self) -> bool:
        """Whether several numbers of an enumeration have one name."""
        return len(self.names_of) < len(self.values)

    @functools.cached_property
    def numbers_with_names(self) -> NDArray[np.int64]:
        """The numbers of an enumeration, as columns have them."""
        return np.array(list(map(wrapped, self.values)), np.int64)

    @functools.cached_property
    def range_with_names(self) -> tuple[int, int] | None:
        """The lowest and the highest of these numbers; None if one between them has no name."""
        named = self.numbers_with_names
        lowest, highest = int(named.min()), int(named.max())
        return (lowest, highest) if highest - lowest < named.size else None

    def without_name(self, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which numbers of a column are none of an enumeration."""
        if self.range_with_names is None:
            return np.isin(numbers, self.numbers_with_names, invert=True)
        lowest, highest = self.range_with_names
        is_below: NDArray[np.bool_] = numbers < lowest
        return is_below | (numbers > highest)

    @functools.cached_property
    def checksums(self) -> list[Checksum]:
        """The checksums in ``equals``."""
        return [leaf for leaf in leaves_of(self.equals) if isinstance(leaf, Checksum)]

    def take(self, cursor: Cursor) -> int:
        """Read the number."""
        raise NotImplementedError

    def read(self, cursor: Cursor, values: Values) -> None:
        """Read the number, check it, and change what it changes."""
        begin = cursor.at
        known = cursor.known
        number = self.take(cursor)
        known[self] = number
        for checksum in self.checksums:
            known[checksum] = checksum.of(cursor.data[cursor.start : begin])
        if self.checks:
            offset = cursor.word_at if self in cursor.layout.word_of else begin
            for check in self.checks:
                check(cursor, offset, number)
        value: Any = number
        if self.values:
            value = self.values.get(number, number)
        elif self.flag:
            value = bool(number)
        elif self.refers is not None:
            value = cursor.text(self.refers, number, None)
            cursor.refs[self.name] = number
        # Registers change once the whole record is read (``Cursor.sets``); they have 64 bits.
        if self.sets is not None:
            cursor.sets[self.sets] = wrapped(number)
        if self.adds is not None:
            cursor.sets[self.adds] = wrapped(known[self.adds] + number)
        if self.public:
            values[self.name] = value
        if cursor.views is not None:
            meaning = str(value) if value is not number else self.unit
            self.view(cursor, begin, number, meaning)

    @functools.cached_property
    def checks(self) -> list[Callable[[Cursor, int, int], None]]:
        """What checks a number, given its place: only what the declaration asks for."""
        checks = (
            (self._check_closed, self.closed),
            (self._check_equal, self.equals is not None),
            (self._check_named, bool(self.values)),
            (self._check_flag, self.flag and self.nbits > 1),
            (self._check_constant, not self.public),
            (self._check_limits, bool(self.limits)),
        )
        return [check for check, is_needed in checks if is_needed]

    def _check_closed(self, cursor: Cursor, offset: int, number: int) -> None:
        del cursor, offset
        if number not in self.values:
            raise ShortError

    def _check_equal(self, cursor: Cursor, offset: int, number: int) -> None:
        del number
        # Those that follow from fields behind them are checked after all fields (``wire.one``).
        if self not in cursor.layout.measured:
            cursor.known[AT] = offset - cursor.start
            self.check(cursor)

    def _check_named(self, cursor: Cursor, offset: int, number: int) -> None:
        del offset
        if number not in self.values:
            cursor.note(UNDEFINED_VALUE, number, None, self)
        elif self.is_ambiguous and self.names_of[self.values[number]] != number:
            cursor.differs = True

    def _check_flag(self, cursor: Cursor, offset: int, number: int) -> None:
        del offset
        # Any number but 0 is shown as true, which is written as 1.
        cursor.differs |= number > 1

    def _check_constant(self, cursor: Cursor, offset: int, number: int) -> None:
        constants = cursor.layout.constants
        if self in constants and number != constants[self]:
            cursor.differs = True
            if self in cursor.layout.reserved_fields:
                cursor.note(RESERVED, number & (1 << self.nbits) - 1, offset, self)

    def _check_limits(self, cursor: Cursor, offset: int, number: int) -> None:
        del offset, number
        self.check_limits(cursor)

    def take_many(self, many: Many) -> NDArray[np.int64]:
        """Read the numbers of many records."""
        raise NotImplementedError

    def read_many(self, many: Many) -> None:
        """Read the numbers and check them; what they set, a plan (``wire.plans``) says."""
        # Most fields need no place, and to find it costs a pass over all records.
        begin = many.at() if self.checksums or self.uses_place else None
        numbers = self.take_many(many)
        many.known[self] = numbers
        for checksum in self.checksums:
            assert begin is not None  # noqa: S101 (set above)
            many.known[checksum] = many.checksums(checksum.of, begin)
        if self.closed:
            many.lose(self.without_name(numbers))
        if self.equals is not None and self not in many.layout.measured:
            if begin is not None:
                first_bits = many.layout.word_of.get(self)
                place = begin if first_bits is None else many.known[first_bits, WORD_AT]
                many.known[AT] = place - many.start
            self.check_many(many)
        if self.values and not self.closed:
            many.note(UNDEFINED_VALUE, self.without_name(numbers), numbers, None, self)
        if self in many.layout.reserved_fields:
            rows_set = np.flatnonzero(numbers)
            if rows_set.size:
                bits = numbers
                if self.nbits < 64:
                    bits = numbers & (1 << self.nbits) - 1
                offsets = self.place_of_many(many)
                many.note(RESERVED, rows_set, bits, offsets, self)
        if self.limits:
            self.check_limits_of_many(many)
        if self.refers is not None:
            many.refer(self, self.refers, numbers, unsigned=not self.signed)

    def place_of_many(self, many: Many) -> NDArray[np.int64]:
        """Return the places of numbers that were just read."""
        return many.at() - self.nbits // 8

    def check_many(self, many: Many) -> None:
        """Report the numbers of many records that are not what they must be equal to."""
        assert self.equals is not None  # noqa: S101 (asked only then)
        numbers = many.known[self]
        wrong = as_mask(self.equals.column(many) != numbers, numbers.size)
        many.keep_raw(wrong)
        many.note(UNDEFINED_VALUE, wrong, numbers, None, self)

    def check(self, cursor: Cursor) -> None:
        """Report a number that is not what it must be equal to."""
        assert self.equals is not None  # noqa: S101 (asked only then)
        # Expressions have a sign, and the number may have none: they are equal if all bits are.
        if (self.equals.value(cursor.known) - cursor.known[self]) & U64_MAX:
            cursor.note(UNDEFINED_VALUE, cursor.known[self], None, self)

    def view(self, cursor: Cursor, at: int, number: int, meaning: str) -> None:
        """Show the number for `fxf explain`."""
        cursor.stretch(self.label, at, self.explained(f"{number} {meaning}".rstrip()))

    def explained(self, meaning: str) -> str:
        """Return what a number means, and what the field is for."""
        return ": ".join(filter(None, (meaning, self.doc)))

    def given(self, value: Any) -> int:
        """Return the number of a value. Raises RefusalError for one without."""
        if isinstance(value, str) and self.values:
            return self.numbered(value)
        try:
            return operator.index(value)
        except TypeError:
            message = f"{self.name} must be an integer, not {value!r}"
            raise RefusalError(WRONG_TYPE, message) from None

    def numbered(self, value: Any) -> int:
        """Return the number of a value of an enumeration: its name, or the number itself."""
        if not isinstance(value, str):
            return int(value)
        if value not in self.names_of:
            raise RefusalError(NO_SUCH_NAME, f"{self.name} has no value {value!r}")
        return self.names_of[value]

    def written(self, draft: Draft) -> int:
        """Return its number in a record that is written: it follows from others, or is given."""
        number = self._number_in(draft)
        least, most = self.range
        if not least <= number <= most:
            if self.is_late:
                raise self.too_much(number)
            raise self.beyond(number)
        return number

    def _number_in(self, draft: Draft) -> int:
        """Return its number, which may not fit: the first of these ways that the field has."""
        layout = draft.layout
        record = draft.record
        number: int
        if self.role == "size" and not self.size_power:
            number = layout.family.units_of(draft[SIZE], layout.most)
        elif self.role == "size" and getattr(record, self.name) is None:
            number = layout.family.smallest_power(draft[SIZE])
        elif self.equals is not None:
            if self.uses_place:
                draft[AT] = draft.places[layout.word_of.get(self, self)]
            number = self.equals.value(draft)
            if self.nbits == 64 and not self.signed:
                number &= U64_MAX  # expressions have a sign
        elif self in layout.implied:
            number = draft.implied(self, layout.implied[self])
        elif self.refers is not None:
            text = getattr(record, self.name)
            number = index_of(self.refers, text, self.name, draft.state, record.refs)
        else:
            value = getattr(record, self.name)
            if self.values:
                value = self.names_of.get(value, value)
            number = value if type(value) is int else self.given(value)
        return number

    @functools.cached_property
    def is_late(self) -> bool:
        """Whether its number follows from the rest of the record."""
        return any(leaf is SIZE or isinstance(leaf, Checksum) for leaf in leaves_of(self.equals))

    def agreed(self, claims: Iterable[tuple[int | None, str]]) -> int:
        """Return the number that several fields imply; 0 if none does.

        ``claims`` has the number that each field implies, or None, and the field's name. Raises
        RefusalError if they differ.
        """
        implied = [(number, name) for number, name in claims if number is not None]
        if len({number for number, _ in implied}) > 1:
            names = " and ".join(name for _, name in implied)
            raise RefusalError(DOES_NOT_FIT, f"{names} must be equally long")
        if implied:
            return implied[0][0]
        return 0

    def beyond(self, number: int) -> RefusalError:
        """Return the refusal of a number that does not fit."""
        problem = refusal_of_range(self.name.lstrip("_"), number, *self.range)
        return self.refused(DOES_NOT_FIT, problem.message)

    def too_much(self, number: int) -> RefusalError:
        """Return the refusal of a number that follows from the rest of the record."""
        name = self.name.lstrip("_")
        return self.refused(DOES_NOT_FIT, f"{name} would be {number}; at most {self.range[1]} fits")

    def parse(self, form: JsonFields) -> Any:
        """Return the number, name, text or flag."""
        if self.flag:
            return form.flag(self.key)
        if self.refers is not None:
            return form.text(self.key)
        if self.closed:
            if form.need(self.key) not in self.values.values():
                raise form.wrong(self.key, f"one of {', '.join(self.values.values())}")
            return form.given[self.key]
        if self.values:
            return form.one_of(self.key, self.names_of, self.range[1])
        return form.within(self.key, *self.range)

    def show(self, value: Any, out: dict[str, Any]) -> None:
        """Put the number, or what it stands for, into record JSON."""
        if self.refers is not None:
            show_text(out, self.key, value)
        else:
            out[self.key] = value


def index_of(table: TextTable, text: Any, name: str, state: State | None, refs: Refs) -> int:
    """Return the number by which a text is referred to. Raises RefusalError if there is none.

    ``refs`` has the numbers, by name of the field, that were read; one is written again as long as
    it still stands for the text.
    """
    if not isinstance(text, str):
        raise RefusalError(WRONG_TYPE, f"{name} must be a string, not {text!r}")
    index_read = (refs or {}).get(name)
    if state is None:
        if index_read is not None:
            return int(index_read)
        index = None
    else:
        if index_read is not None:
            text_read = state.text(table, index_read)
            if text_read is None:
                text_read = table.unknown(index_read)
            if text == text_read:
                return int(index_read)
        index = state.index(table, text)
    if index is None:
        # A text that stands for a number that nothing declared, as ``table.unknown`` made it.
        index = table.index_in(text)
    if index is None:
        raise RefusalError(NO_SUCH_TEXT, f"{name}: no record before this one declares {text!r}")
    return index


class Bits(Number):
    """Bits ``low`` to ``high`` of a word, bit 0 least significant. See ``bits``."""

    def __init__(
        self,
        low: int,
        high: int,
        of: int | None,
        *,
        label: str = "",
        meanings: Mapping[int, str] | None = None,
        **options: Any,
    ) -> None:
        if not 0 <= low <= high < 64:
            raise PluginError(f"bits {low} to {high} are not in a word of 64 bits")
        super().__init__(high - low + 1, **options)
        self.low = low
        self.high = high
        self.of = of
        self._label = label
        self.meanings = meanings or self.values

    @property
    def label(self) -> str:
        """Its name in `fxf explain`."""
        return self._label or super().label

    @property
    def word_bits(self) -> WordBits:
        """The field for code that takes words apart, compiled kernels among it."""
        return WordBits(self.label, self.low, self.high, self.doc, values=self.meanings)

    @property
    def mask(self) -> int:
        """The mask of the field in the word."""
        return (1 << self.nbits) - 1 << self.low

    def shift(self, nbytes: int, mirrored: bool) -> int:
        """Return how many bits of a word are below the field."""
        if mirrored:
            return 8 * nbytes - 1 - self.high
        return self.low

    def take(self, cursor: Cursor) -> int:
        """Read the bits."""
        if self in cursor.layout.words:
            cursor.open_word(*cursor.layout.words[self])
        low = self.shift(cursor.word_nbytes, True) if cursor.mirrored else self.low
        number = cursor.word >> low & (1 << self.nbits) - 1
        if self.signed and number >> self.nbits - 1:
            number -= 1 << self.nbits
        return number

    def put(self, draft: Draft) -> bytes:
        """Return the word that the bits begin, with the other bits in it."""
        nbytes: int = draft.layout.words[self][0]
        word = 0
        for field in draft.layout.bits_of[self]:
            number = draft[field] & (1 << field.nbits) - 1
            word |= number << field.shift(nbytes, draft.mirrored)
        return word.to_bytes(nbytes, order_of(draft.big))

    def take_many(self, many: Many) -> NDArray[np.int64]:
        """Read the bits of many records, from the word that their first bits read."""
        first_bits = many.layout.word_of[self]
        if self in many.layout.words:
            nbytes, reserved = many.layout.words[self]
            places = many.take(nbytes)
            many.known[self, WORD_AT] = places
            many.known[self, WORD] = many.load(places, nbytes)
            self._check_reserved(many, many.known[self, WORD], nbytes, reserved)
        word: NDArray[np.int64] = many.known[first_bits, WORD]
        if self.nbits == 64:
            return word
        shift = self.shift(many.layout.words[first_bits][0], many.reading.mirrored)
        mask = (1 << self.nbits) - 1
        numbers: NDArray[np.int64]
        if shift:
            numbers = word >> shift
            numbers &= mask  # in place: another array costs as much as the operation
        else:
            numbers = word & mask
        if self.signed:
            numbers = with_sign(numbers, self.nbits)
        return numbers

    def _check_reserved(
        self, many: Many, word: NDArray[np.int64], nbytes: int, reserved: int
    ) -> None:
        """Report bits of words that no field names and that are set."""
        if not reserved:
            return
        if many.reading.mirrored:
            reserved = mirror(reserved, nbytes)
        stray_bits = word & wrapped(reserved)
        rows_set = np.flatnonzero(stray_bits)
        if rows_set.size:
            many.note(RESERVED, rows_set, stray_bits, many.known[self, WORD_AT])

    def place_of_many(self, many: Many) -> NDArray[np.int64]:
        """Return the places of the words that the bits are in."""
        first_bits = many.layout.word_of[self]
        places: NDArray[np.int64] = many.known[first_bits, WORD_AT]
        return places

    def view(self, cursor: Cursor, at: int, number: int, meaning: str) -> None:
        """Show the bits for `fxf explain`."""
        del at
        value = number & (1 << self.nbits) - 1
        low = self.shift(cursor.word_nbytes, cursor.mirrored)
        high = low + self.nbits - 1
        if not self.values:
            meaning = self.meanings.get(value, meaning)
        cursor.bits(self.label, low, high, value, self.explained(meaning))


class Integer(Number):
    """An integer of 1 to 8 bytes, in the byte order of the stretch."""

    def __init__(self, nbytes: int, **options: Any) -> None:
        super().__init__(8 * nbytes, **options)
        self.nbytes = nbytes

    def least(self) -> int:
        """Return its size."""
        if self.when is not None:
            return 0
        return self.nbytes

    def take(self, cursor: Cursor) -> int:
        """Read the integer."""
        begin = cursor.at
        end = begin + self.nbytes
        if end > cursor.limit:
            raise cursor.short(self.nbytes)
        cursor.at = end
        return int.from_bytes(cursor.data[begin:end], order_of(cursor.big), signed=self.signed)

    def put(self, draft: Draft) -> bytes:
        """Return its bytes."""
        return draft[self].to_bytes(self.nbytes, order_of(draft.big), signed=self.signed)

    def take_many(self, many: Many) -> NDArray[np.int64]:
        """Read the integers of many records."""
        return many.integer(self.nbytes, signed=self.signed)


class Mark(Integer):
    """A constant that tells the byte order of its record, and of all after it.

    The framing needs the order before fields are read, and finds it by itself (``wire.framing``).
    """

    def __init__(self, number: int, nbytes: int) -> None:
        super().__init__(nbytes)
        self.number = number
        self.names = {0: "little", 1: "big"}

    def read(self, cursor: Cursor, values: Values) -> None:
        """Read the mark, in the order that the framing found."""
        begin = cursor.at
        cursor.known[self] = self.take(cursor)
        if cursor.known[self] != self.number:
            raise ShortError
        values[self.name] = self.names[int(cursor.big)]
        cursor.stretch(self.name, begin, values[self.name])

    def read_many(self, many: Many) -> None:
        """Read the marks of many records, in the order that the framing found."""
        many.known[self] = self.take_many(many)
        many.lose(many.known[self] != wrapped(self.number))

    def parse(self, form: JsonFields) -> Any:
        """Return the name of the order."""
        name = form.text(self.key)
        if name not in self.names.values():
            raise form.wrong(self.key, "little or big")
        return name
