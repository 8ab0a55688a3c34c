"""Trace buffers: the engine that records into one, and the manager that makes an archive of them.

A buffer is a header of 128 bytes and, without gaps, a durable buffer and two rolling ones; a
oneshot buffer has one rolling buffer and nothing else (docs/formats/trace.md, "Trace buffers").
"""

from __future__ import annotations

import functools
import struct
import threading
from collections.abc import Callable
from typing import Literal, Protocol

import attrs
import numpy as np

from fx_emulator.clock import VirtualClock
from fx_emulator.errors import Crash, EmulatorError

__all__ = ["Contents", "Mode", "Provider", "TraceEngine", "TraceManager", "TraceMemory"]

Mode = Literal["oneshot", "circular", "streaming"]
MODES: tuple[Mode, ...] = ("oneshot", "circular", "streaming")
"""Buffering modes, by their number."""

# --- Layout ------------------------------------------------------------------------------------

MAGIC = 0x627566EE68656164
HEADER_BYTES = 128
PAGE = 4096
MAX_BYTES = 1 << 32
DURABLE_SHARE = 16
"""The durable buffer has one part in so many, up to 1 MiB."""
MAX_DURABLE_BYTES = 1 << 20
MAX_RECORD_BYTES = 256 << 10
"""The engine drops a larger record."""

MAGIC_AT, MODE_AT, TOTAL_AT, DURABLE_SIZE_AT, ROLLING_SIZE_AT = 0, 8, 16, 24, 32
DURABLE_END_AT, ROLLING_END_AT, DROPPED_AT = 40, (48, 56), 64

# The state word: offset in bits 0 to 31, wrapped count in 32 to 61, buffer 0 and 1 filled.
_OFFSET = (1 << 32) - 1
_WRAPPED_SHIFT = 32
_WRAPPED = (1 << 30) - 1
_FILLED = (1 << 62, 1 << 63)

_METADATA, _BLOB, _LARGE = 0, 5, 15
_MAX_WORDS = 4095
"""Words of a record that is not large."""
_TRACE_MAGIC = struct.pack("<Q", 0x0016547846040010)
_WORD = struct.Struct("<Q")
_UNPACK = _WORD.unpack_from
_HEADER = struct.Struct("<16Q")
_ZERO = bytes(8)


class TraceMemory(Protocol):
    """What an engine and a manager need of a memory (``fxframework.model.target.Memory``)."""

    @property
    def size(self) -> int:
        """Bytes in the region."""

    def store_u64(self, offset: int, value: int) -> None:
        """Store a word, in one store."""

    def read(self, offset: int, n: int) -> bytes:
        """``n`` bytes from ``offset``."""

    def write(self, offset: int, buffer: bytes) -> None:
        """Store whole words in ascending order."""


@attrs.frozen
class _Parts:
    """Where the buffers lie, by the bytes of the durable one and of each rolling one."""

    durable: int
    rolling: int

    @classmethod
    def of(cls, total: int, mode: Mode) -> _Parts:
        available = total - HEADER_BYTES
        if mode == "oneshot":
            return cls(0, available)
        durable = min(available // DURABLE_SHARE, MAX_DURABLE_BYTES)
        # What is left halves into whole words.
        durable += (available - durable) % 16
        return cls(durable, (available - durable) // 2)

    def start(self, half: int) -> int:
        """The first byte of a rolling buffer."""
        return HEADER_BYTES + self.durable + half * self.rolling


def _size_of(word: int) -> int:
    """Bytes of the record that begins with a word."""
    large = word & 15 == _LARGE
    return (word >> 4 & (0xFFFFFFFF if large else 0xFFF)) * 8


# --- The engine --------------------------------------------------------------------------------


class TraceEngine:
    """The trace engine of a provider, recording into its buffer.

    ``memory`` has a multiple of 4096 bytes, up to 4 GiB; whatever it held is gone. A streaming
    engine calls ``on_full(wrapped_count, durable_data_end)`` once it has gone on in the other
    half, and drops records while both are full, until ``saved`` was called for the older one.

    ``durable_full`` says what becomes of the first durable record without room, beside that it is
    dropped: ``drop``, nothing, and writers write strings inline; ``stop``, every later record is
    dropped too, since it may refer to the lost one; ``pad``, likewise, and blobs without a name
    fill the rest of the current half, as the newest engine does.

    A record is committed by a single store, the last one, of its header word; behind it lies a zero
    word by then. So memory that is looked at between any two stores holds whole records, and a
    scan by sizes ends behind the last of them. Raises EmulatorError for a memory, mode, or record
    that the engine does not take.
    """

    def __init__(
        self,
        memory: TraceMemory,
        mode: Mode = "oneshot",
        *,
        on_full: Callable[[int, int], None] | None = None,
        durable_full: Literal["drop", "stop", "pad"] = "drop",
    ) -> None:
        if mode not in MODES:
            raise EmulatorError(f"no buffering mode {mode!r}; there are {', '.join(MODES)}")
        if memory.size % PAGE or not PAGE <= memory.size <= MAX_BYTES:
            raise EmulatorError(
                f"a trace buffer of {memory.size} bytes; it takes a multiple of {PAGE}, up to "
                f"{MAX_BYTES}"
            )
        if durable_full not in {"drop", "stop", "pad"}:
            raise EmulatorError(f"durable_full is 'drop', 'stop' or 'pad', not {durable_full!r}")
        self.memory = memory
        self._write = memory.write
        self._store = memory.store_u64
        self.mode: Mode = mode
        self.faults: list[Callable[[int], bool]] = []
        """Asked of each record that is put, by its number from 0: whether to drop it."""
        self.on_full = on_full
        self.durable_full = durable_full
        self.lock = threading.RLock()
        """Held by a writer while it makes and puts a record."""
        self.keeps_order = mode == "oneshot"
        """Whether records are read in the order of ``put``; otherwise durable ones come first."""
        self.records = 0
        """Records committed so far."""
        self.dropped = 0
        """Records dropped so far; the header says it once the engine is stopped."""
        self.state = 0
        """The state word."""
        self.durable_used = 0
        """Bytes of the durable buffer that records take."""
        self.stopped = False
        """Whether ``stop`` was called."""
        self.halted = False
        """Whether a full buffer has ended tracing for good."""
        self._parts = _Parts.of(memory.size, mode)
        self._start = self._parts.start(0)
        self._format()

    @property
    def offset(self) -> int:
        """Bytes of the current half that records take."""
        return self.state & _OFFSET

    @property
    def wrapped_count(self) -> int:
        """How often the halves were switched, modulo 2**30."""
        return self.state >> _WRAPPED_SHIFT & _WRAPPED

    def filled(self, half: int) -> bool:
        """Whether a half is full and waits to be saved."""
        return bool(self.state & _FILLED[half])

    def has_room(self, nbytes: int) -> bool:
        """Whether a durable record of so many bytes would be taken."""
        if self.halted:
            return False
        if self.mode == "oneshot":
            return self.offset + nbytes <= self._parts.rolling
        return self.durable_used + nbytes <= self._parts.durable

    def put(self, record: bytes, *, durable: bool = False) -> bool:
        """Commit one whole record; False where it was dropped, or tracing is stopped.

        A ``durable`` one (a string, a thread, the initialization) goes to the durable buffer,
        which is never written over, where there is one. Raises EmulatorError for bytes that are
        not one record, or for metadata, which is the manager's to write.
        """
        nbytes = len(record)
        word: int = _UNPACK(record)[0] if nbytes >= 8 else 0
        kind = word & 15
        words = word >> 4 & (0xFFF if kind != _LARGE else 0xFFFFFFFF)
        if nbytes != 8 * words or kind == _METADATA:
            raise EmulatorError(
                f"a provider puts whole records, and no metadata; {nbytes} bytes that begin with "
                f"{word:#018x} are none"
            )
        if self.stopped:
            return False
        apart = durable and self._parts.durable > 0
        limit = self._parts.durable if apart else self._parts.rolling
        if self.halted or nbytes > limit or nbytes > MAX_RECORD_BYTES:
            return self._drop(durable=apart)
        if self.faults:
            number = self.records + self.dropped
            if any(fault(number) for fault in self.faults):
                return self._drop(durable=apart)
        at = self.durable_used if apart else self.state & _OFFSET
        switched = False
        if at + nbytes > limit:
            if apart or not self._switch():
                return self._drop(durable=apart)
            at, switched = 0, True
        # The last store is the header word's; before it a reader finds a zero there.
        place = (HEADER_BYTES if apart else self._start) + at
        body = record[8:] if at + nbytes == limit else record[8:] + _ZERO
        if body:
            self._write(place + 8, body)
        self._store(place, word)
        self.records += 1
        if apart:
            self.durable_used += nbytes
        else:
            self.state += nbytes
        if switched and self.mode == "streaming" and self.on_full is not None:
            self.on_full(self.wrapped_count - 1 & _WRAPPED, self.durable_used)
        return True

    def saved(self, wrapped_count: int, durable_data_end: int) -> None:
        """The manager has saved the half that was current at ``wrapped_count``: it can be reused.

        It has so many bytes of the durable buffer, too. What does not fit the half that waits is
        ignored.
        """
        waiting = wrapped_count + 1 & _WRAPPED == self.wrapped_count
        if waiting and durable_data_end <= self.durable_used:
            self.state &= ~_FILLED[wrapped_count & 1]

    def stop(self) -> None:
        """End tracing: the header says where the records end, and how many were dropped."""
        if self.stopped:
            return
        self.stopped = True
        store = self._store
        store(DURABLE_END_AT, self.durable_used)
        store(ROLLING_END_AT[self.wrapped_count & 1], self.offset)
        store(MODE_AT, self._mode_word())
        store(DROPPED_AT, self.dropped)

    # --- stores ---

    def _mode_word(self) -> int:
        """Version 0, the mode and the wrapped count, which share a word."""
        return MODES.index(self.mode) << 16 | self.wrapped_count << 32

    def _format(self) -> None:
        """An empty buffer. Its magic comes last: before that there is none."""
        parts = self._parts
        fields = {
            MODE_AT: self._mode_word(),
            TOTAL_AT: self.memory.size,
            DURABLE_SIZE_AT: parts.durable,
            ROLLING_SIZE_AT: parts.rolling,
        }
        store = self._store
        store(MAGIC_AT, 0)
        starts = {HEADER_BYTES, parts.start(0)}
        if self.mode != "oneshot":
            starts.add(parts.start(1))
        for start in sorted(starts):
            store(start, 0)
        for at in range(8, HEADER_BYTES, 8):
            store(at, fields.get(at, 0))
        store(MAGIC_AT, MAGIC)

    def _switch(self) -> bool:
        """Go on in the other half; False where it waits to be saved, or there is none.

        The fourth store switches. Before it, the half that filled up reads whole as the current
        one, behind it as the older one; the other reads as it was up to the first, then as empty.
        """
        if self.mode == "oneshot":
            # For good: later records must not appear without the lost ones.
            self.halted = True
            return False
        wrapped = self.wrapped_count
        before, after = wrapped & 1, ~wrapped & 1
        if self.state & _FILLED[after]:
            return False
        offset = self.offset
        self._start = self._parts.start(after)
        store = self._store
        store(ROLLING_END_AT[after], 0)
        store(self._start, 0)
        store(ROLLING_END_AT[before], offset)
        self.state = (wrapped + 1 & _WRAPPED) << _WRAPPED_SHIFT
        if self.mode == "streaming":
            self.state |= _FILLED[before]
        store(MODE_AT, self._mode_word())
        return True

    def _drop(self, *, durable: bool) -> bool:
        self.dropped += 1
        if durable and not self.halted and self.durable_full != "drop":
            self.halted = True
            if self.durable_full == "pad":
                self._pad()
        return False

    def _pad(self) -> None:
        """Fill the rest of the current half with blobs without a name."""
        limit = self._parts.rolling
        while self.offset < limit:
            words = min((limit - self.offset) // 8, _MAX_WORDS)
            header = _BLOB | words << 4 | (words - 1) * 8 << 32 | 1 << 48
            place, end = self._start + self.offset, self.offset + 8 * words
            self._write(place + 8, bytes(8 * words - (8 if end == limit else 0)))
            self._store(place, header)
            self.state += 8 * words


# --- What a buffer holds -----------------------------------------------------------------------


@attrs.frozen
class Contents:
    """What a manager reads of a buffer, stopped or left by a crash."""

    mode: Mode
    wrapped_count: int
    dropped: int
    durable: bytes
    """Its records."""
    rolling: tuple[bytes, ...]
    """The records of the current half, behind those of the older one if halves were switched."""

    @classmethod
    def of(cls, image: bytes) -> Contents | None:
        """The contents of a buffer, all of its bytes given; None where its header is not sound.

        Where the header does not say the end of a buffer, and in oneshot mode, records are scanned
        by their sizes, up to a size of zero or a record that does not fit. One that exactly fills
        the buffer is kept; the reference manager loses it.
        """
        if len(image) < HEADER_BYTES or len(image) % 8:
            return None
        words = _HEADER.unpack_from(image)
        number, wrapped = words[1] >> 16 & 0xFF, words[1] >> 32
        parts = _Parts(words[3], words[4])
        ends = words[5:8]
        if (
            words[0] != MAGIC
            or words[1] & 0xFFFF
            or number >= len(MODES)
            or words[2] != len(image)
            or not _sound(parts, MODES[number], len(image), ends)
        ):
            return None
        mode = MODES[number]
        scanned = mode == "oneshot"

        def part(start: int, size: int, end: int) -> bytes:
            if scanned or not end:
                end = _scan(image, start, size)
            return image[start : start + end]

        halves = [wrapped & 1]
        if wrapped and not scanned:
            halves.insert(0, ~wrapped & 1)
        return cls(
            mode=mode,
            wrapped_count=wrapped,
            dropped=words[8],
            durable=part(HEADER_BYTES, parts.durable, ends[0]) if parts.durable else b"",
            rolling=tuple(
                part(parts.start(half), parts.rolling, ends[1 + half]) for half in halves
            ),
        )


def _sound(parts: _Parts, mode: Mode, total: int, ends: tuple[int, ...]) -> bool:
    """Whether sizes and data ends of a header fit each other."""
    if any(number % 8 for number in (parts.durable, parts.rolling, *ends)):
        return False
    sizes = (parts.durable, parts.rolling, parts.rolling)
    if any(end > size for end, size in zip(ends, sizes, strict=True)):
        return False
    if mode == "oneshot":
        return not parts.durable and parts.rolling == total - HEADER_BYTES
    return parts.durable < parts.rolling and parts.start(2) == total


def _scan(image: bytes, start: int, size: int) -> int:
    """Bytes that records take from byte ``start``, of ``size``."""
    words = np.frombuffer(image, "<u8", size // 8, start)
    at = 0
    while at < size:
        nbytes = _size_of(int(words[at // 8]))
        if not nbytes or nbytes > size - at:
            break
        at += nbytes
    return at


# --- The manager -------------------------------------------------------------------------------


@attrs.define(eq=False)
class Provider:
    """A provider of trace records, as the manager knows it."""

    id: int
    name: str
    engine: TraceEngine
    waiting: tuple[int, int, int] | None = None
    """A half to be saved: when (monotonic ns), its wrapped count, the durable data end."""
    saved_durable: int = 0
    """Bytes of the durable buffer that are in the archive already."""
    saved_wrapped: int | None = None
    """The wrapped count of the half that was saved last."""
    introduced: bool = False
    """Whether its info is in what was saved."""
    crashed: Crash | None = None
    """What kept it from stopping."""


class TraceManager:
    """The trace manager: saves what streaming providers have filled, and makes the archive.

    A half that filled up is saved ``save_delay_ns`` later, at once with 0; with ``None`` only
    ``save`` does it.
    """

    def __init__(self, clock: VirtualClock, *, save_delay_ns: int | None = 0) -> None:
        if save_delay_ns is not None and save_delay_ns < 0:
            raise EmulatorError(f"saving {save_delay_ns} ns later; it takes 0 ns at least, or None")
        self.clock = clock
        self.save_delay_ns = save_delay_ns
        self.providers: list[Provider] = []
        self._streamed = bytearray()
        clock.listeners.append(self._time_passed)

    def add(self, name: str, engine: TraceEngine) -> Provider:
        """Take a provider in; it gets the next id. Its engine's ``on_full`` becomes the manager."""
        if len(name.encode()) > 0xFF:
            raise EmulatorError(f"a provider's name has up to 255 bytes, not as {name!r}")
        provider = Provider(len(self.providers) + 1, name, engine)
        self.providers.append(provider)
        engine.on_full = functools.partial(self._filled, provider)
        return provider

    def save(self) -> int:
        """Save every half that waits, at once; how many there were."""
        waiting = [provider for provider in self.providers if provider.waiting]
        for provider in waiting:
            self._save(provider)
        return len(waiting)

    def stop(self) -> None:
        """End tracing in all providers; one that has crashed leaves its buffer as it is."""
        for provider in self.providers:
            try:
                provider.engine.stop()
            except Crash as crash:
                provider.crashed = crash

    def archive(self) -> bytes:
        """The archive so far, from what was saved and what the buffers hold.

        The buffer of a provider that was not stopped, or crashed, is read as far as its records
        go. Asking for it changes nothing.
        """
        out = bytearray(_TRACE_MAGIC)
        out += self._streamed
        for provider in self.providers:
            memory = provider.engine.memory
            contents = Contents.of(memory.read(0, memory.size))
            body = bytearray()
            if contents is not None:
                if contents.dropped:
                    body += _metadata(3, provider.id << 20)
                body += contents.durable[provider.saved_durable :]
                rolling = contents.rolling
                # The older half may be in the archive already.
                if provider.saved_wrapped == contents.wrapped_count - 1 & _WRAPPED:
                    rolling = rolling[-1:]
                body += b"".join(rolling)
            if body or not provider.introduced:
                out += _introduction(provider) + body
        return bytes(out)

    def _filled(self, provider: Provider, wrapped_count: int, durable_data_end: int) -> None:
        now, delay = self.clock.monotonic_ns(), self.save_delay_ns
        provider.waiting = (now + (delay or 0), wrapped_count, durable_data_end)
        if delay == 0:
            self._save(provider)

    def _time_passed(self) -> None:
        if not self.save_delay_ns:
            return
        now = self.clock.monotonic_ns()
        due = [each for each in self.providers if each.waiting and each.waiting[0] <= now]
        for provider in sorted(due, key=_due):
            self._save(provider)

    def _save(self, provider: Provider) -> None:
        """Put a half that waits into the archive, behind what is new in the durable buffer."""
        assert provider.waiting is not None  # noqa: S101
        _, wrapped_count, durable_data_end = provider.waiting
        provider.waiting = None
        memory = provider.engine.memory
        words = _HEADER.unpack(memory.read(0, HEADER_BYTES))
        parts = _Parts.of(memory.size, "streaming")
        half = wrapped_count & 1
        self._streamed += _introduction(provider)
        provider.introduced = True
        new = durable_data_end - provider.saved_durable
        self._streamed += memory.read(HEADER_BYTES + provider.saved_durable, new)
        # A header that a fault has changed is not believed beyond the buffer.
        end = min(words[ROLLING_END_AT[half] // 8], parts.rolling) // 8 * 8
        self._streamed += memory.read(parts.start(half), end)
        provider.saved_durable = durable_data_end
        provider.saved_wrapped = wrapped_count
        provider.engine.saved(wrapped_count, durable_data_end)


def _due(provider: Provider) -> tuple[int, int]:
    return (provider.waiting or (0,))[0], provider.id


def _introduction(provider: Provider) -> bytes:
    """Provider info the first time, a provider section then."""
    if provider.introduced:
        return _metadata(2, provider.id << 20)
    name = provider.name.encode()
    return _metadata(1, provider.id << 20 | len(name) << 52, name)


def _metadata(kind: int, fields: int, payload: bytes = b"") -> bytes:
    """A metadata record; its type is in bits 16 to 19."""
    payload += bytes(-len(payload) % 8)
    return _WORD.pack((1 + len(payload) // 8) << 4 | kind << 16 | fields) + payload
