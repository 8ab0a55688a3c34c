"""Lines of record JSON: those that kernels write, and between them those of ``decoder.py``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from fx_log.read.decoder import LogWalk, RecordDecoder, RingWalk, StreamWalk, Walk
from fx_log.read.jsonlines import JsonLines
from fx_log.read.packet_lines import PacketLines
from fx_log.read.records import LogFileRecord
from fxframework.io.source import Source
from fxframework.io.words import WORD, view_of
from fxframework.kernels.buffers import view
from fxframework.kit.record_lines import PIECE, record_lines
from fxframework.model.capture import OpenRequest

__all__ = ["LINES", "lines_of"]


def _structured(walk: Walk, data: NDArray[np.uint8], *, in_ring: bool) -> JsonLines:
    """Return the kernel at the beginning of structured records, or of entries of a ring."""
    whole = data[: data.size // WORD * WORD]
    words, doubles = view(whole.view("<i8"), np.int64), view(whole.view("<f8"), np.float64)
    return JsonLines(walk.framer, words, view(data, np.uint8), doubles, PIECE, int(in_ring))


def _log_lines(source: Source, walk: LogWalk) -> Iterator[bytes]:
    lines = _structured(walk, source.data, in_ring=False)
    return record_lines(lines, WORD, source.size, PIECE, walk.record, source.passed)


def _ring_lines(source: Source, walk: RingWalk) -> Iterator[bytes]:  # noqa: ARG001 (of its line)
    yield from map(_line, walk.opening())
    if walk.line:
        lines = _structured(walk, walk.framed, in_ring=True)
        yield from record_lines(lines, WORD, len(walk.line), PIECE, walk.record)
    yield from map(_line, walk.rest())


def _line(record: LogFileRecord) -> bytes:
    return orjson.dumps(record.to_json()) + b"\n"


def _stream_lines(source: Source, walk: StreamWalk) -> Iterator[bytes]:
    lines = PacketLines(walk.framer, view(source.data, np.uint8), PIECE)
    return record_lines(lines, 1, source.size, PIECE, walk.record, source.passed)


LINES: Mapping[str, Callable[[Source, Any], Iterator[bytes]]] = {
    "log": _log_lines,
    "log-ring": _ring_lines,
    "log-legacy-stream": _stream_lines,
}
"""Functions that yield the lines of a file, given a walk through it, by format."""


def lines_of(form: str, source: Source, request: OpenRequest) -> Iterator[bytes]:
    """Return the JSON of all records of a file of one of ``LINES``, in pieces of whole lines."""
    decoder = RecordDecoder(form, limits=request.limits, options=request.options)
    return LINES[form](source, decoder.walk(view_of(source.data)))
