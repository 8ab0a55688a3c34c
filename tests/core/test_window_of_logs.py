"""A window on logs: which rows and records belong, by what the logs say."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import toy
import toy_log
from hypothesis import given
from hypothesis import strategies as st
from toy_log import alias, log

from fxframework.errors import UsageError
from fxframework.host import Host
from fxframework.model import logs as logs_module
from fxframework.model.capture import Capture, Window
from fxframework.model.rows import RowMarks
from fxframework.model.selection import Selection, least_severity

from ..cases import cases

LINES = (
    log("started", 10, severity=0x30, component="core/App", tags=["net", "a,b"], pid=1, tid=2,
        args={"n": 1, "m": 2}),
    log("Slow down", 20, severity=0x40, component="core/Disk", url="fuchsia-pkg://App",
        pid=1, tid=3),
    b"\n",
    alias("7", "core/named"),
    log("tag of the kernel", 30, severity=0x10, tags=["KLOG", "klog"], pid=2, tid=2, args={"n": 3}),
    log("Fatal ÄRGER".encode(), 40, severity=0x60, component="7", tags=["Net"], pid=2**64 - 1),
    b"damage\n",
    log("kernel's own", 50, severity=0x41, component="klog", tags=["b"]),
    log("", 60, severity=0x50),
)  # fmt: skip


@pytest.fixture
def host() -> Host:
    host = Host(discover=False)
    host.register(toy_log, name="toylog")
    host.register(toy, name="toy")
    assert not host.failures
    return host


@pytest.fixture
def capture(host: Host) -> Capture:
    return host.open(b"".join(LINES), format="toylog")


def kinds(capture: Capture) -> list[str]:
    return [record.to_json()["record"] for record in capture.records()]


def times(capture: Capture, size: int = 65536) -> list[int]:
    return [ts for batch in capture.batches("logs", size) for ts in batch["ts"].tolist()]


@cases(
    ("asked", "kept"),
    [
        ({"min_severity": "warn"}, [20, 40, 50, 60]),
        ({"min_severity": "Warning"}, [20, 40, 50, 60]),
        ({"min_severity": 0x41}, [40, 50, 60]),
        ({"min_severity": "0x61"}, []),
        ({"min_severity": 0}, [10, 20, 30, 40, 50, 60]),
        ({"tags": ("net",)}, [10, 40]),
        ({"tags": ("net",), "case_sensitive": True}, [10]),
        ({"tags": ("a,b",)}, [10]),
        ({"tags": ("a",)}, []),
        ({"tags": ("b", "klog")}, [30, 50]),
        ({"tags": ("ne",)}, []),
        ({"exclude_tags": ("net", "b")}, [20, 30, 60]),
        ({"exclude_tags": ("NET",), "case_sensitive": True}, [10, 20, 30, 40, 50, 60]),
        ({"components": ("APP",)}, [10, 20]),
        ({"components": ("App",), "case_sensitive": True}, [10, 20]),
        ({"components": ("core/app",), "case_sensitive": True}, []),
        ({"components": ("named", "disk")}, [20, 40]),
        ({"filters": ("own",)}, [20, 50]),
        ({"filters": ("s", "zzz")}, [10, 20, 50]),
        ({"filters": ("app",)}, [10, 20]),
        ({"filters": ("ärger",)}, [40]),
        ({"filters": ("ärger",), "case_sensitive": True}, []),
        ({"filters": ("ÄRGER",), "case_sensitive": True}, [40]),
        ({"filters": ("startedslow",)}, []),
        ({"filters": ("",)}, [10, 20, 30, 40, 50, 60]),
        ({"excludes": ("core", "tag")}, [50, 60]),
        ({"excludes": ("slow",), "case_sensitive": True}, [10, 20, 30, 40, 50, 60]),
        ({"excludes": ("fatal",)}, [10, 20, 30, 50, 60]),
        ({"kernel": True}, [30, 50]),
        ({"pids": (1,)}, [10, 20]),
        ({"pids": (2, 2**64 - 1)}, [30, 40]),
        ({"pids": (-1, 1 << 70)}, []),
        ({"tids": (2,)}, [10, 30]),
        ({"pids": (1,), "tids": (2,)}, [10]),
        ({"min_severity": "info", "tags": ("net",), "excludes": ("start",)}, [40]),
        ({"start_ns": 20, "stop_ns": 50, "min_severity": "warn"}, [20, 40]),
    ],
)
def test_rows_that_are_chosen(capture: Capture, asked: dict[str, Any], kept: list[int]) -> None:
    window = capture.select(Selection(**asked))
    assert times(window) == kept
    for size in (1, 2):
        assert times(window, size) == kept
    assert window.table("logs")["ts"].tolist() == kept
    again = [record.ns for record in window.records() if record.ns is not None]  # type: ignore[attr-defined]
    assert again == kept


def test_details_follow_their_rows(capture: Capture) -> None:
    window = capture.select(Selection(tags=("klog", "b")))
    assert window.table("logs")["row"].tolist() == [2, 4]
    assert window.table("toy_tags").texts("name") == ["KLOG", "klog", "b"]
    assert window.table("toy_tags")["parent"].tolist() == [2, 2, 4]
    assert window.table("args")["parent"].tolist() == [2]
    assert window.row_counts() == {"logs": 2, "args": 1, "toy_tags": 3}
    assert capture.between(10, 11).table("toy_tags").texts("name") == ["net", "a,b"]
    assert len(window.table("diagnostics")) == 1


def test_records_without_a_row_stay(capture: Capture) -> None:
    kinds = [
        r.to_json()["record"] for r in capture.select(Selection(min_severity="fatal")).records()
    ]
    assert kinds == ["padding", "alias", "log", "damaged"]
    kinds = [r.to_json()["record"] for r in capture.between(1000, None).records()]
    assert kinds == ["padding", "alias", "damaged"]


def test_a_record_that_belongs_to_another_goes_with_it(host: Host) -> None:
    first = log("a", 1)
    data = first + b'{"about": 0}\n' + log("b", 2) + b'{"about": %d}\n' % (len(first) + 13)
    with host.open(data, format="toylog") as capture:
        kept = [record.offset for record in capture.between(2, None).records()]
        assert kept == [len(first) + 13, len(data) - 14]


def test_offsets_that_are_left_out(capture: Capture) -> None:
    window = capture.select(Selection(excludes=("fatal", "own")))
    assert isinstance(window, Window)
    starts = [sum(map(len, LINES[:at])) for at in range(len(LINES))]
    assert window.offsets_left_out().tolist() == [starts[1], starts[5], starts[7]]
    assert not Window(capture, Selection()).offsets_left_out().size


def test_a_window_of_a_window(capture: Capture) -> None:
    window = capture.select(Selection(min_severity="warn")).select(Selection(excludes=("fatal",)))
    assert times(window) == [20, 50, 60]
    assert sum(record.nbytes for record in window.records()) == sum(
        map(len, (LINES[1], LINES[2], LINES[3], LINES[6], LINES[7], LINES[8]))
    )


def test_tags_are_split_at_commas_where_there_is_no_table_of_them(
    capture: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    schemas = {name: schema for name, schema in capture.schemas.items() if name != "toy_tags"}
    monkeypatch.setattr(type(capture), "schemas", schemas)
    assert times(capture.select(Selection(tags=("A",)))) == [10]
    assert times(capture.select(Selection(tags=("a,b",)))) == []
    assert times(capture.select(Selection(exclude_tags=("b",)))) == [20, 30, 40, 60]


def test_other_tables_with_times_have_no_rows_then(host: Host, monkeypatch: Any) -> None:
    schemas = {**toy.ToyCapture.schemas, "logs": toy_log.LogToy.schemas["logs"]}
    monkeypatch.setattr(toy.ToyCapture, "schemas", schemas)
    window = host.open(toy.SAMPLE).select(Selection(min_severity="trace"))
    assert [len(window.table(name)) for name in ("slices", "instants", "args")] == [0] * 3
    assert len(window.table("threads")) == 1


def test_what_cannot_be_chosen_is_refused(host: Host, capture: Capture) -> None:
    with pytest.raises(UsageError, match="toy captures have no logs"):
        host.open(toy.SAMPLE).select(Selection(kernel=True))
    for names in ({"threads": ("main",)}, {"processes": ("main",)}):
        with pytest.raises(UsageError) as caught:
            capture.select(Selection(**names))  # type: ignore[arg-type]
        assert "--pid" in caught.value.remedy


@cases("level", ["wern", "", "256", -1, 300])
def test_no_severity(level: str | int) -> None:
    with pytest.raises(UsageError) as caught:
        Selection(min_severity=level)
    assert "WARN" in caught.value.remedy
    assert level != "wern" or "did you mean 'WARN'" in caught.value.message


def test_severities() -> None:
    assert [least_severity(text) for text in ("Trace", " error ", "0x35", "7", 255)] == [
        0, 0x41, 0x35, 7, 255,
    ]  # fmt: skip


PIECES = st.lists(st.sampled_from(["a", "A", "b", "É", "ß", "\xff"]), max_size=6).map("".join)


@given(
    st.lists(PIECES, max_size=12),
    st.lists(PIECES, min_size=1, max_size=2),
    st.booleans(),
    st.integers(1, 5),
)
def test_messages_are_searched_as_texts(
    messages: list[str], needles: list[str], case: bool, together: int
) -> None:
    """Whatever way they are searched, it comes to looking for one text in another."""
    host = Host(discover=False)
    host.register(toy_log, name="toylog")
    whole = b"".join(log(text.encode(), at) for at, text in enumerate(messages))
    fold = str if case else str.casefold
    wanted = [
        at
        for at, text in enumerate(messages)
        if any(fold(needle) in fold(text) for needle in needles)
    ]
    before = logs_module.MESSAGES
    logs_module.MESSAGES = together
    try:
        with host.open(whole, format="toylog") as capture:
            chosen = Selection(filters=tuple(needles), case_sensitive=case)
            assert times(capture.select(chosen)) == wanted
            rest = Selection(excludes=tuple(needles), case_sensitive=case)
            assert times(capture.select(rest)) == sorted({*range(len(messages))} - {*wanted})
    finally:
        logs_module.MESSAGES = before


def test_messages_that_are_no_text_are_searched_too(host: Host) -> None:
    with host.open(log(b"\xff\xfeBoom", 1) + log(b"\xc3", 2), format="toylog") as capture:
        assert times(capture.select(Selection(filters=("boom",)))) == [1]
        assert times(capture.select(Selection(filters=("Boom",), case_sensitive=True))) == [1]


def test_marks_on_rows() -> None:
    marks, chance = RowMarks(), random.Random(3)
    known: set[int] = set()
    for _ in range(5):
        rows = np.array([chance.randrange(-3, 2_000) for _ in range(50)])
        marks.add(rows)
        known |= {row for row in rows.tolist() if row >= 0}
    asked = np.arange(-5, 2_500)
    assert marks.of(asked).tolist() == [row in known for row in asked.tolist()]
    assert not marks.of(np.zeros(0, np.int64)).size
