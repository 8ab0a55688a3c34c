"""Framing: the base of the scans, which finds where records end, and the list of their frames.

The sizes of records are checked in ``scan.py``.
"""

from __future__ import annotations

from typing import final

from fx_xray.format import HEADER_BYTES, KIND_NAMES
from fxframework.kernels.annotations import (
    Array,
    Column,
    Fallible,
    flag,
    i32,
    i64,
    status,
    u8,
)
from fxframework.kernels.buffers import full, room
from fxframework.kernels.kernel import Kernel
from fxframework.kernels.notes import Notes
from fxframework.kernels.rows import Rows

__all__ = ["SPACE", "Blocks", "FrameList", "Losses", "Scan", "Stretches"]

SPACE = -1
"""Instead of the number of a rule: the space behind the end of a buffer."""


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
        row = self.add_row()
        self.start[row] = start
        self.stop[row] = stop
        self.block[row] = block
        self.flags[row] = flags
        self.tsc[row] = tsc
        return 0


@final
class Losses(Rows):
    """Bytes that are not sound records, with the number of the finding about them."""

    start: Column[i64]
    stop: Column[i64]
    code: Column[i32]

    def add(self, start: i64, stop: i64, code: i64) -> status:
        """Add one."""
        row = self.add_row()
        self.start[row] = start
        self.stop[row] = stop
        self.code[row] = code
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
        row = self.add_row()
        self.start[row] = at
        self.stop[row] = at
        self.records[row] = -record
        self.pid[row] = 0
        self.tid[row] = 0
        self.flags[row] = 0
        self.seconds[row] = 0
        self.micros[row] = 0
        self.tsc[row] = 0
        return 0


class Scan(Kernel):
    """Base of the scans, which step over records from behind the header up to ``until``.

    ``at`` is the next record, number ``record``; ``called`` says whether arguments of a call may
    come; up to ``padded`` there is space, ``block`` is the buffer, ``base`` its biased time.
    """

    notes: Notes
    stretches: Stretches
    losses: Losses
    kinds: Array[i64]
    version: i64
    size: i64
    until: i64
    at: i64
    padded: i64
    record: i64
    entries: i64
    block: i64
    base: i64
    open: i64
    called: flag

    def __init__(self, size: int, notes: Notes, version: int) -> None:
        self.notes = notes
        self.stretches = Stretches()
        self.losses = Losses()
        self.kinds = full(len(KIND_NAMES), "i8")
        self.version = version
        self.size = size
        self.until = 0
        self.at = HEADER_BYTES
        self.padded = HEADER_BYTES
        self.record = 1
        self.entries = 0
        self.block = -1
        self.base = 0
        self.open = -1
        self.called = False


class FrameList(Kernel):
    """Lists the records over which a scan steps, up to ``most`` in each run.

    By record: its ``end``; its ``fault``, the number of the rule if it is not sound, SPACE if it is
    space, or 0; the ``block``, the ``base`` and ``called`` of the scan behind it; and how many
    findings are ``noted`` by then. ``noting`` is the scan that makes them; another one follows.
    """

    scan: Scan
    noting: Scan
    most: i64
    end: Array[i64]
    fault: Array[i64]
    block: Array[i64]
    base: Array[i64]
    called: Array[u8]
    noted: Array[i64]

    def __init__(self, scan: Scan, noting: Scan, most: int) -> None:
        self.scan = scan
        self.noting = noting
        self.most = most
        self.end = room(most, "i8")
        self.fault = room(most, "i8")
        self.block = room(most, "i8")
        self.base = room(most, "i8")
        self.called = room(most, "u1")
        self.noted = room(most, "i8")

    def step(self) -> Fallible[i64]:
        """List records. Return how many there are: none at the end."""
        row = 0
        self.noting.notes.used = 0
        while row < self.most and self.scan.at < self.scan.size:
            fault = SPACE if self.scan.at < self.scan.padded else 0
            self.scan.losses.rows = 0
            self.scan.until = self.scan.at + 1
            self.scan.step()
            self.noting.until = self.scan.at
            self.noting.step()
            if self.scan.losses.rows:
                fault = self.scan.losses.code[0]
            self.end[row] = self.scan.at
            self.fault[row] = fault
            self.block[row] = self.scan.block
            self.base[row] = self.scan.base
            self.called[row] = self.scan.called
            self.noted[row] = self.noting.notes.used
            row += 1
        return row
