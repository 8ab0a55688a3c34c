"""The common base of the scans of both generations of logs, which adds rows."""

from __future__ import annotations

from fx_log.read.columns import LogColumns, RareColumns, TagColumns, Totals
from fx_log.read.framing import Framer
from fx_log.read.tables import (
    LATEST,
)
from fxframework.kernels.annotations import Array, flag, i64, status, u8
from fxframework.kernels.buffers import room
from fxframework.kernels.kernel import Kernel
from fxframework.kernels.notes import Notes
from fxframework.kernels.pools import Pool
from fxframework.kernels.utf8 import Utf8

__all__ = ["RowScan"]


class RowScan(Kernel):
    """Decodes the records that a framer finds into rows.

    ``run`` stops at the end of the file (``done`` is 1), behind the record in which the framer
    passes ``until``, or once a table has ``most`` rows; it may be called again. In ``scratch``,
    which has so many words, strings are put together.
    """

    framer: Framer
    utf8: Utf8
    pool: Pool
    notes: Notes
    totals: Totals
    logs: LogColumns
    rare: RareColumns
    tags: TagColumns
    until: i64
    most: i64
    done: flag
    era_2022: flag
    scratch: Array[i64]
    letters: Array[u8]

    def __init__(
        self,
        framer: Framer,
        data: memoryview,
        pool: Pool,
        notes: Notes,
        totals: Totals,
        scratch: int,
    ) -> None:
        self.framer = framer
        self.utf8 = Utf8(data)
        self.pool = pool
        self.notes = notes
        self.totals = totals
        self.logs = LogColumns()
        self.rare = RareColumns()
        self.tags = TagColumns()
        self.until = LATEST
        self.most = LATEST
        self.done = 0
        self.era_2022 = 0
        self.scratch = room(scratch, "i8")
        self.letters = memoryview(self.scratch).cast("B")

    def rarity(self, row: i64, column: i64, value: i64) -> status:
        """Add a value that few logs have."""
        if self.rare.rows == self.rare.room:
            self.rare.grow()
        self.rare.row[self.rare.rows] = row
        self.rare.column[self.rare.rows] = column
        self.rare.value[self.rare.rows] = value
        self.rare.rows += 1
        return 0

    def tag_row(self, name: i64, offset: i64) -> status:
        """Add a row of `log_tags` for the next log."""
        if self.tags.rows == self.tags.room:
            self.tags.grow()
        self.tags.parent[self.tags.rows] = self.logs.first + self.logs.rows
        self.tags.offset[self.tags.rows] = offset
        self.tags.name[self.tags.rows] = name
        self.tags.rows += 1
        return 0
