"""Rows: events as rows of tables."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from fx_ftrace.read.lines import Event, fields
from fxframework.io.limits import Limits
from fxframework.kit import Gathered
from fxframework.model.schema import STANDARD_TABLES

__all__ = ["SCHEMAS", "Rows"]

SCHEMAS = {
    name: STANDARD_TABLES[name]
    for name in ("processes", "threads", "slices", "instants", "counters", "sched", "args")
}
_STATES = {b"R": 1, b"S": 3, b"D": 3, b"I": 3, b"T": 2, b"t": 2, b"Z": 4, b"X": 5}
"""Linux's letters as the states of `sched`."""
RUNNING, SWITCH, WAKEUP = 1, 1, 2
_SWITCH = re.compile(
    rb"(?:prev_comm=(.{0,64}?) prev_pid=(-?\d{1,9}+) prev_prio=(\d{1,9}+) prev_state=(\S++)"
    rb" ==> next_comm=(.{0,64}?) next_pid=(-?\d{1,9}+) next_prio=(\d{1,9}+)"
    # as trace-cmd prints it
    rb"|(.{0,64}?):(-?\d{1,9}+) \[(\d{1,9}+)\] (\S++) ==> (.{0,64}?):(-?\d{1,9}+) \[(\d{1,9}+)\])"
)
_WAKE = re.compile(
    rb"(?:comm=(.{0,64}?) pid=(\d{1,9}+) prio=(\d{1,9}+)|(.{0,64}?):(\d{1,9}+) \[(\d{1,9}+)\])"
)
_SPAN = re.compile(rb"(?:(sys)_(?:(enter)|exit)(?:_(\w++))?|(\w+?)_(?:(entry|start)|exit|end))$")
"""Events that begin and end something."""
_MARK = re.compile(
    rb"(?:([BE])(?:\|\d{0,9}+(?:\|([^|]*+))?)?|C\|\d{0,9}+\|([^|]*+)\|(-?\d{1,18}+))(?:\|.*)?",
    re.DOTALL,
)
"""Slices and counters of a program, written into ``trace_marker``."""
_WAKEUPS = {b"sched_wakeup", b"sched_wakeup_new"}
_MARKS = {b"tracing_mark_write", b"print", b"0"}
_INTERRUPTS = {b"irq_handler": (1 << 31, b"irq"), b"softirq": (3 << 30, b"softirq")}
"""What runs on a CPU, whatever thread it interrupts: number of its first thread, and its name."""


class Rows(Gathered):
    """Rows of events."""

    def __init__(self, names: Iterable[bytes], limits: Limits) -> None:
        """``names`` has the names of all events in the file."""
        super().__init__(SCHEMAS, limits)
        self.alone: list[int] = []
        """Offsets of ends without a begin."""
        spans = [_key(found) for found in map(_SPAN.match, names) if found]
        self._ended = {key for key, begins in spans if not begins}
        # Both are recorded of one wakeup: the first kind makes the rows, the other instants.
        self._wakeups = _WAKEUPS & set(names) or {b"sched_waking"}

    def add(self, event: Event, offset: int) -> None:
        """Add the rows of an event."""
        thread = self._named(event.tid, event.comm, offset)
        if event.tgid is not None:
            self.belongs(thread, event.tgid)
        common = {"ts": event.ns, "thread": thread, "category": event.system or b"ftrace"}
        if event.name == b"sched_switch" and (found := _SWITCH.match(event.body)):
            before, tid, left, state, after, other, entered = _given(found)
            self.row("sched", offset, ts=event.ns, cpu=event.cpu, kind=SWITCH,
                     prev=self._named(int(tid), before, offset),
                     next=self._named(int(other), after, offset),
                     prev_state=_STATES.get(state[:1], RUNNING),
                     prev_priority=int(left), next_priority=int(entered))  # fmt: skip
        elif event.name in self._wakeups and (found := _WAKE.match(event.body)):
            comm, tid, priority = _given(found)
            self.row("sched", offset, ts=event.ns, cpu=event.cpu, kind=WAKEUP, prev=-1,
                     next=self._named(int(tid), comm, offset), prev_state=0,
                     prev_priority=-1, next_priority=int(priority))  # fmt: skip
        elif event.name in _MARKS and (found := _MARK.fullmatch(event.body)):
            self._mark(found, offset, common)
        elif (found := _SPAN.match(event.name)) is None or not self._span(
            event, found, offset, common
        ):
            self.row("instants", offset, **common, name=event.name, args=fields(event.body))

    def _named(self, tid: int, comm: bytes, offset: int) -> int:
        """A thread with its name, which the kernel may not know."""
        name = None if comm in {b"<...>", b":-1"} else comm if tid else b"<idle>"
        return self.thread(max(tid, 0), offset, name=name)

    def _span(
        self, event: Event, found: re.Match[bytes], offset: int, common: dict[str, Any]
    ) -> bool:
        """Begin or end the slice of an event that is one side of a span."""
        key, begins = _key(found)
        given = dict(fields(event.body))
        if key not in self._ended:
            return False
        if key in _INTERRUPTS:  # on its CPU, whatever thread it interrupts
            first, name = _INTERRUPTS[key]
            tid = first + event.cpu
            common["thread"] = self.thread(
                tid, offset, pid=0, name=b"CPU %d %b" % (event.cpu, name)
            )
        if begins:
            label = given.get(b"name") or given.get(b"action")
            name = label if isinstance(label, bytes) else key
            self.begin(key, offset, **common, name=name, args=given)
            return True
        row = self.end(key, thread=common["thread"], ts=event.ns)
        if row is None:
            self.alone.append(offset)
            return False
        self.add_args("slices", row, offset, given)
        return True

    def _mark(self, found: re.Match[bytes], offset: int, common: dict[str, Any]) -> None:
        """A slice or a counter of a program."""
        letter, name, counter, value = found.groups()
        if counter is not None:
            number = int(value)
            self.row("counters", offset, **common, name=counter, series=b"value",
                     value=float(number), value_int=number, is_int=True)  # fmt: skip
        elif letter == b"B":
            self.begin(b"mark", offset, **common, name=name)
        elif self.end(b"mark", thread=common["thread"], ts=common["ts"]) is None:
            self.alone.append(offset)


def _key(found: re.Match[bytes]) -> tuple[bytes, bool]:
    """What an event begins or ends, and whether it begins it."""
    call, enter, which, other, begins = found.groups()
    key = b"_".join(part for part in (call, which, other) if part)
    return key, bool(enter or begins)


def _given(found: re.Match[bytes]) -> list[bytes]:
    """The groups of the alternative that matched."""
    return [group for group in found.groups() if group is not None]
