"""The nesting of slices, held against a list of the open ones of each thread; and its inverse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fxframework.kernels.nesting import BEGIN, END, OTHER, Nesting, unfolded

Event = tuple[int, int, int]
"""What it is, its name, its thread."""
EVENTS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(0, 1)), max_size=80)


def nested(events: list[Event], deepest: int, parts: int = 2) -> tuple[list[Any], list[Any], Any]:
    """Return depth, parent and what is closed of each event, the unwound slices, and the nesting.

    The time of an event is its number, as is its place.
    """
    columns = [np.array([event[n] for event in events], kind)
               for n, kind in enumerate(("u1", "u4", "i4"))]  # fmt: skip
    nesting = Nesting(2, deepest)
    found: list[Any] = []
    inner: list[Any] = []
    for part in np.array_split(np.arange(len(events)), parts):
        what, names, threads = (column[part] for column in columns)
        nesting.nest(what, threads, names, part, part, what)
        results = nesting.depths, nesting.parents, nesting.closes, nesting.times
        found += zip(*(each.tolist() for each in results), strict=True)
        for event, row, name, time, place, _, _ in nesting.unwound.tolist():
            assert time == place
            inner.append((int(part[event]), row, name, time))
    return found, inner, nesting


def expected(events: list[Event]) -> tuple[list[Any], list[Any], list[int]]:
    """Return the same, and the times of the slices that are open at the end, from lists."""
    open_slices: list[list[Any]] = [[], []]
    found, unwound, rows = [], [], 0
    for event, (what, name, thread) in enumerate(events):
        mine = open_slices[thread]
        closed, time = -1, 0
        depth, parent = len(mine), mine[-1][0] if mine else -1
        if what == BEGIN:
            mine.append((rows, name, event))
            rows, time = rows + 1, event
        elif what == END and name in [each[1] for each in mine]:
            while mine[-1][1] != name:
                unwound.append((event, *mine.pop()))
            closed, _, time = mine.pop()
            depth, parent = len(mine), mine[-1][0] if mine else -1
        found.append((depth, parent, closed, time))
    return found, unwound, sorted(time for mine in open_slices for _, _, time in mine)


def check(events: list[Event], deepest: int = 0) -> None:
    found, unwound, nesting = nested(events, deepest)
    wanted = expected(events)
    assert (found, unwound) == wanted[:2]
    assert sorted(nesting.open_places().tolist()) == wanted[2]
    parents = nesting.stack_parents
    assert (parents < np.arange(parents.size)).all()


@given(EVENTS, st.integers(0, 3))
def test_slices_nest_as_lists_of_open_ones_do(events: list[Event], deepest: int) -> None:
    check(events, deepest)


def test_slices_deeper_than_are_looked_through_one_by_one() -> None:
    down = [(BEGIN, name, 0) for name in range(1, 200)]
    absent = [(END, 5000, 0), (OTHER, 7, 0)]
    up = [(END, name, 0) for name in range(200, 0, -3)]
    check([*down, *absent, *down, *absent, *up, *up, *absent])


def test_stacks_are_those_of_the_names_around_a_slice() -> None:
    names = [1, 2, 3, 1, 2, 1]
    _, _, nesting = nested([(BEGIN, name, 0) for name in names], 3, parts=1)
    # Deeper than three slices they are those of the third.
    assert nesting.stacks.tolist() == [0, 1, 2, 3, 3, 3]
    assert nesting.stack_names.tolist() == [1, 2, 3, 1]


def test_columns_and_threads_are_checked() -> None:
    empty, thread = np.zeros(1, np.uint8), np.array([5], np.int32)
    one, name = np.zeros(1, np.int64), np.zeros(1, np.uint32)
    with pytest.raises(IndexError):
        Nesting(2).nest(empty, thread, name, one, one, empty)
    with pytest.raises(ValueError, match="lengths"):
        Nesting(9).nest(empty, thread, name, one, one[:0], empty)
    with pytest.raises(IndexError):
        unfolded(one + 1, one, one, one, one, 1)


@given(EVENTS)
def test_unfolding_is_the_inverse_of_nesting(events: list[Event]) -> None:
    """What nests comes back as it was, but for ends that closed nothing."""
    found, unwound, _ = nested(events, 0)
    begins = [event for event, (what, _, _) in enumerate(events) if what == BEGIN]
    length = np.full(len(begins), -1)
    for event, (_, _, row, time) in enumerate(found):
        if row >= 0:
            length[row] = event - time
    for event, row, _, time in unwound:
        length[row] = event - time
    thread = np.array([events[event][2] for event in begins], np.int64)
    depth = np.array([found[event][0] for event in begins], np.int64)
    start = np.array(begins, np.int64)
    rows, times, cut = unfolded(np.arange(start.size), thread, start, length, depth, 2)
    # A slice that never ends takes the ends of what is around it along.
    pairs = {(row, time) for row, time in zip(rows.tolist(), times.tolist(), strict=True)}
    assert {(row, time) for row, time in enumerate(begins)} <= pairs
    for row, nbytes in enumerate(length.tolist()):
        assert (nbytes >= 0) == any(each == ~row for each, _ in pairs)
        if nbytes >= 0 and not cut:
            assert (~row, begins[row] + nbytes) in pairs


def test_one_that_encloses_what_begins_behind_its_end_lasts_as_long() -> None:
    columns = np.array([[0, 0, 0], [0, 8, 9], [2, 5, 1], [0, 1, 1]])
    rows, times, cut = unfolded(np.arange(3), *columns, 1)
    assert rows.tolist() == [0, 1, ~1, 2, ~2, ~0]
    assert times.tolist() == [0, 8, 8, 9, 9, 9]
    assert cut == 2


def unfolded_by_a_stack(slices: list[tuple[int, int, int]]) -> tuple[list[tuple[int, int]], int]:
    """Return row and time of each begin and end (``~row``) of one thread, and how many are cut."""
    moments, open_rows, cut = [], list[int](), 0
    ends: dict[int, int] = {}
    latest = -(1 << 62)
    for row, (start, length, depth) in enumerate([*slices, (1 << 62, 0, 0)]):
        begin = max(start, latest)
        while open_rows and slices[open_rows[-1]][2] >= depth:
            over = open_rows.pop()
            cut += ends[over] > begin
            latest = max(latest, min(ends[over], begin))
            moments.append((~over, latest))
        if row == len(slices):
            return moments, cut
        around = ends[open_rows[-1]] if open_rows else 1 << 62
        until = max(start + length, begin)
        cut += until > around
        ends[row] = min(until, around)
        latest = begin
        moments.append((row, begin))
        open_rows.append(row)
    raise AssertionError


@given(
    st.lists(
        st.tuples(st.integers(-9, 9), st.integers(0, 9), st.integers(0, 4)), max_size=12
    )
)  # fmt: skip
def test_slices_that_overlap_are_cut_to_nest(slices: list[tuple[int, int, int]]) -> None:
    slices = sorted(slices, key=lambda slice_: slice_[0])
    start, length, depth = np.array(slices, np.int64).reshape(-1, 3).T.copy()
    rows, times, cut = unfolded(
        np.arange(start.size), np.zeros_like(start), start, length, depth, 1
    )
    moments = list(zip(rows.tolist(), times.tolist(), strict=True))
    assert (moments, cut) == unfolded_by_a_stack(slices)
