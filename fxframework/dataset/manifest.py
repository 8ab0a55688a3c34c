"""Manifest: what became of each capture of a dataset, one line of JSON each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from fxframework.dataset.inputs import Item

__all__ = ["FAILED", "LOSSES", "OK", "Entry", "Fault"]

OK, LOSSES, FAILED = "ok", "losses", "failed"
"""Outcomes: all was read; data was lost, the rest is in the dataset; nothing is."""


@attrs.frozen(kw_only=True)
class Fault:
    """Why a capture failed."""

    code: str
    message: str
    remedy: str = ""


@attrs.frozen(kw_only=True)
class Entry:
    """One capture of a dataset."""

    capture: str
    """Its id: what the column ``capture`` and the names of its files hold."""
    file: str
    host: str
    size: int
    """Bytes as stored; -1 where that is not known."""
    version: str
    """``Item.version``: by it and the size ``--resume`` sees whether a file has changed."""
    outcome: str
    """``ok``, ``losses`` or ``failed``."""
    format: str = ""
    rows: Mapping[str, int] = attrs.field(factory=dict)
    """Rows of each table of the format, those without rows too."""
    findings: Mapping[str, int] = attrs.field(factory=dict)
    """Findings of each code."""
    error: Fault | None = None
    written: int = 0
    """Bytes of its Parquet files."""
    seconds: float = 0.0
    """Time that its conversion took."""

    def to_json(self) -> bytes:
        """The entry as a line of JSON."""
        import orjson

        fields = attrs.asdict(self)
        fields["file"] = self.file.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        return orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE)

    @classmethod
    def from_json(cls, line: bytes) -> Entry:
        """The entry of a line. Raises ValueError for any other line."""
        import orjson

        fields: dict[str, Any] = orjson.loads(line)
        try:
            error = fields.pop("error")
            return cls(**fields, error=None if error is None else Fault(**error))
        except (TypeError, KeyError, AttributeError) as wrong:
            raise ValueError(str(wrong)) from wrong

    def holds(self, item: Item) -> bool:
        """Whether this is the finished conversion of an input as it is now."""
        return self.outcome != FAILED and (self.size, self.version, self.host) == (
            item.size,
            item.version,
            item.host,
        )

    @classmethod
    def failed(cls, item: Item, fault: Fault, *, seconds: float = 0.0) -> Entry:
        """The entry of a capture of which nothing is in the dataset."""
        return cls(
            capture=item.capture, file=item.file, host=item.host, size=item.size,
            version=item.version, outcome=FAILED, error=fault, seconds=seconds,
        )  # fmt: skip
