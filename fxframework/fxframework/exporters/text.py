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

from fxframework.exporters.rows import ArgumentMembers, json_arguments
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
from fxframework.model.tasks import tasks

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
        for name in names:
            if not lines.has_times(name):
                for events in lines.of(name):
                    self._emit(events)
        with InTime(self._emit) as ordered:
            for name in names:
                if lines.has_times(name):
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
        self._labels = {id: task.label for id, task in tasks(capture).items()}
        self._texts_by_column: dict[str, Numbered] = {}
        """Texts of the numbers in columns of the current table."""

    def has_times(self, table: str) -> bool:
        """Return whether the rows of a table have times."""
        return any(column.name == "ts" for column in self._capture.schemas[table].columns)

    def of(self, name: str) -> Iterator[Events]:
        """Yield the lines of a table, in the order of its rows."""
        self._texts_by_column = {}
        has_times = self.has_times(name)
        arguments = ArgumentMembers(self._capture, name, self._arguments)
        for batch, bounds in arguments.parts(self._capture.batches(name)):
            ts = np.zeros(len(batch), np.int64)
            if has_times:
                ts = batch.array("ts")
            lines = Lines(self._templates)
            # Rows with and without a length have lines of different parts.
            is_open = np.zeros(len(batch), np.bool_)
            if "dur" in batch:
                is_open = batch.array("dur") == -1
            for has_no_length, rows in groups(is_open):
                parts: list[Cell] = []
                if has_times:
                    parts += [b"[", (SECONDS, ts[rows]), b"] "]
                hidden = SILENT | {"dur"} if has_no_length else SILENT
                parts += self._row(name, batch.select(rows), hidden)
                starts, stops = bounds
                parts += [(MEMBERS, starts[rows]), (MEMBERS_END, stops[rows])]
                lines.put(rows, *parts, b"\n")
            text, _ = lines.joined()
            sizes = np.diff(text.offsets)
            no_keys = np.zeros((0, ts.size), np.int64)
            yield Events(ts, text.data, text.offsets[:-1], sizes, no_keys)

    def _row(self, name: str, table: Table, hidden: frozenset[str]) -> Iterator[Cell]:
        """Yield the parts of rows: the name of their table, the thread, and the other columns."""
        yield name.encode()
        if "thread" in table and self._labels:
            yield self._text("", table.array("thread"), self._label)
        for column in table.schema.all_columns:
            if column.name not in hidden:
                yield from self._cells(table, column)

    def _text(self, name: str, numbers: NDArray[Any], make: Callable[[int], str]) -> Cell:
        """Return the texts of a column of numbers, each made once."""
        texts = self._texts_by_column.get(name)
        if texts is None:
            texts = Numbered(self._templates, make, sparse=True)
            self._texts_by_column[name] = texts
        return texts(numbers)

    def _label(self, thread: int) -> str:
        label = self._labels.get(thread)
        return f" {label}" if label else ""

    def _cells(self, table: Table, column: Column) -> Iterator[Cell]:
        """Yield the parts of a column: a blank, its name and its value, if it has a meaning."""
        name = column.name
        values = table[name]
        if isinstance(values, TextColumn):
            texts = [_shown(name, text).encode() for text in values]
            yield TEXT, self._templates.texts(texts)
        elif column.kind == "code":
            pool = table.pool
            yield self._text(name, values, lambda code: _shown(name, pool.text(code)))
        elif name in SIDES and self._labels:
            # The threads of a switch, which are shown by name as the thread of any row is.
            yield self._text(name, values, lambda id: _shown(name, self._labels.get(id)))
        elif column.values:
            meanings = column.values
            yield self._text(
                name, values, lambda number: _shown(name, meanings.get(number, number))
            )
        elif values.ndim > 1:
            yield f" {name}=".encode()
            yield SIGNED, values[:, 0]
            yield b"+"
            yield SIGNED, values[:, 1]
        elif values.dtype.kind == "b":
            flags = values.view(np.uint8)
            yield self._text(name, flags, lambda flag: f" {name}" if flag else "")
        else:
            yield f" {name}=".encode()
            if values.dtype.kind == "f":
                yield doubles(self._templates, values, repr)
            elif values.dtype == np.uint64:
                yield NATURAL, values
            else:
                yield SIGNED, values


def _bare(name: str) -> str:
    """Return a JSON name without its quotes if it is a plain word."""
    word = name[1:-1]
    return word if word.replace("_", "").isalnum() else name


def _shown(column: str, value: str | int | None) -> str:
    """Return a blank and ``column=value``; nothing for an empty text."""
    if value is None or value == "":
        return ""
    text = str(value).translate(_ESCAPES)
    if " " in text:
        text = repr(text)
    return f" {column}={text}"


_ESCAPES = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))}
_ESCAPES |= {9: "\\t", 10: "\\n", 13: "\\r"}
