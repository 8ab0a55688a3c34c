"""The report of a comparison as lines of text, with numbers before names.

A ``comparison`` is a ``Comparison``, whose module uses this one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fxframework.kit.shown import amount, brief, columns, printable, shortened

if TYPE_CHECKING:
    from fxframework.analysis.changes import Change, Measures
    from fxframework.analysis.explanation import Cause
    from fxframework.analysis.moves import Move
    from fxframework.analysis.runs import Side

WIDTH = 100
MOST_SHARE = 10
"""Share from which it says nothing: the whole changed by a tenth of its part."""
LONGEST_VALUE = 24
"""Characters of a value of a property."""
HEAD = "head"
PLAIN = ""
StyledLine = tuple[str, str]
"""A style, which is HEAD, PLAIN or a verdict, and a line of text."""
Shown = Callable[[Mapping[str, Any] | None], str]
"""Returns a value of one side as text."""
LONGER = {
    "self": "longer by itself",
    "calls": "called more often by its caller",
    "new": "new callee",
    "gone": "gone callee",
}
"""Reasons of causes that took more time, in words."""
SHORTER = {
    "self": "shorter by itself",
    "calls": "called less often by its caller",
    "new": "new callee",
    "gone": "gone callee",
}
TWICE = "summed over threads: where one waits for another, the wait is in the time of both"
FEW = 5
"""Causes and moves of each kind that are shown unless more are asked for."""
IS_NUMERIC = {
    "verdict": False,
    "ratio": True,
    "95% interval": True,
    "before/call": True,
    "after/call": True,
    "change/run": True,
    "calls/run": True,
    "where": False,
    "name": False,
}
"""Columns of the table of calls, and which are aligned to the right."""
SPARE = ("calls/run", "95% interval", "change/run")
"""Columns that are left out on a narrow terminal, in this order."""


def lines(comparison: Any, *, top: int = 20, width: int = WIDTH) -> Iterator[str]:
    """Return the lines of the report of a comparison."""
    return (text for _, text in styled(comparison, top=top, width=width))


def styled(comparison: Any, *, top: int = 20, width: int = WIDTH) -> Iterator[StyledLine]:
    """Yield the lines of the report, each with its style: ``head``, a verdict, or nothing."""
    yield PLAIN, shortened(f"BEFORE  {_runs_of(comparison.before)}", width)
    yield PLAIN, shortened(f"AFTER   {_runs_of(comparison.after)}", width)
    yield HEAD, sums_up(comparison)
    if comparison.explained and (comparison.calls_changed or not comparison.same):
        yield from _causes(comparison, min(FEW, top), width)
    yield from _calls(comparison, top, width)
    for title, moves, shown in moved(comparison):
        most_rows = FEW if moves is comparison.waits else top
        yield from _moves(title, moves, shown, most_rows, width)


def moved(comparison: Any) -> list[tuple[str, Sequence[Move], Shown]]:
    """Return the lists of what moved: their title, and what shows a value of each."""
    return [
        ("counters: mean levels", comparison.counters, _or_dash(_level)),
        ("logs: messages of a run", comparison.logs, _or_dash(_per_run)),
        ("instants of a run", comparison.instants, _or_dash(_per_run)),
        ("properties", comparison.entries, _or_dash(_value)),
        (
            "waiting and running, by slice and state: time of a run",
            comparison.waits,
            _or_dash(_time),
        ),
    ]


def sums_up(comparison: Any) -> str:
    """Return the numbers of names of each verdict."""
    verdicts = comparison.verdicts.items()
    counts = ", ".join(f"{count:,} {verdict}" for verdict, count in verdicts)
    threshold = f"{comparison.threshold:.0%}"
    in_all = f"{comparison.change:+.1%} in all"
    if counts:
        return f"changed by {threshold} or more, beyond noise: {counts}"
    if comparison.unclear:
        return f"too few runs to tell; {in_all}"
    if comparison.calls_changed:
        return f"no name changed by {threshold} or more, beyond noise; {in_all}"
    return f"same: nothing changed by {threshold} or more, beyond noise"


def cause_text(cause: Cause) -> str:
    """Return the reason of a cause in words."""
    words = SHORTER if cause.change_ns < 0 else LONGER
    return words[cause.reason]


def _runs_of(side: Side) -> str:
    first_runs = side.runs[:2]
    names = ", ".join(printable(run.name) for run in first_runs)
    if len(side.runs) > 2:
        return f"{names}, … ({len(side.runs)} runs)"
    return names


# --- Causes --------------------------------------------------------------------------------------


def _causes(comparison: Any, most_rows: int, width: int) -> Iterator[StyledLine]:
    yield PLAIN, ""
    yield HEAD, f"what explains it: {_whole_change(comparison)}"
    rows = [["change/run", "share", "reason", "path"]]
    for cause in comparison.explained[:most_rows]:
        change = brief(cause.change_ns, sign=True)
        path = printable(" > ".join(cause.path))
        share = _percent(cause.share)
        rows.append([change, share, cause_text(cause), path])
    styles = [HEAD] + [PLAIN] * (len(rows) - 1)
    yield from _table(rows, [True, True, False, False], styles, width)
    if comparison.counts_waits_twice:
        yield PLAIN, f"  {TWICE}"


def _whole_change(comparison: Any) -> str:
    """Return the change of the time of a run, in words."""
    before, after = comparison.times
    direction = "more" if after > before else "less"
    share = f" ({comparison.change:+.1%})" if before else ""
    return f"calls of a run took {brief(abs(after - before))} {direction} in all{share}"


def _percent(share: float) -> str:
    if not math.isfinite(share) or abs(share) >= MOST_SHARE:
        return "–"
    return f"{share:.0%}"


# --- Calls ---------------------------------------------------------------------------------------


def _calls(comparison: Any, top: int, width: int) -> Iterator[StyledLine]:
    changes = [change for change in comparison.changes if change.changed]
    if comparison.unclear:
        changes = [change for change in comparison.changes if change.is_apart(comparison.threshold)]
    if not changes:
        return
    yield PLAIN, ""
    headings = list(IS_NUMERIC)
    shown_changes = changes[:top]
    rows = [headings]
    rows += [_row_of_call(change, comparison.runs) for change in shown_changes]
    numeric = list(IS_NUMERIC.values())
    styles = [HEAD]
    styles += [change.verdict for change in shown_changes]
    yield from _table(rows, numeric, styles, width)
    if len(changes) > top:
        yield PLAIN, f"  … and {amount(len(changes) - top)} more (--top N shows N)"


def _row_of_call(change: Change, runs: tuple[int, int]) -> list[str]:
    """Return the cells of all columns, in the order of ``IS_NUMERIC``."""
    ratio = "–"
    interval = "–"
    if change.ratio is not None:
        ratio = f"{change.ratio.estimate:.2f}"
        if not math.isnan(change.ratio.low):
            interval = f"{change.ratio.low:.2f}–{change.ratio.high:.2f}"
    runs_before, runs_after = runs
    name = printable(change.label)
    if change.asynchronous:
        name += " (async)"
    return [
        change.verdict,
        ratio,
        interval,
        _mean(change.before),
        _mean(change.after),
        brief(change.change_ns(runs), sign=True),
        _calls_per_run(change.before, runs_before, change.after, runs_after),
        where_text(change.where),
        name,
    ]


def _mean(measures: Measures | None) -> str:
    return "–" if measures is None else brief(measures.mean_ns)


def _calls_per_run(
    before: Measures | None, runs_before: int, after: Measures | None, runs_after: int
) -> str:
    """Return the numbers of calls of a run of both sides, or the only one."""
    texts = []
    if before is not None:
        texts.append(f"{before.count / runs_before:,.4g}")
    if after is not None:
        text_after = f"{after.count / runs_after:,.4g}"
        if text_after not in texts:
            texts.append(text_after)
    return " → ".join(texts)


def where_text(figures: Sequence[str]) -> str:
    """Return where the lengths of a name changed: the tail alone is the more remarkable."""
    if {"median", "p99"} <= set(figures):
        return "all"
    tails = [figure for figure in figures if figure != "mean"]
    return ", ".join(tails or figures)


# --- Moves ---------------------------------------------------------------------------------------


def _moves(
    title: str, moves: Sequence[Move], shown: Shown, most_rows: int, width: int
) -> Iterator[StyledLine]:
    changed = [move for move in moves if move.verdict != "same"]
    if not changed:
        return
    yield PLAIN, ""
    yield HEAD, title
    rows = [["verdict", "before", "after", "name"]]
    styles = [HEAD]
    for move in changed[:most_rows]:
        before = shown(move.before)
        after = shown(move.after)
        rows.append([move.verdict, before, after, printable(move.label)])
        styles.append(move.verdict)
    yield from _table(rows, [False, True, True, False], styles, width)
    if len(changed) > most_rows:
        yield PLAIN, f"  … and {amount(len(changed) - most_rows)} more"


def _or_dash(shown: Callable[[Mapping[str, Any]], str]) -> Shown:
    """Return what shows a dash for a side without a value."""
    return lambda values: "–" if values is None else shown(values)


def _level(values: Mapping[str, Any]) -> str:
    return _number(values["level"])


def _per_run(values: Mapping[str, Any]) -> str:
    return _number(values["per_run"])


def _value(values: Mapping[str, Any]) -> str:
    value = values["value"]
    if values["mean"] is not None and isinstance(value, int | float):
        return _number(values["mean"])
    return shortened(printable(str(value)), LONGEST_VALUE)


def _time(values: Mapping[str, Any]) -> str:
    return brief(values["ns"])


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:,.6g}"


# --- Tables --------------------------------------------------------------------------------------


def _table(
    rows: Sequence[Sequence[str]], numeric: Sequence[bool], styles: Sequence[str], width: int
) -> Iterator[StyledLine]:
    """Yield rows in columns, each with its style; the last column is the name."""
    lines_of_rows = columns(rows, numeric, width - 2, name=len(numeric) - 1, spare=SPARE)
    for style, line in zip(styles, lines_of_rows, strict=True):
        yield style, f"  {line}"
