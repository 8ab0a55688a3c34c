"""Trace buffers: the engine that writes into one, and the manager that archives all of them.

A buffer is a header of 128 bytes, a durable buffer and two rolling ones, without gaps; a oneshot
buffer is a header and one rolling buffer (docs/formats/trace.md, "Trace buffers").
"""

from __future__ import annotations

import functools
import struct
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, NamedTuple

import attrs
import numpy as np

from fx_emulator.clock import VirtualClock
from fx_emulator.errors import Crash, EmulatorError

if TYPE_CHECKING:
    from fxframework.model.target import Memory

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

# Offsets of the header's words.
MAGIC_AT = 0
MODE_AT = 8
TOTAL_AT = 16
DURABLE_SIZE_AT = 24
ROLLING_SIZE_AT = 32
DURABLE_END_AT = 40
ROLLING_END_AT = (48, 56)
DROPPED_AT = 64

# The state word: offset in bits 0 to 31, wrapped count in 32 to 61, buffer 0 and 1 filled.
_OFFSET = (1 << 32) - 1
_WRAPPED_SHIFT = 32
_WRAPPED = (1 << 30) - 1
_FILLED = (1 << 62, 1 << 63)

# Types of records, in the low bits of their header words.
_METADATA = 0
_BLOB = 5
_LARGE = 15
# Types of metadata records.
_PROVIDER_INFO = 1
_PROVIDER_SECTION = 2
_PROVIDER_EVENT = 3
_MAX_WORDS = 4095
"""Most words of a record that is not large."""
_TRACE_MAGIC = struct.pack("<Q", 0x0016547846040010)
_WORD = struct.Struct("<Q")
_UNPACK = _WORD.unpack_from
_HEADER = struct.Struct("<16Q")
_ZERO = bytes(8)


@attrs.frozen
class _Layout:
    """Sizes in bytes of the durable buffer and of each rolling one, which give their positions."""

    durable: int
    rolling: int

    @classmethod
    def of(cls, total: int, mode: Mode) -> _Layout:
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
    if word & 15 == _LARGE:
        return 8 * (word >> 4 & 0xFFFFFFFF)
    return 8 * (word >> 4 & 0xFFF)


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
        self._layout = _Layout.of(memory.size, mode)
        self._start = self._layout.start(0)
        """The first byte of the current half."""
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
            return self.offset + nbytes <= self._layout.rolling
        return self.durable_used + nbytes <= self._layout.durable

    def put(self, record: bytes, *, durable: bool = False) -> bool:
        """Commit one whole record. Return False if it was dropped, or tracing is stopped.

        A ``durable`` record (a string, a thread, the initialization) goes to the durable buffer,
        which is never overwritten, if there is one. Raises EmulatorError for bytes that are not one
        record, and for metadata, which only the manager writes.
        """
        nbytes = len(record)
        header_word: int = _UNPACK(record)[0] if nbytes >= 8 else 0
        if nbytes != _size_of(header_word) or header_word & 15 == _METADATA:
            raise EmulatorError(
                f"invalid record of {nbytes} bytes that begins with {header_word:#018x}: put one "
                "whole record that is not metadata"
            )
        if self.stopped:
            return False
        in_durable = durable and self._layout.durable > 0
        buffer_bytes = self._layout.durable if in_durable else self._layout.rolling
        if self.halted or nbytes > buffer_bytes or nbytes > MAX_RECORD_BYTES:
            return self._drop(durable=in_durable)
        if self.faults:
            record_number = self.records + self.dropped
            if any(fault(record_number) for fault in self.faults):
                return self._drop(durable=in_durable)
        # Written out, without further calls: writers of traces spend their time here.
        used_bytes = self.durable_used if in_durable else self.state & _OFFSET
        switches = used_bytes + nbytes > buffer_bytes
        if switches:
            if in_durable or not self._switch():
                return self._drop(durable=in_durable)
            used_bytes = 0
        record_start = used_bytes + (HEADER_BYTES if in_durable else self._start)
        record_body = record[8:]
        if used_bytes + nbytes < buffer_bytes:
            record_body += _ZERO  # ends a scan by sizes
        if record_body:
            self._write(record_start + 8, record_body)
        # The header word is stored last; until then a reader finds a zero word there.
        self._store(record_start, header_word)
        self.records += 1
        if in_durable:
            self.durable_used += nbytes
        else:
            self.state += nbytes  # its low bits are the offset
        if switches and self.mode == "streaming" and self.on_full is not None:
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
        layout = self._layout
        fields = {
            MODE_AT: self._mode_word(),
            TOTAL_AT: self.memory.size,
            DURABLE_SIZE_AT: layout.durable,
            ROLLING_SIZE_AT: layout.rolling,
        }
        store = self._store
        store(MAGIC_AT, 0)
        starts = {HEADER_BYTES, layout.start(0)}
        if self.mode != "oneshot":
            starts.add(layout.start(1))
        for buffer_start in sorted(starts):
            store(buffer_start, 0)
        for field_offset in range(8, HEADER_BYTES, 8):
            store(field_offset, fields.get(field_offset, 0))
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
        full_half = wrapped & 1
        next_half = 1 - full_half
        if self.state & _FILLED[next_half]:
            return False
        offset = self.offset
        self._start = self._layout.start(next_half)
        store = self._store
        store(ROLLING_END_AT[next_half], 0)
        store(self._start, 0)
        store(ROLLING_END_AT[full_half], offset)
        self.state = (wrapped + 1 & _WRAPPED) << _WRAPPED_SHIFT
        if self.mode == "streaming":
            self.state |= _FILLED[full_half]
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
        half_bytes = self._layout.rolling
        while self.offset < half_bytes:
            bytes_left = half_bytes - self.offset
            blob_words = min(bytes_left // 8, _MAX_WORDS)
            # Type 5, size in words, no name, size of the data in bytes from bit 32, data blob.
            header_word = _BLOB | blob_words << 4 | (blob_words - 1) * 8 << 32 | 1 << 48
            body_bytes = 8 * (blob_words - 1)
            if 8 * blob_words < bytes_left:
                body_bytes += 8  # the zero word that ends a scan by sizes
            blob_start = self._start + self.offset
            self._write(blob_start + 8, bytes(body_bytes))
            self._store(blob_start, header_word)
            self.state += 8 * blob_words


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
        magic, mode_word, total_bytes, *sizes, dropped = _HEADER.unpack_from(image)[:9]
        mode_number = mode_word >> 16 & 0xFF
        version = mode_word & 0xFFFF
        if magic != MAGIC or version or mode_number >= len(MODES) or total_bytes != len(image):
            return None
        mode = MODES[mode_number]
        durable_size, rolling_size, durable_end, *rolling_ends = sizes
        layout = _Layout(durable_size, rolling_size)
        if not _is_valid(layout, mode, total_bytes, (durable_end, *rolling_ends)):
            return None

        def records(start: int, size: int, end: int) -> bytes:
            if mode == "oneshot" or not end:
                end = _scan(image, start, size)
            return image[start : start + end]

        # The number of times that the halves were switched: the second one is current if it is odd.
        wrapped = mode_word >> 32
        current_half = wrapped & 1
        halves = [current_half]
        if wrapped and mode != "oneshot":
            halves.insert(0, 1 - current_half)
        return cls(
            mode=mode,
            wrapped_count=wrapped,
            dropped=dropped,
            durable=records(HEADER_BYTES, layout.durable, durable_end) if layout.durable else b"",
            rolling=tuple(
                records(layout.start(half), layout.rolling, rolling_ends[half]) for half in halves
            ),
        )


def _is_valid(layout: _Layout, mode: Mode, total: int, ends: tuple[int, ...]) -> bool:
    """Return whether sizes and data ends of a header fit together."""
    if any(number % 8 for number in (layout.durable, layout.rolling, *ends)):
        return False
    sizes = (layout.durable, layout.rolling, layout.rolling)
    if any(end > size for end, size in zip(ends, sizes, strict=True)):
        return False
    if mode == "oneshot":
        return not layout.durable and layout.rolling == total - HEADER_BYTES
    return layout.durable < layout.rolling and layout.start(2) == total


def _scan(image: bytes, start: int, size: int) -> int:
    """Return the bytes that records take from byte ``start``, at most ``size``."""
    image_words = np.frombuffer(image, "<u8", size // 8, start)
    scanned_bytes = 0
    while scanned_bytes < size:
        record_bytes = _size_of(int(image_words[scanned_bytes // 8]))
        if not record_bytes or record_bytes > size - scanned_bytes:
            break
        scanned_bytes += record_bytes
    return scanned_bytes


# --- The manager -------------------------------------------------------------------------------


class _FullHalf(NamedTuple):
    """A half of a streaming buffer that waits to be saved."""

    due_ns: int
    """Monotonic time at which it is saved."""
    wrapped_count: int
    durable_end: int
    """Bytes used of the durable buffer when the half was full."""


@attrs.define(eq=False)
class Provider:
    """A trace provider, as the manager sees it."""

    id: int
    name: str
    engine: TraceEngine
    waiting: _FullHalf | None = None
    """A half to save."""
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
        waiting = [provider for provider in self.providers if provider.waiting is not None]
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
        archive_bytes = bytearray(_TRACE_MAGIC)
        archive_bytes += self._streamed
        for provider in self.providers:
            memory = provider.engine.memory
            contents = Contents.of(memory.read(0, memory.size))
            provider_bytes = bytearray()
            if contents is not None:
                if contents.dropped:
                    provider_bytes += _metadata(_PROVIDER_EVENT, provider.id << 20)
                provider_bytes += contents.durable[provider.saved_durable :]
                rolling = contents.rolling
                # The older half may have been saved already.
                if provider.saved_wrapped == contents.wrapped_count - 1 & _WRAPPED:
                    rolling = rolling[-1:]
                provider_bytes += b"".join(rolling)
            if provider_bytes or not provider.introduced:
                archive_bytes += _introduction(provider) + provider_bytes
        return bytes(archive_bytes)

    def _filled(self, provider: Provider, wrapped_count: int, durable_data_end: int) -> None:
        due_ns = self.clock.monotonic_ns() + (self.save_delay_ns or 0)
        provider.waiting = _FullHalf(due_ns, wrapped_count, durable_data_end)
        if self.save_delay_ns == 0:
            self._save(provider)

    def _time_passed(self) -> None:
        if not self.save_delay_ns:
            return
        now = self.clock.monotonic_ns()
        due = [
            (provider.waiting.due_ns, provider.id, provider)
            for provider in self.providers
            if provider.waiting is not None and provider.waiting.due_ns <= now
        ]
        for _, _, provider in sorted(due):
            self._save(provider)

    def _save(self, provider: Provider) -> None:
        """Append a waiting half to the saved data, after the new part of the durable buffer."""
        waiting = provider.waiting
        assert waiting is not None  # noqa: S101
        provider.waiting = None
        memory = provider.engine.memory
        header = memory.read(0, HEADER_BYTES)
        layout = _Layout.of(memory.size, "streaming")
        half = waiting.wrapped_count & 1
        self._streamed += _introduction(provider)
        provider.introduced = True
        new_durable_bytes = waiting.durable_end - provider.saved_durable
        self._streamed += memory.read(HEADER_BYTES + provider.saved_durable, new_durable_bytes)
        # A fault may have changed the header: limit its values to the buffer.
        rolling_end: int = _UNPACK(header, ROLLING_END_AT[half])[0]
        rolling_end = min(rolling_end, layout.rolling) // 8 * 8
        self._streamed += memory.read(layout.start(half), rolling_end)
        provider.saved_durable = waiting.durable_end
        provider.saved_wrapped = waiting.wrapped_count
        provider.engine.saved(waiting.wrapped_count, waiting.durable_end)


def _introduction(provider: Provider) -> bytes:
    """Return provider info the first time, and a provider section after that."""
    if provider.introduced:
        return _metadata(_PROVIDER_SECTION, provider.id << 20)
    name = provider.name.encode()
    return _metadata(_PROVIDER_INFO, provider.id << 20 | len(name) << 52, name)


def _metadata(kind: int, fields: int, payload: bytes = b"") -> bytes:
    """Return a metadata record; its type is in bits 16 to 19."""
    payload += bytes(-len(payload) % 8)
    return _WORD.pack((1 + len(payload) // 8) << 4 | kind << 16 | fields) + payload
