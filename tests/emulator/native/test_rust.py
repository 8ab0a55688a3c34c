"""A writer in Rust without the standard library runs, and is crashed, as one in C is."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from fx_emulator.native import NativeProgram
from fx_emulator.target import Target
from fxframework.testing.crashtest import crashtest

from .building import EXAMPLES, compiler, run

SOURCE = EXAMPLES / "log_writer.rs"


def build(folder: Path, level: str, *options: str) -> Path:
    out = folder / "log_writer.so"
    command = [
        *(compiler("rustc"), "-C", f"opt-level={level}", "-g", "--crate-type", "cdylib"),
        *("-C", "panic=abort", "-C", "link-arg=-nostdlib", *options),
        *(str(SOURCE), "-o", str(out)),
    ]
    done = run(command)
    assert done.returncode == 0, done.stderr
    return out


def check(image: bytes) -> None:
    count, *values = struct.unpack_from("<16Q", image)
    assert 0 not in values[:count], "a number that is counted is not there"


@pytest.mark.parametrize("level", ["0", "3"])
@pytest.mark.parametrize("bug", [False, True])
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
