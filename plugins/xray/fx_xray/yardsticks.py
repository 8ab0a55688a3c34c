"""Yardsticks: how long other programs take to read an XRay trace."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

__all__ = ["fdr_dump"]

TOOLS = ("llvm-xray", *(f"llvm-xray-{version}" for version in range(24, 13, -1)))
"""Names of the program, the one without a version first."""


def fdr_dump(path: Path) -> float | None:
    """Seconds that ``llvm-xray fdr-dump`` takes; None where it is missing or refuses the file."""
    tool = next(filter(None, map(shutil.which, TOOLS)), None)
    if tool is None:
        return None
    begin = time.perf_counter()
    done = subprocess.run(  # noqa: S603 (found on PATH, with a file of ours)
        [tool, "fdr-dump", str(path)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    return None if done.returncode else time.perf_counter() - begin
