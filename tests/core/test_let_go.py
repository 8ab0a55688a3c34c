"""A capture and its tables are freed by reference counting alone, with their files and mappings."""

from __future__ import annotations

import contextlib
import gc
import gzip
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fxframework as fxf
from fxframework.errors import FxError
from fxframework.host import default_host
from fxframework.io import arena
from fxframework.model import timeline
from fxframework.model.capture import Capture
from fxframework.model.selection import Selection
from fxframework.model.table import Table

from ..cases import cases
from ..samples import one_of_each, samples

SIZE = 1_000_000
"""Bytes of a file that is opened again and again."""
ROUNDS = 5


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def use(capture: Capture, *, made: bool) -> list[Any]:
    """Everything that a capture can give; gives its tables, their columns made or not."""
    capture.summary()
    for _ in capture.records():
        break
    tables: list[Any] = []
    for name in capture.tables:
        table = capture.table(name)
        for column in table.columns if made else table.columns[2:3]:
            table[column]
        tables += [table, table.select(slice(0, 1)), *capture.batches(name, 1000)]
    return tables


def part(capture: Capture) -> Capture:
    """A view of a capture, where there is a time."""
    return capture.select(Selection(start_ns=0))


@cases("name", one_of_each())
@cases("closed", [True, False], ids=["closed", "forgotten"])
@cases("made", [True, False], ids=["columns made", "columns not made"])
@pytest.mark.usefixtures("no_collector")
def test_a_capture_is_freed(name: str, closed: bool, made: bool) -> None:
    format, data = samples()[name]
    capture = default_host().open(data, format=format)
    tables = use(capture, made=made)
    view = part(capture)
    for each in view.schemas:
        view.table(each)
    watched = [weakref.ref(one) for one in (capture, view, capture.strings, capture.source)]
    watched += [weakref.ref(table) for table in tables]
    if closed:
        capture.close()
    del capture, view, tables, each
    left = [ref() for ref in watched if ref() is not None]
    assert not left


@pytest.mark.parametrize("format", ["trace", "log", "xray", "inspect"])
@pytest.mark.usefixtures("no_collector")
def test_opening_again_takes_no_more_memory(format: str, tmp_path: Path) -> None:
    host = default_host()
    make = host.reader(format).sample
    assert make is not None
    path = tmp_path / "a.file"
    path.write_bytes(make(SIZE))
    arena.release()
    counts = []
    for _ in range(ROUNDS):
        with host.open(path, format=format) as capture:
            for name in capture.schemas:
                table = capture.table(name)
                for column in table.columns:
                    table[column]
            del capture, table
        counts.append((mappings(path), descriptors()))
    assert counts[-1] == counts[1]
    assert mappings(path) == 0


@pytest.mark.parametrize("name", ["boot.fxt", "logs.fxlog", "calls.xray", "busy.inspect"])
@pytest.mark.usefixtures("no_collector")
def test_a_capture_is_freed_after_every_export(name: str, tmp_path: Path) -> None:
    host = default_host()
    format, data = samples()[name]
    with host.open(data, format=format) as capture:
        exporters = [one.name for one in host.exporters_for(capture.format, capture.tables)]
    left = []
    for exporter in dict.fromkeys(exporters):
        capture = host.open(data, format=format)
        watched = weakref.ref(capture)
        with contextlib.suppress(FxError), capture:
            capture.export(tmp_path / "out", to=exporter, force=True)
        del capture
        if watched() is not None:
            left.append(exporter)
    assert not left


@pytest.mark.parametrize("how", ["packed", "records"])
@pytest.mark.usefixtures("no_collector")
def test_temporary_files_go_with_the_capture(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fxframework.io.source.IN_MEMORY", 1000)
    host = default_host()
    make = host.reader("trace").sample
    assert make is not None
    path = tmp_path / ("a.fxt.gz" if how == "packed" else "a.jsonl")
    if how == "packed":
        path.write_bytes(gzip.compress(make(SIZE)))
    else:
        with host.open(make(SIZE // 10), format="trace") as capture:
            capture.export(path)
        del capture
    counts = []
    for _ in range(ROUNDS):
        with host.open(path) as capture:
            capture.scan()
            del capture
        counts.append((deleted(), descriptors()))
    assert counts[-1] == counts[1]


def deleted() -> int:
    """Files without a name that are mapped into this process."""
    try:
        return Path("/proc/self/maps").read_text().count("(deleted)")
    except OSError:
        return 0


def mappings(path: Path) -> int:
    """How often the file is mapped into this process."""
    try:
        return Path("/proc/self/maps").read_text().count(str(path))
    except OSError:
        return 0


def descriptors() -> int:
    """Open files of this process."""
    try:
        return sum(1 for _ in Path("/proc/self/fd").iterdir())
    except OSError:
        return 0


def rows(table: Table) -> dict[str, list[Any]]:
    return {column: table.plain(column) for column in table.columns}


@cases("name", one_of_each())
def test_a_capture_that_was_trimmed_gives_the_same_again(name: str) -> None:
    format, data = samples()[name]
    with default_host().open(data, format=format) as capture:
        capture.scan()
        before = {table: rows(capture.table(table)) for table in capture.tables}
        found, summary = dict(capture.diagnostics.counts), capture.summary()
        held = capture.table(capture.tables[0])
        capture.trim()
        capture.scan()
        assert capture.summary() == summary
        assert {table: rows(capture.table(table)) for table in capture.tables} == before
        assert dict(capture.diagnostics.counts) == found
        assert rows(held) == before[held.name]


@cases("to", ["perfetto", "trace", "parquet", "html"])
def test_large_captures_are_freed_one_by_one_with_the_same_result(
    to: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(__file__).parents[1] / "conformance"
    names = ("magic_trace_sample.fxt", "fdr5-mt-clang16.xray")
    inputs = [next(folder.rglob(name)) for name in names]
    whole = fxf.convert(inputs, tmp_path / "whole", to=to)
    monkeypatch.setattr(timeline, "LARGE", 0)
    trimmed = fxf.convert(inputs, tmp_path / "trimmed", to=to)
    assert (tmp_path / "whole").read_bytes() == (tmp_path / "trimmed").read_bytes()
    for part in ("rows", "dropped", "worst", "inputs", "alignments"):
        assert getattr(whole, part) == getattr(trimmed, part), part
