"""The search of an exploration: depth-first through the choices at each point, with snapshots."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import attrs

from fx_emulator.kernel import Random
from fx_emulator.native.calls import Blocked
from fx_emulator.native.conflicts import TIME, Conflicts, GrownError
from fx_emulator.native.devices import MappedDevice
from fx_emulator.native.errors import Frame, NativeError
from fx_emulator.native.machine import Machine
from fx_emulator.native.program import NativeEntry, Store
from fx_emulator.native.schedule import Choice, Drain, Run, Signal, read_schedule, write_schedule
from fx_emulator.native.state import Snapshot, State
from fx_emulator.native.threads import Finished, NativeThread, Stopped

__all__ = ["Check", "ExploreFailure", "Explorer"]

Check = Callable[..., object]

_TRAIL = 10
_SPINS = 200
"""Weight of points on a few words after which a thread counts as waiting for another."""
_SPIN_READ, _SPIN_WRITE = 10, 1
"""Weights of a point that only reads, and of one that stores."""
_SPIN_WORDS = 4
_PASSES = 100_000
"""Points of one schedule after which its threads count as deadlocked."""
_TIME_ONLY = ((TIME, True),)
_REMEMBER = 8
"""Points after the last allowed switch whose states are remembered."""


@attrs.frozen(kw_only=True)
class ExploreFailure:
    """A schedule that ends in an image that a check rejects, or in an error of the program."""

    error: BaseException
    schedule: str
    """The schedule; ``explore(schedule=…)`` runs it again."""
    image: bytes = attrs.field(repr=False)
    """The memory, as other threads see it."""
    trail: tuple[Store, ...]
    """The last stores, newest last."""
    final: bool
    """Whether all threads had ended."""

    @property
    def frame(self) -> Frame | None:
        """The position of the last store, or of the program's error."""
        if isinstance(self.error, NativeError) and self.error.frames:
            return self.error.frame
        return self.trail[-1].frame if self.trail else None

    def __str__(self) -> str:
        text = str(self.error)
        error = type(self.error).__name__ + (f": {text}" if text else "")
        when = "when all threads had ended" if self.final else "after a store"
        if isinstance(self.error, NativeError):
            when = "while it ran"
        where = f" at {self.frame}" if self.frame is not None else ""
        trail = "".join(f"\n    {each}" for each in self.trail)
        return (
            f"{when}{where}\n  {error}\n  schedule={self.schedule!r}"
            f"\n  the last stores, newest last:{trail}"
        )


class _FoundError(Exception):
    """A check rejected an image."""

    def __init__(self, error: BaseException, image: bytes) -> None:
        super().__init__(str(error))
        self.error = error
        self.image = image


@attrs.frozen
class _Place:
    """The position of an exploration: why, and before what, the current thread stopped."""

    why: str
    """``point``, ``finished``, ``blocked``, ``pruned`` or ``final``."""
    pc: int = 0
    touched: tuple[tuple[int, bool], ...] = ()
    ordering: bool = False
    waiting: bool = False
    """Whether the thread repeats this point, waiting for another."""
    splits: bool = False
    """Whether the instruction has several parts, between which other threads may run."""
    part: int = 0
    """Number of its parts that are done."""


@attrs.define
class _Node:
    """A point with unexplored choices."""

    snapshot: Snapshot
    place: _Place
    current: int
    used: int
    path: int
    choices: list[tuple[Choice, int]]


class Explorer:
    """One exploration; takes the arguments of ``explore``."""

    def __init__(
        self,
        entries: Sequence[NativeEntry],
        check: Check,
        *,
        preemptions: int | None,
        memory: Any,
        crash: bool,
        final: Check | None,
        signal: NativeEntry | None,
    ) -> None:
        if not entries:
            raise NativeError("explore takes at least one thread")
        self.program = entries[0].program
        if any(each.program is not self.program for each in entries):
            raise NativeError("the threads of an exploration must belong to one program")
        self.machine: Machine = self.program.machine
        self.order = self.machine.order
        self.entries = list(entries)
        self.bound = preemptions
        self.signal = signal
        found = next((each.memory for each in entries if each.memory is not None), None)
        device = found if memory is None else memory
        if device is None:
            raise NativeError("no thread has a memory among its arguments; give memory=")
        self.device: MappedDevice = self.machine.map_device(device)
        self.check, self.crash = check, crash
        ends = (final, getattr(check, "final", None), getattr(final, "final", None))
        self.finals: list[Check] = [each for each in ends if each is not None]
        self.before = _takes_before(check)
        self.budget = max(each.budget for each in entries)
        # Mapped first, so that blocks that threads allocate are watched.
        self.machine.heap  # noqa: B018
        self.threads = self._pool(len(entries))
        self.values = [self.program.convert(each.arguments) for each in entries]
        self.signal_values = self.program.convert(signal.arguments) if signal is not None else []
        self.conflicts = Conflicts(self.machine)
        self.state = State(self.machine, self.device, self.threads, self.conflicts)
        self.base = self.machine.file.base
        self.schedules = self.states = self.images = 0
        self.complete = True
        self.current = self.used = 0
        self.path: list[Choice] = []
        self._images: set[Any] = set()
        self._visited: set[int] = set()
        self._place: _Place | None = None
        self._stop_at: tuple[int, int, int] | None = None
        self._quiet = False
        self._timed = -1
        """The place of the last reading of time."""
        self._on_instruction = self._on_point
        self._forget_run()

    def _pool(self, count: int) -> list[NativeThread]:
        """Return threads that all explorations of a program share, with the same koids."""
        pool = self.machine.explored
        owner = self.program.target.process(self.program.path.name)
        pool.extend(
            self.machine.new_thread(f"thread {number}", owner.koid)
            for number in range(len(pool), count)
        )
        return pool[:count]

    def _forget_run(self) -> None:
        self._skip = -1
        """Address of the point that the current thread was allowed to pass."""
        self._resumed = (-1, 0)
        """Address and part at which the current thread was resumed.

        To switch back at once is redundant.
        """
        self._recent: set[int] = set()
        """Words of the last points, while they are few."""
        self._spins = 0
        self._circle: set[int] = set()
        """States of the current thread since its last store."""
        self._fresh = 0

    # --- the whole ---

    def run(
        self, *, schedule: str | None, random: Sequence[int], limit: int
    ) -> ExploreFailure | None:
        """Explore. Return the failure found, or None. Restores the program's state."""
        machine = self.machine
        kept = machine.sink, machine.journal, machine.observer
        machine.journal = []
        for thread, entry, values in zip(self.threads, self.entries, self.values, strict=True):
            machine.start(thread, entry.address, values)
        beginning = self.state.snapshot()
        self.beginning = beginning
        try:
            self.conflicts.watch()
            machine.sink, machine.observer = self._on_store, self._on_value
            machine.gate, machine.timer.on_read = self._on_call, self._on_time
            machine.on_store = self.conflicts.on_store
            if self.order is not None:
                self.order.manual, self.order.on_drain = True, self.state.on_drain
            failed = self._ask_first()
            if failed is not None:
                return failed
            if schedule is not None:
                return self._replay(schedule)
            if random:
                return self._at_random(random)
            return self._systematic(limit)
        finally:
            self.conflicts.stop()
            self.state.restore(beginning)
            machine.sink, machine.journal, machine.observer = kept
            machine.gate = machine.timer.on_read = machine.on_store = None
            if self.order is not None:
                self.order.reveal()
                self.order.manual, self.order.on_drain = False, None

    def _restart(self) -> None:
        self.state.restore(self.beginning)
        self.path = []
        self.current = self.used = 0
        self._forget_run()

    # --- images ---

    def _on_value(self, value: int) -> None:
        # A time is not learned: it follows from the order of all readings.
        if self.machine.pc() != self._timed:
            self.state.learn(self.current, value)
        self._timed = -1

    def _on_time(self) -> None:
        self.conflicts.on_time()
        self._timed = pc = self.machine.pc()
        self.state.time_reads[self.current] = self.state.progress(self.current, pc)

    def _on_store(self, device: MappedDevice, at: int, size: int, value: int, pc: int) -> None:
        """Check the image after a store, which is about to become visible."""
        if device is not self.device:
            return
        state, machine = self.state, self.machine
        before = state.content
        thread = machine.current.number if machine.current is not None else -1
        if self.order is not None and self.order.draining is not None:
            thread = self.order.draining
        state.stored(at, size, value, thread, pc)
        if not self.crash:
            return
        key: Any = (before, state.content) if self.before else state.content
        if key in self._images:
            return
        self._images.add(key)
        image = bytearray(device.image())
        earlier = bytes(image)
        image[at : at + size] = value.to_bytes(size, "little")
        try:
            self._ask(self.check, bytes(image), earlier)
        except Exception as error:  # noqa: BLE001 (any exception of a check is a failure)
            raise _FoundError(error, bytes(image)) from None

    def _ask(self, check: Check, image: bytes, before: bytes | None) -> None:
        self.images += 1
        if self.before and check is self.check:
            check(image, before=before)
        else:
            check(image)

    def _ask_first(self) -> ExploreFailure | None:
        return self._ask_all([self.check], final=False) if self.crash else None

    def _ask_last(self) -> ExploreFailure | None:
        """Check the image at the end of a schedule."""
        self.schedules += 1
        checks = list(self.finals)
        if not self.crash:
            checks.append(self.check)
        key = ("final", self.state.content)
        if not checks or key in self._images:
            return None
        self._images.add(key)
        if self.order is not None:
            self.machine.select(None)
            self.order.reveal()
        return self._ask_all(checks, final=True)

    def _ask_all(self, checks: Sequence[Check], *, final: bool) -> ExploreFailure | None:
        """Check the current image."""
        image = self.device.image()
        try:
            for check in checks:
                self._ask(check, image, None)
        except Exception as error:  # noqa: BLE001 (any exception of a check is a failure)
            return self._failed(error, image=image, final=final)
        return None

    def _failed(self, error: BaseException, *, image: bytes, final: bool = False) -> ExploreFailure:
        names, threads = self.machine.names, self.machine.threads
        trail = tuple(
            Store(thread, pc, at, size, value, names.frame(pc), threads[thread].name)
            for at, size, value, thread, pc in self.state.trail[-_TRAIL:]
        )
        path = self.path if final else [*self.path, Run(self.current)]
        return ExploreFailure(
            error=error,
            schedule=self.random_name or write_schedule(path, self.base),
            image=image,
            trail=trail,
            final=final,
        )

    random_name = ""

    # --- points ---

    def _agent(self) -> int:
        return 2 * self.current + bool(self.threads[self.current].depth)

    def _here(self, pc: int) -> tuple[int, int, int]:
        """Return the place of the current thread, as a schedule names it."""
        split = self.threads[self.current].split
        if split is not None:
            return split.mark, split.pc, split.done
        return self.conflicts.accesses.get(self._agent(), 0), pc, 0

    def _stop(self, place: _Place) -> None:
        self._place = place
        self.machine.engine.stop_before()

    def _on_replay(self, address: int) -> None:
        """Stop a replayed schedule at the place of its next step."""
        if self._stop_at is not None and self._here(address)[:2] == self._stop_at[:2]:
            self._stop(_Place("point", address))
            return
        access = self.machine.decoder.access(address)
        if access is not None and self.order is not None and access.orders:
            self._drain_own(address)

    def _on_call(self, address: int) -> bool:
        """Handle a call of a function of the target. Return whether the run stops before it."""
        self._on_instruction(address)
        return self._place is not None

    def _on_point(self, address: int) -> None:
        """Handle an instruction of the current thread that may be a point."""
        if address == self._skip:
            self._skip = -1
            return
        access = self.machine.decoder.access(address)
        if access is None:
            return
        if address in self.machine.calls:
            touched = tuple(self.conflicts.touched_in(address))
            ordering = self.order is not None and bool(touched)
        else:
            touched = tuple(self.conflicts.touched(access))
            ordering = self.order is not None and access.orders
        if not touched and not ordering:
            return
        if touched == _TIME_ONLY:
            last = self.state.time_reads.get(self.current)
            if last == self.state.progress(self.current, address):
                return  # it waits for a time
        if self.order is not None and not (ordering or access.timed or _reads(access.operands)):
            return  # the store enters a buffer, invisible to others
        waiting = self._note_spin(address, touched)
        splits = self.machine.splitter.splits(access)
        place = _Place("point", address, touched, ordering, waiting, splits)
        if not self._quiet or place.waiting or self._drains(place):
            self._stop(place)
            return
        # No other thread may run: continue, unless this state was explored before.
        self._fresh += 1
        key = self.state.key(self.current, self.used, address)
        if key in self._visited:
            self._stop(_Place("pruned"))
            return
        if self._fresh <= _REMEMBER:
            self._visited.add(key)
        self._pass(place)

    def _note_spin(self, pc: int, touched: tuple[tuple[int, bool], ...]) -> bool:
        """Return whether the current thread loops until another thread changes something."""
        recent = self._recent
        recent.update(word for word, _ in touched)
        if len(recent) > _SPIN_WORDS:
            recent.clear()
            self._spins = 0
            self._circle.clear()
        if any(stores and word != TIME for word, stores in touched):
            self._spins += _SPIN_WRITE
            self._circle.clear()
            return self._spins >= _SPINS
        self._spins += _SPIN_READ
        if self._spins < 2 * _SPIN_READ:
            return False
        # The same registers, stack and versions as before: a loop.
        state = self.state.moment(self.current, pc, touched)
        if state in self._circle:
            return True
        self._circle.add(state)
        return self._spins >= _SPINS

    def _pass(self, place: _Place) -> None:
        """Account for the instruction at a point, which runs next."""
        if place.ordering:
            self._drain_own(place.pc)
        writes = self.order is None or place.ordering
        self.state.passed(self.current, place.pc, list(place.touched), writes=writes)
        if self.state.passes > _PASSES:
            raise self.machine.endless(self.threads[self.current])

    def _drain_own(self, pc: int) -> None:
        """Drain the thread's store buffer before a fence or locked instruction."""
        assert self.order is not None  # noqa: S101
        self.order.drain_all(self.threads[self.current].number)
        access = self.machine.decoder.access(pc)
        self.order.direct = -1 if access is None or access.fence else pc

    def _drains(self, place: _Place) -> list[int]:
        """Return the threads with a buffered store that the current one could see or overtake."""
        order = self.order
        if order is None:
            return []
        words = {word for word, _ in place.touched}
        mine = self.threads[self.current].number
        if place.ordering:
            words.update(word for entry in order.waiting(mine) for word in entry.words)
        return [
            index
            for index, thread in enumerate(self.threads)
            if index != self.current
            and any(word in words for each in order.waiting(thread.number) for word in each.words)
        ]

    # --- running ---

    def _forget_place(self) -> None:
        """Clear the place, which callbacks set when the engine stops."""
        self._place = None

    def _run_thread(self) -> _Place:
        """Run the current thread up to a point, or as far as it can go."""
        thread = self.threads[self.current]
        self._forget_place()
        while True:
            depth = len(thread.depth)
            self.conflicts.agent = self._agent()
            outcome = self._advance(thread, self.budget)
            if self._place is not None:
                return self._place
            match outcome:
                case Finished():
                    return _Place("finished")
                case Blocked() as blocked:
                    thread.finished = blocked.action == "exit"
                    return _Place("finished" if thread.finished else "blocked")
                case _ if len(thread.depth) == depth:
                    raise self.machine.endless(thread)

    def _advance(self, thread: NativeThread, count: int) -> Stopped | Finished | Blocked:
        """Run a thread, which wakes up first, and let the time of its instructions pass."""
        clock, timer = self.machine.target.clock, self.machine.timer
        if thread.wake_ns:
            clock.advance(max(0, thread.wake_ns - clock.monotonic_ns()))
            thread.wake_ns = 0
        outcome = self.machine.advance(thread, count)
        timer.spend()
        if isinstance(outcome, Blocked) and outcome.ns:
            thread.wake_ns = clock.monotonic_ns() + outcome.ns
        return outcome

    def _choices(self, place: _Place) -> list[tuple[Choice, int]]:
        """Return the possible next steps, each with its cost in preemptions."""
        enabled = [index for index, thread in enumerate(self.threads) if not thread.finished]
        others: list[tuple[Choice, int]] = [
            (Run(index), 0) for index in enabled if index != self.current
        ]
        if place.why in {"finished", "final"}:
            return others or self._last_drains()
        if place.why == "blocked":
            return others or [(Run(self.current), 0)]
        drains: list[tuple[Choice, int]] = [(Drain(index), 0) for index in self._drains(place)]
        if place.waiting and (others or drains):
            # Buffers drain and other threads run eventually, so only these can end the wait.
            return [*drains, *others]
        choices: list[tuple[Choice, int]] = [(Run(self.current), 0), *drains]
        resumed = (place.pc, place.part) == self._resumed
        if (self.bound is None or self.used < self.bound) and not resumed:
            choices += [(choice, 1) for choice, _ in others]
            signals = self.state.signals[self.current]
            if self.signal is not None and not signals and not place.part:
                choices.append((Signal(self.current), 1))
        return choices

    def _last_drains(self) -> list[tuple[Choice, int]]:
        """Return the drains of the buffers of ended threads."""
        if self.order is None:
            return []
        waiting = enumerate(self.threads)
        return [(Drain(index), 0) for index, each in waiting if self.order.waiting(each.number)]

    def _take(self, choice: Choice, cost: int, place: _Place) -> _Place | None:
        """Take a choice. Return the resulting place, or None if the thread is to run."""
        self.used += cost
        match choice:
            case Drain(index):
                assert self.order is not None  # noqa: S101
                self._mark(place)
                self.path.append(choice)
                self.order.drain(self.threads[index].number)
                return place
            case Signal():
                assert self.signal is not None  # noqa: S101
                self._mark(place)
                self.path.append(choice)
                self.state.signals[self.current] += 1
                thread = self.threads[self.current]
                self.machine.interrupt(thread, self.signal.address, self.signal_values)
            case Run(index) if index != self.current:
                self._mark(place)
                self.current = index
                self._forget_run()
                self._resumed = self._here(self.threads[index].pc)[1:]
            case _ if place.why == "point":
                self._skip, self._resumed = place.pc, (-1, 0)
                thread = self.threads[self.current]
                begun = thread.split is not None or (
                    place.splits and self.machine.splitter.begin(thread, self._here(place.pc)[0])
                )
                if begun:
                    return self._pass_parts()
                self._pass(place)
        return None

    def _pass_parts(self) -> _Place | None:
        """Do the next parts of an instruction. Return the place before one that matters, or None.

        Where no other thread may run or drain, the instruction is done at once.
        """
        thread = self.threads[self.current]
        while thread.split is not None:
            split = thread.split
            touched = self.conflicts.touched_by(split.next)
            writes = self.order is None and split.next.writes
            self.state.passed(self.current, split.pc, touched, writes=writes)
            self.machine.splitter.step(thread)
            place = self._split_place()
            if place is not None and (not self._quiet or self._drains(place)):
                return place
        self._skip = -1
        return None

    def _split_place(self) -> _Place | None:
        """Return the current thread's place within an instruction, if its next part matters."""
        split = self.threads[self.current].split
        touched = self.conflicts.touched_by(split.next) if split is not None else ()
        if split is None or not touched:
            return None
        return _Place("point", split.pc, tuple(touched), part=split.done)

    def _mark(self, place: _Place) -> None:
        """Append the current thread's progress to the path."""
        done = Run(self.current)
        if place.why == "point":
            done = Run(self.current, *self._here(place.pc))
        if place.why != "final" and (not self.path or self.path[-1] != done):
            last = self.path[-1] if self.path else None
            if not isinstance(last, Drain) or place.why == "point":
                self.path.append(done)

    # --- all schedules ---

    def _systematic(self, limit: int) -> ExploreFailure | None:
        """Explore all schedules; start over whenever the threads reveal new conflicts."""
        if self.signal is not None:
            self._meet_signal()
        while True:
            self.conflicts.settle()
            self.conflicts.restarts = True
            self._visited.clear()
            self.schedules = self.states = 0
            self._on_instruction = self._on_point
            self.conflicts.hook_points(self._on_point, self.machine.ordering)
            with contextlib.suppress(GrownError):
                failed = self._failure_of(self._all, limit)
                if failed is not None or not self.conflicts.grown:
                    return failed

    def _failure_of(
        self, search: Callable[..., ExploreFailure | None], *given: Any
    ) -> ExploreFailure | None:
        """Search with the given arguments. Return the failure that is found, or that ends it."""
        try:
            return search(*given)
        except _FoundError as found:
            return self._failed(found.error, image=found.image)
        except NativeError as error:
            if self.order is not None:
                self.order.reveal()
            return self._failed(error, image=self.device.image())

    def _meet_signal(self) -> None:
        """Interrupt each thread once, to find its conflicts with the handler."""
        self._restart()
        for index, thread in enumerate(self.threads):
            assert self.signal is not None  # noqa: S101
            self.current = index
            self.machine.interrupt(thread, self.signal.address, self.signal_values)
            with contextlib.suppress(NativeError, _FoundError):
                # Errors are found again by the search, at a point.
                self._run_thread()

    def _all(self, limit: int) -> ExploreFailure | None:
        """Search depth-first, up to a failure, a new conflict, or a number of schedules."""
        self._restart()
        nodes: list[_Node] = []
        place: _Place | None = None
        while True:
            if place is None:
                self._set_quiet()
                place = self._split_place() or self._run_thread()
            choices = [] if place.why == "pruned" else self._choices(place)
            if len(choices) > 1 and self._known(place, choices, nodes):
                choices, place = [], _Place("pruned")
            if choices:
                place = self._take(*choices[0], place)
                continue
            if place.why != "pruned":
                failed = self._ask_last()
                if failed is not None:
                    return failed
            if self.conflicts.grown or not nodes:
                return None
            if self.schedules >= limit:
                self.complete = False
                return None
            place = self._backtrack(nodes)

    def _set_quiet(self) -> None:
        """Set whether the current thread can no longer be preempted."""
        spent = self.bound is not None and self.used >= self.bound
        alone = sum(not thread.finished for thread in self.threads) == 1
        self._quiet = spent or (alone and self.signal is None)

    def _known(self, place: _Place, choices: list[tuple[Choice, int]], nodes: list[_Node]) -> bool:
        """Return whether this state was explored before; if not, add it as a node.

        Either the threads have read the same (``State.key``), or what they have is the same.
        """
        self.states += 1
        where = (self.current, self.used, place.why, place.pc, place.part, self._resumed)
        key = self.state.key(*where)
        if key in self._visited:
            return True
        self._visited.add(key)
        snapshot = self.state.snapshot()
        key = self.state.contents.key(snapshot, *where)
        if key in self._visited:
            return True
        self._visited.add(key)
        nodes.append(_Node(snapshot, place, self.current, self.used, len(self.path), choices[1:]))
        return False

    def _backtrack(self, nodes: list[_Node]) -> _Place | None:
        """Return to the last point with an unexplored choice, and take it."""
        node = nodes[-1]
        choice, cost = node.choices.pop(0)
        if not node.choices:
            nodes.pop()
        self.state.restore(node.snapshot)
        self.current, self.used = node.current, node.used
        del self.path[node.path :]
        self._forget_run()
        return self._take(choice, cost, node.place)

    # --- one schedule ---

    def _replay(self, schedule: str) -> ExploreFailure | None:
        """Run one given schedule."""
        if schedule.startswith("random:"):
            number = schedule.removeprefix("random:")
            if not number.isdigit():
                raise NativeError(f"schedule {schedule!r}: a number follows 'random:'")
            return self._at_random([int(number)])
        path = read_schedule(schedule, self.base, len(self.threads))
        stops = {each.pc for each in path if isinstance(each, Run) and each.accesses >= 0}
        self._on_instruction = self._on_replay
        self.conflicts.hook_points(self._on_replay, stops | self.machine.ordering)
        return self._failure_of(self._follow_all, path)

    def _follow_all(self, path: list[Choice]) -> ExploreFailure | None:
        """Execute a schedule, and then what is left of each thread."""
        for choice in path:
            self._follow(choice)
        for index, _ in enumerate(self.threads):
            self._follow(Run(index))
        return self._end()

    def _end(self) -> ExploreFailure | None:
        """Drain all store buffers, and check the image."""
        if self.order is not None:
            for thread in self.threads:
                self.order.drain_all(thread.number)
        return self._ask_last()

    def _follow(self, choice: Choice) -> None:
        """Execute one step of a schedule."""
        thread = self.threads[choice.thread]
        match choice:
            case Drain():
                if self.order is not None and self.order.waiting(thread.number):
                    self.order.drain(thread.number)
            case Signal():
                assert self.signal is not None  # noqa: S101
                self.machine.interrupt(thread, self.signal.address, self.signal_values)
            case Run(index, accesses, pc, part):
                self.current = index
                self._stop_at = (accesses, pc, part) if accesses >= 0 else None
                if not thread.finished and self._here(thread.pc)[:2] != (accesses, pc):
                    self._run_thread()
                if part and (thread.split or self.machine.splitter.begin(thread, accesses)):
                    while thread.split is not None and thread.split.done < part:
                        self.machine.splitter.step(thread)
        self.path.append(choice)

    def _at_random(self, seeds: Sequence[int]) -> ExploreFailure | None:
        """Run schedules drawn from seeds, with switches at any instruction."""
        self._on_instruction = self._on_replay
        self.conflicts.hook_points(self._on_replay, self.machine.ordering)
        self._stop_at = None
        for number in seeds:
            self._restart()
            self.random_name = f"random:{number}"
            failed = self._failure_of(self._draw, Random(number))
            if failed is not None:
                return failed
        self.complete = False
        return None

    def _draw(self, chance: Random) -> ExploreFailure | None:
        """Run one random schedule: few long runs, or many short ones."""
        most = 1 << 1 + chance.below(10)
        left = self.budget
        while True:
            enabled = [index for index, each in enumerate(self.threads) if not each.finished]
            if not enabled:
                break
            self.current = enabled[chance.below(len(enabled))]
            thread = self.threads[self.current]
            count = chance.below(most)
            if self.signal is not None and not thread.depth and not chance.below(8):
                self.machine.interrupt(thread, self.signal.address, self.signal_values)
            self.conflicts.agent = self._agent()
            outcome = self._advance(thread, count) if count else Stopped()
            if isinstance(outcome, Stopped):
                self.machine.splitter.pause(thread, chance)
            if isinstance(outcome, Blocked) and outcome.action == "exit":
                thread.finished = True
            left -= 1 + count
            if left < 0:
                raise self.machine.endless(thread)
            if self.order is not None:
                waiting = len(self.order.waiting(thread.number))
                for _ in range(chance.below(waiting + 1)):
                    self.order.drain(thread.number)
        return self._end()


def _reads(operands: tuple[Any, ...]) -> bool:
    return any(operand.reads for operand in operands)


def _takes_before(check: Check) -> bool:
    try:
        return "before" in inspect.signature(check).parameters
    except (TypeError, ValueError):
        return False
