"""Writer: records of a declared format as bytes, given as objects or JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fxframework.io.sink import Sink
from fxframework.kit import lossless
from fxframework.kit.lossless import DamagedRecord, LosslessRecord, RecordRewriter, UnknownRecord
from fxframework.wire.beside import Computed
from fxframework.wire.choices import Choice
from fxframework.wire.cursor import RefusalError, ShortError
from fxframework.wire.expressions import Expression
from fxframework.wire.fields import index_of
from fxframework.wire.format import Format
from fxframework.wire.packing import Packer
from fxframework.wire.plans import registers_in
from fxframework.wire.records import Layout, Record
from fxframework.wire.spans import Text
from fxframework.wire.state import State


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
        raw = None
        if record.raw is not None:
            raw = bytes(record.raw)
            if isinstance(record, UnknownRecord):
                return self._unknown(record.type, raw)
            if isinstance(record, DamagedRecord):
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
        family = self.format.family
        big = self.state.big
        data = memoryview(raw)
        has_head = len(raw) >= max(1, family.head)
        is_whole = has_head and family.size_at(data, 0, big) == len(raw)
        if not is_whole or family.numbers(data, 0, big)[:1] != [kind]:
            raise self.format.refuse(404, f"unknown: raw is not a whole record of type {kind}")
        return raw

    def _state_for(self, cls: type[Record], data: bytes) -> State:
        """Return the state for reading a record, which may say the byte order itself."""
        mark = cls.layout.mark
        if mark is not None:
            self.state.big = cls.layout.mark_place.get(memoryview(data), 0, True) == mark.number
        return self.state

    def _apply(self, cls: type[Record], data: bytes) -> None:
        """Take in what a record that was written says about later ones."""
        state = self._state_for(cls, data)
        try:
            cls.layout.family.check(cls, memoryview(data), state, state.big)
            _, cursor = cls.unpack(memoryview(data), 0, len(data), state)
        except RefusalError as problem:
            raise self.format.refused(cls.record, problem) from None
        except ShortError:
            message = f"{cls.record}: the fields do not agree with each other"
            raise self.format.refuse(404, message) from None
        state.apply(cursor.sets, cursor.effects)

    def packer(self) -> Packer | None:
        """Return what packs many records at a time."""
        format = self.format
        # Of the records that change something, those that decide how later ones are written bar all
        # columns; those that declare texts are encoded in their turn.
        deciding_registers = _registers_of_writing(format)
        changing = [cls for cls in format.classes if cls.layout.changes_state]
        barriers = [
            cls.record
            for cls in changing
            if cls.layout.mark is not None or not deciding_registers.isdisjoint(cls.layout.changed)
        ]
        declaring = [cls.record for cls in changing if _declares(cls.layout)]
        plain_classes = [cls for cls in format.classes if _is_plain(cls)]

        def layout_of(example: Mapping[str, Any]) -> Layout | None:
            for cls in plain_classes:
                if cls.record == example.get("record") and cls.layout.fits(self.state.registers):
                    return cls.layout
            return None

        fields = [field for cls in plain_classes for field in cls.layout.fields]
        return Packer(
            layout_of,
            self.state,
            selectors=[field.tag.key for field in fields if isinstance(field, Choice)],
            in_turn=declaring,
            barriers=barriers,
            resolve=self._number_of,
            declared=True,
        )

    def _number_of(self, field: Any, shown: str, given: int | None) -> int:
        """Return the number of a text. Raises RefusalError if there is none."""
        refs = None if given is None else {field.name: given}
        if isinstance(field, Text):
            return field.index_to_write(shown, self.state, refs)
        return index_of(field.refers, shown, field.name, self.state, refs)


def _registers_of_writing(format: Format) -> set[Any]:
    """Return the registers that decide about the bytes of records."""
    expressions: list[Expression | None] = [cls.layout.when for cls in format.classes]
    for layout in format.layouts():
        for field in layout.fields:
            if not isinstance(field, Computed):
                expressions += field.expressions()
    return registers_in(expressions)


def _declares(layout: Layout) -> bool:
    """Return whether records of a class change what texts numbers refer to."""
    return bool(layout.clears) or any(
        isinstance(field, Text) and field.defines is not None for field in layout.fields
    )


def _is_plain(cls: type[Record]) -> bool:
    """Return whether the declaration alone says how records of a class are written."""
    parse: Any = cls.parse
    is_own = parse.__func__ is not Record.parse.__func__ or cls.pack is not Record.pack  # type: ignore[attr-defined]
    return not is_own


def open_writer(format: Format, sink: Sink) -> RecordRewriter:
    """Open a writer of records."""
    return RecordRewriter(sink, Encoder(format))
