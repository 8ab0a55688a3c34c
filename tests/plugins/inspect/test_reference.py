"""The records of the scan held against the decoder that found them by itself before (frozen)."""

from __future__ import annotations

import json
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st
from tests.reference.inspect.decoder import RecordDecoder as Reference
from tests.reference.inspect.records import from_json as frozen_from_json

from fx_inspect.read.decoder import RecordDecoder
from fx_inspect.read.records import from_json
from fx_inspect.rules import RESERVED_BITS_SET, RULES
from fxframework.errors import WriteRefusedError
from fxframework.io.limits import Limits
from fxframework.model.diagnostics import Diagnostics

from .streams import damaged, vmos
from .trees import every_type


def said(kind: Any, data: bytes, limit: int) -> Any:
    """Records as JSON, and findings."""
    found = Diagnostics(RULES, limit=0)
    decoder = kind(diagnostics=found, limits=Limits(max_record=limit))
    shown = [each.to_json() for each in decoder.records(data)]
    # The scan also says which bits are set that should not be.
    return shown, [
        (each.code, each.offset, each.record, each.message.partition(": 0x")[0])
        if each.code == RESERVED_BITS_SET.code
        else (each.code, each.offset, each.record, each.message)
        for each in found
    ]


def agree(data: bytes, limit: int = 1 << 30) -> None:
    ours = said(RecordDecoder, data, limit)
    assert ours == said(Reference, data, limit)


@hypothesis.given(
    data=vmos() | damaged(vmos()) | st.binary(max_size=200),
    limit=st.sampled_from([1 << 30, 0, 64]),
)
def test_whatever_a_vmo_holds(data: bytes, limit: int) -> None:
    agree(data, limit)


def test_truncations() -> None:
    data = every_type()
    for end in range(0, len(data) + 1, 5):
        agree(data[:end])


def written(make: Any, given: dict[str, Any]) -> Any:
    """The bytes of a record's JSON, or why it is refused."""
    try:
        return make(given).pack()
    except WriteRefusedError as refused:
        return refused.code, refused.message


@hypothesis.given(data=st.data())
def test_edits_of_any_field(data: st.DataObject) -> None:
    file = data.draw(vmos() | damaged(vmos()) | st.just(every_type()))
    records = [each.to_json() for each in Reference().records(file)]
    hypothesis.assume(records)
    shown = json.loads(json.dumps(data.draw(st.sampled_from(records))))
    key = data.draw(st.sampled_from(sorted(shown)))
    values = [None, True, -1, 0, 3, 1 << 24, 1 << 32, 1 << 63, 1 << 64, 0.5, "NaN", "", "61", "x"]
    changed = data.draw(st.sampled_from([*values, [], [1], [-1, "NaN"], ["x"], {"a": 1}, "gone"]))
    if changed == "gone":
        del shown[key]
    else:
        shown[key] = changed
    assert written(from_json, shown) == written(frozen_from_json, shown)


@pytest.mark.parametrize("layout", ["new", "v0"])
def test_every_block_of_every_type(layout: str) -> None:
    fillings = [b"\0" * 56, b"\xff" * 56, b"\x04\x02" + b"\0" * 54, b"\x06" * 56, b"abc\xff" * 14]
    head = b"\0\2\2\0INSP" if layout == "new" else b"\x20\0\0\0INSP"
    for type in range(16):
        for order in range(3):
            first = (
                bytes([order, type, 3, 0])
                if layout == "new"
                else bytes([order | type << 4, 3, 0, 0])
            )
            blocks = [(first + filling)[: 16 << order] for filling in fillings]
            agree(head + bytes(8) + b"".join(blocks))
