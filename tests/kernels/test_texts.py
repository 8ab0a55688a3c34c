"""The loops over texts of a file, held against Python's own."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fxframework.kernels import stretches
from fxframework.kernels.pools import codes_of
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
