from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from fxframework.kernels.pools import Pool

def codes_of(
    pool: Pool, data: NDArray[np.uint8], starts: NDArray[np.int64], lengths: NDArray[np.int64]
) -> NDArray[np.int32]: ...

I64: TypeAlias = NDArray[np.int64]

class Numbering:
    count: int
    def enter(self, numbers: I64) -> I64: ...
    def find(self, numbers: I64) -> I64: ...
