# cython: boundscheck=True, wraparound=False, show_performance_hints=False
"""Stretches: what is asked of many stretches of a file at once.

All arrays are one-dimensional and contiguous; places and lengths are int64. A stretch that is not
within the data raises IndexError.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

from fxframework.kernels.pools cimport is_utf8

import numpy as np

cdef uint64_t HIGH_BITS = 0x8080808080808080


cdef inline uint64_t every_bit(const uint8_t* octets, int64_t length, int64_t behind) noexcept nogil:
    """Return the bits of all words of a stretch, or'ed; ``behind`` bytes follow it in the data."""
    cdef uint64_t word, every = 0
    cdef int64_t index
    while length >= 8:
        memcpy(&word, octets, 8)
        every |= word
        octets += 8
        length -= 8
    if not length:
        return every
    if length + behind >= 8:
        # Most texts are short, of a length that no processor foresees: one masked word, no loop.
        memcpy(&word, octets, 8)
        return every | word & ((<uint64_t>1 << 8 * length) - 1)
    for index in range(length):
        every |= <uint64_t>octets[index] << 8 * index
    return every


cdef enum:
    # Questions of ``answers_to``.
    TRIMMED, FIRST, HAS_BITS, IS_WRONG


cdef object answers_to(int question, const uint8_t[::1] data, const int64_t[::1] starts,
                       const int64_t[::1] lengths, int byte):
    """Return the answers to a question, int64 of shape (stretches,)."""
    out = np.empty(starts.shape[0], np.int64)
    cdef int64_t[::1] answers = out
    cdef int64_t row, start, length, behind, answer
    cdef const uint8_t* octets
    for row in range(starts.shape[0]):
        start, length = starts[row], lengths[row]
        if length < 0 or start < 0 or length > data.shape[0] - start:
            raise IndexError(f"bytes {start} to {start + length} of {data.shape[0]}")
        # With this, all bytes of the stretch are within the data.
        octets = &data[start] if length else NULL
        behind = data.shape[0] - start - length
        answer = 0
        if question == TRIMMED:
            answer = length
            while answer and octets[answer - 1] == byte:
                answer -= 1
        elif question == FIRST:
            while answer < length and octets[answer] != byte:
                answer += 1
            answer = start + answer if answer < length else -1
        elif question == HAS_BITS:
            answer = every_bit(octets, length, behind) != 0
        elif every_bit(octets, length, behind) & HIGH_BITS:
            answer = not is_utf8(octets, length)
        answers[row] = answer
    return out


def trimmed(const uint8_t[::1] data, const int64_t[::1] starts, const int64_t[::1] lengths, int byte):
    """Return the lengths of stretches without the bytes at their ends that are ``byte``."""
    return answers_to(TRIMMED, data, starts, lengths, byte)


def found(const uint8_t[::1] data, const int64_t[::1] starts, const int64_t[::1] lengths, int byte):
    """Return the place of the first ``byte`` in each stretch; -1 if it has none."""
    return answers_to(FIRST, data, starts, lengths, byte)


def with_bits(const uint8_t[::1] data, const int64_t[::1] starts, const int64_t[::1] lengths):
    """Return, as bool, which stretches have a byte that is not zero."""
    return answers_to(HAS_BITS, data, starts, lengths, 0).astype(bool)


def not_utf8(const uint8_t[::1] data, const int64_t[::1] starts, const int64_t[::1] lengths):
    """Return, as bool, which stretches are not UTF-8."""
    return answers_to(IS_WRONG, data, starts, lengths, 0).astype(bool)


def copied(const uint8_t[::1] source, const int64_t[::1] starts, const int64_t[::1] offsets,
           uint8_t[::1] out):
    """Copy stretches of bytes, of shape (n,), to ``offsets``, of shape (n + 1,).

    Return whether all of them are within the source; copies those before the first that is not.
    """
    cdef int64_t row, size
    cdef bint fits = True
    with nogil:
        for row in range(starts.shape[0]):
            size = offsets[row + 1] - offsets[row]
            if size <= 0:
                continue
            if starts[row] < 0 or size > source.shape[0] - starts[row]:
                fits = False
                break
            memcpy(&out[offsets[row]], &source[starts[row]], size)  # safe: the stretch was checked
    return fits
