"""Which of many captures are unlike the rest: figures in memory, and files and datasets."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from fxframework.analysis.oddity import Figure, by_format, oddities
from fxframework.errors import ExitCode, UsageError
from fxframework.testing.cli import run_cli

from ..cases import cases


def alike(count: int, seed: int = 0) -> dict[str, dict[Figure, float]]:
    """Figures of captures that differ by noise only."""
    rng = np.random.default_rng(seed)
    return {
        f"c{number}": {
            ("rows", "slices"): float(rng.poisson(400)),
            **{("calls", f"n{name}"): float(rng.poisson(20)) for name in range(30)},
            **{("time", f"n{name}"): float(rng.lognormal(15, 0.1)) for name in range(30)},
            ("counter", "temperature"): float(rng.normal(-3, 1)),
        }
        for number in range(count)
    }


def test_captures_that_are_alike_are_not_odd() -> None:
    odd = sum(bool(oddities(alike(60, seed))) for seed in range(20))
    assert odd <= 1


@cases(("figure", "value"), [
    (("time", "n3"), 1e9), (("calls", "n4"), 400.0), (("findings", "FXT0104"), 40.0),
    (("counter", "temperature"), 30.0), (("rows", "slices"), 0.0),
])  # fmt: skip
def test_the_odd_one_is_named_with_its_reason(figure: Figure, value: float) -> None:
    captures = alike(40)
    captures["c17"][figure] = value
    (one,) = oddities(captures)
    assert one.capture == "c17"
    first = one.reasons[0]
    assert (first.kind, first.name, first.value) == (*figure, value)
    assert (first.distance > 0) == (value > first.usual)


def test_few_captures_are_refused() -> None:
    captures = alike(3)
    with pytest.raises(UsageError, match="at least 4"):
        by_format(captures, dict.fromkeys(captures, "trace"))
    with pytest.raises(UsageError, match="at least 4"):
        by_format({}, {})


def test_captures_of_two_formats_are_not_compared() -> None:
    captures = alike(7)
    formats = {name: "log" if name in {"c5", "c6"} else "trace" for name in captures}
    (group,), (few,) = by_format(captures, formats)
    assert group.keys() == {"c0", "c1", "c2", "c3", "c4"}
    assert few.startswith("2 captures of format log")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from fx_trace.write.archive import Archive

    folder = tmp_path_factory.mktemp("runs")
    for number in range(12):
        rng, now = np.random.default_rng(number), 0
        with Archive(folder / f"{number:02}.fxt") as archive:
            app = archive.provider(1, "app", ticks_per_second=1_000_000_000)
            for _ in range(40):
                for name in range(4):
                    length = int(rng.lognormal(8, 0.3) * (10 if (number, name) == (7, 3) else 1))
                    app.duration_complete("demo", f"part {name}", now, now + length)
                    now += length
                used = int(rng.integers(90, 110)) * (3 if number == 5 else 1)
                app.counter("demo", "memory", {"used": used}, timestamp=now)
    return folder


def test_files_and_their_dataset_have_the_same_oddities(runs: Path, tmp_path: Path) -> None:
    page = tmp_path / "odd.html"
    done = run_cli("odd", runs, "--html", page, "--json")
    assert done.exit_code == ExitCode.OK
    found = done.json()
    assert found["captures"] == 12
    odd = {Path(one["capture"]).stem: one for one in found["odd"]}
    assert odd.keys() == {"07", "05"}
    assert "part 3" in odd["07"]["reasons"][0]["text"]
    assert odd["05"]["reasons"][0]["kind"] == "counter"
    assert b"07.fxt" in page.read_bytes()
    assert "part 3" in run_cli("odd", runs).text
    pytest.importorskip("duckdb", reason="duckdb is not installed")
    run_cli("batch", runs, "--out", tmp_path / "dataset", "--jobs", "1")
    again = run_cli("odd", tmp_path / "dataset", "--json").json()
    for one, other in zip(again["odd"], found["odd"], strict=True):
        assert one["capture"] == other["capture"]
        assert one["score"] == pytest.approx(other["score"])
        assert [each["text"] for each in one["reasons"]] == [
            each["text"] for each in other["reasons"]
        ]
    some = [runs / f"{number:02}.fxt" for number in (0, 1, 2, 3)]
    assert "none of 4 captures" in run_cli("odd", *some).text


def test_captures_that_cannot_be_read_are_left_out(runs: Path, tmp_path: Path) -> None:
    for path in runs.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "empty.fxt").touch()
    done = run_cli("odd", tmp_path, "--json")
    assert done.exit_code == ExitCode.FAILED
    assert done.json()["captures"] == 12
    assert len(done.json()["odd"]) == 2
    assert "left out: " in done.stderr
    assert "empty.fxt" in done.stderr
    (tmp_path / "empty.fxt").unlink()
    (tmp_path / "junk.fxt").write_bytes(b"hello" * 99)
    done = run_cli("odd", tmp_path)
    assert done.exit_code == ExitCode.NO_READER
    assert "2 of 12 captures" in done.text


def test_a_folder_with_other_files_and_formats_is_compared_by_format(
    runs: Path, tmp_path: Path
) -> None:
    """Beside twelve traces: their pages, a log of each run, and two pipes that nobody writes to."""
    from fx_log.write.writer import LogWriter

    for path in runs.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
        (tmp_path / f"{path.stem}.html").write_text("<!doctype html><title>x</title>")
        with LogWriter(tmp_path / f"{path.stem}.fxlog") as log:
            log.info("hello")
    for name in ("pipe", "pipe.fxt"):
        os.mkfifo(tmp_path / name)
    done = run_cli("odd", tmp_path, "--json")
    assert done.exit_code == ExitCode.OK
    assert done.json()["captures"] == 24
    assert {Path(one["capture"]).name for one in done.json()["odd"]} == {"07.fxt", "05.fxt"}
    assert "skipped 14 files that are not captures: 12 .html, 2 pipe" in done.stderr
    assert run_cli("odd", tmp_path / "*.fxt").text == run_cli("odd", runs).text.replace(
        str(runs), str(tmp_path)
    )


def test_more_captures_are_odd_than_are_shown(runs: Path) -> None:
    done = run_cli("odd", runs, "--top", "1")
    assert done.text.startswith("2 of 12 captures are unlike the rest; the 1 most unlike:")
    assert run_cli("odd", runs, "--top", "1", "--json").json()["unlike"] == 2
