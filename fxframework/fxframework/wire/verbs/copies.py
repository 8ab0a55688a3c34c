"""Copies: records that go from one file to another as bytes, and what is lost between them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import compress
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
from numpy.typing import NDArray

from fxframework.kernels.arrays import I64, U8
from fxframework.kernels.sorting import places_among, stable_order
from fxframework.kit.lossless import DamagedRecord, PaddingRecord, UnknownRecord
from fxframework.kit.salvage import Loss
from fxframework.model.capture import Capture, Window
from fxframework.model.strings import StringPool, TextColumn
from fxframework.registry import lazy_type, no_parts
from fxframework.wire.blocks import BlockReader
from fxframework.wire.framing import PADDING, UNKNOWN
from fxframework.wire.runs import REASONS, SIZE_RULE, Block, Run

if TYPE_CHECKING:
    from fxframework.errors import Rule
    from fxframework.io.limits import Limits
    from fxframework.io.sink import Sink
    from fxframework.io.source import Source
    from fxframework.kit.lossless import LosslessRecord
    from fxframework.model.selection import Selection
    from fxframework.wire.capture import DeclaredCapture
    from fxframework.wire.format import Format

SOUND = -1
WITHOUT_RULE = 0
"""What is said of a stretch in place of the number of a rule by which it is damaged."""


@attrs.frozen(eq=False)
class Copies:
    """Records that follow one another, as columns of shape (records,).

    ``offsets`` are those of the file, which tables have too; the bytes of each are ``sizes`` bytes
    of ``data`` from ``starts`` on: of the file, or of what a format makes of records to mend them.
    """

    data: U8
    starts: I64
    sizes: I64
    offsets: I64
    losses: Sequence[Loss] = ()
    """What is left out of this part of the file, in order; those within a record (``part``) that
    is not copied either are at its offset."""

    def without(self, offsets: I64) -> Copies:
        """Return the records but for those at some offsets, which are in ascending order."""
        is_copied = ~is_among(self.offsets, offsets)
        # A loss within a record counts with the record; -1 is the offset of none.
        record_offsets = [loss.offset if loss.part else -1 for loss in self.losses]
        is_loss = ~is_among(np.array(record_offsets, np.int64), offsets)
        return Copies(
            data=self.data,
            starts=self.starts[is_copied],
            sizes=self.sizes[is_copied],
            offsets=self.offsets[is_copied],
            losses=tuple(compress(self.losses, is_loss)),
        )

    def joined(self) -> U8:
        """Return the bytes of all records, one behind the other."""
        return TextColumn.gather(self.data, self.starts, self.sizes).data


def is_among(numbers: I64, others: I64) -> NDArray[np.bool_]:
    """Return which numbers are among others, which are sorted."""
    is_there: NDArray[np.bool_] = places_among(numbers, others) >= 0
    return is_there


def copy(
    parts: Iterable[Copies], write: Callable[[Any], object], left_out: I64 | None = None
) -> Iterator[Loss]:
    """Write records, but for those at the offsets ``left_out``, sorted; yield the losses."""
    for copies in parts:
        selected = copies if left_out is None else copies.without(left_out)
        yield from selected.losses
        write(selected.joined().data)


# --- Declared formats -----------------------------------------------------------------------------


class CopyReader(BlockReader):
    """Reads a file of a declared format into copies of its records.

    Damage and padding are losses; records of unknown kinds are copied ``with_unknown``.
    """

    def __init__(
        self, format: Format, source: Source, limits: Limits, *, with_unknown: bool
    ) -> None:
        super().__init__(format, source, limits, StringPool(), tables=())
        self.with_unknown = with_unknown
        self.stretches: list[tuple[I64, I64, I64]] = []
        """Places, sizes, and numbers of rules (or SOUND, WITHOUT_RULE), in no order."""
        self.as_objects: list[tuple[int, int, int]] = []
        """The same of records that were read as objects."""
        self.losses: list[tuple[int, Loss]] = []
        """What a format puts in or leaves out by itself, by place."""

    def copy(self, sink: Sink, left_out: I64 | None = None) -> Iterator[Loss]:
        """Write all records but those at some offsets, sorted; yield the losses.

        In place of a header that is damaged another one is written, if the format has one.
        """
        for number, copies in enumerate(self.copies()):
            # Whether the header is sound is known with the first block.
            if number == 0 and self.source.size and not self.header:
                sink.write(self.format.opening)
            yield from copy([copies], sink.write, left_out)

    def copies(self) -> Iterator[Copies]:
        """Yield the records of each block."""
        for _ in self.blocks():
            yield self._taken()
        if self.as_objects:  # there was only a header
            yield self._taken()

    def shortened(self, copies: Copies, ends: I64, rule: Rule, what: str) -> Copies:
        """Return copies of records up to some bytes of the file; what is behind is lost, by a rule.

        Records that are shorter then say so: they are of a format whose records say their size.
        """
        family = self.format.family
        assert family.size is not None  # noqa: S101 (see above)
        sizes = ends - copies.offsets
        cut = np.flatnonzero(sizes < copies.sizes)
        if not cut.size:
            return copies
        losses = list(copies.losses)
        lost_bytes = (copies.sizes - sizes)[cut].tolist()
        for end, nbytes in zip(ends[cut].tolist(), lost_bytes, strict=True):
            message = f"{nbytes} bytes of {what}; left out"
            losses.append(Loss(end, nbytes, self.format.base.record, message, rule.code, part=True))
        losses.sort(key=lambda loss: loss.offset)
        data = copies.joined().copy()
        starts = np.cumsum(copies.sizes) - copies.sizes
        numbers = (sizes[cut] - family.plus) // family.unit
        family.places[family.size].put_many(data, starts[cut], numbers)
        return Copies(data, starts, sizes, copies.offsets, losses)

    def _taken(self) -> Copies:
        """Return what was read since the last call, in the order of the file."""
        by_objects = np.array(self.as_objects, np.int64).reshape(-1, 3).T
        stretches = zip(*self.stretches, tuple(by_objects), strict=True)
        places, sizes, numbers = (np.concatenate(column) for column in stretches)
        self.stretches = []
        self.as_objects = []
        # The rows of a run come class by class, those of objects behind them.
        order = stable_order(places)
        if order is not None:
            places = places[order]
            sizes = sizes[order]
            numbers = numbers[order]
        sound = np.flatnonzero(numbers == SOUND)
        lost = np.flatnonzero(numbers != SOUND)
        columns = self.completed(places[sound], sizes[sound])
        places_of_lost = places[lost].tolist()
        of_lost = map(self.loss, places_of_lost, sizes[lost].tolist(), numbers[lost].tolist())
        losses = [*self.losses, *zip(places_of_lost, of_lost, strict=True)]
        losses.sort(key=operator.itemgetter(0))
        self.losses = []
        return Copies(*columns, [loss for _, loss in losses])

    def completed(self, places: I64, sizes: I64) -> tuple[U8, I64, I64, I64]:
        """Return data, and starts, sizes and offsets of the records at some places in it.

        A format may put further ones between them.
        """
        return self.source.data, places, sizes, places

    def loss(self, offset: int, nbytes: int, number: int) -> Loss:
        """Return what is said of a stretch that is not a record."""
        message = f"{nbytes} bytes are not a record; left out"
        if number == WITHOUT_RULE:
            return Loss(offset, nbytes, "padding", message)
        code = self.format.rules.numbered(number).code
        return Loss(offset, nbytes, "damaged", message, code)

    def next_object(self) -> tuple[LosslessRecord, Any]:
        """Return the next record as an object, and its findings.

        Behind a damaged header, records are read as those behind the one that is written for it.
        """
        is_header = self.walk.at == 0 and self.format.begin > 0
        record, notes = super().next_object()
        opening = self.format.opening
        if is_header and isinstance(record, DamagedRecord) and self.format.header and opening:
            state = self.walk.state
            _, cursor = self.format.header.unpack(memoryview(opening), 0, len(opening), state)
            state.apply(cursor.sets, cursor.effects)
        return record, notes

    def add_object(self, ordinal: int, record: LosslessRecord) -> bool:
        """Take a record that was read as an object."""
        number = SOUND
        if isinstance(record, PaddingRecord):
            number = WITHOUT_RULE
        elif isinstance(record, DamagedRecord):
            number = int(self.format.rules[record.code])
        if self.with_unknown or not isinstance(record, UnknownRecord):
            self.as_objects.append((record.offset, record.nbytes, number))
        return super().add_object(ordinal, record)

    def take_run(self, block: Block, run: Run) -> None:
        """Take the records of a run."""
        del block
        for _, many in run.read_classes:
            own = many.own
            is_cut_short = own.short & ~own.odd
            self._add(run, own.ordinals[own.sound], SOUND)
            self._add(run, own.ordinals[is_cut_short], SIZE_RULE)
        for entry, rows in run.stretches:
            if entry != UNKNOWN:
                number = WITHOUT_RULE if entry == PADDING else REASONS.get(entry, SIZE_RULE)
                self._add(run, rows, number)
            elif self.with_unknown:
                self._add(run, rows, SOUND)

    def _add(self, run: Run, every_row: I64, number: int) -> None:
        """Take some rows of a run."""
        rows = every_row[every_row < run.count]
        numbers = np.full(rows.size, number)
        self.stretches.append((run.places[rows], run.sizes[rows], numbers))


def salvage(format: Format, capture: Capture, sink: Sink, made_by: str = "") -> Iterator[Loss]:
    """Write the sound records of a capture; yield what is left out.

    A class of the format's own, ``"module:CLASS"``, may copy them. Records are found, too, that a
    damaged size hides, if the format says how (``wire.resume``).
    """
    limits = capture.request.limits
    copier: Any = lazy_type(made_by)() if made_by else CopyReader
    reader: CopyReader = copier(format, capture.source, limits, with_unknown=True)
    reader.frames.splitting = 1
    return reader.copy(sink)


def extract(
    format: Format, capture: DeclaredCapture, selection: Selection, sink: Sink
) -> Mapping[str, int]:
    """Write the selected records and those without a row; return the counts of the others.

    Raises UsageError where records that may be left out say something about later ones.
    """
    if format.parts_depend:
        remedy = "convert all of it, or name an exporter with -t, such as csv"
        raise no_parts(capture.format, capture.name, remedy)
    selected = Window(capture, selection)
    left_out = np.setdiff1d(offsets_of(capture, format), offsets_of(selected, format))
    limits = capture.request.limits
    reader = CopyReader(format, capture.source, limits, with_unknown=False)
    for _ in reader.copy(sink, left_out):
        pass
    lost_kinds = ("damaged", "unknown", "padding")
    lost = sum(reader.kinds.get(kind, 0) for kind in lost_kinds)
    counts = {"records": left_out.size, "damaged or unknown records": lost}
    return {name: count for name, count in counts.items() if count}


def offsets_of(capture: Capture, format: Format) -> I64:
    """Return the offsets of the records that have a row in any table.

    Rows of threads have the offset of a record that has other rows, which say when it happened.
    """
    names = list(capture.schemas)
    if format.task_columns:
        names = [name for name in names if name not in ("processes", "threads")]
    offsets = [np.zeros(0, np.int64)]
    for name in names:
        offsets += [batch.array("offset") for batch in capture.batches(name)]
    return np.concatenate(offsets)
