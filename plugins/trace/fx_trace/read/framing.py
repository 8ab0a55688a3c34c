"""Framing: where records begin and end."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from fx_trace import layout as wire
from fx_trace.layout import RecordType
from fxframework.io.words import U64_MAX, WORD, padding, view_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Data = NDArray[np.uint8] | bytes | bytearray | memoryview


_MINIMUM = {int(type): words for type, words in wire.MINIMUM_WORDS.items()}
TYPE_NAMES = wire.names(RecordType)
Frame = tuple[int, int, int, str | None]
"""First byte, byte after the last, header word, and the finding about it, if any."""


def words_of(header: int) -> int:
    """The size in words that a header claims."""
    size = wire.LARGE_SIZE if header & 15 == RecordType.LARGE else wire.SIZE
    return header >> size.low & size.limit


def frames(data: Data, *, big_endian: bool = False, max_record: int = 0) -> Iterator[Frame]:
    """The stretches that a file falls into, without gaps, from the header words alone.

    The finding is None for a sound record, FXT0007 for one of an unknown type, FXT0006 for zero
    words (the run is one stretch); all others are damage. ``max_record`` is in bytes, 0 no limit.
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
        self._max_record = max_record

    def frame(self, at: int) -> Frame:
        """The stretch that begins at byte ``at``."""
        view, word, whole = self.view, self._word, self._whole
        if at >= whole:
            return at, len(view), 0, "FXT0005"
        header = word(view, at)[0]
        nbytes = words_of(header) * WORD
        minimum = _MINIMUM.get(header & 15)
        end = at + nbytes
        code = None
        if not header:
            code = "FXT0006"
            end = _zeros_end(view, at, whole)
        elif not nbytes:
            code = "FXT0001"
            end = _resume(view, self._order, at, whole)
        elif end > whole:
            code = "FXT0002"
            end = _resume(view, self._order, at, whole)
        elif minimum is None:
            code = "FXT0007"
        elif nbytes < minimum * WORD:
            code = "FXT0003"
            end = _resume(view, self._order, at, whole)
        if self._max_record and nbytes > self._max_record and code in (None, "FXT0007"):
            code = "FXT0008"
        return at, end, header, code


def _zeros_end(view: memoryview, at: int, whole: int) -> int:
    """The end of the run of zero words that begins at byte ``at``."""
    piece = 1 << 12
    while at < whole:
        chunk = view[at : min(at + piece, whole)].tobytes()
        left = len(chunk.lstrip(b"\0"))
        at += (len(chunk) - left) // WORD * WORD
        if left:
            return at
    return at


def _resume(view: memoryview, order: str, at: int, whole: int) -> int:
    """Where to go on after damage at byte ``at``: at the next sound records, or the end.

    That is before three records of sound sizes, or before one whose contents fill it exactly: so
    that the second bug of a writer shows, too, where the first one is in every other record.
    """
    word = struct.Struct(f"{order}Q").unpack_from
    start = at + WORD
    nbytes = 64 * WORD
    while start < whole:
        stop = min(start + nbytes, whole)
        for number in _sound_headers(view[start:stop], order, (whole - start) // WORD):
            first = start + number * WORD
            end = _sound_end(view, word, first, whole)
            if fills(view, word, first, end):
                return first
            for _ in range(wire.SOUND_RUN - 1):
                end = _sound_end(view, word, end, whole)
            if end:
                return first
        start = stop
        nbytes = min(2 * nbytes, 1 << 19)  # little to look at where damage is short
    return whole


def fills(view: memoryview, word: Callable[..., tuple[int]], at: int, end: int) -> bool:
    """Whether the contents of a string, thread, event or log fill bytes ``at`` to ``end`` exactly.

    A string has bytes and, as a thread, an index; an event has a name, and arguments of known
    types; bits that must be zero are.
    """
    (header,) = word(view, at)
    layout = _EXACT.get(header & 15)
    if layout is None or header & layout.reserved_mask:
        return False
    fields = layout.unpack(header)
    words = (end - at) // WORD
    if layout is wire.STRING:
        length = fields["string_length"]
        return bool(fields["string_index"] and length and words == 1 + _stream_words(length))
    if layout is wire.THREAD:
        return bool(fields["thread_index"] and words == 3)
    inline_thread = 0 if fields["thread"] else 2
    if layout is wire.LOG:
        length = fields["message_length"]
        return bool(length) and words == 2 + inline_thread + _stream_words(length)
    kind, name = fields["event_type"], fields["name"]
    if kind not in wire.EVENT_NAMES or not name:
        return False
    need = 2 + inline_thread + _inline_words(fields["category"]) + _inline_words(name)
    for _ in range(fields["arg_count"]):
        if need >= words:
            return False
        (argument,) = word(view, at + need * WORD)
        size = wire.ARG_SIZE.get(argument)
        if not size or size != _argument_words(argument):
            return False
        need += size
    need += kind in wire.EVENT_HAS_WORD
    return need == words or (kind == wire.EventType.INSTANT and need + 1 == words)


_EXACT = {
    int(RecordType.STRING): wire.STRING,
    int(RecordType.THREAD): wire.THREAD,
    int(RecordType.EVENT): wire.EVENT,
    int(RecordType.LOG): wire.LOG,
}
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
    """Words that an argument needs; 0 where its type is not defined."""
    kind = wire.ARG_TYPE.get(header)
    if kind not in wire.ARG_NAMES:
        return 0
    words = 1 + _inline_words(wire.ARG_NAME.get(header))
    if kind == wire.ArgType.STRING:
        return words + _inline_words(wire.ARG_STRING.unpack(header)["value"])
    if kind == wire.ArgType.BLOB:
        return words + _stream_words(wire.ARG_BLOB.unpack(header)["blob_size"])
    return words + (kind in _ONE_WORD_VALUES)


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
    """The end of the sound record at byte ``at``; 0 where there is none, or ``at`` is 0."""
    if not 0 < at < whole:
        return 0
    (header,) = word(view, at)
    words = words_of(header)
    end = at + words * WORD
    return end if words >= _MINIMUM.get(header & 15, U64_MAX) and end <= whole else 0


def frame_detail(code: str, header: int, nbytes: int, size: int) -> str:
    """What the finding about a stretch of ``nbytes`` bytes says, in a file of ``size`` bytes."""
    type = TYPE_NAMES.get(header & 15, f"type {header & 15}")
    words = words_of(header)
    return {
        "FXT0001": f"header {header:#018x}; {nbytes} bytes are damaged",
        "FXT0002": f"{type}, {words} words; {nbytes} bytes are damaged",
        "FXT0003": f"{type}, {words} words; {nbytes} bytes are damaged",
        "FXT0005": odd_bytes_detail(size),
        "FXT0006": f"{nbytes // WORD} words",
        "FXT0007": f"type {header & 15}",
        "FXT0008": f"{type}, {nbytes} bytes",
    }[code]


def odd_bytes_detail(size: int) -> str:
    """What FXT0005 says of a file of ``size`` bytes."""
    return f"it has {size} bytes; the last {size % WORD} are not a whole word"


def overrun_detail(need: int, words: int) -> str:
    """What FXT0004 says of a record of ``words`` words whose contents need ``need`` words."""
    if need <= words:
        return f"an argument does not fit its size; the record has {words} words"
    return f"the contents need at least {need} words, the record has {words}"
