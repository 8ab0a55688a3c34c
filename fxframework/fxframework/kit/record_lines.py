"""Record JSON in bulk: lines written by a kernel, interleaved with lines of single records."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

from fxframework.model.capture import Record

__all__ = ["PIECE", "RELEASED", "LineKernel", "record_lines"]

RELEASED = 8 << 20
"""Bytes of the file that are released at a time."""

PIECE = 1 << 18
"""Bytes of record JSON in one chunk."""


class LineKernel(Protocol):
    """A kernel that writes the JSON lines of the kinds of records that it knows."""

    pos: Any
    """Its position in the file, in units."""
    out: Any
    """Its output buffer (``fxframework.kernels.output.Output``)."""

    def run(self) -> int:
        """Write lines until a record of an unknown kind, or until the buffer is full."""
        ...


def record_lines(
    lines: LineKernel,
    unit: int,
    nbytes: int,
    most: int,
    record: Callable[[int], Record],
    done: Callable[[int, int], None] = lambda _start, _stop: None,
) -> Iterator[bytes]:
    """Yield the JSON of all records of a file, in chunks of whole lines.

    ``unit`` is the size of the unit of ``lines.pos``, ``nbytes`` the size of the file and ``most``
    the size of a chunk, all in bytes; ``record`` decodes the record at a byte offset at which the
    kernel stopped. ``done(start, stop)`` is called with ranges of bytes that are not read again.
    """
    behind = 0
    run, out = lines.run, lines.out
    while True:
        run()
        at = unit * int(lines.pos)
        full = out.used >= most
        if full or (at >= nbytes and out.used):
            yield out.take()
            if at - behind <= RELEASED:
                done(at, at)  # only how far this is
            else:
                done(behind, at)
                behind = at
        if at >= nbytes:
            return
        if full:
            continue
        one = record(at)
        out.line(one.to_json())
        lines.pos = -(-(at + one.nbytes) // unit)
