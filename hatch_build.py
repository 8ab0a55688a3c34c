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
DIRECTIVES = {"language_level": 3, "initializedcheck": False, "auto_pickle": False}
MSVC = sysconfig.get_platform().startswith("win") and not os.environ.get("CC")
FLAGS = ["/utf-8"] if MSVC else ["-fwrapv", "-g0", "-w"]
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
    asked = subprocess.run([*pip, "index", "versions", "ziglang"], check=False, capture_output=True)
    return not asked.returncode or b"No module named pip" in asked.stderr


def compile_loops(root: Path, folders: list[str], work: Path) -> dict[str, Path]:
    """Compile what was edited since the last time in ``work``; return all by place in ``root``."""
    from Cython.Build import cythonize
    from setuptools import Distribution, Extension

    if not has_compiler():
        if importlib.util.find_spec("ziglang") is None:
            raise SystemExit(NO_COMPILER)
        zig = f"{shlex.quote(sys.executable)} -m ziglang cc"
        os.environ |= {"CC": zig, "LDSHARED": f"{zig} -shared"}
    extra = [f"-fsanitize={SANITIZERS}", "-fno-sanitize-recover=undefined"] if SANITIZERS else []
    link = extra or ["-s"] * sys.platform.startswith("linux")  # without symbols
    options = {"extra_compile_args": FLAGS + extra, "extra_link_args": link, **INTERFACE}
    os.environ.setdefault("CFLAGS", "-O1")  # -O2 gains little, and takes half as long again
    os.chdir(root)
    host = next(folder for folder in folders if Path(folder).name == "fxframework")
    sources = {SHARED: Path(host, "kernels", "_cython.c")}
    for folder in map(Path, folders):
        for path in sorted(folder.rglob("*.pyx")):
            sources[".".join(path.with_suffix("").relative_to(folder.parent).parts)] = path
    loops = cythonize(
        [Extension(name, [str(source)], **options) for name, source in sources.items()],
        shared_utility_qualified_name=SHARED, build_dir=str(work), compiler_directives=DIRECTIVES,
        include_path=[str(Path(folder).parent) for folder in folders],
        nthreads=os.cpu_count() if hasattr(os, "fork") else 0,
    )  # fmt: skip
    command = Distribution({"ext_modules": loops}).get_command_obj("build_ext")
    command.build_lib, command.build_temp = str(work / "library"), str(work / "objects")
    command.parallel = os.cpu_count()
    command.ensure_finalized()
    command.run()
    built = [Path(command.get_ext_fullpath(name)) for name in sources]
    return {str(path.with_name(so.name)): so for path, so in zip(sources.values(), built)}  # noqa: B905


def compile_in_place(root: Path, folders: list[str]) -> None:
    """Compile all loops to where an editable install imports them from, and remove other ones."""
    files = compile_loops(root, folders, root / "build" / ("sanitized" if SANITIZERS else "loops"))
    for gone in {str(so) for each in folders for so in Path(each).rglob("*.abi3.so")} - {*files}:
        Path(gone).unlink()
    for place, file in files.items():
        Path(shutil.copy2(file, f"{place}.new")).replace(place)  # who runs the old one keeps it


class LoopsHook(BuildHookInterface[Any]):
    """Compiles the loops of a wheel, or of an editable install."""

    def dependencies(self) -> list[str]:
        """What the build needs beside ``build-system.requires``: a compiler where there is none."""
        return ["ziglang>=0.13"] if zig_is_wanted() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and enter in ``build_data`` what goes into the wheel."""
        if version == "editable":
            compile_in_place(Path(self.root), self.build_config.packages)
        else:
            self.work = tempfile.TemporaryDirectory(prefix="fxf-loops-")
            files = compile_loops(Path(self.root), self.build_config.packages, Path(self.work.name))
            build_data["force_include"] |= {str(file): place for place, file in files.items()}
        build_data["pure_python"] = False
        tag = self.build_config.builder.get_best_matching_tag()
        build_data["tag"] = f"cp311-abi3-{tag.rpartition('-')[2]}" if STABLE else tag


if __name__ == "__main__":
    project = Path(__file__).absolute().with_name("pyproject.toml")
    wheel = tomllib.loads(project.read_text("utf-8"))["tool"]["hatch"]["build"]["targets"]["wheel"]
    compile_in_place(project.parent, wheel["packages"])
