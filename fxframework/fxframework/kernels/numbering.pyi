from numpy.typing import NDArray

import numpy as np

I64 = NDArray[np.int64]

class Numbering:
    count: int
    def enter(self, numbers: I64) -> I64: ...
    def find(self, numbers: I64) -> I64: ...
