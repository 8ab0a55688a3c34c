"""C++ and Rust names as their source has them, spelled as LLVM spells them."""

from __future__ import annotations

__all__ = ["demangle"]


def demangle(name: str) -> str:
    """Return the name as in its source; the name itself where it is not mangled, or not understood.

    The library limits how deep a name nests and how long it becomes. Where LLVM writes ``auto`` for
    a parameter of a generic lambda's call, it writes the type.
    """
    if not name.startswith(("_Z", "__Z", "_R")):
        return name
    import demangle as library

    return library.demangle(name, language="rust" if name.startswith("_R") else "itanium")
