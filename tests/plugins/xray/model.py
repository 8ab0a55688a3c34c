"""A plain model of what records say: events in order of time, and the calls that they make."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple

import attrs

from fx_xray.read.decoder import RecordDecoder
from fxframework.io.limits import Limits

U64 = (1 << 64) - 1
NO_CPU = 65535
JUMP = 1 << 40
FUNCTIONS = ("enter", "exit", "tail_exit", "enter_arg")
EVENTS = {"custom_event": 5, "typed_event": 6}
UNWOUND = 3


class Event(NamedTuple):
    """An event, as `columns.Events` has it; the payload is there itself."""

    kind: int
    function: int
    tsc: int
    cpu: int
    thread: tuple[int, int]
    offset: int
    value: Any
    orphan: bool = False


@attrs.define
class Block:
    """A buffer, or what one thread wrote in basic mode."""

    place: int
    wall: tuple[int, int] | None = None
    records: list[Any] = attrs.field(factory=list)
    settled: bool = False
    named: bool = False
    process: int | None = None
    thread: int | None = None

    def key(self, version: int) -> tuple[int, int]:
        """Process and thread."""
        thread = self.thread or 0
        if self.process is not None:
            return self.process, thread
        return (thread if version == 2 else 0), thread


def blocks_of(records: list[Any]) -> list[Block]:
    """The buffers of a trace of the flight data recorder."""
    blocks: list[Block] = []
    block: Block | None = None
    for place, record in enumerate(records):
        kind = record.record
        if kind == "file_header":
            continue
        if kind == "buffer_extents" or (
            kind == "new_buffer" and (block is None or block.settled or block.named)
        ):
            block = None
        if kind in ("damaged", "unknown", "padding") or (
            kind == "end_of_buffer" and versions(records) > 1
        ):
            if block is not None:
                block.records.append(record)
            continue
        if block is None:
            block = Block(place)
            blocks.append(block)
        block.records.append(record)
        if kind == "new_buffer":
            block.named, block.thread = True, record.thread
        elif kind == "wall_time" and not block.settled:
            block.wall = block.wall or (record.seconds, record.micros)
        elif kind == "pid" and not block.settled:
            block.process = record.process
        elif kind in ("function", "call_argument", *EVENTS):
            block.settled = True
        elif kind == "end_of_buffer":
            block = None
    return blocks


def versions(records: list[Any]) -> int:
    """The version that a trace is read as."""
    return min(max(records[0].version, 1), 5)


def says_something(record: Any, version: int) -> bool:
    """Whether a record says that there is a thread: extents and what makes no sense do not."""
    if record.record == "damaged":
        return bool(record.code == "FXX0114")  # an event over a limit
    if record.record == "end_of_buffer":
        return version < 2
    return record.record not in {"buffer_extents", "unknown", "padding"}


def fdr_events(records: list[Any], frequency: int) -> dict[tuple[int, int], list[Any]]:
    """By thread, in order of first mention: (time to sort by, event)."""
    version = versions(records)
    by_thread: dict[tuple[int, int], list[Block]] = defaultdict(list)
    for block in blocks_of(records):
        if any(says_something(record, version) for record in block.records):
            by_thread[block.key(version)].append(block)
    found: dict[tuple[int, int], list[Any]] = {}
    for key, blocks in by_thread.items():
        order, wall = [], (-(1 << 70), 0)
        for block in blocks:
            wall = block.wall or wall
            order.append((wall, block.place, block))
        found[key] = []
        for _, _, block in sorted(order, key=lambda each: each[:2]):
            found[key] += block_events(block, key, version, frequency)
    return found


def block_events(
    block: Block, thread: tuple[int, int], version: int, frequency: int
) -> list[tuple[int, Event]]:
    """The events of a buffer."""
    seconds, micros = block.wall or (0, 0)
    base = max((seconds * 1_000_000 + micros) * frequency // 1_000_000, 0) & U64
    cpu = NO_CPU
    call: int | None = None
    out: list[tuple[int, Event]] = []
    for record, follower in zip(block.records, [*block.records[1:], None], strict=True):
        name = record.record
        if name == "function":
            base = base + record.delta & U64
            kind = FUNCTIONS.index(record.kind)
            behind = record.offset + record.nbytes
            argued = follower is not None and follower.record == "call_argument"
            if kind == 0 and argued and follower.offset == behind:
                kind = 3
            call = record.function_id
            out.append((base, Event(kind, call, base, cpu, thread, record.offset, None)))
        elif name == "call_argument":
            event = Event(
                4, call or 0, base, cpu, thread, record.offset, record.value, call is None
            )
            out.append((base, event))
        else:
            call = None
            if name == "new_cpu":
                base, cpu = record.tsc, record.cpu
            elif name == "tsc_wrap":
                base = record.tsc
            elif name in EVENTS:
                where, own = cpu, False
                if version < 5:
                    own, tsc = True, record.tsc
                    where = getattr(record, "cpu", NO_CPU)
                else:
                    tsc = base = base + record.delta & U64
                key = tsc if own and 0 <= tsc - base < JUMP else base
                what = record.event_type if name == "typed_event" else 0
                out.append(
                    (key, Event(EVENTS[name], what, tsc, where, thread, record.offset, record.data))
                )
    return out


def basic_events(records: list[Any]) -> dict[tuple[int, int], list[Any]]:
    """The same of basic mode."""
    version = min(max(records[0].version, 1), 3)
    found: dict[tuple[int, int], list[Any]] = {}
    latest: dict[tuple[int, int], int] = defaultdict(int)
    body = records[1:]
    for record, follower in zip(body, [*body, None][1:], strict=True):
        if record.record == "damaged":
            continue
        key = record.process if version > 2 else 0, record.thread
        mine = found.setdefault(key, [])
        if record.record == "function":
            latest[key] = tsc = record.tsc
            kind = FUNCTIONS.index(record.kind)
            if (
                kind == 0
                and follower is not None
                and follower.record == "call_argument"
                and follower.row_offset == record.offset
            ):
                kind = 3
            event = Event(
                kind, record.function_id & 0xFFFFFFFF, tsc, record.cpu, key, record.offset, None
            )
            mine.append((tsc, event))
        else:
            orphan = record.row_offset == record.offset
            function = 0 if orphan else record.function_id & 0xFFFFFFFF
            cpu = NO_CPU if orphan else record.cpu
            event = Event(4, function, latest[key], cpu, key, record.offset, record.value, orphan)
            mine.append((latest[key], event))
    return found


def merged(by_thread: dict[tuple[int, int], list[Any]]) -> list[Event]:
    """Threads merged by time: none before what came before it in its thread."""
    keyed = []
    for number, mine in enumerate(by_thread.values()):
        peak = -1
        for place, (key, event) in enumerate(mine):
            peak = max(peak, key)
            keyed.append((peak, number, place, event))
    return [each[-1] for each in sorted(keyed, key=lambda each: each[:3])]


def events_of(
    form: str, data: bytes, options: dict[str, Any], limits: Limits | None = None
) -> tuple[list[tuple[int, int]], list[Event]]:
    """Threads, as (process, thread) in order of id, and all events, by the plain decoder."""
    decoder = RecordDecoder(form, options=options, limits=limits)
    records = list(decoder.records(data, mend=True))
    if not records or records[0].record != "file_header":
        return [], []
    frequency = decoder.cycle_frequency or records[0].cycle_frequency or 1_000_000_000
    found = fdr_events(records, frequency) if form == "xray" else basic_events(records)
    return list(found), merged(found)


@attrs.define
class Tables:
    """Rows of the tables, as lists."""

    slices: list[list[Any]] = attrs.field(factory=list)
    """offset, tsc, thread, function, depth, parent, cpu, entry; ticks, exit."""
    instants: list[tuple[Any, ...]] = attrs.field(factory=list)
    """offset, tsc, thread, kind, function or type, cpu."""
    args: list[tuple[Any, ...]] = attrs.field(factory=list)
    """offset, table, parent, name, value."""
    unwound: int = 0


def tables_of(events: list[Event]) -> Tables:
    """The calls that events make."""
    out = Tables()
    stacks: dict[Any, list[int]] = defaultdict(list)
    last: dict[Any, tuple[str, int, int]] = {}
    for event in events:
        stack = stacks[event.thread]
        if event.kind in (0, 3):
            row = len(out.slices)
            parent = stack[-1] if stack else -1
            out.slices.append(
                [
                    event.offset,
                    event.tsc,
                    event.thread,
                    event.function,
                    len(stack),
                    parent,
                    event.cpu,
                    event.kind,
                    -1,
                    0,
                ]
            )
            stack.append(row)
            last[event.thread] = ("slices", row, 0)
        elif event.kind in (1, 2):
            if any(out.slices[row][3] == event.function for row in stack):
                while True:
                    row = stack.pop()
                    mine = out.slices[row]
                    length = (event.tsc - mine[1]) & U64
                    mine[8] = length if length >> 63 == 0 else 0
                    if mine[3] == event.function:
                        mine[9] = event.kind
                        break
                    mine[9] = UNWOUND
                    out.unwound += 1
                last[event.thread] = ("slices", row, 0)
            else:
                last[event.thread] = ("instants", len(out.instants), 0)
                out.instants.append(
                    (event.offset, event.tsc, event.thread, event.kind, event.function, event.cpu)
                )
        elif event.kind == 4:
            if event.orphan:
                out.args.append((event.offset, "slices", -1, "arg0", event.value))
                continue
            table, row, number = last[event.thread]
            out.args.append((event.offset, table, row, f"arg{number}", event.value))
            last[event.thread] = (table, row, number + 1)
        else:
            row = len(out.instants)
            out.instants.append(
                (event.offset, event.tsc, event.thread, event.kind, event.function, event.cpu)
            )
            out.args.append((event.offset, "instants", row, "data", event.value))
            if event.kind == EVENTS["typed_event"]:
                out.args.append((event.offset, "instants", row, "event_type", event.function))
    return out
