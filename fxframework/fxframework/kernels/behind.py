"""A second thread for loops that run without the interpreter's lock: kernels, and numpy's."""

from __future__ import annotations

import os
from collections.abc import Callable
from queue import SimpleQueue
from threading import Semaphore, Thread
from types import TracebackType
from typing import Any, Self

__all__ = ["WORTHWHILE", "Behind", "has_cores"]

WORTHWHILE = 4 << 20
"""Bytes to go through from which on a second thread is worth its start."""
PENDING = 2
"""Calls that may wait for the second thread."""
Call = tuple[Callable[..., object], tuple[Any, ...]]


def has_cores() -> bool:
    """Return whether this process may run on more than one core."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0)) > 1
    return (os.cpu_count() or 1) > 1


class Behind:
    """Makes calls on a second thread, one after the other, while the caller goes on.

    Used in a ``with`` statement, after which all calls are done and the thread is gone. The first
    exception of a call drops those behind it, and is raised by ``do`` or at the end; so does an
    exception of the caller. On a single core, and for fewer bytes than are worth a thread, calls
    are made at once: what they do must not depend on that.
    """

    def __init__(self, nbytes: int) -> None:
        self._thread: Thread | None = None
        if nbytes >= WORTHWHILE and has_cores():
            self._thread = Thread(target=self._work, name="fxf behind")
        self._calls: SimpleQueue[Call | None] = SimpleQueue()
        self._room = Semaphore(PENDING)
        self._error: BaseException | None = None
        self._dropped = False

    def __enter__(self) -> Self:
        if self._thread is not None:
            self._thread.start()
        return self

    def do(self, function: Callable[..., object], *arguments: Any) -> None:
        """Have a function called; wait while as many calls are pending as may be."""
        if self._thread is None:
            function(*arguments)
            return
        self._room.acquire()
        if self._error is not None:
            raise self._error
        self._calls.put((function, arguments))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._thread is None:
            return
        self._dropped = error is not None
        self._calls.put(None)
        interrupt = None
        while self._thread.is_alive():
            try:
                self._thread.join()
            except KeyboardInterrupt as later_interrupt:
                # Waits all the same: the thread uses what the caller would free.
                interrupt = later_interrupt
                self._dropped = True
        first_error = interrupt or self._error
        if error is None and first_error is not None:
            raise first_error

    def _work(self) -> None:
        while (next_call := self._calls.get()) is not None:
            function, arguments = next_call
            if not self._dropped:
                try:
                    function(*arguments)
                except BaseException as error:  # noqa: BLE001 (for the caller to raise)
                    self._error = error
                    self._dropped = True
            # The caller may count on the arguments' memory once there is room again.
            del next_call, function, arguments
            self._room.release()
