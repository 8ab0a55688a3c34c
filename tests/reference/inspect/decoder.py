"""The decoder of Inspect that found its records by itself, frozen: the scan is held against it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tests.reference.inspect import layout as wire
from tests.reference.inspect.layout import BlockType
from tests.reference.inspect.records import (
    RESERVED_MASKS,
    TWO_WORDS,
    TYPES_OF,
    Block,
    Damaged,
    InspectRecord,
    Padding,
    Unknown,
    block_of,
)

from fx_inspect import rules
from fxframework.errors import Rule
from fxframework.io.limits import Limits
from fxframework.io.words import view_of
from fxframework.model.diagnostics import Diagnostics, Found

if TYPE_CHECKING:
    from tests.reference.inspect.records import Data

__all__ = ["RecordDecoder"]


def _zeros_end(view: memoryview, at: int, whole: int) -> int:
    """Return the end of the run of zero units at byte ``at``."""
    piece = 1 << 12
    while at < whole:
        chunk = view[at : min(at + piece, whole)].tobytes()
        left = len(chunk.lstrip(b"\0"))
        at += (len(chunk) - left) // wire.UNIT * wire.UNIT
        if left:
            return at
        piece = min(2 * piece, 1 << 20)
    return at


RUN = 32
"""Blocks that follow one another where reading continues."""


class _Resume:
    """Finds where reading continues after bytes at which no block can begin."""

    def __init__(self, view: memoryview, layout: str) -> None:
        import numpy as np

        whole = len(view) // wire.UNIT * wire.UNIT
        words = np.frombuffer(view[:whole], "<u8")[::2].astype(np.uint64)
        order = wire.ORDER.get(words).astype(np.int64)
        field = wire.TYPE if layout == "new" else wire.TYPE_V0
        room = len(words) - np.arange(len(words))
        steps = np.left_shift(1, order)
        plausible = (order <= wire.MAX_ORDER) & (steps <= room)
        plausible &= field.get(words) < TYPES_OF[layout]
        if layout == "new":
            plausible &= wire.RESERVED_BITS.get(words) == 0
        self._fits = plausible
        # Backwards: behind a block are as many as behind the next one, and that one.
        follow = [0] * len(words) + [RUN]
        steps[~plausible] = 0
        empty = (words == 0).tolist()
        for unit, step in zip(range(len(words) - 1, -1, -1), reversed(steps.tolist()), strict=True):
            if step:
                follow[unit] = min(follow[unit + step] + (not empty[unit]), RUN)
        self._follow = np.array(follow[:-1]) == RUN
        self._end = whole

    def after(self, at: int) -> int:
        """Return the next unit after byte ``at`` from which blocks follow.

        They lead to the end of the file, or ``RUN`` of them are not zero. If there is none, the
        next unit at which a block can begin, or the end of the last unit.
        """
        start = at // wire.UNIT + 1
        for mask in (self._follow, self._fits):
            rest = mask[start:]
            if rest.any():
                return (start + int(rest.argmax())) * wire.UNIT
        return self._end


class RecordDecoder:
    """Reads a VMO block by block, in the layout of its first bytes.

    Findings go to ``diagnostics``; of ``limits`` only ``max_record`` applies. No bytes raise an
    exception, except StrictError with strict diagnostics.
    """

    def __init__(
        self, *, diagnostics: Diagnostics | None = None, limits: Limits | None = None
    ) -> None:
        self.diagnostics = diagnostics
        self.limits = limits or Limits()

    def records(self, data: Data) -> Iterator[InspectRecord]:
        """Yield every block, padding and damage too; their ``nbytes`` add up to ``len(data)``."""
        walk = self.begin(data)
        at = number = 0
        while at < len(walk.view):
            record = walk.reported(at, number)
            yield record
            at += record.nbytes
            number += 1

    def begin(self, data: Data) -> Walk:
        """Return a walk from the beginning of ``data``, for callers that read some records."""
        return Walk(view_of(data), self.limits.max_record, self.diagnostics)


class Walk:
    """A walk through a file. ``found`` holds the findings about the current record."""

    def __init__(
        self, view: memoryview, max_record: int, diagnostics: Diagnostics | None = None
    ) -> None:
        self.view = view
        self.found: list[Found] = []
        self.max_record = max_record
        self.diagnostics = diagnostics
        self.layout = wire.layout_of(view[:2].tobytes())
        self.resume: _Resume | None = None

    def reported(self, at: int, number: int) -> InspectRecord:
        """Return the record at byte ``at``, whose number is ``number``, and report its findings."""
        record = self.record(at)
        if not at and not (isinstance(record, Block) and record.type == "HEADER"):
            self.found.insert(0, Found(rules.NO_HEADER, 0))
        if self.diagnostics is not None:
            self.diagnostics.report(self.found, number)
        self.found.clear()
        return record

    def find(self, rule: Rule, offset: int, value: object = None) -> None:
        """Add a finding about the next record."""
        self.found.append(Found(rule, offset, value))

    def damaged(self, rule: Rule, at: int, end: int, value: object) -> Damaged:
        """Return bytes ``at`` to ``end`` as a damaged stretch, with a finding."""
        self.find(rule, at, value)
        return Damaged(offset=at, nbytes=end - at, code=rule.code, raw=self.view[at:end])

    def record(self, at: int) -> InspectRecord:
        """Return the record at byte ``at``."""
        view = self.view
        left = len(view) - at
        if left < wire.UNIT:
            return self.damaged(rules.TRAILING_BYTES, at, len(view), left)
        whole = len(view) // wire.UNIT * wire.UNIT
        words = TWO_WORDS.unpack_from(view, at)
        if not any(words):
            end = _zeros_end(view, at, whole)
            if end - at > wire.UNIT:
                return Padding(offset=at, nbytes=end - at)
        word = words[0]
        order = word & wire.ORDER.limit
        size = wire.ORDER_SIZE(order)
        type = (wire.TYPE if self.layout == "new" else wire.TYPE_V0).get(word)
        if size > left:
            if order <= wire.MAX_ORDER and type < TYPES_OF[self.layout]:
                return self.damaged(rules.BLOCK_PAST_THE_END, at, len(view), order)
            if self.resume is None:
                self.resume = _Resume(view, self.layout)
            return self.damaged(rules.NO_BLOCK, at, self.resume.after(at), order)
        if self.max_record and size > self.max_record:
            return self.damaged(rules.BLOCK_OVER_LIMIT, at, at + size, size)
        block = block_of(view[at : at + size], self.layout, index=at // wire.UNIT)
        self.check(block, words)
        return block

    def check(self, block: Block | Unknown, words: tuple[int, int]) -> None:
        """Report the findings about a block by itself."""
        at = block.offset
        if block.order > wire.MAX_ORDER:
            self.find(rules.LARGE_BLOCK, at, block.nbytes)
        if isinstance(block, Unknown):
            self.find(rules.UNKNOWN_TYPE, at, block.type)
            return
        number = block.number
        header, payload = RESERVED_MASKS[self.layout, number]
        if words[0] & header or words[1] & payload:
            self.find(rules.RESERVED_BITS_SET, at)
        if number == BlockType.HEADER:
            if at:
                self.find(rules.SECOND_HEADER, at)
            else:
                self.header(block, wire.HEADER_MAGIC.get(words[0]))
        elif number == BlockType.RESERVED:
            self.find(rules.RESERVED_BLOCK, at)
        elif number == BlockType.BOOL_VALUE and words[1] > 1:
            self.find(rules.INVALID_BOOL, at, words[1])

    def header(self, block: Block, magic: int) -> None:
        """Report the findings about the header, whose magic is the number ``magic``."""
        fields = block.fields
        if fields["magic"] != "INSP":
            self.find(rules.OTHER_MAGIC, 0, magic)
        version = fields["version"]
        if version > (wire.MAX_VERSION if self.layout == "new" else 0):
            self.find(rules.UNKNOWN_VERSION, 0, version)
        elif not version and self.layout == "new":
            self.find(rules.VERSION_ZERO_IN_NEW_LAYOUT, 0)
        generation = fields["generation"]
        if generation % 2:
            self.find(rules.LOCKED, 0)
        elif generation == wire.FROZEN_GENERATION:
            self.find(rules.FROZEN_VMO, 0)
        size, actual = fields["vmo_size"], len(self.view)
        if size is None:
            return
        if not block.nbytes <= size <= wire.MAX_VMO or size % wire.UNIT:
            self.find(rules.NO_SIZE, 0, size)
        elif size > actual:
            self.find(rules.SHORTER_THAN_ITS_SIZE, 0, size)
        elif size < actual:
            self.find(rules.LONGER_THAN_ITS_SIZE, 0, size)
