"""Captures merged into a file of logs: every row says there what it said, or it is counted."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import attrs
import hypothesis
import pytest
from hypothesis import strategies as st

from fx_log import format as wire
from fx_log.format import STATE, Attribution, LegacyPacket
from fx_log.read.capture import LogCapture, StreamCapture
from fx_log.write.convert import structured
from fx_log.write.copying import open_merge, open_stream_merge
from fxframework.errors import UsageError
from fxframework.io.sink import Sink
from fxframework.io.source import Source
from fxframework.model.capture import Capture, OpenRequest
from fxframework.model.schema import STANDARD_TABLES, TableSchema
from fxframework.testing.cli import run_cli

from ...cases import cases
from .captures import Arg, HandMade, Log, hand_made
from .logs import REQUEST, entry, log, manifest, opened, packet, ring, stream, text_log
from .test_converting import BY_MANIFEST, IN_RECORD, A, entries_of, in_record
from .test_records import decode

FULL = log(
    ("pid", "uint64", 1),
    ("tid", "uint64", 2**64 - 1),
    ("num_dropped", "uint64", 3),
    ("file", "string", "a.c"),
    ("line", "uint64", 7),
    ("verbosity", "int64", 2),
    ("message", "string", "it broke"),
    ("n", "int64", -1),
    ("u", "uint64", 2**64 - 1),
    ("d", "double", -0.5),
    ("t", "bool", True),
    ("f", "bool", False),
    ("", "string", ""),
    ("odd\udcff", "string", "\udcfe"),
    ("null", "null", None),
    ("n", "int64", 2),
    ("tag", "string", "a,b"),
    ("tag", "string", "c"),
    severity=0x4F,
    time=-5,
)


def merged(*captures: Capture, to: Any = open_merge, **options: Any) -> tuple[bytes, Any]:
    sink = Sink.memory()
    session = to(sink, options)
    for capture in captures:
        session.write(capture)
    return sink_value(session, sink)


def said_of(record: Any) -> Any:
    """The message of a structured record."""
    return next(a.value for a in record.args if a.name == "message")


def sink_value(session: Any, sink: Sink) -> tuple[bytes, Mapping[str, int]]:
    dropped = dict(session.close())
    return sink.getvalue(), dropped


def said(data: bytes, form: str = "log") -> list[dict[str, Any]]:
    """What each row says, but for the tag."""
    rows = []
    for each in entries_of(decode(data, form)[0], form):
        args = [(a.name, a.type, a.value) for a in each.args]
        fields = attrs.asdict(
            each, recurse=False, filter=lambda a, _: a.name not in {"args", "tag"}
        )
        rows.append(fields | {"args": args})
    return rows


@cases("attribution", ["manifest", "in_record"])
@cases(
    "data",
    [FULL, BY_MANIFEST, text_log("m") * 3, log()],
    ids=["full", "manifests", "many", "empty"],
)
def test_rows_come_out_as_they_went_in(data: bytes, attribution: str) -> None:
    after, dropped = merged(opened(data), attribution=attribution)
    before = said(data)
    if attribution == "in_record":  # the component's next log says what was rolled out
        lost = [row for row in before if row["rolled_out"] and row["message"] is None]
        before = [row for row in before if row not in lost]
        for row in before:
            row["rolled_out"] = 9 if row["message"] == "b1" else row["rolled_out"]
    assert said(after) == before
    assert dropped == {}


@cases("kind", [1, 2, 7, 8, 10, 14, 15])
def test_arguments_of_types_that_nobody_knows_keep_their_bytes(kind: int) -> None:
    unknown = ("odd", kind, bytes(range(16)))
    data = log(("message", "string", "m"), ("a", "int64", 1), unknown, ("b", "string", "c"))
    after, dropped = merged(opened(data))
    assert dropped == {}
    assert said(after) == said(data)
    (row,) = said(after)
    assert ("odd", kind, bytes(range(16))) in row["args"]
    packets, dropped = merged(opened(data), to=open_stream_merge)
    (packet,) = said(packets, "log-legacy-stream")
    assert packet["message"] == f"m a=1 odd={bytes(range(16)).hex()} b=c"
    assert dropped == {"keys (put into messages)": 3}


def test_what_was_rolled_out_before_a_log_becomes_a_control_record() -> None:
    after, dropped = merged(opened(IN_RECORD), attribution="manifest")
    rows = [(r["message"], r["component"], r["url"], r["rolled_out"]) for r in said(after)]
    assert rows == [
        ("nobody", None, None, 0),
        ("a1", "core/a", "url-a", 0),
        (None, "core/b", "url-b", 9),
        ("b1", "core/b", "url-b", 0),
        ("a2", "core/a", "url-a", 0),
    ]
    assert dropped == {}
    controls = [r.tag_bits for r in decode(after)[0] if r.control]
    assert controls == [wire.CONTROL | wire.CONTROL - 1 - n for n in (0, 1, 1)]


def test_without_attribution_nobody_is_named_and_that_is_counted() -> None:
    after, dropped = merged(opened(IN_RECORD), attribution="none")
    assert {row["component"] for row in said(after)} == {None, "UNKNOWN"}
    assert b"core/" not in after
    assert sum(row["rolled_out"] for row in said(after)) == 9
    assert dropped == {"components": 3}
    with pytest.raises(UsageError):
        open_merge(Sink.memory(), {"attribution": "nowhere"})


def test_tags_of_several_captures_are_kept_apart() -> None:
    one = manifest(1, "core/a", "u") + text_log("a", tag_bits=1)
    two = manifest(1, "core/b", "u") + text_log("b", tag_bits=1) + text_log("?", tag_bits=9)
    after, _ = merged(opened(one), opened(two), opened(one))
    rows = [(row["message"], row["component"]) for row in said(after)]
    assert rows == [("a", "core/a"), ("b", "core/b"), ("?", "UNKNOWN"), ("a", "core/a")]
    controls, logs = decode(after)[0][:3], decode(after)[0][3:]
    assert [record.tag_bits for record in controls] == [
        wire.CONTROL | tag for tag in (1, wire.CONTROL - 1, 1)
    ]
    assert [record.tag_bits for record in logs] == [1, wire.CONTROL - 1, 9, 1]


WELL_KNOWN = [(name, kind.name.lower()) for name, kind in wire.WELL_KNOWN.items()]
ARGUMENT = st.one_of(
    st.sampled_from([*WELL_KNOWN, ("key", "uint64"), ("key", "string")]).flatmap(
        lambda named: st.tuples(
            *map(st.just, named),
            st.text("ab", max_size=3) if named[1] == "string" else st.sampled_from([0, 1, 2**40]),
        )
    ),
    st.just(("odd", 15, bytes(8))),
    st.just(("$__moniker", "string", "core/own")),
)
TAGS = st.integers(0, 3)
RECORD = st.one_of(
    st.builds(lambda args, **more: log(*args, **more), st.lists(ARGUMENT, max_size=6),
              time=st.integers(-2, 2), severity=st.integers(0, 255), tag_bits=TAGS),
    st.builds(manifest, TAGS, st.sampled_from(["core/a", "core/b"]), st.just("url")),
    st.builds(lambda tag, n: log(("rolled_out", "uint64", n), time=n, tag_bits=wire.CONTROL | tag),
              TAGS, st.integers(0, 2)),
)  # fmt: skip


def as_ring(records: list[bytes]) -> bytes:
    tags = [struct.unpack("<Q", record[:8])[0] >> 16 & 0x7FFFFFFF for record in records]
    return ring(map(entry, records, tags), tail=wire.RING_MINIMUM - 64)


FORMS = {
    "log": b"".join,
    "log-ring": as_ring,
    "log-legacy-stream": stream,
    "log-legacy": lambda packets: packets[0],
}


def is_manifest(record: Any) -> bool:
    return getattr(record, "control", False) and record.args[-1].name == "url"


@hypothesis.given(
    st.lists(
        st.tuples(st.sampled_from(["log", "log-ring"]), st.lists(RECORD, min_size=1, max_size=8)),
        min_size=1,
        max_size=3,
    )
)
def test_every_record_is_kept_as_it_is_in_the_order_of_time(
    captures: list[tuple[str, list[bytes]]],
) -> None:
    files = [(FORMS[form](records), form) for form, records in captures]
    after, dropped = merged(*(opened(*file) for file in files))
    assert dropped == {}
    before = [decode(record)[0][0] for _, records in captures for record in records]
    records = decode(after)[0]
    if len(captures) > 1:
        before.sort(key=lambda record: -99 if is_manifest(record) else record.timestamp)
    assert [attrs.evolve(r, tag_bits=r.control << 31) for r in records] == [
        attrs.evolve(r, tag_bits=r.control << 31) for r in before
    ]
    rows = [row for file in files for row in said(*file)]
    if len(captures) > 1:
        rows.sort(key=lambda row: row["ts"])
    unnamed = {"UNKNOWN": None}
    assert [
        row
        | {"component": unnamed.get(row["component"], row["component"]), "url": row["url"] or None}
        for row in said(after)
    ] == [
        row
        | {"component": unnamed.get(row["component"], row["component"]), "url": row["url"] or None}
        for row in rows
    ]


@hypothesis.given(
    st.lists(
        st.tuples(
            st.sampled_from(["log-legacy-stream", "log-legacy"]),
            st.lists(
                st.builds(packet, st.text("ab"), st.text("t", min_size=1), time=st.integers(-2, 2),
                          severity=st.integers(-(2**31), 2**31 - 1)).map(lambda p: p + b"\0"),
                min_size=1, max_size=4,
            ),
        ),
        min_size=1,
        max_size=3,
    )
)  # fmt: skip
def test_every_packet_is_kept_as_it_is_in_the_order_of_time(
    captures: list[tuple[str, list[bytes]]],
) -> None:
    after, dropped = merged(
        *(opened(FORMS[form](packets), form) for form, packets in captures), to=open_stream_merge
    )
    packets = [
        each for form, some in captures for each in (some[:1] if form == "log-legacy" else some)
    ]
    if len(captures) > 1:
        packets.sort(key=lambda data: struct.unpack_from("<q", data, 16))
    assert (after, dropped) == (stream(packets), {})
    after, dropped = merged(*(opened(FORMS[form](some), form) for form, some in captures))
    packets = [LegacyPacket.unpack(memoryview(data), 0, len(data), STATE)[0] for data in packets]
    assert [record.timestamp for record in decode(after)[0]] == [p.timestamp for p in packets]
    odd = sum(packet.severity != packet.raw_severity for packet in packets)
    assert dropped == ({"severities beyond a byte": odd} if odd else {})


@cases("form", ["log", "log-ring"])
@cases("attribution", ["keep", "in_record"])
def test_a_part_of_a_capture_is_merged(form: str, attribution: str) -> None:
    data = FORMS[form]([text_log(f"m{time}", time=time) for time in range(4)])
    part = opened(data, form).between(1, 3)
    after, dropped = merged(part, opened(text_log("m", time=2)), attribution=attribution)
    assert [said_of(record) for record in decode(after)[0]] == ["m1", "m2", "m"]
    assert dropped == {}


def test_suffixes_become_manifests() -> None:
    suffix = Attribution(moniker="core/a", url="url").pack()
    request = OpenRequest(options={**REQUEST.options, "suffix": True})
    capture = LogCapture(Source.open(text_log("a") + suffix), request)
    after, dropped = merged(capture)
    assert [(row["message"], row["component"]) for row in said(after)] == [("a", "core/a")]
    assert dropped == {}


def test_what_packets_leave_out_of_records_is_counted() -> None:
    data = log(("message", "string", "a"), ("message", "string", "b"), ("line", "uint64", 1))
    data += log(("message", "string", "c"), ("line", "uint64", 2**40))
    after, dropped = merged(opened(data), to=open_stream_merge)
    messages = [row["message"] for row in said(after, "log-legacy-stream")]
    assert messages == ["b", f"c line={2**40}"]
    assert dropped.pop("keys (put into messages)") == 1
    replaced = "arguments that a later one of the name replaces"
    assert dropped == {replaced: 1, "lines without a file": 1}


def test_packets_and_rings_become_records() -> None:
    after, dropped = merged(
        opened(stream([packet("hello", "x,y", "z", dropped_logs=3)]), "log-legacy-stream"),
        opened(ring([entry(text_log("ringed"), tag=0)]), "log-ring"),
    )
    first, second = said(after)
    assert (first["message"], first["tags"], first["dropped"]) == ("hello", ["x,y", "z"], 3)
    assert (first["pid"], first["tid"], second["message"]) == (1, 2, "ringed")
    assert dropped == {}


@cases("name", ["$__moniker", "$__url"])
def test_a_key_that_would_say_who_logged_does_not_stand_at_the_end(name: str) -> None:
    data = log((name, "string", "not me"), ("message", "string", "m"))
    after, dropped = merged(opened(data))
    assert said(after) == said(data)
    assert dropped == {}


class Foreign(HandMade):
    """A capture of another format, whose table `logs` is the standard one."""

    format = "other"
    schemas: ClassVar[Mapping[str, TableSchema]] = {
        name: STANDARD_TABLES[name] for name in ("logs", "args", "instants")
    }


def foreign(args: list[Arg], **columns: Any) -> Foreign:
    capture = Foreign()
    capture.fill("logs", **{"ts": [5], "message": ["m"], "pid": [1], **columns})
    capture.fill(
        "args",
        table=7,
        parent=[0] * len(args),
        name=[arg.name for arg in args],
        type=[arg.code for arg in args],
        int=[arg.value if isinstance(arg.value, int) else 0 for arg in args],
        uint=[arg.value if isinstance(arg.value, int) else 0 for arg in args],
        str=[arg.value if isinstance(arg.value, str | bytes) else None for arg in args],
    )
    capture.fill("instants", ts=[1, 2])
    return capture


def test_logs_of_other_formats() -> None:
    args = [
        Arg(name="tag", value="key"),
        Arg(name="$__moniker", value="not me"),
        Arg(name="koid", value=7, type=8),
        Arg(name="small", value=1, type=1),
        Arg(name="blob", value=b"bytes", type=10),
    ]
    after, dropped = merged(foreign(args, tags=["a,b"]))
    (row,) = said(after)
    assert (row["ts"], row["severity"], row["pid"], row["tid"]) == (5, 0x30, 1, None)
    assert row["tags"] == ["a", "b"]
    assert row["args"] == [
        ("tag_", "string", "key"),
        ("$__moniker_", "string", "not me"),
        ("koid", "uint64", 7),
        ("small", "int64", 1),
    ]
    assert dropped == {
        "names of keys, which got an underscore": 2,
        "values that are bytes": 1,
        "rows of instants": 2,
    }


@cases(
    "logs",
    [
        Log(message="x" * 40_000),
        Log(message="x" * 40_000, args=[Arg(name="k", value=1)]),
        Log(message="m", args=[Arg(name="k", value="x" * 40_000)]),
        Log(message="m", args=[Arg(name="k", value="x" * 30_000)] * 2),
    ],
)
def test_what_is_too_large_is_written_in_part_and_counted(logs: Log) -> None:
    after, dropped = merged(hand_made(Log(message="before"), logs, Log(message="after")))
    rows = said(after)
    assert len(rows) == 3
    assert (rows[0]["message"], rows[-1]["message"]) == ("before", "after")
    assert dropped["logs, in part"] == 1


def test_a_log_of_long_texts_is_written_in_part() -> None:
    after, dropped = merged(hand_made(Log(message="m", file="x" * 40_000), Log(message="n")))
    rows = said(after)
    assert [row["message"] for row in rows] == ["m", "n"]
    assert rows[0]["file"].endswith("xxx...")
    assert dropped == {"logs, in part": 1}


def test_the_offset_from_utc_has_no_place() -> None:
    _, dropped = merged(hand_made(Log(message="m"), utc_offset_ns=5))
    assert dropped == {"the offset from UTC": 1}


def test_redaction_while_merging() -> None:
    options = {"redact_pattern": "broke|core/.", "redact_keys": "n"}
    after, dropped = merged(opened(FULL + BY_MANIFEST), **options)
    assert b"broke" not in after
    assert b"core/" not in after
    assert dropped["redacted: values"] == 2
    after, _ = merged(opened(FULL), to=open_stream_merge, **options)
    assert b"broke" not in after


@cases("fold", [True, False])
def test_what_is_redacted_by_key_does_not_come_into_a_packets_message(fold: bool) -> None:
    data = log(
        ("pid", "uint64", 77),
        ("tid", "uint64", 78),
        ("num_dropped", "uint64", 79),
        ("file", "string", "home.c"),
        ("line", "uint64", 5),
        ("message", "string", "plain"),
        ("token", "string", "hunter2"),
        ("number", "int64", 123456),
        ("blob", "uint64", 654321),
        ("tag", "string", "secret"),
    )
    keys = "token, pid ,tid,tag,file,number,num_dropped,absent"
    options = {"redact_keys": keys, "redact_pattern": "654321"}
    after, dropped = merged(opened(data), to=open_stream_merge, fold=fold, **options)
    _, made = decode(after, "log-legacy-stream")[0]
    assert isinstance(made, LegacyPacket)
    assert (made.pid, made.tid, made.dropped_logs, made.tags) == (0, 0, 0, ("<redacted>",))
    mask = "<redacted>"
    whole = f"[{mask}(5)] plain token={mask} number={mask} blob={mask}"
    assert made.message == (whole if fold else "plain")
    assert dropped["redacted: values"] == 7
    assert dropped["to be redacted, but not there: absent"] == 1


def test_the_entries_of_a_ring_keep_their_tags_where_they_fit() -> None:
    data = ring(
        [
            entry(text_log("a"), tag=1),
            entry(text_log("b") + b"8 bytes.", tag=1 << 31),
            entry(b"no log", tag=1),
            entry(in_record("a1", A), tag=2),
            entry(text_log("c"), tag=2),
        ]
    )
    after, dropped = merged(opened(data, "log-ring"))
    tags = [(r.tag_bits, said_of(r)) for r in decode(after)[0] if not r.control]
    assert tags == [(1, "a"), (0, "b"), (2, "a1"), (2, "c")]
    assert dropped == {
        "tags of entries": 1,
        "entries that hold no log": 1,
        "entries with bytes behind their records": 1,
    }
    plain = ring([entry(text_log("a"), tag=5), entry(text_log("b") + b"x" * 8, tag=1 << 40)])
    lost: Counter[str] = Counter()
    by_records = list(structured(decode(plain, "log-ring")[0], lost))
    after, dropped = merged(opened(plain, "log-ring"))
    assert decode(after)[0] == by_records
    assert dropped == {name: n for name, n in lost.items() if name != "padding"}
    _, dropped = merged(opened(plain, "log-ring"), to=open_stream_merge)
    assert dropped["ids of components that nothing names"] == 2
    after, dropped = merged(opened(plain, "log-ring"), attribution="none")
    assert [r.tag_bits for r in decode(after)[0]] == [0, 0]
    assert dropped == {"components": 1, "tags of entries": 1} | {
        "entries with bytes behind their records": 1
    }


@cases("severity", [-10, -3, -2, 0, 3, 0x21, 0x2F, 0x30])
def test_verbosities_of_packets_become_severities_as_they_do_record_by_record(
    severity: int,
) -> None:
    data = stream([packet("m", severity=severity)])
    request = OpenRequest(options={**REQUEST.options, "severity_era": "2022"})
    (by_record,) = structured(decode(data, "log-legacy-stream")[0], Counter(), era="2022")
    after, _ = merged(StreamCapture(Source.open(data), request))
    assert decode(after)[0] == [by_record]
    after, _ = merged(StreamCapture(Source.open(data), request), to=open_stream_merge)
    assert after == data


def test_legacy_packets_are_composed_with_what_they_have_no_place_for_counted() -> None:
    after, dropped = merged(opened(FULL + IN_RECORD), to=open_stream_merge)
    _, first, *others = decode(after, "log-legacy-stream")[0]
    assert isinstance(first, LegacyPacket)
    assert first.message.startswith("[a.c(7)] it broke n=-1 u=18446744073709551615 d=-0.5 t=true")
    assert (first.pid, first.severity, first.dropped_logs, first.tags) == (1, 0x4F, 3, ("a,b", "c"))
    assert [p.message for p in others] == ["nobody", "a1", "b1", "a2"]
    assert dropped["components"] == 3
    assert dropped["keys (put into messages)"] == 9
    after, dropped = merged(opened(FULL), to=open_stream_merge, fold=False)
    assert [p.message for p in decode(after, "log-legacy-stream")[0][1:]] == ["it broke"]


def test_an_empty_capture_composes() -> None:
    assert merged(opened(b"")) == (b"", {})
    assert merged(opened(b""), to=open_stream_merge) == (stream([]), {})


# --- On the command line -------------------------------------------------------------------------


def test_convert_moves_attribution_and_redacts(tmp_path: Path) -> None:
    before, after = tmp_path / "a.fxlog", tmp_path / "b.fxlog"
    before.write_bytes(IN_RECORD)
    done = run_cli(
        "convert", before, after, "-o", "attribution=manifest", "-o", "redact_keys=message"
    )
    assert done.exit_code == 0
    assert done.stderr == (
        f"note: wrote {after}: log, {after.stat().st_size} bytes\n"
        "warning[FXL0901]: values were redacted: 4 values\n"
    )
    messages = [(r["message"], r["component"]) for r in said(after.read_bytes())]
    assert messages[1:] == [
        ("<redacted>", "core/a"),
        (None, "core/b"),
        ("<redacted>", "core/b"),
        ("<redacted>", "core/a"),
    ]
    done = run_cli("convert", before, after, "--force", "-o", "attribution=nowhere")
    assert done.exit_code == 2
    assert "manifest" in done.stderr
    assert said(after.read_bytes())[0]["message"] == "<redacted>"  # as it was


def test_convert_between_generations_and_from_traces(tmp_path: Path) -> None:
    packets, records, trace = (tmp_path / name for name in ("a.fxllog", "b.fxlog", "c.fxt"))
    packets.write_bytes(stream([packet("hello", "t")]))
    assert run_cli("convert", packets, records).exit_code == 0
    assert run_cli("convert", records, trace).exit_code == 0
    back = tmp_path / "d.fxlog"
    done = run_cli("convert", trace, back)
    assert done.exit_code == 0
    (row,) = said(back.read_bytes())
    assert (row["ts"], row["message"].split()[0]) == (1000, "hello")
    done = run_cli("convert", records, tmp_path / "e.fxllog")
    assert done.exit_code == 0
    assert (tmp_path / "e.fxllog").read_bytes() == packets.read_bytes()
