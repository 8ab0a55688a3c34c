"""The exporter `text`: one line for each event, in order of time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from fx_trace.export.first_pass import (
    TIMED,
    FirstPass,
    KernelNames,
    ThreadNames,
    dropped_records,
    ends_of,
    refusal,
)
from fx_trace.export.items import (
    ASYNC,
    ASYNC_SCOPE,
    CODE,
    LEGACY,
    NEVER,
    PLAIN_FORMS,
    REAL,
    SIGNED,
    UNSIGNED,
    WAKEUP,
    Forms,
    ItemMaker,
    argument_values,
)
from fx_trace.export.json_text import json_string
from fx_trace.export.time_order import InTime
from fx_trace.export.windows import Members, last_offset, windows
from fx_trace.layout import ArgType
from fxframework.kit.export import Export
from fxframework.kit.memo import Memo
from fxframework.model.capture import Capture
from fxframework.model.schema import FLOW_PHASES, SCOPES, THREAD_STATES
from fxframework.model.strings import StringPool
from fxframework.model.table import Table

__all__ = ["TextExport"]

I64 = NDArray[np.int64]


_UNITS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"))


class TextExport(Export):
    """Writes one line for each event, in order of time: when, who, what, its arguments."""

    def write(self, capture: Capture) -> None:
        """Write one capture; a further one follows behind it.

        Raises WriteRefusedError where there is nothing to write.
        """
        capture.scan()
        survey = FirstPass(capture)
        if not survey.rows:
            raise refusal(capture)
        self._dropped += dropped_records(capture, survey)
        names = KernelNames(capture)
        self._dropped["kernel objects other than processes and threads"] += names.others
        lines = _TextLines(capture.strings, ThreadNames(capture), survey)
        with InTime(self._emit, str.encode, bytes.decode) as ordered:
            for window in windows(capture, (*TIMED, "args")):
                ordered.add(*lines.window(window), survey.earliest_after(last_offset(window)))

    def _emit(self, lines: list[str]) -> None:
        self._sink.write(("\n".join(lines) + "\n").encode())


class _TextLines(ItemMaker[str]):
    """Rows as lines, without their ends."""

    def __init__(self, pool: StringPool, cast: ThreadNames, survey: FirstPass) -> None:
        self.makers = {
            name: self._timed(make)
            for name, make in (
                ("slices", self._slices),
                ("instants", self._instants),
                ("flows", self._flows),
                ("counters", self._counters),
                ("sched", self._sched),
                ("logs", self._logs),
            )
        }
        self._texts: Memo[int, str] = Memo(lambda code: "" if code < 0 else _plain(pool[code]))
        self._forms: Forms = {
            **{kind: (SIGNED, f"<type {kind}>".format) for kind in range(16)},
            **PLAIN_FORMS,
            ArgType.DOUBLE: (REAL, repr),
            ArgType.STRING: (CODE, lambda code: json_string(pool[code])),
            ArgType.POINTER: (UNSIGNED, "0x{:x}".format),
            ArgType.KOID: (UNSIGNED, "#{}".format),
            ArgType.BLOB: (CODE, lambda code: f"[{pool.bytes_of(code).hex(' ')}]"),
        }
        self._who = {thread: self._label(cast, thread) for thread in cast.tids}
        self._cast = cast
        self._end_args = survey.end_args()

    @staticmethod
    def _timed(
        make: Callable[[Table, Members], list[str]],
    ) -> Callable[[Table, Members], list[str]]:
        """The lines with their times before them."""

        def timed(table: Table, shown: Members) -> list[str]:
            times, lines = table.array("ts").tolist(), make(table, shown)
            return [f"{_seconds(ts)} {line}" for ts, line in zip(times, lines, strict=True)]

        return timed

    def _column(self, table: Table, name: str) -> list[str]:
        return [self._texts[code] for code in table.array(name).tolist()]

    def _label(self, cast: ThreadNames, thread: int) -> str:
        pid, tid = cast.pids[thread], cast.tids[thread]
        process, name = cast.names.get(pid), cast.thread_names[thread]
        if name is not None and name.startswith("<thr#"):
            return name
        return f"{_named(process, pid)}/{_named(name, tid)}"

    def _title(self, table: Table) -> list[str]:
        """``category:name``, or the name alone."""
        return [
            name if category in {"", EMPTY} else f"{category}:{name}"
            for category, name in zip(
                self._column(table, "category"), self._column(table, "name"), strict=True
            )
        ]

    def _on_thread(self, table: Table) -> list[str]:
        who = self._who
        return [who[thread] for thread in table.array("thread").tolist()]

    def _slices(self, table: Table, shown: Members) -> list[str]:
        lines = []
        ends = ends_of(self._end_args, table, self.render)
        for who, title, (offset, row, kind, number, dur) in zip(
            self._on_thread(table),
            self._title(table),
            table.tuples("offset", "row", "kind", "id", "dur"),
            strict=True,
        ):
            what = f"async id={number}" if kind == ASYNC else "slice"
            length = "unclosed" if dur == NEVER else f"dur={_duration(dur)}"
            parts = [*shown.get(offset, []), *ends.get(row, [])]
            lines.append(" ".join([who, what, title, length, *parts]))
        return lines

    def _instants(self, table: Table, shown: Members) -> list[str]:
        lines = []
        for who, title, (offset, scope, number) in zip(
            self._on_thread(table),
            self._title(table),
            table.tuples("offset", "scope", "id"),
            strict=True,
        ):
            what = "instant"
            if scope == ASYNC_SCOPE:
                what = f"async-instant id={number}"
            elif scope:
                what = f"instant scope={SCOPES.get(scope, scope)}"
            lines.append(" ".join([who, what, title, *shown.get(offset, [])]))
        return lines

    def _flows(self, table: Table, shown: Members) -> list[str]:
        return [
            " ".join([who, f"flow-{FLOW_PHASES[phase]} id={number}", title, *shown.get(offset, [])])
            for who, title, (offset, phase, number) in zip(
                self._on_thread(table),
                self._title(table),
                table.tuples("offset", "phase", "id"),
                strict=True,
            )
        ]

    def _counters(self, table: Table, shown: Members) -> list[str]:
        return [
            " ".join([who, f"counter id={number}", title, *shown.get(offset, [])])
            for who, title, (offset, number) in zip(
                self._on_thread(table),
                self._title(table),
                table.tuples("offset", "id"),
                strict=True,
            )
        ]

    def _sched(self, table: Table, shown: Members) -> list[str]:
        lines = []
        for offset, cpu, kind, before, after, state, left, entered in table.tuples(
            "offset", "cpu", "kind", "prev", "next", "prev_state", "prev_priority", "next_priority"
        ):
            extra = shown.get(offset, [])
            incoming = self._who[after]
            if kind == LEGACY:
                extra = [f"prio={left}->{entered}", *extra]
            if kind == WAKEUP:
                parts = [f"cpu{cpu}", "wakeup", incoming, *extra]
            else:
                word = THREAD_STATES.get(state, str(state))
                parts = [f"cpu{cpu}", "switch", self._who[before], word, "->", incoming, *extra]
            lines.append(" ".join(parts))
        return lines

    def _logs(self, table: Table, shown: Members) -> list[str]:
        del shown
        cast = self._cast
        ids = {(cast.pids[thread], tid): thread for thread, tid in cast.tids.items()}
        lines = []
        for (pid, tid), message in zip(
            table.tuples("pid", "tid"), table.texts("message"), strict=True
        ):
            thread = ids.get((pid, tid))
            who = f"{pid}/{tid}" if thread is None else self._who[thread]
            lines.append(f"{who} log {json_string(message or '')}")
        return lines

    def render(self, args: Table) -> list[str]:
        """Per argument: ``name=value``, with the name of the object that it means."""
        notes: list[str | None] = [None] * len(args)
        if "trace_annotation" in args.columns:
            notes = args.texts("trace_annotation")
        return [
            f"{name}={value}" if note is None else f"{name}={value}({_plain(note)})"
            for name, value, note in zip(
                self._column(args, "name"), argument_values(args, self._forms), notes, strict=True
            )
        ]


EMPTY = '""'
"""How a line shows an empty text."""


def _plain(text: str) -> str:
    """The text as it is, or as a JSON string where it would break the line or hide in it."""
    return text if text and text.isprintable() else json_string(text)


def _named(name: str | None, koid: int) -> str:
    return str(koid) if name is None else f"{_plain(name)}({koid})"


def _seconds(ns: int) -> str:
    """A time in seconds, to the nanosecond; a sign only where it is negative."""
    whole, part = divmod(abs(ns), 1_000_000_000)
    sign = "-" if ns < 0 else ""
    return f"{sign + str(whole):>6}.{part:09d}"


def _duration(ns: int) -> str:
    """A length in the greatest unit that it fills, exact to the nanosecond."""
    for size, unit in _UNITS:
        if ns >= size:
            whole, part = divmod(ns, size)
            digits = f"{part:0{len(str(size)) - 1}d}".rstrip("0")
            return f"{whole}.{digits}{unit}" if digits else f"{whole}{unit}"
    return f"{ns}ns"
