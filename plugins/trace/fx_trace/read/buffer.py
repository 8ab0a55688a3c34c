"""Buffers: where the records are in an image of the memory that Fuchsia's trace engine fills.

A buffer is a header of 128 bytes and, without gaps, a durable buffer and two rolling ones; a
oneshot buffer has one rolling buffer and nothing else (docs/formats/trace-buffer.md). Records
are those of an archive, without metadata. ``fx_trace.write.buffer.TraceBuffer`` commits records
into any ``fxframework.model.target.Memory``; ``Image`` says where they are; ``fx_trace.read.image``
reads and writes files of it.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_trace import format as wire
from fx_trace import rules
from fx_trace.format import BUFFER_HEADER, BUFFER_HEADER_BYTES, BufferingMode, buffer_field_offset
from fx_trace.read.framing import RecordBounds
from fxframework.errors import Rule, refusal
from fxframework.io.words import WORD
from fxframework.kit.json_fields import JsonFields

__all__ = ["BufferHeader", "Fault", "Image", "Region", "Stretch", "reading_plan"]

I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]

HEADER_WORDS = struct.Struct(f"<{len(BUFFER_HEADER)}Q")
_RESERVED = tuple(word.reserved_mask for word in BUFFER_HEADER)
_MODE_NUMBERS = {name: number for number, name in wire.MODE_NAMES.items()}
MAGIC_AT = buffer_field_offset("magic")
MODE_WORD_AT = buffer_field_offset("version")
DURABLE_END_AT = buffer_field_offset("durable_data_end")
ROLLING_END_AT = tuple(buffer_field_offset(f"rolling_data_end_{half}") for half in (0, 1))
END_FIELDS = {
    "durable": "durable_data_end",
    "rolling 0": "rolling_data_end_0",
    "rolling 1": "rolling_data_end_1",
}
"""The field that says a buffer's data end, by the buffer's name."""
DROPPED_AT = buffer_field_offset("num_records_dropped")
MODE_WORD = BUFFER_HEADER[MODE_WORD_AT // WORD]
LIMIT_32 = 0xFFFFFFFF
_NUMBERS = (
    "version", "wrapped_count", "total_size", "durable_buffer_size", "rolling_buffer_size",
    "durable_data_end", "num_records_dropped",
)  # fmt: skip
"""Fields of the header that JSON shows as they are."""
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

    magic: int = wire.BUFFER_MAGIC
    version: int = wire.BUFFER_VERSION
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
        """Return the header of an empty buffer of ``total_size`` bytes, as the engine makes it.

        Raises WriteRefusedError (BUFFER_TOO_SMALL) for a size that the engine refuses,
        INVALID_BUFFER_HEADER for a mode that there is not.
        """
        number = _MODE_NUMBERS.get(mode) if isinstance(mode, str) else int(mode)
        if number not in wire.MODE_NAMES:
            known = ", ".join(_MODE_NUMBERS)
            raise refusal(
                rules.INVALID_BUFFER_HEADER, f"no buffering mode {mode!r}; there are {known}"
            )
        least, most = wire.BUFFER_GRAIN, wire.MAX_BUFFER_BYTES
        if total_size % least or not least <= total_size <= most:
            raise refusal(
                rules.BUFFER_TOO_SMALL,
                f"a trace buffer of {total_size} bytes: it has a multiple of {least}, up to {most}",
            )
        available = total_size - BUFFER_HEADER_BYTES
        durable = 0
        rolling = available
        if number != BufferingMode.ONESHOT:
            durable = min(available // wire.DURABLE_SHARE, wire.MAX_DURABLE_BYTES)
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
        """Return the header in the first 128 bytes; whatever they say is taken."""
        words = HEADER_WORDS.unpack_from(data)
        fields: dict[str, Any] = {}
        for word, bits in zip(words, BUFFER_HEADER, strict=True):
            fields |= bits.unpack(word)
        ends = (fields.pop("rolling_data_end_0"), fields.pop("rolling_data_end_1"))
        reserved = tuple(word & mask for word, mask in zip(words, _RESERVED, strict=True))
        return cls(**{**fields, "rolling_data_end": ends, "reserved": reserved})

    def pack(self) -> bytes:
        """Return the 128 bytes.

        Raises WriteRefusedError (OUT_OF_RANGE) where a number does not fit.
        """
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
                raise refusal(rules.OUT_OF_RANGE, f"buffer_header: {error}") from None
        return HEADER_WORDS.pack(*words)

    @property
    def mode(self) -> str:
        """The mode's name, or its number where there is no such mode."""
        return wire.MODE_NAMES.get(self.buffering_mode, str(self.buffering_mode))

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

        if self.magic != wire.BUFFER_MAGIC:
            # What the other fields say means nothing then.
            return [Fault(f"bad magic {self.magic:#018x}", MAGIC_AT)]
        supported = self.version == wire.BUFFER_VERSION
        expect(supported, f"unsupported version {self.version}", "version")
        whole = actual_size % WORD == 0
        expect(whole, f"{actual_size} bytes are not a whole number of words", "total_size")
        known = self.buffering_mode in wire.MODE_NAMES
        expect(known, f"unknown buffering mode {self.buffering_mode}", "buffering_mode")
        same = total == actual_size
        expect(same, f"total size {total} is not the file's, {actual_size}", "total_size")
        expect(total <= wire.MAX_BUFFER_BYTES, f"total size {total} is too large", "total_size")
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
        """Return the header as record JSON; ``raw`` where reserved bits are set."""
        out = {
            "record": self.record,
            "offset": 0,
            "nbytes": BUFFER_HEADER_BYTES,
            "magic": f"{self.magic:#018x}",
            "version": self.version,
            "mode": wire.MODE_NAMES.get(self.buffering_mode, self.buffering_mode),
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
        """Return the header that a JSON object says.

        Reserved bits are those of ``raw``, if it fits.

        Raises WriteRefusedError: INVALID_FIELDS for a field that is missing or unknown, WRONG_TYPE
        and OUT_OF_RANGE for a value of the wrong kind or size.
        """
        form = JsonFields(cls.record, given, rules.REFUSALS)
        form.used |= {"record", "offset", "nbytes"}
        mode = form.need("mode")
        if type(mode) is not int and not (isinstance(mode, str) and mode in _MODE_NUMBERS):
            raise form.wrong("mode", f"one of {', '.join(_MODE_NUMBERS)}")
        ends = form.need("rolling_data_end")
        if not isinstance(ends, list | tuple) or [type(end) for end in ends] != [int, int]:
            raise form.wrong("rolling_data_end", "two whole numbers")
        numbers: dict[str, Any] = {name: form.number(name) for name in _NUMBERS}
        header = cls(
            magic=form.hex_number("magic"),
            buffering_mode=_MODE_NUMBERS[mode] if isinstance(mode, str) else mode,
            rolling_data_end=(ends[0], ends[1]),
            **numbers,
        )
        raw = form.octets("raw") if "raw" in form else b""
        form.finish()
        header.pack()
        if len(raw) == BUFFER_HEADER_BYTES:
            meant = cls.unpack(raw)
            if attrs.evolve(meant, reserved=header.reserved) == header:
                return meant
        return header


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
    """Yield the buffers of an image in the order in which their records were made.

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
class Stretch:
    """Bytes ``start`` to ``end`` of an image: the header, records, zero words, or else damage."""

    start: int
    end: int
    kind: str
    rule: Rule | None = None
    """The rule of the finding about damage."""


HEADER, RECORDS, PADDING, DAMAGED = "header", "records", "padding", "damaged"


def _unused(data: U8, start: int, end: int, rule: Rule) -> Iterator[Stretch]:
    """Yield what stands for the bytes behind the records of a buffer."""
    end = max(start, end)
    whole = start + (end - start) // WORD * WORD
    if whole > start:
        stale = bool(data[start:whole].any())
        yield Stretch(start, whole, DAMAGED if stale else PADDING, rule if stale else None)
    if end > whole:
        yield Stretch(whole, end, DAMAGED, rules.ODD_BYTES)


class Image:
    """An image as its bytes show it: the header, the plan, and all stretches in reading order.

    With ``recorded``, for salvage, records go on behind damage, to the ends that the header says.
    """

    def __init__(self, data: U8, *, recorded: bool = False) -> None:
        self.data = data
        self._recorded = recorded
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
        if self.header is None:
            return ()
        plan = reading_plan(self.header, self.data)
        if not self._recorded:
            return tuple(plan)
        return tuple(
            attrs.evolve(region, used=min(region.recorded_end, region.size) // WORD * WORD)
            if self.lost(region)
            else region
            for region in plan
        )

    @functools.cached_property
    def stretches(self) -> tuple[Stretch, ...]:
        """All bytes: the header, each buffer with what is behind its records, then the rest."""
        size = int(self.data.size)
        if self.header is None:
            return (Stretch(0, size, DAMAGED, rules.BUFFER_HEADER),) if size else ()
        found = [Stretch(0, BUFFER_HEADER_BYTES, HEADER)]
        for region in self.regions:
            used = region.offset + region.used
            if region.used:
                found.append(Stretch(region.offset, used, RECORDS))
            rule = rules.RECORDS_END_EARLY if self.lost(region) else rules.STALE_BYTES
            found += _unused(self.data, used, region.offset + region.size, rule)
        read = {region.name for region in self.regions}
        for name, offset, length, _ in self.header.buffers():
            if name not in read:
                found += _unused(self.data, offset, min(offset + length, size), rules.STALE_BYTES)
        if size > self.header.total_size:
            found.append(Stretch(self.header.total_size, size, DAMAGED, rules.BEHIND_THE_BUFFER))
        return tuple(found)

    def lost(self, region: Region) -> bool:
        """Return whether scanning ended before the end that the header says, in existing bytes."""
        return region.scanned and region.used < min(region.recorded_end, region.size)

    def at(self, offset: int) -> Stretch:
        """Return the stretch that holds byte ``offset``."""
        return next(part for part in self.stretches if part.start <= offset < part.end)


# --- The engine's side -------------------------------------------------------------------------
