"""Test helper: runs kernels as plain Python beside the compiled ones, in one process."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Collection, Iterator
from types import ModuleType

from fxframework.kernels.native import KernelFinder

__all__ = ["plain_kernels"]

_PLAIN: dict[str, ModuleType] = {}


def _belongs(name: str, roots: Collection[str]) -> bool:
    root = name.partition(".")[0]
    return root in roots or root.startswith("fx_") or root == "fxframework"


@contextlib.contextmanager
def plain_kernels(*roots: str) -> Iterator[None]:
    """Import fxframework, its plugins and the packages ``roots`` again, with plain Python kernels.

    The two sets of modules must not be mixed: import inside the context, and pass only numbers,
    bytes, text and arrays out of it.

        with plain_kernels():
            import fxframework

            expected = fxframework.open(path).table("slices").array("ts")
    """
    aside = {name: module for name, module in sys.modules.items() if _belongs(name, roots)}
    finder = KernelFinder("never")
    sys.meta_path.insert(0, finder)
    try:
        for name in aside:
            del sys.modules[name]
        sys.modules.update(
            {name: module for name, module in _PLAIN.items() if _belongs(name, roots)}
        )
        importlib.invalidate_caches()
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if _belongs(name, roots)]:
            _PLAIN[name] = sys.modules.pop(name)
        sys.modules.update(aside)
