"""Records: the stretches that a file consists of, lossless."""

from __future__ import annotations

from typing import Any

import attrs

__all__ = ["TraceRecord"]


@attrs.frozen
class TraceRecord:
    """An event with the separator behind it, or another stretch of the file.

    ``record`` is the kind: that of the event's phase (``complete``, ``counter``, …), ``event`` for
    a phase that is unknown, ``header`` (what opens the document), ``member`` (one beside the
    events), ``close`` (a bracket that closes), or ``damaged``.
    """

    record: str
    offset: int
    raw: bytes

    @property
    def nbytes(self) -> int:
        """Its bytes."""
        return len(self.raw)

    def to_json(self) -> dict[str, Any]:
        """As record JSON: ``text``, or ``raw`` in hexadecimal where that is not UTF-8."""
        shown: dict[str, Any] = {
            "record": self.record,
            "offset": self.offset,
            "nbytes": len(self.raw),
        }
        try:
            shown["text"] = self.raw.decode()
        except UnicodeDecodeError:
            shown["raw"] = self.raw.hex()
        return shown
