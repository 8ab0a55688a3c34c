"""The common base of the exporters of events: sessions that write batches of matched events."""

from __future__ import annotations

import abc
from collections.abc import Sequence

from fx_xray.export.presentation import (
    left_out,
    nothing_to_write,
    whole_of,
)
from fxframework.kit.export import Export
from fxframework.model.capture import Capture


class EventExport(Export):
    """Writes the events of captures."""

    def _put(self, lines: Sequence[str]) -> None:
        if lines:
            self._sink.write(("\n".join(lines) + "\n").encode())


class SingleExport(EventExport):
    """Writes the events of one capture."""

    what: str
    """Name of the output, which cannot hold a second capture."""

    def write(self, capture: Capture) -> None:
        """Write the capture.

        Raises WriteRefusedError for a second capture, and for one without a header.
        """
        self._only_one_capture(f"{self.what} holds one capture")
        if whole_of(capture).version is None:
            raise nothing_to_write(capture)
        self._write(capture)
        self._dropped += left_out(capture)

    @abc.abstractmethod
    def _write(self, capture: Capture) -> None:
        """Write the capture."""
