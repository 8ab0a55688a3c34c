"""Programs that write into a file which others read meanwhile: ``python writers.py KIND PATH``.

Each counts what it has committed in the first word of ``PATH.count``, after it is committed.
"""

from __future__ import annotations

import itertools
import struct
import sys
import time

from fx_emulator.memory import Memory

EVENT = struct.Struct("<QQQQ")
INSTANT = 4 | 4 << 4
"""The header of an instant of four words: a thread inline, an empty category and name."""
MOST = 8
"""Children that are there at once."""


def write_inspect(path: str, committed: Memory) -> None:
    """One transaction after another: two numbers, a text, children that come and go."""
    from fx_inspect.write.writer import Inspector

    inspector = Inspector(Memory.file(path, 4096), max_size=1 << 18)
    with inspector.transaction():
        first = inspector.root.create_uint("first", 0)
        node = inspector.root.create_child("node")
        text = node.create_string("text", "0")
        last = node.create_uint("last", 0)
    children = []
    for count in itertools.count(1):
        with inspector.transaction():
            first.set(count)
            if count % 5 == 0:
                child = node.create_child(f"child {count}")
                children.append((child.create_string("long", str(count) * 99), child))
                if len(children) > MOST:
                    for each in children.pop(0):
                        each.delete()
            text.set(str(count) * (count % 50))
            last.set(count)
        committed.store_u64(0, count)
        time.sleep(20e-6)


def write_trace(path: str, committed: Memory, mode: str) -> None:
    """Instants whose times count from 1."""
    from fx_trace.write.buffer import TraceBuffer

    size = 1 << 15
    buffer = TraceBuffer(Memory.file(path, size), mode, on_full=lambda *_: None)
    for count in itertools.count(1):
        if buffer.put(EVENT.pack(INSTANT, count, 7, 8)):
            committed.store_u64(0, count)


def main(kind: str, path: str) -> None:
    """Write until killed."""
    with Memory.file(f"{path}.count", 8) as committed:
        if kind == "inspect":
            write_inspect(path, committed)
        else:
            write_trace(path, committed, kind)


if __name__ == "__main__":
    main(*sys.argv[1:])
