"""Fuzz the trace reader with atheris: ``python tests/fuzz/fuzz_trace.py [CORPUS]``."""

from __future__ import annotations

import sys
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parent))

with atheris.instrument_imports():
    from target import try_trace


def main() -> None:
    """Run until something is found."""
    atheris.Setup(sys.argv, try_trace)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
