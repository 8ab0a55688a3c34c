"""The functions that the target provides to native programs: libc, Zircon, installed plugins."""

from __future__ import annotations

import functools
from importlib.metadata import entry_points

from fx_emulator.native.calls import Call
from fx_emulator.native.errors import LoadError
from fx_emulator.native.libc import LIBC
from fx_emulator.native.rust import RUST
from fx_emulator.native.zircon import ZIRCON

GROUP = "fx_emulator.native"
"""Group of entry points that name dicts of functions, in the form of ``symbols=``."""


@functools.cache
def known_calls() -> dict[str, Call]:
    """Return all functions by name: of libc, of Rust, of Zircon, and of installed plugins."""
    calls: dict[str, Call] = {}
    for name, function in (LIBC | RUST | ZIRCON).items():
        calls[name] = Call.of(name, function, bare=False)
    for entry_point in entry_points(group=GROUP):
        functions = entry_point.load()
        if not isinstance(functions, dict):
            raise LoadError(
                f"entry point {entry_point.name!r} of {GROUP} is not a dict of functions"
            )
        for name, function in functions.items():
            calls[name] = Call.of(name, function)
    return calls
