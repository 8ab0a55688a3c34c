"""Row scan: the base of the scans of both generations of logs, which adds a log as rows."""

from __future__ import annotations

from fx_log import rules
from fx_log.read import tables
from fx_log.read.framing import Framer
from fx_log.read.rows import (
    ArgColumns,
    LogColumns,
    PositionalColumns,
    RareColumns,
    TagColumns,
    Totals,
)
from fxframework.kernels.annotations import Array, Fallible, flag, i64, status, u8
from fxframework.kernels.buffers import room
from fxframework.kernels.kernel import Kernel
from fxframework.kernels.notes import Notes
from fxframework.kernels.pools import Pool
from fxframework.kernels.utf8 import Utf8

__all__ = ["RowScan"]

BYTE = 0xFF
COMMA = 0x2C


class RowScan(Kernel):
    """Adds the records that a framer finds as rows; classes derived from it decode them.

    ``run`` stops at the end of the file (``done`` is 1), behind the record in which the framer
    passes ``until``, or once a table has ``most`` rows; it may be called again. In ``scratch``,
    which has so many words, strings are put together. The attributes from ``severity`` on are
    those of the current record, which becomes a row.
    """

    framer: Framer
    utf8: Utf8
    pool: Pool
    notes: Notes
    totals: Totals
    logs: LogColumns
    rare: RareColumns
    tags: TagColumns
    args: ArgColumns
    positional: PositionalColumns
    until: i64
    most: i64
    done: flag
    era_2022: flag
    scratch: Array[i64]
    letters: Array[u8]
    severity: i64
    given: i64
    pid: i64
    tid: i64
    file: i64
    line: i64
    verbosity: i64
    dropped: i64
    rolled_out: i64
    moniker: i64
    url: i64
    message_at: i64
    message_bytes: i64

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
        self.args = ArgColumns()
        self.positional = PositionalColumns()
        self.until = tables.LATEST
        self.most = tables.LATEST
        self.done = 0
        self.era_2022 = 0
        self.scratch = room(scratch, "i8")
        self.letters = memoryview(self.scratch).cast("B")
        self.severity = 0
        self.clear_row()

    def clear_row(self) -> i64:
        """Reset what the last record has given."""
        self.given = 0
        self.pid = 0
        self.tid = 0
        self.file = tables.NO_STRING
        self.line = 0
        self.verbosity = 0
        self.dropped = 0
        self.rolled_out = 0
        self.moniker = tables.NO_STRING
        self.url = tables.NO_STRING
        self.message_at = 0
        self.message_bytes = 0
        return 0

    def between_levels(self, severity: i64) -> flag:
        """Return whether a severity is none of the six levels."""
        if severity < tables.TRACE_LEVEL or severity > tables.FATAL_LEVEL:
            return True
        return severity % tables.LEVEL_STEP != 0

    def row(self, ns: i64, tags: i64) -> status:
        """Add the row of the current record; ``tags`` is the code of its joined tags."""
        row = self.logs.add_row()
        self.logs.offset[row] = self.framer.offset
        self.logs.ns[row] = ns
        self.logs.start[row] = self.message_at
        self.logs.length[row] = self.message_bytes
        self.logs.severity[row] = self.severity
        self.logs.given[row] = self.given
        self.logs.pid[row] = self.pid
        self.logs.tid[row] = self.tid
        self.logs.tags[row] = tags
        self.logs.component[row] = self.moniker
        self.logs.url[row] = self.url
        self.logs.file[row] = self.file
        self.logs.line[row] = self.line
        self.logs.tag[row] = self.framer.tag
        self.totals.severities[self.severity] += 1
        if self.moniker >= 0:
            self.totals.count_component(self.moniker)
        if ns < self.totals.last_ns:
            last = self.totals.last_ns
            self.notes.add(rules.TIME_DECREASES, self.framer.offset, self.framer.index, last)
        if self.dropped or self.rolled_out or self.verbosity:
            self.rarities(self.logs.first + row)
        self.totals.time(ns)
        return 0

    def rarities(self, row: i64) -> status:
        """Add the values that few logs have: lost logs, a verbosity."""
        lost = self.dropped or self.rolled_out
        if lost:
            self.notes.add(rules.LOGS_LOST, self.framer.offset, self.framer.index, lost)
            self.totals.count_lost(self.dropped, self.rolled_out)
        if self.dropped:
            self.rarity(row, tables.RARE_DROPPED, self.dropped)
        if self.rolled_out:
            self.rarity(row, tables.RARE_ROLLED_OUT, self.rolled_out)
        if self.verbosity:
            self.rarity(row, tables.RARE_VERBOSITY, self.verbosity)
        return 0

    def rarity(self, row: i64, column: i64, value: i64) -> status:
        """Add a value that few logs have."""
        at = self.rare.add_row()
        self.rare.row[at] = row
        self.rare.column[at] = column
        self.rare.value[at] = value
        return 0

    def tag_row(self, name: i64, offset: i64) -> status:
        """Add a row of `log_tags` for the next log."""
        row = self.tags.add_row()
        self.tags.parent[row] = self.logs.first + self.logs.rows
        self.tags.offset[row] = offset
        self.tags.name[row] = name
        return 0

    def joined(self, first: i64) -> Fallible[i64]:
        """Count the log by its tags from row ``first`` on. Return the code of all, joined."""
        count = self.tags.rows - first
        if count == 0:
            return tables.NO_STRING
        for row in range(first, self.tags.rows):
            self.totals.count_tag(self.tags.name[row])
        if count == 1:
            return self.tags.name[first]
        total = 0
        for row in range(first, self.tags.rows):
            if row > first:
                self.letters[total] = COMMA
                total += 1
            total = self.spell(self.tags.name[row], total)
        source = self.pool.source
        self.pool.source = self.scratch
        code = self.pool.intern(0, total)
        self.pool.source = source
        return code

    def spell(self, code: i64, total: i64) -> i64:
        """Append a string of the pool to the letters. Return their number."""
        start = self.pool.starts[code]
        for index in range(self.pool.lengths[code]):
            self.letters[total] = (self.pool.words[start + index // 8] >> (8 * (index % 8))) & BYTE
            total += 1
        return total
