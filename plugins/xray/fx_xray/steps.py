"""Steps of scenarios: recorders, threads whose calls are recorded, and replay of captures.

They run the flight recorder on any target of a scenario (``fxframework.model.target.Target``).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, ClassVar

import attrs

from fx_xray import format as wire
from fx_xray.format import (
    BASIC_FORM,
    FDR_FORM,
    MAX_FUNCTION_ID,
    BasicArgument,
    BufferExtents,
    CallArgument,
    NewBuffer,
    WallTime,
    XrayRecord,
)
from fx_xray.write.flight_recorder import FdrThread, FdrWriter, buffers_of
from fxframework.errors import UsageError
from fxframework.io.words import U64_MAX, WORD
from fxframework.kit import workload
from fxframework.kit.steps import Outcome, Run, parameter
from fxframework.kit.workload import BODY, Activity, CommonAction
from fxframework.model.target import Memory

_RECORDER = "the memory that the flight recorder's buffers are in"
_FUNCTION = "number of the function"
_ARGS = 'its arguments; a text may hold the round of a loop, as in "{i}"'
_MEANWHILE = "what it does meanwhile"
_PAYLOAD = "its payload"
_HEX = "whether the payload is in hex"


# --- The recorder --------------------------------------------------------------------------------


@attrs.frozen
class XrayStart:
    """Start recording into a memory."""

    recorder: str = parameter(help=_RECORDER, refers="device:vmo")
    version: int = parameter(
        wire.FDR_VERSIONS[-1],
        help="version of what is written",
        least=wire.FDR_VERSIONS[0],
        most=wire.FDR_VERSIONS[-1],
    )
    buffer_size: int = parameter(
        wire.BUFFER_BYTES,
        help="bytes of a buffer of a thread, 128 or more",
        least=wire.SMALLEST_BUFFER,
    )
    buffers: int | None = parameter(
        None, help="how many buffers there are; if not given, as many as fit", least=1
    )
    threshold_us: int = parameter(
        wire.THRESHOLD_US, help="calls of fewer microseconds are not kept; 0 keeps all", least=0
    )
    circular: bool = parameter(
        True, help="whether a buffer that is full is used again when there is no other"
    )

    def do(self, run: Run) -> Outcome:
        """Start the recorder, before any other step uses it."""
        writer = run.begin(
            (FdrWriter, self.recorder),
            lambda: _writer(run, self),
            f"there is a recorder in {self.recorder!r}",
        )
        return Outcome.ok(f"{writer.buffers} buffers", buffers=writer.buffers)


def _writer(run: Run, start: XrayStart) -> FdrWriter:
    memory = run.device(start.recorder)
    if not isinstance(memory, Memory):
        raise UsageError(
            f"device {start.recorder!r} is not a memory", remedy="record into a device of kind vmo"
        )
    target = workload.target_of(run)
    return FdrWriter(
        target.counter,
        version=start.version,
        memory=memory,
        buffer_size=start.buffer_size,
        buffers=start.buffers,
        threshold_us=start.threshold_us,
        clock=target.clock,
        circular=start.circular,
    )


def writer_of(run: Run, recorder: str) -> FdrWriter:
    """Return the recorder of a memory, which all steps share, started at first use."""
    return run.shared((FdrWriter, recorder), lambda: _writer(run, XrayStart(recorder=recorder)))


@attrs.frozen
class XrayLog:
    """Save what is recorded as an output."""

    recorder: str = parameter(help=_RECORDER, refers="device:vmo")
    as_: str = parameter(help="the output: the trace", makes="output")

    def do(self, run: Run) -> Outcome:
        """Make a trace of what the memory holds, even after a crash of the programs."""
        writer = writer_of(run, self.recorder)
        image = run.bytes_of(self.recorder)
        data = writer.log(image)
        run.put(self.as_, data)
        buffers = sum(1 for _ in buffers_of(image, writer.buffer_size))
        text = f"{buffers:,} buffers, {writer.dropped:,} calls and events dropped"
        return Outcome.ok(text, buffers=buffers, dropped=writer.dropped, bytes=len(data))


# --- Actions of a thread --------------------------------------------------------------------------


ActionContext = workload.ActionContext[FdrWriter]


def _mine(stage: ActionContext) -> FdrThread:
    """Return the recorder of the current thread, with the counter of its current CPU."""
    process, tid = stage.ids
    return stage.writer.thread(tid, process=process, counter=stage.thread.counter)


def _arguments(stage: ActionContext, arguments: Iterable[int | str]) -> list[int]:
    return [stage.number(argument) for argument in arguments]


def _bytes(stage: ActionContext, text: str, *, in_hex: bool) -> bytes:
    return bytes.fromhex(text) if in_hex else stage.text(text).encode()


def _check_payload(text: str, *, in_hex: bool) -> None:
    if not (bytes.fromhex(text) if in_hex else text):
        raise ValueError("an event has a payload of one byte or more")


@attrs.frozen
class Call:
    """Enter a function, do actions, and leave it."""

    call: int | str = parameter(help=_FUNCTION, least=0, most=MAX_FUNCTION_ID, rounds=True)
    args: list[int | str] = parameter(factory=list, help=_ARGS, least=0, most=U64_MAX, rounds=True)
    body: list[Action] = parameter(factory=list, help=_MEANWHILE)
    tail: list[Action] = parameter(
        factory=list, help="what it does last, in tail calls: it is left before them"
    )

    def do(self, stage: ActionContext) -> Activity:
        """Record the entry and the exit, and do the actions between them."""
        recorder = _mine(stage)
        function = stage.number(self.call)
        recorder.enter(function, *_arguments(stage, self.args))
        yield from stage.all(self.body)
        if self.tail:
            recorder.tail_exit(function)
            yield from stage.all(self.tail)
        else:
            recorder.exit(function)


@attrs.frozen
class Enter:
    """Enter a function."""

    enter: int | str = parameter(help=_FUNCTION, least=0, most=MAX_FUNCTION_ID, rounds=True)
    args: list[int | str] = parameter(factory=list, help=_ARGS, least=0, most=U64_MAX, rounds=True)

    def do(self, stage: ActionContext) -> None:
        """Record it."""
        _mine(stage).enter(stage.number(self.enter), *_arguments(stage, self.args))


@attrs.frozen
class Exit:
    """Leave a function, which need not be the one that was entered last."""

    exit: int | str = parameter(help=_FUNCTION, least=0, most=MAX_FUNCTION_ID, rounds=True)

    def do(self, stage: ActionContext) -> None:
        """Record it."""
        _mine(stage).exit(stage.number(self.exit))


@attrs.frozen
class TailExit:
    """Leave a function by a tail call."""

    tail_exit: int | str = parameter(help=_FUNCTION, least=0, most=MAX_FUNCTION_ID, rounds=True)

    def do(self, stage: ActionContext) -> None:
        """Record it."""
        _mine(stage).tail_exit(stage.number(self.tail_exit))


@attrs.frozen
class Custom:
    """Write a custom event."""

    custom_event: str = parameter(help=_PAYLOAD)
    hex: bool = parameter(False, help=_HEX)

    def __attrs_post_init__(self) -> None:
        """Raise ValueError for text that is not hex, and for no bytes."""
        _check_payload(self.custom_event, in_hex=self.hex)

    def do(self, stage: ActionContext) -> None:
        """Record it."""
        _mine(stage).custom_event(_bytes(stage, self.custom_event, in_hex=self.hex))


@attrs.frozen
class Typed:
    """Write an event with a number for the type of its payload."""

    typed_event: int = parameter(help="the number", least=0, most=(1 << 16) - 1)
    data: str = parameter(help=_PAYLOAD)
    hex: bool = parameter(False, help=_HEX)

    def __attrs_post_init__(self) -> None:
        """Raise ValueError for text that is not hex, and for no bytes."""
        _check_payload(self.data, in_hex=self.hex)

    def do(self, stage: ActionContext) -> None:
        """Record it."""
        _mine(stage).typed_event(self.typed_event, _bytes(stage, self.data, in_hex=self.hex))


@attrs.frozen
class Loop(workload.Loop):
    """Repeat actions."""

    body: list[Action] = parameter(help=BODY)


Action = Call | Enter | Exit | TailExit | Custom | Typed | CommonAction | Loop


@attrs.frozen
class _Release:
    """Release the buffer of a thread that ends."""

    def do(self, stage: ActionContext) -> None:
        _mine(stage).finish()


@attrs.frozen
class XrayThread(workload.ThreadParameters):
    """Start a thread whose calls are recorded."""

    recorder: str = parameter(help=_RECORDER, refers="device:vmo")
    script: list[Action] = parameter(help="what it does")

    def do(self, run: Run) -> Outcome:
        """Start the thread; it runs when time passes. At its end its buffer is released."""
        writer = writer_of(run, self.recorder)
        script = [*self.script, _Release()]
        thread = workload.start(self, run, self.recorder, writer, script)
        pid, tid = thread.ids
        return Outcome.ok(pid=pid, tid=tid)


# --- Replay of a capture ----------------------------------------------------------------------


@attrs.frozen
class XrayReplay(workload.ReplayParameters):
    """Write the records of a trace again, each at its own time."""

    instead: ClassVar[str] = "recorder"

    recorder: str = parameter(
        "",
        help="a recorder that all calls and events go to, instead of an output",
        refers="device:vmo",
    )

    def do(self, run: Run) -> Outcome:
        """Replay a capture on the target."""
        path = run.file(self.capture)
        with path.open("rb") as file:
            header_type = file.read(4)[2:]
        is_basic = header_type == wire.BASIC.to_bytes(2, "little")
        form = BASIC_FORM if is_basic else FDR_FORM
        with run.host.open(path, format=form) as capture:
            writes = _in_time(capture.records(), form)
            rate = capture.ticks_per_second or 0
            data = capture.source.read(0, capture.source.size)
        if self.recorder:
            return _into_recorder(self.recorder, writes, rate, run)
        return _as_trace(self.as_, writes, data, run)


@attrs.define
class _Write:
    """A record with its time of writing in ns."""

    record: Any
    ns: int | None
    arguments: list[int] = attrs.field(factory=list)
    """Those of a call that a recorder is given."""


def _in_time(records: Iterable[XrayRecord], form: str) -> list[_Write]:
    """Return all records of a trace in the order of writing, in which buffers interleave.

    Within a buffer it is the order of the file, and the buffers of a thread follow one another by
    their wall times, even where counters of CPUs differ. A record without a time has that of the
    record before it; before the first one of a buffer, that of the first.
    """
    writes = []
    buffers = _buffers(records, form)
    buffers.sort(key=_wall_time)
    latest: dict[tuple[int, int], int] = {}
    """The time of the last record of each thread."""
    for buffer in buffers:
        writes += buffer
        first_timed = next((write for write in buffer if write.ns is not None), None)
        if first_timed is None or first_timed.ns is None:
            continue
        thread = _thread_of(first_timed.record)
        # A thread's buffers do not overlap: a later one begins where the one before ended.
        now = max(first_timed.ns, latest.get(thread, first_timed.ns))
        for write in buffer:
            now = max(now, write.ns or 0)
            write.ns = now
        latest[thread] = now
    writes.sort(key=lambda write: -1 if write.ns is None else write.ns)
    return writes


def _buffers(records: Iterable[XrayRecord], form: str) -> list[list[_Write]]:
    """Return the records of each buffer, with the extents before it.

    In basic mode each record is by itself.
    """
    buffers: list[list[_Write]] = [[]]
    for record in records:
        buffer = buffers[-1]
        follows_extents = buffer and isinstance(buffer[-1].record, BufferExtents)
        begins_buffer = isinstance(record, BufferExtents | NewBuffer)
        if follows_extents and isinstance(record, NewBuffer):
            begins_buffer = False
        if begins_buffer or form == BASIC_FORM:
            buffer = []
            buffers.append(buffer)
        buffer.append(_Write(record, getattr(record, "ns", None)))
    return buffers


def _wall_time(buffer: list[_Write]) -> tuple[int, int]:
    """Return the wall time of a buffer; zeros without one, as in basic mode."""
    for write in buffer:
        if isinstance(write.record, WallTime):
            return write.record.seconds, write.record.micros
    return 0, 0


def _thread_of(record: XrayRecord) -> tuple[int, int]:
    """Return process and thread of a record."""
    process = getattr(record, "process", None) or 0
    thread = getattr(record, "thread", None) or 0
    return process, thread


def _as_trace(name: str, writes: list[_Write], data: bytes, run: Run) -> Outcome:
    """Store all records into one memory, at their offsets in the file."""
    memory: Memory = workload.target_of(run).trace_buffer(len(data)).memory

    def store(write: _Write) -> bool:
        # Other bytes of the same words are kept.
        offset = write.record.offset
        start = offset - offset % WORD
        end = offset + write.record.nbytes
        bytes_before = memory.read(start, offset - start)
        bytes_behind = memory.read(end, -end % WORD)
        memory.write(start, bytes_before + data[offset:end] + bytes_behind)
        return True

    workload.replay(run, writes, store)
    run.put(name, memory.read(0, len(data)))
    return Outcome.ok(f"{len(writes):,} records", records=len(writes), bytes=len(data))


_EVENT_RECORDS = frozenset({"function", "custom_event", "typed_event"})
"""Kinds of records that are calls and events."""


class _Counter:
    """A counter that shows the times of records, converted to the rate of another counter."""

    constant = True
    nonstop = True

    def __init__(self, frequency: int, rate: int) -> None:
        self.frequency = frequency
        self.rate = rate
        """Ticks per second of the records."""
        self.now = 0, 0

    def show(self, record: Any) -> None:
        """Show the time and the CPU of a record from here on."""
        ticks = record.tsc or 0
        rate = self.rate
        if rate:  # ticks of a slow counter may be too many for a fast one
            ticks = min(ticks * self.frequency // rate, U64_MAX)
        self.now = ticks, getattr(record, "cpu", None) or 0

    def read_tsc(self) -> int:
        """Return the time."""
        return self.now[0]

    def read_tscp(self) -> tuple[int, int]:
        """Return the time, and the CPU."""
        return self.now


def _recorded(writes: Iterable[_Write]) -> list[_Write]:
    """Return the calls and events with their arguments."""
    events: list[_Write] = []
    # The arguments of a call follow it.
    arguments_of_last: list[int] = []
    for write in writes:
        record = write.record
        if isinstance(record, CallArgument | BasicArgument):
            arguments_of_last.append(record.value)
            continue
        arguments_of_last = write.arguments
        if record.record in _EVENT_RECORDS:
            events.append(write)
    return events


def _record(writer: FdrWriter, counter: _Counter, write: _Write) -> bool:
    """Record a call or an event; return False if it was dropped."""
    record = write.record
    counter.show(record)
    recorder = writer.thread(record.thread, process=record.process, counter=counter)
    match record.record, getattr(record, "kind", ""):
        case "custom_event", _:
            return recorder.custom_event(record.data, counter=counter)
        case "typed_event", _:
            return recorder.typed_event(record.event_type, record.data, counter=counter)
        case _, "exit":
            return recorder.exit(record.function_id, counter=counter)
        case _, "tail_exit":
            return recorder.tail_exit(record.function_id, counter=counter)
        case _:
            return recorder.enter(record.function_id, *write.arguments, counter=counter)


def _into_recorder(name: str, writes: list[_Write], rate: int, run: Run) -> Outcome:
    """Record all calls and events with one recorder, which decides what it keeps."""
    writer = writer_of(run, name)
    counter = _Counter(writer.cycle_frequency, rate)

    counts = workload.replay(run, _recorded(writes), partial(_record, writer, counter))
    writer.finish()
    return workload.counted(counts)
