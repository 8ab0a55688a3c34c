"""The tables of a format in Markdown have every field, and descriptors are what the host takes."""

from __future__ import annotations

import subprocess
import sys

from tests.wire.specimen import BLOCKS, ITEMS

from fxframework.host import Host
from fxframework.registry import Confidence, Probe, Reader, Writer
from fxframework.wire.format import every_layout


def test_every_field_is_documented() -> None:
    text = BLOCKS.document()
    for layout in every_layout([cls.layout for cls in BLOCKS.classes]):
        section = text.partition(f"### `{layout.cls.record}`")[2].partition("###")[0]
        for field in layout.fields:
            assert f"| `{field.name.lstrip('_')}` | " in section
    assert "| `hot` | byte 8: bit 20 of 4 bytes |  |" in text
    assert "| `color` | byte 8: bits 16–19 of 4 bytes | 0 red, 1 green, 2 blue |" in text
    assert "| `extra` | 4 bytes | only if more == 1 |" in text
    assert "### `head`" in ITEMS.document()


def test_descriptors_are_ordinary() -> None:
    reader, writer = ITEMS.reader, ITEMS.writer
    assert isinstance(reader, Reader)
    assert isinstance(writer, Writer)
    assert reader.sample is not None
    assert reader.explain is not None
    assert reader.rules is not None
    assert reader.rules() is ITEMS.rules
    assert reader.sniff(Probe(head=b"", size=0, name="")) is Confidence.NONE

    class Plugin:
        """Registers the format."""

        from fxframework import hookimpl

        @hookimpl
        def fx_readers(self) -> list[Reader]:
            return [reader]

    host = Host(discover=False)
    host.register(Plugin(), name="items")
    with host.open(ITEMS.sample(500), format="items") as capture:
        assert len(capture.table("instants")) > 10


def test_a_plugin_module_imports_no_numpy() -> None:
    code = (
        "import sys; from fxframework import wire; "
        "wire.reader('x', 'nowhere:FORMAT'); wire.writer('x', 'nowhere:FORMAT'); "
        "assert 'numpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
