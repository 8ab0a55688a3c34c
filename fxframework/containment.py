"""Containment: code of a plugin cannot print into the output, nor end the program.

A plugin that calls ``sys.exit()`` or raises KeyboardInterrupt makes the same mistake as one that
raises any other exception, and is blamed for it. What it prints goes to standard error.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any, Self

__all__ = ["EscapeError", "Interrupts", "PrintGuard", "contained", "escape"]


class EscapeError(Exception):
    """A plugin tried to end the program; its traceback is that of what the plugin raised."""


@contextlib.contextmanager
def contained() -> Iterator[None]:
    """Run code of a plugin: what it prints goes to standard error, and SystemExit is an error.

    Raises EscapeError for SystemExit and for any other BaseException that is not an Exception, but
    for KeyboardInterrupt, which may be the user's.
    """
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    except (Exception, KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001 (it is raised again, as an error)
        raise escape(error) from None


def escape(error: BaseException) -> EscapeError:
    """The error for what a plugin raised to end the program, with its traceback."""
    text = " ".join(str(error).split())
    message = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return EscapeError(message).with_traceback(error.__traceback__)


class Interrupts:
    """Whether the user asked the program to stop, as opposed to a plugin. A context manager."""

    def __init__(self) -> None:
        self.by_user = False
        """Whether SIGINT came; True where that cannot be known."""
        self._before: Any = None

    def __enter__(self) -> Self:
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._before = signal.signal(signal.SIGINT, self._come)
        else:
            self.by_user = True
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _come(self, number: int, frame: FrameType | None) -> None:
        self.by_user = True
        signal.default_int_handler(number, frame)


class PrintGuard:
    """Standard output while a command of ours runs: its bytes are ours, text goes to stderr.

    We write bytes alone; who prints text is a plugin, and would break the output.
    """

    def __init__(self, stdout: Any) -> None:
        self._stdout = stdout
        self.modules: list[str] = []
        """The modules that printed, each once."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stdout, name)

    def write(self, text: str) -> int:
        """Write text to standard error, and remember whose it is."""
        frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 (documented; `inspect` uses it)
        module = "" if frame is None else str(frame.f_globals.get("__name__", ""))
        if module not in self.modules:
            self.modules.append(module)
        return sys.stderr.write(text)

    def writelines(self, lines: Any) -> None:
        """Write lines of text to standard error."""
        for line in lines:
            self.write(line)

    @classmethod
    @contextlib.contextmanager
    def around(cls) -> Iterator[PrintGuard]:
        """Stand in for standard output."""
        before = sys.stdout
        guard = cls(before)
        sys.stdout = guard
        try:
            yield guard
        finally:
            if sys.stdout is guard:
                sys.stdout = before
