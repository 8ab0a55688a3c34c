"""Writes a comparison: as a page, as a differential flame graph, or as its table."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fxframework.analysis.changes import Change
from fxframework.analysis.comparison import Comparison
from fxframework.analysis.comparison_text import cause_text, moved, sums_up, where_text
from fxframework.analysis.runs import bin_edges
from fxframework.errors import MissingExtraError, UsageError, WriteRefusedError
from fxframework.exporters.comparison.flame import picture
from fxframework.exporters.comparison.timeline import in_one_order
from fxframework.exporters.page import page
from fxframework.io.sink import Sink
from fxframework.kit.json_fields import finite
from fxframework.kit.row_texts import in_pieces

__all__ = ["OUTPUTS", "write"]

OUTPUTS = (".html", ".svg", ".csv", ".parquet")
FRAMES = 4_000
"""Frames of a page: those with the most time on either side."""
NAMES = 20_000
"""Names of a page's table."""
SHAPES = 60
"""Names whose distributions a page has: those that changed most."""
LONGEST = 300
"""Characters of a name on a page."""


def write(
    found: Comparison, sink: Sink, out: str, *, widths: str = "after",
    timelines: Sequence[Mapping[str, Any]] = (),
) -> None:  # fmt: skip
    """Write a comparison as the suffix of ``out`` says: .html, .svg, .csv or .parquet.

    Raises UsageError for another suffix, WriteRefusedError for a flame graph without calls.
    """
    if out.endswith(".html"):
        sink.write(_page(found, widths, timelines))
    elif out.endswith(".svg"):
        if not len(found.paths):
            raise WriteRefusedError("there are no calls to draw", path=out)
        title = f"{sums_up(found)}: red took longer, blue shorter; widths are {widths.upper()}"
        for piece in in_pieces(picture(found, widths).svg(title)):
            sink.write(piece)
    elif out.endswith(".csv"):
        _csv(found, sink)
    elif out.endswith(".parquet"):
        _parquet(found, sink)
    else:
        raise UsageError(
            f"the suffix of {out} names no output", remedy=f"there are {', '.join(OUTPUTS)}"
        )


def _csv(found: Comparison, sink: Sink) -> None:
    """Write the table; a figure that a side does not have is an empty field."""
    table = found.calls
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(table.columns)
    for row in zip(*(table.plain(name) for name in table.columns), strict=True):
        writer.writerow([
            "" if one is None or (isinstance(one, float) and math.isnan(one)) else one
            for one in row
        ])  # fmt: skip
        if text.tell() > 1 << 16:
            sink.write(text.getvalue().encode("utf-8", "replace"))
            text.seek(0)
            text.truncate()
    sink.write(text.getvalue().encode("utf-8", "replace"))


def _parquet(found: Comparison, sink: Sink) -> None:
    try:
        import pyarrow  # noqa: F401, ICN001 (asked for first, so that nothing is written)
    except ImportError:
        raise MissingExtraError("pyarrow", "arrow", purpose="Parquet") from None
    from fxframework.exporters.columnar import parquet_writer

    table = found.calls.to_arrow()
    with parquet_writer(sink, table.schema) as writer:
        writer.write_table(table)


# --- The page ------------------------------------------------------------------------------------


def _page(found: Comparison, widths: str, timelines: Sequence[Mapping[str, Any]]) -> bytes:
    shown = found.changes[:NAMES]
    data = {
        "sides": [[run.name for run in side.runs] for side in (found.before, found.after)],
        "summary": sums_up(found),
        "notes": list(found.notes),
        "widths": widths,
        "explained": [
            [one.change_ns, finite(one.share), cause_text(one), " > ".join(one.path)[:LONGEST]]
            for one in found.explained
        ],
        "calls": [_call(one, found.runs) for one in shown],
        "omitted": len(found.changes) - len(shown),
        "frames": _frames(found, widths),
        "shapes": _shapes(found),
        "moves": {
            title: [
                [one.verdict, one.label[:LONGEST], shown(one.before), shown(one.after)]
                for one in moves
                if one.verdict != "same"
            ][:NAMES]
            for title, moves, shown in moved(found)
        },
        "timelines": in_one_order(timelines) if len(timelines) == 2 else [],
    }
    return page("fxframework.exporters.comparison", "compare", data)


def _call(one: Change, runs: tuple[int, int]) -> list[Any]:
    ratio = one.ratio
    sides = [
        [None, None, None] if each is None else [each.count / number, each.mean_ns, each.p99_ns]
        for each, number in zip((one.before, one.after), runs, strict=True)
    ]
    return [
        one.verdict,
        one.label[:LONGEST],
        None if ratio is None else ratio.estimate,
        None if ratio is None else finite(ratio.low),
        None if ratio is None else finite(ratio.high),
        one.change_ns(runs),
        *sides,
        where_text(one.where),
    ]


def _frames(found: Comparison, widths: str) -> list[list[Any]]:
    """Return frames: name, depth, left edge, width, and the time before and after, in ns."""
    size = len(found.paths)
    before, after = (side.path_means("total", size) for side in (found.before, found.after))
    weight = before if widths == "before" else after
    parents = np.array(found.paths.parents, np.int64)
    order = np.argsort(-weight, kind="stable")[:FRAMES]
    keep = np.zeros(size, np.bool_)
    keep[order[weight[order] > 0]] = True
    children: dict[int, list[int]] = {}
    for at in np.flatnonzero(keep).tolist():
        children.setdefault(max(int(parents[at]), -1), []).append(at)
    out: list[list[Any]] = []
    stack = [(-1, 0, 0.0)]
    while stack:
        parent, depth, left = stack.pop()
        for at in sorted(children.get(parent, ()), key=lambda one: -weight[one]):
            name = found.paths.name(at)[:LONGEST]
            out.append([name, depth, left, float(weight[at]), float(before[at]), float(after[at])])
            stack.append((at, depth + 1, left))
            left += float(weight[at])
    return out


def _shapes(found: Comparison) -> dict[str, Any]:
    """Return the distributions of the names that changed most."""
    edges = bin_edges()
    shapes = []
    changed = [one for one in found.changes if one.changed]
    if found.unclear:
        changed = [one for one in found.changes if one.is_apart(found.threshold)]
    for one in changed[:SHAPES]:
        bins = [side.bins(one.number) for side in (found.before, found.after)]
        used = np.flatnonzero(bins[0] + bins[1])
        if used.size:
            first, last = int(used[0]), int(used[-1]) + 1
            parts = [each[first:last].tolist() for each in bins]
            shapes.append([one.label[:LONGEST], first, *parts])
    return {"edges": edges.tolist(), "names": shapes}
