"""`fxf explain FILE@OFFSET` of XRay traces: every byte is told, and what it means."""

from __future__ import annotations

from pathlib import Path

import pytest

from fx_xray import format as fx
from fx_xray.read import explain
from fx_xray.read.decoder import RecordDecoder
from fxframework.errors import UsageError
from fxframework.io.source import Source
from fxframework.io.words import FieldView

from ...cases import cases
from .traces import TSC, WHOLE, buffer, call, header, packed, trace

TRACES = Path(__file__).parents[2] / "conformance" / "xray"
EXPLAIN = {"xray": explain.explain_fdr, "xray-basic": explain.explain_basic}
DAMAGED = (
    header()
    + buffer(call(), b"\x15" * 16, b"\x0a" + bytes(7))
    + b"\x0a\0" * 60
    + buffer(call(5))
    + b"\x05"
)
FILES = {
    **WHOLE,
    "damaged": ("xray", DAMAGED),
    "short": ("xray", b"\5\0\1"),
    "odd": ("xray-basic", WHOLE["basic3-little"][1] + b"odd"),
}


def views(form: str, data: bytes, offset: int) -> list[FieldView]:
    return EXPLAIN[form](Source.open(data), offset)


def covered(form: str, data: bytes, offset: int) -> set[int]:
    """The bytes that the explanation of the record at an offset tells of."""
    found: set[int] = set()
    for view in views(form, data, offset):
        if "not listed" not in view.meaning:
            found.update(range(view.offset + view.low // 8, view.offset + view.high // 8 + 1))
    return found


@cases("name", FILES)
def test_every_byte_is_told(name: str) -> None:
    form, data = FILES[name]
    records = list(RecordDecoder(form).records(data))
    last_of_kind = {record.record: record for record in records}
    first_of_kind = {record.record: record for record in reversed(records)}
    for record in [*first_of_kind.values(), *last_of_kind.values()]:
        everything = set(range(record.offset, record.offset + record.nbytes))
        for offset in {record.offset, record.offset + record.nbytes - 1}:
            if record.nbytes < 512:
                assert covered(form, data, offset) == everything
            else:
                assert offset in covered(form, data, offset)


@cases("order", ["little", "big", "big-lsb"])
def test_fields_have_names_values_and_sections(order: str) -> None:
    form, data = WHOLE[f"fdr5-{order}"]
    header_views = {view.name: view for view in views(form, data, 9)}
    assert header_views["version"].value == 5
    assert header_views["cycle_frequency"].value == 2_500_000_000
    assert header_views["constant_tsc"].value == header_views["nonstop_tsc"].value == 1
    found = {view.name: view for view in views(form, data, 32 + 16 + 16 * 4)}
    assert (found["kind"].meaning, found["function_id"].value) == ("enter", 1)
    assert found["delta"].value == 100
    assert f"tsc {TSC + 100}" in found["delta"].meaning
    assert f"{(TSC + 100) * 2 // 5} ns" in found["delta"].meaning
    assert found["delta"].section.startswith("XRay FDR format of LLVM")


def test_signed_fields_show_their_value() -> None:
    data = header() + buffer(call(), thread=-8)
    thread = next(view for view in views("xray", data, 50) if view.name == "thread")
    assert thread.meaning.startswith("-8")
    assert thread.value == (1 << 32) - 8


def test_events_have_their_payload() -> None:
    data = trace()
    event = next(
        record for record in RecordDecoder("xray").records(data)
        if record.record == "custom_event"
    )  # fmt: skip
    found = [(view.name, view.meaning) for view in views("xray", data, event.offset + 17)]
    assert ("payload", "'custom'") in found
    assert any(name == "delta" and meaning.startswith("-2:") for name, meaning in found)


def test_records_without_a_time_say_so() -> None:
    data = header() + packed(fx.BufferExtents(bytes=24), fx.NewBuffer(thread=1), call())
    delta = next(view for view in views("xray", data, 64) if view.name == "delta")
    assert "no NewCPUId" in delta.meaning


def test_damage_is_told_by_its_rule() -> None:
    found = views("xray", DAMAGED, len(DAMAGED) - 1)
    assert "past the end of the file" in found[0].meaning


@pytest.mark.parametrize("name", ["fdr5-smallbuf-wrap-clang16", "fdr5-typed-shortextents-clang16"])
def test_buffers_before_are_stepped_over(name: str) -> None:
    data = (TRACES / f"{name}.xray").read_bytes()
    records = list(RecordDecoder("xray").records(data))
    for record in records[1::17]:
        near = RecordDecoder("xray").near(data, record.offset)
        found = [each for each in near if each.offset == record.offset]
        assert [each.to_json() for each in found] == [record.to_json()]
    last = list(RecordDecoder("xray").near(data, len(data) - 1))
    assert len(last) < len(records) // 2


@cases("offset", [-1, 3])
def test_bytes_that_are_not_there(offset: int) -> None:
    with pytest.raises(UsageError, match="3 bytes"):
        views("xray", b"\5\0\1", offset)
