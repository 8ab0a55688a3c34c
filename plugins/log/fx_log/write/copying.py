"""Copying: parts of logs and what is sound of damaged ones, in their own format.

Records are copied as bytes. Damage, zero words, and entries of a ring without a log are left out.
A salvage also leaves out arguments that cannot be decoded, and finds records that a size hides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from fx_log import format as wire
from fx_log import rules
from fx_log.read.capture import LogCapture, RingCapture, StreamCapture
from fx_log.read.frames import Arguments, FramedFile, Frames
from fx_log.read.framing import LogJudge
from fx_log.read.records import LogFileRecord, RingHeader, StreamHeader
from fx_log.rules import RULES
from fx_log.write.convert import BEHIND
from fx_log.write.rewriter import is_plain, open_any_writer
from fxframework.errors import Rule
from fxframework.io.sink import Sink
from fxframework.io.source import Source, spool_file
from fxframework.io.words import WORD
from fxframework.kit.realign import realigned
from fxframework.kit.salvage import Loss
from fxframework.model.capture import Capture, Window
from fxframework.model.diagnostics import Diagnostics
from fxframework.model.selection import Selection
from fxframework.model.strings import TextColumn
from fxframework.wire.verbs.copies import Copies, copy

__all__ = ["extract", "salvage"]

I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
Mask = NDArray[np.bool_]
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
Copier = Callable[[Sink], Iterator[Loss]]
"""Writes what is copied; yields the losses."""

# --- The verbs ------------------------------------------------------------------------------------


def salvage(capture: Capture, sink: Sink, options: Mapping[str, Any]) -> Iterator[Loss]:
    """Write what is sound. Yield each loss, and finally the writer's reports.

    A ring keeps its size; one with an invalid header becomes an empty ring.
    """
    assert isinstance(capture, LogCapture)  # noqa: S101 (the host asks for no other)

    def salvaged(aligned: LogCapture) -> Iterator[Loss]:
        found = Diagnostics(RULES)
        yield from _written(
            aligned, lambda out: _copy(aligned, out, mends=True), sink, options, found
        )
        for finding in found:
            yield Loss(0, 0, "finding", finding.message, finding.code)

    if capture.format != "log":
        yield from salvaged(capture)
        return
    judge = LogJudge(bool(capture.request.options.get("suffix")))
    yield from realigned(capture, judge, rules.OFF_ALIGNMENT, salvaged)


def extract(
    capture: Capture, selection: Selection, sink: Sink, options: Mapping[str, Any]
) -> Mapping[str, int]:
    """Write the selected logs, with the records that give their attribution.

    Damage and padding are left out; a ring keeps its size. Returns counts of what was left out and
    of the writer's reports: redacted values, and logs without their component. Raises the errors of
    the format's writer.
    """
    assert isinstance(capture, LogCapture)  # noqa: S101 (the host asks for no other)
    left_out = Window(capture, selection).offsets_left_out()
    found = Diagnostics(RULES)
    losses = Counter(
        BEHIND if loss.code == rules.ENTRY_TRAILING_BYTES.code else loss.what
        for loss in _written(
            capture, lambda out: _copy(capture, out, left_out), sink, options, found
        )
    )
    counts = {
        "logs": int(left_out.size),
        "damaged stretches": losses["damaged"],
        BEHIND: losses[BEHIND],
    }
    counts |= {what: found.counts.get(code, 0) for code, what in REPORTED.items()}
    return {name: count for name, count in counts.items() if count}


def _written(
    capture: LogCapture,
    copier: Copier,
    sink: Sink,
    options: Mapping[str, Any],
    found: Diagnostics,
) -> Iterator[Loss]:
    """Write what is copied, as the writer's options ask for. Yield the losses."""
    if is_plain(options):
        yield from copier(sink)
        return
    with spool_file() as spool:
        yield from copier(Sink(spool, name=sink.name))
        copied = Source.spooled(spool, name=capture.name)
    with type(capture)(copied, capture.request) as again:
        writer = open_any_writer(capture.format, sink, options, found)
        for record in again.checked_records():
            writer.write(cast("LogFileRecord", record))
        writer.close()


# --- Copies of files ------------------------------------------------------------------------------


def _copy(
    capture: LogCapture, sink: Sink, left_out: I64 | None = None, *, mends: bool = False
) -> Iterator[Loss]:
    """Write the records but those at some offsets. Yield the losses."""
    parts = _copies(capture, mends=mends)
    if isinstance(capture, RingCapture):
        yield from _ring(capture, sink, parts, left_out)
        return
    if isinstance(capture, StreamCapture) and capture.source.size:
        header = capture.source.read(0, wire.STREAM_HEADER)
        if not StreamHeader.begins(header):
            yield _loss(rules.CONTAINER_HEADER, 0, len(header))
            header = StreamHeader().pack()
        sink.write(header)
    yield from copy(parts, sink.write, left_out)


def _ring(
    capture: RingCapture, sink: Sink, parts: Iterator[Copies], left_out: I64 | None
) -> Iterator[Loss]:
    """Write a ring with sound entries from its tail on, and zeros in its unused space."""
    ring = capture.ring
    page, capacity = ring.page.tobytes(), ring.capacity
    if ring.used < 0:
        if page:
            start = min(ring.size, wire.RING_PAGE) if capacity else 0
            yield _loss(rules.INVALID_RING, start, ring.size - start)
            sink.write(RingHeader(head=0, tail=0).pack())
            sink.write(bytes(wire.RING_MINIMUM))
        return
    line = bytearray()
    yield from copy(parts, line.extend, left_out)
    header = RingHeader(head=ring.tail + len(line), tail=ring.tail).pack()
    line += bytes(capacity - len(line))
    # A part has nothing that is not understood; what is salvaged has what it had.
    sink.write(header if left_out is not None else header[: 2 * WORD] + page[2 * WORD :])
    turn = capacity - ring.start
    sink.write(memoryview(line)[turn:])
    sink.write(memoryview(line)[:turn])


def _copies(capture: LogCapture, *, mends: bool) -> Iterator[Copies]:
    """Yield the records of a file, thousands at a time."""
    file = capture.framed(splits=mends)
    released = 0
    for frames in file.blocks():
        sound = frames.sound()
        damaged = file.arguments(sound).damaged() if mends and file.has_arguments else None
        losses = _losses(file, frames, sound, damaged)
        yield _mended(file, sound, damaged, losses, mends=mends)
        if file.ring is None:  # whose bytes may be a copy
            capture.source.passed(released, file.position)
            released = file.position


def _losses(
    file: FramedFile, frames: Frames, sound: Frames, arguments: Arguments | None
) -> list[Loss]:
    """Return what is left out: stretches that are not frames, and parts of the ``sound`` ones."""
    gaps = frames.take(np.flatnonzero(frames.fault))
    notes = frames.notes[np.isin(frames.notes[:, 0], OF_FRAMES)]
    columns = [
        (gaps.fault, gaps.offset, gaps.end - gaps.begin, gaps.index),
        (notes[:, 0], notes[:, 1], notes[:, 3], notes[:, 2]),
    ]
    if arguments is not None:
        records = sound.index[arguments.record]
        nbytes = arguments.end - arguments.begin
        columns.append((arguments.fault, file.place(arguments.begin), nbytes, records))
    fault, offset, nbytes, index = map(np.concatenate, zip(*columns, strict=True))
    is_part = np.arange(fault.size) >= gaps.fault.size
    order = np.argsort(index, kind="stable")
    return [
        _loss(RULES.numbered(number), place, size, part=part)
        for number, place, size, part in zip(
            *(column[order].tolist() for column in (fault, offset, nbytes, is_part)), strict=True
        )
    ]


def _loss(rule: Rule, offset: int, nbytes: int, *, part: bool = False) -> Loss:
    what, message = LOSSES.get(rule, DAMAGE)
    lost = 0 if rule == rules.SUFFIX_TRUNCATED else nbytes  # what is there is read as records
    return Loss(offset, lost, what, message.format(nbytes), rule.code, part)


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
        entry_length = file.data.view("<i8")[frames.start // WORD - 1]
        is_broken = entry_length != frames.size
    if damaged is not None:
        is_broken[damaged.record] = True
    if mends and file.suffixed:
        room = file.data.size // WORD * WORD - ends
        lacks_suffix = (frames.suffix < 0) & (room >= wire.SUFFIX_BYTES)
        is_broken |= lacks_suffix
    if not is_broken.any():
        sizes = frames.end - frames.begin
        return Copies(file.data, frames.begin, sizes, frames.offset, losses)
    copied, begin = _without_damage(file, frames, is_broken, lacks_suffix, mends=mends)
    sizes = np.diff(begin, append=copied.size)
    # What records say of their size, and the headers of entries before them, is that of now.
    suffix_size = np.where(frames.suffix < 0, lacks_suffix * wire.SUFFIX_BYTES, frames.end - ends)
    before = frames.start - frames.begin
    record_words = (sizes - before - suffix_size)[is_broken] // WORD
    head = (begin + before)[is_broken] // WORD
    words = copied.view("<i8")
    words[head] = words[head] & ~wire.SIZE.mask | record_words << wire.SIZE.low
    if file.ring is not None:
        words[head - 1] = record_words * WORD
    return Copies(copied, begin, sizes, frames.offset, losses)


def _without_damage(
    file: FramedFile, frames: Frames, is_broken: Mask, lacks_suffix: Mask, *, mends: bool
) -> tuple[U8, I64]:
    """Return the bytes of records as they shall be, but for their sizes, and where each begins."""
    ends = frames.start + frames.size
    # Pieces of the file: the place by which each is sorted, its begin and its end. A whole record
    # is one; a broken one is its head, the arguments that are kept, and its suffix.
    head_end = frames.start + wire.MIN_RECORD_WORDS * WORD
    pieces = [(frames.begin, frames.begin, np.where(is_broken, head_end, frames.end))]
    arguments = file.arguments(frames.take(is_broken))
    if mends:
        arguments = arguments.sound()
    pieces.append((arguments.begin, arguments.begin, arguments.end))
    has_suffix = is_broken & (frames.suffix >= 0)
    pieces.append((ends[has_suffix], ends[has_suffix], frames.end[has_suffix]))
    # An empty suffix is two words of zeros: those of the record's head stand for them.
    pieces.append((ends[lacks_suffix], frames.start[lacks_suffix], head_end[lacks_suffix]))
    place, start, end = map(np.concatenate, zip(*pieces, strict=True))
    # What ends a record comes before the head of the next one, which has the same place.
    is_head = np.arange(place.size) < frames.begin.size
    order = np.lexsort((is_head, place))
    copied = TextColumn.gather(file.data, start[order], (end - start)[order])
    place_of = np.empty(order.size, np.int64)
    place_of[order] = copied.offsets[:-1]
    empty = place_of[place.size - np.count_nonzero(lacks_suffix) :] // WORD
    words = copied.data.view("<i8")
    words[empty] = words[empty + 1] = 0
    return copied.data, place_of[: frames.begin.size]
