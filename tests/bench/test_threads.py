"""How much faster two threads decode than one: the goal is 1.7. Never a failure on time.

Beside each ratio is that of hashing, which holds no lock at all: on a machine that does something
else, two threads of any program gain less.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fxframework.host import Host

from .yardstick import MEGABYTES, Say, decode, least

TABLES = {
    "trace": ("slices", "args"),
    "log": ("logs", "args"),
    "inspect": ("nodes", "properties"),
    "xray": ("slices", "args"),
}


def gain(run: Callable[[], object]) -> float:
    """How many times as fast two threads do it twice as one does."""
    with ThreadPoolExecutor(2) as pool:
        one = least(lambda: [run() for _ in range(2)], 5)
        two = least(lambda: list(pool.map(lambda _: run(), range(2))), 5)
    return one / two


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="there is one CPU")
@pytest.mark.parametrize("format", TABLES)
def test_two_threads_against_one(format: str, say: Say, tmp_path: Path) -> None:
    make = Host().reader(format).sample
    assert make is not None
    path = tmp_path / f"big.{format}"
    path.write_bytes(make(MEGABYTES * 600_000))
    data = path.read_bytes()
    decoding = gain(lambda: decode(path, format, TABLES[format]))
    hashing = gain(lambda: hashlib.sha256(data).digest())
    say(f"{format}: two threads are {decoding:.2f} times as fast as one (hashing: {hashing:.2f})")
    assert decoding > 0
