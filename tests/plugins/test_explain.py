"""`fxf explain FILE@OFFSET` finds the record by framing: that of the objects, and decodes few."""

from __future__ import annotations

import functools
import importlib
import random
from typing import Any

import pytest

from fxframework.host import default_host
from fxframework.io.source import Source
from fxframework.model.capture import OpenRequest

from ..cases import cases
from ..samples import SCENARIOS

SHORT_XRAY = SCENARIOS / "xray.golden" / "calls.xray"
FORMATS = ("inspect", "log", "trace", "trace-buffer", "xray")
DECODERS = {
    "inspect": ("fx_inspect.read.decoder", "block_of"),
    "log": ("fx_log.read.frames", "Records.log"),
    "trace": ("fx_trace.read.decoder", "class_of"),
    "trace-buffer": ("fx_trace.read.decoder", "class_of"),
    "xray": ("fx_xray.read.decoder", "function_struct"),
}
"""What decodes one record in each format."""


def made(format: str, nbytes: int, damage: int) -> bytes:
    """A sample in which some bytes are changed, never the first ones."""
    sample = default_host().reader(format).sample
    assert sample is not None
    # An XRay sample is of whole buffers; every record before a byte is read to explain it.
    data = bytearray(SHORT_XRAY.read_bytes() if format == "xray" else sample(nbytes))
    rng = random.Random(damage)
    for _ in range(damage):
        at = rng.randrange(4096 if format == "trace-buffer" else 64, len(data))
        data[at] = rng.randrange(256)
    return bytes(data)


@cases("damage", [0, 3, 30])
@cases("format", FORMATS)
def test_the_record_is_that_of_the_objects(format: str, damage: int) -> None:
    data = made(format, 6_000, damage)
    reader = default_host().reader(format)
    assert reader.explain is not None
    with reader.open(Source.open(data), OpenRequest()) as capture:
        places = [(record.offset, record.nbytes) for record in capture.records()]
    source = Source.open(data)
    lost = {place for place in places if place[1] > 64}
    for offset, nbytes in random.Random(damage).sample(places, min(len(places), 40)) + [*lost][:20]:
        for wanted in {offset, offset + nbytes // 2, offset + nbytes - 1}:
            views = reader.explain(source, wanted)
            assert all(offset <= view.offset < offset + nbytes for view in views), wanted
            # Of a long stretch the words around the byte are given.
            assert any(view.offset <= wanted < view.offset + 128 for view in views), wanted


@pytest.mark.parametrize("format", ["inspect", "log", "trace", "trace-buffer"])
def test_few_records_are_decoded(format: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = default_host().reader(format)
    assert reader.explain is not None
    module, name = DECODERS[format]
    owner, _, name = name.rpartition(".")
    decoder: Any = importlib.import_module(module)
    decoder = getattr(decoder, owner) if owner else decoder
    decoded = 0
    real = getattr(decoder, name)

    @functools.wraps(real)
    def counted(*given: Any, **more: Any) -> Any:
        nonlocal decoded
        decoded += 1
        return real(*given, **more)

    monkeypatch.setattr(decoder, name, counted)
    data = made(format, 300_000, 0)
    assert reader.explain(Source.open(data), len(data) - 40_000)
    assert decoded < 4
