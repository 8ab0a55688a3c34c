"""Random parameters of hash functions, so that an input cannot provoke collisions."""

from __future__ import annotations

import secrets

SEED = secrets.randbits(64)
FIRST = secrets.randbits(64) | 1
SECOND = secrets.randbits(64) | 1
