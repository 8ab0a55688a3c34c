"""Traces that say the same are the same to `fxf diff`, however they are encoded."""

from __future__ import annotations

import attrs
import hypothesis
import orjson

from fx_trace import format as wire
from fx_trace.read.capture import TraceCapture
from fx_trace.read.decoder import RecordEncoder
from fx_trace.records import Argument, Damaged, Event, StringRecord, ThreadRecord, TraceRecord
from fxframework.io.source import Source
from fxframework.kit import difference
from fxframework.kit.difference import compare
from fxframework.model.capture import OpenRequest

from .streams import damaged, fxt_streams


def opened(data: bytes) -> TraceCapture:
    return TraceCapture(Source.open(data), OpenRequest())


def packed(*records: TraceRecord) -> bytes:
    return wire.MAGIC_BYTES + b"".join(record.pack() for record in records)


@hypothesis.given(damaged(fxt_streams()))
def test_in_bulk_records_say_what_they_say_one_by_one(data: bytes) -> None:
    shown = [record.to_json() for record in opened(data).records()]
    expected = [
        hash(orjson.dumps(difference._contents(orjson.dumps(one)))) % 2**64
        for one in shown
        if one["record"] not in {"string", "thread"}
    ]
    found = difference._digested_side(opened(data))
    assert found.digests.tolist() == expected
    assert [found.names[kind] for kind in found.kinds] == [
        one["record"] for one in shown if one["record"] not in {"string", "thread"}
    ]


def inlined(data: bytes) -> bytes:
    """The same trace with every string and thread inline, and none registered."""
    encoder = RecordEncoder()
    out = b""
    for record in opened(data).records():
        assert isinstance(record, TraceRecord)
        if isinstance(record, StringRecord | ThreadRecord):
            continue
        if not isinstance(record, Damaged) and not record.opaque:
            more = {}
            if hasattr(record, "args"):
                more["args"] = tuple(attrs.evolve(each, refs=None) for each in record.args)
            record = attrs.evolve(record, refs=None, raw=None, **more)
        out += encoder.encode(record)
    return out


@hypothesis.given(fxt_streams(odd=False, magic=True))
def test_indexes_and_inline_values_are_the_same(data: bytes) -> None:
    hypothesis.assume(b"<thr#" not in b"".join(opened(data).records_json()))
    found = compare(opened(data), opened(inlined(data)), by=["record"])
    assert found.same


def test_other_indexes_are_the_same_and_other_values_are_not() -> None:
    def made(name: int, thread: int, text: str) -> bytes:
        argument = Argument(name=text, type="int32", value=1, refs={"name": name})
        return packed(
            StringRecord(index=name, value=text),
            ThreadRecord(index=thread, pid=1, tid=2),
            Event(event="duration_complete", timestamp=1, end_timestamp=5, thread=(1, 2),
                  category="c", name=text, refs={"name": name, "thread": thread},
                  args=(argument,)),
        )  # fmt: skip

    assert compare(opened(made(1, 1, "n")), opened(made(7, 9, "n"))).same
    found = compare(opened(made(1, 1, "n")), opened(made(1, 1, "m")))
    assert not found.same
    assert found.records is not None
    assert found.records.only == ({"event": 1}, {"event": 1})
