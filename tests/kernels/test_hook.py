"""The build hook: a project of two loops with a compiler, and with none."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from ..install.environments import COMPILERS, quick_compiler

ROOT = Path(__file__).parents[2]
PROJECT = """
[build-system]
requires = ["hatchling", "Cython", "setuptools"]
build-backend = "hatchling.build"

[project]
name = "fx-loops"
version = "1.0"

[tool.hatch.build.targets.wheel]
packages = ["python/fxframework", "another/fx_another"]

[tool.hatch.build.targets.wheel.hooks.custom]
"""
SOURCES = {
    "__init__.py": "",
    "kernels/__init__.py": "",
    "bounds.pxd": "cdef class Bounds:\n    cdef readonly long first, last\n",
    "bounds.pyx": '''cdef class Bounds:
    """A range of rows."""

    def __init__(self, first, last):
        self.first = first
        self.last = last
''',
    "loops.pyx": '''from fxframework.bounds cimport Bounds


def total(bytes values, Bounds bounds):
    """Return the sum of some bytes."""
    cdef const unsigned char *first = values
    cdef long found = 0
    cdef long row
    for row in range(bounds.first, bounds.last):
        found += first[row]
    return found
''',
}
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
from fxframework import bounds, loops
print(loops.total(bytes(range(256)), bounds.Bounds(1, 4)))
"""
REMOVED = ("FXF_SANITIZE", "CC", "LDSHARED", "CFLAGS", "LDFLAGS", "PYTHONDONTWRITEBYTECODE")

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
needs_compiler = pytest.mark.skipif(
    not any(map(shutil.which, COMPILERS)), reason="there is no C compiler"
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    for name, text in SOURCES.items():
        path = folder / "python" / "fxframework" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    # Hatchling sorts packages: this one comes before the host.
    (folder / "another" / "fx_another").mkdir(parents=True)
    (folder / "another" / "fx_another" / "__init__.py").touch()
    (folder / "pyproject.toml").write_text(PROJECT)
    shutil.copy(ROOT / "hatch_build.py", folder)
    return folder


def python(
    project: Path, *arguments: str | Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name not in REMOVED}
    return subprocess.run(
        [sys.executable, *arguments], cwd=project, env={**kept, **environment},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def used(folder: Path) -> str:
    done = python(folder, "-c", USE, folder)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@needs_compiler
def test_one_wheel_is_for_every_later_python(project: Path, tmp_path: Path) -> None:
    """Takes seconds: it is compiled as wheels are."""
    assert "ziglang" not in python(project, "-c", BUILD, "requires").stdout
    done = python(project, "-c", BUILD, "build_wheel", tmp_path)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("fx_loops-1.0-cp311-abi3-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "wheel")
    package = tmp_path / "wheel" / "fxframework"
    assert {"bounds.pxd", "bounds.pyx", "loops.pyx"} <= {path.name for path in package.iterdir()}
    assert used(tmp_path / "wheel") == "6"
    # Nothing is left in a folder with the sources.
    assert not [path for path in project.rglob("*") if path.suffix in {".c", ".so", ".pyd"}]


@needs_compiler
def test_only_what_was_edited_is_compiled_in_place_again(project: Path, tmp_path: Path) -> None:
    """Takes seconds: it is compiled three times, without optimising."""
    quick = quick_compiler(tmp_path)
    done = python(project, "-c", BUILD, "build_editable", tmp_path, **quick)
    assert done.returncode == 0, done.stderr
    package = project / "python" / "fxframework"
    assert used(package.parent) == "6"

    def compiled() -> set[str]:
        before = {path: path.stat().st_mtime_ns for path in package.rglob("*.abi3.so")}
        done = python(project, "hatch_build.py", **quick)
        assert done.returncode == 0, done.stderr
        return {
            path.name.partition(".")[0] for path, time in before.items()
            if path.stat().st_mtime_ns != time
        }  # fmt: skip

    assert compiled() == set()
    loops = package / "loops.pyx"
    loops.write_text(loops.read_text().replace("found = 0", "found = 100"))
    assert compiled() == {"loops"}
    assert used(package.parent) == "106"
    header = package / "bounds.pxd"
    header.write_text(header.read_text() + "    cdef long more\n")
    assert compiled() == {"bounds", "loops"}


def hidden(tmp_path: Path) -> dict[str, str]:
    """An environment without any compiler: the PATH has the interpreter, and little else."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("env", "sh", "uname", "ld", "ldconfig"):
        if found := shutil.which(name):
            (folder / name).symlink_to(found)
    return {"PATH": str(folder)}


@pytest.mark.skipif(os.name != "posix", reason="a PATH hides no compiler here")
def test_without_a_compiler_zig_is_asked_for(project: Path, tmp_path: Path) -> None:
    nothing = hidden(tmp_path)
    there, nowhere = tmp_path / "there", tmp_path / "nowhere"
    nowhere.mkdir()
    there.mkdir()
    (there / "ziglang-99.0-py3-none-any.whl").touch()
    # Looked for on the path alone: the finders that setuptools installs warn.
    has_pip = importlib.machinery.PathFinder.find_spec("pip") is not None
    for links, asked in ((there, True), (nowhere, not has_pip)):
        done = python(project, "-c", BUILD, "requires", PIP_NO_INDEX="1", PIP_FIND_LINKS=str(links),
                      PIP_CONFIG_FILE=os.devnull, **nothing)  # fmt: skip
        assert ("ziglang" in done.stdout) == asked, links


@pytest.mark.skipif(os.name != "posix", reason="a PATH hides no compiler here")
@pytest.mark.skipif(importlib.util.find_spec("ziglang") is not None, reason="there is ziglang")
@pytest.mark.parametrize("what", ["build_wheel", "build_editable"])
def test_with_neither_the_build_says_what_to_install(
    project: Path, tmp_path: Path, what: str
) -> None:
    done = python(project, "-c", BUILD, what, tmp_path, **hidden(tmp_path))
    assert done.returncode
    assert done.stderr.startswith("fxframework compiles its loops when it is installed")
    assert "install gcc, clang, Microsoft's build tools or the package ziglang" in done.stderr
    assert not list(tmp_path.glob("*.whl"))
