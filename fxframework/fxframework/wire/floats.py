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
from fxframework.wire.rules import DOES_NOT_FIT, UNDEFINED_VALUE, WRONG_TYPE

if TYPE_CHECKING:
    import numpy as np

    from fxframework.kernels.arrays import F64, I64, Bools
    from fxframework.wire.many import Many
else:
    from fxframework.kit.lazy import numpy as np

_F32 = struct.Struct("<f")
_U32 = struct.Struct("<I")


class Float(Limited):
    """A double, or a float of 4 bytes; NaN keep their bits, and are not within any limits."""

    exact = True

    def __init__(self, nbytes: int, **common: Any) -> None:
        super().__init__(**common)
        self.nbytes = nbytes
        is_limited = self.at_least is not None or self.at_most is not None
        if self.at_least is None:
            self.at_least = -math.inf
        if self.at_most is None:
            self.at_most = math.inf
        if is_limited:
            self._add_limits()

    def _add_limits(self) -> None:
        """Make a condition of ``least`` and ``most``, on the bits: expressions are of integers."""
        # As integers with a sign, bits of positive floats order as the floats do, and bits of
        # negative ones the other way round: -1.0 has lower bits than -2.0. So those are turned
        # round: -0.0 (only the sign set) becomes 0, what comes after it -1, and so on.
        bits: Expression = self
        if self.nbytes == 4:
            bits = self - (self >> 31 << 32)  # give the sign to 32 bits
        sign_bit = -1 << 8 * self.nbytes - 1
        order = bits + (bits < 0) * (sign_bit - bits * 2)
        low_bits, nearest_to_least = self.nearest(self.at_least)
        high_bits, nearest_to_most = self.nearest(self.at_most)
        low = order.value({self: low_bits})
        high = order.value({self: high_bits})
        # A float of 4 bytes may not have the limit itself: the next one inside of it counts.
        if nearest_to_least < self.at_least:
            low += 1
        if nearest_to_most > self.at_most:
            high -= 1
        self.limits.append(((order >= low) & (order <= high), UNDEFINED_VALUE))

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
        if self.when is not None:
            return 0
        return self.nbytes

    def read(self, cursor: Cursor, values: Values) -> None:
        """Read the number; a NaN becomes a ``Nan``."""
        begin = cursor.at
        bits = cursor.number(self.nbytes)
        cursor.known[self] = bits
        number = self.number_of(bits)
        self.check_limits(cursor)
        values[self.name] = number
        cursor.stretch(self.name, begin, f"{number} {self.unit}".rstrip())

    def number_of(self, bits: int) -> float:
        """Return the number with these bits, which may be a ``Nan``."""
        if self.nbytes == 8:
            bits &= (1 << 64) - 1
            number = double_of(bits)
        else:
            number = _F32.unpack(_U32.pack(bits))[0]
            bits = widened(bits)
        if math.isnan(number):
            return Nan(bits)
        return number

    def numbers_of(self, bits: I64) -> F64:
        """Return the numbers with many bits, as doubles."""
        if self.nbytes == 8:
            return bits.view("f8")
        narrow = bits.astype("u4").view("f4")
        with np.errstate(invalid="ignore"):  # signalling NaN
            return narrow.astype("f8")

    def has_payload(self, bits: int) -> bool:
        """Return whether bits are those of a NaN that is not the canonical one."""
        number = self.number_of(bits)
        return isinstance(number, Nan) and number.bits != CANONICAL_NAN

    def have_payload(self, bits: I64) -> Bools:
        """Return which of many bits are those of a NaN that is not the canonical one."""
        exponent = 0x7FF << 52
        canonical = CANONICAL_NAN
        if self.nbytes == 4:
            exponent = 0xFF << 23
            canonical = narrowed(CANONICAL_NAN)
        fraction = (exponent & -exponent) - 1  # all bits below the exponent
        # All bits of the exponent, and some of the fraction: or else it is an infinity.
        is_nan = (bits & exponent == exponent) & (bits & fraction != 0)
        has_payload: Bools = is_nan & (bits != canonical)
        return has_payload

    def read_many(self, many: Many) -> None:
        """Read the bits of the numbers of many records."""
        many.known[self] = many.integer(self.nbytes)
        self.check_limits_of_many(many)

    def put(self, draft: Draft) -> bytes:
        """Return its bytes."""
        return self.octets(getattr(draft.record, self.name), draft.big)

    def octets(self, value: Any, big: bool) -> bytes:
        """Return the bytes of a value. Raises RefusalError if 4 bytes cannot hold it exactly."""
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise RefusalError(WRONG_TYPE, f"{self.name} must be a number, not {value!r}")
        if math.isnan(value):
            bits = value.bits if isinstance(value, Nan) else CANONICAL_NAN
            if self.nbytes == 4:
                bits = narrowed(bits)
        elif self.nbytes == 8:
            bits = bits_of(float(value))
        else:
            try:
                packed = _F32.pack(value)
            except OverflowError:
                packed = b""
            if not packed or _F32.unpack(packed)[0] != value:
                message = f"{self.name} is {value!r}, which a float of 4 bytes cannot hold"
                raise RefusalError(DOES_NOT_FIT, message)
            bits = _U32.unpack(packed)[0]
        return bits.to_bytes(self.nbytes, order_of(big))

    def key_of(self, value: Any) -> Any:
        """Return the bits of the number, so that -0.0 differs from 0.0, and NaN are compared."""
        return bits_compared(value)

    def show(self, value: Any, out: dict[str, Any]) -> None:
        """Put the number into record JSON."""
        nan_bits = None
        if isinstance(value, Nan) and value.bits != CANONICAL_NAN:
            nan_bits = value.bits
        show_double(out, self.key, float(value), nan_bits)

    def parse(self, form: JsonFields) -> Any:
        """Return the number."""
        value, bits = form.double(self.key)
        if math.isnan(value):
            return Nan(CANONICAL_NAN if bits is None else bits)
        return value


def bits_compared(value: Any) -> Any:
    """Return what a number, or a list of numbers, is compared by.

    -0.0 differs from 0.0, and a NaN is equal to one with the same bits.
    """
    if isinstance(value, tuple):
        return tuple(map(bits_compared, value))
    if isinstance(value, Nan):
        return value.bits
    return exactly(value)


def widened(bits: int) -> int:
    """Return the bits of a NaN of 4 bytes as a double."""
    sign = bits >> 31
    fraction = bits & 0x7FFFFF
    return sign << 63 | 0x7FF << 52 | fraction << 29


def narrowed(bits: int) -> int:
    """Return the bits of a NaN as a float of 4 bytes, which is a NaN too."""
    sign = bits >> 63
    fraction = bits >> 29 & 0x7FFFFF
    if not fraction:
        fraction = 1 << 22  # or it would be an infinity
    return sign << 31 | 0xFF << 23 | fraction


class Nan(float):
    """A NaN of a file: it has the bits of the double, and is equal to one with the same bits."""

    bits: int

    def __new__(cls, bits: int) -> Self:
        """Return the NaN with these bits."""
        nan = super().__new__(cls, "nan")
        nan.bits = bits
        return nan

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Nan) and self.bits == other.bits

    def __hash__(self) -> int:
        return hash(self.bits)
