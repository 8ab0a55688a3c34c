"""Whether kernels run compiled or as plain Python, and why.

``FXF_NATIVE=never`` imports the plain Python of every kernel, ``FXF_NATIVE=require`` refuses to
import a kernel that is not compiled.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

__all__ = [
    "KernelFinder",
    "StaleKernelWarning",
    "digest_of",
    "install",
    "is_compiled",
    "register",
    "state_of",
]

COMPILED: dict[str, str] = {}
"""By the name of each compiled kernel that was imported: what is wrong with it, or nothing."""
EXTENSIONS = tuple(importlib.machinery.EXTENSION_SUFFIXES)


class StaleKernelWarning(UserWarning):
    """A compiled kernel is not of the source beside it."""


class KernelFinder:
    """Finds kernels as FXF_NATIVE asks for; ``never`` their plain Python, ``require`` compiled."""

    def __init__(self, wish: str) -> None:
        self.wish = wish

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> importlib.machinery.ModuleSpec | None:
        """The spec of a kernel; None for every other module. ImportError as ``require`` asks."""
        stem = name.rpartition(".")[2]
        for folder in path or ():
            source = os.path.join(folder, f"{stem}.py")  # noqa: PTH118 (fast: on every import)
            if os.path.exists(f"{source[:-3]}.pxd") and os.path.exists(source):  # noqa: PTH110
                if self.wish == "never":
                    return importlib.util.spec_from_file_location(name, source)
                if not any(os.path.exists(source[:-3] + suffix) for suffix in EXTENSIONS):  # noqa: PTH110
                    raise ImportError(
                        f"{name} is not compiled, and FXF_NATIVE=require asks for it: install "
                        "fxframework where there is a C compiler, or unset FXF_NATIVE"
                    )
        return None


def install(wish: str) -> None:
    """Have kernels imported as ``never`` or ``require`` asks for; ValueError for anything else."""
    if wish not in {"never", "require"}:
        raise ValueError(f"FXF_NATIVE is {wish!r}; it can be 'never' or 'require'")
    sys.meta_path.insert(0, KernelFinder(wish))


def digest_of(source: Path) -> str:
    """What tells whether a compiled kernel is of this source."""
    import hashlib

    digest = hashlib.sha256()
    for file in (source, source.with_suffix(".pxd")):
        digest.update(file.read_bytes().replace(b"\r\n", b"\n"))
    return digest.hexdigest()[:32]


def register(name: str, file: str, digest: str) -> None:
    """Called by each compiled kernel as it is imported; warns where its source was edited since."""
    COMPILED[name] = ""
    compiled = Path(file)
    source = compiled.with_name(compiled.name.partition(".")[0] + ".py")
    try:
        built = compiled.stat().st_mtime
        edited = max(source.stat().st_mtime, source.with_suffix(".pxd").stat().st_mtime)
        if edited <= built or digest_of(source) == digest:
            return
    except OSError:
        return  # without the source there is nothing to be stale against
    COMPILED[name] = "its source was edited since it was compiled"
    warnings.warn(
        f"{name} runs compiled code that is older than {source.name}: install the project again "
        "(`pip install -e .`), or set FXF_NATIVE=never",
        StaleKernelWarning,
        stacklevel=2,
    )


def is_compiled(name: str) -> bool:
    """Whether a kernel that was imported runs compiled."""
    return name in COMPILED


def state_of(name: str) -> tuple[str, str]:
    """("compiled" or "plain", why) of a kernel, which is imported for it."""
    importlib.import_module(name)
    if name in COMPILED:
        return "compiled", COMPILED[name]
    if os.environ.get("FXF_NATIVE") == "never":
        return "plain", "FXF_NATIVE=never"
    return "plain", "the install had no working C compiler, or FXF_NATIVE=never was set for it"
