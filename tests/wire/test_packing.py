"""Records files of declared formats become bytes in bulk."""

from __future__ import annotations

from typing import Any

import pytest

from fxframework import hookimpl
from fxframework.exporters import records as records_module
from fxframework.exporters.records import open_records
from fxframework.host import Host
from fxframework.io.source import Source
from fxframework.model.capture import OpenRequest
from fxframework.wire.format import Format

from .specimen import BLOCKS


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
