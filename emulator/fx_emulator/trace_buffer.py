"""Trace buffers: the engine that writes into one, and the manager that archives all of them.

A buffer is a header of 128 bytes, a durable buffer and two rolling ones, without gaps; a oneshot
buffer is a header and one rolling buffer (docs/formats/trace.md, "Trace buffers").
"""

from __future__ import annotations

import functools
import struct
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import attrs
import numpy as np

from fx_emulator.clock import VirtualClock
from fx_emulator.errors import Crash, EmulatorError

if TYPE_CHECKING:
    from fxframework.model.target import Memory

__all__ = ["Contents", "Mode", "Provider", "TraceEngine", "TraceManager"]

Mode = Literal["oneshot", "circular", "streaming"]
MODES: tuple[Mode, ...] = ("oneshot", "circular", "streaming")
"""Buffering modes, in the order of their numbers."""

# --- Layout ------------------------------------------------------------------------------------

MAGIC = 0x627566EE68656164
HEADER_BYTES = 128
PAGE = 4096
MAX_BYTES = 1 << 32
DURABLE_SHARE = 16
"""The durable buffer takes 1/16 of the buffer, up to 1 MiB."""
MAX_DURABLE_BYTES = 1 << 20
MAX_RECORD_BYTES = 256 << 10
"""The engine drops larger records."""

MAGIC_AT, MODE_AT, TOTAL_AT, DURABLE_SIZE_AT, ROLLING_SIZE_AT = 0, 8, 16, 24, 32
DURABLE_END_AT, ROLLING_END_AT, DROPPED_AT = 40, (48, 56), 64

# The state word: offset in bits 0 to 31, wrapped count in 32 to 61, buffer 0 and 1 filled.
_OFFSET = (1 << 32) - 1
_WRAPPED_SHIFT = 32
_WRAPPED = (1 << 30) - 1
_FILLED = (1 << 62, 1 << 63)

_METADATA, _BLOB, _LARGE = 0, 5, 15
_MAX_WORDS = 4095
"""Most words of a record that is not large."""
_TRACE_MAGIC = struct.pack("<Q", 0x0016547846040010)
_WORD = struct.Struct("<Q")
_UNPACK = _WORD.unpack_from
_HEADER = struct.Struct("<16Q")
_ZERO = bytes(8)


@attrs.frozen
class _Parts:
    """Sizes in bytes of the durable buffer and of each rolling one, which give their positions."""

    durable: int
    rolling: int

    @classmethod
    def of(cls, total: int, mode: Mode) -> _Parts:
        available = total - HEADER_BYTES
        if mode == "oneshot":
            return cls(0, available)
        durable = min(available // DURABLE_SHARE, MAX_DURABLE_BYTES)
        # The rest must divide into two halves of whole words.
        durable += (available - durable) % 16
        return cls(durable, (available - durable) // 2)

    def start(self, half: int) -> int:
        """Return the first byte of a rolling buffer."""
        return HEADER_BYTES + self.durable + half * self.rolling


def _size_of(word: int) -> int:
    """Return the bytes of a record, from its header word."""
    large = word & 15 == _LARGE
    return (word >> 4 & (0xFFFFFFFF if large else 0xFFF)) * 8


# --- The engine --------------------------------------------------------------------------------


class TraceEngine:
    """The trace engine of a provider, which writes records into its buffer.

    ``memory`` has a multiple of 4096 bytes, up to 4 GiB; its contents are overwritten. A streaming
    engine calls ``on_full(wrapped_count, durable_data_end)`` after it has switched to the other
    half. While both halves are full it drops records, until ``saved`` is called for the older one.

    ``durable_full`` selects what follows the first durable record without room, besides its loss:
    ``drop``: nothing, and writers write strings inline; ``stop``: every later record is dropped
    too, since it may refer to the lost one; ``pad``: as ``stop``, and blobs without a name fill the
    rest of the current half, as the newest engine does.

    A record is committed by a single last store, that of its header word; by then a zero word
    follows the record. A reader between any two stores therefore finds whole records only, and a
    scan by sizes ends after the last one. Raises EmulatorError for an invalid memory, mode or
    record.
    """

    def __init__(
        self,
        memory: Memory,
        mode: Mode = "oneshot",
        *,
        on_full: Callable[[int, int], None] | None = None,
        durable_full: Literal["drop", "stop", "pad"] = "drop",
    ) -> None:
        if mode not in MODES:
            raise EmulatorError(
                f"unknown buffering mode {mode!r}; the modes are {', '.join(MODES)}"
            )
        if memory.size % PAGE or not PAGE <= memory.size <= MAX_BYTES:
            raise EmulatorError(
                f"invalid trace buffer size {memory.size}: must be a multiple of {PAGE}, up to "
                f"{MAX_BYTES}"
            )
        if durable_full not in {"drop", "stop", "pad"}:
            raise EmulatorError(f"durable_full is 'drop', 'stop' or 'pad', not {durable_full!r}")
        self.memory = memory
        self._write = memory.write
        self._store = memory.store_u64
        self.mode: Mode = mode
        self.faults: list[Callable[[int], bool]] = []
        """Functions that return whether to drop record ``number`` (from 0)."""
        self.on_full = on_full
        self.durable_full = durable_full
        self.lock = threading.RLock()
        """Held by a writer while it encodes and puts a record."""
        self.keeps_order = mode == "oneshot"
        """Whether readers see records in the order of ``put``; if not, durable ones come first."""
        self.records = 0
        """Records committed so far."""
        self.dropped = 0
        """Records dropped so far; stored in the header when the engine stops."""
        self.state = 0
        """The state word."""
        self.durable_used = 0
        """Bytes used in the durable buffer."""
        self.stopped = False
        """Whether ``stop`` was called."""
        self.halted = False
        """Whether a full buffer has ended tracing for good."""
        self._parts = _Parts.of(memory.size, mode)
        self._start = self._parts.start(0)
        self._format()

    @property
    def offset(self) -> int:
        """Bytes used in the current half."""
        return self.state & _OFFSET

    @property
    def wrapped_count(self) -> int:
        """How often the halves were switched, modulo 2**30."""
        return self.state >> _WRAPPED_SHIFT & _WRAPPED

    def filled(self, half: int) -> bool:
        """Return whether a half is full and waits to be saved."""
        return bool(self.state & _FILLED[half])

    def has_room(self, nbytes: int) -> bool:
        """Return whether a durable record of ``nbytes`` would fit."""
        if self.halted:
            return False
        if self.mode == "oneshot":
            return self.offset + nbytes <= self._parts.rolling
        return self.durable_used + nbytes <= self._parts.durable

    def put(self, record: bytes, *, durable: bool = False) -> bool:
        """Commit one whole record. Return False if it was dropped, or tracing is stopped.

        A ``durable`` record (a string, a thread, the initialization) goes to the durable buffer,
        which is never overwritten, if there is one. Raises EmulatorError for bytes that are not one
        record, and for metadata, which only the manager writes.
        """
        nbytes = len(record)
        word: int = _UNPACK(record)[0] if nbytes >= 8 else 0
        kind = word & 15
        words = word >> 4 & (0xFFF if kind != _LARGE else 0xFFFFFFFF)
        if nbytes != 8 * words or kind == _METADATA:
            raise EmulatorError(
                f"invalid record of {nbytes} bytes that begins with {word:#018x}: put one whole "
                "record that is not metadata"
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
        # The header word is stored last; until then a reader finds a zero word there.
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
        """Mark the half that was current at ``wrapped_count`` as saved, so that it can be reused.

        The manager calls it, with the bytes of the durable buffer saved. Values that do not fit the
        waiting half are ignored.
        """
        waiting = wrapped_count + 1 & _WRAPPED == self.wrapped_count
        if waiting and durable_data_end <= self.durable_used:
            self.state &= ~_FILLED[wrapped_count & 1]

    def stop(self) -> None:
        """Stop tracing: the header gets the ends of the records and the count of dropped ones."""
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
        """Return the word of version 0, mode and wrapped count."""
        return MODES.index(self.mode) << 16 | self.wrapped_count << 32

    def _format(self) -> None:
        """Write an empty buffer. Its magic is stored last: until then the buffer is invalid."""
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
        """Switch to the other half. Return False if it waits to be saved, or does not exist.

        The fourth store switches. Before it, the filled half reads whole as the current one, after
        it as the older one; the other half reads unchanged up to the first store, then as empty.
        """
        if self.mode == "oneshot":
            # Permanent: later records must not appear without the lost ones.
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
        """Fill the rest of the current half with unnamed blobs."""
        limit = self._parts.rolling
        while self.offset < limit:
            words = min((limit - self.offset) // 8, _MAX_WORDS)
            header = _BLOB | words << 4 | (words - 1) * 8 << 32 | 1 << 48
            place, end = self._start + self.offset, self.offset + 8 * words
            self._write(place + 8, bytes(8 * words - (8 if end == limit else 0)))
            self._store(place, header)
            self.state += 8 * words


# --- Contents of a buffer ----------------------------------------------------------------------


@attrs.frozen
class Contents:
    """The contents of a buffer, whether stopped or left by a crash, as a manager reads them."""

    mode: Mode
    wrapped_count: int
    dropped: int
    durable: bytes
    """Records of the durable buffer."""
    rolling: tuple[bytes, ...]
    """Records of the older half, if halves were switched, and of the current one."""

    @classmethod
    def of(cls, image: bytes) -> Contents | None:
        """Return the contents of a buffer's bytes; None if its header is invalid.

        In oneshot mode, and where the header gives no end, records are scanned by their sizes, up
        to a size of zero or a record that does not fit. A record that exactly fills the buffer is
        kept; the reference manager loses it.
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
    """Return whether sizes and data ends of a header fit together."""
    if any(number % 8 for number in (parts.durable, parts.rolling, *ends)):
        return False
    sizes = (parts.durable, parts.rolling, parts.rolling)
    if any(end > size for end, size in zip(ends, sizes, strict=True)):
        return False
    if mode == "oneshot":
        return not parts.durable and parts.rolling == total - HEADER_BYTES
    return parts.durable < parts.rolling and parts.start(2) == total


def _scan(image: bytes, start: int, size: int) -> int:
    """Return the bytes that records take from byte ``start``, at most ``size``."""
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
    """A trace provider, as the manager sees it."""

    id: int
    name: str
    engine: TraceEngine
    waiting: tuple[int, int, int] | None = None
    """A half to save: its due time (monotonic ns), wrapped count and durable data end."""
    saved_durable: int = 0
    """Bytes of the durable buffer that are in the archive already."""
    saved_wrapped: int | None = None
    """The wrapped count of the half that was saved last."""
    introduced: bool = False
    """Whether its provider info record is in the saved data."""
    crashed: Crash | None = None
    """The crash that kept it from stopping, or None."""


class TraceManager:
    """The trace manager: saves the filled halves of streaming providers, and makes the archive.

    A filled half is saved ``save_delay_ns`` later (0: at once); with ``None`` only ``save`` does
    it.
    """

    def __init__(self, clock: VirtualClock, *, save_delay_ns: int | None = 0) -> None:
        if save_delay_ns is not None and save_delay_ns < 0:
            raise EmulatorError(
                f"invalid save_delay_ns {save_delay_ns}: must be 0 or more, or None"
            )
        self.clock = clock
        self.save_delay_ns = save_delay_ns
        self.providers: list[Provider] = []
        self._streamed = bytearray()
        clock.listeners.append(self._time_passed)

    def add(self, name: str, engine: TraceEngine) -> Provider:
        """Add a provider, which gets the next id. Sets its engine's ``on_full``."""
        if len(name.encode()) > 0xFF:
            raise EmulatorError(f"provider name {name!r} is too long: at most 255 bytes of UTF-8")
        provider = Provider(len(self.providers) + 1, name, engine)
        self.providers.append(provider)
        engine.on_full = functools.partial(self._filled, provider)
        return provider

    def save(self) -> int:
        """Save every waiting half at once. Return their number."""
        waiting = [provider for provider in self.providers if provider.waiting]
        for provider in waiting:
            self._save(provider)
        return len(waiting)

    def stop(self) -> None:
        """Stop tracing in all providers; a crashed one leaves its buffer unchanged."""
        for provider in self.providers:
            try:
                provider.engine.stop()
            except Crash as crash:
                provider.crashed = crash

    def archive(self) -> bytes:
        """Return the archive so far, from the saved data and the buffers' contents.

        The buffer of a provider that was not stopped, or crashed, is read up to its last record.
        Changes nothing.
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
                # The older half may have been saved already.
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
        """Append a waiting half to the saved data, after the new part of the durable buffer."""
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
        # A fault may have changed the header: limit its values to the buffer.
        end = min(words[ROLLING_END_AT[half] // 8], parts.rolling) // 8 * 8
        self._streamed += memory.read(parts.start(half), end)
        provider.saved_durable = durable_data_end
        provider.saved_wrapped = wrapped_count
        provider.engine.saved(wrapped_count, durable_data_end)


def _due(provider: Provider) -> tuple[int, int]:
    return (provider.waiting or (0,))[0], provider.id


def _introduction(provider: Provider) -> bytes:
    """Return provider info the first time, and a provider section after that."""
    if provider.introduced:
        return _metadata(2, provider.id << 20)
    name = provider.name.encode()
    return _metadata(1, provider.id << 20 | len(name) << 52, name)


def _metadata(kind: int, fields: int, payload: bytes = b"") -> bytes:
    """Return a metadata record; its type is in bits 16 to 19."""
    payload += bytes(-len(payload) % 8)
    return _WORD.pack((1 + len(payload) // 8) << 4 | kind << 16 | fields) + payload
