"""Spans: slices with trace ids and span ids, so that links and logs can refer to them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from fxframework.model.capture import Capture
from fxframework.model.schema import ASYNC, FLOW_BEGIN, FLOW_END
from fxframework.model.table import Table

__all__ = ["WITHOUT_SLICE", "Spans", "flow_points", "links"]

I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]
SAMPLE = 1 << 16
"""Number of bytes of a capture that its fingerprint covers."""
NONE = -1
WITHOUT_SLICE = "flows outside of slices, or without a beginning"
"""How exporters count points that are of no flow."""


@attrs.frozen(eq=False)
class Spans:
    """The slices of a capture, as columns of one length, in order of rows.

    Ids are derived from the bytes of the capture and the row, so that they are reproducible. Each
    outermost slice begins a trace, which contains all slices within it.
    """

    prefix: str
    """The first 8 bytes of every trace id, in hexadecimal."""
    rows: I64
    """Row of each slice, ascending."""
    parent: I64
    """Index of the enclosing slice in these columns; -1 if there is none."""
    trace: U64
    """The last 8 bytes of the trace id."""
    span: U64
    """The span id, which is not 0."""
    start: I64
    """Nanoseconds."""
    end: I64
    """Nanoseconds; the end of the last slice for a slice that never ended."""
    thread: NDArray[np.int32]
    """Id in `threads`; -1 for an asynchronous slice."""

    @classmethod
    def of(cls, capture: Capture) -> Spans:
        """Return the spans of a capture, or of a part of one, that has slices."""
        table = capture.table("slices")
        rows = np.asarray(table.array("row"), np.int64)
        above = np.asarray(table.array("parent"), np.int64)
        place = np.minimum(np.searchsorted(rows, above), max(rows.size - 1, 0))
        known = (above >= 0) & (rows[place] == above) if rows.size else above >= 0
        parent = np.where(known, place, NONE)
        own = np.arange(rows.size)
        root = np.where(known, place, own)
        while rows.size and not np.array_equal(again := root[root], root):
            root = again
        seed = np.uint64(int.from_bytes(fingerprint(capture)[8:], "little"))
        span = _mixed(rows.astype(np.uint64) ^ seed)
        start = np.asarray(table.array("ts"), np.int64)
        length = np.asarray(table.array("dur"), np.int64)
        end = start + np.maximum(length, 0)
        last = int(end.max()) if end.size else 0
        on_thread = table.array("kind") != ASYNC
        return cls(
            prefix=fingerprint(capture)[:8].hex(),
            rows=rows,
            parent=parent,
            trace=span[root],
            span=span,
            start=start,
            end=np.where(length < 0, np.maximum(last, start), end),
            thread=np.where(on_thread, table.array("thread"), NONE).astype(np.int32),
        )

    def __len__(self) -> int:
        return int(self.rows.size)

    def ids(self, place: int) -> tuple[str, str]:
        """Return the trace id and the span id of a slice, in hexadecimal."""
        return f"{self.prefix}{self.trace[place]:016x}", f"{self.span[place]:016x}"

    def places(self, rows: I64) -> I64:
        """Return the indices of slices by row, -1 for rows that are not among the slices."""
        if not len(self):
            return np.full(rows.size, NONE, np.int64)
        found = np.minimum(np.searchsorted(self.rows, rows), len(self) - 1)
        return np.where(self.rows[found] == rows, found, NONE)

    def enclosing(self, threads: NDArray[np.int32], ts: I64) -> I64:
        """Return the index of the innermost slice of a thread at a time, shape (n,); -1 for none.

        ``threads`` are ids in `threads`, -1 for none. A slice covers the times from its start up
        to but not including its end; an empty slice covers its start.
        """
        order = np.flatnonzero(self.thread >= 0)
        order = order[np.lexsort((order, self.start[order], self.thread[order]))]
        found = np.full(ts.size, NONE, np.int64)
        for thread in np.unique(threads[threads >= 0]).tolist():
            first, last = np.searchsorted(self.thread[order], [thread, thread + 1])
            mine = order[first:last]
            asked = np.flatnonzero(threads == thread)
            at = np.searchsorted(self.start[mine], ts[asked], "right") - 1
            if mine.size:
                found[asked] = np.where(at >= 0, mine[at], NONE)
        while True:
            over = (found >= 0) & (self.end[found] <= ts) & (self.start[found] < ts)
            if not over.any():
                return found
            found[over] = self.parent[found[over]]


def flow_points(
    flows: Mapping[str, NDArray[Any]], taken: int = 0
) -> tuple[I64, NDArray[np.uint64], int]:
    """Return the slice and flow of each point of a flow in order of time, and the number of flows.

    ``flows`` has the columns ts, slice, id and phase; flows are numbered from ``taken`` + 1 on. An
    id can be reused after its flow ends. A begin within a flow and a point outside of a flow or of
    a slice are left out.
    """
    order = np.argsort(flows["ts"], kind="stable")
    columns = (flows[name][order].tolist() for name in ("slice", "id", "phase"))
    active: dict[int, int] = {}
    slices: list[int] = []
    found: list[int] = []
    for place, id, phase in zip(*columns, strict=True):
        flow = active.get(id)
        if place < 0 or (flow is None) == (phase != FLOW_BEGIN):
            continue
        if flow is None:
            taken += 1
            flow = active[id] = taken
        if phase == FLOW_END:
            del active[id]
        slices.append(place)
        found.append(flow)
    return np.array(slices, np.int64), np.array(found, np.uint64), taken


def links(flows: Table, spans: Spans) -> tuple[I64, I64, int]:
    """Return the pairs of slices that flows connect, and the number of points without a flow.

    The pairs are indices of sources and of targets: the points of a flow in order of time.
    """
    columns = {name: flows.array(name) for name in ("ts", "slice", "id", "phase")}
    slices, numbers, _ = flow_points(columns)
    order = np.argsort(numbers, kind="stable")
    place, numbers = spans.places(slices[order]), numbers[order]
    same = (numbers[1:] == numbers[:-1]) & (place[1:] != place[:-1])
    same &= (place[1:] >= 0) & (place[:-1] >= 0)
    return place[:-1][same], place[1:][same], len(flows) - slices.size


def fingerprint(capture: Capture) -> bytes:
    """Return a hash of 16 bytes of a capture's format, size and first bytes."""
    source = capture.source
    seed = f"{capture.format} {source.size} ".encode() + source.read(0, SAMPLE)
    return hashlib.blake2b(seed, digest_size=16).digest()


def _mixed(numbers: U64) -> U64:
    """Return distinct nonzero hashes of distinct numbers (the finaliser of SplitMix64)."""
    out = numbers + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        out = (out ^ (out >> np.uint64(shift))) * np.uint64(factor)
    out ^= out >> np.uint64(31)
    out[out == 0] = np.uint64(1)
    return out
