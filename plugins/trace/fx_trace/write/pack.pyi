from collections.abc import Mapping
from typing import Any

from fx_trace.write.items import ArgumentItems, Items, RecordRows, Slotted

class CountUses:
    count: int
    args: int
    kind: memoryview[int]
    category: memoryview[int]
    name: memoryview[int]
    thread: memoryview[int]
    order: memoryview[int]
    threads: memoryview[int]
    def __init__(
        self, items: Items, args: ArgumentItems, order: Any, strings: Any, threads: Any
    ) -> None: ...
    def run(self) -> int: ...

class Unfold:
    order: memoryview[int]
    time: memoryview[int]
    dur: memoryview[int]
    parent: memoryview[int]
    thread: memoryview[int]
    count: int
    threads: int
    events: memoryview[int]
    def __init__(self, order: Any, columns: Mapping[str, Any], form: Any, threads: int) -> None: ...
    def run(self) -> int: ...

class Pack:
    kind: memoryview[int]
    message: memoryview[int]
    time: memoryview[int]
    word: memoryview[int]
    thread: memoryview[int]
    category: memoryview[int]
    name: memoryview[int]
    bits: memoryview[int]
    prev: memoryview[int]
    next: memoryview[int]
    words: memoryview[int]
    starts: memoryview[int]
    lengths: memoryview[int]
    threads: memoryview[int]
    pids: memoryview[int]
    tids: memoryview[int]
    order: memoryview[int]
    first: memoryview[int]
    dropped: memoryview[int]
    shift: int
    done: int
    count: int
    args: int
    start: int
    def __init__(
        self,
        items: Items,
        args: ArgumentItems,
        rows: RecordRows,
        slotted: Slotted,
        order: Any,
        first: Any,
        out: Any,
    ) -> None: ...
    def run(self) -> int: ...
