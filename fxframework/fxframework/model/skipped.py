"""Skipped slices: short ones, and calls of excluded functions, whose callees get other parents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from fxframework.kernels.arrays import I64, Bools
from fxframework.model.rows import HasTables, check_slices, function_mask
from fxframework.model.selection import Selection
from fxframework.model.table import Table

__all__ = ["SkippedSlices", "is_short"]

MOST_DOUBLINGS = 32
"""Steps in which every nesting is climbed, since each doubles its height; a circle has no end."""


def is_short(dur: I64, min_duration_ns: int | None) -> Bools:
    """Return which slices are shorter than a length; one that never ended is not."""
    if min_duration_ns is None:
        return np.zeros(dur.shape, np.bool_)
    return np.asarray((dur >= 0) & (dur < min_duration_ns))


class SkippedSlices:
    """The slices that a selection skips, and the slices that enclose the others without them.

    A short slice that encloses one that is not skipped is not skipped either. Takes up to 40 bytes
    a slice while it is made, and 13 afterwards.
    """

    def __init__(self, selection: Selection, whole: HasTables) -> None:
        check_slices(whole, "slices cannot be skipped")
        excluded = function_mask(selection.exclude_functions, whole)
        columns: list[tuple[I64, I64, Bools, Bools]] = [
            (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, bool), np.zeros(0, bool))
        ]
        for batch in whole.batches("slices"):
            batch_excluded = np.zeros(len(batch), np.bool_)
            if excluded is not None:
                # Index -1: no name.
                batch_excluded = np.append(excluded, False)[batch.array("name")]
            batch_short = is_short(batch.array("dur"), selection.min_duration_ns)
            columns.append((batch.array("row"), batch.array("parent"), batch_short, batch_excluded))
        rows, parents, short, is_excluded = map(np.concatenate, zip(*columns, strict=True))
        count = int(rows.max(initial=-1)) + 1
        # One more than there are rows: index -1 is that of no slice, whose parent is none.
        self._parent = np.full(count + 1, -1, np.int64)
        self._parent[rows] = np.where((parents >= 0) & (parents < count), parents, -1)
        self.short = np.zeros(count + 1, np.bool_)
        """By row, whether it is skipped because it is short; the last one is for none."""
        self.short[rows] = short & ~is_excluded
        self.excluded = np.zeros(count + 1, np.bool_)
        """By row, whether it is a call of an excluded function; the last one is for none."""
        self.excluded[rows] = is_excluded
        self._keep_enclosing(rows)
        self.skipped = self.short | self.excluded
        """By row, whether it is skipped; the last one is for none."""
        self._nearest, self._lifted = self._relinked()
        del self._parent

    def _keep_enclosing(self, rows: I64) -> None:
        """Keep short slices that enclose a slice that is not skipped, at any height."""
        is_candidate = self.short | self.excluded
        is_climbed = np.zeros(is_candidate.size, np.bool_)
        enclosing = self._parent[rows[~is_candidate[rows]]]
        # Above a slice that is kept anyway, others were asked for from there.
        enclosing = enclosing[is_candidate[enclosing]]
        while enclosing.size:
            is_climbed[enclosing] = True
            self.short[enclosing] = False
            enclosing = np.unique(self._parent[enclosing])
            enclosing = enclosing[is_candidate[enclosing] & ~is_climbed[enclosing]]

    def _relinked(self) -> tuple[I64, NDArray[np.int32]]:
        """Return by row the nearest slice that is not skipped, and how many around it are.

        The nearest slice to one that is not skipped is itself. Parents may follow their children,
        so all are climbed together: each step doubles the height that is reached.
        """
        no_slice = self.skipped.size - 1
        nearest = np.where(self.skipped, self._parent, np.arange(self.skipped.size))
        nearest[no_slice] = -1
        ancestor = self._parent.copy()
        lifted = self.skipped[ancestor].astype(np.int32)
        for _ in range(MOST_DOUBLINGS):
            if not (ancestor >= 0).any():
                break
            nearest = nearest[nearest]
            lifted += lifted[ancestor]
            ancestor = ancestor[ancestor]
        nearest[self.skipped[nearest]] = -1  # a circle of skipped slices
        return nearest, lifted

    def among(self, rows: I64) -> Bools:
        """Return which of these rows of `slices` are skipped."""
        return np.asarray(self.skipped[rows])

    def around(self, parents: I64) -> NDArray[np.int32]:
        """Return how many skipped slices are around what these rows of `slices` enclose."""
        around: NDArray[np.int32] = self._lifted[parents] + self.skipped[parents]
        return around

    def counts(self, rows: Iterable[I64]) -> Mapping[str, int]:
        """Return how many of these rows of `slices` are skipped, by the reason."""
        counts = Counter[str]()
        for some_rows in rows:
            counts["short slices"] += int(np.count_nonzero(self.short[some_rows]))
            counts["calls of excluded functions"] += int(np.count_nonzero(self.excluded[some_rows]))
        return +counts

    def relinked(self, table: Table) -> Table:
        """Return rows of `slices` or `flows` in which skipped slices enclose nothing."""
        if table.name == "flows":
            return table.replaced(slice=self._nearest[table.array("slice")])
        if table.name != "slices":
            return table
        parent = table.array("parent")
        # A parent that is not among the slices is left as it is.
        is_known = parent < self._nearest.size
        nearest = self._nearest[np.where(is_known, parent, -1)]
        depth = table.array("depth") - self._lifted[table.array("row")]
        return table.replaced(
            parent=np.where(is_known, nearest, parent), depth=np.maximum(depth, 0)
        )
