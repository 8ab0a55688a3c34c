"""Profile: writes the sound part of a damaged profile; blocks end with their last whole path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs
import numpy as np

from fx_xray.profile import CUT_PATH, FORMAT, HEADER_BYTES, Block
from fx_xray.read.profile import Paths
from fxframework.io.sink import Sink
from fxframework.kit.salvage import Loss
from fxframework.model.capture import Capture
from fxframework.wire.verbs.copies import Copies, CopyReader

__all__ = ["salvage"]

SIZE = Block.layout.place("_nbytes")


def salvage(capture: Capture, sink: Sink, options: Mapping[str, Any]) -> Iterator[Loss]:
    """Write the header and the sound blocks; yield each loss (``fxframework.registry.Writer``)."""
    del options
    reader = WholePaths(FORMAT, capture.source, capture.request.limits, with_unknown=True)
    reader.frames.splitting = 1
    return reader.copy(sink)


class WholePaths(CopyReader):
    """Reads a profile into copies of its blocks, without paths that the end of a block cuts off."""

    def copies(self) -> Iterator[Copies]:
        """Yield the blocks of each part of the file."""
        for copies in super().copies():
            yield self._with_whole_paths(copies)

    def _with_whole_paths(self, copies: Copies) -> Copies:
        is_block = copies.offsets > 0 if self.header else np.ones(copies.offsets.size, bool)
        block_rows = np.flatnonzero(is_block)
        paths = Paths()
        for row in block_rows.tolist():
            start = int(copies.starts[row])
            end = start + int(copies.sizes[row])
            paths.add(copies.data[start + HEADER_BYTES : end], row, tid=0)
        if not paths.cut:
            return copies
        cut_rows, cut_bytes = np.array(paths.cut, np.int64).T
        sizes = copies.sizes.copy()
        sizes[cut_rows] -= cut_bytes
        data = copies.joined().copy()
        starts = np.cumsum(copies.sizes) - copies.sizes
        SIZE.put_many(data, starts[cut_rows], sizes[cut_rows])
        cut_ends = copies.offsets[cut_rows] + sizes[cut_rows]
        losses = [*copies.losses, *map(_loss, cut_ends.tolist(), cut_bytes.tolist())]
        losses.sort(key=lambda loss: loss.offset)
        return attrs.evolve(copies, data=data, starts=starts, sizes=sizes, losses=losses)


def _loss(offset: int, nbytes: int) -> Loss:
    message = f"{nbytes} bytes of a path without its figures; the block ends before them"
    return Loss(offset, nbytes, "block", message, CUT_PATH.code, part=True)
