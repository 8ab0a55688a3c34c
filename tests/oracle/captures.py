"""Hypothesis makes captures with every record type, for Perfetto and us to read alike.

What Perfetto reads differently on purpose, or by a bug, is kept out of them as far as comparing
would become guessing; ``divergences.py`` lists it, and a test of its own shows each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
from hypothesis import strategies as st

from . import fxt

RATES = (1_000_000_000, 1_000_000, 100_000_000, 24_000_000, 19_200_000)
PROCESSES = (100, 200)
TEXTS = st.text(
    st.characters(codec="utf-8", exclude_characters="\0", exclude_categories=("Cs",)), max_size=12
)
"""NUL ends a string in Perfetto's answers."""
I64 = st.integers(-(1 << 63), (1 << 63) - 1)
U64 = st.integers(0, (1 << 64) - 1)
FINITE = st.floats(allow_nan=False, allow_subnormal=False, width=64)

ARGS = ("a", "b", "key", "x.y")

NUMBERS: dict[str, st.SearchStrategy[Any]] = {
    "int32": st.integers(-(1 << 31), (1 << 31) - 1),
    "uint32": st.integers(0, (1 << 32) - 1),
    "int64": I64,
    "uint64": U64,
    "double": FINITE,
}
VALUES: dict[str, st.SearchStrategy[Any]] = {
    **NUMBERS,
    "null": st.none(),
    "string": TEXTS,
    "pointer": U64,
    "koid": U64,
    "bool": st.booleans(),
    "blob": st.binary(max_size=20),
}


@attrs.define
class _Provider:
    """One provider under way: its tables, and what it has written."""

    number: int
    rate: int
    strings: dict[str, int] = attrs.field(factory=dict)
    threads: dict[tuple[int, int], int] = attrs.field(factory=dict)


@attrs.define
class _Story:
    """What is drawn for one capture."""

    draw: Callable[[st.SearchStrategy[Any]], Any]
    provider: _Provider
    names: int = 0

    def number(self, low: int, high: int) -> int:
        value: int = self.draw(st.integers(low, high))
        return value

    def chance(self, one_in: int) -> bool:
        return self.number(1, one_in) == 1

    def name(self, what: str) -> str:
        """A name that no other event has, so that rows can be told apart."""
        self.names += 1
        return f"{what}{self.names}"

    def text(self, text: str) -> tuple[bytes, fxt.Text]:
        """A string as an inline or an indexed reference, with the record that the index needs."""
        if not text or self.chance(2):
            return b"", text
        slots = self.provider.strings
        index = self.number(1, 4)
        if slots.get(text) == index:
            return b"", index
        for other in [known for known, slot in slots.items() if slot == index]:
            del slots[other]
        slots[text] = index
        return fxt.string(index, text), index

    def thread(self, who: tuple[int, int]) -> tuple[bytes, fxt.Who]:
        """A thread inline or by index; three slots for more threads, so that they are reused."""
        if self.chance(2):
            return b"", who
        slots = self.provider.threads
        index = self.number(1, 3)
        if slots.get(who) == index:
            return b"", index
        for other in [known for known, slot in slots.items() if slot == index]:
            del slots[other]
        slots[who] = index
        return fxt.thread(index, *who), index

    def args(self, kinds: dict[str, st.SearchStrategy[Any]], most: int = 3) -> Any:
        before, made = b"", []
        for title in self.draw(st.lists(st.sampled_from(ARGS), max_size=most)):
            kind = self.draw(st.sampled_from(sorted(kinds)))
            more, name = self.text(title)
            before += more
            value = self.draw(kinds[kind])
            if kind == "string":
                more, value = self.text(value)
                before += more
            made.append((name, kind, value))
        return before, made

    def event(
        self,
        kind: str,
        ticks: int,
        who: tuple[int, int],
        name: str,
        *,
        word: int | None = None,
        kinds: dict[str, st.SearchStrategy[Any]] | None = None,
        categories: tuple[str, ...] = ("", "cat", "gfx"),
    ) -> bytes:
        # The last registration of a slot holds for the whole event, so strings come inline
        # where a slot was taken twice for it.
        before_args, args = self.args(VALUES if kinds is None else kinds)
        before_category, category = self.text(self.draw(st.sampled_from(categories)))
        before_name, title = self.text(name)
        before_thread, thread = self.thread(who)
        before = before_args + before_category + before_name
        if _slots_clash(before):
            before, category, title = b"", categories[-1], name
            args = [(f"arg{place}", *arg[1:]) for place, arg in enumerate(args)]
            args = [arg for arg in args if arg[1] != "string"]
            self.provider.strings.clear()
        return (
            before
            + before_thread
            + fxt.event(kind, ticks, thread, title, args, category=category, word=word)
        )


def _slots_clash(records: bytes) -> bool:
    """Whether string records register one index twice."""
    indices = []
    at = 0
    while at < len(records):
        header = int.from_bytes(records[at : at + 8], "little")
        indices.append(header >> 16 & 0x7FFF)
        at += 8 * (header >> 4 & 0xFFF)
    return len(set(indices)) < len(indices)


Timed = tuple[int, Callable[[], bytes]]
"""When an event is, and what writes it: registrations must happen in file order."""


def _spans(story: _Story, who: tuple[int, int], start: int, depth: int, out: list[Timed]) -> int:
    """A few spans after each other, and what is in them. Gives the time at which they end."""
    now = start
    for _ in range(story.number(0, 3)):
        now += story.number(0, 2)
        begin = now
        name = story.name("span")
        complete = story.chance(2)
        place = len(out)
        inner: list[Timed] = []
        if story.chance(3):  # first of all, while the span is the latest thing on its thread
            now += 1
            _flow(story, who, now, inner)
        now += story.number(1, 3)
        if story.chance(3):
            _moment(story, who, now, inner)
            now += story.number(1, 2)
        if depth:
            now = _spans(story, who, now, depth - 1, inner)
        now += story.number(0, 3)
        end = now
        if complete:
            event = _maker(story, "duration_complete", begin, who, name, word=end)
            # Tracers that write an event when it is over write it behind what is in it.
            late = story.chance(2)
            out[place:] = [*inner, (begin, event)] if late else [(begin, event), *inner]
        else:
            out.append((begin, _maker(story, "duration_begin", begin, who, name)))
            out += inner
            out.append((end, _maker(story, "duration_end", end, who, name)))
    return now


def _maker(
    story: _Story, kind: str, ticks: int, who: tuple[int, int], name: str, **more: Any
) -> Callable[[], bytes]:
    return lambda: story.event(kind, ticks, who, name, **more)


def _flow(story: _Story, who: tuple[int, int], ticks: int, out: list[Timed]) -> None:
    kind = story.draw(st.sampled_from(["flow_begin", "flow_step", "flow_end"]))
    # In Chrome JSON name and category are a part of a flow's identity, here they are not.
    make = _maker(story, kind, ticks, who, "flow", word=story.number(1, 3), categories=("flow",))
    out.append((ticks, make))


def _moment(story: _Story, who: tuple[int, int], ticks: int, out: list[Timed]) -> None:
    what = story.number(0, 5)
    if what == 0:
        scope = story.draw(st.sampled_from([None, 0, 1, 2]))
        out.append((ticks, _maker(story, "instant", ticks, who, story.name("instant"), word=scope)))
    elif what == 1:
        number = story.number(0, 2)
        make = _maker(story, "counter", ticks, who, "counter", word=number, kinds=NUMBERS)
        out.append((ticks, make))
    elif what == 2:
        # One id for a name, and names of one process only: Perfetto mixes up the others.
        number = story.number(0, 1) + 10 * who[0]
        name = f"load {number}"
        kind = story.draw(st.sampled_from(["async_begin", "async_instant", "async_end"]))
        make = _maker(story, kind, ticks, who, name, word=number, categories=("io",))
        out.append((ticks, make))
    elif what == 3:
        out.append((ticks, lambda: fxt.log(ticks, who, "a message")))
    elif what == 4:
        out.append((ticks, lambda: fxt.profiler_backtrace(ticks, who, [1, 2])))
    else:
        koid = story.number(1, 3)
        out.append((ticks, lambda: fxt.userspace_object(koid, who, "object")))


def _scheduling(story: _Story, out: list[Timed]) -> None:
    """Switches on two processors, each leaving the thread that was entered before."""
    now = 0
    on_cpu = {0: 0, 1: 0}
    for _ in range(story.number(0, 8)):
        now += story.number(1, 4)
        cpu = story.number(0, 1)
        if story.chance(3):
            tid, weight = story.number(905, 907), story.number(1, 200)
            record = fxt.wakeup(now, cpu, tid, [("weight", "int32", weight)])
            out.append((now, lambda record=record: record))
            continue
        left, entered = on_cpu[cpu], story.draw(st.sampled_from([901, 902, 903, 904]))
        if entered in on_cpu.values():
            continue
        on_cpu[cpu] = entered
        state = story.number(0, 6)
        if story.chance(2):
            first, second = story.number(1, 200), story.number(1, 200)
            record = fxt.legacy_context_switch(
                now, cpu, (900, left), (900, entered), state, first, second
            )
        else:
            weights = [("incoming_weight", "int32", story.number(1, 200))]
            args = weights[: story.number(0, 1)]
            record = fxt.context_switch(now, cpu, left, entered, state, args)
        out.append((now, lambda record=record: record))


def _names(story: _Story) -> bytes:
    out = b""
    for pid in PROCESSES:
        for _ in range(story.number(0, 2)):
            name = story.draw(TEXTS.filter(bool))
            out += fxt.kernel_object(1, pid, name)
        for tid in (pid + 1, pid + 2):
            if story.chance(2):
                name = story.draw(TEXTS.filter(bool))
                out += fxt.kernel_object(2, tid, name, [("process", "koid", pid)])
    out += fxt.kernel_object(19, 77, "fifo") if story.chance(3) else b""
    return out


@st.composite
def captures(draw: Callable[[st.SearchStrategy[Any]], Any]) -> bytes:
    """A capture of one or two providers, in which everything nests as it should.

    Threads belong to one provider each. Some durations begin before the capture, some do not end
    in it. Events of different threads are interleaved, or follow each other thread by thread.
    """
    out = fxt.MAGIC
    for number in range(draw(st.integers(1, 2))):
        provider = _Provider(number + 1, draw(st.sampled_from(RATES)))
        story = _Story(draw, provider, names=1000 * number)
        out += fxt.provider_info(provider.number, f"provider {number}")
        out += fxt.initialization(provider.rate)
        out += _names(story) if number == 0 else b""
        pid = PROCESSES[number]
        threads: list[list[Timed]] = []
        for tid in (pid + 1, pid + 2):
            who = (pid, tid)
            events: list[Timed] = []
            if story.chance(4):
                events.append((0, _maker(story, "duration_end", 0, who, "before")))
            end = _spans(story, who, story.number(0, 5), 2, events)
            if story.chance(4):
                name = story.name("open")
                events.append((end + 1, _maker(story, "duration_begin", end + 1, who, name)))
            threads.append(events)
        if number == 0:
            switches: list[Timed] = []
            _scheduling(story, switches)
            threads.append(switches)
        for _, make in _interleaved(story, threads):
            out += make()
            if story.chance(12):
                out += _other(story)
    return out


def _interleaved(story: _Story, threads: list[list[Timed]]) -> list[Timed]:
    if story.chance(3):
        return [event for events in threads for event in events]
    left = [list(events) for events in threads if events]
    out = []
    while left:
        events = left[story.number(0, len(left) - 1)]
        out.append(events.pop(0))
        left = [events for events in left if events]
    return out


def _other(story: _Story) -> bytes:
    """Records that make no event."""
    return [
        lambda: fxt.blob("blob", b"\x01" * 9),
        lambda: fxt.large_blob("cat", "large", b"\x02" * 17),
        lambda: fxt.provider_section(story.provider.number),
        lambda: fxt.provider_event(story.provider.number),
        lambda: fxt.record(14, 0, fxt.words(1, 2)),
        lambda: fxt.MAGIC,
        lambda: fxt.initialization(story.provider.rate),
    ][story.number(0, 6)]()
