"""Compiled kernels do what their plain bodies do, on sound VMOs of both layouts and on damaged."""

from __future__ import annotations

import random

import numpy as np
import pytest

from fx_inspect.read.reader import InspectCapture, open_inspect
from fx_inspect.sample import sample
from fxframework.io import jit
from fxframework.io.source import Source
from fxframework.model.capture import OpenRequest

from .trees import image, vectors


def damaged(data: bytes, *, faults: int = 80, seed: int = 5) -> bytes:
    chance = random.Random(seed)
    out = bytearray(data)
    for _ in range(faults):
        out[chance.randrange(len(out))] ^= 1 << chance.randrange(8)
    return bytes(out)


FILES = {vector["name"]: image(vector) for vector in vectors("files")}
INPUTS: dict[str, bytes] = {
    "typical": sample(1 << 16),
    "damaged": damaged(sample(1 << 16)),
    "very damaged": damaged(sample(1 << 14), faults=800),
    "arrays": FILES["img_arrays_histograms"],
    "extents": FILES["img_long_string_ref"],
    "damaged extents": damaged(FILES["img_long_string_ref"], faults=12),
    "scalars": FILES["img_all_scalars"],
    "cycle": FILES["drv_two_node_cycle"],
    "version 0": image(vectors("legacy_v0")[1]),
    "link": FILES["drv_unknown_link_disposition"],
    "empty": b"",
    "noise": random.Random(1).randbytes(5000),
}


@pytest.mark.parametrize("data", INPUTS.values(), ids=INPUTS)
def test_compiled_and_plain_agree(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    if not jit.numba_available():
        pytest.skip("numba is not installed for this interpreter")

    def read() -> InspectCapture:
        capture = open_inspect(Source.open(data), OpenRequest())
        capture.scan()
        return capture

    plain = read()
    tables = {name: plain.table(name) for name in plain.schemas}
    for table in tables.values():
        for column in table.columns:
            table[column]
    monkeypatch.setattr(jit, "SMALL", 0)
    monkeypatch.setattr(jit, "SMALL_COLD", 0)
    compiled = read()
    assert compiled.summary() == plain.summary()
    assert list(compiled.diagnostics) == list(plain.diagnostics)
    for name, left in tables.items():
        right = compiled.table(name)
        for column in left:
            if left.schema.column(column).kind in ("code", "text"):
                assert left.texts(column) == right.texts(column), (name, column)
            else:
                got, wanted = right.array(column), left.array(column)
                assert np.array_equal(got, wanted, equal_nan=got.dtype == np.float64)
