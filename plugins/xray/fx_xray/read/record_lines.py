"""Lines of record JSON: of a program of the declared records, and between them of a walk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

from fx_xray.format import (
    BASIC_FORM,
    Basic,
    BufferExtents,
    EndOfBuffer,
    Fdr,
    FileHeader,
    XrayRecord,
)
from fx_xray.read.decoder import RecordDecoder, Walk
from fx_xray.read.framing import FrameList
from fxframework.io.limits import Limits
from fxframework.io.source import Source
from fxframework.io.words import view_of
from fxframework.kernels.notes import Notes
from fxframework.kit.record_lines import PIECE, record_lines
from fxframework.model.capture import Record
from fxframework.wire.expressions import wrapped
from fxframework.wire.format import Format
from fxframework.wire.operations import Compiled
from fxframework.wire.programs import CODES, compile_lines

__all__ = ["lines_of"]


@cache
def program_of(form: str, *, mirrored: bool) -> Compiled:
    """Return the program that writes the lines of a format's records."""
    base = Basic if form == BASIC_FORM else Fdr
    format = Format(form, form, base, codes="FXX")
    return compile_lines(format, mirrored=mirrored, left=(BufferExtents, EndOfBuffer))


def lines_of(
    decoder: RecordDecoder,
    source: Source,
    header: FileHeader,
    done: Callable[[int, int], None],
) -> Iterator[bytes]:
    """Return the JSON of all records of a trace, in pieces of whole lines.

    Findings are not reported. ``done`` is called with bytes that are not read again.
    """
    walk = decoder.walk(view_of(source.data), header)
    both = _Both(walk, decoder, source)

    def record(at: int) -> Record:
        return both.record(at) if at else header

    return record_lines(both.program, 1, source.size, PIECE, record, done)


class _Both:
    """The records at which the program stops; it and the walk know the same of their buffers."""

    def __init__(self, walk: Walk, decoder: RecordDecoder, source: Source) -> None:
        self.walk = walk
        self.compiled = program_of(decoder.form, mirrored=walk.state.mirrored)
        notes, limits = Notes(CODES, 0), Limits(max_record=walk.max_record)
        self.program = self.compiled.start(source, limits, notes, PIECE)
        self.program.sound_only = 1
        self.program.framing.big = int(walk.state.big)
        self.frames = FrameList(walk.scan, walk.scan, 1)
        self.stop(0)

    def stop(self, at: int) -> None:
        """Let the program stop at byte ``at``."""
        self.program.total = self.program.framing.total = at

    def record(self, at: int) -> XrayRecord:
        """Return the record at byte ``at`` by the walk."""
        walk, slots = self.walk, self.program.slots
        if at > walk.scan.at:
            walk.scan.until = at
            walk.scan.run()
            walk.block = walk.scan.block
            walk.known.update({each: slots[slot] for each, slot in self.compiled.registers.items()})
        (frame,) = walk.listed(self.frames)
        record = walk.record(frame)
        for register, slot in self.compiled.registers.items():
            slots[slot] = wrapped(walk.known[register])
        for slot in self.compiled.parts:
            slots[slot] = 0
        self.stop(walk.sound_until)
        return record
