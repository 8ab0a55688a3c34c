"""The exporter `json` for slices, instants, counters and flows: Chrome's Trace Event Format.

A closed slice becomes a complete event (``X``), a slice that never ended a begin (``B``), an
asynchronous slice a pair ``b`` and ``e``. Times are microseconds with three decimals, which is
exact. Formats with their own JSON have their own exporter, which takes precedence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import orjson

from fxframework.exporters.rows import ArgumentMembers, Bounds, json_arguments
from fxframework.io.sink import Sink
from fxframework.kernels.arrays import I64
from fxframework.kernels.parts import HEX, MEMBERS, MEMBERS_END, MICROS, SIGNED
from fxframework.kernels.sorting import places_among
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
from fxframework.model.clock import NS_MIN
from fxframework.model.schema import ASYNC, FLOW_END, SCOPES, STANDARD_TABLES
from fxframework.model.table import Table
from fxframework.model.tasks import NOBODY, Task, tasks

TABLES = ("slices", "instants", "counters", "flows")
"""Tables whose rows become events, in the order of the output.

Readers bind a point of a flow to a slice, which has to be there before.
"""
FLOW_POINTS = (b'"s"', b'"t"', b'"f","bp":"e"', b'"f"')
"""By phase: begin, step, end in the slice around it; and an end in the slice that begins next."""
BETWEEN = b",\n"
"""What is before each event but the first."""
# Kinds of slices, whose events differ; a closed one follows its open one.
OPEN = 0
CLOSED = 1
ASYNC_OPEN = 2
ASYNC_CLOSED = 3


class ChromeExport(Export):
    """Writes the events of all captures as one document."""

    def __init__(self, sink: Sink, options: Mapping[str, Any]) -> None:
        super().__init__(sink, options)
        self._begun = False

    def write(self, capture: Capture) -> None:
        """Write a capture's events. Raises WriteRefusedError if it has none."""
        written_before = self._sink.written
        threads = tasks(capture, distinct=True)
        events = _Events(capture, threads)
        for name in TABLES:
            if name in capture.schemas:
                for text in events.of(name):
                    self._put(text)
        if self._sink.written == written_before:
            raise empty_refusal(capture, "it has no slices, instants, counters or flows")
        # Names last: a capture without events is refused, although it may have threads.
        name_events = (BETWEEN + event.encode() for event in _names(threads))
        self._put(b"".join(name_events))
        counts = capture.row_counts()
        self._dropped[BEFORE_ZERO] += events.before_zero
        for thread in threads.values():
            if max(thread.pid, thread.tid) > LARGEST_EXACT:
                self._dropped[LARGE_IDS] += 1
        self._drop_rows(counts, but={*TABLES, "args", "threads", "processes"})
        for name, rows in counts.items():
            if rows and name in TABLES:
                for column in _unknown_columns(capture, name):
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


def _unknown_columns(capture: Capture, table: str) -> list[str]:
    """Return the columns that the format added to a standard table."""
    known = {column.name for column in STANDARD_TABLES[table].all_columns}
    columns = capture.schemas[table].all_columns
    return [column.name for column in columns if column.name not in known]


class _Events:
    """Renders rows of tables as events, each behind ``BETWEEN``."""

    def __init__(self, capture: Capture, threads: Mapping[int, Task]) -> None:
        self._capture = capture
        templates = Templates(b"", b",", b"")
        self._templates = templates
        self._lines = Lines(templates)
        pool = capture.strings
        self._arguments = json_arguments(templates, pool, "{}:".format)

        def category(code: int) -> str:
            text = pool.text(code)
            return f'"cat":{quoted(text)},' if text else ""

        def ids(thread: int) -> str:
            task = threads.get(thread, NOBODY)
            return f'"pid":{task.pid},"tid":{task.tid}'

        def numbered(make: Callable[[int], str]) -> Numbered:
            return Numbered(templates, make, sparse=True)

        self._names = numbered(lambda code: quoted(pool.text(code)))
        self._categories = numbered(category)
        self._series = numbered(lambda code: quoted(pool.text(code) or "value"))
        self._ids = numbered(ids)
        self._scopes = numbered(lambda scope: SCOPES.get(scope, SCOPES[0])[0])
        self.before_zero = 0
        """Rows with a time below 0."""

    def of(self, name: str) -> Iterator[bytes]:
        """Yield the events of a table."""
        arguments = ArgumentMembers(self._capture, name, self._arguments)
        writers = {
            "slices": self._slices,
            "instants": self._instants,
            "counters": self._counters,
            "flows": self._flows,
        }
        for batch, bounds in arguments.parts(self._capture.batches(name)):
            is_before_zero = batch.array("ts") < 0
            self.before_zero += int(np.count_nonzero(is_before_zero))
            writers[name](batch, bounds)
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
            self._ids(table.array("thread")[rows]),
        ]

    def _slices(self, table: Table, bounds: Bounds) -> None:
        ts = table.array("ts")
        dur = table.array("dur")
        is_async = table.array("kind") == ASYNC
        kinds = np.where(is_async, ASYNC_OPEN, OPEN) + (dur >= 0)
        for kind, rows in groups(kinds):
            event = self._head(table, rows, ts)
            if kind == OPEN:
                event += [b',"ph":"B"', *_args(bounds, rows)]
            elif kind == CLOSED:
                event += [b',"ph":"X","dur":', (MICROS, dur[rows])]
                event += _args(bounds, rows)
            else:
                ids = table.array("id")[rows]
                id: list[Cell] = [b',"id":"0x', (HEX, ids), b'"']
                event += [b',"ph":"b"', *id, *_args(bounds, rows)]
                if kind == ASYNC_CLOSED:
                    event += self._head(table, rows, ts + dur)
                    event += [b',"ph":"e"', *id, b"}"]
            self._lines.put(rows, *event)

    def _instants(self, table: Table, bounds: Bounds) -> None:
        rows = np.arange(len(table))
        letters = self._scopes(table.array("scope"))
        scope: list[Cell] = [b',"ph":"i","s":"', letters, b'"']
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

    def _flows(self, table: Table, bounds: Bounds) -> None:
        ts = table.array("ts")
        phases = np.minimum(table.array("phase"), FLOW_END)
        ends_at_next = (phases == FLOW_END) & (self._begins_of(table.array("slice")) > ts)
        for kind, rows in groups(np.where(ends_at_next, FLOW_END + 1, phases)):
            event = self._head(table, rows, ts)
            event.append(b',"ph":' + FLOW_POINTS[kind] + b',"id":"0x')
            event += [(HEX, table.array("id")[rows]), b'"', *_args(bounds, rows)]
            self._lines.put(rows, *event)

    def _begins_of(self, slices: I64) -> I64:
        """Return when slices begin, given their rows; the first time there is without one."""
        begins = np.full(slices.size, NS_MIN)
        if (slices >= 0).any():
            rows, times = self._times_of_slices
            places = places_among(slices, rows)
            is_there = places >= 0
            begins[is_there] = times[places[is_there]]
        return begins

    @cached_property
    def _times_of_slices(self) -> tuple[I64, I64]:
        """The rows of all slices, ascending, and when they begin."""
        slices = self._capture.table("slices")
        return slices.array("row"), slices.array("ts")


def _args(bounds: Bounds, rows: I64) -> list[Cell]:
    """Return the parts for the arguments of rows, and the end of an event."""
    starts, stops = (bound[rows] for bound in bounds)
    return [b',"args":{', (MEMBERS, starts), (MEMBERS_END, stops), b"}}"]


def _number(value: float) -> str:
    return orjson.dumps(value).decode()


def _names(threads: Mapping[int, Task]) -> Iterator[str]:
    """Yield the names of processes and threads as metadata events."""
    named_pids: set[int] = set()
    for task in threads.values():
        if task.process is not None and task.pid not in named_pids:
            named_pids.add(task.pid)
            yield (
                f'{{"name":"process_name","ph":"M","pid":{task.pid},'
                f'"args":{{"name":{quoted(task.process)}}}}}'
            )
        if task.thread is not None:
            yield (
                f'{{"name":"thread_name","ph":"M","pid":{task.pid},"tid":{task.tid},'
                f'"args":{{"name":{quoted(task.thread)}}}}}'
            )
