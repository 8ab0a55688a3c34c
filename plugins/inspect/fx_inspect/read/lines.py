"""Lines of record JSON, from columns of blocks.

``fxframework.wire.json_rows`` writes the fields of declared blocks. What columns do not say is
shown by objects (``decoder``): a header, and what is not a block.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import orjson

from fx_inspect import format as wire
from fx_inspect.read.blocks import Blocks
from fx_inspect.read.decoder import Objects, report
from fxframework.kernels import stretches
from fxframework.kernels.arrays import I64
from fxframework.kernels.parts import NATURAL
from fxframework.model.diagnostics import Diagnostics
from fxframework.model.strings import StringPool
from fxframework.wire.cursor import SIZE
from fxframework.wire.json_rows import RowTexts, ShownRows, head_of, raw_of, when
from fxframework.wire.many import ClassRows, Many, Reading

BLOCK_BYTES = 1 << 22
"""Bytes whose lines are written together: some two to eight times as many."""
BY_COLUMNS: Final = frozenset(set(wire.BLOCKS["new"]) - {wire.BlockType.HEADER})
"""Types of blocks that columns show; of headers there is one."""


class LineWriter:
    """Writes the lines of all records of a file, and reports their findings."""

    def __init__(self, blocks: Blocks, diagnostics: Diagnostics | None) -> None:
        self.blocks = blocks
        self.diagnostics = diagnostics
        self.numbers = blocks.numbers
        self.texts = RowTexts(blocks.data, StringPool())

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield lines, and the byte of the file up to which their records are."""
        for run in self.blocks.runs():
            if self.diagnostics is not None:
                report(run, self.diagnostics)
            objects = Objects(run)
            bounds = run.bounds()
            first = 0
            while first < run.types.size:
                fitting = int(np.searchsorted(bounds, bounds[first] + BLOCK_BYTES))
                stop = min(max(fitting, first + 1), run.types.size)
                yield int(bounds[stop]), self.block(objects, bounds, range(first, stop))
                first = stop

    def block(self, objects: Objects, bounds: I64, part: range) -> bytes:
        """Return the lines of some records of a run."""
        starts = bounds[part.start : part.stop]
        sizes = np.diff(bounds[part.start : part.stop + 1])
        types = objects.run.types[part.start : part.stop]
        for type in np.flatnonzero(np.bincount(types)).tolist():
            rows = np.flatnonzero(types == type)
            if type in BY_COLUMNS:
                self.columns(self.blocks.classes[type], starts[rows], sizes[rows])
            else:
                shown_rows = (part.start + rows).tolist()
                self.texts.put_objects(starts[rows], map(objects.record, shown_rows))
        return self.texts.text()

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
