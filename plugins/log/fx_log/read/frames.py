"""Frames: the stretches of a file of logs, as columns: records, and what lies between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_log import rules
from fx_log.format import STREAM_HEADER
from fx_log.read import framing
from fx_log.read.framing import LogFramer, PacketFramer, RingFramer
from fx_log.read.ring import Ring
from fx_log.rules import RULES
from fxframework.io.limits import Limits
from fxframework.io.words import WORD
from fxframework.kernels.notes import Notes
from fxframework.kit.scanned import FINDING_FIELDS

__all__ = ["Arguments", "FramedFile", "Frames"]

I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
ROOM: Final = 1 << 14
"""Most stretches of a block."""
BLOCK_BYTES: Final = 4 << 20
"""A block ends behind the first stretch that ends so many bytes after it began."""
ENDLESS: Final = (1 << 63) - 1


class Row(NamedTuple):
    """A stretch; the numbers are those of ``Frames``."""

    begin: int
    end: int
    offset: int
    start: int
    size: int
    suffix: int
    fault: int


@attrs.frozen(eq=False)
class Frames:
    """Stretches that follow one another, as columns of shape (stretches,).

    ``begin`` and ``end`` are bytes of ``FramedFile.data``, ``offset`` is that of the file. Of a
    record or packet, ``start`` and ``size`` tell where it is within its stretch, which may have an
    entry's header before it, or a suffix (else -1) behind it. ``fault`` is the number of the rule
    by which there is none, or 0.
    """

    begin: I64
    end: I64
    offset: I64
    start: I64
    size: I64
    suffix: I64
    tag: I64
    index: I64
    """Number of the record in the file."""
    fault: I64
    notes: I64
    """What the framer reports: rule, offset, number of the record, value; of shape (n, 4)."""

    @classmethod
    def none(cls) -> Frames:
        """Return no stretches."""
        nothing = np.zeros(0, np.int64)
        names = [field.name for field in attrs.fields(cls) if field.name != "notes"]
        return cls(**dict.fromkeys(names, nothing), notes=np.zeros((0, FINDING_FIELDS), np.int64))

    @classmethod
    def joined(cls, parts: list[Frames]) -> Frames:
        """Return the stretches of several blocks."""
        names = [field.name for field in attrs.fields(cls)]
        blocks = [cls.none(), *parts]
        return cls(
            **{name: np.concatenate([getattr(block, name) for block in blocks]) for name in names}
        )

    def take(self, rows: NDArray[Any] | slice) -> Frames:
        """Return some of the stretches."""
        names = (field.name for field in attrs.fields(Frames) if field.name != "notes")
        return attrs.evolve(self, **{name: getattr(self, name)[rows] for name in names})

    def kinds(self, record: str) -> Counter[str]:
        """Return how many records there are of each kind; ``record`` is that of sound stretches."""
        is_padding = self.fault == rules.ZERO_WORDS
        is_record = (self.fault == 0) | (self.fault == rules.ENTRY_WITHOUT_RECORD)
        is_followed = (self.fault == 0) & (self.suffix >= 0)
        counts = {
            record: is_record,
            "attribution": is_followed,
            "padding": is_padding,
            "damaged": ~(is_record | is_padding),
        }
        return Counter({kind: int(np.count_nonzero(mask)) for kind, mask in counts.items()})

    def rows(self) -> Iterator[Row]:
        """Yield the stretches one by one."""
        columns = (getattr(self, name).tolist() for name in Row._fields)
        return map(Row._make, zip(*columns, strict=True))

    def sound(self) -> Frames:
        """Return those that are records."""
        return self.take(np.flatnonzero(self.fault == 0)) if self.fault.any() else self


@attrs.frozen(eq=False)
class Arguments:
    """Arguments of records: the row of each, its bytes, and the rule by which it is damaged."""

    record: I64
    begin: I64
    end: I64
    fault: I64

    def damaged(self) -> Arguments:
        """Return those that cannot be decoded."""
        return self.take(self.fault != 0)

    def sound(self) -> Arguments:
        """Return the others."""
        return self.take(self.fault == 0)

    def take(self, rows: NDArray[np.bool_]) -> Arguments:
        """Return some of the arguments."""
        return Arguments(self.record[rows], self.begin[rows], self.end[rows], self.fault[rows])


class FramedFile:
    """A file of logs: the bytes that its records lie in, in the order of reading.

    ``options`` are those of the reader. With ``splits``, for salvage, damage ends where sound
    records follow that a size hides.
    """

    def __init__(
        self,
        form: str,
        data: U8,
        limits: Limits,
        options: Mapping[str, Any],
        *,
        splits: bool = False,
    ) -> None:
        self.ring = Ring(data) if form == "log-ring" else None
        self.data = data
        """The file; of a ring, what lies between its tail and its head, a copy if it wraps."""
        self.suffixed = form == "log" and bool(options.get("suffix"))
        self.has_arguments = form in ("log", "log-ring")
        self.record = {"log": "log", "log-ring": "ring_entry"}.get(form, "legacy_packet")
        """The kind of sound records."""
        self.framer = self._framer(form, limits)
        self.framer.splits = int(splits)

    def _framer(self, form: str, limits: Limits) -> LogFramer | RingFramer | PacketFramer:
        notes = Notes(RULES.numbers, 0)
        if form == "log":
            most = min(limits.max_record, ENDLESS)
            words = words_of(self.data)
            return LogFramer(words, self.data.size, notes, most, int(self.suffixed))
        ring = self.ring
        if ring is not None:
            self.data = ring.line(0, max(0, ring.used))
            wrap = (ring.capacity - ring.start) // WORD
            return RingFramer(words_of(self.data), notes, ring.place(0), wrap, ring.capacity)
        start = -1 if form == "log-legacy" else STREAM_HEADER
        return PacketFramer(self.data, notes, start)

    @property
    def position(self) -> int:
        """The bytes of ``data`` whose stretches were found."""
        return min(int(self.framer.unit * self.framer.pos), self.data.size)

    def place(self, byte: I64) -> I64:
        """Return offsets in the file of bytes of ``data``, which in a ring may wrap around."""
        framer = self.framer
        if not framer.base:
            return byte
        from_start = byte // WORD >= framer.wrap
        return np.where(from_start, byte - framer.capacity, byte) + framer.base

    def blocks(self, nbytes: int | None = None) -> Iterator[Frames]:
        """Yield all stretches, ROOM or some ``nbytes`` (by default BLOCK_BYTES) at a time."""
        framer = self.framer
        while not framer.done:
            rows = framer.rows(ROOM, nbytes or BLOCK_BYTES)
            columns = dict(zip(framing.COLUMNS, rows, strict=True))
            for name in ("begin", "end", "start", "size"):
                columns[name] *= framer.unit
            columns["suffix"][columns["suffix"] >= 0] *= framer.unit
            columns["end"] = np.minimum(columns["end"], self.data.size)
            notes = np.array(framer.notes.findings).reshape(-1, FINDING_FIELDS)
            framer.notes.used = 0
            yield Frames(**columns, offset=self.place(columns["begin"]), notes=notes)

    def arguments(self, records: Frames) -> Arguments:
        """Return the arguments of structured records."""
        columns = framing.arguments(words_of(self.data), records.start, records.size)
        return Arguments(*columns)


def words_of(data: U8) -> I64:
    """Return the whole words of some bytes."""
    return data[: data.size // WORD * WORD].view("<i8")
