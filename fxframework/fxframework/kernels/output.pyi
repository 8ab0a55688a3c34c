from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

I64: TypeAlias = NDArray[np.int64]
U8: TypeAlias = NDArray[np.uint8]

class RowWriter:
    literals: U8
    literal_bounds: I64
    texts: U8
    bounds: I64
    held: I64
    source: memoryview
    data: memoryview
    used: int
    def __init__(self, source: memoryview, marks_of: U8, escapes: U8) -> None: ...
    def load(self, rows: int, parts: I64, values: I64, marks: I64) -> None: ...
    def run(self, ends: I64, most: int) -> bool: ...
