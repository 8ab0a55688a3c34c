"""Trace buffers: images of the memory that Fuchsia's trace engine records into, read and written.

An image is a header of 128 bytes and, without gaps, a durable buffer and two rolling ones; a
oneshot image has one rolling buffer and nothing else (notes §3.3, docs/formats/trace.md). Records
are those of an archive, without metadata. ``BufferCapture`` reads an image where it lies, buffer
after buffer; ``BufferWriter`` makes one of its records; ``TraceBuffer`` is the engine's side: it
commits records into any ``fxframework.model.target.Memory``.
"""

from __future__ import annotations

import functools
import reprlib
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePath
from typing import Any, ClassVar, Self, cast

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_trace import kernels as k
from fx_trace import layout
from fx_trace.columns import Scanner
from fx_trace.kernels import minimum, size_of, sound_after
from fx_trace.layout import BUFFER_HEADER, BUFFER_HEADER_BYTES, BufferingMode, buffer_field_offset
from fx_trace.reader import TraceCapture
from fx_trace.records import (
    Damaged,
    Padding,
    ProviderEvent,
    ProviderInfo,
    RecordDecoder,
    RecordEncoder,
    TraceInfo,
    TraceRecord,
    from_json,
)
from fx_trace.rules import RULES
from fxframework.errors import WriteRefusedError
from fxframework.io.jit import kernel
from fxframework.io.limits import Limits
from fxframework.io.sink import Sink
from fxframework.io.source import CHUNK, Source, spool_file
from fxframework.io.words import U64_MAX, WORD
from fxframework.model.capture import Capture, OpenRequest, Record, Summary
from fxframework.model.diagnostics import Diagnostics
from fxframework.model.salvage import Loss, lost
from fxframework.model.strings import StringPool
from fxframework.model.target import Memory

__all__ = [
    "BufferCapture",
    "BufferHeader",
    "BufferWriter",
    "Fault",
    "Region",
    "TraceBuffer",
    "open_buffer",
    "open_buffer_writer",
    "reading_plan",
    "salvage",
    "sample",
]

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
_DROPPED_AT = buffer_field_offset("num_records_dropped")
_MODE_WORD = BUFFER_HEADER[_MODE_WORD_AT // WORD]
_LIMIT_32 = 0xFFFFFFFF
LINES = 512
"""Lines of record JSON that are made before they are given."""
FOUND = 1 << 12
"""Metadata records that are looked for at a time."""


def _refusal(code: str, message: str) -> WriteRefusedError:
    return WriteRefusedError(message, code=code, remedy=RULES[code].remedy)


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
    """The header of a trace buffer (notes §3.3). Sizes and ends are in bytes.

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
            raise _refusal("FXT0412", f"no buffering mode {mode!r}; there are {known}")
        least, most = layout.BUFFER_GRAIN, layout.MAX_BUFFER_BYTES
        if total_size % least or not least <= total_size <= most:
            raise _refusal(
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
                raise _refusal("FXT0404", f"buffer_header: {error}") from None
        return _HEADER.pack(*words)

    @property
    def mode(self) -> str:
        """The mode's name, or its number where there is no such mode."""
        return layout.MODE_NAMES.get(self.buffering_mode, str(self.buffering_mode))

    def check(self, actual_size: int) -> list[Fault]:
        """What is wrong with it, for an image of so many bytes, in the order of notes §3.3."""
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
        expect(whole, f"{actual_size} bytes are no whole number of words", "total_size")
        known = self.buffering_mode in layout.MODE_NAMES
        expect(known, f"unknown buffering mode {self.buffering_mode}", "buffering_mode")
        same = total == actual_size
        expect(same, f"total size {total} is not the file's, {actual_size}", "total_size")
        expect(total <= layout.MAX_BUFFER_BYTES, f"total size {total} is too large", "total_size")
        for field in ("durable_buffer_size", "rolling_buffer_size"):
            expect(getattr(self, field) % WORD == 0, f"{field} is no multiple of 8", field)
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
            expect(end % WORD == 0, f"{field} is no multiple of 8", field)
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
            raise _refusal("FXT0402", f"buffer_header has no field {', '.join(map(repr, left))}")
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
    return _refusal("FXT0403", f"buffer_header: {key} must be {wanted}, not {found}")


def _need(left: dict[str, Any], key: str) -> Any:
    try:
        return left.pop(key)
    except KeyError:
        raise _refusal("FXT0402", f"buffer_header: {key} is missing") from None


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


@kernel
def written_end(words, start, end):  # type: ignore[no-untyped-def]
    """The word at which records end that begin at word ``start``, going by their sizes alone.

    Up to a size of zero, or a record that does not fit; one that exactly fits is taken, which the
    reference manager's scan loses (notes §3.3).
    """
    at = start
    while at < end:
        size = size_of(words[at])
        if size == 0 or size > end - at:
            break
        at += size
    return at


@kernel
def metadata_records(words, start, end, max_record, found):  # type: ignore[no-untyped-def]
    """The words where metadata records begin, in ``found`` from 1 on; ``found[0]`` counts them.

    Frames records as ``scan`` does. Gives where to go on: ``end``, unless ``found`` is full.
    """
    at = start
    count = 0
    while at < end and count + 1 < len(found):
        word = words[at]
        if word == 0:
            at += 1
            continue
        size = size_of(word)
        least = minimum(word & 15)
        if size == 0 or size > end - at or size < least:
            after = sound_after(words, at + 1, end)
            at = after if after >= 0 else end
            continue
        if word & 15 == 0 and (max_record == 0 or size * 8 <= max_record):
            count += 1
            found[count] = at
        at += size
    found[0] = count
    return at


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
    """The buffers of an image in the order in which their records were made (notes §3.3).

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
            walk = written_end.for_size(there)
            used = WORD * int(walk(words, offset // WORD, limit)) - offset if there else 0
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


# --- Reading -----------------------------------------------------------------------------------


@attrs.frozen
class _Step:
    """What a scanner does next: scan records from word ``start`` to ``limit``, or count one.

    ``end`` is the word behind the buffer's records, which no record passes. ``counts`` is the
    place in the state's ``kinds`` of a record that is not scanned, -1 where it has none.
    """

    start: int = 0
    limit: int = 0
    end: int = 0
    counts: int | None = None


class _ImageScanner(Scanner):
    """Runs ``scan`` over the records of an image, buffer after buffer, in reading order."""

    def __init__(
        self,
        words: I64,
        streams: I64,
        pool: StringPool,
        limits: Limits,
        before: Scanner | None,
        steps: Iterator[_Step],
    ) -> None:
        super().__init__(words, streams, pool, limits, before)
        self._steps = steps
        self._step_now: _Step | None = None
        self._done = False

    @property
    def position(self) -> int:
        """A byte that is being read; all of them once everything is read."""
        return self.nbytes if self._done else min(super().position, self.nbytes - 1)

    def _run(self, limit: int) -> int:
        """Take the next steps, up to word ``limit`` of one that passes it; all with the last word.

        So a caller that asks for window after window, whatever the order of reading, has asked
        for everything in the end.
        """
        total = self.total
        while True:
            scalars = self.state.scalars
            step = self._step_now
            if step is None:
                step = next(self._steps, None)
                if step is None:
                    self._done = True
                    return k.DONE
                if step.counts is not None:
                    scalars[k.RECORD] += 1
                    if step.counts >= 0:
                        self.state.kinds[step.counts] += 1
                    continue
                scalars[k.POS] = step.start
                self._step_now = step
            until = step.limit if limit >= total else min(step.limit, limit)
            # For `scan` the file ends where the buffer's records do.
            self.total = step.end
            status = super()._run(until)
            self.total = total
            if status == k.FULL:
                return status
            if int(scalars[k.POS]) < step.limit:
                return k.DONE
            self._step_now = None


def open_buffer(source: Source, request: OpenRequest) -> BufferCapture:
    """Open an image. Nothing is read yet but its header.

    An image whose header is inconsistent opens too: FXT0501 says what is wrong with it, tables are
    empty, and its bytes are one damaged record.
    """
    return BufferCapture(source, request)


class BufferCapture(TraceCapture):
    """An image of a trace buffer (notes §3.3): the tables are those of a trace.

    Rows stand in reading order; ``offset`` is the place in the image, so that offsets of a buffer
    that wrapped may go down once (``places`` puts them in order).
    """

    format = "trace-buffer"
    magic_first = False

    def __init__(self, source: Source, request: OpenRequest) -> None:
        super().__init__(source, request)
        # Images are little-endian, whatever archive's magic a file may begin with.
        self.big_endian = False
        self._words = self._streams
        self.image = Image(source.data)

    @property
    def header(self) -> BufferHeader | None:
        """The header; None where it is inconsistent."""
        return self.image.header

    @property
    def writer_options(self) -> Mapping[str, Any]:
        """The length of an image that is shorter than its header says."""
        header = self.header
        if header is None or self.source.size >= header.total_size:
            return {}
        return {"image_size": self.source.size}

    def places(self, offsets: I64) -> I64:
        """For offsets in the image, numbers that are in the order of reading, same shape."""
        starts = sorted((part.start, at) for at, part in enumerate(self.image.stretches))
        first = np.array([start for start, _ in starts], np.int64)
        order = np.array([at for _, at in starts], np.int64)
        which = np.searchsorted(first, offsets, side="right") - 1
        places: I64 = (order[which] << 40) + offsets
        return places

    # --- Records ---

    def records(self) -> Iterator[Record]:
        """The header and every record in reading order, unused space included."""
        decoder = self._decoder()
        if decoder.diagnostics is not None:
            self._report_image()
        reading = decoder.begin(b"")
        whole: Any = self.source.data
        data = memoryview(whole)
        for part in self.image.stretches:
            size = part.end - part.start
            if part.kind == RECORDS:
                # No record passes the end of its buffer, where another one's bytes follow.
                reading.framer = decoder.begin(data[: part.end]).framer
                at = part.start
                while at < part.end:
                    record = self._metadata(data[: part.end], at)
                    if record is None:
                        record = reading.record(at)
                    else:
                        reading.index += 1
                    yield record
                    at += record.nbytes
                continue
            reading.index += 1
            if part.kind == HEADER:
                assert self.header is not None  # noqa: S101 (there is no stretch of it otherwise)
                yield self.header
            elif part.kind == PADDING:
                yield Padding(offset=part.start, nbytes=size)
            else:
                raw = data[part.start : part.end]
                yield Damaged(offset=part.start, nbytes=size, code=part.code, raw=raw)

    def _metadata(self, view: memoryview, at: int) -> TraceRecord | None:
        """The metadata record at byte ``at``, without effect; None where there is another."""
        if view[at] & 15 != layout.RecordType.METADATA:
            return None
        apart = RecordDecoder(limits=self.request.limits).begin(view)
        _, end, _, code = apart.framer.frame(at)
        if code is not None:
            return None
        record = apart.record(at)
        record.ns = None
        if isinstance(record, Damaged):
            record.code = "FXT0507"
        else:
            # It tells a writer that the record comes from an image, and is not made up.
            record.raw = view[at:end].tobytes()
        return record

    def records_json(self) -> Iterator[bytes]:
        """The same as JSON lines, in chunks."""
        import orjson

        lines: list[bytes] = []
        for record in self.records():
            lines.append(orjson.dumps(record.to_json()))
            if len(lines) == LINES:
                yield b"\n".join(lines) + b"\n"
                lines.clear()
        if lines:
            yield b"\n".join(lines) + b"\n"

    # --- Tables ---

    @property
    def _framed_bytes(self) -> int:
        # The odd bytes of an image that was cut are a stretch of their own.
        return self.source.size // WORD * WORD

    def scanner(self) -> Scanner:
        """A scanner at the beginning of the image, over the capture's string pool."""
        self._scanner = _ImageScanner(
            self._words,
            self._streams,
            self.strings,
            self.request.limits,
            self._scanner,
            self._steps(),
        )
        return self._scanner

    def _steps(self) -> Iterator[_Step]:
        kinds = {PADDING: k.KIND_PADDING, DAMAGED: k.KIND_DAMAGED, HEADER: -1}
        for part in self.image.stretches:
            if part.kind != RECORDS:
                yield _Step(counts=kinds[part.kind])
                continue
            at, end = part.start // WORD, part.end // WORD
            for place in map(int, self._metadata_words.get(part.start, ())):
                if at < place:
                    yield _Step(at, place, end)
                word = int(self._words[place])
                yield _Step(counts=word >> layout.METADATA_TYPE.low & 15)
                at = place + (word >> layout.SIZE.low & layout.SIZE.limit)
            if at < end:
                yield _Step(at, end, end)

    @functools.cached_property
    def _metadata_words(self) -> dict[int, I64]:
        """By the first byte of a stretch of records: the words where metadata stands in it."""
        found = np.zeros(FOUND + 1, np.int64)
        limit = self.request.limits.max_record
        places: dict[int, I64] = {}
        for part in self.image.stretches:
            if part.kind != RECORDS:
                continue
            at, end = part.start // WORD, part.end // WORD
            walk = metadata_records.for_size(part.end - part.start)
            pieces: list[I64] = []
            while at < end:
                at = int(walk(self._words, at, end, limit, found))
                pieces.append(found[1 : 1 + int(found[0])].copy())
            places[part.start] = np.concatenate(pieces)
        return places

    def as_archive(self) -> TraceCapture:
        """The same as an archive of one provider: what a trace manager makes of it.

        Records stand in reading order. The provider has the name of the file; where records were
        dropped, an event says so.
        """
        name = PurePath(self.name).name.encode()[:255].decode(errors="ignore")
        stage: list[TraceRecord] = [
            TraceInfo(info_type=0, magic=layout.MAGIC),
            ProviderInfo(id=1, name=name),
        ]
        if self.header is not None and self.header.num_records_dropped:
            stage.append(ProviderEvent(id=1, event=0))
        with spool_file() as spool:
            spool.write(b"".join(record.pack() for record in stage))
            for step in self._steps():
                spool.write(self._streams[step.start : step.limit].tobytes())
            source = Source.spooled(spool, name=self.name)
        return TraceCapture(source, attrs.evolve(self.request, observer=None, strict=False))

    def _pass(self, *, whole: bool) -> Any:
        fresh = self._passed is None
        passed = super()._pass(whole=whole)
        if fresh:
            self._report_image()
        return passed

    def summary(self) -> Summary:
        """Counts and times, from one pass over the whole capture."""
        summary = super().summary()
        header = self.header
        if header is None:
            return summary
        buffers = [
            {
                "buffer": region.name,
                "offset": region.offset,
                "bytes": region.used,
                "size": region.size,
                "end": "scanned" if region.scanned else "recorded",
            }
            for region in self.image.regions
        ]
        facts = {
            "mode": header.mode,
            "total_size": header.total_size,
            "durable_buffer_size": header.durable_buffer_size,
            "rolling_buffer_size": header.rolling_buffer_size,
            "wrapped_count": header.wrapped_count,
            "durable_data_end": header.durable_data_end,
            "rolling_data_end": list(header.rolling_data_end),
            "num_records_dropped": header.num_records_dropped,
            "buffers": buffers,
        }
        return attrs.evolve(
            summary,
            facts={**facts, **summary.facts},
            kinds={BufferHeader.record: 1, **summary.kinds},
        )

    # --- Findings ---

    def _report_image(self) -> None:
        """What is to be said about the image as such, whichever view finds it first."""
        add = self.diagnostics.add
        for fault in self.image.faults:
            add("FXT0501", fault.message, offset=min(fault.offset, self.source.size - 1), record=0)
        header = self.header
        if header is None:
            return
        size, total = self.source.size, header.total_size
        at_size = buffer_field_offset("total_size")
        if size < total:
            add("FXT0502", f"{size} bytes of {total} are there", offset=at_size, record=0)
        if any(header.reserved):
            number = next(number for number, bits in enumerate(header.reserved) if bits)
            add("FXT0509", offset=WORD * number, record=0)
        if header.num_records_dropped:
            message = f"{header.num_records_dropped} records were dropped"
            add("FXT0508", message, offset=_DROPPED_AT, record=0)
        for region in self.image.regions:
            end = region.offset + region.used
            if self.image.lost(region):
                message = (
                    f"records of {region.name} end {region.used} bytes into it, and should take "
                    f"{region.recorded_end}"
                )
                add("FXT0506", message, offset=end)
            elif region.scanned and region.used and not region.recorded_end:
                message = f"{region.name} says no end; its records take {region.used} bytes"
                add("FXT0504", message, offset=region.offset)
        messages = {
            "FXT0005": "{} odd bytes at the end",
            "FXT0503": "{} bytes behind the end of the buffer",
            "FXT0505": "{} stale bytes behind the records",
        }
        for part in self.image.stretches:
            if part.code in messages:
                message = messages[part.code].format(part.end - part.start)
                add(part.code, message, offset=part.start)
        limit = self.request.limits.max_findings or U64_MAX
        for words in self._metadata_words.values():
            for word in words[:limit].tolist():
                add("FXT0507", offset=WORD * word)
            if len(words) > limit:
                add("FXT0507", times=len(words) - limit)


# --- Writing records as an image ---------------------------------------------------------------

_BEHIND = frozenset({"FXT0005", "FXT0505", "FXT0506"})
"""Codes of damage that is no record lost, but space behind the records."""


@attrs.define
class _Buffer:
    """One buffer of an image that is being written."""

    name: str
    start: int
    size: int
    end: int
    """The recorded data end."""
    used: bytearray = attrs.field(factory=bytearray)
    behind: bytearray = attrs.field(factory=bytearray)
    """Padding and stale bytes behind the last record so far."""

    def add(self, data: bytes, *, behind: bool) -> None:
        """Take the bytes of the next record."""
        if behind:
            self.behind += data
            return
        self.used += self.behind
        self.used += data
        self.behind = bytearray()

    def settle(self, *, scanned: bool) -> int:
        """Make the parts fit the size, and give the data end: what is behind gives or takes."""
        room = self.size - len(self.used)
        if room < 0:
            raise _refusal(
                "FXT0411",
                f"the records of {self.name} take {len(self.used)} bytes, and it has {self.size}",
            )
        if room == len(self.behind):
            return self.end
        if room < len(self.behind):
            del self.behind[: len(self.behind) - room]
            if scanned and room >= WORD:
                # A scanning reader must not take what follows for records.
                self.behind[:WORD] = bytes(WORD)
        return len(self.used) if self.end else 0

    @property
    def gap(self) -> int:
        """Zero bytes that stand between the records and what is behind them."""
        return self.size - len(self.used) - len(self.behind)


class BufferWriter:
    """Makes an image of its records (``fxframework.registry.RecordWriter``).

    The ``buffer_header`` comes first; each record goes into the buffer that its ``offset`` lies
    in, behind those that came before it. Where records of a buffer became longer, shorter, more
    or fewer, the space behind them gives or takes the difference, and a recorded data end
    follows. ``image_size`` is the length of an image that is shorter than its header says.
    """

    def __init__(self, sink: Sink, *, image_size: int = 0) -> None:
        self._sink = sink
        self._closed = False
        self._image_size = image_size
        self._encoder = RecordEncoder()
        self._header: BufferHeader | None = None
        self._buffers: list[_Buffer] = []
        self._loose = bytearray()
        """What has no header before it, or stands behind the end of the buffer."""

    def write(self, record: BufferHeader | TraceRecord | Mapping[str, Any]) -> None:
        """Take a record. Raises WriteRefusedError (FXT0401 to FXT0412), nothing of it taken."""
        if isinstance(record, Mapping):
            if record.get("record") == BufferHeader.record:
                record = BufferHeader.from_json(record)
            else:
                offset = record.get("offset")
                record = from_json(record)
                if type(offset) is not int:
                    message = f"{record.record}: offset, which says the buffer, is missing"
                    raise _refusal("FXT0402", message)
                record.offset = offset
        if isinstance(record, BufferHeader):
            self._begin(record)
            return
        kind, offset = record.record, record.offset
        header = self._header
        end = 0 if header is None else header.total_size
        if header is None or offset >= end:
            if offset != end + len(self._loose) or not isinstance(record, Damaged):
                where = "behind the end of the buffer" if header else "without a buffer_header"
                raise _refusal("FXT0411", f"a {kind} record at byte {offset}, {where}")
            self._loose += self._encoder.encode(record)
            return
        buffer = next((b for b in self._buffers if b.start <= offset < b.start + b.size), None)
        if buffer is None:
            raise _refusal("FXT0411", f"byte {offset} of the image lies in none of its buffers")
        behind = isinstance(record, Padding) or (
            isinstance(record, Damaged) and record.code in _BEHIND
        )
        data = self._encode(record)
        if len(data) > buffer.size:
            raise _refusal(
                "FXT0411", f"a {kind} record of {len(data)} bytes, and {buffer.name} is smaller"
            )
        buffer.add(data, behind=behind)

    def _begin(self, header: BufferHeader) -> None:
        if self._header is not None or self._loose:
            raise _refusal("FXT0411", "an image has one buffer_header, before everything else")
        for fault in header.check(header.total_size):
            error = _refusal("FXT0412", f"buffer_header: {fault}")
            error.offset = fault.offset
            raise error
        size = self._image_size or header.total_size
        self._header = header
        self._buffers = [
            _Buffer(name, start, max(0, min(length, size - start)), end)
            for name, start, length, end in header.buffers()
        ]

    def _encode(self, record: TraceRecord) -> bytes:
        """The bytes of a record; metadata as it was read, and without effect on what follows."""
        if record.record != "metadata":
            return self._encoder.encode(record)
        raw = b"" if record.raw is None else bytes(record.raw)
        bare = attrs.evolve(record, raw=None)
        if [attrs.evolve(r, raw=None) for r in RecordDecoder().records(raw)] != [bare]:
            raise _refusal("FXT0410", "a provider writes no metadata into its trace buffer")
        return raw

    def close(self) -> None:
        """Write the image, once. Raises WriteRefusedError (FXT0411) where a buffer has too much."""
        if self._closed:
            return
        self._closed = True
        header = self._header
        if header is None:
            self._sink.write(self._loose)
            return
        oneshot = header.buffering_mode == BufferingMode.ONESHOT
        ends = {b.name: b.settle(scanned=oneshot or not b.end) for b in self._buffers}
        _, second = header.rolling_data_end
        header = attrs.evolve(
            header,
            durable_data_end=ends.get("durable", header.durable_data_end),
            rolling_data_end=(ends["rolling 0"], ends.get("rolling 1", second)),
        )
        self._sink.write(header.pack())
        for buffer in self._buffers:
            self._sink.write(buffer.used)
            for at in range(0, buffer.gap, CHUNK):
                self._sink.write(bytes(min(CHUNK, buffer.gap - at)))
            self._sink.write(buffer.behind)
        self._sink.write(self._loose)


def open_buffer_writer(
    sink: Sink,
    options: Mapping[str, Any],
    diagnostics: Diagnostics,  # noqa: ARG001 (findings are the reader's; this one refuses)
) -> BufferWriter:
    """A writer of images. Of the options, ``image_size`` is the length of one that was cut."""
    return BufferWriter(sink, image_size=int(options.get("image_size", 0)))


def salvage(
    capture: Capture,
    sink: Sink,
    options: Mapping[str, Any],  # noqa: ARG001 (what was cut off becomes unused space)
) -> Iterator[Loss]:
    """Write the sound records of an image, as one of full size; give each loss as it is met.

    Unused space, and what is stale in it, is no loss and stays. Metadata, which has no effect, is
    left out. References to what was never registered stay too: a buffer may have no room to mend
    them.
    """
    image = Image(capture.source.data)
    inside = [part for part in image.stretches if part.kind == RECORDS]
    writer = BufferWriter(sink)
    for one in capture.records():
        record = cast("BufferHeader | TraceRecord", one)
        if isinstance(record, BufferHeader):
            missing = record.total_size - capture.source.size
            if missing > 0:
                message = f"{missing} bytes of the image are missing; written as unused space"
                yield Loss(capture.source.size, 0, record.record, message, "FXT0502")
            if any(record.reserved):
                yield Loss(0, 0, record.record, "reserved bits were set; cleared", "FXT0509")
            writer.write(attrs.evolve(record, reserved=(0,) * len(BUFFER_HEADER)))
        elif isinstance(record, Padding):
            if any(part.start <= record.offset < part.end for part in inside):
                yield lost(record)
        elif isinstance(record, Damaged):
            if record.code == "FXT0505":
                writer.write(record)
            else:
                yield lost(record)
        elif record.record == "metadata":
            message = "metadata has no place in a trace buffer; left out"
            yield Loss(record.offset, record.nbytes, record.record, message, "FXT0507")
        else:
            writer.write(record)
    writer.close()


# --- The engine's side -------------------------------------------------------------------------


class TraceBuffer:
    """A trace buffer in some memory, as Fuchsia's trace engine keeps it (notes §3.3).

    ``put`` commits one whole record with a single store, that of its header word, so that an
    image taken, or a crash, between any two stores reads as the records committed so far. A
    buffer of mode ``streaming`` calls ``on_full(wrapped_count, durable_data_end)`` for each half
    that filled up, and does not write over it before ``saved`` was told of it.

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
        """The header as it stands in the memory."""
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
        store(_DROPPED_AT, self.dropped)

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
            raise _refusal("FXT0412", f"the memory holds no such trace buffer: {why}")
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
            raise _refusal("FXT0411", f"{len(record)} bytes that are not one whole record")
        if kind == layout.RecordType.METADATA:
            raise _refusal("FXT0410", "a provider writes no metadata into its trace buffer")

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


# --- A typical image ---------------------------------------------------------------------------


def sample(nbytes: int) -> bytes:
    """About ``nbytes`` of a stopped oneshot buffer, with the records of a typical trace."""
    from fx_trace.sample import sample as archive

    records = archive(nbytes)
    while records[0] & 15 == layout.RecordType.METADATA:
        word = _U64.unpack_from(records)[0]
        records = records[WORD * layout.SIZE.get(word) :]
    grain = layout.BUFFER_GRAIN
    total = -(-(BUFFER_HEADER_BYTES + len(records)) // grain) * grain
    header = BufferHeader.for_size(total, BufferingMode.ONESHOT)
    header = attrs.evolve(header, rolling_data_end=(len(records), 0))
    return (header.pack() + records).ljust(total, b"\0")
