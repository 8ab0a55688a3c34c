"""One process writes, several read, and the writer is killed at a random moment.

A round takes a fraction of a second. ``FXF_ENDURANCE_SECONDS=600 pytest -s tests/faults`` goes on
for that long, and prints how much was read.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from fx_emulator.errors import MemoryAccessError
from fx_emulator.memory import Memory
from fx_inspect.format import GENERATION_AT
from fx_inspect.read.snapshot import MappedFile, Snapshot
from fxframework.errors import UnreadableError

SECONDS = float(os.environ.get("FXF_ENDURANCE_SECONDS", "0"))
READERS = 2
KINDS = ("inspect", "oneshot", "circular", "streaming")
"""What is written: a VMO, and trace buffers of each mode."""
LONGEST_WAIT = 30.0
"""Seconds after which a reader has to be told that a writer does not go on, on a busy machine."""
HERE = Path(__file__).parent
pytestmark = [
    pytest.mark.timeout(300 + 2 * SECONDS),
    pytest.mark.skipif(os.name == "nt", reason="signals are POSIX's"),
]


def python(script: str, *arguments: str) -> subprocess.Popen[str]:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    return subprocess.Popen([sys.executable, str(HERE / script), *arguments], text=True, **pipes)


def written(path: Path) -> int:
    try:
        with Memory.file(f"{path}.count", writable=False) as memory:
            return memory.load_u64(0)
    except MemoryAccessError:
        return 0  # it is not there yet


def started(kind: str, path: Path) -> subprocess.Popen[str]:
    """A writer that has committed something."""
    writer = python("writers.py", kind, str(path))
    end = time.monotonic() + 60
    while not written(path):
        assert writer.poll() is None
        assert time.monotonic() < end
        time.sleep(0.005)
    return writer


def test_nothing_is_torn_and_what_was_committed_is_there(tmp_path: Path) -> None:
    readers = [python("readers.py") for _ in range(READERS)]
    chance = random.Random(7)
    totals = {kind: Counter[str]() for kind in KINDS}
    end = time.monotonic() + SECONDS
    rounds = 0
    try:
        while rounds < len(KINDS) or time.monotonic() < end:
            kind = KINDS[rounds % len(KINDS)]
            path = tmp_path / f"{kind}{rounds}"
            writer = started(kind, path)
            for reader in readers:
                assert reader.stdin is not None
                reader.stdin.write(f"{path}\n")
                reader.stdin.flush()
            time.sleep(chance.uniform(0.2, 0.4) + min(SECONDS / 50, 8) * chance.random())
            writer.send_signal(signal.SIGKILL)
            writer.communicate()
            Path(f"{path}.dead").touch()
            for reader in readers:
                assert reader.stdout is not None
                line = reader.stdout.readline()
                assert line, "a reader ended"
                seen = json.loads(line)
                if "told" in seen:
                    assert seen["told"] == "FXI0501"
                    assert seen["seconds"] < LONGEST_WAIT
                    totals[kind]["told"] += 1
                else:
                    # One more may have been committed before the writer could say so.
                    assert seen["committed"] <= seen["count"] <= seen["committed"] + 1
                for name in ("snapshots", "full", "moments"):
                    totals[kind][name] += seen[name]
            totals[kind]["killed"] += 1
            for left in tmp_path.iterdir():
                left.unlink()
            rounds += 1
    finally:
        for reader in readers:
            reader.kill()
            reader.communicate()
    for kind, counts in totals.items():
        assert counts["snapshots"] >= READERS * counts["killed"] - counts["told"]
        print(kind, dict(counts))


def test_a_waiting_reader_is_told_in_time(tmp_path: Path) -> None:
    path = tmp_path / "inspect"
    chance = random.Random(7)
    writer = started("inspect", path)
    # Stopped in the middle of a change, as one that was killed there: the generation is odd.
    try:
        with MappedFile(path) as memory:
            end = time.monotonic() + LONGEST_WAIT
            while time.monotonic() < end:
                writer.send_signal(signal.SIGSTOP)
                os.waitpid(writer.pid, os.WUNTRACED)
                if memory.load_u64(GENERATION_AT) & 1:
                    break
                writer.send_signal(signal.SIGCONT)
                time.sleep(0.001 * chance.random())
            assert memory.load_u64(GENERATION_AT) & 1
            begin = time.monotonic()
            with pytest.raises(UnreadableError, match="changed") as caught:
                Snapshot.take(memory)
            assert time.monotonic() - begin < LONGEST_WAIT
            assert caught.value.code == "FXI0501"
            assert caught.value.remedy
            # It goes on, and so does the reader.
            writer.send_signal(signal.SIGCONT)
            assert not Snapshot.take(memory).generation & 1
    finally:
        writer.kill()
        writer.communicate()
