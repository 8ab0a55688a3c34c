"""Loops over columns that readers of several formats share."""

from __future__ import annotations

__all__ = ["copy_stretches", "split_codes", "split_numbers"]


def split_numbers(
    types: memoryview, values: memoryview, wanted: int, otherwise: int, out: memoryview
) -> None:
    """Values (int64) of the argument types that are bits of ``wanted``; of others ``otherwise``."""
    for row in range(len(out)):
        out[row] = values[row] if (wanted >> types[row]) & 1 else otherwise


def split_codes(
    types: memoryview, values: memoryview, wanted: int, otherwise: int, out: memoryview
) -> None:
    """The same of values that are codes, into int32."""
    for row in range(len(out)):
        out[row] = values[row] if (wanted >> types[row]) & 1 else otherwise


def copy_stretches(
    source: memoryview, starts: memoryview, offsets: memoryview, out: memoryview
) -> bool:
    """Copy stretches of bytes to where ``offsets`` says; whether all of them lie in ``source``."""
    for row in range(len(starts)):
        size = offsets[row + 1] - offsets[row]
        if size <= 0:
            continue
        start = starts[row]
        if start < 0 or size > len(source) - start:
            return False
        to = offsets[row]
        for index in range(size):
            out[to + index] = source[start + index]
    return True
