"""Temporary files that cannot be written: on a full disk, or in a folder that is not there."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

import fxframework
from fx_xray.read import match
from fxframework.errors import ExitCode, TemporaryFileError
from fxframework.host import Host
from fxframework.io import remote, source, spill
from fxframework.kit import runs
from fxframework.kit.in_time import Events, InTime
from fxframework.testing.cli import run_cli

from ..cases import cases
from .test_outputs import full_disk

MANY = 4096
"""Numbers of 8 bytes, more than the full disk takes."""


def fill_spill() -> None:
    column = spill.Spill(np.int64)
    for size in (10, MANY):
        column.grow(size)[:] = 1


def fill_runs() -> None:
    rows = runs.SortedRuns()
    rows.add({"time": np.arange(MANY)[::-1]})
    list(rows.windows())


def fill_time_order() -> None:
    times = np.arange(MANY)[::-1]
    sizes, places = np.ones(MANY, np.int64), np.zeros((0, MANY), np.int64)
    with InTime(lambda _: None) as events:
        events.add(Events(times, np.zeros(MANY, np.uint8), np.arange(MANY), sizes, places), 0)


def fill_spool() -> None:
    with source.spool_file() as spool:
        spool.write(bytes(8 * MANY))
        source.Source.spooled(spool, name="piped")


def fill_spans() -> None:
    match._spilled(MANY, np.int64)[:] = 1


def fill_remote() -> None:
    pytest.importorskip("fsspec")
    sink = remote.open_sink("memory://box/out.csv", force=True)
    try:
        sink.write(bytes(8 * MANY))
        sink.commit()
    finally:
        sink.abort()


USERS: dict[str, Callable[[], None]] = {
    "spill": fill_spill,
    "runs": fill_runs,
    "time order": fill_time_order,
    "spool": fill_spool,
    "spans": fill_spans,
    "remote": fill_remote,
}


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of temporary files, which all users need for little."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for module, name, value in (
        (spill, "IN_MEMORY", 0), (runs, "RUN", 1024), (source, "IN_MEMORY", 1),
        (match, "IN_MEMORY", 0),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr("fxframework.kit.in_time.MOST_WAITING", 16)
    return tmp_path


@cases("kind", ["full", "gone", "fine"])
@cases("name", USERS)
def test_what_goes_to_a_temporary_file_says_that_it_has_no_room(
    name: str, kind: str, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == "fine":
        USERS[name]()
        return
    if kind == "gone":
        scratch = scratch / "gone"
        monkeypatch.setattr("tempfile.tempdir", str(scratch))
    with (
        full_disk() if kind == "full" else nullcontext(),
        pytest.raises(TemporaryFileError) as caught,
    ):
        USERS[name]()
    assert (caught.value.code, caught.value.path) == ("FXF0011", str(scratch))
    assert ("File too large" if kind == "full" else "No such file") in str(caught.value)
    assert "TMPDIR" in str(caught.value.remedy)
    assert not scratch.exists() or not list(scratch.iterdir())


def test_what_is_mapped_is_on_the_disk_before_it_is_written(scratch: Path) -> None:
    # A page that has no block yet, and gets none on a full disk, ends the process (SIGBUS).
    column = spill.Spill(np.int64)
    column.grow(10)
    column.grow(1 << 20)
    status = os.fstat(column._file)
    assert 512 * status.st_blocks >= status.st_size >= 8 << 20


def test_it_is_reserved_where_the_system_cannot(
    scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "posix_fallocate")
    test_what_is_mapped_is_on_the_disk_before_it_is_written(scratch)
    with full_disk(), pytest.raises(TemporaryFileError, match="File too large"):
        fill_spill()


@pytest.mark.parametrize("words", [("info", "-"), ("convert", "-", "OUT", "-t", "csv")])
def test_piped_input_that_has_no_room_is_told(words: tuple[str, ...], scratch: Path) -> None:
    out = scratch / "out"
    out.mkdir()
    given = [out / "a.csv" if word == "OUT" else word for word in words]
    data = Host().reader("trace").sample
    assert data is not None
    with full_disk():
        result = run_cli(*given, stdin=data(100_000))
    assert result.exit_code == ExitCode.FAILED
    assert result.stderr.startswith("error[FXF0011]: cannot write a temporary file: File too large")
    assert f"--> {scratch}\n" in result.stderr
    assert "set TMPDIR to a folder on another disk" in result.stderr
    assert not list(out.iterdir())


def test_every_temporary_file_is_made_in_one_place() -> None:
    package = Path(fxframework.__file__).parent
    # The watchdog of the test kit is another process, which imports nothing of ours.
    places = (
        package / "io" / "temporary.py", package / "testing" / "contracts" / "watchdog.py"
    )  # fmt: skip
    for root in (package, Path(match.__file__).parents[1]):
        for path in root.rglob("*.py"):
            if path not in places:
                found = re.search(r"tempfile\.(Named|Spooled)?TemporaryFile", path.read_text())
                assert found is None, path
