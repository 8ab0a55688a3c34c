"""Export: what the sessions of exporters have in common; each subclass is one kind of them."""

from __future__ import annotations

import abc
from collections import Counter
from collections.abc import Mapping
from typing import Any

from fxframework.errors import WriteRefusedError
from fxframework.io.sink import Sink
from fxframework.model.capture import Capture

__all__ = ["Export"]


class Export(abc.ABC):
    """A session of an exporter: the subclass is what ``Exporter.open`` names.

    ``write`` puts bytes into ``_sink`` as ``_options`` say, and counts in ``_dropped`` what has no
    place in the output, by name.
    """

    def __init__(self, sink: Sink, options: Mapping[str, Any]) -> None:
        self._sink = sink
        self._options = options
        self._dropped: Counter[str] = Counter()
        self._used = False

    @abc.abstractmethod
    def write(self, capture: Capture) -> None:
        """Export one capture. Raises WriteRefusedError for one that it cannot export."""

    def close(self) -> Mapping[str, int]:
        """What had no place in the output, by name, with counts."""
        return {what: count for what, count in self._dropped.items() if count > 0}

    def _take_only(self, what: str) -> None:
        """Raises WriteRefusedError for a second capture: ``what`` is of one."""
        if self._used:
            raise WriteRefusedError(what, remedy="convert the inputs one by one")
        self._used = True
