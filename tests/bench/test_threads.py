"""How much faster two threads decode than one: the goal is 1.7. Never a failure on time."""

from __future__ import annotations

import os
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


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="there is one CPU")
@pytest.mark.parametrize("format", TABLES)
def test_two_threads_against_one(format: str, say: Say, tmp_path: Path) -> None:
    make = Host().reader(format).sample
    assert make is not None
    path = tmp_path / f"big.{format}"
    path.write_bytes(make(MEGABYTES * 250_000))
    tables = TABLES[format]
    with ThreadPoolExecutor(2) as pool:

        def both() -> list[int]:
            return list(pool.map(lambda _: decode(path, format, tables), range(2)))

        one = least(lambda: [decode(path, format, tables) for _ in range(2)], 5)
        two = least(both, 5)
    say(f"{format}: two threads are {one / two:.2f} times as fast as one")
    assert one / two > 0
