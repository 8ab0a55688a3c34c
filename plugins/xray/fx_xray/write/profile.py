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
from fxframework.wire.verbs import copies
from fxframework.wire.verbs.copies import Copies, CopyReader

MESSAGE = "{} bytes of a path without its figures; the block ends before them"


def salvage(capture: Capture, sink: Sink, options: Mapping[str, Any]) -> Iterator[Loss]:
    """Write the header and the sound blocks; yield each loss (``fxframework.registry.Writer``)."""
    del options
    return copies.salvage(FORMAT, capture, sink, WholePaths)


class WholePaths(CopyReader):
    """Reads a profile into copies of its blocks, without paths that the end of a block cuts off."""

    def copies(self) -> Iterator[Copies]:
        """Yield the blocks of each part of the file."""
        for records in super().copies():
            sizes = records.sizes.copy()
            losses = list(records.losses)
            blocks = np.flatnonzero(records.offsets)  # the header is at 0
            for row in blocks.tolist():
                paths = paths_in(self.numbers, int(records.offsets[row]), int(sizes[row]))
                nbytes = sum(functions.nbytes for functions, total in paths if not total)
                if nbytes:
                    sizes[row] -= nbytes
                    end = int(records.offsets[row] + sizes[row])
                    message = MESSAGE.format(nbytes)
                    losses.append(Loss(end, nbytes, "block", message, CUT_PATH.code, part=True))
            losses.sort(key=lambda loss: loss.offset)
            data = records.joined().copy()
            starts = np.cumsum(records.sizes) - records.sizes
            Block.layout.place("_nbytes").put_many(data, starts[blocks], sizes[blocks])
            yield attrs.evolve(records, data=data, starts=starts, sizes=sizes, losses=losses)
