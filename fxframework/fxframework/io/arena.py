"""Arena: memory for bulk columns, reused once the columns are freed.

Fresh memory costs a page fault and zeroing per page, about as much as decoding into it; a program
that decodes many captures pays that once. At most ``KEEP`` bytes of free blocks are kept, or what
``keep()`` says; ``release()`` returns them to the system.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import mmap
import os
import threading
import weakref
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

__all__ = ["KEEP", "KEEP_OF_ONE", "empty", "keep", "keep_small", "release"]

SMALL = 1 << 20
"""Arrays of fewer bytes come from numpy's allocator."""
GRAIN = 2 << 20
"""Block sizes are multiples of this, the size of a huge page in bytes."""
KEEP = 512 << 20
"""The most bytes of free blocks to keep by default."""
SLACK = 8
"""Free blocks may add this part of the most bytes in use to them."""
KEEP_OF_ONE = 16 << 20
"""The same for a program that reads one capture: the blocks of a few batches."""
HEAP = 64 << 20
"""Free bytes that ``keep_small`` lets the C library keep: the columns of a few blocks."""
IN_HEAP = 8 << 20
"""Arrays of fewer bytes come from its heap then, others from the system."""
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
"""Parameters of glibc's ``mallopt``."""
CHOSEN = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")
"""Variables of the environment by which users choose them."""

_kept = KEEP
_free: list[mmap.mmap] = []
_used = 0
"""Bytes of blocks that are not free."""
_most = 0
"""The most that they ever were."""
_lock = threading.RLock()


def empty(size: int, dtype: DTypeLike) -> NDArray[Any]:
    """Return an uninitialized array of shape (size,)."""
    kind = np.dtype(dtype)
    nbytes = size * kind.itemsize
    if nbytes < SMALL:
        return np.empty(size, kind)
    block = _take(nbytes)
    array = np.frombuffer(block, kind, size)
    # Views keep the array alive, so the block is reused only after the last view is freed.
    weakref.finalize(array, _give_back, block).atexit = False
    return array


def keep(nbytes: int) -> None:
    """Keep at most so many bytes of free blocks from now on."""
    global _kept  # noqa: PLW0603 (of the process, as the blocks are)
    with _lock:
        _kept = nbytes
        if sum(map(len, _free)) > nbytes:
            _free.clear()


@functools.cache
def keep_small() -> None:
    """Let the C library keep ``HEAP`` bytes that numpy's arrays have freed, from now on.

    By default glibc returns most of them to the system, and numpy asks for them again a moment
    later: reading records by the block then takes twice the time. Users' own choice counts, and
    with another C library nothing happens.
    """
    if any(name in os.environ for name in CHOSEN):
        return
    with contextlib.suppress(OSError, AttributeError):  # it is not glibc
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(TRIM_THRESHOLD, HEAP)
        mallopt(MMAP_THRESHOLD, IN_HEAP)


def release() -> None:
    """Return all free blocks to the system."""
    with _lock:
        _free.clear()


def _take(nbytes: int) -> mmap.mmap:
    global _used, _most  # noqa: PLW0603 (of the process, as the blocks are)
    with _lock:
        fitting = [block for block in _free if nbytes <= len(block) <= 2 * nbytes]
        size = min(map(len, fitting), default=-(-nbytes // GRAIN) * GRAIN)
        _used += size
        _most = max(_used, _most)
        if fitting:
            block = min(fitting, key=len)
            _free.remove(block)
            return block
        # Drop free blocks: at a new peak all that add to it, else those that make it much higher.
        bound = _most if _used == _most else _most + _most // SLACK
        while _free and _used + sum(map(len, _free)) > bound:
            del _free[0]
    if hasattr(mmap, "MAP_PRIVATE"):
        # Shared memory, the default, has no huge pages and faults once per 4 KiB.
        block = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    else:
        block = mmap.mmap(-1, size)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # a kernel without huge pages
            block.madvise(mmap.MADV_HUGEPAGE)
    return block


def _give_back(block: mmap.mmap) -> None:
    global _used  # noqa: PLW0603 (likewise)
    with _lock:
        _used -= len(block)
        if sum(map(len, _free)) + len(block) <= _kept:
            _free.append(block)
