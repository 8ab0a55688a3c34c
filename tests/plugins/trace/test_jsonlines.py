"""Record JSON in bulk is, line by line, the JSON of the records."""

from __future__ import annotations

from pathlib import Path

import hypothesis
import orjson
import pytest

from fx_trace.read import jsonlines
from fx_trace.read.reader import TraceCapture, open_trace
from fxframework.io.source import Source
from fxframework.model.capture import OpenRequest

from .streams import damaged, fxt_streams

SAMPLE = Path(__file__).parents[2] / "conformance" / "trace" / "files" / "magic_trace_sample.fxt"


def opened(data: bytes) -> TraceCapture:
    return open_trace(Source.open(data), OpenRequest())


def one_by_one(data: bytes) -> tuple[list[bytes], dict[str, int]]:
    capture = opened(data)
    lines = [orjson.dumps(record.to_json()) for record in capture.records()]
    return lines, dict(capture.diagnostics.counts)


def in_bulk(data: bytes) -> tuple[list[bytes], dict[str, int]]:
    capture = opened(data)
    lines = b"".join(capture.records_json()).splitlines()
    return lines, dict(capture.diagnostics.counts)


@hypothesis.settings(
    max_examples=80, deadline=None, suppress_health_check=list(hypothesis.HealthCheck)
)
@hypothesis.given(fxt_streams() | damaged(fxt_streams()))
def test_lines_are_the_records(data: bytes) -> None:
    # Twice the same, so that what the first half taught meets the second.
    for stream in (data, data + data[: len(data) // 8 * 8]):
        assert in_bulk(stream) == one_by_one(stream)


@pytest.mark.parametrize("lines", [1, 7, jsonlines.LINES])
def test_lines_of_a_real_capture(lines: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonlines, "LINES", lines)
    data = SAMPLE.read_bytes()[:200_000]
    assert in_bulk(data) == one_by_one(data)
