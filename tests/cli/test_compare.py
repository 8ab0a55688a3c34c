"""`fxf compare`: sides, outputs, verdicts, exit statuses, and what it refuses."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import fxframework as fxf
from fxframework.errors import ExitCode, UsageError
from fxframework.testing.cli import run_cli

from ..cases import cases

SAME, CHANGED = ExitCode.OK, ExitCode.FAILED
SIDE_KEYS = {"count", "total_ns", "self_ns", "mean_ns", "median_ns", "p90_ns", "p99_ns"}


def trace(path: Path, seed: int, *, slow: float = 1.0, new: str = "", names: int = 12) -> Path:
    """A trace of forty rounds: `outer` calls each name; the last one is ``slow`` times as long."""
    from fx_trace.write.archive import Archive

    rng = np.random.default_rng(seed)
    now = 0
    with Archive(path, force=True) as archive:
        app = archive.provider(1, "app")
        for _ in range(40):
            begin = now
            for number in range(names):
                length = int(rng.lognormal(10, 0.3) * (slow if number == names - 1 else 1))
                name = new if new and number == 0 else f"part {number}"
                app.duration_complete("demo", name, now, now + length)
                now += length
            app.duration_complete("demo", "outer", begin, now)
            app.counter("demo", "memory", {"used": int(rng.integers(90, 110))}, timestamp=now)
            now += 1_000
    return path


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("pair")
    return trace(folder / "a.fxt", 1), trace(folder / "b.fxt", 2, slow=3.0, new="fresh")


def test_what_changed_is_named(pair: tuple[Path, Path]) -> None:
    done = run_cli("compare", *pair, "--json")
    assert done.exit_code == CHANGED
    found = done.json()
    assert (found["fxframework"], found["version"]) == ("compare", 1)
    assert (found["before"], found["after"]) == ([str(pair[0])], [str(pair[1])])
    calls = {one["name"]: one for one in found["calls"]}
    verdicts = {name: one["verdict"] for name, one in calls.items() if one["verdict"] != "same"}
    assert verdicts.pop("outer") == "slower"
    assert verdicts == {"part 11": "slower", "fresh": "new", "part 0": "gone"}
    one = calls["part 11"]
    assert one["before"].keys() == one["after"].keys() == SIDE_KEYS
    assert one["ratio"]["low"] <= 3 <= one["ratio"]["high"]
    assert calls["fresh"]["before"] is None
    assert calls["fresh"]["ratio"] is None
    reasons = {(one["path"][-1], one["reason"]) for one in found["explained"]}
    assert {("part 11", "self"), ("fresh", "new"), ("part 0", "gone")} <= reasons
    text = run_cli("compare", *pair).text
    assert text.index("what explains it") < text.index("verdict")
    assert max(map(len, text.splitlines())) <= 100


def test_the_same_file_twice_did_not_change(pair: tuple[Path, Path]) -> None:
    done = run_cli("compare", pair[0], pair[0])
    assert done.exit_code == SAME
    assert "same: nothing changed by 5% or more" in done.text


def test_paths_and_groups(pair: tuple[Path, Path]) -> None:
    by_path = run_cli("compare", *pair, "--by", "path", "--json").json()["calls"]
    assert ["outer", "part 11"] in [one["path"] for one in by_path]
    for by in ("process", "thread", "category"):
        assert run_cli("compare", *pair, "--by", by).exit_code in {SAME, CHANGED}
    assert run_cli("compare", *pair, "--by", "colour").exit_code == ExitCode.USAGE


def test_runs_are_the_samples(tmp_path: Path) -> None:
    for side, slow in (("a", 1.0), ("b", 1.4)):
        (tmp_path / side).mkdir()
        for run in range(5):
            trace(tmp_path / side / f"{run}.fxt", 10 * run + (side == "b"), slow=slow)
    folders = run_cli("compare", tmp_path / "a", "--with", tmp_path / "b", "--json")
    found = folders.json()
    assert folders.exit_code == CHANGED
    assert [len(found["before"]), len(found["after"])] == [5, 5]
    assert {one["name"] for one in found["calls"] if one["verdict"] == "slower"} == {"part 11"}
    pattern = run_cli("compare", "--with", tmp_path / "b" / "*.fxt", "--json", tmp_path / "a")
    b = sorted((tmp_path / "b").iterdir())
    assert pattern.json()["calls"] == found["calls"]  # words after an option are BEFORE again
    equals = run_cli("compare", tmp_path / "a", f"--with={b[0]}", *b[1:], "--json")
    assert equals.json()["calls"] == found["calls"]
    pattern = run_cli("compare", tmp_path / "a" / "?.fxt", "--with", tmp_path / "b" / "*.fxt")
    assert pattern.exit_code == CHANGED


def test_what_to_fail_on(pair: tuple[Path, Path]) -> None:
    for word, status in (("slower", CHANGED), ("faster", SAME), ("none", SAME),
                         ("faster,new", CHANGED)):  # fmt: skip
        assert run_cli("compare", *pair, "--fail-on", word).exit_code == status
    assert run_cli("compare", *pair, "--threshold", "900").exit_code == CHANGED  # new and gone
    assert run_cli("compare", *pair, "--fail-on", "worse").exit_code == ExitCode.USAGE


@cases("name", ["x.html", "x.svg", "x.csv", "x.parquet", "x.dot"])
def test_outputs(pair: tuple[Path, Path], tmp_path: Path, name: str) -> None:
    out = tmp_path / name
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    assert run_cli("compare", *pair, "--out", out).exit_code == CHANGED
    data = out.read_bytes()
    assert run_cli("compare", *pair, "--out", out).exit_code == ExitCode.FAILED  # it exists
    assert run_cli("compare", *pair, "--out", out, "--force", "--fail-on", "none").exit_code == SAME
    assert out.read_bytes() == data
    if name == "x.html":
        page = data.decode()
        assert not any(word in page for word in ("http://localhost", "src=", "@import"))
        text = page.partition('id="data">')[2].partition("</script>")[0]
        shown = json.loads(text)
        assert len(shown["calls"]) == 14
        assert len(shown["timelines"]) == 2
    elif name == "x.svg":
        assert b"part 11" in data
        assert b"before" in data
    elif name == "x.csv":
        rows = list(csv.DictReader(data.decode().splitlines()))
        assert {row["name"]: row["verdict"] for row in rows}["fresh"] == "new"
        assert {row["name"]: row for row in rows}["fresh"]["ratio"] == ""
    elif name == "x.parquet":
        from pyarrow import parquet

        assert parquet.read_table(out).num_rows == 14
    else:
        assert data.startswith(b"digraph xrayDiff {")


def test_distributions_of_very_many_names_are_left_out(
    pair: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fxframework.analysis.runs.SHAPED", 5)
    page = tmp_path / "x.html"
    assert run_cli("compare", *pair, "--out", page).exit_code == CHANGED
    text = page.read_text().partition('id="data">')[2].partition("</script>")[0]
    assert json.loads(text)["shapes"]["names"] == []


def test_an_anchor_is_a_name_of_both_sides(pair: tuple[Path, Path], tmp_path: Path) -> None:
    page = tmp_path / "x.html"
    done = run_cli("compare", *pair, "--out", page, "--anchor", "fresh")
    assert done.exit_code == ExitCode.USAGE
    assert "there is no slice 'fresh'" in done.stderr
    assert not page.exists()
    assert run_cli("compare", *pair, "--out", page, "--anchor", "part 5").exit_code == CHANGED


def test_what_cannot_be_compared(pair: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for words, said in (
        ((pair[0],), "and no --with"),
        ((pair[0], "--with", tmp_path / "empty"), "AFTER has no captures"),
        ((pair[0], pair[1], "--out", "x.pdf"), "names no output"),
        ((pair[0], pair[1], "-o", "a.svg"), "-o takes KEY=VALUE"),
    ):
        done = run_cli("compare", *words)
        assert (done.exit_code, said in done.stderr) == (ExitCode.USAGE, True), done.stderr
    from fx_log.write.handler import LogHandler

    handler = LogHandler(tmp_path / "x.fxlog")
    import logging

    handler.emit(logging.LogRecord("x", logging.INFO, "x.py", 1, "hello", None, None))
    handler.close()
    done = run_cli("compare", pair[0], tmp_path / "x.fxlog")
    assert done.exit_code == ExitCode.USAGE
    assert "BEFORE has calls and counters to compare, and AFTER has logs" in done.stderr


def test_what_one_side_has_none_of_is_new_or_gone(tmp_path: Path) -> None:
    """A side without any call, counter or instant differs from one that has some."""
    from fx_trace.write.archive import Archive

    def write(name: str, *kinds: str) -> Path:
        with Archive(tmp_path / name) as archive:
            app = archive.provider(1, "app")
            for at in range(40):
                if "calls" in kinds:
                    app.duration_complete("c", "x", at * 10, at * 10 + 5)
                if "counters" in kinds:
                    app.counter("c", "x", {"used": at % 4}, timestamp=at * 10)
                if "instants" in kinds:
                    app.instant("c", "x", timestamp=at * 10)
        return tmp_path / name

    kinds = "calls", "counters", "instants"
    whole = write("whole.fxt", *kinds)
    for kind in kinds:
        part = write(f"{kind}.fxt", *(one for one in kinds if one != kind))
        for files, verdict in (((whole, part), "gone"), ((part, whole), "new")):
            done = run_cli("compare", *files, "--json")
            assert (done.exit_code, done.json()["verdicts"]) == (CHANGED, {verdict: 1}), done.text
            assert done.json()[kind][0]["verdict"] == verdict
        for suffix in ("html", "svg", "csv", "dot"):
            out = tmp_path / f"{kind}.{suffix}"
            assert run_cli("compare", whole, part, "--out", out).exit_code == CHANGED
    assert run_cli("compare", part, part).exit_code == SAME


def test_what_a_format_cannot_have_is_left_out(tmp_path: Path) -> None:
    import logging

    from fx_log.write.handler import LogHandler
    from fx_trace.write.archive import Archive

    handler = LogHandler(tmp_path / "x.fxlog")
    handler.emit(logging.LogRecord("x", logging.INFO, "x.py", 1, "hello", None, None))
    handler.close()
    with Archive(tmp_path / "x.fxt") as archive:
        app = archive.provider(1, "app")
        app.duration_complete("c", "x", 10, 20)
        app.log("hello", timestamp=10, thread=app.thread(1, 2, "main"))
    done = run_cli("compare", tmp_path / "x.fxt", tmp_path / "x.fxlog", "--json")
    assert done.json()["calls"] == []
    assert "BEFORE alone has calls: not compared, as the format of AFTER has none" in done.stderr


def test_a_share_of_no_change_is_not_shown(tmp_path: Path) -> None:
    from fx_trace.write.archive import Archive

    for name in ("a", "b"):
        with Archive(tmp_path / f"{name}.fxt") as archive:
            app = archive.provider(1, "app")
            for at in range(40):
                app.duration_complete("c", name, at * 10, at * 10 + 5)
    text = run_cli("compare", tmp_path / "a.fxt", tmp_path / "b.fxt").text
    assert "–  new callee" in text
    assert "nan" not in text


def test_losses_are_summed_up(pair: tuple[Path, Path], tmp_path: Path) -> None:
    cut = tmp_path / "cut.fxt"
    cut.write_bytes(pair[0].read_bytes()[:-4])
    done = run_cli("compare", pair[0], cut, "--fail-on", "none")
    assert done.exit_code == ExitCode.FINDINGS
    assert "data was lost" in done.stderr


def test_in_python(pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    found = fxf.compare(*pair)
    assert found.verdicts["slower"] == 2
    assert "ratio" in found.calls.columns
    assert found.calls.texts("verdict").count("new") == 1
    found.show()
    assert "part 11" in capsys.readouterr().out
    assert "<table>" in found._repr_html_()
    paths = fxf.compare([pair[0]], [pair[1]], by="path")
    assert any(one.path == ("outer", "part 11") for one in paths.changes)
    with fxf.open(pair[0]) as capture:
        assert fxf.compare(capture, pair[0]).same
    for threshold in (-1, -0.01, float("nan")):
        with pytest.raises(UsageError, match="must be 0 or more"):
            fxf.compare(*pair, threshold=threshold)
    for words in ({"treshold": 0.1}, {"of_after": {"instr_mop": "x"}}):
        with pytest.raises(UsageError, match=r"no option .* applies here"):
            fxf.compare(*pair, **words)
    assert not fxf.compare(*pair, instr_map="x").same  # an option of another reader


def test_a_name_that_is_not_utf8(tmp_path: Path) -> None:
    from fx_trace.write.archive import Archive

    path = tmp_path / "x.fxt"
    with Archive(path) as archive:
        app = archive.provider(1, "app")
        for at in range(20):
            app.duration_complete("demo", "zz", at * 10, at * 10 + 5)
    path.write_bytes(path.read_bytes().replace(b"zz", b"\xff\xfe"))
    done = run_cli("compare", path, path, "--json")
    assert done.exit_code == SAME
    assert done.json()["calls"][0]["name"] == "\N{REPLACEMENT CHARACTER}" * 2


# --- Logs of two builds --------------------------------------------------------------------------

CALLS = Path(__file__).resolve().parents[2] / "examples" / "xray" / "spellcheck.xray"


@pytest.fixture
def builds(tmp_path: Path) -> list[tuple[Path, Path]]:
    """The same calls of two builds, whose functions have other numbers, and their maps."""
    made = []
    lines = tmp_path / "log.jsonl"
    fxf.convert(CALLS, lines)
    for number, name in enumerate(("before", "after")):
        moved = re.sub(
            r'"function_id":(\d+)',
            lambda found, by=number: f'"function_id":{(int(found[1]) + by - 1) % 4 + 1}',
            lines.read_text(),
        )
        (tmp_path / f"{name}.jsonl").write_text(moved)
        log, functions = tmp_path / f"{name}.xray", tmp_path / f"{name}.csv"
        fxf.convert(tmp_path / f"{name}.jsonl", log)
        rows = list(csv.DictReader(CALLS.with_suffix(".csv").read_text().splitlines()))
        for row in rows:
            row["function_id"] = str((int(row["function_id"]) + number - 1) % 4 + 1)
        with functions.open("w") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        made.append((log, functions))
    return made


def test_each_side_has_a_map_of_its_own(builds: list[tuple[Path, Path]]) -> None:
    (before, old), (after, new) = builds
    both = ("compare", before, after)
    assert run_cli(*both, "-m", old).exit_code == CHANGED
    result = run_cli(*both, "-m", old, "--with-map", new)
    assert result.exit_code == SAME, result.text
    assert run_cli(*both, "-m", old, "--with-option", f"instr_map={new}").exit_code == SAME
    assert fxf.compare(before, after, instr_map=old, of_after={"instr_map": new}).same
    assert not fxf.compare(before, after, instr_map=old).same
    assert "no option 'colour'" in run_cli(*both, "--with-option", "colour=red").stderr


@cases("columns", [80, 120])
def test_figures_come_first_and_long_names_are_cut(
    columns: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    from fx_trace.write.archive import Archive

    name = "std::vector<std::__cxx11::basic_string<char>>::" * 4
    for side, dur in (("a", 500), ("b", 900)):
        with Archive(tmp_path / f"{side}.fxt") as archive:
            app = archive.provider(1, "app", ticks_per_second=1_000_000_000)
            for at in range(20):
                app.duration_complete("cat", name, at * 1000, at * 1000 + dur + at)
    arguments = ("--color", "never", "compare", tmp_path / "a.fxt", tmp_path / "b.fxt")
    lines = run_cli(*arguments, terminal=True).text.splitlines()
    line = next(line for line in lines if line.startswith("  slower"))
    assert line.split()[1] == "1.79"
    assert "std::" in line
    assert "…" in line
    assert line.endswith("string<char>>::"[-8:])
    assert len(line) == columns


# --- folders -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs as `fxf replay --out` leaves them: two captures of each, a page, a report, a pipe."""
    from fx_log.write.writer import LogWriter

    root = tmp_path_factory.mktemp("folders")
    for side, slow in (("before", 1.0), ("after", 1.4)):
        for run in range(5):
            folder = root / side / str(run)
            folder.mkdir(parents=True)
            trace(folder / "run.fxt", 10 * run + (side == "after"), slow=slow)
            with LogWriter(folder / "run.fxlog") as log:
                for _ in range(3 if side == "before" else 9):
                    log.info("retry", timestamp=1)
            (folder / "run.html").write_text("<!doctype html><title>x</title>")
            (folder / "report.json").write_text("{}")
            os.mkfifo(folder / "pipe")
    return root


def test_folders_have_other_files_and_several_captures_a_run(folders: Path) -> None:
    before, after = folders / "before", folders / "after"
    done = run_cli("compare", before, "--with", after, "--json")
    found = done.json()
    assert done.exit_code == CHANGED
    assert found["runs"] == [5, 5]
    assert done.stderr.count("skipped 15 files that are not captures") == 2
    assert {one["name"] for one in found["calls"] if one["verdict"] == "slower"} == {"part 11"}
    (one,) = found["logs"]
    assert (one["verdict"], one["before"]["per_run"], one["after"]["per_run"]) == ("more", 3, 9)
    alone = run_cli("compare", before / "*/*.fxt", "--with", after / "*/*.fxt", "--json").json()
    assert alone["calls"] == found["calls"]
    assert fxf.compare(before, after).verdicts == found["verdicts"]


def test_captures_without_a_run_of_their_own_are_left_out(folders: Path, tmp_path: Path) -> None:
    shutil.copytree(folders / "before", tmp_path / "before", ignore=lambda *_: ["pipe"])
    (tmp_path / "before" / "2" / "run.fxlog").unlink()
    done = run_cli("compare", tmp_path / "before", "--with", folders / "after", "--json")
    assert done.json()["runs"] == [5, 5]
    assert "left out: 4 captures of format log" in done.stderr
    assert "left out: 5 captures of format log" in done.stderr
    assert done.json()["logs"] == []


def test_a_file_that_is_named_must_be_a_capture(folders: Path) -> None:
    page, capture = folders / "before/0/run.html", folders / "before/0/run.fxt"
    assert run_cli("compare", page, capture).exit_code == ExitCode.NO_READER
    assert run_cli("compare", folders / "before/0/*.html", capture).exit_code == ExitCode.USAGE


# --- too few runs --------------------------------------------------------------------------------


def calls(path: Path, *lengths: int) -> Path:
    """A trace of one call of each length, of two names in turn."""
    from fx_trace.write.archive import Archive

    with Archive(path, force=True) as archive:
        app = archive.provider(1, "app", ticks_per_second=1_000_000_000)
        for number, length in enumerate(lengths):
            app.duration_complete("c", f"n{number % 2}", 1000 * number, 1000 * number + length)
    return path


def test_a_change_of_one_run_a_side_is_not_called_the_same(tmp_path: Path) -> None:
    a, b = calls(tmp_path / "a.fxt", 100, 100), calls(tmp_path / "b.fxt", 100, 242)
    done = run_cli("compare", a, b)
    assert "too few runs to tell; +71.0% in all" in done.text
    assert "nothing changed" not in done.text
    assert re.search(r"unclear +2\.42 .* n1", done.text)
    assert done.exit_code == CHANGED
    for words, status in (("slower,new", SAME), ("unclear", CHANGED), ("none", SAME)):
        assert run_cli("compare", a, b, "--fail-on", words).exit_code == status
    found = run_cli("compare", a, b, "--json").json()
    assert found["unclear"]
    assert {one["name"]: one["verdict"] for one in found["calls"]} == {
        "n0": "same", "n1": "unclear"
    }  # fmt: skip
    same = run_cli("compare", a, a)
    assert same.exit_code == SAME
    assert "same: nothing changed" in same.text


def test_a_small_change_of_one_run_a_side_is_the_same(tmp_path: Path) -> None:
    a, b = calls(tmp_path / "a.fxt", 100, 100), calls(tmp_path / "b.fxt", 100, 103)
    done = run_cli("compare", a, b)
    assert done.exit_code == SAME
    assert "same: nothing changed" in done.text


def test_titles_say_whose_numbers_they_are(folders: Path) -> None:
    text = run_cli("compare", folders / "before", "--with", folders / "after").text
    (line,) = (line.split() for line in text.splitlines() if line.endswith(" part 11")
               and "slower" in line)  # fmt: skip
    assert "before/call  after/call  change/run  calls/run" in text
    assert "40" in line  # of each run, not 160 of all
