"""Values of JSON as what tables have: times, numbers of processes, threads and ids, and texts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fx_trace.chrome.rules import NO_TIME
from fx_trace.chrome.scan import Block, Report
from fx_trace.rules import STRING_OVER_LIMIT
from fxframework.io.words import U64_MAX
from fxframework.kernels.arrays import I64
from fxframework.model.clock import NS_MAX, NS_MIN
from fxframework.model.strings import StringPool

EXACT: Final = 2.0**41
"""Microseconds below which a double, times 1000, is nearest to the right integer."""
NANOSECOND: Final = Decimal("0.001")
"""In microseconds."""
ROUNDING: Final = Context(prec=60, rounding=ROUND_HALF_UP)
DECIMALS: Final = json.JSONDecoder(parse_float=Decimal, parse_int=Decimal)
AS_JSON: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
LONGEST_KEPT: Final = 1 << 10
"""Bytes of the strings whose codes are kept: longer ones rarely repeat."""


class Numbers(dict[Any, int]):
    """Numbers of values of JSON, which a subclass gives."""

    def of(self, values: Sequence[Any], kind: type) -> NDArray[Any]:
        """Return the numbers of values, of shape (n,)."""
        try:
            return np.array(list(map(self.__getitem__, values)), kind)
        except TypeError:  # an object or an array, which no dictionary has
            return np.array([self[plain(value)] for value in values], kind)


class Codes(Numbers):
    """Codes of strings in the pool; -1 of None. Of long ones it has ``longest`` bytes, if not 0."""

    def __init__(self, pool: StringPool, longest: int, report: Report) -> None:
        super().__init__({None: -1})
        self._pool = pool
        self._longest = longest
        self._report = report
        self.offset = 0
        """Of the events that have the strings."""

    def __missing__(self, value: Any) -> int:
        text = value if isinstance(value, str) else AS_JSON(value)
        data = encoded(text)
        if self._longest and len(data) > self._longest:
            self._report(STRING_OVER_LIMIT, self.offset, value=len(data))
            data = data[: self._longest]
        code = self._pool.intern(data)
        # Of other values, 1, 1.0 and true would be the same key.
        if text is value and len(data) <= LONGEST_KEPT:
            self[value] = code
        return code


class Ids(Numbers):
    """Numbers of processes and threads by what events have: 7, "7" and "0x7" are one."""

    def __missing__(self, value: Any) -> int:
        return self.setdefault(value, number_of(value))

    def texts(self) -> dict[int, str]:
        """Return the texts that are not numbers, which are names as well, by number."""
        texts = [text for text in self if isinstance(text, str) and integer_of(text) is None]
        return {self[text]: text for text in texts}


# --- Times ---------------------------------------------------------------------------------------


def times(key: str, block: Block, places: I64, report: Report) -> tuple[I64, NDArray[np.bool_]]:
    """Return microseconds of events as nanoseconds, and which of them are times, both (places,).

    Fractions are rounded to the nearest nanosecond. Where a double is not enough, the digits are
    taken from the bytes of the event. What is not a time is reported.
    """
    values = block.column(key, places)
    is_plain = set(map(type, values)) <= {int, float}
    if is_plain and all(-EXACT < value < EXACT for value in values):
        rounded = np.floor(np.array(values, np.float64) * 1000 + 0.5)
        return rounded.astype(np.int64), np.ones(rounded.size, np.bool_)
    ns = np.zeros(len(values), np.int64)
    is_time = np.zeros(len(values), np.bool_)
    for index, (place, value) in enumerate(zip(places.tolist(), values, strict=True)):
        written = value
        if isinstance(value, float):
            raw = bytes(block.data[block.starts[place] : block.stops[place]])
            written = DECIMALS.decode(raw.decode("utf-8", "surrogateescape"))[key]
        exact = nanoseconds(written)
        if exact is not None and NS_MIN <= exact <= NS_MAX:
            ns[index] = exact
            is_time[index] = True
        else:
            report(NO_TIME, int(block.starts[place]), value=f"{key} is {shown(value)}")
    return ns, is_time


def nanoseconds(value: Any) -> int | None:
    """Return microseconds, a number or text, as nanoseconds, rounded; None if it is not a time."""
    if isinstance(value, bool) or not isinstance(value, Decimal | float | int | str):
        return None
    try:
        # A number of more digits than the precision is refused, before it takes all memory.
        return int(ROUNDING.quantize(Decimal(value), NANOSECOND) * 1000)
    except (InvalidOperation, ValueError):  # ValueError: it is not a number (NaN)
        return None


# --- Numbers and texts ---------------------------------------------------------------------------


def integer_of(text: str) -> int | None:
    """Return the integer that a text is, hexadecimal behind 0x; None of other text."""
    base = 16 if text[:2] in {"0x", "0X"} else 10
    try:
        return int(text, base)
    except ValueError:
        return None


def number_of(value: Any) -> int:
    """Return an id as a number of 64 bits: a number, a text that is one, of others a hash."""
    if value is None:
        return 0
    text = value if isinstance(value, str) else AS_JSON(value).removesuffix(".0")
    number = integer_of(text)
    if number is None:
        digest = hashlib.blake2b(encoded(text), digest_size=8).digest()
        number = int.from_bytes(digest, "little")
    return number & U64_MAX


def plain(value: Any) -> Any:
    """Return a value that a dictionary can have as a key; objects and arrays as text."""
    return AS_JSON(value) if isinstance(value, (dict, list)) else value


def shown(value: Any) -> str:
    """Return the beginning of a value, for a finding."""
    return ascii(AS_JSON(value))[1:-1][:40]


def encoded(text: str) -> bytes:
    """Return the bytes of a string; bytes that were not UTF-8 and lone surrogates as they were."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
