"""Images of trace buffers: read into records and tables where they lie, buffer after buffer.

docs/formats/trace-buffer.md describes them; ``fx_trace.write.rewriter`` makes one of its records.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any, cast

import attrs
import numpy as np

from fx_trace import format as wire
from fx_trace import rules
from fx_trace.read.buffer import (
    DAMAGED,
    HEADER,
    PADDING,
    RECORDS,
    BufferHeader,
    Image,
    header_offset,
)
from fx_trace.read.capture import TraceCapture
from fx_trace.read.decoder import RecordReader
from fx_trace.read.first_pass import TracePass
from fx_trace.read.frames import TraceFile
from fx_trace.records import (
    FIRST_WORD,
    SIZE,
    Damaged,
    Padding,
    ProviderEvent,
    ProviderInfo,
    TraceInfo,
    TraceRecord,
)
from fxframework.io.source import Source, spool_file
from fxframework.io.words import U64_MAX, WORD
from fxframework.kernels.arrays import I64
from fxframework.model.capture import OpenRequest, Record, Summary
from fxframework.model.diagnostics import Diagnostics

COUNTED_AS = {PADDING: wire.KIND_PADDING, DAMAGED: wire.KIND_DAMAGED, HEADER: -1}
"""The numbers of the kinds as which stretches count that have no records; -1 for none."""


MORE_THAN_AN_IMAGE = 1 << 40
"""A number of bytes that no image has."""


def metadata_apart(view: memoryview, start: int, end: int) -> TraceRecord:
    """Return a metadata record, which in an image says nothing about others."""
    header = FIRST_WORD.get(view, start)
    record, _ = RecordReader(big_endian=False).read(view, start, end, header)
    if isinstance(record, Damaged):
        record.code = rules.METADATA_IN_BUFFER.code
    else:
        # It tells a writer that the record comes from an image, and is not made up.
        record.raw = view[start:end].tobytes()
    return record


class ReadingOrder:
    """The bytes of an image in reading order, a copy if that is not the order of the file.

    Stretches begin at whole words. Offsets are those in the file, places those in ``source``.
    """

    def __init__(self, image: Image, source: Source) -> None:
        self.image = image
        self.stretches = image.stretches
        starts = [stretch.start for stretch in self.stretches]
        ends = [stretch.end for stretch in self.stretches]
        self.offsets = np.array(starts, np.int64)
        sizes = np.array(ends, np.int64) - self.offsets
        ends_of_words = np.cumsum(-(-sizes // WORD) * WORD)
        self.places = np.append(0, ends_of_words)[: sizes.size]
        self.ends = self.places + sizes
        self.source = source
        self.is_moved = not np.array_equal(self.offsets, self.places)
        if self.is_moved:
            ordered = np.zeros(int(self.ends[-1]), np.uint8)
            for number, stretch in enumerate(self.stretches):
                octets = source.data[stretch.start : stretch.end]
                ordered[self.places[number] : self.ends[number]] = octets
            self.source = Source.open(ordered.data)

    def parts(self) -> list[tuple[int, int, bool]]:
        """Return the places where stretches begin and end, and whether records are in them."""
        has_records = [stretch.kind == RECORDS for stretch in self.stretches]
        return list(zip(self.places.tolist(), self.ends.tolist(), has_records, strict=True))

    def number_at(self, places: Any) -> Any:
        """Return the numbers of the stretches that hold some places."""
        return np.searchsorted(self.places, places, side="right") - 1

    def offset_of(self, places: I64) -> I64:
        """Return the offsets of some places."""
        stretch = self.number_at(places)
        bytes_into_stretch = places - self.places[stretch]
        offsets: I64 = self.offsets[stretch] + bytes_into_stretch
        return offsets

    def counted_as(self, place: int) -> int:
        """Return the number of the kind as which a stretch without records counts, or -1."""
        return COUNTED_AS[self.stretches[int(self.number_at(place))].kind]

    def special(self, begin: int, end: int) -> Any:
        """Return what is shown of metadata, or of a stretch in which there are no records."""
        stretch = self.stretches[int(self.number_at(begin))]
        view = memoryview(cast("Any", self.source.data))
        if stretch.kind == RECORDS:
            return metadata_apart(view, begin, end)
        if stretch.kind == HEADER:
            return self.image.header
        if stretch.kind == PADDING:
            return Padding.at(stretch.start, end - begin)
        code = ""
        if stretch.rule is not None:
            code = stretch.rule.code
        return Damaged.at(stretch.start, view[begin:end], code)


class BufferCapture(TraceCapture):
    """An image of a trace buffer: the tables are those of a trace.

    Rows are in reading order; ``offset`` is the place in the image, so that offsets of a buffer
    that wrapped may go down once (``read_order`` puts them in order). An image whose header is
    inconsistent opens too: BUFFER_HEADER says what is wrong with it, tables are empty, and its
    bytes are one damaged record.
    """

    format = "trace-buffer"

    def __init__(self, source: Source, request: OpenRequest) -> None:
        super().__init__(source, request)
        # Images are little-endian, whatever archive's magic a file may begin with.
        self.big_endian = False
        self.words = source.words().view(np.int64)
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

    def read_order(self, offsets: I64) -> I64:
        """For offsets in the image, numbers that are in the order of reading, same shape."""
        stretch_starts = [stretch.start for stretch in self.image.stretches]
        starts = np.array(stretch_starts, np.int64)
        by_offset = np.argsort(starts)
        stretch = by_offset[np.searchsorted(starts[by_offset], offsets, side="right") - 1]
        # The number of the stretch counts before the offset.
        reading_order: I64 = stretch * MORE_THAN_AN_IMAGE + offsets
        return reading_order

    # --- Records ---

    def records(self) -> Iterator[Record]:
        """Yield the header and every record, unused space included."""
        diagnostics = self.record_diagnostics
        if diagnostics is not None:
            self._report_image(diagnostics)
        return self.objects(diagnostics)

    def records_json(self) -> Iterator[bytes]:
        """Return the same as JSON lines, block by block."""
        diagnostics = self.record_diagnostics
        if diagnostics is not None:
            self._report_image(diagnostics)
        return self.lines(diagnostics)

    def file(self) -> TraceFile:
        """Return the bytes of the image in reading order, a copy if that is another one."""
        order = ReadingOrder(self.image, self.source)
        file = TraceFile(
            order.source,
            limits=self.request.limits,
            stretches=order.parts(),
            special=order.special,
            apart=True,
            offset_of=order.offset_of,
            counted_as=order.counted_as,
        )
        file.is_moved = order.is_moved
        return file

    # --- Tables ---

    @functools.cached_property
    def _metadata_words(self) -> dict[int, I64]:
        """By the first byte of a stretch of records: the words where metadata begins in it."""
        file = TraceFile(self.source, limits=self.request.limits, stretches=[])
        return {
            stretch.start: file.metadata_in(stretch.start, stretch.end) // WORD
            for stretch in self.image.stretches
            if stretch.kind == RECORDS
        }

    def to_recorded_ends(self) -> BufferCapture:
        """Return the same with all records up to the data ends of the header, behind damage too.

        A damaged header is mended, where the rest of it and the size of the image say how.
        """
        if self.header is not None and not any(map(self.image.lost, self.image.regions)):
            return self
        request = attrs.evolve(self.request, observer=None, strict=False)
        capture = BufferCapture(self.source, request)
        capture.image = Image(self.source.data, recorded=True)
        return capture

    def as_archive(self) -> TraceCapture:
        """Return the same as an archive of one provider: what a trace manager makes of it.

        Records are in reading order. The provider has the name of the file; where records were
        dropped, an event says so.
        """
        name = PurePath(self.name).name.encode()[:255].decode(errors="ignore")
        stage: list[TraceRecord] = [
            TraceInfo(info_type=0, magic=wire.MAGIC),
            ProviderInfo(id=1, name=name),
        ]
        if self.header is not None and self.header.num_records_dropped:
            stage.append(ProviderEvent(id=1, event=0))
        with spool_file() as spool:
            spool.write(b"".join(record.pack() for record in stage))
            for start, end in self._kept_words():
                spool.write(self.words[start:end].tobytes())
            source = Source.spooled(spool, name=self.name)
        return TraceCapture(source, attrs.evolve(self.request, observer=None, strict=False))

    def _kept_words(self) -> Iterator[tuple[int, int]]:
        """Yield from which word to which one there are records that are not metadata."""
        for stretch in self.image.stretches:
            if stretch.kind != RECORDS:
                continue
            first_word = stretch.start // WORD
            for metadata_word in self._metadata_words[stretch.start].tolist():
                yield first_word, metadata_word
                first_word = metadata_word + SIZE.of(int(self.words[metadata_word]))
            yield first_word, stretch.end // WORD

    def _report(self, passed: TracePass) -> None:
        super()._report(passed)
        self._report_image(self.diagnostics)

    def record_counts(self) -> Mapping[str, int]:
        """Return the number of records of each kind, from a pass that keeps no columns.

        Of an image whose header is damaged they are those that salvage finds.
        """
        if self.header is None:
            mended = self.to_recorded_ends()
            if mended.header is None:
                return super().record_counts()
            return mended.record_counts()
        return {BufferHeader.record: 1, **super().record_counts()}

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
            "rolling_data_end": [header.rolling_data_end_0, header.rolling_data_end_1],
            "num_records_dropped": header.num_records_dropped,
            "buffers": buffers,
        }
        return attrs.evolve(
            summary,
            facts={**facts, **summary.facts},
            kinds={BufferHeader.record: 1, **summary.kinds},
        )

    # --- Findings ---

    def _report_image(self, diagnostics: Diagnostics) -> None:
        """Report what is to be said about the image as such."""
        add = diagnostics.add
        for fault in self.image.faults:
            add(rules.BUFFER_HEADER, min(fault.offset, self.source.size - 1), 0, fault.message)
        header = self.header
        if header is None:
            return
        size = self.source.size
        total = header.total_size
        if size < total:
            add(rules.IMAGE_TRUNCATED, header_offset("total_size"), 0, size, total=total)
        if header.raw is not None:
            usual_bytes = header.pack()
            byte = next(byte for byte in range(size) if header.raw[byte] != usual_bytes[byte])
            add(rules.RESERVED_HEADER_BITS, byte // WORD * WORD, 0)
        dropped = header.num_records_dropped
        if dropped:
            add(rules.RECORDS_DROPPED, header_offset("num_records_dropped"), 0, dropped)
        self.report_regions(diagnostics)
        for stretch in self.image.stretches:
            if stretch.rule == rules.ODD_BYTES:
                add(stretch.rule, stretch.start, value=rules.odd_bytes_detail(size))
            elif stretch.rule in (rules.BEHIND_THE_BUFFER, rules.STALE_BYTES):
                add(stretch.rule, stretch.start, value=stretch.end - stretch.start)
        # Only so many are listed, the others are counted.
        limit = self.request.limits.max_findings or U64_MAX
        for words in self._metadata_words.values():
            for word in words[:limit].tolist():
                add(rules.METADATA_IN_BUFFER, WORD * word)
            if len(words) > limit:
                add(rules.METADATA_IN_BUFFER, times=len(words) - limit)

    def report_regions(self, diagnostics: Diagnostics) -> None:
        """Report where records of buffers do not end where the header says."""
        add = diagnostics.add
        for region in self.image.regions:
            about: dict[str, Any] = {
                "buffer": region.name,
                "value": region.used,
                "recorded": region.recorded_end,
            }
            if self.image.lost(region):
                add(rules.RECORDS_END_EARLY, region.offset + region.used, **about)
            elif region.scanned and region.used and not region.recorded_end:
                add(rules.END_BY_SCANNING, region.offset, **about)
            elif region.scanned and region.used > region.recorded_end:
                add(rules.RECORDS_BEHIND_DATA_END, region.offset + region.recorded_end, **about)
