"""Other programs that read a format: the CPU seconds that they take to read a file."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

TOOLS = ("llvm-xray", *(f"llvm-xray-{version}" for version in range(24, 13, -1)))
"""Names of the program, the one without a version first."""


def fxt_package(path: Path) -> float | None:
    """What the package `fxt` of PyPI takes to read all records; None without it."""
    try:
        from fxt.reader import parse_records
    except ImportError:
        return None
    begin = time.process_time()
    with path.open("rb") as file:
        parse_records(file)
    return time.process_time() - begin


def fdr_dump(path: Path) -> float | None:
    """What ``llvm-xray fdr-dump`` takes; None without it, and for a file that it refuses."""
    tool = next(filter(None, map(shutil.which, TOOLS)), None)
    if tool is None:
        return None
    before = os.times()
    done = subprocess.run(
        [tool, "fdr-dump", str(path)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    after = os.times()
    spent = after.children_user + after.children_system
    return None if done.returncode else spent - before.children_user - before.children_system


YARDSTICKS: dict[str, dict[str, Callable[[Path], float | None]]] = {
    "trace": {"PyPI fxt": fxt_package},
    "xray": {"llvm-xray fdr-dump": fdr_dump},
}
"""Programs by format and name."""
