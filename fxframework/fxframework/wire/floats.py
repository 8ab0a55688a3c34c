"""Floats: fields that are numbers with a fraction, and NaN that keep their bits."""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any, Self

from fxframework.kit.json_fields import (
    CANONICAL_NAN,
    JsonFields,
    bits_of,
    double_of,
    exactly,
    show_double,
)
from fxframework.wire.cursor import Cursor, Draft, RefusalError, order_of
from fxframework.wire.expressions import Expression
from fxframework.wire.fields import Limited, Values

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fxframework.wire.many import Many

__all__ = ["Float", "Nan", "bits_compared"]

_F32 = struct.Struct("<f")
_U32 = struct.Struct("<I")


class Float(Limited):
    """A double, or a float of 4 bytes; NaN keep their bits, and are not within any limits."""

    exact = True

    def __init__(self, nbytes: int, **common: Any) -> None:
        super().__init__(**common)
        self.nbytes = nbytes
        limited = self.at_least is not None or self.at_most is not None
        self.at_least = -math.inf if self.at_least is None else self.at_least
        self.at_most = math.inf if self.at_most is None else self.at_most
        if limited:
            # Bits of floats order as they do once those of negative ones are turned round.
            number: Expression = self if nbytes == 8 else self - (self >> 31 << 32)
            order = number + (number < 0) * ((-1 << 8 * nbytes - 1) - number * 2)
            (low, above), (high, below) = (self.nearest(x) for x in (self.at_least, self.at_most))
            low = order.value({self: low}) + (above < self.at_least)
            high = order.value({self: high}) - (below > self.at_most)
            self.limits.append(((order >= low) & (order <= high), 106))

    def nearest(self, limit: float) -> tuple[int, float]:
        """Return bits and value of the number that is nearest to a limit."""
        if self.nbytes == 8:
            return bits_of(float(limit)), limit
        try:
            packed = _F32.pack(limit)
        except OverflowError:
            packed = _F32.pack(math.copysign(math.inf, limit))
        return _U32.unpack(packed)[0], _F32.unpack(packed)[0]

    def least(self) -> int:
        """Return its size."""
        return 0 if self.when is not None else self.nbytes

    def read(self, c: Cursor, values: Values) -> None:
        """Read the number; a NaN becomes a ``Nan``."""
        at = c.at
        bits = c.number(self.nbytes)
        c.known[self] = bits
        number = self.number_of(bits)
        self.check_limits(c)
        values[self.name] = number
        c.stretch(self.name, at, f"{number} {self.unit}".rstrip())

    def number_of(self, bits: int) -> float:
        """Return the number with these bits, which may be a ``Nan``."""
        if self.nbytes == 8:
            bits &= (1 << 64) - 1
            number = double_of(bits)
        else:
            number = _F32.unpack(_U32.pack(bits))[0]
            bits = widened(bits)
        return Nan(bits) if math.isnan(number) else number

    def has_payload(self, bits: int) -> bool:
        """Return whether bits are those of a NaN that is not the canonical one."""
        number = self.number_of(bits)
        return isinstance(number, Nan) and number.bits != CANONICAL_NAN

    def have_payload(self, bits: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which of many bits are those of a NaN that is not the canonical one."""
        exponent = 0x7FF << 52
        usual = CANONICAL_NAN
        if self.nbytes == 4:
            exponent = 0xFF << 23
            usual = narrowed(CANONICAL_NAN)
        is_special = bits & exponent == exponent
        fraction = exponent & -exponent
        have: NDArray[np.bool_] = is_special & (bits & fraction - 1 != 0) & (bits != usual)
        return have

    def read_many(self, c: Many) -> None:
        """Read the bits of the numbers of many records."""
        c.known[self] = c.integer(self.nbytes)
        self.check_limits_of_many(c)

    def put(self, draft: Draft) -> bytes:
        """Return its bytes."""
        return self.octets(getattr(draft.made, self.name), draft.big)

    def octets(self, given: Any, big: bool) -> bytes:
        """Return the bytes of a value. Raises RefusalError if 4 bytes cannot hold it exactly."""
        if not isinstance(given, int | float) or isinstance(given, bool):
            raise RefusalError(403, f"{self.name} must be a number, not {given!r}")
        if math.isnan(given):
            bits = given.bits if isinstance(given, Nan) else CANONICAL_NAN
            bits = bits if self.nbytes == 8 else narrowed(bits)
        elif self.nbytes == 8:
            bits = bits_of(float(given))
        else:
            try:
                packed = _F32.pack(given)
            except OverflowError:
                packed = b""
            if not packed or _F32.unpack(packed)[0] != given:
                message = f"{self.name} is {given!r}, which a float of 4 bytes cannot hold"
                raise RefusalError(404, message)
            bits = _U32.unpack(packed)[0]
        return bits.to_bytes(self.nbytes, order_of(big))

    def key_of(self, value: Any) -> Any:
        """Return the bits of the number, so that -0.0 differs from 0.0, and NaN are compared."""
        return bits_compared(value)

    def show(self, value: Any, out: dict[str, Any]) -> None:
        """Put the number into record JSON."""
        bits = value.bits if isinstance(value, Nan) and value.bits != CANONICAL_NAN else None
        show_double(out, self.key, float(value), bits)

    def parse(self, form: JsonFields) -> Any:
        """Return the number."""
        value, bits = form.double(self.key)
        if math.isnan(value):
            return Nan(CANONICAL_NAN if bits is None else bits)
        return value


def bits_compared(value: Any) -> Any:
    """Return what a number, or a list of numbers, is compared by: -0.0 and NaN are as they are."""
    if isinstance(value, tuple):
        return tuple(map(bits_compared, value))
    return value.bits if isinstance(value, Nan) else exactly(value)


def widened(bits: int) -> int:
    """Return the bits of a NaN of 4 bytes as a double."""
    return bits >> 31 << 63 | 0x7FF << 52 | (bits & 0x7FFFFF) << 29


def narrowed(bits: int) -> int:
    """Return the bits of a NaN as a float of 4 bytes, which is a NaN too."""
    fraction = bits >> 29 & 0x7FFFFF
    return bits >> 63 << 31 | 0xFF << 23 | (fraction or 1 << 22)


class Nan(float):
    """A NaN of a file: it has the bits of the double, and is equal to one with the same bits."""

    bits: int

    def __new__(cls, bits: int) -> Self:
        """Return the NaN with these bits."""
        made = super().__new__(cls, "nan")
        made.bits = bits
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Nan) and self.bits == other.bits

    def __hash__(self) -> int:
        return hash(self.bits)
