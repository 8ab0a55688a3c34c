"""The watchdog of contracts: an input on which compiled code hangs is kept, and named."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fxframework.testing.contracts.watchdog import watchdog

HANGS = """
import itertools, sys
from fxframework.testing.contracts import base
from fxframework.registry import Reader

base.INPUT_SECONDS = {seconds}


def open_(source, request):
    if source.read(0, 3) == b"bad":
        sum(itertools.repeat(1))  # a loop in C, which looks at no signals
    raise ValueError


reader = Reader(format="stuck", open=open_)
try:
    base.open_bytes(reader, {data!r})
except Exception:
    sys.exit(7)
"""


def run(data: bytes, seconds: float) -> subprocess.CompletedProcess[str]:
    code = HANGS.format(data=data, seconds=seconds)
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120
    )


@pytest.fixture(autouse=True)
def has_watchdog() -> None:
    if watchdog() is None:
        pytest.skip("this system has no /proc, from which the watchdog reads CPU times")


def test_an_input_on_which_a_reader_hangs_is_kept() -> None:
    data = b"bad" + bytes(range(100))
    done = run(data, 0.5)
    assert done.returncode == -signal.SIGKILL
    assert "the reader of stuck hangs: 0.5 s of CPU time" in done.stderr
    assert "62 61 64 00 01" in done.stderr
    kept = re.search(r"kept in (\S+)", done.stderr)
    assert kept is not None
    path = Path(kept[1])
    assert path.read_bytes() == data
    path.unlink()


def test_other_inputs_are_let_alone() -> None:
    done = run(b"good", 0.5)
    assert (done.returncode, done.stderr) == (7, "")
