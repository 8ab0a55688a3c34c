"""Loops over columns that readers of several formats share; none of them holds the GIL."""

from __future__ import annotations

from fxframework.kernels.buffers import room
from fxframework.kernels.kernel import Kernel

__all__ = ["CopiedStretches", "SplitCodes", "SplitNumbers", "Taken"]


class SplitNumbers(Kernel):
    """Of rows of types that are bits of ``wanted`` the ``values`` (int64); else ``otherwise``.

    ``types`` (uint8) and ``values`` (int64) have those of all rows, or those that ``rows`` (int32)
    chooses. The result is ``out`` (int64).
    """

    def __init__(
        self,
        types: memoryview,
        values: memoryview,
        wanted: int,
        otherwise: int,
        rows: memoryview | None = None,
    ) -> None:
        self.types = memoryview(types)
        self.values = memoryview(values)
        self.wanted = wanted
        self.otherwise = otherwise
        self.chosen = rows is not None
        self.rows = room(0, "i4") if rows is None else memoryview(rows)
        self.count = len(types) if rows is None else len(rows)
        self.out = room(self.count, "i8")

    def step(self) -> int:
        """Fill the column."""
        row = 0
        while row < self.count:
            at = self.rows[row] if self.chosen else row
            kind = self.types[at]
            self.out[row] = self.values[at] if (self.wanted >> kind) & 1 else self.otherwise
            row += 1
        return 0


class SplitCodes(Kernel):
    """The same of values that are codes, of all rows; ``out`` is int32."""

    def __init__(self, types: memoryview, values: memoryview, wanted: int, otherwise: int) -> None:
        self.types = memoryview(types)
        self.values = memoryview(values)
        self.wanted = wanted
        self.otherwise = otherwise
        self.count = len(types)
        self.out = room(self.count, "i4")

    def step(self) -> int:
        """Fill the column."""
        row = 0
        while row < self.count:
            kind = self.types[row]
            self.out[row] = self.values[row] if (self.wanted >> kind) & 1 else self.otherwise
            row += 1
        return 0


class Taken(Kernel):
    """Numbers (int32) of rows: ``values[through[row]]``, or -1 where the row is in nothing.

    ``rows``, ``through`` and ``values`` are int32; without ``through`` it is ``values[row]``. What
    is not negative has to be the number of a row. The result is ``out`` (int32).
    """

    def __init__(
        self, rows: memoryview, values: memoryview, through: memoryview | None = None
    ) -> None:
        self.rows = memoryview(rows)
        self.values = memoryview(values)
        self.indirect = through is not None
        self.through = room(0, "i4") if through is None else memoryview(through)
        self.count = len(rows)
        self.out = room(self.count, "i4")

    def step(self) -> int:
        """Fill the column."""
        row = 0
        while row < self.count:
            at = self.rows[row]
            if self.indirect and at >= 0:
                at = self.through[at]
            self.out[row] = self.values[at] if at >= 0 else -1
            row += 1
        return 0


class CopiedStretches(Kernel):
    """Copies stretches of bytes to where ``offsets`` says: ``run`` gives 1, or 0 outside.

    ``source`` and ``out`` are uint8, ``starts`` (int64) of shape (n,), ``offsets`` of (n + 1,).
    """

    def __init__(
        self, source: memoryview, starts: memoryview, offsets: memoryview, out: memoryview
    ) -> None:
        self.source = memoryview(source)
        self.starts = memoryview(starts)
        self.offsets = memoryview(offsets)
        self.out = memoryview(out)
        self.size = len(source)
        self.count = len(starts)

    def step(self) -> int:
        """Copy all stretches that lie in the source."""
        row = 0
        while row < self.count:
            to = self.offsets[row]
            size = self.offsets[row + 1] - to
            start = self.starts[row]
            if size > 0 and (start < 0 or size > self.size - start):
                return 0
            index = 0
            while index < size:
                self.out[to + index] = self.source[start + index]
                index += 1
            row += 1
        return 1
