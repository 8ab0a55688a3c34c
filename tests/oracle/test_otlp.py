"""What `otlp` writes is what OpenTelemetry's own classes read, and every field of it is right."""

from __future__ import annotations

import json
import math
import os
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fx_log.export import otlp
from fx_log.format import ArgType
from fx_log.severity import LEVELS, otel_number

from ..plugins.log.captures import Arg, Log, export, exporter, hand_made, logs, text

OTLP = exporter("otlp")
OBSERVED = 1_800_000_000_000_000_000


def _package(name: str) -> ModuleType:
    """A module of the official classes. Without them the tests skip, or fail where they must."""
    if os.environ.get("FXF_REQUIRE_ORACLES"):
        import importlib

        return importlib.import_module(name)
    return pytest.importorskip(name, reason="the OTLP oracle needs the package opentelemetry-proto")


json_format = _package("google.protobuf.json_format")
logs_pb2 = _package("opentelemetry.proto.logs.v1.logs_pb2")
service_pb2 = _package("opentelemetry.proto.collector.logs.v1.logs_service_pb2")


def read(data: bytes) -> Any:
    """The output as the official classes have it: as stored, and as sent, which is the same."""
    stored = json_format.Parse(data, logs_pb2.LogsData())
    sent = json_format.Parse(data, service_pb2.ExportLogsServiceRequest())
    assert stored.SerializeToString() == sent.SerializeToString()
    return stored


def plain(value: Any) -> tuple[str | None, Any]:
    """An AnyValue: which it is, and what."""
    which = value.WhichOneof("value")
    if which == "array_value":
        return which, [plain(each) for each in value.array_value.values]
    found = None if which is None else getattr(value, which)
    return which, repr(found) if isinstance(found, float) else found


def attributes(owner: Any) -> dict[str, tuple[str | None, Any]]:
    found = {each.key: plain(each.value) for each in owner.attributes}
    assert len(found) == len(owner.attributes), "an attribute's key stands twice"
    return found


def whole(number: int) -> tuple[str, int | str]:
    return ("int_value", number) if number < 1 << 63 else ("string_value", str(number))


def value_of(arg: Arg) -> tuple[str | None, Any]:
    value = arg.value
    if arg.code not in set(ArgType):
        return "bytes_value", value
    if arg.type is not None or isinstance(value, str | bytes):
        return "string_value", text(value)
    if value is None:
        return None, None
    if isinstance(value, bool):
        return "bool_value", value
    return ("double_value", repr(value)) if isinstance(value, float) else whole(value)


def expected_attributes(log: Log, moment: int) -> dict[str, tuple[str | None, Any]]:
    fields: dict[str, tuple[str | None, Any] | None] = {
        "process.pid": None if log.pid is None else whole(log.pid),
        "thread.id": None if log.tid is None else whole(log.tid),
        "code.file.path": None if log.file is None else ("string_value", text(log.file)),
        "code.line.number": None if log.line is None else whole(log.line),
        "fuchsia.severity.raw": (
            whole(log.severity) if log.severity != LEVELS[log.severity] else None
        ),
        "fuchsia.dropped": whole(log.dropped) if log.dropped else None,
        "fuchsia.rolled_out": whole(log.rolled_out) if log.rolled_out else None,
        "fuchsia.boot_time_ns": None if moment else whole(log.ts),
        "verbosity": whole(log.verbosity) if log.verbosity else None,
    }
    if log.tags:
        tags = [("string_value", text(tag)) for tag in log.tags]
        fields["fuchsia.tags"] = ("array_value", tags)
    found = {key: value for key, value in fields.items() if value is not None}
    names = {text(arg.name) or "fuchsia.unnamed" for arg in log.args}
    own = dict(found)
    for arg in log.args:
        name = text(arg.name) or "fuchsia.unnamed"
        key, number = name, 2
        while key in own or (key != name and key in names):
            key, number = f"{name}#{number}", number + 1
        own[key] = value_of(arg)
    return own


def resource_of(log: Log) -> dict[str, tuple[str | None, Any]]:
    moniker = None if log.component is None else text(log.component)
    found = {"service.name": (moniker or "").rpartition("/")[2] or "unknown_service"}
    if moniker is not None:
        found["fuchsia.moniker"] = moniker
    if log.url is not None:
        found["fuchsia.component_url"] = text(log.url)
    return {key: ("string_value", value) for key, value in found.items()}


@given(
    st.lists(logs, min_size=1, max_size=8), st.sampled_from([0, 1_700_000_000 * 10**9, 2**63 - 1])
)
def test_every_field_of_every_log_is_there(some: list[Log], offset: int) -> None:
    data, _ = export(OTLP, hand_made(*some), utc_offset_ns=offset, observed_ns=OBSERVED)
    found = read(data)
    by_resource: dict[str, list[Log]] = {}
    for log in some:
        by_resource.setdefault(repr(resource_of(log)), []).append(log)
    assert [repr(attributes(each.resource)) for each in found.resource_logs] == list(by_resource)
    for each, mine in zip(found.resource_logs, by_resource.values(), strict=True):
        (scope,) = each.scope_logs
        assert scope.scope.name == "fxframework"
        for record, log in zip(scope.log_records, mine, strict=True):
            moment = log.ts + offset if offset and 0 < log.ts + offset < 1 << 64 else 0
            assert record.time_unix_nano == moment
            assert record.observed_time_unix_nano == OBSERVED
            assert record.severity_number == otel_number(log.severity)
            assert record.severity_text == LEVELS[log.severity].name
            message = (None, None) if log.message is None else ("string_value", text(log.message))
            assert plain(record.body) == message
            assert attributes(record) == expected_attributes(log, moment)


def test_keys_never_stand_twice() -> None:
    names = ["k", "k", "k#2", "", "process.pid", "", "process.pid", "k"]
    args = [Arg(name=name, value=at) for at, name in enumerate(names)]
    data, _ = export(OTLP, hand_made(Log(pid=9, args=args)), observed_ns=1)
    (record,) = read(data).resource_logs[0].scope_logs[0].log_records
    found = attributes(record)
    assert found["process.pid"] == whole(9)
    assert found["k"] == whole(0)
    assert found["k#2"] == whole(2)
    assert found["fuchsia.unnamed"] == whole(3)
    numbers = sorted(value for _, value in found.values())
    assert numbers == [0, 0, *range(1, 8), 9]  # the time at boot is 0


def test_thousands_of_arguments_of_one_name() -> None:
    args = [Arg(name="k", value=at) for at in range(4000)]
    data, _ = export(OTLP, hand_made(Log(args=args)), observed_ns=1)
    (record,) = read(data).resource_logs[0].scope_logs[0].log_records
    assert len(attributes(record)) == 4001


def test_doubles_that_json_does_not_have() -> None:
    values = [math.nan, math.inf, -math.inf, 5e-324, 1.7976931348623157e308, -0.0]
    args = [Arg(name=str(at), value=value) for at, value in enumerate(values)]
    data, _ = export(OTLP, hand_made(Log(args=args)), observed_ns=1)
    json.loads(data, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    (record,) = read(data).resource_logs[0].scope_logs[0].log_records
    found = attributes(record)
    assert [found[str(at)] for at in range(6)] == [("double_value", repr(v)) for v in values]


def test_many_logs_of_several_captures_are_one_object(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp, "CHUNK", 7)
    some = [Log(ts=at, component=f"c{at % 3}", message=str(at)) for at in range(300)]
    data, _ = export(OTLP, hand_made(*some), hand_made(*some[:10]), observed_ns=1)
    found: dict[str, list[int]] = {}
    for each in read(data).resource_logs:
        (service,) = [
            a.value.string_value for a in each.resource.attributes if a.key == "service.name"
        ]
        for record in each.scope_logs[0].log_records:
            found.setdefault(service, []).append(int(record.body.string_value))
    assert found == {f"c{n}": [*range(n, 300, 3), *range(n, 10, 3)] for n in range(3)}


def test_without_a_time_of_observation_it_is_now() -> None:
    import time

    before = time.time_ns()
    data, _ = export(OTLP, hand_made(Log()))
    (record,) = read(data).resource_logs[0].scope_logs[0].log_records
    assert before <= record.observed_time_unix_nano <= time.time_ns()
