"""The execution of one schedule: which thread runs, how far it has come, and how it continues."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from fx_emulator.native.calls import Blocked
from fx_emulator.native.conflicts import Conflicts, TouchedWord
from fx_emulator.native.devices import MappedDevice
from fx_emulator.native.errors import Frame, NativeError
from fx_emulator.native.machine import Machine
from fx_emulator.native.program import NativeEntry, Store
from fx_emulator.native.schedule import Choice, Drain, Run, write_schedule
from fx_emulator.native.state import State
from fx_emulator.native.threads import Finished, NativeThread, Stopped

_TRAIL = 10
"""Number of stores that a failure reports."""


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
        error = type(self.error).__name__
        message = str(self.error)
        if message:
            error = f"{error}: {message}"
        if isinstance(self.error, NativeError):
            when = "while it ran"
        elif self.final:
            when = "when all threads had ended"
        else:
            when = "after a store"
        where = f" at {self.frame}" if self.frame is not None else ""
        trail = "".join(f"\n    {store}" for store in self.trail)
        return (
            f"{when}{where}\n  {error}\n  schedule={self.schedule!r}"
            f"\n  the last stores, newest last:{trail}"
        )


@attrs.frozen
class Place:
    """The position of an exploration: why, and before what, the current thread stopped."""

    why: str
    """``point``, ``finished``, ``blocked`` or ``pruned``."""
    pc: int = 0
    touched: tuple[TouchedWord, ...] = ()
    """The words in conflict that the next instruction, or its next part, uses."""
    ordering: bool = False
    """Whether the instruction drains the thread's store buffer first."""
    waiting: bool = False
    """Whether the thread repeats this point, waiting for another."""
    splits: bool = False
    """Whether the instruction has several parts, between which other threads may run."""
    part: int = 0
    """Number of its parts that are done."""


class Execution:
    """The threads of an exploration as they run one schedule.

    ``current`` is the index of the thread that runs, ``path`` the schedule up to here.
    """

    def __init__(
        self,
        entries: Sequence[NativeEntry],
        device: MappedDevice,
        signal: NativeEntry | None,
    ) -> None:
        program = entries[0].program
        self.machine: Machine = program.machine
        self.device = device
        self.budget = max(entry.budget for entry in entries)
        # Mapped first, so that blocks that threads allocate are watched.
        self.machine.heap  # noqa: B018
        self.threads = self._pool(entries[0], len(entries))
        self._starts = [(entry.address, program.convert(entry.arguments)) for entry in entries]
        self.signal = signal
        self._signal_arguments: list[int] = []
        if signal is not None:
            self._signal_arguments = program.convert(signal.arguments)
        self.conflicts = Conflicts(self.machine)
        self.state = State(self.machine, device, self.threads, self.conflicts)
        self.current = 0
        self.path: list[Choice] = []
        self.schedule_name = ""
        """A name that stands for the whole schedule, such as ``random:3``."""
        self.on_instruction: Callable[[int], None] = lambda _address: None
        """Called before each instruction that may be a point."""
        self._place: Place | None = None
        """Where a callback has stopped the current thread."""
        self._time_read_at = -1
        """Address of the instruction that has just read the time."""

    def _pool(self, entry: NativeEntry, count: int) -> list[NativeThread]:
        """Return threads that all explorations of a program share, with the same koids."""
        pool = self.machine.explored
        owner = self.machine.target.process(entry.program.path.name)
        pool.extend(
            self.machine.new_thread(f"thread {number}", owner.koid)
            for number in range(len(pool), count)
        )
        return pool[:count]

    @property
    def thread(self) -> NativeThread:
        """The thread that runs."""
        return self.threads[self.current]

    def live_threads(self) -> list[int]:
        """Return the indexes of the threads that have not ended."""
        return [
            thread_index for thread_index, thread in enumerate(self.threads) if not thread.finished
        ]

    # --- beginning ---

    def start(self) -> None:
        """Start the threads at their functions, where every schedule begins."""
        for thread, (address, arguments) in zip(self.threads, self._starts, strict=True):
            self.machine.start(thread, address, arguments)
        self.beginning = self.state.snapshot()

    def restart(self) -> None:
        """Return to the beginning."""
        self.state.restore(self.beginning)
        self.path = []
        self.current = 0

    # --- events of the machine ---

    def on_value(self, value: int) -> None:
        """Record the result of a function of the target."""
        # A time is not learned: it follows from the order of all readings.
        if self.machine.pc() != self._time_read_at:
            self.state.learn(self.current, value)
        self._time_read_at = -1

    def on_time(self) -> None:
        """Record that the current thread reads the time."""
        self.conflicts.on_time()
        pc = self.machine.pc()
        self._time_read_at = pc
        self.state.time_reads[self.current] = self.state.progress(self.current, pc)

    def on_call(self, address: int) -> bool:
        """Handle a call of a function of the target. Return whether the run stops before it."""
        self.on_instruction(address)
        return self._place is not None

    # --- position ---

    def _agent(self) -> int:
        """Return the number of who runs: 2 x the thread, and 1 more in its signal handler."""
        if self.thread.interrupted:
            return 2 * self.current + 1
        return 2 * self.current

    def position(self, pc: int) -> tuple[int, int, int]:
        """Return the position of the current thread before ``pc``, as a schedule names it.

        That is its number of accesses, the address, and the parts of the instruction done so far.
        """
        split = self.thread.split
        if split is not None:
            return split.mark, split.pc, split.done
        return self.conflicts.accesses.get(self._agent(), 0), pc, 0

    def mark(self, place: Place) -> None:
        """Append the current thread's progress to the path."""
        last_step = self.path[-1] if self.path else None
        if place.why == "point":
            reached_step = Run(self.current, *self.position(place.pc))
        elif isinstance(last_step, Drain):
            return  # the thread had gone as far as it can before that drain
        else:
            reached_step = Run(self.current)
        if reached_step != last_step:
            self.path.append(reached_step)

    # --- running ---

    def stop(self, place: Place) -> None:
        """Stop the current thread at a place; called from a callback."""
        self._place = place
        self.machine.engine.stop_before()

    def _forget_place(self) -> None:
        """Clear the place, which callbacks set when the engine stops."""
        self._place = None

    def run_thread(self) -> Place:
        """Run the current thread up to a point, or as far as it can go."""
        thread = self.thread
        self._forget_place()
        while True:
            running_handlers = len(thread.interrupted)
            outcome = self.advance(self.budget)
            if self._place is not None:
                return self._place
            match outcome:
                case Finished():
                    return Place("finished")
                case Blocked(action="exit"):
                    thread.finished = True
                    return Place("finished")
                case Blocked():
                    return Place("blocked")
                case _ if len(thread.interrupted) == running_handlers:
                    raise self.machine.endless(thread)
            # Otherwise a signal handler has returned, and the thread itself continues.

    def advance(self, count: int) -> Stopped | Finished | Blocked:
        """Run at most ``count`` instructions of the current thread, and let their time pass.

        A thread that sleeps wakes up first.
        """
        thread = self.thread
        clock = self.machine.target.clock
        self.conflicts.agent = self._agent()
        if thread.wake_ns:
            clock.advance(max(0, thread.wake_ns - clock.monotonic_ns()))
            thread.wake_ns = 0
        outcome = self.machine.advance(thread, count)
        self.machine.timer.spend()
        if isinstance(outcome, Blocked) and outcome.ns:
            thread.wake_ns = clock.monotonic_ns() + outcome.ns
        return outcome

    def interrupt(self, thread: NativeThread) -> None:
        """Let the signal handler of the exploration interrupt a thread."""
        assert self.signal is not None  # noqa: S101
        self.machine.interrupt(thread, self.signal.address, self._signal_arguments)

    # --- store buffers ---

    def drain(self, index: int) -> None:
        """Drain the oldest buffered store of a thread."""
        assert self.machine.order is not None  # noqa: S101
        self.machine.order.drain(self.threads[index].number)

    def drain_own(self, pc: int) -> None:
        """Drain the current thread's buffer before the fence or locked instruction at ``pc``."""
        order = self.machine.order
        assert order is not None  # noqa: S101
        order.drain_all(self.thread.number)
        access = self.machine.decoder.access(pc)
        if access is None or access.fence:
            order.direct = -1
        else:
            order.direct = pc

    def reveal(self) -> None:
        """Show the memory as all threads see it, without stores that wait in a buffer."""
        if self.machine.order is not None:
            self.machine.order.reveal()

    # --- reports ---

    def failure(self, error: BaseException, *, image: bytes, final: bool = False) -> ExploreFailure:
        """Return the report of an error that ends this schedule."""
        machine = self.machine
        trail = tuple(
            Store(
                thread=store.thread,
                pc=store.pc,
                offset=store.offset,
                size=store.size,
                value=store.value,
                frame=machine.names.frame(store.pc),
                name=machine.threads[store.thread].name,
            )
            for store in self.state.trail[-_TRAIL:]
        )
        schedule_path = list(self.path)
        if not final:
            schedule_path.append(Run(self.current))
        return ExploreFailure(
            error=error,
            schedule=self.schedule_name or write_schedule(schedule_path, machine.file.base),
            image=image,
            trail=trail,
            final=final,
        )
