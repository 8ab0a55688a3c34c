"""Slots: who gets which index, when the indexes run out, and that what was tentative is undone."""

from __future__ import annotations

import hypothesis
import pytest
from hypothesis import strategies as st

from fx_trace.write.slots import POLICIES, Slots
from fxframework.errors import UsageError

from ...cases import cases

VALUES = st.sampled_from("abcdef")
STEPS = st.lists(st.tuples(st.sampled_from(["use", "use", "use", "put"]), VALUES), max_size=20)
LIMITS = st.integers(1, 4)


def use(slots: Slots[str], value: str) -> int:
    """What a writer does with a value: its slot, or a new one."""
    return slots.index.get(value) or slots.take(value)


def play(slots: Slots[str], steps: list[tuple[str, str]]) -> list[int]:
    out = []
    for number, (what, value) in enumerate(steps):
        if what == "put":
            slots.put(number % slots.limit + 1, value)
        else:
            out.append(use(slots, value))
    return out


def test_allocate_gives_each_its_own_until_there_are_none() -> None:
    slots: Slots[str] = Slots(3, "allocate")
    assert [use(slots, value) for value in "abacdea"] == [1, 2, 1, 3, 0, 0, 1]
    assert slots.evictions == 0
    assert len(slots) == 3


def test_reuse_takes_the_one_that_was_given_first() -> None:
    slots: Slots[str] = Slots(3, "reuse")
    assert [use(slots, value) for value in "abcdbeaf"] == [1, 2, 3, 1, 2, 2, 3, 1]
    assert slots.index == {"e": 2, "a": 3, "f": 1}
    assert slots.evictions == 4
    assert slots.evicted == "d"


def test_inline_gives_none_but_keeps_what_was_put() -> None:
    slots: Slots[str] = Slots(3, "inline")
    assert use(slots, "a") == 0
    slots.put(2, "a")
    assert use(slots, "a") == 2
    assert use(slots, "b") == 0


def test_an_index_that_was_put_is_not_given_to_another() -> None:
    slots: Slots[str] = Slots(4, "allocate")
    slots.put(1, "mine")
    slots.put(3, "too")
    assert [use(slots, value) for value in "abc"] == [2, 4, 0]
    assert slots.index["mine"] == 1
    assert slots.index["too"] == 3


def test_put_replaces_what_stood_there() -> None:
    slots: Slots[str] = Slots(4, "allocate")
    assert use(slots, "a") == 1
    slots.put(1, "b")
    assert slots.index == {"b": 1}
    assert (slots.evictions, slots.evicted) == (1, "a")
    assert use(slots, "a") == 2


@cases("stop", ["close", "paused"])
def test_one_that_gives_no_more_keeps_what_it_gave(stop: str) -> None:
    slots: Slots[str] = Slots(4, "reuse")
    assert use(slots, "a") == 1
    if stop == "close":
        slots.close()
    else:
        slots.paused = True
    assert use(slots, "a") == 1
    assert use(slots, "b") == 0
    slots.paused = False
    assert use(slots, "b") == (0 if stop == "close" else 2)


def test_a_dropped_value_has_no_slot_and_may_be_dropped_again() -> None:
    slots: Slots[str] = Slots(4, "allocate")
    use(slots, "a")
    slots.drop("a")
    slots.drop("a")
    assert slots.index == {}
    assert len(slots) == 0


def test_an_unknown_policy_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(UsageError, match=r"alocate.*allocate") as told:
        Slots(3, "alocate")  # type: ignore[arg-type]
    assert told.value.remedy is not None
    assert all(policy in told.value.remedy for policy in POLICIES)


@hypothesis.given(LIMITS, st.sampled_from(POLICIES), STEPS)
def test_two_values_never_share_a_slot(
    limit: int, policy: str, steps: list[tuple[str, str]]
) -> None:
    slots: Slots[str] = Slots(limit, policy)  # type: ignore[arg-type]
    meaning: dict[int, str] = {}
    for number, (what, value) in enumerate(steps):
        if what == "put":
            index = number % limit + 1
            slots.put(index, value)
        else:
            known = value in slots.index
            index = use(slots, value)
            if known or not index:
                assert not index or meaning[index] == value
                continue
        assert 1 <= index <= limit
        meaning[index] = value
        # What a reader that hears of every registration knows.
        assert all(meaning[where] == who for who, where in slots.index.items())
        assert len(slots) == len(meaning)


@hypothesis.given(LIMITS, st.sampled_from(POLICIES), STEPS, STEPS, STEPS)
def test_what_was_not_kept_is_as_if_it_had_not_been(
    limit: int,
    policy: str,
    before: list[tuple[str, str]],
    tentative: list[tuple[str, str]],
    after: list[tuple[str, str]],
) -> None:
    slots: Slots[str] = Slots(limit, policy)  # type: ignore[arg-type]
    other: Slots[str] = Slots(limit, policy)  # type: ignore[arg-type]
    play(slots, before)
    play(other, before)
    slots.keep()
    play(slots, tentative)
    slots.undo()
    assert slots.index == other.index
    assert len(slots) == len(other)
    assert play(slots, after) == play(other, after)
    assert slots.index == other.index
