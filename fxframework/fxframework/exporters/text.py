"""The exporter `text` for any capture: a line per row of its tables, in order of time.

A line has the time in seconds on the capture's clock, the table, the thread, every meaningful
value as ``name=value``, and the row's arguments. Rows without a time come first, table by table.
`fxf cat` prints this for formats without their own text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fxframework.exporters.rows import ArgumentMembers, json_arguments, tasks
from fxframework.kernels.parts import MEMBERS, MEMBERS_END, NATURAL, SECONDS, SIGNED, TEXT
from fxframework.kernels.templates import Cell, Templates
from fxframework.kit.export import Export, empty_refusal
from fxframework.kit.in_time import Events, InTime
from fxframework.kit.row_texts import Lines, Numbered, doubles, groups
from fxframework.model.capture import Capture
from fxframework.model.clock import NS_MIN
from fxframework.model.schema import Column
from fxframework.model.strings import TextColumn
from fxframework.model.table import Table

__all__ = ["TextExport"]

SILENT = frozenset({"row", "offset", "ts", "ticks", "thread", "parent", "depth"})
"""Columns that are shown differently, or not at all."""
BESIDE = frozenset({"args", "diagnostics"})
"""Tables that are not shown as rows."""
SIDES = ("prev", "next")


class TextExport(Export):
    """Writes captures one after the other."""

    def write(self, capture: Capture) -> None:
        """Write a capture. Raises WriteRefusedError if no table has rows."""
        before = self._sink.written
        lines = _Lines(capture)
        names = [name for name in capture.schemas if name not in BESIDE]
        timed = [name for name in names if lines.has_times(name)]
        for name in names:
            if name not in timed:
                for events in lines.of(name):
                    self._emit(events)
        with InTime(self._emit) as ordered:
            for name in timed:
                for events in lines.of(name):
                    ordered.add(events, NS_MIN)
        if self._sink.written == before:
            raise empty_refusal(capture, "no table has any rows")

    def _emit(self, events: Events) -> None:
        self._sink.write(events.text().data.data)


class _Lines:
    """Renders the rows of a capture's tables as lines."""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self._templates = Templates(b" {", b", ", b"}", width=1)
        self._arguments = json_arguments(
            self._templates, capture.strings, lambda name: f"{_bare(name)}="
        )
        self._labels = {number: who.label for number, who in tasks(capture).items()}
        self._shown: dict[str, Numbered] = {}

    def has_times(self, table: str) -> bool:
        """Return whether the rows of a table have times."""
        return any(one.name == "ts" for one in self._capture.schemas[table].columns)

    def of(self, name: str) -> Iterator[Events]:
        """Yield the lines of a table, in the order of its rows."""
        self._shown = {}
        timed = self.has_times(name)
        arguments = ArgumentMembers(self._capture, name, self._arguments)
        for batch, (starts, stops) in arguments.parts(self._capture.batches(name)):
            ts = batch.array("ts") if timed else np.zeros(len(batch), np.int64)
            lines = Lines(self._templates)
            never = batch.array("dur") == -1 if "dur" in batch else np.zeros(len(batch), np.bool_)
            for without, rows in groups(never):
                hidden = {*SILENT, "dur"} if without else SILENT
                some = batch.select(rows)
                parts: list[Cell] = [b"[", (SECONDS, ts[rows]), b"] "] if timed else []
                parts.append(name.encode())
                if "thread" in batch and self._labels:
                    parts.append(self._text("", some.array("thread"), self._label))
                for column in batch.schema.all_columns:
                    if column.name not in hidden:
                        parts += self._cells(some, column)
                members: list[Cell] = [(MEMBERS, starts[rows]), (MEMBERS_END, stops[rows])]
                lines.put(rows, *parts, *members, b"\n")
            text, _ = lines.joined()
            sizes = np.diff(text.offsets)
            yield Events(ts, text.data, text.offsets[:-1], sizes, np.zeros((0, ts.size), np.int64))

    def _text(self, name: str, numbers: NDArray[Any], make: Callable[[int], str]) -> Cell:
        """Return the texts of a column of numbers, each made once."""
        known = self._shown.get(name)
        if known is None:
            known = self._shown[name] = Numbered(self._templates, make, sparse=True)
        return known(numbers)

    def _label(self, thread: int) -> str:
        label = self._labels.get(thread)
        return f" {label}" if label else ""

    def _cells(self, table: Table, column: Column) -> list[Cell]:
        """Return the parts of a column: a blank, its name and its value, if it has a meaning."""
        name, values = column.name, table[column.name]
        if isinstance(values, TextColumn):
            texts = [_shown(name, text).encode() for text in values]
            return [(TEXT, self._templates.texts(texts))]
        if column.kind == "code":
            pool = table.pool
            return [self._text(name, values, lambda code: _shown(name, pool.text(code)))]
        if name in SIDES and self._labels:
            return [self._text(name, values, lambda thread: _shown(name, self._labels.get(thread)))]
        if column.values:
            return [self._text(name, values, lambda at: _shown(name, column.values.get(at, at)))]
        lead = f" {name}=".encode()
        if values.ndim > 1:
            return [lead, (SIGNED, values[:, 0]), b"+", (SIGNED, values[:, 1])]
        if values.dtype.kind == "b":
            return [
                self._text(name, values.view(np.uint8), lambda true: f" {name}" if true else "")
            ]
        if values.dtype.kind == "f":
            return [lead, doubles(self._templates, values, repr)]
        return [lead, (NATURAL if values.dtype == np.uint64 else SIGNED, values)]


def _bare(name: str) -> str:
    """Return a JSON name without its quotes if it is a plain word."""
    return name[1:-1] if name[1:-1].replace("_", "").isalnum() else name


def _shown(column: str, value: str | int | None) -> str:
    """Return a blank and ``column=value``; nothing for an empty text."""
    if value is None or value == "":
        return ""
    text = str(value).translate(_ESCAPES)
    return f" {column}={text!r}" if " " in text or not text else f" {column}={text}"


_ESCAPES = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))}
_ESCAPES |= {9: "\\t", 10: "\\n", 13: "\\r"}
