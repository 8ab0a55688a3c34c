"""The `csv` exporter: what other programs read back is what the table holds."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import toy

from fxframework.errors import UsageError, WriteRefusedError
from fxframework.exporters.rows import ArgumentStream
from fxframework.host import Host, default_host
from fxframework.io.sink import Sink
from fxframework.model.capture import Capture, Summary
from fxframework.model.schema import STANDARD_TABLES, TABLE_CODES
from fxframework.model.strings import TextColumn
from fxframework.model.table import Table
from fxframework.registry import parse_options

from ..cases import cases
from ..samples import samples
from .arguments import Arguments


def export(host: Host, capture: Capture, **given: str) -> tuple[bytes, Mapping[str, int]]:
    exporter = host.exporter("csv", format=capture.format, tables=capture.tables)
    sink = Sink.memory()
    session = exporter.open(sink, parse_options(given, exporter.options, whose="it"))
    session.write(capture)
    return sink.getvalue(), session.close()


def rows(data: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(data.decode(), newline="")))


class Made(toy.ToyCapture):
    """A capture of tables that a test makes."""

    made: Mapping[str, Mapping[str, Any]]

    def _table(self, name: str) -> Table:
        given = self.made.get(name, {})
        count = len(next(iter(given.values()), ()))
        columns: dict[str, Any] = {}
        for column in self.schemas[name].all_columns:
            shape = (count, 2) if column.kind == "bytes" else (count,)
            kind = {"code": "i4", "bytes": "i8", "text": "i8"}.get(column.kind, column.kind)
            columns[column.name] = np.zeros(shape, kind)
            if column.kind == "text":
                columns[column.name] = TextColumn.of([b""] * count)
        columns["row"] = np.arange(count)
        for column_name, values in given.items():
            kind = self.schemas[name].column(column_name).kind
            if kind == "code":
                codes = [-1 if v is None else self.strings.intern(v) for v in values]
                columns[column_name] = np.array(codes, np.int32)
            elif kind == "text":
                columns[column_name] = TextColumn.of(values)
            else:
                columns[column_name] = np.array(values, "i8" if kind == "bytes" else kind)
        return Table(self.schemas[name], count, columns, self.strings)

    def summary(self) -> Summary:
        return Summary(records=1, kinds={"mark": 1}, start_ns=None, end_ns=None, facts={})


@pytest.fixture
def make(host: Host) -> Callable[..., Capture]:
    def make(**tables: Mapping[str, Any]) -> Capture:
        capture = host.open(toy.SAMPLE)
        capture.__class__ = Made
        capture.made = tables  # type: ignore[attr-defined]
        capture.schemas = {  # type: ignore[misc]
            name: STANDARD_TABLES[name] for name in {*tables, "args", "threads", "processes"}
        }
        return capture

    return make


def test_a_line_per_row_and_what_was_left_out(host: Host) -> None:
    data, dropped = export(host, host.open(toy.SAMPLE))
    assert data.endswith(b"\r\n")
    (row,) = rows(data)
    assert (row["name"], row["ts"], row["dur"], row["kind"]) == ("two", "2000", "500", "begin_end")
    assert (row["pid"], row["tid"], row["process_name"], row["thread_name"]) == (
        "10", "11", "", "main",
    )  # fmt: skip
    assert dropped == {"rows of instants": 2}


def test_arguments_are_a_json_object(host: Host) -> None:
    data, dropped = export(host, host.open(toy.SAMPLE), table="instants")
    assert [json.loads(row["args"]) for row in rows(data)] == [{"n": 7}, {"n": -1}]
    assert dropped == {"rows of slices": 1}
    data, dropped = export(host, host.open(toy.SAMPLE), table="instants", args="no", threads="no")
    assert rows(data)[0].keys().isdisjoint({"args", "pid", "thread_name"})
    assert dropped.keys() == {
        "rows of slices", "rows of args", "rows of threads", "rows of processes",
    }  # fmt: skip


def test_a_window_exports_its_rows_with_their_arguments(host: Host) -> None:
    data, _ = export(host, host.open(toy.SAMPLE).between(4000, None), table="instants")
    (row,) = rows(data)
    assert (row["row"], row["args"]) == ("1", '{"n":-1}')


def test_texts_survive(host: Host, make: Callable[..., Capture]) -> None:
    texts = ["plain", 'say "hi"', "a,b", "two\nlines", "cr\rlf\r\n", " space ", "tab\t", "Zoë"]
    messages = [text.encode() for text in texts]
    capture = make(logs={"message": messages, "component": messages})
    data, _ = export(host, capture)
    assert [row["message"] for row in rows(data)] == texts
    assert [row["component"] for row in rows(data)] == texts


def test_null_is_empty_and_the_empty_string_is_quoted(
    host: Host, make: Callable[..., Capture]
) -> None:
    data, _ = export(host, make(slices={"name": [None, b""]}), threads="no", args="no")
    header, null, empty, _ = data.split(b"\r\n")
    place = header.split(b",").index(b"name")
    assert null.split(b",")[place] == b""
    assert empty.split(b",")[place] == b'""'


def test_what_is_not_utf8_is_replaced_and_counted(host: Host, make: Callable[..., Capture]) -> None:
    bad = b"caf\xe9"
    capture = make(logs={"message": [bad, bad, b"fine"], "component": [bad, bad, bad]})
    data, dropped = export(host, capture)
    assert [row["message"] for row in rows(data)] == ["caf\ufffd", "caf\ufffd", "fine"]
    assert dropped == {"strings that are not UTF-8, in part": 3}


def test_numbers_are_exact(host: Host, make: Callable[..., Capture]) -> None:
    values = [0.1, 1e300, -0.0, 5e-324, float("nan"), float("inf"), float("-inf")]
    big = [2**64 - 1, 2**63, 2**53 + 1, 0, 1, 2, 3]
    capture = make(counters={"value": values, "id": big, "is_int": [True, *[False] * 6]})
    found = rows(export(host, capture)[0])
    assert [row["value"] for row in found] == [
        "0.1", "1e+300", "-0.0", "5e-324", "NaN", "Infinity", "-Infinity",
    ]  # fmt: skip
    assert [int(row["id"]) for row in found] == big
    assert [row["is_int"] for row in found][:2] == ["true", "false"]


def test_arguments_of_every_type(host: Host, make: Callable[..., Capture]) -> None:
    types = list(range(11))
    args = {
        "table": [3] * 11,  # instants
        "parent": [0] * 11,
        "name": [f"a{number}".encode() for number in types],
        "type": types,
        "int": [0, -1, 0, -(2**63), 0, 0, 0, 0, 0, 1, 0],
        "uint": [0, 0, 2**32 - 1, 0, 2**64 - 1, 0, 0, 2**63, 17, 1, 0],
        "float": [0, 0, 0, 0, 0, float("nan"), 0, 0, 0, 0, 0],
        "str": [None] * 6 + [b'"quoted", \xff'] + [None] * 3 + [b"\x00\xff"],
    }
    data, _ = export(host, make(instants={"ts": [5]}, args=args))
    assert json.loads(rows(data)[0]["args"]) == {
        "a0": None,
        "a1": -1,
        "a2": 2**32 - 1,
        "a3": -(2**63),
        "a4": 2**64 - 1,
        "a5": "NaN",
        "a6": '"quoted", \ufffd',
        "a7": 2**63,
        "a8": 17,
        "a9": True,
        "a10": "00ff",
    }


@cases("number", [1, 2, 7, 9, 12, 255])
def test_bytes_of_any_type_but_string_are_hexadecimal(
    host: Host, make: Callable[..., Capture], number: int
) -> None:
    args = {"table": [3], "parent": [0], "name": [b"a"], "type": [number], "str": [b"\x00\xff"]}
    data, _ = export(host, make(instants={"ts": [5]}, args=args))
    assert json.loads(rows(data)[0]["args"]) == {"a": "00ff"}


def test_a_number_without_a_name_and_a_pair(host: Host, make: Callable[..., Capture]) -> None:
    data, _ = export(host, make(slices={"kind": [1, 77]}))
    assert [row["kind"] for row in rows(data)] == ["complete", "77"]
    data, _ = export(host, make(blobs={"data": [(3, 4)], "size": [4]}))
    assert (rows(data)[0]["data_offset"], rows(data)[0]["data_length"]) == ("3", "4")


def test_both_threads_of_a_switch_are_named(host: Host, make: Callable[..., Capture]) -> None:
    capture = make(
        sched={"prev": [0, -1], "next": [1, 0]},
        threads={"id": [0, 1], "pid": [1, 2], "tid": [3, 4], "name": [b"x", b"y"]},
        processes={"pid": [1], "name": [b"P"]},
    )
    first, second = rows(export(host, capture)[0])
    assert (first["prev_tid"], first["next_tid"], first["next_thread_name"]) == ("3", "4", "y")
    assert (first["prev_process_name"], first["next_process_name"]) == ("P", "")
    assert (second["prev_tid"], second["next_tid"]) == ("", "3")


def test_columns_of_a_plugin_pass_through(host: Host, make: Callable[..., Capture]) -> None:
    from fxframework.model.schema import Column

    capture = make(slices={"ts": [1]})
    extended = STANDARD_TABLES["slices"].extended(Column("toy_colour", "code", "its colour"))
    capture.schemas = {**capture.schemas, "slices": extended}  # type: ignore[misc]
    capture.made = {"slices": {"toy_colour": [b"red"]}}  # type: ignore[attr-defined]
    assert rows(export(host, capture)[0])[0]["toy_colour"] == "red"


@pytest.mark.parametrize(("given", "delimiter"), [("tab", "\t"), (";", ";"), ("|", "|")])
def test_other_delimiters(
    host: Host, make: Callable[..., Capture], given: str, delimiter: str
) -> None:
    capture = make(logs={"message": [f"a{delimiter}b".encode()]})
    text = export(host, capture, delimiter=given)[0].decode()
    (row,) = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)
    assert row["message"] == f"a{delimiter}b"


@pytest.mark.parametrize("given", ["", "ab", '"', "\n"])
def test_what_cannot_be_a_delimiter(host: Host, given: str) -> None:
    with pytest.raises(UsageError, match="cannot separate fields"):
        export(host, host.open(toy.SAMPLE), delimiter=given)


def test_nothing_to_write_is_refused(host: Host) -> None:
    with pytest.raises(WriteRefusedError, match="no table has any rows"):
        export(host, host.open(toy.toy()))
    with pytest.raises(WriteRefusedError, match="'blobs' has no rows"):
        export(host, host.open(toy.SAMPLE), table="blobs")
    with pytest.raises(UsageError, match="did you mean 'slices'"):
        export(host, host.open(toy.SAMPLE), table="slice")


def test_a_second_capture_is_refused(host: Host) -> None:
    exporter = host.exporter("csv", format="toy", tables=("diagnostics",))
    session = exporter.open(Sink.memory(), parse_options({}, exporter.options, whose="it"))
    session.write(host.open(toy.SAMPLE))
    with pytest.raises(WriteRefusedError, match="one table of one capture"):
        session.write(host.open(toy.SAMPLE))


def test_the_findings_are_a_table_too(host: Host) -> None:
    data, _ = export(host, host.open(toy.toy(toy.record(9))), table="diagnostics")
    (row,) = rows(data)
    assert (row["code"], row["severity"], row["offset"]) == ("TOY0001", "data_loss", "8")


def test_duckdb_reads_the_same(host: Host, make: Callable[..., Capture], tmp_path: Any) -> None:
    duckdb = pytest.importorskip("duckdb")
    capture = make(
        logs={
            "message": [b'multi\r\nline, "quoted"', b"", b"plain"],
            "component": [None, b"", b"x"],
            "pid": [2**64 - 1, 2**63, 1],
        }
    )
    path = tmp_path / "logs.csv"
    path.write_bytes(export(host, capture)[0])
    found = duckdb.sql(
        f"select message, component, pid from read_csv('{path}', header=true, quote='\"', "
        "allow_quoted_nulls=false, all_varchar=true)"
    ).fetchall()
    assert found == [
        ('multi\r\nline, "quoted"', None, str(2**64 - 1)),
        ("", "", str(2**63)),
        ("plain", "x", "1"),
    ]


@cases("rows", [1, 3, 1000])
@cases("name", ["boot.fxt", "logs.fxlog"])
def test_streamed_arguments_are_those_of_the_whole(name: str, rows: int) -> None:
    format, data = samples()[name]
    with default_host().open(data, format=format) as capture:
        for table in capture.row_counts():
            if table not in TABLE_CODES:
                continue
            whole, stream = Arguments(capture, table), ArgumentStream(capture, table)
            assert stream.count == len(whole)
            for batch in capture.batches(table, rows):
                found = stream.of(batch.array("row"))
                numbers = [
                    found.columns["name"][start:stop].tolist()
                    for start, stop in zip(found.starts, found.stops, strict=True)
                ]
                texts = [[capture.strings[code] for code in codes] for codes in numbers]
                expected = [whole.members(each) for each in whole.of(batch.array("row"))]
                assert texts == [[json.loads(name) for name, _ in each] for each in expected]
