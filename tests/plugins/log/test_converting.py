"""One generation of logs as another: what is said stays said, and what is lost is counted."""

from __future__ import annotations

from collections import Counter
from typing import Any

import attrs
import hypothesis
import pytest
from hypothesis import strategies as st

from fx_log import format as wire
from fx_log.read import records as fx
from fx_log.read.entries import Entry
from fx_log.write.convert import (
    AttributionConverter,
    convert_attribution,
    legacy,
    structured,
    to_legacy,
    to_structured,
)
from fxframework.errors import UsageError

from ...cases import cases
from .logs import argument, entry, log, manifest, opened, packet, ring, stream, text_log
from .object_meaning import Meaning
from .test_records import decode
from .test_writer import rewritten

# --- Legacy and structured -----------------------------------------------------------------------


def the_packet(**more: Any) -> fx.LegacyPacket:
    given = {"pid": 1, "tid": 2, "timestamp": 3, "severity": 0x30, "message": "m"}
    return fx.LegacyPacket(**{**given, **more})


def entries_of(records: Any, form: str = "log") -> list[Entry]:
    meaning = Meaning(form, {})
    made = [meaning.entry(record) for record in records]
    return [each for each in made if each is not None]


@hypothesis.given(
    st.builds(
        fx.LegacyPacket,
        pid=st.integers(0, 2**64 - 1),
        tid=st.integers(0, 2**64 - 1),
        timestamp=st.integers(-(2**63), 2**63 - 1),
        severity=st.integers(0, 255),
        dropped_logs=st.integers(0, 2**32 - 1),
        tags=st.lists(st.text("abü,", min_size=1, max_size=20), max_size=5).map(tuple),
        message=st.text(st.characters(exclude_characters="\0", codec="utf-8")),
    )
)
def test_a_packet_survives_the_way_there_and_back(given: fx.LegacyPacket) -> None:
    lost: Counter[str] = Counter()
    record = to_structured(given, lost)
    assert attrs.evolve(entries_of([record])[0], verbosity=None) == entries_of([given])[0]
    (again,) = [to_legacy(each, lost) for each in entries_of(decode(record.pack())[0])]
    assert again == given
    assert +lost == {}


@cases(
    ("severity", "era", "expected", "lost"),
    [
        (-1, "current", 0, 1),
        (300, "current", 255, 1),
        (1, "2022", 0x40, 0),
        (-3, "2022", 0x2F, 0),
        (-10, "2022", 0x28, 0),
        (0x2E, "2022", 0x2E, 0),
        (0x50, "2022", 0x50, 0),
    ],
)
def test_severities_of_both_eras(severity: int, era: str, expected: int, lost: int) -> None:
    counted: Counter[str] = Counter()
    record = to_structured(the_packet(severity=severity), counted, era=era)
    assert (record.severity, counted.total()) == (expected, lost)


def test_what_a_packet_has_no_place_for_is_counted() -> None:
    said = Entry(
        ts=1,
        severity=0x50,
        pid=1,
        tags=["x" * 70, *"abcdef"],
        component="core/a",
        url="url",
        message="broke",
        file="a.c",
        line=7,
        dropped=2**40,
        rolled_out=3,
        verbosity=2,
        args=[argument("n", "int64", 1), argument("f", "double", 5.0), argument("b", "bool", True)],
    )
    lost: Counter[str] = Counter()
    made = to_legacy(said, lost)
    assert made.message == "[a.c(7)] broke n=1 f=5 b=true"
    assert made.tags == ("x" * 63, *"abcd")
    assert made.dropped_logs == 2**32 - 1
    assert +lost == {
        "components": 1,
        "urls": 1,
        "counts of logs rolled out": 1,
        "verbosities": 1,
        "counts of dropped logs, in part": 1,
        "files and lines (put into messages)": 1,
        "keys (put into messages)": 3,
        "tags, in part or left out": 3,
    }
    lost.clear()
    assert to_legacy(said, lost, fold=False).message == "broke"
    assert lost["keys (left out)"] == 3


def test_a_message_longer_than_a_packet_is_cut() -> None:
    said = Entry(ts=1, severity=0x30, message="é" * 20_000)
    lost: Counter[str] = Counter()
    made = to_legacy(said, lost)
    assert made.message.endswith("...")
    assert len(made.pack()) <= wire.MAX_PACKET
    assert lost["messages, in part"] == 1


def test_files_of_one_form_as_the_other() -> None:
    lost: Counter[str] = Counter()
    packets = [packet("one", "t", time=1), packet("two", time=2)]
    records, _ = decode(stream(packets), "log-legacy-stream")
    logs = list(structured(records, lost))
    back = rewritten("log-legacy-stream", list(legacy(opened(rewritten("log", logs)), lost)))
    assert back == stream(packets)
    assert +lost == {}


def test_entries_of_a_ring_become_records_of_their_component() -> None:
    lost: Counter[str] = Counter()
    data = ring(
        [entry(text_log("a"), tag=7), entry(b"nonsense", tag=7), entry(text_log("b"), tag=0)]
    )
    logs = list(structured(decode(data, "log-ring")[0], lost))
    assert [(r.tag_bits, r.args[0].value) for r in logs] == [(7, "a"), (0, "b")]
    assert lost == {"entries that hold no log": 1, "padding": 1}
    assert [p.message for p in legacy(opened(data, "log-ring"), lost)] == ["a", "b"]


def test_a_rings_manifests_and_tags_keep_saying_who_logged() -> None:
    lost: Counter[str] = Counter()
    data = ring(
        [
            entry(manifest(7, "core/a", "url-a"), tag=9),
            entry(text_log("a", tag_bits=3), tag=7),
            entry(rolled_out(3, 5), tag=7),
            entry(text_log("large") + b"8 bytes.", tag=1 << 40),
        ]
    )
    records = decode(data, "log-ring")[0]
    said = entries_of(list(structured(records, lost)))
    assert [(e.message, e.component, e.rolled_out) for e in said] == [
        ("a", "core/a", 0),
        (None, "core/a", 5),
        ("large", None, 0),
    ]
    assert lost == {
        "tags of entries": 1,
        "entries with bytes behind their records": 1,
        "padding": 1,
    }
    lost.clear()
    packets = legacy(opened(data, "log-ring"), lost)
    assert [p.message for p in packets] == ["a", "large"]
    assert lost["counts of logs rolled out"] == 1
    assert lost["ids of components that nothing names"] == 1  # that of "large"


# --- Who logged ----------------------------------------------------------------------------------

A, B = ("core/a", "url-a"), ("core/b", "url-b")


def in_record(message: str, who: tuple[str, str], rolled_out: int = 0, **more: Any) -> bytes:
    tail = [("$__moniker", "string", who[0]), ("$__url", "string", who[1])]
    tail += [("$__rolled_out", "uint64", rolled_out)] if rolled_out else []
    return log(("message", "string", message), *tail, **more)


def rolled_out(tag: int, count: int, **more: Any) -> bytes:
    return log(("rolled_out", "uint64", count), tag_bits=wire.CONTROL | tag, **more)


BY_MANIFEST = (
    text_log("early", tag_bits=3)
    + manifest(3, *A)
    + text_log("a1", tag_bits=3)
    + manifest(4, *B)
    + rolled_out(4, 9)
    + text_log("b1", tag_bits=4)
    + text_log("nobody")
    + manifest(3, *B)
    + text_log("b2", tag_bits=3)
)
IN_RECORD = text_log("nobody") + in_record("a1", A) + in_record("b1", B, 9) + in_record("a2", A)
SUFFIXED = b"".join(
    text_log(message) + fx.Attribution(moniker=who[0], url=who[1], rolled_out=count).pack()
    for message, who, count in [("a1", A, 0), ("b1", B, 9), ("a2", A, 0)]
)


def who_said(data: bytes, **options: Any) -> list[tuple[Any, Any, Any]]:
    said = entries_of(decode(data, **options)[0])
    return [(e.message, e.component, e.url) for e in said if e.message is not None]


def moved(data: bytes, to: str, **options: Any) -> tuple[bytes, Counter[str]]:
    lost: Counter[str] = Counter()
    records = decode(data, **options)[0]
    return rewritten("log", list(convert_attribution(records, to, lost))), +lost


@cases("to", ["manifest", "in_record"])
@cases(
    ("data", "options"),
    [
        (BY_MANIFEST, {}),
        (IN_RECORD, {}),
        (SUFFIXED, {"suffix": True}),
        (IN_RECORD + BY_MANIFEST, {}),
    ],
    ids=["manifests", "in_record", "suffixes", "mixed"],
)
def test_every_log_is_still_its_components(data: bytes, options: dict[str, Any], to: str) -> None:
    after, lost = moved(data, to, **options)
    assert who_said(after) == who_said(data, **options)
    assert lost == {}
    counts = [
        sum(e.rolled_out for e in entries_of(decode(each, **how)[0]))
        for each, how in ((data, options), (after, {}))
    ]
    assert counts[0] == counts[1] > 0
    names = [a.name for r in decode(after)[0] for a in r.args]
    controls = [r for r in decode(after)[0] if r.control]
    assert ("$__moniker" in names) == (to == "in_record")
    assert bool(controls) == (to == "manifest")
    assert moved(after, to)[0] == after


@cases(
    ("data", "options"),
    [(BY_MANIFEST, {}), (IN_RECORD, {}), (SUFFIXED, {"suffix": True})],
    ids=["manifests", "in_record", "suffixes"],
)
def test_none_names_nobody_and_keeps_the_counts(data: bytes, options: dict[str, Any]) -> None:
    after, lost = moved(data, "none", **options)
    assert b"core/" not in after
    assert b"url-" not in after
    assert [m for m, _, _ in who_said(after)] == [m for m, _, _ in who_said(data, **options)]
    assert {c for _, c, _ in who_said(after)} == {None}
    assert sum(e.rolled_out for e in entries_of(decode(after)[0])) == 9
    # Those rolled out too, which have no message.
    named = [e for e in entries_of(decode(data, **options)[0]) if e.component]
    assert lost == {"components": len(named)}


def test_everything_else_stays_byte_for_byte() -> None:
    odd = bytes.fromhex("59000000000000300000000000000000" "340004800000cdab" "6e616d6501020304"
                        "0700000000000000")  # fmt: skip
    data = odd + bytes(16) + b"\xff" * 24 + text_log("m") * 3
    for to in ("manifest", "in_record", "none"):
        assert moved(data, to)[0] == data


def test_a_tag_that_the_input_takes_too_is_given_up() -> None:
    taken = wire.CONTROL - 1
    data = (
        in_record("a1", A)
        + manifest(taken, *B)
        + text_log("b1", tag_bits=taken)
        + in_record("a2", A)
    )
    assert who_said(moved(data, "manifest")[0]) == who_said(data)


def test_logs_rolled_out_are_their_components_though_a_tag_is_reused() -> None:
    data = (
        manifest(3, *A)
        + rolled_out(3, 4)
        + manifest(3, *B)
        + text_log("b1", tag_bits=3)
        + in_record("a1", A, 1)
    )
    after, lost = moved(data, "in_record")
    said = [(e.message, e.component, e.rolled_out) for e in entries_of(decode(after)[0])]
    assert said == [("b1", "core/b", 0), ("a1", "core/a", 5)]
    assert lost == {}


def test_a_url_alone_takes_the_moniker_that_a_manifest_names() -> None:
    data = (
        manifest(3, *A)
        + rolled_out(3, 4)
        + log(("message", "string", "m"), ("$__url", "string", "own"), tag_bits=3)
        + log(("message", "string", "n"), ("$__rolled_out", "uint64", 2), tag_bits=3)
    )
    after, lost = moved(data, "in_record")
    said = entries_of(decode(after)[0])
    assert [(e.message, e.component, e.url, e.rolled_out) for e in said] == [
        ("m", "core/a", "own", 4),
        ("n", "core/a", "url-a", 2),
    ]
    assert lost == {}
    assert not any(record.tag_bits for record in decode(after)[0])


def test_what_cannot_be_moved_is_counted() -> None:
    full = text_log("x" * (8 * (4095 - 4)), tag_bits=3)
    after, lost = moved(manifest(3, *A) + full, "in_record")
    assert (len(after), lost.total()) == (len(full), 1)
    only_url = log(("$__url", "string", "u"))
    assert moved(only_url, "manifest") == (
        only_url,
        {"attributions without a moniker (kept as they are)": 1},
    )
    assert moved(manifest(3, *A) + rolled_out(3, 4), "in_record") == (
        b"",
        {"counts of logs rolled out": 1},
    )
    with pytest.raises(UsageError):
        AttributionConverter("nowhere")


@cases("to", ["manifest", "in_record", "none", "keep"])
def test_it_is_an_option_of_the_writer(to: str) -> None:
    records, _ = decode(IN_RECORD)
    shown = [record.to_json() for record in records]
    expected = IN_RECORD if to == "keep" else moved(IN_RECORD, to)[0]
    assert rewritten("log", records, attribution=to) == expected
    assert rewritten("log", shown, attribution=to) == expected
    with pytest.raises(UsageError):
        rewritten("log", [], attribution="nowhere")
