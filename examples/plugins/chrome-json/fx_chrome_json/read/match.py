"""Match: ends to begins, slices to those that enclose them, points of flows to slices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["enclose", "next_slices", "pair"]

I64 = NDArray[np.int64]
BLOCK = 1 << 16
"""Rows that are made Python numbers together."""


def pair(group: I64, ts: I64, begins: NDArray[np.bool_], name: I64) -> I64:
    """Pair the ends of each group with its begins, in order of time.

    All have the shape (n,), in file order. An end with a name (not -1) closes the innermost open
    begin of that name, any other the innermost one. Gives the index of the begin for each end,
    and of the end for each begin, int64 of shape (n,); -1 where there is none.
    """
    closed = bytearray(group.size)
    pairs: tuple[list[int], list[int]] = ([], [])
    stack: list[int] = []
    names: list[int] = []
    by_name: dict[int, list[int]] | None = None
    here = None
    order = np.lexsort((ts, group))
    for at, own, is_begin, label in _rows(order, group, begins, name):
        if own != here:
            here, by_name = own, None
            stack.clear()
            names.clear()
        if is_begin:
            stack.append(at)
            names.append(label)
            if by_name is not None:
                by_name.setdefault(label, []).append(at)
            continue
        while stack and closed[stack[-1]]:
            stack.pop()
            names.pop()
        if not stack:
            continue
        if label < 0 or names[-1] in {label, -1}:
            begin = stack.pop()
            names.pop()
        else:
            if by_name is None:
                by_name = {}
                for open_one, its_name in zip(stack, names, strict=True):
                    by_name.setdefault(its_name, []).append(open_one)
            same = by_name.get(label, [])
            while same and closed[same[-1]]:
                same.pop()
            if not same:
                continue
            begin = same.pop()
        closed[begin] = 1
        pairs[0].append(begin)
        pairs[1].append(at)
    partner = np.full(group.size, -1, np.int64)
    partner[pairs[0]] = pairs[1]
    partner[pairs[1]] = pairs[0]
    return partner


def enclose(
    group: I64, start: I64, end: I64, point_group: I64, point_ts: I64
) -> tuple[NDArray[np.int32], I64, I64]:
    """How deep slices are nested, what encloses each of them, and what encloses each point.

    Slices have the shape (n,), points (m,). Gives depths, int32 of shape (n,), the index of the
    enclosing slice, int64 of shape (n,), and of that of each point, of shape (m,); -1 for none.
    Where slices overlap and neither encloses the other, the earlier one encloses nothing more.
    """
    count, points = group.size, point_group.size
    groups = np.concatenate((group, point_group))
    starts = np.concatenate((start, point_ts))
    ends = np.concatenate((end, np.zeros(points, np.int64)))
    numbers = np.arange(count + points)
    order = np.lexsort((numbers, ~ends, numbers >= count, starts, groups))
    depth = np.zeros(count, np.int32)
    parent = np.full(count + points, -1, np.int64)
    stack: list[int] = []
    until: list[int] = []
    here = None
    for first in range(0, order.size, BLOCK):
        block = order[first : first + BLOCK]
        found, deep = [], []
        for at, own, begin, stop in _rows(block, groups, starts, ends):
            if own != here:
                here = own
                stack.clear()
                until.clear()
            if at >= count:
                while until and until[-1] < begin:
                    until.pop()
                    stack.pop()
                found.append(stack[-1] if stack else -1)
                deep.append(0)
                continue
            while until and (until[-1] <= begin or until[-1] < stop):
                until.pop()
                stack.pop()
            found.append(stack[-1] if stack else -1)
            deep.append(len(stack))
            stack.append(at)
            until.append(stop)
        parent[block] = found
        sliced = block < count
        depth[block[sliced]] = np.array(deep, np.int32)[sliced]
    return depth, parent[:count], parent[count:]


def next_slices(group: I64, start: I64, end: I64, point_group: I64, point_ts: I64) -> I64:
    """The index of the slice that begins next in the group of each point; -1 for none."""
    count, points = group.size, point_group.size
    groups = np.concatenate((group, point_group))
    starts = np.concatenate((start, point_ts))
    numbers = np.arange(count + points)
    is_slice = numbers < count
    ends = np.concatenate((end, np.zeros(points, np.int64)))
    order = np.lexsort((numbers, ~ends, is_slice, starts, groups))
    places = np.where(is_slice[order], np.arange(order.size), order.size)
    following = np.append(np.minimum.accumulate(places[::-1])[::-1], order.size)
    mine = np.flatnonzero(~is_slice[order])
    place = following[mine]
    known = place < order.size
    found = np.full(points, -1, np.int64)
    after = order[np.minimum(place, order.size - 1)]
    known &= groups[after] == groups[order[mine]]
    found[order[mine][known] - count] = after[known]
    return found


def _rows(order: I64, *columns: NDArray[Any]) -> Iterator[tuple[Any, ...]]:
    """The rows of columns in an order, each behind its index, as Python values."""
    for first in range(0, order.size, BLOCK):
        block = order[first : first + BLOCK]
        yield from zip(
            block.tolist(), *(column[block].tolist() for column in columns), strict=True
        )
