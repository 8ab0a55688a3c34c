"""The decoder: records of a trace as objects, one at a time.

``buffers.py`` and ``basic.py`` find where each record is and what is wrong with it; ``format.py``
has the fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from fx_xray import rules
from fx_xray.format import (
    CALL_ARGUMENT,
    FUNCTION,
    FUNCTION_BYTES,
    KIND_NAMES,
    OF_BUFFER,
    CallArgument,
    Damaged,
    Dialect,
    FileHeader,
    Now,
    Padding,
    Unknown,
    XrayRecord,
)
from fx_xray.read.basic import BasicFrames
from fx_xray.read.buffers import FdrFrames, Frames
from fx_xray.read.frames import SPACE, Records
from fx_xray.read.header import asked_frequency, asked_order, header_findings, read_header
from fx_xray.rules import RULES
from fxframework.io.limits import Limits
from fxframework.io.words import U64_MAX, view_of
from fxframework.kernels.sorting import joined_ranges
from fxframework.model.clock import NS_PER_SECOND
from fxframework.model.diagnostics import Diagnostics, Found
from fxframework.wire.expressions import wrapped

if TYPE_CHECKING:
    Data = NDArray[np.uint8] | bytes | bytearray | memoryview

AT_ONCE: Final = 1 << 12
"""Records that are listed at once."""
NO_BUFFER: Final = dict.fromkeys(OF_BUFFER, 0)
"""Registers where a buffer begins."""
NO_BLOCK: Final = -2
"""Instead of the number of a buffer, or -1 of what is in none: registers are of no buffer yet."""


class RecordDecoder:
    """Reads a trace record by record.

    ``form`` is xray or xray-basic. Findings go to ``diagnostics``, those of the whole file before
    its first record; of ``limits``, ``max_record`` is heeded. ``options`` are the reader's:
    ``byte_order`` and ``cycle_frequency``. Nothing that the bytes say raises an exception, but for
    the StrictError of strict diagnostics; an option that is invalid does (UsageError).
    """

    def __init__(
        self,
        form: str,
        *,
        diagnostics: Diagnostics | None = None,
        limits: Limits | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.form = form
        self.diagnostics = diagnostics
        self.limits = limits or Limits()
        self.byte_order = asked_order(options)
        self.cycle_frequency = asked_frequency(options)

    def records(self, data: Data, *, mend: bool = False) -> Iterator[XrayRecord]:
        """Return every record in file order, as it is; their ``nbytes`` add up to ``len(data)``.

        With ``mend``, records that a recorder cut in half are made good, as tables have them: such
        a record has 8 bytes and the time that it had, and the one that is in its second half is
        there too.
        """
        view = view_of(data)
        header = read_header(view, self.form, self.byte_order)
        if self.diagnostics is not None:
            self._report(self.diagnostics, view, header, mend=mend)
        yield from self._records(view, header, mend=mend)

    def near(self, data: Data, offset: int) -> Iterator[XrayRecord]:
        """Yield the header, and the records from the buffer on that holds byte ``offset``.

        Without reading what is before it, where sound extents lead there. Nothing is reported.
        """
        view = view_of(data)
        return self._records(view, read_header(view, self.form, self.byte_order), skip=offset)

    def _report(
        self, diagnostics: Diagnostics, view: memoryview, header: FileHeader | None, *, mend: bool
    ) -> None:
        """Report what is wrong with a file, and at which record."""
        if header is None:
            found = [Found(rules.NO_FILE_HEADER, 0, len(view))]
            diagnostics.report(found, 0 if len(view) else None)
            return
        found = header_findings(header, self.form, len(view), self.cycle_frequency)
        diagnostics.report(found, 0)
        swallowed_records = 0
        # Findings are those of mended records.
        for block in Walk(view, header, self, mend=True).frames.blocks(AT_ONCE):
            for number, offset, record, value in block.notes.tolist():
                rule = RULES.numbered(number)
                shown_value = rules.shown_value(rule, value)
                diagnostics.add(rule, offset, record - swallowed_records, shown_value)
                # Where it is not mended, the record in its second half is none.
                swallowed_records += rule == rules.CUT_RECORD and not mend

    def _records(
        self, view: memoryview, header: FileHeader | None, *, mend: bool = False, skip: int = 0
    ) -> Iterator[XrayRecord]:
        if header is None:
            if len(view):
                yield Damaged(nbytes=len(view), code=rules.NO_FILE_HEADER.code, raw=view)
            return
        yield header
        walk = Walk(view, header, self, mend=mend)
        walk.frames.skip(skip)
        yield from walk.records()


class Frame(NamedTuple):
    """Where a record is, and what is known of it (``buffers.Frames``)."""

    begin: int
    end: int
    kind: int
    fault: int
    block: int
    is_called: int


def listed(block: Frames) -> NDArray[np.int64]:
    """Return the columns of ``Frame`` of all records of a block, int64 of shape (6, records)."""
    begin = joined_ranges(block.begin, block.count, FUNCTION_BYTES)
    end = np.append(begin[1:], block.end[-1:])
    of_rows = (block.kind, block.fault, block.block, block.is_called)
    of_records = [np.repeat(column, block.count) for column in of_rows]
    return np.stack([begin, end, *of_records])


class Walk:
    """A walk through a file behind its header; ``frames`` finds the records.

    Records are as they are in the file unless it shall ``mend`` those that were cut in half. What
    makes lines uses it in place of ``fxframework.wire.walk.Walk``, and sets ``state``, ``at``
    and ``block``.
    """

    views = None
    last = None

    def __init__(
        self, view: memoryview, header: FileHeader, decoder: RecordDecoder, *, mend: bool = False
    ) -> None:
        self.view = view
        self.header = header
        self.dialect = Dialect(decoder.form, header.version, header.byte_order)
        self.state = self.dialect.state()
        self.frequency = decoder.cycle_frequency or header.cycle_frequency or NS_PER_SECOND
        self.family = self.dialect.records.layout.family
        self.classes = {
            KIND_NAMES.index(cls.record): cls
            for cls in self.family.members
            if cls.layout.fits(self.state.registers)
        }
        """The classes of records by their kinds, in the version of the file."""
        self.at = 0
        """The byte of the next record, which only what makes lines needs."""
        self.block = NO_BLOCK
        """The buffer of which registers are known."""
        self.call: Any = None
        """The last function record; none if a program read it."""
        records = Records(np.frombuffer(view, np.uint8), self.dialect)
        self.frames: BasicFrames | FdrFrames
        if self.dialect.basic:
            self.frames = BasicFrames(records)
        else:
            most = decoder.limits.max_record
            self.frames = FdrFrames(records, header.buffer_size, most, mends=mend)

    @property
    def known(self) -> dict[Any, int]:
        """The registers before the next record."""
        return self.state.registers

    def records(self) -> Iterator[XrayRecord]:
        """Yield every record."""
        for block in self.frames.blocks(AT_ONCE):
            for frame in map(Frame._make, listed(block).T.tolist() if block.begin.size else ()):
                yield self.record(frame)

    def damaged(self, at: int, end: int, fault: int) -> Damaged:
        """Return bytes as a damaged stretch."""
        code = RULES.numbered(fault).code
        return Damaged(offset=at, nbytes=end - at, code=code, raw=self.view[at:end])

    def argue(self, record: Any, called: int) -> None:
        """Give an argument the place and time of its call."""
        record.row_offset = record.offset
        call = self.call
        if called and call is not None:
            record.row_offset = call.offset
            record.ns = call.ns
            record.tsc = call.tsc
            record.cpu = call.cpu

    def record(self, frame: Frame) -> XrayRecord:
        """Return a record."""
        begin, end, kind, fault, block, called = frame
        if block != self.block:
            self.block = block
            self.known.update(NO_BUFFER)
        if fault == SPACE:
            return self.space(begin, end)
        if fault and fault != rules.RECORD_TOO_LARGE:
            if fault != rules.UNKNOWN_METADATA:
                return self.damaged(begin, end, fault)
            _, number = self.family.numbers(self.view, begin, self.state.big, self.state.mirrored)
            raw = self.view[begin:end].tobytes()
            return Unknown(offset=begin, nbytes=end - begin, type=number, raw=raw)
        cls = self.classes[kind]
        record: Any
        record, cursor = cls.unpack(self.view, begin, len(self.view), self.state)
        if record.nbytes > end - begin:  # it was cut in half, and ends its block
            record.nbytes = end - begin
            record.tsc = self.frames.sound.cut_times[-1] & U64_MAX
            cursor.sets[Now.BASE] = wrapped(record.tsc)
        if kind == CALL_ARGUMENT:
            if cls is CallArgument:
                record.thread = self.known[Now.THREAD]
                record.process = self.known[Now.PROCESS]
            self.argue(record, called)
        elif getattr(record, "tsc", None) is not None:
            record.ns = record.tsc * NS_PER_SECOND // self.frequency
        if kind == FUNCTION:
            self.call = record
        self.known.update(cursor.sets)
        return self.damaged(begin, end, fault) if fault else cast("XrayRecord", record)

    def space(self, at: int, end: int) -> Padding:
        """Return the space behind the end of a buffer of version 1."""
        padding = Padding(offset=at, nbytes=end - at)
        if np.frombuffer(self.view[at:end], np.uint8).any():
            padding.raw = self.view[at:end]
        return padding
