"""Captures made at random: nested, open and asynchronous slices, on several threads."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from fxframework.io.source import Source
from fxframework.kit.gather import Gathered
from fxframework.kit.pieces import Piece
from fxframework.model.capture import Capture, OpenRequest
from fxframework.model.schema import ASYNC, COMPLETE, STANDARD_TABLES, TableSchema
from fxframework.model.table import Table

SEEDS = (13, 16)
"""Of the captures that exporters and writers are tried with."""
THREADS = ((100, 101), (100, 102), (200, 201))
"""Process and thread ids."""
EVENTS = 56
"""Events of a capture."""
NAMES = 9
"""Names of events, each of which several have."""
KINDS = {"begin": 6, "end": 3, "complete": 2, "async": 1, "instant": 2, "counter": 2, "flow": 2,
         "log": 2}  # fmt: skip
"""Events with their frequencies: more slices begin than end."""
RECORD = bytes(16)
"""The bytes of every record."""


class GeneratedCapture(Capture):
    """A capture of random events. Equal seeds give equal captures.

    Times increase from event to event, or stay. All slices of the first thread are closed; on the
    other threads several nested ones stay open.
    """

    format = "generated"
    timed_records = True
    schemas: ClassVar[Mapping[str, TableSchema]] = {
        name: STANDARD_TABLES[name]
        for name in ("processes", "threads", "slices", "instants", "counters", "flows", "logs",
                     "args")
    }  # fmt: skip

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)  # noqa: S311 (reproducible)
        self._records: list[Piece] = []
        self._rows = Gathered(self.schemas)
        self._stacks: list[list[tuple[int, int]]] = [[] for _ in THREADS]
        """Of each thread: the rows of its open slices, and when they began."""
        self._make()
        super().__init__(Source.open(RECORD * len(self._records)), OpenRequest())

    def records(self) -> Iterator[Piece]:
        """Yield the records, one for each process, thread and event."""
        return iter(self._records)

    def _table(self, name: str) -> Table:
        return self._rows.table(name, self.strings)

    def _record(self, kind: str, ns: int | None = None) -> int:
        """Add a record; return its offset."""
        self._records.append(Piece(kind, len(self._records) * len(RECORD), RECORD, ns=ns))
        return self._records[-1].offset

    def _make(self) -> None:
        for pid in dict.fromkeys(pid for pid, _ in THREADS):
            self._rows.process(pid, self._record("process"), f"process {pid}")
        for pid, tid in THREADS:
            self._rows.thread(tid, self._record("thread"), pid=pid, name=f"thread {tid}")
        now = 1000
        kinds = self._chance.choices(list(KINDS), list(KINDS.values()), k=EVENTS)
        for kind in ["begin", "begin", *kinds]:
            thread = self._chance.randrange(len(THREADS))
            now = self._event(kind, now, thread)
        while self._stacks[0]:
            now = self._event("end", now, 0)
        self._event("begin", now, 1)
        common: dict[str, Any] = {"ts": now, "category": "work", "name": "twice", "id": 0}
        for _ in range(2):  # events that are equal in all
            self._rows.row("instants", self._record("instant", now), **common, thread=2, scope=0)
            self._rows.row(
                "slices",
                self._record("complete", now),
                **common,
                thread=0,
                depth=0,
                parent=-1,
                dur=7,
                kind=COMPLETE,
            )

    def _event(self, kind: str, now: int, thread: int) -> int:
        """Add an event of a thread; return the time of the next one."""
        number = len(self._records)
        stack = self._stacks[thread]
        next_time = now + self._chance.choice((0, 0, 7, 900, 4000))
        depth = len(stack)
        parent = stack[-1][0] if stack else -1
        if kind == "end" and stack:
            _, begin = stack.pop()
            now = max(now, begin + 1)
            self._record(kind, now)
            self._rows.end(thread, thread=thread, ts=now)
            return max(next_time, now)
        offset = self._record(kind, now)
        common: dict[str, Any] = {
            "ts": now,
            "thread": thread,
            "category": "work",
            "name": f"event {number % NAMES}",
        }
        if kind == "begin":
            arguments = self._arguments(offset)
            row = self._rows.begin(thread, offset, **common, id=0, args=arguments)
            stack.append((row, now))
        elif kind == "complete":
            length = next_time - now
            common |= {"depth": depth, "parent": parent}
            self._rows.row("slices", offset, **common, dur=length, kind=COMPLETE, id=0)
            next_time += 1
        elif kind == "async":
            next_time = max(next_time, now + 1)
            length = next_time - now
            common |= {"depth": 0, "parent": -1}
            self._rows.row("slices", offset, **common, dur=length, kind=ASYNC, id=number)
        elif kind == "counter":
            value = self._chance.randrange(-(1 << 40), 1 << 40)
            is_int = number % 3 > 0  # others have a fraction
            self._rows.row(
                "counters",
                offset,
                **common,
                id=number % 3,
                series="value",
                value=float(value) if is_int else value + 0.5,
                value_int=value if is_int else 0,
                is_int=is_int,
            )
        elif kind == "flow":
            phase = "begin" if number % 2 else "end"
            self._rows.row("flows", offset, **common, id=number // 2, phase=phase, slice=parent)
        elif kind == "log":
            pid, tid = THREADS[thread]
            self._rows.row("logs", offset, ts=now, severity=0x30, severity_name="INFO", pid=pid,
                           tid=tid, tags="work", message=f"message {number}",
                           line=number)  # fmt: skip
        else:
            self._rows.row(
                "instants", offset, **common, scope=0, id=0, args=self._arguments(offset)
            )
        return next_time

    def _arguments(self, offset: int) -> dict[str, Any]:
        """Return some arguments for the event of a record."""
        arguments = {"size": self._chance.randrange(1 << 30), "file": f"file {offset}"}
        count = self._chance.randrange(3)
        return dict(list(arguments.items())[:count])
