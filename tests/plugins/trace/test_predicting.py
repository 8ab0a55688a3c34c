"""What Perfetto makes of a trace: plain records by a kernel, all others one by one."""

from __future__ import annotations

import importlib
import random
from typing import Any

import hypothesis
import pytest

import fxframework as fxf
from fx_trace.references import perfetto
from fx_trace.references.reading import Reading
from fx_trace.sample import sample

from .streams import damaged, fxt_streams

SHAPES = importlib.import_module("tests.bench.shapes.trace").shapes()


def predicted(data: bytes) -> tuple[int, Any]:
    found = fxf.predict(data, "perfetto", format="trace")
    return found.records, [(loss.quirk.key, loss.count, loss.places) for loss in found.losses]


def one_by_one(data: bytes) -> tuple[int, Any]:
    """The same, with every record given to the handler of its type."""
    enter = Reading.enter

    def alone(self: Reading, provider: Any) -> None:
        enter(self, provider)
        self.plain.provider = -1

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Reading, "enter", alone)
        return predicted(data)


@hypothesis.given(damaged(fxt_streams(max_records=40, magic=True)))
def test_plain_records_are_those_without_a_loss(data: bytes) -> None:
    assert predicted(data) == one_by_one(data)


@pytest.mark.parametrize("name", SHAPES)
def test_of_every_shape(name: str) -> None:
    data = bytearray(SHAPES[name](30_000))
    assert predicted(bytes(data)) == one_by_one(bytes(data))
    rng = random.Random(name)
    for _ in range(20):
        data[rng.randrange(16, len(data))] = rng.randrange(256)
    assert predicted(bytes(data)) == one_by_one(bytes(data))


def test_records_are_looked_at_one_by_one_around_losses_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken = 0
    take = perfetto._Importer._take

    def counted(self: Any, header: int) -> None:
        nonlocal taken
        taken += 1
        take(self, header)

    monkeypatch.setattr(perfetto._Importer, "_take", counted)
    counts = []
    for nbytes in (100_000, 400_000):
        taken = 0
        records, _ = predicted(sample(nbytes))
        counts.append((records, taken))
    (few, before), (many, after) = counts
    assert many > 3 * few
    assert after == before < few / 2
