"""`.jsonl` back to bytes by shapes of lines: what one record after another gives, and faster."""

from __future__ import annotations

import importlib
import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import hypothesis
import numpy as np
import orjson
import pytest
from hypothesis import strategies as st

from fxframework.errors import WriteRefusedError
from fxframework.exporters import records as records_module
from fxframework.exporters.records import open_records
from fxframework.host import default_host
from fxframework.io.source import Source
from fxframework.kernels.line_shapes import LineShapes
from fxframework.kit import line_packing
from fxframework.kit.line_packing import LinePacker
from fxframework.model.capture import OpenRequest

from ..cases import cases
from ..samples import SAMPLE_BYTES, samples

BYTES = 60_000
FORMATS = ["inspect", "log", "trace", "trace-buffer", "xray"]
Made = tuple[bytes, list[Any]]


def lines_of(format: str, data: bytes) -> bytes:
    """The records file of a capture."""
    reader = default_host().reader(format)
    with reader.open(Source.open(data), OpenRequest()) as capture:
        return records_module._header(capture) + b"".join(capture.records_json())


def opened(lines: bytes) -> Made:
    """The bytes of a records file, and what was found; none, and why it was refused."""
    try:
        with open_records(Source.open(lines), OpenRequest()) as capture:
            capture.scan()
            found = [(d.code, d.offset, d.message) for d in capture.diagnostics]
            return bytes(capture.source.data), found
    except WriteRefusedError as error:  # edited records of an image may have no room
        return b"", [error.message]


def one_by_one(lines: bytes) -> Made:
    """The same, one record after another."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records_module, "BULK", 1 << 40)
        return opened(lines)


@pytest.fixture
def bulk(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], Made]:
    """The same in bulk, from many chunks; nothing may be made one after another."""

    def refused(*_: Any) -> None:
        raise AssertionError("one by one")

    def in_bulk(lines: bytes) -> Made:
        with monkeypatch.context() as patch:
            patch.setattr(
                records_module, "BULK", min(records_module.BULK, 1 << 18, len(lines) // 8)
            )
            patch.setattr(records_module, "COMPILED", True)
            patch.setattr(records_module._Rebuilding, "one_by_one", refused)
            patch.setattr(line_packing, "ENOUGH", 16)
            return opened(lines)

    return in_bulk


def shapes() -> Iterator[Any]:
    """Makers of captures, by format and name."""
    for family in ("inspect", "log", "trace", "xray"):
        module = importlib.import_module(f"tests.bench.shapes.{family}")
        for name, make in module.shapes().items():
            if name != "all zero":  # one line
                yield pytest.param(family, make, id=f"{family} {name}")
    for format in FORMATS:
        yield pytest.param(format, default_host().reader(format).sample, id=format)


@cases(("format", "make"), list(shapes()))
def test_every_shape_of_capture_comes_back(
    bulk: Callable[[bytes], Made], format: str, make: Callable[[int], bytes]
) -> None:
    data = make(BYTES)
    lines = lines_of(format, data)
    found = bulk(lines)
    assert found[0] == data
    assert found == one_by_one(lines)


@pytest.mark.parametrize("name", sorted(samples()))
def test_every_format_comes_back(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    format, data = samples()[name]
    host = default_host()
    format = format or host.detect(Source.open(data)).format
    if format not in host.writers or len(data) > 8 * SAMPLE_BYTES:
        pytest.skip(f"{format} is not written, or the sample is long")
    lines = lines_of(format, data)
    expected = one_by_one(lines)
    monkeypatch.setattr(records_module, "BULK", 1 << 10)
    monkeypatch.setattr(records_module, "FIRST", 4)
    monkeypatch.setattr(line_packing, "ENOUGH", 4)
    monkeypatch.setattr(line_packing, "FEW", 2)
    assert opened(lines) == expected


@pytest.mark.parametrize("format", FORMATS)
def test_plain_records_are_not_encoded_one_by_one(
    bulk: Callable[[bytes], Made], format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    parse = records_module._parse
    parsed = 0

    def counted(line: bytes) -> Any:
        nonlocal parsed
        parsed += 1
        return parse(line)

    monkeypatch.setattr(records_module, "_parse", counted)
    monkeypatch.setattr(records_module, "BULK", 1 << 18)
    sample = default_host().reader(format).sample
    assert sample is not None
    counts = []
    for nbytes in (500_000, 1_500_000):
        lines = lines_of(format, sample(nbytes))
        parsed = 0
        bulk(lines)
        counts.append((lines.count(b"\n"), parsed))
    (lines_few, few), (lines_many, many) = counts
    assert many - few < (lines_many - lines_few) / 5


# --- Edited records ------------------------------------------------------------------------------


def edited(lines: list[bytes], rng: random.Random) -> list[bytes]:
    """The lines with some changed, as people and programs change them."""
    out = []
    for line in lines:
        chance = rng.random()
        if chance > 0.05 or not out:
            out.append(line)
            continue
        edit = rng.randrange(9)
        record = json.loads(line)
        if edit == 0:
            continue  # gone
        if edit == 1:
            out += [line, line]
        elif edit == 2:
            out.append(json.dumps(record).encode())  # with blanks
        elif edit == 3:
            out.append(line.replace(b"name0", b"other"))
        elif edit == 4:
            out += [b"", b"  ", line]
        elif edit == 5:
            out.append(line[:-1])  # no JSON
        elif edit == 6:
            number = rng.choice([0, 1, -1, 1 << 63, 1 << 64, 1 << 70, 300])
            key = rng.choice([key for key in record if type(record[key]) is int])
            out.append(compact({**record, key: number}))
        elif edit == 7:
            out.append(compact({**record, "more": 1}))
        else:
            shown = record.pop("refs", None)
            out.append(compact({**record, **({"refs": {**shown, "name": 3}} if shown else {})}))
    return out


def compact(record: Any) -> bytes:
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode()


@cases("format", FORMATS)
@cases("seed", range(4))
def test_edits_mean_the_same(format: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sample = default_host().reader(format).sample
    assert sample is not None
    header, *lines = lines_of(format, sample(BYTES)).splitlines()
    lines = b"\n".join([header, *edited(lines, random.Random(seed))])
    expected = one_by_one(lines)
    monkeypatch.setattr(records_module, "BULK", 1 << 14)
    monkeypatch.setattr(line_packing, "ENOUGH", 16)
    assert opened(lines) == expected


def test_a_renamed_string_makes_stale_only_the_lines_that_show_the_old_name(
    bulk: Callable[[bytes], Made],
) -> None:
    sample = default_host().reader("trace").sample
    assert sample is not None
    lines = lines_of("trace", sample(BYTES))
    # One event shows another name; where it is registered, the name stays.
    old = b'"name":"name33"'
    at = lines.rindex(old)
    lines = lines[:at] + b'"name":"renamed"' + lines[at + len(old) :]
    assert bulk(lines) == one_by_one(lines)
    # Another string under an index: the events that refer to it have the old one inline.
    lines = lines.replace(b'"value":"name44"', b'"value":"name4X"')
    assert opened(lines) == one_by_one(lines)


# --- Values of lines -----------------------------------------------------------------------------

scalars = (
    st.integers(-(2**63), 2**64 - 1) | st.booleans() | st.none() | st.text(max_size=20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", '"', "\\", "\n\t\r\b\f", "\x1f", "{", "é", "12345678"])
)  # fmt: skip
objects = st.dictionaries(
    st.text(max_size=9) | st.sampled_from(["offset", "nbytes", "refs"]),
    st.recursive(scalars, lambda inner: st.lists(inner, max_size=3)
                 | st.dictionaries(st.text(max_size=5), inner, max_size=3), max_leaves=6),
    max_size=5,
)  # fmt: skip


def scalars_of(value: Any, *, top: bool = True) -> Iterator[Any]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if not (top and key in {"offset", "nbytes"}):
                yield from scalars_of(inner, top=False)
    elif isinstance(value, list):
        for inner in value:
            yield from scalars_of(inner, top=False)
    elif isinstance(value, str) or type(value) in (int, float):
        yield value


@hypothesis.given(st.lists(objects, max_size=5))
def test_values_are_those_of_the_lines(records: list[dict[str, Any]]) -> None:
    lines = b"".join(orjson.dumps(record) + b"\n" for record in records)
    kernel = LineShapes()
    kernel.read_from(lines or b"\n")
    kernel.run()
    rows, values = kernel.lines.filled(), kernel.values.filled()
    text = np.asarray(kernel.unescaped)
    for row, record in enumerate(records):
        if not rows["shape"][row]:
            continue  # such as a place that is no number
        at = int(rows["value"][row])
        for wanted in scalars_of(record):
            start, nbytes = int(values["start"][at]), int(values["nbytes"][at])
            if isinstance(wanted, str):
                assert text[start : start + nbytes].tobytes() == wanted.encode()
            elif isinstance(wanted, int):
                assert int(values["number"][at]) == wanted % 2**64
            else:
                assert values["real"][at].tobytes() == np.float64(wanted).tobytes()
            at += 1
        assert len(list(line_packing._values_of(record))) == len(list(scalars_of(record)))


def test_a_shape_whose_bytes_are_not_made_of_its_values_is_left() -> None:
    def encode(record: Any) -> bytes:
        return (record["value"] * record["value"] % 251).to_bytes(8, "little")

    records = [
        {"record": "square", "offset": 8 * at, "nbytes": 8, "value": at} for at in range(400)
    ]
    lines = b"".join(orjson.dumps(record) + b"\n" for record in records)
    alone: list[int] = []
    none = np.zeros(0, np.int64)

    def single(row: int, _start: int, _end: int) -> bytes:
        alone.append(row)
        return encode(records[row])

    packed = LinePacker(orjson.loads).pack(lines, encode, single, odd=none, unlike=none)
    assert packed.data.tobytes() == b"".join(map(encode, records))
    assert alone == list(range(400))
    assert not packed.guessed.any()
