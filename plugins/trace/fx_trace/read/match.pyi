from collections.abc import Mapping
from typing import Any

from fxframework.kernels.pools import PairMap
from fxframework.kernels.rows import Notes, Rows

class PassingRows(Rows): ...

class OpenBegins(PassingRows):
    name: memoryview[int]
    category: memoryview[int]
    below: memoryview[int]
    free: int
    def __init__(self) -> None: ...

class Match:
    notes: Notes
    count: int
    unclosed: int
    kind: memoryview[int]
    thread: memoryview[int]
    time: memoryview[int]
    finish: memoryview[int]
    name: memoryview[int]
    category: memoryview[int]
    offset: memoryview[int]
    word: memoryview[int]
    refs: memoryview[int]
    pids: memoryview[int]
    end: memoryview[int]
    parent: memoryview[int]
    ends: memoryview[int]
    flows: memoryview[int]
    depth: memoryview[int]
    threads: int
    unnamed: PairMap
    links: PairMap
    def __init__(
        self, notes: Notes, max_depth: int, unnamed: PairMap, *, by_name: bool
    ) -> None: ...
    def take(
        self, columns: Mapping[str, Any], pids: Any, order: Any = None, refs: Any = None
    ) -> None: ...
    def make_room(self, threads: int, spans: Mapping[str, Any]) -> None: ...
    def run(self) -> int: ...

class Placing:
    rows: memoryview[int]
    first: int
    stop: int
    end: memoryview[int]
    parent: memoryview[int]
    depth: memoryview[int]
    def __init__(
        self, rows: Any, first: int, stop: int, found: Mapping[str, Any], spans: Mapping[str, Any]
    ) -> None: ...
    def run(self) -> int: ...

class TiedRows(PassingRows):
    place: memoryview[int]
    group: memoryview[int]
    end: memoryview[int]

class Tied:
    times: memoryview[int]
    kinds: memoryview[int]
    threads: memoryview[int]
    found: TiedRows
    def __init__(self, order: Any, times: Any, columns: Mapping[str, Any]) -> None: ...
    def run(self) -> int: ...

class Durations:
    time: memoryview[int]
    end: memoryview[int]
    count: int
    def __init__(self, time: Any, end: Any, out: Any) -> None: ...
    def run(self) -> int: ...
