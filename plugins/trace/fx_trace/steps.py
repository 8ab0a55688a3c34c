"""Steps of scenarios: threads that trace, scheduling records, and replay of captures.

They run the writer on any target of a scenario (``fxframework.model.target.Target``).
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import attrs

from fx_trace.format import BUFFER_HEADER_BYTES, DEFAULT_PROVIDER
from fx_trace.read.decoder import RecordEncoder
from fx_trace.records import ProviderInfo, ProviderSection, TraceRecord
from fx_trace.write.writer import TraceWriter
from fxframework.errors import UsageError
from fxframework.io.words import U64_MAX
from fxframework.kit import arguments as values
from fxframework.kit import workload
from fxframework.kit.steps import Outcome, Run, parameter
from fxframework.kit.workload import BODY, Activity, ArgumentType, CommonAction
from fxframework.model.schema import SCOPES
from fxframework.model.target import KnowsWakers
from fxframework.wire.cursor import limits_of

ActionContext = workload.ActionContext[TraceWriter]


# --- Actions of a thread --------------------------------------------------------------------------


class Argument(workload.Argument):
    """An argument's value: a TOML value, or a table with the type, ``{ koid = 5 }``."""

    types: ClassVar[Mapping[str, ArgumentType]] = {
        "blob": ArgumentType(bytes.fromhex, (str,)),
        "double": ArgumentType(values.Double),
        "int32": ArgumentType(values.Int32, limits=limits_of(32, True)),
        "int64": ArgumentType(values.Int64, limits=limits_of(64, True)),
        "koid": ArgumentType(values.Koid, limits=limits_of(64, False)),
        "null": ArgumentType(lambda _: None, (bool,)),
        "pointer": ArgumentType(values.Pointer, limits=limits_of(64, False)),
        "string": ArgumentType(values.String, (str,)),
        "uint32": ArgumentType(values.Uint32, limits=limits_of(32, False)),
        "uint64": ArgumentType(values.Uint64, limits=limits_of(64, False)),
    }


_CATEGORY = "category of the event"
_ARGS = "its arguments: values, or tables that say the type, such as { koid = 5 }"
_MEANWHILE = "what is done meanwhile"
_ID = 'correlation id; a text may hold the round of a loop, as in "{i}"'


def _write(
    stage: ActionContext,
    write: Callable[..., object],
    event: Begin | End | Complete | Async | Flow | Instant,
    name: str,
    *numbers: int,
    **options: Any,
) -> None:
    """Call a method of the writer with what events have in common, and numbers of this kind."""
    category = stage.text(event.category)
    args = stage.args(event.args)
    write(category, stage.text(name), *numbers, args, thread=stage.ids, **options)


@attrs.frozen
class Slice:
    """Write a begin event, do actions, and write the end event."""

    slice: str = parameter(help="name of the slice")
    category: str = parameter("", help=_CATEGORY)
    args: dict[str, Argument] = parameter(factory=dict, help=_ARGS)
    body: list[Action] = parameter(factory=list, help=_MEANWHILE)

    def do(self, stage: ActionContext) -> Activity:
        """Begin, do, end."""
        name = stage.text(self.slice)
        category = stage.text(self.category)
        writer = stage.writer
        is_begun = writer.duration_begin(category, name, stage.args(self.args), thread=stage.ids)
        yield from stage.all(self.body)
        if is_begun:  # the end of one that was dropped would close another one
            writer.duration_end(category, name, thread=stage.ids)


@attrs.frozen
class Begin:
    """Write a begin event."""

    begin: str = parameter(help="name of the slice")
    category: str = parameter("", help=_CATEGORY)
    args: dict[str, Argument] = parameter(factory=dict, help=_ARGS)

    def do(self, stage: ActionContext) -> None:
        """Write the event."""
        _write(stage, stage.writer.duration_begin, self, self.begin)


@attrs.frozen
class End:
    """Write the end event of the slice that began last."""

    end: str = parameter(help="name of the slice")
    category: str = parameter("", help=_CATEGORY)
    args: dict[str, Argument] = parameter(factory=dict, help=_ARGS)

    def do(self, stage: ActionContext) -> None:
        """Write the event."""
        _write(stage, stage.writer.duration_end, self, self.end)


@attrs.frozen
class Complete:
    """Do actions, and write a complete event around them."""

    complete: str = parameter(help="name of the slice")
    category: str = parameter("", help=_CATEGORY)
    args: dict[str, Argument] = parameter(factory=dict, help=_ARGS)
    body: list[Action] = parameter(factory=list, help=_MEANWHILE)

    def do(self, stage: ActionContext) -> Activity:
        """Do, then write."""
        counter = stage.thread.counter
        begin = counter.read_tsc()
        yield from stage.all(self.body)
        # Another CPU's counter may be behind the one on which it began.
        end = max(begin, counter.read_tsc())
        _write(stage, stage.writer.duration_complete, self, self.complete, begin, end)


@attrs.frozen
class Async:
    """Write an event of an asynchronous operation."""

    async_: str = parameter(help="which part", choices=("begin", "instant", "end"))
    name: str = parameter(help="name of the operation")
    id: int | str = parameter(help=_ID, least=0, most=U64_MAX, rounds=True)
    category: str = parameter("", help=_CATEGORY)
    args: dict[str, Argument] = parameter(factory=dict, help=_ARGS)

    def do(self, stage: ActionContext) -> None:
        """Write the event."""
        write = getattr(stage.writer, f"async_{self.async_}")
        _write(stage, write, self, self.name, stage.number(self.id))


@attrs.frozen
class Flow:
    """Write an event of a flow, within a slice."""

    flow: str = parameter(help="which part", choices=("begin", "step", "end"))
    name: str = parameter(help="name of the flow")
    id: int | str = parameter(help=_ID, least=0, most=U64_MAX, rounds=True)
    category: str = parameter("", help=_CATEGORY)
    args: dict[str, Argument] = parameter(factory=dict, help=_ARGS)

    def do(self, stage: ActionContext) -> None:
        """Write the event."""
        write = getattr(stage.writer, f"flow_{self.flow}")
        _write(stage, write, self, self.name, stage.number(self.id))


@attrs.frozen
class Counter:
    """Write values of a counter."""

    counter: str = parameter(help="name of the counter")
    series: dict[str, int | float | str] = parameter(
        help="its values, by the series' names", rounds=True
    )
    id: int | str = parameter(0, help="id of the counter", least=0, most=U64_MAX, rounds=True)
    category: str = parameter("", help=_CATEGORY)

    def do(self, stage: ActionContext) -> None:
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
    """Write an instant event."""

    instant: str = parameter(help="name of the event")
    category: str = parameter("", help=_CATEGORY)
    args: dict[str, Argument] = parameter(factory=dict, help=_ARGS)
    scope: str = parameter("", help="whose moment it is", choices=("", *SCOPES.values()))

    def do(self, stage: ActionContext) -> None:
        """Write the event."""
        _write(stage, stage.writer.instant, self, self.instant, scope=self.scope or None)


@attrs.frozen
class Log:
    """Write a log record."""

    log: str = parameter(help="the line")

    def do(self, stage: ActionContext) -> None:
        """Write the record."""
        stage.writer.log(
            stage.text(self.log), thread=stage.ids, timestamp=stage.thread.counter.read_tsc()
        )


@attrs.frozen
class Blob:
    """Write a blob."""

    blob: str = parameter(help="name of the blob")
    hex: str = parameter(help="its bytes, in hex")

    def __attrs_post_init__(self) -> None:
        """Raise ValueError for text that is not hex."""
        bytes.fromhex(self.hex)

    def do(self, stage: ActionContext) -> None:
        """Write the record."""
        stage.writer.blob(stage.text(self.blob), bytes.fromhex(self.hex))


@attrs.frozen
class Loop(workload.Loop):
    """Repeat actions."""

    body: list[Action] = parameter(help=BODY)


Action = (
    Slice | Begin | End | Complete | Async | Flow | Counter | Instant | Log | Blob
    | CommonAction | Loop
)  # fmt: skip


# --- Threads and the scheduler -------------------------------------------------------------------


@attrs.frozen
class TraceThread(workload.ThreadParameters):
    """Start a thread that traces."""

    provider: str = parameter(
        help="the trace provider that it writes to",
        refers="device:trace_provider",
    )
    script: list[Action] = parameter(help="what it does")

    def do(self, run: Run) -> Outcome:
        """Start the thread; it runs when time passes."""
        writer = writer_of(run, self.provider)
        started_thread = workload.start(self, run, self.provider, writer, self.script)
        pid, tid = started_thread.ids
        named_pids: set[int] = run.shared(("fx_trace.named", self.provider), set)
        if pid not in named_pids:
            named_pids.add(pid)
            writer.process(pid, self.process)
        writer.thread(pid, tid, self.thread)
        return Outcome.ok(pid=pid, tid=tid)


def writer_of(run: Run, provider: str) -> TraceWriter:
    """Return the writer of a provider, which all threads share; its clock is the current CPU's."""
    return run.shared(
        ("fx_trace.write.writer", provider),
        lambda: TraceWriter(run.device(provider), clock=workload.target_of(run).counter),
    )


@attrs.frozen
class TraceScheduling:
    """Write context switches and wakeups, from here on."""

    provider: str = parameter(
        help="the trace provider that they are written to",
        refers="device:trace_provider",
    )
    wakers: bool = parameter(
        False, help="whether wakeups name the thread that sent them, in an argument `waker`"
    )

    def do(self, run: Run) -> Outcome:
        """Listen to the scheduler."""
        target = workload.target_of(run)
        writer = writer_of(run, self.provider)
        if not self.wakers:
            target.listen(writer)
        elif isinstance(target, KnowsWakers):
            target.listen(_WakersWriter(writer, target))
        else:
            return Outcome.failed(
                "this target does not know who wakes a thread: leave out `wakers`"
            )
        return Outcome.ok()


@attrs.frozen
class _WakersWriter:
    """Writes scheduler events; a wakeup that a thread sent names it."""

    writer: TraceWriter
    target: KnowsWakers

    def context_switch(self, **switch: Any) -> None:
        """Write a context switch."""
        self.writer.context_switch(**switch)

    def wakeup(self, **wakeup: Any) -> None:
        """Write a wakeup, with the koid of its waker."""
        waker = self.target.waker
        args = {} if waker is None else {"waker": values.Koid(waker[1])}
        self.writer.wakeup(**wakeup, args=args)


# --- Replaying a capture -------------------------------------------------------------------------


@attrs.frozen
class TraceReplay(workload.ReplayParameters):
    """Write the records of a trace again, each at its own time."""

    instead: ClassVar[str] = "provider"

    provider: str = parameter(
        "",
        help="a trace provider that all records go to, with slots of its own, instead of an output",
        refers="device:trace_provider",
    )

    def do(self, run: Run) -> Outcome:
        """Replay a capture on the target."""
        path = run.file(self.capture)
        with run.host.open(path, format="trace") as capture:
            if capture.big_endian:
                raise UsageError(
                    "a target writes little-endian words, and this capture is big-endian",
                    path=str(self.capture),
                    remedy="`fxf convert IN OUT -o big_endian=no` makes another one of it",
                )
            if self.provider:
                return _into_provider(self.provider, capture.records(), run)
            writes = list(_writes(capture.records()))
        return _as_archive(self.as_, writes, run)


@attrs.frozen
class _Write:
    """Bytes of an archive: a record of a provider, or metadata of the trace manager."""

    provider: int | None
    data: bytes
    """Of a provider's record, only their number is used."""
    ns: int | None
    """Time of writing in ns."""


def _writes(records: Iterator[TraceRecord]) -> Iterator[_Write]:
    """Yield what an archive is made of, in order."""
    encoder = RecordEncoder()
    provider = DEFAULT_PROVIDER
    for record in records:
        record_bytes = encoder.encode(record)
        if isinstance(record, ProviderInfo | ProviderSection):
            provider = record.id
        if record.record in {"metadata", "padding", "damaged"}:
            yield _Write(None, record_bytes, None)
        else:
            yield _Write(provider, record_bytes, record.ns)


def _as_archive(name: str, writes: list[_Write], run: Run) -> Outcome:
    """Write each provider's records into a buffer of its own, and collect them in sections.

    A buffer keeps the order of its records; the order of sections is that of the capture.
    """
    target = workload.target_of(run)
    buffer_sizes: collections.Counter[int] = collections.Counter()
    for write in writes:
        if write.provider is not None:
            buffer_sizes[write.provider] += len(write.data)
    buffers = {id: target.trace_buffer(size) for id, size in buffer_sizes.items()}
    provider_writes = [write for write in writes if write.provider in buffers]

    def put(write: _Write) -> bool:
        assert write.provider is not None  # noqa: S101 (of a provider, all of them)
        return bool(buffers[write.provider].put(write.data))

    dropped = workload.replay(run, provider_writes, put)["dropped"]
    next_offsets = dict.fromkeys(buffers, BUFFER_HEADER_BYTES)
    archive = bytearray()
    for write in writes:
        if write.provider is None:
            archive += write.data
            continue
        offset = next_offsets[write.provider]
        archive += buffers[write.provider].memory.read(offset, len(write.data))
        next_offsets[write.provider] = offset + len(write.data)
    run.put(name, bytes(archive))
    count = len(provider_writes)
    facts = {"records": count, "providers": len(buffers), "bytes": len(archive)}
    if dropped:
        return Outcome.failed(f"the target dropped {dropped:,} of {count:,} records", **facts)
    return Outcome.ok(f"{count:,} records of {len(buffers)} providers", **facts)


def _into_provider(provider: str, records: Iterator[TraceRecord], run: Run) -> Outcome:
    """Write all records to one provider, as a program with string and thread slots of its own."""
    writer = writer_of(run, provider)
    # Slots are the writer's own; rates are the target's.
    left_out = {"string", "thread", "metadata", "initialization", "padding", "damaged"}
    records_to_write = [record for record in records if record.record not in left_out]
    return workload.counted(workload.replay(run, records_to_write, writer.write))
