"""Controls and reports whether kernels run compiled or as plain Python.

``FXF_NATIVE=never`` imports every kernel as plain Python, ``FXF_NATIVE=require`` makes the import
of a kernel that is not compiled an error.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

__all__ = [
    "KernelFinder",
    "StaleKernelWarning",
    "State",
    "digest_of",
    "install",
    "is_compiled",
    "is_kernel",
    "kernels_of",
    "register",
    "sources_of",
    "stale_kernels",
    "state_of",
]

COMPILED: dict[str, bool] = {}
"""By name of each imported compiled kernel: whether its source was edited since compilation."""
BUILD_NOTE = Path(__file__).with_name("build.txt")
"""The file in which the build hook says why it could not compile."""
EXTENSIONS = tuple(importlib.machinery.EXTENSION_SUFFIXES)


class State(NamedTuple):
    """How the kernels of a package run."""

    how: str
    """``compiled``, ``plain``, or ``none`` if there are no kernels."""
    why: str
    """Why they run as plain Python."""


class StaleKernelWarning(UserWarning):
    """A compiled kernel is older than its source."""


class KernelFinder:
    """Import finder for FXF_NATIVE: ``never`` finds plain Python, ``require`` compiled kernels."""

    def __init__(self, wish: str) -> None:
        self.wish = wish

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of a plain kernel, or None. Raises ImportError for ``require``."""
        stem = name.rpartition(".")[2]
        for folder in path or ():
            source = os.path.join(folder, f"{stem}.py")  # noqa: PTH118 (fast: on every import)
            if os.path.exists(source) and is_kernel(Path(source).read_bytes()):  # noqa: PTH110
                if self.wish == "never":
                    return importlib.util.spec_from_file_location(name, source)
                if not any(os.path.exists(source[:-3] + suffix) for suffix in EXTENSIONS):  # noqa: PTH110
                    raise ImportError(
                        f"{name} is not compiled, and FXF_NATIVE=require asks for it: install "
                        "fxframework where there is a C compiler, or unset FXF_NATIVE"
                    )
        return None


def is_kernel(source: bytes) -> bool:
    """Return whether the source of a module is a kernel's: it imports names of types."""
    at = source.find(b"fxframework.kernels.annotations import")
    before = source[: max(at, 0)]
    # Not in a text, as that of a test.
    in_text = before.count(b'"""') % 2 or before.count(b"'''") % 2
    return at >= 0 and before.rpartition(b"\n")[2] == b"from " and not in_text


def install(wish: str) -> None:
    """Install the finder for ``never`` or ``require``. Raises ValueError for other values."""
    if wish not in {"never", "require"}:
        raise ValueError(f"FXF_NATIVE is {wish!r}; it can be 'never' or 'require'")
    sys.meta_path.insert(0, KernelFinder(wish))


def digest_of(files: Sequence[str]) -> str:
    """Return a digest of the sources of a kernel. Raises OSError if one is missing.

    Of the first file it has all, of the other kernels what is declared.
    """
    import hashlib

    digest = hashlib.sha256()
    for number, file in enumerate(files):
        source = Path(file).read_bytes().replace(b"\r\n", b"\n")
        digest.update(_outline(source) if number and is_kernel(source) else source)
    return digest.hexdigest()[:32]


def _outline(source: bytes) -> bytes:
    """Return the lines of a kernel that are outside of its methods, and their signatures."""
    found = []
    within = False
    for line in source.split(b"\n"):
        begins = line.lstrip().startswith(b"def ")
        if begins or within or not line.startswith(b"        "):
            found.append(line)
            within = (begins or within) and not line.endswith(b":")
    return b"\n".join(found)


def register(name: str, file: str, digest: str, uses: Sequence[str] = ()) -> None:
    """Register a compiled kernel on import, and warn if its sources were edited since.

    ``uses`` names the modules whose declarations it was compiled with; ``digest`` is of its
    source and those.
    """
    COMPILED[name] = False
    source = sources_of(file, uses, _path_of)
    try:
        built = os.stat(file).st_mtime_ns  # noqa: PTH116 (fast: on every import)
        edited = {each: os.stat(each).st_mtime_ns for each in source}  # noqa: PTH116
        latest = max(edited, key=edited.__getitem__)
        if edited[latest] <= built or digest_of(source) == digest:
            return
    except OSError:
        return  # without sources it cannot be stale
    COMPILED[name] = True
    warnings.warn(
        f"{name} runs compiled code that is older than {latest}: install the project again "
        "(`pip install -e .`), or set FXF_NATIVE=never",
        StaleKernelWarning,
        stacklevel=2,
    )


def _path_of(name: str) -> str:
    """Return the path of the source of a module of an imported package."""
    package, *inside = name.split(".")
    module = sys.modules.get(package)
    roots = list(module.__path__) if module is not None else [""]
    return os.sep.join((roots[0], *inside)) + ".py"  # noqa: PTH118


def sources_of(file: str, uses: Sequence[str], path_of: Callable[[str], str]) -> list[str]:
    """Return the paths of a kernel's source, and of those that it uses."""
    folder, _, base = file.rpartition(os.sep)
    return [f"{folder}{os.sep}{base.partition('.')[0]}.py", *map(path_of, uses)]


def is_compiled(name: str) -> bool:
    """Return whether an imported kernel runs compiled."""
    return name in COMPILED


def kernels_of(package: str) -> dict[str, Path]:
    """Return the sources of a package's kernels by name, without importing them."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):  # a module without a spec
        return {}
    found = {}
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        for source in sorted(Path(folder).rglob("*.py")):
            if is_kernel(source.read_bytes()):
                name = ".".join((package, *source.relative_to(folder).with_suffix("").parts))
                found[name] = source
    return found


def state_of(package: str) -> State:
    """Return how the kernels of a package run, and why, without importing them."""
    kernels = kernels_of(package)
    if not kernels:
        return State("none", "")
    if os.environ.get("FXF_NATIVE") == "never":
        return State("plain", "FXF_NATIVE=never is set")
    plain = [
        name
        for name, source in kernels.items()
        if not any(source.with_name(source.stem + suffix).exists() for suffix in EXTENSIONS)
    ]
    if not plain:
        return State("compiled", "")
    try:
        why = BUILD_NOTE.read_text("utf-8").strip()
    except OSError:
        why = "it was not compiled during installation"
    return State("plain", why if len(plain) == len(kernels) else f"{', '.join(plain)}: {why}")


def stale_kernels(package: str) -> list[str]:
    """Import the kernels of a package; return those whose source was edited since compilation."""
    kernels = kernels_of(package)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StaleKernelWarning)
        for name in kernels:
            importlib.import_module(name)
    return [name for name in kernels if COMPILED.get(name)]
