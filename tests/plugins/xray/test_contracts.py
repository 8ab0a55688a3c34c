"""fx_xray keeps the contracts that every reader and writer keeps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from fxframework.registry import Confidence
from fxframework.testing import ReaderContract, Sample, WriterContract

from ...properties import share
from .traces import basic, buffer, call, event, header, trace

CONFORMANCE = Path(__file__).parents[2] / "conformance" / "xray"


def _real(name: str) -> bytes:
    return (CONFORMANCE / f"{name}.xray").read_bytes()


def _fdr_samples() -> Iterable[Sample]:
    # `test_records`, `test_model` and stored outputs have the others.
    for version, order in ((1, "little"), (4, "little"), (5, "big-lsb")):
        yield Sample(f"version{version}-{order}.xray", trace(version, order),
                     confidence=Confidence.LIKELY)  # fmt: skip
    real = _real("fdr5-single-clang19")
    yield Sample("real.xray", real, confidence=Confidence.LIKELY)
    yield Sample("header.xray", header(), confidence=Confidence.LIKELY)
    damaged = header() + buffer(call(), event(b""), b"\x15" * 16, short=7) + b"\x15" * 99
    yield Sample("damaged.xray", damaged, confidence=Confidence.LIKELY, sound=False)
    yield Sample("empty.xray", b"", confidence=Confidence.POSSIBLE, sound=False)


def _basic_samples() -> Iterable[Sample]:
    yield Sample("basic1.xray", basic(1), confidence=Confidence.LIKELY)
    yield Sample("big.xray", basic(3, "big"), confidence=Confidence.LIKELY)
    real = _real("llvm/basic-log-arg1-version-3")
    yield Sample("real.xray", real, confidence=Confidence.LIKELY)
    yield Sample("header.xray", header(3, basic=True), confidence=Confidence.LIKELY)
    yield Sample("odd.xray", basic() + b"\1" * 40, confidence=Confidence.LIKELY, sound=False)


class TestFdrReader(ReaderContract):
    plugin = "fx_xray.plugin"
    format = "xray"

    def samples(self) -> Iterable[Sample]:
        return _fdr_samples()


class TestBasicReader(ReaderContract):
    plugin = "fx_xray.plugin"
    format = "xray-basic"

    def samples(self) -> Iterable[Sample]:
        return _basic_samples()


HEADER = {"record": "file_header", "version": 5, "type": 1, "constant_tsc": True,
          "nonstop_tsc": True, "cycle_frequency": 10**9, "buffer_size": 4096}  # fmt: skip
CALL = {"record": "function", "kind": "enter", "function_id": 1, "delta": 0}
BASIC_HEADER = HEADER | {"version": 3, "type": 0}
BASIC_CALL = {"record": "function", "kind": "enter", "function_id": 1, "tsc": 5, "cpu": 0,
              "thread": 1, "process": 2}  # fmt: skip


class TestFdrWriter(WriterContract):
    plugin = "fx_xray.plugin"
    format = "xray"
    examples = share(2 / 3).max_examples
    salvage_leaves = frozenset({"FXX0305"})
    derived = WriterContract.derived | {"tsc", "cpu", "thread", "process"}

    def samples(self) -> Iterable[Sample]:
        return (sample for sample in _fdr_samples() if sample.name != "header.xray")

    def records(self) -> Iterable[Mapping[str, Any]]:
        yield HEADER
        yield {"record": "buffer_extents", "bytes": 72}
        yield {"record": "new_buffer", "thread": 7}
        yield {"record": "wall_time", "seconds": 1, "micros": 2}
        yield {"record": "pid", "process": 3}
        yield {"record": "new_cpu", "cpu": 1, "tsc": 1000}
        yield CALL

    def refused(self) -> Iterable[tuple[Mapping[str, Any], str]]:
        yield {"record": "call"}, "FXX0501"
        yield {**HEADER, "colour": 1}, "FXX0502"


class TestBasicWriter(WriterContract):
    plugin = "fx_xray.plugin"
    format = "xray-basic"
    examples = share(2 / 3).max_examples
    salvage_leaves = frozenset({"FXX0305"})
    held = 1 << 16

    @pytest.fixture(autouse=True)
    def small_buffers(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A record has 32 bytes: of these, thousands fill no buffer of a megabyte."""
        monkeypatch.setattr("fxframework.kit.lossless.BUFFER", 1 << 13)

    def samples(self) -> Iterable[Sample]:
        return _basic_samples()

    def records(self) -> Iterable[Mapping[str, Any]]:
        yield BASIC_HEADER
        yield BASIC_CALL

    def refused(self) -> Iterable[tuple[Mapping[str, Any], str]]:
        yield {"record": "new_cpu", "cpu": 1, "tsc": 1}, "FXX0501"
