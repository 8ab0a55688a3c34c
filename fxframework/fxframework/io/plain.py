"""Substitutes for the module ``cython``, for plain kernels without Cython."""

from __future__ import annotations

import contextlib

__all__ = ["compiled", "nogil"]

compiled = False
"""Whether this is compiled code: never."""
nogil = contextlib.nullcontext()
"""A block that compiled code runs without the interpreter's lock."""
