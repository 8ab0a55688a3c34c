"""LogWriter: it writes what it is told, in the reference's order, or refuses and writes nothing."""

from __future__ import annotations

import io
import itertools
import json
import math
import os
import threading
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from fx_log import format as wire
from fx_log.read import records as fx
from fx_log.rules import RULES
from fx_log.write.arguments import shortened
from fx_log.write.rewriter import (
    open_legacy_writer,
    open_ring_writer,
    open_stream_writer,
    open_writer,
)
from fx_log.write.writer import LogWriter, add_dropped_count
from fxframework.errors import UsageError, WriteRefusedError
from fxframework.io.sink import Sink
from fxframework.kit.arguments import Double, Int64, Null, String, Uint64
from fxframework.model.diagnostics import Diagnostics

from ...cases import cases
from .logs import entry as ring_entry
from .logs import log, packet, ring, stream, text_log
from .object_meaning import Entry, Meaning
from .test_records import FORMS, VECTORS, decode

OPEN = {
    "log": open_writer,
    "log-legacy": open_legacy_writer,
    "log-legacy-stream": open_stream_writer,
    "log-ring": open_ring_writer,
}
UTF8 = st.characters(codec="utf-8")


class Socket:
    """A DatagramSink that takes what its answers say, and everything after that."""

    def __init__(self, *answers: bool) -> None:
        self.answers = list(answers)
        self.sent: list[bytes] = []

    def send(self, datagram: bytes) -> bool:
        taken = self.answers.pop(0) if self.answers else True
        if taken:
            self.sent.append(datagram)
        return taken


def shown(data: bytes) -> list[tuple[str, Any, Any]]:
    """Name, type and value of each argument of the one sound record that the bytes are."""
    records, found = decode(data)
    assert [(f.code, f.message) for f in found if f.severity] == []
    (record,) = records
    return [(a.name, a.type, a.value) for a in record.args]


def written(**options: Any) -> tuple[LogWriter, Socket]:
    socket = Socket()
    return LogWriter(socket, **{"pid": 1, "tid": 2, **options}), socket


def entries(data: bytes) -> list[Entry]:
    meaning = Meaning("log", {})
    made = [meaning.entry(record) for record in decode(data)[0]]
    return [each for each in made if each is not None]


# --- What is written -----------------------------------------------------------------------------


def test_the_order_is_that_of_the_reference_writer() -> None:
    writer, socket = written(tags=["app"])
    writer.write(
        "error",
        "it broke",
        {"a": 1, "b": "text"},
        time=5,
        tags=["net"],
        file="../../src/main.rs",
        line=10,
        target="core",
        dropped=3,
    )
    (data,) = socket.sent
    assert shown(data) == [
        ("pid", "uint64", 1),
        ("tid", "uint64", 2),
        ("num_dropped", "uint64", 3),
        ("file", "string", "src/main.rs"),
        ("line", "uint64", 10),
        ("tag", "string", "core"),
        ("message", "string", "it broke"),
        ("a", "int64", 1),
        ("b", "string", "text"),
        ("tag", "string", "net"),
        ("tag", "string", "app"),
    ]
    (record,) = decode(data)[0]
    assert (record.timestamp, record.severity, record.tag_bits) == (5, 0x50, 0)


@cases("name", ["rust_event_with_location", "rust_event_dropped"])
def test_the_reference_writers_bytes(name: str) -> None:
    (vector,) = [v for v in VECTORS if v["name"] == name]
    expected = vector["expected"]["record"]
    given = {arg["name"]: arg["value"] for arg in expected["args"]}
    writer, socket = written(pid=given["pid"], tid=given["tid"])
    writer.write(
        expected["severity"],
        None,
        time=expected["timestamp"],
        file=given.get("file"),
        line=given.get("line"),
        dropped=given.get("num_dropped", 0),
    )
    assert socket.sent[0].hex() == vector["hex"]


@cases(
    ("value", "expected"),
    [
        (True, ("bool", True)),
        (-1, ("int64", -1)),
        (2**63 - 1, ("int64", 2**63 - 1)),
        (2**63, ("uint64", 2**63)),
        (0.5, ("double", 0.5)),
        (math.inf, ("double", math.inf)),
        ("", ("string", "")),
        ("ü" * 5000, ("string", "ü" * 5000)),
        ("\udcff", ("string", "\udcff")),
        (None, ("string", "null")),
        (Null(), ("null", None)),
        (Uint64(5), ("uint64", 5)),
        (Int64(np.int8(-3)), ("int64", -3)),
        (Double(2), ("double", 2.0)),
        (String(b"raw"), ("string", "raw")),
        (np.uint8(7), ("uint64", 7)),
        (np.int64(-7), ("int64", -7)),
        (np.float32(0.25), ("double", 0.25)),
        (np.bool_(True), ("bool", True)),
    ],
    ids=repr,
)
def test_values_get_their_types(value: Any, expected: tuple[str, Any]) -> None:
    writer, socket = written()
    assert writer.info("m", key=value)
    records, _ = decode(socket.sent[0])
    argument = records[0].args[-1]
    assert (argument.name, argument.type, argument.value) == ("key", *expected)


@cases(
    ("call", "code"),
    [
        (lambda w: w.info("m", key=b"bytes"), "FXL0410"),
        (lambda w: w.info("m", key=[1]), "FXL0410"),
        (lambda w: w.info("m", key=np.zeros(2)), "FXL0410"),
        (lambda w: w.info("m", key=2**64), "FXL0404"),
        (lambda w: w.info("m", key=-(2**63) - 1), "FXL0404"),
        (lambda w: w.info("m", key=Int64("x")), "FXL0403"),
        (lambda w: w.info("m", key="\ud800"), "FXL0403"),
        (lambda w: w.info(7), "FXL0403"),
        (lambda w: w.info("x" * 32768), "FXL0405"),
        (lambda w: w.info("m", key="x" * 32768), "FXL0405"),
        (lambda w: w.write("info", "m", {"k" * 32768: 1}), "FXL0405"),
        (lambda w: w.write("info", "m", {"k" * 32767: 1}), "FXL0407"),
        (lambda w: w.write("info", "m", {"k" * 20000: "v" * 13000}), "FXL0407"),
        (lambda w: w.write("info", "m", {"k" * 20000: "v" * 20000}), "FXL0407"),
        (lambda w: w.info("x" * 32720), "FXL0407"),
        (lambda w: w.info("m", **{f"k{n}": n for n in range(1400)}), "FXL0407"),
        (lambda w: w.write("info", "m", {1: 2}), "FXL0403"),
        (lambda w: w.write("info", "m", "keys"), "FXL0403"),
        (lambda w: w.write("info", "m", tags="one"), "FXL0403"),
        (lambda w: w.write("info", "m", tags=[1]), "FXL0403"),
        (lambda w: w.write("loud", "m"), "FXL0403"),
        (lambda w: w.write(256, "m"), "FXL0404"),
        (lambda w: w.write(None, "m"), "FXL0403"),
        (lambda w: w.write("info", "m", time=2**63), "FXL0404"),
        (lambda w: w.write("info", "m", time=1.5), "FXL0403"),
        (lambda w: w.write("info", "m", tag_bits=2**32), "FXL0404"),
        (lambda w: w.write("info", "m", pid=-1), "FXL0404"),
        (lambda w: w.write("error", "m", file="f", line=-1), "FXL0404"),
        (lambda w: w.write("info", "m", dropped=-1), "FXL0404"),
        (lambda w: w.put("info", [("a", "int32", 1)]), "FXL0410"),
        (lambda w: w.put("info", ["a"]), "FXL0403"),
        (lambda w: w.manifest(2**31, "m", "u"), "FXL0404"),
        (lambda w: w.verbose(-1, "m"), "FXL0404"),
    ],
)
def test_what_the_format_cannot_hold_is_refused_and_changes_nothing(call: Any, code: str) -> None:
    writer, socket = written()
    socket.answers = [False]
    writer.info("dropped")
    with pytest.raises(WriteRefusedError) as refused:
        call(writer)
    assert refused.value.code == code
    assert (socket.sent, writer.dropped) == ([], 1)
    writer.info("after")
    assert ("num_dropped", "uint64", 1) in shown(socket.sent[0])


def test_the_largest_record_is_written() -> None:
    writer = LogWriter(socket := Socket())
    room = 8 * (wire.MAX_RECORD_WORDS - 2 - 2)
    writer.put("info", [("message", "string", "x" * room)], time=1)
    assert len(socket.sent[0]) == 8 * wire.MAX_RECORD_WORDS
    assert shown(socket.sent[0])[0][2] == "x" * room
    with pytest.raises(WriteRefusedError):
        writer.put("info", [("message", "string", "x" * (room + 1))], time=1)


@hypothesis.given(
    st.dictionaries(
        st.text(UTF8, max_size=12),
        st.integers(-(2**63), 2**64 - 1) | st.text(UTF8) | st.floats() | st.booleans(),
    ),
    st.text(UTF8),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(0, 255),
)
def test_what_is_written_is_read(
    keys: dict[str, Any], message: str, time: int, severity: int
) -> None:
    writer, socket = written()
    writer.write(severity, message, keys, time=time)
    (record,), _ = decode(socket.sent[0])
    assert record.raw is None
    assert (record.severity, record.timestamp) == (severity, time)
    assert {(a.name, repr(a.value)) for a in record.args[3:]} == {
        (name, repr(value)) for name, value in keys.items()
    }
    assert record.pack() == socket.sent[0]


def test_put_writes_exactly_these_arguments() -> None:
    writer, socket = written(tags=["app"])
    args = [("b", "uint64", 1), ("b", 3, -1), ("", "bool", True), ("n", "null", None)]
    writer.put(0x31, args, time=-1, tag_bits=9)
    expected = log(("b", "uint64", 1), ("b", "int64", -1), ("", "bool", True), ("n", "null", None),
                   time=-1, severity=0x31, tag_bits=9)  # fmt: skip
    assert socket.sent == [expected]


def test_control_records_name_components() -> None:
    out = io.BytesIO()
    writer = LogWriter(out, pid=1, tid=2)
    writer.manifest(3, "core/a", "fuchsia-pkg://a")
    writer.write("info", "hello", tag_bits=3)
    writer.rolled_out(3, 7, time=9)
    hello, lost = entries(out.getvalue())
    assert (hello.component, hello.url, hello.message) == ("core/a", "fuchsia-pkg://a", "hello")
    assert (lost.component, lost.rolled_out, lost.ts) == ("core/a", 7, 9)
    (vector,) = [v for v in VECTORS if v["name"] == "control_rolled_out"]
    fresh = LogWriter(socket := Socket())
    fresh.rolled_out(0, 5, time=73)
    assert socket.sent[0].hex() == vector["hex"]


def test_file_and_line_are_for_errors_unless_asked_for_always() -> None:
    writer, socket = written()
    writer.write("warn", "m", file="a.c", line=1)
    writer.write("error", "m", file="a.c")
    assert [name for name, _, _ in shown(socket.sent[0])] == ["pid", "tid", "message"]
    assert [name for name, _, _ in shown(socket.sent[1])] == ["pid", "tid", "file", "message"]
    writer, socket = written(always_file_line=True)
    writer.write("trace", "m", file="a.c", line=1)
    assert shown(socket.sent[0])[2:4] == [("file", "string", "a.c"), ("line", "uint64", 1)]


def test_levels_verbosities_and_the_minimum() -> None:
    writer, socket = written(minimum="DEBUG")
    assert not writer.trace("below")
    for name in ("debug", "info", "warn", "error", "fatal"):
        assert getattr(writer, name)("m")
    writer.verbose(1, "m")
    writer.verbose(99, "m")
    severities = [decode(data)[0][0].severity for data in socket.sent]
    assert severities == [0x20, 0x30, 0x40, 0x50, 0x60, 0x2F, 0x21]
    assert writer.dropped == 0


def test_pid_tid_and_time_are_this_threads_unless_given() -> None:
    writer = LogWriter(socket := Socket(), clock=lambda: 77)
    writer.info("m")
    assert shown(socket.sent[0])[:2] == [
        ("pid", "uint64", os.getpid()),
        ("tid", "uint64", threading.get_native_id()),
    ]
    assert decode(socket.sent[0])[0][0].timestamp == 77
    writer.write("info", "m", pid=8, tid=9)
    assert shown(socket.sent[1])[:2] == [("pid", "uint64", 8), ("tid", "uint64", 9)]

    class Device:
        ticks_per_second = 1

        def monotonic_ns(self) -> int:
            return 1

        def boot_ns(self) -> int:
            return 2

        def ticks(self) -> int:
            return 3

    LogWriter(socket, clock=Device()).info("m")
    assert decode(socket.sent[2])[0][0].timestamp == 2
    with pytest.raises(UsageError):
        LogWriter(socket, clock=5)  # type: ignore[arg-type]


# --- What is dropped -----------------------------------------------------------------------------


def test_dropped_records_are_told_of_by_the_next_one_that_is_sent() -> None:
    socket = Socket(True, False, False, True, True)
    writer = LogWriter(socket, pid=1, tid=2)
    assert [writer.info(str(n)) for n in range(5)] == [True, False, False, True, True]
    dropped = [{n: v for n, _, v in shown(data)}.get("num_dropped") for data in socket.sent]
    assert dropped == [None, 2, None]
    assert shown(socket.sent[1])[2] == ("num_dropped", "uint64", 2)
    assert entries(b"".join(socket.sent))[1].dropped == 2


def test_a_record_without_room_leaves_the_count_to_the_next() -> None:
    writer, socket = written()
    room = 8 * (wire.MAX_RECORD_WORDS - 2 - 3 - 3 - 2)
    socket.answers = [False]
    writer.info("dropped")
    assert writer.info("x" * room)
    assert writer.dropped == 1
    writer.info("small")
    assert [name for name, _, _ in shown(socket.sent[0])] == ["pid", "tid", "message"]
    assert shown(socket.sent[1])[2] == ("num_dropped", "uint64", 1)


def test_an_exception_of_the_sink_passes_and_changes_nothing() -> None:
    class Broken:
        def send(self, datagram: bytes) -> bool:
            raise OSError("gone")

    writer = LogWriter(Broken())
    with pytest.raises(OSError, match="gone"):
        writer.info("m")
    assert writer.dropped == 0


# --- What is cut ---------------------------------------------------------------------------------


@hypothesis.given(st.text(UTF8), st.integers(0, 40))
def test_a_text_is_cut_at_a_character(text: str, limit: int) -> None:
    data = text.encode()
    cut = shortened(data, limit)
    assert len(cut) <= limit
    if len(data) <= limit:
        assert cut == data
    else:
        kept = cut.decode()  # raises where a character is cut
        assert kept.endswith("..."[:limit])
        assert data.startswith(cut[: max(0, len(cut) - 3)])
        assert len(cut) > limit - 4 or limit < 7


@cases(
    ("message", "keys"),
    [
        ("ü" * 20_000, {}),
        ("x" * 40_000, {"key": 1}),
        ("m", {"key": "x" * 40_000}),
        ("x" * 20_000, {"a": "y" * 20_000}),
        ("m", {"a": "y" * 30_000, "b": "z" * 30_000, "c": 1}),
    ],
)
def test_what_is_too_large_is_cut_on_request(message: str, keys: dict[str, Any]) -> None:
    writer, socket = written(on_too_large="cut", tags=["app"])
    assert writer.write("info", message, keys, tags=iter(["call"]))
    assert writer.cut == 1
    args = shown(socket.sent[0])
    assert [name for name, _, _ in args] == ["pid", "tid", "message", *keys, "tag", "tag"]
    assert [value for name, _, value in args if name == "tag"] == ["call", "app"]
    assert any(isinstance(value, str) and value.endswith("...") for _, _, value in args)
    assert len(socket.sent[0]) > 8 * wire.MAX_RECORD_WORDS - 64


def test_the_message_is_cut_before_keys() -> None:
    writer, socket = written(on_too_large="cut")
    writer.write("info", "x" * 20_000, {"a": "y" * 20_000})
    assert shown(socket.sent[0])[-1] == ("a", "string", "y" * 20_000)


def test_a_record_is_never_lost_for_its_keys() -> None:
    writer, socket = written(on_too_large="cut", tags=["app"])
    assert writer.info("m", **{f"k{n}": n for n in range(1400)})
    args = shown(socket.sent[0])
    kept = [name for name, _, _ in args if name.startswith("k")]
    assert kept == [f"k{n}" for n in range(len(kept))]  # the last ones are left out
    assert (args[2][2], args[-1]) == ("m", ("tag", "string", "app"))
    assert (writer.cut, writer.left_out) == (1, 1400 - len(kept))
    assert len(socket.sent[0]) > 8 * wire.MAX_RECORD_WORDS - 64
    assert writer.write("info", "m", tags=[str(n) for n in range(3000)])
    assert shown(socket.sent[1])[2:4] == [("message", "string", "m"), ("tag", "string", "0")]
    with pytest.raises(UsageError):
        LogWriter(socket, on_too_large="shrug")  # type: ignore[arg-type]


@cases("length", [32_740, 32_768, 40_000])
def test_names_that_are_too_long_are_cut(length: int) -> None:
    writer, socket = written(on_too_large="cut")
    assert writer.info("m", **{"é" * (length // 2): 5, "after": 6})
    assert shown(socket.sent[0])[2:] == [
        ("message", "string", "m"),
        ("é" * 128, "int64", 5),
        ("after", "int64", 6),
    ]
    assert (writer.cut, writer.left_out) == (1, 0)


def test_a_refusal_shows_a_name_as_text() -> None:
    with pytest.raises(WriteRefusedError, match="the value of 'message': with its name"):
        written()[0].info("x" * 32_760)


# --- Where it goes -------------------------------------------------------------------------------


def test_a_paths_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "a.fxlog"
    with LogWriter(path, pid=1, tid=2) as writer:
        writer.write("info", "m", time=1)
        assert not path.exists()
    assert path.read_bytes()
    with pytest.raises(UsageError):
        writer.info("late")
    with pytest.raises(WriteRefusedError), LogWriter(tmp_path / "b.fxlog") as writer:
        writer.info("x" * 40_000)
    assert [each.name for each in tmp_path.iterdir()] == ["a.fxlog"]
    with pytest.raises(WriteRefusedError):
        LogWriter(path)


def test_sinks_files_and_things_with_put() -> None:
    class Box:
        def __init__(self) -> None:
            self.kept: list[bytes] = []

        def put(self, record: bytes) -> bool:
            self.kept.append(record)
            return len(self.kept) > 1

    sink, file, box = Sink.memory(), io.BytesIO(), Box()
    for where in (sink, file, box):
        writer = LogWriter(where, pid=1, tid=2)
        writer.write("info", "m", time=1)
        writer.close()
    assert sink.getvalue() == file.getvalue() == box.kept[0]
    assert writer.dropped == 1  # put said False
    with pytest.raises(UsageError):
        LogWriter(object())  # type: ignore[arg-type]


def test_several_threads_may_write() -> None:
    socket = Socket()
    writer = LogWriter(socket, pid=1)

    def work() -> None:
        for number in range(50):
            writer.info("m", number=number)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(decode(b"".join(socket.sent))[0]) == 200


# --- add_dropped_count ---------------------------------------------------------------------------


def test_a_dropped_count_is_added_or_appended() -> None:
    plain = log(("message", "string", "m"))
    once = add_dropped_count(plain, 5)
    assert once == log(("message", "string", "m"), ("num_dropped", "uint64", 5))
    assert add_dropped_count(once, 2**64 - 1) == log(
        ("message", "string", "m"), ("num_dropped", "uint64", 2**64 - 1)
    )


@cases(
    "record",
    [
        bytes.fromhex("010203"),  # the reference's own case: too small
        log()[:8],
        log() + bytes(8),
        log(("a", "int64", 1))[:-8],
        b"\x38" + log()[1:],
        log(("a", "int64", 1)).replace(b"\x33\x00\x01\x80", b"\x03\x00\x01\x80"),
        log(("a", "int64", 1)).replace(b"\x33\x00\x01\x80", b"\x43\x00\x01\x80"),
        log(("message", "string", "x" * 8 * 4088)),
    ],
)
def test_no_dropped_count_where_the_record_does_not_chain(record: bytes) -> None:
    assert add_dropped_count(record, 5) is None


# --- Records that are there already --------------------------------------------------------------


def rewritten(form: str, records: list[Any], **options: Any) -> bytes:
    sink = Sink.memory()
    writer = OPEN[form](sink, options, Diagnostics(RULES))
    for record in records:
        writer.write(record)
    writer.close()
    return sink.getvalue()


def damaged_forms() -> list[tuple[str, bytes]]:
    cases = []
    for form, data in FORMS.items():
        for at in (0, 4, 9, 17, 24, 40, len(data) // 2):
            flipped = bytearray(data)
            flipped[at % len(data)] ^= 0x5A
            cases.append((form, bytes(flipped)))
        cases += [(form, data), (form, data[:-3]), (form, data + b"odd"), (form, b"")]
    return cases


@cases(("form", "data"), damaged_forms())
def test_records_and_their_json_give_the_same_bytes(form: str, data: bytes) -> None:
    records, _ = decode(data, form)
    assert rewritten(form, records) == data
    assert rewritten(form, [json.loads(json.dumps(r.to_json())) for r in records]) == data


def test_refusals_leave_the_sink_as_it_was() -> None:
    sink = Sink.memory()
    writer = open_writer(sink, {}, Diagnostics(RULES))
    for bad in ({"record": "nonsense"}, {"record": "log"}, fx.StreamHeader()):
        with pytest.raises(WriteRefusedError):
            writer.write(bad)
    writer.write(decode(text_log("m"))[0][0])
    writer.close()
    assert sink.getvalue() == text_log("m")


def test_an_edited_ring_is_put_together_again() -> None:
    data = ring([ring_entry(text_log(name)) for name in "abc"], tail=65536 - 48)
    records = [r.to_json() for r in decode(data, "log-ring")[0]]
    texts = itertools.count()
    for record in records:
        if record["record"] == "ring_entry":
            record["log"]["args"][0]["value"] = f"a longer text {next(texts)}"
    again, found = decode(rewritten("log-ring", records), "log-ring")
    messages = [r.log.args[0].value for r in again if isinstance(r, fx.RingEntry)]
    assert messages == [f"a longer text {n}" for n in range(3)]
    assert not [f for f in found if f.severity]


def test_packets_bare_and_in_the_container() -> None:
    bare = packet("hello", "tag")
    (record,) = decode(bare, "log-legacy")[0]
    assert rewritten("log-legacy", [record]) == bare
    assert rewritten("log-legacy-stream", [fx.StreamHeader(), record]) == stream([bare])


def test_an_unknown_argument_of_write_is_a_type_error() -> None:
    writer, _ = written()
    with pytest.raises(TypeError, match="unexpected keyword argument 'tagbits'"):
        writer.write("info", "x", tagbits=1)  # type: ignore[call-arg]
