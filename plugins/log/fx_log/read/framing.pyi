import numpy as np
from numpy.typing import NDArray

from fxframework.kernels.alignment import Judge
from fxframework.kernels.rows import Notes

COLUMNS: tuple[str, ...]

def arguments(
    words: NDArray[np.int64], starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> NDArray[np.int64]: ...

class Framer:
    notes: Notes
    pos: int
    unit: int
    base: int
    wrap: int
    capacity: int
    record: int
    splits: int
    done: bool
    def rows(self, most: int, nbytes: int) -> NDArray[np.int64]: ...

class LogFramer(Framer):
    def __init__(
        self, words: NDArray[np.int64], nbytes: int, notes: Notes, max_record: int, suffixed: int
    ) -> None: ...

class RingFramer(Framer):
    def __init__(
        self, words: NDArray[np.int64], notes: Notes, base: int, wrap: int, capacity: int
    ) -> None: ...

class PacketFramer(Framer):
    def __init__(self, data: NDArray[np.uint8], notes: Notes, start: int) -> None: ...

class LogJudge(Judge):
    def __init__(self, suffixed: bool) -> None: ...
