from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from fxframework.kernels.output import Output
from fxframework.kernels.rows import Rows

I64: TypeAlias = NDArray[np.int64]

class Opened(Rows):
    below: memoryview[int]
    row: memoryview[int]
    thread: memoryview[int]
    until: memoryview[int]
    start: memoryview[int]
    size: memoryview[int]
    same: memoryview[int]

class Nesting:
    out: Output
    ends: memoryview[int]
    data: memoryview[int]
    starts: memoryview[int]
    sizes: memoryview[int]
    times: memoryview[int]
    thread: memoryview[int]
    parent: memoryview[int]
    row: memoryview[int]
    until: memoryview[int]
    comma: bool
    def __init__(self, threads: int, most: int) -> None: ...
    def load(self, events: tuple[NDArray[np.uint8], I64, I64, I64], places: I64) -> None: ...
    def run(self) -> int: ...
    def finish(self) -> bool: ...
