"""Spans: slices with trace ids and span ids, so that links and logs can refer to them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from fxframework.kernels.arrays import I64, U64
from fxframework.kernels.sorting import outermost, places_among, run_of
from fxframework.model.capture import Capture
from fxframework.model.clock import ends_of
from fxframework.model.schema import ASYNC, FLOW_BEGIN, FLOW_END
from fxframework.model.table import Table

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
        parent = places_among(table.array("parent"), rows)
        around = np.where(parent >= 0, parent, np.arange(parent.size))
        fingerprint_bytes = fingerprint(capture)
        seed = np.uint64(int.from_bytes(fingerprint_bytes[8:], "little"))
        span = _mixed(rows.astype(np.uint64) ^ seed)
        start = np.asarray(table.array("ts"), np.int64)
        length = np.asarray(table.array("dur"), np.int64)
        end = ends_of(start, length)
        last_end = int(end.max()) if end.size else 0
        on_thread = table.array("kind") != ASYNC
        return cls(
            prefix=fingerprint_bytes[:8].hex(),
            rows=rows,
            parent=parent,
            trace=span[outermost(around)],
            span=span,
            start=start,
            end=np.where(length < 0, np.maximum(last_end, start), end),
            thread=np.where(on_thread, table.array("thread"), NONE).astype(np.int32),
        )

    def __len__(self) -> int:
        return int(self.rows.size)

    def ids(self, index: int) -> tuple[str, str]:
        """Return the trace id and the span id of a slice, in hexadecimal."""
        return f"{self.prefix}{self.trace[index]:016x}", f"{self.span[index]:016x}"

    def places(self, rows: I64) -> I64:
        """Return the indices of slices by row, -1 for rows that are not among the slices."""
        return places_among(rows, self.rows)

    def enclosing(self, threads: NDArray[np.int32], ts: I64) -> I64:
        """Return the index of the innermost slice of a thread at a time, shape (n,); -1 for none.

        ``threads`` are ids in `threads`, -1 for none. A slice covers the times from its start up
        to but not including its end; an empty slice covers its start.
        """
        by_thread = np.flatnonzero(self.thread >= 0)
        # Of slices that begin together, the outer one has the lower row: the inner one comes last.
        order = np.lexsort((by_thread, self.start[by_thread], self.thread[by_thread]))
        by_thread = by_thread[order]
        sorted_threads = self.thread[by_thread]
        innermost = np.full(ts.size, NONE, np.int64)
        for thread in np.unique(threads[threads >= 0]).tolist():
            slices = by_thread[run_of(sorted_threads, thread)]
            if slices.size:
                on_thread = np.flatnonzero(threads == thread)
                starts = self.start[slices]
                latest = np.searchsorted(starts, ts[on_thread], "right") - 1
                latest_slices = np.where(latest >= 0, slices[latest], NONE)
                innermost[on_thread] = latest_slices
        # The latest slice that began may have ended: then the one around it is looked at.
        while True:
            has_ended = self.end[innermost] <= ts
            has_ended &= self.start[innermost] < ts
            has_ended &= innermost >= 0
            if not has_ended.any():
                return innermost
            innermost[has_ended] = self.parent[innermost[has_ended]]


def flow_points(
    flows: Mapping[str, NDArray[Any]], taken: int = 0
) -> tuple[I64, NDArray[np.uint64], int]:
    """Return the slice and flow of each point of a flow in order of time, and the number of flows.

    ``flows`` has the columns ts, slice, id and phase; flows are numbered from ``taken`` + 1 on. An
    id can be reused after its flow ends. A begin within a flow and a point outside of a flow or of
    a slice are left out.
    """
    by_time = np.argsort(flows["ts"], kind="stable")
    slices = flows["slice"][by_time].tolist()
    ids = flows["id"][by_time].tolist()
    phases = flows["phase"][by_time].tolist()
    active_flows: dict[int, int] = {}  # the number of the flow that has an id
    point_slices: list[int] = []
    point_flows: list[int] = []
    for slice_index, flow_id, phase in zip(slices, ids, phases, strict=True):
        flow = active_flows.get(flow_id)
        if slice_index < 0:
            continue
        if phase == FLOW_BEGIN:
            if flow is not None:
                continue
            taken += 1
            flow = taken
            active_flows[flow_id] = flow
        elif flow is None:
            continue
        if phase == FLOW_END:
            del active_flows[flow_id]
        point_slices.append(slice_index)
        point_flows.append(flow)
    return np.array(point_slices, np.int64), np.array(point_flows, np.uint64), taken


def flow_steps(flows: Table) -> tuple[I64, I64]:
    """Return the rows of points from which flows go on, and of those at which they then arrive.

    Points outside of slices are left out, as in ``flow_points``.
    """
    slices = flows.array("slice")
    # Points go by their own number, where they lie in a slice.
    numbers = np.where(slices >= 0, np.arange(slices.size), -1)
    columns = {name: flows.array(name) for name in ("ts", "id", "phase")}
    points, flow, _ = flow_points({**columns, "slice": numbers})
    by_flow = np.argsort(flow, kind="stable")
    points = points[by_flow]
    flow = flow[by_flow]
    goes_on = flow[1:] == flow[:-1]
    return points[:-1][goes_on], points[1:][goes_on]


def links(flows: Table, spans: Spans) -> tuple[I64, I64, int]:
    """Return the pairs of slices that flows connect, and the number of points without a flow.

    The pairs are indices of sources and of targets: the points of a flow in order of time.
    """
    columns = {name: flows.array(name) for name in ("ts", "slice", "id", "phase")}
    rows, flow_numbers, _ = flow_points(columns)
    by_flow = np.argsort(flow_numbers, kind="stable")  # each in order of time
    indexes = spans.places(rows[by_flow])
    flow_numbers = flow_numbers[by_flow]
    sources = indexes[:-1]
    targets = indexes[1:]
    are_linked = flow_numbers[1:] == flow_numbers[:-1]
    are_linked &= targets != sources
    are_linked &= (targets >= 0) & (sources >= 0)
    return sources[are_linked], targets[are_linked], len(flows) - rows.size


def fingerprint(capture: Capture) -> bytes:
    """Return a hash of 16 bytes of a capture's format, size and first bytes."""
    source = capture.source
    seed = f"{capture.format} {source.size} ".encode()
    seed += source.read(0, SAMPLE)
    return hashlib.blake2b(seed, digest_size=16).digest()


def _mixed(numbers: U64) -> U64:
    """Return distinct nonzero hashes of distinct numbers (the finaliser of SplitMix64)."""
    hashes = numbers + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        hashes ^= hashes >> np.uint64(shift)
        hashes *= np.uint64(factor)
    hashes ^= hashes >> np.uint64(31)
    hashes[hashes == 0] = np.uint64(1)
    return hashes
