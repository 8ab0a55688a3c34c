"""Schedules as text, so that a report can contain one and a test can replay it.

``0@17:11f4 1 d0 s1@3:1200 0``: thread 0 runs up to its 17th access to shared memory (stacks are not
shared), at the instruction at code offset 0x11f4; thread 1 runs until it ends or waits; the oldest
store in thread 0's buffer drains; a signal interrupts thread 1 at that place; thread 0 continues.
``0@17:11f4+1``: thread 0 does one part of that instruction too (``split``).
"""

from __future__ import annotations

import re

import attrs

from fx_emulator.native.errors import NativeError


@attrs.frozen
class Run:
    """A thread runs up to a place or, if ``accesses`` is -1, as far as it can."""

    thread: int
    accesses: int = -1
    pc: int = 0
    part: int = 0
    """Number of parts of the instruction at ``pc`` that are done."""


@attrs.frozen
class Drain:
    """The oldest store in a thread's store buffer drains."""

    thread: int


@attrs.frozen
class Signal:
    """A signal handler interrupts a thread at its current place."""

    thread: int


Choice = Run | Drain | Signal

_TOKEN = re.compile(
    r"(?P<what>[ds]?)(?P<thread>\d+)(?:@(?P<accesses>\d+):(?P<pc>-?[0-9a-f]+)"
    r"(?:\+(?P<part>\d+))?)?"
)
_MAX_CHARS = 1 << 20


def write_schedule(path: list[Choice], base: int) -> str:
    """Return a path as text, with addresses relative to ``base``."""
    words = []
    for choice in path:
        match choice:
            case Run(thread, -1):
                words.append(f"{thread}")
            case Run(thread, accesses, pc, part):
                part_text = f"+{part}" if part else ""
                words.append(f"{thread}@{accesses}:{pc - base:x}{part_text}")
            case Drain(thread):
                words.append(f"d{thread}")
            case Signal(thread):
                words.append(f"s{thread}")
    return " ".join(words)


def read_schedule(text: str, base: int, threads: int) -> list[Choice]:
    """Parse a schedule. Raises NativeError, which quotes the word, for invalid text."""
    path: list[Choice] = []
    for word in text[:_MAX_CHARS].split():
        token = _TOKEN.fullmatch(word)
        if token is None or int(token["thread"]) >= threads:
            raise NativeError(
                f"schedule {text!r}: {word!r} is not a step for {threads} threads; "
                "use the schedule of a failure"
            )
        thread = int(token["thread"])
        if token["what"] == "d":
            path.append(Drain(thread))
        elif token["what"] == "s":
            path.append(Signal(thread))
        elif token["pc"] is None:
            path.append(Run(thread))
        else:
            pc = base + int(token["pc"], 16)
            part = int(token["part"] or 0)
            path.append(Run(thread, int(token["accesses"]), pc, part))
    return path
