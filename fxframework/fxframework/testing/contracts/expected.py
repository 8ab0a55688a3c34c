"""Expected contents of samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

__all__ = ["Expected"]


@attrs.frozen(kw_only=True)
class Expected:
    """The expected contents of a sample; fields that are not given are not compared.

    Expected(
        rows={"slices": 2, "threads": 1},
        values={"slices": [{"ts": 1_500_000, "dur": 250_000, "name": "load"}]},
        start_ns=1_500_000,
    )
    """

    records: int | None = None
    """Number of records."""
    kinds: Mapping[str, int] | None = None
    """Number of records by kind, for all kinds."""
    rows: Mapping[str, int] = attrs.field(factory=dict)
    """Number of rows by table."""
    values: Mapping[str, Sequence[Mapping[str, Any]]] = attrs.field(factory=dict)
    """The first rows of tables, each with some columns: strings instead of codes, ``pid/tid``
    instead of thread ids, names instead of values of an enumeration."""
    findings: Sequence[str] | None = None
    """Codes of all findings, by offset."""
    start_ns: int | None = None
    """The first time of the summary, in nanoseconds."""
    end_ns: int | None = None
    """The last time of the summary, in nanoseconds."""
