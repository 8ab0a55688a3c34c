"""Compiled kernels do what their plain bodies do, on sound logs of every format and on damaged."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fx_log.read import columns
from fx_log.read.reader import LogCapture, open_legacy, open_log, open_ring, open_stream
from fx_log.sample import sample
from fxframework.io import jit
from fxframework.io.source import Source
from fxframework.model.capture import OpenRequest

from .logs import entry, log, manifest, packet, ring, stream, text_log


def damaged(data: bytes, *, faults: int = 60) -> bytes:
    chance = random.Random(5)
    out = bytearray(data)
    for _ in range(faults):
        out[chance.randrange(len(out))] ^= 1 << chance.randrange(8)
    return bytes(out)


EVERY = (
    ("printf", "uint64", 0),
    ("", "int64", -3),
    ("", "string", "caf\udce9"),
    ("message", "string", "%d and %s, \u20ac"),
    ("tag", "string", "one"),
    ("tag", "string", "a tag of more than sixteen bytes"),
    ("verbosity", "int64", 3),
    ("num_dropped", "uint64", 1 << 63),
    ("key", "double", 0.5),
    ("flag", "bool", True),
    ("nothing", "null", None),
    ("pid", "string", "of another type"),
    ("$__rolled_out", "uint64", 4),
    ("$__moniker", "string", "core/own"),
)
RECORDS = [
    text_log("unnamed", tag_bits=5),
    manifest(5, "core/a", "url"),
    log(*EVERY, tag_bits=5, time=5),
    log(*EVERY, ("key", "int64", 1), severity=0x2F, time=1),
    log(("rolled_out", "uint64", 9), tag_bits=1 << 31 | 5),
    log(("pid", "uint64", 1), tag_bits=1 << 31 | 6),
    bytes(24),
]
PACKETS = [packet("one", "a", "b,c"), packet("caf\udce9", severity=-5), packet("", time=-5), b""]
SUFFIX = (3).to_bytes(4, "little") + (2).to_bytes(4, "little") + b"\5".ljust(8, b"\0")
SUFFIXED = text_log("x") + SUFFIX + b"abc".ljust(8, b"\0") + b"de".ljust(8, b"\0")
LOGS = b"".join(RECORDS) * 40
RING = [entry(record, tag=3) for record in RECORDS * 10]
INPUTS: dict[str, tuple[Any, bytes, dict[str, Any]]] = {
    "typical": (open_log, sample(100_000), {}),
    "every": (open_log, LOGS, {"printf": True, "severity_era": "2022", "fidl_limits": True}),
    "damaged": (open_log, damaged(LOGS), {}),
    "suffixed": (open_log, SUFFIXED * 50 + SUFFIXED[:-8], {"suffix": True}),
    "ring": (open_ring, ring(RING, tail=60_000, rest=b"\1"), {}),
    "damaged ring": (open_ring, damaged(ring(RING, tail=60_000)), {}),
    "packets": (open_stream, stream(PACKETS * 50), {"severity_era": "2022"}),
    "damaged packets": (open_stream, damaged(stream(PACKETS * 50), faults=3), {}),
    "packet": (open_legacy, PACKETS[0], {}),
}


@pytest.fixture(params=INPUTS)
def make(request: pytest.FixtureRequest) -> Callable[[], LogCapture]:
    open, data, options = INPUTS[request.param]
    return lambda: open(Source.open(data), OpenRequest(options=options))  # type: ignore[no-any-return]


def test_compiled_and_plain_agree(
    make: Callable[[], LogCapture], monkeypatch: pytest.MonkeyPatch
) -> None:
    if not jit.numba_available():
        pytest.skip("numba is not installed for this interpreter")
    monkeypatch.setattr(columns, "STEP", 16)  # room is made often
    plain = make()
    plain.scan()
    monkeypatch.setattr(jit, "SMALL", 0)
    monkeypatch.setattr(jit, "SMALL_COLD", 0)
    compiled = make()
    compiled.scan()
    assert compiled.summary() == plain.summary()
    assert list(compiled.diagnostics) == list(plain.diagnostics)
    assert compiled.resume() == plain.resume()
    for name in plain.schemas:
        left, right = plain.table(name), compiled.table(name)
        for column in left:
            if left.schema.column(column).kind in ("code", "text"):
                assert left.texts(column) == right.texts(column), (name, column)
            else:
                assert np.array_equal(left.array(column), right.array(column)), (name, column)
