"""The exporter `series`: several snapshots of one VMO, and the changes between them, as CSV."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from fx_inspect.export.base import TreeExport
from fx_inspect.export.presentation import LONG
from fx_inspect.read.entries import entries, unescaped
from fxframework.io.sink import Sink
from fxframework.model.capture import Capture

__all__ = ["SeriesExport"]

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
        count = _generation(capture)
        self._dropped[UNORDERED] += self._last is not None and count < self._last
        self._last = count
        head = f"{self._number},{_cell(capture.name)},{count},"
        known, now = self._known, {}
        times: Counter[str] = Counter()
        long = self._long_texts(capture)
        for path, kind, value, _offset in entries(capture):
            if kind == "node":
                continue
            key = (path, times[path])
            times[path] += 1
            now[key] = found = (kind, self._cell(value))
            before = known.get(key)
            change = "first" if not self._number else "added" if before is None else "changed"
            if before == found:
                if not self._all:
                    continue
                change = "same"
            cell = found[1]
            if isinstance(value, str) and value in self._cells:
                cell = long.in_part(self._cells[value][1]) or cell
            yield head + _row(change, path, kind, cell)
        for key, (kind, _) in known.items():
            if key not in now:
                yield head + _row(GONE, key[0], kind, "")
        self._known = now
        self._number += 1

    def _cell(self, value: Any) -> str:
        """Return the cell of a value."""
        if not isinstance(value, str) or len(value) < LONG:
            return _csv_value(value)
        known = self._cells.get(value)
        if known is None:
            cell = _csv_value(value)
            known = self._cells[value] = (cell, cell.encode())
        return known[0]


def _generation(capture: Capture) -> int:
    """Return the generation count in the header."""
    return int.from_bytes(capture.source.read(8, 8), "little")


def _row(change: str, path: str, kind: str, value: str) -> str:
    node, name = split_property(path)
    return f"{change},{_cell(node)},{_cell(name)},{kind},{value}\r\n"


def split_property(path: str) -> tuple[str, str]:
    """Split the path of a property into the path of its node and its name."""
    at = len(path)
    while True:  # the last unescaped colon ends the node's path
        at = path.rindex(":", 0, at)
        behind = len(path[:at]) - len(path[:at].rstrip("\\"))
        if behind % 2 == 0:
            return path[:at], unescaped(path[at + 1 :])


def _csv_value(value: Any) -> str:
    if isinstance(value, str):
        return _cell(value) or '""'
    if isinstance(value, float):
        return repr(value)
    return _cell(orjson.dumps(value).decode())


def _cell(text: str) -> str:
    """Return a field of CSV."""
    if any(character in text for character in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text
