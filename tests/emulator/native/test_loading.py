"""Object files of all kinds, by gcc and clang, come to life; others are refused with a reason."""

from __future__ import annotations

import contextlib
import struct
import subprocess
from pathlib import Path

import pytest

from fx_emulator.memory import Memory
from fx_emulator.native import LoadError, NativeError, NativeProgram
from fx_emulator.target import Target

from .building import BUILDS, SOURCES, build
from .conftest import Builder

KINDS = ("shared", "object", "static")
FEATURES = SOURCES / "features.c"


@pytest.fixture(
    scope="module",
    params=[(*how, kind) for how in BUILDS for kind in KINDS],
    ids="-".join,
)
def program(
    request: pytest.FixtureRequest,
    built: Builder,
    tmp_path_factory: pytest.TempPathFactory,
) -> NativeProgram:
    cc, level, kind = request.param
    options = ["-fno-builtin"] if level == "-O0" else []
    if kind != "static":
        return Target(cpus=2).load(built(FEATURES, *options, cc=cc, level=level, kind=kind))
    # Nothing is undefined in an executable, so that it brings what it calls.
    out = tmp_path_factory.mktemp("static") / "program"
    sources: list[str | Path] = [FEATURES, SOURCES / "start.c", SOURCES / "tiny_libc.c"]
    build(sources, out, *options, "-fno-builtin", cc=cc, level=level, kind=kind)
    return Target(cpus=2).load(out)


def test_initialisers_run_and_pointers_are_relocated(program: NativeProgram) -> None:
    assert program.call("has_started") == 42
    assert program.call("calculate", 0, 5, 3) == 8
    assert program.call("calculate", 1, 5, 3) == 2
    assert [program.call("length", each) for each in range(3)] == [4, 3, 3]


def test_variables_of_threads_are_each_threads_own(program: NativeProgram) -> None:
    first = program.call("count")
    assert program.call("count") == first + 11
    other = program.thread("other")
    assert program.call("count", thread=other) == 17


def test_ifuncs_are_resolved(program: NativeProgram) -> None:
    assert program.call("call_chosen") == 12


def test_uninitialised_variables_are_zero_and_have_an_address(program: NativeProgram) -> None:
    at = program.call("address_of_common")
    assert program.read(at, 4) == bytes(4)
    assert at == program.symbols["common_value"]


def test_arguments_beyond_six_are_on_the_stack(program: NativeProgram) -> None:
    assert program.call("many", *range(1, 9)) == sum(n * n for n in range(1, 9))


def test_counters_are_those_of_the_emulated_cpu(program: NativeProgram) -> None:
    target = program.target
    target.clock.advance(1_000_000)
    first, after = target.processor.cpus
    before = first.rdtsc()
    assert before <= program.call("ticks") < first.rdtsc() < before + 1000
    out = Memory.anonymous(8)
    second = program.thread("second", cpu=1)
    before = after.rdtsc()
    assert program.call("ticks_and_cpu", out, thread=second) == 1
    assert before <= out.load_u64(0) < after.rdtsc() < before + 1000
    assert program.call("cpu_number", thread=second) == 1
    assert program.call("cpu_number") == 0


def test_floating_point(program: NativeProgram) -> None:
    assert program.call("halved") == 15


def test_memory_functions(program: NativeProgram) -> None:
    memory = Memory.anonymous(64)
    at = program.address(memory)
    program.call("fill", memory, 0x5A, 21)
    assert memory.read(0, 24) == b"\x5a" * 21 + bytes(3)
    program.call("copy", at, b"0123456789abcdefghij", 19)
    assert memory.read(0, 21) == b"0123456789abcdefghi" + b"\x5a" * 2
    program.call("move", at + 3, at, 12)
    assert memory.read(0, 15) == b"0120123456789ab"
    program.call("move", at, at + 3, 12)
    assert memory.read(0, 12) == b"0123456789ab"


def test_the_library_of_the_target(program: NativeProgram) -> None:
    if "tiny_libc" in program.symbols:
        pytest.skip("this program brings its own")
    assert program.call("heap", 100) == 4950
    out = Memory.anonymous(128)
    wanted = b"text -5 00042 0xff -9000000000 ab  | q % xy 77      006 +3"
    assert program.call("format", out, 128) == len(wanted)
    assert out.read(0, len(wanted) + 1) == wanted + b"\0"
    assert program.call("format", out, 5) == len(wanted)
    assert out.read(0, 6) == b"text\0-"


def test_functions_have_lines(program: NativeProgram) -> None:
    lines = FEATURES.read_text().splitlines()
    for name, text in (("count", "int count(void)"), ("many", "int many("), ("heap", "long heap(")):
        frame = program.machine.names.frame(program.symbols[name])
        wanted = next(number for number, line in enumerate(lines, 1) if text in line)
        assert (frame.function, frame.file, frame.line) == (name, "features.c", wanted)


def test_a_package_gives_functions(
    tmp_path: Path, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fx_emulator.native import known_calls

    class Point:
        name = "mine"

        @staticmethod
        def load() -> dict[str, object]:
            return {"board_led": lambda number: number * 2}

    known_calls.known_calls.cache_clear()
    monkeypatch.setattr(known_calls, "entry_points", lambda group: [Point])
    source = tmp_path / "a.c"
    source.write_text("int board_led(int); int f(void) { return board_led(21); }\n")
    assert target.load(build(source, tmp_path / "a.so")).call("f") == 42
    known_calls.known_calls.cache_clear()


# --- What is refused -----------------------------------------------------------------------------


def header(machine: int = 62, kind: int = 3, bits: int = 2) -> bytes:
    ident = b"\x7fELF" + bytes([bits, 1, 1]) + bytes(9)
    return ident + struct.pack("<HHIQQQIHHHHHH", kind, machine, 1, 0, 0, 0, 0, 64, 56, 0, 64, 0, 0)


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"", "not an ELF file"),
        (b"!<arch>\n", "link an archive first"),
        (header(machine=183), "EM_AARCH64"),
        (header(bits=1), "x86-64"),
        (header(kind=4), "ET_CORE"),
        (header()[:40], "damaged ELF file"),
        (header(), "no segment"),
    ],
    ids=["empty", "archive", "arm", "bits", "core", "cut", "bare"],
)
def test_files_that_are_refused(tmp_path: Path, target: Target, data: bytes, what: str) -> None:
    path = tmp_path / "program"
    path.write_bytes(data)
    with pytest.raises(LoadError, match=what):
        target.load(path)


def test_a_file_that_is_missing(target: Target) -> None:
    with pytest.raises(LoadError, match=r"nowhere\.so: cannot be read"):
        target.load("nowhere.so")


def test_all_unresolved_symbols_are_named_at_once(tmp_path: Path, target: Target) -> None:
    source = tmp_path / "a.c"
    source.write_text(
        "int first(void); int zx_frob(void); extern int second; int strlem(char *);\n"
        "int f(void) { return first() + zx_frob() + second + strlem(0); }\n"
    )
    path = build(source, tmp_path / "a.so")
    with pytest.raises(LoadError) as caught:
        target.load(path)
    message = str(caught.value)
    assert "4 unresolved symbols" in message
    for name in ("first", "zx_frob", "second", "did you mean strlen"):
        assert name in message
    given = {"first": lambda: 1, "zx_frob": lambda: 20, "second": b"\x2c\x01\0\0"}
    program = target.load(path, symbols=given | {"strlem": lambda _at: 4000})
    assert program.call("f") == 4321


def test_unknown_relocations_are_named(tmp_path: Path, target: Target) -> None:
    source = tmp_path / "a.c"
    source.write_text("extern int x; int f(void) { return x; }\n")
    path = build(source, tmp_path / "a.o", kind="object")
    data = bytearray(path.read_bytes())
    from elftools.elf.elffile import ELFFile

    with path.open("rb") as file:
        section = ELFFile(file).get_section_by_name(".rela.text")
        at = section["sh_offset"] + 8
    data[at : at + 4] = (200).to_bytes(4, "little")
    path.write_bytes(data)
    with pytest.raises(LoadError, match="unknown relocations: type 200"):
        target.load(path, symbols={"x": bytes(4)})


def test_symbols_that_nobody_asks_for_are_refused(built: Builder, target: Target) -> None:
    with pytest.raises(LoadError, match="has no undefined symbol 'frob'"):
        target.load(built(FEATURES, cc="gcc", level="-O2"), symbols={"frob": lambda: 0})


def test_a_dynamic_executable_is_refused(tmp_path: Path, target: Target) -> None:
    source = tmp_path / "a.c"
    source.write_text("int main(void) { return 0; }\n")
    path = tmp_path / "a"
    build(source, tmp_path / "a.o", kind="object")
    subprocess.run(["gcc", "-o", path, source], check=True)
    with pytest.raises(LoadError, match="link it with -static"):
        target.load(path)


def test_unknown_names_are_answered_with_near_ones(built: Builder, target: Target) -> None:
    program = target.load(built(FEATURES, cc="gcc", level="-O2"))
    with pytest.raises(NativeError, match="did you mean 'calculate'"):
        program.call("calculat")


@pytest.mark.parametrize("change", ["flipped", "cut"])
def test_damaged_files_give_coded_errors(
    built: Builder, target: Target, tmp_path: Path, change: str
) -> None:
    data = built(FEATURES, cc="gcc", level="-O2", kind="object").read_bytes()
    path = tmp_path / "damaged.o"
    for at in range(0, len(data), len(data) // 40):
        damaged = bytearray(data)
        damaged[at] ^= 0xFF
        path.write_bytes(damaged if change == "flipped" else damaged[:at])
        with contextlib.suppress(NativeError):
            target.load(path).close()
