"""fx_trace keeps the contracts that every reader and exporter keeps."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from fx_trace.records import RecordEncoder
from fx_trace.sample import sample
from fxframework.model.capture import Capture
from fxframework.registry import Confidence
from fxframework.testing import ExporterContract, ReaderContract, Sample

REAL = Path(__file__).parents[2] / "conformance" / "trace" / "files" / "magic_trace_sample.fxt"
VECTORS = Path(__file__).parents[2] / "conformance" / "trace" / "records.json"
MAGIC = {"record": "metadata", "kind": "trace_info", "info_type": 0, "magic": "0x16547846"}


def _everything() -> bytes:
    """The reference projects' single records, one behind another: every kind, some of them odd."""
    vectors = json.loads(VECTORS.read_text("utf-8"))
    vectors = vectors["vectors"] if isinstance(vectors, dict) else vectors
    hexes = [v["hex"] for v in vectors if not v["complete_file"] and v["hex"]]
    return RecordEncoder().encode(MAGIC) + bytes.fromhex("".join(hexes))


SOUND = [
    Sample("magic.fxt", RecordEncoder().encode(MAGIC)),
    Sample("big_endian.fxt", RecordEncoder(big_endian=True).encode(MAGIC)),
    Sample("typical.fxt", sample(1200)),
]


class TestTraceReader(ReaderContract):
    plugin = "fx_trace.plugin"
    format = "trace"
    examples = 40

    def samples(self) -> Iterable[Sample]:
        yield from SOUND
        yield Sample("everything.fxt", _everything(), sound=False)
        yield Sample("real.fxt", REAL.read_bytes()[:4096], sound=False)
        yield Sample("empty.fxt", b"", confidence=Confidence.POSSIBLE, sound=False)


class _OfTraces(ExporterContract):
    plugin = "fx_trace.plugin"
    format = "trace"
    examples = 30

    def samples(self) -> Iterable[Sample]:
        yield from SOUND[2:]
        yield Sample("everything.fxt", _everything(), sound=False)


class TestTextExporter(_OfTraces):
    name = "text"

    def check_output(self, output: bytes, capture: Capture) -> None:
        assert output.decode().endswith("\n")


class TestJsonExporter(_OfTraces):
    name = "json"

    def check_output(self, output: bytes, capture: Capture) -> None:
        document = json.loads(output)
        slices = capture.table("slices")
        shown = [e for e in document["traceEvents"] if e["ph"] in "BXb"]
        assert len(shown) == len(slices)
