"""What is done with whole captures of declared formats as bytes: salvage and merging."""

from __future__ import annotations

import random
import struct
from contextlib import suppress

import pytest

from fx_trace.sample import sample
from fxframework import hookimpl, wire
from fxframework.conversion import plan
from fxframework.errors import UsageError, WriteRefusedError
from fxframework.host import Host
from fxframework.io.sink import Sink
from fxframework.io.source import Source
from fxframework.kit.salvage import Loss, salvage_records
from fxframework.model.capture import OpenRequest
from fxframework.model.selection import Selection
from fxframework.wire.capture import DeclaredCapture, open_capture
from fxframework.wire.encoder import open_writer
from fxframework.wire.format import Format
from fxframework.wire.verbs.copies import salvage

from ..cases import cases
from .test_one_reading import generated, stream


def opened(format: Format, data: bytes) -> DeclaredCapture:
    return open_capture(format, Source.open(data), OpenRequest())


def hurt(data: bytes, rng: random.Random, times: int) -> bytes:
    """Data in which some bytes are others, or missing."""
    out = bytearray(data)
    for _ in range(times if out else 0):
        at = rng.randrange(len(out))
        if rng.random() < 0.5:
            out[at] = rng.randrange(256)
        else:
            del out[at : at + rng.choice([1, 2, 8])]
        if not out:
            break
    return bytes(out)


def salvaged(format: Format, data: bytes) -> tuple[bytes, list[Loss]]:
    sink = Sink.memory()
    losses = list(salvage(format, opened(format, data), sink))
    return sink.getvalue(), losses


def salvaged_one_by_one(format: Format, data: bytes) -> tuple[bytes, list[Loss]]:
    sink = Sink.memory()
    writer = open_writer(format, sink)
    losses = list(salvage_records(opened(format, data), writer.write))
    writer.close()
    return sink.getvalue(), losses


@cases("seed", range(10))
def test_salvage_by_bytes_is_salvage_record_by_record(seed: int) -> None:
    format = generated(seed)
    rng = random.Random(seed)
    data = stream(format, rng)
    for times in range(4):
        some = hurt(data, rng, times)
        with suppress(WriteRefusedError):  # it writes no unknown kinds from 2^63 on
            expected, losses = salvaged_one_by_one(format, some)
            if any(loss.code.endswith("0101") and loss.offset == 0 for loss in losses):
                expected = format.opening + expected  # which the encoder does not write by itself
            assert salvaged(format, some) == (expected, losses)


def test_a_damaged_header_is_replaced_if_nothing_has_to_be_invented() -> None:
    class Beat(wire.Record, size=8):
        value: int = wire.u64()

    class Start(wire.Record, size=8):
        _magic = wire.u32(equals=0x31323334)
        version: int = wire.u32(default=1)

    class Clocked(wire.Record, size=8):
        _magic = wire.u32(equals=0x31323334)
        frequency: int = wire.u32()

    beats = bytes(range(16))
    with_magic = wire.Format("a", "A", Beat, codes="A", magic=b"12345678")
    assert salvaged(with_magic, b"1234x678" + beats)[0] == b"12345678" + beats
    with_defaults = wire.Format("b", "B", Beat, codes="B", header=Start)
    assert salvaged(with_defaults, b"x321\1\0\0\0" + beats)[0] == b"4321\1\0\0\0" + beats
    with_clock = wire.Format("c", "C", Beat, codes="C", header=Clocked)
    assert salvaged(with_clock, b"x321\1\0\0\0" + beats)[0] == beats


def test_a_replaced_header_is_in_the_byte_order_of_the_format() -> None:
    class Start(wire.Record, size=8):
        _magic = wire.u32(equals=0x31323334)
        version: int = wire.u32(default=1)

    class Beat(wire.Record, size=8):
        value: int = wire.u64()

    form = wire.Format("b", "B", Beat, codes="B", header=Start, order="big")
    beats = bytes(range(16))
    assert salvaged(form, b"x234\0\0\0\2" + beats)[0] == b"1234\0\0\0\1" + beats


def test_behind_a_replaced_header_records_are_read_as_it_says() -> None:
    width = wire.register(0, name="width")

    class Start(wire.Record, size=8):
        _magic = wire.u32(equals=0x31323334)
        wide: int = wire.u32(sets=width, default=1)

    class Beat(wire.Record):
        _kind = wire.kind(wire.u8())
        _size = wire.size(wire.u8())

    class Value(Beat, kind=1):
        value: int = wire.u8()
        more: int = wire.u8(when=width >= 1)

    form = wire.Format("w", "W", Beat, codes="W", header=Start)
    short_beat, long_beat = b"\1\3\7", b"\1\4\7\7"
    output, losses = salvaged(form, b"x321\1\0\0\0" + long_beat + short_beat + long_beat)
    assert output == b"4321\1\0\0\0" + long_beat * 2
    assert [(loss.offset, loss.nbytes) for loss in losses] == [(0, 8), (12, 3)]
    assert salvaged(form, output) == (output, [])


# --- Merging --------------------------------------------------------------------------------------


class Header(wire.Record, size=16):
    _magic = wire.u64(equals=int.from_bytes(b"TIMED\0\0\0", "little"))
    version: int = wire.u64()


class Head(wire.Record, size=16):
    _kind = wire.kind(wire.bits(0, 7))


class Note(Head, kind=1):
    """Without a time: it is about the event before it."""

    number: int = wire.bits(8, 63)


class Event(Head, kind=2):
    number: int = wire.bits(8, 63)
    at: int = wire.i64(unit="ns")


TIMED = wire.Format(
    "timed",
    "Timed: for tests",
    Head,
    codes="TIMED",
    header=Header,
    tables=[wire.rows("instants", Event, ts="at", name=wire.always("e"))],
)


def event(at: int) -> bytes:
    return struct.pack("<Bxxxxxxxq", 2, at)


def note(number: int) -> bytes:
    return struct.pack("<BB", 1, number).ljust(16, b"\0")


def file_of(*records: bytes, version: int = 1) -> bytes:
    return b"TIMED\0\0\0" + struct.pack("<Q", version) + b"".join(records)


def merged(*files: bytes, start: int | None = None) -> tuple[bytes, dict[str, int]]:
    sink = Sink.memory()
    assert TIMED.writer.merge is not None
    session = TIMED.writer.merge(sink, {})
    for data in files:
        capture = opened(TIMED, data)
        session.write(capture if start is None else capture.select(Selection(start_ns=start)))
    dropped = dict(session.close())
    return sink.getvalue(), dropped


def test_records_are_merged_in_the_order_of_time_and_those_without_follow() -> None:
    first = file_of(note(0), event(1), note(1), event(5), note(5), event(4))
    second = file_of(event(0), event(1), note(9), event(9))
    out, dropped = merged(first, second)
    assert dropped == {}
    assert out == file_of(
        note(0), event(0), event(1), note(1), event(1), note(9),
        event(4), event(5), note(5), event(9),
    )  # fmt: skip
    assert merged(first) == (first, {})
    assert merged() == (b"", {})


def test_damage_is_left_out_of_what_is_merged_and_counted() -> None:
    out, dropped = merged(file_of(event(1), event(3), b"\xff" * 3), file_of(event(2)))
    assert (out, dropped) == (file_of(event(1), event(2), event(3)), {"damaged stretches": 1})


def test_parts_of_captures_are_merged() -> None:
    out, _ = merged(file_of(event(1), event(5)), file_of(event(2), event(3)), start=3)
    assert out == file_of(event(3), event(5))


def test_headers_that_differ_are_refused() -> None:
    with pytest.raises(UsageError, match="different headers"):
        merged(file_of(event(1)), file_of(event(1), version=2))


def test_formats_whose_records_depend_on_others_do_not_merge() -> None:
    clock = wire.register(0)

    class Tick(wire.Record, size=4):
        delta: int = wire.u32(adds=clock)

    tables = [wire.rows("instants", Tick, ts=clock, name=wire.always("e"))]
    ticks = wire.Format("ticks", "Ticks", Tick, codes="TICK", tables=tables)
    assert ticks.writer.merge is None
    lazy = wire.writer("ticks", ticks)
    assert lazy.merge is not None
    with pytest.raises(UsageError, match="depend on those before them"):
        lazy.merge(Sink.memory(), {})


class Plugin:
    @hookimpl
    def fx_readers(self):  # type: ignore[no-untyped-def]
        return [TIMED.reader]

    @hookimpl
    def fx_writers(self):  # type: ignore[no-untyped-def]
        return [TIMED.writer]


def test_several_files_are_converted_into_one_but_not_those_of_others() -> None:
    host = Host()
    host.register(Plugin(), name="timed")
    captures = [host.open(file_of(event(1), event(5))), host.open(file_of(event(3)))]
    sink = Sink.memory()
    plan(host, captures, "c.timed").run(sink)
    assert sink.getvalue() == file_of(event(1), event(3), event(5))
    trace = host.open(sample(1000), format="trace")
    assert "instants" in trace.tables
    with pytest.raises(UsageError, match="trace captures cannot be written as timed"):
        plan(host, [trace], "d.timed")
