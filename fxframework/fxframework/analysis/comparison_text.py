"""The report of a comparison as lines of text, with numbers before names."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fxframework.kit.shown import aligned, amount, brief, printable, shortened

if TYPE_CHECKING:
    from fxframework.analysis.changes import Change
    from fxframework.analysis.explanation import Cause
    from fxframework.analysis.moves import Move
    from fxframework.analysis.runs import Side

__all__ = ["cause_text", "lines", "moved", "styled", "sums_up", "where_text"]

WIDTH = 100
MOST_SHARE = 10
"""Share from which it says nothing: the whole changed by a tenth of its part."""
LEAST = 24
"""Least width of a name."""
HEAD, PLAIN = "head", ""
Shown = Callable[[Mapping[str, Any] | None], str]
"""Returns a value of one side as text."""
WORDS = {"self": ("longer by itself", "shorter by itself"),
         "calls": ("called more often by its caller", "called less often by its caller"),
         "new": ("new callee", "new callee"), "gone": ("gone callee", "gone callee")}  # fmt: skip
TWICE = "summed over threads: where one waits for another, the wait is in the time of both"
FEW = 5
"""Causes and moves of each kind that are shown unless more are asked for."""
HEADINGS = ("verdict", "ratio", "95% interval", "before/call", "after/call", "change/run",
            "calls/run", "where", "name")  # fmt: skip
SPARE = ("calls/run", "95% interval", "change/run")
"""Columns that are left out on a narrow terminal, in this order."""


def lines(found: Any, *, top: int = 20, width: int = WIDTH) -> Iterator[str]:
    """Return the lines of the report of a ``Comparison``."""
    return (text for _, text in styled(found, top=top, width=width))


def styled(found: Any, *, top: int = 20, width: int = WIDTH) -> Iterator[tuple[str, str]]:
    """Yield the lines of the report, each with its style: ``head``, a verdict, or nothing."""
    for word, side in (("BEFORE", found.before), ("AFTER ", found.after)):
        yield PLAIN, shortened(f"{word}  {_side(side)}", width)
    yield HEAD, sums_up(found)
    if found.explained and (found.calls_changed or not found.same):
        yield PLAIN, ""
        yield HEAD, f"what explains it: {_whole(found)}"
        yield from _table(
            (
                ["change/run", "share", "reason", "path"],
                *(
                    [brief(one.change_ns, sign=True), _percent(one.share), cause_text(one),
                     printable(" > ".join(one.path))]
                    for one in found.explained[: min(FEW, top)]
                ),
            ),
            [True, True, False, False],
            width,
        )  # fmt: skip
        if found.counts_waits_twice:
            yield PLAIN, f"  {TWICE}"
    yield from _calls(found, top, width)
    for title, moves, shown in moved(found):
        yield from _moves(title, moves, shown, FEW if moves is found.waits else top, width)


def moved(found: Any) -> list[tuple[str, Sequence[Move], Shown]]:
    """Return the lists of what moved: their title, and what shows a value of each."""
    return [
        ("counters: mean levels", found.counters, _level),
        ("logs: messages of a run", found.logs, _often),
        ("instants of a run", found.instants, _often),
        ("properties", found.entries, _value),
        ("waiting and running, by slice and state: time of a run", found.waits, _spent),
    ]


def sums_up(found: Any) -> str:
    """Return the numbers of names of each verdict."""
    counts = ", ".join(f"{count:,} {verdict}" for verdict, count in found.verdicts.items())
    threshold = f"{found.threshold:.0%}"
    if counts:
        return f"changed by {threshold} or more, beyond noise: {counts}"
    if found.unclear:
        return f"too few runs to tell; {found.change:+.1%} in all"
    if found.calls_changed:
        return f"no name changed by {threshold} or more, beyond noise; {found.change:+.1%} in all"
    return f"same: nothing changed by {threshold} or more, beyond noise"


def cause_text(one: Cause) -> str:
    """Return the reason of a cause in words."""
    return WORDS[one.reason][one.change_ns < 0]


def _percent(share: float) -> str:
    return f"{share:.0%}" if math.isfinite(share) and abs(share) < MOST_SHARE else "–"


def _side(side: Side) -> str:
    names = ", ".join(printable(run.name) for run in side.runs[:2])
    more = f", … ({len(side.runs)} runs)" if len(side.runs) > 2 else ""
    return names + more


def _whole(found: Any) -> str:
    """Return the change of the time of a run, in words."""
    totals = found.times
    change = totals[1] - totals[0]
    share = f" ({found.change:+.1%})" if totals[0] else ""
    return (
        f"calls of a run took {brief(abs(change))} {'more' if change > 0 else 'less'} in all{share}"
    )


def _calls(found: Any, top: int, width: int) -> Iterator[tuple[str, str]]:
    changed = [one for one in found.changes if one.changed]
    if found.unclear:
        changed = [one for one in found.changes if one.is_apart(found.threshold)]
    if not changed:
        return
    yield PLAIN, ""
    rows = [list(HEADINGS), *(_row(one, found.runs) for one in changed[:top])]
    numeric = [False, True, True, True, True, True, True, False, False]
    for heading in SPARE:
        if _used(rows) + LEAST <= width:
            break
        at = rows[0].index(heading)
        rows = [[*row[:at], *row[at + 1 :]] for row in rows]
        del numeric[at]
    styles = [HEAD, *(one.verdict for one in changed[:top])]
    for style, (_, line) in zip(styles, _table(rows, numeric, width), strict=True):
        yield style, line
    if len(changed) > top:
        yield PLAIN, f"  … and {amount(len(changed) - top)} more (--top N shows N)"


def _row(one: Change, runs: tuple[int, int]) -> list[str]:
    sides = one.before, one.after
    means = ["–" if each is None else brief(each.mean_ns) for each in sides]
    counts = [
        "–" if each is None else f"{each.count / number:,.4g}"
        for each, number in zip(sides, runs, strict=True)
    ]
    ratio = interval = "–"
    if one.ratio is not None:
        ratio = f"{one.ratio.estimate:.2f}"
        if one.ratio.low == one.ratio.low:
            interval = f"{one.ratio.low:.2f}–{one.ratio.high:.2f}"
    return [
        one.verdict, ratio, interval, *means, brief(one.change_ns(runs), sign=True),
        _both(counts), where_text(one.where),
        printable(one.label) + (" (async)" if one.asynchronous else ""),
    ]  # fmt: skip


def _used(rows: Sequence[Sequence[str]]) -> int:
    """Return the width of all columns but the last one."""
    return 2 + sum(max(map(len, column)) + 2 for column in list(zip(*rows, strict=True))[:-1])


def _both(counts: Sequence[str]) -> str:
    """Return the numbers of calls of a run of both sides, or the only one."""
    known = [each for each in counts if each != "–"]
    return " → ".join(known if known[:1] != known[1:] else known[:1])


def where_text(figures: Sequence[str]) -> str:
    """Return where the lengths of a name changed: the tail alone is the more remarkable."""
    if {"median", "p99"} <= set(figures):
        return "all"
    tails = [figure for figure in figures if figure != "mean"]
    return ", ".join(tails or figures)


def _table(
    rows: Sequence[Sequence[str]], numeric: Sequence[bool], width: int
) -> Iterator[tuple[str, str]]:
    """Yield rows in columns; the last column is cut in its middle."""
    room = max(width - _used(rows), LEAST)
    cut = [[*row[:-1], shortened(row[-1], room)] for row in rows]
    for at, line in enumerate(aligned(cut, numeric)):
        yield (PLAIN if at else HEAD), f"  {line}"


def _moves(
    title: str,
    moves: Sequence[Move],
    shown: Shown,
    top: int,
    width: int,
) -> Iterator[tuple[str, str]]:
    changed = [one for one in moves if one.verdict != "same"]
    if not changed:
        return
    yield PLAIN, ""
    yield HEAD, title
    rows = [
        [one.verdict, shown(one.before), shown(one.after), printable(one.label)]
        for one in changed[:top]
    ]
    head = ["verdict", "before", "after", "name"]
    styles = [one.verdict for one in changed[:top]]
    for at, (_, line) in enumerate(_table((head, *rows), [False, True, True, False], width)):
        yield (styles[at - 1] if at else HEAD), line
    if len(changed) > top:
        yield PLAIN, f"  … and {amount(len(changed) - top)} more"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:,.6g}"


def _level(shown: Mapping[str, Any] | None) -> str:
    return "–" if shown is None else _number(shown["level"])


def _often(shown: Mapping[str, Any] | None) -> str:
    return "–" if shown is None else _number(shown["per_run"])


def _value(shown: Mapping[str, Any] | None) -> str:
    if shown is None:
        return "–"
    value = shown["value"]
    if shown["mean"] is not None and isinstance(value, int | float):
        return _number(shown["mean"])
    return shortened(printable(str(value)), LEAST)


def _spent(shown: Mapping[str, Any] | None) -> str:
    return "–" if shown is None else brief(shown["ns"])
