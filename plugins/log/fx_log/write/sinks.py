"""Sinks: where logs go, as records one after another, as packets, or into a ring in memory.

``Output`` makes one thing of a path, a ``Sink``, a file and a ``DatagramSink``. ``PacketStream`` is
our container of legacy packets, ``PacketWriter`` writes such packets a call at a time, and
``RingWriter`` keeps the ring of an IOBuffer over any ``Memory``.
"""

from __future__ import annotations

import contextlib
import os
import reprlib
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Protocol, Self

import attrs

from fx_log import layout as wire
from fx_log.read.arguments import refusal
from fx_log.read.records import LegacyPacket, StreamHeader
from fx_log.severity import Level, parse_level
from fx_log.write.arguments import (
    CUT,
    MAX_TIME,
    Arguments,
    Value,
    folded,
    octets,
    pairs,
    shortened,
    type_of,
    whole_number,
)
from fxframework.errors import UsageError
from fxframework.io.sink import Sink
from fxframework.io.words import U64_MAX, WORD, pad8
from fxframework.model.target import Clock, DatagramSink, Memory

__all__ = [
    "Levels",
    "OnTooLarge",
    "Output",
    "PacketStream",
    "PacketWriter",
    "RingTag",
    "RingWriter",
    "Where",
    "Writable",
    "boot_ns",
    "time_of",
    "verbose_severity",
]

OnTooLarge = Literal["refuse", "cut"]
"""What becomes of a text that is too long: the record is refused, or the text is cut."""


class Writable(Protocol):
    """Anything that takes bytes, in order."""

    def write(self, data: bytes, /) -> object:
        """Take them all."""


class Putting(Protocol):
    """Anything that takes whole records."""

    def put(self, record: bytes, /) -> object:
        """Take one; False where it was dropped."""


Where = str | os.PathLike[str] | Writable | Putting | DatagramSink
"""Where logs can go."""

BUFFER = 1 << 16
"""Bytes gathered before they go to a file that the output opened."""
_LEVEL_NAMES: dict[str, int] = {}
_LENGTH = struct.Struct("<I").pack
_ENTRY = struct.Struct("<QQ").pack
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
"""What stands for a zero byte, which would end a message."""
SHORT = wire.MAX_PACKET // 8
"""Characters of a message that any packet has room for."""
MAX_DROPPED = (1 << 32) - 1


def boot_ns() -> int:
    """Nanoseconds since boot on this machine, suspended time included where the system has it."""
    return _boot_ns()


def _clock_of_boot() -> Callable[[], int]:
    import time

    clock = getattr(time, "CLOCK_BOOTTIME", None)
    if clock is None:
        return time.monotonic_ns
    read = time.clock_gettime_ns
    return lambda: read(clock)


_boot_ns = _clock_of_boot()


def time_of(clock: Clock | Callable[[], int] | None) -> Callable[[], int]:
    """What gives the time of a record: a device's boot clock, a function, or this machine's."""
    if clock is None:
        return _boot_ns
    if isinstance(clock, Clock):
        return clock.boot_ns
    if not callable(clock):
        raise UsageError(
            f"invalid clock {reprlib.repr(clock)}",
            remedy="give a Clock, a function of no arguments, or None",
        )
    return clock


def severity_of(severity: Any) -> int:
    """A severity byte, given as a number or a name; WriteRefusedError for others."""
    if isinstance(severity, str):
        known = _LEVEL_NAMES.get(severity)
        if known is None:
            try:
                known = parse_level(severity)
            except UsageError as error:
                raise refusal("FXL0403", error.message) from None
            if len(_LEVEL_NAMES) < 64:
                _LEVEL_NAMES[severity] = known
        return known
    return whole_number("severity", severity, 0, 255)


def packet_severity_of(severity: Any) -> int:
    """What stands for a severity in a packet: also -10 to -1, of before there were bytes."""
    if isinstance(severity, str):
        return severity_of(severity)
    return whole_number("severity", severity, wire.LEGACY_SEVERITIES.start, 255)


class Output:
    """One way to hand over records, whatever takes them.

    ``where`` is a path, whose file appears whole when the output is closed, or not at all where
    an exception passes; a ``Sink`` or a file, which gets the bytes of each record and is left
    open; anything with ``put(bytes)``; or a ``DatagramSink``. ``head`` is written first, to what
    takes bytes, and the length of each record before it where ``framed``: a ``DatagramSink`` keeps
    them apart by itself.
    """

    def __init__(
        self, where: Where, *, force: bool = False, head: bytes = b"", framed: bool = False
    ) -> None:
        self._owned: Sink | None = None
        self._pending = bytearray()
        self.send: Callable[[bytes], bool]
        """Hand over one record; False where it was dropped."""
        if isinstance(where, str | os.PathLike):
            self._owned = Sink.open(Path(where), force=force)
            self._pending += head
            self.send = self._frame if framed else self._gather
            return
        for name in ("send", "put", "write"):
            give = getattr(where, name, None)
            if give is not None:
                break
        else:
            raise UsageError(
                f"logs cannot go to {reprlib.repr(where)}",
                remedy="give a path, a Sink, a file, or anything with send, put or write",
            )
        if name == "write":
            if head:
                give(head)

            def write(record: bytes) -> bool:
                give(_LENGTH(len(record)) + record if framed else record)
                return True

            self.send = write
            return
        self.send = lambda record: give(record) is not False

    def _frame(self, record: bytes) -> bool:
        return self._gather(_LENGTH(len(record)) + record)

    def _gather(self, record: bytes) -> bool:
        self._pending += record
        if len(self._pending) >= BUFFER:
            self.flush()
        return True

    def flush(self) -> None:
        """Hand over what is gathered."""
        if self._owned is not None and self._pending:
            self._owned.write(self._pending)
            self._pending = bytearray()

    def close(self) -> None:
        """Let the file of a path appear; anything else is the caller's."""
        if self._owned is None:
            return
        try:
            self.flush()
        except BaseException:
            self.abort()
            raise
        self._owned.commit()
        self.send = _refuse_more

    def abort(self) -> None:
        """Forget the file of a path."""
        if self._owned is not None:
            self._owned.abort()
            self.send = _refuse_more


def _refuse_more(record: bytes) -> bool:  # noqa: ARG001 (what every output takes)
    raise UsageError("the log is closed", remedy="write before it is, or open another one")


class Closing:
    """A writer with an output, used as a context manager."""

    _output: Output

    def flush(self) -> None:
        """Hand over what is gathered for a file."""
        self._output.flush()

    def close(self) -> None:
        """Let the file of a path appear; what the caller gave is left open."""
        self._output.close()

    def abort(self) -> None:
        """Forget the file of a path."""
        self._output.abort()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()


def verbose_severity(verbosity: int) -> int:
    """The severity of a verbosity from 1 on: INFO less it, but above DEBUG."""
    return max(Level.INFO - verbosity, Level.DEBUG + 1)


class Levels:
    """The calls of a program that logs, one for each severity; ``write`` takes what they are."""

    def trace(self, message: str, /, **keys: Value) -> bool:
        """A log of severity TRACE."""
        return self.write(Level.TRACE, message, keys)

    def debug(self, message: str, /, **keys: Value) -> bool:
        """A log of severity DEBUG."""
        return self.write(Level.DEBUG, message, keys)

    def info(self, message: str, /, **keys: Value) -> bool:
        """A log of severity INFO."""
        return self.write(Level.INFO, message, keys)

    def warn(self, message: str, /, **keys: Value) -> bool:
        """A log of severity WARN."""
        return self.write(Level.WARN, message, keys)

    def error(self, message: str, /, **keys: Value) -> bool:
        """A log of severity ERROR."""
        return self.write(Level.ERROR, message, keys)

    def fatal(self, message: str, /, **keys: Value) -> bool:
        """A log of severity FATAL."""
        return self.write(Level.FATAL, message, keys)

    def verbose(self, verbosity: int, message: str, /, **keys: Value) -> bool:
        """A log of a verbosity from 1 on: INFO less it, but above DEBUG."""
        number = whole_number("verbosity", verbosity, 0, U64_MAX)
        return self.write(verbose_severity(number), message, keys)

    def write(self, severity: int | str, message: str, keys: Arguments = ()) -> bool:
        """Write a log; False where it was dropped, or is below the minimum."""
        raise NotImplementedError


# --- Legacy packets ------------------------------------------------------------------------------


class PacketStream(Closing):
    """A file of legacy packets (``log-legacy-stream``), which takes them as a socket does.

    ``where`` is a path, a ``Sink`` or a file; the header is written at once.
    """

    def __init__(self, where: str | os.PathLike[str] | Writable, *, force: bool = False) -> None:
        self._output = Output(where, force=force, head=StreamHeader().pack(), framed=True)

    def send(self, packet: bytes) -> bool:
        """Add a packet, whatever is in it; True, since a file drops none."""
        return self._output.send(packet)


class PacketWriter(Levels, Closing):
    """Writes legacy packets, as the Go logger does, a call at a time.

    ``where`` is a ``DatagramSink``, which gets packets as they are, or what ``PacketStream``
    takes, which gets them in our container. ``tags`` are those of every packet, before those of
    the call. Without ``tid`` it is 0, as in Go. ``file`` and ``line`` have no place in a packet:
    for ERROR and above, or with ``always_file_line``, the message begins with ``file(line): ``. Nor
    have keys: these follow the message, as ``key=value``.

    A packet that a datagram sink drops is counted, and the next one that is sent says how many
    were (``dropped_logs``). With ``on_too_large="cut"`` a message is cut to what a packet holds
    and ends in "...", its zero bytes become U+FFFD, a tag is cut to 63 bytes, and tags beyond the
    fifth are left out; else they are refused, with nothing changed. Several threads may write.
    """

    def __init__(
        self,
        where: Where,
        *,
        pid: int | None = None,
        tid: int = 0,
        tags: Iterable[str] = (),
        clock: Clock | Callable[[], int] | None = None,
        minimum: int | str = wire.LEGACY_SEVERITIES.start,
        always_file_line: bool = False,
        on_too_large: OnTooLarge = "refuse",
        force: bool = False,
    ) -> None:
        self._cut = cuts(on_too_large)
        self._tags = texts(tags)
        self._pid = whole_number("pid", os.getpid() if pid is None else pid, 0, U64_MAX)
        self._tid = whole_number("tid", tid, 0, U64_MAX)
        self._now = time_of(clock)
        self.minimum = packet_severity_of(minimum)
        self._always_file_line = always_file_line
        self._lock = threading.Lock()
        self.dropped = 0
        """Packets dropped that no packet has told of yet."""
        self.cut = 0
        """Packets of which something was cut."""
        if not self._cut:  # refused now, and not at every packet
            LegacyPacket(pid=0, tid=0, timestamp=0, severity=0, tags=self._tags).pack()
        self._output = Output(where, force=force, head=StreamHeader().pack(), framed=True)

    def write(
        self,
        severity: int | str,
        message: str,
        keys: Arguments = (),
        *,
        time: int | None = None,
        tags: Iterable[str] = (),
        file: str | None = None,
        line: int | None = None,
        pid: int | None = None,
        tid: int | None = None,
        dropped: int = 0,
    ) -> bool:
        """Write a packet; False where it was dropped, or is below the minimum.

        ``severity`` is a level, its name, or the number in the packet: -10 to 255. ``dropped`` is
        added to what this writer counted. Raises WriteRefusedError (FXL0403 to FXL0407, FXL0410).
        """
        severity = packet_severity_of(severity)
        if severity < self.minimum:
            return False
        text = octets("the message", message).decode(errors="surrogateescape")
        if keys:
            text = folded(text, None, None, map(_shown, pairs(keys)))
        if file is not None and (severity >= Level.ERROR or self._always_file_line):
            place = octets("file", file).decode(errors="surrogateescape").rpartition("../")[2]
            text = f"{place}({whole_number('line', line or 0, 0, U64_MAX)}): {text}"
        every = (*self._tags, *texts(tags))
        whole = LegacyPacket(
            pid=self._pid if pid is None else whole_number("pid", pid, 0, U64_MAX),
            tid=self._tid if tid is None else whole_number("tid", tid, 0, U64_MAX),
            timestamp=whole_number(
                "time", self._now() if time is None else time, -MAX_TIME - 1, MAX_TIME
            ),
            severity=severity,
            tags=every,
            message=text,
        )
        packet = fitted(whole) if self._cut else whole
        more = whole_number("dropped", dropped, 0, U64_MAX)
        with self._lock:
            packet.dropped_logs = min(self.dropped + more, MAX_DROPPED)
            if not self._output.send(packet.pack()):
                self.dropped += more + 1
                return False
            self.dropped = 0
            self.cut += packet is not whole
            return True


def _shown(key: tuple[Any, Any]) -> tuple[str, Any]:
    """A key as a message shows it: a text's value is text."""
    name, value = key
    typed = type_of(value)
    if typed is None:
        raise refusal("FXL0410", f"the value of {reprlib.repr(name)} is a {type(value).__name__}")
    kind, plain = typed
    if kind == wire.ArgType.STRING:
        plain = octets("a value", plain).decode(errors="surrogateescape")
    return octets("a key", name).decode(errors="surrogateescape"), plain


def fitted(packet: LegacyPacket) -> LegacyPacket:
    """The packet, or one that holds what fits of it: fewer tags, shorter ones, a cut message."""
    if (
        len(packet.message) < SHORT
        and "\0" not in packet.message
        and len(packet.tags) <= wire.MAX_TAGS
        and all(0 < len(tag) <= wire.MAX_TAG_BYTES // 4 for tag in packet.tags)
    ):
        return packet  # without looking at bytes: a character has four at most
    # No "..." in a tag: it is a name, by which people filter.
    tags = tuple(
        _shorter(tag, wire.MAX_TAG_BYTES, mark=b"") for tag in packet.tags[: wire.MAX_TAGS] if tag
    )
    room = wire.MAX_PACKET - wire.PACKET_HEADER - len(tags) - 2
    room -= sum(len(octets("a tag", tag)) for tag in tags)
    message = _shorter(packet.message.replace("\0", REPLACEMENT), room)
    if (tags, message) == (packet.tags, packet.message):
        return packet
    return attrs.evolve(packet, tags=tags, message=message, raw=None)


def _shorter(text: str, limit: int, mark: bytes = CUT) -> str:
    data = octets("a text", text)
    return shortened(data, limit, mark).decode(errors="surrogateescape")


def cuts(on_too_large: str) -> bool:
    """Whether texts are cut; UsageError for what is neither "refuse" nor "cut"."""
    if on_too_large not in ("refuse", "cut"):
        raise UsageError(f"on_too_large is {on_too_large!r}", remedy='it is "refuse" or "cut"')
    return on_too_large == "cut"


def texts(given: Iterable[str], what: str = "tags") -> tuple[str, ...]:
    """Several texts; WriteRefusedError for one text, whose letters they would be (FXL0403)."""
    several: tuple[Any, ...] = ()
    if not isinstance(given, str | bytes):
        with contextlib.suppress(TypeError):
            several = tuple(given)
            if all(isinstance(text, str) for text in several):
                return several
    raise refusal("FXL0403", f"{what} are several texts, not {reprlib.repr(given)}")


# --- The ring of an IOBuffer ---------------------------------------------------------------------


class RingWriter:
    """Writes the ring of an IOBuffer over any ``Memory``.

    The memory is one page, with head and tail, and a ring of whole pages, 64 KiB at least.
    Where an entry finds no room, the oldest ones give way (``overwritten`` counts them). A reader
    who looks between any two stores finds whole entries: the tail moves before anything is
    overwritten, and the head after an entry is there. Of what the memory held before, only the
    head is read; the ring begins empty behind it. Several threads may write.
    """

    def __init__(self, memory: Memory) -> None:
        capacity = memory.size - wire.RING_PAGE
        if capacity < wire.RING_MINIMUM or capacity % wire.RING_PAGE:
            raise UsageError(
                f"a ring of {capacity} bytes is none",
                remedy=f"give a memory of {wire.RING_PAGE} bytes and whole pages of "
                f"{wire.RING_PAGE}, {wire.RING_MINIMUM} bytes at least",
            )
        self.capacity = capacity
        self.overwritten = 0
        """Entries that gave way to later ones."""
        self._memory = memory
        self._lock = threading.Lock()
        self._head = memory.load_u64(0)
        if self._head % WORD or self._head > U64_MAX >> 1:
            raise UsageError(
                f"the memory's head is {self._head:#x}, which no ring has",
                remedy="give a memory that is zero, or that holds a ring",
            )
        self._tail = self._head
        memory.store_u64(8, self._tail)
        self._entries: deque[int] = deque()

    @property
    def used(self) -> int:
        """Bytes that entries take now."""
        return self._head - self._tail

    def tagged(self, tag: int) -> RingTag:
        """The ring as a ``DatagramSink`` of one component."""
        return RingTag(self, tag)

    def put(self, tag: int, payload: bytes) -> None:
        """Add an entry. Raises WriteRefusedError (FXL0404, FXL0407), with nothing stored."""
        tag = whole_number("the tag of an entry", tag, 0, U64_MAX)
        size = wire.RING_ENTRY + len(payload)
        if size > wire.RING_MAX_ENTRY:
            raise refusal(
                "FXL0407", f"the entry has {size} bytes, one has {wire.RING_MAX_ENTRY} at most"
            )
        entry = pad8(_ENTRY(tag, len(payload)) + payload)
        with self._lock:
            while self.used + len(entry) > self.capacity:
                tail = self._tail + self._entries[0]
                self._memory.store_u64(8, tail)
                self._tail = tail
                self._entries.popleft()
                self.overwritten += 1
            at = self._head % self.capacity
            first = entry[: self.capacity - at]
            self._memory.write(wire.RING_PAGE + at, first)
            if len(first) < len(entry):
                self._memory.write(wire.RING_PAGE, entry[len(first) :])
            head = self._head + len(entry)
            self._memory.store_u64(0, head)
            self._head = head
            self._entries.append(len(entry))


class RingTag:
    """A component's way into a ring: what it sends becomes entries with its tag."""

    def __init__(self, ring: RingWriter, tag: int) -> None:
        self.ring = ring
        self.tag = whole_number("the tag of an entry", tag, 0, U64_MAX)

    def send(self, record: bytes) -> bool:
        """Add an entry; True, since it is the oldest that gives way."""
        self.ring.put(self.tag, record)
        return True
