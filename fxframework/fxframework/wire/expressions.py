"""Expressions: integers computed from fields and registers, of one record or of many.

A field of a declaration is an expression in the body of its class: ``wire.text(length - 8)``,
``when=version >= 2``. ``value`` computes it of one record, in Python's integers, ``column`` of
many, in columns of int64. Both wrap to 64 bits with a sign.
"""

from __future__ import annotations

import functools
import operator
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from fxframework.errors import PluginError

if TYPE_CHECKING:
    import numpy as np
else:
    from fxframework.kit.lazy import numpy as np

OPERATIONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "&": operator.and_,
    "|": operator.or_,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    "+|": operator.add,
    "-|": operator.sub,
    "*|": operator.mul,
    "u|": lambda number, _: number % (1 << 64),
}
"""By symbol. ``+|``, ``-|`` and ``*|`` saturate; ``u|`` is a number without a sign, which does."""

CHECKSUMS: Mapping[str, Callable[[Any], int]] = {
    "crc32": zlib.crc32,
    "sum": sum,
    "xor": lambda data: functools.reduce(operator.xor, data, 0),
}
"""By name."""


def wrapped(number: int) -> int:
    """Return the number that the low 64 bits are, with a sign."""
    if -1 << 63 <= number < 1 << 63:
        return number
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


def calculated(symbol: str, left: int, right: int) -> int:
    """Return the result of an operation on 64 bits with a sign."""
    left = wrapped(left)
    right = wrapped(right)
    if symbol in ("<<", ">>") and not 0 <= right < 64:
        return 0
    return wrapped(int(OPERATIONS[symbol](left, right)))


def calculated_columns(symbol: str, left: Any, right: Any) -> Any:
    """Return the results of an operation on columns (int64 or bool), or on one number for all."""
    if not isinstance(left, np.ndarray) and not isinstance(right, np.ndarray):
        return calculated(symbol, left, right)
    if symbol in ("&", "|") and is_mask(left) and is_mask(right):
        return OPERATIONS[symbol](left, right)
    # Numpy adds bool to bool as bool, and knows no << of them.
    left = as_numbers(left)
    right = as_numbers(right)
    if symbol in ("<<", ">>"):
        return shifted(symbol, left, right)
    if symbol == "u|":
        return np.where(left < 0, np.int64((1 << 63) - 1), left)
    return OPERATIONS[symbol](left, right)


def is_mask(value: Any) -> bool:
    """Return whether a value is a column of bool."""
    return isinstance(value, np.ndarray) and value.dtype == bool


def as_numbers(value: Any) -> Any:
    """Return a column as int64, and one number for all as it is."""
    return value.astype(np.int64) if is_mask(value) else value


def shifted(symbol: str, left: Any, right: Any) -> Any:
    """Return columns shifted by 0 to 63 bits; by any other number the result is 0."""
    in_range = (right >= 0) & (right < 64)
    # One number for all rows gives one bool, and not a column.
    if in_range is False:
        return np.zeros_like(left)
    # Numpy's result of a shift by 64 or more depends on the machine.
    results = OPERATIONS[symbol](left, right & 63)
    if in_range is True:
        return results
    return np.where(in_range, results, 0)


def may_overflow(symbol: str, left: Any, right: Any) -> Any:
    """Return where the result of a saturating operation may not fit 64 bits with a sign."""
    if symbol == "u|":
        return as_numbers(left) < 0
    if symbol == "*|":
        # In doubles, which are off by less than one half.
        return abs(left * 1.0) * abs(right * 1.0) >= float(1 << 62)
    # The sign of `a ^ b` is set where a and b have different signs. A sum overflowed where both
    # sides have another sign than it; a difference where the sides have different signs, and it has
    # not that of the left one.
    result = calculated_columns(symbol, left, right)
    if symbol == "+|":
        return ((left ^ result) & (right ^ result)) < 0
    return ((left ^ result) & (left ^ right)) < 0


class Expression:
    """An integer, or a condition (0 or 1), known when a record is read."""

    def value(self, known: Mapping[Any, int]) -> int:
        """Return the value, given those of fields and registers."""
        raise NotImplementedError

    def column(self, many: Any) -> Any:
        """Return the values of many records (``wire.many.Many``): a column, or one for all.

        Numbers are int64, conditions bool.
        """
        return many.column_of(self)

    def leaves(self) -> Iterator[Expression]:
        """Yield the fields, registers and constants that it is made of."""
        yield self

    def linear(self) -> tuple[Expression, int, int] | None:
        """Return a leaf, a factor and a summand if it is ``leaf * factor + summand``."""
        return self, 1, 0

    def resolved(self, field: Callable[[str], Expression]) -> Expression:
        """Return it with the fields themselves in place of their names (``Named``)."""
        del field
        return self

    def __add__(self, other: Any) -> Expression:
        return Calculation("+", self, other)

    def __radd__(self, other: Any) -> Expression:
        return Calculation("+", other, self)

    def __sub__(self, other: Any) -> Expression:
        return Calculation("-", self, other)

    def __rsub__(self, other: Any) -> Expression:
        return Calculation("-", other, self)

    def __mul__(self, other: Any) -> Expression:
        return Calculation("*", self, other)

    __rmul__ = __mul__

    def __and__(self, other: Any) -> Expression:
        return Calculation("&", self, other)

    def __or__(self, other: Any) -> Expression:
        return Calculation("|", self, other)

    def __lshift__(self, other: Any) -> Expression:
        return Calculation("<<", self, other)

    def __rshift__(self, other: Any) -> Expression:
        return Calculation(">>", self, other)

    def __eq__(self, other: object) -> Any:
        return Calculation("==", self, other)

    def __ne__(self, other: object) -> Any:
        return Calculation("!=", self, other)

    def __lt__(self, other: Any) -> Expression:
        return Calculation("<", self, other)

    def __le__(self, other: Any) -> Expression:
        return Calculation("<=", self, other)

    def __gt__(self, other: Any) -> Expression:
        return Calculation("<", other, self)

    def __ge__(self, other: Any) -> Expression:
        return Calculation("<=", other, self)

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise PluginError(
            "a condition of a declaration has no truth value of its own",
            remedy="combine conditions with & and |, and give them as when=…",
        )


class Constant(Expression):
    """A number."""

    def __init__(self, number: int) -> None:
        self.number = number

    def value(self, known: Mapping[Any, int]) -> int:  # noqa: ARG002 (the signature of all)
        """Return the number."""
        return self.number

    def column(self, many: Any) -> int:  # noqa: ARG002 (the signature of all)
        """Return the number, wrapped to 64 bits."""
        return wrapped(self.number)

    def __repr__(self) -> str:
        return str(self.number)


class Register(Expression):
    """A number that records set and later records use, until a stretch ends."""

    def __init__(self, initial: int = 0, name: str = "") -> None:
        self.initial = initial
        self.name = name

    when = None
    """As of a field: it is always there."""

    def value(self, known: Mapping[Any, int]) -> int:
        """Return the value in force."""
        return known.get(self, self.initial)

    def written(self, draft: Any) -> int:
        """Return the value where there is no state."""
        del draft
        return self.initial

    def __repr__(self) -> str:
        return self.name or "register"


class Checksum(Expression):
    """A checksum of the record's bytes before the field that has it."""

    def __init__(self, kind: str, of: Callable[[Any], int] | None = None) -> None:
        self.kind = kind
        self.of = of or CHECKSUMS[kind]
        """Returns the checksum of some bytes."""

    def value(self, known: Mapping[Any, int]) -> int:
        """Return the checksum, once it was computed."""
        return known[self]

    def __repr__(self) -> str:
        return self.kind


class Named(Expression):
    """A field given by its name, where its class is not at hand: ``wire.field("seconds")``."""

    def __init__(self, name: str) -> None:
        self.name = name

    def resolved(self, field: Callable[[str], Expression]) -> Expression:
        """Return the field."""
        return field(self.name)

    def __repr__(self) -> str:
        return self.name


class Calculation(Expression):
    """An operation on two expressions."""

    def __init__(self, symbol: str, left: Any, right: Any) -> None:
        self.symbol = symbol
        self.left = expression(left)
        self.right = expression(right)

    def value(self, known: Mapping[Any, int]) -> int:
        """Return the result, which wraps to 64 bits."""
        left = self.left.value(known)
        if self.symbol == "&" and not left:  # most often a condition that does not hold
            return 0
        return calculated(self.symbol, left, self.right.value(known))

    def column(self, many: Any) -> Any:
        """Return the results of many records, which wrap likewise."""
        left = self.left.column(many)
        if self.symbol == "&" and is_mask(left) and not left.any():
            return left
        return calculated_columns(self.symbol, left, self.right.column(many))

    def leaves(self) -> Iterator[Expression]:
        """Yield the leaves of both sides."""
        yield from self.left.leaves()
        yield from self.right.leaves()

    def resolved(self, field: Callable[[str], Expression]) -> Expression:
        """Return the operation on the resolved sides."""
        return Calculation(self.symbol, self.left.resolved(field), self.right.resolved(field))

    def linear(self) -> tuple[Expression, int, int] | None:
        """Return a leaf, a factor and a summand, or None."""
        variable = self.left
        constant = self.right
        if isinstance(variable, Constant) and self.symbol in "+*":
            variable, constant = constant, variable
        inner = variable.linear()
        if inner is None or not isinstance(constant, Constant) or isinstance(variable, Constant):
            return None
        leaf, factor, summand = inner
        number = constant.number
        if self.symbol == "+":
            return leaf, factor, summand + number
        if self.symbol == "-":
            return leaf, factor, summand - number
        if self.symbol == "*":
            return leaf, factor * number, summand * number
        return None

    def __repr__(self) -> str:
        return f"({self.left!r} {self.symbol} {self.right!r})"


class Saturating(Calculation):
    """An operation whose result is the nearest number of 64 bits with a sign."""

    def value(self, known: Mapping[Any, int]) -> int:
        """Return the result, or the nearest number."""
        return max(-1 << 63, min(self.exact(known), (1 << 63) - 1))

    def exact(self, known: Mapping[Any, int]) -> int:
        """Return the result, whatever its size."""
        left = wrapped(self.left.value(known))
        right = wrapped(self.right.value(known))
        return int(OPERATIONS[self.symbol](left, right))

    def beyond(self, known: Mapping[Any, int]) -> bool:
        """Return whether the result, or a number that it is made of, does not fit."""
        if self.exact(known) != self.value(known):
            return True
        sides = (side for side in (self.left, self.right) if isinstance(side, Saturating))
        return any(side.beyond(known) for side in sides)

    def column(self, many: Any) -> Any:
        """Return the results of many records, or the nearest numbers; say where these are."""
        left = self.left.column(many)
        right = self.right.column(many)
        results = many.full(calculated_columns(self.symbol, left, right))
        candidates = np.flatnonzero(many.full(may_overflow(self.symbol, left, right)))
        if not candidates.size:
            return results
        # These rows, mostly few, are computed again in Python's integers, which do not overflow.
        results = results.copy()
        lefts = many.full(left)[candidates].tolist()
        rights = many.full(right)[candidates].tolist()
        for row, left_number, right_number in zip(candidates.tolist(), lefts, rights, strict=True):
            exact = int(OPERATIONS[self.symbol](int(left_number), int(right_number)))
            results[row] = max(-1 << 63, min(exact, (1 << 63) - 1))
            if exact != results[row]:
                many.saturated.append(row)
        return results


def saturating(value: Any) -> Expression:
    """Return an expression whose sums and products saturate, and so do its unsigned numbers."""
    if isinstance(value, Calculation):
        symbol = value.symbol
        left = value.left
        right = value.right
        if symbol == "<<" and isinstance(right, Constant) and 0 <= right.number < 63:
            symbol = "*"
            right = Constant(1 << right.number)
        if symbol in ("+", "-", "*"):
            return Saturating(f"{symbol}|", saturating(left), saturating(right))
    elif getattr(value, "nbits", 0) == 64 and not value.signed:
        return Saturating("u|", value, 0)
    return expression(value)


def condition_text(when: Expression, known: Mapping[Any, int]) -> str:
    """Return a condition that does not hold as a text, with the numbers that decide it."""
    values = [
        f"{leaf!r} is {leaf.value(known)}"
        for leaf in when.leaves()
        if leaf in known and not isinstance(leaf, Constant)
    ]
    if not values:
        return f"{when!r} does not hold"
    return f"{when!r} does not hold: {', '.join(dict.fromkeys(values))}"


def expression_or_none(value: Any) -> Expression | None:
    """Return the expression of an option; None if it is left out."""
    if value is None:
        return None
    return expression(value)


def leaves_of(term: Expression | None) -> Iterator[Expression]:
    """Yield the leaves of an expression; none where there is no expression."""
    if term is not None:
        yield from term.leaves()


def expression(value: Any) -> Expression:
    """Return an expression; a whole number becomes a constant. Raises PluginError for others."""
    if isinstance(value, Expression):
        return value
    if isinstance(value, int):
        return Constant(int(value))
    raise PluginError(f"{value!r} is not a number, a field or a register")
