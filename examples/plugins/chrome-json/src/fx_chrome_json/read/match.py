"""Match: ends to begins, slices to those that enclose them, points of flows to slices."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["enclose", "next_slices", "pair", "ranks"]

I32 = NDArray[np.int32]
Groups = NDArray[np.int32] | NDArray[np.int64]
I64 = NDArray[np.int64]
BLOCK = 1 << 16
"""Rows that are made Python numbers together."""
MANY, DEEP = 256, 256
"""Slices of a group that are matched at once, and how deep they may be nested for that."""


def pair(group: Groups, ts: I64, begins: NDArray[np.bool_], name: I32) -> I64:
    """Pair the ends of each group with its begins, in order of time.

    All have the shape (n,), in file order. An end with a name (not -1) closes the innermost open
    begin of that name, and all that is open within it; any other closes the innermost one. Gives
    the index of the begin for each end, and of the end for each begin, int64 of shape (n,); -1
    where there is none.
    """
    partner = np.full(group.size, -1, np.int64)
    order = np.lexsort((ts, group))
    rest = _pair_at_once(order, group, begins, name, partner)
    if rest.size:
        _pair_each(rest, group, begins, name, partner)
    return partner


def _pair_at_once(
    order: I64, group: Groups, begins: NDArray[np.bool_], name: I32, partner: I64
) -> I64:
    """Enter the partners in groups whose begins and ends match; gives the rows of the others."""
    groups, is_begin = group[order], begins[order]
    steps = np.where(is_begin, 1, -1)
    depth = np.cumsum(steps)
    firsts = np.flatnonzero(np.append(True, groups[1:] != groups[:-1]))[: order.size]
    sizes = np.diff(np.append(firsts, order.size))
    depth -= np.repeat(depth[firsts] - steps[firsts], sizes)
    bad = depth < 0
    level = depth + ~is_begin  # an end has that of its begin
    by_level = np.lexsort((level, groups))
    left, right = by_level[:-1], by_level[1:]
    pairs = np.flatnonzero(
        is_begin[left] & ~is_begin[right] & (groups[left] == groups[right])
        & (level[left] == level[right])
    )  # fmt: skip
    begin, end = order[left[pairs]], order[right[pairs]]
    bad[right[pairs]] |= (name[end] >= 0) & (name[begin] >= 0) & (name[end] != name[begin])
    whole = ~np.logical_or.reduceat(bad, firsts) if firsts.size else np.zeros(0, np.bool_)
    fine = np.repeat(whole, sizes)
    sound = fine[left[pairs]]
    partner[begin[sound]] = end[sound]
    partner[end[sound]] = begin[sound]
    rest: I64 = order[~fine]
    return rest


def _pair_each(
    order: I64, group: Groups, begins: NDArray[np.bool_], name: I32, partner: I64
) -> None:
    """Enter the partners of rows in this order, whatever they are."""
    found: tuple[list[int], list[int]] = ([], [])
    stack: list[tuple[int, int]] = []
    open_names: Counter[int] = Counter()
    here = None
    for at, own, is_begin, label in _rows(order, group, begins, name):
        if own != here:
            here = own
            stack.clear()
            open_names.clear()
        if is_begin:
            stack.append((at, label))
            open_names[label] += 1
            continue
        if not stack or (label >= 0 and not open_names[label] and not open_names[-1]):
            continue
        while True:
            begin, opened = stack.pop()
            open_names[opened] -= 1
            found[0].append(begin)
            found[1].append(at)
            if label < 0 or opened in {label, -1}:
                break
    partner[found[0]] = found[1]
    # Of several begins that an end closes, the last one that was popped is its own.
    partner[found[1]] = found[0]


def ranks(
    start: I64, end: I64, first: I64, last: I64, point_ts: I64, point: I64
) -> tuple[I64, I64, I64]:
    """Places of begins, ends and points in the order in which a viewer meets these events.

    Slices have times and the offsets of the events with which they begin and end, of shape (n,);
    ``last`` is -1 where they end by their length. Points have times and offsets, of shape (m,). At
    one time, slices end whose length says so, then those of a given length begin, the longest
    first, then all else comes in file order. Gives places, int64 of shapes (n,), (n,) and (m,).
    """
    count = start.size
    given = last < 0
    empty = given & (start == end)
    by_length, none, points = ~end, np.zeros(count, np.int64), np.zeros(point.size, np.int64)
    times = np.concatenate((start, end, point_ts))
    kinds = np.concatenate((np.where(given, 1, 2), np.where(given, 1 * empty, 2), points + 2))
    major = np.concatenate(
        (np.where(given, by_length, first), np.where(given, by_length, last), point)
    )
    minor = np.concatenate((first, np.where(given, first, ~first), points))
    is_end = np.concatenate((none, none + 1, points))
    order = np.lexsort((is_end, minor, major, kinds, times))
    found = np.empty(order.size, np.int64)
    found[order] = np.arange(order.size)
    return found[:count], found[count : 2 * count], found[2 * count :]


def enclose(
    group: Groups, start: I64, end: I64, point_group: I64, point_ts: I64
) -> tuple[I32, I32, I64]:
    """How deep slices are nested, what encloses each of them, and what encloses each point.

    Slices have the shape (n,), points (m,). Gives depths, int32 of shape (n,), the index of the
    enclosing slice, int32 of shape (n,), and of that of each point, of shape (m,); -1 for none.
    Where slices overlap and neither encloses the other, the earlier one encloses nothing more.
    """
    count = group.size
    depth = np.zeros(count, np.int32)
    parent = np.full(count, -1, np.int32)
    point = np.full(point_group.size, -1, np.int64)
    order = np.lexsort((~end, start, group))
    point_order = np.lexsort((point_ts, point_group))
    of_points = point_group[point_order]
    cuts = np.flatnonzero(np.diff(group[order])) + 1
    bounds = [0, *cuts.tolist(), count]
    slow, slow_points = [], []
    for first, last in itertools.pairwise(bounds):
        mine = order[first:last]
        if not mine.size:
            continue
        left, right = np.searchsorted(of_points, [group[mine[0]], group[mine[0]] + 1])
        points = point_order[left:right]
        if mine.size >= MANY:
            found = _enclose_at_once(start[mine], end[mine], point_ts[points])
            if found is not None:
                depth[mine] = found[0]
                for at in range(0, mine.size, BLOCK):
                    above = found[1][at : at + BLOCK]
                    parent[mine[at : at + BLOCK]] = np.where(above < 0, -1, mine[above])
                point[points] = np.where(found[2] < 0, -1, mine[found[2]])
                continue
        slow.append(mine)
        slow_points.append(points)
    if slow:
        rows, points = np.concatenate(slow), np.concatenate(slow_points)
        deep, outer, around = _enclose_each(
            group[rows], start[rows], end[rows], point_group[points], point_ts[points]
        )
        depth[rows] = deep
        parent[rows] = np.where(outer < 0, -1, rows[outer])
        point[points] = np.where(around < 0, -1, rows[around])
    return depth, parent, point


def _enclose_at_once(start: I64, end: I64, point_ts: I64) -> tuple[I32, I32, I64] | None:
    """``enclose`` of one group, in its order; None where slices overlap or are deeply nested."""
    lasting = end > start  # others enclose nothing
    depth = np.cumsum(lasting, dtype=np.int32)
    depth -= lasting
    ends = end[lasting]
    ends.sort()
    for first in range(0, start.size, BLOCK):
        stretch = slice(first, first + BLOCK)
        depth[stretch] -= np.searchsorted(ends, start[stretch], side="right").astype(np.int32)
    deepest = int(depth.max())
    if int(depth.min()) < 0 or deepest > DEEP:
        return None
    parent = np.full(start.size, -1, np.int32)
    above = np.flatnonzero((depth == 0) & lasting)
    for level in range(1, deepest + 1):
        here = depth == level
        rows = np.flatnonzero(here)
        place = np.searchsorted(above, rows) - 1
        if place.size and int(place.min()) < 0:
            return None
        parent[rows] = above[place]
        above = rows[lasting[rows]]
    for first in range(0, start.size, BLOCK):
        enclosing = parent[first : first + BLOCK]
        if bool(((enclosing >= 0) & (end[first : first + BLOCK] > end[enclosing])).any()):
            return None
    around = np.searchsorted(start, point_ts, side="right") - 1
    while True:
        late = np.flatnonzero((around >= 0) & (end[around] < point_ts))
        if not late.size:
            return depth, parent, around
        around[late] = parent[around[late]]


def _enclose_each(
    group: Groups, start: I64, end: I64, point_group: I64, point_ts: I64
) -> tuple[I32, I64, I64]:
    """``enclose``, slice by slice, of any groups."""
    count, points = group.size, point_group.size
    groups = np.concatenate((group, point_group))
    starts = np.concatenate((start, point_ts))
    ends = np.concatenate((end, np.zeros(points, np.int64)))
    numbers = np.arange(count + points)
    order = np.lexsort((numbers, ~ends, numbers >= count, starts, groups))
    depth = np.zeros(count + points, np.int32)
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
            is_slice = at < count
            while until and (
                until[-1] < begin or (is_slice and (until[-1] <= begin or until[-1] < stop))
            ):
                until.pop()
                stack.pop()
            found.append(stack[-1] if stack else -1)
            deep.append(len(stack))
            if is_slice:
                stack.append(at)
                until.append(stop)
        parent[block] = found
        depth[block] = deep
    return depth[:count], parent[:count], parent[count:]


def next_slices(group: Groups, start: I64, end: I64, point_group: I64, point_ts: I64) -> I64:
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
        yield from zip(block.tolist(), *(column[block].tolist() for column in columns), strict=True)
