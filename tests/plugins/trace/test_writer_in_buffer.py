"""A writer over a trace buffer: what it took, and was not written over, is what is read."""

from __future__ import annotations

import itertools
from typing import Any

import attrs
from hypothesis import given
from hypothesis import strategies as st

from fx_trace import format as wire
from fx_trace import records as r
from fx_trace.read.buffer import BufferHeader
from fx_trace.read.image import BufferCapture
from fx_trace.write.buffer import TraceBuffer
from fx_trace.write.writer import TraceWriter
from fxframework.errors import Severity, WriteRefusedError
from fxframework.io.memory import BytesMemory
from fxframework.io.source import Source
from fxframework.kit.arguments import Koid, Pointer
from fxframework.model.capture import OpenRequest

SIZES = (4096, 8192, 20480)
MODES = tuple(wire.MODE_NAMES.values())
REGISTERS = {"string", "thread", "initialization"}

texts = st.one_of(
    st.sampled_from(["", "a", "name", "eight by", "more than eight", "caf\xe9"]),
    st.integers(0, 400).map("text {}".format),
    st.integers(1, 5000).map(lambda size: "x" * size),
)
threads = st.tuples(st.integers(1, 3), st.one_of(st.integers(1, 4), st.integers(0, 400)))
values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(1 << 63), (1 << 64) - 1),
    st.floats(allow_nan=False),
    texts,
    st.binary(max_size=20),
    st.builds(Pointer, st.integers(0, 9)),
    st.builds(Koid, st.integers(0, 9)),
)
arguments = st.lists(st.tuples(texts.filter(lambda text: len(text) < 99), values), max_size=3)
CORRELATED = ("async_begin", "async_instant", "async_end", "flow_begin", "flow_step", "flow_end")


class Ticks:
    """A clock by which each moment is another one."""

    ticks_per_second = 1_000_000_000

    def __init__(self) -> None:
        self.now = 0

    def ticks(self) -> int:
        self.now += 1
        return self.now

    monotonic_ns = boot_ns = ticks


@attrs.define
class Entry:
    """A record that was taken."""

    shown: tuple[Any, ...]
    half: int
    """Which rolling half it went to, counted from the first; -1 for a durable one."""


class Run:
    """A writer, its buffer, and what is expected of them."""

    def __init__(self, mode: str, size: int, strings: Any, tasks: Any) -> None:
        self.mode = mode
        self.taken: list[Entry] = []
        self.refused = 0
        """Records that were not taken."""
        self.saved: set[tuple[Any, ...]] = set()
        """Records that the manager saved."""
        self.waiting: list[tuple[int, int]] = []
        self.memory = BytesMemory(size)
        self.buffer = TraceBuffer(self.memory, mode, on_full=self.on_full)
        self.clock = Ticks()
        self.writer = TraceWriter(self.buffer, clock=self.clock, strings=strings, threads=tasks)

    def __repr__(self) -> str:
        strings, tasks = self.writer.strings.policy, self.writer.threads.policy
        return f"Run({self.mode!r}, {self.memory.size}, {strings!r}, {tasks!r})"

    def on_full(self, wrapped: int, durable: int) -> None:
        self.waiting.append((wrapped, durable))

    def save(self) -> None:
        """What the manager does: it reads the half that waits, and says so."""
        if self.waiting:
            self.saved |= set(self.read())
            self.buffer.saved(*self.waiting.pop())

    def took(self, given: bool, *shown: Any, durable: bool = False) -> None:
        """Note the answer to a call that makes one record."""
        assert given in {True, False}
        if given:
            apart = durable and self.mode != "oneshot"
            self.taken.append(Entry(shown, -1 if apart else self.buffer.wrapped_count))
        else:
            self.refused += 1

    def expected(self) -> list[tuple[Any, ...]]:
        """What was taken and not written over, in the order of reading."""
        durable = [entry.shown for entry in self.taken if entry.half < 0]
        last = self.buffer.wrapped_count
        return durable + [e.shown for e in self.taken if e.half >= 0 and e.half >= last - 1]

    def read(self) -> list[tuple[Any, ...]]:
        """The image's records, but for those that only register something."""
        image = self.memory.read(0, self.memory.size)
        found = []
        with BufferCapture(Source.open(image), OpenRequest()) as capture:
            for record in capture.records():
                if isinstance(record, BufferHeader) or record.record in REGISTERS | {"padding"}:
                    continue
                if isinstance(record, r.Damaged):
                    assert record.code == "FXT0505"  # stale bytes behind the records
                    continue
                found.append(shown(record))
            capture.scan()
            worst = capture.diagnostics.worst
            assert worst is None or worst < Severity.DATA_LOSS, capture.diagnostics
        return found

    def check(self) -> None:
        assert self.read() == self.expected()
        assert self.buffer.dropped == self.refused


def shown(record: Any) -> tuple[Any, ...]:
    """A record as what it means."""
    if isinstance(record, r.Event):
        word = next(
            (
                value
                for name in ("counter_id", "end_timestamp", "id", "correlation_id")
                if (value := getattr(record, name, None)) is not None
            ),
            None,
        )
        return (
            record.event, record.timestamp, record.thread, record.category, record.name, word,
            typed(record.args),
        )  # fmt: skip
    out = []
    for name in (
        "timestamp", "cpu", "outgoing_tid", "incoming_tid", "waking_tid", "thread", "pointer",
        "koid", "process", "category", "name", "message", "payload",
    ):  # fmt: skip
        value = getattr(record, name, None)
        if value is not None:
            out.append(bytes(value) if name == "payload" else value)
    return (record.record, *out, typed(getattr(record, "args", ())))


def typed(args: Any) -> tuple[tuple[str, str], ...]:
    return tuple((each.name, repr(each.value)) for each in args)


def plain(args: list[tuple[str, Any]]) -> tuple[tuple[str, str], ...]:
    """Arguments that were given, as they are read."""
    out = []
    for name, value in args:
        bare = value.value if isinstance(value, Pointer | Koid) else value
        out.append((name, repr(bare)))
    return tuple(out)


def step(run: Run, hand: st.DataObject) -> None:
    """One call of the writer, of whatever kind."""
    writer, clock = run.writer, run.clock
    kind = hand.draw(
        st.sampled_from(
            ["instant"] * 3 + ["correlated"] * 2
            + ["complete", "slice", "counter", "switch", "wakeup", "log", "blob", "large",
               "object", "pointer", "string", "mistake", "save"]
        ),
        label="call",
    )  # fmt: skip
    if kind == "save":
        run.save()
        return
    if kind == "string":
        # Of a text of its own: what stood there before would be read as it.
        index = 20_000 + clock.ticks()
        before = run.buffer.dropped
        writer.register_string(index, hand.draw(texts))
        run.refused += run.buffer.dropped - before
        return
    category, name, thread = hand.draw(texts), hand.draw(texts), hand.draw(threads)
    args = hand.draw(arguments)
    if kind == "mistake":
        many = [(f"m{number}", number) for number in range(16)]
        before = writer.strings.index.copy()
        try:
            writer.instant(category, name, many, thread=thread)
        except WriteRefusedError as error:
            assert error.code == "FXT0406"  # noqa: PT017 (so many arguments are always refused)
        else:
            raise AssertionError
        assert writer.strings.index == before
        return
    tail = (thread, category, name)
    if kind == "instant":
        given = writer.instant(category, name, args, thread=thread)
        run.took(given, "instant", clock.now, *tail, None, plain(args))
    elif kind == "correlated":
        which = hand.draw(st.sampled_from(CORRELATED))
        given = getattr(writer, which)(category, name, 7, args, thread=thread)
        run.took(given, which, clock.now, *tail, 7, plain(args))
    elif kind == "complete":
        now = clock.ticks()
        given = writer.duration_complete(category, name, now, now + 5, args, thread=thread)
        run.took(given, "duration_complete", now, *tail, now + 5, plain(args))
    elif kind == "slice":
        before = run.buffer.dropped
        with writer.slice(category, name, args, thread=thread):
            begun = run.buffer.dropped == before
            run.took(begun, "duration_begin", clock.now, *tail, None, plain(args))
        if begun:
            run.took(run.buffer.dropped == before, "duration_end", clock.now, *tail, None, ())
    elif kind == "counter":
        given = writer.counter(category, name, args, id=3, thread=thread)
        run.took(given, "counter", clock.now, *tail, 3, plain(args))
    elif kind == "switch":
        given = writer.context_switch(cpu=1, outgoing_tid=2, incoming_tid=3, args=args)
        run.took(given, "scheduling", clock.now, 1, 2, 3, plain(args))
    elif kind == "wakeup":
        given = writer.wakeup(cpu=1, tid=2, args=args)
        run.took(given, "scheduling", clock.now, 1, 2, plain(args))
    elif kind == "log":
        given = writer.log(name, thread=thread)
        run.took(given, "log", clock.now, thread, name, ())
    elif kind == "blob":
        payload = hand.draw(st.binary(max_size=60))
        run.took(writer.blob(name, payload), "blob", name, payload, ())
    elif kind == "large":
        payload = hand.draw(st.sampled_from([b"", b"some", bytes(3000), bytes(40_000)]))
        given = writer.large_blob(category, name, payload, args, thread=thread)
        run.took(given, "large", clock.now, thread, category, name, payload, plain(args))
    elif kind == "object":
        given = writer.kernel_object(1, 99, name, args)
        run.took(given, "kernel_object", 99, name, plain(args), durable=True)
    else:
        given = writer.userspace_object(5, 0xAB, name, args)
        run.took(given, "userspace_object", 0xAB, 5, name, plain(args), durable=True)


@st.composite
def begun(draw: Any) -> Run:
    mode = draw(st.sampled_from(MODES))
    policy = st.sampled_from(["allocate", "inline"] + ["reuse"] * (mode == "oneshot"))
    return Run(mode, draw(st.sampled_from(SIZES)), draw(policy), draw(policy))


@given(begun(), st.data())
def test_what_was_taken_is_what_is_read(run: Run, hand: st.DataObject) -> None:
    steps = hand.draw(st.sampled_from([5, 20, 60]))
    for number in range(steps):
        step(run, hand)
        if number % 7 == 0:
            run.check()
    run.check()
    run.buffer.stop()
    run.check()
    header = run.buffer.header
    assert header.check(run.memory.size) == []
    assert header.num_records_dropped == run.refused
    before = run.expected()
    assert not run.writer.instant("c", "too late", thread=(1, 1))
    assert run.read() == before
    if run.mode == "streaming":
        whole = run.saved | set(run.read())
        assert {entry.shown for entry in run.taken} <= whole


@given(st.sampled_from(MODES), st.integers(1, 400), st.booleans())
def test_a_table_that_is_full_makes_later_texts_inline(mode: str, count: int, saves: bool) -> None:
    """Each text and thread is another one, until the durable buffer has no room for more."""
    run = Run(mode, 4096, "allocate", "allocate")
    for number in itertools.islice(itertools.count(1), count):
        who = (1, number)
        given = run.writer.instant(f"c{number}", f"n{number}", thread=who)
        run.took(given, "instant", run.clock.now, who, f"c{number}", f"n{number}", None, ())
        if saves:
            run.save()
    run.check()
    run.buffer.stop()
    run.check()
