"""Profiles of calls: folded stacks, speedscope, pprof and DOT, of any capture with slices."""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import orjson
import pytest
import toy
from calls_of import Call, Given, Numbered, nested_calls, own_time, path_of
from hypothesis import given
from hypothesis import strategies as st

import fxframework as fxf
from fx_trace import sample as traces
from fxframework.errors import UsageError, WriteRefusedError
from fxframework.exporters import flamegraph, plugin
from fxframework.exporters.page import page
from fxframework.io.sink import Sink
from fxframework.kit.json_fields import encodable
from fxframework.model.capture import Capture
from fxframework.registry import Exporter, parse_options
from fxframework.testing import ExporterContract, Sample

from ..cases import cases
from ..pprof import profile_class

ROOT = Path(__file__).resolve().parents[2]
CONFORMANCE = ROOT / "tests" / "conformance"
SVG = "{http://www.w3.org/2000/svg}"
LOOP = [
    Call("f;x", 0, 100),
    Call("g", 10, 50, parent=0, depth=1),
    Call("f;x", 20, 30, parent=1, depth=2),
    Call("f;x", 200, 7),
    Call("g", 300, -1),
    Call("f;x", 310, 5, parent=4, depth=1),
    Call("h", 0, 4, thread=1),
]


def exporter(name: str) -> Exporter:
    return next(one for one in plugin.fx_exporters() if one.name == name)


def export(name: str, *captures: Capture, **options: Any) -> tuple[bytes, Mapping[str, int]]:
    one = exporter(name)
    sink = Sink.memory()
    session = one.open(sink, parse_options(options, one.options, whose=name))
    for capture in captures:
        session.write(capture)
    dropped = session.close()
    return sink.getvalue(), dropped


@functools.cache
def schema() -> Any:
    path = ROOT / "tests" / "conformance" / "speedscope" / "file-format-schema.json"
    return json.loads(path.read_bytes())


def stacks(output: bytes) -> dict[tuple[str, ...], list[int]]:
    """The samples of a profile for pprof, outermost first, with the thread before them."""
    profile = profile_class()()
    profile.ParseFromString(output)
    texts = list(profile.string_table)
    assert texts[0] == ""
    names = {function.id: texts[function.name] for function in profile.function}
    places = {location.id: names[location.line[0].function_id] for location in profile.location}
    found: dict[tuple[str, ...], list[int]] = {}
    for sample in profile.sample:
        thread = texts[sample.label[0].str]
        path = (thread, *(places[one] for one in reversed(sample.location_id)))
        before = found.get(path, [0, 0])
        found[path] = [sum(both) for both in zip(before, sample.value, strict=True)]
    return found


def check_speedscope(output: bytes) -> Any:
    """A document that its schema allows, whose calls nest in order of time."""
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    document = json.loads(output)
    jsonschema.validate(document, schema())
    frames = document["shared"]["frames"]
    for profile in document["profiles"]:
        stack: list[int] = []
        now = profile["startValue"]
        for event in profile["events"]:
            assert event["at"] >= now
            now = event["at"]
            assert event["frame"] < len(frames)
            if event["type"] == "O":
                stack.append(event["frame"])
            else:
                assert stack.pop() == event["frame"]
        assert not stack
        assert now <= profile["endValue"]
    return document


def frames_of(output: bytes) -> list[tuple[int, float, float, str]]:
    """The frames of a flame graph: level, left edge, width, and title."""
    root = ET.fromstring(output)
    assert root.tag == f"{SVG}svg"
    found = []
    for group in root.iter(f"{SVG}g"):
        title, rect, text = group
        assert (title.tag, rect.tag, text.tag) == (f"{SVG}title", f"{SVG}rect", f"{SVG}text")
        x, y, width = (float(rect.get(name, "")) for name in ("x", "y", "width"))
        found.append((round((y - flamegraph.TOP) / flamegraph.ROW), x, width, title.text or ""))
    return found


# --- Contracts ---------------------------------------------------------------------------------

ROWS = toy.toy(toy.span("one", 1, 7), toy.span("two", 2, 5), toy.mark("m", 3), toy.span("o", 9, -1))
DAMAGED = toy.toy(toy.span("s", 1, 3), toy.record(9), bytes(24), toy.record(7), b"odd")


class _OfToys(ExporterContract):
    plugin = "fxframework.exporters.plugin"
    reader_plugin = "toy"
    format = "toy"

    def samples(self) -> Iterable[Sample]:
        yield Sample("rows.toy", ROWS)
        yield Sample("damaged.toy", DAMAGED, sound=False)


class TestFoldedContract(_OfToys):
    name = "folded"

    def check_output(self, output: bytes, capture: Capture) -> None:
        for line in output.decode().splitlines():
            path, number = line.rsplit(" ", 1)
            assert path.startswith("main (11);")
            assert int(number) > 0


class TestSpeedscopeContract(_OfToys):
    name = "speedscope"

    def check_output(self, output: bytes, capture: Capture) -> None:
        check_speedscope(output)


class TestPprofContract(_OfToys):
    name = "pprof"

    def check_output(self, output: bytes, capture: Capture) -> None:
        # Calls that never ended have no time, and are no samples.
        ended = (capture.table("slices").array("dur") >= 0).any()
        assert bool(stacks(output)) == bool(ended)


class TestFlamegraphContract(_OfToys):
    name = "flamegraph"

    def check_output(self, output: bytes, capture: Capture) -> None:
        assert frames_of(output)


class TestDotContract(_OfToys):
    name = "dot"

    def check_output(self, output: bytes, capture: Capture) -> None:
        assert output.startswith(b"digraph xray {\n")
        assert output.endswith(b"}\n")


# --- Folded ------------------------------------------------------------------------------------


def test_folded_stacks_have_the_time_of_their_last_call() -> None:
    output, dropped = export("folded", Given(LOOP))
    assert output.decode().splitlines() == [
        "main (100);f:x 57", "main (100);f:x;g 20", "main (100);f:x;g;f:x 30",
        "main (100);g;f:x 5", "thread_101;h 4",
    ]  # fmt: skip
    assert dropped == {"lengths of calls that never ended": 1}


def test_folded_stacks_count_calls_or_ticks_and_add_threads_up() -> None:
    count, _ = export("folded", Given(LOOP), weight="count", thread=False)
    assert count == b"f:x 2\nf:x;g 1\nf:x;g;f:x 1\ng;f:x 1\nh 1\n"
    ticks, _ = export("folded", Numbered(LOOP), weight="ticks")
    assert ticks.startswith(b"main (100);f:x 171\n")
    same, _ = export("folded", Numbered(LOOP))
    assert same == export("folded", Given(LOOP))[0]
    with pytest.raises(UsageError, match="did you mean 'ticks'"):
        export("folded", Given(LOOP), weight="tick")


@given(calls=nested_calls(), depth=st.integers(1, 6))
def test_folded_stacks_hold_all_time(calls: list[Call], depth: int) -> None:
    if not calls:
        return
    expected: dict[str, int] = {}
    names = {0: "main (100)", 1: "thread_101", 2: "thread_102"}
    for place, call in enumerate(calls):
        path = ";".join((names[call.thread], *path_of(calls, place)[:depth]))
        expected[path] = expected.get(path, 0) + own_time(calls, place)
    output, _ = export("folded", Given(calls), depth=depth)
    found = dict(line.rsplit(" ", 1) for line in output.decode().splitlines())
    assert {path: int(number) for path, number in found.items()} == {
        path: number for path, number in expected.items() if number
    }


def test_deep_stacks_are_cut_and_told() -> None:
    calls = [Call("f", 0, 100 - at, parent=at - 1, depth=at) for at in range(9)]
    output, dropped = export("folded", Given(calls), depth=2)
    assert output == b"main (100);f 1\nmain (100);f;f 99\n"
    assert dropped == {"calls that are too deep, added to those above": 7}


@cases("name", ["folded", "speedscope", "pprof", "dot", "flamegraph"])
def test_a_capture_without_calls_is_refused(name: str) -> None:
    with pytest.raises(WriteRefusedError):
        export(name, Given([]))
    with pytest.raises(WriteRefusedError):
        export(name, Given([Call("a", kind=2)]))


def test_invalid_text_is_shown_as_in_records() -> None:
    text = b"caf\xe9 \xe2\x82".decode("utf-8", "surrogateescape")
    shown = "caf\ufffd \ufffd"
    assert encodable({text: [text, (1, 1 << 70)]}).keys() == {shown}
    assert b'"caf\xef\xbf\xbd \xef\xbf\xbd"' in page("odd", "", {"name": text})
    assert orjson.loads(orjson.dumps(encodable([text, 1, -1]))) == [shown, 1, -1]
    assert orjson.dumps(encodable([1, 1 << 70])) == b"[1,%d]" % (1 << 70)


# --- speedscope --------------------------------------------------------------------------------


def test_speedscope_has_a_profile_a_thread() -> None:
    output, dropped = export("speedscope", Numbered(LOOP))
    document = check_speedscope(output)
    assert [profile["name"] for profile in document["profiles"]] == ["main (100)", "thread_101"]
    assert document["shared"]["frames"][0] == {"name": "f;x", "file": "f;x.c", "line": 3, "col": 1}
    first = document["profiles"][0]
    assert [(e["type"], e["frame"], e["at"]) for e in first["events"]] == [
        ("O", 0, 0), ("O", 1, 10), ("O", 0, 20), ("C", 0, 50), ("C", 1, 60), ("C", 0, 100),
        ("O", 0, 200), ("C", 0, 207), ("O", 1, 300), ("O", 0, 310), ("C", 0, 315), ("C", 1, 315),
    ]  # fmt: skip
    assert dropped["lengths of calls that never ended"] == 1


@given(calls=nested_calls())
def test_speedscope_nests_whatever_there_is(calls: list[Call]) -> None:
    if calls:
        document = check_speedscope(export("speedscope", Given(calls), Given(calls))[0])
        events = sum(len(profile["events"]) for profile in document["profiles"])
        assert events == 4 * len(calls)


def test_calls_that_overlap_are_cut() -> None:
    calls = [Call("f", 0, 10), Call("g", 5, 10), Call("h", 6, 20, parent=1, depth=1)]
    output, dropped = export("speedscope", Given(calls))
    check_speedscope(output)
    assert dropped == {"overlaps of calls, which one of them was cut by": 2}


# --- pprof -------------------------------------------------------------------------------------


@given(calls=nested_calls())
def test_pprof_has_every_stack(calls: list[Call]) -> None:
    if not calls:
        return
    expected: dict[tuple[str, ...], list[int]] = {}
    names = {0: "main (100)", 1: "thread_101", 2: "thread_102"}
    for place, call in enumerate(calls):
        values = expected.setdefault((names[call.thread], *path_of(calls, place)), [0, 0])
        values[0] += call.dur >= 0
        values[1] += own_time(calls, place)
    output, _ = export("pprof", Given(calls))
    assert stacks(output) == {path: values for path, values in expected.items() if any(values)}


def test_pprof_says_units_and_sources() -> None:
    profile = profile_class()()
    profile.ParseFromString(export("pprof", Numbered(LOOP))[0])
    texts = list(profile.string_table)
    types = [(texts[one.type], texts[one.unit]) for one in profile.sample_type]
    assert types == [("calls", "count"), ("time", "nanoseconds")]
    assert texts[profile.default_sample_type] == "time"
    function = profile.function[0]
    assert (texts[function.filename], function.start_line) == ("f;x.c", 3)


# --- DOT ---------------------------------------------------------------------------------------


def test_dot_takes_one_capture_and_known_figures() -> None:
    output, _ = export("dot", Given(LOOP), edge_label="count")
    assert b'F1 -> F2 [label="1"' in output
    with pytest.raises(WriteRefusedError, match="one capture"):
        export("dot", Given(LOOP), Given(LOOP))
    with pytest.raises(UsageError, match="did you mean 'sum'"):
        export("dot", Given(LOOP), edge_label="sums")


# --- A trace -----------------------------------------------------------------------------------


def test_a_fuchsia_trace_becomes_every_profile() -> None:
    with fxf.open(ROOT / "examples" / "magic_trace_sample.fxt.gz") as whole:
        assert b'[label="{_start|2}"' in export("dot", whole)[0]
        capture = whole.between(100_000, 150_000)
        rows = len(capture.table("slices"))
        assert rows > 1_000
        document = check_speedscope(export("speedscope", capture)[0])
        assert len(document["profiles"][0]["events"]) == 2 * rows
        folded, dropped = export("folded", capture)
        own = sum(int(line.rsplit(b" ", 1)[1]) for line in folded.splitlines())
        samples = stacks(export("pprof", capture)[0])
        assert sum(values[1] for values in samples.values()) == own
        assert sum(values[0] for values in samples.values()) == rows
        assert dropped["rows of args"] == len(capture.table("args"))


# --- Flame graphs --------------------------------------------------------------------------------


def test_a_frame_is_as_wide_as_it_took_with_what_it_called() -> None:
    output, _ = export("flamegraph", Given(LOOP))
    total = 112 + 4
    wanted = {
        (0, 0, 112, "main (100) (112 ns, 96.55%)"), (0, 112, 4, "thread_101 (4 ns, 3.45%)"),
        (1, 0, 107, "f;x (107 ns, 92.24%)"), (1, 107, 5, "g (5 ns, 4.31%)"),
        (1, 112, 4, "h (4 ns, 3.45%)"), (2, 0, 50, "g (50 ns, 43.10%)"),
        (2, 107, 5, "f;x (5 ns, 4.31%)"), (3, 0, 30, "f;x (30 ns, 25.86%)"),
    }  # fmt: skip
    found = {
        (level, round(x * total / 1200), round(width * total / 1200), title)
        for level, x, width, title in frames_of(output)
    }
    assert found == wanted
    counted, _ = export("flamegraph", Given(LOOP), weight="count", thread=False)
    assert "all threads (6 calls, 100.00%)" in {title for *_, title in frames_of(counted)}
    with pytest.raises(UsageError, match="did you mean 'ticks'"):
        export("flamegraph", Given(LOOP), weight="tick")


@given(calls=nested_calls())
def test_frames_lie_within_those_above_them_and_beside_each_other(calls: list[Call]) -> None:
    if not calls:
        return
    output, _ = export("flamegraph", Given(calls))
    levels: dict[int, list[tuple[float, float]]] = {}
    for level, x, width, _ in frames_of(output):
        levels.setdefault(level, []).append((x, x + width))
    for level, places in levels.items():
        places.sort()
        for (_, end), (start, _) in itertools.pairwise(places):
            assert start >= end - 0.03
        for start, end in places if level else ():
            assert any(a - 0.03 <= start and end <= b + 0.03 for a, b in levels[level - 1])


def test_narrow_frames_are_drawn_together_and_counted() -> None:
    calls = [Call("root", 0, 1_000_000)]
    calls += [Call(f"f{at}", at * 50, 50, parent=0, depth=1) for at in range(19_000)]
    calls.append(Call("wide", 950_000, 50_000, parent=0, depth=1))
    output, dropped = export("flamegraph", Given(calls))
    assert [title for *_, title in frames_of(output)] == [
        "main (100) (1,000,000 ns, 100.00%)", "root (1,000,000 ns, 100.00%)",
        "wide (50,000 ns, 5.00%)", "(19,000 narrow frames) (950,000 ns, 95.00%)",
    ]  # fmt: skip
    assert dropped == {"frames narrower than 0.1 px, which are drawn together": 19_000}
    assert b"19,000 more, narrower than 0.1 px" in output
    assert len(output) < 10_000


HOSTILE = [
    "</title><script>alert(1)</script>", "]]>", "&amp;<!--", '"\'onload="x', "\x1b[31m\x00\x85",
    "\u202eevil", "\ufffe", "", "x" * 5000,
]  # fmt: skip


def test_hostile_names_are_text() -> None:
    calls = [Call(name, at * 10, 10) for at, name in enumerate(HOSTILE)]
    output, _ = export("flamegraph", Given(calls))
    titles = [title.rpartition(" (")[0] for level, *_, title in frames_of(output) if level]
    wanted = [name if name.isprintable() else None for name in HOSTILE if name]
    assert {name for name in wanted if name} < set(titles)
    assert "(no name)" in titles
    assert not set("".join(titles)) & set("\x1b\x00\x85\u202e\ufffe")
    root = ET.fromstring(output)
    assert len(list(root.iter(f"{SVG}script"))) == 1


def test_captures_of_any_formats_share_a_picture_and_a_profile(tmp_path: Path) -> None:
    trace = tmp_path / "sample.fxt"
    trace.write_bytes(traces.sample(20_000))
    xray = next((CONFORMANCE / "xray").glob("fdr5-single*.xray"))
    for inputs in ([xray], [trace, xray]):
        out = tmp_path / f"{len(list(tmp_path.iterdir()))}.speedscope.json"
        fxf.convert(inputs, out)
        document = check_speedscope(out.read_bytes())
        assert len(document["profiles"]) >= len(inputs)
        picture = out.with_suffix(".svg")
        fxf.convert(inputs, picture)
        assert len(frames_of(picture.read_bytes())) > len(inputs)
