"""Rows of text of the events of a batch, in order: most by templates, few as whole texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fxframework.kernels.buffers import room, view
from fxframework.kernels.columns import CopiedStretches
from fxframework.kernels.parts import TEXT
from fxframework.kernels.templates import Cell, Templates

__all__ = ["Lines"]

I64 = NDArray[np.int64]
DENSE = 1 << 18
"""Keys below this are looked up in a table."""
HELD = 1 << 20
"""Bytes of texts that are kept from batch to batch."""


class Lines:
    """Collects the rows of a batch by their places, and joins them in that order."""

    def __init__(self) -> None:
        self.templates = Templates(b"", b"", b"")
        self._parts: list[tuple[I64, I64, I64]] = []

    def begin(self) -> None:
        """Begin the next batch."""
        self.templates.forget(HELD)
        self._parts = []

    def put(self, places: I64, *cells: Cell) -> None:
        """Write rows of a template at these places, of shape (rows,)."""
        if places.size:
            self._parts.append((places, *self.templates.write(places.size, *cells)))

    def put_texts(self, places: Sequence[int], texts: Sequence[str], end: bytes) -> None:
        """Write whole rows, each followed by ``end``."""
        if texts:
            numbers = self.templates.texts([text.encode() for text in texts])
            self.put(np.array(places, np.int64), (TEXT, numbers), end)

    def texts_of(self, keys: NDArray[Any], show: Callable[[int], str]) -> I64:
        """Return the numbers of the texts that ``show`` gives for keys, of shape (rows,)."""
        if not keys.size:
            return np.zeros(0, np.int64)
        if int(keys.max()) < DENSE:
            met = np.zeros(int(keys.max()) + 1, np.bool_)
            met[keys] = True
            different, place = np.flatnonzero(met), keys
            numbers = np.empty(met.size, np.int64)
        else:
            different, place = np.unique(keys, return_inverse=True)
            numbers = np.empty(different.size, np.int64)
        texts = [self.templates.text(show(key).encode()) for key in different.tolist()]
        numbers[different if place is keys else slice(None)] = texts
        found: I64 = numbers[place]
        return found

    def joined(self) -> tuple[NDArray[np.uint8], I64, I64]:
        """Return all rows in the order of their places: bytes, bounds (rows + 1,), places."""
        if not self._parts:
            return np.zeros(0, np.uint8), np.zeros(1, np.int64), np.zeros(0, np.int64)
        places, starts, ends = (np.concatenate(part) for part in zip(*self._parts, strict=True))
        order = np.argsort(places, kind="stable")
        starts, ends = starts[order], ends[order]
        bounds = np.zeros(starts.size + 1, np.int64)
        np.cumsum(ends - starts, out=bounds[1:])
        out = room(int(bounds[-1]), "u1")
        letters = view(self.templates.letters(), "u1")
        CopiedStretches(letters, view(starts, "i8"), view(bounds, "i8"), out).run()
        return np.asarray(out), bounds, places[order]
