"""`fxf bench`: what it prints, and that its memory is that of the process it started."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from fx_trace.sample import sample
from fxframework.cli import main
from fxframework.cli.bench import HEADER, SIZE
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
