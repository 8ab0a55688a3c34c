"""The XRay plugin: what it registers, and how sure it is of an input."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from fx_xray import plugin
from fxframework.host import Host
from fxframework.registry import HEAD, Confidence, Probe

from ...cases import cases
from .traces import ORDERS, header, packed, preamble

NONE, POSSIBLE, LIKELY, CERTAIN = Confidence
CONFORMANCE = Path(__file__).parents[2] / "conformance" / "xray"
SNIFFERS = {
    "xray": plugin.sniff,
    "xray-basic": plugin.sniff_basic,
    "llvm-yaml": plugin.sniff_yaml,
}
HOST = Host()
REAL = sorted(CONFORMANCE.glob("*.xray")) + sorted(CONFORMANCE.glob("llvm*/*.xray"))


def sniffed(format: str, data: bytes, name: str = "capture") -> Confidence:
    return SNIFFERS[format](Probe(head=data[:HEAD], size=len(data), name=name))


@cases("path", REAL, ids=lambda path: path.stem)
def test_real_traces_are_recognised_without_their_names(path: Path) -> None:
    data = path.read_bytes()
    basic = data[2] == 0
    assert sniffed("xray-basic" if basic else "xray", data) == (
        POSSIBLE if basic and len(data) == 32 else LIKELY
    )
    assert sniffed("xray" if basic else "xray-basic", data, "x.xray") == NONE


@cases("path", REAL, ids=lambda path: path.stem)
def test_real_traces_are_recognised_by_the_host(path: Path) -> None:
    with HOST.open(path) as capture:
        assert capture.format == ("xray-basic" if path.read_bytes()[2] == 0 else "xray")


@cases("version", range(1, 6))
@cases("byte_order", ORDERS)
def test_every_version_and_byte_order(version: int, byte_order: str) -> None:
    data = header(version, byte_order=byte_order) + packed(
        *preamble(version), version=version, byte_order=byte_order
    )
    assert sniffed("xray", data) == LIKELY
    assert sniffed("xray", data[:32]) == LIKELY
    assert sniffed("xray", data[:32] + b"\xff" * 32) == NONE
    assert sniffed("xray", data[:32] + b"\xff" * 32, "x.XRAY") == POSSIBLE


@cases("path", sorted(CONFORMANCE.glob("damaged/*")), ids=lambda path: path.stem)
def test_damaged_files_are_read_by_their_name(path: Path) -> None:
    data = path.read_bytes()
    assert sniffed("xray", data, path.name) >= POSSIBLE
    with HOST.open(path) as capture:
        assert capture.format == "xray"


@cases("data", [b"", b"\5\0\1", header(6) + b"\x0f" * 40, b"\x0f" * 64, bytes(64)])
def test_what_is_no_trace_needs_the_name(data: bytes) -> None:
    assert [sniffed(format, data) for format in SNIFFERS] == [NONE] * 3
    assert sniffed("xray", data, "x.xray") == POSSIBLE
    assert sniffed("xray-basic", data, "x.xray") == NONE


def test_yaml_of_llvm_xray() -> None:
    data = (CONFORMANCE / "expected/fdr5-single-clang19/convert.yaml").read_bytes()
    assert sniffed("llvm-yaml", data) == CERTAIN
    assert sniffed("llvm-yaml", data.partition(b"records:")[0]) == LIKELY
    assert sniffed("llvm-yaml", b"---\nheader: 1\n", "x.yaml") == NONE


def test_the_plugin_loads_neither_numpy_nor_the_readers() -> None:
    script = (
        "import sys; import fx_xray.plugin as plugin\n"
        "plugin.fx_readers(); plugin.fx_writers(); plugin.fx_exporters(); plugin.fx_step_kinds()\n"
        "heavy = {'numpy', 'elftools', 'yaml', 'fx_xray.format', 'fx_xray.rules'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
