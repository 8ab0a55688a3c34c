"""Growth for ``fxf bench``: how the CPU time of each stage of reading grows with file size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs

from fxframework.cli.bench_stages import READING, processor_seconds, samples_of
from fxframework.cli.session import Session
from fxframework.io.pending import scratch_folder

__all__ = ["Growth", "bench_growth", "fitted_exponent", "show_growth"]

PATIENCE = 10.0
"""Sizes for which a stage is expected to take more seconds than this are skipped."""


@attrs.frozen
class Growth:
    """CPU seconds of a stage by file size."""

    format: str
    stage: str
    sizes: tuple[int, ...]
    """File sizes in bytes."""
    seconds: tuple[float, ...]
    exponent: float
    """Exponent of the best-fitting power of the size; 1 means proportional."""


def fitted_exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """Return the slope of the least-squares line through the logarithms."""
    import numpy as np

    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def bench_growth(session: Session, *, sizes: Sequence[int], runs: int) -> list[Growth]:
    """Measure every format, or the selected one, at these sizes (megabytes)."""
    taken: dict[tuple[str, str], dict[int, float]] = {}
    with scratch_folder("bench") as folder:
        for size in sizes:
            for format, path in samples_of(session, folder, size):
                nbytes = Path(path).stat().st_size
                for stage in READING:
                    before = taken.setdefault((format, stage), {})
                    if _expected(before, nbytes) > PATIENCE:
                        continue
                    with session.screen.working(f"measuring {format}, {size} MB, {stage}"):
                        before[nbytes] = processor_seconds(session.host, path, format, stage, runs)
                Path(path).unlink()
    return [
        Growth(format, stage, tuple(by_size), tuple(by_size.values()),
               fitted_exponent(list(by_size), list(by_size.values())))
        for (format, stage), by_size in taken.items() if len(by_size) > 1
    ]  # fmt: skip


def _expected(before: Mapping[int, float], nbytes: int) -> float:
    """Estimate the seconds for a size in proportion to the largest measured one."""
    if not before:
        return 0.0
    size = max(before)
    return nbytes / size * before[size]


def show_growth(session: Session, figures: list[Growth]) -> None:
    """Print the figures as a table."""
    count = max((len(one.sizes) for one in figures), default=0)
    rows = [("FORMAT", "STAGE", *("SIZE, TIME" for _ in range(count)), "EXPONENT")]
    rows += [
        (
            one.format,
            one.stage,
            *(
                f"{size / 1e6:,.1f} MB, {seconds:,.3f} s"
                for size, seconds in zip(one.sizes, one.seconds, strict=True)
            ),
            *[""] * (count - len(one.sizes)),
            f"{one.exponent:.2f}",
        )
        for one in figures
    ]
    right = [False, False, *[True] * (len(rows[0]) - 2)]
    session.screen.table(rows, right)
