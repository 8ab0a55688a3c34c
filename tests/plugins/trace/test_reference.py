"""The declared records are read as the decoder read them that was written by hand, now frozen."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import hypothesis
import orjson
from hypothesis import strategies as st
from tests.reference.trace import decoder as frozen
from tests.reference.trace.explain import explain as frozen_explain

from fx_trace.read import decoder as declared
from fx_trace.read.explain import explain
from fx_trace.rules import RULES
from fxframework.errors import WriteRefusedError
from fxframework.io.source import Source
from fxframework.model.diagnostics import Diagnostics

from ...cases import cases
from .streams import any_bytes, damaged, fxt_records, fxt_streams, render

CONFORMANCE = Path(__file__).parents[2] / "conformance" / "trace"
VECTORS = json.loads((CONFORMANCE / "records.json").read_text("utf-8"))
SAMPLE = b"".join(bytes.fromhex(vector["hex"]) for vector in VECTORS)
FILES = sorted((CONFORMANCE / "files").glob("*.fxt"))


def packed(record: Any, big_endian: bool) -> Any:
    """The bytes of a record's fields, or the code of what refuses them."""
    try:
        return record.pack(big_endian=big_endian)
    except WriteRefusedError as problem:
        return problem.code
    except AttributeError:
        return None  # padding and damage


def read(module: Any, data: bytes, big_endian: bool) -> tuple[list[Any], list[Any]]:
    """Lines of record JSON with offsets of arguments and packed bytes; and findings, in order."""
    diagnostics = Diagnostics(RULES)
    every = []
    for record in module.RecordDecoder(big_endian=big_endian, diagnostics=diagnostics).records(
        data
    ):
        if record.record in ("padding", "damaged"):
            every.append(orjson.dumps(record.to_json()))
        else:
            every.append(
                (orjson.dumps(record.to_json()), packed(record, big_endian), record.opaque)
            )
    # Of an undefined kind the frozen decoder says the number, ours the field, too.
    said = {each: each.message.rpartition(" ")[2] for each in diagnostics if each.code == "FXT0111"}
    found = [
        (each.code, each.offset, each.record, said.get(each, each.message)) for each in diagnostics
    ]
    return every, found


def same(data: bytes, big_endian: bool = False) -> None:
    """Hold both against each other: objects, findings, and what is written back."""
    got, wanted = read(declared, data, big_endian), read(frozen, data, big_endian)
    for one, other in zip(got[0], wanted[0], strict=True):
        assert one == other
    assert got[1] == wanted[1]


def same_views(data: bytes, at: int) -> None:
    """Hold what both explain of a byte against each other."""
    source = Source.open(data)
    assert explain(source, at) == frozen_explain(source, at)


@hypothesis.given(fxt_streams() | damaged(fxt_streams()) | any_bytes(), st.booleans())
def test_any_bytes(data: bytes, big_endian: bool) -> None:
    same(data, big_endian)


@hypothesis.given(fxt_records())
def test_big_endian_streams(stream: list[Any]) -> None:
    same(render(stream, big_endian=True), big_endian=True)


@cases("path", FILES, ids=lambda path: path.stem)
def test_files(path: Path) -> None:
    same(path.read_bytes())


def test_vectors_and_flips_of_their_bits() -> None:
    same(SAMPLE)
    dice = random.Random(5)
    for _ in range(400):
        data = bytearray(SAMPLE)
        for _ in range(dice.randrange(1, 4)):
            data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
        same(bytes(data))


def test_truncations() -> None:
    for length in range(0, len(SAMPLE), 8):
        same(SAMPLE[:length])


@hypothesis.given(fxt_streams() | damaged(fxt_streams()) | any_bytes(), st.data())
def test_explanations(data: bytes, draw: st.DataObject) -> None:
    if data:
        same_views(data, draw.draw(st.integers(0, len(data) - 1)))


def test_explanations_of_flipped_vectors() -> None:
    dice = random.Random(6)
    for at in range(0, len(SAMPLE), 8):
        same_views(SAMPLE, at)
    for _ in range(200):
        data = bytearray(SAMPLE)
        for _ in range(dice.randrange(1, 40)):
            data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
        for _ in range(20):
            same_views(bytes(data), dice.randrange(len(data)))
