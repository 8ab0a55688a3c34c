"""fx_trace keeps the contracts that every reader, writer and exporter keeps."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fx_trace.read.decoder import RecordEncoder
from fx_trace.sample import sample
from fxframework.model.capture import Capture
from fxframework.registry import Confidence
from fxframework.testing import ExporterContract, ReaderContract, Sample, WriterContract

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

    def samples(self) -> Iterable[Sample]:
        yield from SOUND
        yield Sample("everything.fxt", _everything(), sound=False)
        yield Sample("real.fxt", REAL.read_bytes()[:4096], sound=False)
        yield Sample("empty.fxt", b"", confidence=Confidence.POSSIBLE, sound=False)


THREAD = [1001, 1002]
ARGS = [
    {"name": "a", "type": "null", "value": None},
    {"name": "b", "type": "int32", "value": -1},
    {"name": "c", "type": "uint32", "value": 1},
    {"name": "d", "type": "int64", "value": -4_294_967_297},
    {"name": "e", "type": "uint64", "value": 18_446_744_073_709_551_615},
    {"name": "f", "type": "double", "value": 0.5},
    {"name": "g", "type": "string", "value": "text"},
    {"name": "h", "type": "pointer", "value": 4096},
    {"name": "i", "type": "koid", "value": 1001},
    {"name": "j", "type": "bool", "value": True},
    {"name": "k", "type": "blob", "value": "c0ffee"},
]
EVENT = {"record": "event", "timestamp": 7, "thread": THREAD, "category": "io", "name": "read",
         "args": []}  # fmt: skip
RECORDS: list[dict[str, Any]] = [
    MAGIC,
    {"record": "metadata", "kind": "provider_info", "id": 1, "name": "driver"},
    {"record": "metadata", "kind": "provider_section", "id": 1},
    {"record": "initialization", "ticks_per_second": 1_000_000_000, "base_tick": 5,
     "base_wall_ns": 1_600_000_000_000_000_000},
    {"record": "string", "index": 1, "value": "io"},
    {"record": "thread", "index": 1, "pid": 1001, "tid": 1002},
    EVENT | {"event": "instant", "scope": "process", "refs": {"category": 1, "thread": 1}},
    EVENT | {"event": "counter", "args": ARGS[1:2], "counter_id": 7},
    EVENT | {"event": "duration_begin", "args": ARGS},
    EVENT | {"event": "duration_end", "timestamp": 8},
    EVENT | {"event": "duration_complete", "end_timestamp": 9},
    *(EVENT | {"event": f"async_{step}", "id": 9} for step in ("begin", "instant", "end")),
    *(EVENT | {"event": f"flow_{step}", "id": 10} for step in ("begin", "step", "end")),
    {"record": "blob", "name": "notes", "blob_type": 1, "size": 5, "payload_hex": "68656c6c6f"},
    {"record": "userspace_object", "pointer": 4096, "process": 1001, "name": "buffer", "args": []},
    {"record": "kernel_object", "object_type": 2, "koid": 1002, "name": "main",
     "args": [{"name": "process", "type": "koid", "value": 1001}]},
    {"record": "scheduling", "kind": "context_switch", "cpu": 2, "timestamp": 11,
     "outgoing_state": 3, "outgoing_tid": 1002, "incoming_tid": 1003, "args": []},
    {"record": "scheduling", "kind": "thread_wakeup", "cpu": 2, "timestamp": 12,
     "waking_tid": 1002, "args": []},
    {"record": "scheduling", "kind": "legacy_context_switch", "cpu": 2, "timestamp": 13,
     "outgoing_state": 3, "outgoing": THREAD, "incoming": [1001, 1003],
     "outgoing_priority": 16, "incoming_priority": 24},
    {"record": "log", "timestamp": 14, "thread": THREAD, "message": "it is open"},
    {"record": "profiler", "kind": "module", "timestamp": 15, "thread": [1001, 0],
     "module_id": 1, "name": "libc.so", "build_id": "0123abcd"},
    {"record": "profiler", "kind": "mmap", "timestamp": 16, "thread": [1001, 0],
     "module_id": 1, "flags": 5, "start_address": 4096, "range": 8192, "vaddr": 0},
    {"record": "profiler", "kind": "backtrace", "timestamp": 17, "thread": THREAD,
     "frames": [4100, 4200]},
    {"record": "large", "large_type": 0, "blob_format": 0, "category": "io", "name": "dump",
     "timestamp": 18, "thread": THREAD, "args": [], "size": 3, "payload_hex": "010203"},
    {"record": "large", "large_type": 0, "blob_format": 1, "category": "io", "name": "dump",
     "size": 3, "payload_hex": "010203"},
]  # fmt: skip
"""A record of every kind, which make a sound file together."""
NUMBER = {"name": "n", "type": "int32", "value": 1}
REFUSED: list[tuple[dict[str, Any], str]] = [
    (EVENT | {"event": "no such event"}, "FXT0401"),
    ({"record": "string", "index": 1}, "FXT0402"),
    ({"record": "string", "index": 1, "value": "io", "colour": "red"}, "FXT0402"),
    ({"record": "string", "index": "one", "value": "io"}, "FXT0403"),
    ({"record": "string", "index": 1, "value": "\ud800"}, "FXT0403"),
    ({"record": "string", "index": 1 << 15, "value": "io"}, "FXT0404"),
    ({"record": "thread", "index": 1, "pid": 1 << 64, "tid": 1}, "FXT0404"),
    ({"record": "padding", "nbytes": 7}, "FXT0404"),
    ({"record": "string", "index": 1, "value": "x" * 33_000}, "FXT0405"),
    (EVENT | {"event": "duration_begin", "args": [NUMBER] * 16}, "FXT0406"),
    (EVENT | {"event": "duration_begin", "args": [
        {"name": "n", "type": "string", "value": "x" * 30_000}] * 2}, "FXT0407"),
    ({"record": "unknown", "type": 14}, "FXT0408"),
]  # fmt: skip


class TestTraceWriter(WriterContract):
    plugin = "fx_trace.plugin"
    format = "trace"
    derived = WriterContract.derived | {"size"}
    salvage_leaves = frozenset({"FXT0208"})  # the record is whole; its time is out of range

    def samples(self) -> Iterable[Sample]:
        yield from SOUND
        yield Sample("everything.fxt", _everything(), sound=False)
        yield Sample("real.fxt", REAL.read_bytes()[:4096], sound=False)
        yield Sample("empty.fxt", b"", sound=False)

    def records(self) -> Iterable[Mapping[str, Any]]:
        return RECORDS

    def refused(self) -> Iterable[tuple[Mapping[str, Any], str]]:
        return REFUSED

    def many(self) -> Iterable[Mapping[str, Any]]:
        yield MAGIC
        for number in itertools.count():
            yield {"record": "blob", "name": f"{number}", "blob_type": 1,
                   "payload_hex": "0123456789abcdef" * 256}  # fmt: skip
            yield EVENT | {"event": "instant", "timestamp": number, "scope": "thread"}


class _OfTraces(ExporterContract):
    plugin = "fx_trace.plugin"
    accepts = "trace"
    format = "trace"

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
