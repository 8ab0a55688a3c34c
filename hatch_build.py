"""The build hook: compiles the kernels, and builds a pure wheel where that cannot be done.

A kernel is a ``.py`` file with a ``.pxd`` file of the same name beside it (see docs/kernels.md).
``FXF_NATIVE=never`` leaves all of them plain Python, ``FXF_NATIVE=require`` makes the build fail
rather than fall back. ``FXF_SANITIZE=address,undefined`` compiles for tests under sanitizers.
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
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

OLDEST = (3, 11)
"""The oldest Python that is supported: its stable interface is what the kernels are built for."""
DIRECTIVES = {
    "language_level": 3,
    # Annotations are for mypy and for people; the types of C stand in the .pxd.
    "annotation_typing": False,
    "infer_types": True,
    "boundscheck": False,
    "wraparound": False,
    "initializedcheck": False,
    "embedsignature": False,
}
FLAGS = ("-O3", "-fwrapv", "-g0", "-Wno-unreachable-code", "-Wno-unused-function")
FLAGS_MSVC = ("/O2", "/utf-8")
SHARED = "fxframework.kernels._cython"
"""The compiled module that holds what Cython needs in every kernel (its memoryviews) once."""
HOST = "fxframework"
"""The folder of the checkout that holds the host's import package."""
NOTE = "fxframework/kernels/build.txt"
"""Where an installed package says why nothing is compiled (``fxframework.kernels.native``)."""
RECORD = "build/kernels.json"
"""Where a checkout records what each module compiled in place was made from."""
REPORT = """

from fxframework.kernels import native as _native

_native.register(__name__, __file__, {digest!r}, {headers!r})
"""
CIMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+cimport[ \t]+(\([^)]*\)|[^\n#]*)|cimport[ \t]+([^\n#]*))",
    re.MULTILINE,
)
"""A line of a .pxd that takes in other headers: the module and names, or the modules."""


class KernelBuildHook(BuildHookInterface[Any]):
    """Compiles kernels into the wheel, or in place for an editable install."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """What the build needs beside ``build-system.requires``: a compiler where there is none."""
        if os.environ.get("FXF_NATIVE") == "never" or self.target_name != "wheel":
            return []
        return [] if has_compiler() or not can_have_zig() else ["ziglang>=0.13"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and enter what came of it in ``build_data``."""
        if self.target_name != "wheel":
            return
        wish = os.environ.get("FXF_NATIVE", "")
        if wish not in {"", "never", "require"}:
            raise ValueError(f"FXF_NATIVE is {wish!r}; it can be 'never' or 'require'")
        editable = version == "editable"
        root = Path(self.root)
        packages = [root / name for name in self.build_config.packages]
        if editable:
            (root / HOST / NOTE).unlink(missing_ok=True)
        self.work = work = Path(tempfile.mkdtemp(prefix="fxf-kernels-"))
        if wish == "never":
            self.app.display_info("FXF_NATIVE=never: the kernels stay plain Python")
            remove_compiled(packages if editable else [])
            self.leave_note("FXF_NATIVE=never was set when it was installed", build_data, editable)
            return
        say = self.app.display_info
        built: dict[str, Path] = {}
        try:
            if editable:
                update_in_place(root, packages, work, say)
            else:
                built = compile_kernels(packages, work, say)
        except (Exception, SystemExit) as problem:  # a compiler fails in many ways
            if wish == "require":
                raise
            self.app.display_warning(
                f"The kernels were not compiled: {problem}\n"
                "A pure Python wheel is built. Its results are the same, but it reads bulk data "
                "about 50 times slower.\nInstall a C compiler, or let pip fetch `ziglang`, and "
                "install again; FXF_NATIVE=require makes this an error."
            )
            remove_compiled(packages if editable else [])
            self.leave_note(f"compiling failed: {problem}", build_data, editable)
            return
        for module, file in built.items():
            target = "/".join((*module.split(".")[:-1], file.name))
            build_data["force_include"][str(file)] = target
        build_data["pure_python"] = False
        build_data["tag"] = self.wheel_tag()

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was only needed to build."""
        work = getattr(self, "work", None)
        if work is not None:
            shutil.rmtree(work, ignore_errors=True)

    def leave_note(self, text: str, build_data: dict[str, Any], editable: bool) -> None:
        """Say in the installed package why nothing is compiled, where it has the place for it."""
        place = Path(self.root, HOST, NOTE)
        if not place.parent.exists():
            return
        if not editable:
            place = self.work / place.name
            build_data["force_include"][str(place)] = NOTE
        place.write_text(f"{' '.join(text.split())}\n", "utf-8")

    def wheel_tag(self) -> str:
        """The tag of a wheel with compiled kernels."""
        python, abi, platform = self.build_config.builder.get_best_matching_tag().split("-")
        if uses_stable_interface():
            python, abi = "cp{}{}".format(*OLDEST), "abi3"
        return f"{python}-{abi}-{platform}"


def uses_stable_interface() -> bool:
    """Whether one compiled module serves this and every later Python."""
    gil = not sysconfig.get_config_var("Py_GIL_DISABLED")
    return sys.implementation.name == "cpython" and gil and not os.environ.get("FXF_SANITIZE")


def kernels_of(package: Path) -> Iterator[Path]:
    """The kernels of a package: each ``.py`` with a ``.pxd`` beside it."""
    for header in sorted(package.rglob("*.pxd")):
        source = header.with_suffix(".py")
        if source.exists():
            yield source


def remove_compiled(packages: Iterable[Path]) -> None:
    """Remove what was compiled in place."""
    for package in packages:
        shared = package.parent.joinpath(*SHARED.split("."))
        for source in (shared, *kernels_of(package)):
            for suffix in (".so", ".pyd"):
                for file in source.parent.glob(f"{source.stem}.*{suffix}"):
                    file.unlink()


def headers_of(name: str, headers: Mapping[str, Path]) -> list[str]:
    """The headers that a kernel takes in, its own left out; by name, of those in ``headers``."""
    found: dict[str, None] = {name: None}
    waiting = [name]
    while waiting:
        text = headers[waiting.pop()].read_text("utf-8")
        for inside, names, modules in CIMPORT.findall(text):
            listed = [
                each.split()[0]
                for each in (names or modules).strip("()").split(",")
                if each.strip()
            ]
            for each in [inside, *(f"{inside}.{each}" for each in listed)] if inside else listed:
                if each in headers and each not in found:
                    found[each] = None
                    waiting.append(each)
    return sorted({*found} - {name})


def digest_of(files: Iterable[Path]) -> str:
    """What tells whether a compiled kernel is of these sources."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes().replace(b"\r\n", b"\n"))
    return digest.hexdigest()[:32]


class Sources:
    """The kernels of some packages, and what each module is compiled from.

    ``digests`` has what a compiled kernel knows of its sources; ``inputs`` has, by name of each
    module to compile, what tells whether it must be compiled again.
    """

    def __init__(self, packages: list[Path]) -> None:
        cython = importlib.metadata.version("Cython")

        self.headers = {
            ".".join(header.relative_to(package.parent).with_suffix("").parts): header
            for package in packages
            for header in sorted(package.rglob("*.pxd"))
        }
        self.kernels = {
            ".".join(source.relative_to(package.parent).with_suffix("").parts): source
            for package in packages
            for source in kernels_of(package)
        }
        if not self.kernels:
            raise RuntimeError("no kernels were found")
        asked = {name: os.environ.get(name, "") for name in ("FXF_SANITIZE", "CFLAGS", "LDFLAGS")}
        settings = repr((cython, sys.version, sysconfig.get_platform(), asked)).encode()
        settings += Path(__file__).read_bytes()
        self.others = {name: headers_of(name, self.headers) for name in self.kernels}
        self.digests = {
            name: digest_of([source, *(self.headers[each] for each in (name, *self.others[name]))])
            for name, source in self.kernels.items()
        }
        self.inputs = {
            name: hashlib.sha256(settings + digest.encode()).hexdigest()
            for name, digest in {SHARED: "", **self.digests}.items()
        }

    def stage(self, folder: Path) -> dict[str, Path]:
        """Copy the sources below a folder, as Cython takes them; return those of the kernels."""
        staged: dict[str, Path] = {}
        # Headers by themselves too: constants that several kernels share.
        for name, header in self.headers.items():
            place = folder.joinpath(*name.split(".")).with_suffix(".pxd")
            place.parent.mkdir(parents=True, exist_ok=True)
            for parent in place.relative_to(folder).parents[:-1]:
                (folder / parent / "__init__.py").touch()
            shutil.copyfile(header, place)
        for name, source in self.kernels.items():
            staged[name] = folder.joinpath(*name.split(".")).with_suffix(".py")
            report = REPORT.format(digest=self.digests[name], headers=tuple(self.others[name]))
            staged[name].write_text(source.read_text("utf-8") + report, "utf-8")
        return staged


def update_in_place(
    root: Path, packages: list[Path], work: Path, say: Callable[[str], None]
) -> None:
    """Compile in place the kernels whose sources, or headers that they use, have changed.

    ``build/kernels.json`` has what each module was compiled from, and a digest of the module.
    """
    sources = Sources(packages)
    record = root / RECORD
    try:
        before = json.loads(record.read_text("utf-8"))
    except (OSError, ValueError):
        before = {}
    places = {
        name: package.parent.joinpath(*name.split("."))
        for name in sources.inputs
        for package in packages
        if name.partition(".")[0] == package.name
    }
    current: dict[str, list[str]] = {}
    for name, place in places.items():
        known = before.get(name, ["", place.name, ""])
        file = place.with_name(known[1])
        if known[0] == sources.inputs[name] and file.is_file() and digest_of([file]) == known[2]:
            current[name] = known
    changed = [name for name in places if name not in current]
    if not changed:
        say(f"All {len(current)} compiled modules are up to date")
        return
    for name, file in compile_kernels(packages, work, say, changed).items():
        place = places[name]
        for old in place.parent.glob(f"{place.name}.*"):
            if old.suffix in {".so", ".pyd"}:
                old.unlink()
        shutil.copyfile(file, place.with_name(file.name))
        current[name] = [sources.inputs[name], file.name, digest_of([file])]
    record.parent.mkdir(exist_ok=True)
    record.write_text(json.dumps(current, indent=1, sort_keys=True), "utf-8")


def compile_kernels(
    packages: list[Path],
    work: Path,
    say: Callable[[str], None],
    only: Iterable[str] | None = None,
) -> dict[str, Path]:
    """Compile the kernels of these packages, or ``only`` some; return each module's file.

    Work is done below ``work``. ``say`` gets a line about what is done, and one when it is done.
    """
    from Cython.Build import cythonize
    from setuptools import Distribution, Extension

    stable = uses_stable_interface()
    stage = work / "source"
    sources = Sources(packages)
    modules = {SHARED: stage / f"{SHARED.replace('.', '/')}.c", **sources.stage(stage)}
    modules[SHARED].parent.mkdir(parents=True, exist_ok=True)
    chosen = [name for name in modules if only is None or name in only]
    jobs = os.cpu_count() or 1
    names = "" if len(chosen) == len(modules) else f": {', '.join(chosen)}"
    say(f"Compiling {len(chosen)} of {len(modules)} modules with {jobs} jobs{names}")
    begin = time.monotonic()
    msvc = sysconfig.get_platform().startswith("win") and not os.environ.get("CC")
    flags = [*(FLAGS_MSVC if msvc else FLAGS)]
    link = ["-s"] if sys.platform == "linux" else []  # no table of symbols
    macros: list[tuple[str, str | None]] = []
    if stable:
        macros.append(("Py_LIMITED_API", "0x{:02x}{:02x}0000".format(*OLDEST)))
    sanitizers = os.environ.get("FXF_SANITIZE")
    if sanitizers:
        link = [f"-fsanitize={sanitizers}", "-fno-sanitize-recover=undefined"]
        flags = ["-O1", "-g", "-fwrapv", "-fno-omit-frame-pointer", *link]
    with within(stage):
        extensions = cythonize(
            [
                Extension(
                    name,
                    [str(modules[name].relative_to(stage))],
                    define_macros=macros,
                    extra_compile_args=flags,
                    extra_link_args=link,
                    py_limited_api=stable,
                )
                for name in chosen
            ],
            shared_utility_qualified_name=SHARED,
            compiler_directives=DIRECTIVES,
            include_path=[str(stage)],
            nthreads=jobs if hasattr(os, "fork") else 0,
            quiet=True,
        )
        command = Distribution({"name": "kernels", "ext_modules": extensions}).get_command_obj(
            "build_ext"
        )
        command.build_lib = str(work / "lib")
        command.build_temp = str(work / "temp")
        command.parallel = jobs
        with compiler():
            command.ensure_finalized()
            command.run()
        say(f"Compiled {len(chosen)} modules in {time.monotonic() - begin:.0f} s")
        return {name: Path(command.get_ext_fullpath(name)).resolve() for name in chosen}


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
    """Whether this machine has a C compiler that setuptools will find."""
    if sysconfig.get_platform().startswith("win") and not os.environ.get("CC"):
        with contextlib.suppress(Exception):
            from setuptools._distutils import _msvccompiler as msvc

            return bool(msvc._find_vcvarsall("x64" if sys.maxsize >> 32 else "x86")[0])
        return False
    command = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
    return shutil.which(shlex.split(command)[0]) is not None


def can_have_zig() -> bool:
    """Whether pip finds ziglang, or nobody can say: without a network the build does without."""

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


def main() -> None:
    """Compile in place: what an editable install does, with all that the compiler says."""
    import tomllib

    root = Path(__file__).parent
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
    names = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    packages = [root / name for name in names]
    with tempfile.TemporaryDirectory(prefix="fxf-kernels-") as work:
        update_in_place(root, packages, Path(work), print)
    (root / HOST / NOTE).unlink(missing_ok=True)


if __name__ == "__main__":
    main()
