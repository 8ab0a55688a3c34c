"""Records of fixed sizes are read many at a time, and are then as objects are."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.wire.support import all_of, check, opened

from fxframework import wire
from fxframework.io.source import Source
from fxframework.model.capture import OpenRequest
from fxframework.wire.encoder import Encoder
from fxframework.wire.format import Format
from fxframework.wire.objects import ObjectReader, has_columns
from fxframework.wire.walk import Walk

from ..cases import cases

names = wire.table("name")
steps = wire.register(1, name="steps")


class Cell(wire.Record, size=24):
    """What every record begins with."""

    _kind = wire.kind(wire.bits(0, 7))


class Name(Cell, kind=1):
    """A text that others refer to."""

    number: int = wire.bits(8, 23)
    text: str = wire.text(16, pad=b"\0", defines=names[number])


class Beat(Cell, kind=2):
    """A moment."""

    name: str = wire.bits(8, 23, refers=names)
    level: int = wire.bits(24, 31, signed=True)
    time: int = wire.i64(unit="ns")
    force: int = wire.u64()


class Tone(Cell, kind=3):
    """A moment with smaller numbers, and bytes that are zero behind them."""

    color: str = wire.bits(8, 9, values={0: "red", 1: "green", 2: "blue"})
    loud: bool = wire.flag(12)
    time: int = wire.u32(unit="ns")
    small: int = wire.i16()
    _fixed = wire.u16(equals=0x1234)
    real: float = wire.f32()


class Word(Cell, kind=4):
    """A moment with a text."""

    share: int = wire.bits(8, 15, values={1: "one", 2: "two"}, closed=True)
    time: int = wire.i32(unit="ns")
    text: str = wire.text(12, pad=b" ")


class Step(Cell, kind=5):
    """What later records depend on."""

    by: int = wire.bits(8, 15, sets=steps)
    time: int = wire.u64()
    more: int = wire.u64()


CELLS = Format(
    "cells",
    "Cells: records of one size",
    Cell,
    codes="CEL",
    magic=b"CELLS\0\1\0",
    tables=[
        wire.rows("instants", Beat, ts="time", name="name", cells_force="force", cells_n="level"),
        wire.rows("instants", Tone, ts="time", cells_small="small", cells_real="real"),
        wire.rows("cells_words", Word, ts="time", cells_text="text", cells_step=steps + 2),
    ],
)


class Frame(wire.Record, padding=True):
    """Records that say how long they are, in either byte order."""

    _kind = wire.kind(wire.u16())
    _units = wire.size(wire.u16(), unit=4)


class Section(Frame, kind=0x0A0A):
    """A stretch of one byte order."""

    order: str = wire.byte_order(0x01020304)


class Sample(Frame, kind=1):
    """A record of one size."""

    time: int = wire.i64(unit="ns")
    odd: int = wire.integer(3)
    flags: int = wire.u8(refers=names)


class Label(Frame, kind=2):
    """A text that others refer to."""

    number: int = wire.u8()
    text: str = wire.text(pad=b"\0", align=4, defines=names[number])


FRAMES = Format(
    "frames",
    "Frames: records with sizes",
    Frame,
    codes="FRA",
    tables=[wire.rows("instants", Sample, ts="time", name="flags", frames_odd="odd")],
)


def cells(seed: int, count: int) -> bytes:
    """A file in which kinds alternate, or come in long runs."""
    rng = random.Random(seed)
    encoder = Encoder(CELLS)
    known = ["one", "two", "é"]
    made: list[dict[str, Any]] = [
        {"record": "name", "number": number, "text": text} for number, text in enumerate(known)
    ]
    kinds = ["beat"]
    for number in range(count):
        if rng.random() < 0.03:
            kinds = rng.choices(["beat", "tone", "word", "beat", "step"], k=rng.randint(1, 3))
        made.append({
            "name": {"number": 1, "text": f"text {number}"},
            "beat": {"name": rng.choice(known), "level": rng.randint(-128, 127),
                     "time": number - 9, "force": rng.getrandbits(64)},
            "tone": {"color": rng.choice(["red", "blue"]), "loud": rng.random() < 0.5,
                     "time": number, "small": rng.randint(-32768, 32767), "real": number / 2},
            "word": {"share": rng.choice(["one", "two"]), "time": -number,
                     "text": "x" * (number % 13)},
            "step": {"by": number % 200, "time": 0, "more": number},
        }[kind := rng.choice(kinds)] | {"record": kind})  # fmt: skip
    return CELLS.magic + b"".join(encoder.encode(each) for each in made)


def frames(seed: int, count: int) -> bytes:
    """A file of both byte orders."""
    rng = random.Random(seed)
    encoder = Encoder(FRAMES)
    parts: list[bytes] = []
    for order in ("little", "big"):
        made: list[dict[str, Any]] = [{"record": "section", "order": order}]
        made += [{"record": "label", "number": n, "text": f"label {n}"} for n in range(3)]
        for number in range(count // 2):
            made.append({"record": "sample", "time": number, "odd": rng.getrandbits(24),
                         "flags": f"label {rng.randrange(3)}"})  # fmt: skip
        parts += [encoder.encode(each) for each in made]
    return b"".join(parts)


FILES = {"cells": (CELLS, cells), "frames": (FRAMES, frames)}


@cases("name", FILES)
def test_all_records_are_read_many_at_a_time(name: str) -> None:
    format, make = FILES[name]
    data = make(1, 700)
    records, capture = check(format, data)
    assert not list(capture.diagnostics)
    assert len(records) > 700
    assert not capture.first_pass().handed


def test_objects_are_made_from_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    assert has_columns(CELLS)
    assert not has_columns(FRAMES)
    data = bytearray(cells(1, 700))
    data[len(CELLS.magic) + 24 * 50 + 7] = 1  # a reserved bit
    walked = list(Walk(CELLS, Source.open(bytes(data))))
    by_itself = []
    read_next = Walk.next
    monkeypatch.setattr(Walk, "next", lambda self: by_itself.append(self.at) or read_next(self))
    reader = ObjectReader(CELLS, Source.open(bytes(data)), OpenRequest().limits)
    found = list(reader.found_records())
    assert [(all_of(record), notes) for record, notes in found] == [
        (all_of(record), notes) for record, notes in walked
    ]
    assert by_itself == [len(CELLS.magic) + 24 * 50]


@given(st.data())
@pytest.mark.parametrize("name", FILES)
def test_changed_bytes(name: str, data: st.DataObject) -> None:
    format, make = FILES[name]
    whole = bytearray(make(data.draw(st.integers(0, 9)), 300))
    for place in data.draw(st.lists(st.integers(8, len(whole) - 1), max_size=9)):
        whole[place] ^= data.draw(st.sampled_from([1, 2, 4, 16, 128, 255]))
    check(format, bytes(whole))


@cases("name", FILES)
def test_ends(name: str) -> None:
    format, make = FILES[name]
    data = make(2, 60)
    for end in range(len(data) - 26, len(data)):
        check(format, data[:end])


@cases("every", [1, 2, 7, 40, 300])
def test_findings_are_as_many_as_they_are(every: int) -> None:
    data = bytearray(cells(3, 600))
    for number, at in enumerate(range(len(CELLS.magic), len(data), 24)):
        if number % every == 0:
            data[at + 7] = 1  # a reserved bit
    check(CELLS, bytes(data))


def test_rows_follow_the_file_in_batches_of_any_size() -> None:
    data = cells(4, 500)
    data += data[len(CELLS.magic) :] * 80  # more rows than a batch has room for
    whole = opened(CELLS, data)
    for name in ("instants", "cells_words"):
        offsets = whole.table(name).array("offset")
        assert (offsets[1:] > offsets[:-1]).all()
        parts = [batch.array("offset").tolist() for batch in opened(CELLS, data).batches(name, 999)]
        assert [offset for part in parts for offset in part] == offsets.tolist()
    assert opened(CELLS, data).summary().records == len(list(whole.records()))
