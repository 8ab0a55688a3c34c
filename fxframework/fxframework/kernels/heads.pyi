from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

I64: TypeAlias = NDArray[np.int64]
U8: TypeAlias = NDArray[np.uint8]

FULL: int
AT_LIMIT: int
ACROSS: int
ASKS: int
UNSOUND: int

class Heads:
    places: I64
    ends: I64
    counts: I64
    codes: U8
    stretches: NDArray[np.int32]
    at: int
    limit: int
    reach: int
    unsound: int
    bound: int
    bound_at: int
    def __init__(self, data: U8, heads: I64, room: int, big: int) -> None: ...
    def end_of_bound(self, at: int) -> int: ...
    def read(self, most: int, run: int) -> tuple[int, int, int]: ...
    def walk(
        self,
        starts: I64,
        stops: I64,
        ends: I64,
        ats: I64,
        nexts: I64,
        lanes: I64,
        most: int,
        total: int,
    ) -> int: ...
