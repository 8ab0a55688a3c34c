"""Hypothesis strategies for hostile inputs: truncated, damaged, or random."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hypothesis import strategies as st

__all__ = ["bit_flips", "byte_strings", "every_truncation", "truncations"]

WORD = 8
FILLERS = (b"\0", b"\xff", b"\x80", b"\x01\0\0\0\0\0\0\0", b"\xff\xff\xff\xff\xff\xff\xff\x7f")


def every_truncation(data: bytes) -> Iterator[bytes]:
    """Yield every proper prefix of ``data``, shortest first; ``len(data)`` of them."""
    return (data[:size] for size in range(len(data)))


def truncations(*samples: bytes) -> st.SearchStrategy[bytes]:
    """Return a strategy of proper prefixes of the samples, half of them near word boundaries.

    Raises ValueError if all samples are empty.
    """
    useful = [sample for sample in samples if sample]
    if not useful:
        raise ValueError("only a sample of at least one byte can be cut short")

    def cuts(sample: bytes) -> st.SearchStrategy[bytes]:
        largest_size = len(sample) - 1
        anywhere = st.integers(0, largest_size)
        near_word = st.tuples(st.integers(0, largest_size // WORD), st.integers(-1, 1)).map(
            lambda pair: min(max(pair[0] * WORD + pair[1], 0), largest_size)
        )
        return st.one_of(anywhere, near_word).map(lambda size: sample[:size])

    return st.sampled_from(useful).flatmap(cuts)


def bit_flips(*samples: bytes, most: int = 8) -> st.SearchStrategy[bytes]:
    """Return a strategy of samples with 1 to ``most`` flipped bits.

    Raises ValueError if all samples are empty.
    """
    useful = [sample for sample in samples if sample]
    if not useful:
        raise ValueError("only a sample of at least one byte has bits to flip")

    def flipped(sample: bytes) -> st.SearchStrategy[bytes]:
        places = st.sets(st.integers(0, 8 * len(sample) - 1), min_size=1, max_size=most)
        return places.map(lambda bits: _flip(sample, bits))

    return st.sampled_from(useful).flatmap(flipped)


def byte_strings(samples: Sequence[bytes] = (), *, most: int = 4096) -> st.SearchStrategy[bytes]:
    """Return a strategy of any bytes, at most ``most`` of them.

    Some are arbitrary; some begin with a prefix of a sample, so that a reader gets past its magic;
    some are combined from parts of samples, fillers and arbitrary bytes.
    """
    arbitrary = st.binary(max_size=min(most, 256))
    fillers = st.tuples(st.sampled_from(FILLERS), st.integers(1, 32)).map(
        lambda filler: filler[0] * filler[1]
    )
    pieces = [arbitrary, fillers]
    useful = [sample for sample in samples if sample]
    if useful:

        def stretches(sample: bytes) -> st.SearchStrategy[bytes]:
            size = len(sample)
            ends = st.tuples(st.integers(0, size), st.integers(0, size)).map(sorted)
            return ends.map(lambda pair: sample[pair[0] : pair[1]])

        def starts(sample: bytes) -> st.SearchStrategy[bytes]:
            return st.integers(0, len(sample)).map(lambda size: sample[:size])

        pieces += [st.sampled_from(useful).flatmap(stretches)]
        beginnings = st.sampled_from(useful).flatmap(starts)
    else:
        beginnings = st.just(b"")
    remainders = st.lists(st.one_of(pieces), max_size=8).map(b"".join)
    patched = st.tuples(beginnings, remainders).map(lambda pair: (pair[0] + pair[1])[:most])
    return st.one_of(arbitrary, patched)


def _flip(data: bytes, bits: set[int]) -> bytes:
    out = bytearray(data)
    for bit in bits:
        out[bit >> 3] ^= 1 << (bit & 7)
    return bytes(out)
