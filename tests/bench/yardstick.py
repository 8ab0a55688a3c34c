"""Yardsticks: the least time of some rounds, and what copying the same bytes takes."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import fxframework

from .measures import touch

MEGABYTES = int(os.environ.get("FXF_BENCH_MEGABYTES", "160"))
"""Size of the files that are read."""
ROUNDS = 3

Say = Callable[[str], None]


def least(run: Callable[[], Any], rounds: int = ROUNDS) -> float:
    """The least seconds of some rounds, after one that is not counted."""
    run()
    times = []
    for _ in range(rounds):
        gc.collect()
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return min(times)


def copied(nbytes: int) -> float:
    """Seconds that copying so many bytes takes, into memory that is there already."""
    data, room = np.ones(nbytes, np.uint8), np.zeros(nbytes, np.uint8)
    return least(lambda: np.copyto(room, data), 5)


def decode(path: Path, format: str, tables: tuple[str, ...]) -> int:
    """Make every column of the tables; gives the rows of all of them."""
    with fxframework.open(path, format=format) as capture:
        return touch(capture, tables)
