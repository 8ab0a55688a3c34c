"""A window: the rows and records of a stretch of time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import toy

from fxframework.errors import UsageError
from fxframework.host import Host
from fxframework.model.capture import Capture
from fxframework.model.clock import NS_MAX
from fxframework.model.rows import category_mask
from fxframework.model.schema import STANDARD_TABLES
from fxframework.model.selection import Selection
from fxframework.model.strings import StringPool
from fxframework.model.table import Table

from ..cases import cases

DATA = toy.toy(
    toy.span("early", 0, 100),  # slices 0
    toy.span("over", 50, 1_000),  # 1
    toy.span("open", 60, -1),  # 2: never closed
    toy.mark("a", 100, 1),  # instants 0
    toy.mark("b", 200, 2),
    toy.mark("c", 300, 3),
    toy.span("late", 300, 5),  # 3
    toy.span("end", NS_MAX, 5),  # 4: its end is beyond what int64 holds
    bytes(24),
)


@pytest.fixture
def capture() -> Capture:
    host = Host(discover=False)
    host.register(toy, name="toy")
    return host.open(DATA)


def names(capture: Capture, table: str) -> list[Any]:
    return capture.table(table).texts("name")


@cases(
    ("start", "stop", "instants", "slices"),
    [
        (None, None, ["a", "b", "c"], ["early", "over", "open", "late", "end"]),
        (100, 300, ["a", "b"], ["over", "open"]),
        (101, None, ["b", "c"], ["over", "open", "late", "end"]),
        (None, 100, [], ["early", "over", "open"]),
        (99, 100, [], ["early", "over", "open"]),
        (NS_MAX, None, [], ["open", "end"]),
        (5_000, 5_000, [], ["open"]),
        (-5, 0, [], []),
        (-(1 << 70), 1 << 70, ["a", "b", "c"], ["early", "over", "open", "late", "end"]),
    ],
)
def test_rows_of_a_stretch(
    capture: Capture, start: int | None, stop: int | None, instants: list[str], slices: list[str]
) -> None:
    window = capture.between(start, stop)
    assert names(window, "instants") == instants
    assert names(window, "slices") == slices
    for table in ("slices", "instants"):
        for size in (1, 2, 100):
            batches = list(window.batches(table, size))
            assert all(len(batch) for batch in batches)
            texts = [text for batch in batches for text in batch.texts("name")]
            assert texts == names(window, table)


def test_a_stretch_that_ends_before_it_begins_is_refused(capture: Capture) -> None:
    with pytest.raises(UsageError, match="the range of times ends at 2 ns, before its start, 5"):
        capture.between(5, 2)
    assert not names(capture.between(5, 5), "instants")


def test_rows_keep_their_numbers_and_args_follow_them(capture: Capture) -> None:
    window = capture.between(150, 301)
    assert window.table("instants").array("row").tolist() == [1, 2]
    args = window.table("args")
    assert args.array("parent").tolist() == [1, 2]
    assert args.array("int").tolist() == [2, 3]
    assert sum(len(batch) for batch in window.batches("args", 1)) == 2


def test_tables_without_times_stay_whole(capture: Capture) -> None:
    window = capture.between(150, 301)
    assert len(window.table("threads")) == 1
    assert len(window.table("diagnostics")) == 1


def test_records_with_a_time_are_chosen_by_it(capture: Capture) -> None:
    kinds = [record.to_json() for record in capture.between(100, 300).records()]
    assert [one.get("name", one["record"]) for one in kinds] == ["magic", "a", "b", "padding"]


def test_records_that_do_not_say_their_time_cannot_be_chosen(
    capture: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(capture), "timed_records", False)
    with pytest.raises(UsageError, match="cannot be chosen by time"):
        capture.between(0, 1).records()


def test_the_summary_of_any_capture_counts_rows_and_takes_times(capture: Capture) -> None:
    """What a reader has that gives none of its own."""
    summary = Capture.summary(capture)
    assert summary.rows == {name: len(capture.table(name)) for name in capture.schemas}
    assert summary.rows == capture.row_counts()
    times = [capture.table(name).array("ts") for name in capture.schemas
             if "ts" in capture.table(name) and len(capture.table(name))]  # fmt: skip
    assert summary.start_ns == min(int(ts.min()) for ts in times)
    assert summary.end_ns == max(int(ts.max()) for ts in times)


def test_counts_and_findings_of_any_capture_are_of_one_pass(
    capture: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("scan", "summary"):
        monkeypatch.setattr(toy.ToyCapture, name, getattr(Capture, name))
    monkeypatch.setattr(toy.ToyCapture, "schemas", {})
    assert isinstance(capture, toy.ToyCapture)
    kinds = capture.record_counts()
    capture.scan()
    assert capture.summary().kinds == kinds
    assert capture.passes == 1
    assert sum(kinds.values()) == len(list(capture.records()))


def test_the_summary_is_that_of_the_stretch(capture: Capture) -> None:
    summary = capture.between(100, 300).summary()
    assert (summary.start_ns, summary.end_ns) == (100, 300)
    assert summary.rows["instants"] == 2
    assert summary.rows["slices"] == 2
    assert capture.between(None, None).summary().start_ns == 0


def test_a_window_is_a_capture_of_the_same_format(capture: Capture) -> None:
    window = capture.between(0, 10)
    assert (window.format, window.tables, window.name) == (
        capture.format,
        capture.tables,
        capture.name,
    )
    with pytest.raises(UsageError, match="did you mean 'slices'"):
        window.table("slice")
    narrower = capture.between(0, 250).between(150, None)
    assert names(narrower, "instants") == ["b"]
    window.close()
    assert capture.closed


def test_row_counts(capture: Capture) -> None:
    assert capture.row_counts() == {
        "processes": 1,
        "threads": 1,
        "slices": 5,
        "instants": 3,
        "args": 3,
        "blobs": 0,
    }
    assert capture.between(150, 301).row_counts()["instants"] == 2


def test_plain_values(capture: Capture) -> None:
    table = capture.table("slices")
    assert table.plain("kind")[0] == "begin_end"
    assert table.plain("category") == [None] * 5
    assert table.plain("ts")[1] == 50
    assert all(isinstance(value, int) for value in table.plain("dur"))
    assert capture.table("blobs").plain("data") == []
    assert capture.table("args").plain("table") == ["instants"] * 3
    assert np.asarray(table["ts"]).dtype == np.int64


class Instants:
    """A capture of instants of these categories."""

    name = format = "instants"
    schemas = {"instants": STANDARD_TABLES["instants"]}  # noqa: RUF012 (as a capture has them)
    tables = ("instants",)

    def __init__(self, categories: list[str | None]) -> None:
        self.strings = StringPool()
        self._instants = Table.of(self.schemas["instants"], self.strings, category=categories)

    def table(self, name: str) -> Table:
        assert name == "instants"
        return self._instants

    def batches(self, name: str, rows: int = 65536) -> Iterator[Table]:
        return self.table(name).batches(rows)


@cases("chosen", ["a", "b", "c"])
def test_a_category_is_found_beside_rows_without_one(chosen: str) -> None:
    capture = Instants(["a", "b", "c", None])  # the last code is that of c
    mask = category_mask(Selection(categories=(chosen,)), capture)
    assert mask is not None
    assert [capture.strings[code] for code in np.flatnonzero(mask)] == [chosen]
