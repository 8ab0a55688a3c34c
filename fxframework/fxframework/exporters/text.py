"""The exporter `text` for any capture: a line per row of its tables, in order of time.

A line has the time in seconds on the capture's clock, the table, the thread, every meaningful
value as ``name=value``, and the row's arguments. Rows without a time come first, table by table.
`fxf cat` prints this for formats without their own text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from fxframework.errors import WriteRefusedError
from fxframework.exporters.rows import Arguments, pieces, tasks
from fxframework.kit.export import Export
from fxframework.model.capture import Capture
from fxframework.model.table import Table

__all__ = ["TextExport"]

ROWS = 8192
"""Lines made at a time."""
SILENT = frozenset({"row", "offset", "ts", "ticks", "thread", "parent", "depth"})
"""Columns that are shown differently, or not at all."""
BESIDE = frozenset({"args", "diagnostics"})
"""Tables that are not shown as rows."""
SIDES = ("prev", "next")
SECOND = 10**9


class TextExport(Export):
    """Writes captures one after the other."""

    def write(self, capture: Capture) -> None:
        """Write a capture. Raises WriteRefusedError if no table has rows."""
        lines = _Lines(capture)
        written = 0
        for some in pieces(lines):
            self._sink.write(some)
            written += len(some)
        if not written:
            raise WriteRefusedError(
                "no table has any rows", path=capture.name, remedy="`fxf info` shows what there is"
            )


class _Lines:
    """Iterates over the lines of a capture."""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self._tasks = tasks(capture)
        self._labels = {
            number: f"{who.process or who.pid}/{who.thread or who.tid}"
            for number, who in self._tasks.items()
        }

    def __iter__(self) -> Iterator[str]:
        names = [name for name in self._capture.schemas if name not in BESIDE]
        timed = [name for name in names if self._has(name, "ts")]
        for name in names:
            if name not in timed:
                for batch in self._capture.batches(name, ROWS):
                    for line in self._table_lines(batch):
                        yield f"{line}\n"
        yield from self._by_time(timed)

    def _has(self, table: str, column: str) -> bool:
        return any(one.name == column for one in self._capture.schemas[table].columns)

    def _by_time(self, names: list[str]) -> Iterator[str]:
        """Yield rows of several tables by time; rows of equal time by table and row."""
        tables = [self._capture.table(name) for name in names]
        if not tables:
            return
        times = np.concatenate([table.array("ts") for table in tables])
        sizes = [len(table) for table in tables]
        owner = np.repeat(np.arange(len(tables)), sizes)
        place = np.concatenate([np.arange(size) for size in sizes])
        order = np.argsort(times, kind="stable")
        arguments = [Arguments(self._capture, name) for name in names]
        for start in range(0, order.size, ROWS):
            some = order[start : start + ROWS]
            # Each table has an iterator of its lines, advanced as they are needed.
            lines = [
                self._table_lines(
                    table.select(place[some[owner[some] == number]]), arguments[number]
                )
                for number, table in enumerate(tables)
            ]
            for ts, number in zip(times[some].tolist(), owner[some].tolist(), strict=True):
                yield f"[{_seconds(ts)}] {next(lines[number])}\n"

    def _table_lines(self, table: Table, arguments: Arguments | None = None) -> Iterator[str]:
        parts: list[Iterable[str]] = [[table.name] * len(table)]
        if "thread" in table and self._tasks:
            threads = table.array("thread").tolist()
            parts.append([self._labels.get(number, "") for number in threads])
        for column in table.columns:
            if column in SILENT:
                continue
            values = table.plain(column)
            if column in SIDES and self._tasks:
                values = [self._labels.get(number) for number in values]
            parts.append(_each_shown(column, values))
        if arguments is not None and len(arguments):
            places = arguments.of(table.array("row"))
            parts.append(_members(arguments, each) for each in places)
        return (" ".join(filter(None, cells)) for cells in zip(*parts, strict=True))


def _each_shown(column: str, values: Iterable[Any]) -> Iterator[str]:
    """Yield ``_shown`` of each value, computed once for repeated values."""
    last: Any = None
    shown = ""
    for value in values:
        if value is not last:
            shown = _shown(column, value)
            last = value
        yield shown


def _members(arguments: Arguments, places: range) -> str:
    members = (f"{_bare(name)}={value}" for name, value in arguments.members(places))
    return f"{{{', '.join(members)}}}" if places else ""


def _bare(name: str) -> str:
    """Return a JSON name without its quotes if it is a plain word."""
    return name[1:-1] if name[1:-1].replace("_", "").isalnum() else name


def _shown(column: str, value: Any) -> str:
    """Return ``column=value``; empty for a value without meaning."""
    if value is None or value is False or value == "" or (value == -1 and column == "dur"):
        return ""
    if isinstance(value, str):
        text = value.translate(_ESCAPES)
        return f"{column}={text!r}" if " " in text or not text else f"{column}={text}"
    if isinstance(value, tuple):
        return f"{column}={'+'.join(map(str, value))}"
    if value is True:
        return column
    return f"{column}={value}"


_ESCAPES = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))}
_ESCAPES |= {9: "\\t", 10: "\\n", 13: "\\r"}


def _seconds(ns: int) -> str:
    """Format nanoseconds as exact seconds."""
    whole, rest = divmod(abs(ns), SECOND)
    return f"{'-' if ns < 0 else ''}{whole}.{rest:09d}"
