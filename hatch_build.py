"""The build hook: compiles the loops, Cython's ``.pyx`` files, into the wheel or in place.

``python hatch_build.py`` compiles in place; FXF_SANITIZE=address,undefined for sanitizers.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SHARED = "fxframework.kernels._cython"  # what Cython needs in every module (its memoryviews), once
DIRECTIVES = {"language_level": 3, "initializedcheck": False, "auto_pickle": False,
              "emit_code_comments": False}  # fmt: skip
MSVC = sysconfig.get_platform().startswith("win") and not os.environ.get("CC")
FLAGS = ["-fwrapv", "-g0", "-w"]
if MSVC:
    FLAGS = ["/utf-8"]
NO_COMPILER = """fxframework compiles its loops when it is installed, and found no C compiler:
install gcc, clang, Microsoft's build tools or the package ziglang, and install fxframework again"""
SANITIZERS = os.environ.get("FXF_SANITIZE", "")
# The stable interface of the oldest Python that is supported: one wheel serves all later ones.
STABLE = not sysconfig.get_config_var("Py_GIL_DISABLED") and not SANITIZERS
INTERFACE = {"define_macros": [("Py_LIMITED_API", "0x030b0000")] * STABLE, "py_limited_api": STABLE}


def has_compiler() -> bool:
    """Return whether this machine has a C compiler that setuptools will find."""
    if MSVC:
        from setuptools._distutils import _msvccompiler as msvc

        return bool(msvc._find_vcvarsall("x64")[0])
    command = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
    return shutil.which(shlex.split(command)[0]) is not None


def zig_is_wanted() -> bool:
    """Return whether to ask for ziglang: there is no compiler, and pip finds it or cannot say."""
    if has_compiler():
        return False
    pip = [sys.executable, "-I", "-m", "pip", "--retries", "0", "--timeout", "5"]
    search = [*pip, "index", "versions", "ziglang"]
    answer = subprocess.run(search, check=False, capture_output=True)
    return not answer.returncode or b"No module named pip" in answer.stderr


def compile_loops(root: Path, folders: list[str], work: Path) -> dict[str, Path]:
    """Compile what was edited since the last time in ``work``; return all by place in ``root``."""
    from Cython.Build import cythonize
    from setuptools import Distribution, Extension

    if not has_compiler():
        if importlib.util.find_spec("ziglang") is None:
            raise SystemExit(NO_COMPILER)
        zig = f"{shlex.quote(sys.executable)} -m ziglang cc"
        os.environ |= {"CC": zig, "LDSHARED": f"{zig} -shared"}
    sanitizer_flags = []
    if SANITIZERS:
        sanitizer_flags = [f"-fsanitize={SANITIZERS}", "-fno-sanitize-recover=undefined"]
    os.environ.setdefault("CFLAGS", "-O1")  # -O2 gains little, and takes half as long again
    os.chdir(root)
    source_of_module = sources_of(folders)
    extensions = [
        Extension(name, [str(source)], extra_compile_args=FLAGS + sanitizer_flags,
                  extra_link_args=sanitizer_flags, **INTERFACE)
        for name, source in source_of_module.items()
    ]  # fmt: skip
    # Without fork, each process would import all of this again.
    processes = os.cpu_count() if hasattr(os, "fork") else 0
    loops = cythonize(
        extensions, shared_utility_qualified_name=SHARED, build_dir=str(work),
        compiler_directives=DIRECTIVES,
        include_path=[str(Path(folder).parent) for folder in folders],
        nthreads=processes,
    )  # fmt: skip
    command = Distribution({"ext_modules": loops}).get_command_obj("build_ext")
    command.build_lib = str(work / "library")
    command.build_temp = str(work / "objects")
    command.parallel = os.cpu_count()
    command.ensure_finalized()
    command.run()
    library_of_place = {}
    for name, source in source_of_module.items():
        library = Path(command.get_ext_fullpath(name))
        library_of_place[str(source.with_name(library.name))] = library
    return library_of_place


def sources_of(folders: list[str]) -> dict[str, Path]:
    """Return the loops of packages, and what they share, by the names of their modules."""
    host = next(folder for folder in folders if Path(folder).name == "fxframework")
    source_of_module = {SHARED: Path(host, "kernels", "_cython.c")}
    for folder in map(Path, folders):
        for path in sorted(folder.rglob("*.pyx")):
            parts = path.with_suffix("").relative_to(folder.parent).parts
            source_of_module[".".join(parts)] = path
    return source_of_module


def compile_in_place(root: Path, folders: list[str]) -> None:
    """Compile all loops to where an editable install imports them from, and remove other ones."""
    work = root / "build" / "loops"
    if SANITIZERS:
        work = root / "build" / "sanitized"
    library_of_place = compile_loops(root, folders, work)
    for folder in folders:
        for library in Path(folder).rglob("*.abi3.so"):
            if str(library) not in library_of_place:
                library.unlink()
    for place, library in library_of_place.items():
        # Moved there: a process that has loaded the old one keeps it.
        new_copy = Path(shutil.copy2(library, f"{place}.new"))
        new_copy.replace(place)


class LoopsHook(BuildHookInterface[Any]):
    """Compiles the loops of a wheel, or of an editable install."""

    def dependencies(self) -> list[str]:
        """What the build needs beside ``build-system.requires``: a compiler where there is none."""
        if zig_is_wanted():
            return ["ziglang>=0.13"]
        return []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and enter in ``build_data`` what goes into the wheel."""
        if version == "editable":
            compile_in_place(Path(self.root), self.build_config.packages)
        else:
            self.work = tempfile.TemporaryDirectory(prefix="fxf-loops-")
            root = Path(self.root)
            packages = self.build_config.packages
            for place, library in compile_loops(root, packages, Path(self.work.name)).items():
                build_data["force_include"][str(library)] = place
        build_data["pure_python"] = False
        tag = self.build_config.builder.get_best_matching_tag()
        if STABLE:
            platform = tag.rpartition("-")[2]
            tag = f"cp311-abi3-{platform}"
        build_data["tag"] = tag


if __name__ == "__main__":
    project_file = Path(__file__).absolute().with_name("pyproject.toml")
    project = tomllib.loads(project_file.read_text("utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    compile_in_place(project_file.parent, wheel["packages"])
