from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

I64: TypeAlias = NDArray[np.int64]
U8: TypeAlias = NDArray[np.uint8]

BEGIN: int
END: int
OTHER: int
SPAN: int
ANY_NAME: int
NEVER_ENDS: int

class Nesting:
    threads: int
    rows: int
    parents: I64
    depths: I64
    closes: I64
    values: I64
    def __init__(self, threads: int, *, values: int = ..., any_name: bool = ...) -> None: ...
    @property
    def unwound(self) -> I64: ...
    def make_threads(self, threads: int) -> None: ...
    def open_values(self) -> I64: ...
    def release(self) -> None: ...
    def nest(
        self,
        what: U8,
        threads: NDArray[np.int32],
        names: NDArray[np.uint32],
        values: I64 | None = ...,
        times: I64 | None = ...,
        ends: I64 | None = ...,
        rows: I64 | None = ...,
    ) -> None: ...

def unfolded(
    order: I64,
    threads: NDArray[np.int32],
    around: I64,
    count: int,
    times: I64 | None = ...,
    lengths: I64 | None = ...,
) -> tuple[I64, I64, int]: ...

class Lanes:
    lane_count: int
    open_count: int
    cut: int
    def places_from(self, first: int) -> I64: ...
    def nest(self, track: I64, start: I64, end: I64, depth: I64) -> tuple[I64, I64, I64]: ...
    def ends_before(self, limit: int) -> tuple[I64, I64, I64]: ...

class OpenSlices:
    def __init__(self, threads: int) -> None: ...
    def settle(
        self, what: I64, thread: I64, parent: I64, row: I64, until: I64, times: I64
    ) -> tuple[I64, I64]: ...
    def rest(self) -> I64: ...
