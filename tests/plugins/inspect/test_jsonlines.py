"""Record JSON in bulk: the lines that columns make are those of the records."""

from __future__ import annotations

import itertools
import json
import math
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis
import orjson
import pytest
from hypothesis import strategies as st

from fx_inspect import format as wire
from fx_inspect.read import lines
from fx_inspect.read.capture import InspectCapture
from fx_inspect.read.decoder import Objects
from fx_inspect.sample import sample
from fxframework.io.limits import Limits
from fxframework.io.source import Source
from fxframework.model.capture import OpenRequest

from ...cases import cases
from .streams import damaged, vmos

CONFORMANCE = Path(__file__).parents[2] / "conformance" / "inspect"
HEADER = {
    "new": struct.pack("<4B4sQ", 0, 2, 2, 0, b"INSP", 0),
    "v0": struct.pack("<4B4sQ", 0x20, 0, 0, 0, b"INSP", 0),
}


def agree(data: bytes, **limits: int) -> int:
    """Compare the lines and the findings of both ways; gives the number of lines."""

    def opened() -> InspectCapture:
        return InspectCapture(Source.open(data), OpenRequest(limits=Limits(**limits)))

    by_records = opened()
    wanted = [orjson.dumps(record.to_json()) + b"\n" for record in by_records.records()]
    in_bulk = opened()
    pieces = list(in_bulk.records_json())
    assert all(piece.endswith(b"\n") for piece in pieces)
    assert b"".join(pieces) == b"".join(wanted)
    found = [
        [(one.code, one.message, one.offset, one.record) for one in capture.diagnostics]
        for capture in (in_bulk, by_records)
    ]
    assert found[0] == found[1]
    assert in_bulk.diagnostics.counts == by_records.diagnostics.counts
    return len(wanted)


def blocks(name: str, fill: Callable[[int], bytes]) -> bytes:
    """A block of each type and order, with what ``fill`` makes of the room behind its first word.

    Half of them have no names and parents.
    """
    made = [HEADER[name]]
    low = 4 if name == "v0" else 8
    for type, order, places in itertools.product(range(16), (0, 1, 2, 8), (0, 0x1234567)):
        head = order | type << low | places << 2 * low
        made.append(struct.pack("<Q", head) + fill((wire.UNIT << order) - 8))
    return b"".join(made)


def array(entry: int, format: int, count: int) -> bytes:
    """The second word of an array, and slots of every kind."""
    slots = struct.pack("<dqQd", 1.5, -1, 1 << 63, -0.0) * 64
    return bytes([entry | format << 4, count]) + bytes(6) + slots


DOUBLES = (0.1, -0.0, 1e16, 1e-7, 5e-324, 1e300, 1 / 3, -2.5, math.nan, math.inf)
BEGINNINGS = [
    b"",
    b"\x01",
    b"\xff" * 2048,
    b'caf\xc3\xa9 "\\\n\x7f ' * 200,
    b"\xed\xa0\x80\xc3",
    *(struct.pack("<d", value) for value in DOUBLES),
    *(array(*given) for given in itertools.product((0, 4, 5, 6, 13, 14, 15), (0, 1), (0, 2, 255))),
]
FILLINGS: list[Callable[[int], bytes]] = [
    lambda room: bytes(room - 1) + b"\x01",
    *((lambda room, text=text: text[:room].ljust(room, b"\0")) for text in BEGINNINGS),
]


@cases("name", HEADER)
def test_every_type_and_order(name: str) -> None:
    for fill in FILLINGS:
        agree(blocks(name, fill))


def test_doubles_have_the_digits_of_orjson() -> None:
    chance = random.Random(3)
    made = [
        chance.randrange(10 ** chance.randrange(1, 18)) / 10.0 ** chance.randrange(-3, 18)
        for _ in range(300)
    ]
    made += [math.nextafter(value, math.inf) for value in made]
    made += [-value for value in made] + [chance.uniform(0, 1) for _ in range(100)]
    made += [0.0, 1e-4, math.nextafter(1e-4, 0), 1e15, math.nextafter(1e15, 0), 1e16, 2.0**53]
    head = struct.pack("<Q", wire.BlockType.DOUBLE_VALUE << 8)
    agree(HEADER["new"] + b"".join(head + struct.pack("<d", value) for value in made))


def test_the_vectors_and_the_sample() -> None:
    for name in ("files", "legacy_v0"):
        for vector in json.loads((CONFORMANCE / f"{name}.json").read_text("utf-8")):
            data = bytes.fromhex(vector["hex"])
            agree(data.ljust(vector.get("zero_pad_to", 0), b"\0"))
    assert agree(sample(40_000) + b"\x09") > 300


@hypothesis.given(vmos() | damaged(vmos()) | st.binary(max_size=300))
def test_any_file(data: bytes) -> None:
    agree(data)


@hypothesis.given(damaged(vmos()), st.integers(0, 80))
def test_within_limits(data: bytes, limit: int) -> None:
    agree(data, max_record=limit, max_findings=1 + limit % 3)


def test_blocks_are_not_decoded_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "BLOCK_BYTES", 2000)
    whole = InspectCapture(Source.open(sample(50_000)), OpenRequest())
    decoded: list[int] = []
    single = Objects.record

    def record(objects: Objects, row: int) -> Any:
        decoded.append(objects.run.first + row)
        return single(objects, row)

    monkeypatch.setattr(Objects, "record", record)
    pieces = list(whole.records_json())
    assert b"".join(pieces).count(b"\n") > 400
    assert len(pieces) > 20
    assert max(map(len, pieces)) < 32_000
    assert decoded == [0]
