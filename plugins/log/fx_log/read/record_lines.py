"""Lines of record JSON: those that kernels write, and between them those of ``decoder.py``."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import orjson

from fx_log.read.decoder import RecordDecoder, Records
from fx_log.read.framing import PacketFramer
from fx_log.read.jsonlines import JsonLines, Lines
from fx_log.read.packet_lines import PacketLines
from fx_log.read.records import LogFileRecord
from fxframework.io.source import Source
from fxframework.io.words import WORD, view_of
from fxframework.kernels.buffers import view
from fxframework.kit.record_lines import PIECE, record_lines
from fxframework.model.capture import OpenRequest

__all__ = ["lines_of"]


def lines_of(form: str, source: Source, request: OpenRequest) -> Iterator[bytes]:
    """Return the JSON of all records of a file, in pieces of whole lines."""
    decoder = RecordDecoder(form, limits=request.limits, options=request.options)
    records = decoder.read(view_of(source.data))
    file = records.file

    def record_at(byte: int) -> LogFileRecord:
        return next(records.of(next(file.blocks(byte, most=1))))

    yield from map(_line, records.opening())
    if file.data.size:
        lines = _kernel(records)
        lines.pos = int(file.framer.pos)
        passed = source.passed if file.ring is None else lambda _start, _stop: None
        yield from record_lines(
            lines, int(file.framer.unit), file.data.size, PIECE, record_at, passed
        )
    yield from map(_line, records.rest())


def _kernel(records: Records) -> Lines:
    """Return the kernel at the first record."""
    framer, data = records.file.framer, records.file.data
    if isinstance(framer, PacketFramer):
        return PacketLines(framer, view(data, np.uint8), PIECE)
    whole = data[: data.size // WORD * WORD]
    words, doubles = view(whole.view("<i8"), np.int64), view(whole.view("<f8"), np.float64)
    in_ring = int(records.file.ring is not None)
    return JsonLines(framer, words, view(data, np.uint8), doubles, PIECE, in_ring)


def _line(record: LogFileRecord) -> bytes:
    return orjson.dumps(record.to_json()) + b"\n"
