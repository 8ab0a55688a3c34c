"""Steps of scenarios: threads that log, manifests, and replay of captures.

They run the writer on any target of a scenario (``fxframework.model.target.Target``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import ClassVar

import attrs

from fx_log import format as wire
from fx_log.format import LogRecord
from fx_log.read.records import LogFileRecord
from fx_log.severity import Level
from fx_log.write.rewriter import RecordEncoder
from fx_log.write.writer import LogWriter, add_dropped_count
from fxframework.errors import UsageError
from fxframework.kit import arguments as values
from fxframework.kit import workload
from fxframework.kit.steps import Outcome, Run, parameter
from fxframework.kit.workload import BODY, ArgumentType, CommonAction
from fxframework.model.target import DatagramSink
from fxframework.wire.cursor import limits_of

LEVELS = tuple(level.name for level in Level)
_TAG = "the tag of the component, which is in the header of every record; 0 is none"
_SOCKET = "the log socket that it writes to"


# --- Actions of a thread -------------------------------------------------------------------------


@attrs.frozen
class Logger:
    """The writer of a thread's process, and the common fields of the thread's records."""

    writer: LogWriter
    socket: DatagramSink
    tags: Sequence[str]
    tag: int
    now: Callable[[], int]


ActionContext = workload.ActionContext[Logger]


class Argument(workload.Argument):
    """A key's value: a TOML value, or a table with the type, ``{ uint64 = 5 }``."""

    types: ClassVar[Mapping[str, ArgumentType]] = {
        "double": ArgumentType(values.Double),
        "int64": ArgumentType(values.Int64, limits=limits_of(64, True)),
        "null": ArgumentType(lambda _: values.Null(), (bool,)),
        "string": ArgumentType(values.String, (str,)),
        "uint64": ArgumentType(values.Uint64, limits=limits_of(64, False)),
    }


@attrs.frozen
class Log:
    """Write a record."""

    log: str = parameter(help="its message")
    severity: int | str = parameter(
        "INFO", help="a level, or the byte itself", least=0, most=255, choices=LEVELS
    )
    tags: list[str] = parameter(factory=list, help="its tags, before those of the thread")
    keys: dict[str, Argument] = parameter(
        factory=dict, help="its keys: values, or tables that say the type, such as { uint64 = 5 }"
    )
    file: str | None = parameter(None, help="the source file that logs it")
    line: int | None = parameter(None, help="the line of that file", least=0)

    def __attrs_post_init__(self) -> None:
        """Raise ValueError for a line without a file."""
        if self.line is not None and self.file is None:
            raise ValueError("`line` needs `file`")

    def do(self, stage: ActionContext) -> None:
        """Write the record."""
        logger = stage.writer
        pid, tid = stage.ids
        file = None
        if self.file is not None:
            file = stage.text(self.file)
        logger.writer.write(
            self.severity,
            stage.text(self.log),
            stage.args(self.keys),
            time=logger.now(),
            tags=[stage.text(tag) for tag in (*self.tags, *logger.tags)],
            file=file,
            line=self.line,
            pid=pid,
            tid=tid,
            tag_bits=logger.tag,
        )


@attrs.frozen
class Datagram:
    """Send raw bytes, which the log service may find invalid."""

    datagram: str = parameter(help="the bytes, in hex")

    def __attrs_post_init__(self) -> None:
        """Raise ValueError for text that is not hex."""
        bytes.fromhex(self.datagram)

    def do(self, stage: ActionContext) -> None:
        """Send the bytes."""
        stage.writer.socket.send(bytes.fromhex(self.datagram))


@attrs.frozen
class Loop(workload.Loop):
    """Repeat actions."""

    body: list[Action] = parameter(help=BODY)


Action = Log | Datagram | CommonAction | Loop


# --- Threads and components ----------------------------------------------------------------------


@attrs.frozen
class LogThread(workload.ThreadParameters):
    """Start a thread that logs."""

    socket: str = parameter(help=_SOCKET, refers="device:log_socket")
    script: list[Action] = parameter(help="what it does")
    tag: int = parameter(0, help=_TAG, least=0, most=wire.CONTROL - 1)
    tags: list[str] = parameter(factory=list, help="tags of all its records")
    clock: str = parameter(
        "boot", help="the clock of the records' times", choices=("boot", "monotonic")
    )

    def do(self, run: Run) -> Outcome:
        """Start the thread; it runs when time passes.

        Drops of a socket are counted by process: the next record of any of its threads carries the
        count.
        """
        socket = _socket(run, self.socket)
        clock = workload.target_of(run).clock
        writer = run.shared(
            ("fx_log.write.writer", self.socket, self.process),
            lambda: LogWriter(socket, clock=clock, always_file_line=True),
        )
        now = clock.boot_ns if self.clock == "boot" else clock.monotonic_ns
        logger = Logger(writer, socket, tuple(self.tags), self.tag, now)
        pid, tid = workload.start(self, run, self.socket, logger, self.script).ids
        return Outcome.ok(pid=pid, tid=tid)


@attrs.frozen
class LogManifest:
    """Name the component of a tag, from here on."""

    socket: str = parameter(help="the log socket that it is said in", refers="device:log_socket")
    tag: int = parameter(help="the tag", least=0, most=wire.CONTROL - 1)
    moniker: str = parameter(help="the component's moniker, such as core/network/netstack")
    url: str = parameter(help="its url")

    def do(self, run: Run) -> Outcome:
        """Send the control record."""
        writer = LogWriter(_socket(run, self.socket), pid=0, tid=0)
        if writer.manifest(self.tag, self.moniker, self.url):
            return Outcome.ok(taken=True)
        return Outcome.ok("the socket dropped it", taken=False)


def _socket(run: Run, name: str) -> DatagramSink:
    """Return the socket of a name. Raises UsageError for another kind of device."""
    device = run.device(name)
    if not isinstance(device, DatagramSink):
        raise UsageError(
            f"device {name!r} is not a socket", remedy="log to a device of kind log_socket"
        )
    return device


# --- Replay of a capture --------------------------------------------------------------------------


@attrs.frozen
class LogReplay(workload.ReplayParameters):
    """Write the records of a log again, each at its own time."""

    instead: ClassVar[str] = "socket"

    socket: str = parameter(
        "",
        help="a log socket that all records go to, instead of an output; the one behind records "
        "that it drops tells how many they were",
        refers="device:log_socket",
    )

    def do(self, run: Run) -> Outcome:
        """Replay a capture on the target."""
        with run.host.open(run.file(self.capture), format="log") as capture:
            pieces = list(_pieces(capture.records()))
        if self.socket:
            return _into_socket(self.socket, pieces, run)
        return _as_log(self.as_, pieces, run)


@attrs.frozen
class _Piece:
    """Bytes of a log: a record that the target sends, or bytes between such records."""

    data: bytes
    log: bool = attrs.field(kw_only=True)
    ns: int | None = attrs.field(default=None, kw_only=True)
    """Time of sending in ns; None for a control record, whose time may not be of the clock."""


def _pieces(records: Iterator[LogFileRecord]) -> Iterator[_Piece]:
    """Yield the pieces of a log in order."""
    encoder = RecordEncoder("log")
    for record in records:
        is_log = isinstance(record, LogRecord)
        ns = record.ns if isinstance(record, LogRecord) and not record.control else None
        yield _Piece(encoder.encode(record), log=is_log, ns=ns)


def _as_log(name: str, pieces: list[_Piece], run: Run) -> Outcome:
    """Send all records through a socket, and collect them as a log service does.

    Padding and damage are not replayed; their bytes are copied to the output.
    """
    target = workload.target_of(run)
    sent = [piece for piece in pieces if piece.log]
    socket = target.log_socket(sum(len(piece.data) for piece in sent))
    lost = workload.replay(run, sent, lambda piece: socket.send(piece.data))["dropped"]
    log_bytes = bytearray()
    for piece in pieces:
        log_bytes += (socket.receive() or b"") if piece.log else piece.data
    run.put(name, bytes(log_bytes))
    facts = {"records": len(sent), "bytes": len(log_bytes)}
    if lost:
        return Outcome.failed(f"the target dropped {lost:,} of {len(sent):,} records", **facts)
    return Outcome.ok(f"{len(sent):,} records", **facts)


def _into_socket(name: str, pieces: list[_Piece], run: Run) -> Outcome:
    """Send all records to one socket, as a program that counts drops."""
    socket = _socket(run, name)
    uncounted = 0

    def send(piece: _Piece) -> bool:
        nonlocal uncounted
        counting_record = None
        if uncounted and piece.ns is not None:
            counting_record = add_dropped_count(piece.data, uncounted)
        is_sent = socket.send(counting_record or piece.data)
        if not is_sent:
            uncounted += 1
        elif counting_record is not None:
            uncounted = 0
        return is_sent

    counts = workload.replay(run, [piece for piece in pieces if piece.log], send)
    del counts["refused"]
    return workload.counted(counts)
