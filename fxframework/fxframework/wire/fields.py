"""Fields: what a record is made of. Each class reads, writes and shows its kind of field.

The functions with small names (``bits``, ``u32``, ``text``, …) are what declarations use. A class
reads its kind of field of one record (``read``, with a ``Cursor``), and of many at once
(``read_many``, with a ``Many``); both find the same.
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
from fxframework.kit.json_fields import (
    JsonFields,
    show_text,
)
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
    Evaluator,
    Expression,
    Register,
    expression,
    wrapped,
)
from fxframework.wire.known import WORD, WORD_AT, as_mask
from fxframework.wire.state import State, TextTable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fxframework.wire.many import Many
else:
    from fxframework.kit.lazy import numpy as np

__all__ = ["Bits", "Field", "Integer", "Limited", "Mark", "Number", "index_of"]

Values = dict[str, Any]
Reader = Callable[[Cursor, Values], None]
"""Reads a field, or several, and puts their values by name."""
Refs = dict[str, int] | None
DENSE = 4096
"""Numbers below it are looked up in a table."""


def refusal_of_range(name: str, value: Any, least: int, most: int) -> RefusalError:
    """Return the refusal of a number that its field cannot hold."""
    return RefusalError(404, f"{name} is {value!r}, but its field holds {least} to {most}")


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
            kind = type(self).__name__.lower()
            raise PluginError(
                f"a field of kind {kind} has no option {min(unknown)!r}",
                remedy="docs/reference/wire.md lists the options of each kind",
            )
        self.name = ""
        self.owner = ""
        self.rules = dict(rules or {})
        """The format's own rules, by the numbers of those that they take the place of; 0: none."""
        self.when = None if when is None else expression(when)
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
        leaves = () if self.when is None else self.when.leaves()
        return any(leaf is SIZE or leaf is AT for leaf in leaves)

    @functools.cached_property
    def uses_place(self) -> bool:
        """Whether it depends on its place in the record."""
        return any(leaf is AT for each in self.conditions() for leaf in each.leaves())

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
        return [each for each in (self.when, self.index) if each is not None]

    def refused(self, number: int, message: str) -> RefusalError:
        """Return the refusal of a value, by the rule of this number or the field's own."""
        return RefusalError(self.rules.get(number, number), message)

    def uneven(self, size: int) -> RefusalError:
        """Return the refusal of a value that is as long as no number says."""
        return RefusalError(404, f"{self.name} has {size}, which its length cannot hold")

    def key_of(self, value: Any) -> Any:
        """Return what values of the field are compared by."""
        return value

    def read(self, c: Cursor, values: Values) -> None:
        """Read it. Raises ShortError if the record is too short for it."""
        raise NotImplementedError

    def reader(self, layout: Any, reader_of: Callable[[Field], Reader]) -> Reader:  # noqa: ARG002
        """Return what reads it, given what returns that for a field within it."""
        return self.read

    def read_many(self, c: Many) -> None:
        """Read it of many records; those that it does not fit into are lost (``Many.lose``).

        By default all of them are left to ``read``.
        """
        c.hand_over(True)

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
        return len(getattr(draft.made, self.name))

    def index_written(self, draft: Draft) -> int:
        """Return the number that a reference is written as. Raises RefusalError for none."""
        raise NotImplementedError

    def missing(self) -> RefusalError:
        """Return the refusal of a record without it, whose other fields say that it has one."""
        return RefusalError(402, f"{self.name} is missing, which is there when {self.when!r}")

    def unwanted(self) -> RefusalError:
        """Return the refusal of a value, where other fields say that there is none."""
        return RefusalError(
            404, f"{self.name} is given, but it is there only when {self.when!r}",
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

    @functools.cached_property
    def evaluate(self) -> Evaluator:
        """Returns its number likewise."""
        return operator.itemgetter(self)

    def __repr__(self) -> str:
        return f"{self.owner}.{self.name}" if self.owner else self.name or type(self).__name__


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

    def check_limits(self, c: Cursor) -> None:
        """Report a value that is not within the limits."""
        for holds, rule in self.limits:
            if not holds.evaluate(c.known):
                c.note(rule, c.known[self], None, self)

    def check_limits_of_many(self, c: Many) -> None:
        """Report the values of many records that are not within the limits."""
        for holds, rule in self.limits:
            c.note(rule, c.fails(holds), c.known[self], None, self)


class Membership:
    """Whether numbers are among some, asked of columns."""

    def __init__(self, numbers: Iterable[int]) -> None:
        self.numbers = np.array(sorted(map(wrapped, numbers)), np.int64)
        dense = self.numbers.size and self.numbers[0] >= 0 and self.numbers[-1] < DENSE
        self.table = np.zeros(int(self.numbers[-1]) + 2, bool) if dense else None
        if self.table is not None:
            self.table[self.numbers] = True

    def missing(self, column: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which numbers of a column are not among them."""
        if self.table is None:
            return np.isin(column, self.numbers, invert=True)
        # The last element of the table stands for all numbers beyond it; negative ones are large
        # without a sign.
        beyond = np.uint64(self.table.size - 1)
        return ~self.table.take(np.minimum(column.view(np.uint64), beyond).view(np.int64))


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
        self.equals = None if equals is None else expression(equals)
        self.below = None if below is None else expression(below)
        fixed = [self.equals.number] if isinstance(self.equals, Constant) else []
        for number in (*self.values, *fixed):
            if not self.range[0] <= number <= self.range[1]:
                raise PluginError(
                    f"{number} is not a number of the field, which holds {self.range[0]} to "
                    f"{self.range[1]}",
                    remedy="correct the number, or give the field more bits",
                )
        least, most = self.at_least, self.at_most
        wide = nbits == 64 and not signed  # half of them are below 0 in expressions
        if least is not None and most is None and wide:
            self.limits.append(((self >= least) | (self < 0), 106))
        elif least is not None or most is not None:
            low = (0 if wide else limits_of(nbits, signed)[0]) if least is None else least
            high = limits_of(nbits, signed)[1] if most is None else most
            self.limits.append(((self >= low) & (self <= high), 106))
        if self.below is not None:
            holds = (self < self.below) & (self >= 0) if wide else self < self.below
            self.limits.append((holds, 106 if isinstance(self.below, Constant) else 108))
        self.sets = sets
        self.adds = adds
        self.flag = False
        self.size_unit, self.size_plus, self.size_power = 1, 0, False

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
        more = [each for each in (self.equals, self.below) if each is not None]
        return [*super().expressions(), *more]

    @functools.cached_property
    def names_of(self) -> dict[str, int]:
        """Numbers by name, of an enumeration."""
        return {name: number for number, name in reversed(self.values.items())}

    @functools.cached_property
    def is_ambiguous(self) -> bool:
        """Whether several numbers of an enumeration have one name."""
        return len(self.names_of) < len(self.values)

    @functools.cached_property
    def membership(self) -> Membership:
        """The numbers of an enumeration, to be looked up in columns."""
        return Membership(self.values)

    @functools.cached_property
    def checksums(self) -> list[Checksum]:
        """The checksums in ``equals``."""
        leaves = () if self.equals is None else self.equals.leaves()
        return [leaf for leaf in leaves if isinstance(leaf, Checksum)]

    def take(self, c: Cursor) -> int:
        """Read the number."""
        raise NotImplementedError

    def read(self, c: Cursor, values: Values) -> None:
        """Read the number and check it."""
        begin = c.at
        number = self.take(c)
        c.known[self] = number
        for checksum in self.checksums:
            c.known[checksum] = checksum.of(c.data[c.start : begin])
        at = c.word_at if self in c.layout.word_of else begin
        shown = self.settle(c, at, number, values)
        if c.views is not None:
            meaning = str(shown) if shown is not number else self.unit
            self.view(c, begin, number, meaning)

    @functools.cached_property
    def is_simple(self) -> bool:
        """Whether all numbers, of an enumeration those with a name, are sound and change nothing.

        But for what they must be equal to.
        """
        does_more = self.refers, self.sets, self.adds
        many_flags = self.flag and self.nbits > 1
        return not (many_flags or self.limits or self.is_ambiguous) and all(
            each is None for each in does_more
        )

    @functools.cached_property
    def only_adds(self) -> bool:
        """Whether a sound number does nothing but to add to a register."""
        does_more = self.refers, self.sets, self.equals
        is_limited = self.flag or self.limits or self.values or not self.public
        adds = self.adds is not None and all(each is None for each in does_more)
        return adds and not is_limited

    def settle(self, c: Cursor, at: int, number: int, values: Values) -> Any:
        """Check a number that was read and let it change what it changes; return what it shows.

        It was read at byte ``at``; of bits, that is the place of their word.
        """
        shown: Any = number
        for check in self.checks:
            check(c, at, number)
        if self.values:
            shown = self.values.get(number, number)
        elif self.flag:
            shown = bool(number)
        elif self.refers is not None:
            shown = c.text(self.refers, number, None)
            c.refs[self.name] = number
        if self.sets is not None:
            c.sets[self.sets] = number if number < 1 << 63 else wrapped(number)
        if self.adds is not None:
            c.sets[self.adds] = wrapped(c.known[self.adds] + number)
        if self.public:
            values[self.name] = shown
        return shown

    @functools.cached_property
    def checks(self) -> list[Callable[[Cursor, int, int], None]]:
        """What checks a number, given its place."""
        checks = [
            self._check_closed if self.closed else None,
            self._check_equal if self.equals is not None else None,
            self._check_named if self.values else None,
            self._check_flag if self.flag and self.nbits > 1 else None,
            self._check_constant if not self.public else None,
            self._check_limits if self.limits else None,
        ]
        return [check for check in checks if check is not None]

    def _check_closed(self, c: Cursor, at: int, number: int) -> None:
        del c, at
        if number not in self.values:
            raise ShortError

    def _check_equal(self, c: Cursor, at: int, number: int) -> None:
        del number
        if self not in c.layout.measured:
            c.known[AT] = at - c.start
            self.check(c)

    def _check_named(self, c: Cursor, at: int, number: int) -> None:
        del at
        if number not in self.values:
            c.note(106, number, None, self)
        elif self.is_ambiguous and self.names_of[self.values[number]] != number:
            c.differs = True

    def _check_flag(self, c: Cursor, at: int, number: int) -> None:
        del at
        c.differs |= number > 1

    def _check_constant(self, c: Cursor, at: int, number: int) -> None:
        constants = c.layout.constants
        if self in constants and number != constants[self]:
            c.differs = True
            if self in c.layout.reserved_fields:
                c.note(105, number & (1 << self.nbits) - 1, at, self)

    def _check_limits(self, c: Cursor, at: int, number: int) -> None:
        del at, number
        self.check_limits(c)

    def take_many(self, c: Many) -> NDArray[np.int64]:
        """Read the numbers of many records."""
        raise NotImplementedError

    def read_many(self, c: Many) -> None:
        """Read the numbers and check them; what they set, a plan (``wire.plans``) says."""
        begin = c.at() if self.checksums or self.uses_place else None
        numbers = self.take_many(c)
        c.known[self] = numbers
        first = c.layout.word_of.get(self)
        for checksum in self.checksums:
            assert begin is not None  # noqa: S101 (set above)
            c.known[checksum] = c.checksums(checksum.of, begin)
        if self.closed:
            c.lose(self.membership.missing(numbers))
        if self.equals is not None and self not in c.layout.measured:
            if begin is not None:
                c.known[AT] = (begin if first is None else c.known[first, WORD_AT]) - c.start
            self.check_many(c)
        if self.values and not self.closed:
            c.note(106, self.membership.missing(numbers), numbers, None, self)
        if self in c.layout.reserved_fields:
            there = np.flatnonzero(numbers)
            if there.size:
                bits = numbers if self.nbits == 64 else numbers & (1 << self.nbits) - 1
                offsets = self.place_of_many(c)
                c.note(105, there, bits, offsets, self)
        if self.limits:
            self.check_limits_of_many(c)
        if self.refers is not None:
            c.refer(self, self.refers, numbers, unsigned=not self.signed)

    def place_of_many(self, c: Many) -> NDArray[np.int64]:
        """Return the places of numbers that were just read."""
        return c.at() - self.nbits // 8

    def check_many(self, c: Many) -> None:
        """Report the numbers of many records that are not what they must be equal to."""
        assert self.equals is not None  # noqa: S101 (asked only then)
        numbers = c.known[self]
        wrong = as_mask(self.equals.column(c) != numbers, numbers.size)
        c.keep_raw(wrong)
        c.note(106, wrong, numbers, None, self)

    def check(self, c: Cursor) -> None:
        """Report a number that is not what it must be equal to."""
        assert self.equals is not None  # noqa: S101 (asked only then)
        if (self.equals.evaluate(c.known) - c.known[self]) & U64_MAX:
            c.note(106, c.known[self], None, self)

    def view(self, c: Cursor, at: int, number: int, meaning: str) -> None:
        """Show the number for `fxf explain`."""
        c.stretch(self.label, at, self.explained(f"{number} {meaning}".rstrip()))

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
            raise RefusalError(403, message) from None

    def numbered(self, given: Any) -> int:
        """Return the number of a value of an enumeration, given by name or as a number."""
        if not isinstance(given, str):
            return int(given)
        if given not in self.names_of:
            raise RefusalError(401, f"{self.name} has no value {given!r}")
        return self.names_of[given]

    def written(self, draft: Draft) -> int:
        """Return its number in a record that is written: it follows from others, or is given."""
        layout, made = draft.layout, draft.made
        number: int
        if self.role == "size" and not self.size_power:
            number = layout.family.units_of(draft[SIZE], layout.most)
        elif self.role == "size" and getattr(made, self.name) is None:
            number = layout.family.smallest_power(draft[SIZE])
        elif self.equals is not None:
            if self.uses_place:
                draft[AT] = draft.places[layout.word_of.get(self, self)]
            number = self.equals.evaluate(draft)
            number = number & U64_MAX if self.nbits == 64 and not self.signed else number
        elif self in layout.implied:
            number = draft.implied(self, layout.implied[self])
        elif self.refers is not None:
            value = getattr(made, self.name)
            number = index_of(self.refers, value, self.name, draft.state, made.refs)
        else:
            value = getattr(made, self.name)
            number = self.names_of.get(value, value) if self.values else value
            number = number if type(number) is int else self.given(number)
        least, most = self.range
        if not least <= number <= most:
            raise self.too_much(number) if self.is_late else self.beyond(number)
        return number

    @functools.cached_property
    def is_late(self) -> bool:
        """Whether its number follows from the rest of the record."""
        leaves = () if self.equals is None else self.equals.leaves()
        return any(leaf is SIZE or isinstance(leaf, Checksum) for leaf in leaves)

    def agreed(self, found: Iterable[tuple[int | None, str]]) -> int:
        """Return the number that several fields imply, each by its name; None: it says nothing."""
        said = [(number, name) for number, name in found if number is not None]
        if len({number for number, _ in said}) > 1:
            names = " and ".join(name for _, name in said)
            raise RefusalError(404, f"{names} must be equally long")
        return said[0][0] if said else 0

    def beyond(self, number: int) -> RefusalError:
        """Return the refusal of a number that does not fit."""
        problem = refusal_of_range(self.name.lstrip("_"), number, *self.range)
        return self.refused(404, problem.message)

    def too_much(self, number: int) -> RefusalError:
        """Return the refusal of a number that follows from the rest of the record."""
        name, most = self.name.lstrip("_"), self.range[1]
        return self.refused(404, f"{name} would be {number}; at most {most} fits")

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

    That of ``refs``, if it still has the text.
    """
    if not isinstance(text, str):
        raise RefusalError(403, f"{name} must be a string, not {text!r}")
    given = (refs or {}).get(name)
    if given is not None and state is None:
        return int(given)
    if given is not None and state is not None:
        declared = state.text(table, given)
        if text == (table.unknown(given) if declared is None else declared):
            return int(given)
    index = None if state is None else state.index(table, text)
    if index is None:
        index = table.index_in(text)
    if index is None:
        raise RefusalError(408, f"{name}: no record before this one declares {text!r}")
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
        return 8 * nbytes - 1 - self.high if mirrored else self.low

    def take(self, c: Cursor) -> int:
        """Read the bits."""
        word = c.layout.words.get(self)
        if word is not None:
            c.open_word(*word)
        number = (c.word >> self.shift(c.word_nbytes, c.mirrored)) & ((1 << self.nbits) - 1)
        if self.signed and number >> self.nbits - 1:
            number -= 1 << self.nbits
        return number

    def put(self, draft: Draft) -> bytes:
        """Return the word that the bits begin, with the other bits in it."""
        layout = draft.layout
        word: int
        word, rows = layout.words_written[self, draft.mirrored]
        for bits, mask, shift in rows:
            word |= (draft[bits] & mask) << shift
        nbytes: int = layout.words[self][0]
        return word.to_bytes(nbytes, order_of(draft.big))

    def take_many(self, c: Many) -> NDArray[np.int64]:
        """Read the bits of many records, from the word that their first bits read."""
        first = c.layout.word_of[self]
        if self in c.layout.words:
            nbytes, reserved = c.layout.words[self]
            places = c.take(nbytes)
            c.known[self, WORD_AT] = places
            c.known[self, WORD] = c.load(places, nbytes)
            self._check_reserved(c, c.known[self, WORD], nbytes, reserved)
        word: NDArray[np.int64] = c.known[first, WORD]
        if self.nbits == 64:
            return word
        shift = self.shift(c.layout.words[first][0], c.reading.mirrored)
        numbers: NDArray[np.int64] = (word >> shift if shift else word) & (1 << self.nbits) - 1
        if self.signed:
            sign = 1 << self.nbits - 1
            numbers = (numbers ^ sign) - sign
        return numbers

    def _check_reserved(self, c: Many, word: NDArray[np.int64], nbytes: int, reserved: int) -> None:
        """Report bits of words that no field names and that are set."""
        if not reserved:
            return
        stray = word & wrapped(mirror(reserved, nbytes) if c.reading.mirrored else reserved)
        there = np.flatnonzero(stray)
        if there.size:
            c.note(105, there, stray, c.known[self, WORD_AT])

    def place_of_many(self, c: Many) -> NDArray[np.int64]:
        """Return the places of the words that the bits are in."""
        places: NDArray[np.int64] = c.known[c.layout.word_of[self], WORD_AT]
        return places

    def view(self, c: Cursor, at: int, number: int, meaning: str) -> None:
        """Show the bits for `fxf explain`."""
        del at
        value = number & (1 << self.nbits) - 1
        low = self.shift(c.word_nbytes, c.mirrored)
        high = low + self.nbits - 1
        if not self.values:
            meaning = self.meanings.get(value, meaning)
        c.bits(self.label, low, high, value, self.explained(meaning))


class Integer(Number):
    """An integer of 1 to 8 bytes, in the byte order of the stretch."""

    def __init__(self, nbytes: int, **options: Any) -> None:
        super().__init__(8 * nbytes, **options)
        self.nbytes = nbytes

    def least(self) -> int:
        """Return its size."""
        return 0 if self.when is not None else self.nbytes

    def take(self, c: Cursor) -> int:
        """Read the integer."""
        begin, end = c.at, c.at + self.nbytes
        if end > c.limit:
            raise c.short(self.nbytes)
        c.at = end
        return int.from_bytes(c.data[begin:end], order_of(c.big), signed=self.signed)

    def put(self, draft: Draft) -> bytes:
        """Return its bytes."""
        return draft[self].to_bytes(self.nbytes, order_of(draft.big), signed=self.signed)

    def take_many(self, c: Many) -> NDArray[np.int64]:
        """Read the integers of many records."""
        return c.integer(self.nbytes, signed=self.signed)


class Mark(Integer):
    """A constant that tells the byte order of its record, and of all after it."""

    def __init__(self, number: int, nbytes: int) -> None:
        super().__init__(nbytes)
        self.number = number
        self.names = {0: "little", 1: "big"}

    def read(self, c: Cursor, values: Values) -> None:
        """Read the mark, in the order that the framing found."""
        at = c.at
        c.known[self] = self.take(c)
        if c.known[self] != self.number:
            raise ShortError
        values[self.name] = self.names[int(c.big)]
        c.stretch(self.name, at, values[self.name])

    def read_many(self, c: Many) -> None:
        """Read the marks of many records, in the order that the framing found."""
        c.known[self] = self.take_many(c)
        c.lose(c.known[self] != wrapped(self.number))

    def parse(self, form: JsonFields) -> Any:
        """Return the name of the order."""
        name = form.text(self.key)
        if name not in self.names.values():
            raise form.wrong(self.key, "little or big")
        return name
