"""The log plugin: what it registers, and how sure it is of an input."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import fx_log
from fx_log import plugin
from fxframework.host import Host
from fxframework.registry import HEAD, Confidence, Probe

from ...cases import cases
from .logs import entry, log, manifest, packet, ring, stream, text_log

NONE, POSSIBLE, LIKELY, CERTAIN = Confidence
CONFORMANCE = Path(__file__).parents[2] / "conformance"
SNIFFERS = {
    "log": plugin.sniff,
    "log-legacy": plugin.sniff_packet,
    "log-legacy-stream": plugin.sniff_stream,
    "log-ring": plugin.sniff_ring,
}
HOST = Host()
RUN = text_log("a") + text_log("b") + text_log("c")


def sniffed(format: str, data: bytes, name: str = "capture") -> Confidence:
    return SNIFFERS[format](Probe(head=data[:HEAD], size=len(data), name=name))


def test_records_in_a_row_are_likely() -> None:
    assert sniffed("log", RUN + b"whatever") == LIKELY
    assert sniffed("log", text_log("a")) == LIKELY
    assert sniffed("log", manifest(1, "core/a", "u") + text_log("a", tag_bits=1)) == LIKELY
    assert sniffed("log", text_log("a") * 2000) == LIKELY


@cases("count", [1, 2])
def test_a_few_records_and_damage_need_the_name(count: int) -> None:
    data = text_log("a") * count + b"\1" * 24
    assert sniffed("log", data) == NONE
    assert sniffed("log", data, "x.FXLOG") == POSSIBLE
    assert sniffed("log", b"", "x.fxlog") == POSSIBLE
    assert sniffed("log", b"") == NONE


@cases(
    "data",
    [
        log(severity=0),
        bytes(24) + text_log("a"),
        b"\1" * 24 + text_log("a"),
        text_log("a")[:16] + b"\x37" + text_log("a")[17:],
    ],
)
def test_by_its_name_an_odd_file_is_one(data: bytes) -> None:
    assert sniffed("log", data) == NONE
    assert sniffed("log", data, "x.fxlog") == POSSIBLE


@cases(
    "data",
    [
        log(severity=0) * 3,  # the trace format's log record has no severity there
        log(severity=0x80) * 3,
        text_log("a")[:-8] * 3,
        bytes(64),
    ],
)
def test_what_is_no_log(data: bytes) -> None:
    assert sniffed("log", data) == NONE


def test_containers_have_a_magic() -> None:
    data = stream([packet("a")])
    assert sniffed("log-legacy-stream", data) == CERTAIN
    assert sniffed("log-legacy-stream", data[:12]) == LIKELY
    assert sniffed("log-legacy-stream", data[:8] + b"\2" + data[9:]) == LIKELY
    assert sniffed("log-legacy-stream", data[:7]) == NONE
    assert sniffed("log-legacy-stream", b"", "x.fxllog") == POSSIBLE


def test_a_packet_has_no_signature() -> None:
    data = packet("a message", "tag", "another")
    assert sniffed("log-legacy", data) == POSSIBLE
    assert sniffed("log-legacy", data[:-1]) == NONE
    assert sniffed("log-legacy", packet("a", severity=0x80)) == NONE
    assert sniffed("log-legacy", bytes(4096)) == NONE
    assert sniffed("log-legacy", data + data) == NONE


def test_rings_are_told_by_their_first_page() -> None:
    data = ring([entry(text_log("a"))], tail=4096)
    assert sniffed("log-ring", data) == LIKELY
    assert sniffed("log-ring", data[:-8]) == NONE
    assert sniffed("log-ring", ring([])) == NONE
    assert sniffed("log-ring", ring([]), "x.fxring") == POSSIBLE
    assert sniffed("log-ring", data[:16] + b"\1" + data[17:]) == NONE
    assert sniffed("log-ring", data[:-8], "x.fxring") == POSSIBLE
    assert sniffed("log-ring", data[:4095], "x.fxring") == NONE


def vectors() -> dict[str, tuple[str | None, bytes]]:
    """Every vector of every format: what it is of, and its bytes; None where it is too little."""
    found: dict[str, tuple[str | None, bytes]] = {}
    for name, format in (("records", "log"), ("legacy", "log-legacy"), ("streams", "log")):
        for vector in json.loads((CONFORMANCE / "log" / f"{name}.json").read_text("utf-8")):
            data = bytes.fromhex(vector.get("hex", ""))
            found[f"log/{name}/{vector['name']}"] = (format, data)
    for vector in json.loads((CONFORMANCE / "trace" / "records.json").read_text("utf-8")):
        data = bytes.fromhex(vector["hex"]).ljust(vector.get("zero_pad_to") or 0, b"\0")
        found[f"trace/{vector['name']}"] = ("trace", data)
    for path in sorted((CONFORMANCE / "trace").rglob("*.fxt")):
        found[path.name] = ("trace", path.read_bytes())
    for path in sorted((CONFORMANCE / "trace").rglob("*.vmo")):
        found[path.name] = ("trace-buffer", path.read_bytes())
    made = {
        "log": RUN,
        "log-legacy": packet("a message", "tag"),
        "log-legacy-stream": stream([packet("a"), packet("b", "t")]),
        "log-ring": ring([entry(text_log("a"))], tail=65536 - 24),
    }
    return found | {f"made/{format}": (format, data) for format, data in made.items()}


@cases("name", vectors())
def test_no_sniffer_claims_a_file_of_another_format(name: str) -> None:
    format, data = vectors()[name]
    probe = Probe(head=data[:HEAD], size=len(data), name="capture")
    readers = HOST.readers
    for reader in readers.values():
        found = reader.sniff(probe)
        if reader.format != format:
            # The kinds of one plugin are told apart by the greatest confidence.
            own = readers[str(format)].sniff(probe)
            assert found == NONE or found < own, reader.format


def test_the_plugin_is_light() -> None:
    code = (
        "import sys; import fx_log.plugin as p; [*p.fx_readers(), *p.fx_writers(), "
        "*p.fx_exporters()]; "
        "assert not {'numpy', 'fx_log.read.records'} & sys.modules.keys()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


def test_public_names_are_loaded_when_they_are_used() -> None:
    code = (
        "import sys, fx_log; "
        "assert not {'numpy', 'attrs', 'logging'} & sys.modules.keys(), sys.modules.keys(); "
        "assert {*fx_log.__all__} == {*dir(fx_log)} - vars(fx_log).keys(); "
        "found = [getattr(fx_log, name) for name in fx_log.__all__]; "
        "assert [each.__name__ for each in found] == fx_log.__all__"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


def test_an_unknown_public_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'LogWritter'"):
        fx_log.LogWritter  # noqa: B018
