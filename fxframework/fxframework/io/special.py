"""Special files: pipes, sockets and devices, which may make a reader wait forever."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from fxframework.errors import UnreadableError

__all__ = ["kind_of_mode", "refuse_special"]

KINDS = {stat.S_IFIFO: "pipe", stat.S_IFSOCK: "socket", stat.S_IFCHR: "device",
         stat.S_IFBLK: "device"}  # fmt: skip


def kind_of_mode(mode: int) -> str:
    """Return ``pipe``, ``socket`` or ``device`` for a file's mode; an empty string for others."""
    return KINDS.get(stat.S_IFMT(mode), "")


def refuse_special(path: str | os.PathLike[str], reader: str) -> None:
    """Raise UnreadableError for a pipe, socket or device; ``reader`` says who would read it."""
    try:
        kind = kind_of_mode(Path(path).stat().st_mode)
    except OSError:  # opening it reports this
        return
    if kind:
        raise UnreadableError(
            f"{reader} cannot read a {kind}",
            path=os.fspath(path),
            remedy="store what it gives in a file, and name that",
        )
