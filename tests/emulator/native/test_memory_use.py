"""An emulated CPU takes memory of a known size, gives it back, and never ends the process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from .building import SOURCES
from .conftest import Builder

LOADS = """
import resource, sys
from fx_emulator.native import NativeError
from fx_emulator.target import Target

def used():
    return int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize() >> 20

def load():
    target = Target()
    assert target.load(sys.argv[1]).call("divide", 42, 6) == 7
    return target

load().close()
room = int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_AS, ((used() + room) << 20,) * 2)
"""
FORGOTTEN = """
before = used()
for _ in range(40):
    load()  # not closed: collected when memory runs out
with load() as target:
    pass
print(used() - before)
"""
KEPT = """
kept = []
try:
    while len(kept) < 100:
        kept.append(load())
except NativeError as error:
    print(len(kept), error)
for each in kept:
    each.close()
if kept:
    load()
"""


def run(script: str, path: Path, room: int) -> str:
    command = [sys.executable, "-c", LOADS + script, str(path), str(room)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
def test_memory_is_given_back(built: Builder) -> None:
    path = built(SOURCES / "faults.c", cc="gcc", level="-O2")
    assert int(run(FORGOTTEN, path, 300)) < 300


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
@pytest.mark.parametrize(
    ("room", "least", "most"), [(5, 0, 0), (39, 0, 1), (50, 1, 1), (300, 4, 9)]
)
def test_too_little_memory_is_an_error(built: Builder, room: int, least: int, most: int) -> None:
    path = built(SOURCES / "faults.c", cc="gcc", level="-O2")
    count, message = run(KEPT, path, room).split(maxsplit=1)
    assert least <= int(count) <= most
    assert "no memory for another CPU emulator, which takes 40 MiB: close() targets" in message
