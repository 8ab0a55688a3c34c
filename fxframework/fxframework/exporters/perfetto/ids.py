"""Assignment of the small ids of processes and threads in Perfetto, in bulk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Ids", "New", "Renumbered", "SortedMap", "distinct"]

I64 = NDArray[np.int64]
Bools = NDArray[np.bool_]
IDS = 1 << 31
"""Perfetto's process and thread ids are below this."""
DESCRIBED, ANOTHER = 1, 2
"""Flags of an id: its thread's track is described; it replaces an id that did not fit."""
OWNER = 2
"""The bits from this one on are the small id of the owning process; 0 if unknown."""
OF_PROCESSES, UNDESCRIBED = -1, -2
"""Special keys instead of a process: threads of any process, and undescribed threads of none."""


class New(NamedTuple):
    """Small ids of processes or threads, and which are new and need a description."""

    ids: I64
    fresh: Bools


class Renumbered(Mapping[int, int]):
    """Original ids by changed id, stored in two arrays."""

    def __init__(self, ids: I64, own: I64) -> None:
        order = np.argsort(ids)
        self._ids = ids[order]
        self._own = own.view(np.uint64)[order]

    def __len__(self) -> int:
        return self._ids.size

    def __iter__(self) -> Iterator[int]:
        return iter(self._ids.tolist())

    def __getitem__(self, id: int) -> int:
        place = int(np.searchsorted(self._ids, id))
        if place == self._ids.size or self._ids[place] != id:
            raise KeyError(id)
        return int(self._own[place])


class SortedMap:
    """A map from int64 to nonnegative int64, stored in few sorted arrays.

    Each array is much longer than the next one.
    """

    def __init__(self) -> None:
        self._parts: list[tuple[I64, I64]] = []

    def get(self, keys: I64) -> I64:
        """Return the values of keys; -1 for a missing key."""
        found = np.full(keys.size, -1, np.int64)
        for known, values in self._parts:
            place = np.minimum(np.searchsorted(known, keys), known.size - 1)
            here = known[place] == keys
            found[here] = values[place[here]]
        return found

    def put(self, keys: I64, values: I64) -> None:
        """Set the values of distinct keys."""
        for known, earlier in self._parts:
            place = np.minimum(np.searchsorted(known, keys), known.size - 1)
            here = known[place] == keys
            earlier[place[here]] = values[here]
            keys, values = keys[~here], values[~here]
        if not keys.size:
            return
        order = np.argsort(keys)
        keys, values = keys[order], values[order]
        while self._parts and self._parts[-1][0].size <= 2 * keys.size:
            known, earlier = self._parts.pop()
            place = np.searchsorted(known, keys)
            keys, values = np.insert(known, place, keys), np.insert(earlier, place, values)
        self._parts.append((keys, values))


def distinct(*columns: I64) -> tuple[I64, I64]:
    """Return the first row of each group of equal rows, and for each row the index of its group."""
    order = np.lexsort(columns)
    change = np.zeros(order.size, np.bool_)
    change[:1] = True
    for column in columns:
        values = column[order]
        change[1:] |= values[1:] != values[:-1]
    first = order[change]
    rank = np.argsort(first)
    place = np.empty(first.size, np.int64)
    place[rank] = np.arange(first.size)
    which = np.empty(order.size, np.int64)
    which[order] = place[np.cumsum(change) - 1]
    return first[rank], which


class Ids:
    """Assigns ids below 2^31; an original id that fits and is free is kept.

    In Perfetto, a thread with the id of a process is its main thread, so an id has one owner.
    """

    def __init__(self) -> None:
        self._ids = SortedMap()
        """Owner and flags by small id."""
        self._pids = SortedMap()
        """Small ids of processes with a changed id, by original id."""
        self._tids = SortedMap()
        """Numbers of the original ids of threads with a changed id."""
        self._numbered = 0
        self._pairs = SortedMap()
        """Small ids of these threads, by process and number."""
        self._next = IDS - 1
        self._others: list[tuple[I64, I64]] = []
        """Changed ids and their original ids."""

    @property
    def moved(self) -> int:
        """Number of changed ids."""
        return sum(small.size for small, _ in self._others)

    def renumbered(self) -> Renumbered:
        """Return the original ids by changed id."""
        none = np.zeros(0, np.int64)
        parts = zip((none, none), *self._others, strict=True)
        return Renumbered(*(np.concatenate(part) for part in parts))

    def processes(self, pids: I64, *, again: bool = False) -> New:
        """Return ids of distinct processes; with ``again``, new ids for all of them."""
        found = np.full(pids.size, -1, np.int64)
        known = self._known(pids)
        if not again:
            own = known >= 0
            own &= (known & ANOTHER == 0) & (known >> OWNER == pids)
            found[own] = pids[own]
            rest = np.flatnonzero(found < 0)
            found[rest] = self._pids.get(pids[rest])
        fresh = found < 0
        free = fresh & (known == -1)
        found[free] = pids[free]
        self._ids.put(pids[free], pids[free] << OWNER)
        moved = fresh & ~free
        if moved.any():
            small = found[moved] = self._moved(pids[moved])
            self._ids.put(small, small << OWNER | ANOTHER)
            if not again:
                self._pids.put(pids[moved], small)
        return New(found, fresh)

    def threads(self, process: I64, tids: I64) -> New:
        """Return ids of threads of known processes (small ids); pairs must be distinct."""
        known = self._known(tids)
        found = np.where((known & 3 == DESCRIBED) & (known >> OWNER == process), tids, -1)
        self._look_up(found, process, tids)
        fresh = found < 0
        # An undescribed thread turns out to be a thread of this process.
        found[fresh & (known == 0)] = tids[fresh & (known == 0)]
        self._look_up(found, np.full(tids.size, UNDESCRIBED), tids, undescribed=True)
        main = known == process << OWNER
        free = (found < 0) & ((known == -1) | main)
        found[free] = tids[free]
        # Only the first claim of an id is granted; threads of other processes get new ids.
        claimed = np.flatnonzero(fresh & (found >= 0))
        first = np.zeros(tids.size, np.bool_)
        first[claimed[distinct(found[claimed])[0]]] = True
        another = self._another(found)
        self._ids.put(found[first], (process << OWNER | DESCRIBED | another)[first])
        self._remember(process, tids, first & (another > 0), found)
        moved = fresh & ~first
        if moved.any():
            found[moved] = self._moved(tids[moved])
            self._ids.put(found[moved], process[moved] << OWNER | DESCRIBED | ANOTHER)
            self._remember(process, tids, moved, found)
        return New(found, fresh)

    def loose_threads(self, tids: I64, tracked: Bools) -> New:
        """Return ids of distinct threads of unknown processes.

        A thread of a known process with the same id is reused. New threads need a description only
        if they are ``tracked``; otherwise another capture may still name their process.
        """
        known = self._known(tids)
        found = np.where((known >= 0) & (known & 3 == DESCRIBED), tids, -1)
        for process in (OF_PROCESSES, 0):
            self._look_up(found, np.full(tids.size, process), tids)
        described = found >= 0
        found[~described & (known == 0)] = tids[~described & (known == 0)]
        self._look_up(found, np.full(tids.size, UNDESCRIBED), tids, undescribed=True)
        bits = np.where(tracked, DESCRIBED, 0)
        seen = ~described & (found >= 0) & tracked
        another = self._another(found)
        self._ids.put(found[seen], (another | bits)[seen])
        self._remember(np.zeros_like(tids), tids, seen & (another > 0), found)
        free = (found < 0) & (known == -1)
        found[free] = tids[free]
        self._ids.put(tids[free], bits[free])
        moved = found < 0
        if moved.any():
            found[moved] = self._moved(tids[moved])
            self._ids.put(found[moved], (bits | ANOTHER)[moved])
            self._remember(np.where(tracked, 0, UNDESCRIBED), tids, moved, found)
        return New(found, ~described & tracked)

    def threads_of_tid_0(self, process: I64) -> I64:
        """Return new ids for threads with tid 0 of processes (small ids)."""
        found = self._moved(np.zeros_like(process))
        self._ids.put(found, process << OWNER | DESCRIBED | ANOTHER)
        return found

    def _known(self, ids: I64) -> I64:
        """Return owner and flags of ids: -1 for a free id, -2 for one that does not fit."""
        return np.where((ids > 0) & (ids < IDS), self._ids.get(ids), -2)

    def _another(self, ids: I64) -> I64:
        """Return the flag ``ANOTHER`` of ids."""
        known = self._known(ids)
        return np.where(known < 0, 0, known & ANOTHER)

    def _look_up(self, found: I64, process: I64, tids: I64, *, undescribed: bool = False) -> None:
        """Look up threads with changed ids where ``found`` is negative."""
        rest = np.flatnonzero(found < 0)
        ids = self._pairs.get(self._keys(process[rest], tids[rest]))
        if undescribed:
            ids[self._known(ids) != ANOTHER] = -1
        found[rest] = ids

    def _remember(self, process: I64, tids: I64, chosen: Bools, ids: I64) -> None:
        """Store threads with changed ids."""
        process, tids, ids = process[chosen], tids[chosen], ids[chosen]
        first, _ = distinct(tids)
        new = tids[first][self._tids.get(tids[first]) < 0]
        self._tids.put(new, np.arange(self._numbered, self._numbered + new.size))
        self._numbered += new.size
        self._pairs.put(self._keys(process, tids), ids)
        known = np.flatnonzero(process > 0)
        first, _ = distinct(tids[known])
        keys = self._keys(np.full(first.size, OF_PROCESSES), tids[known[first]])
        missing = self._pairs.get(keys) < 0
        self._pairs.put(keys[missing], ids[known[first]][missing])

    def _keys(self, process: I64, tids: I64) -> I64:
        """Return keys of ``_pairs``; -1 for threads whose ids have no number."""
        number = self._tids.get(tids)
        return np.where(number < 0, -1, (process - UNDESCRIBED) << 31 | number)

    def _moved(self, own: I64) -> I64:
        """Return free ids to replace ``own``."""
        parts = []
        wanted = own.size
        while wanted:
            some = self._next - np.arange(wanted)
            self._next -= wanted
            parts.append(some[self._ids.get(some) < 0])
            wanted -= parts[-1].size
        found = np.concatenate(parts)
        self._others.append((found, own))
        return found
