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
from fxframework.exporters.perfetto import export, order
from fxframework.exporters.perfetto.slices import SliceTracks, ends_of
from fxframework.exporters.perfetto.tracks import KeyedTracks, Tracks
from fxframework.host import default_host
from fxframework.io.sink import Sink
from fxframework.kernels.nesting import NEVER_ENDS, Lanes
from fxframework.kit import runs
from fxframework.kit.scanned import ScannedCapture
from fxframework.model.capture import Capture
from fxframework.registry import parse_options

from ..bench.large import disordered
from ..cases import cases
from ..samples import samples

ROWS = 13
"""Rows of a part."""
DISORDER = "slices that are recorded at their ends"
WHOLE = {
    ("busy.inspect", "perfetto"),
    *((sample, "otlp") for sample in (DISORDER, "boot.fxt", "ring.tbuf")),
}
"""What needs whole tables of exporters that stream: properties, and slices around logs."""
SAMPLES = (
    DISORDER,
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
    for name, rows in (("RUN", 3 * ROWS), ("FENCE", 2)):
        patch.setattr(runs, name, rows)


def captured(sample: str) -> tuple[str | None, bytes]:
    """The format of a sample, where it cannot be detected, and its bytes."""
    return (None, b"".join(disordered(1, steps=4))) if sample == DISORDER else samples()[sample]


def output(sample: str, name: str) -> tuple[bytes, Mapping[str, int]] | str:
    """What an exporter makes of a sample and what it drops; or its refusal."""
    format, data = captured(sample)
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
    format, data = captured(sample)
    with default_host().open(data, format=format) as capture:
        return default_host().exporter(name, format=capture.format, tables=capture.tables).streams


def exported_samples() -> list[tuple[str, str]]:
    """Every exporter that takes a sample; a database is never the same twice."""
    found = []
    for sample in SAMPLES:
        format, data = captured(sample)
        with default_host().open(data, format=format) as capture:
            found += [
                (sample, exporter.name)
                for exporter in default_host().exporters
                if exporter.takes(capture.format, capture.tables) and exporter.name != "duckdb"
            ]
    return list(dict.fromkeys(found))


@cases(("sample", "name"), exported_samples())
def test_parts_give_what_whole_tables_give(
    sample: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Takes seconds: every exporter of every sample, whole and in parts."""
    for module in (columnar, export, order):
        monkeypatch.setattr(module, "ROWS", ROWS)
    expected = output(sample, name)
    in_parts(monkeypatch)
    found = output(sample, name)
    if found == "it needs whole tables":
        assert not streams(sample, name) or (sample, name) in WHOLE
    else:
        assert found == expected


# --- Slices of a Perfetto trace ------------------------------------------------------------------


Row = tuple[int, int, int, int]
Lane = tuple[int, int]


class Rows:
    """Slices of (track, start, length, parent) as a capture gives them."""

    def __init__(self, rows: list[Row]) -> None:
        self._rows = np.array(rows, np.int64).reshape(-1, 4)

    def batches(self, _name: str, rows: int) -> Iterator[Any]:
        for at in range(0, len(self._rows), rows):
            some = self._rows[at : at + rows]
            columns = dict.fromkeys(order.COLUMNS, np.zeros(len(some), np.int64))
            columns |= {
                "row": np.arange(at, at + len(some)),
                "thread": some[:, 0],
                "ts": some[:, 1],
                "dur": some[:, 2],
                "parent": some[:, 3],
                "depth": np.where(some[:, 3] < 0, -1000, -some[:, 3]),
            }
            yield type("Batch", (), {"array": staticmethod(columns.__getitem__)})

    def events(self) -> tuple[dict[Lane, list[Any]], int]:
        """By track and lane: begins (row and time) and ends (time), in order; parts of the rows.

        The tail of each row is its number in three bytes, of which the last ones are left out.
        """
        found: dict[Lane, list[Any]] = {}
        parts = 0
        lanes = Lanes()
        operations = KeyedTracks(Tracks(lambda *_: None), 3, lambda *_: [])
        tracks = SliceTracks(np.zeros(4, np.int64), operations)
        for part in order.in_order(self, (), tails_of):  # type: ignore[arg-type]
            parts += 1
            columns = part.columns
            track = tracks.of(columns, part.following)
            ends = ends_of(columns["ts"], columns["dur"])
            spans = (track, columns["ts"], ends, columns["depth"])
            events = lanes.nest(*(np.ascontiguousarray(each, np.int64) for each in spans))
            self._note(lanes, events, columns["row"], found)
            self._note(lanes, lanes.ends_before(part.following), columns["row"], found)
            for row, at, size in zip(
                *(columns[name].tolist() for name in ("row", order.START, order.TAIL)), strict=True
            ):
                assert part.tails[at : at + size].tobytes() == row.to_bytes(3, "big")[: row % 4]
        self._note(lanes, lanes.ends_before(NEVER_ENDS), np.zeros(0), found)
        return found, parts

    @staticmethod
    def _note(lanes: Lanes, events: Any, rows: Any, found: dict[Lane, list[Any]]) -> None:
        track_and_level = lanes.places_from(0).T.tolist()
        for place, time, lane in zip(*events, strict=True):
            key = tuple(track_and_level[lane])
            found.setdefault(key, []).append((rows[place], time) if place >= 0 else time)


def tails_of(rows: Any) -> tuple[Any, Any]:
    tails = [row.to_bytes(3, "big")[: row % 4] for row in rows.tolist()]
    sizes = np.array([len(tail) for tail in tails], np.int64)
    return sizes, np.frombuffer(b"".join(tails), np.uint8)


def nest(rows: list[tuple[int, int, int]]) -> list[Row]:
    """Slices that are recorded when they end, inner ones first, each with the one around it."""
    spans = [(track, start, start + size) for track, start, size in rows]
    spans.sort(key=lambda span: (span[2], -span[1]))
    found = []
    for at, (track, start, end) in enumerate(spans):
        around = [
            place
            for place, (on, from_, to) in enumerate(spans[at + 1 :], at + 1)
            if on == track and from_ <= start and end <= to
        ]
        found.append((track, start, end - start, around[0] if around else -1))
    return found


PARTS = [(1, 1), (3, 2), (3, 1 << 11), (5, 3)]
"""Rows of a part, and of the stretches between whose times sorted rows are looked for."""


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(-2, 30), st.integers(0, 12)), max_size=60),
    st.sampled_from(["as they are", "sorted", "when they end", "backwards"]),
    st.sampled_from(PARTS),
)
def test_parts_of_slices_have_the_events_of_all_at_once(
    rows: list[tuple[int, int, int]], how: str, part: tuple[int, int]
) -> None:
    if how == "when they end":
        given_rows = Rows(nest(rows))
    else:
        if how != "as they are":
            rows.sort(key=lambda row: row[1], reverse=how == "backwards")
        given_rows = Rows([(*row, -1) for row in rows])
    expected, _ = given_rows.events()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(order, "ROWS", part[0])
        patch.setattr(runs, "FENCE", part[1])
        found, _ = given_rows.events()
    assert found == expected


def test_slices_that_begin_together_are_outermost_first_wherever_they_are_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    count = 40
    rows = Rows([(0, 5, at, at + 1 if at + 1 < count else -1) for at in range(count)])
    monkeypatch.setattr(order, "ROWS", 3)
    monkeypatch.setattr(runs, "FENCE", 2)
    found, _ = rows.events()
    assert found == {
        (0, 0): [(row, 5) for row in reversed(range(count))] + [5 + at for at in range(count)]
    }


def test_slices_in_order_are_taken_a_part_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order, "ROWS", 10)
    monkeypatch.setattr(order, "_sorted", None)
    threads_in_turn = [(at // 25, at % 25, 3, -1) for at in range(100)]
    for rows in ([(0, at // 7, 3, -1) for at in range(100)], threads_in_turn):
        assert Rows(rows).events()[1] == 10


def test_slices_out_of_order_are_taken_a_stretch_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A slice that is around all others comes last."""
    monkeypatch.setattr(order, "ROWS", 10)
    monkeypatch.setattr(runs, "FENCE", 2)
    rows = [(0, at, 1, 100) for at in range(100)]
    _, parts = Rows([*rows, (0, 0, 1000, -1)]).events()
    assert parts > 5
