"""Opened: what a capture has until it is closed, and what is left of it then."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any

from fxframework.errors import ClosedError
from fxframework.model.turns import public_in_turns

if TYPE_CHECKING:
    from fxframework.io.source import Source
    from fxframework.model.diagnostics import Diagnostics
    from fxframework.model.strings import StringPool

__all__ = ["Opened"]

KEPT_WHEN_CLOSED = frozenset(
    {"source", "request", "strings", "_findings", "format", "rules", "schemas"}
)
"""What a closed capture still has: its name and its findings, and what its tables use."""


class Opened(abc.ABC):
    """The base of captures: an input, its findings, and the end of both.

    Threads may share a capture: what one of them reads, others wait for.
    """

    source: Source
    """The bytes of the input."""
    strings: StringPool
    """The strings of its tables."""
    _findings: Diagnostics

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        public_in_turns(cls)

    @abc.abstractmethod
    def scan(self) -> None:
        """Read the whole capture, so that ``diagnostics`` is complete."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Raise ClosedError for what a closed capture has given up."""
            source = self.__dict__.get("source")
            if source is not None and source.closed and not name.startswith("__"):
                raise ClosedError(source.name)
            msg = f"{type(self).__name__!r} object has no attribute {name!r}"
            raise AttributeError(msg)

    @property
    def closed(self) -> bool:
        """Whether ``close()`` was called."""
        return self.source.closed

    @property
    def diagnostics(self) -> Diagnostics:
        """The findings of what was read so far, also after ``close()``.

        If nothing was read yet, looking at them reads the whole capture (``scan``), and raises
        ClosedError once it is closed.
        """
        if not self._findings.reading_began:
            self._check_open()
            self._findings.before_look = self.scan
        return self._findings

    def _check_open(self) -> None:
        """Raise ClosedError after ``close()``."""
        if self.source.closed:
            raise ClosedError(self.source.name)

    def _start_reading(self) -> None:
        """Note that the capture is being read. Raises ClosedError after ``close()``."""
        self._check_open()
        self._findings.begin()

    def _let_go(self) -> None:
        """Close the input, and drop all that the reader keeps of it."""
        self.source.close()
        for name in vars(self).keys() - KEPT_WHEN_CLOSED:
            del self.__dict__[name]
