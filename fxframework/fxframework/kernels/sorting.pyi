import numpy as np
from numpy.typing import NDArray

class Range:
    keys: memoryview[int]
    def __init__(self, keys: memoryview) -> None: ...
    def run(self) -> int: ...

class StableOrder:
    keys: memoryview[int]
    order: memoryview[int]
    in_order: memoryview[int]
    places: memoryview[int]
    whole: bool
    def __init__(
        self, keys: memoryview, low: int, high: int, order: memoryview, in_order: memoryview
    ) -> None: ...
    def run(self) -> int: ...

def stable_order(keys: NDArray[np.int64]) -> NDArray[np.int64] | None: ...
def order_and_keys(
    keys: NDArray[np.int64],
) -> tuple[NDArray[np.int64] | None, NDArray[np.int64] | None]: ...
