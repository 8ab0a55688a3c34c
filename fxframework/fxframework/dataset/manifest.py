"""Manifest: the outcome of each capture of a dataset, one line of JSON each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import orjson

from fxframework.dataset.inputs import Item
from fxframework.errors import readable_name

OK = "ok"
"""The outcome of a capture of which all data was converted."""
LOSSES = "losses"
"""The outcome of a capture of which some data was lost."""
FAILED = "failed"
"""The outcome of a capture of which nothing was converted."""
SKIPPED = "skipped"
"""The outcome of a file of a folder or pattern that is not a capture. No manifest has it."""


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
    """Its id, as in the column ``capture`` and in the names of its files."""
    file: str
    host: str
    size: int
    """Stored bytes; -1 if unknown."""
    version: str
    """``Item.version``; with the size, it shows ``--resume`` whether the file has changed."""
    outcome: str
    """``ok``, ``losses`` or ``failed``; within a batch also ``skipped``."""
    format: str = ""
    rows: Mapping[str, int] = attrs.field(factory=dict)
    """Number of rows by table of the format, including empty tables."""
    findings: Mapping[str, int] = attrs.field(factory=dict)
    """Number of findings by code."""
    error: Fault | None = None
    written: int = 0
    """Bytes of its Parquet files."""
    seconds: float = 0.0
    """Duration of its conversion."""

    def to_json(self) -> bytes:
        """Return the entry as a line of JSON."""
        fields = attrs.asdict(self)
        fields |= {"file": readable_name(self.file), "host": readable_name(self.host)}
        return orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE)

    @classmethod
    def from_json(cls, line: bytes) -> Entry:
        """Parse a line. Raises ValueError for an invalid line."""
        fields: dict[str, Any] = orjson.loads(line)
        try:
            error = fields.pop("error")
            return cls(**fields, error=None if error is None else Fault(**error))
        except (TypeError, KeyError, AttributeError) as invalid:
            raise ValueError(str(invalid)) from invalid

    def holds(self, item: Item) -> bool:
        """Return whether this is the finished conversion of an input in its current state."""
        if self.outcome == FAILED:
            return False
        finished_state = (self.size, self.version, self.host)
        return finished_state == (item.size, item.version, item.host)

    @classmethod
    def of(cls, item: Item, outcome: str, **fields: Any) -> Entry:
        """Return the entry of a capture with an outcome; ``fields`` are its other fields."""
        return cls(
            capture=item.capture,
            file=item.file,
            host=item.host,
            size=item.size,
            version=item.version,
            outcome=outcome,
            **fields,
        )
