"""Parts of logs in their own format."""

from __future__ import annotations

from typing import Any

import fxframework as fxf
from fx_log import format as wire
from fx_log.read import records as fx
from fx_log.write.copying import extract
from fxframework.io.sink import Sink
from fxframework.model.selection import Selection

from ...cases import cases
from .logs import entry, log, manifest, packet, ring, stream, text_log
from .test_records import decode

ATTRIBUTION = fx.Attribution(moniker="core/a", url="u").pack()
LOGS = b"".join(text_log(f"m{n}", time=n, severity=0x10 * (1 + n % 6)) for n in range(12))
PLAIN = {"attribution": "keep", "redact_keys": "", "redact_pattern": ""}


def part(data: bytes, selection: Selection, format: str = "log", **options: Any) -> Any:
    sink = Sink.memory()
    with fxf.open(data, format=format, **options) as capture:
        left_out = extract(capture, selection, sink, PLAIN)
    return sink.getvalue(), left_out


def messages(data: bytes, format: str = "log", **options: Any) -> list[str | None]:
    with fxf.open(data, format=format, **options) as capture:
        return capture.table("logs").texts("message")


def test_a_part_has_what_was_chosen_and_who_logged_it() -> None:
    data = manifest(3, "core/a", "u") + text_log("a", tag_bits=3, time=1) + LOGS
    out, left_out = part(data, Selection(min_severity="error"))
    assert messages(out) == ["m4", "m5", "m10", "m11"]
    assert left_out == {"logs": 9}
    assert [record.record for record in decode(out)[0]] == ["log"] * 5  # the manifest stays
    out, _ = part(data, Selection(components=("core",)))
    assert messages(out) == ["a"]


def test_damage_is_left_out_and_counted() -> None:
    data = LOGS[:200] + b"\xff" * 24 + LOGS[200:] + b"odd"
    out, left_out = part(data, Selection(start_ns=3, stop_ns=6))
    assert messages(out) == ["m3", "m4", "m5"]
    assert left_out == {"logs": 9, "damaged stretches": 2}
    assert not decode(out)[1].counts


def test_suffixes_go_with_their_logs() -> None:
    data = b"".join(text_log(f"m{n}", time=n) + ATTRIBUTION for n in range(4))
    out, _ = part(data, Selection(start_ns=1, stop_ns=3), suffix=True)
    assert out == data[len(data) // 4 : 3 * len(data) // 4]
    assert messages(out, suffix=True) == ["m1", "m2"]


def test_a_part_of_packets() -> None:
    data = stream([packet("a", time=1), b"short", packet("b", time=2)])
    out, left_out = part(data, Selection(start_ns=2), "log-legacy-stream")
    assert out == stream([packet("b", time=2)])
    assert left_out == {"logs": 1, "damaged stretches": 1}


@cases("tail", [0, 65536 - 40])
def test_a_part_of_a_ring_is_a_ring(tail: int) -> None:
    data = ring([entry(text_log(f"m{n}", time=n)) for n in range(4)], tail=tail, rest=b"\2")
    out, left_out = part(data, Selection(start_ns=1, stop_ns=3), "log-ring")
    assert len(out) == len(data)
    assert messages(out, "log-ring") == ["m1", "m2"]
    assert left_out == {"logs": 2}
    assert not decode(out, "log-ring")[1].counts


def test_bytes_behind_a_log_are_left_out_of_a_part_and_counted() -> None:
    data = ring([entry(text_log("a") + b"12345678")])
    _, left_out = part(data, Selection(), "log-ring")
    assert left_out == {"entries with bytes behind their records": 1}


def test_a_part_of_a_container_whose_header_is_damaged_gets_a_fresh_one() -> None:
    sound = stream([packet("a", time=1), packet("b", time=2)])
    data = sound[:9] + b"\xff" + sound[10:]
    out, left_out = part(data, Selection(start_ns=2), "log-legacy-stream")
    assert out == stream([packet("b", time=2)])
    assert left_out == {"logs": 1, "damaged stretches": 1}


def test_a_part_says_what_its_writer_reports() -> None:
    options = {"attribution": "in_record", "redact_keys": "k, absent", "redact_pattern": ""}
    full = text_log("x" * (8 * (wire.MAX_RECORD_WORDS - 4)), tag_bits=3, time=1)
    keyed = log(("message", "string", "m"), ("k", "int64", 1), time=2)
    data = manifest(3, "core/a", "u") + full + keyed + text_log("late", time=9)
    sink = Sink.memory()
    with fxf.open(data, format="log") as capture:
        left_out = extract(capture, Selection(stop_ns=5), sink, options)
    assert messages(sink.getvalue())[1:] == ["m"]
    assert left_out == {
        "logs": 1,
        "values redacted": 1,
        "logs without their component": 1,
        "keys to be redacted that were not there": 1,
    }


@cases("criterion", ["pids", "tids"])
@cases("form", ["log", "log-ring"])
def test_the_number_0_chooses_logs_that_give_it(form: str, criterion: str) -> None:
    given = log(("pid", "uint64", 0), ("tid", "uint64", 0), ("message", "string", "given"))
    data = given + text_log("not given")
    if form == "log-ring":
        data = ring([entry(given), entry(text_log("not given"))])
    out, left_out = part(data, Selection(**{criterion: (0,)}), form)
    assert (messages(out, form), left_out) == (["given"], {"logs": 1})
