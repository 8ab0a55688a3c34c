"""Timelines of a page that compares two runs: the longest slices of each."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fxframework.analysis.calls import thread_names
from fxframework.errors import UsageError, did_you_mean
from fxframework.kernels.sorting import dense, largest
from fxframework.model.capture import Capture
from fxframework.model.schema import ASYNC
from fxframework.model.table import Table

MOST = 4_000
"""Slices of a timeline."""
TRACKS = 12
"""Threads of a timeline: those with the most time in slices."""
DEEPEST = 12
"""Levels of slices of a timeline."""
LONGEST = 200
"""Characters of a name."""
IDS = re.compile(r" \(\d+(/\d+)?\)$")
"""The ids behind the name of a thread."""


def in_one_order(timelines: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return timelines with their threads in one order: that of the first, then the others.

    Threads are alike by name, as their ids differ from run to run.
    """
    rank_of_name: dict[str, int] = {}
    ordered = []
    for side in timelines:
        names = [IDS.sub("", track) for track in side["tracks"]]
        for name in names:
            rank_of_name.setdefault(name, len(rank_of_name))
        ranks = [rank_of_name[name] for name in names]
        order = sorted(range(len(names)), key=ranks.__getitem__)
        new_track = {track: number for number, track in enumerate(order)}
        slices = [[new_track[track], *columns] for track, *columns in side["slices"]]
        tracks = [side["tracks"][track] for track in order]
        ordered.append({**side, "tracks": tracks, "slices": slices})
    return ordered


def timeline(capture: Capture, anchor: str | None) -> dict[str, Any]:
    """Return the longest slices of a capture, with times relative to the anchor, in ns.

    The anchor is the start of the first slice of this name, or of the first slice of all. Raises
    UsageError if there is no slice of this name.
    """
    if "slices" not in capture.schemas or not len(capture.table("slices")):
        return {"name": capture.name, "tracks": [], "names": [], "slices": []}
    table = capture.table("slices")
    start = table.array("ts")
    length = table.array("dur")
    threads = table.array("thread")
    depth = table.array("depth")
    zero_time = int(start.min())
    if anchor is not None:
        zero_time = _start_of(anchor, capture.name, table)
    is_call = (table.array("kind") != ASYNC) & (length >= 0)
    rows = np.flatnonzero(is_call & (depth < DEEPEST))
    thread_index, ids = dense(threads[rows])
    # The busiest threads become tracks: slices within others add nothing to their time.
    is_outermost = depth[rows] == 0
    outermost_length = np.where(is_outermost, length[rows], 0)
    outermost_time = np.bincount(thread_index, outermost_length, ids.size)
    busiest = np.argsort(-outermost_time, kind="stable")[:TRACKS]
    track_of_thread = np.full(ids.size, -1, np.int64)
    track_of_thread[busiest] = np.arange(busiest.size)
    tracks = track_of_thread[thread_index]
    rows = rows[tracks >= 0]
    tracks = tracks[tracks >= 0]
    longest = largest(length[rows], MOST)
    rows = rows[longest]
    tracks = tracks[longest]
    labels = thread_names(capture)
    codes_of_rows = table.array("name")[rows]
    name_index, codes = dense(codes_of_rows)
    relative_start = start[rows] - zero_time
    columns = np.column_stack((tracks, depth[rows], name_index, relative_start, length[rows]))
    track_names = [labels.get(thread, "no thread") for thread in ids[busiest].tolist()]
    slice_names = [table.pool[code] if code >= 0 else "(no name)" for code in codes.tolist()]
    return {
        "name": capture.name,
        "tracks": [name[:LONGEST] for name in track_names],
        "names": [name[:LONGEST] for name in slice_names],
        "slices": columns.tolist(),
    }


def _start_of(anchor: str, path: str, table: Table) -> int:
    """Return when the first slice of a name begins. Raises UsageError if there is none."""
    codes = table.array("name")
    pool = table.pool
    code = pool.code(anchor.encode())
    rows = np.zeros(0, np.int64)
    if code >= 0:
        rows = np.flatnonzero(codes == code)
    if not rows.size:
        known_codes = np.unique(codes[codes >= 0])
        known = [pool[code] for code in known_codes.tolist()]
        raise UsageError(
            f"there is no slice {anchor!r} to align at{did_you_mean(anchor, known)}",
            path=path,
            remedy="name a slice of both sides",
        )
    return int(table.array("ts")[rows].min())
