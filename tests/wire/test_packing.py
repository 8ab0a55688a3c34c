"""Records files of declared formats become bytes in bulk."""

from __future__ import annotations

import random
from typing import Any

import pytest

from fxframework import hookimpl
from fxframework.exporters import records as records_module
from fxframework.exporters.records import open_records
from fxframework.host import Host
from fxframework.io.source import Source
from fxframework.model.capture import OpenRequest
from fxframework.wire import groups
from fxframework.wire.format import Format

from ..cases import cases
from ..edits import edited_lines
from .specimen import BLOCKS, ITEMS, NOTES
from .test_checksums import MESSAGES
from .test_versions import SCORES


def host_of(format: Format) -> Host:
    class Plugin:
        @hookimpl
        def fx_readers(self) -> Any:
            return format.reader

        @hookimpl
        def fx_writers(self) -> Any:
            return format.writer

    host = Host(discover=False)
    host.register(Plugin(), name=format.name)
    return host


def test_a_sample_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    format = BLOCKS
    host = host_of(format)
    data = format.sample(200_000)
    request = OpenRequest(host=host)
    with format.reader.open(Source.open(data), request) as capture:
        lines = records_module._header(capture) + b"".join(capture.records_json())
    alone = 0
    write = records_module._Rebuilding._write

    def counted(*arguments: Any) -> Any:
        nonlocal alone
        alone += 1
        return write(*arguments)

    monkeypatch.setattr(records_module._Rebuilding, "_write", counted)
    with open_records(Source.open(lines), request) as capture:
        assert bytes(capture.source.data) == data
    # Few records declare texts, and all others are packed by columns.
    assert alone < 0.3 * lines.count(b"\n")


def opened(lines: bytes, request: OpenRequest) -> tuple[bytes, list[Any]]:
    """The bytes of a records file, and what was found."""
    with open_records(Source.open(lines), request) as capture:
        found = [(each.code, each.offset, each.message) for each in capture.diagnostics]
        return bytes(capture.source.data), found


@cases("format", [BLOCKS, ITEMS, NOTES, MESSAGES, SCORES], ids=lambda f: f.name)
@cases("seed", range(3))
def test_edits_mean_the_same_in_blocks(
    format: Format, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = OpenRequest(host=host_of(format))
    with format.reader.open(Source.open(format.sample(8_000)), request) as capture:
        lines = records_module._header(capture) + b"".join(capture.records_json())
    lines = edited_lines(lines.splitlines(), random.Random(seed), 0.05 + seed / 8)
    monkeypatch.setattr(records_module, "FIRST", 1 << 40)
    one_by_one = opened(lines, request)
    monkeypatch.setattr(records_module, "FIRST", 3)
    monkeypatch.setattr(records_module, "BLOCK", 61)
    monkeypatch.setattr(groups, "FEW", 1)
    assert opened(lines, request) == one_by_one
