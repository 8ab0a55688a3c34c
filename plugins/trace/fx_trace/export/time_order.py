"""Puts rendered events in order of time, in bounded memory."""

from __future__ import annotations

import bisect
import heapq
from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fx_trace.export.windows import ROWS
from fxframework.io.temporary import TemporaryFile

I64 = NDArray[np.int64]
WAITING = 1 << 18
WAITING_BYTES = 32 << 20
"""Rendered events, and bytes of them, that wait in memory to be put in order; more go to a
temporary file."""
BATCH_BYTES = 4 << 20
"""Bytes of events given out at a time."""
PIECE = 1 << 16
"""Bytes of a run of events that are read at a time."""


class InTime:
    """Puts rendered events in order of time, those of one time in the order they came in.

    They wait in memory until nothing earlier can come. Too many of them go to a temporary file in
    sorted runs, which are merged at the end: ``pack`` makes a line of one, ``unpack`` one of that,
    ``size`` tells how many characters it has.
    """

    def __init__(
        self,
        emit: Callable[[list[Any]], None],
        pack: Callable[[Any], bytes],
        unpack: Callable[[bytes], Any],
        size: Callable[[Any], int] = len,
    ) -> None:
        self._emit = emit
        self._pack = pack
        self._unpack = unpack
        self._size = size
        self._bytes = 0
        self._times = np.zeros(0, np.int64)
        self._items: list[Any] = []
        self._runs: list[tuple[int, int]] = []
        self._file: TemporaryFile | None = None

    def add(self, times: I64, items: list[Any], earliest: int) -> None:
        """Take in events and their times, and give out what is before ``earliest``.

        No event that is still to come may be before that.
        """
        self._times = np.concatenate((self._times, times))
        self._items += items
        self._bytes += sum(map(self._size, items))
        if (self._times[1:] < self._times[:-1]).any():
            order = np.argsort(self._times, kind="stable")
            self._times = self._times[order]
            self._items = [self._items[place] for place in order.tolist()]
        if not self._runs:
            ready = self._items[: bisect.bisect_left(self._times, earliest)]
            if ready:
                self._emit(ready)
                self._bytes -= sum(map(self._size, ready))
                self._items, self._times = self._items[len(ready) :], self._times[len(ready) :]
        if len(self._items) > WAITING or self._bytes > WAITING_BYTES:
            self._spill()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is None:
            self._finish()
        if self._file is not None:
            self._file.close()

    def _spill(self) -> None:
        if self._file is None:
            self._file = TemporaryFile()
        start = self._file.tell()
        for time, item in zip(self._times.tolist(), self._items, strict=True):
            self._file.write(b"%d\t%b\n" % (time, self._pack(item)))
        self._runs.append((start, self._file.tell()))
        self._items, self._times = [], self._times[:0]
        self._bytes = 0

    def _finish(self) -> None:
        waiting = zip(self._times.tolist(), self._items, strict=True)
        runs = [self._run(*bounds) for bounds in self._runs]
        # Of one time the earlier run comes first, as it came in first.
        merged = heapq.merge(*runs, waiting, key=lambda pair: pair[0])
        batch: list[Any] = []
        nbytes = 0
        for _, item in merged:
            batch.append(item)
            nbytes += self._size(item)
            if len(batch) == ROWS or nbytes > BATCH_BYTES:
                self._emit(batch)
                batch, nbytes = [], 0
        if batch:
            self._emit(batch)

    def _run(self, start: int, stop: int) -> Iterator[tuple[int, Any]]:
        """The events of a run, read in pieces."""
        assert self._file is not None  # noqa: S101 (there is a run)
        rest = b""
        while start < stop:
            self._file.seek(start)
            data = self._file.read(min(PIECE, stop - start))
            start += len(data)
            *whole, rest = (rest + data).split(b"\n")
            for line in whole:
                time, _, packed = line.partition(b"\t")
                yield int(time), self._unpack(packed)
