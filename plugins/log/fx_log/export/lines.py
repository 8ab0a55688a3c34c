"""The common base of the exporters `text` and `json`, which write a line for each log."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from fx_log.export.presentation import Batch, in_pieces, left_out, nothing_to_write, walk
from fxframework.kit.export import Export
from fxframework.model.capture import Capture
from fxframework.model.table import Table

__all__ = ["VERBOSITY", "LineExport", "Member", "Members"]

Member = tuple[str, str]
"""The rendered name of an argument, and the rendered argument."""
Members = Sequence[Member]
VERBOSITY: Final = "verbosity"
"""The key of a verbosity that writers of 2022 added to the severity."""


class LineExport(Export):
    """Writes a line for each log, capture by capture."""

    def write(self, capture: Capture) -> None:
        """Write the logs of one capture.

        Raises WriteRefusedError if there are none.
        """
        written = False
        for piece in self._pieces(capture):
            self._sink.write(piece)
            written = True
        if not written:
            raise nothing_to_write(capture)
        self._dropped += left_out(capture)

    def _pieces(self, capture: Capture) -> Iterator[bytes]:
        """Yield all lines, in pieces of bounded size."""
        render, lines = self._lines(capture)
        for batch in walk(capture, render, self._dropped):
            for piece in in_pieces(lines(batch)):
                yield "\n".join([*piece, ""]).encode()

    @abc.abstractmethod
    def _lines(
        self, capture: Capture
    ) -> tuple[Callable[[Table], Sequence[Member]], Callable[[Batch[Member]], Iterator[str]]]:
        """Return the functions that render arguments as members, and logs as lines."""
