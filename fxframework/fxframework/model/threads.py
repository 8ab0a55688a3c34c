"""Threads: the threads of a capture, found by id, with the names of their processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fxframework.kernels.arrays import I64, Codes
from fxframework.model.schema import TableSchema
from fxframework.model.table import Table

__all__ = ["Threads"]

LAST_FREE = (1 << 31) - 1
"""The first number that is tried for a thread whose own is taken."""


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
            self.ids = table.array("id")
            self.pids = table.array("pid")
            self.tids = table.array("tid")
            self.names = table.array("name")
            self.process_names = np.full(self.ids.size, -1, np.int32)
        # One more than ids, for the threads that are unknown: index -1, and any that is too large.
        self._row_of_id = np.full(int(self.ids.max(initial=-1)) + 2, -1, np.int64)
        self._row_of_id[self.ids] = np.arange(self.ids.size)
        if "processes" in schemas:
            self._name_processes(read("processes"))

    def _name_processes(self, processes: Table) -> None:
        """Set the names of processes; of equal pids, the last counts."""
        if not len(processes):
            return
        by_pid = np.argsort(processes.array("pid"), kind="stable")
        sorted_pids = processes.array("pid")[by_pid]
        sorted_names = processes.array("name")[by_pid]
        last_places = np.searchsorted(sorted_pids, self.pids, "right") - 1
        # Place -1 is the last process, whose pid differs then.
        is_known = (last_places >= 0) & (sorted_pids[last_places] == self.pids)
        self.process_names[is_known] = sorted_names[last_places[is_known]]

    def distinct_tids(self) -> NDArray[np.uint64]:
        """Return the tids for formats that tell threads apart by process and tid alone.

        Of threads with the same two, such as those of references that nobody registered, the first
        one keeps its tid; the others get free ones, from 2^31 - 1 down.
        """
        order = np.lexsort((self.tids, self.pids))
        sorted_pids = self.pids[order]
        sorted_tids = self.tids[order]
        is_repeated = (sorted_pids[1:] == sorted_pids[:-1]) & (sorted_tids[1:] == sorted_tids[:-1])
        repeated = order[1:][is_repeated]
        if not repeated.size:
            return self.tids
        taken = set(self.tids.tolist())
        free_tids = (number for number in range(LAST_FREE, 0, -1) if number not in taken)
        tids = self.tids.copy()
        tids[np.sort(repeated)] = np.fromiter(free_tids, np.uint64, repeated.size)
        return tids

    def rows(self, ids: NDArray[Any]) -> I64:
        """Return the row of each thread in the arrays; -1 for unknown threads."""
        rows: I64 = self._row_of_id[np.clip(ids, -1, self._row_of_id.size - 1)]
        return rows

    def row(self, number: int) -> int:
        """Return the row of a thread in the arrays; -1 if it is unknown."""
        if not 0 <= number < self._row_of_id.size:
            return -1
        return int(self._row_of_id[number])
