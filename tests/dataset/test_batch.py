"""Batches: the same dataset from every engine, after a kill, and as the single captures say."""

from __future__ import annotations

import contextlib
import glob
import hashlib
import importlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import fxframework as fxf
from fxframework.dataset import engines
from fxframework.dataset.inputs import Item, expand
from fxframework.dataset.manifest import Entry
from fxframework.dataset.part import Recipe, convert_items
from fxframework.dataset.query import DatasetQueries
from fxframework.dataset.store import Store
from fxframework.errors import ExitCode, FxError, UnreadableError, UsageError, WriteRefusedError
from fxframework.query import JOINED, Database
from fxframework.testing.cli import run_cli

from ..cases import cases
from .fleet import make

pytest.importorskip("pyarrow")
COUNT = 40


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Path]]:
    folder = tmp_path_factory.mktemp("batch") / "fleet"
    return folder, make(folder, COUNT)


@pytest.fixture(scope="module")
def whole(fleet: tuple[Path, list[Path]]) -> tuple[Path, Any]:
    """The dataset of the fleet, made in this process."""
    folder, _ = fleet
    out = folder.parent / "serial"
    return out, fxf.batch(folder, out, jobs=1, host="{folder}")


def contents(dataset: Path) -> dict[str, str]:
    """The files of a dataset and what is in them; of the manifest, all but times."""
    found = {
        path.relative_to(dataset).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in dataset.rglob("*.*")
        if path.is_file()
    }
    entries = Store(str(dataset)).entries().values()
    said = [(each.file, each.rows, each.findings, each.outcome, each.error) for each in entries]
    found["_manifest.jsonl"] = repr(sorted(said, key=lambda each: each[0]))
    return found


# --- what is in it -------------------------------------------------------------------------------


def test_rows_are_those_of_the_captures_and_damage_is_told_once(
    fleet: tuple[Path, list[Path]], whole: tuple[Path, Any]
) -> None:
    """Takes seconds, with the batch that all tests here look at."""
    folder, spoiled = fleet
    out, report = whole
    rows: Counter[str] = Counter()
    for path in folder.rglob("*.*"):
        with contextlib.suppress(FxError), fxf.open(path) as capture:
            if capture.summary().records:
                rows.update({name: len(capture.table(name)) for name in capture.tables})
    assert {name: count for name, count in report.rows.items() if count} == dict(+rows)
    counted = {
        name: fxf.sql(out, f'select count(*) as n from "{name}"').column("n")[0].as_py()
        for name in report.rows
    }
    assert counted == report.rows
    assert len(report.entries) == COUNT
    bad = [each.file for each in report.entries if each.outcome != "ok"]
    assert sorted(bad) == sorted(path.as_posix() for path in spoiled)
    assert {each.host for each in report.entries} == {f"host-{n}" for n in range(7)}
    assert {each.format for each in report.entries} >= {"trace", "log", "inspect", "xray"}
    assert not list(out.rglob(".*"))


def test_the_pool_gives_the_same_bytes_and_the_command_names_what_failed(
    fleet: tuple[Path, list[Path]], whole: tuple[Path, Any], tmp_path: Path
) -> None:
    folder, spoiled = fleet
    out = tmp_path / "pool"
    done = run_cli("batch", str(folder), "--out", str(out), "--jobs", "2", "--host", "{folder}")
    assert done.exit_code == 3
    assert contents(out) == contents(whole[0])
    for path in spoiled:
        assert done.stderr.count(path.as_posix()) == 1
    assert f"{COUNT} captures" in done.stderr
    assert "stops" not in done.stderr
    again = run_cli("batch", str(folder), "--out", str(out))
    assert (again.exit_code, "--resume" in again.stderr) == (1, True)


def test_the_command_names_the_losses_of_a_capture_and_with_v_all_findings(tmp_path: Path) -> None:
    # A header, a reserved block, and three bytes.
    data = b"\0\2\2\0INSP" + bytes(8) + b"\0\1" + bytes(14) + b"cut"
    (tmp_path / "cut.inspect").write_bytes(data)
    for flags in ((), ("-v",)):
        out = tmp_path / f"dataset{len(flags)}"
        done = run_cli(*flags, "batch", tmp_path / "cut.inspect", "--out", out, "--jobs", "1")
        assert (done.exit_code, "FXI0013 ×1" in done.stderr) == (3, True)
        assert ("FXI0102" in done.stderr) == bool(flags)


def test_dask_gives_the_same_bytes(
    fleet: tuple[Path, list[Path]], whole: tuple[Path, Any], tmp_path: Path
) -> None:
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None
    ) as cluster:
        address = cluster.scheduler_address
        fxf.batch(fleet[0], tmp_path / "dask", engine=f"dask={address}", host="{folder}", jobs=2)
    assert contents(tmp_path / "dask") == contents(whole[0])
    with pytest.raises(FxError, match="scheduler"):
        engines.DaskEngine("nowhere://1", 1)


def test_a_batch_goes_on_after_kill(
    fleet: tuple[Path, list[Path]], whole: tuple[Path, Any], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    out = tmp_path / "killed"
    words = ["batch", str(fleet[0]), "--out", str(out), "--jobs", "2", "--host", "{folder}"]
    with tempfile.TemporaryDirectory(prefix="t") as scratch:
        check_kill(words, out, scratch)
        monkeypatch.setattr("tempfile.tempdir", scratch)
        check_resume(fleet[0], out, whole[0])
        assert not list(Path(scratch).iterdir())


def check_kill(words: list[str], out: Path, scratch: str) -> None:
    command = [sys.executable, "-m", "fxframework.cli", *words]
    environment = {**os.environ, "TMPDIR": scratch}
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, env=environment)
    until = time.monotonic() + 60
    while len(list((out / "_done").glob("*.json"))) < 3 and process.poll() is None:
        assert time.monotonic() < until
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert list(Path(scratch).iterdir())


def check_resume(folder: Path, out: Path, whole: Path) -> None:
    finished = {
        name: path.stat().st_mtime_ns
        for name, path in [(each.name, each) for each in (out / "_done").glob("*.json")]
        if Entry.from_json(path.read_bytes()).outcome != "failed"
    }
    before = {
        path: path.stat().st_mtime_ns
        for path in out.glob("table=*/*.parquet")
        if f"{path.stem}.json" in finished
    }
    # Its workers end with it; what they left half-written is not part of the dataset.
    (out / "table=slices").mkdir(exist_ok=True)
    (out / "table=slices" / "0123456789abcdef.parquet").write_bytes(b"half of one")
    report = fxf.batch(folder, out, jobs=1, host="{folder}", resume=True)
    assert contents(out) == contents(whole)
    assert 0 < report.done <= COUNT - len(finished)
    assert all(path.stat().st_mtime_ns == then for path, then in before.items())


def test_resume_converts_what_is_new_changed_or_failed(tmp_path: Path) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    make(folder, 4)
    first, *_ = sorted(folder.rglob("*.*"))
    report = fxf.batch(folder, out, jobs=1)
    assert report.done == 4
    failed = report.outcomes["failed"]
    assert fxf.batch(folder, out, jobs=1, resume=True).done == failed
    first.write_bytes(first.read_bytes()[:-8])
    os.utime(first, ns=(1, 1))
    (folder / "new.fxt").write_bytes(b"no trace")
    changed = fxf.batch(folder, out, jobs=1, resume=True)
    assert changed.done == 2 + failed - (first.as_posix() in
                                         [e.file for e in report.entries if e.error])  # fmt: skip
    assert len(changed.entries) == 5
    with pytest.raises(UsageError, match="other options"):
        fxf.batch(folder, out, jobs=1, resume=True, max_string=10)
    fxf.batch(folder, out, jobs=1, force=True, max_string=10)
    with pytest.raises(WriteRefusedError, match="not a folder"):
        fxf.batch(folder, first, jobs=1)
    with pytest.raises(WriteRefusedError, match="already a dataset"):
        fxf.batch(folder, out, jobs=1)
    with pytest.raises(WriteRefusedError, match="nor a dataset"):
        fxf.batch(folder, folder, jobs=1, force=True)
    bounded = fxf.batch(folder, tmp_path / "bounded", jobs=1, max_output=10)
    assert {each.error.code for each in bounded.entries if each.error} >= {"FXF0003"}
    assert not list((tmp_path / "bounded").glob("table=*/*"))
    with pytest.raises(UsageError, match="nosuch"):
        fxf.batch(folder, tmp_path / "never", jobs=1, nosuch=1)
    assert not (tmp_path / "never").exists()


def test_relative_names_mean_the_same_on_every_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path / "in", 2)
    monkeypatch.chdir(tmp_path)
    items = tuple(expand(["in"]))
    recipe = Recipe(out=str(tmp_path / "out"), folder=str(tmp_path))
    monkeypatch.chdir("/")
    assert "failed" not in [entry.outcome for entry in convert_items(recipe, items)]
    assert [item.file[:3] for item in items] == ["in/", "in/"]


WORK = """
import os
from fxframework.dataset.manifest import Entry

def work(items):
    if any(item.file == "bad" for item in items):
        os._exit(9)
    return [
        Entry(capture=i.capture, file=i.file, host="", size=1, version="", outcome="ok")
        for i in items
    ]
"""


def test_a_capture_that_ends_its_process_fails_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "deadly_work.py").write_text(WORK)
    monkeypatch.syspath_prepend(tmp_path)
    work = importlib.import_module("deadly_work").work
    items = [Item(file=name) for name in ("a", "b", "bad", "c", "d")]
    with engines.PoolEngine(1) as pool:
        found = [each for part in pool.run(work, [tuple(items[:3]), tuple(items[3:])])
                 for each in part]  # fmt: skip
    assert {each.file: each.outcome for each in found} == {
        "a": "ok", "b": "ok", "bad": "failed", "c": "ok", "d": "ok",
    }  # fmt: skip


# --- inputs --------------------------------------------------------------------------------------


def test_files_folders_patterns_lists_and_addresses(tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    for name in ("a/1.fxt", "a/2.fxt", "b/deep/3.fxt", "b/.hidden", "out/table=x/4.parquet"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    (tmp_path / "list.txt").write_text(f"# captures\n{tmp_path}/a/1.fxt\tbox\n\nmissing.fxt\n")
    fs = fsspec.filesystem("memory")
    fs.pipe_file("/batch/x/5.fxt", b"x")

    def names(*words: str, **options: str) -> list[tuple[str, str]]:
        items = expand(words, **options)
        return [(item.file.replace(str(tmp_path), ""), item.host) for item in items]

    assert names(str(tmp_path), out=str(tmp_path / "out")) == [
        ("/a/1.fxt", ""), ("/a/2.fxt", ""), ("/b/deep/3.fxt", ""), ("/list.txt", ""),
    ]  # fmt: skip
    assert ("/out/table=x/4.parquet", "") in names(f"{tmp_path}/**/*.*")
    assert ("/out/table=x/4.parquet", "") not in names(f"{tmp_path}/**", out=f"{tmp_path}/out")
    assert names(f"{tmp_path}/**/*.fxt", f"{tmp_path}/a/1.fxt", host="{folder}") == [
        ("/a/1.fxt", "a"), ("/a/2.fxt", "a"), ("/b/deep/3.fxt", "deep"),
    ]  # fmt: skip
    assert names(f"@{tmp_path}/list.txt", host="all") == [("/a/1.fxt", "box"),
                                                         ("missing.fxt", "all")]  # fmt: skip
    for word in ("memory://batch", "memory://batch/**/*.fxt", "memory://batch/x/5.fxt"):
        assert [file for file, _ in names(word)] in (
            ["memory:///batch/x/5.fxt"], ["memory://batch/x/5.fxt"],
        )  # fmt: skip
    assert names("http://localhost:9/a.fxt") == [("http://localhost:9/a.fxt", "localhost")]
    with pytest.raises(UsageError, match="no file matches"):
        expand([f"{tmp_path}/*.nosuch"])
    with pytest.raises(UnreadableError, match="list cannot be read"):
        expand(["@nosuch"])
    fs.rm("/batch", recursive=True)


@pytest.mark.skipif(os.name == "nt", reason="symbolic links need rights on Windows")
@pytest.mark.timeout(30)
@cases("word", ["**/*.fxt", "**", ".", "**/**/*.f?t", "r*/**/*.fxt", "*/*.fxt"])
def test_links_lead_neither_in_circles_nor_twice_to_a_file(
    word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("real", "real/deep", "runs"):
        Path(folder).mkdir()
    for name in ("real/1.fxt", "real/deep/2.fxt", "runs/3.fxt"):
        Path(name).write_bytes(b"x")
    for link, target in {
        "real/up": "..", "real/deep/self": ".", "real/deep/top": str(tmp_path), "runs/real":
        "../real", "latest": "runs", "runs/again.fxt": "3.fxt", "a.fxt": "real/1.fxt",
        "loop.fxt": "loop.fxt",
    }.items():  # fmt: skip
        Path(link).symlink_to(target)
    found = [item.file for item in expand([word, word])]
    every = ["real/1.fxt", "real/deep/2.fxt", "runs/3.fxt"]
    expected = {"r*/**/*.fxt": every, "*/*.fxt": ["real/1.fxt", "runs/3.fxt"]}
    assert found == expected.get(word, sorted([*every, "loop.fxt"]))


@pytest.mark.timeout(60)
@pytest.mark.parametrize("jobs", [1, 2])
def test_files_that_are_not_captures_are_skipped_unless_they_are_named(
    jobs: int, fleet: tuple[Path, list[Path]], tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    capture = next(path for path in sorted(fleet[0].rglob("*.fxt")) if path not in fleet[1])
    for name in ("a.fxt", "b.fxt"):
        (folder / name).write_bytes(capture.read_bytes())
    for name in ("code.py", "page.html", "report.json"):
        (folder / name).write_text("print()\n")
    (folder / "junk.fxt").write_bytes(b"hello" * 99)
    os.mkfifo(folder / "pipe.fxt")
    report = fxf.batch(folder, tmp_path / "one", jobs=jobs)
    assert report.outcomes == {"ok": 2, "losses": 0, "failed": 1}
    skipped = {Path(item.file).name for item in report.skipped}
    assert skipped == {"code.py", "page.html", "report.json", "pipe.fxt"}
    again = fxf.batch(folder, tmp_path / "one", jobs=jobs, resume=True)
    assert (again.done, len(again.entries)) == (1, 3)
    named = fxf.batch(
        [folder / "code.py", folder / "pipe.fxt", folder], tmp_path / "two", jobs=jobs
    )
    assert named.outcomes == {"ok": 2, "losses": 0, "failed": 3}
    errors = {Path(one.file).name: one.error.message for one in named.entries if one.error}
    assert errors["pipe.fxt"] == "a batch cannot read a pipe"
    done = run_cli("batch", folder, "--out", tmp_path / "three", "--jobs", str(jobs))
    assert "skipped 4 files that are not captures: " in done.stderr
    assert "code.py" not in done.stderr
    pages = run_cli("batch", folder / "*.py", "--out", tmp_path / "four")
    assert pages.exit_code == ExitCode.FAILED


@pytest.mark.parametrize("word", ["loop/*", "loop", "**/loop/l*", "loop/*/*"])
def test_links_in_a_circle_have_a_clear_result(
    word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("loop").mkdir()
    Path("loop/l1").symlink_to("l2")
    Path("loop/l2").symlink_to("l1")
    done = run_cli("batch", word, "--out", "out", "--jobs", "1")
    assert done.exit_code in {ExitCode.FAILED, ExitCode.USAGE}
    assert "symbolic links" in done.stderr or "no file matches" in done.stderr
    assert "FXF0000" not in done.stderr


def test_a_file_is_known_by_its_own_name_or_by_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "z").mkdir()
    (tmp_path / "z" / "file.fxt").write_bytes(b"x")
    for link in ("a.fxt", "b.fxt"):
        (tmp_path / link).symlink_to("z/file.fxt")
    (tmp_path / "y").symlink_to("z")
    assert [item.file for item in expand(["*.fxt"])] == ["a.fxt"]
    assert [item.file for item in expand(["*.fxt", "z"])] == ["z/file.fxt"]
    assert [item.file for item in expand(["y", "b.fxt"])] == ["b.fxt"]


PARTS = st.sampled_from(["a", "b", "a.x", "b.x", ".h"])
PATTERNS = st.lists(
    st.sampled_from(["**", "*", "a*", "*.x", "[ab]", "?", ".*", "a", "b.x"]), min_size=1, max_size=4
).filter(lambda parts: any(glob.has_magic(part) for part in parts))


@example([["a"]], ["a", "**", "**"])
@given(st.lists(st.lists(PARTS, min_size=1, max_size=3), max_size=8), PATTERNS)
def test_patterns_match_what_those_of_python_do(files: list[list[str]], parts: list[str]) -> None:
    """Without links; a folder that matches stands for its files."""
    with tempfile.TemporaryDirectory() as folder:
        for file in files:
            path = Path(folder, *file)
            with contextlib.suppress(OSError):  # another file is where a folder should be
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()
        pattern = f"{folder}/{'/'.join(parts)}"
        expected = set()
        for match in glob.glob(pattern, recursive=True):  # noqa: PTH207 (the oracle)
            if not Path(match).is_dir():
                expected.add(Path(match).as_posix())
                continue
            for at, folders, names in os.walk(match):
                folders[:] = [each for each in folders if not each.startswith(".")]
                expected |= {f"{Path(at).as_posix()}/{each}" for each in names if each[0] != "."}
        if not any(map(Path.is_file, map(Path, expected))):
            return
        assert [item.file for item in expand([pattern])] == sorted(expected)


def test_captures_and_dataset_may_be_remote(tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    fs = fsspec.filesystem("memory")
    make(tmp_path / "in", 4)
    for path in (tmp_path / "in").rglob("*.*"):
        fs.pipe_file(f"/fleet/{path.name}", path.read_bytes())
    here = fxf.batch(tmp_path / "in", tmp_path / "out", jobs=1)
    there = fxf.batch("memory://fleet", "memory://made", jobs=1)
    assert (there.rows, there.outcomes) == (here.rows, here.outcomes)
    query = "select name, dur from slices order by all limit 20"
    assert fxf.sql("memory://made", query) == fxf.sql(tmp_path / "out", query)
    assert fxf.batch("memory://fleet", "memory://made", jobs=1, resume=True).done == 0
    fs.pipe_file("/fleet/0001-boot.fxt", path.read_bytes()[:-1])
    assert fxf.batch("memory://fleet", "memory://made", jobs=1, resume=True).done == 1
    fs.rm("/fleet", recursive=True)
    fs.rm("/made", recursive=True)


# --- questions -----------------------------------------------------------------------------------


def rows_of(table: Any, *, without: tuple[str, ...]) -> list[str]:
    """The rows, in an order of their own; of arguments, those that a row has."""

    def plain(value: Any) -> Any:
        if not isinstance(value, dict):
            return value or []  # NULL is equal to a struct of nulls
        return sorted(
            (name, str(plain(each)))
            for name, each in value.items()
            if each is not None and not name.endswith("_bytes")
        )

    keep = sorted(set(table.column_names).difference(without))
    rows = table.select(keep).to_pylist()
    return sorted(repr([(name, plain(value)) for name, value in row.items()]) for row in rows)


@pytest.mark.parametrize("suffix", [".fxt", ".fxlog", ".inspect", ".xray"])
def test_views_of_a_dataset_have_what_those_of_captures_have(
    fleet: tuple[Path, list[Path]], whole: tuple[Path, Any], suffix: str
) -> None:
    folder, spoiled = fleet
    files = sorted(path for path in folder.rglob(f"*{suffix}") if path not in spoiled)[:3]
    captures = [fxf.open(path) for path in files]
    added = ("capture", "capture_file", "capture_host")
    names = ", ".join(f"'{path.as_posix()}'" for path in files)
    with Database(captures) as database:
        tables = [name for name in database.views if name in captures[0].tables]
        for name in [*tables, *(JOINED[each] for each in tables if each in JOINED)]:
            theirs = fxf.sql(whole[0], f'select * from "{name}" where capture_file in ({names})')
            ours = database.query(f'select * from "{name}"')
            more = {column for column in ours.column_names if column.endswith("_bytes")}
            assert set(ours.column_names) - more <= set(theirs.column_names), name
            # A dataset holds text alone.
            other = (*more, *(set(theirs.column_names) - set(ours.column_names)))
            assert rows_of(theirs, without=(*added, *other)) == rows_of(ours, without=added + other)
    for capture in captures:
        capture.close()


def questions() -> list[str]:
    """The ten queries of docs/sql.md."""
    page = (Path(__file__).parents[2] / "docs" / "sql.md").read_text("utf-8")
    rows = page.partition("## Ten questions")[2].splitlines()
    return [row.split("|")[2].strip().strip("`") for row in rows if row.startswith(("| W", "| H"))]


def test_the_ten_questions_have_the_answers_of_the_captures(
    fleet: tuple[Path, list[Path]], whole: tuple[Path, Any]
) -> None:
    asked = questions()
    assert len(asked) == 10
    files = [entry.file for entry in whole[1].entries if entry.outcome != "failed"]
    with contextlib.ExitStack() as stack:
        captures = [stack.enter_context(fxf.open(file)) for file in files]
        ours = stack.enter_context(Database(captures))
        theirs = stack.enter_context(DatasetQueries(str(whole[0])))
        for query in asked:
            bare = query.partition(" limit ")[0]  # of equal rows any may be first
            found = theirs.query(bare)
            assert rows_of(found, without=()) == rows_of(ours.query(bare), without=()), query
            joined = " s.parent where" in query or " logs l join" in query
            assert found.num_rows or not joined
