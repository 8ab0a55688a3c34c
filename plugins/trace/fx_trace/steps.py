"""Steps of scenarios: threads that trace what they do, the scheduler, and captures driven anew.

They drive the writer on whatever target a scenario has (``fxframework.model.target.Target``).
"""

from __future__ import annotations

import random
from collections.abc import Generator, Iterator
from typing import Any, Self

import attrs

from fx_trace import values
from fx_trace.layout import BUFFER_HEADER_BYTES, DEFAULT_PROVIDER, SCOPES
from fx_trace.records import (
    ProviderInfo,
    ProviderSection,
    RecordEncoder,
    StringRecord,
    ThreadRecord,
    TraceRecord,
)
from fx_trace.writer import TraceWriter
from fxframework.errors import UsageError, WriteRefusedError
from fxframework.model.steps import Duration, Outcome, Run, parameter
from fxframework.model.target import Program, Target, Thread

__all__ = ["Action", "Argument", "replay", "schedule", "thread"]


STEPS_PER_RECORD = 4
"""Steps of the scheduler that a record takes at most, when a capture is driven anew."""

Doing = Generator[object, Any, None]


# --- What a thread does --------------------------------------------------------------------------


class Stage:
    """A thread's side of an action: its writer, its names and its luck."""

    def __init__(self, writer: TraceWriter, thread: Thread, luck: random.Random) -> None:
        self.writer = writer
        self.thread = thread
        self.ids = thread.ids
        self.luck = luck
        self.counts: dict[str, int] = {}
        """Rounds of the loops that it is in, by their names."""

    def text(self, text: str) -> str:
        """A text with the rounds of loops in the place of ``{NAME}``."""
        if "{" in text:
            for name, count in self.counts.items():
                text = text.replace(f"{{{name}}}", str(count))
        return text

    def number(self, value: float | str) -> Any:
        """A number, or what the text of one comes to."""
        if not isinstance(value, str):
            return value
        text = self.text(value)
        try:
            return int(text)
        except ValueError:
            return float(text)

    def args(self, args: dict[str, Argument]) -> dict[str, Any]:
        """Arguments as the writer takes them."""
        return {self.text(name): each.on(self) for name, each in args.items()}

    def all(self, actions: list[Action]) -> Doing:
        """Do one action after the other."""
        for action in actions:
            doing = action.do(self)
            if doing is not None:
                yield from doing


@attrs.frozen
class Argument:
    """A value of an argument: of TOML's own, or a table that says the type, ``{ koid = 5 }``."""

    value: Any

    @classmethod
    def from_toml(cls, value: Any) -> Self:
        """Make it; ValueError for what no argument can be."""
        if isinstance(value, bool | int | float | str):
            return cls(value)
        if isinstance(value, dict) and len(value) == 1:
            ((kind, inner),) = value.items()
            if kind == "null":
                return cls(None)
            if kind == "blob" and isinstance(inner, str):
                return cls(bytes.fromhex(inner))
            if kind in _TYPED and isinstance(inner, int | float | str):
                return cls(_TYPED[kind](inner))
        known = ", ".join(sorted([*_TYPED, "blob", "null"]))
        raise ValueError(f"is {value!r}, no value, and no table of one: {known}")

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """What `fxf replay --schema` says of it."""
        typed = {kind: {"type": ["number", "string"]} for kind in sorted(_TYPED)}
        table = {
            "type": "object",
            "properties": {**typed, "blob": {"type": "string"}, "null": {"type": "boolean"}},
            "minProperties": 1,
            "maxProperties": 1,
            "additionalProperties": False,
        }
        return {"anyOf": [{"type": ["boolean", "number", "string"]}, table]}

    def on(self, stage: Stage) -> Any:
        """The value, in the present round of loops; ``"{i}"`` alone is the number itself."""
        value = self.value
        if isinstance(value, str) and "{" in value:
            if value[1:-1] in stage.counts and value == f"{{{value[1:-1]}}}":
                return stage.counts[value[1:-1]]
            return stage.text(value)
        return value


_TYPED = {
    "double": values.Double,
    "int32": values.Int32,
    "int64": values.Int64,
    "koid": values.Koid,
    "pointer": values.Pointer,
    "string": values.String,
    "uint32": values.Uint32,
    "uint64": values.Uint64,
}

_CATEGORY = "category of the event"
_ARGS = "its arguments: values, or tables that say the type, such as { koid = 5 }"
_BODY = "what is done meanwhile"
_ID = 'correlation id; a text may hold the round of a loop, as in "{i}"'


@attrs.frozen
class Slice:
    """A slice around what is done meanwhile: begin and end events."""

    slice: str = parameter(help="name of the slice")
    category: str = parameter("", help=_CATEGORY)
    args: dict[str, Argument] = parameter(factory=dict, help=_ARGS)
    body: list[Action] = parameter(factory=list, help=_BODY)

    def do(self, stage: Stage) -> Doing:
        """Begin, do, end."""
        name, category = stage.text(self.slice), stage.text(self.category)
        writer = stage.writer
        begun = writer.duration_begin(category, name, stage.args(self.args), thread=stage.ids)
        yield from stage.all(self.body)
        if begun:  # the end of one that was dropped would close another one
            writer.duration_end(category, name, thread=stage.ids)


@attrs.frozen
class Begin:
    """A slice begins."""

    begin: str = parameter(help="name of the slice")
    category: str = parameter("", help=_CATEGORY)
    args: dict[str, Argument] = parameter(factory=dict, help=_ARGS)

    def do(self, stage: Stage) -> None:
        """Write the event."""
        stage.writer.duration_begin(
            stage.text(self.category),
            stage.text(self.begin),
            stage.args(self.args),
            thread=stage.ids,
        )


@attrs.frozen
class End:
    """The slice that began last ends."""

    end: str = parameter(help="name of the slice")
    category: str = parameter("", help=_CATEGORY)
    args: dict[str, Argument] = parameter(factory=dict, help=_ARGS)

    def do(self, stage: Stage) -> None:
        """Write the event."""
        stage.writer.duration_end(
            stage.text(self.category), stage.text(self.end), stage.args(self.args), thread=stage.ids
        )


@attrs.frozen
class Complete:
    """A slice that is written once it is over: a complete event."""

    complete: str = parameter(help="name of the slice")
    category: str = parameter("", help=_CATEGORY)
    args: dict[str, Argument] = parameter(factory=dict, help=_ARGS)
    body: list[Action] = parameter(factory=list, help=_BODY)

    def do(self, stage: Stage) -> Doing:
        """Do, then write."""
        counter = stage.thread.counter
        begin = counter.read_tsc()
        yield from stage.all(self.body)
        stage.writer.duration_complete(
            stage.text(self.category),
            stage.text(self.complete),
            begin,
            # Another CPU's counter may be behind the one on which it began.
            max(begin, counter.read_tsc()),
            stage.args(self.args),
            thread=stage.ids,
        )


@attrs.frozen
class Async:
    """Part of an asynchronous operation."""

    async_: str = parameter(help="which part", choices=("begin", "instant", "end"))
    name: str = parameter(help="name of the operation")
    id: int | str = parameter(help=_ID)
    category: str = parameter("", help=_CATEGORY)
    args: dict[str, Argument] = parameter(factory=dict, help=_ARGS)

    def do(self, stage: Stage) -> None:
        """Write the event."""
        _correlated(stage, f"async_{self.async_}", self)


@attrs.frozen
class Flow:
    """Part of a flow, within a slice."""

    flow: str = parameter(help="which part", choices=("begin", "step", "end"))
    name: str = parameter(help="name of the flow")
    id: int | str = parameter(help=_ID)
    category: str = parameter("", help=_CATEGORY)
    args: dict[str, Argument] = parameter(factory=dict, help=_ARGS)

    def do(self, stage: Stage) -> None:
        """Write the event."""
        _correlated(stage, f"flow_{self.flow}", self)


def _correlated(stage: Stage, method: str, action: Async | Flow) -> None:
    getattr(stage.writer, method)(
        stage.text(action.category),
        stage.text(action.name),
        stage.number(action.id),
        stage.args(action.args),
        thread=stage.ids,
    )


@attrs.frozen
class Counter:
    """Values of a counter."""

    counter: str = parameter(help="name of the counter")
    series: dict[str, int | float | str] = parameter(help="its values, by the series' names")
    id: int | str = parameter(0, help="id of the counter")
    category: str = parameter("", help=_CATEGORY)

    def do(self, stage: Stage) -> None:
        """Write the event."""
        stage.writer.counter(
            stage.text(self.category),
            stage.text(self.counter),
            {stage.text(name): stage.number(value) for name, value in self.series.items()},
            id=stage.number(self.id),
            thread=stage.ids,
        )


@attrs.frozen
class Instant:
    """A moment."""

    instant: str = parameter(help="name of the event")
    category: str = parameter("", help=_CATEGORY)
    args: dict[str, Argument] = parameter(factory=dict, help=_ARGS)
    scope: str = parameter("", help="whose moment it is", choices=("", *SCOPES.values()))

    def do(self, stage: Stage) -> None:
        """Write the event."""
        stage.writer.instant(
            stage.text(self.category),
            stage.text(self.instant),
            stage.args(self.args),
            thread=stage.ids,
            scope=self.scope or None,
        )


@attrs.frozen
class Log:
    """A line is logged."""

    log: str = parameter(help="the line")

    def do(self, stage: Stage) -> None:
        """Write the record."""
        stage.writer.log(
            stage.text(self.log), thread=stage.ids, timestamp=stage.thread.counter.read_tsc()
        )


@attrs.frozen
class Blob:
    """Bytes of some other format."""

    blob: str = parameter(help="name of the blob")
    hex: str = parameter(help="its bytes, in hex")

    def __attrs_post_init__(self) -> None:
        """Refuse what is no hex."""
        bytes.fromhex(self.hex)

    def do(self, stage: Stage) -> None:
        """Write the record."""
        stage.writer.blob(stage.text(self.blob), bytes.fromhex(self.hex))


@attrs.frozen
class Work:
    """Use CPU time."""

    run: Duration = parameter(help="how much", least=0)
    jitter: Duration = parameter(
        Duration(0), help="how much more it may be, as the seed has it", least=0
    )

    def do(self, stage: Stage) -> Doing:
        """Work."""
        yield stage.thread.run(self.run + _more(stage, self.jitter))


@attrs.frozen
class Sleep:
    """Block for some time."""

    sleep: Duration = parameter(help="how long", least=0)
    jitter: Duration = parameter(
        Duration(0), help="how much longer it may be, as the seed has it", least=0
    )

    def do(self, stage: Stage) -> Doing:
        """Sleep."""
        yield stage.thread.sleep(self.sleep + _more(stage, self.jitter))


def _more(stage: Stage, jitter: int) -> int:
    return stage.luck.randrange(jitter + 1) if jitter else 0


@attrs.frozen
class Migrate:
    """Go to a CPU and stay there."""

    migrate: int = parameter(help="the CPU; -1 allows all of them again", least=-1)

    def do(self, stage: Stage) -> Doing:
        """Migrate."""
        yield stage.thread.migrate(None if self.migrate < 0 else self.migrate)


@attrs.frozen
class GiveWay:
    """Let others of the same priority go first."""

    yield_: bool = parameter(help="true")

    def do(self, stage: Stage) -> Doing:
        """Give way."""
        if self.yield_:
            yield stage.thread.give_way()


@attrs.frozen
class Signal:
    """Signal an event. Signals count: each lets one wait end, now or later."""

    signal: str = parameter(help="name of the event")

    def do(self, stage: Stage) -> Doing:
        """Signal."""
        yield stage.thread.signal(stage.text(self.signal))


@attrs.frozen
class Wait:
    """Block until an event is signalled."""

    wait: str = parameter(help="name of the event")
    timeout: Duration | None = parameter(None, help="but no longer than this", least=0)

    def do(self, stage: Stage) -> Doing:
        """Wait."""
        yield stage.thread.wait(stage.text(self.wait), self.timeout)


@attrs.frozen
class Loop:
    """Do the same several times."""

    loop: int = parameter(help="how often", least=0)
    body: list[Action] = parameter(help="what is done each time")
    as_: str = parameter("", help="name of the round, from 0: {NAME} stands for it in texts")

    def do(self, stage: Stage) -> Doing:
        """Do it."""
        for count in range(self.loop):
            if self.as_:
                stage.counts[self.as_] = count
            yield from stage.all(self.body)
        stage.counts.pop(self.as_, None)


Action = (
    Slice | Begin | End | Complete | Async | Flow | Counter | Instant | Log | Blob
    | Work | Sleep | Migrate | GiveWay | Signal | Wait | Loop
)  # fmt: skip


# --- Threads and the scheduler -------------------------------------------------------------------


@attrs.frozen
class ThreadParameters:
    """A thread that traces what it does."""

    provider: str = parameter(help="the trace provider that it writes to", refers="device")
    process: str = parameter(help="name of its process, which is made where there is none")
    thread: str = parameter(help="its name")
    script: list[Action] = parameter(help="what it does")
    priority: int = parameter(16, help="0 to 31; those of a higher one go first", least=0, most=31)
    cpu: int | None = parameter(None, help="the only CPU that it may run on", least=0)
    background: bool = parameter(False, help="whether a run may end while it waits")


def writer_of(run: Run, provider: str) -> TraceWriter:
    """The writer of a provider, which all that write to it share. Its time is the current CPU's."""
    return run.shared(
        ("fx_trace.writer", provider),
        lambda: TraceWriter(run.device(provider), clock=_target(run).counter),
    )


def thread(given: ThreadParameters, run: Run) -> Outcome:
    """Start the thread; it runs when time passes."""
    writer = writer_of(run, given.provider)
    # What two threads of one name do by chance is not the same.
    number = run.shared(("fx_trace.threads",), lambda: iter(range(1 << 30)))
    luck = run.rng(f"{given.provider}/{given.process}/{given.thread}/{next(number)}")

    def program(mine: Thread) -> Doing:
        yield from Stage(writer, mine, luck).all(given.script)

    started = _target(run).spawn(
        given.process,
        given.thread,
        program,
        priority=given.priority,
        cpu=given.cpu,
        background=given.background,
    )
    pid, tid = started.ids
    named: set[int] = run.shared(("fx_trace.named", given.provider), set)
    if pid not in named:
        named.add(pid)
        writer.process(pid, given.process)
    writer.thread(pid, tid, given.thread)
    return Outcome.ok(pid=pid, tid=tid)


@attrs.frozen
class SchedulingParameters:
    """Context switches and wakeups, from here on."""

    provider: str = parameter(help="the trace provider that they are written to", refers="device")


def schedule(given: SchedulingParameters, run: Run) -> Outcome:
    """Let a provider hear of the scheduler."""
    _target(run).listen(writer_of(run, given.provider))
    return Outcome.ok()


def _target(run: Run) -> Target:
    target = run.target
    if not isinstance(target, Target):
        raise UsageError(
            "there is no target", remedy="install the plugin that has a device kind 'target'"
        )
    return target


# --- A capture, driven anew ----------------------------------------------------------------------


@attrs.frozen
class ReplayParameters:
    """Drive the records of a trace through the writer, each at its own time."""

    capture: str = parameter(help="the trace, a file beside the scenario", refers="file")
    as_: str = parameter(
        "", help="the output: the archive that comes of it, section by section", makes="output"
    )
    provider: str = parameter(
        "",
        help="a trace provider that all records go to, with slots of its own, instead of an output",
        refers="device",
    )

    def __attrs_post_init__(self) -> None:
        """Refuse none or both."""
        if bool(self.as_) == bool(self.provider):
            raise ValueError("give either `as` or `provider`")


@attrs.frozen
class _Piece:
    """Bytes of the archive that comes of a replay: a provider's next ones, or the manager's own."""

    provider: int | None
    data: bytes
    """Of a provider, only how many there are matters."""
    ns: int | None
    """When it is written."""


def replay(given: ReplayParameters, run: Run) -> Outcome:
    """Drive a capture anew, on the target."""
    path = run.file(given.capture)
    with run.host.open(path, format="trace") as capture:
        if capture.big_endian:
            raise UsageError(
                "a target writes little-endian words, and this capture is big-endian",
                path=str(given.capture),
                remedy="`fxf convert IN OUT -o big_endian=no` makes another one of it",
            )
        if given.provider:
            return _into_provider(given.provider, capture.records(), run)
        pieces = list(_pieces(capture.records()))
    return _as_archive(given.as_, pieces, run)


def _pieces(records: Iterator[TraceRecord]) -> Iterator[_Piece]:
    """What an archive is made of, in order."""
    encoder = RecordEncoder()
    speaking = DEFAULT_PROVIDER
    for record in records:
        data = encoder.encode(record)
        if isinstance(record, ProviderInfo | ProviderSection):
            speaking = record.id
        if record.record in {"metadata", "padding", "damaged"}:
            yield _Piece(None, data, None)
        else:
            yield _Piece(speaking, data, record.ns)


def _as_archive(name: str, pieces: list[_Piece], run: Run) -> Outcome:
    """Write each provider's records into a buffer of its own, and gather them section by section.

    A buffer keeps the order of its records; which section comes when is the manager's memory.
    """
    target = _target(run)
    sizes: dict[int, int] = {}
    for piece in pieces:
        if piece.provider is not None:
            sizes[piece.provider] = sizes.get(piece.provider, 0) + len(piece.data)
    buffers = {id: target.trace_buffer(size) for id, size in sizes.items()}
    lost = [0]

    def program(mine: Thread) -> Doing:
        pace = _Pace(mine)
        for piece in pieces:
            if piece.provider is None:
                continue
            wait = pace.until(piece.ns)
            if wait is not None:
                yield wait
            lost[0] += not buffers[piece.provider].put(piece.data)

    _run_through(target, "replay", program, len(pieces))
    ends = dict.fromkeys(buffers, BUFFER_HEADER_BYTES)
    out = bytearray()
    for piece in pieces:
        if piece.provider is None:
            out += piece.data
            continue
        at = ends[piece.provider]
        out += buffers[piece.provider].memory.read(at, len(piece.data))
        ends[piece.provider] = at + len(piece.data)
    run.put(name, bytes(out))
    written = sum(piece.provider is not None for piece in pieces)
    facts = {"records": written, "providers": len(buffers), "bytes": len(out)}
    if lost[0]:
        return Outcome.failed(f"the target dropped {lost[0]:,} of {written:,} records", **facts)
    return Outcome.ok(f"{written:,} records of {len(buffers)} providers", **facts)


def _into_provider(provider: str, records: Iterator[TraceRecord], run: Run) -> Outcome:
    """Write all records to one provider, as a program would that has slots of its own."""
    writer = writer_of(run, provider)
    found = list(records)
    counts = {"records": 0, "dropped": 0, "refused": 0}

    def program(mine: Thread) -> Doing:
        pace = _Pace(mine)
        for record in found:
            # Slots are the writer's own; rates are the target's.
            if isinstance(record, StringRecord | ThreadRecord) or record.record in {
                "metadata",
                "initialization",
                "padding",
                "damaged",
            }:
                continue
            wait = pace.until(record.ns)
            if wait is not None:
                yield wait
            try:
                taken = writer.write(record)
            except WriteRefusedError:
                counts["refused"] += 1
            else:
                counts["records" if taken else "dropped"] += 1

    _run_through(_target(run), "replay", program, len(found))
    told = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)
    return Outcome.ok(told, **counts)


class _Pace:
    """Lets a thread wait until the time of what it writes next."""

    def __init__(self, thread: Thread) -> None:
        self._thread = thread
        self._offset: int | None = None
        """From the capture's time to the target's; the first time of the capture is now."""

    def until(self, ns: int | None) -> object | None:
        """What to yield first, if it is not that time yet."""
        if ns is None:
            return None
        now = self._thread.clock.monotonic_ns()
        if self._offset is None:
            self._offset = now - ns
        left = ns + self._offset - now
        return self._thread.sleep(left) if left > 0 else None


def _run_through(target: Target, name: str, program: Program, records: int) -> None:
    """Run a program to its end, whatever else there is to be done meanwhile."""
    done = [False]

    def whole(thread: Thread) -> Doing:
        yield from program(thread)
        done[0] = True

    target.spawn(name, name, whole, background=True)
    target.run(budget=max(1_000_000, STEPS_PER_RECORD * records))
    if not done[0]:
        raise UsageError("the target stopped before the capture was written")
