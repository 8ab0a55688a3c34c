"""Oddities: of many captures, which are unlike the rest, and in what.

Figures of each capture are compared with those of all: a figure is odd if it is far from the
median, in units of the median absolute deviation. docs/odd.md has the formula.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import attrs
import numpy as np

from fxframework.analysis.runs import Reader, Side
from fxframework.analysis.signals import counters_of, templates_of
from fxframework.errors import UsageError
from fxframework.kernels.arrays import F64
from fxframework.kit.shown import amount, brief
from fxframework.model.capture import Capture

LEAST = 4
"""The fewest captures of which one can be odd."""
NEEDED = f"to be odd needs at least {LEAST} to compare with"
KINDS = {
    "rows": "rows of {}",
    "findings": "findings {}",
    "calls": "calls of {}",
    "time": "time in {}",
    "p99": "p99 of {}",
    "logs": "messages {}",
    "counter": "level of {}",
}
"""Kinds of figures, and their words in messages. Reasons are in this order."""
COUNTS = frozenset({"rows", "findings", "calls", "logs"})
DURATIONS = frozenset({"time", "p99"})
UNKNOWN_IF_MISSING = frozenset({"counter", "p99"})
"""Kinds of figures that a capture may lack; of another kind it has 0."""
NORMAL = 1.4826
"""Standard deviation of normal values for a median absolute deviation of 1."""
FLOOR = 0.05
"""Least relative deviation that counts as usual."""
FAR = 6.0
"""Least distance of an odd figure."""
BLOCK = 1 << 22
"""Number of values that are compared at once."""

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
        if self.kind in DURATIONS:
            value = brief(self.value)
            usual = brief(self.usual)
        else:
            value = f"{self.value:,.6g}"
            usual = f"{self.usual:,.6g}"
        return f"{KINDS[self.kind].format(self.name)}: {value}, usually {usual}"


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
    figures: dict[Figure, float] = {}
    for name, count in rows.items():
        if count:
            figures["rows", name] = count
    for code, count in capture.diagnostics.counts.items():
        figures["findings", code] = count
    if rows.get("slices"):
        figures |= _figures_of_calls(capture)
    if rows.get("logs"):
        for key, count in templates_of(capture).items():
            figures["logs", " ".join(filter(None, key))] = count
    if rows.get("counters"):
        for key, signal in counters_of(capture).items():
            figures["counter", " ".join(filter(None, key))] = signal.level
    return figures


def _figures_of_calls(capture: Capture) -> dict[Figure, float]:
    """Return the count, the time and the p99 of the calls of each name."""
    reader = Reader.of("name")
    side = Side(reader.names)
    reader.read_calls(capture, side)
    columns = side.runs[0].figures
    if columns is None:
        return {}
    figures: dict[Figure, float] = {}
    for index, number in enumerate(columns.keys.tolist()):
        name = reader.names.name(number)
        figures["calls", name] = int(columns.count[index])
        figures["time", name] = int(columns.total[index])
        figures["p99", name] = float(columns.p99[index])
    return figures


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
    notes = []
    for name, group in groups.items():
        if len(group) < LEAST:
            count_text = amount(len(group), "capture")
            notes.append(f"{count_text} of format {name}: {NEEDED}")
    if len(notes) == len(groups):
        raise UsageError(
            "; ".join(notes) or f"0 captures: {NEEDED}",
            remedy="name more captures, or compare two with `fxf compare`",
        )
    return [group for group in groups.values() if len(group) >= LEAST], notes


def oddities(captures: Mapping[str, Mapping[Figure, float]]) -> list[Odd]:
    """Return the captures that are unlike the rest, the most unlike first.

    A figure that a capture lacks is 0, except a level or a p99, which is unknown.
    """
    # In order of appearance, which a set would not keep.
    first_places = dict.fromkeys(itertools.chain.from_iterable(captures.values()))
    all_figures = list(first_places)
    # Of many normal values the greatest is far, too: a chance of 1% in all is left.
    tests = max(len(captures) * len(all_figures), 1)
    far_by_chance = math.sqrt(2 * math.log(tests / 0.01))
    far = max(FAR, far_by_chance)
    reasons_of_row: dict[int, list[Reason]] = {}
    figures_per_block = max(BLOCK // len(captures), 1)
    for first in range(0, len(all_figures), figures_per_block):
        block = all_figures[first : first + figures_per_block]
        values = _matrix(captures, block)
        distances, usual = _distances(values, block)
        for row, column in np.argwhere(np.abs(distances) >= far).tolist():
            kind, name = block[column]
            reason = Reason(
                kind=kind,
                name=name,
                value=float(values[row, column]),
                usual=float(usual[column]),
                distance=float(distances[row, column]),
            )
            reasons_of_row.setdefault(row, []).append(reason)
    names = list(captures)
    odd = [_odd(names[row], reasons) for row, reasons in reasons_of_row.items()]
    return sorted(odd, key=lambda capture: (-capture.score, capture.capture))


def _odd(capture: str, reasons: list[Reason]) -> Odd:
    """Return a capture with its reasons, one for each name."""
    order_of_kind = list(KINDS)

    def order(reason: Reason) -> tuple[float, int, str]:
        return -abs(reason.distance), order_of_kind.index(reason.kind), reason.name

    reasons.sort(key=order)
    reason_of_name: dict[str, Reason] = {}
    for reason in reasons:
        reason_of_name.setdefault(reason.name, reason)
    score = abs(reasons[0].distance)
    return Odd(capture, score, list(reason_of_name.values()))


def _matrix(captures: Mapping[str, Mapping[Figure, float]], block: Sequence[Figure]) -> F64:
    """Return the values of some figures, shape (captures, figures)."""
    column_of = {figure: column for column, figure in enumerate(block)}
    value_if_missing = np.zeros(len(block))
    for place, (kind, _) in enumerate(block):
        if kind in UNKNOWN_IF_MISSING:
            value_if_missing[place] = math.nan
    values = np.tile(value_if_missing, (len(captures), 1))
    for row, figures in enumerate(captures.values()):
        for figure, value in figures.items():
            column = column_of.get(figure)
            if column is not None:
                values[row, column] = value
    return values


def _distances(values: F64, block: Sequence[Figure]) -> tuple[F64, F64]:
    """Return the distance of each value from the usual one, and the usual ones.

    Counts are compared by their roots, times by their logarithms, and levels of counters, which may
    be negative, as they are.
    """
    is_level = np.array([kind == "counter" for kind, _ in block])
    is_count = np.array([kind in COUNTS for kind, _ in block])
    with np.errstate(all="ignore"):
        positive = np.maximum(values, 0.0)
        logarithms = np.log1p(positive)
        scaled = np.where(is_count, np.sqrt(positive), logarithms)
        scaled = np.where(is_level, values, scaled)
        is_known = ~np.isnan(scaled)
        has_enough = is_known.sum(axis=0) >= LEAST
        comparable = np.where(has_enough, scaled, 0.0)
        middle = np.nanmedian(comparable, axis=0)
        from_middle = comparable - middle
        deviation = NORMAL * np.nanmedian(np.abs(from_middle), axis=0)
        usual = np.nanmedian(np.where(has_enough, values, 0.0), axis=0)
        # The logarithm of a time is already relative.
        least_of_levels = FLOOR * np.abs(middle)
        least_deviation = np.where(is_level, least_of_levels, FLOOR)
        # Roots of the numbers of independent occurrences have a standard deviation of 1/2; a
        # root differs by half as much as its number, relatively.
        least_of_counts = np.maximum(FLOOR * middle / 2, 0.5)
        least_deviation = np.where(is_count, least_of_counts, least_deviation)
        least_deviation = np.where(least_deviation > 0, least_deviation, 1.0)
        deviation = np.maximum(deviation, least_deviation)
        is_compared = is_known & has_enough
        distances = np.where(is_compared, from_middle / deviation, 0.0)
    return np.nan_to_num(distances), usual
