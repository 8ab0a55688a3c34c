"""What `otlp-traces` writes is what OpenTelemetry's own classes read, and says what slices do."""

from __future__ import annotations

import base64
import json
import math
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

import fxframework as fxf
from fx_log import LogWriter
from fx_trace.sample import sample
from fx_trace.write.archive import Archive

from ..cases import cases

CONFORMANCE = Path(__file__).parents[1] / "conformance"
XRAY = sorted((CONFORMANCE / "xray").glob("fdr5-m*.xray"))
if os.environ.get("FXF_REQUIRE_ORACLES"):
    from google.protobuf import json_format
    from opentelemetry.proto.logs.v1 import logs_pb2
    from opentelemetry.proto.trace.v1 import trace_pb2
else:
    why = "the OTLP oracle needs the package opentelemetry-proto"
    json_format = pytest.importorskip("google.protobuf.json_format", reason=why)
    trace_pb2 = pytest.importorskip("opentelemetry.proto.trace.v1.trace_pb2", reason=why)
    logs_pb2 = pytest.importorskip("opentelemetry.proto.logs.v1.logs_pb2", reason=why)
HEX = {"traceId", "spanId", "parentSpanId"}
"""Hexadecimal in OTLP/JSON, base 64 in the JSON of protobuf."""
HOSTILE = '\x1b"\\</script>\u202e'
NAN = float("nan")


def proto(value: Any) -> Any:
    """OTLP/JSON as the JSON of protobuf."""
    if isinstance(value, dict):
        return {
            key: base64.b64encode(bytes.fromhex(each)).decode() if key in HEX else proto(each)
            for key, each in value.items()
        }
    return [proto(each) for each in value] if isinstance(value, list) else value


def converted(*inputs: Path, to: str = "otlp-traces", **options: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        fxf.convert(list(inputs), out, to=to, **options)
        document = json.loads(out.read_bytes())
    kind = trace_pb2.TracesData if to == "otlp-traces" else logs_pb2.LogsData
    return json_format.ParseDict(proto(document), kind())


def spans_of(data: Any) -> list[tuple[dict[str, Any], Any]]:
    """The attributes of the resource, and the span."""
    return [
        (attributes(each.resource), span)
        for each in data.resource_spans
        for scope in each.scope_spans
        for span in scope.spans
    ]


def attributes(owner: Any) -> dict[str, Any]:
    found = {}
    for each in owner.attributes:
        assert each.key not in found
        which = each.value.WhichOneof("value")
        found[each.key] = which and getattr(each.value, which)
    return found


@cases("path", [None, *XRAY], ids=lambda path: path.name if path else "trace")
def test_spans_are_the_slices(path: Path | None, tmp_path: Path) -> None:
    if path is None:
        path = tmp_path / "sample.fxt"
        path.write_bytes(sample(40_000))
    found = spans_of(converted(path))
    with fxf.open(path) as capture:
        slices, offset = capture.table("slices"), capture.utc_offset_ns or 0
        wanted = list(
            zip(slices.texts("name"), slices.array("ts").tolist(), slices.array("dur").tolist(),
                slices.array("parent").tolist(), slices.array("row").tolist(), strict=True)
        )  # fmt: skip
        threads = capture.table("threads")
        pids = dict(zip(threads.array("id").tolist(), threads.array("pid").tolist(), strict=True))
        rows: dict[int, list[int]] = {}
        for row, thread in enumerate(slices.array("thread").tolist()):
            rows.setdefault(pids.get(thread, 0), []).append(row)
    by_row: dict[int, Any] = {}
    for resource, span in found:  # in the order of their process's slices
        by_row[rows[resource.get("process.pid", 0)].pop(0)] = span
    assert sorted(by_row) == list(range(len(wanted)))
    assert len({span.span_id for span in by_row.values()}) == len(wanted)
    for row, (name, ts, length, parent, _) in enumerate(wanted):
        span = by_row[row]
        assert (len(span.trace_id), len(span.span_id)) == (16, 8)
        assert any(span.trace_id)
        assert any(span.span_id)
        assert (span.name, span.start_time_unix_nano) == (name, ts + offset)
        if length >= 0:
            assert span.end_time_unix_nano == ts + offset + length
        else:
            assert span.end_time_unix_nano >= ts + offset
            assert attributes(span)["fuchsia.unfinished"] is True
        above = by_row.get(parent)
        assert span.parent_span_id == (above.span_id if above else b"")
        assert (span.trace_id == above.trace_id) if above else span.trace_id[8:] == span.span_id


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """An order that crosses two threads, with arguments of every type."""
    path = tmp_path / "shop.fxt"
    with Archive(path) as archive:
        shop = archive.provider(1, "shop", ticks_per_second=1_000_000_000)
        shop.process(100, "front")
        till, bank = shop.thread(100, 101, "till"), shop.thread(200, 201, "bank")
        shop.duration_begin("shop", "order", {
            "i": -5, "u": 1 << 63, "f": NAN, "s": HOSTILE, "b": True, "n": None,
            "thread.id": 7, "": 1}, thread=till, timestamp=1000)  # fmt: skip
        shop.duration_begin("shop", "ask", thread=till, timestamp=2000)
        shop.flow_begin("shop", "go", 1, thread=till, timestamp=2500)
        shop.duration_begin("bank", "check", thread=bank, timestamp=3000)
        # Points of one id are of one flow, whatever they are called.
        shop.flow_step("bank", "came", 1, thread=bank, timestamp=3000)
        shop.duration_end("bank", "check", thread=bank, timestamp=4000)
        shop.duration_end("shop", "ask", thread=till, timestamp=5000)
        shop.flow_end("shop", "back", 1, thread=till, timestamp=5500)
        shop.flow_step("shop", "go", 2, thread=bank, timestamp=3600)
        shop.duration_end("shop", "order", thread=till, timestamp=6000)
        shop.async_begin("net", "socket", 9, thread=till, timestamp=1500)
    return path


def test_arguments_flows_and_processes(shop: Path) -> None:
    found = {span.name: (resource, span) for resource, span in spans_of(converted(shop))}
    spans = {name: span for name, (_, span) in found.items()}
    assert found["order"][0] == {"service.name": "front", "process.pid": 100}
    assert found["check"][0] == {"service.name": "unknown_service", "process.pid": 200}
    own = attributes(spans["order"])
    assert math.isnan(own.pop("f"))
    assert own == {
        "i": -5, "u": str(1 << 63), "s": HOSTILE, "b": True, "n": None, "thread.id#2": 7,
        "fuchsia.unnamed": 1, "thread.id": 101, "thread.name": "till", "fuchsia.category": "shop",
    }  # fmt: skip
    joined = {(spans[name].span_id, link.span_id) for name in spans for link in spans[name].links}
    order, ask, check = (spans[name].span_id for name in ("order", "ask", "check"))
    assert joined == {(check, ask), (order, check)}
    assert spans["check"].links[0].trace_id == spans["order"].trace_id
    assert spans["check"].trace_id != spans["order"].trace_id
    assert spans["socket"].parent_span_id == b""
    assert attributes(spans["socket"])["fuchsia.unfinished"] is True


def test_ids_are_the_same_each_time_and_others_for_another_capture(
    shop: Path, tmp_path: Path
) -> None:
    again = tmp_path / "again.fxt"
    again.write_bytes(shop.read_bytes())
    first, second = (
        [(span.trace_id, span.span_id) for _, span in spans_of(converted(path))]
        for path in (shop, again)
    )
    assert first == second
    merged = [span.span_id for _, span in spans_of(converted(shop, XRAY[0]))]
    assert len(set(merged)) == len(merged)
    assert set(merged) > {span for _, span in first}


@pytest.mark.parametrize(("ns", "offset"), [(1 << 60, 1 << 60), (-(1 << 60), 0)])
def test_times_begin_where_the_offset_says(shop: Path, ns: int, offset: int) -> None:
    found = {span.name: span for _, span in spans_of(converted(shop, utc_offset_ns=ns))}
    assert found["order"].start_time_unix_nano == (1000 + offset if offset else 0)


def test_logs_have_the_ids_of_their_slices(shop: Path, tmp_path: Path) -> None:
    path = tmp_path / "shop.fxlog"
    times = {900: None, 1000: "order", 2200: "ask", 5000: "order", 6000: None}
    with LogWriter(path) as log:
        for ns in times:
            log.write("info", f"{ns}", time=ns, pid=100, tid=101)
        log.write("info", "another thread", time=3500, pid=200, tid=201)
        log.write("info", "nobody", time=3500, pid=1, tid=1)
    spans = {span.name: (span.trace_id, span.span_id) for _, span in spans_of(converted(shop))}
    wanted = {f"{ns}": spans.get(str(name), (b"", b"")) for ns, name in times.items()}
    wanted |= {"another thread": spans["check"], "nobody": (b"", b"")}
    data = converted(shop, path, to="otlp")
    found = {
        log.body.string_value: (log.trace_id, log.span_id)
        for resource in data.resource_logs
        for scope in resource.scope_logs
        for log in scope.log_records
    }
    assert found == wanted
    with pytest.raises(fxf.FxError, match="no rows in logs"):
        converted(shop, to="otlp")
