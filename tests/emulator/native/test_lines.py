"""Reports name the user's own lines and functions, where the compiler has inlined a library too."""

from __future__ import annotations

from pathlib import Path

import pytest

from fx_emulator.native import NativeError
from fx_emulator.target import Target

from ...cases import cases
from .building import SOURCES, build

SOURCE = SOURCES / "inlined.cpp"


def line_of(text: str) -> int:
    lines = SOURCE.read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


@cases("kind", ["shared", "object"])
@cases("dwarf", [4, 5])
@cases("cc", ["g++", "clang++"])
def test_inlined_code(tmp_path: Path, cc: str, dwarf: int, kind: str) -> None:
    options = ("-std=c++17", f"-gdwarf-{dwarf}", "-fno-exceptions")
    path = build(SOURCE, tmp_path / "inlined", *options, cc=cc, level="-O2", kind=kind)
    with Target() as target:
        program = target.load(path)
        ring = target.vmo("ring", 4096)
        stores = list(program.entry("fill", ring, 2).record())
        assert [each.frame.place for each in stores] == [
            f"inlined.cpp:{line_of(text)}" for text in ("fetch_add", ".store(value")
        ] * 2
        for each in stores:
            assert each.frame.function == "ring::Ring::put(unsigned long)"
            assert each.frame.inner[0].startswith("atomic_base.h:")
            assert f"({each.frame.place}, via {each.frame.inner[0]})" in str(each)
        *_, outer = program.machine.names.frames(stores[0].pc)
        assert (outer.function, outer.line) == ("fill", line_of("ring->put"))
        with pytest.raises(NativeError, match="store into unmapped memory") as caught:
            program.call("wild", 0x1234)
    frames = caught.value.frames
    assert [each.line for each in frames] == [
        line_of(text) for text in ("*at = 1", "reinterpret_cast", "ring::fail(at)")
    ]
    assert [each.function.split("(")[0] for each in frames] == [
        "ring::store_nowhere", "ring::fail", "wild",
    ]  # fmt: skip
    assert f"inlined.cpp:{line_of('*at = 1')}" in str(caught.value).splitlines()[0]


def test_damaged_debug_information_gives_the_function(tmp_path: Path) -> None:
    path = build(SOURCE, tmp_path / "inlined.so", "-std=c++17", cc="g++", level="-O2")
    with Target() as target:
        program = target.load(path)
        names = program.machine.names
        names._dwarf = lambda: 1 / 0  # type: ignore[method-assign]
        ring = target.vmo("ring", 4096)
        assert {each.frame.function for each in program.entry("fill", ring, 2).record()} == {"fill"}
