"""Lines: the record JSON of a file, from the columns of its records.

``LineReader`` reads blocks as for tables (``blocks``). The records of each class in a run become
rows of text (``json_rows``), and all lines are put in the file's order. Records that columns do not
say, or say in doubt, are shown by their objects.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from fxframework.io.limits import Limits
from fxframework.io.source import Source
from fxframework.kernels.arrays import I64
from fxframework.kernels.parts import SIGNED
from fxframework.kernels.templates import Cell
from fxframework.kit.lossless import LosslessRecord
from fxframework.kit.row_texts import string_lengths
from fxframework.model.strings import StringPool
from fxframework.wire.blocks import LEAST_RUN, BlockReader
from fxframework.wire.format import Format
from fxframework.wire.framing import PADDING, UNKNOWN
from fxframework.wire.json_rows import RowTexts, doubts, is_said, line_of
from fxframework.wire.known import Codes
from fxframework.wire.many import Many
from fxframework.wire.runs import REASONS, SIZE_RULE, Block, Run

BLOCK_BYTES = 1 << 19
"""Bytes of the file whose lines are made together: some ten times as many."""
LONGEST_PIECE = 4 << 20
"""Bytes of texts that the lines of a piece refer to, about, where there are many of them."""
FIRST_RUN = 256
"""Records of the first run, which shows how much longer their lines are."""
LONG = 256
"""Bytes of a text up to which a block cannot refer to more than that."""


class LineReader(BlockReader):
    """Reads the records of a file into lines of record JSON."""

    for_lines = True

    def __init__(self, format: Format, source: Source, limits: Limits) -> None:
        super().__init__(format, source, limits, StringPool(), tables=())
        self.block_bytes = BLOCK_BYTES
        self.longest_run = FIRST_RUN
        self.texts = RowTexts(self.numbers.data, self.strings)
        self.said: dict[Any, bool] = {}
        """Whether columns say what records and parts of a layout show."""
        self.plain: dict[Many, I64] = {}
        """The rows of each class of a run that its columns show."""
        self.offsets: list[int] = []
        self.object_lines: list[bytes] = []
        """Places and lines of records that were read as objects."""
        self.object_bytes = 0
        """Bytes of these lines."""
        self.longest_text = 0
        """Bytes of the longest of the texts in ``strings`` that were looked at."""
        self.texts_looked_at = 0
        """Number of these."""
        self.pieces: list[Iterator[bytes]] = []
        """The lines of the runs of the block."""

    def lines(self) -> Iterator[bytes]:
        """Yield the lines of each run, at once if they do not refer to far longer texts."""
        for _ in self.blocks():
            pieces = self.pieces
            self.pieces = []
            yield from itertools.chain.from_iterable(pieces)
            if self.object_lines:  # of records behind the last run
                yield self._joined()
        if self.object_lines:  # there was only a header
            yield self._joined()

    def _joined(self) -> bytes:
        """Return all lines since the last call, in the order of the file."""
        self._put_objects()
        return self.texts.text()

    def _put_objects(self) -> None:
        """Write the lines of records that were read as objects."""
        self.texts.put_lines(self.offsets, self.object_lines)
        self.offsets = []
        self.object_lines = []
        self.object_bytes = 0

    def add_object(self, ordinal: int, record: LosslessRecord) -> bool:
        """Take a record that was read as an object."""
        self.show(record)
        return super().add_object(ordinal, record)

    def see(self, record: LosslessRecord) -> None:
        """Take a sound record that columns do not show."""
        self.show(record)

    def show(self, record: LosslessRecord) -> None:
        """Make the line of a record."""
        self.keep(record.offset, record.to_json())

    def keep(self, place: int, shown: Mapping[str, Any]) -> None:
        """Make the line of a record at a place, from its JSON."""
        line = line_of(shown)
        self.offsets.append(place)
        self.object_lines.append(line)
        self.object_bytes += len(line)

    def watched_of(self, many: Many) -> I64:
        """Return the rows of the sound records that are shown by objects."""
        own = many.own
        by_objects = np.zeros(own.sound.size, bool)
        for read in (many, *itertools.chain.from_iterable(own.parts.values())):
            for rows in self._doubtful(read):
                by_objects[rows] = True
        self.plain[many] = np.flatnonzero(own.sound & ~by_objects)
        return own.ordinals[own.sound & by_objects]

    def _doubtful(self, many: Many) -> Iterator[I64]:
        """Yield rows of records that columns do not show, themselves or parts of them."""
        layout = many.layout
        if layout is None:  # integers of a list
            return
        if layout not in self.said:
            self.said[layout] = self.says(layout)
        if self.said[layout]:
            for doubt in doubts(many):
                rows = many.rows_at(np.flatnonzero(doubt))
                # Of those that are shown with their bytes it is known already.
                yield rows[~many.own.raw[rows]]
        else:
            yield many.rows_at(np.arange(many.start.size))

    def says(self, layout: Any) -> bool:
        """Return whether columns say what records or parts of a class show."""
        return is_said(layout)

    def take_run(self, block: Block, run: Run) -> None:
        """Make the lines of a run."""
        del block
        self._fit_blocks(run)
        records = [Plain.of(many, rows, run) for many, rows in self.plain.items() if rows.size]
        ends = self._piece_ends(run)
        for many in self.plain:
            own = many.own
            if not own.all_sound:
                self.put_damaged(run, self.short_rule, own.ordinals[own.short & ~own.odd])
        self.plain.clear()  # the run is freed, but for what ``in_pieces`` needs
        for entry, rows in run.stretches:
            self.put_stretches(run, entry, rows[rows < run.count])
        if ends is None:
            for plain in records:
                self.texts.put_records(plain.many, plain.rows, plain.places, plain.sizes)
            self.pieces.append(iter([self._joined()]))
            return
        # Each piece is written when it is asked for, so that never all of them are in memory.
        self._put_objects()
        other_lines = self.texts.taken()
        self.pieces.append(in_pieces(self.texts.of_items(), records, other_lines, ends))

    def _fit_blocks(self, run: Run) -> None:
        """Let blocks be shorter if the lines of objects are far longer than the records.

        All lines of a block that objects made are held until it ends.
        """
        nbytes = self.object_bytes
        run_bytes = int(run.places[run.count - 1] - run.places[0]) + 1
        if nbytes > LONGEST_PIECE:
            share = LONGEST_PIECE / nbytes
            self.longest_run = max(LEAST_RUN, int(run.count * share))
            self.block_bytes = max(1, int(run_bytes * share))
        else:
            self.block_bytes = min(BLOCK_BYTES, 2 * self.block_bytes)

    def _piece_ends(self, run: Run) -> I64 | None:
        """Return where pieces of a run's lines end, as places; None if it is one piece.

        A text that a registration declares is written in the lines of all records that refer to
        it: a file of a kilobyte could make a gigabyte of them.
        """
        if not self._has_long_texts():
            return None
        lengths = string_lengths(self.strings)
        # Of each record of the run, the bytes of the texts that it refers to.
        nbytes = np.zeros(run.count)
        for many in self.plain:
            for read in (many, *itertools.chain.from_iterable(many.own.parts.values())):
                for codes in read.known.values():
                    if isinstance(codes, Codes):
                        column = codes.column()
                        rows = np.flatnonzero(column >= 0)
                        ordinals = many.own.ordinals[read.rows_at(rows)]
                        of_run = ordinals < run.count
                        referred = lengths[column[rows[of_run]]]
                        nbytes += np.bincount(ordinals[of_run], referred, run.count)
        piece_of_record = np.cumsum(nbytes) // LONGEST_PIECE
        if piece_of_record[-1] < 2:
            return None
        last_of_pieces = np.flatnonzero(piece_of_record[1:] != piece_of_record[:-1])
        return np.append(run.places[last_of_pieces + 1], np.iinfo(np.int64).max)

    def _has_long_texts(self) -> bool:
        """Return whether any text so far is long; each is looked at once."""
        new_lengths = self.strings.pool.array("lengths")[self.texts_looked_at : len(self.strings)]
        self.texts_looked_at = len(self.strings)
        self.longest_text = max(self.longest_text, int(new_lengths.max(initial=0)))
        return self.longest_text > LONG

    def put_damaged(self, run: Run, number: int, every_row: I64) -> None:
        """Make the lines of damaged stretches."""
        rows = every_row[every_row < run.count]
        code = f',"code":"{self.format.codes}{number:04}"'.encode()
        self.texts.put_raw("damaged", run.places[rows], run.sizes[rows], [code])

    def put_stretches(self, run: Run, entry: int, rows: I64) -> None:
        """Make the lines of stretches that are not records of a known kind, by the entry."""
        offsets = run.places[rows]
        sizes = run.sizes[rows]
        if entry == PADDING:
            self.texts.put_padding(offsets, sizes)
        elif entry == UNKNOWN:
            kinds: Cell = SIGNED, self.frames.kinds_found[rows]
            self.texts.put_raw("unknown", offsets, sizes, [b',"type":', kinds])
        else:
            self.put_damaged(run, REASONS.get(entry, SIZE_RULE), rows)


@attrs.frozen(eq=False)
class Plain:
    """Records of a class that its columns show."""

    many: Many
    rows: I64
    places: I64
    sizes: I64
    parts: dict[Any, Any]
    """The items of their lists, by field."""

    @classmethod
    def of(cls, many: Many, rows: I64, run: Run) -> Plain:
        """Return the records in some rows of a class of a run."""
        ordinals = many.own.ordinals[rows]
        items_by_field = dict(many.own.parts)
        return cls(many, rows, run.places[ordinals], run.sizes[ordinals], items_by_field)


def in_pieces(
    texts: RowTexts, records: Sequence[Plain], other_lines: tuple[I64, list[bytes]], ends: I64
) -> Iterator[bytes]:
    """Yield the lines of a run piece by piece, each up to a place of ``ends``.

    ``other_lines`` are places and lines of what is not among the records.
    """
    places_of_others, lines_of_others = other_lines
    for plain in records:
        plain.many.own.parts = plain.parts  # which the run has dropped
    begin = np.iinfo(np.int64).min
    for end in ends.tolist():
        for plain in records:
            start, stop = np.searchsorted(plain.places, [begin, end]).tolist()
            if start < stop:
                rows = plain.rows[start:stop]
                texts.put_records(
                    plain.many, rows, plain.places[start:stop], plain.sizes[start:stop]
                )
        start, stop = np.searchsorted(places_of_others, [begin, end]).tolist()
        texts.put_lines(places_of_others[start:stop], lines_of_others[start:stop])
        yield texts.text()
        begin = end
    for plain in records:
        plain.many.own.parts = {}  # parts know the rows of their records, which know them
