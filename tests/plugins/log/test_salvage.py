"""Salvage of logs, containers and rings: what comes out is sound, whole but for what was lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import hypothesis
import pytest
from hypothesis import strategies as st

import fxframework as fxf
from fx_log import format as wire
from fx_log import rules
from fx_log.read import records as fx
from fx_log.read.capture import StreamCapture
from fx_log.read.frames import ROOM
from fx_log.write.copying import salvage
from fxframework.errors import Severity
from fxframework.io.sink import Sink
from fxframework.kit.salvage import Loss
from fxframework.testing.cli import run_cli

from ...cases import cases
from ...properties import share
from .logs import entry, log, packet, ring, stream, text_log
from .streams import damaged, log_files, packet_files, ring_images
from .test_records import decode

LENGTHS = {
    rule.code
    for rule in (
        rules.PACKET_TOO_SHORT, rules.PACKET_NOT_TERMINATED, rules.MANY_TAGS, rules.LONG_TAG,
        rules.PAST_THE_END, rules.PACKET_TRUNCATED, rules.ENTRY_TOO_SMALL, rules.ENTRY_TOO_LONG,
    )
}  # fmt: skip
"""What is said of a packet or an entry whose length may be damaged."""
PLAIN = {"attribution": "keep", "redact_keys": "", "redact_pattern": ""}


def salvaged(data: bytes, format: str = "log", **options: Any) -> tuple[bytes, list[Loss]]:
    sink = Sink.memory()
    with fxf.open(data, format=format, **options) as capture:
        losses = list(salvage(capture, sink, PLAIN))
    return sink.getvalue(), losses


def messages(data: bytes, format: str = "log", **options: Any) -> list[str | None]:
    with fxf.open(data, format=format, **options) as capture:
        return capture.table("logs").texts("message")


def lost_data(data: bytes, format: str, **options: Any) -> dict[str, int]:
    """The findings of data loss; an empty file is none of the format's."""
    with fxf.open(data, format=format, **options) as capture:
        capture.scan()
        found = capture.diagnostics
        return {
            code: count
            for code, count in found.counts.items()
            if code.startswith("FXL") and found.rule(code).severity >= Severity.DATA_LOSS
        }


def sound_of(data: bytes, format: str, **options: Any) -> Iterator[object]:
    """What the records say without their damaged arguments, in order."""
    for record in decode(data, format, **options)[0]:
        if isinstance(record, fx.Damaged | fx.Padding | fx.StreamHeader | fx.RingHeader):
            continue
        if isinstance(record, fx.RingEntry):
            if record.log is not None:
                yield record.tag, said(record.log)
        elif isinstance(record, fx.LogRecord):
            yield said(record), None if record.suffix is None else record.suffix.moniker
        elif not isinstance(record, fx.Attribution):
            yield attrs.evolve(record, offset=0, raw=None)


def said(record: fx.LogRecord) -> tuple[object, ...]:
    arguments = [
        (one.name, one.type, repr(one.value), one.bits)
        for one in record.args
        if one.type != "damaged"
    ]
    return record.timestamp, record.severity, record.tag_bits, arguments


def without(data: bytes, losses: list[Loss]) -> bytes:
    """A container without what was lost, and with a header if that was."""
    pieces = []
    kept_to = 0
    for loss in losses:
        pieces.append(data[kept_to : loss.offset])
        if loss.offset < wire.STREAM_HEADER:
            pieces.append(fx.StreamHeader().pack())
        kept_to = loss.offset + loss.nbytes
    return b"".join((*pieces, data[kept_to:]))


def check(data: bytes, format: str, **options: Any) -> None:
    out, losses = salvaged(data, format, **options)
    assert lost_data(out, format, **options) == {}
    assert salvaged(out, format, **options) == (out, [])  # it is at rest
    if any(loss.code == rules.OFF_ALIGNMENT.code for loss in losses):
        return  # which reading does not find
    read = {record.offset: record for record in decode(data, format, **options)[0]}
    if any(isinstance(read.get(one.offset), fx.LogRecord) and not one.part for one in losses):
        return  # it hid others, which reading does not find
    if format == "log-legacy-stream":
        assert out == without(data, losses)
    expected = list(sound_of(data, format, **options))
    found = list(sound_of(out, format, **options))
    if format != "log" and found != expected:
        # Reading goes by a damaged length: it ends there, or takes others for a part of one.
        hides_others = any(
            isinstance(read.get(one.offset), fx.LegacyPacket | fx.RingEntry)
            for one in losses
            if not one.part
        )
        ends_early = any(one.code in LENGTHS for one in losses) and len(found) > len(expected)
        assert hides_others or ends_early
        return
    if options.get("suffix"):  # where one is missing, an empty one was put in
        assert [one[0] for one in found] == [one[0] for one in expected]  # type: ignore[index]
    else:
        assert found == expected
    gone = [
        (record.offset, record.nbytes)
        for record in decode(data, format, **options)[0]
        if (isinstance(record, fx.RingEntry) and record.log is None)
        # The unused space of a ring is one of these.
        or (isinstance(record, fx.Damaged | fx.Padding) and format != "log-ring")
    ]
    if format != "log-ring":
        assert [(one.offset, one.nbytes) for one in losses if one.nbytes and not one.part] == gone
    else:
        assert set(gone) <= {(one.offset, one.nbytes) for one in losses}
    if not losses and format != "log-ring":
        assert out == data


@hypothesis.given(log_files())
def test_sound_and_odd_logs(data: bytes) -> None:
    check(data, "log")


@hypothesis.given(damaged(log_files()))
def test_damaged_logs(data: bytes) -> None:
    check(data, "log")


@hypothesis.given(damaged(log_files(suffixed=True)))
def test_damaged_logs_with_suffixes(data: bytes) -> None:
    check(data, "log", suffix=True)


LENGTH_COVERS_TWO_PACKETS = stream(
    [packet("a") + len(packet("b")).to_bytes(4, "little") + packet("b")]
)
"""One packet is read, with bytes behind its message, and another one is found."""
PLAIN_PACKET = packet("", pid=0, tid=0, time=0)
TAGGED_PACKET = packet("", "a", "a", pid=0, tid=0, time=0)
LENGTH_TOO_LARGE = b"".join(
    (
        stream([PLAIN_PACKET]),
        len(PLAIN_PACKET).to_bytes(4, "little") + PLAIN_PACKET[8:],
        stream([PLAIN_PACKET, TAGGED_PACKET, PLAIN_PACKET])[wire.STREAM_HEADER :],
    )
)
"""As many packets are read as are found, but others: reading is out of step from the second on."""


@hypothesis.given(damaged(packet_files()))
@hypothesis.example(LENGTH_COVERS_TWO_PACKETS)
@hypothesis.example(LENGTH_TOO_LARGE)
def test_damaged_containers(data: bytes) -> None:
    check(data, "log-legacy-stream")


@hypothesis.given(ring_images() | damaged(ring_images()))
def test_rings(data: bytes) -> None:
    check(data, "log-ring")


@hypothesis.given(log_files(), st.integers(0, 63))
@share(1 / 4)
def test_a_bit_flipped_in_every_word(data: bytes, bit: int) -> None:
    for word in range(min(len(data) // 8, 60)):
        flipped = bytearray(data)
        flipped[8 * word + bit // 8] ^= 1 << bit % 8
        check(bytes(flipped), "log")


# --- What it does about which loss ---------------------------------------------------------------

DAMAGED_ARGUMENTS = {
    "a reserved reference": ("FXL0109", 0x16 | 5 << 16, 1),
    "a name beyond the record": ("FXL0114", 0x16 | 0xFFFF << 16, 1),
    "a number that is missing": ("FXL0115", 0x13, 0),
    "an unknown type of size 0": ("FXL0116", 0x0C, 0),
}


@cases("case", DAMAGED_ARGUMENTS)
def test_an_argument_that_cannot_be_decoded_is_left_out(case: str) -> None:
    code, word, behind = DAMAGED_ARGUMENTS[case]
    record = log(("a", "int64", 1), time=5)
    header = int.from_bytes(record[:8], "little") + 0x10
    bad = header.to_bytes(8, "little") + record[8:] + word.to_bytes(8, "little")
    out, (loss,) = salvaged(record + bad + record)
    assert out == 3 * record
    assert (loss.code, loss.offset, loss.nbytes, loss.part) == (code, 2 * len(record), 8, True)
    assert loss.message == "an argument of 8 bytes cannot be decoded; left out"
    if behind:  # what follows the stated size of an argument is read
        header += 0x10 * (len(record) // 8 - 2)
        more = header.to_bytes(8, "little") + bad[8:] + record[16:]
        twice = log(("a", "int64", 1), ("a", "int64", 1), time=5)
        assert salvaged(more)[0] == twice
    in_ring = ring([entry(bad), entry(record)])
    out, (loss,) = salvaged(in_ring, "log-ring")
    assert out == ring([entry(record), entry(record)])
    assert loss.offset == wire.RING_PAGE + 16 + len(record)


def test_records_are_counted_as_lost_only_as_a_whole(tmp_path: Path) -> None:
    record = text_log("a")
    header = int.from_bytes(record[:8], "little") + 0x10
    bad = header.to_bytes(8, "little") + record[8:] + (0x16 | 5 << 16).to_bytes(8, "little")
    before, after = tmp_path / "a.fxlog", tmp_path / "b.fxlog"
    before.write_bytes(record + bad + record)
    result = run_cli("salvage", before, after)
    assert result.exit_code == 3
    assert "wrote" in result.stderr
    assert "3 records" in result.stderr
    assert "lost: 0 records, 8 bytes" in result.stderr


@cases("suffix", [False, True], ids=["plain", "suffixed"])
@cases("words", [40, 77, 4095])
def test_records_that_a_damaged_size_hides_are_found(words: int, suffix: bool) -> None:
    """Only the record with the damaged size is lost."""
    behind = bytes(wire.SUFFIX_BYTES) if suffix else b""
    others = b"".join(text_log(f"number {number}") + behind for number in range(900))
    first = bytearray(text_log("first"))
    size = len(first)
    header = int.from_bytes(first[:8], "little")
    first[:8] = (header & ~wire.SIZE.mask | wire.SIZE.put(words)).to_bytes(8, "little")
    options = {"suffix": True} if suffix else {}
    out, losses = salvaged(bytes(first) + behind + others, **options)
    assert out == others
    assert [(one.offset, one.nbytes, one.code) for one in losses] == [
        (0, size + len(behind), "FXL0001")
    ]


@cases("length", [0, 5, 60, 77, 200, 5000, 1 << 31, (1 << 32) - 1])
@cases("at", [0, 3])
def test_packets_behind_a_damaged_length_are_found(length: int, at: int) -> None:
    packets = [packet(f"message {number}", "tag") for number in range(8)]
    whole = bytearray(stream(packets))
    place = wire.STREAM_HEADER + at * (4 + len(packets[0]))
    assert whole[place : place + 4] == len(packets[0]).to_bytes(4, "little")
    whole[place : place + 4] = length.to_bytes(4, "little")
    out, losses = salvaged(bytes(whole), "log-legacy-stream")
    assert messages(out, "log-legacy-stream") == [
        f"message {number}" for number in range(8) if number != at
    ]
    assert sum(one.nbytes for one in losses) == 4 + len(packets[0])
    assert lost_data(out, "log-legacy-stream") == {}


@cases("length", [0, 8, 40, 64, 200, 65_536, 65_537, 1 << 63])
@cases("at", [0, 3])
def test_entries_behind_a_damaged_length_are_found(length: int, at: int) -> None:
    entries = [entry(text_log(f"message {number}")) for number in range(8)]
    whole = bytearray(ring(entries))
    place = wire.RING_PAGE + at * len(entries[0]) + 8
    whole[place : place + 8] = length.to_bytes(8, "little")
    out, losses = salvaged(bytes(whole), "log-ring")
    assert messages(out, "log-ring") == [f"message {number}" for number in range(8) if number != at]
    assert sum(one.nbytes for one in losses) == len(entries[0])
    assert lost_data(out, "log-ring") == {}


def test_what_a_sound_record_holds_is_not_taken_for_records() -> None:
    """A string may hold logs."""
    data = text_log((text_log("inside") * 20).decode(errors="surrogateescape")) + text_log("x")
    assert salvaged(data) == (data, [])


def test_what_lies_between_records_is_left_out() -> None:
    record = text_log("a")
    data = record + bytes(16) + record + b"\xff" * 24 + 3 * record + b"odd"
    out, losses = salvaged(data)
    assert out == 5 * record
    at = len(record)
    assert [(one.offset, one.nbytes, one.what, one.code) for one in losses] == [
        (at, 16, "padding", "FXL0006"),
        (2 * at + 16, 24, "damaged", "FXL0001"),
        (5 * at + 40, 3, "damaged", "FXL0004"),
    ]


def test_a_suffix_that_is_missing_is_replaced_by_an_empty_one() -> None:
    suffix = fx.Attribution(moniker="core/a", url="u").pack()
    records = [text_log(f"m{n}") for n in range(5)]
    data = records[0] + suffix + records[1] + b"\xff" * 24 + records[2] + suffix + records[3]
    out, losses = salvaged(data, suffix=True)
    assert {one.code for one in losses} == {"FXL0001", "FXL0210"}
    assert messages(out, suffix=True) == ["m0", "m1", "m2", "m3"]
    with fxf.open(out, format="log", suffix=True) as capture:
        assert capture.table("logs").texts("component") == ["core/a", "", "core/a", None]


def test_what_was_read_with_options_is_read_back_with_them(tmp_path: Path) -> None:
    suffix = fx.Attribution(moniker="core/a", url="u").pack()
    before, after = tmp_path / "a.fxlog", tmp_path / "b.fxlog"
    before.write_bytes((text_log("m") + suffix) * 3)
    result = run_cli("salvage", before, after, "-o", "suffix=yes", "-f", "log")
    assert (result.exit_code, after.read_bytes()) == (0, before.read_bytes())


def test_a_large_file_goes_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    record = text_log("a")
    bad = record[:16] + (0x16 | 5 << 16).to_bytes(8, "little") + record[24:]
    data = (20 * record + b"\xff" * 24 + bad + bytes(8)) * 30
    whole = salvaged(data)
    monkeypatch.setattr("fx_log.read.frames.BLOCK_BYTES", 64)
    assert salvaged(data) == whole
    assert sum(one.nbytes for one in whole[1]) + len(whole[0]) == len(data)


def test_damage_is_read_by_as_many_stretches_as_records_are() -> None:
    """However many there are: an empty packet is four bytes, and each is a loss."""
    data = stream([]) + bytes(300_000)
    with fxf.open(data, format="log-legacy-stream") as capture:
        assert isinstance(capture, StreamCapture)
        sizes = [frames.begin.size for frames in capture.framed().blocks()]
    assert sum(sizes) == 75_000
    assert max(sizes) == ROOM
    assert len(salvaged(data, "log-legacy-stream")[1]) == 75_000


@cases("tail", [0, 65536 - 40, 7 * 65536 + 8])
def test_a_sound_ring_keeps_its_bytes(tail: int) -> None:
    data = ring([entry(text_log(f"m{n}", time=n)) for n in range(4)], tail=tail)
    assert salvaged(data, "log-ring") == (data, [])


RINGS = {
    "an entry that holds no log": (ring([entry(text_log("a")), entry(b"\1" * 40)]), ["a"], 1),
    "bytes behind a log": (ring([entry(text_log("a") + b"12345678")]), ["a"], 1),
    "a length beyond the head": (
        ring([entry(text_log("a")), b"\1\0\0\0\0\0\0\0\x64\0\0\0\0\0\0\0"]),
        ["a"],
        1,
    ),
    "a head that makes no sense": (ring([b"1234"]), [], 1),
    "stale bytes": (ring([entry(text_log("a"))], tail=4096, rest=b"\2"), ["a"], 0),
}


@cases("case", RINGS)
def test_what_is_sound_of_a_ring_is_a_sound_ring(case: str) -> None:
    data, kept, lost = RINGS[case]
    out, losses = salvaged(data, "log-ring")
    assert messages(out, "log-ring") == kept
    assert len(losses) == lost
    assert not decode(out, "log-ring")[1].counts
    assert len(out) >= wire.RING_PAGE + wire.RING_MINIMUM


def test_bytes_behind_a_log_are_a_loss_that_is_told() -> None:
    _, (loss,) = salvaged(ring([entry(text_log("a") + b"12345678")]), "log-ring")
    assert (loss.code, loss.message) == ("FXL0806", "8 bytes after the log of an entry; left out")


def test_a_container_whose_header_is_damaged_gets_a_fresh_one(tmp_path: Path) -> None:
    sound = stream([packet("a", time=1), packet("b", time=2)])
    before, after = tmp_path / "a.fxllog", tmp_path / "b.fxllog"
    before.write_bytes(sound[:9] + b"\xff" + sound[10:])
    result = run_cli("salvage", before, after, "-f", "log-legacy-stream")
    assert (result.exit_code, after.read_bytes()) == (3, sound)


def test_the_writers_options_apply_to_what_is_sound() -> None:
    options = {"redact_keys": "message", "redact_pattern": ""}
    data = ring([entry(text_log("secret")), entry(b"\1" * 40)])
    sink = Sink.memory()
    with fxf.open(data, format="log-ring") as capture:
        losses = list(salvage(capture, sink, options))
    assert [loss.code for loss in losses] == ["FXL0805", "FXL0901"]
    assert b"secret" not in sink.getvalue()
