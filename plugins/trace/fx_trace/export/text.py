"""The exporter `text`: one line for each event, in order of time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fx_trace.export.events import (
    ASYNC,
    ASYNC_SCOPE,
    LEGACY,
    NEVER,
    WAKEUP,
    EventMaker,
    Made,
)
from fx_trace.export.first_pass import (
    TIMED,
    FirstPass,
    KernelNames,
    ThreadNames,
    dropped_records,
    refusal,
)
from fx_trace.export.windows import last_offset, windows
from fx_trace.format import ArgType
from fxframework.kernels.parts import HEX, LENGTH, NATURAL, SECONDS, SIGNED, TEXT
from fxframework.kernels.templates import Cell
from fxframework.kit.export import Export
from fxframework.kit.in_time import Events, InTime
from fxframework.kit.row_texts import Form, Members, groups, json_string, value_forms
from fxframework.model.capture import Capture
from fxframework.model.schema import FLOW_PHASES, SCOPES, THREAD_STATES
from fxframework.model.strings import StringPool
from fxframework.model.table import Table

__all__ = ["TextExport"]

I64 = NDArray[np.int64]


class TextExport(Export):
    """Writes one line for each event, in order of time: time, thread, event, and arguments."""

    def write(self, capture: Capture) -> None:
        """Write one capture; another one follows it.

        Raises WriteRefusedError if there is nothing to write.
        """
        capture.scan()
        survey = FirstPass(capture)
        if not survey.rows:
            raise refusal(capture)
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
            shown = self._plain(code)
            return "" if shown in {"", EMPTY} else f"{shown}:"

        self._categories = self.numbered(category)
        self._notes = self.numbered(lambda code: "" if code < 0 else f"({_plain(pool[code])})")
        self._who = self.numbered(lambda thread: self._label(tasks, thread))
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
            shown = f"<type {kind}>".encode()
            forms[kind] = Form(lambda _args, _rows, shown=shown: shown)  # type: ignore[misc]
        return forms

    def member_columns(self, args: Table, keys: I64) -> list[I64]:
        """Return arguments as members, with the names of the objects that they refer to."""
        columns = super().member_columns(args, keys)
        if "trace_annotation" in args.columns:
            columns[3] = self._notes(args.array("trace_annotation"))[1].astype(np.int64)
        return columns

    def _label(self, tasks: ThreadNames, thread: int) -> str:
        pid, tid = tasks.pids[thread], tasks.tids[thread]
        process, name = tasks.names.get(pid), tasks.thread_names.get(thread)
        if name is not None and name.startswith("<thr#"):
            return name
        return f"{_named(process, pid)}/{_named(name, tid)}"

    def _lines(self, table: Table, made: Made, rows: I64, what: list[Cell], *rest: Cell) -> None:
        """Render lines of rows: time, thread, ``what``, ``category:name``, and the rest."""
        made.write(
            rows,
            (SECONDS, table.array("ts")[rows]),
            b" ",
            self._who(table.array("thread")[rows]),
            *what,
            b" ",
            self._categories(table.array("category")[rows]),
            self.names(table.array("name")[rows]),
            *rest,
            b"\n",
        )

    def _slices(self, table: Table, made: Made, own: Members) -> None:
        dur, kind = table.array("dur"), table.array("kind")
        for group, rows in groups(2 * (kind == ASYNC) + (dur == NEVER)):
            what: list[Cell] = [b" slice"]
            of_async, unclosed = divmod(group, 2)
            if of_async:
                what = [b" async id=", (NATURAL, table.array("id")[rows])]
            length: list[Cell] = [b" dur=", (LENGTH, dur[rows])]
            if unclosed:
                length = [b" unclosed"]
            members = own.of(table.array("offset")[rows])
            later = self.ends.of(table.array("row")[rows])
            self._lines(table, made, rows, what, *length, *members, *later)

    def _instants(self, table: Table, made: Made, own: Members) -> None:
        scope = table.array("scope")
        for group, rows in groups(scope == ASYNC_SCOPE):
            what: list[Cell] = [b" instant", self._scopes(scope[rows])]
            if group:
                what = [b" async-instant id=", (NATURAL, table.array("id")[rows])]
            self._lines(table, made, rows, what, *own.of(table.array("offset")[rows]))

    def _flows(self, table: Table, made: Made, own: Members) -> None:
        rows = np.arange(len(table))
        phase, number = self._phases(table.array("phase")), (NATURAL, table.array("id"))
        members = own.of(table.array("offset"))
        self._lines(table, made, rows, [b" flow-", phase, b" id=", number], *members)

    def _counters(self, table: Table, made: Made, own: Members) -> None:
        rows = np.arange(len(table))
        what: list[Cell] = [b" counter id=", (NATURAL, table.array("id"))]
        self._lines(table, made, rows, what, *own.of(table.array("offset")))

    def _sched(self, table: Table, made: Made, own: Members) -> None:
        for kind, rows in groups(table.array("kind")):
            some = {name: table.array(name)[rows] for name in SWITCHED}
            members = own.of(some["offset"])
            head: list[Cell] = [(SECONDS, some["ts"]), b" cpu", (SIGNED, some["cpu"])]
            entered = self._who(some["next"])
            if kind == WAKEUP:
                made.write(rows, *head, b" wakeup ", entered, *members, b"\n")
                continue
            left, state = self._who(some["prev"]), self._states(some["prev_state"])
            ranks: list[Cell] = []
            if kind == LEGACY:
                ranks = [b" prio=", (SIGNED, some["prev_priority"]), b"->"]
                ranks.append((SIGNED, some["next_priority"]))
            switch: list[Cell] = [b" switch ", left, b" ", state, b" -> ", entered]
            made.write(rows, *head, *switch, *ranks, *members, b"\n")

    def _logs(self, table: Table, made: Made, own: Members) -> None:
        del own
        tasks = self._tasks
        ids = {(tasks.pids[thread], tasks.tids[thread]): thread for thread in tasks.ids}
        lines = []
        for (pid, tid), message in zip(
            table.tuples("pid", "tid"), table.texts("message"), strict=True
        ):
            thread = ids.get((pid, tid))
            who = f"{pid}/{tid}" if thread is None else self._label(tasks, thread)
            lines.append(f" {who} log {json_string(message or '')}\n".encode())
        texts = self.templates.texts(lines)
        made.write(np.arange(len(table)), (SECONDS, table.array("ts")), (TEXT, texts))


SWITCHED = ("offset", "ts", "cpu", "prev", "next", "prev_state", "prev_priority", "next_priority")
"""Columns of ``sched`` in lines."""
EMPTY = '""'
"""Form of an empty text in a line."""


def _plain(text: str) -> str:
    """Return the text, or a JSON string if it could break the line or be invisible."""
    return text if text and text.isprintable() else json_string(text)


def _named(name: str | None, koid: int) -> str:
    return str(koid) if name is None else f"{_plain(name)}({koid})"
