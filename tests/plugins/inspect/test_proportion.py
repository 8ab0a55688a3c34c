"""What is written, and the memory it takes, stay in proportion to the file, whatever its shape."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from fx_inspect import plugin
from fx_inspect.export.presentation import REPEATED
from fx_inspect.read.capture import InspectCapture
from fxframework.io.sink import Sink
from fxframework.io.source import Source
from fxframework.kernels.buffers import gathered
from fxframework.model.capture import OpenRequest

from ...bench.shapes.inspect import SHAPES
from ...cases import cases
from .shared_strings import SHARED

EXPORTERS = {exporter.name: exporter for exporter in plugin.fx_exporters()}
SIZE, SMALL = 1 << 17, 1 << 12
SPARE = 1 << 16


def opened(data: bytes) -> InspectCapture:
    return InspectCapture(Source.open(data), OpenRequest())


class Counted(Sink):
    """A sink that only counts."""

    def __init__(self) -> None:
        self.size = 0

    def write(self, data: bytes | memoryview) -> None:
        self.size += len(data)


def export(name: str, data: bytes, **options: Any) -> tuple[int, dict[str, int]]:
    """How many bytes an exporter writes, and what it leaves out."""
    exporter = EXPORTERS[name]
    sink = Counted()
    given = {option.name: option.default for option in exporter.options}
    session = exporter.open(sink, {**given, **options})
    session.write(opened(data))
    return sink.size, dict(session.close())


@pytest.mark.parametrize("shape", [*SHAPES, *SHARED])
@cases("name", EXPORTERS)
def test_output_and_memory_are_in_proportion(
    shape: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fx_inspect.export.base.SPARE", SPARE)
    make = {**SHAPES, **SHARED}[shape]
    export(name, make(SMALL))  # whatever is imported is imported now
    data = make(SIZE)
    tracemalloc.start()
    try:
        size, _ = export(name, data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # A node of 16 bytes may be indented by 1,000 characters.
    assert size < 80 * len(data), size / len(data)
    assert peak < 40 * len(data) + (8 << 20), peak / len(data)


@cases("name", ["tree", "text", "json", "tree-json", "series"])
@cases("make", SHARED.values(), ids=SHARED)
def test_repeats_are_written_in_full_on_request(
    make: Callable[[int], bytes], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fx_inspect.export.base.SPARE", 0)
    monkeypatch.setattr("fx_inspect.export.base.FACTOR", 0)
    data = make(1 << 14)
    capture = opened(data)
    longest = int(capture.first_pass().vmo.texts.lengths.max())
    in_part, dropped = export(name, data)
    in_full, nothing = export(name, data, repeat=True)
    assert REPEATED not in nothing
    slots = "slots" in make.__name__
    if name == "series" and make.__name__ != "shared_string":
        return  # it has digests of long names, and of long strings in arrays
    times = len(capture.table("inspect_slots" if slots else "properties"))
    assert dropped[REPEATED] == times - 1
    assert in_full > times * longest > in_part > longest


@cases("table", ["nodes", "properties", "inspect_slots", "inspect_links"])
@cases("make", SHARED.values(), ids=SHARED)
def test_batches_have_a_bounded_length_of_text(
    make: Callable[[int], bytes], table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fx_inspect.read.batches.TEXT_AT_ONCE", 1 << 16)
    whole = opened(make(1 << 16))
    rows = whole.table(table)
    parts = list(opened(make(1 << 16)).batches(table))
    assert sum(map(len, parts)) == len(rows)
    for part in parts:
        columns = [rows.schema.column(name) for name in part.columns]
        strings = [column.name for column in columns if column.kind in ("code", "text")]
        total = sum(
            len(text or "") for name in strings if name != "path" for text in part.texts(name)
        )
        assert len(part) == 1 or total <= (1 << 16) + 64 * len(part)


def test_names_of_nodes_are_looked_up_once_for_all_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up: list[int] = []

    def counted(values: Any, places: Any) -> Any:
        looked_up.append(places.size)
        return gathered(values, places)

    monkeypatch.setattr("fx_inspect.read.batches.gathered", counted)
    capture = opened(SHAPES["wide"](1 << 15))
    batches = list(capture.batches("nodes", 10))
    nodes = sum(map(len, batches))
    assert len(batches) > 200
    for batch in batches:
        assert len(batch.array("name")) == len(batch.array("offset")) == len(batch.array("links"))
    assert sum(looked_up) < 10 * nodes
