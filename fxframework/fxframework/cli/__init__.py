"""The command line, ``fxf``: one command per module; ``render`` prints."""

from __future__ import annotations

import signal
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from fxframework.host import Host

__all__ = ["main"]

INTERRUPTED = 130
"""The exit status after Ctrl-C."""


def main(arguments: Sequence[str] | None = None, *, host: Host | None = None) -> int:
    """Run ``fxf`` with these arguments (None: those of the process); return the exit status.

    Errors of commands become messages and statuses, never exceptions. ``host`` replaces the
    installed plugins.
    """
    default = (
        arguments is None
        and threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if default:  # Ctrl-C while modules are imported ends the process, without a traceback
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from fxframework.cli.app import run

    try:
        if default:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        return run(arguments, host=host)
    except KeyboardInterrupt:
        return INTERRUPTED
