"""The declared records held against the decoder that was written by hand before (frozen)."""

from __future__ import annotations

from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st
from tests.reference.xray.decoder import RecordDecoder as Reference

from fx_xray.read.decoder import RecordDecoder
from fx_xray.rules import RULES
from fxframework.io.limits import Limits
from fxframework.model.diagnostics import Diagnostics

from ...cases import cases
from .streams import basic_files, damaged, fdr_files
from .test_two_decoders import REAL, form_of
from .traces import WHOLE

FILES = {"xray": fdr_files(), "xray-basic": basic_files()}


def said(kind: Any, form: str, data: bytes, limit: int, *, mended: bool) -> Any:
    """Records as JSON, with their times and the calls of arguments; and findings."""
    found = Diagnostics(RULES, limit=0)
    decoder = kind(form, diagnostics=found, limits=Limits(max_record=limit))
    records = decoder.mended(data) if mended else decoder.records(data)
    shown = [
        (each.to_json(), [getattr(each, name, None) for name in ("ns", "row_offset")])
        for each in records
    ]
    return shown, [(each.code, each.offset, each.record, each.message) for each in found]


def agree(form: str, data: bytes, limit: int = 1 << 30) -> None:
    for mended in (False, True):
        declared = said(RecordDecoder, form, data, limit, mended=mended)
        assert declared == said(Reference, form, data, limit, mended=mended)


@pytest.mark.parametrize("form", FILES)
@hypothesis.given(data=st.data())
def test_whatever_a_trace_holds(form: str, data: st.DataObject) -> None:
    file = data.draw(FILES[form] | damaged(FILES[form]) | st.binary(max_size=200))
    agree(form, file, data.draw(st.sampled_from([1 << 30, 20])))


@pytest.mark.parametrize("name", WHOLE)
def test_truncations(name: str) -> None:
    form, data = WHOLE[name]
    for end in range(0, len(data) + 1, 5):
        agree(form, data[:end])


@cases("name", REAL)
def test_real_traces(name: str) -> None:
    data = REAL[name].read_bytes()
    agree(form_of(data), data)
