"""The decoder: records of a VMO as objects, one at a time, where ``blocks`` finds them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from fx_inspect import format as wire
from fx_inspect import rules
from fx_inspect.read.blocks import Blocks, Run
from fx_inspect.read.records import InspectRecord, block_of
from fx_inspect.rules import RULES
from fxframework.io.limits import Limits
from fxframework.io.words import view_of
from fxframework.kit.lossless import DamagedRecord, PaddingRecord
from fxframework.model.diagnostics import Diagnostics

if TYPE_CHECKING:
    from fx_inspect.read.records import Data

DAMAGE = (
    rules.TRAILING_BYTES, rules.BLOCK_PAST_THE_END, rules.NO_BLOCK, rules.BLOCK_OVER_LIMIT,
)  # fmt: skip
"""Findings about bytes in which no block begins."""


class RecordDecoder:
    """Reads a VMO block by block, in the layout of its first bytes.

    Findings go to ``diagnostics``, those of some thousands of records before the first of them; of
    ``limits`` only ``max_record`` applies. No bytes raise an exception, except StrictError with
    strict diagnostics.
    """

    def __init__(
        self, *, diagnostics: Diagnostics | None = None, limits: Limits | None = None
    ) -> None:
        self.diagnostics = diagnostics
        self.limits = limits or Limits()

    def records(self, data: Data) -> Iterator[InspectRecord]:
        """Yield every block, padding and damage too; their ``nbytes`` add up to ``len(data)``."""
        for run in blocks_of(data, self.limits).runs():
            if self.diagnostics is not None:
                report(run, self.diagnostics)
            objects = Objects(run)
            yield from map(objects.record, range(run.types.size))


def blocks_of(data: Data, limits: Limits) -> Blocks:
    """Return the blocks of any bytes."""
    return Blocks(np.frombuffer(view_of(data), np.uint8), limits)


def objects_at(blocks: Blocks, offset: int) -> tuple[Objects, int]:
    """Return the objects of the run that has a byte of the file, and the row of its record."""
    run = next(run for run in blocks.runs() if offset < run.end)
    row = int(np.searchsorted(run.bounds(), offset, "right")) - 1
    return Objects(run), row


def report(run: Run, diagnostics: Diagnostics) -> None:
    """Report what is wrong with the records of a run."""
    for number, offset, record, value in run.findings.tolist():
        diagnostics.add(RULES.numbered(number), offset, record, value)


class Objects:
    """The records of a run as objects."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self._data = view_of(run.blocks.data)
        self._bounds: list[int] = run.bounds().tolist()
        is_damage = np.isin(run.findings[:, 0], [int(rule) for rule in DAMAGE])
        self._damage = {
            record - run.first: RULES.numbered(number).code
            for number, _, record, _ in run.findings[is_damage].tolist()
        }
        """The code of the finding about each damaged stretch, by row."""

    def record(self, row: int) -> InspectRecord:
        """Return a record."""
        start = self._bounds[row]
        end = self._bounds[row + 1]
        type = int(self.run.types[row])
        if type == wire.PADDING:
            return PaddingRecord(offset=start, nbytes=end - start)
        data = self._data[start:end]
        if type == wire.DAMAGED:
            code = self._damage[row]
            return DamagedRecord(offset=start, nbytes=len(data), code=code, raw=data)
        return block_of(data, self.run.blocks.layout, index=start // wire.UNIT)
