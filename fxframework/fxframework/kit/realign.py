"""Realignment: salvage of captures whose records, after missing bytes, are off the alignment."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import TypeVar

import attrs

from fxframework.errors import Rule
from fxframework.io.sink import Sink
from fxframework.io.source import Source, spool_file
from fxframework.io.words import WORD
from fxframework.kernels.frames import Alignment
from fxframework.kit.salvage import Loss
from fxframework.kit.shown import amount
from fxframework.model.capture import Capture

C = TypeVar("C", bound=Capture)
PIECE = 1 << 22
"""Bytes walked over before they are released."""
MOST = 1 << 20
"""Most changes of the alignment that are followed, to bound the memory."""


def realigned(
    capture: C, alignment: Alignment, rule: Rule, salvage: Callable[[C], Iterator[Loss]]
) -> Iterator[Loss]:
    """Salvage a capture, or an aligned copy where its records are off the alignment.

    ``alignment`` walks over its bytes. The copy lacks the stretches behind which the alignment
    changes, each of which is a loss of the code of ``rule``. Losses of ``salvage`` are given with
    their places in the file, all in order.
    """
    stretches = _stretches(capture, alignment)
    del alignment  # which holds the file
    if not stretches:
        yield from salvage(capture)
        return
    # What is copied lies between these stretches.
    begins = array("q", [0, *stretches[1::2]])
    ends = array("q", [*stretches[::2], capture.source.size])
    places = array("q", [0])
    with spool_file() as spool:
        sink = Sink(spool, name=capture.name)
        for begin, end in zip(begins, ends, strict=True):
            for piece in capture.source.pieces(begin, end):
                sink.write(piece)
            capture.source.passed(begin, end)
            places.append(places[-1] + end - begin)
        copy = Source.spooled(spool, name=capture.name)
    passed = 0
    with type(capture)(copy, capture.request) as moved:
        for loss in salvage(moved):
            part = min(bisect_right(places, loss.offset), len(begins)) - 1
            yield from _changes(begins, ends, range(passed, part), rule)
            passed = max(passed, part)
            yield attrs.evolve(loss, offset=begins[part] + loss.offset - places[part])
    yield from _changes(begins, ends, range(passed, len(begins) - 1), rule)


def _stretches(capture: Capture, alignment: Alignment) -> array[int]:
    """Return begin and end, in turn, of each stretch behind which the alignment changes."""
    found = array("q")
    size = capture.source.size
    while alignment.pos < size and len(found) < 2 * MOST:
        before = alignment.pos
        for begin, end in alignment.stretches(min(before + PIECE, size)):
            found.extend((begin, end))
        capture.source.passed(before, alignment.pos)
    return found


def _changes(begins: array[int], ends: array[int], parts: range, rule: Rule) -> Iterator[Loss]:
    """Yield the losses behind some parts."""
    for part in parts:
        nbytes = begins[part + 1] - ends[part]
        off = begins[part + 1] % WORD
        where = (
            f"are {amount(off, 'byte')} off the alignment; moved" if off else "are aligned again"
        )
        message = (
            f"bytes are missing or were put in here; {amount(nbytes, 'byte')} left out. "
            f"The records behind them {where}"
        )
        yield Loss(ends[part], nbytes, "damaged", message, rule.code)
