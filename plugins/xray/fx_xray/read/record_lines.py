"""Lines of record JSON: those that ``jsonlines.py`` writes, and between them those of a walk."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from fx_xray import layout as wire
from fx_xray.read.decoder import Block, FdrWalk, RecordDecoder
from fx_xray.read.jsonlines import BasicLines, FdrLines
from fx_xray.read.records import FileHeader, XrayRecord
from fxframework.io.words import view_of
from fxframework.kernels.buffers import view
from fxframework.kit.record_lines import PIECE, record_lines
from fxframework.model.capture import Record

__all__ = ["lines_of"]

I64_MAX = (1 << 63) - 1
SAID = ("thread", "process", "base", "cpu")
"""What records say of a buffer, as far as lines show it."""


def lines_of(
    decoder: RecordDecoder,
    data: NDArray[np.uint8],
    header: FileHeader,
    done: Callable[[int, int], None],
) -> Iterator[bytes]:
    """Return the JSON of all records of a trace, in pieces of whole lines.

    Findings are not reported. ``done`` is called with bytes that are not read again.
    """
    walk = decoder.walk(view_of(data), header, [])
    octets = view(data, np.uint8)
    lines: BasicLines | FdrLines
    if isinstance(walk, FdrWalk):
        lines = FdrLines(
            octets,
            version=walk.version,
            order=wire.BYTE_ORDERS.index(header.byte_order),
            limit=min(walk.max_record, I64_MAX),
            most=PIECE,
        )
        behind = _Buffers(walk, lines).record
    else:
        lines = BasicLines(octets, big=walk.order != "little", most=PIECE)
        behind = walk.record

    def record(at: int) -> Record:
        one = behind(at) if at else header
        walk.found.clear()
        return one

    return record_lines(lines, 1, data.size, PIECE, record, done)


class _Buffers:
    """The records at which the kernel stops; it and the walk know the same of their buffers."""

    def __init__(self, walk: FdrWalk, lines: FdrLines) -> None:
        self.walk = walk
        self.lines = lines
        self.at = walk.at
        """Where the walk is."""
        self.give()

    def record(self, at: int) -> XrayRecord:
        """Return the record at byte ``at`` by the walk."""
        if at > self.at:
            self.take()
        record = self.walk.record(at)
        self.at = at + record.nbytes
        self.give()
        return record

    def take(self) -> None:
        """Let the walk know what the kernel has read."""
        walk, lines = self.walk, self.lines
        walk.limit, walk.bounded = int(lines.limit), bool(lines.bounded)
        walk.garbage = 0
        walk.block = None
        if lines.open:
            known = {name: getattr(lines, name) for name in SAID if getattr(lines, f"has_{name}")}
            walk.block = Block(settled=bool(lines.settled), **known)

    def give(self) -> None:
        """Let the kernel know what the walk has read."""
        walk, lines = self.walk, self.lines
        lines.trusted = walk.padded <= self.at and walk.garbage < wire.GARBAGE_RUN
        lines.limit, lines.bounded = walk.limit, walk.bounded
        lines.by_extents = walk.by_extents
        lines.open = walk.block is not None
        block = walk.block or Block()
        lines.settled = block.settled
        for name in SAID:
            value = getattr(block, name)
            setattr(lines, name, value or 0)
            setattr(lines, f"has_{name}", value is not None)
