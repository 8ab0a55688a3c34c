"""Framing: where records begin and end, in plain Python; the forms are the declared ones."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from fx_trace import format as wire
from fx_trace import rules
from fx_trace.format import RecordType
from fx_trace.read.forms import BYTES, FORMS, KOIDS, STRING, SizedField
from fxframework.errors import Rule
from fxframework.io.words import U64_MAX, WORD, padding, view_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Data = NDArray[np.uint8] | bytes | bytearray | memoryview

_MINIMUM = {int(type): words for type, words in wire.MINIMUM_WORDS.items()}
Frame = tuple[int, int, int, Rule | None]
"""First byte, byte after the last, header word, and the rule of the finding about it, if any."""


def words_of(header: int) -> int:
    """Return the size in words that a header claims."""
    size = wire.LARGE_SIZE if wire.TYPE.get(header) == RecordType.LARGE else wire.SIZE
    return size.get(header)


def frames(data: Data, *, big_endian: bool = False, max_record: int = 0) -> Iterator[Frame]:
    """Yield the stretches that a file falls into, without gaps, from the header words alone.

    The rule is None for a sound record, UNKNOWN_RECORD for one of an unknown type, ZERO_WORDS for
    zero words (the run is one stretch); all others are damage. ``max_record`` is in bytes, 0 for no
    limit.
    """
    framer = Framer(data, big_endian=big_endian, max_record=max_record)
    at = 0
    while at < len(framer.view):
        frame = framer.frame(at)
        yield frame
        at = frame[1]


class Framer:
    """Tells from the header word at a place what stretch of the file begins there."""

    def __init__(self, data: Data, *, big_endian: bool, max_record: int) -> None:
        self.view = view_of(data)
        self._order = ">" if big_endian else "<"
        self._word = struct.Struct(f"{self._order}Q").unpack_from
        self._whole = len(self.view) // WORD * WORD
        self.max_record = max_record

    def frame(self, at: int) -> Frame:
        """Return the stretch that begins at byte ``at``."""
        view, word, whole = self.view, self._word, self._whole
        if at >= whole:
            return at, len(view), 0, rules.ODD_BYTES
        header = word(view, at)[0]
        nbytes = words_of(header) * WORD
        minimum = _MINIMUM.get(wire.TYPE.get(header))
        end = at + nbytes
        rule = None
        if not header:
            rule = rules.ZERO_WORDS
            end = _zeros_end(view, at, whole)
        elif not nbytes:
            rule = rules.SIZE_ZERO
            end = _resume(view, self._order, at, whole)
        elif end > whole:
            rule = rules.PAST_THE_END
            end = _resume(view, self._order, at, whole)
        elif minimum is None:
            rule = rules.UNKNOWN_RECORD
        elif nbytes < minimum * WORD:
            rule = rules.TOO_SHORT
            end = _resume(view, self._order, at, whole)
        if self.max_record and nbytes > self.max_record and rule in (None, rules.UNKNOWN_RECORD):
            rule = rules.RECORD_OVER_LIMIT
        return at, end, header, rule


def _zeros_end(view: memoryview, at: int, whole: int) -> int:
    """Return the end of the run of zero words that begins at byte ``at``."""
    piece = 1 << 12
    while at < whole:
        chunk = view[at : min(at + piece, whole)].tobytes()
        left = len(chunk.lstrip(b"\0"))
        at += (len(chunk) - left) // WORD * WORD
        if left:
            return at
    return at


def _resume(view: memoryview, order: str, at: int, whole: int) -> int:
    """Return where to go on after damage at byte ``at``: at the next sound records, or the end.

    That is behind the contents of the record that was damaged, if a record begins there whose
    contents fill it exactly, or the words end; else before the first such record, or three of
    sound sizes: so that the second bug of a writer shows, too, where the first one is in every
    other record.
    """
    word = struct.Struct(f"{order}Q").unpack_from
    for end in _contents_ends(view, word, at, whole):
        if end == whole or _is_exact(view, word, end, whole):
            return end
    start = at + WORD
    nbytes = 64 * WORD
    while start < whole:
        stop = min(start + nbytes, whole)
        for number in _sound_headers(view[start:stop], order, (whole - start) // WORD):
            first = start + number * WORD
            end = _sound_end(view, word, first, whole)
            # A header of a type and a size alone may be any small number.
            if _is_exact(view, word, first, whole) and (
                word(view, first)[0] >> wire.SIZE.high + 1
                or end == whole
                or _is_exact(view, word, end, whole)
            ):
                return first
            for _ in range(wire.SOUND_RUN - 1):
                end = _sound_end(view, word, end, whole)
            if end:
                return first
        start = stop
        nbytes = min(2 * nbytes, 1 << 19)  # little to look at where damage is short
    return whole


def _is_exact(view: memoryview, word: Callable[..., tuple[int]], at: int, whole: int) -> bool:
    """Return whether a record begins at byte ``at`` whose contents fill it exactly."""
    end = _sound_end(view, word, at, whole)
    return end != 0 and end in _contents_ends(view, word, at, whole)


def _contents_ends(
    view: memoryview, word: Callable[..., tuple[int]], at: int, whole: int
) -> Iterator[int]:
    """Where the contents of the record at byte ``at`` end, by each form that its header has."""
    (header,) = word(view, at)
    for form in FORMS:
        if header & form.mask == form.value and header & form.some and header & form.more:
            words = form.words + sum(_words_of(field, header) for field in form.fields)
            end = at + words * WORD
            count = header >> form.nargs_at & wire.MAX_ARGS if form.nargs_at >= 0 else 0
            for _ in range(count):
                size = _argument_words(word(view, end)[0]) if end < whole else 0
                if not size:
                    break
                end += size * WORD
            else:
                end += form.tail * WORD
                if end <= whole:
                    yield end


def _words_of(field: SizedField, header: int) -> int:
    """Return the number of words that follow because of a field of a header."""
    value = header >> field.low & field.limit
    if field.kind == BYTES:
        return _stream_words(value)
    if field.kind == STRING:
        return _inline_words(value)
    if field.kind == KOIDS:
        return 0 if value else field.koids
    return value


_ONE_WORD_VALUES = {
    wire.ArgType.INT64,
    wire.ArgType.UINT64,
    wire.ArgType.DOUBLE,
    wire.ArgType.POINTER,
    wire.ArgType.KOID,
}


def _stream_words(nbytes: int) -> int:
    return (nbytes + padding(nbytes)) // WORD


def _inline_words(ref: int) -> int:
    return _stream_words(ref & wire.STRING_FIELD_BYTES) if ref & wire.INLINE_STRING else 0


def _argument_words(header: int) -> int:
    """Return the number of words that an argument has.

    0 where its type is not defined, or its size is not that.
    """
    kind = wire.ARG_TYPE.get(header)
    if kind not in wire.ARG_NAMES:
        return 0
    words = 1 + _inline_words(wire.ARG_NAME.get(header))
    if kind == wire.ArgType.STRING:
        words += _inline_words(wire.ARG_STRING_WORD.unpack(header)["value"])
    elif kind == wire.ArgType.BLOB:
        words += _stream_words(wire.ARG_BLOB_WORD.unpack(header)["blob_size"])
    else:
        words += kind in _ONE_WORD_VALUES
    return words if words == wire.ARG_SIZE.get(header) else 0


def _sound_headers(view: memoryview, order: str, left: int) -> list[int]:
    """Which words could be headers of records that end within ``left`` words, all at once."""
    import numpy as np

    headers = np.frombuffer(view, f"{order}u8").astype(np.uint64)
    types = (headers & np.uint64(15)).astype(np.intp)
    masks = np.full(16, wire.SIZE.limit, np.uint64)
    masks[RecordType.LARGE] = wire.LARGE_SIZE.limit
    least = np.array([_MINIMUM.get(number, U64_MAX) for number in range(16)], np.uint64)
    sizes = headers >> np.uint64(wire.SIZE.low) & masks[types]
    room = np.uint64(left) - np.arange(len(headers), dtype=np.uint64)
    return [int(number) for number in np.flatnonzero((sizes >= least[types]) & (sizes <= room))]


def _sound_end(view: memoryview, word: Callable[..., tuple[int]], at: int, whole: int) -> int:
    """Return the end of the sound record at byte ``at``; 0 where there is none, or ``at`` is 0."""
    if not 0 < at < whole:
        return 0
    (header,) = word(view, at)
    words = words_of(header)
    end = at + words * WORD
    return end if words >= _MINIMUM.get(wire.TYPE.get(header), U64_MAX) and end <= whole else 0


def frame_value(rule: Rule, header: int, at: int, end: int) -> object:
    """Return the value of a finding about bytes ``at`` to ``end``; None if it has none."""
    if rule in (rules.PAST_THE_END, rules.TOO_SHORT):
        return words_of(header)
    if rule == rules.ZERO_WORDS:
        return (end - at) // WORD
    if rule == rules.UNKNOWN_RECORD:
        return wire.TYPE.get(header)
    if rule == rules.ODD_BYTES:
        return rules.odd_bytes_detail(end)
    return end - at if rule == rules.RECORD_OVER_LIMIT else None
