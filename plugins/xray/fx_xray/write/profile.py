"""Profile: writes the sound part of a damaged profile; blocks end with their last whole path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs
import numpy as np

from fx_xray.profile import CUT_PATH, FORMAT, Block
from fx_xray.read.profile import paths_in
from fxframework.io.sink import Sink
from fxframework.kit.salvage import Loss
from fxframework.model.capture import Capture
from fxframework.wire.many import FileNumbers
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
            file = FileNumbers(records.data)
            cut_bytes = np.zeros(records.sizes.size, np.int64)
            for row in np.flatnonzero(records.offsets).tolist():  # the header is at 0
                start, size = int(records.starts[row]), int(records.sizes[row])
                _, cut_bytes[row] = paths_in(file, start, size)
            cut = np.flatnonzero(cut_bytes)
            if cut.size:
                sizes = records.sizes - cut_bytes
                data = records.joined().copy()
                starts = np.cumsum(records.sizes) - records.sizes
                SIZE.put_many(data, starts[cut], sizes[cut])
                cut_ends = records.offsets[cut] + sizes[cut]
                losses = [*records.losses, *map(_loss, cut_ends.tolist(), cut_bytes[cut].tolist())]
                losses.sort(key=lambda loss: loss.offset)
                records = attrs.evolve(
                    records, data=data, starts=starts, sizes=sizes, losses=losses
                )
            yield records


def _loss(offset: int, nbytes: int) -> Loss:
    message = f"{nbytes} bytes of a path without its figures; the block ends before them"
    return Loss(offset, nbytes, "block", message, CUT_PATH.code, part=True)
