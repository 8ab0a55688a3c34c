"""The build hook: compiles the kernels, and builds a pure wheel where that cannot be done.

Kernels are described in docs/kernels.md; ``fxframework.kernels.building`` compiles them.
``FXF_NATIVE=never`` leaves all of them plain Python, ``FXF_NATIVE=require`` makes the build fail
rather than fall back. ``FXF_SANITIZE=address,undefined`` compiles for tests under sanitizers.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

HOST = "fxframework"
"""The folder of the checkout that holds the host's import package."""
NOTE = "fxframework/kernels/build.txt"
"""Where an installed package says why nothing is compiled (``fxframework.kernels.native``)."""


def building() -> Any:
    """Return ``fxframework.kernels.building``, from the sources or as installed.

    The package around it is not imported: what it depends on is not there while it is built.
    """
    here = Path(__file__).parent / HOST / "fxframework"
    if here.is_dir() and "fxframework" not in sys.modules:
        package = ModuleType("fxframework")
        package.__path__ = [str(here)]
        sys.modules["fxframework"] = package
    from fxframework.kernels import building as found

    return found


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A temporary folder, which is removed when the build fails or is terminated, too."""
    with tempfile.TemporaryDirectory(prefix="fxf-kernels-") as folder:
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            yield Path(folder)
        finally:
            signal.signal(signal.SIGTERM, before)


class KernelBuildHook(BuildHookInterface[Any]):
    """Compiles kernels into the wheel, or in place for an editable install."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """What the build needs beside ``build-system.requires``: a compiler where there is none."""
        if os.environ.get("FXF_NATIVE") == "never" or self.target_name != "wheel":
            return []
        return ["ziglang>=0.13"] if building().zig_is_wanted() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and enter what came of it in ``build_data``."""
        if self.target_name != "wheel":
            return
        wish = os.environ.get("FXF_NATIVE", "")
        if wish not in {"", "never", "require"}:
            raise ValueError(f"FXF_NATIVE is {wish!r}; it can be 'never' or 'require'")
        editable = version == "editable"
        root = Path(self.root)
        if editable:
            (root / HOST / NOTE).unlink(missing_ok=True)
        with contextlib.ExitStack() as stack:
            self.work = stack.enter_context(scratch())
            self.compile(build_data, wish, root, editable=editable)
            self.kept = stack.pop_all()  # the wheel takes files from there

    def compile(self, build_data: dict[str, Any], wish: str, root: Path, *, editable: bool) -> None:
        """Compile the kernels, or leave a note why they are not."""
        packages = [root / name for name in self.build_config.packages]
        work = self.work
        if wish == "never":
            self.app.display_info("FXF_NATIVE=never: the kernels stay plain Python")
            building().remove_compiled(packages if editable else [])
            self.leave_note("FXF_NATIVE=never was set when it was installed", build_data, editable)
            return
        say = self.app.display_info
        built: dict[str, Path] = {}
        try:
            if editable:
                building().update_in_place(root, packages, work, say)
            else:
                sources = building().Sources(packages)
                built = building().compile_kernels(sources, work, say)
                for name, header in sources.generated(work).items():
                    build_data["force_include"][str(header)] = self.place(name)
        except (Exception, SystemExit) as problem:  # a compiler fails in many ways
            if wish == "require" or isinstance(problem, building().DeclarationError):
                raise
            self.app.display_warning(
                f"The kernels were not compiled: {problem}\n"
                "A pure Python wheel is built. It cannot read logs, XRay traces and other "
                "declared formats, and it reads other bulk data about 50 times slower.\n"
                "Install a C compiler, or let pip fetch `ziglang`, and install again; "
                "FXF_NATIVE=require makes this an error."
            )
            building().remove_compiled(packages if editable else [])
            self.leave_note(f"compiling failed: {problem}", build_data, editable)
            return
        for module, file in built.items():
            target = "/".join((*module.split(".")[:-1], file.name))
            build_data["force_include"][str(file)] = self.place(target)
        build_data["pure_python"] = False
        build_data["tag"] = self.wheel_tag()

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was only needed to build."""
        kept = getattr(self, "kept", None)
        if kept is not None:
            kept.close()

    def leave_note(self, text: str, build_data: dict[str, Any], editable: bool) -> None:
        """Say in the installed package why nothing is compiled, where it has the place for it."""
        place = Path(self.root, HOST, NOTE)
        if not place.parent.exists():
            return
        if not editable:
            place = self.work / place.name
            build_data["force_include"][str(place)] = self.place(NOTE)
        place.write_text(f"{' '.join(text.split())}\n", "utf-8")

    def place(self, target: str) -> str:
        """Return what hatchling makes of a place in the wheel: it drops the leading folders."""
        for name in self.build_config.packages:
            folder, _, package = name.rpartition("/")
            if target.startswith(f"{package}/") and folder:
                return f"{folder}/{target}"
        return target

    def wheel_tag(self) -> str:
        """The tag of a wheel with compiled kernels."""
        python, abi, platform = self.build_config.builder.get_best_matching_tag().split("-")
        if building().uses_stable_interface():
            python, abi = "cp{}{}".format(*building().OLDEST), "abi3"
        return f"{python}-{abi}-{platform}"


def main() -> None:
    """Compile in place: what an editable install does, with all that the compiler says."""
    import tomllib

    root = Path(__file__).parent
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
    names = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    packages = [root / name for name in names]
    with scratch() as work:
        building().update_in_place(root, packages, work, print)
    (root / HOST / NOTE).unlink(missing_ok=True)


if __name__ == "__main__":
    main()
