"""A program that clang instruments here records itself, and its logs are read from end to end."""

from __future__ import annotations

import csv
import io
from collections import Counter
from pathlib import Path

import pytest

import fxframework as fxf
from fxframework.errors import Severity
from fxframework.testing.cli import run_cli

from . import xray_tool
from .test_xray import assert_dumps_agree, assert_events_agree
from .xray_tool import SOURCES, RefusedError

EXAMPLE = Path(__file__).parents[2] / "examples" / "xray" / "spellcheck.cpp"
EVERYTHING = "func_duration_threshold_us=0:buffer_size=4000000:buffer_max=8"
TYPED = ("-DTYPED", "-DTYPED_ID=7")
BASIC = {"patch_premain": "true", "xray_mode": "xray-basic"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where programs and logs go. Without the tools the tests skip, or fail where they must not."""
    xray_tool.llvm_xray()
    xray_tool.clang_with_xray()
    return tmp_path_factory.mktemp("clang")


@pytest.fixture(scope="module")
def app(folder: Path) -> Path:
    """Threads, recursion, tail calls, arguments, custom events, migration."""
    return xray_tool.build(SOURCES / "app.cpp", folder / "app")


@pytest.fixture(scope="module")
def deep(folder: Path) -> Path:
    """One thread: deep and mutual recursion, and an exception that unwinds."""
    return xray_tool.build(SOURCES / "deep.cpp", folder / "deep")


def only(logs: list[Path]) -> Path:
    (log,) = logs
    return log


def table(log: Path, program: Path) -> Counter[str]:
    """How often each function was called, by its name, from our slices; nothing may be lost."""
    with fxf.open(log, instr_map=str(program)) as capture:
        names = capture.table("slices").texts("name")
        worst = capture.diagnostics.worst
        assert worst is None or worst < Severity.WARNING, list(capture.diagnostics)
    return Counter(names)


def test_a_program_of_one_thread(deep: Path, tmp_path: Path) -> None:
    log = only(xray_tool.record(deep, tmp_path, EVERYTHING))
    assert_dumps_agree(log)
    assert_events_agree(log)
    calls = table(log, deep)
    assert calls["down(long)"] == 31
    assert calls["thrower(int)"] == 4
    assert calls["even(long)"] + calls["odd(long)"] == 8
    assert calls["tiny()"] == 15


def test_its_account_is_llvm_xrays_word_for_word(deep: Path, tmp_path: Path) -> None:
    log = only(xray_tool.record(deep, tmp_path, EVERYTHING))
    done = run_cli("account", "--csv", log, "-o", f"instr_map={deep}")
    assert done.exit_code == 0, done.stderr
    lines = list(csv.reader(io.StringIO(done.text)))[1:]
    ours = {line[0]: line[:10] for line in lines if line[1] != "0"}
    assert ours == {line[0]: line for line in xray_tool.account(log, "-m", str(deep))}


def test_a_program_of_several_threads(app: Path, tmp_path: Path) -> None:
    log = only(xray_tool.record(app, tmp_path, EVERYTHING, "3", "5"))
    assert_dumps_agree(log)
    assert_events_agree(log)
    calls = table(log, app)
    assert calls["worker(int, int, int)"] == 4
    assert calls["outer(int)"] == calls["scale(long)"] == calls["tail_top(long)"] == 20
    assert calls["leaf_fast(long)"] == 80
    assert calls["fib(long)"] >= 20
    with fxf.open(log, instr_map=str(app)) as capture:
        events = capture.table("instants")
        assert Counter(events.texts("category")) == {"custom_event": 20}
        arguments = capture.table("args")
        assert arguments.texts("name").count("arg0") == 20


def test_small_buffers_and_a_threshold(app: Path, tmp_path: Path) -> None:
    options = "func_duration_threshold_us=5:buffer_size=512:buffer_max=40"
    log = only(xray_tool.record(app, tmp_path, options, "2", "6"))
    assert_dumps_agree(log)
    with fxf.open(log, instr_map=str(app)) as capture:
        assert len(capture.table("xray_buffers")) > 3
        assert "outer(int)" in capture.table("slices").texts("name")


def test_typed_events_are_read_where_the_runtime_lost_its_count(
    folder: Path, tmp_path: Path
) -> None:
    program = xray_tool.build(SOURCES / "app.cpp", folder / "typed", *TYPED)
    log = only(xray_tool.record(program, tmp_path, EVERYTHING, "1", "3"))
    with fxf.open(log, instr_map=str(program)) as capture:
        types = capture.table("instants").array("xray_event_type").tolist()
        found = capture.diagnostics.counts.get("FXX0101", 0)
    assert types.count(7) >= 4
    try:
        xray_tool.convert(log)
    except RefusedError:
        assert found
    else:  # a runtime that counts them
        assert not found


def test_basic_mode(app: Path, tmp_path: Path) -> None:
    options = {**BASIC, "xray_naive_log_func_duration_threshold_us": "0"}
    log = only(xray_tool.record(app, tmp_path, "basic", "2", "3", options=options))
    assert_events_agree(log)
    with fxf.open(log, instr_map=str(app)) as capture:
        assert capture.format == "xray-basic"
        assert "leaf_slow(long)" in capture.table("slices").texts("name")


def test_short_calls_are_not_there(deep: Path, tmp_path: Path) -> None:
    options = "func_duration_threshold_us=100000000:buffer_size=4096"
    calls = table(only(xray_tool.record(deep, tmp_path, options)), deep)
    assert not calls["down(long)"]
    # However short it is, a call with arguments is kept.
    assert any(name.startswith("with_ptr(char const*)") for name in calls)


def test_the_example_records_itself(folder: Path, tmp_path: Path) -> None:
    program = xray_tool.build(
        EXAMPLE,
        folder / "spellcheck",
        "-fxray-instruction-threshold=1000000",
        "-fxray-ignore-loops",
    )
    log = only(xray_tool.record(program, tmp_path))
    assert_dumps_agree(log)
    calls = table(log, program)
    assert calls["check(long)"] == calls["suggest(char const*)"] == 3
