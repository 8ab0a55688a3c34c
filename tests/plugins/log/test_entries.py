"""What records mean: well-known arguments, attribution of all three generations, severities."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import fxframework as fxf
from fx_log.read.entries import render_printf
from fx_log.rules import RULES
from fx_log.severity import Level, legacy_level, level_of, otel_number, parse_level
from fxframework.errors import UsageError
from fxframework.model.diagnostics import Diagnostics

from ...cases import cases
from .logs import entry, log, manifest, packet, records_of, ring, text_log
from .object_meaning import Entry, Meaning

CONFORMANCE = Path(__file__).parents[2] / "conformance" / "log"
STREAMS = json.loads((CONFORMANCE / "streams.json").read_text("utf-8"))
RECORDS = {v["name"]: v for v in json.loads((CONFORMANCE / "records.json").read_text("utf-8"))}


def entries(data: bytes, form: str = "log", **options: Any) -> tuple[list[Entry], list[str]]:
    """The entries, and the codes of what is wrong with their meaning."""
    meaning = Meaning(form, options)
    found = Diagnostics(RULES)
    made = [meaning.entry(record) for record in records_of(form, data, options, found)]
    codes = [each.code for each in found if each.code.startswith("FXL02")]
    return [each for each in made if each is not None], codes


def only(*args: tuple[str, str, Any], **more: Any) -> tuple[Entry, list[str]]:
    (made,), found = entries(log(*args, **more))
    return made, found


@cases(
    "vector", [v for v in STREAMS if isinstance(v.get("expected"), list)], ids=lambda v: v["name"]
)
def test_manifests_name_who_logged(vector: dict[str, Any]) -> None:
    made, _ = entries(bytes.fromhex(vector["hex"]))
    assert [[each.component, each.message] for each in made] == vector["expected"]


def test_the_suffix_says_who_logged() -> None:
    vector = next(v for v in STREAMS if v["name"] == "extended_suffix_ok")
    (made,), _ = entries(bytes.fromhex(vector["hex"]), suffix=True)
    expected = vector["expected"]
    assert made.component == expected["moniker"]
    assert made.url == expected["url"]
    assert made.rolled_out == expected["rolled_out"]
    assert made.message == expected["message"]


def test_appended_arguments_say_who_logged() -> None:
    (made,), found = entries(bytes.fromhex(RECORDS["appended_metadata_args"]["hex"]))
    assert (made.component, made.url) == ("UNKNOWN", "fuchsia-pkg://UNKNOWN")
    assert (made.rolled_out, made.dropped, made.pid, made.tid) == (42, 10, 1, 2)
    assert (made.tags, made.message, made.args) == (["hello"], "testing", [])
    assert found == ["FXL0206"]


def test_attribution_in_the_middle_is_an_ordinary_key() -> None:
    made, found = only(("$__moniker", "string", "core/a"), ("last", "uint64", 1))
    assert made.component is None
    assert [each.name for each in made.args] == ["$__moniker", "last"]
    assert found == ["FXL0207"]


@cases("line", [0, 2**32 - 1, 2**32, 2**63, 2**64 - 1])
def test_a_line_that_its_column_cannot_hold_is_a_key(line: int) -> None:
    data = log(("line", "uint64", line))
    (made,), found = entries(data)
    with fxf.open(data, format="log") as capture:
        rows = list(capture.table("logs").tuples("line", "log_given"))
        args = capture.table("args")
        keys = list(zip(args.texts("name"), args.array("uint").tolist(), strict=True))
    assert keys == [(each.name, each.value) for each in made.args]
    if line < 2**32:
        assert (rows, keys, made.line, found) == ([(line, 8)], [], line, [])
    else:
        assert (rows, keys, found) == ([(0, 0)], [("line", line)], ["FXL0201"])


def test_of_attribution_the_tail_alone_is_taken() -> None:
    made, _ = only(
        ("$__url", "string", "early"),
        ("key", "uint64", 1),
        ("$__moniker", "string", "core/a"),
        ("$__url", "string", "late"),
    )
    assert (made.component, made.url) == ("core/a", "late")
    assert [each.name for each in made.args] == ["$__url", "key"]


def test_a_tag_is_reported_once_until_it_is_named() -> None:
    data = text_log("a", tag_bits=4) * 2 + manifest(4, "core/a", "u") + text_log("b", tag_bits=4)
    made, found = entries(data)
    assert [each.component for each in made] == ["UNKNOWN", "UNKNOWN", "core/a"]
    assert found.count("FXL0204") == 1
    made, found = entries(data + manifest(4, "core/b", "v") + text_log("c", tag_bits=4))
    assert [made[-1].component, made[-1].url] == ["core/b", "v"]


def test_tag_0_can_be_named() -> None:
    made, found = entries(text_log("a") + manifest(0, "core/zero", "u") + text_log("b"))
    assert [each.component for each in made] == [None, "core/zero"]
    assert "FXL0204" not in found


def test_logs_that_rolled_out_have_an_entry_of_their_own() -> None:
    vector = RECORDS["control_rolled_out"]
    (made,), found = entries(bytes.fromhex(vector["hex"]))
    assert (made.rolled_out, made.component, made.args) == (5, "UNKNOWN", [])
    assert found == ["FXL0206"]


def test_a_control_record_that_says_nothing_is_reported() -> None:
    made, found = entries(bytes.fromhex(RECORDS["partial_manifest_tag1"]["hex"]))
    assert made == []
    assert found == ["FXL0205"]


def test_well_known_arguments_have_their_places() -> None:
    made, found = entries(bytes.fromhex(RECORDS["message_full"]["hex"]))
    (full,) = made
    assert (full.pid, full.tid, full.file, full.line) == (43, 912, "some_file.cc", 420)
    assert (full.message, full.tags, full.dropped) == ("msg", ["tag"], 2)
    assert [(each.name, each.value) for each in full.args] == [("arg1", -23), ("arg2", True)]
    assert found == ["FXL0206"]


def test_of_another_type_they_are_ordinary_keys() -> None:
    made, found = entries(bytes.fromhex(RECORDS["wrong_type_for_pid_is_plain_key"]["hex"]))
    assert (made[0].pid, made[0].line) == (None, None)
    assert [each.name for each in made[0].args] == ["pid", "line"]
    assert found == ["FXL0201", "FXL0201"]


def test_the_last_one_counts() -> None:
    made, found = only(
        ("pid", "uint64", 1),
        ("message", "string", "first"),
        ("pid", "uint64", 2),
        ("message", "string", "second"),
        ("tag", "string", "a"),
        ("tag", "string", "b"),
    )
    assert (made.pid, made.message, made.tags, made.args) == (2, "second", ["a", "b"], [])
    assert found == ["FXL0202", "FXL0202"]


@cases("name", ["num_dropped", "dropped_logs"])
def test_a_count_of_none_clears_no_other(name: str) -> None:
    made, _ = only(("num_dropped", "uint64", 7), (name, "uint64", 0))
    assert made.dropped == 7


def test_rings_name_no_components() -> None:
    made, found = entries(ring([entry(text_log("a"), tag=1 << 40)]), "log-ring")
    assert (made[0].component, made[0].tag, made[0].message) == (None, 1 << 40, "a")
    assert found == []


def test_times_that_step_back_are_reported() -> None:
    data = text_log("a", time=5) + text_log("b", time=4) + text_log("c", time=4)
    assert entries(data)[1] == ["FXL0203"]


# --- Severities ----------------------------------------------------------------------------------


def test_bands() -> None:
    vectors = json.loads((CONFORMANCE / "severity.json").read_text("utf-8"))
    for band in vectors["bands"]:
        assert level_of(band["raw"]).name == band["severity"]
        assert (band["raw"] not in list(Level)) == band["raw_severity_emitted"]


@cases(
    ("severity", "current", "then", "verbosity"),
    [
        (-10, "TRACE", "DEBUG", 8),
        (-3, "TRACE", "DEBUG", 1),
        (-2, "TRACE", "TRACE", None),
        (-1, "TRACE", "DEBUG", None),
        (0, "TRACE", "INFO", None),
        (3, "TRACE", "FATAL", None),
        (0x2E, "INFO", "DEBUG", 2),
        (0x40, "WARN", "WARN", None),
        (300, "FATAL", "FATAL", None),
    ],
)
def test_packets_of_both_eras(
    severity: int, current: str, then: str, verbosity: int | None
) -> None:
    data = packet("m", severity=severity)
    (today,), _ = entries(data, "log-legacy")
    (old,), _ = entries(data, "log-legacy", severity_era="2022")
    assert (today.severity_name, today.verbosity) == (current, None)
    assert (old.severity_name, old.verbosity) == (then, verbosity)


def test_a_verbosity_of_2022() -> None:
    data = log(("verbosity", "int64", 0x2E), severity=0x20)
    (made,), _ = entries(data, severity_era="2022")
    assert (made.severity_name, made.verbosity, made.args) == ("DEBUG", 0x2E, [])


def test_numbers_of_opentelemetry_are_monotonic_and_exact_at_the_levels() -> None:
    assert [otel_number(level) for level in Level] == [1, 5, 9, 13, 17, 21]
    assert otel_number(0x2F) == 8
    values = [otel_number(byte) for byte in range(256)]
    assert values == sorted(values)
    assert legacy_level(0x21) == (Level.DEBUG, 15)


def test_severities_by_name() -> None:
    for text in ("warn", "Warning", "WARN", "0x40", "64"):
        assert parse_level(text) == Level.WARN
    for text in ("wran", "256", "-1", ""):
        with pytest.raises(UsageError):
            parse_level(text)


# --- Structured printf ---------------------------------------------------------------------------

PRINTF = (
    ("pid", "uint64", 9),
    ("message", "string", "%d of %s, %5.2f %x %% %c|%-4s|"),
    ("printf", "uint64", 0),
    ("", "int64", -3),
    ("", "string", "four"),
    ("", "double", 1.5),
    ("", "uint64", 255),
    ("", "uint64", 65),
    ("", "string", "ab"),
    ("after", "bool", True),
    ("", "uint64", 1),
)


def test_printf_is_put_together_on_request() -> None:
    (plain,), _ = entries(log(*PRINTF))
    assert plain.message == PRINTF[1][2]
    assert len(plain.args) == 9
    (made,), _ = entries(log(*PRINTF), printf=True)
    assert made.message == "-3 of four,  1.50 ff % A|ab  |"
    assert [(each.name, each.value) for each in made.args] == [("after", True), ("", 1)]


@cases(
    ("format", "values", "expected"),
    [
        (b"%d", [], b"%d"),
        (b"%d", ["x"], b"%d x"),
        (b"%s %s", [None, True], b"null true"),
        (b"none", [1, 2.5], b"none 1 2.5"),
        (b"%999999999d", [1], b"%999999999d 1"),
        (b"%lld %zu %#x", [-1, 2, 16], b"-1 2 0x10"),
        (b"%.2s", ["abc"], b"ab"),
        (b"%n%p", [5, 16], b"%n0x5 16"),
    ],
)
def test_conversions_that_do_not_fit_stay(
    format: bytes, values: list[Any], expected: bytes
) -> None:
    assert render_printf(format, values) == expected
