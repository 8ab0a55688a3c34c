"""Splitting: one capture as several files, each of which opens by itself."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import fxframework as fxf
from fxframework.errors import UsageError, WriteRefusedError
from fxframework.model.capture import Capture
from fxframework.splitting import MOST_PARTS, Split

from ..cases import cases
from ..samples import samples

MAGIC = Path(__file__).parents[2] / "examples" / "magic_trace_sample.fxt.gz"
BOOT = Path(__file__).parents[2] / "examples" / "scenarios" / "boot.golden" / "boot.fxt"
MOMENTS = ("instants", "counters", "sched", "logs")
"""Tables whose rows are in one part each; slices are in all that they reach into."""


@cases(
    ("into", "split"),
    [
        ("100MB", Split(nbytes=100_000_000)), ("1.5 KiB", Split(nbytes=1536)),
        ("7B", Split(nbytes=7)), ("10s", Split(length_ns=10**10)), ("5us", Split(length_ns=5000)),
        ("8", Split(count=8)), (8, Split(count=8)),
    ],
)  # fmt: skip
def test_how_it_is_split(into: str | int, split: Split) -> None:
    assert Split.parse(into) == split


@cases("into", ["", "0", "0s", "0B", "-3", "-3s", "10 parts", "1iB", "1.5", "MB"])
def test_what_cannot_be_split_into(into: str) -> None:
    with pytest.raises(UsageError, match="cannot be split"):
        Split.parse(into)


def rows(capture: Capture, name: str) -> Counter[tuple[Any, ...]]:
    """The rows of a table by what they mean."""
    table = capture.table(name)
    columns = [
        table.texts(column.name) if column.kind in {"code", "text"} else table[column.name].tolist()
        for column in table.schema.all_columns
        if column.name in {"ts", "name", "category", "message", "value", "cpu", "severity", "dur"}
    ]
    return Counter(zip(*columns, strict=True))


FORMATS = ["trace", "log", "xray", "log-legacy-stream"]


def sample_of(format: str) -> bytes:
    return next(data for kind, data in samples().values() if kind == format)


@cases("format", FORMATS)
def test_parts_have_together_what_the_whole_has(format: str, tmp_path: Path) -> None:
    data = sample_of(format)
    suffix = {"trace": ".fxt", "log": ".fxlog", "log-legacy-stream": ".fxllog"}.get(format, ".xray")
    with fxf.open(data, format=format) as whole:
        for into in (3, f"{max(len(data) * 2 // 3, 1600)}B"):
            stem = f"{format}-{into}"
            reports = fxf.split(whole, tmp_path / f"{stem}{suffix}", into)
            assert len(reports) == 3 if into == 3 else len(reports) > 1
            found: dict[str, Counter[tuple[Any, ...]]] = {name: Counter() for name in MOMENTS}
            slices: set[tuple[Any, ...]] = set()
            for number, report in enumerate(reports, 1):
                out = tmp_path / f"{stem}-{number:03}{suffix}"
                assert report.out == str(out)
                assert report.nbytes == out.stat().st_size
                assert into == 3 or report.nbytes <= max(len(data) * 2 // 3, 1600)
                with fxf.open(out, format=format) as part:
                    part.scan()
                    for name in MOMENTS:
                        if name in part.schemas:
                            found[name] += rows(part, name)
                    if "slices" in part.schemas:
                        slices |= rows(part, "slices").keys()
            for name in MOMENTS:
                if name in whole.schemas:
                    assert found[name] == rows(whole, name), (into, name)
            if "slices" in whole.schemas:
                assert slices == rows(whole, "slices").keys()


def test_parts_by_time_begin_where_something_does(tmp_path: Path) -> None:
    with fxf.open(BOOT) as whole:
        first = min(int(whole.table(name)["ts"].min()) for name in ("slices", *MOMENTS))
        fxf.split(whole, tmp_path / "part.fxt", "5ms", select=fxf.Selection(threads=("main",)))
        reports = fxf.split(whole, tmp_path / "all.fxt", "5ms")
    assert len(reports) == 3
    with fxf.open(tmp_path / "all-002.fxt") as part:
        assert part.table("counters")["ts"].min() >= first + 5_000_000
        assert part.table("counters")["ts"].max() < first + 10_000_000
        assert "renderer" in part.table("threads").texts("name") or len(part.table("threads")) > 2


def test_any_exporter_can_write_parts(tmp_path: Path) -> None:
    reports = fxf.split(BOOT, tmp_path / "a.speedscope.json.gz", 2)
    assert [Path(report.out).name for report in reports] == [
        "a-001.speedscope.json.gz", "a-002.speedscope.json.gz"
    ]  # fmt: skip
    assert [report.nbytes for report in reports] == [
        Path(report.out).stat().st_size for report in reports
    ]


def test_all_parts_appear_or_none(tmp_path: Path) -> None:
    (tmp_path / "a-003.fxt").write_bytes(b"mine")
    with pytest.raises(WriteRefusedError, match="already exists"):
        fxf.split(BOOT, tmp_path / "a.fxt", 4)
    assert [path.name for path in tmp_path.iterdir()] == ["a-003.fxt"]
    assert len(fxf.split(BOOT, tmp_path / "a.fxt", 4, force=True)) == 4


def test_a_part_that_is_smaller_than_a_record(tmp_path: Path) -> None:
    with pytest.raises(WriteRefusedError, match=r"takes [\d,]+ bytes with what it needs, which is"):
        fxf.split(BOOT, tmp_path / "a.fxt", "100B")
    assert not list(tmp_path.iterdir())


@cases(
    ("into", "message"),
    [
        ("1ns", r"that makes [\d,]+ parts, and 400 is the most"),
        (MOST_PARTS + 1, "that makes 401 parts"),
        (350, r"things begin at \d+ different times, which are too few for 350 parts"),
    ],
)
def test_too_many_parts(into: str | int, message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        fxf.split(MAGIC if into == "1ns" else BOOT, tmp_path / "a.fxt", into)


def test_a_capture_without_times(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing in it has a time to split it by"):
        fxf.split(sample_of("inspect"), tmp_path / "a.csv", 2)


@cases("out", ["-", "folder/"])
def test_parts_are_files_of_their_own(out: str) -> None:
    with pytest.raises(UsageError, match="parts are files of their own"):
        fxf.split(BOOT, out, 2, to="csv")
