"""A closed capture says that it is closed, and has given back its descriptor and its memory."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import fxframework as fxf
from fxframework.errors import ClosedError
from fxframework.host import default_host
from fxframework.model.capture import Capture
from fxframework.model.selection import Selection

from ..cases import cases
from ..samples import one_of_each, samples
from .test_let_go import descriptors, mappings

USES: dict[str, Callable[[Capture], Any]] = {
    "table": lambda capture: capture.table(capture.tables[0]),
    "findings": lambda capture: capture.table("diagnostics"),
    "batches": lambda capture: list(capture.batches(capture.tables[0])),
    "records": lambda capture: list(capture.records()),
    "checked_records": lambda capture: list(capture.checked_records()),
    "records_json": lambda capture: list(capture.records_json()),
    "summary": lambda capture: capture.summary(),
    "record_counts": lambda capture: capture.record_counts(),
    "row_counts": lambda capture: capture.row_counts(),
    "scan": lambda capture: capture.scan(),
    "select": lambda capture: capture.select(Selection(start_ns=0)),
    "verify": fxf.verify,
    "salvage": lambda capture: fxf.salvage(capture, "out.fxt"),
    "convert": lambda capture: fxf.convert(capture, "out.jsonl"),
    "export": lambda capture: capture.export("out.csv"),
    "diff": lambda capture: fxf.diff(capture, capture),
    "bytes": lambda capture: capture.source.read(0, 8),
}


def read_in_part(capture: Capture) -> None:
    """Use a capture so that its reader keeps something."""
    for name in capture.tables:
        next(iter(capture.batches(name, 10)), None)
    next(iter(capture.records()), None)
    capture.summary()


@cases("read", [True, False], ids=["read before", "not read"])
@cases("name", one_of_each())
def test_a_closed_capture_says_so(
    name: str, read: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    format, data = samples()[name]
    capture = default_host().open(data, format=format)
    if read:
        read_in_part(capture)
    capture.close()
    silent = []
    for use, call in USES.items():
        try:
            call(capture)
        except ClosedError as error:
            assert "closed" in str(error)  # noqa: PT017 (all uses are listed that do not raise)
        else:
            silent.append(use)
    assert not silent
    assert not list(tmp_path.iterdir())


def test_findings_of_what_was_read_outlive_the_capture() -> None:
    format, data = samples()["boot.fxt"]
    with default_host().open(data[:-4], format=format) as capture:
        codes = [finding.code for finding in fxf.verify(capture)]
    assert codes
    assert [finding.code for finding in capture.diagnostics] == codes
    with default_host().open(data[:-4], format=format) as unread:
        pass
    with pytest.raises(ClosedError):
        unread.diagnostics  # noqa: B018


def test_batches_end_with_an_error_when_their_capture_is_closed() -> None:
    format, data = samples()["boot.fxt"]
    capture = default_host().open(data, format=format)
    batches = capture.batches("slices", 1)
    next(batches)
    capture.close()
    with pytest.raises(ClosedError):
        next(batches)


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.mark.parametrize("format", ["trace", "trace-buffer", "log", "xray", "inspect"])
@pytest.mark.usefixtures("no_collector")
def test_closing_gives_back_descriptor_and_mapping(format: str, tmp_path: Path) -> None:
    make = default_host().reader(format).sample
    assert make is not None
    path = tmp_path / "a.file"
    path.write_bytes(make(20_000))
    before = descriptors()
    capture = default_host().open(path, format=format)
    assert mappings(path) == 1
    read_in_part(capture)
    for name in capture.tables:
        capture.table(name)
    capture.close()
    assert (mappings(path), descriptors()) == (0, before)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits as Linux has them")
def test_too_many_open_files_are_called_so(tmp_path: Path) -> None:
    path = tmp_path / "a.fxt"
    path.write_bytes(samples()["boot.fxt"][1])
    program = (
        "import resource, sys, fxframework as fxf\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))\n"
        "kept = []\n"
        "try:\n"
        "    for _ in range(100): kept.append(fxf.open(sys.argv[1]))\n"
        "except fxf.FxError as error: print(type(error).__name__, error, error.remedy)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True
    )
    assert "Too many open files" in run.stdout
    assert "ulimit" in run.stdout


def test_a_temporary_file_without_a_descriptor_names_the_reason(tmp_path: Path) -> None:
    program = (
        "import os, resource, tempfile, fxframework as fxf\n"
        "from fxframework.io.temporary import TemporaryFile\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))\n"
        "kept = []\n"
        "try:\n"
        "    while True: kept.append(os.open('/dev/null', 0))\n"
        "except OSError: pass\n"
        "try: TemporaryFile()\n"
        "except fxf.FxError as error: print(error, error.remedy)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert "Too many open files" in run.stdout
    assert "ulimit" in run.stdout
