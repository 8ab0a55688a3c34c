"""The declared records are read as the decoder read them that was written by hand, now frozen."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import hypothesis
import orjson
import pytest
from hypothesis import strategies as st
from tests.reference.log import decoder as frozen
from tests.reference.log.entries import Meaning

from fx_log.rules import RULES
from fx_log.sample import sample
from fx_log.write.rewriter import RecordEncoder
from fxframework.errors import WriteRefusedError
from fxframework.model.diagnostics import Diagnostics, Found

from ...properties import share
from .logs import entry, records_of, ring, stream
from .streams import damaged, log_files, packet_files, packets, ring_images

CONFORMANCE = Path(__file__).parents[2] / "conformance" / "log"
FILES = {
    "log": log_files(),
    "log-ring": ring_images(),
    "log-legacy": packets(),
    "log-legacy-stream": packet_files(),
}


def said(found: Iterable[Found]) -> Counter[tuple[Any, ...]]:
    return Counter((each.rule.code, each.offset, each.rule.message(each.value)) for each in found)


def line_of(record: Any, findings: Counter[tuple[Any, ...]]) -> Any:
    """Record JSON, findings, packed bytes and places of arguments of a record."""
    try:
        packed = record.pack()
    except WriteRefusedError as problem:
        packed = problem.code
    args = [argument.offset for argument in getattr(record, "args", ())]
    return orjson.dumps(record.to_json()), findings, packed, args


def read(form: str, data: bytes, options: dict[str, Any]) -> list[Any]:
    """What the decoder says of a file, record by record."""
    findings: list[tuple[int | None, Found]] = []

    class Kept(Diagnostics):
        def report(self, found: Iterable[Found], record: int | None = None) -> None:
            findings.extend((record, each) for each in found)

    every = []
    for index, record in enumerate(records_of(form, data, options, Kept(RULES))):
        assert all(number == index for number, _ in findings)
        every.append(line_of(record, said(found for _, found in findings)))
        findings.clear()
    assert not findings
    return every


def read_frozen(form: str, data: bytes, options: dict[str, Any]) -> list[Any]:
    """What the frozen decoder says, and the frozen meaning."""
    found: list[Found] = []
    reader = frozen.RecordDecoder(form, options=options)
    meaning = Meaning(form, options)
    every = []
    for record in getattr(frozen, WALKS[form])(memoryview(data), found, reader).records():
        meaning.entry(record, lambda *finding: found.append(Found(*finding)))
        every.append(line_of(record, said(found)))
        found.clear()
    return every


WALKS = {"log": "LogWalk", "log-ring": "RingWalk", "log-legacy": "PacketWalk",
         "log-legacy-stream": "StreamWalk"}  # fmt: skip


def same(form: str, data: bytes, **options: Any) -> None:
    records = read(form, data, options)
    for got, wanted in zip(records, read_frozen(form, data, options), strict=True):
        assert got == wanted
    encoder = RecordEncoder(form)
    written = b"".join(encoder.encode(orjson.loads(line)) for line, *_ in records)
    assert written + encoder.close() == data


@pytest.mark.parametrize("form", FILES)
@hypothesis.given(data=st.data())
def test_sound_and_damaged_files(form: str, data: st.DataObject) -> None:
    same(form, data.draw(FILES[form] | damaged(FILES[form])))


@hypothesis.given(data=log_files(suffixed=True) | damaged(log_files(suffixed=True)))
def test_suffixes(data: bytes) -> None:
    same("log", data, suffix=True)


@pytest.mark.parametrize("form", FILES)
@hypothesis.given(data=st.data())
def test_flipped_bytes(form: str, data: st.DataObject) -> None:
    changed = bytearray(data.draw(FILES[form]))
    if changed:
        for place in data.draw(st.lists(st.integers(0, len(changed) - 1), max_size=8)):
            changed[place] = data.draw(st.integers(0, 255))
    same(form, bytes(changed))


@pytest.mark.parametrize("form", ["log", "log-legacy", "log-legacy-stream"])
@share(1 / 5)
@hypothesis.given(data=st.data())
def test_every_truncation(form: str, data: st.DataObject) -> None:
    whole = data.draw(FILES[form])
    for length in range(min(len(whole), 300)):
        same(form, whole[:length])


def test_a_sample() -> None:
    data = sample(50_000)
    same("log", data)
    entries = [entry(data[:152]), entry(b"\x09" * 30)]
    same("log-ring", ring(entries, tail=65_000))


@pytest.mark.parametrize("name", ["records", "streams", "legacy"])
def test_vectors(name: str) -> None:
    vectors = json.loads((CONFORMANCE / f"{name}.json").read_text("utf-8"))
    files = [bytes.fromhex(vector["hex"]) for vector in vectors if "hex" in vector]
    for data in files:
        same("log-legacy" if name == "legacy" else "log", data)
    same("log", b"".join(files))
    same("log-legacy-stream", stream(files))
