"""Copies: records that go from one file to another as bytes, and what is lost between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import compress
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from fxframework.kit.salvage import Loss
from fxframework.model.strings import TextColumn

__all__ = ["Copies", "copy"]

I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]


@attrs.frozen(eq=False)
class Copies:
    """Records that follow one another, as columns of shape (records,).

    ``offsets`` are those of the file, which tables have too; the bytes of each are ``sizes`` bytes
    of ``data`` from ``starts`` on: of the file, or of what a format makes of records to mend them.
    """

    data: U8
    starts: I64
    sizes: I64
    offsets: I64
    losses: Sequence[Loss] = ()
    """What is left out of this part of the file, in order; those within a record (``part``) that
    is not copied either are at its offset."""

    def without(self, offsets: I64) -> Copies:
        """Return the records but for those at some offsets, which are in ascending order."""
        keep = ~is_among(self.offsets, offsets)
        lost_in = np.array([loss.offset if loss.part else -1 for loss in self.losses], np.int64)
        losses = compress(self.losses, ~is_among(lost_in, offsets))
        return Copies(
            self.data, self.starts[keep], self.sizes[keep], self.offsets[keep], tuple(losses)
        )

    def joined(self) -> U8:
        """Return the bytes of all records, one behind the other."""
        return TextColumn.gather(self.data, self.starts, self.sizes).data


def is_among(numbers: I64, others: I64) -> NDArray[np.bool_]:
    """Return which numbers are among others, which are sorted."""
    if not others.size:
        return np.zeros(numbers.size, bool)
    nearest = np.minimum(np.searchsorted(others, numbers), others.size - 1)
    found: NDArray[np.bool_] = others[nearest] == numbers
    return found


def copy(
    parts: Iterable[Copies], write: Callable[[Any], object], left_out: I64 | None = None
) -> Iterator[Loss]:
    """Write records, but for those at the offsets ``left_out``, sorted; yield the losses."""
    for part in parts:
        kept = part if left_out is None else part.without(left_out)
        yield from kept.losses
        write(kept.joined().data)
