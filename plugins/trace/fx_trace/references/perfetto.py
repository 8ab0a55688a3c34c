"""Perfetto: what its importer of traces makes of a file.

The model is that of the trace processor v52: records by their 12-bit size, provider by provider,
then events in the order of their times, nested on the tracks of their threads.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_trace.format import MAGIC_BYTES, EventType
from fx_trace.references.importer import END, PACKETS_AT_HAND, Importer
from fx_trace.references.nesting import Nesting
from fx_trace.references.packets import PacketStream
from fx_trace.references.quirks import QUIRKS
from fxframework.io.words import WORD
from fxframework.kernels.notes import Notes
from fxframework.model.prediction import PLACES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fxframework.io.source import Source
    from fxframework.kernels.maps import PairMap
    from fxframework.model.capture import Capture
    from fxframework.model.prediction import Prediction

__all__ = ["predict"]

I64 = NDArray[np.int64]


def predict(capture: Capture, found: Prediction) -> None:
    """Add what Perfetto makes of the bytes of a trace."""
    source = capture.source
    notes = Notes(len(QUIRKS), PLACES)
    if source.read(0, WORD) != MAGIC_BYTES:
        found.add("no-magic", 0)
        return
    importer = Importer(source.words().view(np.int64), notes)
    _import(source, importer, found)
    found.records = importer.record
    if not importer.failed:
        if importer.pos == importer.total and source.size % WORD:
            found.add("odd-bytes", importer.total * WORD, importer.record)
        _nest(importer, notes)
    kept = [0] * len(QUIRKS)
    for quirk, offset, record, _ in notes.findings.reshape(-1, 4).tolist():
        found.add(QUIRKS[quirk].key, offset, record)
        kept[quirk] += 1
    for quirk, (count, listed) in enumerate(zip(np.asarray(notes.totals), kept, strict=True)):
        found.add_more(QUIRKS[quirk].key, int(count) - listed)


def _import(source: Source, importer: Importer, found: Prediction) -> None:
    """Take all records, and the packets inside blobs."""
    packets = PacketStream()
    passed = 0
    while (state := importer.run()) != END:
        if state == PACKETS_AT_HAND:
            why = packets.add(source.read(importer.payload * WORD, importer.nbytes))
            if why:
                found.add("packet", importer.at * WORD, importer.record - 1, why)
        else:
            source.passed(passed * WORD, importer.pos * WORD)
            passed = importer.pos


def _nest(importer: Importer, notes: Notes) -> None:
    """Put events on their tracks by time, those of one time in the order of the file."""
    events = importer.events.filled()
    ts = events["ts"]
    ordered = bool((ts[1:] >= ts[:-1]).all())
    order = np.arange(ts.size) if ordered else np.argsort(ts, kind="stable")
    threads = len(importer.tracks)
    rows = _rows_of_operations(events, order, importer.operations) + threads
    tracks = int(rows.max(initial=threads)) + 1
    Nesting(order, importer.events, rows, tracks, notes).run()


# --- Asynchronous operations ---------------------------------------------------------------------


def _rows_of_operations(events: Mapping[str, NDArray[Any]], order: I64, pairs: PairMap) -> I64:
    """Return the numbers of the rows of asynchronous events, int64, in order of time.

    An id belongs to the name that it was first seen with, whatever its process; only then do names
    tell apart.
    """
    kinds = events["kind"][order]
    some = (kinds >= EventType.ASYNC_BEGIN) & (kinds <= EventType.ASYNC_END)
    later = order[some]
    names = np.zeros(len(pairs), np.int64)
    used = np.asarray(pairs.value) >= 0
    names[np.asarray(pairs.value)[used]] = np.asarray(pairs.first)[used]
    columns = (kinds[some], names[events["track"][later]], events["word"][later])
    name_of: dict[int, int] = {}
    operations: dict[int, _Operations] = defaultdict(_Operations)
    found: list[int] = []
    rows = 0
    for kind, name, cookie in zip(*(column.tolist() for column in columns), strict=True):
        own = operations[name_of.setdefault(cookie, name)]
        row = own.row_of(cookie, rows)
        rows = max(rows, row.number + 1)
        if kind != EventType.ASYNC_END:
            row.nested += 1
        if kind != EventType.ASYNC_BEGIN:
            own.end(row)
        found.append(row.number)
    return np.array(found, np.int64)


@attrs.define(order=True)
class _Row:
    """One of the rows that operations of one name share."""

    number: int
    cookie: int = attrs.field(order=False)
    nested: int = attrs.field(default=0, order=False)
    listed: bool = attrs.field(default=False, order=False)
    """Whether it is among the free rows."""


class _Operations:
    """Rows of the operations of one name: each id has one, which it may inherit."""

    def __init__(self) -> None:
        self._of: dict[int, _Row] = {}
        self._free: list[_Row] = []

    def row_of(self, cookie: int, new: int) -> _Row:
        """Return the row of an id: its own, a free one, or one of number ``new``."""
        row = self._of.get(cookie)
        while row is None and self._free:
            free = heapq.heappop(self._free)
            free.listed = False
            if not free.nested:
                del self._of[free.cookie]
                free.cookie = cookie
                row = free
        if row is None:
            row = _Row(new, cookie)
        self._of[cookie] = row
        return row

    def end(self, row: _Row) -> None:
        """Count the end of an operation in a row, whether it began or not."""
        row.nested = max(row.nested - 1, 0)
        if not row.nested and not row.listed:
            row.listed = True
            heapq.heappush(self._free, row)
