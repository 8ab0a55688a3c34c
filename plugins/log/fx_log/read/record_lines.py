"""Lines of record JSON: those that kernels write, and between them those of ``decoder.py``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
import orjson
from numpy.typing import NDArray

from fx_log import format as wire
from fx_log.read.jsonlines import JsonLines
from fx_log.read.packet_lines import PacketLines
from fxframework.io.limits import Limits
from fxframework.io.source import Source
from fxframework.io.words import WORD, view_of
from fxframework.kernels.buffers import view
from fxframework.kit.record_lines import PIECE, record_lines
from fxframework.model.capture import OpenRequest

if TYPE_CHECKING:
    from fx_log.read.records import LogFileRecord

__all__ = ["LINES"]

I64_MAX = (1 << 63) - 1


def _structured(data: NDArray[np.uint8], limits: Limits) -> JsonLines:
    """Return the kernel at the beginning of structured records, or of entries of a ring."""
    whole = data[: data.size // WORD * WORD]
    return JsonLines(
        view(whole.view("<i8"), np.int64),
        view(data, np.uint8),
        view(whole.view("<f8"), np.float64),
        min(limits.max_record, I64_MAX),
        PIECE,
    )


def _log_lines(source: Source, request: OpenRequest) -> Iterator[bytes]:
    from fx_log.read.decoder import LogWalk, RecordDecoder

    decoder = RecordDecoder("log", limits=request.limits, options=request.options)
    data = source.data
    walk = LogWalk(view_of(data), [], decoder)
    lines = _structured(data, request.limits)

    def record(at: int) -> LogFileRecord:
        one = walk.record(at)
        walk.found.clear()  # the first pass reports them
        return one

    return record_lines(lines, WORD, data.size, PIECE, record, source.passed)


def _ring_lines(source: Source, request: OpenRequest) -> Iterator[bytes]:
    from fx_log.read.decoder import RecordDecoder, RingWalk

    decoder = RecordDecoder("log-ring", limits=request.limits, options=request.options)
    walk = RingWalk(view_of(source.data), [], decoder)
    opening, used = walk.opening()
    yield from map(_line, opening)
    if used:
        lines = _structured(np.frombuffer(walk.line[:used], np.uint8), request.limits)
        lines.in_ring(wire.RING_PAGE, walk.start, len(walk.line))

        def record(at: int) -> LogFileRecord:
            one = walk.entry(walk.line, at, used, walk.place)
            walk.found.clear()
            return one

        yield from record_lines(lines, WORD, used, PIECE, record)
    yield from map(_line, walk.rest(used))


def _line(record: LogFileRecord) -> bytes:
    return orjson.dumps(record.to_json()) + b"\n"


def _stream_lines(source: Source, request: OpenRequest) -> Iterator[bytes]:
    from fx_log.read.decoder import RecordDecoder, StreamWalk

    decoder = RecordDecoder("log-legacy-stream", limits=request.limits, options=request.options)
    data = source.data
    walk = StreamWalk(view_of(data), [], decoder)
    lines = PacketLines(view(data, np.uint8), PIECE)

    def record(at: int) -> LogFileRecord:
        one = walk.framed(at) if at else walk.header()
        walk.found.clear()
        return one

    return record_lines(lines, 1, data.size, PIECE, record, source.passed)


LINES: Mapping[str, Callable[[Source, OpenRequest], Iterator[bytes]]] = {
    "log": _log_lines,
    "log-ring": _ring_lines,
    "log-legacy-stream": _stream_lines,
}
"""Functions that yield the JSON of all records of a file in pieces of whole lines, by format."""
