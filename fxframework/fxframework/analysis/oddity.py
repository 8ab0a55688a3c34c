"""Oddities: of many captures, which are unlike the rest, and in what.

Figures of each capture are compared with those of all: a figure is odd if it is far from the
median, in units of the median absolute deviation. docs/odd.md has the formula.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from fxframework.analysis.runs import Reader, Side
from fxframework.analysis.signals import counters_of, templates_of
from fxframework.errors import UsageError
from fxframework.kit.shown import amount, brief
from fxframework.model.capture import Capture

__all__ = ["LEAST", "Figure", "Odd", "Reason", "by_format", "figures_of", "oddities"]

LEAST = 4
"""The fewest captures of which one can be odd."""
KINDS = ("rows", "findings", "calls", "time", "p99", "logs", "counter")
DURATIONS = frozenset({"time", "p99"})
NORMAL = 1.4826
"""Standard deviation of normal values for a median absolute deviation of 1."""
FLOOR = 0.05
"""Least relative deviation that counts as usual."""
FAR = 6.0
"""Least distance of an odd figure."""
BLOCK = 1 << 22

F64 = NDArray[np.float64]
Figure = tuple[str, str]
"""A kind (one of KINDS) and a name."""


@attrs.frozen
class Reason:
    """A figure of a capture that is unlike that of the others."""

    kind: str
    name: str
    value: float
    usual: float
    """The median of all captures."""
    distance: float
    """In robust standard deviations; negative if it is less than usual."""

    def __str__(self) -> str:
        """Return the reason in words."""
        texts = [
            brief(each) if self.kind in DURATIONS else f"{each:,.6g}"
            for each in (self.value, self.usual)
        ]
        what = {
            "rows": "rows of {}", "findings": "findings {}", "calls": "calls of {}",
            "time": "time in {}", "p99": "p99 of {}", "logs": "messages {}",
            "counter": "level of {}",
        }[self.kind].format(self.name)  # fmt: skip
        return f"{what}: {texts[0]}, usually {texts[1]}"


@attrs.frozen
class Odd:
    """A capture that is unlike the others."""

    capture: str
    score: float
    """The greatest distance of its figures."""
    reasons: Sequence[Reason]
    """The most distant figure of each name, the greatest first."""


def figures_of(capture: Capture) -> dict[Figure, float]:
    """Return the figures of a capture: rows, findings, calls by name, messages, counters."""
    capture.scan()
    rows = capture.row_counts()
    found: dict[Figure, float] = {("rows", name): count for name, count in rows.items() if count}
    found |= {("findings", code): count for code, count in capture.diagnostics.counts.items()}
    if rows.get("slices"):
        reader = Reader.of("name")
        side = Side(reader.names)
        reader.read_calls(capture, side)
        figures = side.runs[0].figures
        if figures is not None:
            columns = figures.keys, figures.count, figures.total, figures.p99
            for key, count, total, p99 in zip(*(each.tolist() for each in columns), strict=True):
                name = reader.names.name(key)
                found["calls", name] = count
                found["time", name] = total
                found["p99", name] = p99
    if rows.get("logs"):
        for key, count in templates_of(capture).items():
            found["logs", " ".join(filter(None, key))] = count
    if rows.get("counters"):
        for key, signal in counters_of(capture).items():
            found["counter", " ".join(filter(None, key))] = signal.level
    return found


def by_format(
    captures: Mapping[str, Mapping[Figure, float]], formats: Mapping[str, str]
) -> tuple[list[Mapping[str, Mapping[Figure, float]]], list[str]]:
    """Divide captures by their format: a log is not compared with a trace.

    ``formats`` are those of the captures. Returns the captures of each format, and notes about
    those that are too few to compare. Raises UsageError if those of every format are too few.
    """
    groups: dict[str, dict[str, Mapping[Figure, float]]] = {}
    for name, figures in captures.items():
        groups.setdefault(formats[name], {})[name] = figures
    few = [
        f"{amount(len(group), 'capture')} of format {name}: to be odd needs at least {LEAST} to "
        "compare with"
        for name, group in groups.items()
        if len(group) < LEAST
    ]
    if len(few) == len(groups):
        raise UsageError(
            "; ".join(few) or f"0 captures: to be odd needs at least {LEAST} to compare with",
            remedy="name more captures, or compare two with `fxf compare`",
        )
    return [group for group in groups.values() if len(group) >= LEAST], few


def oddities(captures: Mapping[str, Mapping[Figure, float]]) -> list[Odd]:
    """Return the captures that are unlike the rest, the most unlike first.

    A figure that a capture lacks is 0, except a level or a p99, which is unknown.
    """
    numbers: dict[Figure, int] = {}
    for figures in captures.values():
        for figure in figures:
            numbers.setdefault(figure, len(numbers))
    names, keys = list(captures), list(numbers)
    tests = max(len(names) * len(keys), 1)
    far = max(FAR, math.sqrt(2 * math.log(tests / 0.01)))
    found: dict[int, list[Reason]] = {}
    step = max(BLOCK // len(names), 1)
    for first in range(0, len(keys), step):
        some = keys[first : first + step]
        values = _matrix(captures, some, {key: at for at, key in enumerate(some)})
        distance, usual = _distances(values, some)
        for row, column in zip(*np.nonzero(np.abs(distance) >= far), strict=True):
            kind, name = some[int(column)]
            at = int(row), int(column)
            reason = Reason(kind, name, float(values[at]), float(usual[at[1]]), float(distance[at]))
            found.setdefault(int(row), []).append(reason)
    made = []
    for row, reasons in found.items():
        reasons.sort(key=lambda one: (-abs(one.distance), KINDS.index(one.kind), one.name))
        shown: dict[str, Reason] = {}
        for one in reasons:
            shown.setdefault(one.name, one)
        made.append(Odd(names[row], abs(reasons[0].distance), list(shown.values())))
    return sorted(made, key=lambda one: (-one.score, one.capture))


def _matrix(
    captures: Mapping[str, Mapping[Figure, float]], some: Sequence[Figure], at: Mapping[Figure, int]
) -> F64:
    """Return the values of some figures, shape (captures, figures)."""
    empty = [math.nan if kind in {"counter", "p99"} else 0.0 for kind, _ in some]
    values = np.tile(np.array(empty), (len(captures), 1))
    for row, figures in enumerate(captures.values()):
        for figure, value in figures.items():
            column = at.get(figure)
            if column is not None:
                values[row, column] = value
    return values


def _distances(values: F64, some: Sequence[Figure]) -> tuple[F64, F64]:
    """Return the distance of each value from the usual one, and the usual ones.

    Counts are compared by their roots, times by their logarithms, and levels of counters, which may
    be negative, as they are.
    """
    level = np.array([kind == "counter" for kind, _ in some])
    counted = np.array([kind in {"rows", "findings", "calls", "logs"} for kind, _ in some])
    with np.errstate(all="ignore"):
        positive = np.maximum(values, 0.0)
        scaled = np.where(counted, np.sqrt(positive), np.log1p(positive))
        scaled = np.where(level, values, scaled)
        known = ~np.isnan(scaled)
        enough = known.sum(axis=0) >= LEAST
        filled = np.where(enough, scaled, 0.0)
        middle = np.nanmedian(filled, axis=0)
        spread = NORMAL * np.nanmedian(np.abs(filled - middle), axis=0)
        usual = np.nanmedian(np.where(enough, values, 0.0), axis=0)
        least = np.where(level, FLOOR * np.abs(middle), FLOOR)
        # Roots of the numbers of independent occurrences have a standard deviation of 1/2.
        least = np.where(counted, np.maximum(FLOOR * middle / 2, 0.5), least)
        spread = np.maximum(spread, np.where(least > 0, least, 1.0))
        distance = np.where(known & enough, (filled - middle) / spread, 0.0)
    return np.nan_to_num(distance), usual
