"""Compiled kernels give what their plain bodies give: logs of every format, sound and damaged."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np

import fx_log
from fx_log import format as wire
from fx_log.read import tables
from fx_log.sample import sample
from fxframework.testing.kernels import plain_kernels

from ...cases import cases
from .logs import entry, log, manifest, packet, ring, stream, text_log

READ = Path(fx_log.__file__).parent / "read"


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
INPUTS: dict[str, tuple[str, bytes, dict[str, Any]]] = {
    "typical": ("log", sample(100_000), {}),
    "every": ("log", LOGS, {"printf": True, "severity_era": "2022", "fidl_limits": True}),
    "damaged": ("log", damaged(LOGS), {}),
    "suffixed": ("log", SUFFIXED * 50 + SUFFIXED[:-8], {"suffix": True}),
    "ring": ("log-ring", ring(RING, tail=60_000, rest=b"\1"), {}),
    "damaged ring": ("log-ring", damaged(ring(RING, tail=60_000)), {}),
    "packets": ("log-legacy-stream", stream(PACKETS * 50), {"severity_era": "2022"}),
    "damaged packets": ("log-legacy-stream", damaged(stream(PACKETS * 50), faults=3), {}),
    "packet": ("log-legacy", PACKETS[0], {}),
}


@cases("name", INPUTS)
def test_compiled_and_plain_agree(name: str) -> None:
    compiled = everything(*INPUTS[name])
    with plain_kernels():
        plain = everything(*INPUTS[name])
    assert compiled.keys() == plain.keys()
    for what, expected in plain.items():
        assert compiled[what] == expected, what


def everything(format: str, data: bytes, options: dict[str, Any]) -> dict[str, Any]:
    """All that is read of a file, as plain values."""
    from fx_log.read.capture import LegacyCapture, LogCapture, RingCapture, StreamCapture
    from fxframework.io.source import Source
    from fxframework.model.capture import OpenRequest

    open = {
        "log": LogCapture,
        "log-legacy": LegacyCapture,
        "log-legacy-stream": StreamCapture,
        "log-ring": RingCapture,
    }[format]
    capture = open(Source.open(data), OpenRequest(options=options))
    summary = capture.summary()
    found: dict[str, Any] = {
        "summary": repr(summary),
        "findings": [(f.code, f.offset, f.record, f.message) for f in capture.diagnostics],
        "counts": dict(capture.diagnostics.counts),
        "resume": capture.resume(),
    }
    if format == "log":
        found["stretches"] = [array.tolist() for pair in capture.stretches() for array in pair]
    again = open(Source.open(data), OpenRequest(options=options))
    for name in capture.schemas:
        table = capture.table(name)
        batches = list(again.batches(name, 7))
        for column in table.columns:
            pooled = table.schema.column(column).kind in ("code", "text")
            values = table.texts(column) if pooled else table.array(column).tobytes()
            found[f"{name}.{column}"] = values
            parts = [batch.texts(column) if pooled else batch.array(column) for batch in batches]
            whole = [text for part in parts for text in part]
            found[f"{name}.{column}, in batches"] = whole if pooled else np.array(whole).tobytes()
    return found


def test_kernels_know_strings_kinds_and_types_by_the_right_numbers() -> None:
    given = {**vars(wire), **vars(tables)}
    for line in (READ / "scan.py").read_text("utf-8").splitlines():
        if line.startswith("WORD_"):
            given[line.partition(" = ")[0]] = int(line.partition(" = ")[2], 0)
    for code, text in enumerate(tables.WELL_KNOWN[1:], 1):
        name = text.decode().upper().replace("$__", "OWN_")
        assert given[name] == code, name
    kinds = {"LOG", "ATTRIBUTION", "PADDING", "DAMAGED", "RING_ENTRY", "PACKET"}
    assert {wire.KINDS[given[kind]].removeprefix("legacy_").upper() for kind in kinds} == kinds
    for kind in wire.ArgType:
        assert given[kind.name] == kind
    for word in ("PID", "TID", "TAG", "MESSAGE"):
        assert given[f"WORD_{word}"] == int.from_bytes(word.lower().encode(), "little")
    assert given["KIND_COUNT"] == len(wire.KINDS)
