"""The nesting of slices, held against a list of the open ones of each thread; and its inverse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fxframework.kernels.nesting import (
    ANY_NAME,
    BEGIN,
    END,
    NEVER_ENDS,
    OTHER,
    SPAN,
    Nesting,
    unfolded,
)
from fxframework.kernels.stacks import Stacks

Event = tuple[int, int, int]
"""What it is, its name, its thread."""
EVENTS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(0, 1)), max_size=80)


def nested(events: list[Event], parts: int = 2) -> tuple[list[Any], list[Any], Any]:
    """Return depth, parent and what is closed of each event, the unwound slices, and the nesting.

    Slices have one value, the number of the event that begins them.
    """
    columns = [np.array([event[n] for event in events], kind)
               for n, kind in enumerate(("u1", "u4", "i4"))]  # fmt: skip
    nesting = Nesting(2, values=1)
    found: list[Any] = []
    inner: list[Any] = []
    for part in np.array_split(np.arange(len(events)), parts):
        what, names, threads = (column[part] for column in columns)
        nesting.nest(what, threads, names, part[:, None])
        results = nesting.depths, nesting.parents, nesting.closes, nesting.values[:, 0]
        found += zip(*(each.tolist() for each in results), strict=True)
        for event, row, name, time in nesting.unwound.tolist():
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
            rows += 1
        elif what == END and name in [each[1] for each in mine]:
            while mine[-1][1] != name:
                unwound.append((event, *mine.pop()))
            closed, _, time = mine.pop()
            depth, parent = len(mine), mine[-1][0] if mine else -1
        found.append((depth, parent, closed, time))
    return found, unwound, sorted(time for mine in open_slices for _, _, time in mine)


def check(events: list[Event]) -> None:
    found, unwound, nesting = nested(events)
    wanted = expected(events)
    assert (found, unwound) == wanted[:2]
    assert sorted(nesting.open_values()[:, 0].tolist()) == wanted[2]


@given(EVENTS)
def test_slices_nest_as_lists_of_open_ones_do(events: list[Event]) -> None:
    check(events)


def test_slices_deeper_than_are_looked_through_one_by_one() -> None:
    down = [(BEGIN, name, 0) for name in range(1, 200)]
    absent = [(END, 5000, 0), (OTHER, 7, 0)]
    up = [(END, name, 0) for name in range(200, 0, -3)]
    check([*down, *absent, *down, *absent, *up, *up, *absent])


@given(EVENTS, st.integers(0, 3))
def test_stacks_are_the_names_of_the_slices_around(events: list[Event], deepest: int) -> None:
    expected: list[tuple[int, ...]] = []
    open_names: list[list[int]] = [[], []]
    nesting, stacks = Nesting(2), Stacks(deepest)
    found: list[int] = []
    for part in np.array_split(np.array(events, np.int64).reshape(-1, 3), 2):
        what, names, threads = (
            np.ascontiguousarray(column, kind)
            for column, kind in zip(part.T, ("u1", "u4", "i4"), strict=True)
        )
        nesting.nest(what, threads, names)
        found += stacks.add(nesting, what, names).tolist()
    for what, name, thread in events:
        mine, stack = open_names[thread], ()
        if what == BEGIN:
            mine.append(name)
        if what == BEGIN or (what == END and name in mine):
            while what == END and mine[-1] != name:
                mine.pop()
            stack = tuple(mine[: deepest + 1] if deepest else mine)
        if what == END and stack:
            mine.pop()
        expected.append(stack)
    chains: list[tuple[int, ...]] = []
    for name, below in zip(stacks.names.tolist(), stacks.below.tolist(), strict=True):
        chains.append((*(chains[below] if below >= 0 else ()), name))
    assert [chains[stack] if stack >= 0 else () for stack in found] == expected


def test_columns_and_threads_are_checked() -> None:
    empty, thread = np.zeros(1, np.uint8), np.array([5], np.int32)
    one, name = np.zeros(1, np.int64), np.zeros(1, np.uint32)
    with pytest.raises(IndexError):
        Nesting(2).nest(empty, thread, name)
    with pytest.raises(ValueError, match="lengths"):
        Nesting(9).nest(empty, thread, name, rows=one[:0])
    with pytest.raises(ValueError, match="values"):
        Nesting(9).nest(empty, thread, name, one[:, None])
    with pytest.raises(ValueError, match="times"):
        Nesting(9).nest(empty, thread, name, ends=one)
    with pytest.raises(ValueError, match="ends"):
        Nesting(9).nest(empty + np.uint8(SPAN), thread, name, times=one)
    with pytest.raises(IndexError):
        unfolded(one + 1, one.astype(np.int32), one, 1)
    with pytest.raises(ValueError, match="lengths"):
        unfolded(one, one.astype(np.int32), one, 1, one, one[:0])


@given(EVENTS)
def test_unfolding_is_the_inverse_of_nesting(events: list[Event]) -> None:
    """What nests comes back as it was, but for ends that closed nothing."""
    found, unwound, _ = nested(events)
    begins = [event for event, (what, _, _) in enumerate(events) if what == BEGIN]
    length = np.full(len(begins), -1)
    for event, (_, _, row, time) in enumerate(found):
        if row >= 0:
            length[row] = event - time
    for event, row, _, time in unwound:
        length[row] = event - time
    thread = np.array([events[event][2] for event in begins], np.int32)
    depth = np.array([found[event][0] for event in begins], np.int64)
    start = np.array(begins, np.int64)
    rows, times, cut = unfolded(np.arange(start.size), thread, depth, 2, start, length)
    # A slice that never ends takes the ends of what is around it along.
    pairs = {(row, time) for row, time in zip(rows.tolist(), times.tolist(), strict=True)}
    assert {(row, time) for row, time in enumerate(begins)} <= pairs
    for row, nbytes in enumerate(length.tolist()):
        assert (nbytes >= 0) == any(each == ~row for each, _ in pairs)
        if nbytes >= 0 and not cut:
            assert (~row, begins[row] + nbytes) in pairs


def test_one_that_encloses_what_begins_behind_its_end_lasts_as_long() -> None:
    starts, lengths, depths = np.array([[0, 8, 9], [2, 5, 1], [0, 1, 1]])
    threads = np.zeros(3, np.int32)
    rows, times, cut = unfolded(np.arange(3), threads, depths, 1, starts, lengths)
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
    threads = np.zeros(start.size, np.int32)
    rows, times, cut = unfolded(np.arange(start.size), threads, depth, 1, start, length)
    moments = list(zip(rows.tolist(), times.tolist(), strict=True))
    assert (moments, cut) == unfolded_by_a_stack(slices)


TIMED = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from([1, 2, ANY_NAME]), st.integers(0, 1),
              st.integers(0, 2), st.integers(-1, 9)),
    max_size=60,
)  # fmt: skip
"""What an event is, its name, thread, time since the one before, and of a SPAN its length."""


def expected_of_timed(events: list[tuple[int, int, int, int, int]]) -> list[Any]:
    """Return parent, depth and what is closed, by event."""
    open_slices: list[list[tuple[int, int, int]]] = [[], []]  # row, name, end
    found, rows, now = [], 0, 0
    for what, name, thread, step, length in events:
        now += step
        mine = open_slices[thread]
        end = now + length if what == SPAN else NEVER_ENDS
        # One that ends when another begins does not enclose it; a point then is still in it.
        while what != END and mine and mine[-1][2] < now + (what != OTHER):
            mine.pop()
        closed = -1
        if what == END:
            fitting = [
                place
                for place, (_, other, until) in enumerate(mine)
                if until == NEVER_ENDS and (name == other or ANY_NAME in {name, other})
            ]
            if fitting:
                closed = mine[fitting[-1]][0]
                del mine[fitting[-1] :]
        found.append((mine[-1][0] if mine else -1, len(mine), closed))
        if what in {BEGIN, SPAN}:
            if end >= now:
                mine.append((rows, name, end))
            rows += 1
    return found


@given(TIMED, st.integers(0, 70))
def test_slices_with_an_end_close_by_themselves(
    events: list[tuple[int, int, int, int, int]], deep: int
) -> None:
    events = [(BEGIN, 1 + number % 2, 0, 0, 0) for number in range(deep)] + events
    what, names, threads, steps, lengths = (
        np.array([event[column] for event in events], kind)
        for column, kind in enumerate(("u1", "u4", "i4", "i8", "i8"))
    )
    times = np.cumsum(steps)
    nesting = Nesting(0, any_name=True)
    nesting.make_threads(2)
    found: list[Any] = []
    for part in np.array_split(np.arange(what.size), 2):
        nesting.nest(
            what[part], threads[part], names[part], None, times[part], (times + lengths)[part], part
        )
        results = nesting.parents, nesting.depths, nesting.closes
        found += zip(*(each.tolist() for each in results), strict=True)
    row_of = {
        number: row
        for row, number in enumerate(np.flatnonzero((what == BEGIN) | (what == SPAN)).tolist())
    }
    row_of[-1] = -1
    rows = [(row_of[parent], depth, row_of[closes]) for parent, depth, closes in found]
    assert rows == expected_of_timed(events)


def test_ends_that_close_nothing_do_not_go_down_many_slices() -> None:
    """An end is as fast below a hundred thousand slices as below none: it would take minutes."""
    many = 100_000
    spans = np.full(many, SPAN, np.uint8)
    thread, name, time = (
        np.zeros(many, np.int32),
        np.full(many, ANY_NAME, np.uint32),
        np.zeros(many, np.int64),
    )
    nesting = Nesting(1, any_name=True)
    nesting.nest(spans, thread, name, None, time, time + 5)
    nesting.nest(np.full(many, END, np.uint8), thread, name, None, time)
    assert (nesting.closes == -1).all()
    assert (nesting.depths == many).all()


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(-1, 12)), max_size=12))
def test_begins_and_ends_are_those_of_stacks(slices: list[tuple[int, int]]) -> None:
    expected: list[int] = []
    stacks: list[list[int]] = [[], [], []]
    for row, (thread, parent) in enumerate(slices):
        stack = stacks[thread]
        while stack and stack[-1] != parent:
            expected.append(~stack.pop())
        stack.append(row)
        expected.append(row)
    for thread in (0, 1, 2):
        expected += [~row for row in reversed(stacks[thread])]
    threads = np.array([thread for thread, _ in slices], np.int32)
    parents = np.array([parent for _, parent in slices], np.int64)
    events, _, _ = unfolded(np.arange(len(slices)), threads, parents, 3)
    assert events.tolist() == expected
