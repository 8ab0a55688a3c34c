"""Captures made at random: nested, open and asynchronous slices, on several threads."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import attrs
import numpy as np

from fxframework.io.source import Source
from fxframework.model.capture import Capture, OpenRequest
from fxframework.model.schema import STANDARD_TABLES, TABLE_CODES, TableSchema
from fxframework.model.table import Table

__all__ = ["SEEDS", "GeneratedCapture"]

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
NBYTES = 16
"""Size of every record in bytes."""


@attrs.frozen
class GeneratedRecord:
    """The record of one event."""

    record: str
    offset: int
    ns: int | None
    nbytes: int = NBYTES

    def to_json(self) -> dict[str, Any]:
        """Return its kind and its place."""
        return {"record": self.record, "offset": self.offset, "nbytes": self.nbytes}


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
        self._records: list[GeneratedRecord] = []
        self._rows: dict[str, list[dict[str, Any]]] = {name: [] for name in self.schemas}
        self._make()
        super().__init__(Source.open(bytes(NBYTES * len(self._records))), OpenRequest())

    def records(self) -> Iterator[GeneratedRecord]:
        """Yield the records, one for each row of processes, threads and events."""
        return iter(self._records)

    def _table(self, name: str) -> Table:
        rows, schema = self._rows[name], self.schemas[name]
        given: dict[str, Any] = {key: [row[key] for row in rows] for key in rows[0]}
        for column in schema.columns:
            if column.kind == "u8" and column.name in given:
                given[column.name] = np.array(given[column.name], np.uint64)
        return Table.of(schema, self.strings, row=np.arange(len(rows)), **given)

    def _make(self) -> None:
        for pid in dict.fromkeys(pid for pid, _ in THREADS):
            self._add("processes", None, pid=pid, name=f"process {pid}")
        for number, (pid, tid) in enumerate(THREADS):
            self._add("threads", None, id=number, pid=pid, tid=tid, name=f"thread {tid}")
        stacks: list[list[int]] = [[] for _ in THREADS]
        now = 1000
        kinds = self._chance.choices(list(KINDS), list(KINDS.values()), k=EVENTS)
        for kind in ["begin", "begin", *kinds]:
            thread = self._chance.randrange(len(THREADS))
            now = self._event(kind, now, thread, stacks[thread])
        while stacks[0]:
            now = self._event("end", now, 0, stacks[0])
        self._event("begin", now, 1, stacks[1])
        for _ in range(2):  # events that are equal in all
            common = {"ticks": now, "category": "work", "name": "twice"}
            self._add("instants", now, **common, thread=2, scope="thread", id=0)
            self._add("slices", now, **common, thread=0, depth=0, parent=-1, dur=7, kind="complete",
                      id=0)  # fmt: skip

    def _event(self, kind: str, now: int, thread: int, stack: list[int]) -> int:
        """Add an event to the tables; return the time of the next one."""
        number = len(self._records)
        after = now + self._chance.choice((0, 0, 7, 900, 4000))
        if kind == "async":
            after = max(after, now + 1)
        name = f"event {number % NAMES}"
        common = {"ticks": now, "thread": thread, "category": "work", "name": name}
        nested = {"depth": len(stack), "parent": stack[-1] if stack else -1}
        if kind == "begin":
            row = self._add("slices", now, **common, **nested, dur=-1, kind="begin_end", id=0)
            self._argue("slices", row)
            stack.append(row)
        elif kind == "end" and stack:
            begun = self._rows["slices"][stack.pop()]
            now = max(now, begun["ts"] + 1)
            after = max(after, now)
            self._records.append(GeneratedRecord("end", NBYTES * number, now))
            begun["dur"] = now - begun["ts"]
        elif kind == "complete":
            self._add("slices", now, **common, **nested, dur=after - now, kind="complete", id=0)
            after += 1
        elif kind == "async":
            self._add("slices", now, **common, depth=0, parent=-1, dur=after - now, kind="async",
                      id=number)  # fmt: skip
        elif kind == "counter":
            value = self._chance.randrange(-(1 << 40), 1 << 40)
            self._add("counters", now, **common, id=number % 3, series="value", value=float(value),
                      value_int=value, is_int=True)  # fmt: skip
        elif kind == "flow":
            phase = "begin" if number % 2 else "end"
            self._add("flows", now, **common, id=number // 2, phase=phase, slice=nested["parent"])
        elif kind == "log":
            pid, tid = THREADS[thread]
            self._add("logs", now, ticks=now, severity=0x30, severity_name="INFO", pid=pid, tid=tid,
                      tags="work", message=f"message {number}", line=number)  # fmt: skip
        else:
            row = self._add("instants", now, **common, scope="thread", id=0)
            self._argue("instants", row)
        return after

    def _add(self, table: str, ns: int | None, **columns: Any) -> int:
        """Add a row, and the record that it comes from; return the row."""
        offset = NBYTES * len(self._records)
        self._records.append(GeneratedRecord(table, offset, ns))
        times = {} if ns is None else {"ts": ns}
        self._rows[table].append({"offset": offset, **times, **columns})
        return len(self._rows[table]) - 1

    def _argue(self, table: str, row: int) -> None:
        """Add arguments to a row."""
        offset = self._rows[table][row]["offset"]
        value = self._chance.randrange(1 << 30)
        common = {"offset": offset, "table": TABLE_CODES[table], "parent": row}
        number = {"name": "size", "type": "int64", "int": value, "uint": value, "str": None}
        text = {"name": "file", "type": "string", "int": 0, "uint": 0, "str": f"file {row}"}
        given = (number, text)[: self._chance.randrange(3)]
        self._rows["args"] += [{**common, **argument} for argument in given]
