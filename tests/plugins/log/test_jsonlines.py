"""Record JSON in bulk: the lines of the kernel are those of the records, compiled and plain."""

from __future__ import annotations

import gc
import math
from typing import Any

import hypothesis
import orjson
import pytest
from hypothesis import strategies as st

from fx_log.sample import sample
from fxframework.wire.many import Many

from ...cases import cases
from .logs import entry, log, manifest, packet, ring, stream, text_log
from .streams import damaged, log_files, packet_files, packets, ring_images
from .test_objects_and_tables import Tools, findings

ODD = [
    log(("message", "string", 'quotes " and \\ and \n\r\t\b\f\0\x1b\x7f'), time=-(1 << 63)),
    log(("café €", "string", "\u2028 \U0001f600"), severity=0, time=(1 << 63) - 1),
    log(("", "null", None), ("", "int64", -1), ("flag", "bool", False), ("", "string", "")),
    *(
        log(("d", "double", value))
        for value in (0.0, -0.0, 1e16, 1e-7, 5e-324, 1.7976931348623157e308, 0.1, 1 / 3)
    ),
    log(("n", "uint64", (1 << 64) - 1), ("m", "int64", -(1 << 63)), tag_bits=(1 << 32) - 1),
    manifest(5, "core/a", "url"),
]
EMPTY = log(("k", "string", ""))
NOT_PLAIN = [
    EMPTY[:16]
    + (int.from_bytes(EMPTY[16:24], "little") | 0x8000 << 32).to_bytes(8, "little")
    + EMPTY[24:],
    log(("d", "double", math.nan)),
    log(("d", "double", math.inf)),
    log(("k", "string", "caf\udce9")),
    log(("n\udcff", "int64", 1)),
    bytes(24),
    b"\x05" * 8,
    b"\x29" + bytes(7),
]


@pytest.fixture(scope="module")
def tools() -> Tools:
    return Tools()


def agree(
    tools: Tools, data: bytes, given: dict[str, Any], form: str = "log", **limits: int
) -> None:
    by_records = tools.opened(form, data, given, **limits)
    lines = [orjson.dumps(record.to_json()) + b"\n" for record in by_records.records()]
    in_bulk = tools.opened(form, data, given, **limits)
    pieces = list(in_bulk.records_json())
    assert all(piece.endswith(b"\n") for piece in pieces)
    assert b"".join(pieces) == b"".join(lines)
    assert findings(in_bulk) == findings(by_records)
    assert in_bulk.diagnostics.counts == by_records.diagnostics.counts


@cases("record", ODD + NOT_PLAIN)
def test_each_record_by_itself_and_among_others(tools: Tools, record: bytes) -> None:
    agree(tools, record, {})
    agree(tools, text_log("before") + record + text_log("after") * 3, {})


def test_pieces_are_bounded_and_of_whole_lines(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tools.lines, "BLOCK_BYTES", 200)
    data = b"".join(ODD) * 20 + text_log("x") * 100 + bytes(3)
    agree(tools, data, {})
    pieces = list(tools.opened("log", data, {}).records_json())
    assert len(pieces) > 10
    assert max(map(len, pieces)) < 4000


def test_many_typical_records(tools: Tools) -> None:
    agree(tools, sample(100_000) + b"\x09", {})


def test_bytes_that_the_fields_do_not_give_stand_beside_them(tools: Tools) -> None:
    whole = bytearray(log(("key", "string", "value"), ("flag", "bool", True)))
    for bit in range(64 * 3, 8 * len(whole)):
        one = bytearray(whole)
        one[bit // 8] ^= 1 << bit % 8
        agree(tools, bytes(one) + text_log("after") * 3, {})


@hypothesis.given(data=log_files() | damaged(log_files()) | st.binary(max_size=300))
def test_agree_on_any_file(tools: Tools, data: bytes) -> None:
    agree(tools, data, {})


@hypothesis.given(data=damaged(log_files()), limit=st.integers(0, 80))
def test_agree_within_limits(tools: Tools, data: bytes, limit: int) -> None:
    agree(tools, data, {}, max_record=limit, max_findings=1 + limit % 3)


@hypothesis.given(data=log_files(suffixed=True))
def test_agree_on_suffixes(tools: Tools, data: bytes) -> None:
    agree(tools, data, {"suffix": True})


def test_plain_records_are_not_decoded_one_by_one(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tools.lines, "BLOCK_BYTES", 200)
    capture = tools.opened("log", sample(50_000), {})

    def refused(*_: Any) -> None:
        raise AssertionError("a plain record was decoded by itself")

    monkeypatch.setattr(tools.frames.Records, "log", refused)
    assert b"".join(capture.records_json()).count(b"\n") == 280


@cases("data", [sample(20_000), sample(10_000) + b"odd"])
def test_what_was_read_of_a_block_is_freed_with_it(
    tools: Tools, monkeypatch: pytest.MonkeyPatch, data: bytes
) -> None:
    """Without the collector of cycles, which would let 300 MB come together in a file of 40."""
    monkeypatch.setattr(tools.lines, "BLOCK_BYTES", 200)
    capture = tools.opened("log", data, {})
    gc.collect()
    gc.disable()
    try:
        assert sum(1 for _ in capture.records_json()) > 10
        assert sum(isinstance(each, Many) for each in gc.get_objects()) < 5
    finally:
        gc.enable()


SOUND_PACKET = packet("a message", "tag")
ODD_PACKETS = [
    packet('quotes " and \\ and \n\r\t\b\f\x1b\x7f café €'),
    packet("", "a", "b" * 63, '"', "d", "e", severity=-(1 << 31), dropped_logs=(1 << 32) - 1),
    packet("m", pid=(1 << 64) - 1, tid=1 << 63, time=-(1 << 63), severity=300),
    packet("trailing") + bytes(3),
    packet("x" * 32_000) + b"y" * 1000 + bytes(1),
    packet("caf\udce9"),
    packet("", "\udcff"),
    SOUND_PACKET[:32] + b"\x01f" * 6 + bytes(2),
    SOUND_PACKET[:32] + b"\x40" + b"g" * 64 + bytes(2),
    SOUND_PACKET[:32] + b"\x3f" + b"g" * 20 + bytes(2),
    SOUND_PACKET[:33] + b"no end",
    SOUND_PACKET[:-1],
    SOUND_PACKET[:33],
    b"",
]


@cases("odd", range(len(ODD_PACKETS)))
def test_each_packet_by_itself_and_among_others(tools: Tools, odd: int) -> None:
    agree(tools, stream([ODD_PACKETS[odd]]), {}, "log-legacy-stream")
    among = stream([SOUND_PACKET, ODD_PACKETS[odd], packet("after"), SOUND_PACKET])
    for data in (among, among[:-1], b"\0" + among[1:], among[:12] + b"odd!" + among[16:]):
        agree(tools, data, {}, "log-legacy-stream")


@hypothesis.given(data=packet_files() | damaged(packet_files()) | st.binary(max_size=200))
def test_agree_on_any_packets(tools: Tools, data: bytes) -> None:
    agree(tools, data, {}, "log-legacy-stream")


RING_ENTRIES = [
    *map(entry, ODD),
    entry(log(("a", "int64", 1)), tag=(1 << 64) - 1),
    entry(log(("a", "int64", 1)) + b"trailing"),
    entry(log(("a", "int64", 1)) + b"odd"),
    entry(log(("a", "int64", 1))[:-8]),
    entry(b"no record, but bytes"),
    entry(b""),
    entry(log(("k", "string", "caf\udce9"))),
    entry(b"x" * 5)[:-1] + b"\1",
]


@hypothesis.given(data=packets() | damaged(packets()) | st.binary(max_size=100))
def test_agree_on_any_packet(tools: Tools, data: bytes) -> None:
    agree(tools, data, {}, "log-legacy")


@cases("tail", [0, 8, 4096, (1 << 40) + 16])
def test_entries_of_a_ring(tools: Tools, tail: int) -> None:
    agree(tools, ring(RING_ENTRIES, tail=tail), {}, "log-ring")
    for odd in RING_ENTRIES:
        data = ring([entry(ODD[0]), odd, entry(ODD[1])], tail=tail, rest=b"\1")
        agree(tools, data, {}, "log-ring")


@hypothesis.given(data=ring_images() | damaged(ring_images()) | st.binary(max_size=200))
def test_agree_on_any_ring(tools: Tools, data: bytes) -> None:
    agree(tools, data, {}, "log-ring")
