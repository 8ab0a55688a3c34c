"""`fxf explain FILE@OFFSET`: the bytes of the record there, word by word, as annotated fields.

Header words follow from their declaration in `format.py`, what comes after them from the parts
that `records.py` declares. Only the record itself is looked into, so that an index shows as
an index.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
from tests.reference.trace.arguments import ARGUMENT_KINDS, Arguments
from tests.reference.trace.cursor import Cursor, OverrunError, Tables
from tests.reference.trace.framing import Frame, Framer
from tests.reference.trace.layout import INLINE_STRING, STRING_FIELD_BYTES, is_big_endian
from tests.reference.trace.parts import NextHeader, Part, Reference, StringReference
from tests.reference.trace.records import class_of

from fx_trace import rules
from fx_trace.read.framing import RecordBounds
from fxframework.io.source import Source
from fxframework.io.words import WORD, FieldView, WordLayout
from fxframework.kit.explain import Explainer, check_offset

__all__ = ["explain", "explain_buffer"]


def explain(source: Source, offset: int) -> list[FieldView]:
    """Return the record that holds byte ``offset``, field by field in the order of the file.

    Of long stretches (payloads, padding, damage) the words around the byte are given. Raises
    UsageError where the file has no such byte.
    """
    check_offset(source, offset)
    big_endian = is_big_endian(source.read(0, WORD))
    frame = _frame(source.data, offset, big_endian=big_endian)
    return list(_Explainer(source.data, offset, big_endian=big_endian).views(frame))


def _frame(data: Any, offset: int, *, big_endian: bool) -> Frame:
    """Return the stretch of records that holds byte ``offset``."""
    words = data[: len(data) // WORD * WORD].view(">i8" if big_endian else "<i8")
    native = words.astype("=i8", copy=False)
    start = WORD * RecordBounds(native).start_of(0, offset // WORD)
    return Framer(data, big_endian=big_endian, max_record=0).frame(start)


def explain_buffer(source: Source, offset: int) -> list[FieldView]:
    """The same for an image of a trace buffer: a record of one of its buffers, or the header.

    Of the header all fields are given; unused space and damage as ``explain`` gives them.
    """
    from tests.reference.trace.layout import BUFFER_HEADER

    from fx_trace.read.buffer import HEADER, PADDING, RECORDS, Image

    check_offset(source, offset)
    explainer = _Explainer(source.data, offset, big_endian=False)
    part = Image(source.data).at(offset)
    if part.kind == HEADER:
        words = source.words()[: len(BUFFER_HEADER)].tolist()
        return [
            view
            for number, (word, bits) in enumerate(zip(words, BUFFER_HEADER, strict=True))
            for view in bits.explain(word, number * WORD)
        ]
    if part.kind == RECORDS:
        records = source.data[part.start : part.end]
        at, end, header, rule = _frame(records, offset - part.start, big_endian=False)
        return list(explainer.views((part.start + at, part.start + end, header, rule)))
    frame = part.start, part.end, 0, rules.ZERO_WORDS if part.kind == PADDING else part.rule
    return list(explainer.views(frame))


class _Explainer(Explainer):
    """Explains one record of a trace."""

    def __init__(self, data: Any, wanted: int, *, big_endian: bool) -> None:
        super().__init__(data, wanted, order="big" if big_endian else "little")
        self.cursor = Cursor(Tables(), big_endian=big_endian)

    def views(self, frame: Frame) -> Iterator[FieldView]:
        at, end, header, rule = frame
        if rule == rules.ZERO_WORDS:
            return self.stretch(at, end, "padding", "Record header", "zero word")
        if rule is not None and rule != rules.UNKNOWN_RECORD:
            return self.damaged(at, end, rule)
        return self.record(at, end, header)

    def record(self, at: int, end: int, header: int) -> Iterator[FieldView]:
        """Yield a record whose size is sound."""
        cls = class_of(header)
        c = self.cursor
        c.begin(self.data, at, end, header)
        section = cls.layout.section
        for view in self.header(cls.layout, at, cls.parts):
            if view.name == "reserved" and not cls.known:
                yield attrs.evolve(view, name="contents", meaning="")
            else:
                yield view
        values: dict[str, Any] = {}
        start = c.at
        try:
            for part in cls.parts:
                start = c.at
                if isinstance(part, Arguments):
                    for _ in range(part.bits.get(c.header)):
                        start = c.at
                        yield from self.argument()
                    start = c.at
                    values[part.name] = ()
                else:
                    yield from self.part(part, values, section, cls.parts)
        except OverrunError:
            yield from self.stretch(start, end, "contents", section, "do not fit the record")
        else:
            beyond = "beyond what the record needs"
            yield from self.stretch(c.at, end, "trailing", section, beyond)

    def argument(self) -> Iterator[FieldView]:
        """Yield the next argument, of a size that fits the record or OverrunError."""
        c = self.cursor
        at = c.at
        kind = ARGUMENT_KINDS[c.enter_argument()]
        views: list[FieldView] = list(self.header(kind.layout, at, kind.parts))
        values: dict[str, Any] = {}
        for part in kind.parts:
            views += self.part(part, values, kind.layout.section, kind.parts)
        section = kind.layout.section
        views += self.stretch(c.at, c.end, "trailing", section, "beyond what the argument needs")
        c.leave_argument()
        yield from views

    def part(
        self, part: Part, values: dict[str, Any], section: str, parts: tuple[Part, ...]
    ) -> Iterator[FieldView]:
        """Yield the words of one part, at the cursor."""
        c = self.cursor
        at = c.at
        part.read(c, values)
        if isinstance(part, NextHeader):
            yield from self.header(part.layout, at, parts)
            return
        for label in part.labels(values):
            if at < c.at:
                word = self.number(at)
                shown = values.get(label)
                meaning = "" if shown is None or shown == word else str(shown)
                yield FieldView(at, 0, 63, label, word, meaning, section)
                at += WORD
        yield from self.stretch(at, c.at, part.name if part.is_stream else "contents", section)

    def header(self, layout: WordLayout, at: int, parts: tuple[Part, ...]) -> Iterator[FieldView]:
        """Yield a word of bit fields; references say what they refer to."""
        word = self.number(at)
        references = {part.bits.low: part for part in parts if isinstance(part, Reference)}
        for view in layout.explain(word, at):
            part = references.get(view.low)
            if part is None and view.meaning == "thread reference" and view.value:
                # Of a profiler record of an undefined kind.
                yield attrs.evolve(view, meaning=f"index {view.value}")
            elif part is None or part.bits.name != view.name or not view.value:
                yield view
            elif isinstance(part, StringReference) and view.value & INLINE_STRING:
                nbytes = view.value & STRING_FIELD_BYTES
                yield attrs.evolve(view, meaning=f"inline, {nbytes} bytes")
            else:
                yield attrs.evolve(view, meaning=f"index {view.value}")
