"""What a trace says of the time of day."""

from __future__ import annotations

import struct

from fx_trace.read.capture import TraceCapture
from fxframework.io.limits import Limits
from fxframework.io.source import Source
from fxframework.model.capture import OpenRequest

from ...cases import cases

MAGIC = bytes.fromhex("1000044678541600")


def clock(rate: int, *more: int) -> bytes:
    """An initialization record, with the base tick and the wall time at it if they are given."""
    words = [1 | (2 + len(more)) << 4, rate, *more]
    return struct.pack(f"<{len(words)}Q", *words)


@cases(
    ("records", "offset"),
    [
        ((), None),
        ((clock(1_000_000),), None),
        ((clock(1_000_000, 500, 1_650_000_000_000_000_007),), 1_650_000_000_000_000_007),
        ((clock(1_000), clock(2_000, 5, 77), clock(3_000, 6, 88)), 77),
        ((clock(1_000, 5, 0),), 0),
    ],
)
@cases("memory", [0, 1])
def test_the_first_clock_that_says_it(
    records: tuple[bytes, ...], offset: int | None, memory: int
) -> None:
    """Time 0 of a capture is the base of its clock, so that the wall time there is the offset."""
    request = OpenRequest(limits=Limits(max_memory=memory))
    with TraceCapture(Source.open(MAGIC + b"".join(records)), request) as capture:
        assert capture.utc_offset_ns == offset
        assert capture.between(0, 1).utc_offset_ns == offset
