from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

I64: TypeAlias = NDArray[np.int64]
U8: TypeAlias = NDArray[np.uint8]
Mask: TypeAlias = NDArray[np.bool_]

def trimmed(data: U8, starts: I64, lengths: I64, byte: int) -> I64: ...
def found(data: U8, starts: I64, lengths: I64, byte: int) -> I64: ...
def with_bits(data: U8, starts: I64, lengths: I64) -> Mask: ...
def not_utf8(data: U8, starts: I64, lengths: I64) -> Mask: ...

TEXT_FLAGS: dict[str, int]

def texts(
    data: U8, starts: I64, stated: I64, limits: I64, origins: I64, unit: int
) -> tuple[I64, I64, U8 | None]: ...
def copied(source: U8, starts: I64, offsets: I64, out: U8) -> bool: ...
