"""Writers in C++ run and are crashed as those in C are."""

from __future__ import annotations

import struct
from pathlib import Path

from fx_emulator.target import Target
from fxframework.testing.crashtest import crashtest

from ...cases import cases
from .building import LEVELS, SOURCES, build


def check(image: bytes) -> None:
    count, *values = struct.unpack_from("<16Q", image)
    assert values[:count] == list(range(1, count + 1)), "a number that is counted is not there"


@cases("kind", ["shared", "object"])
@cases("level", LEVELS)
@cases("cc", ["g++", "clang++"])
def test_a_writer_in_cpp(tmp_path: Path, cc: str, level: str, kind: str) -> None:
    options = ("-std=c++17", "-fno-exceptions")
    path = build(SOURCES / "classes.cpp", tmp_path / "a", *options, cc=cc, level=level, kind=kind)
    program = Target().load(path)
    assert program.call("numbers") == 42 + 2 * 42 + 43
    log = program.target.vmo("log", 4096)
    report = crashtest(program.entry("fill", log, 6), check)
    assert report.ok, report
    assert report.stores == 12
    assert program.machine.heap.live == 0
