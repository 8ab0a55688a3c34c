"""The decoder: records of a VMO as objects, one at a time, where ``blocks`` finds them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fx_inspect import format as wire
from fx_inspect import rules
from fx_inspect.read.blocks import Blocks, Run
from fx_inspect.read.records import Damaged, InspectRecord, Padding, block_of
from fx_inspect.rules import RULES
from fxframework.io.limits import Limits
from fxframework.io.words import view_of
from fxframework.model.diagnostics import Diagnostics, Found

if TYPE_CHECKING:
    from fx_inspect.read.records import Data

__all__ = ["Objects", "RecordDecoder", "blocks_of", "objects_at"]

DAMAGE = frozenset(
    {rules.TRAILING_BYTES, rules.BLOCK_PAST_THE_END, rules.NO_BLOCK, rules.BLOCK_OVER_LIMIT}
)
"""Findings about bytes in which no block begins."""


class RecordDecoder:
    """Reads a VMO block by block, in the layout of its first bytes.

    Findings go to ``diagnostics``; of ``limits`` only ``max_record`` applies. No bytes raise an
    exception, except StrictError with strict diagnostics.
    """

    def __init__(
        self, *, diagnostics: Diagnostics | None = None, limits: Limits | None = None
    ) -> None:
        self.diagnostics = diagnostics
        self.limits = limits or Limits()

    def records(self, data: Data) -> Iterator[InspectRecord]:
        """Yield every block, padding and damage too; their ``nbytes`` add up to ``len(data)``."""
        for run in blocks_of(data, self.limits).runs():
            objects = Objects(run)
            for row in range(run.types.size):
                record = objects.record(row)
                if self.diagnostics is not None:
                    objects.report(row, self.diagnostics)
                yield record


def blocks_of(data: Data, limits: Limits) -> Blocks:
    """Return the blocks of any bytes."""
    return Blocks(np.frombuffer(view_of(data), np.uint8), limits)


def objects_at(blocks: Blocks, offset: int) -> tuple[Objects, int]:
    """Return the objects of the run that has a byte of the file, and the row of its record."""
    run = next(run for run in blocks.runs() if offset < run.end)
    row = int(np.searchsorted(run.bounds(), offset, "right")) - 1
    return Objects(run), row


class Objects:
    """The records of a run as objects, and the findings about each."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self._data = view_of(run.blocks.data)
        self._bounds: list[int] = run.bounds().tolist()
        self._found: NDArray[np.int64] = run.findings
        self._rows = self._found[:, 2] - run.first
        """The row of each finding."""
        self.with_findings: list[int] = np.unique(self._rows).tolist()
        """The rows that have findings."""
        self._noted = set(self.with_findings)

    def found(self, row: int) -> list[Found]:
        """Return the findings about a record."""
        if row not in self._noted:
            return []
        bounds = np.searchsorted(self._rows, (row, row + 1))
        first, last = bounds.tolist()
        found = [
            Found(RULES.numbered(rule), offset, value)
            for rule, offset, _, value in self._found[first:last].tolist()
        ]
        return sorted(found, key=lambda note: note.rule is not rules.NO_HEADER)

    def report(self, row: int, diagnostics: Diagnostics) -> None:
        """Report the findings about a record."""
        if row in self._noted:
            diagnostics.report(self.found(row), self.run.first + row)

    def record(self, row: int) -> InspectRecord:
        """Return a record."""
        start = self._bounds[row]
        end = self._bounds[row + 1]
        type = int(self.run.types[row])
        if type == wire.PADDING:
            return Padding(offset=start, nbytes=end - start)
        data = self._data[start:end]
        if type == wire.DAMAGED:
            (code,) = (note.rule.code for note in self.found(row) if note.rule in DAMAGE)
            return Damaged(offset=start, nbytes=len(data), code=code, raw=data)
        return block_of(data, self.run.blocks.layout, index=start // wire.UNIT)
