"""The recorder of basic mode writes what the notes say, and refuses the rest."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fx_xray.rules import RULES
from fx_xray.write.basic_recorder import BasicThread, BasicWriter
from fxframework.errors import WriteRefusedError
from fxframework.io.sink import Sink
from fxframework.model.diagnostics import Diagnostics

from ...cases import cases
from .recorded import Counter

KINDS = ("enter", "exit", "tail_exit", "enter_arg")


def recorder(**options: Any) -> tuple[Counter, BasicWriter, BasicThread]:
    """A counter of 1 GHz, a writer that keeps all, and its thread 7."""
    counter = Counter()
    writer = BasicWriter(counter, **{"threshold_us": 0, **options})
    return counter, writer, writer.thread(7)


def records(writer: BasicWriter) -> list[tuple[Any, ...]]:
    """Kind, function, time, CPU, thread, process of records; arguments stand behind their call."""
    file = writer.log()
    assert not len(file) % 32
    found: list[tuple[Any, ...]] = []
    for at in range(32, len(file), 32):
        kind, cpu, action, function = struct.unpack_from("<HBBi", file, at)
        if kind:
            assert kind == 1
            assert not any(file[at + 24 : at + 32])
            thread, process, value = struct.unpack_from("<IIQ", file, at + 8)
            assert (function, thread, process) == (found[-1][1], *found[-1][4:6])
            found[-1] = (*found[-1], value)
        else:
            tsc, thread, process = struct.unpack_from("<QII", file, at + 8)
            found.append((KINDS[action], function, tsc, cpu, thread, process))
    return found


def refused(code: str, call: Callable[[], object]) -> None:
    with pytest.raises(WriteRefusedError) as caught:
        call()
    assert caught.value.code == code


@cases("version", [1, 2, 3])
def test_records_have_all_that_is_known(version: int) -> None:
    counter, writer, thread = recorder(version=version, process=42)
    counter.node = 3
    thread.enter(1)
    counter.tsc, counter.cpu = 1010, 255
    with thread.call(2**31 - 1, 5, 2**64 - 1):
        counter.tsc = 9  # on this CPU's counter
    thread.exit(1)
    process = 42 if version == 3 else 0
    assert records(writer) == [
        ("enter", 1, 1000, 0, 7, process),
        ("enter_arg", 2**31 - 1, 1010, 255, 7, process, 5, 2**64 - 1),
        ("exit", 2**31 - 1, 9, 255, 7, process),
        ("exit", 1, 9, 255, 7, process),
    ]
    assert writer.log()[:32] == struct.pack("<HHIQQQ", version, 0, 3, 10**9, 0, 0)


def test_the_header_says_what_the_counter_is() -> None:
    writer = BasicWriter(Counter(frequency=5, constant=False))
    sink = Sink.memory()
    writer.write(sink)
    assert sink.getvalue() == struct.pack("<HHIQQQ", 3, 0, 2, 5, 0, 0)


def test_tail_exits_are_there_from_version_2_on() -> None:
    _, writer, thread = recorder(version=2)
    thread.enter(1)
    thread.tail_exit(1)
    assert [each[0] for each in records(writer)] == ["enter", "tail_exit"]
    _, writer, thread = recorder(version=1)
    thread.enter(1)
    refused("FXX0506", lambda: thread.tail_exit(1))
    assert thread.exit(1)


@cases(
    ("script", "left"),
    [
        ("+1 4999 -1", ""),
        ("+1 5000 -1", "enter1 exit1"),
        ("+1 +2 +3 -3 -2 -1", ""),
        ("+1 9999 +2 -2 -1", "enter1 exit1"),
        ("+1 +2 9999 -2 -1", "enter1 enter2 exit2 exit1"),
        ("+1 +2 >2 +3 9999 -3 -1", "enter1 enter3 exit3 exit1"),
        ("+1 @1 -1", "enter1 exit1"),
        ("+1 +2 -1", "enter1 enter2 exit1"),
        ("+1 -100 -1", "enter1 exit1"),
    ],
)
def test_short_calls_are_not_kept(script: str, left: str) -> None:
    counter, writer, thread = recorder(threshold_us=5)
    thread.enter(9, 1)
    for step in script.split():
        match step[0], int(step[1:] or step):
            case "+", function:
                thread.enter(function)
            case "-", function if function < 9:
                thread.exit(function)
            case ">", function:
                thread.tail_exit(function)
            case "@", cpu:
                counter.cpu = cpu
            case _:
                counter.tsc += int(step)
    assert [f"{each[0]}{each[1]}" for each in records(writer)] == ["enter_arg9", *left.split()]


def test_records_of_a_thread_stay_together_until_there_are_1024() -> None:
    _, writer, first = recorder()
    second = writer.thread(8, process=2)
    for number in range(600):
        for thread in (first, second):
            thread.enter(number)
            thread.exit(number)
    threads = [each[4] for each in records(writer)]
    assert threads == [7] * 1024 + [8] * 1024 + [7] * 176 + [8] * 176
    before = writer.log()
    writer.finish()
    assert writer.log() == before
    for tid in (7, 8):
        mine = [each[1] for each in records(writer) if each[4] == tid]
        assert mine == [number // 2 for number in range(1200)]


def test_an_entry_that_is_in_the_file_is_kept() -> None:
    _, writer, thread = recorder(threshold_us=5)
    for _ in range(1023):
        thread.enter(1)
    thread.enter(2)
    thread.exit(2)
    assert [each[:2] for each in records(writer)][-2:] == [("enter", 2), ("exit", 2)]


def test_calls_nested_too_deep_are_dropped_with_their_exits() -> None:
    _, writer, thread = recorder(depth=2)
    taken = [thread.enter(1), thread.enter(1), thread.enter(1), thread.exit(1), thread.exit(1)]
    assert taken == [True, True, False, False, True]
    assert [each[0] for each in records(writer)] == ["enter", "enter", "exit"]
    diagnostics = Diagnostics(RULES)
    writer.report(diagnostics)
    assert diagnostics.counts == {"FXX0510": 2}


def test_refusals_leave_all_as_it_was() -> None:
    counter, writer, thread = recorder()
    thread.enter(1)
    before = writer.log()
    for code, call in (
        ("FXX0504", lambda: thread.enter(2**31)),
        ("FXX0504", lambda: thread.enter(-1)),
        ("FXX0504", lambda: thread.enter(1, 2**64)),
        ("FXX0503", lambda: thread.enter("main")),  # type: ignore[arg-type]
        ("FXX0506", lambda: thread.custom_event(b"x")),
        ("FXX0506", lambda: thread.typed_event(1, b"x")),
        ("FXX0509", lambda: thread.exit(2)),
    ):
        refused(code, call)
    counter.cpu = 256
    refused("FXX0504", lambda: thread.exit(1))
    counter.cpu = 0
    assert writer.log() == before
    assert thread.exit(1)
    refused("FXX0504", lambda: BasicWriter(Counter(), version=4))
    refused("FXX0504", lambda: writer.thread(2**32))


def test_without_check_exits_are_recorded_whatever_was_entered() -> None:
    _, writer, thread = recorder(check=False, depth=1)
    assert thread.exit(3)
    assert thread.enter(1)
    assert not thread.enter(2)
    assert not thread.exit(2)
    assert thread.exit(1)
    assert [each[1] for each in records(writer)] == [3, 1, 1]


@attrs.define
class Model:
    """What a thread should have recorded."""

    threshold: int
    items: list[tuple[Any, ...]] = attrs.field(factory=list)

    def leave(self, name: str, function: int, tsc: int, cpu: int) -> None:
        if self.items:
            kind, entered, since, where = self.items[-1][:4]
            short = 0 <= tsc - since < self.threshold
            if (kind, entered, where) == ("enter", function, cpu) and short:
                self.items.pop()
                return
        self.items.append((name, function, tsc, cpu))


@given(
    script=st.lists(
        st.tuples(
            st.integers(0, 1),
            st.integers(0, 2),
            st.sampled_from([0, 1, 900, 1100, -5]),
            st.sampled_from(["enter", "enter", "enter_arg", "exit", "exit", "tail_exit"]),
            st.integers(1, 3),
        ),
        max_size=60,
    ),
    version=st.integers(2, 3),
    threshold=st.integers(0, 3),
)
def test_any_calls_are_as_the_model_has_them(
    script: list[Any], version: int, threshold: int
) -> None:
    counter, writer, _ = recorder(version=version, threshold_us=threshold)
    models = [Model(1000 * threshold), Model(1000 * threshold)]
    calls: list[list[int]] = [[], []]
    for who, counter.cpu, ticks, name, function in script:
        counter.tsc += ticks
        thread, model = writer.thread(who), models[who]
        where = counter.tsc, counter.cpu
        if name in ("enter", "enter_arg"):
            arguments = (5, 6) if name == "enter_arg" else ()
            thread.enter(function, *arguments)
            calls[who].append(function)
            model.items.append((name, function, *where, *arguments))
        elif calls[who]:
            left = calls[who].pop()
            getattr(thread, name)(left)
            model.leave(name, left, *where)
    for who, model in enumerate(models):
        mine = [(*each[:4], *each[6:]) for each in records(writer) if each[4] == who]
        assert mine == model.items
