"""Growth for ``fxf bench``: how the time of each stage of reading grows with the file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import attrs

from fxframework.cli.bench_stages import READING, read_stage, samples_of
from fxframework.cli.session import Session
from fxframework.cli.text import aligned
from fxframework.io.pending import scratch_folder

__all__ = ["Growth", "bench_growth", "fitted_exponent", "show_growth"]


@attrs.frozen
class Growth:
    """Seconds of one stage by the size of the file."""

    format: str
    stage: str
    sizes: tuple[int, ...]
    """Bytes."""
    seconds: tuple[float, ...]
    exponent: float
    """Of the size, in the power that fits best: 1 is in proportion."""


def fitted_exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """The slope of the line that fits the logarithms best."""
    import numpy as np

    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def bench_growth(session: Session, *, sizes: Sequence[int], runs: int) -> list[Growth]:
    """Measure every format, or the one that was asked for, at these sizes (megabytes)."""
    taken: dict[tuple[str, str], dict[int, float]] = {}
    with scratch_folder("bench") as folder:
        for size in sizes:
            for format, path in samples_of(session, folder, size):
                nbytes = Path(path).stat().st_size
                for stage in READING:
                    with session.screen.working(f"measuring {format}, {size} MB, {stage}"):
                        seconds = read_stage(session.host, path, format, stage, runs)
                    taken.setdefault((format, stage), {})[nbytes] = seconds
                Path(path).unlink()
    return [
        Growth(format, stage, tuple(by_size), tuple(by_size.values()),
               fitted_exponent(list(by_size), list(by_size.values())))
        for (format, stage), by_size in taken.items()
    ]  # fmt: skip


def show_growth(session: Session, figures: list[Growth]) -> None:
    """Print the figures as a table."""
    longest = max(figures, key=lambda one: len(one.sizes), default=None)
    sizes = () if longest is None else longest.sizes
    rows = [("FORMAT", "STAGE", *(f"{size / 1e6:,.0f} MB" for size in sizes), "EXPONENT")]
    rows += [
        (one.format, one.stage, *(f"{each:,.3f} s" for each in one.seconds), f"{one.exponent:.2f}")
        for one in figures
    ]
    right = [False, False, *[True] * (len(rows[0]) - 2)]
    for at, line in enumerate(aligned(rows, right)):
        session.screen.print(line if at else session.screen.paint(line, bold=True))
