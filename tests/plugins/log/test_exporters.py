"""`text` and `json` of logs: what ffx prints, from tables, with nothing that breaks a line."""

from __future__ import annotations

import base64
import json
import math
import re
import struct
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fx_log.export import presentation
from fx_log.severity import LEVELS
from fx_log.write.writer import LogWriter
from fxframework.errors import UsageError, WriteRefusedError
from fxframework.host import default_host
from fxframework.kit import memo
from fxframework.model.capture import Capture
from fxframework.model.schema import STANDARD_TABLES, Column

from ...bench.measures import peak_of
from ...cases import cases
from ...oracle.journal import entries
from .captures import Arg, HandMade, Log, export, exporter, hand_made, logs, text

VECTORS = Path(__file__).parents[2] / "conformance" / "log"
PRESENTATION = json.loads((VECTORS / "presentation.json").read_text("utf-8"))
BANDS = json.loads((VECTORS / "severity.json").read_text("utf-8"))["bands"]
TEXT, JSON = exporter("text"), exporter("json")
NO_OFFSET = "wall times: the offset from UTC is not known (-o utc_offset_ns=NS)"
SAME_NAME = "arguments of a name that another of the same log has"
NOT_UTF8 = "strings that are not UTF-8, in part"


def vector_log(fields: Mapping[str, Any]) -> Log:
    assert fields["severity"] == "INFO"
    return Log(
        ts=fields["timestamp"],
        severity=0x30,
        component=fields["moniker"],
        url=fields["component_url"],
        pid=fields["pid"],
        tid=fields["tid"],
        message=fields["message"],
        file=fields["file"],
        line=fields["line"],
        tags=fields["tags"],
        dropped=fields.get("dropped", 0),
        rolled_out=fields.get("rolled_out", 0),
        args=[Arg(name=name, value=value) for name, value in fields["keys"].items()],
    )


def lines(*captures: Capture, **options: Any) -> list[str]:
    output, _ = export(TEXT, *captures, **options)
    assert output.endswith(b"\n")
    return output.decode().removesuffix("\n").split("\n")


def line(log: Log, **options: Any) -> str:
    (one,) = lines(hand_made(log), **options)
    return one


def shown(log: Log, **options: Any) -> Any:
    output, _ = export(JSON, hand_made(log), wrap=False, **options)
    return json.loads(output)


# --- Text ----------------------------------------------------------------------------------------


@cases("case", PRESENTATION["text"], ids=lambda case: case["name"])
def test_lines_are_those_of_the_reference(case: dict[str, Any]) -> None:
    options = {
        "utc_offset_ns" if name == "offset" else name: value
        for name, value in case["options"].items()
    }
    log = vector_log({**PRESENTATION["base_log"], **case.get("changes", {})})
    assert line(log, **options) == case["expected"]


@cases(
    ("ts", "expected"),
    [
        (0, "[00000.000000]"),
        (999, "[00000.000000]"),
        (1_999, "[00000.000001]"),
        (99_999_999_999_999, "[99999.999999]"),
        (100_000_000_000_000, "[100000.000000]"),
        (2**63 - 1, "[9223372036.854775]"),
        (-1, "[00000.000000]"),
        (-(2**63), "[00000.000000]"),
    ],
)
@cases("clock", ["boot", "monotonic"])
def test_times_are_seconds_to_the_microsecond(ts: int, expected: str, clock: str) -> None:
    assert line(Log(ts=ts), time=clock).startswith(expected + "[][]")


def test_long_and_short_times_stand_side_by_side() -> None:
    times = [5, 10**14 + 7_000, 12_345_678_901, 10**18, 99_999 * 10**9, 0]
    expected = [f"[{ts // 10**9:05d}.{ts // 1000 % 10**6:06d}]" for ts in times]
    found = lines(hand_made(*(Log(ts=ts) for ts in times)))
    assert [one.partition("]")[0] + "]" for one in found] == expected


@cases(
    ("ts", "offset", "expected"),
    [
        (0, 1_700_000_000_000_000_000, "[2023-11-14 22:13:20.000]"),
        (1_999_999, 1_700_000_000_000_000_000, "[2023-11-14 22:13:20.001]"),
        (0, -1, "[1969-12-31 23:59:59.999]"),
        (2**63 - 1, 2**63 - 1, "[2554-07-21 23:34:33.709]"),
        (-(2**63), 1 - 2**63, "[1385-06-12 00:25:26.290]"),
    ],
)
def test_wall_times(ts: int, offset: int, expected: str) -> None:
    for options in ({"time": "utc"}, {"time": "wall"}, {"time": "wall", "tz": "utc"}):
        assert line(Log(ts=ts), utc_offset_ns=offset, **options).startswith(expected)


def test_local_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "XYZ-05:30")
    time.tzset()
    try:
        offset = 1_700_000_000_000_000_000
        for options in ({"time": "local"}, {"time": "wall", "tz": "local"}):
            found = line(Log(), utc_offset_ns=offset, **options)
            assert found.startswith("[2023-11-15 03:43:20.000]")
    finally:
        monkeypatch.undo()
        time.tzset()


def test_the_capture_may_say_the_offset_and_the_option_goes_before() -> None:
    capture = hand_made(Log(ts=1), utc_offset_ns=60_000_000_000)
    assert lines(capture, time="utc")[0].startswith("[1970-01-01 00:01:00.000]")
    assert lines(capture, time="utc", utc_offset_ns=10**9)[0].startswith(
        "[1970-01-01 00:00:01.000]"
    )


def test_without_an_offset_boot_time_stands_and_is_reported_once() -> None:
    output, dropped = export(TEXT, hand_made(Log(ts=10**9), Log()), hand_made(Log()), time="utc")
    assert output.startswith(b"[00001.000000]")
    assert dropped == {NO_OFFSET: 3}


def test_what_is_not_given() -> None:
    assert line(Log()) == "[00000.000000][][][] INFO: <missing message>"
    assert line(Log(message="", pid=0, tid=0)) == "[00000.000000][0][0][] INFO: "
    assert line(Log(message="m", file="f.cc"), show_metadata=False) == (
        "[00000.000000][] INFO: [f.cc] m"
    )
    assert line(Log(message="m", line=7)) == "[00000.000000][][][] INFO: m"
    assert line(Log(message="m", file="f.cc", line=0)) == "[00000.000000][][][] INFO: [f.cc(0)] m"


def test_a_message_ends_at_its_first_nul() -> None:
    capture = hand_made(Log(message="seen\0not seen"), Log(message="whole\0"))
    output, dropped = export(TEXT, capture)
    assert [one.rpartition(": ")[2] for one in output.decode().splitlines()] == ["seen", "whole"]
    assert dropped == {"ends of messages, behind a NUL": 1}


@cases(
    ("value", "expected"),
    [
        (None, "null"),
        (True, "true"),
        (-5, "-5"),
        (2**64 - 1, "18446744073709551615"),
        (5.0, "5"),
        (-0.0, "-0"),
        (0.1, "0.1"),
        (1e21, "1" + 21 * "0"),
        (1.5e-7, "0.00000015"),
        (math.nan, "NaN"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        ("two words", "two words"),
        ("", ""),
    ],
)
def test_values_are_shown_as_the_reference_does(value: object, expected: str) -> None:
    assert line(Log(message="m", args=[Arg(name="k", value=value)])).endswith(f" m k={expected}")


def test_bytes_of_an_unknown_type_are_hex() -> None:
    log = Log(message="m", args=[Arg(name="k", value=b"\x01\xff", type=7)])
    assert line(log).endswith(" m k=[01ff]")
    assert shown(log)["payload"]["root"]["keys"] == {"k": "01ff"}


@cases("number", [1, 2, 7, 8, *range(10, 16)])
@cases("name", ["text", "json", "otlp", "journald", "csv", "html", "perfetto"])
def test_every_exporter_keeps_the_bytes_of_a_type_that_logs_do_not_have(
    name: str, number: int
) -> None:
    argument = struct.pack("<Q8sQ", number | 3 << 4 | 0x8003 << 16, b"key", 0x0706050403020AFF)
    record = struct.pack("<Qq", 9 | 5 << 4 | 0x30 << 56, 0) + argument
    host = default_host()
    with host.open(record, format="log") as capture:
        output, _ = export(host.exporter(name, format="log", tables=capture.tables), capture)
    data = argument[-8:]
    form = {"journald": data, "otlp": base64.b64encode(data)}.get(name, data.hex().encode())
    assert form in output


def test_keys_are_in_order_of_their_names_and_repeat() -> None:
    names = ["b", "a b", "a", "B", "b"]
    log = Log(
        message="m",
        verbosity=2,
        args=[Arg(name=name, value=number) for number, name in enumerate(names)],
    )
    assert line(log).endswith(" m B=3 a=2 a b=1 b=0 b=4 verbosity=2")


@cases("case", BANDS, ids=lambda case: str(case["raw"]))
def test_severities_are_named_by_their_bands(case: dict[str, Any]) -> None:
    log = Log(severity=case["raw"])
    assert f"[] {case['severity']}: " in line(log)
    metadata = shown(log)["metadata"]
    assert metadata["severity"] == case["severity"]
    expected = case["raw"] if case["raw_severity_emitted"] else None
    assert metadata.get("raw_severity") == expected


def test_colours_are_those_of_the_severities() -> None:
    severities = [0x10, 0x20, 0x30, 0x40, 0x50, 0x60]
    capture = hand_made(*(Log(severity=severity, message="m") for severity in severities))
    starts = ["\x1b[95m", "\x1b[94m", "", "\x1b[33m", "\x1b[31m", "\x1b[97;41m"]
    bare = lines(capture)
    expected = [
        f"{start}{one}" + "\x1b[0m" * bool(start) for start, one in zip(starts, bare, strict=True)
    ]
    assert lines(capture, color=True) == expected
    lost = line(Log(dropped=2, rolled_out=3), color=True)
    assert lost.endswith("\x1b[0m\x1b[33m [dropped=2]\x1b[0m\x1b[33m [rolled=3]\x1b[0m")


@given(st.lists(logs, min_size=1, max_size=6))
def test_nothing_breaks_a_line_or_hides_in_it(some: list[Log]) -> None:
    output, _ = export(TEXT, hand_made(*some))
    found = output.decode().splitlines()
    assert len(found) == len(some)
    assert all(one.isprintable() for one in found)


@cases("hostile", ["a\nb", "\x1b[2J", "\u2028", "\u202e", "\x9b", "\u00a0", "\x7f"])
def test_what_is_not_printable_stands_as_json(hostile: str) -> None:
    log = Log(message=hostile, component=hostile, args=[Arg(name="k", value=hostile)])
    quoted = re.findall(r'"[^"]*"', line(log))
    assert [json.loads(one) for one in quoted] == [hostile, hostile, hostile]


# --- JSON ----------------------------------------------------------------------------------------


@cases("case", PRESENTATION["json"], ids=lambda case: case["name"])
def test_objects_are_those_of_the_reference(case: dict[str, Any]) -> None:
    expected = case["expected"]
    metadata, root = expected["metadata"], expected["payload"]["root"]
    log = Log(
        ts=metadata["timestamp"],
        component=expected["moniker"],
        url=metadata["component_url"],
        message=root["message"].get("value"),
        pid=metadata.get("pid"),
        tid=metadata.get("tid"),
        file=metadata.get("file"),
        line=metadata.get("line"),
        tags=metadata["tags"],
        dropped=sum(error["dropped_logs"]["count"] for error in metadata.get("errors", [])),
        args=[Arg(name=name, value=value) for name, value in root.get("keys", {}).items()],
    )
    assert shown(log) == expected
    (wrapped,) = export(JSON, hand_made(log))[0].splitlines()
    assert json.loads(wrapped) == {"data": {"TargetLog": expected}}


def projection(log: Log) -> dict[str, Any]:
    """What `json` is to give of a log, written down without regard to speed."""
    level = LEVELS[log.severity]
    metadata: dict[str, Any] = {
        "timestamp": log.ts,
        "severity": level.name,
        "tags": [text(tag) for tag in log.tags],
    }
    if log.severity != level:
        metadata["raw_severity"] = log.severity
    for name in ("pid", "tid", "line"):
        if getattr(log, name) is not None:
            metadata[name] = getattr(log, name)
    for name, value in (("component_url", log.url), ("file", log.file)):
        if value is not None:
            metadata[name] = text(value)
    counts = {"dropped_logs": log.dropped, "rolled_out_logs": log.rolled_out}
    errors = [{name: {"count": count}} for name, count in counts.items() if count]
    if errors:
        metadata["errors"] = errors
    keys: dict[str, Any] = {"verbosity": log.verbosity} if log.verbosity else {}
    for arg in log.args:
        value = arg.value
        if arg.type is not None:
            value = value.hex()
        elif isinstance(value, str | bytes):
            value = text(value)
        elif isinstance(value, float) and not math.isfinite(value):
            value = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
        keys.setdefault(text(arg.name), value)
    message = {} if log.message is None else {"value": text(log.message)}
    root: dict[str, Any] = {"message": message}
    if keys:
        root["keys"] = {name: keys[name] for name in sorted(keys)}
    return {
        "version": 1,
        "data_source": "Logs",
        "moniker": "UNKNOWN" if log.component is None else text(log.component),
        "metadata": metadata,
        "payload": {"root": root},
    }


@given(st.lists(logs, min_size=1, max_size=6), st.integers(0, 10**6))
def test_every_field_of_every_log_is_there(some: list[Log], first_row: int) -> None:
    output, dropped = export(JSON, hand_made(*some, first_row=first_row), wrap=False)
    found = [json.loads(one) for one in output.decode().removesuffix("\n").split("\n")]
    expected = [projection(log) for log in some]
    assert json.dumps(found, sort_keys=True) == json.dumps(expected, sort_keys=True)
    for one in found:
        keys = list(one["payload"]["root"].get("keys", ()))
        assert keys == sorted(keys)
    members = sum(len(log.args) + bool(log.verbosity) for log in some)
    left = sum(len(one["payload"]["root"].get("keys", ())) for one in found)
    assert dropped.get(SAME_NAME, 0) == members - left


def test_doubles_that_json_does_not_have_may_be_null() -> None:
    values = [math.nan, math.inf, -math.inf, 1.5]
    log = Log(args=[Arg(name=str(at), value=value) for at, value in enumerate(values)])
    keys = shown(log, non_finite="null")["payload"]["root"]["keys"]
    assert keys == {"0": None, "1": None, "2": None, "3": 1.5}


def test_what_is_not_utf8_is_replaced_and_counted() -> None:
    bad = b"caf\xe9"
    some = [Log(message=bad, component=bad, args=[Arg(name="k", value=bad)])] * 2
    for name in ("text", "json"):
        output, dropped = export(exporter(name), hand_made(*some))
        assert output.decode().count("caf\ufffd") == 6
        # The pooled string once, each message too.
        assert dropped == {NOT_UTF8: 3}


# --- All of them ---------------------------------------------------------------------------------

ALL = [
    (exporter("text"), {}),
    (exporter("text"), {"time": "utc", "color": True}),
    (exporter("json"), {}),
    (exporter("otlp"), {"observed_ns": 7}),
    (exporter("journald"), {}),
]
every = pytest.mark.parametrize(
    ("form", "options"), ALL, ids=lambda value: getattr(value, "name", "")
)


def many(count: int) -> list[Log]:
    return [
        Log(
            ts=at * 10**9,
            message=f"message {at}",
            tags=[f"tag {number}" for number in range(at % 4)],
            component=f"core/c{at % 3}",
            args=[Arg(name=f"k{number}", value=at) for number in range((at * 7) % 5)],
        )
        for at in range(count)
    ]


@every
@pytest.mark.parametrize("rows", [1, 2, 3, 10, 64])
def test_batches_do_not_show(
    form: Any, options: dict[str, Any], rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    capture = hand_made(*many(40), first_row=5)
    expected = export(form, capture, **options)
    monkeypatch.setattr(presentation, "ROWS", rows)
    assert export(form, capture, **options) == expected


@every
def test_a_stretch_of_time_has_its_own_arguments_and_tags(
    form: Any, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(presentation, "ROWS", 4)
    some = many(30)
    part = hand_made(*some).between(11 * 10**9, 17 * 10**9)
    assert export(form, part, **options) == export(form, hand_made(*some[11:17]), **options)


@every
def test_nothing_to_write_is_refused(form: Any, options: dict[str, Any]) -> None:
    with pytest.raises(WriteRefusedError, match="no log"):
        export(form, hand_made(), **options)
    with pytest.raises(WriteRefusedError, match="no log"):
        export(form, hand_made(Log()).between(5, 6), **options)


@every
def test_several_captures_follow_each_other(form: Any, options: dict[str, Any]) -> None:
    first, second = hand_made(*many(5)), hand_made(*many(7))
    output, _ = export(form, first, second, **options)
    assert output.count(b"message 3") == 2
    assert output.count(b"message 6") == 1


@every
def test_damage_and_ids_without_a_name_are_reported(form: Any, options: dict[str, Any]) -> None:
    unknown = Log(component="UNKNOWN", url="", tag_bits=3)
    capture = hand_made(unknown, unknown, Log(component="c", tag_bits=4), damaged=2)
    _, dropped = export(form, capture, **options)
    assert Counter(dropped) - Counter({NO_OFFSET: 3}) == {
        "damaged stretches": 2,
        "ids of components that nothing names": 2,
    }


@every
def test_columns_of_other_plugins_are_reported(form: Any, options: dict[str, Any]) -> None:
    capture = HandMade()
    extra = (Column("zz_number", "i8", ""), Column("zz_name", "code", ""))
    wider = capture.schemas["logs"].extended(*extra)
    capture.schemas = {**capture.schemas, "logs": wider}  # type: ignore[misc]
    capture.fill("logs", ts=[1, 2, 3], zz_number=[7, 0, 8], zz_name=["given", None, None])
    _, dropped = export(form, capture, **options)
    assert Counter(dropped) - Counter({NO_OFFSET: 3}) == {
        "values of zz_number": 2,
        "values of zz_name": 1,
    }


@cases("name", ["otlp", "journald"])
def test_logs_of_other_formats_come_out_as_far_as_they_go(name: str) -> None:
    capture = HandMade()
    capture.schemas = {  # type: ignore[misc]
        table: STANDARD_TABLES[table] for table in ("logs", "args", "slices")
    }
    capture.fill("slices", ts=[1, 2, 3])
    capture.fill("args", table=[2, 7, 7], parent=[0, 0, 1], name=["no", "k", "m"], type=7, uint=9)
    capture.fill("logs", ts=[1, 2], pid=[0, 5], tags=["a,b", None], message=["one", "two"])
    output, dropped = export(exporter(name), capture, utc_offset_ns=10**18)
    assert dropped == {"rows of slices": 3, "rows of args": 1}
    if name == "journald":
        first, second = (dict(entry) for entry in entries(output))
        assert (first["MESSAGE"], first["K"], first["FUCHSIA_TAG"]) == (b"one", b"9", b"b")
        assert (second["MESSAGE"], second["M"], second["SYSLOG_PID"]) == (b"two", b"9", b"5")
        assert first.keys().isdisjoint({"PRIORITY", "SYSLOG_PID", "CODE_LINE", "FUCHSIA_MONIKER"})
        return
    (resource,) = json.loads(output)["resourceLogs"]
    assert resource["resource"]["attributes"] == [
        {"key": "service.name", "value": {"stringValue": "unknown_service"}}
    ]
    first, second = resource["scopeLogs"][0]["logRecords"]
    assert "severityNumber" not in first
    assert [attribute["key"] for attribute in first["attributes"]] == ["fuchsia.tags", "k"]
    assert [attribute["key"] for attribute in second["attributes"]] == ["process.pid", "m"]
    assert second["timeUnixNano"] == str(10**18 + 2)


@cases("name", ["otlp", "journald"])
def test_times_of_a_clock_that_is_not_tied_to_utc_are_reported(name: str) -> None:
    logs = [Log(ts=5), Log(ts=7)]
    _, dropped = export(exporter(name, None), hand_made(*logs), hand_made(*logs))
    assert dropped == {NO_OFFSET: 4}
    _, dropped = export(exporter(name, None), hand_made(*logs), utc_offset_ns=10**18)
    assert dropped == {}


def test_the_service_of_a_log_without_a_component_is_its_process() -> None:
    capture = HandMade()
    capture.schemas = {  # type: ignore[misc]
        table: STANDARD_TABLES[table] for table in ("logs", "processes")
    }
    capture.fill("processes", pid=[5, 6], name=["netstack.cm", None])
    capture.fill("logs", ts=[1, 2, 3], pid=[5, 6, 0], message=["one", "two", "three"])
    output, _ = export(exporter("otlp"), capture, utc_offset_ns=10**18)
    services = [
        each["resource"]["attributes"][0]["value"]["stringValue"]
        for each in json.loads(output)["resourceLogs"]
    ]
    assert services == ["netstack.cm", "unknown_service"]


def test_no_more_is_held_than_a_batch_and_a_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presentation, "ROWS", 8)
    capture = hand_made(*many(200))
    held: list[int] = []
    rendered = presentation.ChildColumns.rendered

    def watched(children: Any, *given: Any) -> Any:
        held.append(len(children._parents))
        return rendered(children, *given)

    monkeypatch.setattr(presentation.ChildColumns, "rendered", watched)
    batches = list(presentation.walk(capture, lambda args: [1] * len(args), Counter()))
    assert sum(map(len, batches)) == 200
    assert max(map(len, batches)) <= 8
    assert max(held) <= 8 + 5


@cases(
    ("name", "options"),
    [
        ("text", {"time": "wal"}),
        ("text", {"tz": "UTC"}),
        ("json", {"non_finite": "none"}),
        ("otlp", {"observed_ns": -1}),
        ("otlp", {"observed_ns": 1 << 64}),
        ("otlp", {"utc_offset_ns": 1 << 63}),
        ("journald", {"boot_id": "xyz"}),
        ("journald", {"boot_id": "0" * 32}),
        ("journald", {"hostname": "two\nlines"}),
        ("journald", {"utc_offset_ns": -(1 << 64)}),
    ],
)
def test_options_that_make_no_sense(name: str, options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        export(exporter(name), hand_made(Log()), **options)


def test_csv_takes_logs_with_all_their_columns() -> None:
    from fxframework.exporters import plugin as exporters

    csv = next(one for one in exporters.fx_exporters() if one.name == "csv")
    log = Log(message="m", tags=["t", "u"], url="url", args=[Arg(name="k", value=-1)])
    output, dropped = export(csv, hand_made(log))
    head, row = (one.split(",") for one in output.decode().splitlines())
    assert "log_url" in head
    assert '"t,u"' in output.decode()
    assert '{""k"":-1}' in output.decode()
    assert dropped == {"rows of log_tags": 2}
    assert row[head.index("message") + 1] == "m"  # one more, for the comma of the tags


def test_ids_of_components_that_nothing_names_are_counted() -> None:
    logs = [Log(tag_bits=5), Log(tag_bits=5, component="UNKNOWN"), Log(tag_bits=5, component="a")]
    _, dropped = export(exporter("otlp", None), hand_made(*logs, Log()))
    assert dropped["ids of components that nothing names"] == 2


# --- What one text multiplies --------------------------------------------------------------------


def test_a_long_moniker_is_cut_in_lines_and_counted_once() -> None:
    whole = "core/" + "m" * 996
    found, left_out = export(
        TEXT, hand_made(*(Log(component=whole, pid=number) for number in range(3)))
    )
    assert left_out == {"ends of monikers of more than 1000 characters": 1}
    for number, one in enumerate(found.decode().splitlines()):
        assert one.startswith(f"[00000.000000][{number}][][{whole[:1000]}...] INFO: ")
    fits = whole[:1000]
    assert f"[{fits}]" in line(Log(component=fits))
    assert shown(Log(component=whole))["moniker"] == whole


def test_what_is_made_of_heads_is_forgotten_by_its_size() -> None:
    calls: list[int] = []
    size = memo.CACHED_BYTES // 4

    def make(key: int) -> tuple[str, bytes]:
        calls.append(key)
        return "x" * (size // 2), b"x" * (size // 2)

    kept = memo.Memo(make)
    for key in range(6):
        assert kept[key] == kept[key]
        assert sum(len(text) for value in kept.values() for text in value) <= 4 * size
    assert calls == list(range(6))


@pytest.fixture(scope="module")
def long_moniker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Many logs of one component whose moniker is long."""
    path = tmp_path_factory.mktemp("moniker") / "a.fxlog"
    with LogWriter(path) as log:
        log.manifest(1, "core/" + "m" * 30_000, "url")
        for number in range(3_000):
            args = [("pid", "uint64", number), ("message", "string", "x")]
            log.put("INFO", args, time=number, tag_bits=1)
    return path


@pytest.mark.parametrize("name", ["text", "json", "otlp", "journald"])
def test_one_long_moniker_takes_no_memory_of_its_own_for_each_log(
    name: str, long_moniker: Path, tmp_path: Path
) -> None:
    """Takes seconds: 90 MB are written, since less would not show beside a process."""
    pytest.importorskip("resource", reason="this system does not say how much memory it took")
    out = tmp_path / "out"
    code = "import sys; from fxframework.cli import main; assert main(sys.argv[1:]) == 0"
    peak = peak_of(code, "convert", str(long_moniker), str(out), "-t", name, "--max-output=0")
    assert out.stat().st_size > 500_000
    # 90 MB of text beside some 80 MB that are there without it, were all of it in memory.
    assert peak < 150_000_000
