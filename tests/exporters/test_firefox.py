"""Profiles for the Firefox Profiler: their layout, times, stacks and markers."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from calls_of import Call, Given, nested_calls, own_time, path_of
from hypothesis import example, given
from hypothesis import strategies as st

import fxframework as fxf
from fxframework.exporters import firefox
from fxframework.model.capture import Capture

from ..cases import cases
from .test_profiles import LOOP, _OfToys, export

BOOT = Path(__file__).parents[2] / "examples" / "scenarios" / "boot.golden" / "boot.fxt"
COLORS = {"transparent", "purple", "green", "orange", "yellow", "lightblue", "blue", "brown",
          "magenta", "red", "lightred", "darkgrey", "grey"}  # fmt: skip
TABLES = {
    "stackTable": ("frame", "prefix"),
    "frameTable": ("address", "inlineDepth", "category", "subcategory", "func", "nativeSymbol",
                   "innerWindowID", "line", "column"),
    "funcTable": ("name", "isJS", "relevantForJS", "resource", "source", "lineNumber",
                  "columnNumber"),
    "resourceTable": ("lib", "name", "host", "type"),
    "nativeSymbols": ("libIndex", "address", "name", "functionSize"),
    "sources": ("id", "filename", "startLine", "startColumn", "sourceMapURL"),
}  # fmt: skip
"""Columns of the shared tables in version 61, as src/types/profile.ts of the profiler has them."""
THREAD = {"name", "isMainThread", "processName", "processType", "processStartupTime",
          "processShutdownTime", "registerTime", "unregisterTime", "pausedRanges",
          "showMarkersInTimeline", "pid", "tid", "samples", "markers"}  # fmt: skip


def check_profile(output: bytes) -> Any:
    """Check the layout of a profile, and that its indices are of what it has; return it."""

    def refuse(constant: str) -> None:
        raise ValueError(constant)  # NaN and Infinity are not JSON

    profile = json.loads(output, parse_constant=refuse)
    assert profile.keys() == {"meta", "libs", "pages", "counters", "shared", "threads"}
    meta, shared = profile["meta"], profile["shared"]
    assert meta["preprocessedProfileVersion"] == firefox.VERSION == 61
    assert meta["categories"][0] == {"name": "Other", "color": "grey", "subcategories": ["Other"]}
    assert {category["color"] for category in meta["categories"]} <= COLORS
    assert shared.keys() == {*TABLES, "stringArray"}
    for name, columns in TABLES.items():
        table = shared[name]
        assert table.keys() == {*columns, "length"}
        assert {len(table[column]) for column in columns} == {table["length"]}

    def check(indices: list[Any], count: int, *, none: Any = "not allowed") -> None:
        assert all(index == none or 0 <= index < count for index in indices)

    stacks, frames, functions = (shared[name] for name in [*TABLES][:3])
    check(stacks["frame"], frames["length"])
    assert all(prefix is None or 0 <= prefix < i for i, prefix in enumerate(stacks["prefix"]))
    check(frames["func"], functions["length"])
    check(frames["category"], len(meta["categories"]))
    check(functions["name"], len(shared["stringArray"]))
    check(functions["source"], shared["sources"]["length"], none=None)
    check(shared["sources"]["filename"], len(shared["stringArray"]))
    schemas = {schema["name"]: schema for schema in meta["markerSchema"]}
    for thread in profile["threads"]:
        assert thread.keys() == THREAD
        assert isinstance(thread["pid"], str)
        samples, markers = thread["samples"], thread["markers"]
        assert samples["weightType"] == "tracing-ms"
        assert samples["length"] > 0
        for table in (samples, markers):
            lengths = {len(column) for column in table.values() if isinstance(column, list)}
            assert lengths == {table["length"]}
        check(samples["stack"], stacks["length"], none=None)
        assert samples["time"] == sorted(samples["time"])
        assert min(samples["weight"]) >= 0
        check(markers["name"], len(shared["stringArray"]))
        check(markers["category"], len(meta["categories"]))
        for phase, end, data in zip(
            markers["phase"], markers["endTime"], markers["data"], strict=True
        ):
            assert (end is not None) == (phase == firefox.INTERVAL)
            keys = {field["key"] for field in schemas[data["type"]]["fields"]}
            assert data.keys() - {"type"} <= keys
    processes = [thread["pid"] for thread in profile["threads"] if thread["isMainThread"]]
    assert sorted(processes) == sorted({thread["pid"] for thread in profile["threads"]})
    return profile


def stack_times(profile: Any) -> Counter[tuple[str, ...]]:
    """Nanoseconds of each stack, outermost call first, behind the name of its thread."""
    shared = profile["shared"]
    frames, functions = shared["frameTable"]["func"], shared["funcTable"]["name"]
    paths: list[tuple[str, ...]] = []
    for frame, prefix in zip(
        shared["stackTable"]["frame"], shared["stackTable"]["prefix"], strict=True
    ):
        name = shared["stringArray"][functions[frames[frame]]]
        paths.append((*(() if prefix is None else paths[prefix]), name))
    found: Counter[tuple[str, ...]] = Counter()
    for thread in profile["threads"]:
        samples = thread["samples"]
        for stack, weight in zip(samples["stack"], samples["weight"], strict=True):
            if stack is not None:
                found[(thread["tid"], *paths[stack])] += round(weight * 1e6)
    return +found


class TestFirefoxContract(_OfToys):
    name = "firefox"

    def check_output(self, output: bytes, capture: Capture) -> None:
        check_profile(output)


def test_samples_are_the_stacks_between_their_changes() -> None:
    output, dropped = export("firefox", Given([call for call in LOOP if call.dur >= 0][:4]))
    samples = check_profile(output)["threads"][0]["samples"]
    assert [round(time * 1e6) for time in samples["time"]] == [0, 10, 20, 50, 60, 100, 200, 207]
    assert [round(weight * 1e6) for weight in samples["weight"]] == [
        10, 10, 30, 10, 40, 100, 7, 0
    ]  # fmt: skip
    assert samples["stack"] == [0, 1, 2, 1, 0, None, 0, None]
    assert not dropped


LASTING_BEFORE_TIMELESS = [
    Call("f", dur=0), Call("g", dur=0, parent=0, depth=1),
    Call("f"), Call("g", parent=2, depth=1), Call("h", parent=3, depth=2),
    Call("h", dur=0, parent=1, depth=2),
]  # fmt: skip
"""Calls that begin together: one that takes no time is listed behind one of its depth that does."""


@example(LASTING_BEFORE_TIMELESS)
@given(calls=nested_calls())
def test_profiles_hold_all_time(calls: list[Call]) -> None:
    if not calls:
        return
    expected: Counter[tuple[str, ...]] = Counter()
    for place, call in enumerate(calls):
        expected[(str(100 + call.thread), *path_of(calls, place))] += own_time(calls, place)
    output, dropped = export("firefox", Given(calls), Given(calls))
    profile = check_profile(output)
    unfinished = sum(call.dur < 0 for call in calls)
    assert dropped.get("lengths of calls that never ended", 0) == 2 * unfinished
    if not unfinished:
        assert stack_times(profile) == +Counter(
            {path: 2 * length for path, length in expected.items()}
        )


def test_calls_that_never_end_last_as_long_as_their_thread() -> None:
    calls = [Call("f", 0, -1), Call("g", 10, 20, parent=0, depth=1)]
    times = stack_times(check_profile(export("firefox", Given(calls))[0]))
    assert times == {("100", "f"): 10, ("100", "f", "g"): 20}


def test_deep_calls_count_for_the_call_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = [Call(f"f{at}", at, 20 - 2 * at, parent=at - 1, depth=at) for at in range(6)]
    capture = Given(calls)
    limits = type(capture.request.limits)(max_depth=2)
    monkeypatch.setattr(capture, "request", type(capture.request)(limits=limits))
    output, dropped = export("firefox", capture)
    assert stack_times(check_profile(output)) == {
        ("100", "f0"): 2, ("100", "f0", "f1"): 2, ("100", "f0", "f1", "f2"): 16
    }  # fmt: skip
    assert dropped == {"calls that are too deep, added to those above": 3}


def test_instants_and_asynchronous_slices_are_markers_with_their_arguments() -> None:
    with fxf.open(BOOT) as capture:
        profile = check_profile(export("firefox", capture)[0])
        markers = [
            (profile["shared"]["stringArray"][name], phase, data)
            for thread in profile["threads"]
            for name, phase, data in zip(
                *(thread["markers"][column] for column in ("name", "phase", "data")), strict=True
            )
        ]
    names = Counter((name, phase) for name, phase, _ in markers)
    assert names == {("launch", firefox.INTERVAL): 4, ("booted", firefox.INSTANT): 1}
    assert {"type": "event", "arg:component": "core/0"} in [data for *_, data in markers]
    categories = {category["name"] for category in profile["meta"]["categories"]}
    assert {"Other", "gfx", "boot"} <= categories


def test_several_captures_share_one_beginning(tmp_path: Path) -> None:
    out = tmp_path / "two.firefox.json"
    fxf.convert([BOOT, BOOT], out)
    profile = check_profile(out.read_bytes())
    assert min(thread["samples"]["time"][0] for thread in profile["threads"]) >= 0


@cases("times", [(-(2**63), 2**63 - 1), (2**63 - 1, 2**63 - 1)])
def test_times_at_the_limits(times: tuple[int, int]) -> None:
    calls = [Call("f", times[0], 5), Call("g", times[1], 2**62, thread=1)]
    check_profile(export("firefox", Given(calls))[0])


@given(name=st.text(), category=st.sampled_from(["Other", "", "\x00", "é"]))
def test_names_do_not_change_the_layout(name: str, category: str) -> None:
    encodable = name.encode("utf-8", "replace").decode()
    capture = Given([Call(encodable)], [(category, encodable)])
    profile = check_profile(export("firefox", capture)[0])
    assert encodable in profile["shared"]["stringArray"]
