"""Single schedules of an exploration: one that a failure reported, or some drawn from seeds."""

from __future__ import annotations

from collections.abc import Sequence

from fx_emulator.kernel import Random
from fx_emulator.native.calls import Blocked
from fx_emulator.native.checks import Checks
from fx_emulator.native.execution import Execution, ExploreFailure, Place
from fx_emulator.native.schedule import Choice, Drain, Run, Signal
from fx_emulator.native.search import Coverage, Search
from fx_emulator.native.threads import Stopped


class _Undirected(Search):
    """A search whose schedules do not follow from points."""

    def _drain_before(self, address: int) -> None:
        """Drain the current thread's store buffer before a fence or locked instruction."""
        machine = self.execution.machine
        access = machine.decoder.access(address)
        if access is not None and machine.order is not None and access.orders:
            self.execution.drain_own(address)


class Replay(_Undirected):
    """Runs one given schedule."""

    def __init__(
        self, execution: Execution, checks: Checks, coverage: Coverage, path: list[Choice]
    ) -> None:
        super().__init__(execution, checks, coverage)
        self._path = path
        self._stop_at: tuple[int, int] | None = None
        """Number of accesses and address at which the current step ends; None: at its end."""
        execution.on_instruction = self._on_instruction

    def run(self) -> ExploreFailure | None:
        """Run the schedule."""
        stops = {step.pc for step in self._path if isinstance(step, Run) and step.accesses >= 0}
        execution = self.execution
        execution.conflicts.hook_points(self._on_instruction, stops | execution.machine.ordering)
        return self._failure_of(self._follow_all)

    def _on_instruction(self, address: int) -> None:
        """Stop at the end of the current step."""
        if self._stop_at is not None and self._is_at(self._stop_at, address):
            self.execution.stop(Place("point", address))
            return
        self._drain_before(address)

    def _is_at(self, end: tuple[int, int], pc: int) -> bool:
        """Return whether the current thread, before ``pc``, is at the end of a step."""
        accesses, address, _ = self.execution.position(pc)
        return (accesses, address) == end

    def _follow_all(self) -> ExploreFailure | None:
        """Execute the schedule, and then what is left of each thread."""
        for choice in self._path:
            self._follow(choice)
        for thread_index, _ in enumerate(self.execution.threads):
            self._follow(Run(thread_index))
        self._drain_all()
        return self._check_end()

    def _follow(self, choice: Choice) -> None:
        """Execute one step of the schedule."""
        execution = self.execution
        match choice:
            case Drain(index):
                order = execution.machine.order
                if order is not None and order.waiting(execution.threads[index].number):
                    execution.drain(index)
            case Signal(index):
                execution.interrupt(execution.threads[index])
            case Run():
                self._follow_run(choice)
        execution.path.append(choice)

    def _follow_run(self, step: Run) -> None:
        """Run a thread up to the end of a step, and the parts of an instruction that follow."""
        execution = self.execution
        execution.current = step.thread
        thread = execution.thread
        step_end = (step.accesses, step.pc)
        self._stop_at = step_end if step.accesses >= 0 else None
        if not thread.finished and not self._is_at(step_end, thread.pc):
            execution.run_thread()
        splitter = execution.machine.splitter
        if step.part and (thread.split or splitter.begin(thread, step.accesses)):
            while thread.split is not None and thread.split.done < step.part:
                splitter.step(thread)


class RandomSchedules(_Undirected):
    """Runs a schedule for each of some seeds, with switches at any instruction."""

    def __init__(
        self, execution: Execution, checks: Checks, coverage: Coverage, seeds: Sequence[int]
    ) -> None:
        super().__init__(execution, checks, coverage)
        self._seeds = seeds
        execution.on_instruction = self._drain_before

    def run(self) -> ExploreFailure | None:
        """Run the schedules, up to a failure."""
        execution = self.execution
        execution.conflicts.hook_points(self._drain_before, execution.machine.ordering)
        for seed in self._seeds:
            execution.restart()
            execution.schedule_name = f"random:{seed}"
            failure = self._failure_of(self._draw, Random(seed))
            if failure is not None:
                return failure
        self.coverage.complete = False
        return None

    def _draw(self, rng: Random) -> ExploreFailure | None:
        """Run one random schedule: few long runs, or many short ones."""
        longest_run = 1 << 1 + rng.below(10)
        budget = self.execution.budget
        while True:
            live_threads = self.execution.live_threads()
            if not live_threads:
                break
            self.execution.current = live_threads[rng.below(len(live_threads))]
            instruction_count = rng.below(longest_run)
            self._run_current(instruction_count, rng)
            budget -= 1 + instruction_count
            if budget < 0:
                raise self.execution.machine.endless(self.execution.thread)
            order = self.execution.machine.order
            if order is not None:
                order.drain_some(self.execution.thread.number, rng)
        self._drain_all()
        return self._check_end()

    def _run_current(self, instruction_count: int, rng: Random) -> None:
        """Run some instructions of the current thread, perhaps in its signal handler."""
        execution = self.execution
        thread = execution.thread
        if execution.signal is not None and not thread.interrupted and not rng.below(8):
            execution.interrupt(thread)
        outcome = execution.advance(instruction_count) if instruction_count else Stopped()
        if isinstance(outcome, Stopped):
            execution.machine.splitter.pause(thread, rng)
        if isinstance(outcome, Blocked) and outcome.action == "exit":
            thread.finished = True
