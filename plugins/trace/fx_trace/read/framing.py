"""Framing: where records begin and end."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from fx_trace import layout as wire
from fx_trace.layout import RecordType
from fxframework.io.words import U64_MAX, WORD, view_of

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
    """Where to go on after damage at byte ``at``: the next run of sound records, or the end."""
    word = struct.Struct(f"{order}Q").unpack_from
    start = at + WORD
    nbytes = 64 * WORD
    while start < whole:
        stop = min(start + nbytes, whole)
        for number in _sound_headers(view[start:stop], order, (whole - start) // WORD):
            end = start + number * WORD
            for _ in range(wire.SOUND_RUN):
                end = _sound_end(view, word, end, whole)
            if end:
                return start + number * WORD
        start = stop
        nbytes = min(2 * nbytes, 1 << 19)  # little to look at where damage is short
    return len(view)


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


def frame_message(code: str, header: int, nbytes: int) -> str:
    """The finding about a stretch, in words."""
    type = TYPE_NAMES.get(header & 15, f"type {header & 15}")
    size = words_of(header)
    return {
        "FXT0001": f"a record of size zero (header {header:#018x}); {nbytes} bytes are damaged",
        "FXT0002": f"a record ({type}) of {size} words passes the end; {nbytes} bytes are damaged",
        "FXT0003": f"a record ({type}) of {size} words, too few; {nbytes} bytes are damaged",
        "FXT0005": f"{nbytes} odd bytes at the end",
        "FXT0006": f"{nbytes // WORD} zero words",
        "FXT0007": f"record type {header & 15}",
        "FXT0008": f"a record ({type}) of {nbytes} bytes",
    }[code]
