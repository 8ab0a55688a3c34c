"""Findings that are looked at before anything was read are those of the whole capture."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import fxframework as fxf
from fxframework.errors import StrictError
from fxframework.host import default_host
from fxframework.model.capture import Capture
from fxframework.model.diagnostics import Diagnostics
from fxframework.model.selection import Selection

from ..cases import cases
from ..samples import one_of_each, samples

LOOKS: dict[str, Callable[[Diagnostics], Any]] = {
    "iteration": lambda findings: [one.code for one in findings],
    "length": len,
    "index": lambda findings: findings[0].code,
    "slice": lambda findings: [one.code for one in findings[:2]],
    "counts": lambda findings: dict(findings.counts),
    "worst": lambda findings: findings.worst,
    "sorted": lambda findings: [one.code for one in findings.sorted()],
    "severity": lambda findings: findings.severity(next(iter(findings._rules))),
}
READINGS: dict[str, Callable[[Capture], Any]] = {
    "records": lambda capture: next(iter(capture.records()), None),
    "record JSON": lambda capture: next(iter(capture.records_json()), None),
    "a table": lambda capture: capture.table(capture.tables[0]),
    "batches": lambda capture: next(iter(capture.batches(capture.tables[0])), None),
    "a part": lambda capture: capture.select(Selection(start_ns=0)).table(capture.tables[0]),
    "summary": lambda capture: capture.summary(),
    "counts": lambda capture: capture.record_counts(),
    "scan": lambda capture: capture.scan(),
}


def damaged(name: str) -> tuple[str | None, bytes]:
    format, data = samples()[name]
    return format, data[: len(data) - 3]


@cases("look", list(LOOKS))
@cases("name", ["boot.fxt", "logs.fxlog", "calls.xray", "busy.inspect"])
def test_the_first_look_reads(name: str, look: str) -> None:
    format, data = damaged(name)
    with default_host().open(data, format=format) as read:
        read.scan()
        wanted = LOOKS[look](read.diagnostics)
    assert read.diagnostics.counts
    with default_host().open(data, format=format) as capture:
        assert LOOKS[look](capture.diagnostics) == wanted
        assert dict(capture.diagnostics.counts) == dict(read.diagnostics.counts)
    with default_host().open(data, format=format) as capture:
        part = capture.select(Selection())
        assert LOOKS[look](part.diagnostics) == wanted


@cases("reading", list(READINGS))
@cases("name", one_of_each())
def test_after_a_reading_looking_reads_nothing(
    name: str, reading: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    format, data = samples()[name]
    with default_host().open(data, format=format) as capture:
        assert "nothing was read yet" in repr(capture.diagnostics)
        READINGS[reading](capture)
        monkeypatch.setattr(type(capture), "scan", lambda _: pytest.fail("it reads again"))
        len(capture.diagnostics)
        assert "nothing was read yet" not in repr(capture.diagnostics)


def test_opening_reads_nothing_and_strict_looks_raise() -> None:
    format, data = damaged("boot.fxt")
    with default_host().open(data, format=format, strict=True) as capture:
        findings = capture.diagnostics
        with pytest.raises(StrictError):
            len(findings)


def test_findings_outlive_the_last_reference_to_their_capture() -> None:
    _, data = damaged("boot.fxt")
    assert list(fxf.open(data).diagnostics)


def test_a_capture_is_freed_though_its_findings_were_never_looked_at() -> None:
    format, data = samples()["fdr5-mt-clang16.xray"]
    gc.disable()
    try:
        capture = default_host().open(data, format=format)
        watched = weakref.ref(capture)
        del capture
        assert watched() is None
    finally:
        gc.enable()
