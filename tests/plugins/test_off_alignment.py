"""Salvage finds records again where bytes are missing or were put in, in traces and in logs."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fxframework as fxf
from fx_log import rules as log_rules
from fx_log.format import Attribution
from fx_trace import rules as trace_rules
from fx_trace.records import Argument, Event, StringRecord, ThreadRecord, TraceRecord
from fx_trace.write.salvage import salvage as salvage_trace
from fx_trace.write.salvage import trace_alignment
from fxframework.errors import Severity
from fxframework.host import default_host
from fxframework.io.sink import Sink
from fxframework.kit.salvage import Loss
from fxframework.kit.shown import amount
from fxframework.testing.cli import run_cli

from ..cases import cases
from .log.logs import log
from .trace.streams import fxt_streams

FORMATS = ("trace", "log")
OFF = {"trace": trace_rules.OFF_ALIGNMENT.code, "log": log_rules.OFF_ALIGNMENT.code}
PLAIN = {"attribution": "keep", "redact_keys": "", "redact_pattern": ""}
SUFFIX = Attribution(moniker="core/a", url="fuchsia-pkg://a", rolled_out=3).pack()


def sample(format: str, nbytes: int) -> bytes:
    made = default_host().reader(format).sample
    assert made is not None
    return made(nbytes)


def split(data: bytes, suffix: int = 0) -> list[bytes]:
    """The records of sound bytes, by their sizes."""
    found = []
    at = 0
    while at < len(data):
        word = int.from_bytes(data[at : at + 8], "little")
        size = 8 * (word >> 4 & (0xFFFFFFFF if word & 15 == 15 else 0xFFF)) + suffix
        found.append(data[at : at + size])
        at += size
    return found


def salvaged(data: bytes, format: str, **options: Any) -> tuple[bytes, list[Loss]]:
    """What salvage writes, which has no lost data, and the losses, which are in order."""
    sink = Sink.memory()
    salvage = default_host().writer(format).salvage
    assert salvage is not None
    with fxf.open(data, format=format, **options) as capture:
        more = capture.writer_options if format == "trace" else PLAIN
        losses = list(salvage(capture, sink, more))
    assert all(0 <= loss.offset <= len(data) for loss in losses)
    out = sink.getvalue()
    with fxf.open(out, format=format, **options) as capture:
        capture.scan()
        worst = [found for found in capture.diagnostics if found.severity >= Severity.DATA_LOSS]
    assert [found for found in worst if found.code.startswith("FX" + format[0].upper())] == []
    return out, losses


def places(losses: list[Loss], format: str) -> list[tuple[int, int]]:
    """Where the stretches begin and end behind which the alignment changes."""
    return [(loss.offset, loss.offset + loss.nbytes) for loss in losses if loss.code == OFF[format]]


def is_subsequence(some: list[bytes], records: list[bytes]) -> bool:
    rest = iter(records)
    return all(each in rest for each in some)


def untouched(records: list[bytes], begin: int, end: int) -> Iterator[bytes]:
    """The records before a stretch of the file, and those behind it."""
    at = 0
    for record in records:
        if at + len(record) <= begin or at >= end:
            yield record
        at += len(record)


# --- One place -----------------------------------------------------------------------------------


@cases("where", ["beginning", "middle", "end"])
@cases("residue", range(1, 8))
@cases("change", ["lost", "put"])
@cases("format", FORMATS)
def test_records_behind_a_change_are_found(
    format: str, change: str, residue: int, where: str
) -> None:
    data = sample(format, 20_000)
    records = split(data)
    begin = {
        "beginning": len(records[0]) + 3,
        "middle": len(b"".join(records[: len(records) // 2])) + 11,
        "end": len(data) - len(b"".join(records[-3:])) + 5,
    }[where]
    count = 16 + residue
    if change == "lost":
        gone = begin + count
        bad = data[:begin] + data[gone:]
    else:
        gone = begin
        bad = data[:begin] + b"\xa5" * count + data[begin:]
    out, losses = salvaged(bad, format)
    kept = list(untouched(records, begin, gone))
    found = [each for each in split(out) if each in set(records)]
    assert is_subsequence(found, records)
    assert len(found) >= len(kept) - 1  # the record before may be cut off
    behind = kept[kept.index(records[-1]) - 1 :]
    assert found[-len(behind) :] == behind
    ((start, stop),) = places(losses, format)
    assert start <= begin < stop
    assert stop % 8 == (-count if change == "lost" else count) % 8
    assert f"are {amount(stop % 8, 'byte')} off the alignment; moved" in losses[0].message


@cases("count", range(1, 8))
@cases("format", FORMATS)
def test_a_file_whose_beginning_is_cut_off_or_not_its_own(format: str, count: int) -> None:
    data = sample(format, 40_000)
    records = split(data)
    for bad, expected in ((data[count:], records[1:]), (b"HELLO, YOU"[:count] + data, records)):
        out, losses = salvaged(bad, format)
        assert split(out)[-len(expected) :] == expected
        assert len(split(out)) - len(expected) in {0, 1}  # the magic number was added
        assert places(losses, format)[0][0] == 0


@pytest.mark.parametrize("format", FORMATS)
def test_of_records_that_stay_off_the_alignment_to_the_end_two_are_enough(format: str) -> None:
    data = sample(format, 40_000)
    records = split(data)
    for left in (1, 2):
        cut = len(data) - len(b"".join(records[-left - 1 :])) + 8
        out, losses = salvaged(data[:cut] + data[cut + 5 :], format)
        assert (split(out)[-1] == records[-1]) == bool(places(losses, format)) == (left == 2)


# --- Many ----------------------------------------------------------------------------------------


def torn(data: bytes, seed: int, changes: int, *, put: bool) -> tuple[bytes, int]:
    """Bytes with some ranges of 1 to 200 bytes missing or put in, and how many records are whole.

    No range is a multiple of 8 bytes long: what such a one cuts out of two records may be one.
    """
    rng = random.Random(seed)
    pieces, at, hit = [], 0, set()
    ends = np.cumsum([len(each) for each in split(data)])
    for begin in sorted(rng.sample(range(64, len(data) - 400), changes)):
        count = rng.choice([each for each in range(1, 201) if each % 8])
        if begin > at:
            pieces += [data[at:begin], rng.randbytes(count) if put else b""]
            at = begin if put else begin + count
            first, last = np.searchsorted(ends, [begin, at], "right")
            hit |= set(range(int(first), int(last) + 1))
    return b"".join([*pieces, data[at:]]), ends.size - len(hit)


@pytest.mark.parametrize("put", [False, True], ids=["lost", "put"])
@pytest.mark.parametrize("format", FORMATS)
def test_nearly_all_is_kept_of_a_file_with_many_changes(format: str, put: bool) -> None:
    data = sample(format, 5_000_000)
    records = split(data)
    known = set(records)
    bad, whole = torn(data, 2, 60, put=put)
    out, losses = salvaged(bad, format)
    found = split(out)
    made = [each for each in found if each not in known]
    nobodies = {ThreadRecord(index=index, pid=0, tid=0).pack() for index in range(1, 256)}
    assert all(b"<str#" in each or each in nobodies for each in made)
    assert is_subsequence([each for each in found if each in known], records)
    assert len(found) - len(made) >= 0.999 * whole
    assert len(places(losses, format)) > 50


@pytest.mark.parametrize("format", FORMATS)
def test_changed_bytes_move_no_record(format: str) -> None:
    data = bytearray(sample(format, 200_000))
    assert salvaged(bytes(data), format) == (bytes(data), [])
    rng = random.Random(2)
    for _ in range(500):
        data[rng.randrange(64, len(data))] = rng.randrange(256)
    _, losses = salvaged(bytes(data), format)
    assert losses
    assert places(losses, format) == []


# --- Any -----------------------------------------------------------------------------------------


def an_event(rng: random.Random, number: int) -> bytes:
    kind = rng.choice(["instant", "counter", "duration_begin", "flow_begin"])
    more: dict[str, dict[str, Any]] = {
        "counter": {"counter_id": number},
        "flow_begin": {"id": rng.getrandbits(64)},
    }
    args = tuple(
        Argument(name=f"key{at}", type="string", value="v" * rng.randrange(20))
        for at in range(rng.randrange(3))
    )
    return Event(
        event=kind, timestamp=10**12 + 999 * number, thread=(rng.randrange(9999), number),
        category=rng.choice(["net", "gfx"]), name=f"name {number}", args=args, **more.get(kind, {}),
    ).pack()  # fmt: skip


def a_log(rng: random.Random, number: int) -> bytes:
    args: list[tuple[str, str, Any]] = [
        ("message", "string", f"message {number} " * rng.randrange(1, 5))
    ]
    args += [("count", "int64", rng.getrandbits(40))] * rng.randrange(2)
    return log(*args, time=10**12 + 999 * number, severity=rng.choice([0x20, 0x30, 0x40]))


MAKERS = {"trace": an_event, "log": a_log}


@pytest.mark.parametrize("format", FORMATS)
@given(data=st.data())
def test_what_is_kept_is_a_part_of_the_original(format: str, data: st.DataObject) -> None:
    rng = random.Random(data.draw(st.integers(0, 1 << 32)))
    records = [MAKERS[format](rng, number) for number in range(data.draw(st.integers(8, 60)))]
    if format == "trace":
        records.insert(0, bytes.fromhex("1000044678541600"))
    file = b"".join(records)
    begin = data.draw(st.integers(8, len(file)))
    count = data.draw(st.integers(1, 200).filter(lambda count: count % 8))
    put = data.draw(st.booleans())
    gone = begin if put else min(begin + count, len(file))
    noise = rng.randbytes(count) if put else b""
    bad = file[:begin] + noise + file[gone:]
    out, _ = salvaged(bad, format)
    found = split(out)
    behind = list(untouched(records, 0, gone))
    if len(behind) > 2:
        for record in set(found) - set(records):  # chance bytes that are one: in 1 of 20,000 traces
            offset = bad.index(record)
            assert offset <= begin + len(noise)
            assert offset + len(record) >= begin
        assert is_subsequence([record for record in found if record in records], records)
        assert found[-len(behind) :] == behind
        assert len(found) >= len(list(untouched(records, begin, gone))) - 1


@given(fxt_streams(max_records=40, odd=False, magic=True), st.data())
def test_any_trace_is_whole_again(stream: bytes, data: st.DataObject) -> None:
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(stream)))
        stream = (
            stream[:at]
            + data.draw(st.one_of(st.binary(max_size=9), st.just(b"")))
            + stream[at + data.draw(st.integers(0, 30)) :]
        )
    out, _ = salvaged(stream, "trace")
    again, losses = salvaged(out, "trace")
    assert (again, places(losses, "trace")) == (out, [])


# --- What records refer to -----------------------------------------------------------------------


def test_strings_and_threads_that_stand_off_the_alignment_are_registered() -> None:
    event: dict[str, Any] = {"event": "instant", "thread": (1, 2), "category": "c", "name": "n"}

    def part(index: int) -> bytes:
        made: list[TraceRecord] = [
            StringRecord(index=index, value=f"name {index}"),
            ThreadRecord(index=index, pid=100 + index, tid=200 + index),
            *(Event(**event, timestamp=10**12 + number) for number in range(4)),
        ]
        return b"".join(record.pack() for record in made)

    # An event with these indexes, from bytes: records refer to what a writer has registered.
    last = b"".join(
        struct.pack("<QQ", 0x24 | index << 24 | index << 32 | index << 48, 10**12 + 100)
        for index in (1, 2)
    )
    magic = bytes.fromhex("1000044678541600")
    out, losses = salvaged(magic + part(1) + b"abc" + part(2) + b"x" + last + part(3), "trace")
    assert {loss.code for loss in losses} == {OFF["trace"]}
    with fxf.open(out) as capture:
        events = [record.to_json() for record in capture.records() if isinstance(record, Event)]
    named = {one["name"]: one["thread"] for one in events}
    assert named["name 2"] == [102, 202]
    assert named.get("name 1", [101, 201]) == [101, 201]


def test_a_big_endian_trace() -> None:
    rng = random.Random(1)
    records = [bytes.fromhex("1000044678541600"), *(an_event(rng, number) for number in range(40))]
    file = b"".join(records)
    sink = Sink.memory()
    with fxf.open(file) as capture:
        assert list(salvage_trace(capture, sink, {"big_endian": True})) == []
    big = sink.getvalue()
    cut = len(b"".join(records[:20])) + 17
    out, losses = salvaged(big[:cut] + big[cut + 3 :], "trace")
    assert places(losses, "trace")
    with fxf.open(out) as capture:
        names = [one.to_json().get("name") for one in capture.records()]
    assert names[-20:] == [f"name {number}" for number in range(20, 40)]


def test_logs_with_suffixes() -> None:
    rng = random.Random(1)
    records = [a_log(rng, number) + SUFFIX for number in range(40)]
    file = b"".join(records)
    cut = len(b"".join(records[:20])) + 17
    out, losses = salvaged(file[:cut] + file[cut + 3 :], "log", suffix=True)
    assert places(losses, "log")
    assert out.endswith(b"".join(records[21:]))
    assert is_subsequence(split(out, len(SUFFIX)), records)


# --- Kernels -------------------------------------------------------------------------------------


def stretches(data: bytes) -> list[tuple[int, int]]:
    alignment = trace_alignment(np.frombuffer(data, np.uint8), big=False)
    return alignment.stretches(len(data))


def test_a_large_record_is_passed() -> None:
    rng = random.Random(1)
    events = b"".join(an_event(rng, number) for number in range(20))
    payload = bytes(1 << 20)
    words = 3 + len(payload) // 8
    large = struct.pack("<QQQ", 0xF | words << 4 | 1 << 40, 0, len(payload)) + payload
    assert stretches(events + large + events) == []
    ((_, end),) = stretches(events + large + events + b"x" + events)
    assert end == 2 * len(events) + len(large) + 1


# --- The command ---------------------------------------------------------------------------------


@pytest.mark.parametrize("format", FORMATS)
def test_the_command_says_where(format: str, tmp_path: Any) -> None:
    data = sample(format, 40_000)
    suffix = {"trace": "fxt", "log": "fxlog"}[format]
    path, out = tmp_path / f"a.{suffix}", tmp_path / f"out.{suffix}"
    path.write_bytes(data[:20_003] + data[20_010:])
    result = run_cli("salvage", str(path), str(out))
    assert result.exit_code == 3
    assert f"{OFF[format]} damaged: bytes are missing or were put in here" in result.stderr
    assert "are 1 byte off the alignment; moved" in result.stderr
    assert run_cli("verify", str(out)).exit_code in {0, 3}
