"""The stretches that the bytes of a trace fall into, one by one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from fx_trace.read.buffer import Image
from fx_trace.read.frames import TraceFile, TraceFrames
from fx_trace.rules import RULES
from fxframework.errors import Rule
from fxframework.io.limits import Limits
from fxframework.io.source import Source
from fxframework.io.words import WORD


class Framed(NamedTuple):
    begin: int
    end: int
    header: int
    rule: Rule | None
    """Why it is not a sound record of a known type."""


def frames(data: bytes, *, big_endian: bool = False) -> Iterator[Framed]:
    """Yield the stretches of a file of whole words, without gaps."""
    source = Source(np.frombuffer(data, np.uint8), name="bytes")
    file = TraceFile.archive(source, big_endian=big_endian, limits=Limits())
    listed = TraceFrames(file)
    place = 0
    while place < len(data):
        row = listed.row_of(place)
        fault = int(listed.fault[row])
        place = int(listed.begin[row])
        end = place + int(listed.size[row])
        header = int(file.words[place // WORD]) % (1 << 64)
        yield Framed(place, end, header, RULES.numbered(fault) if fault else None)
        place = end


def held(data: bytes) -> list[bytes]:
    """The records of an image in reading order, and nothing that would be damage."""
    image = Image(np.frombuffer(data, np.uint8))
    assert image.header is not None, image.faults
    records = []
    for region in image.regions:
        part = data[region.offset : region.offset + region.used]
        for at, end, _, code in frames(part):
            assert code is None
            records.append(part[at:end])
    return records
