"""Progress: shows on a terminal how far a long run is, and how fast."""

from __future__ import annotations

import contextlib
import datetime as dt
import itertools
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fxframework.io.source import Source

__all__ = ["ERASE", "PATIENCE", "Working", "spinning"]

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
    """Progress of a long operation.

    It is set by a call with the bytes done, and how many of ``total`` bytes are read, or by
    ``count``; or it is polled: the bytes read are then the positions of ``sources``. A pass that
    begins again at the beginning of the input is another pass, with a pace of its own.
    """

    def __init__(self, label: str, noun: str, sources: Sequence[Source] = ()) -> None:
        self.label = label
        self._noun = noun
        self._sources = sources
        self._done = self._read = 0
        self._total = sum(source.size for source in sources)
        self._written: Callable[[], int] | None = None
        self._items = (0, 0)
        self._begin = time.monotonic()
        self._passes = 1

    def __call__(self, done: int, read: int = 0, total: int = 0) -> None:
        """Set the bytes done, and how many of ``total`` bytes were read for them."""
        self._done, self._read, self._total = done, read, total

    def watch(self, written: Callable[[], int]) -> None:
        """Poll this function for the bytes done."""
        self._written = written

    def count(self, count: int, items: int, done: int, total: int) -> None:
        """Set the numbers of items and bytes done, and their totals."""
        self._items = count, items
        self._read, self._total = done, total

    def _poll(self) -> None:
        if self._written is not None:
            self._done = self._written()
        if not self._sources:
            return
        read = sum(source.position for source in self._sources)
        if read < self._read - self._total // 2:
            self._passes += 1
            self._begin = time.monotonic()
            self._read = read
        self._read = max(self._read, read)

    def text(self, room: int | None = None) -> str:
        """Return the text after the spinner: ``converting a.fxt  42 %, 61.2 MB/s, 3 s left``.

        To fit in ``room`` characters, the label is cut, and not the figures.
        """
        self._poll()
        done, read = self._done, self._read
        parts = []
        if self._total and read:
            again = f"pass {self._passes}: " if self._passes > 1 else ""
            parts.append(f"{again}{min(100 * read // self._total, 100)} %")
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
        figures = f"  {', '.join(parts)}" if parts else ""
        return (
            shortened(self.label, room - len(figures)) + figures if room else self.label + figures
        )


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
            line = f"\r{colour}{turn}{plain} {working.text(room)[:room]} {passed}{ERASE}"
            _show(line)
            if stop.wait(EVERY):
                break
        _show(f"\r{ERASE}")
    except (OSError, ValueError):
        return  # the terminal is gone


def shortened(text: str, room: int) -> str:
    """Return a text of at most ``room`` characters: its beginning and, mostly, its end."""
    if len(text) <= room:
        return text
    first = max(room // 3, 0)
    last = max(room - first - 1, 0)
    return f"{text[:first]}…{text[len(text) - last :]}"


def _show(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def _columns() -> int:
    """Return the width of the terminal on standard error."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError):
        return WIDTH
