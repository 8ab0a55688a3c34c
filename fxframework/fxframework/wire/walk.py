"""Walk: the records of a file of a declared format, read one after another as objects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from fxframework.io.limits import Limits
from fxframework.io.source import Source
from fxframework.io.words import FieldView, explain_stretch, view_of
from fxframework.kit.explain import check_offset
from fxframework.kit.lossless import LosslessRecord
from fxframework.wire.cursor import ShortError
from fxframework.wire.format import Damaged, Format, Magic, Note, Padding, Unknown
from fxframework.wire.framing import CUT, NO_ORDER, PADDING, UNKNOWN, frames_of
from fxframework.wire.records import Record
from fxframework.wire.rules import (
    BAD_MAGIC,
    BAD_SIZE,
    BELOW_LEAST,
    CUT_OFF,
    OTHER_VERSION,
    OTHER_VERSION_LOST,
    UNDEFINED_VALUE,
    UNKNOWN_KIND,
)
from fxframework.wire.state import State

__all__ = ["Walk", "explain"]

MORE = 64
"""Zero bytes behind the end of a growing file that show whether its last record takes more."""


class Walk:
    """Reads the records of a file one after another; ``state`` is that after the last one."""

    def __init__(
        self,
        format: Format,
        source: Source,
        state: State | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.format = format
        self.source = source
        self.data = view_of(source.data)
        self.state = format.state() if state is None else state
        self.frames = frames_of(format, source, limits)
        self.longest = limits.max_record if limits else 0
        self.at = 0
        self.views: list[FieldView] | None = None
        self.last: Any = None
        """The cursor of the last record."""

    def __iter__(self) -> Iterator[tuple[LosslessRecord, list[Note]]]:
        if self.format.begin and self.source.size:
            yield self.head()
        while self.at < self.source.size:
            yield self.next()

    def head(self) -> tuple[LosslessRecord, list[Note]]:
        """Return what is at the beginning of the file: the magic, or the header record."""
        format, data = self.format, self.data
        nbytes = len(format.magic)
        header = format.header
        if header is None:
            found = bytes(data[:nbytes])
            if found == format.magic:
                self.at = nbytes
                return Magic(nbytes=nbytes), []
            cut = format.magic.startswith(found)
            return self.damaged(min(nbytes, len(data)), CUT_OFF if cut else BAD_MAGIC)
        try:
            record, c = header.unpack(data, 0, len(data), self.state, self.views)
        except ShortError:
            return self.damaged(len(data), CUT_OFF)
        if any(number == UNDEFINED_VALUE for number, _, _ in c.notes):
            return self.damaged(record.nbytes, BAD_MAGIC)
        self.state.apply(c.sets, c.effects)
        self.at = record.nbytes
        return record, c.notes

    def damaged(self, nbytes: int, number: int) -> tuple[LosslessRecord, list[Note]]:
        """Return the next bytes as a damaged stretch."""
        at = self.at
        self.at += nbytes
        code = f"{self.format.codes}{number:04}"
        raw = self.data[at : self.at]
        return Damaged(code=code, raw=raw, offset=at, nbytes=nbytes), [(number, at, nbytes)]

    def unfinished(self) -> tuple[LosslessRecord, list[Note]]:
        """Return all that is left as a damaged stretch: a record of which more may follow."""
        return self.damaged(self.source.size - self.at, CUT_OFF)

    def lost(self, number: int) -> tuple[LosslessRecord, list[Note]]:
        """Return the bytes up to the next place where a record fits as a damaged stretch."""
        place, fits = self.at, self.format.base.fits
        while place == self.at or (place < self.source.size and not fits(self.data, place)):
            place = self.frames.next_fitting(place + 1, self.at)
        return self.damaged(place - self.at, number)

    def next(self) -> tuple[LosslessRecord, list[Note]]:
        """Return the record at ``at``, and go behind it."""
        frames, state, at = self.frames, self.state, self.at
        before = frames.big = int(state.big)
        entry = frames.entry_at(at)
        size = frames.found_size
        if entry >= 0:
            state.big = bool(frames.big)
        frames.big = before
        if entry == PADDING:
            self.at += size
            return Padding(offset=at, nbytes=size), []
        if entry == CUT and frames.growing:
            return self.unfinished()
        if entry < UNKNOWN:
            reasons = {CUT: CUT_OFF, NO_ORDER: BAD_MAGIC}
            return self.lost(reasons.get(entry, BAD_SIZE))
        cls = None
        if entry >= 0:
            family = self.format.family
            if not family.kinds and self.format.choosy and not self.format.base.fits(self.data, at):
                state.big = bool(before)
                return self.lost(BAD_SIZE)
            if family.kinds:
                numbers = family.numbers(self.data, at, state.big)
                cls = family.choose(numbers, state.registers)
            else:
                cls = self.format.base
        if cls is None:
            is_of_other_version = entry >= 0
            if not size:
                return self.lost(OTHER_VERSION_LOST if is_of_other_version else BAD_SIZE)
            self.at += size
            kind = frames.found_kind
            raw = bytes(self.data[at : self.at])
            record = Unknown(type=kind, raw=raw, offset=at, nbytes=size)
            return record, [(OTHER_VERSION if is_of_other_version else UNKNOWN_KIND, at, kind)]
        try:
            return self._unpacked(cls, at, at + size if size else self.source.size)
        except ShortError as problem:
            state.big = bool(before)
            if size:
                return self.damaged(size, BAD_SIZE)
            most = self.most_of(cls)
            may_follow = not most or problem.needed <= at + most
            if frames.growing and problem.needed > self.source.size and may_follow:
                return self.unfinished()
            return self.lost(BELOW_LEAST if problem.is_negative else CUT_OFF)

    def most_of(self, cls: Any) -> int:
        """Return the most bytes of a record of a class; 0 for any number."""
        return min(filter(None, (cls.layout.most, self.longest)), default=0)

    def _unpacked(self, cls: Any, at: int, end: int) -> tuple[LosslessRecord, list[Note]]:
        record, c = cls.unpack(self.data, at, end, self.state, self.views)
        most = self.most_of(cls)
        if not record.nbytes or 0 < most < record.nbytes:
            raise ShortError
        if self.frames.growing and at + record.nbytes == self.source.size:
            more = memoryview(bytes(self.data[at:]) + bytes(MORE))
            self.state.absent = {}  # it is of the file as it is
            if cls.unpack(more, 0, len(more), self.state)[0].nbytes > record.nbytes:
                return self.unfinished()
        self.last = c
        self.state.apply(c.sets, c.effects)
        self.at = at + record.nbytes
        for rows in self.format.tables:
            if rows.record is cls and rows.time is not None:
                record.ns = rows.time.value({**c.known, **self.state.registers})
                break
        return record, c.notes

    def again(self, record: LosslessRecord, wanted: int) -> None:
        """Read a record again, so that ``views`` gets its fields; the state does not change."""
        end = record.offset + record.nbytes
        if self.format.header is not None and isinstance(record, self.format.header):
            end = self.source.size
        section = f"{self.format.title}, {record.record}"
        assert isinstance(record, Record)  # noqa: S101 (others have no fields)
        views: list[FieldView] = []
        try:
            type(record).unpack(self.data, record.offset, end, self.state, views, wanted)
        finally:
            assert self.views is not None  # noqa: S101 (set by explain)
            self.views += [attrs.evolve(view, section=section) for view in views]


def explain(format: Format, source: Source, offset: int) -> list[FieldView]:
    """Return the fields of the record at byte ``offset``, in the order of the file.

    Raises UsageError if the offset is outside of the file.
    """
    check_offset(source, offset)
    walk = Walk(format, source)
    record, notes = next(each for each in walk if each[0].offset + each[0].nbytes > offset)
    views: list[FieldView] = []
    if isinstance(record, Record):
        walk.views = views
        walk.again(record, offset)
        return views
    view = source.data.data
    rule = format.rules.numbered(notes[0][0]) if notes else None
    name = "magic" if isinstance(record, Magic) else record.record
    section = format.title if rule is None else rule.section
    end = record.offset + record.nbytes
    meaning = None if rule is None else rule.title
    return list(
        explain_stretch(view, record.offset, end, name, section, wanted=offset, meaning=meaning)
    )
