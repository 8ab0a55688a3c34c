# cython: boundscheck=True, show_performance_hints=False
"""Codes: the texts of a file, entered into the pool of strings many at a time."""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcpy

from fxframework.kernels.pools cimport Pool

import numpy as np


def codes_of(Pool pool, const uint8_t[::1] data, const int64_t[::1] starts,
             const int64_t[::1] lengths):
    """Return the codes of stretches of ``data``, int32 of their shape, in the order of entering.

    Places and lengths are int64. A stretch that is not within the data raises IndexError.
    """
    out = np.empty(starts.shape[0], np.int32)
    cdef int32_t[::1] codes = out
    cdef int64_t row, start, length
    longest = np.max(lengths, initial=0)
    words = np.zeros((longest + 7) // 8 + 1, np.int64)
    cdef int64_t[::1] scratch = words
    pool.read_from(words.data)
    for row in range(starts.shape[0]):
        start, length = starts[row], lengths[row]
        if start < 0 or length < 0 or length > data.shape[0] - start:
            raise IndexError(f"bytes {start} to {start + length} of {data.shape[0]}")
        if length:
            memcpy(&scratch[0], &data[start], length)  # safe: checked, and the longest fits
        codes[row] = <int32_t>pool.intern(0, length)
    return out
