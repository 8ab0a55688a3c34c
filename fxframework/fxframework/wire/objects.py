"""Objects: the records of a declared format as objects, made from columns thousands at a time.

That is for formats whose records all have fixed sizes, which their fields say whole. A record with
a finding, and what is not a record, is read one by one at its place (``walk``), and so are those of
other formats, one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fxframework.model.strings import StringPool
from fxframework.wire.beside import Computed
from fxframework.wire.blocks import BlockReader
from fxframework.wire.cells import RowView
from fxframework.wire.choices import Again, Check
from fxframework.wire.fields import Bits, Field, Integer, Number
from fxframework.wire.floats import Float, Nan, widened
from fxframework.wire.known import CODE, LENGTH, START
from fxframework.wire.runs import Run
from fxframework.wire.spans import Octets, Span, Text
from fxframework.wire.walk import Walk

if TYPE_CHECKING:
    from fxframework.io.limits import Limits
    from fxframework.io.source import Source
    from fxframework.kit.lossless import LosslessRecord
    from fxframework.wire.format import Format, Note
    from fxframework.wire.many import Many

    Found = tuple[LosslessRecord, list[Note]]

AT_ONCE = 8192
"""Records that are read before the first of them is there."""


def has_columns(format: Format) -> bool:
    """Return whether objects of a format are made from columns."""
    if format.choosy or 0 in format.family.rules.values():
        return False
    return all(
        cls.layout.fixed and cls.layout.is_exact and all(map(is_plain, cls.layout.fields))
        for cls in format.classes
    )


def is_plain(field: Field) -> bool:
    """Return whether a field is always there, and is written as it was read if it is sound.

    A rule of 0 lets it be anything, without a finding.
    """
    if field.when is not None or 0 in field.rules.values():
        return False
    if isinstance(field, Number):
        # Several numbers may stand for one value: which one it was is in ``raw``.
        is_ambiguous = field.is_ambiguous or (field.flag and field.nbits > 1)
        return type(field) in (Bits, Integer) and not is_ambiguous
    if isinstance(field, Span):
        if type(field) not in (Span, Octets, Text):
            return False
        is_reference = isinstance(field, Text) and field.entry is not None
        return not is_reference and field.fixed is not None and field.aligned == 1
    return type(field) in (Again, Check, Computed, Float)


class ObjectReader(BlockReader):
    """Reads the records of a file as objects, and what is found about each."""

    def __init__(self, format: Format, source: Source, limits: Limits) -> None:
        super().__init__(format, source, limits, StringPool(), tables=())

    def found_records(self) -> Iterator[Found]:
        """Yield all records of the file with their findings."""
        if self.format.begin and self.source.size:
            yield self._one(Walk.head)
        while self.at < self.source.size:
            run = ObjectRun(self, AT_ONCE, self.source.size)
            run.read()
            yield from run.records()
            if run.stopped:
                yield self._one(Walk.next)

    def _one(self, read: Callable[[Walk], Found]) -> Found:
        """Read the next record by itself, between runs."""
        self.begin_walk()
        self.walk.views = None
        record_and_notes = read(self.walk)
        self.end_walk()
        return record_and_notes


class ObjectRun(Run):
    """Records that are read together, as objects."""

    def records(self) -> Iterator[Found]:
        """Yield the records, and go behind them."""
        if not self.count:
            return
        for _, many in self.read_classes:
            many.own.settle(self.count)
        # Texts of the file are looked at where they are; only those that numbers refer to count.
        self.reading.entered[:] = [
            texts for texts in self.reading.entered if texts.table is not None
        ]
        self._enter_texts()
        self._look_up()
        has_finding = np.zeros(self.rows, bool)
        for note in self.reading.notes:
            has_finding[note.own.ordinals[note.rows]] = True
        # What stays None, because something was found about it, is read by itself.
        records: list[Any] = [None] * self.count
        for _, many in self.read_classes:
            own = many.own
            rows = np.flatnonzero(own.sound & ~has_finding[own.ordinals])
            objects = self._objects(many, rows)
            for ordinal, record in zip(own.ordinals[rows].tolist(), objects, strict=True):
                records[ordinal] = record
        self.reader.walk.views = None
        for ordinal, record in enumerate(records):
            if record is None:
                yield self._object_at(ordinal)
            else:
                yield record, []
        self._settle()
        self._let_go()

    def _objects(self, many: Many, rows: NDArray[np.int64]) -> Iterator[LosslessRecord]:
        """Yield the objects of some rows of a class."""
        layout = many.layout
        fields = [field for field in layout.public if not isinstance(field, Check)]
        names = [field.name for field in fields]
        columns = [self._values(field, many, rows) for field in fields]
        offsets = many.start[rows].tolist()
        empty: Sequence[Any] = [None] * len(offsets)
        refs = self._refs(many, fields, rows) or empty
        times = self._times(many, rows) or empty
        values_of_records = zip(*columns, strict=True) if columns else [()] * len(offsets)
        for offset, refs_of_record, time, values in zip(
            offsets, refs, times, values_of_records, strict=True
        ):
            attributes = dict(zip(names, values, strict=True))
            attributes["refs"] = refs_of_record
            record = layout.made(attributes, offset, layout.fixed)
            if time is not None:
                record.ns = time
            yield record

    def _refs(self, many: Many, fields: list[Field], rows: NDArray[np.int64]) -> list[Any]:
        """Return the numbers of references by name of the field, of each row; [] without any."""
        referring = [
            field for field in fields if isinstance(field, Number) and field.refers is not None
        ]
        names = [field.name for field in referring]
        columns = [numbers_of(field, many.known[field][rows]).tolist() for field in referring]
        return [dict(zip(names, numbers, strict=True)) for numbers in zip(*columns, strict=True)]

    def _times(self, many: Many, rows: NDArray[np.int64]) -> list[int] | None:
        """Return the times in nanoseconds; None if the records have none."""
        for declared in self.reader.format.tables:
            if declared.record is many.layout.cls and declared.time is not None:
                view = RowView(declared, many, rows, None, self.after)
                times: list[int] = view.full(declared.time.column(view)).tolist()
                return times
        return None

    def _values(self, field: Any, many: Many, rows: NDArray[np.int64]) -> list[Any]:
        """Return the values of a field in some rows."""
        if isinstance(field, Span):
            data = self.reading.data.data
            starts = many.known[field, START][rows].tolist()
            lengths = many.known[field, LENGTH][rows].tolist()
            pairs = zip(starts, lengths, strict=True)
            spans = [data[start : start + length].tobytes() for start, length in pairs]
            if isinstance(field, Text):
                return [span.decode() for span in spans]
            return spans
        if isinstance(field, Number) and field.refers is not None:
            codes = many.known[field, CODE].column()[rows]
            texts = {code: self._text(code) for code in np.unique(codes).tolist()}
            return [texts[code] for code in codes.tolist()]
        numbers = many.known[field][rows]
        if isinstance(field, Float):
            return floats_of(field, numbers)
        values: list[Any] = numbers_of(field, numbers).tolist()
        if not isinstance(field, Number):
            return values
        if field.flag:
            return [value == 1 for value in values]
        if field.values:
            return [field.values[value] for value in values]
        return values

    def _text(self, code: int) -> str:
        data: bytes = self.reader.strings.bytes_of(code)
        return data.decode(errors="surrogateescape")


def numbers_of(field: Any, numbers: NDArray[np.int64]) -> NDArray[Any]:
    """Return numbers of a column as those of a field, which may have no sign."""
    nbits = field.number.nbits if isinstance(field, Again) else field.nbits
    if field.signed or nbits < 64:
        return numbers
    return numbers.view(np.uint64)


def floats_of(field: Float, bits: NDArray[np.int64]) -> list[float]:
    """Return the numbers of bits; a NaN keeps its own."""
    numbers = field.numbers_of(bits)
    values: list[float] = numbers.tolist()
    for row in np.flatnonzero(np.isnan(numbers)).tolist():
        bits_of_nan = int(bits[row]) & (1 << 8 * field.nbytes) - 1
        if field.nbytes == 4:
            bits_of_nan = widened(bits_of_nan)
        values[row] = Nan(bits_of_nan)
    return values
