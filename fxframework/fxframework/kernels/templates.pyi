from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fxframework.kernels.output import Output

I64: TypeAlias = NDArray[np.int64]
Cell: TypeAlias = bytes | tuple[int, NDArray[np.generic] | int]

class Templates:
    out: Output
    bits: memoryview[int]
    doubles: memoryview[float]
    _numbers: dict[bytes, int]
    version: int
    kinds: memoryview[int]
    places: memoryview[int]
    values: memoryview[int]
    bounds: memoryview[int]
    ends: memoryview[int]
    marks: I64
    parts: int
    row: int
    rows: int
    def __init__(
        self,
        before: bytes,
        between: bytes,
        behind: bytes,
        *,
        special: bytes = ...,
        formulas: bytes = ...,
        width: int = 6,
        source: memoryview = ...,
    ) -> None: ...
    def text(self, text: bytes) -> int: ...
    def texts(self, texts: Sequence[bytes]) -> I64: ...
    def column(self, data: NDArray[np.uint8], bounds: I64) -> I64: ...
    def forget(self, most: int = ...) -> bool: ...
    def forget_columns(self) -> None: ...
    def letters(self) -> NDArray[np.uint8]: ...
    def hold(self, befores: I64, kinds: I64, values: I64, behinds: I64) -> None: ...
    def write(self, rows: int, *parts: Cell) -> tuple[I64, I64]: ...
    def pieces(self, rows: int, *parts: Cell, most: int = ...) -> Iterator[bytes]: ...
    def run(self) -> int: ...

def signed(values: NDArray[Any]) -> NDArray[Any]: ...
