"""Two readers held against each other: records with ``tree.py``, and the kernels of tables.

They share layout constants, and the scan that finds the blocks. Whatever the bytes, their records
count the same, their rows hold the same values, and they find the same faults in the same places.
"""

from __future__ import annotations

import json
import math
import struct
from collections import Counter
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from fx_inspect.format import ARRAY_FORMATS
from fx_inspect.read.capture import InspectCapture
from fx_inspect.read.decoder import RecordDecoder
from fx_inspect.read.tables import TYPES
from fx_inspect.rules import RULES
from fxframework.errors import Severity
from fxframework.io.limits import Limits
from fxframework.io.source import Source
from fxframework.model.capture import OpenRequest
from fxframework.model.diagnostics import Diagnostics
from fxframework.model.table import Table

from ...cases import cases
from ...properties import share
from . import tree
from .streams import damaged, vmos

CONFORMANCE = Path(__file__).parents[2] / "conformance" / "inspect"
NUMBERS = {name: number for number, name in TYPES.items()}
FORMAT_NUMBERS = {name: number for number, name in ARRAY_FORMATS.items()}
BUFFER_NUMBERS = {"utf8": 0, "bytes": 1, "string_reference": 2}
DISPOSITIONS = {"child": 0, "inline": 1}
CANONICAL_NAN = 0x7FF8 << 48
Row = tuple[Any, ...]


def opened(data: bytes, **limits: int) -> InspectCapture:
    return InspectCapture(Source.open(data), OpenRequest(limits=Limits(**limits)))


def octets(text: str) -> bytes:
    return text.encode(errors="surrogateescape")


def bits(value: float) -> int:
    """The bits of a double; those of a NaN do not matter."""
    return CANONICAL_NAN if math.isnan(value) else struct.unpack("<Q", struct.pack("<d", value))[0]


def numbers(type: str, value: Any) -> Row:
    """What the columns int, uint and float (as bits) hold."""
    return (
        int(value) if type in ("int", "bool", "int_array") else 0,
        value if type in ("uint", "uint_array") else 0,
        bits(value) if type in ("double", "double_array") else 0,
    )


def expected(data: bytes) -> tuple[dict[str, list[Row]], Diagnostics]:
    """The rows that the tree of a file makes, and what is found in it."""
    diagnostics = Diagnostics(RULES)
    records = list(RecordDecoder(diagnostics=diagnostics).records(data))
    found = tree.build(records, diagnostics)
    rows: dict[str, list[Row]] = {
        "nodes": [], "properties": [], "inspect_slots": [], "inspect_links": []
    }  # fmt: skip
    open_nodes: list[tuple[int, bytes]] = []
    for id, (node, depth) in enumerate(found.walk()):
        del open_nodes[depth:]
        parent, above = open_nodes[-1] if open_nodes else (-1, b"")
        path = above + b"/" * (parent >= 0) + octets(node.name)
        open_nodes.append((id, path))
        rows["nodes"].append(
            (16 * node.block, id, parent, octets(node.name), path, len(node.links), node.block)
        )
        for each in node.properties:
            array = "array" in each.type
            slots: Any = each.value if array else ()
            parent, first = len(rows["properties"]), len(rows["inspect_slots"])
            value: Any = each.value
            text = (
                value
                if isinstance(value, bytes)
                else octets(value)
                if isinstance(value, str)
                else b""
            )
            scalar = numbers(each.type, value) if not array else (0, 0, 0)
            format = each.format or "flat"
            rows["properties"].append(
                (
                    16 * each.block, id, octets(each.name), NUMBERS[each.type], *scalar, text,
                    (first if array else 0, len(slots)), each.block,
                    BUFFER_NUMBERS[format] if each.type in ("string", "bytes") else
                    FORMAT_NUMBERS[format],
                )
            )  # fmt: skip
            rows["inspect_slots"] += [
                (
                    16 * each.block, parent, number,
                    *(numbers(each.type, slot) if not isinstance(slot, str) else (0, 0, 0)),
                    octets(slot) if isinstance(slot, str) else None,
                )
                for number, slot in enumerate(slots)
            ]  # fmt: skip
        rows["inspect_links"] += [
            (
                16 * link.block, id, octets(link.name), octets(link.content),
                DISPOSITIONS.get(link.disposition, -1), link.block, b"not expanded",
            )
            for link in node.links
        ]  # fmt: skip
    return rows, diagnostics


def cells(table: Table, column: str) -> list[Any]:
    """A column, strings as bytes, doubles as bits, other numbers as they are."""
    kind = table.schema.column(column).kind
    values: Any = table[column]
    if kind == "text":
        return [values.bytes_of(row) for row in range(len(table))]
    if kind == "code":
        return [None if code < 0 else table.pool.bytes_of(code) for code in values.tolist()]
    if kind == "f8":
        return [bits(value) for value in values.tolist()]
    if kind == "array":
        return [tuple(pair) for pair in values.tolist()]
    if column == "disposition":
        return [value if value < 2 else -1 for value in values.tolist()]
    return values.tolist()  # type: ignore[no-any-return]


def rows_of(table: Table) -> list[Row]:
    assert table.array("row").tolist() == list(range(len(table)))
    return list(zip(*(cells(table, name) for name in table.columns if name != "row"), strict=True))


def findings(diagnostics: Diagnostics) -> Counter[tuple[str, int | None, int | None, Severity]]:
    return Counter((each.code, each.offset, each.record, each.severity) for each in diagnostics)


def agree(data: bytes) -> None:
    capture = opened(data)
    rows, diagnostics = expected(data)
    if not data:
        rows["nodes"].clear()  # no bytes have no root either
    for name, wanted in rows.items():
        assert rows_of(capture.table(name)) == wanted, name
    capture.diagnostics.forget(["FXF0102", "FXI0605"])
    assert findings(capture.diagnostics) == findings(diagnostics)
    assert capture.diagnostics.counts == diagnostics.counts
    records = list(opened(data).records())
    assert sum(record.nbytes for record in records) == len(data)
    summary = capture.summary()
    assert summary.records == len(records)
    assert summary.kinds == Counter(record.to_json()["record"] for record in records)
    assert summary.rows == {name: len(wanted) for name, wanted in rows.items()}


@hypothesis.given(data=vmos())
def test_agree_on_files(data: bytes) -> None:
    agree(data)


@hypothesis.given(data=damaged(vmos()))
def test_agree_on_damaged_files(data: bytes) -> None:
    agree(data)


@hypothesis.given(data=st.binary(max_size=200))
def test_agree_on_any_bytes(data: bytes) -> None:
    agree(data)


@share(1 / 6)
@hypothesis.given(data=vmos())
def test_agree_at_truncations(data: bytes) -> None:
    for length in range(0, min(len(data), 400), 5):
        agree(data[:length])


@cases("name", ["files", "legacy_v0"])
def test_agree_on_the_vectors(name: str) -> None:
    vectors = json.loads((CONFORMANCE / f"{name}.json").read_text("utf-8"))
    assert vectors
    for vector in vectors:
        data = bytes.fromhex(vector["hex"])
        agree(data.ljust(vector.get("zero_pad_to", 0), b"\0"))


@hypothesis.given(data=vmos() | damaged(vmos()), rows=st.sampled_from([1, 2, 7, 1000]))
def test_batches_are_the_table_wherever_they_break(data: bytes, rows: int) -> None:
    whole, streamed = opened(data), opened(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fx_inspect.read.batches.TEXT_AT_ONCE", 10)
        batches = {name: list(streamed.batches(name, rows)) for name in streamed.schemas}
    for name in whole.schemas:
        table = whole.table(name)
        assert all(0 < len(batch) <= rows for batch in batches[name])
        for column in table.columns:
            got = [cell for batch in batches[name] for cell in cells(batch, column)]
            if column == "array":
                got = [tuple(pair) for pair in got]
            assert got == cells(table, column), (name, column)
    assert findings(streamed.diagnostics) == findings(whole.diagnostics)


@hypothesis.given(data=vmos() | damaged(vmos()), limit=st.integers(1, 80))
def test_no_value_is_longer_than_the_limit(data: bytes, limit: int) -> None:
    capture, whole = opened(data, max_string=limit), opened(data)
    for name, column in (("nodes", "name"), ("properties", "name"), ("properties", "text")):
        names = [b"root"] if name == "nodes" and data else []
        names += [text[:limit] for text in cells(whole.table(name), column)[len(names) :]]
        assert cells(capture.table(name), column) == names
    slots = whole.table("inspect_slots")
    assert np.array_equal(capture.table("inspect_slots").array("int"), slots.array("int"))
