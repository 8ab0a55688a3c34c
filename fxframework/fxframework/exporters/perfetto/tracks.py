"""Tracks of processes and threads, and named tracks, each described once."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fxframework.exporters.columns import sizes_of
from fxframework.exporters.perfetto.ids import Ids
from fxframework.exporters.perfetto.wire import Messages, integer, message, runs, string
from fxframework.io.words import U64_MAX
from fxframework.kernels.arrays import I64, Bools
from fxframework.kernels.pools import PairMap

Names = Callable[[I64], Iterator[bytes]]
"""Yields the names of rows one by one, because they may be long."""
Emit = Callable[[Messages, Sequence[bytes]], None]

# Fields of TrackDescriptor.
UUID = 1
NAME = 2
PROCESS = 3
THREAD = 4
PARENT = 5
COUNTER = 8
DESCRIPTION = 14
NAMES = {PROCESS: 6, THREAD: 5}
"""Fields of the names of processes and threads."""
NAME_HASH = (1 << 62) - 1
"""The bits of a hash that identify a name, so that it is not negative."""
# Uuids do not collide because their lowest two bits say of what: 0 a named track, 1 a process,
# 2 a thread.
PROCESS_0 = 1
"""Uuid of the track of process 0, which other tracks do not refer to."""


def process_uuids(small_ids: NDArray[Any]) -> I64:
    """Return the uuids of process tracks by small id; 0 for 0."""
    return np.where(small_ids == 0, 0, 4 * small_ids.astype(np.int64) + 1)


def thread_uuids(small_ids: NDArray[Any]) -> I64:
    """Return the uuids of thread tracks by small id; 0 for 0."""
    return np.where(small_ids == 0, 0, 4 * small_ids.astype(np.int64) + 2)


class Tracks:
    """Assigns uuids of tracks and small ids of processes and threads; describes new tracks.

    ``emit`` takes track descriptors and the tails to append to them. Perfetto's ids have 31 bits,
    and a thread with the id of a process is its main thread: koids that do not fit get other ids,
    which ``renumbered`` lists, and the descriptions of their tracks have the koids.
    """

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._named: dict[tuple[int, str], int] = {}
        """Uuids of named tracks, by parent and name."""
        self._named_count = 0
        self._ids = Ids()
        self._process_0_named = False
        self._name_hashes = PairMap()
        """Hashes of the names of processes, which may be long, by original id and 0."""
        self._renamed: dict[tuple[int, int], int] = {}
        """Small ids of processes that another capture names differently, by id and name hash."""

    @property
    def renumbered_count(self) -> int:
        """Number of processes and threads with changed ids."""
        return self._ids.changed_count

    def renumbered(self) -> Mapping[int, int]:
        """Return the original ids by changed id."""
        return self._ids.renumbered()

    def processes(self, pids: I64, names: Names) -> I64:
        """Return the small ids of processes (nonzero int64); describe new and newly named ones.

        If another capture names a process of the same id differently, they are two processes.
        Within a call, the first name is used.
        """
        # Of the rows of a process, the first with a name decides, else the first.
        deciding_rows: dict[int, tuple[int, int | None]] = {}
        for row, (pid, name) in enumerate(
            zip(pids.tolist(), names(np.arange(pids.size)), strict=True)
        ):
            _, known_hash = deciding_rows.get(pid, (row, None))
            if pid not in deciding_rows or (name and known_hash is None):
                name_hash = hash(name) & NAME_HASH if name else None
                deciding_rows[pid] = (row, name_hash)
        small_ids: dict[int, int] = {}
        described_rows = []
        for pid, (row, name_hash) in deciding_rows.items():
            small_ids[pid], is_described = self._process(pid, name_hash)
            if not is_described:
                described_rows.append(row)
        ids_of_rows = np.array([small_ids[pid] for pid in pids.tolist()], np.int64)
        rows = np.array(described_rows, np.int64)
        small_ids_described = ids_of_rows[rows]
        self._describe(PROCESS, small_ids_described, pids[rows], names(rows))
        return ids_of_rows

    def _process(self, pid: int, name_hash: int | None) -> tuple[int, bool]:
        """Return the small id of a process, and whether it is described with its name."""
        known_hash = self._name_hashes.get(pid, 0)
        if name_hash is None or known_hash == name_hash:
            small_id, is_new = self._ids.process(pid)
            return small_id, not is_new
        if known_hash < 0:
            self._name_hashes.put(pid, 0, name_hash)
            small_id, _ = self._ids.process(pid)
            return small_id, False
        key = (pid, name_hash)
        is_described = key in self._renamed
        if not is_described:
            self._renamed[key], _ = self._ids.process(pid, again=True)
        return self._renamed[key], is_described

    def name_process_0(self, name: bytes) -> None:
        """Name process 0, once: that of threads whose process nobody recorded."""
        if name and not self._process_0_named:
            self._process_0_named = True
            name_field = string(NAMES[PROCESS], name)
            process = message(PROCESS, integer(1, 0) + name_field)
            body = Messages(1).constant(integer(UUID, PROCESS_0) + process)
            self._emit(body, [b""])

    def threads(self, process: I64, tids: I64, names: Names, tracked: Bools | None = None) -> I64:
        """Return the small ids of threads (nonzero int64); describe new ones.

        ``process`` has small ids of processes, 0 if unknown; a thread of an unknown process is
        identified with the thread of a known process with the same id. It is described only if it
        is ``tracked``, because another capture may still name its process.
        """
        pairs = list(zip(process.tolist(), tids.tolist(), strict=True))
        small_ids: dict[tuple[int, int], int] = {}
        new_rows = []
        # Threads of known processes first: those of unknown ones may turn out to be them.
        for row in np.argsort(process == 0, kind="stable").tolist():
            small_pid, tid = pair = pairs[row]
            if pair in small_ids:
                continue
            if small_pid:
                small_ids[pair], is_new = self._ids.thread(small_pid, tid)
            else:
                is_tracked = tracked is None or bool(tracked[row])
                small_ids[pair], is_new = self._ids.loose_thread(tid, is_tracked=is_tracked)
            if is_new:
                new_rows.append(row)
        ids_of_rows = np.array([small_ids[pair] for pair in pairs], np.int64)
        rows = np.array(new_rows, np.int64)
        small_ids_described = ids_of_rows[rows]
        self._describe(THREAD, small_ids_described, tids[rows], names(rows), process[rows])
        return ids_of_rows

    def threads_of_tid_0(self, process: I64, names: Names) -> I64:
        """Return new small ids of threads with tid 0, described; ``process`` has small ids.

        In Perfetto, thread 0 is what CPUs run when they are idle. Several threads may have the
        tid 0, as those of unknown references, so that each call gives them further ids.
        """
        small_ids = np.array(
            [self._ids.thread_of_tid_0(small_pid) for small_pid in process.tolist()], np.int64
        )
        rows = np.arange(process.size)
        self._describe(THREAD, small_ids, np.zeros_like(small_ids), names(rows), process)
        return small_ids

    def _describe(
        self,
        kind: int,
        small_ids: I64,
        original_ids: I64,
        names: Iterator[bytes],
        process: I64 | None = None,
    ) -> None:
        """Write the descriptors of processes or threads, with names and original ids if changed."""
        for run, names_of_run in runs(names):
            ids_of_run = small_ids[run]
            tails = [message(NAMES[kind], text) if text else b"" for text in names_of_run]
            body = Messages(ids_of_run.size)
            inner = Messages(ids_of_run.size)
            if process is None:
                body.varints(UUID, process_uuids(ids_of_run))
                inner.varints(1, ids_of_run)
            else:
                # Process 0 has no track, and Perfetto ignores a track with an unknown parent.
                parents = process_uuids(process[run])
                body.varints(UUID, thread_uuids(ids_of_run))
                body.varints(PARENT, parents, parents > 0)
                inner.varints(1, process[run]).varints(2, ids_of_run)
            body.embed(kind, inner, sizes_of(tails))
            originals_of_run = original_ids[run]
            for row in np.flatnonzero(ids_of_run != originals_of_run).tolist():
                original_id = int(originals_of_run[row]) & U64_MAX
                tails[row] += string(DESCRIPTION, f"id {original_id}")
            self._emit(body, tails)

    def named(self, parent: int, name: str) -> int:
        """Return a named track below another one (0: none), describing it on first use."""
        uuid = self._named.get((parent, name))
        if uuid is None:
            label = name.encode("utf-8", "replace")
            uuids = self.describe_all(np.array([parent]), [label])
            uuid = int(uuids[0])
            self._named[parent, name] = uuid
        return uuid

    def describe_all(self, parents: I64, names: Iterable[bytes], *, counter: bool = False) -> I64:
        """Describe new tracks below others (0: none); return their uuids."""
        first_number = self._named_count + 1
        uuids = 4 * np.arange(first_number, first_number + parents.size)
        self._named_count += parents.size
        for run, names_of_run in runs(names):
            body = Messages(len(names_of_run)).varints(UUID, uuids[run])
            body.varints(PARENT, parents[run], parents[run] > 0)
            if counter:
                body.constant(message(COUNTER, b""))
            body.header(NAME, sizes_of(names_of_run))
            self._emit(body, names_of_run)
        return uuids


class KeyedTracks:
    """Tracks of a capture by key (a parent and further numbers), described on first use.

    ``label`` returns the names of tracks, in UTF-8, for the columns of their keys after the
    parent; the first of these is the code of a name.
    """

    def __init__(
        self,
        tracks: Tracks,
        columns: int,
        label: Callable[..., Iterator[bytes]],
        *,
        counter: bool = False,
    ) -> None:
        self._tracks = tracks
        self._maps = [PairMap() for _ in range(columns - 1)]
        """For each column after the first, numbers by the number of those before and its value."""
        self._label = label
        self._counter = counter
        self._uuids = np.zeros(16, np.int64)
        self._parents = np.zeros(16, np.int64)
        self._names = np.zeros(16, np.int32)

    def numbers(self, *key: I64) -> I64:
        """Return the numbers of tracks for the columns of their keys, int64 of shape (rows,)."""
        # A key of several columns gets its number by pairs: the number of the first two columns
        # and the third give the next number, and so on; the last numbers are those of the tracks.
        known_count = len(self._maps[-1])
        numbers = key[0]
        for numbers_of_pairs, column in zip(self._maps, key[1:], strict=True):
            pairs = zip(numbers.tolist(), column.tolist(), strict=True)
            in_turn = itertools.starmap(numbers_of_pairs.number, pairs)
            numbers = np.fromiter(in_turn, np.int64, column.size)
        new_count = len(self._maps[-1])
        if new_count > known_count:
            self._uuids = grown(self._uuids, new_count)
            self._parents = grown(self._parents, new_count)
            self._names = grown(self._names, new_count)
            # A row of each new track; which one does not matter, as their keys are equal.
            rows_of_new = np.flatnonzero(numbers >= known_count)
            row_of_track = np.empty(new_count - known_count, np.int64)
            row_of_track[numbers[rows_of_new] - known_count] = rows_of_new
            parents, name_codes, *further = (column[row_of_track] for column in key)
            names = self._label(name_codes, *further)
            uuids = self._tracks.describe_all(parents, names, counter=self._counter)
            self._uuids[known_count:new_count] = uuids
            self._parents[known_count:new_count] = parents
            self._names[known_count:new_count] = name_codes
        return numbers

    def uuids(self, numbers: I64) -> I64:
        """Return the uuids of tracks by number."""
        uuids: I64 = self._uuids[numbers]
        return uuids

    def again(self, numbers: I64) -> I64:
        """Describe new tracks with the parents and names of these; return their uuids."""
        names = self._label(self._names[numbers])
        return self._tracks.describe_all(self._parents[numbers], names)


def grown(array: NDArray[Any], size: int) -> NDArray[Any]:
    """Return an array enlarged to at least ``size`` elements."""
    if size <= array.size:
        return array
    # Half as much again, so that the elements are copied a bounded number of times.
    further_size = size + size // 2 - array.size
    return np.append(array, np.zeros(further_size, array.dtype))
