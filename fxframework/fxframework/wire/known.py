"""Known: what is known of many records, as columns by field, and by aspects of a field."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    from fxframework.kit.lazy import numpy as np

__all__ = [
    "CODE", "LENGTH", "START", "STRANGE", "THERE", "WORD", "WORD_AT", "Codes", "Known", "as_mask",
    "gaps_to",
]  # fmt: skip

START, LENGTH = "start", "length"
"""Where the bytes of a field are: ``known[field, START]``, int64."""
THERE = "there"
"""Whether a field with a condition is there, bool."""
STRANGE = "strange"
"""Whether the bytes of a text are not UTF-8, bool; absent if all are."""
CODE = "code"
"""The codes of its texts (``Codes``)."""
WORD, WORD_AT = "word", "word at"
"""The word that a field of bits begins, and its place, int64."""


class Codes:
    """Codes of texts, which are entered once all records of a run are read; -1 for no text."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.parts: list[tuple[Any, Any]] = []

    def add(self, rows: Any, codes: Codes | NDArray[np.int32]) -> None:
        """Add codes of some rows, an index or a slice of all, which are there later."""
        self.parts.append((rows, codes))

    def column(self) -> NDArray[np.int32]:
        """Return the codes, int32 of shape (count,)."""
        if len(self.parts) == 1 and isinstance(self.parts[0][0], slice):
            codes = self.parts[0][1]
            return codes.column() if isinstance(codes, Codes) else codes
        column = np.full(self.count, -1, np.int32)
        for rows, codes in self.parts:
            column[rows] = codes.column() if isinstance(codes, Codes) else codes
        return column


class Known(dict[Any, Any]):
    """What is known of many records: columns by field.

    Of some rows, it has those columns of all rows (``whole``) that are asked for.
    """

    whole: Known | None = None
    rows: Any = None

    def __missing__(self, key: Any) -> Any:
        if self.whole is None:
            raise KeyError(key)
        column = self.whole[key]
        return column[self.rows] if isinstance(column, np.ndarray) else column


def as_mask(value: Any, count: int) -> NDArray[np.bool_]:
    """Return a value of a condition, a column or one number for all, as bool of shape (count,)."""
    if isinstance(value, np.ndarray):
        return value if value.dtype == bool else value != 0
    return np.full(count, bool(value))


def gaps_to(unit: int, places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return what places, counted backwards, lack to multiples of ``unit``."""
    # A division of integers takes longer than all else here.
    is_power_of_two = unit & unit - 1 == 0
    gaps: NDArray[np.int64] = places & unit - 1 if is_power_of_two else places % unit
    return gaps
