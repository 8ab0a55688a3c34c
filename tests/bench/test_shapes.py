"""How fast traces of awkward shapes become tables: CPU time against a copy, and memory beside it.

Rounds of copying and of decoding alternate, and the least of each counts. Never a failure on time.
``FXF_BENCH_MEGABYTES`` is the size of each, 40 where it is not set.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fx_trace.shapes import shapes
from fxframework.cli.measures import TABLES, peak_memory
from fxframework.host import Host

from .yardstick import Say, decode

MEGABYTES = int(os.environ.get("FXF_BENCH_MEGABYTES", "40"))
ROUNDS = 5


def cpu(run: Callable[[], object]) -> float:
    """Seconds of the processor that a call takes."""
    gc.collect()
    begin = time.process_time()
    run()
    return time.process_time() - begin


@pytest.mark.parametrize("name", shapes())
def test_tables_against_a_copy(name: str, tmp_path: Path, say: Say) -> None:
    path = tmp_path / "shape.fxt"
    path.write_bytes(shapes()[name](MEGABYTES * 1_000_000))
    data = np.fromfile(path, np.uint8)
    room = np.zeros_like(data)
    with Host().open(str(path)) as capture:
        rows = capture.summary().rows
    tables = tuple(table for table in TABLES if rows.get(table))
    copies, times = [], []
    for _ in range(ROUNDS):
        copies += [cpu(lambda: np.copyto(room, data)) for _ in range(3)]
        times.append(cpu(lambda: decode(path, "trace", tables)))
    memory = peak_memory(str(path), "trace", tables, "whole") / data.size
    copies_taken = min(times) / min(copies)
    say(f"{name:28} {copies_taken:6.1f} copies, memory {memory:4.1f} x file")
    assert copies_taken > 0
    assert memory > 0
