"""Tables as Arrow, polars, pandas and duckdb have them: every table of a capture of each format."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fxframework as fxf
from fx_trace.sample import sample
from fxframework.errors import LimitError, UsageError
from fxframework.host import default_host
from fxframework.model import frame as frames
from fxframework.model.capture import Capture
from fxframework.model.schema import STANDARD_TABLES, TABLE_CODES
from fxframework.model.strings import StringPool, TextColumn
from fxframework.model.table import Table

from ..cases import cases
from ..samples import one_of_each, samples

pa = pytest.importorskip("pyarrow")


@pytest.fixture(params=one_of_each())
def capture(request: pytest.FixtureRequest) -> Iterator[Capture]:
    format, data = samples()[request.param]
    with default_host().open(data, format=format) as capture:
        yield capture


def wanted(table: Table) -> dict[str, list[Any]]:
    """Each column as Python values, straight from the column and the pool."""
    columns: dict[str, list[Any]] = {}
    for name in table.columns:
        column, kind = table[name], table.schema.column(name).kind
        if isinstance(column, TextColumn):
            values = [column.bytes_of(row) for row in range(len(column))]
            columns |= texts(name, values)
        elif kind == "code":
            codes = column.tolist()
            octets = [table.pool.bytes_of(c) if c >= 0 else None for c in codes]
            columns |= texts(name, octets)
        else:
            columns[name] = [list(v) if isinstance(v, list) else v for v in column.tolist()]
    return columns


def texts(name: str, values: list[bytes | None]) -> dict[str, list[Any]]:
    """Strings, and the bytes of those that are not UTF-8 where there are some."""
    found = [None if v is None else v.decode("utf-8", "backslashreplace") for v in values]
    odd = [None if v is None or text == v.decode("utf-8", "replace") else v
           for v, text in zip(values, found, strict=True)]  # fmt: skip
    return {name: found} | ({f"{name}_bytes": odd} if any(v is not None for v in odd) else {})


def same(got: list[Any], columns: list[Any]) -> bool:
    return len(got) == len(columns) and all(
        one == other or (isinstance(one, float) and math.isnan(one) and math.isnan(other))
        for one, other in zip(got, columns, strict=True)
    )


def tables(capture: Capture) -> Iterator[tuple[Table, dict[str, list[Any]]]]:
    for name in capture.tables:
        table = capture.table(name)
        yield table, wanted(table)


def test_arrow(capture: Capture) -> None:
    for name in capture.tables:
        arrow = capture.table(name).to_arrow()  # before anybody else made its columns
        columns = wanted(capture.table(name))
        assert arrow.column_names == list(columns)
        for column, values in columns.items():
            assert same(arrow[column].to_pylist(), values), (name, column)


def test_polars(capture: Capture) -> None:
    pl = pytest.importorskip("polars")
    for table, columns in tables(capture):
        for made in (pl.DataFrame(table), table.to_polars()):
            assert made.columns == list(columns)
            for column, values in columns.items():
                assert same(made[column].to_list(), values), (table.name, column)


def test_pandas(capture: Capture) -> None:
    pd = pytest.importorskip("pandas")
    for table, columns in tables(capture):
        made = table.to_pandas()
        assert list(made.columns) == list(columns)
        for column, values in columns.items():
            got = [
                None if value is None or value is pd.NA else value
                for value in made[column].astype(object).tolist()
            ]
            kind = "text" if column not in table else table.schema.column(column).kind
            if kind in {"bytes", "array"}:
                got = [list(value) for value in got]
            if kind == "code":
                got = [None if isinstance(value, float) else value for value in got]
            assert same(got, values), (table.name, column)
        if len(table):
            assert list(pd.DataFrame(table).columns) == list(table.columns)
            assert (
                pd.DataFrame(table)["row" if "row" in table else "offset"].tolist()
                == (columns["row" if "row" in table else "offset"])
            )


def test_duckdb(capture: Capture) -> None:
    duckdb = pytest.importorskip("duckdb")
    for table, columns in tables(capture):
        with duckdb.connect() as database:
            database.register("it", table.to_arrow())
            cursor = database.sql("SELECT * FROM it")
            assert cursor.columns == list(columns)
            rows = cursor.fetchall()
        for at, (column, values) in enumerate(columns.items()):
            got = [list(row[at]) if isinstance(row[at], tuple) else row[at] for row in rows]
            assert same(got, values), (table.name, column)


def test_rows_and_notebook(capture: Capture) -> None:
    for table, columns in tables(capture):
        rows = list(table)
        assert len(rows) == len(table)
        for name in ("offset", "ts", "name"):
            if name in table and None not in columns[name]:
                shown = [getattr(row, name) for row in rows]
                assert [str(x) for x in shown] == [
                    x.decode("utf-8", "replace") if isinstance(x, bytes) else str(x)
                    for x in columns[name]
                ]
        page = table._repr_html_()
        assert page.count("<tr>") == 1 + min(len(table), 20)
        assert f"{len(table):,} rows" in page
    assert "<table>" in capture.summary()._repr_html_()


def test_a_capture_in_a_notebook_says_what_it_holds(tmp_path: Path) -> None:
    path = tmp_path / "<b>&.fxt"
    path.write_bytes(sample(20_000)[:-8])
    with fxf.open(path) as capture:
        page = capture._repr_html_()
        assert "&lt;b&gt;&amp;.fxt: trace" in page
        assert f"<td>slices</td><td>{len(capture.table('slices')):,}</td>" in page
        assert all(f"<td>finding {code}</td>" in page for code in capture.diagnostics.counts)
        assert capture.diagnostics.counts


# --- frames --------------------------------------------------------------------------------------


def test_frame_joins_people_and_arguments(capture: Capture) -> None:
    for name in capture.tables:
        table = capture.table(name)
        frame = capture.frame(name, args=True)
        assert frame.num_rows == len(table)
        assert frame.column_names[: len(table.columns)] == list(table.columns)
        if "threads" in capture.schemas:
            check_tasks(capture, table, frame)
        if "args" in capture.schemas and name in TABLE_CODES and "row" in table:
            check_arguments(capture, table, frame)


def check_tasks(capture: Capture, table: Table, frame: Any) -> None:
    threads = capture.table("threads")
    tasks = {row.id: row for row in threads}
    for column, prefix in frames.THREAD_COLUMNS.items():
        if column not in table:
            continue
        ids = table.array(column).tolist()
        for field, joined in (("pid", "pid"), ("tid", "tid"), ("name", "thread_name")):
            if prefix + joined in table:
                continue
            values = [getattr(tasks[i], field) if i >= 0 else None for i in ids]
            assert frame[prefix + joined].to_pylist() == values


def check_arguments(capture: Capture, table: Table, frame: Any) -> None:
    args = capture.table("args")
    code = TABLE_CODES[table.name]
    first: dict[tuple[int, str], Any] = {}
    for row in args:
        if row.table == code and row.parent >= 0 and row.name is not None:
            first.setdefault((row.parent, row.name), row)
    rows = {row: at for at, row in enumerate(table.array("row").tolist())}
    joined = {name for name in frame.column_names if name.startswith("arg_")}
    texts = {name for name in joined if name.removesuffix("_bytes") not in joined - {name}}
    assert texts == {f"arg_{name}" for parent, name in first if parent in rows}
    columns = {name: frame[name].to_pylist() for name in joined}
    for (parent, name), arg in first.items():
        if parent not in rows:
            continue
        got = columns[f"arg_{name}"][rows[parent]]
        raw = {5: arg.float, 6: arg.str, 9: bool(arg.int), 10: arg.str}.get(arg.type, arg.int)
        shown = {str(raw), str(arg.uint), repr(raw), str(raw).lower(), None}
        odd = columns.get(f"arg_{name}_bytes", {rows[parent]: None})[rows[parent]]
        shown |= {None if odd is None else odd.decode("utf-8", "backslashreplace")}
        assert str(got) in shown or got == raw or arg.type == 0


def test_a_string_that_is_not_utf8_leaves_the_others_strings() -> None:
    pool = StringPool()
    octets = [b"plain", b"\xff\0", b"", "häß".encode(), b"a\xc3", b"\xff\0"]
    codes = [pool.intern(value) for value in octets]
    kinds = [6, 10, 6, 6, 6, 10]
    slices = Table.of(STANDARD_TABLES["slices"], pool, ts=list(range(6)), name=codes)
    args = Table.of(
        STANDARD_TABLES["args"], pool, table=TABLE_CODES["slices"], parent=list(range(6)),
        name="x", type=kinds, str=codes,
    )  # fmt: skip
    schemas = {"slices": STANDARD_TABLES["slices"], "args": STANDARD_TABLES["args"]}
    texts = ["plain", "\\xff\0", "", "häß", "a\\xc3", "\\xff\0"]
    odd = [None, b"\xff\0", None, None, b"a\xc3", b"\xff\0"]
    frame = frames.frame_of(slices, schemas, {"args": args}.__getitem__, args=True)
    for made, column in ((args.to_arrow(["str"]), "str"), (frame, "name"), (frame, "arg_x")):
        assert made[column].to_pylist() == texts
        assert made[f"{column}_bytes"].to_pylist() == odd
    few = args.select(args["type"] == 6).select(slice(0, 3))
    assert few.to_arrow(["str"]).column_names == ["str"]


def made_args(values: list[Any], types: list[int]) -> Any:
    """The column of one argument of these values, one a row."""
    pool = StringPool()
    count = len(values)
    slices = Table.of(STANDARD_TABLES["slices"], pool, ts=list(range(count)))
    as_int = [int(v) if isinstance(v, int) else 0 for v in values]
    args = Table.of(
        STANDARD_TABLES["args"],
        pool,
        table=TABLE_CODES["slices"],
        parent=list(range(count)),
        name="x",
        type=types,
        int=np.array([v & (1 << 64) - 1 for v in as_int], np.uint64).view(np.int64),
        uint=np.array([v & (1 << 64) - 1 for v in as_int], np.uint64),
        float=[v if isinstance(v, float) else 0.0 for v in values],
        str=[v if isinstance(v, str) else None for v in values],
    )
    schemas = {"slices": STANDARD_TABLES["slices"], "args": STANDARD_TABLES["args"]}
    frame = frames.frame_of(slices, schemas, {"args": args}.__getitem__, args=True)
    return frame["arg_x"]


@cases(
    ("values", "types", "kind", "expected"),
    [
        ([1, -2], [1, 3], pa.int64(), [1, -2]),
        ([1, 1 << 63], [2, 4], pa.uint64(), [1, 1 << 63]),
        ([-1, 1 << 63], [3, 4], pa.string(), ["-1", str(1 << 63)]),
        ([1, None], [3, 0], pa.int64(), [1, None]),
        ([1.5, 2.0], [5, 5], pa.float64(), [1.5, 2.0]),
        ([True, False], [9, 9], pa.bool_(), [True, False]),
        ([1, 0.5, "s", True, None], [3, 5, 6, 9, 0], pa.string(), ["1", "0.5", "s", "true", None]),
        (["a", "b"], [6, 10], pa.dictionary(pa.int32(), pa.string()), ["a", "b"]),
        ([None], [0], pa.dictionary(pa.int32(), pa.string()), [None]),
    ],
)
def test_types_of_arguments(values: Any, types: Any, kind: Any, expected: Any) -> None:
    column = made_args(values, types)
    assert (column.type, column.to_pylist()) == (kind, expected)


def test_too_many_arguments_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "CELLS", 1)
    with pytest.raises(LimitError, match="1 names of arguments times 2 rows"):
        made_args([1, 2], [1, 1])


def test_a_table_that_is_not_there(capture: Capture) -> None:
    with pytest.raises(UsageError, match="have no table 'nothing'"):
        capture.frame("nothing")


def test_a_table_is_no_mapping(capture: Capture) -> None:
    from collections.abc import Mapping, Sequence

    for name in itertools.islice(capture.tables, 1):
        assert not isinstance(capture.table(name), Mapping | Sequence)
