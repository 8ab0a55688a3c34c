"""Skipping slices: short ones, and calls of functions, whose callers take over their callees."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fxframework.analysis.account import account
from fxframework.errors import UsageError
from fxframework.model.capture import Capture
from fxframework.model.selection import Selection

from .calls_of import Call, Given, nested_calls

# The inner calls come before the outer ones, as complete events do in a trace.
INSIDE_OUT = [
    Call("leaf", 20, 10, parent=1, depth=2),
    Call("middle", 15, 30, parent=3, depth=1),
    Call("leaf", 50, 40, parent=3, depth=1),
    Call("outer", 10, 100),
    Call("open", 200, -1),
    Call("leaf", 210, 5, parent=4, depth=1),
]


def shape(capture: Capture) -> list[tuple[str | None, int, int]]:
    table = capture.table("slices")
    return list(
        zip(
            table.texts("name"),
            table.array("parent").tolist(),
            table.array("depth").tolist(),
            strict=True,
        )
    )


def test_callers_take_over_the_callees_of_an_excluded_function() -> None:
    part = Given(INSIDE_OUT).select(Selection(exclude_functions=("mid*",)))
    assert shape(part) == [
        ("leaf", 3, 1), ("leaf", 3, 1), ("outer", -1, 0), ("open", -1, 0), ("leaf", 4, 1)
    ]  # fmt: skip
    own = {entry.function.name: entry.spread.own for entry in account(part).entries}
    assert own == {"leaf": 55, "outer": 100 - 10 - 40, "open": 0}
    assert part.skipped_counts() == {"calls of excluded functions": 1}


def test_slices_that_enclose_a_long_one_or_never_ended_are_not_skipped() -> None:
    longer_inside = [
        Call("brief", 0, 5),
        Call("briefer", 1, 2, parent=0, depth=1),
        Call("long", 2, 50, parent=1, depth=2),  # it ends after what encloses it
        Call("brief", 60, 5),
    ]
    part = Given(longer_inside).select(Selection(min_duration_ns=10))
    assert shape(part) == [("brief", -1, 0), ("briefer", 0, 1), ("long", 1, 2)]
    part = Given(INSIDE_OUT).select(Selection(min_duration_ns=40))
    assert [name for name, _, _ in shape(part)] == ["leaf", "outer", "open"]
    assert part.skipped_counts() == {"short slices": 3}


def test_only_slices_of_the_part_count_as_skipped() -> None:
    part = Given(INSIDE_OUT).select(Selection(min_duration_ns=40, stop_ns=20))
    assert part.skipped_counts() == {"short slices": 1}


@given(calls=nested_calls(), least=st.integers(0, 30), name=st.sampled_from("fgh"))
def test_skipping_is_what_a_walk_over_the_parents_says(
    calls: list[Call], least: int, name: str
) -> None:
    excluded = {row for row, call in enumerate(calls) if call.name == name}
    short = {row for row, call in enumerate(calls) if 0 <= call.dur < least} - excluded

    def around(row: int) -> list[int]:
        rows = []
        while (row := calls[row].parent) >= 0:
            rows.append(row)
        return rows

    for row in set(range(len(calls))) - short - excluded:
        short -= set(around(row))
    skipped = short | excluded
    capture = Given(calls)
    if not excluded:
        with pytest.raises(UsageError, match="there is no function"):
            capture.select(Selection(exclude_functions=(name,)))
    names = (name,) if excluded else ()
    part = capture.select(Selection(min_duration_ns=least, exclude_functions=names))
    expected = []
    for row, call in enumerate(calls):
        if row not in skipped:
            kept = [each for each in around(row) if each not in skipped]
            depth = call.depth - len(around(row)) + len(kept)
            expected.append((call.name, next(iter(kept), -1), depth))
    assert shape(part) == expected


def test_parents_in_a_circle_come_to_an_end() -> None:
    circle = [Call("f", parent=1), Call("f", parent=0), Call("g", parent=0, depth=2)]
    part = Given(circle).select(Selection(exclude_functions=("f",)))
    assert shape(part)[0][:2] == ("g", -1)
    part = Given(circle).select(Selection(min_duration_ns=2, exclude_functions=("g",)))
    assert not shape(part)


def test_a_length_is_not_negative() -> None:
    with pytest.raises(UsageError, match="min_duration_ns is -1"):
        Selection(min_duration_ns=-1)
