"""A program that reads what a writer writes: ``python readers.py``, then a path a line.

For each path it looks again and again until ``PATH.dead`` is there, and once more; then it prints a
line of JSON: what it saw.
"""

from __future__ import annotations

import json
import struct
import sys
import time
from pathlib import Path

from fx_emulator.memory import Memory
from fx_inspect.format import BlockType
from fx_inspect.read.snapshot import MappedFile, Snapshot
from fxframework.errors import UnreadableError
from fxframework.host import Host
from fxframework.model.diagnostics import Severity

HOST = Host(environ={"FXF_PLUGINS": "inspect,trace"})
FULL_EVERY = 200
"""Of so many snapshots one is read in full."""


def check_tree(taken: Snapshot) -> int:
    """Read a VMO in full; gives the transaction it is of."""
    with HOST.open(taken.data, format="inspect") as capture:
        properties = capture.table("properties")
        worst = capture.diagnostics.worst
        assert worst is None or worst < Severity.DATA_LOSS, list(capture.diagnostics)
        values = {
            str(name): uint if type == 2 else text
            for name, type, uint, text in zip(
                properties.texts("name"),
                properties.array("type").tolist(),
                properties.array("uint").tolist(),
                properties.texts("text"),
                strict=True,
            )
            if name in {"first", "last", "text"}
        }
    first = int(values["first"])
    assert values["last"] == first, values
    assert values["text"] == (str(first) * (first % 50) if first else "0"), values
    assert first == taken.generation // 2 - 1, (values, taken.generation)
    return first


def places_of(data: bytes) -> list[int]:
    """Where the values of the two numbers are: their blocks do not move."""
    found, at = [], 0
    while at < len(data):
        (word,) = struct.unpack_from("<Q", data, at)
        if word >> 8 & 0xFF == BlockType.UINT_VALUE:
            found.append(at + 8)
        at += 16 << (word & 15)
    assert len(found) == 2, found
    return found


def watch_tree(path: Path, dead: Path) -> dict[str, object]:
    """Take snapshots; one in ``FULL_EVERY`` is read in full."""
    seen = {"snapshots": 0, "full": 0, "moments": 0}
    places: list[int] = []
    before = -1
    with MappedFile(path) as memory:
        while True:
            ended = seen["snapshots"] % 64 == 0 and dead.exists()
            begin = time.monotonic()
            try:
                taken = Snapshot.take(memory)
            except UnreadableError as error:
                if error.code == "FXI0501" and dead.exists():
                    return {**seen, "told": error.code, "seconds": time.monotonic() - begin}
                if error.code != "FXI0501":
                    raise
                continue  # the writer is slower than the reader waits: on a busy machine
            count = taken.generation // 2 - 1
            assert not taken.generation & 1
            assert count >= before, (count, before)
            places = places or places_of(taken.data)
            values = [struct.unpack_from("<Q", taken.data, at)[0] for at in places]
            assert values == [count, count], (values, count)
            if seen["snapshots"] % FULL_EVERY == 0 or ended:
                check_tree(taken)
                seen["full"] += 1
            seen["snapshots"] += 1
            seen["moments"] += count != before
            before = count
            if ended:
                return {**seen, "count": count, "committed": committed(path)}


def times_of(path: Path) -> tuple[list[int], bool]:
    """The times of a buffer's instants, and whether anything was lost."""
    with HOST.open(path.read_bytes(), format="trace-buffer") as capture:
        times = capture.table("instants").array("ts").tolist()
        worst = capture.diagnostics.worst
        return times, worst is not None and worst >= Severity.DATA_LOSS


def watch_trace(path: Path, dead: Path) -> dict[str, object]:
    """Read the buffer; what was committed before is there."""
    seen = {"snapshots": 0, "full": 0, "moments": 0}
    last = -1
    while True:
        ended = dead.exists()
        count = committed(path)
        times, lost = times_of(path)
        if ended or path.name.startswith("oneshot"):
            # Others overwrite what a copy has not reached yet; at rest they are whole.
            assert not lost
            assert times == list(range(times[0], times[0] + len(times))) if times else not count
            assert (times[-1] if times else 0) >= count, (times[-1:], count)
        seen["snapshots"] += 1
        seen["full"] += 1
        seen["moments"] += len(times) and times[-1] != last
        last = times[-1] if times else last
        if ended:
            return {**seen, "count": last, "committed": committed(path)}


def committed(path: Path) -> int:
    """What the writer says it has committed."""
    with Memory.file(f"{path}.count", writable=False) as memory:
        return memory.load_u64(0)


def main() -> None:
    """Watch each path given on standard input."""
    for line in sys.stdin:
        path = Path(line.strip())
        watch = watch_tree if path.name.startswith("inspect") else watch_trace
        print(json.dumps(watch(path, Path(f"{path}.dead"))), flush=True)


if __name__ == "__main__":
    main()
