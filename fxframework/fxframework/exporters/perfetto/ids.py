"""Assignment of the small ids of processes and threads in Perfetto."""

from __future__ import annotations

from array import array
from collections.abc import Mapping

from fxframework.io.words import U64_MAX
from fxframework.kernels.pools import PairMap

IDS = 1 << 31
"""Perfetto's process and thread ids are below this."""
FREE = -1
UNFIT = -2
"""In place of the use of an id: nothing has it, or nothing can have it."""
DESCRIBED = 1
CHANGED = 2
"""Flags of a use: the thread's track is described; the id replaces one that did not fit."""
OWNER = 2
"""The bits of a use from this one on are the small id of the owning process; 0 if unknown."""
UNKNOWN = 0
"""The use of an id by a thread of which neither process nor description are known."""
PIDS = -1
OF_ANY = -2
UNDESCRIBED = -3
"""In place of a process, where changed ids are looked up: those of processes, of the first thread
of any known process, and of threads without a description."""


class Ids:
    """Assigns ids below 2^31; an original id that fits and is free is kept.

    In Perfetto, a thread with the id of a process is its main thread, so an id has one owner.
    """

    def __init__(self) -> None:
        # Maps of kernels: there may be millions of ids, and dicts take five times their memory.
        self._uses = PairMap()
        """Use (owner and flags) by small id and 0."""
        self._changed = PairMap()
        """Changed ids by process (small id; 0 if unknown) and original id."""
        self._changed_ids = array("q")
        self._original_ids = array("Q")
        """Original id for each of the changed ids."""
        self._next_changed_id = IDS - 1

    def renumbered(self) -> Mapping[int, int]:
        """Return the original ids by changed id."""
        return dict(zip(self._changed_ids, self._original_ids, strict=True))

    @property
    def changed_count(self) -> int:
        """Number of changed ids."""
        return len(self._changed_ids)

    def process(self, pid: int, *, again: bool = False) -> tuple[int, bool]:
        """Return the id of a process, and whether it is new; with ``again``, always a new one."""
        if not again:
            use = self._use_of(pid)
            # The id belongs to the process itself, and does not stand for another original id.
            if use >= 0 and use >> OWNER == pid and not use & CHANGED:
                return pid, False
            small_id = self._changed.get(PIDS, pid)
            if small_id >= 0:
                return small_id, False
        if self._use_of(pid) == FREE:
            self._put(pid, pid << OWNER)
            return pid, True
        small_id = self._new_id(pid)
        self._put(small_id, small_id << OWNER | CHANGED)
        if not again:
            self._changed.put(PIDS, pid, small_id)
        return small_id, True

    def thread(self, process: int, tid: int) -> tuple[int, bool]:
        """Return the id of a thread of a known process (small id), and whether it is new."""
        use = self._use_of(tid)
        if use == process << OWNER | DESCRIBED:
            return tid, False
        small_id = self._changed.get(process, tid)
        if small_id >= 0:
            return small_id, False
        # A thread without a process so far turns out to be this one.
        if use != UNKNOWN:
            small_id = self._undescribed(tid)
        # The id of its process is free for a thread: Perfetto takes it for the main one.
        keeps_id = use in {UNKNOWN, FREE, process << OWNER}
        if small_id < 0 and keeps_id:
            self._put(tid, process << OWNER | DESCRIBED)
            return tid, True
        if small_id < 0:
            small_id = self._new_id(tid)
        self._put(small_id, process << OWNER | DESCRIBED | CHANGED)
        self._changed.put(process, tid, small_id)
        if self._changed.get(OF_ANY, tid) < 0:
            self._changed.put(OF_ANY, tid, small_id)
        return small_id, True

    def loose_thread(self, tid: int, *, is_tracked: bool) -> tuple[int, bool]:
        """Return the id of a thread of an unknown process, and whether to describe it.

        A thread of a known process with the same id is reused. A new one is described only if it
        is tracked; otherwise another capture may still name its process.
        """
        use = self._use_of(tid)
        if use >= 0 and use & DESCRIBED and not use & CHANGED:
            return tid, False
        # Among the changed ids, a thread of a known process comes before one of none.
        for process in (OF_ANY, 0):
            small_id = self._changed.get(process, tid)
            if small_id >= 0:
                return small_id, False
        flags = DESCRIBED if is_tracked else 0
        if use in {UNKNOWN, FREE}:
            self._put(tid, flags)
            return tid, is_tracked
        small_id = self._undescribed(tid)
        if small_id < 0:
            small_id = self._new_id(tid)
        self._put(small_id, CHANGED | flags)
        self._changed.put(0 if is_tracked else UNDESCRIBED, tid, small_id)
        return small_id, is_tracked

    def thread_of_tid_0(self, process: int) -> int:
        """Return a new id for a thread with tid 0 of a process (small id)."""
        small_id = self._new_id(0)
        self._put(small_id, process << OWNER | DESCRIBED | CHANGED)
        return small_id

    def _undescribed(self, tid: int) -> int:
        """Return the changed id of a thread, -1 if it has none, or has been described."""
        small_id = self._changed.get(UNDESCRIBED, tid)
        return small_id if self._use_of(small_id) == CHANGED else -1

    def _use_of(self, id: int) -> int:
        """Return owner and flags of an id; FREE or UNFIT if it has none."""
        return self._uses.get(id, 0) if 0 < id < IDS else UNFIT

    def _put(self, id: int, use: int) -> None:
        """Set owner and flags of an id."""
        self._uses.put(id, 0, use)

    def _new_id(self, original_id: int) -> int:
        """Return a free id to replace an original one, the highest first."""
        while self._use_of(self._next_changed_id) != FREE:
            self._next_changed_id -= 1
        self._changed_ids.append(self._next_changed_id)
        self._original_ids.append(original_id & U64_MAX)
        return self._next_changed_id
