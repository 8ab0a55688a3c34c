"""What Perfetto makes of a trace: one walk by a kernel, which runs as plain Python too."""

from __future__ import annotations

import importlib
import random
from typing import Any

import hypothesis
import pytest

from fx_trace.references import importer, quirks
from fx_trace.sample import sample
from fxframework.testing.kernels import plain_kernels

from .streams import damaged, fxt_streams

SHAPES = importlib.import_module("tests.bench.shapes.trace").shapes()


def predicted(data: bytes) -> tuple[int, Any]:
    """Imported anew, for one kind of kernels; as plain values."""
    import fxframework

    found = fxframework.predict(data, "perfetto", format="trace")
    return found.records, [loss.to_json() for loss in found.losses]


def assert_agree(data: bytes) -> None:
    with plain_kernels():
        plain = predicted(data)
    assert predicted(data) == plain


@hypothesis.given(damaged(fxt_streams(max_records=40, magic=True)))
def test_compiled_and_plain_agree(data: bytes) -> None:
    assert_agree(data)


@pytest.mark.parametrize("name", SHAPES)
def test_of_every_shape(name: str) -> None:
    data = bytearray(SHAPES[name](8000))
    rng = random.Random(name)
    for _ in range(3):
        assert_agree(bytes(data))
        for _ in range(5):
            data[rng.randrange(16, len(data))] = rng.randrange(256)


def test_of_many_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """The walk returns after some words, and goes on where it was."""
    data = sample(20_000)
    with plain_kernels():
        once = predicted(data)
        monkeypatch.setattr(importlib.import_module(importer.__name__), "PIECE", 16)
        assert predicted(data) == once


def test_quirks_have_the_numbers_of_their_places() -> None:
    for number, quirk in enumerate(quirks.QUIRKS):
        assert getattr(quirks, quirk.key.upper().replace("-", "_")) == number
