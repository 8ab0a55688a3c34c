"""Perfetto: what its importer of traces makes of a file.

The model is that of the trace processor v52: records by their 12-bit size, provider by provider,
then events in the order of their times, nested on the tracks of their threads.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fx_trace.format import MAGIC_BYTES, EventType
from fx_trace.references.importer import END, PACKETS_AT_HAND, Importer
from fx_trace.references.nesting import OPEN, Nesting
from fx_trace.references.packets import PacketStream
from fx_trace.references.quirks import QUIRKS
from fxframework.io.words import WORD
from fxframework.kernels.notes import Notes
from fxframework.model.prediction import PLACES

if TYPE_CHECKING:
    from fxframework.io.source import Source
    from fxframework.model.capture import Capture
    from fxframework.model.prediction import Prediction

__all__ = ["predict"]

I64 = NDArray[np.int64]
OPEN_KINDS = [
    EventType.DURATION_BEGIN,
    EventType.DURATION_END,
    EventType.ASYNC_BEGIN,
    EventType.ASYNC_END,
]
"""Kinds of events that do not say how long a slice is."""


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
    order = np.argsort(events["ts"], kind="stable")
    kind, track, word = events["kind"], events["track"], events["word"]
    later = order[(kind[order] >= EventType.ASYNC_BEGIN) & (kind[order] <= EventType.ASYNC_END)]
    threads = len(importer.tracks)
    track[later] = threads + _rows_of_operations(kind[later], track[later], word[later])
    word[np.isin(kind, OPEN_KINDS)] = OPEN
    word[kind == EventType.ASYNC_INSTANT] = 0
    tracks = int(track.max(initial=0)) + 1
    Nesting(order, importer.events, tracks, notes).run()


def _rows_of_operations(kinds: I64, names: I64, ids: I64) -> I64:
    """Return the numbers of the rows of asynchronous events by time.

    Operations of one name share rows: each id has one, which another id inherits once all in it
    have ended. An id belongs to the name that it was first seen with, whatever its process.
    """
    name_of: dict[int, int] = {}
    row_of: dict[int, int] = {}
    owners: list[int] = []
    nested: list[int] = []
    free: dict[int, list[int]] = defaultdict(list)
    listed: set[int] = set()
    found = np.zeros(len(kinds), np.int64)
    for index, (kind, name, id) in enumerate(
        zip(kinds.tolist(), names.tolist(), ids.tolist(), strict=True)
    ):
        rows = free[name_of.setdefault(id, name)]
        while id not in row_of and rows:
            row = heapq.heappop(rows)
            listed.remove(row)
            if not nested[row]:
                del row_of[owners[row]]
                row_of[id], owners[row] = row, id
        if id not in row_of:
            row_of[id] = len(owners)
            owners.append(id)
            nested.append(0)
        row = found[index] = row_of[id]
        nested[row] += kind != EventType.ASYNC_END
        if kind != EventType.ASYNC_BEGIN:
            nested[row] = max(nested[row] - 1, 0)
            if not nested[row] and row not in listed:
                listed.add(row)
                heapq.heappush(rows, row)
    return found
