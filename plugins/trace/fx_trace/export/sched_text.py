"""Context switches and wakeups as lines of ftrace, which Perfetto reads within Chrome JSON."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from fx_trace.export.first_pass import KernelNames, ThreadNames
from fx_trace.format import SchedulingType
from fxframework.kit.memo import Memo
from fxframework.model.table import Table

__all__ = ["HEADER", "SchedText"]

HEADER = "# tracer: nop\n"
"""The first line, by which Perfetto recognises the text."""
STATES = {2: "T", 3: "S", 4: "Z", 5: "X"}
"""ftrace's letters for thread states at a switch; other states are runnable."""
RUNNABLE = "R"
SECOND = 1_000_000_000
UNFIT = re.compile(r"[\s\x00-\x1f\x7f]")
"""Characters that would end a name in a line."""
SPACE = "\N{NO-BREAK SPACE}"
TID_BITS = 0xFFFF_FFFF
"""Bits of an id that Perfetto keeps."""


class SchedText:
    """Formats rows of ``sched`` as lines of ftrace; ``left_out`` counts rows without a line."""

    def __init__(self, tasks: ThreadNames, names: KernelNames) -> None:
        self.left_out = 0
        """Rows before time 0, which ftrace cannot express."""

        def who(thread: int) -> tuple[str, int, int]:
            pid, tid = tasks.pids[thread], tasks.tids[thread]
            name = names.threads.get((pid, tid)) or tasks.thread_names.get(thread)
            return _comm(name, tid), tid & TID_BITS, pid & TID_BITS

        self._who = Memo(who)
        """Name, thread and process id of each thread, as in the lines."""

    def lines(self, sched: Table) -> Iterable[str]:
        """Yield a line for each switch and wakeup, with its line end.

        Perfetto reads the seconds as a double and truncates to nanoseconds, so half of one is
        added. Times are exact below 26 days.
        """
        columns = ("ts", "cpu", "kind", "prev", "next", "prev_state", "prev_priority",
                   "next_priority")  # fmt: skip
        sound = sched.array("ts") >= 0
        self.left_out += int(np.count_nonzero(~sound))
        rows = zip(*(sched.array(name)[sound].tolist() for name in columns), strict=True)
        who = self._who
        for ts, cpu, kind, before, after, state, left, entered in rows:
            when = f"[{cpu:03d}] .... {ts // SECOND}.{ts % SECOND:09d}5"
            rank = max(entered, 0)
            next_comm, next_tid, _ = who[after]
            if kind == SchedulingType.THREAD_WAKEUP:
                # The waking thread is not recorded.
                yield (
                    f"<...>-0 (-----) {when}: sched_waking: comm={next_comm} "
                    f"pid={next_tid} prio={rank} target_cpu={cpu:03d}\n"
                )
            else:
                comm, tid, pid = who[before]
                yield (
                    f"{comm}-{tid} ({pid or '-----'}) {when}: "
                    f"sched_switch: prev_comm={comm} prev_pid={tid} "
                    f"prev_prio={max(left, 0)} prev_state={STATES.get(state, RUNNABLE)} ==> "
                    f"next_comm={next_comm} next_pid={next_tid} next_prio={rank}\n"
                )


def _comm(name: str | None, tid: int) -> str:
    """Return a name valid in ftrace's lines: not empty, without blanks and equal signs."""
    text = UNFIT.sub(SPACE, name or ("swapper" if not tid else f"Thread {tid}"))
    return text.replace("=", "_")
