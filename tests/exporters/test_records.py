"""The `records` exporter and reader: any capture to JSON lines and back to the same bytes."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import toy
from hypothesis import given
from hypothesis import strategies as st

from fxframework.errors import (
    LimitError,
    NoReaderError,
    StrictError,
    UnreadableError,
    WriteRefusedError,
)
from fxframework.exporters import plugin as exporters
from fxframework.exporters import records as records_module
from fxframework.host import Host
from fxframework.io.sink import Sink
from fxframework.model import capture as capture_module
from fxframework.model.capture import Capture
from fxframework.registry import parse_options

from ..cases import cases


def make_host() -> Host:
    host = Host(discover=False)
    host.register(exporters, name="exporters")
    host.register(toy, name="toy")
    return host


def export(host: Host, *captures: Capture, **given: str) -> bytes:
    exporter = host.exporter("records", format=captures[0].format, tables=captures[0].tables)
    sink = Sink.memory()
    session = exporter.open(sink, parse_options(given, exporter.options, whose="it"))
    for capture in captures:
        session.write(capture)
    assert session.close() == {}
    return sink.getvalue()


def back(host: Host, lines: bytes, **options: Any) -> Capture:
    return host.open(lines, options=options)


def header(**more: Any) -> bytes:
    line = {"fxframework": "records", "format": "toy", "version": 1, **more}
    return json.dumps(line).encode() + b"\n"


MARK = b'{"record":"mark","name":"x","ts":1,"value":2}'


def test_a_header_and_then_every_record(host: Host) -> None:
    lines = export(host, host.open(toy.SAMPLE)).splitlines()
    assert json.loads(lines[0]) == {"fxframework": "records", "format": "toy", "version": 1}
    records = [json.loads(line) for line in lines[1:]]
    assert [one["record"] for one in records] == ["magic", "mark", "span", "mark"]
    assert sum(one["nbytes"] for one in records) == len(toy.SAMPLE)


def test_without_the_header_on_request(host: Host) -> None:
    lines = export(host, host.open(toy.SAMPLE), header="no").splitlines()
    assert json.loads(lines[0])["record"] == "magic"


@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_come_back_the_same(data: bytes, magic: bool) -> None:
    host = make_host()
    whole = toy.MAGIC + data if magic else data
    with host.open(whole, format="toy") as capture:
        lines = export(host, capture)
    with back(host, lines) as again:
        assert again.source.read(0, again.source.size) == whole
        assert again.format == "toy"


def test_a_records_file_is_a_capture_of_its_format(host: Host) -> None:
    with host.open(toy.SAMPLE) as capture, back(host, export(host, capture)) as again:
        assert again.tables == capture.tables
        assert again.table("instants").texts("name") == ["one", "three"]
        assert [record.to_json() for record in again.records()] == [
            record.to_json() for record in capture.records()
        ]


def test_findings_are_those_of_the_bytes(host: Host) -> None:
    with host.open(toy.toy(toy.record(9), toy.record(7))) as capture:
        lines = export(host, capture)
        with back(host, lines) as again:
            again.scan()
            assert again.diagnostics.counts == capture.diagnostics.counts
            assert again.diagnostics[0].offset == 8


def test_facts_that_the_writer_needs_are_in_the_header(host: Host) -> None:
    data = toy.SAMPLE[8:]
    with host.open(data, format="toy") as capture:
        lines = export(host, capture)
    assert json.loads(lines.splitlines()[0])["options"] == {"magic": False}
    with back(host, lines) as again:
        assert again.source.read(0, 100) == data


def test_the_bulk_way_is_taken_where_a_capture_has_one(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    def records_json(self: Capture) -> Iterator[bytes]:
        yield b'{"record":"bulk"}\n'
        yield b'{"record":"bulk"}\n'

    monkeypatch.setattr(toy.ToyCapture, "records_json", records_json, raising=False)
    capture = host.open(toy.SAMPLE)
    assert export(host, capture, header="no") == b'{"record":"bulk"}\n' * 2
    window = capture.between(1500, None)
    assert b"bulk" not in export(host, window, header="no")


def test_many_records_are_written_in_whole_lines(host: Host) -> None:
    count = 3 * capture_module.LINES + 7
    data = toy.toy(*(toy.mark("m", at) for at in range(count)))
    lines = export(host, host.open(data), header="no")
    assert lines.endswith(b"\n")
    assert [json.loads(line)["ts"] for line in lines.splitlines()[1:]] == list(range(count))


def test_a_second_capture_is_refused(host: Host) -> None:
    with pytest.raises(WriteRefusedError, match="one capture"):
        export(host, host.open(toy.SAMPLE), host.open(toy.SAMPLE))


# --- Lines that make no sense ------------------------------------------------------------------


@cases(
    "line",
    [
        b"{",
        b"[]",
        b"17",
        b'"mark"',
        b'{"no":"record"}',
        b'{"record":"teddy"}',
        b'{"record":"mark"}',
        b'{"record":"mark","name":7,"ts":1,"value":2}',
        b'{"record":"mark","name":"x","ts":"soon","value":2}',
        b'{"record":"mark","name":"x","ts":99999999999999999999,"value":2}',
        b'{"record":"mark","name":"much too long","ts":1,"value":2}',
        b'{"record":"damaged","raw":"zz"}',
        b'{"record":"damaged","raw":7}',
        b'{"record":["list"]}',
        b"\xff\xfe",
        b'{"record":"\xff"}',
        b"[" * 5000,
    ],
)
def test_a_bad_line_is_a_finding_and_the_others_are_read(host: Host, line: bytes) -> None:
    start = header() + MARK + b"\n"
    with back(host, start + line + b"\n" + MARK + b"\n") as capture:
        found = [one for one in capture.diagnostics if one.code == "FXF0103"]
        assert [(one.offset, one.message.split(": ")[1]) for one in found] == [
            (len(start), "line 3")
        ]
        assert len(capture.table("instants")) == 2
    with pytest.raises(StrictError):
        host.open(start + line, strict=True)


def test_bad_lines_are_counted_beyond_what_is_listed(host: Host) -> None:
    with back(host, header() + b"nonsense\n" * 10, max_findings=3) as capture:
        assert capture.diagnostics.counts["FXF0103"] == 10
        assert len(capture.diagnostics) == 3


def test_blank_lines_line_ends_and_a_byte_order_mark_do_not_matter(host: Host) -> None:
    data = (
        b"\xef\xbb\xbf" + header().replace(b"\n", b"\r\n") + b"\n \r\n" + MARK + b"\r\n\r\n" + MARK
    )
    with back(host, data) as capture:
        assert capture.diagnostics.counts == {}
        assert len(capture.table("instants")) == 2


@pytest.mark.parametrize("chunk", [1, 2, 7, 64])
def test_lines_are_whole_whatever_the_size_of_the_chunks(
    host: Host, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    monkeypatch.setattr(records_module, "CHUNK", chunk)
    bad = random.Random(chunk).randbytes(20).replace(b"\n", b"").replace(b"\r", b"") + b"!"
    data = header() + MARK + b"\n" + bad + b"\n" + MARK
    with back(host, data) as capture:
        assert len(capture.table("instants")) == 2
        assert [one.offset for one in capture.diagnostics] == [len(header() + MARK) + 1]


def test_unknown_options_of_the_header_are_findings(host: Host) -> None:
    with back(host, header(options={"magic": False, "shiny": True}) + MARK) as capture:
        assert capture.diagnostics.counts["FXF0103"] == 1
        assert capture.source.size == 24
    with back(host, header(options=[1]) + MARK) as capture:
        assert capture.source.size == 32


# --- Headers -----------------------------------------------------------------------------------


def test_a_format_that_is_not_installed(host: Host) -> None:
    with pytest.raises(NoReaderError, match=r"'toi'.*did you mean 'toy'"):
        back(host, header(format="toi"))
    with pytest.raises(NoReaderError):
        back(host, header(format=["toy"]))


@pytest.mark.parametrize("version", [2, "1", None])
def test_a_later_version_is_refused(host: Host, version: Any) -> None:
    with pytest.raises(UnreadableError, match="version"):
        back(host, header(version=version) + MARK)


def test_records_without_a_header_need_their_format(host: Host) -> None:
    lines = MARK + b"\n" + MARK
    with host.open(lines, format="records", options={"format": "toy"}) as capture:
        assert len(capture.table("instants")) == 2
    with host.open(lines, format="records") as capture:
        assert capture.format == "records"
        assert capture.diagnostics.counts == {"FXF0103": 1}
        assert capture.tables == ("diagnostics",)


@pytest.mark.parametrize("data", [b"", b"\x00\xff garbage", MARK])
def test_bytes_that_nothing_is_known_of_come_back_too(host: Host, data: bytes) -> None:
    with host.open(data, format="records") as capture:
        summary = capture.summary()
        assert summary.kinds == ({"damaged": 1} if data else {})
        lines = export(host, capture)
    with back(host, lines) as again:
        assert again.source.read(0, 1000) == data
        assert again.format == "records"
    with pytest.raises(StrictError):
        host.open(b"garbage", format="records", strict=True)


def test_sound_records_cannot_be_written_as_records(host: Host) -> None:
    writer = host.writer("records").open(Sink.memory(), {}, None)  # type: ignore[arg-type]
    with pytest.raises(WriteRefusedError):
        writer.write({"record": "mark"})


@cases(
    ("data", "format"),
    [
        (header(), "records"),
        (header().rstrip(b"\n"), "records"),
        (b"\xef\xbb\xbf" + header(), "records"),
        (b'{"fxframework":"info","version":1}\n', None),
        (b'{"fxframework":', None),
        (b'["fxframework"]', None),
        (MARK, None),
    ],
)
def test_only_a_header_line_is_certain(host: Host, data: bytes, format: str | None) -> None:
    if format is None:
        with pytest.raises(NoReaderError):
            host.open(data)
    else:
        source = host.source(data)
        assert host.detect(source).format == format


def test_gzip_both_ways(host: Host, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    with host.sink(path) as sink:
        exporter = host.exporter("records", format="toy", tables=("diagnostics",))
        session = exporter.open(sink, {})
        session.write(host.open(toy.SAMPLE))
        session.close()
    assert path.read_bytes()[:3] == b"\x1f\x8b\x08"
    with host.open(path) as capture:
        assert capture.source.read(0, 100) == toy.SAMPLE


def test_memory_stays_bounded(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bytes are spooled to a file once they are many."""
    from fxframework.io import source as source_module

    monkeypatch.setattr(source_module, "IN_MEMORY", 1000)
    data = toy.toy(*(toy.mark("m", at) for at in range(100)))
    with back(host, export(host, host.open(data))) as capture:
        assert capture.source._mapping is not None
        assert capture.source.read(0, len(data) + 1) == data


# --- Files that give orders ----------------------------------------------------------------------


def text_of(format: str, *records: bytes, **settings: object) -> bytes:
    import orjson

    head = {"fxframework": "records", "version": 1, "format": format, **settings}
    return b"\n".join([orjson.dumps(head), *records]) + b"\n"


BUNDLED = Host()
ORDERS = [
    (kind, format, option)
    for kind in ("readers", "writers")
    for format, descriptor in getattr(BUNDLED, kind).items()
    for option in descriptor.options
    if not option.portable and format in BUNDLED.writers and format in BUNDLED.readers
]


@cases(("kind", "format", "option"), ORDERS, ids=[f"{a}-{b}-{c.name}" for a, b, c in ORDERS])
def test_a_file_sets_no_option_that_touches_the_machine(
    kind: str, format: str, option: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = Host()
    taken: dict[str, Any] = {}
    descriptor = getattr(host, kind)[format]
    real = descriptor.open

    def open_it(*given: Any) -> Any:
        options = given[1].options if kind == "readers" else given[1]
        taken.update(options)
        return real(*given)

    object.__setattr__(descriptor, "open", open_it)
    try:
        value = {str: "/dev/zero", int: 1 << 50}[option.type]
        key = "reading" if kind == "readers" else "options"
        with host.open(text_of(format, **{key: {option.name: value}}), format="records") as capture:
            capture.scan()
            found = [one.message for one in capture.diagnostics if one.code == "FXF0105"]
    finally:
        object.__setattr__(descriptor, "open", real)
    assert taken[option.name] == option.default
    assert found == [f"option of a records file ignored: {option.name}"]


def test_options_of_paths_patterns_and_sizes_are_never_portable() -> None:
    host = Host()
    for descriptor in (*host.readers.values(), *host.writers.values()):
        for option in descriptor.options:
            if option.name in {"instr_map", "links", "names", "redact_pattern", "buffer_size"}:
                assert not option.portable


@cases("claim", [4_000_000_000, 1 << 62])
@cases("format", ["trace", "log", "xray", "inspect", "trace-buffer"])
def test_padding_claims_no_more_than_the_limit(format: str, claim: int) -> None:
    line = b'{"record": "padding", "offset": 0, "nbytes": %d}' % claim
    with Host().open(text_of(format, line), format="records") as capture:
        assert capture.source.size < 1 << 20
        found = [one.message for one in capture.diagnostics if one.code == "FXF0103"]
        assert len(found) == 1
        assert f"it claims {claim} bytes" in found[0]
        assert "max_claimed" in found[0]


def test_many_claims_together_are_bounded() -> None:
    line = b'{"record": "padding", "offset": 0, "nbytes": 1000000}'
    data = text_of("trace", *[line] * 64)
    with Host().open(data, format="records", options={"max_claimed": 5_000_000}) as capture:
        assert 4_000_000 <= capture.source.size <= 5_000_000 + 64 * len(data)
        assert capture.diagnostics.counts["FXF0103"] > 50


class Inflating:
    """A writer that makes much of little."""

    def __init__(self, sink: Sink, options: Any, diagnostics: Any) -> None:
        self._sink = sink

    def write(self, record: Any) -> None:
        self._sink.write(bytes(1 << 20))

    def close(self) -> None:
        pass


def test_a_writer_that_inflates_is_stopped() -> None:
    host = make_host()
    real = toy.WRITER.open
    object.__setattr__(toy.WRITER, "open", Inflating)
    data = text_of("toy", *[MARK] * 64)
    try:
        with pytest.raises(LimitError, match="max_claimed"):
            host.open(data, format="records", options={"max_claimed": 1 << 22})
    finally:
        object.__setattr__(toy.WRITER, "open", real)
