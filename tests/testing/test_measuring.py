"""What measures speed and memory measures what it says."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from fx_trace.sample import sample
from fxframework.host import default_host
from fxframework.registry import Reader

from ..bench import __main__ as tool
from ..bench import measuring
from ..bench.measures import peak_memory
from ..bench.measuring import own_shapes


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
    rows = list(measuring.shapes(default_host(), readers("log"), SMALL, 1))
    assert [row.case for row in rows][:2] == ["typical", "every 100th record damaged"]
    assert set(own_shapes("log")) < {row.case for row in rows}
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
