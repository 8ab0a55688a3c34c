"""Salvage of logs, containers of packets and rings: sound stretches are copied, records mended.

A record whose arguments cannot all be decoded is written without those. Damage, zero words, and
entries without a log are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from fx_log import format as wire
from fx_log import rules
from fx_log.read.capture import LogCapture, RingCapture, StreamCapture
from fx_log.read.framing import Framer, LogFramer, PacketFramer
from fx_log.read.records import LogFileRecord, RingHeader, StreamHeader
from fx_log.rules import RULES
from fx_log.write.rewriter import is_plain, open_any_writer
from fx_log.write.sound import LogJudge, RecordStretches, Stretches
from fxframework.errors import Rule
from fxframework.io.sink import Sink
from fxframework.io.source import Source, spool_file
from fxframework.kit.realign import realigned
from fxframework.kit.salvage import Loss
from fxframework.kit.scanned import FINDING_FIELDS
from fxframework.model.capture import Capture
from fxframework.model.diagnostics import Diagnostics

__all__ = ["salvage"]

U8 = NDArray[np.uint8]
PIECE = 1 << 22
"""Bytes read at a time."""
BLOCK = 1 << 12
"""Findings that become objects together."""
EVERY = 1 << 62
"""Findings of one rule to list."""
DAMAGE = "damaged", "{} bytes are not a record; left out"
ARGUMENT = "argument", "an argument of {} bytes cannot be decoded; left out"
GAPS: Mapping[Rule, tuple[str, str]] = {
    rules.NOT_A_RECORD: DAMAGE,
    rules.RECORD_TOO_SMALL: DAMAGE,
    rules.RECORD_TRUNCATED: DAMAGE,
    rules.ODD_BYTES: DAMAGE,
    rules.TIME_TRUNCATED: DAMAGE,
    rules.OVER_MAX_RECORD: ("damaged", "a record of {} bytes is larger than the limit; left out"),
    rules.ZERO_WORDS: ("padding", "{} bytes are zero words between records; left out"),
    rules.PACKET_TOO_SHORT: DAMAGE,
    rules.PACKET_NOT_TERMINATED: DAMAGE,
    rules.MANY_TAGS: DAMAGE,
    rules.LONG_TAG: DAMAGE,
    rules.PAST_THE_END: DAMAGE,
    rules.PACKET_TRUNCATED: DAMAGE,
    rules.ENTRY_TOO_SMALL: DAMAGE,
    rules.ENTRY_TOO_LONG: DAMAGE,
    rules.ENTRY_WITHOUT_RECORD: ("ring_entry", "an entry of {} bytes without a log; left out"),
}
"""What is left out between frames: its kind, and the message, which shows its bytes."""
INSIDE: Mapping[Rule, tuple[str, str]] = {
    rules.RESERVED_REFERENCE: ARGUMENT,
    rules.STRING_TRUNCATED: ARGUMENT,
    rules.NUMBER_MISSING: ARGUMENT,
    rules.UNKNOWN_SIZE: ARGUMENT,
    rules.SUFFIX_TRUNCATED: ("attribution", "a suffix of {} bytes runs past the end; left empty"),
    rules.ENTRY_TRAILING_BYTES: ("ring_entry", "{} bytes after the log of an entry; left out"),
}
"""What is left out of a frame: likewise."""


def salvage(capture: Capture, sink: Sink, options: Mapping[str, Any]) -> Iterator[Loss]:
    """Write what is sound. Yield each loss, and finally the writer's reports.

    A ring keeps its size; one with an invalid header becomes an empty ring.
    """
    assert isinstance(capture, LogCapture)  # noqa: S101 (the host asks for no other)
    if capture.format != "log":
        yield from _salvage(capture, sink, options)
        return
    judge = LogJudge(bool(capture.request.options.get("suffix")))
    yield from realigned(
        capture, judge, rules.OFF_ALIGNMENT, lambda aligned: _salvage(aligned, sink, options)
    )


def _salvage(capture: LogCapture, sink: Sink, options: Mapping[str, Any]) -> Iterator[Loss]:
    """Write what is sound of an aligned capture. Yield each loss, and the writer's reports."""
    if is_plain(options):
        yield from _copy(capture, sink)
        return
    found = Diagnostics(RULES)
    with spool_file() as spool:
        yield from _copy(capture, Sink(spool, name=sink.name))
        sound = Source.spooled(spool, name=capture.name)
    with type(capture)(sound, capture.request) as copied:
        writer = open_any_writer(capture.format, sink, options, found)
        for record in copied.checked_records():
            writer.write(cast("LogFileRecord", record))
        writer.close()
    for finding in found:
        yield Loss(0, 0, "finding", finding.message, finding.code)


def _copy(capture: LogCapture, sink: Sink) -> Iterator[Loss]:
    """Write what is sound, unchanged but for mended records. Yield the losses."""
    if isinstance(capture, RingCapture):
        yield from _ring(capture, sink)
        return
    if isinstance(capture, StreamCapture) and capture.source.size:
        header = capture.source.read(0, wire.STREAM_HEADER)
        if not StreamHeader.begins(header):
            yield _loss(rules.CONTAINER_HEADER, DAMAGE, 0, len(header))
            header = StreamHeader().pack()
        sink.write(header)
    for one in _parts(capture):
        if isinstance(one, Loss):
            yield one
        else:
            sink.write(one)


def _ring(capture: RingCapture, sink: Sink) -> Iterator[Loss]:
    """Write a ring with the sound entries from its tail on, and zeros in its unused space."""
    ring = capture.ring
    page, capacity = ring.page.tobytes(), ring.capacity
    if ring.used < 0:
        if page:
            start = min(ring.size, wire.RING_PAGE) if capacity else 0
            yield _loss(rules.INVALID_RING, DAMAGE, start, ring.size - start)
            sink.write(RingHeader(head=0, tail=0).pack())
            sink.write(bytes(wire.RING_MINIMUM))
        return
    line = np.zeros(capacity, np.uint8)
    head = 0
    for one in _parts(capture):
        if isinstance(one, Loss):
            yield one
        else:
            line[head : head + one.nbytes] = np.frombuffer(one, np.uint8)
            head += one.nbytes
    sink.write((ring.tail + head).to_bytes(8, "little") + page[8:])
    turn = capacity - ring.start
    sink.write(line[turn:].data)
    sink.write(line[:turn].data)


def _parts(capture: LogCapture) -> Iterator[Loss | memoryview]:
    """Yield what is sound, piece by piece, and what is not as losses."""
    framer = capture.framer()
    notes = framer.notes
    notes.limit, framer.splits = EVERY, True
    if isinstance(framer, PacketFramer):
        unit, framed, stretches = 1, np.asarray(framer.data), Stretches(framer)
    else:
        unit, framed = 8, np.asarray(framer.words).view(np.uint8)
        before = wire.RING_ENTRY // unit if isinstance(capture, RingCapture) else 0
        suffixed = framer.suffixed if isinstance(framer, LogFramer) else 0
        stretches = RecordStretches(framer, framer.words, before, suffixed)
    end = framed.size if isinstance(capture, RingCapture) else capture.source.size
    released = 0
    while not stretches.done:
        stretches.until = framer.pos + PIECE // unit
        stretches.run()
        stop = min(unit * framer.pos, end)
        rows = stretches.rows
        places = np.append(np.asarray(stretches.places)[:rows], stop)
        yield from _losses(framer, places)
        notes.used = 0
        made = np.asarray(stretches.made).view(np.uint8)
        bounds = (np.asarray(getattr(stretches, name))[:rows].tolist()
                  for name in ("mended", "begins", "ends"))  # fmt: skip
        for mended, begin, stop_at in zip(*bounds, strict=True):
            yield (made if mended else framed)[begin:stop_at].data
        if not isinstance(capture, RingCapture):  # whose bytes may be a copy
            capture.source.passed(released, stop)
            released = stop


def _losses(framer: Framer, places: NDArray[np.int64]) -> Iterator[Loss]:
    """Yield the losses of a run, by its notes. ``places`` are where frames begin, and the end."""
    found = framer.notes.findings.reshape(-1, FINDING_FIELDS)
    gaps = np.flatnonzero(np.isin(found[:, 0], [int(rule) for rule in GAPS]))
    begins = found[gaps, 1] - framer.base
    begins[begins < 0] += framer.capacity
    ends = np.append(begins[1:], places[-1:])[: begins.size]
    sizes = found[:, 3].copy()
    sizes[gaps] = np.minimum(ends, places[np.searchsorted(places, begins, "right")]) - begins
    for at in range(0, len(found), BLOCK):
        block = slice(at, at + BLOCK)
        numbers, offsets = found[block, 0].tolist(), found[block, 1].tolist()
        for number, offset, nbytes in zip(numbers, offsets, sizes[block].tolist(), strict=True):
            rule = RULES.numbered(number)
            if rule in GAPS:
                yield _loss(rule, GAPS[rule], offset, nbytes)
            elif rule in INSIDE:
                yield _loss(rule, INSIDE[rule], offset, nbytes, part=True)


def _loss(
    rule: Rule, said: tuple[str, str], offset: int, nbytes: int, *, part: bool = False
) -> Loss:
    what, message = said
    lost = 0 if rule == rules.SUFFIX_TRUNCATED else nbytes  # what is there is read as records
    return Loss(offset, lost, what, message.format(nbytes), rule.code, part)
