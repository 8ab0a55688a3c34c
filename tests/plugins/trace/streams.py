"""Hypothesis strategies for trace streams: every record, event and argument type, sound and not.

They build words from the fields in `format.py` and nothing else of fx_trace, so that what reads
them is tested against the layout and not against its own counterpart. Strategies of bytes:

- ``fxt_streams()``: whole files of sound records, some of them odd (reserved bits, padding that is
  not zero, words too many, unknown types, zero words between records);
- ``damaged(streams)``: the same, cut, flipped, overwritten, spliced;
- ``fxt_records()`` and ``render()``: the same by record, for either byte order.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from fx_trace import format as wire
from fxframework.io.words import U64_MAX, Bits, WordLayout

from . import header_words

HAS_LAST_WORD = frozenset(wire.EventType) - {
    wire.EventType.INSTANT, wire.EventType.DURATION_BEGIN, wire.EventType.DURATION_END,
}  # fmt: skip
"""Events that end in a word of their own: counter id, end time, or correlation id."""
Atom = int | bytes
"""A word, or a stream that is padded to whole words."""
Record = list[Atom]
Draw = Callable[[st.SearchStrategy[Any]], Any]

MAGIC: Record = [wire.MAGIC_WORD]
LARGE_PAYLOAD = bytes(range(256)) * 128
"""With it, a large record is longer than a 12-bit size can say."""

# --- Building blocks ---------------------------------------------------------------------------

words = st.one_of(
    st.integers(0, 5),
    st.integers(0, U64_MAX),
    st.sampled_from([1 << 31, 1 << 32, 1 << 63, U64_MAX, 0x7FF8 << 48, 0x7FF0 << 48 | 1]),
)
koids = st.one_of(st.integers(0, 3), st.sampled_from([1 << 63 | 5, U64_MAX]))
strings = st.one_of(
    st.sampled_from([b"a", b"name", b"eight by", b"more than eight"]),
    st.text(max_size=9).map(str.encode),
    st.sampled_from(
        [b"\xff", b"caf\xe9", b"ab\xed\xa0\x80", b"<str#1>", b"nul\0", b"\xef\xbf\xbd"]
    ),
    st.binary(max_size=20),
)
payloads = st.binary(max_size=40)
rarely = st.sampled_from([False] * 11 + [True])
seldom = st.sampled_from([False] * 5 + [True])
string_indexes = st.sampled_from([1, 1, 2, 2, 3, 4, wire.MAX_STRING_INDEX])
thread_indexes = st.sampled_from([1, 1, 2, 2, 3, wire.MAX_THREAD_INDEX])
provider_ids = st.sampled_from([0, 1, 1, 2, 0xFFFFFFFF])


class Hand:
    """Draws the parts of one record; ``odd`` is whether they may depart from the layout."""

    def __init__(self, draw: Draw, *, odd: bool) -> None:
        self.draw = draw
        self.odd = odd

    def oddly(self) -> bool:
        """Whether this one shall be odd."""
        return self.odd and self.draw(rarely)

    def bits(self, layout: WordLayout, name: str) -> int:
        """Any value of a field of bits."""
        field = next(field for field in layout.fields if field.name == name)
        return self.number(field)

    def number(self, field: Bits) -> int:
        """Any value that a field holds."""
        some = st.sampled_from(sorted({0, 1, field.limit}))
        return int(self.draw(st.one_of(some, st.integers(0, field.limit))))

    def stream(self, data: bytes) -> list[Atom]:
        """A stream, seldom with padding that is not zero."""
        pad = -len(data) % 8
        fill = bytes(pad)
        if pad and self.oddly():
            fill = self.draw(st.binary(min_size=pad, max_size=pad))
        return [data + fill] if data else []

    def string(self) -> tuple[int, list[Atom]]:
        """A string reference, and what stands inline for it."""
        how = self.draw(st.sampled_from(["index", "index", "inline", "empty"]))
        if how == "index":
            return int(self.draw(string_indexes)), []
        data = self.draw(strings)
        if how == "empty" or not data:
            return wire.INLINE_STRING if self.oddly() else 0, []
        return wire.INLINE_STRING | len(data), self.stream(data)

    def thread(self) -> tuple[int, list[Atom]]:
        """A thread reference, and what stands inline for it."""
        if self.draw(st.booleans()):
            return int(self.draw(thread_indexes)), []
        return 0, [self.draw(koids), self.draw(koids)]

    def reserved(self, layout: WordLayout) -> int:
        """Some of the reserved bits of a word, mostly none."""
        if not self.oddly():
            return 0
        return int(self.draw(st.integers(0, U64_MAX))) & layout.reserved_mask

    def record(
        self, type: int, layout: WordLayout, body: list[Atom], *, exact: bool = False, **fields: int
    ) -> Record:
        """A record of these fields and words, seldom with more of either than it needs.

        ``exact`` says that with more words it would mean something else.
        """
        body = list(body)
        if not exact and self.oddly():
            body += self.draw(st.lists(words, min_size=1, max_size=3))
        size = 1 + length(body) // 8
        header = layout.pack(record_type=type, record_size=size, **fields)
        return [header | self.reserved(layout), *body]

    def arguments(self) -> tuple[int, list[Atom]]:
        """Some arguments: how many, and their words."""
        count = self.draw(st.sampled_from([0, 0, 1, 2, 3, 15 if self.odd else 4]))
        if count == 15:
            return 15, [atom for _ in range(15) for atom in self.argument(9)]
        body: list[Atom] = []
        for _ in range(count):
            body += self.argument(self.draw(st.integers(0, 11 if self.odd else 10)))
        return count, body

    def argument(self, type: int) -> list[Atom]:
        """One argument of a type; 11 stands for all that the format does not define."""
        name, body = self.string()
        fields: dict[str, int] = {"name": name}
        layout = wire.ARG_LAYOUTS.get(type, wire.ARG)  # type: ignore[call-overload]
        if type in {wire.ArgType.INT32, wire.ArgType.UINT32, wire.ArgType.BOOL}:
            fields["value"] = self.bits(layout, "value")
        elif type == wire.ArgType.STRING:
            fields["value"], inline = self.string()
            body += inline
        elif type == wire.ArgType.BLOB:
            data = self.draw(payloads)
            fields["blob_size"] = len(data)
            body += self.stream(data)
        elif type in range(wire.ArgType.INT64, wire.ArgType.KOID + 1):
            body.append(self.draw(words))
        elif type > wire.ArgType.BLOB:
            type = self.draw(st.integers(11, 15))
            body += self.draw(st.lists(words, max_size=3))
        if self.oddly():
            body += self.draw(st.lists(words, min_size=1, max_size=2))
        header = layout.pack(arg_type=type, arg_size=1 + length(body) // 8, **fields)
        return [header | self.reserved(layout), *body]


def length(atoms: list[Atom]) -> int:
    """Bytes that atoms take."""
    return sum(8 if isinstance(atom, int) else len(atom) for atom in atoms)


# --- Records -----------------------------------------------------------------------------------


def provider_info(hand: Hand) -> Record:
    name = hand.draw(strings)
    return hand.record(
        wire.RecordType.METADATA,
        header_words.PROVIDER_INFO_WORD,
        hand.stream(name),
        metadata_type=wire.MetadataType.PROVIDER_INFO,
        provider_id=hand.draw(provider_ids),
        name_length=len(name),
    )


def provider_section(hand: Hand) -> Record:
    return hand.record(
        wire.RecordType.METADATA,
        header_words.PROVIDER_SECTION_WORD,
        [],
        metadata_type=wire.MetadataType.PROVIDER_SECTION,
        provider_id=hand.draw(provider_ids),
    )


def provider_event(hand: Hand) -> Record:
    return hand.record(
        wire.RecordType.METADATA,
        header_words.PROVIDER_EVENT_WORD,
        [],
        metadata_type=wire.MetadataType.PROVIDER_EVENT,
        provider_id=hand.draw(provider_ids),
        event_id=hand.draw(st.integers(0, 2)),
    )


def trace_info(hand: Hand) -> Record:
    return hand.record(
        wire.RecordType.METADATA,
        header_words.TRACE_INFO_WORD,
        [],
        metadata_type=wire.MetadataType.TRACE_INFO,
        trace_info_type=hand.draw(st.sampled_from([0, 0, 1, 15])) if hand.odd else 0,
        magic=hand.draw(st.sampled_from([wire.MAGIC, 7])) if hand.odd else wire.MAGIC,
    )


def initialization(hand: Hand) -> Record:
    rate = hand.draw(st.sampled_from([1, 1000, wire.DEFAULT_TICKS_PER_SECOND, 0]))
    more = hand.draw(st.sampled_from([0, 0, 2, 1, 3] if hand.odd else [0, 2]))
    body: list[Atom] = [rate, *(hand.draw(words) for _ in range(more))]
    return hand.record(wire.RecordType.INITIALIZATION, header_words.INITIALIZATION, body)


def string(hand: Hand) -> Record:
    data = hand.draw(strings)
    index = hand.draw(string_indexes)
    return hand.record(
        wire.RecordType.STRING,
        header_words.STRING,
        hand.stream(data),
        string_index=0 if hand.oddly() else index,
        string_length=len(data),
    )


def thread(hand: Hand) -> Record:
    index = hand.draw(thread_indexes)
    return hand.record(
        wire.RecordType.THREAD,
        header_words.THREAD,
        [hand.draw(koids), hand.draw(koids)],
        thread_index=0 if hand.oddly() else index,
    )


def event(hand: Hand) -> Record:
    type = hand.draw(st.integers(0, 15 if hand.oddly() else 10))
    ref, body = hand.thread()
    body = [hand.draw(words), *body]
    category, inline = hand.string()
    body += inline
    name, inline = hand.string()
    body += inline
    count, arguments = hand.arguments()
    body += arguments
    if type in HAS_LAST_WORD:
        body.append(hand.draw(words))
    elif type == wire.EventType.INSTANT:
        body += hand.draw(st.lists(st.integers(0, 3), max_size=1))
    elif type > wire.EventType.FLOW_END:
        body += hand.draw(st.lists(words, max_size=2))
    return hand.record(
        wire.RecordType.EVENT,
        header_words.EVENT,
        body,
        event_type=type,
        arg_count=count,
        thread=ref,
        category=category,
        name=name,
    )


def blob(hand: Hand) -> Record:
    name, body = hand.string()
    data = hand.draw(payloads)
    return hand.record(
        wire.RecordType.BLOB,
        header_words.BLOB,
        body + hand.stream(data),
        name=name,
        blob_size=len(data),
        blob_type=hand.draw(st.sampled_from([1, 2, 3, 0, 255])),
    )


def userspace_object(hand: Hand) -> Record:
    ref, body = hand.thread()
    process = not ref and hand.draw(st.booleans())
    if process:
        body.pop()
    name, inline = hand.string()
    count, arguments = hand.arguments()
    return hand.record(
        wire.RecordType.USERSPACE_OBJECT,
        header_words.USERSPACE_OBJECT,
        [hand.draw(words), *body, *inline, *arguments],
        exact=process,
        process=ref,
        name=name,
        arg_count=count,
    )


def kernel_object(hand: Hand) -> Record:
    name, body = hand.string()
    count, arguments = hand.arguments()
    return hand.record(
        wire.RecordType.KERNEL_OBJECT,
        header_words.KERNEL_OBJECT,
        [hand.draw(koids), *body, *arguments],
        object_type=hand.draw(st.sampled_from([1, 2, 19, 255])),
        name=name,
        arg_count=count,
    )


def scheduling(hand: Hand) -> Record:
    type = hand.draw(st.sampled_from(sorted(wire.SchedulingType)))
    layout = (
        header_words.LEGACY_CONTEXT_SWITCH,
        header_words.CONTEXT_SWITCH,
        header_words.THREAD_WAKEUP,
    )[type]
    body: list[Atom] = [hand.draw(words)]
    fields = {"scheduling_type": int(type), "cpu": hand.bits(layout, "cpu")}
    if type == wire.SchedulingType.LEGACY_CONTEXT_SWITCH:
        for name in ("outgoing", "incoming"):
            fields[name], inline = hand.thread()
            body += inline
            fields[f"{name}_priority"] = hand.bits(layout, f"{name}_priority")
    else:
        fields["arg_count"], arguments = hand.arguments()
        body += [hand.draw(koids) for _ in range(3 - type)]
        body += arguments
    if type != wire.SchedulingType.THREAD_WAKEUP:
        fields["outgoing_state"] = hand.bits(layout, "outgoing_state")
    return hand.record(wire.RecordType.SCHEDULING, layout, body, **fields)


def log(hand: Hand) -> Record:
    ref, body = hand.thread()
    message = hand.draw(strings)
    return hand.record(
        wire.RecordType.LOG,
        header_words.LOG,
        [hand.draw(words), *body, *hand.stream(message)],
        message_length=len(message),
        thread=ref,
    )


def profiler(hand: Hand) -> Record:
    type = hand.draw(st.sampled_from(sorted(wire.ProfilerType)))
    layout = (
        header_words.PROFILER_MODULE_WORD,
        header_words.PROFILER_MMAP_WORD,
        header_words.PROFILER_BACKTRACE_WORD,
    )[type]
    ref, inline = hand.thread()
    process = not ref and type != wire.ProfilerType.BACKTRACE and hand.draw(seldom)
    if process:
        inline.pop()
    fields = {"profiler_type": int(type), "thread": ref}
    body: list[Atom] = [hand.draw(words), *inline]
    if type == wire.ProfilerType.BACKTRACE:
        frames = hand.draw(st.lists(words, max_size=4))
        fields["frame_count"] = len(frames)
        body += frames
    else:
        fields["module_id"] = hand.bits(layout, "module_id")
        if type == wire.ProfilerType.MODULE:
            for name, data in (("name", hand.draw(strings)), ("build_id", hand.draw(payloads))):
                fields[f"{name}_length"] = len(data)
                body += hand.stream(data)
        else:
            fields["flags"] = hand.bits(layout, "flags")
            body += [hand.draw(words) for _ in range(3)]
    return hand.record(wire.RecordType.PROFILER, layout, body, exact=process, **fields)


def large(hand: Hand) -> Record:
    format = hand.draw(st.sampled_from(sorted(wire.LargeBlobFormat)))
    metadata = format == wire.LargeBlobFormat.METADATA
    layout = header_words.LARGE_BLOB_METADATA_FORMAT if metadata else header_words.LARGE_BLOB_FORMAT
    fields: dict[str, int] = {}
    fields["category"], body = hand.string()
    fields["name"], inline = hand.string()
    body += inline
    if metadata:
        fields["thread"], inline = hand.thread()
        fields["arg_count"], arguments = hand.arguments()
        body += [hand.draw(words), *inline, *arguments]
    data = LARGE_PAYLOAD if hand.draw(rarely) else hand.draw(payloads)
    body += [len(data), *hand.stream(data)]
    second = layout.pack(**fields) | hand.reserved(layout)
    return hand.record(
        wire.RecordType.LARGE,
        header_words.LARGE_BLOB,
        [second, *body],
        large_type=0,
        blob_format=format,
    )


def unknown(hand: Hand) -> Record:
    """A record whose type or kind the format does not define."""
    type, low, kinds = hand.draw(
        st.sampled_from(
            [
                *((type, 16, range(16)) for type in (11, 12, 13, 14)),
                (wire.RecordType.METADATA, 16, (0, 5, 15)),
                (wire.RecordType.SCHEDULING, 60, (3, 15)),
                (wire.RecordType.PROFILER, 16, (3, 15)),
                (wire.RecordType.LARGE, 36, (1, 15, 0x20, 0xF0)),
            ]
        )
    )
    kind = hand.draw(st.sampled_from(list(kinds)))
    body = hand.draw(st.lists(words, min_size=1, max_size=4))
    header = type | (1 + len(body)) << 4 | kind << low
    if type < wire.RecordType.LARGE and hand.draw(st.booleans()):
        header |= hand.draw(st.integers(0, U64_MAX)) & (0x0FFFFFFFFFF00000 if low != 16 else 0)
    return [header, *body]


def zeros(hand: Hand) -> Record:
    return [0] * int(hand.draw(st.integers(1, 3)))


SOUND = (
    # Those that others lean on come more often.
    *(string, string, string, thread, thread, provider_info, provider_section),
    *(event, event, event, event, event),
    *(provider_event, initialization, blob, userspace_object, kernel_object),
    *(scheduling, scheduling, log, profiler, profiler, large),
)
ODD = (*SOUND, trace_info, unknown, zeros)

# --- Streams -----------------------------------------------------------------------------------


@st.composite
def fxt_records(
    draw: Draw, *, max_records: int = 12, odd: bool = True, magic: bool | None = None
) -> list[Record]:
    """Records in file order. ``magic`` is whether the magic number comes first, None for either."""
    hand = Hand(draw, odd=odd)
    kinds = draw(st.lists(st.sampled_from(ODD if odd else SOUND), max_size=max_records))
    first = not draw(rarely) if magic is None else magic
    return [*([MAGIC] if first else []), *(kind(hand) for kind in kinds)]


def render(records: list[Record], *, big_endian: bool = False) -> bytes:
    """The file: words in the byte order asked for, streams as they are."""
    order = "big" if big_endian else "little"
    return b"".join(
        atom.to_bytes(8, order) if isinstance(atom, int) else atom  # type: ignore[arg-type]
        for record in records
        for atom in record
    )


def fxt_streams(
    *,
    max_records: int = 12,
    odd: bool = True,
    magic: bool | None = None,
    big_endian: bool = False,
) -> st.SearchStrategy[bytes]:
    """Whole files of records that are sound, or ``odd`` in what readers must bear with.

    References may be to what was never registered.
    """
    records = fxt_records(max_records=max_records, odd=odd, magic=magic)
    return records.map(functools.partial(render, big_endian=big_endian))


@st.composite
def damaged(draw: Draw, streams: st.SearchStrategy[bytes]) -> bytes:
    """Streams to which one to three bad things have happened."""
    data = bytearray(draw(streams))
    for _ in range(draw(st.integers(1, 3))):
        if not data:
            break
        at = draw(st.integers(0, len(data) - 1))
        word = at // 8 * 8
        what = draw(st.sampled_from(["cut", "bit", "word", "zero", "size", "drop", "put", "again"]))
        if what == "cut":
            del data[at:]
        elif what == "bit":
            data[at] ^= 1 << draw(st.integers(0, 7))
        elif what == "word":
            data[word : word + 8] = draw(words).to_bytes(8, "little")
        elif what == "zero":
            data[word : word + 8] = bytes(8)
        elif what == "size":
            data[word : word + 2] = draw(st.integers(0, 0xFFFF)).to_bytes(2, "little")
        elif what == "drop":
            del data[at : at + draw(st.integers(1, 24))]
        elif what == "put":
            data[at:at] = draw(st.binary(min_size=1, max_size=24))
        else:
            data[at:at] = data[word : word + draw(st.integers(8, 64))]
    return bytes(data)


def any_bytes() -> st.SearchStrategy[bytes]:
    """Bytes that were never a trace; runs of one byte and header-like words among them."""
    pieces = st.one_of(
        st.binary(max_size=40),
        st.builds(
            lambda type, size, rest: (type | size << 4 | rest << 16).to_bytes(8, "little"),
            st.integers(0, 15),
            st.integers(0, 6),
            st.integers(0, (1 << 48) - 1),
        ),
        st.builds(
            lambda byte, count: bytes([byte]) * count, st.integers(0, 255), st.integers(1, 30)
        ),
    )
    return st.lists(pieces, max_size=12).map(b"".join)
