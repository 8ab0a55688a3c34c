"""Schedules as text, so that a report can name one and a test can run it again.

``0@17:11f4 1 d0 s1@3:1200 0``: thread 0 runs up to its 17th access to memory that threads share
(stacks are not), at the instruction 0x11f4 from the beginning of the code; thread 1 runs to its end
or until it waits; the oldest store in thread 0's buffer drains; a signal interrupts thread 1 there;
thread 0 goes on.
"""

from __future__ import annotations

import re

import attrs

from fx_emulator.native.errors import NativeError

__all__ = ["Choice", "Drain", "Run", "Signal", "read_schedule", "write_schedule"]


@attrs.frozen
class Run:
    """A thread runs, up to a place or, with ``accesses`` -1, as far as it can."""

    thread: int
    accesses: int = -1
    pc: int = 0


@attrs.frozen
class Drain:
    """The oldest store in a thread's store buffer drains."""

    thread: int


@attrs.frozen
class Signal:
    """A signal handler interrupts a thread, where it is."""

    thread: int


Choice = Run | Drain | Signal

_TOKEN = re.compile(r"(?P<what>[ds]?)(?P<thread>\d+)(?:@(?P<accesses>\d+):(?P<pc>[0-9a-f]+))?")
_LONGEST = 1 << 20


def write_schedule(path: list[Choice], base: int) -> str:
    """A path as text; addresses are counted from ``base``."""
    words = []
    for choice in path:
        match choice:
            case Run(thread, -1):
                words.append(f"{thread}")
            case Run(thread, accesses, pc):
                words.append(f"{thread}@{accesses}:{pc - base:x}")
            case Drain(thread):
                words.append(f"d{thread}")
            case Signal(thread):
                words.append(f"s{thread}")
    return " ".join(words)


def read_schedule(text: str, base: int, threads: int) -> list[Choice]:
    """The path of a text. Raises NativeError, naming the word, for an invalid schedule."""
    path: list[Choice] = []
    for word in text[:_LONGEST].split():
        found = _TOKEN.fullmatch(word)
        if found is None or int(found["thread"]) >= threads:
            raise NativeError(
                f"schedule {text!r}: {word!r} is not a step for {threads} threads; "
                "give one as a failure names it"
            )
        thread = int(found["thread"])
        if found["what"] == "d":
            path.append(Drain(thread))
        elif found["what"] == "s":
            path.append(Signal(thread))
        elif found["pc"] is None:
            path.append(Run(thread))
        else:
            path.append(Run(thread, int(found["accesses"]), base + int(found["pc"], 16)))
    return path
