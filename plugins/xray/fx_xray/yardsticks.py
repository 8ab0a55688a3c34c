"""Yardsticks: how long other programs take to read an XRay trace."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

__all__ = ["fdr_dump"]

TOOLS = ("llvm-xray", *(f"llvm-xray-{version}" for version in range(24, 13, -1)))
"""Names of the program, the one without a version first."""


def fdr_dump(path: Path) -> float | None:
    """CPU seconds that ``llvm-xray fdr-dump`` takes; None without it, and for a refused file."""
    tool = next(filter(None, map(shutil.which, TOOLS)), None)
    if tool is None:
        return None
    before = os.times()
    done = subprocess.run(  # noqa: S603 (found on PATH, with a file of ours)
        [tool, "fdr-dump", str(path)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    after = os.times()
    spent = after.children_user + after.children_system
    return None if done.returncode else spent - before.children_user - before.children_system
