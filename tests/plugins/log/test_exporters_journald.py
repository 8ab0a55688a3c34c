"""`journald`: names of fields, forms of values, and times that the journal cannot hold."""

from __future__ import annotations

import re

from ...cases import cases
from ...oracle.journal import Entry, entries
from .captures import Arg, Log, export, exporter, hand_made

JOURNALD = exporter("journald")
NO_OFFSET = "wall times: the offset from UTC is not known (-o utc_offset_ns=NS)"
CLAMPED = "times that the journal cannot hold"


def entry(*args: Arg) -> Entry:
    data, _ = export(JOURNALD, hand_made(Log(args=args)))
    (one,) = entries(data)
    return one[one.index(("FUCHSIA_BOOT_TIME_NS", b"0")) + 1 :]


@cases(
    ("key", "field"),
    [
        ("count", "COUNT"),
        ("http.status-code", "HTTP_STATUS_CODE"),
        ("_private", "PRIVATE"),
        ("__REALTIME_TIMESTAMP", "REALTIME_TIMESTAMP"),
        ("4xx", "KEY_4XX"),
        ("_4xx", "KEY_4XX"),
        ("", "KEY_"),
        ("___", "KEY_"),
        ("größe", "GR_SSE"),
        (b"caf\xe9", "CAF_"),
        ("message", "KEY_MESSAGE"),
        ("Priority", "KEY_PRIORITY"),
        ("message_id", "KEY_MESSAGE_ID"),
        ("fuchsia_tag", "KEY_FUCHSIA_TAG"),
        ("x" * 70, "X" * 64),
    ],
)
def test_keys_become_names_of_fields(key: str | bytes, field: str) -> None:
    assert entry(Arg(name=key, value=1)) == [(field, b"1")]


def test_keys_of_one_name_are_told_apart() -> None:
    keys = ["a.b", "a_b", "A_B", "a.b", "a_b_2", "y" * 64, "y" * 65, "y" * 66]
    found = entry(*(Arg(name=key, value=at) for at, key in enumerate(keys)))
    names = [name for name, _ in found]
    assert names[:5] == ["A_B", "A_B_2", "A_B_3", "A_B", "A_B_2_2"]
    assert len(set(names)) == 7
    assert all(re.fullmatch("[A-Z][A-Z0-9_]{0,63}", name) for name in names)


def test_a_key_has_one_name_in_all_captures() -> None:
    first = hand_made(Log(args=[Arg(name="a.b", value=1)]))
    second = hand_made(Log(args=[Arg(name="a_b", value=2), Arg(name="a.b", value=3)]))
    data, _ = export(JOURNALD, first, second)
    assert [one[-1] for one in entries(data)] == [("A_B", b"1"), ("A_B", b"3")]


@cases(
    ("value", "written"),
    [
        ("text", b"K=text\n"),
        ("", b"K=\n"),
        ("Zo\u00eb", "K=Zoë\n".encode()),
        ("a\nb", b"K\n\x03" + bytes(7) + b"a\nb\n"),
        ("a\tb", b"K\n\x03" + bytes(7) + b"a\tb\n"),
        (b"\xff", b"K\n\x01" + bytes(7) + b"\xff\n"),
    ],
)
def test_what_is_no_line_of_text_has_its_length(value: str | bytes, written: bytes) -> None:
    data, _ = export(JOURNALD, hand_made(Log(args=[Arg(name="k", value=value)])))
    assert data.endswith(b"\n" + written + b"\n")
    data, _ = export(JOURNALD, hand_made(Log(message=value)))
    assert b"\n" + written.replace(b"K", b"MESSAGE", 1) + b"FUCHSIA" in data


@cases(
    ("ts", "offset", "real", "boot", "dropped"),
    [
        (1_999, 10**15, 10**12 + 1, 1, {}),
        (5_000, 0, 5, 5, {NO_OFFSET: 1}),
        (0, 0, 1, 0, {NO_OFFSET: 1}),
        (-1, 0, 1, 0, {NO_OFFSET: 1, CLAMPED: 1}),
        (-1_000, 10**15, 10**12 - 1, 0, {CLAMPED: 1}),
        (5_000, -(10**15), 1, 5, {CLAMPED: 1}),
        (2**63 - 1, 2**63 - 1, (2**64 - 2) // 1000, (2**63 - 1) // 1000, {}),
    ],
)
def test_times(ts: int, offset: int, real: int, boot: int, dropped: dict[str, int]) -> None:
    data, lost = export(JOURNALD, hand_made(Log(ts=ts)), utc_offset_ns=offset)
    (found,) = entries(data)
    assert found[:2] == [
        ("__REALTIME_TIMESTAMP", str(real).encode()),
        ("__MONOTONIC_TIMESTAMP", str(boot).encode()),
    ]
    assert ("FUCHSIA_BOOT_TIME_NS", str(ts).encode()) in found
    assert lost == dropped


def test_the_boot_is_the_same_every_time_or_the_one_that_is_given() -> None:
    first, again = (export(JOURNALD, hand_made(Log()))[0] for _ in range(2))
    assert first == again
    data, _ = export(JOURNALD, hand_made(Log()), boot_id="0123ABCD-" + "0" * 24)
    assert b"\n_BOOT_ID=0123abcd" + b"0" * 24 + b"\n" in data
