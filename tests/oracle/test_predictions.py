"""What `fxf verify --as perfetto` predicts is what the real Perfetto counts.

The damaged traces are made from their numbers. FXF_PREDICTIONS says how many are compared; CI
compares a few.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from fx_trace.references.perfetto import QUIRKS

from . import fxt
from .damaged import damaged_trace
from .foretold import assert_foretold, predicted
from .perfetto import Perfetto

VECTORS = Path(__file__).parents[1] / "conformance" / "trace"
DAMAGED = int(os.environ.get("FXF_PREDICTIONS", "60"))
BATCH = 20
"""Damaged traces per test."""


def vectors() -> dict[str, bytes]:
    """Every vector: whole files, and single records behind a magic number."""
    found = {path.name: path.read_bytes() for path in sorted((VECTORS / "files").glob("*.fxt"))}
    for vector in json.loads((VECTORS / "records.json").read_text()):
        data = bytes.fromhex(vector["hex"])
        found[vector["name"]] = data if vector["complete_file"] else fxt.MAGIC + data
    return found


def test_every_vector(perfetto: Perfetto) -> None:
    for name, data in vectors().items():
        assert_foretold(perfetto(data), data, name)


@pytest.mark.parametrize("first", range(0, DAMAGED, BATCH))
def test_damaged_traces(first: int, perfetto: Perfetto) -> None:
    for number in range(first, min(first + BATCH, DAMAGED)):
        data = damaged_trace(number)
        assert_foretold(perfetto(data), data, number)


def test_damaged_traces_have_every_counter() -> None:
    """Those that are compared show all that the table counts, and what refuses a file."""
    every = [predicted(damaged_trace(number)) for number in range(DAMAGED)]
    seen = {name for one in every for name in one.counters}
    assert seen == {quirk.counter for quirk in QUIRKS if quirk.counter}
    assert {one.refused.quirk.key for one in every if one.refused} >= {"size-zero"}
