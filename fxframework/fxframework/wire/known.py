"""Known: what is known of many records, as columns by field, and by aspects of a field."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from fxframework.kernels.arrays import I32, I64, Bools
else:
    from fxframework.kit.lazy import numpy as np

START = "start"
LENGTH = "length"
"""Where the bytes of a field are: ``known[field, START]``, int64."""
THERE = "there"
"""Whether a field with a condition is there, bool."""
STRANGE = "strange"
"""Whether the bytes of a text are not UTF-8, bool; absent if all are."""
CODE = "code"
"""The codes of its texts (``Codes``)."""
WORD = "word"
WORD_AT = "word at"
"""The word that a field of bits begins, and its place, int64."""


class Codes:
    """Codes of texts, which are entered once all records of a run are read; -1 for no text.

    Until then it only knows the arrays that the codes are going to be put into, and which rows they
    are of: nothing may ask for the column earlier.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self.parts: list[tuple[Any, Any]] = []

    def add(self, rows: Any, codes: Codes | I32) -> None:
        """Add codes of some rows, an index or a slice of all, which are there later."""
        self.parts.append((rows, codes))

    def column(self) -> I32:
        """Return the codes, int32 of shape (count,)."""
        parts = [(rows, column_of_codes(codes)) for rows, codes in self.parts]
        if len(parts) == 1 and isinstance(parts[0][0], slice):
            return parts[0][1]
        column = np.full(self.count, -1, np.int32)
        for rows, codes in parts:
            column[rows] = codes
        return column


def column_of_codes(codes: Codes | I32) -> I32:
    """Return codes, which may still be in parts, as a column."""
    if isinstance(codes, Codes):
        return codes.column()
    return codes


class Known(dict[Any, Any]):
    """What is known of many records: columns by field.

    What is known of some ``rows`` of other records (``whole``) also has their columns: each is cut
    to these rows when ``known[key]`` asks for it. ``in`` and ``get`` only see columns of its own.
    """

    whole: Known | None = None
    rows: Any = None

    def borrow(self, whole: Known, rows: Any) -> None:
        """Have the columns of ``whole``, too: in these rows of it."""
        self.whole = whole
        self.rows = rows

    def __missing__(self, key: Any) -> Any:
        if self.whole is None:
            raise KeyError(key)
        column = self.whole[key]
        if isinstance(column, np.ndarray):
            return column[self.rows]
        return column


def as_mask(value: Any, count: int) -> Bools:
    """Return a value of a condition, a column or one number for all, as bool of shape (count,)."""
    if not isinstance(value, np.ndarray):
        return np.full(count, bool(value))
    if value.dtype == bool:
        return value
    return value != 0  # type: ignore[no-any-return]


def gaps_to(unit: int, places: Any) -> Any:
    """Return what places, an int or int64, counted backwards, lack to multiples of ``unit``."""
    is_power_of_two = unit & unit - 1 == 0
    if is_power_of_two:  # a division of integers takes longer than all else here
        return places & unit - 1
    return places % unit


def with_sign(numbers: I64, nbits: int) -> I64:
    """Return numbers of so many bits, the highest of which is a sign, as those of 64 bits."""
    # Bits below the sign count up from its value: of 4 bits, 0b0111 is 7, 0b1000 is -8.
    sign = 1 << nbits - 1
    return (numbers ^ sign) - sign
