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
from fxframework.exporters.comparison.flame import picture, times_of_nodes
from fxframework.exporters.comparison.timeline import in_one_order
from fxframework.exporters.flamegraph import SEVERAL
from fxframework.exporters.page import page
from fxframework.io.sink import Sink
from fxframework.kit.json_fields import finite
from fxframework.kit.row_texts import in_pieces

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
    comparison: Comparison, sink: Sink, out: str, *, widths: str = "after",
    timelines: Sequence[Mapping[str, Any]] = (),
) -> None:  # fmt: skip
    """Write a comparison as the suffix of ``out`` says: .html, .svg, .csv or .parquet.

    Raises UsageError for another suffix, WriteRefusedError for a flame graph without calls.
    """
    if out.endswith(".html"):
        sink.write(_page(comparison, widths, timelines))
    elif out.endswith(".svg"):
        if not len(comparison.paths):
            raise WriteRefusedError("there are no calls to draw", path=out)
        title = f"{sums_up(comparison)}: red took longer, blue shorter; widths are {widths.upper()}"
        for piece in in_pieces(picture(comparison, widths).svg(title)):
            sink.write(piece)
    elif out.endswith(".csv"):
        _csv(comparison, sink)
    elif out.endswith(".parquet"):
        _parquet(comparison, sink)
    else:
        raise UsageError(
            f"the suffix of {out} names no output", remedy=f"there are {', '.join(OUTPUTS)}"
        )


def _csv(comparison: Comparison, sink: Sink) -> None:
    """Write the table; a figure that a side does not have is an empty field."""
    table = comparison.calls
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(table.columns)
    for row in zip(*(table.plain(name) for name in table.columns), strict=True):
        writer.writerow(["" if _is_missing(value) else value for value in row])
        if text.tell() > 1 << 16:
            sink.write(text.getvalue().encode("utf-8", "replace"))
            text.seek(0)
            text.truncate()
    sink.write(text.getvalue().encode("utf-8", "replace"))


def _is_missing(value: object) -> bool:
    if value is None:
        return True
    return isinstance(value, float) and math.isnan(value)


def _parquet(comparison: Comparison, sink: Sink) -> None:
    try:
        import pyarrow  # noqa: F401, ICN001 (asked for first, so that nothing is written)
    except ImportError:
        raise MissingExtraError("pyarrow", "arrow", purpose="Parquet") from None
    from fxframework.exporters.columnar import parquet_writer

    table = comparison.calls.to_arrow()
    with parquet_writer(sink, table.schema) as writer:
        writer.write_table(table)


# --- The page ------------------------------------------------------------------------------------


def _page(comparison: Comparison, widths: str, timelines: Sequence[Mapping[str, Any]]) -> bytes:
    changes = comparison.changes[:NAMES]
    moves: dict[str, list[list[str]]] = {}
    for title, changes_of_kind, shown in moved(comparison):
        moves_of_kind = [
            [move.verdict, move.label[:LONGEST], shown(move.before), shown(move.after)]
            for move in changes_of_kind
            if move.verdict != "same"
        ]
        moves[title] = moves_of_kind[:NAMES]
    explained = []
    for cause in comparison.explained:
        path = " > ".join(cause.path)[:LONGEST]
        share = finite(cause.share)
        explained.append([cause.change_ns, share, cause_text(cause), path])
    sides = (comparison.before, comparison.after)
    data = {
        "sides": [[run.name for run in side.runs] for side in sides],
        "summary": sums_up(comparison),
        "notes": list(comparison.notes),
        "widths": widths,
        "explained": explained,
        "calls": [_call(change, comparison.runs) for change in changes],
        "omitted": len(comparison.changes) - len(changes),
        "frames": _frames(comparison, widths) if len(comparison.paths) else [],
        "shapes": _shapes(comparison),
        "moves": moves,
        "timelines": in_one_order(timelines) if len(timelines) == 2 else [],
    }
    return page("compare", "fxframework comparison", data)


def _call(change: Change, runs: tuple[int, int]) -> list[Any]:
    """Return a row of the page's table; a side has calls a run, and mean and p99 in ns."""
    sides: list[list[float | None]] = []
    for figures, run_count in zip((change.before, change.after), runs, strict=True):
        if figures is None:
            sides.append([None, None, None])
        else:
            calls_a_run = figures.count / run_count
            sides.append([calls_a_run, figures.mean_ns, figures.p99_ns])
    ratio = change.ratio
    ratio_columns: list[float | None] = [None, None, None]
    if ratio is not None:
        ratio_columns = [ratio.estimate, finite(ratio.low), finite(ratio.high)]
    label = change.label[:LONGEST]
    where = where_text(change.where)
    return [change.verdict, label, *ratio_columns, change.change_ns(runs), *sides, where]


def _frames(comparison: Comparison, widths: str) -> list[list[Any]]:
    """Return frames: name, depth, left edge, width, and the time before and after, in ns."""
    before, after = times_of_nodes(comparison)
    return [
        [frame.name[:LONGEST], frame.level, frame.left, frame.width]
        + [float(times[frame.node]) for times in (before, after)]
        for frame in picture(comparison, widths).widest(FRAMES)
        if frame.node != SEVERAL
    ]


def _shapes(comparison: Comparison) -> dict[str, Any]:
    """Return the distributions of the names that changed most."""
    if comparison.unclear:
        # No change is sure: show those beyond the threshold.
        changed = [change for change in comparison.changes if change.is_apart(comparison.threshold)]
    else:
        changed = [change for change in comparison.changes if change.changed]
    shapes = []
    for change in changed[:SHAPES]:
        bins_before = comparison.before.bins(change.number)
        bins_after = comparison.after.bins(change.number)
        used = np.flatnonzero(bins_before + bins_after)
        if used.size:
            first = int(used[0])
            stop = int(used[-1]) + 1
            label = change.label[:LONGEST]
            used_before = bins_before[first:stop].tolist()
            used_after = bins_after[first:stop].tolist()
            shapes.append([label, first, used_before, used_after])
    return {"edges": bin_edges().tolist(), "names": shapes}
