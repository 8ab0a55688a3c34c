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
"""Used and free blocks together may exceed the peak of the used ones by one part in ``SLACK``."""
KEEP_OF_ONE = 16 << 20
"""The most to keep in a program that reads one capture: the blocks of a few batches."""
HEAP = 64 << 20
"""Free bytes that ``keep_small`` lets the C library keep: the columns of a few blocks."""
IN_HEAP = 8 << 20
"""After ``keep_small``, arrays of fewer bytes come from the heap, others from the system."""
TRIM_THRESHOLD = -1
"""glibc's ``M_TRIM_THRESHOLD``: free bytes at the end of the heap that are not returned."""
MMAP_THRESHOLD = -3
"""glibc's ``M_MMAP_THRESHOLD``: the size from which an allocation bypasses the heap."""
TUNING_VARIABLES = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")
"""Environment variables by which users set these two."""

_keep_bytes = KEEP
"""The most bytes of free blocks to keep."""
_free_blocks: list[mmap.mmap] = []
_used_bytes = 0
"""Bytes of blocks that are not free."""
_peak_bytes = 0
"""The highest value of ``_used_bytes`` so far."""
# Reentrant: the garbage collector may run ``_give_back`` in a thread that holds the lock.
_lock = threading.RLock()


def empty(size: int, dtype: DTypeLike) -> NDArray[Any]:
    """Return an uninitialized array of shape (size,)."""
    element_type = np.dtype(dtype)
    nbytes = size * element_type.itemsize
    if nbytes < SMALL:
        return np.empty(size, element_type)
    block = _take(nbytes)
    array = np.frombuffer(block, element_type, size)
    # Views keep the array alive, so the block is reused only after the last view is freed.
    weakref.finalize(array, _give_back, block).atexit = False
    return array


def keep(nbytes: int) -> None:
    """Keep at most ``nbytes`` bytes of free blocks from now on."""
    global _keep_bytes  # noqa: PLW0603 (of the process, as the blocks are)
    with _lock:
        _keep_bytes = nbytes
        if _bytes_free() > nbytes:
            _free_blocks.clear()


@functools.cache
def keep_small() -> None:
    """Let the C library keep ``HEAP`` bytes that numpy's arrays have freed, from now on.

    By default glibc returns most of them to the system, and numpy asks for them again a moment
    later: reading records by the block then takes twice the time. Settings of the user take
    precedence, and C libraries other than glibc are left alone.
    """
    if any(name in os.environ for name in TUNING_VARIABLES):
        return
    with contextlib.suppress(OSError, AttributeError):  # not glibc
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(TRIM_THRESHOLD, HEAP)
        mallopt(MMAP_THRESHOLD, IN_HEAP)


def release() -> None:
    """Return all free blocks to the system."""
    with _lock:
        _free_blocks.clear()


def _bytes_free() -> int:
    """Return the total size of the free blocks. The caller holds the lock."""
    return sum(map(len, _free_blocks))


def _take(nbytes: int) -> mmap.mmap:
    """Return a block of at least ``nbytes``: a free one, or a new one."""
    global _used_bytes, _peak_bytes  # noqa: PLW0603 (of the process, as the blocks are)
    block_size = -(-nbytes // GRAIN) * GRAIN
    with _lock:
        # A block of more than twice the size would occupy memory that the array does not need.
        fitting_blocks = [block for block in _free_blocks if nbytes <= len(block) <= 2 * nbytes]
        smallest_block = min(fitting_blocks, key=len, default=None)
        if smallest_block is not None:
            block_size = len(smallest_block)
        _used_bytes += block_size
        _peak_bytes = max(_used_bytes, _peak_bytes)
        if smallest_block is not None:
            _free_blocks.remove(smallest_block)
            return smallest_block
        # No free block fits, so they may be useless by now. At a new peak drop them all: what was
        # enough so far is exceeded anyway. Below the peak let them exceed it by a little.
        most_bytes = _peak_bytes
        if _used_bytes < _peak_bytes:
            most_bytes += _peak_bytes // SLACK
        while _free_blocks and _used_bytes + _bytes_free() > most_bytes:
            del _free_blocks[0]
    return _new_block(block_size)


def _new_block(block_size: int) -> mmap.mmap:
    """Return memory from the system, in huge pages where it has them."""
    if not hasattr(mmap, "MAP_PRIVATE"):
        return mmap.mmap(-1, block_size)
    # Shared memory, the default, has no huge pages and faults once per 4 KiB.
    block = mmap.mmap(-1, block_size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # a kernel without huge pages
            block.madvise(mmap.MADV_HUGEPAGE)
    return block


def _give_back(block: mmap.mmap) -> None:
    """Keep a block whose last array was freed, unless too many bytes are free already."""
    global _used_bytes  # noqa: PLW0603 (likewise)
    with _lock:
        _used_bytes -= len(block)
        if _bytes_free() + len(block) <= _keep_bytes:
            _free_blocks.append(block)
