"""Lines of record JSON, from columns of blocks.

``fxframework.wire.lines`` writes the fields of declared blocks. What columns do not say is shown by
objects (``decoder``): a header, and what is not a block.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import orjson
from numpy.typing import NDArray

from fx_inspect import format as wire
from fx_inspect.read.decoder import Walk
from fxframework.kernels import stretches
from fxframework.kernels.parts import COPIED, NATURAL
from fxframework.kit.row_texts import column_of
from fxframework.model.strings import StringPool
from fxframework.wire.cursor import SIZE
from fxframework.wire.lines import RowTexts, ShownRows, head_of, raw_of, when
from fxframework.wire.many import ClassRows, FileNumbers, Many, Reading

__all__ = ["LineWriter"]

I64 = NDArray[np.int64]
BLOCK_BYTES = 1 << 22
"""Bytes whose lines are written together: some two to eight times as many."""
BLOCK_RECORDS = 1 << 16
"""Records whose lines are written together, at most."""
BY_COLUMNS: Final = frozenset(set(wire.BLOCKS["new"]) - {wire.HEADER})
"""Types of blocks that columns show; of headers there is one."""


class LineWriter:
    """Writes the lines of all records of a file, and reports their findings."""

    def __init__(self, walk: Walk) -> None:
        self.walk = walk
        data = np.frombuffer(walk.view, np.uint8)
        self.numbers = FileNumbers(data)
        self.texts = RowTexts(data, StringPool())

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield lines, and the byte of the file up to which their records are."""
        walk, first = self.walk, 0
        while walk.reaches(first, BLOCK_RECORDS):
            bounds = walk.bounds(first, min(walk.count, first + BLOCK_RECORDS))
            count = max(1, int(np.searchsorted(bounds, bounds[0] + BLOCK_BYTES)))
            bounds = bounds[: count + 1]
            yield int(bounds[-1]), self.block(first, bounds)
            first += bounds.size - 1

    def block(self, first: int, bounds: I64) -> bytes:
        """Return the lines of records from a number on, which begin and end at these bytes."""
        walk = self.walk
        starts, sizes = bounds[:-1], np.diff(bounds)
        numbers = np.arange(first, first + starts.size)
        types = np.asarray(walk.types)[numbers]
        for record in walk.with_findings(first, first + starts.size):
            walk.report(record)
        for type in np.flatnonzero(np.bincount(types)).tolist():
            rows = np.flatnonzero(types == type)
            if type in BY_COLUMNS:
                self.columns(wire.BLOCKS[walk.layout][type], starts[rows], sizes[rows])
            else:
                self.objects(starts[rows], numbers[rows])
        return self.texts.joined()[0]

    def objects(self, starts: I64, numbers: I64) -> None:
        """Write the lines of records that their objects show."""
        shown = (self.walk.record(number).to_json() for number in numbers.tolist())
        lines = [orjson.dumps(each) + b"\n" for each in shown]
        self.texts.put(starts, (COPIED, column_of(self.texts.templates, lines)))
        self.texts.templates.forget_columns()

    def columns(self, cls: Any, starts: I64, sizes: I64) -> None:
        """Write the lines of blocks of a class."""
        reading = Reading(self.numbers, {}, mirrored=False, for_lines=True)
        own = ClassRows.of(np.arange(starts.size))
        blocks = Many(reading, cls.layout, own, starts, starts + sizes, big=False)
        blocks.known[SIZE] = sizes
        cls.layout.read_many(blocks)
        left = blocks.limit - blocks.at()
        blocks.keep_raw(stretches.with_bits(self.numbers.data, blocks.at(), left))
        blocks.keep_raw(sizes > wire.MAX_BLOCK)
        for field in cls.layout.public:
            if getattr(field, "flag", False):
                blocks.keep_raw(blocks.known[field] & ~np.int64(1) != 0)
        order, *fields = by_field(ShownRows(self.texts, blocks, np.arange(starts.size)))
        self.texts.put(
            starts,
            *head_of(cls.record, starts, sizes),
            b',"index":',
            (NATURAL, starts // wire.UNIT),
            b',"type":' + orjson.dumps(wire.TYPE_NAMES[cls.layout.kind[0]]),
            *order,
            *([] if cls.dialect == "new" else [b',"layout":"v0"']),
            *(cell for cells in fields for cell in cells),
            *when(own.raw, raw_of, starts, sizes),
            b"}\n",
        )
        self.texts.templates.forget_columns()


def by_field(shown: ShownRows) -> list[list[Any]]:
    """Return the parts of a template that each field is shown by."""
    layout = shown.many.layout
    return [when(shown.presence(field), shown.member, field) for field in layout.shown]
