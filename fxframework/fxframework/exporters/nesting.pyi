from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fxframework.kernels.rows import Rows

I64: TypeAlias = NDArray[np.int64]

class Nested(Rows):
    place: memoryview[int]
    frame: memoryview[int]
    end: memoryview[int]

class Moments(Rows):
    ends: memoryview[int]
    frame: memoryview[int]
    at: memoryview[int]

class Pairing:
    frames: memoryview[int]
    parents: memoryview[int]
    open: Nested
    moments: Moments
    count: int
    size: int
    overlaps: int
    def __init__(self, size: int) -> None: ...
    def begin(self, first: int, last: int) -> None: ...
    def load(
        self,
        places: NDArray[np.int32],
        start: I64,
        length: I64,
        frames: NDArray[np.int32],
        parents: NDArray[np.int32],
    ) -> None: ...
    def run(self) -> int: ...

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
