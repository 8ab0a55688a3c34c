"""Tracks: processes, threads and named tracks of the output, each described once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fxframework.exporters.perfetto.wire import Messages, integer, message, string
from fxframework.kernels.maps import PairMap

__all__ = ["KeyedTracks", "Tracks", "grown"]

I64 = NDArray[np.int64]
Emit = Callable[[Messages, Sequence[bytes]], None]

IDS = 1 << 31
"""Process and thread ids of Perfetto are below this."""
TRACK_DESCRIPTOR, PROCESS, THREAD, COUNTER = 60, 3, 4, 8
UUID, NAME, PARENT, DESCRIPTION = 1, 2, 5, 14

Process = int | tuple[int, str]
"""A process by its id; by id and name, if another capture names a process of this id differently:
these are two processes."""


class Tracks:
    """Gives uuids of tracks and small ids of processes and threads; describes what is new.

    ``emit`` takes the content of a TracePacket, ``emit_all`` track descriptors and the bytes behind
    the fields of each. Perfetto's ids have 31 bits, and a thread that
    has the id of a process is its main thread: koids that do not fit get other ids, which
    ``renumbered`` lists; the descriptions of their tracks say the koids.
    """

    def __init__(self, emit: Callable[[bytes], None], emit_all: Emit) -> None:
        self._emit = emit
        self._emit_all = emit_all
        self._named: dict[tuple[object, ...], int] = {}
        """Uuids of named tracks, by all that tells them apart."""
        # There may be a million processes and threads, so their keys are plain numbers.
        self._process_uuids: dict[int, int] = {}
        self._thread_uuids: dict[int, int] = {}
        """Uuids of processes and of threads, by their small ids."""
        self._last_uuid = 0
        self._owners: dict[int, Process] = {0: 0}
        self._names: dict[int, str] = {}
        self._pids: dict[Process, int] = {}
        self._tids: dict[tuple[int, int], int] = {}
        self._owned: dict[int, int] | None = None
        """Small ids of threads of known processes, by their own ids; made when asked for."""
        self._loose: dict[int, int] = {}
        """Small ids of threads of unknown processes that are not described, by their own ids."""
        self._next_id = IDS - 1
        self.renumbered: dict[int, int] = {}
        """Ids that stand for those of the captures which did not fit, with these."""

    def process(self, pid: int, name: str) -> int:
        """The small id of a process; it is described when it is first asked for, or named."""
        known = self._names.get(pid, "")
        key: Process = (pid, name) if known and name and name != known else pid
        small = self._pids.get(key)
        if small is None:
            small = self._pids[key] = self._number(pid, key)
            self._describe_process(small, name)
        elif name and not known:
            self._describe_process(small, name)
        if name:
            self._names.setdefault(pid, name)
        return small

    def thread(self, process: int, tid: int, name: str, *, tracked: bool = True) -> int:
        """The small id of a thread of a process (a small id); it is described when it is new.

        A thread of process 0, which is not known, is that of the same id whose process is. It is
        described only where it is ``tracked``: as long as it only runs on CPUs, another capture
        may still say whose it is.
        """
        small = self._tids.get((process, tid))
        if small is None and not process:
            small = self._threads_of_processes().get(tid)
            if small is None and not tracked:
                small = self._loose[tid] = self._loose.get(tid) or self._number(tid, 0)
        if small is None:
            owner = self._owners[process]
            small = self._loose.pop(tid, 0)
            if small:
                self._owners[small] = owner
            else:
                small = self._number(tid, owner)
            self._tids[process, tid] = small
            if process and self._owned is not None:
                self._owned.setdefault(tid, small)
            content = integer(UUID, self.thread_uuid(small))
            inner = integer(1, process) + integer(2, small) + (string(5, name) if name else b"")
            content += integer(PARENT, self.process_uuid(process)) + message(THREAD, inner)
            content += self._koid(small)
            self._emit(message(TRACK_DESCRIPTOR, content))
        return small

    def process_uuid(self, small: int) -> int:
        """The uuid of a process's track, by its small id."""
        return self._uuid(self._process_uuids, small)

    def thread_uuid(self, small: int) -> int:
        """The uuid of a thread's track, by its small id."""
        return self._uuid(self._thread_uuids, small)

    def _uuid(self, known: dict[int, int], small: int) -> int:
        uuid = known.get(small)
        if uuid is None:
            uuid = known[small] = self.reserve(1)
        return uuid

    def reserve(self, count: int) -> int:
        """The first of so many uuids in a row, for tracks that nothing names again."""
        first = self._last_uuid + 1
        self._last_uuid += count
        return first

    def named(self, parent: int, name: str, *key: object, counter: bool = False) -> int:
        """A track of its own below another (0: none), described when it is first asked for."""
        full = (parent, name, counter, *key)
        uuid = self._named.get(full)
        if uuid is None:
            uuid = self._named[full] = self.reserve(1)
            self.describe(uuid, parent, name, counter=counter)
        return uuid

    def describe(self, uuid: int, parent: int, name: str, *, counter: bool = False) -> None:
        """Describe a track below another (0: none)."""
        content = integer(UUID, uuid) + string(NAME, name)
        if parent:
            content += integer(PARENT, parent)
        if counter:
            content += message(COUNTER, b"")
        self._emit(message(TRACK_DESCRIPTOR, content))

    def describe_all(self, parents: I64, names: Sequence[bytes], *, counter: bool = False) -> I64:
        """The uuids of new tracks, each below another (0: none)."""
        first = self.reserve(len(names))
        uuids = np.arange(first, first + len(names))
        body = Messages(len(names)).varints(UUID, uuids).varints(PARENT, parents, parents > 0)
        if counter:
            body.constant(message(COUNTER, b""))
        body.header(NAME, np.fromiter(map(len, names), np.int64, len(names)))
        self._emit_all(body, names)
        return uuids

    def _threads_of_processes(self) -> dict[int, int]:
        if self._owned is None:
            self._owned = {}
            for (process, tid), small in self._tids.items():
                if process:
                    self._owned.setdefault(tid, small)
        return self._owned

    def _describe_process(self, small: int, name: str) -> None:
        inner = integer(1, small) + (string(6, name) if name else b"")
        content = integer(UUID, self.process_uuid(small)) + message(PROCESS, inner)
        self._emit(message(TRACK_DESCRIPTOR, content + self._koid(small)))

    def _koid(self, small: int) -> bytes:
        """The description of a track whose process or thread has another id than its own."""
        own = self.renumbered.get(small)
        return b"" if own is None else string(DESCRIPTION, f"id {own}")

    def _number(self, wanted: int, owner: Process) -> int:
        """A free id: the wanted one where it fits and no other process has it."""
        number = wanted
        if not 0 < wanted < IDS or self._owners.get(wanted, owner) != owner:
            while self._next_id in self._owners:
                self._next_id -= 1
            number = self._next_id
            self.renumbered[number] = wanted
        self._owners[number] = owner
        return number


class KeyedTracks:
    """Tracks of one capture by their keys, a parent and more numbers; described when first seen.

    ``label`` gives the names of tracks, in UTF-8, by the columns of their keys behind the parent;
    the first of these is the code of a name.
    """

    def __init__(
        self,
        tracks: Tracks,
        columns: int,
        label: Callable[..., list[bytes]],
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
        """The numbers of tracks by the columns of their keys, int64 of shape (rows,)."""
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
        """The uuids of tracks, by their numbers."""
        found: I64 = self._uuids[numbers]
        return found

    def again(self, numbers: I64) -> I64:
        """The uuids of new tracks that are like these."""
        names = self._label(self._names[numbers])
        return self._tracks.describe_all(self._parents[numbers], names)


def grown(array: NDArray[Any], size: int) -> NDArray[Any]:
    """An array with room for so many values, of which the earlier ones stay."""
    if size <= array.size:
        return array
    return np.append(array, np.zeros(size + size // 2 - array.size, array.dtype))


def _numbered(pairs: PairMap, first: I64, second: I64) -> I64:
    """The numbers of pairs in a map."""
    order = np.lexsort((second, first))
    first, second = first[order], second[order]
    change = np.append(True, (first[1:] != first[:-1]) | (second[1:] != second[:-1]))
    keys = zip(first[change].tolist(), second[change].tolist(), strict=True)
    numbers = np.fromiter((pairs.number(*key) for key in keys), np.int64)
    found = np.empty(order.size, np.int64)
    found[order] = numbers[np.cumsum(change) - 1]
    return found
