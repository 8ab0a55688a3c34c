"""Big-endian records as a little-endian machine writes them."""

from __future__ import annotations

from fx_xray.format import (
    BIG,
    BUFFER_EXTENTS,
    CALL_ARGUMENT,
    CUSTOM_EVENT,
    NEW_BUFFER,
    NEW_CPU,
    PID,
    TSC_WRAP,
    TYPED_EVENT,
    WALL_TIME,
)
from fx_xray.read.scan import Bytes
from fx_xray.read.timeline import Stretches
from fxframework.kernels.annotations import Array, Fallible, View, i64, u8, void
from fxframework.kernels.kernel import Kernel

__all__ = ["Normalise"]


class Normalise(Kernel):
    """Writes the sound records of big-endian ``data`` into ``out``, each at its own place.

    Payloads and padding stay as they are in ``out``, which is a copy of ``data``.
    """

    bytes: Bytes
    data: View[u8]
    out: Array[u8]
    stretches: Stretches
    version: i64
    order: i64
    count: i64

    def __init__(
        self, data: memoryview, out: memoryview, stretches: Stretches, *, version: int, order: int
    ) -> None:
        self.bytes = Bytes(data, big=True)
        self.data = self.bytes.data
        self.out = memoryview(out)
        self.stretches = stretches
        self.version = version
        self.order = order
        self.count = len(stretches.start)

    def step(self) -> Fallible[i64]:
        """Normalise all stretches."""
        row = 0
        while row < self.count:
            at = self.stretches.start[row]
            while at < self.stretches.stop[row]:
                first = self.data[at]
                if (first >> 7 if self.order == BIG else first & 1) == 0:
                    at = self.function(at)
                else:
                    at = self.metadata(at, first & 0x7F if self.order == BIG else first >> 1)
            row += 1
        return 0

    def reverse(self, at: i64, nbytes: i64) -> void:
        """Write a field the other way round."""
        index = 0
        while index < nbytes:
            self.out[at + index] = self.data[at + nbytes - 1 - index]
            index += 1

    def function(self, at: i64) -> i64:
        """Normalise a function record; return where the next one is."""
        word = self.bytes.number(at, 4)
        if self.order == BIG:
            word = (word >> 28 & 7) << 1 | (word & 0xFFFFFFF) << 4
        word &= ~1
        index = 0
        while index < 4:
            self.out[at + index] = (word >> (8 * index)) & 0xFF
            index += 1
        self.reverse(at + 4, 4)
        return at + 8

    def metadata(self, at: i64, kind: i64) -> i64:
        """Normalise a metadata record; return where the next record is."""
        self.out[at] = kind << 1 | 1
        if kind in (NEW_BUFFER, PID):
            self.reverse(at + 1, 4)
        elif kind in (TSC_WRAP, CALL_ARGUMENT, BUFFER_EXTENTS):
            self.reverse(at + 1, 8)
        elif kind == NEW_CPU:
            self.reverse(at + 1, 2)
            self.reverse(at + 3, 8)
        elif kind == WALL_TIME:
            self.reverse(at + 1, 8)
            self.reverse(at + 9, 4)
        elif kind in (CUSTOM_EVENT, TYPED_EVENT):
            self.reverse(at + 1, 4)
            if self.version >= 5:
                self.reverse(at + 5, 4)
                if kind == TYPED_EVENT:
                    self.reverse(at + 9, 2)
            else:
                self.reverse(at + 5, 8)
                if kind == TYPED_EVENT or self.version == 4:
                    self.reverse(at + 13, 2)
            return at + 16 + self.bytes.number(at + 1, 4)
        return at + 16
