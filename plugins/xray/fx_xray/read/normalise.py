"""Big-endian records as a little-endian machine writes them."""

from __future__ import annotations

from fx_xray.format import (
    BIG,
    BIG_FUNCTION_ID,
    BIG_FUNCTION_KIND,
    BIG_IS_METADATA,
    BIG_METADATA_KIND,
    CUSTOM_EVENT,
    FUNCTION_BYTES,
    FUNCTION_DELTA_AT,
    FUNCTION_ID,
    FUNCTION_KIND,
    IS_METADATA,
    META,
    METADATA_BYTES,
    METADATA_KIND,
    SIZE_AT,
    TYPED_EVENT,
    MetadataKind,
    Now,
    class_of,
)
from fx_xray.read.scan import Bytes
from fx_xray.read.timeline import Stretches
from fxframework.io.words import BYTE_0
from fxframework.kernels.annotations import Array, Fallible, View, i64, u8, void
from fxframework.kernels.buffers import full
from fxframework.kernels.kernel import Kernel

__all__ = ["Normalise"]

BYTE = 8
FIELDS = 4
"""Numbers of a metadata record, at most, and one more."""


class Normalise(Kernel):
    """Writes the sound records of big-endian ``data`` into ``out``, each at its own place.

    Payloads and padding stay as they are in ``out``, which is a copy of ``data``.
    """

    bytes: Bytes
    data: View[u8]
    out: Array[u8]
    stretches: Stretches
    order: i64
    count: i64
    offsets: Array[i64]
    sizes: Array[i64]

    def __init__(
        self, data: memoryview, out: memoryview, stretches: Stretches, *, version: int, order: int
    ) -> None:
        self.bytes = Bytes(data, big=True)
        self.data = self.bytes.data
        self.out = memoryview(out)
        self.stretches = stretches
        self.order = order
        self.count = len(stretches.start)
        self.offsets = full(FIELDS * len(MetadataKind), "i8")
        self.sizes = full(FIELDS * len(MetadataKind), "i8")
        for kind in MetadataKind:
            places = class_of(kind, {Now.VERSION: version}).layout.places().values()
            fields = [place for place in places if place.offset]
            for number, place in enumerate(fields, FIELDS * kind):
                self.offsets[number], self.sizes[number] = place.offset, place.nbytes

    def step(self) -> Fallible[i64]:
        """Normalise all stretches."""
        row = 0
        while row < self.count:
            at = self.stretches.start[row]
            while at < self.stretches.stop[row]:
                first = self.data[at]
                big = self.order == BIG
                if not (BIG_IS_METADATA.get(first) if big else IS_METADATA.get(first)):
                    at = self.function(at)
                else:
                    kind = BIG_METADATA_KIND.get(first) if big else METADATA_KIND.get(first)
                    at = self.metadata(at, kind)
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
            kind = BIG_FUNCTION_KIND.get(word)
            word = FUNCTION_KIND.put(kind) | FUNCTION_ID.put(BIG_FUNCTION_ID.get(word))
        word &= ~IS_METADATA.put(META)
        index = 0
        while index < FUNCTION_DELTA_AT:
            self.out[at + index] = BYTE_0.get(word >> BYTE * index)
            index += 1
        self.reverse(at + FUNCTION_DELTA_AT, 4)
        return at + FUNCTION_BYTES

    def metadata(self, at: i64, kind: i64) -> i64:
        """Normalise a metadata record; return where the next record is."""
        self.out[at] = IS_METADATA.put(META) | METADATA_KIND.put(kind)
        field = kind * FIELDS
        while self.sizes[field]:
            self.reverse(at + self.offsets[field], self.sizes[field])
            field += 1
        at += METADATA_BYTES
        if kind == CUSTOM_EVENT or kind == TYPED_EVENT:
            at += self.bytes.number(at - METADATA_BYTES + SIZE_AT, 4)
        return at
