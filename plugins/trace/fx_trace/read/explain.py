"""`fxf explain FILE@OFFSET`: the bytes of the record there, word by word, as annotated fields.

Fields are explained by their declarations in ``fx_trace.records``. Only the record itself is looked
into, so that an index shows as an index.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import attrs
import numpy as np

from fx_trace import rules
from fx_trace.format import ARG, ARG_LAYOUTS, INLINE_STRING, STRING_FIELD_BYTES, is_big_endian
from fx_trace.indexed import STRING_REFERENCE, THREAD_REFERENCE
from fx_trace.read.cursor import Tables, TraceCursor
from fx_trace.read.frames import SPECIAL, TraceFile, TraceFrames
from fx_trace.records import FIRST_WORD, Argument, LargeBlob, LargeBlobWithMetadata, class_of
from fxframework.errors import Rule
from fxframework.io.limits import Limits
from fxframework.io.source import Source
from fxframework.io.words import U64_MAX, WORD, FieldView, explain_stretch, padding, view_of
from fxframework.kit.explain import Explainer, check_offset
from fxframework.wire.choices import Choice
from fxframework.wire.cursor import ShortError, order_of
from fxframework.wire.fields import Bits
from fxframework.wire.spans import Span
from fxframework.wire.state import State

FORMAT_WORDS = {
    LargeBlobWithMetadata: LargeBlobWithMetadata.layout.header(
        "In-band large BLOB record with metadata", 1
    ),
    LargeBlob: LargeBlob.layout.header("In-band large BLOB record without metadata", 1),
}
"""The second words of headers."""
ARGUMENT_TYPE = Argument.layout.place("type")


def explain(source: Source, offset: int) -> list[FieldView]:
    """Return the record that holds byte ``offset``, field by field in the order of the file.

    Of long stretches (payloads, padding, damage) the words around the byte are given. Raises
    UsageError where the file has no such byte.
    """
    check_offset(source, offset)
    big_endian = is_big_endian(source.read(0, WORD))
    file = TraceFile.archive(source, big_endian=big_endian, limits=Limits())
    explainer = _Explainer(source.data, offset, big_endian=big_endian)
    return list(explainer.views(stretch_at(file, offset)))


class Stretch(NamedTuple):
    """A stretch of a trace that holds a byte."""

    begin: int
    end: int
    header: int
    rule: Rule | None
    """Why it is not a sound record of a known type."""


def stretch_at(file: TraceFile, place: int) -> Stretch:
    """Return the stretch of a file that holds the byte at a place."""
    frames = TraceFrames(file)
    while frames.listed_end <= place:
        frames.list_more()
    row = int(np.searchsorted(frames.begin, place, side="right")) - 1
    begin = int(frames.begin[row])
    end = begin + int(frames.size[row])
    fault = int(frames.fault[row])
    if fault == SPECIAL:
        return Stretch(begin, end, 0, rules.ODD_BYTES)
    header = int(file.words[begin // WORD]) & U64_MAX
    if fault == 0:
        return Stretch(begin, end, header, None)
    return Stretch(begin, end, header, rules.RULES.numbered(fault))


def explain_buffer(source: Source, offset: int) -> list[FieldView]:
    """The same for an image of a trace buffer: a record of one of its buffers, or the header.

    Of the header all fields are given; unused space and damage as ``explain`` gives them.
    """
    from fx_trace.read.buffer import HEADER, PADDING, RECORDS, BufferHeader, Image

    check_offset(source, offset)
    explainer = _Explainer(source.data, offset, big_endian=False)
    place = Image(source.data).at(offset)
    if place.kind == HEADER:
        views: list[FieldView] = []
        BufferHeader.unpack(view_of(source.data), 0, place.end, State(), views)
        return views
    if place.kind == RECORDS:
        stretch = (place.start, place.end, True)
        file = TraceFile(source, limits=Limits(), stretches=[stretch])
        return list(explainer.views(stretch_at(file, offset)))
    rule = place.rule
    if place.kind == PADDING:
        rule = rules.ZERO_WORDS
    return list(explainer.views(Stretch(place.start, place.end, 0, rule)))


class _Cursor(TraceCursor):
    """Reads a record for its annotated fields."""

    views: list[FieldView]

    def open_word(self, nbytes: int, reserved: int) -> None:
        """Show a word of bits; references say what they refer to."""
        super().open_word(nbytes, reserved)
        layout = self.layout.header()
        if self.word_at > self.start:
            layout = FORMAT_WORDS[self.layout.cls]
        elif self.layout.cls is Argument:
            layout = ARG_LAYOUTS.get(ARGUMENT_TYPE.of(self.word), ARG)
            self.section = layout.section
        docs = {field.name: field.doc for field in layout.fields}
        for view in layout.explain(self.word, self.word_at):
            doc = docs.get(view.name)
            value = view.value
            if doc == STRING_REFERENCE and value & INLINE_STRING:
                view = attrs.evolve(view, meaning=f"inline, {value & STRING_FIELD_BYTES} bytes")
            elif doc in (STRING_REFERENCE, THREAD_REFERENCE) and value:
                view = attrs.evolve(view, meaning=f"index {value}")
            self.views.append(view)

    def bits(self, *_: Any) -> None:
        """Show nothing: the word has been shown."""

    def stretch(self, name: str, at: int, meaning: str | None = None) -> None:
        """Show a word, or those of a stream with the padding behind it."""
        end = self.at + padding(self.at - at)
        if name == "padding" or at == end:
            return
        fields_behind = (field for field in self.layout.fields if not isinstance(field, Bits))
        field = next((field for field in fields_behind if field.label == name), None)
        if isinstance(field, Choice):
            field = field.of(self.known[field.tag])
        if name == "trailing":
            meaning = "beyond what the argument needs"
        elif isinstance(field, Span):
            meaning = None
        else:
            word = FIRST_WORD.get(self.data, at, self.big)
            # The cursor says "5" of a number, "5 thread" of one that has a name, and a name alone.
            number, _, shown = str(meaning).partition(" ")
            if not shown and float(number) != word and number != str(word):
                shown = number
            self.views.append(FieldView(at, 0, 63, name, word, shown, self.section))
            return
        self.views += explain_stretch(
            self.data, at, end, name, self.section,
            wanted=self.wanted or at, order=order_of(self.big), meaning=meaning,
        )  # fmt: skip


class _Explainer(Explainer):
    """Explains one record of a trace."""

    def __init__(self, data: Any, wanted: int, *, big_endian: bool) -> None:
        super().__init__(data, wanted, order=order_of(big_endian))
        self.tables = Tables()
        self.tables.big = big_endian

    def views(self, stretch: Stretch) -> Iterator[FieldView]:
        """Yield a stretch of the file."""
        begin, end, header, rule = stretch
        if rule == rules.ZERO_WORDS:
            return self.stretch(begin, end, "padding", "Record header", "zero word")
        if rule is not None and rule != rules.UNKNOWN_RECORD:
            return self.damaged(begin, end, rule)
        return self.record(begin, end, header)

    def record(self, begin: int, end: int, header: int) -> Iterator[FieldView]:
        """Yield a record whose size is sound."""
        cls = class_of(header)
        views: list[FieldView] = []
        cursor = _Cursor(self.data, begin, end, self.tables, views)
        cursor.wanted = self.wanted
        name = "contents"
        meaning: str | None = None
        try:
            values = cls.layout.read(cursor)
            if not cls(**values).open_ended:
                name = "trailing"
                meaning = "beyond what the record needs"
        except ShortError:
            meaning = "do not fit the record"
            if views[-1].name == "blob_size":
                cursor.at = views.pop().offset  # it says how much does not fit
        for view in views:
            if view.name == "reserved" and cls.undefined_kinds:
                yield attrs.evolve(view, name="contents", meaning="")
            else:
                yield view
        yield from self.stretch(cursor.at, end, name, cls.layout.header().section, meaning)
