"""`.jsonl` back to bytes in blocks: what one record after another gives, and faster."""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fxframework.errors import WriteRefusedError
from fxframework.exporters import records as records_module
from fxframework.exporters.records import open_records
from fxframework.host import default_host
from fxframework.io.source import Source
from fxframework.model.capture import OpenRequest
from fxframework.wire import groups

from ..edits import edited_lines
from ..samples import SAMPLE_BYTES, one_of_each, samples

BYTES = 24_000
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
        patch.setattr(records_module, "FIRST", 1 << 40)
        return opened(lines)


@pytest.fixture
def blocks(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], Made]:
    """The same by columns wherever these can hold a record, in blocks of odd sizes."""
    monkeypatch.setattr(groups, "FEW", 1)
    monkeypatch.setattr(records_module, "FIRST", 3)
    monkeypatch.setattr(records_module, "BLOCK", 99)
    return opened


def shapes() -> Iterator[Any]:
    """Makers of captures, by format and name."""
    for family in ("inspect", "log", "trace", "xray"):
        module = importlib.import_module(f"tests.bench.shapes.{family}")
        for name, make in module.shapes().items():
            if name != "all zero":  # one line
                yield pytest.param(family, make, id=f"{family} {name}")
    for format in FORMATS:
        yield pytest.param(format, default_host().reader(format).sample, id=format)


@pytest.mark.parametrize(("format", "make"), list(shapes()))
def test_every_shape_of_capture_comes_back(
    blocks: Callable[[bytes], Made], format: str, make: Callable[[int], bytes]
) -> None:
    data = make(BYTES)
    lines = lines_of(format, data)
    found = blocks(lines)
    assert found[0] == data
    assert found == one_by_one(lines)


@pytest.mark.parametrize("name", one_of_each())
def test_every_format_comes_back(blocks: Callable[[bytes], Made], name: str) -> None:
    format, data = samples()[name]
    host = default_host()
    format = format or host.detect(Source.open(data)).format
    if format not in host.writers or len(data) > 8 * SAMPLE_BYTES:
        pytest.skip(f"{format} is not written, or the sample is long")
    lines = lines_of(format, data)
    assert blocks(lines) == one_by_one(lines)


@pytest.mark.parametrize("format", FORMATS)
def test_plain_records_are_not_encoded_one_by_one(
    blocks: Callable[[bytes], Made], format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = 0
    write = records_module._Rebuilding._write

    def counted(*arguments: Any) -> Any:
        nonlocal alone
        alone += 1
        return write(*arguments)

    monkeypatch.setattr(records_module._Rebuilding, "_write", counted)
    sample = default_host().reader(format).sample
    assert sample is not None
    lines = lines_of(format, sample(400_000))
    blocks(lines)
    assert alone < lines.count(b"\n") / 8


# --- Edited records ------------------------------------------------------------------------------


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("seed", range(4))
def test_edits_mean_the_same(blocks: Callable[[bytes], Made], format: str, seed: int) -> None:
    sample = default_host().reader(format).sample
    assert sample is not None
    rng = random.Random(seed)
    lines = edited_lines(lines_of(format, sample(BYTES // 4)).splitlines(), rng, 0.05 + seed / 8)
    assert blocks(lines) == one_by_one(lines)


def test_a_renamed_string_makes_stale_only_the_lines_that_show_the_old_name(
    blocks: Callable[[bytes], Made],
) -> None:
    sample = default_host().reader("trace").sample
    assert sample is not None
    lines = lines_of("trace", sample(BYTES))
    # One event shows another name; where it is registered, the name stays.
    old = b'"name":"name33"'
    at = lines.rindex(old)
    lines = lines[:at] + b'"name":"renamed"' + lines[at + len(old) :]
    assert blocks(lines) == one_by_one(lines)
    # Another string under an index: the events that refer to it have the old one inline.
    lines = lines.replace(b'"value":"name44"', b'"value":"name4X"')
    assert blocks(lines) == one_by_one(lines)
