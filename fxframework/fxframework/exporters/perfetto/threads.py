"""Processes and threads of one capture: their ids, names and tracks in Perfetto."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fxframework.exporters.perfetto.tracks import Names, Tracks, thread_uuids
from fxframework.kernels.arrays import I64, Bools
from fxframework.kernels.sorting import dense
from fxframework.model.capture import Capture
from fxframework.model.strings import StringPool
from fxframework.model.table import Table

CHUNK = 1 << 15
"""Processes or threads described at a time."""
ROWS = 1 << 17
"""Rows of a table in a batch."""
WITH_TRACKS = ("slices", "instants", "counters")
"""Tables whose rows are events on the tracks of threads."""


class CaptureThreads:
    """Describes the processes and threads of a capture, and finds their ids and tracks.

    Arrays by thread id have one element more than there are ids: the last one, which index -1
    means, is for rows without a thread.
    """

    def __init__(self, capture: Capture, tracks: Tracks) -> None:
        self._capture = capture
        self._tracks = tracks
        self._renamed: dict[int, int] = {}
        """Small ids by koid of processes that another capture names differently."""
        thread_count = 0
        if "threads" in capture.schemas:
            thread_ids = capture.table("threads").array("id")
            thread_count = int(thread_ids.max(initial=-1)) + 1
        self.thread_count = thread_count
        self.process_of_thread = np.zeros(thread_count + 1, np.int32)
        """Small ids of processes, by thread id."""
        self.tid_of_thread = np.zeros(thread_count + 1, np.int32)
        """Small ids of threads, by thread id."""
        self._name_of_thread = np.full(thread_count + 1, -1, np.int32)
        self._track_of_tid_0 = np.zeros(thread_count + 1, np.int64)
        """Uuids of the tracks of threads with tid 0, by thread id; 0 if not described yet."""

    def describe(self) -> None:
        """Describe all processes and threads."""
        if "processes" in self._capture.schemas:
            table = self._capture.table("processes")
            for first_row in range(0, len(table), CHUNK):
                self._describe_processes(table.select(slice(first_row, first_row + CHUNK)))
        if not self.thread_count:
            return
        table = self._capture.table("threads")
        has_no_process = table.array("pid") == 0
        is_tracked = np.zeros(self.thread_count + 1, np.bool_)
        if has_no_process.any():
            self._look_for_events(is_tracked)
        # Describe threads of known processes first, so that threads without one can match them.
        order = np.argsort(has_no_process, kind="stable")
        for first_row in range(0, order.size, CHUNK):
            chunk = order[first_row : first_row + CHUNK]
            self._describe_threads(table.select(chunk), is_tracked)

    def _describe_processes(self, table: Table) -> None:
        pids = table.array("pid").view(np.int64)
        names = table.array("name")
        for name in self._texts(names[pids == 0]):
            self._tracks.name_process_0(name)
        rows = np.flatnonzero(pids)
        koids = pids[rows]
        process_names = self._names_of(names[rows])
        small_pids = self._tracks.processes(koids, process_names)
        pids_without_name = self._tracks.processes(koids, nameless)
        # Of several rows of a process, the last one counts.
        for koid, small_pid, pid_without_name in zip(
            koids.tolist(), small_pids.tolist(), pids_without_name.tolist(), strict=True
        ):
            if small_pid != pid_without_name:
                self._renamed[koid] = small_pid
            else:
                self._renamed.pop(koid, None)

    def _describe_threads(self, table: Table, is_tracked: Bools) -> None:
        """Describe threads; ``is_tracked`` says by thread id whether the track has events."""
        ids = table.array("id")
        names = table.array("name")
        small_pids = self.small_pids(table.array("pid"))
        self._name_of_thread[ids] = names
        self.process_of_thread[ids] = small_pids
        tids = table.array("tid").view(np.int64)
        rows = np.flatnonzero(tids)
        self.tid_of_thread[ids[rows]] = self._tracks.threads(
            small_pids[rows], tids[rows], self._names_of(names[rows]), is_tracked[ids[rows]]
        )

    def _look_for_events(self, is_tracked: Bools) -> None:
        """Set by thread id whether slices, instants or counters are on its track."""
        for name in WITH_TRACKS:
            if name in self._capture.schemas:
                for batch in self._capture.batches(name, ROWS):
                    is_tracked[batch.array("thread")] = True

    def small_pids(self, pids: NDArray[Any]) -> I64:
        """Return the small ids of processes, 0 for 0; describe new ones."""
        index_of_row, koids = dense(pids.view(np.int64))
        small_pids = np.zeros(koids.size, np.int64)
        is_process = koids != 0
        small_pids[is_process] = self._tracks.processes(koids[is_process], nameless)
        for index, koid in enumerate(koids.tolist() if self._renamed else ()):
            small_pids[index] = self._renamed.get(koid, small_pids[index])
        pids_of_rows: I64 = small_pids[index_of_row]
        return pids_of_rows

    def small_tids(self, koids: I64) -> I64:
        """Return the small ids of threads, whatever their processes; 0 for 0."""
        is_known = koids != 0
        small_tids = np.zeros(koids.size, np.int64)
        known_count = int(np.count_nonzero(is_known))
        no_process = np.zeros(known_count, np.int64)
        undescribed = np.zeros(known_count, np.bool_)
        small_tids[is_known] = self._tracks.threads(
            no_process, koids[is_known], nameless, undescribed
        )
        return small_tids

    def uuids(self, threads: NDArray[Any]) -> I64:
        """Return the uuids of the tracks of threads by id; rows without a thread share a track."""
        uuids = thread_uuids(self.tid_of_thread[threads])
        has_no_tid = uuids == 0
        if not has_no_tid.any():
            return uuids
        no_thread = self.thread_count
        # Modulo, -1 is the last element.
        new_threads = np.unique(threads[has_no_tid] % (self.thread_count + 1))
        new_threads = new_threads[self._track_of_tid_0[new_threads] == 0]
        if new_threads.size and new_threads[-1] == no_thread:
            no_parent = np.zeros(1, np.int64)
            self._track_of_tid_0[-1:] = self._tracks.describe_all(no_parent, [b"no thread"])
            new_threads = new_threads[:-1]
        if new_threads.size:
            processes = self.process_of_thread[new_threads].astype(np.int64)
            names = self._names_of(self._name_of_thread[new_threads])
            small_tids = self._tracks.threads_of_tid_0(processes, names)
            self._track_of_tid_0[new_threads] = thread_uuids(small_tids)
        return np.where(has_no_tid, self._track_of_tid_0[threads], uuids)

    def names(self, threads: NDArray[Any]) -> Iterator[bytes]:
        """Yield the names of threads by id; empty for none."""
        return self._texts(self._name_of_thread[threads])

    def _names_of(self, codes: NDArray[Any]) -> Names:
        return lambda rows: self._texts(codes[rows])

    def _texts(self, codes: NDArray[Any]) -> Iterator[bytes]:
        return texts_of(self._capture.strings, codes)


def text_of(pool: StringPool, code: int) -> str:
    """Return a string of a pool; empty for null (-1). Invalid UTF-8 becomes U+FFFD."""
    return pool.bytes_of(code).decode("utf-8", "replace") if code >= 0 else ""


def texts_of(pool: StringPool, codes: NDArray[Any]) -> Iterator[bytes]:
    """Yield strings of a pool in valid UTF-8; empty for null (-1)."""
    return (text_of(pool, code).encode("utf-8", "replace") for code in codes.tolist())


def nameless(rows: I64) -> Iterator[bytes]:
    """Yield an empty name for each row."""
    return itertools.repeat(b"", rows.size)
