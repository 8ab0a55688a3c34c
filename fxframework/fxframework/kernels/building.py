"""Builds kernels: writes their headers, and compiles them with Cython and a C compiler.

Kernels are of two kinds: ``.py`` files that run as they are and are compiled with the types of
their annotations, and loops in plain Cython, ``.pyx`` files, which are compiled as they are.

What builds fxframework (``hatch_build.py``) uses it, and so do plugins with kernels of their own
(docs/kernels.md). It needs Cython and setuptools.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from fxframework.kernels.declarations import DeclarationError
from fxframework.kernels.headers import Kernels
from fxframework.kernels.native import digest_of, is_compiled, is_kernel, sources_of

__all__ = [
    "OLDEST",
    "DeclarationError",
    "Sources",
    "compile_kernels",
    "has_compiler",
    "remove_compiled",
    "setup_options",
    "update_in_place",
    "uses_stable_interface",
    "zig_is_wanted",
]

OLDEST = (3, 11)
"""The oldest Python that is supported: its stable interface is what the kernels are built for."""
DIRECTIVES = {
    "language_level": 3,
    # The header has the types.
    "annotation_typing": False,
    "infer_types": True,
    "boundscheck": False,
    "wraparound": False,
    "initializedcheck": False,
    "embedsignature": False,
    "emit_code_comments": False,
    "auto_pickle": False,
}
FLAGS = ("-fwrapv", "-g0", "-Wno-unreachable-code", "-Wno-unused-function")
LEVELS = {True: "-O3", False: "-O1"}
"""Optimisation of modules with loops, and of those without."""
FLAGS_MSVC = ("/O2", "/utf-8")
SHARED = "fxframework.kernels._cython"
"""The compiled module that holds what Cython needs in every kernel (its memoryviews) once."""
RECORD = "build/kernels.json"
"""Where a checkout records what each module compiled in place was made from."""
GLUE = re.compile(
    rb"^static (?=[\w *]+\b__pyx_(?:p[fw]|tp)_\w+\([^;{}]*\)(?:; ?/\* ?proto ?\*/| \{)$)",
    re.MULTILINE,
)
"""What Python calls, in C that Cython wrote: it is compiled for size, in half of the time."""
REPORT = """

from fxframework.kernels import native as _native

_native.register(__name__, __file__, {digest!r}, {uses!r})
"""


def uses_stable_interface() -> bool:
    """Return whether one compiled module serves this and every later Python."""
    gil = not sysconfig.get_config_var("Py_GIL_DISABLED")
    return sys.implementation.name == "cpython" and gil and not os.environ.get("FXF_SANITIZE")


class Sources:
    """The kernels of some packages, and what each module is compiled from.

    ``inputs`` has, by name of each module to compile, what tells whether it must be compiled
    again; ``headers`` the text of all headers that are needed, by name.
    Raises DeclarationError, and RuntimeError if there are no kernels.
    """

    def __init__(self, packages: Iterable[Path]) -> None:
        self.packages = {package.name: package for package in packages}
        self._found = kernels = Kernels(self.packages)
        self.kernels: dict[str, Path] = {}
        self.plain = dict(plain_loops(self.packages.values()))
        """Loops in plain Cython (``.pyx``) by name of module."""
        self.texts: dict[str, str] = {}
        self.headers: dict[str, str] = {}
        self.loops: set[str] = set()
        self.uses: dict[str, list[str]] = {}
        try:
            self._generate(kernels)
        finally:
            kernels.constants.close()
        if not self.texts and not self.plain:
            raise RuntimeError("no kernels were found")
        asked = {name: os.environ.get(name, "") for name in ("FXF_SANITIZE", "CFLAGS", "LDFLAGS")}
        cython = importlib.metadata.version("Cython")
        settings = repr((cython, sys.version, sysconfig.get_platform(), asked, FLAGS, LEVELS,
                         DIRECTIVES, REPORT))  # fmt: skip
        self.digests = {
            name: digest_of(sources_of(str(self.kernels[name]), uses, self._path))
            for name, uses in self.uses.items()
        }
        self.inputs = {SHARED: _hash(settings)}
        for name, text in self.texts.items():
            used = [self.headers[each] for each in self._closure(self.headers[name], name)]
            level = LEVELS[name in self.loops]
            self.inputs[name] = _hash(settings, level, text, self.digests[name], *used)
        for name, path in self.plain.items():
            self.loops.add(name)
            text = path.read_text("utf-8")
            used = [self.headers[each] for each in self._closure(text)]
            self.inputs[name] = _hash(settings, text, *used)

    def _generate(self, kernels: Kernels) -> None:
        """Write headers and sources, of the packages and of what they use."""
        own = list(kernels.names())
        waiting = [*own]
        while waiting:
            name = waiting.pop()
            if name in self.headers:
                continue
            module = kernels.module(name)
            if module is None:
                continue
            self.headers[name] = module.header
            waiting += module.uses
            if name in own and not module.included:
                self.kernels[name] = module.path
                self.texts[name] = module.staged
                self.uses[name] = module.sources
                if module.loops:
                    self.loops.add(name)

    def generated(self, work: Path) -> dict[str, Path]:
        """Return the headers of these packages, as ``compile_kernels`` left them, by place."""
        places = {name: f"{name.replace('.', '/')}.pxd" for name in self.headers}
        return {
            place: work / "source" / place
            for name, place in places.items()
            if name.partition(".")[0] in self.packages
        }

    def _closure(self, text: str, *names: str) -> list[str]:
        """Names of the headers that a header or a loop takes in, and ``names``."""
        found: dict[str, None] = dict.fromkeys(names)
        waiting = [text]
        while waiting:
            for line in waiting.pop().splitlines():
                if line.startswith("from ") and " cimport " in line:
                    other = line.split()[1]
                    if other in self.headers and other not in found:
                        found[other] = None
                        waiting.append(self.headers[other])
        return sorted(found)

    def _path(self, name: str) -> str:
        """Return the path of a module's source."""
        return str(self._found.path_of(name))

    def stage(self, folder: Path) -> dict[str, Path]:
        """Write what Cython needs below a folder; return the sources of the kernels."""
        staged: dict[str, Path] = {}
        for name, header in self.headers.items():
            place = folder.joinpath(*name.split(".")).with_suffix(".pxd")
            place.parent.mkdir(parents=True, exist_ok=True)
            for parent in place.relative_to(folder).parents[:-1]:
                (folder / parent / "__init__.py").touch()
            place.write_text(header, "utf-8")
        for name, text in self.texts.items():
            staged[name] = folder.joinpath(*name.split(".")).with_suffix(".py")
            report = REPORT.format(digest=self.digests[name], uses=tuple(self.uses[name]))
            staged[name].write_text(text + report, "utf-8")
        for name, path in self.plain.items():
            staged[name] = folder.joinpath(*name.split(".")).with_suffix(".pyx")
            staged[name].parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, staged[name])
        return staged


def plain_loops(packages: Iterable[Path]) -> Iterator[tuple[str, Path]]:
    """Yield name and source of each module of some packages that is written in plain Cython."""
    for package in packages:
        for path in sorted(package.rglob("*.pyx")):
            inside = path.relative_to(package).with_suffix("").parts
            yield ".".join((package.name, *inside)), path


def _hash(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def remove_compiled(packages: Iterable[Path]) -> None:
    """Remove what was compiled in place."""
    for package in packages:
        kernels = [path for path in package.rglob("*.py") if is_kernel(path.read_bytes())]
        kernels += package.rglob("*.pyx")
        for source in (package.parent.joinpath(*SHARED.split(".")), *kernels):
            for suffix in (".so", ".pyd"):
                for file in source.parent.glob(f"{source.stem}.*{suffix}"):
                    file.unlink()


def update_in_place(
    root: Path, packages: Iterable[Path], work: Path, say: Callable[[str], None]
) -> None:
    """Compile in place the kernels whose sources, or headers that they use, have changed.

    ``build/kernels.json`` has what each module was compiled from, and a digest of the module; those
    of kernels that are there no longer are removed.
    """
    sources = Sources(packages)
    record = root / RECORD
    try:
        before = json.loads(record.read_text("utf-8"))
    except (OSError, ValueError):
        before = {}
    places = {
        name: sources.packages[name.partition(".")[0]].parent.joinpath(*name.split("."))
        for name in sources.inputs
        if name.partition(".")[0] in sources.packages
    }
    current: dict[str, list[str]] = {}
    for name, place in places.items():
        known = before.get(name, ["", place.name, ""])
        file = place.with_name(known[1])
        if known[0] == sources.inputs[name] and file.is_file() and _digest(file) == known[2]:
            current[name] = known
    for name in before.keys() - places.keys():
        package, *parts = name.split(".")
        if package in sources.packages:
            gone = sources.packages[package].parent.joinpath(package, *parts)
            gone.with_name(before[name][1]).unlink(missing_ok=True)
    changed = sorted(name for name in places if name not in current)
    if not changed:
        say(f"All {len(current)} compiled modules are up to date")
        return
    for name, file in compile_kernels(sources, work, say, changed).items():
        place = places[name]
        for old in place.parent.glob(f"{place.name}.*"):
            if old.suffix in {".so", ".pyd"}:
                old.unlink()
        shutil.copyfile(file, place.with_name(file.name))
        current[name] = [sources.inputs[name], file.name, _digest(file)]
    record.parent.mkdir(exist_ok=True)
    record.write_text(json.dumps(current, indent=1, sort_keys=True), "utf-8")


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def compile_kernels(
    sources: Sources,
    work: Path,
    say: Callable[[str], None],
    only: Iterable[str] | None = None,
) -> dict[str, Path]:
    """Compile the kernels, or ``only`` some; return each module's file.

    Work is done below ``work``. ``say`` gets a line for each step and each module.
    """
    from setuptools import Distribution
    from setuptools.command.build_ext import build_ext

    class Timed(build_ext):  # type: ignore[misc]
        """Says how long the C compiler took for each module."""

        def build_extension(self, extension: Any) -> None:
            begin = time.monotonic()
            super().build_extension(extension)
            say(f"  {extension.name} {time.monotonic() - begin:.1f} s")

    stage = work / "source"
    modules = {SHARED: stage / f"{SHARED.replace('.', '/')}.c", **sources.stage(stage)}
    modules[SHARED].parent.mkdir(parents=True, exist_ok=True)
    chosen = sorted(name for name in modules if only is None or name in only)
    jobs = os.cpu_count() or 1
    names = "" if len(chosen) == len(modules) else f": {', '.join(chosen)}"
    say(f"Compiling {len(chosen)} of {len(modules)} modules with {jobs} jobs{names}")
    begin = time.monotonic()
    with compiler(), within(stage):
        found = translated(
            {name: modules[name].relative_to(stage) for name in chosen}, sources.loops, SHARED
        )
        say(f"Cython took {time.monotonic() - begin:.0f} s; the C compiler:")
        command = Timed(Distribution({"name": "kernels", "ext_modules": found}))
        command.build_lib = str(work / "lib")
        command.build_temp = str(work / "temp")
        command.parallel = jobs
        command.ensure_finalized()
        command.run()
        say(f"Compiled {len(chosen)} modules in {time.monotonic() - begin:.0f} s")
        return {name: Path(command.get_ext_fullpath(name)).resolve() for name in chosen}


def translated(
    files: Mapping[str, Path],
    loops: Iterable[str],
    shared: str | None = None,
    include: Path = Path(),
) -> list[Any]:
    """Translate staged sources to C; return setuptools extensions.

    What Cython needs in each is in the module ``shared``, if any, instead.
    """
    from Cython.Build import cythonize
    from setuptools import Extension

    stable = uses_stable_interface()
    msvc = sysconfig.get_platform().startswith("win") and not os.environ.get("CC")
    link = ["-s"] if sys.platform == "linux" else []  # no table of symbols
    macros = [("FXF_GLUE", "" if msvc else "__attribute__((cold))")]
    if stable:
        macros.append(("Py_LIMITED_API", "0x{:02x}{:02x}0000".format(*OLDEST)))
    flags = {level: [*FLAGS_MSVC] if msvc else [level, *FLAGS] for level in LEVELS.values()}
    sanitizers = os.environ.get("FXF_SANITIZE")
    if sanitizers:
        link = [f"-fsanitize={sanitizers}", "-fno-sanitize-recover=undefined"]
        plain = ("-O1", "-g", "-fwrapv", "-fno-omit-frame-pointer")
        flags = {level: [*plain, *link] for level in flags}
    found = cythonize(  # type: ignore[no-untyped-call]
        [
            Extension(
                name,
                [str(file)],
                define_macros=macros,
                extra_compile_args=flags[LEVELS[name in loops]],
                extra_link_args=link,
                py_limited_api=stable,
            )
            for name, file in files.items()
        ],
        shared_utility_qualified_name=shared,
        compiler_directives=DIRECTIVES,
        include_path=[str(include)],
        nthreads=os.cpu_count() or 1 if hasattr(os, "fork") else 0,
        quiet=True,
    )
    for extension in found:
        path = Path(extension.sources[0])
        path.write_bytes(GLUE.sub(b"static FXF_GLUE ", path.read_bytes()))
    return list(found)


def setup_options(package: str) -> dict[str, Any]:
    """Return what ``setuptools.setup`` needs to compile the kernels of a plugin.

    ``package`` is its import package, in the working folder. Where there is no C compiler, or where
    the kernels of fxframework are plain Python (compiled ones derive from them), the plugin is
    installed without compiled kernels; with FXF_NATIVE=require that is an error. With
    FXF_NATIVE=never nothing is compiled. Raises DeclarationError, and SystemExit.
    """
    wish = os.environ.get("FXF_NATIVE", "")
    if wish == "never":
        return {}
    from fxframework.kernels import kernel

    if not is_compiled(kernel.__name__):
        if wish == "require":
            raise SystemExit("FXF_NATIVE=require, but the kernels of fxframework are plain Python")
        return {}
    sources = Sources([Path(package).absolute()])
    stage = Path("build", "kernels")
    files = sources.stage(stage)
    found = translated(files, sources.loops, include=stage)
    for extension in found:
        extension.optional = wish != "require"
    stable = {"bdist_wheel": {"py_limited_api": "cp{}{}".format(*OLDEST)}}
    return {"ext_modules": found, "options": stable if uses_stable_interface() else {}}


@contextlib.contextmanager
def within(folder: Path) -> Iterator[None]:
    """Work in a folder."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def has_compiler() -> bool:
    """Return whether this machine has a C compiler that setuptools will find."""
    if sysconfig.get_platform().startswith("win") and not os.environ.get("CC"):
        with contextlib.suppress(Exception):
            from setuptools._distutils import _msvccompiler as msvc

            return bool(msvc._find_vcvarsall("x64" if sys.maxsize >> 32 else "x86")[0])  # noqa: SLF001
        return False
    command = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
    return shutil.which(shlex.split(command)[0]) is not None


def zig_is_wanted() -> bool:
    """Return whether to ask for ziglang: there is no compiler, and pip finds it or cannot say."""
    if has_compiler():
        return False

    def pip(*arguments: str) -> bool:
        command = [sys.executable, "-I", "-m", "pip", "--retries", "0", "--timeout", "5"]
        done = subprocess.run([*command, *arguments], check=False, capture_output=True)  # noqa: S603
        return not done.returncode

    if importlib.util.find_spec("ziglang") or not pip("--version"):
        return True
    return pip("index", "versions", "ziglang")


@contextlib.contextmanager
def compiler() -> Iterator[None]:
    """Have setuptools use zig where this machine has no compiler of its own."""
    if has_compiler():
        yield
        return
    if importlib.util.find_spec("ziglang") is None:
        raise RuntimeError("there is no C compiler, and pip found no ziglang")

    zig = f"{shlex.quote(sys.executable)} -m ziglang cc"
    changed = {"CC": zig, "LDSHARED": f"{zig} -shared"}
    before = {name: os.environ.get(name) for name in changed}
    os.environ.update(changed)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
