"""What a long run shows while it goes on."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fxframework as fxf
from fxframework.cli import progress
from fxframework.cli.progress import ERASE, Working
from fxframework.host import default_host
from fxframework.io.source import Source
from fxframework.testing.cli import run_cli

from ..cases import cases

SAMPLE = 300_000
"""Bytes of a sample: seconds for those who go record by record."""
SAMPLED = [
    reader
    for reader in default_host().readers.values()
    if reader.sample is not None and reader.format in default_host().writers
]


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The clock."""
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


@pytest.mark.parametrize(
    ("done", "seconds", "text"),
    [
        ((0, 4, 0, 100_000_000), 1, "batch  0 of 4"),
        ((2, 4, 50_000_000, 100_000_000), 10, "batch  50 %, 2 of 4, 5.0 MB/s, 10 s left"),
        ((1, 100, 1_000_000, 100_000_000), 10, "batch  1 %, 1 of 100, 0.1 MB/s, 16 min left"),
        ((4, 4, 100_000_000, 100_000_000), 10, "batch  100 %, 4 of 4, 10.0 MB/s, 0 s left"),
    ],
)
def test_items_pace_and_time_left(
    done: tuple[int, int, int, int], seconds: float, text: str, now: list[float]
) -> None:
    working = Working("batch", "")
    now[0] += seconds
    working.count(*done)
    assert working.text() == text


def test_bytes_written_come_last(now: list[float]) -> None:
    source = Source.open(bytes(40_000_000))
    working = Working("converting a.fxt", "written", [source])
    working.watch(lambda: 3_000_000)
    source.position = 20_000_000
    now[0] += 4
    assert working.text() == "converting a.fxt  50 %, 5.0 MB/s, 4 s left, 3.0 MB written"


def test_long_names_leave_room_for_the_figures(now: list[float]) -> None:
    source = Source.open(bytes(40_000_000))
    working = Working("reading " + "/a/long/path" * 30 + "/boot.fxt", "", [source])
    assert len(working.text(60)) == 60
    source.position = 20_000_000
    now[0] += 4
    shown = working.text(60)
    assert len(shown) == 60
    assert shown.startswith("reading /a")
    assert shown.endswith("/boot.fxt  50 %, 5.0 MB/s, 4 s left")
    assert working.text(5).endswith("50 %, 5.0 MB/s, 4 s left")


def test_another_pass_begins_again(now: list[float]) -> None:
    sources = [Source.open(bytes(20_000_000)), Source.open(bytes(20_000_000))]
    working = Working("comparing", "", sources)
    sources[0].position = sources[1].position = 20_000_000
    now[0] += 4
    assert working.text() == "comparing  100 %, 10.0 MB/s, 0 s left"
    sources[0].position, sources[1].position = 2_000_000, 0
    assert working.text().startswith("comparing  pass 2: 5 %")
    sources[1].position = 18_000_000
    now[0] += 2
    assert working.text() == "comparing  pass 2: 50 %, 10.0 MB/s, 2 s left"
    sources[1].position = 17_000_000  # rows may be in another order than their records
    assert working.text() == "comparing  pass 2: 50 %, 10.0 MB/s, 2 s left"


def test_a_compressed_file_says_how_much_of_it_is_fetched(now: list[float]) -> None:
    working = Working("fetching a.fxt.gz", "fetched")
    said = []

    def fetched(done: int, read: int, total: int) -> None:
        now[0] += 1
        working(done, read, total)
        said.append(working.text())

    reader = next(reader for reader in SAMPLED if reader.format == "trace")
    assert reader.sample is not None
    packed = gzip.compress(reader.sample(8_000_000), 1)
    Source.open(packed, progress=fetched)
    assert len(said) >= 8
    assert all(" %, " in text and " left, " in text and "MB fetched" in text for text in said)
    assert " 100 %, " in said[-1]


# --- every long run says how far it is -----------------------------------------------------------


class _Recorder:
    """In place of ``Source.position``: keeps what it is set to, as shares of the size."""

    def __init__(self) -> None:
        self.shares: list[float] = []

    def __get__(self, source: Any, _type: Any) -> Any:
        return source.__dict__.get("recorded", 0)

    def __set__(self, source: Source, position: int) -> None:
        source.__dict__["recorded"] = position
        if position:
            self.shares.append(position / source.size)


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> _Recorder:
    recorder = _Recorder()
    monkeypatch.setattr(Source, "position", recorder, raising=False)
    return recorder


RUNS: dict[str, tuple[Callable[[Path, Path, str], object], int]] = {
    "salvage": (lambda path, folder, suffix: fxf.salvage(path, folder / f"sound{suffix}"), 1),
    "records": (lambda path, folder, _: fxf.convert(path, folder / "all.jsonl"), 1),
    "text": (lambda path, folder, _: fxf.convert(path, folder / "all.txt"), 1),
}
"""What takes long, and how often it says at least how far it is."""


@cases("run", RUNS)
@cases("reader", SAMPLED, ids=lambda reader: str(reader.format))
def test_a_long_run_says_how_far_it_is(
    reader: Any, run: str, recorder: _Recorder, tmp_path: Path
) -> None:
    path = tmp_path / f"sample{reader.suffixes[0]}"
    path.write_bytes(reader.sample(SAMPLE))
    work, least = RUNS[run]
    work(path, tmp_path, reader.suffixes[0])
    assert len(set(recorder.shares)) >= least, recorder.shares
    assert 0.85 <= max(recorder.shares) <= 1.001


@cases("reader", SAMPLED, ids=lambda reader: str(reader.format))
def test_a_records_file_says_how_far_it_is_while_it_is_opened(
    reader: Any, recorder: _Recorder, tmp_path: Path
) -> None:
    fxf.convert(reader.sample(SAMPLE), tmp_path / "all.jsonl", format=reader.format)
    recorder.shares.clear()
    with fxf.open(tmp_path / "all.jsonl"):
        assert max(recorder.shares) > 0.5


def test_a_terminal_shows_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 0.01)
    monkeypatch.setattr(progress, "EVERY", 0.001)
    (reader,) = (reader for reader in SAMPLED if reader.format == "trace")
    path, lines = tmp_path / "a.fxt", tmp_path / "b.jsonl"
    path.write_bytes(reader.sample(300_000))
    fxf.convert(path, lines)
    shown = run_cli("convert", lines, tmp_path / "b.fxt", terminal=True).stderr
    frames = [text.partition(ERASE)[0] for text in shown.split("\r")]
    assert any(" %" in text and "MB/s" in text and "left" in text for text in frames), frames
    # With results on the terminal, progress does not come between them.
    assert "printing" not in run_cli("cat", path, terminal=True).stderr
