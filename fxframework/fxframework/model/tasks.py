"""Tasks: the threads of a capture by id, with their names and those of their processes as texts."""

from __future__ import annotations

from typing import NamedTuple

from fxframework.model.capture import Capture
from fxframework.model.threads import Threads

__all__ = ["NOBODY", "Task", "tasks"]


class Task(NamedTuple):
    """A thread and its process."""

    pid: int
    """Koid or id of the process."""
    tid: int
    """Koid or id of the thread."""
    process: str | None
    """Name of the process; None if unknown."""
    thread: str | None
    """Name of the thread; None if unknown."""

    @property
    def label(self) -> str:
        """The names of process and thread, or their koids."""
        return f"{self.process or self.pid}/{self.thread or self.tid}"


NOBODY = Task(0, 0, None, None)
"""For rows without a thread."""


def tasks(capture: Capture, *, distinct: bool = False) -> dict[int, Task]:
    """Return the threads of a capture by id, as in the columns ``thread``.

    With ``distinct``, no two have the same process and tid (``Threads.distinct_tids``).
    """
    pool = capture.strings
    threads = Threads(capture.schemas, capture.table)
    tids = threads.distinct_tids() if distinct else threads.tids
    columns = (threads.ids, threads.pids, tids, threads.process_names, threads.names)

    def text(code: int) -> str | None:
        return pool[code] if code >= 0 else None

    return {
        id: Task(pid, tid, text(process), text(name))
        for id, pid, tid, process, name in zip(
            *(column.tolist() for column in columns), strict=True
        )
    }
