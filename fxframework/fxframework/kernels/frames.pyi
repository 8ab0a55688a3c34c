from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

I64: TypeAlias = NDArray[np.int64]
U8: TypeAlias = NDArray[np.uint8]
Mask: TypeAlias = NDArray[np.bool_]

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
    splitting: int
    confirm: Callable[[int, int], bool] | None
    total: int
    def __init__(
        self,
        data: NDArray[np.uint8],
        numbers: NDArray[np.int64],
        kinds: NDArray[np.int64],
        prefixes: NDArray[np.int64],
        room: int,
        rule: Any = None,
        behind: Items | None = None,
        joined: U8 | None = None,
    ) -> None: ...
    def read(self, at: int, most: int, end: int) -> tuple[int, int]: ...
    def entry_at(self, at: int) -> int: ...
    def next_fitting(self, at: int, origin: int) -> int: ...

class Items:
    def __init__(
        self,
        size: int,
        head: int,
        pad: int,
        big: bool,
        place: int = 0,
        nbytes: int = 0,
        shift: int = 0,
        mask: int = 0,
        unit: int = 1,
        plus: int = 0,
        sizes: Sequence[int] = (),
        kind_shift: int = 0,
        ways: NDArray[np.int32] | None = None,
        parts: I64 | None = None,
        way_of_others: int = 0,
        heads: I64 | None = None,
        listed: Items | None = None,
    ) -> None: ...
    def walk(
        self, data: U8, starts: I64, places: I64, limits: I64, counts: I64
    ) -> tuple[I64, I64, Mask]: ...
    def chains(self, data: U8, starts: I64, limits: I64) -> I64: ...

class Alignment:
    pos: int
    def __init__(
        self,
        frames: Frames,
        opaque: I64 = ...,
        weak: I64 = ...,
        timed: I64 = ...,
        soon: int = ...,
    ) -> None: ...
    def stretches(self, until: int) -> list[tuple[int, int]]: ...
