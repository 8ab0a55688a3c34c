"""The search through all schedules: depth-first, with a snapshot at each point with a choice."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import attrs

from fx_emulator.native.checks import Checks, RejectedError
from fx_emulator.native.conflicts import TIME, GrownError, TouchedWord
from fx_emulator.native.decode import Access
from fx_emulator.native.errors import NativeError
from fx_emulator.native.execution import Execution, ExploreFailure, Place
from fx_emulator.native.schedule import Choice, Drain, Run, Signal
from fx_emulator.native.search import Coverage, Search
from fx_emulator.native.state import Snapshot

_SPIN_WEIGHT = 200
"""Weight of points on a few words after which a thread counts as waiting for another."""
_READ_WEIGHT, _WRITE_WEIGHT = 10, 1
"""Weights of a point that only reads, and of one that stores."""
_SPIN_WORDS = 4
_MOST_PASSES = 100_000
"""Points of one schedule after which its threads count as deadlocked."""
_TIME_ONLY = ((TIME, True),)
_REMEMBERED_POINTS = 8
"""Points after the last allowed switch whose states are remembered."""

CostedChoice = tuple[Choice, int]
"""A possible next step, and its cost in preemptions."""


class _SpinDetector:
    """Tells whether the current thread only repeats a few points: it waits for another one."""

    def __init__(self) -> None:
        self._recent_words: set[int] = set()
        """Words of the last points, while they are few."""
        self._weight = 0
        self._moments: set[int] = set()
        """Hashes of the thread's state since its last store."""

    def is_spinning(self, touched: tuple[TouchedWord, ...], moment: Callable[[], int]) -> bool:
        """Note a point. ``moment`` returns a hash of the thread's registers, stack and reads."""
        self._recent_words.update(word for word, _ in touched)
        if len(self._recent_words) > _SPIN_WORDS:
            self._recent_words.clear()
            self._weight = 0
            self._moments.clear()
        if any(stores and word != TIME for word, stores in touched):
            self._weight += _WRITE_WEIGHT
            self._moments.clear()
            return self._weight >= _SPIN_WEIGHT
        self._weight += _READ_WEIGHT
        if self._weight < 2 * _READ_WEIGHT:
            return False
        # The same registers, stack and versions as before: a loop.
        hashed = moment()
        if hashed in self._moments:
            return True
        self._moments.add(hashed)
        return self._weight >= _SPIN_WEIGHT


@attrs.define
class _Turn:
    """What is known of the current thread since it was switched to."""

    allowed_pc: int = -1
    """Address of the point that it was allowed to pass."""
    resumed_at: tuple[int, int] = (-1, 0)
    """Address and part at which it was resumed; to switch back from there at once is redundant."""
    quiet_points: int = 0
    """Number of points that it passed when no other thread could run."""
    spins: _SpinDetector = attrs.field(factory=_SpinDetector)


@attrs.define
class _Node:
    """A point with unexplored choices."""

    snapshot: Snapshot
    place: Place
    current: int
    preemptions: int
    path_length: int
    choices: list[CostedChoice]


class DepthFirst(Search):
    """Explores all schedules with at most ``bound`` preemptions (None: any number).

    It stops after ``limit`` schedules.
    """

    def __init__(
        self,
        execution: Execution,
        checks: Checks,
        coverage: Coverage,
        *,
        bound: int | None,
        limit: int,
    ) -> None:
        super().__init__(execution, checks, coverage)
        self._bound = bound
        self._limit = limit
        self._preemptions = 0
        """Number of preemptions in the current schedule."""
        self._visited: set[int] = set()
        """Hashes of the states that were explored, or are being explored."""
        self._quiet = False
        """Whether no other thread may run instead of the current one."""
        self._turn = _Turn()
        execution.on_instruction = self._on_point

    def run(self) -> ExploreFailure | None:
        """Explore all schedules; start over whenever the threads reveal new conflicts."""
        execution = self.execution
        conflicts = execution.conflicts
        if execution.signal is not None:
            self._meet_signal()
        while True:
            conflicts.settle()
            conflicts.restarts = True
            self._visited.clear()
            self.coverage.schedules = 0
            self.coverage.states = 0
            conflicts.hook_points(self._on_point, execution.machine.ordering)
            with contextlib.suppress(GrownError):
                failure = self._failure_of(self._explore)
                if failure is not None or not conflicts.grown:
                    return failure

    def _meet_signal(self) -> None:
        """Interrupt each thread once, to find its conflicts with the handler."""
        execution = self.execution
        self._restart()
        for thread_index, thread in enumerate(execution.threads):
            execution.current = thread_index
            execution.interrupt(thread)
            with contextlib.suppress(NativeError, RejectedError):
                # Errors are found again by the search, at a point.
                execution.run_thread()

    def _restart(self) -> None:
        self.execution.restart()
        self._preemptions = 0
        self._turn = _Turn()

    # --- the tree of choices ---

    def _explore(self) -> ExploreFailure | None:
        """Search depth-first, up to a failure, a new conflict, or the limit of schedules."""
        self._restart()
        open_nodes: list[_Node] = []
        place: Place | None = None
        while True:
            if place is None:
                self._set_quiet()
                place = self._split_place() or self.execution.run_thread()
            choices = self._choices(place)
            if len(choices) > 1 and self._is_known(place, choices, open_nodes):
                place = Place("pruned")
                choices = []
            if choices:
                place = self._take(*choices[0], place)
                continue
            # No choice: this schedule is complete, or leads to a state that was explored before.
            if place.why != "pruned":
                failure = self._check_end()
                if failure is not None:
                    return failure
            if self.execution.conflicts.grown or not open_nodes:
                return None
            if self.coverage.schedules >= self._limit:
                self.coverage.complete = False
                return None
            place = self._backtrack(open_nodes)

    def _set_quiet(self) -> None:
        """Note whether the current thread can no longer be preempted or interrupted."""
        if self._bound is not None and self._preemptions >= self._bound:
            self._quiet = True
        else:
            alone = len(self.execution.live_threads()) == 1
            self._quiet = alone and self.execution.signal is None

    def _is_known(self, place: Place, choices: list[CostedChoice], open_nodes: list[_Node]) -> bool:
        """Return whether this state was explored before; if not, add it as a node.

        Either the threads have read the same (``State.key``), or what they have is the same.
        """
        execution = self.execution
        state = execution.state
        self.coverage.states += 1
        future = (
            execution.current,
            self._preemptions,
            place.why,
            place.pc,
            place.part,
            self._turn.resumed_at,
        )
        # The key of the history is cheap; that of the contents finds more equal states.
        history_key = state.key(*future)
        if history_key in self._visited:
            return True
        self._visited.add(history_key)
        snapshot = state.snapshot()
        content_key = state.contents.key(snapshot, *future)
        if content_key in self._visited:
            return True
        self._visited.add(content_key)
        node = _Node(
            snapshot=snapshot,
            place=place,
            current=execution.current,
            preemptions=self._preemptions,
            path_length=len(execution.path),
            choices=choices[1:],
        )
        open_nodes.append(node)
        return False

    def _backtrack(self, open_nodes: list[_Node]) -> Place | None:
        """Return to the last point with an unexplored choice, and take it."""
        node = open_nodes[-1]
        choice, cost = node.choices.pop(0)
        if not node.choices:
            open_nodes.pop()
        execution = self.execution
        execution.state.restore(node.snapshot)
        execution.current = node.current
        del execution.path[node.path_length :]
        self._preemptions = node.preemptions
        self._turn = _Turn()
        return self._take(choice, cost, node.place)

    # --- choices ---

    def _choices(self, place: Place) -> list[CostedChoice]:
        """Return the possible next steps; the first one is taken first."""
        if place.why == "pruned":
            return []
        execution = self.execution
        go_on: CostedChoice = (Run(execution.current), 0)
        other_threads = [
            thread_index
            for thread_index in execution.live_threads()
            if thread_index != execution.current
        ]
        switch_choices: list[CostedChoice] = [
            (Run(thread_index), 0) for thread_index in other_threads
        ]
        if place.why == "finished":
            return switch_choices or self._last_drains()
        if place.why == "blocked":
            return switch_choices or [go_on]
        drain_choices: list[CostedChoice] = [
            (Drain(thread_index), 0) for thread_index in self._drains(place)
        ]
        if place.waiting and (switch_choices or drain_choices):
            # Buffers drain and other threads run eventually, so only these can end the wait.
            return [*drain_choices, *switch_choices]
        choices = [go_on, *drain_choices]
        just_resumed = (place.pc, place.part) == self._turn.resumed_at
        may_preempt = self._bound is None or self._preemptions < self._bound
        if may_preempt and not just_resumed:
            choices += [(Run(thread_index), 1) for thread_index in other_threads]
            signalled = execution.state.signals[execution.current]
            # A handler runs before or after an instruction, never between its parts.
            if execution.signal is not None and not signalled and not place.part:
                choices.append((Signal(execution.current), 1))
        return choices

    def _last_drains(self) -> list[CostedChoice]:
        """Return the drains of the buffers of ended threads."""
        order = self.execution.machine.order
        if order is None:
            return []
        return [
            (Drain(thread_index), 0)
            for thread_index, thread in enumerate(self.execution.threads)
            if order.waiting(thread.number)
        ]

    def _drains(self, place: Place) -> list[int]:
        """Return the threads with a buffered store that the current one could see or overtake."""
        execution = self.execution
        order = execution.machine.order
        if order is None:
            return []
        shared_words = {word for word, _ in place.touched}
        if place.ordering:
            # The current thread's own buffer drains at this point.
            for pending in order.waiting(execution.thread.number):
                shared_words.update(pending.words)
        return [
            thread_index
            for thread_index, thread in enumerate(execution.threads)
            if thread_index != execution.current
            and any(
                not shared_words.isdisjoint(waiting_store.words)
                for waiting_store in order.waiting(thread.number)
            )
        ]

    def _take(self, choice: Choice, cost: int, place: Place) -> Place | None:
        """Take a choice. Return the resulting place, or None if the thread is to run."""
        execution = self.execution
        self._preemptions += cost
        match choice:
            case Drain(thread_index):
                execution.mark(place)
                execution.path.append(choice)
                execution.drain(thread_index)
                return place
            case Signal():
                execution.mark(place)
                execution.path.append(choice)
                execution.state.signals[execution.current] += 1
                execution.interrupt(execution.thread)
            case Run(thread_index) if thread_index != execution.current:
                execution.mark(place)
                execution.current = thread_index
                _, pc, part = execution.position(execution.thread.pc)
                self._turn = _Turn(resumed_at=(pc, part))
            case _ if place.why == "point":
                return self._continue(place)
        return None

    def _continue(self, place: Place) -> Place | None:
        """Let the current thread pass a point. Return its next place if it stops within it."""
        execution = self.execution
        thread = execution.thread
        self._turn.allowed_pc = place.pc
        self._turn.resumed_at = (-1, 0)
        if thread.split is None and place.splits:
            accesses, _, _ = execution.position(place.pc)
            execution.machine.splitter.begin(thread, accesses)
        if thread.split is not None:
            return self._pass_parts()
        self._pass(place)
        return None

    # --- points ---

    def _on_point(self, address: int) -> None:
        """Handle an instruction of the current thread that may be a point."""
        turn = self._turn
        if address == turn.allowed_pc:
            turn.allowed_pc = -1
            return
        access = self.execution.machine.decoder.access(address)
        if access is None:
            return
        place = self._point_at(address, access)
        if place is None:
            return
        if not self._quiet or place.waiting or self._drains(place):
            self.execution.stop(place)
            return
        # No other thread may run: continue, unless this state was explored before.
        turn.quiet_points += 1
        state_key = self.execution.state.key(self.execution.current, self._preemptions, address)
        if state_key in self._visited:
            self.execution.stop(Place("pruned"))
            return
        if turn.quiet_points <= _REMEMBERED_POINTS:
            self._visited.add(state_key)
        self._pass(place)

    def _point_at(self, address: int, access: Access) -> Place | None:
        """Return the point before an instruction; None if it concerns no other thread."""
        execution = self.execution
        machine = execution.machine
        has_buffers = machine.order is not None
        if address in machine.provided.calls:
            touched_words = tuple(execution.conflicts.touched_in(address))
            drains_buffer = has_buffers and bool(touched_words)
        else:
            touched_words = tuple(execution.conflicts.touched(access))
            drains_buffer = has_buffers and access.orders
        if not touched_words and not drains_buffer:
            return None
        if touched_words == _TIME_ONLY:
            last_reading = execution.state.time_reads.get(execution.current)
            if last_reading == execution.state.progress(execution.current, address):
                return None  # it waits for a time
        if has_buffers and not drains_buffer and not access.timed and not _loads(access):
            return None  # the store enters a buffer, invisible to others
        is_waiting = self._turn.spins.is_spinning(
            touched_words, lambda: execution.state.moment(execution.current, address, touched_words)
        )
        splits = machine.splitter.splits(access)
        return Place("point", address, touched_words, drains_buffer, is_waiting, splits)

    def _pass(self, place: Place) -> None:
        """Account for the instruction at a point, which runs next."""
        execution = self.execution
        if place.ordering:
            execution.drain_own(place.pc)
        stores_visible = execution.machine.order is None or place.ordering
        self._record(place.pc, list(place.touched), writes=stores_visible)
        if execution.state.passes > _MOST_PASSES:
            raise execution.machine.endless(execution.thread)

    def _pass_parts(self) -> Place | None:
        """Do the next parts of an instruction. Return the place before one that matters, or None.

        Where no other thread may run or drain, the instruction is done at once.
        """
        execution = self.execution
        thread = execution.thread
        while thread.split is not None:
            part = thread.split.next
            stores_visible = execution.machine.order is None and part.writes
            self._record(
                thread.split.pc, execution.conflicts.touched_by(part), writes=stores_visible
            )
            execution.machine.splitter.step(thread)
            place = self._split_place()
            if place is not None and (not self._quiet or self._drains(place)):
                return place
        self._turn.allowed_pc = -1
        return None

    def _record(self, pc: int, touched: list[TouchedWord], *, writes: bool) -> None:
        self.execution.state.passed(self.execution.current, pc, touched, writes=writes)

    def _split_place(self) -> Place | None:
        """Return the current thread's place within an instruction, if its next part matters."""
        split = self.execution.thread.split
        if split is None:
            return None
        touched = self.execution.conflicts.touched_by(split.next)
        if not touched:
            return None
        return Place("point", split.pc, tuple(touched), part=split.done)


def _loads(access: Access) -> bool:
    return any(operand.reads for operand in access.operands)
