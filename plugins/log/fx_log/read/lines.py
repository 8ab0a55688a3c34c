"""Lines of record JSON, from the columns that tables are made of too.

``fxframework.wire.json_rows`` writes the fields of declared records. What columns do not say is
shown by objects (``frames.Records``): damage, arguments that cannot be decoded, and what JSON has
no word for.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fx_log import format as wire
from fx_log.format import RingFrame
from fx_log.read.blocks import IS_FOREIGN, LOG, BlockArguments, BlockReader
from fx_log.read.frames import Frames, Records
from fx_log.read.records import LogFileRecord
from fxframework.kernels.arrays import I64, Bools
from fxframework.kernels.parts import NATURAL
from fxframework.model.strings import StringPool
from fxframework.wire.json_rows import RowTexts, ShownRows, doubts, head_of, raw_of, when
from fxframework.wire.many import Many

BLOCK_BYTES = 1 << 21
"""Bytes whose lines are written together: some ten times as many. Half of it takes longer."""


class LineWriter:
    """Writes the lines of all records of a file, which ``reader`` reads, in reading order."""

    def __init__(self, reader: BlockReader) -> None:
        self.reader = reader
        self.file = reader.file
        self.records = Records(reader.file)
        self.texts = RowTexts(self.file.data, StringPool())

    def lines(self) -> Iterator[bytes]:
        """Yield lines, those of a block at a time."""
        for rows_and_findings in self.reader.blocks(BLOCK_BYTES, self):
            del rows_and_findings  # lines need neither; nor are they kept while more is read
            lines = self.texts.text()
            if lines:
                yield lines

    # --- What the reader has read of a block

    def structured(self, records: Many, arguments: BlockArguments, suffixes: Many | None) -> None:
        """Write structured records, or entries of a ring."""
        frames = self.reader.sound
        parts = arguments.many
        is_doubtful = ~arguments.is_sound | IS_FOREIGN[arguments.type] | in_doubt(parts)
        by_objects = in_doubt(records)
        by_objects[arguments.record[is_doubtful]] = True
        if self.file.ring is not None:
            by_objects |= ~frames.is_filled()
        if suffixes is not None:
            record_of_suffix = np.flatnonzero(frames.suffix >= 0)
            strange_suffixes = in_doubt(suffixes)
            by_objects[record_of_suffix[strange_suffixes]] = True
            rows = np.flatnonzero(~by_objects[record_of_suffix])
            self.put(suffixes, rows, suffixes.start, suffixes.limit)
        rows = np.flatnonzero(~by_objects)
        records.own.parts[LOG["args"]] = [parts]
        if self.file.ring is None:
            self.put(records, rows, frames.start, frames.start + frames.size)
        else:
            self.put_entries(frames.take(rows), records, rows)
        # Parts know the rows of their records, which know them: no memory waits for the cycle.
        records.own.parts.clear()
        self.put_others(by_objects)

    def packets(self, packets: Many) -> None:
        """Write packets."""
        frames = self.reader.sound
        packets.keep_raw((packets.at() != frames.end) | (frames.size > wire.MAX_PACKET))
        by_objects = in_doubt(packets)
        self.put(packets, np.flatnonzero(~by_objects), frames.begin, frames.end)
        self.put_others(by_objects)

    def put_others(self, by_objects: Bools) -> None:
        """Write what is not a record, and records that columns do not say."""
        frames = self.reader.frames
        needs_object = frames.fault != 0
        needs_object[~needs_object] = by_objects
        places: list[int] = []
        records: list[LogFileRecord] = []
        for row in frames.take(needs_object).rows():
            for record in self.records.of_row(row):
                # A suffix has a place of its own; entries that wrap have offsets before others'.
                places.append(record.offset if self.file.ring is None else row.begin)
                records.append(record)
        self.texts.put_objects(places, records)

    # --- Lines

    def put(self, many: Many, rows: I64, begin: I64, end: I64) -> None:
        """Write the lines of some records, which are these bytes of a file, not of a ring."""
        if rows.size:
            self.texts.put_records(many, rows, begin[rows], (end - begin)[rows])

    def put_entries(self, frames: Frames, records: Many, rows: I64) -> None:
        """Write the lines of entries of a ring, each filled by one of the records."""
        if not rows.size:
            return
        (tag,) = self.file.numbers_of(RingFrame, frames.begin, "tag")
        first_key, *fields = ShownRows(self.texts, records, rows).fields()
        assert isinstance(first_key, bytes)  # noqa: S101 (a key)
        self.texts.put(
            frames.begin,
            *head_of("ring_entry", frames.offset, frames.end - frames.begin),
            b',"tag":',
            (NATURAL, tag),
            b',"length":',
            (NATURAL, frames.size),
            b',"log":{' + first_key.removeprefix(b","),
            *fields,
            *when(records.own.raw[rows], raw_of, frames.start, frames.size),
            b"}}\n",
        )
        self.texts.templates.forget_columns()


def in_doubt(many: Many) -> Bools:
    """Return which records, or parts of some, their fields may not give back."""
    own = many.own
    is_doubtful: Bools = (own.short | own.odd)[many.rows_at(np.arange(many.start.size))]
    for doubt in doubts(many):
        is_doubtful |= doubt
    return is_doubtful
