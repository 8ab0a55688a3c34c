"""Measurement of time and memory of decoding, relative to copying the same bytes."""

from __future__ import annotations

import gc
import subprocess
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from fxframework.host import Host
    from fxframework.model.capture import Capture

__all__ = ["TABLES", "Measure", "best", "copied", "measure", "peak_memory", "peak_of", "touch"]

BUDGET = 2.0
"""Seconds to spend on one figure of a capture, in addition to its first run."""
TABLES = ("slices", "args", "instants", "counters", "sched", "logs", "nodes", "properties")


@attrs.frozen
class Measure:
    """One figure of a benchmark."""

    name: str
    seconds: float | None
    ratio: float | None
    """Seconds, or bytes of memory, relative to the yardstick of the same run."""
    rate: str
    against: str


def touch(capture: Capture, tables: tuple[str, ...]) -> int:
    """Make every column of these tables; return the number of rows."""
    rows = 0
    for name in tables:
        table = capture.table(name)
        rows += len(table)
        for column in table.columns:
            len(table[column])  # makes the column
    return rows


def best(runs: int, once: Callable[[], Any]) -> float:
    """Return the least seconds of some runs after a warm-up; fewer runs if they take long."""
    once()
    times: list[float] = []
    for _ in range(runs):
        if sum(times) > BUDGET:
            break
        gc.collect()
        begin = time.perf_counter()
        once()
        times.append(time.perf_counter() - begin)
    return min(times)


def copied(data: Any, runs: int) -> float:
    """Return the seconds of copying the bytes to allocated memory."""
    import numpy as np

    memory = np.empty_like(data)
    return best(runs, lambda: np.copyto(memory, data))


def measure(host: Host, path: str, *, format: str | None, runs: int) -> list[Measure]:
    """Measure copy, tables, record JSON and memory: the best of ``runs`` (memory: one run)."""
    with host.open(path, format=format) as capture:
        data = capture.source.data
        size = capture.source.size
        copy_seconds = copied(data, runs)
        del data
        summary = capture.summary()
        tables = tuple(name for name in TABLES if summary.rows.get(name))
    records, rows = summary.records, 0

    def decode() -> None:
        nonlocal rows
        with host.open(path, format=format) as capture:
            rows = touch(capture, tables)

    tables_seconds = best(runs, decode)
    out = [
        Measure("copy", copy_seconds, 1.0, f"{size / copy_seconds / 1e9:.1f} GB/s", "copy"),
        Measure(
            f"tables {', '.join(tables)}", tables_seconds, tables_seconds / copy_seconds,
            f"{rows / tables_seconds / 1e6:.1f} M rows/s, {records / tables_seconds / 1e6:.1f} "
            "M records/s", "copy",
        ),
    ]  # fmt: skip
    pace = _lines_per_second(host, path, format)
    rate = f"{pace / 1e6:.2f} M records/s"
    out.append(Measure("record JSON", records / pace, records / pace / copy_seconds, rate, "copy"))
    for way in ("whole", "batches"):
        peak = peak_memory(path, format, tables, way)
        rate = f"{peak / 2**20:.0f} MiB"
        out.append(Measure(f"memory, {way}", None, peak / size, rate, "file size"))
    return out


def _lines_per_second(host: Host, path: str, format: str | None) -> float:
    """Return lines of record JSON per second, measured within ``BUDGET``."""
    lines = 0
    begin = time.perf_counter()
    with host.open(path, format=format) as capture:
        for chunk in capture.records_json():
            lines += chunk.count(b"\n")
            if time.perf_counter() - begin > BUDGET:
                break
    return max(lines, 1) / (time.perf_counter() - begin)


_READ = """
import sys
import fxframework
path, format, tables, way = sys.argv[1:]
with fxframework.open(path, format=format or None) as capture:
    for name in filter(None, tables.split(",")):
        parts = [capture.table(name)] if way == "whole" else capture.batches(name)
        for part in parts:
            for column in part.columns:
                part[column]
"""
_PEAK = """
import pathlib, sys
status = pathlib.Path("/proc/self/status")
if status.exists():  # on Linux, ru_maxrss includes the peak of the parent process
    lines = status.read_text().splitlines()
    print(next(int(x.split()[1]) for x in lines if x.startswith("VmHWM:")) * 1024)
else:
    try:
        import resource
    except ImportError:
        sys.exit("this system does not report the peak memory of a process")
    scale = 1 if sys.platform == "darwin" else 1024
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale)
"""


def peak_of(code: str, *given: str) -> int:
    """Run Python code in a new process; return its peak resident bytes, interpreter included.

    ``given`` is ``sys.argv[1:]`` there.
    """
    command = [sys.executable, "-P", "-c", code + _PEAK, *given]
    return int(subprocess.check_output(command, text=True))  # noqa: S603 (our own interpreter)


def peak_memory(path: str, format: str | None, tables: tuple[str, ...], way: str) -> int:
    """Return the peak resident bytes of a new process that reads these tables."""
    return peak_of(_READ, path, format or "", ",".join(tables), way)
