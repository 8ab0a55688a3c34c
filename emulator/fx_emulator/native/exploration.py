"""Explores all schedules of native threads with a bounded number of preemptions, as CHESS does.

A schedule is a path through points: instructions where a thread is about to use memory that others
use too (``conflicts``). At each point the thread continues, or another one does; with store
buffers, a buffered store may drain first. The search is depth-first, with snapshots; a state seen
before is not explored again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import attrs

from fx_emulator.native.checks import Check
from fx_emulator.native.execution import ExploreFailure
from fx_emulator.native.explorer import Explorer
from fx_emulator.native.machine import MemoryOrder
from fx_emulator.native.program import NativeEntry

_ORDERS = {
    "program": "in memory order 'program' (that of x86 is 'tso')",
    "tso": "in memory order 'tso', that of x86",
}


@attrs.frozen(kw_only=True)
class Exploration:
    """The result of an exploration."""

    schedules: int
    """Number of complete schedules."""
    states: int
    """Number of states with a choice."""
    images: int
    """Number of distinct images checked."""
    points: int
    """Number of instructions at which threads could be switched."""
    complete: bool
    """Whether all schedules within the bound were explored."""
    order: MemoryOrder
    """The memory order in which they were explored."""
    bound: str
    """Which schedules were explored."""
    failure: ExploreFailure | None = None

    @property
    def ok(self) -> bool:
        """Whether all checks passed."""
        return self.failure is None

    def __str__(self) -> str:
        counts = f"{_counted(self.schedules, 'schedule')}, {_counted(self.images, 'image')}"
        if self.failure is not None:
            return f"{counts} in memory order {self.order!r}: wrong {self.failure}"
        return f"{counts}: all sound, {self.bound}, {_ORDERS[self.order]}"


def _counted(number: int, noun: str) -> str:
    """Return a number with its noun."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun}s"


def _preemption_bound(preemptions: int | None) -> str:
    if preemptions is None:
        return "any number of preemptions"
    if preemptions == 0:
        return "no preemption"
    if preemptions == 1:
        return "at most 1 preemption"
    return f"at most {preemptions} preemptions"


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
        check: called with the bytes of the memory (and, if it has a parameter ``before``, the
            bytes before the last store, None for the first image); raises if they are wrong.
        preemptions: how often a schedule may preempt a thread that could continue; None: no
            limit.
        memory: the memory to check; by default the first one among the arguments.
        crash: check the memory after every store; if false, only when all threads have ended.
        final: an additional check when all threads have ended. An attribute ``final`` of ``check``,
            as ``reads_back`` has one, is such a check as well.
        signal: a function that may interrupt each thread once, at any point; counts as a
            preemption.
        schedule: run only this schedule, as given by a failure.
        random: seeds; run one random schedule for each, with switches at any instruction,
            instead of all schedules.
        limit: schedules after which the exploration stops.

    The program's state is restored at the end, except for objects that its threads created by
    Zircon calls. Raises NativeError if the threads belong to different programs, or if there is
    no memory to check.
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
    seeds = tuple(random)
    failure = explorer.run(schedule=schedule, random=seeds, limit=limit)
    coverage = explorer.coverage
    if schedule is not None:
        bound = "in this schedule"
    elif seeds:
        bound = f"in {len(seeds):,} random schedules"
    elif coverage.complete:
        bound = f"in every schedule with {_preemption_bound(preemptions)}"
    else:
        first = f"the first {coverage.schedules:,} of the schedules"
        bound = f"in {first} with {_preemption_bound(preemptions)}"
    return Exploration(
        schedules=coverage.schedules,
        states=coverage.states,
        images=explorer.checks.images,
        points=len(explorer.execution.conflicts.points),
        complete=coverage.complete and failure is None,
        order="program" if explorer.machine.order is None else "tso",
        bound=bound,
        failure=failure,
    )
