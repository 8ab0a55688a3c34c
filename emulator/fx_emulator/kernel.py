"""The kernel: processes, threads, and a scheduler that does the same again for the same seed.

A thread's body is a generator. What it yields is what the thread does next (``Run``, ``Sleep``,
``Wait``, ``Signal``, ``Yield``, ``Migrate``, ``Exit``); what it does between two yields, such as
calling a writer, happens at one moment of virtual time, on the CPU that the thread is on. Nothing
else runs meanwhile, so that a crash falls between two stores of one thread only.
"""

from __future__ import annotations

import contextlib
import enum
import heapq
import itertools
from collections.abc import Callable, Generator, Iterator
from typing import Any, Literal, Protocol

import attrs

from fx_emulator.clock import VirtualClock
from fx_emulator.cpu import Cpu, Processor, Tsc
from fx_emulator.errors import EmulatorError
from fx_emulator.vmo import FIRST_KOID

__all__ = [
    "DeadlockError",
    "EndlessLoopError",
    "Event",
    "Exit",
    "Kernel",
    "Migrate",
    "Process",
    "Random",
    "Run",
    "Signal",
    "Sleep",
    "Thread",
    "ThreadState",
    "Wait",
    "Yield",
]

DEFAULT_PRIORITY = 16
PRIORITIES = 32
IDLE_KOID = 0
"""What listeners get instead of a thread when a CPU is idle."""
IDLE_PRIORITY = -(1 << 31)
"""Its priority, as the kernel writes it (docs/formats/trace.md)."""
SLICE_NS = 10_000_000
BUDGET = 1_000_000

_MASK = (1 << 64) - 1


class DeadlockError(EmulatorError):
    """Threads wait for what nobody is left to signal."""


class EndlessLoopError(EmulatorError):
    """A run took more steps than its budget."""


# --- What is chosen ----------------------------------------------------------------------------


class Random:
    """Numbers that follow from a seed (SplitMix64), the same on every machine and version."""

    def __init__(self, seed: int) -> None:
        self._state = seed & _MASK

    def word(self) -> int:
        """The next 64 bits."""
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        mixed = self._state
        mixed = ((mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9) & _MASK
        mixed = ((mixed ^ mixed >> 27) * 0x94D049BB133111EB) & _MASK
        return mixed ^ mixed >> 31

    def below(self, limit: int) -> int:
        """A number from 0 to ``limit`` - 1."""
        return self.word() * limit >> 64


# --- What a body yields ------------------------------------------------------------------------


@attrs.frozen
class Run:
    """Use so much CPU time. Threads of higher priority, and time slices, may interrupt it."""

    ns: int


@attrs.frozen
class Sleep:
    """Block for so long. Time during which the system is suspended does not count."""

    ns: int


@attrs.frozen
class Wait:
    """Block until an event is signalled; the body is sent True, or False after ``timeout_ns``."""

    event: Event
    timeout_ns: int | None = None


@attrs.frozen
class Signal:
    """Signal an event."""

    event: Event


@attrs.frozen
class Yield:
    """Let other ready threads of the same priority go first."""


@attrs.frozen
class Migrate:
    """Go to a CPU and stay on it, however busy it is; ``None`` allows every CPU again."""

    cpu: int | None


@attrs.frozen
class Exit:
    """End, as a body that returns does."""


Action = Run | Sleep | Wait | Signal | Yield | Migrate | Exit
Body = Generator[Action, Any, object]


# --- Objects -----------------------------------------------------------------------------------


class ThreadState(enum.IntEnum):
    """States as in ``zx_info_thread_t`` and in context switch records; ready is RUNNING."""

    NEW = 0
    RUNNING = 1
    SUSPENDED = 2
    BLOCKED = 3
    DYING = 4
    DEAD = 5


class Event:
    """Something that threads wait for.

    Signalled, it stays so until ``clear``, and lets every waiting thread go; with ``auto_reset``
    it lets one go (the one of the highest priority that waits longest), or the next that comes.
    """

    def __init__(self, name: str = "", *, auto_reset: bool = False) -> None:
        self.name = name
        self.auto_reset = auto_reset
        self.signalled = False
        self.waiting: list[Thread] = []
        """Threads that wait for it, those that came first first."""

    def clear(self) -> None:
        """Take the signal back."""
        self.signalled = False

    def __repr__(self) -> str:
        return f"Event({self.name!r})"


@attrs.define(eq=False)
class Process:
    """A process: a koid, a name, and its threads in the order of their making."""

    koid: int
    name: str
    threads: list[Thread] = attrs.field(factory=list, repr=False)

    @property
    def alive(self) -> bool:
        """Whether one of its threads is not dead."""
        return any(thread.state != ThreadState.DEAD for thread in self.threads)


@attrs.define(eq=False)
class Thread:
    """A thread, as its kernel keeps it; read it, and let the kernel change it."""

    koid: int
    process: Process
    name: str
    priority: int = DEFAULT_PRIORITY
    state: ThreadState = ThreadState.NEW
    cpu: int = 0
    """The CPU that it runs on, or ran on last."""
    pinned: int | None = None
    """The only CPU that it may run on."""
    background: bool = False
    """Whether a run may end while it waits."""
    cpu_ns: int = 0
    """CPU time used so far."""
    migrations: int = 0
    """How often it went on on another CPU than before."""
    counter: Tsc = attrs.field(kw_only=True, repr=False)
    """The time-stamp counter of the CPU that it is on (``model.target.TimestampCounter``)."""
    clock: VirtualClock = attrs.field(kw_only=True, repr=False)
    """The system's clock (``model.target.Clock``)."""

    body: Body | None = attrs.field(default=None, repr=False)
    answer: object = attrs.field(default=None, repr=False)
    """What the body is sent next."""
    left_ns: int = attrs.field(default=0, repr=False)
    """Nanoseconds of its ``Run`` that are left."""
    slice_ns: int = attrs.field(default=0, repr=False)
    """Nanoseconds of its time slice that are left."""
    order: tuple[int, int] = attrs.field(default=(0, 0), repr=False)
    """Its place among ready threads of its priority."""
    token: int = attrs.field(default=0, repr=False)
    """Changes with each timer, so that one that is no longer meant does nothing."""
    waits_for: Event | None = attrs.field(default=None, repr=False)
    paused: bool = attrs.field(default=False, repr=False)

    @property
    def ids(self) -> tuple[int, int]:
        """Koids of process and thread: the ``thread`` of a trace writer's calls."""
        return self.process.koid, self.koid

    def __str__(self) -> str:
        return f"thread {self.name!r} of process {self.process.name!r}"


class Listener(Protocol):
    """Hears of the scheduler (``fxframework.model.target.SchedulerListener``)."""

    def context_switch(
        self,
        *,
        cpu: int,
        ticks: int,
        outgoing_tid: int,
        outgoing_state: int,
        incoming_tid: int,
        incoming_priority: int,
        outgoing_priority: int,
    ) -> object:
        """A CPU went from one thread to another."""

    def wakeup(self, *, cpu: int, ticks: int, tid: int, priority: int) -> object:
        """A thread became ready to run."""


class _Core:
    """What the scheduler knows of a CPU."""

    __slots__ = ("cpu", "number", "since", "thread", "token")

    def __init__(self, number: int, cpu: Cpu) -> None:
        self.number = number
        self.cpu = cpu
        self.thread: Thread | None = None
        self.since = 0
        """Up to when its thread's time is accounted for."""
        self.token = 0


# --- The kernel --------------------------------------------------------------------------------


class Kernel:
    """Processes and threads on the CPUs of a processor, at the virtual time of a clock.

    A ready thread never waits for a CPU on which one of lower priority runs. Threads of one
    priority take turns, each for a slice of about ``slice_ns``. Which of two things of one moment
    comes first, which of several idle CPUs a thread goes to, and by how much (up to an eighth) a
    slice differs from ``slice_ns`` follow from ``seed`` alone.

    The scheduler's time (``now_ns``) begins with the clock's monotonic time, and is what passed
    since: a jump among the clock's ``faults`` leaves the schedule alone. Time that a body lets pass
    by itself, reading a counter that takes time for instance, is time of its thread.
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
            raise EmulatorError(f"a time slice of {slice_ns} ns; it takes 1 ns at least")
        self.clock = clock
        self.processor = processor
        self.koids = itertools.count(FIRST_KOID) if koids is None else koids
        self.slice_ns = slice_ns
        self.processes: list[Process] = []
        self.current: Thread | None = None
        """The thread whose body runs at this moment; None between bodies."""
        self.now_ns = clock.monotonic_ns()
        self._shown_ns = self.now_ns
        """What the clock showed when ``now_ns`` was brought up to date."""
        self.switches = 0
        """Context switches so far."""
        self.counter = Tsc(self._cpu_of_current)
        """The counter of the CPU that the current thread is on; of CPU 0 where there is none."""
        self.discarding: Callable[[], contextlib.AbstractContextManager[object]] = (
            contextlib.nullcontext
        )
        """Entered while bodies of killed threads are closed, which runs their ``finally``."""
        self._random = Random(seed)
        self._cores = [_Core(number, cpu) for number, cpu in enumerate(processor.cpus)]
        self._listeners: list[tuple[Listener, bool]] = []
        self._ready: list[Thread] = []
        self._timers: list[tuple[int, int, int, _Core | Thread, int]] = []
        self._sequence = itertools.count()
        self._due: list[_Core] = []
        """CPUs whose thread's body is to go on."""
        self._running = False
        for core in self._cores:
            core.cpu.enter_cstate()

    # --- Objects ---

    @property
    def threads(self) -> Iterator[Thread]:
        """All threads ever made, process after process."""
        return (thread for process in self.processes for thread in process.threads)

    def process(self, name: str) -> Process:
        """Make a process."""
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
        """Make a thread and let it start at this moment.

        ``body`` is a generator, or is called with the thread to give one. ``cpu`` pins it, as
        ``Migrate`` does; a ``background`` thread may wait for ever. Raises EmulatorError for a
        priority or CPU that there is not, and for a body that is not a generator.
        """
        if not 0 <= priority < PRIORITIES:
            raise EmulatorError(
                f"thread {name!r}: priority {priority}; there are 0 to {PRIORITIES - 1}"
            )
        if cpu is not None:
            self._check_cpu(f"thread {name!r}", cpu)
        thread: Thread
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
        made = body(thread) if callable(body) else body
        if not isinstance(made, Generator):
            raise EmulatorError(f"thread {name!r}: its body is {made!r}; it is to be a generator")
        thread.body = made
        thread.cpu = self._random.below(len(self._cores)) if cpu is None else cpu
        process.threads.append(thread)
        self._wake(thread)
        return thread

    def listen(self, listener: Listener, ticks: Literal["clock", "tsc"] = "clock") -> None:
        """Tell a listener of every switch and wakeup from now on.

        Its ``ticks`` are the clock's, or those of the counter of the CPU on which it happens.
        """
        if ticks not in {"clock", "tsc"}:
            raise EmulatorError(f"ticks are those of 'clock' or 'tsc', not of {ticks!r}")
        self._listeners.append((listener, ticks == "tsc"))

    def unlisten(self, listener: Listener) -> None:
        """Tell a listener no more."""
        self._listeners = [each for each in self._listeners if each[0] is not listener]

    # --- What happens to everything, or from outside ---

    def run(self, until_ns: int | None = None, *, budget: int = BUDGET) -> None:
        """Let virtual time pass, up to ``until_ns``, or until no thread has anything to do.

        Raises DeadlockError where, without ``until_ns``, threads wait that nobody will signal
        (those in the background do not count), EndlessLoopError after ``budget`` steps of bodies
        and ends of slices. An exception of a body, such as a ``Crash``, ends its process and is
        raised; the others can be run on.
        """
        if self._running:
            raise EmulatorError("run() within a run; a body yields what it wants to do")
        self._catch_up()
        if until_ns is not None and until_ns < self.now_ns:
            raise EmulatorError(f"run until {until_ns} ns, but it is {self.now_ns} ns already")
        self._running = True
        started = self.now_ns
        try:
            # A listener that raised may have left a CPU without the thread that is ready for it.
            for core in self._cores:
                if core.thread is None and self._best(core) is not None:
                    self._go_on(core, ThreadState.RUNNING)
                elif core.thread is not None and not core.thread.left_ns:
                    self._arm(core)
            for step in itertools.count():
                if step == budget:
                    raise self._endless(budget, started)
                if self._due:
                    self._step(self._due.pop(0))
                    continue
                self._catch_up()
                timer = self._next_timer()
                if timer is None or (until_ns is not None and timer[0] > until_ns):
                    break
                heapq.heappop(self._timers)
                self._pass(timer[0])
                self._fire(timer[3])
        finally:
            self._running = False
        if until_ns is None:
            self._check_deadlock()
            return
        self._pass(until_ns)
        for core in self._cores:
            self._account(core)

    def suspend(self, ns: int) -> None:
        """Suspend the whole system: boot time goes on, monotonic time and all threads do not."""
        self.clock.suspend(ns)

    def signal(self, event: Event) -> None:
        """Signal an event, from outside or from a body."""
        waiting = sorted(event.waiting, key=lambda thread: -thread.priority)
        if not waiting or not event.auto_reset:
            event.signalled = True
        for thread in waiting[: 1 if event.auto_reset else None]:
            thread.answer = True
            self._wake(thread)

    def pause(self, thread: Thread) -> None:
        """Suspend one thread: it does nothing until ``resume``."""
        if thread.state == ThreadState.DEAD or thread.paused:
            return
        thread.paused = True
        if thread is not self.current:
            self._halt(thread)

    def resume(self, thread: Thread) -> None:
        """Let a paused thread go on."""
        thread.paused = False
        if thread.state == ThreadState.SUSPENDED:
            self._wake(thread)

    def kill(self, process: Process) -> None:
        """End a process: its threads do nothing more, whatever they were at."""
        if self.current is not None and self.current.process is process:
            raise EmulatorError(f"process {process.name!r} kills itself; it should yield Exit()")
        bodies = [thread.body for thread in process.threads if thread.body is not None]
        with self.discarding():
            for body in bodies:
                # What its `finally` raises is no more heard than what it stores is kept.
                with contextlib.suppress(Exception):
                    body.close()
        with contextlib.ExitStack() as all_of_them:
            # Every thread ends, whatever a listener raises at the end of another.
            for thread in reversed(process.threads):
                all_of_them.callback(self._end, thread)

    # --- Steps ---

    def _step(self, core: _Core) -> None:
        """Let the body of a CPU's thread go on, and do what it yields."""
        thread = core.thread
        # It may have been preempted, or ended, since it became due.
        if thread is None or thread.left_ns or thread.body is None:
            return
        answer, thread.answer = thread.answer, None
        self.current = thread
        try:
            action = thread.body.send(answer)
            self._check_action(thread, action)
            if isinstance(action, Exit):
                # Its `finally` belongs to what it does at this moment.
                thread.body.close()
        except StopIteration:
            action = Exit()
        except BaseException as error:
            self.current = None
            self._fail(thread, error)
            raise
        self.current = None
        self._catch_up()
        self._account(core)
        self._do(core, thread, action)
        if thread.paused:
            # By its own body: what it yielded is done first.
            self._halt(thread)
        elif core.thread is thread:
            # What it did may have readied a thread of higher priority, for this CPU too.
            best = self._best(core)
            if best is not None and best.priority > thread.priority:
                self._give_way(core, thread, last=not thread.slice_ns)
            else:
                self._arm(core)

    def _check_action(self, thread: Thread, action: Action) -> None:
        match action:
            case Run(ns) | Sleep(ns) | Wait(_, int(ns)):
                if ns < 0:
                    raise EmulatorError(f"{thread} yields {action!r}; time goes forward only")
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
                thread.answer = False  # unless a signal comes before the time is up
                if timeout_ns is not None:
                    self._start_timer(thread, timeout_ns)
                self._leave(core, ThreadState.BLOCKED)
            case Signal(event):
                self.signal(event)
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
        """End the process of a thread whose body raised."""
        error.add_note(f"in {thread}, on CPU {thread.cpu}, at {self.now_ns} ns")
        thread.body = None
        # A listener that raises too, of the same cause maybe, does not hide it.
        with contextlib.suppress(EmulatorError):
            self.kill(thread.process)

    def _halt(self, thread: Thread) -> None:
        """A thread that was paused does nothing more; where it is blocked, it stays so first."""
        if thread in self._ready:
            self._ready.remove(thread)
            thread.state = ThreadState.SUSPENDED
        elif thread.state == ThreadState.RUNNING:
            core = self._cores[thread.cpu]
            self._account(core)
            self._leave(core, ThreadState.SUSPENDED)

    def _fire(self, subject: _Core | Thread) -> None:
        """A thread's time to wake, or the end of a CPU's run or slice, has come."""
        if isinstance(subject, Thread):
            self._wake(subject)
            return
        self._account(subject)
        thread = subject.thread
        assert thread is not None  # noqa: S101 (a CPU that is idle has no timer)
        if not thread.slice_ns:
            best = self._best(subject)
            if best is not None and best.priority >= thread.priority:
                self._give_way(subject, thread)
                return
        self._arm(subject)

    # --- Threads and CPUs ---

    def _wake(self, thread: Thread) -> None:
        """A thread can run again, or for the first time."""
        self._catch_up()
        thread.token += 1
        if thread.waits_for is not None:
            thread.waits_for.waiting.remove(thread)
            thread.waits_for = None
        if thread.paused:
            thread.state = ThreadState.SUSPENDED
            return
        self._requeue(thread, last=True)
        core = self._core_for(thread)
        cpu = core or self._cores[thread.cpu if thread.pinned is None else thread.pinned]
        for listener, tsc in self._listeners:
            listener.wakeup(
                cpu=cpu.number,
                ticks=self._ticks(cpu, tsc=tsc),
                tid=thread.koid,
                priority=thread.priority,
            )
        self._place(thread, core)

    def _requeue(self, thread: Thread, *, last: bool) -> None:
        """Among the ready threads of its priority, a thread is the last, or comes first."""
        number = next(self._sequence)
        thread.state = ThreadState.RUNNING
        thread.order = (1, number) if last else (0, -number)
        self._ready.append(thread)

    def _core_for(self, thread: Thread) -> _Core | None:
        """The CPU that a ready thread should have at once; None where it has to wait."""
        if thread.pinned is not None:
            allowed = [self._cores[thread.pinned]]
        else:
            last = self._cores[thread.cpu]
            if last.thread is None:
                return last
            allowed = self._cores
        idle = [core for core in allowed if core.thread is None]
        if idle:
            return idle[self._random.below(len(idle))]
        # A body that runs at this moment is not interrupted; `_step` looks once it has yielded.
        lower = [
            core
            for core in allowed
            if core.thread is not None
            and core.thread.priority < thread.priority
            and core.thread is not self.current
        ]
        return min(lower, key=_priority_on, default=None)

    def _place(self, thread: Thread, core: _Core | None = None) -> None:
        """Let a ready thread run at once, if a CPU is idle or runs one of lower priority."""
        core = core or self._core_for(thread)
        if core is None:
            return
        if core.thread is None:
            self._go_on(core, ThreadState.RUNNING)
        else:
            self._account(core)
            # It was interrupted: with what is left of its slice it goes before its peers.
            self._give_way(core, core.thread, last=not core.thread.slice_ns)

    def _give_way(self, core: _Core, thread: Thread, *, last: bool = True) -> None:
        """A CPU's thread gives it up, but is ready; another CPU may be the one for it now."""
        self._requeue(thread, last=last)
        self._leave(core, ThreadState.RUNNING)
        if thread in self._ready:
            self._place(thread)

    def _end(self, thread: Thread) -> None:
        """A thread is no more."""
        if thread.state == ThreadState.DEAD:
            return
        running = thread.state == ThreadState.RUNNING and thread not in self._ready
        if thread in self._ready:
            self._ready.remove(thread)
        if thread.waits_for is not None:
            thread.waits_for.waiting.remove(thread)
            thread.waits_for = None
        thread.token += 1
        thread.body = None
        thread.state = ThreadState.DEAD
        core = self._cores[thread.cpu]
        if running and core.thread is thread:
            self._account(core)
            self._leave(core, ThreadState.DEAD)

    def _leave(self, core: _Core, state: ThreadState) -> None:
        """A CPU's thread gives it up, in some state; the best one that is ready comes next."""
        assert core.thread is not None  # noqa: S101
        core.thread.state = state
        self._go_on(core, state)

    def _go_on(self, core: _Core, state: ThreadState) -> None:
        """A CPU goes on with the best thread that is ready for it, or is idle."""
        outgoing, incoming = core.thread, self._best(core)
        core.since = self.now_ns
        core.thread = incoming
        if incoming is not None:
            self._ready.remove(incoming)
            incoming.migrations += incoming.cpu_ns > 0 and incoming.cpu != core.number
            incoming.cpu = core.number
            if not incoming.slice_ns:
                incoming.slice_ns = self._new_slice()
        self._arm(core)
        if incoming is outgoing:
            return
        self.switches += 1
        if outgoing is None:
            core.cpu.leave_cstate()
        heard = [(listener, self._ticks(core, tsc=tsc)) for listener, tsc in self._listeners]
        if incoming is None:
            core.cpu.enter_cstate()
        for listener, ticks in heard:
            listener.context_switch(
                cpu=core.number,
                ticks=ticks,
                outgoing_tid=IDLE_KOID if outgoing is None else outgoing.koid,
                outgoing_state=int(ThreadState.RUNNING if outgoing is None else state),
                incoming_tid=IDLE_KOID if incoming is None else incoming.koid,
                incoming_priority=IDLE_PRIORITY if incoming is None else incoming.priority,
                outgoing_priority=IDLE_PRIORITY if outgoing is None else outgoing.priority,
            )

    def _best(self, core: _Core) -> Thread | None:
        """Of the threads that are ready for a CPU, the one whose turn it is."""
        best = None
        for thread in self._ready:
            if thread.pinned in {None, core.number} and (
                best is None or (-thread.priority, thread.order) < (-best.priority, best.order)
            ):
                best = thread
        return best

    def _new_slice(self) -> int:
        eighth = self.slice_ns // 8
        return self.slice_ns - eighth + self._random.below(2 * eighth + 1)

    # --- Time ---

    def _account(self, core: _Core) -> None:
        """Take the time since the last look from the thread's run and slice."""
        thread, elapsed = core.thread, self.now_ns - core.since
        core.since = self.now_ns
        if thread is not None and elapsed:
            thread.cpu_ns += elapsed
            # A body that took time itself may have kept a timer from its moment.
            thread.left_ns = max(0, thread.left_ns - elapsed)
            thread.slice_ns = max(0, thread.slice_ns - elapsed)

    def _arm(self, core: _Core) -> None:
        """See to it that a CPU's thread goes on: at once, or when its run or slice ends."""
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

    def _push(self, when: int, subject: _Core | Thread, token: int) -> None:
        entry = (when, self._random.word(), next(self._sequence), subject, token)
        heapq.heappush(self._timers, entry)

    def _next_timer(self) -> tuple[int, int, int, _Core | Thread, int] | None:
        """The next timer that is still meant, left where it is."""
        while self._timers:
            timer = self._timers[0]
            if timer[4] == timer[3].token:
                return timer
            heapq.heappop(self._timers)
        return None

    def _pass(self, until: int) -> None:
        """Let time pass."""
        if until > self.now_ns:
            self.clock.advance(until - self.now_ns)
            self.now_ns = until
            self._shown_ns = self.clock.monotonic_ns()

    def _catch_up(self) -> None:
        """Take in the time that passed without the scheduler."""
        shown = self.clock.monotonic_ns()
        if shown != self._shown_ns:
            self.now_ns += max(0, shown - self._shown_ns)
            self._shown_ns = shown

    def _ticks(self, core: _Core, *, tsc: bool) -> int:
        return core.cpu.rdtsc() if tsc else self.clock.ticks()

    # --- Small things ---

    def _cpu_of_current(self) -> Cpu:
        return self._cores[0 if self.current is None else self.current.cpu].cpu

    def _check_cpu(self, what: str, cpu: int) -> None:
        if not 0 <= cpu < len(self._cores):
            raise EmulatorError(f"{what}: no CPU {cpu}; there are 0 to {len(self._cores) - 1}")

    def _check_deadlock(self) -> None:
        waiting = []
        for thread in self.threads:
            if thread.background or thread.state == ThreadState.DEAD:
                continue
            why = "is paused" if thread.paused else f"waits for {thread.waits_for!r}"
            waiting.append(f"{thread} {why}")
        if waiting:
            raise DeadlockError(
                f"deadlock at {self.now_ns} ns: {'; '.join(waiting)}; signal what they wait for, "
                "run until a time, or let them wait in the background"
            )

    def _endless(self, budget: int, started: int) -> EndlessLoopError:
        passed = self.now_ns - started
        on = [str(core.thread) for core in self._cores if core.thread is not None]
        where = f"; on the CPUs: {', '.join(on)}" if on else ""
        return EndlessLoopError(
            f"{budget} steps within {passed} ns, and no end{where}; let bodies yield Run or Sleep, "
            "run until a time, or give the run a larger budget"
        )


def _priority_on(core: _Core) -> int:
    assert core.thread is not None  # noqa: S101
    return core.thread.priority
