"""Ids of 32 bits for the processes and threads of captures."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fx_xray import format as wire
from fx_xray.format import BASIC_FORM

__all__ = ["IdAllocator"]

I64 = NDArray[Any]
I32_END: Final = 1 << 31


class IdAllocator:
    """Assigns ids of 32 bits to the processes and threads of captures.

    ``dropped`` counts the ids that could not be kept: those that are too large and, in versions
    without process ids, those that two processes share.
    """

    def __init__(self, form: str, version: int) -> None:
        self._basic = form == BASIC_FORM
        least = wire.BASIC_PID_VERSION if self._basic else wire.PID_VERSION
        self._with_processes = version >= least
        self._implied = not self._basic and version == wire.EXTENTS_VERSION
        """Whether readers use the id of the thread as that of the process."""
        self._processes: dict[int, int] = {}
        self._threads: dict[tuple[int, int], int] = {}
        self._taken: set[tuple[int, int]] = set()
        """Numbers of threads, each with that of the process within which it is unique."""
        self._process_numbers: set[int] = set()
        self._next = 1
        self._kept: list[tuple[NDArray[np.uint64], NDArray[np.uint64]]] = []
        """Koids of the first capture if all are ids; they are entered when more follow."""
        self.dropped: Counter[str] = Counter()

    def numbers(self, pids: NDArray[np.uint64], tids: NDArray[np.uint64]) -> tuple[I64, I64]:
        """Return ids of processes and threads, int64 of shape (n,), for their koids."""
        if self._with_processes and not self._threads and not self._kept:
            low = -I32_END
            high = I32_END
            if self._basic:
                low = 0
                high = 1 << 32
            # Most captures have small ids throughout, which need no dictionaries.
            ids = pids.astype(np.uint64).view(np.int64), tids.astype(np.uint64).view(np.int64)
            if all(bool(((koid_array >= low) & (koid_array < high)).all()) for koid_array in ids):
                self._kept.append((pids, tids))
                return ids
        for koids in (*self._kept, (pids, tids)):
            pairs = list(zip(*(koid_array.tolist() for koid_array in koids), strict=True))
            for pid, tid in pairs:
                if (pid, tid) not in self._threads:
                    self._enter(pid, tid)
        self._kept.clear()
        processes = np.array([self._processes[pid] for pid, _ in pairs], np.int64)
        return processes, np.array([self._threads[pair] for pair in pairs], np.int64)

    def _enter(self, pid: int, tid: int) -> None:
        if pid not in self._processes:
            number = self._fitting(pid)
            if number is None or number in self._process_numbers:
                while self._next in self._process_numbers:
                    self._next += 1
                number = self._next
                if self._with_processes:
                    self.dropped["numbers of processes"] += 1
            self._process_numbers.add(number)
            self._processes[pid] = number
        # Numbers of threads are unique in their process, or in the trace if it has none.
        scope = 0
        if self._with_processes:
            scope = self._processes[pid]
        number = self._fitting(tid)
        if number is None or (scope, number) in self._taken:
            while (scope, self._next) in self._taken:
                self._next += 1
            number = self._next
            self.dropped["numbers of threads"] += 1
        self._taken.add((scope, number))
        self._threads[pid, tid] = number
        if self._with_processes:
            return
        process_read = 0
        if self._implied:
            process_read = tid
        if pid != process_read:
            self.dropped["processes of threads"] += 1

    def _fitting(self, koid: int) -> int | None:
        """Return the koid if it fits 32 bits, which are signed in the flight data recorder."""
        if self._basic:
            if koid < 1 << 32:
                return koid
            return None
        # A negative id is its complement of 64 bits as a koid.
        signed = (koid ^ 1 << 63) - (1 << 63)
        if -I32_END <= signed < I32_END:
            return signed
        return None
