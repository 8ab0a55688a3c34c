"""What many workers would do to `fxf batch`, simulated from what one core was measured to do.

``python docs/scale.py`` prints the table of docs/batch.md. Change ``MEASURED`` to the figures of
your machine, which the page says how to measure, and ``ASSUMED`` to those of your store.
"""

# ruff: noqa: INP001, T201 (a script beside the pages, which prints a table)

from __future__ import annotations

import heapq
from typing import NamedTuple


class Kind(NamedTuple):
    """A kind of capture."""

    name: str
    megabytes: float
    seconds: float
    """CPU time of its conversion on one core."""
    task: int
    """Captures in a task."""


class Store(NamedTuple):
    """Where captures are read and the dataset is written."""

    name: str
    latency: float
    """Seconds that a request takes."""
    requests: float
    """Requests a second under one prefix; each table is a prefix, and `_done` is one."""
    megabytes: float
    """A second, for each worker."""


MEASURED = (
    Kind("7 kB", 0.007, 0.0157, 16),
    Kind("24 MB", 24, 0.24, 2),
)
SCHEDULER = 0.00073
"""Seconds of the Dask scheduler and client for a task, measured."""
ASSUMED = (
    Store("shared disk", 0.0005, 50_000, 1000),
    Store("object store", 0.03, 3_500, 100),
)
WORKERS = (1, 2, 16, 100, 1000)
CAPTURES = 200_000
"""Captures that are simulated; the rate does not depend on it."""


def parts(kind: Kind, store: Store) -> dict[str, float]:
    """Seconds of a worker for a capture, by what it waits for."""
    return {
        "the workers' CPUs": kind.seconds,
        "the workers' networks": kind.megabytes / store.megabytes,
        # To ask, to fetch, its Parquet files at once, its line in _done.
        "the store's latency": 4 * store.latency,
    }


def rate(kind: Kind, store: Store, workers: int) -> float:
    """Captures a second: workers fetch, convert and write tasks that one scheduler hands out.

    The scheduler serves one task after the other, and so does the busiest prefix of the store,
    which each capture writes one file of.
    """
    busy = sum(parts(kind, store).values())
    free = [0.0] * workers
    scheduler = prefix = 0.0
    tasks = max(CAPTURES // kind.task // (1 if kind.megabytes < 1 else 10), 20 * workers)
    for _ in range(tasks):
        scheduler = max(scheduler, free[0]) + SCHEDULER if workers > 1 else free[0]
        prefix = max(prefix, scheduler) + kind.task / store.requests
        end = max(scheduler + kind.task * busy, prefix)
        heapq.heapreplace(free, end)
    return tasks * kind.task / max(free)


def limit(kind: Kind, store: Store, workers: int) -> str:
    """What bounds the rate: what would bound it most if the others were free."""
    taken = parts(kind, store)
    bounds = {
        max(taken, key=taken.__getitem__): workers / sum(taken.values()),
        "the scheduler": kind.task / SCHEDULER if workers > 1 else float("inf"),
        "requests to one prefix": store.requests,
    }
    return min(bounds, key=bounds.__getitem__)


def main() -> None:
    """Print the table."""
    print(
        "| captures | dataset on | workers | captures/s | MB/s | time for a million | limited by |"
    )
    print("| --- | --- | ---: | ---: | ---: | ---: | --- |")
    for kind in MEASURED:
        for store in ASSUMED:
            for workers in WORKERS:
                pace = rate(kind, store, workers)
                hours = 1e6 / pace / 3600
                print(
                    f"| {kind.name} | {store.name} | {workers:,} | {pace:,.0f} | "
                    f"{pace * kind.megabytes:,.0f} | {hours:,.1f} h | "
                    f"{limit(kind, store, workers)} |"
                )


if __name__ == "__main__":
    main()
