"""The exporters of logs keep the contract that every exporter keeps."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from fx_log.format import STREAM_MAGIC
from fx_log.sample import sample
from fxframework.model.capture import Capture
from fxframework.testing import ExporterContract, Sample

from ...oracle.journal import entries

VECTORS = Path(__file__).parents[2] / "conformance" / "log"


def _vectors(name: str) -> list[bytes]:
    """The bytes of the sound vectors of a file."""
    vectors = json.loads((VECTORS / name).read_text("utf-8"))
    return [bytes.fromhex(v["hex"]) for v in vectors if v["expected"].get("ok") is not False]


def _logs() -> list[Sample]:
    return [
        Sample("typical.fxlog", sample(1000)[:3000]),
        Sample("vectors.fxlog", b"".join(_vectors("records.json"))),
    ]


def _packets() -> list[Sample]:
    packets = _vectors("legacy.json")
    stream = b"".join(len(packet).to_bytes(4, "little") + packet for packet in packets)
    head = STREAM_MAGIC + (1).to_bytes(8, "little")
    return [Sample("vectors.fxllog", head + stream)]


class TestText(ExporterContract):
    plugin = "fx_log.plugin"
    name = "text"
    accepts = "log"
    format = "log"
    options: ClassVar[Mapping[str, Any]] = {
        "time": "utc",
        "utc_offset_ns": 1_700_000_000_000_000_000,
    }

    def samples(self) -> Iterable[Sample]:
        return _logs()

    def check_output(self, output: bytes, capture: Capture) -> None:
        assert output.count(b"\n") >= len(capture.table("logs"))


class TestTextOfPackets(ExporterContract):
    plugin = "fx_log.plugin"
    name = "text"
    accepts = "log-legacy-stream"
    format = "log-legacy-stream"

    def samples(self) -> Iterable[Sample]:
        return _packets()


class TestJson(ExporterContract):
    plugin = "fx_log.plugin"
    name = "json"
    accepts = "log"
    format = "log"
    options: ClassVar[Mapping[str, Any]] = {"non_finite": "null"}

    def samples(self) -> Iterable[Sample]:
        return _logs()

    def check_output(self, output: bytes, capture: Capture) -> None:
        for line in output.removesuffix(b"\n").split(b"\n"):
            assert json.loads(line)["data"]["TargetLog"]["data_source"] == "Logs"


class TestJsonOfPackets(TestJson):
    accepts = "log-legacy-stream"
    format = "log-legacy-stream"

    def samples(self) -> Iterable[Sample]:
        return _packets()


class TestOtlp(ExporterContract):
    plugin = "fx_log.plugin"
    name = "otlp"
    format = "log"
    options: ClassVar[Mapping[str, Any]] = {"observed_ns": 1}

    def samples(self) -> Iterable[Sample]:
        return _logs()

    def check_output(self, output: bytes, capture: Capture) -> None:
        assert json.loads(output).keys() == {"resourceLogs"}


class TestJournald(ExporterContract):
    plugin = "fx_log.plugin"
    name = "journald"
    format = "log"
    options: ClassVar[Mapping[str, Any]] = {"hostname": "host"}

    def samples(self) -> Iterable[Sample]:
        return _logs()

    def check_output(self, output: bytes, capture: Capture) -> None:
        assert len(entries(output)) >= len(capture.table("logs"))
