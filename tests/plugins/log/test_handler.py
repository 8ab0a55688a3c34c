"""LogHandler: what a Python program logs, read back."""

from __future__ import annotations

import io
import logging
import logging.handlers
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fx_log import format as wire
from fx_log.severity import PYTHON, Level
from fx_log.write.handler import LogHandler, severity_of_level

from ...cases import cases
from .logs import text_log
from .test_records import decode
from .test_writer import Socket, entries


class Program:
    """A logger of its own with a handler over a file in memory."""

    def __init__(self, **options: Any) -> None:
        self.file = io.BytesIO()
        self.handler = LogHandler(self.file, **options)
        self.log = logging.getLogger(f"test.{id(self)}")
        self.log.setLevel(1)
        self.log.propagate = False
        self.log.addHandler(self.handler)

    def entry(self) -> Any:
        (entry,) = entries(self.file.getvalue())
        return entry


@pytest.fixture
def program() -> Iterator[Program]:
    made = Program()
    yield made
    made.log.removeHandler(made.handler)


def values(entry: Any) -> dict[str, Any]:
    return {arg.name: (arg.type, arg.value) for arg in entry.args}


def test_a_record_says_what_was_logged_where(program: Program) -> None:
    before = time.clock_gettime_ns(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
    program.log.warning("%d of %d", 1, 2, extra={"user": "me", "count": 3})
    entry = program.entry()
    assert (entry.message, entry.severity_name) == ("1 of 2", "WARN")
    assert entry.tags == [program.log.name]
    assert entry.file is not None
    assert entry.file.endswith("test_handler.py")
    assert entry.line
    assert (entry.pid, entry.tid) == (os.getpid(), threading.get_native_id())
    assert before <= entry.ts < before + 60_000_000_000
    assert values(entry) == {"user": ("string", "me"), "count": ("int64", 3)}


def python_level(severity: int) -> int:
    """Python's level number: exact at the levels, interpolated between them."""
    below = Level(min(max(severity, Level.TRACE), Level.FATAL) & 0xF0)
    above = PYTHON[Level(min(below + 0x10, Level.FATAL))]
    return PYTHON[below] + (above - PYTHON[below]) * (max(severity, below) - below) // 0x10


@cases("level", range(-5, 61))
def test_levels_lie_between_severities_as_they_do_between_pythons(level: int) -> None:
    severity = severity_of_level(level)
    assert python_level(severity) == min(max(level, 5), 50)
    assert severity <= severity_of_level(level + 1)
    for severity, number in PYTHON.items():
        assert severity_of_level(number) == severity


def test_an_exception_stands_behind_the_message(program: Program) -> None:
    try:
        raise ValueError("why")
    except ValueError:
        program.log.exception("it broke")
    message = program.entry().message
    assert message.startswith("it broke\nTraceback")
    assert message.endswith("ValueError: why")


class Odd:
    def __repr__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, ("string", "null")),
        (True, ("bool", True)),
        (2**63, ("uint64", 2**63)),
        (2**64, ("string", str(2**64))),
        (np.float32(0.5), ("double", 0.5)),
        ([1], ("string", "[1]")),
        (b"x", ("string", "b'x'")),
        ("a\ud800b", ("string", "a\\ud800b")),
        (Odd(), ("string", "<Odd, whose repr failed: RuntimeError>")),
    ],
    ids=["None", "bool", "uint64", "huge", "numpy", "list", "bytes", "surrogate", "odd"],
)
def test_extra_values(program: Program, value: Any, expected: Any) -> None:
    program.log.info("m", extra={"key": value})
    assert values(program.entry()) == {"key": expected}


def test_names_that_readers_take_for_something_else(program: Program) -> None:
    program.log.info("real", extra={"tag": "t", "file": "f", "pid": 1, "line": 2, "tid": 3})
    entry = program.entry()
    assert set(values(entry)) == {"tag_", "file_", "pid_", "line_", "tid_"}
    assert entry.tags == [program.log.name]
    assert entry.file != "f"


NAMES = {*wire.WELL_KNOWN, "$__moniker", "$__url", "$__rolled_out"} - {"message"}


@cases("name", sorted(NAMES))  # logging itself takes no message
def test_no_key_is_taken_for_what_a_reader_knows(name: str) -> None:
    made = Program(name_as_tag=False)
    made.log.info("m", extra={name: "spoof"})
    entry = made.entry()
    assert (entry.component, entry.url, entry.tags) == (None, None, [])
    assert values(entry) == {f"{name}_": ("string", "spoof")}


def test_what_is_too_large_is_cut_and_kept(program: Program) -> None:
    program.log.info("x" * 100_000, extra={"big": "y" * 100_000})
    entry = program.entry()
    assert entry.message.endswith("...")
    assert program.handler.writer.cut == 1


@pytest.mark.parametrize(
    "extra",
    [
        {"k" * 40_000: 1},
        {f"k{n}": n for n in range(5000)},
        {f"{n:04}" * 90: "v" for n in range(900)},
    ],
    ids=["a name", "many", "names"],
)
def test_no_record_is_lost_for_its_keys(
    program: Program, extra: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    program.log.info("kept", extra=extra)
    assert (program.entry().message, capsys.readouterr().err) == ("kept", "")


def test_the_program_never_fails(program: Program, capsys: pytest.CaptureFixture[str]) -> None:
    program.file.close()
    program.log.info("nowhere to go")
    assert "ValueError" in capsys.readouterr().err
    program.handler.handle(logging.makeLogRecord({"msg": "%d", "args": ("no number",)}))
    assert "TypeError" in capsys.readouterr().err


def test_the_root_logger_has_no_tag_and_names_may_be_left_out() -> None:
    made = Program(name_as_tag=False, tags=["app"])
    made.log.info("m")
    assert made.entry().tags == ["app"]
    file = io.BytesIO()
    LogHandler(file).handle(logging.makeLogRecord({"name": "root", "msg": "m"}))
    assert entries(file.getvalue())[0].tags == []


def test_a_formatter_says_what_the_message_is(program: Program) -> None:
    program.handler.setFormatter(logging.Formatter("<%(levelname)s %(message)s>"))
    program.log.error("m")
    assert program.entry().message == "<ERROR m>"


def test_records_from_another_thread_through_a_queue_have_its_id(program: Program) -> None:
    records: queue.Queue[logging.LogRecord] = queue.Queue()
    logger = logging.getLogger("test.queued")
    logger.propagate = False
    through = logging.handlers.QueueHandler(records)
    logger.addHandler(through)
    ids: list[int] = []
    done = threading.Event()

    def work() -> None:
        ids.append(threading.get_native_id())
        logger.error("from there")
        done.wait(10)

    thread = threading.Thread(target=work)
    thread.start()
    program.handler.handle(records.get(timeout=10))
    done.set()
    thread.join()
    logger.removeHandler(through)
    assert program.entry().tid == ids[0] != threading.get_native_id()


def test_dropped_records_are_counted() -> None:
    socket = Socket(False, True)
    handler = LogHandler(socket)
    for name in "ab":
        handler.handle(logging.makeLogRecord({"msg": name}))
    assert entries(b"".join(socket.sent))[0].dropped == 1


def test_a_file_is_continued_or_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "a.fxlog"
    for name, append in (("one", True), ("two", True), ("three", False)):
        handler = LogHandler(path, append=append)
        handler.handle(logging.makeLogRecord({"msg": name}))
        assert name.encode() in path.read_bytes()  # at once, before it is closed
        handler.close()
        handler.close()
    assert [e.message for e in entries(path.read_bytes())] == ["three"]


def test_records_behind_a_torn_one_can_be_found(tmp_path: Path) -> None:
    path = tmp_path / "a.fxlog"
    path.write_bytes(text_log("whole") + text_log("torn")[:13])
    handler = LogHandler(path)
    for name in ("one", "two", "three"):
        handler.handle(logging.makeLogRecord({"msg": name}))
    handler.close()
    said = [e.message for e in entries(path.read_bytes())]
    assert said[0] == "whole"
    assert said[-2:] == ["two", "three"]


def test_a_record_that_the_disk_has_no_room_for_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.fxlog"
    handler = LogHandler(path)
    handler.handle(logging.makeLogRecord({"msg": "before"}))
    real = handler._file._file
    monkeypatch.setattr(logging, "raiseExceptions", False)

    class Full:
        """Takes five bytes, and then no more."""

        calls = 0

        def write(self, data: bytes) -> int:
            self.calls += 1
            if self.calls > 1:
                raise OSError(28, "No space left on device")
            return real.write(data[:5])

        def __getattr__(self, name: str) -> Any:
            return getattr(real, name)

    monkeypatch.setattr(handler._file, "_file", Full())
    handler.handle(logging.makeLogRecord({"msg": "lost"}))
    monkeypatch.setattr(handler._file, "_file", real)
    handler.handle(logging.makeLogRecord({"msg": "after"}))
    handler.close()
    assert [e.message for e in entries(path.read_bytes())] == ["before", "after"]


PROGRAM = """
import logging, os, sys, threading
from fx_log.write.handler import LogHandler
logging.basicConfig(level=logging.DEBUG, handlers=[LogHandler(sys.argv[1])])
log = logging.getLogger("boot")
log.info("starting %s", "up", extra={"attempt": 1})
threads = [threading.Thread(target=log.debug, args=("at work",)) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
os._exit(4 if "numpy" in sys.modules else 3)  # no flush, no close
"""


def test_a_real_program_that_crashes_leaves_all_that_it_logged(tmp_path: Path) -> None:
    path = tmp_path / "program.fxlog"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        check=False,
        timeout=60,
    )
    assert done.returncode == 3  # and what a logging program loads is light
    data = path.read_bytes()
    records, found = decode(data)
    assert [f.code for f in found if f.code != "FXL0203"] == []
    assert sum(record.nbytes for record in records) == len(data)
    first, *others = entries(data)
    assert (first.message, first.tags, values(first)) == (
        "starting up",
        ["boot"],
        {"attempt": ("int64", 1)},
    )
    assert [e.message for e in others] == ["at work"] * 4
