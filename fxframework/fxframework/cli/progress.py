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

from fxframework.kit.shown import shortened

if TYPE_CHECKING:
    from fxframework.io.source import Source

PATIENCE = 0.5
"""Seconds before progress is shown."""
EVERY = 0.1
"""Seconds between two frames of the spinner."""
MEGABYTE = 1e6
TURNS = "|/-\\"
WIDTH = 80
"""Columns of a terminal that does not report its width."""
# Escape sequences.
GREEN = "\x1b[32m"
PLAIN = "\x1b[0m"
ERASE = "\x1b[K"
"""Clears the rest of the line."""


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
        self._done_bytes = 0
        self._read_bytes = 0
        self._total_bytes = sum(source.size for source in sources)
        self._poll_done: Callable[[], int] | None = None
        self._items = (0, 0)
        self._pass_begin = time.monotonic()
        self._passes = 1

    def __call__(self, done: int, read: int = 0, total: int = 0) -> None:
        """Set the bytes done, and how many of ``total`` bytes were read for them."""
        self._done_bytes = done
        self._read_bytes = read
        self._total_bytes = total

    def watch(self, written: Callable[[], int]) -> None:
        """Poll this function for the bytes done."""
        self._poll_done = written

    def count(self, count: int, items: int, done: int, total: int) -> None:
        """Set the numbers of items and bytes done, and their totals."""
        self._items = (count, items)
        self._read_bytes = done
        self._total_bytes = total

    def _poll(self) -> None:
        if self._poll_done is not None:
            self._done_bytes = self._poll_done()
        if not self._sources:
            return
        read = sum(source.position for source in self._sources)
        # Positions move back a little where a reader looks ahead, and far where a pass begins.
        if read < self._read_bytes - self._total_bytes // 2:
            self._passes += 1
            self._pass_begin = time.monotonic()
            self._read_bytes = read
        self._read_bytes = max(self._read_bytes, read)

    def text(self, room: int | None = None) -> str:
        """Return the text after the spinner: ``converting a.fxt  42 %, 61.2 MB/s, 3 s left``.

        To fit in ``room`` characters, the label is cut, and not the figures.
        """
        self._poll()
        suffix = ", ".join(self._figures())
        if suffix:
            suffix = f"  {suffix}"
        if room:
            return shortened(self.label, room - len(suffix)) + suffix
        return self.label + suffix

    def _figures(self) -> Iterator[str]:
        """Yield what is known: percent, items, pace, time left, and bytes done."""
        done = self._done_bytes
        read = self._read_bytes
        total = self._total_bytes
        seconds = max(time.monotonic() - self._pass_begin, 1e-3)
        if total and read:
            percent = f"{min(100 * read // total, 100)} %"
            yield f"pass {self._passes}: {percent}" if self._passes > 1 else percent
        count, items = self._items
        if items:
            yield f"{count:,} of {items:,}"
        if read or done:
            yield f"{(read or done) / seconds / MEGABYTE:,.1f} MB/s"
        if total and read:
            seconds_left = seconds * max(total - read, 0) / read
            if seconds_left >= 120:
                yield f"{seconds_left / 60:.0f} min left"
            else:
                yield f"{seconds_left:.0f} s left"
        if done:
            yield f"{done / MEGABYTE:,.1f} MB {self._noun}".rstrip()


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
    start = time.monotonic() - PATIENCE
    try:
        for turn in itertools.cycle(TURNS):
            elapsed = str(dt.timedelta(seconds=int(time.monotonic() - start)))
            # Leave a column free: some terminals wrap after the last one.
            room = max(0, _columns() - len(elapsed) - 4)
            line = f"\r{colour}{turn}{plain} {working.text(room)[:room]} {elapsed}{ERASE}"
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
