"""`fxf instr-map`, and traces in YAML, on the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fx_xray.plugin
from fxframework.errors import ExitCode
from fxframework.exporters import plugin as exporters
from fxframework.host import Host
from fxframework.testing.cli import run_cli

from .programs import Program, Sled, Symbol

CONFORMANCE = Path(__file__).parents[2] / "conformance" / "xray"
MAPS = CONFORMANCE / "instr_map"
Run = Callable[..., Any]


@pytest.fixture
def run() -> Run:
    host = Host(discover=False)
    host.register(exporters, name="exporters", distribution="fxframework")
    host.register(fx_xray.plugin, name="xray", distribution="fxframework")
    assert not host.failures
    return lambda *arguments: run_cli(*arguments, host=host)


def test_the_map_of_a_program_is_printed(run: Run) -> None:
    result = run("instr-map", MAPS / "app-16.elf")
    assert result.exit_code == ExitCode.OK
    assert result.stdout == (MAPS / "app-16.yaml").read_bytes()
    assert not result.stderr


def test_names_as_the_linker_has_them(run: Run) -> None:
    result = run("instr-map", "--no-demangle", MAPS / "app-16.elf")
    assert b"function-name: _Z3fibl," in result.stdout
    assert b"fib(long)" not in result.stdout


def test_csv_names_the_functions_of_a_trace(run: Run, tmp_path: Path) -> None:
    result = run("instr-map", "--format", "csv", MAPS / "app-16.elf")
    lines = result.stdout.decode().splitlines()
    assert lines[0] == "function_id,name,linkage_name,address,source"
    assert lines[1] == "1,fib(long),_Z3fibl,0x21840,"
    assert len(lines) == 11
    (tmp_path / "map.csv").write_bytes(result.stdout)
    trace = CONFORMANCE / "expected" / "fdr5-all-clang16" / "convert.yaml"
    shown = run(
        "cat", "--table", "xray_functions", "-o", f"instr_map={tmp_path / 'map.csv'}", trace
    )
    assert shown.exit_code == ExitCode.OK
    assert b"worker(int, int, int)" in shown.stdout


def test_odd_entries_are_said(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "program"
    sleds = [Sled(1, 1, kind=5), Sled(2, 1, kind=9)]
    path.write_bytes(Program(maps=[sleds], symbols=[Symbol(1, 8, "f")]).pack())
    result = run("instr-map", path)
    assert result.exit_code == ExitCode.OK
    assert b"kind: custom-event" in result.stdout
    assert b"# typed-event" in result.stdout
    assert "FXX0603" in result.stderr
    assert "a sled of kind 9" in result.stderr


def test_what_is_no_program_is_an_error(run: Run) -> None:
    result = run("instr-map", __file__)
    assert result.exit_code == ExitCode.FAILED
    assert not result.stdout
    assert "extract --symbolize" in result.stderr


def test_a_trace_in_yaml_is_recognised(run: Run) -> None:
    trace = CONFORMANCE / "expected" / "basic3-all-clang16" / "convert.yaml"
    result = run("info", trace)
    assert result.exit_code == ExitCode.OK
    assert b"YAML of llvm-xray" in result.stdout
    assert b"basic" in result.stdout


def test_a_trace_comes_back_from_yaml(run: Run, tmp_path: Path) -> None:
    name = "fdr5-all-clang16"
    written = tmp_path / "again.xray"
    yaml = CONFORMANCE / "expected" / name / "convert.yaml"
    assert run("convert", yaml, written, "-t", "xray").exit_code == ExitCode.OK
    columns = ("slices", "instants", "args")
    for table in columns:
        ours = run("cat", "--table", table, written).stdout
        theirs = run("cat", "--table", table, CONFORMANCE / f"{name}.xray").stdout
        assert ours == theirs
