"""What users rely on in the tables of logs, told from bytes made by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest

import fxframework as fxf
from fx_log import format as wire
from fx_log.read import frames
from fx_log.read.capture import LegacyCapture, LogCapture, RingCapture, StreamCapture
from fx_log.sample import TAGS, sample
from fxframework.errors import LimitError, StrictError, UsageError
from fxframework.io.limits import Limits
from fxframework.io.source import Source
from fxframework.model.capture import OpenRequest
from fxframework.testing.cli import run_cli

from ...cases import cases
from .logs import entry, log, manifest, packet, ring, stream, text_log

Row = dict[str, Any]
OPEN = {"log": LogCapture, "log-ring": RingCapture, "log-legacy-stream": StreamCapture}


def opened(data: bytes, open: Any = LogCapture, **options: Any) -> LogCapture:
    capture: LogCapture = open(Source.open(data), OpenRequest(options=options))
    return capture


def rows(capture: LogCapture, name: str = "logs") -> list[Row]:
    """The rows of a table, values as tasks read them."""
    table = capture.table(name)
    shown = [table.plain(column) for column in table.columns]
    return [dict(zip(table.columns, row, strict=True)) for row in zip(*shown, strict=True)]


def codes(capture: LogCapture) -> list[str]:
    capture.scan()
    return [found.code for found in capture.diagnostics]


FULL = (
    ("pid", "uint64", 11),
    ("tid", "uint64", (1 << 64) - 1),
    ("tag", "string", "one"),
    ("num_dropped", "uint64", 3),
    ("tag", "string", "two, three"),
    ("message", "string", "hello"),
    ("file", "string", "main.rs"),
    ("line", "uint64", 42),
    ("count", "int64", -5),
    ("ratio", "double", 0.5),
    ("on", "bool", True),
    ("text", "string", "value"),
)


def test_each_well_known_argument_has_its_column() -> None:
    capture = opened(log(*FULL, time=77, severity=0x40))
    (row,) = rows(capture)
    assert row == {
        "row": 0, "offset": 0, "ts": 77, "ticks": 77, "severity": 0x40, "severity_name": "WARN",
        "pid": 11, "tid": (1 << 64) - 1, "tags": "one,two, three", "component": None,
        "message": "hello", "file": "main.rs", "line": 42, "dropped": 3, "log_url": None,
        "log_tag": 0, "log_rolled_out": 0, "log_verbosity": 0, "log_given": 15,
    }  # fmt: skip


def test_everything_else_is_an_argument_of_its_type() -> None:
    capture = opened(text_log("first") + log(*FULL))
    found = [
        (
            row["table"],
            row["parent"],
            row["name"],
            row["type"],
            row["int"],
            row["float"],
            row["str"],
        )
        for row in rows(capture, "args")
    ]
    assert found == [
        ("logs", 1, "count", "int64", -5, 0.0, None),
        ("logs", 1, "ratio", "double", 0, 0.5, None),
        ("logs", 1, "on", "bool", 1, 0.0, None),
        ("logs", 1, "text", "string", 0, 0.0, "value"),
    ]
    table = capture.table("args")
    assert (table.array("offset") > len(text_log("first"))).all()


def test_tags_stand_each_on_its_own_whatever_is_in_them() -> None:
    capture = opened(text_log("none") + log(*FULL))
    tags = [(row["parent"], row["name"]) for row in rows(capture, "log_tags")]
    assert tags == [(1, "one"), (1, "two, three")]


def test_bytes_that_are_no_text_stay_as_they_are() -> None:
    capture = opened(log(("message", "string", "a\udcff"), ("k\udcfe", "string", "\udcfd")))
    table = capture.table("args")
    (name,), (value,) = table.array("name").tolist(), table.array("str").tolist()
    assert capture.table("logs")["message"].bytes_of(0) == b"a\xff"  # type: ignore[union-attr]
    assert (table.pool.bytes_of(name), table.pool.bytes_of(value)) == (b"k\xfe", b"\xfd")


def test_a_manifest_names_the_logs_that_come_behind_it() -> None:
    capture = opened(
        text_log("early", tag_bits=5)
        + manifest(5, "core/a", "url-a")
        + text_log("a", tag_bits=5)
        + manifest(5, "core/b", "url-b")
        + text_log("b", tag_bits=5)
        + log(("rolled_out", "uint64", 9), tag_bits=wire.CONTROL | 5)
    )
    found = [
        (row["message"], row["component"], row["log_url"], row["log_rolled_out"])
        for row in rows(capture)
    ]
    assert found == [
        ("early", "UNKNOWN", "", 0),
        ("a", "core/a", "url-a", 0),
        ("b", "core/b", "url-b", 0),
        ("", "core/b", "url-b", 9),
    ]
    assert not rows(capture, "args")


def test_many_components_are_told_apart() -> None:
    data = [manifest(n, f"core/{n}", "u") + text_log("x", tag_bits=n) for n in range(1, 300)]
    capture = opened(b"".join(data))
    assert capture.table("logs").texts("component") == [f"core/{n}" for n in range(1, 300)]


@cases("tail", [0, 65536 - 8, 65536 - 40, 3 * 65536 + 4096])
def test_offsets_of_a_ring_are_places_in_its_image(tail: int) -> None:
    image = ring([entry(log(*FULL), tag=1 << 40), entry(text_log("two"))], tail=tail)
    capture = opened(image, RingCapture)
    first, second = rows(capture)
    assert (first["log_tag"], second["log_tag"]) == (1 << 40, 7)
    assert (first["message"], second["message"]) == ("hello", "two")
    assert first["offset"] == wire.RING_PAGE + tail % 65536
    twice = image + image[wire.RING_PAGE :]
    for row in rows(capture, "args"):
        header = int.from_bytes(twice[row["offset"] : row["offset"] + 8], "little")
        assert wire.NAME_REF.get(header) == 0x8000 | len(row["name"])
    assert codes(capture) == ["FXL0206"]


@cases("length", [1 << 63, (1 << 63) - 1, (1 << 63) - 8, 65_537, 65_521])
def test_an_entry_that_claims_too_many_bytes_is_damage(length: int) -> None:
    image = bytearray(ring([entry(text_log("one")), entry(text_log("two"))]))
    image[wire.RING_PAGE + 8 : wire.RING_PAGE + 16] = length.to_bytes(8, "little")
    capture = opened(bytes(image), RingCapture)
    assert not len(capture.table("logs"))
    assert "FXL0803" in codes(capture)


def test_packets_are_logs_of_pid_tid_and_tags() -> None:
    capture = opened(
        stream([packet("one", "a", "b,c", severity=-5), packet("two", dropped_logs=2)]),
        StreamCapture,
    )
    first, second = rows(capture)
    assert (first["message"], first["tags"], first["pid"], first["tid"]) == ("one", "a,b,c", 1, 2)
    assert (first["severity"], first["log_verbosity"], first["log_given"]) == (0, 0, 7)
    assert (second["message"], second["tags"], second["dropped"]) == ("two", None, 2)
    assert [row["name"] for row in rows(capture, "log_tags")] == ["a", "b,c"]


def test_severities_of_2022() -> None:
    data = packet("m", severity=-5)
    (row,) = rows(opened(data, LegacyCapture, severity_era="2022"))
    assert (row["severity"], row["severity_name"], row["log_verbosity"]) == (0x20, "DEBUG", 3)
    verbose = log(("verbosity", "int64", 2), severity=0x30)
    assert [row["severity_name"] for row in rows(opened(verbose))] == ["INFO"]
    capture = opened(verbose, severity_era="2022")
    assert [row["severity_name"] for row in rows(capture)] == ["DEBUG"]
    assert capture.summary().facts["severities"] == {"DEBUG": 1}


def test_a_structured_printf_is_rendered_where_that_is_asked_for() -> None:
    data = text_log("plain") + log(
        ("printf", "uint64", 0),
        ("", "int64", -3),
        ("", "string", "cats"),
        ("message", "string", "%d %s"),
        ("key", "bool", True),
    )
    capture = opened(data, printf=True)
    assert [row["message"] for row in rows(capture)] == ["plain", "-3 cats"]
    assert [row["name"] for row in rows(capture, "args")] == ["key"]
    capture = opened(data)
    assert [row["message"] for row in rows(capture)] == ["plain", "%d %s"]
    assert [row["name"] for row in rows(capture, "args")] == ["printf", "", "", "key"]


def test_a_summary_counts_by_severity_component_and_tag() -> None:
    capture = opened(
        manifest(1, "core/a", "u")
        + log(*FULL, time=5, tag_bits=1, severity=0x50)
        + log(*FULL, time=4, tag_bits=1)
        + text_log("x", time=9)
        + bytes(16),
        clock="boot",
        utc_offset_ns=12,
    )
    summary = capture.summary()
    assert (summary.records, summary.start_ns, summary.end_ns) == (5, 4, 9)
    assert summary.kinds == {"log": 4, "padding": 1}
    assert summary.rows == {"logs": 3, "args": 8, "log_tags": 4}
    assert summary.facts == {
        "clock": "boot (stated)",
        "utc_offset": 12,
        "severities": {"ERROR": 1, "INFO": 2},
        "components": [{"component": "core/a", "logs": 2}],
        "tags": [{"tag": "one", "logs": 2}, {"tag": "two, three", "logs": 2}],
        "dropped": 6,
        "rolled_out": 0,
        "out_of_order": 1,
    }
    assert {name: sum(bins) for name, bins in summary.timeline} == {"ERROR": 1, "INFO": 2}
    assert capture.utc_offset_ns == 12
    assert opened(b"").utc_offset_ns is None
    assert opened(b"").summary().start_ns is None


def test_sums_do_not_wrap() -> None:
    most = (1 << 64) - 1
    data = log(("num_dropped", "uint64", most)) * 3
    capture = opened(data)
    assert capture.summary().facts["dropped"] == 3 * most
    shown = run_cli("info", "--json", "-f", "log", "-", stdin=data).text
    assert json.loads(shown)["captures"][0]["facts"]["dropped"] == 3 * most


def test_reading_goes_on_behind_what_is_whole() -> None:
    controls = manifest(1, "core/a", "u") + manifest(2, "core/b", "u")
    first = manifest(1, "core/a", "u") + controls + text_log("x", tag_bits=1)
    more = text_log("y", tag_bits=2)
    for kept in (0, 8, 20, len(more) - 1):
        capture = opened(first + more[:kept])
        assert capture.resume() == (len(first), controls)
    assert rows(opened(controls + more))[0]["component"] == "core/b"


def test_a_record_is_whole_with_its_suffix() -> None:
    suffix = (8).to_bytes(4, "little") + bytes(12) + b"core/abc"
    record = text_log("x")
    data = record + suffix + record
    assert opened(data, suffix=True).resume() == (len(record + suffix), b"")
    assert opened(data + suffix, suffix=True).resume() == (len(data + suffix), b"")
    table = opened(data + suffix, suffix=True).table("logs")
    assert table.texts("component") == ["core/abc"] * 2


def test_a_container_goes_on_with_its_header() -> None:
    whole = stream([packet("one")])
    for more in (b"", b"\1\0", stream([packet("two")])[16:-1]):
        assert opened(whole + more, StreamCapture).resume() == (len(whole), whole[:16])


@cases("open", [LegacyCapture, RingCapture])
def test_what_cannot_grow_cannot_be_followed(open: Any) -> None:
    assert opened(packet("one"), open).resume() is None


def test_whole_tables_keep_to_the_memory_allowed() -> None:
    data = sample(20_000)
    request = OpenRequest(limits=Limits(max_memory=len(data)))
    capture = LogCapture(Source.open(data), request)
    with pytest.raises(LimitError):
        capture.table("logs")
    assert sum(len(batch) for batch in capture.batches("logs")) == capture.summary().rows["logs"]


def test_strictness_stops_at_a_loss() -> None:
    capture = LogCapture(Source.open(text_log("x") + b"junk"), OpenRequest(strict=True))
    with pytest.raises(StrictError):
        capture.scan()


def test_findings_are_the_same_after_records_and_after_tables() -> None:
    data = text_log("x") + b"\7" * 16 + text_log("y")
    capture = opened(data)
    list(capture.records())
    before = codes(capture)
    capture.table("logs")
    assert codes(capture) == before == ["FXL0001"]
    list(capture.records())
    assert codes(capture) == before


@cases("format", OPEN)
@cases("step", [1, 5])
def test_many_records_come_in_batches(
    format: str, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [f"message {number}" for number in range(200)]
    data = {
        "log": b"".join(log(*FULL[:3], ("message", "string", text)) for text in texts),
        "log-ring": ring([entry(text_log(text)) for text in texts], tail=60_000),
        "log-legacy-stream": stream([packet(text, "tag") for text in texts]),
    }[format]
    monkeypatch.setattr(frames, "ROOM", step)
    capture = opened(data, OPEN[format])
    batches = list(capture.batches("logs", 5))
    assert max(map(len, batches)) <= 5
    assert [text for batch in batches for text in batch["message"]] == texts
    numbers = [row for batch in batches for row in batch["row"]]
    assert numbers == list(range(200))


def test_the_sample_is_typical() -> None:
    capture = opened(sample(100_000))
    summary = capture.summary()
    assert not codes(capture)
    assert summary.rows["logs"] == summary.rows["args"] == summary.rows["log_tags"]
    assert {row["tag"] for row in summary.facts["tags"]} == set(TAGS)
    messages = list(capture.table("logs")["message"])
    assert len(set(messages)) == len(messages)
    assert 130 < capture.source.size / summary.records < 180


@cases("option", [{"severity_era": "2021"}, {"clock": "moon"}])
def test_options_that_make_no_sense_are_refused(option: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        fxf.open(b"", format="log", **option)


def test_damage_does_not_hide_the_sound_records_around_it() -> None:
    records = [log(("n", "int64", number), ("message", "string", "x")) for number in range(50)]
    damage = [b"\x05" * 8, b"\xff" * 24, b"\x09" + bytes(7), b"\x19" + bytes(15)]
    data = b"".join(record + damage[number % len(damage)] for number, record in enumerate(records))
    capture = opened(data)
    assert capture.table("args").array("int").tolist() == list(range(50))
    sound = [record for record in opened(data).records() if record.record == "log"]
    assert len(sound) == 50
    assert capture.summary().kinds["damaged"] == 50


def test_a_fault_in_every_packet_is_counted_and_not_listed() -> None:
    packets = 500_000
    data = stream([]) + bytes(4 * packets)
    capture = opened(data, OPEN["log-legacy-stream"])
    summary = capture.summary()
    assert summary.kinds == {"stream_header": 1, "damaged": packets}
    assert capture.diagnostics.counts["FXL0601"] == packets
    assert sum(each.code == "FXL0601" for each in capture.diagnostics) == 1000
