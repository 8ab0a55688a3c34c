# mypy: disable-error-code="name-defined"
"""Faults of mapped files: a page that the file has lost is read as zeros, and noted.

Without this, reading it would end the process (SIGBUS). The functions of C are in the header.
"""

from __future__ import annotations

try:
    import cython
except ImportError:  # Cython is only needed to compile
    from fxframework.io import plain as cython

__all__ = ["forget", "was_hit", "watch"]


def watch(start: int, nbytes: int) -> int:
    """Watch ``nbytes`` bytes of mapped memory from address ``start``.

    Return the number for ``was_hit`` and ``forget``; -1 if they cannot be watched: in plain
    Python, on Windows, and beyond 1,024 files.
    """
    if cython.compiled:
        return fxf_watch(start, nbytes)  # type: ignore[no-any-return]  # noqa: F821
    return -1


def was_hit(slot: int) -> bool:
    """Return whether a page of watched memory could not be read."""
    if cython.compiled:
        return bool(fxf_was_hit(slot))  # noqa: F821
    return False


def forget(slot: int) -> None:
    """Stop watching, before the memory is unmapped."""
    if cython.compiled:
        fxf_forget(slot)  # noqa: F821
