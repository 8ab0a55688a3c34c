"""Extracts parts of logs in their own format: the selected records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_log import format as wire
from fx_log import rules
from fx_log.read.capture import LogCapture
from fx_log.read.records import Damaged, LogFileRecord, Padding, RingEntry, RingHeader, StreamHeader
from fx_log.rules import RULES
from fx_log.write.convert import BEHIND
from fx_log.write.rewriter import is_plain, open_any_writer
from fxframework.io.sink import Sink
from fxframework.kit.salvage import Loss, lost
from fxframework.model.capture import Capture, Window
from fxframework.model.diagnostics import Diagnostics
from fxframework.model.selection import Selection

__all__ = ["extract"]

I64 = NDArray[np.int64]
_REPORTED = {
    rules.REDACTED.code: "values redacted",
    rules.NO_ROOM_FOR_ATTRIBUTION.code: "logs without their component",
    rules.KEY_NOT_THERE.code: "keys to be redacted that were not there",
}


def extract(
    capture: Capture, selection: Selection, sink: Sink, options: Mapping[str, Any]
) -> Mapping[str, int]:
    """Write the selected logs, with the records that give their attribution.

    Damage and padding are left out; a ring keeps its size if possible. Returns counts of what was
    left out and of the writer's reports: redacted values, and logs without their component. Raises
    the errors of the format's writer.
    """
    assert isinstance(capture, LogCapture)  # noqa: S101 (the host asks for no other)
    window = Window(capture, selection)
    left_out = window.offsets_left_out()
    behind = 0
    found = Diagnostics(RULES)
    if capture.format == "log" and is_plain(options):
        for stretch in _kept(capture, left_out):
            for piece in capture.source.pieces(*stretch):
                sink.write(piece)
        damaged = capture.summary().kinds.get("damaged", 0)
    else:
        losses = Counter(
            BEHIND if loss.code == rules.ENTRY_TRAILING_BYTES.code else loss.what
            for loss in _write(window.checked_records(), capture.format, sink, options, found)
        )
        damaged, behind = losses["damaged"], losses[BEHIND]
    counts = {"logs": int(left_out.size), "damaged stretches": damaged, BEHIND: behind}
    counts |= {what: found.counts.get(code, 0) for code, what in _REPORTED.items()}
    return {name: count for name, count in counts.items() if count}


def _kept(capture: LogCapture, left_out: I64) -> Iterator[tuple[int, int]]:
    """Yield contiguous ranges of sound records, without the records at some offsets."""
    left_out = np.append(left_out, np.int64(-1))
    for offsets, ends in capture.stretches():
        keep = left_out[np.searchsorted(left_out[:-1], offsets)] != offsets
        starts, stops = offsets[keep], ends[keep]
        if not starts.size:
            continue
        first = np.append(True, starts[1:] != stops[:-1])
        last = np.append(first[1:], True)
        yield from zip(starts[first].tolist(), stops[last].tolist(), strict=True)


def _write(
    records: Iterable[Any],
    format: str,
    sink: Sink,
    options: Mapping[str, Any],
    found: Diagnostics,
) -> Iterator[Loss]:
    """Write the sound ones of some records. Yield each loss."""
    writer = open_any_writer(format, sink, options, found)
    ring = format == "log-ring"
    if ring:
        records = _in_a_ring(records)
    for record in records:
        loss = _loss(record)
        if loss is not None:
            yield loss
            if loss.code == rules.CONTAINER_HEADER.code:
                writer.write(StreamHeader())
        elif isinstance(record, RingEntry) and record.payload:
            message = f"{len(record.payload)} bytes after the log of an entry; left out"
            yield Loss(record.offset, 0, record.record, message, rules.ENTRY_TRAILING_BYTES.code)
            writer.write(attrs.evolve(record, payload=b""))
        elif isinstance(record, Padding) and not ring:
            yield lost(record)
        else:
            writer.write(record)
    writer.close()


def _loss(record: LogFileRecord) -> Loss | None:
    """Return the loss of a record that is not written, or None."""
    if isinstance(record, Damaged):
        return lost(record)
    if isinstance(record, RingEntry) and record.log is None:
        message = f"an entry of {record.nbytes} bytes without a log; left out"
        return Loss(
            record.offset, record.nbytes, record.record, message, rules.ENTRY_WITHOUT_RECORD.code
        )
    return None


def _in_a_ring(records: Iterable[LogFileRecord]) -> Iterator[LogFileRecord]:
    """Yield the records of a ring for extraction: stale bytes as padding, no raw bytes.

    A ring with an invalid header becomes an empty ring.
    """
    for record in records:
        if isinstance(record, Damaged) and record.code == rules.STALE_BYTES.code:
            yield Padding(nbytes=record.nbytes)
        elif isinstance(record, RingEntry | RingHeader):
            yield record.edited()
        elif isinstance(record, Damaged) and record.code == rules.INVALID_RING.code:
            yield record
            yield RingHeader(head=0, tail=0)
            yield Padding(nbytes=wire.RING_MINIMUM)
        else:
            yield record
