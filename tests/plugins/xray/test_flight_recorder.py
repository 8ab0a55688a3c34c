"""The flight recorder writes what the notes say, sound at every store, and refuses the rest."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fx_xray.plugin
from fx_xray.format import CallArgument, Function
from fx_xray.read.decoder import RecordDecoder
from fx_xray.rules import RULES
from fx_xray.write.flight_recorder import FdrThread, FdrWriter, log_of, slot_bytes
from fxframework.errors import WriteRefusedError
from fxframework.host import Host
from fxframework.io.memory import BytesMemory
from fxframework.io.sink import Sink
from fxframework.model.diagnostics import Diagnostics
from fxframework.testing.crashtest import RecordedMemory, crashtest

from ...cases import cases
from .recorded import WRAPS, Block, Counter, Model, blocks_of

VERSIONS = range(1, 6)
every_version = pytest.mark.parametrize("version", VERSIONS)


def recorder(**options: Any) -> tuple[Counter, FdrWriter, FdrThread]:
    """A counter of 1 GHz, a writer that keeps all, and its thread 7."""
    counter = Counter()
    writer = FdrWriter(counter, **{"threshold_us": 0, "clock": lambda: 5_000_007_999, **options})
    return counter, writer, writer.thread(7)


def block(writer: FdrWriter) -> Block:
    (found,) = blocks_of(writer.log())
    return found


def functions(writer: FdrWriter) -> list[tuple[Any, ...]]:
    return [
        item for each in blocks_of(writer.log()) for item in each.items if item[0] != "metadata"
    ]


def refused(code: str, call: Callable[[], object]) -> str:
    with pytest.raises(WriteRefusedError) as caught:
        call()
    assert caught.value.code == code
    return str(caught.value)


# --- What stands in a file -----------------------------------------------------------------------


@every_version
def test_a_file_begins_with_a_header_and_a_buffer_with_its_preamble(version: int) -> None:
    counter, writer, thread = recorder(version=version, process=42, buffer_size=1024)
    counter.constant = False
    counter.frequency = 0x1122334455
    writer = FdrWriter(counter, version=version, process=42, clock=lambda: 5_000_007_999)
    thread = writer.thread(7)
    thread.enter(1)
    file = writer.log()
    assert file[:2] == version.to_bytes(2, "little")
    assert file[2:4] == b"\x01\x00"
    assert file[4:8] == b"\x02\0\0\0"  # nonstop alone
    assert int.from_bytes(file[8:16], "little") == 0x1122334455
    assert int.from_bytes(file[16:24], "little") == 16384
    found = block(writer)
    assert (found.thread, found.process) == (7, 42 if version >= 3 else 0)
    assert found.wall == (5, 7)
    preamble = ["new_buffer", "wall", "pid", "new_cpu", "enter"]
    if version < 3:
        preamble.remove("pid")
    assert found.raw == preamble + ["end"] * (version == 1)
    assert len(file) == (32 + 16384 if version == 1 else 48 + 16 * (len(preamble) - 1) + 8)


def test_a_writer_that_recorded_nothing_is_a_header() -> None:
    _, writer, _ = recorder()
    assert len(writer.log()) == 32
    sink = Sink.memory()
    writer.write(sink)
    assert sink.getvalue() == writer.log()


@every_version
def test_calls_have_their_times(version: int) -> None:
    counter, writer, thread = recorder(version=version)
    with thread.call(1) as recorded:
        assert recorded
        counter.tsc += 10
        with thread.call(2, 5, 2**64 - 1):
            counter.tsc += 20
        thread.enter(2**28 - 1)
        counter.tsc += 3
        thread.tail_exit(2**28 - 1)
    with_arguments = "enter_arg" if version >= 4 else "enter"
    assert functions(writer) == [
        ("enter", 1, 1000, 0),
        (with_arguments, 2, 1010, 0, 5, 2**64 - 1),
        ("exit", 2, 1030, 0),
        ("enter", 2**28 - 1, 1030, 0),
        ("tail_exit", 2**28 - 1, 1033, 0),
        ("exit", 1, 1033, 0),
    ]


@every_version
def test_events_have_their_payloads(version: int) -> None:
    counter, writer, thread = recorder(version=version)
    thread.enter(1)
    counter.tsc += 5
    thread.custom_event(b"\xff\0abc")
    counter.tsc += 5
    if version >= 3:
        thread.typed_event(65535, bytearray(b"x"))
    counter.tsc += 5
    thread.exit(1)
    cpu = 0 if version >= 5 else None
    typed = [("typed", b"x", 1010, cpu, 65535)] if version >= 3 else []
    assert functions(writer) == [
        ("enter", 1, 1000, 0),
        ("custom", b"\xff\0abc", 1005, cpu),
        *typed,
        ("exit", 1, 1015, 0),
    ]


def test_a_custom_event_of_version_4_has_its_cpu() -> None:
    counter, writer, thread = recorder(version=4)
    thread.enter(1)
    counter.cpu = 3
    thread.custom_event(b"12345678")
    file = writer.log()
    at = file.index(b"12345678") - 16
    assert file[at] == 0x0B
    assert int.from_bytes(file[at + 13 : at + 15], "little") == 3
    assert "new_cpu" not in block(writer).raw[-2:]


@every_version
def test_a_migration_is_told_with_the_cpu_without_its_node(version: int) -> None:
    counter, writer, thread = recorder(version=version)
    thread.enter(1)
    counter.cpu, counter.node, counter.tsc = 0xFFF, 5, 500  # that CPU's counter is behind
    thread.exit(1)
    found = block(writer)
    assert found.raw[-3 - (version == 1) :][:3] == ["enter", "new_cpu", "exit"]
    assert found.items[-1] == ("exit", 1, 500, 0xFFF)


@every_version
def test_the_counter_wraps_by_the_rule_of_the_version(version: int) -> None:
    counter, writer, thread = recorder(version=version)
    for distance in (WRAPS[version], WRAPS[version] + 1, -1):
        thread.enter(1)
        counter.tsc += distance
        thread.exit(1)
    wraps = [each for each in block(writer).raw if each in ("enter", "exit", "wrap")]
    assert wraps == ["enter", "exit", "enter", "wrap", "exit", "enter", "wrap", "exit"]
    times = [item[2] for item in functions(writer)]
    assert [after - before for before, after in pairwise(times)][::2] == [
        WRAPS[version],
        WRAPS[version] + 1,
        -1,
    ]


@every_version
def test_an_event_may_be_on_another_cpu_or_far_away(version: int) -> None:
    counter, writer, thread = recorder(version=version)
    thread.enter(1)
    counter.tsc += 2**33
    thread.custom_event(b"far")
    counter.cpu = 2
    thread.custom_event(b"elsewhere")
    wanted = ["wrap", "custom", "new_cpu", "custom"] if version >= 5 else ["custom", "custom"]
    assert [each for each in block(writer).raw if each != "end"][-len(wanted) - 1 :] == [
        "enter",
        *wanted,
    ]


def test_threads_have_their_own_buffers_processes_and_counters() -> None:
    counter, writer, first = recorder(process=1)
    second = writer.thread(8, process=2, counter=Counter(tsc=9, cpu=4))
    assert writer.thread(7) is first
    assert writer.thread(8) is not second
    second.enter(5)
    first.enter(6, counter=Counter(tsc=77, cpu=9))
    assert [(each.process, each.thread, each.items[-1]) for each in blocks_of(writer.log())] == [
        (2, 8, ("enter", 5, 9, 4)),
        (1, 7, ("enter", 6, 77, 9)),
    ]
    assert counter.tsc == 1000


def test_without_a_counter_this_machines_clock_is_one() -> None:
    writer = FdrWriter(threshold_us=0)
    with writer.thread(1).call(1):
        pass
    (_, first), (_, second) = [(item[0], item[2]) for item in functions(writer)]
    assert 0 < first <= second
    assert int.from_bytes(writer.log()[8:16], "little") == 10**9
    assert block(writer).wall[0] == pytest.approx(first / 10**9, abs=60)


# --- Buffers -------------------------------------------------------------------------------------


@every_version
def test_a_full_buffer_is_followed_by_another(version: int) -> None:
    counter, writer, thread = recorder(version=version, buffer_size=256)
    for number in range(100):
        thread.enter(number)
        counter.tsc += 1
        thread.exit(number)
    found = blocks_of(writer.log())
    assert len(found) > 5
    assert all(each.raw[0] == "new_buffer" for each in found)
    assert [item[1] for item in functions(writer)] == [n // 2 for n in range(200)]
    for each in found[:-1]:
        used = sum(8 if name in ("enter", "exit") else 16 for name in each.raw)
        assert 256 - 24 * (1 + (version == 1)) < used <= 256


def test_the_oldest_released_buffer_is_used_again() -> None:
    _, writer, thread = recorder(buffer_size=128, buffers=3)
    for number in range(100):
        thread.enter(number)
        thread.exit(number)
    kept = [item[1] for item in functions(writer)]
    assert len(blocks_of(writer.log())) == 3
    assert kept == [n // 2 for n in range(200)][-len(kept) :]
    assert 2 * 6 < len(kept) <= 3 * 6
    assert writer.dropped == 0


def test_buffers_stand_in_the_order_in_which_they_were_taken() -> None:
    _, writer, first = recorder(buffer_size=128, buffers=3)
    second = writer.thread(8)
    first.enter(1)
    second.enter(2)
    first.finish()
    second.finish()
    first.enter(3)
    second.enter(4)  # in the slot that held 1
    assert [item[1] for item in functions(writer)] == [2, 3, 4]


def test_without_a_free_buffer_calls_are_dropped_and_counted() -> None:
    _, writer, first = recorder(buffer_size=128, buffers=1)
    second = writer.thread(8)
    assert first.enter(1)
    assert not second.enter(2)
    assert not second.custom_event(b"x")
    assert not second.typed_event(1, b"x")
    assert not second.enter(3, 5)
    assert writer.dropped == 4
    first.exit(1)
    first.finish()
    # Exits of entries that were dropped would end other calls.
    assert not second.exit(3)
    assert second.enter(4)
    assert not second.exit(2)
    assert writer.dropped == 6
    assert functions(writer) == [("enter", 4, 1000, 0)]
    diagnostics = Diagnostics(RULES)
    writer.report(diagnostics)
    assert diagnostics.counts == {"FXX0510": 6}


def test_without_check_exits_are_recorded_whatever_was_dropped() -> None:
    _, writer, first = recorder(buffer_size=128, buffers=1, check=False)
    second = writer.thread(8)
    first.enter(1)
    assert not second.enter(2)
    first.finish()
    assert second.exit(2)
    assert second.exit(9)
    assert [item[:2] for item in functions(writer)] == [("exit", 2), ("exit", 9)]


def test_a_recorder_that_is_not_circular_keeps_what_came_first() -> None:
    _, writer, thread = recorder(buffer_size=128, buffers=2, circular=False)
    taken = []
    for number in range(50):
        taken += [thread.enter(number), thread.exit(number)]
    count = taken.index(False)
    assert not any(taken[count:])
    assert writer.dropped == 100 - count
    assert [item[1] for item in functions(writer)] == [n // 2 for n in range(count)]


def test_nothing_is_recorded_behind_the_end() -> None:
    _, writer, thread = recorder()
    thread.enter(1)
    writer.finish()
    file = writer.log()
    assert not thread.exit(1)
    assert writer.log() == file
    assert writer.dropped == 1


def test_threads_of_python_may_record_at_once() -> None:
    writer = FdrWriter(threshold_us=0, buffer_size=512, buffers=400)

    def work(tid: int) -> None:
        thread = writer.thread(tid)
        for number in range(500):
            with thread.call(number):
                pass
        thread.finish()

    threads = [threading.Thread(target=work, args=(tid,)) for tid in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    found = blocks_of(writer.log())
    for tid in range(4):
        items = [item for each in found if each.thread == tid for item in each.items]
        assert [item[1] for item in items if item[0] == "enter"] == list(range(500))


# --- Short calls ---------------------------------------------------------------------------------


def run(thread: FdrThread, counter: Counter, *script: str) -> None:
    """Do what texts say: ``+1``, ``-1``, ``>1`` enter, exit, tail exit, ``9`` lets ticks pass."""
    for step in script:
        match step[0]:
            case "+":
                thread.enter(int(step[1:]))
            case "-":
                thread.exit(int(step[1:]))
            case ">":
                thread.tail_exit(int(step[1:]))
            case "@":
                counter.cpu = int(step[1:])
            case _:
                counter.tsc += int(step)


@cases(
    ("script", "left"),
    [
        ("+1 4999 -1", ""),
        ("+1 5000 -1", "enter1 exit1"),
        # Nested short calls go one by one.
        ("+1 1 +2 1 +3 1 -3 1 -2 1 -1", ""),
        ("+1 9999 +2 1 -2 1 -1", "enter1 exit1"),
        # What holds a call that is kept is kept.
        ("+1 1 +2 9999 -2 1 -1", "enter1 enter2 exit2 exit1"),
        # A tail exit takes its own entry, and nothing else.
        ("+1 1 +2 1 >2 1 +3 9999 -3 1 -1", "enter1 enter3 exit3 exit1"),
        ("+1 1 +2 9999 >2 1 +3 1 -3 1 -1", "enter1 enter2 tail_exit2 exit1"),
        # A migration in a call keeps it, whatever follows (where compiler-rt cuts the NewCPUId).
        ("+1 9999 +2 1 @1 >2 1 +3 1 -3 1 -1", "enter1 enter2 tail_exit2 exit1"),
        ("+1 1 @1 -1", "enter1 exit1"),
        ("+1 1 @1 +2 1 -2 1 -1", "enter1 exit1"),
        # Another function's exit is no reason to forget an entry.
        ("+1 +2 1 -1", "enter1 enter2 exit1"),
    ],
)
def test_short_calls_are_not_kept(script: str, left: str) -> None:
    counter, writer, thread = recorder(threshold_us=5)
    run(thread, counter, "+9", "9999", *script.split())
    counter.tsc += 9999
    thread.enter(8, 1)
    items = [f"{item[0]}{item[1]}" for item in functions(writer)]
    assert items == ["enter9", *left.split(), "enter_arg8"]
    # Whatever was taken back, the time of what follows is right.
    assert functions(writer)[-1][2] == counter.tsc


@cases("pin", ["argument", "custom", "typed"])
def test_what_must_be_kept_keeps_the_calls_around_it(pin: str) -> None:
    _, writer, thread = recorder(threshold_us=1000)
    thread.enter(1)
    if pin == "argument":
        thread.enter(2, 7)
        thread.exit(2)
    elif pin == "custom":
        thread.custom_event(b"x")
    else:
        thread.typed_event(1, b"x")
    thread.exit(1)
    items = functions(writer)
    assert items[0][:2] == ("enter", 1)
    assert items[-1][:2] == ("exit", 1)
    assert len(items) == (4 if pin == "argument" else 3)


def test_a_call_that_a_full_buffer_divides_is_kept() -> None:
    _, writer, thread = recorder(threshold_us=1000, buffer_size=128)
    for number in range(7):  # room for 6 behind preamble and NewCPUId
        thread.enter(number)
    for number in reversed(range(7)):
        thread.exit(number)
    names = [item[0] for item in functions(writer)]
    assert names == ["enter"] * 6 + ["exit"] * 6  # the seventh is in one buffer


def test_short_calls_behind_odd_payloads_leave_them_alone() -> None:
    counter, writer, thread = recorder(threshold_us=5)
    thread.enter(1)
    for size in range(1, 10):
        thread.custom_event(b"\xee" * size)
        thread.enter(2)
        thread.exit(2)
        thread.enter(0xFFFFFFF)
        counter.tsc += 9999
        thread.exit(0xFFFFFFF)
    payloads = [item[1] for item in functions(writer) if item[0] == "custom"]
    assert payloads == [b"\xee" * size for size in range(1, 10)]
    assert [item[0] for item in functions(writer)] == ["enter", *["custom", "enter", "exit"] * 9]


# --- What is refused -----------------------------------------------------------------------------


def test_refusals_leave_all_as_it_was() -> None:
    counter, writer, thread = recorder(buffer_size=256)
    thread.enter(1)
    before, image = writer.log(), writer.memory.read(0, writer.memory.size)
    for code, call in (
        ("FXX0504", lambda: thread.enter(2**28)),
        ("FXX0504", lambda: thread.enter(-1)),
        ("FXX0504", lambda: thread.enter(1, 2**64)),
        ("FXX0504", lambda: thread.enter(1, -1)),
        ("FXX0504", lambda: thread.exit(2**28)),
        ("FXX0504", lambda: thread.typed_event(65536, b"x")),
        ("FXX0504", lambda: thread.custom_event(b"")),
        ("FXX0503", lambda: thread.enter("main")),  # type: ignore[arg-type]
        ("FXX0503", lambda: thread.exit(1.5)),  # type: ignore[arg-type]
        ("FXX0503", lambda: thread.custom_event("text")),  # type: ignore[arg-type]
        ("FXX0503", lambda: thread.enter(1, None)),  # type: ignore[arg-type]
        ("FXX0509", lambda: thread.exit(2)),
        ("FXX0509", lambda: thread.tail_exit(2)),
        ("FXX0507", lambda: thread.custom_event(bytes(177))),
        ("FXX0507", lambda: thread.enter(1, *range(12))),
    ):
        refused(code, call)
    assert writer.log() == before
    assert writer.memory.read(0, writer.memory.size) == image
    assert writer.dropped == 0
    counter.tsc += 5
    assert thread.exit(1)
    assert functions(writer) == [("enter", 1, 1000, 0), ("exit", 1, 1005, 0)]


@every_version
def test_the_largest_event_fits_and_one_byte_more_does_not(version: int) -> None:
    _, writer, thread = recorder(version=version, buffer_size=512)
    largest = next(
        size
        for size in range(512, 0, -1)
        if not _refuses(lambda size=size: thread.custom_event(bytes(size)))  # type: ignore[misc]
    )
    metadata = 5 if version >= 3 else 4
    assert largest == 512 - 16 * metadata - 40 * (version == 1)
    assert [item[1] for item in functions(writer)] == [bytes(largest)]


def _refuses(call: Callable[[], object]) -> bool:
    try:
        call()
    except WriteRefusedError as error:
        if error.code != "FXX0507":
            raise
        return True
    return False


@cases("version", [1, 2])
def test_old_versions_have_no_typed_events(version: int) -> None:
    _, _, thread = recorder(version=version)
    refused("FXX0506", lambda: thread.typed_event(1, b"x"))


def test_writers_that_cannot_be() -> None:
    refused("FXX0504", lambda: FdrWriter(Counter(), version=6))
    refused("FXX0504", lambda: FdrWriter(Counter(), version=0))
    refused("FXX0508", lambda: FdrWriter(Counter(), buffer_size=127))
    refused("FXX0508", lambda: FdrWriter(Counter(), buffers=0))
    refused("FXX0508", lambda: FdrWriter(Counter(), memory=BytesMemory(64)))
    refused("FXX0508", lambda: FdrWriter(Counter(), memory=BytesMemory(16400), buffers=2))
    refused("FXX0504", lambda: FdrWriter(Counter()).thread(2**31))
    refused("FXX0504", lambda: FdrWriter(Counter(), process=2**31))


def test_a_memory_has_as_many_buffers_as_fit() -> None:
    memory = BytesMemory(4096)
    writer = FdrWriter(Counter(), memory=memory, buffer_size=1000)
    assert writer.buffers == 4096 // slot_bytes(1000) == 4
    thread = writer.thread(1)
    thread.enter(3)
    assert log_of(memory.read(0, 4096), buffer_size=1000, cycle_frequency=10**9) == writer.log()


def test_what_another_recorder_left_in_the_memory_goes() -> None:
    memory = BytesMemory(4 * slot_bytes(256))
    _, _, thread = recorder(memory=memory, buffer_size=256)
    for number in range(40):
        thread.enter(number)
    _, writer, thread = recorder(memory=memory, buffer_size=256)
    assert len(writer.log()) == 32
    thread.enter(99)
    assert [item[1] for item in functions(writer)] == [99]


# --- Any calls, any buffers, any crash -----------------------------------------------------------

TICKS = st.sampled_from([0, 1, 40, 100, 4000, 2**31 - 1, 2**31, 2**32 - 1, 2**32, -1, -(2**20)])
SIZES = st.integers(1, 30)
ACTIONS = st.one_of(
    st.tuples(st.just("enter"), st.integers(1, 3)),
    st.tuples(st.just("enter"), st.integers(1, 3), st.integers(0, 2**64 - 1)),
    st.tuples(st.just("enter"), st.integers(1, 3), st.just(1), st.just(2**63)),
    st.tuples(st.just("exit")),
    st.tuples(st.just("exit")),
    st.tuples(st.just("tail_exit")),
    st.tuples(st.just("unwind")),
    st.tuples(st.just("custom"), SIZES),
    st.tuples(st.just("typed"), SIZES, st.integers(0, 65535)),
)
SCRIPT = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2), TICKS, ACTIONS), max_size=60)
"""Thread, CPU, ticks that pass, action."""


def play(script: list[Any], writer: FdrWriter, counter: Counter, models: list[Model]) -> None:
    """Let two threads do what a script says, and the models too, where it was not dropped."""
    threads = [writer.thread(model.thread) for model in models]
    open_calls: list[list[int]] = [[], []]
    for who, cpu, ticks, (name, *values) in script:
        thread, model, calls = threads[who], models[who], open_calls[who]
        counter.cpu = cpu
        counter.tsc = max(0, counter.tsc + ticks)
        when = counter.tsc, counter.cpu
        if name == "enter":
            calls.append(values[0])
            if thread.enter(*values):
                model.enter(values[0], tuple(values[1:]), *when)
            else:
                calls[-1] = 0
        elif name in ("exit", "tail_exit", "unwind"):
            if name == "unwind" and calls:
                calls.pop()  # an exception went through the call
            if not calls or not calls[-1]:
                continue
            function = calls.pop()
            kind = "exit" if name == "unwind" else name
            if getattr(thread, kind)(function):
                model.leave(kind, function, *when)
        else:
            data = bytes([len(calls)]) * values[0]
            if name == "custom":
                if thread.custom_event(data):
                    model.event("custom", data, *when)
            elif writer.version >= 3 and thread.typed_event(values[1], data):
                model.event("typed", data, *when, values[1])


def setting(version: int, buffer_size: int, threshold: int, **options: Any) -> tuple[Any, ...]:
    counter = Counter(tsc=2**40)
    writer = FdrWriter(
        counter,
        version=version,
        buffer_size=buffer_size,
        threshold_us=threshold,
        clock=lambda: 0,
        **options,
    )
    models = [Model(version, buffer_size, 1000 * threshold, thread) for thread in (7, 8)]
    return counter, writer, models


@given(
    script=SCRIPT,
    version=st.sampled_from(VERSIONS),
    buffer_size=st.sampled_from([136, 141, 200, 4096]),
    threshold=st.sampled_from([0, 1, 4]),
)
def test_any_calls_are_as_the_model_has_them(
    script: list[Any], version: int, buffer_size: int, threshold: int
) -> None:
    counter, writer, models = setting(version, buffer_size, threshold, buffers=200)
    play(script, writer, counter, models)
    assert writer.dropped == 0
    found = blocks_of(writer.log())
    for model in models:
        mine = [each.items for each in found if each.thread == model.thread]
        assert mine == model.buffers


@given(
    script=SCRIPT,
    version=st.sampled_from(VERSIONS),
    buffers=st.integers(1, 4),
    circular=st.booleans(),
)
def test_with_few_buffers_the_newest_or_the_oldest_are_kept(
    script: list[Any], version: int, buffers: int, circular: bool
) -> None:
    counter, writer, models = setting(version, 144, 0, buffers=buffers, circular=circular)
    play(script, writer, counter, models)
    found = blocks_of(writer.log())
    assert len(found) <= buffers
    for model in models:
        mine = [each.items for each in found if each.thread == model.thread]
        if circular and mine:
            assert mine == model.buffers[-len(mine) :]
        elif not circular:
            assert mine == model.buffers


class Noting:
    """A writer that notes behind each call of its threads what its log holds then."""

    def __init__(self, writer: FdrWriter, memory: RecordedMemory) -> None:
        self.writer = writer
        self.memory = memory
        self.version = writer.version
        self.states: list[Any] = [[]]

    def thread(self, tid: int) -> Any:
        return NotingThread(self, self.writer.thread(tid))

    def note(self, done: bool) -> bool:
        state = held(self.writer.log())
        self.states.append(state)
        self.memory.note(len(self.states) - 1)
        return done


@given(
    script=SCRIPT,
    version=st.sampled_from(VERSIONS),
    buffer_size=st.sampled_from([136, 141, 4096]),
    threshold=st.sampled_from([0, 4]),
)
def test_what_is_recorded_is_read_without_a_finding(
    script: list[Any], version: int, buffer_size: int, threshold: int
) -> None:
    counter, writer, models = setting(version, buffer_size, threshold, buffers=200)
    play(script, writer, counter, models)
    found = read(writer.log())
    process = 1 if version >= 3 else 0
    for model in models:
        of_thread = (model.thread if version == 2 else process, model.thread)
        items = [item for buffer in model.buffers for item in buffer if item[0] != "metadata"]
        assert found.get(of_thread, []) == items


def read(file: bytes) -> dict[tuple[int, int], list[tuple[Any, ...]]]:
    """Calls and events of each thread, as our reader has them; it must have nothing to say."""
    diagnostics = Diagnostics(RULES)
    decoder = RecordDecoder("xray", diagnostics=diagnostics)
    found: dict[tuple[int, int], list[tuple[Any, ...]]] = {}
    for record in decoder.records(file):
        if record.record not in {"function", "call_argument", "custom_event", "typed_event"}:
            continue
        items = found.setdefault((record.process, record.thread), [])
        match record:
            case Function():
                items.append((record.kind, record.function_id, record.tsc, record.cpu))
            case CallArgument():
                items[-1] = (*items[-1], record.value)
            case _:
                cpu = record.cpu if hasattr(record, "delta") else None
                types = (record.event_type,) if record.record == "typed_event" else ()
                items.append((record.record.split("_")[0], record.data, record.tsc, cpu, *types))
    # Header alone; padding of version 1 that is not all zero.
    assert not [each for each in diagnostics if each.code not in ("FXX0004", "FXX0113")]
    return found


@pytest.fixture(scope="module")
def host() -> Host:
    """XRay alone."""
    host = Host(discover=False)
    host.register(fx_xray.plugin, name="xray", distribution="fxframework")
    return host


def matched(items: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Calls by their entries: function, entry, ticks (-1 never left), depth, CPU."""
    found: list[tuple[Any, ...]] = []
    stack: list[tuple[int, int]] = []
    """Function and index of each open call."""
    for name, function, tsc, *more in items:
        if name in ("enter", "enter_arg"):
            cpu = more[0]
            found.append((function, tsc, -1, len(stack), cpu))
            stack.append((function, len(found) - 1))
        elif name in ("exit", "tail_exit"):
            while stack:
                called, index = stack.pop()
                entered = found[index]
                found[index] = (*entered[:2], tsc - entered[1], *entered[3:])
                if called == function:
                    break
    return found


@given(
    script=st.lists(
        st.tuples(
            st.integers(0, 1),
            st.integers(0, 2),
            st.sampled_from([1, 40, 4000, 2**31 - 1, 2**31, 2**32]),
            ACTIONS,
        ),
        max_size=60,
    ),
    version=st.sampled_from(VERSIONS),
    buffer_size=st.sampled_from([136, 4096]),
    threshold=st.sampled_from([0, 4]),
)
def test_tables_have_the_calls_of_the_model(
    host: Host, script: list[Any], version: int, buffer_size: int, threshold: int
) -> None:
    counter, writer, models = setting(version, buffer_size, threshold, buffers=200)
    play(script, writer, counter, models)
    with host.open(writer.log(), format="xray") as capture:
        slices, threads = capture.table("slices"), capture.table("threads")
        names = ("name", "ticks", "xray_ticks", "depth", "xray_cpu", "thread")
        rows = list(zip(*(slices.plain(name) for name in names), strict=True))
        tids = dict(zip(threads.plain("id"), threads.plain("tid"), strict=True))
    for model in models:
        mine = [(int(row[0]), *row[1:5]) for row in rows if tids[row[5]] == model.thread]
        assert mine == matched([item for buffer in model.buffers for item in buffer])


@attrs.frozen
class NotingThread:
    """A thread of it."""

    noting: Noting
    thread: FdrThread

    def __getattr__(self, name: str) -> Any:
        return lambda *values: self.noting.note(getattr(self.thread, name)(*values))


def held(file: bytes) -> list[Any]:
    return [(each.thread, each.items) for each in blocks_of(file)]


@given(
    script=SCRIPT,
    version=st.sampled_from(VERSIONS),
    threshold=st.sampled_from([0, 4]),
    buffers=st.integers(1, 5),
    circular=st.booleans(),
)
def test_a_crash_behind_any_store_leaves_a_sound_log(
    script: list[Any], version: int, threshold: int, buffers: int, circular: bool
) -> None:
    noting: list[Noting] = []

    def write(memory: RecordedMemory) -> None:
        options: Any = {"memory": memory, "buffers": buffers, "circular": circular}
        counter, writer, models = setting(version, 144, threshold, **options)
        noting.append(Noting(writer, memory))
        play(script, noting[0], counter, models)  # type: ignore[arg-type]

    def check(image: bytes, notes: list[int]) -> None:
        file = log_of(image, version=version, buffer_size=144, cycle_frequency=10**9)
        read(file)
        now = held(file)
        done = notes[-1] if notes else 0
        before, after = [*noting[0].states, None][done : done + 2]
        # A call is there or not. When a buffer is used again, what was in it has gone already.
        gone = [before[:at] + before[at + 1 :] for at in range(len(before))] if circular else []
        assert now in (before, after, *gone)

    report = crashtest(write, check, size=5 * slot_bytes(144))
    assert report.ok, report
