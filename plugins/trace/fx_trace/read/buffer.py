"""Buffers: where the records are in an image of the memory that Fuchsia's trace engine fills.

A buffer is a header of 128 bytes and, without gaps, a durable buffer and two rolling ones; a
oneshot buffer has one rolling buffer and nothing else (docs/formats/trace-buffer.md). Records
are those of an archive, without metadata. ``fx_trace.write.buffer.TraceBuffer`` commits records
into any ``fxframework.model.target.Memory``; ``Image`` says where they are; ``fx_trace.read.image``
reads and writes files of it.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping
from typing import Any, Self

import attrs

from fx_trace import format as wire
from fx_trace import rules
from fx_trace.format import BUFFER_HEADER_BYTES, MODE_NAMES, BufferingMode
from fx_trace.indexed import HexBits
from fx_trace.read.frames import sizes_end
from fx_trace.records import TraceRecord
from fxframework import wire as declare
from fxframework.errors import Rule, refusal
from fxframework.io.words import WORD
from fxframework.kernels.arrays import U8
from fxframework.kit.json_fields import JsonFields
from fxframework.kit.lossless import record_of_json
from fxframework.wire.fields import Bits, Values
from fxframework.wire.state import State

ONESHOT = MODE_NAMES[BufferingMode.ONESHOT]


# --- The header --------------------------------------------------------------------------------


@attrs.frozen
class Fault:
    """What is wrong with a header, and the byte of the field that says it."""

    message: str
    offset: int

    def __str__(self) -> str:
        return self.message


class RollingEnd(Bits):
    """The data end of one of the rolling buffers; JSON has both in a list."""

    def show(self, value: Any, out: dict[str, Any]) -> None:
        """Put the number into record JSON."""
        out.setdefault("rolling_data_end", []).append(value)

    def parse_of(self, form: JsonFields, values: Values) -> None:
        """Put the number, from record JSON, beside those of the fields before it."""
        ends = form.need("rolling_data_end")
        if not isinstance(ends, list | tuple) or [type(end) for end in ends] != [int, int]:
            raise form.wrong("rolling_data_end", "two whole numbers")
        values[self.name] = ends[int(self.name[-1])]


def word(doc: str = "", kind: type[Bits] = Bits, **options: Any) -> Any:
    """Return a word of the header that is one number."""
    return kind(0, 63, WORD, doc=doc, **options)


class BufferHeader(TraceRecord, size=BUFFER_HEADER_BYTES, section="Trace buffer"):
    """The header of a trace buffer, the first record of an image. Sizes and ends are in bytes.

    Data ends count from the beginning of their buffer; 0 where the engine did not record them.
    ``raw`` is there where reserved bits are set.
    """

    magic: int = word("trace buffer", HexBits)
    version: int = declare.bits(0, 15, of=WORD, doc="version")
    mode: int | str = declare.bits(16, 23, label="buffering_mode", values=MODE_NAMES)
    _reserved = declare.bits(24, 31, doc="should be zero")
    wrapped_count: int = declare.bits(32, 63, doc="how often the rolling buffers were switched")
    total_size: int = word("bytes of the whole buffer, this header included")
    durable_buffer_size: int = word("bytes of the durable buffer; 0 in oneshot mode")
    rolling_buffer_size: int = word("bytes of each rolling buffer")
    durable_data_end: int = word("bytes of records in the durable buffer; 0 not recorded")
    rolling_data_end_0: int = word(
        "bytes of records in rolling buffer 0; 0 not recorded", RollingEnd
    )
    rolling_data_end_1: int = word(
        "bytes of records in rolling buffer 1; 0 not recorded", RollingEnd
    )
    num_records_dropped: int = word("records for which there was no room")
    _9, _10, _11, _12, _13, _14, _15 = (word(label="reserved") for _ in range(7))

    @classmethod
    def of(cls, data: Any) -> Self:
        """Return the header in the first 128 bytes; whatever they say is taken."""
        return cls.unpack(memoryview(data), 0, BUFFER_HEADER_BYTES, State())[0]

    @classmethod
    def for_size(cls, total_size: int, mode: BufferingMode | int | str) -> Self:
        """Return the header of an empty buffer of ``total_size`` bytes, as the engine makes it.

        Raises WriteRefusedError (BUFFER_TOO_SMALL) for a size that the engine refuses,
        INVALID_BUFFER_HEADER for a mode that there is not.
        """
        name = mode if isinstance(mode, str) else MODE_NAMES.get(mode)
        if name not in MODE_NAMES.values():
            known = ", ".join(MODE_NAMES.values())
            raise refusal(
                rules.INVALID_BUFFER_HEADER, f"no buffering mode {mode!r}; there are {known}"
            )
        grain = wire.BUFFER_GRAIN
        if total_size % grain or not grain <= total_size <= wire.MAX_BUFFER_BYTES:
            raise refusal(
                rules.BUFFER_TOO_SMALL,
                f"a trace buffer of {total_size} bytes: it has a multiple of {grain}, up to "
                f"{wire.MAX_BUFFER_BYTES}",
            )
        available = total_size - BUFFER_HEADER_BYTES
        durable = 0
        rolling = available
        if name != ONESHOT:
            durable = min(available // wire.DURABLE_SHARE, wire.MAX_DURABLE_BYTES)
            durable += (available - durable) % (2 * WORD)
            rolling = (available - durable) // 2
        return cls.of(bytes(BUFFER_HEADER_BYTES)).edited(
            magic=wire.BUFFER_MAGIC,
            version=wire.BUFFER_VERSION,
            mode=name,
            total_size=total_size,
            durable_buffer_size=durable,
            rolling_buffer_size=rolling,
        )

    def check(self, actual_size: int) -> list[Fault]:
        """What is wrong with it, for an image of so many bytes, in the order of the header."""
        faults: list[Fault] = []
        total = self.total_size
        durable = self.durable_buffer_size
        rolling = self.rolling_buffer_size

        def expect(sound: object, message: str, field: str) -> None:
            if not sound:
                faults.append(Fault(message, header_offset(field)))

        if self.magic != wire.BUFFER_MAGIC:
            # What the other fields say means nothing then.
            return [Fault(f"bad magic {self.magic:#018x}", header_offset("magic"))]
        is_supported = self.version == wire.BUFFER_VERSION
        expect(is_supported, f"unsupported version {self.version}", "version")
        has_words = actual_size % WORD == 0
        expect(has_words, f"{actual_size} bytes are not a whole number of words", "total_size")
        has_mode = self.mode in MODE_NAMES.values()
        expect(has_mode, f"unknown buffering mode {self.mode}", "mode")
        has_size = total == actual_size
        expect(has_size, f"total size {total} is not the file's, {actual_size}", "total_size")
        expect(total <= wire.MAX_BUFFER_BYTES, f"total size {total} is too large", "total_size")
        for field in ("durable_buffer_size", "rolling_buffer_size"):
            expect(getattr(self, field) % WORD == 0, f"{field} is not a multiple of 8", field)
        if self.mode == ONESHOT:
            expect(not durable, "a oneshot buffer has no durable part", "durable_buffer_size")
            fits = rolling == total - BUFFER_HEADER_BYTES
            expect(fits, "buffer sizes don't add up", "rolling_buffer_size")
        elif has_mode:
            expect(rolling < total // 2, "rolling buffer too large", "rolling_buffer_size")
            expect(durable < rolling, "durable buffer too large", "durable_buffer_size")
            fits = BUFFER_HEADER_BYTES + durable + 2 * rolling == total
            expect(fits, "buffer sizes don't add up", "durable_buffer_size")
        for field, size in zip(DATA_ENDS, (durable, rolling, rolling), strict=True):
            end = getattr(self, field)
            expect(end <= size, f"{field} is beyond its buffer", field)
            expect(end % WORD == 0, f"{field} is not a multiple of 8", field)
        return faults

    def buffers(self) -> tuple[tuple[str, int, int, int], ...]:
        """The buffers in the order of the file: name, file offset, size, recorded data end."""
        start = BUFFER_HEADER_BYTES
        size = self.rolling_buffer_size
        if self.mode == ONESHOT:
            return (("rolling 0", start, size, self.rolling_data_end_0),)
        durable = self.durable_buffer_size
        return (
            ("durable", start, durable, self.durable_data_end),
            ("rolling 0", start + durable, size, self.rolling_data_end_0),
            ("rolling 1", start + durable + size, size, self.rolling_data_end_1),
        )

    @classmethod
    def parse(cls, form: JsonFields) -> dict[str, Any]:
        """Return the fields, from JSON."""
        mode = form.need("mode")
        if type(mode) is not int and mode not in MODE_NAMES.values():
            raise form.wrong("mode", f"one of {', '.join(MODE_NAMES.values())}")
        return super().parse(form)

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Self:
        """Return the header that a JSON object says.

        Raises WriteRefusedError: INVALID_FIELDS for a field that is missing or unknown, WRONG_TYPE
        and OUT_OF_RANGE for a value of the wrong kind or size.
        """
        header: Self = record_of_json(given, {cls.record: cls}, "a trace buffer", rules.REFUSALS)
        header.pack()
        return header

    def encode(self) -> bytes:
        """Return its bytes: ``raw`` if that has the same fields."""
        raw = bytes(self.raw or b"")
        if self.decoded(raw, State()) == self:
            return raw
        return self.pack()


def header_offset(field: str) -> int:
    """Return the byte of the header at which a field begins."""
    place = BufferHeader.layout.place(field)
    return place.offset + place.shift // 8


DATA_ENDS = ("durable_data_end", "rolling_data_end_0", "rolling_data_end_1")
END_AT = dict(
    zip(("durable", "rolling 0", "rolling 1"), map(header_offset, DATA_ENDS), strict=True)
)
"""By the name of a buffer, the byte of the header at which its data end is."""


def mended(header: BufferHeader, size: int) -> BufferHeader | None:
    """Return a sound header for an image of ``size`` bytes, of one that is not; None if it is open.

    Magic number and version are known. Mode and sizes are those of the header as far as they add
    up, or those of the engine for so many bytes. A data end that is out of bounds becomes 0, so
    that scanning finds it.
    """
    with_magic = header.edited(magic=wire.BUFFER_MAGIC, version=wire.BUFFER_VERSION)
    # Candidates for the sizes, the ones that change least first.
    sized = [with_magic, with_magic.edited(total_size=size)]
    if size and size % wire.BUFFER_GRAIN == 0 and size <= wire.MAX_BUFFER_BYTES:
        for mode_name in MODE_NAMES.values():
            empty = BufferHeader.for_size(size, mode_name)
            has_durable_size = empty.durable_buffer_size == header.durable_buffer_size
            if has_durable_size or empty.rolling_buffer_size == header.rolling_buffer_size:
                sized.append(empty)
    for sizes, mode in itertools.product(sized, [header.mode, *MODE_NAMES.values()]):
        durable = sizes.durable_buffer_size
        rolling = sizes.rolling_buffer_size
        candidate = with_magic.edited(
            mode=mode,
            total_size=sizes.total_size,
            durable_buffer_size=durable,
            rolling_buffer_size=rolling,
        )
        for field, buffer_size in zip(DATA_ENDS, (durable, rolling, rolling), strict=True):
            data_end = getattr(candidate, field)
            if data_end > buffer_size or data_end % WORD:
                candidate = candidate.edited(**{field: 0})
        if not candidate.check(candidate.total_size):
            return candidate
    return None


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
    buffers = header.buffers()
    if header.mode != ONESHOT:
        durable, *rolling = buffers
        # They were switched ``wrapped_count`` times, beginning with number 0.
        current = header.wrapped_count % 2
        older = [rolling[1 - current]] if header.wrapped_count else []
        buffers = (durable, *older, rolling[current])
    for name, offset, full_size, recorded_end in buffers:
        size = max(0, min(full_size, data.size - offset))
        scanned = header.mode == ONESHOT or not recorded_end
        used = min(recorded_end, size // WORD * WORD)
        if scanned:
            limit = (offset + size) // WORD * WORD
            used = sizes_end(data, offset, limit) - offset if size else 0
        yield Region(
            name=name,
            offset=offset,
            used=used,
            size=size,
            recorded_end=recorded_end,
            scanned=scanned,
        )


@attrs.frozen
class Stretch:
    """Bytes ``start`` to ``end`` of an image: the header, records, zero words, or else damage."""

    start: int
    end: int
    kind: str
    rule: Rule | None = None
    """The rule of the finding about damage."""


HEADER = "header"
RECORDS = "records"
PADDING = "padding"
DAMAGED = "damaged"


def _unused(data: U8, start: int, end: int, rule: Rule) -> Iterator[Stretch]:
    """Yield what stands for the bytes behind the records of a buffer."""
    end = max(start, end)
    words_end = start + (end - start) // WORD * WORD
    if data[start:words_end].any():
        yield Stretch(start, words_end, DAMAGED, rule)
    elif words_end > start:
        yield Stretch(start, words_end, PADDING)
    if end > words_end:
        yield Stretch(words_end, end, DAMAGED, rules.ODD_BYTES)


class Image:
    """An image as its bytes show it: the header, the plan, and all stretches in reading order.

    With ``recorded``, for salvage, records go on behind damage, to the ends that the header says,
    and a damaged header is the one that it must have been, if that is known.
    """

    def __init__(self, data: U8, *, recorded: bool = False) -> None:
        self.data = data
        self._recorded = recorded
        self.header: BufferHeader | None = None
        self.faults: list[Fault] = []
        """What is wrong with the header; without ``recorded`` there is none then."""
        size = int(data.size)
        if not size:
            return
        if size < BUFFER_HEADER_BYTES:
            self.faults = [Fault(f"{size} bytes, too few for a header", 0)]
            return
        header = BufferHeader.of(data)
        # An image of another length than it says can be read all the same, as far as it goes.
        self.faults = header.check(header.total_size)
        if not self.faults:
            self.header = header
        elif recorded:
            self.header = mended(header, size)

    @functools.cached_property
    def regions(self) -> tuple[Region, ...]:
        """The buffers that hold records, in reading order."""
        if self.header is None:
            return ()
        regions = list(reading_plan(self.header, self.data))
        if self._recorded:
            for index, region in enumerate(regions):
                if self.lost(region):
                    recorded = min(region.recorded_end, region.size) // WORD * WORD
                    regions[index] = attrs.evolve(region, used=recorded)
        return tuple(regions)

    @functools.cached_property
    def stretches(self) -> tuple[Stretch, ...]:
        """All bytes: the header, each buffer with what is behind its records, then the rest."""
        size = int(self.data.size)
        if not size:
            return ()
        if self.header is None:
            return (Stretch(0, size, DAMAGED, rules.BUFFER_HEADER),)
        stretches = [Stretch(0, BUFFER_HEADER_BYTES, HEADER)]
        for region in self.regions:
            records_end = region.offset + region.used
            if region.used:
                stretches.append(Stretch(region.offset, records_end, RECORDS))
            rule = rules.RECORDS_END_EARLY if self.lost(region) else rules.STALE_BYTES
            stretches += _unused(self.data, records_end, region.offset + region.size, rule)
        # A rolling buffer that was never switched to is in no region.
        names = {region.name for region in self.regions}
        for name, offset, length, _ in self.header.buffers():
            if name not in names:
                end = min(offset + length, size)
                stretches += _unused(self.data, offset, end, rules.STALE_BYTES)
        total_size = self.header.total_size
        if size > total_size:
            stretches.append(Stretch(total_size, size, DAMAGED, rules.BEHIND_THE_BUFFER))
        return tuple(stretches)

    def lost(self, region: Region) -> bool:
        """Return whether scanning ended before the end that the header says, in existing bytes."""
        return region.scanned and region.used < min(region.recorded_end, region.size)

    def at(self, offset: int) -> Stretch:
        """Return the stretch that holds byte ``offset``."""
        return next(stretch for stretch in self.stretches if stretch.start <= offset < stretch.end)
