"""Arrow, Parquet and duckdb files hold what the tables do, as other tools read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

import fxframework as fxf
from fx_trace.write.archive import Archive
from fxframework.errors import UsageError, WriteRefusedError
from fxframework.io.sink import Sink

from ..cases import cases
from ..samples import CONFORMANCE, SCENARIOS

SAMPLES = [
    SCENARIOS / "boot.golden" / "boot.fxt",
    *sorted(CONFORMANCE.rglob("*.xray"))[:3],
    *sorted(CONFORMANCE.rglob("*.fxlog"))[:2],
    *sorted(CONFORMANCE.rglob("*.inspect"))[:2],
]


def plain(table: Any) -> dict[str, list[Any]]:
    """Columns as lists: whatever encodes a name, the name counts."""
    found: dict[str, list[Any]] = table.to_pydict()
    return found


@cases("sample", SAMPLES, ids=lambda path: path.name)
@cases("suffix", [".arrow", ".parquet"])
def test_every_table_comes_back(sample: Path, suffix: str, tmp_path: Path) -> None:
    with fxf.open(sample) as capture:
        for name in capture.schemas:
            table = capture.table(name).to_arrow()
            out = tmp_path / f"{name}{suffix}"
            fxf.convert(capture, out, table=name)
            if suffix == ".arrow":
                back = pa.ipc.open_file(out).read_all()
                other = pl.read_ipc(out)
            else:
                back = parquet.read_table(out)
                other = pl.read_parquet(out)
            assert plain(back) == plain(table), name
            assert other.to_dict(as_series=False) == plain(table), name
            about = back.schema.metadata or {}
            assert about[b"fxframework.table"] == name.encode()
            for column in capture.schemas[name].all_columns:
                told = back.schema.field(column.name).metadata or {}
                assert told.get(b"unit", b"") == column.unit.encode()


@cases("sample", SAMPLES, ids=lambda path: path.name)
def test_a_database_holds_every_table(sample: Path, tmp_path: Path) -> None:
    out = tmp_path / "capture.duckdb"
    with fxf.open(sample) as capture:
        fxf.convert(capture, out)
        with duckdb.connect(str(out), read_only=True) as database:
            for name in capture.tables:
                table = capture.table(name).to_arrow()
                back = database.table(name).to_arrow_table().drop_columns("capture")
                assert plain(back) == plain(table), name


@cases("suffix", [".arrow", ".parquet", ".csv"])
def test_one_file_gets_the_main_table(suffix: str, tmp_path: Path) -> None:
    """Of a capture that has only flows and threads: the flows."""
    path, out = tmp_path / "flows.fxt", tmp_path / f"flows{suffix}"
    with Sink.open(path) as sink, Archive(sink) as archive:
        app = archive.provider(1, "app", ticks_per_second=1_000_000_000)
        app.flow_begin("f", "flow", 1, thread=app.thread(1, 2, "main"), timestamp=1)
    with fxf.open(path) as capture:
        fxf.convert(capture, out)
    read = {".arrow": pl.read_ipc, ".parquet": pl.read_parquet, ".csv": pl.read_csv}[suffix]
    assert read(out)["id"].to_list() == [1]


def test_captures_follow_each_other_in_one_file(tmp_path: Path) -> None:
    out, database = tmp_path / "both.parquet", tmp_path / "both.duckdb"
    with fxf.open(SAMPLES[0]) as one, fxf.open(SAMPLES[0]) as other:
        rows = len(one.table("slices"))
        report = fxf.convert([one, other], out)
        assert report.dropped
        assert parquet.read_table(out).num_rows == 2 * rows
        fxf.convert([one, other], database)
    with duckdb.connect(str(database), read_only=True) as connection:
        assert connection.sql("select count(*) from slices").fetchall() == [(2 * rows,)]


def test_captures_of_two_formats_share_a_table(tmp_path: Path) -> None:
    """Slices of XRay have columns that those of traces have not; there they are null."""
    trace_path, xray_path = SAMPLES[:2]
    with fxf.open(trace_path) as trace, fxf.open(xray_path) as xray:
        own = set(xray.table("slices").columns) - set(trace.table("slices").columns)
        rows = [len(trace.table("slices")), len(xray.table("slices"))]
        assert own
        for number, captures in enumerate([[trace, xray], [xray, trace]]):
            out, database = tmp_path / f"{number}.parquet", tmp_path / f"{number}.duckdb"
            fxf.convert(captures, out, table="slices")
            fxf.convert(captures, database)
            with duckdb.connect(str(database), read_only=True) as connection:
                held = connection.table("slices").to_arrow_table()
            for table in (parquet.read_table(out), held):
                assert len(table) == sum(rows)
                assert {table[column].null_count for column in own} == {rows[0]}
                assert table["offset"].null_count == 0


def test_a_table_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="slices"):
        fxf.convert(SAMPLES[0], tmp_path / "x.parquet", table="slice")
    with pytest.raises((WriteRefusedError, UsageError)):
        fxf.convert(SAMPLES[0], tmp_path / "x.parquet", table="counters2")
    assert not list(tmp_path.iterdir())


# --- A folder of all tables ----------------------------------------------------------------------


@cases("sample", SAMPLES[::3], ids=lambda path: path.name)
@cases("to", ["arrow", "parquet"])
def test_a_folder_has_a_file_of_every_table(sample: Path, to: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with fxf.open(sample) as capture:
        report = fxf.convert(capture, f"{out}/", to=to)
        assert report.dropped == {}
        assert report.nbytes == sum(path.stat().st_size for path in out.iterdir())
        assert {path.name for path in out.iterdir()} == {f"{name}.{to}" for name in capture.tables}
        for name in capture.tables:
            path = out / f"{name}.{to}"
            table = capture.table(name).to_arrow()
            if to == "arrow":
                back = pa.ipc.open_file(path).read_all()
                other = pl.read_ipc(path)
            else:
                back = parquet.read_table(path)
                other = pl.read_parquet(path)
                asked = duckdb.sql(f"select * from read_parquet('{path}')").to_arrow_table()
                assert plain(asked) == plain(table), name
            assert plain(back) == plain(table), name
            assert other.to_dict(as_series=False) == plain(table), name
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_captures_share_the_files_of_a_folder(tmp_path: Path) -> None:
    fxf.convert([SAMPLES[0], SAMPLES[1]], f"{tmp_path}/out/", to="parquet")
    with fxf.open(SAMPLES[0]) as one, fxf.open(SAMPLES[1]) as other:
        for name in {*one.tables, *other.tables}:
            rows = sum(len(each.table(name)) for each in (one, other) if name in each.tables)
            assert parquet.read_metadata(tmp_path / "out" / f"{name}.parquet").num_rows == rows


def test_a_folder_is_new_or_empty_and_appears_whole(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    fxf.convert(SAMPLES[0], f"{tmp_path}/empty/", to="parquet")
    kept = sorted(tmp_path.rglob("*"))
    for force in (False, True):
        with pytest.raises(WriteRefusedError, match="not an empty folder"):
            fxf.convert(SAMPLES[0], f"{tmp_path}/empty/", to="parquet", force=force)
    with pytest.raises(UsageError, match="a folder gets all tables"):
        fxf.convert(SAMPLES[0], f"{tmp_path}/other/", to="parquet", table="slices")
    with pytest.raises(UsageError, match="writes one file"):
        fxf.convert(SAMPLES[0], f"{tmp_path}/other/", to="csv")
    with pytest.raises(UsageError, match="has no suffix"):
        fxf.convert(SAMPLES[0], f"{tmp_path}/other/")
    with pytest.raises(WriteRefusedError, match="cannot write there"):
        fxf.convert(SAMPLES[0], f"{tmp_path}/missing/other/", to="arrow")
    assert sorted(tmp_path.rglob("*")) == kept
