"""Users' regular expressions, matched against texts of captures in bounded time.

Python's ``re`` backtracks: some patterns take exponential time for a short text, and nothing in
the process can interrupt it. A pattern with a repetition therefore runs in a separate process,
which is killed if it takes too long for the size of the texts.
"""

from __future__ import annotations

import contextlib
import queue
import re
import struct
import subprocess
import sys
import threading
import time
import weakref
from typing import IO

from fxframework.errors import LimitError, UsageError

PATIENCE = 5.0
"""Seconds that a pattern may take beyond the allowance for the texts."""
SECONDS_PER_TEXT = 1e-3
"""Seconds allowed per text."""
SECONDS_PER_BYTE = 5e-6
"""Seconds allowed per byte of the texts."""
START = 30.0
"""Seconds in which the process must start."""
_REPEATS = re.compile(r"[*+{]|\\[1-9]|\(\?P=")
"""What may make a pattern slow: repetitions, and references to groups."""
_LENGTHS = struct.Struct("<qq")
"""The header of a message to and from the process: matches (0 to it), and bytes that follow."""
_WORKER = r"""
import re, struct, sys
lengths = struct.Struct("<qq")
get, put = sys.stdin.buffer, sys.stdout.buffer
def taken():
    return get.read(lengths.unpack(get.read(16))[1]).decode("utf-8", "surrogatepass")
flags, mask = int(taken()), taken()
pattern = re.compile(taken(), flags)
put.write(lengths.pack(0, 0)); put.flush()
while head := get.read(16):
    text = get.read(lengths.unpack(head)[1]).decode("utf-8", "surrogatepass")
    text, count = pattern.subn(lambda found: mask, text)
    data = text.encode("utf-8", "surrogatepass")
    put.write(lengths.pack(count, len(data)) + data); put.flush()
"""


class BoundedPattern:
    """A regular expression, and a text that replaces its matches.

    Raises UsageError for an invalid expression.
    """

    def __init__(self, pattern: str | re.Pattern[str], mask: str) -> None:
        try:
            self._pattern = re.compile(pattern)
        except re.error as error:
            raise UsageError(
                f"invalid regular expression: {error}", remedy="write it as Python's re does"
            ) from None
        self._mask = mask
        self._simple = not _REPEATS.search(self._pattern.pattern)
        self._worker: _Worker | None = None

    def subn(self, text: str) -> tuple[str, int]:
        """Replace every match in a text; return the text and the number of matches.

        Raises LimitError if matching takes too long.
        """
        if self._simple:
            # A function, because backslashes in a string would refer to groups.
            return self._pattern.subn(lambda _match: self._mask, text)
        if self._worker is None:
            self._worker = _Worker(self._pattern, self._mask)
        return self._worker.subn(text)


class _Worker:
    """A process that matches, and the time it has left."""

    def __init__(self, pattern: re.Pattern[str], mask: str) -> None:
        self._pattern = pattern.pattern
        self._seconds_left = PATIENCE
        self._process = subprocess.Popen(  # noqa: S603 (ours)
            [sys.executable, "-I", "-S", "-c", _WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._answers: queue.SimpleQueue[tuple[int, bytes] | None] = queue.SimpleQueue()
        assert self._process.stdout is not None  # noqa: S101 (a pipe)
        reader = threading.Thread(
            target=_read, args=(self._process.stdout, self._answers), daemon=True
        )
        reader.start()
        weakref.finalize(self, _end, self._process, reader)
        for setting in (str(int(pattern.flags)), mask, pattern.pattern):
            self._send(setting)
        self._answer(START)

    def subn(self, text: str) -> tuple[str, int]:
        """Replace every match in a text, as ``BoundedPattern.subn`` does."""
        started = time.monotonic()
        nbytes = self._send(text)
        self._seconds_left += SECONDS_PER_TEXT + SECONDS_PER_BYTE * nbytes
        count, data = self._answer(self._seconds_left)
        # Time that a text did not need is not saved for later ones.
        self._seconds_left -= time.monotonic() - started
        self._seconds_left = min(PATIENCE, self._seconds_left)
        return data.decode("utf-8", "surrogatepass"), count

    def _send(self, text: str) -> int:
        """Send a text; return its bytes."""
        data = text.encode("utf-8", "surrogatepass")
        assert self._process.stdin is not None  # noqa: S101 (a pipe)
        with contextlib.suppress(OSError):  # if the process has ended, _answer reports it
            self._process.stdin.write(_LENGTHS.pack(0, len(data)) + data)
            self._process.stdin.flush()
        return len(data)

    def _answer(self, seconds: float) -> tuple[int, bytes]:
        """Return matches and text of the next answer. Raises LimitError if it takes longer."""
        try:
            answer = self._answers.get(timeout=max(seconds, 0.001))
        except queue.Empty:
            answer = None
        if answer is None:
            self._process.kill()
            raise LimitError(
                f"the regular expression {self._pattern!r} takes too long: {PATIENCE:g} seconds "
                "more than is allowed for the size of the texts",
                remedy="write it without a repetition inside another, such as (a+)+",
            )
        return answer


def _read(file: IO[bytes], answers: queue.SimpleQueue[tuple[int, bytes] | None]) -> None:
    """Queue the answers of the process; None at its end."""
    with contextlib.suppress(OSError, ValueError):
        while len(head := file.read(_LENGTHS.size)) == _LENGTHS.size:
            count, nbytes = _LENGTHS.unpack(head)
            answers.put((count, file.read(nbytes)))
    answers.put(None)


def _end(process: subprocess.Popen[bytes], reader: threading.Thread) -> None:
    """End the process and the thread that reads its answers."""
    process.kill()
    process.wait()
    reader.join()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
