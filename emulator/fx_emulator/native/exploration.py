"""All schedules of native threads with a bounded number of preemptions, as CHESS explores them.

A schedule is a path through points: places where a thread is about to use memory that others use
too (``conflicts``). At each of them the thread goes on, or another one does; with store buffers, a
waiting store may drain first. Depth first, with snapshots; a state that was seen before is not
explored again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import attrs

from fx_emulator.native.explorer import Check, ExploreFailure, Explorer
from fx_emulator.native.program import NativeEntry

__all__ = ["Exploration", "ExploreFailure", "explore"]


@attrs.frozen(kw_only=True)
class Exploration:
    """What came of an exploration."""

    schedules: int
    """Schedules that ran to their end."""
    states: int
    """States in which there was a choice."""
    images: int
    """Different images that were checked."""
    points: int
    """Instructions before which threads could be switched."""
    complete: bool
    """Whether all schedules within the bound were explored."""
    failure: ExploreFailure | None = None

    @property
    def ok(self) -> bool:
        """Whether every schedule is sound."""
        return self.failure is None

    def __str__(self) -> str:
        count = f"{self.schedules:,} schedules, {self.images:,} images"
        if self.failure is not None:
            return f"{count}: wrong {self.failure}"
        return f"{count}: all sound" + ("" if self.complete else " (stopped at the limit)")


def explore(
    threads: Sequence[NativeEntry],
    check: Check,
    *,
    preemptions: int | None = 2,
    memory: Any = None,
    crash: bool = True,
    final: Check | None = None,
    signal: NativeEntry | None = None,
    schedule: str | None = None,
    random: Iterable[int] = (),
    limit: int = 1_000_000,
) -> Exploration:
    """Run threads of one program in all orders within a bound, and check the memory in each.

    Args:
        threads: functions of one program with their arguments; each runs on a thread of its own.
        check: given the bytes of the memory (and, if it has a parameter ``before``, the bytes
            before the last store, None for the first image); raises where they are wrong.
        preemptions: how often a schedule may take the CPU from a thread that could go on; None,
            without limit.
        memory: whose bytes are checked; without it the first memory among the arguments.
        crash: check the memory after every store; else only when all threads have ended.
        final: what is checked when all threads have ended, beside ``check``.
        signal: a function that may interrupt each thread once, at any point; counts as a
            preemption.
        schedule: run only this schedule, as a failure names it.
        random: seeds; for each of them one random schedule runs, with switches at any
            instruction, instead of all schedules.
        limit: schedules after which the exploration stops.

    When the exploration is over the program is as it was, but for objects that its threads made by
    calls of Zircon. Raises NativeError where threads are of
    different programs or no memory is given.
    """
    explorer = Explorer(
        threads,
        check,
        preemptions=preemptions,
        memory=memory,
        crash=crash,
        final=final,
        signal=signal,
    )
    failed = explorer.run(schedule=schedule, random=tuple(random), limit=limit)
    return Exploration(
        schedules=explorer.schedules,
        states=explorer.states,
        images=explorer.images,
        points=len(explorer.conflicts.points),
        complete=explorer.complete and failed is None,
        failure=failed,
    )
