"""The loops over texts of a file, held against Python's own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fxframework.kernels import stretches
from fxframework.kernels.pools import codes_of
from fxframework.kernels.stretches import TEXT_FLAGS
from fxframework.model.strings import StringPool

PIECES = st.sampled_from([b"", b"\0", b"\0\0\0", b"pid", b"a longer text", "süß".encode(), b"\xff"])
DATA = st.lists(PIECES, max_size=12).map(b"".join)
"""Short, so that most texts end near the end of the data, where no whole word can be loaded."""


def columns(*numbers: list[int]) -> list[np.ndarray]:
    return [np.array(column, np.int64) for column in numbers]


def is_utf8(octets: bytes) -> bool:
    try:
        octets.decode()
    except UnicodeDecodeError:
        return False
    return True


@given(data=DATA, random=st.randoms(use_true_random=False), unit=st.sampled_from([1, 2, 8]))
def test_texts_are_seen_with_the_padding_behind_them(data: bytes, random, unit: int) -> None:  # type: ignore[no-untyped-def]
    rows = []
    for _ in range(8):
        start = random.randint(0, len(data))
        stated, limit = random.randint(-1, len(data) + 1), random.randint(0, len(data))
        rows.append((start, stated, limit, random.randint(0, start)))
    starts, stated, limits, origins = columns(*map(list, zip(*rows, strict=True)))
    octets = np.frombuffer(data, np.uint8)
    lengths, ends, flags = stretches.texts(octets, starts, stated, limits, origins, unit)
    for row, (start, size, limit, origin) in enumerate(rows):
        expected = set()
        if not 0 <= size <= limit - start:
            expected.add("beyond")
            size = 0
        end = start + size
        gap = (origin - end) % unit
        if gap > max(0, limit - end):
            expected.add("cut off")
            gap = max(0, limit - end)
        if not is_utf8(data[start:end]):
            expected.add("not utf8")
        if any(data[end : end + gap]):
            expected.add("stray bits")
        assert (lengths[row], ends[row]) == (size, end + gap)
        found = 0 if flags is None else int(flags[row])
        assert {name for name, bit in TEXT_FLAGS.items() if found & bit} == expected


def test_texts_outside_of_the_data_are_refused() -> None:
    octets = np.zeros(8, np.uint8)
    for start, limit in ((-1, 8), (9, 9), (0, 9)):
        with pytest.raises(IndexError, match="of 8"):
            stretches.texts(octets, *columns([start], [0], [limit], [0]), 8)
    with pytest.raises(ValueError, match="power of two"):
        stretches.texts(octets, *columns([0], [0], [8], [0]), 3)


@given(data=DATA, random=st.randoms(use_true_random=False))
def test_bytes_of_stretches_are_told_up_to_the_end_of_the_data(data: bytes, random) -> None:  # type: ignore[no-untyped-def]
    starts, lengths = [], []
    for _ in range(10):
        starts.append(random.randint(0, len(data)))
        lengths.append(random.randint(0, len(data) - starts[-1]))
    octets = np.frombuffer(data, np.uint8)
    pieces = [data[start : start + size] for start, size in zip(starts, lengths, strict=True)]
    places = columns(starts, lengths)
    assert stretches.with_bits(octets, *places).tolist() == [any(piece) for piece in pieces]
    assert stretches.not_utf8(octets, *places).tolist() == [not is_utf8(each) for each in pieces]
    strings = StringPool()
    codes = codes_of(strings.pool, octets, *places)
    assert [strings.bytes_of(code) for code in codes.tolist()] == pieces
    # A text gets the next number where it is first, whether it is remembered or looked up.
    order = list(dict.fromkeys([b"", *pieces]))
    assert [strings.bytes_of(code) for code in range(len(order))] == order
