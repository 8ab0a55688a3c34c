"""Trace buffers: the memory that Fuchsia's trace engine records into.

A buffer is a header of 128 bytes and, without gaps, a durable buffer and two rolling ones; a
oneshot buffer has one rolling buffer and nothing else (docs/formats/trace-buffer.md). Records
are those of an archive, without metadata. ``TraceBuffer`` is the engine's side: it commits records
into any ``fxframework.model.target.Memory``; ``Image`` says where they are; ``fx_trace.read.image``
reads and writes files of it.
"""

from __future__ import annotations

import functools
import reprlib
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Self

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_trace import layout
from fx_trace.layout import BUFFER_HEADER, BUFFER_HEADER_BYTES, BufferingMode, buffer_field_offset
from fx_trace.read.cursor import refusal
from fx_trace.read.record_bounds import RecordBounds
from fxframework.errors import WriteRefusedError
from fxframework.io.words import WORD
from fxframework.model.target import Memory

__all__ = ["BufferHeader", "Fault", "Image", "Region", "TraceBuffer", "reading_plan"]

I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]

_HEADER = struct.Struct(f"<{len(BUFFER_HEADER)}Q")
_U64 = struct.Struct("<Q")
_RESERVED = tuple(word.reserved_mask for word in BUFFER_HEADER)
_MODE_NUMBERS = {name: number for number, name in layout.MODE_NAMES.items()}
_MAGIC_AT = buffer_field_offset("magic")
_MODE_WORD_AT = buffer_field_offset("version")
_DURABLE_END_AT = buffer_field_offset("durable_data_end")
_ROLLING_END_AT = tuple(buffer_field_offset(f"rolling_data_end_{half}") for half in (0, 1))
_END_FIELDS = {
    "durable": "durable_data_end",
    "rolling 0": "rolling_data_end_0",
    "rolling 1": "rolling_data_end_1",
}
"""The field that says a buffer's data end, by the buffer's name."""
DROPPED_AT = buffer_field_offset("num_records_dropped")
_MODE_WORD = BUFFER_HEADER[_MODE_WORD_AT // WORD]
_LIMIT_32 = 0xFFFFFFFF
FOUND = 1 << 12
"""Metadata records that are looked for at a time."""


# --- The header --------------------------------------------------------------------------------


@attrs.frozen
class Fault:
    """What is wrong with a header, and the byte of the field that says it."""

    message: str
    offset: int

    def __str__(self) -> str:
        return self.message


@attrs.frozen(kw_only=True)
class BufferHeader:
    """The header of a trace buffer. Sizes and ends are in bytes.

    Data ends count from the beginning of their buffer; 0 where the engine did not record them.
    It is the first record of an image as well (``to_json``).
    """

    record: ClassVar[str] = "buffer_header"
    offset: ClassVar[int] = 0
    nbytes: ClassVar[int] = BUFFER_HEADER_BYTES

    magic: int = layout.BUFFER_MAGIC
    version: int = layout.BUFFER_VERSION
    buffering_mode: int
    wrapped_count: int = 0
    total_size: int
    durable_buffer_size: int
    rolling_buffer_size: int
    durable_data_end: int = 0
    rolling_data_end: tuple[int, int] = (0, 0)
    num_records_dropped: int = 0
    reserved: tuple[int, ...] = (0,) * len(BUFFER_HEADER)
    """The reserved bits of each of the 16 words, in place."""

    @classmethod
    def for_size(cls, total_size: int, mode: BufferingMode | int | str) -> Self:
        """The header of an empty buffer of ``total_size`` bytes, as the engine makes it.

        Raises WriteRefusedError (FXT0411) for a size that the engine refuses, FXT0412 for a mode
        that there is not.
        """
        number = _MODE_NUMBERS.get(mode) if isinstance(mode, str) else int(mode)
        if number not in layout.MODE_NAMES:
            known = ", ".join(_MODE_NUMBERS)
            raise refusal("FXT0412", f"no buffering mode {mode!r}; there are {known}")
        least, most = layout.BUFFER_GRAIN, layout.MAX_BUFFER_BYTES
        if total_size % least or not least <= total_size <= most:
            raise refusal(
                "FXT0411",
                f"a trace buffer of {total_size} bytes: it has a multiple of {least}, up to {most}",
            )
        available = total_size - BUFFER_HEADER_BYTES
        durable = 0
        rolling = available
        if number != BufferingMode.ONESHOT:
            durable = min(available // layout.DURABLE_SHARE, layout.MAX_DURABLE_BYTES)
            durable += (available - durable) % (2 * WORD)
            rolling = (available - durable) // 2
        return cls(
            buffering_mode=number,
            total_size=total_size,
            durable_buffer_size=durable,
            rolling_buffer_size=rolling,
        )

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        """The header in the first 128 bytes; whatever they say is taken."""
        words = _HEADER.unpack_from(data)
        fields: dict[str, Any] = {}
        for word, bits in zip(words, BUFFER_HEADER, strict=True):
            fields |= bits.unpack(word)
        ends = (fields.pop("rolling_data_end_0"), fields.pop("rolling_data_end_1"))
        reserved = tuple(word & mask for word, mask in zip(words, _RESERVED, strict=True))
        return cls(**{**fields, "rolling_data_end": ends, "reserved": reserved})

    def pack(self) -> bytes:
        """The 128 bytes. Raises WriteRefusedError (FXT0404) where a number does not fit."""
        fields = {
            name: getattr(self, name)
            for name in (field.name for field in attrs.fields(BufferHeader))
            if name not in ("rolling_data_end", "reserved")
        }
        fields["rolling_data_end_0"], fields["rolling_data_end_1"] = self.rolling_data_end
        words = []
        for bits, reserved in zip(BUFFER_HEADER, self.reserved, strict=True):
            own = {field.name: fields[field.name] for field in bits.fields if not field.reserved}
            try:
                words.append(bits.pack(**own) | reserved)
            except ValueError as error:
                raise refusal("FXT0404", f"buffer_header: {error}") from None
        return _HEADER.pack(*words)

    @property
    def mode(self) -> str:
        """The mode's name, or its number where there is no such mode."""
        return layout.MODE_NAMES.get(self.buffering_mode, str(self.buffering_mode))

    def check(self, actual_size: int) -> list[Fault]:
        """What is wrong with it, for an image of so many bytes, in the order of the header."""
        faults: list[Fault] = []
        total, durable, rolling = (
            self.total_size,
            self.durable_buffer_size,
            self.rolling_buffer_size,
        )

        def expect(sound: object, message: str, field: str) -> None:
            if not sound:
                faults.append(Fault(message, buffer_field_offset(field)))

        if self.magic != layout.BUFFER_MAGIC:
            # What the other fields say means nothing then.
            return [Fault(f"bad magic {self.magic:#018x}", _MAGIC_AT)]
        supported = self.version == layout.BUFFER_VERSION
        expect(supported, f"unsupported version {self.version}", "version")
        whole = actual_size % WORD == 0
        expect(whole, f"{actual_size} bytes are not a whole number of words", "total_size")
        known = self.buffering_mode in layout.MODE_NAMES
        expect(known, f"unknown buffering mode {self.buffering_mode}", "buffering_mode")
        same = total == actual_size
        expect(same, f"total size {total} is not the file's, {actual_size}", "total_size")
        expect(total <= layout.MAX_BUFFER_BYTES, f"total size {total} is too large", "total_size")
        for field in ("durable_buffer_size", "rolling_buffer_size"):
            expect(getattr(self, field) % WORD == 0, f"{field} is not a multiple of 8", field)
        if self.buffering_mode == BufferingMode.ONESHOT:
            expect(not durable, "a oneshot buffer has no durable part", "durable_buffer_size")
            fits = rolling == total - BUFFER_HEADER_BYTES
            expect(fits, "buffer sizes don't add up", "rolling_buffer_size")
        elif known:
            expect(rolling < total // 2, "rolling buffer too large", "rolling_buffer_size")
            expect(durable < rolling, "durable buffer too large", "durable_buffer_size")
            fits = BUFFER_HEADER_BYTES + durable + 2 * rolling == total
            expect(fits, "buffer sizes don't add up", "durable_buffer_size")
        ends = (
            ("durable_data_end", self.durable_data_end, durable),
            ("rolling_data_end_0", self.rolling_data_end[0], rolling),
            ("rolling_data_end_1", self.rolling_data_end[1], rolling),
        )
        for field, end, size in ends:
            expect(end <= size, f"{field} is beyond its buffer", field)
            expect(end % WORD == 0, f"{field} is not a multiple of 8", field)
        return faults

    def buffers(self) -> tuple[tuple[str, int, int, int], ...]:
        """The buffers in the order of the file: name, file offset, size, recorded data end."""
        start = BUFFER_HEADER_BYTES
        size = self.rolling_buffer_size
        first, second = self.rolling_data_end
        if self.buffering_mode == BufferingMode.ONESHOT:
            return (("rolling 0", start, size, first),)
        durable = self.durable_buffer_size
        return (
            ("durable", start, durable, self.durable_data_end),
            ("rolling 0", start + durable, size, first),
            ("rolling 1", start + durable + size, size, second),
        )

    # --- as a record ---

    def to_json(self) -> dict[str, Any]:
        """The header as record JSON; ``raw`` where reserved bits are set."""
        out = {
            "record": self.record,
            "offset": 0,
            "nbytes": BUFFER_HEADER_BYTES,
            "magic": f"{self.magic:#018x}",
            "version": self.version,
            "mode": layout.MODE_NAMES.get(self.buffering_mode, self.buffering_mode),
            "wrapped_count": self.wrapped_count,
            "total_size": self.total_size,
            "durable_buffer_size": self.durable_buffer_size,
            "rolling_buffer_size": self.rolling_buffer_size,
            "durable_data_end": self.durable_data_end,
            "rolling_data_end": list(self.rolling_data_end),
            "num_records_dropped": self.num_records_dropped,
        }
        if any(self.reserved):
            out["raw"] = self.pack().hex()
        return out

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Self:
        """The header that a JSON object says; reserved bits are those of ``raw``, if it fits.

        Raises WriteRefusedError: FXT0402 for a field that is missing or unknown, FXT0403 and
        FXT0404 for a value of the wrong kind or size.
        """
        left = {key: value for key, value in given.items() if key not in ("offset", "nbytes")}
        left.pop("record", None)
        raw = left.pop("raw", None)
        header = cls(
            magic=_number(left, "magic", hexadecimal=True),
            version=_number(left, "version"),
            buffering_mode=_mode(left),
            wrapped_count=_number(left, "wrapped_count"),
            total_size=_number(left, "total_size"),
            durable_buffer_size=_number(left, "durable_buffer_size"),
            rolling_buffer_size=_number(left, "rolling_buffer_size"),
            durable_data_end=_number(left, "durable_data_end"),
            rolling_data_end=_pair(left, "rolling_data_end"),
            num_records_dropped=_number(left, "num_records_dropped"),
        )
        if left:
            raise refusal("FXT0402", f"buffer_header has no field {', '.join(map(repr, left))}")
        header.pack()
        if raw is None:
            return header
        try:
            data = bytes.fromhex(raw)
        except (TypeError, ValueError):
            raise _wrong("raw", raw, "bytes in hex") from None
        if len(data) == BUFFER_HEADER_BYTES:
            meant = cls.unpack(data)
            if attrs.evolve(meant, reserved=header.reserved) == header:
                return meant
        return header


def _wrong(key: str, value: Any, wanted: str) -> WriteRefusedError:
    found = reprlib.repr(value)
    return refusal("FXT0403", f"buffer_header: {key} must be {wanted}, not {found}")


def _need(left: dict[str, Any], key: str) -> Any:
    try:
        return left.pop(key)
    except KeyError:
        raise refusal("FXT0402", f"buffer_header: {key} is missing") from None


def _number(left: dict[str, Any], key: str, *, hexadecimal: bool = False) -> int:
    value = _need(left, key)
    if hexadecimal and isinstance(value, str):
        try:
            return int(value, 16)
        except ValueError:
            raise _wrong(key, value, "a number in hex") from None
    if type(value) is not int:
        raise _wrong(key, value, "a whole number")
    return value


def _mode(left: dict[str, Any]) -> int:
    value = _need(left, "mode")
    if isinstance(value, str) and value in _MODE_NUMBERS:
        return _MODE_NUMBERS[value]
    if type(value) is not int:
        raise _wrong("mode", value, f"one of {', '.join(_MODE_NUMBERS)}")
    return value


def _pair(left: dict[str, Any], key: str) -> tuple[int, int]:
    value = _need(left, key)
    if isinstance(value, list | tuple) and [type(number) for number in value] == [int, int]:
        return (value[0], value[1])
    raise _wrong(key, value, "two whole numbers")


# --- Where the records are ---------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class Region:
    """One buffer of an image, as it is to be read."""

    name: str
    """``durable``, ``rolling 0`` or ``rolling 1``."""
    offset: int
    """File offset of its first byte."""
    used: int
    """Bytes of it that records take, of those that are there."""
    size: int
    """Bytes of it, of those that are there: fewer than the header says in an image cut short."""
    recorded_end: int
    """The data end that the header says; 0 where it says none."""
    scanned: bool
    """Whether ``used`` was found by scanning records, not taken from the header."""


def reading_plan(header: BufferHeader, data: U8) -> Iterator[Region]:
    """The buffers of an image in the order in which their records were made.

    Durable, then the older rolling buffer where they were ever switched, then the current one.
    ``header`` is sound but for the size of the image, ``data`` all bytes of it, shape (size,).
    """
    whole = data.size // WORD * WORD
    words = data[:whole].view("<i8")
    buffers = header.buffers()
    if header.buffering_mode != BufferingMode.ONESHOT:
        rolling = buffers[1:]
        current = header.wrapped_count % 2
        older = (rolling[1 - current],) if header.wrapped_count else ()
        buffers = (buffers[0], *older, rolling[current])
    for name, offset, size, end in buffers:
        there = max(0, min(size, data.size - offset))
        scanned = header.buffering_mode == BufferingMode.ONESHOT or not end
        used = min(end, there // WORD * WORD)
        if scanned:
            limit = (offset + there) // WORD
            used = 0
            if there:
                used = WORD * RecordBounds(words).sizes_end(offset // WORD, limit) - offset
        yield Region(
            name=name, offset=offset, used=used, size=there, recorded_end=end, scanned=scanned
        )


@attrs.frozen
class _Stretch:
    """Bytes ``start`` to ``end`` of an image: the header, records, zero words, or else damage."""

    start: int
    end: int
    kind: str
    code: str = ""
    """The finding about damage."""


HEADER, RECORDS, PADDING, DAMAGED = "header", "records", "padding", "damaged"


def _unused(data: U8, start: int, end: int, code: str) -> Iterator[_Stretch]:
    """What stands for the bytes behind the records of a buffer."""
    end = max(start, end)
    whole = start + (end - start) // WORD * WORD
    if whole > start:
        stale = bool(data[start:whole].any())
        yield _Stretch(start, whole, DAMAGED if stale else PADDING, code if stale else "")
    if end > whole:
        yield _Stretch(whole, end, DAMAGED, "FXT0005")


class Image:
    """An image as its bytes show it: the header, the plan, and all stretches in reading order."""

    def __init__(self, data: U8) -> None:
        self.data = data
        self.header: BufferHeader | None = None
        self.faults: list[Fault] = []
        """Why there is no header."""
        size = int(data.size)
        if not size:
            return
        if size < BUFFER_HEADER_BYTES:
            self.faults = [Fault(f"{size} bytes, too few for a header", 0)]
            return
        header = BufferHeader.unpack(data[:BUFFER_HEADER_BYTES].tobytes())
        # An image of another length than it says can be read all the same, as far as it goes.
        self.faults = header.check(header.total_size)
        if not self.faults:
            self.header = header

    @functools.cached_property
    def regions(self) -> tuple[Region, ...]:
        """The buffers that hold records, in reading order."""
        return () if self.header is None else tuple(reading_plan(self.header, self.data))

    @functools.cached_property
    def stretches(self) -> tuple[_Stretch, ...]:
        """All bytes: the header, each buffer with what is behind its records, then the rest."""
        size = int(self.data.size)
        if self.header is None:
            return (_Stretch(0, size, DAMAGED, "FXT0501"),) if size else ()
        found = [_Stretch(0, BUFFER_HEADER_BYTES, HEADER)]
        for region in self.regions:
            used = region.offset + region.used
            if region.used:
                found.append(_Stretch(region.offset, used, RECORDS))
            code = "FXT0506" if self.lost(region) else "FXT0505"
            found += _unused(self.data, used, region.offset + region.size, code)
        read = {region.name for region in self.regions}
        for name, offset, length, _ in self.header.buffers():
            if name not in read:
                found += _unused(self.data, offset, min(offset + length, size), "FXT0505")
        if size > self.header.total_size:
            found.append(_Stretch(self.header.total_size, size, DAMAGED, "FXT0503"))
        return tuple(found)

    def lost(self, region: Region) -> bool:
        """Whether scanning ended before the end that the header says, in bytes that are there."""
        return region.scanned and region.used < min(region.recorded_end, region.size)

    def at(self, offset: int) -> _Stretch:
        """The stretch that holds byte ``offset``."""
        return next(part for part in self.stretches if part.start <= offset < part.end)


# --- The engine's side -------------------------------------------------------------------------


class TraceBuffer:
    """A trace buffer in some memory, as Fuchsia's trace engine keeps it.

    ``put`` commits one whole record with a single store, that of its header word, so that an
    image taken, or a crash, between any two stores reads as the records committed so far. A
    buffer of mode ``streaming`` calls ``on_full(wrapped_count, durable_data_end)`` for each half
    that filled up, and does not write over it before ``saved`` was called.

    With ``format=False`` the memory holds a buffer already, which is gone on with. Raises
    WriteRefusedError for a memory that can be no trace buffer (FXT0411, FXT0412).
    """

    def __init__(
        self,
        memory: Memory,
        mode: BufferingMode | int | str,
        *,
        format: bool = True,
        on_full: Callable[[int, int], None] | None = None,
    ) -> None:
        self.memory = memory
        self.on_full = on_full
        self.lock = threading.RLock()
        """Held by a ``TraceWriter`` while it makes and puts a record."""
        self.stopped = False
        self.dropped = 0
        """Records for which there was no room; the header says it once the buffer is stopped."""
        self._full = False
        self._filled = [False, False]
        self._durable_used = 0
        self._offset = 0
        header = BufferHeader.for_size(memory.size, mode)
        if format:
            self._format(header)
        else:
            header = self._resume(header.buffering_mode)
        self.mode = BufferingMode(header.buffering_mode)
        self._wrapped = header.wrapped_count
        self._durable_size = header.durable_buffer_size
        self._rolling_size = header.rolling_buffer_size
        self._starts = {name: start for name, start, _, _ in header.buffers()}

    @property
    def header(self) -> BufferHeader:
        """The header as it is in the memory."""
        return BufferHeader.unpack(self.memory.read(0, BUFFER_HEADER_BYTES))

    @property
    def keeps_order(self) -> bool:
        """Whether records are read in the order of ``put``; otherwise durable ones come first."""
        return self.mode == BufferingMode.ONESHOT

    def has_room(self, nbytes: int) -> bool:
        """Whether a durable record of so many bytes would be taken."""
        if self.mode == BufferingMode.ONESHOT:
            return not self._full and self._offset + nbytes <= self._rolling_size
        return self._durable_used + nbytes <= self._durable_size

    @property
    def wrapped_count(self) -> int:
        """How often the rolling buffers were switched."""
        return self._wrapped

    def put(self, record: bytes, *, durable: bool = False) -> bool:
        """Commit one whole record; False where it was dropped, for want of room or after ``stop``.

        A ``durable`` record (strings, threads, the initialization record) goes to the durable
        buffer, which is never written over; a oneshot buffer has none, and needs none. Raises
        WriteRefusedError: FXT0410 for metadata, FXT0411 for bytes that are not one record.
        """
        nbytes = len(record)
        self._check(record)
        if self.stopped:
            return False
        apart = durable and self.mode != BufferingMode.ONESHOT
        size = self._durable_size if apart else self._rolling_size
        if nbytes > min(layout.MAX_LARGE_BYTES, size):
            return self._drop()
        if apart:
            if self._durable_used + nbytes > size:
                return self._drop()
            self._commit("durable", self._durable_used, record, size)
            self._durable_used += nbytes
            return True
        switched = False
        if self._offset + nbytes > size or self._full:
            if self.mode == BufferingMode.ONESHOT:
                self._full = True  # for ever: records that came later must not stand alone
                return self._drop()
            if self._filled[1 - self._wrapped % 2]:
                return self._drop()
            self._switch()
            switched = True
        self._commit(f"rolling {self._wrapped % 2}", self._offset, record, size)
        self._offset += nbytes
        if switched and self.mode == BufferingMode.STREAMING and self.on_full is not None:
            self.on_full((self._wrapped - 1) & _LIMIT_32, self._durable_used)
        return True

    def saved(self, wrapped_count: int, durable_data_end: int) -> None:
        """The manager saved the half that was current at ``wrapped_count``: it may be reused.

        It also saved the first ``durable_data_end`` bytes of the durable buffer, which stay.
        What does not fit a half that is waiting is ignored, as the engine does.
        """
        waiting = (wrapped_count + 1) & _LIMIT_32 == self._wrapped
        if waiting and durable_data_end <= self._durable_used:
            self._filled[wrapped_count % 2] = False

    def stop(self) -> None:
        """Write into the header where the records end and how many were dropped."""
        if self.stopped:
            return
        self.stopped = True
        store = self.memory.store_u64
        store(_DURABLE_END_AT, self._durable_used)
        store(_ROLLING_END_AT[self._wrapped % 2], self._offset)
        self._store_wrapped()
        store(DROPPED_AT, self.dropped)

    # --- stores ---

    def _format(self, header: BufferHeader) -> None:
        """The header of an empty buffer. Its magic comes last: before that there is no buffer."""
        store = self.memory.store_u64
        store(_MAGIC_AT, 0)
        for _, start, _, _ in header.buffers():
            store(start, 0)
        words = _HEADER.unpack(header.pack())
        for number, word in enumerate(words):
            if number != _MAGIC_AT // WORD:
                store(WORD * number, word)
        store(_MAGIC_AT, words[_MAGIC_AT // WORD])

    def _resume(self, mode: int) -> BufferHeader:
        """Take up a buffer that was left, behind its records."""
        image = Image(np.frombuffer(self.memory.read(0, self.memory.size), np.uint8))
        header = image.header
        if header is None or header.total_size != self.memory.size or header.buffering_mode != mode:
            why = image.faults[0] if image.faults else "another size or mode"
            raise refusal("FXT0412", f"the memory holds no such trace buffer: {why}")
        self.dropped = header.num_records_dropped
        for region in image.regions:
            current = region is image.regions[-1]
            if region.name == "durable":
                self._durable_used = region.used
            if current:
                self._offset = region.used
            if current or region.name == "durable":
                # Its end is found by scanning again, until the buffer is stopped.
                if region.used < region.size:
                    self.memory.store_u64(region.offset + region.used, 0)
                self.memory.store_u64(buffer_field_offset(_END_FIELDS[region.name]), 0)
            else:
                self._filled[int(region.name[-1])] = mode == BufferingMode.STREAMING
        return header

    def _check(self, record: bytes) -> None:
        word = _U64.unpack_from(record)[0] if len(record) >= WORD else 0
        kind = layout.TYPE.get(word)
        large = kind == layout.RecordType.LARGE
        words = (layout.LARGE_SIZE if large else layout.SIZE).get(word)
        if len(record) != WORD * words or not words:
            raise refusal("FXT0411", f"{len(record)} bytes that are not one whole record")
        if kind == layout.RecordType.METADATA:
            raise refusal("FXT0410", "a provider writes no metadata into its trace buffer")

    def _drop(self) -> bool:
        self.dropped += 1
        return False

    def _commit(self, buffer: str, at: int, record: bytes, size: int) -> None:
        """Store a record at byte ``at`` of a buffer; the word there is zero, or none of ours.

        The last store is the header word's: before it a reader finds a zero there, behind it the
        whole record, and a zero word that keeps it from what an earlier round left behind.
        """
        place = self._starts[buffer] + at
        payload = bytes(record[WORD:])
        if payload:
            self.memory.write(place + WORD, payload)
        if at + len(record) < size:
            self.memory.store_u64(place + len(record), 0)
        self.memory.store_u64(place, _U64.unpack_from(record)[0])

    def _switch(self) -> None:
        """Go on in the other half: what it held is given up with the second store.

        Whichever store is the last one made, the half that filled up reads whole.
        """
        before = self._wrapped % 2
        after = 1 - before
        self.memory.store_u64(_ROLLING_END_AT[after], 0)
        self.memory.store_u64(self._starts[f"rolling {after}"], 0)
        self.memory.store_u64(_ROLLING_END_AT[before], self._offset)
        self._wrapped = (self._wrapped + 1) & _LIMIT_32
        self._store_wrapped()
        self._offset = 0
        self._filled[before] = self.mode == BufferingMode.STREAMING

    def _store_wrapped(self) -> None:
        # Version and mode share the word, and must not change for a moment either.
        word = self.memory.load_u64(_MODE_WORD_AT)
        fields = {**_MODE_WORD.unpack(word), "wrapped_count": self._wrapped}
        self.memory.store_u64(_MODE_WORD_AT, _MODE_WORD.pack(**fields))
