"""Tasks: the processes and threads that events name, and the numbers of their names."""

from __future__ import annotations

import hashlib
from typing import Any

from fx_chrome_json.read.parse import encoded
from fxframework.io.words import U64_MAX
from fxframework.model.strings import StringPool

__all__ = ["Codes", "Ids", "Tasks", "number_of"]

MOST_CACHED = 1 << 16
"""Strings whose codes are kept beside the pool."""
SPREAD = 0x9E3779B97F4A7C15
"""Sets ids of different contexts apart."""


class Codes(dict[Any, int]):
    """Codes of strings in the pool; None is -1. ``cut`` counts strings that were too long."""

    def __init__(self, pool: StringPool, longest: int) -> None:
        super().__init__({None: -1})
        self._pool = pool
        self._longest = longest
        self.cut = 0
        self.odd = 0
        """Values that are not strings; they are not kept, so that each of them counts."""

    def __missing__(self, text: Any) -> int:
        if not isinstance(text, str):
            self.odd += 1
            return self._pool.intern(repr(text)[:64].encode())
        data = encoded(text)
        if self._longest and len(data) > self._longest:
            self.cut += 1
            return self._pool.intern(data[: self._longest])
        code = self._pool.intern(data)
        if len(data) < MOST_CACHED:
            if len(self) >= MOST_CACHED:
                self.clear()
                self[None] = -1
            self[text] = code
        return code


class Tasks(dict[Any, int]):
    """Ids of threads by what events have as ``pid`` and ``tid``.

    Where that is a text and not a number, it is the name as well, unless metadata gives one.
    """

    def __init__(self, codes: Codes) -> None:
        super().__init__()
        self._codes = codes
        self._titles: dict[int, int] = {}
        self.pids: list[int] = []
        self.tids: list[int] = []
        self.offsets: list[int] = []
        """Of the event that first names each thread; filled by who knows it."""
        self.names: dict[int, int] = {}
        """Code of a thread's name, by id."""
        self.processes: dict[int, list[int]] = {}
        """By pid: offset of the first event; codes of its name, sort index and labels."""
        self.sort_index: dict[int, int] = {}
        self._ids: dict[tuple[int, int], int] = {}
        self.by_tid: dict[int, int] = {}
        """The first thread of each tid, for events that have no pid."""

    def __missing__(self, who: tuple[Any, Any]) -> int:
        pid = number_of(who[0]) or 0
        tid = pid if who[1] is None else number_of(who[1]) or 0
        found = self[who] = self.thread(pid, tid)
        for value, number, names in ((who[0], pid, self._titles), (who[1], found, self.names)):
            if isinstance(value, str) and not value.isdecimal():
                names.setdefault(number, self._codes[value])
        return found

    def thread(self, pid: int, tid: int) -> int:
        """The id of a thread, which is new where it was not named before."""
        found = self._ids.get((pid, tid))
        if found is None:
            found = self._ids[pid, tid] = len(self.pids)
            self.pids.append(pid)
            self.tids.append(tid)
            self.by_tid.setdefault(tid, found)
        return found

    def settle(self, offset: int) -> None:
        """State the offset of the threads that are new."""
        for thread in range(len(self.offsets), len(self.pids)):
            self.offsets.append(offset)
            pid = self.pids[thread]
            self.processes.setdefault(pid, [offset, self._titles.get(pid, -1), -1, -1])


def number_of(value: Any) -> int | None:
    """An id as a number of 64 bits: a number, or text that is one; of other text a hash."""
    if isinstance(value, str):
        try:
            return int(value, 16 if value[:2] in {"0x", "0X"} else 10) & U64_MAX
        except ValueError:
            digest = hashlib.blake2b(encoded(value), digest_size=8).digest()
            return int.from_bytes(digest, "little")
    if isinstance(value, int):
        return value & U64_MAX
    if isinstance(value, float) and value.is_integer():
        return int(value) & U64_MAX
    return None


class Ids:
    """Numbers of ids that count within a context only: ids of the first context stay as they are.

    A context is what must be equal beside the id, such as the category of asynchronous events.
    """

    def __init__(self) -> None:
        self._contexts: dict[Any, int] = {}

    def number(self, id: int, *context: Any) -> int:
        """The number of an id in a context."""
        place = self._contexts.setdefault(context, len(self._contexts))
        return (id + place * SPREAD) & U64_MAX
