"""Record JSON in bulk: lines that a kernel writes, and between them those of single records."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import orjson

from fxframework.model.capture import Record

__all__ = ["PIECE", "LineKernel", "record_lines"]

RELEASED = 8 << 20
"""Bytes of the file that are given back at a time."""

PIECE = 1 << 18
"""Bytes of record JSON that are made before they are given."""


class LineKernel(Protocol):
    """A kernel that writes the lines of records whose fields it knows."""

    pos: Any
    """Where it is: a number of units of the file."""
    out: Any
    """What it wrote (``fxframework.kernels.output.Output``)."""

    def run(self) -> int:
        """Write lines up to a record that it leaves to others, or until there are enough."""
        ...


def record_lines(
    lines: LineKernel,
    unit: int,
    nbytes: int,
    most: int,
    record: Callable[[int], Record],
    done: Callable[[int, int], None] = lambda _start, _stop: None,
) -> Iterator[bytes]:
    """The JSON of all records of a file, in pieces of whole lines.

    ``unit`` are the bytes that ``lines.pos`` counts, ``nbytes`` those of the file, ``most`` the
    bytes of lines that the kernel gives at a time; ``record`` decodes the record at a byte offset
    at which the kernel stopped. ``done`` is called with bytes that are not read again.
    """
    behind = 0
    while True:
        lines.run()
        at = unit * int(lines.pos)
        full = lines.out.used >= most
        if full or (lines.out.used and at >= nbytes):
            yield lines.out.take()
            if at - behind > RELEASED:
                done(behind, at)
                behind = at
        if at >= nbytes:
            return
        if full:
            continue
        one = record(at)
        lines.out.put(orjson.dumps(one.to_json()) + b"\n")
        lines.pos = -(-(at + one.nbytes) // unit)
