"""The secret numbers of hash functions: nobody can choose keys that all fall in one place."""

from __future__ import annotations

import secrets

__all__ = ["FIRST", "SECOND", "SEED"]

SEED = secrets.randbits(64)
FIRST = secrets.randbits(64) | 1
SECOND = secrets.randbits(64) | 1
