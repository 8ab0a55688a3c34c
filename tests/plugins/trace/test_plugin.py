"""The trace plugin: what it registers, and how sure it is of an input."""

from __future__ import annotations

import subprocess
import sys

import pytest

from fx_trace import plugin
from fx_trace.format import MAGIC_WORD, MINIMUM_WORDS
from fxframework.errors import NoReaderError
from fxframework.host import Host
from fxframework.registry import Confidence, Probe

from ...cases import cases

NONE, POSSIBLE, LIKELY, CERTAIN = Confidence
MAGIC = MAGIC_WORD.to_bytes(8, "little")
BIG = MAGIC_WORD.to_bytes(8, "big")


def sniffed(data: bytes, name: str = "capture") -> Confidence:
    return plugin.sniff(Probe(head=data[: 1 << 16], size=len(data), name=name))


def word(value: int, order: str = "little") -> bytes:
    return value.to_bytes(8, order)  # type: ignore[arg-type]


@cases("name", ["capture", "a.fxt", "a.txt"])
@cases(("magic", "order"), [(MAGIC, "little"), (BIG, "big")])
def test_the_magic_is_certain_in_either_byte_order(magic: bytes, order: str, name: str) -> None:
    assert sniffed(magic, name) == CERTAIN
    for header in (0, 0x10, 0x21, 0x3004_0000_0012_0024, 1 << 4 | 15):
        assert sniffed(magic + word(header, order), name) == CERTAIN
    assert sniffed(magic + b"odd", name) == CERTAIN


@cases(
    "header",
    [
        0x04,  # an event of size zero
        0x14,  # an event of one word
        0x1B,  # type 11
        15,  # a large record of size zero
        0xFFFF_FFFF_FFFF_FFFE,
    ],
)
def test_the_magic_with_no_record_behind_it_is_likely(header: int) -> None:
    assert sniffed(MAGIC + word(header)) == LIKELY


def test_the_next_record_is_read_in_the_order_of_the_magic() -> None:
    assert sniffed(BIG + word(0x24)) == LIKELY
    assert sniffed(MAGIC + word(0x24, "big")) == LIKELY


@cases("size", range(8))
def test_a_part_of_the_magic_is_none(size: int) -> None:
    assert sniffed(MAGIC[:size]) == NONE


def test_without_the_magic_the_name_and_the_first_record_tell() -> None:
    record = word(0x24) + word(1)
    for name in ("a.fxt", "A.FXT", "a.fxt.gz"):
        assert sniffed(record, name) == POSSIBLE
        assert sniffed(b"", name) == POSSIBLE
        assert sniffed(word(0x24), name) == NONE  # cut off
        assert sniffed(word(0) + record, name) == NONE
        assert sniffed(b"garbage!", name) == NONE
        assert sniffed(record[:7], name) == NONE
    assert sniffed(record, "a.bin") == NONE
    assert sniffed(b"", "a.bin") == NONE


@cases("kind", MINIMUM_WORDS)
def test_every_type_may_come_first(kind: int) -> None:
    least = MINIMUM_WORDS[kind]  # type: ignore[index]
    assert sniffed(word(least << 4 | kind) + bytes(8 * (least - 1)), "a.fxt") == POSSIBLE
    if least > 1:
        assert sniffed(word((least - 1) << 4 | kind) + bytes(8 * least), "a.fxt") == NONE


def test_any_bytes_are_sniffed_without_raising() -> None:
    for first in range(256):
        for length in (0, 1, 7, 8, 9, 15, 16, 17):
            assert sniffed(bytes([first]) * length, "a.fxt") in {NONE, POSSIBLE}


def test_it_is_registered_whole() -> None:
    host = Host(environ={"FXF_PLUGINS": "trace"})
    assert not host.failures
    reader = host.reader("trace")
    assert reader.suffixes == host.writer("trace").suffixes == (".fxt", ".fxt.gz")
    assert reader.rules is not None
    assert "FXT0104" in reader.rules()
    assert {e.name for e in host.exporters if e.accepts == "trace"} == {"text", "json", "blobs"}
    source = host.source(b"garbage!")
    source.name = "a.fxt"
    with pytest.raises(NoReaderError, match="although its suffix is that of trace"):
        host.detect(source)


def test_every_lazy_function_is_there() -> None:
    import importlib

    for name in ("read.capture:TraceCapture", "read.explain:explain", "write.rewriter:open_writer",
                 "export.text:TextExport", "export.blobs:BlobExport",
                 "export.chrome_json:JsonExport"):  # fmt: skip
        module, _, attribute = name.partition(":")
        assert callable(getattr(importlib.import_module(f"fx_trace.{module}"), attribute))


def test_the_plugin_is_light() -> None:
    code = (
        "import sys, fx_trace.plugin as p; p.fx_readers(); p.fx_writers(); p.fx_exporters();"
        "sys.exit(bool({'numpy', 'orjson', 'fx_trace.format'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
