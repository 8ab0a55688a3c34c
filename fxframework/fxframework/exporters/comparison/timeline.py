"""Timelines of a page that compares two runs: the longest slices of each."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fxframework.analysis.calls import ThreadNames
from fxframework.errors import UsageError, did_you_mean
from fxframework.model.capture import Capture
from fxframework.model.schema import ASYNC

__all__ = ["in_one_order", "timeline"]

MOST = 4_000
"""Slices of a timeline."""
TRACKS = 12
"""Threads of a timeline: those with the most time in slices."""
DEEPEST = 12
LONGEST = 200
IDS = re.compile(r" \(\d+(/\d+)?\)$")
"""The ids behind the name of a thread."""


def in_one_order(timelines: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return timelines with their threads in one order: that of the first, then the others.

    Threads are alike by name, as their ids differ from run to run.
    """
    ranks: dict[str, int] = {}
    ordered = []
    for side in timelines:
        names = [IDS.sub("", track) for track in side["tracks"]]
        for name in names:
            ranks.setdefault(name, len(ranks))
        order = sorted(range(len(names)), key=lambda track: ranks[names[track]])
        place = {track: number for number, track in enumerate(order)}
        slices = [[place[track], *rest] for track, *rest in side["slices"]]
        tracks = [side["tracks"][track] for track in order]
        ordered.append({**side, "tracks": tracks, "slices": slices})
    return ordered


def timeline(capture: Capture, anchor: str | None) -> dict[str, Any]:
    """Return the longest slices of a capture, with times relative to the anchor, in ns.

    The anchor is the start of the first slice of this name, or of the first slice of all. Raises
    UsageError if there is no slice of this name.
    """
    found: dict[str, Any] = {"name": capture.name, "tracks": [], "names": [], "slices": []}
    if "slices" not in capture.schemas or not len(capture.table("slices")):
        return found
    table = capture.table("slices")
    start, length = table.array("ts"), table.array("dur")
    codes, threads = table.array("name"), table.array("thread")
    pool = table.pool
    base = int(start.min())
    if anchor is not None:
        code = pool.code(anchor.encode())
        mine = np.flatnonzero(codes == code) if code >= 0 else np.zeros(0, np.int64)
        if not mine.size:
            known = [pool[one] for one in np.unique(codes).tolist() if one >= 0]
            raise UsageError(
                f"there is no slice {anchor!r} to align at{did_you_mean(anchor, known)}",
                path=capture.name,
                remedy="name a slice of both sides",
            )
        base = int(start[mine].min())
    depth = table.array("depth")
    chosen = (table.array("kind") != ASYNC) & (length >= 0) & (depth < DEEPEST)
    ids, which = np.unique(threads[chosen], return_inverse=True)
    which = which.reshape(-1)
    times = np.bincount(which, length[chosen] * (depth[chosen] == 0), ids.size)
    tracks = np.argsort(-times, kind="stable")[:TRACKS]
    place = np.full(ids.size, -1, np.int64)
    place[tracks] = np.arange(tracks.size)
    rows = np.flatnonzero(chosen)[place[which] >= 0]
    track = place[which][place[which] >= 0]
    if rows.size > MOST:
        longest = np.sort(np.argpartition(-length[rows], MOST)[:MOST])
        rows, track = rows[longest], track[longest]
    names = ThreadNames(capture)
    found["tracks"] = [names.get(int(ids[at]), "no thread")[:LONGEST] for at in tracks.tolist()]
    used, name = np.unique(codes[rows], return_inverse=True)
    found["names"] = [pool[one][:LONGEST] if one >= 0 else "(no name)" for one in used.tolist()]
    columns = track, depth[rows], name.reshape(-1), start[rows] - base, length[rows]
    found["slices"] = [list(row) for row in zip(*(each.tolist() for each in columns), strict=True)]
    return found
