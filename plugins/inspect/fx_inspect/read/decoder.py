"""The decoder: records of a VMO as objects, one at a time, where the scan finds them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from fx_inspect import format as wire
from fx_inspect import rules
from fx_inspect.read.first_pass import record_scan
from fx_inspect.read.records import Damaged, InspectRecord, Padding, block_of
from fx_inspect.rules import RULES
from fxframework.io.limits import Limits
from fxframework.io.words import view_of
from fxframework.model.diagnostics import Diagnostics, Found

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fx_inspect.read.records import Data
    from fx_inspect.read.scan import Scan

__all__ = ["RecordDecoder", "Walk"]

AHEAD = 1 << 10
"""Records that are found in one go."""
DAMAGE = frozenset(
    {rules.TRAILING_BYTES, rules.BLOCK_PAST_THE_END, rules.NO_BLOCK, rules.BLOCK_OVER_LIMIT}
)
"""Findings about bytes in which no block begins."""


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
        number = 0
        while walk.reaches(number):
            yield walk.reported(number)
            number += 1

    def begin(self, data: Data) -> Walk:
        """Return a walk from the beginning of ``data``, for callers that read some records."""
        octets = np.frombuffer(view_of(data), np.uint8)
        return Walk(octets, record_scan(octets, self.limits), self.diagnostics)


class Walk:
    """The records of a file by number, as the scan finds them."""

    def __init__(
        self, data: NDArray[np.uint8], scan: Scan, diagnostics: Diagnostics | None = None
    ) -> None:
        self.view = view_of(data)
        self.scan = scan
        self.diagnostics = diagnostics
        self.layout = wire.layout_of(data[:2].tobytes())
        self.passed = 0
        """Notes that were reported."""
        self.take_notes()
        self.units, self.types = memoryview(scan.unit), memoryview(scan.type)

    @property
    def count(self) -> int:
        """The records that were found so far."""
        return int(self.scan.count)

    def reaches(self, number: int, ahead: int = AHEAD) -> bool:
        """Find the records up to a number, and some more. Return whether there are so many."""
        if self.count <= number:
            self.scan.most = number + ahead
            self.scan.run()
            self.take_notes()
        return self.count > number

    def bounds(self, first: int, stop: int) -> NDArray[np.int64]:
        """Return where records that were found begin, and where the last one ends, in bytes."""
        units = np.asarray(self.units)[first : stop + 1].astype(np.int64)
        if stop == self.count:
            units = np.append(units[: stop - first], self.scan.at)
        return np.minimum(units * wire.UNIT, len(self.view))

    def take_notes(self) -> None:
        """Take the notes of the scan that were not reported yet, after it has found records."""
        self.waiting = self.scan.notes.findings[4 * self.passed :].reshape(-1, 4)
        self.noted = int(self.waiting[0, 2]) if self.waiting.size else 1 << 62
        """The first record with a note."""

    def reported(self, number: int) -> InspectRecord:
        """Return a record that was found, and report the findings about it."""
        record = self.record(number)
        self.report(number)
        return record

    def report(self, number: int) -> None:
        """Report the findings about a record; those of records before it were reported."""
        found = self.found(number)
        self.passed += len(found)
        if self.diagnostics is not None:
            self.diagnostics.report(found, number)

    def with_findings(self, first: int, stop: int) -> list[int]:
        """Return which of some records that were found have findings."""
        begin, end = np.searchsorted(self.waiting[:, 2], (first, stop)).tolist()
        numbers: list[int] = np.unique(self.waiting[begin:end, 2]).tolist()
        return numbers

    def found(self, number: int) -> list[Found]:
        """Return the findings about a record that were not reported yet."""
        if number < self.noted:
            return []
        notes = self.waiting
        first, last = np.searchsorted(notes[:, 2], (number, number + 1)).tolist()
        found = [
            Found(RULES.numbered(rule), offset, value)
            for rule, offset, _, value in notes[first:last].tolist()
        ]
        return sorted(found, key=lambda one: one.rule is not rules.NO_HEADER)

    def at(self, offset: int) -> int:
        """Return the number of the record that contains a byte."""
        self.reaches(offset)
        return bisect_right(self.units, offset // wire.UNIT, hi=self.scan.count) - 1

    def record(self, number: int) -> InspectRecord:
        """Return a record that was found."""
        unit, type = self.units[number], self.types[number]
        behind = self.scan.at if number + 1 == self.count else self.units[number + 1]
        start, end = wire.UNIT * unit, min(wire.UNIT * behind, len(self.view))
        if type == wire.PADDING:
            return Padding(offset=start, nbytes=end - start)
        data = self.view[start:end]
        if type == wire.DAMAGED:
            (code,) = (each.rule.code for each in self.found(number) if each.rule in DAMAGE)
            return Damaged(offset=start, nbytes=len(data), code=code, raw=data)
        return block_of(data, self.layout, index=unit)
