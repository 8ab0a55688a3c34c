"""Guard: stops a command that exceeds its time or memory, even in uninterruptible code."""

from __future__ import annotations

import _thread
import contextlib
import os
import sys
import threading
import time
from typing import TYPE_CHECKING, Self

from fxframework.errors import ExitCode, FxError

if TYPE_CHECKING:
    from fxframework.cli.render import Screen
    from fxframework.io.budget import Budget

INTERVAL = 0.05
"""Seconds between two checks of time and memory."""
GRACE = 2.0
"""Seconds that an interrupted command has before its process is ended."""


class Guard:
    """A context manager that checks a budget from another thread while a command runs.

    When the budget is exceeded, the command is interrupted and ends with a LimitError. Code that
    cannot be interrupted, such as a long sort, gets ``GRACE`` seconds; then the process is ended
    with the same message and status if ``owns_process`` allows it.
    """

    def __init__(self, budget: Budget, screen: Screen, *, owns_process: bool) -> None:
        self._budget = budget
        self._screen = screen
        self._owns_process = owns_process
        self._done = threading.Event()
        self._error: FxError | None = None
        self._thread: threading.Thread | None = None
        self._lost = False
        """Whether the interrupt came in code that cannot raise it, such as a destructor."""
        self._hook = sys.unraisablehook
        self.has_interrupted = False
        """Whether the guard interrupted the command: any exception may be what became of that."""

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._thread = threading.Thread(target=self._watch, name="fxf guard", daemon=True)
            self._hook = sys.unraisablehook
            sys.unraisablehook = self._note_unraisable
            self._thread.start()
        return self

    def _note_unraisable(self, unraisable: sys.UnraisableHookArgs) -> None:
        """Note that Python dropped the interrupt; pass on other exceptions that it drops."""
        if self._error is not None and issubclass(unraisable.exc_type, KeyboardInterrupt):
            self._lost = True
        else:
            self._hook(unraisable)

    def _watch(self) -> None:
        while not self._done.wait(INTERVAL):
            self._error = self._budget.exceeded()
            if self._error is not None:
                self._interrupt()
                if not self._done.is_set() and self._owns_process:
                    self._end_process(self._error)
                return

    def _interrupt(self) -> None:
        """Interrupt the command, again if the interrupt is lost, and wait for its end."""
        end = time.monotonic() + GRACE
        self.has_interrupted = True
        self._lost = True  # so that the loop sends the first one, too
        while not self._done.is_set() and time.monotonic() < end:
            if self._lost:
                self._lost = False
                _thread.interrupt_main()
            self._done.wait(INTERVAL)

    def _end_process(self, error: FxError) -> None:
        with contextlib.suppress(Exception):  # the process must end in any case
            self._screen.error(error)
            sys.stderr.flush()
        os._exit(ExitCode.FAILED)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # An interrupt may arrive as late as here: that of the guard, or Ctrl-C.
        interrupt = None
        try:
            self._stop()
        except KeyboardInterrupt as error:
            interrupt = error
            self._stop()
        if self._error is None:
            self._error = self._budget.fault()
        # Any other exception is raised as it is, although the budget is exceeded by now.
        may_be_of_guard = (
            kind is None or issubclass(kind, KeyboardInterrupt | FxError) or self.has_interrupted
        )
        if self._error is not None and may_be_of_guard:
            raise self._error from None
        if interrupt is not None:
            raise interrupt

    def _stop(self) -> None:
        self._done.set()
        if self._thread is not None:
            self._thread.join()
            sys.unraisablehook = self._hook
