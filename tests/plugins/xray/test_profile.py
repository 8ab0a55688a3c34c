"""XRay's profiling mode: paths of calls, summed by thread."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import fxframework as fxf
from fxframework.testing import Expected, ReaderContract, Sample, WriterContract
from fxframework.testing.cli import run_cli

from ...cases import cases

CONFORMANCE = Path(__file__).parents[2] / "conformance" / "xray"
SECONDS = CONFORMANCE / "profile-seconds-clang19.xrayprof"
HEADER = struct.pack("<QQQQ", 0x7872617970726F66, 0x20180424, 5, 42)


def path(*functions: int, calls: int = 1, ticks: int = 10) -> bytes:
    """A path, innermost function first."""
    return struct.pack(f"<{len(functions) + 1}IQQ", *functions, 0, calls, ticks)


def block(*paths: bytes, thread: int = 7, number: int = 0, more: int = 0) -> bytes:
    """A block, whose size may be a lie."""
    data = b"".join(paths)
    return struct.pack("<IIQ", 16 + len(data) + more, number, thread) + data


def samples() -> Iterable[Sample]:
    known = Expected(
        kinds={"header": 1, "block": 2},
        rows={"slices": 3, "threads": 1, "processes": 1, "xray_functions": 2, "xray_blocks": 2},
        values={
            "slices": [
                {"name": "3", "ts": 0, "dur": 30, "xray_calls": 1, "parent": -1},
                {"name": "2", "ts": 0, "dur": 25, "xray_calls": 3, "parent": 0},
                {"name": "2", "ts": 30, "dur": 1, "xray_calls": 1, "parent": -1},
            ]
        },
    )
    paths = path(3, ticks=30), path(2, 3, calls=2, ticks=20), path(2, ticks=1)
    data = HEADER + block(*paths) + block(path(2, 3, ticks=5), number=1)
    yield Sample("sums.xrayprof", data, expected=known)
    yield Sample("seconds.xrayprof", SECONDS.read_bytes())
    yield Sample("header.xrayprof", HEADER)
    yield Sample("cut.xrayprof", data[:-3], sound=False)
    yield Sample("long.xrayprof", HEADER + block(*paths, more=400), sound=False)


class TestReader(ReaderContract):
    plugin = "fx_xray.plugin"
    format = "xray-profile"
    # Paths are summed over the whole file.
    test_memory_in_batches_is_bounded = None

    def samples(self) -> Iterable[Sample]:
        return samples()


class TestWriter(WriterContract):
    plugin = "fx_xray.plugin"
    format = "xray-profile"

    def samples(self) -> Iterable[Sample]:
        return samples()

    def records(self) -> Iterable[Mapping[str, Any]]:
        yield {"record": "header", "time": 5, "process": 42}
        items = [
            {"type": "function", "function_id": 9},
            {"type": "total", "calls": 1 << 63, "ticks": 3},
        ]
        yield {"record": "block", "number": 0, "thread": 1 << 40, "items": items}

    def refused(self) -> Iterable[tuple[Mapping[str, Any], str]]:
        yield {"record": "blocks"}, "XPRF0401"
        items = [{"type": "function", "function_id": 0}]
        yield {"record": "block", "number": 0, "thread": 1, "items": items}, "XPRF0404"


def figures(*arguments: object) -> list[list[str]]:
    done = run_cli("account", "--csv", *arguments)
    assert done.exit_code == 0, done.stderr
    return [line.split(",") for line in done.text.splitlines()[1:]]


def test_ticks_include_callees() -> None:
    """``sources/seconds.cpp``: leaf took a second, mid 0.2 s more; outer called mid twice."""
    with fxf.open(SECONDS, cycle_frequency=2_445_428_000) as capture:
        slices = capture.table("slices")
        seconds = [round(dur / 1e9, 1) for dur in slices.array("dur").tolist()]
        assert seconds == [1.0, 2.4, 2.4, 2.0, 1.0]
        assert slices.array("parent").tolist() == [-1, -1, 1, 2, -1]
        assert capture.table("threads").array("tid").tolist() == [8255, 8215]


def test_the_account_counts_calls_and_not_paths() -> None:
    ids_and_calls = {line[0]: line[1] for line in figures(SECONDS)}
    assert ids_and_calls == {"1": "4", "2": "2", "3": "1"}
    done = run_cli("stack", "--json", SECONDS)
    nodes = done.json()["nodes"]
    assert [(node["name"], node["count"]) for node in nodes[1:]] == [
        ("1", 2), ("3", 1), ("2", 2), ("1", 2),
    ]  # fmt: skip
    assert run_cli("graph", SECONDS).text.count("{1|4}") == 1
    folded = run_cli("convert", SECONDS, "-", "-t", "folded", "-o", "weight=count").text
    assert sorted(folded.splitlines()) == [
        "thread_8215;1 1", "thread_8215;3 1", "thread_8215;3;2 2", "thread_8215;3;2;1 2",
        "thread_8255;1 1",
    ]  # fmt: skip


def test_one_call_is_not_to_be_had() -> None:
    done = run_cli("why", SECONDS, "1")
    assert done.exit_code == 2
    assert "the sum of several calls" in done.stderr
    assert "slowest" not in run_cli("info", SECONDS).text


@cases("option", [("--function", "1"), ("--min-duration", "5s"), ("--thread", "8255")])
def test_a_part_is_refused_and_not_all_of_it(option: tuple[str, str], tmp_path: Path) -> None:
    done = run_cli("convert", SECONDS, tmp_path / "part.xrayprof", *option)
    assert done.exit_code == 2
    assert "no part of xray-profile files can be extracted" in done.stderr
    done = run_cli("cat", "--records", SECONDS, *option)
    assert done.exit_code == 2
    assert "cannot be chosen" in done.stderr


def test_names_are_those_of_the_map(tmp_path: Path) -> None:
    names = tmp_path / "names.csv"
    names.write_text("function_id,name\n1,leaf()\n2,mid()\n3,outer()\n")
    with fxf.open(SECONDS, instr_map=str(names)) as capture:
        assert list(capture.table("slices").texts("name"))[1:4] == ["outer()", "mid()", "leaf()"]
        assert not capture.diagnostics.counts
    with fxf.open(SECONDS) as capture:
        capture.scan()
        assert capture.diagnostics.counts == {"FXX0601": 1}


def test_callers_that_were_not_written_take_as_long_as_what_they_called() -> None:
    with fxf.open(HEADER + block(path(1, 2, 3), path(4, 3))) as capture:
        slices = capture.table("slices")
        assert list(slices.texts("name")) == ["3", "2", "1", "4"]
        assert slices.array("dur").tolist() == [20, 10, 10, 10]
        assert slices.array("xray_calls").tolist() == [0, 0, 1, 1]
        assert slices.array("ts").tolist() == [0, 0, 0, 10]


@cases(("ending", "left"), [(struct.pack("<I", 5), 4), (struct.pack("<4I", 5, 0, 1, 0), 16)])
def test_a_path_without_figures_is_a_finding(ending: bytes, left: int) -> None:
    with fxf.open(HEADER + block(path(1), ending[:4])) as capture:
        capture.scan()
        assert capture.diagnostics.counts["XPRF0201"] == 1
        assert len(capture.table("slices")) == 1
    with fxf.open(HEADER + block(path(1), ending)) as capture:
        capture.scan()
        codes = capture.diagnostics.counts
        assert ("XPRF0201" in codes) == (left == 4)
        assert ("XPRF0104" in codes) == (left == 16)


def test_salvage_ends_a_block_with_its_last_whole_path(tmp_path: Path) -> None:
    cut = struct.pack("<2I", 5, 6)
    damaged = tmp_path / "cut.xrayprof"
    damaged.write_bytes(HEADER + block(path(1), cut) + block(path(2)) + block(cut))
    done = run_cli("salvage", damaged, tmp_path / "sound.xrayprof")
    assert done.exit_code == 3
    assert done.stderr.count("8 bytes of a path without its figures") == 2
    sound = (tmp_path / "sound.xrayprof").read_bytes()
    assert sound == HEADER + block(path(1)) + block(path(2)) + block()


@cases("more", [-4, -24, 4, 1 << 20])
def test_a_block_whose_size_is_wrong_costs_no_block_behind_it(more: int) -> None:
    sound = block(path(1, calls=3), thread=9)
    with fxf.open(HEADER + block(path(2), path(1), more=more) + sound + sound) as capture:
        capture.scan()
        assert capture.diagnostics.counts
        threads = capture.table("threads").array("tid").tolist()
        of_last = capture.table("slices").array("thread") == threads.index(9)
        assert capture.table("slices").array("xray_calls")[of_last].tolist() in ([3], [6])


def test_a_path_of_very_many_functions_and_sums_beyond_64_bits() -> None:
    deep = list(range(1, 50_001))
    most = (1 << 64) - 1
    data = HEADER + block(path(*deep, calls=most, ticks=most), path(1, calls=most, ticks=most))
    with fxf.open(data) as capture:
        slices = capture.table("slices")
        assert len(slices) == 50_001
        assert int(slices.array("depth").max()) == 49_999
        assert int(slices.array("dur").min()) >= 0
