"""`fxf explain FILE@OFFSET` of logs: every byte is told, and what it means."""

from __future__ import annotations

import pytest

from fx_log.read import frames
from fxframework.errors import UsageError
from fxframework.io.source import Source
from fxframework.io.words import FieldView

from ...cases import cases
from .logs import entry, log, packet, records_of, ring, stream, text_log

EXPLAIN = {
    "log": frames.explain_log,
    "log-legacy": frames.explain_legacy,
    "log-legacy-stream": frames.explain_stream,
    "log-ring": frames.explain_ring,
}
EVERYTHING = log(
    ("pid", "uint64", 7),
    ("a", "int64", -1),
    ("b", "double", 1.5),
    ("message", "string", "it is open"),
    ("c", "bool", True),
    ("d", "null", None),
)
FILES = {
    "log": EVERYTHING + bytes(8) + text_log("again") + b"odd",
    "log-legacy": packet("hello", "tag", "io"),
    "log-legacy-stream": stream([packet("hello", "tag"), b"short"]),
    "log-ring": ring([entry(EVERYTHING), entry(b"\1" * 20)], tail=65536 - 64, rest=b"\2"),
}


def views(format: str, data: bytes, offset: int) -> list[FieldView]:
    return EXPLAIN[format](Source.open(data), offset)


def covered(format: str, data: bytes, offset: int) -> set[int]:
    """The bytes that the explanation of the record at an offset tells of."""
    found: set[int] = set()
    for view in views(format, data, offset):
        if "not listed" not in view.meaning:
            found.update(range(view.offset + view.low // 8, view.offset + view.high // 8 + 1))
    return found


@cases("format", FILES)
def test_every_byte_is_told(format: str) -> None:
    data = FILES[format]
    for record in records_of(format, data, {}):
        for step in sorted({0, 1, record.nbytes // 2, record.nbytes - 1}):
            offset = record.offset + step
            if offset < len(data):
                assert offset in covered(format, data, offset)


def test_fields_have_names_values_and_sections() -> None:
    named = {view.name: view for view in views("log", FILES["log"], 0)}
    assert named["severity"].value == 0x30
    assert named["timestamp"].value == 1000
    assert named["type"].section.startswith("logs-encoding")
    names = [view for view in views("log", FILES["log"], 0) if view.name == "name"]
    assert names[0].meaning == "pid"
    values = [view.meaning for view in views("log", FILES["log"], 0)
              if view.name == "value"]  # fmt: skip
    assert values[:3] == ["7", "-1", "1.5"]


def test_a_packet_is_told_field_by_field() -> None:
    found = [view.name for view in views("log-legacy", FILES["log-legacy"], 40)]
    assert found[:5] == ["pid", "tid", "timestamp", "severity", "dropped_logs"]
    assert "tags[1]" in found
    assert found[-1] == "message"


def test_of_a_ring_an_entry_that_wraps_is_told() -> None:
    data = FILES["log-ring"]
    first = views("log-ring", data, len(data) - 64)
    assert [view.name for view in first][:2] == ["tag", "length"]
    assert {view.name for view in first} >= {"severity", "timestamp"}
    assert min(view.offset for view in first) == 4096
    assert views("log-ring", data, 4096) == first


@cases("offset", [-1, len(FILES["log"])])
def test_other_places_are_refused(offset: int) -> None:
    with pytest.raises(UsageError):
        views("log", FILES["log"], offset)
