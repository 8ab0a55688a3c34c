"""Threads: the threads of a capture, found by id, with the names of their processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fxframework.model.schema import TableSchema
from fxframework.model.table import Table

__all__ = ["Threads"]

I64 = NDArray[np.int64]
Codes = NDArray[np.int32]


class Threads:
    """The threads of a capture; none without a table of threads.

    ``schemas`` are those of the capture's tables; ``read`` returns a table by name. Arrays have
    one element per thread. Of equal ids, the last counts.
    """

    ids: NDArray[np.int32] = np.zeros(0, np.int32)
    """What the columns ``thread`` of other tables hold."""
    pids: NDArray[np.uint64] = np.zeros(0, np.uint64)
    """Koids or ids of their processes."""
    tids: NDArray[np.uint64] = np.zeros(0, np.uint64)
    """Their koids or ids."""
    names: Codes = np.zeros(0, np.int32)
    """Codes of names; -1 if unknown."""
    process_names: Codes = np.zeros(0, np.int32)
    """Codes of the names of processes; -1 if unknown."""

    def __init__(self, schemas: Mapping[str, TableSchema], read: Callable[[str], Table]) -> None:
        if "threads" in schemas:
            table = read("threads")
            self.ids, self.names = table.array("id"), table.array("name")
            self.pids, self.tids = table.array("pid"), table.array("tid")
            self.process_names = np.full(self.ids.size, -1, np.int32)
        self._rows = np.full(int(self.ids.max(initial=-1)) + 2, -1, np.int64)
        self._rows[self.ids] = np.arange(self.ids.size)
        processes = read("processes") if "processes" in schemas else None
        if processes is not None and len(processes):
            order = np.argsort(processes.array("pid"), kind="stable")
            pids, names = processes.array("pid")[order], processes.array("name")[order]
            at = np.searchsorted(pids, self.pids, "right") - 1
            found = (at >= 0) & (pids[at] == self.pids)
            self.process_names[found] = names[at[found]]

    def rows(self, ids: NDArray[Any]) -> I64:
        """Return the row of each thread in the arrays; -1 for unknown threads."""
        rows: I64 = self._rows[np.clip(ids, -1, self._rows.size - 1)]
        return rows

    def row(self, number: int) -> int:
        """Return the row of a thread in the arrays; -1 if it is unknown."""
        return int(self._rows[number]) if 0 <= number < self._rows.size else -1
