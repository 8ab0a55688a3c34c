"""A writer in Rust without the standard library runs, and is crashed, as one in C is."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from fx_emulator.native import LoadError, NativeError, NativeProgram, explore
from fx_emulator.target import Target
from fxframework.testing.crashtest import crashtest

from ...cases import cases
from .building import EXAMPLES, SOURCES, compiler, run

SOURCE = EXAMPLES / "log_writer.rs"
STD = SOURCES / "with_std.rs"


def build(folder: Path, level: str, *options: str, source: Path = SOURCE) -> Path:
    out = folder / f"{source.stem}.so"
    command = [
        *(compiler("rustc"), "-C", f"opt-level={level}", "-g", "--crate-type", "cdylib"),
        *(
            options
            if source is STD
            else ("-C", "panic=abort", "-C", "link-arg=-nostdlib", *options)
        ),
        *(str(source), "-o", str(out)),
    ]
    done = run(command)
    assert done.returncode == 0, done.stderr
    return out


def check(image: bytes) -> None:
    count, *values = struct.unpack_from("<16Q", image)
    assert 0 not in values[:count], "a number that is counted is not there"


@cases("level", ["0", "3"])
@cases("bug", [False, True])
def test_a_writer_in_rust(tmp_path: Path, level: str, bug: bool) -> None:
    program: NativeProgram = Target().load(
        build(tmp_path, level, *(["--cfg", "bug"] if bug else []))
    )
    log = program.target.vmo("log", 4096)
    report = crashtest(program.entry("fill", log, b"\x01\x02\x03\x04", 4), check)
    assert report.ok is not bug, report
    if report.failure is not None:
        # Without optimization the store is in a function of the library's own.
        assert ("log_writer.rs:" if level == "3" else "atomic.rs:") in str(report)
        if level == "3":
            assert ", via atomic.rs:" in str(report)
        return
    assert report.stores == 8
    assert struct.unpack_from("<5Q", log.read(0, 40)) == (4, 1, 2, 3, 4)


def line_of(text: str) -> int:
    lines = STD.read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


@pytest.mark.parametrize(("level", "panic"), [("0", "unwind"), ("3", "abort")])
def test_a_library_with_the_standard_library(tmp_path: Path, level: str, panic: str) -> None:
    """Takes seconds: Rust's standard library is linked, and runs instruction by instruction."""
    path = build(tmp_path, level, "-C", f"panic={panic}", source=STD)
    with Target(cpus=2) as target:
        program = target.load(path)
        log = target.vmo("log", 4096)
        values = struct.pack("<3Q", 1, 2, 3)
        report = crashtest(program.entry("fill", log, values, 3), check)
        assert report.ok, report
        assert struct.unpack("<4Q", log.read(0, 32)) == (3, 10, 20, 30)
        with pytest.raises(
            NativeError, match=r"panicked at .*with_std\.rs:\d+:\d+: index"
        ) as caught:
            program.call("at", 7)
        error = caught.value
        assert error.place == f"with_std.rs:{line_of('values[index]')}"
        assert error.function == "at"
        assert b"the len is 3 but the index is 7" in program.output
        assert any(each.function.startswith("core::panicking::") for each in error.frames)
        assert program.call("at", 1) == 20
        threads = [program.entry("at", number) for number in (0, 9)]
        failure = explore(threads, lambda _: None, memory=log).failure
        assert failure is not None
        assert failure.frame is not None
        assert failure.frame.file == "with_std.rs"


def test_printing_and_a_lock(tmp_path: Path) -> None:
    with Target() as target:
        program = target.load(build(tmp_path, "3", source=STD))
        assert program.call("say", 42) == 43
        assert program.output == b"said 42\n"


def test_what_the_standard_library_cannot_have_is_named(tmp_path: Path) -> None:
    path = build(tmp_path, "3", "--cfg", "threads", source=STD)
    with pytest.raises(LoadError, match="pthread_create: ") as caught:
        Target().load(path)
    assert "#![no_std], -C panic=abort, -C link-arg=-nostdlib" in str(caught.value)
