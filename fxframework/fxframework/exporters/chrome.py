"""The exporter `json` for slices, instants and counters: Chrome's Trace Event Format.

A closed slice becomes a complete event (``X``), a slice that never ended a begin (``B``), an
asynchronous slice a pair ``b`` and ``e``. Times are microseconds with three decimals, which is
exact. Formats with their own JSON have their own exporter, which takes precedence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from fxframework.exporters.rows import ArgumentMembers, Bounds, Task, json_arguments, tasks
from fxframework.io.sink import Sink
from fxframework.kernels.parts import HEX, MEMBERS, MEMBERS_END, MICROS, SIGNED
from fxframework.kernels.templates import Cell, Templates
from fxframework.kit.export import (
    BEFORE_ZERO,
    LARGE_IDS,
    LARGEST_EXACT,
    Export,
    empty_refusal,
    quoted,
)
from fxframework.kit.row_texts import Lines, Numbered, doubles, groups
from fxframework.model.capture import Capture
from fxframework.model.schema import ASYNC, STANDARD_TABLES
from fxframework.model.table import Table

__all__ = ["TABLES", "ChromeExport"]

I64 = NDArray[np.int64]
TABLES = frozenset({"slices", "instants", "counters"})
"""Tables whose rows become events."""
SCOPES = {0: "t", 1: "p", 2: "g"}
BETWEEN = b",\n"
"""What is before each event but the first."""


class ChromeExport(Export):
    """Writes the events of all captures as one document."""

    def __init__(self, sink: Sink, options: Mapping[str, Any]) -> None:
        super().__init__(sink, options)
        self._begun = False

    def write(self, capture: Capture) -> None:
        """Write a capture's events. Raises WriteRefusedError if it has none."""
        before = self._sink.written
        threads = tasks(capture, distinct=True)
        events = _Events(capture, threads)
        for name in ("slices", "instants", "counters"):
            if name in capture.schemas:
                for text in events.of(capture, name):
                    self._put(text)
        if self._sink.written == before:
            raise empty_refusal(capture, "it has no slices, instants or counters")
        self._put(b"".join(BETWEEN + event.encode() for event in _names(threads)))
        counts = capture.row_counts()
        self._dropped[BEFORE_ZERO] += events.before_zero
        self._dropped[LARGE_IDS] += sum(
            max(thread.pid, thread.tid) > LARGEST_EXACT for thread in threads.values()
        )
        self._drop_rows(counts, but={*TABLES, "args", "threads", "processes"})
        for name, rows in counts.items():
            for column in _unknown(capture, name) if rows and name in TABLES else ():
                self._dropped[f"values of {name}.{column}"] += rows

    def _put(self, events: bytes) -> None:
        if events and not self._begun:
            self._begun = True
            self._sink.write(b'{"displayTimeUnit":"ns","traceEvents":[\n')
            events = events[len(BETWEEN) :]
        self._sink.write(events)

    def close(self) -> Mapping[str, int]:
        """End the document; return the counts of what could not be written, by name."""
        if self._begun:
            self._sink.write(b"\n]}\n")
        return super().close()


def _unknown(capture: Capture, table: str) -> list[str]:
    """Return the columns that the format added to a standard table."""
    known = {column.name for column in STANDARD_TABLES[table].all_columns}
    return [c.name for c in capture.schemas[table].all_columns if c.name not in known]


class _Events:
    """Renders rows of tables as events, each behind ``BETWEEN``."""

    def __init__(self, capture: Capture, threads: Mapping[int, Task]) -> None:
        self._templates = templates = Templates(b"", b",", b"")
        self._lines = Lines(templates)
        pool = capture.strings
        self._arguments = json_arguments(templates, pool, "{}:".format)
        who = {number: (one.pid, one.tid) for number, one in threads.items()}

        def numbered(make: Callable[[int], str]) -> Numbered:
            return Numbered(templates, make, sparse=True)

        self._names = numbered(lambda code: quoted(pool.text(code)))
        self._categories = numbered(
            lambda code: f'"cat":{quoted(pool.text(code))},' if pool.text(code) else ""
        )
        self._series = numbered(lambda code: quoted(pool.text(code) or "value"))
        self._who = numbered(lambda thread: '"pid":{},"tid":{}'.format(*who.get(thread, (0, 0))))
        self._scopes = numbered(lambda scope: SCOPES.get(scope, "t"))
        self.before_zero = 0
        """Rows with a time below 0."""

    def of(self, capture: Capture, name: str) -> Iterator[bytes]:
        """Yield the events of a table."""
        arguments = ArgumentMembers(capture, name, self._arguments)
        makers = {"slices": self._slices, "instants": self._instants, "counters": self._counters}
        for batch, bounds in arguments.parts(capture.batches(name)):
            self.before_zero += int(np.count_nonzero(batch.array("ts") < 0))
            makers[name](batch, bounds)
            yield self._lines.joined()[0].data.tobytes()

    def _head(self, table: Table, rows: I64, ts: I64) -> list[Cell]:
        """Return the parts for the members that all events have."""
        return [
            BETWEEN + b"{",
            self._categories(table.array("category")[rows]),
            b'"name":',
            self._names(table.array("name")[rows]),
            b',"ts":',
            (MICROS, ts[rows]),
            b",",
            self._who(table.array("thread")[rows]),
        ]

    def _slices(self, table: Table, bounds: Bounds) -> None:
        ts, dur, number = (table.array(name) for name in ("ts", "dur", "id"))
        closed = dur >= 0
        for group, rows in groups(2 * (table.array("kind") == ASYNC) + closed):
            is_async, is_closed = divmod(group, 2)
            event = self._head(table, rows, ts)
            if is_async:
                id: list[Cell] = [b',"id":"0x', (HEX, number[rows]), b'"']
                event += [b',"ph":"b"', *id, *_args(bounds, rows)]
                if is_closed:
                    event += [*self._head(table, rows, ts + dur), b',"ph":"e"', *id, b"}"]
            elif is_closed:
                event += [b',"ph":"X","dur":', (MICROS, dur[rows]), *_args(bounds, rows)]
            else:
                event += [b',"ph":"B"', *_args(bounds, rows)]
            self._lines.put(rows, *event)

    def _instants(self, table: Table, bounds: Bounds) -> None:
        rows = np.arange(len(table))
        scope: list[Cell] = [b',"ph":"i","s":"', self._scopes(table.array("scope")), b'"']
        head = self._head(table, rows, table.array("ts"))
        self._lines.put(rows, *head, *scope, *_args(bounds, rows))

    def _counters(self, table: Table, bounds: Bounds) -> None:
        del bounds  # the series are the arguments
        for is_int, rows in groups(table.array("is_int")):
            value: Cell = (SIGNED, table.array("value_int")[rows])
            if not is_int:
                value = doubles(self._templates, table.array("value")[rows], _number)
            series = self._series(table.array("series")[rows])
            head = self._head(table, rows, table.array("ts"))
            self._lines.put(rows, *head, b',"ph":"C","args":{', series, b":", value, b"}}")


def _args(bounds: Bounds, rows: I64) -> list[Cell]:
    """Return the parts for the arguments of rows, and the end of an event."""
    starts, stops = (bound[rows] for bound in bounds)
    return [b',"args":{', (MEMBERS, starts), (MEMBERS_END, stops), b"}}"]


def _number(value: float) -> str:
    return orjson.dumps(value).decode()


def _names(threads: Mapping[int, Task]) -> Iterator[str]:
    """Yield the names of processes and threads as metadata events."""
    named: set[int] = set()
    for who in threads.values():
        if who.process is not None and who.pid not in named:
            named.add(who.pid)
            yield (
                f'{{"name":"process_name","ph":"M","pid":{who.pid},'
                f'"args":{{"name":{quoted(who.process)}}}}}'
            )
        if who.thread is not None:
            yield (
                f'{{"name":"thread_name","ph":"M","pid":{who.pid},"tid":{who.tid},'
                f'"args":{{"name":{quoted(who.thread)}}}}}'
            )
