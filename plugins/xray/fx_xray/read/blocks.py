"""What a scan finds in a log: stretches of sound records, and buffers."""

from __future__ import annotations

from typing import final

from fxframework.kernels.annotations import (
    Column,
    i32,
    i64,
    status,
    u8,
)
from fxframework.kernels.rows import Rows

__all__ = ["Blocks", "Losses", "Stretches"]


@final
class Stretches(Rows):
    """Sound records that follow each other in one buffer, or in basic mode in one thread."""

    start: Column[i64]
    stop: Column[i64]
    block: Column[i64]
    tsc: Column[i64]
    flags: Column[u8]

    def add(self, start: i64, stop: i64, block: i64, flags: i64, tsc: i64) -> status:
        """Add one: its bytes, its buffer (in basic mode its thread), marks, and a mended time."""
        row = self.rows
        if row == self.room:
            self.grow()
        self.start[row] = start
        self.stop[row] = stop
        self.block[row] = block
        self.flags[row] = flags
        self.tsc[row] = tsc
        self.rows = row + 1
        return 0


@final
class Losses(Rows):
    """Bytes that are not sound records, with the number of the finding about them."""

    start: Column[i64]
    stop: Column[i64]
    code: Column[i32]

    def add(self, start: i64, stop: i64, code: i64) -> status:
        """Add one."""
        row = self.rows
        if row == self.room:
            self.grow()
        self.start[row] = start
        self.stop[row] = stop
        self.code[row] = code
        self.rows = row + 1
        return 0


@final
class Blocks(Rows):
    """Buffers of the flight data recorder in file order; ``tsc`` is the first record's time."""

    start: Column[i64]
    stop: Column[i64]
    seconds: Column[i64]
    micros: Column[i64]
    tsc: Column[i64]
    records: Column[i64]
    pid: Column[i32]
    tid: Column[i32]
    flags: Column[i32]

    def add(self, at: i64, record: i64) -> status:
        """Add one that begins at a byte with a record of this number."""
        row = self.rows
        if row == self.room:
            self.grow()
        self.start[row] = at
        self.stop[row] = at
        self.records[row] = -record
        self.pid[row] = 0
        self.tid[row] = 0
        self.flags[row] = 0
        self.seconds[row] = 0
        self.micros[row] = 0
        self.tsc[row] = 0
        self.rows = row + 1
        return 0
