"""Salvage: what comes out is sound, whole but for what was lost, and says what that is."""

from __future__ import annotations

from pathlib import Path

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from fx_trace import format as wire
from fx_trace import rules
from fx_trace.read.capture import TraceCapture
from fx_trace.read.decoder import Records
from fx_trace.read.frames import TraceFrames
from fx_trace.records import (
    Argument,
    Event,
    Initialization,
    LargeBlob,
    LegacyContextSwitch,
    ProviderInfo,
    ProviderSection,
    StringRecord,
    ThreadRecord,
    TraceInfo,
    TraceRecord,
    UserspaceObject,
)
from fx_trace.write.salvage import salvage
from fxframework.errors import Severity
from fxframework.host import Host
from fxframework.io.sink import Sink
from fxframework.io.source import Source
from fxframework.kit.salvage import Loss
from fxframework.model.capture import OpenRequest
from fxframework.testing.cli import run_cli

from ...cases import cases
from ...properties import share
from .streams import any_bytes, damaged, fxt_streams

MAGIC = wire.MAGIC_BYTES
EVENT = {"event": "instant", "timestamp": 5, "thread": (1, 2), "category": "c", "name": "n"}


def opened(data: bytes) -> TraceCapture:
    return TraceCapture(Source.open(data), OpenRequest())


def salvaged(data: bytes) -> tuple[bytes, list[Loss]]:
    capture = opened(data)
    sink = Sink.memory()
    losses = list(salvage(capture, sink, capture.writer_options))
    return sink.getvalue(), losses


def packed(*records: TraceRecord) -> bytes:
    return MAGIC + b"".join(record.pack() for record in records)


def worst_of(data: bytes) -> dict[str, int]:
    """The findings of data loss."""
    capture = opened(data)
    capture.scan()
    found = capture.diagnostics
    return {
        code: count
        for code, count in found.counts.items()
        if found.rule(code).severity >= Severity.DATA_LOSS and code != "FXF0102"
    }


def timeless(data: bytes) -> set[int]:
    """Where the records are whose times do not fit 63 bits of nanoseconds."""
    return set(opened(data).first_pass().outside_offsets.tolist())


def said(data: bytes) -> list[object]:
    """What the sound records say, but for indexes; nobody's thread is one never registered."""
    shown = []
    late = timeless(data)
    for record in opened(data).records():
        one = record.to_json()
        if one["record"] in {"damaged", "padding"} or record.offset in late:
            continue
        for key in ("offset", "nbytes", "refs", "raw"):
            one.pop(key, None)
        for argument in one.get("args", []):
            argument.pop("refs", None)
        shown.append(one)
    return shown


def mended(before: object) -> object:
    """What a record says after salvage: threads that were never registered are nobody."""
    assert isinstance(before, dict)
    out = dict(before)
    for key in ("thread", "outgoing", "incoming", "process"):
        if isinstance(out.get(key), str):
            out[key] = 0 if key == "process" else [0, 0]
    return out


def is_made(one: object) -> bool:
    """Whether a record is one that salvage may have put in front of another."""
    if not isinstance(one, dict):
        return False
    if one["record"] == "string":
        return bool(one["value"] == f"<str#{one['index']}>")
    if one["record"] == "thread":
        return bool((one["pid"], one["tid"]) == (0, 0))
    return bool(one.get("magic") == "0x16547846")


def hides(data: bytes) -> bool:
    """Whether records hide others, because their sizes are damaged."""
    capture = opened(data)
    file = capture.file()
    file.splits = True
    frames = TraceFrames(file)
    sizes = []
    while sum(sizes) < len(data) // 8 * 8:
        frames.list_more()
        sizes += frames.size.tolist()
    return sizes != [record.nbytes for record in capture.records()][: len(sizes)]


def check(data: bytes) -> None:
    capture, sink = opened(data), Sink.memory()
    losses = list(salvage(capture, sink, capture.writer_options))
    out = sink.getvalue()
    before, after = said(data), said(out)
    assert worst_of(out) == {}
    # It is at rest: salvaging again changes nothing.
    assert salvaged(out) == (out, [])
    if hides(data) or any(loss.code == rules.OFF_ALIGNMENT.code for loss in losses):
        return  # some hid others, or were off the alignment, which reading does not find
    # Every sound record is there, in order; what stands between them was put in.
    rest = iter(after)
    for one in before:
        for candidate in rest:
            if candidate == mended(one):
                break
            assert is_made(candidate), candidate
        else:
            pytest.fail(f"lost: {one}")
    assert all(is_made(one) for one in rest)
    if after:
        assert out.startswith((wire.MAGIC_BYTES, wire.MAGIC_BYTES_BIG_ENDIAN))
    late = timeless(data)
    gone = [record for record in opened(data).records()
            if record.offset in late
            or record.to_json()["record"] in {"damaged", "padding"}]  # fmt: skip
    assert [(loss.offset, loss.nbytes) for loss in losses if loss.nbytes] == [
        (record.offset, record.nbytes) for record in gone
    ]
    if not losses:
        assert out == data


# --- Whatever comes in ---------------------------------------------------------------------------


@hypothesis.given(fxt_streams())
def test_sound_and_odd_streams(data: bytes) -> None:
    check(data)


@hypothesis.given(damaged(fxt_streams()))
def test_damaged_streams(data: bytes) -> None:
    check(data)


@hypothesis.given(fxt_streams(big_endian=True, magic=True))
def test_big_endian_streams(data: bytes) -> None:
    check(data)


@hypothesis.given(any_bytes())
def test_any_bytes(data: bytes) -> None:
    check(data)


ODD = {0, 1, 6}
"""Where a word is cut: how many odd bytes there are changes nothing else."""


@hypothesis.given(fxt_streams(max_records=5), st.data())
@share(1 / 4)
def test_every_truncation(data: bytes, draw: st.DataObject) -> None:
    for end in range(min(len(data), 600)):
        if end % 8 in ODD:
            check(data[:end])


@hypothesis.given(fxt_streams(max_records=4, magic=True), st.integers(0, 63))
@share(1 / 4)
def test_a_bit_flipped_in_every_word(data: bytes, bit: int) -> None:
    for word in range(min(len(data) // 8, 80)):
        flipped = bytearray(data)
        flipped[8 * word + bit // 8] ^= 1 << bit % 8
        check(bytes(flipped))


@hypothesis.given(damaged(fxt_streams()))
def test_counting_finds_the_lost_data_that_the_first_pass_finds(data: bytes) -> None:
    """And so does the first pass after it, with what only matching finds."""
    whole, counted = opened(data), opened(data)
    kinds = whole.summary().kinds
    assert counted.record_counts() == kinds
    for capture in (whole, counted):
        lossy = {
            (each.code, each.offset)
            for each in capture.diagnostics
            if each.severity >= Severity.DATA_LOSS
        }
        assert lossy == {
            (each.code, each.offset) for each in whole.diagnostics
            if each.severity >= Severity.DATA_LOSS
        }  # fmt: skip
    counted.scan()
    assert counted.diagnostics.counts == whole.diagnostics.counts


def test_a_large_file_goes_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    event = Event(**EVENT).pack()
    late = Event(**{**EVENT, "timestamp": (1 << 64) - 1}).pack()
    data = MAGIC + (9 * event + late + bytes(16) + event + b"\xff" * 24) * 20
    whole = salvaged(data)
    monkeypatch.setattr("fxframework.wire.blocks.BLOCK_BYTES", 32)
    assert salvaged(data) == whole
    assert sum(loss.nbytes for loss in whole[1]) + len(whole[0]) == len(data)


def test_sections_of_providers_are_copied_with_what_is_in_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    section = ProviderSection(id=1).pack()
    info = ProviderInfo(id=1, name="one").pack()
    data = MAGIC + info + 20 * (section + Event(**EVENT).pack())
    looked_at: list[int] = []
    read = Records.read
    monkeypatch.setattr(Records, "read", lambda self: (looked_at.append(self.at), read(self))[1])
    assert salvaged(data) == (data, [])
    assert looked_at == []


# --- What it does about which loss ---------------------------------------------------------------


def test_a_clean_file_keeps_its_bytes() -> None:
    data = packed(
        StringRecord(index=1, value="n"),
        ThreadRecord(index=1, pid=1, tid=2),
        Event(**{**EVENT, "refs": {"name": 1, "thread": 1}}),
    )
    assert salvaged(data) == (data, [])


def test_what_is_no_record_is_left_out() -> None:
    event = Event(**EVENT).pack()
    broken = (0x24).to_bytes(8, "little") + b"\xff" * 8  # an event whose contents do not fit
    out, losses = salvaged(MAGIC + event + bytes(16) + event + broken + event + b"odd")
    assert out == MAGIC + 3 * event
    at = 8 + len(event)
    assert [(loss.offset, loss.nbytes, loss.what, loss.code) for loss in losses] == [
        (at, 16, "padding", "FXT0006"),
        (at + 16 + len(event), 16, "damaged", "FXT0004"),
        (at + 32 + 2 * len(event), 3, "damaged", "FXT0005"),
    ]
    assert all("left out" in loss.message for loss in losses)


def test_the_magic_number_is_put_in_front() -> None:
    event = Event(**EVENT).pack()
    out, losses = salvaged(event)
    assert out == MAGIC + event
    assert [(loss.offset, loss.nbytes, loss.code) for loss in losses] == [(0, 0, "FXT0201")]
    assert salvaged(b"junk" * 2 + MAGIC + 3 * event)[0] == MAGIC + 3 * event


def test_a_string_that_was_never_registered_is_registered_once() -> None:
    argument = Argument(name="<str#9>", type="string", value="v", refs={"name": 9})
    event = Event(**{**EVENT, "name": "<str#7>", "refs": {"name": 7}, "args": (argument,)})
    out, losses = salvaged(packed(event, event))
    assert out == packed(
        StringRecord(index=7, value="<str#7>"), StringRecord(index=9, value="<str#9>"), event, event
    )
    assert [(loss.offset, loss.nbytes, loss.what, loss.code) for loss in losses] == [
        (8, 0, "string", "FXT0104"),
        (8, 0, "string", "FXT0104"),
    ]
    assert losses[0].message == "name: string 7 was never registered; registered as <str#7>"
    assert losses[1].message.startswith("name of argument 0: string 9 ")


def test_a_registered_string_may_look_like_one_that_was_not() -> None:
    data = packed(
        StringRecord(index=7, value="<str#7>"),
        Event(**{**EVENT, "name": "<str#7>", "refs": {"name": 7}}),
    )
    assert salvaged(data) == (data, [])


def test_a_thread_that_was_never_registered_is_nobody() -> None:
    refs = {"thread": 3}
    event = Event(**{**EVENT, "thread": "<thr#3>", "refs": refs})
    shell = UserspaceObject(pointer=1, process="<thr#4>", name="o", refs={"process": 4})
    switch = LegacyContextSwitch(
        cpu=1, timestamp=2, outgoing_state=3, outgoing="<thr#5>", incoming=(8, 9),
        outgoing_priority=0, incoming_priority=0, refs={"outgoing": 5},
    )  # fmt: skip
    out, losses = salvaged(packed(event, shell, switch))
    first, second, third = [
        record for record in opened(out).records() if not isinstance(record, ThreadRecord)
    ][1:]
    assert (first.thread, second.process, second.thread) == ((0, 0), 0, None)  # type: ignore[attr-defined]
    assert (third.outgoing, third.incoming) == ((0, 0), (8, 9))  # type: ignore[attr-defined]
    assert len(out) == len(packed(event, shell, switch)) + 3 * 24
    assert [loss.code for loss in losses] == ["FXT0105"] * 3
    assert "thread 3 was never registered" in losses[0].message


def test_a_time_that_nanoseconds_cannot_hold_is_left_out() -> None:
    """Whatever the rate in force is; the records around it are copied."""
    event = Event(**EVENT).pack()
    late = Event(**{**EVENT, "timestamp": (1 << 64) - 1}).pack()
    slow = Initialization(ticks_per_second=1).pack()
    at = len(MAGIC + event)
    out, (loss,) = salvaged(MAGIC + event + late + event)
    assert out == MAGIC + event + event
    assert (loss.offset, loss.nbytes, loss.what, loss.code) == (at, len(late), "event", "FXT0208")
    soon = Event(**{**EVENT, "timestamp": 1 << 40}).pack()
    assert salvaged(MAGIC + soon + slow + soon + event)[0] == MAGIC + soon + slow + event


def resized(record: TraceRecord, words: int, **bits: int) -> bytes:
    """A record whose header claims another size; ``type`` and ``arguments`` if they are given."""
    data = bytearray(record.pack())
    header = int.from_bytes(data[:8], "little") & ~0xFFF0 | words << 4
    if "type" in bits:
        header = header & ~0xF | bits["type"]
    if "arguments" in bits:
        header = header & ~0xF00000 | bits["arguments"] << 20
    data[:8] = header.to_bytes(8, "little")
    return bytes(data)


HIDDEN = [Event(**{**EVENT, "timestamp": 10 + number}).pack() for number in range(40)]
WORDS = len(HIDDEN[0]) // 8
FIRST = Event(**EVENT)


@cases("big_endian", [False, True], ids=["little", "big"])
@cases("words", [WORDS * 4, WORDS * 7 - 3, WORDS * 30 + 1, 4095])
def test_records_that_a_damaged_size_hides_are_found(words: int, big_endian: bool) -> None:
    """The record itself is lost, as far as it can be told from the others."""
    data = MAGIC + resized(FIRST, words) + b"".join(HIDDEN) * 30
    whole = MAGIC + b"".join(HIDDEN) * 30
    if big_endian:
        data, whole = (np.frombuffer(each, "<u8").byteswap().tobytes() for each in (data, whole))
    out, losses = salvaged(data)
    assert out == whole
    assert [(loss.offset, loss.nbytes) for loss in losses] == [(8, 8 * WORDS)]


@cases("bits", [{"type": 13}, {"arguments": 9}], ids=str)
def test_records_that_damage_hides_are_found(bits: dict[str, int]) -> None:
    """Where its type or its contents make no sense, only what hides them is lost."""
    data = MAGIC + resized(FIRST, 200, **bits) + b"".join(HIDDEN)
    out, losses = salvaged(data)
    assert out == MAGIC + b"".join(HIDDEN)
    assert [(loss.offset, loss.nbytes) for loss in losses] == [(8, 8 * WORDS)]


def test_a_hidden_record_is_as_sound_as_others() -> None:
    """What nanoseconds cannot hold is left out, and what was never registered is registered."""
    late = Event(**{**EVENT, "timestamp": (1 << 64) - 1}).pack()
    lost = Event(**{**EVENT, "name": "<str#7>", "refs": {"name": 7}}).pack()
    data = MAGIC + resized(FIRST, WORDS * 9) + b"".join(HIDDEN[:4]) + late + lost + HIDDEN[4] * 9
    out, losses = salvaged(data)
    assert worst_of(out) == {}
    assert [loss.code for loss in losses] == ["FXT0004", "FXT0208", "FXT0104"]
    made = StringRecord(index=7, value="<str#7>").pack()
    assert out == MAGIC + b"".join(HIDDEN[:4]) + made + lost + HIDDEN[4] * 9


def test_what_a_sound_record_holds_is_not_taken_for_records() -> None:
    """A blob that holds a trace, and words behind a record that are none."""
    large = LargeBlob(category="c", name="n", payload=b"".join(HIDDEN))
    beyond = bytearray(resized(FIRST, WORDS + 64) + bytes(range(1, 65)) * 8)
    data = packed(large) + bytes(beyond) + b"".join(HIDDEN)
    assert salvaged(data) == (data, [])


def test_a_record_with_odd_bits_keeps_its_bytes() -> None:
    event = Event(**{**EVENT, "thread": "<thr#3>", "name": "<str#7>",
                     "refs": {"name": 7, "thread": 3}}).pack()  # fmt: skip
    odd = bytes([*event[:-8], *event[-8:-1], 1])  # the padding of the category is not zero
    out, losses = salvaged(MAGIC + odd)
    assert out.endswith(odd)
    assert {loss.code for loss in losses} == {"FXT0104", "FXT0105"}
    assert worst_of(out) == {}
    *_, found = opened(out).records()
    assert found.to_json()["name"] == "<str#7>"


def test_a_full_record_keeps_its_bytes() -> None:
    payload = Argument(name="a", type="blob", value=bytes(8 * 4089))
    event = Event(
        **{**EVENT, "thread": "<thr#3>", "name": "<str#7>", "category": "",
           "refs": {"name": 7, "thread": 3}, "args": (payload,)}
    )  # fmt: skip
    data = packed(event)
    assert len(data) // 8 - 1 >= 4093
    out, losses = salvaged(data)
    assert out.endswith(event.pack())
    assert worst_of(out) == {}
    assert len(losses) == 2


def test_what_provider_0_registers_later_counts_again() -> None:
    """The record that was put in for provider 1 must not hide it."""
    event = Event(**{**EVENT, "name": "<str#7>", "refs": {"name": 7}}).pack()
    data = b"".join(
        (
            MAGIC,
            ProviderInfo(id=1, name="one").pack(),
            event,
            ProviderSection(id=0).pack(),
            StringRecord(index=7, value="seven").pack(),
            ProviderSection(id=1).pack(),
            event,
            event,
        )
    )
    out, losses = salvaged(data)
    assert [record.name for record in opened(out).records() if isinstance(record, Event)] == [
        "<str#7>", "seven", "seven",
    ]  # fmt: skip
    assert len(losses) == 1


def test_what_another_provider_registered_does_not_help() -> None:
    data = packed(
        ProviderInfo(id=1, name="first"),
        StringRecord(index=1, value="one"),
        ProviderInfo(id=2, name="second"),
        Event(**{**EVENT, "name": "<str#1>", "refs": {"name": 1}}),
        ProviderSection(id=1),
        Event(**{**EVENT, "name": "one", "refs": {"name": 1}}),
    )
    out, losses = salvaged(data)
    names = [record.name for record in opened(out).records() if isinstance(record, Event)]
    assert names == ["<str#1>", "one"]
    assert [loss.code for loss in losses] == ["FXT0104"]


def test_it_is_the_writers_salvage() -> None:
    writer = Host(environ={"FXF_PLUGINS": "trace"}).writer("trace")
    assert writer.salvage is not None
    capture = opened(MAGIC + b"odd")
    sink = Sink.memory()
    assert [loss.nbytes for loss in writer.salvage(capture, sink, {})] == [3]
    assert sink.getvalue() == MAGIC
    assert isinstance(next(iter(opened(sink.getvalue()).records())), TraceInfo)


def test_the_command(tmp_path: Path) -> None:
    host = Host(environ={"FXF_PLUGINS": "trace"})
    event = Event(**EVENT).pack()
    path, out = tmp_path / "in.fxt", tmp_path / "out.fxt"
    for data, expected, status in (
        (MAGIC + event, MAGIC + event, 0),
        (event + bytes(8) + event, MAGIC + 2 * event, 0),  # nothing is lost
        (MAGIC + event + event[:-8], MAGIC + event, 3),
        (MAGIC + Event(**{**EVENT, "name": "<str#7>", "refs": {"name": 7}}).pack(), None, 3),
    ):
        path.write_bytes(data)
        result = run_cli("salvage", "--force", path, out, host=host)
        assert result.exit_code == status
        assert expected in {None, out.read_bytes()}
        assert run_cli("salvage", "--force", out, path, host=host).exit_code == 0
        assert run_cli("diff", out, path, host=host).exit_code == 0
        assert run_cli("verify", out, host=host).exit_code == 0
