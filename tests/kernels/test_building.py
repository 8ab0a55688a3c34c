"""The build hook: what a project gets with a compiler, a broken one, zig alone, and none."""

from __future__ import annotations

import importlib.machinery
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

from fxframework.kernels import building

from ..install.environments import COMPILERS, quick_compiler

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

from __future__ import annotations

from typing import final

from fx_loops.deeper import LOW
from fx_loops.types import Bounds
from fxframework.kernels.annotations import Bytes, i64, public

LOW32 = LOW << 16 | LOW


@final
class Sum:
    """The sum of some bytes, as 32 bits."""

    values: Bytes
    bounds: Bounds

    def __init__(self, values):
        self.values = memoryview(values)
        self.bounds = Bounds(0, len(values))

    @public
    def total(self) -> i64:
        found = 0
        for row in range(self.bounds.first, self.bounds.last):
            found = (found + self.values[row]) & LOW32
        return found
'''
TYPES = """from __future__ import annotations

from typing import final

from fxframework.kernels.annotations import i64


@final
class Bounds:
    first: i64
    last: i64

    def __init__(self, first: int, last: int) -> None:
        self.first = first
        self.last = last
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
print(loops.__file__.rpartition(".")[2], loops.Sum(bytes(range(256)) * 3).total())
"""

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
    (package / "types.py").write_text(TYPES)
    (package / "deeper.py").write_text("LOW = 0xFFFF\n")
    return folder


@pytest.fixture
def quick(tmp_path: Path) -> dict[str, str]:
    """The variable with a compiler that does not optimise, where what it makes is not the point."""
    return quick_compiler(tmp_path)


def environment_for(project: Path, environment: dict[str, str]) -> dict[str, str]:
    """The environment of a build, whose temporary files have a folder of their own."""
    temporary = project.parent / "temporary"
    temporary.mkdir(exist_ok=True)
    removed = (
        "FXF_NATIVE",
        "FXF_SANITIZE",
        "CC",
        "LDSHARED",
        "CFLAGS",
        "LDFLAGS",
        "PYTHONDONTWRITEBYTECODE",
    )
    kept = {name: value for name, value in os.environ.items() if name not in removed}
    return {**kept, "TMPDIR": str(temporary), **environment}


def run(project: Path, what: str, **environment: str) -> subprocess.CompletedProcess[str]:
    out = project.parent / "out"
    out.mkdir(exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-c", BUILD, what, str(out)],
        cwd=project,
        env=environment_for(project, environment),
        capture_output=True,
        text=True,
        check=False,
    )
    assert not remains(project)
    return done


def remains(project: Path) -> list[Path]:
    """What a build left among the temporary files."""
    return list((project.parent / "temporary").glob("fxf-kernels-*"))


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
    """Takes seconds: the one wheel that is compiled as wheels are, with Cython and optimised."""
    assert "ziglang" not in run(project, "requires").stdout
    result = run(project, "build_wheel", FXF_NATIVE="require")
    tag, folder = unpacked(project, result)
    assert tag.startswith("cp311-abi3-")
    assert (folder / "fx_loops" / "loops.py").exists()
    assert (folder / "fx_loops" / "loops.pxd").exists()
    suffix, total = used(folder)
    assert (suffix, total) == ("so" if os.name == "posix" else "pyd", TOTAL)
    # In a folder with the sources nothing is left behind.
    names = {path.name for path in (project / "python" / "fx_loops").iterdir()}
    assert names == {"__init__.py", "loops.py", "types.py", "deeper.py"}
    # Each module is named, with the time that it takes.
    assert re.search(r"fx_loops\.loops \d+\.\d s", result.stdout + result.stderr)


def test_what_python_calls_is_compiled_for_size_and_loops_are_not(project: Path) -> None:
    """Takes seconds: what Cython writes is looked through, which changes with its versions."""
    stage = project / "stage"
    sources = building.Sources([project / "python" / "fx_loops"])
    files = sources.stage(stage)
    with building.within(stage):
        building.translated(
            {name: file.relative_to(stage) for name, file in files.items()}, sources.loops
        )
    text = files["fx_loops.loops"].with_suffix(".c").read_text()
    functions = re.findall(r"^static (.*\b__pyx_(pw|pf|f)_\w*total\w*)\(", text, re.MULTILINE)
    assert {kind for _, kind in functions} == {"pw", "pf", "f"}
    for declared, kind in functions:
        assert declared.startswith("FXF_GLUE ") == (kind != "f"), declared


@needs_compiler
def test_an_editable_install_is_compiled_in_place(project: Path, quick: dict[str, str]) -> None:
    """Takes seconds: two builds, as whoever edits a kernel has them."""
    package = project / "python" / "fx_loops"
    (package / "types.py").write_text(TYPES.replace("= first", "= 1 * first"))
    assert run(project, "build_editable", FXF_NATIVE="require", **quick).returncode == 0
    # After an edit, by hand.
    (package / "types.py").write_text(TYPES)
    done = subprocess.run(
        [sys.executable, str(project / "hatch_build.py")],
        capture_output=True, text=True, check=False, env=environment_for(project, quick),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (first, *_) = done.stdout.splitlines()
    assert first.startswith("Compiling 1 of 3 modules with")
    assert first.endswith(": fx_loops.types")
    assert used(package.parent) == ("so" if os.name == "posix" else "pyd", TOTAL)
    # Every file that it was built from counts: what it uses of another kernel, and constants.
    later = time.time_ns() + 10**10
    for name in ("loops.py", "types.py", "deeper.py"):
        file, text = package / name, (package / name).read_text()
        file.write_text(f"{text}\nMORE = 1\n")
        os.utime(file, ns=(later, later))
        warning = imported(package.parent).stderr
        assert "StaleKernelWarning" in warning
        assert f"older than {file}:" in warning
        file.write_text(text)
    assert run(project, "build_editable", FXF_NATIVE="never").returncode == 0
    assert used(package.parent) == ("py", TOTAL)


def test_only_what_changed_is_compiled_again(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which modules are chosen; the test before this one compiles after an edit in earnest."""
    package = project / "python" / "fx_loops"
    (package / "other.py").write_text(TYPES)
    chosen: list[str] = []

    def compile_nothing(
        sources: building.Sources, work: Path, say: object, names: list[str]
    ) -> dict[str, Path]:
        chosen.extend(names)
        files = {name: work / f"{name.rpartition('.')[2]}.abi3.so" for name in names}
        for name, file in files.items():
            file.write_text(name)
        return files

    monkeypatch.setattr(building, "compile_kernels", compile_nothing)

    def build() -> list[str]:
        chosen.clear()
        said: list[str] = []
        building.update_in_place(project, [package], tmp_path, said.append)
        assert bool(chosen) != (said == ["All 3 compiled modules are up to date"])
        return [name.removeprefix("fx_loops.") for name in chosen]

    def edit(name: str, before: str, after: str) -> None:
        text = (package / name).read_text()
        assert before in text
        (package / name).write_text(text.replace(before, after))

    assert build() == ["loops", "other", "types"]
    assert build() == []
    edit("other.py", "= first", "= 1 * first")
    assert build() == ["other"]
    edit("types.py", "= first", "= 1 * first")  # which the kernel that uses it does not know
    assert build() == ["types"]
    edit("types.py", "    last: i64", "    last: i64\n    more: i64")
    edit("types.py", "= last", "= last\n        self.more = 0")
    assert build() == ["loops", "types"]
    edit("deeper.py", "0xFFFF", "0xFFFE + 1")  # the same number: but the file is another
    assert build() == ["loops"]
    (package / "other.abi3.so").write_bytes(b"from elsewhere")
    assert build() == ["other"]
    (package / "other.py").rename(package / "renamed.py")
    assert build() == ["renamed"]
    assert not [*package.glob("other.*")]
    building.remove_compiled([package])
    assert not [*package.glob("*.so")]
    assert build() == ["loops", "renamed", "types"]


def test_never_is_pure(project: Path) -> None:
    assert "ziglang" not in run(project, "requires", FXF_NATIVE="never").stdout
    tag, folder = unpacked(project, run(project, "build_wheel", FXF_NATIVE="never"))
    assert tag == "py3-none-any"
    assert used(folder) == ("py", TOTAL)


@pytest.mark.skipif(os.name != "posix", reason="the compiler is a shell script")
def test_a_broken_compiler_is_said_and_gives_a_pure_wheel(project: Path, tmp_path: Path) -> None:
    """Takes seconds: Cython comes before the compiler that fails."""
    broken = tmp_path / "cc"
    broken.write_text("#!/bin/sh\necho out of order >&2\nexit 3\n")
    broken.chmod(0o755)
    result = run(project, "build_wheel", CC=str(broken))
    assert "The kernels were not compiled" in result.stdout + result.stderr
    tag, folder = unpacked(project, result)
    assert tag == "py3-none-any"
    assert used(folder) == ("py", TOTAL)
    (project / "python" / "fx_loops" / "loops.py").unlink()  # one kernel is enough, and sooner done
    refused = run(project, "build_wheel", CC=str(broken), FXF_NATIVE="require")
    assert refused.returncode


def test_a_source_that_does_not_compile_gives_a_pure_wheel(
    project: Path, quick: dict[str, str]
) -> None:
    """Takes seconds: Cython must come as far as the mistake."""
    source = project / "python" / "fx_loops" / "loops.py"
    text = source.read_text()
    # A Python object without the interpreter's lock.
    source.write_text(text.replace("found = 0\n", "found = 0\n        str(found)\n"))
    tag, folder = unpacked(project, run(project, "build_wheel", **quick))
    assert tag == "py3-none-any"
    assert used(folder) == ("py", TOTAL)


def test_a_declaration_that_is_missing_is_an_error(project: Path) -> None:
    source = project / "python" / "fx_loops" / "loops.py"
    source.write_text(source.read_text().replace("    bounds: Bounds\n", ""))
    result = run(project, "build_wheel")
    assert result.returncode
    assert f"{source}:22: Sum.bounds is not declared: annotate it in the class" in result.stderr


@pytest.mark.skipif(os.name != "posix", reason="a PATH hides no compiler here")
def test_without_a_compiler_zig_is_asked_for(project: Path, tmp_path: Path) -> None:
    nothing = hidden(tmp_path)
    there, nowhere = tmp_path / "there", tmp_path / "nowhere"
    nowhere.mkdir()
    there.mkdir()
    (there / "ziglang-99.0-py3-none-any.whl").touch()
    # Where pip finds none, as without a network, the build does without.
    # Looked for on the path alone: the finders that setuptools installs warn.
    has_pip = importlib.machinery.PathFinder.find_spec("pip") is not None
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
def test_the_example_of_the_documentation_compiles(project: Path, quick: dict[str, str]) -> None:
    """Takes seconds: only compiling shows that what the page prints compiles."""
    text = (ROOT / "docs" / "kernels.md").read_text("utf-8")
    package = project / "python" / "fx_loops"
    for name in ("tally.py", "rules.py"):
        block = re.search(rf"^# {re.escape(name)}\n.*?(?=^```$)", text, re.MULTILINE | re.DOTALL)
        assert block is not None
        (package / name).write_text(block[0])
    for name in ("loops.py", "types.py"):
        (package / name).unlink()
    _, folder = unpacked(project, run(project, "build_wheel", FXF_NATIVE="require", **quick))
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


@pytest.mark.skipif(os.name != "posix", reason="the compiler is a shell script")
def test_a_build_that_is_terminated_leaves_nothing_behind(project: Path, tmp_path: Path) -> None:
    slow = tmp_path / "cc"
    slow.write_text("#!/bin/sh\ntouch begun\nsleep 1\nexit 3\n")
    slow.chmod(0o755)
    with subprocess.Popen(
        [sys.executable, "-c", BUILD, "build_wheel", str(tmp_path)],
        cwd=project, env=environment_for(project, {"CC": str(slow)}), stderr=subprocess.DEVNULL,
    ) as build:  # fmt: skip
        while not any(list(folder.rglob("begun")) for folder in remains(project)):
            assert build.poll() is None
            time.sleep(0.05)
        build.terminate()
    assert build.returncode
    assert not remains(project)
    assert not list(tmp_path.glob("*.whl"))


def test_a_wrong_wish_is_refused(project: Path) -> None:
    result = run(project, "build_wheel", FXF_NATIVE="perhaps")
    assert result.returncode
    assert "FXF_NATIVE is 'perhaps'; it can be 'never' or 'require'" in result.stderr
