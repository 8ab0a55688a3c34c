"""Native programs on the emulated target: C, C++ and Rust writers on an emulated x86-64 CPU.

``Target.load`` returns a ``NativeProgram``; ``explore`` runs its threads in all orders within a
bound. Needs the extra ``native`` (unicorn, pyelftools, capstone). See docs/native.md.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fx_emulator.native.errors import (
        BudgetError,
        Frame,
        LoadError,
        MissingPackageError,
        NativeError,
    )
    from fx_emulator.native.exploration import Exploration, explore
    from fx_emulator.native.program import NativeEntry, NativeProgram, Store, StoreTrace
    from fx_emulator.native.threads import NativeThread

_MODULES = {
    "errors": ("BudgetError", "Frame", "LoadError", "MissingPackageError", "NativeError"),
    "exploration": ("Exploration", "explore"),
    "program": ("NativeEntry", "NativeProgram", "Store", "StoreTrace"),
    "threads": ("NativeThread",),
}

__all__ = [
    "BudgetError", "Exploration", "Frame", "LoadError", "MissingPackageError", "NativeEntry",
    "NativeError", "NativeProgram", "NativeThread", "Store", "StoreTrace", "explore",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(importlib.import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
