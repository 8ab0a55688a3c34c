"""Writer: records of a declared format as bytes, given as objects or JSON; parts of captures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fxframework.io.sink import Sink
from fxframework.kit import lossless
from fxframework.kit.lossless import Alone, DamagedRecord, LosslessRecord, RecordRewriter
from fxframework.model.capture import Capture, Window
from fxframework.model.selection import Selection
from fxframework.model.strings import TextColumn
from fxframework.registry import no_parts
from fxframework.wire.capture import DeclaredCapture
from fxframework.wire.cursor import RefusalError, ShortError
from fxframework.wire.format import Format, Unknown
from fxframework.wire.records import Record
from fxframework.wire.state import State

__all__ = ["Encoder", "extract", "open_writer"]


class Encoder(lossless.Encoder):
    """Encodes records one at a time; it knows what earlier ones declared.

    ``raw`` is used if it decodes to the fields of the record, so that unedited records keep their
    bytes and edits of fields take effect.
    """

    def __init__(self, format: Format) -> None:
        self.format = format
        self.state: State = format.state()

    def encode(self, record: LosslessRecord | Mapping[str, Any]) -> bytes:
        """Return the bytes of a record or its JSON. Raises WriteRefusedError if invalid."""
        if isinstance(record, Mapping):
            record = self.format.from_json(record, self.state)
        raw = None if record.raw is None else bytes(record.raw)
        if raw is not None and isinstance(record, Unknown):
            return self._unknown(record.type, raw)
        if raw is not None and isinstance(record, DamagedRecord):
            return raw
        if not isinstance(record, Record):
            return self.format.pack(record, self.state)
        cls = type(record)
        if raw is not None and cls.decoded(raw, self._state_for(cls, raw)) == record:
            data = raw
        else:
            data = self.format.pack(record, self.state)
        self._apply(cls, data)
        return data

    def _unknown(self, kind: int, raw: bytes) -> bytes:
        """Return the bytes of a record of an unknown kind, if they are of that kind and whole."""
        family, big = self.format.family, self.state.big
        data = memoryview(raw)
        whole = len(raw) >= max(1, family.head) and family.size_at(data, 0, big) == len(raw)
        if not whole or family.numbers(data, 0, big)[:1] != [kind]:
            raise self.format.refuse(404, f"unknown: raw is not a whole record of type {kind}")
        return raw

    def _state_for(self, cls: type[Record], data: bytes) -> State:
        mark = cls.layout.mark
        if mark is not None:
            self.state.big = cls.layout.mark_place.get(memoryview(data), 0, True) == mark.number
        return self.state

    def _apply(self, cls: type[Record], data: bytes) -> None:
        """Take in what a record that was written says about later ones."""
        state = self._state_for(cls, data)
        try:
            cls.layout.family.check(cls, memoryview(data), state, state.big)
            _, c = cls.unpack(memoryview(data), 0, len(data), state)
        except RefusalError as problem:
            raise self.format.refused(cls.record, problem) from None
        except ShortError:
            what = f"{cls.record}: the fields do not agree with each other"
            raise self.format.refuse(404, what) from None
        state.apply(c.sets, c.effects)

    def alone(self) -> Alone | None:
        """Return how a record is encoded if its indexes and its raw bytes are right.

        None where records do not show the byte order, and refer to texts.
        """
        classes = self.format.classes
        changing = frozenset(each.record for each in classes if each.layout.changes_state)
        if not changing:
            return Alone(self.encode)
        if self.state.big:
            return None
        return Alone(self._encode_alone, exact=False, registering=changing)

    def _encode_alone(self, given: Mapping[str, Any]) -> bytes:
        record = self.format.from_json(given)
        return self.format.pack(record, None) if record.raw is None else bytes(record.raw)


def open_writer(format: Format, sink: Sink) -> RecordRewriter:
    """Open a writer of records."""
    return RecordRewriter(sink, Encoder(format))


def extract(
    format: Format, capture: DeclaredCapture, selection: Selection, sink: Sink
) -> Mapping[str, int]:
    """Write the selected records and those without a row; return the counts of the others.

    Raises UsageError where records that may be left out say something about later ones.
    """
    if format.parts_depend:
        remedy = "convert all of it, or name an exporter with -t, such as csv"
        raise no_parts(capture.format, capture.name, remedy)
    part = Window(capture, selection)
    outside = np.setdiff1d(_offsets(capture), _offsets(part))
    reader, _ = capture.read_blocks()
    reader.copied = format.classes
    data = capture.source.data
    left_out = 0
    first = True
    for block in reader.blocks():
        if first:
            sink.write(reader.header)
            first = False
        for starts, sizes in block.copies:
            keep = ~np.isin(starts, outside)
            left_out += int(np.count_nonzero(~keep))
            sink.write(TextColumn.gather(data, starts[keep], sizes[keep]).data.tobytes())
    lost = sum(reader.kinds.get(kind, 0) for kind in ("damaged", "unknown", "padding"))
    counts = {"records": left_out, "damaged or unknown records": lost}
    return {name: count for name, count in counts.items() if count}


NONE = np.zeros(0, np.int64)


def _offsets(capture: Capture) -> NDArray[np.int64]:
    """Return the offsets of the records that have a row in any table."""
    batches = (batch for name in capture.schemas for batch in capture.batches(name))
    return np.concatenate([NONE, *(batch.array("offset") for batch in batches)])
