"""Forms of records: how many words the contents of a record need, by its header and arguments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from fx_trace import format as wire
from fx_trace.format import EventType, MetadataType, ProfilerType, RecordType, SchedulingType
from fxframework.io.words import WordLayout

__all__ = [
    "BYTES",
    "FIELDS",
    "FLAT_FORMS",
    "FORMS",
    "KOIDS",
    "STRING",
    "WORDS",
    "Form",
    "SizedField",
]

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


def _form(
    layout: WordLayout,
    type: RecordType,
    words: int,
    *sizes: tuple[str, int] | tuple[str, int, int],
    some: str = "",
    tail: int = 0,
    **subtypes: int,
) -> Form:
    bits = {field.name: field for field in layout.fields}
    fixed = {"record_type": int(type), **subtypes}
    mask = layout.reserved_mask
    for name in fixed:
        mask |= bits[name].mask
    fields = [SizedField(kind, bits[name].low, bits[name].limit, *(koids or [0]))
              for name, kind, *koids in sizes]  # fmt: skip
    fields += [SizedField(WORDS, 0, 0, 0)] * (FIELDS - len(fields))
    first, second, *_ = [*(bits[name].mask for name in some.split()), mask, mask]
    nargs_at = bits["arg_count"].low if "arg_count" in bits else -1
    value = layout.pack(**fixed)
    return Form(mask, value, first, second, words, nargs_at, tail, tuple(fields))


def _events() -> Iterator[Form]:
    """Yield each type of event; the instant also with the word that some writers put behind it."""
    sizes = ("thread", KOIDS, 2), ("category", STRING), ("name", STRING)
    for kind in EventType:
        for tail in (0, 1) if kind == EventType.INSTANT else (kind in wire.EVENT_HAS_WORD,):
            yield _form(
                wire.EVENT, RecordType.EVENT, 2, *sizes, some="name", tail=tail, event_type=kind
            )


def _koids_of_one_or_two() -> Iterator[Form]:
    """Records whose process is one word by the document, and two by some writers."""
    for koids in (1, 2):
        yield _form(
            wire.USERSPACE_OBJECT, RecordType.USERSPACE_OBJECT, 2,
            ("process", KOIDS, koids), ("name", STRING),
        )  # fmt: skip
        yield _form(
            wire.PROFILER_MODULE, RecordType.PROFILER, 2,
            ("thread", KOIDS, koids), ("name_length", BYTES), ("build_id_length", BYTES),
            profiler_type=ProfilerType.MODULE,
        )  # fmt: skip
        yield _form(
            wire.PROFILER_MMAP, RecordType.PROFILER, 5, ("thread", KOIDS, koids),
            profiler_type=ProfilerType.MMAP,
        )  # fmt: skip


def _forms() -> Iterator[Form]:
    metadata, sched = RecordType.METADATA, RecordType.SCHEDULING
    yield _form(
        wire.PROVIDER_INFO, metadata, 1, ("name_length", BYTES),
        metadata_type=MetadataType.PROVIDER_INFO,
    )  # fmt: skip
    yield _form(wire.PROVIDER_SECTION, metadata, 1, metadata_type=MetadataType.PROVIDER_SECTION)
    yield _form(
        wire.PROVIDER_EVENT, metadata, 1, metadata_type=MetadataType.PROVIDER_EVENT, event_id=0
    )
    yield _form(
        wire.TRACE_INFO, metadata, 1,
        metadata_type=MetadataType.TRACE_INFO, trace_info_type=0, magic=wire.MAGIC,
    )  # fmt: skip
    for words in (2, 4):
        yield _form(wire.INITIALIZATION, RecordType.INITIALIZATION, words)
    yield _form(
        wire.STRING, RecordType.STRING, 1, ("string_length", BYTES),
        some="string_index string_length",
    )  # fmt: skip
    yield _form(wire.THREAD, RecordType.THREAD, 3, some="thread_index")
    yield from _events()
    yield _form(wire.BLOB, RecordType.BLOB, 1, ("name", STRING), ("blob_size", BYTES))
    yield from _koids_of_one_or_two()
    yield _form(wire.KERNEL_OBJECT, RecordType.KERNEL_OBJECT, 2, ("name", STRING))
    yield _form(
        wire.LEGACY_CONTEXT_SWITCH, sched, 2, ("outgoing", KOIDS, 2), ("incoming", KOIDS, 2),
        scheduling_type=SchedulingType.LEGACY_CONTEXT_SWITCH,
    )  # fmt: skip
    yield _form(wire.CONTEXT_SWITCH, sched, 4, scheduling_type=SchedulingType.CONTEXT_SWITCH)
    yield _form(wire.THREAD_WAKEUP, sched, 3, scheduling_type=SchedulingType.THREAD_WAKEUP)
    yield _form(
        wire.LOG, RecordType.LOG, 2, ("thread", KOIDS, 2), ("message_length", BYTES),
        some="message_length",
    )  # fmt: skip
    yield _form(
        wire.PROFILER_BACKTRACE, RecordType.PROFILER, 2,
        ("thread", KOIDS, 2), ("frame_count", WORDS), profiler_type=ProfilerType.BACKTRACE,
    )  # fmt: skip


FORMS = tuple(sorted(_forms(), key=lambda form: form.value & 15))
"""By the type of the record. The document's large records are not among them: what they hold is
counted in a word of their own."""
FIELD_WIDTH: Final = len(SizedField._fields)
MASK, FORM_VALUE, SOME, MORE, FORM_WORDS, NARGS_AT, TAIL = range(7)
FORM_WIDTH: Final = TAIL + 1 + FIELD_WIDTH * FIELDS
"""Numbers of a form in ``FLAT_FORMS``: those before its fields, and its fields."""
FLAT_FORMS: Final = [
    number - (1 << 64) if number >> 63 == 1 else number
    for form in FORMS
    for number in (*form[:-1], *(part for field in form.fields for part in field))
]
"""The forms for kernels, as int64."""
