"""Substitutes for the module ``cython``, for plain kernels without Cython."""

from __future__ import annotations

import contextlib

__all__ = ["compiled", "nogil"]

compiled = False
nogil = contextlib.nullcontext()
