"""Targets of logs: records one after another, packets, or a ring in memory.

``Output`` gives a path, a ``Sink``, a file and a ``DatagramSink`` one interface. ``PacketStream``
is a container of legacy packets, ``PacketWriter`` writes such packets a call at a time, and
``RingWriter`` keeps the ring of an IOBuffer in any ``Memory``.
"""

from __future__ import annotations

import contextlib
import os
import reprlib
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Literal, Protocol, Self

from fx_log import format as wire
from fx_log import rules
from fx_log.format import LegacyPacket, StreamHeader
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
    typed,
    whole_number,
)
from fxframework.errors import UsageError, refusal
from fxframework.io.sink import Sink
from fxframework.io.words import U64_MAX, WORD, pad8
from fxframework.model.target import Clock, DatagramSink, Memory

OnTooLarge = Literal["refuse", "cut"]
"""How a text that is too long is handled: refuse the record, or cut the text."""


class Writable(Protocol):
    """A target that accepts bytes in order."""

    def write(self, data: bytes, /) -> object:
        """Write all bytes."""


class Putting(Protocol):
    """A target that accepts whole records."""

    def put(self, record: bytes, /) -> object:
        """Put a record. May return False if it was dropped."""


Where = str | os.PathLike[str] | Writable | Putting | DatagramSink
"""Targets of logs."""

_LENGTH = struct.Struct("<I").pack
_ENTRY = struct.Struct("<QQ").pack
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
"""Replacement of a zero byte, which would end a message."""
SHORT = wire.MAX_PACKET // 8
"""Characters of a message that fit into any packet."""
MAX_DROPPED = (1 << 32) - 1
I64_MAX = (1 << 63) - 1


boot_ns: Callable[[], int] = time.monotonic_ns
"""Returns nanoseconds since this machine's boot, with suspended time where available."""
if hasattr(time, "CLOCK_BOOTTIME"):
    boot_ns = partial(time.clock_gettime_ns, time.CLOCK_BOOTTIME)


def time_of(clock: Clock | Callable[[], int] | None) -> Callable[[], int]:
    """Return the function that gives a record's time, for a Clock, a function, or None.

    None means this machine's boot clock. Raises UsageError for anything else.
    """
    if clock is None:
        return boot_ns
    if isinstance(clock, Clock):
        return clock.boot_ns
    if not callable(clock):
        raise UsageError(
            f"invalid clock {reprlib.repr(clock)}",
            remedy="give a Clock, a function of no arguments, or None",
        )
    return clock


def severity_of(severity: Any) -> int:
    """Return the severity byte of a number or name. Raises WriteRefusedError for others."""
    if not isinstance(severity, str):
        return whole_number("severity", severity, 0, 255)
    try:
        return _level_number(severity)
    except UsageError as error:
        raise refusal(rules.WRONG_TYPE, error.message) from None


_level_number = lru_cache(64)(parse_level)


def packet_severity_of(severity: Any) -> int:
    """Return the severity for a packet: also -10 to -1, from before severities were bytes."""
    if isinstance(severity, str):
        return severity_of(severity)
    return whole_number("severity", severity, wire.LEGACY_SEVERITIES.start, 255)


class Output:
    """A common interface to every target of records.

    ``where`` is a path, whose file appears complete on close, or not at all after an exception; a
    ``Sink`` or a file, which gets the bytes of each record and stays open; any object with
    ``put(bytes)``; or a ``DatagramSink``. A target of bytes gets ``head`` first and, if ``framed``,
    the length before each record; a ``DatagramSink`` keeps records apart by itself.
    """

    def __init__(
        self, where: Where, *, force: bool = False, head: bytes = b"", framed: bool = False
    ) -> None:
        self._owned: Sink | None = None
        self._closed = False
        self._give: Callable[[bytes], bool]
        target: Any = where
        if isinstance(where, str | os.PathLike):
            target = self._owned = Sink.open(Path(where), force=force)
        for name in ("send", "put", "write"):
            give = getattr(target, name, None)
            if give is not None:
                break
        else:
            raise UsageError(
                f"logs cannot go to {reprlib.repr(where)}",
                remedy="give a path, a Sink, a file, or anything with send, put or write",
            )
        if name != "write":
            self._give = lambda record: give(record) is not False
            return
        if head:
            give(head)

        def write(record: bytes) -> bool:
            if framed:
                record = _LENGTH(len(record)) + record
            give(record)
            return True

        self._give = write

    def send(self, record: bytes) -> bool:
        """Send one record; return False if it was dropped. Raises UsageError once closed."""
        if self._closed:
            raise UsageError(
                "the log is closed", remedy="write before closing it, or open another one"
            )
        return self._give(record)

    def close(self) -> None:
        """Make the file of a path appear; any other target belongs to the caller."""
        if self._owned is not None:
            self._owned.commit()
            self._closed = True

    def abort(self) -> None:
        """Discard the file of a path."""
        if self._owned is not None:
            self._owned.abort()
            self._closed = True


class Closing:
    """A writer with an output, usable as a context manager."""

    _output: Output

    def close(self) -> None:
        """Make the file of a path appear; any other target stays open."""
        self._output.close()

    def abort(self) -> None:
        """Discard the file of a path."""
        self._output.abort()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()


def verbose_severity(verbosity: int) -> int:
    """Return the severity of a verbosity from 1 on: INFO minus it, but above DEBUG."""
    return max(Level.INFO - verbosity, Level.DEBUG + 1)


class Levels:
    """One logging method for each severity; ``write`` does the work."""

    def trace(self, message: str, /, **keys: Value) -> bool:
        """Write a log of severity TRACE."""
        return self.write(Level.TRACE, message, keys)

    def debug(self, message: str, /, **keys: Value) -> bool:
        """Write a log of severity DEBUG."""
        return self.write(Level.DEBUG, message, keys)

    def info(self, message: str, /, **keys: Value) -> bool:
        """Write a log of severity INFO."""
        return self.write(Level.INFO, message, keys)

    def warn(self, message: str, /, **keys: Value) -> bool:
        """Write a log of severity WARN."""
        return self.write(Level.WARN, message, keys)

    def error(self, message: str, /, **keys: Value) -> bool:
        """Write a log of severity ERROR."""
        return self.write(Level.ERROR, message, keys)

    def fatal(self, message: str, /, **keys: Value) -> bool:
        """Write a log of severity FATAL."""
        return self.write(Level.FATAL, message, keys)

    def verbose(self, verbosity: int, message: str, /, **keys: Value) -> bool:
        """Write a log of a verbosity from 1 on: severity INFO minus it, but above DEBUG."""
        number = whole_number("verbosity", verbosity, 0, U64_MAX)
        return self.write(verbose_severity(number), message, keys)

    def write(self, severity: int | str, message: str, keys: Arguments = ()) -> bool:
        """Write a log. Return False if it was dropped, or is below the minimum."""
        raise NotImplementedError


# --- Legacy packets ------------------------------------------------------------------------------


class PacketStream(Closing):
    """A file of legacy packets (``log-legacy-stream``), with the interface of a socket.

    ``where`` is a path, a ``Sink`` or a file; the header is written at once.
    """

    def __init__(self, where: str | os.PathLike[str] | Writable, *, force: bool = False) -> None:
        self._output = Output(where, force=force, head=StreamHeader().pack(), framed=True)

    def send(self, packet: bytes) -> bool:
        """Append a packet, whatever its contents. Return True, since a file drops none."""
        return self._output.send(packet)


class PacketWriter(Levels, Closing):
    """Writes legacy packets, as the Go logger does, a call at a time.

    ``where`` is a ``DatagramSink``, which gets bare packets, or any target of ``PacketStream``,
    which gets a container. ``tags`` precede those of each call. ``tid`` defaults to 0, as in Go. A
    packet cannot hold ``file`` and ``line``: for ERROR and above, or with ``always_file_line``, the
    message begins with ``file(line): ``. Keys follow the message as ``key=value``.

    A packet that a datagram sink drops is counted, and the next one that is sent carries the count
    (``dropped_logs``). With ``on_too_large="cut"`` a message is cut to fit and ends in "...", its
    zero bytes become U+FFFD, a tag is cut to 63 bytes, and tags beyond the fifth are left out;
    otherwise such packets are refused without side effects. Several threads may write.
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
        """Dropped packets that no sent packet has counted yet."""
        self.cut = 0
        """Packets that were cut."""
        if not self._cut:  # refuse invalid tags now rather than at every packet
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
        """Write a packet. Return False if it was dropped, or is below the minimum.

        ``severity`` is a level, its name, or the number in the packet: -10 to 255. ``dropped`` is
        added to the writer's count. Raises WriteRefusedError.
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
        if time is None:
            time = self._now()
        whole_packet = LegacyPacket(
            pid=whole_number("pid", self._pid if pid is None else pid, 0, U64_MAX),
            tid=whole_number("tid", self._tid if tid is None else tid, 0, U64_MAX),
            timestamp=whole_number("time", time, -MAX_TIME - 1, MAX_TIME),
            severity=severity,
            tags=(*self._tags, *texts(tags)),
            message=text,
        )
        packet = whole_packet
        if self._cut:
            packet = fitted(whole_packet)
        dropped_before = whole_number("dropped", dropped, 0, U64_MAX)
        # Which packet counts those that were dropped, threads must agree about.
        with self._lock:
            packet.dropped_logs = min(self.dropped + dropped_before, MAX_DROPPED)
            if not self._output.send(packet.pack()):
                self.dropped += dropped_before + 1
                return False
            self.dropped = 0
            self.cut += packet is not whole_packet
            return True


def _shown(key: tuple[Any, Any]) -> tuple[str, Any]:
    """Return name and value of a key as a message shows them."""
    name, value = key
    kind, plain = typed(name, value)
    if kind == wire.ArgType.STRING:
        plain = octets("a value", plain).decode(errors="surrogateescape")
    return octets("a key", name).decode(errors="surrogateescape"), plain


def fitted(packet: LegacyPacket) -> LegacyPacket:
    """Return the packet, or a copy that fits: fewer and shorter tags, and a cut message."""
    if (
        len(packet.message) < SHORT
        and "\0" not in packet.message
        and len(packet.tags) <= wire.MAX_TAGS
        and all(0 < len(tag) <= wire.MAX_TAG_BYTES // 4 for tag in packet.tags)
    ):
        return packet  # fits in any case: a character has at most four bytes
    # No "..." in a tag: tags are names to filter by.
    tags = tuple(
        _shorter(tag, wire.MAX_TAG_BYTES, mark=b"") for tag in packet.tags[: wire.MAX_TAGS] if tag
    )
    message_room = wire.MAX_PACKET - wire.PACKET_HEADER - len(tags) - 2
    message_room -= sum(len(octets("a tag", tag)) for tag in tags)
    message = _shorter(packet.message.replace("\0", REPLACEMENT), message_room)
    if (tags, message) == (packet.tags, packet.message):
        return packet
    return packet.edited(tags=tags, message=message)


def _shorter(text: str, limit: int, mark: bytes = CUT) -> str:
    data = octets("a text", text)
    return shortened(data, limit, mark).decode(errors="surrogateescape")


def cuts(on_too_large: str) -> bool:
    """Return whether texts are cut. Raises UsageError unless "refuse" or "cut"."""
    if on_too_large not in ("refuse", "cut"):
        raise UsageError(f"invalid on_too_large {on_too_large!r}", remedy='use "refuse" or "cut"')
    return on_too_large == "cut"


def texts(given: Iterable[str], what: str = "tags") -> tuple[str, ...]:
    """Return several texts. Raises WriteRefusedError for a single text (WRONG_TYPE)."""
    several: tuple[Any, ...] = ()
    if not isinstance(given, str | bytes):
        with contextlib.suppress(TypeError):
            several = tuple(given)
            if all(isinstance(text, str) for text in several):
                return several
    raise refusal(
        rules.WRONG_TYPE, f"{what} must be a sequence of texts, not {reprlib.repr(given)}"
    )


# --- The ring of an IOBuffer ---------------------------------------------------------------------


class RingWriter:
    """Writes the ring of an IOBuffer into any ``Memory``.

    The memory is one page, with head and tail, and a ring of whole pages, at least 64 KiB. An entry
    without room overwrites the oldest ones (``overwritten`` counts them). A reader between any two
    stores finds whole entries: the tail moves before anything is overwritten, and the head after an
    entry is complete. Of the memory's earlier contents only the head is read; the ring starts empty
    there. Several threads may write.
    """

    def __init__(self, memory: Memory) -> None:
        capacity = memory.size - wire.RING_PAGE
        if capacity < wire.RING_MINIMUM or capacity % wire.RING_PAGE:
            raise UsageError(
                f"invalid ring size {capacity}: must be a multiple of {wire.RING_PAGE}, at least "
                f"{wire.RING_MINIMUM}",
                remedy=f"give a memory of {wire.RING_PAGE} bytes plus a ring of such a size",
            )
        self.capacity = capacity
        self.overwritten = 0
        """Number of entries overwritten by later ones."""
        self._memory = memory
        self._lock = threading.Lock()
        self._head = memory.load_u64(0)
        if self._head % WORD or self._head > I64_MAX:
            raise UsageError(
                f"invalid head {self._head:#x} in the memory of the ring",
                remedy="give a memory that is zero, or that holds a ring",
            )
        self._tail = self._head
        memory.store_u64(8, self._tail)
        self._entries: deque[int] = deque()

    @property
    def used(self) -> int:
        """Bytes of the entries in the ring."""
        return self._head - self._tail

    def tagged(self, tag: int) -> RingTag:
        """Return the ring as the ``DatagramSink`` of one component."""
        return RingTag(self, tag)

    def put(self, tag: int, payload: bytes) -> None:
        """Add an entry.

        Raises WriteRefusedError (OUT_OF_RANGE, TOO_LARGE) without storing anything.
        """
        tag = whole_number("the tag of an entry", tag, 0, U64_MAX)
        size = wire.RING_ENTRY + len(payload)
        if size > wire.RING_MAX_ENTRY:
            raise refusal(
                rules.TOO_LARGE, f"the entry has {size} bytes; at most {wire.RING_MAX_ENTRY} fit"
            )
        entry = pad8(_ENTRY(tag, len(payload)) + payload)
        with self._lock:
            while self.used + len(entry) > self.capacity:
                tail = self._tail + self._entries[0]
                self._memory.store_u64(8, tail)
                self._tail = tail
                self._entries.popleft()
                self.overwritten += 1
            place = self._head % self.capacity
            before_turn = entry[: self.capacity - place]
            self._memory.write(wire.RING_PAGE + place, before_turn)
            if len(before_turn) < len(entry):
                self._memory.write(wire.RING_PAGE, entry[len(before_turn) :])
            head = self._head + len(entry)
            self._memory.store_u64(0, head)
            self._head = head
            self._entries.append(len(entry))


class RingTag:
    """The ``DatagramSink`` of a component, whose records become entries with its tag."""

    def __init__(self, ring: RingWriter, tag: int) -> None:
        self.ring = ring
        self.tag = whole_number("the tag of an entry", tag, 0, U64_MAX)

    def send(self, record: bytes) -> bool:
        """Add an entry. Return True, since a ring overwrites the oldest entries instead."""
        self.ring.put(self.tag, record)
        return True
