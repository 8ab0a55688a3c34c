"""SQL over captures: every table a view, joined views beside, and nothing else to be reached."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import fxframework as fxf
from fx_trace.write.archive import Archive
from fxframework.errors import FxError, UsageError
from fxframework.query import JOINED, Database
from fxframework.testing.cli import run_cli

from ..cases import cases

CONFORMANCE = Path(__file__).parents[1] / "conformance"
TRACE = CONFORMANCE / "trace" / "files" / "magic_trace_sample.fxt"
SAMPLES = [
    TRACE,
    *sorted(CONFORMANCE.rglob("*.xray"))[:3],
    *sorted(CONFORMANCE.rglob("*.fxlog"))[:2],
    *sorted(CONFORMANCE.rglob("*.inspect"))[:2],
]


@cases("sample", SAMPLES, ids=lambda path: path.name)
def test_every_table_and_joined_view_has_the_rows_of_the_table(sample: Path) -> None:
    with fxf.open(sample) as capture, Database([capture]) as database:
        for name, columns in database.views.items():
            table = next((t for t, view in JOINED.items() if view == name), name)
            rows = len(capture.table(table))
            found = database.query(f'select count(*) as n from "{name}"')
            assert found.column("n").to_pylist() == [rows], name
            if columns and name in capture.schemas:
                every = database.query(f'select * from "{name}"')
                direct = capture.table(name).to_arrow()
                assert every.column_names == direct.column_names
                for column in every.column_names:
                    if every.column(column).type != direct.column(column).type:
                        continue  # a dictionary comes back as plain strings
                    assert every.column(column).to_pylist() == direct.column(column).to_pylist()


def test_only_the_columns_that_are_named_are_decoded() -> None:
    with fxf.open(TRACE) as capture, Database([capture]) as database:
        found = database.query("select name, sum(dur) as d from slices group by name")
        assert set(database._made["slices"]) == {"name", "dur"}
        assert found.schema.field("d").type == "int64"
        again = database.query("select max(ts) from slices")
        assert again.num_rows == 1
        assert set(database._made["slices"]) == {"name", "dur", "ts"}


def with_blobs(path: Path, *blobs: bytes) -> Path:
    """A trace whose instants have a string and a blob."""
    with Archive(path) as archive:
        app = archive.provider(1, "app", ticks_per_second=1_000_000)
        for time, blob in enumerate(blobs):
            args = {"text": "plain", "data": blob}
            app.instant("c", "event", args, thread=(1, 2), timestamp=time)
    return path


def test_bytes_that_are_not_text_change_no_type(tmp_path: Path) -> None:
    odd_path = with_blobs(tmp_path / "odd.fxt", b"ok", b"\xff\x00")
    plain_path = with_blobs(tmp_path / "plain.fxt", b"ok")
    with fxf.open(odd_path) as odd, fxf.open(plain_path) as plain:
        query = "select str, typeof(str) as kind, str_bytes from args order by all"
        assert fxf.sql(odd, query).to_pylist() == [
            {"str": "\\xff\0", "kind": "VARCHAR", "str_bytes": b"\xff\0"},
            {"str": "ok", "kind": "VARCHAR", "str_bytes": None},
            {"str": "plain", "kind": "VARCHAR", "str_bytes": None},
            {"str": "plain", "kind": "VARCHAR", "str_bytes": None},
        ]
        # The column is there wherever it is asked for, whatever was asked for before.
        for captures in ([plain], [plain, odd], [odd, plain]):
            with Database(captures) as database:
                database.query("select str from args where str = 'plain'")
                assert database.query(query).num_rows == sum(
                    len(capture.table("args")) for capture in captures
                )
                whole = "select coalesce(str_bytes, encode(str)) as it from args"
                assert b"plain" in database.query(whole).column("it").to_pylist()
        joined = fxf.sql([odd, plain], "select args.data, args.data_bytes from instants_with_names")
        assert sorted(map(tuple, map(dict.values, joined.to_pylist())), key=str) == [
            ("\\xff\0", b"\xff\0"), ("ok", None), ("ok", None),
        ]  # fmt: skip


def test_a_query_without_select_has_every_column() -> None:
    with fxf.open(TRACE) as capture:
        assert fxf.sql(capture, "from slices limit 1").column_names == list(
            capture.table("slices").columns
        )
        assert fxf.sql(capture, "describe slices").num_rows == len(capture.table("slices").columns)


def test_captures_are_put_together_with_their_names() -> None:
    with fxf.open(TRACE) as one, fxf.open(SAMPLES[1]) as other:
        found = fxf.sql([one, other], "select capture, count(*) as n from slices group by all")
        assert {row["capture"]: row["n"] for row in found.to_pylist()} == {
            one.name: len(one.table("slices")),
            other.name: len(other.table("slices")),
        }


@cases(
    ("query", "message"),
    [
        ("select nam from slices", r'"nam" not found.*\n(.*\n)*.*\^'),
        ("select * from nosuch", r"no table 'nosuch'"),
        ("select 1 +", "syntax error"),
        ("selec 1", "syntax error"),
        ("copy slices to '{path}'", "disabled"),
        ("copy (select 1) to '{path}'", "disabled"),
        ("attach '{path}'", "disabled"),
        ("select * from read_csv('{path}')", "disabled"),
        ("select * from read_text('{path}')", "disabled"),
        ("select * from '{path}'", "disabled|no table"),
        ("install httpfs", "disabled"),
        ("load '{path}'", "disabled"),
        ("set enable_external_access = true", "locked"),
        ("set lock_configuration = false", "locked"),
        ("export database '{path}'", "disabled"),
        ("select getenv('HOME')", "getenv"),
    ],
)
def test_what_a_query_may_not_do_is_a_clear_error(query: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "secret.csv"
    path.write_text("a,b\n1,2\n")
    with fxf.open(TRACE) as capture, pytest.raises(UsageError, match=message) as caught:
        fxf.sql(capture, query.format(path=path))
    assert caught.value.remedy
    assert [each.name for each in tmp_path.iterdir()] == ["secret.csv"]


def test_a_query_from_standard_input_is_text() -> None:
    assert run_cli("sql", str(TRACE), stdin=b"select 1 as a").text == "a\n1\n"
    done = run_cli("sql", str(TRACE), stdin=b"select \xff")
    assert (done.exit_code, done.text) == (2, "")
    assert "the queries on standard input are not valid UTF-8" in done.stderr


def test_python_variables_are_not_tables() -> None:
    secret = {"a": [1]}
    assert secret
    with fxf.open(TRACE) as capture, pytest.raises(FxError, match="secret"):
        fxf.sql(capture, "select * from secret")


def test_rows_are_lines_of_json() -> None:
    done = run_cli("sql", "--json", str(TRACE), "select * from (values (1, 'a'), (2, 'b')) t(n, s)")
    assert done.stdout.splitlines() == [b'{"n":1,"s":"a"}', b'{"n":2,"s":"b"}']


@cases(
    ("value", "text"),
    [
        (f"{(1 << 127) - 1}::hugeint", f"{(1 << 127) - 1}".encode()),
        ("sum(18446744073709551615::ubigint)", b"18446744073709551615"),
        ("[1.5::decimal(10, 2)]", b"[1.50]"),
        ("{'b': '\\x01\\xff'::blob}", b'{"b":"01ff"}'),
        ("interval 3 day", b'{"months":0,"days":3,"nanoseconds":0}'),
        ("map {1: 2}", b"[[1,2]]"),
        ("'nan'::double", b'"NaN"'),
        ("[{'x': '-inf'::float}, {'x': 1.5::float}]", b'[{"x":"-Infinity"},{"x":1.5}]'),
    ],
)  # fmt: skip
def test_a_value_of_any_type_is_json(value: str, text: bytes) -> None:
    done = run_cli("sql", "--json", str(TRACE), f"select {value} as v, 1 as v")
    assert done.stdout == b'{"v":' + text + b',"v#2":1}\n', done.stderr


def test_a_value_that_cannot_be_shown_or_written_names_its_column(tmp_path: Path) -> None:
    for options in ((), ("--json",)):
        done = run_cli("sql", *options, str(TRACE), "select 1 as a, '290000-01-01'::date as late")
        assert done.exit_code == 2
        assert "error[FXF0005]: a value of the column 'late' cannot be shown" in done.stderr
    for suffix in ("csv", "parquet"):
        out = tmp_path / f"a.{suffix}"
        done = run_cli("sql", str(TRACE), "select interval 1 day as a", "--out", str(out))
        assert done.exit_code == 1
        assert f"error[FXF0002]: a .{suffix} file cannot hold this result" in done.stderr
        assert not out.exists()


def test_a_query_ends_where_its_time_does() -> None:
    endless = "select count(*) from range(1000000000) a, range(1000) b"
    done = subprocess.run(
        [sys.executable, "-m", "fxframework.cli", "sql", "--max-time", "1", str(TRACE), endless],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith("error[FXF0003]: the work took longer than max_time=1 seconds")


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are of POSIX")
def test_an_interrupt_ends_the_query_and_not_the_prompt() -> None:
    import pty

    main, terminal = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "fxframework.cli", "sql", str(TRACE)],
        stdin=terminal, stdout=terminal, stderr=subprocess.STDOUT, start_new_session=True,
    ) as process, os.fdopen(main, "r+b", buffering=0) as screen:  # fmt: skip
        os.close(terminal)
        shown = b""

        def until(text: bytes) -> None:
            nonlocal shown
            while text not in shown:
                shown += screen.read(1000)
            shown = shown.rpartition(text)[2]

        until(b"fxf> ")
        screen.write(b"select count(*) from range(1000000000) a, range(1000) b;\n")
        until(b"0:00")  # the time that it has taken so far
        process.send_signal(signal.SIGINT)
        until(b"The query was interrupted.\r\nfxf> ")
        screen.write(b"select 6 * 7 as n;\n")
        until(b"n\r\n42\r\nfxf> ")
        screen.write(b".quit\n")
        assert process.wait(20) == 0


def test_the_command_prints_writes_and_refuses(tmp_path: Path) -> None:
    done = run_cli("sql", str(TRACE), "select count(*) as n from slices")
    assert (done.exit_code, done.stdout) == (0, b"n\n17296\n")
    out = tmp_path / "x.parquet"
    done = run_cli("sql", str(TRACE), "select name, dur from slices", "--out", str(out))
    assert done.exit_code == 0
    assert _rows(out) == 17296
    again = run_cli("sql", str(TRACE), "select 1", "--out", str(out))
    assert again.exit_code == 1
    assert "--force" in again.stderr
    bad = run_cli("sql", str(TRACE), "select nam from slices")
    assert bad.exit_code == 2
    assert "^" in bad.stderr
    assert run_cli("sql", str(TRACE), "select 1", "--out", str(tmp_path / "x.doc")).exit_code == 1


def _rows(path: Path) -> Any:
    from pyarrow import parquet

    return parquet.read_table(path).num_rows


def test_queries_come_from_a_pipe() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "fxframework.cli", "sql", str(TRACE)],
        input="select count(*) as n\nfrom slices;\nselect 2 as two;\n",
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout == "n\n17296\ntwo\n2\n", done.stderr
