"""fx_log keeps the contracts that every reader and writer keeps.

Not those of rings: the kit takes it that a record is one stretch of the file, and an entry of a
ring goes around its end.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fx_log import format as wire
from fxframework.registry import Confidence
from fxframework.testing import ReaderContract, Sample, WriterContract

from .logs import log, manifest, packet, stream, text_log

CONFORMANCE = Path(__file__).parents[2] / "conformance" / "log"
TYPICAL = (
    ("pid", "uint64", 1001),
    ("tid", "uint64", 1002),
    ("tag", "string", "io"),
    ("message", "string", "it is open"),
    ("count", "int64", -3),
)


def _vectors(name: str) -> list[bytes]:
    vectors = json.loads((CONFORMANCE / f"{name}.json").read_text("utf-8"))
    return [bytes.fromhex(vector["hex"]) for vector in vectors if "hex" in vector]


def _log_samples() -> Iterable[Sample]:
    yield Sample("one.fxlog", log(*TYPICAL), confidence=Confidence.LIKELY)
    yield Sample(
        "several.fxlog",
        b"".join(log(*TYPICAL, time=1000 * number) for number in range(5)),
        confidence=Confidence.LIKELY,
    )
    named = manifest(3, "core/a", "u") + text_log("two", tag_bits=3)
    yield Sample("manifest.fxlog", named, confidence=Confidence.LIKELY)
    everything = b"".join(_vectors("records")) + log(*TYPICAL)
    yield Sample("everything.fxlog", log(*TYPICAL) * 3 + everything,
                 confidence=Confidence.LIKELY, sound=False)  # fmt: skip
    yield Sample("empty.fxlog", b"", confidence=Confidence.POSSIBLE, sound=False)


def _packet_samples() -> Iterable[Sample]:
    yield Sample("packet.bin", packet("hello", "tag"), confidence=Confidence.POSSIBLE)
    yield Sample("plain.bin", packet("no tags"), confidence=Confidence.POSSIBLE)


def _stream_samples() -> Iterable[Sample]:
    yield Sample("two.fxllog", stream([packet("hello", "tag"), packet("again")]))
    yield Sample("vectors.fxllog", stream(_vectors("legacy")), sound=False)
    yield Sample("empty.fxllog", b"", confidence=Confidence.POSSIBLE, sound=False)


class TestLogReader(ReaderContract):
    plugin = "fx_log.plugin"
    format = "log"

    def samples(self) -> Iterable[Sample]:
        return _log_samples()


class TestPacketReader(ReaderContract):
    plugin = "fx_log.plugin"
    format = "log-legacy"

    def samples(self) -> Iterable[Sample]:
        return _packet_samples()


class TestStreamReader(ReaderContract):
    plugin = "fx_log.plugin"
    format = "log-legacy-stream"
    bounded_records = True  # a datagram of a socket

    def samples(self) -> Iterable[Sample]:
        return _stream_samples()


ARGS = [
    {"name": "a", "type": "null", "value": None},
    {"name": "b", "type": "int64", "value": -1},
    {"name": "c", "type": "uint64", "value": 18_446_744_073_709_551_615},
    {"name": "d", "type": "double", "value": 0.5},
    {"name": "e", "type": "string", "value": "text"},
    {"name": "f", "type": "bool", "value": True},
]
LOG: dict[str, Any] = {"record": "log", "timestamp": 7, "severity": 48, "tag_bits": 0, "args": []}
PACKET: dict[str, Any] = {
    "record": "legacy_packet", "pid": 1, "tid": 2, "timestamp": 7, "severity": 48,
    "dropped_logs": 0, "tags": [], "message": "it is open",
}  # fmt: skip


class TestLogWriter(WriterContract):
    plugin = "fx_log.plugin"
    format = "log"
    may_be_empty = True

    def samples(self) -> Iterable[Sample]:
        return _log_samples()

    def records(self) -> Iterable[Mapping[str, Any]]:
        yield LOG
        yield LOG | {"args": ARGS[1:]}
        yield LOG | {"tag_bits": wire.CONTROL | 3, "args": [
            {"name": "moniker", "type": "string", "value": "core/a"},
            {"name": "url", "type": "string", "value": "u"}]}  # fmt: skip

    def refused(self) -> Iterable[tuple[Mapping[str, Any], str]]:
        yield LOG | {"record": "lgo"}, "FXL0401"
        yield {"record": "log", "severity": 48}, "FXL0402"
        yield LOG | {"colour": "red"}, "FXL0402"
        yield LOG | {"severity": "INFO"}, "FXL0403"
        yield LOG | {"timestamp": 1 << 63}, "FXL0404"
        yield LOG | {"args": [ARGS[4] | {"value": "x" * 33_000}]}, "FXL0405"
        yield LOG | {"args": [ARGS[4] | {"value": "x" * 30_000}] * 2}, "FXL0407"

    def many(self) -> Iterable[Mapping[str, Any]]:
        for number in itertools.count():
            text = {"name": "text", "type": "string", "value": "x" * 4000}
            yield LOG | {"timestamp": number, "args": [*ARGS[1:], text]}


class TestStreamWriter(WriterContract):
    plugin = "fx_log.plugin"
    format = "log-legacy-stream"
    derived = WriterContract.derived | {"raw_severity"}

    def samples(self) -> Iterable[Sample]:
        return _stream_samples()

    def records(self) -> Iterable[Mapping[str, Any]]:
        yield {"record": "stream_header", "version": 1}
        yield PACKET
        yield PACKET | {"tags": ["a", "b"], "severity": 0x30}

    def refused(self) -> Iterable[tuple[Mapping[str, Any], str]]:
        yield PACKET | {"record": "packet"}, "FXL0401"
        yield {**PACKET, "colour": "red"}, "FXL0402"
        yield PACKET | {"pid": "one"}, "FXL0403"
        yield PACKET | {"severity": 1 << 40}, "FXL0404"
        yield PACKET | {"tags": ["t" * 64]}, "FXL0405"
        yield PACKET | {"tags": ["t"] * 6}, "FXL0406"
        yield PACKET | {"message": "x" * 40_000}, "FXL0407"

    def many(self) -> Iterable[Mapping[str, Any]]:
        yield {"record": "stream_header", "version": 1}
        for number in itertools.count():
            yield PACKET | {"timestamp": number, "message": "it is open " * 80}
