"""Damaged captures for benchmarks: bytes that readers report as damaged."""

from __future__ import annotations

import numpy as np

__all__ = ["damaged"]


def damaged(data: bytes, every: int) -> bytes:
    """The bytes with one in ``every`` so many inverted, after the first such stretch."""
    out = np.frombuffer(data, np.uint8).copy()
    out[every::every] ^= 0xFF
    return out.tobytes()
