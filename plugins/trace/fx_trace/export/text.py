"""The exporter `text`: one line for each event, in order of time."""

from __future__ import annotations

import numpy as np

from fx_trace.export.events import NEVER, EventMaker, RowEvents
from fx_trace.export.first_pass import (
    NOTHING,
    TIMED,
    FirstPass,
    KernelNames,
    ThreadNames,
    dropped_records,
)
from fx_trace.export.windows import last_offset, windows
from fx_trace.kinds import ArgType, SchedulingType
from fx_trace.meaning import ASYNC_SCOPE
from fxframework.kernels.arrays import I64
from fxframework.kernels.parts import HEX, LENGTH, NATURAL, SECONDS, SIGNED, TEXT
from fxframework.kernels.templates import Cell
from fxframework.kit.export import Export, empty_refusal
from fxframework.kit.in_time import Events, InTime
from fxframework.kit.row_texts import Form, Members, groups, json_string, value_forms
from fxframework.model.capture import Capture
from fxframework.model.schema import ASYNC, FLOW_PHASES, SCOPES, THREAD_STATES
from fxframework.model.strings import StringPool
from fxframework.model.table import Table


class TextExport(Export):
    """Writes one line for each event, in order of time: time, thread, event, and arguments."""

    def write(self, capture: Capture) -> None:
        """Write one capture; another one follows it.

        Raises WriteRefusedError if there is nothing to write.
        """
        capture.scan()
        survey = FirstPass(capture)
        if not survey.rows:
            raise empty_refusal(capture, NOTHING)
        self._dropped += dropped_records(capture, survey)
        names = KernelNames(capture)
        self._dropped["kernel objects other than processes and threads"] += names.others
        lines = _TextLines(capture.strings, ThreadNames(capture), survey)
        with InTime(self._emit) as ordered:
            for window in windows(capture, (*TIMED, "args")):
                ordered.add(lines.window(window), survey.earliest_after(last_offset(window)))

    def _emit(self, events: Events) -> None:
        self._sink.write(events.text().data.data)


class _TextLines(EventMaker):
    """Renders rows as lines."""

    around = b" ", b" ", b""
    equals = "="

    def __init__(self, pool: StringPool, tasks: ThreadNames, survey: FirstPass) -> None:
        self._pool = pool
        self._tasks = tasks
        super().__init__(survey, self._plain)
        self.makers = {
            "slices": self._slices,
            "instants": self._instants,
            "flows": self._flows,
            "counters": self._counters,
            "sched": self._sched,
            "logs": self._logs,
        }

        def category(code: int) -> str:
            text = self._plain(code)
            return "" if text in {"", EMPTY} else f"{text}:"

        self._categories = self.numbered(category)
        self._object_names = self.numbered(
            lambda code: "" if code < 0 else f"({_plain(pool[code])})"
        )
        self._threads = self.numbered(lambda thread: self._label(tasks, thread))
        self._states = self.numbered(lambda state: THREAD_STATES.get(state, str(state)))
        self._phases = self.numbered(lambda phase: FLOW_PHASES[phase])
        self._scopes = self.numbered(
            lambda scope: f" scope={SCOPES.get(scope, scope)}" if scope else ""
        )

    def _plain(self, code: int) -> str:
        """Return the string of a code as text in a line."""
        return "" if code < 0 else _plain(self._pool[code])

    def forms(self) -> dict[int, Form]:
        """Return the form of the values of each argument type."""
        pool = self._pool
        forms = value_forms(
            self.templates,
            string=lambda code: json_string(pool[code]),
            blob=lambda code: f"[{pool.bytes_of(code).hex(' ')}]",
            double=repr,
        )
        forms |= {
            ArgType.POINTER: Form(lambda args, rows: (HEX, args["uint"][rows]), "0x"),
            ArgType.KOID: Form(forms[ArgType.KOID].value, "#"),
        }
        for kind in range(len(forms), 16):
            type_text = f"<type {kind}>".encode()
            forms[kind] = Form(lambda _args, _rows, text=type_text: text)  # type: ignore[misc]
        return forms

    def member_columns(self, args: Table, keys: I64) -> list[I64]:
        """Return arguments as members, with the names of the objects that they refer to."""
        columns = super().member_columns(args, keys)
        if "trace_annotation" in args.columns:
            _, object_names = self._object_names(args.array("trace_annotation"))
            columns[3] = object_names.astype(np.int64)
        return columns

    def _label(self, tasks: ThreadNames, thread: int) -> str:
        """Return what lines call a thread."""
        name = tasks.thread_names.get(thread)
        if name is not None and name.startswith("<thr#"):
            return name
        pid = tasks.pids[thread]
        process = _named(tasks.names.get(pid), pid)
        return f"{process}/{_named(name, tasks.tids[thread])}"

    def _lines(
        self, table: Table, lines: RowEvents, rows: I64, kind_cells: list[Cell], *details: Cell
    ) -> None:
        """Render lines of rows: time, thread, kind, ``category:name``, and the details."""
        lines.write(
            rows,
            (SECONDS, table.array("ts")[rows]),
            b" ",
            self._threads(table.array("thread")[rows]),
            *kind_cells,
            b" ",
            self._categories(table.array("category")[rows]),
            self.names(table.array("name")[rows]),
            *details,
            b"\n",
        )

    def _slices(self, table: Table, lines: RowEvents, members: Members) -> None:
        lengths = table.array("dur")
        is_async = table.array("kind") == ASYNC
        is_open = lengths == NEVER
        # Rows of a group are alike, as its first one is.
        for _, rows in groups(2 * is_async + is_open):
            kind_cells: list[Cell] = [b" slice"]
            if is_async[rows[0]]:
                kind_cells = [b" async id=", (NATURAL, table.array("id")[rows])]
            length: list[Cell] = [b" dur=", (LENGTH, lengths[rows])]
            if is_open[rows[0]]:
                length = [b" unclosed"]
            arguments = members.of(table.array("offset")[rows])
            end_arguments = self.ends.of(table.array("row")[rows])
            self._lines(table, lines, rows, kind_cells, *length, *arguments, *end_arguments)

    def _instants(self, table: Table, lines: RowEvents, members: Members) -> None:
        scopes = table.array("scope")
        for is_async, rows in groups(scopes == ASYNC_SCOPE):
            kind_cells: list[Cell] = [b" instant", self._scopes(scopes[rows])]
            if is_async:
                kind_cells = [b" async-instant id=", (NATURAL, table.array("id")[rows])]
            arguments = members.of(table.array("offset")[rows])
            self._lines(table, lines, rows, kind_cells, *arguments)

    def _flows(self, table: Table, lines: RowEvents, members: Members) -> None:
        rows = np.arange(len(table))
        phase = self._phases(table.array("phase"))
        kind_cells: list[Cell] = [b" flow-", phase, b" id=", (NATURAL, table.array("id"))]
        self._lines(table, lines, rows, kind_cells, *members.of(table.array("offset")))

    def _counters(self, table: Table, lines: RowEvents, members: Members) -> None:
        rows = np.arange(len(table))
        kind_cells: list[Cell] = [b" counter id=", (NATURAL, table.array("id"))]
        self._lines(table, lines, rows, kind_cells, *members.of(table.array("offset")))

    def _sched(self, table: Table, lines: RowEvents, members: Members) -> None:
        for kind, rows in groups(table.array("kind")):
            columns = {name: table.array(name)[rows] for name in SCHED_COLUMNS}
            arguments = members.of(columns["offset"])
            cpu = (SIGNED, columns["cpu"])
            head: list[Cell] = [(SECONDS, columns["ts"]), b" cpu", cpu]
            next_thread = self._threads(columns["next"])
            if kind == SchedulingType.THREAD_WAKEUP:
                lines.write(rows, *head, b" wakeup ", next_thread, *arguments, b"\n")
                continue
            prev_thread = self._threads(columns["prev"])
            prev_state = self._states(columns["prev_state"])
            priorities: list[Cell] = []
            if kind == SchedulingType.LEGACY_CONTEXT_SWITCH:
                prev_priority = (SIGNED, columns["prev_priority"])
                next_priority = (SIGNED, columns["next_priority"])
                priorities = [b" prio=", prev_priority, b"->", next_priority]
            head += [b" switch ", prev_thread, b" ", prev_state, b" -> ", next_thread]
            lines.write(rows, *head, *priorities, *arguments, b"\n")

    def _logs(self, table: Table, lines: RowEvents, members: Members) -> None:
        del members
        tasks = self._tasks
        thread_of = {}
        for thread in tasks.ids:
            thread_of[tasks.pids[thread], tasks.tids[thread]] = thread
        line_ends: list[bytes] = []
        for ids, message in zip(table.tuples("pid", "tid"), table.texts("message"), strict=True):
            label = "{}/{}".format(*ids)
            if ids in thread_of:
                label = self._label(tasks, thread_of[ids])
            line_end = f" {label} log {json_string(message or '')}\n"
            line_ends.append(line_end.encode())
        texts = self.templates.texts(line_ends)
        rows = np.arange(len(table))
        lines.write(rows, (SECONDS, table.array("ts")), (TEXT, texts))


SCHED_COLUMNS = (
    "offset", "ts", "cpu", "prev", "next", "prev_state", "prev_priority", "next_priority",
)  # fmt: skip
"""Columns of `sched` that are in lines."""
EMPTY = '""'
"""Form of an empty text in a line."""


def _plain(text: str) -> str:
    """Return the text, or a JSON string if it could break the line or be invisible."""
    if text and text.isprintable():
        return text
    return json_string(text)


def _named(name: str | None, koid: int) -> str:
    """Return what lines call a process or thread: its name, if it has one, and its koid."""
    if name is None:
        return str(koid)
    return f"{_plain(name)}({koid})"
