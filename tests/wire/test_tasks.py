"""Rows with a process and a thread: their ids are columns, of which threads are made."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fxframework as fxf
from fxframework import hookimpl, wire
from fxframework.errors import PluginError
from fxframework.host import Host
from fxframework.io.sink import Sink
from fxframework.io.source import Source
from fxframework.model.capture import OpenRequest
from fxframework.model.selection import Selection
from fxframework.testing import ReaderContract, Sample


class Step(wire.Record):
    """A step, or a measurement, of a thread."""

    _kind = wire.kind(wire.u8())
    process: int = wire.u64()


class Done(Step, kind=1):
    thread: int = wire.u32()
    time: int = wire.i64(unit="ns")


class Level(Step, kind=2):
    time: int = wire.i64(unit="ns")
    level: int = wire.u8()


STEPS = wire.Format(
    "steps",
    "Steps",
    Step,
    codes="STEP",
    magic=b"STEPS\n",
    tables=[
        wire.threads(process="steps_pid", thread="steps_tid"),
        wire.rows(
            "instants", Done, ts="time", name=wire.always("done"), scope=0, steps_pid="process",
            steps_tid="thread",
        ),
        wire.rows(
            "counters", Level, ts="time", name=wire.always("level"), value="level",
            steps_pid="process", steps_tid=wire.field("level") + 4,
        ),
    ],
)  # fmt: skip
MOST = (1 << 64) - 1


def done(process: int, thread: int, time: int) -> bytes:
    return struct.pack("<BQIq", 1, process, thread, time)


def level(process: int, time: int) -> bytes:
    return struct.pack("<BQqB", 2, process, time, 5)


DATA = b"STEPS\n" + done(7, 8, 1) + done(MOST, 8, 2) + level(7, 3) + done(7, 8, 4) + level(MOST, 5)


class Plugin:
    """Steps."""

    @hookimpl
    def fx_readers(self) -> Any:
        return STEPS.reader


def rows(capture: Any, name: str, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(getattr(row, column) for column in columns) for row in capture.table(name)]


def test_rows_have_threads_and_threads_have_processes() -> None:
    with STEPS.reader.open(Source.open(DATA), OpenRequest()) as capture:
        assert rows(capture, "instants", "thread", "ts") == [(0, 1), (1, 2), (0, 4)]
        assert rows(capture, "counters", "thread") == [(2,), (3,)]
        threads = rows(capture, "threads", "id", "pid", "tid", "offset")
        assert threads == [(0, 7, 8, 6), (1, MOST, 8, 27), (2, 7, 9, 48), (3, MOST, 9, 87)]
        assert rows(capture, "processes", "pid", "offset") == [(7, 6), (MOST, 27)]
        counts = capture.summary().rows
        assert (counts["threads"], counts["processes"], counts["instants"]) == (4, 2, 3)


def test_threads_are_numbered_alike_in_batches() -> None:
    data = b"STEPS\n" + b"".join(done(at % 3, at % 70, at) for at in range(200_000))
    request = OpenRequest()
    with STEPS.reader.open(Source.open(data), request) as capture:
        whole = capture.table("instants").array("thread").copy()
        assert len(capture.table("threads")) == 210
    with STEPS.reader.open(Source.open(data), request) as capture:
        parts = [batch.array("thread").copy() for batch in capture.batches("instants", 5000)]
        assert np.array_equal(np.concatenate(parts), whole)


def test_a_part_by_time_lacks_the_records_that_named_its_threads_first() -> None:
    sink = Sink.memory()
    with STEPS.reader.open(Source.open(DATA), OpenRequest()) as capture:
        left_out = STEPS.writer.extract(capture, Selection(start_ns=4), sink, {})
    assert left_out == {"records": 3}
    assert bytes(sink.getvalue()) == b"STEPS\n" + done(7, 8, 4) + level(MOST, 5)


def test_other_formats_have_the_threads(tmp_path: Path) -> None:
    host = Host()
    host.register(Plugin(), name="steps")
    path = tmp_path / "a.steps"
    path.write_bytes(DATA)
    with host.open(path) as capture:
        fxf.convert(capture, tmp_path / "a.fxt")
    with fxf.open(tmp_path / "a.fxt") as capture:
        found = {(row.pid, row.tid) for row in capture.table("threads")}
        assert found == {(7, 8), (MOST, 8), (7, 9), (MOST, 9)}


def test_columns_that_no_table_has_are_refused() -> None:
    with pytest.raises(PluginError, match="no table has both columns steps_pid and steps_tid"):
        wire.Format(
            "steps", "Steps", Step, codes="STEP",
            tables=[
                wire.rows("instants", Done, ts="time", steps_pid="process"),
                wire.threads("steps_pid", "steps_tid"),
            ],
        )  # fmt: skip


class TestReader(ReaderContract):
    plugin = Plugin()
    format = "steps"
    examples = 10
    test_plugin_is_light_to_import = None  # it is a module of tests
    test_plugin_has_docstrings = None

    def samples(self) -> Any:
        yield Sample("a.steps", DATA)
        yield Sample("cut.steps", DATA[:-2], sound=False)
