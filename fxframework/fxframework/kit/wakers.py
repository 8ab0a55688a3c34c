"""The threads that caused wakeups, where the arguments of `sched` name them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fxframework.model.capture import Capture
from fxframework.model.schema import ARG_TYPES, TABLE_CODES

__all__ = ["Wakers"]

I64 = NDArray[np.int64]
NAME = "waker"
"""The argument of a wakeup that has the tid of the thread that caused it."""
TYPES = [
    number
    for number, name in ARG_TYPES.items()
    if name in {"koid", "int32", "uint32", "int64", "uint64"}
]


class Wakers:
    """The wakers of a capture's wakeups, from one pass over its arguments."""

    def __init__(self, capture: Capture) -> None:
        rows = [np.zeros(0, np.int64)]
        tids = [np.zeros(0, np.uint64)]
        batches = capture.batches("args") if "args" in capture.schemas else ()
        for batch in batches:
            is_waker = batch.array("name") == batch.pool.code(NAME)
            is_waker &= batch.array("table") == TABLE_CODES["sched"]
            is_waker &= np.isin(batch.array("type"), TYPES) & (batch.array("parent") >= 0)
            if is_waker.any():
                rows.append(batch.array("parent")[is_waker].astype(np.int64))
                tids.append(batch.array("uint")[is_waker])
        # Of several such arguments of a row, the first one counts.
        self._rows, first_places = np.unique(np.concatenate(rows), return_index=True)
        self.tids: NDArray[np.uint64] = np.concatenate(tids)[first_places]
        """The tid of each waker, uint64 of shape (wakeups with a waker,)."""

    def of(self, rows: I64) -> I64:
        """Return the places in ``tids`` for rows of `sched`; -1 for a row without a waker."""
        if not self._rows.size:
            return np.full(rows.size, -1, np.int64)
        places = np.searchsorted(self._rows, rows)
        places = np.minimum(places, self._rows.size - 1)  # rows after the last one with a waker
        return np.where(self._rows[places] == rows, places, -1)
