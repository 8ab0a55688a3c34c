"""Accounts, trees and graphs hold what the slices say, in whatever order these stand."""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from typing import Any

import attrs
import numpy as np
import pytest
from calls_of import Call, Given, Numbered, nested_calls, own_time, path_of
from hypothesis import given
from hypothesis import strategies as st

from fxframework.analysis.account import account
from fxframework.analysis.calls import Calls, _Distinct
from fxframework.analysis.graph import call_graph, difference, dot, dot_of_difference
from fxframework.analysis.slowest import slowest
from fxframework.analysis.tree import call_tree, merged
from fxframework.errors import UsageError
from fxframework.model.selection import Selection

from ..cases import cases

CAPTURES = [Given, Numbered]
UNIT = {Given: 1, Numbered: 3}

LOOP = [
    Call("f", 0, 100),
    Call("g", 10, 50, parent=0, depth=1),
    Call("f", 20, 30, parent=1, depth=2),
    Call("f", 200, 7),
    Call("g", 300, -1),
    Call("f", 310, 5, parent=4, depth=1),
]


# --- Account -----------------------------------------------------------------------------------


@pytest.mark.parametrize("make", CAPTURES)
@given(calls=nested_calls(), per_thread=st.booleans())
def test_an_account_is_what_counting_gives(
    make: type[Given], calls: list[Call], per_thread: bool
) -> None:
    groups: dict[tuple[str, str | None], list[int]] = defaultdict(list)
    names = {0: "main (100)", 1: "thread_101", 2: "thread_102"}
    for place, call in enumerate(calls):
        groups[call.name, names[call.thread] if per_thread else None].append(place)
    found = account(make(calls), per_thread=per_thread)
    unit = UNIT[make]
    assert {(entry.function.name, entry.thread) for entry in found.entries} == set(groups)
    for entry in found.entries:
        places = groups[entry.function.name, entry.thread]
        times = sorted(calls[place].dur for place in places if calls[place].dur >= 0)
        spread = entry.spread
        assert (spread.count, spread.unfinished) == (len(times), len(places) - len(times))
        assert spread.sum == unit * sum(times)
        assert spread.own == unit * sum(own_time(calls, place) for place in places)
        if times:
            ranks = [0, len(times) // 2, int(len(times) * 0.9), int(len(times) * 0.99), -1]
            shown = [spread.min, spread.median, spread.p90, spread.p99, spread.max]
            assert shown == [unit * times[rank] for rank in ranks]
            assert spread.deviation == pytest.approx(unit * statistics.pstdev(times))
        else:
            assert spread.min is spread.median is spread.max is spread.deviation is None


@given(
    base=st.sampled_from([0, 10**9, 2**52]),
    lengths=st.lists(st.integers(0, 1000), min_size=1, max_size=60),
    block=st.sampled_from([1, 7, 1 << 14]),
)
def test_deviations_of_long_calls_are_exact(base: int, lengths: list[int], block: int) -> None:
    """A sum of squares would lose all of it: 2^52 squared is 2^104."""
    calls = [Call("f" if at % 3 else "g", at, base + length) for at, length in enumerate(lengths)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fxframework.analysis.spread.BLOCK", block)
        entries = account(Given(calls)).entries
    for entry in entries:
        own = [
            length
            for at, length in enumerate(lengths)
            if (at % 3 > 0) == (entry.function.name == "f")
        ]
        assert entry.spread.deviation == pytest.approx(statistics.pstdev(own), abs=1e-6)


@pytest.mark.parametrize("make", CAPTURES)
@given(data=st.data())
def test_the_slowest_of_many_slices_are_the_first_of_an_account(
    make: type[Given], data: st.DataObject
) -> None:
    calls = data.draw(forests())
    capture, top = make(calls), data.draw(st.integers(1, 4))
    entries = account(capture).sorted("sum", descending=True)
    ended = [entry for entry in entries if entry.spread.count]
    batches = Given.batches
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fxframework.analysis.slowest.WHOLE_ROWS", -1)
        patch.setattr(Given, "batches", lambda self, name: batches(self, name, 3))
        found = slowest(capture, top)
    assert found.count == len(ended)
    assert found.per_second == account(capture).per_second
    assert [attrs.astuple(one) for one in found.names] == [
        (e.function.name, e.spread.count, e.spread.sum, e.spread.max, None, e.asynchronous)
        for e in ended[:top]
    ]


@pytest.mark.parametrize("make", CAPTURES)
@given(calls=nested_calls(), top=st.integers(1, 4))
def test_the_slowest_took_the_most_time_by_themselves_and_recursion_counts_once(
    make: type[Given], calls: list[Call], top: int
) -> None:
    own: Counter[str] = Counter()
    outermost: dict[str, list[int]] = defaultdict(list)
    for place, call in enumerate(calls):
        own[call.name] += own_time(calls, place)
        above = call.parent
        while above >= 0 and calls[above].name != call.name:
            above = calls[above].parent
        if above < 0 and call.dur >= 0:
            outermost[call.name].append(call.dur)
    order = sorted(outermost, key=lambda name: (-own[name], -sum(outermost[name]), name))
    unit = UNIT[make]
    found = slowest(make(calls), top)
    assert found.count == len(order)
    assert sorted((one.own, one.sum) for one in found.names) == sorted(
        (unit * own[name], unit * sum(outermost[name])) for name in order[:top]
    )
    for one in found.names:
        times = outermost[one.name]
        assert one.count == len(times)
        assert one.sum == unit * sum(times)
        assert one.max == unit * max(times)
        assert one.own == unit * own[one.name]


@given(calls=nested_calls())
def test_recursion_is_found_whatever_calls_are_between(calls: list[Call]) -> None:
    only, outer = Counter[str](), Counter[str]()
    recursive: set[int] = set()
    for place, call in enumerate(calls):
        above, outermost = call.parent, -1
        while above >= 0:
            if calls[above].name == call.name:
                outermost = above
            above = calls[above].parent
        if outermost >= 0:
            recursive |= {place, outermost}
        elif call.dur >= 0:
            outer[call.name] += call.dur
    for place in recursive:
        only[calls[place].name] += calls[place].dur >= 0
    found = account(Given(calls), recursion="only")
    counted = {entry.function.name: entry.spread.count for entry in found.entries}
    assert +Counter(counted) == +only
    found = account(Given(calls), recursion="outermost")
    assert +Counter({entry.function.name: entry.spread.sum for entry in found.entries}) == +outer


def test_unmatched_ends_are_counted_with_their_function() -> None:
    instants = [("unmatched_exit", "f"), ("unmatched_exit", "lost"), ("other", "g")]
    found = account(Given(LOOP, instants))
    assert {entry.function.name: entry.unmatched for entry in found.entries} == {
        "f": 1, "g": 0, "lost": 1
    }  # fmt: skip


@cases(
    ("by", "descending", "names"),
    [("sum", True, "fg"), ("sum", False, "gf"), ("count", True, "fg"), ("func", False, "fg"),
     ("99p", False, "gf"), ("self", True, "fg"), ("funcid", True, "gf")],
)  # fmt: skip
def test_it_is_sorted_by_any_figure(by: str, descending: bool, names: str) -> None:
    found = account(Numbered(LOOP)).sorted(by, descending=descending)
    assert "".join(entry.function.name for entry in found) == names


@pytest.mark.parametrize("descending", [False, True])
def test_sorted_by_function_they_are_in_the_order_of_their_names(descending: bool) -> None:
    names = ["m", "z", "a", "Z", "", "é", "b"]  # not the order of the account
    found = account(Given([Call(name, at, 1) for at, name in enumerate(names)]))
    order = [entry.function.name for entry in found.sorted("func", descending=descending)]
    assert order == sorted(names, reverse=descending)
    top = found.sorted("func", descending=descending, top=2)
    assert [entry.function.name for entry in top] == order[:2]


def test_calls_are_told_apart_by_any_column() -> None:
    calls = [Call("f", kind=0), Call("g", kind=0), Call("f", kind=3, thread=1)]
    by_kind = {e.function.name: e.spread.count for e in account(Given(calls), by="kind").entries}
    assert by_kind == {"begin_end": 2, "call": 1}
    by_id = account(Numbered(calls), by="id").entries
    assert [(e.function.id, e.function.source) for e in by_id] == [(10, "f.c:3:1"), (20, "g.c:3:1")]
    with pytest.raises(UsageError, match="not calls of numbered"):
        account(Given(calls), by="id")
    with pytest.raises(UsageError, match="did you mean 'name'"):
        account(Given(calls), by="nam")


def test_asynchronous_slices_are_accounted_for_apart() -> None:
    calls = [Call("a", 0, 9, kind=2), Call("f", 0, 10), Call("a", 1, 2, 0, kind=2),
             Call("f", 5, 20, kind=2), Call("g", 2, 3, parent=1)]  # fmt: skip
    found = account(Given(calls, [("unmatched_exit", "f")]))
    assert found.asynchronous == 3
    figures = [(e.function.name, e.asynchronous, e.spread.own, e.unmatched) for e in found.entries]
    assert figures == [
        ("a", True, 9, 0), ("f", False, 7, 1), ("f", True, 20, 0), ("g", False, 3, 0),
    ]  # fmt: skip
    assert [e.function.name for e in found.sorted("sum", descending=True)] == ["f", "a", "f", "g"]
    outermost = account(Given(calls), recursion="outermost")
    assert [e.spread.sum for e in outermost.entries] == [9, 10, 20, 3]
    tree, graph = call_tree(Given(calls)), call_graph(Given(calls))
    assert (tree.asynchronous, graph.asynchronous) == (3, 3)  # left out of stacks
    assert int(tree.count.sum()) == 2


def test_lengths_too_long_to_add_up_do_not_wrap() -> None:
    found = account(Given([Call("f", 0, (1 << 63) - 1), Call("f", 0, (1 << 63) - 1)]))
    assert found.entries[0].spread.sum > 1 << 61


# --- Parts -------------------------------------------------------------------------------------


def test_in_a_part_the_nearest_call_around_it_is_the_caller() -> None:
    part = Given(LOOP).select(Selection(functions=("f",)))
    calls = Calls.of(part)
    assert calls.parent.tolist() == [-1, 0, -1, -1]
    found = account(part)
    assert [(e.function.name, e.spread.count, e.spread.own) for e in found.entries] == [
        ("f", 4, 100 - 30 + 30 + 7 + 5)
    ]
    assert account(part, recursion="outermost").entries[0].spread.sum == 100 + 7 + 5


def test_functions_are_chosen_by_patterns() -> None:
    capture = Given(LOOP, [("x", "g"), ("x", "k")])
    part = capture.select(Selection(functions=("g*",)))
    assert part.table("slices").texts("name") == ["g", "g"]
    assert part.table("instants").texts("name") == ["g"]
    with pytest.raises(UsageError, match="no function 'k'"):
        capture.select(Selection(functions=("k",)))


# --- Trees -------------------------------------------------------------------------------------


@given(calls=nested_calls(), per_thread=st.booleans(), room=st.sampled_from([1, 2, 4096]))
def test_a_tree_has_every_path(calls: list[Call], per_thread: bool, room: int) -> None:
    expected: dict[tuple[str, ...], list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    names = {0: "main (100)", 1: "thread_101", 2: "thread_102"}
    for place, call in enumerate(calls):
        root = names[call.thread] if per_thread else "all threads"
        sums = expected[(root, *path_of(calls, place))]
        sums[call.dur < 0] += 1
        sums[2] += max(call.dur, 0)
        sums[3] += own_time(calls, place)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fxframework.analysis.tree.ROOM", room)
        tree = call_tree(Given(calls), per_thread=per_thread)
    found = {}
    for node in range(len(tree.roots), len(tree)):
        path = tree.path(node)
        root = tree.name(int(tree.parent[path[0]]))
        found[root, *(tree.name(one) for one in path)] = [
            int(column[node]) for column in (tree.count, tree.unfinished, tree.total, tree.own)
        ]
    assert found == dict(expected)
    assert dict(tree.walk()) == dict(enumerate(tree.depths().tolist()))


@st.composite
def forests(draw: st.DrawFn) -> list[Call]:
    """Calls in any order, of which some are asynchronous: a caller may follow what it calls."""
    size = draw(st.integers(1, 25))
    place = draw(st.permutations(range(size)))
    calls = [Call("")] * size
    for number in range(size):
        above = draw(st.integers(-1, number - 1))
        calls[place[number]] = Call(
            draw(st.sampled_from("abc")),
            number,
            draw(st.integers(-1, 9)),
            thread=draw(st.integers(-1, 1)),
            parent=-1 if above < 0 else place[above],
            kind=draw(st.sampled_from([0, 0, 1, 2])),
        )
    return calls


@given(calls=forests(), rows=st.integers(1, 6), per_thread=st.booleans())
def test_a_tree_of_parts_is_that_of_all_calls(
    calls: list[Call], rows: int, per_thread: bool
) -> None:
    expected = call_tree(Given(calls), per_thread=per_thread)
    batches = Given.batches
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Given, "fits_memory", False)
        patch.setattr(Given, "batches", lambda self, name: batches(self, name, rows))
        found = call_tree(Given(calls), per_thread=per_thread)
    assert list(found.roots) == list(expected.roots)
    assert list(found.functions) == list(expected.functions)
    assert found.asynchronous == expected.asynchronous
    for column in ("parent", "function", "count", "unfinished", "total", "own"):
        assert np.array_equal(getattr(found, column), getattr(expected, column)), column


def test_calls_around_each_other_do_not_hang() -> None:
    calls = [Call("f", parent=1), Call("g", parent=0), Call("h", parent=2), Call("k", parent=99)]
    tree = call_tree(Given(calls))
    assert int(tree.count.sum()) == 4
    account(Given(calls), recursion="only")
    part = Given(calls).select(Selection(functions=("g",)))
    assert Calls.of(part).parent.tolist() == [-1]


def test_a_tree_of_limited_depth_keeps_all_time() -> None:
    calls = [Call("f", 0, 100 - at, parent=at - 1) for at in range(20)]
    tree = call_tree(Given(calls))
    flat = call_tree(Given(calls), depth=5)
    assert (len(flat), flat.deep, tree.deep) == (6, 15, 0)
    assert int(flat.own.sum()) == int(tree.own.sum()) == 100
    assert int(flat.count.sum()) == 20
    assert call_tree(Given(calls), depth=20).deep == 0


def test_trees_of_several_captures_add_up_by_name() -> None:
    trees = [call_tree(make(LOOP)) for make in (Given, Numbered)]
    both = merged([*trees, call_tree(Given([Call("new", 0, 9)]))])
    assert both.per_second == 1_000_000_000
    one = {
        both.name(node): int(both.total[node])
        for node in range(len(both))
        if both.parent[node] <= 0
    }
    assert one == {"all threads": 2 * 112 + 9, "f": 2 * 107, "g": 0, "new": 9}


# --- Graphs ------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", CAPTURES)
@given(calls=nested_calls())
def test_a_graph_has_every_call(make: type[Given], calls: list[Call]) -> None:
    graph = call_graph(make(calls))
    expected = Counter[tuple[str | None, str]]()
    for call in calls:
        expected[calls[call.parent].name if call.parent >= 0 else None, call.name] += 1
    names = {number: node.function.name for number, node in graph.nodes.items()}
    found = {
        (names.get(caller), names[callee]): spread.count + spread.unfinished
        for (caller, callee), spread in graph.edges.items()
    }
    assert found == dict(expected)


def test_numbers_of_nodes_are_ids_of_functions() -> None:
    assert list(call_graph(Numbered(LOOP)).nodes) == [10, 20]
    assert list(call_graph(Given(LOOP)).nodes) == [1, 2]


def test_dot_shows_figures_and_escapes_names() -> None:
    calls = [Call('a<b>|{"\\', 0, 500), Call("g", 1, 125, parent=0)]
    found = list(dot(call_graph(Given(calls)), edge_label="count", vertex_label="max"))
    assert found[0] == "digraph xray {"
    assert found[-1] == "}"
    assert 'F1 -> F2 [label="1" color="#FC8D59"];' in found  # half of the way: sqrt(125 / 500)
    assert 'F0 -> F1 [label="1" color="#7F0000"];' in found
    assert r'F1 [label="{a\<b\>\|\{\"\\|5.000000e-07}" color="#7F0000"];' in found


def test_nothing_is_labelled_or_coloured_by_none() -> None:
    plain = dict.fromkeys(("edge_label", "vertex_label", "edge_color", "vertex_color"), "none")
    assert list(dot(call_graph(Given([Call("f")])), **plain))[2:-1] == [
        "F0 -> F1 [];", 'F1 [label="{f}"];'
    ]  # fmt: skip


def test_a_difference_tells_what_grew_what_fell_and_what_is_new() -> None:
    before = call_graph(Given([Call("f", 0, 100), Call("g", 0, 10), Call("gone", 0, 5)]))
    after = call_graph(Numbered([Call("f", 0, 150), Call("g", 0, 5), Call("new", 0, 5)]))
    found = difference(before, after)
    change = {name: found.change(pair, "sum") for name, pair in found.nodes.items()}
    assert change == {"f": 0.5, "g": -0.5, "gone": -1.0, "new": math.inf}
    text = list(dot_of_difference(found))
    assert 'F1 [label="{f|+50.00%}" color="#F4A582"];' in text
    assert 'F2 [label="{g|-50.00%}" color="#A6DBA0"];' in text
    assert 'F3 [label="{gone|-100.00%}" color="#1B7837"];' in text
    assert 'F4 [label="{new|new}" color="#B2182B"];' in text


def test_a_kernel_takes_up_where_it_stopped() -> None:
    calls = [Call(f"f{at}", parent=at - 1) for at in range(50)][::-1]
    calls = [Call(one.name, parent=49 - one.parent if one.parent >= 0 else -1) for one in calls]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fxframework.analysis.tree.ROOM", 1)
        tree = call_tree(Given(calls))
    assert tree.depths().max() == 50


def test_distinct_numbers_of_batches_are_merged_in_proportion() -> None:
    """Keys of many batches: what is merged grows as n log n, whatever the keys are."""
    merged = 0

    class Counted(_Distinct):
        @staticmethod
        def _merged(left: Any, right: Any) -> Any:
            nonlocal merged
            merged += left.size + right.size
            return _Distinct._merged(left, right)

    for step in (1, 3, 64):
        merged, rows = 0, 512
        keys = Counted()
        for at in range(rows):
            keys.add(np.arange(step * at, step * at + 64))
        assert keys.all().tolist() == list(range(step * (rows - 1) + 64))
        assert merged <= 64 * rows * 12
    assert Counted().all().size == 0
