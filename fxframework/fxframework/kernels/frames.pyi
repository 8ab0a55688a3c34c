import numpy as np
from numpy.typing import NDArray

class Frames:
    places: NDArray[np.int64]
    sizes: NDArray[np.int64]
    kinds_found: NDArray[np.int64]
    entries: NDArray[np.int32]
    orders: NDArray[np.uint8]
    next: int
    found_size: int
    found_kind: int
    big: int
    growing: int
    asking: int
    def __init__(
        self,
        data: NDArray[np.uint8],
        numbers: NDArray[np.int64],
        kinds: NDArray[np.int64],
        prefixes: NDArray[np.int64],
        room: int,
    ) -> None: ...
    def read(self, at: int, most: int, end: int) -> tuple[int, int]: ...
    def entry_at(self, at: int) -> int: ...
    def next_fitting(self, at: int, origin: int) -> int: ...
