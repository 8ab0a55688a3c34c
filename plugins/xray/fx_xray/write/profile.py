"""Profile: writes the sound part of a damaged profile; blocks end with their last whole path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs
import numpy as np

from fx_xray.profile import CUT_PATH, FORMAT, Block
from fx_xray.read.profile import whole_paths
from fxframework.io.sink import Sink
from fxframework.kit.salvage import Loss
from fxframework.model.capture import Capture
from fxframework.wire.verbs import copies
from fxframework.wire.verbs.copies import Copies, CopyReader

__all__ = ["salvage"]

SIZE = Block.layout.place("_nbytes")


def salvage(capture: Capture, sink: Sink, options: Mapping[str, Any]) -> Iterator[Loss]:
    """Write the header and the sound blocks; yield each loss (``fxframework.registry.Writer``)."""
    del options
    return copies.salvage(FORMAT, capture, sink, WholePaths)


class WholePaths(CopyReader):
    """Reads a profile into copies of its blocks, without paths that the end of a block cuts off."""

    def copies(self) -> Iterator[Copies]:
        """Yield the blocks of each part of the file."""
        for records in super().copies():
            yield self._with_whole_paths(records)

    def _with_whole_paths(self, records: Copies) -> Copies:
        sizes = records.sizes.copy()
        for row, start in enumerate(records.starts.tolist()):
            is_header = self.header and records.offsets[row] == 0
            if not is_header:
                _, path_end = whole_paths(records.data, start, int(sizes[row]))
                sizes[row] = path_end - start
        cut_rows = np.flatnonzero(sizes < records.sizes)
        if not cut_rows.size:
            return records
        cut_bytes = (records.sizes - sizes)[cut_rows]
        data = records.joined().copy()
        starts = np.cumsum(records.sizes) - records.sizes
        SIZE.put_many(data, starts[cut_rows], sizes[cut_rows])
        cut_ends = records.offsets[cut_rows] + sizes[cut_rows]
        losses = [*records.losses, *map(_loss, cut_ends.tolist(), cut_bytes.tolist())]
        losses.sort(key=lambda loss: loss.offset)
        return attrs.evolve(records, data=data, starts=starts, sizes=sizes, losses=losses)


def _loss(offset: int, nbytes: int) -> Loss:
    message = f"{nbytes} bytes of a path without its figures; the block ends before them"
    return Loss(offset, nbytes, "block", message, CUT_PATH.code, part=True)
