"""Damaged captures for benchmarks."""

from __future__ import annotations

import numpy as np

__all__ = ["damaged"]


def damaged(data: bytes, every: int) -> bytes:
    """Return the bytes with every ``every``-th one inverted, except the first."""
    out = np.frombuffer(data, np.uint8).copy()
    out[every::every] ^= 0xFF
    return out.tobytes()
