"""What no program may do is an error with the place, never a crash of Python."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fx_emulator.errors import Crash
from fx_emulator.faults import BitFlip, CrashAfter, TornWrite
from fx_emulator.memory import Memory
from fx_emulator.native import BudgetError, NativeError, NativeProgram
from fx_emulator.target import Target

from ...cases import cases
from .building import BUILDS, SOURCES, build
from .conftest import Builder

FAULTS = SOURCES / "faults.c"


@pytest.fixture(params=BUILDS, ids=["-".join(each) for each in BUILDS])
def program(request: pytest.FixtureRequest, built: Builder, target: Target) -> NativeProgram:
    cc, level = request.param
    return target.load(built(FAULTS, cc=cc, level=level))


def line_of(text: str) -> int:
    lines = FAULTS.read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


@pytest.mark.parametrize(
    ("function", "what"),
    [
        ("wild_store", "store into unmapped memory of 4 bytes at 0x1234"),
        ("wild_load", "read of unmapped memory of 4 bytes at 0xdead0000"),
        ("store_into_code", "store into read-only memory of 1 bytes"),
        ("jump_into_data", "jump into memory that is not executable"),
        ("jump_nowhere", "jump into unmapped memory at 0x77770000"),
        ("trap", "UD2"),
        ("breakpoint", "INT3"),
        ("avx512", "the emulated CPU has no AVX-512; build with -march=x86-64"),
        ("avx2", "the emulated CPU has no AVX; build with -march=x86-64"),
        ("draw", "'rdrand rax': the emulated CPU has no RDRAND and RDSEED"),
        ("draw_word", "'rdseed r9w': the emulated CPU has no RDRAND and RDSEED"),
        ("privileged", "the target has no Linux"),
        ("halt", "HLT, a privileged instruction"),
        ("call_abort", r"abort\(\) was called"),
        ("free_twice", "freed twice"),
    ],
)
def test_the_error_names_what_and_where(program: NativeProgram, function: str, what: str) -> None:
    with pytest.raises(NativeError, match=what) as caught:
        program.call(function)
    error = caught.value
    assert error.registers["rip"]
    assert error.thread == "main"
    # A jump is where it leads to; who jumped, and who called a function of the target, is next.
    places = [each.place for each in error.frames[:2]]
    assert any(each.startswith("faults.c:") for each in places), str(error)
    assert program.call("divide", 42, 6) == 7


def test_lines_are_exact(program: NativeProgram) -> None:
    with pytest.raises(NativeError) as caught:
        program.call("wild_store")
    assert caught.value.place == f"faults.c:{line_of('void wild_store')}"
    assert caught.value.function == "wild_store"


def test_backtraces_name_the_callers(program: NativeProgram) -> None:
    with pytest.raises(NativeError) as caught:
        program.call("outer")
    names = [each.function for each in caught.value.frames]
    # What a compiler inlines has no frame of its own.
    assert names[-1] == "outer"
    assert names == [name for name in ("inner", "middle", "outer") if name in names]
    assert {each.file for each in caught.value.frames} == {"faults.c"}


def test_backtraces_without_frame_pointers(built: Builder, target: Target) -> None:
    options = ("-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-fno-inline")
    program = target.load(built(FAULTS, *options, cc="gcc", level="-O2"))
    with pytest.raises(NativeError) as caught:
        program.call("outer")
    assert [each.function for each in caught.value.frames] == ["inner", "middle", "outer"]


def test_arguments_of_division(program: NativeProgram) -> None:
    with pytest.raises(NativeError, match="division by zero"):
        program.call("divide", 1, 0)


def test_a_failed_assertion_is_told_in_its_words(program: NativeProgram) -> None:
    program.call("fail", 42)
    with pytest.raises(
        NativeError, match=r"assertion failed: n == 42 \(faults\.c:\d+, in .*fail.*\)"
    ):
        program.call("fail", 1)


def test_an_endless_loop_ends_at_the_budget(program: NativeProgram) -> None:
    with pytest.raises(BudgetError, match="no end within the budget") as caught:
        program.call("endless", budget=10_000)
    assert caught.value.place == f"faults.c:{line_of('void endless(')}"


def test_endless_recursion_leaves_the_stack(program: NativeProgram) -> None:
    with pytest.raises(NativeError, match="unmapped memory"):
        program.call("endless_recursion", 0)


@pytest.mark.parametrize("word", [8, 511])
def test_a_store_beyond_a_memory_is_found(program: NativeProgram, word: int) -> None:
    memory = Memory.anonymous(64)
    program.call("overrun", memory, 7)
    with pytest.raises(NativeError, match=f"at byte {8 * word} of a memory of 64 bytes"):
        program.call("overrun", memory, word)
    with pytest.raises(NativeError, match="unmapped"):
        program.call("overrun", memory, 512)
    with pytest.raises(NativeError, match="unmapped"):
        program.call("overrun", memory, -1)


def test_code_of_any_bytes_ends_with_an_error_or_a_result(tmp_path: Path) -> None:
    """In another process: an engine that crashes takes Python with it.

    Eight functions at a time, as loading a program takes ten times as long as a call.
    """
    script = tmp_path / "run.py"
    script.write_text(
        "import random, re, sys\n"
        "from pathlib import Path\n"
        "from fx_emulator.native import NativeError\n"
        "from fx_emulator.target import Target\n"
        "data = Path(sys.argv[1]).read_bytes()\n"
        "mark = b'\\x90' * 64\n"
        "places = [found.start() for found in re.finditer(re.escape(mark), data)]\n"
        "ends = set()\n"
        "for seed in range(0, 400, len(places)):\n"
        "    fuzzed = bytearray(data)\n"
        "    for number, place in enumerate(places):\n"
        "        chance = random.Random(seed + number)\n"
        "        rare = b'\\x0f\\xf3\\x48\\xc5\\x62\\xcd\\xff'\n"
        "        code = bytes(chance.choice((*rare, *chance.randbytes(14))) for _ in range(64))\n"
        "        fuzzed[place : place + 64] = code\n"
        "    path = Path(sys.argv[1]).with_name('fuzzed.so')\n"
        "    path.write_bytes(fuzzed)\n"
        "    with Target() as target:\n"
        "        program = target.load(path)\n"
        "        for number in range(len(places)):\n"
        "            try:\n"
        "                program.call(f'any{number}', 1, 2, budget=2000)\n"
        "                ends.add('returned')\n"
        "            except NativeError as error:\n"
        "                ends.add(str(error)[13:40])\n"
        "print(len(ends))\n"
    )
    source = tmp_path / "a.c"
    nops = '__asm__ volatile(".fill 64, 1, 0x90");'
    source.write_text("".join(f"void any{number}(void) {{ {nops} }}\n" for number in range(8)))
    path = build(source, tmp_path / "a.so")
    command = [sys.executable, str(script), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 5


# --- Faults of the target -----------------------------------------------------------------------


def test_faults_of_a_memory_reach_native_stores(built: Builder, target: Target) -> None:
    program = target.load(built(FAULTS, cc="gcc", level="-O2"))
    memory = Memory.anonymous(64, log=True)
    memory.faults = [BitFlip(bit=4, store=1), TornWrite(3, 1)]
    memory.store_u64(24, 0xFF00)
    program.call("overrun", memory, 0)
    assert memory.load_u64(0) == 1 | 1 << 4
    program.call("overrun", memory, 1)
    assert memory.stores == 3
    with pytest.raises(Crash, match="within store 3"):
        program.call("overrun", memory, 3)
    assert memory.load_u64(24) == 0xFF01
    with pytest.raises(Crash):
        program.call("overrun", memory, 4)
    assert memory.load_u64(32) == 0
    assert memory.log is not None
    assert memory.log.offsets.tolist() == [24, 0, 8]


def test_a_crash_stops_a_thread_of_the_kernel(built: Builder, target: Target) -> None:
    program = target.load(built(FAULTS, cc="clang", level="-O2"))
    vmo = target.vmo("memory", 4096)
    vmo.memory.faults = [CrashAfter(0)]
    program.spawn("overrun", vmo, 1)
    with pytest.raises(Crash):
        target.run()
    assert vmo.load_u64(8) == 0


def test_errors_of_functions_of_the_test_are_raised(tmp_path: Path, target: Target) -> None:
    source = tmp_path / "a.c"
    source.write_text("long hook(long, long); long f(long n) { return hook(n, 2) + 1; }\n")
    path = build(source, tmp_path / "a.so")

    def hook(a: int, b: int) -> int:
        return {5: a * b}[a]

    program = target.load(path, symbols={"hook": hook})
    assert program.call("f", 5) == 11
    with pytest.raises(KeyError):
        program.call("f", 6)
    assert program.call("f", 5) == 11


# --- Without the extra --------------------------------------------------------------------------


@cases("package", ["unicorn", "capstone"])
def test_without_the_extra_the_core_works_and_says_what_is_missing(
    built: Builder, package: str
) -> None:
    path = built(FAULTS, cc="gcc", level="-O2")
    script = (
        f"import sys; sys.modules[{package!r}] = None\n"
        "import fxframework, fx_emulator.plugin, fx_emulator.steps\n"
        "from fx_emulator.target import Target\n"
        "import fx_emulator.native\n"
        "target = Target(); target.vmo('a', 4096)\n"
        "try:\n"
        f"    target.load({str(path)!r})\n"
        "except fx_emulator.native.MissingPackageError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert f"a native program needs {package}, which is not installed" in done.stdout
    assert "pip install" in done.stdout
