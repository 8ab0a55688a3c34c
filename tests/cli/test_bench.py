"""`fxf bench`: what it prints, and that its memory is that of the process it started."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fx_trace.sample import sample
from fxframework.cli import bench_stages, main
from fxframework.cli.bench import HEADER, SIZE
from fxframework.cli.bench_growth import fitted_exponent
from fxframework.cli.measures import peak_memory
from fxframework.host import default_host

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


def test_without_arguments_it_ends_soon_and_says_what_it_does() -> None:
    """Within two minutes on two slow cores; a quarter of the usual size shows it."""
    begin = time.monotonic()
    done = bench("--size", str(SIZE // 4))
    assert time.monotonic() - begin < 60
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0].split() == list(HEADER)
    made = [reader.format for reader in default_host().readers.values() if reader.sample]
    assert [line.split()[0] for line in lines[1:-1]] == made


def test_ratios_for_programs() -> None:
    done = bench("--size", "1", "--runs", "1", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    shown = json.loads(done.stdout)
    samples = {capture["format"]: capture["measures"] for capture in shown["captures"]}
    assert {"log", "trace", "trace-buffer"} <= samples.keys()
    assert [each["name"] for each in samples["log"]][1] == "tables args, logs"
    measures = samples["trace"]
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


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples of kilobytes."""
    monkeypatch.setattr(bench_stages, "MEGABYTE", 20_000)


def run_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["bench", "--runs", "1", "--json", *arguments]) == 0
    run: dict[str, Any] = json.loads(capsys.readouterr().out)
    return run


def test_stages_are_those_of_reading_and_what_it_can_become(
    small: None, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    found = run_of(capsys, "--stages", "--size", "1")["stages"]
    by_format: dict[str, list[str]] = {}
    for one in found:
        assert one["seconds"] > 0
        assert one["ratio"] > 0
        by_format.setdefault(one["format"], []).append(one["stage"])
    assert {"inspect", "log", "trace", "xray", "xray-basic", "llvm-yaml"} <= by_format.keys()
    for stages in by_format.values():
        assert stages[: 1 + len(bench_stages.READING)] == ["copy", *bench_stages.READING]
        assert len(set(stages)) == len(stages)
    assert {"to trace", "to perfetto", "to parquet"} <= set(by_format["trace"])
    assert "to otlp" not in by_format["trace"]  # there is nothing to export, which is noted


def test_growth_is_fitted_and_compared(
    small: None, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert fitted_exponent([1, 10, 100], [3, 30, 300]) == pytest.approx(1)
    assert fitted_exponent([1, 2, 4], [1, 4, 16]) == pytest.approx(2)
    run = run_of(capsys, "--growth", "8,1", "-f", "inspect")
    stages = [one["stage"] for one in run["growth"]]
    assert stages == list(bench_stages.READING)
    assert all(len(one["sizes"]) == 2 and one["sizes"][0] < one["sizes"][1]
               for one in run["growth"])  # fmt: skip
    saved = tmp_path / "run.json"
    for one in run["growth"]:
        one["exponent"] = 1e9 if one["stage"] == "record JSON" else 1.0
    saved.write_text(json.dumps(run))
    assert main(["bench", "--runs", "1", "--growth", "1,8", "-f", "inspect", "--compare",
                 str(saved)]) == 0  # fmt: skip
    shown = capsys.readouterr()
    assert "EXPONENT" in shown.out
    worst = shown.out.partition("CHANGE")[2].splitlines()[1]
    assert worst.split()[:3] == ["inspect", "record", "JSON"]
    assert worst.endswith("*")
    assert "figures are in both runs" in shown.err


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--growth", "1"], 2, "two or more"),
        (["--growth", "x,2"], 2, "two or more"),
        (["--stages", "--shapes"], 2, "exclude each other"),
        (["--compare", "nosuch.json"], 1, "cannot be read"),
        (["--compare", __file__], 1, "cannot be read"),
    ],
)
def test_what_bench_refuses(
    arguments: list[str], status: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", *arguments]) == status
    assert message in capsys.readouterr().err
