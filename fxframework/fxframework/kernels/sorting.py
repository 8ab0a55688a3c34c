"""Orders and places of many numbers: stable sorting, several times as fast as numpy's, and runs."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fxframework.kernels.arrays import I32, I64, U64
from fxframework.kernels.buffers import gathered
from fxframework.kernels.calls import toured

WORD_BITS = 64
RADIX_BITS = 16
"""Bits of a digit: numbers that numpy sorts by radix."""
LONG_RUN = 256
"""Numbers of an ascending run with which merging the runs is faster than sorting all."""
ROOMY = 1 << 16
"""Numbers are looked up in a table if their range is no longer than this, or than four times
their count."""
GREATEST = np.iinfo(np.int64).max


def stable_order(keys: NDArray[np.signedinteger[Any]]) -> I64 | None:
    """Return ``numpy.argsort(keys, kind="stable")``, faster; None if the keys are in order."""
    return order_and_keys(keys)[0]


def largest(values: NDArray[Any], count: int) -> I64:
    """Return the indices of the ``count`` largest values, ascending; of equal ones the first."""
    if values.size <= count:
        return np.arange(values.size)
    place = values.size - count - 1
    next_largest = np.partition(values, place)[place]
    is_chosen = values > next_largest
    equal = np.flatnonzero(values == next_largest)
    is_chosen[equal[: count - np.count_nonzero(is_chosen)]] = True
    return np.flatnonzero(is_chosen)


def order_and_keys(
    keys: NDArray[np.signedinteger[Any]],
) -> tuple[I64 | None, NDArray[Any] | None]:
    """Return the same, and the keys in that order, or None where sorting did not bring them."""
    descents = int(np.count_nonzero(keys[1:] < keys[:-1]))
    if not descents:
        return None, keys
    if descents == keys.size - 1:
        from_last_to_first = np.arange(keys.size - 1, -1, -1)
        return from_last_to_first, np.flip(keys).copy()
    keys = keys.astype(np.int64, copy=False)
    lowest = keys.min()
    # Differences wrap where keys are far apart, and are right all the same without a sign.
    above_lowest = keys.view(np.uint64) - lowest.view(np.uint64)
    key_bits = int(above_lowest.max()).bit_length()
    free_bits = WORD_BITS - (keys.size - 1).bit_length()
    is_of_long_runs = descents <= keys.size // LONG_RUN
    kind: Literal["stable", "quicksort"] = "stable" if is_of_long_runs else "quicksort"
    if key_bits <= RADIX_BITS or (key_bits <= 2 * RADIX_BITS and not is_of_long_runs):
        return _order_by_digits(above_lowest, key_bits), None
    if key_bits <= free_bits:
        order, in_order = _order_beside_rows(above_lowest, kind)
        return order, in_order.view(np.int64) + lowest
    # By the lower bits first, then by the upper ones, which leaves equal ones as they are.
    upper = above_lowest >> np.uint64(free_bits)
    above_lowest &= np.uint64((1 << free_bits) - 1)
    by_lower, _ = _order_beside_rows(above_lowest, kind)
    by_upper, _ = _order_beside_rows(upper[by_lower], kind)
    return by_lower[by_upper], None


def _order_by_digits(keys: U64, bits: int) -> I64:
    """Return the stable order of keys of so many bits: by the lowest digit, then by the others."""
    order = np.argsort(keys.astype(np.uint16), kind="stable")
    for shift in range(RADIX_BITS, bits, RADIX_BITS):
        digits = (keys >> np.uint64(shift)).astype(np.uint16)
        order = order.take(np.argsort(digits.take(order), kind="stable"))
    return order


def _order_beside_rows(keys: U64, kind: Literal["stable", "quicksort"]) -> tuple[I64, U64]:
    """Return the stable order of keys, and the keys in that order.

    A key and its row share a word: numpy sorts plain numbers many times as fast as by argsort, and
    no two words are equal. The keys are overwritten. A stable sort merges runs that ascend.
    """
    row_bits = np.uint64((keys.size - 1).bit_length())
    keys <<= row_bits
    keys |= np.arange(keys.size, dtype=np.uint64)
    keys.sort(kind=kind)
    low_bits = np.uint64((1 << int(row_bits)) - 1)
    order = (keys & low_bits).view(np.int64)
    keys >>= row_bits
    return order, keys


def begins_of_runs(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where a value differs from the one before it, as the first one does."""
    begins = np.ones(values.size, np.bool_)
    np.not_equal(values[1:], values[:-1], out=begins[1:])
    return begins


def ends_of_runs(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where a value differs from the one behind it, as the last one does."""
    ends = np.ones(values.size, np.bool_)
    np.not_equal(values[1:], values[:-1], out=ends[:-1])
    return ends


def run_of(ascending: NDArray[Any], number: int) -> slice:
    """Return where a number is among others, which ascend; an empty slice if it is not there."""
    return slice(*np.searchsorted(ascending, [number, number + 1]).tolist())


def places_among(numbers: NDArray[Any], ascending: NDArray[Any]) -> I64:
    """Return the places of numbers among others, which ascend; -1 of those that are not there."""
    if not ascending.size:
        return np.full(numbers.size, -1)
    first_not_less = np.searchsorted(ascending, numbers)
    places = np.minimum(first_not_less, ascending.size - 1)
    return np.where(ascending[places] == numbers, places, -1)


def dense(values: NDArray[Any]) -> tuple[I32, NDArray[Any]]:
    """Return the index of each value among the distinct values, and these, ascending."""
    if not values.size:
        return np.zeros(0, np.int32), np.zeros(0, values.dtype)
    if values.dtype.kind == "b":
        values = values.view(np.uint8)
    low = int(values.min())
    high = int(values.max())
    largest_dense_range = max(ROOMY, 4 * values.size)
    is_sparse = high - low > largest_dense_range
    if is_sparse or high > GREATEST:
        distinct, index_of_value = np.unique(values, return_inverse=True)
        return index_of_value.reshape(-1).astype(np.int32), distinct
    offset_of_value = np.subtract(values, low, dtype=np.int64, casting="unsafe")
    is_present = np.zeros(high - low + 1, np.bool_)
    is_present[offset_of_value] = True
    offsets = np.flatnonzero(is_present)
    index_of_offset = np.zeros(is_present.size, np.int32)
    index_of_offset[offsets] = np.arange(offsets.size, dtype=np.int32)
    indexes = gathered(index_of_offset, offset_of_value)
    return indexes, offsets + low


def joined_ranges(begins: I64, counts: I64, step: int = 1) -> I64:
    """Return the numbers from each begin on, so many each: of 5 and 9, 2 and 1 it is 5 6 9.

    The numbers of one range are ``step`` apart.
    """
    numbers_before = np.cumsum(counts) - counts
    numbers: I64 = np.repeat(begins - step * numbers_before, counts)
    numbers += step * np.arange(numbers.size)
    return numbers


def outermost(around: I64) -> I64:
    """Return the outermost of all that is around each: of 0 0 1 3, which is 2 in 1 in 0, 0 0 0 3.

    ``around`` has the index of what is directly around each, or its own, of shape (n,).
    """
    # From parent to grandparent to the fourth ancestor and so on, until all are outermost. Damaged
    # parents may go in a circle: these stay in it.
    for _ in range(around.size.bit_length() + 1):
        further = around[around]
        if np.array_equal(further, around):
            break
        around = further
    return around


def outer_first(times: I64, parents: I64) -> I64:
    """Return the rows of slices by time, those that enclose others first; a parent of -1 is none.

    Both have the shape (slices,). In a trace, complete events may follow the slices that they
    enclose.
    """
    rows = np.arange(times.size)
    is_tied = (parents >= 0) & (times[parents] == times)
    if (is_tied & (parents > rows)).any():
        # Slices that begin at one time are where the outermost of them is, parents first.
        places, _, _ = toured(np.where(is_tied, parents, -1))
        return np.lexsort((places, times))
    if bool((times[1:] >= times[:-1]).all()):
        return rows
    return np.argsort(times, kind="stable")
