from typing import Any

OPEN: int

class Nesting:
    start: memoryview[int]
    end: memoryview[int]
    depth: memoryview[int]
    size: int
    at: int
    most: int
    lane_track: memoryview[int]
    slices: memoryview[int]
    times: memoryview[int]
    lane_level: memoryview[int]
    lanes: memoryview[int]
    tracks: int
    lane_count: int
    open_count: int
    count: int
    cut: int
    def __init__(self) -> None: ...
    def load(self, track: Any, start: Any, end: Any, depth: Any) -> None: ...
    def end_before(self, limit: int) -> None: ...
    def run(self) -> int: ...
