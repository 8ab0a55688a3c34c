"""Compilers for the tests of native programs, and what they build."""

from __future__ import annotations

import subprocess
from pathlib import Path

from ...programs import missing, newest

SOURCES = Path(__file__).parent / "sources"
EXAMPLES = Path(__file__).parents[3] / "examples" / "native"
LEVELS = ("-O0", "-O3")
COMPILERS = ("gcc", "clang")
BUILDS = [("gcc", "-O3"), ("clang", "-O0")]
"""What most tests are built with: optimised and not, by two compilers.

Lost updates, and programs in C++, are tried with each compiler at each level.
"""


def compiler(name: str) -> str:
    """The newest compiler of a name."""
    path = next(iter(newest(name)), None)
    if path is None:
        missing(f"{name} is not installed")
    return path


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
