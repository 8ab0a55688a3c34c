"""Programs of the machine that tests ask: where they are, and what happens without one."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import NoReturn

import pytest

__all__ = ["missing", "newest"]


def missing(reason: str) -> NoReturn:
    """Skip, or fail where no oracle may be missing."""
    if os.environ.get("FXF_REQUIRE_ORACLES"):
        pytest.fail(reason)
    pytest.skip(reason)


def newest(name: str) -> list[str]:
    """The programs of this name on the path, with a version behind it or none; newest first."""
    versions: dict[str, int] = {}
    for folder in os.get_exec_path():
        for path in Path(folder).glob(f"{name}-[0-9]*"):
            version = path.name[len(name) + 1 :]
            if version.isdigit() and os.access(path, os.X_OK):
                versions.setdefault(str(path), int(version))
    newest_first = sorted(versions, key=lambda path: -versions[path])
    without_version = shutil.which(name)
    if without_version:
        newest_first.append(without_version)
    return newest_first
