"""Copying: parts of logs, what is sound of damaged ones, and several as one, by wire's verbs.

Records are copied as bytes. Damage, zero words, and entries of a ring without a log are left out.
A salvage also leaves out arguments that cannot be decoded, and finds records that a size hides.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, ClassVar, Final, cast

import numpy as np

from fx_log import format as wire
from fx_log import rules
from fx_log.export.presentation import left_out
from fx_log.format import (
    STATE,
    LegacyPacket,
    LogRecord,
    PacketLength,
    RingFrame,
    RingHeader,
    StreamHeader,
    Structured,
)
from fx_log.read.capture import LogCapture, RingCapture, StreamCapture
from fx_log.read.entries import component_of, rolled_out_of
from fx_log.read.frames import Arguments, FramedFile, Frames, PacketFile, behind_records
from fx_log.read.records import Damaged, LogFileRecord, Padding
from fx_log.read.ring import Ring
from fx_log.rules import RULES
from fx_log.write.convert import (
    ATTRIBUTIONS,
    BEHIND,
    NO_LOG,
    SEVERITIES,
    TAGS,
    RowEncoder,
    convert_attribution,
    legacy,
    structured,
)
from fx_log.write.redaction import Redactor
from fx_log.write.rewriter import RecordEncoder, is_plain, open_any_writer
from fxframework.errors import Rule, UsageError
from fxframework.io.sink import Sink
from fxframework.io.source import Source, spool_file
from fxframework.io.words import WORD, view_of
from fxframework.kernels.arrays import I64, Bools
from fxframework.kernels.frames import Alignment
from fxframework.kit.realign import realigned
from fxframework.kit.salvage import Loss
from fxframework.model.capture import Capture, OpenRequest, Window, under_views
from fxframework.model.diagnostics import Diagnostics
from fxframework.model.selection import Selection
from fxframework.model.strings import TextColumn
from fxframework.wire.framing import frames_of_records
from fxframework.wire.verbs.copies import Copies, copy, is_among
from fxframework.wire.verbs.merge import EARLIEST, MergedPart, MergeSession

DAMAGE = "damaged", "{} bytes are not a record; left out"
ARGUMENT = "argument", "an argument of {} bytes cannot be decoded; left out"
LOSSES: Final[Mapping[Rule, tuple[str, str]]] = {
    rules.OVER_MAX_RECORD: ("damaged", "a record of {} bytes is larger than the limit; left out"),
    rules.ZERO_WORDS: ("padding", "{} bytes are zero words between records; left out"),
    rules.ENTRY_WITHOUT_RECORD: ("ring_entry", "an entry of {} bytes without a log; left out"),
    rules.ENTRY_TRAILING_BYTES: ("ring_entry", "{} bytes after the log of an entry; left out"),
    rules.SUFFIX_TRUNCATED: ("attribution", "a suffix of {} bytes runs past the end; left empty"),
    rules.RESERVED_REFERENCE: ARGUMENT,
    rules.STRING_TRUNCATED: ARGUMENT,
    rules.NUMBER_MISSING: ARGUMENT,
    rules.UNKNOWN_SIZE: ARGUMENT,
}
"""What is left out by a rule, and the message, which shows its bytes. For others: DAMAGE."""
OF_FRAMES: Final = [int(rules.ENTRY_TRAILING_BYTES), int(rules.SUFFIX_TRUNCATED)]
"""Rules of what is left out of a record that is there."""
REPORTED: Final = {
    rules.REDACTED.code: "values redacted",
    rules.NO_ROOM_FOR_ATTRIBUTION.code: "logs without their component",
    rules.KEY_NOT_THERE.code: "keys to be redacted that were not there",
}
RECORD_WORDS: Final = LogRecord.layout.place("_size_words")
TAG: Final = LogRecord.layout.place("tag_bits")
"""Where numbers lie that change in copies of records."""
NAMELESS: Final = -1
Owner = tuple[int, int]
"""The number of a component; or NAMELESS, and the tag that stands for it."""
Copier = Callable[[Sink], Iterator[Loss]]
"""Writes what is copied; yields the losses."""

# --- The verbs ------------------------------------------------------------------------------------


def salvage(capture: Capture, sink: Sink, options: Mapping[str, Any]) -> Iterator[Loss]:
    """Write what is sound. Yield each loss, and finally the writer's reports.

    A ring keeps its size; one with an invalid header becomes an empty ring.
    """
    assert isinstance(capture, LogCapture)  # noqa: S101 (the host asks for no other)

    def salvaged(aligned: LogCapture) -> Iterator[Loss]:
        reports = Diagnostics(RULES)
        copier = partial(_copy, aligned, mends=True)
        yield from _written(aligned, copier, sink, options, reports)
        for finding in reports:
            yield Loss(0, 0, "finding", finding.message, finding.code)

    if capture.format != "log":
        yield from salvaged(capture)
        return
    suffixes = behind_records(suffixed=bool(capture.request.options.get("suffix")))
    yield from realigned(
        capture,
        Alignment(frames_of_records(capture.source.data, Structured, behind=suffixes, room=1)),
        rules.OFF_ALIGNMENT,
        salvaged,
    )


def extract(
    capture: Capture, selection: Selection, sink: Sink, options: Mapping[str, Any]
) -> Mapping[str, int]:
    """Write the selected logs, with all manifests: they have no row that could be left out.

    Damage and padding are left out; a ring keeps its size. Returns counts of what was left out and
    of the writer's reports: redacted values, and logs without their component. Raises the errors of
    the format's writer.
    """
    assert isinstance(capture, LogCapture)  # noqa: S101 (the host asks for no other)
    offsets_left_out = Window(capture, selection).offsets_left_out()
    copier = partial(_copy, capture, left_out=offsets_left_out)
    reports = Diagnostics(RULES)
    losses: Counter[str] = Counter()
    for loss in _written(capture, copier, sink, options, reports):
        is_behind = loss.code == rules.ENTRY_TRAILING_BYTES.code
        losses[BEHIND if is_behind else loss.what] += 1
    counts = {
        "logs": int(offsets_left_out.size),
        "damaged stretches": losses["damaged"],
        BEHIND: losses[BEHIND],
    }
    counts |= {name: reports.counts.get(code, 0) for code, name in REPORTED.items()}
    return {name: count for name, count in counts.items() if count}


def _written(
    capture: LogCapture,
    copier: Copier,
    sink: Sink,
    options: Mapping[str, Any],
    reports: Diagnostics,
) -> Iterator[Loss]:
    """Write what is copied, as the writer's options ask for. Yield the losses."""
    if is_plain(options):
        yield from copier(sink)
        return
    with spool_file() as spool:
        yield from copier(Sink(spool, name=sink.name))
        copied = Source.spooled(spool, name=capture.name)
    with type(capture)(copied, capture.request) as copied_capture:
        writer = open_any_writer(capture.format, sink, options, reports)
        for record in copied_capture.checked_records():
            writer.write(cast("LogFileRecord", record))
        writer.close()


# --- Copies of files ------------------------------------------------------------------------------


def _copy(
    capture: LogCapture, sink: Sink, left_out: I64 | None = None, *, mends: bool = False
) -> Iterator[Loss]:
    """Write the records but those at some offsets. Yield the losses."""
    copies = _copies(capture, mends=mends)
    if isinstance(capture, RingCapture):
        yield from _copy_ring(capture.ring, sink, copies, left_out)
        return
    if isinstance(capture, StreamCapture) and capture.source.size:
        header = capture.source.read(0, wire.STREAM_HEADER)
        if not StreamHeader.begins(header):
            yield _loss(rules.CONTAINER_HEADER, 0, len(header))
            header = StreamHeader().pack()
        sink.write(header)
    yield from copy(copies, sink.write, left_out)


def _copy_ring(
    ring: Ring, sink: Sink, copies: Iterator[Copies], left_out: I64 | None
) -> Iterator[Loss]:
    """Write a ring with sound entries from its tail on, and zeros in its unused space."""
    if not ring.size:
        return
    if ring.used < 0:
        start = wire.RING_PAGE if ring.capacity else 0
        yield _loss(rules.INVALID_RING, start, ring.size - start)
        sink.write(RingHeader(head=0, tail=0).pack())
        sink.write(bytes(wire.RING_MINIMUM))
        return
    entry_bytes = bytearray()
    yield from copy(copies, entry_bytes.extend, left_out)
    header = RingHeader(head=ring.tail + len(entry_bytes), tail=ring.tail).pack()
    if left_out is None:
        # What is salvaged keeps what is behind head and tail, which nobody understands.
        header = header[: 2 * WORD] + ring.page[2 * WORD :].tobytes()
    sink.write(header)
    entry_bytes += bytes(ring.capacity - len(entry_bytes))
    turn_around = ring.capacity - ring.start
    sink.write(memoryview(entry_bytes)[turn_around:])
    sink.write(memoryview(entry_bytes)[:turn_around])


def _copies(capture: LogCapture, *, mends: bool) -> Iterator[Copies]:
    """Yield the records of a file, thousands at a time."""
    file = capture.framed(splits=mends)
    for frames in file.blocks():
        sound_frames = frames.sound()
        damaged = None
        if mends and file.has_arguments:
            arguments = file.arguments(sound_frames)
            damaged = arguments.take(arguments.fault != 0)
        losses = _losses(file, frames, sound_frames, damaged)
        yield _mended(file, sound_frames, damaged, losses, mends=mends)


def _losses(
    file: FramedFile, frames: Frames, sound: Frames, arguments: Arguments | None
) -> list[Loss]:
    """Return what is left out: stretches that are not frames, and parts of the ``sound`` ones."""
    gaps = frames.take(np.flatnonzero(frames.fault))
    findings = file.findings()
    # Rows of rule, offset, number of the record, and bytes.
    gap_bytes = gaps.end - gaps.begin
    is_of_frame = np.isin(findings[:, 0], OF_FRAMES)
    rows = [
        np.column_stack((gaps.fault, gaps.offset, gaps.index, gap_bytes)),
        findings[is_of_frame],
    ]
    if arguments is not None:
        offsets = file.place(arguments.begin)
        records = sound.index[arguments.record]
        nbytes = arguments.end - arguments.begin
        rows.append(np.column_stack((arguments.fault, offsets, records, nbytes)))
    losses = np.concatenate(rows)
    is_part = np.arange(len(losses)) >= gaps.fault.size
    order = np.argsort(losses[:, 2], kind="stable")
    return [
        _loss(RULES.numbered(number), offset, nbytes, part=part)
        for (number, offset, _, nbytes), part in zip(
            losses[order].tolist(), is_part[order].tolist(), strict=True
        )
    ]


def _loss(rule: Rule, offset: int, nbytes: int, *, part: bool = False) -> Loss:
    what, message = LOSSES.get(rule, DAMAGE)
    lost_bytes = nbytes
    if rule == rules.SUFFIX_TRUNCATED:
        lost_bytes = 0  # what is there of a suffix is read as records
    return Loss(offset, lost_bytes, what, message.format(nbytes), rule.code, part)


# --- Mending --------------------------------------------------------------------------------------


def _mended(
    file: FramedFile,
    frames: Frames,
    damaged: Arguments | None,
    losses: list[Loss],
    *,
    mends: bool,
) -> Copies:
    """Return records as copies: without damaged arguments, entries without bytes behind the log.

    Those that lack the suffix that the file's records have get an empty one.
    """
    ends = frames.start + frames.size
    is_broken, lacks_suffix = np.zeros((2, frames.size.size), bool)
    if file.ring is not None:
        is_broken = ~frames.is_filled()
    if damaged is not None:
        is_broken[damaged.record] = True
    if mends and file.suffixed:
        bytes_behind = file.data.size // WORD * WORD - ends
        lacks_suffix = (frames.suffix < 0) & (bytes_behind >= wire.SUFFIX_BYTES)
        is_broken |= lacks_suffix
    starts = frames.begin
    sizes = frames.end - frames.begin
    data = file.data
    broken = np.flatnonzero(is_broken)
    if broken.size:
        broken_frames = frames.take(broken)
        mended = list(_without_damage(file, broken_frames, lacks_suffix[broken], mends=mends))
        begin = int(frames.begin[0])
        data = data[begin : frames.end[-1]]
        starts = starts - begin
        # What was mended is behind all that was read.
        mended_sizes = np.array(list(map(len, mended)))
        sizes[broken] = mended_sizes
        starts[broken] = data.size + np.cumsum(mended_sizes) - mended_sizes
        mended_bytes = np.frombuffer(b"".join(mended), np.uint8)
        data = np.concatenate((data, mended_bytes))
    return Copies(data, starts, sizes, frames.offset, losses)


def _without_damage(
    file: FramedFile, frames: Frames, lacks_suffix: Bools, *, mends: bool
) -> Iterator[bytes]:
    """Yield the bytes of broken records as they shall be."""
    data = file.data
    view = view_of(data)
    arguments = file.arguments(frames)
    if mends:
        arguments = arguments.take(arguments.fault == 0)
    every_bound = np.arange(frames.begin.size + 1)
    bounds = np.searchsorted(arguments.record, every_bound).tolist()
    places = list(zip(arguments.begin.tolist(), arguments.end.tolist(), strict=True))
    for number, row in enumerate(frames.rows()):
        head_end = row.start + wire.MIN_RECORD_WORDS * WORD
        own_places = places[bounds[number] : bounds[number + 1]]
        stretches = [(row.start, head_end), *own_places]
        copied = np.concatenate([data[begin:end] for begin, end in stretches])
        record_words = np.array([copied.size // WORD])
        RECORD_WORDS.put_many(copied, np.zeros(1, np.int64), record_words)
        record = copied.tobytes()
        if file.ring is not None:
            entry, _ = RingFrame.unpack(view, row.begin, row.end, STATE)
            yield entry.edited(payload=record).pack()
        elif row.suffix >= 0:
            yield record + view[row.suffix : row.end]
        else:
            yield record + bytes(wire.SUFFIX_BYTES * lacks_suffix[number])


# --- Merging --------------------------------------------------------------------------------------


class LogSession(MergeSession):
    """What both kinds of merged files have in common.

    Captures of other formats have their rows of `logs` encoded as structured records.
    """

    losses: ClassVar[Mapping[str, str]]
    """What findings of a capture count that is left out."""

    def __init__(self, sink: Sink, redactor: Redactor | None) -> None:
        super().__init__(sink)
        self.redactor = redactor

    def part(self, capture: Capture) -> MergedPart:
        """Return the records of a capture, in the form of the output."""
        prepared = self.prepared(capture)
        log = under_views(prepared)
        assert isinstance(log, LogCapture)  # noqa: S101 (`prepared` sees to it)
        file = log.framed()
        frames = Frames.joined([block.sound() for block in file.blocks()])
        if isinstance(prepared, Window):
            is_selected = ~is_among(frames.offset, prepared.offsets_left_out())
            frames = frames.take(is_selected)
        self.count_losses(capture)
        return self.placed(file, frames)

    def count_losses(self, capture: Capture) -> None:
        """Count what a capture has that the output lacks."""
        self.lost += left_out(capture)
        capture.scan()
        for code, name in self.losses.items():
            self.lost[name] += capture.diagnostics.counts.get(code, 0)
        if capture.utc_offset_ns is not None:
            self.lost["the offset from UTC"] += 1

    def prepared(self, capture: Capture) -> Capture:
        """Return a capture with the records to write for one."""
        raise NotImplementedError

    def placed(self, file: FramedFile, frames: Frames) -> MergedPart:
        """Return the records that some frames of a file are."""
        raise NotImplementedError

    def spooled(self, kind: type[LogCapture], pieces: Iterable[bytes | bytearray]) -> LogCapture:
        """Return a capture of bytes, which are in a temporary file."""
        name = self.sink.name
        with spool_file() as spool:
            sink = Sink(spool, name=name)
            sink.budget = self.sink.budget
            for piece in pieces:
                sink.write(piece)
            return kind(Source.spooled(spool, name=name), OpenRequest())

    def rows_of(self, capture: Capture) -> LogCapture:
        """Return the rows of `logs` of another format as structured records."""
        return self.spooled(LogCapture, RowEncoder(capture, self.lost).pieces())

    def close(self) -> Mapping[str, int]:
        """Write the records; return the counts of what is not written, and of redactions."""
        if self.redactor is not None:
            for name, count in self.redactor.counts.items():
                self.lost[f"redacted: {name}"] += count
            for key in self.redactor.absent:
                self.lost[f"to be redacted, but not there: {key}"] += 1
        return super().close()


def is_legacy(capture: Capture) -> bool:
    """Return whether a capture is of legacy packets."""
    return capture.format.startswith("log-legacy")


def sound_records(capture: Capture) -> Iterator[Any]:
    """Yield the records of a capture, without damage and padding."""
    for record in capture.checked_records():
        if not isinstance(record, Damaged | Padding):
            yield record


class LogMerger(LogSession):
    """Merges logs into structured records.

    ``attribution`` selects the place of attribution: ``manifest`` (a tag, named by a control
    record), ``in_record`` (moniker and url at the end), ``none`` or ``keep``. A tag that captures
    use for different components is changed in the later one. Manifests of several captures come
    first.
    """

    losses: ClassVar[Mapping[str, str]] = {
        rules.ENTRY_WITHOUT_RECORD.code: NO_LOG,
        rules.ENTRY_TRAILING_BYTES.code: BEHIND,
    }

    def __init__(self, sink: Sink, *, attribution: str, redactor: Redactor | None) -> None:
        super().__init__(sink, redactor)
        self.attribution = attribution
        self.components: dict[tuple[str, str], int] = {}
        """Numbers of components, by moniker and url."""
        self.owners: dict[int, Owner] = {0: (NAMELESS, 0)}
        """The component that each tag of the output stands for."""
        self.moved: dict[Owner, int] = {}
        """New tags of components."""
        self.free_tag = wire.CONTROL - 1

    def prepared(self, capture: Capture) -> Capture:
        """Return a capture of structured records, or of a ring's entries."""
        to = self.attribution
        if not isinstance(under_views(capture), LogCapture):
            capture = self.rows_of(capture)
            if to == "manifest":  # rows are encoded with manifests
                to = "keep"
        options = capture.request.options
        if to == "keep" and options.get("suffix"):  # which merged records cannot have
            to = "manifest"
        has_packets = is_legacy(capture)
        if to == "keep" and self.redactor is None and not has_packets:
            return capture
        lost: Counter[str] = Counter()
        records = sound_records(capture)
        if has_packets or capture.format == "log-ring":
            records = structured(records, lost, era=options.get("severity_era", "current"))
        if to != "keep":
            records = convert_attribution(records, to, self.lost)
        if self.redactor is not None:
            records = filter(None, map(self.redactor.redact, records))
        converted = self.spooled(LogCapture, map(RecordEncoder("log").encode, records))
        for name in (TAGS, SEVERITIES):
            self.lost[name] += lost[name]
        return converted

    def placed(self, file: FramedFile, frames: Frames) -> MergedPart:
        """Return records with their tags, and the numbers of components.

        A manifest has the number of the component that it names, any other record NAMELESS.
        """
        record_tags, ts = file.numbers_of(LogRecord, frames.start, "tag_bits", "timestamp")
        components = np.full(record_tags.size, NAMELESS)
        is_manifest = np.zeros(record_tags.size, np.bool_)
        for row in np.flatnonzero(record_tags & wire.CONTROL).tolist():
            begin = int(frames.start[row])
            end = begin + int(frames.size[row])
            record, _ = LogRecord.unpack(file.data.data, begin, end, STATE)
            if rolled_out_of(record) is not None:
                continue
            is_manifest[row] = True
            component = component_of(record)
            if component is not None:
                components[row] = self.components.setdefault(component, len(self.components))
                ts[row] = EARLIEST
        if file.ring is not None:
            # A record of a ring has the tag of its entry, if that fits; a manifest has its own.
            (entry_tags,) = file.numbers_of(RingFrame, frames.begin, "tag")
            entry_tag_fits = (entry_tags >= 0) & (entry_tags < wire.CONTROL)
            self.lost[TAGS] += int(np.count_nonzero(~(is_manifest | entry_tag_fits)))
            of_entries = np.where(entry_tag_fits, entry_tags, 0) | record_tags & wire.CONTROL
            record_tags = np.where(is_manifest, record_tags, of_entries)
        beside = {"tags": record_tags, "components": components}
        return MergedPart(file.data, frames.start, frames.size, ts, beside)

    def settle(self) -> None:
        """Change tags of later parts that are those of other components."""
        if len(self.parts) > 1:
            for part in self.parts:
                self._retag(part.beside)

    def change(self, records: TextColumn, beside: Mapping[str, I64]) -> None:
        """Write the tags into the headers of records."""
        TAG.put_many(records.data, records.offsets[:-1], beside["tags"])

    def _retag(self, columns: Mapping[str, I64]) -> None:
        """Change tags of a part that are those of other components."""
        tags = columns["tags"] & wire.COMPONENT
        named = columns["components"]
        # A manifest holds up to the next one of its tag: in the order of tags, each record has
        # the component of the last manifest before it, or of none.
        order = np.argsort(tags, kind="stable")
        is_first_of_tag = np.diff(tags[order], prepend=-1) != 0
        begins = is_first_of_tag | (named[order] >= 0)
        last_begin = np.maximum.accumulate(np.where(begins, np.arange(tags.size), 0))
        components = np.empty_like(named)
        components[order] = named[order][last_begin]
        pairs, pair_of_record = np.unique(components * wire.CONTROL + tags, return_inverse=True)
        new_tags = [self._tag(*divmod(pair, wire.CONTROL)) for pair in pairs.tolist()]
        columns["tags"][:] += np.array(new_tags, np.int64)[pair_of_record] - tags

    def _tag(self, component: int, tag: int) -> int:
        """Return the tag of a component: its own, unless that is another's."""
        owner = (component, 0)
        if component == NAMELESS:
            owner = (NAMELESS, tag)
        if self.owners.setdefault(tag, owner) == owner:
            return tag
        if owner not in self.moved:
            while self.free_tag in self.owners:
                self.free_tag -= 1
            self.owners[self.free_tag] = owner
            self.moved[owner] = self.free_tag
        return self.moved[owner]


class PacketMerger(LogSession):
    """Merges logs into a container of legacy packets."""

    opening = StreamHeader().pack()
    losses: ClassVar[Mapping[str, str]] = {
        rules.WELL_KNOWN_TWICE.code: "arguments that a later one of the name replaces",
        rules.ENTRY_WITHOUT_RECORD.code: NO_LOG,
        rules.ENTRY_TRAILING_BYTES.code: BEHIND,
    }

    def __init__(self, sink: Sink, *, fold: bool, redactor: Redactor | None) -> None:
        super().__init__(sink, redactor)
        self.fold = fold

    def prepared(self, capture: Capture) -> Capture:
        """Return a capture of legacy packets."""
        packets: Iterable[LogFileRecord | None]
        if not is_legacy(capture):
            packets = legacy(capture, self.lost, fold=self.fold, redactor=self.redactor)
        elif self.redactor is None:
            return capture
        else:
            packets = map(self.redactor.redact, sound_records(capture))
        encoder = RecordEncoder(StreamCapture.format)
        packet_bytes = (
            encoder.encode(packet) for packet in packets if isinstance(packet, LegacyPacket)
        )
        return self.spooled(StreamCapture, itertools.chain([self.opening], packet_bytes))

    def placed(self, file: FramedFile, frames: Frames) -> MergedPart:
        """Return packets, each behind its length."""
        (times,) = file.numbers_of(LegacyPacket, frames.start, "timestamp")
        data = file.data
        sizes = frames.end - frames.begin
        if file.form == PacketFile.form:  # a container has the length of each
            length_bytes = PacketLength(length=data.size).pack()
            data = np.concatenate((np.frombuffer(length_bytes, np.uint8), data))
            sizes = sizes + wire.STREAM_LENGTH
        return MergedPart(data, frames.begin, sizes, times)


def open_merge(sink: Sink, options: Mapping[str, Any]) -> LogMerger:
    """Open a session that merges captures into structured records.

    ``attribution`` selects the place of attribution, by default where it is (``keep``), or
    manifests for other formats; ``redact_keys`` and ``redact_pattern`` select the data to remove.
    Raises UsageError for an invalid value.
    """
    attribution = options.get("attribution") or "keep"
    if attribution not in ATTRIBUTIONS:
        raise UsageError(
            f"invalid attribution {attribution!r}",
            remedy=f"use one of {', '.join(ATTRIBUTIONS)}",
        )
    return LogMerger(sink, attribution=attribution, redactor=Redactor.of(options))


def open_stream_merge(sink: Sink, options: Mapping[str, Any]) -> PacketMerger:
    """Open a session that merges captures into legacy packets.

    ``fold`` puts file, line and keys of other logs into the message; ``redact_keys`` and
    ``redact_pattern`` select the data to remove.
    """
    return PacketMerger(sink, fold=bool(options.get("fold", True)), redactor=Redactor.of(options))
