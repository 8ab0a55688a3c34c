"""The exporters of XRay traces keep the contract that every exporter keeps."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from fxframework.model.capture import Capture
from fxframework.testing import ExporterContract, Sample

TRACES = Path(__file__).parents[2] / "conformance" / "xray"


def _samples(*names: str) -> list[Sample]:
    return [Sample(Path(name).name, (TRACES / f"{name}.xray").read_bytes()) for name in names]


def _events(capture: Capture) -> int:
    events = capture.events()  # type: ignore[attr-defined]
    return sum(int(np.count_nonzero(batch.kind != 4)) for batch in events)


class TestText(ExporterContract):
    plugin = "fx_xray.plugin"
    name = "text"
    accepts = "xray"
    format = "xray"
    options: ClassVar[Mapping[str, Any]] = {"time": "first"}

    def samples(self) -> Iterable[Sample]:
        return _samples("fdr5-single-clang19", "llvmwriter/v5-allrecords")

    def check_output(self, output: bytes, capture: Capture) -> None:
        if not self.options.get("metadata") and len(capture.table("slices")):
            assert output.count(b"\n") % _events(capture) == 0


class TestTextWithMetadata(TestText):
    options: ClassVar[Mapping[str, Any]] = {"metadata": True}


class TestTextOfBasicMode(TestText):
    accepts = "xray-basic"
    format = "xray-basic"

    def samples(self) -> Iterable[Sample]:
        return _samples("basic3-mt-clang16", "llvm/basic-log-arg1-version-3")


class TestJson(ExporterContract):
    plugin = "fx_xray.plugin"
    name = "json"
    accepts = "xray"
    format = "xray"

    def samples(self) -> Iterable[Sample]:
        return _samples("fdr5-single-clang19", "llvmwriter/v5-allrecords")

    def check_output(self, output: bytes, capture: Capture) -> None:
        assert json.loads(output).keys() == {"displayTimeUnit", "traceEvents", "stackFrames"}


class TestJsonInStrings(TestJson):
    options: ClassVar[Mapping[str, Any]] = {"strings": True}


class TestJsonOfBasicMode(TestJson):
    accepts = "xray-basic"
    format = "xray-basic"

    def samples(self) -> Iterable[Sample]:
        return _samples("basic3-mt-clang16", "llvm/basic-log-arg1-version-3")


class TestYaml(ExporterContract):
    plugin = "fx_xray.plugin"
    name = "llvm-yaml"
    accepts = "xray"
    format = "xray"

    def samples(self) -> Iterable[Sample]:
        return _samples("fdr5-single-clang19", "llvmwriter/v5-allrecords")

    def check_output(self, output: bytes, capture: Capture) -> None:
        assert output.count(b"  - { type: ") == _events(capture)


class TestYamlOfBasicMode(TestYaml):
    accepts = "xray-basic"
    format = "xray-basic"

    def samples(self) -> Iterable[Sample]:
        return _samples("basic3-mt-clang16", "llvm/basic-log-arg1-version-3")
