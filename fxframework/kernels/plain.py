"""What plain kernels need of the module ``cython`` where Cython is not installed."""

from __future__ import annotations

import contextlib

__all__ = ["compiled", "nogil"]

compiled = False
nogil = contextlib.nullcontext()
