"""The common base of the exporters that write something for each log, one after another."""

from __future__ import annotations

import abc
from collections.abc import Iterator, Sequence
from typing import Final

from fx_log.export.presentation import NO_LOGS, left_out
from fxframework.kit.export import Export, empty_refusal
from fxframework.model.capture import Capture

Member = tuple[str, str]
"""The rendered name of an argument, and the rendered argument."""
Members = Sequence[Member]
VERBOSITY: Final = "verbosity"
"""The key of a verbosity that writers of 2022 added to the severity."""


class LineExport(Export):
    """Writes lines for each log, capture by capture."""

    def write(self, capture: Capture) -> None:
        """Write the logs of one capture.

        Raises WriteRefusedError if there are none.
        """
        has_logs = False
        for lines in self._pieces(capture):
            self._sink.write(lines)
            has_logs = True
        if not has_logs:
            raise empty_refusal(capture, NO_LOGS)
        self._dropped += left_out(capture)

    @abc.abstractmethod
    def _pieces(self, capture: Capture) -> Iterator[bytes]:
        """Yield all lines, in pieces of bounded size."""
