"""Objects and tables compared: records and ``object_meaning`` with blocks and ``meaning.py``.

They share the declarations alone. Whatever the bytes, they count the same records, their
rows hold the same values, and they find the same faults in the same places.
"""

from __future__ import annotations

import importlib
import json
import struct
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from fx_log import format as wire
from fx_log.format import Argument, LegacyPacket
from fx_log.read import capture
from fx_log.write.convert import entries, to_legacy
from fxframework.io.limits import Limits
from fxframework.model.capture import Capture
from fxframework.model.table import Table

from ...bench.shapes.log import shapes
from ...cases import cases
from ...properties import share
from .logs import entry, records_of, ring, stream
from .object_meaning import Entry, Meaning
from .streams import damaged, log_files, packet_files, packets, ring_images


class Tools:
    """The modules under test."""

    def __init__(self) -> None:
        self.capture = importlib.import_module("fx_log.read.capture")
        self.frames = importlib.import_module("fx_log.read.frames")
        self.lines = importlib.import_module("fx_log.read.lines")
        self.limits = importlib.import_module("fxframework.io.limits").Limits
        self.source = importlib.import_module("fxframework.io.source").Source
        self.request = importlib.import_module("fxframework.model.capture").OpenRequest
        self.open: dict[str, Callable[..., capture.LogCapture]] = {
            "log": self.capture.LogCapture,
            "log-ring": self.capture.RingCapture,
            "log-legacy": self.capture.LegacyCapture,
            "log-legacy-stream": self.capture.StreamCapture,
        }

    def opened(
        self, format: str, data: bytes, given: dict[str, Any], **limits: int
    ) -> capture.LogCapture:
        request = self.request(options=given, limits=self.limits(**limits))
        return self.open[format](self.source.open(data), request)


OPEN = tuple(Tools().open)


@pytest.fixture(scope="module")
def tools() -> Tools:
    return Tools()


FILES = {
    "log": log_files(),
    "log-ring": ring_images(),
    "log-legacy": packets(),
    "log-legacy-stream": packet_files(),
}
CONFORMANCE = Path(__file__).parents[2] / "conformance" / "log"
NUMBERS = {name: number for number, name in wire.ARG_NAMES.items()}
Row = tuple[Any, ...]
options = st.fixed_dictionaries(
    {},
    optional={
        "severity_era": st.sampled_from(["current", "2022"]),
        "printf": st.booleans(),
        "fidl_limits": st.booleans(),
    },
)


def octets(text: str) -> bytes:
    return text.encode(errors="surrogateescape")


def value_of(argument: Argument) -> Row:
    """What the columns int, uint, float (as bits) and str hold of an argument."""
    value = argument.value
    whole, real, text = 0, 0, None
    if isinstance(value, float):
        (real,) = struct.unpack("<Q", struct.pack("<d", value))
        if argument.bits is not None:
            real = argument.bits
    elif isinstance(value, int):
        whole = int(value) & (1 << 64) - 1
    elif value is not None:
        text = value if isinstance(value, bytes) else octets(value)
    return whole, real, text


def optional(text: str | None) -> bytes | None:
    return None if text is None else octets(text)


def log_row(offset: int, entry: Entry) -> Row:
    given = sum(
        bit
        for bit, value in ((1, entry.message), (2, entry.pid), (4, entry.tid), (8, entry.line))
        if value is not None
    )
    return (
        offset, entry.ts, entry.severity, entry.severity_name.encode(), entry.pid or 0,
        entry.tid or 0, octets(",".join(entry.tags)) if entry.tags else None,
        optional(entry.component), octets(entry.message or ""), optional(entry.file),
        entry.line or 0, entry.dropped, optional(entry.url), entry.tag,
        entry.rolled_out, entry.verbosity or 0, given,
    )  # fmt: skip


LOG_COLUMNS = (
    "offset", "ts", "severity", "severity_name", "pid", "tid", "tags", "component", "message",
    "file", "line", "dropped", "log_url", "log_tag", "log_rolled_out", "log_verbosity",
    "log_given",
)  # fmt: skip


def expected(format: str, data: bytes, given: dict[str, Any], limits: Limits) -> dict[str, Any]:
    """The rows that the records of a file make, and their kinds."""
    meaning = Meaning(format, given)
    rows: dict[str, Any] = {"logs": [], "args": [], "log_tags": [], "kinds": Counter()}
    for record in records_of(format, data, given, limits=limits):
        rows["kinds"][record.record] += 1
        entry = meaning.entry(record)
        if entry is None:
            continue
        parent = len(rows["logs"])
        rows["logs"].append(log_row(record.offset, entry))
        rows["log_tags"] += [(parent, octets(tag)) for tag in entry.tags]
        rows["args"] += [
            (
                each.offset, parent, octets(each.name),
                NUMBERS[each.type] if isinstance(each.type, str) else each.type, *value_of(each),
            )
            for each in entry.args
        ]  # fmt: skip
    return rows


def cells(table: Table, column: str) -> list[Any]:
    """A column, strings as bytes, numbers as they are."""
    kind = table.schema.column(column).kind
    values: Any = table[column]
    if kind == "text":
        return [values.bytes_of(row) for row in range(len(table))]
    if kind == "code":
        return [None if code < 0 else table.pool.bytes_of(code) for code in values.tolist()]
    if kind == "f8":
        return values.view(np.uint64).tolist()  # type: ignore[no-any-return]
    return values.tolist()  # type: ignore[no-any-return]


def rows_of(table: Table, *wanted: str) -> list[Row]:
    return list(zip(*(cells(table, column) for column in wanted), strict=True))


def found(capture: Capture) -> dict[str, Any]:
    return {
        "logs": rows_of(capture.table("logs"), *LOG_COLUMNS),
        "args": rows_of(
            capture.table("args"), "offset", "parent", "name", "type", "uint", "float", "str"
        ),
        "log_tags": rows_of(capture.table("log_tags"), "parent", "name"),
        "kinds": capture.summary().kinds,
    }


def findings(capture: Capture) -> Counter[tuple[Any, ...]]:
    return Counter(
        (each.code, each.offset, each.record, each.severity, each.message)
        for each in capture.diagnostics
    )


def packets_of(entries: Iterable[Entry]) -> list[LegacyPacket]:
    """Logs as packets, whose messages have their keys."""
    return [to_legacy(entry, Counter()) for entry in entries]


def agree(tools: Tools, format: str, data: bytes, given: dict[str, Any], **limits: int) -> None:
    by_records = tools.opened(format, data, given, **limits)
    records = list(by_records.records())
    assert sum(record.nbytes for record in records) == len(data)
    by_tables = tools.opened(format, data, given, **limits)
    got = found(by_tables)
    assert by_tables.summary().records == len(records)
    for name, rows in expected(format, data, given, by_records.request.limits).items():
        assert got[name] == rows, name
    meaning = Meaning(format, given)
    entries_of_records = filter(None, map(meaning.entry, records))
    assert packets_of(entries(by_tables, Counter())) == packets_of(entries_of_records)
    assert findings(by_tables) == findings(by_records)
    assert by_tables.diagnostics.counts == by_records.diagnostics.counts


@pytest.mark.parametrize("format", OPEN)
@hypothesis.given(data=st.data(), given=options)
def test_agree_on_sound_files(
    tools: Tools, format: str, data: st.DataObject, given: dict[str, Any]
) -> None:
    agree(tools, format, data.draw(FILES[format]), given)


@pytest.mark.parametrize("format", OPEN)
@hypothesis.given(data=st.data(), given=options)
def test_agree_on_damaged_files(
    tools: Tools, format: str, data: st.DataObject, given: dict[str, Any]
) -> None:
    agree(tools, format, data.draw(damaged(FILES[format])), given)


@pytest.mark.parametrize("format", OPEN)
@hypothesis.given(data=st.binary(max_size=200), given=options)
def test_agree_on_any_bytes(tools: Tools, format: str, data: bytes, given: dict[str, Any]) -> None:
    agree(tools, format, data, given)


@cases("name", ["records", "streams", "legacy"])
def test_agree_on_the_vectors(tools: Tools, name: str) -> None:
    vectors = json.loads((CONFORMANCE / f"{name}.json").read_text("utf-8"))
    files = [bytes.fromhex(vector["hex"]) for vector in vectors if "hex" in vector]
    assert files
    for data in files:
        agree(tools, "log-legacy" if name == "legacy" else "log", data, {})
    agree(tools, "log", b"".join(files), {})
    agree(tools, "log-legacy-stream", stream(files), {})
    agree(tools, "log-ring", ring([entry(data) for data in files], tail=65_000), {})


@hypothesis.given(data=log_files(suffixed=True) | damaged(log_files(suffixed=True)), given=options)
def test_agree_on_suffixes(tools: Tools, data: bytes, given: dict[str, Any]) -> None:
    agree(tools, "log", data, {**given, "suffix": True})


@hypothesis.given(data=log_files() | damaged(log_files()), limit=st.integers(0, 80))
def test_agree_within_limits(tools: Tools, data: bytes, limit: int) -> None:
    agree(tools, "log", data, {}, max_record=limit, max_findings=1 + limit % 3)


ODD = {0, 1, 6}
"""Where a word is cut: how many odd bytes there are changes little behind the first records."""


@pytest.mark.parametrize("format", ["log", "log-legacy", "log-legacy-stream"])
@share(1 / 6)
@hypothesis.given(data=st.data())
def test_agree_at_truncations(tools: Tools, format: str, data: st.DataObject) -> None:
    whole = data.draw(FILES[format])
    for length in range(min(len(whole), 400)):
        if length % 8 in ODD:
            agree(tools, format, whole[:length], {})


@pytest.mark.parametrize("format", OPEN)
@hypothesis.given(data=st.data(), rows=st.sampled_from([1, 2, 7, 1000]), given=options)
def test_batches_are_the_table_wherever_they_break(
    tools: Tools, format: str, data: st.DataObject, rows: int, given: dict[str, Any]
) -> None:
    octets = data.draw(FILES[format] | damaged(FILES[format]))
    whole, streamed = (tools.opened(format, octets, given) for _ in range(2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tools.frames, "ROOM", rows)
        batches = {name: list(streamed.batches(name, rows)) for name in streamed.schemas}
    for name in whole.schemas:
        table = whole.table(name)
        assert all(len(batch) <= rows for batch in batches[name])
        for column in table.columns:
            got = [cell for batch in batches[name] for cell in cells(batch, column)]
            assert got == cells(table, column), (name, column)
    assert findings(streamed) == findings(whole)
    assert streamed.summary().facts == whole.summary().facts


@cases("shape", shapes())
def test_agree_on_awkward_shapes(tools: Tools, shape: str) -> None:
    data = shapes()[shape](20_000)
    assert 15_000 < len(data) < 25_000
    agree(tools, "log", data, {})
