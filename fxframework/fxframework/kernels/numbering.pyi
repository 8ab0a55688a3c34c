from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

I64: TypeAlias = NDArray[np.int64]

class Numbering:
    count: int
    def enter(self, numbers: I64) -> I64: ...
    def find(self, numbers: I64) -> I64: ...
