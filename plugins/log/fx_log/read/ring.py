"""Ring: where the entries of a ring's image lie, by its first page."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fx_log import format as wire
from fx_log import rules
from fx_log.format import RingHeader
from fxframework.errors import Rule
from fxframework.io.words import WORD
from fxframework.kernels.arrays import I64, U8


class Ring:
    """The ring in an image. Its entries lie in ``used`` bytes from byte ``start`` of the ring on.

    They may wrap around. ``used`` is -1 if head and tail are invalid.
    """

    def __init__(self, image: U8) -> None:
        self.image = image
        self.size = image.size
        self.page = image[: wire.RING_PAGE]
        self.ring = image[wire.RING_PAGE :]
        self.capacity = self.ring.size
        self.head = 0
        self.tail = 0
        self.used = -1
        if self.page.size == wire.RING_PAGE:
            header, _ = RingHeader.unpack(self.page.data, 0, wire.RING_PAGE, wire.STATE)
            self.head = header.head
            self.tail = header.tail
            if header.sound(self.capacity):
                self.used = self.head - self.tail
        self.start = 0
        if self.capacity and self.used >= 0:
            self.start = self.tail % self.capacity

    def problems(self) -> Iterator[tuple[Rule, int]]:
        """Yield the findings about the first page and the size, and what they show."""
        if self.page.size < wire.RING_PAGE:
            if self.size:
                yield rules.INVALID_RING, self.size
            return
        if self.page[2 * WORD :].any():
            yield rules.RESERVED_BITS, 0
        if self.capacity % wire.RING_PAGE or self.capacity < wire.RING_MINIMUM:
            yield rules.RING_SIZE, self.capacity
        if self.used < 0:
            yield rules.INVALID_RING, 0

    def detail(self) -> str:
        """Return what a finding of INVALID_RING shows."""
        if self.size < wire.RING_PAGE:
            return f"{self.size} bytes"
        return f"head {self.head}, tail {self.tail}, a ring of {self.capacity} bytes"

    def place(self, byte: I64) -> I64:
        """Return offsets in the image of bytes in the order of reading (``line``)."""
        return self.turned(byte, self.start)

    def byte_at(self, offset: I64) -> I64:
        """Return bytes in the order of reading by their offsets in the image."""
        return self.turned(offset, -self.start)

    def turned(self, byte: I64, distance: int) -> I64:
        """Return the places of bytes once those of the ring are farther by some distance."""
        in_ring = wire.RING_PAGE + (byte - wire.RING_PAGE + distance) % max(1, self.capacity)
        return np.where(byte < wire.RING_PAGE, byte, in_ring)

    def line(self) -> U8:
        """Return the image in the order of reading: the ring begins at its tail."""
        if not self.start:
            return self.image
        return np.concatenate((self.page, self.ring[self.start :], self.ring[: self.start]))
