"""Context switches as lines of ftrace, which ``systemTraceEvents`` has in a string."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import attrs

__all__ = ["Scheduled", "scheduled"]

_COMM = rb"((?:[^\\]|\\[^n]){0,64}?)"
_LINE = re.compile(
    rb"\[(\d{1,5}+)\] (?:[^ \\]++ )?+(\d{1,9}+)\.(\d{6,12}+): sched_(?:switch:"
    rb" prev_comm=" + _COMM + rb" prev_pid=(\d{1,10}+) prev_prio=(\d{1,9}+) prev_state=(\w)[^ \\]*+"
    rb" ==> next_comm=" + _COMM + rb" next_pid=(\d{1,10}+) next_prio=(\d{1,9}+)"
    rb"|wak(eup)?+[a-z_]*+: comm=" + _COMM + rb" pid=(\d{1,10}+) prio=(\d{1,9}+))"
)
_WAKEUP = re.compile(rb"sched_wakeup(?:_new)?: ")
STATES = {b"R": 1, b"S": 3, b"D": 3, b"I": 3, b"T": 2, b"t": 2, b"Z": 4, b"X": 5}
"""Linux's letters as the states of `sched`."""
RUNNING = 1


@attrs.frozen
class Scheduled:
    """A context switch; a wakeup where ``before`` is None."""

    offset: int
    ns: int
    cpu: int
    before: tuple[int, str, int] | None
    """Number, name and priority of the thread that leaves."""
    state: int
    after: tuple[int, str, int]


def scheduled(data: memoryview, start: int, stop: int) -> Iterator[Scheduled]:
    """The switches and wakeups in a JSON string between two byte offsets.

    Of one wakeup ``sched_waking`` and ``sched_wakeup`` may be there: the first is left out then.
    """
    both = _WAKEUP.search(data, start, stop) is not None
    for found in _LINE.finditer(data, start, stop):
        cpu, seconds, fraction, before, tid, left, state, after, other, entered, *wakes = (
            found.groups()
        )
        ns = int(seconds) * 1_000_000_000 + int(fraction[:9].ljust(9, b"0"))
        if before is None:
            kind, name, thread, priority = wakes
            if not both or kind:
                woken = int(thread), _text(name), int(priority)
                yield Scheduled(found.start(), ns, int(cpu), None, 0, woken)
            continue
        yield Scheduled(
            found.start(),
            ns,
            int(cpu),
            (int(tid), _text(before), int(left)),
            STATES.get(state, RUNNING),
            (int(other), _text(after), int(entered)),
        )


def _text(raw: bytes) -> str:
    try:
        text = json.loads(b'"%b"' % raw)
    except ValueError:
        text = raw.decode("utf-8", "replace")
    return str(text)
