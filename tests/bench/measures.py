"""What benchmarks measure: every column of tables, and the peak memory of a process."""

from __future__ import annotations

import subprocess
import sys

from fxframework.model.capture import Capture

__all__ = ["TABLES", "peak_memory", "peak_of", "touch"]

TABLES = ("slices", "args", "instants", "counters", "sched", "logs", "nodes", "properties")
"""The main tables."""


def touch(capture: Capture, tables: tuple[str, ...]) -> int:
    """Make every column of these tables; return the number of rows."""
    rows = 0
    for name in tables:
        table = capture.table(name)
        rows += len(table)
        for column in table.columns:
            len(table[column])  # makes the column
    return rows


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
    return int(subprocess.check_output(command, text=True))


def peak_memory(path: str, format: str | None, tables: tuple[str, ...], way: str) -> int:
    """Return the peak resident bytes of a new process that reads these tables."""
    return peak_of(_READ, path, format or "", ",".join(tables), way)
