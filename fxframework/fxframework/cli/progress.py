"""Progress: shows on a terminal how far a long run is, and how fast."""

from __future__ import annotations

import contextlib
import datetime as dt
import itertools
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator

from fxframework.cli.text import printable

__all__ = ["PATIENCE", "Working", "spinning"]

PATIENCE = 0.5
"""Seconds before progress is shown."""
EVERY = 0.1
"""Seconds between two frames of the spinner."""
MEGABYTE = 1e6
TURNS = "|/-\\"
WIDTH = 80
"""Columns of a terminal that does not report its width."""
GREEN, PLAIN, ERASE = "\x1b[32m", "\x1b[0m", "\x1b[K"
"""Escape sequences; ERASE clears the rest of the line."""


class Working:
    """Progress of a long operation; call it with the bytes done so far."""

    def __init__(self, label: str, noun: str) -> None:
        self.label = label
        self._noun = noun
        self._done = 0
        self._total = 0
        self._poll_done: Callable[[], int] | None = None
        self._poll_read: Callable[[], int] | None = None
        self._items = (0, 0)
        self._begin = time.monotonic()

    def __call__(self, done: int) -> None:
        """Set the number of bytes done."""
        self._done = done

    def watch(
        self, done: Callable[[], int], *, read: Callable[[], int] | None = None, total: int = 0
    ) -> None:
        """Poll these functions for the bytes done, and for the bytes read of ``total``."""
        self._poll_done = done
        self._poll_read = read
        self._total = total

    def count(self, count: int, items: int, done: int, total: int) -> None:
        """Set the numbers of items and bytes done, and their totals."""
        self._items = count, items
        self._poll_read = lambda: done
        self._total = total

    def text(self) -> str:
        """Return the text after the spinner: ``converting a.fxt  42 %, 61.2 MB/s, 3 s left``."""
        done = self._poll_done() if self._poll_done is not None else self._done
        read = self._poll_read() if self._poll_read is not None else 0
        parts = []
        if self._total and read:
            parts.append(f"{min(100 * read // self._total, 100)} %")
        count, items = self._items
        if items:
            parts.append(f"{count:,} of {items:,}")
        passed = max(time.monotonic() - self._begin, 1e-3)
        pace = (read or done) / passed / MEGABYTE
        if read or done:
            parts.append(f"{pace:,.1f} MB/s")
        if self._total and read:
            left = passed * max(self._total - read, 0) / read
            parts.append(f"{left / 60:.0f} min left" if left >= 120 else f"{left:.0f} s left")
        if done:
            parts.append(f"{done / MEGABYTE:,.1f} MB {self._noun}".rstrip())
        return f"{self.label}  {', '.join(parts)}" if parts else self.label


@contextlib.contextmanager
def spinning(working: Working, *, coloured: bool) -> Iterator[None]:
    """Show a spinner and the progress on stderr, after ``PATIENCE`` seconds."""
    stop = threading.Event()
    thread = threading.Thread(target=_spin, args=(working, stop, coloured), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _spin(working: Working, stop: threading.Event, coloured: bool) -> None:
    if stop.wait(PATIENCE):
        return
    colour, plain = (GREEN, PLAIN) if coloured else ("", "")
    begin = time.monotonic() - PATIENCE
    try:
        for turn in itertools.cycle(TURNS):
            passed = str(dt.timedelta(seconds=int(time.monotonic() - begin)))
            # Leave a column free: some terminals wrap after the last one.
            room = max(0, _columns() - len(passed) - 4)
            line = f"\r{colour}{turn}{plain} {printable(working.text())[:room]} {passed}{ERASE}"
            _show(line)
            if stop.wait(EVERY):
                break
        _show(f"\r{ERASE}")
    except (OSError, ValueError):
        return  # the terminal is gone


def _show(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def _columns() -> int:
    """Return the width of the terminal on standard error."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError):
        return WIDTH
