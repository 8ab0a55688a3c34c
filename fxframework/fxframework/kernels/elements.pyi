from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

I64: TypeAlias = NDArray[np.int64]

FULL: int
CLOSED: int
ENDED: int
OPEN: int

def elements(data: NDArray[np.uint8], at: int, starts: I64, stops: I64) -> tuple[int, int, int]: ...
