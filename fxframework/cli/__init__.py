"""The command line, ``fxf``: one command per file; ``render`` owns what a person sees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fxframework.host import Host

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None, *, host: Host | None = None) -> int:
    """Run ``fxf`` with these arguments (those of the process if None); gives the exit status.

    Never raises for what a command meets: every error becomes a message and a status. ``host``
    replaces the installed plugins.
    """
    from fxframework.cli.app import run

    return run(arguments, host=host)
