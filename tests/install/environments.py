"""Environments as people have them: the core install, an editable install, a clone's own folder.

An environment is made of what is installed here: of links to the packages of the distributions
that it is to have. So it takes no network and no second build, and the package in it is the one
that is tested: the wheel, where that is installed.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from collections.abc import Iterable, Iterator
from importlib import import_module, metadata
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import attrs
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
SOURCES = tuple(PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"])
"""The folders of the packages of the wheel."""
PACKAGES = tuple(Path(folder).name for folder in SOURCES)
"""The import packages of the wheel."""
SCRIPT = """#!{python}
import sys
from fxframework.cli import main
if __name__ == "__main__":
    sys.exit(main())
"""
SERVER = Path(__file__).with_name("server.py")
COMPILERS = ("cc", "gcc", "clang")
CLONED = ("README.md", "LICENSE", "pyproject.toml", "hatch_build.py", "examples", "docs",
          "fxframework", "plugins", "emulator")  # fmt: skip
BUILD = "import sys; from hatchling import build; print(build.build_editable(sys.argv[1]))"


@attrs.frozen
class Done:
    """What came of a command."""

    status: int
    stdout: str
    stderr: str


class Environment:
    """A Python environment in a folder, in which commands run as processes of their own."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder, with_pip=False, symlinks=True)
        self.folder = folder
        self.python = folder / "bin" / "python"
        (self.site,) = (folder / "lib").glob("python*/site-packages")
        for distribution in core_distributions():
            self.link(distribution)
        self._server: subprocess.Popen[str] | None = None

    def link(self, distribution: metadata.Distribution) -> None:
        """Install what is installed here."""
        files = [file for file in distribution.files or () if ".." not in file.parts]
        assert files, f"{distribution.name} does not say what it consists of"
        for name in sorted({file.parts[0] for file in files} - {"__pycache__"}):
            (self.site / name).symlink_to(Path(str(distribution.locate_file(name))))

    def add_script(self) -> None:
        """Write `fxf`, as pip does."""
        script = self.folder / "bin" / "fxf"
        script.write_text(SCRIPT.format(python=self.python))
        script.chmod(0o755)

    @property
    def environ(self) -> dict[str, str]:
        """The variables of a shell in which the environment is active."""
        kept = {
            key: value for key, value in os.environ.items()
            if not key.startswith(("PYTEST", "PYTHON", "FXF_", "COV_"))
        }  # fmt: skip
        return {**kept, "PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}

    def shell(self, command: str, folder: Path) -> Done:
        """Run a command in a shell in a folder."""
        done = subprocess.run(
            ["/bin/sh", "-c", command], cwd=folder, env=self.environ, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False, errors="replace",
        )  # fmt: skip
        return Done(done.returncode, done.stdout, done.stderr)

    # --- Many commands, in processes that begin with the imports done ---

    def __enter__(self) -> Self:
        self._server = subprocess.Popen(
            [self.python, "-P", SERVER, *self.warm()], env=self.environ, text=True, bufsize=1,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        server = self._server
        assert server is not None
        server.communicate(timeout=20)
        assert server.returncode == 0

    def warm(self) -> list[str]:
        """Modules that the processes begin with; a process imports those that failed again."""
        return [name for name in modules() if ".testing" not in name]

    def fxf(self, *arguments: object, folder: Path) -> Done:
        """Run `fxf` in a folder."""
        (done,) = self.fxf_many([arguments], folder=folder)
        return done

    def fxf_many(self, commands: Iterable[Iterable[object]], folder: Path) -> list[Done]:
        """Run `fxf` with each of these arguments in a folder, in one process."""
        programs = [{"arguments": [str(argument) for argument in each]} for each in commands]
        return list(self._ask(folder, programs))

    def exec(self, code: str, folder: Path) -> Done:
        """Run a program in a folder."""
        (done,) = self._ask(folder, [{"code": code}])
        return done

    def _ask(self, folder: Path, programs: list[dict[str, Any]]) -> Iterator[Done]:
        if not programs:
            return
        server = self._server
        assert server is not None
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps({"folder": str(folder), "programs": programs}) + "\n")
        for program in programs:
            answer = json.loads(server.stdout.readline())
            assert answer["status"] >= 0, f"{program} was killed: {answer}"
            out, err = (
                base64.b64decode(answer[name]).decode("utf-8", "replace") for name in ("out", "err")
            )
            yield Done(answer["status"], out, err)


class Here(Environment):
    """The environment that the tests run in."""

    def __init__(self) -> None:
        self.folder = Path(sys.prefix)
        self.python = Path(sys.executable)
        self._server = None


def core_distributions() -> list[metadata.Distribution]:
    """What a core install has beside fxframework, as the metadata of what is installed says."""
    return required("fxframework")


def required(*names: str) -> list[metadata.Distribution]:
    """What these distributions require, as the metadata of what is installed says."""
    found: dict[str, metadata.Distribution] = {}
    waiting = list(names)
    while waiting:
        for text in metadata.requires(waiting.pop()) or ():
            needed = Requirement(text)
            name = needed.name.lower()
            if name in found or (needed.marker and not needed.marker.evaluate({"extra": ""})):
                continue
            found[name] = metadata.distribution(name)
            waiting.append(name)
    return list(found.values())


def optional_modules() -> set[str]:
    """Top-level modules of what only extras and the groups of the project install."""
    core = {distribution.name.lower() for distribution in core_distributions()} | {"fxframework"}
    return {
        module
        for module, names in metadata.packages_distributions().items()
        if not core & {name.lower() for name in names} and module not in sys.stdlib_module_names
    }


def core(folder: Path) -> Environment:
    """Make an environment as `pip install .` does: fxframework, and what it cannot do without."""
    environment = Environment(folder)
    for name in PACKAGES:
        (package,) = import_module(name).__path__
        (environment.site / name).symlink_to(Path(package).resolve())
    distribution = metadata.distribution("fxframework")
    name = next(file.parts[0] for file in distribution.files or () if file.name == "METADATA")
    (environment.site / name).symlink_to(Path(str(distribution.locate_file(name))).resolve())
    environment.add_script()
    return environment


def editable(folder: Path, clone: Path) -> Environment:
    """Make an environment as `pip install -e .` does in a clone.

    The loops that are installed are taken along as if the clone had compiled them: all but one,
    as if that was edited since.
    """
    environment = Environment(folder)
    wheels = folder / "wheels"
    wheels.mkdir()
    take_loops(clone, but="elements")
    done = subprocess.run(
        [sys.executable, "-c", BUILD, wheels], cwd=clone, capture_output=True, text=True,
        check=False, env={**os.environ, **quick_compiler(folder)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(wheels / done.stdout.split()[-1]) as wheel:
        wheel.extractall(environment.site)
    environment.add_script()
    return environment


def take_loops(clone: Path, but: str) -> None:
    """Put the loops that are installed to where the build hook finds what it compiled before."""
    work, cython = clone / "build" / "loops", metadata.version("Cython")
    for source in SOURCES:
        (package,) = map(Path, import_module(Path(source).name).__path__)
        for loop in package.rglob("*.abi3.so"):
            place = loop.relative_to(package.parent)
            stem = loop.name.partition(".")[0]
            # C sources newer than those in Cython, and libraries newer still, are up to date.
            translated = work / Path(source).parent / place.with_name(f"{stem}.c")
            library = work / "library" / place
            for path in (translated, library):
                path.parent.mkdir(parents=True, exist_ok=True)
            if stem != but:
                translated.write_text(f"/* Generated by Cython {cython} */\n")
                shutil.copy(loop, library)


def quick_compiler(folder: Path) -> dict[str, str]:
    """Write a C compiler that does not optimise; return the variable that names it.

    For tests that look at what is built, not at how fast that is: it takes a third of the time.
    Empty where there is no compiler, or where a script cannot be one.
    """
    compiler = next((name for name in COMPILERS if shutil.which(name)), None)
    if os.name != "posix" or compiler is None:
        return {}
    script = folder / "quick-cc"
    script.write_text(f'#!/bin/sh\nexec {compiler} "$@" -O0\n')
    script.chmod(0o755)
    return {"CC": str(script)}


def clone(folder: Path) -> Path:
    """Make a folder that has what a clone has but for tests: the sources, and nothing built."""
    compiled = f"*{sysconfig.get_config_var('EXT_SUFFIX')}", "*.abi3.so"
    left_out = shutil.ignore_patterns("__pycache__", "*.so", *compiled)
    folder.mkdir()
    for name in CLONED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=left_out)
        else:
            shutil.copy(ROOT / name, folder / name)
    return folder


def modules() -> Iterator[str]:
    """The modules of the wheel, by name."""
    for package in PACKAGES:
        (folder,) = map(Path, import_module(package).__path__)
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder.parent).with_suffix("").parts
            if parts[-1] != "__main__":
                yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
