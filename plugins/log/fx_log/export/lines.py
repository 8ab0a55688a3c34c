"""The common base of the exporters that write something for each log, one after another."""

from __future__ import annotations

import abc
from collections.abc import Iterator, Sequence
from typing import Any, Final, Protocol

from fx_log.export.presentation import NO_LOGS, Batch, left_out, walk
from fxframework.kit.export import Export, empty_refusal
from fxframework.kit.row_texts import in_pieces
from fxframework.model.capture import Capture
from fxframework.model.table import Table

Member = tuple[str, str]
"""The rendered name of an argument, and the rendered argument."""
Members = Sequence[Member]
VERBOSITY: Final = "verbosity"
"""The key of a verbosity that writers of 2022 added to the severity."""


class Lines(Protocol):
    """Renders the logs of a capture."""

    def arguments(self, args: Table) -> Sequence[Any]:
        """Return rows of `args` as ``of`` takes them."""

    def of(self, batch: Batch[Any]) -> Iterator[str] | Iterator[bytes]:
        """Yield what is written for each log of a batch."""


class LineExport(Export):
    """Writes lines for each log, capture by capture."""

    def write(self, capture: Capture) -> None:
        """Write the logs of one capture.

        Raises WriteRefusedError if there are none.
        """
        has_logs = False
        lines = self._lines(capture)
        for batch in walk(capture, lines.arguments, self._dropped):
            for piece in in_pieces(lines.of(batch)):
                self._sink.write(piece)
                has_logs = True
        if not has_logs:
            raise empty_refusal(capture, NO_LOGS)
        self._dropped += left_out(capture)

    @abc.abstractmethod
    def _lines(self, capture: Capture) -> Lines:
        """Return what renders the logs of a capture."""
