"""The build hook: what a project gets with a compiler, a broken one, zig alone, and none."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = """
[build-system]
requires = ["hatchling", "Cython", "setuptools"]
build-backend = "hatchling.build"

[project]
name = "fx-loops"
version = "1.0"
requires-python = ">=3.11"

[tool.hatch.build.targets.wheel]
packages = ["python/fx_loops"]

[tool.hatch.build.targets.wheel.hooks.custom]
"""
SOURCE = '''"""A kernel."""

LOW32 = 0xFFFFFFFF


def total(values):
    """The sum of some bytes, as 32 bits."""
    found = 0
    for row in range(len(values)):
        found = (found + values[row]) & LOW32
    return found
'''
HEADER = """cimport cython
from fx_loops.types cimport octet

cdef unsigned long long LOW32

@cython.locals(found=cython.ulonglong)
cpdef unsigned long long total(const octet[::1] values) noexcept
"""
TYPES = """from fx_loops cimport deeper

ctypedef unsigned char octet
"""
BUILD = """
import sys
from hatchling import build
if sys.argv[1] == "requires":
    print(build.get_requires_for_build_wheel())
else:
    print(getattr(build, sys.argv[1])(sys.argv[2]))
"""
USE = """
import sys
sys.path.insert(0, sys.argv[1])
import fx_loops.loops as loops
print(loops.__file__.rpartition(".")[2], loops.total(bytes(range(256)) * 3))
"""
COMPILERS = ("cc", "gcc", "clang")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        any(importlib.util.find_spec(name) is None for name in ("hatchling", "Cython")),
        reason="hatchling or Cython is not installed",
    ),
    pytest.mark.skipif(
        not (ROOT / "hatch_build.py").exists(), reason="the sources of the project are not here"
    ),
]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    package = folder / "python" / "fx_loops"
    package.mkdir(parents=True)
    (folder / "pyproject.toml").write_text(PROJECT)
    shutil.copy(ROOT / "hatch_build.py", folder)
    (package / "__init__.py").touch()
    (package / "loops.py").write_text(SOURCE)
    (package / "loops.pxd").write_text(HEADER)
    (package / "types.pxd").write_text(TYPES)
    (package / "deeper.pxd").write_text("ctypedef int number\n")
    return folder


def run(project: Path, what: str, **environment: str) -> subprocess.CompletedProcess[str]:
    out = project.parent / "out"
    out.mkdir(exist_ok=True)
    removed = ("FXF_NATIVE", "FXF_SANITIZE", "CC", "LDSHARED", "CFLAGS", "LDFLAGS")
    kept = {name: value for name, value in os.environ.items() if name not in removed}
    return subprocess.run(
        [sys.executable, "-c", BUILD, what, str(out)],
        cwd=project,
        env={**kept, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def unpacked(project: Path, result: subprocess.CompletedProcess[str]) -> tuple[str, Path]:
    """The tag of the wheel that was built, and where its content is."""
    assert result.returncode == 0, result.stderr
    wheel = project.parent / "out" / result.stdout.split()[-1]
    folder = project.parent / wheel.stem
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return wheel.stem.partition("-1.0-")[2], folder


def imported(folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "FXF_NATIVE"}
    return subprocess.run(
        [sys.executable, "-c", USE, str(folder)],
        capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip


def used(folder: Path) -> tuple[str, int]:
    result = imported(folder)
    assert result.returncode == 0, result.stderr
    suffix, total = result.stdout.split()
    return suffix, int(total)


def hidden(tmp_path: Path) -> dict[str, str]:
    """An environment without any compiler: the PATH has the interpreter, and little else."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("env", "sh", "uname", "ld", "ldconfig"):
        found = shutil.which(name)
        if found:
            (folder / name).symlink_to(found)
    return {"PATH": str(folder)}


TOTAL = sum(range(256)) * 3
COMPILER = next((name for name in COMPILERS if shutil.which(name)), None)
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")


@needs_compiler
def test_a_compiler_gives_one_wheel_for_every_later_python(project: Path) -> None:
    assert "ziglang" not in run(project, "requires").stdout
    tag, folder = unpacked(project, run(project, "build_wheel", FXF_NATIVE="require"))
    assert tag.startswith("cp311-abi3-")
    assert (folder / "fx_loops" / "loops.py").exists()
    assert (folder / "fx_loops" / "loops.pxd").exists()
    suffix, total = used(folder)
    assert (suffix, total) == ("so" if os.name == "posix" else "pyd", TOTAL)
    # In a folder with the sources nothing is left behind.
    names = {path.name for path in (project / "python" / "fx_loops").iterdir()}
    assert names == {"__init__.py", "loops.py", "loops.pxd", "types.pxd", "deeper.pxd"}


@needs_compiler
def test_an_editable_install_is_compiled_in_place(project: Path) -> None:
    package = project / "python" / "fx_loops"
    assert run(project, "build_editable", FXF_NATIVE="require").returncode == 0
    assert used(package.parent) == ("so" if os.name == "posix" else "pyd", TOTAL)
    # Every file that it was built from counts: also a header that a header takes in.
    later = time.time_ns() + 10**10
    for name in ("loops.pxd", "deeper.pxd"):
        file, text = package / name, (package / name).read_text()
        file.write_text(f"{text}\n")
        os.utime(file, ns=(later, later))
        warning = imported(package.parent).stderr
        assert "StaleKernelWarning" in warning
        assert f"older than {file}:" in warning
        file.write_text(text)
    assert run(project, "build_editable", FXF_NATIVE="never").returncode == 0
    assert used(package.parent) == ("py", TOTAL)


@needs_compiler
def test_only_what_changed_is_compiled_again(project: Path) -> None:
    package = project / "python" / "fx_loops"
    (package / "other.py").write_text("def twice(n):\n    return 2 * n\n")
    (package / "other.pxd").write_text("cpdef int twice(int n) noexcept\n")

    def build() -> str:
        command = [sys.executable, str(project / "hatch_build.py")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def append(name: str) -> None:
        file = package / name
        file.write_text(f"{file.read_text()}\n")

    assert "Compiling 2 of 3 modules" in build()
    assert build() == "All 2 compiled modules are up to date\n"
    append("other.py")
    assert "Compiling 1 of 3 modules with" in (output := build())
    assert output.splitlines()[0].endswith(": fx_loops.other")
    append("deeper.pxd")  # a header that a header of the other kernel takes in
    assert build().splitlines()[0].endswith(": fx_loops.loops")
    compiled = next(package.glob("other.*.so"), None) or next(package.glob("other.*.pyd"))
    compiled.write_bytes(b"from elsewhere")
    assert build().splitlines()[0].endswith(": fx_loops.other")
    assert run(project, "build_editable", FXF_NATIVE="never").returncode == 0
    assert "Compiling 2 of 3 modules" in build()
    assert used(package.parent) == ("so" if os.name == "posix" else "pyd", TOTAL)


def test_never_is_pure(project: Path) -> None:
    assert "ziglang" not in run(project, "requires", FXF_NATIVE="never").stdout
    tag, folder = unpacked(project, run(project, "build_wheel", FXF_NATIVE="never"))
    assert tag == "py3-none-any"
    assert used(folder) == ("py", TOTAL)


@pytest.mark.skipif(os.name != "posix", reason="the compiler is a shell script")
def test_a_broken_compiler_is_said_and_gives_a_pure_wheel(project: Path, tmp_path: Path) -> None:
    broken = tmp_path / "cc"
    broken.write_text("#!/bin/sh\necho out of order >&2\nexit 3\n")
    broken.chmod(0o755)
    result = run(project, "build_wheel", CC=str(broken))
    assert "The kernels were not compiled" in result.stdout + result.stderr
    tag, folder = unpacked(project, result)
    assert tag == "py3-none-any"
    assert used(folder) == ("py", TOTAL)
    refused = run(project, "build_wheel", CC=str(broken), FXF_NATIVE="require")
    assert refused.returncode


def test_a_source_that_does_not_compile_gives_a_pure_wheel(project: Path) -> None:
    header = project / "python" / "fx_loops" / "loops.pxd"
    header.write_text("cdef class: nonsense\n")
    tag, folder = unpacked(project, run(project, "build_wheel"))
    assert tag == "py3-none-any"
    assert used(folder) == ("py", TOTAL)
    assert run(project, "build_wheel", FXF_NATIVE="require").returncode


@pytest.mark.skipif(os.name != "posix", reason="a PATH hides no compiler here")
def test_without_a_compiler_zig_is_asked_for(project: Path, tmp_path: Path) -> None:
    nothing = hidden(tmp_path)
    there, nowhere = tmp_path / "there", tmp_path / "nowhere"
    nowhere.mkdir()
    there.mkdir()
    (there / "ziglang-99.0-py3-none-any.whl").touch()
    # Where pip finds none, as without a network, the build does without.
    has_pip = importlib.util.find_spec("pip") is not None
    has_zig = importlib.util.find_spec("ziglang") is not None
    for links, asked in ((there, True), (nowhere, has_zig or not has_pip)):
        settings = {
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(links),
            "PIP_CONFIG_FILE": os.devnull,
        }
        result = run(project, "requires", **nothing, **settings)
        assert ("ziglang" in result.stdout) == asked, links
    if importlib.util.find_spec("ziglang") is None:
        # As where there is no network either.
        tag, folder = unpacked(project, run(project, "build_wheel", **nothing))
        assert tag == "py3-none-any"
        assert used(folder) == ("py", TOTAL)
        assert run(project, "build_wheel", FXF_NATIVE="require", **nothing).returncode
    else:
        result = run(project, "build_wheel", FXF_NATIVE="require", **nothing)
        tag, folder = unpacked(project, result)
        assert tag.startswith("cp311-abi3-")
        assert used(folder)[1] == TOTAL


@needs_compiler
def test_the_example_of_the_documentation_compiles(project: Path) -> None:
    text = (ROOT / "docs" / "kernels.md").read_text("utf-8")
    package = project / "python" / "fx_loops"
    for name in ("tally.py", "tally.pxd", "rules.py"):
        block = re.search(rf"^# {re.escape(name)}\n.*?(?=^```$)", text, re.MULTILINE | re.DOTALL)
        assert block is not None
        (package / name).write_text(block[0])
    _, folder = unpacked(project, run(project, "build_wheel", FXF_NATIVE="require"))
    used_tally = """
import sys
sys.path.insert(0, sys.argv[1])
from fx_loops.tally import Tally
from fxframework.kernels.notes import Notes
notes = Notes(8, 2)
tally = Tally(memoryview(bytes(200)), notes)
assert (tally.run(), tally.counts[0], tally.pos) == (200, 200, 200)
tally = Tally(memoryview(bytes(range(256))), notes)
tally.run()
assert notes.findings.tolist() == [7, 128, -1, 128, 7, 129, -1, 129], notes.findings
assert notes.count(7) == 128
"""
    result = subprocess.run(
        [sys.executable, "-c", used_tally, str(folder)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr


def test_a_wrong_wish_is_refused(project: Path) -> None:
    result = run(project, "build_wheel", FXF_NATIVE="perhaps")
    assert result.returncode
    assert "FXF_NATIVE is 'perhaps'; it can be 'never' or 'require'" in result.stderr
