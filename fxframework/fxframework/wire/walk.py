"""Walk: the records of a file of a declared format, read one after another as objects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from fxframework.io.limits import Limits
from fxframework.io.source import Source
from fxframework.io.words import FieldView, explain_stretch, view_of
from fxframework.kit.explain import check_offset
from fxframework.kit.lossless import DamagedRecord, LosslessRecord, PaddingRecord, UnknownRecord
from fxframework.wire.cursor import ShortError
from fxframework.wire.format import Format, Magic, Note
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
        data = self.data
        magic = self.format.magic
        header = self.format.header
        if header is None:
            beginning = bytes(data[: len(magic)])
            if beginning == magic:
                self.at = len(magic)
                return Magic(nbytes=len(magic)), []
            if magic.startswith(beginning):
                return self.damaged(len(beginning), CUT_OFF)
            return self.damaged(len(beginning), BAD_MAGIC)
        try:
            record, cursor = header.unpack(data, 0, len(data), self.state, self.views)
        except ShortError:
            return self.damaged(len(data), CUT_OFF)
        # A header with another constant than the format's is that of another format.
        if any(number == UNDEFINED_VALUE for number, _, _ in cursor.notes):
            return self.damaged(record.nbytes, BAD_MAGIC)
        self.state.apply(cursor.sets, cursor.effects)
        self.at = record.nbytes
        return record, cursor.notes

    def damaged(self, nbytes: int, number: int) -> tuple[LosslessRecord, list[Note]]:
        """Return the next bytes as a damaged stretch."""
        begin = self.at
        self.at += nbytes
        code = f"{self.format.codes}{number:04}"
        raw = self.data[begin : self.at]
        record = DamagedRecord(code=code, raw=raw, offset=begin, nbytes=nbytes)
        return record, [(number, begin, nbytes)]

    def unfinished(self) -> tuple[LosslessRecord, list[Note]]:
        """Return all that is left as a damaged stretch: a record of which more may follow."""
        return self.damaged(self.source.size - self.at, CUT_OFF)

    def lost(self, number: int) -> tuple[LosslessRecord, list[Note]]:
        """Return the bytes up to the next place where a record fits as a damaged stretch."""
        fits = self.format.base.fits
        place = self.frames.next_fitting(self.at + 1, self.at)
        while place < self.source.size and not fits(self.data, place):
            place = self.frames.next_fitting(place + 1, self.at)
        return self.damaged(place - self.at, number)

    def next(self) -> tuple[LosslessRecord, list[Note]]:
        """Return the record at ``at``, and go behind it."""
        frames = self.frames
        state = self.state
        begin = self.at
        big_before = state.big
        frames.big = int(big_before)
        entry = frames.entry_at(begin)
        size = frames.found_size
        if entry >= 0:
            state.big = bool(frames.big)  # a record with a mark may have changed it
        frames.big = int(big_before)
        if entry == PADDING:
            self.at += size
            return PaddingRecord(offset=begin, nbytes=size), []
        if entry == CUT and frames.growing:
            return self.unfinished()
        if entry < UNKNOWN:
            reasons = {CUT: CUT_OFF, NO_ORDER: BAD_MAGIC}
            return self.lost(reasons.get(entry, BAD_SIZE))
        if entry == UNKNOWN:
            return self._unknown(size, UNKNOWN_KIND, BAD_SIZE)
        family = self.format.family
        if family.kinds:
            cls = family.choose(family.numbers(self.data, begin, state.big), state.registers)
            if cls is None:
                return self._unknown(size, OTHER_VERSION, OTHER_VERSION_LOST)
        else:
            cls = self.format.base
            if self.format.choosy and not cls.fits(self.data, begin):
                state.big = big_before
                return self.lost(BAD_SIZE)
        try:
            return self._unpacked(cls, begin, size)
        except ShortError as problem:
            state.big = big_before
            if size:
                return self.damaged(size, BAD_SIZE)
            most = self.most_of(cls)
            may_follow = not most or problem.needed <= begin + most
            if frames.growing and problem.needed > self.source.size and may_follow:
                return self.unfinished()
            if problem.is_negative:
                return self.lost(BELOW_LEAST)
            return self.lost(CUT_OFF)

    def _unknown(
        self, size: int, number: int, number_if_lost: int
    ) -> tuple[LosslessRecord, list[Note]]:
        """Return a record of a kind without a class; without a size, where it ends is not known."""
        if not size:
            return self.lost(number_if_lost)
        begin = self.at
        self.at += size
        kind = self.frames.found_kind
        raw = bytes(self.data[begin : self.at])
        return UnknownRecord(type=kind, raw=raw, offset=begin, nbytes=size), [(number, begin, kind)]

    def most_of(self, cls: Any) -> int:
        """Return the most bytes of a record of a class; 0 for any number."""
        return min(filter(None, (cls.layout.most, self.longest)), default=0)

    def _unpacked(self, cls: Any, at: int, size: int) -> tuple[LosslessRecord, list[Note]]:
        """Return the record of a class at byte ``at``, and let it change the state.

        Of a record that does not say its size, ``size`` is 0.
        """
        end = at + size if size else self.source.size
        record, cursor = cls.unpack(self.data, at, end, self.state, self.views)
        most = self.most_of(cls)
        if not record.nbytes or 0 < most < record.nbytes:
            raise ShortError
        if self.frames.growing and not size and at + record.nbytes == self.source.size:
            # The file may end within a field that goes on as long as there are bytes.
            extended = memoryview(bytes(self.data[at:]) + bytes(MORE))
            self.state.absent = {}  # it is of the file as it is
            longer_record, _ = cls.unpack(extended, 0, len(extended), self.state)
            if longer_record.nbytes > record.nbytes:
                return self.unfinished()
        self.last = cursor
        self.state.apply(cursor.sets, cursor.effects)
        self.at = at + record.nbytes
        for rows in self.format.tables:
            if rows.record is cls and rows.time is not None:
                record.ns = rows.time.value({**cursor.known, **self.state.registers})
                break
        return record, cursor.notes


def explain(format: Format, source: Source, offset: int) -> list[FieldView]:
    """Return the fields of the record at byte ``offset``, in the order of the file.

    Raises UsageError if the offset is outside of the file.
    """
    check_offset(source, offset)
    walk = Walk(format, source)
    record, notes = next(
        (record, notes) for record, notes in walk if record.offset + record.nbytes > offset
    )
    end = record.offset + record.nbytes
    if isinstance(record, Record):
        if format.header is not None and isinstance(record, format.header):
            end = source.size
        section = f"{format.title}, {record.record}"
        views: list[FieldView] = []
        type(record).unpack(walk.data, record.offset, end, walk.state, views, offset)
        return [attrs.evolve(view, section=section) for view in views]
    # Other bytes have no fields: what was found about them says what they are.
    name = record.record
    section = format.title
    meaning = None
    if isinstance(record, Magic):
        name = "magic"
    if notes:
        rule = format.rules.numbered(notes[0][0])
        section = rule.section
        meaning = rule.title
    data = source.data.data
    stretch = explain_stretch(
        data, record.offset, end, name, section, wanted=offset, meaning=meaning
    )
    return list(stretch)
