from typing import Any

class Judge:
    def __init__(self) -> None: ...

class Alignment:
    data: memoryview[int]
    size: int
    pos: int
    until: int
    end: int
    stretches: memoryview[int]
    def __init__(self, data: Any, judge: Judge, *, mirrored: bool = False) -> None: ...
    def run(self) -> int: ...
