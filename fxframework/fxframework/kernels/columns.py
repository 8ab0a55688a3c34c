"""Loops over columns, shared by readers of several formats; they run without the GIL."""

from __future__ import annotations

from fxframework.kernels.annotations import Array, Bytes, Fallible, View, flag, i32, i64, u8
from fxframework.kernels.buffers import room
from fxframework.kernels.kernel import Kernel

__all__ = ["CopiedStretches", "SplitCodes", "SplitNumbers", "Taken"]


class SplitNumbers(Kernel):
    """Selects ``values`` of rows whose type is a bit of ``wanted``; other rows get ``otherwise``.

    ``types`` is uint8, ``values`` int64; ``rows`` (int32), if given, selects rows of both. The
    result is ``out`` (int64).
    """

    types: Bytes
    values: View[i64]
    rows: View[i32]
    wanted: i64
    otherwise: i64
    count: i64
    chosen: flag
    out: Array[i64]

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

    def step(self) -> Fallible[i64]:
        """Fill the column."""
        row = 0
        while row < self.count:
            at = self.rows[row] if self.chosen else row
            kind = self.types[at]
            self.out[row] = self.values[at] if (self.wanted >> kind) & 1 else self.otherwise
            row += 1
        return 0


class SplitCodes(Kernel):
    """Like ``SplitNumbers`` for codes, of all rows; ``out`` is int32."""

    types: Bytes
    values: View[i64]
    wanted: i64
    otherwise: i64
    count: i64
    out: Array[i32]

    def __init__(self, types: memoryview, values: memoryview, wanted: int, otherwise: int) -> None:
        self.types = memoryview(types)
        self.values = memoryview(values)
        self.wanted = wanted
        self.otherwise = otherwise
        self.count = len(types)
        self.out = room(self.count, "i4")

    def step(self) -> Fallible[i64]:
        """Fill the column."""
        row = 0
        while row < self.count:
            kind = self.types[row]
            self.out[row] = self.values[row] if (self.wanted >> kind) & 1 else self.otherwise
            row += 1
        return 0


class Taken(Kernel):
    """Looks up ``values[through[row]]``, or ``values[row]`` without ``through``; -1 stays -1.

    ``rows``, ``through`` and ``values`` are int32; nonnegative elements must be valid indexes. The
    result is ``out`` (int32).
    """

    rows: View[i32]
    values: View[i32]
    through: View[i32]
    count: i64
    indirect: flag
    out: Array[i32]

    def __init__(
        self, rows: memoryview, values: memoryview, through: memoryview | None = None
    ) -> None:
        self.rows = memoryview(rows)
        self.values = memoryview(values)
        self.indirect = through is not None
        self.through = room(0, "i4") if through is None else memoryview(through)
        self.count = len(rows)
        self.out = room(self.count, "i4")

    def step(self) -> Fallible[i64]:
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
    """Copies stretches of bytes to ``offsets``; ``run`` returns 0 if one is outside, else 1.

    ``source`` and ``out`` are uint8; ``starts`` (int64) has the shape (n,), ``offsets`` (n + 1,).
    """

    source: Bytes
    starts: View[i64]
    offsets: View[i64]
    out: Array[u8]
    size: i64
    count: i64

    def __init__(
        self, source: memoryview, starts: memoryview, offsets: memoryview, out: memoryview
    ) -> None:
        self.source = memoryview(source)
        self.starts = memoryview(starts)
        self.offsets = memoryview(offsets)
        self.out = memoryview(out)
        self.size = len(source)
        self.count = len(starts)

    def step(self) -> Fallible[i64]:
        """Copy stretches up to the first one outside of the source."""
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
