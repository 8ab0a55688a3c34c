"""Chunks: raw rows of consecutive records, and those of a whole file."""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_trace.meaning import COLUMNS, Cells
from fxframework.io.spill import Spill
from fxframework.io.words import WORD
from fxframework.kernels.arrays import I64

ALIASES = {"time": ("ticks",), "finish": ("word", "time")}
"""Columns that may be the same as another one."""


class Filled(SimpleNamespace):
    """Columns of raw rows (``meaning.COLUMNS``), each of shape (rows,)."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> NDArray[Any]: ...


@attrs.define(eq=False)
class Chunk:
    """Raw rows of consecutive records."""

    events: Filled
    args: Filled
    sched: Filled
    logs: Filled
    blobs: Filled
    objects: Filled
    profiler: Filled
    counters: Filled
    annotations: Filled
    first: dict[str, int]
    """By table, and of `ends`: the row of the chunk's first one."""
    after: dict[str, int]
    """The same of the row behind its last one."""
    clocks: I64
    """Shape (n, 2): the first of the events of a clock, and its number in ``RowReader.clocks``."""
    outside: I64
    """Offsets of the records with times that do not fit 63 bits of nanoseconds."""
    unnamed: list[int]
    """Codes of texts that stand for unknown strings and were not met before."""
    pids: I64
    """The process koid of each thread so far."""
    end: int
    """Bytes of the file that were read so far."""

    def by_clock(self, values: list[int]) -> NDArray[np.uint64]:
        """Return for each event the value of its clock, of some that are given by clock."""
        counts = np.diff(self.clocks[:, 0], append=self.events.kind.size)
        numbers = np.repeat(self.clocks[:, 1], counts)
        return np.array(values, np.uint64)[numbers]


@functools.cache
def no_rows(table: str) -> Filled:
    """Return no rows of a table."""
    return Filled(**{name: np.zeros(0, dtype) for name, dtype in COLUMNS[table].items()})


def filled_of(table: str, parts: list[Cells]) -> Filled:
    """Return the rows of several runs, one after another."""
    if not parts:
        return no_rows(table)
    filled: Cells = {}
    for name, dtype in COLUMNS[table].items():
        alias = alias_of(name, parts, filled)
        if alias:
            filled[name] = filled[alias]
        else:
            column = parts[0][name]
            if len(parts) > 1:
                column = np.concatenate([cells[name] for cells in parts])
            filled[name] = np.ascontiguousarray(column, dtype)
    return Filled(**filled)


def alias_of(name: str, parts: list[Cells], filled: Cells) -> str | None:
    """Return another column that is the same in all parts; None if there is none."""
    for alias in ALIASES.get(name, ()):
        if alias in filled and all(cells[name] is cells[alias] for cells in parts):
            return alias
    return None


class WholeRows:
    """The rows of a whole file of ``nbytes``, which grow chunk by chunk.

    A column takes no memory as long as it is the same as another one (``ALIASES``), or all zero.
    """

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        self.position = 0
        """The byte behind the last chunk."""
        self.counts = dict.fromkeys(COLUMNS, 0)
        self.columns: dict[tuple[str, str], Spill] = {}
        """Columns, by table and name, that are neither the same as another one nor all zero."""
        self.aliases: dict[tuple[str, str], str] = {}
        """Columns that have been the same as another one so far."""
        self.clocks = [np.zeros((0, 2), np.int64)]
        self.outside = [np.zeros(0, np.int64)]

    def add(self, chunk: Chunk) -> None:
        """Add the rows of a chunk."""
        self.position = chunk.end
        event_shift = np.array([self.counts["events"], 0])
        self.clocks.append(chunk.clocks + event_shift)
        self.outside.append(chunk.outside)
        rows_before = dict(self.counts)
        for table in COLUMNS:
            filled: Cells = vars(getattr(chunk, table))
            count = next(iter(filled.values())).size
            for name, column in filled.items() if count else ():
                # What names events and arguments by number does so within the chunk.
                shift = rows_before.get({"event": "events", "arg": "args"}.get(name, ""), 0)
                self.put(table, name, column + shift if shift else column, filled)
            self.counts[table] += count

    def put(self, table: str, name: str, column: NDArray[Any], filled: Cells) -> None:
        """Add a column of a chunk."""
        key = table, name
        used = self.counts[table]
        spill = self.columns.get(key)
        if spill is None:
            alias = self.alias_for(key, column, filled)
            if alias is not None:
                self.aliases[key] = alias
                return
            if key not in self.aliases and not column.any():
                return  # it is all zero up to here
            spill = Spill(column.dtype, in_memory=True)
            spill.grow(self.room(used + column.size))
            spill.array[:used] = self.column(table, name)
            self.aliases.pop(key, None)
            self.columns[key] = spill
        elif spill.array.size < used + column.size:
            spill.grow(used + column.size)
        spill.array[used : used + column.size] = column

    def alias_for(self, key: tuple[str, str], column: NDArray[Any], filled: Cells) -> str | None:
        """Return the column that another one is the same as, in this chunk and all before."""
        table, name = key
        aliases = ALIASES.get(name, ())
        if self.counts[table]:
            aliases = (self.aliases[key],) if key in self.aliases else ()
        return next((alias for alias in aliases if column is filled[alias]), None)

    def room(self, rows: int) -> int:
        """Return for how many rows there should be room, if the rest of the file is like this."""
        expected_rows = 1.05 * rows * self.nbytes / self.position
        most_rows = self.nbytes // WORD  # a row is of a word at least
        return max(rows, int(min(expected_rows, most_rows)))

    def column(self, table: str, name: str) -> NDArray[Any]:
        """Return a column as it is so far."""
        # An alias may have an alias: `finish` is `word`, or `time`, which may be `ticks`.
        name = self.aliases.get((table, name), name)
        name = self.aliases.get((table, name), name)
        spill = self.columns.get((table, name))
        if spill is None:
            return np.zeros(self.counts[table], COLUMNS[table][name])
        return spill.array[: self.counts[table]]

    def chunk(self, after: dict[str, int], pids: I64) -> Chunk:
        """Return all rows; ``after`` and ``pids`` are those of the last chunk."""
        tables: dict[str, Filled] = {}
        for table, columns in COLUMNS.items():
            filled: Cells = {}
            for name in columns:
                alias = self.aliases.get((table, name))
                filled[name] = self.column(table, name) if alias is None else filled[alias]
            tables[table] = Filled(**filled)
        return Chunk(
            **tables, first=dict.fromkeys(after, 0), after=after,
            clocks=np.concatenate(self.clocks), outside=np.concatenate(self.outside), unnamed=[],
            pids=pids, end=self.position,
        )  # fmt: skip
