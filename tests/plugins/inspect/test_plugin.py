"""The Inspect plugin: what it registers, and how sure it is of an input."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fx_inspect import plugin
from fxframework.registry import HEAD, Confidence, Probe

from ...cases import cases
from .trees import FILES, HEADER, every_type, image, vectors

NONE, POSSIBLE, LIKELY, CERTAIN = Confidence
V0 = bytes.fromhex("20000000494e53500000000000000000")
SIZED = bytes.fromhex("01020200494e5350 0000000000000000 2000000000000000 0000000000000000")


def sniffed(data: bytes, name: str = "capture") -> Confidence:
    return plugin.sniff(Probe(head=data[:HEAD], size=len(data), name=name))


@cases(
    "data", [HEADER, HEADER[:2] + b"\1" + HEADER[3:], HEADER[:2] + b"\0" + HEADER[3:], V0, SIZED]
)
def test_a_sound_header_is_certain(data: bytes) -> None:
    assert sniffed(data) == CERTAIN
    assert sniffed(data + bytes(4096)) == CERTAIN


@cases(
    "data",
    [
        HEADER[:15],
        SIZED[:31],
        SIZED[:16] + bytes(16),
        SIZED[:16] + b"\x21" + bytes(15),
        HEADER[:2] + b"\3" + HEADER[3:],
        b"\x02" + HEADER[1:],
        b"\x21" + V0[1:],
        V0[:2] + b"\1" + V0[3:],
        V0[:4] + b"PSNI" + V0[8:],
    ],
)
def test_the_magic_in_an_odd_header_is_likely(data: bytes) -> None:
    assert sniffed(data) == LIKELY


@cases(
    "data",
    [
        b"The INSPECTOR, a novel",
        b"\x00\x03\x02\x00INSP" + bytes(8),
        b"\x00\x02\x02\x00INSQ" + bytes(8),
        b"\x00\x02\x02\x00",
        bytes(64),
    ],
)
def test_what_is_no_vmo_is_not_claimed(data: bytes) -> None:
    assert sniffed(data) == NONE
    assert sniffed(data, "x.inspect") <= POSSIBLE


def test_the_name_helps_where_there_is_something_of_a_header() -> None:
    assert sniffed(b"", "x.inspect") == POSSIBLE
    assert sniffed(b"", "x.VMO") == POSSIBLE
    assert sniffed(b"") == NONE
    assert sniffed(b"\x00\x03\x02\x00INSP" + bytes(8), "x.inspect") == POSSIBLE
    assert sniffed(b"\x00\x02\x02\x00INSQ" + bytes(8), "x.inspect") == POSSIBLE
    for odd in (b"some text", b"odd", bytes(64)):
        assert sniffed(odd, "x.inspect") == POSSIBLE
        assert sniffed(odd, "x.vmo") == NONE


@cases("vector", [*FILES.values(), *vectors("legacy_v0")], ids=lambda v: v["name"])
def test_the_vectors_are_known_by_their_headers(vector: dict[str, str]) -> None:
    data = image(vector)
    known = vector["name"]
    if known.startswith(("snap_invalid", "snap_few_bytes")):
        assert sniffed(data) == NONE
        assert sniffed(data, "x.inspect") == POSSIBLE
    elif known in {"drv_version_3", "drv_zero_size_in_header"}:
        assert sniffed(data) == LIKELY
    else:
        assert sniffed(data) == CERTAIN
    assert sniffed(every_type()) == CERTAIN


def test_vectors_of_other_formats_are_not_claimed() -> None:
    root = Path(__file__).parents[2] / "conformance"
    count = 0
    for path in (*root.glob("trace/*.json"), *root.glob("log/*.json")):
        given = json.loads(path.read_text())
        for vector in given if isinstance(given, list) else ():
            if isinstance(vector, dict) and isinstance(vector.get("hex"), str):
                count += 1
                assert sniffed(bytes.fromhex(vector["hex"])) == NONE
    assert count > 50


def test_descriptors_name_what_there_is() -> None:
    (reader,) = plugin.fx_readers()
    (writer,) = plugin.fx_writers()
    assert reader.format == writer.format == "inspect"
    assert reader.suffixes == writer.suffixes == (".inspect", ".vmo")
    assert {option.name for option in reader.options} == {"links", "link_depth"}
    assert {exporter.name for exporter in plugin.fx_exporters()} >= {
        "tree",
        "text",
        "json",
        "tree-json",
    }
    assert all(exporter.accepts == "inspect" for exporter in plugin.fx_exporters())


def test_every_step_of_the_steps_is_registered() -> None:
    from fx_inspect import steps

    kinds = {kind.name: kind for kind in plugin.fx_step_kinds()}
    given = {
        name
        for name, value in vars(steps).items()
        if name.startswith("Inspect") and value.__module__ == steps.__name__
    }
    assert {kind.parameters().__name__ for kind in kinds.values()} == given
    assert {"inspect.create", "inspect.set", "inspect.thread", "inspect.snapshot"} <= set(kinds)


def test_links_are_a_folder_or_a_mapping() -> None:
    (reader,) = plugin.fx_readers()
    links = next(option for option in reader.options if option.name == "links")
    assert links.accept("folder") == "folder"
    assert links.accept({"a-0": HEADER}) == {"a-0": HEADER}
    with pytest.raises(Exception, match="links takes a string"):
        links.accept(7)


def test_the_plugin_loads_neither_numpy_nor_the_readers() -> None:
    script = (
        "import sys; import fx_inspect.plugin as plugin\n"
        "plugin.fx_readers(); plugin.fx_writers(); plugin.fx_exporters(); plugin.fx_step_kinds()\n"
        "heavy = {'numpy', 'fx_inspect.read.records', 'fx_inspect.rules'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
