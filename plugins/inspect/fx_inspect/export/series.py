"""The exporter `series`: several snapshots of one VMO, and the changes between them, as CSV."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from fx_inspect.export.base import TreeExport
from fx_inspect.export.presentation import LONG
from fx_inspect.format import GENERATION, HEADER_BYTES
from fx_inspect.read.entries import entries, unescaped
from fxframework.io.sink import Sink
from fxframework.kit.shown import in_quotes
from fxframework.model.capture import Capture

UNORDERED: Final = "snapshots older than the one before, by generation"
COLUMNS: Final = ("snapshot", "file", "generation", "change", "path", "name", "type", "value")
GONE: Final = "removed"


class SeriesExport(TreeExport):
    """Writes CSV rows: all values of the first snapshot, and the changes of each later one."""

    def __init__(self, sink: Sink, options: Mapping[str, Any]) -> None:
        super().__init__(sink, options)
        self._all = options["all"]
        self._number = 0
        self._last: int | None = None
        self._known: dict[tuple[str, int], tuple[str, str]] = {}
        """The last type and value, by path and number of the occurrence of that path."""
        self._cells: dict[str, tuple[str, bytes]] = {}
        """The cells of long strings, as text and bytes, since many properties may share one."""

    def _pieces(self, capture: Capture) -> Iterator[str]:
        """Yield the changes of a snapshot since the previous one."""
        if not self._number:
            yield ",".join(COLUMNS) + "\r\n"
        count = GENERATION.get(capture.source.read(0, HEADER_BYTES), 0)
        if self._last is not None and count < self._last:
            self._dropped[UNORDERED] += 1
        self._last = count
        row_start = f"{self._number},{_cell(capture.name)},{count},"
        cells_before = self._known
        cells_now = {}
        path_counts: Counter[str] = Counter()
        long_texts = self._long_texts(capture)
        for path, kind, value, _offset in entries(capture):
            if kind == "node":
                continue
            key = (path, path_counts[path])
            path_counts[path] += 1
            cell = self._cell(value)
            cells_now[key] = (kind, cell)
            # The first snapshot is all new; later ones are compared with the one before.
            change = "changed"
            if not self._number:
                change = "first"
            elif key not in cells_before:
                change = "added"
            elif cells_before[key] == cells_now[key]:
                if not self._all:
                    continue
                change = "same"
            if isinstance(value, str) and value in self._cells:
                _, cell_bytes = self._cells[value]
                cell = long_texts.in_part(cell_bytes) or cell
            yield row_start + _row(change, path, kind, cell)
        for key, (kind, _) in cells_before.items():
            if key not in cells_now:
                yield row_start + _row(GONE, key[0], kind, "")
        self._known = cells_now
        self._number += 1

    def _cell(self, value: Any) -> str:
        """Return the cell of a value."""
        if not isinstance(value, str) or len(value) < LONG:
            return _csv_value(value)
        if value not in self._cells:
            cell = _csv_value(value)
            self._cells[value] = (cell, cell.encode())
        return self._cells[value][0]


def _row(change: str, path: str, kind: str, value_cell: str) -> str:
    node, name = split_property(path)
    return f"{change},{_cell(node)},{_cell(name)},{kind},{value_cell}\r\n"


def split_property(path: str) -> tuple[str, str]:
    """Split the path of a property into the path of its node and its name."""
    colon = len(path)
    while True:  # the last unescaped colon ends the node's path
        colon = path.rindex(":", 0, colon)
        backslashes = len(path[:colon]) - len(path[:colon].rstrip("\\"))
        if backslashes % 2 == 0:
            return path[:colon], unescaped(path[colon + 1 :])


def _csv_value(value: Any) -> str:
    if isinstance(value, str):
        return _cell(value) or '""'
    if isinstance(value, float):
        return repr(value)
    return _cell(orjson.dumps(value).decode())


def _cell(text: str) -> str:
    """Return a field of CSV."""
    if any(character in text for character in ',"\r\n'):
        return in_quotes(text)
    return text
