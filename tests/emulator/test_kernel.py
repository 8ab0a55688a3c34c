"""The kernel: threads do what their bodies say, and the scheduler keeps its promises."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fx_emulator.clock import VirtualClock
from fx_emulator.cpu import Processor
from fx_emulator.errors import Crash, EmulatorError
from fx_emulator.faults import ClockJump
from fx_emulator.kernel import (
    IDLE_KOID,
    IDLE_PRIORITY,
    DeadlockError,
    EndlessLoopError,
    Event,
    Exit,
    Kernel,
    Migrate,
    Run,
    Signal,
    Sleep,
    Thread,
    ThreadState,
    Wait,
    Yield,
)
from fxframework.model.schema import THREAD_STATES
from fxframework.model.target import Clock, SchedulerListener, TimestampCounter

from ..cases import cases

MS = 1_000_000


@attrs.define
class Listener:
    """Remembers what it was told, and checks what holds of every switch."""

    heard: list[dict[str, Any]] = attrs.field(factory=list)
    on: dict[int, int] = attrs.field(factory=dict)

    def context_switch(self, **what: Any) -> None:
        self.heard.append({"what": "switch", **what})
        assert what["outgoing_tid"] != what["incoming_tid"]
        assert self.on.get(what["cpu"], IDLE_KOID) == what["outgoing_tid"]
        running = {tid for cpu, tid in self.on.items() if cpu != what["cpu"]} - {IDLE_KOID}
        assert what["incoming_tid"] not in running
        self.on[what["cpu"]] = what["incoming_tid"]

    def wakeup(self, **what: Any) -> None:
        self.heard.append({"what": "wakeup", **what})
        assert what["tid"] not in self.on.values()

    def switches(self) -> list[tuple[int, int, int]]:
        return [
            (each["ticks"], each["outgoing_tid"], each["incoming_tid"])
            for each in self.heard
            if each["what"] == "switch"
        ]


class Machine:
    def __init__(self, cpus: int = 1, **options: Any) -> None:
        self.clock = VirtualClock()
        self.processor = Processor(self.clock, cpus)
        self.kernel = Kernel(self.clock, self.processor, **options)
        self.listener = Listener()
        self.kernel.listen(self.listener)
        self.process = self.kernel.process("app")
        self.said: list[tuple[int, Any]] = []

    def say(self, what: Any) -> None:
        self.said.append((self.clock.monotonic_ns(), what))

    def spawn(self, name: str, *actions: Any, **options: Any) -> Thread:
        """A thread that does these actions, and says its name before each."""

        def body(thread: Thread) -> Iterator[Any]:
            for action in actions:
                assert self.kernel.current is thread
                self.say(name)
                yield action
            self.say(name)

        return self.kernel.spawn(self.process, name, body, **options)  # type: ignore[arg-type]


# --- One thing after the other ------------------------------------------------------------------


def test_the_protocols_are_met() -> None:
    machine = Machine()
    thread = machine.spawn("a")
    assert isinstance(machine.listener, SchedulerListener)
    assert isinstance(thread.counter, TimestampCounter)
    assert isinstance(machine.kernel.counter, TimestampCounter)
    assert isinstance(thread.clock, Clock)
    assert {state.value: state.name.lower() for state in ThreadState} == THREAD_STATES


def test_koids_ascend_from_1024() -> None:
    machine = Machine()
    threads = [machine.spawn("a"), machine.spawn("b")]
    other = machine.kernel.process("other")
    koids = [machine.process.koid, *[thread.koid for thread in threads], other.koid]
    assert koids == [1024, 1025, 1026, 1027]
    assert threads[1].ids == (1024, 1026)
    assert list(machine.kernel.threads) == threads


def test_a_thread_runs_sleeps_and_ends() -> None:
    machine = Machine()
    thread = machine.spawn("a", Run(5 * MS), Sleep(2 * MS), Run(MS))
    machine.kernel.run()
    assert machine.said == [(0, "a"), (5 * MS, "a"), (7 * MS, "a"), (8 * MS, "a")]
    assert thread.state == ThreadState.DEAD
    assert thread.cpu_ns == 6 * MS
    assert machine.clock.monotonic_ns() == machine.kernel.now_ns == 8 * MS
    tid = thread.koid
    blocked, dead = ThreadState.BLOCKED, ThreadState.DEAD
    heard = [(each.pop("what"), each) for each in machine.listener.heard]
    assert [what for what, _ in heard] == [
        "wakeup", "switch", "switch", "wakeup", "switch", "switch",
    ]  # fmt: skip
    assert heard[0][1] == {"cpu": 0, "ticks": 0, "tid": tid, "priority": 16}
    assert heard[1][1] == {
        "cpu": 0,
        "ticks": 0,
        "outgoing_tid": IDLE_KOID,
        "outgoing_state": ThreadState.RUNNING,
        "outgoing_priority": IDLE_PRIORITY,
        "incoming_tid": tid,
        "incoming_priority": 16,
    }
    states = [each["outgoing_state"] for what, each in heard if what == "switch"]
    assert states == [1, blocked, 1, dead]
    assert [type(state) for state in states] == [int] * 4


def test_signals_are_kept_or_taken() -> None:
    machine = Machine()
    stays, once = Event("stays"), Event("once", auto_reset=True)
    got: list[tuple[str, bool]] = []

    def waits(name: str, event: Event, timeout: int | None) -> Iterator[Any]:
        answer = yield Wait(event, timeout)
        got.append((name, answer))

    def spawn(name: str, event: Event, timeout: int | None = None, priority: int = 16) -> None:
        machine.kernel.spawn(
            machine.process,
            name,
            waits(name, event, timeout),  # type: ignore[arg-type]
            priority=priority,
        )

    spawn("a", stays)
    spawn("b", stays)
    spawn("c", once)
    spawn("d", once, 5 * MS)
    spawn("e", once, None, 20)
    machine.kernel.run(MS)
    assert got == []
    machine.kernel.signal(stays)
    machine.kernel.signal(once)
    machine.kernel.run(2 * MS)
    assert sorted(got) == [("a", True), ("b", True), ("e", True)]
    machine.kernel.run(8 * MS)
    assert got[3:] == [("d", False)]
    machine.kernel.signal(once)
    machine.kernel.signal(once)  # nobody waits: the next one finds it
    spawn("f", once)
    spawn("g", stays)
    machine.kernel.run()
    assert sorted(got[4:]) == [("c", True), ("f", True), ("g", True)]
    assert not once.signalled
    stays.clear()
    spawn("h", stays, 1)
    machine.kernel.run()
    assert got[-1] == ("h", False)


def test_threads_of_one_priority_take_turns() -> None:
    machine = Machine(slice_ns=MS)
    threads = [machine.spawn(name, Run(20 * MS)) for name in "abc"]
    machine.kernel.run(30 * MS)
    times = [thread.cpu_ns for thread in threads]
    assert sum(times) == 30 * MS
    assert max(times) - min(times) < 2.5 * MS
    switches = machine.listener.switches()[:-1]
    slices = [after[0] - before[0] for before, after in itertools.pairwise(switches)]
    assert all(0.87 * MS <= each <= 1.13 * MS for each in slices[1:])
    assert len(set(slices)) > 5
    machine.kernel.run()
    assert machine.kernel.now_ns == 60 * MS


def test_the_higher_priority_runs_first() -> None:
    machine = Machine(slice_ns=MS)
    low = machine.spawn("low", Run(10 * MS), priority=1)
    high = machine.spawn("high", Sleep(2 * MS), Run(5 * MS), priority=30)
    machine.kernel.run()
    assert low.cpu_ns == 10 * MS
    assert machine.said == [
        (0, "high"),
        (0, "low"),
        (2 * MS, "high"),
        (7 * MS, "high"),
        (15 * MS, "low"),
    ]
    preempted = [each for each in machine.listener.heard if each.get("incoming_tid") == high.koid]
    assert [each["ticks"] for each in preempted][-1] == 2 * MS
    assert preempted[-1]["outgoing_tid"] == low.koid
    assert preempted[-1]["outgoing_state"] == ThreadState.RUNNING
    assert (preempted[-1]["outgoing_priority"], preempted[-1]["incoming_priority"]) == (1, 30)


def test_a_thread_that_is_interrupted_often_does_not_keep_its_peers_waiting() -> None:
    machine = Machine(slice_ns=10 * MS)
    peers = [machine.spawn(name, Run(60 * MS)) for name in "ab"]
    machine.spawn("tick", *[Sleep(4 * MS), Run(MS)] * 30, priority=31)
    machine.kernel.run(100 * MS)
    assert abs(peers[0].cpu_ns - peers[1].cpu_ns) <= 12 * MS


def test_an_interrupted_thread_goes_on_before_its_peers() -> None:
    machine = Machine(slice_ns=10 * MS)
    first = machine.spawn("a", Run(20 * MS))
    machine.spawn("b", Run(20 * MS))
    tick = machine.spawn("tick", Sleep(4 * MS), Run(MS), priority=31)
    machine.kernel.run(6 * MS)
    later = [switch for switch in machine.listener.switches() if switch[0]]
    assert later == [(4 * MS, first.koid, tick.koid), (5 * MS, tick.koid, first.koid)]


def test_migration_pins() -> None:
    machine = Machine(cpus=3)
    where: list[tuple[int, int]] = []

    def body(thread: Thread) -> Iterator[Any]:
        for cpu in (2, 0, 1, 1):
            yield Migrate(cpu)
            where.append((thread.cpu, thread.counter.read_tscp()[1] & 0xFFF))
            yield Run(MS)
            assert machine.kernel.counter.read_tscp() == thread.counter.read_tscp()
        yield Migrate(None)
        yield Run(MS)

    thread = machine.kernel.spawn(machine.process, "nomad", body)
    machine.spawn("busy", Run(50 * MS), cpu=0)
    machine.kernel.run()
    assert where == [(2, 2), (0, 0), (1, 1), (1, 1)]
    assert thread.pinned is None
    assert thread.migrations >= 2


def test_idle_cpus_take_over() -> None:
    machine = Machine(cpus=4)
    threads = [machine.spawn(name, Run(10 * MS)) for name in "abcd"]
    machine.kernel.run()
    assert machine.kernel.now_ns == 10 * MS
    assert {thread.cpu for thread in threads} == {0, 1, 2, 3}


def test_yield_lets_others_go_first() -> None:
    machine = Machine()
    machine.spawn("a", Yield(), Yield())
    machine.spawn("b", Yield(), Yield())
    machine.spawn("c", Yield(), priority=3)
    machine.kernel.run()
    order = "".join(name for _, name in machine.said)
    assert order == "abababcc"
    assert machine.kernel.now_ns == 0


def test_exit_leaves_the_body() -> None:
    machine = Machine()

    def body(thread: Thread) -> Iterator[Any]:
        try:
            yield Run(5)
            yield Exit()
            pytest.fail("it has ended")
        finally:
            assert machine.kernel.current is thread
            machine.say("closed")

    thread = machine.kernel.spawn(machine.process, "a", body)
    machine.kernel.run()
    assert machine.said == [(5, "closed")]
    assert thread.state == ThreadState.DEAD


def test_the_halted_counter_of_an_idle_cpu() -> None:
    clock = VirtualClock()
    processor = Processor(clock, 1, frequency=1_000_000_000, step=1, nonstop=False)
    kernel = Kernel(clock, processor)
    read: list[int] = []

    def body(thread: Thread) -> Iterator[Any]:
        for action in (Run(100), Sleep(10_000), Run(100)):
            read.append(thread.counter.read_tsc())
            yield action
        read.append(thread.counter.read_tsc())

    kernel.spawn(kernel.process("p"), "a", body)
    kernel.run()
    assert read == [0, 100, 100, 200]


def test_listeners_are_told_the_ticks_they_ask_for() -> None:
    clock = VirtualClock(ticks_per_second=1000)
    processor = Processor(clock, 2, frequency=2_000_000_000, step=1, offsets=(0, 1_000_000))
    kernel = Kernel(clock, processor)
    by_clock, by_tsc = Listener(), Listener()
    kernel.listen(by_clock)
    kernel.listen(by_tsc, ticks="tsc")
    with pytest.raises(EmulatorError, match="'clock' or 'tsc'"):
        kernel.listen(Listener(), ticks="wall")  # type: ignore[arg-type]

    def body(_thread: Thread) -> Iterator[Any]:
        yield Run(5 * MS)

    kernel.spawn(kernel.process("p"), "a", body, cpu=1)
    kernel.run()
    assert [each["ticks"] for each in by_clock.heard] == [0, 0, 5]
    assert [each["ticks"] for each in by_tsc.heard] == [1_000_000, 1_000_000, 11_000_000]


def test_the_whole_system_is_suspended() -> None:
    machine = Machine()
    machine.spawn("a", Sleep(10))
    machine.kernel.run(4)
    machine.kernel.suspend(1000)
    machine.kernel.run()
    assert (machine.clock.monotonic_ns(), machine.clock.boot_ns()) == (10, 1010)


def test_a_jump_of_the_clock_leaves_the_schedule_alone() -> None:
    def switches(*faults: ClockJump) -> list[Any]:
        machine = Machine(cpus=2, slice_ns=MS)
        machine.clock.faults += faults
        for name in "abc":
            machine.spawn(name, Run(4 * MS), Sleep(MS), Run(MS))
        machine.kernel.run()
        heard = [{**each, "ticks": None} for each in machine.listener.heard]
        return [*heard, machine.kernel.now_ns]

    assert switches(ClockJump(3 * MS, -2 * MS), ClockJump(5 * MS, 70 * MS)) == switches()


def test_time_that_a_body_takes_is_its_threads() -> None:
    clock = VirtualClock()
    kernel = Kernel(clock, Processor(clock, 1, read_cost_ns=100))

    def body(thread: Thread) -> Iterator[Any]:
        for _ in range(5):
            thread.counter.read_tsc()
        yield Run(1000)

    thread = kernel.spawn(kernel.process("p"), "a", body)
    kernel.run()
    assert kernel.now_ns == clock.monotonic_ns() == thread.cpu_ns == 1500
    clock.advance(500)
    kernel.run(2500)
    assert clock.monotonic_ns() == 2500


def test_paused_threads_do_nothing() -> None:
    machine = Machine()
    runs = machine.spawn("runs", Run(10), Run(10), Run(10))
    sleeps = machine.spawn("sleeps", Sleep(5), Run(1), priority=20)
    machine.kernel.run(3)
    machine.kernel.pause(runs)
    machine.kernel.pause(sleeps)
    machine.kernel.pause(sleeps)
    assert runs.state == ThreadState.SUSPENDED
    machine.kernel.run(50)
    assert sleeps.state == ThreadState.SUSPENDED
    assert runs.cpu_ns == 3
    with pytest.raises(DeadlockError, match=r"'runs'.*is paused.*'sleeps'.*is paused"):
        machine.kernel.run()
    machine.kernel.resume(sleeps)
    machine.kernel.resume(runs)
    machine.kernel.run()
    assert machine.kernel.now_ns == 50 + 1 + 27
    states = {each["outgoing_state"] for each in machine.listener.heard if "cpu" in each
              and each["what"] == "switch" and each["outgoing_tid"] == runs.koid}  # fmt: skip
    assert states >= {ThreadState.SUSPENDED, ThreadState.DEAD}


def test_a_thread_pauses_itself() -> None:
    machine = Machine(cpus=2)

    def body(thread: Thread) -> Iterator[Any]:
        for action in (Run(5), Yield(), Migrate(1), Sleep(5)):
            machine.kernel.pause(thread)
            yield action
            machine.say(thread.state)

    thread = machine.kernel.spawn(machine.process, "a", body)
    for moment in range(1, 6):
        machine.kernel.run(moment * 100)
        assert thread.state == (ThreadState.SUSPENDED if moment < 5 else ThreadState.DEAD)
        machine.kernel.resume(thread)
    assert [time for time, _ in machine.said] == [105, 200, 300, 400]


# --- What goes wrong ----------------------------------------------------------------------------


def test_a_deadlock_says_who_waits() -> None:
    machine = Machine()
    machine.spawn("stuck", Run(7), Wait(Event("never")))
    machine.spawn("idler", Wait(Event("request")), background=True)
    with pytest.raises(DeadlockError, match=r"at 7 ns: thread 'stuck' of .*Event\('never'\);"):
        machine.kernel.run()
    machine.kernel.run(100)  # with a time it is no matter
    assert machine.clock.monotonic_ns() == 100


def test_threads_in_the_background_may_wait() -> None:
    machine = Machine()
    machine.spawn("idler", Wait(Event("request")), background=True)
    machine.kernel.run()


@cases("action", [Yield(), Run(0), Run(1), Sleep(0), Signal(Event("e"))])
def test_an_endless_loop_says_where(action: Any) -> None:
    machine = Machine()

    def body(_thread: Thread) -> Iterator[Any]:
        while True:
            yield action

    machine.kernel.spawn(machine.process, "spinning", body)
    with pytest.raises(EndlessLoopError, match="500 steps in") as caught:
        machine.kernel.run(budget=500)
    assert isinstance(action, Sleep) or "'spinning'" in str(caught.value)
    if action == Run(1):
        machine.kernel.run(machine.kernel.now_ns + 100)


@cases(
    ("action", "said"),
    [
        (Run(-1), "must not be negative"),
        (Sleep(-5), "must not be negative"),
        (Wait(Event(), -5), "must not be negative"),
        (Migrate(9), "no CPU 9; there are 0 to 0"),
        (None, "yields None"),
        (5, "it yields Run, Sleep, Wait"),
    ],
)
def test_what_a_body_must_not_yield(action: Any, said: str) -> None:
    machine = Machine()
    thread = machine.spawn("wrong", action)
    other = machine.kernel.process("other")
    innocent = machine.kernel.spawn(other, "b", iter_of(Run(5)))
    with pytest.raises(EmulatorError, match=said) as caught:
        machine.kernel.run()
    assert any("thread 'wrong' of process 'app', on CPU 0" in n for n in caught.value.__notes__)
    assert thread.state == ThreadState.DEAD
    machine.kernel.run()
    assert innocent.cpu_ns == 5


def iter_of(*actions: Any) -> Any:
    def body() -> Iterator[Any]:
        yield from actions

    return body()


def test_other_mistakes() -> None:
    machine = Machine()
    with pytest.raises(EmulatorError, match="invalid priority 32: must be 0 to 31"):
        machine.spawn("a", priority=32)
    with pytest.raises(EmulatorError, match="no CPU 1"):
        machine.spawn("a", cpu=1)
    for body in (print, iter([Run(1)])):
        with pytest.raises(EmulatorError, match="is not a generator"):
            machine.kernel.spawn(machine.process, "a", body)  # type: ignore[arg-type]
    with pytest.raises(EmulatorError, match="must be at least 1"):
        Kernel(machine.clock, machine.processor, slice_ns=0)
    machine.kernel.run(10)
    with pytest.raises(EmulatorError, match="it is 10 ns already"):
        machine.kernel.run(9)

    def nested(_thread: Thread) -> Iterator[Any]:
        with pytest.raises(EmulatorError, match="within a run"):
            machine.kernel.run()
        with pytest.raises(EmulatorError, match="cannot kill itself"):
            machine.kernel.kill(machine.process)
        yield Run(1)

    machine.kernel.spawn(machine.process, "nested", nested)
    machine.kernel.run()


def test_a_crash_ends_its_process_alone() -> None:
    machine = Machine(cpus=2)
    closed: list[str] = []

    def crashes(_thread: Thread) -> Iterator[Any]:
        yield Run(10)
        raise Crash("store 3")

    def sibling(_thread: Thread) -> Iterator[Any]:
        try:
            yield Run(1000)
        finally:
            closed.append("sibling")

    machine.kernel.spawn(machine.process, "crashes", crashes)
    machine.kernel.spawn(machine.process, "sibling", sibling)
    machine.spawn("waits", Wait(Event("x")))
    other = machine.kernel.process("other")
    survivor = machine.kernel.spawn(other, "survivor", iter_of(Run(50), Run(50)))
    with pytest.raises(Crash) as caught:
        machine.kernel.run()
    assert "in thread 'crashes' of process 'app', on CPU" in caught.value.__notes__[0]
    assert machine.kernel.now_ns == 10
    assert closed == ["sibling"]
    assert {thread.state for thread in machine.process.threads} == {ThreadState.DEAD}
    assert survivor.state != ThreadState.DEAD
    machine.kernel.run()
    assert survivor.cpu_ns == 100
    assert set(machine.listener.on.values()) == {IDLE_KOID}


def test_threads_go_on_after_a_listener_crashed_once() -> None:
    machine = Machine(cpus=2)
    crashes: list[Crash] = []

    class Crashing(Listener):
        def context_switch(self, **what: Any) -> None:
            super().context_switch(**what)
            if machine.kernel.now_ns and not crashes:
                crashes.append(Crash("the kernel's buffer"))
                raise crashes[0]

    machine.kernel.listen(Crashing())
    threads = [machine.spawn(name, Run(10), Sleep(10), Run(10)) for name in "abc"]
    with pytest.raises(Crash):
        machine.kernel.run()
    machine.kernel.run()
    assert [thread.cpu_ns for thread in threads] == [20, 20, 20]


# --- Properties ---------------------------------------------------------------------------------

actions = st.one_of(
    st.builds(Run, st.integers(0, 3000)),
    st.builds(Sleep, st.integers(0, 2000)),
    st.just(Yield()),
    st.builds(Migrate, st.sampled_from([None, 0, 1])),
    st.sampled_from(["signal", "wait", "pause"]),
)
plans = st.lists(
    st.tuples(st.integers(0, 4), st.lists(actions, max_size=12)), min_size=1, max_size=6
)


def scheduled(plan: list[tuple[int, list[Any]]], seed: int, cpus: int = 2) -> list[Any]:
    """What is heard of a plan: per thread its priority, and what it does."""
    machine = Machine(cpus=cpus, seed=seed, slice_ns=500)
    kernel, event = machine.kernel, Event("shared", auto_reset=True)
    threads: list[Thread] = []
    expected = 0

    def body(thread: Thread, steps: list[Any]) -> Iterator[Any]:
        for step in steps:
            assert kernel.current is thread
            assert machine.listener.on[thread.cpu] == thread.koid
            assert thread.pinned in {None, thread.cpu}
            if step == "signal":
                yield Signal(event)
            elif step == "wait":
                yield Wait(event, 700)
            elif step == "pause" and thread is not threads[0]:
                kernel.pause(threads[0])
                yield Run(1)
                kernel.resume(threads[0])
            else:
                yield Run(1) if step == "pause" else step
            check()

    def check() -> None:
        """No ready thread waits for a CPU that is idle, or that runs one of lower priority."""
        on = {cpu: tid for cpu, tid in machine.listener.on.items() if tid}
        by_koid = {thread.koid: thread for thread in threads}
        for thread in threads:
            if thread.state != ThreadState.RUNNING or thread.koid in on.values():
                continue
            for cpu in range(cpus) if thread.pinned is None else [thread.pinned]:
                running = by_koid.get(on.get(cpu, 0))
                assert running is not None
                assert running.priority >= thread.priority or running is kernel.current

    for number, (priority, steps) in enumerate(plan):

        def make(thread: Thread, steps: list[Any] = steps) -> Any:
            return body(thread, steps)

        threads.append(kernel.spawn(machine.process, f"t{number}", make, priority=priority))
        expected += sum(step.ns for step in steps if isinstance(step, Run))
        expected += steps.count("pause")
    kernel.run(1_000_000)
    assert all(thread.state == ThreadState.DEAD for thread in threads)
    assert sum(thread.cpu_ns for thread in threads) == expected
    ticks = [each["ticks"] for each in machine.listener.heard]
    assert ticks == sorted(ticks)
    return machine.listener.heard


@given(plans, st.integers(0, 2**64))
def test_the_scheduler_keeps_its_promises(plan: list[tuple[int, list[Any]]], seed: int) -> None:
    assert scheduled(plan, seed) == scheduled(plan, seed)


BUSY = [(1, [Run(3000), Sleep(100), Run(3000)])] * 5


def test_another_seed_is_another_schedule() -> None:
    schedules = [scheduled(BUSY, seed) for seed in range(5)]
    assert all(schedules[0] != other for other in schedules[1:])


def test_the_schedule_is_the_same_in_other_processes() -> None:
    code = (
        "import tests.emulator.test_kernel as m;"
        "import hashlib; print(hashlib.sha256(repr(m.scheduled(m.BUSY, 7)).encode()).hexdigest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={
                "PYTHONPATH": ":".join([*sys.path, str(Path(__file__).parents[2])]),
                "PYTHONHASHSEED": seed,
            },
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1
