"""Ring: where the entries of a ring's image lie, by its first page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from fx_log import format as wire
from fx_log import rules
from fx_log.format import RingHeader
from fxframework.errors import Rule
from fxframework.io.words import WORD

__all__ = ["Ring"]

I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]


class Ring:
    """The ring in an image. Its entries lie in ``used`` bytes from byte ``start`` of the ring on.

    They may wrap around. ``used`` is -1 if head and tail are invalid.
    """

    def __init__(self, image: U8) -> None:
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
        self.start = self.tail % self.capacity if self.capacity else 0

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

    @overload
    def place(self, at: int) -> int: ...

    @overload
    def place(self, at: I64) -> I64: ...

    def place(self, at: Any) -> Any:
        """Return offsets in the image of bytes that lie ``at`` bytes behind the tail."""
        return wire.RING_PAGE + (self.start + at) % max(1, self.capacity)

    @overload
    def distance(self, offset: int) -> int: ...

    @overload
    def distance(self, offset: I64) -> I64: ...

    def distance(self, offset: Any) -> Any:
        """Return how many bytes behind the tail bytes of the ring at some offsets lie."""
        return (offset - wire.RING_PAGE - self.start) % max(1, self.capacity)

    def line(self, begin: int, end: int) -> U8:
        """Return bytes ``begin`` to ``end`` behind the tail; a copy if they wrap."""
        begin = self.start + begin
        end = self.start + end
        if begin >= self.capacity:
            begin = begin - self.capacity
            end = end - self.capacity
        line = self.ring[begin:end]
        if end > self.capacity:
            line = np.concatenate((line, self.ring[: end - self.capacity]))
        return line
