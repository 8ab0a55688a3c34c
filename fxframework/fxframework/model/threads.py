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
LAST_FREE = (1 << 31) - 1


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

    def distinct_tids(self) -> NDArray[np.uint64]:
        """Return the tids for formats that tell threads apart by process and tid alone.

        Of threads with the same two, such as those of references that nobody registered, the first
        one keeps its tid; the others get free ones, from 2^31 - 1 down.
        """
        order = np.lexsort((self.tids, self.pids))
        pids, tids = self.pids[order], self.tids[order]
        again = order[1:][(pids[1:] == pids[:-1]) & (tids[1:] == tids[:-1])]
        if not again.size:
            return self.tids
        taken = set(self.tids.tolist())
        free = (number for number in range(LAST_FREE, 0, -1) if number not in taken)
        found = self.tids.copy()
        found[np.sort(again)] = np.fromiter(free, np.uint64, again.size)
        return found

    def rows(self, ids: NDArray[Any]) -> I64:
        """Return the row of each thread in the arrays; -1 for unknown threads."""
        rows: I64 = self._rows[np.clip(ids, -1, self._rows.size - 1)]
        return rows

    def row(self, number: int) -> int:
        """Return the row of a thread in the arrays; -1 if it is unknown."""
        return int(self._rows[number]) if 0 <= number < self._rows.size else -1
