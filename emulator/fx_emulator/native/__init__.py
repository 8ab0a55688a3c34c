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
    "BudgetError": "errors",
    "Exploration": "exploration",
    "Frame": "errors",
    "LoadError": "errors",
    "MissingPackageError": "errors",
    "NativeEntry": "program",
    "NativeError": "errors",
    "NativeProgram": "program",
    "NativeThread": "threads",
    "Store": "program",
    "StoreTrace": "program",
    "explore": "exploration",
}

__all__ = [
    "BudgetError",
    "Exploration",
    "Frame",
    "LoadError",
    "MissingPackageError",
    "NativeEntry",
    "NativeError",
    "NativeProgram",
    "NativeThread",
    "Store",
    "StoreTrace",
    "explore",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
