"""Assignment of the small ids of processes and threads in Perfetto, in bulk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fxframework.exporters.columns import index_in

__all__ = ["Ids", "New", "Renumbered", "SortedMap", "distinct"]

I64 = NDArray[np.int64]
Bools = NDArray[np.bool_]
IDS = 1 << 31
"""Perfetto's process and thread ids are below this."""
DESCRIBED, ANOTHER = 1, 2
"""Flags of an id: its thread's track is described; it replaces an id that did not fit."""
FLAGS = DESCRIBED | ANOTHER
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

    def __init__(self, ids: I64, original_ids: I64) -> None:
        order = np.argsort(ids)
        self._changed_ids = ids[order]
        self._original_ids = original_ids.view(np.uint64)[order]

    def __len__(self) -> int:
        return self._changed_ids.size

    def __iter__(self) -> Iterator[int]:
        return iter(self._changed_ids.tolist())

    def __getitem__(self, id: int) -> int:
        index = int(np.searchsorted(self._changed_ids, id))
        if index == self._changed_ids.size or self._changed_ids[index] != id:
            raise KeyError(id)
        return int(self._original_ids[index])


class SortedMap:
    """A map from int64 to nonnegative int64, stored in few sorted arrays.

    Each array is much longer than the next one.
    """

    def __init__(self) -> None:
        self._parts: list[tuple[I64, I64]] = []

    def get(self, keys: I64) -> I64:
        """Return the values of keys; -1 for a missing key."""
        values_of_keys = np.full(keys.size, -1, np.int64)
        for part_keys, part_values in self._parts:
            index_in_part = index_in(part_keys, keys)
            is_in_part = part_keys[index_in_part] == keys
            values_of_keys[is_in_part] = part_values[index_in_part[is_in_part]]
        return values_of_keys

    def put(self, keys: I64, values: I64) -> None:
        """Set the values of distinct keys."""
        for part_keys, part_values in self._parts:
            index_in_part = index_in(part_keys, keys)
            is_in_part = part_keys[index_in_part] == keys
            part_values[index_in_part[is_in_part]] = values[is_in_part]
            keys = keys[~is_in_part]
            values = values[~is_in_part]
        if not keys.size:
            return
        order = np.argsort(keys)
        keys = keys[order]
        values = values[order]
        # Merge parts that are not much longer than what is added, so that there are few parts.
        while self._parts and self._parts[-1][0].size <= 2 * keys.size:
            part_keys, part_values = self._parts.pop()
            insert_before = np.searchsorted(part_keys, keys)
            keys = np.insert(part_keys, insert_before, keys)
            values = np.insert(part_values, insert_before, values)
        self._parts.append((keys, values))


def distinct(*columns: I64) -> tuple[I64, I64]:
    """Return the first row of each group of equal rows, and for each row the index of its group.

    Groups are in the order of their first rows: of the values 7 5 7, these are 0 1, and 0 1 0.
    """
    order = np.lexsort(columns)
    is_first_of_group = np.zeros(order.size, np.bool_)
    is_first_of_group[:1] = True
    for column in columns:
        values = column[order]
        is_first_of_group[1:] |= values[1:] != values[:-1]
    # lexsort is stable: the first of equal rows in this order is the first in the columns, too.
    first_rows = order[is_first_of_group]
    by_first_row = np.argsort(first_rows)
    rank_of_group = np.empty(first_rows.size, np.int64)
    rank_of_group[by_first_row] = np.arange(first_rows.size)
    group_of_row = np.empty(order.size, np.int64)
    group_of_row[order] = rank_of_group[np.cumsum(is_first_of_group) - 1]
    return first_rows[by_first_row], group_of_row


class Ids:
    """Assigns ids below 2^31; an original id that fits and is free is kept.

    In Perfetto, a thread with the id of a process is its main thread, so an id has one owner.
    """

    def __init__(self) -> None:
        self._states = SortedMap()
        """Owner and flags by small id."""
        self._moved_pids = SortedMap()
        """Small ids of processes with a changed id, by original id."""
        self._tid_numbers = SortedMap()
        """Numbers of the original ids of threads with a changed id."""
        self._tid_number_count = 0
        self._moved_tids = SortedMap()
        """Small ids of these threads, by process and number (``_keys``)."""
        self._next_moved_id = IDS - 1
        self._moves: list[tuple[I64, I64]] = []
        """Changed ids and their original ids."""

    @property
    def moved(self) -> int:
        """Number of changed ids."""
        return sum(changed_ids.size for changed_ids, _ in self._moves)

    def renumbered(self) -> Renumbered:
        """Return the original ids by changed id."""
        no_ids = np.zeros(0, np.int64)
        changed_ids, original_ids = zip((no_ids, no_ids), *self._moves, strict=True)
        return Renumbered(np.concatenate(changed_ids), np.concatenate(original_ids))

    def processes(self, pids: I64, *, again: bool = False) -> New:
        """Return ids of distinct processes; with ``again``, new ids for all of them."""
        small_ids = np.full(pids.size, -1, np.int64)
        states = self._states_of(pids)
        if not again:
            # The id belongs to the process itself, and does not stand for another original id.
            has_own_id = states >= 0
            has_own_id &= (states & ANOTHER == 0) & (states >> OWNER == pids)
            small_ids[has_own_id] = pids[has_own_id]
            missing = np.flatnonzero(small_ids < 0)
            small_ids[missing] = self._moved_pids.get(pids[missing])
        is_new = small_ids < 0
        is_free = is_new & (states == -1)
        small_ids[is_free] = pids[is_free]
        self._states.put(pids[is_free], pids[is_free] << OWNER)
        is_moved = is_new & ~is_free
        if is_moved.any():
            new_ids = self._new_ids_for(pids[is_moved])
            small_ids[is_moved] = new_ids
            self._states.put(new_ids, new_ids << OWNER | ANOTHER)
            if not again:
                self._moved_pids.put(pids[is_moved], new_ids)
        return New(small_ids, is_new)

    def threads(self, process: I64, tids: I64) -> New:
        """Return ids of threads of known processes (small ids); pairs must be distinct."""
        states = self._states_of(tids)
        has_own_id = (states & FLAGS == DESCRIBED) & (states >> OWNER == process)
        small_ids = np.where(has_own_id, tids, -1)
        self._look_up(small_ids, process, tids)
        is_new = small_ids < 0
        # An undescribed thread (state 0) turns out to be a thread of this process.
        is_undescribed = is_new & (states == 0)
        small_ids[is_undescribed] = tids[is_undescribed]
        self._look_up(small_ids, np.full(tids.size, UNDESCRIBED), tids, undescribed=True)
        # The id of its process is free for a thread: Perfetto takes it for the main thread.
        is_main_thread = states == process << OWNER
        is_free = (small_ids < 0) & ((states == -1) | is_main_thread)
        small_ids[is_free] = tids[is_free]
        # Only the first claim of an id is granted; threads of other processes get new ids.
        claims = np.flatnonzero(is_new & (small_ids >= 0))
        is_granted = np.zeros(tids.size, np.bool_)
        is_granted[claims[distinct(small_ids[claims])[0]]] = True
        another_flags = self._another_flags(small_ids)
        new_states = process << OWNER | DESCRIBED | another_flags
        self._states.put(small_ids[is_granted], new_states[is_granted])
        self._remember(process, tids, is_granted & (another_flags > 0), small_ids)
        is_moved = is_new & ~is_granted
        if is_moved.any():
            small_ids[is_moved] = self._new_ids_for(tids[is_moved])
            self._states.put(small_ids[is_moved], process[is_moved] << OWNER | DESCRIBED | ANOTHER)
            self._remember(process, tids, is_moved, small_ids)
        return New(small_ids, is_new)

    def loose_threads(self, tids: I64, tracked: Bools) -> New:
        """Return ids of distinct threads of unknown processes.

        A thread of a known process with the same id is reused. New threads need a description only
        if they are ``tracked``; otherwise another capture may still name their process.
        """
        states = self._states_of(tids)
        has_own_id = (states >= 0) & (states & FLAGS == DESCRIBED)
        small_ids = np.where(has_own_id, tids, -1)
        # Among the changed ids, a thread of a known process comes before one of none.
        for process in (OF_PROCESSES, 0):
            self._look_up(small_ids, np.full(tids.size, process), tids)
        is_described = small_ids >= 0
        is_undescribed = ~is_described & (states == 0)
        small_ids[is_undescribed] = tids[is_undescribed]
        self._look_up(small_ids, np.full(tids.size, UNDESCRIBED), tids, undescribed=True)
        flags = np.where(tracked, DESCRIBED, 0)
        is_now_described = ~is_described & (small_ids >= 0) & tracked
        another_flags = self._another_flags(small_ids)
        new_states = another_flags | flags
        self._states.put(small_ids[is_now_described], new_states[is_now_described])
        self._remember(np.zeros_like(tids), tids, is_now_described & (another_flags > 0), small_ids)
        is_free = (small_ids < 0) & (states == -1)
        small_ids[is_free] = tids[is_free]
        self._states.put(tids[is_free], flags[is_free])
        is_moved = small_ids < 0
        if is_moved.any():
            small_ids[is_moved] = self._new_ids_for(tids[is_moved])
            self._states.put(small_ids[is_moved], (flags | ANOTHER)[is_moved])
            self._remember(np.where(tracked, 0, UNDESCRIBED), tids, is_moved, small_ids)
        return New(small_ids, ~is_described & tracked)

    def threads_of_tid_0(self, process: I64) -> I64:
        """Return new ids for threads with tid 0 of processes (small ids)."""
        small_ids = self._new_ids_for(np.zeros_like(process))
        self._states.put(small_ids, process << OWNER | DESCRIBED | ANOTHER)
        return small_ids

    def _states_of(self, ids: I64) -> I64:
        """Return owner and flags of ids: -1 for a free id, -2 for one that does not fit."""
        return np.where((ids > 0) & (ids < IDS), self._states.get(ids), -2)

    def _another_flags(self, ids: I64) -> I64:
        """Return the flag ``ANOTHER`` of ids."""
        states = self._states_of(ids)
        return np.where(states < 0, 0, states & ANOTHER)

    def _look_up(
        self, small_ids: I64, process: I64, tids: I64, *, undescribed: bool = False
    ) -> None:
        """Fill in the ids of threads with changed ids, where ``small_ids`` is negative.

        With ``undescribed``, only those that are still without a process and a description.
        """
        missing = np.flatnonzero(small_ids < 0)
        changed_ids = self._moved_tids.get(self._keys(process[missing], tids[missing]))
        if undescribed:
            changed_ids[self._states_of(changed_ids) != ANOTHER] = -1
        small_ids[missing] = changed_ids

    def _remember(self, process: I64, tids: I64, is_chosen: Bools, small_ids: I64) -> None:
        """Store threads with changed ids, so that ``_look_up`` finds them."""
        process = process[is_chosen]
        tids = tids[is_chosen]
        small_ids = small_ids[is_chosen]
        first_rows, _ = distinct(tids)
        distinct_tids = tids[first_rows]
        unnumbered_tids = distinct_tids[self._tid_numbers.get(distinct_tids) < 0]
        count_after = self._tid_number_count + unnumbered_tids.size
        self._tid_numbers.put(unnumbered_tids, np.arange(self._tid_number_count, count_after))
        self._tid_number_count = count_after
        self._moved_tids.put(self._keys(process, tids), small_ids)
        # A thread of an unknown process is identified with the first of a known one.
        of_known_process = np.flatnonzero(process > 0)
        first_rows, _ = distinct(tids[of_known_process])
        rows = of_known_process[first_rows]
        keys = self._keys(np.full(rows.size, OF_PROCESSES), tids[rows])
        is_missing = self._moved_tids.get(keys) < 0
        self._moved_tids.put(keys[is_missing], small_ids[rows][is_missing])

    def _keys(self, process: I64, tids: I64) -> I64:
        """Return keys of ``_moved_tids``; -1 for threads whose ids have no number.

        A key is a process (below 2^31, or a negative special key) above the 31 bits of a number:
        tids are numbered because a process and a koid do not fit 64 bits.
        """
        tid_numbers = self._tid_numbers.get(tids)
        return np.where(tid_numbers < 0, -1, (process - UNDESCRIBED) << 31 | tid_numbers)

    def _new_ids_for(self, original_ids: I64) -> I64:
        """Return free ids to replace original ones, the highest first."""
        free_ids = []
        wanted = original_ids.size
        while wanted:
            candidates = self._next_moved_id - np.arange(wanted)
            self._next_moved_id -= wanted
            free_ids.append(candidates[self._states.get(candidates) < 0])
            wanted -= free_ids[-1].size
        new_ids = np.concatenate(free_ids)
        self._moves.append((new_ids, original_ids))
        return new_ids
