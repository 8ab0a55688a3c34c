"""Traces as YAML of llvm-xray: the same tables as the traces themselves, and no line lost."""

from __future__ import annotations

import re
import time
import tracemalloc
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import fx_xray.plugin
from fx_xray.read import yaml_log
from fx_xray.read.yaml_text import quoted
from fxframework.host import Host
from fxframework.model.capture import Capture
from fxframework.registry import Confidence
from fxframework.testing import ReaderContract, Sample

from ...cases import cases

CONFORMANCE = Path(__file__).parents[2] / "conformance" / "xray"
HEADER = """---
header:
  version:         5
  type:            1
  constant-tsc:    true
  nonstop-tsc:     true
  cycle-frequency: 1000000000
records:
"""
LINE = (
    "  - { type: 0, func-id: 7, function: '7', cpu: 1, thread: 2, kind: function-enter, tsc: 9 }\n"
)
HOST = Host(discover=False)
HOST.register(fx_xray.plugin, name="xray", distribution="fxframework")


def opened(data: bytes | str, **options: Any) -> Capture:
    data = data.encode() if isinstance(data, str) else data
    return HOST.open(data, format="llvm-yaml", **options)


def codes(capture: Capture) -> dict[str, int]:
    capture.scan()
    return dict(capture.diagnostics.counts)


def shown(capture: Capture) -> list[dict[str, Any]]:
    """The records but for their places, which are checked to cover the text."""
    at = 0
    found = []
    for record in capture.records():
        assert record.offset == at
        at += record.nbytes
        fields = record.to_json()
        assert (fields.pop("offset"), fields.pop("nbytes")) == (record.offset, record.nbytes)
        found.append(fields)
    assert at == capture.source.size
    return found


# --- As the traces themselves --------------------------------------------------------------------

CONVERTED = sorted(
    path.parent.name
    for path in [*CONFORMANCE.glob("expected/*/convert.yaml")]
    if path.read_bytes().startswith(b"---\nheader:")
    and (CONFORMANCE / f"{path.parent.name}.xray").exists()
)
SAME = {
    "slices": ("ts", "ticks", "dur", "depth", "parent", "xray_function", "xray_ticks", "xray_cpu",
               "xray_exit", "xray_entry"),
    "instants": ("ts", "ticks", "xray_cpu", "xray_event_type"),
    "args": ("table", "parent", "type", "uint"),
}  # fmt: skip


@cases("name", CONVERTED)
def test_tables_are_those_of_the_trace(name: str) -> None:
    text = (CONFORMANCE / "expected" / name / "convert.yaml").read_bytes()
    if len(text) > 3_000_000:
        pytest.skip("takes long without compiled kernels")
    with opened(text) as found, HOST.open(CONFORMANCE / f"{name}.xray") as trace:
        if "FXX0304" in codes(trace):
            pytest.skip("llvm-xray sorts what a thread did out of its order")
        for table, columns in SAME.items():
            ours, theirs = found.table(table), trace.table(table)
            order, same = in_one_order(found, table), in_one_order(trace, table)
            assert len(ours) == len(theirs)
            for column in columns:
                if column == "parent":
                    # Rows of one time may stand in another order.
                    continue
                np.testing.assert_array_equal(
                    ours.array(column)[order], theirs.array(column)[same], f"{table}.{column}"
                )
        ours, theirs = strings(found), strings(trace)
        assert all(b.startswith(a) for a, b in zip(ours, theirs, strict=True))
        # llvm-xray leaves out what is not UTF-8.
        cut = sum(a != b for a, b in zip(ours, theirs, strict=True))
        assert codes(found).get("FXX0703", 0) == cut
        facts = {"version", "mode", "frequency_hz", "threads", "processes", "unmatched_exits"}
        ours, theirs = found.summary().facts, trace.summary().facts
        assert {key: ours[key] for key in facts} == {key: theirs[key] for key in facts}


def in_one_order(capture: Capture, table: str) -> Any:
    """Rows by thread, and by place in it."""
    rows = capture.table(table)
    threads = capture.table("threads")
    tids = threads.array("tid")
    if table != "args":
        return np.lexsort((np.arange(len(rows)), tids[rows.array("thread")]))
    parents = [capture.table(name) for name in ("slices", "instants")]
    of = [tids[parent.array("thread")] for parent in parents]
    keys = []
    for row, (code, parent) in enumerate(
        zip(rows.array("table").tolist(), rows.array("parent").tolist(), strict=True)
    ):
        instant = int(code != rows.array("table")[0]) if len(rows) else 0
        which = int(capture.strings[int(rows.array("name")[row])] in {"data", "event_type"})
        keys.append((which, int(of[which][parent]), row))
        assert instant in {0, 1}
    return np.array([key[2] for key in sorted(keys)], np.int64)


def strings(capture: Capture) -> list[bytes]:
    """Payloads, by thread."""
    args = capture.table("args")
    texts = args.array("str")[in_one_order(capture, "args")]
    return [capture.strings.bytes_of(code) for code in texts.tolist() if code >= 0]


# --- Records -------------------------------------------------------------------------------------


def test_records_are_shown_as_those_of_basic_mode() -> None:
    text = HEADER + (
        "  - { type: 0, func-id: 4, function: 'f(int)', args: [ 16045690984503111693, 42 ], "
        "cpu: 3, thread: 70002, process: 9, kind: function-enter-arg, tsc: 10, data: '' }\n"
        "  - { type: 0, func-id: 4, function: 'f(int)', cpu: 3, thread: 70002, process: 9, "
        "kind: function-tail-exit, tsc: 12, data: '' }\n"
        "  - { type: 0, func-id: 4, function: '4', cpu: 0, thread: 1, kind: custom-event, "
        "tsc: 13, data: it's }\n"
        "  - { type: 65535, func-id: 4, function: '4', cpu: 65535, thread: 1, "
        'kind: typed-event, tsc: 14, data: "\\0\\x01\\n\\"é" }\n'
        "...\n"
    )
    with opened(text) as capture:
        here = {"cpu": 3, "thread": 70002, "process": 9}
        there = {"thread": 1, "process": 0}
        assert shown(capture) == [
            {"record": "file_header", "version": 5, "type": 1, "constant_tsc": True,
             "nonstop_tsc": True, "cycle_frequency": 1_000_000_000},
            {"record": "function", "kind": "enter_arg", "function_id": 4, "function": "f(int)",
             "args": [16045690984503111693, 42], "tsc": 10, **here},
            {"record": "function", "kind": "tail_exit", "function_id": 4, "function": "f(int)",
             "tsc": 12, **here},
            {"record": "custom_event", "tsc": 13, "cpu": 0, **there, "data_hex": b"it's".hex()},
            {"record": "typed_event", "event_type": 65535, "tsc": 14, "cpu": 65535, **there,
             "data_hex": '\0\x01\n"é'.encode().hex()},
            {"record": "end", "raw": b"...\n".hex()},
        ]  # fmt: skip
        assert capture.summary().kinds == {
            "file_header": 1, "function": 2, "custom_event": 1, "typed_event": 1, "end": 1,
        }  # fmt: skip
        slices, args = capture.table("slices"), capture.table("args")
        assert [capture.strings[code] for code in slices.array("name").tolist()] == ["f(int)"]
        assert args.array("uint").tolist()[:2] == [16045690984503111693, 42]
        assert capture.table("instants").array("xray_event_type").tolist() == [0, 65535]
        assert codes(capture) == {}


def test_names_are_those_of_the_map_where_one_is_given(tmp_path: Path) -> None:
    (tmp_path / "map.csv").write_text("function_id,name\n7,_Z1gv\n")
    with opened(HEADER + LINE, options={"instr_map": str(tmp_path / "map.csv")}) as capture:
        assert capture.strings[int(capture.table("slices").array("name")[0])] == "g()"
        assert "FXX0601" not in codes(capture)
    with opened(HEADER + LINE) as capture:
        assert capture.strings[int(capture.table("slices").array("name")[0])] == "7"
        assert codes(capture) == {"FXX0302": 1, "FXX0601": 1}


@cases(
    "item",
    [
        "  - kind: function-enter\n    tsc: 0x9\n    type: 0\n    cpu: 1\n    thread: 2\n",
        "- {kind: function-enter, tsc: 9, type: 0,\n   cpu: 1, func-id: 7, thread: 2}\n",
        '  - { "kind": "function-enter", "tsc": 9, type: 0, cpu: 1, thread: 2, func-id: 7, x: [] }',
        LINE.replace("\n", "\r\n"),
        LINE.rstrip(),
        "# a comment\n\n" + LINE + "\n\n",
    ],
)
def test_other_ways_of_writing_a_record_are_read(item: str) -> None:
    with opened(HEADER + item) as capture:
        records = [record for record in shown(capture) if record["record"] == "function"]
        known = 7 if "func-id" in item else 0
        assert records == [
            {"record": "function", "kind": "enter", "function_id": known, "tsc": 9, "cpu": 1,
             "thread": 2, "process": 0}
        ]  # fmt: skip
        assert len(capture.table("slices")) == 1


@cases(
    "item",
    [
        "  - 12\n",
        "  - { type: 0 }\n",
        "  - { [ }\n",
        "nonsense\n",
        LINE.replace("function-enter", "function-other"),
        LINE.replace("tsc: 9", "tsc: 18446744073709551616"),
        LINE.replace("tsc: 9", "tsc: -9"),
        LINE.replace("cpu: 1", "cpu: 65536"),
        LINE.replace("thread: 2", "thread: 4294967296"),
        LINE.replace("tsc: 9", "args: 3, tsc: 9"),
        LINE.replace("kind: function-enter, tsc: 9", 'kind: custom-event, tsc: 9, data: "\\q"'),
        LINE.replace("kind: function-enter, tsc: 9", 'kind: custom-event, tsc: 9, data: "\\uD800"'),
    ],
)
def test_a_record_that_makes_no_sense_leaves_the_others_alone(item: str) -> None:
    with opened(HEADER + LINE + item + LINE) as capture:
        found = shown(capture)
        assert [record["record"] for record in found] == [
            "file_header", "function", "damaged", "function",
        ]  # fmt: skip
        assert found[2] == {"record": "damaged", "code": "FXX0702", "raw": item.encode().hex()}
        assert len(capture.table("slices")) == 2
        assert codes(capture)["FXX0702"] == 1
        (finding,) = [each for each in capture.diagnostics if each.code == "FXX0702"]
        assert (finding.offset, finding.record) == (len(HEADER + LINE), 2)


@cases("start", ["[ ", "[", " [ # a comment\n"])
def test_records_in_brackets_are_refused(start: str) -> None:
    """Nothing writes them; they were read once."""
    with opened(HEADER.rstrip() + f"{start}{LINE.strip().removeprefix('- ')} ]\n...\n") as capture:
        assert [record["record"] for record in shown(capture)] == ["damaged"]
        assert codes(capture) == {"FXX0701": 1}


@cases("text", ["---\na: 1\n", "header:\n  version: 1\n", "---\nheader: 7\nrecords:\n" + LINE])
def test_what_is_no_trace_is_said(text: str) -> None:
    with opened(text) as capture:
        assert [record["record"] for record in shown(capture)] == ["damaged"]
        assert codes(capture)["FXX0701"] == 1


def test_findings_of_the_header() -> None:
    text = (
        HEADER.replace("true", "false")
        .replace("1000000000", "0")
        .replace("records:", "records: []")
    )
    with opened(text) as capture:
        assert codes(capture) == {"FXX0004": 1, "FXX0005": 1, "FXX0006": 1, "FXX0007": 1}
        assert capture.table("slices").array("ts").size == 0
    with opened(text + LINE, options={"cycle_frequency": 10}) as capture:
        assert codes(capture).keys().isdisjoint({"FXX0004", "FXX0007"})
        assert capture.table("slices").array("ts").tolist() == [900_000_000]


def test_a_payload_that_llvm_xray_cut_is_said() -> None:
    line = LINE.replace("kind: function-enter, tsc: 9", 'kind: custom-event, tsc: 9, data: "a\\0�"')
    with opened(HEADER + line) as capture:
        assert shown(capture)[1]["data_hex"] == "6100"
        assert shown(capture)[1]["raw"] == line.encode().hex()
        assert codes(capture)["FXX0703"] == 1


def test_threads_are_merged_by_time() -> None:
    lines = [
        LINE.replace("thread: 2", f"thread: {thread}").replace("tsc: 9", f"tsc: {tsc}")
        for thread, tsc in ((1, 30), (2, 10), (1, 40), (2, 50), (3, 10))
    ]
    with opened(HEADER + "".join(lines)) as capture:
        assert capture.table("slices").array("ticks").tolist() == [10, 10, 30, 40, 50]
        assert capture.table("threads").array("tid").tolist() == [1, 2, 3]


@given(st.text(st.characters(codec="utf-8", exclude_characters="�"), max_size=20))
@example("a, b }")
@example("'")
@example("\\")
@example("}\n  - {")
@example("\x7f\x85 ")
def test_payloads_come_back_however_they_are_quoted(text: str) -> None:
    line = LINE.replace("kind: function-enter, tsc: 9", "kind: custom-event, tsc: 9, data: {}")
    with opened(HEADER + line.replace("{}", quoted(text)) + LINE) as capture:
        found = shown(capture)
        assert len(found) == 3
        assert bytes.fromhex(found[1]["data_hex"]) == text.encode()


ENTRY = (
    "  - {{ type: 0, func-id: {}, function: '{}', cpu: 1, thread: 5, process: 7, kind: {}, "
    "tsc: {}{} }}"
)
PLAIN = "\n".join(
    ENTRY.format(*each)
    for each in (
        (1, "a, tsc: 1 }", "function-enter", "007", ""),
        (2, "2", "function-exit", (1 << 64) - 1, ", data: ''"),
        (-3, 'q"', "function-enter-arg", 1 << 64, ", data: ''"),
        (3, "\\", "function-tail-exit", 9_999_999_999_999_999_999, ""),
        (0, "0", "custom-event", 5, ""),
        (0, "0", "typed-event", 6, ", data: ''"),
        (0, "0", "typed-event", 6, ', data: "\\x01 }"'),
        (1, "café", "function-enter", 8, "  "),
        (1, "", "no-kind", 8, ""),
    )
)


@given(
    st.lists(st.tuples(st.floats(0, 1), st.binary(max_size=6)), max_size=5),
    st.sampled_from(["\n", "\r\n", "\n\n", "\n...\n"]),
)
@example([(0.7151751587889054, b"\0")], "\n")
def test_remembered_beginnings_change_nothing(edits: Any, end: str) -> None:
    data = bytearray((HEADER + f"{PLAIN}\n{PLAIN}{end}{PLAIN}{end}").encode())
    for place, put in edits:
        at = int(place * len(data))
        data[at : at + len(put)] = put
    for limits in ({}, {"max_record": 120}):
        found = []
        for line in (yaml_log._LINE, re.compile(rb"(?!)")):
            with pytest.MonkeyPatch.context() as patch, opened(bytes(data), options=limits) as text:
                patch.setattr(yaml_log, "_LINE", line)
                records = [record.to_json() for record in text.records()]
                findings = [(each.code, each.offset, each.record) for each in text.diagnostics]
                found.append((records, findings))
        assert found[0] == found[1]


@given(
    st.lists(st.tuples(st.floats(0, 1), st.binary(max_size=6)), max_size=5),
    st.floats(0, 1),
)
def test_both_views_agree_on_any_bytes(edits: Any, kept: float) -> None:
    data = bytearray((HEADER + LINE * 6 + "...\n").encode())
    for place, put in edits:
        at = int(place * len(data))
        data[at : at + len(put)] = put
    data = data[: int(kept * len(data))]
    with opened(bytes(data)) as first, opened(bytes(data)) as second:
        kinds: dict[str, int] = {}
        for record in shown(first):
            kinds[record["record"]] = kinds.get(record["record"], 0) + 1
        assert second.summary().kinds == kinds
        ours = [(each.code, each.offset) for each in first.diagnostics]
        theirs = [(each.code, each.offset) for each in second.diagnostics]
        own = ("FXX0005", "FXX0006", "FXX0007", "FXX0701", "FXX0702", "FXX0703")
        assert [each for each in ours if each[0] in own] == [
            each for each in theirs if each[0] in own
        ]
        assert len(second.table("slices")) <= kinds.get("function", 0)


class TestYamlReader(ReaderContract):
    """The contract of readers."""

    plugin = "fx_xray.plugin"
    format: ClassVar[str] = "llvm-yaml"

    def samples(self) -> Iterable[Sample]:
        yield Sample("one.yaml", (HEADER + LINE + "...\n").encode())
        text = CONFORMANCE / "llvmwriter" / "expected" / "v5-allrecords" / "convert.yaml"
        yield Sample("all.yaml", text.read_bytes())
        yield Sample("no.yaml", b"---\n", confidence=Confidence.NONE, sound=False)


MEGABYTE = 1 << 20
LONG = {
    "name": f'  - {{ type: 0, func-id: 1, function: "{"a" * MEGABYTE}", cpu: 1, tsc: 1 }}\n',
    "quotes": f"  - {{ type: 0, func-id: 1, function: {chr(39) * MEGABYTE}, cpu: 1, tsc: 1 }}\n",
    "nested": "  - " + "[" * MEGABYTE,
    "braces": "  - " + "{a: " * (MEGABYTE // 4),
    "times": "  - { type: 0" + ", tsc: 1, data: x" * (MEGABYTE // 16),
    "closed times": "  - { type: 0" + ", tsc: 1, data: x" * (MEGABYTE // 16) + " }\n",
    "empty lines": "\n" * MEGABYTE,
    "empty items": "- \n" * (MEGABYTE // 64),
    "spaces": "  - { type: 0, " + " " * MEGABYTE,
    "brackets": "[" + "{" * MEGABYTE,
    "quotes in brackets": "[" + "{'" * (MEGABYTE // 2),
    "braces in brackets": "[" + "{a: {" * (MEGABYTE // 4),
}


@cases("name", LONG)
def test_long_texts_take_time_and_memory_in_proportion(name: str) -> None:
    tracemalloc.start()
    begin = time.process_time()
    try:
        with opened(HEADER + LONG[name]) as capture:
            capture.summary()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100 * MEGABYTE
    assert time.process_time() - begin < 20
