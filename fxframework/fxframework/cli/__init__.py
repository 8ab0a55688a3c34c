"""The command line, ``fxf``: one command per module; ``render`` prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fxframework.host import Host

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None, *, host: Host | None = None) -> int:
    """Run ``fxf`` with these arguments (None: those of the process); return the exit status.

    Errors of commands become messages and statuses, never exceptions. ``host`` replaces the
    installed plugins.
    """
    from fxframework.cli.app import run

    return run(arguments, host=host)
