"""Compilers for the tests of native programs, and what they build."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

SOURCES = Path(__file__).parent / "sources"
EXAMPLES = Path(__file__).parents[3] / "examples" / "native"
LEVELS = ("-O0", "-O3")
COMPILERS = ("gcc", "clang")
BUILDS = [(compiler, level) for compiler in COMPILERS for level in LEVELS]


def missing(reason: str) -> Any:
    """Skip, or fail where nothing may be missing."""
    if os.environ.get("FXF_REQUIRE_ORACLES"):
        pytest.fail(reason)
    pytest.skip(reason)


@functools.cache
def find(name: str) -> str | None:
    """A compiler, or the newest one with a version behind its name."""
    if path := shutil.which(name):
        return path
    found = [
        (int(match[1]), str(each))
        for folder in os.get_exec_path()
        for each in (Path(folder).iterdir() if Path(folder).is_dir() else ())
        if (match := re.fullmatch(re.escape(name) + r"-(\d+)", each.name))
    ]
    return max(found)[1] if found else None


def compiler(name: str) -> str:
    """The compiler of a name."""
    path = find(name)
    if path is None:
        missing(f"{name} is not installed")
    return str(path)


def build(
    sources: str | Path | list[str | Path],
    out: Path,
    *options: str,
    cc: str = "gcc",
    level: str = "-O2",
    kind: str = "shared",
) -> Path:
    """Compile C into a shared object, a relocatable one, or a static executable."""
    how = {
        "shared": ["-shared", "-fPIC", "-nostdlib"],
        "object": ["-c"],
        "static": ["-static", "-nostdlib", "-no-pie", "-fno-pie"],
    }[kind]
    given = sources if isinstance(sources, list) else [sources]
    command = [compiler(cc), level, "-g", *how, *options, "-o", str(out), *map(str, given)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr}"
    return out


def run(command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a tool."""
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
