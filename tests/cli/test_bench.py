"""`fxf bench`: what it prints, and that its memory is that of the process it started."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fx_trace.sample import sample
from fxframework.cli import main
from fxframework.cli.bench import HEADER
from fxframework.cli.measures import peak_memory
from fxframework.host import default_host
from fxframework.registry import Reader

from ..bench import __main__ as tool
from ..bench import measuring
from ..bench.measuring import own_shapes

NAMES = ["copy", "tables slices, args", "record JSON", "memory, whole", "memory, batches"]


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fxframework.cli", "bench", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_ratios_for_people() -> None:
    done = bench("--size", "1", "--runs", "1", "-f", "trace")
    assert (done.returncode, done.stderr) == (0, "")
    title, line, last = done.stdout.splitlines()
    assert title.split() == list(HEADER)
    name, size, *rest = line.split()
    assert (name, size) == ("trace", "1.0")
    figures = re.findall(r"[0-9.,]+ \S+", " ".join(rest))
    assert " ".join(figures) == " ".join(rest)
    assert len(figures) == len(HEADER) - 2
    assert all(re.fullmatch(r"[0-9.,]+ (ms|x|M)", figure) for figure in figures)
    assert last.startswith("best of 1 run; ")


def test_it_measures_what_is_installed_not_what_is_in_the_folder(tmp_path: Path) -> None:
    (tmp_path / "fxframework").mkdir()
    (tmp_path / "fxframework" / "__init__.py").write_text("raise SystemExit(9)")
    program = "import sys; from fxframework.cli import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-P", "-c", program, "bench", "--size", "1", "--runs", "1", "-f", "trace"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_without_a_file_it_measures_every_format() -> None:
    done = bench("--size", "1", "--runs", "1")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0].split() == list(HEADER)
    made = [reader.format for reader in default_host().readers.values() if reader.sample]
    assert [line.split()[0] for line in lines[1:-1]] == made


def measures_of(format: str) -> list[dict[str, Any]]:
    done = bench("--size", "1", "--runs", "1", "--json", "-f", format)
    assert (done.returncode, done.stderr) == (0, "")
    (capture,) = json.loads(done.stdout)["captures"]
    assert capture["format"] == format
    measures: list[dict[str, Any]] = capture["measures"]
    return measures


def test_ratios_for_programs() -> None:
    assert measures_of("log")[1]["name"] == "tables args, logs"
    measures = measures_of("trace")
    assert [each["name"] for each in measures] == NAMES
    assert all(each["ratio"] > 0 for each in measures)
    copy, tables, lines, *memory = measures
    assert copy["ratio"] == 1
    assert tables["ratio"] == pytest.approx(tables["seconds"] / copy["seconds"])
    assert lines["ratio"] == pytest.approx(lines["seconds"] / copy["seconds"])
    assert all(each["seconds"] is None and each["against"] == "file size" for each in memory)


def test_a_file_is_measured_as_what_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "some.fxt"
    path.write_bytes(sample(20_000))
    assert main(["bench", "--runs", "1", str(path)]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith(f"{path}  ")


def test_memory_is_not_that_of_who_asks(tmp_path: Path) -> None:
    path = tmp_path / "some.fxt"
    path.write_bytes(sample(20_000))
    alone = peak_memory(str(path), "trace", ("slices",), "whole")
    large = np.ones(1 << 26)  # half a gigabyte in this process
    beside = peak_memory(str(path), "trace", ("slices",), "whole")
    assert large.nbytes > alone
    assert beside < alone + (100 << 20)


SMALL = 20_000


def readers(*formats: str) -> list[Reader]:
    return [reader for reader in default_host().readers.values() if reader.format in formats]


def test_stages_are_those_of_reading_and_what_it_can_become() -> None:
    by_format: dict[str, list[str]] = {}
    for row in measuring.stages(default_host(), readers("trace", "log", "llvm-yaml"), SMALL, 1):
        assert row.figures["ms"] > 0
        assert row.figures["/copy"] > 0
        by_format.setdefault(row.format, []).append(row.case)
    assert by_format.keys() == {"log", "trace", "llvm-yaml"}
    for stages in by_format.values():
        assert stages[: 1 + len(measuring.READING)] == ["copy", *measuring.READING]
        assert len(set(stages)) == len(stages)
    assert {"to trace", "to perfetto", "to parquet"} <= set(by_format["trace"])
    assert "to otlp" not in by_format["trace"]  # there is nothing to export, which is noted


def test_growth_is_fitted() -> None:
    assert measuring.fitted_exponent([1, 10, 100], [3, 30, 300]) == pytest.approx(1)
    assert measuring.fitted_exponent([1, 2, 4], [1, 4, 16]) == pytest.approx(2)
    rows = list(measuring.growth(default_host(), readers("inspect"), [SMALL, 8 * SMALL], 1))
    assert [row.case for row in rows] == list(measuring.READING)
    assert all(len(row.figures) == 3 and "/exponent" in row.figures for row in rows)


def test_shapes_are_those_of_every_format_and_its_own() -> None:
    rows = list(measuring.shapes(default_host(), readers("xray"), SMALL, 1))
    assert [row.case for row in rows][:2] == ["typical", "every 100th record damaged"]
    assert set(own_shapes("xray")) < {row.case for row in rows}
    assert all(row.figures["/copy"] > 0 and row.figures["/size"] > 0 for row in rows)
    assert rows[1].figures["findings"] > rows[0].figures["findings"]


def test_runs_are_saved_and_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = str(tmp_path / "run.json")
    given = ["stages", "-f", "llvm-yaml", "--size", "0.01", "--runs", "1"]
    assert tool.main([*given, "--save", saved]) == 0
    rows = json.loads(Path(saved).read_text())
    rows[3][2]["/copy"] = 1e9
    Path(saved).write_text(json.dumps(rows))
    capsys.readouterr()
    assert tool.main([*given, "--compare", saved]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[len(rows)].split()[:2] == ["llvm-yaml", rows[3][1]]
    assert shown[len(rows)].endswith("*")


@pytest.mark.parametrize("option", ["--shapes", "--stages", "--growth", "--compare"])
def test_what_is_gone_is_named(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", option]) == 2
    shown = capsys.readouterr().err
    assert f"`fxf bench {option}` is gone" in shown
    assert "python -m tests.bench" in shown
