"""Formats that a function reads with a cursor: damage, resuming, and what authors get wrong."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fxframework.errors import PluginError
from fxframework.host import Host
from fxframework.io.source import Source
from fxframework.model.capture import Capture
from fxframework.wire import by_cursor
from fxframework.wire.cursor import ShortError
from fxframework.wire.reading import RecordCursor
from fxframework.wire.state import State

MAGIC = b"BEATS\0\1\0"
ROWS = {"beat": ("instants", {"ts": "time", "name": "name", "scope": 2})}


def beat(c: RecordCursor) -> tuple[str, dict[str, Any]] | None:
    if c.peek(1) != b"B":
        return None
    _, time, length = c.fields("<cqB")
    return "beat", {"time": time, "name": c.bytes(length).decode(errors="replace")}


def encoded(time: int, name: bytes = b"hit") -> bytes:
    return struct.pack("<cqB", b"B", time, len(name)) + name


READER = by_cursor("beats", "Beats", beat, codes="BEAT", magic=MAGIC, rows=ROWS)


def opened(data: bytes, reader: Any = READER) -> Capture:
    return Host(discover=False).read(Source.open(data), reader)


def kinds(data: bytes) -> list[tuple[str, int]]:
    with opened(data) as capture:
        return [(record.to_json()["record"], record.nbytes) for record in capture.records()]


ONE = encoded(1)


@pytest.mark.parametrize(
    ("data", "expected", "codes"),
    [
        (MAGIC + ONE, [("header", 8), ("beat", 13)], []),
        (MAGIC, [("header", 8)], []),
        (MAGIC[:5], [("damaged", 5)], ["BEAT0102"]),
        (b"x" * 8 + ONE, [("damaged", 8), ("beat", 13)], ["BEAT0101"]),
        (MAGIC + ONE[:-1], [("header", 8), ("damaged", 12)], ["BEAT0102"]),
        (MAGIC + b"xyz" + ONE, [("header", 8), ("damaged", 3), ("beat", 13)], ["BEAT0109"]),
        (
            MAGIC + ONE + b"B" + b"\xff" * 9 + ONE + ONE,
            [("header", 8), ("beat", 13), ("damaged", 10), ("beat", 13), ("beat", 13)],
            ["BEAT0102"],
        ),
        (MAGIC + b"x" * 5000, [("header", 8), ("damaged", 5000)], ["BEAT0109"]),
    ],
)
def test_damage_is_found_and_reading_goes_on(
    data: bytes, expected: list[tuple[str, int]], codes: list[str]
) -> None:
    assert kinds(data) == expected
    with opened(data) as capture:
        capture.scan()
        assert list(capture.diagnostics.counts) == codes


@given(st.lists(st.sampled_from([ONE, encoded(-5, b""), b"x", b"B", ONE[:7], bytes(3)])))
def test_records_cover_every_byte(parts: list[bytes]) -> None:
    data = MAGIC + b"".join(parts)
    with opened(data) as capture:
        records = list(capture.records())
        shown = [record.to_json() for record in records]
        rows = len(capture.table("instants"))
    raw = [MAGIC if each["record"] == "header" else bytes.fromhex(each["raw"]) for each in shown]
    assert b"".join(raw) == data
    assert rows == sum(each["record"] == "beat" for each in shown)


def test_rows_have_fields_and_constants() -> None:
    with opened(MAGIC + encoded(7, b"a") + encoded(-2, b"")) as capture:
        table = capture.table("instants")
        assert table.array("ts").tolist() == [7, -2]
        assert table.texts("name") == ["a", ""]
        assert table.array("scope").tolist() == [2, 2]
        assert (capture.summary().start_ns, capture.summary().end_ns) == (-2, 7)


@pytest.mark.parametrize("cut", range(len(ONE)))
def test_reading_resumes_behind_the_last_whole_record(cut: int) -> None:
    data = MAGIC + ONE + encoded(2) + encoded(3)
    end = len(MAGIC) + 2 * len(ONE) + cut
    with opened(data[:end]) as capture:
        place = capture.resume()
    assert place == (len(MAGIC) + 2 * len(ONE), MAGIC)
    with opened(place[1] + data[place[0] :]) as capture:
        assert capture.table("instants").array("ts").tolist() == [3]


def test_reads_are_checked() -> None:
    c = RecordCursor(memoryview(b"\1\2\0abc"), 0, State())
    assert c.peek(2) == b"\1\2"
    assert c.fields("<BH") == (1, 2)
    assert c.bytes(1) == b"a"
    for read in (lambda: c.peek(3), lambda: c.take(3), lambda: c.bytes(-1), lambda: c.fields("<Q")):
        with pytest.raises(ShortError):
            read()
        assert c.at == 4
    assert bytes(c.rest()) == b"bc"
    assert bytes(c.rest()) == b""


@pytest.mark.parametrize(
    "rows", [{"beat": ("instant", {})}, {"beat": ("instants", {"tz": "time"})}]
)
def test_rows_of_nothing_that_there_is_are_refused(rows: Any) -> None:
    with pytest.raises(PluginError, match=r"no (table|column)"):
        by_cursor("beats", "Beats", beat, codes="BEAT", rows=rows)


def test_a_record_without_bytes_is_a_fault_not_an_endless_loop() -> None:
    reader = by_cursor("beats", "Beats", lambda c: ("beat", {}), codes="BEAT")
    with opened(b"x", reader) as capture, pytest.raises(PluginError, match="without bytes"):
        list(capture.records())
