from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

I32: TypeAlias = NDArray[np.int32]
I64: TypeAlias = NDArray[np.int64]

IS_OPEN: int
IS_DEEP: int
NODE_SHIFT: int

def toured(parent: I64) -> tuple[I32, I32, I32]: ...
def followed(
    first: I32, following: I32, sizes: I32, wanted: I64, most: int
) -> tuple[I64, I64, I64, I32]: ...

class TreeBuilder:
    used: int
    deep: int
    levels: memoryview[int]
    def __init__(self, roots: I32, count: int, room: int, deepest: int) -> None: ...
    def nodes(self) -> tuple[I32, I32]: ...
    def add(
        self, function: I32, parent: I64, length: I64, thread: I32, node_of: I32, first_row: int
    ) -> None: ...
    def node(self, upper: int, number: int) -> int: ...
