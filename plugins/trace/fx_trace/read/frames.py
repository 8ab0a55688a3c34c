"""Frames: the stretches of a trace: records, and what lies between them.

``TraceFile`` has the bytes that records lie in, in reading order; ``TraceFrames`` finds them there,
by wire's framing. ``trace_format`` is what the framing and the blocks take for a format.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fx_trace import records as r
from fx_trace import rules
from fx_trace.format import KIND_DAMAGED, MAGIC, MAGIC_WORD, MINIMUM_WORDS
from fx_trace.indexed import STRINGS, THREADS
from fx_trace.kinds import MAX_STRING_INDEX, MAX_THREAD_INDEX, STRING_REF_BITS, RecordType
from fx_trace.read.cursor import Tables, TraceCursor
from fxframework.io.limits import Limits
from fxframework.io.source import Source
from fxframework.io.words import U64_MAX, WORD, view_of
from fxframework.kernels.arrays import I64
from fxframework.wire.blocks import plan_for
from fxframework.wire.contents import Likely, contents_of, resumption_by_contents
from fxframework.wire.cursor import ShortError
from fxframework.wire.expressions import wrapped
from fxframework.wire.format import every_layout
from fxframework.wire.framing import (
    BAD_SIZE,
    HIDING,
    PADDING,
    ROOM,
    UNKNOWN,
    ListedFrames,
    frames_of_families,
)

if TYPE_CHECKING:
    from fx_trace.records import TraceRecord
    from fxframework.kernels.frames import Frames
    from fxframework.wire.families import Place
    from fxframework.wire.framing import Resumption
    from fxframework.wire.records import Layout

AT_ONCE = 1 << 13
"""Rows that the loop finds at a time, of those that are listed together."""
SPECIAL = -1
"""Instead of the number of a rule: a stretch in which no records are looked for."""
SPEAKING = (r.ProviderInfo, r.ProviderSection, r.ProviderEvent, r.Initialization)
"""Classes of records that say something about the provider."""
FAMILIES = (
    r.PlainRecord, r.MetadataRecord, r.SchedulingRecord, r.ProfilerRecord, r.LargeRecord,
)  # fmt: skip
LEAST = {int(kind): WORD * words for kind, words in MINIMUM_WORDS.items()}
"""By record type, the fewest bytes that framing believes."""
TYPES = sorted(LEAST)
"""The record type of each entry of the framing."""
LIKELY: Mapping[Any, Likely] = {
    r.ProviderEvent: {"event": range(1)},
    r.TraceInfo: {"info_type": range(1), "magic": range(MAGIC, MAGIC + 1)},
    r.StringRecord: {
        "index": range(1, MAX_STRING_INDEX + 1),
        "_length": range(1, MAX_STRING_INDEX + 1),
    },
    r.ThreadRecord: {"index": range(1, MAX_THREAD_INDEX + 1)},
    r.Event: {"_name_ref": range(1, STRING_REF_BITS + 1)},
    r.Log: {"_message_length": range(1, MAX_STRING_INDEX + 1)},
}
"""What numbers of headers are in what is taken for a record, where others would be right too."""


@functools.cache
def resumption(*, big: bool) -> Resumption:
    """Return where reading goes on after damage: where contents fill a record.

    Large records are not looked for: what they hold is counted in a word of their own.
    """
    classes = [cls for cls in r.BY_HEADER.values() if not issubclass(cls, r.LargeRecord)]
    likely_of_class = {cls: LIKELY.get(cls, {}) for cls in classes}
    return resumption_by_contents(contents_of(likely_of_class, big=big))


def words_of(headers: I64) -> I64:
    """Return the sizes of records in words, as their headers say."""
    is_large = r.TYPE.of(headers) == RecordType.LARGE
    words: I64 = np.where(is_large, r.LARGE_SIZE.of(headers), r.SIZE.of(headers))
    return words


def sizes_end(data: NDArray[np.uint8], begin: int, end: int) -> int:
    """Return the byte at which records end that begin at byte ``begin``, by their sizes alone.

    They end at a size of zero, or before a record that passes byte ``end``. One that fills the rest
    exactly counts, which the scan of the reference manager loses.
    """
    # Records of types without an entry are unknown, and have their sizes where most others do.
    frames = frames_of_families(data[:end], FAMILIES, {int(RecordType.LARGE): WORD}, None)
    frames.asking = 1
    place = begin
    reason = 0
    while place < end and not reason:
        count, reason = frames.read(place, ROOM, end)
        zero_words = np.flatnonzero(frames.entries[:count] == PADDING)
        if zero_words.size:
            return int(frames.places[zero_words[0]])
        place = frames.next
    return place


class TraceFormat:
    """The records of traces, all families of them, as ``wire.blocks`` takes a format."""

    codes = "FXT"
    begin = 0
    choosy = False
    marked = None
    registers: tuple[Any, ...] = ()
    text_tables = (STRINGS, THREADS)

    def __init__(self) -> None:
        families = [base.layout.family for base in FAMILIES]
        members = [cls for family in families for cls in family.members]
        others = [family.other for family in families if family.other is not None]
        self.classes = [*members, *others, r.Unknown]
        self.candidates = [[cls] for cls in self.classes]
        self.compiled: dict[Any, Any] = {}

    def layouts(self) -> Iterator[Layout]:
        """Yield the layouts of all records, and of the parts in them."""
        return every_layout(cls.layout for cls in self.classes)

    @functools.cached_property
    def by_subtype(self) -> dict[int, tuple[list[Place], NDArray[np.int32]]]:
        """By record type of several classes: where headers have the subtypes, and their numbers."""
        by_subtype = {}
        for base in FAMILIES:
            family = base.layout.family
            places = [family.places[field] for field in family.kinds[1:]]
            if not places:
                continue
            record_type = int(family.members[0].layout.kind[0])
            headers = [record_type]
            for place in places:
                subtypes = range(place.mask + 1)
                headers = [place.put(header, subtype) for header in headers for subtype in subtypes]
            numbers = [self.classes.index(r.class_of(header)) for header in headers]
            by_subtype[record_type] = places, np.array(numbers, np.int32)
        return by_subtype

    @functools.cached_property
    def by_entry(self) -> NDArray[np.int32]:
        """By entry of the framing, the number of the only class that it has, or of unknown ones.

        Entries of stretches that are not records are negative, and so count from the end.
        """
        unknown = self.classes.index(r.Unknown)
        classes = [r.class_of(kind) if has_one_class(kind) else r.Unknown for kind in TYPES]
        numbers = list(map(self.classes.index, classes))
        by_entry = np.array([*numbers, *[BAD_SIZE] * -HIDING], np.int32)
        by_entry[UNKNOWN] = unknown
        return by_entry

    def entries_of(
        self, framed: NDArray[np.int32], words: I64, begin: I64, *, apart: bool
    ) -> NDArray[np.int32]:
        """Return the numbers of the classes of records that begin at some bytes.

        ``framed`` are their entries of the framing. With ``apart``, metadata has none.
        """
        entries = self.by_entry.take(framed)
        for entry, kind in enumerate(TYPES):
            if kind not in self.by_subtype:
                continue
            rows = np.flatnonzero(framed == entry)
            if apart and kind == RecordType.METADATA:
                entries[rows] = BAD_SIZE
            elif rows.size:
                places, numbers = self.by_subtype[kind]
                headers = words.take(begin[rows] // WORD)
                subtypes = places[0].of(headers)
                for place in places[1:]:
                    subtypes = subtypes * (place.mask + 1) + place.of(headers)
                entries[rows] = numbers.take(subtypes)
        return entries


def has_one_class(kind: int) -> bool:
    """Return whether all records of a type are of one class."""
    return r.MASKS[kind] == r.TYPE.mask


@functools.cache
def trace_format() -> TraceFormat:
    """Return the records of traces."""
    format: Any = TraceFormat()
    for cls in SPEAKING:
        plan_for(format).classes[cls].stops = True  # later records depend on what it says
    for cls in format.classes:
        args = cls.layout.by_name.get("args")
        if args is not None:
            args.in_rows = True
    return format  # type: ignore[no-any-return]


class TraceFile:
    """The bytes that the records of a trace lie in, in reading order, and its stretches.

    ``source`` has the bytes of the file, or those of an image of a trace buffer put in order.
    ``stretches`` are the parts of it: where they begin and end, and whether records are in them.
    ``special`` returns what is shown of others, of damage, and with ``apart`` of metadata, which
    then says nothing about other records; None for what an archive would have there. With
    ``splits``, for salvage, damage ends where sound records follow that a size hides.
    """

    def __init__(
        self,
        source: Source,
        *,
        big_endian: bool = False,
        limits: Limits,
        stretches: list[tuple[int, int, bool]],
        special: Callable[[int, int], TraceRecord | None] = lambda _start, _end: None,
        apart: bool = False,
        offset_of: Callable[[I64], I64] = lambda places: places,
        counted_as: Callable[[int], int] = lambda _place: KIND_DAMAGED,
    ) -> None:
        self.source = source
        self.view = view_of(source.data) if source.size else memoryview(b"")
        self.big_endian = big_endian
        words = source.words().view(np.int64)
        self.words: I64 = words.byteswap() if big_endian else words
        self.max_record = limits.max_record
        self.splits = False
        self.stretches = stretches
        self.special = special
        self.apart = apart
        self.begins_wrong = False
        """Whether an archive has no magic number."""
        self.offset_of = offset_of
        self.is_moved = False
        """Whether offsets in the file are not places in ``source``."""
        self.counted_as = counted_as
        """Returns the number of the kind as which a stretch at a place counts that has no records;
        -1 for none."""

    @classmethod
    def archive(cls, source: Source, *, big_endian: bool, limits: Limits) -> TraceFile:
        """Return the bytes of an archive, which are records from the first to the last."""
        whole = source.size // WORD * WORD
        odd = [(whole, source.size, False)] if whole < source.size else []
        file = cls(
            source,
            big_endian=big_endian,
            limits=limits,
            stretches=[(0, whole, True), *odd],
        )
        begins_with_magic = file.words[:1].tolist() == [wrapped(MAGIC_WORD)]
        file.begins_wrong = source.size > 0 and not begins_with_magic
        return file

    def framing(self) -> Frames:
        """Return what finds the records in the bytes of a stretch, up to its ``total``."""
        data = self.source.data if self.source.size else np.zeros(0, np.uint8)
        frames = frames_of_families(
            data,
            FAMILIES,
            LEAST,
            resumption(big=self.big_endian),
            big=self.big_endian,
            room=AT_ONCE,
        )
        frames.splitting = int(self.splits)
        frames.confirm = self.may_hide
        return frames

    def may_hide(self, place: int, nbytes: int) -> bool:
        """Return whether the size of a record may be damaged, so that it hides others.

        A record over the limit is damage as a whole. Large ones that are sound may hold anything.
        """
        if 0 < self.max_record < nbytes:
            return False
        header = int(self.words[place // WORD]) & U64_MAX
        cls: Any = r.class_of(header)
        if not issubclass(cls, r.LargeRecord) or cls.undefined_kinds:
            return True
        cursor = TraceCursor(self.view, place, place + nbytes, Tables())
        try:
            cls.layout.read(cursor)
        except ShortError:
            return True
        return False

    def metadata_in(self, begin: int, end: int) -> I64:
        """Return the bytes at which sound metadata records begin, of the records from a byte on."""
        framing = self.framing()
        framing.total = end
        places = [np.zeros(0, np.int64)]
        while begin < end:
            count, _ = framing.read(begin, AT_ONCE, end)
            is_metadata = framing.entries[:count] == RecordType.METADATA
            if self.max_record:
                is_metadata &= framing.sizes[:count] <= self.max_record
            places.append(framing.places[:count][is_metadata])
            begin = framing.next
        return np.concatenate(places)


class TraceFrames(ListedFrames):
    """Where the records of a trace begin and end."""

    def __init__(self, file: TraceFile) -> None:
        super().__init__(big=file.big_endian)
        self.file = file
        self.framing = file.framing()
        self.stretches_left = iter(file.stretches)
        self.in_records = False
        self.start = 0
        """The byte at which the next row begins."""
        self.fault = np.zeros(0, np.int64)
        """The rule by which each stretch that was listed last is not a sound record, or 0."""
        self.value = np.zeros(0, np.int64)
        """What a finding about it shows."""
        self.entry = np.zeros(0, np.int32)

    def take(self, rows: slice) -> tuple[int, int]:
        """Let listed rows be those that were read; return how many, and why they end."""
        self.faults = self.fault[rows]
        self.values = self.value[rows]
        self.entries = self.entry[rows]
        return self.places.size, 0

    def list_more(self) -> None:
        """List the next stretches."""
        framing = self.framing
        if self.in_records and self.start < framing.total:
            begin, size = np.empty((2, ROOM), np.int64)
            entries = np.empty(ROOM, np.int32)
            rows = 0
            while rows + AT_ONCE <= ROOM and self.start < framing.total:
                count, _ = framing.read(self.start, AT_ONCE, framing.total)
                self.start = framing.next
                found = slice(rows, rows + count)
                begin[found] = framing.places[:count]
                size[found] = framing.sizes[:count]
                entries[found] = framing.entries[:count]
                rows += count
            self.begin = begin[:rows]
            self.size = size[:rows]
            entries = entries[:rows]
            self.judge(entries)
            return
        start, stop, self.in_records = next(self.stretches_left)
        if self.in_records:
            self.start = start
            framing.total = stop
            return
        self.begin = np.array([start])
        self.size = np.array([stop - start])
        self.fault = np.array([SPECIAL])
        self.value = np.zeros(1, np.int64)
        self.entry = np.array([BAD_SIZE], np.int32)

    def judge(self, framed: NDArray[np.int32]) -> None:
        """Say why listed stretches are not sound records, and of which class others are."""
        self.fault = self.value = np.broadcast_to(np.int64(0), framed.size)
        self.entry = self.entries_of(framed)
        if framed.min() < 0 or 0 < self.file.max_record < self.size.max():
            self.fault, self.value = self.faults_of(framed)
            self.entry[(self.fault != 0) & (self.fault != rules.UNKNOWN_RECORD)] = BAD_SIZE

    def faults_of(self, framed: NDArray[np.int32]) -> tuple[I64, I64]:
        """Return why stretches are not records of known types, and what findings show of them."""
        fault, value = np.zeros((2, framed.size), np.int64)
        is_over_limit = (framed >= 0) | (framed == UNKNOWN)
        is_over_limit &= (self.size > self.file.max_record) & (self.file.max_record > 0)
        fault[is_over_limit] = rules.RECORD_OVER_LIMIT
        value[is_over_limit] = self.size[is_over_limit]
        rows = np.flatnonzero((framed < 0) & ~is_over_limit)
        entries = framed[rows]
        begin = self.begin[rows]
        headers = self.file.words.take(begin // WORD)
        words_said = words_of(headers)
        passes_end = WORD * words_said > self.framing.total - begin
        # Of several that hold, the first one is that of the stretch.
        reasons = (
            (rules.ZERO_WORDS, entries == PADDING, self.size[rows] // WORD),
            (rules.UNKNOWN_RECORD, entries == UNKNOWN, r.TYPE.of(headers)),
            (rules.CONTENTS_OVERRUN, entries == HIDING, np.zeros_like(headers)),
            (rules.PAST_THE_END, passes_end, words_said),
            (rules.SIZE_ZERO, words_said == 0, words_said),
        )
        is_reason = [condition for _, condition, _ in reasons]
        numbers = [int(rule) for rule, _, _ in reasons]
        fault[rows] = np.select(is_reason, numbers, int(rules.TOO_SHORT))
        shown_values = [shown for _, _, shown in reasons]
        value[rows] = np.select(is_reason, shown_values, words_said)
        return fault, value

    def entries_of(self, framed: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the numbers of the classes of the listed records, by those of the framing."""
        file = self.file
        return trace_format().entries_of(framed, file.words, self.begin, apart=file.apart)
