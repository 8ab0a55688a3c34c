"""The kernel: processes, threads, and a scheduler that is deterministic for a seed.

A thread's body is a generator. It yields the thread's next action (``Run``, ``Sleep``, ``Wait``,
``Signal``, ``Yield``, ``Migrate``, ``Exit``). Its code between two yields, such as a call of a
writer, runs at one moment of virtual time on the thread's CPU, and nothing else runs meanwhile. A
crash therefore falls between two stores of one thread only.
"""

from __future__ import annotations

import contextlib
import enum
import heapq
import itertools
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import attrs

from fx_emulator.clock import VirtualClock
from fx_emulator.cpu import Cpu, Processor, Tsc
from fx_emulator.errors import EmulatorError
from fx_emulator.vmo import FIRST_KOID

if TYPE_CHECKING:
    from fxframework.model.target import SchedulerListener

DEFAULT_PRIORITY = 16
PRIORITIES = 32
IDLE_KOID = 0
"""The thread id that listeners get for an idle CPU."""
IDLE_PRIORITY = -(1 << 31)
"""The priority of an idle CPU, as the kernel writes it (docs/formats/trace.md)."""
SLICE_NS = 10_000_000
BUDGET = 1_000_000

_MASK = (1 << 64) - 1


class DeadlockError(EmulatorError):
    """Every thread waits, and none is left to signal."""


class EndlessLoopError(EmulatorError):
    """A run exceeded its budget of steps."""


# --- Random choices ----------------------------------------------------------------------------


class Random:
    """Pseudo-random numbers (SplitMix64), equal on every machine and version for the same seed."""

    def __init__(self, seed: int) -> None:
        self.state = seed & _MASK
        """What the next numbers follow from."""

    def word(self) -> int:
        """Return the next 64 bits."""
        self.state = (self.state + 0x9E3779B97F4A7C15) & _MASK
        mixed = self.state
        mixed = ((mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9) & _MASK
        mixed = ((mixed ^ mixed >> 27) * 0x94D049BB133111EB) & _MASK
        return mixed ^ mixed >> 31

    def below(self, limit: int) -> int:
        """Return a number from 0 to ``limit`` - 1."""
        return self.word() * limit >> 64

    def draw(self, nbytes: int) -> bytes:
        """Return bytes, of as many words as they take."""
        word_count = -(-nbytes // 8)
        words = [self.word().to_bytes(8, "little") for _ in range(word_count)]
        return b"".join(words)[:nbytes]


# --- Actions that a body yields ----------------------------------------------------------------


@attrs.frozen
class Run:
    """Use ``ns`` of CPU time. Threads of higher priority may interrupt it."""

    ns: int


@attrs.frozen
class Sleep:
    """Block for ``ns``. Time during which the system is suspended does not count."""

    ns: int


@attrs.frozen
class Wait:
    """Block until an event is signalled. The body receives True, or False after ``timeout_ns``."""

    event: Event
    timeout_ns: int | None = None


@attrs.frozen
class Signal:
    """Signal an event."""

    event: Event


@attrs.frozen
class Yield:
    """Let other ready threads of the same priority run first."""


@attrs.frozen
class Migrate:
    """Move to a CPU and stay on it, however busy it is; ``None`` allows every CPU again."""

    cpu: int | None


@attrs.frozen
class Exit:
    """End the thread, as if its body returned."""


Action = Run | Sleep | Wait | Signal | Yield | Migrate | Exit
Body = Generator[Action, Any, object]


# --- Objects -----------------------------------------------------------------------------------


class ThreadState(enum.IntEnum):
    """Thread states, with the numbers of ``zx_info_thread_t``; ready is RUNNING too."""

    NEW = 0
    RUNNING = 1
    SUSPENDED = 2
    BLOCKED = 3
    DYING = 4
    DEAD = 5


class Event:
    """An event that threads can wait for.

    A signal wakes all waiting threads, and the event stays signalled until ``clear``. With
    ``auto_reset`` a signal wakes one thread: the longest-waiting one of the highest priority or, if
    none waits, the next that comes.
    """

    def __init__(self, name: str = "", *, auto_reset: bool = False) -> None:
        self.name = name
        self.auto_reset = auto_reset
        self.signalled = False
        self.waiting: list[Thread] = []
        """Waiting threads, in the order in which they began to wait."""

    def clear(self) -> None:
        """Reset the event to not signalled."""
        self.signalled = False

    def __repr__(self) -> str:
        return f"Event({self.name!r})"


@attrs.define(eq=False)
class Process:
    """A process: a koid, a name, and its threads in order of creation."""

    koid: int
    name: str
    threads: list[Thread] = attrs.field(factory=list, repr=False)


@attrs.define(eq=False)
class Thread:
    """A thread. Its attributes are for reading; only the kernel changes them."""

    koid: int
    process: Process
    name: str
    priority: int = DEFAULT_PRIORITY
    state: ThreadState = ThreadState.NEW
    cpu: int = 0
    """The current or last CPU."""
    pinned: int | None = None
    """The only CPU that the thread may run on, or None."""
    background: bool = False
    """Whether ``Kernel.run`` may end while the thread waits."""
    cpu_ns: int = 0
    """CPU time used so far."""
    migrations: int = 0
    """How often the thread moved to another CPU."""
    counter: Tsc = attrs.field(kw_only=True, repr=False)
    """The time-stamp counter of its CPU (``model.target.TimestampCounter``)."""
    clock: VirtualClock = attrs.field(kw_only=True, repr=False)
    """The system's clock (``model.target.Clock``)."""

    body: Body | None = attrs.field(default=None, repr=False)
    answer: object = attrs.field(default=None, repr=False)
    """The value sent to the body next."""
    left_ns: int = attrs.field(default=0, repr=False)
    """Nanoseconds left of its ``Run``."""
    slice_ns: int = attrs.field(default=0, repr=False)
    """Nanoseconds left of its time slice."""
    order: tuple[int, int] = attrs.field(default=(0, 0), repr=False)
    """Sort key among the ready threads of its priority."""
    token: int = attrs.field(default=0, repr=False)
    """Changes with each timer, so that outdated timers are ignored."""
    waits_for: Event | None = attrs.field(default=None, repr=False)
    """The event that it waits for, or None."""
    paused: bool = attrs.field(default=False, repr=False)

    @property
    def ids(self) -> tuple[int, int]:
        """Koids of process and thread, as a trace writer takes them for ``thread``."""
        return self.process.koid, self.koid

    def __str__(self) -> str:
        return f"thread {self.name!r} of process {self.process.name!r}"


class _Core:
    """The scheduler's state of a CPU."""

    __slots__ = ("cpu", "number", "since", "thread", "token")

    def __init__(self, number: int, cpu: Cpu) -> None:
        self.number = number
        self.cpu = cpu
        self.thread: Thread | None = None
        self.since = 0
        """Time up to which its thread's CPU time is accounted for."""
        self.token = 0
        """Changes with each timer, so that outdated timers are ignored."""


class _Timer(NamedTuple):
    """A time at which something happens; timers of one time come in random order."""

    when_ns: int
    chance: int
    sequence: int
    subject: _Core | Thread
    """A CPU, whose run or slice ends, or a thread that wakes up."""
    token: int
    """The subject's token; if that has changed the timer is outdated."""


# --- The kernel --------------------------------------------------------------------------------


class Kernel:
    """Processes and threads on the CPUs of a processor, in the virtual time of a clock.

    A ready thread never waits for a CPU that runs a thread of lower priority. Threads of one
    priority take turns, each for a slice of about ``slice_ns``. ``seed`` alone decides the order of
    simultaneous events, which of several idle CPUs a thread gets, and by how much (up to an eighth)
    a slice differs from ``slice_ns``.

    The scheduler's time (``now_ns``) starts at the clock's monotonic time and counts the time that
    has passed since: a jump among the clock's ``faults`` does not affect the schedule. Time that a
    body spends by itself, such as by reading a counter with a read cost, is CPU time of its thread.
    """

    def __init__(
        self,
        clock: VirtualClock,
        processor: Processor,
        *,
        seed: int = 0,
        koids: Iterator[int] | None = None,
        slice_ns: int = SLICE_NS,
    ) -> None:
        if slice_ns < 1:
            raise EmulatorError(f"invalid slice_ns {slice_ns}: must be at least 1")
        self.clock = clock
        self.processor = processor
        self.koids = itertools.count(FIRST_KOID) if koids is None else koids
        self.slice_ns = slice_ns
        self.processes: list[Process] = []
        self.current: Thread | None = None
        """The thread whose body is running; None between bodies."""
        self._signalling: Thread | None = None
        """The thread that yielded the signal that is sent."""
        self.now_ns = clock.monotonic_ns()
        self._shown_ns = self.now_ns
        """The clock's monotonic time when ``now_ns`` was updated last."""
        self.switches = 0
        """Context switches so far."""
        self.counter = Tsc(self._cpu_of_current)
        """The counter of the current thread's CPU, or of CPU 0 between bodies."""
        self.discarding: Callable[[], contextlib.AbstractContextManager[object]] = (
            contextlib.nullcontext
        )
        """Context in which bodies of killed threads are closed, which runs their ``finally``."""
        self._random = Random(seed)
        self._cores = [_Core(number, cpu) for number, cpu in enumerate(processor.cpus)]
        self._listeners: list[tuple[SchedulerListener, bool]] = []
        """Listeners, and whether their ticks are those of the CPU's counter."""
        self._ready: list[Thread] = []
        """Threads that wait for a CPU."""
        self._timers: list[_Timer] = []
        """A heap."""
        self._sequence = itertools.count()
        """Numbers in the order of events, which decide where nothing else does."""
        self._due: list[_Core] = []
        """CPUs whose thread's body runs next."""
        self._running = False
        for core in self._cores:
            core.cpu.enter_cstate()

    # --- Objects ---

    @property
    def threads(self) -> Iterator[Thread]:
        """All threads ever created, process by process."""
        return (thread for process in self.processes for thread in process.threads)

    def process(self, name: str) -> Process:
        """Create a process."""
        process = Process(next(self.koids), name)
        self.processes.append(process)
        return process

    def spawn(
        self,
        process: Process,
        name: str,
        body: Body | Callable[[Thread], Body],
        *,
        priority: int = DEFAULT_PRIORITY,
        cpu: int | None = None,
        background: bool = False,
    ) -> Thread:
        """Create a thread that is ready at this moment.

        ``body`` is a generator, or a function that returns one for the thread. ``cpu`` pins the
        thread, as ``Migrate`` does; a ``background`` thread may wait forever. Raises EmulatorError
        for an invalid priority or CPU, and for a body that is not a generator.
        """
        if not 0 <= priority < PRIORITIES:
            raise EmulatorError(
                f"thread {name!r}: invalid priority {priority}: must be 0 to {PRIORITIES - 1}"
            )
        if cpu is not None:
            self._check_cpu(f"thread {name!r}", cpu)
        thread: Thread  # declared, because its counter refers to it
        thread = Thread(
            next(self.koids),
            process,
            name,
            priority,
            pinned=cpu,
            background=background,
            counter=Tsc(lambda: self._cores[thread.cpu].cpu),
            clock=self.clock,
        )
        generator = body(thread) if callable(body) else body
        if not isinstance(generator, Generator):
            raise EmulatorError(f"thread {name!r}: body {generator!r} is not a generator")
        thread.body = generator
        if cpu is None:
            cpu = self._random.below(len(self._cores))
        thread.cpu = cpu
        process.threads.append(thread)
        self._wake(thread)
        return thread

    def listen(self, listener: SchedulerListener, ticks: Literal["clock", "tsc"] = "clock") -> None:
        """Call a listener for every switch and wakeup from now on.

        Its ``ticks`` are those of the clock, or of the counter of the CPU where the event happens.
        """
        if ticks not in {"clock", "tsc"}:
            raise EmulatorError(f"invalid ticks {ticks!r}: must be 'clock' or 'tsc'")
        self._listeners.append((listener, ticks == "tsc"))

    # --- Control ---

    def run(self, until_ns: int | None = None, *, budget: int = BUDGET) -> None:
        """Let virtual time pass up to ``until_ns``, or until no thread has anything to do.

        Raises DeadlockError if, without ``until_ns``, threads wait for events that no thread will
        signal (threads in the background do not count), and EndlessLoopError after ``budget`` steps
        of bodies and ends of slices. An exception of a body, such as a ``Crash``, ends its process
        and is raised; the other processes can be run further.
        """
        if self._running:
            raise EmulatorError("run() called within a run; a body must yield its action instead")
        self.catch_up()
        if until_ns is not None and until_ns < self.now_ns:
            raise EmulatorError(f"cannot run until {until_ns} ns: it is {self.now_ns} ns already")
        self._running = True
        started_ns = self.now_ns
        try:
            # A listener that raised may have left a CPU without the thread that is ready for it.
            for core in self._cores:
                if core.thread is None and self._best(core) is not None:
                    self._go_on(core, ThreadState.RUNNING)
                elif core.thread is not None and not core.thread.left_ns:
                    self._arm(core)
            for step in itertools.count():
                if step == budget:
                    raise self._endless(budget, started_ns)
                if self._due:
                    self._step(self._due.pop(0))
                    continue
                self.catch_up()
                timer = self._next_timer()
                if timer is None or (until_ns is not None and timer.when_ns > until_ns):
                    break
                heapq.heappop(self._timers)
                self._pass(timer.when_ns)
                self._fire(timer.subject)
        finally:
            self._running = False
        if until_ns is None:
            self._check_deadlock()
            return
        self._pass(until_ns)
        for core in self._cores:
            self._account(core)

    def suspend(self, ns: int) -> None:
        """Suspend the whole system for ``ns``: only boot time advances."""
        self.clock.suspend(ns)

    def signal(self, event: Event) -> None:
        """Signal an event, from a body or from outside."""
        # The sort is stable: threads of one priority stay in the order in which they came.
        waiting_threads = sorted(event.waiting, key=lambda thread: -thread.priority)
        if not waiting_threads or not event.auto_reset:
            event.signalled = True
        if event.auto_reset:
            waiting_threads = waiting_threads[:1]
        for thread in waiting_threads:
            thread.answer = True
            self._wake(thread)

    @property
    def waker(self) -> Thread | None:
        """The thread that wakes another one at the moment; None for timers and from outside."""
        return self._signalling or self.current

    def pause(self, thread: Thread) -> None:
        """Suspend one thread until ``resume``."""
        if thread.state == ThreadState.DEAD or thread.paused:
            return
        thread.paused = True
        if thread is not self.current:
            self._halt(thread)

    def resume(self, thread: Thread) -> None:
        """Resume a paused thread."""
        thread.paused = False
        if thread.state == ThreadState.SUSPENDED:
            self._wake(thread)

    def kill(self, process: Process) -> None:
        """End a process and all its threads, whatever their state."""
        if self.current is not None and self.current.process is process:
            raise EmulatorError(
                f"process {process.name!r} cannot kill itself; yield Exit() instead"
            )
        bodies = [thread.body for thread in process.threads if thread.body is not None]
        with self.discarding():
            for body in bodies:
                # Exceptions of its `finally` are ignored, as its stores are.
                with contextlib.suppress(Exception):
                    body.close()
        with contextlib.ExitStack() as endings:
            # Every thread ends, whatever a listener raises at the end of another.
            for thread in reversed(process.threads):
                endings.callback(self._end, thread)

    # --- Steps ---

    def _step(self, core: _Core) -> None:
        """Run the body of a CPU's thread up to its next yield, and do the action."""
        thread = core.thread
        # It may have been preempted, or ended, since it became due.
        if thread is None or thread.left_ns or thread.body is None:
            return
        answer = thread.answer
        thread.answer = None
        self.current = thread
        try:
            action = thread.body.send(answer)
            self._check_action(thread, action)
            if isinstance(action, Exit):
                # Its `finally` runs at this moment of virtual time.
                thread.body.close()
        except StopIteration:
            action = Exit()
        except BaseException as error:
            self.current = None
            self._fail(thread, error)
            raise
        self.current = None
        self.catch_up()
        self._account(core)
        self._do(core, thread, action)
        if thread.paused:
            # Paused by its own body: the action that it yielded is done first.
            self._halt(thread)
        elif core.thread is thread:
            # The action may have readied a thread of higher priority, for this CPU too.
            best_ready = self._best(core)
            if best_ready is not None and best_ready.priority > thread.priority:
                self._give_way(core, thread, last=not thread.slice_ns)
            else:
                self._arm(core)

    def _check_action(self, thread: Thread, action: Action) -> None:
        match action:
            case Run(ns) | Sleep(ns) | Wait(_, int(ns)):
                if ns < 0:
                    raise EmulatorError(
                        f"{thread} yields {action!r}: the time must not be negative"
                    )
            case Migrate(int(cpu)):
                self._check_cpu(str(thread), cpu)
            case Wait(_, None) | Signal() | Yield() | Migrate(None) | Exit():
                pass
            case _:
                raise EmulatorError(
                    f"{thread} yields {action!r}; it yields Run, Sleep, Wait, Signal, Yield, "
                    "Migrate or Exit"
                )

    def _do(self, core: _Core, thread: Thread, action: Action) -> None:
        match action:
            case Run(ns):
                thread.left_ns = ns
            case Sleep(ns):
                self._start_timer(thread, ns)
                self._leave(core, ThreadState.BLOCKED)
            case Wait(event, timeout_ns):
                if event.signalled:
                    event.signalled = not event.auto_reset
                    thread.answer = True
                    return
                event.waiting.append(thread)
                thread.waits_for = event
                thread.answer = False  # unless a signal comes before the timeout
                if timeout_ns is not None:
                    self._start_timer(thread, timeout_ns)
                self._leave(core, ThreadState.BLOCKED)
            case Signal(event):
                self._signalling = thread
                try:
                    self.signal(event)
                finally:
                    self._signalling = None
            case Yield():
                thread.slice_ns = 0
                self._give_way(core, thread)
            case Migrate(cpu):
                thread.pinned = cpu
                if cpu is not None and cpu != core.number:
                    self._give_way(core, thread)
            case Exit():
                self._end(thread)

    def _fail(self, thread: Thread, error: BaseException) -> None:
        """End the process of a thread whose body raised an exception."""
        error.add_note(f"in {thread}, on CPU {thread.cpu}, at {self.now_ns} ns")
        thread.body = None
        # An exception of a listener, perhaps of the same cause, must not hide the first one.
        with contextlib.suppress(EmulatorError):
            self.kill(thread.process)

    def _halt(self, thread: Thread) -> None:
        """Stop a paused thread; a blocked one stays blocked first."""
        if thread in self._ready:
            self._ready.remove(thread)
            thread.state = ThreadState.SUSPENDED
        elif thread.state == ThreadState.RUNNING:
            core = self._cores[thread.cpu]
            self._account(core)
            self._leave(core, ThreadState.SUSPENDED)

    def _fire(self, subject: _Core | Thread) -> None:
        """Handle a timer: a thread wakes up, or a CPU's run or slice ends."""
        if isinstance(subject, Thread):
            self._wake(subject)
            return
        self._account(subject)
        thread = subject.thread
        assert thread is not None  # noqa: S101 (a CPU that is idle has no timer)
        if not thread.slice_ns:
            best_ready = self._best(subject)
            if best_ready is not None and best_ready.priority >= thread.priority:
                self._give_way(subject, thread)
                return
        self._arm(subject)

    # --- Threads and CPUs ---

    def _wake(self, thread: Thread) -> None:
        """Make a thread ready, for the first time or again."""
        self.catch_up()
        thread.token += 1
        if thread.waits_for is not None:
            thread.waits_for.waiting.remove(thread)
            thread.waits_for = None
        if thread.paused:
            thread.state = ThreadState.SUSPENDED
            return
        self._requeue(thread, last=True)
        core = self._core_for(thread)
        # If it has to wait, listeners get the CPU on which it ran last, or must run.
        waking_core = core
        if waking_core is None:
            waking_core = self._cores[thread.cpu if thread.pinned is None else thread.pinned]
        for listener, tsc in self._listeners:
            listener.wakeup(
                cpu=waking_core.number,
                ticks=self._ticks(waking_core, tsc=tsc),
                tid=thread.koid,
                priority=thread.priority,
            )
        self._place(thread, core)

    def _requeue(self, thread: Thread, *, last: bool) -> None:
        """Append a thread to the ready threads of its priority, or put it first."""
        sequence_number = next(self._sequence)
        thread.state = ThreadState.RUNNING
        thread.order = (1, sequence_number) if last else (0, -sequence_number)
        self._ready.append(thread)

    def _core_for(self, thread: Thread) -> _Core | None:
        """Return the CPU that a ready thread should get at once; None if it has to wait."""
        if thread.pinned is not None:
            allowed_cores = [self._cores[thread.pinned]]
        else:
            last_core = self._cores[thread.cpu]
            if last_core.thread is None:
                return last_core
            allowed_cores = self._cores
        idle_cores = [core for core in allowed_cores if core.thread is None]
        if idle_cores:
            return idle_cores[self._random.below(len(idle_cores))]
        # A running body is not interrupted; `_step` looks for a better thread once it has yielded.
        lower_cores = [
            core
            for core in allowed_cores
            if core.thread is not None
            and core.thread.priority < thread.priority
            and core.thread is not self.current
        ]
        return min(lower_cores, key=_priority_on, default=None)

    def _place(self, thread: Thread, core: _Core | None = None) -> None:
        """Run a ready thread at once, if a CPU is idle or runs a thread of lower priority."""
        core = core or self._core_for(thread)
        if core is None:
            return
        if core.thread is None:
            self._go_on(core, ThreadState.RUNNING)
        else:
            self._account(core)
            # An interrupted thread with time left in its slice goes before its peers.
            self._give_way(core, core.thread, last=not core.thread.slice_ns)

    def _give_way(self, core: _Core, thread: Thread, *, last: bool = True) -> None:
        """Take a ready thread off its CPU; another CPU may take it at once."""
        self._requeue(thread, last=last)
        self._leave(core, ThreadState.RUNNING)
        if thread in self._ready:
            self._place(thread)

    def _end(self, thread: Thread) -> None:
        """Mark a thread as dead and remove it from all queues."""
        if thread.state == ThreadState.DEAD:
            return
        was_running = thread.state == ThreadState.RUNNING and thread not in self._ready
        if thread in self._ready:
            self._ready.remove(thread)
        if thread.waits_for is not None:
            thread.waits_for.waiting.remove(thread)
            thread.waits_for = None
        thread.token += 1
        thread.body = None
        thread.state = ThreadState.DEAD
        core = self._cores[thread.cpu]
        if was_running and core.thread is thread:
            self._account(core)
            self._leave(core, ThreadState.DEAD)

    def _leave(self, core: _Core, state: ThreadState) -> None:
        """Take a CPU's thread off, in ``state``; the best ready thread comes next."""
        assert core.thread is not None  # noqa: S101
        core.thread.state = state
        self._go_on(core, state)

    def _go_on(self, core: _Core, state: ThreadState) -> None:
        """Continue a CPU with the best thread that is ready for it, or leave it idle."""
        outgoing = core.thread
        incoming = self._best(core)
        core.since = self.now_ns
        core.thread = incoming
        if incoming is not None:
            self._ready.remove(incoming)
            # A new thread that gets its first CPU does not migrate.
            if incoming.cpu_ns > 0 and incoming.cpu != core.number:
                incoming.migrations += 1
            incoming.cpu = core.number
            if not incoming.slice_ns:
                incoming.slice_ns = self._new_slice()
        self._arm(core)
        if incoming is not outgoing:
            self._report_switch(core, outgoing, state)

    def _report_switch(self, core: _Core, outgoing: Thread | None, state: ThreadState) -> None:
        """Wake a CPU or let it sleep, and tell the listeners which thread runs on it now.

        ``state`` is that of the outgoing thread.
        """
        incoming = core.thread
        self.switches += 1
        outgoing_tid, outgoing_priority = _ids(outgoing)
        incoming_tid, incoming_priority = _ids(incoming)
        if outgoing is None:
            core.cpu.leave_cstate()
            state = ThreadState.RUNNING
        # Read before the CPU sleeps, which may stop its counter.
        calls = [(listener, self._ticks(core, tsc=tsc)) for listener, tsc in self._listeners]
        if incoming is None:
            core.cpu.enter_cstate()
        for listener, ticks in calls:
            listener.context_switch(
                cpu=core.number,
                ticks=ticks,
                outgoing_tid=outgoing_tid,
                outgoing_state=int(state),
                incoming_tid=incoming_tid,
                incoming_priority=incoming_priority,
                outgoing_priority=outgoing_priority,
            )

    def _best(self, core: _Core) -> Thread | None:
        """Return the thread that runs next on a CPU, among those that are ready for it."""
        allowed_threads = [thread for thread in self._ready if thread.pinned in {None, core.number}]
        return min(allowed_threads, key=_turn, default=None)

    def _new_slice(self) -> int:
        eighth = self.slice_ns // 8
        return self.slice_ns - eighth + self._random.below(2 * eighth + 1)

    # --- Time ---

    def _account(self, core: _Core) -> None:
        """Subtract the time since the last call from the thread's run and slice."""
        thread = core.thread
        elapsed_ns = self.now_ns - core.since
        core.since = self.now_ns
        if thread is not None and elapsed_ns:
            thread.cpu_ns += elapsed_ns
            # A body that takes time itself may delay a timer.
            thread.left_ns = max(0, thread.left_ns - elapsed_ns)
            thread.slice_ns = max(0, thread.slice_ns - elapsed_ns)

    def _arm(self, core: _Core) -> None:
        """Schedule the continuation of a CPU's thread: at once, or when its run or slice ends."""
        core.token += 1
        thread = core.thread
        if thread is None:
            return
        if not thread.left_ns:
            if core not in self._due:
                self._due.append(core)
            return
        if not thread.slice_ns:
            thread.slice_ns = self._new_slice()
        self._push(self.now_ns + min(thread.left_ns, thread.slice_ns), core, core.token)

    def _start_timer(self, thread: Thread, ns: int) -> None:
        thread.token += 1
        self._push(self.now_ns + ns, thread, thread.token)

    def _push(self, when_ns: int, subject: _Core | Thread, token: int) -> None:
        timer = _Timer(when_ns, self._random.word(), next(self._sequence), subject, token)
        heapq.heappush(self._timers, timer)

    def _next_timer(self) -> _Timer | None:
        """Return the next valid timer without removing it."""
        while self._timers:
            timer = self._timers[0]
            if timer.token == timer.subject.token:
                return timer
            heapq.heappop(self._timers)
        return None

    def _pass(self, until_ns: int) -> None:
        """Let time pass up to ``until``."""
        if until_ns > self.now_ns:
            self.clock.advance(until_ns - self.now_ns)
            self.now_ns = until_ns
            self._shown_ns = self.clock.monotonic_ns()

    def catch_up(self) -> None:
        """Account for time that passed outside the scheduler."""
        shown_ns = self.clock.monotonic_ns()
        if shown_ns != self._shown_ns:
            self.now_ns += max(0, shown_ns - self._shown_ns)
            self._shown_ns = shown_ns

    def _ticks(self, core: _Core, *, tsc: bool) -> int:
        return core.cpu.rdtsc() if tsc else self.clock.ticks()

    # --- Helpers ---

    def _cpu_of_current(self) -> Cpu:
        if self.current is None:
            return self._cores[0].cpu
        return self._cores[self.current.cpu].cpu

    def _check_cpu(self, what: str, cpu: int) -> None:
        if not 0 <= cpu < len(self._cores):
            raise EmulatorError(f"{what}: no CPU {cpu}; there are 0 to {len(self._cores) - 1}")

    def _check_deadlock(self) -> None:
        reasons = []
        for thread in self.threads:
            if thread.background or thread.state == ThreadState.DEAD:
                continue
            if thread.paused:
                reasons.append(f"{thread} is paused")
            else:
                reasons.append(f"{thread} waits for {thread.waits_for!r}")
        if reasons:
            raise DeadlockError(
                f"deadlock at {self.now_ns} ns: {'; '.join(reasons)}; signal their events, "
                "run until a time, or make them background threads"
            )

    def _endless(self, budget: int, started_ns: int) -> EndlessLoopError:
        passed_ns = self.now_ns - started_ns
        running = [str(core.thread) for core in self._cores if core.thread is not None]
        on_cpus = f"; on the CPUs: {', '.join(running)}" if running else ""
        return EndlessLoopError(
            f"no end after {budget} steps in {passed_ns} ns{on_cpus}; let bodies yield Run or "
            "Sleep, run until a time, or give the run a larger budget"
        )


def _priority_on(core: _Core) -> int:
    assert core.thread is not None  # noqa: S101
    return core.thread.priority


def _turn(thread: Thread) -> tuple[int, tuple[int, int]]:
    """Return a sort key of ready threads: that of the highest priority first, then their order."""
    return -thread.priority, thread.order


def _ids(thread: Thread | None) -> tuple[int, int]:
    """Return koid and priority of a CPU's thread, as listeners get them for an idle CPU too."""
    if thread is None:
        return IDLE_KOID, IDLE_PRIORITY
    return thread.koid, thread.priority
