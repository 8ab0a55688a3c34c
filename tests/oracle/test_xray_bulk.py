"""Traces written in bulk, as the real llvm-xray reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fx_xray.format import FileHeader
from fx_xray.read.capture import BasicCapture, EventCapture, FdrCapture
from fx_xray.read.events import Events
from fx_xray.write.extract import extract
from fx_xray.write.merge import open_merge, open_merge_basic
from fx_xray.write.packer import RecorderPacker
from fx_xray.write.salvage import salvage
from fxframework.io.sink import Sink
from fxframework.io.source import Source
from fxframework.model.capture import OpenRequest
from fxframework.model.selection import Selection

from ..cases import cases
from . import xray_tool as tool

CONFORMANCE = Path(__file__).parents[1] / "conformance" / "xray"
OPTIONS = {"instr_map": "", "demangle": True, "cycle_frequency": 0, "byte_order": ""}
SOUND = ("fdr5-all-clang16", "fdr5-mt-clang16", "fdr5-tscwrap-clang16", "basic3-mt-clang16")
DAMAGED = (
    "damaged/extent-huge", "damaged/extent-minus8", "damaged/extent-zero",
    "damaged/no-newcpuid", "damaged/trailing-garbage", "damaged/version6",
    "damaged/unknown-metadata-kind10-at-newbuffer", "fdr5-tailmigrate-corrupt-clang19",
    "fdr5-typed-shortextents-clang16",
)  # fmt: skip


def opened(name: str) -> EventCapture:
    source = Source.open(CONFORMANCE / f"{name}.xray")
    open_it = BasicCapture if name.startswith("basic") else FdrCapture
    return open_it(source, OpenRequest(options=OPTIONS))


def accepted(path: Path, sink: Sink, *, basic: bool = False) -> None:
    path.write_bytes(sink.getvalue())
    if basic:
        tool.convert(path)
    else:
        tool.accepted(path)


@cases("name", SOUND)
def test_traces_of_every_version_are_accepted(name: str, tmp_path: Path) -> None:
    for version in range(1, 6):
        sink = Sink.memory()
        session = open_merge(sink, {"version": version, "buffer_size": 1024})
        session.write(opened(name))
        session.close()
        accepted(tmp_path / f"version{version}.xray", sink)
    for version in range(1, 4):
        sink = Sink.memory()
        session = open_merge_basic(sink, {"version": version})
        session.write(opened(name))
        session.close()
        accepted(tmp_path / f"basic{version}.xray", sink, basic=True)


@cases("name", SOUND)
def test_parts_are_accepted(name: str, tmp_path: Path) -> None:
    capture = opened(name)
    summary = capture.summary()
    assert summary.start_ns is not None
    assert summary.end_ns is not None
    sink = Sink.memory()
    extract(capture, Selection(start_ns=(summary.start_ns + summary.end_ns) // 2), sink, {})
    accepted(tmp_path / "part.xray", sink, basic=name.startswith("basic"))


@cases("name", DAMAGED)
def test_salvaged_traces_are_accepted(name: str, tmp_path: Path) -> None:
    sink = Sink.memory()
    assert list(salvage(opened(name), sink, {}))
    accepted(tmp_path / "salvaged.xray", sink)


@cases("version", range(1, 6))
def test_llvm_xray_reads_what_was_packed(version: int, tmp_path: Path) -> None:
    """With payloads of odd lengths, which in version 1 stand before padding that it reads."""
    payload = np.frombuffer(b"abcdefghijk", np.uint8)
    kinds = [0, 3, 4, 4, 5, 1, *([6] if version > 2 else []), 2, 0, 1] * 5
    count = len(kinds)
    tsc = np.cumsum(np.tile([5, 1 << 31, 1 << 33], count)[:count]).astype(np.uint64)
    kind = np.array(kinds, np.uint8)
    for row in np.flatnonzero(kind == 4):
        tsc[row] = tsc[row - 1]
    columns: dict[str, Any] = {
        "kind": kind,
        "function": np.where(kind == 5, 0, 7).astype(np.uint32),
        "tsc": tsc,
        "cpu": np.full(count, 3, np.uint16),
        "thread": np.zeros(count, np.int32),
        "offset": np.zeros(count, np.int64),
        "value": np.where(kind == 4, 99, 0).astype(np.uint64),
        "size": np.where(kind >= 5, 1 + np.arange(count) % 11, 0).astype(np.int32),
    }
    sink = Sink.memory()
    header = FileHeader(version=version, cycle_frequency=1_000_000_000, buffer_size=200)
    packer = RecorderPacker(sink, header)
    packer.add_threads(np.array([5]), np.array([6]))
    packer.write(Events(**columns), payload)
    packer.close()
    path = tmp_path / "packed.xray"
    accepted(path, sink)
    # llvm-xray takes the time of a typed event for a delta before version 5.
    known = (kind < 4) | (kind == 5) | ((kind == 6) & (version > 4))
    wanted = sorted(columns["tsc"][known].tolist())
    found = [
        event for event in tool.convert(path).events if event.kind != "typed-event" or version > 4
    ]
    assert sorted(event.tsc for event in found if event.function or event.data) == wanted
