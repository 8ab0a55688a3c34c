"""Records files of declared formats become bytes in bulk."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from fxframework import hookimpl, wire
from fxframework.exporters import records as records_module
from fxframework.exporters.records import open_records
from fxframework.host import Host
from fxframework.io.source import Source
from fxframework.model.capture import OpenRequest
from fxframework.wire import groups
from fxframework.wire.cursor import RefusalError
from fxframework.wire.format import Format
from fxframework.wire.packing import put_numbers
from fxframework.wire.state import State

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


class Call(wire.Record):
    _kind = wire.kind(wire.bits(0, 2, of=1))


class Entry(Call, kind=0, name="entry", size=16, word=4):
    """A call that begins; its word goes on behind the byte that says the kind."""

    number: int = wire.bits(3, 31)
    delta: int = wire.i32()
    time: int = wire.u64()


@pytest.mark.parametrize(("big", "mirrored"), [(False, False), (True, False), (True, True)])
def test_numbers_become_the_records_that_objects_give(big: bool, mirrored: bool) -> None:
    state = State(big=big, mirrored=mirrored)
    numbers = [0, 1, (1 << 21) - 1]
    rows = np.array(numbers, np.uint32)
    out = np.zeros(60, np.uint8)
    places = np.array([41, 1, 20])
    columns = {"number": rows, "delta": -rows.astype(np.int64), "time": -1}
    put_numbers(out, places, Entry.layout, columns, state)
    for place, number in zip(places.tolist(), numbers, strict=True):
        entry = Entry(number=number, delta=-number, time=(1 << 64) - 1)
        assert out[place : place + 16].tobytes() == entry.pack(state)


def test_a_number_that_would_change_the_kind_is_refused() -> None:
    state = State(big=True)
    with pytest.raises(RefusalError, match="another kind"):
        put_numbers(
            np.zeros(16, np.uint8), np.zeros(1, np.int64), Entry.layout, {"number": 1 << 21}, state
        )
