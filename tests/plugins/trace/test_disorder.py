"""Events that step back in time nest alike, sorted at once or in runs that are merged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fx_trace.read import match
from fx_trace.read.capture import TraceCapture
from fx_trace.read.steps_back import StepsBack
from fxframework.io.spill import Spill
from fxframework.kernels.nesting import BEGIN, END, NEVER_ENDS, OTHER, SPAN
from fxframework.kit import runs
from fxframework.kit.runs import SortedRuns
from fxframework.wire import blocks

from ...cases import cases
from .test_tables import arg, built, complete, event, over

KINDS = (
    *("duration_complete",) * 4,
    "duration_begin",
    "duration_end",
    "async_begin",
    "async_end",
    "flow_begin",
    "flow_end",
    "instant",
)
disorder = st.lists(
    st.tuples(st.sampled_from(KINDS), st.integers(1, 12), st.integers(-1, 9), st.integers(1, 2)),
    max_size=40,
)


def in_small_runs(patch: pytest.MonkeyPatch, run: int = 5) -> None:
    """Few rows in a run and in a window, and few events in a part of a file."""
    patch.setattr(runs, "RUN", run)
    patch.setattr(runs, "FENCE", 2)
    patch.setattr(blocks, "BLOCK_BYTES", 100)


def found_in(capture: TraceCapture) -> tuple[dict[str, dict[str, list[Any]]], list[Any]]:
    """All rows of all tables, read in batches, and the findings."""
    tables: dict[str, dict[str, list[Any]]] = {}
    for name in ("slices", "flows", "instants", "args", "threads"):
        columns = tables.setdefault(name, {})
        for batch in capture.batches(name):
            for column in batch.columns:
                columns.setdefault(column, []).extend(batch.array(column).tolist())
    findings = [(each.code, each.offset, each.message) for each in capture.diagnostics]
    return tables, [*findings, sorted(capture.diagnostics.counts.items())]


def trace_of(events: list[tuple[str, int, int, int]], *rates: dict[str, Any]) -> bytes:
    """The bytes of these events, the second half behind the ``rates``."""
    made = []
    for kind, time, length, place in events:
        where: dict[str, Any] = {"thread": [1, place], "args": [arg("at", "int32", time)]}
        if kind == "duration_complete":
            made.append(complete(time, time + length, f"{length}", **where))
        elif "async" in kind or "flow" in kind:
            made.append(event(kind, time, "id", id=length % 3, **where))
        else:
            made.append(event(kind, time, "other", **where))
    half = len(made) // 2
    return built(*made[:half], *rates, *made[half:])


@given(disorder)
def test_runs_give_what_one_sort_gives(events: list[tuple[str, int, int, int]]) -> None:
    data = trace_of(events)
    expected = found_in(over(data))
    with pytest.MonkeyPatch.context() as patch:
        in_small_runs(patch)
        patch.setattr(TraceCapture, "fits_memory", False)
        assert found_in(over(data)) == expected


# A begin that is alone in its block is between two complete events of its moment.
@example(
    [
        ("duration_complete", 1, 0, 1),
        ("duration_begin", 1, 0, 1),
        ("duration_complete", 1, 1, 1),
    ],
    False,
    10**9,
)
@given(disorder, st.booleans(), st.sampled_from([10**9, 3 * 10**9, 1000]))
def test_events_are_matched_alike_in_small_blocks(
    events: list[tuple[str, int, int, int]], in_order: bool, rate: int
) -> None:
    if in_order:
        events = sorted(events, key=lambda each: each[1])
    data = trace_of(events, {"record": "initialization", "ticks_per_second": rate})
    capture = over(data)
    capture.first_pass(whole=True)
    expected = found_in(capture)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK_BYTES", 64)
        capture = over(data)
        capture.first_pass(whole=True)
        assert found_in(capture) == expected


def nesting(capture: TraceCapture) -> list[Any]:
    """Name, time, length, depth and what is around it of each slice and flow, in order of time."""
    slices, flows = capture.table("slices"), capture.table("flows")
    names = [*slices.texts("name"), None]
    return sorted(
        [
            *zip(
                slices.array("ts").tolist(),
                slices.texts("name"),
                slices.array("dur").tolist(),
                slices.array("depth").tolist(),
                (names[row] for row in slices.array("parent").tolist()),
                strict=True,
            ),
            *zip(
                flows.array("ts").tolist(),
                flows.texts("name"),
                (names[row] for row in flows.array("slice").tolist()),
                strict=True,
            ),
        ],
        key=lambda row: row[:2],
    )


@pytest.mark.parametrize("others", [False, True])
def test_events_in_any_order_nest_as_those_in_order_of_time(others: bool) -> None:
    made = []
    for number in range(900):
        at, where = 100 * number, {"thread": [1, 2 + number % 3]}
        made.append((at + 1, complete(at + 1, at + 90, f"outer {number}", **where)))
        made.append((at + 2, complete(at + 2, at + 40, f"inner {number}", **where)))
        if others:
            made.append((at + 3, event("async_begin", at + 3, f"op {number % 7}", id=5, **where)))
            made.append((at + 4, event("flow_begin", at + 4, f"flow {number}", id=number, **where)))
            made.append((at + 5, event("duration_begin", at + 5, f"begun {number}", **where)))
            made.append((at + 6, event("instant", at + 6, "moment", **where)))
            made.append((at + 7, event("duration_end", at + 7, f"begun {number}", **where)))
            made.append((at + 9, event("async_end", at + 9, f"op {number % 7}", id=5, **where)))
    expected = nesting(over(built(*(one for _, one in made))))
    shuffled = [made[at][1] for at in np.random.default_rng(1).permutation(len(made))]
    assert nesting(over(built(*shuffled))) == expected


@cases("count", [0, 1, 4, 5, 6, 200])
@cases("latest", [0, 3, 10**6])
def test_windows_have_each_time_once(
    monkeypatch: pytest.MonkeyPatch, count: int, latest: int
) -> None:
    in_small_runs(monkeypatch)
    time = np.random.default_rng(count + latest).integers(0, latest + 1, count)
    rows = SortedRuns()
    for some in np.array_split(np.arange(count), 3):
        rows.add({"time": time[some], "row": some.astype(np.int32)})
    found: list[list[int]] = [[], []]
    last = -1
    for columns, order in rows.windows():
        times = columns["time"][order]
        assert last < times[0]
        last = times[-1]
        found[0] += times.tolist()
        found[1] += columns["row"][order].tolist()
    expected = np.argsort(time, kind="stable")
    assert found == [time[expected].tolist(), expected.tolist()]


def test_a_window_holds_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    in_small_runs(monkeypatch, run=50)
    rows = SortedRuns()
    rows.add({"time": np.random.default_rng(1).permutation(1000)})
    # Each of the 20 runs adds at most the rows between two of its fences.
    assert max(order.size for _, order in rows.windows()) <= 20 + 20 * 2


def test_results_grow_with_the_parts_so_that_many_are_in_files(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps = []

    class Watched(Spill):
        def grow(self, size: int) -> Any:
            steps.append(size - self.array.size)
            return super().grow(size)

    in_small_runs(monkeypatch)
    monkeypatch.setattr(TraceCapture, "fits_memory", False)
    monkeypatch.setattr(match, "Spill", Watched)
    data = built(*(complete(100 - at, 101 + at, "around the last one") for at in range(50)))
    over(data).scan()
    assert max(steps) <= 4


# --- Where times step back -----------------------------------------------------------------------

STEPPING = st.lists(
    st.tuples(st.sampled_from([BEGIN, END, OTHER, SPAN]), st.integers(0, 2), st.integers(0, 9),
              st.integers(0, 5)),
    max_size=30,
)  # fmt: skip
"""What events are, their thread, time, and when they end."""


@given(STEPPING, st.integers(1, 4))
def test_the_first_step_back_is_found(events: list[tuple[int, int, int, int]], parts: int) -> None:
    events = [(what, thread, time + number // 3, time + end) for number, (what, thread, time, end)
              in enumerate(events)]  # fmt: skip
    expected = -1
    last: dict[int, tuple[int, int]] = {}  # time of a thread, and end of the slice that began then
    for number, (what, thread, time, end) in enumerate(events):
        last_time, last_end = last.get(thread, (-1, NEVER_ENDS))
        if time > last_time:
            last_end = NEVER_ENDS
        elif time < last_time or (what == SPAN and end > last_end):
            expected = number
            break
        if what in {BEGIN, SPAN}:
            last_end = end if what == SPAN else NEVER_ENDS
        last[thread] = time, last_end
    steps_back, found, done = StepsBack(), -1, 0
    for part in np.array_split(np.array(events, np.int64).reshape(-1, 4), parts):
        what, threads = part[:, 0].astype(np.uint8), part[:, 1].astype(np.int32)
        ends = part[:, 3].copy() if (what == SPAN).any() else None
        place = steps_back.first(what, threads, part[:, 2].copy(), ends, 3)
        if place >= 0:
            found = done + place
            break
        done += len(part)
    assert found == expected
