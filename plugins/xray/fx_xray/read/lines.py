"""Lines of record JSON: from columns of the declared records, where the framing finds sound ones.

Where records begin and end, ``Walk.frames`` knows. What is not a sound record is shown by the walk
that reads records one at a time; a run of columns ends before an event that is over the limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from fx_xray import rules
from fx_xray.format import HEADER_BYTES, KIND_NAMES, Dialect, FileHeader
from fx_xray.read.decoder import NO_BLOCK, NO_BUFFER, Frame, RecordDecoder, listed
from fx_xray.read.decoder import Walk as RecordWalk
from fxframework.io.limits import Limits
from fxframework.io.source import Source
from fxframework.io.words import view_of
from fxframework.kernels.arrays import I64
from fxframework.kit.lossless import LosslessRecord
from fxframework.wire.expressions import Register
from fxframework.wire.format import Format, kinds_of
from fxframework.wire.framing import BAD_SIZE, ROOM, ListedFrames
from fxframework.wire.lines import LineReader
from fxframework.wire.runs import Run
from fxframework.wire.state import Change

BEGIN, END, KIND, FAULT, BLOCK, CALLED, BEGINS_BUFFER = range(7)
"""What is listed of each record: a ``Frame``, and one more."""
ASKS = 2
"""Why a run ends: an object tells what becomes of the next record (``kernels/frames.pyx``)."""


@cache
def format_of(form: str) -> Format:
    """Return the format of the records of a trace, behind its header."""
    return Format(form, form, Dialect(form).records, codes="FXX")


def lines_of(decoder: RecordDecoder, source: Source, header: FileHeader) -> Iterator[bytes]:
    """Return the JSON of all records of a trace, in pieces of whole lines.

    Findings are not reported.
    """
    walk = RecordWalk(view_of(source.data), header, decoder)
    reader = XrayLines(format_of(decoder.form), source, walk)
    reader.show(header)
    return reader.lines()


class XrayLines(LineReader):
    """Reads the records behind the header of a trace into lines of record JSON."""

    frames: Any
    walk: Any

    def __init__(self, format: Format, source: Source, walk: RecordWalk) -> None:
        super().__init__(format, source, Limits())
        self.mirrored = walk.state.mirrored
        self.frames = XrayFrames(format, walk)
        self.walk = walk
        self.registers = {each: walk.known[each] for each in self.registers}
        self.at = HEADER_BYTES

    def restarts_of(self, run: Run, register: Register) -> Change | None:
        """Return where a register begins again in a run: in each buffer."""
        if register not in NO_BUFFER:
            return None
        rows = np.flatnonzero(self.frames.begins_buffer[: run.rows])
        return Change(rows, np.zeros(rows.size, np.int64), np.zeros(rows.size, bool))

    def put_stretches(self, run: Run, entry: int, rows: I64) -> None:
        """Make the lines of stretches that are not sound records."""
        del entry
        for place in run.places[rows].tolist():
            self.show(self.walk.record(self.frames.frame(self.frames.row_of(place))))

    def next_object(self) -> tuple[LosslessRecord, Any]:
        """Return the next record as an object, and no findings; go behind it."""
        walk = self.walk
        row = self.frames.row_of(walk.at)
        frame = self.frames.frame(row)
        # Registers are as of this record, but for those of a buffer that begins with it.
        walk.block = NO_BLOCK if self.frames.begins(row) else frame.block
        record = walk.record(frame)
        walk.at += record.nbytes
        return record, []


class XrayFrames(ListedFrames):
    """Where the records of a trace begin and end.

    ``begins_buffer`` says which rows of the last ``read`` are the first of a buffer.
    """

    def __init__(self, format: Format, walk: RecordWalk) -> None:
        super().__init__(big=walk.state.big)
        self.walk = walk
        self.entry_of = entries_by_kind(format)
        self.blocks = walk.frames.blocks(ROOM)
        self.listed = np.zeros((BEGINS_BUFFER + 1, 0), np.int64)
        """Columns of the records that were listed last, from ``BEGIN`` on."""
        self.block = -1
        """The buffer of the last one before them."""

    def take(self, rows: slice) -> tuple[int, int]:
        """Let listed rows be those that were read; return how many, and why they end."""
        faults = self.listed[FAULT, rows]
        self.begins_buffer = self.listed[BEGINS_BUFFER, rows]
        kinds = self.listed[KIND, rows]
        self.entries = np.where(faults == 0, self.entry_of[kinds], BAD_SIZE)
        asking = np.flatnonzero(faults == rules.RECORD_TOO_LARGE)
        return (int(asking[0]), ASKS) if asking.size else (self.places.size, 0)

    def list_more(self) -> None:
        """List the next records."""
        columns = listed(next(self.blocks))
        blocks = columns[BLOCK]
        is_first = blocks != np.append(self.block, blocks[:-1])
        self.block = int(blocks[-1])
        self.listed = np.concatenate([columns, is_first[None]])
        self.begin = self.listed[BEGIN]
        self.size = self.listed[END] - self.begin

    def begins(self, row: int) -> bool:
        """Return whether a record is the first of a buffer."""
        return bool(self.listed[BEGINS_BUFFER, row])

    def frame(self, row: int) -> Frame:
        """Return a record as ``RecordWalk.record`` takes it."""
        return Frame(*self.listed[:BEGINS_BUFFER, row].tolist())


def entries_by_kind(format: Format) -> I64:
    """Return the entries of sound records by kind, of shape (kinds,)."""
    entries = np.full(len(KIND_NAMES), BAD_SIZE)
    for entry, (*_, cls) in enumerate(kinds_of(format)):
        entries[KIND_NAMES.index(cls.record)] = entry
    return entries
