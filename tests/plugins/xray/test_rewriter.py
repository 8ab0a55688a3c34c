"""Records written one by one: the bytes that they were read from, or a reason why not."""

from __future__ import annotations

import pytest

from fx_xray.format import BASIC_VERSIONS, FDR_VERSIONS
from fx_xray.rules import RULES
from fx_xray.write.rewriter import open_basic_writer, open_writer
from fxframework.errors import UsageError, WriteRefusedError
from fxframework.io.sink import Sink
from fxframework.model.diagnostics import Diagnostics

from ...cases import cases
from .packed import opened
from .traces import basic, trace


@cases("version", FDR_VERSIONS)
def test_records_give_their_bytes(version: int) -> None:
    data = trace(version)
    for as_json in (False, True):
        sink = Sink.memory()
        writer = open_writer(sink, {}, Diagnostics(RULES))
        for record in opened(data).records():
            writer.write(record.to_json() if as_json else record)
        writer.close()
        assert sink.getvalue() == data


@cases("version", BASIC_VERSIONS)
def test_records_of_basic_mode_give_their_bytes(version: int) -> None:
    data = basic(version)
    sink = Sink.memory()
    writer = open_basic_writer(sink, {}, Diagnostics(RULES))
    for record in opened(data, "xray-basic").records():
        writer.write(record)
    writer.close()
    assert sink.getvalue() == data


def test_another_byte_order_may_be_asked_for() -> None:
    sink = Sink.memory()
    writer = open_writer(sink, {"write_byte_order": "big"}, Diagnostics(RULES))
    for record in opened(trace(5)).records():
        writer.write(record)
    writer.close()
    assert sink.getvalue() == trace(5, "big")


def test_a_refused_record_leaves_nothing() -> None:
    sink = Sink.memory()
    writer = open_writer(sink, {}, Diagnostics(RULES))
    with pytest.raises(WriteRefusedError) as refused:
        writer.write({"record": "new_buffer", "thread": 1})
    assert refused.value.code == "FXX0501"
    writer.close()
    assert not sink.getvalue()


@cases("name", ["version", "buffer_size", "names"])
def test_options_that_are_not_for_records_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match=name):
        open_writer(Sink.memory(), {name: 4}, Diagnostics(RULES))
