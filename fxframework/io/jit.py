"""Kernels: hot loops whose plain-Python body is the reference, compiled by numba when it pays.

``@kernel`` marks a function over arrays and ints. Nothing is imported or compiled until a kernel
is asked to run on a large input; small inputs run the same body over memoryviews. Compiled code
is kept in a folder of ours that is keyed by the hash of the kernels' packages and the versions
of numba and numpy, because numba's own check misses a changed helper in another file.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import os
import shutil
import sys
import tempfile
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

__all__ = ["Kernel", "cache_root", "kernel", "numba_available"]

SMALL = 1 << 20
"""Inputs below this many bytes run as plain Python even where compiled code is at hand."""
KEPT_DAYS = 30
"""Compiled code of other versions stays for so long."""
SMALL_COLD = 4 << 20
"""The same where it would have to be compiled first."""


def numba_available() -> bool:
    """Whether numba is installed here (it may not support a new interpreter yet)."""
    if os.environ.get("FXF_NO_NUMBA"):
        return False
    return importlib.util.find_spec("numba") is not None


def cache_root() -> Path:
    """The folder of compiled kernels: ``$FXF_CACHE_DIR``, or one in the user's cache folder."""
    chosen = os.environ.get("FXF_CACHE_DIR")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    if base:
        return Path(base) / "fxframework"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "fxframework"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "fxframework" / "Cache"
    return Path.home() / ".cache" / "fxframework"


class Kernel:
    """One hot loop, runnable as plain Python or compiled."""

    def __init__(self, body: Callable[..., Any]) -> None:
        self.body = body
        self._dispatcher: Any = None
        functools.update_wrapper(self, body)

    def __call__(self, *arguments: Any) -> Any:
        """Run the plain body, as another kernel's plain body does."""
        return self.body(*arguments)

    def helpers(self) -> Iterator[Kernel]:
        """The kernels that this one calls by global name."""
        for name in self.body.__code__.co_names:
            value = self.body.__globals__.get(name)
            if isinstance(value, Kernel):
                yield value

    def packages(self) -> set[str]:
        """Top-level packages whose sources this kernel is made of."""
        found = {self.body.__module__.partition(".")[0]}
        for helper in self.helpers():
            found |= helper.packages()
        return found

    def compiled(self) -> Any:
        """The numba dispatcher, compiled on its first call or taken from the cache."""
        if self._dispatcher is None:
            import numba

            scope = dict(self.body.__globals__)
            for helper in self.helpers():
                scope[helper.body.__name__] = helper.compiled()
            function = types.FunctionType(
                self.body.__code__, scope, self.body.__name__, self.body.__defaults__
            )
            function.__module__ = self.body.__module__
            function.__qualname__ = self.body.__qualname__
            directory = self.cache_directory()
            with _numba_cache(directory):
                self._dispatcher = numba.njit(cache=directory is not None, nogil=True)(function)
        return self._dispatcher

    def cache_directory(self) -> Path | None:
        """Where this kernel's compiled code is kept; None where nothing can be written."""
        return _directory(tuple(sorted(self.packages())))

    def is_cached(self) -> bool:
        """Whether compiled code of this very source is at hand."""
        if self._dispatcher is not None:
            return True
        directory = self.cache_directory()
        if directory is None:
            return False
        pattern = f"**/*.{self.body.__name__}-*.nbi"
        return next(directory.glob(pattern), None) is not None

    def for_size(self, nbytes: int) -> Callable[..., Any]:
        """The fastest way to run this kernel over an input of ``nbytes`` bytes, all told."""
        if not numba_available() or nbytes < SMALL:
            return self.plain
        if nbytes < SMALL_COLD and not self.is_cached():
            return self.plain
        return self.compiled()  # type: ignore[no-any-return]

    def plain(self, *arguments: Any) -> Any:
        """Run the plain body; arrays become memoryviews, whose elements are Python numbers."""
        return self.body(*(_plain(argument) for argument in arguments))


def kernel(body: Callable[..., Any]) -> Kernel:
    """Mark a function as a kernel. Its helpers are kernels too, called by their global names."""
    return Kernel(body)


def _plain(argument: Any) -> Any:
    if isinstance(argument, tuple):
        values = [_plain(value) for value in argument]
        return type(argument)(*values) if hasattr(argument, "_fields") else tuple(values)
    if hasattr(argument, "__array_interface__"):
        return memoryview(argument)
    return argument


@functools.cache
def _directory(packages: tuple[str, ...]) -> Path | None:
    from importlib.metadata import version

    digest = hashlib.sha256()
    for package in packages:
        module = sys.modules[package]
        for folder in sorted(module.__path__):
            for file in sorted(Path(folder).rglob("*.py")):
                digest.update(file.read_bytes())
    for name in ("numba", "numpy"):
        digest.update(f"{name}=={version(name)};".encode())
    directory = cache_root() / "kernels" / digest.hexdigest()[:20]
    try:
        if not directory.exists():
            directory.mkdir(parents=True, exist_ok=True)
            _forget_old(directory)
        with tempfile.TemporaryFile(dir=directory):
            pass
    except OSError:
        return None
    return directory


def _forget_old(newest: Path) -> None:
    """Remove what was compiled from sources that have not been used for long."""
    before = time.time() - KEPT_DAYS * 86400
    for folder in newest.parent.iterdir():
        if folder != newest and folder.stat().st_mtime < before:
            shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _numba_cache(directory: Path | None) -> Iterator[None]:
    """Point numba's cache at ``directory`` while a dispatcher is made, and only then."""
    from numba.core import config

    before = config.CACHE_DIR
    if directory is not None:
        config.CACHE_DIR = str(directory)
    try:
        yield
    finally:
        config.CACHE_DIR = before
