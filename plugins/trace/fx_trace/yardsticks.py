"""Yardsticks: how long other programs take to read a trace."""

from __future__ import annotations

import time
from pathlib import Path

__all__ = ["fxt_package"]


def fxt_package(path: Path) -> float | None:
    """CPU seconds that the package `fxt` of PyPI takes to read all records; None without it."""
    try:
        from fxt.reader import parse_records
    except ImportError:
        return None
    begin = time.process_time()
    with path.open("rb") as file:
        parse_records(file)
    return time.process_time() - begin
