"""Compiled kernels do what their plain bodies do, on sound VMOs of both layouts and on damaged."""

from __future__ import annotations

import os
import random
from typing import Any

import attrs
import numpy as np
import pytest

from fx_inspect.sample import sample
from fxframework.testing.kernels import plain_kernels

from ...bench.shapes import inspect as shapes
from ...cases import cases
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


SHAPES: dict[str, bytes] = {shape: make(1 << 16) for shape, make in shapes.SHAPES.items()}


def read(data: bytes, **limits: int) -> dict[str, Any]:
    """All that is read of some bytes, as plain objects and arrays."""
    # These are other modules within `plain_kernels`.
    from fx_inspect.read.capture import InspectCapture
    from fxframework.io.limits import Limits
    from fxframework.io.source import Source
    from fxframework.model.capture import OpenRequest

    capture = InspectCapture(Source.open(data), OpenRequest(limits=Limits(**limits)))
    capture.scan()
    found: dict[str, Any] = {
        "summary": attrs.asdict(capture.summary()),
        "findings": [attrs.astuple(finding) for finding in capture.diagnostics],
        "counts": dict(capture.diagnostics.counts),
    }
    for name, schema in capture.schemas.items():
        table = capture.table(name)
        for column in table.columns:
            text = schema.column(column).kind in ("code", "text")
            found[f"{name}.{column}"] = table.texts(column) if text else table.array(column)
    return found


@cases("limits", [{}, {"max_findings": 3, "max_record": 64, "max_string": 5}])
@cases("name", [*INPUTS, *SHAPES])
def test_compiled_and_plain_agree(name: str, limits: dict[str, int]) -> None:
    data = {**INPUTS, **SHAPES}[name]
    compiled = read(data, **limits)
    with plain_kernels():
        plain = read(data, **limits)
    assert compiled.keys() == plain.keys()
    for key, wanted in plain.items():
        if isinstance(wanted, np.ndarray):
            floats = wanted.dtype == np.float64
            assert np.array_equal(compiled[key], wanted, equal_nan=floats), key
        else:
            assert compiled[key] == wanted, key


def test_the_kernels_are_compiled_here() -> None:
    from fx_inspect.read import order, scan, slots, texts, values

    if os.environ.get("FXF_NATIVE") == "never":
        pytest.skip("FXF_NATIVE=never")
    for module in (order, scan, slots, texts, values):
        assert not str(module.__file__).endswith(".py"), module.__name__
