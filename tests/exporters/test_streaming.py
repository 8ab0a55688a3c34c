"""What streams: every exporter makes of parts of a few rows what it makes of whole tables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fxframework.errors import FxError, LimitError
from fxframework.exporters import columnar
from fxframework.exporters.perfetto import export, slices
from fxframework.host import default_host
from fxframework.io.sink import Sink
from fxframework.kit.scanned import ScannedCapture
from fxframework.model.capture import Capture
from fxframework.registry import parse_options

from .test_matrix import samples

ROWS = 7
"""Rows of a part."""
WHOLE = {("busy.inspect", "perfetto"), ("boot.fxt", "otlp"), ("ring.tbuf", "otlp")}
"""What needs whole tables of exporters that stream: properties, and slices around logs."""
SAMPLES = (
    "boot.fxt",
    "ring.tbuf",
    "busy.inspect",
    "logs.fxlog",
    "calls.xray",
    "basic3-mt-clang16.xray",
    "logs.fxlog as log-legacy-stream",
    "a ring",
    "a packet",
)
NOW = re.compile(rb'"observedTimeUnixNano":"\d+"')


def in_parts(patch: pytest.MonkeyPatch) -> None:
    """Let no capture fit into memory, and give tables a few rows at a time."""
    batches = Capture.batches

    def few(self: Capture, name: str, rows: int = ROWS) -> Iterator[Any]:
        return batches(self, name, min(rows, ROWS))

    def refuse(self: Any) -> None:
        raise LimitError(f"whole tables of {self.name}")

    patch.setattr(ScannedCapture, "fits_memory", False)
    patch.setattr(ScannedCapture, "_check_memory", refuse)
    patch.setattr(Capture, "batches", few)


def output(sample: str, name: str) -> tuple[bytes, Mapping[str, int]] | str:
    """What an exporter makes of a sample and what it drops; or its refusal."""
    format, data = samples()[sample]
    sink = Sink.memory()
    with default_host().open(data, format=format) as capture:
        exporter = default_host().exporter(name, format=capture.format, tables=capture.tables)
        try:
            session = exporter.open(sink, parse_options({}, exporter.options, whose=name))
            session.write(capture)
            dropped = session.close()
        except LimitError:
            return "it needs whole tables"
        except FxError as error:
            return f"{error.code}: {error.message}"
    return NOW.sub(b"", sink.getvalue()), dropped


def streams(sample: str, name: str) -> bool:
    """Whether an exporter says that it streams."""
    format, data = samples()[sample]
    with default_host().open(data, format=format) as capture:
        return default_host().exporter(name, format=capture.format, tables=capture.tables).streams


def cases() -> list[tuple[str, str]]:
    """Every exporter that takes a sample; a database is never the same twice."""
    found = []
    for sample in SAMPLES:
        format, data = samples()[sample]
        with default_host().open(data, format=format) as capture:
            found += [
                (sample, exporter.name)
                for exporter in default_host().exporters
                if exporter.takes(capture.format, capture.tables) and exporter.name != "duckdb"
            ]
    return list(dict.fromkeys(found))


@pytest.mark.parametrize(("sample", "name"), cases())
def test_parts_give_what_whole_tables_give(
    sample: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (columnar, export, slices):
        monkeypatch.setattr(module, "ROWS", ROWS)
    expected = output(sample, name)
    in_parts(monkeypatch)
    found = output(sample, name)
    if found == "it needs whole tables":
        assert not streams(sample, name) or (sample, name) in WHOLE
    else:
        assert found == expected


# --- Slices of a Perfetto trace ------------------------------------------------------------------


class Rows:
    """Slices of (track, start, length), -1 for never closed, as a capture gives them."""

    def __init__(self, rows: list[tuple[int, int, int]]) -> None:
        self._rows = np.array(rows, np.int64).reshape(-1, 3)

    def batches(self, _name: str, rows: int) -> Iterator[Any]:
        for at in range(0, len(self._rows), rows):
            some = self._rows[at : at + rows]
            columns = dict.fromkeys(slices.COLUMNS, np.zeros(len(some), np.int64))
            columns |= {
                "row": np.arange(at, at + len(some)),
                "parent": np.full(len(some), -1),
                "thread": some[:, 0],
                "ts": some[:, 1],
                "dur": some[:, 2],
            }
            yield type("Batch", (), {"array": staticmethod(columns.__getitem__)})

    def events(self) -> tuple[dict[tuple[int, int], list[Any]], int, int]:
        """By track and lane: begins (row and time) and ends (time), in order; stretches; cuts."""
        found: dict[tuple[int, int], list[Any]] = {}
        count = cut = 0
        tracks = slices.SliceTracks(np.zeros(4, np.int64))
        for each in slices.stretches(self, (), tracks.of):  # type: ignore[arg-type]
            count += 1
            cut += each.cut
            for event in each.events.tolist():
                at = event if event >= 0 else ~event
                key = int(each.track[at]), int(each.lane[at])
                begin = each.columns["row"][each.place[at]], int(each.start[at])
                found.setdefault(key, []).append(begin if event >= 0 else int(each.end[at]))
        return found, count, cut


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(-2, 30), st.integers(-1, 12)), max_size=60),
    st.booleans(),
    st.integers(1, 5),
)
def test_stretches_of_slices_have_the_events_of_all_at_once(
    rows: list[tuple[int, int, int]], ordered: bool, few: int
) -> None:
    if ordered:
        rows.sort(key=lambda row: row[1])
    given_rows = Rows(rows)
    expected, _, cut = given_rows.events()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slices, "ROWS", few)
        found, _, again = given_rows.events()
    assert found == expected
    assert again == cut


def test_slices_in_order_of_time_are_taken_in_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "ROWS", 10)
    _, count, _ = Rows([(0, at, 3) for at in range(100)]).events()
    assert count == 10
    overlapping = Rows([(0, at, 200) for at in range(100)]).events()
    assert overlapping[2] == 100 - 32
    assert overlapping[1] < 7
