"""What is not to be passed on is not in the output, whatever record it stood in."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from fx_log import format as wire
from fx_log.format import Argument
from fx_log.read import records as fx
from fx_log.rules import RULES
from fx_log.write.redaction import MASK, Redactor, redact
from fx_log.write.rewriter import open_writer
from fxframework.errors import UsageError
from fxframework.io.sink import Sink
from fxframework.model.diagnostics import Diagnostics

from ...cases import cases
from .logs import entry, log, manifest, packet, ring, stream, text_log
from .test_records import decode
from .test_writer import entries, rewritten

SECRET = "hunter2"
TEXTS = log(
    ("pid", "uint64", 1),
    ("file", "string", f"/home/{SECRET}/a.c"),
    ("message", "string", f"the password is {SECRET}, {SECRET}"),
    ("key", "string", SECRET),
    ("tag", "string", f"t-{SECRET}"),
    ("$__moniker", "string", f"core/{SECRET}"),
    ("$__url", "string", f"u/{SECRET}"),
)


def kept(data: bytes, form: str = "log", **how: Any) -> tuple[bytes, Counter[str]]:
    counts: Counter[str] = Counter()
    records = list(redact(decode(data, form)[0], counts=counts, **how))
    return rewritten(form, records), +counts


def test_a_pattern_is_masked_in_all_texts() -> None:
    after, counts = kept(TEXTS, patterns=[SECRET])
    assert SECRET.encode() not in after
    (record,), found = decode(after)
    assert [f.code for f in found] == []
    assert [a.value for a in record.args] == [
        1,
        f"/home/{MASK}/a.c",
        f"the password is {MASK}, {MASK}",
        MASK,
        f"t-{MASK}",
        f"core/{MASK}",
        f"u/{MASK}",
    ]
    assert counts == {"matches": 7}


def test_keys_lose_their_values_of_whatever_type() -> None:
    data = log(
        ("user", "string", "me"), ("id", "int64", 5), ("ok", "bool", True), ("rest", "double", 1.0)
    )
    after, counts = kept(data, keys=["user", "id", "ok", "absent"])
    (record,) = decode(after)[0]
    assert [(a.name, a.type, a.value) for a in record.args] == [
        ("user", "string", MASK),
        ("id", "string", MASK),
        ("ok", "string", MASK),
        ("rest", "double", 1.0),
    ]
    assert counts == {"values": 3}


@cases(
    "data",
    [
        b"\xff" * 8 + SECRET.encode().ljust(16),  # no record at all
        text_log("m") + SECRET.encode(),  # an odd tail
        log(("k", "string", "v"))[:-1] + b"!",  # in the padding of a text
        fx.LogRecord(
            timestamp=1,
            severity=0x30,
            args=(Argument(name="k", type=13, value=SECRET.encode().ljust(8)),),
        ).pack(),
        fx.LogRecord(
            timestamp=1,
            severity=0x30,
            args=(
                Argument(name="", type="damaged", value=b"\x16" + SECRET.encode(), code="FXL0114"),
            ),
        ).pack(),
    ],
    ids=["damage", "tail", "padding", "type", "argument"],
)
def test_bytes_that_were_not_understood_are_left_out(data: bytes) -> None:
    after, counts = kept(data, patterns=["no such thing"])
    assert SECRET.encode() not in after
    assert b"!" not in after
    assert counts.total() == 1


def test_packets_containers_and_manifests() -> None:
    data = stream([packet(f"it is {SECRET}", SECRET, "tag"), packet("plain")])
    after, counts = kept(data, "log-legacy-stream", patterns=[SECRET])
    first, second = decode(after, "log-legacy-stream")[0][1:]
    assert (first.message, first.tags, second.message) == (f"it is {MASK}", (MASK, "tag"), "plain")
    assert counts == {"matches": 2}
    after, _ = kept(data, "log-legacy-stream", keys=["message", "tag"])
    assert [p.message for p in decode(after, "log-legacy-stream")[0][1:]] == [MASK, MASK]
    after, _ = kept(manifest(3, f"core/{SECRET}", "u"), patterns=[SECRET])
    assert SECRET.encode() not in after


def test_rings_with_their_unused_space() -> None:
    data = ring(
        [entry(text_log(SECRET)), entry(SECRET.encode()), entry(text_log("b") + SECRET.encode())],
        rest=SECRET.encode() + b"!",
    )
    after, counts = kept(data, "log-ring", patterns=[SECRET])
    assert SECRET.encode() not in after
    assert len(after) == len(data)
    messages = [r.log.args[0].value for r in decode(after, "log-ring")[0] if hasattr(r, "log")]
    assert messages == [MASK, "b"]
    assert counts["damaged stretches left out"] >= 1


def test_numbers_of_packets_become_0() -> None:
    data = packet("m", dropped_logs=3)
    after, counts = kept(data, "log-legacy", keys=["pid", "tid", "dropped_logs"])
    (made,) = decode(after, "log-legacy")[0]
    assert (made.pid, made.tid, made.dropped_logs, made.message) == (0, 0, 0, "m")
    assert counts == {"values": 3}


@cases("moniker", ["moniker", "$__moniker"])
def test_who_logged_is_redacted_in_every_generation(moniker: str) -> None:
    suffix = fx.Attribution(moniker=SECRET, url="u/ok", rolled_out=4).pack()
    data = text_log("m") + suffix
    data += log(("$__moniker", "string", SECRET), ("$__url", "string", "u/ok")) + suffix
    data += manifest(3, SECRET, "u/ok") + suffix
    records = list(redact(decode(data, suffix=True)[0], keys=[moniker]))
    after = b"".join(record.pack() for record in records)
    assert SECRET.encode() not in after
    assert after.count(b"u/ok") == data.count(b"u/ok")


def test_counts_of_logs_rolled_out_stay_numbers() -> None:
    data = log(("rolled_out", "uint64", 99), tag_bits=wire.CONTROL | 3)
    data += log(("$__moniker", "string", "core/a"), ("$__rolled_out", "uint64", 99))
    after, counts = kept(data, keys=["rolled_out"])
    rows = entries(after)
    assert [(row.component, row.rolled_out) for row in rows] == [("UNKNOWN", 0), ("core/a", 0)]
    assert counts == {"values": 2}


def test_a_container_whose_header_is_damaged_has_one_afterwards() -> None:
    sound = stream([packet("m")])
    data = b"?" + sound[1:]
    after, counts = kept(data, "log-legacy-stream", patterns=["no such thing"])
    assert (after, counts.total()) == (sound, 1)
    records = decode(data, "log-legacy-stream")[0]
    assert rewritten("log-legacy-stream", records, redact_keys="pid")[:16] == sound[:16]
    assert rewritten("log-legacy-stream", records) == data  # as it stood
    assert rewritten("log-legacy-stream", records[1:]) == sound


def test_suffixes() -> None:
    data = text_log("m") + fx.Attribution(moniker=SECRET, url=f"u/{SECRET}").pack()
    records = list(redact(decode(data, suffix=True)[0], patterns=[SECRET]))
    assert (records[1].moniker, records[1].url) == (MASK, f"u/{MASK}")  # type: ignore[attr-defined]


def test_masks_that_would_make_a_record_too_large_take_the_whole_text() -> None:
    data = text_log("ab" * (4 * (wire.MAX_RECORD_WORDS - 4)))
    after, counts = kept(data, patterns=["a"])
    assert [a.value for a in decode(after)[0][0].args] == [MASK]
    many = log(*[("k", "string", "a" * 8) for _ in range(1364)])
    after, counts = kept(many, keys=["k"])
    assert (after, counts) == (b"", {"records left out, which masks make too large": 1})


@hypothesis.given(st.binary(max_size=200), st.integers(0, 3))
def test_nothing_that_is_named_passes_whatever_the_bytes(data: bytes, words: int) -> None:
    data = text_log(SECRET)[: 8 * words] + data + TEXTS + data
    after, _ = kept(data, patterns=[SECRET, re.compile("password")])
    assert SECRET.encode() not in after
    assert b"password" not in after
    assert decode(after)[1].worst is None or SECRET not in str(decode(after)[0])


def test_it_is_an_option_of_every_writer() -> None:
    (record,) = decode(TEXTS)[0]
    options = {"redact_keys": "key,message", "redact_pattern": "hunt.r2"}
    after = rewritten("log", [record], **options)
    assert SECRET.encode() not in after
    assert rewritten("log", [record.to_json()], **options) == after
    for form, data in (("log-legacy", packet(SECRET)), ("log-ring", ring([entry(TEXTS)]))):
        assert SECRET.encode() not in rewritten(form, decode(data, form)[0], **options)
    assert Redactor.of({}) is None
    with pytest.raises(UsageError):
        rewritten("log", [], redact_pattern="(")


def test_what_was_redacted_is_reported() -> None:
    found = Diagnostics(RULES)
    sink = Sink.memory()
    writer = open_writer(
        sink,
        {"attribution": "keep", "redact_keys": " user , usr,", "redact_pattern": ""},
        found,
    )
    for number in range(3):
        writer.write(
            fx.LogRecord(
                timestamp=number,
                severity=0x30,
                args=(Argument(name="user", type="string", value="me"),),
            )
        )
    assert not found.counts
    writer.close()
    assert found.counts == {"FXL0901": 3, "FXL0903": 1}
    assert found[-1].message == "a key to be redacted was not there: usr"
