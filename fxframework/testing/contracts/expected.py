"""Expected: what the author of a sample knows of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

__all__ = ["Expected"]


@attrs.frozen(kw_only=True)
class Expected:
    """What a sample holds, as far as its author says; what is left out is not compared.

    Expected(
        rows={"slices": 2, "threads": 1},
        values={"slices": [{"ts": 1_500_000, "dur": 250_000, "name": "load"}]},
        start_ns=1_500_000,
    )
    """

    records: int | None = None
    """How many records there are."""
    kinds: Mapping[str, int] | None = None
    """Records of each kind, all of them."""
    rows: Mapping[str, int] = attrs.field(factory=dict)
    """Rows of tables."""
    values: Mapping[str, Sequence[Mapping[str, Any]]] = attrs.field(factory=dict)
    """The first rows of tables, each with some of its columns: texts instead of codes, ``pid/tid``
    instead of the id of a thread, names instead of the numbers of an enumeration."""
    findings: Sequence[str] | None = None
    """Codes of all findings, in order of their places."""
    start_ns: int | None = None
    """The first time of the summary, in nanoseconds."""
    end_ns: int | None = None
    """The last one."""
