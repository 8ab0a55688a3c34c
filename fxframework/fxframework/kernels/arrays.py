"""Types of numpy arrays, by what their elements are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
U64 = NDArray[np.uint64]
F64 = NDArray[np.float64]
Bools = NDArray[np.bool_]
Codes = I32
"""Codes of texts in a string pool."""
