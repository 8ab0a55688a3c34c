"""Ring: where the entries of a ring's image lie, by its first page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from fx_log import format as wire
from fx_log import rules
from fxframework.errors import Rule

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
        head, tail = (self.page[at : at + 8].tobytes() for at in (0, 8))
        self.head = int.from_bytes(head, "little")
        self.tail = int.from_bytes(tail, "little")
        header = wire.RingHeader(head=self.head, tail=self.tail)
        whole = self.page.size == wire.RING_PAGE
        self.used = self.head - self.tail if whole and header.sound(self.capacity) else -1
        self.start = self.tail % self.capacity if self.capacity else 0

    def problems(self) -> Iterator[tuple[Rule, int]]:
        """Yield the findings about the first page and the size, and what they show."""
        if self.page.size < wire.RING_PAGE:
            if self.size:
                yield rules.INVALID_RING, self.size
            return
        if self.page[16:].any():
            yield rules.RESERVED_BITS, 0
        if self.capacity % wire.RING_PAGE or self.capacity < wire.RING_MINIMUM:
            yield rules.RING_SIZE, self.capacity
        if self.used < 0:
            yield rules.INVALID_RING, 0

    def shown(self, rule: Rule, value: Any) -> Any:
        """Return what a finding shows."""
        if rule == rules.INVALID_RING:
            return rules.ring_detail(self.size, self.head, self.tail)
        return value

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
