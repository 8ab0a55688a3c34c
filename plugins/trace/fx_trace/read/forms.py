"""Forms: the headers that records of the format have, and how many words follow each of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from fx_trace import format as wire
from fx_trace import records as r
from fx_trace.format import EventType
from fx_trace.indexed import Thread, ThreadOrProcess
from fxframework.io.words import WORD, to_i64
from fxframework.wire.fields import Bits as DeclaredBits
from fxframework.wire.fields import Integer
from fxframework.wire.lists import Listed
from fxframework.wire.records import Layout
from fxframework.wire.spans import Span

BYTES, WORDS, STRING, KOIDS = range(4)
"""What a field of a header is: a count of bytes that follow, or of words, a string reference, or a
thread reference, which is followed by koids where it is 0."""
FIELDS: Final = 3
"""Fields of a form; fewer are filled up with counts of no bits."""


class SizedField(NamedTuple):
    """Bits of a header that say how many words follow it."""

    kind: int
    low: int
    limit: int
    koids: int
    """Words that follow a thread reference of 0."""


class Form(NamedTuple):
    """The headers that have the bits ``value`` under ``mask``, and what follows them."""

    mask: int
    """The type, the subtype, and the bits that the document reserves."""
    value: int
    some: int
    """Bits of which one at least is set."""
    more: int
    """The same of other bits."""
    words: int
    """Words that every record of the form has, its header included."""
    nargs_at: int
    """Where the number of arguments begins in the header; -1 where there are none."""
    tail: int
    """Words behind the arguments."""
    fields: tuple[SizedField, ...]


_FIXED: Mapping[type[r.TraceRecord], Mapping[str, int]] = {
    r.ProviderEvent: {"event_id": 0},
    r.TraceInfo: {"trace_info_type": 0, "magic": wire.MAGIC},
}
"""Fields that are always the same, beside the kind."""
_SOME = {
    r.StringRecord: ("string_index", "string_length"),
    r.ThreadRecord: ("thread_index",),
    r.Event: ("name",),
    r.Log: ("message_length",),
}
"""Fields that are not 0 in what is taken for a record: up to two."""


def _sized(layout: Layout, koids: int) -> Iterator[SizedField]:
    """Yield the fields of a header that say how much follows."""
    for field in layout.fields:
        number, kind, words = field.index, STRING, 0
        if isinstance(field, Thread):
            kind, words = KOIDS, koids if isinstance(field, ThreadOrProcess) else 2
        elif isinstance(field, Listed) and isinstance(field.item, Integer):
            number, kind = field.count, WORDS
        elif isinstance(field, Span) and number is None:
            number, kind = field.nbytes, BYTES
        if isinstance(number, DeclaredBits):
            yield SizedField(kind, number.low, number.word_bits.limit, words)


def _form(
    cls: type[r.TraceRecord], koids: int = 0, more: int = 0, tail: int = 0, **fixed: int
) -> Form:
    """Return a form of a declared record; ``more`` are words that it may have."""
    layout = cls.layout
    header = layout.header()
    bits = {field.name: field for field in header.fields}
    kinds = zip(layout.family.kinds, layout.kind, strict=False)
    fixed = {**{field.label: int(number) for field, number in kinds}, **fixed}
    mask = header.reserved_mask | sum(bits[name].mask for name in fixed)
    fields = [*_sized(layout, koids), *[SizedField(WORDS, 0, 0, 0)] * FIELDS][:FIELDS]
    first, second, *_ = [*(bits[name].mask for name in _SOME.get(cls, ())), mask, mask]
    nargs_at = bits["arg_count"].low if "arg_count" in bits else -1
    words = layout.least // WORD + more
    return Form(mask, header.pack(**fixed), first, second, words, nargs_at, tail, tuple(fields))


def _forms() -> Iterator[Form]:
    """Yield the forms of all records but large ones."""
    for cls in r.BY_HEADER.values():
        if cls is r.Event:
            # Some writers put a word behind an instant.
            for kind in EventType:
                for tail in (0, 1) if kind == EventType.INSTANT else (kind in wire.EVENT_HAS_WORD,):
                    yield _form(cls, tail=tail, event_type=kind)
        elif cls is r.Initialization:
            yield from (_form(cls, more=more) for more in (0, 2))
        elif any(isinstance(field, ThreadOrProcess) for field in cls.layout.fields):
            yield from (_form(cls, koids) for koids in (1, 2))
        elif not issubclass(cls, r.LargeRecord):
            yield _form(cls, **_FIXED.get(cls, {}))


FORMS = tuple(sorted(_forms(), key=lambda form: wire.TYPE.get(form.value)))
"""By the type of the record. The document's large records are not among them: what they hold is
counted in a word of their own."""
FIELD_WIDTH: Final = len(SizedField._fields)
MASK, FORM_VALUE, SOME, MORE, FORM_WORDS, NARGS_AT, TAIL = range(7)
FORM_WIDTH: Final = TAIL + 1 + FIELD_WIDTH * FIELDS
"""Numbers of a form in ``FLAT_FORMS``: those before its fields, and its fields."""
FLAT_FORMS: Final = [
    number if number < 1 << 63 else to_i64(number)
    for form in FORMS
    for number in (*form[:-1], *(part for field in form.fields for part in field))
]
"""The forms for kernels, as int64."""
