"""Tracks of processes and threads, and named tracks, each described once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fxframework.exporters.perfetto.ids import Ids, SortedMap, distinct
from fxframework.exporters.perfetto.wire import Messages, integer, message, runs, string
from fxframework.io.words import U64_MAX
from fxframework.kernels.maps import PairMap

__all__ = ["KeyedTracks", "Tracks", "grown", "process_uuids", "thread_uuids"]

I64 = NDArray[np.int64]
Bools = NDArray[np.bool_]
Names = Callable[[I64], Iterator[bytes]]
"""Yields the names of rows one by one, because they may be long."""
Emit = Callable[[Messages, Sequence[bytes]], None]

TRACK_DESCRIPTOR, PROCESS, THREAD, COUNTER = 60, 3, 4, 8
UUID, NAME, PARENT, DESCRIPTION = 1, 2, 5, 14
NAMES = {PROCESS: 6, THREAD: 5}
"""Fields of the names of processes and threads."""
MARK = (1 << 62) - 1
PROCESS_0 = 1
"""Uuid of the track of process 0, which other tracks do not refer to."""


def process_uuids(small: NDArray[Any]) -> I64:
    """Return the uuids of process tracks by small id; 0 for 0."""
    return np.where(small == 0, 0, 4 * small.astype(np.int64) + 1)


def thread_uuids(small: NDArray[Any]) -> I64:
    """Return the uuids of thread tracks by small id; 0 for 0."""
    return np.where(small == 0, 0, 4 * small.astype(np.int64) + 2)


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
        self._reserved = 0
        self._ids = Ids()
        self._process_0_named = False
        self._names = SortedMap()
        """Hashes of the names of processes, by original id."""
        self._others: dict[tuple[int, int], int] = {}
        """Small ids of processes that another capture names differently, by id and name hash."""

    @property
    def moved(self) -> int:
        """Number of processes and threads with changed ids."""
        return self._ids.moved

    def renumbered(self) -> Mapping[int, int]:
        """Return the original ids by changed id."""
        return self._ids.renumbered()

    def processes(self, pids: I64, names: Names) -> I64:
        """Return the small ids of processes (nonzero int64); describe new and newly named ones.

        If another capture names a process of the same id differently, they are two processes.
        Within a call, the first name is used.
        """
        every = names(np.arange(pids.size))
        marks = np.fromiter((hash(name) & MARK if name else -1 for name in every), np.int64)
        order = (marks < 0).argsort(kind="stable")
        first, which = distinct(pids[order])
        if first.size < pids.size:
            rows = order[first]
            found = self.processes(pids[rows], lambda some: names(rows[some]))
            whole = np.empty(pids.size, np.int64)
            whole[order] = found[which]
            return whole
        known = self._names.get(pids)
        named = marks >= 0
        other = named & (known >= 0) & (known != marks)
        found = np.empty(pids.size, np.int64)
        found[~other], fresh = self._ids.processes(pids[~other])
        new = named & (known < 0)
        new[~other] |= fresh
        self._names.put(pids[named & (known < 0)], marks[named & (known < 0)])
        for row in np.flatnonzero(other).tolist():
            key = int(pids[row]), int(marks[row])
            if key not in self._others:
                self._others[key] = int(self._ids.processes(pids[[row]], again=True).ids[0])
                new[row] = True
            found[row] = self._others[key]
        rows = np.flatnonzero(new)
        self._describe(PROCESS, found[rows], pids[rows], names(rows))
        return found

    def name_process_0(self, name: bytes) -> None:
        """Name process 0, once: that of threads whose process nobody recorded."""
        if name and not self._process_0_named:
            self._process_0_named = True
            process = message(PROCESS, integer(1, 0) + string(NAMES[PROCESS], name))
            self._emit(Messages(1).constant(integer(UUID, PROCESS_0) + process), [b""])

    def threads(self, process: I64, tids: I64, names: Names, tracked: Bools | None = None) -> I64:
        """Return the small ids of threads (nonzero int64); describe new ones.

        ``process`` has small ids of processes, 0 if unknown; a thread of an unknown process is
        identified with the thread of a known process with the same id. It is described only if it
        is ``tracked``, because another capture may still name its process.
        """
        first, which = distinct(process, tids)
        owner, own = process[first], tids[first]
        found = np.empty(own.size, np.int64)
        fresh = np.zeros(own.size, np.bool_)
        shown = np.ones(own.size, np.bool_) if tracked is None else tracked[first]
        some = owner > 0
        if some.any():
            found[some], fresh[some] = self._ids.threads(owner[some], own[some])
        some = owner == 0
        if some.any():
            found[some], fresh[some] = self._ids.loose_threads(own[some], shown[some])
        rows = np.flatnonzero(fresh)
        self._describe(THREAD, found[rows], own[rows], names(first[rows]), owner[rows])
        return found[which]

    def threads_of_tid_0(self, process: I64, names: Names) -> I64:
        """Return new small ids of threads with tid 0, described; ``process`` has small ids.

        In Perfetto, thread 0 is what CPUs run when they are idle. Several threads may have the
        tid 0, as those of unknown references, so that each call gives them further ids.
        """
        small_ids = self._ids.threads_of_tid_0(process)
        rows = np.arange(process.size)
        self._describe(THREAD, small_ids, np.zeros_like(small_ids), names(rows), process)
        return small_ids

    def _describe(
        self, kind: int, small: I64, own: I64, names: Iterator[bytes], process: I64 | None = None
    ) -> None:
        """Write the descriptors of processes or threads, with names and original ids if changed."""
        for some, texts in runs(names):
            ids = small[some]
            tails = [message(NAMES[kind], text) if text else b"" for text in texts]
            body, inner = Messages(ids.size), Messages(ids.size)
            if process is None:
                body.varints(UUID, process_uuids(ids))
                inner.varints(1, ids)
            else:
                # Process 0 has no track, and Perfetto ignores a track with an unknown parent.
                parents = process_uuids(process[some])
                body.varints(UUID, thread_uuids(ids)).varints(PARENT, parents, parents > 0)
                inner.varints(1, process[some]).varints(2, ids)
            body.embed(kind, inner, np.fromiter(map(len, tails), np.int64, len(tails)))
            for row in np.flatnonzero(ids != own[some]).tolist():
                tails[row] += string(DESCRIPTION, f"id {int(own[some][row]) & U64_MAX}")
            self._emit(body, tails)

    def named(self, parent: int, name: str) -> int:
        """Return a named track below another one (0: none), describing it on first use."""
        uuid = self._named.get((parent, name))
        if uuid is None:
            uuid = int(self.describe_all(np.array([parent]), [name.encode("utf-8", "replace")])[0])
            self._named[parent, name] = uuid
        return uuid

    def describe_all(self, parents: I64, names: Iterable[bytes], *, counter: bool = False) -> I64:
        """Describe new tracks below others (0: none); return their uuids."""
        uuids = 4 * np.arange(self._reserved + 1, self._reserved + 1 + parents.size)
        self._reserved += parents.size
        for some, texts in runs(names):
            body = Messages(len(texts)).varints(UUID, uuids[some])
            body.varints(PARENT, parents[some], parents[some] > 0)
            if counter:
                body.constant(message(COUNTER, b""))
            body.header(NAME, np.fromiter(map(len, texts), np.int64, len(texts)))
            self._emit(body, texts)
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
        self._label = label
        self._counter = counter
        self._uuids = np.zeros(16, np.int64)
        self._parents = np.zeros(16, np.int64)
        self._names = np.zeros(16, np.int32)

    def numbers(self, *key: I64) -> I64:
        """Return the numbers of tracks for the columns of their keys, int64 of shape (rows,)."""
        known = len(self._maps[-1])
        found = key[0]
        for pairs, column in zip(self._maps, key[1:], strict=True):
            found = _numbered(pairs, found, column)
        count = len(self._maps[-1])
        if count > known:
            self._uuids, self._parents, self._names = (
                grown(each, count) for each in (self._uuids, self._parents, self._names)
            )
            fresh = np.flatnonzero(found >= known)
            new = np.empty(count - known, np.int64)
            new[found[fresh] - known] = fresh
            parent, *rest = (column[new] for column in key)
            names = self._label(*rest)
            uuids = self._tracks.describe_all(parent, names, counter=self._counter)
            self._uuids[known:count] = uuids
            self._parents[known:count] = parent
            self._names[known:count] = rest[0]
        return found

    def uuids(self, numbers: I64) -> I64:
        """Return the uuids of tracks by number."""
        found: I64 = self._uuids[numbers]
        return found

    def again(self, numbers: I64) -> I64:
        """Describe new tracks with the parents and names of these; return their uuids."""
        names = self._label(self._names[numbers])
        return self._tracks.describe_all(self._parents[numbers], names)


def grown(array: NDArray[Any], size: int) -> NDArray[Any]:
    """Return an array enlarged to at least ``size`` elements."""
    if size <= array.size:
        return array
    return np.append(array, np.zeros(size + size // 2 - array.size, array.dtype))


def _numbered(pairs: PairMap, first: I64, second: I64) -> I64:
    """Return the numbers of pairs in a map."""
    rows, which = distinct(first, second)
    keys = zip(first[rows].tolist(), second[rows].tolist(), strict=True)
    numbers = np.fromiter((pairs.number(*key) for key in keys), np.int64, rows.size)
    found: I64 = numbers[which]
    return found
