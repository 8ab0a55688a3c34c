"""Runs of forty names with known changes, as traces of Chrome's JSON in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from fxframework.analysis.comparison import Comparison, compared
from fxframework.analysis.runs import Figures, Reader, Run, Side

NAMES, CALLS = 40, 400
WANTED = {
    "f00": "slower", "f01": "faster", "f02": "gone", "f03": "new", "f04": "more", "f05": "slower",
}  # fmt: skip
"""What changed: 1.5 times as long, 0.7 times, gone, new, twice as often, a longer tail."""
TRUE = {"f00": 1.5, "f01": 0.7, "f05": 1.66}
Lengths = Mapping[str, NDArray[np.float64]]


def made(
    rng: np.random.Generator, sigma: float, *, runs: int = 1, mood: float = 0.0, after: bool
) -> list[Lengths]:
    """Return runs, each with the lengths of its calls by name."""
    found = []
    middles = np.random.default_rng(1).uniform(7, 12, NAMES)
    for _ in range(runs):
        pace = 1 + rng.uniform(-mood, mood)
        run = {}
        for number in range(NAMES):
            name = f"f{number:02}"
            if name == ("f02" if after else "f03"):
                continue
            lengths = rng.lognormal(middles[number], sigma, CALLS * (1 + (after and number == 4)))
            if after:
                lengths *= {"f00": 1.5, "f01": 0.7}.get(name, 1.0)
                if name == "f05":
                    lengths[rng.random(CALLS) < 0.06] *= 12
            run[name] = lengths * pace
        found.append(run)
    return found


def run_of(reader: Reader, lengths: Lengths) -> Run:
    rows, kept = [], []
    for name, values in lengths.items():
        ordered = np.sort(np.round(values))
        count = ordered.size
        if not count:
            continue
        ranks = [ordered[min(int(count * share), count - 1)] for share in (0.5, 0.9, 0.99)]
        mean = ordered.mean()
        noise = ordered.var(ddof=1) / count / mean**2 if count > 1 and mean else np.nan
        number = reader.names.number(name.encode())
        rows.append((number, count, ordered.sum(), ordered.sum(), mean, *ranks, noise))
        kept.append(ordered)
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    whole = [column.astype(np.int64) for column in columns[:4]]
    return Run("run", "trace", Figures(*whole, *columns[4:]), kept, None, None, None, None, None,
               None, timed=True)  # fmt: skip


def comparison(before: Sequence[Lengths], after: Sequence[Lengths]) -> Comparison:
    reader = Reader.of("name")
    sides = Side(reader.names), Side(reader.names)
    for side, runs in zip(sides, (before, after), strict=True):
        side.runs += [run_of(reader, lengths) for lengths in runs]
    return compared(reader, *sides)
